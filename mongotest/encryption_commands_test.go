package mongotest_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest"
)

// newEncrypted starts a deployment with the encrypted collection db.c: e with equality queries, i
// with range queries, and u without.
func newEncrypted(t *testing.T, opts ...mongotest.Option) (*encClient, *mongotest.Deployment) {
	t.Helper()
	d := mongotest.Start(t, opts...)
	keys := map[bson.UUID]*fle.Key{}
	for i := range byte(3) {
		key, err := fle.NewKey(bytes.Repeat([]byte{i}, fle.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		keys[bson.UUID{i}] = key
	}
	fields := doc(t, bson.D{{Key: "fields", Value: bson.A{
		bson.D{{Key: "path", Value: "e"}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: bson.UUID{0}}, {Key: "queries", Value: bson.D{{Key: "queryType", Value: "equality"}, {Key: "contention", Value: 2}}}},
		bson.D{{Key: "path", Value: "o.i"}, {Key: "bsonType", Value: "int"}, {Key: "keyId", Value: bson.UUID{1}},
			{Key: "queries", Value: bson.D{{Key: "queryType", Value: "range"}, {Key: "min", Value: int32(0)}, {Key: "max", Value: int32(200)}, {Key: "contention", Value: 0}}}},
		bson.D{{Key: "path", Value: "u"}, {Key: "keyId", Value: bson.UUID{2}}},
	}}})
	c := &encClient{t: t, conn: dial(t, d.Hosts()[0]), keys: keys, fields: map[string]bson.Raw{"db.c": fields}}
	if _, err := c.plain("db", bson.D{{Key: "create", Value: "c"}, {Key: "encryptedFields", Value: fields}}); err != nil {
		t.Fatal(err)
	}
	return c, d
}

// tokens returns those for compaction and cleanup.
func (c *encClient) tokens() bson.D {
	bin := func(t fle.Token) bson.Binary { return bson.Binary{Data: t[:]} }
	ecoc := func(i byte) bson.Binary { return bin(c.keys[bson.UUID{i}].Tokens().ECOC) }
	pad := c.keys[bson.UUID{1}].Tokens().AnchorPadding()
	return bson.D{{Key: "e", Value: ecoc(0)}, {Key: "o.i", Value: bson.D{{Key: "ecoc", Value: ecoc(1)}, {Key: "anchorPaddingToken", Value: bin(pad)}}}, {Key: "u", Value: ecoc(2)}}
}

func (c *encClient) must(reply bson.Raw, err error) bson.Raw {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return reply
}

func (c *encClient) insert(id int, e string, i int32) {
	c.t.Helper()
	c.must(c.do("db", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}, {Key: "e", Value: e},
		{Key: "o", Value: bson.D{{Key: "i", Value: i}, {Key: "z", Value: 1}}}, {Key: "u", Value: true}}}}}))
}

// ids returns the _ids of the documents that a filter finds.
func (c *encClient) ids(filter bson.D) string {
	c.t.Helper()
	reply := c.must(c.do("db", bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: filter}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "projection", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "batchSize", Value: 1000}}))
	return reply.Lookup("cursor", "firstBatch").String()
}

func (c *encClient) count(coll string) int64 {
	c.t.Helper()
	n, _ := c.must(c.plain("db", bson.D{{Key: "count", Value: coll}})).Lookup("n").AsInt64()
	return n
}

func e(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }

