package search

// $vectorSearch: the documents whose vectors are nearest to one, each compared with it.

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/search/internal/index"
)

// vectorDefinition is what an index of type "vectorSearch" consists of.
type vectorDefinition struct {
	vectors map[string]vectorField
	filters map[string]bool
	stored  *index.Stored
	root    string // nestedRoot: the array in which the vectors are
}

type vectorField struct {
	dimensions int
	similarity string
}

func parseVectors(doc bson.Raw) (*vectorDefinition, error) {
	d := &vectorDefinition{vectors: map[string]vectorField{}, filters: map[string]bool{}}
	list, ok := doc.Lookup("fields").Array()
	if !ok {
		return nil, invalid("Attribute fields missing.")
	}
	for item := range list.Values() {
		f, ok := item.Document()
		path, _ := f.Lookup("path").StringValue()
		kind, _ := f.Lookup("type").StringValue()
		switch {
		case !ok || path == "":
			return nil, invalid("\"fields.path\" is required")
		case d.filters[path] || d.vectors[path].dimensions > 0:
			return nil, invalid("\"fields\": path '%s' is there twice", path)
		case kind == "filter":
			d.filters[path] = true
			continue
		case kind != "vector":
			return nil, invalid("\"fields.type\" must be one of [vector, filter]")
		}
		n, ok := f.Lookup("numDimensions").AsInt64()
		if !ok || n < 1 || n > 8192 {
			return nil, invalid("\"fields.numDimensions\" must be within bounds [1, 8192]")
		}
		v := vectorField{dimensions: int(n)}
		if v.similarity, _ = f.Lookup("similarity").StringValue(); v.similarity != "cosine" &&
			v.similarity != "dotProduct" && v.similarity != "euclidean" {
			return nil, invalid("\"fields.similarity\" must be one of [cosine, dotProduct, euclidean]")
		}
		if q := f.Lookup("quantization"); q.Type != 0 {
			if s, _ := q.StringValue(); s != "none" && s != "scalar" && s != "binary" {
				return nil, invalid("\"fields.quantization\" must be one of [none, scalar, binary]")
			}
		}
		d.vectors[path] = v
	}
	if len(d.vectors) == 0 {
		return nil, invalid("\"fields\" must have a field of type vector")
	}
	if v := doc.Lookup("nestedRoot"); v.Type != 0 {
		d.root, _ = v.StringValue()
		if !slices.ContainsFunc(slices.Collect(maps.Keys(d.vectors)), d.isNested) {
			return nil, srverr.New(srverr.CommandFailed, "\"nestedRoot\" must be above a field of type vector")
		}
	}
	stored := doc.Lookup("storedSource")
	if all, ok := stored.Boolean(); ok && all {
		return nil, invalid("\"storedSource\" must be a document or false")
	}
	var err error
	d.stored, err = index.ParseStored(stored)
	return d, err
}

// isNested reports whether a path leads into the array that has the vectors.
func (d *vectorDefinition) isNested(path string) bool {
	return d.root != "" && strings.HasPrefix(path, d.root+".")
}

// vectorIndex keeps the vectors that documents have at its paths.
type vectorIndex struct {
	def *vectorDefinition
	mu  sync.Mutex
	// known are the vectors by the data of the documents, which do not change, and the path.
	known map[*byte]map[string]vector
}

// vector is a list of numbers; kind tells that of its elements, which vectors have in common that
// can be compared.
type vector struct {
	kind bson.VectorType
	data []float32
}

// vectorOf returns the vector that a value is.
func vectorOf(v bson.RawValue) (vector, bool) {
	if b, ok := v.Binary(); ok {
		w, err := b.Vector()
		if err != nil {
			return vector{}, false
		}
		x := vector{kind: w.Type()}
		if f, ok := w.Float32(); ok {
			x.data = f
		} else if list, ok := w.Int8(); ok {
			for _, n := range list {
				x.data = append(x.data, float32(n))
			}
		} else if bits, ok := w.Bits(); ok {
			for _, b := range bits {
				x.data = append(x.data, map[bool]float32{true: 1}[b])
			}
		}
		return x, true
	}
	list, ok := v.Array()
	if !ok {
		return vector{}, false
	}
	x := vector{kind: bson.VectorFloat32}
	for item := range list.Values() {
		if !item.IsNumber() || item.Type == bson.TypeDecimal128 {
			return vector{}, false
		}
		x.data = append(x.data, float32(index.Float(item)))
	}
	return x, true
}

