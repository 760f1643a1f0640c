package pipeline

import (
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
)

// collections is an Env that has documents by the names of collections.
type collections struct {
	Env
	docs map[string][]bson.Raw
}

func (c collections) Resolve(ns Namespace) (Namespace, []bson.Raw, error) { return ns, nil, nil }

func (c collections) Find(ns Namespace, filter *query.Filter) (Iterator, error) {
	src := FromSlice(append([]bson.Raw(nil), c.docs[ns.Coll]...))
	if filter == nil {
		return src, nil
	}
	return (&matchStage{filter: filter}).open(src)
}

// pipe runs a pipeline of a 4.4 and shows what comes out, or the error.
func pipe(t *testing.T, stages string, docs ...string) string {
	t.Helper()
	var in []bson.Raw
	for _, doc := range docs {
		in = append(in, parseDoc(t, doc))
	}
	list, err := StagesOf(parseDoc(t, `{"p": [`+stages+`]}`).Lookup("p"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(list, &Options{Version: expr.Version{Major: 4, Minor: 4}, NS: Namespace{"db", "c"}, Env: collections{docs: map[string][]bson.Raw{"c": in}}})
	if err != nil {
		return err.Error()
	}
	it, err := p.Run(FromSlice(in))
	if err != nil {
		return err.Error()
	}
	defer it.Close()
	var out []string
	for {
		doc, err := it.Next()
		if err != nil {
			return err.Error()
		}
		if doc == nil {
			return strings.Join(out, " ")
		}
		out = append(out, expr.Text(bsondoc.DocumentValue(doc)))
	}
}

// TestMatchMoves checks what a $match goes before: there, what it drops cannot make a stage fail.
func TestMatchMoves(t *testing.T) {
	const fails = `{"z": {"$toInt": "$s"}}`
	const failed = "ConversionFailure: Failed to parse number 'x' in $convert with no onError value: Did not consume whole string."
	for _, c := range []struct{ stages, want string }{
		{`{"$addFields": ` + fails + `}, {"$match": {"b": 2}}`, ""},
		{`{"$addFields": ` + fails + `}, {"$match": {"b": 1}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$match": {"z": 2}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$match": {"z.y": 2}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$match": {"z": 1, "b": 2}}`, ""}, // the part that can
		{`{"$addFields": ` + fails + `}, {"$match": {"$or": [{"z": 1}, {"b": 2}]}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$match": {"$or": [{"d": 1}, {"b": 2}]}}`, ""},
		{`{"$addFields": ` + fails + `}, {"$match": {"$nor": [{"z": 1}, {"b": 1}]}}`, ""}, // each by itself
		{`{"$addFields": ` + fails + `}, {"$match": {"$nor": [{"z": 1, "b": 1}]}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$match": {"$expr": {"$eq": ["$b", 2]}}}`, failed}, // stays
		{`{"$addFields": ` + fails + `}, {"$match": {"b": {"$elemMatch": {"$gt": 1}}}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$match": {"b": {"$not": {"$lt": 2}}}}`, ""},
		{`{"$project": {"z": {"$toInt": "$s"}, "b": 1}}, {"$match": {"b": 2}}`, ""},
		{`{"$project": {"z": {"$toInt": "$s"}}}, {"$match": {"b": 2}}`, failed}, // b is missing then
		{`{"$project": {"z": {"$toInt": "$s"}, "n": "$b"}}, {"$match": {"n": 2}}`, ""},
		// Fields that $map makes of an array's have other names in front of it.
		{`{"$addFields": {"z": {"$toInt": "$s"}, "d": {"$map": {"input": "$l", "as": "i", "in": {"e": "$$i.f"}}}}}, {"$match": {"d.e": 2}}`, ""},
		{`{"$addFields": {"z": {"$toInt": "$s"}, "d": {"$map": {"input": "$l", "in": {"e": {"f": "$$this.f"}}}}}}, {"$match": {"d.e.f": 2}}`, failed},
		{`{"$addFields": {"z": {"$toInt": "$s"}, "d": {"$map": {"input": "$l", "in": {"e": "$$this.f"}}}}}, {"$match": {"d": 2}}`, failed},
		{`{"$addFields": {"z": {"$toInt": "$s"}, "d": {"$map": {"input": "$l", "in": {"e": "$b"}}}}}, {"$match": {"d.e": 2}}`, failed},
		{`{"$addFields": {"z": {"$toInt": "$s"}, "d": {"$map": {"input": "$l", "as": "i", "in": {"e": {"$map": {"input": "$$i.m", "as": "k", "in": {"f": "$$k.n"}}}}}}}}, {"$match": {"d.e.f": 2}}`, ""},
		{`{"$addFields": {"z": {"$toInt": "$s"}, "d": {"$map": {"input": "$l", "as": "i", "in": {"e": {"$map": {"input": "$$i.m", "as": "k", "in": {"f": "$$i.n"}}}}}}}}, {"$match": {"d.e.f": 2}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$sort": {"z": 1}}, {"$match": {"b": 2}}`, ""},
		{`{"$addFields": ` + fails + `}, {"$unwind": "$z"}, {"$match": {"b": 2}}`, ""},
		{`{"$addFields": ` + fails + `}, {"$limit": 1}, {"$match": {"b": 2}}`, failed},
		{`{"$addFields": ` + fails + `}, {"$_internalInhibitOptimization": {}}, {"$match": {"b": 2}}`, failed},
		{`{"$group": {"_id": {"$toInt": "$s"}}}, {"$match": {"_id": 2}}`, failed},
		{`{"$lookup": {"from": "c", "let": {}, "pipeline": [{"$set": ` + fails + `}], "as": "j"}}, {"$match": {"b": 2}}`, ""},
		{`{"$lookup": {"from": "c", "let": {}, "pipeline": [{"$set": ` + fails + `}], "as": "j"}}, {"$match": {"j.b": 2}}`, failed},
	} {
		if got := pipe(t, c.stages, `{"_id": 1, "s": "x", "b": 1}`); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.stages, got, c.want)
		}
	}
}

