package fts

import (
	"strings"
	"unicode"
)

// Query is what $text searches for.
type Query struct {
	// Search is the text, Language its language; empty: that of the index.
	Search, Language string
	// CaseSensitive and DiacriticSensitive compare letters as they are.
	CaseSensitive, DiacriticSensitive bool
}

// parsed is a query in a language.
type parsed struct {
	language              string
	fold                  fold
	wanted, refused       map[string]bool // terms
	exact                 map[string]bool // wanted, by the query's own fold
	phrases, noPhrases    []string        // folded
	caseOrMarksSensitive  bool
	wantedText, otherText strings.Builder
}

// parse takes a search apart: words, -words, "phrases" and -"phrases". The words of a phrase are
// searched for as well.
func (q *Query) parse(language string) *parsed {
	p := &parsed{language: language, fold: fold{q.CaseSensitive, q.DiacriticSensitive},
		caseOrMarksSensitive: q.CaseSensitive || q.DiacriticSensitive}
	var word strings.Builder
	negated, inPhrase, space := false, false, true
	start := 0
	flush := func() {
		switch {
		case word.Len() == 0:
			return
		case negated && !inPhrase:
			p.otherText.WriteString(word.String() + " ")
		case !negated:
			p.wantedText.WriteString(word.String() + " ")
		}
		word.Reset()
	}
	for i, r := range q.Search {
		switch {
		case r == '"':
			flush()
			if inPhrase {
				phrase := p.fold.apply(q.Search[start:i])
				if negated {
					p.noPhrases = append(p.noPhrases, phrase)
				} else {
					p.phrases = append(p.phrases, phrase)
				}
				negated = false
			}
			inPhrase, start = !inPhrase, i+1
		case r == '-' && space && !inPhrase:
			flush()
			negated = true
		case delimiter(r, language):
			flush()
			if unicode.IsSpace(r) && !inPhrase {
				negated = false
			}
		default:
			word.WriteRune(r)
		}
		space = unicode.IsSpace(r)
	}
	flush()
	set := func(text string, f fold) map[string]bool {
		out := map[string]bool{}
		for _, t := range terms(text, language, f) {
			out[t] = true
		}
		return out
	}
	p.wanted = set(p.wantedText.String(), fold{})
	p.exact = set(p.wantedText.String(), p.fold)
	p.refused = set(p.otherText.String(), p.fold)
	return p
}
