package gridfs

import (
	"fmt"
	"io/fs"

	"allium/bson"
	"allium/internal/failure"
)

// The classes of errors, for errors.Is. ErrFileNotFound and ErrRevisionNotFound are also
// fs.ErrNotExist.
var (
	// ErrFileNotFound is returned when no file has the id or the name.
	ErrFileNotFound error = &notFound{"file not found"}
	// ErrRevisionNotFound is returned when files have the name, but there is no such revision.
	ErrRevisionNotFound error = &notFound{"revision not found"}
	// ErrClosed is returned by a stream that is closed or aborted. It is also fs.ErrClosed.
	ErrClosed = fmt.Errorf("stream is closed: %w", fs.ErrClosed)
)

type notFound struct{ text string }

func (e *notFound) Error() string { return e.text }

func (e *notFound) Is(target error) bool { return target == fs.ErrNotExist }

// A CorruptError reports that a stored file does not match its document.
type CorruptError struct {
	ID     bson.RawValue // the file's
	Chunk  int64         // the index of the corrupt chunk, -1 for the file's document
	Reason string
}

// Error returns the file, the chunk and the reason.
func (e *CorruptError) Error() string {
	if e.Chunk < 0 {
		return fmt.Sprintf("file %v is corrupt: %s", e.ID, e.Reason)
	}
	return fmt.Sprintf("file %v is corrupt: chunk %d: %s", e.ID, e.Chunk, e.Reason)
}

var errNilContext = failure.ErrNilContext
