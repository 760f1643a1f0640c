package expr

// JavaScript: $function, $accumulator, and what mapReduce is made of.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// Script runs JavaScript. It is used by one goroutine at a time.
type Script interface {
	// Call runs a function. A nil this is an empty object.
	Call(code string, this bson.Raw, args ...bson.RawValue) (bson.RawValue, error)
	// Emit runs a function that calls emit.
	Emit(code string, this bson.Raw, emit func(k, v bson.RawValue) error) error
}

func init() {
	registerParser("$function", parseFunction, shownAsWritten)
	registerParser("$_internalJsEmit", parseScriptEmit, shownAsWritten)
}

// script returns what runs JavaScript.
func (e *Env) script() (Script, error) {
	if e.Script == nil {
		return nil, srverr.New(31264, "Cannot run server-side javascript without the javascript engine enabled")
	}
	return e.Script, nil
}

// codeOf is the text of a string or of code.
func codeOf(v bson.RawValue) (string, bool) {
	if code, ok := v.JavaScript(); ok {
		return string(code), true
	}
	return v.StringValue()
}

// function is $function.
type function struct {
	code string
	args Expr
}

func parseFunction(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if s.env.Validator {
		return nil, srverr.New(4660800, "$function cannot be used inside a validator.")
	}
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(31260, "$function requires an object as an argument, found: %s", typeName(v))
	}
	body, args, lang := doc.Lookup("body"), doc.Lookup("args"), doc.Lookup("lang")
	if body.Type == 0 {
		return nil, srverr.New(31261, "The body function must be specified.")
	}
	f := &function{}
	if f.code, ok = codeOf(body); !ok {
		return nil, srverr.New(31262, "The body function must evaluate to type string or code, found: %s",
			typeName(body))
	}
	if args.Type == 0 {
		return nil, srverr.New(31263, "The args field must be specified.")
	}
	var err error
	if f.args, err = parse(args, s, depth+1); err != nil {
		return nil, err
	}
	if lang.Type == 0 {
		return nil, srverr.New(31418, "The lang field must be specified.")
	}
	if name, _ := lang.StringValue(); name != "js" {
		return nil, srverr.New(31419, "Currently the only supported language specifier is 'js'.")
	}
	return f, nil
}

func (f *function) eval(st *State) (bson.RawValue, error) {
	args, err := f.args.eval(st)
	if err != nil {
		return missing, err
	}
	script, err := st.env.script()
	if err != nil {
		return missing, err
	}
	if args.Type != bson.TypeArray {
		return missing, srverr.New(31266, "The args field must be of type array")
	}
	return script.Call(f.code, nil, bsondoc.Items(args)...)
}

func (f *function) optimize(env *Env) (Expr, error) {
	args, err := f.args.optimize(env)
	if err != nil {
		return nil, err
	}
	return &function{f.code, args}, nil // what a function returns is never constant
}

// maxEmitted bounds what one call of a map function may emit, as the server's parameter
// internalQueryMaxJsEmitBytes does.
const maxEmitted = 100 << 20

// scriptEmit is $_internalJsEmit: an array of {k, v}, which a map function emits for a document.
type scriptEmit struct {
	code string
	this Expr
}

func parseScriptEmit(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if s.env.Validator {
		return nil, srverr.New(4660801, "%s cannot be used inside a validator.", name)
	}
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(31221, "%s requires an object as an argument, found: %s", name, typeName(v))
	}
	eval, this := doc.Lookup("eval"), doc.Lookup("this")
	if eval.Type == 0 {
		return nil, srverr.New(31222, "The map function must be specified.")
	}
	e := &scriptEmit{}
	if e.code, ok = codeOf(eval); !ok {
		return nil, srverr.New(31224, "The map function must be of type string or code")
	}
	if this.Type == 0 {
		return nil, srverr.New(31223, "%s requires 'this' to be specified", name)
	}
	var err error
	e.this, err = parse(this, s, depth+1)
	return e, err
}

func (e *scriptEmit) eval(st *State) (bson.RawValue, error) {
	this, err := e.this.eval(st)
	if err != nil {
		return missing, err
	}
	script, err := st.env.script()
	if err != nil {
		return missing, err
	}
	if this.Type != bson.TypeEmbeddedDocument {
		return missing, srverr.New(31225, "'this' must be an object.")
	}
	out, size := newArray(), 0
	err = script.Emit(e.code, bson.Raw(this.Value), func(k, v bson.RawValue) error {
		if size += len(k.Value) + len(v.Value); size > maxEmitted {
			return srverr.New(31292, "Size of emitted values exceeds the set size limit of %d bytes", maxEmitted)
		}
		start, dst := bson.BeginDocument(nil)
		out.add(bsondoc.DocumentValue(bson.EndDocument(bson.AppendRawValue(bson.AppendRawValue(dst, "k", k), "v", v),
			start)))
		return nil
	})
	if err != nil {
		return missing, err
	}
	return out.value(), nil
}

func (e *scriptEmit) optimize(env *Env) (Expr, error) {
	this, err := e.this.optimize(env)
	if err != nil {
		return nil, err
	}
	return &scriptEmit{e.code, this}, nil
}

// scriptAccumulator is $accumulator.
type scriptAccumulator struct {
	accumulate, finalize string
	script               Script
	state                bson.RawValue
}

