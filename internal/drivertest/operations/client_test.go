package operations

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

func TestOpenRefusesBadStrings(t *testing.T) {
	for uri, want := range map[string]string{
		"":                                     "scheme",
		"http://localhost":                     "scheme",
		"mongodb://":                           "host",
		"mongodb://user:hunter2@host:99999/":   "port",
		"mongodb://user:hunter2@host/?w=-1":    "w",
		"mongodb://u:hunter2@h/?maxPoolSize=x": "maxPoolSize",
		"mongodb://us@er:hunter2@host/":        "percent-encoded",
		"mongodb://host/?tls=true&tls=false":   "tls",
		"mongodb://a,b/?directConnection=true": "directConnection",
	} {
		client, err := allium.Open(uri)
		if err == nil {
			if !strings.Contains(uri, "maxPoolSize") && !strings.Contains(uri, "w=-1") { // those are warnings
				t.Errorf("%q was accepted", uri)
			}
			client.Close(t.Context())
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error does not name %q: %v", uri, want, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error prints the password: %v", uri, err)
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	client := rig.Open(t, "mongodb://"+fakeserver.Refuses+"/?serverSelectionTimeoutMS=200")
	err := client.Ping(t.Context())
	var sel *mongoerr.SelectionError
	if !errors.As(err, &sel) {
		t.Fatalf("want a SelectionError, got %v", err)
	}
	if !strings.Contains(err.Error(), "refused") {
		t.Errorf("the error does not say that the connection was refused: %v", err)
	}
	if sel.Topology == nil || len(sel.Topology.Servers) != 1 {
		t.Errorf("topology in the error: %v", sel.Topology)
	}
}

func TestContextEndsWhileSelecting(t *testing.T) {
	client := rig.Open(t, "mongodb://"+fakeserver.Refuses+"/")
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		checkTimeout(t, client.Ping(ctx), context.DeadlineExceeded, "server selection")
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		checkTimeout(t, client.Ping(ctx), context.Canceled, "server selection")
	})
}

func checkTimeout(t *testing.T, err, class error, phase mongoerr.Phase) {
	t.Helper()
	var timeout *mongoerr.TimeoutError
	if !errors.Is(err, class) || !errors.As(err, &timeout) {
		t.Fatalf("want a TimeoutError that is %v, got %T %[2]v", class, err)
	}
	if timeout.Phase != phase {
		t.Errorf("phase is %q, want %q: %v", timeout.Phase, phase, err)
	}
}

