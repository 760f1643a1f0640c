package mongo

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	abson "allium/bson"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A coder is how the documents of a client, a database or a collection are encoded and decoded.
type coder struct {
	registry *bson.Registry
	settings coding.Settings
}

// with returns the coder with what options set instead.
func (c coder) with(r *bson.Registry, o *options.BSONOptions) coder {
	if r != nil {
		c.registry = r
	}
	if o != nil {
		c.settings = coding.Settings{
			IntMinSize: o.IntMinSize, NilBytesAsEmpty: o.NilByteSliceAsEmpty, NilMapAsEmpty: o.NilMapAsEmpty,
			NilSliceAsEmpty: o.NilSliceAsEmpty, InlineOnce: o.ErrorOnInlineDuplicates,
			OmitEmpty: o.OmitEmpty, OmitZeroStruct: o.OmitZeroStruct, FormatKeys: o.StringifyMapKeysWithFmt,
			Truncate: o.AllowTruncatingDoubles, BinaryAsSlice: o.BinaryAsSlice, DocumentM: o.DefaultDocumentM,
			DocumentMap: o.DefaultDocumentMap,
			Hex:         o.ObjectIDAsHexString, LocalTime: o.UseLocalTimeZone, ZeroMaps: o.ZeroMaps,
			ZeroStructs: o.ZeroStructs,
			JSONTags:    o.UseJSONStructTags,
		}
	}
	return c
}

// way returns the coder's functions.
func (c coder) way() coding.Way { return coding.Of(c.registry, c.settings) }

// document encodes a document.
func (c coder) document(val any) (abson.Raw, error) {
	switch v := val.(type) {
	case nil:
		return nil, ErrNilDocument
	case []byte:
		val = bson.Raw(v)
	}
	doc, err := c.way().Marshal(val)
	if err != nil {
		return nil, MarshalError{Value: val, Err: err}
	}
	return doc, nil
}

// optional is document for one that may be left out.
func (c coder) optional(val any) (any, error) {
	if val == nil {
		return nil, nil
	}
	return c.document(val)
}

// ordered is optional for a document whose keys have an order.
func (c coder) ordered(val any, name string) (any, error) {
	if hasManyKeys(val) {
		return nil, ErrMapForOrderedArgument{name}
	}
	return c.optional(val)
}

// hasManyKeys reports whether val is a map with more than one key.
func hasManyKeys(val any) bool {
	v := reflect.ValueOf(val)
	return v.Kind() == reflect.Map && v.Len() > 1
}

// hint encodes a hint: the name of an index or its keys.
func (c coder) hint(val any) (any, error) {
	if s, ok := val.(string); ok {
		return s, nil
	}
	return c.ordered(val, "hint")
}

// any encodes a value, such as a comment.
func (c coder) any(val any) (any, error) {
	switch val := val.(type) {
	case nil:
		return nil, nil
	case string:
		return val, nil
	}
	v, err := c.value(val)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (c coder) value(val any) (abson.RawValue, error) {
	if val == nil {
		return abson.RawValue{}, ErrNilValue
	}
	if b, ok := val.([]byte); ok && b != nil && c.registry == nil {
		return abson.RawValue{Type: abson.TypeBinary, Value: abson.AppendBinaryValue(nil, 0, b)}, nil
	}
	t, data, err := c.way().MarshalValue(val)
	if err != nil {
		return abson.RawValue{}, MarshalError{Value: val, Err: err}
	}
	return abson.RawValue{Type: t, Value: data}, nil
}

// filters encodes array filters.
func (c coder) filters(filters []any) (any, error) {
	if filters == nil {
		return nil, nil
	}
	docs := make([]abson.Raw, len(filters))
	for i, f := range filters {
		doc, err := c.document(f)
		if err != nil {
			return nil, err
		}
		docs[i] = doc
	}
	return docs, nil
}

var (
	errUpdateEmpty    = errors.New("update document must have at least one element")
	errUpdateKey      = errors.New("update document must contain key beginning with '$'")
	errReplacementKey = errors.New("replacement document cannot contain keys beginning with '$'")
)

// update encodes an update: a document of operators, or a pipeline.
func (c coder) update(val any) (any, error) {
	switch v := val.(type) {
	case nil:
		return nil, ErrNilDocument
	case []byte:
		val = bson.Raw(v)
	}
	t, data, err := c.way().MarshalValue(val)
	if _, own := val.(bson.Marshaler); own && err != nil {
		return nil, err // of its method
	}
	switch {
	case err != nil:
		return nil, MarshalError{Value: val, Err: err}
	case t == abson.TypeArray:
		return c.stages(val, abson.RawValue{Type: t, Value: data})
	case t != abson.TypeEmbeddedDocument:
		if _, err := c.document(val); err != nil {
			return nil, err
		}
		return nil, errUpdateEmpty // a nil map
	}
	key, err := firstKey(data)
	switch {
	case err != nil:
		return nil, err
	case key == "" && len(data) == 5:
		return nil, errUpdateEmpty
	case !strings.HasPrefix(key, "$"):
		return nil, errUpdateKey
	}
	return abson.Raw(data), nil
}

// stages encodes the stages of an update: those of val, if it is a slice, or else of the array that
// it has made of itself.
func (c coder) stages(val any, array abson.RawValue) (any, error) {
	var list []any
	if v := reflect.ValueOf(val); v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		for i := range v.Len() {
			list = append(list, v.Index(i).Interface())
		}
	} else {
		values, _ := array.Array()
		for v := range values.Values() {
			if _, ok := v.Document(); !ok {
				return nil, errUpdateKey
			}
			list = append(list, abson.Raw(v.Value))
		}
	}
	stages := make([]abson.Raw, len(list))
	for i, stage := range list {
		doc, err := c.document(stage)
		if err != nil {
			return nil, err
		}
		key, err := firstKey(doc)
		switch {
		case err != nil:
			return nil, err
		case len(doc) == 5:
			return nil, errUpdateEmpty
		case !strings.HasPrefix(key, "$"):
			return nil, errUpdateKey
		}
		stages[i] = doc
	}
	return stages, nil
}

