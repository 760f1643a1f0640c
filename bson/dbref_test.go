package bson_test

// The prose tests of the specification DBRef.

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"allium/bson"
)

var dbRefID, _ = bson.ParseObjectID("60a6fe9a54f4180c86309efa")

func ref(elements ...any) bson.D {
	var d bson.D
	for i := 0; i < len(elements); i += 2 {
		d = append(d, bson.E{Key: elements[i].(string), Value: elements[i+1]})
	}
	return d
}

var one = int32(1)

// decodeDBRef decodes in each of the ways that there are, which have to agree.
func decodeDBRef(t *testing.T, doc bson.D) (bson.DBRef, error) {
	t.Helper()
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := bson.ParseDBRef(raw)
	var field struct{ Ref bson.DBRef }
	outer, _ := bson.Marshal(ref("ref", doc))
	if fieldErr := bson.Unmarshal(outer, &field); (fieldErr == nil) != (err == nil) || !reflect.DeepEqual(field.Ref, parsed) {
		t.Errorf("%v: as a field %v, %v, parsed %v, %v", doc, field.Ref, fieldErr, parsed, err)
	}
	// Nothing is taken for a DBRef that nobody asked to be one.
	var open struct{ Ref any }
	if err := bson.Unmarshal(outer, &open); err != nil || !reflect.DeepEqual(open.Ref, doc) {
		t.Errorf("%v: in a variable of type any %v, %v", doc, open.Ref, err)
	}
	return parsed, err
}

func checkDBRefs(t *testing.T, tests []struct {
	doc  bson.D
	want bson.DBRef
}) {
	t.Helper()
	for _, tt := range tests {
		got, err := decodeDBRef(t, tt.doc)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: got %#v, %v, want %#v", tt.doc, got, err, tt.want)
		}
	}
}

func TestDBRefProseDecoding1Valid(t *testing.T) {
	checkDBRefs(t, []struct {
		doc  bson.D
		want bson.DBRef
	}{
		{ref("$ref", "coll0", "$id", dbRefID), bson.DBRef{Collection: "coll0", ID: dbRefID}},
		{ref("$ref", "coll0", "$id", one), bson.DBRef{Collection: "coll0", ID: one}},
		{ref("$ref", "coll0", "$id", nil), bson.DBRef{Collection: "coll0"}},
		{ref("$ref", "coll0", "$id", one, "$db", "db0"), bson.DBRef{Collection: "coll0", ID: one, Database: "db0"}},
	})
}

func TestDBRefProseDecoding2ExtraFields(t *testing.T) {
	checkDBRefs(t, []struct {
		doc  bson.D
		want bson.DBRef
	}{
		{ref("$ref", "coll0", "$id", one, "$db", "db0", "foo", "bar"),
			bson.DBRef{Collection: "coll0", ID: one, Database: "db0", Extra: ref("foo", "bar")}},
		{ref("$ref", "coll0", "$id", one, "foo", true, "bar", false),
			bson.DBRef{Collection: "coll0", ID: one, Extra: ref("foo", true, "bar", false)}},
		{ref("$ref", "coll0", "$id", one, "meta", ref("foo", one, "bar", int32(2))),
			bson.DBRef{Collection: "coll0", ID: one, Extra: ref("meta", ref("foo", one, "bar", int32(2)))}},
		{ref("$ref", "coll0", "$id", one, "$foo", "bar"),
			bson.DBRef{Collection: "coll0", ID: one, Extra: ref("$foo", "bar")}},
		{ref("$ref", "coll0", "$id", one, "foo.bar", int32(0)),
			bson.DBRef{Collection: "coll0", ID: one, Extra: ref("foo.bar", int32(0))}},
	})
}

// outOfOrder are the documents that decoding 3 and encoding 3 share, and what the latter makes of
// them.
var outOfOrder = []struct {
	doc   bson.D
	want  bson.DBRef
	again bson.D
}{
	{ref("$id", one, "$ref", "coll0"),
		bson.DBRef{Collection: "coll0", ID: one}, ref("$ref", "coll0", "$id", one)},
	{ref("$db", "db0", "$ref", "coll0", "$id", one),
		bson.DBRef{Collection: "coll0", ID: one, Database: "db0"}, ref("$ref", "coll0", "$id", one, "$db", "db0")},
	{ref("foo", one, "$id", one, "$ref", "coll0"),
		bson.DBRef{Collection: "coll0", ID: one, Extra: ref("foo", one)}, ref("$ref", "coll0", "$id", one, "foo", one)},
	{ref("foo", one, "$ref", "coll0", "$id", one, "$db", "db0"),
		bson.DBRef{Collection: "coll0", ID: one, Database: "db0", Extra: ref("foo", one)},
		ref("$ref", "coll0", "$id", one, "$db", "db0", "foo", one)},
	{ref("foo", one, "$ref", "coll0", "$id", one, "$db", "db0", "bar", one),
		bson.DBRef{Collection: "coll0", ID: one, Database: "db0", Extra: ref("foo", one, "bar", one)},
		ref("$ref", "coll0", "$id", one, "$db", "db0", "foo", one, "bar", one)},
}

