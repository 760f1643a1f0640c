package analysis

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/fle"
)

// unlike are the recorded answers that ours differs from, and why: each of them gives away that it
// was not made by the analysis from the command beside it, but by hand for a test of the client.
var unlike = map[string]string{
	"bulkWrite/simple":                 "a range placeholder for a field with equality queries",
	"lookup/mixed/qe/non-csfle-schema": "a placeholder of a key that the schema does not have, for a field without queries, and hasEncryptionPlaceholders false",
	"fle1-create/with-cmd-schema":      "the validator is gone, schemaRequiresEncryption is missing, and hasEncryptedPlaceholders is no name that the analysis uses",
}

// TestRecordedByHand checks what unlike says of the recordings.
func TestRecordedByHand(t *testing.T) {
	read := func(name string) (bson.Raw, bson.Raw) {
		dir := filepath.Join("testdata", "recorded", filepath.FromSlash(name))
		replies, err := filepath.Glob(filepath.Join(dir, "*reply*"))
		if err != nil || len(replies) != 1 {
			t.Fatal(name, replies, err)
		}
		return readJSON(t, filepath.Join(dir, "cmd-to-mongocryptd.json")), readJSON(t, replies[0])
	}
	placeholder := func(v bson.RawValue) *fle.Placeholder {
		data, _ := fle.Data(v)
		p, err := fle.ParsePlaceholder(data)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	cmd, reply := read("bulkWrite/simple")
	query, _ := cmd.Lookup("nsInfo", "0", "encryptionInformation", "schema", "db.test", "fields", "0", "queries", "queryType").StringValue()
	if p := placeholder(reply.Lookup("result", "ops", "0", "document", "encrypted")); p.Index != fle.IndexRange || query != "equality" {
		t.Errorf("bulkWrite/simple: index %d for %s queries", p.Index, query)
	}
	cmd, reply = read("lookup/mixed/qe/non-csfle-schema")
	id, _ := cmd.Lookup("encryptionInformation", "schema", "db.c1", "fields", "0", "keyId").Binary()
	if p := placeholder(reply.Lookup("result", "pipeline", "1", "$match", "encryptedUnindexed")); slices.Equal(p.IndexKey[:], id.Data) || p.Index != fle.IndexEquality ||
		!cmd.Lookup("encryptionInformation", "schema", "db.c1", "fields", "0", "queries").IsZero() || reply.Lookup("hasEncryptionPlaceholders").AsBool() {
		t.Errorf("lookup/mixed/qe/non-csfle-schema: key %s and index %d", p.IndexKey, p.Index)
	}
	cmd, reply = read("fle1-create/with-cmd-schema")
	if cmd.Lookup("validator").IsZero() || !reply.Lookup("result", "validator").IsZero() || !reply.Lookup("schemaRequiresEncryption").IsZero() || reply.Lookup("hasEncryptedPlaceholders").IsZero() {
		t.Errorf("fle1-create/with-cmd-schema: %s", reply)
	}
}

func TestRecorded(t *testing.T) {
	root := filepath.Join("testdata", "recorded")
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(d.Name(), "reply") {
			return err
		}
		dir := filepath.Dir(path)
		name, _ := filepath.Rel(root, dir)
		found[name] = true
		t.Run(name, func(t *testing.T) { recorded(t, dir, path, name) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 30 {
		t.Errorf("only %d pairs found", len(found))
	}
	for name := range unlike {
		if !found[name] {
			t.Errorf("%s is listed as unlike, but not there", name)
		}
	}
}

func recorded(t *testing.T, dir, reply, name string) {
	want, ok := readJSON(t, reply).Lookup("result").Document()
	if !ok {
		t.Fatal("the answer has no result")
	}
	cmd, schemas := input(t, dir)
	namespaces, err := Namespaces("db", cmd)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces {
		if _, ok := schemas[ns]; !ok {
			schemas[ns] = nil
		}
	}
	got, err := Analyze("db", cmd, schemas)
	if name == "lookup/mixed/qe/non-csfle-schema" {
		if err == nil {
			t.Error("a query by a field without queries was not refused")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ = informed(want)
	a, b := canonical(document(got.Command), true), canonical(document(want), true)
	if (a != b) != (unlike[name] != "") {
		t.Errorf("got\n%s\nwant\n%s\n(known as unlike: %q)", a, b, unlike[name])
	}
	if unlike[name] == "" {
		return
	}
	// All but what unlike says is as recorded.
	got.Command, _ = withoutPlaceholders(got.Command)
	want, _ = withoutPlaceholders(want)
	if name == "fle1-create/with-cmd-schema" {
		want = bson.Raw(value(append(members(t, want), bson.E{Key: "validator", Value: cmd.Lookup("validator")})).Value)
	}
	if a, b := canonical(document(got.Command), true), canonical(document(want), true); a != b {
		t.Errorf("apart from placeholders: got\n%s\nwant\n%s", a, b)
	}
}

// input returns the command of a folder without the fields that carry schemas, and the schemas.
func input(t *testing.T, dir string) (bson.Raw, map[string]*Schema) {
	t.Helper()
	schemas := map[string]*Schema{}
	for _, name := range []string{"encrypted-field-map.json", "schema_map.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			continue
		}
		for ns, v := range readJSON(t, filepath.Join(dir, name)).All() {
			if name == "schema_map.json" {
				schemas[ns] = jsonSchema(t, ns, v.Value, false)
			} else {
				schemas[ns] = encryptedFields(t, ns, v.Value)
			}
		}
	}
	var cmd bson.Raw
	for _, name := range []string{"cmd-to-mongocryptd.json", "cmd.json", "command.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			cmd = readJSON(t, filepath.Join(dir, name))
			break
		}
	}
	rest, info, csfle := informed(cmd)
	fields, _ := info.Lookup("schema").Document()
	for ns, v := range fields.All() {
		schemas[ns] = encryptedFields(t, ns, v.Value)
	}
	for ns, v := range csfle.All() {
		doc, _ := v.Document()
		remote, _ := doc.Lookup("isRemoteSchema").Boolean()
		schema, _ := doc.Lookup("jsonSchema").Document()
		schemas[ns] = jsonSchema(t, ns, schema, remote)
	}
	if v, ok := cmd.Lookup("jsonSchema").Document(); ok {
		remote, _ := cmd.Lookup("isRemoteSchema").Boolean()
		_, coll := first(cmd)
		name, _ := coll.StringValue()
		schemas["db."+name] = jsonSchema(t, "db."+name, v, remote)
	}
	return rest, schemas
}

// informed returns cmd without the fields that carry schemas, and what they hold.
func informed(cmd bson.Raw) (rest, info, csfle bson.Raw) {
	start, b := bson.BeginDocument(nil)
	for key, v := range cmd.All() {
		switch key {
		case "encryptionInformation":
			info = v.Value
			continue
		case "csfleEncryptionSchemas":
			csfle = v.Value
			continue
		case "jsonSchema", "isRemoteSchema":
			continue
		case "nsInfo":
			var list []bson.RawValue
			infos, _ := docs(v)
			for _, doc := range infos {
				inner, i, _ := informed(doc)
				list, info = append(list, document(inner)), i
			}
			v = array(list)
		}
		b = bson.AppendRawValue(b, key, v)
	}
	return bson.EndDocument(b, start), info, csfle
}

func readJSON(t *testing.T, file string) bson.Raw {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func parse(t testing.TB, text string) bson.Raw {
	t.Helper()
	doc, err := bson.ParseExtJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

func jsonSchema(t testing.TB, ns string, schema bson.Raw, remote bool) *Schema {
	t.Helper()
	if schema == nil {
		schema = emptyDocument()
	}
	s, err := ParseJSONSchema(ns, schema, remote)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func encryptedFields(t testing.TB, ns string, fields bson.Raw) *Schema {
	t.Helper()
	s, err := ParseEncryptedFields(ns, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func members(t *testing.T, doc bson.Raw) bson.D {
	t.Helper()
	var out bson.D
	if err := bson.Unmarshal(doc, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// canonical writes v as text: placeholders opened, whole numbers of any type alike, with the fields
// of v and of placeholders in the order of their names.
func canonical(v bson.RawValue, sorted bool) string {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		var parts []string
		for key, v := range bson.Raw(v.Value).All() {
			parts = append(parts, fmt.Sprintf("%q: %s", key, canonical(v, false)))
		}
		if sorted {
			slices.Sort(parts)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case bson.TypeArray:
		var parts []string
		for v := range bson.Raw(v.Value).Values() {
			parts = append(parts, canonical(v, false))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case bson.TypeBinary:
		if data, ok := fle.Data(v); ok && (data[0] == 0 || data[0] == 3) {
			return fmt.Sprintf("placeholder %d %s", data[0], canonicalPlaceholder(data[1:]))
		}
	}
	return v.String()
}

// canonicalPlaceholder evens out what recordings of different age do not agree on: the default
// sparsity was 1 once, and the default trim factor is written out in the newest recording of a
// find, and in no other.
func canonicalPlaceholder(doc bson.Raw) string {
	var open func(v bson.RawValue) string
	open = func(v bson.RawValue) string {
		if v.Type != bson.TypeEmbeddedDocument {
			return v.Type.String() + " " + v.String()
		}
		var parts []string
		for key, v := range bson.Raw(v.Value).All() {
			if n, ok := v.AsInt64(); ok && (key == "s" && n <= 2 || key == "trimFactor" && n == fle.DefaultTrimFactor) {
				continue
			}
			parts = append(parts, key+": "+open(v))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return open(document(doc))
}
