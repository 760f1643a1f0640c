package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// broken says what can be asked of an error of a connection, and how its text begins.
func broken(err error) any {
	if err == nil {
		return "no error"
	}
	var (
		command mongo.CommandError
		write   mongo.WriteException
		bulk    mongo.BulkWriteException
		server  mongo.ServerError
		timeout net.Error
		labeled mongo.LabeledError
		labels  []string
	)
	var connection topology.ConnectionError
	isConnection := errors.As(err, &connection)
	isCommand, isWrite, isBulk := errors.As(err, &command), errors.As(err, &write), errors.As(err, &bulk)
	if errors.As(err, &labeled) {
		for _, l := range []string{"NetworkError", "RetryableWriteError", "TransientTransactionError",
			"UnknownTransactionCommitResult", "NoWritesPerformed", "NetworkTimeoutError"} {
			if labeled.HasErrorLabel(l) {
				labels = append(labels, l)
			}
		}
	}
	return map[string]any{
		"connection": isConnection, "of": strings.Count(connection.ConnectionID, ":"),
		"inside":  connection.Wrapped != nil,
		"command": isCommand, "code": command.Code, "name": command.Name, "has labels": len(command.Labels),
		"raw": len(command.Raw) > 0, "wrapped": command.Wrapped != nil, "write": isWrite, "bulk": isBulk,
		"server": errors.As(err, &server), "net": errors.As(err, &timeout), "labeled": labeled != nil, "labels": labels,
		"network": mongo.IsNetworkError(err), "timeout": mongo.IsTimeout(err),
		"deadline": errors.Is(err, context.DeadlineExceeded), "canceled": errors.Is(err, context.Canceled),
		"EOF": errors.Is(err, io.EOF), "no documents": errors.Is(err, mongo.ErrNoDocuments),
		"says deadline": strings.Contains(err.Error(), "context deadline exceeded"),
		"says canceled": strings.Contains(err.Error(), "context canceled"),
		"disconnected":  errors.Is(err, mongo.ErrClientDisconnected), "start": start(err.Error()),
	}
}

// told says what the failure of an event is: its type is another with each driver.
func told(err error) any {
	return map[string]any{"connection": errors.As(err, new(topology.ConnectionError)),
		"network": mongo.IsNetworkError(err), "timeout": mongo.IsTimeout(err),
		"deadline": errors.Is(err, context.DeadlineExceeded), "canceled": errors.Is(err, context.Canceled),
		"EOF": errors.Is(err, io.EOF), "start": start(err.Error())}
}

// start is how a text begins: the rest of those of connections is the driver's own.
func start(text string) string {
	words := strings.Fields(text)
	if strings.Contains(text, "context deadline exceeded") || strings.Contains(text, "context canceled") {
		return "" // Allium's own
	}
	if strings.HasPrefix(strings.TrimSpace(text), "connection(") {
		return "connection()"
	}
	return strings.Join(words[:min(len(words), 2)], " ")
}

// calls are the methods that send a command, by the name of that.
var calls = []struct {
	name string
	run  func(ctx context.Context, c *mongo.Collection) error
}{
	{"insert", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.InsertOne(ctx, d("_id", 90))
		return err
	}},
	{"insert many", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.InsertMany(ctx, []any{d("_id", 91), d("_id", 92)})
		return err
	}},
	{"update", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.UpdateOne(ctx, d("_id", 1), d("$set", d("a", 1)))
		return err
	}},
	{"update many", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.UpdateMany(ctx, d(), d("$set", d("a", 1)))
		return err
	}},
	{"delete", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.DeleteOne(ctx, d("_id", 1))
		return err
	}},
	{"find", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.Find(ctx, d())
		return err
	}},
	{"find one", func(ctx context.Context, c *mongo.Collection) error { return c.FindOne(ctx, d()).Err() }},
	{"aggregate", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.Aggregate(ctx, []bson.D{d("$match", d())})
		return err
	}},
	{"count", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.CountDocuments(ctx, d())
		return err
	}},
	{"distinct", func(ctx context.Context, c *mongo.Collection) error {
		_, err := distinct(ctx, c, "x", d())
		return err
	}},
	{"findAndModify", func(ctx context.Context, c *mongo.Collection) error {
		return c.FindOneAndUpdate(ctx, d("_id", 1), d("$set", d("a", 1))).Err()
	}},
	{"bulk", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(d("_id", 93))})
		return err
	}},
	{"createIndexes", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("x", 1)})
		return err
	}},
	{"listIndexes", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.Indexes().List(ctx)
		return err
	}},
	{"listCollections", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.Database().ListCollectionNames(ctx, d())
		return err
	}},
	{"listDatabases", func(ctx context.Context, c *mongo.Collection) error {
		_, err := c.Database().Client().ListDatabaseNames(ctx, d())
		return err
	}},
	{"ping", func(ctx context.Context, c *mongo.Collection) error {
		return c.Database().Client().Ping(ctx, nil)
	}},
	{"run", func(ctx context.Context, c *mongo.Collection) error {
		return c.Database().RunCommand(ctx, d("count", "c")).Err()
	}},
	{"drop", func(ctx context.Context, c *mongo.Collection) error { return c.Drop(ctx) }},
	{"stream", func(ctx context.Context, c *mongo.Collection) error {
		s, err := c.Watch(ctx, []bson.D{})
		if err == nil {
			_ = s.Close(ctx)
		}
		return err
	}},
}

