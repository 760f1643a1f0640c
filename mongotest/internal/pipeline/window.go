package pipeline

// $setWindowFields (server 5.0): fields computed over the neighbours of a document in its
// partition.

import (
	"math/bits"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$setWindowFields", parse: one(parseWindowFields), names: "sortBy",
		keyed: "output"})
}

type windowStage struct {
	rt        *runtime
	partition expr.Expr
	sort      *query.Sort // nil: by nothing
	sorted    bool        // sortBy was given, and may have been empty
	output    []*windowField
}

// windowField is one field of the output.
type windowField struct {
	path []string
	fn   windowFunction
}

// windowFunction computes a field for each document of a sorted partition.
type windowFunction interface {
	compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error)
	optimize(env *expr.Env) error
}

func parseWindowFields(p *parser, name string, v bson.RawValue) (*windowStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(srverr.FailedToParse, "the %s stage specification must be an object, found %s", name,
			typeName(v))
	}
	w := &windowStage{rt: p.rt}
	var output bson.RawValue
	for key, item := range doc.All() {
		var err error
		if args.IsNull(item) && (key == "sortBy" || key == "output") { // as if it were not given
			continue
		}
		switch key {
		case "partitionBy":
			w.partition, err = expr.Parse(item, p.scope)
		case "sortBy":
			spec, ok := item.Document()
			if !ok {
				return nil, args.WrongType("$setWindowFields.sortBy", item.Type, "object")
			}
			w.sorted = true
			w.sort, err = query.ParseSort(spec, p.rt.query)
		case "output":
			if item.Type != bson.TypeEmbeddedDocument {
				return nil, args.WrongType("$setWindowFields.output", item.Type, "object")
			}
			output = item
		default:
			return nil, args.UnknownField("$setWindowFields." + key)
		}
		if err != nil {
			return nil, err
		}
	}
	if output.Type == 0 {
		return nil, args.MissingField("$setWindowFields.output")
	}
	for path, spec := range bson.Raw(output.Value).All() {
		if err := expr.CheckPath(path, p.rt.o.Version); err != nil {
			return nil, err
		}
		for _, other := range w.output {
			o := strings.Join(other.path, ".")
			if o == path || strings.HasPrefix(o, path+".") || strings.HasPrefix(path, o+".") {
				return nil, srverr.New(40176,
					"specification contains two conflicting paths. Cannot specify both '%s' and '%s'", path, o)
			}
		}
		fn, err := w.parseFunction(p, path, spec)
		if err != nil {
			return nil, err
		}
		w.output = append(w.output, &windowField{strings.Split(path, "."), fn})
	}
	return w, nil
}

func (w *windowStage) optimize(env *expr.Env) (err error) {
	if w.partition != nil {
		if w.partition, err = expr.Optimize(w.partition, env); err != nil {
			return err
		}
	}
	for _, f := range w.output {
		if err := f.fn.optimize(env); err != nil {
			return err
		}
	}
	return nil
}

func (w *windowStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) { return w.run(src) }}, nil
}

func (w *windowStage) run(src Iterator) ([]bson.Raw, error) {
	docs, err := collect(src, memoryLimit)
	if err != nil {
		return nil, err
	}
	if w.sort != nil {
		if err := w.sort.SortDocuments(docs); err != nil {
			return nil, err
		}
	}
	parts, err := partitions(w.rt, w.partition, docs)
	if err != nil {
		return nil, err
	}
	var out []bson.Raw
	for _, part := range parts {
		columns := make([][]bson.RawValue, len(w.output))
		for i, f := range w.output {
			if columns[i], err = f.fn.compute(w, part); err != nil {
				return nil, err
			}
		}
		for i, doc := range part {
			for j, f := range w.output {
				doc = bsondoc.SetPath(doc, f.path, columns[j][i])
			}
			out = append(out, doc)
		}
	}
	return out, nil
}

