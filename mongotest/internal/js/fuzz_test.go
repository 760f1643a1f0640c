package js

import (
	"errors"
	"testing"
	"time"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// FuzzFunction runs any code on any document: it ends when it is told to, with a value that is BSON
// or with an error of the server's kind, and the engine can be used again.
func FuzzFunction(f *testing.F) {
	args, err := bson.ParseExtJSON([]byte(everyType))
	if err != nil {
		f.Fatal(err)
	}
	for _, code := range []string{
		"function(d) { return d }", "for(;;){}", "this.x", "function() { throw {a: 1} }", "return 1", "function(d) { d.o.x = d; return d }", "1+1; 2", "}{",
		"function f() { return f() + 1 }", "new Date(NaN)", "NumberLong('9223372036854775808')", "function(d) { return Object.bsonsize(d) }", "[,1]", "new Array(1e9)",
		"function() { return 'x'.repeat(1e8) }", "function(d) { return [BinData(0, 'AA=='), ObjectId(), /a/i, MinKey, undefined, new Map()] }", "eval('1')", "`${1}`",
		"function() { let a = []; a[0] = a; return a }", "function() { return {get a() { throw 1 }} }", "function(d) { return new Proxy(d, {}) }", "Object.defineProperty(this, 'x', {})",
	} {
		f.Add(code, []byte(args))
	}
	f.Fuzz(func(t *testing.T, code string, data []byte) {
		doc := bson.Raw(data)
		if doc.Validate() != nil || len(code) > 2000 {
			return
		}
		ended := errors.New("time is up")
		began := time.Now()
		e := New(Config{ServerVersion: "8.0.0", Check: func() error {
			if time.Since(began) > 200*time.Millisecond {
				return ended
			}
			return nil
		}})
		check := func(err error) {
			var server *srverr.Error
			if err != nil && !errors.Is(err, ended) && !errors.As(err, &server) {
				t.Errorf("%q: an error of no kind: %T %v", code, err, err)
			}
		}
		out, err := e.Call(code, doc, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: data})
		check(err)
		if err == nil && out.Type != 0 {
			at, dst := bson.BeginDocument(nil)
			if err := bson.Raw(bson.EndDocument(bson.AppendRawValue(dst, "v", out), at)).Validate(); err != nil {
				t.Errorf("%q returns no BSON: %v", code, err)
			}
		}
		if fn, err := e.Function(code); err == nil {
			_, err = fn.Test(doc)
			check(err)
		}
	})
}
