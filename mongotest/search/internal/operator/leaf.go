package operator

import (
	"fmt"
	"slices"
	"strings"

	"allium/mongotest/search/internal/index"
)

// nothing matches no document.
type nothing struct{}

func (nothing) Score(*index.Doc) (float32, bool) { return 0, false }
func (nothing) Explain(*index.Doc) Details       { return Details{} }
func (nothing) Terms(func(Term))                 {}

// Everything matches all documents with the score 1.
type Everything struct{}

func (Everything) Score(*index.Doc) (float32, bool) { return 1, true }
func (Everything) Explain(*index.Doc) Details       { return Details{Value: 1, Description: "*:*"} }
func (Everything) Terms(func(Term))                 {}

// test matches documents by something else than their texts, with a constant score.
type test struct {
	boost float32
	text  string
	is    func(d *index.Doc) bool
}

func (t *test) Score(d *index.Doc) (float32, bool) { return t.boost, t.is(d) }
func (t *test) Explain(*index.Doc) Details {
	return Details{Value: float64(t.boost), Description: t.text}
}
func (t *test) Terms(func(Term)) {}

// termQuery looks for terms that count as one in a field's text.
type termQuery struct {
	key     string
	terms   []string
	boost   float32
	n, docs int // documents with a term, and with the field
	average float32
	idf     float32
	field   *index.Field
}

// term makes a query for terms that count as one; df, if not 0, is how many documents are taken to
// have them.
func (c *compiler) term(key string, f *index.Field, terms []string, boost float32, df int) Query {
	s := c.Index.Fields[key]
	if s == nil || s.Docs == 0 {
		return nothing{}
	}
	q := &termQuery{key: key, terms: terms, boost: boost, n: df, docs: s.Docs, average: s.Average(), field: f}
	for _, t := range terms {
		q.n = max(q.n, s.DF[t])
	}
	if q.n == 0 {
		return &missing{key, terms}
	}
	q.idf = index.IDF(q.n, q.docs)
	return q
}

// missing looks for terms that no document has in the field; other fields may, for highlights.
type missing struct {
	key   string
	terms []string
}

func (*missing) Score(*index.Doc) (float32, bool) { return 0, false }
func (*missing) Explain(*index.Doc) Details       { return Details{} }
func (m *missing) Terms(visit func(Term)) {
	visit(Term{Key: m.key, Match: func(t string) bool { return slices.Contains(m.terms, t) }})
}

func (q *termQuery) freq(t *index.Text) (n int) {
	for _, term := range q.terms {
		n += len(t.Terms[term])
	}
	if n > 0 && q.field.Options == "docs" {
		return 1
	}
	return n
}

func (q *termQuery) length(t *index.Text) int {
	if q.field.NoNorms {
		return 1
	}
	return index.Length(t.Length)
}

func (q *termQuery) Score(d *index.Doc) (float32, bool) {
	t := d.Texts[q.key]
	if t == nil {
		return 0, false
	}
	freq := q.freq(t)
	if freq == 0 {
		return 0, false
	}
	if q.field.Similarity == "boolean" {
		return q.boost, true
	}
	return index.BM25(q.boost*q.idf, float32(freq), q.length(t), q.average), true
}

func (q *termQuery) Explain(d *index.Doc) Details {
	score, _ := q.Score(d)
	name := q.key + ":" + strings.Join(q.terms, " ")
	if len(q.terms) > 1 {
		name = "Synonym(" + q.key + ":" + strings.Join(q.terms, " "+q.key+":") + ")"
	}
	t := d.Texts[q.key]
	if q.field.Similarity == "boolean" {
		return Details{float64(score), name + " [BooleanSimilarity], result of:", nil}
	}
	return Details{float64(score), name + " [BM25Similarity], result of:",
		[]Details{explainBM25(score, q.boost, float32(q.freq(t)), q.idf, q.n, q.docs, q.length(t), q.average)}}
}

