// Package gridfs stores files in a database, cut into documents. It stands on package mongo of
// version 2.
package gridfs

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/internal/native"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

var (
	// ErrFileNotFound is returned for a file that there is not.
	ErrFileNotFound = v2mongo.ErrFileNotFound
	// ErrMissingChunkSize is not returned any more.
	ErrMissingChunkSize = errors.New("files collection document does not contain a 'chunkSize' field")
	// ErrStreamClosed is returned by a stream that was closed or aborted.
	ErrStreamClosed = v2mongo.ErrStreamClosed
	// ErrWrongIndex is returned by reads of a file that lacks a chunk.
	ErrWrongIndex = errors.New("chunk index does not match expected index")
	// ErrWrongSize is returned by reads of a file that has a chunk of a wrong size.
	ErrWrongSize = errors.New("chunk size does not match expected size")
)

const (
	// DefaultChunkSize is how many bytes a chunk has, unless options say otherwise.
	DefaultChunkSize int32 = 255 * 1024
	// UploadBufferSize is how many bytes the official driver sends at once.
	UploadBufferSize = 16 * 1024 * 1024
)

// failure converts an error of version 2 to one of version 1.
func failure(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), coding.NotOpened) {
		err = inner // version 1 says no more
	}
	switch {
	case errors.Is(err, v2mongo.ErrMissingChunk):
		return ErrWrongIndex
	case errors.Is(err, v2mongo.ErrWrongSize):
		return ErrWrongSize
	}
	return native.Failure(err)
}

// A Bucket is where files are. It is safe for concurrent use, except for the deadlines.
type Bucket struct {
	db                          *mongo.Database
	inner                       *v2mongo.GridFSBucket
	readDeadline, writeDeadline time.Time
}

// NewBucket returns a bucket of a database.
func NewBucket(db *mongo.Database, opts ...*options.BucketOptions) (*Bucket, error) {
	inner := native.Database(db)
	return &Bucket{db: db, inner: inner.GridFSBucket(convert.Bucket(options.MergeBucketOptions(opts...)))}, nil
}

// SetWriteDeadline says until when what is written must be done. The zero time sets no limit.
func (b *Bucket) SetWriteDeadline(t time.Time) error {
	b.writeDeadline = t
	return nil
}

// SetReadDeadline says until when what is read must be done. The zero time sets no limit.
func (b *Bucket) SetReadDeadline(t time.Time) error {
	b.readDeadline = t
	return nil
}

// until returns a context with a deadline.
func until(t time.Time) (context.Context, context.CancelFunc) {
	if t.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithDeadline(context.Background(), t)
}

func upload(opts []*options.UploadOptions) v2options.Lister[v2options.GridFSUploadOptions] {
	return convert.GridFSUpload(options.MergeUploadOptions(opts...))
}

// OpenUploadStream returns a stream to a new file.
func (b *Bucket) OpenUploadStream(filename string, opts ...*options.UploadOptions) (*UploadStream, error) {
	return b.OpenUploadStreamWithID(primitive.NewObjectID(), filename, opts...)
}

// OpenUploadStreamWithID returns a stream to a new file with an _id.
func (b *Bucket) OpenUploadStreamWithID(fileID any, filename string,
	opts ...*options.UploadOptions) (*UploadStream, error) {
	limit := newLimit(b.writeDeadline)
	us, err := b.inner.OpenUploadStreamWithID(limit, fileID, filename, upload(opts))
	if err != nil {
		return nil, failure(err)
	}
	return &UploadStream{Upload: new(Upload), FileID: fileID, inner: us, limit: limit}, nil
}

// UploadFromStream stores what source has, and returns the new file's _id.
func (b *Bucket) UploadFromStream(filename string, source io.Reader,
	opts ...*options.UploadOptions) (primitive.ObjectID, error) {
	id := primitive.NewObjectID()
	return id, b.UploadFromStreamWithID(id, filename, source, opts...)
}

// UploadFromStreamWithID stores what source has as a file with an _id.
func (b *Bucket) UploadFromStreamWithID(fileID any, filename string, source io.Reader,
	opts ...*options.UploadOptions) error {
	ctx, cancel := until(b.writeDeadline)
	defer cancel()
	return failure(b.inner.UploadFromStreamWithID(ctx, fileID, filename, source, upload(opts)))
}

// OpenDownloadStream returns a stream from a file.
func (b *Bucket) OpenDownloadStream(fileID any) (*DownloadStream, error) {
	limit := newLimit(b.readDeadline)
	return downloadOf(limit)(b.inner.OpenDownloadStream(limit, fileID))
}

