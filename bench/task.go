package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"allium"
	"allium/bson"
	"allium/consistency"
)

// A Task is one thing that both drivers do.
type Task struct {
	Name   string  // group/what/how, for example "bson/flat/decode D"
	Bytes  int     // the size of the data set for one operation, for MB/s
	Scale  int     // how many operations the specification's iteration has; 0: it does not say
	Target float64 // the ratio of the speeds that Allium aims at; 0 if there is none
	// the share of the official driver's processor time that Allium aims at, at most; 0 if there is
	// none
	CPU      float64
	CPUOfC   float64           // likewise, of the C driver's
	Before   func() error      // is called before each turn and not measured; nil: nothing
	After    func()            // is called after the last turn and lets go of what Before made; nil: nothing
	Allium   func(n int) error // does the operation n times
	Official func(n int) error
	// the same in a process of the C driver; nil if it is not there or cannot do it
	C func(n int, memory bool) (turn, error)
	// makes of a reply what the caller gets, for the floor; nil: nothing
	Values func(reply bson.Raw)
	Floor  func() (*Floor, error) // nil without WithFloors, or if the task makes no exchanges
	// an exchange of as many bytes over a bare TCP connection; nil: it is not compared with that
	Bare func(n int) error
}

// done lets go of the task's data.
func (t *Task) done() {
	if t.After != nil {
		t.After()
	}
}

// Env is what tasks need: servers, clients of both drivers, and how large the large data sets are.
// Its servers start when a group first asks for them.
type Env struct {
	// Files is how many of the 100 LDJSON files, and half of how many of the 50 GridFS files, the
	// parallel tasks use.
	Files int

	uri        string // of the deployment that holds data
	null, ping string
	dir        string    // for files; "" as long as there are none
	c          *cPeers   // nil without WithC
	recording  *Env      // does tasks to record them; nil without WithFloors
	recorder   *recorder // of a recording environment
	closers    []func() error
}

// Close stops the servers and closes the clients.
func (e *Env) Close() error {
	var errs []error
	for _, c := range slices.Backward(e.closers) {
		errs = append(errs, c())
	}
	*e = Env{Files: e.Files}
	return errors.Join(errs...)
}

func (e *Env) onClose(f func() error) { e.closers = append(e.closers, f) }

// URI returns the connection string of the server that holds data: $MONGODB_URI, else a mongotest
// in a process of its own.
func (e *Env) URI() (string, error) {
	if e.uri == "" {
		e.uri = os.Getenv("MONGODB_URI")
	}
	if e.uri == "" {
		lines, stop, err := startChild("mongotest", 1)
		if err != nil {
			return "", err
		}
		e.onClose(stop)
		e.uri = lines[0]
	}
	return e.uri, nil
}

// Null returns the connection string of the null server, and the address of the bare ping-pong
// beside it.
func (e *Env) Null() (uri, ping string, err error) {
	if e.null == "" {
		lines, stop, err := startChild("null", 2)
		if err != nil {
			return "", "", err
		}
		e.onClose(stop)
		e.null, e.ping = lines[0], lines[1]
	}
	return e.null, e.ping, nil
}

// Clients returns a client of each driver with the write concern w: 1, as the specification asks.
func (e *Env) Clients(uri string) (*allium.Client, *mongo.Client, error) {
	o := allium.ClientOptions{WriteConcern: &consistency.WriteConcern{W: 1}}
	if e.recorder != nil {
		o.Dialer = e.recorder
	}
	ours, err := allium.Open(uri, o)
	if err != nil {
		return nil, nil, err
	}
	e.onClose(func() error { return ours.Close(context.Background()) })
	theirs, err := mongo.Connect(options.Client().ApplyURI(uri).SetWriteConcern(w1))
	if err != nil {
		return nil, nil, err
	}
	e.onClose(func() error { return theirs.Disconnect(context.Background()) })
	return ours, theirs, nil
}

// PingPong returns a function that exchanges messages of the given sizes with a peer that does
// nothing else.
func (e *Env) PingPong(in, out int) (func(n int) error, error) {
	_, addr, err := e.Null()
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	e.onClose(c.Close)
	return pingPong(c, in, out)
}

// A group is a set of tasks with what they need to be set up.
type group struct {
	name  string
	tasks func(*Env) ([]Task, error)
	// floors is set if the tasks make exchanges of which the bytes are known. Those of "parallel"
	// wait for many at once: one after another they may wait for each other.
	floors bool
}

var groups = []group{
	{"bson", bsonTasks, false},
	{"null", nullTasks, true},
	{"single", singleTasks, true},
	{"multi", multiTasks, true},
	{"parallel", parallelTasks, false},
	{"transport", transportTasks, false},
}

// Tasks returns the tasks whose names start with one of the prefixes, and sets up only the groups
// that they are in.
func Tasks(env *Env, prefixes ...string) ([]Task, error) {
	var out []Task
	for _, g := range groups {
		if !slices.ContainsFunc(prefixes, func(p string) bool {
			return strings.HasPrefix(p, g.name) || strings.HasPrefix(g.name, p)
		}) {
			continue
		}
		tasks, err := g.tasks(env)
		if err != nil {
			return nil, fmt.Errorf("set up %s: %w", g.name, err)
		}
		if err := env.addFloors(g, tasks); err != nil {
			return nil, fmt.Errorf("set up the floors of %s: %w", g.name, err)
		}
		out = append(out, slices.DeleteFunc(tasks, func(t Task) bool {
			return !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(t.Name, p) })
		})...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no task starts with %q", prefixes)
	}
	return out, nil
}

// inTurn calls functions one after the other until one fails.
func inTurn(all ...func() error) func() error {
	return func() error {
		for _, f := range all {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

// repeat makes a Task's function of one operation.
func repeat(op func() error) func(int) error {
	return func(n int) error {
		for range n {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	}
}
