package gridfs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// The times of these tests are those of a synctest bubble: nobody waits for them.

// bubble runs a test with a deployment in a bubble and a client with a timeout.
func bubble(t *testing.T, timeout time.Duration, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		d := testdeploy.Start(t, testdeploy.ReplicaSet(1).With("an in-memory network", mongotest.InMemory()))
		o := allium.ClientOptions{Dialer: d.Mock(t, "an in-memory network")}
		if timeout > 0 {
			o.Timeout = &timeout
		}
		client, err := allium.Open(d.URI(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, d: d, client: client, db: client.Database("db")}
		w.watch(nil)
		test(t, w)
	})
}

func checkTimeout(t *testing.T, what string, err error) {
	t.Helper()
	var timeout *mongoerr.TimeoutError
	if !errors.As(err, &timeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: want a TimeoutError, got %v", what, err)
	}
}

// TestProseCSOTUpload is prose test 6 of the specification Client Side Operations Timeout,
// "GridFS - Upload".
func TestProseCSOTUpload(t *testing.T) {
	t.Run("uploads via openUploadStream can be timed out", func(t *testing.T) {
		bubble(t, 150*time.Millisecond, func(t *testing.T, w *world) {
			w.d.FailCommand(t, mongotest.Fail{Commands: []string{"insert"}, Times: 1, Block: 200 * time.Millisecond})
			s, err := gridfs.NewBucket(w.db).OpenUploadStream(t.Context(), "filename")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Write([]byte{0x12}); err != nil {
				t.Fatal(err)
			}
			checkTimeout(t, "close", s.Close())
		})
	})
	t.Run("aborting an upload stream can be timed out", func(t *testing.T) {
		bubble(t, 150*time.Millisecond, func(t *testing.T, w *world) {
			w.d.FailCommand(t, mongotest.Fail{Commands: []string{"delete"}, Times: 1, Block: 200 * time.Millisecond})
			s, err := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 2}).OpenUploadStream(t.Context(), "filename")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Write([]byte{1, 2, 3, 4}); err != nil {
				t.Fatal(err)
			}
			checkTimeout(t, "abort", s.Abort())
		})
	})
}

// TestProseCSOTDownload is prose test 7 of the specification Client Side Operations Timeout,
// "GridFS - Download".
func TestProseCSOTDownload(t *testing.T) {
	bubble(t, 150*time.Millisecond, func(t *testing.T, w *world) {
		id, err := bson.ParseObjectID("000000000000000000000005")
		if err != nil {
			t.Fatal(err)
		}
		doc := bson.D{{Key: "_id", Value: id}, {Key: "length", Value: 10}, {Key: "chunkSize", Value: 4}, {Key: "uploadDate", Value: bson.DateTime(0)},
			{Key: "md5", Value: "57d83cd477bfb1ccd975ab33d827a92b"}, {Key: "filename", Value: "length-10"}, {Key: "contentType", Value: "application/octet-stream"},
			{Key: "aliases", Value: bson.A{}}, {Key: "metadata", Value: bson.D{}}}
		if _, err := w.db.Collection("fs.files").InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
		w.forget()
		s, err := gridfs.NewBucket(w.db).OpenDownloadStream(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w.d.FailCommand(t, mongotest.Fail{Commands: []string{"find"}, Times: 1, Block: 200 * time.Millisecond})
		_, err = s.Read(make([]byte, 10))
		checkTimeout(t, "read", err)
		if got, want := w.names(), "find fs.files, find fs.chunks"; got != want {
			t.Errorf("commands: %s, want %s", got, want)
		}
	})
}

// TestTimeoutIsTheStreams: a timeout is that of a whole stream, not that of each command, and those
// of the options win.
func TestTimeoutIsTheStreams(t *testing.T) {
	slow := mongotest.Fail{Commands: []string{"insert", "find", "delete", "update", "drop"}, Block: 80 * time.Millisecond}
	options := map[string]struct {
		client time.Duration
		bucket *time.Duration
		option *time.Duration
		fails  bool
	}{
		"client":                    {200 * time.Millisecond, nil, nil, true},
		"bucket":                    {time.Minute, new(200 * time.Millisecond), nil, true},
		"option":                    {time.Minute, new(time.Minute), new(200 * time.Millisecond), true},
		"option without bound":      {200 * time.Millisecond, new(200 * time.Millisecond), new(time.Duration(0)), false},
		"option that is long":       {200 * time.Millisecond, nil, new(time.Minute), false},
		"bucket without bound":      {200 * time.Millisecond, new(time.Duration(0)), nil, false},
		"nothing":                   {0, nil, nil, false},
		"bucket, nothing else":      {0, new(200 * time.Millisecond), nil, true},
		"option of a single upload": {0, nil, new(200 * time.Millisecond), true},
	}
	for name, o := range options {
		t.Run(name, func(t *testing.T) {
			norace.Skip(t, "it moves 20 MiB four times")
			bubble(t, o.client, func(t *testing.T, w *world) {
				ctx := t.Context()
				fast := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 1 << 20, Timeout: new(time.Duration(0))})
				b := gridfs.NewBucket(w.db, gridfs.BucketOptions{ChunkSizeBytes: 1 << 20, Timeout: o.bucket})
				data := make([]byte, 20<<20)
				id, err := fast.UploadFromStream(ctx, "f", bytes.NewReader(data))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.UploadFromStream(ctx, "warm up", strings.NewReader("")); err != nil {
					t.Fatal(err)
				}
				w.d.FailCommand(t, slow)
				check := func(what string, err error) {
					t.Helper()
					if o.fails {
						checkTimeout(t, what, err)
					} else if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				_, err = b.UploadFromStream(ctx, "g", onlyReader{bytes.NewReader(data)}, gridfs.UploadOptions{Timeout: o.option})
				check("upload", err)
				_, err = b.DownloadToStream(ctx, id, io.Discard, gridfs.DownloadOptions{Timeout: o.option})
				check("download", err)
				_, err = b.DownloadToStreamByName(ctx, "f", io.Discard, gridfs.DownloadByNameOptions{Timeout: o.option})
				check("download by name", err)
				check("delete by name", b.DeleteByName(ctx, "f", gridfs.DeleteOptions{Timeout: o.option}))
			})
		})
	}
}

