package schema

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/field"
)

// Validator returns a validator for the documents of type D, {$jsonSchema: ...}: what encoding a D
// writes matches it, and a field of another type does not.
//
//	Validator: schema.Validator(schema.Enum(status, "open", "paid"), schema.Min(total, 0))
//
// It says of each field which types it has, of nested documents and elements of arrays too; which
// fields are there (those that are not left out by omitempty or omitzero); and in which range small
// integers are. Whole numbers may have 32 or 64 bits, and be where a float is. A pointer may be
// null. Of types that encode themselves, are encoded by a codec, or are interfaces it says nothing:
// Also does. Other fields are allowed, unless Closed is among the rules.
//
// It panics if a D cannot be encoded, or a rule is about a field that D does not have: call it in
// variables of the package, so that the program finds out when it starts.
func Validator[D any](rules ...Rule[D]) bson.D {
	w := schemaWriter{}
	for _, r := range rules {
		if r.options != nil {
			w.opts = *r.options
		}
	}
	t := reflect.TypeFor[D]()
	root, err := w.derive(t)
	if err == nil && !slices.Contains(root.types, "object") {
		err = fmt.Errorf("it is no document")
	}
	if err != nil {
		panic(fmt.Sprintf("schema: validator of %v: %v", t, err))
	}
	root.types = []string{"object"}
	for _, r := range rules {
		if r.change == nil {
			continue
		}
		if err := r.change(&w, root); err != nil {
			panic(fmt.Sprintf("schema: validator of %v: %v", t, err))
		}
	}
	return bson.D{{Key: "$jsonSchema", Value: root.document(true)}}
}

// Rule is more that a Validator for documents of type D says.
type Rule[D any] struct {
	options *bson.Options
	change  func(w *schemaWriter, root *node) error
}

// at makes a rule for the field that a path leads to.
func at[D any](p fmt.Stringer, change func(w *schemaWriter, n *node) error) Rule[D] {
	return Rule[D]{change: func(w *schemaWriter, root *node) error {
		n, _, err := root.find(p.String())
		if err == nil {
			err = change(w, n)
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", p, err)
		}
		return nil
	}}
}

// Enum allows these values alone, and null for a pointer.
func Enum[D, V any](p field.Path[D, V], values ...V) Rule[D] {
	return at[D](p, func(w *schemaWriter, n *node) error {
		var list bson.A
		for _, v := range values {
			raw, err := w.opts.MarshalValue(v)
			if err != nil {
				return err
			}
			list = append(list, raw)
		}
		if slices.Contains(n.types, "null") {
			list = append(list, nil)
		}
		n.put("enum", list)
		return nil
	})
}

// Number is a type of number.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Min allows numbers that are at least this large.
func Min[D any, V Number](p field.Path[D, V], least V) Rule[D] {
	return at[D](p, func(_ *schemaWriter, n *node) error { n.put("minimum", least); return nil })
}

// Max allows numbers that are at most this large.
func Max[D any, V Number](p field.Path[D, V], most V) Rule[D] {
	return at[D](p, func(_ *schemaWriter, n *node) error { n.put("maximum", most); return nil })
}

// Length allows texts of this many characters. A negative most is no bound.
func Length[D any, V ~string](p field.Path[D, V], least, most int) Rule[D] {
	return at[D](p, func(_ *schemaWriter, n *node) error { n.bound("minLength", "maxLength", least, most); return nil })
}

// Pattern allows texts that match a regular expression, in the server's syntax (PCRE).
func Pattern[D any, V ~string](p field.Path[D, V], expression string) Rule[D] {
	return at[D](p, func(_ *schemaWriter, n *node) error { n.put("pattern", expression); return nil })
}

// Items allows arrays of this many elements. A negative most is no bound.
func Items[D any, S ~[]E, E any](p field.Path[D, S], least, most int) Rule[D] {
	return at[D](p, func(_ *schemaWriter, n *node) error { n.bound("minItems", "maxItems", least, most); return nil })
}

// Required wants fields to be there, whatever their tags say: for documents that other programs
// write.
func Required[D any](paths ...field.In[D]) Rule[D] { return requirement(paths, true) }

