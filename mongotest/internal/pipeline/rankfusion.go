package pipeline

// $rankFusion: several searches of one collection, combined by the ranks of what they find.

import (
	"cmp"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$rankFusion", parse: one(parseRankFusion), precheck: checkRankFusion, first: true, notInFacet: true, notV1: true,
		pipelines: "input.pipelines.*", refuses: refusedByRankFusion, at: elsewhere})
}

// rankConstant is what the manual's formula adds to each rank, so that the first ranks do not
// outweigh all others.
const rankConstant = 60

const rankDescription = "value output by reciprocal rank fusion algorithm, computed as sum of (weight * (1 / (60 + rank))) across input pipelines from which this document is output, from:"

// rankFusionStage is $rankFusion. The codes of its refusals are those of no recording.
type rankFusionStage struct {
	rt      *runtime
	ns      Namespace
	inputs  []rankedInput // in the order of their names, in which their scores are added
	details bool
}

// rankedInput is an input pipeline.
type rankedInput struct {
	name   string
	weight float64
	sub    *Pipeline
}

func refusedByRankFusion(inner *stageDef) error {
	if inner.selects {
		return nil
	}
	return srverr.New(9191103, "%s is not allowed within an input pipeline of $rankFusion, which must select documents and not change them", inner.name)
}

// rankFusionParts reads the specification as far as its shape goes.
func rankFusionParts(v bson.RawValue) (pipelines, weights bson.Raw, details bool, err error) {
	doc, ok := v.Document()
	if !ok {
		return nil, nil, false, srverr.New(srverr.FailedToParse, "$rankFusion spec must be an object, got %s", typeName(v))
	}
	outer, details, err := rankFusionFields("$rankFusion", doc, "scoreDetails", "input", "combination")
	if err != nil {
		return nil, nil, false, err
	}
	if outer["input"] == nil {
		return nil, nil, false, args.MissingField("$rankFusion.input")
	}
	inner, _, err := rankFusionFields("$rankFusion.input", outer["input"], "", "pipelines")
	if err != nil {
		return nil, nil, false, err
	}
	if pipelines = inner["pipelines"]; pipelines == nil {
		return nil, nil, false, args.MissingField("$rankFusion.input.pipelines")
	}
	inner, _, err = rankFusionFields("$rankFusion.combination", outer["combination"], "", "weights")
	return pipelines, inner["weights"], details, err
}

// rankFusionFields returns the fields of a document that are documents, and the one that is a flag,
// and refuses all others.
func rankFusionFields(path string, doc bson.Raw, flag string, documents ...string) (found map[string]bson.Raw, set bool, err error) {
	found = map[string]bson.Raw{}
	for key, item := range doc.All() {
		inner, ok := item.Document()
		switch {
		case key == flag && item.Type != bson.TypeBoolean:
			return nil, false, args.WrongType(path+"."+key, item.Type, "bool")
		case key == flag:
			set = item.AsBool()
		case !slices.Contains(documents, key):
			return nil, false, args.UnknownField(path + "." + key)
		case !ok:
			return nil, false, args.WrongType(path+"."+key, item.Type, "object")
		case found[key] != nil:
			return nil, false, args.DuplicateField(path + "." + key)
		default:
			found[key] = inner
		}
	}
	return found, set, nil
}

func checkRankFusion(p *parser, _ string, v bson.RawValue) error {
	pipelines, _, _, err := rankFusionParts(v)
	if err != nil {
		return err
	}
	for name, item := range pipelines.All() {
		if item.Type != bson.TypeArray {
			return args.WrongType("$rankFusion.input.pipelines."+name, item.Type, "array")
		}
		if err := p.checkNames(item); err != nil {
			return err
		}
	}
	return nil
}

func parseRankFusion(p *parser, _ string, v bson.RawValue) (*rankFusionStage, error) {
	pipelines, weights, details, err := rankFusionParts(v)
	if err != nil {
		return nil, err
	}
	f := &rankFusionStage{rt: p.rt, ns: p.ns, details: details}
	for name, item := range pipelines.All() {
		if name == "" || name[0] == '$' || strings.ContainsAny(name, ".\x00") {
			return nil, srverr.New(srverr.BadValue, "$rankFusion pipeline names must not be empty, begin with '$', or contain '.' or a null byte, but found '%s'", name)
		}
		if slices.ContainsFunc(f.inputs, func(in rankedInput) bool { return in.name == name }) {
			return nil, srverr.New(srverr.BadValue, "$rankFusion pipeline names must be unique, but found duplicate pipeline name '%s'", name)
		}
		stages, err := StagesOf(item)
		if err != nil {
			return nil, err
		}
		sub, err := p.sub("$rankFusion", p.ns, p.scope).pipeline(stages)
		if err != nil {
			return nil, err
		}
		if !sub.ranked() {
			return nil, srverr.New(9191100, "$rankFusion input pipeline '%s' is not ranked: it must begin with $search, $vectorSearch or $geoNear, or have a $sort", name)
		}
		f.inputs = append(f.inputs, rankedInput{name, 1, sub})
	}
	if len(f.inputs) == 0 {
		return nil, srverr.New(srverr.FailedToParse, "$rankFusion must have at least one input pipeline")
	}
	for name, w := range weights.All() {
		i := slices.IndexFunc(f.inputs, func(in rankedInput) bool { return in.name == name })
		if i < 0 {
			return nil, srverr.New(srverr.BadValue, "$rankFusion.combination.weights names '%s', which is no input pipeline", name)
		}
		weight := expr.ToDouble(w)
		if !w.IsNumber() || !(weight >= 0) {
			return nil, srverr.New(srverr.BadValue, "$rankFusion.combination.weights.%s must be a non-negative number", name)
		}
		f.inputs[i].weight = weight
	}
	slices.SortFunc(f.inputs, func(a, b rankedInput) int { return strings.Compare(a.name, b.name) })
	return f, nil
}

