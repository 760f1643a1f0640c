package js

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

func itoa(n int) string { return strconv.Itoa(n) }

// throw ends a native with an error of the server.
func (e *Engine) throw(code int32, format string, args ...any) {
	panic(e.vm.NewGoError(srverr.New(code, format, args...)))
}

// natives are the functions that the prelude builds upon.
func (e *Engine) natives() goja.Value {
	n := e.vm.NewObject()
	set := func(name string, fn func(call goja.FunctionCall) goja.Value) { n.Set(name, fn) }
	value := func(v any) goja.Value { return e.vm.ToValue(v) }
	set("emit", func(call goja.FunctionCall) goja.Value {
		if err := e.interrupted(0); err != nil { // a call that is not waited for has nobody to emit to
			panic(e.vm.NewGoError(err))
		}
		if len(call.Arguments) != 2 {
			e.throw(31220, "emit takes 2 args")
		}
		if e.emit == nil {
			e.throw(interpreterFailure, "ReferenceError: emit is not defined")
		}
		var kv [2]bson.RawValue
		for i := range kv {
			var err error
			if kv[i], err = e.toBSON(call.Arguments[i], bson.RawValue{}, 0); err != nil {
				panic(e.vm.NewGoError(err))
			}
		}
		if kv[0].Type == bson.TypeUndefined {
			kv[0].Type = bson.TypeNull
		}
		if err := e.emit(kv[0], kv[1]); err != nil {
			panic(e.vm.NewGoError(err))
		}
		return goja.Undefined()
	})
	set("run", func(call goja.FunctionCall) goja.Value { // a program that another one loads
		name, source := call.Argument(0).String(), call.Argument(1).String()
		p, _, err := compile(name, source)
		if err != nil {
			panic(e.vm.NewGoError(err))
		}
		e.sources[name] = source
		v, err := e.vm.RunProgram(p)
		if err != nil {
			panic(err)
		}
		return v
	})
	set("sleep", func(call goja.FunctionCall) goja.Value {
		ms := call.Argument(0).ToFloat()
		if len(call.Arguments) != 1 || math.IsNaN(ms) {
			e.throw(16259, "sleep takes a single numeric argument -- sleep(milliseconds)")
		}
		e.sleep(time.Duration(max(ms, 0) * float64(time.Millisecond)))
		return goja.Undefined()
	})
	set("version", func(goja.FunctionCall) goja.Value { return value(e.cfg.ServerVersion) })
	set("md5", func(call goja.FunctionCall) goja.Value {
		sum := md5.Sum([]byte(call.Argument(0).String()))
		return value(hex.EncodeToString(sum[:]))
	})
	set("compare", func(call goja.FunctionCall) goja.Value {
		return value(bson.Compare(e.argument(call, 0), e.argument(call, 1)))
	})
	set("equalBytes", func(call goja.FunctionCall) goja.Value {
		a, b := e.argument(call, 0), e.argument(call, 1)
		return value(a.Type == b.Type && string(a.Value) == string(b.Value))
	})
	set("is", func(call goja.FunctionCall) goja.Value { // an object of the class of a type
		o, ok := call.Argument(0).(*goja.Object)
		if !ok {
			return value(false)
		}
		v, ok := e.unbox(o)
		return value(ok && int64(v.Type) == call.Argument(1).ToInteger())
	})
	set("text", func(call goja.FunctionCall) goja.Value { return value(inside(e.argument(call, 0))) })
	set("number", func(call goja.FunctionCall) goja.Value {
		f, err := strconv.ParseFloat(strings.Replace(inside(e.argument(call, 0)), "Infinity", "Inf", 1), 64)
		if err != nil && !math.IsInf(f, 0) {
			f = math.NaN()
		}
		return value(f)
	})
	set("word", func(call goja.FunctionCall) goja.Value { // 32 bits of a long
		n, _ := e.argument(call, 0).Int64()
		return value(int64(uint32(n >> call.Argument(1).ToInteger())))
	})
	set("binary", func(call goja.FunctionCall) goja.Value {
		b, _ := e.argument(call, 0).Binary()
		switch call.Argument(1).String() {
		case "base64":
			return value(base64.StdEncoding.EncodeToString(b.Data))
		case "hex":
			return value(hex.EncodeToString(b.Data))
		case "length":
			return value(int64(len(b.Data)))
		}
		return value(int64(b.Subtype))
	})
	set("seconds", func(call goja.FunctionCall) goja.Value {
		id, _ := e.argument(call, 0).ObjectID()
		return value(id.Timestamp().UnixMilli())
	})
	set("class", func(call goja.FunctionCall) goja.Value { // the prototype of a type's objects
		e.classes[bson.Type(call.Argument(0).ToInteger())] = call.Argument(1).(*goja.Object)
		return goja.Undefined()
	})
	set("mark", func(call goja.FunctionCall) goja.Value { // makes a function stand for a value without content
		e.hide(call.Argument(0).(*goja.Object), e.raw,
			&box{bson.RawValue{Type: bson.Type(call.Argument(1).ToInteger())}})
		return goja.Undefined()
	})
	set("make", func(call goja.FunctionCall) goja.Value {
		return e.boxed(e.make(bson.Type(call.Argument(0).ToInteger()), call.Arguments[1:]))
	})
	return n
}

