package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func TestOfficialFindOneAnd(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("c")
		must(coll.InsertMany(ctx, []any{doc("_id", 1, "n", 1, "a", bson.A{doc("x", 1), doc("x", 2)}), doc("_id", 2, "n", 2), doc("_id", 3, "n", 3)}))(t)
		raw := func(r *mongo.SingleResult) string {
			t.Helper()
			d, err := r.Raw()
			if err != nil {
				return err.Error()
			}
			return show(t, d)
		}
		for _, tt := range []struct{ got, want string }{
			{raw(coll.FindOneAndUpdate(ctx, doc("a.x", 2), doc("$set", doc("a.$.x", 5)), options.FindOneAndUpdate().SetReturnDocument(options.After))),
				`{"_id":1,"n":1,"a":[{"x":1},{"x":5}]}`},
			{raw(coll.FindOneAndUpdate(ctx, doc(), bson.A{doc("$set", doc("n", doc("$add", bson.A{"$n", 10})))},
				options.FindOneAndUpdate().SetSort(doc("n", -1)).SetProjection(doc("n", 1)).SetReturnDocument(options.After))), `{"_id":3,"n":13}`},
			{raw(coll.FindOneAndReplace(ctx, doc("_id", 9), doc("new", true), options.FindOneAndReplace().SetUpsert(true).SetReturnDocument(options.After))), `{"_id":9,"new":true}`},
			{raw(coll.FindOneAndReplace(ctx, doc("_id", 10), doc("new", true), options.FindOneAndReplace().SetUpsert(true))), mongo.ErrNoDocuments.Error()},
			{raw(coll.FindOneAndDelete(ctx, doc("new", true), options.FindOneAndDelete().SetSort(doc("_id", -1)))), `{"_id":10,"new":true}`},
			{raw(coll.FindOneAndDelete(ctx, doc("none", 1))), mongo.ErrNoDocuments.Error()},
		} {
			if tt.got != tt.want {
				t.Errorf("got %s, want %s", tt.got, tt.want)
			}
		}
	})
}

func TestOfficialFindOptions(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("c")
		for i := range 6 {
			must(coll.InsertOne(ctx, doc("_id", i, "a", i%3, "text", fmt.Sprint("word", i))))(t)
		}
		must(coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: doc("a", 1, "_id", -1)}))(t)
		for _, tt := range []struct {
			filter bson.D
			opts   *options.FindOptionsBuilder
			want   string
		}{
			{doc("a", 1), options.Find().SetHint(doc("a", 1, "_id", -1)).SetProjection(doc("_id", 1)), `{"_id":4} {"_id":1}`},
			{doc(), options.Find().SetHint("a_1__id_-1").SetMin(doc("a", 1, "_id", 3)).SetMax(doc("a", 2, "_id", 3)).SetProjection(doc("_id", 1)), `{"_id":1} {"_id":5}`},
			{doc("$expr", doc("$eq", bson.A{"$a", "$$want"})), options.Find().SetLet(doc("want", 2)).SetProjection(doc("_id", 1)).SetComment("c"), `{"_id":2} {"_id":5}`},
			{doc("text", bson.Regex{Pattern: "^WORD[12]$", Options: "i"}), options.Find().SetReturnKey(true).SetHint("_id_"), `{"_id":1} {"_id":2}`},
			{doc(), options.Find().SetSkip(1).SetLimit(2).SetSort(doc("a", -1, "_id", 1)).SetProjection(doc("_id", 0, "text", 1)), `{"text":"word5"} {"text":"word1"}`},
			{doc("_id", 3), options.Find().SetShowRecordID(true).SetProjection(doc("_id", 1)), `{"_id":3,"$recordId":4}`},
			{doc("_id", doc("$in", bson.A{1, 5})), options.Find().SetAllowDiskUse(true).SetBatchSize(1).SetNoCursorTimeout(true).SetProjection(doc("a", 1)), `{"_id":1,"a":1} {"_id":5,"a":2}`},
		} {
			cur, err := coll.Find(ctx, tt.filter, tt.opts)
			if got := all(t, cur, err); got != tt.want {
				t.Errorf("find %v: %s, want %s", tt.filter, got, tt.want)
			}
		}
		_, err := coll.Find(ctx, doc(), options.Find().SetHint("nope"))
		wantCode(t, err, 2)
		_, err = coll.Find(ctx, doc("$nope", 1))
		wantCode(t, err, 2)
	})
}

