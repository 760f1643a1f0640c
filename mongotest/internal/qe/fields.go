package qe

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/args"
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
		doc, ok := v.Document()
		if !ok {
			continue
		}
		field := Field{}
		field.Path, _ = doc.Lookup("path").StringValue()
		name, _ := doc.Lookup("bsonType").StringValue()
		field.Type = typeNames[name]
		for _, kind := range queryTypes(doc.Lookup("queries")) {
			switch {
			case kind == "range":
				field.Ranged, field.edges = true, edgesOf(field.Type, queriesOf(doc.Lookup("queries"))[0])
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

// queriesOf returns the queries that a field is for: one, or an array of them.
func queriesOf(v bson.RawValue) []bson.Raw {
	if doc, ok := v.Document(); ok {
		return []bson.Raw{doc}
	}
	var out []bson.Raw
	list, _ := v.Array()
	for v := range list.Values() {
		doc, _ := v.Document()
		out = append(out, doc)
	}
	return out
}

func queryTypes(v bson.RawValue) []string {
	var out []string
	for _, query := range queriesOf(v) {
		if name, ok := query.Lookup("queryType").StringValue(); ok {
			out = append(out, name)
		}
	}
	return out
}

// edgesOf returns how many edges a value of a range field has. The parameters have been checked.
func edgesOf(t bson.Type, query bson.Raw) int {
	low, high := bounds(t, query)
	d, err := fle.NewDomain(t, low, high, number(query, "precision"))
	if err != nil {
		return 0
	}
	trim, err := d.Trim(number(query, "trimFactor"))
	if err != nil {
		return 0
	}
	sparsity := int64(fle.DefaultSparsity)
	if n := number(query, "sparsity"); n != nil {
		sparsity = int64(*n)
	}
	edges, err := d.Edges(low, sparsity, trim)
	if err != nil {
		return 0
	}
	return len(edges)
}

// bounds returns the least and the greatest value of a range field: those of the type if the field
// does not have its own.
func bounds(t bson.Type, query bson.Raw) (low, high bson.RawValue) {
	if whole, err := fle.NewDomain(t, bson.RawValue{}, bson.RawValue{}, nil); err == nil {
		low, high = whole.Bounds()
	}
	if v := query.Lookup("min"); !v.IsZero() {
		low = v
	}
	if v := query.Lookup("max"); !v.IsZero() {
		high = v
	}
	return low, high
}

func number(query bson.Raw, name string) *int32 {
	n, ok := query.Lookup(name).AsInt64()
	if !ok {
		return nil
	}
	return new(int32(n))
}

// typeNames are the names of the types that can be encrypted.
var typeNames = map[string]bson.Type{
	"double": bson.TypeDouble, "string": bson.TypeString, "object": bson.TypeEmbeddedDocument, "array": bson.TypeArray,
	"binData": bson.TypeBinary, "objectId": bson.TypeObjectID, "bool": bson.TypeBoolean, "date": bson.TypeDateTime,
	"regex": bson.TypeRegex, "dbPointer": bson.TypeDBPointer, "javascript": bson.TypeJavaScript,
	"symbol":              bson.TypeSymbol,
	"javascriptWithScope": bson.TypeCodeWithScope, "int": bson.TypeInt32, "timestamp": bson.TypeTimestamp,
	"long":    bson.TypeInt64,
	"decimal": bson.TypeDecimal128,
}

// unencrypted are the names of types that fields cannot have.
var unencrypted = []string{"undefined", "null", "minKey", "maxKey"}

// queryType is a type of queries: the BSON types of its fields, and the servers that have it.
type queryType struct {
	types []bson.Type
}

// queryKinds are the types of queries (specification: Client Side Encryption, "Server support
// history": those of strings have other names in the preview of 8.2).
var queryKinds = map[string]queryType{
	"equality": {types: []bson.Type{bson.TypeString, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean,
		bson.TypeDateTime, bson.TypeRegex,
		bson.TypeDBPointer, bson.TypeJavaScript, bson.TypeSymbol, bson.TypeCodeWithScope, bson.TypeInt32,
		bson.TypeTimestamp, bson.TypeInt64}},
	"range": {types: []bson.Type{bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128,
		bson.TypeDateTime}},
	"prefix": textQuery, "suffix": textQuery, "substring": textQuery,
	"prefixPreview": textQuery, "suffixPreview": textQuery, "substringPreview": textQuery,
}

var textQuery = queryType{types: []bson.Type{bson.TypeString}}

func invalid(format string, args ...any) error { return srverr.New(srverr.BadValue, format, args...) }

// Complete checks the encryptedFields of a collection that is created on a server of a version, and
// fills in the names of the state collections.
func Complete(coll string, doc bson.Raw, server release.Version) (bson.Raw, error) {
	for _, s := range []struct {
		field, suffix, what string
		code                int32
	}{{"escCollection", "esc", "State", 7406900}, {"ecocCollection", "ecoc", "Compaction", 7406902}} {
		want := "enxcol_." + coll + "." + s.suffix
		v := doc.Lookup(s.field)
		if v.IsZero() {
			start, b := bson.BeginDocument(nil)
			b = append(b, doc.Elements()...)
			doc = bson.EndDocument(bson.AppendString(b, s.field, want), start)
			continue
		}
		if name, _ := v.StringValue(); name != want {
			return nil, srverr.New(
				s.code, "Encrypted %s Collection name should follow enxcol_.<collection>.%s naming pattern", s.what,
				s.suffix)
		}
	}
	fields, ok := doc.Lookup("fields").Array()
	if !ok && !server.AllParsed() {
		return nil, srverr.New(40414, "BSON field 'create.encryptedFields.fields' is missing but a required field")
	}
	parsed := server.AllParsed()
	if parsed {
		if err := checkShape(doc, server); err != nil {
			return nil, err
		}
	}
	var paths, keys []string
	for v := range fields.Values() {
		field, ok := v.Document()
		if parsed && args.IsNull(v) {
			continue // as in every array of documents that a definition describes
		}
		if !ok {
			return nil, invalid("encryptedFields.fields must be an array of objects")
		}
		path, ok := field.Lookup("path").StringValue()
		if !ok {
			return nil, srverr.New(40414,
				"BSON field 'create.encryptedFields.fields.path' is missing but a required field")
		}
		key, err := keyOf(path, field)
		if err != nil {
			return nil, err
		}
		if slices.Contains(keys, key) {
			return nil, srverr.New(6338401, "Duplicate key ids are not allowed")
		}
		keys = append(keys, key)
		if parsed && strings.IndexByte(path, 0) >= 0 {
			return nil, srverr.New(9867600, "The path of an encrypted field cannot contain a null byte")
		}
		if err := checkPath(path, paths); err != nil {
			return nil, err
		}
		paths = append(paths, path)
		if err := checkQueries(path, field, server); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// keyOf returns the key id of a field.
func keyOf(path string, field bson.Raw) (string, error) {
	id := field.Lookup("keyId")
	b, ok := id.Binary()
	switch {
	case !ok && !id.IsZero() && id.Type != bson.TypeNull:
		return "", srverr.New(srverr.TypeMismatch,
			"BSON field 'create.encryptedFields.fields.keyId' is the wrong type '%s', expected type 'binData'",
			bsontext.TypeName(id.Type))
	case !ok:
		return "", srverr.New(40414, "BSON field 'create.encryptedFields.fields.keyId' is missing but a required field")
	case b.Subtype != bson.BinaryUUID || len(b.Data) != 16:
		return "", invalid("The keyId of the encrypted field '%s' must be a UUID", path)
	}
	return string(b.Data), nil
}

// checkPath checks the path of a field beside those of the fields before it.
func checkPath(path string, before []string) error {
	switch first, _, _ := strings.Cut(path, "."); {
	case path == "":
		return srverr.New(6316402, "Encrypted field must have a non-empty path")
	case first == "_id":
		return srverr.New(6316403, "Cannot encrypt _id or its subfields")
	case first == SafeContent:
		return invalid("Cannot encrypt %s", SafeContent)
	case slices.Contains(strings.Split(path, "."), ""):
		return invalid("The path '%s' of an encrypted field must not have an empty part", path)
	}
	for _, other := range before {
		if other == path {
			return srverr.New(6338402, "Duplicate paths are not allowed")
		}
		if strings.HasPrefix(other, path+".") || strings.HasPrefix(path, other+".") {
			return srverr.New(6338403, "Conflicting index paths found as one is a prefix of another '%s' and '%s'",
				path, other)
		}
	}
	return nil
}

// checkQueries checks the queries that a field is for.
func checkQueries(path string, field bson.Raw, server release.Version) error {
	name, typed := field.Lookup("bsonType").StringValue()
	t := typeNames[name]
	list := queriesOf(field.Lookup("queries"))
	parsed := server.AllParsed()
	if parsed && !field.Lookup("queries").IsZero() {
		if err := checkCombination(field.Lookup("queries")); err != nil {
			return err
		}
	}
	if typed && t == 0 && parsed && !slices.Contains(unencrypted, name) {
		return invalid("'%s' is not a valid BSON type", name)
	}
	if len(list) == 0 {
		if typed && t == 0 {
			return srverr.New(6338406, "Type '%s' is not a supported unindexed type", name)
		}
		return nil
	}
	if !typed {
		return srverr.New(6412601, "Bson type needs to be specified for an indexed field")
	}
	var kinds []string
	for _, query := range list {
		kind, _ := query.Lookup("queryType").StringValue()
		q, ok := queryKinds[kind]
		if !ok || !server.Has(release.QueryType, kind) {
			return invalid("Enumeration value '%s' for field 'create.encryptedFields.fields.queries.queryType' is not a valid value.", kind)
		}
		if parsed && len(q.types) == 1 {
			if err := checkText(path, kind, t, query); err != nil {
				return err
			}
		}
		if !slices.Contains(q.types, t) {
			switch kind {
			case "equality":
				return srverr.New(6338405, "Type '%s' is not a supported equality indexed type", name)
			case "range":
				return srverr.New(6775201, "Type '%s' is not a supported range indexed type", name)
			}
			return invalid("Type '%s' is not a supported type for the encrypted field '%s' with %s queries", name, path,
				kind)
		}
		kinds = append(kinds, kind)
		switch kind {
		case "equality":
			for _, p := range []struct {
				name string
				code int32
			}{{"sparsity", 6775205}, {"min", 6775206}, {"max", 6775207}, {"trimFactor", 8574104}} {
				if !query.Lookup(p.name).IsZero() {
					return srverr.New(p.code, "The field '%s' is not allowed for equality index but is present", p.name)
				}
			}
		case "range":
			if err := checkRange(t, query); err != nil {
				return err
			}
		}
	}
	for i, kind := range kinds {
		// Prefix and suffix queries only can stand together.
		alone := len(queryKinds[kind].types) > 1 || strings.HasPrefix(kind, "substring")
		if len(kinds) > 2 || len(kinds) == 2 && (alone || kind == kinds[1-i]) {
			return srverr.New(6338404, "Exactly one query type should be specified per field")
		}
	}
	return nil
}

// checkRange checks the parameters of range queries. Those that are left out have defaults.
func checkRange(t bson.Type, query bson.Raw) error {
	least, greatest := query.Lookup("min"), query.Lookup("max")
	if n, ok := query.Lookup("sparsity").AsInt64(); ok && (n < 1 || n > 4) {
		return srverr.New(6775214, "The field 'sparsity' must be between 1 and 4")
	}
	if t == bson.TypeDouble || t == bson.TypeDecimal128 {
		has := least.IsZero()
		if greatest.IsZero() != has || query.Lookup("precision").IsZero() != has {
			return srverr.New(6967100,
				"Precision, min, and max must all be specified together for floating point fields")
		}
	}
	if !least.IsZero() && least.Type != t {
		return srverr.New(7018200, "Min should have the same type as the field.")
	}
	if !greatest.IsZero() && greatest.Type != t {
		return srverr.New(7018201, "Max should have the same type as the field.")
	}
	low, high := bounds(t, query)
	if bson.Compare(low, high) >= 0 {
		return srverr.New(6720005, "Min must be less than max.")
	}
	d, err := fle.NewDomain(t, low, high, number(query, "precision"))
	if err != nil {
		return invalid("%v", err)
	}
	if _, err := d.Trim(number(query, "trimFactor")); err != nil {
		return srverr.New(
			8574000, "The field 'trimFactor' must be >= 0 and less than the total number of bits needed to represent elements in the domain (%d)", d.Bits())
	}
	return nil
}

// typeAt is where a stored value has the type of its plaintext.
const typeAt = 17

// Check refuses a document whose encrypted fields do not hold what a server stores: plaintext that
// a client without encryption sends, values of other types, and payloads that were not dealt with.
func (f *Fields) Check(doc bson.Raw) error {
	for _, field := range f.List {
		v := doc.Lookup(strings.Split(field.Path, ".")...)
		if v.IsZero() {
			continue
		}
		kind, _ := fle.KindOf(v)
		switch kind {
		// the last three: of the first version
		case fle.KindIndexedEquality, fle.KindIndexedRange, fle.KindIndexedText, fle.KindUnindexed, 6, 7, 9:
			// All name the type of the plaintext in the same place.
			if data, _ := fle.Data(v); field.Type == 0 || len(data) > typeAt && bson.Type(data[typeAt]) == field.Type {
				continue
			}
		}
		return srverr.New(srverr.DocumentValidationFailure, "Document failed validation")
	}
	return nil
}