// TestCommandsWithinATimeout: every command tells the server how much time there is.
func TestCommandsWithinATimeout(t *testing.T) {
	bubble(t, time.Minute, func(t *testing.T, w *world) {
		b := gridfs.NewBucket(w.db)
		ctx := t.Context()
		id := upload(t, b, "f", noise(50*chunkSize))
		download(t, b, id)
		var err error
		for _, e := range []error{b.Rename(ctx, id, "g"), b.RenameByName(ctx, "g", "h"), b.Delete(ctx, id), b.Drop(ctx)} {
			err = errors.Join(err, e)
		}
		cur, findErr := b.Find(ctx, bson.D{})
		if err = errors.Join(err, findErr); err != nil {
			t.Fatal(err)
		}
		cur.Close(ctx)
		for _, c := range w.commands() {
			if ms, ok := c.body.Lookup("maxTimeMS").AsInt64(); !ok || ms <= 0 || ms > 60_000 {
				t.Errorf("%v: maxTimeMS is %v", c, c.body.Lookup("maxTimeMS"))
			}
		}
	})
}

// TestTimeoutInsideTransact: what runs in a Transact with a timeout has that one, and is refused
// one of its own.
func TestTimeoutInsideTransact(t *testing.T) {
	bubble(t, 0, func(t *testing.T, w *world) {
		b := gridfs.NewBucket(w.db)
		id := upload(t, b, "f", noise(chunkSize))
		own := new(time.Second)
		for name, timeout := range map[string]*time.Duration{"bounded": new(time.Minute), "without a timeout": nil} {
			err := w.client.Transact(t.Context(), func(ctx context.Context) error {
				for what, do := range map[string]func(timeout *time.Duration) error{
					"rename": func(timeout *time.Duration) error {
						return b.Rename(ctx, id, "g", gridfs.RenameOptions{Timeout: timeout})
					},
					"download": func(timeout *time.Duration) error {
						_, err := b.DownloadToStream(ctx, id, io.Discard, gridfs.DownloadOptions{Timeout: timeout})
						return err
					},
					"upload": func(timeout *time.Duration) error {
						_, err := b.UploadFromStream(ctx, "h", strings.NewReader("text"), gridfs.UploadOptions{Timeout: timeout})
						return err
					},
				} {
					refused := do(own)
					if got := refused != nil && strings.Contains(refused.Error(), "inside Transact"); got != (timeout != nil) {
						t.Errorf("%s, %s: %v", name, what, refused)
					}
					if err := do(nil); err != nil {
						t.Errorf("%s, %s without a timeout: %v", name, what, err)
					}
				}
				return nil
			}, allium.TransactionOptions{Timeout: timeout})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
