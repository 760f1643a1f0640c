package pipeline

import (
	"maps"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

var nullValue = bson.RawValue{Type: bson.TypeNull}

func (w *windowStage) parseFunction(p *parser, path string, v bson.RawValue) (windowFunction, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(srverr.FailedToParse, "The field '%s' must be an object", path)
	}
	name := ""
	var arg, window bson.RawValue
	fields := 0
	for key, item := range doc.All() {
		switch fields++; {
		case key == "window":
			window = item
		case name != "" && windowKinds[name].alone:
		case strings.HasPrefix(key, "$"):
			if name != "" {
				return nil, srverr.New(srverr.FailedToParse, "Cannot specify two functions in window function spec: %s",
					bsontext.Document(doc))
			}
			name, arg = key, item
		default:
			return nil, srverr.New(srverr.FailedToParse, "Window function found an unknown argument: %s", key)
		}
	}
	if name == "" {
		return nil, srverr.New(srverr.FailedToParse, "Expected a $-prefixed window function, %s",
			bsontext.Document(doc))
	}
	unknown := srverr.New(srverr.FailedToParse, "Unrecognized window function, %s%s", name,
		p.rt.o.Version.NotBuiltNote(release.Window, name))
	kind, special := windowKinds[name]
	if special && !p.rt.o.Version.Has(release.Window, name) {
		return nil, unknown
	}
	if special {
		if kind.alone && fields != 1 {
			return nil, srverr.New(5371601, "Rank style window functions take no other arguments")
		}
		if kind.noWindow && window.Type != 0 {
			return nil, srverr.New(5371601, "'window' field is not allowed in %s", name)
		}
		if err := kind.checkSort(w, name); err != nil {
			return nil, err
		}
		b, err := w.parseBounds(window)
		if err != nil {
			return nil, err
		}
		fn, err := kind.parse(w, p, arg, b)
		if err == nil && kind.needsWindow && window.Type == 0 {
			err = srverr.New(srverr.FailedToParse, "%s requires explicit window bounds", name)
		}
		return fn, err
	}
	if !expr.IsAccumulator(name, p.rt.env) || name == "$mergeObjects" && !p.rt.o.Version.Has(release.Window, name) ||
		name == "$accumulator" {
		return nil, unknown
	}
	b, err := w.parseBounds(window)
	if err != nil {
		return nil, err
	}
	spec, err := expr.ParseWindowAccumulator(name, arg, p.scope)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, "$stdDev") && !b.low.unbounded {
		return &deviation{spec: spec, bounds: b, sample: name == "$stdDevSamp"}, nil
	}
	return &accumulated{spec, b}, nil
}

// accumulated is an accumulator over a window.
type accumulated struct {
	spec *expr.AccumulatorSpec
	bounds
}

func (a *accumulated) optimize(env *expr.Env) error { return a.spec.Optimize(env) }

