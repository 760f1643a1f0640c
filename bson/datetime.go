package bson

import (
	"fmt"
	"time"
)

// DateTime is a BSON UTC datetime: milliseconds since the Unix epoch.
type DateTime int64

// NewDateTime returns t as a DateTime, truncated to milliseconds.
func NewDateTime(t time.Time) DateTime { return DateTime(t.UnixMilli()) }

// Time returns d as a time.Time in UTC.
func (d DateTime) Time() time.Time { return time.UnixMilli(int64(d)).UTC() }

// String returns d as RFC 3339 writes it, for example 2026-08-01T12:00:00.25Z, in UTC; a year
// before 0 or after 9999 as Go's time package writes it.
func (d DateTime) String() string { return d.Time().Format(time.RFC3339Nano) }

// Compare returns -1, 0 or +1 as d is before, equal to or after other.
func (d DateTime) Compare(other DateTime) int { return compareOrdered(d, other) }

// MarshalText returns what String returns, or an error if RFC 3339 has no form for the year. In
// JSON, d is a string of it.
func (d DateTime) MarshalText() ([]byte, error) { return d.Time().MarshalText() }

// MarshalJSON returns a string of what MarshalText returns.
func (d DateTime) MarshalJSON() ([]byte, error) { return d.Time().MarshalJSON() }

// UnmarshalText parses a time as RFC 3339 writes it, truncated to milliseconds.
func (d *DateTime) UnmarshalText(text []byte) error {
	ms, ok := parseDateTime(text, false)
	if !ok {
		return fmt.Errorf("bson: parse date %q: not of the form 2006-01-02T15:04:05.999Z", clip(string(text)))
	}
	*d = DateTime(ms)
	return nil
}

// UnmarshalJSON reads a string as UnmarshalText does, or the {"$date": ...} of Extended JSON.
func (d *DateTime) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, d, func(v RawValue) (DateTime, bool) {
		if s, ok := v.StringBytes(); ok {
			ms, ok := parseDateTime(s, false)
			return DateTime(ms), ok
		}
		return v.DateTime()
	})
}

// The dates that relaxed Extended JSON writes as text end with the year 9999.
const endOfYear9999 DateTime = 253402300799999

const (
	millisPerDay = 24 * 60 * 60 * 1000
	daysPerEra   = 400*365 + 97 // the calendar repeats after 400 years
	epochDay     = 719468       // days from 0000-03-01 to 1970-01-01
)

// appendRFC3339 appends d, which must lie between the epoch and the year 9999, with milliseconds if
// it has some.
func (d DateTime) appendRFC3339(dst []byte) []byte {
	// The year starts in March here, so that the leap day is its last one and the months' lengths
	// have a pattern.
	ms, day := int(d%millisPerDay), int(d/millisPerDay)+epochDay
	era, dayOfEra := day/daysPerEra, day%daysPerEra
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/(daysPerEra-1)) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	month := (5*dayOfYear + 2) / 153
	dayOfMonth := dayOfYear - (153*month+2)/5 + 1
	year := era*400 + yearOfEra
	if month += 3; month > 12 {
		month, year = month-12, year+1
	}
	dst = append(dst, byte('0'+year/1000), byte('0'+year/100%10), byte('0'+year/10%10), byte('0'+year%10), '-')
	dst = append(appendTwo(dst, month), '-')
	dst = append(appendTwo(dst, dayOfMonth), 'T')
	dst = append(appendTwo(dst, ms/3600000), ':')
	dst = append(appendTwo(dst, ms/60000%60), ':')
	dst = appendTwo(dst, ms/1000%60)
	if ms %= 1000; ms > 0 {
		dst = append(dst, '.', byte('0'+ms/100))
		dst = appendTwo(dst, ms%100)
	}
	return append(dst, 'Z')
}

func appendTwo(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// parseDateTime parses a date as RFC 3339 has it; digits after the milliseconds are cut off. With
// lenient the zone may do without its colon, as old versions of mongoexport wrote it.
func parseDateTime(s []byte, lenient bool) (ms int64, ok bool) {
	if len(s) < len("0000-00-00T00:00:00Z") || s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' ||
		s[16] != ':' {
		return 0, false
	}
	var field [6]int
	for i, at := range [...]struct{ from, to int }{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}} {
		if field[i], ok = parseDigits(s[at.from:at.to]); !ok {
			return 0, false
		}
	}
	year, month, day := field[0], field[1], field[2]
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || field[3] > 23 || field[4] > 59 ||
		field[5] > 59 {
		return 0, false
	}
	ms = int64(field[3]*3600+field[4]*60+field[5]) * 1000
	s = s[19:]
	if s[0] == '.' {
		digits := 1
		for scale := int64(100); digits < len(s) && s[digits]-'0' <= 9; digits++ {
			ms += int64(s[digits]-'0') * scale
			scale /= 10
		}
		if digits == 1 {
			return 0, false
		}
		s = s[digits:]
	}
	offset, ok := parseZone(s, lenient)
	if !ok {
		return 0, false
	}
	if month -= 3; month < 0 {
		month, year = month+12, year-1
	}
	era := (year + 400) / 400 // the year may be -1
	yearOfEra := year + 400 - era*400
	days := (era-1)*daysPerEra + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + (153*month+2)/5 + day - 1 - epochDay
	return int64(days)*millisPerDay + ms - offset, true
}

func parseZone(s []byte, lenient bool) (ms int64, ok bool) {
	if len(s) == 1 && s[0]|0x20 == 'z' {
		return 0, true
	}
	if len(s) < 5 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	minutes := s[3:]
	if minutes[0] == ':' {
		minutes = minutes[1:]
	} else if !lenient {
		return 0, false
	}
	h, ok := parseDigits(s[1:3])
	m, alsoOK := parseDigits(minutes)
	if !ok || !alsoOK || len(minutes) != 2 || h > 23 || m > 59 {
		return 0, false
	}
	ms = int64(h*60+m) * 60000
	if s[0] == '-' {
		ms = -ms
	}
	return ms, true
}

func parseDigits(s []byte) (n int, ok bool) {
	for _, c := range s {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, true
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
