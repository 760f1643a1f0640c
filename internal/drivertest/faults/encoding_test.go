package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/mongoerr"
	"allium/mongotest"
)

// hooked is a document of the program's that runs code while it is encoded, as hooks of object
// mappers do.
type hooked struct {
	doc  bson.D
	hook func() error
}

func (h hooked) MarshalBSON() ([]byte, error) {
	if err := h.hook(); err != nil {
		return nil, err
	}
	return bson.Marshal(h.doc)
}

// An encodingPlace is one where an operation encodes a value of the program's.
type encodingPlace struct {
	name   string
	inTxn  bool // the operation may be a part of a transaction
	encode func(ctx context.Context, coll *allium.Collection[any], v func(bson.D) any) error
}

// encodingPlaces are all places where operations encode the program's values.
var encodingPlaces = func() []encodingPlace {
	x := bson.D{{Key: "x", Value: 1}}
	set := bson.D{{Key: "$set", Value: x}}
	keys := bson.D{{Key: "x", Value: int32(1)}}
	match := bson.D{{Key: "$match", Value: x}}
	type value = func(bson.D) any
	type collection = *allium.Collection[any]
	all := func(ctx context.Context, cur *allium.Cursor[any], err error) error {
		if err != nil {
			return err
		}
		_, err = cur.All(ctx)
		return err
	}
	found := func(_ any, err error) error {
		if errors.Is(err, mongoerr.ErrNoDocuments) {
			return nil
		}
		return err
	}
	return []encodingPlace{
		{"InsertOne", true, func(ctx context.Context, c collection, v value) error { return rig.ErrorOf(c.InsertOne(ctx, v(x))) }},
		{"InsertOne, comment", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.InsertOne(ctx, x, allium.InsertOneOptions{Comment: v(x)}))
		}},
		{"InsertMany", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.InsertMany(ctx, []any{x, v(x), x, v(x)}))
		}},
		{"FindOne", true, func(ctx context.Context, c collection, v value) error { return found(c.FindOne(ctx, v(x))) }},
		{"Find", true, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Find(ctx, v(x))
			return all(ctx, cur, err)
		}},
		{"Find, options", true, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Find(ctx, x, allium.FindOptions{Sort: v(keys), Projection: v(keys), Let: v(x), Comment: v(x), BatchSize: new(int32(1))})
			return all(ctx, cur, err)
		}},
		{"Find, comment of getMore", true, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{Comment: v(x), BatchSize: new(int32(2))})
			return all(ctx, cur, err)
		}},
		{"UpdateOne", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.UpdateOne(ctx, v(x), v(set), allium.UpdateOptions{Let: v(x), ArrayFilters: []any{}}))
		}},
		{"UpdateMany", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.UpdateMany(ctx, v(x), v(set)))
		}},
		{"UpdateOne, pipeline", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.UpdateOne(ctx, x, []any{v(set)}))
		}},
		{"ReplaceOne", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.ReplaceOne(ctx, v(x), v(x)))
		}},
		{"DeleteOne", true, func(ctx context.Context, c collection, v value) error { return rig.ErrorOf(c.DeleteOne(ctx, v(x))) }},
		{"DeleteMany", true, func(ctx context.Context, c collection, v value) error { return rig.ErrorOf(c.DeleteMany(ctx, v(x))) }},
		{"FindOneAndUpdate", true, func(ctx context.Context, c collection, v value) error {
			return found(c.FindOneAndUpdate(ctx, v(x), v(set)))
		}},
		{"FindOneAndReplace", true, func(ctx context.Context, c collection, v value) error {
			return found(c.FindOneAndReplace(ctx, v(x), v(x)))
		}},
		{"FindOneAndDelete", true, func(ctx context.Context, c collection, v value) error { return found(c.FindOneAndDelete(ctx, v(x))) }},
		{"BulkWrite", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.BulkWrite(ctx, []allium.WriteModel{
				c.InsertOneModel(v(x)), c.UpdateOneModel(v(x), v(set)), c.ReplaceOneModel(v(x), v(x)), c.DeleteOneModel(v(x))}, allium.BulkWriteOptions{Let: v(x)}))
		}},
		{"Client.BulkWrite", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.Database().Client().BulkWrite(ctx, []allium.WriteModel{
				c.InsertOneModel(v(x)), c.UpdateOneModel(v(x), v(set)), c.ReplaceOneModel(v(x), v(x)), c.DeleteOneModel(v(x))}, allium.ClientBulkWriteOptions{Let: v(x)}))
		}},
		{"Aggregate", true, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Aggregate(ctx, []any{v(match)})
			return all(ctx, cur, err)
		}},
		{"Database.Aggregate", false, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Database().Aggregate(ctx, []any{bson.D{{Key: "$listLocalSessions", Value: v(bson.D{})}}})
			if err != nil {
				return err
			}
			return cur.Close(ctx)
		}},
		{"CountDocuments", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.CountDocuments(ctx, v(x)))
		}},
		{"EstimatedDocumentCount, comment", false, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.EstimatedDocumentCount(ctx, allium.EstimatedCountOptions{Comment: v(x)}))
		}},
		{"Distinct", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(allium.Distinct[any](ctx, c, "x", v(x)))
		}},
		{"Watch", false, func(ctx context.Context, c collection, v value) error {
			s, err := c.Watch(ctx, []any{v(match)})
			if err != nil {
				return err
			}
			return s.Close(ctx)
		}},
		{"RunCommand", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.Database().RunCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: v(x)}, {Key: "singleBatch", Value: true}}))
		}},
		{"CreateIndex", false, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.CreateIndex(ctx, allium.IndexModel{Keys: v(keys), PartialFilter: v(x)}))
		}},
		{"ListCollections", false, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Database().ListCollections(ctx, allium.ListCollectionsOptions{Filter: v(x)})
			if err != nil {
				return err
			}
			return cur.Close(ctx)
		}},
		{"ListDatabases", false, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.Database().Client().ListDatabases(ctx, allium.ListDatabasesOptions{Filter: v(x)}))
		}},
		{"CreateCollection", false, func(ctx context.Context, c collection, v value) error {
			return c.Database().CreateCollection(ctx, "made", allium.CreateCollectionOptions{Validator: v(x)})
		}},
		{"ModifyCollection", false, func(ctx context.Context, c collection, v value) error {
			return c.Database().ModifyCollection(ctx, "c", allium.ModifyCollectionOptions{Validator: v(bson.D{})})
		}},
		{"DropIndex", false, func(ctx context.Context, c collection, v value) error {
			err := c.DropIndex(ctx, v(keys))
			if mongoerr.HasCode(err, 27) { // there is none
				return nil
			}
			return err
		}},
		{"RunCursorCommand", true, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Database().RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: v(x)}})
			if err != nil {
				return err
			}
			return cur.Close(ctx)
		}},
		{"UpdateMany, array filters", true, func(ctx context.Context, c collection, v value) error {
			return rig.ErrorOf(c.UpdateMany(ctx, bson.D{{Key: "_id", Value: "none"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "l.$[e]", Value: 1}}}},
				allium.UpdateOptions{ArrayFilters: []any{v(bson.D{{Key: "e", Value: 1}})}, Hint: v(bson.D{{Key: "_id", Value: 1}})}))
		}},
		{"Save", true, func(ctx context.Context, c collection, v value) error {
			after := v(bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: 1}, {Key: "x", Value: 2}})
			err := allium.Save(ctx, c, "v", v(bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: 1}}), &after)
			if errors.Is(err, mongoerr.ErrConflict) {
				return nil
			}
			return err
		}},
		{"InsertOne, a scope's fields", true, func(ctx context.Context, c collection, v value) error {
			scoped := c.Scoped(allium.Scope{Filter: bson.D{}, OnInsert: func(context.Context) bson.D { return bson.D{{Key: "in", Value: v(x)}} }})
			return rig.ErrorOf(scoped.InsertOne(ctx, bson.D{{Key: "x", Value: 7}}))
		}},
		{"Find, a scope's filter", true, func(ctx context.Context, c collection, v value) error {
			cur, err := c.Scoped(allium.Scope{Filter: v(x)}).Find(ctx, bson.D{})
			return all(ctx, cur, err)
		}},
		{"Client.Watch, comment", false, func(ctx context.Context, c collection, v value) error {
			s, err := c.Database().Client().Watch(ctx, []any{v(match)}, allium.WatchOptions{Comment: v(x)})
			if err != nil {
				return err
			}
			return s.Close(ctx)
		}},
		{"GridFS upload", false, func(ctx context.Context, c collection, v value) error {
			b := gridfs.NewBucket(c.Database())
			return rig.ErrorOf(b.UploadFromStream(ctx, "f", strings.NewReader("text"), gridfs.UploadOptions{Metadata: v(x)}))
		}},
		{"GridFS upload, id", false, func(ctx context.Context, c collection, v value) error {
			b := gridfs.NewBucket(c.Database())
			err := b.UploadFromStreamWithID(ctx, v(x), "f", strings.NewReader("text"))
			if errors.Is(err, mongoerr.ErrDuplicateKey) {
				return nil
			}
			return err
		}},
		{"GridFS Delete", false, func(ctx context.Context, c collection, v value) error {
			if err := gridfs.NewBucket(c.Database()).Delete(ctx, v(x)); !errors.Is(err, gridfs.ErrFileNotFound) {
				return err
			}
			return nil
		}},
		{"GridFS download", false, func(ctx context.Context, c collection, v value) error {
			if err := rig.ErrorOf(gridfs.NewBucket(c.Database()).OpenDownloadStream(ctx, v(x))); !errors.Is(err, gridfs.ErrFileNotFound) {
				return err
			}
			return nil
		}},
		{"GridFS Find", false, func(ctx context.Context, c collection, v value) error {
			cur, err := gridfs.NewBucket(c.Database()).Find(ctx, v(x), gridfs.FindOptions{Sort: v(keys)})
			if err != nil {
				return err
			}
			return cur.Close(ctx)
		}},
	}
}()

