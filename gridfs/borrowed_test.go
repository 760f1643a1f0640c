package gridfs

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"allium"
	"allium/mongotest"
)

// When Write returns, nothing reads the caller's memory any more, whatever is under way.
func TestWriteGivesMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		b := NewBucket(client.Database("db"))
		s, err := b.OpenUploadStream(t.Context(), "f", UploadOptions{ChunkSizeBytes: 1000})
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for i, n := range []int{10, s.batchSize, 3 * s.batchSize, 2*s.batchSize - 10, s.batchSize, 5} {
			p := bytes.Repeat([]byte{byte(i + 1)}, n)
			want = append(want, p...)
			if _, err := s.Write(p); err != nil {
				t.Fatal(err)
			}
			for _, w := range s.writes {
				if w.buf == nil {
					t.Errorf("write %d of %d bytes has returned, and its memory is still read", i, n)
				}
			}
			clear(p)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := b.DownloadToStream(t.Context(), s.ID(), &got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes of %d come back, %v", got.Len(), len(want), err)
		}
	})
}
