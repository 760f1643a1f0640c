package gridfs

import (
	"fmt"
	"io/fs"

	"allium/bson"
	"allium/internal/failure"
)

// The classes of errors, for errors.Is. Those that say that something is not there are also
// fs.ErrNotExist.
var (
	// ErrFileNotFound is returned where no file has the id or the name that was asked for.
	ErrFileNotFound error = &notFound{"file not found"}
	// ErrRevisionNotFound is returned where files have the name, but there is no such revision.
	ErrRevisionNotFound error = &notFound{"revision not found"}
	// ErrClosed is returned by a stream that is closed or aborted. It is also fs.ErrClosed.
	ErrClosed = fmt.Errorf("stream is closed: %w", fs.ErrClosed)
)

type notFound struct{ text string }

func (e *notFound) Error() string { return e.text }

func (e *notFound) Is(target error) bool { return target == fs.ErrNotExist }

// CorruptError says that a stored file is not what its document says.
type CorruptError struct {
	ID     bson.RawValue // the file's
	Chunk  int64         // the index of the chunk that is wrong, -1 if it is the file's document
	Reason string
}

// Error names the file, the chunk and what is wrong.
func (e *CorruptError) Error() string {
	if e.Chunk < 0 {
		return fmt.Sprintf("file %v is corrupt: %s", e.ID, e.Reason)
	}
	return fmt.Sprintf("file %v is corrupt: chunk %d: %s", e.ID, e.Chunk, e.Reason)
}

var errNilContext = failure.ErrNilContext
