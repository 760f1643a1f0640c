package qe

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/srverr"
)

// Source is an encrypted collection that a query reads.
type Source struct {
	Fields *Fields
	State  State
}

// Rewriter turns the payloads of a query into conditions on the tags of documents.
type Rewriter struct{ Sources []Source }

// tags are the tags that a payload looks for. A second half of a range is always true: its first
// half stands for both.
type tags struct {
	always bool
	list   []bson.RawValue
}

// tagsOf returns the tags of the payload v, and whether it is one.
func (r *Rewriter) tagsOf(v bson.RawValue) (t tags, ok bool, err error) {
	kind, ok := fle.KindOf(v)
	if !ok {
		return t, false, nil
	}
	data, _ := fle.Data(v)
	switch kind {
	case fle.KindFindEquality:
		p, err := fle.ParseFindEquality(data)
		if err != nil {
			return t, true, invalid("%v", err)
		}
		return t, true, r.add(&t, p.FindSet, p.Contention)
	case fle.KindFindRange:
		p, err := fle.ParseFindRange(data)
		if err != nil {
			return t, true, invalid("%v", err)
		}
		if p.Edges == nil {
			t.always = true
			return t, true, nil
		}
		for _, set := range p.Edges {
			if err := r.add(&t, set, p.Contention); err != nil {
				return t, true, err
			}
		}
		return t, true, nil
	case fle.KindFindText:
		p, err := fle.ParseFindText(data)
		if err != nil {
			return t, true, invalid("%v", err)
		}
		return t, true, r.add(&t, p.FindSet, p.Contention)
	}
	return t, false, nil
}

// add adds the tags of one token under all contention factors.
func (r *Rewriter) add(t *tags, set fle.FindSet, contention int64) error {
	for u := range uint64(contention) + 1 {
		s := set.With(u)
		var most uint64
		for _, source := range r.Sources {
			n, err := source.State.count(s.ESC)
			if err != nil {
				return err
			}
			most = max(most, n)
		}
		for i := uint64(1); i <= most; i++ {
			t.list = append(t.list, ID(fle.Tag(s.EDC, i)))
		}
	}
	return nil
}

// safePath returns the path of the tags of documents whose field at path is encrypted.
func (r *Rewriter) safePath(path string) (string, error) {
	for _, source := range r.Sources {
		for _, f := range source.Fields.List {
			if path == f.Path {
				return SafeContent, nil
			}
			if prefix, ok := strings.CutSuffix(path, "."+f.Path); ok {
				return prefix + "." + SafeContent, nil
			}
		}
	}
	return "", srverr.New(6726303, "Field '%s' is not encrypted", path)
}

// Filter returns a filter without payloads.
func (r *Rewriter) Filter(doc bson.Raw) (bson.Raw, error) {
	if !fle.Contains(doc) {
		return doc, nil
	}
	var parts []bson.RawValue
	for key, v := range doc.All() {
		part, err := r.condition(key, v)
		if err != nil {
			return nil, err
		}
		parts = append(parts, bsondoc.DocumentValue(part))
	}
	if len(parts) == 1 {
		return parts[0].Value, nil
	}
	return bsondoc.Single("$and", bsondoc.ArrayValue(parts...)), nil
}

// condition returns one element of a filter as a document.
func (r *Rewriter) condition(key string, v bson.RawValue) (bson.Raw, error) {
	switch key {
	case "$and", "$or", "$nor":
		list, ok := v.Array()
		if !ok {
			return bsondoc.Single(key, v), nil
		}
		var parts []bson.RawValue
		for v := range list.Values() {
			if doc, ok := v.Document(); ok {
				doc, err := r.Filter(doc)
				if err != nil {
					return nil, err
				}
				v = bsondoc.DocumentValue(doc)
			}
			parts = append(parts, v)
		}
		return bsondoc.Single(key, bsondoc.ArrayValue(parts...)), nil
	case "$expr":
		if doc, done, err := r.match(v); done || err != nil {
			return doc, err
		}
		v, err := r.Expression(v)
		return bsondoc.Single(key, v), err
	}
	if strings.HasPrefix(key, "$") {
		return bsondoc.Single(key, v), nil
	}
	t, ok, err := r.tagsOf(v)
	if err != nil {
		return nil, err
	}
	if ok {
		return r.in(key, t)
	}
	ops, ok := v.Document()
	if !ok || !fle.Contains(ops) {
		return bsondoc.Single(key, v), nil
	}
	if name, _ := firstOf(ops); !strings.HasPrefix(name, "$") {
		return bsondoc.Single(key, v), nil // an object that is compared as a whole
	}
	var parts []bson.RawValue
	for op, v := range ops.All() {
		part, err := r.operator(key, op, v)
		if err != nil {
			return nil, err
		}
		parts = append(parts, bsondoc.DocumentValue(part))
	}
	if len(parts) == 1 {
		return parts[0].Value, nil
	}
	return bsondoc.Single("$and", bsondoc.ArrayValue(parts...)), nil
}

