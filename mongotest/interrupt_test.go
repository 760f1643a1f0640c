package mongotest_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
)

// endless is an aggregate that multiplies five documents to billions.
func endless(t *testing.T, options ...bson.E) bson.D {
	t.Helper()
	stages := bson.A{}
	for range 8 {
		stages = append(stages, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$range", Value: bson.A{0, 1000}}}}}}}, bson.D{{Key: "$unwind", Value: "$a"}})
	}
	// What the $match looks at is set before it, so that it cannot be moved to the front.
	stages = append(stages, bson.D{{Key: "$match", Value: bson.D{{Key: "a", Value: -1}}}})
	cmd := bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: stages}, {Key: "cursor", Value: bson.D{}}}
	return append(append(cmd, options...), bson.E{Key: "$db", Value: "t"})
}

func TestInterruptAggregate(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone())
	c := dial(t, d.Hosts()[0])
	ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}, {Key: "$db", Value: "t"}}))

	reply := run(t, c, endless(t, bson.E{Key: "maxTimeMS", Value: 20}))
	if code, _ := reply.Lookup("code").AsInt64(); code != 50 {
		t.Errorf("maxTimeMS: %v", reply)
	}

	running := func(n int) (id bson.RawValue) { // waits until so many of them run
		t.Helper()
		for {
			reply := ok(t, run(t, c, bson.D{{Key: "currentOp", Value: 1}, {Key: "command.aggregate", Value: "c"}, {Key: "$db", Value: "admin"}}))
			found := 0
			for v := range bson.Raw(reply.Lookup("inprog").Value).Values() {
				id = bson.Raw(v.Value).Lookup("opid")
				found++
			}
			if found == n {
				return id
			}
			time.Sleep(time.Millisecond)
		}
	}
	replies := make(chan bson.Raw, 1)
	other := dial(t, d.Hosts()[0])
	go func() { replies <- run(t, other, endless(t)) }()
	ok(t, run(t, c, bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: running(1)}, {Key: "$db", Value: "admin"}}))
	reply = <-replies
	if code, _ := reply.Lookup("code").AsInt64(); code != 11601 {
		t.Errorf("killOp: %v", reply)
	}

	gone := dial(t, d.Hosts()[0])
	send(t, gone, endless(t))
	running(1)
	gone.Close()
	running(0)

	send(t, dial(t, d.Hosts()[0]), endless(t))
	running(1)
	d.Stop() // hangs if the command does not end
}