func TestEncryptedCommands(t *testing.T) {
	c, _ := newEncrypted(t, mongotest.ReplicaSet(1))
	for i, v := range []string{"x", "y", "x", "z"} {
		c.insert(i, v, int32(i*50))
	}
	for _, tt := range []struct {
		filter bson.D
		want   string
	}{
		{e("e", "x"), `[{"_id":0},{"_id":2}]`},
		{e("e", e("$in", bson.A{"y", "z"})), `[{"_id":1},{"_id":3}]`},
		{e("e", e("$ne", "x")), `[{"_id":1},{"_id":3}]`},
		{e("o.i", e("$gt", int32(50))), `[{"_id":2},{"_id":3}]`},
		{e("o.i", bson.D{{Key: "$gte", Value: int32(50)}, {Key: "$lt", Value: int32(150)}}), `[{"_id":1},{"_id":2}]`},
		{e("o.i", int32(100)), `[{"_id":2}]`},
		{e("o.i", e("$not", e("$lt", int32(100)))), `[{"_id":2},{"_id":3}]`},
		{e("$or", bson.A{e("e", "y"), e("o.i", int32(0))}), `[{"_id":0},{"_id":1}]`},
		{e("$expr", e("$eq", bson.A{"$e", "x"})), `[{"_id":0},{"_id":2}]`},
		{e("$expr", e("$and", bson.A{e("$gt", bson.A{"$o.i", int32(0)}), e("$lt", bson.A{"$o.i", int32(150)})})), `[{"_id":1},{"_id":2}]`},
		{e("$expr", e("$not", bson.A{e("$in", bson.A{"$e", bson.A{"x"}})})), `[{"_id":1},{"_id":3}]`},
		{e("u", e("$exists", true)), `[{"_id":0},{"_id":1},{"_id":2},{"_id":3}]`},
	} {
		if got := c.ids(tt.filter); got != tt.want {
			t.Errorf("%v finds %s, not %s", tt.filter, got, tt.want)
		}
	}
	if n, _ := c.must(c.do("db", bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: e("e", "x")}})).Lookup("n").AsInt64(); n != 2 {
		t.Errorf("count %d", n)
	}
	values := c.must(c.do("db", bson.D{{Key: "distinct", Value: "c"}, {Key: "key", Value: "_id"}, {Key: "query", Value: e("e", "x")}})).Lookup("values")
	if values.String() != "[0,2]" {
		t.Errorf("distinct %s", values)
	}
	joined := c.must(c.do("db", bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{
		e("$match", e("e", "y")),
		e("$lookup", bson.D{{Key: "from", Value: "c"}, {Key: "pipeline", Value: bson.A{e("$match", e("e", "x")), e("$project", e("_id", 1))}}, {Key: "as", Value: "m"}}),
		e("$project", e("m", 1)),
	}}, {Key: "cursor", Value: bson.D{}}})).Lookup("cursor", "firstBatch")
	if joined.String() != `[{"_id":1,"m":[{"_id":0},{"_id":2}]}]` {
		t.Errorf("joined %s", joined)
	}
	explained := c.must(c.do("db", bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{e("$match", e("e", "x"))}}, {Key: "explain", Value: true}}))
	if !strings.Contains(explained.String(), "__safeContent__") {
		t.Errorf("the plan does not look for tags: %s", explained)
	}

	// Writes: an update that sets, one that unsets, a replacement, an upsert, findAndModify and
	// bulkWrite.
	update := func(q, u bson.D, upsert bool) {
		t.Helper()
		c.must(c.do("db", bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "u", Value: u}, {Key: "upsert", Value: upsert}}}}}))
	}
	tags := func(id int) int {
		t.Helper()
		reply := c.must(c.plain("db", bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: e("_id", id)}}))
		list, _ := reply.Lookup("cursor", "firstBatch", "0", "__safeContent__").Array()
		n := 0
		for range list.Values() {
			n++
		}
		return n
	}
	all := tags(0)
	update(e("e", "z"), e("$set", e("e", "x")), false)
	if got := c.ids(e("e", "x")); got != `[{"_id":0},{"_id":2},{"_id":3}]` || c.ids(e("e", "z")) != `[]` || tags(3) != all {
		t.Errorf("after $set: %s, %d tags", got, tags(3))
	}
	update(e("_id", 3), e("$unset", e("o.i", "")), false)
	if got := c.ids(e("o.i", e("$gte", int32(0)))); got != `[{"_id":0},{"_id":1},{"_id":2}]` || tags(3) != 1 {
		t.Errorf("after $unset: %s, %d tags", got, tags(3))
	}
	update(e("_id", 2), e("e", "w"), false)
	if got := c.ids(e("e", "w")); got != `[{"_id":2}]` || tags(2) != 1 {
		t.Errorf("after a replacement: %s, %d tags", got, tags(2))
	}
	update(e("_id", 7), e("$set", e("e", "v")), true)
	if got := c.ids(e("e", "v")); got != `[{"_id":7}]` {
		t.Errorf("after an upsert: %s", got)
	}
	found := c.must(c.do("db", bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: e("e", "v")}, {Key: "update", Value: e("$set", e("e", "t"))}})).Lookup("value", "e")
	if found.String() != `"v"` || c.ids(e("e", "t")) != `[{"_id":7}]` {
		t.Errorf("findAndModify: %s", found)
	}
	esc, ecoc := c.count("enxcol_.c.esc"), c.count("enxcol_.c.ecoc")
	if esc == 0 || esc != ecoc {
		t.Errorf("%d in ESC, %d in ECOC", esc, ecoc)
	}
	if _, err := c.do("db", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 7}, {Key: "e", Value: "x"}}}}}); err == nil || c.count("enxcol_.c.esc") != esc {
		t.Errorf("an insert that failed (%v) left something in ESC", err)
	}
	for _, cmd := range []struct{ name, field string }{{"compactStructuredEncryptionData", "compactionTokens"}, {"cleanupStructuredEncryptionData", "cleanupTokens"}, {"compactStructuredEncryptionData", "compactionTokens"}} {
		reply := c.must(c.plain("db", bson.D{{Key: cmd.name, Value: "c"}, {Key: cmd.field, Value: c.tokens()}}))
		if c.count("enxcol_.c.ecoc") != 0 || reply.Lookup("stats", "ecoc", "read").Type != bson.TypeInt64 {
			t.Errorf("%s: %s", cmd.name, reply)
		}
		if got := c.ids(e("e", "x")); got != `[{"_id":0},{"_id":3}]` || c.ids(e("o.i", e("$gt", int32(0)))) != `[{"_id":1}]` {
			t.Errorf("after %s: %s", cmd.name, got)
		}
		c.insert(100, "x", 0)
		c.must(c.do("db", bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: e("_id", 100)}, {Key: "limit", Value: 1}}}}}))
	}
}