// replacement encodes a document that replaces another one.
func (c coder) replacement(val any) (abson.Raw, error) {
	doc, err := c.document(val)
	if err != nil {
		return nil, err
	}
	key, err := firstKey(doc)
	if err == nil && strings.HasPrefix(key, "$") {
		err = errReplacementKey
	}
	return doc, err
}

func firstKey(doc abson.Raw) (string, error) {
	if len(doc) <= 5 {
		return "", nil
	}
	key, _, _, err := abson.ReadElement(doc[4 : len(doc)-1])
	return key, err
}

// pipeline encodes the stages of an aggregation, and reports whether the last one writes.
func (c coder) pipeline(val any) (stages abson.RawValue, writes bool, err error) {
	switch v := val.(type) {
	case nil:
		return stages, false,
			errors.New("can only marshal slices and arrays into aggregation pipelines, but got invalid")
	case bson.D, bson.Raw, bsoncore.Document:
		if reflect.ValueOf(v).Len() > 0 {
			return stages, false, fmt.Errorf(
				"%T is not an allowed pipeline type as it represents a single document. Use bson.A or mongo.Pipeline instead", v)
		}
	}
	if m, ok := val.(bson.ValueMarshaler); ok {
		t, data, err := m.MarshalBSONValue()
		if err != nil {
			return stages, false, err
		}
		if bson.Type(t) != bson.TypeArray {
			return stages, false,
				fmt.Errorf("ValueMarshaler returned a %v, but was expecting %v", bson.Type(t), bson.TypeArray)
		}
		stages = abson.RawValue{Type: abson.TypeArray, Value: data}
		return stages, endsWithWrite(stages), nil
	}
	v := reflect.ValueOf(val)
	if kind := v.Kind(); kind != reflect.Slice && kind != reflect.Array {
		return stages, false,
			fmt.Errorf("can only marshal slices and arrays into aggregation pipelines, but got %v", kind)
	}
	way := c.way()
	start, out := abson.BeginDocument(nil)
	for i := range v.Len() {
		stage := v.Index(i).Interface()
		switch s := stage.(type) {
		case nil:
			return stages, false, ErrNilDocument
		case []byte:
			stage = bson.Raw(s)
		}
		doc, err := way.Marshal(stage)
		if err != nil {
			return stages, false, MarshalError{Value: stage, Err: err}
		}
		out = append(abson.AppendIndexHeader(out, abson.TypeEmbeddedDocument, i), doc...)
	}
	stages = abson.RawValue{Type: abson.TypeArray, Value: abson.EndDocument(out, start)}
	return stages, endsWithWrite(stages), nil
}

// endsWithWrite reports whether the last stage of a pipeline is $out or $merge.
func endsWithWrite(stages abson.RawValue) bool {
	var last abson.RawValue
	array, _ := stages.Array()
	for v := range array.Values() {
		last = v
	}
	doc, _ := last.Document()
	key, _ := firstKey(doc)
	return key == "$out" || key == "$merge"
}

// merged returns the options that listers set, the later ones over the earlier.
func merged[T any](opts []options.Lister[T]) (*T, error) {
	o := new(T)
	for _, lister := range opts {
		if isNil(lister) {
			continue
		}
		for _, set := range lister.List() {
			if set == nil {
				continue
			}
			if err := set(o); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

// built is merged for the methods that say in the error that it is one of options.
func built[T any](opts []options.Lister[T]) (*T, error) {
	o, err := merged(opts)
	if err != nil {
		return nil, fmt.Errorf("failed to construct options from builder: %w", err)
	}
	return o, nil
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// set returns what p points to, the zero value if it is nil.
func set[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
