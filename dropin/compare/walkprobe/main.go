// Command walkprobe walks: it does with the driver's things what the table of package walk says, on
// the deployment whose connection string its first argument is. The second is the seed of the
// random walks.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"allium/dropin/compare/walk"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var (
	out    = bufio.NewWriter(os.Stdout)
	ctx    = context.Background()
	uri    string
	client *mongo.Client
	db     *mongo.Database
)

func main() {
	uri = os.Args[1]
	seed, err := strconv.ParseUint(os.Args[2], 10, 64)
	must(err)
	time.Local = time.UTC
	client = connect()
	db = client.Database("walks")
	must(db.Drop(ctx))
	prepare()
	w := &walk.World{Version: "v2", Kinds: kinds, Values: values, Error: described, Text: text,
		Say: func(what, came string) {
			fmt.Fprintf(out, "%s\t%s\n", what, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(came))
		}}
	w.Run(seed)
	// A walk may have left a transaction, whose locks would hold up whoever drops the database.
	must(client.Database("admin").RunCommand(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}}).Err())
	must(db.Drop(ctx))
	must(client.Disconnect(ctx))
	must(out.Flush())
}

func connect(opts ...*options.ClientOptions) *mongo.Client {
	c, err := mongo.Connect(append([]*options.ClientOptions{options.Client().ApplyURI(uri)}, opts...)...)
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
	case *mongo.ClientBulkWriteResult:
		return "&" + fmt.Sprintf("%+v", *v)
	case *mongo.Session:
		return "a session"
	case *mongo.SingleResult:
		raw, err := v.Raw()
		return fmt.Sprint("a result ", len(raw) > 0, " ", err)
	}
	return ""
}

// described says of what type an error is, and what can be asked of it.
func described(err error) string {
	text := fmt.Sprintf("%T %q", err, err.Error())
	var (
		command mongo.CommandError
		write   mongo.WriteException
		bulk    mongo.BulkWriteException
		client  mongo.ClientBulkWriteException
		labeled mongo.LabeledError
		server  mongo.ServerError
	)
	if errors.As(err, &command) {
		text += fmt.Sprintf(" command{%d %s %v raw=%v}",
			command.Code, command.Name, command.Labels, len(command.Raw) > 0)
	}
	if errors.As(err, &write) {
		text += fmt.Sprintf(" write{%v %v %v raw=%v}", write.WriteConcernError != nil, len(write.WriteErrors),
			write.Labels, len(write.Raw) > 0)
	}
	if errors.As(err, &bulk) {
		text += fmt.Sprintf(" bulk{%v %v", bulk.WriteConcernError != nil, bulk.Labels)
		for _, e := range bulk.WriteErrors {
			text += fmt.Sprintf(" [%d %d %T]", e.Index, e.Code, e.Request)
		}
		text += "}"
	}
	if errors.As(err, &client) {
		text += fmt.Sprintf(" client{%v %v %v %+v}", client.WriteError, client.WriteConcernErrors, client.WriteErrors,
			client.PartialResult)
	}
	if errors.As(err, &labeled) {
		for _, l := range []string{"TransientTransactionError", "RetryableWriteError", "NetworkError",
			"UnknownTransactionCommitResult"} {
			if labeled.HasErrorLabel(l) {
				text += " label:" + l
			}
		}
	}
	if errors.As(err, &server) {
		text += fmt.Sprintf(" server{%v}", server.ErrorCodes())
	}
	for _, s := range []error{mongo.ErrNoDocuments, mongo.ErrNilDocument, mongo.ErrNilValue, mongo.ErrEmptySlice,
		mongo.ErrNotSlice, mongo.ErrClientDisconnected, mongo.ErrWrongClient, mongo.ErrMultipleIndexDrop,
		mongo.ErrFileNotFound, mongo.ErrMissingChunk, mongo.ErrWrongSize, mongo.ErrStreamClosed,
		mongo.ErrNilCursor, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, s) {
			text += " is:" + s.Error()
		}
	}
	if mongo.IsDuplicateKeyError(err) {
		text += " duplicate"
	}
	if mongo.IsTimeout(err) {
		text += " timeout"
	}
	if mongo.IsNetworkError(err) {
		text += " network"
	}
	return text
}
