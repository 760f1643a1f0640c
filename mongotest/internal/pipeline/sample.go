package pipeline

import (
	"math/rand/v2"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(
		&stageDef{name: "$sample", shown: showSample, parse: one(parseSample), selects: true},
		&stageDef{name: "$redact", shown: showExpression, parse: one(parseRedact), changeStream: true, at: eachShard},
	)
}

// sampleStage is $sample: some documents at random.
type sampleStage struct {
	rt   *runtime
	size int64
}

func parseSample(p *parser, _ string, v bson.RawValue) (*sampleStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(28745, "the $sample stage specification must be an object")
	}
	s := &sampleStage{rt: p.rt}
	var wrong error
	given := false
	for key, item := range doc.All() {
		if key != "size" {
			return nil, srverr.New(28748, "unrecognized option to $sample: %s", key)
		}
		if !item.IsNumber() {
			return nil, srverr.New(28746, "size argument to $sample must be a number")
		}
		given = true
		if p.rt.o.Version.AllParsed() { // its sign counts when all fields are known
			if s.size = expr.ClampLong(item); s.size <= 0 {
				wrong = srverr.New(28747, "size argument to $sample must be a positive integer")
			}
			continue
		}
		s.size = expr.ToLong(item)
		if s.size < 0 {
			return nil, srverr.New(28747, "size argument to $sample must not be negative")
		}
		if s.size == 0 && p.rt.o.Version.AtLeast(5, 3) {
			return nil, srverr.New(28747, "size argument to $sample must be a positive integer")
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	if !given {
		return nil, srverr.New(28749, "$sample stage must specify a size")
	}
	return s, nil
}

func (s *sampleStage) open(src Iterator) (Iterator, error) {
	return &keeper{src: src, rt: s.rt, fill: func() ([]hit, error) {
		docs, err := s.rt.hits(src)
		if err != nil {
			return nil, err
		}
		for i := range docs {
			if s.rt.meta {
				docs[i].meta = withMeta(docs[i].meta, "randVal", bsondoc.DoubleValue(s.rt.random()))
			}
		}
		shuffle := rand.Shuffle
		if s.rt.o.Rand != nil {
			shuffle = s.rt.o.Rand.Shuffle
		}
		shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		return docs[:min(s.size, int64(len(docs)))], nil
	}}, nil
}

// redactStage is $redact: documents, and those within them, are kept, dropped or looked into.
type redactStage struct {
	rt      *runtime
	e       expr.Expr
	current expr.Slot
}

func parseRedact(p *parser, _ string, v bson.RawValue) (*redactStage, error) {
	r := &redactStage{rt: p.rt}
	scope, slot := p.scope.Define("CURRENT")
	r.current = slot
	for name, value := range map[string]string{"DESCEND": "descend", "PRUNE": "prune", "KEEP": "keep"} {
		scope, slot = scope.Define(name)
		p.rt.state.Set(slot, bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, value)})
	}
	var err error
	r.e, err = expr.Parse(v, scope)
	return r, err
}

func (r *redactStage) optimize(env *expr.Env) (err error) {
	r.e, err = expr.Optimize(r.e, env)
	return err
}

func (r *redactStage) open(src Iterator) (Iterator, error) {
	return &transform{src, func(doc bson.Raw) (bson.Raw, error) {
		r.rt.state.WithRoot(doc)
		return r.redact(doc)
	}}, nil
}

func (r *redactStage) redact(doc bson.Raw) (bson.Raw, error) {
	r.rt.state.Set(r.current, bsondoc.DocumentValue(doc))
	v, err := expr.Eval(r.e, r.rt.state)
	if err != nil {
		return nil, err
	}
	s, _ := v.StringValue()
	switch s {
	case "keep":
		return doc, nil
	case "prune":
		return nil, nil
	case "descend":
	default:
		return nil, srverr.New(
			17053, "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s", expr.Text(v))
	}
	start, dst := bson.BeginDocument(nil)
	for key, item := range doc.All() {
		item, err := r.value(item)
		if err != nil {
			return nil, err
		}
		if item.Type != 0 {
			dst = bson.AppendRawValue(dst, key, item)
		}
	}
	return bson.EndDocument(dst, start), nil
}

func (r *redactStage) value(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		doc, err := r.redact(bson.Raw(v.Value))
		if doc == nil || err != nil {
			return bson.RawValue{}, err
		}
		return bsondoc.DocumentValue(doc), nil
	case bson.TypeArray:
		start, dst := bson.BeginDocument(nil)
		n := 0
		for item := range bson.Raw(v.Value).Values() {
			item, err := r.value(item)
			if err != nil {
				return item, err
			}
			if item.Type != 0 {
				dst = append(bson.AppendIndexHeader(dst, item.Type, n), item.Value...)
				n++
			}
		}
		return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}, nil
	}
	return v, nil
}
