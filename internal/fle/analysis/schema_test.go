package analysis

import (
	"strings"
	"testing"

	"allium/internal/spectest"

	"allium/bson"
)

func TestJSONSchemaErrors(t *testing.T) {
	const alg = `"algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"`
	encrypt := func(inner string) string { return object(`"a": {"encrypt": {` + inner + `}}`) }
	for _, tt := range []struct{ name, schema, want string }{
		{"array at the root", `{"bsonType": "array", "properties": {"a": ` + deterministic(keyA) + `}}`, "Invalid schema"},
		{"no type", `{"properties": {"a": {"properties": {"b": ` + deterministic(keyA) + `}}}}`, "Invalid schema"},
		{"no type at the root", `{"properties": {"a": ` + deterministic(keyA) + `}}`, "Invalid schema"},
		{"two types", `{"bsonType": ["object", "null"], "properties": {"a": ` + deterministic(keyA) + `}}`, "no other type"},
		{"sibling", object(`"a": {"encrypt": {}, "bsonType": "string"}`), "'encrypt' cannot be used in conjunction with 'bsonType'"},
		{"anyOf", `{"anyOf": [{"properties": {"a": ` + deterministic(keyA) + `}}]}`, "Invalid schema containing the 'encrypt' keyword."},
		{"items", object(`"a": {"bsonType": "array", "items": ` + deterministic(keyA) + `}`), "cannot stand under 'items'"},
		{"dependencies", object(`"a": {"dependencies": {"b": {"properties": {"c": ` + deterministic(keyA) + `}}}}`), "cannot stand under 'dependencies'"},
		{"_id", `{"properties": {"_id": ` + deterministic(keyA) + `}}`, "Invalid schema containing the 'encrypt' keyword."},
		{"_id by pattern", `{"bsonType": "object", "patternProperties": {"i": ` + deterministic(keyA) + `}}`, "'_id' cannot be encrypted"},
		{"root", `{"encrypt": {"keyId": [` + keyA + `], "bsonType": "string", ` + alg + `}}`, "a whole document"},
		{"double", encrypt(`"keyId": [` + keyA + `], "bsonType": "double", ` + alg), "Cannot encrypt element of type: double"},
		{"bool", encrypt(`"keyId": [` + keyA + `], "bsonType": "bool", ` + alg), "Cannot encrypt element of type: bool"},
		{"null", encrypt(`"keyId": [` + keyA + `], "bsonType": "null", ` + alg), "Cannot encrypt element of type: null"},
		{"code with scope", encrypt(`"keyId": [` + keyA + `], "bsonType": "javascriptWithScope", ` + alg), "Cannot encrypt element of type: javascriptWithScope"},
		{"two bsonTypes", encrypt(`"keyId": [` + keyA + `], "bsonType": ["string", "int"], ` + alg), "exactly one bsonType"},
		{"no bsonType", encrypt(`"keyId": [` + keyA + `], ` + alg), "exactly one bsonType"},
		{"unknown bsonType", encrypt(`"keyId": [` + keyA + `], "bsonType": "text", ` + alg), `bsonType "text" is not a type`},
		{"pointer", encrypt(`"keyId": "/b", "bsonType": "string", ` + alg), "not a JSON pointer"},
		{"no pointer", encrypt(`"keyId": "b", "bsonType": "string", ` + alg), "is not a JSON pointer to a field"},
		{"no key", encrypt(`"bsonType": "string", ` + alg), "needs 'algorithm' and 'keyId'"},
		{"no algorithm", encrypt(`"keyId": [` + keyA + `], "bsonType": "string"`), "needs 'algorithm' and 'keyId'"},
		{"algorithm", encrypt(`"keyId": [` + keyA + `], "bsonType": "string", "algorithm": "AES"`), `"AES" is not an algorithm`},
		{"two keys", encrypt(`"keyId": [` + keyA + `,` + keyB + `], "bsonType": "string", ` + alg), "one UUID"},
		{"no UUID", encrypt(`"keyId": ["x"], "bsonType": "string", ` + alg), "one UUID"},
		{"unknown field", encrypt(`"queries": []`), "'encrypt' cannot have 'queries'"},
		{"dot", object(`"a.b": ` + deterministic(keyA)), "cannot be reached"},
		{"regular expression", `{"bsonType": "object", "patternProperties": {"(?=x)": ` + deterministic(keyA) + `}}`, "is not understood"},
		{"metadata without type", `{"encryptMetadata": {"keyId": [` + keyA + `]}}`, "needs bsonType 'object'"},
		{"metadata's field", `{"bsonType": "object", "encryptMetadata": {"bsonType": "string"}}`, "'encryptMetadata' cannot have 'bsonType'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseJSONSchema("db.c", parse(t, tt.schema), true)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	required := parse(t, `{"bsonType": "object", "required": ["a"], "properties": {"a": {"bsonType": "string"}}}`)
	if _, err := ParseJSONSchema("db.c", required, false); err == nil || !strings.Contains(err.Error(), "JSON schema keyword 'required' is only allowed with a remote schema") {
		t.Errorf("local schema with required: %v", err)
	}
	if s, err := ParseJSONSchema("db.c", required, true); err != nil || s.Encrypts() {
		t.Errorf("remote schema with required: %v, %v", s.Encrypts(), err)
	}
}

func TestInheritedMetadata(t *testing.T) {
	s := jsonSchema(t, "db.c", parse(t, `{"bsonType": "object", "encryptMetadata": {"keyId": [`+keyA+`], "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Random"},
		"properties": {
			"a": {"encrypt": {}},
			"o": {"bsonType": "object", "encryptMetadata": {"keyId": [`+keyB+`]}, "properties": {
				"b": {"encrypt": {"bsonType": "string", "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"}},
				"c": {"encrypt": {"keyId": "/x~1y/z~0"}}},
				"additionalProperties": {"encrypt": {"bsonType": ["int", "long"]}}}},
		"patternProperties": {"^o$": {"bsonType": "object"}}}`), false)
	for path, want := range map[string]string{"a": "random a", "o.b": "deterministic b", "o.c": "random pointer /x~1y/z~0", "o.other": "random b int or long", "z": "nil", "o": "above"} {
		n, below := s.root.at(path)
		got := "nil"
		switch {
		case below:
			got = "below"
		case n != nil && n.enc == nil:
			got = "above"
		case n != nil && n.enc.KeyPointer != "":
			got = n.enc.Kind.String() + " pointer " + n.enc.KeyPointer
		case n != nil:
			got = n.enc.Kind.String() + " " + string(n.enc.KeyID[:1])
			if len(n.enc.types) > 1 {
				got += " " + n.enc.types.String()
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := pointerKeys("/x~1y/z~0"); len(got) != 2 || got[0] != "x/y" || got[1] != "z~" {
		t.Errorf("pointer: %q", got)
	}
}

func TestEncryptedFieldsErrors(t *testing.T) {
	field := func(rest string) string { return `{"fields": [{"path": "a", "keyId": ` + keyA + rest + `}]}` }
	text := func(kind, rest string) string {
		return `{"queryType": "` + kind + `", "strMinQueryLength": 2, "strMaxQueryLength": 6, "caseSensitive": true, "diacriticSensitive": true` + rest + `}`
	}
	for _, tt := range []struct{ name, fields, want string }{
		{"no path", `{"fields": [{"keyId": ` + keyA + `}]}`, "needs a 'path'"},
		{"_id", `{"fields": [{"path": "_id", "keyId": ` + keyA + `}]}`, "'_id' cannot be encrypted"},
		{"reserved", `{"fields": [{"path": "__safeContent__", "keyId": ` + keyA + `}]}`, "reserved"},
		{"empty part", `{"fields": [{"path": "a..b", "keyId": ` + keyA + `}]}`, "cannot be a part of a path"},
		{"twice", `{"fields": [{"path": "a", "keyId": ` + keyA + `}, {"path": "a", "keyId": ` + keyA + `}]}`, "it is the field 'a'"},
		{"above", `{"fields": [{"path": "a.b", "keyId": ` + keyA + `}, {"path": "a", "keyId": ` + keyA + `}]}`, "it is the field 'a.b'"},
		{"no key", `{"fields": [{"path": "a"}]}`, "needs a 'keyId' or 'keyAltName'"},
		{"two keys", `{"fields": [{"path": "a", "keyAltName": "x", "keyId": ` + keyA + `}]}`, "exclude each other"},
		{"no bsonType", field(`, "queries": {"queryType": "equality"}`), "needs a bsonType"},
		{"equality of doubles", field(`, "bsonType": "double", "queries": {"queryType": "equality"}`), "Cannot encrypt element of type: double"},
		{"equality of objects", field(`, "bsonType": "object", "queries": {"queryType": "equality"}`), "Cannot encrypt element of type: object"},
		{"range of strings", field(`, "bsonType": "string", "queries": {"queryType": "range"}`), "unsupported BSON type"},
		{"range of other bounds", field(`, "bsonType": "long", "queries": {"queryType": "range", "min": 0, "max": 1}`), "matching 'min' and value type"},
		{"range without values", field(`, "bsonType": "int", "queries": {"queryType": "range", "min": 1, "max": 1}`), "must be less than the maximum value"},
		{"precision of ints", field(`, "bsonType": "int", "queries": {"queryType": "range", "min": 0, "max": 1, "precision": 1}`), "precision"},
		{"precision without bounds", field(`, "bsonType": "double", "queries": {"queryType": "range", "precision": 1}`), "must all be set"},
		{"bounds without precision", field(`, "bsonType": "double", "queries": {"queryType": "range", "min": 0.0, "max": 1.0}`), "must be set together"},
		{"a bound without precision", field(`, "bsonType": "decimal", "queries": {"queryType": "range", "min": {"$numberDecimal": "1"}}`), "must be set together"},
		{"trim factor", field(`, "bsonType": "int", "queries": {"queryType": "range", "min": 0, "max": 1, "trimFactor": 5}`), "must be less than"},
		{"sparsity", field(`, "bsonType": "int", "queries": {"queryType": "range", "sparsity": 0}`), "'sparsity'"},
		{"contention", field(`, "bsonType": "int", "queries": {"queryType": "range", "contention": -1}`), "'contention'"},
		{"text of ints", field(`, "bsonType": "int", "queries": ` + text("prefix", "")), "they are for strings"},
		{"substring and prefix", field(`, "bsonType": "string", "queries": [` + text("substring", `, "strMaxLength": 10`) + `, ` + text("prefix", "") + `]`), "only one prefix and one suffix"},
		{"equality and range", field(`, "bsonType": "int", "queries": [{"queryType": "equality"}, {"queryType": "range"}]`), "only prefix and suffix"},
		{"no length", field(`, "bsonType": "string", "queries": ` + text("substring", "")), "needs 'strMaxLength'"},
		{"unknown query", field(`, "bsonType": "string", "queries": {"queryType": "fuzzy"}`), `"fuzzy" is not a query type`},
		{"null", field(`, "bsonType": "null"`), "Cannot encrypt element of type: null"},
		{"version", `{"fields": [], "strEncodeVersion": 99}`, "strEncodeVersion"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseEncryptedFields("db.c", parse(t, tt.fields))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	for _, file := range spectest.Files(t, "client-side-encryption/etc/data/*.json") {
		if s, err := ParseEncryptedFields("db.c", parse(t, string(spectest.Read(t, file)))); err != nil || !s.Encrypts() {
			t.Errorf("%s: %v", file, err)
		}
	}
	alt := encryptedFields(t, "db.c", parse(t, `{"fields": [{"path": "a", "keyAltName": "x"}]}`))
	if _, err := Analyze("db", parse(t, `{"insert": "c", "documents": [{"a": 1}]}`), map[string]*Schema{"db.c": alt}); err == nil || !strings.Contains(err.Error(), "not resolved") {
		t.Errorf("unresolved name: %v", err)
	}
}

// TestCorpus inserts the specification's document of all types: what it says is allowed is
// encrypted, the rest refused.
func TestCorpus(t *testing.T) {
	read := func(name string) bson.Raw {
		return parse(t, string(spectest.Read(t, spectest.Files(t, "client-side-encryption/corpus/"+name)[0])))
	}
	schema := jsonSchema(t, "db.coll", read("corpus-schema.json"), true)
	encrypted, refused := 0, 0
	for name, v := range read("corpus.json").All() {
		field, ok := v.Document()
		if method, _ := field.Lookup("method").StringValue(); !ok || method != "auto" {
			continue
		}
		allowed, _ := field.Lookup("allowed").Boolean()
		doc := pair(name, v)
		// Keys by name are looked up at /altname_<provider>.
		kms, _ := field.Lookup("kms").StringValue()
		doc = appendField(doc, "altname_"+kms, stringValue("the "+kms+" key"))
		cmd := appendField(pair("insert", stringValue("coll")), "documents", array([]bson.RawValue{document(doc)}))
		got, err := Analyze("db", cmd, map[string]*Schema{"db.coll": schema})
		switch {
		case (err == nil) != allowed:
			t.Errorf("%s: %v, allowed %v", name, err, allowed)
		case err != nil:
			refused++
		case len(got.Marks) != 1 || got.Marks[0].Path != name+".value":
			t.Errorf("%s: marks %v", name, got.Marks)
		default:
			encrypted++
		}
	}
	if encrypted < 100 {
		t.Errorf("only %d fields encrypted, %d refused", encrypted, refused)
	}
}
