package crypt

import (
	"encoding/json"
	"os"
	"testing"

	"allium/bson"
	"allium/internal/fle"
)

// one reads the only question of a file of vectors, and its answer.
func one(t *testing.T, name string) (question, answer bson.Raw) {
	t.Helper()
	var all map[string]struct{ Question, Answer json.RawMessage }
	if err := json.Unmarshal(must(os.ReadFile("testdata/"+name+".json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		return must(bson.ParseExtJSON(q.Question)), must(bson.ParseExtJSON(q.Answer))
	}
	t.Fatalf("%s: no question", name)
	return nil, nil
}

// TestRewrapVector wraps the data keys again as libmongocrypt does, byte for byte: the last one
// first.
func TestRewrapVector(t *testing.T) {
	var docs map[string]json.RawMessage
	if err := json.Unmarshal(must(os.ReadFile("testdata/keys.json")), &docs); err != nil {
		t.Fatal(err)
	}
	_, answer := one(t, "rewrap")
	list, _ := answer.Lookup("result", "v").Array()
	var want []bson.Raw
	for v := range list.Values() {
		want = append(want, bson.Raw(v.Value))
	}
	l := newLocal()
	l.random = &counter{}
	k := NewKeys(nil, l, 0)
	for i, name := range []string{"key2", "key1"} {
		got, err := k.Rewrap(t.Context(), []bson.Raw{must(bson.ParseExtJSON(docs[name]))}, localKey)
		if err != nil {
			t.Fatal(err)
		}
		w := want[len(want)-1-i]
		material, _ := w.Lookup("keyMaterial").Binary()
		if masterKey, _ := w.Lookup("masterKey").Document(); string(got[0].Material) != string(material.Data) || !bson.Equal(got[0].MasterKey, masterKey) {
			t.Errorf("%s: %x with %s, want %s", name, got[0].Material, got[0].MasterKey, w)
		}
	}
}

// TestMissingKeyVector compares the query for a key that does not exist, and the error.
func TestMissingKeyVector(t *testing.T) {
	question, answer := one(t, "missing")
	v := &vault{}
	k := NewKeys(v, newLocal(), 0)
	b, _ := question.Lookup("opts", "keyId").Binary()
	id := must(b.UUID())
	_, err := k.EncryptValue(t.Context(), question.Lookup("value"), &fle.Explicit{Algorithm: "Unindexed"}, Key{ID: &id}, &counter{})
	if text, _ := answer.Lookup("error").StringValue(); err == nil || err.Error() != "key "+id.String()+": "+text {
		t.Errorf("error %v, want %s", err, text)
	}
	if want, _ := answer.Lookup("steps", "0", "op").Document(); len(v.queries) != 1 || !bson.Equal(v.queries[0], want) {
		t.Errorf("queries %s, want %s", v.queries, want)
	}
}

// TestInformationVector compares what is added to a command with Queryable Encryption: to the one
// that other drivers hand to query analysis.
func TestInformationVector(t *testing.T) {
	question, answer := one(t, "insert")
	cmd, _ := question.Lookup("cmd").Document()
	given, _ := question.Lookup("encryptedFieldsMap", "db.test").Document()
	fields, names, err := CompleteFields("db.test", given)
	if err != nil || names != nil {
		t.Fatal(names, err)
	}
	if want, _ := answer.Lookup("steps", "0", "op").Document(); !bson.Equal(AppendInformation(cmd, "db.test", fields), want) {
		t.Errorf("got %s, want %s", AppendInformation(cmd, "db.test", fields), want)
	}
	if want, _ := answer.Lookup("result").Document(); NeedsInformation("insert", cmd, fields) || !bson.Equal(cmd, want) {
		t.Error("a command that nothing of is encrypted goes out as it came")
	}
}