func TestEncryptedRefusals(t *testing.T) {
	c, _ := newEncrypted(t, mongotest.ReplicaSet(1))
	c.insert(1, "x", 5)
	info := bson.E{Key: "encryptionInformation", Value: bson.D{{Key: "type", Value: 1}, {Key: "schema", Value: e("db.c", c.fields["db.c"])}}}
	set := bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: e("$set", e("z", 1))}}
	one := bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 1}}
	insert := bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{}}}
	update := bson.D{{Key: "update", Value: 0}, {Key: "filter", Value: bson.D{}}, {Key: "updateMods", Value: e("$set", e("z", 1))}}
	namespace := bson.D{{Key: "ns", Value: "db.c"}, info}
	bulk := func(ops bson.A, namespaces ...any) bson.D {
		return bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: ops}, {Key: "nsInfo", Value: namespaces}}
	}
	for _, tt := range []struct {
		cmd  bson.D
		want string
	}{
		{bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{e("e", "plain")}}}, "Document failed validation"},
		{bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{e("__safeContent__", bson.A{})}}}, "__safeContent__"},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: e("_id", 1)}, {Key: "u", Value: e("$set", e("e", "plain"))}}}}}, "Document failed validation"},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: e("_id", 1)}, {Key: "u", Value: e("$unset", e("__safeContent__", ""))}}}}}, ""},
		{bson.D{{Key: "compactStructuredEncryptionData", Value: "c"}}, "BSON field 'compactStructuredEncryptionData.compactionTokens' is missing but a required field"},
		{bson.D{{Key: "cleanupStructuredEncryptionData", Value: "c"}, {Key: "cleanupTokens", Value: bson.D{}}}, "no compaction token"},
		{bson.D{{Key: "compactStructuredEncryptionData", Value: "none"}, {Key: "compactionTokens", Value: bson.D{}}}, "ns not found"},
		{bson.D{{Key: "compactStructuredEncryptionData", Value: "enxcol_.c.esc"}, {Key: "compactionTokens", Value: bson.D{}}}, "not an encrypted collection"},
		{bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{}}, {Key: "update", Value: e("$set", e("z", 1))}, {Key: "new", Value: true},
			{Key: "encryptionInformation", Value: bson.D{{Key: "type", Value: 1}, {Key: "schema", Value: e("db.c", c.fields["db.c"])}}}}, "only supports new: false"},
		{bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{}}, {Key: "update", Value: e("$set", e("z", 1))}, {Key: "fields", Value: e("z", 1)}, info}, "fields must be empty"},
		{bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{}}, {Key: "update", Value: bson.A{e("$set", e("z", 1))}}, info}, "modifier and replacement style"},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{set, set}}, info}, "Only single document updates are permitted"},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{append(set, bson.E{Key: "multi", Value: true})}}, info}, "FLE only supports single document updates"},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.A{e("$set", e("z", 1))}}}}}, info}, "modifier and replacement style"},
		{bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{one, one}}, info}, "Only single document deletes are permitted"},
		{bulk(bson.A{insert, update}, namespace), "multiple operations supports only insert"},
		{bulk(bson.A{insert}, namespace, e("ns", "db.d")), "only a single namespace"},
		{bulk(bson.A{append(update, bson.E{Key: "multi", Value: true})}, namespace), "single document updates"},
		{bson.D{{Key: "create", Value: "d"}, {Key: "capped", Value: true}, {Key: "size", Value: 4096}, {Key: "encryptedFields", Value: c.fields["db.c"]}}, "cannot be capped"},
		{bson.D{{Key: "create", Value: "d"}, {Key: "encryptedFields", Value: bson.D{{Key: "escCollection", Value: "x"}, {Key: "fields", Value: bson.A{}}}}}, "Encrypted State Collection name should follow"},
	} {
		db := "db"
		if tt.cmd[0].Key == "bulkWrite" {
			db = "admin"
		}
		_, err := c.plain(db, tt.cmd)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.cmd, err, tt.want)
		}
	}
	listed := c.must(c.plain("db", bson.D{{Key: "listCollections", Value: 1}, {Key: "filter", Value: e("name", "c")}})).Lookup("cursor", "firstBatch", "0", "options", "encryptedFields", "ecocCollection")
	if listed.String() != `"enxcol_.c.ecoc"` {
		t.Errorf("listCollections: %s", listed)
	}
	alone := mongotest.Start(t)
	single := &encClient{t: t, conn: dial(t, alone.Hosts()[0])}
	if _, err := single.plain("db", bson.D{{Key: "create", Value: "c"}, {Key: "encryptedFields", Value: c.fields["db.c"]}}); err == nil || !strings.Contains(err.Error(), "not supported on standalone") {
		t.Errorf("standalone: %v", err)
	}
}

