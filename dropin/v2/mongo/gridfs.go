package mongo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	abson "allium/bson"
	agridfs "allium/gridfs"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// DefaultGridFSChunkSize is how many bytes a chunk has.
const DefaultGridFSChunkSize int32 = 255 * 1024

var (
	// ErrFileNotFound is returned if there is no such file.
	ErrFileNotFound = errors.New("file with given parameters not found")
	// ErrMissingGridFSChunkSize is returned for a file whose document has no size of chunks.
	ErrMissingGridFSChunkSize = errors.New("files collection document does not contain a 'chunkSize' field")
	// ErrMissingChunk is returned for a file that lacks a chunk.
	ErrMissingChunk = errors.New("EOF missing one or more chunks")
	// ErrStreamClosed is returned by streams that were closed.
	ErrStreamClosed = errors.New("stream is closed or aborted")
	// ErrWrongSize is returned for a chunk that is too long or too short.
	ErrWrongSize = errors.New("chunk size does not match expected size")
)

// A GridFSBucket stores files. It is safe for concurrent use.
type GridFSBucket struct {
	inner         *agridfs.Bucket
	files, chunks *Collection
	err           error // of the options
}

func newBucket(db *Database, opts []options.Lister[options.BucketOptions]) *GridFSBucket {
	o, err := merged(opts)
	if err != nil {
		o = new(options.BucketOptions)
	}
	name := "fs"
	if o.Name != nil {
		name = *o.Name
	}
	settings := options.Collection().SetReadConcern(
		o.ReadConcern).SetWriteConcern(o.WriteConcern).SetReadPreference(o.ReadPreference)
	return &GridFSBucket{
		inner: agridfs.NewBucket(db.inner, agridfs.BucketOptions{
			Name: name, ChunkSizeBytes: set(o.ChunkSizeBytes), ReadPreference: readPreference(o.ReadPreference),
			ReadConcern: readConcern(o.ReadConcern), WriteConcern: writeConcern(o.WriteConcern),
		}),
		files: db.Collection(name+".files", settings), chunks: db.Collection(name+".chunks", settings), err: err,
	}
}

// fileFailure converts an error of a file.
func fileFailure(err error) error {
	var (
		corrupt *agridfs.CorruptError
		many    *mongoerr.BulkWriteError // of chunks
	)
	switch {
	case err == nil, err == io.EOF:
		return err
	case errors.As(err, &many):
		return manyFailed(err)
	case !errors.As(err, &corrupt):
		return failure(err)
	case corrupt.Chunk < 0 && strings.Contains(corrupt.Reason, "its chunk size"):
		return ErrMissingGridFSChunkSize
	case strings.Contains(corrupt.Reason, "missing"):
		return ErrMissingChunk
	}
	return ErrWrongSize
}

// context returns the context of an operation.
func (b *GridFSBucket) context(ctx context.Context) (context.Context, error) {
	if b.err != nil {
		return ctx, b.err
	}
	return b.files.client.context(ctx)
}

// id encodes a file's _id.
func (b *GridFSBucket) id(ctx context.Context, id any) (context.Context, any, error) {
	ctx, err := b.context(ctx)
	if err != nil {
		return ctx, nil, err
	}
	if id == nil {
		return ctx, abson.RawValue{Type: abson.TypeNull}, nil
	}
	v, err := b.files.value(id)
	return ctx, v, err
}

// upload returns the options of an upload.
func (b *GridFSBucket) upload(opts []options.Lister[options.GridFSUploadOptions]) (agridfs.UploadOptions, error) {
	o, err := built(opts)
	if err != nil {
		return agridfs.UploadOptions{}, err
	}
	settings := agridfs.UploadOptions{ChunkSizeBytes: set(o.ChunkSizeBytes)}
	if o.Metadata != nil {
		c := b.files.coder
		if o.Registry != nil {
			c.registry = o.Registry
		}
		settings.Metadata, err = c.document(o.Metadata)
	}
	return settings, err
}

// OpenUploadStream returns a stream into a new file.
func (b *GridFSBucket) OpenUploadStream(ctx context.Context, filename string,
	opts ...options.Lister[options.GridFSUploadOptions]) (*GridFSUploadStream, error) {
	return b.OpenUploadStreamWithID(ctx, bson.NewObjectID(), filename, opts...)
}

// OpenUploadStreamWithID returns a stream into a new file whose _id the program chooses.
func (b *GridFSBucket) OpenUploadStreamWithID(ctx context.Context, fileID any, filename string,
	opts ...options.Lister[options.GridFSUploadOptions]) (*GridFSUploadStream, error) {
	ctx, id, err := b.id(ctx, fileID)
	if err != nil {
		return nil, err
	}
	o, err := b.upload(opts)
	if err != nil {
		return nil, err
	}
	s, err := b.inner.OpenUploadStreamWithID(ctx, id, filename, o)
	if err != nil {
		return nil, fileFailure(err)
	}
	return &GridFSUploadStream{FileID: fileID, inner: s}, nil
}

