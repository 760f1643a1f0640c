package search

// Highlights: the sentences in which a query's terms stand, scored as Lucene's unified highlighter
// does.

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/search/internal/index"
	"allium/mongotest/search/internal/operator"
)

// highlight is the highlight option.
type highlight struct {
	paths    []struct{ Path, Multi string }
	chars    int
	passages int
	context  index.Context
}

func parseHighlight(v bson.RawValue, env *operator.Env) (*highlight, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, invalid("\"highlight\" must be a document")
	}
	h := &highlight{chars: 500_000, passages: 5, context: env.Index.Def.Context("")}
	for key, v := range doc.All() {
		n, ok := v.AsInt64()
		var err error
		switch {
		case key == "path":
			h.paths, err = operator.Paths(v, "highlight.path", env)
		case key != "maxCharsToExamine" && key != "maxNumPassages":
			err = invalid("unrecognized field \"highlight.%s\"", key)
		case !ok || n < 1 || n > math.MaxInt32:
			err = invalid("\"highlight.%s\" must be positive", key)
		case key == "maxCharsToExamine":
			h.chars = int(n)
		default:
			h.passages = int(n)
		}
		if err != nil {
			return nil, err
		}
	}
	if doc.Lookup("path").Type == 0 {
		return nil, invalid("\"highlight.path\" is required")
	}
	for _, p := range h.paths {
		if f := h.context.Field(p.Path, "string"); f != nil && f.Options != "offsets" {
			return nil, invalid("\"highlight.path\": path '%s' needs indexOptions \"offsets\"", p.Path)
		}
	}
	return h, nil
}

// of returns the highlights of a document.
func (h *highlight) of(d *index.Doc, q operator.Query) bson.RawValue {
	var terms []operator.Term
	q.Terms(func(t operator.Term) { terms = append(terms, t) })
	var list []bson.RawValue
	for _, p := range h.paths {
		key := h.context.StringKey(p.Path, p.Multi)
		wanted := slices.DeleteFunc(slices.Clone(terms), func(t operator.Term) bool {
			return strings.Contains(t.Key, "$type:autocomplete/")
		})
		if auto := h.context.AutocompleteKey(p.Path); p.Multi == "" && d.Texts[auto] != nil &&
			!slices.ContainsFunc(terms, func(t operator.Term) bool { return t.Key == key }) {
			if own := slices.DeleteFunc(slices.Clone(terms), func(t operator.Term) bool {
				return t.Key != auto
			}); len(own) > 0 {
				key, wanted = auto, own
			}
		}
		t := d.Texts[key]
		if t == nil {
			continue
		}
		for _, passage := range h.best(t, wanted) {
			list = append(list, passage.document(p.Path))
		}
	}
	return bsondoc.ArrayValue(list...)
}

// passage is a sentence with terms that are looked for.
type passage struct {
	text       string // of the source
	start, end int    // in bytes
	from       int    // where it begins in all that was examined, in UTF-16
	marks      []index.Mark
	score      float32
}

// best returns the passages of a text with the highest scores, in the order of the text.
func (h *highlight) best(t *index.Text, terms []operator.Term) []*passage {
	var places []map[int]bool
	for _, term := range terms {
		if term.Places == nil {
			places = append(places, nil)
			continue
		}
		places = append(places, term.Places(t))
	}
	freq := map[string]int{}
	var marks []index.Mark
	for _, m := range t.Marks {
		for i, term := range terms {
			if term.Match(m.Term) && (term.Places == nil || places[i][m.Place]) {
				marks = append(marks, m)
				freq[m.Term]++
				break
			}
		}
	}
	var all []*passage
	length, left := 0, h.chars
	for n, source := range t.Sources {
		if left <= 0 {
			break
		}
		text := firstChars(source, left)
		size := units(text)
		breaks := sentences(text)
		var last *passage
		for _, m := range marks {
			if m.Source != n || m.End > len(text) {
				continue
			}
			if last == nil || m.Start >= last.end {
				i, _ := slices.BinarySearch(breaks, m.Start+1)
				last = &passage{text: text, start: breaks[i-1], end: breaks[i]}
				last.from = length + units(text[:last.start])
				all = append(all, last)
			}
			last.marks = append(last.marks, m)
		}
		length, left = length+size, left-size
	}
	for _, p := range all {
		p.rate(length, freq)
	}
	slices.SortStableFunc(all, func(a, b *passage) int { return cmp.Compare(b.score, a.score) })
	all = all[:min(len(all), h.passages)]
	slices.SortStableFunc(all, func(a, b *passage) int { return cmp.Compare(a.from, b.from) })
	return all
}

