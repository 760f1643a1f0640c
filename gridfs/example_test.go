package gridfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/gridfs"
	"allium/mongoerr"
	"allium/mongotest"
)

// connect starts a deployment inside this process and connects to it. An application calls
// allium.Open with the connection string of its own deployment.
func connect() (db *allium.Database, done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	return client.Database("app"), func() {
		client.Close(context.Background())
		d.Stop()
	}
}

// check keeps the examples short.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	db, done := connect()
	defer done()
	ctx := context.Background()

	bucket := gridfs.NewBucket(db)
	id, err := bucket.UploadFromStream(ctx, "hello.txt", strings.NewReader("hello, GridFS\n"))
	check(err)
	n, err := bucket.DownloadToStream(ctx, id, os.Stdout)
	check(err)
	fmt.Println(n, "bytes")
	// Output:
	// hello, GridFS
	// 14 bytes
}

func ExampleNewBucket() {
	db, done := connect()
	defer done()
	ctx := context.Background()

	pictures := gridfs.NewBucket(db, gridfs.BucketOptions{Name: "pictures", ChunkSizeBytes: 1 << 20, WriteConcern: consistency.Majority()})
	_, err := pictures.UploadFromStream(ctx, "cat.png", bytes.NewReader(make([]byte, 2_500_000)))
	check(err)
	n, err := db.Collection("pictures.chunks").CountDocuments(ctx, bson.D{})
	check(err)
	fmt.Println(n, "chunks")
	// Output: 3 chunks
}

func ExampleBucket_OpenUploadStream() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)

	up, err := bucket.OpenUploadStream(ctx, "numbers.txt", gridfs.UploadOptions{Metadata: bson.M{"owner": "ada"}})
	check(err)
	defer up.Abort() // does nothing after Close
	for i := range 3 {
		fmt.Fprintln(up, i)
	}
	check(up.Close()) // now the file is there

	_, err = bucket.DownloadToStream(ctx, up.ID(), os.Stdout)
	check(err)
	// Output:
	// 0
	// 1
	// 2
}

func ExampleBucket_UploadFromStreamWithID() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)

	check(bucket.UploadFromStreamWithID(ctx, "invoice-7", "invoice.txt", strings.NewReader("42 EUR")))
	err := bucket.UploadFromStreamWithID(ctx, "invoice-7", "invoice.txt", strings.NewReader("43 EUR"))
	fmt.Println("again:", errors.Is(err, mongoerr.ErrDuplicateKey))
	// Output: again: true
}

func ExampleBucket_OpenDownloadStream() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)
	id, err := bucket.UploadFromStream(ctx, "alphabet", strings.NewReader("abcdefghijklmnopqrstuvwxyz"))
	check(err)

	down, err := bucket.OpenDownloadStream(ctx, id)
	check(err)
	defer down.Close()
	fmt.Println(down.File().Name, down.File().Length)
	_, err = down.Seek(-3, io.SeekEnd)
	check(err)
	end, err := io.ReadAll(down)
	check(err)
	fmt.Printf("%s\n", end)
	// Output:
	// alphabet 26
	// xyz
}

// Streams fit where package io wants a reader, a writer, or both.
func ExampleUploadStream_ReadFrom() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)

	up, err := bucket.OpenUploadStreamWithID(ctx, "log-1", "log.txt")
	check(err)
	defer up.Abort() // does nothing after Close
	_, err = up.Write([]byte("a first line\n"))
	check(err)
	_, err = up.ReadFrom(strings.NewReader("and a second one\n"))
	check(err)
	check(up.Close())

	down, err := bucket.OpenDownloadStreamByName(ctx, "log.txt")
	check(err)
	defer down.Close()
	word := make([]byte, 5)
	_, err = down.ReadAt(word, 2) // does not move what Read reads next
	check(err)
	fmt.Printf("%s\n", word)
	_, err = down.Read(word[:1])
	check(err)
	fmt.Printf("%s", word[:1])
	_, err = down.WriteTo(os.Stdout)
	check(err)
	// Output:
	// first
	// a first line
	// and a second one
}

func ExampleBucket_DownloadToStreamByName() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)
	_, err := bucket.UploadFromStream(ctx, "note", strings.NewReader("a note\n"))
	check(err)

	_, err = bucket.DownloadToStreamByName(ctx, "note", os.Stdout) // the newest revision
	check(err)
	_, err = bucket.DownloadToStreamByName(ctx, "note", os.Stdout, gridfs.DownloadByNameOptions{Revision: new(0)}) // the oldest one
	check(err)
	_, err = bucket.DownloadToStreamByName(ctx, "note", os.Stdout, gridfs.DownloadByNameOptions{Revision: new(1)})
	fmt.Println(errors.Is(err, gridfs.ErrRevisionNotFound))
	// Output:
	// a note
	// a note
	// true
}

func ExampleBucket_Find() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)
	for name, owner := range map[string]string{"a.txt": "ada", "b.txt": "bob", "c.txt": "ada"} {
		_, err := bucket.UploadFromStream(ctx, name, strings.NewReader(name), gridfs.UploadOptions{Metadata: bson.M{"owner": owner}})
		check(err)
	}

	cur, err := bucket.Find(ctx, bson.M{"metadata.owner": "ada"}, gridfs.FindOptions{Sort: bson.D{{Key: "filename", Value: 1}}})
	check(err)
	for file, err := range cur.Seq(ctx) {
		check(err)
		fmt.Println(file.Name, file.Length)
	}
	// Output:
	// a.txt 5
	// c.txt 5
}

func ExampleBucket_RenameByName() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)
	id, err := bucket.UploadFromStream(ctx, "draft", strings.NewReader("text"))
	check(err)

	check(bucket.RenameByName(ctx, "draft", "final"))
	check(bucket.Rename(ctx, id, "printed"))
	check(bucket.Delete(ctx, id))
	err = bucket.DeleteByName(ctx, "printed")
	fmt.Println(errors.Is(err, gridfs.ErrFileNotFound))
	check(bucket.Drop(ctx))
	// Output: true
}

// A bucket is a file system, which package net/http serves with range requests.
func ExampleBucket_FS() {
	db, done := connect()
	defer done()
	ctx := context.Background()
	bucket := gridfs.NewBucket(db)
	_, err := bucket.UploadFromStream(ctx, "films/long.bin", bytes.NewReader(bytes.Repeat([]byte("0123456789"), 1_000_000)))
	check(err)

	check(fs.WalkDir(bucket.FS(ctx), ".", func(path string, d fs.DirEntry, err error) error {
		fmt.Println(path)
		return err
	}))

	server := httptest.NewServer(http.FileServerFS(bucket.FS(ctx)))
	defer server.Close()
	req, err := http.NewRequest("GET", server.URL+"/films/long.bin", nil)
	check(err)
	req.Header.Set("Range", "bytes=9000003-9000006")
	res, err := server.Client().Do(req)
	check(err)
	defer res.Body.Close()
	part, err := io.ReadAll(res.Body)
	check(err)
	fmt.Println(res.Status, res.Header.Get("Content-Range"))
	fmt.Printf("%s\n", part)
	// Output:
	// .
	// films
	// films/long.bin
	// 206 Partial Content bytes 9000003-9000006/10000000
	// 3456
}
