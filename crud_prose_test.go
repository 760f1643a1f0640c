package allium_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// sentCommand is what the prose tests look at in a command that was sent. It holds no large
// documents.
type sentCommand struct {
	name         string
	operationID  int64
	ops          int      // how many elements the array ops has
	namespaces   []string // those of nsInfo
	writeConcern bson.Raw
	firstKey     string // of the first document in documents or ops
	numbered     bool   // there is a txnNumber
	body         bson.Raw
}

// recorder remembers the commands of a client.
type recorder struct {
	mu      sync.Mutex
	sent    []sentCommand
	replies []bson.Raw // of what succeeded
}

func (r *recorder) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			c := sentCommand{name: e.CommandName, operationID: e.OperationID, numbered: !e.Command.Lookup("txnNumber").IsZero()}
			if len(e.Command) < 1<<20 {
				c.body = append(bson.Raw(nil), e.Command...)
			}
			ops, _ := e.Command.Lookup("ops").Array()
			for op := range ops.Values() {
				if c.ops == 0 {
					doc, _ := op.Document()
					doc, _ = doc.Lookup("document").Document()
					c.firstKey = firstKeyOf(doc)
				}
				c.ops++
			}
			nsInfo, _ := e.Command.Lookup("nsInfo").Array()
			for v := range nsInfo.Values() {
				doc, _ := v.Document()
				ns, _ := doc.Lookup("ns").StringValue()
				c.namespaces = append(c.namespaces, strings.Clone(ns))
			}
			documents, _ := e.Command.Lookup("documents").Array()
			for v := range documents.Values() {
				doc, _ := v.Document()
				c.firstKey = firstKeyOf(doc)
				break
			}
			if wc, ok := e.Command.Lookup("writeConcern").Document(); ok {
				c.writeConcern = append(bson.Raw(nil), wc...)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sent = append(r.sent, c)
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.replies = append(r.replies, append(bson.Raw(nil), e.Reply...))
		},
	}
}

func firstKeyOf(doc bson.Raw) string {
	for key := range doc.All() {
		return strings.Clone(key)
	}
	return ""
}

// of returns the commands with this name.
func (r *recorder) of(name string) []sentCommand {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []sentCommand
	for _, c := range r.sent {
		if c.name == name {
			out = append(out, c)
		}
	}
	return out
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.replies = nil, nil
}

// prose is what a prose test of the CRUD specification starts with.
type prose struct {
	client  *allium.Client
	d       *testdeploy.Deployment
	rec     *recorder
	coll    *allium.Collection[bson.D] // db.coll, which does not exist
	maxDoc  int                        // maxBsonObjectSize
	maxMsg  int                        // maxMessageSizeBytes
	maxMany int                        // maxWriteBatchSize
}

func startProse(t *testing.T, o allium.ClientOptions, topology ...testdeploy.Kind) *prose {
	t.Helper()
	if topology == nil {
		topology = []testdeploy.Kind{testdeploy.ReplicaSet(1)}
	}
	p := &prose{d: testdeploy.Start(t, topology[0]), rec: &recorder{}}
	o.CommandMonitor = p.rec.monitor()
	p.client = open(t, p.d.URI(), o)
	hello, err := p.client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "isMaster", Value: 1}}) // 4.4.0 has no hello
	if err != nil {
		t.Fatal(err)
	}
	for key, dst := range map[string]*int{"maxBsonObjectSize": &p.maxDoc, "maxMessageSizeBytes": &p.maxMsg, "maxWriteBatchSize": &p.maxMany} {
		n, ok := hello.Lookup(key).AsInt64()
		if !ok {
			t.Fatalf("hello has no %s", key)
		}
		*dst = int(n)
	}
	p.coll = p.client.Database("db").Collection("coll")
	return p
}

// insertModel is an insert into db.coll.
func insertModel(doc bson.D) allium.ClientWrite {
	return allium.ClientWrite{Database: "db", Collection: "coll", Model: allium.InsertModel{Document: doc}}
}

