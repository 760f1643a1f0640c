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

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/gridfs"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

func openDownload(t *testing.T, b *gridfs.Bucket, id any) *gridfs.DownloadStream {
	t.Helper()
	s, err := b.OpenDownloadStream(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestCorruptFiles breaks a file of seven chunks, which need two queries, in every way, and reads
// it in every way.
func TestCorruptFiles(t *testing.T) {
	const size = 300_000
	data := noise(6*size + 100)
	set := func(n int, data any) func(c *allium.UntypedCollection) error {
		return func(c *allium.UntypedCollection) error {
			_, err := c.UpdateOne(t.Context(), bson.D{{Key: "n", Value: n}}, bson.D{{Key: "$set", Value: bson.D{{Key: "data", Value: data}}}})
			return err
		}
	}
	remove := func(n int) func(c *allium.UntypedCollection) error {
		return func(c *allium.UntypedCollection) error {
			_, err := c.DeleteOne(t.Context(), bson.D{{Key: "n", Value: n}})
			return err
		}
	}
	insert := func(n, length int) func(c *allium.UntypedCollection) error {
		return func(c *allium.UntypedCollection) error {
			if err := c.DropIndexes(t.Context()); err != nil {
				return err
			}
			_, err := c.InsertOne(t.Context(), bson.D{{Key: "files_id", Value: "id"}, {Key: "n", Value: n}, {Key: "data", Value: make([]byte, length)}})
			return err
		}
	}
	for what, test := range map[string]struct {
		corrupt func(c *allium.UntypedCollection) error
		chunk   int64
		reason  string
		end     bool // ReadAt does not look so far
	}{
		"the first is missing":         {remove(0), 0, "missing", false},
		"one in the middle is missing": {remove(2), 2, "missing", false},
		"the last is missing":          {remove(6), 6, "missing", false},
		"one is short":                 {set(1, make([]byte, size-1)), 1, "bytes", false},
		"one is long":                  {set(3, make([]byte, size+1)), 3, "bytes", false},
		"one is empty":                 {set(4, []byte{}), 4, "bytes", false},
		"the last is short":            {set(6, make([]byte, 99)), 6, "bytes", false},
		"the last is long":             {set(6, make([]byte, 101)), 6, "bytes", false},
		"one is no binary":             {set(2, "text"), 2, "string", false},
		"one has no data": {func(c *allium.UntypedCollection) error {
			_, err := c.UpdateOne(t.Context(), bson.D{{Key: "n", Value: 5}}, bson.D{{Key: "$unset", Value: bson.D{{Key: "data", Value: 1}}}})
			return err
		}, 5, "no data", false},
		"one is there twice":                {insert(1, size), 2, "twice", false},
		"the last is there twice":           {insert(6, 100), 6, "too many", true},
		"the last is there twice, as empty": {insert(6, 0), 6, "", true},
		"there is one too many":             {insert(7, 1), 7, "too many", true},
		"there is one far behind":           {insert(70, 1), 70, "too many", true},
		"one has a negative number":         {insert(-1, size), 0, "twice", false},
	} {
		t.Run(what, func(t *testing.T) {
			w := start(t)
			b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: size})
			if err := b.UploadFromStreamWithID(t.Context(), "id", "f", bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			if err := test.corrupt(w.db.Collection("fs.chunks")); err != nil {
				t.Fatal(err)
			}
			check := func(how string, err error) {
				t.Helper()
				var corrupt *gridfs.CorruptError
				if !errors.As(err, &corrupt) || corrupt.Chunk != test.chunk || !strings.Contains(corrupt.Reason, test.reason) {
					t.Errorf("%s: %v", how, err)
				}
			}
			_, err := b.DownloadToStream(t.Context(), "id", io.Discard)
			check("DownloadToStream", err)
			_, err = io.ReadAll(openDownload(t, b, "id"))
			check("Read", err)
			if !test.end {
				_, err = openDownload(t, b, "id").ReadAt(make([]byte, len(data)), 0)
				check("ReadAt", err)
			}
		})
	}
}

// TestExtraEmptyChunk: some drivers stored an empty chunk behind the last one.
func TestExtraEmptyChunk(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 4})
	id := upload(t, b, "f", []byte("12345678"))
	if _, err := w.db.Collection("fs.chunks").InsertOne(t.Context(), bson.D{{Key: "files_id", Value: id}, {Key: "n", Value: 2}, {Key: "data", Value: []byte{}}}); err != nil {
		t.Fatal(err)
	}
	if got := download(t, b, id); string(got) != "12345678" {
		t.Errorf("got %q", got)
	}
}