func TestOfficialIndexKinds(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("c")
		names := must(coll.Indexes().CreateMany(ctx, []mongo.IndexModel{
			{Keys: doc("at", 1), Options: options.Index().SetExpireAfterSeconds(3600)},
			{Keys: doc("text", "text"), Options: options.Index().SetDefaultLanguage("english").SetWeights(doc("text", 3))},
			{Keys: doc("place", "2dsphere")},
			{Keys: doc("n", "hashed")},
			{Keys: doc("a", 1, "b", -1), Options: options.Index().SetPartialFilterExpression(doc("a", doc("$gt", 5))).SetUnique(true)},
			{Keys: doc("$**", 1)},
			{Keys: doc("s", 1), Options: options.Index().SetSparse(true).SetHidden(true).SetName("hidden")},
		}))(t)
		want := []string{"at_1", "text_text", "place_2dsphere", "n_hashed", "a_1_b_-1", "$**_1", "hidden"}
		if !slices.Equal(names, want) {
			t.Errorf("names %v", names)
		}
		specs := must(coll.Indexes().ListSpecifications(ctx))(t)
		if len(specs) != 8 || specs[1].ExpireAfterSeconds == nil || *specs[1].ExpireAfterSeconds != 3600 {
			t.Errorf("%d specifications", len(specs))
		}
		for i := range 2 { // outside of the partial index
			must(coll.InsertOne(ctx, doc("a", 1, "b", 1, "i", i)))(t)
		}
		must(coll.InsertOne(ctx, doc("a", 6, "b", 1)))(t)
		if _, err := coll.InsertOne(ctx, doc("a", 6, "b", 1)); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("in the partial index: %v", err)
		}
		wantCode(t, func() error {
			_, err := coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: doc("at", 1)})
			return err
		}(), 85)
		if err := coll.Indexes().DropOne(ctx, "hidden"); err != nil {
			t.Error(err)
		}
		if err := coll.Indexes().DropWithKey(ctx, doc("at", 1)); err != nil {
			t.Error(err)
		}
		if err := coll.Indexes().DropAll(ctx); err != nil {
			t.Error(err)
		}
		if n := len(must(coll.Indexes().ListSpecifications(ctx))(t)); n != 1 {
			t.Errorf("%d indexes are left", n)
		}
	})
}

func TestOfficialDatabases(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		for _, name := range []string{"one", "two"} {
			must(p.client.Database(name).Collection("c").InsertOne(ctx, doc("_id", 1)))(t)
		}
		if names := must(p.client.ListDatabaseNames(ctx, doc("name", doc("$in", bson.A{"one", "two"}))))(t); !slices.Equal(names, []string{"one", "two"}) {
			t.Errorf("databases %v", names)
		}
		res := must(p.client.ListDatabases(ctx, doc("name", "one")))(t)
		if len(res.Databases) != 1 || res.Databases[0].Empty || res.Databases[0].SizeOnDisk == 0 {
			t.Errorf("databases %+v", res)
		}
		if err := p.client.Database("admin").RunCommand(ctx, doc("renameCollection", "one.c", "to", "one.d")).Err(); err != nil {
			t.Error(err)
		}
		cur, err := p.client.Database("one").RunCommandCursor(ctx, doc("listCollections", 1, "nameOnly", true))
		if got := all(t, cur, err); got != `{"name":"d","type":"collection"}` {
			t.Errorf("collections %s", got)
		}
		if err := p.client.Database("two").Drop(ctx); err != nil {
			t.Error(err)
		}
		if names := must(p.client.ListDatabaseNames(ctx, doc("name", "two")))(t); len(names) != 0 {
			t.Errorf("a dropped database is there")
		}
		for _, cmd := range []bson.D{doc("dbStats", 1), doc("collStats", "d"), doc("serverStatus", 1), doc("hostInfo", 1), doc("getParameter", "*"), doc("validate", "d"),
			doc("explain", doc("find", "d", "filter", doc("_id", 1))), doc("connectionStatus", 1), doc("getCmdLineOpts", 1), doc("whatsmyuri", 1), doc("currentOp", 1), doc("getLog", "global")} {
			db := "one"
			if slices.Contains([]string{"hostInfo", "getParameter", "getCmdLineOpts", "whatsmyuri", "currentOp", "getLog"}, cmd[0].Key) {
				db = "admin"
			}
			if err := p.client.Database(db).RunCommand(ctx, cmd).Err(); err != nil {
				t.Errorf("%s: %v", cmd[0].Key, err)
			}
		}
		wantCode(t, p.client.Database("one").RunCommand(ctx, doc("nope", 1)).Err(), 59)
	})
}

