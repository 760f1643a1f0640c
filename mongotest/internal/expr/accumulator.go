package expr

// Accumulators: what $group, $bucket and $setWindowFields compute over many documents, and the
// expressions of the same names that do so over an array.

import (
	"math"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// Accumulator sums values up. Value may be called at any time.
type Accumulator interface {
	Add(v bson.RawValue) error
	Value() (bson.RawValue, error)
}

// AccumulatorSpec is a parsed accumulator: its kind and the expression that it is fed with.
type AccumulatorSpec struct {
	Name string
	arg  Expr
	n    Expr // of the ...N kinds; evaluated with the group's _id as the document
	make func(env *Env, n int) Accumulator
	// start makes an accumulator that needs more than a number, with state's root as in
	// NewAccumulator.
	start func(st *State) (Accumulator, error)
	more  []*Expr // what Optimize looks at, too
}

// NewAccumulator returns an empty accumulator. The state's root is what a count n may refer to: the
// group's key.
func (a *AccumulatorSpec) NewAccumulator(st *State) (Accumulator, error) {
	if a.start != nil {
		return a.start(st)
	}
	n := 0
	if a.n != nil {
		v, err := a.n.eval(st)
		if err != nil {
			return nil, err
		}
		if n, err = checkN(a.Name, v); err != nil {
			return nil, err
		}
	}
	return a.make(st.env, n), nil
}

// Argument evaluates what the accumulator is fed with for the state's document.
func (a *AccumulatorSpec) Argument(st *State) (bson.RawValue, error) { return a.arg.eval(st) }

// Collects reports whether the accumulator keeps all that it is fed with.
func (a *AccumulatorSpec) Collects() bool { return a.Name == "$push" || a.Name == "$addToSet" }

// Optimize computes the constant parts of the argument.
func (a *AccumulatorSpec) Optimize(env *Env) (err error) {
	if a.arg, err = a.arg.optimize(env); err != nil {
		return err
	}
	if a.n != nil {
		if a.n, err = a.n.optimize(env); err != nil {
			return err
		}
	}
	for _, e := range a.more {
		if *e, err = (*e).optimize(env); err != nil {
			return err
		}
	}
	return nil
}

type accumulatorKind struct {
	make  func(env *Env, n int) Accumulator
	parse func(spec *AccumulatorSpec, v bson.RawValue, s *Scope) error // nil: the argument is the operand
}

var accumulators = map[string]accumulatorKind{
	"$sum":          {make: func(*Env, int) Accumulator { return &sumAcc{total: newTotal()} }},
	"$avg":          {make: func(env *Env, _ int) Accumulator { return &avgAcc{total: newTotal(), env: env} }},
	"$min":          {make: func(env *Env, _ int) Accumulator { return &extremeAcc{env: env, sign: -1} }},
	"$max":          {make: func(env *Env, _ int) Accumulator { return &extremeAcc{env: env, sign: 1} }},
	"$first":        {make: func(*Env, int) Accumulator { return &firstAcc{} }},
	"$last":         {make: func(*Env, int) Accumulator { return &lastAcc{} }},
	"$push":         {make: func(*Env, int) Accumulator { return &pushAcc{newArray()} }},
	"$addToSet":     {make: func(env *Env, _ int) Accumulator { return &setAcc{groups: NewGroups(env)} }},
	"$concatArrays": {make: func(*Env, int) Accumulator { return &concatAcc{pushAcc{newArray()}} }},
	"$setUnion": {make: func(env *Env, _ int) Accumulator {
		return &unionAcc{setAcc{groups: NewGroups(env)}}
	}},
	"$stdDevPop":         {make: func(*Env, int) Accumulator { return &stdDevAcc{} }},
	"$stdDevSamp":        {make: func(*Env, int) Accumulator { return &stdDevAcc{sample: true} }},
	"$mergeObjects":      {make: func(*Env, int) Accumulator { return &mergeAcc{newFields()} }},
	"$count":             {make: func(*Env, int) Accumulator { return &sumAcc{total: newTotal()} }, parse: parseCount},
	"$accumulator":       {parse: parseScriptAccumulator},
	"$_internalJsReduce": {parse: parseScriptReduce},
}

// IsAccumulator reports whether this version's server has an accumulator of this name, the '$'
// included.
func IsAccumulator(name string, env *Env) bool {
	_, ok := accumulators[name]
	return ok && env.Version.Has(release.Accumulator, name)
}

// ParseAccumulator parses a field of $group: {name: {$sum: ...}}.
func ParseAccumulator(field string, v bson.RawValue, s *Scope) (*AccumulatorSpec, error) {
	var name string
	var arg bson.RawValue
	n := 0
	if v.Type == bson.TypeEmbeddedDocument {
		name, arg, n = firstElement(bson.Raw(v.Value))
	}
	switch {
	case !strings.HasPrefix(name, "$"):
		return nil, srverr.New(40234, "The field '%s' must be an accumulator object", field)
	case strings.Contains(field, "."):
		return nil, srverr.New(40235, "The field name '%s' cannot contain '.'", field)
	case strings.HasPrefix(field, "$"):
		return nil, srverr.New(40236, "The field name '%s' cannot be an operator name", field)
	case n != 1:
		return nil, srverr.New(40238, "The field '%s' must specify one accumulator", field)
	case arg.Type == bson.TypeArray:
		return nil, srverr.New(40237, "The %s accumulator is a unary operator", name)
	case !IsAccumulator(name, s.env):
		return nil, srverr.New(15952, "unknown group operator '%s'%s", name,
			s.env.Version.NotBuiltNote(release.Accumulator, name))
	}
	return parseAccumulatorSpec(name, arg, s)
}

// ParseWindowAccumulator parses an accumulator whose name is known to exist.
func ParseWindowAccumulator(name string, arg bson.RawValue, s *Scope) (*AccumulatorSpec, error) {
	return parseAccumulatorSpec(name, arg, s)
}

func parseAccumulatorSpec(name string, arg bson.RawValue, s *Scope) (*AccumulatorSpec, error) {
	kind := accumulators[name]
	spec := &AccumulatorSpec{Name: name, make: kind.make}
	if kind.parse != nil {
		return spec, kind.parse(spec, arg, s)
	}
	var err error
	spec.arg, err = Parse(arg, s)
	return spec, err
}

func parseCount(spec *AccumulatorSpec, v bson.RawValue, _ *Scope) error {
	if v.Type != bson.TypeEmbeddedDocument || !bson.Raw(v.Value).IsEmpty() {
		return srverr.New(srverr.TypeMismatch, "$count takes no arguments, i.e. $count:{}")
	}
	spec.arg = &constant{bsondoc.Int32Value(1)}
	return nil
}

type sumAcc struct{ total total }

func (a *sumAcc) Add(v bson.RawValue) error {
	if v.IsNumber() {
		a.total.add(v)
	}
	return nil
}

func (a *sumAcc) Value() (bson.RawValue, error) { return a.total.value(), nil }

type avgAcc struct {
	env   *Env
	total total
	n     int64
}

func (a *avgAcc) Add(v bson.RawValue) error {
	if v.IsNumber() {
		a.total.add(v)
		a.n++
	}
	return nil
}

func (a *avgAcc) Value() (bson.RawValue, error) {
	switch {
	case a.n == 0:
		return null, nil
	case a.total.typ == bson.TypeDecimal128:
		return decimalValue(a.total.decimal().Quo(decimal.FromInt(a.n))), nil
	}
	sum := a.total.binary.double()
	if b := &a.total.binary; a.env.Version.AllParsed() && !b.isSpecial() {
		sum += b.addend
	}
	return bsondoc.DoubleValue(sum / float64(a.n)), nil
}

// extremeAcc keeps the smallest (sign -1) or greatest (sign 1) value, nulls aside.
type extremeAcc struct {
	env  *Env
	sign int
	best bson.RawValue
}

func (a *extremeAcc) Add(v bson.RawValue) error {
	if !nullish(v) && (a.best.Type == 0 || a.env.compare(v, a.best)*a.sign > 0) {
		a.best = v
	}
	return nil
}

func (a *extremeAcc) Value() (bson.RawValue, error) {
	if a.best.Type == 0 {
		return null, nil
	}
	return a.best, nil
}

type firstAcc struct {
	seen bool
	v    bson.RawValue
}

func (a *firstAcc) Add(v bson.RawValue) error {
	if !a.seen {
		a.seen, a.v = true, v
	}
	return nil
}

func (a *firstAcc) Value() (bson.RawValue, error) { return a.v, nil }

type lastAcc struct{ v bson.RawValue }

func (a *lastAcc) Add(v bson.RawValue) error     { a.v = v; return nil }
func (a *lastAcc) Value() (bson.RawValue, error) { return a.v, nil }

type pushAcc struct{ b *arrayBuilder }

// accumulatorLimit is how much memory $push and $addToSet may take, as in the server's internal
// parameters.
const accumulatorLimit = 100 << 20

func memoryExceeded(name string) error {
	return srverr.New(
		srverr.ExceededMemoryLimit, "%s used too much memory and cannot spill to disk. Memory limit: %d bytes", name,
		accumulatorLimit)
}

func (a *pushAcc) Add(v bson.RawValue) error {
	if v.Type != 0 {
		if a.b.add(v); len(a.b.dst) > accumulatorLimit {
			return memoryExceeded("$push")
		}
	}
	return nil
}

func (a *pushAcc) Value() (bson.RawValue, error) {
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(append([]byte(nil), a.b.dst...), 0)}, nil
}

