package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

const (
	batchSize = 1000 // documents: enough to make round trips cheap, few enough to hold in memory
	atOnce    = 4    // batches on their way
)

// importer loads documents into a collection.
type importer struct {
	to       *allium.Collection[bson.Raw]
	name     string // of the file, for documents without an _id
	progress *progress
}

// batch is what one operation inserts.
type batch struct {
	docs  []bson.Raw
	lines []int // where each document stands
	bytes int64 // of the file, empty and bad lines included
}

// load reads lines, and inserts them in batches while it reads on. The first error that is not that
// of a line ends it. Batches that are on their way are then still stored.
func (i *importer) load(ctx context.Context, r io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan batch)
	var inserters sync.WaitGroup
	for range atOnce {
		inserters.Go(func() {
			for b := range batches {
				if err := i.insert(context.WithoutCancel(ctx), b); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := i.read(ctx, r, batches)
	close(batches)
	inserters.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// read parses lines into batches.
func (i *importer) read(ctx context.Context, r io.Reader, batches chan<- batch) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	var b batch
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		b.bytes += int64(len(line))
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if doc, err := i.parse(line, n); err != nil {
				i.progress.refuse(n, err)
			} else {
				b.docs, b.lines = append(b.docs, doc), append(b.lines, n)
			}
		}
		if end || len(b.docs) == batchSize {
			select {
			case batches <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
			b = batch{}
		}
		if end {
			return nil
		}
	}
}

// parse reads the document of a line.
func (i *importer) parse(line []byte, n int) (bson.Raw, error) {
	doc, err := bson.ParseExtJSON(line)
	if err != nil || !doc.Lookup("_id").IsZero() {
		return doc, err
	}
	var rest bson.D
	if err := bson.Unmarshal(doc, &rest); err != nil {
		return nil, err
	}
	id := bson.E{Key: "_id", Value: fmt.Sprintf("%s:%d", i.name, n)}
	return bson.Marshal(append(bson.D{id}, rest...))
}

// insert stores a batch. What is refused is counted; other errors end the import.
func (i *importer) insert(ctx context.Context, b batch) error {
	var failed mongoerr.BulkWriteError
	if len(b.docs) > 0 {
		_, err := i.to.InsertMany(ctx, b.docs, allium.InsertManyOptions{Unordered: true})
		if bulk, ok := errors.AsType[*mongoerr.BulkWriteError](err); ok && bulk.Err == nil &&
			len(bulk.WriteConcernErrors) == 0 {
			failed = *bulk
		} else if err != nil {
			return err
		}
	}
	skipped := 0
	for _, e := range failed.WriteErrors {
		if pattern, _, ok := e.DuplicateKey(); ok && !pattern.Lookup("_id").IsZero() {
			skipped++
		} else {
			i.progress.refuse(b.lines[e.Index], e)
		}
	}
	i.progress.add(len(b.docs)-len(failed.WriteErrors), skipped, b.bytes)
	return nil
}
