package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"
)

// What the official driver encodes and decodes otherwise than Allium does without options is
// written into the program as options: asBefore in its helper file, which its clients get, too.

// bsonFunctions are the functions of package bson that are methods of bson.Options as well.
var bsonFunctions = map[string]bool{"Marshal": true, "Unmarshal": true, "MarshalAppend": true}

// bsonSettings are the fields of the official BSONOptions: what each is called here, and whether it
// is the contrary.
var bsonSettings = map[string]struct {
	field    string
	contrary bool
}{
	"NilSliceAsEmpty": {"NilSliceAsNull", true}, "NilMapAsEmpty": {"NilMapAsNull", true},
	"NilByteSliceAsEmpty": {"NilBytesAsNull", true},
	"IntMinSize":          {"MinSize", false}, "OmitEmpty": {"OmitEmpty", false},
	"OmitZeroStruct":          {"OmitEmptyStructs", false},
	"StringifyMapKeysWithFmt": {"FormatKeys", false}, "AllowTruncatingDoubles": {"AllowTruncation", false},
	"BinaryAsSlice":    {"BinaryAsBytes", false},
	"DefaultDocumentM": {"bson.DocumentsAsM", false}, "DefaultDocumentMap": {"bson.DocumentsAsMap", false},
	"DefaultDocumentD":    {"bson.DocumentsAsD", false},
	"ObjectIDAsHexString": {"ObjectIDAsHex", false}, "UseJSONStructTags": {"JSONTags", false},
	"UseLocalTimeZone": {"LocalTime", false},
	"ZeroMaps":         {"ClearMaps", false}, "ZeroStructs": {"ClearStructs", false},
}

// bsonOptions returns the declaration of the options that keep the meaning of a program, and
// whether they need inheriting.
func bsonOptions(name string, first bool, settings map[string]bool) (text string, inherits bool) {
	fields := map[string]string{"NilSliceAsNull": "true", "NilMapAsNull": "true", "NilBytesAsNull": "true",
		"AllowInvalidUTF8": "true"}
	inherits = first
	for set, value := range settings {
		switch s := bsonSettings[set]; {
		case !value:
		case strings.HasPrefix(s.field, "bson."):
			fields["Documents"], inherits = s.field, false
		case s.contrary:
			delete(fields, s.field)
		default:
			fields[s.field] = "true"
		}
	}
	if inherits {
		fields["Codecs"] = "inheriting"
	}
	var list []string
	for _, field := range slices.Sorted(mapKeys(fields)) {
		list = append(list, field+": "+fields[field])
	}
	about := "// " + name + " encodes and decodes as the official driver does: nil slices, maps and bytes are null, where\n// bson.Options{} makes empty ones of them. The clients have the same in ClientOptions.BSON."
	if name == "asClient" {
		about = "// asClient encodes and decodes as the program's client did, with its BSONOptions."
	}
	return about + "\nvar " + name + " = bson.Options{" + strings.Join(list, ", ") + "}", inherits
}

// inheritingSource is the rule of version 1 about documents in maps.
const inheritingSource = `// inheriting makes the documents inside of a bson.M, or of another map of values of type any, maps of
// that type, as version 1 of the official driver did. Without it they are bson.D.
var inheriting, _ = bson.NewCodecs(bson.CodecBy(func(t reflect.Type) (bson.EncodeFunc, bson.DecodeFunc) {
	if t.Kind() != reflect.Map || t.Elem() != reflect.TypeFor[any]() {
		return nil, nil
	}
	types, err := bson.NewTypeMap(map[bson.Type]reflect.Type{bson.TypeEmbeddedDocument: t})
	if err != nil {
		return nil, nil
	}
	inside := bson.Options{AllowInvalidUTF8: true, Types: types}
	return nil, func(v bson.RawValue, into reflect.Value) error {
		return inside.UnmarshalValue(v, into.Addr().Interface())
	}
}))`

// fromClient are the helpers that decode what a client has read.
var fromClient = map[string]bool{"singleResult": true, "all": true, "allInto": true, "distinctResult": true,
	"connect": true, "findOneAndReplace": true}

func init() {
	for name, source := range map[string]string{
		"marshalValue": `// marshalValue encodes a value that need not be a document.
func marshalValue(v any) (bson.Type, []byte, error) {
	rv, err := asBefore.MarshalValue(v)
	return rv.Type, rv.Value, err
}`,
		"unmarshalValue": `// unmarshalValue decodes a value that need not be a document.
func unmarshalValue(t bson.Type, data []byte, into any) error {
	return asBefore.UnmarshalValue(bson.RawValue{Type: t, Value: data}, into)
}`,
		"infinity": `// infinity says whether a number is infinite, by its sign.
func infinity(d bson.Decimal128) int {
	switch {
	case d.IsInf(1):
		return 1
	case d.IsInf(-1):
		return -1
	}
	return 0
}`,
		"lookupErr": `// lookupErr returns a value of a document, or an error if it has none.
func lookupErr(doc bson.Raw, path ...string) (bson.RawValue, error) {
	v := doc.Lookup(path...)
	if v.IsZero() {
		return v, errElementNotFound
	}
	return v, nil
}

var errElementNotFound = errors.New("element not found")`,
	} {
		helperSources[name] = source
	}
}

