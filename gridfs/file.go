package gridfs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/option"
	"allium/mongoerr"
)

// File is what the files collection says about a stored file. A field that was stored with another
// type than it should have is zero: only without its length and its chunk size can a file not be
// read.
type File struct {
	// ID is the file's _id, of any type.
	ID any `bson:"_id"`
	// Name is not unique: see the package's documentation. Old files may have none.
	Name string `bson:"filename,lenient"`
	// Length is the file's size in bytes.
	Length int64 `bson:"length,lenient"`
	// ChunkSize is the size of its chunks in bytes; the last one may be shorter.
	ChunkSize int64 `bson:"chunkSize,lenient"`
	// UploadDate is when the upload ended.
	UploadDate time.Time `bson:"uploadDate,lenient"`
	// Metadata is a document that the application defines, nil if there is none.
	Metadata bson.Raw `bson:"metadata,lenient"`

	// MD5, ContentType and Aliases are deprecated. MD5 is read from old files and never written.
	MD5         string   `bson:"md5,lenient"`
	ContentType string   `bson:"contentType,lenient"`
	Aliases     []string `bson:"aliases,lenient"`

	// Extra holds further fields, which some older drivers store.
	Extra map[string]any `bson:",inline,lenient"`
}

// FindOptions are the options of Find. The zero value of a field leaves it to the server.
type FindOptions struct {
	// Sort is an ordered document, such as bson.D{{Key: "uploadDate", Value: -1}}.
	Sort any
	// Skip is the number of files to skip.
	Skip int64
	// Limit is the maximum number of files to return; 0 means all.
	Limit int64
	// BatchSize is the maximum number of files in each reply.
	BatchSize *int32
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// AllowDiskUse lets the server sort on disk.
	AllowDiskUse *bool
	// NoCursorTimeout keeps the server from closing the cursor when it is idle.
	NoCursorTimeout bool
	// Timeout bounds the operation and the life of its cursor; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Find returns a cursor over the files that match the filter, a query on the files collection: on
// _id, filename, length, chunkSize, uploadDate, and what is in the metadata.
//
//	cur, err := bucket.Find(ctx, bson.M{"metadata.owner": "ada"})
func (b *Bucket) Find(ctx context.Context, filter any, opts ...FindOptions) (*allium.Cursor[File], error) {
	o := option.Merge(opts)
	if _, err := b.begin(ctx, o.Timeout); err != nil {
		return nil, fmt.Errorf("find files: %w", err)
	}
	files := allium.As[File](b.files)
	return files.Find(ctx, filter, allium.FindOptions{Sort: o.Sort, Skip: o.Skip, Limit: o.Limit,
		BatchSize: o.BatchSize, MaxTime: o.MaxTime,
		AllowDiskUse: o.AllowDiskUse, NoCursorTimeout: o.NoCursorTimeout, Timeout: o.Timeout})
}

// storedFile is a file whose document was found.
type storedFile struct {
	File
	id     bson.RawValue // as it is stored
	chunks int64         // how many there must be
}

// parse reads a document of the files collection and checks that what it says can be.
func (b *Bucket) parse(doc bson.Raw) (*storedFile, error) {
	f := &storedFile{id: doc.Lookup("_id")}
	corrupt := func(format string, args ...any) error {
		return &CorruptError{ID: f.id, Chunk: -1, Reason: fmt.Sprintf(format, args...)}
	}
	if err := b.bson.Unmarshal(doc, &f.File); err != nil {
		return nil, corrupt("its document: %v", err)
	}
	var ok bool
	if f.Length, ok = byteCount(doc.Lookup("length")); !ok {
		return nil, corrupt("its length is %v", doc.Lookup("length"))
	}
	f.ChunkSize, _ = byteCount(doc.Lookup("chunkSize"))
	if f.Length == 0 {
		return f, nil
	}
	if f.ChunkSize <= 0 {
		return nil, corrupt("its chunk size is %v", doc.Lookup("chunkSize"))
	}
	f.chunks = (f.Length-1)/f.ChunkSize + 1
	return f, nil
}

// byteCount returns a number of bytes: a whole number of any type, or a text of its decimal digits,
// which cannot mean anything else.
func byteCount(v bson.RawValue) (int64, bool) {
	if s, ok := v.StringValue(); ok {
		n, err := strconv.ParseUint(s, 10, 63)
		return int64(n), err == nil
	}
	n, ok := v.AsInt64()
	return n, ok && n >= 0
}

// chunkLength returns how many bytes chunk n must have.
func (f *storedFile) chunkLength(n int64) int64 {
	return min(f.ChunkSize, f.Length-n*f.ChunkSize)
}

// fileByID finds the file with an id.
func (b *Bucket) fileByID(ctx context.Context, l limit, id bson.RawValue) (*storedFile, error) {
	doc, err := within(l, b.files).FindOne(ctx, bson.D{{Key: "_id", Value: same(id)}})
	if errors.Is(err, mongoerr.ErrNoDocuments) {
		return nil, ErrFileNotFound
	}
	if err != nil {
		return nil, err
	}
	return b.parse(doc)
}

// fileByName finds a revision of the files with a name.
func (b *Bucket) fileByName(ctx context.Context, l limit, name string, revision int) (*storedFile, error) {
	order, skip := 1, revision
	if revision < 0 {
		order, skip = -1, -revision-1
	}
	filter := bson.D{{Key: "filename", Value: name}}
	doc, err := within(l, b.files).FindOne(ctx, filter,
		allium.FindOneOptions{Sort: bson.D{{Key: "uploadDate", Value: order}}, Skip: int64(skip)})
	if err == nil {
		return b.parse(doc)
	}
	if !errors.Is(err, mongoerr.ErrNoDocuments) {
		return nil, err
	}
	if skip == 0 {
		return nil, ErrFileNotFound
	}
	switch _, err = within(l, b.files).FindOne(ctx, filter,
		allium.FindOneOptions{Projection: bson.D{{Key: "_id", Value: 1}}}); {
	case errors.Is(err, mongoerr.ErrNoDocuments):
		return nil, ErrFileNotFound
	case err != nil:
		return nil, err
	}
	return nil, ErrRevisionNotFound
}
