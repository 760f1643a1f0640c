package gridfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/gridfs"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a deployment with a client, and what the client sends.
type world struct {
	t      *testing.T
	d      *testdeploy.Deployment
	client *allium.Client
	db     *allium.Database

	mu   sync.Mutex
	seen []seen
}

// seen is a command that the deployment got.
type seen struct {
	name, collection string
	body             bson.Raw
	docs             int // in its document sequence
}

func (s seen) String() string { return s.name + " " + s.collection }

func start(t *testing.T, kind ...testdeploy.Kind) *world {
	t.Helper()
	return startWith(t, allium.ClientOptions{}, kind...)
}

func startWith(t *testing.T, o allium.ClientOptions, kind ...testdeploy.Kind) *world {
	t.Helper()
	if kind == nil {
		kind = []testdeploy.Kind{testdeploy.Any}
	}
	w := &world{t: t, d: testdeploy.Start(t, kind[0])}
	if testdeploy.Real() {
		own := o.CommandMonitor // the test's, which hears of the commands, too
		o.CommandMonitor = &event.CommandMonitor{Started: func(ctx context.Context, e *event.CommandStarted) {
			if own != nil && own.Started != nil {
				own.Started(ctx, e)
			}
			w.started(ctx, e)
		}}
	}
	client, err := allium.Open(w.d.URI(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	w.client, w.db = client, client.Database("app")
	w.watch(nil)
	return w
}

// watch makes the world see all commands from now on, and fault say what becomes of them.
func (w *world) watch(fault func(c *mongotest.Command) (bson.Raw, error)) {
	w.forget()
	if testdeploy.Real() && fault == nil {
		return // the client tells what it sends
	}
	w.d.OnCommand(w.t, func(c *mongotest.Command) (bson.Raw, error) {
		switch c.Name {
		case "hello", "isMaster", "ismaster", "ping", "endSessions":
			return nil, nil
		}
		s := seen{name: c.Name, body: bytes.Clone(c.Body)}
		s.collection, _ = c.Body.Lookup(c.Name).StringValue()
		for _, seq := range c.Sequences {
			for rest := seq.Docs; len(rest) > 0; s.docs++ {
				_, rest, _ = bson.ReadDocument(rest)
			}
		}
		w.mu.Lock()
		w.seen = append(w.seen, s)
		w.mu.Unlock()
		if fault != nil {
			return fault(c)
		}
		return nil, nil
	})
}

// started notes a command that the client sends.
func (w *world) started(_ context.Context, e *event.CommandStarted) {
	s := seen{name: e.CommandName, body: bytes.Clone(e.Command)}
	if s.name == "ping" || s.name == "endSessions" {
		return
	}
	s.collection, _ = s.body.Lookup(s.name).StringValue()
	for _, key := range []string{"documents", "updates", "deletes"} {
		list, _ := s.body.Lookup(key).Array()
		for range list.Values() {
			s.docs++
		}
	}
	w.mu.Lock()
	w.seen = append(w.seen, s)
	w.mu.Unlock()
}

func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
}

func (w *world) commands() []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// names returns the commands since the last forget, as in "find fs.files".
func (w *world) names() string {
	var all []string
	for _, s := range w.commands() {
		all = append(all, s.String())
	}
	return strings.Join(all, ", ")
}

// stored returns the documents of a collection, sorted by n and _id.
func (w *world) stored(collection string) []bson.Raw {
	w.t.Helper()
	cur, err := allium.CollectionOf[bson.Raw](w.db, collection).Find(w.t.Context(), bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: 1}}})
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := cur.All(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) count(collection string) int { w.t.Helper(); return len(w.stored(collection)) }

// noise returns bytes that no other offset has.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