type setAcc struct {
	groups *Groups
	size   int
}

func (a *setAcc) Add(v bson.RawValue) error {
	if v.Type == 0 {
		return nil
	}
	if _, added := a.groups.Index(v); added {
		if a.size += len(v.Value); a.size > accumulatorLimit {
			return memoryExceeded("$addToSet")
		}
	}
	return nil
}

func (a *setAcc) Value() (bson.RawValue, error) { return arrayOf(a.groups.Keys()), nil }

// concatAcc is $concatArrays over documents: the items of their arrays, without missing ones.
type concatAcc struct{ pushAcc }

func (a *concatAcc) Add(v bson.RawValue) error {
	return eachOf("$concatArrays", v, a.pushAcc.Add)
}

// unionAcc is $setUnion over documents.
type unionAcc struct{ setAcc }

func (a *unionAcc) Add(v bson.RawValue) error { return eachOf("$setUnion", v, a.setAcc.Add) }

func eachOf(name string, v bson.RawValue, f func(bson.RawValue) error) error {
	if v.Type == 0 {
		return nil
	}
	list, ok := v.Array()
	if !ok {
		return srverr.New(srverr.TypeMismatch, "%s requires array inputs, but input %s is of type %s", name, Text(v),
			typeName(v))
	}
	for item := range list.Values() {
		if err := f(item); err != nil {
			return err
		}
	}
	return nil
}