// Optional lets fields be missing, whatever their tags say: for documents from before there was the
// field.
func Optional[D any](paths ...field.In[D]) Rule[D] { return requirement(paths, false) }

func requirement[D any](paths []field.In[D], required bool) Rule[D] {
	return Rule[D]{change: func(_ *schemaWriter, root *node) error {
		for _, p := range paths {
			path := fmt.Sprint(p)
			if _, _, err := root.find(path); err != nil {
				return fmt.Errorf("field %q: %w", path, err)
			}
			outer, key := root, path
			if i := strings.LastIndexByte(path, '.'); i >= 0 {
				var err error
				if outer, _, err = root.find(path[:i]); err != nil {
					return err
				}
				outer, key = outer.inner(), path[i+1:]
			}
			outer.required = slices.DeleteFunc(outer.required, func(k string) bool { return k == key })
			if required {
				outer.required = append(outer.required, key)
			}
		}
		return nil
	}}
}

// Also adds keywords of $jsonSchema to those of a field, such as {description: "..."}, or replaces
// them: {bsonType: "string"} says which type a field has that encodes itself.
func Also[D any](p field.In[D], keywords bson.D) Rule[D] {
	return Rule[D]{change: func(_ *schemaWriter, root *node) error {
		n, _, err := root.find(fmt.Sprint(p))
		if err != nil {
			return fmt.Errorf("field %q: %w", fmt.Sprint(p), err)
		}
		for _, e := range keywords {
			if e.Key == "bsonType" {
				n.types = nil
			}
			n.put(e.Key, e.Value)
		}
		return nil
	}}
}

// Closed allows no other fields than those of D and of the documents in it, and _id.
func Closed[D any]() Rule[D] {
	return Rule[D]{change: func(_ *schemaWriter, root *node) error { root.close(); return nil }}
}

// EncodedWith says with which options the documents are encoded, if the collection or client has
// any.
func EncodedWith[D any](o bson.Options) Rule[D] { return Rule[D]{options: &o} }

// node is a schema of a value.
type node struct {
	types    []string // nil: any
	keys     []string // of the properties, in their order
	props    map[string]*node
	required []string
	items    *node
	rest     *node // what other properties than these are; nil: anything
	closed   bool
	more     bson.D
}

func (n *node) put(key string, v any) {
	for i := range n.more {
		if n.more[i].Key == key {
			n.more[i].Value = v
			return
		}
	}
	n.more = append(n.more, bson.E{Key: key, Value: v})
}

func (n *node) bound(least, most string, a, b int) {
	if a > 0 {
		n.put(least, a)
	}
	if b >= 0 {
		n.put(most, b)
	}
}

// inner returns the node of the documents that a node is about: the elements of arrays.
func (n *node) inner() *node {
	for n.items != nil {
		n = n.items
	}
	return n
}

// find returns the node that a path leads to, and the one around it.
func (n *node) find(path string) (found, outer *node, err error) {
	for key := range strings.SplitSeq(path, ".") {
		outer = n.inner()
		n = outer.props[key]
		if n == nil && outer.rest != nil { // an entry of a map
			n = outer.rest.clone()
			outer.add(key, n)
		}
		if n == nil {
			return nil, nil, fmt.Errorf("the documents have no such field, or it is in one that encodes itself")
		}
	}
	return n, outer, nil
}

func (n *node) add(key string, p *node) {
	if n.props == nil {
		n.props = map[string]*node{}
	}
	n.keys, n.props[key] = append(n.keys, key), p
}

func (n *node) clone() *node {
	if n == nil {
		return nil
	}
	c := *n
	c.types, c.keys, c.required, c.more = slices.Clone(n.types), slices.Clone(n.keys), slices.Clone(n.required),
		slices.Clone(n.more)
	c.items, c.rest, c.props = n.items.clone(), n.rest.clone(), nil
	for k, p := range n.props {
		if c.props == nil {
			c.props = map[string]*node{}
		}
		c.props[k] = p.clone()
	}
	return &c
}