func (a *accumulated) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	args := make([]bson.RawValue, len(docs))
	for i, doc := range docs {
		var err error
		if args[i], err = a.spec.Argument(w.rt.state.WithRoot(doc)); err != nil {
			return nil, err
		}
	}
	out := make([]bson.RawValue, len(docs))
	var acc expr.Accumulator
	lastFrom, lastTo := -1, -1
	for i := range docs {
		from, to, err := a.at(i, docs)
		if err != nil {
			return nil, err
		}
		if acc == nil || from != lastFrom || to < lastTo {
			if acc, err = a.spec.NewAccumulator(w.rt.state.WithRoot(docs[i])); err != nil {
				return nil, err
			}
			lastFrom, lastTo = from, from
		}
		for ; lastTo < to; lastTo++ {
			if err := w.rt.interrupted(); err != nil {
				return nil, err
			}
			if err := acc.Add(args[lastTo]); err != nil {
				return nil, err
			}
		}
		if out[i], err = acc.Value(); err != nil {
			return nil, err
		}
		if out[i].Type == 0 {
			out[i] = nullValue
		}
		if err := w.rt.interrupted(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// windowKind is a function that is no accumulator.
type windowKind struct {
	noWindow, needsWindow bool
	sort                  sortNeed
	alone                 bool // no argument may stand beside it
	parse                 func(w *windowStage, p *parser, arg bson.RawValue, b bounds) (windowFunction, error)
}

// sortNeed is what a function needs of sortBy.
type sortNeed uint8

const (
	sortAny sortNeed = iota // also none
	sortGiven
	sortOfOne // of one field
	sortRanks // and an error of its own
	sortFills
)

func (k windowKind) checkSort(w *windowStage, name string) error {
	fields := 0
	if w.sort != nil {
		fields = len(w.sort.Fields())
	}
	switch {
	case k.sort == sortRanks && fields != 1, k.sort == sortFills && fields != 1:
		code := int32(5371602)
		if k.sort == sortFills {
			code = 605001
		}
		return srverr.New(code, "%s must be specified with a top level sortBy expression with exactly one element", name)
	case (k.sort == sortGiven || k.sort == sortOfOne) && !w.sorted:
		return srverr.New(srverr.FailedToParse, "%s requires a sortBy", name)
	case k.sort == sortOfOne && fields != 1:
		return srverr.New(srverr.FailedToParse, "%s requires a non-compound sortBy", name)
	}
	return nil
}

var windowKinds map[string]windowKind

func init() {
	rank := func(name string) windowKind {
		return windowKind{noWindow: true, sort: sortRanks, alone: true,
			parse: func(_ *windowStage, _ *parser, arg bson.RawValue, _ bounds) (windowFunction, error) {
				if doc, ok := arg.Document(); !ok || !doc.IsEmpty() {
					return nil, srverr.New(5371603, "%s must be specified with '{}' as the value", name)
				}
				return &ranking{name}, nil
			}}
	}
	windowKinds = map[string]windowKind{
		"$rank": rank("$rank"), "$denseRank": rank("$denseRank"), "$documentNumber": rank("$documentNumber"),
		"$shift":          {noWindow: true, sort: sortGiven, parse: parseShift},
		"$expMovingAvg":   {noWindow: true, sort: sortGiven, parse: parseExpMovingAvg},
		"$derivative":     {needsWindow: true, sort: sortOfOne, parse: parseSlope(false)},
		"$integral":       {sort: sortOfOne, parse: parseSlope(true)},
		"$covariancePop":  {parse: parseCovariance(false)},
		"$covarianceSamp": {parse: parseCovariance(true)},
		"$minMaxScaler":   {parse: parseMinMaxScaler},
		"$locf":           {noWindow: true, parse: parseFilling(false)},
		"$linearFill":     {noWindow: true, sort: sortFills, parse: parseFilling(true)},
	}
}

type ranking struct{ name string }

func (*ranking) optimize(*expr.Env) error { return nil }

func (r *ranking) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	out := make([]bson.RawValue, len(docs))
	var last []bson.RawValue
	rank, dense := 0, 0
	for i, doc := range docs {
		key, err := w.sort.Key(doc, nil)
		if err != nil {
			return nil, err
		}
		if last == nil || w.sort.CompareKeys(key, last) != 0 {
			rank, last = i+1, key
			dense++
		}
		n := map[string]int{"$rank": rank, "$denseRank": dense, "$documentNumber": i + 1}[r.name]
		out[i] = bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, int32(n))}
	}
	return out, nil
}

// shift is $shift: the value of a document some places off.
type shift struct {
	operand // "output"
	by      int
	missing bson.RawValue
}

func parseShift(_ *windowStage, p *parser, arg bson.RawValue, _ bounds) (windowFunction, error) {
	s := &shift{missing: nullValue}
	haveBy := false
	err := namedArgs{"output": s.parse(p), "by": func(v bson.RawValue) error {
		n, ok := expr.Int32(v)
		if !ok {
			return srverr.New(srverr.FailedToParse, "'$shift:by' field must be an integer, but found %s",
				bsontext.Element("by", v))
		}
		s.by, haveBy = int(n), true
		return nil
	}, "default": func(v bson.RawValue) error {
		c, err := p.constant(v)
		if err != nil {
			return err
		}
		if c == nil {
			return srverr.New(srverr.FailedToParse, "'$shift:default' expression must yield a constant value.")
		}
		s.missing = *c
		return nil
	}}.read(arg, func(string) string { return "Argument to $shift must be an object" },
		func(string) string { return "Unknown argument in $shift" })
	if err != nil {
		return nil, err
	}
	if s.input == nil || !haveBy {
		return nil, srverr.New(srverr.FailedToParse, "$shift requires 'output' and 'by' to be specified")
	}
	return s, nil
}

func (s *shift) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	values, err := s.values(w, docs)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(docs))
	for i := range docs {
		out[i] = s.missing
		if j := i + s.by; j >= 0 && j < len(docs) {
			if out[i] = values[j]; out[i].Type == 0 {
				out[i] = nullValue
			}
		}
	}
	return out, nil
}

// operand is the expression that a window function computes over.
type operand struct{ input expr.Expr }

// parse returns what reads the expression.
func (o *operand) parse(p *parser) func(v bson.RawValue) error {
	return func(v bson.RawValue) (err error) {
		o.input, err = expr.Parse(v, p.scope)
		return err
	}
}

func (o *operand) optimize(env *expr.Env) (err error) {
	o.input, err = expr.Optimize(o.input, env)
	return err
}