func upload(t *testing.T, b *gridfs.Bucket, name string, data []byte, opts ...gridfs.UploadOptions) bson.ObjectID {
	t.Helper()
	id, err := b.UploadFromStream(t.Context(), name, onlyReader{bytes.NewReader(data)}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// onlyReader hides a reader's other methods.
type onlyReader struct{ io.Reader }

func download(t *testing.T, b *gridfs.Bucket, id any) []byte {
	t.Helper()
	var buf bytes.Buffer
	n, err := b.DownloadToStream(t.Context(), id, &buf)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(buf.Len()) {
		t.Errorf("DownloadToStream says %d bytes, wrote %d", n, buf.Len())
	}
	return buf.Bytes()
}

func TestRoundTrip(t *testing.T) {
	w := start(t)
	for _, chunk := range []int32{0, 1, 4, 1000, 1 << 20, 5 << 20} {
		b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: chunk})
		size := int(chunk)
		if size == 0 {
			size = 255 << 10
		}
		sizes := []int{0, 1, size - 1, size, size + 1, 3*size + 7}
		if size >= 1<<20 {
			sizes = []int{1, size, size + 1}
		}
		if chunk == 0 || chunk == 1000 {
			sizes = append(sizes, 4<<20, 9<<20+1)
		}
		if chunk == 1 {
			sizes = append(sizes, 2500)
		}
		for _, n := range sizes {
			if norace.Detecting && n > 1<<20 {
				continue
			}
			data := noise(n)
			for how, id := range map[string]func() any{
				"from a reader": func() any { return upload(t, b, "f", data) },
				"from a WriterTo": func() any {
					id, err := b.UploadFromStream(t.Context(), "f", bytes.NewReader(data))
					if err != nil {
						t.Fatal(err)
					}
					return id
				},
				"in pieces": func() any {
					s, err := b.OpenUploadStream(t.Context(), "f")
					if err != nil {
						t.Fatal(err)
					}
					for rest := data; len(rest) > 0; {
						k := min(len(rest), max(1, n/7))
						if m, err := s.Write(rest[:k]); m != k || err != nil {
							t.Fatalf("write: %d, %v", m, err)
						}
						rest = rest[k:]
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					return s.ID()
				},
			} {
				id := id()
				if got := download(t, b, id); !bytes.Equal(got, data) {
					t.Fatalf("chunk size %d, %d bytes %s: got %d others", chunk, n, how, len(got))
				}
				s, err := b.OpenDownloadStream(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, data) {
					t.Fatalf("chunk size %d, %d bytes %s, read: %v", chunk, n, how, err)
				}
				s.Close()
				if err := b.Delete(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if f, c := w.count("fs.files"), w.count("fs.chunks"); f != 0 || c != 0 {
		t.Errorf("%d files and %d chunks are left", f, c)
	}
}

func TestWhatIsStored(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{Name: "pics", ChunkSizeBytes: 4})
	before := time.Now().Add(-time.Second)
	id := upload(t, b, "name", []byte("123456"), gridfs.UploadOptions{Metadata: bson.D{{Key: "x", Value: 1}}})
	empty := upload(t, b, "empty", nil, gridfs.UploadOptions{ChunkSizeBytes: 7})

	chunks := w.stored("pics.chunks")
	if len(chunks) != 2 {
		t.Fatalf("chunks: %v", chunks)
	}
	for i, want := range []string{"1234", "56"} {
		c := chunks[i]
		data, _ := c.Lookup("data").Binary()
		oid, isID := c.Lookup("files_id").ObjectID()
		n, isInt32 := c.Lookup("n").Int32()
		_, chunkID := c.Lookup("_id").ObjectID()
		if string(data.Data) != want || data.Subtype != 0 || !isID || oid != id || !isInt32 || int(n) != i || !chunkID || len(keys(c)) != 4 {
			t.Errorf("chunk %d: %v", i, c)
		}
	}
	files := w.stored("pics.files")
	if len(files) != 2 {
		t.Fatalf("files: %v", files)
	}
	for i, want := range []string{"_id length chunkSize uploadDate filename metadata", "_id length chunkSize uploadDate filename"} {
		if got := strings.Join(keys(files[i]), " "); got != want {
			t.Errorf("keys of file %d are %q, want %q", i, got, want)
		}
	}
	f := files[0]
	length, isInt64 := f.Lookup("length").Int64()
	size, isInt32 := f.Lookup("chunkSize").Int32()
	date, isDate := f.Lookup("uploadDate").DateTime()
	if !isInt64 || length != 6 || !isInt32 || size != 4 || !isDate || date.Time().Before(before) || date.Time().After(time.Now()) {
		t.Errorf("file: %v", f)
	}
	if oid, _ := files[1].Lookup("_id").ObjectID(); oid != empty {
		t.Errorf("file: %v", files[1])
	}
}

// TestDeprecatedFields checks the fields that are stored only if they are asked for.
func TestDeprecatedFields(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	upload(t, b, "name", nil, gridfs.UploadOptions{ContentType: "text/plain", Aliases: []string{"a", "b"}, Metadata: bson.D{}})
	upload(t, b, "other", nil, gridfs.UploadOptions{Aliases: []string{}})
	files := w.stored("fs.files")
	for i, want := range []string{"_id length chunkSize uploadDate filename contentType aliases metadata", "_id length chunkSize uploadDate filename aliases"} {
		if got := strings.Join(keys(files[i]), " "); got != want {
			t.Errorf("keys of file %d are %q, want %q", i, got, want)
		}
	}
	var f gridfs.File
	if err := bson.Unmarshal(files[0], &f); err != nil || f.ContentType != "text/plain" || !slices.Equal(f.Aliases, []string{"a", "b"}) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, o := range []gridfs.UploadOptions{{ContentType: "\xff"}, {Aliases: []string{"a", "\xff"}}} {
		if _, err := b.OpenUploadStream(t.Context(), "name", o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func keys(doc bson.Raw) []string {
	var all []string
	for k := range doc.All() {
		all = append(all, strings.Clone(k))
	}
	return all
}

func TestIDsOfAnyType(t *testing.T) {
	w := startWith(t, allium.ClientOptions{BSON: &bson.Options{UUID: bson.UUIDJavaLegacy}})
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 2})
	uuid, err := bson.ParseUUID("00112233-4455-6677-8899-aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []any{"name", int32(7), 1.5, uuid, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: "x"}}, bson.Null{}, true, bson.DateTime(5)} {
		if err := b.UploadFromStreamWithID(t.Context(), id, "f", strings.NewReader("hello")); err != nil {
			t.Fatalf("%v: %v", id, err)
		}
		if got := download(t, b, id); string(got) != "hello" {
			t.Errorf("%v: got %q", id, got)
		}
		files := w.stored("fs.files")
		for _, c := range w.stored("fs.chunks") {
			if a, b := files[0].Lookup("_id"), c.Lookup("files_id"); a.Type != b.Type || !bytes.Equal(a.Value, b.Value) {
				t.Errorf("%v: _id of the file is %v, files_id of a chunk %v", id, a, b)
			}
		}
		cur, err := b.Find(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := cur.All(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%v: find: %v, %v", id, all, err)
		}
		if all[0].ID != nil { // a null comes back as nil, which is no id
			id = all[0].ID
		}
		if err := b.Delete(t.Context(), id); err != nil {
			t.Errorf("%v: %v", id, err)
		}
	}
	for _, id := range []any{nil, bson.A{1}, bson.Regex{Pattern: "x"}, bson.Undefined{}, make(chan int)} {
		if _, err := b.OpenUploadStreamWithID(t.Context(), id, "f"); err == nil {
			t.Errorf("%v was accepted as an id", id)
		}
	}
}

func TestRevisions(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	for i := range 3 {
		w.d.Mock(t, "a clock that can be moved").ShiftClock(time.Minute)
		upload(t, b, "f", fmt.Append(nil, i))
		setDate(t, w, "f", i)
	}
	upload(t, b, "other", []byte("x"))
	read := func(name string, revision *int) (string, error) {
		var buf bytes.Buffer
		_, err := b.DownloadToStreamByName(t.Context(), name, &buf, gridfs.DownloadByNameOptions{Revision: revision})
		return buf.String(), err
	}
	for revision, want := range map[int]string{0: "0", 1: "1", 2: "2", -1: "2", -2: "1", -3: "0"} {
		if got, err := read("f", &revision); got != want || err != nil {
			t.Errorf("revision %d: got %q, %v, want %q", revision, got, err, want)
		}
	}
	if got, err := read("f", nil); got != "2" || err != nil {
		t.Errorf("default revision: got %q, %v", got, err)
	}
	for _, revision := range []int{3, -4} {
		_, err := read("f", &revision)
		if !errors.Is(err, gridfs.ErrRevisionNotFound) || errors.Is(err, gridfs.ErrFileNotFound) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("revision %d: %v", revision, err)
		}
	}
	for _, revision := range []int{0, 3, -1, -4} {
		_, err := read("g", &revision)
		if !errors.Is(err, gridfs.ErrFileNotFound) || errors.Is(err, gridfs.ErrRevisionNotFound) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no such file, revision %d: %v", revision, err)
		}
	}
}

// setDate gives the newest file with a name an upload date of its own, since several uploads may
// end in one millisecond.
func setDate(t *testing.T, w *world, name string, i int) {
	t.Helper()
	files := w.db.Collection("fs.files")
	if _, err := files.UpdateOne(t.Context(), bson.D{{Key: "filename", Value: name}, {Key: "dated", Value: nil}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "dated", Value: true}, {Key: "uploadDate", Value: bson.DateTime(i)}}}}); err != nil {
		t.Fatal(err)
	}
}

func TestRenameAndDelete(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 3})
	ctx := t.Context()
	a1, a2 := upload(t, b, "a", []byte("first")), upload(t, b, "a", []byte("second"))
	c := upload(t, b, "c", []byte("third"))

	if err := b.Rename(ctx, a1, "b"); err != nil {
		t.Error(err)
	}
	if err := b.RenameByName(ctx, "a", "b"); err != nil {
		t.Error(err)
	}
	if err := b.Rename(ctx, c, "c"); err != nil {
		t.Errorf("to the name that it has: %v", err)
	}
	for what, err := range map[string]error{
		"rename":         b.Rename(ctx, bson.NewObjectID(), "x"),
		"rename by name": b.RenameByName(ctx, "a", "x"),
		"delete":         b.Delete(ctx, bson.NewObjectID()),
		"delete by name": b.DeleteByName(ctx, "a"),
	} {
		if !errors.Is(err, gridfs.ErrFileNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s, err := b.OpenDownloadStream(ctx, a2)
	if err != nil || s.File().Name != "b" {
		t.Fatalf("file: %v, %v", s, err)
	}
	s.Close()

	w.forget()
	if err := b.DeleteByName(ctx, "b"); err != nil {
		t.Error(err)
	}
	if got, want := w.names(), "find fs.files, delete fs.files, delete fs.chunks"; got != want {
		t.Errorf("delete by name: %s, want %s", got, want)
	}
	w.forget()
	if err := b.Delete(ctx, c); err != nil {
		t.Error(err)
	}
	if got, want := w.names(), "delete fs.files, delete fs.chunks"; got != want {
		t.Errorf("delete: %s, want %s", got, want)
	}
	if f, c := w.count("fs.files"), w.count("fs.chunks"); f != 0 || c != 0 {
		t.Errorf("%d files and %d chunks are left", f, c)
	}
}

func TestDeleteTakesOrphans(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	id := upload(t, b, "f", []byte("x"))
	if _, err := w.db.Collection("fs.files").DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), id); !errors.Is(err, gridfs.ErrFileNotFound) {
		t.Errorf("got %v", err)
	}
	if n := w.count("fs.chunks"); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
}

