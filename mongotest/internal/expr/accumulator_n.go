package expr

// Accumulators and expressions that keep several values: $firstN, $top, $percentile and their like.

import (
	"math"
	"slices"
	"sort"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

func init() {
	kinds := map[string]func(env *Env, n int) Accumulator{
		"$firstN": func(_ *Env, n int) Accumulator { return &firstNAcc{n: n} },
		"$lastN":  func(_ *Env, n int) Accumulator { return &lastNAcc{n: n} },
		"$minN":   func(env *Env, n int) Accumulator { return &extremeNAcc{env: env, n: n, sign: 1} },
		"$maxN":   func(env *Env, n int) Accumulator { return &extremeNAcc{env: env, n: n, sign: -1} },
	}
	for name, build := range kinds {
		accumulators[name] = accumulatorKind{make: build, parse: parseAccumulatorN}
		registerNamed(&namedOp{
			name:      name,
			notObject: parseError{5788200, "%s only supports an object as its argument", 3},
			unknown:   parseError{5787901, "Unknown argument for 'n' operator: %s", 1},
			params: []parameter{{"n", &parseError{5787906, "Missing value for 'n'", 0}},
				{"input", &parseError{5787907, "Missing value for 'input'", 0}}},
			eval: func(st *State, n *named) (bson.RawValue, error) {
				count, err := n.arg(st, 0)
				if err != nil {
					return missing, err
				}
				size, err := checkN(name, count)
				if err != nil {
					return missing, err
				}
				in, err := n.arg(st, 1)
				if err != nil {
					return missing, err
				}
				if in.Type != bson.TypeArray {
					return missing, srverr.New(5788200, "Input must be an array")
				}
				acc := build(st.env, size)
				for item := range bson.Raw(in.Value).Values() {
					if err := acc.Add(item); err != nil {
						return missing, err
					}
				}
				return acc.Value()
			},
		})
	}
	for _, t := range []struct {
		name   string
		bottom bool
		many   bool
	}{{"$top", false, false}, {"$topN", false, true}, {"$bottom", true, false}, {"$bottomN", true, true}} {
		accumulators[t.name] = accumulatorKind{parse: func(spec *AccumulatorSpec, v bson.RawValue, s *Scope) error {
			return parseTop(spec, v, s, t.bottom, t.many)
		}}
	}
	for _, name := range []string{"$percentile", "$median"} {
		accumulators[name] = accumulatorKind{parse: parsePercentile}
		registerParser(name, func(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
			spec := &AccumulatorSpec{Name: name}
			if err := parsePercentile(spec, v, s); err != nil {
				return nil, err
			}
			return &percentileExpr{spec}, nil
		}, shownAsWritten)
	}
}

func parseAccumulatorN(spec *AccumulatorSpec, v bson.RawValue, s *Scope) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(5787801, "specification must be an object; found %s", bsontext.Element(spec.Name, v))
	}
	for key, item := range bson.Raw(v.Value).All() {
		e, err := Parse(item, s)
		if err != nil {
			return err
		}
		switch key {
		case "n":
			spec.n = e
		case "input":
			spec.arg = e
		default:
			return srverr.New(5787901, "Unknown argument for 'n' operator: %s", key)
		}
	}
	switch {
	case spec.n == nil:
		return srverr.New(5787906, "Missing value for 'n'")
	case spec.arg == nil:
		return srverr.New(5787907, "Missing value for 'input'")
	}
	return nil
}

type firstNAcc struct {
	n    int
	list []bson.RawValue
}

func (a *firstNAcc) Add(v bson.RawValue) error {
	if len(a.list) < a.n {
		a.list = append(a.list, v)
	}
	return nil
}

func (a *firstNAcc) Value() (bson.RawValue, error) { return arrayOf(a.list), nil }

type lastNAcc struct {
	n    int
	list []bson.RawValue
}

func (a *lastNAcc) Add(v bson.RawValue) error {
	a.list = append(a.list, v)
	if len(a.list) > a.n {
		a.list = a.list[1:]
	}
	return nil
}

