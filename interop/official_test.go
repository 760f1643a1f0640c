package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	alliumbson "allium/bson"
	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// peer is the official Go driver, with its own defaults, connected to a deployment.
type peer struct {
	d      *mongotest.Deployment
	client *mongo.Client
	db     *mongo.Database
}

// connect connects the official driver to a deployment. change may change its options.
func connect(t *testing.T, d *mongotest.Deployment, change ...func(*options.ClientOptions)) *peer {
	t.Helper()
	opts := options.Client().ApplyURI(d.URI())
	for _, f := range change {
		f(opts)
	}
	conns := &connections{dialer: opts.Dialer}
	client, err := mongo.Connect(opts.SetDialer(conns))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// When the driver's monitor is just about to ask a server for news, Disconnect does not
		// interrupt it but waits for the answer, up to ten seconds; when it knows no server any
		// more, it waits for one to send endSessions to.
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		defer context.AfterFunc(ctx, conns.close)()
		if err := client.Disconnect(ctx); err != nil {
			t.Error(err)
		}
	})
	return &peer{d, client, client.Database("interop")}
}

// connections is a dialer that can close all its connections.
type connections struct {
	dialer options.ContextDialer // nil: net.Dialer
	mu     sync.Mutex
	open   []net.Conn
	closed bool
}

func (c *connections) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := c.dialer
	if dialer == nil {
		dialer = &net.Dialer{}
	}
	nc, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, nc)
	if c.closed {
		nc.Close()
	}
	return nc, nil
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, nc := range c.open {
		nc.Close()
	}
}

// official starts a deployment and connects the official driver to it.
func official(t *testing.T, opts ...mongotest.Option) *peer {
	t.Helper()
	p := connect(t, mongotest.Start(t, opts...))
	if err := p.client.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// replicated are the kinds of deployments that have sessions and an oplog.
var replicated = []struct {
	name string
	kind mongotest.Option
}{
	{"replicaset", mongotest.ReplicaSet(3)},
	{"sharded", mongotest.Sharded(2, 2)},
	{"loadbalanced", mongotest.LoadBalanced(2)},
}

// clusters runs a test of the official driver against each kind of deployment that has sessions and
// an oplog.
func clusters(t *testing.T, test func(t *testing.T, p *peer)) {
	for _, r := range replicated {
		t.Run(r.name, func(t *testing.T) { test(t, official(t, r.kind)) })
	}
}

// deployments runs a test of the official driver against each kind of deployment.
func deployments(t *testing.T, test func(t *testing.T, p *peer)) {
	t.Run("standalone", func(t *testing.T) { test(t, official(t, mongotest.Standalone())) })
	clusters(t, test)
}

// doc makes a document of names and values.
func doc(kv ...any) bson.D {
	d := make(bson.D, 0, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		d = append(d, bson.E{Key: kv[i].(string), Value: kv[i+1]})
	}
	return d
}

// count counts the commands of this name from now on.
func (p *peer) count(name string) *atomic.Int64 {
	n := new(atomic.Int64)
	p.d.OnCommand(func(c *mongotest.Command) (alliumbson.Raw, error) {
		if c.Name == name {
			n.Add(1)
		}
		return nil, nil
	})
	return n
}

// all reads a cursor to its end and shows the documents as relaxed Extended JSON.
func all(t *testing.T, cur *mongo.Cursor, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var docs []bson.Raw
	if err := cur.All(t.Context(), &docs); err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, d := range docs {
		text = append(text, show(t, d))
	}
	return strings.Join(text, " ")
}

// show is a document as relaxed Extended JSON.
func show(t *testing.T, d any) string {
	t.Helper()
	text, err := bson.MarshalExtJSON(d, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantCode checks that the server answered with this error.
func wantCode(t *testing.T, err error, code int) {
	t.Helper()
	var se mongo.ServerError
	if !errors.As(err, &se) || !se.HasErrorCode(code) {
		t.Fatalf("want the server's error %d, got %v", code, err)
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestOfficialCRUD(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("people")
		must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "Ada"}, {Key: "age", Value: 36}}))(t)
		must(coll.InsertMany(ctx, []any{
			bson.D{{Key: "_id", Value: 2}, {Key: "name", Value: "Grace"}, {Key: "age", Value: 85}},
			bson.D{{Key: "_id", Value: 3}, {Key: "name", Value: "Edsger"}, {Key: "age", Value: 72}},
		}))(t)
		var got struct {
			Name string
			Age  int
		}
		if err := coll.FindOne(ctx, bson.D{{Key: "age", Value: bson.D{{Key: "$gt", Value: 80}}}}).Decode(&got); err != nil || got.Name != "Grace" {
			t.Fatalf("find one: %+v, %v", got, err)
		}
		if err := coll.FindOne(ctx, bson.D{{Key: "age", Value: -1}}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
			t.Fatalf("find nothing: %v", err)
		}
		up := must(coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "age", Value: 1}}}}))(t)
		if up.MatchedCount != 1 || up.ModifiedCount != 1 {
			t.Fatalf("update one: %+v", up)
		}
		up = must(coll.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "seen", Value: true}}}}))(t)
		if up.ModifiedCount != 3 {
			t.Fatalf("update many: %+v", up)
		}
		up = must(coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 4}}, bson.D{{Key: "$set", Value: bson.D{{Key: "name", Value: "Barbara"}}}}, options.UpdateOne().SetUpsert(true)))(t)
		if up.UpsertedCount != 1 || fmt.Sprint(up.UpsertedID) != "4" {
			t.Fatalf("upsert: %+v", up)
		}
		must(coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 4}}, bson.D{{Key: "name", Value: "Liskov"}}))(t)
		if err := coll.FindOneAndUpdate(ctx, bson.D{{Key: "name", Value: "Liskov"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 80}}}},
			options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&got); err != nil || got.Age != 80 {
			t.Fatalf("find one and update: %+v, %v", got, err)
		}
		if n := must(coll.CountDocuments(ctx, bson.D{{Key: "age", Value: bson.D{{Key: "$gte", Value: 72}}}}))(t); n != 3 {
			t.Fatalf("count: %d", n)
		}
		var names []string
		if err := coll.Distinct(ctx, "name", bson.D{{Key: "seen", Value: true}}).Decode(&names); err != nil || len(names) != 3 {
			t.Fatalf("distinct: %v, %v", names, err)
		}
		del := must(coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: 1}}))(t)
		if del.DeletedCount != 1 {
			t.Fatalf("delete one: %+v", del)
		}
		del = must(coll.DeleteMany(ctx, bson.D{}))(t)
		if del.DeletedCount != 3 {
			t.Fatalf("delete many: %+v", del)
		}
		if err := coll.Drop(ctx); err != nil {
			t.Fatal(err)
		}
		if err := p.db.Drop(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOfficialBulkInsertWithDuplicate(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		for _, tc := range []struct {
			ordered  bool
			inserted int64
		}{{true, 2}, {false, 4}} {
			t.Run(fmt.Sprintf("ordered=%v", tc.ordered), func(t *testing.T) {
				ctx := t.Context()
				coll := p.db.Collection(fmt.Sprintf("bulk%v", tc.ordered))
				docs := []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 3}}, bson.D{{Key: "_id", Value: 4}}}
				_, err := coll.InsertMany(ctx, docs, options.InsertMany().SetOrdered(tc.ordered))
				var bulk mongo.BulkWriteException
				if !errors.As(err, &bulk) || len(bulk.WriteErrors) != 1 || bulk.WriteErrors[0].Index != 2 || !mongo.IsDuplicateKeyError(err) {
					t.Fatalf("want one duplicate key error at index 2, got %v", err)
				}
				if n := must(coll.CountDocuments(ctx, bson.D{}))(t); n != tc.inserted {
					t.Fatalf("%d documents inserted, want %d", n, tc.inserted)
				}
			})
		}
	})
}