// partitions splits documents by an expression, in the order of its values; nil is a single
// partition.
func partitions(rt *runtime, by expr.Expr, docs []bson.Raw) ([][]bson.Raw, error) {
	if by == nil {
		if len(docs) == 0 {
			return nil, nil
		}
		return [][]bson.Raw{docs}, nil
	}
	groups := expr.NewGroups(rt.env)
	var parts [][]bson.Raw
	for _, doc := range docs {
		key, err := expr.Eval(by, rt.state.WithRoot(doc))
		if err != nil {
			return nil, err
		}
		if key.Type == bson.TypeArray {
			return nil, srverr.New(srverr.TypeMismatch,
				"An expression used to partition cannot evaluate to value of type array")
		}
		if key.Type == 0 {
			key = bson.RawValue{Type: bson.TypeNull}
		}
		i, added := groups.Index(key)
		if added {
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], doc)
	}
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	compare := rt.compare()
	keys := groups.Keys()
	slices.SortStableFunc(order, func(a, b int) int { return compare(keys[a], keys[b]) })
	out := make([][]bson.Raw, len(parts))
	for i, j := range order {
		out[i] = parts[j]
	}
	return out, nil
}

// bounds is a window: offsets by documents, or by the value that is sorted by.
type bounds struct {
	byRange   bool
	low, high bound
	unit      string
	field     []string // what a range is measured in
}

type bound struct {
	unbounded bool
	offset    bson.RawValue // 0 for "current"
}

// steps is the offset by documents, or by units of time.
func (b bound) steps() int64 { return expr.ClampLong(b.offset) }

func (w *windowStage) parseBounds(v bson.RawValue) (bounds, error) {
	b := bounds{low: bound{unbounded: true}, high: bound{unbounded: true}}
	if v.Type == 0 {
		return b, nil
	}
	doc, ok := v.Document()
	if !ok {
		return b, srverr.New(srverr.FailedToParse, "'window' field must be an object")
	}
	var list, documents bson.RawValue
	timed := false
	for key, item := range doc.All() {
		switch key {
		case "documents":
			documents = item
		case "range":
			list, b.byRange = item, true
		case "unit":
			timed = true
			if b.unit, ok = item.StringValue(); !ok {
				return b, srverr.New(srverr.FailedToParse, "'unit' must be a string")
			}
		default:
			return b, srverr.New(srverr.FailedToParse, onlyBounds)
		}
	}
	switch {
	case documents.Type != 0 && (b.byRange || timed):
		return b, srverr.New(srverr.FailedToParse, onlyBounds)
	case documents.Type != 0:
		list = documents
	case timed && !b.byRange:
		return b, srverr.New(srverr.FailedToParse,
			"'window' field that specifies 'unit' must also specify range-based bounds")
	case timed && !expr.FindTimeUnit(b.unit):
		return b, srverr.New(srverr.FailedToParse, "unknown time unit value: %s", b.unit)
	case !b.byRange:
		return b, nil
	}
	two := bsondoc.Items(list)
	if list.Type != bson.TypeArray || len(two) != 2 {
		return b, srverr.New(srverr.FailedToParse, "Window bounds must be a 2-element array: %s", bsontext.Value(list))
	}
	for i, dst := range []*bound{&b.low, &b.high} {
		switch s, _ := two[i].StringValue(); {
		case s == "unbounded":
		case s == "current":
			*dst = bound{offset: bsondoc.Int32Value(0)}
		case two[i].IsNumber():
			_, integral := expr.Int32(two[i])
			if !integral && !b.byRange {
				return b, srverr.New(srverr.FailedToParse, "Numeric document-based bounds must be an integer")
			}
			if !integral && b.unit != "" {
				return b, srverr.New(srverr.FailedToParse, "With 'unit', range-based bounds must be an integer")
			}
			*dst = bound{offset: two[i]}
		default:
			return b, srverr.New(srverr.FailedToParse, "Window bounds must be 'unbounded', 'current', or a number.")
		}
	}
	if !b.low.unbounded && !b.high.unbounded && bson.Compare(b.low.offset, b.high.offset) > 0 {
		return b, srverr.New(5339900, "Lower bound must not exceed upper bound: %s", bsontext.Value(list))
	}
	if b.byRange {
		if w.sort == nil || len(w.sort.Fields()) != 1 {
			return b, srverr.New(5339902, "Range-based bounds require sortBy a single, ascending field")
		}
		if w.sort.Fields()[0].Descending {
			code := int32(5339902)
			if w.rt.o.Version.AllParsed() {
				code = 8947401
			}
			return b, srverr.New(code, "Range-based bounds require sortBy a single, ascending field")
		}
		b.field = strings.Split(w.sort.Fields()[0].Path, ".")
	} else if !w.sorted && !(b.low.unbounded && b.high.unbounded) {
		return b, srverr.New(5339901, "Document-based bounds require a sortBy")
	}
	return b, nil
}