func (a *lastNAcc) Value() (bson.RawValue, error) { return arrayOf(a.list), nil }

// extremeNAcc keeps the n smallest (sign 1) or greatest (sign -1) values, nulls aside.
type extremeNAcc struct {
	env     *Env
	n, sign int
	list    []bson.RawValue
}

func (a *extremeNAcc) Add(v bson.RawValue) error {
	if nullish(v) {
		return nil
	}
	i := sort.Search(len(a.list), func(i int) bool { return a.env.compare(v, a.list[i])*a.sign < 0 })
	if i < a.n {
		a.list = slices.Insert(a.list, i, v)
		a.list = a.list[:min(len(a.list), a.n)]
	}
	return nil
}

func (a *extremeNAcc) Value() (bson.RawValue, error) { return arrayOf(a.list), nil }

// topArgument evaluates to [sort key..., output], which topAcc takes apart again.
type topArgument struct {
	sort   Sorter
	output Expr
}

func (t *topArgument) eval(st *State) (bson.RawValue, error) {
	key, err := t.sort.Key(bson.Raw(st.root.Value), nil)
	if err != nil {
		return missing, err
	}
	out, err := t.output.eval(st)
	if err != nil {
		return missing, err
	}
	return arrayOf(append(slices.Clone(key), out)), nil
}

func (t *topArgument) optimize(env *Env) (Expr, error) {
	out, err := t.output.optimize(env)
	return &topArgument{t.sort, out}, err
}

func parseTop(spec *AccumulatorSpec, v bson.RawValue, s *Scope, bottom, many bool) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(5788001, "specification must be an object; found %s", bsontext.Element(spec.Name, v))
	}
	arg := &topArgument{}
	for key, item := range bson.Raw(v.Value).All() {
		var err error
		switch {
		case key == "n" && many:
			spec.n, err = Parse(item, s)
		case key == "output":
			arg.output, err = Parse(item, s)
		case key == "sortBy":
			if item.Type != bson.TypeEmbeddedDocument {
				return srverr.New(5788604, "expected 'sortBy' to already be an object in the arguments to %s",
					spec.Name)
			}
			if s.env.ParseSort == nil {
				return srverr.New(srverr.FailedToParse, "%s is not supported here", spec.Name)
			}
			arg.sort, err = s.env.ParseSort(bson.Raw(item.Value))
		default:
			return srverr.New(5788002, "Unknown argument to %s '%s'", spec.Name, key)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case many && spec.n == nil:
		return srverr.New(5788003, "Missing value for 'n'")
	case arg.output == nil:
		return srverr.New(5788004, "Missing value for 'output'")
	case arg.sort == nil:
		return srverr.New(5788005, "Missing value for 'sortBy'")
	}
	spec.arg = arg
	spec.make = func(_ *Env, n int) Accumulator {
		if !many {
			n = 1
		}
		return &topAcc{sort: arg.sort, n: n, bottom: bottom, many: many}
	}
	return nil
}

type topAcc struct {
	sort         Sorter
	n            int
	bottom, many bool
	rows         [][]bson.RawValue // keys, then the output
}

func (a *topAcc) Add(v bson.RawValue) error {
	row := bsondoc.Items(v)
	i := sort.Search(len(a.rows), func(i int) bool { return a.sort.CompareKeys(row, a.rows[i]) < 0 })
	switch {
	case !a.bottom && i < a.n:
		a.rows = slices.Insert(a.rows, i, row)
		a.rows = a.rows[:min(len(a.rows), a.n)]
	case a.bottom:
		a.rows = slices.Insert(a.rows, i, row)
		a.rows = a.rows[max(0, len(a.rows)-a.n):]
	}
	return nil
}

func (a *topAcc) Value() (bson.RawValue, error) {
	b := newArray()
	for _, row := range a.rows {
		if !a.many {
			return row[len(row)-1], nil
		}
		b.add(row[len(row)-1])
	}
	if !a.many {
		return null, nil
	}
	return b.value(), nil
}

