// Command deepprobe prints each field of each event of commands, pools and servers, and what errors
// of connections are, with the deployment whose connection string its argument is. It is built
// with both versions of the official driver and with the drop-ins: testdata/deepprobe1 has what
// version 1 wants otherwise.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var (
	ctx   = context.Background()
	uri   string
	admin *mongo.Client // for fail points, and to make things ready
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var asked = say.Errors{
	Types: []reflect.Type{
		reflect.TypeFor[mongo.CommandError](), reflect.TypeFor[mongo.WriteException](),
		reflect.TypeFor[mongo.BulkWriteException](), reflect.TypeFor[mongo.MarshalError](),
	},
	Is: []error{mongo.ErrNoDocuments, mongo.ErrClientDisconnected, mongo.ErrWrongClient, mongo.ErrNilDocument,
		context.Canceled, context.DeadlineExceeded},
	Asks: []say.Ask{{Name: "network", Of: mongo.IsNetworkError}, {Name: "timeout", Of: mongo.IsTimeout},
		{Name: "duplicate", Of: mongo.IsDuplicateKeyError}},
}

// line prints a line, errors as what can be asked of them.
func line(what string, values ...any) {
	parts := make([]any, len(values))
	for i, v := range values {
		if err, ok := v.(error); ok {
			parts[i] = say.Scrubbed(asked.Text(err))
		} else {
			parts[i] = say.Dump(v)
		}
	}
	say.Line(what, parts...)
}

func d(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

// failing makes the next commands of these names fail: with a code, or, if that is 0, by closing
// the connection.
func failing(times, code int, labels []string, commands ...string) {
	data := d("failCommands", commands, "appName", "deep")
	if code == 0 {
		data = append(data, bson.E{Key: "closeConnection", Value: true})
	} else {
		data = append(data, bson.E{Key: "errorCode", Value: code})
	}
	if labels != nil {
		data = append(data, bson.E{Key: "errorLabels", Value: labels})
	}
	failPoint(times, data)
}

func failPoint(times int, data bson.D) {
	must(admin.Database("admin").RunCommand(ctx,
		d("configureFailPoint", "failCommand", "mode", d("times", times), "data", data)).Err())
}

// A watcher keeps the events of a client.
type watcher struct {
	sync.Mutex
	all                      bool // with endSessions, which is sent only if the client has a server at its end
	brief                    bool
	commands, pools, servers []string
	ready                    string           // the last event of a pool that is ready
	requests                 map[int64]string // the commands that have begun, by their numbers
}

func (w *watcher) options() ClientOption {
	note := func(list *[]string, format string, args ...any) {
		w.Lock()
		defer w.Unlock()
		*list = append(*list, fmt.Sprintf(format, args...))
	}
	ended := func(id int64, what string) string {
		w.Lock()
		defer w.Unlock()
		if w.requests[id] == what {
			return "of its own"
		}
		return "of another"
	}
	return options.Client().SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == "endSessions" && !w.all {
				return
			}
			w.Lock()
			w.requests[e.RequestID] = e.ConnectionID
			w.Unlock()
			if w.brief {
				note(&w.commands, "%s started", e.CommandName)
				return
			}
			note(&w.commands, "%s", say.Dump(*e))
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			if e.CommandName == "endSessions" && !w.all {
				return
			}
			if w.brief {
				note(&w.commands, "%s succeeded", e.CommandName)
				return
			}
			note(&w.commands, "%s %s", say.Dump(*e), ended(e.RequestID, e.ConnectionID))
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			note(&w.commands, "%s %s %s", say.Dump(e.CommandFinishedEvent), ended(e.RequestID, e.ConnectionID),
				say.Dump(failureOf(e)))
		},
	}).SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
		if e.Type == poolReady {
			w.Lock() // a monitor tells of it, beside the others
			defer w.Unlock()
			w.ready = say.Dump(*e)
			return
		}
		note(&w.pools, "%s", say.Dump(*e))
	}}).SetServerMonitor(w.serverMonitor(func(v any) { note(&w.servers, "%s", say.Dump(v)) }))
}

