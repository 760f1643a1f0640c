package pipeline

// $rankFusion: several searches of one collection, combined by the ranks of what they find.

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$rankFusion", parse: one(parseRankFusion), precheck: checkRankFusion, first: true,
		notV1:     true,
		pipelines: "input.pipelines.*", refuses: refusedBy("$rankFusion", 9191103), at: elsewhere})
}

// rankConstant is what the manual's formula adds to each rank, so that the first ranks do not
// outweigh all others.
const rankConstant = 60

const rankDescription = "value output by reciprocal rank fusion algorithm, computed as sum of (weight * (1 / (60 + rank))) across input pipelines from which this document is output, from:"

// rankFusionStage is $rankFusion.
type rankFusionStage struct{ fusion }

// rankFusionParts reads the specification as far as its shape goes.
func rankFusionParts(v bson.RawValue) (pipelines, weights bson.Raw, details bool, err error) {
	doc, ok := v.Document()
	if !ok {
		return nil, nil, false,
			srverr.New(srverr.FailedToParse, "$rankFusion spec must be an object, got %s", typeName(v))
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
	if err == nil && outer["combination"] != nil && inner["weights"] == nil {
		err = args.MissingField("$rankFusion.combination.weights")
	}
	return pipelines, inner["weights"], details, err
}

// rankFusionFields returns the fields of a document that are documents, and the one that is a flag,
// and refuses all others.
func rankFusionFields(path string, doc bson.Raw, flag string,
	documents ...string) (found map[string]bson.Raw, set bool, err error) {
	found = map[string]bson.Raw{}
	for key, item := range doc.All() {
		inner, ok := item.Document()
		switch {
		case args.IsNull(item) && (key == flag || slices.Contains(documents, key)):
			continue // as if it were not there
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
	return checkInputs(p, "$rankFusion", pipelines)
}

func parseRankFusion(p *parser, _ string, v bson.RawValue) (*rankFusionStage, error) {
	pipelines, weights, details, err := rankFusionParts(v)
	if err != nil {
		return nil, err
	}
	f, err := parseFusion(p, "$rankFusion", pipelines, weights, details, func(in fusionInput) error {
		if in.sub.ranked() {
			return nil
		}
		return srverr.New(
			9191100, "$rankFusion input pipeline '%s' is not ranked: it must begin with $search, $vectorSearch or $geoNear, or have a $sort", in.name)
	})
	return &rankFusionStage{f}, err
}

// ranked reports whether the order of the pipeline's documents means something.
func (pl *Pipeline) ranked() bool {
	return slices.ContainsFunc(pl.stages, func(st parsedStage) bool { return st.def.ranks })
}

// ties returns what tells whether a document has the rank of the one before it: those that the last
// $sort does not order have, and others that have the same score.
func (pl *Pipeline) ties() func(a, b hit) (bool, error) {
	for _, st := range slices.Backward(pl.stages) {
		s, ok := st.stage.(*sortStage)
		if !ok {
			continue
		}
		return func(a, b hit) (bool, error) {
			left, err := s.sort.Key(a.doc, a.meta)
			if err != nil {
				return false, err
			}
			right, err := s.sort.Key(b.doc, b.meta)
			return err == nil && s.sort.CompareKeys(left, right) == 0, err
		}
	}
	return func(a, b hit) (bool, error) {
		left, right := metaValue(a.meta, "score"), metaValue(b.meta, "score")
		return left.Type != 0 && query.Compare(left, right, nil) == 0, nil
	}
}

func (f *rankFusionStage) open(src Iterator) (Iterator, error) {
	return &keeper{src: src, rt: f.rt, fill: f.fuse}, nil
}

func (f *rankFusionStage) fuse() ([]hit, error) {
	all, err := f.candidates(func(in fusionInput, found []finding) {
		for i := range found {
			found[i].value = in.weight / float64(rankConstant+found[i].rank)
		}
	})
	for _, c := range all {
		for _, by := range c.found {
			c.score += by.value
		}
	}
	return f.ordered(all, f.explain), err
}

// explain returns a document's scoreDetails.
func (f *rankFusionStage) explain(c *candidate) bson.Raw {
	list := make([]bson.RawValue, len(f.inputs))
	for i, in := range f.inputs {
		by := c.found[i]
		rank := bsondoc.StringValue("NA")
		if by.rank > 0 {
			rank = bsondoc.Int32Value(int32(by.rank))
		}
		list[i] = bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
			b.B = bsondoc.Append(b.B, "inputPipelineName", in.name, "rank", rank)
			if by.rank == 0 {
				return
			}
			b.B = bsondoc.Append(b.B, "weight", in.weight)
			if v := metaValue(by.meta, "score"); v.Type != 0 {
				b.B = bsondoc.Append(b.B, "value", v)
			}
			b.B = bsondoc.Append(b.B, "details", inputDetails(by.meta))
		}))
	}
	return bsondoc.Of("value", c.score, "description", rankDescription, "details", bsondoc.ArrayValue(list...))
}
