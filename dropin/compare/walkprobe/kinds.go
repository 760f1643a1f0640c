package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"allium/dropin/compare/walk"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// prepare makes what the kinds read.
func prepare() {
	for _, n := range []int{0, 1, 3, 5} {
		name := fmt.Sprint("docs", n)
		must(db.CreateCollection(ctx, name))
		for i := range n {
			doc := bson.D{{Key: "_id", Value: i}, {Key: "t", Value: fmt.Sprint("t", i)}}
			_, err := db.Collection(name).InsertOne(ctx, doc)
			must(err)
		}
	}
	must(db.CreateCollection(ctx, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(10000)))
	for i := range 3 {
		_, err := db.Collection("capped").InsertOne(ctx, bson.D{{Key: "_id", Value: i}})
		must(err)
	}
	b := db.GridFSBucket(options.GridFSBucket().SetChunkSizeBytes(4))
	for _, n := range []int{0, 1, 4, 10, 12} {
		must(b.UploadFromStreamWithID(ctx, n, fmt.Sprint("f", n), bytes.NewReader([]byte("abcdefghijklmnop")[:n])))
	}
	// A file that lacks a chunk, one with a chunk that is short, and one of length 0 with a chunk.
	must(b.UploadFromStreamWithID(ctx, "lacks", "lacks", bytes.NewReader([]byte("abcdefghij"))))
	_, err := b.GetChunksCollection().DeleteOne(ctx, bson.D{{Key: "files_id", Value: "lacks"}, {Key: "n", Value: 1}})
	must(err)
	must(b.UploadFromStreamWithID(ctx, "short", "short", bytes.NewReader([]byte("abcdefghij"))))
	_, err = b.GetChunksCollection().UpdateOne(ctx, bson.D{{Key: "files_id", Value: "short"}, {Key: "n", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "data", Value: []byte("ef")}}}})
	must(err)
}

var errMine = errors.New("mine")

// failing makes commands fail.
func failing(c *mongo.Client, mode any, data bson.D) {
	must(c.Database("admin").RunCommand(ctx, bson.D{{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: mode}, {Key: "data", Value: data}}).Err())
}

// once makes the next commands of a name fail with a code, or without a reply for 0.
func once(times int, code int, names ...string) {
	data := bson.D{{Key: "failCommands", Value: names}}
	if code == 0 {
		data = append(data, bson.E{Key: "closeConnection", Value: true})
	} else {
		data = append(data, bson.E{Key: "errorCode", Value: code})
	}
	failing(client, bson.D{{Key: "times", Value: times}}, data)
}

func never() { failing(client, "off", bson.D{}) }

// failStep is the step "Fail TIMES CODE COMMAND...".
func failStep(_ any, args ...string) []any {
	once(walk.Number(args[0]), walk.Number(args[1]), args[2:]...)
	return nil
}

var kinds = map[string]walk.Kind{
	"cursor": {Open: openCursor, Steps: map[string]func(any, ...string) []any{
		"ID":   func(thing any, _ ...string) []any { return []any{thing.(*mongo.Cursor).ID() != 0} },
		"Fail": failStep,
	}, Close: func(thing any) {
		never()
		_ = thing.(*mongo.Cursor).Close(ctx)
	}},
	"stream": {Open: openStream, Steps: map[string]func(any, ...string) []any{
		"ID":     func(thing any, _ ...string) []any { return []any{thing.(*mongo.ChangeStream).ID() != 0} },
		"Fail":   failStep,
		"Insert": insertStep,
	}, Close: func(thing any) {
		never()
		_ = thing.(*mongo.ChangeStream).Close(ctx)
	}},
	"session": {Open: openSession, Steps: sessionSteps(),
		Close: func(thing any) {
			never()
			thing.(*session).EndSession(ctx)
			// What could not be aborted keeps its locks for a minute.
			must(client.Database("admin").RunCommand(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}}).Err())
		}},
	"file": walk.Files(openFile, 4),
	"odd":  walk.Files(openFile, 0), // what is wrong with these has no end
	"upload": walk.Uploads(openUpload, func(thing any) []any {
		id := thing.(*mongo.GridFSUploadStream).FileID
		files, err := db.Collection("fs.files").CountDocuments(ctx, bson.D{{Key: "_id", Value: id}})
		must(err)
		chunks, err := db.Collection("fs.chunks").CountDocuments(ctx, bson.D{{Key: "files_id", Value: id}})
		must(err)
		return []any{files, chunks}
	}),
	"collection": {Open: openCollection, Steps: map[string]func(any, ...string) []any{
		"Fail": failStep,
		"IDs": func(thing any, _ ...string) []any {
			var docs []bson.D
			sorted := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}})
			cur, err := thing.(*mongo.Collection).Find(ctx, bson.D{}, sorted)
			must(err)
			must(cur.All(ctx, &docs))
			return []any{docs}
		},
		"During": func(thing any, args ...string) []any { return during(thing.(*mongo.Collection), args...) },
	}, Close: func(any) { never() }},
	"indexes": {Open: openIndexes},
	"client":  {Open: openClient},
	"database": {Open: func(args ...string) (any, error) {
		c, err := openClient(args...)
		return c.(*mongo.Client).Database("walked"), err
	}},
	"result": {Open: func(args ...string) (any, error) {
		return db.Collection("docs"+args[0]).FindOne(ctx, bson.D{}), nil
	}},
}

