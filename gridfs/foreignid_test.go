package gridfs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/gridfs"
)

// foreignIDs are values that a filter would not take as what they are: operators, patterns, lists,
// and null, which also stands for what is missing.
func foreignIDs() []any {
	type named string
	type operators map[string]any
	return []any{
		bson.D{{Key: "$ne", Value: "nothing"}}, bson.M{"$gt": ""}, map[string]any{"$exists": true}, operators{"$nin": []string{"x"}},
		struct {
			Not any `bson:"$not"`
		}{bson.D{{Key: "$eq", Value: 1}}},
		must(bson.Marshal(bson.D{{Key: "$in", Value: bson.A{"a", "b", int32(1)}}})),
		must(bson.MarshalValue(bson.D{{Key: "$type", Value: bson.A{"string", "int", "object", "null"}}})),
		bson.D{{Key: "$or", Value: bson.A{bson.D{}}}}, bson.D{{Key: "$where", Value: "true"}}, bson.D{{Key: "$regex", Value: "."}},
		bson.D{{Key: "$eq", Value: "a"}}, bson.D{},
		bson.Regex{Pattern: "."}, &bson.Regex{Pattern: ".*", Options: "i"}, bson.A{"a", "b"}, []string{"a"}, [1]string{"a"}, bson.Undefined{},
		bson.Null{}, (*string)(nil), bson.D(nil), bson.M(nil), []byte(nil),
		bson.MinKey{}, named("$ne"), "$ne", "/./",
	}
}

// TestForeignIDs gives every method that takes an id ids that would be conditions in a filter: none
// of them touches a file with another id, or a chunk without a file.
func TestForeignIDs(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 2})
	files := map[any]string{"a": "abcdef", int32(1): "x", bson.NewObjectID(): "0123456789"}
	for id, data := range files {
		if err := b.UploadFromStreamWithID(t.Context(), id, "f", strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	document := bson.D{{Key: "_id", Value: bson.D{{Key: "a", Value: "b"}}}}
	if err := b.UploadFromStreamWithID(t.Context(), document, "f", strings.NewReader("pqrs")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Collection("fs.chunks").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "lost"}, {Key: "n", Value: 0}}); err != nil {
		t.Fatal(err)
	}
	before := append(w.stored("fs.files"), w.stored("fs.chunks")...)
	for _, id := range foreignIDs() {
		for what, run := range map[string]func() error{
			"Delete": func() error { return b.Delete(t.Context(), id) },
			"Rename": func() error { return b.Rename(t.Context(), id, "mine") },
			"OpenDownloadStream": func() error {
				_, err := b.OpenDownloadStream(t.Context(), id)
				return err
			},
			"DownloadToStream": func() error {
				_, err := b.DownloadToStream(t.Context(), id, io.Discard)
				return err
			},
			"Abort": func() error {
				s, err := b.OpenUploadStreamWithID(t.Context(), id, "f")
				if err == nil {
					_, _ = s.Write([]byte("abcd"))
					_ = s.Abort()
				}
				return errors.Join(errors.New("no file is meant"), err)
			},
		} {
			if err := run(); err == nil {
				t.Errorf("%s(%T %v) found a file", what, id, id)
			}
			after := append(w.stored("fs.files"), w.stored("fs.chunks")...)
			if !slices.EqualFunc(before, after, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
				t.Fatalf("%s(%T %v) changed what is stored", what, id, id)
			}
		}
	}
	for id, data := range files {
		if got := download(t, b, id); string(got) != data {
			t.Errorf("%v: got %q, want %q", id, got, data)
		}
	}
	if got := download(t, b, document); string(got) != "pqrs" {
		t.Errorf("document as an id: got %q", got)
	}
}

// TestForeignIDsThatExist: a file whose id another program chose, which a filter would not take as
// it is, is renamed and deleted by its name like the others, and alone.
func TestForeignIDsThatExist(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 2})
	for _, id := range []any{bson.Null{}, bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: 1}}}}, bson.D{}, bson.MinKey{}} {
		for _, name := range []string{"f", "other"} {
			other := id
			if name == "other" {
				other = "kept"
			}
			if err := b.UploadFromStreamWithID(t.Context(), other, name, strings.NewReader("abcdef")); err != nil {
				t.Fatalf("%v: %v", id, err)
			}
		}
		if _, err := w.db.Collection("fs.chunks").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "lost"}}); err != nil {
			t.Fatal(err)
		}
		if got := download(t, b, id); string(got) != "abcdef" {
			t.Errorf("%v: got %q", id, got)
		}
		if err := b.DeleteByName(t.Context(), "f"); err != nil {
			t.Errorf("%v: %v", id, err)
		}
		if f, c := w.count("fs.files"), w.count("fs.chunks"); f != 1 || c != 3+1 {
			t.Errorf("%v: %d files and %d chunks are left, want 1 and 4", id, f, c)
		}
		if err := b.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFiltersNameIDs looks at every filter that a bucket sends: an id stands in it as an operand,
// never as the condition itself.
func TestFiltersNameIDs(t *testing.T) {
	var mu sync.Mutex
	var commands []seen
	w := startWith(t, allium.ClientOptions{CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
		mu.Lock()
		defer mu.Unlock()
		commands = append(commands, seen{name: e.CommandName, body: bytes.Clone(e.Command)})
	}}})
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 2})
	id := upload(t, b, "f", []byte("abcdef"))
	download(t, b, id)
	if err := b.Rename(t.Context(), id, "g"); err != nil {
		t.Error(err)
	}
	if err := b.Delete(t.Context(), id); err != nil {
		t.Error(err)
	}
	upload(t, b, "f", []byte("abcdef"))
	if err := b.DeleteByName(t.Context(), "f"); err != nil {
		t.Error(err)
	}
	s, err := b.OpenUploadStream(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Abort(); err != nil {
		t.Error(err)
	}
	conditions := 0
	for _, c := range commands {
		filters := []bson.Raw{}
		if f, ok := c.body.Lookup("filter").Document(); ok {
			filters = append(filters, f)
		}
		for _, list := range []string{"updates", "deletes"} {
			if f, ok := c.body.Lookup(list, "0", "q").Document(); ok {
				filters = append(filters, f)
			}
		}
		for _, f := range filters {
			for _, field := range []string{"_id", "files_id"} {
				v := f.Lookup(field)
				if v.IsZero() {
					continue
				}
				conditions++
				condition, _ := v.Document()
				for key := range condition.All() {
					if strings.HasPrefix(key, "$") && !slices.Contains([]string{"$eq", "$in", "$type", "$gte", "$lt"}, key) {
						t.Errorf("%s: condition of %s is %v", c, field, condition)
					}
				}
			}
		}
	}
	if conditions < 8 {
		t.Errorf("%d conditions were seen, want at least 8", conditions)
	}
}