// The bubble makes the deadline that of the reply, and of nothing that comes before it.
func TestContextEndsWhileWaitingForReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var later atomic.Bool
		network := &fakeserver.Network{}
		network.Add("a:1", &fakeserver.Server{Handle: fakeserver.Standing(fakeserver.Hello(), func(r *fakeserver.Request) {
			if r.Command == "slow" && !later.Swap(true) {
				<-release
			}
			r.Reply(fakeserver.OK())
		})})
		var created atomic.Int32
		client, err := allium.Open("mongodb://a:1/?serverMonitoringMode=poll", allium.ClientOptions{Dialer: network, MaxPoolSize: new(1), PoolMonitor: &event.PoolMonitor{
			ConnectionCreated: func(*event.ConnectionCreated) { created.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		db := client.Database("x")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = db.RunCommand(ctx, bson.D{{Key: "slow", Value: 1}})
		checkTimeout(t, err, context.DeadlineExceeded, "read")

		// The only connection still owes the reply, and the next operation needs its place.
		if _, err := db.RunCommand(t.Context(), bson.D{{Key: "next", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		if n := created.Load(); n != 2 {
			t.Errorf("%d connections were created, want 2", n)
		}
		close(release)
		client.Close(t.Context())
		network.Wait()
	})
}

// noContext is a context that a caller forgot to set.
var noContext context.Context

func TestContextIsNil(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI())
	coll := client.Database("x").Collection("y")
	ctx := noContext
	if _, err := coll.Find(ctx, bson.D{}); err == nil || !strings.Contains(err.Error(), "context is nil") {
		t.Errorf("find: %v", err)
	}
	if _, err := coll.InsertOne(ctx, bson.D{}); err == nil || !strings.Contains(err.Error(), "context is nil") {
		t.Errorf("insert one: %v", err)
	}
}

func TestMalformedReplies(t *testing.T) {
	reply := func(edit func(msg []byte) []byte) func(*fakeserver.Request) {
		return func(r *fakeserver.Request) {
			r.Conn.WriteRaw(edit(r.Message(fakeserver.OK())))
			r.Conn.CloseWrite()
		}
	}
	cases := map[string]func(*fakeserver.Request){
		"short":           reply(func(m []byte) []byte { return m[:len(m)-3] }),
		"header only":     reply(func(m []byte) []byte { return m[:7] }),
		"nothing":         reply(func(m []byte) []byte { return nil }),
		"negative length": reply(func(m []byte) []byte { binary.LittleEndian.PutUint32(m, 1<<31); return m }),
		"huge length":     reply(func(m []byte) []byte { binary.LittleEndian.PutUint32(m, 1<<30); return m }),
		"length too small": reply(func(m []byte) []byte {
			binary.LittleEndian.PutUint32(m, 20)
			return m
		}),
		"document length": reply(func(m []byte) []byte { m[21] = 0x7F; return m }),
		"unknown opcode":  reply(func(m []byte) []byte { m[12], m[13] = 1, 1; return m }),
		"unknown section": reply(func(m []byte) []byte { m[20] = 9; return m }),
		"wrong answer":    reply(func(m []byte) []byte { m[8] ^= 0xFF; return m }),
		"garbage":         reply(func(m []byte) []byte { return []byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 20)) }),
		"bad checksum":    reply(func(m []byte) []byte { m[16] = 1; return append(m, 1, 2, 3, 4) }),
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := true
			fake := rig.StartFake(t, func(r *fakeserver.Request) {
				if broken {
					broken = false
					answer(r)
					return
				}
				r.Reply(fakeserver.OK())
			})
			closed := make(chan string, 10)
			client := rig.Open(t, fake, allium.ClientOptions{PoolMonitor: &event.PoolMonitor{
				ConnectionClosed: func(e *event.ConnectionClosed) { closed <- e.Reason },
			}})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := client.Database("x").RunCommand(ctx, bson.D{{Key: "find", Value: "y"}})
			if err == nil {
				t.Fatal("no error")
			}
			var c *mongoerr.ConnectionError
			if !errors.As(err, &c) {
				t.Errorf("want a ConnectionError, got %T %[1]v", err)
			}
			if reason := <-closed; reason != event.ClosedError && reason != event.ClosedStale {
				t.Errorf("connection was closed because of %q", reason)
			}
			if _, err := client.Database("x").RunCommand(ctx, bson.D{{Key: "find", Value: "y"}}); err != nil {
				t.Errorf("client is not usable any more: %v", err)
			}
		})
	}
}