// explainBM25 is how Lucene tells of a score, as the manual prints it.
func explainBM25(score, boost, freq, idf float32, n, docs, length int, average float32) Details {
	of := func(v float32, text string, parts ...Details) Details { return Details{float64(v), text, parts} }
	tf := 1 - 1/(1+freq/(index.K1*((1-index.B)+index.B*float32(length)/average)))
	dl := "dl, length of field"
	if length > 39 {
		dl += " (approximate)"
	}
	d := of(score, fmt.Sprintf("score(freq=%s), computed as boost * idf * tf from:", number(freq)))
	if boost != 1 {
		d.Parts = append(d.Parts, of(boost, "boost"))
	}
	if n > 0 {
		d.Parts = append(d.Parts, of(idf, "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
			Details{float64(n), "n, number of documents containing term", nil},
			Details{float64(docs), "N, total number of documents with field", nil}))
	} else {
		d.Parts = append(d.Parts, of(idf, "idf, sum of:"))
	}
	d.Parts = append(d.Parts, of(tf, "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
		of(freq, "freq, occurrences of term within document"), of(index.K1, "k1, term saturation parameter"),
		of(index.B, "b, length normalization parameter"),
		Details{float64(length), dl, nil}, of(average, "avgdl, average length of field")))
	return d
}

// number prints a number with a digit behind the point.
func number(f float32) string {
	s := fmt.Sprint(f)
	if !strings.ContainsAny(s, ".eI") {
		s += ".0"
	}
	return s
}

func (q *termQuery) Terms(visit func(Term)) {
	visit(Term{Key: q.key, Match: func(t string) bool { return slices.Contains(q.terms, t) }})
}

// anyTerm matches texts with a term of a kind, with a constant score.
type anyTerm struct {
	key   string
	text  string
	boost float32
	match func(term string) bool
	terms map[string]bool // of the field, that match
}

// someTerm makes an anyTerm of the terms that a field has.
func (c *compiler) someTerm(key, text string, match func(term string) bool) Query {
	s := c.Index.Fields[key]
	if s == nil {
		return nothing{}
	}
	q := &anyTerm{key, key + ":" + text, c.boost, match, map[string]bool{}}
	for term := range s.DF {
		c.Step(1)
		if match(term) {
			q.terms[term] = true
		}
	}
	return q
}

func (q *anyTerm) Score(d *index.Doc) (float32, bool) {
	t := d.Texts[q.key]
	if t == nil {
		return 0, false
	}
	if len(q.terms) < len(t.Terms) {
		for term := range q.terms {
			if len(t.Terms[term]) > 0 {
				return q.boost, true
			}
		}
		return 0, false
	}
	for term := range t.Terms {
		if q.terms[term] {
			return q.boost, true
		}
	}
	return 0, false
}

func (q *anyTerm) Explain(*index.Doc) Details {
	return Details{Value: float64(q.boost), Description: q.text}
}

func (q *anyTerm) Terms(visit func(Term)) { visit(Term{Key: q.key, Match: q.match}) }

// phraseQuery looks for terms one after the other.
type phraseQuery struct {
	key     string
	places  []phraseTerm
	slop    int
	boost   float32
	docs    int
	average float32
	idf     float32
	field   *index.Field
}

// phraseTerm is one place of a phrase: any of some terms, so many words after the first.
type phraseTerm struct {
	terms []string
	at    int
}

// sequence makes a phraseQuery; a phrase of one place is a term.
func (c *compiler) sequence(key string, f *index.Field, places []phraseTerm, slop int) Query {
	s := c.Index.Fields[key]
	switch {
	case s == nil || s.Docs == 0 || len(places) == 0:
		return nothing{}
	case len(places) == 1:
		return c.term(key, f, places[0].terms, c.boost, 0)
	}
	q := &phraseQuery{key: key, places: places, slop: slop, boost: c.boost, docs: s.Docs, average: s.Average(),
		field: f}
	var idf float64
	for _, p := range places {
		for _, term := range p.terms {
			if n := s.DF[term]; n > 0 {
				idf += float64(index.IDF(n, s.Docs))
			}
		}
	}
	q.idf = float32(idf)
	return q
}

