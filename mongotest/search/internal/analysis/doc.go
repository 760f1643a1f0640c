// Package analysis makes the terms of texts that search indexes keep and queries ask for: character
// filters, a tokenizer and token filters, alone or as one of the analyzers that have a name.
//
//	a, err := analysis.Named("lucene.english")
//	for _, t := range a.Tokens("The causes of accidents") { ... } // caus, accid
//
// What an analyzer does is what Lucene's of the same name does, as its documentation says; where it
// differs the name is refused, or docs/search.md tells. An Analyzer is safe for concurrent use.
package analysis

import "allium/mongotest/internal/srverr"

// Token is a term of a text.
type Token struct {
	Text string
	// Position counts words. Tokens that stand for the same word have the same one.
	Position int
	// Start and End are where the token stands in the text, in bytes.
	Start, End int
}

// Analyzer makes tokens of a text.
type Analyzer struct {
	Name       string
	charFilter []charFilter
	tokenize   tokenizer
	filters    []tokenFilter
	// Keyword tells that a text is one token, as it is.
	Keyword bool
	// Graph tells that a word may become several tokens, which some uses do not go with.
	Graph bool
}

type (
	charFilter  func(c chars) chars
	tokenizer   func(c chars) []Token
	tokenFilter func(list []Token) []Token
)

// Tokens returns the tokens of a text.
func (a *Analyzer) Tokens(text string) []Token {
	c := newChars(text)
	for _, f := range a.charFilter {
		c = f(c)
	}
	list := a.tokenize(c)
	for _, f := range a.filters {
		list = f(list)
	}
	return list
}

// Normalize returns a text as the filters leave it that is not cut into words, as operators on
// whole terms ask for it.
func (a *Analyzer) Normalize(text string) string {
	c := newChars(text)
	for _, f := range a.charFilter {
		c = f(c)
	}
	list := []Token{c.token(0, len(c.runes), 0)}
	for _, f := range a.filters {
		list = f(list)
	}
	if len(list) == 0 {
		return string(c.runes)
	}
	return list[0].Text
}

// chars is a text on its way through character filters: its characters, and where in the original
// text each of them begins; the last place is the end.
type chars struct {
	runes []rune
	at    []int
}

func newChars(text string) chars {
	c := chars{make([]rune, 0, len(text)), make([]int, 0, len(text)+1)}
	for i, r := range text {
		c.runes, c.at = append(c.runes, r), append(c.at, i)
	}
	c.at = append(c.at, len(text))
	return c
}

// token returns the token of the characters from i to j.
func (c chars) token(i, j, position int) Token {
	return Token{string(c.runes[i:j]), position, c.at[i], c.at[j]}
}

// builder puts a text together again.
type builder struct{ chars }

// add appends a character that stands for those of the original from a place on.
func (b *builder) add(r rune, at int) { b.runes, b.at = append(b.runes, r), append(b.at, at) }

func (b *builder) end(at int) chars {
	b.at = append(b.at, at)
	return b.chars
}

func invalid(format string, args ...any) error {
	return srverr.New(srverr.UnknownError, format, args...)
}
