package golden

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"allium/bson"
)

func parseJSON(data []byte) (bson.Raw, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, fmt.Errorf("want an object, got %v", t)
	}
	el, err := parseObject(d)
	if err != nil {
		return nil, err
	}
	return document(el...), nil
}

func parseObject(d *json.Decoder) ([]element, error) {
	var list []element
	for {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return list, nil
		}
		t, err = d.Token()
		if err != nil {
			return nil, err
		}
		v, err := parseValue(d, t)
		if err != nil {
			return nil, err
		}
		list = append(list, element{key, v})
	}
}

func parseValue(d *json.Decoder, t json.Token) (bson.RawValue, error) {
	switch x := t.(type) {
	case nil:
		return bson.RawValue{Type: bson.TypeNull}, nil
	case bool:
		return boolValue(x), nil
	case string:
		return stringValue(x), nil
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return int32Value(int32(n)), nil
		}
		f, err := x.Float64()
		return bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, f)}, err
	case json.Delim:
		if x == '[' {
			at, out := bson.BeginDocument(nil)
			for i := 0; ; i++ {
				t, err := d.Token()
				if err != nil {
					return bson.RawValue{}, err
				}
				if t == json.Delim(']') {
					break
				}
				v, err := parseValue(d, t)
				if err != nil {
					return v, err
				}
				out = append(bson.AppendIndexHeader(out, v.Type, i), v.Value...)
			}
			return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(out, at)}, nil
		}
		list, err := parseObject(d)
		if err != nil {
			return bson.RawValue{}, err
		}
		if len(list) > 0 && list[0].key[:min(1, len(list[0].key))] == "$" {
			if v, ok, err := special(list); ok || err != nil {
				return v, err
			}
		}
		return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document(list...)}, nil
	}
	return bson.RawValue{}, fmt.Errorf("token %v", t)
}

func special(list []element) (v bson.RawValue, ok bool, err error) {
	s, isString := list[0].val.StringValue()
	sub := bson.Raw(list[0].val.Value)
	switch key := list[0].key; {
	case key == "$code" && isString:
		if len(list) == 1 {
			return bson.RawValue{Type: bson.TypeJavaScript, Value: bson.AppendStringValue(nil, s)}, true, nil
		}
		b := append([]byte{0, 0, 0, 0}, bson.AppendStringValue(nil, s)...)
		b = append(b, list[1].val.Value...)
		b[0], b[1], b[2], b[3] = byte(len(b)), byte(len(b)>>8), byte(len(b)>>16), 0
		return bson.RawValue{Type: bson.TypeCodeWithScope, Value: b}, true, nil
	case len(list) != 1:
		return v, false, nil
	case key == "$numberInt" && isString:
		n, err := strconv.ParseInt(s, 10, 32)
		return int32Value(int32(n)), true, err
	case key == "$numberLong" && isString:
		n, err := strconv.ParseInt(s, 10, 64)
		return bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, n)}, true, err
	case key == "$numberDouble" && isString:
		f, err := strconv.ParseFloat(s, 64)
		if s == "NaN" {
			f = math.NaN()
		}
		return bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, f)}, true, err
	case key == "$numberDecimal" && isString:
		dec, err := bson.ParseDecimal128(s)
		return bson.RawValue{Type: bson.TypeDecimal128, Value: bson.AppendDecimal128Value(nil, dec)}, true, err
	case key == "$oid" && isString:
		b, err := hex.DecodeString(s)
		return bson.RawValue{Type: bson.TypeObjectID, Value: b}, true, err
	case key == "$symbol" && isString:
		return bson.RawValue{Type: bson.TypeSymbol, Value: bson.AppendStringValue(nil, s)}, true, nil
	case key == "$undefined":
		return bson.RawValue{Type: bson.TypeUndefined}, true, nil
	case key == "$minKey" && !isString && list[0].val.Type == bson.TypeInt32:
		return bson.RawValue{Type: bson.TypeMinKey}, true, nil
	case key == "$maxKey" && !isString && list[0].val.Type == bson.TypeInt32:
		return bson.RawValue{Type: bson.TypeMaxKey}, true, nil
	case key == "$date":
		if n, ok := list[0].val.Int64(); ok {
			return bson.RawValue{Type: bson.TypeDateTime, Value: bson.AppendInt64Value(nil, n)}, true, nil
		}
	case key == "$timestamp":
		t, _ := sub.Lookup("t").AsInt64()
		i, _ := sub.Lookup("i").AsInt64()
		return bson.RawValue{Type: bson.TypeTimestamp, Value: bson.AppendTimestampValue(nil, bson.Timestamp{T: uint32(t), I: uint32(i)})}, true, nil
	case key == "$binary" && list[0].val.Type == bson.TypeEmbeddedDocument:
		b64, _ := sub.Lookup("base64").StringValue()
		st, _ := sub.Lookup("subType").StringValue()
		data, err := base64.StdEncoding.DecodeString(b64)
		if err != nil {
			return v, false, err
		}
		n, err := strconv.ParseUint(st, 16, 8)
		return bson.RawValue{Type: bson.TypeBinary, Value: bson.AppendBinaryValue(nil, byte(n), data)}, true, err
	case key == "$regularExpression" && list[0].val.Type == bson.TypeEmbeddedDocument:
		p, _ := sub.Lookup("pattern").StringValue()
		o, _ := sub.Lookup("options").StringValue()
		return bson.RawValue{Type: bson.TypeRegex, Value: append(append(append([]byte(p), 0), o...), 0)}, true, nil
	case key == "$dbPointer":
		ns, _ := sub.Lookup("$ref").StringValue()
		id, _ := sub.Lookup("$id").ObjectID()
		return bson.RawValue{Type: bson.TypeDBPointer, Value: append(bson.AppendStringValue(nil, ns), id[:]...)}, true, nil
	}
	return v, false, nil
}

func formatJSON(doc bson.Raw, canonical bool) ([]byte, error) {
	return appendJSON(nil, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}), nil
}

func appendJSON(b []byte, v bson.RawValue) []byte {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		b = append(b, '{')
		for i, e := range elements(v.Value) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = strconv.AppendQuote(b, e.key)
			b = appendJSON(append(b, ": "...), e.val)
		}
		return append(b, '}')
	case bson.TypeArray:
		b = append(b, '[')
		for i, e := range elements(v.Value) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendJSON(b, e.val)
		}
		return append(b, ']')
	case bson.TypeString:
		s, _ := v.StringValue()
		return strconv.AppendQuote(b, s)
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64()
		b = strconv.AppendInt(b, n, 10)
		if v.Type == bson.TypeInt64 {
			b = append(b, 'L')
		}
		return b
	case bson.TypeDouble:
		f, _ := v.Double()
		return fmt.Appendf(b, "%gd", f)
	case bson.TypeBoolean:
		return strconv.AppendBool(b, v.AsBool())
	}
	return fmt.Appendf(b, "%s(%x)", v.Type, v.Value)
}
