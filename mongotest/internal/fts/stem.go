package fts

import (
	"slices"
	"strings"
)

// stemEnglish returns the stem of a lower case English word by the algorithm that its author
// published as Porter2.
func stemEnglish(word string) string {
	if len(word) <= 2 {
		return word
	}
	if s, ok := exceptions[word]; ok {
		return s
	}
	s := &stemmer{w: []byte(strings.TrimLeft(word, "'"))}
	if len(s.w) <= 2 {
		return string(s.w)
	}
	s.markConsonantY()
	s.regions()
	s.possessive()
	s.plural()
	if !slices.Contains(invariants, string(s.w)) {
		s.past()
		s.finalY()
		s.replaceLongest(step2, s.r1)
		s.step3()
		s.step4()
		s.step5()
	}
	return strings.ReplaceAll(string(s.w), "Y", "y")
}

// exceptions are words that the rules would get wrong.
var exceptions = map[string]string{
	"skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl", "ugly": "ugli",
	"early": "earli", "only": "onli", "singly": "singl", "sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas",
	"cosmos": "cosmos", "bias": "bias", "andes": "andes",
}

// invariants are words that stay as they are once a plural ending is gone.
var invariants = []string{"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}

// stemmer is a word on its way to its stem. A y that is a consonant is written Y.
type stemmer struct {
	w      []byte
	r1, r2 int // where the regions begin that most endings must lie in
}

func vowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }

func (s *stemmer) markConsonantY() {
	for i, c := range s.w {
		if c == 'y' && (i == 0 || vowel(s.w[i-1])) {
			s.w[i] = 'Y'
		}
	}
}

func (s *stemmer) regions() {
	after := func(from int) int {
		for i := from + 1; i < len(s.w); i++ {
			if !vowel(s.w[i]) && vowel(s.w[i-1]) {
				return i + 1
			}
		}
		return len(s.w)
	}
	s.r1 = after(0)
	for _, prefix := range []string{"gener", "commun", "arsen"} {
		if strings.HasPrefix(string(s.w), prefix) {
			s.r1 = len(prefix)
		}
	}
	s.r2 = after(s.r1)
}

func (s *stemmer) has(suffix string) bool { return strings.HasSuffix(string(s.w), suffix) }

// cut takes a suffix's bytes away and adds others.
func (s *stemmer) cut(n int, add string) { s.w = append(s.w[:len(s.w)-n], add...) }

// vowelBefore tells whether there is a vowel in front of the last n bytes.
func (s *stemmer) vowelBefore(n int) bool {
	return slices.ContainsFunc(s.w[:max(0, len(s.w)-n)], vowel)
}

// shortSyllable tells whether the first n bytes end with one.
func (s *stemmer) shortSyllable(n int) bool {
	switch {
	case n == 2:
		return vowel(s.w[0]) && !vowel(s.w[1])
	case n < 3:
		return false
	}
	c := s.w[n-1]
	return !vowel(c) && c != 'w' && c != 'x' && c != 'Y' && vowel(s.w[n-2]) && !vowel(s.w[n-3])
}

func (s *stemmer) possessive() {
	for _, suffix := range []string{"'s'", "'s", "'"} {
		if s.has(suffix) {
			s.cut(len(suffix), "")
			return
		}
	}
}

func (s *stemmer) plural() {
	switch {
	case s.has("sses"):
		s.cut(2, "")
	case s.has("ied"), s.has("ies"):
		if len(s.w) > 4 {
			s.cut(2, "")
		} else {
			s.cut(1, "")
		}
	case s.has("us"), s.has("ss"):
	case s.has("s") && s.vowelBefore(2):
		s.cut(1, "")
	}
}

