package analysis

// The tokenizers of custom analyzers.

import (
	"unicode"

	"allium/bson"
	"allium/mongotest/internal/pcre"
)

// maxToken is how many characters a token has at most if nothing else is said, and the longest term
// that an index keeps.
const maxToken, maxTerm = 255, 32766

// tokenizers are the tokenizers by their types; graph tells that they make several tokens of a
// word.
var tokenizers = map[string]struct {
	make  func(spec bson.Raw) (tokenizer, error)
	graph bool
}{
	"standard": {make: func(spec bson.Raw) (tokenizer, error) {
		max, err := lengthOf(spec)
		return words(max), err
	}},
	"whitespace": {make: func(spec bson.Raw) (tokenizer, error) {
		max, err := lengthOf(spec)
		return runs(max, func(r rune) bool { return !unicode.IsSpace(r) }), err
	}},
	"uaxUrlEmail": {make: func(spec bson.Raw) (tokenizer, error) {
		max, err := lengthOf(spec)
		return addresses(max), err
	}},
	"keyword": {make: func(bson.Raw) (tokenizer, error) { return whole, nil }},
	"edgeGram": {graph: true, make: func(spec bson.Raw) (tokenizer, error) {
		min, max, err := grams(spec, "tokenizer")
		return func(c chars) (list []Token) {
			for n := min; n <= max && n <= len(c.runes); n++ {
				list = append(list, c.token(0, n, len(list)))
			}
			return list
		}, err
	}},
	"nGram": {graph: true, make: func(spec bson.Raw) (tokenizer, error) {
		min, max, err := grams(spec, "tokenizer")
		return func(c chars) (list []Token) {
			for i := range c.runes {
				for n := min; n <= max && i+n <= len(c.runes); n++ {
					list = append(list, c.token(i, i+n, len(list)))
				}
			}
			return list
		}, err
	}},
	"regexCaptureGroup": {make: func(spec bson.Raw) (tokenizer, error) {
		re, err := pattern(spec)
		if err != nil {
			return nil, err
		}
		group, ok := spec.Lookup("group").AsInt64()
		if !ok || group < 0 || int(group) > re.NumGroups() {
			return nil, invalid("\"analyzers.tokenizer.group\" must be a group of the pattern")
		}
		return func(c chars) (list []Token) {
			for m := range c.matches(re) {
				if i, j := m[2*group], m[2*group+1]; j > i {
					list = append(list, c.token(i, j, len(list)))
				}
			}
			return list
		}, nil
	}},
	"regexSplit": {make: func(spec bson.Raw) (tokenizer, error) {
		re, err := pattern(spec)
		if err != nil {
			return nil, err
		}
		return func(c chars) (list []Token) {
			from := 0
			for m := range c.matches(re) {
				if m[0] > from {
					list = append(list, c.token(from, m[0], len(list)))
				}
				from = m[1]
			}
			if from < len(c.runes) {
				list = append(list, c.token(from, len(c.runes), len(list)))
			}
			return list
		}, nil
	}},
}

// lengthOf returns the longest token of a tokenizer.
func lengthOf(spec bson.Raw) (int, error) {
	v := spec.Lookup("maxTokenLength")
	if v.Type == 0 {
		return maxToken, nil
	}
	n, ok := v.AsInt64()
	if !ok || n < 1 || n > 1<<20 {
		return 0, invalid("\"analyzers.tokenizer.maxTokenLength\" must be positive")
	}
	return int(n), nil
}

// grams returns the lengths of the parts that words are cut into.
func grams(spec bson.Raw, of string) (min, max int, err error) {
	lo, ok := spec.Lookup("minGram").AsInt64()
	hi, ok2 := spec.Lookup("maxGram").AsInt64()
	switch {
	case !ok || lo < 1:
		return 0, 0, invalid("\"analyzers.%s.minGram\" must be positive", of)
	case !ok2 || hi < lo || hi > 1<<16:
		return 0, 0, invalid("\"analyzers.%s.maxGram\" must be greater than or equal to \"minGram\"", of)
	}
	return int(lo), int(hi), nil
}