func TestEmptyFileIsNotAskedFor(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	id := upload(t, b, "f", nil)
	w.forget()
	download(t, b, id)
	s := openDownload(t, b, id)
	if n, err := s.Read(make([]byte, 5)); n != 0 || err != io.EOF {
		t.Errorf("read: %d, %v", n, err)
	}
	if n, err := s.ReadAt(make([]byte, 5), 0); n != 0 || err != io.EOF {
		t.Errorf("read at: %d, %v", n, err)
	}
	if got, want := w.names(), "find fs.files, find fs.files"; got != want {
		t.Errorf("commands: %s, want %s", got, want)
	}
}

func TestClosedDownload(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	s := openDownload(t, b, upload(t, b, "f", noise(30*chunkSize)))
	if _, err := io.CopyN(io.Discard, s, 3*chunkSize); err != nil { // something is under way now
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, readErr := s.Read(make([]byte, 1))
	_, atErr := s.ReadAt(make([]byte, 1), 0)
	_, toErr := s.WriteTo(io.Discard)
	_, seekErr := s.Seek(0, 0)
	for what, err := range map[string]error{"Read": readErr, "ReadAt": atErr, "WriteTo": toErr, "Seek": seekErr, "Close": s.Close()} {
		if !errors.Is(err, gridfs.ErrClosed) || !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWriterFails(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	id := upload(t, b, "f", noise(30*chunkSize))
	full := errors.New("full")
	n, err := b.DownloadToStream(t.Context(), id, &brokenWriter{left: 20*chunkSize + 5, err: full})
	if n != 20*chunkSize+5 || err != full {
		t.Errorf("got %d, %v", n, err)
	}
	n, err = b.DownloadToStream(t.Context(), id, &brokenWriter{left: 5})
	if n != 5 || err != io.ErrShortWrite {
		t.Errorf("got %d, %v", n, err)
	}
}

type brokenWriter struct {
	left int
	err  error
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return len(p), nil
	}
	return w.left, w.err
}

// windows returns the first chunk and the number of chunks of every query for chunks.
func (w *world) windows() string {
	var all [][2]int64
	for _, c := range w.commands() {
		if c.name == "find" && c.collection == "fs.chunks" {
			first, _ := c.body.Lookup("filter", "n", "$gte").AsInt64()
			limit, _ := c.body.Lookup("limit").AsInt64()
			all = append(all, [2]int64{first, limit})
		}
	}
	slices.SortFunc(all, func(a, b [2]int64) int { return int(a[0] - b[0]) }) // those in the background come in any order
	var text []string
	for _, f := range all {
		text = append(text, fmt.Sprintf("%d+%d", f[0], f[1]))
	}
	return strings.Join(text, " ")
}

// TestWindows looks at what is asked for. A window has 4 chunks, and a small file 8.
func TestWindows(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	small, large := upload(t, b, "f", make([]byte, 8*chunkSize)), upload(t, b, "f", make([]byte, 50*chunkSize))
	buf := make([]byte, 100)
	for _, test := range []struct {
		what string
		id   any
		do   func(s *gridfs.DownloadStream) error
		want string
	}{
		{"nothing", large, func(s *gridfs.DownloadStream) error { return nil }, ""},
		{"all of a small file", small, func(s *gridfs.DownloadStream) error { _, err := io.ReadAll(s); return err }, "0+9"},
		{"all of a large file", large, func(s *gridfs.DownloadStream) error { _, err := s.WriteTo(io.Discard); return err }, "0+4 4+4 8+4 12+4 16+4 20+4 24+4 28+4 32+4 36+4 40+4 44+4 48+3"},
		{"a large file in pieces", large, func(s *gridfs.DownloadStream) error {
			_, err := io.Copy(struct{ io.Writer }{io.Discard}, onlyReader{s})
			return err
		}, "0+2 2+4 6+4 10+4 14+4 18+4 22+4 26+4 30+4 34+4 38+4 42+4 46+5"},
		{"the beginning", large, func(s *gridfs.DownloadStream) error { _, err := s.Read(buf); return err }, "0+2"},
		{"a look at the beginning, then the end", large, func(s *gridfs.DownloadStream) error {
			s.Read(buf)
			s.Seek(-50, io.SeekEnd)
			_, err := io.ReadAll(s)
			return err
		}, "0+2 49+2"},
		{"a part in the middle", large, func(s *gridfs.DownloadStream) error {
			s.Seek(10*chunkSize-50, io.SeekStart)
			_, err := io.ReadFull(s, buf)
			return err
		}, "9+1 10+2"},
		{"back and forth in a window", large, func(s *gridfs.DownloadStream) error {
			s.Read(buf)
			s.Seek(0, io.SeekStart)
			s.Read(buf)
			s.Seek(chunkSize, io.SeekStart)
			_, err := s.Read(buf)
			return err
		}, "0+2 2+4 6+4"},
		{"ReadAt", large, func(s *gridfs.DownloadStream) error {
			_, err := s.ReadAt(make([]byte, 3*chunkSize), 7*chunkSize+1)
			return err
		}, "7+4"},
		{"large ReadAt", large, func(s *gridfs.DownloadStream) error {
			_, err := s.ReadAt(make([]byte, 30*chunkSize), chunkSize)
			return err
		}, "1+4 5+4 9+4 13+4 17+4 21+4 25+4 29+2"},
	} {
		w.forget()
		s := openDownload(t, b, test.id)
		if err := test.do(s); err != nil {
			t.Errorf("%s: %v", test.what, err)
		}
		waitFor(t, func() bool { return len(w.windows()) >= len(test.want) }) // the last one may be under way in the background
		s.Close()
		if got := w.windows(); got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
		for _, c := range w.commands() {
			if c.name != "find" {
				t.Errorf("%s: %v", test.what, c)
			}
		}
	}
	w.forget()
	download(t, b, small)
	if filter := w.commands()[1].body.Lookup("filter"); len(keys(bson.Raw(filter.Value))) != 1 {
		t.Errorf("the filter of a file's only query is %v", filter)
	}
}

// TestRandomReads compares reads, seeks and the like at random with those of a bytes.Reader.
func TestRandomReads(t *testing.T) {
	w := start(t)
	ops := 60
	if norace.Detecting { // which makes each copy of a megabyte dear
		ops = 10
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		chunk := []int{1, 7, 1000, 300_000, 1 << 20}[seed%5]
		length := r.IntN(min(30*chunk, 6<<20) + 1)
		if r.IntN(4) == 0 {
			length = length / chunk * chunk
		}
		data := noise(length)
		b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: int32(chunk)})
		s := openDownload(t, b, upload(t, b, "f", data))
		compareReads(t, fmt.Sprintf("seed %d, %d bytes in chunks of %d", seed, length, chunk), r, s, data, ops)
		s.Close()
	}
}

