package unified

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"allium"
	"allium/bson"
	"allium/gridfs"
)

type bucket = gridfs.Bucket

func init() {
	registerEntity("bucket", createBucket)
	register(map[string]operation[*bucket]{
		"upload": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			name, source, o := a.string("filename"), a.hexBytes("source"), a.uploadOptions()
			if a.err != nil {
				return result{}, &brokenTest{a.err}
			}
			id, err := b.UploadFromStream(ctx, name, source, o)
			return encode(id, err)
		},
		"uploadWithId": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			id, name, source, o := a.any("id"), a.string("filename"), a.hexBytes("source"), a.uploadOptions()
			if a.err != nil {
				return result{}, &brokenTest{a.err}
			}
			return result{}, b.UploadFromStreamWithID(ctx, id, name, source, o)
		},
		"download": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			return contents(b.OpenDownloadStream(ctx, a.any("id"), gridfs.DownloadOptions{Timeout: a.timeout()}))
		},
		"downloadByName": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			o := gridfs.DownloadByNameOptions{Timeout: a.timeout()}
			if r := a.intp("revision"); r != nil {
				o.Revision = new(int(*r))
			}
			return contents(b.OpenDownloadStreamByName(ctx, a.string("filename"), o))
		},
		"delete": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			return result{}, b.Delete(ctx, a.any("id"), gridfs.DeleteOptions{Timeout: a.timeout()})
		},
		"deleteByName": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			return result{}, b.DeleteByName(ctx, a.string("filename"), gridfs.DeleteOptions{Timeout: a.timeout()})
		},
		"rename": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			return result{}, b.Rename(ctx, a.any("id"), a.string("newFilename"),
				gridfs.RenameOptions{Timeout: a.timeout()})
		},
		"renameByName": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			return result{}, b.RenameByName(ctx, a.string("filename"), a.string("newFilename"),
				gridfs.RenameOptions{Timeout: a.timeout()})
		},
		"drop": func(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
			return result{}, b.Drop(ctx, gridfs.DropOptions{Timeout: a.timeout()})
		},
		"find": findFiles,
	})
}

func createBucket(_ context.Context, r *runner, a *arguments) (any, error) {
	db, err := get[*allium.Database](r.entities, a.string("database"))
	if err != nil {
		return nil, err
	}
	var o gridfs.BucketOptions
	if d := a.document("bucketOptions"); d != nil {
		sub := &arguments{doc: d}
		sub.bool("disableMD5") // there is no MD5 to disable
		o = gridfs.BucketOptions{Name: sub.string("bucketName"), ChunkSizeBytes: int32(sub.int("chunkSizeBytes")),
			ReadConcern:    sub.readConcern("readConcern"),
			ReadPreference: sub.readPreference("readPreference"), WriteConcern: sub.writeConcern("writeConcern"),
			Timeout: sub.timeout()}
		a.adopt(sub)
	}
	return gridfs.NewBucket(db, o), nil
}

func (a *arguments) uploadOptions() gridfs.UploadOptions {
	a.bool("disableMD5") // there is no MD5 to disable
	return gridfs.UploadOptions{ChunkSizeBytes: int32(a.int("chunkSizeBytes")), Metadata: a.any("metadata"),
		ContentType: a.string("contentType"), Aliases: a.strings("aliases"), Timeout: a.timeout()}
}

// hexBytes returns a reader of the bytes that { $$hexBytes: <string> } stands for.
func (a *arguments) hexBytes(name string) io.Reader {
	sub := &arguments{doc: a.document(name)}
	v := sub.raw("$$hexBytes")
	digits, ok := v.StringValue()
	data, err := hex.DecodeString(digits)
	if !ok || err != nil {
		sub.err = fmt.Errorf("$$hexBytes is %v: %w", v, err)
	}
	a.adopt(sub)
	return bytes.NewReader(data)
}

// contents reads a file to its end.
func contents(s *gridfs.DownloadStream, err error) (result, error) {
	if err != nil {
		return result{}, err
	}
	defer s.Close()
	data, err := io.ReadAll(s)
	if err != nil {
		return result{}, err
	}
	return value(data)
}

func findFiles(ctx context.Context, _ *runner, b *bucket, a *arguments) (result, error) {
	cur, err := b.Find(ctx, a.filter(), gridfs.FindOptions{Sort: a.any("sort"), Skip: a.int("skip"),
		Limit: a.int("limit"), BatchSize: a.intp("batchSize"),
		MaxTime: a.millis("maxTimeMS"), AllowDiskUse: a.bool("allowDiskUse"), NoCursorTimeout: a.is("noCursorTimeout"),
		Timeout: a.timeout()})
	if err != nil {
		return result{}, err
	}
	files, err := cur.All(ctx)
	raws := []bson.Raw{}
	for _, f := range files {
		raws = append(raws, fileDocument(&f))
	}
	return docs(raws, err)
}

// fileDocument returns a file as its document has it.
func fileDocument(f *gridfs.File) bson.Raw {
	d := bson.D{{Key: "_id", Value: f.ID}, {Key: "length", Value: f.Length}, {Key: "chunkSize", Value: f.ChunkSize},
		{Key: "uploadDate", Value: f.UploadDate}}
	add := func(set bool, key string, v any) {
		if set {
			d = append(d, bson.E{Key: key, Value: v})
		}
	}
	add(f.Name != "", "filename", f.Name)
	add(f.Metadata != nil, "metadata", f.Metadata)
	add(f.MD5 != "", "md5", f.MD5)
	add(f.ContentType != "", "contentType", f.ContentType)
	add(f.Aliases != nil, "aliases", f.Aliases)
	for k, v := range f.Extra {
		add(true, k, v)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return raw
}
