package expr

// Operators with named operands: {$op: {input: a, chars: b}}.

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// parseError is a code and a message whose verbs are filled with the operator's name and a detail;
// an empty format does not use them.
type parseError struct {
	code   int32
	format string
	verbs  int // 0: plain text; 1: the detail; 2: operator and detail; 3: operator only
}

func (p parseError) err(op, detail string) error {
	switch p.verbs {
	case 1:
		return srverr.New(p.code, p.format, detail)
	case 2:
		return srverr.New(p.code, p.format, op, detail)
	case 3:
		return srverr.New(p.code, p.format, op)
	}
	return &srverr.Error{Code: p.code, Msg: p.format}
}

// parameter is a named operand.
type parameter struct {
	name    string
	missing *parseError // set if it is required
}

// namedOp describes an operator with named operands. Its eval gets them unevaluated, nil where not
// given, in the order of params.
type namedOp struct {
	name      string
	notObject parseError // detail: the type found
	unknown   parseError // detail: the parameter
	params    []parameter
	// late operators look at all names before they parse the operands; verify sees which are given.
	late   bool
	verify func(given func(i int) bool) error
	// foldOn lists the operands that have to be constant for the whole to be computed beforehand;
	// nil: all of them, an empty list: never.
	foldOn []int
	eval   func(st *State, n *named) (bson.RawValue, error)
	// prepare runs when the operands have been optimized, to check and compile constant ones.
	prepare func(n *named, env *Env) error
}

type named struct {
	op   *namedOp
	args []Expr
	data any // what prepare made of the constants
}

func (n *named) has(i int) bool { return n.args[i] != nil }

// arg evaluates an operand; one that is not given is missing.
func (n *named) arg(st *State, i int) (bson.RawValue, error) {
	if n.args[i] == nil {
		return missing, nil
	}
	v, err := n.args[i].eval(st)
	if err == nil {
		err = fits(v)
	}
	return v, err
}

func (n *named) eval(st *State) (bson.RawValue, error) {
	v, err := n.op.eval(st, n)
	if err == nil {
		err = fits(v)
	}
	return v, err
}

func (n *named) optimize(env *Env) (Expr, error) {
	args, allConstant, err := optimizeAll(n.args, env)
	if err != nil {
		return nil, err
	}
	out := &named{op: n.op, args: args}
	if n.op.foldOn != nil {
		allConstant = len(n.op.foldOn) > 0
		for _, i := range n.op.foldOn {
			if args[i] != nil {
				if _, ok := args[i].(*constant); !ok {
					allConstant = false
				}
			}
		}
	}
	if n.op.prepare != nil {
		if err := n.op.prepare(out, env); err != nil {
			return nil, err
		}
	}
	return fold(out, allConstant, env)
}

func (op *namedOp) parse(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, op.notObject.err(op.name, typeName(v))
	}
	n := &named{op: op, args: make([]Expr, len(op.params))}
	given := make([]bson.RawValue, len(op.params))
	for key, item := range bson.Raw(v.Value).All() {
		i := slices.IndexFunc(op.params, func(p parameter) bool { return p.name == key })
		if i < 0 {
			return nil, op.unknown.err(op.name, key)
		}
		if given[i] = item; op.late {
			continue
		}
		e, err := parse(item, s, depth+1)
		if err != nil {
			return nil, err
		}
		n.args[i] = e
	}
	for i, p := range op.params {
		if given[i].Type == 0 && p.missing != nil {
			return nil, p.missing.err(op.name, p.name)
		}
	}
	if op.verify != nil {
		if err := op.verify(func(i int) bool { return given[i].Type != 0 }); err != nil {
			return nil, err
		}
	}
	if !op.late {
		return n, nil
	}
	for i, item := range given {
		if item.Type == 0 {
			continue
		}
		e, err := parse(item, s, depth+1)
		if err != nil {
			return nil, err
		}
		n.args[i] = e
	}
	return n, nil
}

func registerNamed(ops ...*namedOp) {
	for _, op := range ops {
		var names []string
		for _, p := range op.params {
			names = append(names, p.name)
		}
		operators[op.name] = operator{parse: op.parse, shown: shownOperands(names...)}
		namedOperands[op.name] = true
	}
}

// namedOperands are the operators and accumulators that take a document with operands by their
// names: those of the table, and what has a parser of its own.
var namedOperands = map[string]bool{
	"$cond": true, "$switch": true, "$let": true, "$map": true, "$filter": true, "$reduce": true, "$zip": true,
	"$convert": true, "$getField": true, "$setField": true, "$unsetField": true, "$sortArray": true,
	"$function": true, "$sigmoid": true, "$meta": true,

	"$accumulator": true, "$top": true, "$topN": true, "$bottom": true, "$bottomN": true, "$firstN": true,
	"$lastN": true, "$minN": true, "$maxN": true, "$median": true, "$percentile": true, "$shift": true,
	"$derivative": true, "$integral": true, "$expMovingAvg": true, "$minMaxScaler": true,
}

// NamesOperands reports whether the keys of an operator's or accumulator's operand are names of
// operands, and not fields of a document that is computed.
func NamesOperands(operator string) bool { return namedOperands[operator] }