// OpenDownloadStreamByName returns a stream from the file of a name.
func (b *Bucket) OpenDownloadStreamByName(filename string, opts ...*options.NameOptions) (*DownloadStream, error) {
	limit := newLimit(b.readDeadline)
	return downloadOf(limit)(b.inner.OpenDownloadStreamByName(limit, filename,
		convert.GridFSName(options.MergeNameOptions(opts...))))
}

func downloadOf(limit *limit) func(*v2mongo.GridFSDownloadStream, error) (*DownloadStream, error) {
	return func(ds *v2mongo.GridFSDownloadStream, err error) (*DownloadStream, error) {
		if err != nil {
			return nil, failure(err)
		}
		return &DownloadStream{inner: ds, limit: limit}, nil
	}
}

// DownloadToStream writes a file to stream, and returns its length.
func (b *Bucket) DownloadToStream(fileID any, stream io.Writer) (int64, error) {
	ctx, cancel := until(b.readDeadline)
	defer cancel()
	n, err := b.inner.DownloadToStream(ctx, fileID, stream)
	return n, failure(err)
}

// DownloadToStreamByName writes the file of a name to stream, and returns its length.
func (b *Bucket) DownloadToStreamByName(filename string, stream io.Writer,
	opts ...*options.NameOptions) (int64, error) {
	ctx, cancel := until(b.readDeadline)
	defer cancel()
	n, err := b.inner.DownloadToStreamByName(ctx, filename, stream,
		convert.GridFSName(options.MergeNameOptions(opts...)))
	return n, failure(err)
}

// Delete deletes a file.
func (b *Bucket) Delete(fileID any) error {
	ctx, cancel := until(b.writeDeadline)
	defer cancel()
	return b.DeleteContext(ctx, fileID)
}

// DeleteContext deletes a file.
func (b *Bucket) DeleteContext(ctx context.Context, fileID any) error {
	return failure(b.inner.Delete(ctx, fileID))
}

// Find searches for the documents of files.
func (b *Bucket) Find(filter any, opts ...*options.GridFSFindOptions) (*mongo.Cursor, error) {
	ctx, cancel := until(b.readDeadline)
	defer cancel()
	return b.FindContext(ctx, filter, opts...)
}

// FindContext searches for the documents of files.
func (b *Bucket) FindContext(ctx context.Context, filter any,
	opts ...*options.GridFSFindOptions) (*mongo.Cursor, error) {
	o := options.MergeGridFSFindOptions(opts...)
	if o.MaxTime != nil && *o.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *o.MaxTime)
		defer cancel()
	}
	c, err := b.inner.Find(ctx, filter, convert.GridFSFind(o))
	if err != nil {
		return nil, failure(err)
	}
	return native.WrapCursor(c).(*mongo.Cursor), nil
}

// Rename gives a file another name.
func (b *Bucket) Rename(fileID any, newFilename string) error {
	ctx, cancel := until(b.writeDeadline)
	defer cancel()
	return b.RenameContext(ctx, fileID, newFilename)
}

// RenameContext gives a file another name.
func (b *Bucket) RenameContext(ctx context.Context, fileID any, newFilename string) error {
	return failure(b.inner.Rename(ctx, fileID, newFilename))
}

// Drop deletes all files.
func (b *Bucket) Drop() error {
	ctx, cancel := until(b.writeDeadline)
	defer cancel()
	return b.DropContext(ctx)
}

// DropContext deletes all files.
func (b *Bucket) DropContext(ctx context.Context) error { return failure(b.inner.Drop(ctx)) }

// GetFilesCollection returns the collection of the files' documents.
func (b *Bucket) GetFilesCollection() *mongo.Collection {
	return native.WrapCollection(b.db, b.inner.GetFilesCollection()).(*mongo.Collection)
}

// GetChunksCollection returns the collection of the files' parts.
func (b *Bucket) GetChunksCollection() *mongo.Collection {
	return native.WrapCollection(b.db, b.inner.GetChunksCollection()).(*mongo.Collection)
}

// File is a file's document.
type File struct {
	ID         any
	Length     int64 // in bytes
	ChunkSize  int32
	UploadDate time.Time
	Name       string
	Metadata   bson.Raw
}

// UnmarshalBSON decodes a file's document.
//
// Deprecated: decode into a type of the program's.
func (f *File) UnmarshalBSON(data []byte) error {
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
	*f = File(doc)
	return nil
}
