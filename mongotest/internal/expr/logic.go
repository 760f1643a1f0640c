package expr

// Comparison, boolean and conditional operators.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
	"slices"
)

func init() {
	for name, holds := range map[string]func(c int) bool{
		"$eq": func(c int) bool { return c == 0 }, "$ne": func(c int) bool { return c != 0 },
		"$lt": func(c int) bool { return c < 0 }, "$lte": func(c int) bool { return c <= 0 },
		"$gt": func(c int) bool { return c > 0 }, "$gte": func(c int) bool { return c >= 0 },
	} {
		registerNary(&naryOp{name: name, arity: exactly(2),
			eval: func(st *State, args []bson.RawValue) (bson.RawValue, error) {
				return boolValue(holds(st.env.compare(args[0], args[1]))), nil
			}})
	}
	registerNary(
		&naryOp{name: "$cmp", arity: exactly(2), eval: func(st *State, args []bson.RawValue) (bson.RawValue, error) {
			c := st.env.compare(args[0], args[1])
			switch {
			case c < 0:
				c = -1
			case c > 0:
				c = 1
			}
			return bsondoc.Int32Value(int32(c)), nil
		}},
		&naryOp{name: "$not", arity: exactly(1), eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
			return boolValue(!Truthy(args[0])), nil
		}},
	)
	registerParser("$and", parseJunction)
	registerParser("$or", parseJunction)
	registerParser("$cond", parseCond, shownCond)
	registerParser("$ifNull", parseIfNull)
	registerParser("$switch", parseSwitch, shownSwitch)
	registerParser("$let", parseLet, shownLet)
}

// junction is $and or $or: decided by the first operand that is false or true.
type junction struct {
	or   bool
	args []Expr
}

func parseJunction(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	args, err := parseArguments(v, s, depth)
	if err != nil {
		return nil, err
	}
	return &junction{name == "$or", args}, nil
}

func (j *junction) eval(st *State) (bson.RawValue, error) {
	for _, e := range j.args {
		v, err := e.eval(st)
		if err != nil {
			return missing, err
		}
		if Truthy(v) == j.or {
			return boolValue(j.or), nil
		}
	}
	return boolValue(!j.or), nil
}

func (j *junction) optimize(env *Env) (Expr, error) {
	args, _, err := optimizeAll(j.args, env)
	if err != nil {
		return nil, err
	}
	out := &junction{or: j.or}
	for _, e := range args {
		if inner, ok := e.(*junction); ok && inner.or == j.or {
			out.args = append(out.args, inner.args...)
			continue
		}
		c, ok := e.(*constant)
		switch {
		case !ok:
			out.args = append(out.args, e)
		case Truthy(c.v) == j.or: // decides, whatever the others are
			return &constant{boolValue(j.or)}, nil
		}
	}
	return fold(out, len(out.args) == 0, env)
}

// cond is $cond.
type cond struct{ test, then, otherwise Expr }

func parseCond(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	c := &cond{}
	if v.Type != bson.TypeEmbeddedDocument {
		args, err := parseArguments(v, s, depth)
		if err != nil {
			return nil, err
		}
		if err := exactly(3).check(name, len(args)); err != nil {
			return nil, err
		}
		return &cond{args[0], args[1], args[2]}, nil
	}
	for key, item := range bson.Raw(v.Value).All() {
		target := map[string]*Expr{"if": &c.test, "then": &c.then, "else": &c.otherwise}[key]
		if target == nil {
			return nil, srverr.New(17083, "Unrecognized parameter to $cond: %s", key)
		}
		e, err := parse(item, s, depth+1)
		if err != nil {
			return nil, err
		}
		*target = e
	}
	switch {
	case c.test == nil:
		return nil, srverr.New(17080, "Missing 'if' parameter to $cond")
	case c.then == nil:
		return nil, srverr.New(17081, "Missing 'then' parameter to $cond")
	case c.otherwise == nil:
		return nil, srverr.New(17082, "Missing 'else' parameter to $cond")
	}
	return c, nil
}

func (c *cond) eval(st *State) (bson.RawValue, error) {
	v, err := c.test.eval(st)
	if err != nil {
		return missing, err
	}
	if Truthy(v) {
		return c.then.eval(st)
	}
	return c.otherwise.eval(st)
}

func (c *cond) optimize(env *Env) (Expr, error) {
	args, all, err := optimizeAll([]Expr{c.test, c.then, c.otherwise}, env)
	if err != nil {
		return nil, err
	}
	return fold(&cond{args[0], args[1], args[2]}, all, env)
}

// ifNull is the first operand that is not null, or the last one.
type ifNull struct{ args []Expr }

func parseIfNull(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	args, err := parseArguments(v, s, depth)
	if err != nil {
		return nil, err
	}
	if s.env.Version.AtLeast(5, 0) {
		if len(args) < 2 {
			return nil, srverr.New(1257300, "$ifNull needs at least two arguments, had: %d", len(args))
		}
	} else if err := exactly(2).check(name, len(args)); err != nil {
		return nil, err
	}
	return &ifNull{args}, nil
}

func (n *ifNull) eval(st *State) (v bson.RawValue, err error) {
	for _, e := range n.args {
		if v, err = e.eval(st); err != nil || !nullish(v) {
			return v, err
		}
	}
	return v, nil
}

func (n *ifNull) optimize(env *Env) (Expr, error) {
	args, all, err := optimizeAll(n.args, env)
	if err != nil {
		return nil, err
	}
	return fold(&ifNull{args}, all, env)
}

// switchExpr is $switch.
type switchExpr struct {
	cases, thens []Expr
	otherwise    Expr
}

