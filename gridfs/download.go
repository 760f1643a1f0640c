package gridfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"allium"
	"allium/internal/option"
)

// DownloadOptions are the options of a download.
type DownloadOptions struct {
	// Timeout bounds the download from the call to its end, or to Close; a pointer to 0 means no
	// limit.
	Timeout *time.Duration
}

// DownloadByNameOptions are the options of a download by name.
type DownloadByNameOptions struct {
	// Revision selects one of the files with the name: 0 is the oldest, 1 the second oldest, and so
	// on; -1 is the newest, -2 the one before, and so on. Nil: -1.
	Revision *int
	// Timeout bounds the download from the call to its end, or to Close; a pointer to 0 means no
	// limit.
	Timeout *time.Duration
}

// DownloadToStream writes a file to w and returns how many bytes it wrote. It does not close w, and
// Timeout does not interrupt a Write.
func (b *Bucket) DownloadToStream(ctx context.Context, id any, w io.Writer, opts ...DownloadOptions) (int64, error) {
	s, err := b.OpenDownloadStream(ctx, id, opts...)
	return download(s, err, w)
}

// DownloadToStreamByName writes a revision of a file to w and returns how many bytes it wrote. It
// does not close w, and Timeout does not interrupt a Write.
func (b *Bucket) DownloadToStreamByName(ctx context.Context, filename string, w io.Writer,
	opts ...DownloadByNameOptions) (int64, error) {
	s, err := b.OpenDownloadStreamByName(ctx, filename, opts...)
	return download(s, err, w)
}

func download(s *DownloadStream, err error, w io.Writer) (int64, error) {
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.WriteTo(w)
}

