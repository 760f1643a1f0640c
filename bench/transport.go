package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	official "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"allium"
	"allium/bson"
	"allium/consistency"
)

// transportDocs is how many documents go in one direction in an operation of the group.
const transportDocs = 1000

// transportTasks are an insert of many documents and a find of them with nothing between client
// and server, with each compressor at its default level, and with TLS 1.3.
func transportTasks(env *Env) ([]Task, error) {
	plain, err := env.URI()
	if err != nil {
		return nil, err
	}
	lines, stop, err := startChild("mongotest TLS", 1)
	if err != nil {
		return nil, err
	}
	env.onClose(stop)
	ours, theirs, size, err := records(transportDocs)
	if err != nil {
		return nil, err
	}
	var tasks []Task
	for _, x := range []struct{ name, uri, compressor string }{
		{"plain", plain, ""}, {"snappy", plain, "snappy"}, {"zlib", plain, "zlib"}, {"zstd", plain, "zstd"},
		{"TLS 1.3", lines[0], ""}, {"TLS 1.3 and zstd", lines[0], "zstd"},
	} {
		both, err := env.transportPair(x.name, x.uri, x.compressor, ours, theirs, size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
		tasks = append(tasks, both...)
	}
	return tasks, nil
}

// transportPair returns both directions of one way between client and server.
func (e *Env) transportPair(name, uri, compressor string, ours []bson.D, theirs []official.D, size int) ([]Task,
	error) {
	var list []string
	if compressor != "" {
		list = []string{compressor}
	}
	ctx := context.Background()
	our, err := allium.Open(uri, allium.ClientOptions{Compressors: list,
		WriteConcern: &consistency.WriteConcern{W: 1}})
	if err != nil {
		return nil, err
	}
	e.onClose(func() error { return our.Close(ctx) })
	their, err := mongo.Connect(options.Client().ApplyURI(uri).SetWriteConcern(w1).SetCompressors(list))
	if err != nil {
		return nil, err
	}
	e.onClose(func() error { return their.Disconnect(ctx) })
	const in, out = "in", "out"
	db := our.Database("perftest_transport")
	fresh := func() error { return db.Collection(in).Drop(ctx) }
	if err := db.Collection(out).Drop(ctx); err != nil {
		return nil, err
	}
	if _, err := db.Collection(out).InsertMany(ctx, ours); err != nil {
		return nil, err
	}
	theirDB := their.Database(db.Name())
	return []Task{
		{Name: "transport/" + name + "/insert many", Bytes: size, Before: fresh,
			Allium: repeat(func() error { _, err := db.Collection(in).InsertMany(ctx, ours); return err }),
			Official: repeat(func() error {
				_, err := theirDB.Collection(in).InsertMany(ctx, theirs)
				return err
			})},
		{Name: "transport/" + name + "/find many", Bytes: size,
			Allium: repeat(func() error {
				n := 0
				cur, err := allium.CollectionOf[bson.Raw](db, out).Find(ctx, bson.D{})
				if err != nil {
					return err
				}
				for _, err := range cur.Seq(ctx) {
					if err != nil {
						return err
					}
					n++
				}
				return expect(n, transportDocs)
			}),
			Official: repeat(func() error {
				n := 0
				cur, err := theirDB.Collection(out).Find(ctx, official.D{})
				if err != nil {
					return err
				}
				for cur.Next(ctx) {
					n++ // cur.Current is a document
				}
				return errors.Join(cur.Close(ctx), expect(n, transportDocs))
			})},
	}, nil
}

// records are documents that are as much alike as records of a program are: the same names, and
// values of which some come again and some do not.
func records(n int) (ours []bson.D, theirs []official.D, size int, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the order of a customer was sent back because nobody had asked for it and then paid again " +
		"while two parcels were on their way to an address that does not exist any more since last winter")
	for i := range n {
		var text strings.Builder
		for range 60 {
			text.WriteString(words[r.IntN(len(words))] + " ")
		}
		key, price := fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()), r.Float64()
		ours = append(ours, bson.D{{Key: "key", Value: key}, {Key: "number", Value: int64(i)},
			{Key: "price", Value: price}, {Key: "state", Value: words[i%5]}, {Key: "text", Value: text.String()}})
		theirs = append(theirs, official.D{{Key: "key", Value: key}, {Key: "number", Value: int64(i)},
			{Key: "price", Value: price}, {Key: "state", Value: words[i%5]}, {Key: "text", Value: text.String()}})
		raw, err := bson.Marshal(ours[i])
		if err != nil {
			return nil, nil, 0, err
		}
		size += len(raw)
	}
	return ours, theirs, size, nil
}
