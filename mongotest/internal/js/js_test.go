package js

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

func doc(t *testing.T, text string) bson.Raw {
	t.Helper()
	var d bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// show is a value as canonical Extended JSON.
func show(t *testing.T, v bson.RawValue) string {
	t.Helper()
	b, err := bson.AppendExtJSONValue(nil, v, true)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// call runs code on the values of a document's field a, which is an array.
func call(t *testing.T, code, args string) (bson.RawValue, error) {
	t.Helper()
	f, err := New(Config{ServerVersion: "4.4.0"}).Function(code)
	if err != nil {
		return bson.RawValue{}, err
	}
	var list []bson.RawValue
	for v := range bson.Raw(doc(t, `{"a":`+args+`}`).Lookup("a").Value).Values() {
		list = append(list, v)
	}
	return f.Call(nil, list...)
}

// everyType is a document with a value of each type that comes back as it was.
const everyType = `{"double":{"$numberDouble":"1.5"},"int":{"$numberInt":"7"},"long":{"$numberLong":"9007199254740993"},` +
	`"decimal":{"$numberDecimal":"1.10"},"s":"ä\u0000x","b":true,"n":null,"date":{"$date":{"$numberLong":"1600000000123"}},` +
	`"id":{"$oid":"5f5e1000a1b2c3d4e5f60718"},"ts":{"$timestamp":{"t":4000000000,"i":2}},"min":{"$minKey":1},"max":{"$maxKey":1},` +
	`"re":{"$regularExpression":{"pattern":"a/b","options":"im"}},"bin":{"$binary":{"base64":"AQID","subType":"80"}},` +
	`"uuid":{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}},"code":{"$code":"f()"},"scoped":{"$code":"f","$scope":{"x":{"$numberInt":"1"}}},` +
	`"ptr":{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"5f5e1000a1b2c3d4e5f60718"}}},"o":{"x":{"$numberInt":"1"},"y":[{"$numberInt":"1"},{"$numberLong":"2"}]},"u":{"$undefined":true}}`

func TestValues(t *testing.T) {
	tests := []struct{ code, args, want string }{
		{`function(d) { return d }`, `[` + everyType + `]`, everyType},
		{`function(d) { d.n = 1; d.int++; delete d.o; return {int: d.int, n: d.n, long: d.long} }`, `[{"int":{"$numberInt":"7"},"long":{"$numberLong":"5"},"n":null,"o":1}]`,
			`{"int":{"$numberDouble":"8.0"},"n":{"$numberDouble":"1.0"},"long":{"$numberLong":"5"}}`},
		{`function(d) { d.int++; d.new = 1; return d }`, `[{"int":{"$numberInt":"7"}}]`, `{"int":{"$numberInt":"8"},"new":{"$numberDouble":"1.0"}}`},
		{`function(d) { d.int += 0.5; return d }`, `[{"int":{"$numberInt":"7"}}]`, `{"int":{"$numberDouble":"7.5"}}`},
		{`function(d) { d.y.push(1); return d }`, `[{"y":[{"$numberInt":"7"}]}]`, `{"y":[{"$numberDouble":"7.0"},{"$numberDouble":"1.0"}]}`},
		{`function(a, b) { return a + b }`, `[{"$numberInt":"1"},{"$numberInt":"2"}]`, `{"$numberDouble":"3.0"}`},
		{`function() { return [3, 1, 2, 5, 4].sort((a, b) => a > b).concat([2, 10, 1].sort(), [2, 10, 1].sort((a, b) => b - a)).join() }`, `[]`, `"1,2,3,4,5,1,10,2,10,2,1"`},
		{`function() { return [].sort.name + [{n: 1, i: 0}, {n: 0, i: 1}, {n: 1, i: 2}, {n: 0, i: 3}].sort((a, b) => a.n > b.n).map(x => x.i).join() }`, `[]`, `"sort1,3,0,2"`},
		{`(a, b) => a + b`, `["x",{"$numberLong":"2"}]`, `"x2"`},
		{`function named() { return typeof named }`, `[]`, `"function"`},
		{`1 + 1`, `[]`, `{"$numberDouble":"2.0"}`},
		{`var x = 2; x * 3`, `[]`, `{"$numberDouble":"6.0"}`},
		{`var x = 2; if (x > 1) { return "big" } x`, `[]`, `"big"`},
		{`return 5;`, `[]`, `{"$numberDouble":"5.0"}`},
		{`function() { var f = function() {}; }`, `[]`, `{"$undefined":true}`},
		{`function() { return this }`, `[]`, `{}`},
		{`function() { return function(a) { return a } }`, `[]`, `{"$code":"function(a) { return a }"}`},
		{`function() { return [NumberInt(3), NumberLong("9007199254740993"), NumberLong(2) + 1, NumberDecimal("1.50"), NumberDecimal(2), NumberLong(1, 1, 2)] }`, `[]`,
			`[{"$numberInt":"3"},{"$numberLong":"9007199254740993"},{"$numberDouble":"3.0"},{"$numberDecimal":"1.50"},{"$numberDecimal":"2"},{"$numberLong":"4294967298"}]`},
		{`function(n) { return [n == 5, n.toNumber(), n.toString(), n.top, n.bottom, n instanceof NumberLong] }`, `[{"$numberLong":"5"}]`,
			`[true,{"$numberDouble":"5.0"},"NumberLong(5)",{"$numberDouble":"0.0"},{"$numberDouble":"5.0"},true]`},
		{`function() { return [ObjectId("5f5e1000a1b2c3d4e5f60718"), new ObjectId("5f5e1000a1b2c3d4e5f60718").str, ObjectId("5f5e1000a1b2c3d4e5f60718").getTimestamp(), ObjectId().str.length] }`, `[]`,
			`[{"$oid":"5f5e1000a1b2c3d4e5f60718"},"5f5e1000a1b2c3d4e5f60718",{"$date":{"$numberLong":"1600000000000"}},{"$numberDouble":"24.0"}]`},
		{`function(a, b) { return [a.equals(b), a == b, a.valueOf() == b.valueOf()] }`, `[{"$oid":"5f5e1000a1b2c3d4e5f60718"},{"$oid":"5f5e1000a1b2c3d4e5f60718"}]`, `[true,false,true]`},
		{`function() { return [ISODate("2020-01-02T03:04:05.678Z"), ISODate("20200102"), ISODate("2020-01-02T03:04:05+01:30"), new Date(5)] }`, `[]`,
			`[{"$date":{"$numberLong":"1577934245678"}},{"$date":{"$numberLong":"1577923200000"}},{"$date":{"$numberLong":"1577928845000"}},{"$date":{"$numberLong":"5"}}]`},
		{`function() { return [Timestamp(3, 4), new Timestamp(), BinData(0, "AQID"), HexData(2, "01ff"), UUID("00010203-0405-0607-0809-0a0b0c0d0e0f"), MD5("000102030405060708090a0b0c0d0e0f"), UUID().subtype()] }`, `[]`,
			`[{"$timestamp":{"t":3,"i":4}},{"$timestamp":{"t":0,"i":0}},{"$binary":{"base64":"AQID","subType":"00"}},{"$binary":{"base64":"Af8=","subType":"02"}},` +
				`{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"04"}},{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"05"}},{"$numberDouble":"4.0"}]`},
		{`function(t) { t.t++; return [t, t.getInc()] }`, `[{"$timestamp":{"t":1,"i":2}}]`, `[{"$timestamp":{"t":2,"i":2}},{"$numberDouble":"2.0"}]`},
		{`function(b) { return [b.len, b.type, b.hex(), b.base64(), b.length(), b.subtype()] }`, `[{"$binary":{"base64":"AQID","subType":"05"}}]`,
			`[{"$numberDouble":"3.0"},{"$numberDouble":"5.0"},"010203","AQID",{"$numberDouble":"3.0"},{"$numberDouble":"5.0"}]`},
		{`function() { return [MinKey, MaxKey(), new MinKey(), /a\/b/gi, DBRef("c", 1, "d"), DBPointer("c", ObjectId("5f5e1000a1b2c3d4e5f60718")), Code("f"), Code("f", {a: 1})] }`, `[]`,
			`[{"$minKey":1},{"$maxKey":1},{"$minKey":1},{"$regularExpression":{"pattern":"a\\/b","options":"gi"}},{"$ref":"c","$id":{"$numberDouble":"1.0"},"$db":"d"},` +
				`{"$dbPointer":{"$ref":"c","$id":{"$oid":"5f5e1000a1b2c3d4e5f60718"}}},{"$code":"f"},{"$code":"f","$scope":{"a":{"$numberDouble":"1.0"}}}]`},
		{`function(r) { return [r.test("xAy"), r] }`, `[{"$regularExpression":{"pattern":"a","options":"ix"}}]`, `[true,{"$regularExpression":{"pattern":"a","options":"ix"}}]`},
		{`function() { return [null, undefined, NaN, -0, 1e300, "ä", new Number(3), new String("s"), new Boolean(false)] }`, `[]`,
			`[null,{"$undefined":true},{"$numberDouble":"NaN"},{"$numberDouble":"-0.0"},{"$numberDouble":"1.0E+300"},"ä",{"$numberDouble":"3.0"},"s",false]`},
		{`function(d) { return [tojson(d), tojsononeline([1, {a: null}]), tojson({}), tojson([]), tojson("a\"b"), tojson({a: {b: [1, 2]}, c: "` + strings.Repeat("x", 70) + `"})] }`,
			`[{"a":{"$numberInt":"1"},"l":{"$numberLong":"5"},"id":{"$oid":"5f5e1000a1b2c3d4e5f60718"}}]`,
			`["{\n\t\"a\" : 1,\n\t\"l\" : NumberLong(5),\n\t\"id\" : ObjectId(\"5f5e1000a1b2c3d4e5f60718\")\n}","[ 1, { \"a\" : null } ]","{ }","[ ]","\"a\\\"b\"",` +
				`"{\n\t\"a\" : {\n\t\t\"b\" : [\n\t\t\t1,\n\t\t\t2\n\t\t]\n\t},\n\t\"c\" : \"` + strings.Repeat("x", 70) + `\"\n}"]`},
		{`function(d) { return [tojson(d.date), tojson(d.min), tojson(d.ts), tojson(d.bin), tojson(d.uuid), tojson(d.re), tojson(d.decimal), tojson(d.long)] }`, `[` + everyType + `]`,
			`["ISODate(\"2020-09-13T12:26:40.123Z\")","{ \"$minKey\" : 1 }","Timestamp(4000000000, 2)","BinData(128,\"AQID\")","UUID(\"00010203-0405-0607-0809-0a0b0c0d0e0f\")","/a\\/b/im","NumberDecimal(\"1.10\")","NumberLong(\"9007199254740993\")"]`},
		{`function(a, b) { return [bsonWoCompare({a: 1}, {a: 2}), bsonWoCompare(a, b), Array.sum([1, 2, 3]), Array.avg([1, 3]), Array.stdDev([1, 3]), Array.contains([1], 1), Array.unique([1, 1, 2]), Object.keySet({x: 1}), Object.merge({a: 1}, {b: 2})] }`,
			`[{"$numberLong":"2"},{"$numberInt":"1"}]`,
			`[{"$numberDouble":"-1.0"},{"$numberDouble":"1.0"},{"$numberDouble":"6.0"},{"$numberDouble":"2.0"},{"$numberDouble":"1.0"},true,[{"$numberDouble":"1.0"},{"$numberDouble":"2.0"}],["x"],{"a":{"$numberDouble":"1.0"},"b":{"$numberDouble":"2.0"}}]`},
		{`function() { return [hex_md5("a"), version(), isString(1), isNumber(1), isObject({}), " a ".ltrim(), (5).zeroPad(3), RegExp.escape("a.b"), assert(true)] }`, `[]`,
			`["0cc175b9c0f1b6a831c399e269772661","4.4.0",false,true,true,"a ","005","a\\.b",{"$undefined":true}]`},
		{`function() { var m = new BSONAwareMap(); m.put({a: 1}, 2); return [m.get({a: 1}), m.get({a: 2}), m.keys(), new Map([[1, 2]]).size] }`, `[]`,
			`[{"$numberDouble":"2.0"},null,[{"a":{"$numberDouble":"1.0"}}],{"$numberDouble":"1.0"}]`},
	}
	for _, tt := range tests {
		v, err := call(t, tt.code, tt.args)
		if err != nil {
			t.Errorf("%s: %v", tt.code, err)
			continue
		}
		if got := show(t, v); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.code, got, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		code string
		want string // the error begins with it
		num  int32
	}{
		{`function() { return nosuch }`, "ReferenceError: nosuch is not defined :\n_funcs1@:1:", 139},
		{`function f() { return g() } `, "ReferenceError: g is not defined :\nf@:1:", 139},
		{`function() { return this.a.b }`, "TypeError: this.a is undefined :\n_funcs1@:1:", 139},
		{`function() { var x = [{}];` + "\n" + ` return x[0].q.b }`, "TypeError: x[0].q is undefined :\n_funcs1@:2:", 139},
		{`function() { this.a.b = 1 }`, "TypeError: this.a is undefined :\n", 139},
		{`function() { return this.foo(1) }`, "TypeError: this.foo is not a function :\n", 139},
		{`function() { var q = 1; q() }`, "TypeError: q is not a function :\n", 139},
		{`function() { throw "x" }`, "uncaught exception: x", 139},
		{`function() { throw {a: 1} }`, "uncaught exception: [object Object]", 139},
		{`function() { throw {toString: function() { throw 1 }} }`, "uncaught exception: [object Object]", 139},
		{`function() { throw Error("mine") }`, "Error: mine :\n_funcs1@:1:", 139},
		{`function() { doassert("mine") }`, "Error: mine :\n_funcs1@:1:", 139},
		{`function f() { return f() }`, "InternalError: too much recursion", 139},
		{`function(`, "SyntaxError: ", 139},
		{`} + {`, "SyntaxError: ", 139},
		{`})(), (function() {`, "SyntaxError: ", 139},
		{`emit(1)`, "emit takes 2 args", 31220},
		{`sleep()`, "sleep takes a single numeric argument", 16259},
		{`ObjectId("x")`, "invalid object id: length", 2},
		{`NumberLong("x")`, `could not convert "x" to NumberLong`, 2},
		{`Timestamp(-1, 1)`, "Timestamp time must be non-negative", 2},
		{`function() { var a = {}; a.a = a; return a }`, "Exceeded depth limit of 150 when converting js object to BSON. Do you have a cycle?", 17279},
		{`function() { return {a: "x".repeat(17 << 20)} }`, "Converting from JavaScript to BSON failed: Object size 17825", 17260},
		{`function() { return {"a\0b": 1} }`, "JavaScript property (name) contains a null char which is not allowed in BSON", 16985},
	}
	for _, tt := range tests {
		_, err := call(t, tt.code, `[]`)
		e, ok := errors.AsType[*srverr.Error](err)
		if !ok || e.Code != tt.num || !strings.HasPrefix(e.Msg, tt.want) {
			t.Errorf("%s: %v, want %d %s", tt.code, err, tt.num, tt.want)
		}
	}
	if v, err := call(t, `function() { try { emit(1) } catch (e) { return "" + e } }`, `[]`); err != nil || !strings.Contains(show(t, v), "emit takes 2 args") {
		t.Errorf("caught: %v %v", v, err)
	}
}

func TestState(t *testing.T) {
	e := New(Config{
		Scope: doc(t, `{"factor":{"$numberInt":"3"},"twice":{"$code":"function(x) { return 2 * x }"},"o":{"list":[1]}}`),
		Stored: func() []bson.Raw {
			return []bson.Raw{doc(t, `{"_id":"inc","value":{"$code":"function(x) { return x + 1 }"}}`), doc(t, `{"_id":"pi","value":3}`)}
		},
	})
	f, err := e.Function(`function() { if (typeof n === "undefined") { n = 0 } n++; return [n, twice(factor), inc(pi), o.list] }`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "2"} {
		v, err := f.Call(nil)
		if got := show(t, v); err != nil || got != `[{"$numberDouble":"`+want+`.0"},{"$numberDouble":"6.0"},{"$numberDouble":"4.0"},[{"$numberDouble":"1.0"}]]` {
			t.Errorf("%s %v", got, err)
		}
	}
	if again, _ := e.Function(`function() { if (typeof n === "undefined") { n = 0 } n++; return [n, twice(factor), inc(pi), o.list] }`); again != f {
		t.Error("the same code is compiled twice")
	}
	g, err := e.Function(`obj.a == 1 && this.a == 1`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`{"a":1}`: true, `{"a":2}`: false} {
		if ok, err := g.Test(doc(t, text)); ok != want || err != nil {
			t.Errorf("%s: %v %v", text, ok, err)
		}
	}
	var emitted []string
	m, err := e.Function(`function() { for (var k in this.o) { emit(k, {n: this.o[k]}) } emit(undefined, 1) }`)
	if err != nil {
		t.Fatal(err)
	}
	err = m.Emit(doc(t, `{"o":{"a":{"$numberInt":"1"},"b":"x"}}`), func(k, v bson.RawValue) error {
		emitted = append(emitted, show(t, k)+show(t, v))
		return nil
	})
	if got := strings.Join(emitted, " "); err != nil || got != `"a"{"n":{"$numberDouble":"1.0"}} "b"{"n":"x"} null{"$numberDouble":"1.0"}` {
		t.Errorf("%s %v", got, err)
	}
	full := srverr.New(31292, "full")
	if err := m.Emit(doc(t, `{"o":{}}`), func(bson.RawValue, bson.RawValue) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// TestInterrupt ends calls that would go on for ever, and tells that the engine goes on to work.
func TestInterrupt(t *testing.T) {
	killed := srverr.New(srverr.Interrupted, "operation was interrupted")
	var stop atomic.Bool // only what is called, however long it takes to be read
	e := New(Config{Check: func() error {
		if stop.Load() {
			return killed
		}
		return nil
	}})
	e.grace = time.Hour // however slow the machine is
	for _, code := range []string{`while (true) {}`, `function() { try { while (true) {} } catch (e) { return 1 } finally { while (true) {} } }`, `sleep(1e9)`, `function() { return [1].map(function() { for (;;) {} }) }`} {
		f, err := e.Function(code)
		if err != nil {
			t.Fatal(err)
		}
		stop.Store(true)
		if _, err := f.Call(nil); !errors.Is(err, killed) {
			t.Errorf("%s: %v", code, err)
		}
		stop.Store(false)
		g, _ := e.Function(`1`)
		if v, err := g.Call(nil); err != nil || show(t, v) != `{"$numberDouble":"1.0"}` {
			t.Errorf("after %s: %v", code, err)
		}
	}
}

// TestLeave: a call that the interpreter cannot end is left alone, and so is the interpreter.
func TestLeave(t *testing.T) {
	killed := srverr.New(srverr.Interrupted, "operation was interrupted")
	for range 100 { // now and then a call is told to end before its match has begun, and can
		var stop atomic.Bool
		e := New(Config{Check: func() error {
			if stop.Load() {
				return killed
			}
			return nil
		}})
		e.grace = time.Millisecond
		// The match ends after seconds, and would then emit.
		f, err := e.Function(`function() { emit(0, 0); "` + strings.Repeat("a", 22) + `b".replace(/^(?=a)(a+)+$|b/, emit); emit(1, 1) }`)
		if err != nil {
			t.Fatal(err)
		}
		err = f.Emit(doc(t, `{}`), func(bson.RawValue, bson.RawValue) error {
			if stop.Swap(true) {
				t.Error("emitted after the end")
			}
			return nil
		})
		if !errors.Is(err, killed) {
			t.Fatal(err)
		}
		if !e.dead {
			continue
		}
		if _, err := f.Call(nil); !errors.Is(err, killed) {
			t.Errorf("the next call: %v", err)
		}
		if _, err := e.Call(`1`, nil); !errors.Is(err, killed) {
			t.Errorf("another function: %v", err)
		}
		return
	}
	t.Error("no call was left alone")
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		start := time.Now()
		e := New(Config{Check: func() error {
			if time.Since(start) >= 2*time.Second {
				return late
			}
			return nil
		}})
		f, err := e.Function(`function(ms) { sleep(ms); return ms }`)
		if err != nil {
			t.Fatal(err)
		}
		args := doc(t, `{"a":{"$numberInt":"1500"}}`)
		if _, err := f.Call(nil, args.Lookup("a")); err != nil || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := f.Call(nil, args.Lookup("a")); err != late || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func BenchmarkCall(b *testing.B) {
	e := New(Config{Check: func() error { return nil }})
	f, err := e.Function(`this.a == 1`)
	if err != nil {
		b.Fatal(err)
	}
	var d bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(`{"a":1,"b":"x","c":[1,2,3]}`), &d); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f.Test(d)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		New(Config{}).Function("1")
	}
}
