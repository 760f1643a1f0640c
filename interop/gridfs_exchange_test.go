package interop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"allium"
	alliumbson "allium/bson"
	"allium/gridfs"
	"allium/mongotest"
)

// TestGridFSExchange lets Allium and the official driver read, list and delete each other's files.
func TestGridFSExchange(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	p := connect(t, d)
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	ctx := t.Context()
	for _, chunk := range []int32{3, 1000, 255 << 10, 3 << 20} {
		name := fmt.Sprint("bucket", chunk)
		theirs := p.db.GridFSBucket(options.GridFSBucket().SetName(name).SetChunkSizeBytes(chunk))
		ours := gridfs.NewBucket(client.Database(p.db.Name()), gridfs.BucketOptions{Name: name, ChunkSizeBytes: chunk})
		for _, n := range []int{0, 1, int(chunk) - 1, int(chunk), int(chunk) + 1, 2*int(chunk) + 5, 5000} {
			data := make([]byte, n)
			rand.NewChaCha8([32]byte{byte(n)}).Read(data)
			fromThem := must(theirs.UploadFromStream(ctx, "theirs", bytes.NewReader(data), options.GridFSUpload().SetMetadata(bson.M{"n": n})))(t)
			fromUs := must(ours.UploadFromStream(ctx, "ours", bytes.NewReader(data), gridfs.UploadOptions{Metadata: alliumbson.M{"n": n}}))(t)

			var out bytes.Buffer
			if _, err := theirs.DownloadToStream(ctx, bson.ObjectID(fromUs), &out); err != nil || !bytes.Equal(out.Bytes(), data) {
				t.Errorf("chunks of %d, %d bytes: the official driver reads %d bytes of Allium's file: %v", chunk, n, out.Len(), err)
			}
			down := must(ours.OpenDownloadStream(ctx, alliumbson.ObjectID(fromThem)))(t)
			if got, err := io.ReadAll(down); err != nil || !bytes.Equal(got, data) {
				t.Errorf("chunks of %d, %d bytes: Allium reads %d bytes of the official driver's file: %v", chunk, n, len(got), err)
			}
			if v, _ := down.File().Metadata.Lookup("n").AsInt64(); v != int64(n) || down.File().ChunkSize != int64(chunk) || down.File().Name != "theirs" {
				t.Errorf("the official driver's file is %+v", down.File())
			}
			down.Close()
			if err := ours.Delete(ctx, alliumbson.ObjectID(fromThem)); err != nil {
				t.Error(err)
			}
			if err := theirs.Delete(ctx, bson.ObjectID(fromUs)); err != nil {
				t.Error(err)
			}
		}
		for _, c := range []string{".files", ".chunks"} {
			if n := must(p.db.Collection(name+c).CountDocuments(ctx, bson.D{}))(t); n != 0 {
				t.Errorf("%s%s: %d documents are left", name, c, n)
			}
			if specs := must(p.db.Collection(name + c).Indexes().ListSpecifications(ctx))(t); len(specs) != 2 {
				t.Errorf("%s%s: %d indexes", name, c, len(specs))
			}
		}
	}
}
