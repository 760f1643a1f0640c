package gridfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/gridfs"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

const chunkSize = gridfs.DefaultChunkSize

func TestChunksAreWrittenInBatches(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	upload(t, b, "warm up", nil)
	w.forget()
	upload(t, b, "f", make([]byte, 40*chunkSize+1))
	inserts, docs := 0, 0
	for _, c := range w.commands() {
		if c.name == "insert" && c.collection == "fs.chunks" {
			inserts++
			docs += c.docs
		}
	}
	if docs != 41 || inserts > 6 {
		t.Errorf("%d chunks in %d commands", docs, inserts)
	}
}

// TestHugeChunkSize: what a file does not use of a chunk costs nothing.
func TestHugeChunkSize(t *testing.T) {
	norace.Skip(t, "it moves chunks of 16 MB")
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: math.MaxInt32})
	data := noise(7<<20 + 1)
	for how, r := range map[string]io.Reader{"ReadFrom": onlyReader{bytes.NewReader(data)}, "Write": bytes.NewReader(data)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		id, err := b.UploadFromStream(t.Context(), "f", r)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 300<<20 {
			t.Errorf("%s: %d MiB were allocated", how, n>>20)
		}
		if got := download(t, b, id); !bytes.Equal(got, data) {
			t.Errorf("%s: other bytes came back", how)
		}
	}
	if _, err := b.UploadFromStream(t.Context(), "f", &endless{17 << 20}); err == nil || !strings.Contains(err.Error(), "16777216") {
		t.Errorf("more than a document can hold: %v", err)
	}
}

// endless is a reader of n bytes.
type endless struct{ n int64 }

func (r *endless) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	k := min(int64(len(p)), r.n)
	r.n -= k
	return int(k), nil
}

// TestConstantMemory moves a large file and looks at how much memory is live meanwhile.
func TestConstantMemory(t *testing.T) {
	norace.Skip(t, "it moves 128 MiB")
	if testing.Short() {
		t.Skip("moves 128 MiB")
	}
	w := start(t)
	b := gridfs.NewBucket(w.db)
	const size, known = 128 << 20, 8
	// The deployment forgets what it is given, so that only the driver's memory is seen, and makes
	// up what it is asked for.
	chunk := make([]byte, chunkSize)
	w.d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if coll, _ := c.Body.Lookup(c.Name).StringValue(); coll != "fs.chunks" {
			return nil, nil
		}
		switch c.Name {
		case "insert":
			return bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}})
		case "find":
			first, _ := c.Body.Lookup("filter", "n", "$gte").AsInt64()
			limit, _ := c.Body.Lookup("limit").AsInt64()
			batch := bson.A{}
			for n := first; n < first+limit && n < size/chunkSize; n++ {
				batch = append(batch, bson.D{{Key: "n", Value: n}, {Key: "data", Value: chunk}})
			}
			return bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "app.fs.chunks"}, {Key: "firstBatch", Value: batch}}}})
		}
		return nil, nil
	})
	var worst uint64
	live := func() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		worst = max(worst, m.HeapAlloc)
	}
	live()
	before := worst
	const whole = size / chunkSize * chunkSize
	probe := &probe{every: whole / known, look: live}
	id, err := b.UploadFromStream(t.Context(), "f", io.TeeReader(&endless{whole}, probe))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := b.DownloadToStream(t.Context(), id, probe); n != whole || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if used := worst - before; used > 96<<20 {
		t.Errorf("%d MiB were live", used>>20)
	}
}

// probe is a writer that looks at something from time to time.
type probe struct {
	n, every int
	look     func()
}

func (p *probe) Write(b []byte) (int, error) {
	if p.n/p.every != (p.n+len(b))/p.every {
		p.look()
	}
	p.n += len(b)
	return len(b), nil
}

