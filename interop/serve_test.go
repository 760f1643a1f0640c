package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// Small programs by topic with every foreign client, all against one `allium serve`: what a suite
// in another language does that starts the server by itself.

// serve builds allium, starts it as a program in another language would, and returns the connection
// string that it prints.
func serve(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "allium")
	if runtime.GOOS == "windows" {
		tool += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", tool, "allium/cmd/allium").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(tool, "serve", "--replset", "3", "--port", "0", "--json", "--parent")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := interrupt(cmd.Process); err != nil {
			t.Error(err)
		}
		cmd.Wait()
		if stderr.Len() > 0 {
			t.Logf("allium serve says: %s", &stderr)
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("allium serve: %v\n%s", err, &stderr)
	}
	var ready struct{ URI string }
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return ready.URI
}

func TestTopics(t *testing.T) {
	uri := serve(t)
	names := []string{"crud", "aggregation", "bulk", "transactions", "changestreams", "gridfs", "sessions"}
	t.Run("go", func(t *testing.T) {
		client, err := mongo.Connect(options.Client().ApplyURI(uri))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Disconnect(context.Background())
		for _, name := range names {
			t.Run(name, func(t *testing.T) { topics[name](t, client, client.Database("go_"+name)) })
		}
	})
	t.Run("pymongo", func(t *testing.T) { runTopics(t, "scripts", uri, []string{pymongo(t), "topics.py"}, names) })
	t.Run("npm", func(t *testing.T) {
		dir := npm(t)
		t.Run("mongodb", func(t *testing.T) { runTopics(t, dir, uri, []string{"node", "topics.mjs"}, names) })
		t.Run("mongoose", func(t *testing.T) { runTopics(t, dir, uri, []string{"node", "mongoose.mjs"}, names[:5]) })
	})
}

