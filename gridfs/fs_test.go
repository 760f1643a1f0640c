package gridfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"allium/bson"
	"allium/gridfs"
)

func TestFS(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 100})
	files := map[string]int{"a.txt": 250, "empty": 0, "dir/one": 100, "dir/two": 1, "dir/sub/deep/x": 99, "dir-file": 5, "dir0": 5, "dirs/y": 3, "ünïcode/ß": 4, "z": 1000, "with space/and*star": 2}
	for name, n := range files {
		upload(t, b, name, noise(n))
	}
	for _, name := range []string{"", "/absolute", "a//b", "dir/../up", "dir/", ".", "..", "only//invalid"} { // these are no paths
		upload(t, b, name, []byte("x"))
	}
	fsys := b.FS(t.Context())
	var names []string
	for name := range files {
		names = append(names, name)
	}
	if err := fstest.TestFS(fsys, names...); err != nil {
		t.Error(err)
	}
	for name, n := range files {
		if got, err := fs.ReadFile(fsys, name); err != nil || !bytes.Equal(got, noise(n)) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		f, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := iotest.TestReader(f, noise(n)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		info, err := f.Stat()
		if err != nil || info.Size() != int64(n) || time.Since(info.ModTime()) > time.Hour || info.Sys().(*gridfs.File).Name != name {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		f.Close()
	}
	var listed []string
	for _, e := range must(fs.ReadDir(fsys, ".")) {
		listed = append(listed, e.Name())
	}
	if want := []string{"a.txt", "dir", "dir-file", "dir0", "dirs", "empty", "with space", "z", "ünïcode"}; !slices.Equal(listed, want) {
		t.Errorf("root: %q, want %q", listed, want)
	}
	for _, name := range []string{"nothing", "di", "dir/o", "dir/one/x", "only"} {
		_, openErr := fsys.Open(name)
		_, statErr := fs.Stat(fsys, name)
		_, dirErr := fs.ReadDir(fsys, name)
		for what, err := range map[string]error{"open": openErr, "stat": statErr, "read dir": dirErr} {
			var pathErr *fs.PathError
			if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &pathErr) || pathErr.Path != name {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
	if _, err := fs.ReadDir(fsys, "a.txt"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read dir of a file: %v", err)
	}
	for _, name := range []string{"/absolute", "a//b", "", "dir/../up"} {
		if _, err := fsys.Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("open %q: %v", name, err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestFSNewestRevision(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	for i := range 3 {
		upload(t, b, "d/f", make([]byte, i))
		setDate(t, w, "d/f", 1000*i)
	}
	fsys := b.FS(t.Context())
	entries := must(fs.ReadDir(fsys, "d"))
	if len(entries) != 1 || must(entries[0].Info()).Size() != 2 || must(fs.Stat(fsys, "d/f")).Size() != 2 {
		t.Errorf("entries: %v", entries)
	}
}

func TestFSFileAndDirectory(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	for _, name := range []string{"a", "a-b", "a/b"} {
		upload(t, b, name, []byte(name))
	}
	fsys := b.FS(t.Context())
	if err := fstest.TestFS(fsys, "a", "a-b"); err != nil {
		t.Error(err)
	}
	if got := must(fs.ReadFile(fsys, "a/b")); string(got) != "a/b" {
		t.Errorf("a/b: %q", got)
	}
}

// TestFSManyFiles: a directory with many files below it is passed over.
func TestFSManyFiles(t *testing.T) {
	w := start(t)
	var docs []bson.D
	for _, dir := range []string{"a", "big", "c"} {
		for i := range map[string]int{"a": 3, "big": 3000, "c": 700}[dir] {
			docs = append(docs, bson.D{{Key: "filename", Value: fmt.Sprintf("top/%s/%05d", dir, i)}, {Key: "length", Value: 0}, {Key: "chunkSize", Value: 1}, {Key: "uploadDate", Value: bson.DateTime(0)}})
		}
	}
	docs = append(docs, bson.D{{Key: "filename", Value: "top/zz"}, {Key: "length", Value: 0}, {Key: "chunkSize", Value: 1}, {Key: "uploadDate", Value: bson.DateTime(0)}})
	if _, err := w.db.Collection("fs.files").InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	fsys := gridfs.NewBucket(w.db).FS(t.Context())
	w.forget()
	var names []string
	for _, e := range must(fs.ReadDir(fsys, "top")) {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "a big c zz" {
		t.Errorf("top has %s", got)
	}
	if n := strings.Count(w.names(), "getMore"); n > 3 {
		t.Errorf("%d batches more: %s", n, w.names())
	}
	if n := len(must(fs.ReadDir(fsys, "top/big"))); n != 3000 {
		t.Errorf("top/big has %d entries", n)
	}
}

// TestHTTP serves a bucket and asks for ranges.
func TestHTTP(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	data := noise(30*chunkSize + 11)
	upload(t, b, "dir/movie", data)
	upload(t, b, "index.html", []byte("<p>hello"))
	srv := httptest.NewServer(http.FileServerFS(b.FS(t.Context())))
	defer srv.Close()
	get := func(path, header, value string) (*http.Response, []byte) {
		t.Helper()
		req := must(http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil))
		if header != "" {
			req.Header.Set(header, value)
		}
		res := must(srv.Client().Do(req))
		defer res.Body.Close()
		return res, must(io.ReadAll(res.Body))
	}
	defer srv.Client().CloseIdleConnections()
	res, body := get("/dir/movie", "", "")
	if res.StatusCode != 200 || !bytes.Equal(body, data) || res.Header.Get("Accept-Ranges") != "bytes" {
		t.Errorf("whole: %v, %d bytes", res.Status, len(body))
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		from := r.IntN(len(data))
		to := from + r.IntN(len(data)-from)
		res, body := get("/dir/movie", "Range", fmt.Sprintf("bytes=%d-%d", from, to))
		if res.StatusCode != 206 || !bytes.Equal(body, data[from:to+1]) || res.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)) {
			t.Errorf("%d to %d: %v, %d bytes", from, to, res.Status, len(body))
		}
	}
	if res, body := get("/dir/movie", "Range", "bytes=-7"); res.StatusCode != 206 || !bytes.Equal(body, data[len(data)-7:]) {
		t.Errorf("the last 7: %v, %q", res.Status, body)
	}
	if res, _ := get("/dir/movie", "Range", "bytes=99999999-"); res.StatusCode != 416 {
		t.Errorf("behind the end: %v", res.Status)
	}
	if res, _ := get("/dir/movie", "If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); res.StatusCode != 304 {
		t.Errorf("not modified: %v", res.Status)
	}
	if res, body := get("/", "", ""); res.StatusCode != 200 || string(body) != "<p>hello" {
		t.Errorf("index: %v, %q", res.Status, body)
	}
	if res, body := get("/dir/", "", ""); res.StatusCode != 200 || !strings.Contains(string(body), `href="movie"`) {
		t.Errorf("directory: %v, %q", res.Status, body)
	}
	if res, _ := get("/nothing", "", ""); res.StatusCode != 404 {
		t.Errorf("nothing: %v", res.Status)
	}
}

// What is closed says so, and directories and positions that cannot be are errors.
func TestFSMisuse(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	id := upload(t, b, "dir/f", noise(10))
	files := b.FS(t.Context())
	dir, err := files.Open("dir")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("reading a directory: %v", err)
	}
	if info, err := dir.Stat(); err != nil || !info.IsDir() || info.Sys() != nil || !strings.Contains(fmt.Sprint(info), "dir/") {
		t.Errorf("the directory is %v (%v)", info, err)
	}
	file, err := files.Open("dir/f")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || !strings.Contains(fmt.Sprint(info), "10") {
		t.Errorf("the file is %v (%v)", info, err)
	}
	for _, f := range []fs.File{dir, file} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.Stat(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Stat after Close: %v", err)
		}
		if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Close after Close: %v", err)
		}
	}
	if _, err := dir.(fs.ReadDirFile).ReadDir(-1); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("ReadDir after Close: %v", err)
	}
	s := openDownload(t, b, id)
	defer s.Close()
	if _, err := s.Seek(0, 3); err == nil {
		t.Error("a whence that does not exist was accepted")
	}
	if _, err := s.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative position was accepted")
	}
}

// A reader that never gets on is given up, and nothing of the file stays.
func TestReaderWithoutProgress(t *testing.T) {
	w := start(t)
	b := gridfs.NewBucket(w.db)
	_, err := b.UploadFromStream(t.Context(), "f", readFunc(func([]byte) (int, error) { return 0, nil }))
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
	if _, err := b.OpenDownloadStreamByName(t.Context(), "f"); !errors.Is(err, gridfs.ErrFileNotFound) {
		t.Errorf("the file: %v", err)
	}
}