func parseScriptAccumulator(spec *AccumulatorSpec, v bson.RawValue, s *Scope) error {
	doc, ok := v.Document()
	if !ok {
		return srverr.New(4544703, "$accumulator expects an object as an argument; found: %s", typeName(v))
	}
	var initArgs Expr = &constant{newArray().value()}
	functions := map[string]string{}
	hasLang := false
	for key, v := range doc.All() {
		var err error
		switch key {
		case "init", "accumulate", "merge", "finalize":
			code, ok := codeOf(v)
			if !ok {
				return srverr.New(4544701, "$accumulator '%s' must be a String or Code, but found %s", key, typeName(v))
			}
			functions[key] = code
		case "initArgs":
			initArgs, err = Parse(v, s)
		case "accumulateArgs":
			spec.arg, err = Parse(v, s)
		case "lang":
			name, ok := v.StringValue()
			if !ok {
				return srverr.New(4544704, "$accumulator 'lang' must be a String; found: %s", typeName(v))
			}
			if hasLang = true; name != "js" {
				return srverr.New(4544705, "$accumulator only supports lang: 'js'; found: '%s'", name)
			}
		default:
			return srverr.New(4544706, "$accumulator got an unexpected field: %s", key)
		}
		if err != nil {
			return err
		}
	}
	lacks := func(name string) bool { _, ok := functions[name]; return !ok }
	for _, arg := range []struct {
		code  int32
		name  string
		lacks bool
	}{
		{4544707, "init", lacks("init")}, {4544708, "accumulate", lacks("accumulate")},
		{4544709, "accumulateArgs", spec.arg == nil},
		{4544710, "merge", lacks("merge")}, {4544711, "lang", !hasLang},
	} {
		if arg.lacks {
			return srverr.New(arg.code, "$accumulator missing required argument '%s'", arg.name)
		}
	}
	spec.more = []*Expr{&initArgs}
	spec.start = func(st *State) (Accumulator, error) {
		script, err := st.env.script()
		if err != nil {
			return nil, err
		}
		args, err := initArgs.eval(st)
		if err != nil {
			return nil, err
		}
		if args.Type != bson.TypeArray {
			return nil, srverr.New(4544711, "$accumulator initArgs must evaluate to an array: %s", Text(args))
		}
		a := &scriptAccumulator{accumulate: functions["accumulate"], finalize: functions["finalize"], script: script}
		a.state, err = script.Call(functions["init"], nil, bsondoc.Items(args)...)
		return a, err
	}
	return nil
}

func (a *scriptAccumulator) Add(v bson.RawValue) (err error) {
	if v.Type != bson.TypeArray {
		return srverr.New(4544712, "$accumulator accumulateArgs must evaluate to an array: %s", Text(v))
	}
	a.state, err = a.script.Call(a.accumulate, nil, append([]bson.RawValue{a.state}, bsondoc.Items(v)...)...)
	return err
}

func (a *scriptAccumulator) Value() (bson.RawValue, error) {
	if a.finalize == "" {
		return a.state, nil
	}
	return a.script.Call(a.finalize, nil, a.state)
}

// scriptReduce is $_internalJsReduce, which is fed with {k, v}: the values of one key become one
// value.
type scriptReduce struct {
	script Script
	code   string
	key    bson.RawValue
	values *arrayBuilder
	n      int
}

// reduceAt is how large the values get before they are reduced to one.
const reduceAt = 8 << 20

func parseScriptReduce(spec *AccumulatorSpec, v bson.RawValue, s *Scope) error {
	doc, ok := v.Document()
	if !ok {
		return srverr.New(31326, "%s requires a document argument, but found %s", spec.Name, typeName(v))
	}
	data, eval := doc.Lookup("data"), doc.Lookup("eval")
	code, ok := codeOf(eval)
	switch {
	case data.Type == 0:
		return srverr.New(31349, "%s requires 'data' argument", spec.Name)
	case !ok:
		return srverr.New(31244, "%s requires the 'eval' argument to be of type string, or code but found %s",
			spec.Name, typeName(eval))
	}
	var err error
	if spec.arg, err = Parse(data, s); err != nil {
		return err
	}
	spec.start = func(st *State) (Accumulator, error) {
		script, err := st.env.script()
		return &scriptReduce{script: script, code: code, values: newArray()}, err
	}
	return nil
}

func (a *scriptReduce) Add(v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return srverr.New(
			31242, "$_internalJsReduce requires the 'data' argument to evaluate to an object, but found %s",
			typeName(v))
	}
	a.key = doc.Lookup("k")
	a.values.add(doc.Lookup("v"))
	if a.n++; a.n > 1 && len(a.values.dst) > reduceAt {
		one, err := a.Value()
		if err != nil {
			return err
		}
		a.values, a.n = newArray(), 1
		a.values.add(one)
	}
	return nil
}

// Value does not reduce a single value.
func (a *scriptReduce) Value() (bson.RawValue, error) {
	switch a.n {
	case 0:
		return missing, nil
	case 1:
		for v := range bson.Raw(a.list()).Values() {
			return v, nil
		}
	}
	return a.script.Call(a.code, nil, a.key, bson.RawValue{Type: bson.TypeArray, Value: a.list()})
}

func (a *scriptReduce) list() []byte {
	return bson.EndDocument(append([]byte(nil), a.values.dst...), 0)
}
