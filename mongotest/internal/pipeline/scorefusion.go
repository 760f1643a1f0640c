package pipeline

// $scoreFusion: several searches of one collection, combined by the scores of what they find; and
// $score, which gives documents a score.

import (
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(
		&stageDef{name: "$scoreFusion", parse: one(parseScoreFusion), precheck: checkScoreFusion, first: true,
			notInFacet: true, notV1: true,
			pipelines: "input.pipelines.*", refuses: refusedBy("$scoreFusion", 9402500), at: elsewhere},
		&stageDef{name: "$score", parse: one(parseScore), selects: true, ranks: true, scores: true, notV1: true},
	)
}

const fusionDescription = "the value calculated by combining the scores (either normalized or raw) across input pipelines from which this document is output from:"

// scoreFusionStage is $scoreFusion.
type scoreFusionStage struct {
	fusion
	normalize string
	expr      expr.Expr // of the combination; nil: the average
	text      string    // of the expression
}

// scoreFusionParts are the parts of the specification.
type scoreFusionParts struct {
	pipelines, weights    bson.Raw
	normalization, method string
	expression            bson.RawValue
	details               bool
}

func readScoreFusion(v bson.RawValue) (p scoreFusionParts, err error) {
	const name = "$scoreFusion"
	doc, ok := v.Document()
	if !ok {
		return p, srverr.New(srverr.FailedToParse, "%s spec must be an object, got %s", name, typeName(v))
	}
	var input, combination bson.Raw
	for key, item := range doc.All() {
		sub, isDoc := item.Document()
		switch {
		case key == "scoreDetails" && item.Type == bson.TypeBoolean:
			p.details = item.AsBool()
		case key == "scoreDetails":
			return p, args.WrongType(name+".scoreDetails", item.Type, "bool")
		case key != "input" && key != "combination":
			return p, args.UnknownField(name + "." + key)
		case !isDoc:
			return p, args.WrongType(name+"."+key, item.Type, "object")
		case key == "input":
			input = sub
		default:
			combination = sub
		}
	}
	if input == nil {
		return p, args.MissingField(name + ".input")
	}
	for key, item := range input.All() {
		switch key {
		case "pipelines":
			if p.pipelines, ok = item.Document(); !ok {
				return p, args.WrongType(name+".input.pipelines", item.Type, "object")
			}
		case "normalization":
			if p.normalization, ok = item.StringValue(); !ok {
				return p, args.WrongType(name+".input.normalization", item.Type, "string")
			}
			if !normalizations[p.normalization] {
				return p, srverr.New(srverr.BadValue,
					"Enumeration value '%s' for field '%s.input.normalization' is not a valid value.", p.normalization,
					name)
			}
		default:
			return p, args.UnknownField(name + ".input." + key)
		}
	}
	switch {
	case p.pipelines == nil:
		return p, args.MissingField(name + ".input.pipelines")
	case p.normalization == "":
		return p, args.MissingField(name + ".input.normalization")
	}
	return p, p.combination(combination)
}

func (p *scoreFusionParts) combination(doc bson.Raw) error {
	const name = "$scoreFusion.combination"
	for key, item := range doc.All() {
		var ok bool
		switch key {
		case "weights":
			if p.weights, ok = item.Document(); !ok {
				return args.WrongType(name+".weights", item.Type, "object")
			}
		case "method":
			if p.method, ok = item.StringValue(); !ok {
				return args.WrongType(name+".method", item.Type, "string")
			}
			if p.method != "avg" && p.method != "expression" {
				return srverr.New(srverr.BadValue, "Enumeration value '%s' for field '%s.method' is not a valid value.",
					p.method, name)
			}
		case "expression":
			p.expression = item
		default:
			return args.UnknownField(name + "." + key)
		}
	}
	switch {
	case p.method == "expression" && p.expression.Type == 0:
		return srverr.New(srverr.FailedToParse,
			"combination.expression must be specified when combination.method is 'expression'")
	case p.method != "expression" && p.expression.Type != 0:
		return srverr.New(srverr.FailedToParse,
			"combination.expression can only be specified when combination.method is 'expression'")
	case p.method == "expression" && p.weights != nil:
		return srverr.New(srverr.FailedToParse,
			"combination.weights cannot be specified when combination.method is 'expression'")
	}
	return nil
}

