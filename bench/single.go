package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	official "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

var w1 = writeconcern.W1()

// The collection of the specification's tasks. Each group has a database of its own, since all of
// them are set up before the first one runs.
const corpus = "corpus"

// docs are the specification's documents for both drivers.
type docs struct {
	env                 *Env
	uri                 string
	tweet, small, large sourceDoc // the large one is there while a task needs it
	gridFSLarge         []byte
	ours                *allium.Client
	theirs              *mongo.Client
	ourDB               *allium.Database
	theirDB             *mongo.Database
}

// sourceDoc is one of them, with the size of its source file.
type sourceDoc struct {
	size   int
	path   string // of the document as BSON
	ours   bson.D
	theirs official.D
}

// load makes the document for both drivers, if it is not there.
func (s *sourceDoc) load() error {
	if s.ours != nil {
		return nil
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	return errors.Join(bson.Unmarshal(data, &s.ours), official.Unmarshal(data, &s.theirs))
}

// drop lets go of the document. The C driver's process has no data but a task's own, and Go's
// collector lets the more garbage lie the more there is.
func (s *sourceDoc) drop() { s.ours, s.theirs = nil, nil }

// corpusDocs reads the documents, connects both drivers and empties the database.
func corpusDocs(env *Env, group string) (*docs, error) {
	files, err := readArchive("single_and_multi_document.tgz")
	if err != nil {
		return nil, err
	}
	uri, err := env.URI()
	if err != nil {
		return nil, err
	}
	d := &docs{env: env, uri: uri, gridFSLarge: outsideHeap(len(files["gridfs_large.bin"]))}
	copy(d.gridFSLarge, files["gridfs_large.bin"])
	for name, doc := range map[string]*sourceDoc{"tweet.json": &d.tweet, "small_doc.json": &d.small,
		"large_doc.json": &d.large} {
		doc.size = len(files[name])
		var ours bson.D
		if err := bson.UnmarshalExtJSON(files[name], &ours); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		raw, err := bson.Marshal(ours)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if doc.path, err = env.scratchFile(name+".bson", raw); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(d.tweet.load(), d.small.load()); err != nil {
		return nil, err
	}
	if d.ours, d.theirs, err = env.Clients(uri); err != nil {
		return nil, err
	}
	name := "perftest_" + group
	if env.recorder != nil {
		name += "_floor"
	}
	d.ourDB, d.theirDB = d.ours.Database(name), d.theirs.Database(name)
	env.onClose(func() error { return d.ourDB.Drop(context.Background()) })
	return d, d.ourDB.Drop(context.Background())
}

// cTask returns what measures an operation of the C program in the group's database.
func (d *docs) cTask(operation string, args ...string) func(int, bool) (turn, error) {
	return d.env.cTask(d.uri, operation, append([]string{d.ourDB.Name()}, args...)...)
}

// fresh makes an empty collection.
func (d *docs) fresh(names ...string) func() error {
	return func() error {
		for _, name := range names {
			if err := d.ourDB.Collection(name).Drop(context.Background()); err != nil {
				return err
			}
			if err := d.ourDB.CreateCollection(context.Background(), name); err != nil {
				return err
			}
		}
		return nil
	}
}

// singleTasks are the specification's benchmarks of single documents.
func singleTasks(env *Env) ([]Task, error) {
	d, err := corpusDocs(env, "single")
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	const tweets = 10_000
	ourTweets := d.ourDB.Collection("tweets") // of its own, so that the tasks that insert leave it alone
	many := make([]bson.D, tweets)
	for i := range many {
		many[i] = append(bson.D{{Key: "_id", Value: int32(i + 1)}}, d.tweet.ours...)
	}
	if _, err := ourTweets.InsertMany(ctx, many); err != nil {
		return nil, err
	}
	insert := func(name string, doc *sourceDoc, scale int, ofC float64) Task {
		return Task{Name: "single/" + name, Bytes: doc.size, Scale: scale, Before: inTurn(d.fresh(corpus), doc.load),
			After:  doc.drop,
			CPUOfC: ofC, C: d.cTask("insert_one", corpus, doc.path), Values: idValues(1),
			Allium: repeat(func() error {
				_, err := d.ourDB.Collection(corpus).InsertOne(ctx, doc.ours)
				return err
			}),
			Official: repeat(func() error {
				_, err := d.theirDB.Collection(corpus).InsertOne(ctx, doc.theirs)
				return err
			})}
	}
	// Servers before 4.4.2 have the command under its older name only.
	hello := "hello"
	const commandNotFound = 59
	if _, err := d.ourDB.RunCommand(ctx, bson.D{{Key: hello, Value: true}}); mongoerr.HasCode(err, commandNotFound) {
		hello = "isMaster"
	}
	return []Task{
		{Name: "single/run command", Bytes: 13, Scale: 10_000, CPUOfC: 0.85, C: d.cTask("command", hello),
			Values: replyValue,
			Allium: repeat(func() error {
				_, err := d.ourDB.RunCommand(ctx, bson.D{{Key: hello, Value: true}})
				return err
			}),
			Official: repeat(func() error {
				return d.theirDB.RunCommand(ctx, official.D{{Key: hello, Value: true}}).Err()
			})},
		{Name: "single/find one by _id", Bytes: d.tweet.size, Scale: tweets, CPUOfC: 0.85,
			C: d.cTask("find_one", "tweets"), Values: documentValues,
			Allium: func(n int) error {
				for i := range n {
					if doc, err := ourTweets.FindOne(ctx,
						bson.D{{Key: "_id", Value: int32(i%tweets + 1)}}); err != nil || len(doc) < 2 {
						return fmt.Errorf("%d fields: %w", len(doc), err)
					}
				}
				return nil
			},
			Official: func(n int) error {
				c := d.theirDB.Collection("tweets")
				for i := range n {
					var doc official.D
					if err := c.FindOne(ctx, official.D{{Key: "_id", Value: int32(i%tweets + 1)}},
						options.FindOne()).Decode(&doc); err != nil || len(doc) < 2 {
						return fmt.Errorf("%d fields: %w", len(doc), err)
					}
				}
				return nil
			}},
		insert("small doc insertOne", &d.small, 10_000, 0.85),
		insert("large doc insertOne", &d.large, 10, 0.8),
	}, nil
}