// clientBSON returns the name of the options of clients.
func (r *rewriter) clientBSON() string {
	if len(r.settings) > 0 {
		return r.help("asClient")
	}
	return r.help("asBefore")
}

// clientSettings returns the BSONOptions of the program's client: empty if it has none, nil if they
// are not to be read off from the source.
func clientSettings(pkgs []*loaded) map[string]bool {
	settings, found := map[string]bool{}, 0
	known := true
	for _, p := range pkgs {
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "SetBSONOptions" || len(call.Args) != 1 {
					return true
				}
				if obj := p.info.Uses[sel.Sel]; obj == nil || obj.Pkg() == nil ||
					where(obj.Pkg().Path()) != "mongo/options" {
					return true
				}
				found++
				arg := ast.Unparen(call.Args[0])
				if u, ok := arg.(*ast.UnaryExpr); ok {
					arg = u.X
				}
				lit, ok := arg.(*ast.CompositeLit)
				known = known && ok
				if !ok {
					return true
				}
				for _, el := range lit.Elts {
					kv, ok := el.(*ast.KeyValueExpr)
					if !ok {
						known = false
						continue
					}
					name := kv.Key.(*ast.Ident).Name
					v := p.info.Types[kv.Value].Value
					if v == nil || v.Kind() != constant.Bool || bsonSettings[name].field == "" {
						known = false
						continue
					}
					settings[name] = constant.BoolVal(v)
				}
				return true
			})
		}
	}
	if !known || found > 1 {
		return nil
	}
	return settings
}

// bsonMethods are the methods of types of package bson that Allium's have, too, and that do the
// same.
var bsonMethods = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(
		`ObjectID.Hex ObjectID.IsZero ObjectID.String ObjectID.Timestamp ObjectID.MarshalText ObjectID.MarshalJSON
		ObjectID.UnmarshalJSON ObjectID.UnmarshalText D.MarshalJSON D.UnmarshalJSON DateTime.MarshalJSON DateTime.UnmarshalJSON
		Timestamp.After Timestamp.Before Timestamp.Compare Timestamp.IsZero Decimal128.BigInt Decimal128.String Decimal128.IsNaN
		Decimal128.UnmarshalJSON Binary.Equal Binary.IsZero Regex.IsZero DBPointer.IsZero Raw.Lookup Raw.Validate RawValue.IsZero RawValue.Equal RawValue.IsNumber
		Marshaler.MarshalBSON Unmarshaler.UnmarshalBSON Zeroer.IsZero Type.IsValid`) {
		bsonMethods[name] = true
	}
}

// byValue are the methods whose receiver becomes an operand.
var byValue = map[string]bool{"RawValue.Unmarshal": true, "Timestamp.Equal": true, "Regex.Equal": true,
	"DBPointer.Equal": true, "Decimal128.IsInf": true,
	"Raw.LookupErr": true, "Decimal128.MarshalJSON": true}

// bsonCall rewrites a call of the packages that encode.
func (r *rewriter) bsonCall(n *ast.CallExpr, recv, name string) (string, bool) {
	if recv != "" {
		return r.bsonMethod(n, recv, name)
	}
	asBefore := func() string { return r.help("asBefore") }
	switch name {
	case "MarshalExtJSON":
		if len(n.Args) == 3 {
			if r.raw(n.Args[2]) != "false" {
				r.tell(n, "MarshalExtJSON does not escape <, > and & as \\u003c and the like.")
			}
			return r.done(asBefore() + ".MarshalExtJSON(" + r.text(n.Args[0]) + ", " + r.text(n.Args[1]) + ")")
		}
	case "UnmarshalExtJSON":
		if len(n.Args) == 3 {
			if r.raw(n.Args[1]) != "false" {
				r.tell(n, "UnmarshalExtJSON takes relaxed Extended JSON as well as the canonical form.")
			}
			return r.done(asBefore() + ".UnmarshalExtJSON(" + r.text(n.Args[0]) + ", " + r.text(n.Args[2]) + ")")
		}
	case "MarshalValue":
		return r.done(r.help("marshalValue") + "(" + r.text(n.Args[0]) + ")")
	case "UnmarshalValue":
		return r.done(r.help("unmarshalValue") + "(" + strings.Join(r.args(n), ", ") + ")")
	case "IsValidObjectID":
		return r.done(r.help("isObjectID") + "(" + r.text(n.Args[0]) + ")")
	}
	return "", false
}