// find returns how often the phrase is in a text, weighted by how far apart its words are, and
// where its words are.
func (q *phraseQuery) find(t *index.Text) (freq float32, at map[int]bool) {
	lists := make([][]int, len(q.places))
	for i, p := range q.places {
		for _, term := range p.terms {
			lists[i] = append(lists[i], t.Terms[term]...)
		}
		if len(lists[i]) == 0 {
			return 0, nil
		}
		slices.Sort(lists[i])
		lists[i] = slices.Compact(lists[i])
	}
	at = map[int]bool{}
	if q.slop == 0 {
		for _, first := range lists[0] {
			ok := true
			for i := 1; i < len(lists) && ok; i++ {
				_, ok = slices.BinarySearch(lists[i], first+q.places[i].at-q.places[0].at)
			}
			if ok {
				freq++
				for i := range lists {
					at[first+q.places[i].at-q.places[0].at] = true
				}
			}
		}
		return freq, at
	}
	return q.sloppy(lists, at)
}

// sloppy finds matches whose words are moved by no more than the slop: each of the shortest
// stretches that has all words counts 1/(1+length).
func (q *phraseQuery) sloppy(lists [][]int, at map[int]bool) (freq float32, _ map[int]bool) {
	next := make([]int, len(lists)) // of each list, by place less where it stands in the phrase
	place := func(i int) int { return lists[i][next[i]] - q.places[i].at }
	distinct := func() bool {
		for i := range lists {
			for j := range i {
				if lists[i][next[i]] == lists[j][next[j]] {
					return false
				}
			}
		}
		return true
	}
	end := place(0)
	for i := range lists {
		end = max(end, place(i))
	}
	first := func(but int) int {
		least := -1
		for i := range lists {
			if i != but && (least < 0 || place(i) < place(least)) {
				least = i
			}
		}
		return least
	}
	count := func(length int, used []int) {
		if length <= q.slop {
			freq += 1 / (1 + float32(length))
			for i, n := range used {
				at[lists[i][n]] = true
			}
		}
	}
	const none = 1 << 30
	for {
		low := first(-1)
		length, used := none, []int(nil)
		look := func() {
			if l := end - place(low); l < length && distinct() {
				length, used = l, slices.Clone(next)
			}
		}
		look()
		border := place(first(low))
		for {
			if next[low]++; next[low] == len(lists[low]) {
				count(length, used)
				return freq, at
			}
			end = max(end, place(low))
			if place(low) > border {
				break
			}
			look()
		}
		count(length, used)
	}
}

func (q *phraseQuery) Score(d *index.Doc) (float32, bool) {
	t := d.Texts[q.key]
	if t == nil {
		return 0, false
	}
	freq, _ := q.find(t)
	if freq == 0 {
		return 0, false
	}
	if q.field.Similarity == "boolean" {
		return q.boost, true
	}
	return index.BM25(q.boost*q.idf, freq, q.length(t), q.average), true
}

func (q *phraseQuery) length(t *index.Text) int {
	if q.field.NoNorms {
		return 1
	}
	return index.Length(t.Length)
}

func (q *phraseQuery) Explain(d *index.Doc) Details {
	score, _ := q.Score(d)
	t := d.Texts[q.key]
	freq, _ := q.find(t)
	var words []string
	for _, p := range q.places {
		words = append(words, strings.Join(p.terms, "|"))
	}
	name := q.key + ":\"" + strings.Join(words, " ") + "\""
	if q.slop > 0 {
		name += fmt.Sprintf("~%d", q.slop)
	}
	inner := explainBM25(score, q.boost, freq, q.idf, 0, q.docs, q.length(t), q.average)
	inner.Description = strings.Replace(inner.Description, "score(freq", "score(phraseFreq", 1)
	return Details{float64(score), name + " [BM25Similarity], result of:", []Details{inner}}
}

func (q *phraseQuery) Terms(visit func(Term)) {
	visit(Term{Key: q.key,
		Match: func(term string) bool {
			return slices.ContainsFunc(q.places, func(p phraseTerm) bool { return slices.Contains(p.terms, term) })
		},
		Places: func(t *index.Text) map[int]bool {
			_, at := q.find(t)
			return at
		}})
}
