package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/spantest"
	"allium/internal/testdeploy"
	"allium/mongotest"
	"allium/tracing"
)

func checkSpans(t *testing.T, r *spantest.Recorder, want string) []*spantest.Span {
	t.Helper()
	spans := r.Take()
	if got := spantest.Outline(spans); got != want {
		t.Fatalf("spans are\n%swant\n%s", got, want)
	}
	return spans
}

// Prose tests 1 and 2 of the specification OpenTelemetry, and what wins over the environment.
func TestTracingSettings(t *testing.T) {
	const prefix, prefixGo = "OTEL_INSTRUMENTATION_MONGODB_", "OTEL_GO_INSTRUMENTATION_MONGODB_"
	for _, test := range []struct {
		name    string
		env     map[string]string
		options allium.Tracing
		spans   bool
		text    string
	}{
		{name: "off by default"},
		{name: "switched off by the environment", env: map[string]string{prefix + "ENABLED": "false"}},
		{name: "switched on by the environment", env: map[string]string{prefix + "ENABLED": "true"}, spans: true},
		{name: "yes", env: map[string]string{prefix + "ENABLED": "Yes"}, spans: true},
		{name: "1", env: map[string]string{prefixGo + "ENABLED": "1"}, spans: true},
		{name: "neither", env: map[string]string{prefix + "ENABLED": "2"}},
		{name: "the variable of the language wins", env: map[string]string{prefix + "ENABLED": "true", prefixGo + "ENABLED": "false"}},
		{name: "the option wins", env: map[string]string{prefix + "ENABLED": "true"}, options: allium.Tracing{Enabled: new(false)}},
		{name: "the option", options: allium.Tracing{Enabled: new(true)}, spans: true},
		{name: "text by the environment", env: map[string]string{prefix + "ENABLED": "true", prefix + "QUERY_TEXT_MAX_LENGTH": "1024"}, spans: true,
			text: `{"ping":1}`},
		{name: "text by the variable of the language", env: map[string]string{prefix + "QUERY_TEXT_MAX_LENGTH": "1024", prefixGo + "QUERY_TEXT_MAX_LENGTH": "5"},
			options: allium.Tracing{Enabled: new(true)}, spans: true, text: `{"pin...`},
		{name: "the option's length wins", env: map[string]string{prefix + "QUERY_TEXT_MAX_LENGTH": "1024"},
			options: allium.Tracing{Enabled: new(true), QueryTextMaxLength: 3}, spans: true, text: `{"p...`},
		{name: "no text", env: map[string]string{prefix + "QUERY_TEXT_MAX_LENGTH": "1024"},
			options: allium.Tracing{Enabled: new(true), QueryTextMaxLength: -1}, spans: true},
		{name: "no number", env: map[string]string{prefix + "QUERY_TEXT_MAX_LENGTH": "long"}, options: allium.Tracing{Enabled: new(true)}, spans: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{"ENABLED", "QUERY_TEXT_MAX_LENGTH"} {
				t.Setenv(prefix+name, test.env[prefix+name])
				t.Setenv(prefixGo+name, test.env[prefixGo+name])
			}
			client, r, _ := rig.Traced(t, test.options)
			if _, err := client.Database("db").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
				t.Fatal(err)
			}
			if !test.spans {
				checkSpans(t, r, "")
				return
			}
			spans := checkSpans(t, r, "runCommand db\n  ping\n")
			text, ok := spans[0].Nested[0].Attributes["db.query.text"]
			if ok != (test.text != "") || ok && text != test.text {
				t.Errorf("query text %v, want %q", text, test.text)
			}
		})
	}
	if _, err := allium.Open("mongodb://localhost", allium.ClientOptions{Tracing: &allium.Tracing{Enabled: new(true)}}); err == nil {
		t.Error("a client traces without a tracer")
	}
}

