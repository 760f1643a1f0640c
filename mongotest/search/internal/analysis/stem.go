package analysis

import (
	"strings"
	"unicode"

	snowball "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/porter"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// stemmers are the Snowball stemmers by the names that definitions have for them.
var stemmers = map[string]func(*snowball.Env) bool{
	"arabic": arabic.Stem, "danish": danish.Stem, "dutch": dutch.Stem, "english": english.Stem, "finnish": finnish.Stem,
	"french": french.Stem,
	"german": german.Stem, "german2": german.Stem, "hungarian": hungarian.Stem, "irish": irish.Stem,
	"italian": italian.Stem, "norwegian": norwegian.Stem,
	"porter": porter.Stem, "portuguese": portuguese.Stem, "romanian": romanian.Stem, "russian": russian.Stem,
	"spanish": spanish.Stem,
	"swedish": swedish.Stem, "turkish": turkish.Stem,
}

// stem returns the stem of a word by a Snowball stemmer.
func stem(word, name string) string {
	env := snowball.NewEnv(word)
	stemmers[name](env)
	return env.Current()
}

// Savoy's light stemmers, which take off little more than endings for gender and number.

// suffixes is a word whose end changes.
type suffixes []rune

func (s suffixes) ends(suffix string) bool { return strings.HasSuffix(string(s), suffix) }

// cut returns the word without its last n letters, the last of the rest replaced by those of put.
func (s suffixes) cut(n int, put string) suffixes {
	s = s[:len(s)-n]
	p := []rune(put)
	copy(s[len(s)-len(p):], p)
	return s
}

func frenchLight(word string) string {
	s := suffixes(word)
	if len(s) > 5 && s.ends("x") {
		if s.ends("aux") && s[len(s)-4] != 'e' {
			s[len(s)-2] = 'l'
		}
		s = s[:len(s)-1]
	}
	if len(s) > 3 && s.ends("x") {
		s = s[:len(s)-1]
	}
	if len(s) > 3 && s.ends("s") {
		s = s[:len(s)-1]
	}
	for _, r := range []struct {
		min    int
		end    string
		cut    int
		put    string
		goesOn bool
	}{
		{9, "issement", 6, "r", false}, {8, "issant", 4, "r", false}, {6, "ivement", 5, "f", false},
		{6, "ement", 4, "", false},
		{11, "ficatrice", 5, "er", false}, {10, "ficateur", 4, "er", true}, {9, "catrice", 3, "quer", false},
		{8, "cateur", 2, "quer", false},
		{8, "atrice", 4, "er", false}, {7, "ateur", 3, "er", false}, {6, "trice", 1, "eur", true},
		{5, "ième", 4, "", false},
		{7, "teuse", 2, "r", false}, {6, "teur", 1, "r", false}, {5, "euse", 2, "", false}, {8, "ère", 1, "er", false},
		{7, "ive", 1, "f", false},
		{4, "folle", 2, "u", false}, {4, "molle", 2, "u", false}, {9, "nnelle", 5, "", false},
		{9, "nnel", 3, "", false},
		{4, "ète", 1, "et", true}, {8, "ique", 4, "", true}, {8, "esse", 3, "", false}, {7, "inage", 3, "", false},
		{9, "isation", 7, "", false}, {9, "isateur", 7, "", false}, {8, "ation", 5, "", false},
		{8, "ition", 5, "", false},
	} {
		if len(s) > r.min && s.ends(r.end) {
			if s = s.cut(r.cut, r.put); !r.goesOn {
				break
			}
		}
	}
	if len(s) > 4 {
		s = undoubled(suffixes(strings.NewReplacer("à", "a", "á", "a", "â", "a", "ô", "o", "è", "e", "é", "e", "ê", "e",
			"ù", "u", "û", "u", "î", "i", "ç", "c").Replace(string(s))))
	}
	if len(s) > 4 && s.ends("ie") {
		s = s[:len(s)-2]
	}
	if len(s) > 4 {
		for _, end := range []string{"r", "e", "e"} {
			if s.ends(end) {
				s = s[:len(s)-1]
			}
		}
		if n := len(s); s[n-1] == s[n-2] && unicode.IsLetter(s[n-1]) {
			s = s[:n-1]
		}
	}
	return string(s)
}

// undoubled leaves one of letters that follow each other.
func undoubled(s suffixes) suffixes {
	out := s[:0]
	for i, r := range s {
		if i == 0 || r != out[len(out)-1] || !unicode.IsLetter(r) {
			out = append(out, r)
		}
	}
	return out
}

func germanLight(word string) string {
	s := suffixes(strings.NewReplacer("ä", "a", "à", "a", "á", "a", "â", "a", "ö", "o", "ò", "o", "ó", "o", "ô", "o",
		"ï", "i", "ì", "i", "í", "i", "î", "i", "ü", "u", "ù", "u", "ú", "u", "û", "u").Replace(word))
	before := func(n int) bool { return len(s) > n && strings.ContainsRune("bdfghklmnt", s[len(s)-n-1]) }
	switch { // step 1
	case len(s) > 5 && s.ends("ern"):
		s = s[:len(s)-3]
	case len(s) > 4 && (s.ends("em") || s.ends("en") || s.ends("er") || s.ends("es")):
		s = s[:len(s)-2]
	case len(s) > 3 && s.ends("e"):
		s = s[:len(s)-1]
	case len(s) > 3 && s.ends("s") && before(1):
		s = s[:len(s)-1]
	}
	switch { // step 2
	case len(s) > 5 && s.ends("est"):
		s = s[:len(s)-3]
	case len(s) > 4 && (s.ends("er") || s.ends("en")):
		s = s[:len(s)-2]
	case len(s) > 4 && s.ends("st") && before(2):
		s = s[:len(s)-2]
	}
	return string(s)
}

// germanNormal spells umlauts and ß in one way.
func germanNormal(word string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range strings.NewReplacer("ä", "a", "ö", "o", "ü", "u", "ß", "ss").Replace(word) {
		if r == 'e' && (last == 'a' || last == 'o' || last == 'u' && !vowelBefore(b.String())) {
			last = r
			continue
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}

// vowelBefore reports whether the letter before the last is a vowel or q, so that ue is no umlaut.
func vowelBefore(s string) bool {
	r := []rune(s)
	return len(r) > 1 && strings.ContainsRune("aeioqu", r[len(r)-2])
}

func italianLight(word string) string {
	s := suffixes(word)
	if len(s) < 6 {
		return word
	}
	s = suffixes(strings.NewReplacer("à", "a", "á", "a", "â", "a", "ä", "a", "ò", "o", "ó", "o", "ô", "o", "ö", "o",
		"è", "e", "é", "e", "ê", "e", "ë", "e", "ù", "u", "ú", "u", "û", "u", "ü", "u", "ì", "i", "í", "i", "î", "i",
		"ï", "i").Replace(word))
	n := len(s)
	switch {
	case s.ends("e"):
		if s.ends("ie") || s.ends("he") {
			return string(s[:n-2])
		}
		return string(s[:n-1])
	case s.ends("i"):
		if s.ends("hi") || s.ends("ii") {
			return string(s[:n-2])
		}
		return string(s[:n-1])
	case s.ends("a"):
		if s.ends("ia") {
			return string(s[:n-2])
		}
		return string(s[:n-1])
	case s.ends("o"):
		if s.ends("io") {
			return string(s[:n-2])
		}
		return string(s[:n-1])
	}
	return string(s)
}

func spanishLight(word string) string {
	s := suffixes(word)
	if len(s) < 5 {
		return word
	}
	s = suffixes(strings.NewReplacer("à", "a", "á", "a", "â", "a", "ä", "a", "ò", "o", "ó", "o", "ô", "o", "ö", "o",
		"è", "e", "é", "e", "ê", "e", "ë", "e", "ù", "u", "ú", "u", "û", "u", "ü", "u", "ì", "i", "í", "i", "î", "i",
		"ï", "i").Replace(word))
	n := len(s)
	switch {
	case s.ends("o"), s.ends("a"), s.ends("e"):
		return string(s[:n-1])
	case s.ends("eses"):
		return string(s[:n-2])
	case s.ends("ces"):
		return string(s[:n-3]) + "z"
	case s.ends("os"), s.ends("as"), s.ends("es"):
		return string(s[:n-2])
	}
	return string(s)
}

// spanishPlural takes plurals to the singular and leaves the rest of a word.
func spanishPlural(word string) string {
	s := suffixes(strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ü", "u").Replace(word))
	n := len(s)
	switch {
	case n < 4, !s.ends("s"):
		return string(s)
	case invariable[string(s)]:
		return string(s)
	case s.ends("eses"):
		return string(s[:n-2])
	case s.ends("ces"):
		return string(s[:n-3]) + "z"
	case s.ends("es") && n > 4 && strings.ContainsRune("dlnrsyj", s[n-3]):
		return string(s[:n-2])
	case strings.ContainsRune("aeiou", s[n-2]):
		return string(s[:n-1])
	}
	return string(s)
}

// invariable words have the same form in singular and plural.
var invariable = map[string]bool{"lunes": true, "martes": true, "miercoles": true, "jueves": true, "viernes": true,
	"crisis": true, "tesis": true, "analisis": true, "dosis": true, "virus": true,
	"atlas": true, "paraguas": true, "caries": true, "oasis": true, "torax": true, "gratis": true, "menos": true,
	"antes": true, "despues": true, "entonces": true}
