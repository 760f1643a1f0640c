package gridfs

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"allium"
	"allium/bson"
	"allium/internal/failure"
	"allium/internal/flight"
	"allium/internal/option"
)

// UploadOptions are the options of an upload.
type UploadOptions struct {
	// ChunkSizeBytes is the size of the file's chunks. 0: the bucket's.
	ChunkSizeBytes int32
	// Metadata is a document that the application defines, for example with a content type. Nil:
	// none is stored.
	Metadata any
	// ContentType is a MIME type. Empty: none is stored.
	//
	// Deprecated: put it into Metadata. The driver makes no use of it.
	ContentType string
	// Aliases are further names. Files cannot be found by them. Nil: none are stored.
	//
	// Deprecated: put them into Metadata. The driver makes no use of them.
	Aliases []string
	// Timeout bounds the upload from the call to the end of Close or Abort; a pointer to 0 means no
	// limit.
	Timeout *time.Duration
}

// UploadFromStream stores the contents of r as a new file and returns the file's id. If r fails or
// panics, or ctx ends, the upload is aborted, which takes at most three quarters of a second after
// ctx has ended; the error is r's or that of ctx. It does not close r, and Timeout does not
// interrupt a Read. The contents of r need not fit into memory.
//
// After another error, for example of the server or when Timeout is up, chunks that were stored
// already are left behind (specification: GridFS, "Operation Failure"): Delete with the file's id
// removes them.
func (b *Bucket) UploadFromStream(ctx context.Context, filename string, r io.Reader,
	opts ...UploadOptions) (bson.ObjectID, error) {
	id := bson.NewObjectID()
	return id, b.UploadFromStreamWithID(ctx, id, filename, r, opts...)
}

// UploadFromStreamWithID is UploadFromStream with an id that the caller chooses, of any type but
// array and regular expression. For an id that exists, errors.Is(err, mongoerr.ErrDuplicateKey)
// holds.
func (b *Bucket) UploadFromStreamWithID(ctx context.Context, id any, filename string, r io.Reader,
	opts ...UploadOptions) error {
	s, err := b.OpenUploadStreamWithID(ctx, id, filename, opts...)
	if err != nil {
		return err
	}
	defer s.Abort() // of a source that panics or ends its goroutine; a closed stream is left alone
	if w, ok := r.(io.WriterTo); ok {
		_, err = w.WriteTo(s)
	} else {
		_, err = s.ReadFrom(r)
	}
	if failed := s.failure(); failed != nil {
		s.end()
		s.undo()
		return failed
	}
	if err != nil {
		_ = s.Abort() // the source's error is the one that counts
		return err
	}
	return s.Close()
}

// OpenUploadStream starts an upload of a new file. It does no I/O.
func (b *Bucket) OpenUploadStream(ctx context.Context, filename string, opts ...UploadOptions) (*UploadStream, error) {
	return b.OpenUploadStreamWithID(ctx, bson.NewObjectID(), filename, opts...)
}

// OpenUploadStreamWithID is OpenUploadStream with an id that the caller chooses, of any type but
// array and regular expression. For an id that exists, Close, or a Write before it, returns an
// error for which errors.Is(err, mongoerr.ErrDuplicateKey) holds.
func (b *Bucket) OpenUploadStreamWithID(ctx context.Context, id any, filename string,
	opts ...UploadOptions) (*UploadStream, error) {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	var (
		file     bson.RawValue
		metadata bson.Raw
	)
	if err == nil && o.ChunkSizeBytes < 0 {
		err = fmt.Errorf("chunk size is %d, want more than 0", o.ChunkSizeBytes)
	}
	for _, s := range append([]string{filename, o.ContentType}, o.Aliases...) {
		if err == nil && !utf8.ValidString(s) {
			err = fmt.Errorf("%q is not valid UTF-8", s)
		}
	}
	if err == nil {
		file, err = b.encodeID(ctx, id)
	}
	if err == nil && o.Metadata != nil {
		if metadata, err = b.bson.Marshal(o.Metadata); err != nil {
			err = fmt.Errorf("metadata: %w", failure.Encoding(ctx, err))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("upload %q: %w", filename, err)
	}
	size := int(b.chunkSize)
	if o.ChunkSizeBytes > 0 {
		size = int(o.ChunkSizeBytes)
	}
	return &UploadStream{
		bucket: b, ctx: ctx, limit: l, id: id, file: file, name: filename, metadata: metadata,
		contentType: o.ContentType, aliases: slices.Clone(o.Aliases), chunkSize: size,
		batchSize: int(chunksOf(batchBytes, int64(size))) * size, ids: newChunkIDs(),
		background: allium.SessionFrom(ctx) == nil,
	}, nil
}

// An UploadStream writes a new file. The file exists once Close has returned nil. A stream that is
// not closed must be aborted, or its chunks are left behind. It is not safe for concurrent use.
type UploadStream struct {
	bucket      *Bucket
	ctx         context.Context // that the stream was opened with: io.Writer has no room for one
	limit       limit
	id          any
	file        bson.RawValue // the id as it is stored
	name        string
	metadata    bson.Raw
	contentType string
	aliases     []string
	chunkSize   int
	batchSize   int  // how many bytes are written at a time: a multiple of chunkSize
	background  bool // chunks may be written while the caller goes on

	ids    chunkIDs
	n      int64  // the index of the next chunk
	length int64  // of the chunks that were dispatched
	buf    []byte // what is not dispatched yet, less than batchSize bytes
	writes []*write
	err    error // of a write
	closed bool
}

// write is an insert of some chunks that is under way.
type write struct {
	done     chan error
	buf      []byte // to be used again
	borrowed bool   // the chunks lie in memory of the caller's
}

// maxWrites is how many inserts may be under way at the same time: while the server works on one,
// the next one is on its way.
const maxWrites = 2

// ID returns the file's id.
func (s *UploadStream) ID() any { return s.id }

// failure returns the error of a write that failed.
func (s *UploadStream) failure() error { return s.err }

// Write adds p to the file. A nil error means that the bytes were accepted, not that they are
// stored: a later call may return an error of the server, and then every call after it does.
func (s *UploadStream) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if err := s.ready(); err != nil {
			return n, err
		}
		if len(s.buf) == 0 && len(p)-n >= s.batchSize {
			s.dispatch(p[n:n+s.batchSize], nil)
			n += s.batchSize
			continue
		}
		took := min(len(p)-n, s.batchSize-len(s.buf))
		s.grow(took)
		s.buf = append(s.buf, p[n:n+took]...)
		n += took
		s.flushFull()
	}
	s.giveBack()
	return n, s.ready()
}

