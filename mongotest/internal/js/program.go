package js

import (
	"errors"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"allium/bson"
)

// Shell is what the engine of a program has beside that of the server's functions: the API of a
// shell, in JavaScript, over functions in Go.
//
// Values become BSON as mongosh makes it of them: whole numbers of 32 bits are integers, and what
// is undefined is null. The memory of the process is not looked at: it is the deployment's, which
// programs fill.
type Shell struct {
	// Prelude is an expression: a function of the engine's natives, of an object with Host, and of
	// First.
	Prelude string
	Host    map[string]Native
	First   string
}

// Native is a function in Go that programs call. What it returns is encoded as BSON; an error is
// thrown.
type Native func(args []bson.RawValue) (any, error)

// Place is where in a program something is. Lines and columns begin at 1; 0 is not known.
type Place struct {
	File         string
	Line, Column int
}

// RunProgram runs a program, whose global variables the next one has too. For an error it says
// where that was thrown.
func (e *Engine) RunProgram(name, source string) (place Place, err error) {
	if err := e.start(); err != nil {
		return place, err
	}
	p, place, err := compile(name, source)
	if err != nil {
		return place, err
	}
	e.sources[name] = source
	err = e.guarded(func() error {
		_, err := e.vm.RunProgram(p)
		place = e.placeOf(err)
		return err
	})
	return place, err
}

// compile compiles a program. For an error it says where that is.
func compile(name, source string) (p *goja.Program, place Place, err error) {
	tree, err := parser.ParseFile(nil, name, source, 0)
	if list, ok := errors.AsType[parser.ErrorList](err); ok && len(list) > 0 {
		at := list[0].Position
		return nil, Place{name, at.Line, at.Column}, syntaxError(err)
	}
	if err == nil {
		p, err = goja.CompileAST(tree, false)
	}
	if c, ok := errors.AsType[*goja.CompilerSyntaxError](err); ok && c.File != nil {
		at := c.File.Position(c.Offset)
		place = Place{name, at.Line, at.Column}
	}
	if err != nil {
		return nil, place, syntaxError(err)
	}
	return p, place, nil
}

// placeOf returns the innermost place of an error that is in a program.
func (e *Engine) placeOf(err error) Place {
	x, ok := errors.AsType[*goja.Exception](err)
	if !ok {
		return Place{}
	}
	for _, f := range x.Stack() {
		if _, ours := e.sources[f.SrcName()]; ours {
			at := f.Position()
			return Place{f.SrcName(), at.Line, at.Column}
		}
	}
	return Place{}
}

// startShell runs the prelude of the shell.
func (e *Engine) startShell(natives goja.Value) error {
	s := e.cfg.Shell
	host := e.vm.NewObject()
	for name, f := range s.Host {
		host.Set(name, func(call goja.FunctionCall) goja.Value {
			args := make([]bson.RawValue, len(call.Arguments))
			for i := range args {
				args[i] = e.argument(call, i)
			}
			v, err := f(args)
			if err != nil {
				panic(e.vm.NewGoError(err))
			}
			if v == nil {
				return goja.Undefined()
			}
			raw, err := bson.MarshalValue(v)
			if err != nil {
				panic(e.vm.NewGoError(err))
			}
			return e.fromBSON(raw)
		})
	}
	p, err := goja.Compile("shell", s.Prelude, true)
	if err != nil {
		return err
	}
	v, err := e.vm.RunProgram(p)
	if err != nil {
		return err
	}
	build, _ := goja.AssertFunction(v)
	_, err = build(goja.Undefined(), natives, host, e.vm.ToValue(s.First))
	return err
}