func repeat(w allium.ClientWrite, n int) []allium.ClientWrite {
	all := make([]allium.ClientWrite, n)
	for i := range all {
		all[i] = w
	}
	return all
}

// large is a document {a: "bbb…"}.
func large(n int) bson.D { return bson.D{{Key: "a", Value: strings.Repeat("b", n)}} }

// checkSplit checks how many operations each bulkWrite command held, and that all have one
// operation id.
func (p *prose) checkSplit(t *testing.T, want ...int) []sentCommand {
	t.Helper()
	sent := p.rec.of("bulkWrite")
	if len(sent) != len(want) {
		t.Fatalf("%d bulkWrite commands, want %d", len(sent), len(want))
	}
	for i, c := range sent {
		if c.ops != want[i] {
			t.Errorf("command %d has %d ops, want %d", i, c.ops, want[i])
		}
		if c.operationID != sent[0].operationID || c.operationID == 0 {
			t.Errorf("command %d has operation id %d, the first one has %d", i, c.operationID, sent[0].operationID)
		}
	}
	return sent
}

// CRUD prose test 1.
func TestProseCRUDWriteConcernErrorDetails(t *testing.T) {
	p := startProse(t, allium.ClientOptions{})
	info := bson.D{{Key: "writeConcern", Value: bson.D{{Key: "w", Value: int32(2)}, {Key: "wtimeout", Value: int32(0)}, {Key: "provenance", Value: "clientSupplied"}}}}
	failPoint(t, p.client, bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "writeConcernError", Value: bson.D{
		{Key: "code", Value: 100}, {Key: "codeName", Value: "UnsatisfiableWriteConcern"}, {Key: "errmsg", Value: "Not enough data-bearing nodes"}, {Key: "errInfo", Value: info}}}}, 1)
	_, err := p.coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	var wce *mongoerr.WriteConcernError
	if !errors.As(err, &wce) {
		t.Fatalf("want a WriteConcernError, got %v", err)
	}
	want, _ := bson.Marshal(info)
	if !bson.Equal(wce.Details, want) {
		t.Errorf("details are %v, want %v", wce.Details, bson.Raw(want))
	}
}

// CRUD prose test 2.
func TestProseCRUDWriteErrorDetails(t *testing.T) {
	p := startProse(t, allium.ClientOptions{})
	validator := bson.D{{Key: "x", Value: bson.D{{Key: "$type", Value: "string"}}}}
	if err := p.client.Database("db").CreateCollection(t.Context(), "test", allium.CreateCollectionOptions{Validator: validator}); err != nil {
		t.Fatal(err)
	}
	p.rec.reset()
	_, err := p.client.Database("db").Collection("test").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	var we *mongoerr.WriteError
	if !errors.As(err, &we) || we.Code != 121 || we.Details == nil {
		t.Fatalf("want a WriteError with code 121 and details, got %v", err)
	}
	if len(p.rec.replies) != 1 {
		t.Fatalf("%d commands succeeded, want 1", len(p.rec.replies))
	}
	errs, _ := p.rec.replies[0].Lookup("writeErrors").Array()
	for v := range errs.Values() {
		doc, _ := v.Document()
		if info, _ := doc.Lookup("errInfo").Document(); !bson.Equal(info, we.Details) {
			t.Errorf("the reply's errInfo is %v, the error's details are %v", info, we.Details)
		}
	}
}

// huge is why tests with as many or as large documents as a message takes do not run under the race
// detector, which looks at each byte that is copied.
const huge = "it fills messages of 48 MB, 100,000 writes or documents of 16 MB"

// CRUD prose test 3.
func TestProseCRUDBulkWriteSplitsByCount(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{})
	res, err := p.client.BulkWrite(t.Context(), repeat(insertModel(bson.D{{Key: "a", Value: "b"}}), p.maxMany+1))
	if err != nil || res.InsertedCount != int64(p.maxMany+1) {
		t.Fatalf("%d inserted, error %v", res.InsertedCount, err)
	}
	p.checkSplit(t, p.maxMany, 1)
}