// UploadFromStream stores what source has as a new file.
func (b *GridFSBucket) UploadFromStream(ctx context.Context, filename string, source io.Reader,
	opts ...options.Lister[options.GridFSUploadOptions]) (bson.ObjectID, error) {
	id := bson.NewObjectID()
	return id, b.UploadFromStreamWithID(ctx, id, filename, source, opts...)
}

// UploadFromStreamWithID is UploadFromStream with an _id that the program chooses.
func (b *GridFSBucket) UploadFromStreamWithID(ctx context.Context, fileID any, filename string, source io.Reader,
	opts ...options.Lister[options.GridFSUploadOptions]) error {
	ctx, id, err := b.id(ctx, fileID)
	if err != nil {
		return err
	}
	o, err := b.upload(opts)
	if err != nil {
		return err
	}
	return fileFailure(b.inner.UploadFromStreamWithID(ctx, id, filename, source, o))
}

// OpenDownloadStream returns a stream out of a file.
func (b *GridFSBucket) OpenDownloadStream(ctx context.Context, fileID any) (*GridFSDownloadStream, error) {
	ctx, id, err := b.id(ctx, fileID)
	if err != nil {
		return nil, err
	}
	s, err := b.inner.OpenDownloadStream(ctx, id)
	return b.download(s, err)
}

func (b *GridFSBucket) download(s *agridfs.DownloadStream, err error) (*GridFSDownloadStream, error) {
	if err != nil {
		return nil, notOpened(err)
	}
	return &GridFSDownloadStream{inner: s, coder: b.files.coder}, nil
}

// notOpened is the error of a download that was not opened.
func notOpened(err error) error {
	failed := fileFailure(err)
	if failed == ErrFileNotFound || errors.As(err, new(*agridfs.CorruptError)) {
		return failed
	}
	return fmt.Errorf("%s%w", coding.NotOpened, commandFailed(err))
}

// revision returns the options of a download by name.
func revision(opts []options.Lister[options.GridFSNameOptions]) (agridfs.DownloadByNameOptions, error) {
	o, err := built(opts)
	if err != nil || o.Revision == nil {
		return agridfs.DownloadByNameOptions{}, err
	}
	n := int(*o.Revision)
	return agridfs.DownloadByNameOptions{Revision: &n}, nil
}

// OpenDownloadStreamByName returns a stream out of a file of a name, by default the newest.
func (b *GridFSBucket) OpenDownloadStreamByName(ctx context.Context, filename string,
	opts ...options.Lister[options.GridFSNameOptions]) (*GridFSDownloadStream, error) {
	ctx, err := b.context(ctx)
	if err != nil {
		return nil, err
	}
	o, err := revision(opts)
	if err != nil {
		return nil, err
	}
	s, err := b.inner.OpenDownloadStreamByName(ctx, filename, o)
	return b.download(s, err)
}

// DownloadToStream writes a file to stream, and returns how many bytes that were.
func (b *GridFSBucket) DownloadToStream(ctx context.Context, fileID any, stream io.Writer) (int64, error) {
	ctx, id, err := b.id(ctx, fileID)
	if err != nil {
		return 0, err
	}
	s, err := b.inner.OpenDownloadStream(ctx, id)
	return downloaded(stream, s, err)
}

// DownloadToStreamByName writes a file of a name to stream, by default the newest.
func (b *GridFSBucket) DownloadToStreamByName(ctx context.Context, filename string, stream io.Writer,
	opts ...options.Lister[options.GridFSNameOptions]) (int64, error) {
	ctx, err := b.context(ctx)
	if err != nil {
		return 0, err
	}
	o, err := revision(opts)
	if err != nil {
		return 0, err
	}
	s, err := b.inner.OpenDownloadStreamByName(ctx, filename, o)
	return downloaded(stream, s, err)
}

// downloaded ends a download to stream. One that reads by itself is asked to for a file without
// bytes, too: the bytes of a bytes.Buffer are empty then, not nil.
func downloaded(stream io.Writer, s *agridfs.DownloadStream, err error) (int64, error) {
	if err != nil {
		return 0, notOpened(err)
	}
	defer s.Close()
	n, err := s.WriteTo(stream)
	if r, ok := stream.(io.ReaderFrom); ok && n == 0 && err == nil {
		_, err = r.ReadFrom(bytes.NewReader(nil))
	}
	return n, fileFailure(err)
}

// Delete deletes a file.
func (b *GridFSBucket) Delete(ctx context.Context, fileID any) error {
	ctx, id, err := b.id(ctx, fileID)
	if err != nil {
		return err
	}
	return fileFailure(b.inner.Delete(ctx, id))
}

// Rename gives a file another name.
func (b *GridFSBucket) Rename(ctx context.Context, fileID any, newFilename string) error {
	ctx, id, err := b.id(ctx, fileID)
	if err != nil {
		return err
	}
	return fileFailure(b.inner.Rename(ctx, id, newFilename))
}

