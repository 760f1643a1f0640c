package js

import (
	"errors"
	"testing"
	"time"

	"allium/internal/norace"
	"allium/mongotest/internal/srverr"
)

// TestMemory runs functions that take memory without end: each fails, long before the process has
// no more, and the engine goes on to work.
func TestMemory(t *testing.T) {
	e := New(Config{})
	e.maxHeap = 16 << 20
	e.grace = time.Hour // however slow the machine is
	for i, code := range []string{
		`function() { var a = []; for (;;) a.push({n: a.length}) }`,
		`function() { var s = "x"; for (;;) s += s }`,
		`function() { var a = [], s = "x".repeat(1e6); for (var i = 0; ; i++) a.push(s + i) }`,
		`function() { var m = new Map(); for (var i = 0; ; i++) m.set(i, new Uint8Array(1 << 16)) }`,
		`function() { var o = {}; for (var i = 0; ; i++) o["k" + i] = i + "x".repeat(1e5) }`,
		`function() { var a = []; for (;;) a.push(new Uint8Array(1 << 20)) }`,
	} {
		if norace.Detecting && i > 0 {
			break // one function tells whether the watch over the memory races with it
		}
		f, err := e.Function(code)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Call(nil)
		if x, ok := errors.AsType[*srverr.Error](err); !ok || x.Code != 139 || x.Msg != "Out of memory" {
			t.Errorf("%s: %v", code, err)
		}
		if v, err := e.Call(`1`, nil); err != nil || show(t, v) != `{"$numberDouble":"1.0"}` {
			t.Errorf("after %s: %v", code, err)
		}
	}
}

// TestOneInstruction: no single instruction makes more than the process can have.
func TestOneInstruction(t *testing.T) {
	norace.Skip(t, "instructions that make hundreds of megabytes, on one goroutine")
	for _, code := range []string{
		`"x".repeat(1e10)`, `"x".repeat(Infinity)`, `"x".padStart(4e9)`, `"x".padEnd(4e9, "y")`, `new Array(4e9).join("x")`, `"" + new Array(4e9)`,
		`Array(100000).fill("x".repeat(1e6)).join()`, `[Array(100000).fill("x".repeat(1e6))].join()`, `new Array(4e9).fill(0)`,
		`Array.from({length: 4e9})`, `Array.apply(null, {length: 4e9})`, `new Array(4e9).map(function() { return 1 })`,
		`JSON.stringify(new Array(4e9))`, `JSON.stringify(Array(100000).fill("x".repeat(1e6)))`, `JSON.stringify({a: [Array(100000).fill("x".repeat(1e6))]})`,
		`new ArrayBuffer(1e11)`, `new Uint8Array(1e11)`, `new Float64Array({length: 4e9})`, `"x".repeat(1e8).split("")`,
		`"x".repeat(1e6).replace(/x/g, "y".repeat(1e6))`, `new Array(4e9).concat([1])`,
		`Uint8Array.from({length: 4e9})`, `Reflect.construct(Array, {length: 4e9})`, `Reflect.apply(Math.max, null, {length: 4e9})`, `new Array(4e9)`, `[new Array(4e9)]`,
	} {
		v, err := New(Config{}).Call(code, nil)
		if _, ok := errors.AsType[*srverr.Error](err); !ok {
			t.Errorf("%s: %d bytes, %v", code, len(v.Value), err)
		}
	}
	// What programs do is none of this.
	for code, want := range map[string]string{
		`[1, [2, 3]].join("-") + [null, undefined, "a"].join()`:                `"1-2,3,,a"`,
		`"ab".repeat(2) + "x".padStart(3, "y")`:                                `"ababyyx"`,
		`JSON.stringify({a: [1, "b", null], c: {}})`:                           `"{\"a\":[1,\"b\",null],\"c\":{}}"`,
		`"a-b".split("-").concat(["c"], "d").reverse().join("")`:               `"dcba"`,
		`Math.max.apply(null, [1, 3]) + [].slice.call(new Uint8Array([7]))[0]`: `{"$numberDouble":"10.0"}`,
		`[].join.length + [].concat.name`:                                      `"1concat"`,
		`new Uint8Array([1, 2]) instanceof Uint8Array`:                         `true`,
		`function() { var a = [1]; a.push(a); return "" + a.length }`:          `"2"`,
	} {
		if v, err := New(Config{}).Call(code, nil); err != nil || show(t, v) != want {
			t.Errorf("%s: %v, want %s", code, err, want)
		}
	}
}