// A call of the API is one span, however many commands it sends, and says why it failed.
func TestTracingOperations(t *testing.T) {
	client, r, d := rig.Traced(t, allium.Tracing{Enabled: new(true), QueryTextMaxLength: 10_000})
	ctx := t.Context()
	db := client.Database("db")
	coll := allium.CollectionOf[bson.D](db, "coll")
	docs := func(from, to int) (list []bson.D) {
		for i := from; i < to; i++ {
			list = append(list, bson.D{{Key: "_id", Value: i}})
		}
		return list
	}
	if _, err := coll.InsertMany(ctx, docs(0, 100_001)); err != nil {
		t.Fatal(err)
	}
	checkSpans(t, r, "insert db.coll\n  insert\n  insert\n")

	if _, err := coll.InsertMany(ctx, docs(0, 1)); err == nil {
		t.Fatal("a duplicate was inserted")
	}
	spans := checkSpans(t, r, "insert db.coll failed\n  insert\n")
	if s, _ := spans[0].Attributes["exception.type"].(string); s != "*mongoerr.BulkWriteError" {
		t.Errorf("exception.type is %q", s)
	}
	if _, err := coll.InsertOne(ctx, docs(0, 1)[0]); err == nil {
		t.Fatal("a duplicate was inserted")
	}
	checkSpans(t, r, "insert db.coll failed\n  insert\n")

	models := []allium.WriteModel{coll.InsertOneModel(bson.D{{Key: "_id", Value: "new"}}), coll.DeleteOneModel(bson.D{{Key: "_id", Value: "new"}})}
	if _, err := coll.BulkWrite(ctx, models); err != nil {
		t.Fatal(err)
	}
	checkSpans(t, r, "bulkWrite db.coll\n  insert\n  delete\n")
	writes := []allium.WriteModel{coll.InsertOneModel(docs(0, 1)[0])}
	if _, err := client.BulkWrite(ctx, writes); err == nil {
		t.Fatal("a duplicate was inserted")
	}
	checkSpans(t, r, "bulkWrite admin failed\n  bulkWrite\n")

	cur, err := coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		cur.Next(ctx)
	}
	cur.Close(ctx)
	spans = checkSpans(t, r, "find db.coll\n  find\ngetMore db.coll\n  getMore\nkillCursors db.coll\n  killCursors\n")
	for _, s := range spans {
		if id, _ := s.Nested[0].Attributes["db.mongodb.cursor_id"].(int64); id == 0 || id != spans[0].Nested[0].Attributes["db.mongodb.cursor_id"] {
			t.Errorf("%s has the cursor %v", s.Nested[0].Name, id)
		}
	}

	fails := 1
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "find" && fails > 0 {
			fails--
			return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 91}, {Key: "errmsg", Value: "going down"}})
		}
		return nil, nil
	})
	if _, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	spans = checkSpans(t, r, "find db.coll\n  find failed\n  find\n")
	failed, again := spans[0].Nested[0].Attributes, spans[0].Nested[1].Attributes
	if failed["db.response.status_code"] != "91" || again["db.response.status_code"] != nil {
		t.Errorf("status codes %v and %v", failed["db.response.status_code"], again["db.response.status_code"])
	}
	if again["db.query.text"] != `{"find":"coll","filter":{"_id":1},"limit":1,"singleBatch":true}` {
		t.Errorf("query text %v", again["db.query.text"])
	}
	db.RunCommand(ctx, bson.D{{Key: "mapReduce", Value: "coll"}, {Key: "map", Value: "f"}, {Key: "reduce", Value: "f"}, {Key: "out", Value: bson.D{{Key: "inline", Value: 1}}}})
	checkSpans(t, r, "mapReduce db.coll failed\n  mapReduce failed\n") // f is not defined
	allium.CollectionOf[bson.D](client.Database("admin"), "coll").CountDocuments(ctx, bson.D{})
	checkSpans(t, r, "aggregate admin\n  aggregate\n")
}

// No span shows what only the owner of a secret may know.
func TestTracingSecrets(t *testing.T) {
	client, r, d := rig.Traced(t, allium.Tracing{Enabled: new(true), QueryTextMaxLength: 10_000})
	const secret = "hunter2"
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "createUser" || c.Name == "explain" {
			return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 51003}, {Key: "errmsg", Value: "bad password " + secret}})
		}
		return nil, nil
	})
	user := bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: secret}, {Key: "roles", Value: bson.A{}}}
	for _, cmd := range []bson.D{user, {{Key: "explain", Value: user}}} {
		if _, err := client.Database("db").RunCommand(t.Context(), cmd); err == nil {
			t.Fatalf("%s succeeded", cmd[0].Key)
		}
		spans := checkSpans(t, r, "runCommand db failed\n")
		if all := fmt.Sprint(spans[0].Attributes, spans[0].Errors); strings.Contains(all, secret) {
			t.Errorf("span shows a password: %s", all)
		}
	}
}

