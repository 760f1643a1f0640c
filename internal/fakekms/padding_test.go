package fakekms

import "testing"

func TestUnpad(t *testing.T) {
	for data, want := range map[string]string{
		"abc\x01":                    "abc",
		"a\x03\x03\x03":              "a",
		"\x04\x04\x04\x04":           "",
		"abc\x00":                    "-",
		"ab\x01\x02":                 "-",
		"abcdefghijklmno\x11":        "-",
		"\x03\x03":                   "-",
		"abcdefghijklmnopqrstuv\x10": "-",
	} {
		got, ok := unpad([]byte(data))
		if ok != (want != "-") || ok && string(got) != want {
			t.Errorf("%q: %q, %v, want %q", data, got, ok, want)
		}
	}
}