func firstOf(doc bson.Raw) (string, bson.RawValue) {
	for key, v := range doc.All() {
		return key, v
	}
	return "", bson.RawValue{}
}

// in returns the condition that a document has one of the tags.
func (r *Rewriter) in(path string, t tags) (bson.Raw, error) {
	if t.always {
		return bsondoc.Of(), nil
	}
	safe, err := r.safePath(path)
	return bsondoc.Single(safe, bsondoc.DocumentValue(bsondoc.Single("$in", bsondoc.ArrayValue(t.list...)))), err
}

func not(doc bson.Raw, err error) (bson.Raw, error) {
	return bsondoc.Single("$nor", bsondoc.ArrayValue(bsondoc.DocumentValue(doc))), err
}

// operator returns {path: {op: v}}.
func (r *Rewriter) operator(path, op string, v bson.RawValue) (bson.Raw, error) {
	switch op {
	case "$not":
		if doc, ok := v.Document(); ok && fle.Contains(doc) {
			return not(r.condition(path, v))
		}
	case "$in", "$nin":
		list, ok := v.Array()
		if !ok {
			break
		}
		all, payloads := tags{}, 0
		n := 0
		for v := range list.Values() {
			t, ok, err := r.tagsOf(v)
			if err != nil {
				return nil, err
			}
			n++
			if ok {
				payloads++
				all.list = append(all.list, t.list...)
			}
		}
		switch {
		case payloads == 0:
		case payloads < n:
			return nil, srverr.New(6329400, "Cannot mix encrypted and plain values in %s of the field '%s'", op, path)
		case op == "$in":
			return r.in(path, all)
		default:
			return not(r.in(path, all))
		}
	default:
		t, ok, err := r.tagsOf(v)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		switch op {
		case "$eq", "$gt", "$gte", "$lt", "$lte":
			return r.in(path, t)
		case "$ne":
			return not(r.in(path, t))
		}
		return nil, srverr.New(6329401, "The operator %s cannot be used with an encrypted value", op)
	}
	return bsondoc.Single(path, bsondoc.DocumentValue(bsondoc.Single(op, v))), nil
}

// Expression returns an aggregation expression without payloads. It goes through anything: a
// projection and the argument of a stage hold expressions, too.
func (r *Rewriter) Expression(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeArray, bson.TypeEmbeddedDocument:
	default:
		return v, nil
	}
	if !fle.Contains(v.Value) {
		return v, nil
	}
	if name, arg := firstOf(v.Value); v.Type == bson.TypeEmbeddedDocument && strings.HasPrefix(name, "$") {
		out, done, err := r.comparison(name, arg)
		if done || err != nil {
			return out, err
		}
	}
	start, b := bson.BeginDocument(nil)
	for key, inner := range bson.Raw(v.Value).All() {
		inner, err := r.Expression(inner)
		if err != nil {
			return v, err
		}
		b = bson.AppendRawValue(b, key, inner)
	}
	return bson.RawValue{Type: v.Type, Value: bson.EndDocument(b, start)}, nil
}

