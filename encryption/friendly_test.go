package encryption_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
)

type address struct {
	Street string `bson:"street"`
	Zip    string
}

type person struct {
	ID      bson.ObjectID `bson:"_id"`
	Name    string        `bson:"fullName"`
	SSN     string        `bson:"ssn,omitempty"`
	Home    *address      `bson:"home,omitempty"`
	Age     int32         `bson:"age"`
	Any     int           `bson:"any"`
	Worth   float64       `bson:"worth"`
	Born    time.Time     `bson:"born"`
	Nick    *string       `bson:"nick"`
	Notes   []address     `bson:"notes"`
	Anybody any           `bson:"anybody"`
	Hidden  string        `bson:"-"`
	Friend  *person       `bson:"friend,omitempty"`
}

func TestSchemaFor(t *testing.T) {
	id := bson.UUID{1}
	got := must(encryption.SchemaFor[person](
		encryption.Field{Path: "ssn", Algorithm: encryption.Deterministic, KeyID: &id},
		encryption.Field{Path: "home.street", Algorithm: encryption.Random, KeyID: &id},
		encryption.Field{Path: "home.zip", Algorithm: encryption.Random, KeyID: &id},
		encryption.Field{Path: "notes", Algorithm: encryption.Random, KeyID: &id},
	))
	for path, want := range map[string]string{"ssn": "string", "notes": "array"} {
		if name, _ := got.Lookup("properties", path, "encrypt", "bsonType").StringValue(); name != want {
			t.Errorf("%s is a %s in %s", path, name, got)
		}
	}
	if name, _ := got.Lookup("properties", "home", "properties", "zip", "encrypt", "algorithm").StringValue(); name != string(encryption.Random) {
		t.Error(got)
	}
	for _, test := range []struct {
		field encryption.Field
		want  string
	}{
		{encryption.Field{Path: "name", Algorithm: encryption.Random}, "has no field name"},
		{encryption.Field{Path: "hidden", Algorithm: encryption.Random}, "has no field hidden"},
		{encryption.Field{Path: "home.town", Algorithm: encryption.Random}, "has no field home.town"},
		{encryption.Field{Path: "notes.street", Algorithm: encryption.Random}, "notes has the type array"},
		{encryption.Field{Path: "ssn.x", Algorithm: encryption.Random}, "ssn has the type string"},
		{encryption.Field{Path: "any", Algorithm: encryption.Random}, "the type int or long"},
		{encryption.Field{Path: "nick", Algorithm: encryption.Random}, "omitempty"},
		{encryption.Field{Path: "anybody", Algorithm: encryption.Random}, "does not tell"},
		{encryption.Field{Path: "worth", Algorithm: encryption.Deterministic}, "double"},
		{encryption.Field{Path: "notes", Algorithm: encryption.Deterministic}, "array"},
		{encryption.Field{Path: "ssn", Algorithm: encryption.Indexed}, "not one of a schema"},
		{encryption.Field{Path: "", Algorithm: encryption.Random}, "has no field"},
	} {
		test.field.KeyID = &id
		if _, err := encryption.SchemaFor[person](test.field); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.field.Path, err, test.want)
		}
	}
	ssn := encryption.Field{Path: "ssn", Algorithm: encryption.Random, KeyID: &id}
	if _, err := encryption.SchemaFor[person](ssn, ssn); err == nil {
		t.Error("a field twice is no error")
	}
	if _, err := encryption.SchemaFor[int](ssn); err == nil {
		t.Error("a schema for a number")
	}
}

func TestEncryptedFieldsFor(t *testing.T) {
	id := bson.UUID{1}
	got := must(encryption.EncryptedFieldsFor[person](
		encryption.Field{Path: "ssn", Algorithm: encryption.Indexed, KeyID: &id, Contention: new(int64(4))},
		encryption.Field{Path: "age", Algorithm: encryption.Range, KeyAltName: "ages", Range: &encryption.RangeOptions{Min: 0, Max: 120}},
		encryption.Field{Path: "worth", Algorithm: encryption.Range, Range: &encryption.RangeOptions{Min: 0, Max: 10, Precision: new(int32(2))}},
		encryption.Field{Path: "fullName", Algorithm: encryption.String, Preview: true, Text: &encryption.TextOptions{Prefix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 5}}},
		encryption.Field{Path: "home", Algorithm: encryption.Unindexed},
	))
	want := `{"fields":[{"path":"ssn","bsonType":"string","queries":{"queryType":"equality","contention":4},"keyId":`
	if !strings.HasPrefix(got.String(), want) {
		t.Errorf("%s\nwant %s...", got, want)
	}
	if n, ok := got.Lookup("fields", "1", "queries", "max").Int32(); !ok || n != 120 {
		t.Errorf("max of age in %s", got)
	}
	if n, ok := got.Lookup("fields", "2", "queries", "max").Double(); !ok || n != 10 {
		t.Errorf("max of worth in %s", got)
	}
	if name, _ := got.Lookup("fields", "3", "queries", "0", "queryType").StringValue(); name != "prefixPreview" {
		t.Errorf("query of fullName in %s", got)
	}
	if v := got.Lookup("fields", "4", "keyId"); v.Type != bson.TypeNull {
		t.Errorf("key of home in %s", got)
	}
	for _, test := range []struct {
		field encryption.Field
		want  string
	}{
		{encryption.Field{Path: "worth", Algorithm: encryption.Indexed}, "double"},
		{encryption.Field{Path: "ssn", Algorithm: encryption.Range}, "string"},
		{encryption.Field{Path: "age", Algorithm: encryption.String, Text: &encryption.TextOptions{Prefix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 5}}}, "int"},
		{encryption.Field{Path: "ssn", Algorithm: encryption.String}, "needs a Prefix"},
		{encryption.Field{Path: "_id", Algorithm: encryption.Unindexed}, "_id"},
		{encryption.Field{Path: "ssn", Algorithm: encryption.Random}, "not one of encryptedFields"},
		{encryption.Field{Path: "age", Algorithm: encryption.Range, Range: &encryption.RangeOptions{Min: 0, Max: 1 << 40}}, "field"},
	} {
		if _, err := encryption.EncryptedFieldsFor[person](test.field); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.field.Path, err, test.want)
		}
	}
}

