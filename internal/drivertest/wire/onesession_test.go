package wire

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
)

// sessionThief is a document that, while it is encoded, takes the session that lies on top of the
// client's pool.
type sessionThief struct{ take func() }

func (s sessionThief) MarshalBSON() ([]byte, error) {
	s.take()
	return bson.Marshal(bson.D{{Key: "x", Value: 1}})
}

// TestOneSessionPerOperation: all messages of an operation, and the getMores of its cursors, carry
// one session, which nobody else gets meanwhile. Here somebody wants one before each message. The
// operation gives it back, however it ends (specification: Driver Sessions, Bulk Write). Each
// message has its events, with the operation's id (specification: Command Logging and Monitoring).
func TestOneSessionPerOperation(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(ctx context.Context, c *allium.Collection[any], doc any) error
		want string // what is sent
	}{
		"InsertMany": {func(ctx context.Context, c *allium.Collection[any], doc any) error {
			return rig.ErrorOf(c.InsertMany(ctx, []any{doc, doc, doc, doc, doc}))
		}, "insert insert insert"},
		"BulkWrite": {func(ctx context.Context, c *allium.Collection[any], doc any) error {
			insert, remove, update := c.InsertOneModel(doc), c.DeleteOneModel(doc), c.UpdateOneModel(doc, bson.D{{Key: "$set", Value: doc}})
			return rig.ErrorOf(c.BulkWrite(ctx, []allium.WriteModel{insert, insert, insert, remove, update, insert}))
		}, "insert insert delete update insert"},
		"BulkWrite, unordered": {func(ctx context.Context, c *allium.Collection[any], doc any) error {
			insert, remove := c.InsertOneModel(doc), c.DeleteOneModel(doc)
			return rig.ErrorOf(c.BulkWrite(ctx, []allium.WriteModel{insert, remove, insert, insert}, allium.BulkWriteOptions{Unordered: true}))
		}, "insert insert delete"},
		"BulkWrite of the client": {func(ctx context.Context, c *allium.Collection[any], doc any) error {
			write := c.InsertOneModel(doc)
			return rig.ErrorOf(c.Database().Client().BulkWrite(ctx, []allium.WriteModel{write, write, write}))
		}, "bulkWrite getMore bulkWrite getMore"},
	} {
		for _, fails := range []bool{false, true} { // the last message
			for _, known := range []bool{true, false} { // what the server takes in a message
				const most = 2 // that a server takes in a message
				t.Run(name+map[bool]string{true: ", fails"}[fails]+map[bool]string{false: ", at first"}[known], func(t *testing.T) {
					var mu sync.Mutex
					var sent []string
					ids := map[string]bool{}
					last := len(strings.Fields(tc.want))
					hello := rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "msg", Value: "isdbgrid"}, {Key: "helloOk", Value: true},
						{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48000000}, {Key: "maxWriteBatchSize", Value: most},
						{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 25}, {Key: "logicalSessionTimeoutMinutes", Value: 30}}))
					uri := rig.StartFakeWith(t, hello, func(r *fakeserver.Request) {
						command := ""
						for command = range r.Body.All() {
							command = strings.Clone(command)
							break
						}
						if command == "endSessions" || command == "ping" {
							r.Reply(fakeserver.OK())
							return
						}
						mu.Lock()
						sent = append(sent, command)
						ids[r.Body.Lookup("lsid").String()] = true
						for _, s := range r.Sequences {
							statements := 0
							for docs := s.Docs; len(docs) > 0; statements++ {
								_, docs, _ = bson.ReadDocument(docs)
							}
							if statements > most && s.ID != "nsInfo" {
								t.Errorf("%s has %d %s, the server takes %d", command, statements, s.ID, most)
							}
						}
						n := len(sent)
						mu.Unlock()
						reply := bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 0}}
						cursor := func(batch string, id int64) {
							reply = append(reply, bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: id}, {Key: "ns", Value: "admin.$cmd.bulkWrite"}, {Key: batch, Value: bson.A{}}}})
						}
						switch {
						case fails && n == last:
							reply = bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 8}, {Key: "errmsg", Value: "no more"}}
						case command == "bulkWrite":
							cursor("firstBatch", 7)
						case command == "getMore":
							cursor("nextBatch", 0)
						}
						r.Reply(rig.Must(bson.Marshal(reply)))
					})
					var started, ended []string
					operations := map[int64]bool{}
					client := rig.Open(t, uri, allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
						Started: func(_ context.Context, e *event.CommandStarted) {
							if e.CommandName != "ping" {
								started = append(started, e.CommandName)
								operations[e.OperationID] = true
							}
						},
						Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
							if e.CommandName != "ping" {
								ended = append(ended, e.CommandName)
							}
						},
						Failed: func(_ context.Context, e *event.CommandFailed) { ended = append(ended, e.CommandName) },
					}})
					if known {
						if err := client.Ping(t.Context()); err != nil { // leaves a session in the pool
							t.Fatal(err)
						}
					}
					held := 0
					coll := allium.CollectionOf[any](client.Database("d"), "c")
					err := tc.run(t.Context(), coll, sessionThief{func() { rig.StartSession(t, client).ID(); held++ }})
					if (err != nil) != fails {
						t.Fatal(err)
					}
					mu.Lock()
					defer mu.Unlock()
					got := strings.Join(sent, " ")
					got = strings.TrimSuffix(got, " killCursors")
					if got != tc.want || len(ids) != 1 {
						t.Errorf("sent %s in %d sessions, want %s in one", got, len(ids), tc.want)
					}
					// The server of the test answers killCursors by itself.
					began := strings.TrimSuffix(strings.Join(started, " "), " killCursors")
					if began != tc.want || !slices.Equal(ended, started) || len(operations) != 1 {
						t.Errorf("sent %s; events of the beginning of %s and of the end of %s, in %d operations", sent, started, ended, len(operations))
					}
					if n := client.Stats().Sessions.InUse; n != held {
						t.Errorf("%d sessions are in use, want %d", n, held)
					}
				})
			}
		}
	}
}