func (n *node) close() {
	if n == nil {
		return
	}
	n.closed = n.props != nil
	n.items.close()
	n.rest.close()
	for _, p := range n.props {
		p.close()
	}
}

func (n *node) document(root bool) bson.D {
	d := bson.D{}
	switch len(n.types) {
	case 0:
	case 1:
		d = append(d, bson.E{Key: "bsonType", Value: n.types[0]})
	default:
		d = append(d, bson.E{Key: "bsonType", Value: n.types})
	}
	d = append(d, n.more...)
	if len(n.required) > 0 {
		d = append(d, bson.E{Key: "required", Value: n.required})
	}
	props := bson.D{}
	for _, k := range n.keys {
		props = append(props, bson.E{Key: k, Value: n.props[k].document(false)})
	}
	if _, ok := n.props["_id"]; root && n.closed && !ok {
		props = append(bson.D{{Key: "_id", Value: bson.D{}}}, props...)
	}
	if len(props) > 0 {
		d = append(d, bson.E{Key: "properties", Value: props})
	}
	switch {
	case n.rest != nil:
		if rest := n.rest.document(false); len(rest) > 0 {
			d = append(d, bson.E{Key: "additionalProperties", Value: rest})
		}
	case n.closed:
		d = append(d, bson.E{Key: "additionalProperties", Value: false})
	}
	if n.items != nil {
		if items := n.items.document(false); len(items) > 0 {
			d = append(d, bson.E{Key: "items", Value: items})
		}
	}
	return d
}

// schemaWriter derives schemas from Go types.
type schemaWriter struct {
	opts  bson.Options
	outer []reflect.Type // the structs around
}

// derive returns the schema of what values of the type are encoded as.
func (w *schemaWriter) derive(t reflect.Type) (*node, error) {
	s, err := w.opts.ShapeOf(t)
	if err != nil {
		return nil, err
	}
	var n *node
	switch s.Kind {
	case bson.ShapePointer:
		if n, err = w.derive(t.Elem()); err == nil {
			n.nullable(true)
		}
		return n, err
	case bson.ShapeStruct:
		n = &node{types: []string{"object"}}
		if slices.Contains(w.outer, t) {
			return n, nil // $jsonSchema has no way to say that a document is like one around it
		}
		w.outer = append(w.outer, t)
		defer func() { w.outer = w.outer[:len(w.outer)-1] }()
		n.props = map[string]*node{}
		for _, f := range s.Fields {
			p, err := w.derive(f.Type)
			switch {
			case err != nil:
				return nil, err
			case f.InlineMap:
				n.rest = p.rest
				if n.rest == nil {
					n.rest = &node{}
				}
				continue
			case !f.Optional:
				n.required = append(n.required, f.Key)
			}
			n.add(f.Key, p)
		}
		return n, nil
	case bson.ShapeMap:
		n = &node{types: []string{"object"}}
		if t.Kind() == reflect.Map {
			if n.rest, err = w.derive(t.Elem()); err != nil {
				return nil, err
			}
		}
		n.nullable(w.opts.NilMapAsNull)
		return n, nil
	case bson.ShapeList:
		n = &node{types: []string{"array"}}
		if n.items, err = w.derive(t.Elem()); err != nil {
			return nil, err
		}
		n.nullable(w.opts.NilSliceAsNull && t.Kind() == reflect.Slice)
		return n, nil
	}
	return w.value(t), nil
}

func (n *node) nullable(yes bool) {
	if yes && n.types != nil && !slices.Contains(n.types, "null") {
		n.types = append(n.types, "null")
	}
}

