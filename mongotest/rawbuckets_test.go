package mongotest_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// rawSeries is a time series collection whose buckets a test writes to.
type rawSeries struct {
	t       *testing.T
	c       net.Conn
	buckets string // the collection that has the buckets
	raw     string // argument of commands that are about them
}

// newRawSeries makes db.c with two buckets: one of the meta value 1 with the measurements 1 to 3,
// and one of 2 with 4.
func newRawSeries(t *testing.T, c net.Conn, version string) *rawSeries {
	s := &rawSeries{t: t, c: c, buckets: "system.buckets.c"}
	if v := strings.Compare(version, "8.2"); v >= 0 {
		s.buckets, s.raw = "c", `"rawData": true, `
	}
	s.do(`{"create": "c", "timeseries": {"timeField": "t", "metaField": "m"}, "$db": "db"}`)
	s.insert(1, 1)
	s.insert(2, 1)
	s.insert(3, 1)
	s.insert(4, 2)
	return s
}

func (s *rawSeries) do(cmd string) bson.Raw {
	s.t.Helper()
	return ok(s.t, command(s.t, s.c, extJSON(s.t, cmd)))
}

// insert inserts the measurement {_id: n, t: n seconds, m: meta, v: 10n}.
func (s *rawSeries) insert(n, meta int) {
	s.t.Helper()
	reply := s.do(fmt.Sprintf(`{"insert": "c", "documents": [{"_id": %d, "t": {"$date": {"$numberLong": "%d"}}, "m": %d, "v": %d}], "$db": "db"}`, n, n*1000, meta, n*10))
	if !reply.Lookup("writeErrors").IsZero() {
		s.t.Fatalf("measurement %d: %v", n, reply)
	}
}

// write runs an update, delete or insert of buckets, and returns "n", "n/nModified" or the code of
// its error.
func (s *rawSeries) write(verb, statements string) string {
	s.t.Helper()
	list := map[string]string{"update": "updates", "delete": "deletes", "insert": "documents"}[verb]
	reply := s.do(fmt.Sprintf(`{"%s": "%s", "%s": [%s], %s"$db": "db"}`, verb, s.buckets, list, statements, s.raw))
	if code := reply.Lookup("writeErrors", "0", "code"); code.Type != 0 {
		return "error " + code.String()
	}
	out := reply.Lookup("n").String()
	if v := reply.Lookup("nModified"); v.Type != 0 {
		out += "/" + v.String()
	}
	return out
}

// rows shows the measurements: "_id@time m v".
func (s *rawSeries) rows() string {
	s.t.Helper()
	var out []string
	list, _ := s.do(`{"find": "c", "sort": {"_id": 1, "t": 1}, "$db": "db"}`).Lookup("cursor", "firstBatch").Array()
	for e := range list.Values() {
		doc := bson.Raw(e.Value)
		at, _ := doc.Lookup("t").DateTime()
		out = append(out, fmt.Sprintf("%s@%d %s %s", doc.Lookup("_id"), at/1000, doc.Lookup("m"), doc.Lookup("v")))
	}
	return strings.Join(out, "; ")
}

// list returns the buckets in the order of their meta values.
func (s *rawSeries) list() (docs []bson.Raw) {
	s.t.Helper()
	list, _ := s.do(fmt.Sprintf(`{"find": "%s", "sort": {"meta": 1, "control.min._id": 1}, %s"$db": "db"}`, s.buckets, s.raw)).Lookup("cursor", "firstBatch").Array()
	for e := range list.Values() {
		docs = append(docs, e.Value)
	}
	return docs
}

// shown shows the buckets: "meta: least to greatest _id", and "closed".
func (s *rawSeries) shown() string {
	s.t.Helper()
	var out []string
	for _, b := range s.list() {
		one := fmt.Sprintf("%s: %s to %s", b.Lookup("meta"), b.Lookup("control", "min", "_id"), b.Lookup("control", "max", "_id"))
		if b.Lookup("control", "closed").AsBool() {
			one += " closed"
		}
		out = append(out, one)
	}
	return strings.Join(out, "; ")
}