// openCursor opens a cursor: "find N by SIZE", "made N", "broken N", "tail", "aggregate N by SIZE".
func openCursor(args ...string) (any, error) {
	switch args[0] {
	case "find":
		return db.Collection("docs"+args[1]).Find(ctx, bson.D{},
			options.Find().SetBatchSize(int32(walk.Number(args[3]))).SetSort(bson.D{{Key: "_id", Value: 1}}))
	case "aggregate":
		return db.Collection("docs"+args[1]).Aggregate(ctx, mongo.Pipeline{},
			options.Aggregate().SetBatchSize(int32(walk.Number(args[3]))))
	case "made", "broken":
		var docs []any
		for i := range walk.Number(args[1]) {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "t", Value: fmt.Sprint("t", i)}})
		}
		var err error
		if args[0] == "broken" {
			err = errMine
		}
		return mongo.NewCursorFromDocuments(docs, err, nil)
	case "tail":
		return db.Collection("capped").Find(ctx, bson.D{},
			options.Find().SetCursorType(options.TailableAwait).SetMaxAwaitTime(20*time.Millisecond).SetBatchSize(2))
	case "list":
		return db.ListCollections(ctx, bson.D{{Key: "name", Value: "docs3"}})
	case "command":
		find := bson.D{{Key: "find", Value: "docs" + args[1]}, {Key: "batchSize", Value: walk.Number(args[3])}}
		return db.RunCommandCursor(ctx, find)
	}
	panic(args[0])
}

// openStream opens a change stream, behind which are so many events.
func openStream(args ...string) (any, error) {
	c := db.Collection("streamed")
	_ = c.Drop(ctx)
	must(db.CreateCollection(ctx, "streamed"))
	opts := options.ChangeStream().SetMaxAwaitTime(10 * time.Millisecond)
	if len(args) > 1 {
		opts.SetBatchSize(int32(walk.Number(args[1])))
	}
	cs, err := c.Watch(ctx, mongo.Pipeline{{{Key: "$project", Value: bson.D{{Key: "documentKey", Value: 1}}}}}, opts)
	for range walk.Number(args[0]) {
		insertStep(nil)
	}
	return cs, err
}

var inserted int

func insertStep(any, ...string) []any {
	inserted++
	_, err := db.Collection("streamed").InsertOne(ctx, bson.D{{Key: "_id", Value: inserted}})
	return []any{err}
}

// A session is a session, and what it was at the beginning.
type session struct {
	*mongo.Session
	id string
}

func openSession(args ...string) (any, error) {
	opts := options.Session()
	if args[0] == "snapshot" {
		opts.SetSnapshot(true)
	}
	s, err := client.StartSession(opts)
	if err != nil {
		return nil, err
	}
	return &session{s, string(s.ID())}, nil
}