// ReadFrom adds the rest of r to the file (see io.ReaderFrom).
func (s *UploadStream) ReadFrom(r io.Reader) (int64, error) {
	var total int64
	for empty := 0; ; {
		if err := s.ready(); err != nil {
			return total, err
		}
		s.grow(1)
		free := s.buf[len(s.buf):min(cap(s.buf), s.batchSize)]
		n, err := r.Read(free)
		if n < 0 || n > len(free) {
			return total, fmt.Errorf("upload %q: the source's Read returned %d of %d bytes", s.name, n, len(free))
		}
		s.buf = s.buf[:len(s.buf)+n]
		total += int64(n)
		s.flushFull()
		switch {
		case err == io.EOF:
			return total, s.ready()
		case err != nil:
			return total, err
		case n > 0:
			empty = 0
		default:
			if empty++; empty == 100 {
				return total, io.ErrNoProgress
			}
		}
	}
}

// ready returns why nothing can be written.
func (s *UploadStream) ready() error {
	if s.err == nil && s.closed {
		return ErrClosed
	}
	return s.err
}

// smallBuffer is the size of buffer that an upload begins with.
const smallBuffer = 32 << 10

// grow makes room for n more bytes in the buffer, or for as many as a batch has. A chunk size that
// is huge costs memory only as it is used.
func (s *UploadStream) grow(n int) {
	switch want := min(len(s.buf)+n, s.batchSize); {
	case want <= cap(s.buf):
	case want <= smallBuffer && s.n == 0:
		s.buf = append(make([]byte, 0, min(smallBuffer, s.batchSize)), s.buf...)
	default:
		old := s.buf
		s.buf = append(getBatch(min(s.batchSize, max(want, 2*cap(old), batchBytes))), old...)
		putBatch(old)
	}
}

// flushFull dispatches the buffer if it holds a batch.
func (s *UploadStream) flushFull() {
	if len(s.buf) == s.batchSize {
		data := s.buf
		s.buf = nil
		s.dispatch(data, data)
	}
}

// dispatch starts to write data as chunks. buf is the buffer that data lies in, nil if it is the
// caller's memory.
func (s *UploadStream) dispatch(data, buf []byte) {
	if s.err == nil {
		s.err = s.start(data, buf)
	}
}

func (s *UploadStream) start(data, buf []byte) error {
	if err := s.bucket.ensureIndexes(s.ctx, s.limit); err != nil {
		return s.fail(err)
	}
	var chunks []chunk
	for len(data) > 0 {
		if s.n > math.MaxInt32 {
			return s.fail(fmt.Errorf("more than %d chunks: use a greater chunk size", math.MaxInt32))
		}
		n := min(len(data), s.chunkSize)
		chunks = append(chunks, chunk{id: s.ids.take(), file: s.file, n: s.n, data: data[:n]})
		s.n++
		s.length += int64(n)
		data = data[n:]
	}
	insert := func() error {
		ctx, stop := linger(s.ctx)
		defer stop()
		_, err := within(s.limit, s.bucket.chunks).InsertMany(ctx, chunks)
		return err
	}
	if !s.background {
		err := insert()
		putBatch(buf)
		return s.fail(err)
	}
	for len(s.writes) >= maxWrites {
		if err := s.wait(); err != nil {
			return err
		}
	}
	w := &write{done: make(chan error, 1), buf: buf, borrowed: buf == nil}
	s.writes = append(s.writes, w)
	go func() { w.done <- flight.Apart(insert) }() // listeners hear of it
	return nil
}