// CRUD prose test 4.
func TestProseCRUDBulkWriteSplitsBySize(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{})
	n := p.maxMsg/p.maxDoc + 1
	res, err := p.client.BulkWrite(t.Context(), repeat(insertModel(large(p.maxDoc-500)), n))
	if err != nil || res.InsertedCount != int64(n) {
		t.Fatalf("%d inserted, error %v", res.InsertedCount, err)
	}
	p.checkSplit(t, n-1, 1)
}

// CRUD prose test 5.
func TestProseCRUDBulkWriteCollectsWriteConcernErrors(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{RetryWrites: new(false)})
	failPoint(t, p.client, bson.D{{Key: "failCommands", Value: bson.A{"bulkWrite"}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "Replication is being shut down"}}}}, 2)
	_, err := p.client.BulkWrite(t.Context(), repeat(insertModel(bson.D{{Key: "a", Value: "b"}}), p.maxMany+1))
	e := bulkError(t, err)
	if len(e.WriteConcernErrors) != 2 {
		t.Errorf("%d write concern errors, want 2: %v", len(e.WriteConcernErrors), err)
	}
	if e.PartialResult == nil || e.PartialResult.InsertedCount != int64(p.maxMany+1) {
		t.Errorf("partial result is %+v", e.PartialResult)
	}
	p.checkSplit(t, p.maxMany, 1)
}

func bulkError(t *testing.T, err error) *allium.ClientBulkWriteError {
	t.Helper()
	var e *allium.ClientBulkWriteError
	if !errors.As(err, &e) {
		t.Fatalf("want a ClientBulkWriteError, got %v", err)
	}
	return e
}

// CRUD prose test 6.
func TestProseCRUDBulkWriteErrorsAcrossBatches(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{})
	doc := bson.D{{Key: "_id", Value: 1}}
	if _, err := p.coll.InsertOne(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		unordered    bool
		errors       int
		commandSizes []int
	}{
		"unordered": {true, p.maxMany + 1, []int{p.maxMany, 1}},
		"ordered":   {false, 1, []int{p.maxMany}},
	} {
		t.Run(name, func(t *testing.T) {
			p.rec.reset()
			_, err := p.client.BulkWrite(t.Context(), repeat(insertModel(doc), p.maxMany+1), allium.ClientBulkWriteOptions{Unordered: tc.unordered})
			e := bulkError(t, err)
			if len(e.WriteErrors) != tc.errors {
				t.Errorf("%d write errors, want %d", len(e.WriteErrors), tc.errors)
			}
			if last := e.WriteErrors[len(e.WriteErrors)-1]; last.Index != tc.errors-1 {
				t.Errorf("the last error has index %d, want %d", last.Index, tc.errors-1)
			}
			if e.PartialResult != nil {
				t.Errorf("nothing was written, but there is a partial result: %+v", e.PartialResult)
			}
			p.checkSplit(t, tc.commandSizes...)
		})
	}
}

// largeUpserts are two writes whose results do not fit into one batch of the results cursor.
func (p *prose) largeUpserts() []allium.ClientWrite {
	var writes []allium.ClientWrite
	for _, c := range []string{"a", "b"} {
		writes = append(writes, allium.ClientWrite{Database: "db", Collection: "coll", Model: allium.UpdateModel{
			Filter: bson.D{{Key: "_id", Value: strings.Repeat(c, p.maxDoc/2)}}, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}, Upsert: true}})
	}
	return writes
}

func (p *prose) checkUpserts(t *testing.T, res allium.ClientBulkWriteResult, err error) {
	t.Helper()
	if err != nil || res.UpsertedCount != 2 || res.Verbose == nil || len(res.Verbose.Updates) != 2 {
		t.Fatalf("%d upserted, error %v", res.UpsertedCount, err)
	}
	if id, _ := res.Verbose.Updates[1].UpsertedID.(string); len(id) != p.maxDoc/2 {
		t.Errorf("the second upserted _id has %d bytes", len(id))
	}
	if len(p.rec.of("getMore")) == 0 {
		t.Error("no getMore was sent")
	}
}