func checkScoreFusion(p *parser, _ string, v bson.RawValue) error {
	parts, err := readScoreFusion(v)
	if err != nil {
		return err
	}
	return checkInputs(p, "$scoreFusion", parts.pipelines)
}

func parseScoreFusion(p *parser, _ string, v bson.RawValue) (*scoreFusionStage, error) {
	parts, err := readScoreFusion(v)
	if err != nil {
		return nil, err
	}
	shared, err := parseFusion(p, "$scoreFusion", parts.pipelines, parts.weights, parts.details,
		func(in fusionInput) error {
			if in.sub.scored() {
				return nil
			}
			return srverr.New(
				9402502, "$scoreFusion input pipeline '%s' is not scored: it must begin with $search, $vectorSearch or a $match with $text, or have a $score", in.name)
		})
	if err != nil {
		return nil, err
	}
	f := &scoreFusionStage{fusion: shared, normalize: parts.normalization}
	if parts.expression.Type != 0 {
		scope := p.scope
		for i := range f.inputs {
			scope, f.inputs[i].slot = scope.Define(f.inputs[i].name)
		}
		if f.expr, err = expr.Parse(parts.expression, scope); err != nil {
			return nil, err
		}
		f.text = "{ string: " + strings.ReplaceAll(bsontext.Value(parts.expression), `"`, "'") + " }"
	}
	return f, nil
}

// scored reports whether the pipeline's documents have scores.
func (pl *Pipeline) scored() bool {
	return slices.ContainsFunc(pl.stages, func(st parsedStage) bool {
		m, ok := st.stage.(*matchStage)
		return st.def.scores || ok && m.filter.NeedsTextIndex()
	})
}

func (f *scoreFusionStage) optimize(env *expr.Env) (err error) {
	if err := f.fusion.optimize(env); err != nil {
		return err
	}
	if f.expr != nil {
		f.expr, err = expr.Optimize(f.expr, env)
	}
	return err
}

func (f *scoreFusionStage) open(src Iterator) (Iterator, error) {
	return &keeper{src: src, rt: f.rt, fill: f.fuse}, nil
}

func (f *scoreFusionStage) fuse() ([]hit, error) {
	f.rt.meta = true // scores are asked for, whether a later stage does or not
	all, err := f.candidates(func(in fusionInput, found []finding) {
		scores := make([]float64, len(found))
		for i := range found {
			v := metaValue(found[i].meta, "score")
			if v.Type == 0 {
				v = metaValue(found[i].meta, "textScore")
			}
			scores[i] = expr.ToDouble(v)
		}
		for i, n := range normalized(f.normalize, scores) {
			found[i].raw, found[i].value = scores[i], n*in.weight
		}
	})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if err := f.combine(c); err != nil {
			return nil, err
		}
	}
	return f.ordered(all, f.explain), nil
}

// combine computes a document's score. What a pipeline did not find has 0 there.
func (f *scoreFusionStage) combine(c *candidate) error {
	if f.expr == nil {
		for _, by := range c.found {
			c.score += by.value
		}
		c.score /= float64(len(c.found))
		return nil
	}
	for i, in := range f.inputs {
		f.rt.state.Set(in.slot, bsondoc.DoubleValue(c.found[i].value))
	}
	v, err := expr.Eval(f.expr, f.rt.state.WithRoot(c.doc))
	if err != nil {
		return err
	}
	if !v.IsNumber() {
		return srverr.New(srverr.TypeMismatch,
			"the expression of $scoreFusion must evaluate to a number, but resulted in %s", typeName(v))
	}
	c.score = expr.ToDouble(v)
	return nil
}

// explain returns a document's scoreDetails.
func (f *scoreFusionStage) explain(c *candidate) bson.Raw {
	var list []bson.RawValue
	for i, in := range f.inputs {
		by := c.found[i]
		if by.rank == 0 {
			continue
		}
		list = append(list, bsondoc.DocumentValue(bsondoc.Of("inputPipelineName", in.name, "inputPipelineRawScore",
			by.raw, "weight", in.weight,
			"value", by.value, "details", inputDetails(by.meta))))
	}
	combination := bsondoc.Of("method", "average")
	if f.expr != nil {
		combination = bsondoc.Of("method", "custom expression", "expression", f.text)
	}
	return bsondoc.Of("value", c.score, "description", fusionDescription, "normalization", f.normalize, "combination",
		combination, "details", bsondoc.ArrayValue(list...))
}