type stdDevAcc struct {
	sample   bool
	n        int64
	mean, m2 float64
}

func (a *stdDevAcc) Add(v bson.RawValue) error {
	if v.IsNumber() { // Welford's method
		x := toDouble(v)
		a.n++
		delta := x - a.mean
		if delta != 0 {
			a.mean += delta / float64(a.n)
			a.m2 += delta * (x - a.mean)
		}
	}
	return nil
}

func (a *stdDevAcc) Value() (bson.RawValue, error) {
	n := a.n
	if a.sample {
		n--
	}
	if n <= 0 {
		return null, nil
	}
	return bsondoc.DoubleValue(math.Sqrt(a.m2 / float64(n))), nil
}

type mergeAcc struct{ out *fields }

func (a *mergeAcc) Add(v bson.RawValue) error     { return mergeInto(a.out, v) }
func (a *mergeAcc) Value() (bson.RawValue, error) { return a.out.value(), nil }

func init() {
	for _, name := range []string{"$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"} {
		kind := accumulators[name]
		merges := name == "$sum" || name == "$min" || name == "$max"
		registerNary(&naryOp{name: name, arity: any0, list: true, associative: merges, commutative: merges,
			eval: func(st *State, args []bson.RawValue) (bson.RawValue, error) {
				acc := kind.make(st.env, 0)
				for _, v := range accumulated(args) {
					if err := acc.Add(v); err != nil {
						return missing, err
					}
				}
				return acc.Value()
			}})
	}
}

// checkN checks the count of $firstN and its like.
func checkN(name string, v bson.RawValue) (int, error) {
	if !v.IsNumber() {
		return 0, srverr.New(5787902, "Value for 'n' must be of integral type, but found %s", Text(v))
	}
	if !integral64(v) {
		return 0, srverr.New(5787903, "Value for 'n' must be of integral type, but found %s", Text(v))
	}
	n := toLong(v)
	if n <= 0 {
		return 0, srverr.New(5787908, "'n' must be greater than 0, found %d", n)
	}
	return int(min(n, math.MaxInt32)), nil
}