// Drop deletes all files of the bucket.
func (b *GridFSBucket) Drop(ctx context.Context) error {
	ctx, err := b.context(ctx)
	if err != nil {
		return err
	}
	return fileFailure(b.inner.Drop(ctx))
}

// Find finds the documents of files that match the filter.
func (b *GridFSBucket) Find(ctx context.Context, filter any,
	opts ...options.Lister[options.GridFSFindOptions]) (*Cursor, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	find := options.Find()
	if o.AllowDiskUse != nil {
		find.SetAllowDiskUse(*o.AllowDiskUse)
	}
	if o.BatchSize != nil {
		find.SetBatchSize(*o.BatchSize)
	}
	if o.Limit != nil {
		find.SetLimit(int64(*o.Limit))
	}
	if o.NoCursorTimeout != nil {
		find.SetNoCursorTimeout(*o.NoCursorTimeout)
	}
	if o.Skip != nil {
		find.SetSkip(int64(*o.Skip))
	}
	if o.Sort != nil {
		find.SetSort(o.Sort)
	}
	return b.files.Find(ctx, filter, find)
}

// GetFilesCollection returns the collection of the files' documents.
func (b *GridFSBucket) GetFilesCollection() *Collection { return b.files }

// GetChunksCollection returns the collection of the files' contents.
func (b *GridFSBucket) GetChunksCollection() *Collection { return b.chunks }

// A GridFSFile describes a file.
type GridFSFile struct {
	ID         any
	Length     int64 // in bytes
	ChunkSize  int32
	UploadDate time.Time
	Name       string
	Metadata   bson.Raw
}

// UnmarshalBSON decodes a file's document.
func (f *GridFSFile) UnmarshalBSON(data []byte) error {
	var doc struct {
		ID         any       `bson:"_id"`
		Length     int64     `bson:"length"`
		ChunkSize  int32     `bson:"chunkSize"`
		UploadDate time.Time `bson:"uploadDate"`
		Name       string    `bson:"filename"`
		Metadata   bson.Raw  `bson:"metadata"`
	}
	if err := bson.Unmarshal(data, &doc); err != nil {
		return err
	}
	*f = GridFSFile(doc)
	return nil
}

// A GridFSUploadStream writes a file. It is not safe for concurrent use.
type GridFSUploadStream struct {
	FileID any

	inner *agridfs.UploadStream
}

// Write adds bytes to the file.
func (us *GridFSUploadStream) Write(p []byte) (int, error) {
	n, err := us.inner.Write(p)
	return n, fileFailure(err)
}

// Close stores what is left, and the file's document.
func (us *GridFSUploadStream) Close() error { return fileFailure(us.inner.Close()) }

// Abort deletes what was stored.
func (us *GridFSUploadStream) Abort() error { return fileFailure(us.inner.Abort()) }

// A GridFSDownloadStream reads a file. It is not safe for concurrent use.
type GridFSDownloadStream struct {
	inner *agridfs.DownloadStream
	coder
	closed bool
	ended  error // io.EOF or ErrMissingChunk, once Read has come to it
}

// Read reads the next bytes. It fills p unless the file ends before.
func (ds *GridFSDownloadStream) Read(p []byte) (int, error) {
	if ds.closed {
		return 0, ErrStreamClosed
	}
	if ds.ended != nil {
		return 0, ds.ended
	}
	if len(p) == 0 && ds.inner.File().Length == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) {
		more, err := ds.inner.Read(p[n:])
		n += more
		if err == nil {
			continue
		}
		err = fileFailure(err)
		if err == io.EOF || err == ErrMissingChunk {
			ds.ended = err
		}
		if err == io.EOF && n > 0 {
			err = nil
		}
		return n, err
	}
	return n, nil
}

// Close closes the stream.
func (ds *GridFSDownloadStream) Close() error {
	if ds.closed {
		return ErrStreamClosed
	}
	ds.closed = true
	return fileFailure(ds.inner.Close())
}

// Skip leaves out bytes, and returns how many.
func (ds *GridFSDownloadStream) Skip(skip int64) (int64, error) {
	if ds.closed {
		return 0, ErrStreamClosed
	}
	if ds.ended != nil {
		return 0, nil
	}
	if skip <= 0 {
		return skip, nil
	}
	at, err := ds.inner.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fileFailure(err)
	}
	left := max(ds.inner.File().Length-at, 0)
	if skip > left {
		ds.ended = io.EOF
	}
	n := min(skip, left)
	_, err = ds.inner.Seek(n, io.SeekCurrent)
	return n, fileFailure(err)
}

// GetFile returns the file's description.
func (ds *GridFSDownloadStream) GetFile() *GridFSFile {
	f := ds.inner.File()
	return &GridFSFile{ID: ds.resultID(f.ID), Length: f.Length, ChunkSize: int32(f.ChunkSize), UploadDate: f.UploadDate,
		Name: f.Name, Metadata: bson.Raw(f.Metadata)}
}
