package js

import (
	"math"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// maxDepth bounds how deep objects nest that become documents.
const maxDepth = 150

// maxDocument is the greatest size of a document.
const maxDocument = 16<<20 + 16<<10

// box holds the BSON value of an object of one of the classes.
type box struct{ v bson.RawValue }

// fromBSON converts a value for the language.
func (e *Engine) fromBSON(v bson.RawValue) goja.Value {
	switch v.Type {
	case bson.TypeDouble:
		x, _ := v.Double()
		return e.vm.ToValue(x)
	case bson.TypeInt32:
		x, _ := v.Int32()
		return e.vm.ToValue(int64(x))
	case bson.TypeString:
		s, _ := v.StringValue()
		return e.vm.ToValue(s)
	case bson.TypeSymbol:
		s, _ := v.Symbol()
		return e.vm.ToValue(string(s))
	case bson.TypeBoolean:
		return e.vm.ToValue(v.AsBool())
	case bson.TypeNull:
		return goja.Null()
	case 0, bson.TypeUndefined:
		return goja.Undefined()
	case bson.TypeDateTime:
		t, _ := v.DateTime()
		o, err := e.vm.New(e.vm.Get("Date"), e.vm.ToValue(int64(t)))
		if err != nil {
			panic(err)
		}
		return o
	case bson.TypeRegex:
		r, _ := v.Regex()
		flags := strings.Map(func(c rune) rune {
			if strings.ContainsRune("gimuy", c) {
				return c
			}
			return -1
		}, r.Options)
		o, err := e.vm.New(e.vm.Get("RegExp"), e.vm.ToValue(r.Pattern), e.vm.ToValue(flags))
		if err != nil {
			panic(e.vm.NewGoError(e.failure(err)))
		}
		e.hide(o, e.raw, &box{v})
		return o
	case bson.TypeEmbeddedDocument:
		return e.object(bson.Raw(v.Value))
	case bson.TypeArray:
		var items []any
		for item := range bson.Raw(v.Value).Values() {
			items = append(items, e.fromBSON(item))
		}
		return e.vm.NewArray(items...)
	}
	return e.boxed(v)
}

// object makes an object of a document, which it remembers.
func (e *Engine) object(doc bson.Raw) *goja.Object {
	o := e.vm.NewObject()
	for key, v := range doc.All() {
		if key == "__proto__" {
			o.DefineDataProperty(key, e.fromBSON(v), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
			continue
		}
		o.Set(key, e.fromBSON(v))
	}
	if doc != nil {
		e.hide(o, e.origin, doc)
	}
	return o
}

// hide gives an object a property that programs do not see.
func (e *Engine) hide(o *goja.Object, name *goja.Symbol, v any) {
	o.DefineDataPropertySymbol(name, e.vm.ToValue(v), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
}

// hidden returns what hide has put into the object itself.
func (e *Engine) hidden(o *goja.Object, name *goja.Symbol) any {
	if v := o.GetSymbol(name); v != nil {
		return v.Export()
	}
	return nil
}

// boxed makes an object of the class of v's type.
func (e *Engine) boxed(v bson.RawValue) *goja.Object {
	o := e.vm.CreateObject(e.classes[v.Type])
	e.hide(o, e.raw, &box{v})
	switch v.Type {
	case bson.TypeTimestamp:
		ts, _ := v.Timestamp()
		o.Set("t", int64(ts.T))
		o.Set("i", int64(ts.I))
	case bson.TypeDBPointer:
		p, _ := v.DBPointer()
		o.Set("ns", p.DB)
		o.Set("id", e.boxed(objectID(p.Pointer)))
	case bson.TypeJavaScript:
		code, _ := v.JavaScript()
		o.Set("code", string(code))
	case bson.TypeCodeWithScope:
		code, scope, _ := v.CodeWithScope()
		o.Set("code", code)
		o.Set("scope", e.object(scope))
	}
	return o
}

func objectID(id bson.ObjectID) bson.RawValue {
	return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
}

// unbox returns the BSON value of an object of one of the classes.
func (e *Engine) unbox(o *goja.Object) (bson.RawValue, bool) {
	b, ok := e.hidden(o, e.raw).(*box)
	if !ok {
		return bson.RawValue{}, false
	}
	if b.v.Type == bson.TypeTimestamp {
		ts := bson.Timestamp{T: uint32(o.Get("t").ToInteger()), I: uint32(o.Get("i").ToInteger())}
		return bson.RawValue{Type: bson.TypeTimestamp, Value: bson.AppendTimestampValue(nil, ts)}, true
	}
	return b.v, true
}

// toBSON converts a value of the language. was is the value that the field had in the document that
// its object was made from, or zero: a value that means the same stays as it was, and an integer
// keeps its type.
func (e *Engine) toBSON(v goja.Value, was bson.RawValue, depth int) (bson.RawValue, error) {
	out, err := e.encode(v, was, depth)
	if err == nil && was.Type != 0 && same(out, was) {
		return was, nil
	}
	return out, err
}

func (e *Engine) encode(v goja.Value, was bson.RawValue, depth int) (bson.RawValue, error) {
	if depth > maxDepth {
		return bson.RawValue{}, srverr.New(
			17279, "Exceeded depth limit of %d when converting js object to BSON. Do you have a cycle?", maxDepth)
	}
	switch {
	case (v == nil || goja.IsUndefined(v)) && e.cfg.Shell != nil:
		return bson.RawValue{Type: bson.TypeNull}, nil
	case v == nil || goja.IsUndefined(v):
		return bson.RawValue{Type: bson.TypeUndefined}, nil
	case goja.IsNull(v):
		return bson.RawValue{Type: bson.TypeNull}, nil
	}
	if o, ok := v.(*goja.Object); ok {
		return e.encodeObject(o, depth)
	}
	switch x := v.Export().(type) {
	case bool:
		return bson.RawValue{Type: bson.TypeBoolean, Value: bson.AppendBoolValue(nil, x)}, nil
	case int64:
		return e.number(float64(x), was), nil
	case float64:
		return e.number(x, was), nil
	case string:
		return bsondoc.StringValue(x), nil
	}
	return bson.RawValue{}, srverr.New(16662, "unable to convert JavaScript property to mongo element")
}

// number is a double, unless the field held an integer before and does so now, or a shell's program
// has a whole number.
func (e *Engine) number(x float64, was bson.RawValue) bson.RawValue {
	whole := was.Type == bson.TypeInt32 ||
		e.cfg.Shell != nil && was.Type != bson.TypeDouble && !(x == 0 && math.Signbit(x))
	if whole && x == math.Trunc(x) && math.Abs(x) <= math.MaxInt32 {
		return bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, int32(x))}
	}
	return bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, x)}
}