var normalizations = map[string]bool{"none": true, "sigmoid": true, "minMaxScaler": true}

// normalized brings the scores of a pipeline between 0 and 1.
func normalized(how string, scores []float64) []float64 {
	out := slices.Clone(scores)
	switch {
	case how == "sigmoid":
		for i, s := range scores {
			out[i] = 1 / (1 + math.Exp(-s))
		}
	case how == "minMaxScaler" && len(scores) > 0:
		lo, hi := slices.Min(scores), slices.Max(scores)
		for i, s := range scores {
			if out[i] = 0; hi > lo {
				out[i] = (s - lo) / (hi - lo)
			}
		}
	}
	return out
}

// scoreStage is $score.
type scoreStage struct {
	rt        *runtime
	e         expr.Expr
	normalize string
	weight    float64
	details   bool
}

func parseScore(p *parser, name string, v bson.RawValue) (*scoreStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(srverr.FailedToParse, "%s value must be an object. Found: %s", name, typeName(v))
	}
	s := &scoreStage{rt: p.rt, normalize: "none", weight: 1}
	p.rt.meta = true
	for key, item := range doc.All() {
		var err error
		switch key {
		case "score":
			s.e, err = expr.Parse(item, p.scope)
		case "normalization":
			if s.normalize, ok = item.StringValue(); !ok {
				err = args.WrongType(name+"."+key, item.Type, "string")
			} else if !normalizations[s.normalize] {
				err = srverr.New(
					srverr.BadValue, "Enumeration value '%s' for field '%s.normalization' is not a valid value.",
					s.normalize, name)
			}
		case "weight":
			if s.weight = expr.ToDouble(item); !item.IsNumber() {
				err = args.WrongType(name+"."+key, item.Type, "double")
			} else if !(s.weight >= 0 && s.weight <= 1) {
				err = srverr.New(srverr.BadValue, "'weight' must be between 0 and 1, inclusive")
			}
		case "scoreDetails":
			if s.details, ok = item.Boolean(); !ok {
				err = args.WrongType(name+"."+key, item.Type, "bool")
			}
		default:
			err = args.UnknownField(name + "." + key)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.e == nil {
		return nil, args.MissingField(name + ".score")
	}
	return s, nil
}

func (s *scoreStage) makes(meta string) bool {
	return meta == "score" || meta == "scoreDetails" && s.details
}

func (s *scoreStage) optimize(env *expr.Env) (err error) {
	s.e, err = expr.Optimize(s.e, env)
	return err
}

func (s *scoreStage) open(src Iterator) (Iterator, error) {
	return &keeper{src: src, rt: s.rt, fill: func() ([]hit, error) { return s.rate(src) }}, nil
}

// rate gives the documents their scores.
func (s *scoreStage) rate(src Iterator) ([]hit, error) {
	rows, err := s.rt.hits(src)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(rows))
	for i, row := range rows {
		s.rt.show(row)
		v, err := expr.Eval(s.e, s.rt.state.WithRoot(row.doc))
		if err != nil {
			return nil, err
		}
		if !v.IsNumber() {
			return nil, srverr.New(srverr.TypeMismatch,
				"Invalid expression for 'score' in $score: it must evaluate to a number, but resulted in %s",
				typeName(v))
		}
		scores[i] = expr.ToDouble(v)
	}
	for i, n := range normalized(s.normalize, scores) {
		rows[i].meta = withMeta(rows[i].meta, "score", bsondoc.DoubleValue(n*s.weight))
		if s.details {
			rows[i].meta = withMeta(rows[i].meta, "scoreDetails", bsondoc.DocumentValue(bsondoc.Of("value", n*s.weight,
				"description", "the score calculated from multiplying a weight in the range [0,1] with either a normalized or nonnormalized value:",
				"rawScore", scores[i], "normalization", s.normalize, "weight", s.weight, "details",
				bsondoc.ArrayValue())))
		}
	}
	return rows, nil
}