// values returns the expression's value for each document.
func (o *operand) values(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	out := make([]bson.RawValue, len(docs))
	for i, doc := range docs {
		var err error
		if out[i], err = expr.Eval(o.input, w.rt.state.WithRoot(doc)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// namedArgs are the arguments of a window function, with what reads each.
type namedArgs map[string]func(v bson.RawValue) error

// read reads the arguments in their order. The texts are what is said of a value that is no
// document, and of an argument that there is not.
func (a namedArgs) read(arg bson.RawValue, noDocument, unknown func(key string) string) error {
	doc, ok := arg.Document()
	if !ok {
		return srverr.New(srverr.FailedToParse, "%s", noDocument(""))
	}
	for key, v := range doc.All() {
		read := a[key]
		if read == nil {
			return srverr.New(srverr.FailedToParse, "%s", unknown(key))
		}
		if err := read(v); err != nil {
			return err
		}
	}
	return nil
}

type expMovingAvg struct {
	operand
	alpha decimal.Decimal
}

func parseExpMovingAvg(_ *windowStage, p *parser, arg bson.RawValue, _ bounds) (windowFunction, error) {
	malformed := func(string) string {
		return "$expMovingAvg must have exactly one of the following sets of arguments: {input: ..., N: ...} or {input: ..., alpha: ...}"
	}
	e := &expMovingAvg{}
	weights := 0
	err := namedArgs{"input": e.parse(p), "N": func(v bson.RawValue) error {
		weights++
		n, ok := expr.Int32(v)
		if !ok || n <= 0 {
			return srverr.New(srverr.FailedToParse, "'N' field must be an integer greater than zero, but found N: %s",
				bsontext.Value(v))
		}
		e.alpha = decimal.FromInt(2).Quo(decimal.FromInt(int64(n) + 1))
		return nil
	}, "alpha": func(v bson.RawValue) error {
		weights++
		e.alpha = mixedOf(v).inDecimal()
		if !v.IsNumber() || e.alpha.IsNaN() || e.alpha.Cmp(decimal.Decimal{}) <= 0 ||
			e.alpha.Cmp(decimal.FromInt(1)) >= 0 {
			return srverr.New(srverr.FailedToParse, "'alpha' must be between 0 and 1 (exclusive), found alpha: %s",
				bsontext.Value(v))
		}
		return nil
	}}.read(arg, malformed, malformed)
	if err != nil {
		return nil, err
	}
	if e.input == nil || weights != 1 {
		return nil, srverr.New(srverr.FailedToParse, "%s", malformed(""))
	}
	return e, nil
}

func (e *expMovingAvg) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	values, err := e.values(w, docs)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(docs))
	// It is computed in decimals, and a double is made of what comes out, if all numbers were.
	var current decimal.Decimal
	seen, isDecimal := false, false
	rest := decimal.FromInt(1).Sub(e.alpha)
	for i, v := range values {
		if v.IsNumber() {
			x := mixedOf(v)
			isDecimal = isDecimal || x.isDecimal
			if seen {
				current = x.inDecimal().Mul(e.alpha).Add(current.Mul(rest))
			} else {
				current, seen = x.inDecimal(), true
			}
		}
		switch {
		case !seen:
			out[i] = nullValue
		case isDecimal:
			out[i] = mixed{decimal: current, isDecimal: true}.value()
		default:
			out[i] = bsondoc.DoubleValue(current.Float())
		}
	}
	return out, nil
}

// slope is $derivative and $integral: over the value that is sorted by.
type slope struct {
	bounds
	operand
	perUnit  float64 // milliseconds of the unit; 0 without one
	integral bool
}

var unitMillis = map[string]float64{"week": 604800000, "day": 86400000, "hour": 3600000, "minute": 60000,
	"second": 1000, "millisecond": 1}

func parseSlope(integral bool) func(*windowStage, *parser, bson.RawValue, bounds) (windowFunction, error) {
	name := "$derivative"
	if integral {
		name = "$integral"
	}
	return func(w *windowStage, p *parser, arg bson.RawValue, b bounds) (windowFunction, error) {
		s := &slope{bounds: b, integral: integral}
		err := namedArgs{"input": s.parse(p), "unit": func(v bson.RawValue) (err error) {
			unit, ok := v.StringValue()
			switch {
			case !ok:
				return srverr.New(5490704, "%s 'unit' must be a string, but got %s", name, typeName(v))
			case !expr.FindTimeUnit(unit):
				return srverr.New(srverr.FailedToParse, "unknown time unit value: %s", unit)
			}
			if s.perUnit, ok = unitMillis[unit]; !ok {
				return srverr.New(5490710, "unit must be 'week' or smaller")
			}
			return nil
		}}.read(arg, func(string) string { return name + " expects an object, but got " + bsontext.Element(name, arg) },
			func(key string) string { return name + " got unexpected argument: " + key })
		if err != nil {
			return nil, err
		}
		if s.input == nil {
			return nil, srverr.New(srverr.FailedToParse, "%s requires an 'input' expression", name)
		}
		if w.sort.Fields()[0].Path == "" { // a $meta
			return nil, srverr.New(srverr.FailedToParse, "%s requires a non-compound sortBy", name)
		}
		s.field = strings.Split(w.sort.Fields()[0].Path, ".")
		return s, nil
	}
}

// position is where a document lies on the axis: a number, or milliseconds.
func (s *slope) position(doc bson.Raw) (mixed, bool) {
	v := fieldAt(doc, s.field)
	if d, ok := v.DateTime(); ok {
		return integer(int64(d)), s.perUnit > 0
	}
	return mixedOf(v), v.IsNumber() && s.perUnit == 0
}

func (s *slope) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	values, err := s.values(w, docs)
	if err != nil {
		return nil, err
	}
	unit := integer(int64(max(s.perUnit, 1)))
	out := make([]bson.RawValue, len(docs))
	for i := range docs {
		out[i] = nullValue
		from, to, err := s.at(i, docs)
		if err != nil {
			return nil, err
		}
		if from == to {
			continue
		}
		sum := integer(0)
		for j := from; j < to; j++ {
			if err := w.rt.interrupted(); err != nil {
				return nil, err
			}
			if _, ok := s.position(docs[j]); !ok {
				return nil, srverr.New(
					5624900, "Expected the sortBy field to be a number, or a date with a 'unit', but it was %s",
					typeName(fieldAt(docs[j], s.field)))
			}
			if s.integral && j > from {
				x0, _ := s.position(docs[j-1])
				x1, _ := s.position(docs[j])
				sum = sum.add(mixedOf(values[j-1]).add(mixedOf(values[j])).mul(x1.sub(x0)).quo(integer(2)))
			}
		}
		// Differences of dates are exact in milliseconds; the unit comes last.
		if s.integral {
			out[i] = sum.quo(unit).value()
			continue
		}
		x0, _ := s.position(docs[from])
		x1, _ := s.position(docs[to-1])
		first, last := values[from], values[to-1]
		if x1.sub(x0).isZero() || !first.IsNumber() || !last.IsNumber() {
			continue
		}
		out[i] = mixedOf(last).sub(mixedOf(first)).quo(x1.sub(x0)).mul(unit).value()
	}
	return out, nil
}

