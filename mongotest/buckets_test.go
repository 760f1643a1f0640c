package mongotest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/internal/column"
)

// bucketsOf lists buckets with "n from..to meta" each.
func bucketsOf(t *testing.T, reply bson.Raw) string {
	t.Helper()
	var out []string
	batch, _ := ok(t, reply).Lookup("cursor", "firstBatch").Array()
	for v := range batch.Values() {
		b := bson.Raw(v.Value)
		from, _ := b.Lookup("control", "min", "t").DateTime()
		to, _ := b.Lookup("control", "max", "t").DateTime()
		n, compressed := b.Lookup("control", "count").AsInt64()
		if times, ok := b.Lookup("data", "t").Document(); ok == compressed {
			t.Errorf("bucket %v", b)
		} else if ok {
			for range times.All() {
				n++
			}
		}
		if id, _ := b.Lookup("_id").ObjectID(); id.Timestamp().Unix() != int64(from)/1000 {
			t.Errorf("%s does not begin with the bucket's time", id)
		}
		out = append(out, fmt.Sprintf("%d %d..%d %s", n, from, to, b.Lookup("meta")))
	}
	return strings.Join(out, "; ")
}

func TestBuckets(t *testing.T) {
	for _, tt := range []struct{ series, version, want string }{
		{`"granularity": "seconds"`, "5.0", `2 0..90000 {"s":1}; 1 0..30000 {"s":2}; 1 3660000..3700000 {"s":1}; 1 60000..61000 {"s":1}`},
		{`"granularity": "seconds"`, "8.2", `3 0..90000 {"s":1}; 1 0..30000 {"s":2}; 1 3660000..3700000 {"s":1}`},
		{`"granularity": "hours"`, "8.0", `4 0..3700000 {"s":1}; 1 0..30000 {"s":2}`},
		{`"bucketMaxSpanSeconds": 60, "bucketRoundingSeconds": 60`, "8.0", `1 0..5000 {"s":1}; 1 0..30000 {"s":2}; 2 60000..90000 {"s":1}; 1 3660000..3700000 {"s":1}`},
	} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(tt.version))
		c := dial(t, d.Hosts()[0])
		ok(t, command(t, c, extJSON(t, `{"create": "c", "timeseries": {"timeField": "t", "metaField": "m", `+tt.series+`}, "$db": "db"}`)))
		for i, row := range []string{`5000, 1`, `90000, 1`, `30000, 2`, `3700000, 1`, `61000, 1`} {
			ms, s, _ := strings.Cut(row, ", ")
			ok(t, command(t, c, extJSON(t, fmt.Sprintf(`{"insert": "c", "documents": [{"_id": %d, "t": {"$date": {"$numberLong": "%s"}}, "m": {"s": %s}, "v": {"a": %d, "b": "x"}}], "$db": "db"}`, i, ms, s, i))))
		}
		const sorted = `{"find": "system.buckets.c", "sort": {"control.min.t": 1, "meta.s": 1, "control.max.t": 1}, "$db": "db"}`
		got := bucketsOf(t, command(t, c, extJSON(t, sorted)))
		if sortParts(got) != sortParts(tt.want) {
			t.Errorf("%s %s\n got %s\nwant %s", tt.version, tt.series, got, tt.want)
		}
		if tt.version == "8.2" {
			raw := command(t, c, extJSON(t, `{"aggregate": "c", "pipeline": [{"$match": {"meta.s": 1, "control.min.v.a": {"$lt": 1}}}], "cursor": {}, "rawData": true, "$db": "db"}`))
			if got := bucketsOf(t, raw); got != `3 0..90000 {"s":1}` {
				t.Errorf("rawData gives %s", got)
			}
			if got := raw.Lookup("cursor", "firstBatch", "0", "control", "max", "v").String(); got != `{"a":4,"b":"x"}` {
				t.Errorf("the greatest values are %s", got)
			}
			n := ok(t, command(t, c, extJSON(t, `{"count": "c", "rawData": true, "$db": "db"}`))).Lookup("n")
			if n.String() != "3" {
				t.Errorf("%s buckets", n)
			}
			checkErrors(t, d, []errorStep{
				{`{"createIndexes": "c", "indexes": [{"key": {"m.s": 1}, "name": "x", "unique": true}], "$db": "db"}`, 72, "Unique indexes are not supported on time-series collections"},
				{`{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}, "$db": "db"}`, 166, "Namespace db.c is a timeseries collection"},
				{`{"mapReduce": "c", "map": "f", "reduce": "f", "out": {"inline": 1}, "$db": "db"}`, 166, "mapReduce on a timeseries collection is not supported"},
			})
		}
		// Buckets that are inserted become measurements, as mongorestore wants it.
		ok(t, command(t, c, extJSON(t, `{"create": "d", "timeseries": {"timeField": "t", "metaField": "m", `+tt.series+`}, "$db": "db"}`)))
		reply := ok(t, command(t, c, extJSON(t, sorted)))
		ok(t, run(t, c, bson.D{{Key: "insert", Value: "system.buckets.d"}, {Key: "documents", Value: bson.RawValue{Type: bson.TypeArray, Value: reply.Lookup("cursor", "firstBatch").Value}}, {Key: "$db", Value: "db"}}))
		const byID = `", "sort": {"_id": 1}, "$db": "db"}`
		from, to := scriptResult(t, command(t, c, extJSON(t, `{"find": "c`+byID))), scriptResult(t, command(t, c, extJSON(t, `{"find": "d`+byID)))
		if from != to || !strings.Contains(from, `"_id":4`) {
			t.Errorf("restored\n%s\nof\n%s", to, from)
		}
		var names []string
		list, _ := ok(t, command(t, c, extJSON(t, `{"listCollections": 1, "nameOnly": true, "$db": "db"}`))).Lookup("cursor", "firstBatch").Array()
		for v := range list.Values() {
			name, _ := bson.Raw(v.Value).Lookup("name").StringValue()
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != "c system.buckets.c d system.buckets.d" {
			t.Errorf("collections %s", got)
		}
	}
}

