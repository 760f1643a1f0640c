package expr

import (
	"testing"
	"time"
)

// FuzzDate reads any text as a date, freely and by any format that is valid, and writes any date:
// what is written with all of its parts is read as the same instant.
func FuzzDate(f *testing.F) {
	for _, seed := range [][2]string{
		{"2017-02-08T12:10:40.787Z", "%Y-%m-%dT%H:%M:%S.%LZ"}, {"July 4th, 2017", "%d.%m.%Y"}, {"@1500000000.5", "%s"}, {"2017-W06-3", "%G-W%V-%u"}, {"12/31/69 11pm EST", "%Y%j"},
		{"back of 7pm", "%B %d, %Y"}, {"00:00:60", "%%%z"}, {"99999999999-1-1", "%Y"}, {"1.1.1 +9999", "%z%Z"}, {"", ""},
	} {
		f.Add(seed[0], seed[1], int64(1583586123456), int16(330))
	}
	f.Add("", "%Y", int64(-62135596800000), int16(-720))
	f.Fuzz(func(t *testing.T, text, format string, ms int64, minutes int16) {
		if len(text) > 200 || len(format) > 200 {
			return
		}
		z := zone{offset: int(minutes) % (24 * 60) * 60}
		for _, z := range []zone{utc, z} {
			parseDate(text, z)
			if checkFormat(format, fromStringChars(fuzzVersion)) == nil {
				parseDateFormat(text, format, z)
			}
			if checkFormat(format, toStringChars(fuzzVersion)) == nil {
				formatDate(format, ms, z)
			}
		}
		// The years that four digits hold.
		const full = "%Y-%m-%dT%H:%M:%S.%L"
		at := time.UnixMilli(ms % (1 << 48)).UTC().Add(time.Duration(z.offset) * time.Second)
		if at.Year() < 1 || at.Year() > 9999 {
			return
		}
		ms = ms % (1 << 48)
		written, err := formatDate(full, ms, z)
		if err != nil {
			t.Fatal(err)
		}
		if want := at.Format("2006-01-02T15:04:05.000"); written != want {
			t.Fatalf("%d with an offset of %d s is written %s, want %s", ms, z.offset, written, want)
		}
		read, err := parseDateFormat(written, full, z)
		if err != nil || read != ms {
			t.Fatalf("%s with an offset of %d s is read as %d, want %d, %v", written, z.offset, read, ms, err)
		}
		if free, err := parseDate(written, z); err != nil || free != ms {
			t.Fatalf("%s with an offset of %d s is read freely as %d, want %d, %v", written, z.offset, free, ms, err)
		}
	})
}

var fuzzVersion = Version{Major: 8}
