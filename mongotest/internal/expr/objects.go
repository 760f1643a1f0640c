package expr

// Object operators, literals and $type.

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerNary(
		&naryOp{name: "$objectToArray", arity: exactly(1), eval: evalObjectToArray},
		&naryOp{name: "$type", arity: exactly(1), eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
			return bsondoc.StringValue(typeName(args[0])), nil
		}},
	)
	registerNary(
		&naryOp{name: "$isNumber", arity: exactly(1),
			eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
				return boolValue(args[0].IsNumber()), nil
			}},
		&naryOp{name: "$bsonSize", arity: exactly(1),
			eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
				switch v := args[0]; {
				case nullish(v):
					return null, nil
				case v.Type != bson.TypeEmbeddedDocument:
					return missing, srverr.New(31393, "$bsonSize requires a document input, found: %s", typeName(v))
				default:
					return bsondoc.Int32Value(int32(len(v.Value))), nil
				}
			}},
		&naryOp{name: "$binarySize", arity: exactly(1),
			eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
				switch v := args[0]; {
				case nullish(v):
					return null, nil
				case isString(v):
					return bsondoc.Int32Value(int32(len(text(v)))), nil
				case v.Type == bson.TypeBinary:
					return bsondoc.Int32Value(int32(len(v.Value) - 5)), nil
				default:
					return missing,
						srverr.New(51276, "$binarySize requires a string or BinData argument, found: %s", typeName(v))
				}
			}},
	)
	literal := func(_ string, v bson.RawValue, _ *Scope, _ int) (Expr, error) { return &constant{v}, nil }
	registerParser("$literal", literal, shownAsWritten)
	registerParser("$const", literal, shownAsWritten)
	registerParser("$mergeObjects", func(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
		args, err := parseArguments(v, s, depth)
		op := mergeEach
		if len(args) == 1 {
			op = mergeList
		}
		return &nary{op, args}, err
	})
	registerParser("$getField", parseGetField, shownGetField)
	registerParser("$setField", parseSetField, shownOperands("field", "input", "value"))
	registerParser("$unsetField", parseSetField, shownOperands("field", "input"))
}

func evalObjectToArray(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	if nullish(args[0]) {
		return null, nil
	}
	if args[0].Type != bson.TypeEmbeddedDocument {
		return missing, srverr.New(40390, "$objectToArray requires a document input, found: %s", typeName(args[0]))
	}
	b := newArray()
	for key, v := range bson.Raw(args[0].Value).All() {
		_, dst := bson.BeginDocument(nil)
		dst = bson.AppendString(dst, "k", key)
		dst = bson.AppendRawValue(dst, "v", v)
		b.add(bsondoc.DocumentValue(bson.EndDocument(dst, 0)))
	}
	return b.value(), nil
}

// accumulated returns the values that an accumulator used as an expression works on: an array's
// items if that is its only operand, else the operands.
func accumulated(args []bson.RawValue) []bson.RawValue {
	if len(args) == 1 && args[0].Type == bson.TypeArray {
		return bsondoc.Items(args[0])
	}
	return args
}

func evalMergeObjects(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	out := newFields()
	for _, v := range accumulated(args) {
		if err := mergeInto(out, v); err != nil {
			return missing, err
		}
	}
	return out.value(), nil
}

// $mergeObjects of one operand, which may be an array of documents, and of several ones, of which
// each is refused before the next one is looked at.
var (
	mergeList = &naryOp{name: "$mergeObjects", arity: any0, eval: evalMergeObjects}
	mergeEach = &naryOp{name: "$mergeObjects", arity: any0, eval: evalMergeObjects,
		operand: func(_ *State, args []bson.RawValue, _ int) (done bool, err error) {
			return false, mergeInto(newFields(), args[len(args)-1])
		}}
)

func mergeInto(out *fields, v bson.RawValue) error {
	if nullish(v) {
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(40400, "$mergeObjects requires object inputs, but input %s is of type %s", Text(v),
			typeName(v))
	}
	for key, item := range bson.Raw(v.Value).All() {
		out.set(key, item)
	}
	return nil
}

// getField is $getField: a field whose name may hold dots and dollars.
type getField struct{ field, input Expr }

