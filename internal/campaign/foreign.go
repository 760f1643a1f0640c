package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"

	"allium"
	"allium/bson"
	"allium/event"
)

// errBomb is what code of the simulated program's panics with, and errExit stands for a goroutine
// that it has ended by runtime.Goexit.
var (
	errBomb = errors.New("the simulated program's own panic")
	errExit = errors.New("the simulated program has ended its goroutine")
)

// places are where the adversary lets code of the program's fail.
var places = []string{
	"CommandStarted", "CommandSucceeded", "CommandFailed",
	"ConnectionCheckOutStarted", "ConnectionCheckedOut", "ConnectionCheckedIn", "ConnectionCreated", "ConnectionReady",
	"ConnectionClosed", "PoolReady", "PoolCleared",
	"ServerHeartbeatStarted", "ServerHeartbeatSucceeded", "ServerHeartbeatFailed", "ServerDescriptionChanged",
	"TopologyDescriptionChanged", "log",
}

// charges are the places in which code of one client's program will fail.
type charges struct {
	log   func(format string, args ...any) // told of each failure, and from where it was called
	mu    sync.Mutex
	armed map[string]charge
}

type charge struct {
	left  int
	exits bool // by runtime.Goexit
}

func (c *charges) arm(place string, ch charge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed == nil {
		c.armed = map[string]charge{}
	}
	c.armed[place] = ch
}

func (c *charges) disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.armed)
}

// meet is called by the code at a place.
func (c *charges) meet(place string) {
	c.mu.Lock()
	ch := c.armed[place]
	fails := ch.left > 0
	if fails {
		ch.left--
		c.armed[place] = ch
	}
	c.mu.Unlock()
	if fails {
		if c.log != nil {
			c.log("the program fails in %s, by Goexit %t: %s", place, ch.exits, callers())
		}
		fail(ch.exits)
	}
}

// callers returns the functions of the driver that the program's code is called by, innermost
// first.
func callers() string {
	pcs := make([]uintptr, 60)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var names []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if name, ok := strings.CutPrefix(f.Function, "allium"); ok {
			names = append(names, fmt.Sprintf("%s:%d", strings.TrimLeft(name, "/."), f.Line))
		}
	}
	return strings.Join(names, " < ")
}

func fail(exits bool) {
	if exits {
		runtime.Goexit()
	}
	panic(errBomb)
}

// serverMonitor and logger are listeners that do nothing but fail.
func (c *charges) serverMonitor() *event.ServerMonitor {
	return &event.ServerMonitor{
		ServerHeartbeatStarted:     func(*event.ServerHeartbeatStarted) { c.meet("ServerHeartbeatStarted") },
		ServerHeartbeatSucceeded:   func(*event.ServerHeartbeatSucceeded) { c.meet("ServerHeartbeatSucceeded") },
		ServerHeartbeatFailed:      func(*event.ServerHeartbeatFailed) { c.meet("ServerHeartbeatFailed") },
		ServerDescriptionChanged:   func(*event.ServerDescriptionChanged) { c.meet("ServerDescriptionChanged") },
		TopologyDescriptionChanged: func(*event.TopologyDescriptionChanged) { c.meet("TopologyDescriptionChanged") },
	}
}

type failingHandler struct{ c *charges }

func (failingHandler) Enabled(context.Context, slog.Level) bool    { return true }
func (h failingHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h failingHandler) WithGroup(string) slog.Handler             { return h }
func (h failingHandler) Handle(context.Context, slog.Record) error { h.c.meet("log"); return nil }

// request calls fn as a server of net/http calls a handler: on a goroutine of its own, whose panic
// or end is that of the request alone. Only what the program itself has caused may come.
func (w *world) request(what string, fn func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				e, _ := v.(error)
				if err = errBomb; !ownFailure(e) {
					w.violation("%s panicked with %v", what, v)
				}
			}
		}()
		err = errExit
		err = fn()
	}()
	<-done
	return err
}

// ownFailure reports whether err comes from code of the program's.
func ownFailure(err error) bool {
	return err != nil && (errors.Is(err, errBomb) || errors.Is(err, errExit) ||
		strings.Contains(err.Error(), "runtime.Goexit was called"))
}

// faulty is a document whose encoder fails.
type faulty struct{ exits bool }

func (f faulty) MarshalBSON() ([]byte, error) {
	fail(f.exits)
	return nil, nil
}

// fragile is a document whose decoder fails when it is told to.
type fragile struct{ ID int }

func (f *fragile) UnmarshalBSON(data []byte) error {
	id, _ := bson.Raw(data).Lookup("_id").AsInt64()
	f.ID = int(id)
	if id%10 == 7 {
		fail(id%20 == 7)
	}
	return nil
}

// fail lets the program's encoders, decoders and functions fail in an operation. Nothing of what
// could not be encoded is there.
func (a *actor) fail() {
	exits, at, batch := a.r.IntN(2) == 0, a.r.IntN(3), int32(2+a.r.IntN(20))
	how := a.r.IntN(9)
	broken := []any{bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "x", Value: 2}}, bson.D{{Key: "x", Value: 3}}}
	broken[at] = faulty{exits}
	coll := allium.CollectionOf[any](a.client().Database(dbName), "never")
	static := allium.CollectionOf[fragile](a.client().Database(dbName), "static")
	rec := (*record)(nil)
	if how >= 5 {
		rec = a.note(2)
		rec.atomic = true
	}
	err := a.do("failing code", func(ctx context.Context) error {
		switch how {
		case 0:
			_, err := coll.InsertOne(ctx, faulty{exits})
			return err
		case 1:
			_, err := coll.InsertMany(ctx, broken[at:])
			return err
		case 2:
			_, err := coll.UpdateOne(ctx, byID(1), bson.D{{Key: "$set", Value: faulty{exits}}},
				allium.UpdateOptions{Upsert: true})
			return err
		case 3: // a decoder in a loop over a cursor
			cur, err := static.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: &batch, Sort: byID(1)})
			if err != nil {
				return err
			}
			for _, err := range cur.Seq(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		case 4: // a loop's body
			cur, err := a.coll("static").Find(ctx, bson.D{}, allium.FindOptions{BatchSize: &batch})
			if err != nil {
				return err
			}
			for doc, err := range cur.Seq(ctx) {
				if err == nil && number(doc, "_id")%10 == 3 {
					fail(exits)
				}
			}
			return nil
		}
		// In a transaction: its function, an encoder or a listener in it fails.
		return a.client().Transact(ctx, func(ctx context.Context) error {
			for i, e := range rec.writes {
				if _, err := a.coll("lists").UpdateOne(ctx, byID(e.list), push(e.token)); err != nil {
					return err
				}
				if i == at%2 {
					switch how {
					case 5:
						fail(exits)
					case 6:
						_, err := coll.InsertOne(ctx, faulty{exits})
						return err
					case 7:
						_, err := static.FindOne(ctx, byID(7))
						return err
					case 8:
						_, err := a.coll("static").FindOne(context.WithValue(ctx, failing{}, exits), byID(3))
						return err
					}
				}
			}
			return nil
		})
	})
	if err == nil && how != 3 && how != 4 {
		a.violation("failing code: an operation in which code failed returned no error")
	}
	if rec != nil {
		a.set(rec, absent) // it fails before the commit, whatever else happens
	}
}

// failing is the key of a context that lets the listener for CommandStarted fail.
type failing struct{}

func failsFor(ctx context.Context) {
	if exits, ok := ctx.Value(failing{}).(bool); ok {
		fail(exits)
	}
}
