package interop

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestOfficialGridFS(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		bucket := p.db.GridFSBucket()
		content := make([]byte, 2*255*1024+1000)
		rand.NewChaCha8([32]byte{1}).Read(content)

		id := must(bucket.UploadFromStream(ctx, "report.bin", bytes.NewReader(content), options.GridFSUpload().SetMetadata(doc("owner", "ada"))))(t)
		if n := must(bucket.GetChunksCollection().CountDocuments(ctx, doc("files_id", id)))(t); n != 3 {
			t.Errorf("%d chunks", n)
		}
		var out bytes.Buffer
		if n := must(bucket.DownloadToStream(ctx, id, &out))(t); n != int64(len(content)) || !bytes.Equal(out.Bytes(), content) {
			t.Errorf("%d bytes come back, and they are not those that were stored", n)
		}

		// A second revision with small chunks, written piece by piece.
		up := must(bucket.OpenUploadStream(ctx, "report.bin", options.GridFSUpload().SetChunkSizeBytes(7)))(t)
		for _, part := range []string{"a second ", "revision, in ", "several pieces"} {
			must(up.Write([]byte(part)))(t)
		}
		if err := up.Close(); err != nil {
			t.Fatal(err)
		}
		for revision, want := range map[int32]string{-1: "a second revision, in several pieces", 1: "a second revision, in several pieces", 0: string(content), -2: string(content)} {
			down := must(bucket.OpenDownloadStreamByName(ctx, "report.bin", options.GridFSName().SetRevision(revision)))(t)
			if got := must(io.ReadAll(down))(t); string(got) != want {
				t.Errorf("revision %d has %d bytes", revision, len(got))
			}
			down.Close()
		}

		if err := bucket.Rename(ctx, id, "renamed.bin"); err != nil {
			t.Fatal(err)
		}
		cur := must(bucket.Find(ctx, doc("metadata.owner", "ada")))(t)
		var files []struct {
			ID     bson.ObjectID `bson:"_id"`
			Name   string        `bson:"filename"`
			Length int64
		}
		if err := cur.All(ctx, &files); err != nil || len(files) != 1 || files[0].ID != id || files[0].Name != "renamed.bin" || files[0].Length != int64(len(content)) {
			t.Errorf("files %+v, %v", files, err)
		}

		// An upload that is given up leaves nothing behind.
		up = must(bucket.OpenUploadStream(ctx, "never"))(t)
		must(up.Write(content))(t)
		if err := up.Abort(); err != nil {
			t.Fatal(err)
		}
		if n := must(bucket.GetChunksCollection().CountDocuments(ctx, doc("files_id", up.FileID)))(t); n != 0 {
			t.Errorf("%d chunks of an aborted upload", n)
		}

		if err := bucket.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		if err := bucket.Delete(ctx, id); !errors.Is(err, mongo.ErrFileNotFound) {
			t.Errorf("to delete it again: %v", err)
		}
		if _, err := bucket.DownloadToStream(ctx, id, io.Discard); !errors.Is(err, mongo.ErrFileNotFound) {
			t.Errorf("to download what is deleted: %v", err)
		}
		indexes := must(bucket.GetChunksCollection().Indexes().ListSpecifications(ctx))(t)
		if len(indexes) != 2 || indexes[1].Name != "files_id_1_n_1" || indexes[1].Unique == nil || !*indexes[1].Unique {
			t.Errorf("indexes of the chunks: %+v", indexes)
		}
		if err := bucket.Drop(ctx); err != nil {
			t.Fatal(err)
		}
		if names := must(p.db.ListCollectionNames(ctx, doc()))(t); len(names) != 0 {
			t.Errorf("what is left of the dropped bucket: %v", names)
		}
	})
}