func (e *Engine) encodeObject(o *goja.Object, depth int) (bson.RawValue, error) {
	if v, ok := e.unbox(o); ok {
		return v, nil
	}
	switch o.ClassName() {
	case "Date":
		t := o.ToFloat()
		if math.IsNaN(t) {
			t = 0
		}
		var b [8]byte
		for i := range b {
			b[i] = byte(int64(t) >> (8 * i))
		}
		return bson.RawValue{Type: bson.TypeDateTime, Value: b[:]}, nil
	case "RegExp":
		// The interpreter writes slashes of patterns that are no literals like this.
		pattern, flags := strings.ReplaceAll(textOf(o.Get("source")), `\u002f`, `\/`), []byte(textOf(o.Get("flags")))
		slices.Sort(flags)
		_, value, _, err := bson.ReadElement(bson.AppendRegex(nil, "",
			bson.Regex{Pattern: pattern, Options: string(flags)}))
		return value, err
	case "Function":
		return bson.RawValue{Type: bson.TypeJavaScript, Value: bson.AppendStringValue(nil, o.String())}, nil
	case "Number":
		return e.number(o.ToFloat(), bson.RawValue{}), nil
	case "String":
		return bsondoc.StringValue(o.String()), nil
	case "Boolean":
		return bson.RawValue{Type: bson.TypeBoolean, Value: bson.AppendBoolValue(nil, o.ToString().String() == "true")},
			nil
	case "Array":
		return e.encodeArray(o, depth)
	}
	origin, _ := e.hidden(o, e.origin).(bson.Raw)
	start, dst := bson.BeginDocument(nil)
	for _, key := range o.Keys() {
		if strings.IndexByte(key, 0) >= 0 {
			return bson.RawValue{}, srverr.New(16985,
				"JavaScript property (name) contains a null char which is not allowed in BSON. %s", key)
		}
		var was bson.RawValue
		if origin != nil {
			was = origin.Lookup(key)
		}
		v, err := e.toBSON(o.Get(key), was, depth+1)
		if err != nil {
			return v, err
		}
		dst = bson.AppendRawValue(dst, key, v)
		if len(dst) > maxDocument {
			return v, srverr.New(
				17260, "Converting from JavaScript to BSON failed: Object size %d exceeds limit of %d bytes.", len(dst),
				16<<20)
		}
	}
	out := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(dst, start)}
	if origin != nil {
		if was := (bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: origin}); same(out, was) {
			return was, nil
		}
	}
	return out, nil
}

func (e *Engine) encodeArray(o *goja.Object, depth int) (bson.RawValue, error) {
	start, dst := bson.BeginDocument(nil)
	n := int(o.Get("length").ToInteger())
	for i := range n {
		if err := e.interrupted(i); err != nil {
			return bson.RawValue{}, err
		}
		v, err := e.toBSON(o.Get(itoa(i)), bson.RawValue{}, depth+1)
		if err != nil {
			return v, err
		}
		dst = append(bson.AppendIndexHeader(dst, v.Type, i), v.Value...)
		if len(dst) > maxDocument {
			return v, srverr.New(
				17260, "Converting from JavaScript to BSON failed: Object size %d exceeds limit of %d bytes.", len(dst),
				16<<20)
		}
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}, nil
}

// interrupted returns the error that ends the call, which it looks for now and then.
func (e *Engine) interrupted(i int) error {
	if i%1024 != 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// same reports whether a value that comes from the language is another one that went there, with
// integers turned into doubles and the keys in another order on the way.
func same(a, b bson.RawValue) bool {
	if a.Type != b.Type {
		x, ok := a.Double()
		y, isInt := b.Int32()
		return ok && isInt && x == float64(y)
	}
	if a.Type != bson.TypeEmbeddedDocument && a.Type != bson.TypeArray {
		return string(a.Value) == string(b.Value)
	}
	n := 0
	for key, v := range bson.Raw(b.Value).All() {
		if other := bson.Raw(a.Value).Lookup(key); other.Type == 0 || !same(other, v) {
			return false
		}
		n++
	}
	for range bson.Raw(a.Value).All() {
		n--
	}
	return n == 0
}
