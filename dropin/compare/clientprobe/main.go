// Command clientprobe prints what package mongo does with the deployment whose connection string
// its argument is: results, errors, events. The test of package compare builds it with the official
// driver and with the drop-in, and compares what both print line by line.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var (
	out = bufio.NewWriter(os.Stdout)
	ctx = context.Background()
	uri string
)

// say prints a line: what was done, and what came of it.
func say(what string, values ...any) {
	parts := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case error:
			parts[i] = described(v)
		case nil:
			parts[i] = "nil"
		case bson.Raw:
			parts[i] = v.String()
		case bson.D, bson.M, []bson.D:
			text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
			parts[i] = fmt.Sprint(string(text), err)
			if m, ok := v.(bson.M); ok && len(m) > 1 {
				var keys []string
				for k, x := range m {
					keys = append(keys, fmt.Sprintf("%s:%T", k, x))
				}
				slices.Sort(keys)
				parts[i] = fmt.Sprint(keys)
			}
		case mongo.UpdateResult, *mongo.UpdateResult, *mongo.BulkWriteResult:
			parts[i] = fmt.Sprintf("%+v", v)
		default:
			parts[i] = fmt.Sprintf("%+v", v)
		}
	}
	fmt.Fprintf(out, "%s\t%s\n", what, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(strings.Join(parts, " | ")))
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
		marshal mongo.MarshalError
		invalid mongo.InvalidArgumentError
	)
	if errors.As(err, &command) {
		text += fmt.Sprintf(" command{%d %s %q %v raw=%v wrapped=%v max=%v}", command.Code, command.Name,
			command.Message, command.Labels, len(command.Raw) > 0, command.Wrapped, command.IsMaxTimeMSExpiredError())
	}
	if errors.As(err, &write) {
		text += fmt.Sprintf(" write{%v %v %v raw=%v}", concern(write.WriteConcernError),
			[]mongo.WriteError(write.WriteErrors), write.Labels, len(write.Raw) > 0)
	}
	if errors.As(err, &bulk) {
		text += fmt.Sprintf(" bulk{%v %v", concern(bulk.WriteConcernError), bulk.Labels)
		for _, e := range bulk.WriteErrors {
			text += fmt.Sprintf(" [%d %d %q %v %v request=%T]", e.Index, e.Code, e.Message, e.Details, len(e.Raw) > 0,
				e.Request)
		}
		text += "}"
	}
	if errors.As(err, &client) {
		text += fmt.Sprintf(" client{%v %v %v %+v}", client.WriteError, client.WriteConcernErrors, client.WriteErrors,
			client.PartialResult)
	}
	if errors.As(err, &labeled) {
		text += fmt.Sprintf(" labels{%v %v %v}", labeled.HasErrorLabel("TransientTransactionError"),
			labeled.HasErrorLabel("RetryableWriteError"), labeled.HasErrorLabel("NetworkError"))
	}
	if errors.As(err, &server) {
		text += fmt.Sprintf(" server{%v %v %v %v}", server.ErrorCodes(), server.HasErrorCode(11000),
			server.HasErrorMessage("dup"), server.HasErrorCodeWithMessage(11000, "E11000"))
	}
	if errors.As(err, &marshal) {
		text += fmt.Sprintf(" marshal{%T %v}", marshal.Value, marshal.Err)
	}
	for name, is := range map[string]bool{"InvalidArgument": errors.As(err, &invalid)} {
		if is {
			text += " " + name
		}
	}
	for _, s := range sentinels {
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
	if codes := mongo.ErrorCodes(err); len(codes) > 0 {
		text += fmt.Sprint(" ", codes)
	}
	return text
}

func concern(e *mongo.WriteConcernError) string {
	if e == nil {
		return "nil"
	}
	return fmt.Sprintf("{%s %d %q %v %v %v}", e.Name, e.Code, e.Message, e.Details, len(e.Raw) > 0, e.Error())
}

var sentinels = []error{
	mongo.ErrNoDocuments, mongo.ErrNilDocument, mongo.ErrNilValue, mongo.ErrEmptySlice, mongo.ErrNotSlice,
	mongo.ErrClientDisconnected, mongo.ErrWrongClient,
	mongo.ErrMultipleIndexDrop, mongo.ErrInvalidIndexValue, mongo.ErrFileNotFound, mongo.ErrMissingChunk,
	mongo.ErrWrongSize, mongo.ErrStreamClosed,
	mongo.ErrMissingResumeToken, mongo.ErrNilCursor, context.Canceled, context.DeadlineExceeded,
}

// try calls f, and prints what it panics with.
func try(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			say(what, "panic", fmt.Sprintf("%T", r), r)
		}
	}()
	f()
}

func check(err error) {
	if err != nil {
		out.Flush()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func connect(opts ...*options.ClientOptions) *mongo.Client {
	c, err := mongo.Connect(append([]*options.ClientOptions{options.Client().ApplyURI(uri)}, opts...)...)
	check(err)
	return c
}

func main() {
	defer out.Flush()
	uri = os.Args[1]
	time.Local = time.UTC
	client := connect()
	defer client.Disconnect(ctx)
	db := client.Database("probe")
	check(db.Drop(ctx))
	for _, part := range []struct {
		name string
		run  func(*mongo.Database)
	}{
		{"literals", literals}, {"crud", crud}, {"arguments", arguments}, {"cursors", cursors}, {"results", results},
		{"bulk", bulk}, {"clientBulk", clientBulk},
		{"catalog", catalog}, {"indexes", indexes}, {"sessions", sessions}, {"streams", streams}, {"files", files},
		{"monitored", monitored}, {"coding", coding}, {"failures", failures},
		{"encryption", encrypted}, {"contexts", contexts}, {"listers", listers},
		{"kinds", kinds}, {"credentials", credentials}, {"toolOptions", toolOptions}, {"commandFields", commandFields},
		{"clientBulks", clientBulks},
	} {
		try(part.name, func() { part.run(db) })
	}
}
