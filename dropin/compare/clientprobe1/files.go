package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/gridfs"
	"go.mongodb.org/mongo-driver/mongo/options"
)

// files prints what GridFS does.
func files(db *mongo.Database) {
	b, err := gridfs.NewBucket(db, options.GridFSBucket().SetName("files").SetChunkSizeBytes(4))
	must(err)
	id, err := b.UploadFromStream("a", strings.NewReader("hello world"),
		options.GridFSUpload().SetMetadata(bson.M{"k": 1}))
	must(err)
	var out bytes.Buffer
	n, err := b.DownloadToStream(id, &out)
	line("download", n, out.String(), err)
	time.Sleep(5 * time.Millisecond) // the revisions have different times
	up, err := b.OpenUploadStreamWithID("second", "a")
	must(err)
	w, err := up.Write([]byte("second"))
	line("upload", w, err, up.FileID, up.Close(), errors.Is(up.Close(), gridfs.ErrStreamClosed))
	for _, revision := range []int32{-1, 0, 1, -2, 5} {
		out.Reset()
		n, err = b.DownloadToStreamByName("a", &out, options.GridFSName().SetRevision(revision))
		line("by name "+string(rune('c'+revision)), n, out.String(), err, err == gridfs.ErrFileNotFound)
	}
	ds, err := b.OpenDownloadStream(id)
	must(err)
	f := ds.GetFile()
	skipped, err := ds.Skip(6)
	rest, err2 := io.ReadAll(ds)
	line("stream", f.Name, f.Length, f.ChunkSize, f.ID == id, f.Metadata, skipped, err, string(rest), err2, ds.Close())
	_, err = b.OpenDownloadStream("none")
	line("none", err, err == gridfs.ErrFileNotFound)
	ab, err := b.OpenUploadStream("aborted")
	must(err)
	_, err = ab.Write([]byte("0123456789"))
	line("abort", err, ab.Abort(), ab.Close() != nil)
	c, err := b.Find(bson.M{"filename": "a"}, options.GridFSFind().SetSort(bson.M{"uploadDate": 1}))
	must(err)
	var found []gridfs.File
	line("find", c.All(ctx, &found), len(found), found[0].Name, found[1].ID)
	line("rename", b.Rename(id, "b"), b.Rename("none", "b"))
	line("delete", b.Delete(id), b.Delete(id))
	chunks, err := b.GetChunksCollection().CountDocuments(ctx, bson.M{})
	line("chunks", chunks, err, b.GetFilesCollection().Name())
	must(b.SetReadDeadline(time.Unix(1, 0)))
	_, err = b.OpenDownloadStream("second")
	line("deadline", err != nil)
	must(b.SetReadDeadline(time.Time{}))
	line("drop", b.Drop())
	small, err := gridfs.NewBucket(db)
	line("defaults", small.GetFilesCollection().Name(), small.GetChunksCollection().Name(), err)
}
