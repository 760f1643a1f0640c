package expr

// Array operators that evaluate an expression per item: $map, $filter, $reduce; and $zip.

import (
	"iter"
	"math"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

func init() {
	registerParser("$map", parseMap, shownOperands("input", "=as", "in"))
	registerParser("$filter", parseFilter, shownOperands("input", "=as", "cond", "limit"))
	registerParser("$reduce", parseReduce, shownOperands("input", "initialValue", "in"))
	registerParser("$zip", parseZip, shownZip)
}

// CheckInterval is how many steps of work pass between two looks at Env.Check: nested iterations
// multiply, and an operation must end when it is killed.
const CheckInterval = 1024

// Work counts steps of the operation, and returns the error that ends it.
func (st *State) Work(steps int) error {
	if st.steps += steps; st.steps < CheckInterval {
		return nil
	}
	st.steps = 0
	if st.env.Check == nil {
		return nil
	}
	return st.env.Check()
}

// Do is Work for loops that cannot return an error: it leaves them for [Eval] or [Optimize].
func (st *State) Do(steps int) { work.End(st.Work(steps)) }

// counting returns the order of values, which counts.
func (st *State) counting() func(a, b bson.RawValue) int {
	return func(a, b bson.RawValue) int {
		st.Do(1)
		return st.env.compare(a, b)
	}
}

// step counts an iteration.
func (st *State) step() error { return st.Work(1) }

// copied counts the copying of some bytes.
func (st *State) copied(n int) error { return st.Work(1 + n>>10) }

// counter is the variable that has the index of the item (8.3): the one that arrayIndexAs names, or
// else $$IDX.
type counter struct {
	slot Slot
	on   bool
}

// define defines the variable of the iteration, in versions that have one.
func (c *counter) define(as bson.RawValue, s *Scope) (*Scope, error) {
	if as.Type == 0 {
		if !s.env.Version.Has(release.Variable, "$$IDX") {
			return s, nil
		}
		s, c.slot = s.Define("IDX")
	} else {
		var err error
		if s, c.slot, err = defineAs(as, "", s); err != nil {
			return nil, err
		}
	}
	c.on = true
	return s, nil
}

// iteration is what $map, $filter and $reduce share: an array, and variables for its item and its
// place.
type iteration struct {
	input Expr
	this  Slot
	index counter
}

// items sets the variables for each item of an array, and returns it. Each is a step of work.
func (it *iteration) items(st *State, array bson.RawValue) iter.Seq2[bson.RawValue, error] {
	return func(yield func(bson.RawValue, error) bool) {
		n := int32(0)
		for item := range bson.Raw(array.Value).Values() {
			err := st.step()
			st.Set(it.this, item)
			if it.index.on {
				st.Set(it.index.slot, bsondoc.Int32Value(n))
			}
			n++
			if !yield(item, err) {
				return
			}
		}
	}
}

type mapExpr struct {
	iteration
	in Expr
}

func parseMap(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(16878, "$map only supports an object as its argument")
	}
	var input, as, in, index bson.RawValue
	for key, item := range bson.Raw(v.Value).All() {
		switch {
		case key == "input":
			input = item
		case key == "as":
			as = item
		case key == "in":
			in = item
		case key == "arrayIndexAs" && s.env.Version.Has(release.Argument, "$map.arrayIndexAs"):
			index = item
		default:
			return nil, srverr.New(16879, "Unrecognized parameter to $map: %s", key)
		}
	}
	switch {
	case input.Type == 0:
		return nil, srverr.New(16880, "Missing 'input' parameter to $map")
	case in.Type == 0:
		return nil, srverr.New(16882, "Missing 'in' parameter to $map")
	}
	m := &mapExpr{}
	var err error
	if m.input, err = parse(input, s, depth+1); err != nil {
		return nil, err
	}
	inner, slot, err := defineAs(as, "this", s)
	if err != nil {
		return nil, err
	}
	m.this = slot
	if inner, err = m.index.define(index, inner); err != nil {
		return nil, err
	}
	m.in, err = parse(in, inner, depth+1)
	return m, err
}

// defineAs defines the variable that 'as' names, or one with the default name. What is no string
// counts as empty.
func defineAs(as bson.RawValue, byDefault string, s *Scope) (*Scope, Slot, error) {
	name := byDefault
	if as.Type != 0 {
		name = text(as)
		if err := checkVariable(name, s.env.Version, true); err != nil {
			return nil, 0, err
		}
	}
	inner, slot := s.Define(name)
	return inner, slot, nil
}

func (m *mapExpr) eval(st *State) (bson.RawValue, error) {
	in, err := m.input.eval(st)
	if err != nil || nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeArray {
		return missing, srverr.New(16883, "input to $map must be an array not %s", typeName(in))
	}
	b := newArray()
	for _, err := range m.items(st, in) {
		if err != nil {
			return missing, err
		}
		v, err := m.in.eval(st)
		if err != nil {
			return missing, err
		}
		if err := st.copied(len(v.Value)); err != nil {
			return missing, err
		}
		if b.add(v); len(b.dst) > maxResult {
			return missing, tooLarge()
		}
	}
	return b.value(), nil
}