func parseGetField(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	g := &getField{input: &fieldPath{fromRoot: true}}
	if slot, ok := s.lookup("CURRENT"); ok {
		g.input = &fieldPath{slot: slot}
	}
	named := false
	if v.Type == bson.TypeEmbeddedDocument {
		key, _, _ := firstElement(bson.Raw(v.Value))
		named = !strings.HasPrefix(key, "$")
	}
	field := v
	if named {
		field = missing
		haveInput := false
		for key, item := range bson.Raw(v.Value).All() {
			switch key {
			case "field":
				field = item
			case "input":
				haveInput = true
				e, err := parse(item, s, depth+1)
				if err != nil {
					return nil, err
				}
				g.input = e
			default:
				return nil, srverr.New(3041701, "$getField found an unknown argument: %s", key)
			}
		}
		if field.Type == 0 {
			return nil, srverr.New(3041702, "$getField requires 'field' to be specified")
		}
		if !haveInput {
			return nil, srverr.New(3041703, "$getField requires 'input' to be specified")
		}
	}
	e, err := parse(field, s, depth+1)
	if err != nil {
		return nil, err
	}
	if !s.env.Version.AtLeast(7, 2) { // earlier servers want a constant
		if e, err = e.optimize(s.env); err != nil {
			return nil, err
		}
		c, ok := e.(*constant)
		if !ok {
			return nil, srverr.New(5654600,
				"$getField requires 'field' to evaluate to a constant, but got a non-constant argument")
		}
		if !isString(c.v) {
			return nil, srverr.New(5654602, "$getField requires 'field' to evaluate to type String, but got %s",
				typeName(c.v))
		}
	}
	g.field = e
	return g, nil
}

func (g *getField) eval(st *State) (bson.RawValue, error) {
	field, err := g.field.eval(st)
	if err != nil {
		return missing, err
	}
	if !isString(field) {
		return missing, srverr.New(3041704, "$getField requires 'field' to evaluate to type String, but got %s",
			typeName(field))
	}
	in, err := g.input.eval(st)
	switch {
	case err != nil:
		return missing, err
	case nullish(in):
		if in.Type == 0 {
			return missing, nil
		}
		return null, nil
	case in.Type != bson.TypeEmbeddedDocument:
		return missing, nil
	}
	return bson.Raw(in.Value).Lookup(text(field)), nil
}

func (g *getField) optimize(env *Env) (Expr, error) {
	args, all, err := optimizeAll([]Expr{g.field, g.input}, env)
	if err != nil {
		return nil, err
	}
	return fold(&getField{args[0], args[1]}, all, env)
}

// setField is $setField, and $unsetField with a value that is missing.
type setField struct {
	field        string
	input, value Expr
}

func parseSetField(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(4161100, "%s only supports an object as its argument", name)
	}
	f := &setField{}
	var field Expr
	for key, item := range bson.Raw(v.Value).All() {
		var target *Expr
		switch {
		case key == "field":
			target = &field
		case key == "input":
			target = &f.input
		case key == "value" && name == "$setField":
			target = &f.value
		default:
			return nil, srverr.New(4161101, "%s found an unknown argument: %s", name, key)
		}
		e, err := parse(item, s, depth+1)
		if err != nil {
			return nil, err
		}
		*target = e
	}
	if name == "$unsetField" {
		f.value = &constant{}
	}
	switch {
	case field == nil:
		return nil, srverr.New(4161102, "%s requires 'field' to be specified", name)
	case f.value == nil:
		return nil, srverr.New(4161103, "%s requires 'value' to be specified", name)
	case f.input == nil:
		return nil, srverr.New(4161109, "%s requires 'input' to be specified", name)
	}
	modern := s.env.Version.AllParsed()
	if _, ok := field.(*fieldPath); ok && modern {
		return nil, srverr.New(4161108,
			"'%s' cannot be a field path reference. Did you mean {$literal: '...'}?", name)
	}
	var err error
	empty := false
	if o, ok := field.(*objectExpr); ok {
		empty = len(o.keys) == 0
	}
	if !modern || empty { // 8.1 takes only what is written as a constant
		if field, err = field.optimize(s.env); err != nil {
			return nil, err
		}
	}
	c, ok := field.(*constant)
	if !ok {
		return nil, srverr.New(4161106,
			"%s requires 'field' to evaluate to a constant, but got a non-constant argument", name)
	}
	if !isString(c.v) {
		return nil, srverr.New(4161107, "%s requires 'field' to evaluate to type String, but got %s", name,
			typeName(c.v))
	}
	if f.field = text(c.v); modern && strings.IndexByte(f.field, 0) >= 0 {
		return nil, srverr.New(9534700, "%s requires 'field' to have no null bytes", name)
	}
	return f, nil
}

func (f *setField) eval(st *State) (bson.RawValue, error) {
	in, err := f.input.eval(st)
	if err != nil || nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeEmbeddedDocument {
		return missing, srverr.New(4161105, "$setField requires 'input' to evaluate to type Object")
	}
	v, err := f.value.eval(st)
	if err != nil {
		return missing, err
	}
	out := newFields()
	for key, item := range bson.Raw(in.Value).All() {
		out.set(key, item)
	}
	out.set(f.field, v)
	return out.value(), nil
}

func (f *setField) optimize(env *Env) (Expr, error) {
	args, all, err := optimizeAll([]Expr{f.input, f.value}, env)
	if err != nil {
		return nil, err
	}
	return fold(&setField{f.field, args[0], args[1]}, all, env)
}
