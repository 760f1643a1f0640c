package search

// The specification of $vectorSearch: what is wrong with it by itself, which is said even where
// there is no index, and what the index has to say of it.

import (
	"math"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/search/internal/index"
)

// vectorQuery is the specification of $vectorSearch.
type vectorQuery struct {
	path       string
	field      vectorField
	vector     vector
	limit      int
	candidates int // 0: an exact search
	filter     *query.Filter
	parent     *query.Filter // parentFilter
	filterDoc  bson.Raw
	parentDoc  bson.Raw
	stored     bool
	nested     bool // nestedOptions is given
	average    bool // scoreMode is avg
	explains   bool // explainOptions is given
}

const (
	maxCandidates = 10000
	maxExact      = math.MaxInt32 - 16 // as many documents as one list has room for
)

// vectorFields are the options of $vectorSearch; others are ignored. A null is as if it were not
// given.
var vectorFields = map[string]func(q *vectorQuery, v bson.RawValue) error{
	"index": func(_ *vectorQuery, v bson.RawValue) error {
		return notEmpty("index", v)
	},
	"path": func(q *vectorQuery, v bson.RawValue) error {
		q.path, _ = v.StringValue()
		return notEmpty("path", v)
	},
	"queryVector": func(q *vectorQuery, v bson.RawValue) error {
		var ok bool
		if q.vector, ok = vectorOf(v); !ok {
			return invalid("\"queryVector\" must be an array of numbers or a BSON vector")
		}
		if b, ok := v.Binary(); ok {
			if w, err := b.Vector(); err == nil && w.Padding() != 0 {
				return invalid("\"queryVector\" cannot have a padding")
			}
		}
		for _, f := range q.vector.data {
			if f := float64(f); math.IsNaN(f) || math.IsInf(f, 0) {
				return invalid("\"queryVector\" must have finite elements")
			}
		}
		return nil
	},
	"limit": func(q *vectorQuery, v bson.RawValue) error {
		n, err := wholeNumber("limit", v)
		q.limit = n
		return err
	},
	"numCandidates": func(q *vectorQuery, v bson.RawValue) error {
		n, err := wholeNumber("numCandidates", v)
		if err == nil && (n < 1 || n > maxCandidates) {
			err = invalid("\"numCandidates\" must be within bounds [1, %d]", maxCandidates)
		}
		q.candidates = n
		return err
	},
	"exact": func(_ *vectorQuery, v bson.RawValue) error {
		_, err := flag("exact", v)
		return err
	},
	"filter": func(q *vectorQuery, v bson.RawValue) (err error) {
		q.filterDoc, q.filter, err = parseVectorFilter("filter", v)
		return err
	},
	"parentFilter": func(q *vectorQuery, v bson.RawValue) (err error) {
		if q.parentDoc, q.parent, err = parseVectorFilter("parentFilter", v); err != nil {
			err = invalid("\"parentFilter\" is not valid: %s", err)
		}
		return err
	},
	"returnStoredSource": func(q *vectorQuery, v bson.RawValue) (err error) {
		q.stored, err = flag("returnStoredSource", v)
		return err
	},
	"searchNodePreference": func(_ *vectorQuery, v bson.RawValue) error { return checkNode(v) },
	"nestedOptions": func(q *vectorQuery, v bson.RawValue) error {
		doc, ok := v.Document()
		if !ok {
			return invalid("\"nestedOptions\" must be a document")
		}
		q.nested = true
		for key, item := range doc.All() {
			if key != "scoreMode" {
				return invalid("unrecognized field \"nestedOptions.%s\"", key)
			}
			mode, _ := item.StringValue()
			if !args.IsNull(item) && mode != "avg" && mode != "max" {
				return invalid("\"nestedOptions.scoreMode\" must be one of [avg, max]")
			}
			q.average = mode == "avg"
		}
		return nil
	},
	"explainOptions": func(q *vectorQuery, v bson.RawValue) error {
		q.explains = true
		return checkExplained(v)
	},
	"model": func(*vectorQuery, bson.RawValue) error {
		return invalid("\"model\" is for queries of text alone")
	},
	"query": func(*vectorQuery, bson.RawValue) error {
		return invalid("only one of \"query\" and \"queryVector\" may be present")
	},
}

