package bench

import (
	"context"
	"errors"
	"fmt"

	official "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"allium"
	"allium/bson"
)

// multiTasks are the specification's benchmarks of many documents at once.
func multiTasks(env *Env) ([]Task, error) {
	d, err := corpusDocs(env, "multi")
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	const tweets = 10_000
	ourTweets := d.ourDB.Collection("tweets")
	if _, err := ourTweets.InsertMany(ctx, copies(d.tweet.ours, tweets)); err != nil {
		return nil, err
	}
	tasks := []Task{{Name: "multi/find many and empty the cursor", Bytes: d.tweet.size * tweets, Scale: 1,
		CPUOfC: 0.5, C: d.cTask("find_all", "tweets", fmt.Sprint(tweets)), Values: documentValues,
		Allium: repeat(func() error {
			cur, err := ourTweets.Find(ctx, bson.D{})
			if err != nil {
				return err
			}
			n := 0
			for _, err := range cur.Seq(ctx) {
				if err != nil {
					return err
				}
				n++
			}
			return expect(n, tweets)
		}),
		Official: repeat(func() error {
			cur, err := d.theirDB.Collection("tweets").Find(ctx, official.D{})
			if err != nil {
				return err
			}
			n := 0
			for cur.Next(ctx) {
				var doc official.D
				if err := cur.Decode(&doc); err != nil {
					return err
				}
				n++
			}
			return errors.Join(cur.Close(ctx), expect(n, tweets))
		})}}
	for _, x := range []struct {
		name string
		doc  *sourceDoc
		n    int
		ofC  float64
	}{{"small doc", &d.small, 10_000, 0.5}, {"large doc", &d.large, 10, 0.8}} {
		tasks = append(tasks, d.insertTasks(x.name, x.doc, x.n, x.ofC)...)
	}
	tasks = append(tasks, d.mixedTasks()...)
	files, err := d.fileTasks()
	return append(tasks, files...), err
}

// insertTasks are the ways to insert n copies of a document.
func (d *docs) insertTasks(name string, doc *sourceDoc, n int, ofC float64) []Task {
	ctx := context.Background()
	var ours []bson.D
	var theirs []official.D
	var ourModels []allium.WriteModel
	ourCorpus := d.ourDB.Collection(corpus)
	var theirModels []mongo.WriteModel
	var theirWrites []mongo.ClientBulkWrite
	load := func() error {
		if ours != nil {
			return nil
		}
		if err := doc.load(); err != nil {
			return err
		}
		ours, theirs = copies(doc.ours, n), copies(doc.theirs, n)
		for range n {
			ourModels = append(ourModels, ourCorpus.InsertOneModel(doc.ours))
			theirModels = append(theirModels, mongo.NewInsertOneModel().SetDocument(doc.theirs))
			theirWrites = append(theirWrites, mongo.ClientBulkWrite{Database: d.theirDB.Name(), Collection: corpus,
				Model: mongo.NewClientInsertOneModel().SetDocument(doc.theirs)})
		}
		return nil
	}
	drop := func() {
		ours, theirs, ourModels, theirModels, theirWrites = nil, nil, nil, nil, nil
		doc.drop()
	}
	// c is the C program's operation, "" if that driver has none.
	task := func(how, c string, ours, theirs func() error) Task {
		t := Task{Name: "multi/" + name + " " + how, Bytes: doc.size * n, Scale: 1,
			Before: inTurn(d.fresh(corpus), load), After: drop, Values: idValues(n),
			Allium: repeat(ours), Official: repeat(theirs)}
		if c != "" {
			t.CPUOfC, t.C = ofC, d.cTask(c, corpus, doc.path, fmt.Sprint(n))
		}
		return t
	}
	return []Task{
		task("bulk insert", "insert_many",
			func() error { _, err := d.ourDB.Collection(corpus).InsertMany(ctx, ours); return err },
			func() error { _, err := d.theirDB.Collection(corpus).InsertMany(ctx, theirs); return err }),
		task("Collection BulkWrite insert", "bulk_insert",
			func() error { _, err := d.ourDB.Collection(corpus).BulkWrite(ctx, ourModels); return err },
			func() error { _, err := d.theirDB.Collection(corpus).BulkWrite(ctx, theirModels); return err }),
		task("Client BulkWrite insert", "",
			func() error { _, err := d.ours.BulkWrite(ctx, ourModels); return err },
			func() error { _, err := d.theirs.BulkWrite(ctx, theirWrites); return err }),
	}
}

// mixedTasks insert, replace and delete in turns: in one collection, and in ten.
func (d *docs) mixedTasks() []Task {
	const n, collections = 10_000, 10
	ctx := context.Background()
	var names []string
	for i := range collections {
		names = append(names, fmt.Sprintf("%s_%d", corpus, i+1))
	}
	var ours []allium.WriteModel
	var theirs []mongo.WriteModel
	var ourWrites []allium.WriteModel
	var theirWrites []mongo.ClientBulkWrite
	load := func() error {
		if ours != nil {
			return nil
		}
		if err := d.small.load(); err != nil {
			return err
		}
		for i := range n {
			mix := func(c *allium.UntypedCollection) []allium.WriteModel {
				return []allium.WriteModel{c.InsertOneModel(d.small.ours), c.ReplaceOneModel(bson.D{}, d.small.ours),
					c.DeleteOneModel(bson.D{})}
			}
			ours = append(ours, mix(d.ourDB.Collection(corpus))...)
			theirs = append(theirs, mongo.NewInsertOneModel().SetDocument(d.small.theirs),
				mongo.NewReplaceOneModel().SetFilter(official.D{}).SetReplacement(d.small.theirs),
				mongo.NewDeleteOneModel().SetFilter(official.D{}))
			name := names[i%collections]
			ourWrites = append(ourWrites, mix(d.ourDB.Collection(name))...)
			at := func(m mongo.ClientWriteModel) mongo.ClientBulkWrite {
				return mongo.ClientBulkWrite{Database: d.theirDB.Name(), Collection: name, Model: m}
			}
			theirWrites = append(theirWrites, at(mongo.NewClientInsertOneModel().SetDocument(d.small.theirs)),
				at(mongo.NewClientReplaceOneModel().SetFilter(official.D{}).SetReplacement(d.small.theirs)),
				at(mongo.NewClientDeleteOneModel().SetFilter(official.D{})))
		}
		return nil
	}
	drop := func() {
		ours, theirs, ourWrites, theirWrites = nil, nil, nil, nil
		d.small.drop()
	}
	size := d.small.size * 2 * n
	return []Task{
		{Name: "multi/small doc Client BulkWrite mixed", Bytes: size, Scale: 1, Before: inTurn(d.fresh(names...), load),
			After:    drop,
			Allium:   repeat(func() error { _, err := d.ours.BulkWrite(ctx, ourWrites); return err }),
			Official: repeat(func() error { _, err := d.theirs.BulkWrite(ctx, theirWrites); return err })},
		{Name: "multi/small doc Collection BulkWrite mixed", Bytes: size, Scale: 1,
			Before: inTurn(d.fresh(corpus), load), After: drop,
			CPUOfC: 0.5, C: d.cTask("bulk_mixed", corpus, d.small.path, fmt.Sprint(n)),
			Allium: repeat(func() error { _, err := d.ourDB.Collection(corpus).BulkWrite(ctx, ours); return err }),
			Official: repeat(func() error {
				_, err := d.theirDB.Collection(corpus).BulkWrite(ctx, theirs)
				return err
			})},
	}
}

func copies[T any](doc T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = doc
	}
	return out
}
