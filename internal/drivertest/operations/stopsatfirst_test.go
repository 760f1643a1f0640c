package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/mongoerr"
)

// TestOrderedWritesStopAtTheFirstError: an ordered write of several messages sends none behind one
// in which a statement failed, and an unordered one sends all (specifications: CRUD, "ordered";
// Bulk Write, "ordered"). The errors name the statements as the program counts them.
func TestOrderedWritesStopAtTheFirstError(t *testing.T) {
	const most, all = 2, 5 // statements that the server takes in a message, and of the write
	docs := slices.Repeat([]bson.D{{}}, all)
	for name, run := range map[string]func(ctx context.Context, c *allium.Collection[bson.D], unordered bool) error{
		"InsertMany": func(ctx context.Context, c *allium.Collection[bson.D], unordered bool) error {
			return rig.ErrorOf(c.InsertMany(ctx, docs, allium.InsertManyOptions{Unordered: unordered}))
		},
		"BulkWrite": func(ctx context.Context, c *allium.Collection[bson.D], unordered bool) error {
			return rig.ErrorOf(c.BulkWrite(ctx, rig.Repeat(c.InsertOneModel(bson.D{}), all), allium.BulkWriteOptions{Unordered: unordered}))
		},
		"BulkWrite of deletes": func(ctx context.Context, c *allium.Collection[bson.D], unordered bool) error {
			return rig.ErrorOf(c.BulkWrite(ctx, rig.Repeat(c.DeleteOneModel(bson.D{}), all), allium.BulkWriteOptions{Unordered: unordered}))
		},
	} {
		for failing := range all {
			for _, unordered := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %d fails, unordered %v", name, failing, unordered), func(t *testing.T) {
					var mu sync.Mutex
					sent := 0
					hello := rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true},
						{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48000000}, {Key: "maxWriteBatchSize", Value: most},
						{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 25}}))
					uri := rig.StartFakeWith(t, hello, func(r *fakeserver.Request) {
						if len(r.Sequences) == 0 { // the end of a session
							r.Reply(fakeserver.OK())
							return
						}
						mu.Lock()
						defer mu.Unlock()
						reply := bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}}
						if sent == failing/most {
							reply = append(reply, bson.E{Key: "writeErrors", Value: bson.A{bson.D{
								{Key: "index", Value: failing % most}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "twice"}}}})
						}
						sent++
						r.Reply(rig.Must(bson.Marshal(reply)))
					})
					client := rig.Open(t, uri)
					err := run(t.Context(), allium.CollectionOf[bson.D](client.Database("d"), "c"), unordered)
					e, ok := errors.AsType[*mongoerr.BulkWriteError](err)
					if !ok || len(e.WriteErrors) != 1 || e.WriteErrors[0].Index != failing {
						t.Errorf("%#v", err)
					}
					want := failing/most + 1
					if unordered {
						want = (all + most - 1) / most
					}
					if sent != want {
						t.Errorf("%d messages were sent, want %d", sent, want)
					}
				})
			}
		}
	}
}