// TestEncryptedConcurrently lets sixteen clients insert, update and compact the same collection.
// Afterwards every query finds exactly what it should.
func TestEncryptedConcurrently(t *testing.T) {
	first, d := newEncrypted(t, mongotest.ReplicaSet(1))
	const clients, rounds = 16, 12
	letters := []string{"a", "b", "c"}
	var wg sync.WaitGroup
	for n := range clients {
		c := &encClient{t: t, conn: dial(t, d.Hosts()[0]), keys: first.keys, fields: first.fields}
		wg.Go(func() {
			for i := range rounds {
				id := n*rounds + i
				c.insert(id, letters[id%3], int32(id%200))
				if i%3 == 2 {
					// The one before becomes the next letter.
					c.must(c.do("db", bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: e("_id", id-1)}, {Key: "u", Value: e("$set", e("e", letters[id%3]))}}}}}))
				}
				if i == n%rounds {
					name, field := "compactStructuredEncryptionData", "compactionTokens"
					if n%4 == 0 {
						name, field = "cleanupStructuredEncryptionData", "cleanupTokens"
					}
					c.must(c.plain("db", bson.D{{Key: name, Value: "c"}, {Key: field, Value: c.tokens()}}))
				}
			}
		})
	}
	wg.Wait()
	want := map[string][]string{}
	for id := range clients * rounds {
		letter := letters[id%3]
		if id%rounds%3 == 1 {
			letter = letters[(id+1)%3]
		}
		want[letter] = append(want[letter], bson.D{{Key: "_id", Value: id}}.String())
	}
	for letter, ids := range want {
		if got, list := first.ids(e("e", letter)), "["+strings.Join(ids, ",")+"]"; got != list {
			t.Errorf("%s: %s, want %s", letter, got, list)
		}
	}
	var low []string
	for id := range clients * rounds {
		if id%200 < 60 {
			low = append(low, bson.D{{Key: "_id", Value: id}}.String())
		}
	}
	if got := first.ids(e("o.i", e("$lt", int32(60)))); got != "["+strings.Join(low, ",")+"]" {
		t.Errorf("range: %s", got)
	}
}

