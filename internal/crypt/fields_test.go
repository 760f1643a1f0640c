package crypt

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/fle"
)

// TestCompactionVectors compares the commands of compaction and cleanup with libmongocrypt's.
func TestCompactionVectors(t *testing.T) {
	l := newLocal()
	var v vault
	for _, name := range []string{"12345678123498761234123456789012", "ABCDEFAB123498761234123456789012"} {
		material := must(hex.DecodeString(strings.TrimSpace(string(must(os.ReadFile("testdata/" + name + "-key-material.txt"))))))
		d := Document{ID: bson.UUID(must(hex.DecodeString(name))), Material: must(fle.WrapKey(l.master, material, l.random)), MasterKey: localKey}
		v.docs = append(v.docs, d.Append(nil))
	}
	k := NewKeys(&v, l, 0)
	defer k.Close()
	for file, tokens := range map[string]string{"compact": "compactionTokens", "cleanup": "cleanupTokens"} {
		var questions map[string]struct {
			Question struct {
				Cmd                json.RawMessage
				EncryptedFieldsMap map[string]json.RawMessage
			}
			Answer struct{ Result json.RawMessage }
		}
		if err := json.Unmarshal(must(os.ReadFile("testdata/"+file+".json")), &questions); err != nil {
			t.Fatal(err)
		}
		q := questions[file]
		cmd, _ := must(bson.ParseExtJSONValue(q.Question.Cmd)).Document()
		given, _ := must(bson.ParseExtJSONValue(q.Question.EncryptedFieldsMap["db.test"])).Document()
		fields, names, err := CompleteFields("db.test", given)
		if err != nil || len(names) != 0 {
			t.Fatal(names, err)
		}
		if NeedsInformation(file+"StructuredEncryptionData", cmd, fields) != (file == "compact") {
			t.Errorf("%s: information", file)
		}
		out := cmd
		if file == "compact" {
			out = AppendInformation(cmd, "db.test", fields)
		}
		out = must(k.AppendTokens(t.Context(), out, tokens, fields))
		want, _ := must(bson.ParseExtJSONValue(q.Answer.Result)).Document()
		// The tokens are in the order of the fields, there in the reverse one.
		for key, v := range want.All() {
			got := out.Lookup(key)
			if key == tokens {
				list, _ := v.Document()
				n := 0
				for path, token := range list.All() {
					n++
					if other := out.Lookup(key, path); !other.Equal(token) {
						t.Errorf("%s: token of %s is %s, want %s", file, path, other, token)
					}
				}
				doc, _ := got.Document()
				for range doc.All() {
					n--
				}
				if n != 0 {
					t.Errorf("%s: %s", file, doc)
				}
				continue
			}
			if !got.Equal(v) {
				t.Errorf("%s: %s is %s, want %s", file, key, got, v)
			}
		}
	}
}

func TestCompleteFields(t *testing.T) {
	fields := func(v any, more ...bson.E) bson.Raw {
		return must(bson.Marshal(append(bson.D{{Key: "fields", Value: bson.A{bson.D{{Key: "path", Value: "a"}, {Key: "queries", Value: v}}}}}, more...)))
	}
	text := bson.D{{Key: "queryType", Value: "substringPreview"}}
	for _, c := range []struct {
		in      bson.Raw
		version bool
	}{
		{fields(nil), false}, {fields(bson.D{{Key: "queryType", Value: "equality"}}), false}, {fields(text), true},
		{fields(bson.A{bson.D{{Key: "queryType", Value: "prefix"}}, bson.D{{Key: "queryType", Value: "suffix"}}}), true},
	} {
		out, _, err := CompleteFields("db.c", c.in)
		if err != nil {
			t.Fatal(err)
		}
		n, ok := out.Lookup("strEncodeVersion").Int32()
		esc, _ := out.Lookup("escCollection").StringValue()
		ecoc, _ := out.Lookup("ecocCollection").StringValue()
		if ok != c.version || ok && n != 1 || esc != "enxcol_.c.esc" || ecoc != "enxcol_.c.ecoc" {
			t.Errorf("%s becomes %s", c.in, out)
		}
		again, _, err := CompleteFields("db.c", out)
		if err != nil || !bson.Equal(again, out) {
			t.Errorf("%s becomes %s, %v", out, again, err)
		}
	}
	if out, _, err := CompleteFields("db.c", fields(text, bson.E{Key: "strEncodeVersion", Value: int32(2)})); err == nil {
		t.Errorf("%s", out)
	}
	both := must(bson.Marshal(bson.D{{Key: "fields", Value: bson.A{bson.D{{Key: "keyId", Value: bson.UUID{1}}, {Key: "keyAltName", Value: "x"}}}}}))
	if out, _, err := CompleteFields("db.c", both); err == nil {
		t.Errorf("%s", out)
	}
}

func TestNamedFields(t *testing.T) {
	k, v, _, docs := rig(t, 1, time.Minute)
	given := bson.Raw(must(bson.Marshal(bson.D{{Key: "fields", Value: bson.A{
		bson.D{{Key: "path", Value: "a"}, {Key: "keyAltName", Value: "key0"}}, bson.D{{Key: "path", Value: "b"}, {Key: "keyAltName", Value: "key0"}},
	}}})))
	if _, names, err := CompleteFields("db.c", given); err != nil || len(names) != 2 {
		t.Error(names, err)
	}
	out := must(k.NamedFields(t.Context(), "db.c", given))
	for _, i := range []string{"0", "1"} {
		b, _ := out.Lookup("fields", i, "keyId").Binary()
		if id, err := b.UUID(); err != nil || id != docs[0].ID {
			t.Errorf("%s", out)
		}
	}
	if v.asked() != 1 || !out.Lookup("fields", "0", "keyAltName").IsZero() {
		t.Errorf("%d queries; %s", v.asked(), out)
	}
}

func TestNeedsInformation(t *testing.T) {
	none := bson.Raw(must(bson.Marshal(bson.D{{Key: "find", Value: "c"}})))
	find := fle.FindEquality{}
	some := bson.Raw(must(bson.Marshal(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.Binary{Subtype: 6, Data: find.Append(nil)}}}}})))
	explain := bson.Raw(must(bson.Marshal(bson.D{{Key: "explain", Value: some}})))
	for _, c := range []struct {
		name string
		cmd  bson.Raw
		want bool
	}{
		{"find", none, false}, {"find", some, true}, {"explain", explain, true}, {"update", none, true}, {"delete", none, true}, {"findAndModify", none, true},
		{"create", some, false}, {"createIndexes", some, false}, {"bulkWrite", none, true},
	} {
		if got := NeedsInformation(c.name, c.cmd, none); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	two := AppendInformation(some, "db.c", none, Collection{NS: "db.plain"}, Collection{NS: "db.d", Fields: none})
	if name, _ := two.Lookup("encryptionInformation", "schema", "db.plain", "escCollection").StringValue(); name != "enxcol_.plain.esc" || two.Validate() != nil {
		t.Errorf("%s", two)
	}
	if two.Lookup("encryptionInformation", "schema", "db.d").IsZero() {
		t.Errorf("%s", two)
	}
	ns := bson.Raw(must(bson.Marshal(bson.D{{Key: "bulkWrite", Value: 1}, {Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: "db.c"}}}}, {Key: "ops", Value: bson.A{}}})))
	if out := AppendBulkInformation(ns, "db.c", none); out.Lookup("nsInfo", "0", "encryptionInformation", "schema").IsZero() || out.Validate() != nil {
		t.Errorf("%s", out)
	}
}