func (m *mapExpr) optimize(env *Env) (Expr, error) {
	args, _, err := optimizeAll([]Expr{m.input, m.in}, env)
	if err != nil {
		return nil, err
	}
	return &mapExpr{iteration{args[0], m.this, m.index}, args[1]}, nil
}

type filterExpr struct {
	iteration
	cond, limit Expr
}

func parseFilter(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(28646, "$filter only supports an object as its argument")
	}
	var input, as, cond, limit, index bson.RawValue
	for key, item := range bson.Raw(v.Value).All() {
		switch {
		case key == "input":
			input = item
		case key == "as":
			as = item
		case key == "cond":
			cond = item
		case key == "limit" && s.env.Version.Has(release.Argument, "$filter.limit"):
			limit = item
		case key == "arrayIndexAs" && s.env.Version.Has(release.Argument, "$filter.arrayIndexAs"):
			index = item
		default:
			return nil, srverr.New(28647, "Unrecognized parameter to $filter: %s", key)
		}
	}
	switch {
	case input.Type == 0:
		return nil, srverr.New(28648, "Missing 'input' parameter to $filter")
	case cond.Type == 0:
		return nil, srverr.New(28650, "Missing 'cond' parameter to $filter")
	}
	f := &filterExpr{}
	var err error
	if f.input, err = parse(input, s, depth+1); err != nil {
		return nil, err
	}
	inner, slot, err := defineAs(as, "this", s)
	if err != nil {
		return nil, err
	}
	f.this = slot
	if inner, err = f.index.define(index, inner); err != nil {
		return nil, err
	}
	if f.cond, err = parse(cond, inner, depth+1); err != nil {
		return nil, err
	}
	if limit.Type != 0 {
		f.limit, err = parse(limit, s, depth+1)
	}
	return f, err
}

func (f *filterExpr) eval(st *State) (bson.RawValue, error) {
	in, err := f.input.eval(st)
	if err != nil || nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeArray {
		return missing, srverr.New(28651, "input to $filter must be an array not %s", typeName(in))
	}
	limit := int64(-1)
	if f.limit != nil {
		v, err := f.limit.eval(st)
		if err != nil {
			return missing, err
		}
		if !nullish(v) {
			if !integral(v) {
				return missing, srverr.New(327391, "$filter: limit must be represented as a 32-bit integral value: %s",
					Text(v))
			}
			if limit = toLong(v); limit < 1 {
				return missing, srverr.New(327392, "$filter: limit must be greater than 0: %d", limit)
			}
		}
	}
	b := newArray()
	for item, err := range f.items(st, in) {
		if err != nil {
			return missing, err
		}
		v, err := f.cond.eval(st)
		if err != nil {
			return missing, err
		}
		if !Truthy(v) {
			continue
		}
		if b.add(item); int64(b.n) == limit {
			break
		}
	}
	return b.value(), nil
}

func (f *filterExpr) optimize(env *Env) (Expr, error) {
	args, _, err := optimizeAll([]Expr{f.input, f.cond, f.limit}, env)
	if err != nil {
		return nil, err
	}
	return &filterExpr{iteration{args[0], f.this, f.index}, args[1], args[2]}, nil
}

type reduceExpr struct {
	iteration
	initial, in Expr
	value       Slot
}

func parseReduce(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(40075, "$reduce requires an object as an argument, found: %s", typeName(v))
	}
	r := &reduceExpr{}
	inner, slot := s.Define("this")
	r.this = slot
	inner, r.value = inner.Define("value")
	inner, err := r.index.define(r.indexAs(v, s), inner)
	if err != nil {
		return nil, err
	}
	for key, item := range bson.Raw(v.Value).All() {
		target, scope := &r.input, s
		switch key {
		case "input":
		case "initialValue":
			target = &r.initial
		case "in":
			target, scope = &r.in, inner
		case "arrayIndexAs":
			if s.env.Version.Has(release.Argument, "$reduce.arrayIndexAs") {
				continue
			}
			fallthrough
		default:
			return nil, srverr.New(40076, "$reduce found an unknown argument: %s", key)
		}
		e, err := parse(item, scope, depth+1)
		if err != nil {
			return nil, err
		}
		*target = e
	}
	switch {
	case r.input == nil:
		return nil, srverr.New(40077, "$reduce requires 'input' to be specified")
	case r.initial == nil:
		return nil, srverr.New(40078, "$reduce requires 'initialValue' to be specified")
	case r.in == nil:
		return nil, srverr.New(40079, "$reduce requires 'in' to be specified")
	}
	return r, nil
}