// The operations of a transaction are nested in its span, whichever context they have.
func TestTracingTransactions(t *testing.T) {
	client, r, d := rig.Traced(t, allium.Tracing{Enabled: new(true)})
	ctx := t.Context()
	coll := allium.CollectionOf[bson.D](client.Database("db"), "coll")
	insert := func(ctx context.Context) error {
		_, err := coll.InsertOne(ctx, bson.D{})
		return err
	}
	s, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	in := allium.WithSession(ctx, s)
	if err := errors.Join(s.StartTransaction(), insert(in), s.CommitTransaction(ctx), s.CommitTransaction(ctx), insert(in)); err != nil {
		t.Fatal(err)
	}
	commit := "  commitTransaction admin\n    commitTransaction\n"
	checkSpans(t, r, "transaction\n  insert db.coll\n    insert\n"+commit+commit+"insert db.coll\n  insert\n")

	_, err = coll.InsertMany(in, []bson.D{{}})
	if err = errors.Join(err, s.StartTransaction(), s.CommitTransaction(ctx)); err != nil {
		t.Fatal(err)
	}
	checkSpans(t, r, "insert db.coll\n  insert\ntransaction\n")

	// An operation of several commands is one span, with a session and within a transaction, too.
	several := func(ctx context.Context) error {
		id := bson.D{{Key: "_id", Value: "several"}}
		_, err := coll.BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(id), coll.DeleteOneModel(id)})
		return err
	}
	if err := errors.Join(several(in), s.StartTransaction(), several(in), s.CommitTransaction(ctx)); err != nil {
		t.Fatal(err)
	}
	checkSpans(t, r, "bulkWrite db.coll\n  insert\n  delete\n"+
		"transaction\n  bulkWrite db.coll\n    insert\n    delete\n"+commit)

	if err := s.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertMany(in, []bson.D{{}}); err != nil {
		t.Fatal(err)
	}
	s.End(ctx)
	checkSpans(t, r, "transaction\n  insert db.coll\n    insert\n  abortTransaction admin\n    abortTransaction\n")

	fails := 1
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "insert" && fails > 0 {
			fails--
			return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 112}, {Key: "errmsg", Value: "conflict"},
				{Key: "errorLabels", Value: bson.A{"TransientTransactionError"}}})
		}
		return nil, nil
	})
	err = client.Transact(ctx, func(ctx context.Context) error {
		ctx, own := r.Start(ctx, tracing.Begin{Name: "own"})
		defer own.End()
		return insert(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	// The server knows nothing of the transaction that it is to abort: the hook answered in its
	// place.
	checkSpans(t, r, "transaction\n  own\n    insert db.coll failed\n      insert failed\n  abortTransaction admin failed\n    abortTransaction failed\n"+
		"transaction\n  own\n    insert db.coll\n      insert\n"+commit)
}

// The environment alone makes no spans: a client without a Tracer has nobody to tell, whatever the
// variables say, and does not complain. With a Tracing that has none, it is a mistake.
func TestEnvironmentAlone(t *testing.T) {
	t.Setenv("OTEL_INSTRUMENTATION_MONGODB_ENABLED", "true")
	t.Setenv("OTEL_GO_INSTRUMENTATION_MONGODB_ENABLED", "true")
	t.Setenv("OTEL_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH", "100")
	d := testdeploy.Mock(t, "no client of others", mongotest.ReplicaSet(1))
	var log bytes.Buffer
	client := rig.Open(t, d.URI(), allium.ClientOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if _, err := client.Database("db").Collection("c").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Errorf("the client says %s", &log)
	}
	if _, err := allium.Open(d.URI(), allium.ClientOptions{Tracing: &allium.Tracing{}}); err == nil || !strings.Contains(err.Error(), "has no Tracer") {
		t.Errorf("a Tracing without a Tracer: %v", err)
	}
}
