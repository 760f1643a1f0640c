package qe

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// SafeContent is the field of a document that holds its tags.
const SafeContent = "__safeContent__"

// Fields are the encryptedFields of a collection.
type Fields struct {
	ESC, ECOC string
	List      []Field
}

// Field is one of them.
type Field struct {
	Path   string
	Type   bson.Type // 0: any
	Ranged bool      // range queries
	Text   bool      // prefix, suffix or substring queries
	edges  int       // how many edges a value of a range field has
}

// Of returns the Fields of a collection with these options, nil if it is not encrypted.
func Of(options bson.Raw) *Fields {
	doc, ok := options.Lookup("encryptedFields").Document()
	if !ok {
		return nil
	}
	f := &Fields{}
	f.ESC, _ = doc.Lookup("escCollection").StringValue()
	f.ECOC, _ = doc.Lookup("ecocCollection").StringValue()
	list, _ := doc.Lookup("fields").Array()
	for v := range list.Values() {
		doc, _ := v.Document()
		field := Field{}
		field.Path, _ = doc.Lookup("path").StringValue()
		name, _ := doc.Lookup("bsonType").StringValue()
		field.Type = typeNames[name]
		for _, kind := range queryTypes(doc.Lookup("queries")) {
			switch {
			case kind == "range":
				field.Ranged, field.edges = true, edgesOf(field.Type, doc.Lookup("queries"))
			case kind != "equality":
				field.Text = true
			}
		}
		f.List = append(f.List, field)
	}
	return f
}

// Find returns the field at path, nil for none.
func (f *Fields) Find(path string) *Field {
	if f == nil {
		return nil
	}
	for i := range f.List {
		if f.List[i].Path == path {
			return &f.List[i]
		}
	}
	return nil
}

func queryTypes(v bson.RawValue) []string {
	list := []bson.RawValue{v}
	if array, ok := v.Array(); ok {
		list = slices.Collect(array.Values())
	}
	var out []string
	for _, v := range list {
		doc, _ := v.Document()
		if name, ok := doc.Lookup("queryType").StringValue(); ok {
			out = append(out, name)
		}
	}
	return out
}

// edgesOf returns how many edges a value of a range field has.
func edgesOf(t bson.Type, v bson.RawValue) int {
	if array, ok := v.Array(); ok {
		v = bson.RawValue{}
		for v = range array.Values() {
			break
		}
	}
	query, _ := v.Document()
	number := func(name string) *int32 {
		n, ok := query.Lookup(name).AsInt64()
		if !ok {
			return nil
		}
		return new(int32(n))
	}
	d, err := fle.NewDomain(t, query.Lookup("min"), query.Lookup("max"), number("precision"))
	if err != nil {
		return 0
	}
	trim, err := d.Trim(number("trimFactor"))
	if err != nil {
		return 0
	}
	sparsity := int64(fle.DefaultSparsity)
	if n := number("sparsity"); n != nil {
		sparsity = int64(*n)
	}
	least, _ := d.Bounds()
	edges, err := d.Edges(least, sparsity, trim)
	if err != nil {
		return 0
	}
	return len(edges)
}

// typeNames are the names of the types that can be encrypted.
var typeNames = map[string]bson.Type{
	"double": bson.TypeDouble, "string": bson.TypeString, "object": bson.TypeEmbeddedDocument, "array": bson.TypeArray,
	"binData": bson.TypeBinary, "objectId": bson.TypeObjectID, "bool": bson.TypeBoolean, "date": bson.TypeDateTime,
	"regex": bson.TypeRegex, "dbPointer": bson.TypeDBPointer, "javascript": bson.TypeJavaScript, "symbol": bson.TypeSymbol,
	"javascriptWithScope": bson.TypeCodeWithScope, "int": bson.TypeInt32, "timestamp": bson.TypeTimestamp, "long": bson.TypeInt64,
	"decimal": bson.TypeDecimal128,
}

// queryType is a type of queries: the BSON types of its fields, and the servers that have it.
type queryType struct {
	types         []bson.Type
	since, before release.Version // before: zero for those that are there to stay
}

// queryKinds are the types of queries (specification: Client Side Encryption, "Server support
// history": those of strings have other names in the preview of 8.2).
var queryKinds = map[string]queryType{
	"equality": {types: []bson.Type{bson.TypeString, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeRegex,
		bson.TypeDBPointer, bson.TypeJavaScript, bson.TypeSymbol, bson.TypeCodeWithScope, bson.TypeInt32, bson.TypeTimestamp, bson.TypeInt64}},
	"range":  {types: []bson.Type{bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeDateTime}, since: release.At(8, 0, 0)},
	"prefix": finalText, "suffix": finalText, "substring": finalText,
	"prefixPreview": previewText, "suffixPreview": previewText, "substringPreview": previewText,
}

var (
	finalText   = queryType{types: []bson.Type{bson.TypeString}, since: release.At(9, 0, 0)}
	previewText = queryType{types: []bson.Type{bson.TypeString}, since: release.At(8, 2, 0), before: release.At(9, 0, 0)}
)