func TestAbort(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	other := upload(t, b, "other", noise(3*chunkSize))
	s, err := b.OpenUploadStream(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(noise(35 * chunkSize)); err != nil {
		t.Fatal(err)
	}
	if err := s.Abort(); err != nil {
		t.Fatal(err)
	}
	if n := w.count("fs.chunks"); n != 3 {
		t.Errorf("%d chunks are left, want those of the other file, 3", n)
	}
	if got := download(t, b, other); !bytes.Equal(got, noise(3*chunkSize)) {
		t.Error("the other file is broken")
	}
	checkClosed(t, s)
	if n := w.count("fs.files"); n != 1 {
		t.Errorf("%d files", n)
	}
}

func checkClosed(t *testing.T, s *gridfs.UploadStream) {
	t.Helper()
	n, err := s.Write([]byte("x"))
	_, readErr := s.ReadFrom(strings.NewReader("x"))
	if n != 0 || !errors.Is(err, gridfs.ErrClosed) || !errors.Is(err, fs.ErrClosed) || !errors.Is(readErr, gridfs.ErrClosed) {
		t.Errorf("write to a closed stream: %d, %v, %v", n, err, readErr)
	}
	if err := s.Close(); !errors.Is(err, gridfs.ErrClosed) {
		t.Errorf("close of a closed stream: %v", err)
	}
	if err := s.Abort(); !errors.Is(err, gridfs.ErrClosed) {
		t.Errorf("abort of a closed stream: %v", err)
	}
}

func TestClosedStream(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	s, err := b.OpenUploadStream(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkClosed(t, s)
	if got := download(t, b, s.ID()); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

// TestAbortLeavesOthersChunks: an upload with the id of a file that is there fails, and aborting it
// does not touch that file.
func TestAbortLeavesOthersChunks(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 2})
	if err := b.UploadFromStreamWithID(t.Context(), "id", "f", strings.NewReader("abcdef")); err != nil {
		t.Fatal(err)
	}
	s, err := b.OpenUploadStreamWithID(t.Context(), "id", "f")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Write(make([]byte, 5000)) // more than one batch
	if err == nil {
		_, err = s.Write(make([]byte, 5000))
	}
	if !errors.Is(err, mongoerr.ErrDuplicateKey) {
		t.Errorf("write: %v", err)
	}
	if err := s.Abort(); err != nil {
		t.Errorf("abort: %v", err)
	}
	if got := download(t, b, "id"); string(got) != "abcdef" {
		t.Errorf("the file is %q now", got)
	}
	if n := w.count("fs.chunks"); n != 3 {
		t.Errorf("%d chunks, want 3", n)
	}
}

func TestSourceFails(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	broken := errors.New("disk on fire")
	for _, n := range []int{0, 100, 35 * chunkSize} {
		_, err := b.UploadFromStream(t.Context(), "f", io.MultiReader(bytes.NewReader(make([]byte, n)), iotest.ErrReader(broken)))
		if err != broken {
			t.Errorf("after %d bytes: %v", n, err)
		}
		if f, c := w.count("fs.files"), w.count("fs.chunks"); f != 0 || c != 0 {
			t.Errorf("after %d bytes: %d files, %d chunks are left", n, f, c)
		}
	}
	// A source that fails because the context ended, such as the body of a request, is cleaned up
	// after, too.
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.UploadFromStream(ctx, "f", io.MultiReader(bytes.NewReader(make([]byte, 20*chunkSize)), onlyReader{readFunc(func([]byte) (int, error) {
		waitFor(t, func() bool { return w.count("fs.chunks") > 0 })
		cancel()
		return 0, ctx.Err()
	})}))
	if err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	if c := w.count("fs.chunks"); c != 0 {
		t.Errorf("cancelled: %d chunks are left", c)
	}
	// If aborting fails, the source's error is still the one.
	w.d.FailCommand(t, mongotest.Fail{Commands: []string{"delete"}, Code: 13})
	if _, err := b.UploadFromStream(t.Context(), "f", iotest.ErrReader(broken)); err != broken {
		t.Errorf("abort fails, too: %v", err)
	}
	s, err := b.OpenUploadStream(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	var server *mongoerr.ServerError
	if err := s.Abort(); !errors.As(err, &server) {
		t.Errorf("abort that fails: %v", err)
	}
	checkClosed(t, s)
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for range 10000 {
		if cond() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("it does not happen")
}

// TestServerFails makes each of an upload's inserts fail: the error is raised, nothing is cleaned
// up, and there is no file.
func TestServerFails(t *testing.T) {
	for skip := range 4 {
		for _, how := range []string{"Write", "ReadFrom", "UploadFromStream"} {
			t.Run(fmt.Sprintf("insert %d, %s", skip, how), func(t *testing.T) {
				w := start(t)
				b := gridfs.NewBucket(w.db)
				var mu sync.Mutex
				inserts := 0
				w.watch(func(c *mongotest.Command) (bson.Raw, error) {
					mu.Lock()
					defer mu.Unlock()
					if c.Name == "insert" {
						if inserts++; inserts == skip+1 {
							return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 13}, {Key: "errmsg", Value: "no"}})
						}
					}
					return nil, nil
				})
				data := make([]byte, 40*chunkSize) // three batches and the file's document
				s, err := b.OpenUploadStream(t.Context(), "f")
				if err != nil {
					t.Fatal(err)
				}
				switch how {
				case "Write":
					for rest := data; len(rest) > 0 && err == nil; rest = rest[chunkSize:] {
						_, err = s.Write(rest[:chunkSize])
					}
				case "ReadFrom":
					_, err = s.ReadFrom(bytes.NewReader(data))
				default:
					_, err = b.UploadFromStream(t.Context(), "f", bytes.NewReader(data))
					s.Abort()
				}
				if closeErr := s.Close(); err == nil {
					err = closeErr
				} else if closeErr == nil {
					t.Error("Close succeeds after a write that failed")
				}
				var server *mongoerr.ServerError
				if !errors.As(err, &server) || server.Code != 13 {
					t.Errorf("got %v", err)
				}
				if n := w.count("fs.files"); n != 0 {
					t.Error("there is a file")
				}
				if got := w.names(); how != "UploadFromStream" && strings.Contains(got, "delete") {
					t.Errorf("chunks were deleted: %s", got)
				}
			})
		}
	}
}