type reader interface {
	io.ReadSeeker
	io.ReaderAt
	io.WriterTo
}

func compareReads(t *testing.T, what string, r *rand.Rand, s reader, data []byte, ops int) {
	t.Helper()
	model := bytes.NewReader(data)
	var log []string
	for range ops {
		var got, want []byte
		var gotErr, wantErr error
		switch op := r.IntN(10); {
		case op < 5:
			n := r.IntN(len(data)/4 + 5)
			log = append(log, fmt.Sprint("read ", n))
			got, want = make([]byte, n), make([]byte, n)
			k, err := io.ReadFull(s, got)
			got, gotErr = got[:k], err
			k, err = io.ReadFull(model, want)
			want, wantErr = want[:k], err
		case op < 8:
			whence := r.IntN(3)
			off := int64(r.IntN(len(data) + 10))
			if whence != io.SeekStart {
				off -= int64(len(data))
			}
			log = append(log, fmt.Sprintf("seek %d %d", off, whence))
			var p, q int64
			p, gotErr = s.Seek(off, whence)
			q, wantErr = model.Seek(off, whence)
			got, want = fmt.Append(nil, p), fmt.Append(nil, q)
			if (gotErr == nil) == (wantErr == nil) {
				gotErr, wantErr = nil, nil
			}
		case op < 9:
			n, off := r.IntN(len(data)/2+5), int64(r.IntN(len(data)+5))
			log = append(log, fmt.Sprintf("read at %d %d", off, n))
			got, want = make([]byte, n), make([]byte, n)
			k, err := s.ReadAt(got, off)
			got, gotErr = got[:k], err
			k, err = model.ReadAt(want, off)
			want, wantErr = want[:k], err
			if n == 0 { // either may say io.EOF or not
				gotErr, wantErr = nil, nil
			}
		default:
			log = append(log, "write to")
			var a, b bytes.Buffer
			_, gotErr = s.WriteTo(&a)
			_, wantErr = model.WriteTo(&b)
			got, want = a.Bytes(), b.Bytes()
		}
		if !bytes.Equal(got, want) || gotErr != wantErr {
			t.Fatalf("%s: after %s: %d bytes and %v, want %d and %v", what, strings.Join(log, ", "), len(got), gotErr, len(want), wantErr)
		}
	}
}