var sent = []string{"insert", "update", "delete", "find", "aggregate", "distinct", "findAndModify", "createIndexes",
	"listIndexes", "listCollections", "listDatabases", "ping", "count", "drop", "getMore"}

// faultScenes are those about servers that do not answer, or answer with an error.
func faultScenes() []scene {
	var out []scene
	for i, call := range calls {
		for _, fault := range []struct {
			name   string
			times  int
			code   int
			labels []string
		}{
			{"closes once", 1, 0, nil}, {"closes", 5, 0, nil}, {"steps down once", 1, 10107, nil},
			{"shuts down", 5, 91, nil}, {"conflicts", 5, 112, []string{"TransientTransactionError"}},
			{"is retryable", 5, 189, []string{"RetryableWriteError"}}, {"refuses", 1, 13, nil}, {"expires", 1, 50, nil},
		} {
			if fault.times > 1 && (i > 5 || i == 4) && call.name != "stream" {
				continue // it is retried, or not, as others are
			}
			out = append(out, scene{brief: true, name: call.name + " " + fault.name,
				pool: call.name == "insert" && fault.code == 0,
				run: func(c *mongo.Collection) []any {
					failing(fault.times, fault.code, fault.labels, sent...)
					return []any{broken(call.run(ctx, c))}
				}})
		}
		// The official driver's change stream of version 1 tries again, or not, as the timer of its
		// connection or that of its context is the first.
		still := call.name == "stream"
		out = append(out, scene{brief: true, still: still, name: call.name + " too late",
			run: func(c *mongo.Collection) []any {
				failPoint(5, d("failCommands", sent, "appName", "deep", "blockConnection", true, "blockTimeMS", 900))
				short, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
				defer cancel()
				return []any{broken(call.run(short, c))}
			}}, scene{brief: true, name: call.name + " cancelled", run: func(c *mongo.Collection) []any {
			failPoint(5, d("failCommands", sent, "appName", "deep", "blockConnection", true, "blockTimeMS", 900))
			short, cancel := context.WithCancel(ctx)
			defer time.AfterFunc(250*time.Millisecond, cancel).Stop()
			return []any{broken(call.run(short, c))}
		}}, scene{brief: true, name: call.name + " times out",
			opts: []ClientOption{options.Client().SetTimeout(300 * time.Millisecond)},
			run: func(c *mongo.Collection) []any {
				failPoint(5, d("failCommands", sent, "appName", "deep", "blockConnection", true, "blockTimeMS", 900))
				return []any{broken(call.run(ctx, c))}
			}}, scene{brief: true, name: call.name + " disconnected", run: func(c *mongo.Collection) []any {
			must(c.Database().Client().Disconnect(ctx))
			return []any{call.run(ctx, c)}
		}})
		for _, mechanism := range []string{"", "SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"} {
			if mechanism != "" && i > 0 {
				continue // it is refused as it is for others
			}
			out = append(out, scene{brief: true, name: call.name + " by nobody " + mechanism,
				opts: []ClientOption{options.Client().SetAuth(options.Credential{Username: "nobody", Password: "x",
					AuthMechanism: mechanism})},
				run: func(c *mongo.Collection) []any {
					err := call.run(ctx, c)
					return []any{broken(err), err.Error()}
				}})
		}
		if call.name == "stream" {
			continue // the official driver resumes it, and fails for another reason
		}
		for _, fault := range []struct {
			name  string
			times int
			code  int
		}{{"closes", 1, 0}, {"refuses", 1, 13}, {"shuts down", 1, 91}} {
			out = append(out, scene{brief: true, name: call.name + " in a transaction " + fault.name,
				run: func(c *mongo.Collection) []any {
					s, err := c.Database().Client().StartSession()
					must(err)
					defer s.EndSession(ctx)
					must(s.StartTransaction())
					failing(fault.times, fault.code, nil, sent...)
					in := mongo.NewSessionContext(ctx, s)
					return []any{broken(call.run(in, c)), broken(s.CommitTransaction(ctx)),
						broken(s.AbortTransaction(ctx))}
				}})
		}
	}
	return out
}
