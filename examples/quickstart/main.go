// Command quickstart shows Allium at work on real data: the declarations of the Go standard
// library, which every machine with Go has. It imports them, asks what a Go developer might ask,
// and checks each answer against its own count.
//
//	go run ./examples/quickstart
//
// It connects to $MONGODB_URI if that is set, and starts a deployment inside its own process
// otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stdout, stderr io.Writer) error {
	uri, where := os.Getenv("MONGODB_URI"), "the deployment of $MONGODB_URI"
	if uri == "" {
		d, err := mongotest.Open(mongotest.ReplicaSet(1))
		if err != nil {
			return err
		}
		defer d.Stop()
		uri, where = d.URI(), "a replica set inside this process"
	}
	client, err := allium.Open(uri)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	if err := client.Ping(ctx); err != nil {
		return err
	}

	db := client.Database("quickstart")
	decls := allium.CollectionOf[Decl](db, "declarations")
	if err := decls.Drop(ctx); err != nil {
		return err
	}
	r := report{out: stdout}
	r.printf("Connected to %s.\n", where)

	// Import in batches, while the files are being parsed.
	start := time.Now()
	tally, err := load(ctx, decls, newProgress(stderr))
	if err != nil {
		return err
	}
	took := time.Since(start)
	n, err := decls.CountDocuments(ctx, bson.D{})
	if err != nil {
		return err
	}
	r.printf("\nImported the declarations of Go's standard library in %v.\n", took.Round(time.Millisecond))
	r.check("functions, methods and types", n, tally.total)

	if err := questions(ctx, decls, tally, &r); err != nil {
		return err
	}
	if r.wrong > 0 {
		return fmt.Errorf("%d counts differ from the program's own", r.wrong)
	}
	r.printf("\nEvery count agrees with the program's own.\n")
	return nil
}

// questions asks what a Go developer might ask.
func questions(ctx context.Context, decls *allium.Collection[Decl], tally *tally, r *report) error {
	// A unique index, and what happens to a second document with the same key.
	if _, err := decls.CreateIndex(ctx, allium.IndexModel{
		Keys:   bson.D{{Key: "file", Value: 1}, {Key: "line", Value: 1}, {Key: "name", Value: 1}},
		Unique: true,
	}); err != nil {
		return err
	}
	first, err := decls.FindOne(ctx, bson.M{"package": "fmt", "name": "Println"})
	if err != nil {
		return err
	}
	_, err = decls.InsertOne(ctx, first.withoutID())
	if !errors.Is(err, mongoerr.ErrDuplicateKey) {
		return fmt.Errorf("inserting fmt.Println a second time: want a duplicate key error, got %v", err)
	}
	r.printf("\nA second fmt.Println is refused by the unique index, as it should be:\n  %v\n", err)

	// A query with sort and limit.
	widest := decls.Query(ctx, bson.M{"kind": bson.M{"$ne": "type"}, "exported": true}, allium.FindOptions{
		Sort:  bson.D{{Key: "arity", Value: -1}, {Key: "package", Value: 1}, {Key: "name", Value: 1}},
		Limit: 5,
	})
	r.printf("\nThe exported functions with the most parameters:\n")
	var most int64
	for d, err := range widest {
		if err != nil {
			return err
		}
		most = max(most, int64(d.Arity))
		r.printf("  %2d  %s\n", d.Arity, d)
	}
	r.check("parameters at most", most, tally.mostParams)

	// An update of many documents.
	res, err := decls.UpdateMany(ctx, bson.M{"doc": bson.M{"$regex": `\bDeprecated: `}},
		bson.M{"$set": bson.M{"deprecated": true}})
	if err != nil {
		return err
	}
	r.printf("\nMarked what its doc comment calls deprecated.\n")
	r.check("deprecated declarations", res.ModifiedCount, tally.deprecated)

	// An aggregation, decoded as another type.
	groups := allium.As[group](decls)
	cur, err := groups.Aggregate(ctx, []bson.D{
		{{Key: "$match", Value: bson.M{"exported": true, "kind": bson.M{"$ne": "type"}, "results": "error"}}},
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$package"}, {Key: "n", Value: bson.M{"$sum": 1}}}}},
		{{Key: "$sort", Value: bson.D{{Key: "n", Value: -1}, {Key: "_id", Value: 1}}}},
		{{Key: "$limit", Value: 10}},
	})
	if err != nil {
		return err
	}
	top, err := cur.All(ctx)
	if err != nil {
		return err
	}
	r.printf("\nThe packages with the most exported functions that return an error:\n")
	for _, g := range top {
		r.check(g.Package, g.N, tally.errorsOf[g.Package])
	}

	del, err := decls.DeleteMany(ctx, bson.M{"deprecated": true})
	if err != nil {
		return err
	}
	left, err := decls.CountDocuments(ctx, bson.D{})
	if err != nil {
		return err
	}
	r.printf("\nDeleted what is deprecated.\n")
	r.check("deleted", del.DeletedCount, tally.deprecated)
	r.check("left", left, tally.total-tally.deprecated)
	return nil
}

// group is a document of the aggregation's result.
type group struct {
	Package string `bson:"_id"`
	N       int64  `bson:"n"`
}

// report prints what was found, and counts what is wrong.
type report struct {
	out   io.Writer
	wrong int
}

func (r *report) printf(format string, args ...any) { fmt.Fprintf(r.out, format, args...) }

// check prints a count of the deployment's, and says so if the program's own is another.
func (r *report) check(what string, got, want int64) {
	if got != want {
		r.wrong++
		r.printf("  %7d  %s (WRONG: the program counted %d)\n", got, what, want)
		return
	}
	r.printf("  %7d  %s\n", got, what)
}