// TestInterruptOneDocument ends commands that spend their time on a single document.
func TestInterruptOneDocument(t *testing.T) {
	const n = 40_000
	ring := make(bson.A, 0, n+1)
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / n)
		ring = append(ring, bson.A{10 * cos, 10 * sin})
	}
	polygon := bson.D{{Key: "type", Value: "Polygon"}, {Key: "coordinates", Value: bson.A{append(ring, ring[0])}}}
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"createIndexes": "places", "indexes": [{"key": {"at": "2dsphere"}, "name": "at"}], "$db": "t"}`)))
	ok(t, command(t, c, extJSON(t, `{"create": "checked", "validator": {"$jsonSchema": {"properties": {"words": {"items": {"not": {"pattern": "^(a+)+b"}}}}}}, "$db": "t"}`)))
	words := make(bson.A, 20_000)
	for i := range words {
		words[i] = strings.Repeat("a", 40)
	}
	filter := bson.D{{Key: "at", Value: bson.D{{Key: "$geoWithin", Value: bson.D{{Key: "$geometry", Value: polygon}}}}}}
	query := func(command, coll, field string, more ...bson.E) bson.D {
		return append(bson.D{{Key: command, Value: coll}, {Key: field, Value: filter}}, more...)
	}
	pipeline := bson.A{bson.D{{Key: "$match", Value: filter}}}
	for name, cmd := range map[string]bson.D{
		"an index":         {{Key: "insert", Value: "places"}, {Key: "documents", Value: bson.A{bson.D{{Key: "at", Value: polygon}}}}},
		"a validator":      {{Key: "insert", Value: "checked"}, {Key: "documents", Value: bson.A{bson.D{{Key: "words", Value: words}}}}},
		"a new validator":  query("create", "c", "validator"),
		"collMod":          query("collMod", "checked", "validator"),
		"a partial index":  {{Key: "createIndexes", Value: "checked"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a"}, {Key: "partialFilterExpression", Value: filter}}}}},
		"find":             query("find", "places", "filter"),
		"find a field":     query("find", "places", "filter", bson.E{Key: "projection", Value: bson.D{{Key: "at", Value: 1}}}),
		"count":            query("count", "places", "query"),
		"distinct":         query("distinct", "places", "query", bson.E{Key: "key", Value: "at"}),
		"findAndModify":    query("findAndModify", "places", "query", bson.E{Key: "remove", Value: true}),
		"aggregate":        {{Key: "aggregate", Value: "places"}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{}}},
		"explain find":     {{Key: "explain", Value: query("find", "places", "filter")}},
		"explain count":    {{Key: "explain", Value: query("count", "places", "query")}},
		"explain pipeline": {{Key: "explain", Value: bson.D{{Key: "aggregate", Value: "places"}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{}}}}},
		"listCollections":  {{Key: "listCollections", Value: 1}, {Key: "filter", Value: filter}},
		"profile":          {{Key: "profile", Value: 0}, {Key: "filter", Value: filter}},
	} {
		t.Run(name, func(t *testing.T) {
			reply := run(t, c, append(cmd, bson.E{Key: "maxTimeMS", Value: 100}, bson.E{Key: "$db", Value: "t"}))
			code, _ := reply.Lookup("code").Int32()
			if code == 0 {
				code, _ = reply.Lookup("writeErrors", "0", "code").Int32()
			}
			if code != 50 {
				t.Errorf("ends with %d", code)
			}
		})
	}
	send(t, c, bson.D{{Key: "insert", Value: "places"}, {Key: "documents", Value: bson.A{bson.D{{Key: "at", Value: polygon}}}}, {Key: "$db", Value: "t"}})
	d.Stop() // hangs for minutes if the index does not look at its command
}

// Items of large arrays are told apart in time that grows as the array does, and as before: 1 and
// 1.0 are equal, and the order of fields does not matter.
func TestUniqueItems(t *testing.T) {
	norace.Skip(t, "it compares 200,000 items")
	d := mongotest.Start(t, mongotest.Standalone())
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"create": "c", "validator": {"$jsonSchema": {"properties": {"a": {"uniqueItems": true}}}}, "$db": "t"}`)))
	insert := func(items bson.A) bool {
		reply := ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "a", Value: items}}}}, {Key: "$db", Value: "t"}}))
		code, _ := reply.Lookup("writeErrors", "0", "code").Int32()
		if code != 0 && code != 121 {
			t.Fatal(reply)
		}
		return code == 0
	}
	many := make(bson.A, 200_000)
	for i := range many {
		many[i] = i
	}
	ab := bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.A{1, 2}}}
	ba := bson.D{{Key: "b", Value: bson.A{1.0, int64(2)}}, {Key: "a", Value: 1.0}}
	for i, tc := range []struct {
		items bson.A
		ok    bool
	}{
		{many, true}, {append(many[:len(many):len(many)], 7.0), false},
		{bson.A{1, 1.0}, false}, {bson.A{0.0, math.Copysign(0, -1)}, false}, {bson.A{math.NaN(), math.NaN()}, false},
		{bson.A{"a", "b", nil}, true}, {bson.A{nil, nil}, false}, {bson.A{true, 1}, true},
		{bson.A{ab, ba}, false}, {bson.A{ab, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.A{2, 1}}}}, true}, {bson.A{bson.A{1, 2}, bson.A{2, 1}}, true},
	} {
		if got := insert(tc.items); got != tc.ok {
			t.Errorf("%d: valid is %t", i, got)
		}
	}
}