// From 5.2 on the buckets that are closed are compressed, from 8.0 on all are; the layout tells
// whether they are in the order of time. All can be restored.
func TestBucketLayouts(t *testing.T) {
	for version, want := range map[string]string{
		"5.0": "layout 1; layout 1; ", "6.0": "layout 2: 2 of [1000 2000] [2 1]; layout 1; ", "8.0": "layout 3: 2 of [2000 1000] [1 2]; layout 2: 1 of [9000000] [3]; ",
	} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(version))
		c := dial(t, d.Hosts()[0])
		for _, name := range []string{"c", "copy"} {
			ok(t, command(t, c, extJSON(t, `{"create": "`+name+`", "timeseries": {"timeField": "t", "metaField": "m"}, "$db": "db"}`)))
		}
		ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": 1, "t": {"$date": {"$numberLong": "2000"}}, "m": 1, "v": "a"}, {"_id": 2, "t": {"$date": {"$numberLong": "1000"}}, "m": 1, "d": {"x": 1}},
			{"_id": 3, "t": {"$date": {"$numberLong": "9000000"}}, "m": 1}], "$db": "db"}`)))
		reply := ok(t, command(t, c, extJSON(t, `{"find": "system.buckets.c", "$db": "db"}`)))
		got := ""
		list, _ := reply.Lookup("cursor", "firstBatch").Array()
		for v := range list.Values() {
			b := bson.Raw(v.Value)
			got += "layout " + b.Lookup("control", "version").String()
			if n := b.Lookup("control", "count"); n.Type != 0 {
				got += ": " + n.String() + " of"
				for _, field := range []string{"t", "_id"} {
					data, _ := b.Lookup("data", field).Binary()
					values, err := column.Decode(data.Data)
					if err != nil || data.Subtype != bson.BinaryColumn {
						t.Fatalf("%s: %s is %v: %v", version, field, data, err)
					}
					var numbers []int64
					for _, v := range values {
						n, _ := v.AsInt64()
						if at, ok := v.DateTime(); ok {
							n = int64(at)
						}
						numbers = append(numbers, n)
					}
					got += " " + fmt.Sprint(numbers)
				}
			}
			got += "; "
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", version, got, want)
		}
		ok(t, run(t, c, bson.D{{Key: "insert", Value: "system.buckets.copy"}, {Key: "documents", Value: bson.RawValue{Type: bson.TypeArray, Value: reply.Lookup("cursor", "firstBatch").Value}},
			{Key: "$db", Value: "db"}}))
		rows := func(name string) string {
			return scriptResult(t, command(t, c, extJSON(t, `{"find": "`+name+`", "sort": {"_id": 1}, "$db": "db"}`)))
		}
		if from, to := rows("c"), rows("copy"); from != to || !strings.Contains(to, `"d":{"x":1}`) {
			t.Errorf("%s: restored\n%s\nof\n%s", version, to, from)
		}
		// What cannot be read is refused, not lost.
		bad := command(t, c, extJSON(t, `{"insert": "system.buckets.copy", "documents": [{"control": {"version": 2, "min": {"t": {"$date": "2024-01-01T00:00:00Z"}}, "max": {"t": {"$date": "2024-01-01T00:00:00Z"}}}, "data": {"t": {"$binary": {"base64": "kAA=", "subType": "07"}}}}], "$db": "db"}`))
		if code, _ := bad.Lookup("writeErrors", "0", "code").AsInt64(); code != 115 {
			t.Errorf("%s: a column in another form: %v", version, bad)
		}
	}
}

// sortParts sorts what bucketsOf lists: buckets that begin at the same time have no order.
func sortParts(s string) string {
	parts := strings.Split(s, "; ")
	for i := range parts {
		for j := i; j > 0 && parts[j] < parts[j-1]; j-- {
			parts[j], parts[j-1] = parts[j-1], parts[j]
		}
	}
	return strings.Join(parts, "; ")
}

// A bucket holds at most 1000 measurements, and 125 KiB.
func TestBucketsAreBounded(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"create": "c", "timeseries": {"timeField": "t"}, "$db": "db"}`)))
	at := bson.NewDateTime(time.Unix(1_700_000_000, 0))
	var docs bson.A
	for i := range 1500 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "t", Value: at}})
	}
	for i := range 3 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "t", Value: at}, {Key: "v", Value: strings.Repeat("x", 100<<10)}})
	}
	docs = append(docs, bson.D{{Key: "_id", Value: "x"}, {Key: "t", Value: at}}) // its _id is no number
	ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: "db"}}))
	reply := ok(t, command(t, c, extJSON(t, `{"aggregate": "system.buckets.c", "pipeline": [{"$project": {"n": {"$ifNull": ["$control.count", {"$size": {"$objectToArray": "$data.t"}}]}}}, {"$group": {"_id": null, "n": {"$push": "$n"}, "sum": {"$sum": "$n"}}}], "cursor": {}, "$db": "db"}`)))
	if sum := reply.Lookup("cursor", "firstBatch", "0", "sum").String(); sum != "1504" {
		t.Errorf("%s measurements", sum)
	}
	n := 0
	for v := range bson.Raw(reply.Lookup("cursor", "firstBatch", "0", "n").Value).Values() {
		if x, _ := v.AsInt64(); x > 1000 {
			t.Errorf("%d measurements in a bucket", x)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d buckets", n)
	}
	// A cursor goes on over the buckets that it has found.
	first := ok(t, command(t, c, extJSON(t, `{"find": "system.buckets.c", "batchSize": 1, "$db": "db"}`)))
	id, _ := first.Lookup("cursor", "id").Int64()
	insertAt(t, c, "c", bson.D{{Key: "_id", Value: "y"}, {Key: "t", Value: at}})
	more := ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "system.buckets.c"}, {Key: "$db", Value: "db"}}))
	if left, _ := more.Lookup("cursor", "nextBatch").Array(); len(bson.Raw(left)) == 0 || more.Lookup("cursor", "nextBatch", "2").Type == 0 {
		t.Errorf("the rest is %d bytes", len(left))
	}
}

