package expr

// $serializeEJSON and $deserializeEJSON (8.3): between values and documents with the wrappers of
// Extended JSON.

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	named := func(name string, eval func(st *State, n *named) (bson.RawValue, error), more ...parameter) *namedOp {
		return &namedOp{
			name:      name,
			notObject: parseError{srverr.FailedToParse, "%s expects an object of named arguments but found: %s", 2},
			unknown:   parseError{srverr.FailedToParse, "%s found an unknown argument: %s", 2},
			params: append([]parameter{
				{"input", &parseError{srverr.FailedToParse, "Missing 'input' parameter to %s", 3}}, {"onError", nil}},
				more...),
			eval: eval,
		}
	}
	registerNamed(
		named("$serializeEJSON", evalSerializeEJSON, parameter{"relaxed", nil}),
		named("$deserializeEJSON", evalDeserializeEJSON),
	)
}

// orElse returns onError, the second operand, in the place of an error of the conversion.
func orElse(st *State, n *named, v bson.RawValue, err error) (bson.RawValue, error) {
	if err != nil && n.has(1) && srverr.CodeOf(err) == srverr.ConversionFailure {
		return n.arg(st, 1)
	}
	return v, err
}

func evalSerializeEJSON(st *State, n *named) (bson.RawValue, error) {
	in, err := n.arg(st, 0)
	if err != nil || nullish(in) {
		return null, err
	}
	relaxed, err := n.arg(st, 2)
	if err != nil {
		return missing, err
	}
	canonical := true
	if !nullish(relaxed) {
		r, ok := relaxed.Boolean()
		if !ok {
			return missing, srverr.New(srverr.FailedToParse,
				"$serializeEJSON's 'relaxed' argument must be a bool, but is %s",
				typeName(relaxed))
		}
		canonical = !r
	}
	out, err := serializeEJSON(st, in, canonical)
	if err == nil && len(out.Value) > maxResult {
		err = srverr.New(srverr.ConversionFailure, "Failed to convert to Extended JSON: the result is too large")
	}
	return orElse(st, n, out, err)
}

// serializeEJSON returns a value with wrappers for what JSON has not. In the relaxed form numbers
// stay the numbers they are.
func serializeEJSON(st *State, v bson.RawValue, canonical bool) (bson.RawValue, error) {
	if err := st.copied(len(v.Value)); err != nil {
		return missing, err
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		at, dst := bson.BeginDocument(nil)
		for key, item := range bson.Raw(v.Value).All() {
			sub, err := serializeEJSON(st, item, canonical)
			if err != nil {
				return missing, err
			}
			dst = bson.AppendRawValue(dst, key, sub)
		}
		return bson.RawValue{Type: v.Type, Value: bson.EndDocument(dst, at)}, nil
	case bson.TypeString, bson.TypeBoolean, bson.TypeNull:
		return v, nil
	case bson.TypeInt32, bson.TypeInt64:
		if !canonical {
			return v, nil
		}
	case bson.TypeDouble:
		if f, _ := v.Double(); !canonical && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return v, nil
		}
	}
	text, err := bson.AppendExtJSONValue(nil, v, canonical)
	if err != nil {
		return missing, srverr.New(srverr.ConversionFailure, "Failed to convert to Extended JSON: %v", err)
	}
	return plainJSON(text)
}

// plainJSON reads JSON as what it is: wrappers are documents among others.
func plainJSON(text []byte) (bson.RawValue, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := plainValue(d, 0)
	if err != nil {
		return missing, srverr.New(srverr.ConversionFailure, "Failed to convert to Extended JSON: %v", err)
	}
	return v, nil
}

// plainValue reads the next value. Of members of one name the last counts, in the place of the
// first.
func plainValue(d *json.Decoder, depth int) (bson.RawValue, error) {
	if depth > maxNesting {
		return missing, errors.New("nested too deeply")
	}
	t, err := d.Token()
	if err != nil {
		return missing, err
	}
	switch t := t.(type) {
	case string:
		return bsondoc.StringValue(t), nil
	case bool:
		return bsondoc.BoolValue(t), nil
	case json.Number:
		n, err := t.Int64()
		if err != nil {
			f, err := t.Float64()
			return bsondoc.DoubleValue(f), err
		}
		if n == int64(int32(n)) {
			return bsondoc.Int32Value(int32(n)), nil
		}
		return bsondoc.Int64Value(n), nil
	case json.Delim:
		kind := bson.TypeEmbeddedDocument
		if t == '[' {
			kind = bson.TypeArray
		}
		var keys []string
		values := map[string]bson.RawValue{}
		for d.More() {
			key := strconv.Itoa(len(keys))
			if kind == bson.TypeEmbeddedDocument {
				name, err := d.Token()
				if err != nil {
					return missing, err
				}
				if key, _ = name.(string); strings.Contains(key, "\x00") {
					return missing, errNullByte
				}
			}
			v, err := plainValue(d, depth+1)
			if err != nil {
				return missing, err
			}
			if _, again := values[key]; !again {
				keys = append(keys, key)
			}
			values[key] = v
		}
		if _, err := d.Token(); err != nil { // the end
			return missing, err
		}
		at, dst := bson.BeginDocument(nil)
		for _, key := range keys {
			dst = bson.AppendRawValue(dst, key, values[key])
		}
		return bson.RawValue{Type: kind, Value: bson.EndDocument(dst, at)}, nil
	}
	return null, nil
}

var errNullByte = errors.New("a name has a null byte")

// maxNesting is how deep documents may be nested.
const maxNesting = 180

func evalDeserializeEJSON(st *State, n *named) (bson.RawValue, error) {
	in, err := n.arg(st, 0)
	if err != nil || nullish(in) {
		return null, err
	}
	out, err := deserializeEJSON(st, in)
	return orElse(st, n, out, err)
}

// deserializeEJSON returns a value with what its wrappers stand for. What looks like one is written
// as JSON and read as Extended JSON.
func deserializeEJSON(st *State, v bson.RawValue) (bson.RawValue, error) {
	if err := st.copied(len(v.Value)); err != nil {
		return missing, err
	}
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return v, nil
	}
	if v.Type == bson.TypeEmbeddedDocument && IsOperation(v.Value) {
		at, doc := bson.BeginDocument(nil)
		text, err := bson.AppendExtJSON(nil, bson.Raw(bson.EndDocument(bson.AppendRawValue(doc, "v", v), at)), false)
		var out bson.Raw
		if err == nil {
			err = bson.UnmarshalExtJSON(text, &out)
		}
		if err != nil {
			return missing, srverr.New(srverr.ConversionFailure, "Failed to convert from Extended JSON: %v", err)
		}
		if meant := out.Lookup("v"); meant.Type != bson.TypeEmbeddedDocument {
			return meant, nil
		}
	}
	at, dst := bson.BeginDocument(nil)
	for key, item := range bson.Raw(v.Value).All() {
		sub, err := deserializeEJSON(st, item)
		if err != nil {
			return missing, err
		}
		dst = bson.AppendRawValue(dst, key, sub)
	}
	return bson.RawValue{Type: v.Type, Value: bson.EndDocument(dst, at)}, nil
}