func TestDrop(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	if err := b.Drop(t.Context()); err != nil {
		t.Errorf("a bucket that is not there: %v", err)
	}
	upload(t, b, "f", []byte("x"))
	w.forget()
	if err := b.Drop(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := w.names(), "drop fs.files, drop fs.chunks"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	names, err := w.db.ListCollectionNames(t.Context())
	if err != nil || len(names) != 0 {
		t.Errorf("collections: %v, %v", names, err)
	}
	w.forget()
	upload(t, b, "f", []byte("x"))
	if got := w.names(); !strings.Contains(got, "createIndexes fs.chunks") {
		t.Errorf("after Drop, the indexes are not created again: %s", got)
	}
}

func TestFind(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	for i := range 5 {
		upload(t, b, fmt.Sprint("f", i), make([]byte, i), gridfs.UploadOptions{Metadata: bson.M{"owner": []string{"ada", "bob"}[i%2]}})
	}
	w.forget()
	cur, err := b.Find(t.Context(), bson.D{{Key: "metadata.owner", Value: "ada"}},
		gridfs.FindOptions{Sort: bson.D{{Key: "length", Value: -1}}, Skip: 1, Limit: 2, BatchSize: new(int32(1)), AllowDiskUse: new(true), NoCursorTimeout: true, MaxTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	all, err := cur.All(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "f2" || all[1].Name != "f0" || all[0].Length != 2 {
		t.Errorf("got %v, %v", all, err)
	}
	if owner, _ := all[0].Metadata.Lookup("owner").StringValue(); owner != "ada" {
		t.Errorf("metadata: %v", all[0].Metadata)
	}
	cmd := w.commands()[0].body
	for _, key := range []string{"allowDiskUse", "noCursorTimeout", "maxTimeMS", "batchSize", "skip", "limit", "sort"} {
		if cmd.Lookup(key).IsZero() {
			t.Errorf("find has no %s: %v", key, cmd)
		}
	}
}

// TestOldFiles reads what other and older drivers may have stored.
func TestOldFiles(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	insert := func(collection string, doc bson.D) {
		t.Helper()
		if _, err := w.db.Collection(collection).InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	insert("fs.files", bson.D{{Key: "_id", Value: 1}, {Key: "filename", Value: "old"}, {Key: "length", Value: 6.0}, {Key: "chunkSize", Value: 4.0},
		{Key: "uploadDate", Value: bson.DateTime(0)}, {Key: "md5", Value: "abc"}, {Key: "contentType", Value: "text/plain"}, {Key: "aliases", Value: bson.A{"x", "y"}},
		{Key: "color", Value: "red"}})
	insert("fs.chunks", bson.D{{Key: "files_id", Value: 1.0}, {Key: "n", Value: 0.0}, {Key: "data", Value: bson.Binary{Data: []byte("abcd")}}})
	insert("fs.chunks", bson.D{{Key: "files_id", Value: 1.0}, {Key: "n", Value: int64(1)}, {Key: "data", Value: bson.Binary{Subtype: 2, Data: []byte("ef")}}})
	insert("fs.chunks", bson.D{{Key: "files_id", Value: 1.0}, {Key: "n", Value: int64(2)}, {Key: "data", Value: bson.Binary{}}})
	s, err := b.OpenDownloadStream(t.Context(), int64(1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := io.ReadAll(s); string(got) != "abcdef" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	f := s.File()
	if f.Length != 6 || f.ChunkSize != 4 || f.MD5 != "abc" || f.ContentType != "text/plain" || !slices.Equal(f.Aliases, []string{"x", "y"}) || f.Extra["color"] != "red" || len(f.Extra) != 1 {
		t.Errorf("file: %+v", f)
	}

	insert("fs.files", bson.D{{Key: "_id", Value: 2}, {Key: "length", Value: int32(0)}, {Key: "uploadDate", Value: bson.DateTime(0)}})
	if got := download(t, b, 2); len(got) != 0 {
		t.Errorf("a file without name and chunk size: got %q", got)
	}
	for i, doc := range []bson.D{
		{{Key: "length", Value: 5}, {Key: "chunkSize", Value: 0}},
		{{Key: "length", Value: 5}, {Key: "chunkSize", Value: -3}},
		{{Key: "length", Value: -5}, {Key: "chunkSize", Value: 3}},
		{{Key: "length", Value: 5.5}, {Key: "chunkSize", Value: 3}},
		{{Key: "length", Value: "5 bytes"}, {Key: "chunkSize", Value: 3}},
		{{Key: "length", Value: true}, {Key: "chunkSize", Value: 3}},
		{{Key: "length", Value: "-5"}, {Key: "chunkSize", Value: 3}},
		{{Key: "length", Value: nil}, {Key: "chunkSize", Value: 3}},
		{{Key: "chunkSize", Value: 3}},
		{{Key: "length", Value: 5}},
	} {
		id := fmt.Sprint("bad", i)
		insert("fs.files", append(bson.D{{Key: "_id", Value: id}}, doc...))
		var corrupt *gridfs.CorruptError
		if _, err := b.OpenDownloadStream(t.Context(), id); !errors.As(err, &corrupt) || corrupt.Chunk != -1 {
			t.Errorf("%v: %v", doc, err)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	for what, b := range map[string]*gridfs.Bucket{
		"chunk size":         gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: -1}),
		"bucket name":        gridfs.NewBucket(w.db, gridfs.BucketOptions{Name: "a\x00b"}),
		"timeout is -1":      gridfs.NewBucket(w.db, gridfs.BucketOptions{Timeout: new(time.Duration(-1))}),
		"database name is e": gridfs.NewBucket(w.client.Database("")),
	} {
		_, findErr := b.Find(ctx, bson.D{})
		_, openErr := b.OpenDownloadStream(ctx, 1)
		_, byName := b.OpenDownloadStreamByName(ctx, "a")
		_, upErr := b.UploadFromStream(ctx, "a", strings.NewReader("x"))
		for op, err := range map[string]error{"find": findErr, "download": openErr, "by name": byName, "upload": upErr, "delete": b.Delete(ctx, 1), "delete by name": b.DeleteByName(ctx, "a"),
			"rename": b.Rename(ctx, 1, "b"), "rename by name": b.RenameByName(ctx, "a", "b"), "drop": b.Drop(ctx)} {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s, %s: %v", what, op, err)
			}
		}
	}
	b := gridfs.NewBucket(w.db)
	for what, o := range map[string]gridfs.UploadOptions{"chunk size": {ChunkSizeBytes: -1}, "timeout": {Timeout: new(time.Duration(-1))}, "metadata": {Metadata: 5}} {
		if _, err := b.OpenUploadStream(ctx, "f", o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.OpenUploadStream(ctx, "\xff"); err == nil {
		t.Error("a name that is not UTF-8 was accepted")
	}
	var forgotten context.Context
	if _, err := b.OpenUploadStream(forgotten, "f"); err == nil {
		t.Error("a nil context was accepted")
	}
	if got := w.names(); got != "" {
		t.Errorf("commands were sent: %s", got)
	}
}

func TestConcernsAndPreference(t *testing.T) {
	w := start(t, testdeploy.ReplicaSet(1))
	db := w.db.With(allium.DatabaseOptions{ReadConcern: &consistency.ReadConcern{Level: "local"}, WriteConcern: &consistency.WriteConcern{W: 1}})
	for _, test := range []struct {
		bucket   gridfs.BucketOptions
		read     string
		journal  bool
		readMode string
	}{
		{gridfs.BucketOptions{}, "local", false, ""},
		{gridfs.BucketOptions{ReadConcern: &consistency.ReadConcern{Level: "majority"}, WriteConcern: &consistency.WriteConcern{W: 1, Journal: new(true)},
			ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}}, "majority", true, "nearest"},
	} {
		b := gridfs.NewBucket(db, test.bucket)
		w.forget()
		id := upload(t, b, "f", []byte("x"))
		download(t, b, id)
		for _, c := range w.commands() {
			rc, _ := c.body.Lookup("readConcern", "level").StringValue()
			mode, _ := c.body.Lookup("$readPreference", "mode").StringValue()
			switch c.name {
			case "find":
				first := c.body.Lookup("projection").IsZero() == false
				if rc != test.read || !first && mode != test.readMode || first && mode != "" {
					t.Errorf("%v: %v", c, c.body)
				}
			case "insert", "createIndexes":
				if j, _ := c.body.Lookup("writeConcern", "j").Boolean(); j != test.journal {
					t.Errorf("%v: %v", c, c.body)
				}
			}
		}
		if err := b.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

// The date of a file is when its upload ended, not when it began.
func TestUploadDateIsTheEnd(t *testing.T) {
	w := start(t)
	s, err := gridfs.NewBucket(w.db).OpenUploadStream(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	written := bson.NewDateTime(time.Now())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if date, ok := w.stored("fs.files")[0].Lookup("uploadDate").DateTime(); !ok || date < written {
		t.Errorf("the upload ended at %v, all was written at %v", date, written)
	}
}

// An error of a delete is raised, whichever of its commands has it.
func TestDeleteFails(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	for i, tc := range []struct {
		command string
		skip    int
		run     func(id any) error
	}{
		{"delete", 0, func(id any) error { return b.Delete(t.Context(), id) }},
		{"delete", 1, func(id any) error { return b.Delete(t.Context(), id) }},
		{"find", 0, func(any) error { return b.DeleteByName(t.Context(), "f") }},
		{"delete", 0, func(any) error { return b.DeleteByName(t.Context(), "f") }},
		{"delete", 1, func(any) error { return b.DeleteByName(t.Context(), "f") }},
	} {
		id := upload(t, b, "f", []byte("x"))
		d := w.d.Mock(t, "a command that fails after others")
		d.FailCommand(mongotest.Fail{Commands: []string{tc.command}, Skip: tc.skip, Times: 1, Code: 8})
		err := tc.run(id)
		d.ClearFailures()
		var server *mongoerr.ServerError
		if !errors.As(err, &server) || server.Code != 8 {
			t.Errorf("%d: %v", i, err)
		}
		if err := b.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
