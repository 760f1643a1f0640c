package interop

import (
	"context"
	"testing"
	"time"

	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// Kinds of collections, and what is special about reading them.

func TestOfficialTailableCursor(t *testing.T) {
	for name, kind := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replicaset": mongotest.ReplicaSet(3)} {
		t.Run(name, func(t *testing.T) {
			p := official(t, kind)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := p.db.CreateCollection(ctx, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(1<<16).SetMaxDocuments(5)); err != nil {
				t.Fatal(err)
			}
			coll := p.db.Collection("capped")
			must(coll.InsertOne(ctx, doc("_id", 0)))(t)
			cur := must(coll.Find(ctx, doc(), options.Find().SetCursorType(options.TailableAwait).SetMaxAwaitTime(20*time.Millisecond)))(t)
			defer cur.Close(ctx)
			expect := func(want int64) {
				t.Helper()
				if !cur.Next(ctx) {
					t.Fatalf("document %d does not come: %v", want, cur.Err())
				}
				if got := cur.Current.Lookup("_id").AsInt64(); got != want {
					t.Fatalf("document %d comes instead of %d", got, want)
				}
			}
			expect(0)
			if cur.TryNext(ctx) {
				t.Fatal("a document that nobody inserted")
			}
			must(coll.InsertMany(ctx, []any{doc("_id", 1), doc("_id", 2)}))(t)
			expect(1)
			expect(2)
			written := make(chan error, 1)
			go func() {
				_, err := coll.InsertOne(ctx, doc("_id", 3))
				written <- err
			}()
			expect(3) // waits for it
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			// When what comes next has been overwritten, the cursor is lost.
			for i := range 12 {
				must(coll.InsertOne(ctx, doc("_id", 10+i)))(t)
			}
			for cur.Next(ctx) {
				if cur.Current.Lookup("_id").AsInt64() == 21 {
					t.Fatal("the cursor survives that its position is overwritten")
				}
			}
			wantCode(t, cur.Err(), 136)
			if n := must(coll.CountDocuments(ctx, doc()))(t); n != 5 {
				t.Errorf("%d documents in a capped collection of 5", n)
			}
		})
	}
}

func TestOfficialCollation(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		en := &options.Collation{Locale: "en", Strength: 2}
		if err := p.db.CreateCollection(ctx, "names", options.CreateCollection().SetCollation(en)); err != nil {
			t.Fatal(err)
		}
		coll := p.db.Collection("names")
		must(coll.InsertMany(ctx, []any{doc("_id", 1, "n", "bob"), doc("_id", 2, "n", "ALICE"), doc("_id", 3, "n", "Bob"), doc("_id", 4, "n", "item10"), doc("_id", 5, "n", "item9")}))(t)
		for _, tt := range []struct {
			filter bson.D
			opts   *options.FindOptionsBuilder
			want   string
		}{
			{doc("n", "BOB"), options.Find(), `{"_id":1} {"_id":3}`},
			{doc("n", "BOB"), options.Find().SetCollation(&options.Collation{Locale: "simple"}), ``},
			{doc(), options.Find().SetSort(doc("n", 1, "_id", -1)), `{"_id":2} {"_id":3} {"_id":1} {"_id":4} {"_id":5}`},
			{doc("n", doc("$gte", "item")), options.Find().SetSort(doc("n", 1)).SetCollation(&options.Collation{Locale: "en", NumericOrdering: true}), `{"_id":5} {"_id":4}`},
		} {
			cur, err := coll.Find(ctx, tt.filter, tt.opts.SetProjection(doc("_id", 1)))
			if got := all(t, cur, err); got != tt.want {
				t.Errorf("find %v: %s, want %s", tt.filter, got, tt.want)
			}
		}
		must(coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: doc("n", 1), Options: options.Index().SetName("simple").SetUnique(true).SetCollation(&options.Collation{Locale: "en", Strength: 3})}))(t)
		if _, err := coll.InsertOne(ctx, doc("n", "bob")); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("want a duplicate key error, got %v", err)
		}
		res := must(coll.UpdateMany(ctx, doc("n", "alice"), doc("$set", doc("found", true))))(t)
		if res.ModifiedCount != 1 {
			t.Errorf("modified %d", res.ModifiedCount)
		}
	})
}

func TestOfficialViews(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		orders(t, p)
		if err := p.db.CreateView(ctx, "lines", "sales", mongo.Pipeline{doc("$unwind", "$lines"), doc("$replaceWith", "$lines")}); err != nil {
			t.Fatal(err)
		}
		if err := p.db.CreateView(ctx, "large", "lines", mongo.Pipeline{doc("$match", doc("qty", doc("$gte", 10)))}); err != nil {
			t.Fatal(err)
		}
		cur, err := p.db.Collection("large").Find(ctx, doc(), options.Find().SetSort(doc("sku", 1)).SetProjection(doc("sku", 1)))
		if got, want := all(t, cur, err), `{"sku":"paper"} {"sku":"pen"}`; got != want {
			t.Errorf("a view of a view: %s, want %s", got, want)
		}
		if n := must(p.db.Collection("lines").CountDocuments(ctx, doc("sku", "pen")))(t); n != 2 {
			t.Errorf("count in a view: %d", n)
		}
		_, err = p.db.Collection("lines").InsertOne(ctx, doc())
		wantCode(t, err, 166)
		specs := must(p.db.ListCollectionSpecifications(ctx, doc("name", "large")))(t)
		if len(specs) != 1 || specs[0].Type != "view" || specs[0].Options.Lookup("viewOn").StringValue() != "lines" {
			t.Errorf("specification of a view: %+v", specs)
		}
	})
}

