package gridfs_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/mongoerr"
	"allium/mongotest"
)

const createBoth = "find fs.files, listIndexes fs.files, createIndexes fs.files, listIndexes fs.chunks, createIndexes fs.chunks"

func TestIndexesBeforeTheFirstWriteOnly(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	ctx := t.Context()
	b.OpenDownloadStream(ctx, 1)
	b.Delete(ctx, 1)
	b.Rename(ctx, 1, "x")
	if cur, err := b.Find(ctx, bson.D{}); err == nil {
		cur.Close(ctx)
	}
	s, err := b.OpenUploadStream(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("x"))
	if got := w.names(); strings.Contains(got, "ndexes") {
		t.Errorf("indexes before the first write: %s", got)
	}
	w.forget()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := w.names(), createBoth+", insert fs.chunks, insert fs.files"; got != want {
		t.Errorf("first write: %s, want %s", got, want)
	}
	find := w.commands()[0].body
	if n, ok := find.Lookup("projection", "_id").AsInt64(); !ok || n != 1 || !find.Lookup("filter").IsZero() && len(keys(bson.Raw(find.Lookup("filter").Value))) != 0 {
		t.Errorf("find: %v", find)
	}
	w.forget()
	upload(t, b, "g", []byte("x"))
	if got, want := w.names(), "insert fs.chunks, insert fs.files"; got != want {
		t.Errorf("second write: %s, want %s", got, want)
	}
	w.forget()
	upload(t, gridfs.NewBucket(w.db), "g", nil) // a bucket of its own, a file without chunks
	if got, want := w.names(), "find fs.files, insert fs.files"; got != want {
		t.Errorf("files are there: %s, want %s", got, want)
	}

	for collection, want := range map[string]bson.D{"fs.files": {{Key: "filename", Value: int32(1)}, {Key: "uploadDate", Value: int32(1)}}, "fs.chunks": {{Key: "files_id", Value: int32(1)}, {Key: "n", Value: int32(1)}}} {
		cur, err := w.db.Collection(collection).ListIndexes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all, err := cur.All(ctx)
		if err != nil || len(all) != 2 {
			t.Fatalf("%s: %v, %v", collection, all, err)
		}
		got, _ := bson.Marshal(all[1].Keys)
		exp, _ := bson.Marshal(want)
		if !bson.Equal(got, exp) || all[1].Unique != (collection == "fs.chunks") {
			t.Errorf("%s: %v", collection, all[1].Raw)
		}
	}
}

func TestEqualIndexesAreNotCreated(t *testing.T) {
	for _, one := range []any{int32(1), int64(1), 1.0} {
		w := start(t)
		ctx := t.Context()
		if _, err := w.db.Collection("fs.files").CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "filename", Value: one}, {Key: "uploadDate", Value: 1}}, Name: "mine"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.db.Collection("fs.chunks").CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "files_id", Value: 1}, {Key: "n", Value: one}}, Unique: true}); err != nil {
			t.Fatal(err)
		}
		w.forget()
		upload(t, gridfs.NewBucket(w.db), "f", []byte("x"))
		if got, want := w.names(), "find fs.files, listIndexes fs.files, listIndexes fs.chunks, insert fs.chunks, insert fs.files"; got != want {
			t.Errorf("%T: %s, want %s", one, got, want)
		}
	}
}

func TestOtherIndexesDoNotCount(t *testing.T) {
	for _, keys := range []bson.D{
		{{Key: "uploadDate", Value: 1}, {Key: "filename", Value: 1}},
		{{Key: "filename", Value: 1}, {Key: "uploadDate", Value: -1}},
		{{Key: "filename", Value: 1}},
		{{Key: "filename", Value: 1}, {Key: "uploadDate", Value: 1}, {Key: "length", Value: 1}},
	} {
		w := start(t)
		if _, err := w.db.Collection("fs.files").CreateIndex(t.Context(), allium.IndexModel{Keys: keys}); err != nil {
			t.Fatal(err)
		}
		w.forget()
		upload(t, gridfs.NewBucket(w.db), "f", nil)
		if got := w.names(); !strings.HasPrefix(got, createBoth) {
			t.Errorf("%v: %s", keys, got)
		}
	}
}

func TestIndexesAreCreatedOnce(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { upload(t, b, "f", []byte("x")) })
	}
	wg.Wait()
	if got := w.names(); strings.Count(got, "createIndexes") != 2 || strings.Count(got, "listIndexes") != 2 || !strings.HasPrefix(got, createBoth) {
		t.Errorf("commands: %s", got)
	}
}

func TestIndexErrorsAreRaised(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	for i, cmd := range []string{"find", "listIndexes", "createIndexes"} {
		w.d.FailCommand(t, mongotest.Fail{Commands: []string{cmd}, Code: 13, Times: 1})
		_, err := b.UploadFromStream(t.Context(), "f", strings.NewReader("x"))
		var server *mongoerr.ServerError
		if !errors.As(err, &server) || server.Code != 13 || !strings.Contains(err.Error(), "indexes") {
			t.Errorf("%s: %v", cmd, err)
		}
		if n := w.count("fs.chunks"); n != 0 {
			t.Errorf("%d: %d chunks are there all the same", i, n)
		}
	}
	w.forget()
	upload(t, b, "f", []byte("x")) // an attempt that failed is repeated
	if got := w.names(); !strings.Contains(got, "createIndexes fs.chunks") {
		t.Errorf("commands: %s", got)
	}
}

// TestWaitingForIndexes: one upload creates the indexes while another one waits, no longer than it
// may.
func TestWaitingForIndexes(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.watch(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "createIndexes" {
			once.Do(func() { close(entered) })
			<-release
		}
		return nil, nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := b.UploadFromStream(t.Context(), "f", strings.NewReader("x"))
		done <- err
	}()
	<-entered
	_, err := b.UploadFromStream(t.Context(), "g", strings.NewReader("x"), gridfs.UploadOptions{Timeout: new(10 * time.Millisecond)})
	var timeout *mongoerr.TimeoutError
	if !errors.As(err, &timeout) {
		t.Errorf("the one that waits: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
