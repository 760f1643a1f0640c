package mongotest_test

import (
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// transcript runs commands on database t of a deployment of its own. The text has a command per
// line; a line that is indented says what an element of its reply is, with the path first, "-" for
// none and with \. for a dot within a name. A
// command without such a line has to succeed.
func transcript(t *testing.T, version, text string, opts ...mongotest.Option) {
	t.Helper()
	d := mongotest.Start(t, append([]mongotest.Option{mongotest.Version(version)}, opts...)...)
	c := dial(t, d.Hosts()[0])
	var reply bson.Raw
	last, checked := "", true
	settle := func() {
		if !checked && reply.Lookup("ok").AsBool() != true {
			t.Errorf("%s: %s: %v", version, last, reply)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		body := strings.TrimSpace(line)
		switch {
		case body == "":
		case strings.HasPrefix(body, "{"):
			settle()
			db := `, "$db": "t"}`
			if strings.Contains(body, `"$db": "`) {
				db = "}"
			}
			last, checked = body, false
			reply = command(t, c, extJSON(t, strings.TrimSuffix(body, "}")+db))
		default:
			checked = true
			path, want, _ := strings.Cut(body, " ")
			got := "-"
			parts := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
			for i := range parts {
				parts[i] = strings.ReplaceAll(parts[i], "\x00", ".")
			}
			if v := reply.Lookup(parts...); v.Type != 0 {
				got = v.String()
			}
			if got != strings.TrimSpace(want) {
				t.Errorf("%s: %s\n%s: %s, want %s\n%v", version, last, path, got, want, reply)
			}
		}
	}
	settle()
}

// An index never loses what a query matches, nor finds more.
func TestBehaviourOfIndexes(t *testing.T) {
	transcript(t, "5.0", `
		{"insert": "c", "documents": [{"_id": 1, "s": [{"l": 1, "n": 90}, {"l": 2, "n": 0}]}, {"_id": 2, "s": [{"l": 2, "n": 50}]}]}
		{"createIndexes": "c", "indexes": [{"key": {"s.l": 1, "s.n": 1}, "name": "x"}, {"key": {"s.n": 1, "z": 1, "s.l": 1}, "name": "y"}]}
		{"find": "c", "filter": {"s.l": 2, "s.n": {"$gt": 30}}, "projection": {"_id": 1}, "sort": {"_id": 1}}
			cursor.firstBatch [{"_id":1},{"_id":2}]
		{"find": "c", "filter": {"s.l": 2, "s.n": 90, "z": null}, "projection": {"_id": 1}, "hint": "y"}
			cursor.firstBatch [{"_id":1}]
		{"find": "c", "filter": {"s": {"$elemMatch": {"l": 2, "n": {"$gt": 30}}}}, "projection": {"_id": 1}, "hint": "x"}
			cursor.firstBatch [{"_id":2}]
		{"insert": "g", "documents": [{"_id": 1, "p": [1, 1]}, {"_id": 2}, {"_id": 3, "q": 1}, {"_id": 4, "q": 2}]}
		{"createIndexes": "g", "indexes": [{"key": {"p": "2d"}, "name": "2d"}, {"key": {"p": "2dsphere"}, "name": "s"}, {"key": {"r": "hashed"}, "name": "h"}, {"key": {"q": "hashed"}, "sparse": true, "name": "hs"}, {"key": {"z": "hashed"}, "name": "part", "partialFilterExpression": {"q": {"$gt": 1}}}]}
		{"find": "g", "hint": "s", "projection": {"_id": 1}}
			cursor.firstBatch [{"_id":1}]
		{"find": "g", "hint": "h", "projection": {"_id": 1}}
			cursor.firstBatch [{"_id":1},{"_id":2},{"_id":3},{"_id":4}]
		{"find": "g", "hint": "hs", "projection": {"_id": 1}}
			cursor.firstBatch [{"_id":4},{"_id":3}]
		{"find": "g", "hint": "part", "projection": {"_id": 1}}
			cursor.firstBatch [{"_id":4}]
	`)
}

// Stages that read other collections compare as the pipeline does, whatever the collections do.
func TestBehaviourOfCollations(t *testing.T) {
	transcript(t, "5.0", `
		{"insert": "plain", "documents": [{"_id": "a"}, {"_id": "b"}]}
		{"create": "ci", "collation": {"locale": "en", "strength": 2}}
		{"insert": "ci", "documents": [{"_id": "A"}, {"_id": "B"}]}
		{"aggregate": "ci", "pipeline": [{"$lookup": {"from": "plain", "localField": "_id", "foreignField": "_id", "as": "r"}}], "cursor": {}}
			cursor.firstBatch [{"_id":"A","r":[{"_id":"a"}]},{"_id":"B","r":[{"_id":"b"}]}]
		{"aggregate": "plain", "pipeline": [{"$lookup": {"from": "ci", "localField": "_id", "foreignField": "_id", "as": "r"}}], "cursor": {}}
			cursor.firstBatch [{"_id":"a","r":[]},{"_id":"b","r":[]}]
		{"insert": "g", "documents": [{"_id": "foo", "name": "X", "next": ["y"]}, {"_id": "FOO", "name": "y", "next": []}]}
		{"aggregate": "g", "pipeline": [{"$match": {"_id": "foo", "name": "X"}}, {"$graphLookup": {"from": "g", "startWith": "$name", "connectFromField": "next", "connectToField": "name", "as": "r"}}, {"$project": {"n": {"$size": "$r"}}}], "collation": {"locale": "en", "strength": 2}, "cursor": {}}
			cursor.firstBatch.0.n 2
		{"createIndexes": "to", "indexes": [{"key": {"b": -1, "a": 1}, "name": "u", "unique": true, "sparse": true}, {"key": {"c": 1}, "name": "c", "unique": true, "collation": {"locale": "fr"}}]}
		{"aggregate": "plain", "pipeline": [{"$project": {"a": "x", "b": "y"}}, {"$limit": 1}, {"$merge": {"into": "to", "on": ["a", "b"]}}], "cursor": {}}
		{"aggregate": "plain", "pipeline": [{"$merge": {"into": "to", "on": "c"}}], "cursor": {}}
			code 51183
		{"aggregate": "plain", "pipeline": [{"$merge": {"into": "ci", "on": "_id"}}], "cursor": {}}
			code 51183
	`)
	for depth, want := range map[int]string{20: "1.0", 21: "0.0"} {
		stages := "[]"
		for range depth {
			stages = `[{"$lookup": {"from": "c", "as": "r", "pipeline": ` + stages + `}}]`
		}
		transcript(t, "5.0", `{"aggregate": "c", "pipeline": `+stages+`, "cursor": {}}
			ok `+want)
	}
}

// Options that do not go together.
func TestBehaviourOfOptions(t *testing.T) {
	transcript(t, "5.0", `
		{"insert": "c", "documents": [{"_id": 1, "a": 1}]}
		{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}
		{"find": "c", "sort": {"$natural": 1}, "hint": {"a": 1}}
			errmsg "index hint not allowed with $natural sort order"
		{"find": "c", "sort": {"$natural": 1}, "hint": {"$natural": 1}}
		{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"b": 1}}, "sort": {"a": 1}, "fields": {"k": {"$meta": "sortKey"}}}
			errmsg "Cannot use a $meta sortKey projection in findAndModify commands."
		{"create": "v", "pipeline": [{"$match": {}}]}
			errmsg "'pipeline' cannot be specified without 'viewOn'"
	`)
	transcript(t, "5.0", `
		{"create": "capped", "capped": true, "size": 4096}
		{"insert": "capped", "documents": [{"_id": 1}], "lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "startTransaction": true, "autocommit": false}
			writeErrors.0.code 263
	`, mongotest.ReplicaSet(1))
}

// What an index cannot hold, or not be found by, is refused.
func TestBehaviourOfSpecialIndexes(t *testing.T) {
	transcript(t, "5.0", `
		{"createIndexes": "t", "indexes": [{"key": {"a.b": 1, "words": "text", "z": 1}, "name": "x"}]}
		{"insert": "t", "documents": [{"_id": 1, "a": {"b": []}, "words": "sun"}]}
			writeErrors.0.code 201
		{"insert": "t", "documents": [{"_id": 1, "words": "sun", "z": [1]}]}
			writeErrors.0.errmsg "Field 'z' of text index contains an array in document: { _id: 1, words: \"sun\", z: [ 1 ] }"
		{"insert": "t", "documents": [{"_id": 1, "a": {"b": 5}, "words": ["sun", "moon"]}, {"_id": 2, "words": "moon"}]}
		{"find": "t", "filter": {"$text": {"$search": "moon"}}}
			code 291
		{"find": "t", "filter": {"$text": {"$search": "moon"}, "a.b": {"$in": [5, 6]}}}
			code 291
		{"find": "t", "filter": {"$text": {"$search": "moon"}, "a.b": 5}, "projection": {"_id": 1}}
			cursor.firstBatch [{"_id":1}]
		{"find": "t", "filter": {"$text": {"$search": "moon"}, "a.b": null}, "projection": {"_id": 1}}
			cursor.firstBatch [{"_id":2}]
		{"createIndexes": "n", "indexes": [{"key": {"a.0": 1, "words": "text"}, "name": "x"}]}
		{"insert": "n", "documents": [{"_id": 1, "a": [0, 1]}, {"_id": 2, "a": {"0": 1}}]}
			n 2
		{"insert": "n", "documents": [{"_id": 3, "a": [[0], 1]}]}
			n 0
		{"createIndexes": "h", "indexes": [{"key": {"a": 1, "b": "hashed", "c": 1}, "name": "x"}]}
		{"insert": "h", "documents": [{"_id": 1, "c": []}]}
			writeErrors.0.code 16766
		{"insert": "h", "documents": [{"_id": 1, "a": [1]}]}
			writeErrors.0.code 16766
		{"createIndexes": "i", "indexes": [{"key": {"a.$**": "text"}, "name": "x"}]}
			code 67
		{"createIndexes": "i", "indexes": [{"key": {"$db": 1}, "name": "x"}], "$db": "t"}
			code 67
		{"createIndexes": "i", "indexes": [{"key": {"a.$db": 1}, "name": "x"}], "$db": "t"}
		{"_hashBSONElement": "hashthis", "seed": 1}
			out 6271151123721111923
	`)
}

// What an index has of a document that lacks the field is null, and that is what distinct finds if
// it takes the values from there.
func TestBehaviourOfDistinct(t *testing.T) {
	transcript(t, "5.0", `
		{"insert": "c", "documents": [{"_id": 1, "a": {"b": 1}, "x": [{"b": 1}]}, {"_id": 2, "a": {"b": [2, 3]}}, {"_id": 3, "a": {"c": 1}}, {"_id": 4, "a": 5, "v": 1}]}
		{"distinct": "c", "key": "a.b"}
			values [1,2,3]
		{"createIndexes": "c", "indexes": [{"key": {"a.b": 1}, "name": "ab"}, {"key": {"x.b": 1}, "name": "xb"}, {"key": {"v": 1}, "sparse": true, "name": "v"}]}
		{"distinct": "c", "key": "a.b"}
			values [null,1,2,3]
		{"distinct": "c", "key": "x.b"}
			values [null,1]
		{"distinct": "c", "key": "v"}
			values [1]
		{"distinct": "c", "key": "a.b", "query": {"_id": 3}}
			values []
	`)
}

// Commands that ask for what there is not, or may not be.
func TestBehaviourOfCatalog(t *testing.T) {
	transcript(t, "5.0", `
		{"ping": 1, "apiStrict": false}
			code 4886600
		{"collStats": "none", "scale": {"$undefined": true}}
		{"collStats": "none", "scale": 0}
			errmsg "BSON field 'scale' value must be >= 1, actual value '0'"
		{"dbStats": 1, "scale": -2}
			errmsg "Scale factor must be greater than zero"
		{"dbStats": 1, "scale": "x"}
			code 14
		{"create": "c", "collation": {"locale": "en", "strength": 2}}
		{"convertToCapped": "c", "size": 1e20}
			errmsg "size cannot exceed 1 PB"
		{"convertToCapped": "c", "size": 10000}
		{"listCollections": 1, "filter": {"name": "c"}}
			cursor.firstBatch.0.options.collation.strength 2
		{"createIndexes": "i", "indexes": [{"key": {"a": 1}, "name": "x", "expireAfterSeconds": 60}, {"key": {"a": 1}, "name": "y", "collation": {"locale": "fr"}, "expireAfterSeconds": 60}]}
		{"collMod": "i", "index": {"keyPattern": {"a": 1}, "expireAfterSeconds": 7}}
			codeName "AmbiguousIndexKeyPattern"
		{"collMod": "i", "index": {"name": "x", "expireAfterSeconds": 7, "more": 1}}
			errmsg "BSON field 'collMod.index.more' is an unknown field."
		{"createIndexes": "i", "indexes": [{"key": {"b": 1}, "name": "b", "more": 1}], "ignoreUnknownIndexOptions": true}
		{"listIndexes": "i"}
			cursor.firstBatch.3.more -
			cursor.firstBatch.3.name "b"
		{"create": "d", "idIndex": {"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "en"}}}
			errmsg "'idIndex' must have the same collation as the collection."
		{"create": "d", "idIndex": {"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "en"}}, "collation": {"locale": "en"}}
		{"create": "x", "validator": {"a": 1}, "$db": "local"}
			code 72
		{"create": "system.js", "validator": {"a": 1}}
			code 72
		{"insert": "system.views", "documents": [{"_id": "t.v", "viewOn": "c", "pipeline": []}]}
			errmsg "cannot write to t.system.views"
		{"aggregate": "c", "pipeline": [{"$out": "system.views"}], "cursor": {}}
			ok 0.0
	`)
	transcript(t, "4.4", `
		{"collStats": "none", "scale": {"$undefined": true}}
		{"collStats": "none", "scale": "x"}
			errmsg "scale has to be a number >= 1"
	`)
}

// What the oplog has of views and of documents that are not there is applied.
func TestBehaviourOfApplyOps(t *testing.T) {
	transcript(t, "5.0", `
		{"insert": "c", "documents": [{"_id": 1, "a": 1}]}
		{"applyOps": [{"op": "i", "ns": "t.c", "o": []}], "$db": "admin"}
			errmsg "BSON field 'applyOps.o' is the wrong type 'array', expected type 'object'"
		{"applyOps": [{"op": "u", "ns": "t.c", "o2": {"_id": 2}, "o": {"$set": {"a": 2}}}], "$db": "admin"}
		{"applyOps": [{"op": "u", "ns": "t.c", "o2": {"_id": 3}, "o": {"$set": {"a": 3}}}], "alwaysUpsert": false, "$db": "admin"}
			codeName "UpdateOperationFailed"
		{"find": "c"}
			cursor.firstBatch [{"_id":1,"a":1},{"_id":2,"a":2}]
		{"create": "other", "viewOn": "c"}
		{"applyOps": [{"op": "i", "ns": "t.system.views", "o": {"_id": "t.v", "viewOn": "c", "pipeline": [{"$match": {"a": 2}}]}}], "$db": "admin"}
		{"find": "v"}
			cursor.firstBatch [{"_id":2,"a":2}]
		{"applyOps": [{"op": "u", "ns": "t.system.views", "o2": {"_id": "t.v"}, "o": {"_id": "t.v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}]}}], "$db": "admin"}
		{"find": "v"}
			cursor.firstBatch [{"_id":1,"a":1}]
		{"applyOps": [{"op": "d", "ns": "t.system.views", "o": {"_id": "t.v"}}], "$db": "admin"}
		{"listCollections": 1, "filter": {"name": "v"}}
			cursor.firstBatch []
	`)
}

// top and $collStats count what commands did on a collection, until it is another one.
func TestBehaviourOfTop(t *testing.T) {
	transcript(t, "5.0", `
		{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}
		{"find": "c", "batchSize": 1}
		{"count": "c"}
		{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}
		{"top": 1, "$db": "admin"}
			totals.t\.c.total.count 4
			totals.t\.c.readLock.count 2
			totals.t\.c.writeLock.count 2
			totals.t\.c.queries.count 1
			totals.t\.c.insert.count 1
			totals.t\.c.remove.count 1
			totals.t\.c.commands.count 1
			totals.t\.other -
		{"aggregate": "c", "pipeline": [{"$collStats": {"latencyStats": {}}}], "cursor": {}}
			cursor.firstBatch.0.latencyStats.reads.ops 2
			cursor.firstBatch.0.latencyStats.writes.ops 2
		{"drop": "c"}
		{"insert": "c", "documents": [{"_id": 1}]}
		{"top": 1, "$db": "admin"}
			totals.t\.c.total.count 1
	`)
}

// The name of a thread is that of its connection.
func TestBehaviourOfFailCommand(t *testing.T) {
	transcript(t, "5.0", `
		{"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": {"errorCode": 9, "failCommands": ["ping"], "threadName": "conn1"}, "$db": "admin"}
		{"ping": 1}
			code 9
		{"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": {"errorCode": 9, "failCommands": ["ping"], "threadName": "conn77"}, "$db": "admin"}
		{"ping": 1}
			ok 1.0
	`)
}
