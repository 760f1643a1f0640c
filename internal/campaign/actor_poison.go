package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/mongoerr"
)

// oddDoc is what the program takes documents to be, and some of them are not.
type oddDoc struct {
	ID int  `bson:"_id"`
	N  int8 `bson:"n"`
}

// oddDocs is how many documents there are for those who meet odd ones, and oddFiles how many files.
const (
	oddDocs  = 60
	oddFiles = 8
)

// misfits are values that do not decode as an int8.
var misfits = []any{"text", 1000, 1.5, bson.D{{Key: "n", Value: 1}}}

func isOdd(id int) bool { return id%7 == 3 }

// oddDocuments returns those documents, and the documents of files whose fields have odd types.
func oddDocuments() (docs, files []bson.D) {
	for i := range oddDocs {
		doc := bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}}
		if isOdd(i) {
			doc[1].Value = misfits[i%len(misfits)]
		}
		docs = append(docs, doc)
	}
	for i := range oddFiles {
		file := bson.D{{Key: "_id", Value: fmt.Sprint("odd", i)}, {Key: "filename", Value: fmt.Sprint("odd", i)},
			{Key: "length", Value: 0}, {Key: "chunkSize", Value: 1000},
			{Key: "uploadDate", Value: bson.DateTime(9)}, {Key: "contentType", Value: "c"},
			{Key: "aliases", Value: bson.A{"a"}}, {Key: "metadata", Value: bson.D{}}}
		file[4+i%4].Value = misfits[i%len(misfits)]
		files = append(files, file)
	}
	return docs, files
}

// odd reads documents of which some do not decode: it gets each of the others once, and of each of
// those an error in its place.
func (a *actor) odd() {
	how, batch := a.r.IntN(6), int32(2+a.r.IntN(40))
	var got, want []string
	for i := range oddDocs {
		want = append(want, fmt.Sprint(i, isOdd(i)))
	}
	fits := func(id int) { got = append(got, fmt.Sprint(id, false)) }
	misfit := func(err error) bool {
		e, ok := err.(*mongoerr.DecodeError)
		if ok {
			id, _ := e.Document.Lookup("_id").AsInt64()
			got = append(got, fmt.Sprint(id, true))
		}
		return ok
	}
	coll := allium.CollectionOf[oddDoc](a.client().Database(dbName), "odd")
	whole := false // it has come to the end
	err := a.do("odd documents", func(ctx context.Context) error {
		if how == 4 {
			return a.oddValues(ctx, coll)
		}
		if how == 5 {
			return a.oddFiles(ctx)
		}
		cur, err := coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: &batch, Sort: byID(1)})
		if err != nil {
			return err
		}
		defer cur.Close(ctx)
		switch how {
		case 0: // the loop that the documents show
			for {
				for cur.Next(ctx) {
					fits(cur.Current().ID)
				}
				if !misfit(cur.Err()) {
					whole = cur.Err() == nil
					return cur.Err()
				}
			}
		case 1, 2:
			for doc, err := range cur.Seq(ctx) {
				switch {
				case err == nil:
					fits(doc.ID)
				case !misfit(err):
					return err
				}
			}
			whole = true
			return nil
		default:
			docs, err := cur.All(ctx)
			odd, ok := errors.AsType[mongoerr.DecodeErrors](err)
			if err != nil && (!ok || mongoerr.IsTimeout(err) || len(docs)+len(odd) < oddDocs) {
				return err
			}
			for _, d := range docs {
				fits(d.ID)
			}
			for _, e := range odd {
				misfit(e)
			}
			got, want, whole = sortedLines(got), sortedLines(want), true
			return err
		}
	})
	if whole && !slices.Equal(got, want) {
		a.violation("odd: a loop that ended without another error read %v, way %d", got, how)
	}
	if how < 3 && !whole && err == nil {
		a.violation("odd: a loop ended without an error after %d documents", len(got))
	}
}

func sortedLines(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// oddValues asks for the distinct values of a field, of which some do not decode.
func (a *actor) oddValues(ctx context.Context, coll *allium.Collection[oddDoc]) error {
	values, err := allium.Distinct[int8](ctx, coll, "n", bson.D{})
	odd, ok := errors.AsType[mongoerr.DecodeErrors](err)
	if err != nil && !ok {
		return err
	}
	fit := 0
	kinds := map[string]bool{}
	for i := range oddDocs {
		if isOdd(i) {
			kinds[fmt.Sprint(misfits[i%len(misfits)])] = true
		} else {
			fit++
		}
	}
	if len(values) != fit || len(odd) != len(kinds) {
		a.violation("odd: of %d and %d distinct values come %d, and %d errors", fit, len(kinds), len(values), len(odd))
	}
	return err
}

// oddFiles lists the files whose documents are odd: each is there, and can be read.
func (a *actor) oddFiles(ctx context.Context) error {
	bucket := gridfs.NewBucket(a.client().Database(dbName))
	cur, err := bucket.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: oddIDs()}}}})
	if err != nil {
		return err
	}
	n := 0
	for f, err := range cur.Seq(ctx) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(f.Name, "odd") {
			a.violation("odd: a file is called %q", f.Name)
		}
		n++
	}
	if n != oddFiles {
		a.violation("odd: %d of %d files are listed", n, oddFiles)
	}
	return nil
}

func oddIDs() (ids bson.A) {
	for i := range oddFiles {
		ids = append(ids, fmt.Sprint("odd", i))
	}
	return ids
}

// eventDoc is what a follower takes documents to be; those with poison do not decode.
type eventDoc struct {
	ID string `bson:"_id"`
	N  int8   `bson:"n"`
}

// eventStream is a change stream of documents of any type.
type eventStream interface {
	Next(ctx context.Context) bool
	Err() error
	ResumeToken() bson.Raw
	Close(ctx context.Context) error
}

// open opens a change stream of the inserted documents, and returns what reads its current event.
func open[T any](ctx context.Context, a *actor,
	opts allium.WatchOptions) (eventStream, func() (bson.Raw, bson.Timestamp), error) {
	match := bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}}
	s, err := allium.CollectionOf[T](a.client().Database(dbName), "events").Watch(ctx, match, opts)
	if err != nil {
		return nil, nil, err
	}
	return s, func() (bson.Raw, bson.Timestamp) { e := s.Current(); return e.DocumentKey, e.ClusterTime }, nil
}

var openTyped = open[eventDoc]
