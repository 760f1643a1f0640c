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
			if strings.Contains(body, `"$db"`) {
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
			cursor.firstBatch [{"_id":3},{"_id":4}]
		{"find": "g", "hint": "part", "projection": {"_id": 1}}
			cursor.firstBatch [{"_id":4}]
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
			values [1]
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
