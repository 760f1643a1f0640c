package gridfs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/internal/session"
)

// DefaultChunkSize is the size of a chunk in bytes unless a bucket or an upload sets another. The
// document of such a chunk just fits into 256 KiB.
const DefaultChunkSize = 255 << 10

// A Bucket is a set of stored files. It is cheap to make, immutable, and safe for concurrent use.
type Bucket struct {
	files     *allium.Collection[bson.Raw]
	chunks    *allium.Collection[chunk]
	bson      bson.Options // how the user's values are encoded
	chunkSize int32
	timeout   *time.Duration
	indexes   indexes
	err       error // an option that is wrong, reported by every operation
}

// BucketOptions are the options of NewBucket. Nil fields are inherited from the database.
type BucketOptions struct {
	// Name is the prefix of the names of the bucket's collections, which end in ".files" and
	// ".chunks". Empty: "fs".
	Name string
	// ChunkSizeBytes is the size of the chunks of new files. 0: 255 KiB. Stored files keep theirs.
	ChunkSizeBytes int32

	// ReadPreference, ReadConcern and WriteConcern are inherited if they are nil.
	ReadPreference *consistency.ReadPreference
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	// Timeout bounds each operation and the lifetime of each stream; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// NewBucket returns a bucket of the database. It does no I/O, and the bucket's collections need not
// exist: the first write of this Bucket creates their indexes if the files collection is empty.
func NewBucket(db *allium.Database, opts ...BucketOptions) *Bucket {
	b := &Bucket{chunkSize: DefaultChunkSize, indexes: indexes{turn: make(chan struct{}, 1)}}
	o := option.Merge(opts)
	name := o.Name
	if name == "" {
		name = "fs"
	}
	switch {
	case !utf8.ValidString(name) || strings.Contains(name, "\x00"):
		b.err = fmt.Errorf("bucket name %q is not valid UTF-8 without NUL", name)
	case o.ChunkSizeBytes < 0:
		b.err = fmt.Errorf("chunk size is %d, want more than 0", o.ChunkSizeBytes)
	case o.ChunkSizeBytes > 0:
		b.chunkSize = o.ChunkSizeBytes
	}
	db = db.With(allium.DatabaseOptions{ReadPreference: o.ReadPreference, ReadConcern: o.ReadConcern,
		WriteConcern: o.WriteConcern, Timeout: o.Timeout})
	s := db.Settings()
	b.timeout = s.Timeout
	if s.BSON != nil {
		b.bson = *s.BSON
	}
	b.files = allium.CollectionOf[bson.Raw](db, name+".files")
	b.chunks = allium.CollectionOf[chunk](db, name+".chunks", allium.CollectionOptions{BSON: chunkBSON})
	return b
}

// encodeID returns a file's id as it is stored.
func (b *Bucket) encodeID(ctx context.Context, id any) (bson.RawValue, error) {
	switch r := reflect.ValueOf(id); r.Kind() {
	case reflect.Invalid:
		return bson.RawValue{}, errors.New("file id is nil")
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if r.IsNil() {
			return bson.RawValue{}, fmt.Errorf("file id is a nil %T", id)
		}
	}
	v, err := b.bson.MarshalValue(id)
	if err != nil {
		return v, fmt.Errorf("file id: %w", failure.Encoding(ctx, err))
	}
	switch v.Type {
	case bson.TypeArray, bson.TypeUndefined, bson.TypeRegex:
		return v, fmt.Errorf("file id is a BSON %s, which cannot be an _id", v.Type)
	}
	return v, nil
}

// same returns the condition that a field is this id and nothing else. The id itself is one, unless
// it is a document that may hold operators; null would also stand for a field that is missing.
func same(id bson.RawValue) any {
	switch {
	case id.Type == bson.TypeNull:
		return bson.D{{Key: "$type", Value: int32(bson.TypeNull)}}
	case literal(id):
		return id
	}
	return bson.D{{Key: "$eq", Value: id}}
}

// literal reports whether a filter, or a list of $in, takes the id for itself and nothing else.
func literal(id bson.RawValue) bool {
	switch id.Type {
	case bson.TypeNull, bson.TypeRegex:
		return false
	case bson.TypeEmbeddedDocument:
		for key := range bson.Raw(id.Value).All() {
			return !strings.HasPrefix(key, "$")
		}
	}
	return true
}

// A limit is the time that an operation of several commands, or a stream, has in all.
type limit struct {
	set      bool
	deadline time.Time // zero: no bound
}

// begin checks what every operation checks first, and returns the time that it has.
func (b *Bucket) begin(ctx context.Context, timeout *time.Duration) (limit, error) {
	if b.err != nil {
		return limit{}, b.err
	}
	if ctx == nil {
		return limit{}, errNilContext
	}
	if s := session.FromContext(ctx); timeout != nil && s != nil && s.Bounded {
		return limit{}, errors.New("an operation inside Transact with a timeout cannot have a timeout of its own")
	}
	if timeout == nil {
		timeout = b.timeout
	}
	switch {
	case timeout == nil:
		return limit{}, nil
	case *timeout < 0:
		return limit{}, fmt.Errorf("timeout is %v, want 0 or more", *timeout)
	case *timeout == 0:
		return limit{set: true}, nil
	}
	return limit{set: true, deadline: time.Now().Add(*timeout)}, nil
}

// left returns the time that is left as the Timeout of one command: nil if none was set, and never
// 0, which means no bound, once it is up.
func (l limit) left() *time.Duration {
	switch {
	case !l.set:
		return nil
	case l.deadline.IsZero():
		return new(time.Duration(0))
	}
	return new(max(time.Until(l.deadline), 1))
}

// within returns a collection whose next operation has the time that is left.
func within[T any](l limit, c *allium.Collection[T]) *allium.Collection[T] {
	if !l.set {
		return c
	}
	return c.With(allium.CollectionOptions{Timeout: l.left()})
}
