// Package fts is text search: it splits text into terms, scores a document's fields by them, and
// matches documents against what $text searches for, as version 3 of the server's text indexes
// does.
//
// Words are stemmed in the language of their index or document. English stop words are left out;
// those of the other languages are words like any other here.
package fts

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// languages are the names of languages, each with the name by which the code here knows it.
var languages = map[string]string{
	"none": "none", "english": "english", "en": "english",
	"danish": "danish", "da": "danish", "dutch": "dutch", "nl": "dutch", "finnish": "finnish", "fi": "finnish",
	"french": "french", "fr": "french", "german": "german", "de": "german", "hungarian": "hungarian", "hu": "hungarian",
	"italian": "italian", "it": "italian", "norwegian": "norwegian", "nb": "norwegian", "portuguese": "portuguese",
	"pt":       "portuguese",
	"romanian": "romanian", "ro": "romanian", "russian": "russian", "ru": "russian", "spanish": "spanish",
	"es":      "spanish",
	"swedish": "swedish", "sv": "swedish", "turkish": "turkish", "tr": "turkish",
}

// Language returns the full name of a language, and whether there is one by this name or code.
func Language(name string) (string, bool) {
	full, ok := languages[strings.ToLower(name)]
	return full, ok
}

// fold is how text is compared.
type fold struct{ keepCase, keepMarks bool }

func (f fold) apply(s string) string { return f.marks(f.letters(s)) }

// letters folds the case.
func (f fold) letters(s string) string {
	if f.keepCase {
		return s
	}
	return strings.ToLower(s)
}

// marks removes the diacritics.
func (f fold) marks(s string) string {
	if f.keepMarks {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(s))
}

// delimiter reports whether a rune stands between words. In English an apostrophe is part of a
// word.
func delimiter(r rune, language string) bool {
	switch r {
	case '\'':
		return language != "english"
	case 0:
		return true
	}
	return unicode.In(r, unicode.White_Space, unicode.Dash, unicode.Hyphen, unicode.Quotation_Mark,
		unicode.Terminal_Punctuation, unicode.Pattern_Syntax)
}

// terms splits text into its terms. Diacritics tell the endings of words, and go after stemming.
func terms(text, language string, f fold) []string {
	var out []string
	for _, token := range strings.FieldsFunc(text, func(r rune) bool { return delimiter(r, language) }) {
		if stopWords[language][strings.ToLower(token)] {
			continue
		}
		out = append(out, f.marks(stem(f.letters(token), language)))
	}
	return out
}