// hookedClient returns a collection with some documents, of a client that may have one connection.
func hookedClient(t *testing.T, opts allium.ClientOptions, kind mongotest.Option) (*allium.Collection[any], *rig.Sent) {
	t.Helper()
	opts.MaxPoolSize = new(1)
	_, client, log := rig.Bubble(t, opts, kind)
	coll := allium.CollectionOf[any](client.Database("d"), "c")
	if _, err := coll.InsertMany(t.Context(), []any{bson.D{{Key: "x", Value: 1}}, bson.D{}, bson.D{}, bson.D{}, bson.D{}, bson.D{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Database("d").Collection("other").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	return coll, log
}

// What an operation encodes may use the client itself, although the pool has one connection only,
// and in a transaction the session of the operation: encoding holds neither.
func TestEncodersUseTheClient(t *testing.T) {
	for _, kind := range []struct {
		name string
		kind mongotest.Option
	}{{"replica set", mongotest.ReplicaSet(1)}, {"sharded", mongotest.Sharded(1, 1)}} {
		for _, p := range encodingPlaces {
			for _, inTxn := range []bool{false, true} {
				if inTxn && !p.inTxn {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%v", kind.name, p.name, inTxn), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						coll, _ := hookedClient(t, allium.ClientOptions{}, kind.kind)
						client, other := coll.Database().Client(), coll.Database().Collection("other")
						reads := 0
						run := func(ctx context.Context) error {
							return p.encode(ctx, coll, func(doc bson.D) any {
								return hooked{doc, func() error {
									reads++
									_, err := other.FindOne(ctx, bson.D{{Key: "x", Value: 1}})
									return err
								}}
							})
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						var err error
						if began := time.Now(); inTxn {
							err = client.Transact(ctx, run)
						} else if err = run(ctx); time.Since(began) > time.Second {
							t.Errorf("it took %v", time.Since(began))
						}
						if err != nil || reads == 0 {
							t.Errorf("%d reads, %v", reads, err)
						}
						if in := client.Stats().Pools[0].InUse; in != 0 {
							t.Errorf("%d connections are in use", in)
						}
					})
				})
			}
		}
	}
}

// A value without a BSON form is an error at once, even if no server can be reached.
func TestUnencodableWithoutServers(t *testing.T) {
	refused := errors.New("refused to be encoded")
	for _, p := range encodingPlaces {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := allium.Open("mongodb://nowhere:1/?maxPoolSize=1", allium.ClientOptions{Dialer: noServer{}})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				began := time.Now()
				err = p.encode(t.Context(), allium.CollectionOf[any](client.Database("d"), "c"), func(bson.D) any {
					return hooked{nil, func() error { return refused }}
				})
				if !errors.Is(err, refused) || time.Since(began) != 0 {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

// Every attempt sends the bytes of the first, whatever the program's values would encode to by
// then.
func TestRetriesSendTheSameBytes(t *testing.T) {
	type collection = *allium.Collection[any]
	for name, run := range map[string]func(ctx context.Context, c collection, v any) error{
		"insert": func(ctx context.Context, c collection, v any) error { return rig.ErrorOf(c.InsertOne(ctx, v)) },
		"inserts": func(ctx context.Context, c collection, v any) error {
			return rig.ErrorOf(c.InsertMany(ctx, []any{v, v}))
		},
		"find":   func(ctx context.Context, c collection, v any) error { return rig.ErrorOf(c.Find(ctx, v)) },
		"update": func(ctx context.Context, c collection, v any) error { return rig.ErrorOf(c.ReplaceOne(ctx, v, v)) },
		"delete": func(ctx context.Context, c collection, v any) error { return rig.ErrorOf(c.DeleteOne(ctx, v)) },
		"findAndModify": func(ctx context.Context, c collection, v any) error {
			return rig.ErrorOf(c.FindOneAndReplace(ctx, v, v))
		},
		"distinct": func(ctx context.Context, c collection, v any) error {
			return rig.ErrorOf(allium.Distinct[any](ctx, c, "x", v))
		},
		"bulkWrite": func(ctx context.Context, c collection, v any) error {
			return rig.ErrorOf(c.Database().Client().BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(v),
				allium.CollectionOf[any](c.Database(), "c2").ReplaceOneModel(v, v)}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies []string
				d, client, log := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				failed := false
				d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
					if c.Name == "hello" || c.Name == "isMaster" || failed {
						return nil, nil
					}
					failed = true
					return rig.ErrorReply(91, "RetryableWriteError"), nil
				})
				n := 0
				err := run(t.Context(), allium.CollectionOf[any](client.Database("d"), "c"), counting{&n})
				if err != nil && !errors.Is(err, mongoerr.ErrNoDocuments) {
					t.Fatal(err)
				}
				for _, e := range log.List {
					own := bson.D{}
					for key, v := range e.Command.All() {
						if key != "$clusterTime" && key != "lsid" {
							own = append(own, bson.E{Key: key, Value: v})
						}
					}
					bodies = append(bodies, fmt.Sprint(own))
				}
				if len(bodies) != 2 || bodies[0] != bodies[1] {
					t.Errorf("sent\n%s", strings.Join(bodies, "\n"))
				}
			})
		})
	}
}

// counting encodes to another document each time.
type counting struct{ n *int }

func (c counting) MarshalBSON() ([]byte, error) {
	*c.n++
	return bson.Marshal(bson.D{{Key: "x", Value: *c.n}})
}

// noServer is a network without servers.
type noServer struct{}

func (noServer) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("connection refused")
}
