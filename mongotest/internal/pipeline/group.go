package pipeline

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$group", shown: showGroup, parse: one(parseGroup), keyed: whole})
}

// groupStage is $group: accumulators per value of _id.
type groupStage struct {
	rt     *runtime
	id     expr.Expr
	names  []string
	fields []*expr.AccumulatorSpec
	// Of an _id that is a document of several fields the missing ones are left out; of one with a
	// single field it is null.
	idField string
	// engine says that the engine groups which reads the collection.
	engine bool
	// handed says that the engine hands its groups to a stage that is done elsewhere.
	handed bool
}

func parseGroup(p *parser, _ string, v bson.RawValue) (*groupStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(15947, "a group's fields must be specified in an object")
	}
	g := &groupStage{rt: p.rt}
	for key, item := range doc.All() {
		if key == "_id" {
			if g.id != nil {
				return nil, srverr.New(15948, "a group's _id may only be specified once")
			}
			if err := g.parseID(item, p.scope); err != nil {
				return nil, err
			}
			continue
		}
		if key == "$doingMerge" {
			return nil, srverr.New(17030, "$doingMerge should be true if present")
		}
		if err := g.addField(key, item, p.scope); err != nil {
			return nil, err
		}
	}
	if g.id == nil {
		return nil, srverr.New(15955, "a group specification must include an _id")
	}
	return g, nil
}

func (g *groupStage) addField(name string, v bson.RawValue, s *expr.Scope) error {
	spec, err := expr.ParseAccumulator(name, v, s)
	if err != nil {
		return err
	}
	g.names, g.fields = append(g.names, name), append(g.fields, spec)
	return nil
}

func (g *groupStage) parseID(v bson.RawValue, s *expr.Scope) error {
	if doc, ok := v.Document(); ok {
		n, first := 0, ""
		for key := range doc.All() {
			if n++; n == 1 {
				first = key
			}
		}
		if n > 0 && !strings.HasPrefix(first, "$") {
			for _, item := range doc.All() {
				if item.IsNumber() || item.Type == bson.TypeBoolean {
					return srverr.New(17390, "$group does not support inclusion-style expressions")
				}
			}
		}
		if n == 1 && !strings.HasPrefix(first, "$") {
			for key, item := range doc.All() {
				if err := expr.CheckFieldName(key, g.rt.o.Version); err != nil {
					return err
				}
				e, err := expr.Parse(item, s)
				if err != nil {
					return err
				}
				g.idField, g.id = key, e
			}
			return nil
		}
	}
	e, err := expr.Parse(v, s)
	g.id = e
	return err
}

func (g *groupStage) optimize(env *expr.Env) (err error) {
	if g.id, err = expr.Optimize(g.id, env); err != nil {
		return err
	}
	for _, f := range g.fields {
		if err := f.Optimize(env); err != nil {
			return err
		}
	}
	return nil
}

// key computes a document's group.
func (g *groupStage) key(doc bson.Raw) (bson.RawValue, error) {
	v, err := expr.Eval(g.id, g.rt.state.WithRoot(doc))
	if err != nil {
		return v, err
	}
	if v.Type == 0 {
		v = bson.RawValue{Type: bson.TypeNull}
	}
	if g.idField == "" {
		return v, nil
	}
	start, dst := bson.BeginDocument(nil)
	return bsondoc.DocumentValue(bson.EndDocument(bson.AppendRawValue(dst, g.idField, v), start)), nil
}

// newAccumulators makes a row of empty accumulators for a group.
func newAccumulators(rt *runtime, specs []*expr.AccumulatorSpec, key bson.RawValue) ([]expr.Accumulator, error) {
	start, dst := bson.BeginDocument(nil)
	rt.state.WithRoot(bson.EndDocument(bson.AppendRawValue(dst, "_id", key), start))
	out := make([]expr.Accumulator, len(specs))
	for i, spec := range specs {
		var err error
		if out[i], err = spec.NewAccumulator(rt.state); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rowSize is about what an accumulator takes that collects nothing.
const rowSize = 64

// accumulate feeds accumulators with a document, and returns how much of it they keep.
func accumulate(rt *runtime, specs []*expr.AccumulatorSpec, accs []expr.Accumulator,
	doc bson.Raw) (kept int, err error) {
	rt.state.WithRoot(doc)
	for i, spec := range specs {
		v, err := spec.Argument(rt.state)
		if err != nil {
			return 0, err
		}
		if err := accs[i].Add(v); err != nil {
			return 0, err
		}
		if spec.Collects() {
			kept += len(v.Value)
		}
	}
	return kept, nil
}

// appendResults appends the accumulators' values as shown makes them, if it is not nil; missing
// ones are null.
func appendResults(dst []byte, names []string, accs []expr.Accumulator,
	shown func(i int, v bson.RawValue) bson.RawValue) ([]byte, error) {
	for i, acc := range accs {
		v, err := acc.Value()
		if err != nil {
			return nil, err
		}
		if v.Type == 0 {
			v = bson.RawValue{Type: bson.TypeNull}
		}
		if shown != nil {
			v = shown(i, v)
		}
		dst = bson.AppendRawValue(dst, names[i], v)
	}
	return dst, nil
}

func (g *groupStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) {
		docs, err := g.run(src, g.key)
		g.rt.env.Meta = nil // a group has none
		return docs, err
	}}, nil
}

