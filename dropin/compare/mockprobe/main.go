// Command mockprobe prints what the methods that send commands return for replies which no server
// sends: those of a mock deployment. Each method has good replies, which are spoilt field by field.
// It is built with both versions of the official driver and with the drop-ins: testdata/mockprobe1
// has what version 1 wants otherwise.
package main

import (
	"context"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

var ctx = context.Background()

var asked = say.Errors{
	Types: []reflect.Type{
		reflect.TypeFor[mongo.CommandError](), reflect.TypeFor[mongo.WriteException](),
		reflect.TypeFor[mongo.BulkWriteException](), reflect.TypeFor[mongo.MarshalError](),
	},
	Is:   []error{mongo.ErrNoDocuments, mongo.ErrMissingResumeToken, context.DeadlineExceeded, io.EOF},
	Asks: []say.Ask{{Name: "network", Of: mongo.IsNetworkError}, {Name: "timeout", Of: mongo.IsTimeout}},
}

func d(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

func reader() io.Reader { return strings.NewReader("abc") }

// drained reads what there is.
func drained(s io.ReadCloser) ([]byte, error) {
	b, err := io.ReadAll(s)
	_ = s.Close()
	return b, err
}

// got is what a method has returned.
func got[T any](v T, err error) []any {
	if err != nil {
		return []any{say.Dump(v), err}
	}
	return []any{say.Dump(v)}
}

// gone is what a method has returned that returns an error alone.
func gone(err error) []any { return []any{err} }

// line prints a line, errors as what can be asked of them.
func line(what string, values ...any) {
	for i, v := range values {
		if err, ok := v.(error); ok {
			values[i] = say.Scrubbed(asked.Text(err))
		}
	}
	say.Line(what, values...)
}

func main() {
	only := strings.Join(os.Args[1:], " ")
	// A mock deployment of version 1 wants a test.
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "mock",
		F: func(t *testing.T) {
			for _, c := range append(calls, moreCalls()...) {
				for _, s := range spoil(c) {
					if name := c.name + ": " + s.name; strings.Contains(name, only) {
						mocked(t, s.replies, func(db *mongo.Database) { play(name, db, c.run) })
					}
				}
			}
			say.Flush()
			syscall.Exit(0) // version 1's deployment fails the test for what is not at issue
		}}}, nil, nil)
}

func play(name string, db *mongo.Database, run func(*mongo.Database) []any) {
	defer func() {
		if r := recover(); r != nil {
			line(name, "panic")
		}
	}()
	line(name, run(db)...)
}