// CRUD prose test 7.
func TestProseCRUDBulkWriteGetMore(t *testing.T) {
	norace.Skip(t, huge)
	for name, topology := range map[string]testdeploy.Kind{"replica set": testdeploy.ReplicaSet(1), "load balanced": testdeploy.LoadBalanced(1)} {
		t.Run(name, func(t *testing.T) {
			p := startProse(t, allium.ClientOptions{}, topology)
			res, err := p.client.BulkWrite(t.Context(), p.largeUpserts(), allium.ClientBulkWriteOptions{VerboseResults: true})
			p.checkUpserts(t, res, err)
		})
	}
}

// CRUD prose test 8.
func TestProseCRUDBulkWriteGetMoreInTransaction(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{})
	err := p.client.Transact(t.Context(), func(ctx context.Context) error {
		res, err := p.client.BulkWrite(ctx, p.largeUpserts(), allium.ClientBulkWriteOptions{VerboseResults: true})
		p.checkUpserts(t, res, err)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// CRUD prose test 9.
func TestProseCRUDBulkWriteGetMoreFails(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{})
	failPoint(t, p.client, bson.D{{Key: "failCommands", Value: bson.A{"getMore"}}, {Key: "errorCode", Value: 8}}, 1)
	_, err := p.client.BulkWrite(t.Context(), p.largeUpserts(), allium.ClientBulkWriteOptions{VerboseResults: true})
	e := bulkError(t, err)
	var top *mongoerr.ServerError
	if !errors.As(e.Err, &top) || top.Code != 8 {
		t.Errorf("the top-level error is %v, want code 8", e.Err)
	}
	if r := e.PartialResult; r == nil || r.UpsertedCount != 2 || len(r.Verbose.Updates) != 1 {
		t.Errorf("partial result is %+v", r)
	}
	if len(p.rec.of("getMore")) != 1 || len(p.rec.of("killCursors")) != 1 {
		t.Errorf("%d getMores and %d killCursors, want one of each", len(p.rec.of("getMore")), len(p.rec.of("killCursors")))
	}
}

// TestClientBulkWriteKillFails checks that the error of killCursors is not lost beside that of a
// getMore.
func TestClientBulkWriteKillFails(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{})
	failPoint(t, p.client, bson.D{{Key: "failCommands", Value: bson.A{"getMore", "killCursors"}}, {Key: "errorCode", Value: 8}}, 2)
	_, err := p.client.BulkWrite(t.Context(), p.largeUpserts(), allium.ClientBulkWriteOptions{VerboseResults: true})
	e := bulkError(t, err)
	if many, ok := e.Err.(interface{ Unwrap() []error }); !ok || len(many.Unwrap()) != 2 || !strings.HasPrefix(many.Unwrap()[0].Error(), "getMore") || !strings.HasPrefix(many.Unwrap()[1].Error(), "killCursors") {
		t.Errorf("the top-level error is %v, want those of getMore and killCursors", e.Err)
	}
}

