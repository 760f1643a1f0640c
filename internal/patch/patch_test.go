package patch_test

import (
	"strings"
	"testing"

	"allium/internal/patch"
)

func TestOnce(t *testing.T) {
	const src = "package p\n\nfunc f() {\n\tg(\n\t\ta, // the first\n\t\t\"x\\n\",\n\t)\n\tif a &&\n\t\tb {\n\t\th()\n\t}\n\th()\n\tx := T{A: 1,\n\t\tBcd: 2}\n}\n"
	for _, c := range []struct{ old, now, want string }{
		{"g(\n\t\ta,", "k(a,", "k(a,"},           // letter by letter
		{`g(a, "x\n")`, "k()", "\tk()\n\tif"},    // arguments on lines of their own
		{`, "x\n"`, "", "\t\ta,\n\t)"},           // the comma behind the last one stays
		{"if a && b {", "if b {", "\tif b {\n"},  // a condition on two lines
		{"T{A: 1, Bcd: 2}", "T{}", "x := T{}\n"}, // what gofmt would align
		{"h() }", "}", "\t\t}\n\th()"},           // one of two, by what follows
		{"g(a,\"x\\n\",)", "k()", "\tk()\n"},     // without blanks
	} {
		got, err := patch.Once([]byte(src), c.old, c.now)
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%q: %v\n%s", c.old, err, got)
		}
	}
	for _, old := range []string{"h()", "", "k()", `"y`, "a b", "\n", "f() { x"} {
		if got, err := patch.Once([]byte(src), old, "z"); err == nil {
			t.Errorf("%q: no error\n%s", old, got)
		}
	}
}