func TestMalformedBatches(t *testing.T) {
	batch := func(appendBatch func(dst []byte) []byte) []byte {
		start, d := bson.BeginDocument(nil)
		cursor, d := bson.BeginDocumentElement(d, "cursor")
		d = appendBatch(d)
		d = bson.AppendInt64(d, "id", 0)
		d = bson.AppendString(d, "ns", "x.y")
		d = bson.EndDocument(d, cursor)
		return bson.EndDocument(bson.AppendInt32(d, "ok", 1), start)
	}
	array := func(doc []byte) []byte {
		start, d := bson.BeginDocument(nil)
		return bson.EndDocument(bson.AppendDocument(d, "0", doc), start)
	}
	badUTF8 := func() []byte {
		start, d := bson.BeginDocument(nil)
		return bson.EndDocument(bson.AppendString(d, "a", "\xff\xfe"), start)
	}()
	for name, reply := range map[string][]byte{
		"nesting bomb": batch(func(d []byte) []byte { return bson.AppendArray(d, "firstBatch", array(nested(5000))) }),
		"bad UTF-8":    batch(func(d []byte) []byte { return bson.AppendArray(d, "firstBatch", array(badUTF8)) }),
		"no batch":     batch(func(d []byte) []byte { return d }),
		"batch is int": batch(func(d []byte) []byte { return bson.AppendInt32(d, "firstBatch", 1) }),
		"no documents": batch(func(d []byte) []byte {
			start, arr := bson.BeginDocument(nil)
			return bson.AppendArray(d, "firstBatch", bson.EndDocument(bson.AppendInt32(arr, "0", 1), start))
		}),
		"no cursor": fakeserver.OK(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := rig.StartFake(t, func(r *fakeserver.Request) { r.Reply(reply) })
			coll := rig.Open(t, fake).Database("x").Collection("y")
			if doc, err := coll.FindOne(t.Context(), bson.D{}); err == nil {
				t.Errorf("find one returned %.100v", doc)
			}
			cur, err := coll.Find(t.Context(), bson.D{})
			if err == nil {
				_, err = cur.All(t.Context())
			}
			if err == nil {
				t.Error("find and all returned no error")
			}
		})
	}
}
func TestCloseFreesCursors(t *testing.T) {
	killed := make(chan bson.Raw, 1)
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client, err := allium.Open(d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			if e.CommandName == "killCursors" {
				killed <- append(bson.Raw(nil), e.Command...)
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	coll := client.Database("x").Collection("y")
	for i := range 5 {
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
			t.Fatal(err)
		}
	}
	cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	if err != nil || !cur.Next(t.Context()) {
		t.Fatal(err, cur.Err())
	}
	id := cur.ID()
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd := <-killed
	if got, _ := cmd.Lookup("cursors", "0").Int64(); got != id {
		t.Errorf("killed cursor %d, want %d", got, id)
	}
	for cur.Next(t.Context()) {
	}
	if !errors.Is(cur.Err(), mongoerr.ErrClientClosed) {
		t.Errorf("reading on after close: %v", cur.Err())
	}
	if err := client.Ping(t.Context()); !errors.Is(err, mongoerr.ErrClientClosed) {
		t.Errorf("ping after close: %v", err)
	}
	if err := client.Close(t.Context()); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// A cursor whose command is under way while the client closes is freed, and the call says why there
// is none.
func TestCloseWhileCursorOpens(t *testing.T) {
	var client *allium.Client
	killed := make(chan int64, 2)
	replied := make(chan int64, 2)
	finds := 0
	closed := make(chan error, 1)
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client, err := allium.Open(d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			if e.CommandName == "killCursors" {
				id, _ := e.Command.Lookup("cursors", "0").Int64()
				killed <- id
			}
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			if e.CommandName != "find" {
				return
			}
			id, _ := e.Reply.Lookup("cursor", "id").Int64()
			replied <- id
			if finds++; finds == 2 {
				go func() { closed <- client.Close(context.Background()) }()
				if first := <-killed; first != <-replied {
					t.Errorf("killed cursor %d first, want the one that was open", first)
				}
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	coll := client.Database("x").Collection("y")
	if _, err := coll.InsertMany(t.Context(), []bson.D{{}, {}, {}, {}, {}}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))}); err != nil {
		t.Fatal(err)
	}
	cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	if !errors.Is(err, mongoerr.ErrClientClosed) {
		t.Errorf("find while the client closes: %v, want ErrClientClosed", err)
	}
	if cur.Next(t.Context()) || !errors.Is(cur.Err(), mongoerr.ErrClientClosed) {
		t.Errorf("its cursor: %v, want ErrClientClosed", cur.Err())
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestUUIDRepresentation(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any.Since("8.0"))
	type doc struct {
		ID bson.UUID `bson:"_id"`
	}
	id := bson.NewUUID()
	java := allium.CollectionOf[doc](rig.Open(t, d.URIWith("uuidRepresentation=javaLegacy")).Database("x"), "y")
	if _, err := java.InsertOne(t.Context(), doc{id}); err != nil {
		t.Fatal(err)
	}
	// The filter, the document and the result all use it.
	if got, err := java.FindOne(t.Context(), bson.M{"_id": id}); err != nil || got.ID != id {
		t.Errorf("found %v, %v", got, err)
	}
	raw := allium.CollectionOf[bson.Raw](rig.Open(t, d.URI()).Database("x"), "y")
	stored, err := raw.FindOne(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := stored.Lookup("_id").Binary(); b.Subtype != bson.BinaryUUIDOld || bytes.Equal(b.Data, id[:]) {
		t.Errorf("stored as subtype %d, % x", b.Subtype, b.Data)
	}
	// So does the _id of what was upserted.
	for name, upserted := range map[string]func(filter bson.M) (any, error){
		"update": func(filter bson.M) (any, error) {
			res, err := java.UpdateOne(t.Context(), filter, rig.SetOf("x", 1), allium.UpdateOptions{Upsert: true})
			return res.UpsertedID, err
		},
		"bulk write": func(filter bson.M) (any, error) {
			res, err := java.BulkWrite(t.Context(), []allium.WriteModel{java.UpdateOneModel(filter, rig.SetOf("x", 1), allium.UpdateModelOptions{Upsert: true})})
			return res.UpsertedIDs[0], err
		},
		"bulk write of the client": func(filter bson.M) (any, error) {
			res, err := java.Database().Client().BulkWrite(t.Context(), []allium.WriteModel{java.UpdateOneModel(filter, rig.SetOf("x", 1), allium.UpdateModelOptions{Upsert: true})},
				allium.ClientBulkWriteOptions{VerboseResults: true})
			if err != nil {
				return nil, err
			}
			return res.Updates[0].UpsertedID, nil
		},
	} {
		id := bson.NewUUID()
		if got, err := upserted(bson.M{"_id": id}); err != nil || got != id {
			t.Errorf("%s: upserted %v, %v; want %v", name, got, err, id)
		}
	}
	// A collection may differ from its client.
	standard := java.With(allium.CollectionOptions{BSON: &bson.Options{UUID: bson.UUIDStandard}})
	if _, err := standard.FindOne(t.Context(), bson.M{"_id": id}); !errors.Is(err, mongoerr.ErrNoDocuments) {
		t.Errorf("found in the other representation: %v", err)
	}
}

func TestBulkWriteInsideBoundedTransaction(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{Timeout: new(time.Minute)})
	coll := client.Database("x").Collection("y")
	err := client.Transact(t.Context(), func(ctx context.Context) error {
		_, err := coll.BulkWrite(ctx, []allium.WriteModel{
			coll.InsertOneModel(bson.D{{Key: "_id", Value: 1}}), coll.DeleteOneModel(bson.D{{Key: "_id", Value: 2}}),
		})
		return err
	})
	if err != nil {
		t.Fatal(err) // the client's timeout is inherited, not one of the operation's own
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
}

// TestMalformedWriteReplies checks that what a server says about statements that a write does not
// have is an error, and no more.
func TestMalformedWriteReplies(t *testing.T) {
	filter, set := bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 2}}}}
	writes := map[string]func(ctx context.Context, c *allium.UntypedCollection) error{
		"insert one": func(ctx context.Context, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.InsertOne(ctx, filter))
		},
		"insert many": func(ctx context.Context, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.InsertMany(ctx, []bson.D{filter}))
		},
		"update": func(ctx context.Context, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.UpdateOne(ctx, filter, set))
		},
		"delete": func(ctx context.Context, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.DeleteOne(ctx, filter))
		},
		"bulk write": func(ctx context.Context, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.BulkWrite(ctx, []allium.WriteModel{c.UpdateOneModel(filter, set)}))
		},
	}
	element := func(index any) bson.D {
		return bson.D{{Key: "index", Value: index}, {Key: "_id", Value: 1}, {Key: "code", Value: 1}, {Key: "errmsg", Value: "no"}}
	}
	for name, field := range map[string]bson.E{
		"write error of another statement":  {Key: "writeErrors", Value: bson.A{element(int32(1))}},
		"write error of no statement":       {Key: "writeErrors", Value: bson.A{element(int32(-1))}},
		"write error without a document":    {Key: "writeErrors", Value: bson.A{1}},
		"upserted by another statement":     {Key: "upserted", Value: bson.A{element(int64(7))}},
		"upserted by no statement":          {Key: "upserted", Value: bson.A{element(int32(-1))}},
		"upserted twice":                    {Key: "upserted", Value: bson.A{element(int32(0)), element(int32(0))}},
		"upserted without an index":         {Key: "upserted", Value: bson.A{element("0")}},
		"upserted that is not a document":   {Key: "upserted", Value: bson.A{1}},
		"write concern error, more of them": {Key: "writeConcernError", Value: bson.D{{Key: "errInfo", Value: 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}, field})
			if err != nil {
				t.Fatal(err)
			}
			fake := rig.StartFake(t, func(r *fakeserver.Request) { r.Reply(reply) })
			coll := rig.Open(t, fake).Database("x").Collection("y")
			for what, run := range writes {
				if err := run(t.Context(), coll); err == nil {
					t.Errorf("%s: no error", what)
				}
			}
		})
	}
}