// sessionSteps are those steps of a session whose results are others at each run.
func sessionSteps() map[string]func(any, ...string) []any {
	steps := map[string]func(*session, ...string) []any{
		"ID": func(s *session, _ ...string) []any {
			return []any{len(s.ID()), string(s.ID()) == s.id}
		},
		"ClusterTime":   func(s *session, _ ...string) []any { return []any{s.ClusterTime() != nil} },
		"OperationTime": func(s *session, _ ...string) []any { return []any{s.OperationTime() != nil} },
		"SnapshotTime":  func(s *session, _ ...string) []any { return []any{s.SnapshotTime() != bson.Timestamp{}} },
		"Client":        func(s *session, _ ...string) []any { return []any{s.Client() == client} },
		"AdvanceOwn": func(s *session, _ ...string) []any {
			return []any{s.AdvanceClusterTime(s.ClusterTime()), s.AdvanceOperationTime(s.OperationTime())}
		},
		"Find": func(s *session, _ ...string) []any {
			return []any{db.Collection("docs1").FindOne(mongo.NewSessionContext(ctx, s.Session), bson.D{}).Err()}
		},
		"Update": func(s *session, _ ...string) []any {
			res, err := db.Collection("docs1").UpdateOne(mongo.NewSessionContext(ctx, s.Session),
				bson.D{{Key: "_id", Value: 0}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
			return []any{res, err}
		},
		"Bad": func(s *session, _ ...string) []any {
			_, err := db.Collection("docs1").InsertOne(mongo.NewSessionContext(ctx, s.Session),
				bson.D{{Key: "_id", Value: 0}})
			return []any{err}
		},
		"Running":  func(s *session, _ ...string) []any { return []any{s.TransactionRunning()} },
		"Sessions": func(*session, ...string) []any { return []any{client.NumberSessionsInProgress()} },
		"Fail":     func(_ *session, args ...string) []any { return failStep(nil, args...) },
		"With":     with,
	}
	out := map[string]func(any, ...string) []any{}
	for name, f := range steps {
		out[name] = func(thing any, args ...string) []any { return f(thing.(*session), args...) }
	}
	return out
}

// with is the step "With DEED...": a transaction by WithTransaction whose callback does the next of
// the deeds at each call, the last one from then on.
func with(s *session, deeds ...string) []any {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if deeds[0] == "ended" {
		cancel()
	}
	calls := 0
	res, err := s.WithTransaction(ctx, func(inside context.Context) (any, error) {
		deed := deeds[min(calls, len(deeds)-1)]
		calls++
		ofLabels := func(labels ...string) error { return mongo.CommandError{Code: 7, Message: "own", Labels: labels} }
		switch deed {
		case "fail":
			return "failed", errMine
		case "transient":
			return "transient", ofLabels("TransientTransactionError")
		case "wrapped":
			return "wrapped", fmt.Errorf("around: %w", ofLabels("TransientTransactionError"))
		case "unknown":
			return "unknown", ofLabels("UnknownTransactionCommitResult")
		case "nilnil":
			return nil, nil
		case "abort":
			return "aborted", s.AbortTransaction(inside)
		case "commit":
			return "committed", s.CommitTransaction(inside)
		case "end":
			s.EndSession(inside)
			return "ended", nil
		case "cancel":
			cancel()
			return "canceled", nil
		case "cancelfail":
			cancel()
			return "canceled", errMine
		case "panic":
			panic("own panic")
		case "nested":
			return s.WithTransaction(inside, func(context.Context) (any, error) { return "inner", nil })
		case "start":
			return "started", s.StartTransaction()
		}
		_, err := db.Collection("docs1").UpdateOne(inside, bson.D{{Key: "_id", Value: 0}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
		return "updated", err
	})
	return []any{res, err, calls, s.TransactionRunning()}
}

func openFile(args ...string) (any, error) {
	b := db.GridFSBucket()
	if n, err := strconv.Atoi(args[0]); err == nil {
		return b.OpenDownloadStream(ctx, n)
	}
	return b.OpenDownloadStreamByName(ctx, args[0])
}

func openUpload(args ...string) (any, error) {
	return db.GridFSBucket().OpenUploadStream(ctx, "uploaded",
		options.GridFSUpload().SetChunkSizeBytes(int32(walk.Number(args[0]))))
}

// openCollection opens a collection with the documents 0 to 2.
func openCollection(args ...string) (any, error) {
	_ = db.Collection("written").Drop(ctx)
	c := db.Collection("written")
	for i := range 3 {
		if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: i}}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// during calls a method of a collection with a context that ends while the server answers the
// second command.
func during(c *mongo.Collection, args ...string) []any {
	ctx, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
	defer cancel()
	failing(client, "alwaysOn", bson.D{{Key: "failCommands", Value: bson.A{args[1]}},
		{Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 450}})
	defer func() {
		never()
		time.Sleep(450 * time.Millisecond) // what was blocked has gone on
	}()
	switch args[0] {
	case "BulkWrite":
		res, err := c.BulkWrite(ctx, value("mixed").([]mongo.WriteModel))
		return []any{res, mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded)}
	case "InsertMany":
		res, err := c.InsertMany(ctx, value("three"))
		return []any{res, mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded)}
	case "UpdateMany":
		res, err := c.UpdateMany(ctx, bson.D{}, value("set"))
		return []any{res, mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded)}
	case "DeleteMany":
		res, err := c.DeleteMany(ctx, bson.D{})
		return []any{res, mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded)}
	case "ClientBulk":
		res, err := c.Database().Client().BulkWrite(ctx, value("clientmixed").([]mongo.ClientBulkWrite))
		return []any{res, mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded)}
	}
	panic(args[0])
}

func openIndexes(args ...string) (any, error) {
	c := db.Collection(args[0])
	if args[0] != "nowhere" {
		_ = c.Drop(ctx)
		must(db.CreateCollection(ctx, args[0]))
		_, err := c.Indexes().CreateMany(ctx, []mongo.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}},
			{Keys: bson.D{{Key: "b", Value: -1}, {Key: "c", Value: 1}}}, {Keys: bson.D{{Key: "t", Value: "text"}}}})
		must(err)
	}
	return c.Indexes(), nil
}

// openClient opens a client: "connected", or one that was disconnected.
func openClient(args ...string) (any, error) {
	c := connect()
	_ = db.Collection("clientwritten").Drop(ctx)
	_, err := db.Collection("clientwritten").InsertMany(ctx, ids(0, 1, 2))
	must(err)
	if args[0] == "disconnected" {
		must(c.Disconnect(ctx))
	}
	return c, nil
}