func TestEncrypted(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	ctx := t.Context()
	o := encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &e.id}
	type patient struct {
		ID  int                          `bson:"_id"`
		SSN encryption.Encrypted[string] `bson:"ssn"`
		Pin encryption.Encrypted[int]    `bson:"pin"`
	}
	in := patient{ID: 1, SSN: must(encryption.Seal(ctx, e.keys, "457-55-5462", o))}
	coll := allium.CollectionOf[patient](e.plain.Database("db"), "patients")
	must(coll.InsertOne(ctx, in))
	out := must(coll.FindOne(ctx, bson.D{}))
	if ssn := must(out.SSN.Open(ctx, e.keys)); ssn != "457-55-5462" {
		t.Error(ssn)
	}
	if _, err := out.Pin.Open(ctx, e.keys); !out.Pin.IsZero() || !errors.Is(err, encryption.ErrMalformed) {
		t.Error(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "patient", out, "ssn", out.SSN)
	text, err := json.Marshal(out)
	if err != nil {
		t.Error(err)
	}
	for _, s := range []string{fmt.Sprintf("%v %+v %#v %s %x %d", out, out, out, out.SSN, out.SSN, out.SSN), log.String(), string(text)} {
		if !strings.Contains(s, "encrypted") || strings.Contains(s, "457-55") || strings.Contains(s, "3435372d") || strings.Contains(s, fmt.Sprintf("%x", out.SSN.Binary().Data[:8])) {
			t.Error(s)
		}
	}
	if err := bson.Unmarshal(must(bson.Marshal(bson.D{{Key: "ssn", Value: "plain"}})), &out); !errors.Is(err, encryption.ErrMalformed) || strings.Contains(err.Error(), "plain") {
		t.Error(err)
	}
}

func TestDryRun(t *testing.T) {
	id := bson.UUID{1}
	o := encryption.AutoOptions{
		Schemas: map[string]any{"app.people": must(encryption.SchemaFor[person](encryption.Field{Path: "ssn", Algorithm: encryption.Deterministic, KeyID: &id}))},
		EncryptedFields: map[string]any{"app.patients": must(encryption.EncryptedFieldsFor[person](
			encryption.Field{Path: "ssn", Algorithm: encryption.Indexed, KeyAltName: "ssns"}))},
	}
	got := must(o.DryRun("app", bson.D{{Key: "find", Value: "people"}, {Key: "filter", Value: bson.D{{Key: "ssn", Value: "457-55-5462"}}}}))
	if len(got) != 1 || got[0].Path != "ssn" || got[0].Place != "filter" || got[0].Algorithm != encryption.Deterministic || got[0].KeyID != id || got[0].Type != bson.TypeString {
		t.Errorf("%+v", got)
	}
	if s := fmt.Sprint(got); strings.Contains(s, "457-55") || strings.Contains(s, "3435372d") || !strings.Contains(s, id.String()) {
		t.Error(s)
	}
	got = must(o.DryRun("app", bson.D{{Key: "insert", Value: "patients"}, {Key: "documents", Value: bson.A{bson.D{{Key: "ssn", Value: "457-55-5462"}}}}}))
	if len(got) != 1 || got[0].KeyAltName != "ssns" || got[0].KeyID != (bson.UUID{}) || got[0].Namespace != "app.patients" {
		t.Errorf("%+v", got)
	}
	_, err := o.DryRun("app", bson.D{{Key: "find", Value: "people"}, {Key: "filter", Value: bson.D{{Key: "ssn", Value: bson.D{{Key: "$gt", Value: "457"}}}}}})
	var refused *encryption.RefusedError
	if !errors.As(err, &refused) || refused.Namespace != "app.people" || refused.Path != "ssn" || refused.Operator != "$gt" || strings.Contains(err.Error(), "457") {
		t.Errorf("%v: %+v", err, refused)
	}
	if _, err := o.DryRun("app", bson.D{{Key: "find", Value: "others"}}); err == nil {
		t.Error("a collection that is not configured is no error")
	}
}

// TestRefusedError is about commands of a client.
func TestRefusedError(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	_, err := e.client.Database("db").Collection("coll").Find(t.Context(), bson.D{{Key: "ssn", Value: bson.D{{Key: "$gt", Value: "4"}}}})
	var refused *encryption.RefusedError
	if !errors.As(err, &refused) || refused.Command != "find" || refused.Path != "ssn" || refused.Operator != "$gt" {
		t.Errorf("%v: %+v", err, refused)
	}
}