func (s *stemmer) past() {
	for _, suffix := range []string{"eedly", "eed"} {
		if s.has(suffix) {
			if len(s.w)-len(suffix) >= s.r1 {
				s.cut(len(suffix), "ee")
			}
			return
		}
	}
	for _, suffix := range []string{"ingly", "edly", "ing", "ed"} {
		if !s.has(suffix) {
			continue
		}
		if !s.vowelBefore(len(suffix)) {
			return
		}
		s.cut(len(suffix), "")
		n := len(s.w)
		switch {
		case s.has("at"), s.has("bl"), s.has("iz"):
			s.cut(0, "e")
		case n >= 2 && s.w[n-1] == s.w[n-2] && strings.IndexByte("bdfgmnprt", s.w[n-1]) >= 0:
			s.cut(1, "")
		case s.r1 >= n && s.shortSyllable(n):
			s.cut(0, "e")
		}
		return
	}
}

func (s *stemmer) finalY() {
	n := len(s.w)
	if n > 2 && (s.w[n-1] == 'y' || s.w[n-1] == 'Y') && !vowel(s.w[n-2]) {
		s.w[n-1] = 'i'
	}
}

// ending is what takes the place of a suffix; allowed, if set, judges the byte in front of it.
type ending struct {
	suffix, add string
	allowed     string
}

// step2 is ordered so that of two suffixes that fit the longer one comes first.
var step2 = []ending{
	{"ization", "ize", ""}, {"ational", "ate", ""}, {"fulness", "ful", ""}, {"ousness", "ous", ""}, {"iveness", "ive", ""},
	{"tional", "tion", ""}, {"biliti", "ble", ""}, {"lessli", "less", ""},
	{"entli", "ent", ""}, {"ation", "ate", ""}, {"alism", "al", ""}, {"aliti", "al", ""}, {"ousli", "ous", ""}, {"iviti", "ive", ""}, {"fulli", "ful", ""},
	{"enci", "ence", ""}, {"anci", "ance", ""}, {"abli", "able", ""}, {"izer", "ize", ""}, {"ator", "ate", ""}, {"alli", "al", ""},
	{"bli", "ble", ""}, {"ogi", "og", "l"}, {"li", "", "cdeghkmnrt"},
}

// replaceLongest replaces the longest suffix that fits, if it lies in a region.
func (s *stemmer) replaceLongest(list []ending, region int) {
	for _, e := range list {
		if !s.has(e.suffix) {
			continue
		}
		at := len(s.w) - len(e.suffix)
		if at >= region && (e.allowed == "" || at > 0 && strings.IndexByte(e.allowed, s.w[at-1]) >= 0) {
			s.cut(len(e.suffix), e.add)
		}
		return
	}
}

func (s *stemmer) step3() {
	if s.has("ative") && !s.has("tional") {
		if len(s.w)-len("ative") >= s.r2 {
			s.cut(len("ative"), "")
		}
		return
	}
	s.replaceLongest([]ending{
		{"ational", "ate", ""}, {"tional", "tion", ""}, {"alize", "al", ""}, {"icate", "ic", ""}, {"iciti", "ic", ""}, {"ical", "ic", ""},
		{"ness", "", ""}, {"ful", "", ""},
	}, s.r1)
}

func (s *stemmer) step4() {
	s.replaceLongest([]ending{
		{"ement", "", ""}, {"ance", "", ""}, {"ence", "", ""}, {"able", "", ""}, {"ible", "", ""}, {"ment", "", ""},
		{"ant", "", ""}, {"ent", "", ""}, {"ism", "", ""}, {"ate", "", ""}, {"iti", "", ""}, {"ous", "", ""}, {"ive", "", ""}, {"ize", "", ""},
		{"ion", "", "st"}, {"al", "", ""}, {"er", "", ""}, {"ic", "", ""},
	}, s.r2)
}

func (s *stemmer) step5() {
	n := len(s.w)
	switch {
	case n == 0:
	case s.w[n-1] == 'e' && (n-1 >= s.r2 || n-1 >= s.r1 && !s.shortSyllable(n-1)):
		s.cut(1, "")
	case n > 1 && s.w[n-1] == 'l' && n-1 >= s.r2 && s.w[n-2] == 'l':
		s.cut(1, "")
	}
}
