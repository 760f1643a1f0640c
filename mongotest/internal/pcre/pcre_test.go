package pcre

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct{ pattern, options, s, want string }{
		{"b+", "", "abbb", "[1 4]"},
		{"a(b)?", "", "a", "[0 1 -1 -1]"},
		{"(a|ab)(c|bcd)(d*)", "", "abcd", "[0 4 0 1 1 4 4 4]"},
		{"a(?=pple)", "", "grape apple", "[6 7]"},
		{"(?<!pine )apple", "", "pine apple, apple", "[12 17]"},
		{"(?<=a|bc)d", "", "xbcd", "[3 4]"},
		{`(p)\1`, "", "apple", "[1 3 1 2]"},
		{`(?<x>ap++)le`, "", "apple", "[0 5 0 3]"},
		{"a++ab", "", "aaab", "[]"},
		{"(?>a|ap)ple", "", "apple", "[]"},
		{"^(a|p(?1))", "", "pa", "[0 2 0 2]"},
		{`\((?:[^()]++|(?R))*\)`, "", "x(a(b)c)y", "[1 8]"},
		{"^(a)?(?(1)pple|x)", "", "apple", "[0 5 0 1]"},
		{"^(a)?(?(1)pple|x)", "", "x", "[0 1 -1 -1]"},
		{"(?i)APPLE", "", "apple", "[0 5]"},
		{"a(?i:B)c", "", "aBc", "[0 3]"},
		{"a(?i:B)c", "", "aBC", "[]"},
		{"éclair", "i", "ÉCLAIR", "[0 7]"},
		{"^.clair$", "", "éclair", "[0 7]"},
		{"apple$", "", "apple\n", "[0 5]"},
		{`apple\z`, "", "apple\n", "[]"},
		{"^b$", "m", "a\nb\nc", "[2 3]"},
		{"a.b", "", "a\nb", "[]"},
		{"a.b", "s", "a\nb", "[0 3]"},
		{"a b # c", "x", "ab", "[0 2]"},
		{`\Qa.b\E+`, "", "xa.bb", "[1 5]"},
		{"[[:upper:]]+", "", "abCDe", "[2 4]"},
		{"[^[:alpha:]]", "", "ab1", "[2 3]"},
		{`[a\-z]`, "", "-", "[0 1]"},
		{`[]a]`, "", "]", "[0 1]"},
		{`[\d-x]`, "", "-", "[0 1]"},
		{`\bapple\b`, "", "an apple pie", "[3 8]"},
		{`\x41\x{e9}`, "", "Aé", "[0 3]"},
		{`a{2}`, "", "aaa", "[0 2]"},
		{`a{,2}`, "", "a{,2}", "[0 5]"},
		{`a{2,}?`, "", "aaaa", "[0 2]"},
		{`(a*)*`, "", "aa", "[0 2 0 2]"},
		{`(?:a|b)*?c`, "", "abc", "[0 3]"},
		{`foo\Kbar`, "", "foobar", "[3 6]"},
		{`(?|(a)|(b))c`, "", "bc", "[0 2 0 1]"},
		{`\p{Lu}\p{Ll}`, "", "aÉé", "[1 5]"},
		{`\R`, "", "a\r\nb", "[1 3]"},
		{`(?<n>a)\k<n>`, "", "aa", "[0 2 0 1]"},
		{`(?P<n>a)(?P=n)(?P>n)`, "", "aaa", "[0 3 0 1]"},
		{`(a)\g{-1}`, "", "aa", "[0 2 0 1]"},
		{`(?(?=a)ab|cd)`, "", "cd", "[0 2]"},
		{`(?(DEFINE)(?<d>\d+))x(?&d)`, "", "x12", "[0 3 -1 -1]"},
		{`(?#note)a`, "", "a", "[0 1]"},
		{``, "", "", "[0 0]"},
		{`(*CR)ab.cd`, "", "ab\ncd", "[0 5]"},
		{`(*CR)ab.cd`, "", "ab\rcd", "[]"},
		{`(*CRLF)a.`, "", "a\r", "[0 2]"},
		{`(*CRLF)a.`, "", "a\r\n", "[]"},
		{`(*CRLF)^b$`, "m", "a\nb\r\nb\r\n", "[5 6]"},
		{`(*ANYCRLF)^b$`, "m", "a\nb\rc", "[2 3]"},
		{`(*ANY)^b$`, "m", "a\u2028b\vc", "[4 5]"},
		{`(*ANYCRLF)a$`, "", "a\r\n", "[0 1]"},
		{`(*CR)(*LF)a.`, "", "a\n", "[]"},
		{`a(*FAIL)|ab`, "", "ab", "[0 2]"},
		{`(*F)`, "", "ab", "[]"},
		{`a(*ACCEPT)b`, "", "ac", "[0 1]"},
		{`A((?:A|B(*ACCEPT)|C)D)`, "", "AB", "[0 2 1 2]"},
		{`(?=a(*ACCEPT)b)ac`, "", "ac", "[0 2]"},
		{`(?=(a(*ACCEPT)b))(a(c(*ACCEPT)))`, "", "ac", "[0 2 0 1 0 2 1 2]"},
		{`(?:a+)(*COMMIT)b`, "", "aac aab", "[]"},
		{`a+(*COMMIT)b`, "", "aab", "[0 3]"},
		{`a+(*PRUNE)b`, "", "aac aab", "[4 7]"},
		{`a+?(*PRUNE)b`, "", "aab", "[1 3]"},
		{`a+(*SKIP)b|c`, "", "aaac", "[3 4]"},
		{`aaa?(*SKIP)b|a`, "", "aaac", "[]"},
		{`a(*MARK:m)a(*SKIP:m)b|a`, "", "aac", "[1 2]"},
		{`a(*SKIP:none)b|ac`, "", "ac", "[0 2]"},
		{`^(?:a+(*THEN)b|a+c)`, "", "aac", "[0 3]"},
		{`^(?:a(?:a|b)(*THEN)x|aac)`, "", "aac", "[0 3]"},
		{`^(?:a|ab)(*THEN)c`, "", "abc", "[]"},
		{`^a(*THEN)b|^ac`, "", "ac", "[0 2]"},
		{`(?!a(*COMMIT)b)ac`, "", "ac", "[0 2]"},
		{`(*UTF8)(*UCP)(*LIMIT_MATCH=100)\wb`, "", "éb", "[0 3]"},
		{`a||b`, "", "b", "[0 0]"},
		{`(?!a)b`, "", "b", "[0 1]"},
		{`\w+@\w+\.com`, "", "x me@you.com", "[2 12]"},
		{`^(?!.*foo).*$`, "", "bar", "[0 3]"},
	} {
		re, err := Compile(tt.pattern, tt.options)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if got := fmt.Sprint(re.Find([]byte(tt.s), 0)); got != tt.want {
			t.Errorf("%s in %q: %v, want %v", tt.pattern, tt.s, got, tt.want)
		}
		if got := re.Match([]byte(tt.s)); got != (tt.want != "[]") {
			t.Errorf("%s in %q: Match says %v", tt.pattern, tt.s, got)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"(":              "missing )",
		")":              "unmatched parentheses",
		"a)":             "unmatched parentheses",
		"[":              "missing terminating ] for character class",
		"[]":             "missing terminating ] for character class",
		"*a":             "nothing to repeat",
		"+":              "nothing to repeat",
		"a|*":            "nothing to repeat",
		"a**":            "nothing to repeat",
		"a+*":            "nothing to repeat",
		"a{2}{3}":        "nothing to repeat",
		"a???":           "nothing to repeat",
		"(a)**":          "nothing to repeat",
		"[a]**":          "nothing to repeat",
		"a*+*":           "nothing to repeat",
		"a{2}+{3}":       "nothing to repeat",
		"(?x)a* *":       "nothing to repeat",
		"a*(?#c)*":       "nothing to repeat",
		"^*":             "nothing to repeat",
		"$+":             "nothing to repeat",
		`\b?`:            "nothing to repeat",
		`\K*`:            "nothing to repeat",
		"(?":             "missing )",
		"[z-a]":          "range out of order in character class",
		"a{3,2}":         "numbers out of order in {} quantifier",
		"a{99999}":       "number too big in {} quantifier",
		`\`:              `\ at end of pattern`,
		`(a)\2`:          "reference to non-existent subpattern",
		"(?1)":           "reference to non-existent subpattern",
		"(?<=a+)b":       "lookbehind assertion is not fixed length",
		"(?z)":           "unrecognized character after (? or (?-",
		"[[:foo:]]":      "unknown POSIX class name",
		"[:alpha:]":      "POSIX named classes are supported only within a class",
		`\p{Foo}`:        `unknown property name after \P or \p`,
		"(?<n>a)(?<n>b)": "two named subpatterns have the same name",
		"(?(1)a|b|c)":    "conditional group contains more than two branches",
		`\u0041`:         `PCRE does not support \L, \l, \N{name}, \U, or \u`,
		"(?#":            "missing ) after comment",
		strings.Repeat("(", 300) + strings.Repeat(")", 300): "parentheses are too deeply nested",
	} {
		if _, err := Compile(pattern, ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}

// What both understand, Go's regexp understands alike.
func TestLikeRegexp(t *testing.T) {
	patterns := []string{"a*b", "(a|b)+c", "[^a]b?", "a{1,2}", "(ab?)*", "^a|b$", "a.c", "x*", `\ba`, "(?:a|ab)(?:c|bcd)", "a+?b*?", "[a-c]+[b-d]*"}
	var words []string
	for i := range 3 * 3 * 3 * 3 * 3 {
		w := ""
		for n := i; n > 0; n /= 3 {
			w += string("abc"[n%3])
		}
		words = append(words, w)
	}
	for _, p := range patterns {
		mine, err := Compile(p, "")
		if err != nil {
			t.Fatal(p, err)
		}
		other := regexp.MustCompile(p)
		for _, w := range words {
			if got, want := fmt.Sprint(mine.Find([]byte(w), 0)), fmt.Sprint(other.FindStringSubmatchIndex(w)); got != want {
				t.Errorf("%s in %q: %v, want %v", p, w, got, want)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	for pattern, want := range map[string]error{
		`(*LIMIT_MATCH=1)a`: ErrLimit, `(*LIMIT_MATCH=100)(a+)+$`: ErrLimit, `(*LIMIT_MATCH=100)a`: nil, `(*LIMIT_MATCH=9)(*LIMIT_MATCH=100)a+a+a+a+b`: ErrLimit, `b`: nil,
	} {
		re, err := Compile(pattern, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := re.FindCounted([]byte("aaaaaaaaac"), 0, nil); err != want {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func TestHostilePattern(t *testing.T) {
	re, err := Compile("(a+)+$", "")
	if err != nil {
		t.Fatal(err)
	}
	if re.Match([]byte(strings.Repeat("a", 40) + "b")) {
		t.Error("matches")
	}
	re, _ = Compile("(?:a|b)*c", "")
	if re.Match([]byte(strings.Repeat("ab", 1<<17))) {
		t.Error("matches")
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`(a)\1`, `(?(1)a|b)`, `[[:alpha:]\d-z]{2,3}+`, `(?<=a|bc)(?R)?`, `\Qa\E(?#x)`, `(?i-m:x)`, `(?|a|(b))\g{-1}`, `\K*`, `(?!)*`, `(()|a)+b`, `(a(*ACCEPT)b)|c`, `a(*THEN)b|(*SKIP:x)c(*MARK:x)`, `(*LIMIT_MATCH=9)(a(*COMMIT))+(*PRUNE)`} {
		f.Add(s, "ims", []byte("aabbcc"))
	}
	f.Fuzz(func(t *testing.T, pattern, options string, s []byte) {
		re, err := Compile(pattern, options)
		if err != nil {
			return
		}
		matches := re.Match(s)
		// What has one meaning only is found by Go's, too.
		if len(pattern) > 20 || len(s) > 40 || strings.Trim(options, "ims") != "" || strings.Trim(pattern, "abc|()*+?") != "" || strings.Contains(pattern, "(?") || strings.Contains(pattern, "(*") {
			return
		}
		for _, twice := range []string{"++", "*+", "?+", "**", "+*", "?*", "??", "*?", "+?"} { // possessive and lazy
			if strings.Contains(pattern, twice) {
				return
			}
		}
		if strings.Trim(string(s), "abcABC") != "" {
			return
		}
		other, err := regexp.Compile("(?" + "s" + strings.Repeat("i", min(1, strings.Count(options, "i"))) + ")" + pattern)
		if err == nil && other.Match(s) != matches {
			t.Errorf("%q with %q on %q: %v, by Go's %v", pattern, options, s, matches, !matches)
		}
	})
}
