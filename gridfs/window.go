package gridfs

import (
	"context"
	"fmt"

	"allium"
	"allium/bson"
	"allium/internal/flight"
)

// window is a run of a file's chunks that was fetched with one query. Its chunks are views of the
// reply's memory: one is valid until the next one is asked for.
type window struct {
	file      *storedFile
	cur       *allium.Cursor[chunk]
	next, end int64 // the chunks that are left
}

// openWindow asks for count chunks from first on. The last window asks for one more than there must
// be.
func (b *Bucket) openWindow(ctx context.Context, l limit, f *storedFile, first, count int64) (*window, error) {
	filter := bson.D{{Key: "files_id", Value: same(f.id)}}
	if first > 0 {
		filter = append(filter, bson.E{Key: "n", Value: bson.D{{Key: "$gte", Value: first}}})
	}
	w := &window{file: f, next: first, end: min(first+count, f.chunks)}
	size := w.end - first
	if w.end == f.chunks {
		size++
	}
	var err error
	w.cur, err = within(l, b.chunks).Find(ctx, filter,
		allium.FindOptions{Sort: bson.D{{Key: "n", Value: 1}}, Limit: size, BatchSize: new(int32(size))})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// covers reports whether chunk n is still to come.
func (w *window) covers(n int64) bool { return w != nil && w.next <= n && n < w.end }

// take returns chunk n, which the window must cover, and skips those before it.
func (w *window) take(ctx context.Context, n int64) ([]byte, error) {
	for {
		data, err := w.step(ctx)
		if err != nil || w.next > n {
			return data, err
		}
	}
}

func (w *window) step(ctx context.Context) ([]byte, error) {
	n := w.next
	corrupt := func(format string, args ...any) ([]byte, error) {
		return nil, &CorruptError{ID: w.file.id, Chunk: n, Reason: fmt.Sprintf(format, args...)}
	}
	if !w.cur.Next(ctx) {
		if err := w.cur.Err(); err != nil {
			return nil, err
		}
		return corrupt("it is missing; the file has %d chunks", w.file.chunks)
	}
	switch c := w.cur.Current(); {
	case c.n > n:
		return corrupt("it is missing; the next one is %d", c.n)
	case c.n < n:
		return corrupt("chunk %d is there twice", c.n)
	case c.wrong != "":
		return corrupt("%s", c.wrong)
	case int64(len(c.data)) != w.file.chunkLength(n):
		return corrupt("it has %d bytes, want %d", len(c.data), w.file.chunkLength(n))
	default:
		w.next++
		return c.data, nil
	}
}

// finish checks, behind the file's last chunk, that there is no further one. An empty one is no
// matter: some drivers wrote it when the last chunk was full.
func (w *window) finish(ctx context.Context) error {
	if w.cur.Next(ctx) {
		if c := w.cur.Current(); c.n < w.file.chunks || len(c.data) > 0 {
			return &CorruptError{ID: w.file.id, Chunk: c.n,
				Reason: fmt.Sprintf("it is one too many; the file has %d chunks", w.file.chunks)}
		}
	}
	return w.cur.Err()
}

// close frees the window. A nil one is fine.
func (w *window) close(ctx context.Context) {
	if w != nil {
		w.cur.Close(ctx)
	}
}

// fetch is a window that is fetched in the background.
type fetch struct {
	first, end int64
	cancel     context.CancelFunc
	done       chan struct{}
	window     *window
	err        error
}

func (b *Bucket) startFetch(ctx context.Context, l limit, f *storedFile, first, count int64) *fetch {
	ctx, cancel := context.WithCancel(ctx)
	p := &fetch{first: first, end: min(first+count, f.chunks), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = flight.Apart(func() (err error) { // listeners hear of it
			p.window, err = b.openWindow(ctx, l, f, first, count)
			return err
		})
	}()
	return p
}

// covers reports whether chunk n is in the window.
func (p *fetch) covers(n int64) bool { return p.first <= n && n < p.end }

// wait returns the window.
func (p *fetch) wait() (*window, error) {
	<-p.done
	p.cancel()
	return p.window, p.err
}

// drop ends the fetch.
func (p *fetch) drop(ctx context.Context) {
	p.cancel()
	<-p.done
	p.window.close(ctx)
}
