package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// streams prints what change streams do.
func streams(db *mongo.Database) {
	c := db.Collection("streams")
	check(db.CreateCollection(ctx, "streams"))
	cs, err := c.Watch(
		ctx, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(
			options.UpdateLookup).SetMaxAwaitTime(10*time.Millisecond))
	check(err)
	say("stream", cs.ID() != 0, cs.Err(), cs.TryNext(ctx), cs.Err(), len(cs.ResumeToken()) > 0,
		cs.RemainingBatchLength())
	_, err = c.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 2}}, {{Key: "_id", Value: 3}}})
	check(err)
	_, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	check(err)
	_, err = c.DeleteOne(ctx, bson.D{{Key: "_id", Value: 2}})
	check(err)
	var first bson.Raw
	for i := range 5 {
		if !cs.Next(ctx) {
			say(fmt.Sprint("event ", i), cs.Err())
			break
		}
		if i == 0 {
			first = bytes.Clone(cs.ResumeToken())
		}
		var e struct {
			ID            bson.Raw `bson:"_id"`
			OperationType string   `bson:"operationType"`
			FullDocument  bson.M   `bson:"fullDocument"`
			DocumentKey   bson.D   `bson:"documentKey"`
			NS            bson.D   `bson:"ns"`
		}
		err := cs.Decode(&e)
		say(fmt.Sprint("event ", i), err, e.OperationType, e.FullDocument, e.DocumentKey, e.NS,
			bytes.Equal(e.ID, cs.ResumeToken()), len(cs.Current) > 0)
	}
	say("stream closes", cs.Close(ctx), cs.Close(ctx), cs.Next(ctx), cs.ID(), cs.Err())
	cs, err = c.Watch(ctx, mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}},
		options.ChangeStream().SetResumeAfter(first).SetBatchSize(1))
	check(err)
	say("resumed", cs.Next(ctx), cs.Current.Lookup("documentKey").String(), cs.Next(ctx),
		cs.Current.Lookup("documentKey").String(), cs.Close(ctx))
	cs, err = c.Watch(ctx, mongo.Pipeline{{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}}}}},
		options.ChangeStream().SetStartAfter(first))
	if err == nil {
		say("without token", cs.Next(ctx), cs.Err() != nil)
		cs.Close(ctx)
	} else {
		say("without token", err != nil)
	}
	_, err = c.Watch(ctx, nil)
	say("watch nil", err)
	_, err = c.Watch(ctx, 5)
	say("watch number", err)
	_, err = c.Watch(ctx, mongo.Pipeline{{{Key: "$bad", Value: 1}}})
	say("watch bad", err)
	ds, err := db.Watch(ctx, mongo.Pipeline{})
	check(err)
	ks, err := db.Client().Watch(ctx, bson.A{})
	check(err)
	_, err = db.Collection("others").InsertOne(ctx, bson.D{{Key: "_id", Value: 5}})
	check(err)
	say("database stream", ds.Next(ctx), ds.Current.Lookup("fullDocument").String(), ds.Close(ctx))
	say("client stream", ks.Next(ctx), ks.Current.Lookup("ns").String(), ks.Close(ctx))
	cs, err = c.Watch(ctx, mongo.Pipeline{})
	check(err)
	check(c.Drop(ctx))
	say("dropped", cs.Next(ctx), cs.Current.Lookup("operationType").String(), cs.Next(ctx),
		cs.Current.Lookup("operationType").String(), cs.Next(ctx), cs.Err(), cs.ID())
	cs, err = db.Collection("late").Watch(ctx, mongo.Pipeline{})
	check(err)
	late, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	found := cs.Next(late)
	say("stream in time", found, errors.Is(cs.Err(), context.DeadlineExceeded), mongo.IsTimeout(cs.Err()))
	cs.Close(ctx)
	say("stream types", mongo.CollectionStream, mongo.DatabaseStream, mongo.ClientStream)
}