// filling is $locf and $linearFill.
type filling struct {
	operand
	linear bool
}

func parseFilling(linear bool) func(*windowStage, *parser, bson.RawValue, bounds) (windowFunction, error) {
	return func(_ *windowStage, p *parser, arg bson.RawValue, _ bounds) (windowFunction, error) {
		e, err := expr.Parse(arg, p.scope)
		return &filling{operand{e}, linear}, err
	}
}

func isNullish(v bson.RawValue) bool {
	return v.Type == 0 || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
}

func (f *filling) compute(w *windowStage, docs []bson.Raw) ([]bson.RawValue, error) {
	values, err := f.values(w, docs)
	if err != nil {
		return nil, err
	}
	out := make([]bson.RawValue, len(docs))
	if !f.linear {
		last := nullValue
		for i, v := range values {
			if !isNullish(v) {
				last = v
			}
			out[i] = last
		}
		return out, nil
	}
	path := strings.Split(w.sort.Fields()[0].Path, ".")
	position := func(i int) mixed {
		v := fieldAt(docs[i], path)
		if d, ok := v.DateTime(); ok {
			return integer(int64(d))
		}
		return mixedOf(v)
	}
	last := -1
	var key []bson.RawValue
	for i, v := range values {
		before := key
		if key, err = w.sort.Key(docs[i], nil); err != nil {
			return nil, err
		}
		if before != nil && w.sort.CompareKeys(key, before) == 0 {
			return nil, srverr.New(6050106, "There can be no repeated values in the sort field")
		}
		out[i] = v
		if isNullish(v) {
			out[i] = nullValue
			continue
		}
		if !v.IsNumber() {
			return nil, srverr.New(605002, "Value to be filled must be numeric or nullish, found type: %s", typeName(v))
		}
		if last >= 0 {
			x0, x1 := position(last), position(i)
			y0, y1 := mixedOf(values[last]), mixedOf(v)
			dx := x1.sub(x0)
			for j := last + 1; j < i; j++ {
				if y := y0.add(position(j).sub(x0).mul(y1.sub(y0)).quo(dx)); !y.isNaN() {
					out[j] = y.value()
				}
			}
		}
		last = i
	}
	return out, nil
}

// WindowFunctions lists the functions by name that only $setWindowFields has.
func WindowFunctions() []string { return slices.Sorted(maps.Keys(windowKinds)) }
