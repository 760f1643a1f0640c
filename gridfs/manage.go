package gridfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/option"
)

// DeleteOptions are the options of Delete and DeleteByName.
type DeleteOptions struct {
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Delete deletes a file: its document first and then its chunks, so that a reader notices. If no
// file has the id, the error is ErrFileNotFound; chunks that an upload left behind are deleted even
// then.
func (b *Bucket) Delete(ctx context.Context, id any, opts ...DeleteOptions) error {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	if err == nil {
		v, idErr := b.encodeID(ctx, id)
		if err = idErr; err == nil {
			err = b.delete(ctx, l, v)
		}
	}
	if err != nil {
		return fmt.Errorf("delete %v: %w", id, err)
	}
	return nil
}

func (b *Bucket) delete(ctx context.Context, l limit, id bson.RawValue) error {
	res, err := within(l, b.files).DeleteOne(ctx, bson.D{{Key: "_id", Value: same(id)}})
	if err != nil {
		return err
	}
	if _, err := within(l, b.chunks).DeleteMany(ctx, bson.D{{Key: "files_id", Value: same(id)}}); err != nil {
		return err
	}
	if res.Acknowledged && res.DeletedCount == 0 {
		return ErrFileNotFound
	}
	return nil
}

// DeleteByName deletes all revisions of a file. If no file has the name, the error is
// ErrFileNotFound.
func (b *Bucket) DeleteByName(ctx context.Context, filename string, opts ...DeleteOptions) error {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	if err == nil {
		err = b.deleteByName(ctx, l, filename)
	}
	if err != nil {
		return fmt.Errorf("delete %q: %w", filename, err)
	}
	return nil
}

// maxIDs is how many ids one command names.
const maxIDs = 10_000

func (b *Bucket) deleteByName(ctx context.Context, l limit, filename string) error {
	// a secondary may not know them all
	files := within(l, b.files).With(allium.CollectionOptions{ReadPreference: primary})
	cur, err := files.Find(ctx, bson.D{{Key: "filename", Value: filename}},
		allium.FindOptions{Projection: bson.D{{Key: "_id", Value: 1}}})
	if err != nil {
		return err
	}
	var ids, odd bson.A
	for doc, err := range cur.Seq(ctx) {
		if err != nil {
			return err
		}
		if id := doc.Lookup("_id"); literal(id) {
			ids = append(ids, id)
		} else {
			odd = append(odd, id)
		}
	}
	if len(ids)+len(odd) == 0 {
		return ErrFileNotFound
	}
	for _, id := range odd {
		if err := b.delete(ctx, l, id.(bson.RawValue)); err != nil && !errors.Is(err, ErrFileNotFound) {
			return err
		}
	}
	for part := range slices.Chunk(ids, maxIDs) {
		if _, err := within(l, b.files).DeleteMany(ctx,
			bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: part}}}}); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(ids, maxIDs) {
		if _, err := within(l, b.chunks).DeleteMany(ctx,
			bson.D{{Key: "files_id", Value: bson.D{{Key: "$in", Value: part}}}}); err != nil {
			return err
		}
	}
	return nil
}

// RenameOptions are the options of Rename and RenameByName.
type RenameOptions struct {
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Rename gives a file another name. If no file has the id, the error is ErrFileNotFound.
func (b *Bucket) Rename(ctx context.Context, id any, newFilename string, opts ...RenameOptions) error {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	if err == nil {
		v, idErr := b.encodeID(ctx, id)
		if err = idErr; err == nil {
			err = renamed(within(l, b.files).UpdateOne(ctx, bson.D{{Key: "_id", Value: same(v)}}, setName(newFilename)))
		}
	}
	if err != nil {
		return fmt.Errorf("rename %v: %w", id, err)
	}
	return nil
}

// RenameByName gives all revisions of a file another name. If no file has the name, the error is
// ErrFileNotFound.
func (b *Bucket) RenameByName(ctx context.Context, filename, newFilename string, opts ...RenameOptions) error {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	if err == nil {
		err = renamed(within(l, b.files).UpdateMany(ctx, bson.D{{Key: "filename", Value: filename}},
			setName(newFilename)))
	}
	if err != nil {
		return fmt.Errorf("rename %q: %w", filename, err)
	}
	return nil
}

func setName(name string) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: "filename", Value: name}}}}
}

func renamed(res allium.UpdateResult, err error) error {
	if err == nil && res.Acknowledged && res.MatchedCount == 0 {
		return ErrFileNotFound
	}
	return err
}

// DropOptions are the options of Drop.
type DropOptions struct {
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Drop drops the bucket's collections, and with them all its files. It is not an error if they do
// not exist. The next upload creates them with their indexes.
func (b *Bucket) Drop(ctx context.Context, opts ...DropOptions) error {
	o := option.Merge(opts)
	l, err := b.begin(ctx, o.Timeout)
	if err == nil {
		err = within(l, b.files).Drop(ctx)
	}
	if err == nil {
		err = within(l, b.chunks).Drop(ctx)
	}
	if err != nil {
		return fmt.Errorf("drop bucket: %w", err)
	}
	b.indexes.done.Store(false)
	return nil
}