// TestReadAtConcurrently reads one stream with several goroutines while it is also read in
// sequence.
func TestReadAtConcurrently(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	data := noise(40 * chunkSize)
	s := openDownload(t, b, upload(t, b, "f", data))
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			for range 10 {
				off, p := r.IntN(len(data)), make([]byte, r.IntN(3*chunkSize))
				n, err := s.ReadAt(p, int64(off))
				if want := data[off:min(off+len(p), len(data))]; !bytes.Equal(p[:n], want) || err != nil && (err != io.EOF || n == len(p)) {
					t.Errorf("read at %d: %d bytes, %v", off, n, err)
				}
			}
		})
	}
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read: %v", err)
	}
	wg.Wait()
}

// TestFailoverInDownload: every query is retried, so that a download goes on across failovers.
func TestFailoverInDownload(t *testing.T) {
	for what, fault := range map[string]func(d *mongotest.Deployment){
		"step down":        (*mongotest.Deployment).StepDown,
		"lost connections": func(d *mongotest.Deployment) { d.Primary().CloseConnections() },
		"dead primary":     func(d *mongotest.Deployment) { d.Primary().Kill() },
		"cut reply": func(d *mongotest.Deployment) {
			d.Primary().SetNetFaults(mongotest.NetFaults{DropAfter: 1 << 20, Times: 1})
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := start(t, testdeploy.ReplicaSet(3))
			mock := w.d.Mock(t, "faults of the network and of members")
			b := gridfs.NewBucket(w.db, gridfs.BucketOptions{WriteConcern: consistency.Majority()})
			data := noise(40 * chunkSize)
			s := openDownload(t, b, upload(t, b, "f", data))
			got := make([]byte, 0, len(data))
			for i := 0; ; i++ {
				p := make([]byte, chunkSize)
				n, err := io.ReadFull(s, p)
				got = append(got, p[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if i == 20 {
					fault(mock)
				}
			}
			if !bytes.Equal(got, data) {
				t.Error("other bytes came back")
			}
		})
	}
}

// TestReadAgainAfterAnError: an error is not the end of a stream.
func TestReadAgainAfterAnError(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	data := noise(40 * chunkSize)
	s := openDownload(t, b, upload(t, b, "f", data))
	r := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	w.watch(func(c *mongotest.Command) (bson.Raw, error) {
		mu.Lock()
		defer mu.Unlock()
		if c.Name == "find" && r.IntN(2) == 0 {
			return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 13}, {Key: "errmsg", Value: "no"}})
		}
		return nil, nil
	})
	var got []byte
	failures := 0
	for p := make([]byte, 10_000); ; {
		n, err := s.Read(p)
		got = append(got, p[:n]...)
		if err == io.EOF {
			break
		}
		var server *mongoerr.ServerError
		if err != nil {
			failures++
			if !errors.As(err, &server) || failures > 1000 {
				t.Fatal(err)
			}
		}
	}
	if !bytes.Equal(got, data) || failures == 0 {
		t.Errorf("%d of %d bytes, %d failures", len(got), len(data), failures)
	}
}

func TestDownloadIsCancelled(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	id := upload(t, b, "f", make([]byte, 40*chunkSize))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := b.OpenDownloadStream(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, s, 2*chunkSize); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = io.ReadAll(s)
	var timeout *mongoerr.TimeoutError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &timeout) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFileIsDeletedMeanwhile: the reader notices.
func TestFileIsDeletedMeanwhile(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	id := upload(t, b, "f", make([]byte, 40*chunkSize))
	s := openDownload(t, b, id)
	if _, err := s.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadAll(s)
	var corrupt *gridfs.CorruptError
	if !errors.As(err, &corrupt) {
		t.Errorf("got %v", err)
	}
}

// TestTopologies moves a file on every kind of deployment.
func TestTopologies(t *testing.T) {
	ops := 60
	if norace.Detecting {
		ops = 10
	}
	for name, o := range map[string]testdeploy.Kind{"standalone": testdeploy.Standalone, "replica set": testdeploy.ReplicaSet(3), "sharded": testdeploy.Sharded(2, 2), "load balanced": testdeploy.LoadBalanced(2)} {
		if norace.Detecting && name != "replica set" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := start(t, o)
			b := gridfs.NewBucket(w.db)
			data := noise(45*chunkSize + 1)
			id := upload(t, b, "f", data)
			if got := download(t, b, id); !bytes.Equal(got, data) {
				t.Error("other bytes came back")
			}
			compareReads(t, name, rand.New(rand.NewPCG(1, 1)), openDownload(t, b, id), data, ops)
			if err := b.DeleteByName(t.Context(), "f"); err != nil {
				t.Error(err)
			}
		})
	}
}