func TestOfficialServerAPI(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		strict := connect(t, p.d, func(o *options.ClientOptions) {
			o.SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion1).SetStrict(true).SetDeprecationErrors(true))
		})
		coll := strict.db.Collection("c")
		must(coll.InsertOne(ctx, doc("_id", 1)))(t)
		must(coll.CountDocuments(ctx, doc()))(t)
		must(coll.EstimatedDocumentCount(ctx))(t)
		wantCode(t, strict.db.RunCommand(ctx, doc("distinct", "c", "key", "_id")).Err(), 323)
		wantCode(t, strict.client.Database("admin").RunCommand(ctx, doc("serverStatus", 1)).Err(), 323)
		s, inside := strict.session(t)
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		must(coll.InsertOne(inside, doc("_id", 2)))(t)
		if err := s.CommitTransaction(inside); err != nil {
			t.Error(err)
		}
	})
}

func TestOfficialConcerns(t *testing.T) {
	p := official(t, mongotest.ReplicaSet(3))
	ctx := t.Context()
	for _, wc := range []*writeconcern.WriteConcern{writeconcern.Majority(), writeconcern.W1(), {W: 3}, {W: 2, Journal: new(true)}, writeconcern.Unacknowledged()} {
		must(p.db.Collection("c", options.Collection().SetWriteConcern(wc)).InsertOne(ctx, doc("wc", fmt.Sprint(wc.W))))(t)
	}
	for _, rc := range []*readconcern.ReadConcern{readconcern.Local(), readconcern.Majority(), readconcern.Linearizable(), readconcern.Available(), readconcern.Snapshot()} {
		deadline := time.Now().Add(10 * time.Second)
		for { // the unacknowledged one is on its way
			n := must(p.db.Collection("c", options.Collection().SetReadConcern(rc)).CountDocuments(ctx, doc()))(t)
			if n == 5 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s reads %d documents", rc.Level, n)
			}
		}
	}
	for _, s := range p.d.Secondaries() {
		s.HoldBack()
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := p.db.Collection("c", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 2})).InsertOne(short, doc("_id", "held"))
	if !mongo.IsTimeout(err) {
		t.Errorf("a write that nobody replicates ends with %v", err)
	}
}

func TestOfficialShardedCollection(t *testing.T) {
	p := official(t, mongotest.Sharded(3, 2))
	ctx := t.Context()
	admin := p.client.Database("admin")
	for _, cmd := range []bson.D{doc("enableSharding", "interop"), doc("shardCollection", "interop.c", "key", doc("k", "hashed"))} {
		if err := admin.RunCommand(ctx, cmd).Err(); err != nil {
			t.Fatal(err)
		}
	}
	coll := p.db.Collection("c")
	cs := watch(t, coll, mongo.Pipeline{})
	var docs []any
	for i := range 50 {
		docs = append(docs, doc("_id", i, "k", i, "g", i%5))
	}
	must(coll.InsertMany(ctx, docs))(t)
	seen := map[int64]bool{}
	for range 50 {
		e := next(t, cs)
		if key := e.DocumentKey.String(); !strings.Contains(key, `"k"`) {
			t.Fatalf("the document key %s lacks the shard key", key)
		}
		seen[e.DocumentKey.Lookup("_id").AsInt64()] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d different events", len(seen))
	}
	cur, err := coll.Aggregate(ctx, mongo.Pipeline{doc("$group", doc("_id", "$g", "n", doc("$sum", 1))), doc("$sort", doc("_id", 1)), doc("$limit", 2)})
	if got := all(t, cur, err); got != `{"_id":0,"n":10} {"_id":1,"n":10}` {
		t.Errorf("groups %s", got)
	}
	cur, err = coll.Find(ctx, doc(), options.Find().SetSort(doc("_id", -1)).SetSkip(1).SetLimit(3).SetBatchSize(2).SetProjection(doc("_id", 1)))
	if got := all(t, cur, err); got != `{"_id":48} {"_id":47} {"_id":46}` {
		t.Errorf("sorted %s", got)
	}
	s, inside := p.session(t)
	if err := s.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	must(coll.UpdateMany(inside, doc(), doc("$inc", doc("g", 1))))(t)
	if n := must(coll.CountDocuments(inside, doc("g", 5)))(t); n != 10 {
		t.Errorf("%d inside", n)
	}
	if err := s.AbortTransaction(inside); err != nil {
		t.Fatal(err)
	}
	if n := must(coll.CountDocuments(ctx, doc("g", 5)))(t); n != 0 {
		t.Errorf("%d outside", n)
	}
}
