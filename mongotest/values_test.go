package mongotest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// $geoNear can look near what a variable has.
func TestNearVariable(t *testing.T) {
	for _, version := range []string{"5.0", "8.0"} {
		d := mongotest.Start(t, mongotest.Version(version))
		c := dial(t, d.Hosts()[0])
		for _, cmd := range []string{
			`{"insert": "places", "documents": [{"_id": 1, "p": {"type": "Point", "coordinates": [1, 1]}}, {"_id": 2, "p": {"type": "Point", "coordinates": [20, 20]}}], "$db": "t"}`,
			`{"createIndexes": "places", "indexes": [{"key": {"p": "2dsphere"}, "name": "p"}], "$db": "t"}`,
			`{"insert": "c", "documents": [{"_id": 1, "at": {"type": "Point", "coordinates": [19, 19]}}, {"_id": 2, "at": {"type": "Point", "coordinates": [2, 2]}}], "$db": "t"}`,
		} {
			ok(t, command(t, c, extJSON(t, cmd)))
		}
		const lookup = `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "places", "let": {"pt": "$at", "x": {"$arrayElemAt": ["$at.coordinates", 0]}}, "as": "near", "pipeline": [
			{"$geoNear": {"near": %s, "distanceField": "far"}}, {"$limit": 1}, {"$project": {"_id": 1}}]}}, {"$project": {"near": 1}}, {"$sort": {"_id": 1}}], "cursor": {}, "$db": "t"}`
		for near, want := range map[string]string{
			`"$$pt"`: `[{"_id":1,"near":[{"_id":2}]},{"_id":2,"near":[{"_id":1}]}]`,
			`{"type": "Point", "coordinates": ["$$x", "$$x"]}`: `[{"_id":1,"near":[{"_id":2}]},{"_id":2,"near":[{"_id":1}]}]`,
			`{"type": "Point", "coordinates": [0, 0]}`:         `[{"_id":1,"near":[{"_id":1}]},{"_id":2,"near":[{"_id":1}]}]`,
		} {
			reply := ok(t, command(t, c, extJSON(t, fmt.Sprintf(lookup, near))))
			if got := reply.Lookup("cursor", "firstBatch").String(); got != want {
				t.Errorf("%s near %s: %s, want %s", version, near, got, want)
			}
		}
		reply := ok(t, command(t, c, extJSON(t, `{"aggregate": "places", "pipeline": [{"$geoNear": {"near": "$$pt", "distanceField": "far"}}, {"$project": {"_id": 1}}], "let": {"pt": {"type": "Point", "coordinates": [30, 30]}}, "cursor": {}, "$db": "t"}`)))
		if got := reply.Lookup("cursor", "firstBatch").String(); got != `[{"_id":2},{"_id":1}]` {
			t.Errorf("%s with let: %s", version, got)
		}
		for _, near := range []string{`"$$nothing"`, `"$p"`, `1`} {
			if code, text := refusal(command(t, c, extJSON(t, `{"aggregate": "places", "pipeline": [{"$geoNear": {"near": `+near+`, "distanceField": "far"}}], "cursor": {}, "$db": "t"}`))); code == 0 {
				t.Errorf("%s near %s: %d %s", version, near, code, text)
			}
		}
	}
}

// Values that no integer of 64 bits holds are no divisor, and no remainder.
func TestModBounds(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"v": 4}], "$db": "t"}`)))
	for arg, want := range map[string]string{
		`[{"$numberDouble": "9.3e18"}, 0]`:               "malformed mod, divisor value is invalid :: caused by :: Out of bounds coercing to integral value",
		`[{"$numberDouble": "-9.3e18"}, 0]`:              "malformed mod, divisor value is invalid :: caused by :: Out of bounds coercing to integral value",
		`[2, {"$numberDouble": "1e300"}]`:                "malformed mod, remainder value is invalid :: caused by :: Out of bounds coercing to integral value",
		`[{"$numberDecimal": "9223372036854775808"}, 0]`: "malformed mod, divisor value is invalid :: caused by :: Out of bounds coercing to integral value",
		`[{"$numberDouble": "9223372036854775808"}, 0]`:  "malformed mod, divisor value is invalid :: caused by :: Out of bounds coercing to integral value",
		`[{"$numberDouble": "NaN"}, 0]`:                  "malformed mod, divisor value is invalid :: caused by :: Unable to coerce NaN/Inf to integral type",
		`[{"$numberDouble": "-9223372036854775808"}, 4]`: "",
		`[{"$numberLong": "9223372036854775807"}, 4]`:    "",
		`[2.9, 0]`: "",
	} {
		code, text := refusal(command(t, c, extJSON(t, `{"find": "c", "filter": {"v": {"$mod": `+arg+`}}, "$db": "t"}`)))
		if text != want || want != "" && code != 2 {
			t.Errorf("%s: %d %s, want %s", arg, code, text, want)
		}
	}
}

// Patterns and flags that are none.
func TestRegexRefusals(t *testing.T) {
	d := mongotest.Start(t, mongotest.Version("7.0"))
	c := dial(t, d.Hosts()[0])
	for filter, want := range map[string]int64{
		`{"v": {"$regularExpression": {"pattern": "a**", "options": ""}}}`: 51091,
		`{"v": {"$regex": "(a)**"}}`:                                       51091,
		`{"v": {"$regex": "foo", "$options": "123"}}`:                      51108,
		`{"v": {"$regex": "foo", "$options": "iq"}}`:                       51108,
		`{"v": {"$regex": "foo", "$options": "imsxu"}}`:                    0,
		`{"v": {"$regex": "a*+b++c?+d{2}+e*?f+?g??"}}`:                     0,
	} {
		if code, text := refusal(command(t, c, extJSON(t, `{"find": "c", "filter": `+filter+`, "$db": "t"}`))); code != want {
			t.Errorf("%s: %d %s, want %d", filter, code, text, want)
		}
	}
}

// What failCommand says since version 4.9.
func TestFailCommandText(t *testing.T) {
	for version, want := range map[string]string{"4.4": "Failing command due to 'failCommand' failpoint", "5.0": "Failing command via 'failCommand' failpoint", "8.0": "Failing command via 'failCommand' failpoint"} {
		for _, opt := range []mongotest.Option{mongotest.Standalone(), mongotest.Sharded(1, 1)} {
			d := mongotest.Start(t, mongotest.Version(version), opt)
			c := dial(t, d.Hosts()[0])
			ok(t, command(t, c, extJSON(t, `{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["ping"], "errorCode": 8}, "$db": "admin"}`)))
			if code, text := refusal(command(t, c, extJSON(t, `{"ping": 1, "$db": "t"}`))); code != 8 || text != want {
				t.Errorf("%s: %d %s", version, code, text)
			}
		}
	}
}

// A sort keeps no more than its limit, however much it reads.
func TestSortWithLimit(t *testing.T) {
	d := mongotest.Start(t, mongotest.Version("5.0"))
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 100000, "$db": "admin"}`)))
	for i := range 30 {
		ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i * 7 % 30}, {Key: "s", Value: strings.Repeat("x", 10000)}}}}, {Key: "$db", Value: "t"}}))
	}
	for more, want := range map[string]int64{`"limit": 3`: 0, `"limit": 4, "skip": 2`: 0, `"limit": 8`: 0, `"limit": 15`: 292, `"skip": 1`: 292, `"limit": 15, "allowDiskUse": true`: 0} {
		reply := command(t, c, extJSON(t, `{"find": "c", "sort": {"n": 1}, "projection": {"n": 1, "_id": 0}, `+more+`, "$db": "t"}`))
		code, text := refusal(reply)
		if code != want {
			t.Errorf("%s: %d %s, want %d", more, code, text, want)
		}
		if more == `"limit": 3` && reply.Lookup("cursor", "firstBatch").String() != `[{"n":0},{"n":1},{"n":2}]` {
			t.Errorf("%s: %v", more, reply)
		}
	}
}