func (e *Engine) argument(call goja.FunctionCall, i int) bson.RawValue {
	v, err := e.toBSON(call.Argument(i), bson.RawValue{}, 0)
	if err != nil {
		panic(e.vm.NewGoError(err))
	}
	return v
}

// inside is the text of a value without the name of its class.
func inside(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeObjectID:
		return hex.EncodeToString(v.Value)
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64()
		return strconv.FormatInt(n, 10)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		return d.String()
	}
	return ""
}

// make makes a value of the arguments of its class's constructor.
func (e *Engine) make(t bson.Type, args []goja.Value) bson.RawValue {
	arg := func(i int) goja.Value {
		if i < len(args) {
			return args[i]
		}
		return goja.Undefined()
	}
	value := func(b []byte) bson.RawValue { return bson.RawValue{Type: t, Value: b} }
	bad := func(format string, a ...any) { e.throw(srverr.BadValue, format, a...) }
	switch t {
	case bson.TypeMinKey, bson.TypeMaxKey:
		return value(nil)
	case bson.TypeObjectID:
		if goja.IsUndefined(arg(0)) {
			return objectID(bson.NewObjectID())
		}
		s := arg(0).String()
		id, err := hex.DecodeString(s)
		if len(s) != 24 || err != nil {
			bad("invalid object id: length")
		}
		return value(id)
	case bson.TypeDouble:
		return value(bson.AppendDoubleValue(nil, arg(0).ToFloat()))
	case bson.TypeInt32:
		return value(bson.AppendInt32Value(nil, int32(e.integer(arg(0)))))
	case bson.TypeInt64:
		switch len(args) {
		case 0:
			return value(bson.AppendInt64Value(nil, 0))
		case 1:
			return value(bson.AppendInt64Value(nil, e.integer(arg(0))))
		}
		high, low := arg(1).ToInteger(), arg(2).ToInteger()
		if len(args) == 2 {
			return value(bson.AppendInt64Value(nil, e.integer(arg(0))))
		}
		return value(bson.AppendInt64Value(nil, high<<32|int64(uint32(low))))
	case bson.TypeDecimal128:
		s := "0"
		if len(args) > 0 {
			s = inside(e.decimalText(arg(0)))
			if s == "" {
				s = arg(0).String()
			}
		}
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			bad("Input is not a valid Decimal128 value.")
		}
		return value(bson.AppendDecimal128Value(nil, d))
	case bson.TypeTimestamp:
		return value(bson.AppendTimestampValue(nil,
			bson.Timestamp{T: e.unsigned(arg(0), "time"), I: e.unsigned(arg(1), "increment")}))
	case bson.TypeBinary:
		data, err := base64.StdEncoding.DecodeString(arg(1).String())
		if arg(2).ToBoolean() {
			data, err = hex.DecodeString(arg(1).String())
		}
		if err != nil {
			bad("BinData data must be a base64 encoded string")
		}
		sub := arg(0).ToInteger()
		if sub < 0 || sub > 255 {
			bad("BinData subtype must be between 0 and 255")
		}
		return value(bson.AppendBinaryValue(nil, byte(sub), data))
	case bson.TypeDBPointer:
		o, ok := arg(1).(*goja.Object)
		if !ok {
			bad("DBPointer 2nd parameter must be an ObjectId")
		}
		id, _ := e.unbox(o)
		if id.Type != bson.TypeObjectID {
			bad("DBPointer 2nd parameter must be an ObjectId")
		}
		return value(append(bson.AppendStringValue(nil, arg(0).String()), id.Value...))
	case bson.TypeJavaScript:
		return value(bson.AppendStringValue(nil, arg(0).String()))
	case bson.TypeCodeWithScope:
		scope, err := e.toBSON(arg(1), bson.RawValue{}, 0)
		if err != nil || scope.Type != bson.TypeEmbeddedDocument {
			bad("Code 2nd parameter must be an object")
		}
		b := bson.AppendStringValue(make([]byte, 4), arg(0).String())
		b = append(b, scope.Value...)
		for i := range 4 {
			b[i] = byte(len(b) >> (8 * i))
		}
		return value(b)
	}
	panic("no class of " + t.String())
}

func (e *Engine) decimalText(v goja.Value) bson.RawValue {
	if o, ok := v.(*goja.Object); ok {
		raw, _ := e.unbox(o)
		return raw
	}
	return bson.RawValue{}
}

// integer is the integer that a number, a text or an object of a class stands for.
func (e *Engine) integer(v goja.Value) int64 {
	if o, ok := v.(*goja.Object); ok {
		if raw, ok := e.unbox(o); ok {
			n, _ := raw.AsInt64()
			return n
		}
	}
	if s, ok := v.Export().(string); ok {
		n, err := strconv.ParseInt(s, 0, 64)
		if err != nil {
			e.throw(srverr.BadValue, "could not convert \"%s\" to NumberLong", s)
		}
		return n
	}
	return v.ToInteger()
}

func (e *Engine) unsigned(v goja.Value, what string) uint32 {
	f := v.ToFloat()
	if goja.IsUndefined(v) {
		f = 0
	}
	if !(f >= 0 && f <= math.MaxUint32) {
		e.throw(srverr.BadValue, "Timestamp %s must be non-negative and not greater than %d, got %v", what,
			uint32(math.MaxUint32), f)
	}
	return uint32(f)
}