// CRUD prose test 11. (The specification has removed test 10.)
func TestProseCRUDBulkWriteSplitsByNamespace(t *testing.T) {
	norace.Skip(t, huge)
	other := strings.Repeat("c", 200)
	for name, tc := range map[string]struct {
		last  allium.ClientWrite
		split bool
	}{
		"case 1: no batch-splitting required": {insertModel(bson.D{{Key: "a", Value: "b"}}), false},
		"case 2: batch-splitting required":    {allium.ClientWrite{Database: "db", Collection: other, Model: allium.InsertModel{Document: bson.D{{Key: "a", Value: "b"}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProse(t, allium.ClientOptions{})
			space := p.maxMsg - 1122
			n, rest := space/p.maxDoc, space%p.maxDoc
			writes := repeat(insertModel(large(p.maxDoc-57)), n)
			if rest >= 217 {
				n++
				writes = append(writes, insertModel(large(rest-57)))
			}
			res, err := p.client.BulkWrite(t.Context(), append(writes, tc.last))
			if err != nil || res.InsertedCount != int64(n+1) {
				t.Fatalf("%d inserted, error %v", res.InsertedCount, err)
			}
			if !tc.split {
				sent := p.checkSplit(t, n+1)
				checkNamespaces(t, sent[0], "db.coll")
				return
			}
			sent := p.checkSplit(t, n, 1)
			checkNamespaces(t, sent[0], "db.coll")
			checkNamespaces(t, sent[1], "db."+other)
		})
	}
}

func checkNamespaces(t *testing.T, c sentCommand, want string) {
	t.Helper()
	if len(c.namespaces) != 1 || c.namespaces[0] != want {
		t.Errorf("nsInfo is %v, want [%s]", c.namespaces, want)
	}
}

// CRUD prose test 12.
func TestProseCRUDBulkWriteWithoutRoom(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{})
	p.rec.reset()
	for name, w := range map[string]allium.ClientWrite{
		"case 1: document too large":  insertModel(large(p.maxMsg)),
		"case 2: namespace too large": {Database: "db", Collection: strings.Repeat("c", p.maxMsg), Model: allium.InsertModel{Document: bson.D{{Key: "a", Value: "b"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.client.BulkWrite(t.Context(), []allium.ClientWrite{w})
			var server *mongoerr.ServerError
			var bulk *allium.ClientBulkWriteError
			if err == nil || errors.As(err, &server) || errors.As(err, &bulk) && bulk.PartialResult != nil {
				t.Errorf("want a client-side error, got %v", err)
			}
			if n := len(p.rec.of("bulkWrite")); n != 0 {
				t.Errorf("%d commands were sent", n)
			}
		})
	}
}

// CRUD prose test 15. (The specification has removed test 13; test 14 is for drivers with explain
// helpers.)
func TestProseCRUDBulkWriteUnacknowledged(t *testing.T) {
	norace.Skip(t, huge)
	p := startProse(t, allium.ClientOptions{MaxPoolSize: new(1)})
	if err := p.client.Database("db").CreateCollection(t.Context(), "coll"); err != nil {
		t.Fatal(err)
	}
	n := p.maxMsg / p.maxDoc
	res, err := p.client.BulkWrite(t.Context(), repeat(insertModel(large(p.maxDoc-500)), n+1), allium.ClientBulkWriteOptions{Unordered: true, WriteConcern: consistency.Unacknowledged()})
	if err != nil || res.Acknowledged {
		t.Fatalf("acknowledged is %v, error %v", res.Acknowledged, err)
	}
	want, _ := bson.Marshal(bson.D{{Key: "w", Value: int32(0)}})
	for i, c := range p.checkSplit(t, n, 1) {
		if !bson.Equal(c.writeConcern, want) {
			t.Errorf("command %d has the write concern %v, want w: 0", i, c.writeConcern)
		}
	}
	if got, err := p.coll.CountDocuments(t.Context(), bson.D{}); err != nil || got != int64(n+1) {
		t.Errorf("%d documents, error %v", got, err)
	}
}

// CRUD prose test 16.
func TestProseCRUDGeneratedIDsComeFirst(t *testing.T) {
	p := startProse(t, allium.ClientOptions{})
	doc := bson.D{{Key: "x", Value: 1}}
	for name, run := range map[string]func() error{
		"insert": func() error { _, err := p.coll.InsertOne(t.Context(), doc); return err },
		"bulkWrite": func() error {
			_, err := p.client.BulkWrite(t.Context(), []allium.ClientWrite{insertModel(doc)})
			return err
		},
		"insert of a BulkWrite": func() error {
			_, err := p.coll.BulkWrite(t.Context(), []allium.WriteModel{allium.InsertModel{Document: doc}})
			return err
		},
	} {
		p.rec.reset()
		if err := run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		command, _, _ := strings.Cut(name, " ")
		if sent := p.rec.of(command); len(sent) != 1 || sent[0].firstKey != "_id" {
			t.Errorf("%s: %+v, want one command whose first document begins with _id", name, sent)
		}
	}
}

// failPoint makes commands fail, so many times.
func failPoint(t *testing.T, client *allium.Client, data bson.D, times int) {
	t.Helper()
	if _, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: times}}}, {Key: "data", Value: data}}); err != nil {
		t.Fatal(err)
	}
}