func TestOfficialTimeSeries(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		if err := p.db.CreateCollection(ctx, "weather", options.CreateCollection().SetExpireAfterSeconds(1<<40).
			SetTimeSeriesOptions(options.TimeSeries().SetTimeField("at").SetMetaField("sensor").SetGranularity("minutes"))); err != nil {
			t.Fatal(err)
		}
		coll := p.db.Collection("weather")
		at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
		for i := range 6 {
			must(coll.InsertOne(ctx, doc("at", at.Add(time.Duration(i)*time.Hour), "sensor", i%2, "temperature", 10+i)))(t)
		}
		cur, err := coll.Aggregate(ctx, mongo.Pipeline{
			doc("$group", doc("_id", "$sensor", "mean", doc("$avg", "$temperature"), "n", doc("$sum", 1))), doc("$sort", doc("_id", 1)),
		})
		if got, want := all(t, cur, err), `{"_id":0,"mean":12.0,"n":3} {"_id":1,"mean":13.0,"n":3}`; got != want {
			t.Errorf("means %s, want %s", got, want)
		}
		if n := must(coll.CountDocuments(ctx, doc("at", doc("$gte", at.Add(3*time.Hour)))))(t); n != 3 {
			t.Errorf("%d measurements since three", n)
		}
		_, err = coll.InsertOne(ctx, doc("sensor", 1)) // no time
		wantCode(t, err, 2)
		specs := must(p.db.ListCollectionSpecifications(ctx, doc("name", "weather")))(t)
		if len(specs) != 1 || specs[0].Type != "timeseries" || specs[0].Options.Lookup("timeseries", "metaField").StringValue() != "sensor" {
			t.Errorf("specification of a time series: %+v", specs)
		}
	})
}

func TestOfficialValidator(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		schema := doc("$jsonSchema", doc("bsonType", "object", "required", bson.A{"name", "age"}, "properties", doc(
			"name", doc("bsonType", "string", "minLength", 2), "age", doc("bsonType", "int", "minimum", 0, "maximum", 150))))
		if err := p.db.CreateCollection(ctx, "people", options.CreateCollection().SetValidator(schema)); err != nil {
			t.Fatal(err)
		}
		coll := p.db.Collection("people")
		must(coll.InsertOne(ctx, doc("_id", 1, "name", "Ada", "age", 36)))(t)
		for _, bad := range []bson.D{doc("name", "Ada"), doc("name", "A", "age", 1), doc("name", "Ada", "age", "36"), doc("name", "Ada", "age", 151)} {
			_, err := coll.InsertOne(ctx, bad)
			wantCode(t, err, 121)
		}
		_, err := coll.UpdateOne(ctx, doc("_id", 1), doc("$set", doc("age", -1)))
		wantCode(t, err, 121)
		must(coll.InsertOne(ctx, doc("name", "?"), options.InsertOne().SetBypassDocumentValidation(true)))(t)
		if err := p.db.RunCommand(ctx, doc("collMod", "people", "validationAction", "warn")).Err(); err != nil {
			t.Fatal(err)
		}
		must(coll.InsertOne(ctx, doc("name", "!")))(t)
		if n := must(coll.CountDocuments(ctx, schema))(t); n != 1 {
			t.Errorf("%d documents follow the schema", n)
		}
	})
}

// TestOfficialReadPreferences reads from secondaries, by tags, and from one that is behind.
func TestOfficialReadPreferences(t *testing.T) {
	d := mongotest.Start(t, mongotest.Members(
		mongotest.Member{}, mongotest.Member{Priority: new(0.0), Tags: map[string]string{"dc": "east"}},
		mongotest.Member{Priority: new(0.0), Tags: map[string]string{"dc": "west"}}, mongotest.Member{Hidden: true}, mongotest.Member{Arbiter: true}))
	p := connect(t, d)
	ctx := t.Context()
	coll := p.db.Collection("c")
	must(coll.InsertOne(ctx, doc("_id", 1)))(t)
	east, west := d.Node(1), d.Node(2)
	east.HoldBack()
	must(coll.InsertOne(ctx, doc("_id", 2)))(t)
	for _, tt := range []struct {
		rp   *readpref.ReadPref
		want int64
	}{
		{readpref.Primary(), 2},
		{readpref.Secondary(readpref.WithTags("dc", "east")), 1},
		{readpref.Secondary(readpref.WithTags("dc", "west")), 2},
		{readpref.Nearest(readpref.WithTags("dc", "moon"), readpref.WithTags("dc", "east")), 1},
		{readpref.PrimaryPreferred(), 2},
	} {
		if n := must(p.db.Collection("c", options.Collection().SetReadPreference(tt.rp)).CountDocuments(ctx, doc()))(t); n != tt.want {
			t.Errorf("%v reads %d documents, want %d", tt.rp, n, tt.want)
		}
	}
	east.CatchUp()
	for _, n := range []*mongotest.Node{east, west} {
		direct := connect(t, d, func(o *options.ClientOptions) { o.ApplyURI("mongodb://" + n.Addr() + "/?directConnection=true") })
		if n := must(direct.db.Collection("c").CountDocuments(ctx, doc()))(t); n != 2 {
			t.Errorf("a direct connection reads %d documents", n)
		}
	}
}
