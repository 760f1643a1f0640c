package fle

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestFold(t *testing.T) {
	for _, c := range []struct{ in, folded, bare, both string }{
		{"", "", "", ""},
		{"FOObar1", "foobar1", "FOObar1", "foobar1"},
		{"Ünïcödé STRASSE", "ünïcödé strasse", "Unicode STRASSE", "unicode strasse"},
		{"İI ǅ ß Å ẞ", "İi ǆ ß å ß", "II ǅ ß A ẞ", "Ii ǆ ß a ß"},
		{"ı", "ı", "ı", "ı"},
		{"µſς", "μsσ", "µſς", "μsσ"},
		{"\uab70\u13f8\u13a0", "\u13a0\u13f0\u13a0", "\uab70\u13f8\u13a0", "\u13a0\u13f0\u13a0"}, // Cherokee
		{"a\u0301^`¨·", "a\u0301^`¨·", "a", "a"},
		{"\u0340\u0374\u1fef", "\u0340\u0374\u1fef", "", ""},
		{"\u0387", "\u0387", "\u0387", "\u0387"},
		{"한각", "한각", "한각", "한각"},
		{"\u0622\u0dda", "\u0622\u0dda", "\u0622\u0dd9", "\u0622\u0dd9"}, // the Sinhala virama is a diacritic
		{"\u1ea5ǭ", "\u1ea5ǭ", "ao", "ao"},
		{"\u2c2f\ua7c0\ua7d6", "\u2c2f\ua7c0\ua7d6", "\u2c2f\ua7c0\ua7d6", "\u2c2f\ua7c0\ua7d6"},
		{"\u0c3c\u0898\u1ac1", "\u0c3c\u0898\u1ac1", "\u0c3c\u0898\u1ac1", "\u0c3c\u0898\u1ac1"},
	} {
		for i, want := range []string{c.in, c.folded, c.bare, c.both} {
			if got := Fold(c.in, i&1 != 0, i&2 != 0); got != want {
				t.Errorf("%q with case %t, diacritics %t: %q, want %q", c.in, i&1 != 0, i&2 != 0, got, want)
			}
		}
	}
}

// TestFoldIsPinned fails when a new version of Go or of golang.org/x/text folds differently. What
// was stored must be found for ever: list what is new in newerCase and newerDiacritic rather than
// change the sum.
func TestFoldIsPinned(t *testing.T) {
	const want = "4fa7a96fe748336001e7e5bf90601204803a429cf9ca286a10f55cc2fe3a7a6a"
	h := sha256.New()
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if r >= 0xD800 && r <= 0xDFFF {
			continue
		}
		for _, s := range []string{Fold(string(r), true, false), Fold(string(r), false, true), Fold(string(r), true, true)} {
			h.Write([]byte(s + "\n"))
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("the sum of all code points folded is %s, want %s (Unicode %s)", got, want, unicode.Version)
	}
}

func FuzzFold(f *testing.F) {
	f.Add("Ünïcödé", true, true)
	f.Add("\xff", true, false)
	f.Fuzz(func(t *testing.T, s string, c, d bool) {
		once := Fold(s, c, d)
		if c || d {
			if twice := Fold(once, c, d); twice != once && !strings.ContainsRune(s, '\u0345') {
				t.Errorf("%q folds to %q and then to %q", s, once, twice)
			}
		}
	})
}

// TestSubstringOrder pins the order in which a server keeps the tags of substrings.
func TestSubstringOrder(t *testing.T) {
	s := Substring{MaxLength: 10, Upper: 6, Lower: 3}
	a, err := s.substrings(new(cutsOf("foobar")), 6, 6)
	want := strings.Split("fooba oob oba foob oobar ooba foobar bar foo obar", " ")
	if err != nil || !slices.Equal(a.real, want) {
		t.Errorf("%q, %v", a.real, err)
	}
	if a.padding != 8+7+6+5-10 {
		t.Errorf("padding %d", a.padding)
	}
	if _, err := s.substrings(new(cutsOf("foobarfoobar")), 12, 12); err == nil {
		t.Error("longer than it may be")
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		text Text
		want string
	}{
		{Text{Value: "\xff", Prefix: &Affix{2, 1}}, "not valid UTF-8"},
		{Text{Value: "a", Prefix: &Affix{2, 1}, Suffix: &Affix{2, 1}}, "more than one"},
		{Text{Value: "´´", FoldDiacritics: true, Prefix: &Affix{2, 1}}, "shorter than"},
		{Text{Value: "abc", Substring: &Substring{5, 2, 1}}, "longer than"},
	} {
		if _, _, err := c.text.query(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.text, err, c.want)
		}
	}
	for _, text := range []Text{{Value: "ab", Prefix: &Affix{3, 2}}, {Value: "abc", Prefix: &Affix{3, 2}}, {Value: "ab", Substring: &Substring{5, 3, 2}}, {Value: "abc", Substring: &Substring{5, 3, 2}}} {
		if got, _, err := text.query(); got != text.Value || err != nil {
			t.Errorf("%+v: %q, %v", text, got, err)
		}
	}
}
