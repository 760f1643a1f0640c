// Package js runs server-side JavaScript: what $where, $function, $accumulator and mapReduce call.
//
//	e := js.New(js.Config{Check: check, Scope: scope})
//	f, err := e.Function("function(a, b) { return a + b }")
//	v, err := f.Call(nil, x, y)
//
// An Engine belongs to one operation: its global variables live as long as the operation does. It
// is used by one goroutine at a time. Values are encoded BSON on both sides; the language sees the
// classes that the server has for types which JavaScript lacks (NumberLong, ObjectId, ...). Errors
// are *srverr.Error with the server's codes and texts.
package js

import (
	_ "embed"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/dop251/goja"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// interpreterFailure is the code of errors that a program throws and does not catch.
const interpreterFailure = 139

// maxCallDepth bounds how deep functions call each other.
const maxCallDepth = 2000

// checkEvery is how often a call that takes long asks whether it may go on.
const checkEvery = 5 * time.Millisecond

// grace is how long a call that has to end may take to do so. The interpreter ends between two of
// its instructions, and one of them can take for ever: the match of a regular expression with
// look-around or back references, which goes back and forth.
const grace = 500 * time.Millisecond

// Config is what an Engine runs in.
type Config struct {
	// Check returns the error that ends the operation, nil to go on. It is called from another
	// goroutine while a function runs, never at the same time as the function's caller goes on.
	// nil: nothing ends a call.
	Check func() error
	// Scope are global variables.
	Scope bson.Raw
	// Stored returns the documents of system.js, whose values become global variables. nil: there
	// are none.
	Stored func() []bson.Raw
	// ServerVersion is what version() returns.
	ServerVersion string
	// Shell makes the engine that of a program; nil: it is that of functions.
	Shell *Shell
}

// Engine is the interpreter of one operation. The interpreter is made when the first function is.
type Engine struct {
	cfg       Config
	grace     time.Duration
	maxHeap   uint64
	vm        *goja.Runtime
	functions map[string]*Function
	sources   map[string]string          // of the functions, by the names of their programs
	classes   map[bson.Type]*goja.Object // prototypes
	raw       *goja.Symbol               // holds the BSON value of an object of one of the classes
	origin    *goja.Symbol               // holds the document that an object was made from
	emit      func(k, v bson.RawValue) error

	mu      sync.Mutex
	running bool
	base    uint64 // the heap of the process soon after the call began, 0 before it was looked at
	ended   error
	endedAt time.Time
	end     chan struct{} // closed when a call has to end
	timer   *time.Timer
	left    chan struct{} // closed when a call that has to end is not waited for any longer
	dead    bool          // such a call still has the interpreter
}

// New returns an engine.
func New(cfg Config) *Engine {
	return &Engine{cfg: cfg, grace: grace, maxHeap: maxHeap, functions: map[string]*Function{},
		sources: map[string]string{}}
}

//go:embed prelude.js
var preludeSource string

var prelude = sync.OnceValue(func() *goja.Program { return goja.MustCompile("prelude", preludeSource, true) })

// start makes the interpreter with its global variables.
func (e *Engine) start() (err error) {
	if e.vm != nil {
		return nil
	}
	defer func() {
		if err != nil {
			e.vm = nil
		}
	}()
	e.vm = goja.New()
	e.vm.SetMaxCallStackSize(maxCallDepth)
	e.raw, e.origin = goja.NewSymbol("bson"), goja.NewSymbol("origin")
	e.classes = map[bson.Type]*goja.Object{}
	v, err := e.vm.RunProgram(prelude())
	if err != nil {
		return err
	}
	build, _ := goja.AssertFunction(v)
	natives := e.natives()
	if _, err := build(goja.Undefined(), natives); err != nil {
		return err
	}
	if e.cfg.Shell != nil {
		if err := e.startShell(natives); err != nil {
			return err
		}
	}
	if e.cfg.Stored != nil {
		for _, doc := range e.cfg.Stored() {
			if err := e.store(doc); err != nil {
				return err
			}
		}
	}
	for name, v := range e.cfg.Scope.All() {
		value, err := e.global(v)
		if err != nil {
			return err
		}
		if err := e.vm.Set(name, value); err != nil {
			return e.failure(err)
		}
	}
	return nil
}

// store makes a document of system.js a global variable.
func (e *Engine) store(doc bson.Raw) error {
	name, ok := doc.Lookup("_id").StringValue()
	if !ok {
		return srverr.New(srverr.BadValue, "name has to be a string")
	}
	v, err := e.global(doc.Lookup("value"))
	if err != nil {
		return err
	}
	return e.vm.Set(name, v)
}

// global converts a value that becomes a global variable: code becomes a function.
func (e *Engine) global(v bson.RawValue) (goja.Value, error) {
	if code, ok := v.JavaScript(); ok {
		f, err := e.Function(string(code))
		if err != nil {
			return nil, err
		}
		return f.value, nil
	}
	return e.fromBSON(v), nil
}

// Function is a function of an Engine.
type Function struct {
	e     *Engine
	value goja.Value
	call  goja.Callable
}

// Function compiles code, which is a function or an expression, or statements of which the last one
// may be an expression: its value is what the function returns. The same code gives the same
// function.
func (e *Engine) Function(code string) (*Function, error) {
	if f := e.functions[code]; f != nil {
		return f, nil
	}
	if err := e.start(); err != nil {
		return nil, err
	}
	name := "_funcs" + strconv.Itoa(len(e.functions)+1)
	source, err := functionSource(code)
	if err != nil {
		return nil, err
	}
	source = name + " = " + source
	p, err := goja.Compile(name, source, false)
	if err != nil {
		return nil, syntaxError(err)
	}
	e.sources[name] = source
	f := &Function{e: e}
	err = e.guarded(func() (err error) {
		f.value, err = e.vm.RunProgram(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	var ok bool
	if f.call, ok = goja.AssertFunction(f.value); !ok {
		return nil, srverr.New(10232, "not a function")
	}
	e.functions[code] = f
	return f, nil
}

// Call calls the function. A nil this is an empty object.
func (f *Function) Call(this bson.Raw, args ...bson.RawValue) (bson.RawValue, error) {
	var out bson.RawValue
	err := f.run(this, args, func(v goja.Value) (err error) {
		out, err = f.e.toBSON(v, bson.RawValue{}, 0)
		return err
	})
	if err != nil {
		return bson.RawValue{}, err // without a look at what a call that was left may write
	}
	return out, nil
}

// Test calls the function with a document as this and as the global variable obj, and tells whether
// it returns what counts as true.
func (f *Function) Test(doc bson.Raw) (bool, error) {
	var ok bool
	err := f.run(doc, nil, func(v goja.Value) error {
		ok = v.ToBoolean()
		return nil
	})
	if err != nil {
		return false, err
	}
	return ok, nil
}

// Emit calls the function with a document as this; emit is called for each of the function's calls
// of its namesake.
func (f *Function) Emit(this bson.Raw, emit func(k, v bson.RawValue) error) error {
	f.e.emit = emit
	err := f.run(this, nil, func(goja.Value) error { return nil })
	if !f.e.dead { // else the call that was left has it
		f.e.emit = nil
	}
	return err
}

func (f *Function) run(this bson.Raw, args []bson.RawValue, result func(goja.Value) error) error {
	e := f.e
	return e.guarded(func() error {
		self := e.object(this)
		if this != nil {
			if err := e.vm.Set("obj", self); err != nil {
				return err
			}
		}
		values := make([]goja.Value, len(args))
		for i, a := range args {
			values[i] = e.fromBSON(a)
		}
		v, err := f.call(self, values...)
		if err != nil {
			return err
		}
		return result(v)
	})
}

// guarded runs fn, which may run a program, and ends it when Check says so. It returns even if the
// interpreter does not come to its end; nobody uses that one again.
func (e *Engine) guarded(fn func() error) error {
	e.mu.Lock()
	if e.dead {
		e.mu.Unlock()
		return e.ended
	}
	e.running, e.base, e.ended, e.end, e.left = true, 0, nil, make(chan struct{}), make(chan struct{})
	if e.timer == nil {
		e.timer = time.AfterFunc(checkEvery, e.poll)
	} else {
		e.timer.Reset(checkEvery)
	}
	e.mu.Unlock()
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.err = e.protected(fn)
	}()
	var o outcome
	select {
	case o = <-done:
	case <-e.left:
		return e.ended
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
	e.timer.Stop()
	if o.panic != nil {
		panic(o.panic)
	}
	if e.dead { // it came to its end in the same moment
		return e.ended
	}
	e.vm.ClearInterrupt()
	if e.ended != nil {
		return e.ended
	}
	if o.err != nil {
		return e.failure(o.err)
	}
	return nil
}

// outcome is how a call came to its end.
type outcome struct {
	err   error
	panic any
}

// protected runs fn; what natives throw outside of a program is an error, too.
func (e *Engine) protected(fn func() error) (err error) {
	if x := e.vm.Try(func() { err = fn() }); x != nil {
		return x
	}
	return err
}

// poll runs now and then while a call does.
func (e *Engine) poll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.running || e.dead {
		return
	}
	if e.ended != nil {
		// Of two polls that wait for the lock, the second comes too early.
		if rest := e.grace - time.Since(e.endedAt); rest > 0 {
			e.timer.Reset(rest)
			return
		}
		e.dead = true
		close(e.left)
		return
	}
	if e.ended = e.check(); e.ended != nil {
		e.endedAt = time.Now()
		close(e.end)
		e.vm.Interrupt(e.ended)
		e.timer.Reset(e.grace)
		return
	}
	e.timer.Reset(checkEvery)
}

// check returns the error that ends the call, nil to go on.
func (e *Engine) check() error {
	if e.cfg.Check != nil {
		if err := e.cfg.Check(); err != nil {
			return err
		}
	}
	if e.cfg.Shell != nil {
		return nil
	}
	return e.checkMemory()
}

// sleep waits, unless the call has to end before.
func (e *Engine) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-e.end:
	}
}

// failure makes the server's error out of one of the interpreter.
func (e *Engine) failure(err error) error {
	var known *srverr.Error
	if errors.As(err, &known) { // also what a native threw
		return known
	}
	if x, ok := errors.AsType[*goja.Exception](err); ok && e.cfg.Shell != nil && x.Unwrap() != nil {
		return x.Unwrap() // of a native
	}
	if _, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		return srverr.New(interpreterFailure, "InternalError: too much recursion :\n")
	}
	x, ok := errors.AsType[*goja.Exception](err)
	if !ok {
		return srverr.New(interpreterFailure, "%s", err.Error())
	}
	if o, ok := x.Value().(*goja.Object); ok && o.ClassName() == "Error" {
		return srverr.New(interpreterFailure, "%s :\n%s", e.errorText(o, x), e.stackText(x))
	}
	return srverr.New(interpreterFailure, "uncaught exception: %s", e.describe(x.Value()))
}

// describe is a thrown value as text.
func (e *Engine) describe(v goja.Value) (text string) {
	err := e.vm.Try(func() { text = v.String() })
	if err != nil {
		return "[object Object]"
	}
	return text
}

// Call runs the function that code is.
func (e *Engine) Call(code string, this bson.Raw, args ...bson.RawValue) (bson.RawValue, error) {
	f, err := e.Function(code)
	if err != nil {
		return bson.RawValue{}, err
	}
	return f.Call(this, args...)
}

// Emit runs the function that code is, which calls emit.
func (e *Engine) Emit(code string, this bson.Raw, emit func(k, v bson.RawValue) error) error {
	f, err := e.Function(code)
	if err != nil {
		return err
	}
	return f.Emit(this, emit)
}
