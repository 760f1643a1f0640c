package pipeline

import (
	"slices"

	"strconv"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(
		&stageDef{name: "$unionWith", noTxn: refusedInPlace, shown: showUnion, parse: one(parseUnion),
			precheck: checkUnion, reads: "coll", pipelines: "pipeline", refuses: refusedByUnion, at: elsewhere,
			names: whole + " coll"},
		&stageDef{name: "$facet", shown: showFacet, parse: one(parseFacet), precheck: checkFacet, notInFacet: true,
			pipelines: "*", keyed: whole,
			refuses: refusedByFacet, at: elsewhere},
	)
}

// unionStage is $unionWith.
type unionStage struct {
	from Namespace
	sub  *Pipeline
}

func checkUnion(p *parser, name string, v bson.RawValue) error {
	if v.Type != bson.TypeString && v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(srverr.FailedToParse, "the %s stage specification must be an object or string, but found %s",
			name, typeName(v))
	}
	from, pl, err := p.unionParts(v)
	if err != nil {
		return err
	}
	if !validNamespace(from) && !p.startsWithDocuments(pl) {
		return srverr.New(srverr.InvalidNamespace, "Namespace %s is not a valid collection name", from)
	}
	if pl.Type != 0 {
		return p.checkNames(pl)
	}
	return nil
}

func (p *parser) unionParts(v bson.RawValue) (from Namespace, pl bson.RawValue, err error) {
	from.DB = p.ns.DB
	if s, ok := v.StringValue(); ok {
		from.Coll = s
		if s == "" {
			return from, pl, srverr.New(srverr.InvalidNamespace, "Namespace %s is not a valid collection name", from)
		}
		return from, pl, nil
	}
	have := false
	seen := map[string]bool{}
	for key, item := range bson.Raw(v.Value).All() {
		if seen[key] {
			return from, pl, args.DuplicateField("$unionWith." + key)
		}
		seen[key] = true
		switch key {
		case "coll":
			if item.Type == bson.TypeNull || item.Type == bson.TypeUndefined {
				continue // as if it were not there
			}
			s, ok := item.StringValue()
			if !ok {
				return from, pl, args.WrongType("$unionWith.coll", item.Type, "string")
			}
			from.Coll, have = s, true
		case "pipeline":
			if item.Type != bson.TypeArray && item.Type != bson.TypeEmbeddedDocument {
				return from, pl, srverr.New(10065, "invalid parameter: expected an object (pipeline)")
			}
			i := 0
			for name, stage := range bson.Raw(item.Value).All() {
				if name != strconv.Itoa(i) {
					return from, pl, srverr.New(40422,
						"BSON array field '$unionWith.pipeline' has an invalid value '%s' for an array field name.",
						name)
				}
				if stage.Type != bson.TypeEmbeddedDocument && stage.Type != bson.TypeNull &&
					stage.Type != bson.TypeUndefined {
					return from, pl, args.WrongType("$unionWith.pipeline."+name, stage.Type, "object")
				}
				i++
			}
			pl = bson.RawValue{Type: bson.TypeArray, Value: item.Value}
		default:
			return from, pl, args.UnknownField("$unionWith." + key)
		}
	}
	if !have && !p.startsWithDocuments(pl) {
		return from, pl, args.MissingField("$unionWith.coll")
	}
	return from, pl, nil
}

