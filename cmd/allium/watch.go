package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"allium"
	"allium/bson"
)

// watchFlags are the command line of allium watch.
type watchFlags struct {
	db, collection string
	pipeline       string
	resume         string
	full           bool
	before         bool
	canonical      bool
	count          int
}

func (f *watchFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.db, "db", "",
		"watch this `database` (default: that of the connection string, or the whole deployment)")
	fs.StringVar(&f.collection, "collection", "", "watch this `collection` of the database")
	fs.StringVar(&f.pipeline, "pipeline", "", "an array of `stages` as Extended JSON that the events go through")
	fs.StringVar(&f.resume, "resume", "", "begin after the event with this `_id`, as Extended JSON")
	fs.BoolVar(&f.full, "full", false, "look up the document of every update")
	fs.BoolVar(&f.before, "before", false, "add the document as it was, where the collection keeps it")
	fs.BoolVar(&f.canonical, "canonical", false, "print canonical Extended JSON, which keeps every type")
	fs.IntVar(&f.count, "count", 0, "end after this `number` of events; 0 means until interrupted")
}

// watch prints the events of a change stream until it is interrupted, each as it comes.
func watch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium watch"
	var f watchFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	if fs.NArg() != 1 {
		return misuse(name, stderr, "want one connection string")
	}
	opts := allium.WatchOptions{}
	if f.full {
		opts.FullDocument = allium.FullDocumentUpdateLookup
	}
	if f.before {
		opts.FullDocumentBeforeChange = allium.FullDocumentWhenAvailable
	}
	if f.resume != "" {
		token, err := document(f.resume)
		if err != nil {
			return misuse(name, stderr, "-resume: "+err.Error())
		}
		opts.ResumeAfter = token
	}
	stages := []bson.Raw{}
	if f.pipeline != "" {
		var err error
		if stages, err = array(f.pipeline); err != nil {
			return misuse(name, stderr, "-pipeline: "+err.Error())
		}
	}
	client, db, err := open(fs.Arg(0), 0)
	if err != nil {
		return fail(name, stderr, err)
	}
	defer client.Close(context.WithoutCancel(ctx))
	if f.db == "" {
		f.db = db
	}
	var stream *allium.ChangeStream[bson.D]
	switch {
	case f.collection != "" && f.db == "":
		return misuse(name, stderr, "-collection needs a database: -db, or one in the connection string")
	case f.collection != "":
		stream, err = client.Database(f.db).Collection(f.collection).Watch(ctx, stages, opts)
	case f.db != "":
		stream, err = client.Database(f.db).Watch(ctx, stages, opts)
	default:
		stream, err = client.Watch(ctx, stages, opts)
	}
	if err != nil {
		return fail(name, stderr, err)
	}
	defer stream.Close(context.WithoutCancel(ctx))
	for n := 1; stream.Next(ctx); n++ {
		text, err := extJSON(stream.Current().Raw, f.canonical)
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%s\n", text)
		}
		if err != nil {
			return fail(name, stderr, err)
		}
		if n == f.count {
			return succeeded
		}
	}
	if ctx.Err() != nil { // interrupted, as it was meant
		return succeeded
	}
	if err := stream.Err(); err != nil {
		return fail(name, stderr, err)
	}
	return succeeded
}