// TestServerWithoutLimits checks that a server whose hello names no limits, or none that make
// sense, gets the writes all the same.
func TestServerWithoutLimits(t *testing.T) {
	for name, limits := range map[string]bson.D{"none": nil, "zero": {{Key: "maxBsonObjectSize", Value: 0}, {Key: "maxMessageSizeBytes", Value: 0}, {Key: "maxWriteBatchSize", Value: 0}}} {
		t.Run(name, func(t *testing.T) {
			hello, err := bson.Marshal(append(bson.D{{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "maxWireVersion", Value: 25}}, limits...))
			if err != nil {
				t.Fatal(err)
			}
			var sent atomic.Int32
			fake := rig.StartFakeWith(t, hello, func(r *fakeserver.Request) {
				sent.Add(1)
				r.Reply(fakeserver.OK())
			})
			coll := rig.Open(t, fake).Database("x").Collection("y")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := coll.InsertMany(ctx, []bson.D{{}, {}, {}}); err != nil || sent.Load() != 1 {
				t.Errorf("%v after %d messages, want 1", err, sent.Load())
			}
		})
	}
}

// nested returns a document that nests n levels deep.
func nested(n int) []byte {
	doc := []byte{5, 0, 0, 0, 0}
	for range n {
		start, d := bson.BeginDocument(nil)
		doc = bson.EndDocument(bson.AppendDocument(d, "a", doc), start)
	}
	return doc
}

