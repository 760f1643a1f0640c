package pipeline

// $documents, $densify and $fill.

import (
	"math"
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
	register(
		&stageDef{name: "$documents", parse: one(parseDocuments), first: true, collectionless: true, notInFacet: true,
			uses: uses()},
		&stageDef{name: "$densify", parse: one(parseDensify), names: "field partitionByFields"},
		&stageDef{name: "$fill", parse: parseFill, update: true, names: "partitionByFields sortBy",
			keyed: "output"},
	)
}

// documentsStage is $documents: documents from the command itself.
type documentsStage struct {
	rt *runtime
	e  expr.Expr
}

func parseDocuments(p *parser, _ string, v bson.RawValue) (*documentsStage, error) {
	if p.within == "" && p.ns.Coll != "" {
		return nil, srverr.New(srverr.InvalidNamespace, "'$documents' can only be run with {aggregate: 1}")
	}
	e, err := expr.Parse(v, p.scope)
	return &documentsStage{p.rt, e}, err
}

func (*documentsStage) isSource() {}

func (d *documentsStage) optimize(env *expr.Env) (err error) {
	d.e, err = expr.Optimize(d.e, env)
	return err
}

func (d *documentsStage) open(src Iterator) (Iterator, error) {
	src.Close()
	v, err := expr.Eval(d.e, d.rt.state.WithRoot(emptyDocument))
	if err != nil {
		return nil, err
	}
	array, ok := v.Array()
	if !ok {
		return nil, srverr.New(5858203, "an array is expected")
	}
	var docs []bson.Raw
	for item := range array.Values() {
		doc, ok := item.Document()
		if !ok {
			return nil, srverr.New(
				40228, "'newRoot' expression  must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'.", expr.Text(item), typeName(item))
		}
		docs = append(docs, doc)
	}
	return FromSlice(docs), nil
}

// densifyStage is $densify: documents for the gaps between the values of a field.
type densifyStage struct {
	rt            *runtime
	field         []string
	partitionBy   [][]string
	step          bson.RawValue
	unit          string
	full, perPart bool
	low, high     bson.RawValue
}

func parseDensify(p *parser, _ string, v bson.RawValue) (*densifyStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(5733201, "The $densify stage specification must be an object, found %s", typeName(v))
	}
	d := &densifyStage{rt: p.rt}
	var spec bson.RawValue
	for key, item := range doc.All() {
		if args.IsNull(item) { // as if it were not given
			continue
		}
		switch key {
		case "field":
			s, ok := item.StringValue()
			if !ok {
				return nil, args.WrongType("$densify.field", item.Type, "string")
			}
			if err := expr.CheckPath(s, p.rt.o.Version); err != nil {
				return nil, err
			}
			d.field = strings.Split(s, ".")
		case "partitionByFields":
			if item.Type != bson.TypeArray {
				return nil, args.WrongType("$densify.partitionByFields", item.Type, "array")
			}
			for part := range bson.Raw(item.Value).Values() {
				s, ok := part.StringValue()
				if !ok {
					return nil, srverr.New(srverr.TypeMismatch,
						"BSON field '$densify.partitionByFields' must be an array of strings")
				}
				if err := expr.CheckPath(s, p.rt.o.Version); err != nil {
					return nil, err
				}
				d.partitionBy = append(d.partitionBy, strings.Split(s, "."))
			}
		case "range":
			if item.Type != bson.TypeEmbeddedDocument {
				return nil, args.WrongType("$densify.range", item.Type, "object")
			}
			spec = item
		default:
			return nil, args.UnknownField("$densify." + key)
		}
	}
	if d.field == nil {
		return nil, args.MissingField("$densify.field")
	}
	if spec.Type == 0 {
		return nil, args.MissingField("$densify.range")
	}
	if p.rt.o.Version.AllParsed() {
		for _, part := range d.partitionBy {
			if n := min(len(part), len(d.field)); slices.Equal(part[:n], d.field[:n]) {
				return nil, srverr.New(srverr.BadValue,
					"$densify 'field' and 'partitionByFields' cannot share a prefix: '%s' and '%s'",
					strings.Join(d.field, "."), strings.Join(part, "."))
			}
		}
	}
	return d, d.parseRange(p, bson.Raw(spec.Value))
}

