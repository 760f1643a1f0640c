package gridfs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/gridfs"
	"allium/internal/norace"
	"allium/mongotest"
)

// ways are the ways in which an upload from a stream can end before its source does.
var ways = map[string]func(ctx context.Context, cancel context.CancelFunc) readFunc{
	"context ends in Read": func(_ context.Context, cancel context.CancelFunc) readFunc {
		return func(p []byte) (int, error) { cancel(); return len(p), nil }
	},
	"context ends, and Read fails with it": func(ctx context.Context, cancel context.CancelFunc) readFunc {
		return func([]byte) (int, error) { cancel(); return 0, ctx.Err() }
	},
	"context ends, and so does the source": func(_ context.Context, cancel context.CancelFunc) readFunc {
		return func([]byte) (int, error) { cancel(); return 0, io.EOF }
	},
	"deadline": func(ctx context.Context, _ context.CancelFunc) readFunc {
		return func(p []byte) (int, error) { <-ctx.Done(); return len(p), nil }
	},
	"Read fails": func(context.Context, context.CancelFunc) readFunc {
		return func([]byte) (int, error) { return 0, io.ErrClosedPipe }
	},
	"Read panics": func(context.Context, context.CancelFunc) readFunc {
		return func([]byte) (int, error) { panic("in Read") }
	},
	"Read ends": func(context.Context, context.CancelFunc) readFunc {
		return func([]byte) (int, error) { runtime.Goexit(); return 0, nil }
	},
	"Read lies": func(context.Context, context.CancelFunc) readFunc {
		return func(p []byte) (int, error) { return len(p) + 1, nil }
	},
	"Read is negative": func(context.Context, context.CancelFunc) readFunc {
		return func([]byte) (int, error) { return -1, nil }
	},
	"no progress": func(context.Context, context.CancelFunc) readFunc { return func([]byte) (int, error) { return 0, nil } },
	"panics with nil": func(context.Context, context.CancelFunc) readFunc {
		return func([]byte) (int, error) { var r *bytes.Reader; return r.Read(nil) }
	},
	"fails, and panics": func(_ context.Context, cancel context.CancelFunc) readFunc {
		return func([]byte) (int, error) { cancel(); panic("in Read") }
	},
}

// TestUploadLeavesNothing ends uploads in each way after each number of bytes, by Read and by
// WriteTo, while inserts are slow: no chunk is left, whether its insert was answered, under way or
// not sent, and the call ends within half a second.
func TestUploadLeavesNothing(t *testing.T) {
	several := 40 // five batches
	if norace.Detecting {
		several = 10 // two
	}
	for _, what := range slices.Sorted(maps.Keys(ways)) {
		t.Run(what, func(t *testing.T) {
			bubble(t, 0, func(t *testing.T, w *world) {
				b := gridfs.NewBucket(w.db)
				w.watch(nil)
				for _, chunks := range []int{0, 1, several} {
					for _, slow := range []time.Duration{0, 50 * time.Millisecond} {
						for _, writerTo := range []bool{false, true} {
							name := fmt.Sprintf("%d chunks, inserts take %v, WriterTo %v", chunks, slow, writerTo)
							if slow > 0 {
								w.d.FailCommand(t, mongotest.Fail{Commands: []string{"insert"}, Block: slow})
							}
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							end := ways[what](ctx, cancel)
							var r io.Reader = io.MultiReader(onlyReader{bytes.NewReader(make([]byte, chunks*chunkSize))}, onlyReader{end})
							if writerTo {
								r = writesTo{onlyReader{r}}
							} else {
								r = onlyReader{r}
							}
							var err error
							done := make(chan any, 1)
							go func() {
								returned := false
								defer func() {
									v := recover()
									if v == nil && !returned {
										v = "goexit"
									}
									done <- v
								}()
								_, err = b.UploadFromStream(ctx, "f", r)
								returned = true
							}()
							unusual := <-done
							late := time.Duration(0)
							if deadline, _ := ctx.Deadline(); time.Now().After(deadline) {
								late = time.Since(deadline)
							}
							cancel()
							if late > 500*time.Millisecond {
								t.Errorf("%s: returned %v after its context ended", name, late)
							}
							if err == nil && unusual == nil {
								t.Errorf("%s: no error", name)
							}
							synctest.Wait()
							time.Sleep(time.Second) // whatever is under way arrives
							if f, c := w.count("fs.files"), w.count("fs.chunks"); f != 0 || c != 0 {
								t.Errorf("%s: %d files and %d chunks are left (%v, %v)", name, f, c, err, unusual)
							}
						}
					}
				}
			})
		})
	}
}

// writesTo is a source that writes itself.
type writesTo struct{ io.Reader }

func (w writesTo) WriteTo(to io.Writer) (int64, error) {
	var total int64
	for p := make([]byte, chunkSize); ; {
		n, err := w.Read(p)
		m, writeErr := to.Write(p[:n])
		total += int64(m)
		switch {
		case err == io.EOF:
			return total, nil
		case err != nil:
			return total, err
		case writeErr != nil:
			return total, writeErr
		case n == 0:
			return total, io.ErrNoProgress
		}
	}
}