// TestSkipMoves checks what a $skip goes before: there, what it drops cannot make a stage fail.
func TestSkipMoves(t *testing.T) {
	const failed = "Location16554: $add only supports numeric or date types, not string"
	for _, c := range []struct{ stages, want string }{
		{`{"$project": {"x": {"$add": ["$a", 1]}}}, {"$skip": 1}`, "{_id: 2, x: 2}"},
		{`{"$addFields": {"x": {"$add": ["$a", 1]}}}, {"$skip": 1}`, "{_id: 2, a: 1, x: 2}"},
		{`{"$set": {"x": {"$add": ["$a", 1]}}}, {"$unset": "a"}, {"$skip": 1}`, "{_id: 2, x: 2}"},
		{`{"$replaceWith": {"x": {"$add": ["$a", 1]}}}, {"$skip": 1}, {"$limit": 1}`, "{x: 2}"},
		{`{"$replaceRoot": {"newRoot": {"x": {"$add": ["$a", 1]}}}}, {"$skip": 0}`, failed},
		{`{"$project": {"x": {"$add": ["$a", 1]}}}, {"$limit": 5}, {"$skip": 1}`, failed},
		{`{"$project": {"x": {"$add": ["$a", 1]}}}, {"$sort": {"_id": 1}}, {"$skip": 1}`, failed},
		{`{"$project": {"x": {"$add": ["$a", 1]}}}, {"$_internalInhibitOptimization": {}}, {"$skip": 1}`, failed},
		{`{"$redact": {"$cond": [{"$add": ["$a", 1]}, "$$KEEP", "$$PRUNE"]}}, {"$skip": 1}`, failed},
	} {
		if got := pipe(t, c.stages, `{"_id": 1, "a": "s"}`, `{"_id": 2, "a": 1}`); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.stages, got, c.want)
		}
	}
}

