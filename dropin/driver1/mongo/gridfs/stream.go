package gridfs

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
)

// A limit is a context whose deadline can be set while it is in use. It is safe for concurrent use.
type limit struct {
	mu       sync.Mutex
	deadline time.Time
	timer    *time.Timer
	done     chan struct{}
}

func newLimit(t time.Time) *limit {
	l := &limit{done: make(chan struct{})}
	l.set(t)
	return l
}

func (l *limit) set(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	select {
	case <-l.done:
		l.done = make(chan struct{}) // there is time again
	default:
	}
	l.deadline, l.timer = t, nil
	if t.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(t), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.timer == timer { // else another deadline was set, even if it is the same
			close(l.done)
		}
	})
	l.timer = timer
}

// Deadline implements context.Context.
func (l *limit) Deadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline, !l.deadline.IsZero()
}

// Done implements context.Context.
func (l *limit) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// Err implements context.Context.
func (l *limit) Err() error {
	select {
	case <-l.Done():
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context.
func (*limit) Value(any) any { return nil }

// Upload has nothing that a program can see.
type Upload struct{ _ struct{} }

// An UploadStream writes a file. It is not safe for concurrent use.
type UploadStream struct {
	*Upload
	FileID any

	inner  *v2mongo.GridFSUploadStream
	limit  *limit
	closed bool
}

// Write adds bytes to the file.
func (us *UploadStream) Write(p []byte) (int, error) {
	n, err := us.inner.Write(p)
	return n, failure(err)
}

// Close writes what is left, and the file's document: then the file is there.
func (us *UploadStream) Close() error {
	err := failure(us.inner.Close())
	if err == nil {
		us.closed = true
		us.limit.set(time.Time{})
	}
	return err
}

// Abort deletes what was written.
func (us *UploadStream) Abort() error {
	err := failure(us.inner.Abort())
	us.closed = us.closed || err == nil
	return err
}

// SetWriteDeadline says until when what is written must be done. The zero time sets no limit.
func (us *UploadStream) SetWriteDeadline(t time.Time) error {
	if us.closed {
		return ErrStreamClosed
	}
	us.limit.set(t)
	return nil
}

// A DownloadStream reads a file. It is not safe for concurrent use.
type DownloadStream struct {
	inner  *v2mongo.GridFSDownloadStream
	limit  *limit
	closed bool
}

// Read reads bytes of the file.
func (ds *DownloadStream) Read(p []byte) (int, error) {
	n, err := ds.inner.Read(p)
	return n, failure(err)
}

// Close ends the stream.
func (ds *DownloadStream) Close() error {
	ds.limit.set(time.Time{})
	ds.closed = true
	return failure(ds.inner.Close())
}

// Skip passes over bytes, and returns how many.
func (ds *DownloadStream) Skip(skip int64) (int64, error) {
	n, err := ds.inner.Skip(skip)
	return n, failure(err)
}

// SetReadDeadline says until when what is read must be done. The zero time sets no limit.
func (ds *DownloadStream) SetReadDeadline(t time.Time) error {
	if ds.closed {
		return ErrStreamClosed
	}
	ds.limit.set(t)
	return nil
}

// GetFile returns the file's document.
func (ds *DownloadStream) GetFile() *File {
	f := ds.inner.GetFile()
	return &File{ID: f.ID, Length: f.Length, ChunkSize: f.ChunkSize, UploadDate: f.UploadDate, Name: f.Name,
		Metadata: bson.Raw(f.Metadata)}
}