// files prints what a bucket does.
func files(db *mongo.Database) {
	b := db.GridFSBucket()
	check(b.Drop(ctx))
	content := strings.Repeat("0123456789", 60000)
	id, err := b.UploadFromStream(ctx, "a.txt", strings.NewReader(content),
		options.GridFSUpload().SetMetadata(bson.D{{Key: "m", Value: 1}}))
	say("upload", !id.IsZero(), err)
	time.Sleep(2 * time.Millisecond) // the later one is the newer one, by a clock that counts milliseconds
	err = b.UploadFromStreamWithID(ctx, "second", "a.txt", strings.NewReader("second"),
		options.GridFSUpload().SetChunkSizeBytes(4))
	say("upload with id", err)
	var buf bytes.Buffer
	n, err := b.DownloadToStream(ctx, id, &buf)
	say("download", n, err, buf.String() == content)
	buf.Reset()
	n, err = b.DownloadToStreamByName(ctx, "a.txt", &buf)
	say("download by name", n, err, buf.String())
	buf.Reset()
	n, err = b.DownloadToStreamByName(ctx, "a.txt", &buf, options.GridFSName().SetRevision(0))
	say("download revision", n, err)
	n, err = b.DownloadToStreamByName(ctx, "a.txt", &buf, options.GridFSName().SetRevision(5))
	say("download no revision", n, err)
	n, err = b.DownloadToStream(ctx, "none", &buf)
	say("download none", n, err)
	_, err = b.OpenDownloadStreamByName(ctx, "none")
	say("open none", err)
	ds, err := b.OpenDownloadStream(ctx, id)
	check(err)
	f := ds.GetFile()
	say("file", f.ID == id, f.Length, f.ChunkSize, f.Name, f.Metadata, time.Since(f.UploadDate) < time.Hour)
	p := make([]byte, 5)
	k, err := io.ReadFull(ds, p)
	skipped, skipErr := ds.Skip(300001)
	say("skip", k, err, string(p), skipped, skipErr)
	k, err = io.ReadFull(ds, p)
	say("behind", k, err, string(p))
	skipped, err = ds.Skip(1 << 40)
	say("skip to the end", skipped, err)
	k, err = ds.Read(p)
	say("at the end", k, err, err == io.EOF)
	say("close", ds.Close(), ds.Close())
	_, err = ds.Read(p)
	say("read closed", err)
	us, err := b.OpenUploadStream(ctx, "s.txt", options.GridFSUpload().SetChunkSizeBytes(3))
	check(err)
	k, err = us.Write([]byte("hello world"))
	say("write", k, err, fmt.Sprintf("%T", us.FileID))
	say("close upload", us.Close(), us.Close())
	_, err = us.Write([]byte("x"))
	say("write closed", err)
	us, err = b.OpenUploadStreamWithID(ctx, 7, "t.txt")
	check(err)
	_, err = us.Write([]byte("hello"))
	say("abort", err, us.Abort(), us.Abort(), us.Close(), us.FileID)
	chunks, err := b.GetChunksCollection().CountDocuments(ctx, bson.D{})
	say("collections", b.GetFilesCollection().Name(), b.GetChunksCollection().Name(), chunks, err)
	cur, err := b.Find(ctx, bson.D{{Key: "filename", Value: "a.txt"}},
		options.GridFSFind().SetSort(bson.D{{Key: "length", Value: 1}}).SetLimit(5))
	check(err)
	var found []mongo.GridFSFile
	say("find files", cur.All(ctx, &found), len(found), found[0].ID, found[0].Length, found[0].ChunkSize,
		found[len(found)-1].Metadata)
	say("rename", b.Rename(ctx, "second", "b.txt"), b.Rename(ctx, "none", "c.txt"))
	_, err = b.GetChunksCollection().DeleteOne(ctx, bson.D{{Key: "files_id", Value: "second"}, {Key: "n", Value: 1}})
	check(err)
	_, err = b.DownloadToStream(ctx, "second", io.Discard)
	say("missing chunk", err)
	check(b.UploadFromStreamWithID(ctx, "third", "c", strings.NewReader("0123456789"),
		options.GridFSUpload().SetChunkSizeBytes(4)))
	_, err = b.GetChunksCollection().UpdateOne(ctx, bson.D{{Key: "files_id", Value: "third"}, {Key: "n", Value: 0}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "data", Value: []byte("01")}}}})
	check(err)
	_, err = b.DownloadToStream(ctx, "third", io.Discard)
	say("wrong size", err)
	say("delete", b.Delete(ctx, id), b.Delete(ctx, id), b.Delete(ctx, "second"))
	check(b.UploadFromStreamWithID(ctx, "empty", "e", strings.NewReader("")))
	n, err = b.DownloadToStream(ctx, "empty", io.Discard)
	say("empty file", n, err)
	var none bytes.Buffer
	n, err = b.DownloadToStream(ctx, "empty", &none)
	say("empty file into a buffer", n, err, none.Bytes() == nil)
	n, err = b.DownloadToStream(ctx, "empty", struct{ io.Writer }{io.Discard})
	say("empty file into a writer alone", n, err)
	other := db.GridFSBucket(options.GridFSBucket().SetName("other").SetChunkSizeBytes(10))
	_, err = other.UploadFromStream(ctx, "x", strings.NewReader("01234567890"))
	say("other bucket", err, other.GetFilesCollection().Name())
	specs, err := other.GetChunksCollection().Indexes().ListSpecifications(ctx)
	say("bucket indexes", len(specs), err)
	say("drop bucket", other.Drop(ctx), other.Drop(ctx), mongo.DefaultGridFSChunkSize)
	say("bad id", b.UploadFromStreamWithID(ctx, nil, "x", strings.NewReader("")) != nil)
	broken := errors.New("broken")
	_, err = b.UploadFromStream(ctx, "x", io.MultiReader(strings.NewReader("x"), failingReader{broken}))
	say("broken source", err)
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// monitored prints what monitors are told.
func monitored(db *mongo.Database) {
	var mu sync.Mutex
	var commands []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		commands = append(commands, fmt.Sprintf(format, args...))
	}
	keys := func(doc bson.Raw) string {
		var names []string
		elems, _ := doc.Elements()
		for _, e := range elems {
			switch k := e.Key(); k {
			case "lsid", "$clusterTime", "$readPreference", "txnNumber":
			default:
				names = append(names, k)
			}
		}
		slices.Sort(names[1:]) // the driver may choose the order behind the name
		return strings.Join(names, ",")
	}
	kinds := map[string]int{}
	pool := func(e *event.PoolEvent) {
		mu.Lock()
		defer mu.Unlock()
		kinds[e.Type]++
	}
	sdam := map[string]bool{}
	saw := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		sdam[name] = true
	}
	client := connect(options.Client().SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			note("started %s %s %s id=%v conn=%v", e.CommandName, e.DatabaseName, keys(e.Command), e.RequestID != 0,
				strings.Contains(e.ConnectionID, "[-"))
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			note("succeeded %s %s %v %v", e.CommandName, e.DatabaseName, e.Reply.Lookup("ok").String(), e.Duration > 0)
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			note("failed %s %s %s", e.CommandName, e.DatabaseName, e.Failure)
		},
	}).SetPoolMonitor(&event.PoolMonitor{Event: pool}).SetServerMonitor(&event.ServerMonitor{
		TopologyOpening: func(*event.TopologyOpeningEvent) {
			saw("TopologyOpening")
		}, TopologyClosed: func(*event.TopologyClosedEvent) { saw("TopologyClosed") },
		ServerOpening: func(*event.ServerOpeningEvent) {
			saw("ServerOpening")
		}, ServerClosed: func(*event.ServerClosedEvent) { saw("ServerClosed") },
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
			saw("Server " + e.PreviousDescription.Kind + " to " + e.NewDescription.Kind)
		},
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			if e.NewDescription.Kind == "ReplicaSetWithPrimary" {
				saw("Topology " + e.NewDescription.Kind + " " + e.NewDescription.SetName)
				for _, s := range e.NewDescription.Servers {
					if s.Kind == "RSPrimary" {
						saw(fmt.Sprint("primary ", s.SetName, s.MaxWireVersion > 0, s.MaxDocumentSize, s.MaxMessageSize,
							s.MaxBatchCount, *s.SessionTimeoutMinutes, len(s.Hosts), len(s.Members), s.HelloOK))
					}
				}
			}
		},
		ServerHeartbeatStarted: func(*event.ServerHeartbeatStartedEvent) { saw("HeartbeatStarted") },
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
			saw("HeartbeatSucceeded " + e.Reply.Kind)
		},
	}))
	c := client.Database("probe").Collection("monitored")
	_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	check(err)
	_, _ = c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	_ = c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}},
		options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetSort(bson.D{{Key: "_id",
			Value: 1}}).SetComment("c"))
	_, _ = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	_, _ = c.DeleteMany(ctx, bson.D{})
	_, _ = c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: bson.D{}}}})
	_, _ = c.CountDocuments(ctx, bson.D{})
	_, _ = c.EstimatedDocumentCount(ctx)
	_ = c.Distinct(ctx, "a", bson.D{})
	_ = c.FindOneAndUpdate(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	_, _ = c.Find(ctx, bson.D{{Key: "$bad", Value: 1}})
	_, _ = c.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 5}}, {{Key: "_id", Value: 6}}, {{Key: "_id", Value: 7}}})
	cur, err := c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	check(err)
	cur.Next(ctx)
	cur.Close(ctx)
	_, _ = c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: 8}}),
		mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: 8}})})
	_, _ = c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}})
	_, _ = c.Indexes().List(ctx)
	_ = c.Indexes().DropAll(ctx)
	_ = client.Ping(ctx, nil)
	_ = client.Database("probe").RunCommand(ctx, bson.D{{Key: "nothing", Value: 1}})
	_, _ = client.Database("probe").ListCollectionNames(ctx, bson.D{})
	_, _ = client.ListDatabaseNames(ctx, bson.D{})
	_ = c.Drop(ctx)
	check(client.Disconnect(ctx))
	mu.Lock()
	defer mu.Unlock()
	for i, line := range commands {
		say(fmt.Sprintf("command %03d", i), line)
	}
	say("pool events", kinds["ConnectionPoolCreated"], kinds["ConnectionPoolReady"] > 0, kinds["ConnectionPoolClosed"],
		kinds["ConnectionCreated"] > 0, kinds["ConnectionReady"] > 0, kinds["ConnectionClosed"] > 0,
		kinds["ConnectionCheckOutStarted"] == kinds["ConnectionCheckedOut"],
		kinds["ConnectionCheckedOut"] == kinds["ConnectionCheckedIn"])
	for name := range sdam {
		say("monitor "+name, true)
	}
	say("disconnected", client.Disconnect(ctx), client.Ping(ctx, nil))
	_, err = c.InsertOne(ctx, bson.D{})
	say("insert disconnected", err)
	_, err = client.StartSession()
	say("session disconnected", err)
}