// TestPlaces checks where a field goes that was there before: to its place.
func TestPlaces(t *testing.T) {
	const doc, other = `{"_id": 1, "a": 5, "b": [], "c": 7}`, `{"_id": 2, "x": 5}`
	for _, c := range []struct{ stages, want string }{
		{`{"$unset": "a"}, {"$set": {"a": 9}}`, "{_id: 1, a: 9, b: [], c: 7}"},
		{`{"$project": {"a": 0}}, {"$match": {}}, {"$limit": 2}, {"$addFields": {"a": 9}}`, "{_id: 1, a: 9, b: [], c: 7}"},
		{`{"$unset": "a"}, {"$_internalInhibitOptimization": {}}, {"$set": {"a": 9}}`, "{_id: 1, a: 9, b: [], c: 7}"},
		{`{"$unset": "a"}, {"$sort": {"c": 1}}, {"$set": {"a": 9}}`, "{_id: 1, a: 9, b: [], c: 7}"},
		{`{"$unset": "a"}, {"$sample": {"size": 1}}, {"$set": {"a": 9}}`, "{_id: 1, a: 9, b: [], c: 7}"},
		{`{"$unset": ["a", "b"]}, {"$set": {"b": 1}}, {"$set": {"a": 9}}`, "{_id: 1, a: 9, b: 1, c: 7}"},
		{`{"$unset": "b"}, {"$unset": "a"}, {"$set": {"n": 1}}, {"$set": {"b": 9}}`, "{_id: 1, b: 9, c: 7, n: 1}"},
		{`{"$set": {"a": "$$REMOVE"}}, {"$set": {"a": 9}}`, "{_id: 1, a: 9, b: [], c: 7}"},
		{`{"$unset": "a"}, {"$set": {"a.x": 9}}`, "{_id: 1, a: {x: 9}, b: [], c: 7}"},
		{`{"$unset": "a"}, {"$lookup": {"from": "none", "localField": "c", "foreignField": "c", "as": "a"}}`, "{_id: 1, a: [], b: [], c: 7}"},
		{`{"$unset": "a"}, {"$graphLookup": {"from": "none", "startWith": "$c", "connectFromField": "c", "connectToField": "c", "as": "a"}}`, "{_id: 1, a: [], b: [], c: 7}"},
		{`{"$unwind": {"path": "$b", "preserveNullAndEmptyArrays": true}}, {"$set": {"b": 9}}`, "{_id: 1, a: 5, b: 9, c: 7}"},
		{`{"$unset": "a"}, {"$unwind": {"path": "$c", "includeArrayIndex": "a"}}`, "{_id: 1, a: null, b: [], c: 7}"},
		// What is computed as missing has a place, too.
		{`{"$set": {"n": "$none", "m": 1}}, {"$set": {"n": 2}}`, "{_id: 1, a: 5, b: [], c: 7, n: 2, m: 1}"},
		{`{"$set": {"n": "$none"}}, {"$set": {"m": 1}}, {"$set": {"n": 2}}`, "{_id: 1, a: 5, b: [], c: 7, n: 2, m: 1}"},
		{`{"$project": {"n": "$none", "m": "$c"}}, {"$set": {"n": 2}}`, "{_id: 1, n: 2, m: 7}"},
		// It is gone in what is a new document.
		{`{"$unset": "a"}, {"$project": {"b": 1, "c": 1}}, {"$set": {"a": 9}}`, "{_id: 1, b: [], c: 7, a: 9}"},
		{`{"$unset": "a"}, {"$replaceRoot": {"newRoot": {"c": "$c"}}}, {"$set": {"a": 9}}`, "{c: 7, a: 9}"},
	} {
		if got := pipe(t, c.stages, doc); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.stages, got, c.want)
		}
	}
	// Each document has its own places.
	if got, want := pipe(t, `{"$unset": "x"}, {"$set": {"y": 1}}, {"$sort": {"_id": -1}}, {"$set": {"x": 9}}`, `{"_id": 1, "x": 1, "a": 1}`, other), "{_id: 2, x: 9, y: 1} {_id: 1, x: 9, a: 1, y: 1}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
