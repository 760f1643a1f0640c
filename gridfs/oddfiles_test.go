package gridfs_test

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"testing"

	"allium"
	"allium/bson"
	"allium/gridfs"
)

// TestOddFiles stores files in whose documents one field has any value of any type: each can be
// listed, read, renamed and deleted, as long as its length is known.
func TestOddFiles(t *testing.T) {
	decimal, err := bson.ParseDecimal128("3")
	if err != nil {
		t.Fatal(err)
	}
	values := []any{nil, 0.5, math.NaN(), math.Inf(1), int32(7), int64(1) << 40, "", "text", "0003", "3.0", true, bson.D{{Key: "a", Value: 1}}, bson.A{}, bson.A{1, bson.D{}}, bson.A{"x"},
		bson.Binary{Data: []byte{1}}, bson.NewObjectID(), bson.DateTime(5), bson.Regex{Pattern: "x"}, bson.Timestamp{T: 1}, bson.Symbol("s"), bson.MinKey{}, decimal}
	for _, o := range []*bson.Options{nil, {DisallowUnknownFields: true, Documents: bson.DocumentsAsM}, {DisallowDuplicateKeys: true, ObjectIDAsHex: true}} {
		w := startWith(t, allium.ClientOptions{BSON: o})
		b, ctx := gridfs.NewBucket(w.db), t.Context()
		want := map[string]bool{} // by name: whether it can be read
		n := 0
		add := func(key string, v any) {
			id, name := fmt.Sprint("id", n), fmt.Sprintf("dir/%s-%d", key, n)
			n++
			doc := bson.D{{Key: "_id", Value: id}, {Key: "filename", Value: name}, {Key: "length", Value: 3}, {Key: "chunkSize", Value: 2}, {Key: "uploadDate", Value: bson.DateTime(9)},
				{Key: "metadata", Value: bson.D{}}, {Key: "md5", Value: "m"}, {Key: "contentType", Value: "c"}, {Key: "aliases", Value: bson.A{"a"}}, {Key: "more", Value: 1}}
			for i := range doc {
				if doc[i].Key == key {
					doc[i].Value = v
				}
			}
			if _, err := w.db.Collection("fs.files").InsertOne(ctx, doc); err != nil {
				t.Fatal(err)
			}
			for i, part := range []string{"ab", "c"} {
				chunk := bson.D{{Key: "files_id", Value: id}, {Key: "n", Value: i}, {Key: "data", Value: bson.Binary{Data: []byte(part)}}}
				if _, err := w.db.Collection("fs.chunks").InsertOne(ctx, chunk); err != nil {
					t.Fatal(err)
				}
			}
			want[name] = key != "length" || v == "0003" || v == decimal
		}
		add("", nil)
		for _, key := range []string{"length", "uploadDate", "metadata", "md5", "contentType", "aliases", "more"} {
			for _, v := range values {
				add(key, v)
			}
		}
		cur, err := b.Find(ctx, bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for f, err := range cur.Seq(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			found++
			if _, known := want[f.Name]; f.ID == nil || !known {
				t.Errorf("file %+v", f)
			}
			if !want[f.Name] {
				continue
			}
			if got := download(t, b, f.ID); string(got) != "abc" {
				t.Errorf("%s: %q", f.Name, got)
			}
		}
		if found != len(want) {
			t.Errorf("%d of %d files", found, len(want))
		}
		entries, err := fs.ReadDir(b.FS(ctx), "dir")
		if err != nil || len(entries) != len(want) {
			t.Errorf("%d entries, %v", len(entries), err)
		}
		for i := range n {
			id := fmt.Sprint("id", i)
			if err := b.Rename(ctx, id, "new"); err != nil {
				t.Error(err)
			}
			if err := b.Delete(ctx, id); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOddFileNames: a file whose name or _id is odd does not hide the others.
func TestOddFileNames(t *testing.T) {
	w := start(t)
	b, ctx := gridfs.NewBucket(w.db), t.Context()
	for i, name := range []any{"a", 5, nil, bson.D{}, bson.A{"b"}, "c"} {
		doc := bson.D{{Key: "_id", Value: bson.D{{Key: "x", Value: i}}}, {Key: "filename", Value: name}, {Key: "length", Value: 0}}
		if _, err := w.db.Collection("fs.files").InsertOne(ctx, doc); err != nil {
			t.Fatal(err)
		}
	}
	cur, err := b.Find(ctx, bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := cur.All(ctx)
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"a", "", "", "", "", "c"}) || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	entries, err := fs.ReadDir(b.FS(ctx), ".")
	if len(entries) != 2 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}
