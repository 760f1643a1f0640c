package analysis

import (
	"slices"
	"strings"
	"testing"

	"allium/bson"
)

// elsewhere are pipelines of db.n, a collection without encryption, that reach TARGET in every way
// in which a pipeline can reach another collection.
var elsewhere = []string{
	`{"$out": TARGET}`,
	`{"$merge": TARGET}`,
	`{"$merge": {"into": TARGET}}`,
	`{"$match": {"a": 1}}, {"$merge": {"into": TARGET, "on": "_id", "whenMatched": "replace"}}`,
	`{"$merge": {"into": TARGET, "let": {"v": "secret"}, "whenMatched": [{"$set": {"d": "$$v"}}]}}`,
	`{"$replaceWith": {"d": "secret"}}, {"$out": TARGET}`,
	`{"$lookup": {"from": TARGET, "localField": "a", "foreignField": "a", "as": "m"}}`,
	`{"$lookup": {"from": TARGET, "pipeline": [{"$match": {"d": "secret"}}], "as": "m"}}`,
	`{"$lookup": {"from": "z", "pipeline": [{"$lookup": {"from": TARGET, "pipeline": [{"$match": {"d": "secret"}}], "as": "m"}}], "as": "m"}}`,
	`{"$graphLookup": {"from": TARGET, "startWith": "secret", "connectFromField": "a", "connectToField": "d", "as": "m"}}`,
	`{"$facet": {"f": [{"$lookup": {"from": TARGET, "pipeline": [{"$match": {"d": "secret"}}], "as": "m"}}]}}`,
	`{"$facet": {"f": [{"$unionWith": {"coll": "z", "pipeline": [{"$lookup": {"from": TARGET, "pipeline": [], "as": "m"}}]}}]}}`,
	`{"$rankFusion": {"input": {"pipelines": {"a": [{"$match": {}}, {"$lookup": {"from": TARGET, "pipeline": [{"$match": {"d": "secret"}}], "as": "m"}}]}}}}`,
	`{"$future": {"steps": [[{"$merge": {"into": TARGET}}]]}}`,
	`{"$future": [{"name": "a", "then": [{"$out": TARGET}]}]}`,
}

// unions are those whose target is not a value of its own.
var unions = []string{
	`{"$unionWith": {"db": "DB", "coll": "COLL"}}`,
	`{"$unionWith": {"db": "DB", "coll": "COLL", "pipeline": [{"$match": {"d": "secret"}}]}}`,
	`{"$lookup": {"from": "z", "pipeline": [{"$unionWith": {"coll": "COLL", "db": "DB", "pipeline": [{"$match": {"d": "secret"}}]}}], "as": "m"}}`,
}

// TestElsewhere: a command of a collection without encryption must not reach an encrypted one of
// another database, in any way; and what it reaches without encryption is sent as it came.
func TestElsewhere(t *testing.T) {
	schemas := testSchemas(t)
	targets := map[string][]string{} // by namespace: how it is named
	for _, ns := range []string{"other.n", "other.q", "other.c"} {
		db, coll, _ := strings.Cut(ns, ".")
		name := `"db": "` + db + `", "coll": "` + coll + `"`
		targets[ns] = []string{`{` + name + `}`, `{"coll": "` + coll + `", "db": "` + db + `"}`, `{"atlas": {"clusterName": "x", ` + name + `}}`}
	}
	try := func(ns, stages string) {
		for _, form := range []string{
			`{"aggregate": "n", "pipeline": [STAGES], "cursor": {}}`,
			`{"aggregate": "n", "pipeline": [STAGES], "explain": true}`,
			`{"explain": {"aggregate": "n", "pipeline": [STAGES], "cursor": {}}}`,
			`{"create": "v", "viewOn": "n", "pipeline": [STAGES]}`,
			`{"collMod": "v", "viewOn": "n", "pipeline": [STAGES]}`,
		} {
			cmd := parse(t, strings.Replace(form, "STAGES", stages, 1))
			reached, err := Namespaces("db", cmd)
			if err != nil {
				t.Errorf("%s: %v", cmd, err)
				continue
			}
			if !slices.Contains(reached, ns) {
				t.Errorf("%s reaches %v", cmd, reached)
			}
			known := map[string]*Schema{}
			for _, ns := range reached {
				known[ns] = schemas[ns]
			}
			got, err := Analyze("db", cmd, known)
			if encrypts := schemas[ns].Encrypts(); encrypts != (err != nil) || err == nil && string(got.Command) != string(cmd) {
				t.Errorf("%s: encrypted %v, got %s, %v", cmd, encrypts, got.Command, err)
			}
		}
	}
	for ns, forms := range targets {
		for _, stages := range elsewhere {
			for _, form := range forms {
				try(ns, strings.ReplaceAll(stages, "TARGET", form))
			}
		}
		db, coll, _ := strings.Cut(ns, ".")
		for _, stages := range unions {
			try(ns, strings.NewReplacer("DB", db, "COLL", coll).Replace(stages))
		}
	}
	// Within a pipeline of another database, a name alone could be of either.
	try("other.n", `{"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [{"$unionWith": "n"}], "as": "m"}}`)
	// What a filter holds is no stage.
	cmd := parse(t, `{"aggregate": "n", "pipeline": [{"$match": {"x": {"$in": [{"$out": "other"}]}}}]}`)
	if reached, err := Namespaces("db", cmd); err != nil || len(reached) != 1 {
		t.Errorf("%s reaches %v, %v", cmd, reached, err)
	}
}