type shout string

// coding prints that registries and settings of clients, databases and collections count.
func coding(db *mongo.Database) {
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.TypeFor[shout](),
		bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			return vw.WriteString(strings.ToUpper(v.String()))
		}))
	reg.RegisterTypeDecoder(reflect.TypeFor[shout](),
		bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			s, err := vr.ReadString()
			v.SetString(s + "!")
			return err
		}))
	type loud struct {
		ID shout `bson:"_id"`
		S  shout
		N  []int
		M  map[string]int
		D  any
	}
	client := connect(options.Client().SetRegistry(reg).SetBSONOptions(&options.BSONOptions{NilSliceAsEmpty: true,
		NilMapAsEmpty: true, DefaultDocumentM: true, UseLocalTimeZone: true, ObjectIDAsHexString: true}))
	defer client.Disconnect(ctx)
	for i, c := range []*mongo.Collection{
		client.Database("probe").Collection("coding"), db.Collection("coding"),
		client.Database("probe", options.Database().SetBSONOptions(&options.BSONOptions{})).Collection("coding"),
		db.Collection("coding", options.Collection().SetRegistry(reg)),
		client.Database("probe").Collection("coding", options.Collection().SetRegistry(bson.NewRegistry())),
		db.Collection("coding").Clone(
			options.Collection().SetRegistry(reg).SetBSONOptions(&options.BSONOptions{IntMinSize: true})),
		client.Database("probe", options.Database().SetRegistry(bson.NewRegistry())).Collection("coding"),
	} {
		id := shout(fmt.Sprint("id", i))
		res, err := c.InsertOne(ctx,
			loud{ID: id, S: "s", D: bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: int64(1)}}}}})
		say(fmt.Sprint("coded ", i), res.InsertedID, err)
		var back loud
		r := c.FindOne(ctx, bson.D{{Key: "_id", Value: id}})
		doc, _ := r.Raw()
		say(fmt.Sprint("coded document ", i), doc)
		say(fmt.Sprint("coded back ", i), r.Decode(&back), back.ID, back.S, back.N == nil, back.M == nil,
			fmt.Sprintf("%T", back.D), bson.D{{Key: "d", Value: back.D}})
		cur, err := c.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: []shout{id}}}}})
		check(err)
		var all []loud
		say(fmt.Sprint("coded all ", i), cur.All(ctx, &all), len(all), all[0].ID, all[0].S)
		up, err := c.UpdateOne(ctx, bson.M{"_id": id}, bson.M{"$set": bson.M{"S": id, "z": []int(nil)}})
		say(fmt.Sprint("coded update ", i), up, err)
		n, err := c.CountDocuments(ctx, bson.M{"S": id})
		say(fmt.Sprint("coded count ", i), n, err)
		var values []shout
		say(fmt.Sprint("coded distinct ", i), c.Distinct(ctx, "_id", bson.D{{Key: "_id", Value: id}}).Decode(&values),
			values)
		cur, err = c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "_id", Value: id}}}}})
		check(err)
		say(fmt.Sprint("coded aggregate ", i), cur.Next(ctx), cur.Decode(&back), back.S)
		var m bson.M
		say(fmt.Sprint("coded map ", i), cur.Decode(&m), fmt.Sprintf("%T %T", m["d"], m["_id"]))
		w, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id",
			Value: id + "x"}}).SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "q", Value: id}}}}).SetUpsert(true)})
		say(fmt.Sprint("coded bulk ", i), w, err)
		_, err = c.DeleteMany(ctx, bson.D{})
		check(err)
	}
}

