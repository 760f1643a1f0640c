package write

import (
	"testing"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func TestIDL(t *testing.T) {
	v44, v50 := release.At(4, 4, 0), release.At(5, 0, 0)
	list := func(docs ...any) bson.A { return docs }
	update := func(entry bson.D) bson.D {
		return bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: list(entry)}}
	}
	q, u := bson.E{Key: "q", Value: bson.D{}}, bson.E{Key: "u", Value: bson.D{}}
	for _, test := range []struct {
		name    string
		version release.Version
		body    bson.D
		code    int32
		text    string
	}{
		{"good", v44, update(bson.D{q, u}), 0, ""},
		{"null is not given", v44, append(update(bson.D{q, u}), bson.E{Key: "ordered"}), 0, ""},
		{"null does not give a required field", v44, update(bson.D{{Key: "q"}, u}), 40414, "BSON field 'update.updates.q' is missing but a required field"},
		{"required, in order", v44, update(bson.D{}), 40414, "BSON field 'update.updates.q' is missing but a required field"},
		{"unknown", v44, append(update(bson.D{q, u}), bson.E{Key: "foo", Value: 1}), 40415, "BSON field 'update.foo' is an unknown field."},
		{"unknown inside", v44, update(bson.D{q, u, {Key: "foo", Value: 1}}), 40415, "BSON field 'update.updates.foo' is an unknown field."},
		{"duplicate inside", v44, update(bson.D{q, u, q}), 40413, "BSON field 'update.updates.q' is a duplicate field"},
		{"generic", v44, append(update(bson.D{q, u}), bson.E{Key: "maxTimeMS", Value: 1}), 0, ""},
		{"generic, but later", v44, append(update(bson.D{q, u}), bson.E{Key: "rawData", Value: true}), 40415, "BSON field 'update.rawData' is an unknown field."},
		{"strict before 5.0", v44, update(bson.D{q, u, {Key: "multi", Value: 1}}), 14, "BSON field 'update.updates.multi' is the wrong type 'int', expected type 'bool'"},
		{"strict since 5.0, too", v50, update(bson.D{q, u, {Key: "multi", Value: 1}}), 14, "BSON field 'update.updates.multi' is the wrong type 'int', expected type 'bool'"},
		{"bool", v50, update(bson.D{q, u, {Key: "multi", Value: "x"}}), 14, "BSON field 'update.updates.multi' is the wrong type 'string', expected type 'bool'"},
		{"no array before 5.0", v44, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: 1}}, 10065, "invalid parameter: expected an object (updates)"},
		{"no array since 5.0", v50, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: 1}}, 14, "BSON field 'update.updates' is the wrong type 'int', expected type 'array'"},
		{"element of an array", v44, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: list(bson.D{q, u}, 1)}}, 14, "BSON field 'update.updates.1' is the wrong type 'int', expected type 'object'"},
		{"document as an array", v44, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.D{{Key: "0", Value: bson.D{q, u}}}}}, 0, ""},
		{"document as an array, names", v44, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.D{{Key: "x", Value: bson.D{q, u}}}}}, 40422, "BSON array field 'update.updates' has an invalid value 'x' for an array field name."},
		{"document as an array, order", v44, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.D{{Key: "1", Value: bson.D{q, u}}}}}, 40423, "BSON array field 'update.updates' has a non-sequential value '1' for an array field name, expected value '0'."},
		{"field of a later version", v44, update(bson.D{q, u, {Key: "sort", Value: bson.D{}}}), 40415, "BSON field 'update.updates.sort' is an unknown field."},
		{"types before the name", v44, bson.D{{Key: "update", Value: 1}, {Key: "updates", Value: list(bson.D{q, u})}, {Key: "ordered", Value: 1}}, 14, "BSON field 'update.ordered' is the wrong type 'int', expected type 'bool'"},
		{"name", v44, bson.D{{Key: "update", Value: 1}, {Key: "updates", Value: list(bson.D{q, u})}}, 2, "collection name has invalid type int"},
		{"name before the number of operations", v44, bson.D{{Key: "update", Value: ".c"}, {Key: "updates", Value: list()}}, 73, "Collection names cannot start with '.'"},
		{"number of operations", v44, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: list()}}, 16, "Write batch sizes must be between 1 and 100000. Got 0 operations."},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &server.Request{Node: server.NewNode(&server.Config{Version: test.version}, server.Standalone, "", server.NewData()), DB: "db", Body: raw(t, test.body)}
			err := parseWrite(updateArgs, withRoom(updatesOf))(r)
			switch {
			case test.text == "" && err != nil:
				t.Fatal(err)
			case test.text != "" && err == nil:
				t.Fatal("no error")
			case test.text == "":
				return
			}
			if e := srverr.From(err); e.Code != test.code || e.Msg != test.text {
				t.Errorf("got  %d %s\nwant %d %s", e.Code, e.Msg, test.code, test.text)
			}
		})
	}
}

func TestIDLSequences(t *testing.T) {
	doc := raw(t, bson.D{{Key: "_id", Value: 1}})
	for _, test := range []struct {
		id   string
		docs int
		text string
	}{
		{"documents", 2, ""},
		{"other", 2, "BSON field 'insert.other' is an unknown field."},
		{"ordered", 1, "BSON field 'insert.ordered' is an unknown field."},
		{"documents.x", 1, "BSON field 'insert.documents.x' is an unknown field."},
	} {
		r := &server.Request{Node: server.NewNode(&server.Config{Version: release.At(8, 0, 0)}, server.Standalone, "", server.NewData()), DB: "db", Body: raw(t, bson.D{{Key: "insert", Value: "c"}}),
			Sequences: []wire.Sequence{{ID: test.id, Docs: append(append([]byte(nil), doc...), doc...)}}}
		err := parseWrite(insertArgs, newInserts)(r)
		switch {
		case test.text == "" && err != nil:
			t.Errorf("%s: %v", test.id, err)
		case test.text == "" && len(batchOf(r).docs) != test.docs:
			t.Errorf("%s: %d documents", test.id, len(batchOf(r).docs))
		case test.text != "" && (err == nil || srverr.From(err).Msg != test.text):
			t.Errorf("%s: %v", test.id, err)
		}
	}
}

func raw(t testing.TB, d bson.D) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