func parsePercentile(spec *AccumulatorSpec, v bson.RawValue, s *Scope) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(7429703, "specification must be an object; found %s", bsontext.Element(spec.Name, v))
	}
	median := spec.Name == "$median"
	ps := []float64{0.5}
	var method, p bson.RawValue
	for key, item := range bson.Raw(v.Value).All() {
		switch {
		case key == "input":
			e, err := Parse(item, s)
			if err != nil {
				return err
			}
			spec.arg = e
		case key == "p" && !median:
			p = item
		case key == "method":
			method = item
		default:
			return srverr.New(40415, "BSON field '%s.%s' is an unknown field.", spec.Name, key)
		}
	}
	for _, required := range []struct {
		name string
		miss bool
	}{{"input", spec.arg == nil}, {"p", !median && p.Type == 0}, {"method", method.Type == 0}} {
		if required.miss {
			return srverr.New(40414, "BSON field '%s.%s' is missing but a required field", spec.Name, required.name)
		}
	}
	if m, _ := method.StringValue(); m != "approximate" && !(m == "discrete" || m == "continuous") {
		return srverr.New(srverr.BadValue, "Currently only 'approximate' can be used as percentile 'method'.")
	}
	if !median {
		e, err := Parse(p, s)
		if err != nil {
			return err
		}
		if e, err = e.optimize(s.env); err != nil {
			return err
		}
		c, ok := e.(*constant)
		if !ok || c.v.Type != bson.TypeArray || bson.Raw(c.v.Value).IsEmpty() {
			code := int32(7750300)
			if ok && s.env.Version.AllParsed() && (c.v.Type == bson.TypeArray || c.v.Type == bson.TypeNull) {
				code = 7750301
			}
			return srverr.New(code, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s",
				Text(p))
		}
		ps = nil
		for item := range bson.Raw(c.v.Value).Values() {
			f := toDouble(item)
			if !item.IsNumber() || f < 0 || f > 1 {
				return srverr.New(
					7750303, "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s",
					Text(item))
			}
			ps = append(ps, f)
		}
	}
	spec.make = func(*Env, int) Accumulator { return &percentileAcc{ps: ps, median: median} }
	return nil
}

// percentileAcc answers with values of the input, as the server's approximation does for inputs of
// moderate size.
type percentileAcc struct {
	ps     []float64
	median bool
	list   []float64
}

func (a *percentileAcc) Add(v bson.RawValue) error {
	if v.IsNumber() {
		if f := toDouble(v); !math.IsNaN(f) {
			a.list = append(a.list, f)
		}
	}
	return nil
}

func (a *percentileAcc) Value() (bson.RawValue, error) {
	sorted := slices.Clone(a.list)
	slices.Sort(sorted)
	b := newArray()
	for _, p := range a.ps {
		v := null
		if n := len(sorted); n > 0 {
			rank := max(0, int(math.Ceil(float64(n)*p))-1)
			v = bsondoc.DoubleValue(sorted[min(rank, n-1)])
		}
		if a.median {
			return v, nil
		}
		b.add(v)
	}
	return b.value(), nil
}

// percentileExpr is $percentile or $median over an array.
type percentileExpr struct{ spec *AccumulatorSpec }

func (p *percentileExpr) eval(st *State) (bson.RawValue, error) {
	v, err := p.spec.arg.eval(st)
	if err != nil {
		return missing, err
	}
	acc := p.spec.make(st.env, 0)
	list := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		list = bsondoc.Items(v)
	}
	for _, item := range list {
		if err := acc.Add(item); err != nil {
			return missing, err
		}
	}
	return acc.Value()
}

func (p *percentileExpr) optimize(env *Env) (Expr, error) {
	arg, err := p.spec.arg.optimize(env)
	if err != nil {
		return nil, err
	}
	spec := *p.spec
	spec.arg = arg
	return &percentileExpr{&spec}, nil
}

func (p *percentileExpr) children() []Expr { return []Expr{p.spec.arg} }