func TestDBRefProseDecoding3OutOfOrder(t *testing.T) {
	for _, tt := range outOfOrder {
		got, err := decodeDBRef(t, tt.doc)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: got %#v, %v, want %#v", tt.doc, got, err, tt.want)
		}
	}
}

func TestDBRefProseDecoding4MissingFields(t *testing.T) {
	for _, doc := range []bson.D{ref("$ref", "coll0"), ref("$id", dbRefID), ref("$db", "db0")} {
		if got, err := decodeDBRef(t, doc); err == nil {
			t.Errorf("%v: got %v, want an error", doc, got)
		}
	}
}

func TestDBRefProseDecoding5InvalidTypes(t *testing.T) {
	for _, doc := range []bson.D{ref("$ref", true, "$id", one), ref("$ref", "coll0", "$id", one, "$db", one)} {
		if got, err := decodeDBRef(t, doc); err == nil {
			t.Errorf("%v: got %v, want an error", doc, got)
		}
	}
}

// encodeDBRef encodes by itself and as a field.
func encodeDBRef(t *testing.T, r bson.DBRef, want bson.D) {
	t.Helper()
	raw, err := bson.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := bson.Marshal(r)
	if err != nil || !bson.Equal(got, raw) {
		t.Errorf("%v: got %v, %v", want, bson.Raw(got), err)
	}
	field, err := bson.Marshal(struct{ Ref bson.DBRef }{r})
	if inner, _ := bson.Raw(field).Lookup("ref").Document(); err != nil || !bson.Equal(inner, raw) {
		t.Errorf("%v: got %v, %v as a field", want, inner, err)
	}
}

func TestDBRefProseEncoding1Basic(t *testing.T) {
	encodeDBRef(t, bson.DBRef{Collection: "coll0", ID: dbRefID}, ref("$ref", "coll0", "$id", dbRefID))
	encodeDBRef(t, bson.DBRef{Collection: "coll0", ID: one}, ref("$ref", "coll0", "$id", one))
	encodeDBRef(t, bson.DBRef{Collection: "coll0"}, ref("$ref", "coll0", "$id", nil))
	encodeDBRef(t, bson.DBRef{Collection: "coll0", ID: one, Database: "db0"}, ref("$ref", "coll0", "$id", one, "$db", "db0"))
}

func TestDBRefProseEncoding2ExtraFields(t *testing.T) {
	for _, extra := range []bson.D{
		ref("foo", true, "bar", false), ref("meta", ref("foo", one, "bar", int32(2))), ref("$foo", "bar"), ref("foo.bar", int32(0)),
	} {
		encodeDBRef(t, bson.DBRef{Collection: "coll0", ID: one, Extra: extra}, append(ref("$ref", "coll0", "$id", one), extra...))
	}
	encodeDBRef(t, bson.DBRef{Collection: "coll0", ID: one, Database: "db0", Extra: ref("foo", "bar")},
		ref("$ref", "coll0", "$id", one, "$db", "db0", "foo", "bar"))
}

func TestDBRefProseEncoding3Reorders(t *testing.T) {
	for _, tt := range outOfOrder {
		r, err := decodeDBRef(t, tt.doc)
		if err != nil {
			t.Errorf("%v: %v", tt.doc, err)
			continue
		}
		encodeDBRef(t, r, tt.again)
	}
}

func TestDBRefRefusesDoubleKeys(t *testing.T) {
	if got, err := decodeDBRef(t, ref("$ref", "a", "$id", one, "$id", one)); err == nil {
		t.Errorf("got %v, want an error", got)
	}
	if got, err := bson.Marshal(bson.DBRef{Collection: "a", Extra: ref("$id", one)}); err == nil {
		t.Errorf("got %v, want an error", bson.Raw(got))
	}
}

func ExampleParseDBRef() {
	doc, _ := bson.ParseExtJSON([]byte(`{"$ref": "users", "$id": 7, "note": "author"}`))
	ref, err := bson.ParseDBRef(doc)
	fmt.Println(ref.Collection, ref.ID, ref.Extra, err)
	// Output: users 7 {"note":"author"} <nil>
}

// Nothing is decoded as a DBRef unless a DBRef is asked for.
func TestDBRefIsADocument(t *testing.T) {
	for _, v := range []any{bson.DBRef{Collection: "c", ID: int32(1)}, ref("$ref", 1), ref("$ref", "c", "$id", 1, "$db", 2)} {
		doc, err := bson.Marshal(bson.D{{Key: "a", Value: v}})
		if err != nil {
			t.Fatal(err)
		}
		var d bson.D
		var m map[string]any
		if err := errors.Join(bson.Unmarshal(doc, &d), bson.Unmarshal(doc, &m)); err != nil {
			t.Fatal(err)
		}
		if _, ok := d[0].Value.(bson.D); !ok {
			t.Errorf("a D holds a %T", d[0].Value)
		}
		if _, ok := m["a"].(bson.DBRef); ok {
			t.Error("a map holds a DBRef")
		}
	}
}