const onlyBounds = "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field"

// at returns the indexes of the window of document i: from (inclusive) to (exclusive).
func (b bounds) at(i int, docs []bson.Raw) (from, to int, err error) {
	from, to = 0, len(docs)
	if !b.byRange {
		if !b.low.unbounded {
			from = min(max(0, i+int(b.low.steps())), len(docs))
		}
		if !b.high.unbounded {
			to = min(max(0, i+int(b.high.steps())+1), len(docs))
		}
		return from, max(from, to), nil
	}
	value, err := b.measured(docs[i])
	if err != nil {
		return 0, 0, err
	}
	if !b.low.unbounded {
		for least := b.shift(value, b.low); from < len(docs); from++ {
			v, err := b.measured(docs[from])
			if err != nil {
				return 0, 0, err
			}
			if bson.Compare(v, least) >= 0 {
				break
			}
		}
	}
	if !b.high.unbounded {
		for most := b.shift(value, b.high); to > from; to-- {
			v, err := b.measured(docs[to-1])
			if err != nil {
				return 0, 0, err
			}
			if bson.Compare(v, most) <= 0 {
				break
			}
		}
	}
	return from, to, nil
}

// shift returns the value that lies by a bound's offset from v.
func (b bounds) shift(v bson.RawValue, by bound) bson.RawValue {
	if b.unit != "" {
		d, _ := v.DateTime()
		ms, _ := expr.AddToDate(int64(d), b.unit, by.steps())
		return bson.RawValue{Type: bson.TypeDateTime, Value: bson.AppendInt64Value(nil, ms)}
	}
	return plus(v, by.offset, 1)
}

// plus returns a number plus n times another. What decimals are in is a decimal, and sums of
// integers are exact while they have 64 bits.
func plus(v, by bson.RawValue, n int64) bson.RawValue {
	if isInteger(v) && isInteger(by) {
		x, step := expr.ToLong(v), expr.ToLong(by)
		hi, lo := bits.Mul64(uint64(max(step, -step)), uint64(n))
		if sum := x + step*n; hi == 0 && lo < 1<<63 && (sum >= x) == (step >= 0) {
			if v.Type == bson.TypeInt32 && sum == int64(int32(sum)) {
				return bsondoc.Int32Value(int32(sum))
			}
			return bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, sum)}
		}
	}
	return mixedOf(v).add(mixedOf(by).mul(integer(n))).value()
}

func isInteger(v bson.RawValue) bool { return v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64 }

// measured is the value that a range is measured in: a number, or a date if there is a unit.
func (b bounds) measured(doc bson.Raw) (bson.RawValue, error) {
	v := fieldAt(doc, b.field)
	isDate := v.Type == bson.TypeDateTime
	switch {
	case isDate && b.unit == "":
		return v, srverr.New(5429513, "For windows that involve date or time ranges, a unit must be provided.")
	case b.unit != "" && !isDate:
		return v, srverr.New(5429513, "Invalid range: Expected the sortBy field to be a Date, but it was %s",
			typeName(v))
	case !isDate && !v.IsNumber():
		return v, srverr.New(5429414, "Invalid range: Expected the sortBy field to be a number, but it was %s",
			typeName(v))
	}
	return v, nil
}

// fieldAt follows a path of documents.
func fieldAt(doc bson.Raw, path []string) bson.RawValue {
	v := bsondoc.DocumentValue(doc)
	for _, part := range path {
		sub, ok := v.Document()
		if !ok {
			return bson.RawValue{}
		}
		v = sub.Lookup(part)
	}
	return v
}