// in reports whether a server has the type.
func (q *queryType) in(server release.Version) bool {
	return server.AtLeastPatch(q.since) && (q.before == release.Version{} || !server.AtLeastPatch(q.before))
}

func invalid(format string, args ...any) error { return srverr.New(srverr.BadValue, format, args...) }

// Complete checks the encryptedFields of a collection that is created on a server of a version, and
// fills in the names of the state collections.
func Complete(coll string, doc bson.Raw, server release.Version) (bson.Raw, error) {
	for _, s := range []struct{ field, suffix string }{{"escCollection", "esc"}, {"ecocCollection", "ecoc"}} {
		want := "enxcol_." + coll + "." + s.suffix
		v := doc.Lookup(s.field)
		if v.IsZero() {
			start, b := bson.BeginDocument(nil)
			b = append(b, doc.Elements()...)
			doc = bson.EndDocument(bson.AppendString(b, s.field, want), start)
			continue
		}
		if name, _ := v.StringValue(); name != want {
			return nil, invalid("Encrypted State Collection name should follow enxcol_.<collection>.%s naming pattern", s.suffix)
		}
	}
	fields, ok := doc.Lookup("fields").Array()
	if !ok {
		return nil, srverr.New(40414, "BSON field 'create.encryptedFields.fields' is missing but a required field")
	}
	var paths []string
	for v := range fields.Values() {
		field, ok := v.Document()
		if !ok {
			return nil, invalid("encryptedFields.fields must be an array of objects")
		}
		path, ok := field.Lookup("path").StringValue()
		if !ok {
			return nil, srverr.New(40414, "BSON field 'create.encryptedFields.fields.path' is missing but a required field")
		}
		if err := checkField(path, field, server); err != nil {
			return nil, err
		}
		for _, other := range paths {
			if other == path {
				return nil, invalid("Duplicate paths are not allowed")
			}
			if strings.HasPrefix(other, path+".") || strings.HasPrefix(path, other+".") {
				return nil, invalid("Conflicting index paths found as one is a prefix of another '%s' and '%s'", other, path)
			}
		}
		paths = append(paths, path)
	}
	return doc, nil
}

// checkField checks one of the fields.
func checkField(path string, field bson.Raw, server release.Version) error {
	id := field.Lookup("keyId")
	b, ok := id.Binary()
	switch {
	case !ok && !id.IsZero() && id.Type != bson.TypeNull:
		return srverr.New(srverr.TypeMismatch, "BSON field 'create.encryptedFields.fields.keyId' is the wrong type '%s', expected type 'binData'",
			bsontext.TypeName(id.Type))
	case !ok:
		return srverr.New(40414, "BSON field 'create.encryptedFields.fields.keyId' is missing but a required field")
	case b.Subtype != bson.BinaryUUID || len(b.Data) != 16:
		return invalid("The keyId of the encrypted field '%s' must be a UUID", path)
	case path == "_id" || strings.HasPrefix(path, "_id."):
		return invalid("_id or fields within _id cannot be encrypted fields")
	case path == SafeContent || strings.HasPrefix(path, SafeContent+"."):
		return invalid("Cannot encrypt %s", SafeContent)
	case path == "" || slices.Contains(strings.Split(path, "."), ""):
		return invalid("The path '%s' of an encrypted field must not have an empty part", path)
	}
	name, typed := field.Lookup("bsonType").StringValue()
	t := typeNames[name]
	if typed && t == 0 {
		return invalid("Cannot encrypt field '%s' because its type '%s' is not supported", path, name)
	}
	kinds := queryTypes(field.Lookup("queries"))
	if len(kinds) > 0 && !typed {
		return invalid("bsonType needs to be specified for the encrypted field '%s' with queries", path)
	}
	for i, kind := range kinds {
		q, ok := queryKinds[kind]
		if !ok || !q.in(server) {
			return invalid("Enumeration value '%s' for field 'create.encryptedFields.fields.queries.queryType' is not a valid value.", kind)
		}
		if !slices.Contains(q.types, t) {
			return invalid("Type '%s' is not a supported type for the encrypted field '%s' with %s queries", name, path, kind)
		}
		if i > 0 && (len(q.types) > 1 || kind == kinds[0] || strings.HasPrefix(kind, "sub") || strings.HasPrefix(kinds[0], "sub") || len(kinds) > 2) {
			return invalid("Only prefix and suffix queries can stand together for the encrypted field '%s'", path)
		}
	}
	return nil
}

// Check refuses a document whose encrypted fields do not hold what a server stores: plaintext that
// a client without encryption sends, and payloads that were not dealt with.
func (f *Fields) Check(doc bson.Raw) error {
	for _, field := range f.List {
		v := doc.Lookup(strings.Split(field.Path, ".")...)
		if v.IsZero() {
			continue
		}
		kind, ok := fle.KindOf(v)
		switch {
		case !ok:
		case kind == fle.KindIndexedEquality, kind == fle.KindIndexedRange, kind == fle.KindIndexedText, kind == fle.KindUnindexed:
			continue
		case kind == 6, kind == 7, kind == 9: // stored values of the first version
			continue
		}
		return srverr.New(srverr.DocumentValidationFailure, "Document failed validation")
	}
	return nil
}
