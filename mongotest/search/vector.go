package search

// $vectorSearch: the documents whose vectors are nearest to one, each compared with it.

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/search/internal/index"
)

// vectorDefinition is what an index of type "vectorSearch" consists of.
type vectorDefinition struct {
	vectors map[string]vectorField
	filters map[string]bool
	stored  *index.Stored
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
	var err error
	d.stored, err = index.ParseStored(doc.Lookup("storedSource"))
	return d, err
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

// vectorQuery is the specification of $vectorSearch.
type vectorQuery struct {
	path   string
	field  vectorField
	vector vector
	limit  int
	filter *query.Filter
	stored bool
}

func (d *vectorDefinition) parse(spec bson.Raw) (*vectorQuery, error) {
	q := &vectorQuery{}
	exact := false
	candidates := bson.RawValue{}
	for key, v := range spec.All() {
		var ok bool
		switch key {
		case "index", "explainOptions":
		case "path":
			if q.path, ok = v.StringValue(); !ok || q.path == "" {
				return nil, invalid("\"path\" must be a string")
			}
		case "queryVector":
			if q.vector, ok = vectorOf(v); !ok {
				return nil, invalid("\"queryVector\" must be an array of numbers or a BSON vector")
			}
		case "limit":
			n, ok := v.AsInt64()
			if !ok || n < 1 || n > math.MaxInt32 {
				return nil, invalid("\"limit\" must be positive")
			}
			q.limit = int(n)
		case "numCandidates":
			candidates = v
		case "exact":
			if exact, ok = v.Boolean(); !ok {
				return nil, invalid("\"exact\" must be a boolean")
			}
		case "filter":
			doc, ok := v.Document()
			if !ok {
				return nil, invalid("\"filter\" must be a document")
			}
			if err := d.checkFilter(doc); err != nil {
				return nil, err
			}
			f, err := query.ParseFilter(doc, &query.Options{Version: release.DefaultVersion})
			if err != nil {
				return nil, invalid("\"filter\" is not valid: %s", err)
			}
			q.filter = f
		case "returnStoredSource":
			if q.stored, ok = v.Boolean(); !ok {
				return nil, invalid("\"returnStoredSource\" must be a boolean")
			}
			if q.stored && d.stored == nil {
				return nil, invalid("storedSource is not configured for this index")
			}
		default:
			return nil, invalid("unrecognized field \"%s\"", key)
		}
	}
	n, isNumber := candidates.AsInt64()
	switch {
	case q.path == "":
		return nil, invalid("\"path\" is required")
	case spec.Lookup("queryVector").Type == 0:
		return nil, invalid("\"queryVector\" is required")
	case q.limit == 0:
		return nil, invalid("\"limit\" is required")
	case exact && candidates.Type != 0:
		return nil, invalid("\"numCandidates\" must be omitted for exact search")
	case !exact && candidates.Type == 0:
		return nil, invalid("\"numCandidates\" is required for approximate search")
	case !exact && (!isNumber || n < 1 || n > 10000):
		return nil, invalid("\"numCandidates\" must be within bounds [1, 10000]")
	case !exact && n < int64(q.limit):
		return nil, invalid("\"numCandidates\" must be greater than or equal to \"limit\"")
	}
	if q.field = d.vectors[q.path]; q.field.dimensions == 0 {
		return nil, invalid("%s is not indexed as vector", q.path)
	}
	switch {
	case len(q.vector.data) != q.field.dimensions:
		return nil, invalid("vector field is indexed with %d dimensions but queried with %d", q.field.dimensions,
			len(q.vector.data))
	case q.field.similarity == "cosine" && norm(q.vector.data) == 0:
		return nil, invalid("Cosine similarity cannot be calculated against a zero vector.")
	}
	return q, nil
}

// checkFilter refuses fields that are not indexed for filters, and operators that are not for them.
func (d *vectorDefinition) checkFilter(doc bson.Raw) error {
	for key, v := range doc.All() {
		switch {
		case key == "$and" || key == "$or" || key == "$nor":
			list, _ := v.Array()
			for item := range list.Values() {
				sub, _ := item.Document()
				if err := d.checkFilter(sub); err != nil {
					return err
				}
			}
		case strings.HasPrefix(key, "$"):
			return invalid("\"filter\" cannot have the operator \"%s\"", key)
		case !d.filters[key]:
			return invalid("Path '%s' needs to be indexed as filter", key)
		default:
			if err := checkConditions(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkConditions(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return nil
	}
	for op, arg := range doc.All() {
		switch op {
		case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists":
		case "$not":
			if err := checkConditions(arg); err != nil {
				return err
			}
		default:
			return invalid("\"filter\" cannot have the operator \"%s\"", op)
		}
	}
	return nil
}

func (x *vectorIndex) answer(stage string, spec bson.Raw, read func(string) iter.Seq2[bson.Raw, error],
	step func(n int)) (iter.Seq2[bson.Raw, bson.Raw], bson.Raw, error) {
	if stage != "$vectorSearch" {
		return nil, nil, invalid("%s needs an index of type search", stage)
	}
	q, err := x.def.parse(spec)
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
		vectors := x.known[&doc[0]]
		if vectors == nil {
			vectors = x.def.vectorsOf(doc)
		}
		fresh[&doc[0]] = vectors
		v := vectors[q.path]
		if v.data == nil || v.kind != q.vector.kind {
			continue
		}
		if q.filter != nil {
			if ok, err := q.filter.Match(doc); err != nil || !ok {
				continue
			}
		}
		if s, ok := similarity(q.field.similarity, q.vector, v); ok {
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

// similarity returns the score of two vectors, from 0 to 1: the formulas are the manual's. Vectors
// without a direction have no cosine.
func similarity(kind string, a, b vector) (float32, bool) {
	var dot, square float64
	for i := range a.data {
		x, y := float64(a.data[i]), float64(b.data[i])
		dot += x * y
		square += (x - y) * (x - y)
	}
	switch {
	case kind == "euclidean":
		return float32(1 / (1 + math.Sqrt(square))), true
	case kind == "cosine":
		n := norm(a.data) * norm(b.data)
		return float32(max(0, (1+dot/n)/2)), n > 0
	case a.kind == bson.VectorInt8:
		return float32(0.5 + dot/(float64(len(a.data))*(1<<15))), true
	}
	return float32(max(0, (1+dot)/2)), true
}