// A specification of an index means the same in any order of its fields.
func TestIndexFieldsInAnyOrder(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	r := rand.New(rand.NewPCG(1, 2))
	shown := func() string {
		reply := command(t, c, extJSON(t, `{"listIndexes": "c", "$db": "t"}`))
		index, _ := reply.Lookup("cursor", "firstBatch", "1").Document()
		var fields []string
		for key, v := range index.All() {
			fields = append(fields, key+": "+v.String())
		}
		return strings.Join(slices.Sorted(slices.Values(fields)), ", ")
	}
	for _, spec := range []string{
		`{"key": {"$**": 1}, "name": "i", "wildcardProjection": {"a": 1, "b.c": 1}}`,
		`{"key": {"a": "text", "b": 1}, "name": "i", "weights": {"a": 3}, "default_language": "german", "language_override": "l", "textIndexVersion": 3}`,
		`{"key": {"a": "2d"}, "name": "i", "bits": 20, "min": -5, "max": 5}`,
		`{"key": {"a": "2dsphere"}, "name": "i", "2dsphereIndexVersion": 3}`,
		`{"key": {"a": 1}, "name": "i", "unique": true, "partialFilterExpression": {"b": {"$gt": 1}}, "collation": {"locale": "de"}, "hidden": true}`,
		`{"key": {"a": 1}, "name": "i", "expireAfterSeconds": 10, "sparse": true, "v": 2}`,
	} {
		want := ""
		fields := bson.D{}
		for key, v := range extJSON(t, spec).All() {
			fields = append(fields, bson.E{Key: key, Value: v})
		}
		for i := range 20 {
			reply := run(t, c, bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{fields}}, {Key: "$db", Value: "t"}})
			if code, text := refusal(reply); code != 0 {
				t.Errorf("%v: %d %s", fields, code, text)
			} else if got := shown(); i == 0 {
				want = got
			} else if got != want {
				t.Errorf("%v: %s, want %s", fields, got, want)
			}
			command(t, c, extJSON(t, `{"drop": "c", "$db": "t"}`))
			r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		}
	}
}

// The hash of a hashed index, whose example is the manual's.
func TestHashedIndexKey(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	reply := ok(t, command(t, c, extJSON(t, `{"aggregate": 1, "pipeline": [{"$documents": [{"val": "string to hash"}, {"val": null}, {}, {"val": 1}, {"val": {"$numberDouble": "1.7"}}]}, {"$project": {"h": {"$toHashedIndexKey": "$val"}}}], "cursor": {}, "$db": "t"}`)))
	hash := func(i string) int64 {
		v := reply.Lookup("cursor", "firstBatch", i, "h")
		n, isLong := v.Int64()
		if !isLong {
			t.Errorf("%s is a %s", i, v.Type)
		}
		return n
	}
	if n := hash("0"); n != 763543691661428748 {
		t.Errorf("the hash is %d", n)
	}
	if hash("1") != hash("2") || hash("3") != hash("4") || hash("1") == hash("3") {
		t.Errorf("the hashes are %v", reply)
	}
	old := dial(t, mongotest.Start(t, mongotest.Version("5.0")).Hosts()[0])
	if code, text := refusal(command(t, old, extJSON(t, `{"aggregate": 1, "pipeline": [{"$project": {"h": {"$toHashedIndexKey": "$val"}}}], "cursor": {}, "$db": "t"}`))); code == 0 {
		t.Errorf("5.0 has it: %s", text)
	}
}