// ranked reports whether the order of the pipeline's documents means something.
func (pl *Pipeline) ranked() bool {
	return slices.ContainsFunc(pl.stages, func(st parsedStage) bool { return st.def.ranks })
}

func (*rankFusionStage) isSource() {}

func (f *rankFusionStage) makes(meta string) bool {
	return meta == "score" || meta == "scoreDetails" && f.details
}

func (f *rankFusionStage) optimize(*expr.Env) error {
	for _, in := range f.inputs {
		if err := in.sub.optimize(); err != nil {
			return err
		}
	}
	return nil
}

// fused is a document that an input pipeline found.
type fused struct {
	hit
	id    bson.RawValue
	score float64
	ranks []int    // by input, from 1; 0 where it was not found
	metas []metaOf // what each input knows of it
}

func (f *rankFusionStage) open(src Iterator) (Iterator, error) {
	return &keeper{src: src, rt: f.rt, fill: f.fuse}, nil
}

func (f *rankFusionStage) fuse() ([]hit, error) {
	var all []*fused
	byID := map[string]*fused{}
	for i, in := range f.inputs {
		it, err := in.sub.runOn(f.ns, nil)
		if err != nil {
			return nil, err
		}
		rows, err := f.rt.hits(it)
		if err != nil {
			return nil, err
		}
		for rank, row := range rows {
			id := row.doc.Lookup("_id")
			key := string(append([]byte{byte(id.Type)}, id.Value...))
			d := byID[key]
			if d == nil {
				d = &fused{hit: hit{doc: row.doc}, id: id, ranks: make([]int, len(f.inputs)), metas: make([]metaOf, len(f.inputs))}
				byID[key], all = d, append(all, d)
			}
			d.ranks[i], d.metas[i] = rank+1, row.meta
			d.score += in.weight / float64(rankConstant+rank+1)
		}
	}
	slices.SortStableFunc(all, func(a, b *fused) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return query.Compare(a.id, b.id, nil)
	})
	out := make([]hit, len(all))
	for i, d := range all {
		d.meta = withMeta(nil, "score", bsondoc.DoubleValue(d.score))
		if f.details {
			d.meta = withMeta(d.meta, "scoreDetails", bsondoc.DocumentValue(f.explain(d)))
		}
		out[i] = d.hit
	}
	return out, nil
}

// explain returns a document's scoreDetails.
func (f *rankFusionStage) explain(d *fused) bson.Raw {
	list := make([]bson.RawValue, len(f.inputs))
	for i, in := range f.inputs {
		rank := bsondoc.StringValue("NA")
		if d.ranks[i] > 0 {
			rank = bsondoc.Int32Value(int32(d.ranks[i]))
		}
		list[i] = bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
			b.B = bsondoc.Append(b.B, "inputPipelineName", in.name, "rank", rank, "weight", in.weight)
			if v := metaValue(d.metas[i], "score"); v.Type != 0 {
				b.B = bsondoc.Append(b.B, "value", v)
			}
			b.B = bsondoc.Append(b.B, "details", inputDetails(d.metas[i]))
		}))
	}
	return bsondoc.Of("value", d.score, "description", rankDescription, "details", bsondoc.ArrayValue(list...))
}

// metaValue returns a kind of metadata, missing where there is none.
func metaValue(meta metaOf, name string) bson.RawValue {
	if meta == nil {
		return bson.RawValue{}
	}
	return meta(name)
}

// inputDetails is what an input pipeline tells of a document's score.
func inputDetails(meta metaOf) bson.RawValue {
	v := metaValue(meta, "scoreDetails")
	if doc, ok := v.Document(); ok {
		if list := doc.Lookup("details"); list.Type == bson.TypeArray {
			return list
		}
	}
	return bsondoc.ArrayValue()
}