// failures prints what becomes of servers that are not there.
func failures(*mongo.Database) {
	for i, o := range []*options.ClientOptions{
		options.Client().ApplyURI("x"), options.Client().ApplyURI("mongodb://"),
		options.Client().SetHosts([]string{"a", "b"}).SetDirect(true),
		options.Client().SetMinPoolSize(5).SetMaxPoolSize(1),
		options.Client().SetAuth(options.Credential{AuthMechanism: "NONE"}),
	} {
		_, err := mongo.Connect(o)
		say(fmt.Sprint("connect ", i), err != nil)
	}
	away, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50"))
	check(err)
	err = away.Ping(ctx, nil)
	say("away", fmt.Sprintf("%T", err), strings.SplitAfter(err.Error(), "Servers")[0],
		strings.HasPrefix(err.Error(), "server selection error: "),
		strings.Contains(
			err.Error(), "current topology: { Type: Unknown, Servers: [{ Addr: 127.0.0.1:1, Type: Unknown"),
		mongo.IsTimeout(err), mongo.IsNetworkError(err), errors.Is(err, context.DeadlineExceeded))
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = away.Database("x").Collection("y").InsertOne(short, bson.D{})
	say("away in time", fmt.Sprintf("%T", err), strings.SplitAfter(err.Error(), "Servers")[0], mongo.IsTimeout(err),
		mongo.IsNetworkError(err), errors.Is(err, context.DeadlineExceeded))
	cancelled, cancel2 := context.WithCancel(ctx)
	cancel2()
	err = away.Ping(cancelled, nil)
	say("away cancelled", mongo.IsTimeout(err), errors.Is(err, context.Canceled))
	say("away disconnects", away.Disconnect(ctx))

	for i, o := range []*options.ClientOptions{
		options.Client().SetCompressors([]string{"x", "zlib"}), options.Client().SetServerSelectionTimeout(0),
		options.Client().SetConnectTimeout(0), options.Client().SetMaxPoolSize(0).SetMinPoolSize(1),
		options.Client().SetMaxConnecting(0),
	} {
		odd, err := mongo.Connect(options.Client().ApplyURI(uri), o)
		say(fmt.Sprint("odd setting ", i), err)
		if err == nil {
			say(fmt.Sprint("odd setting reaches ", i), odd.Ping(ctx, nil), odd.Disconnect(ctx))
		}
	}
	nobody := connect(options.Client().SetAuth(options.Credential{Username: "nobody", Password: "x",
		AuthMechanism: "SCRAM-SHA-256"}))
	say("refused", nobody.Ping(ctx, nil))
	check(nobody.Disconnect(ctx))

	client := connect()
	defer client.Disconnect(ctx)
	c := client.Database("probe").Collection("failures")
	_, err = c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	check(err)
	closing := func(command string, times int) {
		check(client.Database("admin").RunCommand(ctx,
			bson.D{{Key: "configureFailPoint", Value: "failCommand"},
				{Key: "mode", Value: bson.D{{Key: "times", Value: times}}},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{command}},
					{Key: "closeConnection", Value: true}}}}).Err())
	}
	closing("find", 2)
	err = c.FindOne(ctx, bson.D{}).Err()
	var ce mongo.CommandError
	say("closed twice", errors.As(err, &ce), ce.Code, ce.Labels, mongo.IsNetworkError(err), mongo.IsTimeout(err),
		ce.Wrapped != nil, strings.Contains(err.Error(), ") incomplete read of message header: "),
		strings.HasSuffix(err.Error(), "EOF"), errors.Is(err, io.EOF), strings.HasPrefix(err.Error(), "connection("))
	closing("find", 1)
	say("closed once", c.FindOne(ctx, bson.D{}).Err())
	closing("insert", 2)
	_, err = c.InsertOne(ctx, bson.D{{Key: "_id", Value: 2}})
	ce = mongo.CommandError{}
	say("insert closed twice", errors.As(err, &ce), ce.Code, ce.HasErrorLabel("NetworkError"),
		ce.HasErrorLabel("RetryableWriteError"), mongo.IsNetworkError(err))
	closing("update", 1)
	_, err = c.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	ce = mongo.CommandError{}
	say("update many closed", errors.As(err, &ce), ce.HasErrorLabel("NetworkError"), mongo.IsNetworkError(err))
	check(client.Database("admin").RunCommand(ctx,
		bson.D{{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}},
				{Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 200}}}}).Err())
	short, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	err = c.FindOne(short, bson.D{}).Err()
	ce = mongo.CommandError{}
	say("blocked", errors.As(err, &ce), ce.Labels, errors.Is(err, context.DeadlineExceeded), mongo.IsTimeout(err),
		mongo.IsNetworkError(err))
}

// encrypted prints what explicit and automatic encryption say without build tags.
func encrypted(*mongo.Database) {}