func pattern(spec bson.Raw) (*pcre.Regexp, error) {
	s, ok := spec.Lookup("pattern").StringValue()
	if !ok {
		return nil, invalid("\"pattern\" is required")
	}
	re, err := pcre.Compile(s, "")
	if err != nil {
		return nil, invalid("\"pattern\" is not a regular expression: %s", err)
	}
	return re, nil
}

// matches yields the matches of an expression: places of characters, -1 for groups that took no
// part.
func (c chars) matches(re *pcre.Regexp) func(yield func(m []int) bool) {
	return func(yield func(m []int) bool) {
		text, place := make([]byte, 0, len(c.runes)), []int{}
		for i, r := range c.runes {
			text = append(text, string(r)...)
			for len(place) < len(text) {
				place = append(place, i)
			}
		}
		place = append(place, len(c.runes))
		for from := 0; from <= len(text); {
			m := find(re, text, from)
			if m == nil {
				return
			}
			from = max(m[1], m[0]+1)
			for i, at := range m {
				if at >= 0 {
					m[i] = place[at]
				}
			}
			if !yield(m) {
				return
			}
		}
	}
}

// find is Find, without a match where a hostile pattern exceeds the limit on steps.
func find(re *pcre.Regexp, text []byte, from int) []int { return re.Find(text, from) }

// addresses keeps mail addresses and URLs whole.
func addresses(max int) tokenizer {
	return func(c chars) []Token {
		var list []Token
		for i := 0; i < len(c.runes); {
			if j := c.address(i); j > i {
				list = c.pieces(list, i, j, max)
				i = j
				continue
			}
			j, ok := c.word(i)
			if ok {
				list = c.pieces(list, i, j, max)
			}
			i = j
		}
		return list
	}
}

// address returns the end of the mail address or URL that begins at i, or i.
func (c chars) address(i int) int {
	if !classOf(c.runes[i]).inWord() {
		return i
	}
	for _, scheme := range []string{"https://", "http://", "ftp://", "file://", "mailto:"} {
		if n := len(scheme); i+n < len(c.runes) && equalFold(c.runes[i:i+n], scheme) && classOf(c.runes[i+n]).inWord() {
			return c.trimmed(i, c.span(i, "<>\"{}|\\^`"))
		}
	}
	at := i
	for at < len(c.runes) && (isASCIIWord(c.runes[at]) || indexRune(".!#$%&'*+-/=?^_`{|}~", c.runes[at])) {
		at++
	}
	host := at
	if at < len(c.runes) && c.runes[at] == '@' && at > i && c.runes[at-1] != '.' {
		host = at + 1
	} else if at < len(c.runes) && c.runes[at] == '@' {
		return i
	} else {
		host = i
	}
	end, dots := host, 0
	for end < len(c.runes) && (isASCIIWord(c.runes[end]) || c.runes[end] == '-' || c.runes[end] == '.') {
		if c.runes[end] == '.' {
			if end+1 == len(c.runes) || !isASCIIWord(c.runes[end+1]) {
				break
			}
			dots++
		}
		end++
	}
	switch {
	case host > i && dots > 0:
		return end
	case host == i && dots > 1 && i+4 < len(c.runes) && equalFold(c.runes[i:i+4], "www."):
		return c.trimmed(i, c.span(i, "<>\"{}|\\^`"))
	}
	return i
}

// span returns the end of what has no space and none of some characters.
func (c chars) span(i int, not string) int {
	for i < len(c.runes) && !unicode.IsSpace(c.runes[i]) && !indexRune(not, c.runes[i]) {
		i++
	}
	return i
}

// trimmed takes punctuation off the end.
func (c chars) trimmed(i, j int) int {
	for j > i && indexRune(".,;:!?'\")]", c.runes[j-1]) {
		j--
	}
	return j
}

func isASCIIWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

func indexRune(set string, r rune) bool {
	for _, x := range set {
		if x == r {
			return true
		}
	}
	return false
}

func equalFold(s []rune, ascii string) bool {
	for i, r := range s {
		if unicode.ToLower(r) != rune(ascii[i]) {
			return false
		}
	}
	return true
}
