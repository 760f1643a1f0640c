package pipeline

// What $rankFusion and $scoreFusion share: input pipelines with names and weights, and documents
// that are found by several of them and come out once.

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

// fusion is what both stages have. The codes of their refusals are those of no recording.
type fusion struct {
	rt      *runtime
	ns      Namespace
	inputs  []fusionInput // in the order of their names, in which their scores are added
	details bool
}

// fusionInput is an input pipeline.
type fusionInput struct {
	name   string
	weight float64
	sub    *Pipeline
	slot   expr.Slot // its score in an expression
}

// refusedBy returns a stage's rule for what stands within its input pipelines.
func refusedBy(name string, code int32) func(*stageDef) error {
	return func(inner *stageDef) error {
		if inner.selects {
			return nil
		}
		return srverr.New(
			code, "%s is not allowed within an input pipeline of %s, which must select documents and not change them",
			inner.name, name)
	}
}

// fuses reports whether a stage combines what its sub-pipelines select.
func fuses(stage string) bool { return stage == "$rankFusion" || stage == "$scoreFusion" }

// addsFields reports whether a stage that selects documents adds fields to them.
func addsFields(s stage) bool {
	g, ok := s.(*geoNearStage)
	return ok && (g.distance != nil || g.locs != nil)
}

// checkInputs looks at the names of the stages of input pipelines, before anything is parsed.
func checkInputs(p *parser, name string, pipelines bson.Raw) error {
	for key, item := range pipelines.All() {
		if item.Type != bson.TypeArray {
			return args.WrongType(name+".input.pipelines."+key, item.Type, "array")
		}
		if err := p.checkNames(item); err != nil {
			return err
		}
		list, _ := StagesOf(item)
		for i, doc := range list {
			inner, _ := p.lookupStage(doc)
			switch {
			case inner.name != "$rankFusion" && inner.name != "$scoreFusion":
				if err := stages[name].refuses(inner); err != nil {
					return err
				}
			case i > 0:
				return notFirstFusion(inner.name)
			default:
				return srverr.New(10473002, "%s is not allowed within an input pipeline of %s", inner.name, name)
			}
		}
	}
	return nil
}

func notFirstFusion(name string) error {
	return srverr.New(10170100, "%s is only valid as the first stage in a pipeline", name)
}

// parseFusion parses input pipelines and their weights. unfit is the error of a pipeline that this
// stage has no use for.
func parseFusion(p *parser, name string, pipelines, weights bson.Raw, details bool,
	unfit func(in fusionInput) error) (fusion, error) {
	f := fusion{rt: p.rt, ns: p.ns, details: details}
	named := func(key string) int {
		return slices.IndexFunc(f.inputs, func(in fusionInput) bool { return in.name == key })
	}
	for key, item := range pipelines.All() {
		if err := expr.CheckFieldName(key, p.rt.o.Version); err != nil {
			return f, err
		}
		if named(key) >= 0 {
			return f, srverr.New(srverr.BadValue,
				"%s pipeline names must be unique, but found duplicate pipeline name '%s'", name, key)
		}
		stages, err := StagesOf(item)
		if err != nil {
			return f, err
		}
		if len(stages) == 0 {
			return f, srverr.New(9834300, "%s input pipeline '%s' must not be empty", name, key)
		}
		sub, err := p.sub(name, p.ns, p.scope).pipeline(stages)
		if err != nil {
			return f, err
		}
		in := fusionInput{name: key, weight: 1, sub: sub}
		if err := unfit(in); err != nil {
			return f, err
		}
		f.inputs = append(f.inputs, in)
	}
	if len(f.inputs) == 0 {
		return f, srverr.New(srverr.BadValue, "%s must have at least one input pipeline", name)
	}
	n := 0
	for range weights.All() {
		n++
	}
	if n > len(f.inputs) {
		return f, srverr.New(9460301, "%s.combination.weights has %d weights for %d input pipelines", name, n,
			len(f.inputs))
	}
	for key, w := range weights.All() {
		i := named(key)
		if i < 0 {
			return f, srverr.New(9967500, "%s.combination.weights names '%s', which is no input pipeline", name,
				key)
		}
		weight := expr.ToDouble(w)
		if !w.IsNumber() {
			return f, srverr.New(13118, "%s.combination.weights.%s must be a number, not of type %s", name, key,
				typeName(w))
		}
		if !(weight >= 0) {
			return f, srverr.New(9460300, "%s.combination.weights.%s must be a non-negative number", name, key)
		}
		f.inputs[i].weight = weight
	}
	slices.SortFunc(f.inputs, func(a, b fusionInput) int { return strings.Compare(a.name, b.name) })
	return f, nil
}

func (*fusion) isSource() {}

func (f *fusion) makes(meta string) bool {
	return meta == "score" || meta == "scoreDetails" && f.details
}

func (f *fusion) optimize(*expr.Env) error {
	for _, in := range f.inputs {
		if err := in.sub.optimize(); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a document that input pipelines found.
type candidate struct {
	hit
	id    bson.RawValue
	score float64
	found []finding // by input
}

// finding is what an input pipeline says of a document.
type finding struct {
	rank       int     // from 1; 0: it was not found
	raw, value float64 // the score, and what of it counts
	meta       metaOf
}

// candidates runs the input pipelines. rate is given what each of them has found, in its order, and
// fills in the scores.
func (f *fusion) candidates(rate func(in fusionInput, found []finding)) ([]*candidate, error) {
	var all []*candidate
	byID := map[string]*candidate{}
	for i, in := range f.inputs {
		it, err := in.sub.runOn(f.ns, nil)
		if err != nil {
			return nil, err
		}
		rows, err := f.rt.hits(it)
		if err != nil {
			return nil, err
		}
		found := make([]finding, len(rows))
		same := in.sub.ties()
		for n, row := range rows {
			found[n] = finding{rank: n + 1, meta: row.meta}
			if n > 0 {
				if tied, err := same(rows[n-1], row); err != nil {
					return nil, err
				} else if tied {
					found[n].rank = found[n-1].rank
				}
			}
		}
		rate(in, found)
		for n, row := range rows {
			id := row.doc.Lookup("_id")
			key := string(append([]byte{byte(id.Type)}, id.Value...))
			c := byID[key]
			if c == nil {
				c = &candidate{hit: hit{doc: row.doc}, id: id, found: make([]finding, len(f.inputs))}
				byID[key], all = c, append(all, c)
			}
			c.found[i] = found[n]
		}
	}
	return all, nil
}

// ordered returns the documents, the best first, with their scores, and with what explain says of
// them if somebody wants to know.
func (f *fusion) ordered(all []*candidate, explain func(c *candidate) bson.Raw) []hit {
	slices.SortStableFunc(all, func(a, b *candidate) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return query.Compare(a.id, b.id, nil)
	})
	out := make([]hit, len(all))
	for i, c := range all {
		c.meta = withMeta(nil, "score", bsondoc.DoubleValue(c.score))
		if f.details {
			c.meta = withMeta(c.meta, "scoreDetails", bsondoc.DocumentValue(explain(c)))
		}
		out[i] = c.hit
	}
	return out
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
