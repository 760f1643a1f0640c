package conn

import (
	"crypto/sha256"
	"fmt"
	"os"
)

// watched is a file that may be replaced while the client runs. It is looked at by content, which
// finds what a time stamp of the file system misses, and by its name each time, so that a symbolic
// link may be turned to another file, as Kubernetes does.
type watched[T any] struct {
	option, name string // without a name there is no file
	parse        func([]byte) (T, error)

	value T     // of the last content that was good
	err   error // why value is not that of the file; nil: it is

	sum    [sha256.Size]byte // of the content that was looked at last; a key does not stay in memory
	parsed error             // what was wrong with that
	told   string            // by news
}

// read looks at the file, and reports whether there is a new value.
func (w *watched[T]) read() bool {
	if w.name == "" {
		return false
	}
	if w.drained() {
		return false
	}
	data, err := os.ReadFile(w.name)
	if err != nil {
		w.err = fmt.Errorf("%s %s: %w", w.option, w.name, pathReason(err))
		return false
	}
	sum := sha256.Sum256(data)
	fresh := sum != w.sum
	if fresh {
		var v T
		w.sum = sum
		if v, w.parsed = w.parse(data); w.parsed == nil {
			w.value = v
		}
		clear(data)
	}
	w.err = nil
	if w.parsed != nil {
		w.err = fmt.Errorf("%s %s: %w", w.option, w.name, w.parsed)
	}
	return fresh && w.parsed == nil
}

// drained reports whether the file is a pipe that was read already.
func (w *watched[T]) drained() bool {
	if w.sum == ([sha256.Size]byte{}) {
		return false
	}
	info, err := os.Stat(w.name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// stale says why the file's content of before is used.
func (w *watched[T]) stale() string {
	return w.err.Error() + "; what was read before is used"
}

// news returns a reason to use the file's content of before that was not told yet, "" if there is
// none.
func (w *watched[T]) news() string {
	if w.err == nil {
		w.told = ""
		return ""
	}
	text := w.stale()
	if text == w.told {
		return ""
	}
	w.told = text
	return text
}
