package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	official "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"allium"
	"allium/bench/internal/nullserver"
	"allium/bson"
	"allium/gridfs"
)

// freshBucket empties the default bucket and puts a file of one byte into it, so that its indexes
// are there.
func (d *docs) freshBucket() error {
	ctx := context.Background()
	b := gridfs.NewBucket(d.ourDB)
	if err := b.Drop(ctx); err != nil {
		return err
	}
	_, err := b.UploadFromStream(ctx, "first", bytes.NewReader([]byte{1}))
	return err
}

// fileTasks are the specification's benchmarks of one large GridFS file.
func (d *docs) fileTasks() ([]Task, error) {
	ctx := context.Background()
	// The file to download is in a bucket of its own, which the uploads leave alone.
	stored := gridfs.NewBucket(d.ourDB, gridfs.BucketOptions{Name: "stored"})
	id, err := stored.UploadFromStream(ctx, "gridfstest", bytes.NewReader(d.gridFSLarge))
	if err != nil {
		return nil, err
	}
	up, down, err := largeFile(d.env, d.uri, d.ourDB, d.theirDB, "stored", id, d.gridFSLarge)
	up.Name, down.Name, up.Before = "multi/GridFS upload", "multi/GridFS download", d.freshBucket
	return []Task{up, down}, err
}

// nullFileTasks are the same against the null server.
func nullFileTasks(env *Env, uri string, ours *allium.Client, theirs *mongo.Client) ([]Task, error) {
	up, down, err := largeFile(env, uri, ours.Database("db"), theirs.Database("db"), "fs", nullserver.FileID,
		outsideHeap(nullserver.FileSize))
	if err != nil {
		return nil, err
	}
	up.Name, down.Name, up.CPU, down.CPU = "null/GridFS upload", "null/GridFS download", 0.5, 0.5
	ctx := context.Background()
	through := Task{Name: "null/GridFS download to a writer", Bytes: nullserver.FileSize, CPU: 0.5, CPUOfC: 0.8,
		C: env.cTask(uri, "download_away", "db", "fs", nullserver.FileID.Hex(), fmt.Sprint(nullserver.FileSize)),
		Allium: repeat(func() error {
			n, err := gridfs.NewBucket(ours.Database("db")).DownloadToStream(ctx, nullserver.FileID, io.Discard)
			return errors.Join(err, expect(int(n), nullserver.FileSize))
		}),
		Official: repeat(func() error {
			n, err := theirs.Database("db").GridFSBucket().DownloadToStream(ctx, official.ObjectID(nullserver.FileID),
				io.Discard)
			return errors.Join(err, expect(int(n), nullserver.FileSize))
		})}
	return []Task{up, down, through}, nil
}

// largeFile returns the tasks of uploading data from memory to the default bucket, and of
// downloading a file with data from another bucket to memory.
func largeFile(env *Env, uri string, ourDB *allium.Database, theirDB *mongo.Database, bucket string, id bson.ObjectID,
	data []byte) (up, down Task, err error) {
	ctx := context.Background()
	path, err := env.scratchFile("gridfs_"+ourDB.Name(), data)
	if err != nil {
		return up, down, err
	}
	up = Task{Bytes: len(data), Scale: 1, CPUOfC: 0.8, C: env.cTask(uri, "upload", ourDB.Name(), "fs", path),
		Allium: repeat(func() error {
			_, err := gridfs.NewBucket(ourDB).UploadFromStream(ctx, "file", bytes.NewReader(data))
			return err
		}),
		Official: repeat(func() error {
			_, err := theirDB.GridFSBucket().UploadFromStream(ctx, "file", bytes.NewReader(data))
			return err
		})}
	memory := outsideHeap(len(data))
	check := func(n int, err error) error {
		if err == nil && !bytes.Equal(memory[:1000], data[:1000]) {
			err = errors.New("other bytes came back")
		}
		return errors.Join(err, expect(n, len(data)))
	}
	down = Task{Bytes: len(data), Scale: 1, Values: fileValues(memory), CPUOfC: 0.8,
		C: env.cTask(uri, "download", ourDB.Name(), bucket, id.Hex(), fmt.Sprint(len(data))),
		Allium: repeat(func() error {
			s, err := gridfs.NewBucket(ourDB, gridfs.BucketOptions{Name: bucket}).OpenDownloadStream(ctx, id)
			if err != nil {
				return err
			}
			n, err := io.ReadFull(s, memory)
			return errors.Join(check(n, err), s.Close())
		}),
		Official: repeat(func() error {
			s, err := theirDB.GridFSBucket(options.GridFSBucket().SetName(bucket)).OpenDownloadStream(ctx,
				official.ObjectID(id))
			if err != nil {
				return err
			}
			n, err := io.ReadFull(s, memory)
			return errors.Join(check(n, err), s.Close())
		})}
	return up, down, nil
}

// manyFilesTasks are the specification's benchmarks that move GridFS files from and to disk,
// several at a time.
func (d *docs) manyFilesTasks(dir string, most int) ([]Task, error) {
	ctx := context.Background()
	files, size, err := unpack("parallel.tgz", "gridfs_multi", dir, most)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "downloads")
	if err := os.Mkdir(out, 0o700); err != nil {
		return nil, err
	}
	each := func(upload func(name string, f io.Reader) error) error {
		return parallel(files, func(name string) error {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			return upload(filepath.Base(name), f)
		})
	}
	upload := func(b *gridfs.Bucket) error {
		return each(func(name string, f io.Reader) error { _, err := b.UploadFromStream(ctx, name, f); return err })
	}
	stored := gridfs.BucketOptions{Name: "stored"}
	if err := upload(gridfs.NewBucket(d.ourDB, stored)); err != nil {
		return nil, err
	}
	ups := Task{Name: "parallel/GridFS multi-file upload", Bytes: size, Scale: 1, Before: d.freshBucket,
		CPUOfC: 0.8, C: d.cTask("upload_files", append([]string{"fs", "-"}, files...)...),
		Allium: repeat(func() error { return upload(gridfs.NewBucket(d.ourDB)) }),
		Official: repeat(func() error {
			b := d.theirDB.GridFSBucket()
			return each(func(name string, f io.Reader) error { _, err := b.UploadFromStream(ctx, name, f); return err })
		})}
	download := func(to func(name string, w io.Writer) (int64, error)) error {
		return parallel(files, func(name string) error {
			name = filepath.Base(name)
			f, err := os.Create(filepath.Join(out, name))
			if err != nil {
				return err
			}
			_, err = to(name, f)
			return errors.Join(err, f.Close())
		})
	}
	downs := Task{Name: "parallel/GridFS multi-file download", Bytes: size, Scale: 1,
		CPUOfC: 0.8, C: d.cTask("download_files", append([]string{"stored", out}, files...)...),
		Before: func() error {
			for _, name := range files {
				if err := os.Remove(filepath.Join(out, filepath.Base(name))); err != nil &&
					!errors.Is(err, os.ErrNotExist) {
					return fmt.Errorf("clear downloads: %w", err)
				}
			}
			return nil
		},
		Allium: repeat(func() error {
			b := gridfs.NewBucket(d.ourDB, stored)
			return download(func(name string, w io.Writer) (int64, error) {
				return b.DownloadToStreamByName(ctx, name, w)
			})
		}),
		Official: repeat(func() error {
			b := d.theirDB.GridFSBucket(options.GridFSBucket().SetName("stored"))
			return download(func(name string, w io.Writer) (int64, error) {
				return b.DownloadToStreamByName(ctx, name, w)
			})
		})}
	return []Task{ups, downs}, nil
}
