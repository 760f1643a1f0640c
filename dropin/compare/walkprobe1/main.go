// Command walkprobe1 is walkprobe for version 1: it does with the driver's things what the table of
// package walk says, on the deployment whose connection string its first argument is. The second is
// the seed of the random walks.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"allium/dropin/compare/say"
	"allium/dropin/compare/walk"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/gridfs"
	"go.mongodb.org/mongo-driver/mongo/options"
)

var (
	ctx    = context.Background()
	uri    string
	client *mongo.Client
	db     *mongo.Database
)

func main() {
	uri = os.Args[1]
	time.Local = time.UTC
	client = connect()
	db = client.Database("walks")
	must(db.Drop(ctx))
	prepare()
	w := &walk.World{Version: "v1", Kinds: kinds, Values: values, Error: asked.Text, Text: text}
	w.Run(os.Args[2])
	must(client.Disconnect(ctx))
}

func connect(opts ...*options.ClientOptions) *mongo.Client {
	c, err := mongo.Connect(ctx, append([]*options.ClientOptions{options.Client().ApplyURI(uri)}, opts...)...)
	must(err)
	return c
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// text describes values whose text is in Go's order of a map, or of a pointer.
func text(v any) string {
	switch v := v.(type) {
	case bson.Raw:
		return "raw " + v.String()
	case bson.D, []bson.D:
		text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
		return fmt.Sprintf("%T %s %v", v, text, err)
	case mongo.Session:
		return "a session"
	case *mongo.SingleResult:
		raw, err := v.Raw()
		return fmt.Sprint("a result ", len(raw) > 0, " ", err)
	}
	return ""
}

// asked is what the walks ask of errors.
var asked = say.Errors{
	Types: []reflect.Type{
		reflect.TypeFor[mongo.CommandError](),
		reflect.TypeFor[mongo.WriteException](),
		reflect.TypeFor[mongo.BulkWriteException](),
		reflect.TypeFor[mongo.MarshalError](),
	},
	Is: []error{mongo.ErrNoDocuments, mongo.ErrNilDocument, mongo.ErrNilValue, mongo.ErrEmptySlice,
		mongo.ErrClientDisconnected, mongo.ErrWrongClient, mongo.ErrMultipleIndexDrop, mongo.ErrInvalidIndexValue,
		mongo.ErrMissingResumeToken, mongo.ErrNilCursor, mongo.ErrUnacknowledgedWrite, gridfs.ErrFileNotFound,
		gridfs.ErrWrongSize,
		gridfs.ErrStreamClosed, gridfs.ErrWrongIndex, errMine,
		context.Canceled, context.DeadlineExceeded},
	Asks: []say.Ask{{Name: "duplicate", Of: mongo.IsDuplicateKeyError}, {Name: "timeout", Of: mongo.IsTimeout},
		{Name: "network", Of: mongo.IsNetworkError}},
}
