package mongoerr

import "testing"

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"größer, 東京 \"x\" \\":        "größer, 東京 \"x\" \\",
		"a\nb\r\n\tc":                `a\nb\r\n\tc`,
		"\x1b[31mred\x1b[0m":         `\x1b[31mred\x1b[0m`,
		"nul\x00bel\x07del\x7f":      `nul\x00bel\adel\x7f`,
		"csi\u009b2J":                `csi\u009b2J`,
		"line\u2028sep, bidi\u202e!": `line\u2028sep, bidi\u202e!`,
		"broken \xff\xc3":            `broken \xff\xc3`,
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