func TestEncryptedBulkWrite(t *testing.T) {
	c, _ := newEncrypted(t, mongotest.ReplicaSet(1))
	c.must(c.do("admin", bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: bson.A{
		bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{{Key: "_id", Value: 1}, {Key: "e", Value: "x"}}}},
		bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{{Key: "_id", Value: 2}, {Key: "e", Value: "x"}}}},
	}}, {Key: "nsInfo", Value: bson.A{e("ns", "db.c")}}}))
	c.must(c.do("admin", bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: bson.A{
		bson.D{{Key: "update", Value: 0}, {Key: "filter", Value: bson.D{{Key: "e", Value: "x"}, {Key: "_id", Value: 2}}}, {Key: "updateMods", Value: e("$set", e("e", "y"))}},
	}}, {Key: "nsInfo", Value: bson.A{e("ns", "db.c")}}}))
	if x, y := c.ids(e("e", "x")), c.ids(e("e", "y")); x != `[{"_id":1}]` || y != `[{"_id":2}]` {
		t.Errorf("x: %s, y: %s", x, y)
	}
}

// TestEncryptedTransaction: a transaction sees its own tags, and an aborted one leaves none.
func TestEncryptedTransaction(t *testing.T) {
	c, _ := newEncrypted(t, mongotest.ReplicaSet(1))
	c.insert(1, "x", 1)
	before := c.count("enxcol_.c.esc")
	session := bson.D{{Key: "lsid", Value: e("id", bson.NewUUID())}, {Key: "txnNumber", Value: int64(1)}, {Key: "autocommit", Value: false}}
	c.must(c.do("db", append(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 2}, {Key: "e", Value: "x"}}}}, {Key: "startTransaction", Value: true}}, session...)))
	reply := c.must(c.do("db", append(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: e("e", "x")}, {Key: "projection", Value: e("_id", 1)}}, session...)))
	if got := reply.Lookup("cursor", "firstBatch").String(); got != `[{"_id":1},{"_id":2}]` {
		t.Errorf("within the transaction: %s", got)
	}
	c.must(c.plain("admin", append(bson.D{{Key: "abortTransaction", Value: 1}}, session...)))
	if got := c.ids(e("e", "x")); got != `[{"_id":1}]` || c.count("enxcol_.c.esc") != before {
		t.Errorf("after it: %s, %d in ESC", got, c.count("enxcol_.c.esc"))
	}
}