// indexAs returns the argument arrayIndexAs, which may stand behind the expression that needs it.
func (r *reduceExpr) indexAs(v bson.RawValue, s *Scope) bson.RawValue {
	if !s.env.Version.Has(release.Argument, "$reduce.arrayIndexAs") {
		return bson.RawValue{}
	}
	return bson.Raw(v.Value).Lookup("arrayIndexAs")
}

func (r *reduceExpr) eval(st *State) (bson.RawValue, error) {
	in, err := r.input.eval(st)
	if err != nil || nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeArray {
		return missing, srverr.New(40080, "$reduce requires that 'input' be an array, found: %s", Text(in))
	}
	acc, err := r.initial.eval(st)
	if err != nil {
		return missing, err
	}
	for _, err := range r.items(st, in) {
		if err != nil {
			return missing, err
		}
		if len(acc.Value) > maxResult {
			return missing, tooLarge()
		}
		st.Set(r.value, acc)
		if acc, err = r.in.eval(st); err != nil {
			return missing, err
		}
	}
	return acc, nil
}

func (r *reduceExpr) optimize(env *Env) (Expr, error) {
	args, _, err := optimizeAll([]Expr{r.input, r.initial, r.in}, env)
	if err != nil {
		return nil, err
	}
	return &reduceExpr{iteration{args[0], r.this, r.index}, args[1], args[2], r.value}, nil
}

type zipExpr struct {
	inputs, defaults []Expr
	longest          bool
}

func parseZip(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(34460, "$zip only supports an object as an argument, found %s", typeName(v))
	}
	z := &zipExpr{}
	list := func(v bson.RawValue) ([]Expr, error) { return parseArguments(v, s, depth) }
	for key, item := range bson.Raw(v.Value).All() {
		switch key {
		case "inputs":
			if item.Type != bson.TypeArray {
				return nil, srverr.New(34461, "inputs must be an array of expressions, found %s", typeName(item))
			}
			more, err := list(item)
			if err != nil {
				return nil, err
			}
			z.inputs = append(z.inputs, more...) // a field that stands twice adds to the first one
		case "defaults":
			if item.Type != bson.TypeArray {
				return nil, srverr.New(34462, "defaults must be an array of expressions, found %s", typeName(item))
			}
			more, err := list(item)
			if err != nil {
				return nil, err
			}
			z.defaults = append(z.defaults, more...)
		case "useLongestLength":
			b, ok := item.Boolean()
			if !ok {
				// The server names the type of the whole specification here.
				return nil, srverr.New(34463, "useLongestLength must be a bool, found %s", typeName(v))
			}
			z.longest = b
		default:
			return nil, srverr.New(34464, "$zip found an unknown argument: %s", key)
		}
	}
	switch {
	case len(z.inputs) == 0:
		return nil, srverr.New(34465, "$zip requires at least one input array")
	case len(z.defaults) > 0 && !z.longest:
		return nil, srverr.New(34466, "cannot specify defaults unless useLongestLength is true")
	case len(z.defaults) > 0 && len(z.defaults) != len(z.inputs):
		return nil, srverr.New(34467, "defaults and inputs must have the same length")
	}
	return z, nil
}

func (z *zipExpr) eval(st *State) (bson.RawValue, error) {
	columns := make([][]bson.RawValue, len(z.inputs))
	rows, longest, shortest := 0, 0, math.MaxInt
	for i, e := range z.inputs {
		v, err := e.eval(st)
		if err != nil || nullish(v) {
			return null, err
		}
		if v.Type != bson.TypeArray {
			return missing, srverr.New(34468, "$zip found a non-array expression in input: %s", Text(v))
		}
		columns[i] = bsondoc.Items(v)
		shortest, longest = min(shortest, len(columns[i])), max(longest, len(columns[i]))
	}
	if rows = shortest; z.longest {
		rows = longest
	}
	defaults := make([]bson.RawValue, len(z.inputs))
	for i, e := range z.defaults {
		if shortest == longest {
			break // none is needed
		}
		v, err := e.eval(st)
		if err != nil {
			return missing, err
		}
		defaults[i] = v
	}
	out := newArray()
	for i := range rows {
		row := newArray()
		for j, column := range columns {
			if i < len(column) {
				row.add(column[i])
			} else {
				row.add(defaults[j])
			}
		}
		if out.add(row.value()); len(out.dst) > maxResult {
			return missing, tooLarge()
		}
	}
	return out.value(), nil
}

func (z *zipExpr) optimize(env *Env) (Expr, error) {
	inputs, _, err := optimizeAll(z.inputs, env)
	if err != nil {
		return nil, err
	}
	defaults, _, err := optimizeAll(z.defaults, env)
	if err != nil {
		return nil, err
	}
	return &zipExpr{slices.Clip(inputs), slices.Clip(defaults), z.longest}, nil
}