func TestOfficialCursorOverSeveralBatches(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("batches")
		docs := make([]any, 1000)
		for i := range docs {
			docs[i] = bson.D{{Key: "_id", Value: i}}
		}
		must(coll.InsertMany(ctx, docs))(t)
		cur := must(coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(7).SetSort(bson.D{{Key: "_id", Value: 1}})))(t)
		want := 0
		for cur.Next(ctx) {
			if got := cur.Current.Lookup("_id").AsInt64(); got != int64(want) {
				t.Fatalf("document %d has _id %d", want, got)
			}
			want++
		}
		if err := cur.Err(); err != nil || want != len(docs) {
			t.Fatalf("%d documents, %v", want, err)
		}
		// A cursor that is closed early.
		cur = must(coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2)))(t)
		if !cur.Next(ctx) {
			t.Fatal(cur.Err())
		}
		if err := cur.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOfficialIndexes(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("indexed")
		name := must(coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "email", Value: 1}}, Options: options.Index().SetUnique(true)}))(t)
		if name != "email_1" {
			t.Fatalf("index name %q", name)
		}
		must(coll.InsertOne(ctx, bson.D{{Key: "email", Value: "ada@example.com"}}))(t)
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "email", Value: "ada@example.com"}}); !mongo.IsDuplicateKeyError(err) {
			t.Fatalf("want a duplicate key error, got %v", err)
		}
		specs := must(coll.Indexes().ListSpecifications(ctx))(t)
		if len(specs) != 2 || specs[1].Name != "email_1" || specs[1].Unique == nil || !*specs[1].Unique {
			t.Fatalf("indexes: %+v", specs)
		}
		names := must(p.db.ListCollectionNames(ctx, bson.D{}))(t)
		if len(names) != 1 || names[0] != "indexed" {
			t.Fatalf("collections: %v", names)
		}
	})
}

// alliumDoc makes a document for mongotest of names and values.
func alliumDoc(kv ...any) alliumbson.D {
	d := make(alliumbson.D, 0, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		d = append(d, alliumbson.E{Key: kv[i].(string), Value: kv[i+1]})
	}
	return d
}

var secondaryOnly = readpref.Secondary()
