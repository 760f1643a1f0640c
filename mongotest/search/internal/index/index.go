package index

import (
	"iter"
	"math"
	"slices"

	"allium/bson"
)

// Index has the documents of a collection, and what scores need of all of them. Not safe for
// concurrent use.
type Index struct {
	Def *Definition
	// Docs are in the order of the collection.
	Docs []*Doc
	// Fields are the statistics of texts by their names.
	Fields map[string]*Stats

	byData map[*byte]*Doc
}

// Stats is what is known of a field's texts in all documents.
type Stats struct {
	Docs   int            // that have it
	Tokens int            // in all of them
	DF     map[string]int // documents with a term
	TTF    map[string]int // how often it is in all of them
	terms  []string       // in order; nil: not made
}

// New returns an index without documents.
func New(def *Definition) *Index {
	return &Index{Def: def, Fields: map[string]*Stats{}, byData: map[*byte]*Doc{}}
}

// Sync makes the index that of some documents, which do not change: those that it has already are
// known by where their bytes are. step is called with what that takes.
func (x *Index) Sync(docs iter.Seq2[bson.Raw, error], step func(n int)) error {
	next := make([]*Doc, 0, len(x.Docs))
	fresh := map[*byte]*Doc{}
	in := &indexer{x.Def, step}
	for raw, err := range docs {
		if err != nil {
			return err
		}
		step(1)
		at := &raw[0]
		d := x.byData[at]
		if d == nil || len(d.Raw) != len(raw) {
			d = in.document(raw)
		}
		fresh[at] = d
		next = append(next, d)
	}
	for at, d := range x.byData {
		if fresh[at] != d {
			x.count(d, -1)
		}
	}
	for at, d := range fresh {
		if x.byData[at] != d {
			x.count(d, 1)
		}
	}
	for i, d := range next {
		d.Seq = i
	}
	x.Docs, x.byData = next, fresh
	return nil
}

// count adds a document to the statistics, or takes it out.
func (x *Index) count(d *Doc, sign int) {
	for key, t := range d.Texts {
		s := x.Fields[key]
		if s == nil {
			s = &Stats{DF: map[string]int{}, TTF: map[string]int{}}
			x.Fields[key] = s
		}
		s.terms = nil
		if t.Tokens > 0 {
			s.Docs += sign
		}
		s.Tokens += sign * t.Tokens
		for term, places := range t.Terms {
			if s.DF[term] += sign; s.DF[term] == 0 {
				delete(s.DF, term)
				delete(s.TTF, term)
				continue
			}
			s.TTF[term] += sign * len(places)
		}
		if s.Docs == 0 && len(s.DF) == 0 {
			delete(x.Fields, key)
		}
	}
	for _, list := range d.Children {
		for _, child := range list {
			x.count(child, sign)
		}
	}
}

// Terms returns the terms of a field in order.
func (s *Stats) Terms() []string {
	if s.terms == nil {
		s.terms = make([]string, 0, len(s.DF))
		for term := range s.DF {
			s.terms = append(s.terms, term)
		}
		slices.Sort(s.terms)
	}
	return s.terms
}

// The parameters of BM25.
const (
	K1 float32 = 1.2
	B  float32 = 0.75
)

// IDF is the inverse document frequency of a term that n of N documents have.
func IDF(n, N int) float32 {
	return float32(math.Log(1 + (float64(N)-float64(n)+0.5)/(float64(n)+0.5)))
}

// Average is the average length of the field's texts.
func (s *Stats) Average() float32 { return float32(float64(s.Tokens) / float64(s.Docs)) }

// Length returns the length of a text as scores see it: lengths above 40 are kept in one byte, and
// several share one.
func Length(n int) int {
	const free = 255 - 231 // values that stand for themselves
	if n < free {
		return n
	}
	n -= free
	bits := 0
	for x := n; x > 0; x >>= 1 {
		bits++
	}
	if bits < 4 {
		return free + n
	}
	shift := bits - 4
	return free + n>>shift<<shift
}

// BM25 is the score of a term that is freq times in a text of a length.
func BM25(weight, freq float32, length int, average float32) float32 {
	inverse := 1 / (K1 * ((1 - B) + B*float32(length)/average))
	return weight - weight/(1+freq*inverse)
}