// TestUntypedInsertMany inserts slices of everything that is a document, and refuses what only
// looks like a slice of documents.
func TestUntypedInsertMany(t *testing.T) {
	type user struct{ Name string }
	p := rig.StartRecorded(t, allium.ClientOptions{})
	raw := rig.Must(bson.Marshal(bson.D{{Key: "name", Value: "r"}}))
	for _, docs := range []any{
		[]bson.D{{}, {}}, []bson.M{{}, {}}, bson.A{bson.D{}, user{"a"}}, []any{&user{"b"}, bson.M{}}, []user{{"c"}, {"d"}}, []*user{{"e"}, {"f"}},
		[]bson.Raw{raw, raw}, []map[string]int{{"x": 1}, {"x": 2}},
	} {
		res, err := p.Coll.InsertMany(t.Context(), docs)
		if err != nil || len(res.InsertedIDs) != 2 {
			t.Errorf("%T: %v, %v", docs, res.InsertedIDs, err)
		}
	}
	if n, err := p.Coll.CountDocuments(t.Context(), bson.D{}); n != 16 {
		t.Errorf("%d documents, %v", n, err)
	}
	p.Recorder.Reset()
	for _, docs := range []any{
		nil, user{"a"}, bson.M{}, bson.D{{Key: "x", Value: 1}}, raw, []byte(raw), "x", 1, []bson.D{}, []int{1}, []any{bson.D{}, 1}, []*user{nil}, (*user)(nil), new([]bson.D), []bson.E{{Key: "x"}},
	} {
		if _, err := p.Coll.InsertMany(t.Context(), docs); err == nil || !strings.HasPrefix(err.Error(), "insert db.coll: ") {
			t.Errorf("%T: %v", docs, err)
		}
	}
	if len(p.Recorder.Sent) != 0 {
		t.Errorf("%v was sent", p.Recorder.Sent)
	}
}
