// Package gridfs stores files of any size in MongoDB, as the GridFS specification describes.
//
// A Bucket keeps its files in two collections: one document per file in "fs.files", and the
// contents in "fs.chunks", cut into chunks of 255 KiB.
//
//	bucket := gridfs.NewBucket(client.Database("app"))
//
//	id, err := bucket.UploadFromStream(ctx, "report.pdf", file)
//	n, err := bucket.DownloadToStream(ctx, id, os.Stdout)
//
// OpenUploadStream returns an io.WriteCloser, OpenDownloadStream an io.ReadSeekCloser that is also
// an io.ReaderAt and an io.WriterTo. FS returns a bucket as an fs.FS, so that http.FileServerFS
// serves it, with range requests.
//
// # Names and revisions
//
// A file's _id is unique, its name is not: files with the same name are revisions, ordered by the
// time at which their upload ended. The methods whose names end in ByName use the newest revision,
// the one that an option selects, or all of them.
//
// # Throughput and memory
//
// Chunks are written some MiB at a time, while the next ones are being filled, and read some MiB
// ahead. A stream holds a few such batches, whatever the size of its file. A session runs one
// operation at a time, so within a session nothing runs in the background.
//
// # Failure
//
// A stored file does not change, so its chunks are fetched by short, independent queries: a
// download continues across a failover, and no cursor stays open on the server while its reader is
// slow. Chunks are checked against the file's document: a missing chunk, one of the wrong size, or
// one too many is a *CorruptError.
//
// A read preference other than primary may select a member that does not have the whole file yet:
// shortly after an upload whose write concern did not wait for that member, the file may seem to be
// missing or corrupt.
//
// A file's document is written last; until then the file does not exist for readers. An upload that
// fails leaves its chunks behind, one that is aborted deletes them.
//
// # Time
//
// A bucket inherits its timeout from its database. It bounds a method from start to finish, and a
// stream from its opening to the end of Close: give long-lived streams a Timeout of their own. It
// does not interrupt the caller's own readers and writers.
package gridfs