func (s *rawSeries) check(what, rows, buckets string) {
	s.t.Helper()
	if got := s.rows(); got != rows {
		s.t.Errorf("%s: measurements\n got %s\nwant %s", what, got, rows)
	}
	if got := s.shown(); got != buckets {
		s.t.Errorf("%s: buckets\n got %s\nwant %s", what, got, buckets)
	}
}

// The buckets of a time series collection can be written to: with rawData from 8.2 on, as the
// collection system.buckets.X before.
func TestRawBucketWrites(t *testing.T) {
	for _, version := range []string{"5.0", "7.0", "8.0", "8.2", "9.0"} {
		t.Run(version, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version(version))
			c := dialNode(t, d, d.Node(0))
			s := newRawSeries(t, c, version)
			want := func(got, wanted, what string) {
				t.Helper()
				if got != wanted {
					t.Errorf("%s: %s, want %s", what, got, wanted)
				}
			}
			s.check("at first", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40", "1: 1 to 3; 2: 4 to 4")

			// Another meta value: of all measurements in the bucket, which does not take the place
			// of the other bucket that has the value already.
			want(s.write("update", `{"q": {"meta": 1}, "u": {"$set": {"meta": 2}}}`), "1/1", "a meta value")
			s.check("a meta value", "1@1 2 10; 2@2 2 20; 3@3 2 30; 4@4 2 40", "2: 1 to 3; 2: 4 to 4")
			want(s.write("update", `{"q": {"meta": 2}, "u": {"$set": {"meta": 2}}, "multi": true}`), "2/0", "the same again")
			id := s.list()[0].Lookup("_id").String()
			want(s.write("update", `{"q": {"_id": `+id+`}, "u": {"$set": {"meta": 1}}}`), "1/1", "by _id")
			if got := s.list()[0].Lookup("_id").String(); got != id {
				t.Errorf("the bucket's _id has become %s, it was %s", got, id)
			}
			want(s.write("update", `{"q": {"_id": `+id+`}, "u": {"$set": {"_id": {"$oid": "000000000000000000000001"}}}}`), "error 66", "another _id")

			// A closed bucket takes no more measurements.
			want(s.write("update", `{"q": {"meta": 1}, "u": {"$set": {"control.closed": true}}}`), "1/1", "closing")
			s.insert(5, 1)
			s.check("closed", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40; 5@5 1 50", "1: 1 to 3 closed; 1: 5 to 5; 2: 4 to 4")
			want(s.write("update", `{"q": {"control.closed": true}, "u": {"$unset": {"control.closed": 1}}}`), "1/1", "opening")
			s.check("opened", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40; 5@5 1 50", "1: 1 to 3; 1: 5 to 5; 2: 4 to 4")

			// What is written is shown until a measurement changes, right or wrong.
			want(s.write("update", `{"q": {"control.min._id": 4}, "u": {"$set": {"control.max.v": 99}}}`), "1/1", "a bound")
			if got := s.list()[2].Lookup("control", "max", "v").String(); got != "99" {
				t.Errorf("the bound is %s", got)
			}
			s.insert(6, 2)
			if got := s.list()[2].Lookup("control", "max", "v").String(); got != "60" {
				t.Errorf("the bound is %s, with a measurement more", got)
			}
			s.check("a measurement more", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40; 5@5 1 50; 6@6 2 60", "1: 1 to 3; 1: 5 to 5; 2: 4 to 6")

			// Measurements that are updated stay where they are.
			want(s.do(`{"update": "c", "updates": [{"q": {"m": 2}, "u": {"$set": {"m": 3}}, "multi": true}], "$db": "db"}`).Lookup("n").String(), "2", "the measurements' meta value")
			s.check("measurements of another meta value", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 3 40; 5@5 1 50; 6@6 3 60", "1: 1 to 3; 1: 5 to 5; 3: 4 to 6")

			// Buckets that the validator refuses, and those that nobody could read.
			for what, u := range map[string]string{
				"a field that buckets do not have": `{"$set": {"x": 1}}`, "no data": `{"$unset": {"data": 1}}`, "a closed that is no boolean": `{"$set": {"control.closed": "x"}}`,
				"no version": `{"$unset": {"control.version": 1}}`, "a bound without a time": `{"$set": {"control.min.t": 1}}`, "a replacement": `{"a": 1}`,
			} {
				want(s.write("update", `{"q": {"meta": 3}, "u": `+u+`}`), "error 121", what)
			}
			for what, u := range map[string]string{
				"an unknown layout": `{"$set": {"control.version": 4}}`, "no times": `{"$unset": {"data.t": 1}}`, "a column of another kind": `{"$set": {"data.v": 1}}`,
				"a number for a time": `{"$set": {"control.version": 1, "data": {"t": {"0": 5}}}}`, "a value without a time": `{"$set": {"control.version": 1, "data": {"t": {"0": {"$date": {"$numberLong": "1000"}}}, "v": {"1": 5}}}}`,
			} {
				want(s.write("update", `{"q": {"meta": 3}, "u": `+u+`}`), "error 115", what)
			}
			s.check("after errors", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 3 40; 5@5 1 50; 6@6 3 60", "1: 1 to 3; 1: 5 to 5; 3: 4 to 6")

			// Other measurements.
			const data = `{"control": {"version": 1, "min": {"t": {"$date": {"$numberLong": "0"}}, "_id": 7, "v": 1}, "max": {"t": {"$date": {"$numberLong": "8000"}}, "_id": 8, "v": 1}}, "meta": 3,
				"data": {"t": {"0": {"$date": {"$numberLong": "7000"}}, "1": {"$date": {"$numberLong": "8000"}}, "2": {"$date": {"$numberLong": "8000"}}}, "_id": {"0": 4, "1": 7, "2": 8}, "v": {"1": 1}}}`
			want(s.write("update", `{"q": {"meta": 3}, "u": `+data+`}`), "1/1", "a replacement")
			s.check("replaced", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@7 3 ; 5@5 1 50; 7@8 3 1; 8@8 3 ", "1: 1 to 3; 1: 5 to 5; 3: 7 to 8")
			// An upsert, and inserts.
			want(s.write("update", `{"q": {"meta": 9}, "u": `+strings.Replace(data, `"meta": 3`, `"meta": 9`, 1)+`, "upsert": true}`), "1/0", "an upsert")
			want(s.write("insert", `{"_id": `+id+`, `+data[1:]), "error 11000", "a bucket that there is")
			want(s.write("delete", `{"q": {"meta": 9}, "limit": 1}`), "1", "a delete")
			s.check("upserted and deleted", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@7 3 ; 5@5 1 50; 7@8 3 1; 8@8 3 ", "1: 1 to 3; 1: 5 to 5; 3: 7 to 8")

			// findAndModify, which takes the first bucket in an order.
			fam := func(args string) bson.Raw {
				return s.do(fmt.Sprintf(`{"findAndModify": "%s", %s, %s"$db": "db"}`, s.buckets, args, s.raw))
			}
			got := fam(`"query": {"meta": 1}, "sort": {"control.min._id": -1}, "update": {"$set": {"meta": 4}}, "new": true, "fields": {"meta": 1, "_id": 0}`).Lookup("value").String()
			want(got, `{"meta":4}`, "findAndModify")
			s.check("modified", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@7 3 ; 5@5 4 50; 7@8 3 1; 8@8 3 ", "1: 1 to 3; 3: 7 to 8; 4: 5 to 5")
			want(fam(`"query": {"meta": {"$gte": 3}}, "sort": {"meta": -1}, "remove": true`).Lookup("value", "meta").String(), "4", "findAndModify that removes")
			want(s.write("delete", `{"q": {"meta": 5}, "limit": 0}`), "0", "a delete of none")
			want(s.write("delete", `{"q": {"meta": {"$exists": true}}, "limit": 0}`), "2", "a delete of all")
			s.check("all deleted", "", "")
		})
	}
}

// bulkWrite writes to buckets, too, and a bucket that was written without validation keeps a field
// that buckets do not have.
func TestRawBucketsInBulk(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version("8.2"))
	c := dialNode(t, d, d.Node(0))
	s := newRawSeries(t, c, "8.2")
	reply := s.do(`{"bulkWrite": 1, "ops": [{"update": 0, "filter": {"meta": 1}, "updateMods": {"$set": {"meta": 7}}}, {"delete": 0, "filter": {"meta": 2}}], "nsInfo": [{"ns": "db.c"}], "rawData": true, "$db": "admin"}`)
	if got := reply.Lookup("nModified").String() + reply.Lookup("nDeleted").String(); got != "11" {
		t.Errorf("bulkWrite: %v", reply)
	}
	s.check("bulkWrite", "1@1 7 10; 2@2 7 20; 3@3 7 30", "7: 1 to 3")
	s.do(`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 8}}}], "bypassDocumentValidation": true, "rawData": true, "$db": "db"}`)
	if got := s.list()[0].Lookup("x").String(); got != "8" {
		t.Errorf("x is %s", got)
	}
	s.check("without validation", "1@1 7 10; 2@2 7 20; 3@3 7 30", "7: 1 to 3")
}

// A bucket is written whole or not at all.
func TestRawBucketsAreWhole(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version("8.2"))
	c := dialNode(t, d, d.Node(0))
	s := newRawSeries(t, c, "8.2")
	s.do(`{"createIndexes": "c", "indexes": [{"key": {"place": "2dsphere"}, "name": "place"}], "$db": "db"}`)
	const places = `{"control": {"version": 1, "min": {"t": {"$date": {"$numberLong": "0"}}}, "max": {"t": {"$date": {"$numberLong": "8000"}}}}, "meta": 1,
		"data": {"t": {"0": {"$date": {"$numberLong": "7000"}}, "1": {"$date": {"$numberLong": "8000"}}}, "place": {"0": {"type": "Point", "coordinates": [1, 2]}, "1": {"type": "Point", "coordinates": [1, 200]}}}}`
	for verb, statement := range map[string]string{"insert": places, "update": `{"q": {"meta": 1}, "u": ` + places + `}`} {
		if got := s.write(verb, statement); got != "error 16755" {
			t.Errorf("a place that is none: %s: %s", verb, got)
		}
		s.check("after half a bucket", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40", "1: 1 to 3; 2: 4 to 4")
	}
}

// In a transaction nobody writes to a time series collection, to its buckets neither.
func TestRawBucketsInTransactions(t *testing.T) {
	for version, code := range map[string]int32{"7.0": 50791, "8.2": 263} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		s := newRawSeries(t, c, version)
		before := s.rows()
		for i, cmd := range []string{
			`{"update": "%s", "updates": [{"q": {}, "u": {"$set": {"meta": 5}}}], %s`, `{"delete": "%s", "deletes": [{"q": {}, "limit": 1}], %s`,
			`{"findAndModify": "%s", "query": {}, "remove": true, %s`, `{"insert": "%s", "documents": [{"a": 1}], %s`,
		} {
			reply := command(t, c, extJSON(t, fmt.Sprintf(cmd, s.buckets, s.raw)+fmt.Sprintf(`"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "%d"}, "startTransaction": true, "autocommit": false, "$db": "db"}`, i+1)))
			got, _ := reply.Lookup("code").Int32()
			if e, ok := reply.Lookup("writeErrors", "0", "code").Int32(); ok {
				got = e
			}
			if got != code {
				t.Errorf("%s: %s: %v", version, cmd, reply)
			}
		}
		if after := s.rows(); after != before {
			t.Errorf("%s: the measurements are %s", version, after)
		}
	}
}

// A retryable write of a bucket is done once.
func TestRawBucketsAreRetried(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version("8.2"))
	c := dialNode(t, d, d.Node(0))
	s := newRawSeries(t, c, "8.2")
	for range 2 {
		reply := s.do(`{"delete": "c", "deletes": [{"q": {}, "limit": 1}], "rawData": true, "lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "$db": "db"}`)
		if n := reply.Lookup("n").String(); n != "1" {
			t.Errorf("%s buckets deleted", n)
		}
	}
	if n := len(s.list()); n != 1 {
		t.Errorf("%d buckets are left", n)
	}
}

// Each shard has buckets of its own, and a bucket goes where its shard key says.
func TestRawBucketsOfShards(t *testing.T) {
	for _, version := range []string{"7.0", "8.2"} {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		s := newRawSeries(t, c, version)
		for _, cmd := range []string{`{"createIndexes": "c", "indexes": [{"key": {"m": 1}, "name": "m_1"}], "$db": "db"}`, `{"shardCollection": "db.c", "key": {"m": 1}, "$db": "admin"}`, `{"split": "db.c", "middle": {"m": 2}, "$db": "admin"}`} {
			s.do(cmd)
		}
		shard := s.do(`{"listShards": 1, "$db": "admin"}`).Lookup("shards", "0", "_id").String()
		if owner := s.do(`{"find": "databases", "filter": {"_id": "db"}, "$db": "config"}`).Lookup("cursor", "firstBatch", "0", "primary").String(); owner == shard {
			shard = s.do(`{"listShards": 1, "$db": "admin"}`).Lookup("shards", "1", "_id").String()
		}
		s.do(`{"moveChunk": "db.c", "find": {"m": 5}, "to": ` + shard + `, "$db": "admin"}`)
		s.check("sharded", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40", "1: 1 to 3; 2: 4 to 4")
		if got := s.write("update", `{"q": {"meta": {"$gte": 1}}, "u": {"$set": {"control.closed": true}}, "multi": true}`); got != "2/2" {
			t.Errorf("%s: all: %s", version, got)
		}
		s.insert(5, 2)
		s.check("closed", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40; 5@5 2 50", "1: 1 to 3 closed; 2: 4 to 4 closed; 2: 5 to 5")
		// A closed bucket stays one when its chunk moves.
		for _, to := range []string{"0", "1"} {
			s.do(`{"moveChunk": "db.c", "find": {"m": 5}, "to": ` + s.do(`{"listShards": 1, "$db": "admin"}`).Lookup("shards", to, "_id").String() + `, "$db": "admin"}`)
			s.check("moved", "1@1 1 10; 2@2 1 20; 3@3 1 30; 4@4 2 40; 5@5 2 50", "1: 1 to 3 closed; 2: 4 to 4 closed; 2: 5 to 5")
		}
		if got := s.write("update", `{"q": {"meta": {"$gte": 1}}, "u": {"$set": {"meta": 9}}, "multi": true}`); got != map[string]string{"7.0": "error 31025", "8.2": "error 72"}[version] {
			t.Errorf("%s: another shard key for several buckets: %s", version, got)
		}
		if got := s.write("update", `{"q": {"meta": 1}, "u": {"$set": {"meta": 9}}}`); got != "error 20" {
			t.Errorf("%s: another shard key outside of a retryable write: %s", version, got)
		}
		reply := s.do(fmt.Sprintf(`{"update": "%s", "updates": [{"q": {"meta": 1}, "u": {"$set": {"meta": 9}}}], %s"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "$db": "db"}`, s.buckets, s.raw))
		if n := reply.Lookup("nModified").String(); n != "1" {
			t.Errorf("%s: another shard key: %v", version, reply)
		}
		s.check("another shard", "1@1 9 10; 2@2 9 20; 3@3 9 30; 4@4 2 40; 5@5 2 50", "2: 4 to 4 closed; 2: 5 to 5; 9: 1 to 3 closed")
		one := `{"q": {"control.min._id": {"$gte": 1}}, "limit": 1}`
		if got, want := s.write("delete", one), map[string]string{"7.0": "error 61", "8.2": "1"}[version]; got != want {
			t.Errorf("%s: a delete of one without the key: %s", version, got)
		}
		if got := s.write("delete", `{"q": {"control.min._id": {"$gte": 1}}, "limit": 0}`); got != map[string]string{"7.0": "3", "8.2": "2"}[version] {
			t.Errorf("%s: a delete of all: %s", version, got)
		}
		s.check("all deleted", "", "")
	}
}
