package pipeline

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Parsing: from the documents of a command to stages whose positions are checked, and then to what
// runs: constants computed, stages moved towards the front.

func optimizeError(err error) error {
	return srverr.From(err).Prefix("Failed to optimize pipeline :: caused by :: ")
}

// parser is the state of parsing one (sub-)pipeline.
type parser struct {
	rt    *runtime
	scope *expr.Scope
	ns    Namespace
	// within names the stage that holds this sub-pipeline, "" at the top.
	within string
	// faceted says that a $facet holds it, perhaps over other sub-pipelines.
	faceted bool
}

// newRuntime prepares the environment that the options describe.
func newRuntime(o *Options) (*parser, error) {
	env := &expr.Env{Version: o.Version, Now: o.Now, ClusterTime: o.ClusterTime, UserRoles: o.UserRoles, Rand: o.Rand,
		Check: o.Check, Validator: o.Validator, NoTimes: o.NoTimes, NoClusterTime: o.NoClusterTime}
	if o.Collation != nil {
		env.Compare = func(a, b bson.RawValue) int { return query.Compare(a, b, o.Collation) }
	}
	rt := &runtime{o: o, env: env, state: expr.NewState(env)}
	if o.Script != nil {
		env.Script = o.Script(o.Check)
	}
	rt.query = &query.Options{Collation: o.Collation, Version: o.Version, NoWhere: true, Work: work.New(o.Check)}
	env.ParseSort = func(spec bson.Raw) (expr.Sorter, error) {
		s, err := query.ParseSort(spec, rt.query)
		if err != nil {
			return nil, err
		}
		if s == nil {
			return nil, srverr.New(15976, "$sort stage must have at least one sort key")
		}
		return s, nil
	}
	rt.scope = expr.NewScope(env)
	p := &parser{rt: rt, scope: rt.scope, ns: o.NS}
	for name, v := range o.Let.All() {
		if err := expr.CheckLetName(name, o.Version); err != nil {
			return nil, err
		}
		env.Let = true
		e, err := expr.Parse(v, p.scope)
		env.Let = false
		if err != nil {
			return nil, err
		}
		value, err := expr.Eval(e, rt.state)
		if err != nil {
			return nil, err
		}
		var slot expr.Slot
		p.scope, slot = p.scope.Define(name)
		rt.state.Set(slot, value)
	}
	return p, nil
}

