package walk

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// Files is the kind of files that are read.
func Files(open func(args ...string) (any, error), random int) Kind {
	return Kind{Open: open, Random: random, Steps: map[string]func(any, ...string) []any{
		"Read": func(thing any, args ...string) []any {
			p := make([]byte, Number(args[0]))
			n, err := thing.(io.Reader).Read(p)
			return []any{n, err, fmt.Sprintf("%q", p)}
		},
		"ReadAll": func(thing any, _ ...string) []any {
			all, err := io.ReadAll(thing.(io.Reader))
			return []any{string(all), err}
		},
		"ReadNil": func(thing any, _ ...string) []any {
			n, err := thing.(io.Reader).Read(nil)
			return []any{n, err}
		},
		"Is": func(thing any, _ ...string) []any {
			_, to := thing.(io.WriterTo)
			_, seek := thing.(io.Seeker)
			return []any{to, seek}
		},
	}, Close: func(thing any) { _ = thing.(io.Closer).Close() }}
}

// Uploads is the kind of files that are written. Stored counts what the server has of one.
func Uploads(open func(args ...string) (any, error), stored func(thing any) []any) Kind {
	return Kind{Open: open, Random: 2, Steps: map[string]func(any, ...string) []any{
		"Write": func(thing any, args ...string) []any {
			n, err := thing.(io.Writer).Write(bytes.Repeat([]byte("x"), Number(args[0])))
			return []any{n, err}
		},
		"Stored": func(thing any, _ ...string) []any { return stored(thing) },
	}, Close: func(thing any) { _ = thing.(interface{ Abort() error }).Abort() }}
}

func of[T any](v T) func() any { return func() any { return v } }

// Plain are values of Go's own types that arguments may name.
var Plain = map[string]func() any{
	"past":    of(time.Unix(1, 0)),
	"zero":    of(time.Time{}),
	"future":  of(time.Now().Add(time.Hour)),
	"structs": func() any { return new([]struct{ T string }) },
	"misfits": func() any { return new([]struct{ T int }) },
	"filled": func() any {
		return &[]struct{ T, U string }{{"was", "u"}, {"too", "u"}, {"long", "u"}, {"l", "u"}}
	},
	"int":    func() any { return new(int) },
	"misfit": func() any { return new(struct{ T int }) },
	"struct": func() any { return new(struct{ T string }) },
}