// TestFailoverInUpload: inserts are retried, so that an upload goes on across a failover and lost
// connections. With a timeout they are retried until it is over. Without one they are retried
// once, which does not suffice for a primary that steps down: its first answer is still that of
// a primary.
func TestFailoverInUpload(t *testing.T) {
	for what, fault := range map[string]func(d *mongotest.Deployment){
		"step down":        (*mongotest.Deployment).StepDown,
		"lost connections": func(d *mongotest.Deployment) { d.Primary().CloseConnections() },
		"dead primary":     func(d *mongotest.Deployment) { d.Primary().Kill() },
	} {
		t.Run(what, func(t *testing.T) {
			w := start(t, testdeploy.ReplicaSet(3))
			mock := w.d.Mock(t, "faults of the network and of members")
			timeout := time.Minute
			b := gridfs.NewBucket(w.db, gridfs.BucketOptions{Timeout: &timeout})
			data := noise(30 * chunkSize)
			pr, pw := io.Pipe()
			go func() {
				for i, rest := 0, data; len(rest) > 0; i, rest = i+1, rest[chunkSize:] {
					pw.Write(rest[:chunkSize])
					if i == 15 {
						fault(mock)
					}
				}
				pw.Close()
			}()
			id, err := b.UploadFromStream(t.Context(), "f", pr)
			if err != nil {
				t.Fatal(err)
			}
			if got := download(t, b, id); !bytes.Equal(got, data) {
				t.Error("other bytes came back")
			}
		})
	}
}

func TestUploadIsCancelled(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := b.OpenUploadStream(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, 20*chunkSize)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	s, err = b.OpenUploadStream(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Abort(); err != nil { // runs all the same
		t.Errorf("abort: %v", err)
	}
}

// TestUploadInSession: nothing runs in the background, since a session runs one operation at a
// time.
func TestUploadInSession(t *testing.T) {
	w := start(t, testdeploy.ReplicaSet(1))
	b := gridfs.NewBucket(w.db)
	sess, err := w.client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer sess.End(t.Context())
	ctx := allium.WithSession(t.Context(), sess)
	data := noise(35 * chunkSize)
	s, err := b.OpenUploadStream(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	for rest := data; len(rest) > 0; rest = rest[chunkSize:] {
		if _, err := s.Write(rest[:chunkSize]); err != nil {
			t.Fatal(err)
		}
		if _, err := w.db.Collection("x").CountDocuments(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := b.OpenDownloadStream(ctx, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, len(data))
	for rest := got; len(rest) > 0; rest = rest[chunkSize:] {
		if _, err := io.ReadFull(r, rest[:chunkSize]); err != nil {
			t.Fatal(err)
		}
		if _, err := w.db.Collection("x").CountDocuments(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, data) {
		t.Error("other bytes came back")
	}
	lsid := sess.ID()
	for _, c := range w.commands() {
		if got, _ := c.body.Lookup("lsid").Document(); !bson.Equal(got, lsid) {
			t.Errorf("%v is not in the session", c)
		}
	}
}

func TestTransaction(t *testing.T) {
	w := start(t, testdeploy.ReplicaSet(1))
	b := gridfs.NewBucket(w.db)
	broken := errors.New("no")
	for i, fail := range []error{broken, nil} {
		err := w.client.Transact(t.Context(), func(ctx context.Context) error {
			id, err := b.UploadFromStream(ctx, "f", bytes.NewReader(noise(20*chunkSize)))
			if err != nil {
				return err
			}
			var buf bytes.Buffer
			if _, err := b.DownloadToStream(ctx, id, &buf); err != nil || !bytes.Equal(buf.Bytes(), noise(20*chunkSize)) {
				return fmt.Errorf("within the transaction: %d bytes, %w", buf.Len(), err)
			}
			return fail
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
		if f, c := w.count("fs.files"), w.count("fs.chunks"); f != i || c != 20*i {
			t.Errorf("%v: %d files, %d chunks", fail, f, c)
		}
	}
}

func TestUnacknowledged(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{WriteConcern: consistency.Unacknowledged()})
	gridfsIndexes := gridfs.NewBucket(w.db)
	upload(t, gridfsIndexes, "first", nil)
	id := upload(t, b, "f", noise(35*chunkSize))
	waitFor(t, func() bool { return w.count("fs.files") == 2 })
	waitFor(t, func() bool { return w.count("fs.chunks") == 35 })
	if got := download(t, b, id); !bytes.Equal(got, noise(35*chunkSize)) {
		t.Error("other bytes came back")
	}
	for what, err := range map[string]error{"rename": b.Rename(t.Context(), "no", "x"), "rename by name": b.RenameByName(t.Context(), "no", "x"), "delete": b.Delete(t.Context(), "no")} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestConcurrentUploadsAndDownloads(t *testing.T) {
	w := start(t, testdeploy.ReplicaSet(1))
	b := gridfs.NewBucket(w.db)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			data := noise(i*7*chunkSize/3 + i)
			id := upload(t, b, "f", data)
			var readers sync.WaitGroup
			for range 3 {
				readers.Go(func() {
					if got := download(t, b, id); !bytes.Equal(got, data) {
						t.Errorf("file %d: other bytes came back", i)
					}
				})
			}
			readers.Wait()
		})
	}
	wg.Wait()
}