// rate computes the score: BM25 with passages as documents, and more for those near the beginning.
func (p *passage) rate(length int, freq map[string]int) {
	const k1, b, pivot = 1.2, 0.75, 87.0
	in := map[string]int{}
	var order []string
	for _, m := range p.marks {
		if in[m.Term]++; in[m.Term] == 1 {
			order = append(order, m.Term)
		}
	}
	size := float64(units(p.text[p.start:p.end]))
	score := 0.0
	for _, term := range order {
		docs := 1 + float64(length)/pivot
		weight := (k1 + 1) * math.Log(1+(docs+0.5)/(float64(freq[term])+0.5))
		norm := k1 * ((1 - b) + b*(size/pivot))
		score += weight * float64(in[term]) / (float64(in[term]) + norm)
	}
	p.score = float32(score * (1 + 1/math.Log(pivot+float64(p.from))))
}

// document shows a passage.
func (p *passage) document(path string) bson.RawValue {
	var texts []bson.RawValue
	add := func(from, to int, kind string) {
		if to > from {
			texts = append(texts, bsondoc.DocumentValue(bsondoc.Of("value", p.text[from:to], "type", kind)))
		}
	}
	at := p.start
	for i := 0; i < len(p.marks); i++ {
		from, to := p.marks[i].Start, p.marks[i].End
		for i+1 < len(p.marks) && p.marks[i+1].Start < to {
			i++
			to = max(to, p.marks[i].End)
		}
		from, to = max(from, at), min(to, p.end)
		add(at, from, "text")
		add(from, to, "hit")
		at = max(at, to)
	}
	add(at, p.end, "text")
	return bsondoc.DocumentValue(bsondoc.Of("score", float64(p.score), "path", path, "texts",
		bsondoc.ArrayValue(texts...)))
}

// units is the length of a text in UTF-16.
func units(s string) (n int) {
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// firstChars returns so many units of UTF-16 of a text.
func firstChars(s string, n int) string {
	for i, r := range s {
		if n -= max(1, utf16.RuneLen(r)); n < 0 {
			return s[:i]
		}
	}
	return s
}

// sentences returns where the sentences of a text begin, and its end.
func sentences(s string) []int {
	breaks := []int{0}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\n' || r == '\u2029' || r == '\u0085':
			breaks = append(breaks, i)
		case strings.ContainsRune(".?!…。！？", r):
			j := i
			skip := func(is func(rune) bool) (moved bool) {
				for j < len(s) {
					c, n := utf8.DecodeRuneInString(s[j:])
					if !is(c) {
						break
					}
					j += n
					moved = true
				}
				return moved
			}
			skip(func(c rune) bool { return strings.ContainsRune(".?!…。！？", c) })
			skip(func(c rune) bool { return strings.ContainsRune("\"')]}’”»", c) })
			spaced := skip(func(c rune) bool { return unicode.IsSpace(c) && c != '\n' })
			next, _ := utf8.DecodeRuneInString(s[j:])
			if j < len(s) && (spaced && !(unicode.IsLower(next) && r == '.') || r > 0x3000 && !spaced) {
				breaks = append(breaks, j)
			}
			i = j
		}
	}
	if last := breaks[len(breaks)-1]; last < len(s) || len(s) == 0 {
		breaks = append(breaks, len(s))
	}
	return slices.Compact(breaks)
}