// valueTypes are the types of BSON that values of some Go types have.
var valueTypes = map[reflect.Type][]string{
	reflect.TypeFor[time.Time]():          {"date"},
	reflect.TypeFor[bson.DateTime]():      {"date"},
	reflect.TypeFor[bson.ObjectID]():      {"objectId"},
	reflect.TypeFor[bson.Decimal128]():    {"decimal"},
	reflect.TypeFor[bson.UUID]():          {"binData"},
	reflect.TypeFor[bson.Binary]():        {"binData"},
	reflect.TypeFor[bson.Vector]():        {"binData"},
	reflect.TypeFor[bson.Regex]():         {"regex"},
	reflect.TypeFor[bson.Timestamp]():     {"timestamp"},
	reflect.TypeFor[bson.JavaScript]():    {"javascript"},
	reflect.TypeFor[bson.Symbol]():        {"symbol"},
	reflect.TypeFor[bson.CodeWithScope](): {"javascriptWithScope"},
	reflect.TypeFor[bson.DBRef]():         {"object"},
	reflect.TypeFor[bson.D]():             {"object"},
	reflect.TypeFor[bson.Raw]():           {"object"},
	reflect.TypeFor[bson.MinKey]():        {"minKey"},
	reflect.TypeFor[bson.MaxKey]():        {"maxKey"},
}

// value returns the schema of a value that has a form of its own. It is that of any value if
// methods or a codec of the program's decide about the form.
func (w *schemaWriter) value(t reflect.Type) *node {
	n := &node{}
	types, ok := valueTypes[t]
	integer := func(least, most any) {
		types = []string{"int", "long"}
		if least != nil {
			n.put("minimum", least)
		}
		if most != nil {
			n.put("maximum", most)
			types = []string{"int"}
		}
	}
	pt := reflect.PointerTo(t)
	switch {
	case ok:
	case pt.Implements(reflect.TypeFor[bson.ValueMarshaler]()):
		return n
	case pt.Implements(reflect.TypeFor[bson.Marshaler]()):
		types = []string{"object"}
	default:
		switch t.Kind() {
		case reflect.Bool:
			types = []string{"bool"}
		case reflect.Int8:
			integer(-1<<7, 1<<7-1)
		case reflect.Int16:
			integer(-1<<15, 1<<15-1)
		case reflect.Int32:
			types = []string{"int"}
		case reflect.Uint8:
			integer(0, 1<<8-1)
		case reflect.Uint16:
			integer(0, 1<<16-1)
		case reflect.Int, reflect.Int64:
			integer(nil, nil)
		case reflect.Uint, reflect.Uint32, reflect.Uint64:
			integer(0, nil)
		case reflect.Float32, reflect.Float64:
			types = []string{"double", "int", "long"}
		case reflect.String:
			types = []string{"string"}
		case reflect.Slice, reflect.Array:
			switch {
			case t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[bson.E]():
				types = []string{"object"}
			case t.Elem().Kind() == reflect.Uint8:
				types = []string{"binData"}
				if w.opts.NilBytesAsNull && t.Kind() == reflect.Slice {
					types = append(types, "null")
				}
			}
		case reflect.Struct:
			if pt.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
				types = []string{"string"}
			}
		}
	}
	if types == nil || !w.encodes(t, types) {
		return &node{}
	}
	n.types = types
	return n
}

// names are the types of BSON as $jsonSchema calls them.
var names = map[bson.Type]string{
	bson.TypeDouble: "double", bson.TypeString: "string", bson.TypeEmbeddedDocument: "object", bson.TypeArray: "array",
	bson.TypeBinary:   "binData",
	bson.TypeObjectID: "objectId", bson.TypeBoolean: "bool", bson.TypeDateTime: "date", bson.TypeNull: "null",
	bson.TypeRegex:      "regex",
	bson.TypeJavaScript: "javascript", bson.TypeSymbol: "symbol", bson.TypeCodeWithScope: "javascriptWithScope",
	bson.TypeInt32:     "int",
	bson.TypeTimestamp: "timestamp", bson.TypeInt64: "long", bson.TypeDecimal128: "decimal", bson.TypeMinKey: "minKey",
	bson.TypeMaxKey: "maxKey",
}

// encodes reports whether the zero value is encoded as one of these types: if it is not, a codec of
// the program's has a say. A value that cannot be encoded, such as an empty Raw, says nothing.
func (w *schemaWriter) encodes(t reflect.Type, types []string) bool {
	v, err := w.opts.MarshalValue(reflect.Zero(t).Interface())
	return err != nil || slices.Contains(types, names[v.Type])
}
