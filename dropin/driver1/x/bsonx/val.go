package bsonx

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// A Val is a BSON value. Its zero value is null.
type Val struct {
	t bsontype.Type
	// v is what Interface returns.
	v any
}

// Type returns the BSON type.
func (v Val) Type() bsontype.Type {
	if v.t == 0 {
		return bsontype.Null
	}
	return v.t
}

// IsZero reports whether the value is null.
func (v Val) IsZero() bool { return v.Type() == bsontype.Null }

// IsNumber reports whether the value is a number of any type.
func (v Val) IsNumber() bool {
	switch v.t {
	case bsontype.Double, bsontype.Int32, bsontype.Int64, bsontype.Decimal128:
		return true
	}
	return false
}

// Interface returns the value as a Go value: of a Go type, of this package or of package primitive.
func (v Val) Interface() any {
	if v.v == nil {
		return primitive.Null{}
	}
	return v.v
}

// String returns what fmt.Sprint makes of Interface.
func (v Val) String() string { return fmt.Sprint(v.Interface()) }

// Equal reports whether both have the same type and value.
func (v Val) Equal(v2 Val) bool {
	if v.Type() != v2.Type() {
		return false
	}
	switch x := v.v.(type) {
	case IDoc:
		return equalDocs(x, v2.v.(IDoc))
	case Arr:
		return x.Equal(v2.v.(Arr))
	case primitive.Binary:
		return x.Equal(v2.v.(primitive.Binary))
	case primitive.CodeWithScope:
		y := v2.v.(primitive.CodeWithScope)
		return x.Code == y.Code && equalDocs(x.Scope.(IDoc), y.Scope.(IDoc))
	}
	return v.Interface() == v2.Interface()
}

func equalDocs(d, d2 IDoc) bool {
	if m, ok := d.(MDoc); ok {
		return m.Equal(d2)
	}
	return d.(Doc).Equal(d2)
}

// MarshalBSONValue encodes the value.
func (v Val) MarshalBSONValue() (bsontype.Type, []byte, error) { return v.MarshalAppendBSONValue(nil) }

// MarshalAppendBSONValue encodes the value, and appends it.
func (v Val) MarshalAppendBSONValue(dst []byte) (bsontype.Type, []byte, error) {
	t, x := v.Type(), v.v
	switch v := x.(type) {
	case IDoc:
		dst, err := v.appendTo(dst)
		return t, dst, err
	case Arr:
		dst, err := v.appendTo(dst)
		return t, dst, err
	case string:
		switch t {
		case bsontype.JavaScript:
			x = primitive.JavaScript(v)
		case bsontype.Symbol:
			x = primitive.Symbol(v)
		}
	case int64:
		if t == bsontype.DateTime {
			x = primitive.DateTime(v)
		}
	case nil:
		return t, dst, nil
	}
	_, b, err := bson.MarshalValue(x)
	return t, append(dst, b...), err
}

func wrongType(is, want bsontype.Type) error {
	return fmt.Errorf("cannot unmarshal %s into a bsonx.%s", is, want)
}

// UnmarshalBSONValue decodes a value.
func (v *Val) UnmarshalBSONValue(t bsontype.Type, data []byte) error {
	if v == nil {
		return errors.New("cannot unmarshal into nil Value")
	}
	if !t.IsValid() {
		return fmt.Errorf("invalid BSON type %s", t)
	}
	rv := bson.RawValue{Type: t, Value: data}
	ok := true
	switch t {
	case bsontype.Null:
		*v = Null()
	case bsontype.Double:
		var x float64
		if x, ok = rv.DoubleOK(); ok {
			*v = Double(x)
		}
	case bsontype.Int32:
		var x int32
		if x, ok = rv.Int32OK(); ok {
			*v = Int32(x)
		}
	case bsontype.Int64:
		var x int64
		if x, ok = rv.Int64OK(); ok {
			*v = Int64(x)
		}
	case bsontype.Boolean:
		var x bool
		if x, ok = rv.BooleanOK(); ok {
			*v = Boolean(x)
		}
	case bsontype.String:
		var x string
		if x, ok = rv.StringValueOK(); ok {
			*v = String(x)
		}
	case bsontype.JavaScript:
		var x string
		if x, ok = rv.JavaScriptOK(); ok {
			*v = JavaScript(x)
		}
	case bsontype.Symbol:
		var x string
		if x, ok = rv.SymbolOK(); ok {
			*v = Symbol(x)
		}
	case bsontype.DateTime:
		var x int64
		if x, ok = rv.DateTimeOK(); ok {
			*v = DateTime(x)
		}
	case bsontype.ObjectID:
		var x primitive.ObjectID
		if x, ok = rv.ObjectIDOK(); ok {
			*v = ObjectID(x)
		}
	case bsontype.Decimal128:
		var x primitive.Decimal128
		if x, ok = rv.Decimal128OK(); ok {
			*v = Decimal128(x)
		}
	case bsontype.Binary:
		var subtype byte
		var x []byte
		if subtype, x, ok = rv.BinaryOK(); ok {
			*v = Binary(subtype, append([]byte{}, x...))
		}
	case bsontype.Regex:
		var pattern, options string
		if pattern, options, ok = rv.RegexOK(); ok {
			*v = Regex(pattern, options)
		}
	case bsontype.DBPointer:
		var ns string
		var id primitive.ObjectID
		if ns, id, ok = rv.DBPointerOK(); ok {
			*v = DBPointer(ns, id)
		}
	case bsontype.Timestamp:
		var t, i uint32
		if t, i, ok = rv.TimestampOK(); ok {
			*v = Timestamp(t, i)
		}
	case bsontype.CodeWithScope:
		var code string
		var scope bson.Raw
		if code, scope, ok = rv.CodeWithScopeOK(); ok {
			d, err := ReadDoc(scope)
			if err != nil {
				return err
			}
			*v = CodeWithScope(code, d)
		}
	case bsontype.EmbeddedDocument:
		d, err := ReadDoc(data)
		if err != nil {
			return err
		}
		*v = Document(d)
	case bsontype.Array:
		a := Arr{}
		if err := a.UnmarshalBSONValue(t, data); err != nil {
			return err
		}
		*v = Array(a)
	case bsontype.Undefined:
		*v = Undefined()
	case bsontype.MinKey:
		*v = MinKey()
	case bsontype.MaxKey:
		*v = MaxKey()
	}
	if !ok {
		return bsoncore.NewInsufficientBytesError(data, data)
	}
	return nil
}
