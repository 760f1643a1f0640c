package gridfs

import (
	"errors"
	"math"
	"testing"

	"allium/bson"
)

// FuzzFile reads any documents as those of a stored file and of one of its chunks: what they say
// can be, or there is an error of the documented kind. No length that a document names is taken as
// a size of memory before the bytes are there.
func FuzzFile(f *testing.F) {
	for _, seed := range [][2]bson.D{
		{{{Key: "_id", Value: 1}, {Key: "length", Value: int64(10)}, {Key: "chunkSize", Value: 4}, {Key: "filename", Value: "a"}, {Key: "metadata", Value: bson.D{{Key: "x", Value: 1}}}},
			{{Key: "_id", Value: bson.NewObjectID()}, {Key: "files_id", Value: 1}, {Key: "n", Value: 0}, {Key: "data", Value: bson.Binary{Data: []byte("abcd")}}}},
		{{{Key: "_id", Value: nil}, {Key: "length", Value: 1e300}, {Key: "chunkSize", Value: int64(1) << 62}, {Key: "aliases", Value: bson.A{"b"}}, {Key: "md5", Value: "d4"}},
			{{Key: "n", Value: 1.5}, {Key: "data", Value: "text"}}},
		{{{Key: "length", Value: int64(math.MaxInt64)}, {Key: "chunkSize", Value: 1}}, {{Key: "n", Value: int64(-1)}}},
	} {
		file, err := bson.Marshal(seed[0])
		if err != nil {
			f.Fatal(err)
		}
		chunk, err := bson.Marshal(seed[1])
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(file), []byte(chunk), int64(3))
	}
	f.Add([]byte{}, []byte{5, 0, 0, 0, 0}, int64(-1))
	b := &Bucket{}
	f.Fuzz(func(t *testing.T, file, chunk []byte, n int64) {
		stored, err := b.parse(file)
		if _, ok := errors.AsType[*CorruptError](err); err != nil && !ok {
			t.Fatalf("an error of no documented kind: %T %v", err, err)
		}
		if err == nil {
			switch {
			case stored.Length < 0 || stored.chunks < 0 || (stored.chunks == 0) != (stored.Length == 0):
				t.Fatalf("%d chunks of %d bytes", stored.chunks, stored.Length)
			case stored.chunks > 0:
				last := stored.chunkLength(stored.chunks - 1)
				if last <= 0 || last > stored.ChunkSize || stored.chunks > 1 && stored.chunkLength(0) != stored.ChunkSize {
					t.Fatalf("the last of %d chunks has %d bytes of %d", stored.chunks, last, stored.ChunkSize)
				}
				if n >= 0 && n < stored.chunks-1 && stored.chunkLength(n) != stored.ChunkSize {
					t.Fatalf("chunk %d of %d has %d bytes of %d", n, stored.chunks, stored.chunkLength(n), stored.ChunkSize)
				}
			}
			if window := firstWindow(stored); window < 1 || window*min(stored.ChunkSize, stored.Length) > 64<<20 && window > 1 {
				t.Fatalf("%d chunks of %d bytes are fetched at once", window, stored.ChunkSize)
			}
		}
		c, err := parseChunk(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: chunk})
		if err == nil && c.wrong == "" {
			if v := bson.Raw(chunk).Lookup("data"); v.Type != bson.TypeBinary {
				t.Fatalf("data of a %s", v.Type)
			}
		}
	})
}