// OpenDownloadStream opens a file for reading. If no file has the id, the error is ErrFileNotFound.
func (b *Bucket) OpenDownloadStream(ctx context.Context, id any, opts ...DownloadOptions) (*DownloadStream, error) {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	var f *storedFile
	if err == nil {
		v, idErr := b.encodeID(ctx, id)
		if err = idErr; err == nil {
			f, err = b.fileByID(ctx, l, v)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("download %v: %w", id, err)
	}
	return b.newDownload(ctx, l, f), nil
}

// OpenDownloadStreamByName opens a revision of a file for reading. If no file has the name, the
// error is ErrFileNotFound, and if it has no such revision, ErrRevisionNotFound.
func (b *Bucket) OpenDownloadStreamByName(ctx context.Context, filename string,
	opts ...DownloadByNameOptions) (*DownloadStream, error) {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	revision := -1
	if o.Revision != nil {
		revision = *o.Revision
	}
	var f *storedFile
	if err == nil {
		f, err = b.fileByName(ctx, l, filename, revision)
	}
	switch {
	case errors.Is(err, ErrRevisionNotFound):
		return nil, fmt.Errorf("download %q, revision %d: %w", filename, revision, err)
	case err != nil:
		return nil, fmt.Errorf("download %q: %w", filename, err)
	}
	return b.newDownload(ctx, l, f), nil
}

func (b *Bucket) newDownload(ctx context.Context, l limit, f *storedFile) *DownloadStream {
	return &DownloadStream{bucket: b, ctx: ctx, limit: l, file: f, held: -1, run: -1, size: firstWindow(f),
		background: allium.SessionFrom(ctx) == nil}
}

// A DownloadStream is a stored file that is open for reading. It holds no resources on the server.
// It is not safe for concurrent use, except for ReadAt, which may be called at any time until
// Close.
//
// After an error, Read may be called again.
type DownloadStream struct {
	bucket     *Bucket
	ctx        context.Context // that the stream was opened with: io.Reader has no room for one
	limit      limit
	file       *storedFile
	background bool // chunks may be fetched while the caller goes on

	pos  int64  // where the next Read begins
	held int64  // the index of the chunk that data is, -1: none
	data []byte // a view of the window's memory

	window *window
	ahead  []*fetch // the windows behind it
	// where reading in sequence began: the chunk, or before the first one for a stream that begins
	// with that
	run    int64
	behind int64 // the chunk behind the last window
	size   int64 // how many chunks the next window has
	closed atomic.Bool
}

// File returns the file's description.
func (s *DownloadStream) File() *File { return &s.file.File }

// sequential is how many chunks behind the one that reading began with make it likely that the next
// ones will be read, too.
const sequential = 2

// maxAhead is how many windows are fetched ahead at most: while one arrives, the next one has been
// asked for already.
const maxAhead = 2

// firstWindow returns how many chunks are fetched first: all of a file that is not large, and else
// a part, since it may be that only the beginning of the file is of interest.
func firstWindow(f *storedFile) int64 {
	if f.chunks == 0 {
		return 1
	}
	if small := chunksOf(batchBytes, f.ChunkSize); f.chunks <= small {
		return small
	}
	return max(chunksOf(windowBytes, f.ChunkSize)/2, 1)
}

// Read reads the next bytes of the file (see io.Reader).
func (s *DownloadStream) Read(p []byte) (int, error) {
	if s.closed.Load() {
		return 0, ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	data, err := s.rest()
	if err != nil {
		return 0, err
	}
	n := copy(p, data)
	s.pos += int64(n)
	return n, nil
}

// WriteTo writes the rest of the file to w (see io.WriterTo).
func (s *DownloadStream) WriteTo(w io.Writer) (int64, error) {
	if s.closed.Load() {
		return 0, ErrClosed
	}
	s.size = max(s.size, s.most())
	s.run = -sequential // everything will be read
	var total int64
	for {
		data, err := s.rest()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n, err := w.Write(data)
		total += int64(n)
		s.pos += int64(n)
		if err == nil && n < len(data) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return total, err
		}
	}
}

// Seek sets where the next Read begins (see io.Seeker). It does no I/O.
func (s *DownloadStream) Seek(offset int64, whence int) (int64, error) {
	if s.closed.Load() {
		return 0, ErrClosed
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += s.pos
	case io.SeekEnd:
		offset += s.file.Length
	default:
		return 0, fmt.Errorf("seek: invalid whence %d", whence)
	}
	if offset < 0 {
		return 0, errors.New("seek: position is before the start of the file")
	}
	s.pos = offset
	return offset, nil
}

// ReadAt reads from a position, independently of Read and Seek (see io.ReaderAt).
func (s *DownloadStream) ReadAt(p []byte, off int64) (n int, err error) {
	switch {
	case s.closed.Load():
		return 0, ErrClosed
	case off < 0:
		return 0, errors.New("read at: position is before the start of the file")
	case off >= s.file.Length:
		return 0, io.EOF
	case int64(len(p)) > s.file.Length-off:
		p, err = p[:s.file.Length-off], io.EOF
	}
	var w *window
	defer func() { w.close(s.ctx) }()
	for n < len(p) {
		i := (off + int64(n)) / s.file.ChunkSize
		if !w.covers(i) {
			w.close(s.ctx)
			last := (off + int64(len(p)) - 1) / s.file.ChunkSize
			var failed error
			if w, failed = s.bucket.openWindow(s.ctx, s.limit, s.file, i, min(last-i+1, s.most())); failed != nil {
				return n, s.fail(failed)
			}
		}
		data, failed := w.take(s.ctx, i)
		if failed != nil {
			return n, s.fail(failed)
		}
		n += copy(p[n:], data[off+int64(n)-i*s.file.ChunkSize:])
	}
	return n, err
}

// Close closes the stream.
func (s *DownloadStream) Close() error {
	if s.closed.Swap(true) {
		return ErrClosed
	}
	s.drop()
	return nil
}

// rest returns what is left of the chunk at the stream's position, io.EOF at the end of the file.
func (s *DownloadStream) rest() ([]byte, error) {
	if s.pos >= s.file.Length {
		if err := s.finish(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	n := s.pos / s.file.ChunkSize
	if n != s.held {
		if err := s.load(n); err != nil {
			s.drop()
			return nil, s.fail(err)
		}
	}
	return s.data[s.pos-n*s.file.ChunkSize:], nil
}

// load makes n the chunk that is held.
func (s *DownloadStream) load(n int64) (err error) {
	s.held = -1
	if !s.window.covers(n) {
		if err := s.open(n); err != nil {
			return err
		}
	}
	if s.data, err = s.window.take(s.ctx, n); err != nil {
		return err
	}
	s.held = n
	if s.background && n >= s.run+sequential {
		s.fetchAhead()
	}
	return nil
}

// fetchAhead starts to fetch the windows that will be needed next.
func (s *DownloadStream) fetchAhead() {
	next := s.window.end
	if len(s.ahead) > 0 {
		next = s.ahead[len(s.ahead)-1].end
	}
	for len(s.ahead) < maxAhead && next < s.file.chunks {
		f := s.bucket.startFetch(s.ctx, s.limit, s.file, next, s.grown())
		s.ahead = append(s.ahead, f)
		next = f.end
	}
}

// open makes the window one that covers chunk n. As long as windows follow each other, each is
// larger than the one before.
func (s *DownloadStream) open(n int64) (err error) {
	s.window.close(s.ctx)
	s.window = nil
	for len(s.ahead) > 0 && !s.ahead[0].covers(n) {
		s.ahead[0].drop(s.ctx)
		s.ahead = s.ahead[1:]
	}
	if len(s.ahead) > 0 {
		s.window, err = s.ahead[0].wait()
		s.ahead = s.ahead[1:]
	} else {
		if n == s.behind {
			if n > 0 {
				s.grown()
			}
		} else {
			s.size, s.run = 1, n
		}
		s.window, err = s.bucket.openWindow(s.ctx, s.limit, s.file, n, s.size)
	}
	if err != nil {
		return err
	}
	s.behind = s.window.end
	return nil
}

// most returns how many chunks a window has at most.
func (s *DownloadStream) most() int64 { return chunksOf(windowBytes, s.file.ChunkSize) }

// grown doubles the size of the next window.
func (s *DownloadStream) grown() int64 {
	s.size = min(2*s.size, s.most())
	return s.size
}

// finish checks that the file's chunks end where they should, if they were read to the end.
func (s *DownloadStream) finish() error {
	if s.window == nil || s.window.next < s.file.chunks {
		return nil
	}
	err := s.window.finish(s.ctx)
	s.drop()
	return s.fail(err)
}

// drop frees everything that was fetched.
func (s *DownloadStream) drop() {
	s.held, s.data = -1, nil
	s.window.close(s.ctx)
	s.window = nil
	for _, f := range s.ahead {
		f.drop(s.ctx)
	}
	s.ahead = nil
}

func (s *DownloadStream) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("download %v: %w", s.file.ID, err)
}