func notEmpty(name string, v bson.RawValue) error {
	s, ok := v.StringValue()
	switch {
	case !ok:
		return invalid("\"%s\" must be a string", name)
	case s == "":
		return invalid("\"%s\" cannot be empty", name)
	}
	return nil
}

// wholeNumber reads an int32, which doubles and longs may be.
func wholeNumber(name string, v bson.RawValue) (int, error) {
	f := index.Float(v)
	switch {
	case !v.IsNumber() || v.Type == bson.TypeDecimal128 || f != math.Trunc(f) && !math.IsInf(f, 0):
		return 0, invalid("\"%s\" must be an integer", name)
	case f < math.MinInt32 || f > math.MaxInt32:
		return 0, invalid("\"%s\" must be within the bounds of an int32", name)
	}
	return int(f), nil
}

// checkNode checks searchNodePreference, which chooses where a search is done.
func checkNode(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return invalid("\"searchNodePreference\" must be a document")
	}
	key := doc.Lookup("key")
	if key.Type == 0 || args.IsNull(key) {
		return invalid("\"searchNodePreference.key\" is required")
	}
	if _, ok := key.StringValue(); !ok {
		return invalid("\"searchNodePreference.key\" must be a string")
	}
	return nil
}

// checkExplained checks explainOptions.
func checkExplained(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return invalid("\"explainOptions\" must be a document")
	}
	for key := range doc.All() {
		if key != "traceDocumentIds" {
			return invalid("unrecognized field \"explainOptions.%s\"", key)
		}
	}
	list, ok := doc.Lookup("traceDocumentIds").Array()
	n := 0
	for item := range list.Values() {
		if args.IsNull(item) {
			return invalid("\"explainOptions.traceDocumentIds\" cannot have null")
		}
		n++
	}
	if !ok || n == 0 {
		return invalid("\"explainOptions.traceDocumentIds\" must be an array that is not empty")
	}
	return nil
}

// parseVectorFilter reads a filter, which a server parses before the engine sees it.
func parseVectorFilter(name string, v bson.RawValue) (bson.Raw, *query.Filter, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, nil, invalid("\"%s\" must be a document", name)
	}
	f, err := query.ParseFilter(doc, &query.Options{Version: release.DefaultVersion, NoText: true,
		Expr: query.ExprParserFunc(func(bson.RawValue) (query.Expr, error) { return nil, nil })})
	return doc, f, err
}

// checkByServer finds what a server refuses of $vectorSearch before it asks the engine.
func checkByServer(spec bson.Raw) error {
	if limit := spec.Lookup("limit"); limit.Type != 0 {
		switch f := index.Float(limit); {
		case !limit.IsNumber():
			return srverr.New(8575100, "Expected limit to be a number, but found type %s", bsontext.TypeName(limit.Type))
		case !(f >= 1):
			return srverr.New(7912700, "Expected limit to be positive")
		}
	}
	switch v := spec.Lookup("filter"); v.Type {
	case 0, bson.TypeArray:
		return nil
	case bson.TypeEmbeddedDocument:
		_, _, err := parseVectorFilter("filter", v)
		return err
	}
	return srverr.New(10065, "invalid parameter: expected an object (filter)")
}

// parseVectorQuery reads a specification as far as that goes without an index.
func parseVectorQuery(spec bson.Raw) (*vectorQuery, error) {
	if err := checkByServer(spec); err != nil {
		return nil, err
	}
	q := &vectorQuery{}
	given := map[string]bool{}
	for key, v := range spec.All() {
		read := vectorFields[key]
		if read == nil || args.IsNull(v) {
			continue
		}
		given[key] = true
		if err := read(q, v); err != nil {
			return nil, err
		}
	}
	exact := spec.Lookup("exact").AsBool()
	for _, name := range []string{"index", "path", "queryVector", "limit"} {
		if !given[name] {
			return nil, invalid("\"%s\" is required", name)
		}
	}
	switch {
	case exact && given["numCandidates"]:
		return nil, invalid("\"numCandidates\" must be omitted for exact search")
	case exact && q.limit >= maxExact:
		return nil, invalid("\"limit\" is too large for exact search")
	case !exact && !given["numCandidates"]:
		return nil, invalid("\"numCandidates\" is required for approximate search")
	case !exact && q.candidates < q.limit:
		return nil, invalid("\"numCandidates\" must be greater than or equal to \"limit\"")
	}
	return q, nil
}