func (w *watcher) serverMonitor(note func(any)) *event.ServerMonitor {
	return &event.ServerMonitor{
		TopologyOpening:          func(e *event.TopologyOpeningEvent) { note(*e) },
		TopologyClosed:           func(e *event.TopologyClosedEvent) { note(*e) },
		ServerOpening:            func(e *event.ServerOpeningEvent) { note(*e) },
		ServerClosed:             func(e *event.ServerClosedEvent) { note(*e) },
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) { note(*e) },
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			if len(e.NewDescription.Servers) > 0 { // version 1 does not tell of the end
				note(*e)
			}
		},
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
			if !e.Awaited { // the others come when there is time for them
				note(*e)
			}
		},
	}
}

// say prints what was seen: of a client that did one thing, all.
func (w *watcher) say(what string, pools bool) {
	w.Lock()
	defer w.Unlock()
	for i, text := range w.commands {
		say.Line(fmt.Sprintf("%s: command event %02d", what, i), text)
	}
	if pools {
		for i, text := range w.pools {
			say.Line(fmt.Sprintf("%s: pool event %02d", what, i), text)
		}
	}
	if w.all {
		say.Line(what+": pool is ready", w.ready)
		// Monitors run beside each other: what they tell has no order.
		slices.Sort(w.servers)
		for i, text := range slices.Compact(w.servers) {
			say.Line(fmt.Sprintf("%s: server event %02d", what, i), text)
		}
	}
}

// A scene is what a client of its own does: its events are printed, and what it returns.
type scene struct {
	name  string
	pool  bool // whether the events of pools are printed, too
	brief bool // whether events of commands have their names only
	still bool // whether events are not printed at all
	opts  []ClientOption
	run   func(c *mongo.Collection) []any
}

func (s scene) play() {
	defer func() {
		if r := recover(); r != nil {
			line(s.name, "panic", r)
		}
	}()
	db := admin.Database("deep")
	must(db.Drop(ctx))
	_, err := db.Collection("c").InsertMany(ctx, []any{d("_id", 1, "x", "a"), d("_id", 2, "x", "b"),
		d("_id", 3, "x", "c")})
	must(err)
	w := &watcher{all: s.name == "connect", brief: s.brief, requests: map[int64]string{}}
	opts := append([]ClientOption{options.Client().ApplyURI(uri).SetAppName("deep").SetMaxPoolSize(1), w.options()},
		s.opts...)
	client, err := newClient(opts...)
	if err != nil {
		line(s.name, err)
		return
	}
	must(client.Ping(ctx, nil))
	w.Lock()
	w.commands = nil
	w.Unlock()
	values := s.run(client.Database("deep").Collection("c"))
	_ = admin.Database("admin").RunCommand(ctx, d("configureFailPoint", "failCommand", "mode", "off"))
	disconnected := client.Disconnect(ctx)
	line(s.name, values...)
	if disconnected != nil {
		line(s.name+": disconnect", disconnected)
	}
	if !s.still {
		w.say(s.name, s.pool)
	}
}

func main() {
	defer say.Flush()
	uri = os.Args[1]
	time.Local = time.UTC
	var err error
	admin, err = newClient(options.Client().ApplyURI(uri))
	must(err)
	defer func() { _ = admin.Disconnect(ctx) }()
	only := strings.Join(os.Args[2:], " ")
	if strings.Contains("zeros", only) {
		zeros()
	}
	if strings.Contains("registries", only) {
		registries()
	}
	if strings.Contains("misused", only) {
		misused()
		late()
	}
	for _, list := range [][]scene{commandScenes(), faultScenes(), unreachableScenes()} {
		for _, s := range list {
			if strings.Contains(s.name, only) {
				s.play()
			}
		}
	}
}
