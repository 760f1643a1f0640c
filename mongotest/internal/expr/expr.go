// Package expr has the aggregation expressions: what $project computes, $match tests with $expr and
// pipeline updates assign.
//
//	scope := expr.NewScope(&expr.Env{Version: release.At(4, 4, 0)})
//	e, err := expr.Parse(value, scope)
//	e, err = expr.Optimize(e)
//	v, err := expr.Eval(e, expr.NewState(env).WithRoot(doc))
//
// A parsed expression is immutable and may be used by several goroutines, each with a State of its
// own. Values are encoded BSON; "missing" is the zero bson.RawValue. Errors are *srverr.Error with
// the server's codes and texts, bare of the prefixes that the stage around the expression adds.
package expr

import (
	"maps"
	"math/rand/v2"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Version is the server version whose behaviour is shown; the zero Version is the newest.
type Version = release.Version

// Env is what expressions see of the world outside of their document. It must not change while it
// is in use.
type Env struct {
	Version Version
	// Compare is the order of values under the operation's collation; nil is bson.Compare.
	Compare func(a, b bson.RawValue) int
	// Now is $$NOW, ClusterTime $$CLUSTER_TIME (undefined where it is zero).
	Now         bson.DateTime
	ClusterTime bson.Timestamp
	// NoTimes refuses both variables where they are named, NoClusterTime the second one.
	NoTimes, NoClusterTime bool
	// UserRoles is $$USER_ROLES, an array; zero where the server has none.
	UserRoles bson.RawValue
	// SearchMeta is $$SEARCH_META: what a $search has found, missing before.
	SearchMeta bson.RawValue
	// ParseSort parses the sort specification of $top and its like.
	ParseSort func(spec bson.Raw) (Sorter, error)
	// Rand is the source of $rand and $sampleRate; nil is the global one.
	Rand *rand.Rand
	// Meta is what is known of the document at hand beside its fields, by the names of $meta; the
	// zero value is for what is not. nil: nothing is.
	Meta func(name string) bson.RawValue
	// WantsMeta are the kinds that expressions have asked for since it was emptied.
	WantsMeta []string
	// Script runs JavaScript; nil: the server runs none.
	Script Script
	// Let tells that the expression is one of a command's let, which sees no document.
	Let bool
	// Validator tells that the expression is part of a collection's validator.
	Validator bool
	// Check returns the error that ends the operation, nil to go on; a nil Check never ends it.
	Check func() error
}

// Sorter is a parsed sort specification.
type Sorter interface {
	// Key returns what a document sorts by; meta is nil.
	Key(doc bson.Raw, meta func(name string) bson.RawValue) ([]bson.RawValue, error)
	CompareKeys(a, b []bson.RawValue) int
}

func (e *Env) compare(a, b bson.RawValue) int {
	if e.Compare != nil {
		return e.Compare(a, b)
	}
	return bson.Compare(a, b)
}

func (e *Env) float64() float64 {
	if e.Rand != nil {
		return e.Rand.Float64()
	}
	return rand.Float64()
}

// Expr is a parsed expression.
type Expr interface {
	eval(st *State) (bson.RawValue, error)
	// optimize returns the expression with its constant parts computed.
	optimize(env *Env) (Expr, error)
}

// State is one evaluation's document and variables. It is not safe for concurrent use.
type State struct {
	env   *Env
	root  bson.RawValue
	slots []bson.RawValue
	steps int // of the operation: see Work
}

// NewState returns a state whose root document is missing.
func NewState(env *Env) *State { return &State{env: env} }

// code is that of an error which servers of 8.2 have another code for.
func (st *State) code(old, parsed int32) int32 {
	if st.env.Version.AllParsed() {
		return parsed
	}
	return old
}

// WithRoot sets the document that field paths start at, and returns st.
func (st *State) WithRoot(doc bson.Raw) *State {
	st.root = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	return st
}

// Set gives a variable its value.
func (st *State) Set(slot Slot, v bson.RawValue) {
	for len(st.slots) <= int(slot) {
		st.slots = append(st.slots, bson.RawValue{})
	}
	st.slots[slot] = v
}

func (st *State) get(slot Slot) bson.RawValue {
	if int(slot) < len(st.slots) {
		return st.slots[slot]
	}
	return bson.RawValue{}
}

// Fork returns a state of its own with the same variables, for a sub-pipeline that runs beside this
// one.
func (st *State) Fork() *State {
	return &State{env: st.env, root: st.root, slots: append([]bson.RawValue(nil), st.slots...)}
}

// Eval computes e for the state's document.
func Eval(e Expr, st *State) (_ bson.RawValue, err error) {
	defer work.Catch(&err)
	return e.eval(st)
}

// Optimize computes the constant parts of e, as the server does once per pipeline. Its errors are
// those of evaluating them.
func Optimize(e Expr, env *Env) (_ Expr, err error) {
	defer work.Catch(&err)
	return e.optimize(env)
}

// Constant returns e's value if it does not depend on a document or variable.
func Constant(e Expr) (bson.RawValue, bool) {
	if c, ok := e.(*constant); ok {
		return c.v, true
	}
	return bson.RawValue{}, false
}

// NewConstant returns an expression with a fixed value.
func NewConstant(v bson.RawValue) Expr { return &constant{v} }

// Slot is where a variable lives in a State.
type Slot int

// Scope is the variables that an expression may use. It is a chain of immutable links: Define adds
// one.
type Scope struct {
	env    *Env
	parent *Scope
	name   string
	slot   Slot
	next   *Slot // shared by all scopes of a pipeline, its sub-pipelines included
}

// NewScope returns the scope with the system variables alone.
func NewScope(env *Env) *Scope { return &Scope{env: env, next: new(Slot)} }

// Env returns the environment.
func (s *Scope) Env() *Env { return s.env }

// Define returns a scope with one variable more, and the variable's slot. The name is not checked.
func (s *Scope) Define(name string) (*Scope, Slot) {
	slot := *s.next
	*s.next++
	return &Scope{env: s.env, parent: s, name: name, slot: slot, next: s.next}, slot
}

func (s *Scope) lookup(name string) (Slot, bool) {
	for ; s != nil && s.parent != nil; s = s.parent {
		if s.name == name {
			return s.slot, true
		}
	}
	return 0, false
}

// maxDepth bounds how deep expressions nest, as the server does with documents.
const maxDepth = 200

// constant is a literal.
type constant struct{ v bson.RawValue }

func (c *constant) eval(*State) (bson.RawValue, error) { return c.v, nil }
func (c *constant) optimize(*Env) (Expr, error)        { return c, nil }

// Parse parses an operand: a field path or variable, a document with an operator, an object or
// array of operands, or a constant.
func Parse(v bson.RawValue, s *Scope) (Expr, error) { return parse(v, s, 0) }

func parse(v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if depth > maxDepth {
		return nil, srverr.New(srverr.Overflow, "exceeded maximum expression nesting depth")
	}
	switch v.Type {
	case bson.TypeString:
		text, _ := v.StringValue()
		if len(text) > 0 && text[0] == '$' {
			return parseFieldPath(text, s)
		}
		if err := fits(v); err != nil {
			return nil, err
		}
	case bson.TypeEmbeddedDocument:
		return parseObject(bson.Raw(v.Value), s, depth)
	case bson.TypeArray:
		a := &arrayExpr{}
		for item := range bson.Raw(v.Value).Values() {
			e, err := parse(item, s, depth+1)
			if err != nil {
				return nil, err
			}
			a.items = append(a.items, e)
		}
		return a, nil
	}
	return &constant{v}, nil
}

// firstElement returns a document's first element; n is 2 for two or more elements.
func firstElement(doc bson.Raw) (key string, v bson.RawValue, n int) {
	for k, e := range doc.All() {
		if n++; n == 1 {
			key, v = k, e
		} else {
			break
		}
	}
	return key, v, n
}

func parseObject(doc bson.Raw, s *Scope, depth int) (Expr, error) {
	key, v, n := firstElement(doc)
	if n > 0 && len(key) > 0 && key[0] == '$' {
		if n > 1 {
			return nil, srverr.New(15983, "An object representing an expression must have exactly one field: %s",
				documentText(doc))
		}
		return parseOperator(key, v, s, depth)
	}
	o := &objectExpr{}
	seen := make(map[string]bool, 4)
	for k, item := range doc.All() {
		if err := checkFieldName(k, s.env.Version); err != nil {
			return nil, err
		}
		if seen[k] {
			return nil, srverr.New(16406, "duplicate field name specified in object literal: %s", documentText(doc))
		}
		seen[k] = true
		e, err := parse(item, s, depth+1)
		if err != nil {
			return nil, err
		}
		o.keys, o.items = append(o.keys, k), append(o.items, e)
	}
	return o, nil
}

// IsOperator reports whether this version's server has an expression operator of this name, the '$'
// included.
func IsOperator(name string, env *Env) bool {
	return operators[name].parse != nil && env.Version.Has(release.Expression, name)
}

func parseOperator(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	op := operators[name]
	if op.parse == nil || !s.env.Version.Has(release.Expression, name) {
		return nil, srverr.New(srverr.InvalidPipelineOperator, "Unrecognized expression '%s'%s", name,
			s.env.Version.NotBuiltNote(release.Expression, name))
	}
	return op.parse(name, v, s, depth)
}

// operator is an expression operator.
type operator struct {
	parse parser
	shown showing // what explain shows of its operand; nil: positional operands, in an array
	as    string  // what explain calls it, if that is another operator that it is short for
}

type (
	// parser parses the operand of the operator of this name.
	parser func(name string, v bson.RawValue, s *Scope, depth int) (Expr, error)
	// showing returns an operator's operand as explain shows it.
	showing func(v bson.RawValue, s *Scope) bson.RawValue
)

// operators is filled by the init functions of the files that implement them, one group per file.
// Which versions have them is in the table of package release.
var operators = map[string]operator{}

// parseArguments parses an operator's operands: those in an array, or a single one.
func parseArguments(v bson.RawValue, s *Scope, depth int) ([]Expr, error) {
	if v.Type != bson.TypeArray {
		e, err := parse(v, s, depth+1)
		if err != nil {
			return nil, err
		}
		return []Expr{e}, nil
	}
	var args []Expr
	for item := range bson.Raw(v.Value).Values() {
		e, err := parse(item, s, depth+1)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	return args, nil
}

// objectExpr builds a document; fields whose expression is missing are left out.
type objectExpr struct {
	keys  []string
	items []Expr
}

func (o *objectExpr) eval(st *State) (bson.RawValue, error) {
	start, dst := bson.BeginDocument(nil)
	for i, e := range o.items {
		v, err := e.eval(st)
		if err != nil {
			return bson.RawValue{}, err
		}
		if v.Type != 0 {
			dst = bson.AppendRawValue(dst, o.keys[i], v)
		}
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(dst, start)}, nil
}

func (o *objectExpr) optimize(env *Env) (Expr, error) {
	items, allConstant, err := optimizeAll(o.items, env)
	if err != nil {
		return nil, err
	}
	return fold(&objectExpr{o.keys, items}, allConstant, env)
}

// arrayExpr builds an array; missing items become null.
type arrayExpr struct{ items []Expr }

func (a *arrayExpr) eval(st *State) (bson.RawValue, error) {
	b := newArray()
	for _, e := range a.items {
		v, err := e.eval(st)
		if err != nil {
			return bson.RawValue{}, err
		}
		b.add(v)
	}
	return b.value(), nil
}

func (a *arrayExpr) optimize(env *Env) (Expr, error) {
	items, allConstant, err := optimizeAll(a.items, env)
	if err != nil {
		return nil, err
	}
	return fold(&arrayExpr{items}, allConstant, env)
}

// optimizeAll optimizes a list of operands, of which some may be nil, and reports whether all of
// them are constants.
func optimizeAll(items []Expr, env *Env) (out []Expr, allConstant bool, err error) {
	out = make([]Expr, len(items))
	allConstant = true
	for i, e := range items {
		if e == nil {
			continue
		}
		if out[i], err = e.optimize(env); err != nil {
			return nil, false, err
		}
		if _, ok := out[i].(*constant); !ok {
			allConstant = false
		}
	}
	return out, allConstant, nil
}

// fold returns e, computed if it is constant.
func fold(e Expr, isConstant bool, env *Env) (Expr, error) {
	if !isConstant {
		return e, nil
	}
	v, err := e.eval(NewState(env))
	if err != nil {
		return nil, err
	}
	return &constant{v}, nil
}

// Operators lists the operators of expressions by name.
func Operators() []string { return slices.Sorted(maps.Keys(operators)) }

// Accumulators lists the accumulators of $group by name.
func Accumulators() []string { return slices.Sorted(maps.Keys(accumulators)) }