func parseSwitch(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(40060, "$switch requires an object as an argument, found: %s", typeName(v))
	}
	sw := &switchExpr{}
	for key, item := range bson.Raw(v.Value).All() {
		switch key {
		case "branches":
			if item.Type != bson.TypeArray {
				return nil, srverr.New(40061, "$switch expected an array for 'branches', found: %s", typeName(item))
			}
			for branch := range bson.Raw(item.Value).Values() {
				if err := sw.parseBranch(branch, s, depth); err != nil {
					return nil, err
				}
			}
		case "default":
			e, err := parse(item, s, depth+1)
			if err != nil {
				return nil, err
			}
			sw.otherwise = e
		default:
			return nil, srverr.New(40067, "$switch found an unknown argument: %s", key)
		}
	}
	if len(sw.cases) == 0 {
		return nil, srverr.New(40068, "$switch requires at least one branch.")
	}
	return sw, nil
}

func (sw *switchExpr) parseBranch(branch bson.RawValue, s *Scope, depth int) error {
	if branch.Type != bson.TypeEmbeddedDocument {
		return srverr.New(40062, "$switch expected each branch to be an object, found: %s", typeName(branch))
	}
	var test, then Expr
	for key, item := range bson.Raw(branch.Value).All() {
		target := &test
		switch key {
		case "case":
		case "then":
			target = &then
		default:
			return srverr.New(40063, "$switch found an unknown argument to a branch: %s", key)
		}
		e, err := parse(item, s, depth+1)
		if err != nil {
			return err
		}
		*target = e
	}
	switch {
	case test == nil:
		return srverr.New(40064, "$switch requires each branch have a 'case' expression")
	case then == nil:
		return srverr.New(40065, "$switch requires each branch have a 'then' expression.")
	}
	sw.cases, sw.thens = append(sw.cases, test), append(sw.thens, then)
	return nil
}

func (sw *switchExpr) eval(st *State) (bson.RawValue, error) {
	for i, test := range sw.cases {
		v, err := test.eval(st)
		if err != nil {
			return missing, err
		}
		if Truthy(v) {
			return sw.thens[i].eval(st)
		}
	}
	if sw.otherwise == nil {
		return missing, srverr.New(40066,
			"$switch could not find a matching branch for an input, and no default was specified.")
	}
	return sw.otherwise.eval(st)
}

func (sw *switchExpr) optimize(env *Env) (Expr, error) {
	last, _, err := optimizeAll([]Expr{sw.otherwise}, env) // comes first
	if err != nil {
		return nil, err
	}
	cases, thens := make([]Expr, len(sw.cases)), make([]Expr, len(sw.cases))
	for i := range cases {
		if cases[i], err = sw.cases[i].optimize(env); err != nil {
			return nil, err
		}
		never := false
		if c, ok := cases[i].(*constant); ok && !Truthy(c.v) && env.Version.AllParsed() {
			never = true // what it would lead to is not computed
		}
		if thens[i] = sw.thens[i]; !never {
			if thens[i], err = sw.thens[i].optimize(env); err != nil {
				return nil, err
			}
		}
		if c, ok := cases[i].(*constant); ok && Truthy(c.v) && env.Version.AtLeast(5, 0) {
			cases, thens = cases[:i+1], thens[:i+1] // the others are never looked at
			break
		}
	}
	if last[0] == nil && env.Version.AtLeast(5, 0) && !slices.ContainsFunc(cases, func(e Expr) bool {
		c, ok := e.(*constant)
		return !ok || Truthy(c.v)
	}) {
		return nil, srverr.New(
			40069, "One cannot execute a switch statement where all the cases evaluate to false without a default.")
	}
	return &switchExpr{cases, thens, last[0]}, nil
}

// let is $let.
type let struct {
	slots  []Slot
	values []Expr
	in     Expr
}

func parseLet(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(16874, "$let only supports an object as its argument")
	}
	var vars, in bson.RawValue
	for key, item := range bson.Raw(v.Value).All() {
		switch key {
		case "vars":
			vars = item
		case "in":
			in = item
		default:
			return nil, srverr.New(16875, "Unrecognized parameter to $let: %s", key)
		}
	}
	switch {
	case vars.Type == 0:
		return nil, srverr.New(16876, "Missing 'vars' parameter to $let")
	case in.Type == 0:
		return nil, srverr.New(16877, "Missing 'in' parameter to $let")
	// an array is a document with numbers as names
	case vars.Type != bson.TypeEmbeddedDocument && vars.Type != bson.TypeArray:
		return nil, srverr.New(10065, "invalid parameter: expected an object (vars)")
	}
	l := &let{}
	inner := s
	for name, item := range bson.Raw(vars.Value).All() {
		if err := checkVariable(name, s.env.Version, true); err != nil {
			return nil, err
		}
		e, err := parse(item, s, depth+1) // the values do not see each other
		if err != nil {
			return nil, err
		}
		var slot Slot
		inner, slot = inner.Define(name)
		l.slots, l.values = append(l.slots, slot), append(l.values, e)
	}
	e, err := parse(in, inner, depth+1)
	l.in = e
	return l, err
}

func (l *let) eval(st *State) (bson.RawValue, error) {
	for i, e := range l.values {
		v, err := e.eval(st)
		if err != nil {
			return missing, err
		}
		st.Set(l.slots[i], v)
	}
	return l.in.eval(st)
}

func (l *let) optimize(env *Env) (Expr, error) {
	values, _, err := optimizeAll(l.values, env)
	if err != nil {
		return nil, err
	}
	in, err := l.in.optimize(env)
	if err != nil || len(values) == 0 {
		return in, err
	}
	return &let{l.slots, values, in}, nil
}
