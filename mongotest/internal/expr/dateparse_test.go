package expr

import (
	"strings"
	"testing"
	"time"
)

// TestParseDate reads texts in the forms of the server's date library.
func TestParseDate(t *testing.T) {
	for text, want := range map[string]string{
		"2020-03-07":                       "2020-03-07T00:00:00.000Z",
		"2020-3-7":                         "2020-03-07T00:00:00.000Z",
		"20-3-7":                           "2020-03-07T00:00:00.000Z",
		"10000-01-01":                      "2000-01-01T09:59:59.900Z", // a time of four digits, then a date
		"1230 2020-03-07 12":               "Error parsing date string '1230 2020-03-07 12'; 16: Unexpected character '1'; 17: Unexpected character '2'",
		"12:30 2020-03-07":                 "2020-03-07T12:30:00.000Z",
		"Sat Mar  7 12:30:01 2020":         "2020-03-07T12:30:01.000Z",
		"Mar 7 2020 5:30 pm":               "2020-03-07T17:30:00.000Z",
		"Monday, 7 Mar 2020":               "2020-03-09T00:00:00.000Z",
		"2020-03-07 noon":                  "2020-03-07T12:00:00.000Z",
		"2020-03-07 tomorrow":              "2020-03-08T00:00:00.000Z",
		"7/Mar/2020:12:30:01 +0200":        "2020-03-07T10:30:01.000Z",
		"2020:03:07 12:30:01":              "2020-03-07T12:30:01.000Z",
		"2020 March":                       "2020-03-01T00:00:00.000Z",
		"2020-03-07T12:30:01.123456Z":      "2020-03-07T12:30:01.123Z",
		"Mar 7":                            `an incomplete date/time string has been found, with elements missing: "Mar 7"`,
		"March":                            `an incomplete date/time string has been found, with elements missing: "March"`,
		"1999":                             `an incomplete date/time string has been found, with elements missing: "1999"`,
		"Mars":                             "Error parsing date string 'Mars'; 0: passing a time zone identifier as part of the string is not allowed 'M'",
		"2020-03-07 2020-03-08":            "Error parsing date string '2020-03-07 2020-03-08'; 11: Double date specification '2'",
		"2020-03-07T12:30:01Z Etc/Nowhere": "Error parsing date string '2020-03-07T12:30:01Z Etc/Nowhere'; 21: passing a time zone identifier as part of the string is not allowed 'E'",
	} {
		ms, err := parseDate(text, utc)
		got := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "ConversionFailure: ")
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
