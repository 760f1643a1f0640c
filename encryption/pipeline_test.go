package encryption_test

import (
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
)

// TestAutoLookup reads several collections with Queryable Encryption in one pipeline: the server is
// told of each.
func TestAutoLookup(t *testing.T) {
	e := startAuto(t, encryption.AutoOptions{})
	ctx := t.Context()
	db := e.client.Database("db")
	for name, path := range map[string]string{"a": "e", "b": "e2"} {
		fields := bson.D{{Key: "fields", Value: bson.A{bson.D{{Key: "path", Value: path}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: e.id},
			{Key: "queries", Value: bson.D{{Key: "queryType", Value: "equality"}, {Key: "contention", Value: 0}}}}}}}
		must(e.plain.Database("db").RunCommand(ctx, bson.D{{Key: "create", Value: name}, {Key: "encryptedFields", Value: fields}}))
		for i, v := range []string{"x", "y"} {
			must(db.Collection(name).InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: path, Value: v}, {Key: "join", Value: 1}}))
		}
	}
	must(e.plain.Database("db").Collection("n").InsertOne(ctx, bson.D{{Key: "_id", Value: 0}, {Key: "join", Value: 1}}))
	lookup := func(from string, inner ...bson.D) bson.D {
		return bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: from}, {Key: "pipeline", Value: inner}, {Key: "as", Value: "m"}}}}
	}
	match := func(path, v string) bson.D { return bson.D{{Key: "$match", Value: bson.D{{Key: path, Value: v}}}} }
	clean := bson.D{{Key: "$project", Value: bson.D{{Key: "__safeContent__", Value: 0}, {Key: "join", Value: 0}}}}
	for _, tt := range []struct {
		coll     string
		pipeline []bson.D
		want     string
	}{
		{"a", []bson.D{match("e", "x"), lookup("b", match("e2", "y"), clean), clean}, `{"_id":0,"e":"x","m":[{"_id":1,"e2":"y"}]}`},
		{"a", []bson.D{match("e", "y"), lookup("a", match("e", "y"), clean), clean}, `{"_id":1,"e":"y","m":[{"_id":1,"e":"y"}]}`},
		{"n", []bson.D{lookup("b", match("e2", "x"), clean), clean}, `{"_id":0,"m":[{"_id":0,"e2":"x"}]}`},
		{"a", []bson.D{match("e", "x"), lookup("n", clean), clean}, `{"_id":0,"e":"x","m":[{"_id":0}]}`},
		{"n", []bson.D{lookup("b"), match("m.e2", "y"), {{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}}}}}, `{"_id":0}`},
	} {
		cursor, err := allium.Aggregate[bson.Raw](ctx, db.Collection(tt.coll), tt.pipeline)
		if err != nil {
			t.Errorf("%s %v: %v", tt.coll, tt.pipeline, err)
			continue
		}
		var got []string
		for _, doc := range must(cursor.All(ctx)) {
			got = append(got, doc.String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %v: %s", tt.coll, tt.pipeline, got)
		}
	}
	_, err := allium.Aggregate[bson.Raw](ctx, db.Collection("a"), []bson.D{lookup("coll")})
	if err == nil || !strings.Contains(err.Error(), "Cannot specify both encryptionInformation and csfleEncryptionSchemas") {
		t.Errorf("both kinds in one pipeline: %v", err)
	}
}