// bsonMethod rewrites a call of a method of a type that stands for a BSON value.
func (r *rewriter) bsonMethod(n *ast.CallExpr, recv, name string) (string, bool) {
	sel, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	x := func() string {
		if _, pointer := types.Unalias(r.info.TypeOf(sel.X)).(*types.Pointer); pointer && byValue[recv+"."+name] {
			return "*" + r.receiver(sel)
		}
		return r.receiver(sel)
	}
	if bsonMethods[recv+"."+name] {
		return "", false // its arguments are looked at
	}
	switch recv + "." + name {
	case "RawValue.StringValue", "RawValue.ObjectID", "RawValue.Int32", "RawValue.Int64", "RawValue.Double",
		"RawValue.Boolean", "RawValue.Document",
		"RawValue.Array", "RawValue.Decimal128", "RawValue.Timestamp", "RawValue.JavaScript", "RawValue.Symbol":
		if sig := r.info.TypeOf(n); sig != nil {
			if _, tuple := sig.(*types.Tuple); tuple {
				break // T, I of a timestamp
			}
		}
		return r.done(r.help("value") + "(" + x() + "." + name + "())")
	case "RawValue.AsInt64":
		return r.done(r.help("value") + "(" + x() + ".AsInt64())")
	case "RawValue.StringValueOK", "RawValue.ObjectIDOK", "RawValue.Int32OK", "RawValue.Int64OK", "RawValue.DoubleOK",
		"RawValue.BooleanOK", "RawValue.DocumentOK",
		"RawValue.ArrayOK", "RawValue.Decimal128OK", "RawValue.AsInt64OK", "RawValue.ObjectIDValueOK":
		return r.done(x() + "." + strings.TrimSuffix(name, "OK") + "()")
	case "RawValue.Time":
		return r.done(r.help("value") + "(" + x() + ".DateTime()).Time().Local()")
	case "RawValue.DateTime":
		return r.done("int64(" + r.help("value") + "(" + x() + ".DateTime()))")
	case "RawValue.Unmarshal":
		return r.done(r.help("asBefore") + ".UnmarshalValue(" + x() + ", " + r.text(n.Args[0]) + ")")
	case "DateTime.Time":
		return r.done(x() + ".Time().Local()")
	case "Timestamp.Equal", "Regex.Equal", "DBPointer.Equal":
		return r.done("(" + x() + " == " + r.text(n.Args[0]) + ")")
	case "Decimal128.GetBytes":
		return r.done(x() + ".Bits()")
	case "Decimal128.MarshalJSON":
		return r.done(r.use("encoding/json") + ".Marshal(" + x() + ")")
	case "Decimal128.IsInf":
		return r.done(r.help("infinity") + "(" + x() + ")")
	case "D.Map":
		return r.done(x() + ".M()")
	case "Raw.LookupErr":
		return r.done(r.help("lookupErr") + "(" + strings.Join(append([]string{x()}, r.args(n)...), ", ") +
			ellipsis(n) + ")")
	case "D.String", "M.String", "A.String", "Raw.String", "RawValue.String", "Regex.String", "DBPointer.String",
		"CodeWithScope.String":
		r.tell(n, fmt.Sprintf("The text of a bson.%s differs: bson.MarshalExtJSON writes it in a form that is fixed.",
			recv))
		return "", false
	case "Raw.Elements":
		r.leave(n, "Raw.All iterates over keys and values.")
		return "", false
	}
	if recv == "ValueMarshaler" || recv == "ValueUnmarshaler" {
		if p := r.info.TypeOf(sel); p != nil && !strings.Contains(p.String(), "bsontype") {
			return "", false
		}
	}
	r.leave(n, fmt.Sprintf("%s.%s has no counterpart that is used in the same way: see docs/migrating.md.", recv, name))
	return "", false
}

// serverAPI returns the field for the Stable API that a program declares.
func (r *rewriter) serverAPI(arg ast.Expr) (string, bool) {
	var fields []string
	for {
		call, ok := ast.Unparen(arg).(*ast.CallExpr)
		if !ok {
			return "", false
		}
		pkg, recv, name := r.object(call.Fun)
		if pkg != "mongo/options" || len(call.Args) != 1 {
			return "", false
		}
		switch {
		case recv == "" && name == "ServerAPI":
			if _, _, version := r.object(call.Args[0]); version != "ServerAPIVersion1" {
				return "", false
			}
			fields = append([]string{`Version: "1"`}, fields...)
			return "ServerAPI: &" + r.use("allium") + ".ServerAPI{" + strings.Join(fields, ", ") + "}", true
		case name == "SetStrict":
			fields = append(fields, "Strict: new("+r.text(call.Args[0])+")")
		case name == "SetDeprecationErrors":
			fields = append(fields, "DeprecationErrors: new("+r.text(call.Args[0])+")")
		default:
			return "", false
		}
		arg = call.Fun.(*ast.SelectorExpr).X
	}
}