// TestElsewhereRefused are commands that name their target in a way that cannot be told, or that
// reach other collections by other means.
func TestElsewhereRefused(t *testing.T) {
	for _, text := range []string{
		`{"aggregate": 1, "pipeline": [{"$documents": [{"d": "x"}]}, {"$merge": {"into": "c"}}], "cursor": {}}`,
		`{"aggregate": 1, "pipeline": [{"$documents": [{"d": "x"}]}, {"$out": {"db": "other", "coll": "n"}}], "cursor": {}}`,
		`{"explain": {"aggregate": 1, "pipeline": [{"$out": "c"}], "cursor": {}}}`,
		`{"aggregate": "n", "pipeline": [{"$out": {"db": "other"}}], "cursor": {}}`,
		`{"aggregate": "n", "pipeline": [{"$merge": {"into": {"ns": "other.n"}}}], "cursor": {}}`,
		`{"aggregate": "n", "pipeline": [{"$merge": {"into": {"db": "other", "coll": "c", "coll": "n"}}}], "cursor": {}}`,
		`{"aggregate": "n", "pipeline": [{"$out": {"db": "db", "db": "other", "coll": "n"}}], "cursor": {}}`,
		`{"mapReduce": "n", "map": "m", "reduce": "r", "out": {"replace": "n", "db": "other"}}`,
		`{"cloneCollectionAsCapped": "n", "toCollection": "c", "size": 1}`,
		`{"convertToCapped": "n", "size": 1}`,
		`{"applyOps": [{"op": "i", "ns": "other.n", "o": {"d": "x"}}]}`,
		`{"explain": {"mapReduce": "n", "out": {"db": "other", "replace": "n"}}}`,
		`{"explain": {"renameCollection": "db.n", "to": "other.n"}}`,
		`{"bulkWrite": 1, "ops": [{"insert": 1, "document": {"d": "x"}}], "nsInfo": [{"ns": "db.n"}, {"ns": "other.n"}]}`,
		`{"explain": {"bulkWrite": 1, "ops": [{"insert": 1, "document": {"d": "x"}}], "nsInfo": [{"ns": "db.n"}, {"ns": "other.n"}]}}`,
		`{"bulkWrite": 1, "ops": [{"insert": 0, "document": {"d": "x"}}], "nsInfo": [{"ns": "db.n", "ns": "other.n"}]}`,
		`{"insert": "n", "documents": [{"d": "x"}], "$db": "other"}`,
		`{"explain": {"find": "n", "filter": {"d": "x"}, "$db": "other"}}`,
		`{"find": "n", "filter": {"d": "x"}, "$db": 1}`,
	} {
		cmd := parse(t, text)
		if reached, err := Namespaces("db", cmd); err == nil {
			t.Errorf("%s: reaches %v", cmd, reached)
		}
	}
	// A bulk write may be sent to one collection of whatever database.
	cmd := parse(t, `{"bulkWrite": 1, "ops": [{"insert": 0, "document": {"d": "x"}}], "nsInfo": [{"ns": "other.n"}], "$db": "admin"}`)
	if got, err := Analyze("admin", cmd, testSchemas(t)); err != nil || len(got.Marks) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestReachIsLinear: nested pipelines of many databases are not walked again and again.
func TestReachIsLinear(t *testing.T) {
	stage := `{"$match": {}}`
	for i := range 40 {
		stage = `{"$lookup": {"from": {"db": "d` + string(rune('a'+i%26)) + `", "coll": "c"}, "pipeline": [` + stage + `], "as": "m"}}`
	}
	reached, err := Namespaces("db", parse(t, `{"aggregate": "n", "pipeline": [`+stage+`]}`))
	if err != nil || len(reached) != 27 {
		t.Errorf("%v, %v", reached, err)
	}
}

// TestSchemasDecide are schemas whose parts must be told apart.
func TestSchemasDecide(t *testing.T) {
	number := strings.Replace(deterministic(keyA), `"string"`, `"long"`, 1)
	for _, tt := range []struct{ name, schema, command, want string }{
		{"one key, two types", object(`"a": ` + deterministic(keyA) + `, "b": ` + number),
			`{"find": "c", "filter": {"$expr": {"$eq": ["$a", "$b"]}}}`, "same key and type"},
		{"two parts of a schema", `{"bsonType": "object", "properties": {"k": ` + deterministic(keyA) + `}, "patternProperties": {"^k": ` + number + `}}`,
			`{"insert": "c", "documents": [{"k": "x"}]}`, "contradictory"},
		{"$redact below any name", `{"bsonType": "object", "properties": {"o": {"bsonType": "object", "additionalProperties": ` + object(`"d": `+deterministic(keyA)) + `}}}`,
			`{"aggregate": "c", "pipeline": [{"$redact": {"$cond": [{"$eq": ["$d", "x"]}, "$$KEEP", "$$DESCEND"]}}], "cursor": {}}`, "an encrypted field cannot"},
	} {
		s := jsonSchema(t, "db.c", parse(t, tt.schema), true)
		got, err := Analyze("db", parse(t, tt.command), map[string]*Schema{"db.c": s})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, %v", tt.name, got.Command, err)
		}
	}
	// A placeholder is found wherever it is.
	marking := bson.Binary{Subtype: bson.BinaryEncrypted, Data: []byte{0, 5, 0, 0, 0, 0}}
	for _, v := range []any{marking, bson.A{marking}, bson.D{{Key: "x", Value: marking}}, bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: marking}}}} {
		cmd := bson.Raw(value(d("find", "c", "filter", d("n", v))).Value)
		if _, err := Analyze("db", cmd, testSchemas(t)); err == nil || !strings.Contains(err.Error(), "cannot hold a placeholder") {
			t.Errorf("%s: %v", cmd, err)
		}
	}
}