func (d *densifyStage) parseRange(p *parser, spec bson.Raw) error {
	var haveStep, haveBounds bool
	for key, item := range spec.All() {
		if args.IsNull(item) {
			continue
		}
		switch key {
		case "step":
			haveStep = true
			d.step = item
			if !item.IsNumber() || !(expr.ToDouble(item) > 0) {
				return srverr.New(5733401,
					"the step parameter in a range statement must be a strictly positive numeric value")
			}
		case "unit":
			d.unit, _ = item.StringValue()
			if !expr.FindTimeUnit(d.unit) {
				return srverr.New(srverr.FailedToParse, "unknown time unit value: %s", bsontext.Value(item))
			}
		case "bounds":
			haveBounds = true
			switch s, _ := item.StringValue(); {
			case s == "full":
				d.full = true
			case s == "partition":
				d.perPart = true
			case item.Type == bson.TypeArray:
				two := bsondoc.Items(item)
				if len(two) != 2 {
					return srverr.New(5733403, "a bounding array in a range statement must have exactly two elements")
				}
				d.low, d.high = two[0], two[1]
				if !d.low.IsNumber() && d.low.Type != bson.TypeDateTime && p.rt.env.Version.AllParsed() {
					return srverr.New(
						5733402, "the bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates")
				}
				dates := d.low.Type == bson.TypeDateTime && d.high.Type == bson.TypeDateTime
				if !dates && !(d.low.IsNumber() && d.high.IsNumber()) {
					return srverr.New(5733406, "a bounding array must contain either both dates or both numeric types")
				}
				if bson.Compare(d.low, d.high) > 0 {
					return srverr.New(
						5733402, "the bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates")
				}
			default:
				return srverr.New(
					5946802, "the bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates")
			}
		default:
			return args.UnknownField("RangeStatement." + key)
		}
	}
	switch {
	case !haveStep:
		return args.MissingField("RangeStatement.step")
	case !haveBounds:
		return args.MissingField("RangeStatement.bounds")
	case d.unit != "" && expr.ToDouble(d.step) != math.Trunc(expr.ToDouble(d.step)):
		return srverr.New(6586400,
			"The step parameter in a range statement must be a whole number when densifying a date range")
	case d.unit == "" && d.low.Type == bson.TypeDateTime:
		return srverr.New(5733501, "a bounding array must be an ascending array of either two dates or two numbers")
	}
	return nil
}

func (d *densifyStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) { return d.run(src) }}, nil
}

// value reads a document's place on the axis.
func (d *densifyStage) value(doc bson.Raw) (v bson.RawValue, ok bool, err error) {
	v = fieldAt(doc, d.field)
	switch {
	case isNullish(v):
		return v, false, nil
	case d.unit != "" && v.Type != bson.TypeDateTime:
		return v, false, srverr.New(6053600, "$densify field type must be a date with a unit")
	case d.unit == "" && !v.IsNumber():
		return v, false, srverr.New(5733201, "$densify field type must be numeric without a unit")
	}
	return v, true, nil
}

// next returns start plus n steps.
func (d *densifyStage) next(start bson.RawValue, n int64) bson.RawValue {
	if ms, ok := start.DateTime(); ok {
		out, _ := expr.AddToDate(int64(ms), d.unit, n*expr.ClampLong(d.step))
		return bson.RawValue{Type: bson.TypeDateTime, Value: bson.AppendInt64Value(nil, out)}
	}
	return plus(start, d.step, n)
}

// maxDensified is the server's limit on the documents that $densify makes.
const maxDensified = 500000