func parseUnion(p *parser, _ string, v bson.RawValue) (*unionStage, error) {
	from, list, err := p.unionParts(v)
	if err != nil {
		return nil, err
	}
	u := &unionStage{from: from, sub: &Pipeline{rt: p.rt, depth: p.rt.depth + 1}}
	if list.Type != 0 {
		stages, err := StagesOf(list)
		if err != nil {
			return nil, err
		}
		if u.sub, err = p.sub("$unionWith", from, p.scope).pipeline(stages); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (u *unionStage) optimize(*expr.Env) error { return u.sub.optimize() }

func (u *unionStage) open(src Iterator) (Iterator, error) {
	return &unionIterator{u: u, src: src}, nil
}

type unionIterator struct {
	u          *unionStage
	src, other Iterator
}

func (i *unionIterator) Next() (bson.Raw, error) {
	if i.other == nil {
		doc, err := i.src.Next()
		if doc != nil || err != nil {
			return doc, err
		}
		if i.other, err = i.u.sub.runOn(i.u.from, nil); err != nil {
			return nil, err
		}
	}
	return i.other.Next()
}

func (i *unionIterator) Close() {
	i.src.Close()
	if i.other != nil {
		i.other.Close()
	}
}

func refusedByUnion(inner *stageDef) error {
	if !inner.notInLookup || inner.name == "$vectorSearch" { // a $lookup refuses it
		return nil
	}
	return srverr.New(31441, "%s is not allowed within a $unionWith's sub-pipeline", inner.name)
}

// facetStage is $facet: several pipelines on the same input.
type facetStage struct {
	rt    *runtime
	names []string
	subs  []*Pipeline
}

func refusedByFacet(inner *stageDef) error {
	if !inner.notInFacet {
		return nil
	}
	return outsideFacet(inner.name)
}

func outsideFacet(stage string) error {
	return srverr.New(40600, "%s is not allowed to be used within a $facet stage", stage)
}

// checkFacet checks the shape, which the server does before it parses any stage.
func checkFacet(p *parser, name string, v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok || doc.IsEmpty() {
		return srverr.New(40169, "the $facet specification must be a non-empty object, but found: %s",
			elementText(name, v))
	}
	for key, item := range doc.All() {
		if err := expr.CheckFieldName(key, p.rt.o.Version); err != nil {
			return err
		}
		if item.Type != bson.TypeArray {
			return srverr.New(40170, "arguments to $facet must be arrays, %s is type %s", key, typeName(item))
		}
		for i, stage := range bson.Raw(item.Value).All() {
			sub, ok := stage.Document()
			if ok && sub.IsEmpty() {
				break // an error of the stage itself
			}
			if !ok {
				return srverr.New(
					40171, "elements of arrays in $facet spec must be non-empty objects, %s argument contained an element of type %s: %s", key, typeName(stage), elementText(i, stage))
			}
			if _, err := p.lookupStage(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func parseFacet(p *parser, _ string, v bson.RawValue) (*facetStage, error) {
	f := &facetStage{rt: p.rt}
	for key, item := range bson.Raw(v.Value).All() {
		stages, err := StagesOf(item)
		if err != nil {
			return nil, err
		}
		sub, err := p.sub("$facet", p.ns, p.scope).pipeline(stages)
		if err != nil {
			return nil, err
		}
		if i := slices.Index(f.names, key); i >= 0 {
			f.subs[i] = sub // of two with the same name the last one counts
			continue
		}
		f.names, f.subs = append(f.names, key), append(f.subs, sub)
	}
	for _, sub := range f.subs {
		p.rt.env.WantsMeta = append(p.rt.env.WantsMeta, sub.wants...)
	}
	return f, nil
}

func (f *facetStage) optimize(*expr.Env) error {
	for _, sub := range f.subs {
		if err := sub.optimize(); err != nil {
			return err
		}
	}
	return nil
}

func (f *facetStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) {
		docs, err := f.rt.hits(src)
		if err != nil {
			return nil, err
		}
		results, err := f.run(docs)
		f.rt.env.Meta = nil
		if err != nil {
			return nil, err
		}
		start, dst := bson.BeginDocument(nil)
		for i, found := range results {
			array, next := bson.BeginArrayElement(dst, f.names[i])
			for j, doc := range found {
				next = append(bson.AppendIndexHeader(next, bson.TypeEmbeddedDocument, j), doc...)
			}
			dst = bson.EndDocument(next, array)
			if len(dst) > 100<<20 {
				return nil, srverr.New(
					4031700, "document constructed by $facet is %d bytes, which exceeds the limit of %d bytes",
					len(dst), 100<<20)
			}
		}
		return []bson.Raw{bson.EndDocument(dst, start)}, nil
	}}, nil
}

// run runs the sub-pipelines. The server gives each the whole input before it tells any that this
// is the end, so that the last one ends first.
func (f *facetStage) run(docs []hit) ([][]bson.Raw, error) {
	results := make([][]bson.Raw, len(f.subs))
	next := 0
	var run func() error
	run = func() error {
		i := next
		if next++; i >= len(f.subs) {
			return nil
		}
		it, err := f.subs[i].connect(&keeper{rt: f.rt, rows: docs, filled: true, end: run})
		if err == nil {
			results[i], err = collect(it, memoryLimit)
		}
		return err
	}
	for next < len(f.subs) {
		if err := run(); err != nil {
			return nil, err
		}
	}
	return results, nil
}
