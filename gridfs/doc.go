// Package gridfs stores files of any size in MongoDB (specification: GridFS).
//
// A Bucket keeps its files in two collections: one document per file in "fs.files", and the
// contents in "fs.chunks", cut into chunks of 255 KiB.
//
//	bucket := gridfs.NewBucket(client.Database("app"))
//
//	id, err := bucket.UploadFromStream(ctx, "report.pdf", file)
//	n, err := bucket.DownloadToStream(ctx, id, os.Stdout)
//
// OpenUploadStream returns an io.WriteCloser, OpenDownloadStream an io.ReadSeekCloser that is an
// io.ReaderAt and an io.WriterTo too. FS shows a bucket as an fs.FS, so that http.FileServerFS
// serves it, with range requests.
//
// # Names and revisions
//
// A file's _id is unique, its name is not: files with the same name are revisions of each other,
// told apart by the time at which their upload ended. The methods whose names end in ByName take
// the newest one, or the one that an option names, or all of them.
//
// # Throughput and memory
//
// Chunks are written some MiB at a time, while the next ones are being filled, and read some MiB
// ahead. A stream holds a few such batches, whatever the size of its file. Within a session, which
// runs one operation at a time, nothing is done in the background.
//
// # Failure
//
// A stored file does not change, so that its chunks are fetched by independent, short queries: a
// download goes on across a failover, and no cursor waits on the server while its reader is slow.
// What is read is checked against the file's document: a missing chunk, one of the wrong size, or
// one too many is a *CorruptError.
//
// A read preference other than the primary may choose a member that does not have all of a file
// yet: shortly after the upload, without a write concern that waits for that member, the file seems
// not to be there or seems to be corrupt.
//
// The files collection gets its document when everything else is stored; until then nobody sees the
// file. An upload that fails leaves its chunks behind, one that is aborted deletes them.
//
// # Time
//
// A bucket inherits its timeout from its database. It bounds a method from start to finish, and the
// life of a stream from its opening to the end of Close: give streams that are meant to live long a
// Timeout of their own (specification: Client Side Operations Timeout). It does not bound the calls
// of the caller's own readers and writers.
package gridfs