func (d *densifyStage) run(src Iterator) ([]bson.Raw, error) {
	docs, err := collect(src, memoryLimit)
	if err != nil {
		return nil, err
	}
	start, dst := bson.BeginDocument(nil)
	if d.perPart { // one partition comes after the other
		for _, path := range d.partitionBy {
			dst = bson.AppendInt32(dst, strings.Join(path, "."), 1)
		}
	}
	spec := bson.EndDocument(bson.AppendInt32(dst, strings.Join(d.field, "."), 1), start)
	order, err := query.ParseSort(spec, d.rt.query)
	if err != nil {
		return nil, err
	}
	if err := order.SortDocuments(docs); err != nil {
		return nil, err
	}
	groups := expr.NewGroups(d.rt.env)
	var parts [][]bson.Raw
	var out []bson.Raw
	low, high := d.low, d.high
	for _, doc := range docs {
		v, ok, err := d.value(doc)
		if err != nil {
			return nil, err
		}
		if !ok {
			out = append(out, doc)
			continue
		}
		if d.full {
			if low.Type == 0 || bson.Compare(v, low) < 0 {
				low = v
			}
			if high.Type == 0 || bson.Compare(v, high) > 0 {
				high = v
			}
		}
		i, added := groups.Index(bsondoc.DocumentValue(d.partition(doc)))
		if added {
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], doc)
	}
	exclusive := !d.full && !d.perPart
	if exclusive && len(parts) == 0 && len(d.partitionBy) == 0 { // bounds need no documents
		groups.Index(bsondoc.DocumentValue(emptyDocument))
		parts = append(parts, nil)
	}
	if exclusive && bson.Compare(low, high) == 0 && !d.rt.o.Version.AtLeast(8, 0) {
		exclusive = false // equal bounds were a closed interval
	}
	made := 0
	for i, part := range parts {
		from, to := low, high
		if d.perPart {
			from, to = fieldAt(part[0], d.field), fieldAt(part[len(part)-1], d.field)
		}
		n := int64(0)
		partition := bson.Raw(groups.Keys()[i].Value)
		emit := func(limit bson.RawValue) error { // makes what comes before limit
			for {
				v := d.next(from, n)
				c := bson.Compare(v, to)
				if c > 0 || c == 0 && exclusive || limit.Type != 0 && bson.Compare(v, limit) >= 0 {
					return nil
				}
				n++
				if err := d.rt.interrupted(); err != nil {
					return err
				}
				if made++; made > maxDensified {
					return srverr.New(5897900, "Generated %d documents in $densify, which is over the limit of %d.",
						made, maxDensified)
				}
				out = append(out, d.document(partition, v))
			}
		}
		for _, doc := range part {
			v := fieldAt(doc, d.field)
			if d.perPart { // under a collation, that of the document before which they come
				partition = d.partition(doc)
			}
			if err := emit(v); err != nil {
				return nil, err
			}
			if bson.Compare(d.next(from, n), v) == 0 {
				n++
			}
			out = append(out, doc)
		}
		if err := emit(bson.RawValue{}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// partition returns the values of a document by which documents are partitioned.
func (d *densifyStage) partition(doc bson.Raw) bson.Raw {
	start, key := bson.BeginDocument(nil)
	for _, path := range d.partitionBy {
		if v := fieldAt(doc, path); v.Type != 0 {
			key = bson.AppendRawValue(key, strings.Join(path, "."), v)
		}
	}
	return bson.EndDocument(key, start)
}

func (d *densifyStage) document(partition bson.Raw, v bson.RawValue) bson.Raw {
	doc := emptyDocument
	for path, p := range partition.All() {
		doc = bsondoc.SetPath(doc, strings.Split(path, "."), p)
	}
	return bsondoc.SetPath(doc, d.field, v)
}

// parseFill makes $fill of a $setWindowFields and an $addFields.
func parseFill(p *parser, name string, v bson.RawValue) ([]stage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(6050200, "The $fill stage specification must be an object, found %s", typeName(v))
	}
	w := &windowStage{rt: p.rt}
	var output bson.Raw
	var havePartition bool
	for key, item := range doc.All() {
		var err error
		if args.IsNull(item) && key != "partitionBy" { // as if it were not given
			continue
		}
		switch key {
		case "partitionBy", "partitionByFields":
			if havePartition {
				return nil, srverr.New(6050204,
					"Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'") // sic
			}
			havePartition = true
			if key == "partitionByFields" {
				if item.Type != bson.TypeArray {
					return nil, args.WrongType("$fill.partitionByFields", item.Type, "array")
				}
				start, dst := bson.BeginDocument(nil)
				n := 0
				for f := range bson.Raw(item.Value).Values() {
					s, ok := f.StringValue()
					if !ok {
						return nil, srverr.New(srverr.TypeMismatch,
							"BSON field '$fill.partitionByFields' must be an array of strings")
					}
					if err := expr.CheckPath(s, p.rt.o.Version); err != nil {
						return nil, err
					}
					dst = append(bson.AppendIndexHeader(dst, bson.TypeString, n), bson.AppendStringValue(nil, "$"+s)...)
					n++
				}
				// An array cannot partition, a document can.
				array := bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}
				start, dst = bson.BeginDocument(nil)
				item = bsondoc.DocumentValue(bson.EndDocument(bson.AppendRawValue(dst, "f", array), start))
			}
			w.partition, err = expr.Parse(item, p.scope)
		case "sortBy":
			spec, ok := item.Document()
			if !ok {
				return nil, args.WrongType("$fill.sortBy", item.Type, "object")
			}
			w.sort, err = query.ParseSort(spec, p.rt.query)
		case "output":
			if output, ok = item.Document(); !ok {
				return nil, args.WrongType("$fill.output", item.Type, "object")
			}
		default:
			return nil, args.UnknownField("$fill." + key)
		}
		if err != nil {
			return nil, err
		}
	}
	if output.IsEmpty() {
		return nil, args.MissingField("$fill.output")
	}
	add := &projection{rt: p.rt, kind: addition, root: newNode()}
	for path, item := range output.All() {
		if err := expr.CheckPath(path, p.rt.o.Version); err != nil {
			return nil, err
		}
		spec, ok := item.Document()
		if !ok {
			return nil, srverr.New(srverr.FailedToParse, "%s '%s' must be an object", name, path)
		}
		field := bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, "$"+path)}
		if value := spec.Lookup("value"); value.Type != 0 {
			start, dst := bson.BeginDocument(nil)
			array, dst := bson.BeginArrayElement(dst, "$ifNull")
			dst = bson.AppendRawValue(dst, "0", field)
			dst = bson.AppendRawValue(dst, "1", value)
			e, err := expr.Parse(bsondoc.DocumentValue(bson.EndDocument(bson.EndDocument(dst, array), start)), p.scope)
			if err != nil {
				return nil, err
			}
			if err := add.root.add(strings.Split(path, "."), path, e); err != nil {
				return nil, err
			}
			continue
		}
		method, _ := spec.Lookup("method").StringValue()
		if method != "linear" && method != "locf" {
			return nil, srverr.New(6050202, "Method must be either locf or linear")
		}
		if method == "linear" && w.sort == nil {
			return nil, srverr.New(605001,
				"$linearFill must be specified with a top level sortBy expression with exactly one element")
		}
		e, err := expr.Parse(field, p.scope)
		if err != nil {
			return nil, err
		}
		w.output = append(w.output, &windowField{strings.Split(path, "."), &filling{operand{e}, method == "linear"}})
	}
	var out []stage
	if len(w.output) > 0 {
		out = append(out, w)
	}
	if len(add.root.order) > 0 {
		out = append(out, add)
	}
	return out, nil
}