// coded gives an error the code that the engine has for it which reads collections and groups what
// it reads. Elsewhere expressions have codes of their own.
func (g *groupStage) coded(err error) error {
	if !g.engine {
		return err
	}
	e := srverr.From(err)
	code := map[int32]int32{5787902: 7548606, 5787903: 7548606, 5787908: 7548606, 16610: 4848403, 5733415: 4848403,
		40400: 5911200}[e.Code]
	if e.Code == srverr.BadValue && e.Msg == expr.DivideByZero {
		code = 4848401
	}
	if code == 0 {
		return err
	}
	return srverr.New(code, "%s", e.Msg)
}

// beforeEngineGroup are the stages behind which that engine still groups.
var beforeEngineGroup = map[string]bool{"$match": true, "$sort": true, "$group": true, "$lookup": true}

// noteEngine tells the last stage, if it groups, whether that engine does it.
func (pl *Pipeline) noteEngine(p *parser) {
	var g *groupStage
	switch st := pl.stages[len(pl.stages)-1].stage.(type) {
	case *groupStage:
		g = st
	case *bucketStage:
		g = st.groupStage
	default:
		return
	}
	g.engine = p.within == "" && p.ns.Coll != "" && p.rt.o.Version.AllParsed()
	for _, st := range pl.stages[:len(pl.stages)-1] {
		g.engine = g.engine && beforeEngineGroup[st.def.name]
	}
}

// noteHanded tells the groups of that engine whether stages follow which it does not do.
func (pl *Pipeline) noteHanded() {
	for i, st := range pl.stages[:max(len(pl.stages)-1, 0)] {
		g, ok := st.stage.(*groupStage)
		if b, isBucket := st.stage.(*bucketStage); isBucket {
			g, ok = b.groupStage, true
		}
		if !ok || !g.engine {
			continue
		}
		switch next := pl.stages[i+1].stage.(type) {
		case *groupStage:
			g.handed = !next.engine
		case *bucketStage:
			g.handed = !next.engine
		case *lookupStage:
		default:
			g.handed = true
		}
	}
}

// handedOn returns what other stages get of a value that the engine made: minKey and maxKey in a
// document, and a string of code. In an array that it made it is so of each item.
func (g *groupStage) handedOn(v bson.RawValue, made bool) bson.RawValue {
	if !g.handed {
		return v
	}
	switch v.Type {
	case bson.TypeMinKey, bson.TypeMaxKey:
		start, dst := bson.BeginDocument(nil)
		return bsondoc.DocumentValue(bson.EndDocument(bson.AppendRawValue(dst, "", v), start))
	case bson.TypeJavaScript:
		return bson.RawValue{Type: bson.TypeString, Value: v.Value}
	case bson.TypeArray:
		if !made {
			break
		}
		start, dst := bson.BeginDocument(nil)
		i := 0
		for item := range bson.Raw(v.Value).Values() {
			item = g.handedOn(item, false)
			dst = append(bson.AppendIndexHeader(dst, item.Type, i), item.Value...)
			i++
		}
		return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}
	}
	return v
}

// run groups the input by what keyOf computes.
func (g *groupStage) run(src Iterator, keyOf func(bson.Raw) (bson.RawValue, error)) ([]bson.Raw, error) {
	groups := expr.NewGroups(g.rt.env)
	var rows [][]expr.Accumulator
	size := 0
	for {
		doc, err := src.Next()
		if err != nil {
			return nil, err
		}
		if doc == nil {
			break
		}
		key, err := keyOf(doc)
		if err != nil {
			return nil, g.coded(err)
		}
		i, added := groups.Index(key)
		if added {
			accs, err := newAccumulators(g.rt, g.fields, key)
			if err != nil {
				return nil, g.coded(err)
			}
			rows = append(rows, accs)
			size += len(key.Value) + rowSize*len(accs)
		}
		n, err := accumulate(g.rt, g.fields, rows[i], doc)
		if err != nil {
			return nil, g.coded(err)
		}
		if size += n; size > stageLimit && !g.rt.o.AllowDiskUse || size > memoryLimit {
			return nil, srverr.New(srverr.QueryExceededMemoryLimitNoDiskUseAllowed,
				"Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.")
		}
	}
	var out []bson.Raw
	for i, key := range groups.Keys() {
		if err := g.rt.interrupted(); err != nil {
			return nil, err
		}
		start, dst := bson.BeginDocument(nil)
		dst = bson.AppendRawValue(dst, "_id", g.handedOn(key, false))
		dst, err := appendResults(dst, g.names, rows[i], func(j int, v bson.RawValue) bson.RawValue {
			return g.handedOn(v, g.fields[j].Collects())
		})
		if err != nil {
			return nil, err
		}
		out = append(out, bson.EndDocument(dst, start))
	}
	return out, nil
}