// bind checks a query against the index that it is for.
func (d *vectorDefinition) bind(q *vectorQuery) error {
	if q.field = d.vectors[q.path]; q.field.dimensions == 0 {
		return invalid("%s is not indexed as vector", q.path)
	}
	for _, doc := range []bson.Raw{q.filterDoc, q.parentDoc} {
		if err := d.checkFilter(doc); err != nil {
			return err
		}
	}
	switch {
	case q.stored && d.stored == nil:
		return invalid("storedSource is not configured for this index")
	case q.nested && d.root == "":
		return invalid("\"nestedOptions\" needs an index with a nestedRoot")
	case q.explains:
		return invalid("\"explainOptions\" is for explain alone")
	case len(q.vector.data) != q.field.dimensions:
		return invalid("vector field is indexed with %d dimensions but queried with %d", q.field.dimensions,
			len(q.vector.data))
	case q.vector.kind == bson.VectorPackedBit && q.field.similarity != "euclidean":
		return invalid("vectors of bits need euclidean similarity")
	case q.field.similarity == "cosine" && norm(q.vector.data) == 0:
		return invalid("Cosine similarity cannot be calculated against a zero vector.")
	}
	return nil
}

// checkFilter refuses fields that are not indexed for filters, and operators and values that are
// not for them.
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

// checkConditions checks what a field is compared with: a value, or operators.
func checkConditions(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return checkOperand(v)
	}
	for op, arg := range doc.All() {
		var err error
		switch op {
		case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte":
			err = checkOperand(arg)
		case "$in", "$nin":
			err = checkList(op, arg)
		case "$exists":
			if arg.Type != bson.TypeBoolean {
				err = invalid("\"$exists\" must be a boolean")
			}
		case "$not":
			err = checkConditions(arg)
		default:
			if !strings.HasPrefix(op, "$") {
				return checkOperand(v)
			}
			err = invalid("\"filter\" cannot have the operator \"%s\"", op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOperand checks the type of a value that a field is compared with.
func checkOperand(v bson.RawValue) error {
	switch v.Type {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeString, bson.TypeBoolean, bson.TypeDateTime,
		bson.TypeObjectID, bson.TypeNull:
		return nil
	case bson.TypeBinary:
		if b, _ := v.Binary(); b.Subtype == bson.BinaryUUID {
			return nil
		}
	}
	return invalid("\"filter\" cannot compare with values of type %s", bsontext.TypeName(v.Type))
}

// checkList checks the values of $in, which are of one type.
func checkList(op string, v bson.RawValue) error {
	list, _ := v.Array()
	var first bson.RawValue
	for item := range list.Values() {
		if err := checkOperand(item); err != nil {
			return err
		}
		switch {
		case item.Type == bson.TypeNull:
			return invalid("\"%s\" cannot have null", op)
		case first.Type == 0:
			first = item
		case item.Type != first.Type && !(item.IsNumber() && first.IsNumber()):
			return invalid("the values of \"%s\" must be of one type", op)
		}
	}
	if first.Type == 0 {
		return invalid("\"%s\" cannot be empty", op)
	}
	return nil
}

// presentNulls returns a filter in which null stands for values that are null alone, and not for
// fields that there are not.
func presentNulls(doc bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for key, v := range doc.All() {
			sub, isDoc := v.Document()
			list, isList := v.Array()
			switch {
			case isList && strings.HasPrefix(key, "$"):
				var items []bson.RawValue
				for item := range list.Values() {
					inner, _ := item.Document()
					items = append(items, bsondoc.DocumentValue(presentNulls(inner)))
				}
				d.Value(key, bson.TypeArray, bsondoc.ArrayValue(items...).Value)
				continue
			case v.Type == bson.TypeNull:
				sub = bsondoc.Of("$type", "null")
			case isDoc && sub.Lookup("$eq").Type == bson.TypeNull:
				sub = bsondoc.Of("$type", "null")
			case !isDoc:
				d.Value(key, v.Type, v.Value)
				continue
			}
			d.Doc(key, sub)
		}
	})
}
