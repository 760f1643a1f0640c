package crypt

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"allium/bson"
	"allium/internal/fle"
)

// FuzzAnswer takes any document as an answer of query analysis, as another process may give it: no
// placeholder is left in what becomes of it, what has none is not changed, and it can be read
// again.
func FuzzAnswer(f *testing.F) {
	v := &anyKey{material: map[bson.UUID][]byte{}, local: newLocal()}
	k := NewKeys(v, v.local, 0)
	f.Cleanup(k.Close)
	all := must(bson.ParseExtJSON(must(os.ReadFile("testdata/replies.json"))))
	for _, c := range all.All() {
		doc, _ := c.Document()
		reply, _ := doc.Lookup("reply").Document()
		f.Add([]byte(reply))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		answer := bson.Raw(data)
		if answer.Validate() != nil {
			return
		}
		before := bytes.Clone(answer)
		got, err := k.Encrypt(t.Context(), answer, repeated(3))
		if !bytes.Equal(before, answer) {
			t.Fatal("the answer was changed in place")
		}
		if err != nil {
			return
		}
		if err := got.Validate(); err != nil {
			t.Fatalf("what becomes of it is no BSON: %v", err)
		}
		placeholders := 0
		left := func(data []byte) error {
			if kind := fle.Kind(data[0]); kind == fle.KindMarking || kind == fle.KindPlaceholder {
				return fmt.Errorf("a placeholder is left: %x", data)
			}
			return nil
		}
		if err := fle.Each(answer, func(data []byte) error {
			if left(data) != nil {
				placeholders++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := fle.Each(got, left); err != nil {
			t.Fatal(err)
		}
		if placeholders == 0 && !bytes.Equal(got, answer) {
			t.Fatal("an answer without placeholders was changed")
		}
		again, err := k.Encrypt(t.Context(), got, repeated(3))
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("what is encrypted changes when it is encrypted again: %v", err)
		}
		// What only the server can turn into a stored value is left as it is.
		if plain, err := k.Decrypt(t.Context(), got); err == nil {
			if err := plain.Validate(); err != nil {
				t.Fatalf("decrypted to what is no BSON: %v", err)
			}
		}
	})
}

// FuzzFields takes any documents as the encryptedFields of a collection and as a command on it: the
// fields that are completed are complete, and stay so.
func FuzzFields(f *testing.F) {
	id := bson.Binary{Subtype: bson.BinaryUUID, Data: make([]byte, 16)}
	command := must(bson.Marshal(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}}))
	for _, seed := range []bson.D{
		{{Key: "fields", Value: bson.A{bson.D{{Key: "path", Value: "a"}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: id}, {Key: "queries", Value: bson.D{{Key: "queryType", Value: "prefix"}}}}}}},
		{{Key: "fields", Value: bson.A{bson.D{{Key: "path", Value: "b"}, {Key: "keyAltName", Value: "k"}, {Key: "queries", Value: bson.A{bson.D{{Key: "queryType", Value: "equality"}}}}}}}},
		{{Key: "escCollection", Value: "e"}, {Key: "ecocCollection", Value: 1}, {Key: "strEncodeVersion", Value: 1}, {Key: "fields", Value: bson.A{}}},
		{{Key: "fields", Value: bson.A{1}}}, {{Key: "strEncodeVersion", Value: 9}},
	} {
		f.Add([]byte(must(bson.Marshal(seed))), []byte(command))
	}
	f.Fuzz(func(t *testing.T, data, cmd []byte) {
		fields, names, err := CompleteFields("db.c", data)
		if err != nil {
			return
		}
		if err := fields.Validate(); err != nil {
			t.Fatalf("completed to what is no BSON: %v", err)
		}
		again, names2, err := CompleteFields("db.c", fields)
		if err != nil || !bytes.Equal(again, fields) || len(names) != len(names2) {
			t.Fatalf("what is complete is completed to %v, %v", again, err)
		}
		for _, key := range []string{"escCollection", "ecocCollection"} {
			if fields.Lookup(key).IsZero() {
				t.Fatalf("%s is missing", key)
			}
		}
		if bson.Raw(cmd).Validate() != nil {
			return
		}
		name := ""
		for key := range bson.Raw(cmd).All() {
			name = key
			break
		}
		if NeedsInformation(name, cmd, fields) {
			if out := AppendInformation(cmd, "db.c", fields); out.Validate() != nil || out.Lookup("encryptionInformation").IsZero() {
				t.Fatalf("%s becomes %x", name, []byte(out))
			}
		}
		if bulk := AppendBulkInformation(cmd, "db.c", fields); bulk.Validate() != nil {
			t.Fatalf("%s becomes %x", name, []byte(bulk))
		}
	})
}
