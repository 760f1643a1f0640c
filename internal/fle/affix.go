package fle

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"unicode/utf8"

	"allium/bson"
)

const maxText = 16 << 20

// affixes are the texts of one kind that a value is found by. The last of them is padding: a text
// that no query has, so that the number of tokens tells no more about the value than the length of
// its ciphertext does.
type affixes struct {
	real    []string
	padding int // how many times padText follows
}

func (a affixes) size() int { return len(a.real) + a.padding }

// checkText refuses what cannot be folded.
func checkText(what, s string) error {
	switch {
	case !utf8.ValidString(s):
		return fmt.Errorf("%s: String passed in was not valid UTF-8", what)
	case len(s) > maxText:
		return fmt.Errorf("%s: String passed in was longer than 16 MiB: %d bytes", what, len(s))
	}
	return nil
}

// padText is the text that padding has tokens for.
func padText(folded string) string { return folded + "\xff" }

// paddedLength returns the length that a text of n bytes seems to have from outside: that of its
// ciphertext, but for the five bytes around the text of a BSON string.
func paddedLength(n int) int {
	const around, block = 5, 16
	return block*((n+around+block)/block) - around
}

// cuts is a text with the places at which it can be cut: the starts of its code points, and its
// end. Pieces of it share its bytes.
type cuts struct {
	text string
	at   []int
}

func cutsOf(text string) cuts {
	c := cuts{text, make([]int, 0, len(text)+1)}
	for i := range text {
		c.at = append(c.at, i)
	}
	c.at = append(c.at, len(text))
	return c
}

// length returns how many code points the text has, and piece those from one to before another.
func (c *cuts) length() int { return len(c.at) - 1 }

// piece is described with length.
func (c *cuts) piece(from, to int) string { return c.text[c.at[from]:c.at[to]] }

// prefixes and suffixes return the affixes of a folded text whose unfolded form has n bytes.
func (a *Affix) prefixes(folded *cuts, n int) affixes {
	return a.each(folded.length(), n, func(length int) string { return folded.piece(0, length) })
}

// suffixes is described with prefixes.
func (a *Affix) suffixes(folded *cuts, n int) affixes {
	return a.each(folded.length(), n, func(length int) string {
		return folded.piece(folded.length()-length, folded.length())
	})
}

func (a *Affix) each(length, n int, cut func(int) string) affixes {
	var out affixes
	if a == nil {
		return out
	}
	padded := paddedLength(n)
	if padded < int(a.Lower) {
		return out
	}
	size := min(padded, int(a.Upper)) - int(a.Lower) + 1
	out.real = make([]string, 0, min(size, max(length-int(a.Lower)+1, 0)))
	for i := int(a.Lower); i <= min(length, int(a.Upper)); i++ {
		out.real = append(out.real, cut(i))
	}
	out.padding = max(size-len(out.real), 0)
	return out
}

// substrings returns the distinct substrings of a folded text, and padding for as many as a text of
// that length can have. A server keeps their tags in this order.
func (s *Substring) substrings(folded *cuts, n, unfolded int) (affixes, error) {
	var out affixes
	if s == nil {
		return out, nil
	}
	if unfolded > int(s.MaxLength) {
		return out, fmt.Errorf(
			"StrEncode: String passed in was longer than the maximum length for substring indexing -- max len: %d",
			s.MaxLength)
	}
	padded := min(int(s.MaxLength), paddedLength(n))
	if padded < int(s.Lower) {
		return out, nil
	}
	size := 0
	for j := int(s.Lower); j <= min(int(s.Upper), padded); j++ {
		size += padded - j + 1
	}
	seen := make(map[string]bool)
	for start := range folded.length() {
		for length := int(s.Lower); length <= min(int(s.Upper), folded.length()-start); length++ {
			if text := folded.piece(start, start+length); !seen[text] {
				seen[text] = true
				out.real = append(out.real, text)
			}
		}
	}
	slices.SortStableFunc(out.real, func(a, b string) int { return cmp.Compare(bucket(a), bucket(b)) })
	out.padding = max(size-len(out.real), 0)
	return out, nil
}

func bucket(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32() % 4096
}

// query returns the folded text of a query, and the kind of its tokens.
func (t *Text) query() (string, TextKind, error) {
	if err := checkText("StrQuery", t.Value); err != nil {
		return "", 0, err
	}
	var kind TextKind
	var low, high int32
	n := 0
	if s := t.Substring; s != nil {
		kind, low, high, n = TextSubstring, s.Lower, s.Upper, n+1
	}
	if a := t.Suffix; a != nil {
		kind, low, high, n = TextSuffix, a.Lower, a.Upper, n+1
	}
	if a := t.Prefix; a != nil {
		kind, low, high, n = TextPrefix, a.Lower, a.Upper, n+1
	}
	switch n {
	case 0: // for the whole text
		return Fold(t.Value, t.FoldCase, t.FoldDiacritics), TextExact, nil
	case 1:
	default:
		return "", 0, fmt.Errorf(
			"StrQuery: a query cannot have more than one of prefix, suffix and substring, but has %d", n)
	}
	if t.Value == "" {
		return "", 0, errors.New("StrQuery: string value cannot be empty for substring, suffix, or prefix queries")
	}
	folded := Fold(t.Value, t.FoldCase, t.FoldDiacritics)
	switch length := utf8.RuneCountInString(folded); {
	case length < int(low):
		return "", 0, fmt.Errorf(
			"StrQuery: string value was shorter than the minimum query length for this field after folding -- folded codepoint len: %d, min query len: %d", length, low)
	case length > int(high):
		return "", 0, fmt.Errorf(
			"StrQuery: string value was longer than the maximum query length for this field after folding -- folded codepoint len: %d, max query len: %d", length, high)
	}
	return folded, kind, nil
}

// stringBytes returns the bytes of a BSON string. Padding is no valid UTF-8, so bson cannot.
func stringBytes(s string) []byte { return appendString(make([]byte, 0, len(s)+5), s) }

func appendString(dst []byte, s string) []byte {
	return append(append(bson.AppendInt32Value(dst, int32(len(s)+1)), s...), 0)
}
