package search

// The specification of $search and $searchMeta: an operator or a collector, with what is wanted of
// the result.

import (
	"cmp"
	"encoding/base64"
	"iter"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/search/internal/index"
	"allium/mongotest/search/internal/operator"
)

// textQuery is a query of an index.
type textQuery struct {
	env    *operator.Env
	q      operator.Query
	facets []facet

	counts    string // lowerBound or total
	threshold int64
	sort      []sortField
	details   bool
	stored    bool
	highlight *highlight
	token     bson.Raw // where to begin, nil: at the first
	backward  bool     // results come before the token, in reverse

	found []scored
}

// scored is a document that matches.
type scored struct {
	d     *index.Doc
	score float32
	key   []bson.RawValue // that it is sorted by
}

// sortField is a part of the sort option.
type sortField struct {
	path       string // empty: the score
	descending bool
	highest    bool // where there is no value
}

func parseQuery(spec bson.Raw, x *index.Index, read func(string) iter.Seq2[bson.Raw, error],
	step func(n int)) (*textQuery, error) {
	q := &textQuery{env: &operator.Env{Index: x, Read: read, Step: step}, counts: "lowerBound", threshold: 1000}
	name, v := "", bson.RawValue{}
	for key, item := range spec.All() {
		var err error
		switch {
		case args.IsNull(item): // as if it were not there
		case operator.Is(key) || key == "facet":
			if name != "" {
				return nil, invalid("only one operator or collector is allowed, found \"%s\" and \"%s\"", name, key)
			}
			name, v = key, item
		case key == "index", key == "concurrent", key == "tracking", key == "cursorOptions",
			key == "searchNodePreference":
		case key == "count":
			err = q.count(item)
		case key == "highlight":
			q.highlight, err = parseHighlight(item, q.env)
		case key == "sort":
			err = q.parseSort(item)
		case key == "scoreDetails":
			q.details, err = flag(key, item)
		case key == "returnStoredSource":
			q.stored, err = flag(key, item)
			if err == nil && q.stored && x.Def.Stored == nil {
				err = invalid("storedSource is not configured for this index")
			}
		case key == "searchAfter", key == "searchBefore":
			if q.token != nil {
				return nil, invalid("\"searchAfter\" and \"searchBefore\" cannot be used together")
			}
			q.backward = key == "searchBefore"
			err = q.position(key, item)
		case key == "returnScope":
			err = invalid("\"returnScope\" is not built into this deployment")
		default:
			err = invalid("unrecognized field \"%s\"", key)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	switch name {
	case "":
		return nil, invalid("one of the operators or collectors must be present")
	case "facet":
		err = q.collector(v)
	default:
		q.q, err = operator.Parse(name, v, q.env)
	}
	if err == nil && q.token != nil && q.token.Lookup("k").Type == 0 {
		err = invalid("invalid sequence token")
	}
	return q, err
}

// checkSearch checks the options of a search that do not depend on its index.
func checkSearch(stage string, spec bson.Raw) error {
	for _, name := range []string{"scoreDetails", "returnStoredSource"} { // which the server reads
		if v := spec.Lookup(name); stage == "$search" && v.Type != 0 && v.Type != bson.TypeBoolean {
			return srverr.New(13111, "Wrong type for field (%s) %s != bool", name, bsontext.TypeName(v.Type))
		}
	}
	if v := spec.Lookup("index"); v.Type != 0 && !args.IsNull(v) {
		if err := notEmpty("index", v); err != nil {
			return err
		}
	}
	if v := spec.Lookup("concurrent"); v.Type != 0 && !args.IsNull(v) {
		if _, err := flag("concurrent", v); err != nil {
			return err
		}
	}
	if v := spec.Lookup("searchNodePreference"); v.Type != 0 && !args.IsNull(v) {
		return checkNode(v)
	}
	return nil
}

func flag(name string, v bson.RawValue) (bool, error) {
	b, ok := v.Boolean()
	if !ok {
		return false, invalid("\"%s\" must be a boolean", name)
	}
	return b, nil
}

func (q *textQuery) count(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return invalid("\"count\" must be a document")
	}
	for key, v := range doc.All() {
		if args.IsNull(v) {
			continue
		}
		switch key {
		case "type":
			q.counts, _ = v.StringValue()
			if q.counts != "lowerBound" && q.counts != "total" {
				return invalid("\"count.type\" must be one of [lowerBound, total]")
			}
		case "threshold":
			n, err := wholeNumber("count.threshold", v)
			if err != nil {
				return err
			}
			if q.threshold = int64(n); n < 0 {
				return invalid("\"count.threshold\" cannot be negative")
			}
		default:
			return invalid("unrecognized field \"count.%s\"", key)
		}
	}
	return nil
}

func (q *textQuery) parseSort(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok || doc.IsEmpty() {
		return invalid("\"sort\" must be a document that is not empty")
	}
	for path, v := range doc.All() {
		f := sortField{path: path}
		order, how := v, bson.RawValue{}
		if spec, ok := v.Document(); ok {
			order, how = spec.Lookup("order"), spec.Lookup("noData")
			if meta := spec.Lookup("$meta"); meta.Type != 0 {
				if s, _ := meta.StringValue(); s != "searchScore" {
					return invalid("\"sort.%s.$meta\" must be \"searchScore\"", path)
				}
				f.path, f.descending = "", true
				if order.Type == 0 {
					q.sort = append(q.sort, f)
					continue
				}
			}
		}
		n, ok := order.AsInt64()
		if !ok || n != 1 && n != -1 {
			return invalid("\"sort.%s\" must be 1 or -1", path)
		}
		f.descending = n == -1
		if how.Type != 0 {
			s, _ := how.StringValue()
			if s != "lowest" && s != "highest" {
				return invalid("\"sort.%s.noData\" must be one of [lowest, highest]", path)
			}
			f.highest = s == "highest"
		}
		q.sort = append(q.sort, f)
	}
	return nil
}

// position reads a sequence token.
func (q *textQuery) position(name string, v bson.RawValue) error {
	s, ok := v.StringValue()
	if !ok {
		return invalid("\"%s\" must be a string", name)
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil || bson.Raw(data).Validate() != nil {
		return invalid("\"%s\" is not a valid sequence token", name)
	}
	q.token = data
	return nil
}

// run finds the documents and puts them in order.
func (q *textQuery) run() {
	for _, d := range q.env.Index.Docs {
		q.env.Step(1)
		if s, ok := q.q.Score(d); ok {
			q.found = append(q.found, scored{d: d, score: s})
		}
	}
	order := q.sort
	if len(order) == 0 {
		order = []sortField{{descending: true}}
	}
	for i := range q.found {
		for _, f := range order {
			q.found[i].key = append(q.found[i].key, f.of(&q.found[i]))
		}
	}
	q.sort = order
	slices.SortStableFunc(q.found, func(a, b scored) int {
		q.env.Step(1)
		return q.compare(a.key, b.key)
	})
}

func (q *textQuery) compare(a, b []bson.RawValue) int {
	for i, f := range q.sort {
		c := f.compare(a[i], b[i])
		if f.descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// compare compares values in ascending order.
func (f *sortField) compare(a, b bson.RawValue) int {
	if f.highest && (a.Type == bson.TypeNull) != (b.Type == bson.TypeNull) {
		if a.Type == bson.TypeNull {
			return 1
		}
		return -1
	}
	return bson.Compare(a, b)
}

// of returns what a document is sorted by: the least or the greatest of its values, null without
// any.
func (f *sortField) of(s *scored) bson.RawValue {
	if f.path == "" {
		return bsondoc.DoubleValue(float64(s.score))
	}
	best := bson.RawValue{Type: bson.TypeNull}
	for i, v := range s.d.Values[f.path] {
		if v.Kind == "geo" {
			continue
		}
		c := f.compare(v.V, best)
		if i == 0 || f.descending && c > 0 || !f.descending && c < 0 {
			best = v.V
		}
	}
	return best
}

// meta is what $$SEARCH_META has.
func (q *textQuery) meta() bson.Raw {
	n := int64(len(q.found))
	if q.counts == "lowerBound" && q.facets == nil && n > q.threshold {
		n = q.threshold + 1
	}
	meta := bsondoc.Of("count", bsondoc.Of(q.counts, n))
	if q.facets == nil {
		return meta
	}
	at, doc := bson.BeginDocument(nil)
	doc = append(doc, meta.Elements()...)
	all, doc := bson.BeginDocumentElement(doc, "facet")
	for i := range q.facets {
		doc = bson.AppendDocument(doc, q.facets[i].name, bsondoc.Of("buckets", q.facets[i].buckets(q.found)))
	}
	return bson.EndDocument(bson.EndDocument(doc, all), at)
}

// results returns the documents with their metadata.
func (q *textQuery) results() ([]hit, error) {
	list := q.found
	if q.token != nil {
		var err error
		if list, err = q.page(); err != nil {
			return nil, err
		}
	}
	hits := make([]hit, len(list))
	for i, s := range list {
		q.env.Step(4)
		hits[i] = hit{doc: s.d.Raw, meta: q.metaOf(s)}
		if q.stored {
			hits[i].doc = q.env.Index.Def.Stored.Apply(s.d.Raw)
		}
	}
	return hits, nil
}

// page returns the documents after the token, or those before it in reverse.
func (q *textQuery) page() ([]scored, error) {
	list, _ := q.token.Lookup("k").Array()
	key := slices.Collect(list.Values())
	if len(key) != len(q.sort) {
		return nil, invalid("the sequence token is of a query with another sort")
	}
	id := q.token.Lookup("id")
	at := slices.IndexFunc(q.found, func(s scored) bool {
		have := s.d.Raw.Lookup("_id")
		return have.Type == id.Type && bson.Compare(have, id) == 0
	})
	after := at + 1
	if at < 0 { // the document is gone: others come where it was
		at = slices.IndexFunc(q.found, func(s scored) bool { return q.compare(s.key, key) > 0 })
		if at < 0 {
			at = len(q.found)
		}
		after = at
	}
	if !q.backward {
		return q.found[after:], nil
	}
	before := slices.Clone(q.found[:at])
	slices.Reverse(before)
	return before, nil
}

// metaOf returns what $meta shows of a document.
func (q *textQuery) metaOf(s scored) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bsondoc.Append(doc, "searchScore", float64(s.score))
	key := bsondoc.Of("k", bsondoc.ArrayValue(s.key...), "id", s.d.Raw.Lookup("_id"))
	doc = bsondoc.Append(doc, "searchSequenceToken", base64.StdEncoding.EncodeToString(key))
	if q.highlight != nil {
		doc = bsondoc.Append(doc, "searchHighlights", q.highlight.of(s.d, q.q))
	}
	if q.details {
		doc = bsondoc.Append(doc, "searchScoreDetails", detailsOf(q.q.Explain(s.d)))
	}
	return bson.EndDocument(doc, at)
}

func detailsOf(d operator.Details) bson.Raw {
	parts := make([]bson.RawValue, len(d.Parts))
	for i, p := range d.Parts {
		parts[i] = bsondoc.DocumentValue(detailsOf(p))
	}
	return bsondoc.Of("value", d.Value, "description", d.Description, "details", bsondoc.ArrayValue(parts...))
}

// facet is a grouping of the documents that match.
type facet struct {
	name, kind, path string
	most             int             // of strings
	bounds           []bson.RawValue // of numbers and dates
	other            string          // the bucket for what is in no other; empty: none
}

// collector reads the facet collector.
func (q *textQuery) collector(v bson.RawValue) (err error) {
	doc, ok := v.Document()
	if !ok {
		return invalid("\"facet\" must be a document")
	}
	q.q = operator.Everything{}
	for key, v := range doc.All() {
		switch key {
		case "operator":
			spec, ok := v.Document()
			n := 0
			for name, v := range spec.All() {
				if n++; n > 1 {
					break
				}
				if q.q, err = operator.Parse(name, v, q.env); err != nil {
					return err
				}
			}
			if !ok || n != 1 {
				return invalid("\"facet.operator\" must have one operator")
			}
		case "facets":
			list, ok := v.Document()
			if !ok || list.IsEmpty() {
				return invalid("\"facet.facets\" must be a document that is not empty")
			}
			for name, v := range list.All() {
				f, err := q.facet(name, v)
				if err != nil {
					return err
				}
				q.facets = append(q.facets, f)
			}
		default:
			return invalid("unrecognized field \"facet.%s\"", key)
		}
	}
	if q.facets == nil {
		return invalid("\"facet.facets\" is required")
	}
	return nil
}

func (q *textQuery) facet(name string, v bson.RawValue) (f facet, err error) {
	where := "facet.facets." + name
	doc, ok := v.Document()
	if !ok {
		return f, invalid("\"%s\" must be a document", where)
	}
	f = facet{name: name, most: 10}
	for key := range doc.All() {
		kind, _ := doc.Lookup("type").StringValue()
		switch {
		case key == "type" || key == "path" || kind == "string" && key == "numBuckets":
		case kind != "string" && (key == "boundaries" || key == "default"):
		default:
			return f, invalid("unrecognized field \"%s.%s\"", where, key)
		}
	}
	f.kind, _ = doc.Lookup("type").StringValue()
	f.path, _ = doc.Lookup("path").StringValue()
	kind := map[string]string{"string": "token", "number": "number", "date": "date"}[f.kind]
	switch {
	case kind == "":
		return f, invalid("\"%s.type\" must be one of [string, number, date]", where)
	case f.path == "":
		return f, invalid("\"%s.path\" is required", where)
	case q.env.Index.Def.Context("").Field(f.path, kind) == nil:
		return f, invalid("Path '%s' needs to be indexed as %s", f.path, kind)
	}
	if f.kind == "string" {
		if v := doc.Lookup("numBuckets"); v.Type != 0 {
			n, ok := v.AsInt64()
			if !ok || n < 1 || n > 1000 {
				return f, invalid("\"%s.numBuckets\" must be within bounds [1, 1000]", where)
			}
			f.most = int(n)
		}
		return f, nil
	}
	list, ok := doc.Lookup("boundaries").Array()
	if ok {
		f.bounds = slices.Collect(list.Values())
	}
	if len(f.bounds) < 2 || len(f.bounds) > 1000 {
		return f, invalid("\"%s.boundaries\" must have 2 to 1000 values", where)
	}
	for i, b := range f.bounds {
		if f.kind == "number" && !b.IsNumber() || f.kind == "date" && b.Type != bson.TypeDateTime {
			return f, invalid("\"%s.boundaries\" must have values of type %s", where, f.kind)
		}
		if i > 0 && bson.Compare(f.bounds[i-1], b) >= 0 {
			return f, invalid("\"%s.boundaries\" must be in ascending order", where)
		}
	}
	if v := doc.Lookup("default"); v.Type != 0 {
		if f.other, ok = v.StringValue(); !ok || f.other == "" {
			return f, invalid("\"%s.default\" must be a string", where)
		}
	}
	return f, nil
}

// buckets counts the documents of each group.
func (f *facet) buckets(found []scored) bson.RawValue {
	bucket := func(id bson.RawValue, n int64) bson.RawValue {
		return bsondoc.DocumentValue(bsondoc.Of("_id", id, "count", n))
	}
	if f.kind == "string" {
		counts := map[string]int64{}
		for _, s := range found {
			seen := map[string]bool{}
			for _, v := range s.d.Values[f.path] {
				if text, ok := v.V.StringValue(); ok && v.Kind == "token" && !seen[text] {
					seen[text] = true
					counts[text]++
				}
			}
		}
		names := bsondoc.SortedKeys(counts)
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
		var list []bson.RawValue
		for _, name := range names[:min(len(names), f.most)] {
			list = append(list, bucket(bsondoc.StringValue(name), counts[name]))
		}
		return bsondoc.ArrayValue(list...)
	}
	counts := make([]int64, len(f.bounds)-1)
	other := int64(0)
	for _, s := range found {
		in := map[int]bool{}
		for _, v := range s.d.Values[f.path] {
			if v.Kind != f.kind {
				continue
			}
			for i := range counts {
				if bson.Compare(v.V, f.bounds[i]) >= 0 && bson.Compare(v.V, f.bounds[i+1]) < 0 {
					in[i] = true
				}
			}
		}
		for i := range in {
			counts[i]++
		}
		if len(in) == 0 {
			other++
		}
	}
	var list []bson.RawValue
	for i, n := range counts {
		list = append(list, bucket(f.bounds[i], n))
	}
	if f.other != "" {
		list = append(list, bucket(bsondoc.StringValue(f.other), other))
	}
	return bsondoc.ArrayValue(list...)
}
