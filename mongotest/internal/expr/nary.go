package expr

// Operators with positional operands: {$op: [a, b]}.

import (
	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// arity bounds the number of operands; max -1 means any number.
type arity struct{ min, max int }

// check returns the server's error for a number of operands out of bounds.
func (a arity) check(name string, n int) error {
	switch {
	case a.max == a.min && n != a.min:
		return srverr.New(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, a.min, n)
	case a.max >= 0 && (n < a.min || n > a.max):
		return srverr.New(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.",
			name, a.min, a.max, n)
	}
	return nil
}

// naryOp describes an operator with positional operands, which are evaluated in their order.
type naryOp struct {
	name  string // as shown in messages
	arity arity
	// associative operators compute runs of constant operands beforehand and merge with nested ones
	// of the same kind; commutative ones move their constants to the end for that.
	associative, commutative bool
	check                    func(n int) error // instead of the arity's text
	// operand looks at the operands so far, of n, before the next one is evaluated. done ends
	// the evaluation with null, or with the value that ends gives. An operator without it looks at
	// its operands when all of them are there.
	operand func(st *State, args []bson.RawValue, n int) (done bool, err error)
	ends    bson.RawValue
	// last is the operand that is evaluated when all others have been, and comes last then;
	// 0: none.
	last int
	// list operators take a single operand that is an array for the list of their operands, so that
	// one with a single operand is not associative.
	list bool
	eval func(st *State, args []bson.RawValue) (bson.RawValue, error)
	// constants looks at operands of which some are constant, when they have been optimized. It may
	// return another operator to be used for them.
	constants func(args []Expr, env *Env) (*naryOp, error)
	// refuse looks at operands that have been optimized before those that are all constant are
	// computed.
	refuse func(args []Expr, env *Env) error
}

type nary struct {
	op   *naryOp
	args []Expr
}

func (n *nary) eval(st *State) (bson.RawValue, error) {
	var buf [4]bson.RawValue
	args := buf[:0]
	for i := range n.args {
		v, err := n.args[n.op.at(i, len(n.args))].eval(st)
		if err != nil {
			return missing, err
		}
		if err := fits(v); err != nil {
			return missing, err
		}
		args = append(args, v)
		if n.op.operand != nil {
			if done, err := n.op.operand(st, args, len(n.args)); err != nil {
				return missing, err
			} else if done && n.op.ends.Type != 0 {
				return n.op.ends, nil
			} else if done {
				return null, nil
			}
		}
		if err := st.copied(len(v.Value)); err != nil { // operators go through their operands, or copy them
			return missing, err
		}
	}
	v, err := n.op.eval(st, args)
	if err == nil {
		err = fits(v)
	}
	return v, err
}

// at returns the operand that is evaluated as the i-th of n.
func (op *naryOp) at(i, n int) int {
	switch {
	case op.last == 0 || i < op.last:
		return i
	case i == n-1:
		return op.last
	}
	return i + 1
}

// associates reports whether operands of the operator may be taken together.
func (n *nary) associates() bool { return n.op.associative && !(n.op.list && len(n.args) == 1) }

func (n *nary) optimize(env *Env) (Expr, error) {
	args, allConstant, err := optimizeAll(n.args, env)
	if err != nil {
		return nil, err
	}
	if n.op.refuse != nil {
		if err := n.op.refuse(args, env); err != nil {
			return nil, err
		}
	}
	if allConstant {
		return fold(&nary{n.op, args}, true, env)
	}
	if n.op.constants != nil {
		if op, err := n.op.constants(args, env); op != nil || err != nil {
			return &nary{op, args}, err
		}
	}
	if n.associates() {
		if args, err = n.foldRuns(args, env); err != nil {
			return nil, err
		}
	}
	return &nary{n.op, args}, nil
}

// foldRuns computes runs of constants of an associative operator.
func (n *nary) foldRuns(args []Expr, env *Env) ([]Expr, error) {
	var out, constants []Expr
	flush := func() error {
		if len(constants) > 1 {
			e, err := fold(&nary{n.op, constants}, true, env)
			if err != nil {
				return err
			}
			constants = []Expr{e}
		}
		out, constants = append(out, constants...), nil
		return nil
	}
	for queue := args; len(queue) > 0; {
		e := queue[0]
		queue = queue[1:]
		if _, ok := e.(*constant); ok {
			constants = append(constants, e)
			continue
		}
		if inner, ok := e.(*nary); ok && inner.op == n.op && inner.associates() {
			queue = append(append([]Expr(nil), inner.args...), queue...)
			continue
		}
		if !n.op.commutative {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
	return out, flush()
}

// registerNary adds operators with positional operands to the table.
func registerNary(ops ...*naryOp) {
	for _, op := range ops {
		operators[op.name] = operator{parse: op.parse}
	}
}

func (op *naryOp) parse(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	args, err := parseArguments(v, s, depth)
	if err != nil {
		return nil, err
	}
	if op.check != nil {
		err = op.check(len(args))
	} else {
		err = op.arity.check(op.name, len(args))
	}
	if err != nil {
		return nil, err
	}
	return &nary{op, args}, nil
}

// registerParser adds an operator with a parser of its own, and with what explain shows of it if
// that is not an array of operands.
func registerParser(name string, parse parser, shown ...showing) {
	op := operator{parse: parse}
	if len(shown) > 0 {
		op.shown = shown[0]
	}
	operators[name] = op
}

var any0 = arity{0, -1}

func exactly(n int) arity { return arity{n, n} }
