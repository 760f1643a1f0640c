package pcre

import (
	"bytes"
	"testing"
)

// TestCounted leaves searches that take long at the first call of the function that counts: no
// search takes more than a bounded amount of work before it calls it.
func TestCounted(t *testing.T) {
	s := bytes.Repeat([]byte("a"), 100_000)
	for _, pattern := range []string{
		"(a+)+b", "(?:a|a)*b", "a++b", "(?>a*)b", "a*?b", "(?=(a+))\\1b", "(a*)\\1b", "(?:a{1000})+b", "^(?:(a)|(?1))*b", "[a-z]*[a-z]*[a-z]*b",
		"(?<!a)a*b", `\X*b`,
	} {
		re, err := Compile(pattern, "")
		if err != nil {
			t.Fatal(err)
		}
		for name, search := range map[string]func(func(int)){
			"match": func(count func(int)) { re.MatchCounted(s, count) },
			"find":  func(count func(int)) { re.FindCounted(s, 0, count) },
		} {
			calls, work := 0, 0
			func() {
				defer func() {
					if v := recover(); v != "enough" {
						t.Errorf("%s of %s ended with %v", name, pattern, v)
					}
				}()
				search(func(steps int) {
					calls, work = calls+1, work+steps
					panic("enough")
				})
			}()
			if calls != 1 || work > countAfter+len(s)>>4 {
				t.Errorf("%s of %s: %d calls, %d steps before the first", name, pattern, calls, work)
			}
		}
	}
}