// match returns an expression that compares a field of the document with payloads as a filter,
// which can use the index of the tags. Comparisons within $and are several.
func (r *Rewriter) match(expr bson.RawValue) (filter bson.Raw, done bool, err error) {
	doc, ok := expr.Document()
	if !ok {
		return nil, false, nil
	}
	name, arg := firstOf(doc)
	if list, ok := arg.Array(); ok && name == "$and" {
		var parts []bson.RawValue
		for v := range list.Values() {
			part, done, err := r.match(v)
			if !done || err != nil {
				return nil, false, err
			}
			parts = append(parts, bsondoc.DocumentValue(part))
		}
		return bsondoc.Single("$and", bsondoc.ArrayValue(parts...)), len(parts) > 0, nil
	}
	field, t, payloads, err := r.compared(name, arg)
	if err != nil || payloads == 0 || name == "$ne" || !strings.HasPrefix(field, "$") ||
		strings.HasPrefix(field, "$$") {
		return nil, false, err
	}
	if safe, err := r.safePath(field[1:]); safe != SafeContent {
		return nil, false, err // the field of an embedded document, which may be in an array
	}
	filter, err = r.in(field[1:], t)
	return filter, true, err
}

// compared returns the field that {name: arg} compares with payloads, and their tags.
func (r *Rewriter) compared(name string, arg bson.RawValue) (field string, t tags, payloads int, err error) {
	take := func(v bson.RawValue) error {
		if s, ok := v.StringValue(); ok && strings.HasPrefix(s, "$") {
			field = s
			return nil
		}
		found, ok, err := r.tagsOf(v)
		if ok {
			payloads++
			t.always = t.always || found.always
			t.list = append(t.list, found.list...)
		}
		return err
	}
	switch {
	case slices.Contains([]string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in"}, name):
		args, _ := arg.Array()
		for v := range args.Values() {
			values := []bson.RawValue{v}
			if list, ok := v.Array(); ok && name == "$in" {
				values = slices.Collect(list.Values())
			}
			for _, v := range values {
				if err := take(v); err != nil {
					return field, t, payloads, err
				}
			}
		}
	case slices.Contains(textQueries, name):
		args, _ := arg.Document()
		for _, v := range args.All() {
			if err := take(v); err != nil {
				return field, t, payloads, err
			}
		}
	}
	return field, t, payloads, nil
}

// comparison returns {name: arg} if it compares a field with payloads.
func (r *Rewriter) comparison(name string, arg bson.RawValue) (out bson.RawValue, done bool, err error) {
	field, t, payloads, err := r.compared(name, arg)
	if err != nil || payloads == 0 {
		return out, err != nil, err
	}
	if t.always {
		return bson.RawValue{Type: bson.TypeBoolean, Value: bson.AppendBoolValue(nil, true)}, true, nil
	}
	variable, path := "$", strings.TrimPrefix(field, "$")
	if strings.HasPrefix(field, "$$") {
		variable, path, _ = strings.Cut(field, ".")
		variable += "."
	}
	safe, err := r.safePath(path)
	if err != nil {
		return out, true, err
	}
	// {$gt: [{$size: {$setIntersection: [{$ifNull: [tags, []]}, list]}}, 0]}
	have := bsondoc.DocumentValue(bsondoc.Single("$ifNull",
		bsondoc.ArrayValue(bsondoc.StringValue(variable+safe), bsondoc.ArrayValue())))
	size := bsondoc.DocumentValue(bsondoc.Single("$size",
		bsondoc.DocumentValue(bsondoc.Single("$setIntersection",
			bsondoc.ArrayValue(have, bsondoc.ArrayValue(t.list...))))))
	zero := bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, 0)}
	op := "$gt"
	if name == "$ne" {
		op = "$eq"
	}
	return bsondoc.DocumentValue(bsondoc.Single(op, bsondoc.ArrayValue(size, zero))), true, nil
}

// Pipeline returns the stages without payloads.
func (r *Rewriter) Pipeline(stages []bson.Raw) ([]bson.Raw, error) {
	out := make([]bson.Raw, len(stages))
	for i, stage := range stages {
		out[i] = stage
		if !fle.Contains(stage) {
			continue
		}
		s := pipeline.StageOf(pipeline.Namespace{}, stage)
		v, err := s.Rewrite(pipeline.Parts{Pipeline: r.Pipeline, Filter: r.Filter, Expression: r.Expression})
		if err != nil {
			return nil, err
		}
		out[i] = bsondoc.Single(s.Name, v)
	}
	return out, nil
}

// textQueries are the operators of expressions that only encrypted fields have.
var textQueries = []string{"$encStrContains", "$encStrEndsWith", "$encStrNormalizedEq", "$encStrStartsWith"}

// Expressions lists them.
func Expressions() []string { return slices.Clone(textQueries) }