// wait waits for the oldest write that is under way.
func (s *UploadStream) wait() error {
	w := s.writes[0]
	s.writes = s.writes[1:]
	err := <-w.done
	putBatch(w.buf)
	return s.fail(err)
}

// waitAll waits for all writes, and returns the first error.
func (s *UploadStream) waitAll() error {
	for len(s.writes) > 0 {
		if err := s.wait(); s.err == nil {
			s.err = err
		}
	}
	return s.err
}

// giveBack waits for the writes whose chunks lie in the caller's memory.
func (s *UploadStream) giveBack() {
	for _, w := range s.writes {
		if w.borrowed {
			s.waitAll()
			return
		}
	}
}

func (s *UploadStream) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("upload %q: %w", s.name, err)
}

// Close writes the last chunks and then the file's document, which makes the file exist. After an
// error there is no file, unless the error leaves open whether the document was stored. Close
// deletes the chunks that were stored already if the stream's context has ended, and leaves them
// behind after other errors.
func (s *UploadStream) Close() error {
	if s.closed {
		return ErrClosed
	}
	if len(s.buf) > 0 {
		data := s.buf
		s.buf = nil
		s.dispatch(data, data)
	}
	s.end()
	if s.err == nil {
		s.err = s.fail(s.bucket.ensureIndexes(s.ctx, s.limit)) // a file without chunks is the first write, too
	}
	sent := false
	if s.err == nil {
		ctx, stop := linger(s.ctx)
		defer stop()
		sent = ctx.Err() == nil
		_, err := within(s.limit, s.bucket.files).InsertOne(ctx, s.document())
		s.err = s.fail(err)
	}
	if s.err != nil && !sent {
		s.undo() // a document that was sent may be stored, and needs its chunks
	}
	return s.err
}

// undo deletes the chunks of an upload that failed because its context has ended. After an error of
// the server they are left behind (specification: GridFS, "Operation Failure").
func (s *UploadStream) undo() {
	if s.n > 0 && s.ctx.Err() != nil {
		_ = s.deleteChunks() // the upload's error is the one that counts
	}
}

// end closes the stream and waits for what is under way.
func (s *UploadStream) end() {
	s.closed = true
	s.waitAll()
	putBatch(s.buf)
	s.buf = nil
}

// document returns the file's document.
func (s *UploadStream) document() bson.Raw {
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendRawValue(dst, "_id", s.file)
	dst = bson.AppendInt64(dst, "length", s.length)
	dst = bson.AppendInt32(dst, "chunkSize", int32(s.chunkSize))
	dst = bson.AppendDateTime(dst, "uploadDate", bson.DateTime(time.Now().UnixMilli()))
	dst = bson.AppendString(dst, "filename", s.name)
	if s.contentType != "" {
		dst = bson.AppendString(dst, "contentType", s.contentType)
	}
	if s.aliases != nil {
		at, d := bson.BeginArrayElement(dst, "aliases")
		for i, a := range s.aliases {
			d = bson.AppendString(d, strconv.Itoa(i), a)
		}
		dst = bson.EndDocument(d, at)
	}
	if s.metadata != nil {
		dst = bson.AppendDocument(dst, "metadata", s.metadata)
	}
	return bson.EndDocument(dst, start)
}

// lingerTime is how long the writes that are under way go on when the stream's context ends, and
// abortTimeout how long deleting the chunks may take then.
const (
	lingerTime   = abortTimeout / 2
	abortTimeout = 500 * time.Millisecond
)

// linger returns the context of a write that begins now: it ends lingerTime after ctx does. A write
// that was given up could be applied after its chunks were deleted; one that is answered could not.
func linger(ctx context.Context) (late context.Context, stop func()) {
	if ctx.Err() != nil {
		return ctx, func() {} // nothing begins any more
	}
	return flight.Linger(ctx, lingerTime)
}

// Abort ends the upload and deletes the chunks that it has stored. If the stream's context has
// ended, it still runs, for at most three quarters of a second. After an error, chunks may be left
// behind. After Close or another Abort it returns ErrClosed, so it can be deferred.
func (s *UploadStream) Abort() error {
	if s.closed {
		return ErrClosed
	}
	s.end()
	return s.deleteChunks()
}

func (s *UploadStream) deleteChunks() error {
	ctx := s.ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
	}
	_, err := within(s.limit, s.bucket.chunks).DeleteMany(ctx, bson.D{{Key: "files_id", Value: same(s.file)},
		{Key: "_id", Value: bson.D{{Key: "$gte", Value: s.ids.first}, {Key: "$lt", Value: s.ids.next}}}})
	if err != nil {
		return fmt.Errorf("abort upload %q: %w", s.name, err)
	}
	return nil
}