// runTopics runs a client's program once per topic.
func runTopics(t *testing.T, dir, uri string, command, names []string) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, command[0], append(slices.Clone(command[1:]), uri, name)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// topics are the programs of the official Go driver.
var topics = map[string]func(t *testing.T, client *mongo.Client, db *mongo.Database){
	"crud": func(t *testing.T, _ *mongo.Client, db *mongo.Database) {
		c := db.Collection("c")
		var docs []any
		for i := range 100 {
			docs = append(docs, doc("_id", i, "n", i%10))
		}
		must(c.InsertMany(t.Context(), docs))(t)
		if n := must(c.CountDocuments(t.Context(), doc("n", 3)))(t); n != 10 {
			t.Errorf("%d documents", n)
		}
		if r := must(c.UpdateMany(t.Context(), doc("n", 3), doc("$inc", doc("n", 100))))(t); r.ModifiedCount != 10 {
			t.Errorf("%d updated", r.ModifiedCount)
		}
		if r := must(c.ReplaceOne(t.Context(), doc("_id", "new"), doc("x", 1), options.Replace().SetUpsert(true)))(t); r.UpsertedID != "new" {
			t.Errorf("upserted %v", r.UpsertedID)
		}
		cur, err := c.Find(t.Context(), doc("$where", "this.n == 5 && this._id > 80"), options.Find().SetSort(doc("_id", 1)))
		if got := all(t, cur, err); got != `{"_id":85,"n":5} {"_id":95,"n":5}` {
			t.Errorf("found %s", got)
		}
		if _, err := c.InsertOne(t.Context(), doc("_id", 0)); !mongo.IsDuplicateKeyError(err) {
			t.Error(err)
		}
		if r := must(c.DeleteMany(t.Context(), doc("n", doc("$gt", 100))))(t); r.DeletedCount != 10 {
			t.Errorf("%d deleted", r.DeletedCount)
		}
	},
	"aggregation": func(t *testing.T, _ *mongo.Client, db *mongo.Database) {
		c := db.Collection("c")
		must(c.InsertMany(t.Context(), []any{doc("_id", 1, "g", 1, "v", 2), doc("_id", 2, "g", 1, "v", 3), doc("_id", 3, "g", 2, "v", 5)}))(t)
		cur, err := c.Aggregate(t.Context(), bson.A{doc("$group", doc("_id", "$g", "sum", doc("$sum", "$v"))), doc("$sort", doc("_id", 1))})
		if got := all(t, cur, err); got != `{"_id":1,"sum":5} {"_id":2,"sum":5}` {
			t.Errorf("groups %s", got)
		}
		double := doc("$function", doc("body", "function(v) { return v * 2 }", "args", bson.A{"$v"}, "lang", "js"))
		cur, err = c.Aggregate(t.Context(), bson.A{doc("$match", doc("_id", 3)), doc("$project", doc("r", double)), doc("$merge", doc("into", "out"))})
		all(t, cur, err)
		cur, err = db.Collection("out").Find(t.Context(), doc())
		if got := all(t, cur, err); got != `{"_id":3,"r":10.0}` {
			t.Errorf("merged %s", got)
		}
	},
	"bulk": func(t *testing.T, client *mongo.Client, db *mongo.Database) {
		r := must(db.Collection("c").BulkWrite(t.Context(), []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(doc("_id", 1, "n", 1)), mongo.NewUpdateManyModel().SetFilter(doc()).SetUpdate(doc("$inc", doc("n", 1))),
			mongo.NewReplaceOneModel().SetFilter(doc("_id", 3)).SetReplacement(doc("n", 9)).SetUpsert(true), mongo.NewDeleteOneModel().SetFilter(doc("_id", 1)),
		}))(t)
		if r.InsertedCount != 1 || r.ModifiedCount != 1 || r.UpsertedCount != 1 || r.DeletedCount != 1 {
			t.Errorf("%+v", r)
		}
		many := must(client.BulkWrite(t.Context(), []mongo.ClientBulkWrite{
			{Database: db.Name(), Collection: "x", Model: mongo.NewClientInsertOneModel().SetDocument(doc("a", 1))},
			{Database: db.Name(), Collection: "y", Model: mongo.NewClientUpdateOneModel().SetFilter(doc()).SetUpdate(doc("$set", doc("b", 1))).SetUpsert(true)},
		}))(t)
		if many.InsertedCount != 1 || many.UpsertedCount != 1 {
			t.Errorf("%+v", many)
		}
	},
	"transactions": func(t *testing.T, client *mongo.Client, db *mongo.Database) {
		c := db.Collection("c")
		must(c.InsertMany(t.Context(), []any{doc("_id", "a", "n", 10), doc("_id", "b", "n", 10)}))(t)
		move := func(ctx context.Context) (any, error) {
			if _, err := c.UpdateOne(ctx, doc("_id", "a"), doc("$inc", doc("n", -3))); err != nil {
				return nil, err
			}
			return c.UpdateOne(ctx, doc("_id", "b"), doc("$inc", doc("n", 3)))
		}
		s := must(client.StartSession())(t)
		defer s.EndSession(t.Context())
		concern := options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())
		must(s.WithTransaction(t.Context(), move, concern))(t)
		failed := errors.New("no")
		_, err := s.WithTransaction(t.Context(), func(ctx context.Context) (any, error) { move(ctx); return nil, failed })
		if !errors.Is(err, failed) {
			t.Error(err)
		}
		cur, err := c.Find(t.Context(), doc(), options.Find().SetSort(doc("_id", 1)))
		if got := all(t, cur, err); got != `{"_id":"a","n":7} {"_id":"b","n":13}` {
			t.Errorf("balances %s", got)
		}
	},
	"changestreams": func(t *testing.T, _ *mongo.Client, db *mongo.Database) {
		c := db.Collection("c")
		stream := must(c.Watch(t.Context(), mongo.Pipeline{}))(t)
		must(c.InsertOne(t.Context(), doc("_id", 1)))(t)
		must(c.UpdateByID(t.Context(), 1, doc("$set", doc("n", 2))))(t)
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		again := must(c.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(stream.ResumeToken())))(t)
		stream.Close(t.Context())
		if !again.Next(t.Context()) || again.Current.Lookup("operationType").StringValue() != "update" {
			t.Errorf("%v, %v", again.Current, again.Err())
		}
		again.Close(t.Context())
	},
	"gridfs": func(t *testing.T, _ *mongo.Client, db *mongo.Database) {
		bucket := db.GridFSBucket(options.GridFSBucket().SetChunkSizeBytes(1000))
		data := bytes.Repeat([]byte("allium "), 617)
		id := must(bucket.UploadFromStream(t.Context(), "f.bin", bytes.NewReader(data)))(t)
		var got bytes.Buffer
		must(bucket.DownloadToStreamByName(t.Context(), "f.bin", &got))(t)
		if !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d bytes of %d", got.Len(), len(data))
		}
		if err := bucket.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
		if n := must(db.Collection("fs.chunks").CountDocuments(t.Context(), doc()))(t); n != 0 {
			t.Errorf("%d chunks are left", n)
		}
	},
	"sessions": func(t *testing.T, client *mongo.Client, db *mongo.Database) {
		s := must(client.StartSession(options.Session().SetCausalConsistency(true)))(t)
		defer s.EndSession(t.Context())
		ctx := mongo.NewSessionContext(t.Context(), s)
		must(db.Collection("c", options.Collection().SetWriteConcern(writeconcern.Majority())).InsertOne(ctx, doc("_id", 1)))(t)
		secondary := db.Collection("c", options.Collection().SetReadPreference(readpref.Secondary()).SetReadConcern(readconcern.Majority()))
		if err := secondary.FindOne(ctx, doc("_id", 1)).Err(); err != nil || s.OperationTime() == nil {
			t.Error(err)
		}
		snapshot := must(client.StartSession(options.Session().SetSnapshot(true)))(t)
		defer snapshot.EndSession(t.Context())
		at := mongo.NewSessionContext(t.Context(), snapshot)
		for i := range 2 {
			if n := must(db.Collection("c").CountDocuments(at, doc()))(t); n != 1 {
				t.Errorf("%d documents", n)
			}
			must(db.Collection("c").InsertOne(t.Context(), doc("_id", fmt.Sprint(i))))(t)
		}
	},
}