func (x *vectorIndex) answer(stage string, spec bson.Raw, read func(string) iter.Seq2[bson.Raw, error],
	step func(n int)) (iter.Seq2[bson.Raw, bson.Raw], bson.Raw, error) {
	if stage != "$vectorSearch" {
		return nil, nil, invalid("%s needs an index of type search", stage)
	}
	q, err := parseVectorQuery(spec)
	if err == nil {
		err = x.def.bind(q)
	}
	if err != nil {
		return nil, nil, err
	}
	if q.filter, err = filterOf(q.filterDoc); err == nil {
		q.parent, err = filterOf(q.parentDoc)
	}
	if err != nil {
		return nil, nil, err
	}
	type near struct {
		doc   bson.Raw
		score float32
	}
	var list []near
	x.mu.Lock()
	defer x.mu.Unlock()
	fresh := map[*byte]map[string]vector{}
	for doc, err := range read("") {
		if err != nil {
			return nil, nil, err
		}
		step(1 + q.field.dimensions/64)
		if x.def.isNested(q.path) {
			s, ok, err := x.def.nestedScore(q, doc, step)
			if err != nil {
				return nil, nil, err
			}
			if ok {
				list = append(list, near{doc, s})
			}
			continue
		}
		vectors := x.known[&doc[0]]
		if vectors == nil {
			vectors = x.def.vectorsOf(doc)
		}
		fresh[&doc[0]] = vectors
		v := vectors[q.path]
		if v.data == nil || v.kind != q.vector.kind {
			continue
		}
		ok, err := matches(q.filter, doc)
		if err == nil && ok {
			ok, err = matches(q.parent, doc)
		}
		if err != nil {
			return nil, nil, err
		}
		if s, has := similarity(q.field.similarity, q.vector, v); ok && has {
			list = append(list, near{doc, s})
		}
	}
	x.known = fresh
	slices.SortStableFunc(list, func(a, b near) int { return cmp.Compare(b.score, a.score) })
	hits := make([]hit, min(len(list), q.limit))
	for i := range hits {
		hits[i] = hit{list[i].doc, bsondoc.Of("vectorSearchScore", float64(list[i].score))}
		if q.stored {
			hits[i].doc = x.def.stored.Apply(list[i].doc)
		}
	}
	return each(hits), nil, nil
}

// filterOf parses a filter as the engine understands it.
func filterOf(doc bson.Raw) (*query.Filter, error) {
	if doc == nil {
		return nil, nil
	}
	return query.ParseFilter(presentNulls(doc), &query.Options{Version: release.DefaultVersion})
}

func matches(f *query.Filter, doc bson.Raw) (bool, error) {
	if f == nil {
		return true, nil
	}
	return f.Match(doc)
}

// nestedScore returns the score of a document by those of the elements of its array that pass the
// filter: the greatest, or the average. The filter sees an element, parentFilter what is around the
// array.
func (d *vectorDefinition) nestedScore(q *vectorQuery, doc bson.Raw, step func(n int)) (float32, bool, error) {
	root := strings.Split(d.root, ".")
	if ok, err := matches(q.parent, without(doc, root)); err != nil || !ok {
		return 0, false, err
	}
	at := doc.Lookup(root...)
	elements := []bson.RawValue{at}
	if list, ok := at.Array(); ok {
		elements = slices.Collect(list.Values())
	}
	path := strings.Split(strings.TrimPrefix(q.path, d.root+"."), ".")
	var sum, most float64
	n := 0
	for _, e := range elements {
		step(1 + q.field.dimensions/64)
		element, ok := e.Document()
		if !ok {
			continue
		}
		v, ok := vectorOf(element.Lookup(path...))
		if !ok || v.kind != q.vector.kind || len(v.data) != q.field.dimensions {
			continue
		}
		if ok, err := matches(q.filter, around(root, element)); err != nil {
			return 0, false, err
		} else if !ok {
			continue
		}
		if s, ok := similarity(q.field.similarity, q.vector, v); ok {
			sum, most, n = sum+float64(s), max(most, float64(s)), n+1
		}
	}
	switch {
	case n == 0:
		return 0, false, nil
	case q.average:
		return float32(sum / float64(n)), true, nil
	}
	return float32(most), true, nil
}

// around returns a document that has another one at a path.
func around(path []string, doc bson.Raw) bson.Raw {
	for _, name := range slices.Backward(path) {
		doc = bsondoc.Of(name, doc)
	}
	return doc
}

// without returns a document without what is at a path.
func without(doc bson.Raw, path []string) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for key, v := range doc.All() {
			sub, isDoc := v.Document()
			switch {
			case key != path[0]:
				d.Value(key, v.Type, v.Value)
			case len(path) > 1 && isDoc:
				d.Doc(key, without(sub, path[1:]))
			}
		}
	})
}

// vectorsOf returns the vectors of a document that have as many dimensions as they should.
func (d *vectorDefinition) vectorsOf(doc bson.Raw) map[string]vector {
	all := map[string]vector{}
	for path, f := range d.vectors {
		if v, ok := vectorOf(doc.Lookup(strings.Split(path, ".")...)); ok && len(v.data) == f.dimensions {
			all[path] = v
		}
	}
	return all
}

func norm(v []float32) float64 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return math.Sqrt(sum)
}

// similarity returns the score of two vectors, from 0 to 1: the formulas are the manual's, but that
// of a distance, which is Lucene's. Vectors without a direction have no cosine.
func similarity(kind string, a, b vector) (float32, bool) {
	var dot, square float64
	for i := range a.data {
		x, y := float64(a.data[i]), float64(b.data[i])
		dot += x * y
		square += (x - y) * (x - y)
	}
	switch {
	case kind == "euclidean":
		return float32(1 / (1 + square)), true
	case kind == "cosine":
		n := norm(a.data) * norm(b.data)
		return float32(max(0, (1+dot/n)/2)), n > 0
	case a.kind == bson.VectorInt8:
		return float32(0.5 + dot/(float64(len(a.data))*(1<<15))), true
	}
	return float32(max(0, (1+dot)/2)), true
}