// $lookup, $unionWith and $graphLookup read time series and join them, and see their buckets by
// name.
func TestSeriesAreJoined(t *testing.T) {
	for _, version := range []string{"5.0", "8.2", "9.0"} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		ok(t, command(t, c, extJSON(t, `{"create": "series", "timeseries": {"timeField": "t", "metaField": "m"}, "$db": "db"}`)))
		ok(t, command(t, c, extJSON(t, `{"insert": "series", "documents": [{"_id": 1, "t": {"$date": {"$numberLong": "0"}}, "m": "a"}, {"_id": 2, "t": {"$date": {"$numberLong": "1000"}}, "m": "a"},
			{"_id": 3, "t": {"$date": {"$numberLong": "0"}}, "m": "b"}], "$db": "db"}`)))
		ok(t, command(t, c, extJSON(t, `{"insert": "sensors", "documents": [{"_id": "a", "room": 1}, {"_id": "b", "room": 2}], "$db": "db"}`)))
		for _, tt := range []struct{ coll, pipeline, want string }{
			{"series", `{"$lookup": {"from": "sensors", "localField": "m", "foreignField": "_id", "as": "s"}}, {"$sort": {"_id": 1}}, {"$group": {"_id": null, "r": {"$push": {"$first": "$s.room"}}}}`, `[1,1,2]`},
			{"sensors", `{"$lookup": {"from": "series", "localField": "_id", "foreignField": "m", "as": "s"}}, {"$sort": {"_id": 1}}, {"$group": {"_id": null, "r": {"$push": {"$size": "$s"}}}}`, `[2,1]`},
			{"sensors", `{"$lookup": {"from": "system.buckets.series", "localField": "_id", "foreignField": "meta", "as": "s"}}, {"$sort": {"_id": 1}}, {"$group": {"_id": null, "r": {"$push": {"$size": "$s"}}}}`, `[1,1]`},
			{"sensors", `{"$unionWith": "system.buckets.series"}, {"$group": {"_id": null, "r": {"$push": {"$type": "$control"}}}}`, `["missing","missing","object","object"]`},
			{"sensors", `{"$graphLookup": {"from": "series", "startWith": "$_id", "connectFromField": "nosuch", "connectToField": "m", "as": "s"}}, {"$sort": {"_id": 1}}, {"$group": {"_id": null, "r": {"$push": {"$size": "$s"}}}}`, `[2,1]`},
			{"system.buckets.series", `{"$lookup": {"from": "series", "localField": "meta", "foreignField": "m", "as": "s"}}, {"$sort": {"meta": 1}}, {"$group": {"_id": null, "r": {"$push": {"$size": "$s"}}}}`, `[2,1]`},
		} {
			r := ok(t, command(t, c, extJSON(t, `{"aggregate": "`+tt.coll+`", "pipeline": [`+tt.pipeline+`], "cursor": {}, "$db": "db"}`)))
			if got := r.Lookup("cursor", "firstBatch", "0", "r").String(); got != tt.want {
				t.Errorf("%s: %s: %s\n got %s\nwant %s", version, tt.coll, tt.pipeline, got, tt.want)
			}
		}
	}
}