// StagesOf returns the documents of the array that a command has as its pipeline.
func StagesOf(v bson.RawValue) ([]bson.Raw, error) {
	array, ok := v.Array()
	if !ok {
		return nil, srverr.New(srverr.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	var out []bson.Raw
	for item := range array.Values() {
		doc, ok := item.Document()
		if !ok {
			return nil, srverr.New(srverr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		out = append(out, doc)
	}
	return out, nil
}

// Parse parses and checks a pipeline and computes what is constant in it.
func Parse(stages []bson.Raw, o *Options) (_ *Pipeline, err error) {
	defer work.Catch(&err)
	p, err := newRuntime(o)
	if err != nil {
		return nil, err
	}
	if o.View != "" {
		if err := p.glance(stages); err != nil {
			return nil, err
		}
	}
	pl, err := p.pipeline(stages)
	if err == nil && o.View != "" {
		err = pl.checkView(o.View)
	}
	if err != nil {
		if o.View != "" {
			err = srverr.From(err).Prefix("Invalid pipeline for view " + o.View + " :: caused by :: ")
		}
		return nil, err
	}
	if err := pl.optimize(); err != nil {
		return pl, err
	}
	return pl, pl.checkMeta()
}

// checkView refuses the stages that a view cannot have.
func (pl *Pipeline) checkView(view string) error {
	for _, st := range pl.stages {
		switch name := st.def.name; name {
		case "$out", "$merge":
			return srverr.New(srverr.OptionNotSupportedOnView,
				"The aggregation stage %s in location %d of the pipeline cannot be used in the view definition of %s because it writes to disk", name, st.index, view)
		case "$changeStream":
			return srverr.New(srverr.OptionNotSupportedOnView, "$changeStream cannot be used in a view definition")
		}
	}
	return nil
}

// maxSubPipelines is how deep pipelines nest in others.
const maxSubPipelines = 20

func errNesting() error {
	return srverr.New(srverr.MaxSubPipelineDepthExceeded,
		"Maximum number of nested sub-pipelines exceeded. Limit is %d", maxSubPipelines)
}

// maxStages is the server's limit on the length of a pipeline.
const maxStages = 1000

// pipeline parses a (sub-)pipeline without optimizing it.
func (p *parser) pipeline(stages []bson.Raw) (*Pipeline, error) {
	if p.rt.o.Version.AtLeast(4, 9) && len(stages) > maxStages {
		code := int32(srverr.FailedToParse)
		if p.rt.o.Version.AllParsed() {
			code = 7749501
		}
		return nil, srverr.New(code, "Pipeline length must be no longer than %d stages", maxStages)
	}
	if p.rt.depth++; p.rt.depth > maxSubPipelines+1 {
		return nil, errNesting()
	}
	defer func() { p.rt.depth-- }()
	if err := p.glance(stages); err != nil {
		return nil, err
	}
	for _, doc := range stages {
		if def, err := p.lookupStage(doc); p.rt.o.InTxn && err == nil && def.noTxn == refusedEarly {
			return nil, srverr.New(srverr.OperationNotSupportedInTransaction,
				"Operation not permitted in transaction :: caused by :: Aggregation stage %s cannot run within a multi-document transaction.", def.name)
		}
	}
	pl := &Pipeline{rt: p.rt, depth: p.rt.depth}
	outer := p.rt.env.WantsMeta
	p.rt.env.WantsMeta = nil
	defer func() { p.rt.env.WantsMeta = outer }()
	for i, doc := range stages {
		def, err := p.lookupStage(doc)
		if err != nil {
			return nil, err
		}
		if p.rt.o.InTxn && def.noTxn == refusedInParse {
			return nil, srverr.New(srverr.OperationNotSupportedInTransaction, "%s cannot be used in a transaction",
				def.name)
		}
		for _, v := range doc.All() {
			parsed, err := def.parse(p, def.name, v)
			if err != nil {
				return nil, err
			}
			parts := expanded(doc)
			for k, st := range parsed {
				written := doc
				if len(parts) == len(parsed) {
					written = parts[k]
				}
				pl.stages = append(pl.stages, parsedStage{def, i, written, st})
				pl.noteMeta()
				pl.noteEngine(p)
			}
			break
		}
	}
	if p.within == "" && p.rt.o.NS.Coll == "" && !p.rt.update {
		if err := p.checkCollectionless(stages); err != nil {
			return nil, err
		}
	}
	pl.dropBeforeGeoNear()
	pl.noteHanded()
	return pl, pl.checkPositions(p)
}

// dropBeforeGeoNear removes stages that do nothing from before a $geoNear, which has to be the
// first one after the server's optimization.
func (pl *Pipeline) dropBeforeGeoNear() {
	at := slices.IndexFunc(pl.stages, func(st parsedStage) bool { return st.def.name == "$geoNear" })
	if at <= 0 || !pl.rt.o.Version.AllParsed() {
		return
	}
	for _, st := range pl.stages[:at] {
		switch s := st.stage.(type) {
		case *matchStage:
			if !s.doc.IsEmpty() {
				return
			}
		case *skipStage:
			if s.n != 0 {
				return
			}
		default:
			return
		}
	}
	pl.stages = pl.stages[at:]
	for i := range pl.stages {
		pl.stages[i].index -= at
	}
}

// glance finds what the server reports before it parses any stage: a name that it does not know
// comes first.
func (p *parser) glance(stages []bson.Raw) error {
	for _, doc := range stages {
		def, err := p.lookupStage(doc)
		if err != nil {
			return err
		}
		if def.precheck != nil {
			for _, v := range doc.All() {
				if err := def.precheck(p, def.name, v); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// CheckStage says what a server of a version sees in a stage at first glance, before it parses the
// pipeline: that it names one stage, which exists.
func CheckStage(doc bson.Raw, v expr.Version) error {
	_, err := stageOf(doc, v)
	return err
}

func (p *parser) lookupStage(doc bson.Raw) (*stageDef, error) { return stageOf(doc, p.rt.o.Version) }

func stageOf(doc bson.Raw, v expr.Version) (*stageDef, error) {
	name, n := "", 0
	for key := range doc.All() {
		if n++; n == 1 {
			name = key
		}
	}
	if n != 1 {
		return nil, srverr.New(40323, "A pipeline stage specification object must contain exactly one field.")
	}
	def, ok := stages[name]
	if !ok || !v.Has(release.Stage, name) {
		return nil, srverr.New(40324, "Unrecognized pipeline stage name: '%s'%s", name,
			v.NotBuiltNote(release.Stage, name))
	}
	return def, nil
}

// checkCollectionless checks a pipeline of {aggregate: 1}.
func (p *parser) checkCollectionless(stages []bson.Raw) error {
	if len(stages) == 0 {
		return srverr.New(srverr.InvalidNamespace, "{aggregate: 1} is not valid for an empty pipeline.")
	}
	def, err := p.lookupStage(stages[0])
	if err != nil {
		return err
	}
	if !def.collectionless {
		name := def.name
		if def.made != "" {
			name = def.made
		}
		return srverr.New(srverr.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.",
			name)
	}
	return nil
}

// setsFields reports whether a $fill, or another stage that stands for several, is here no more
// than an $addFields.
func setsFields(s stage) bool {
	p, ok := s.(*projection)
	return ok && p.kind == addition
}

// checkPositions checks the rules about where in a pipeline a stage may stand.
func (pl *Pipeline) checkPositions(p *parser) error {
	for i, st := range pl.stages {
		def := st.def
		switch {
		case st.index > 0 && pl.stages[0].def.name == "$changeStream" && !def.changeStream && !setsFields(st.stage):
			name := def.name
			if def.made != "" {
				name = def.made
			}
			return srverr.New(srverr.IllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
		case p.rt.o.InTxn && def.noTxn == refusedInPlace:
			return srverr.New(srverr.OperationNotSupportedInTransaction,
				"Stage not supported inside of a multi-document transaction: %s", def.name)
		case p.faceted && def.notInFacet && p.rt.o.Version.AllParsed() && (p.within == "$facet" || !def.notInLookup):
			return outsideFacet(def.name)
		case fuses(p.within) && addsFields(st.stage): // as what does not select
			return stages[p.within].refuses(&stageDef{name: def.name})
		case st.index > 0 && (def.name == "$rankFusion" || def.name == "$scoreFusion"):
			return notFirstFusion(def.name)
		case def.first && st.index > 0:
			if p.rt.o.Version.AllParsed() && def.name == "$geoNear" {
				return srverr.New(40603,
					"$geoNear was not the first stage in the pipeline after optimization. Is optimization disabled or inhibited?")
			}
			if p.rt.o.Version.AtLeast(5, 0) {
				return srverr.New(40602, "%s is only valid as the first stage in a pipeline", def.name)
			}
			return srverr.New(40602, "%s is only valid as the first stage in a pipeline.", def.name)
		}
		if outer := stages[p.within]; outer != nil && outer.refuses != nil {
			if err := outer.refuses(def); err != nil {
				return err
			}
		}
		if def.last && i < len(pl.stages)-1 && pl.stages[i+1].index != st.index {
			return srverr.New(40601, "%s can only be the final stage in the pipeline", def.name)
		}
		if f, ok := st.stage.(*matchStage); ok && f.filter.NeedsTextIndex() {
			switch {
			case i > 0:
				return srverr.New(17313, "$match with $text is only allowed as the first pipeline stage")
			case p.within == "$facet": // what it reads is no collection
				return outsideFacet(def.name)
			}
		}
	}
	return nil
}

// optimize computes constants; the errors have the prefix of the whole pipeline's optimization.
func (pl *Pipeline) optimize() error {
	if err := pl.fold(); err != nil {
		return optimizeError(err)
	}
	return nil
}

// fold is optimize without the prefix.
func (pl *Pipeline) fold() error {
	pl.move()
	pl.linkHoles()
	for _, st := range pl.stages {
		if o, ok := st.stage.(optimizer); ok {
			if err := o.optimize(pl.rt.env); err != nil {
				return err
			}
		}
	}
	return nil
}
