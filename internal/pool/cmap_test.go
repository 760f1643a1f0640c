package pool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/spectest"
	"allium/mongoerr"
)

// The tests of the folder cmap-format of the specification Connection Monitoring and Pooling,
// against a server in memory that knows the fail points of the files.

type cmapFile struct {
	Version     int
	Style       string
	Description string
	RunOn       []struct{ MinServerVersion, MaxServerVersion string } // the server in memory is of any version
	PoolOptions struct {
		MaxPoolSize                *int
		MinPoolSize, MaxConnecting int
		MaxIdleTimeMS              int64
		WaitQueueTimeoutMS         int64
		BackgroundThreadIntervalMS int64
		AppName                    string
	}
	FailPoint *struct {
		ConfigureFailPoint string
		Mode               any
		Data               struct {
			FailCommands    []string
			CloseConnection bool
			BlockConnection bool
			BlockTimeMS     int64
			ErrorCode       int32
			AppName         string // of the pool: there is no other
		}
	}
	Operations []cmapOperation
	Error      *struct{ Type, Message, Address string }
	Events     []map[string]any
	Ignore     []string
}

type cmapOperation struct {
	Name, Thread, Target, Event, Label, Connection string
	MS, Count, Timeout                             int
	InterruptInUseConnections                      bool
}

func TestCMAPFormat(t *testing.T) {
	for _, file := range spectest.Files(t, "connection-monitoring-and-pooling/tests/cmap-format/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var f cmapFile
			spectest.Decode(t, file, &f)
			if f.Version != 1 {
				t.Fatalf("version %d of the format is not known", f.Version)
			}
			synctest.Test(t, f.run)
		})
	}
}

// cmapRun is one file being run.
type cmapRun struct {
	t       *testing.T
	p       *Pool
	events  *recorder
	threads map[string]*cmapThread
	hellos  atomic.Int64 // that the fail point has seen

	mu    sync.Mutex
	conns map[string]*Conn
	all   []*Conn
}

type cmapThread struct {
	ops  chan cmapOperation
	done chan error
}

func (f *cmapFile) run(t *testing.T) {
	o := f.PoolOptions
	cfg := Config{
		MaxPoolSize: DefaultMaxPoolSize, MinPoolSize: o.MinPoolSize, MaxConnecting: o.MaxConnecting,
		MaxIdleTime:      time.Duration(o.MaxIdleTimeMS) * time.Millisecond,
		WaitQueueTimeout: time.Duration(o.WaitQueueTimeoutMS) * time.Millisecond,
		background:       time.Duration(o.BackgroundThreadIntervalMS) * time.Millisecond,
		Conn:             &conn.Config{},
	}
	if o.MaxPoolSize != nil {
		cfg.MaxPoolSize = *o.MaxPoolSize
	}
	r := &cmapRun{t: t, events: &recorder{}, threads: map[string]*cmapThread{}, conns: map[string]*Conn{}}
	cfg.Monitor = r.events.monitor()
	cfg.ConnectFailed = func(failure Failure) { // as the topology does
		if !mongoerr.HasLabel(failure.Err, mongoerr.LabelSystemOverloaded) {
			r.p.Clear(failure.Err, false)
		}
	}
	network := &fakeserver.Network{}
	cfg.Conn.Dialer = network
	network.Add("a:1", &fakeserver.Server{Handle: func(req *fakeserver.Request) { f.handle(r, req) }})
	if fp := f.FailPoint; fp != nil && (fp.ConfigureFailPoint != "failCommand" || !slices.Contains(fp.Data.FailCommands, "hello") && !slices.Contains(fp.Data.FailCommands, "isMaster")) {
		t.Fatalf("the fail point %+v is not known", fp)
	}
	r.p = New("a:1", &cfg)

	var err error
	for _, op := range f.Operations {
		if op.Thread != "" {
			r.threads[op.Thread].ops <- op
		} else if e := r.do(op); err == nil {
			err = e
		}
		synctest.Wait()
	}
	f.check(t, r, err)
	for _, th := range r.threads {
		close(th.ops)
	}
	r.p.Close()
	for _, c := range r.all {
		if c.lent.Load() != kept {
			c.Return()
		}
	}
	network.Wait()
}

// fails reports whether the fail point is on for one more command.
func (r *cmapRun) fails(mode any) bool {
	switch mode := mode.(type) {
	case string:
		return mode == "alwaysOn"
	case map[string]any:
		times, limited := mode["times"].(float64)
		skip, _ := mode["skip"].(float64)
		n := r.hellos.Add(1)
		return limited && n <= int64(times) || !limited && n > int64(skip)
	}
	return false
}

func (f *cmapFile) handle(r *cmapRun, req *fakeserver.Request) {
	if fp := f.FailPoint; fp != nil && req.IsHello() && r.fails(fp.Mode) {
		if fp.Data.BlockConnection {
			time.Sleep(time.Duration(fp.Data.BlockTimeMS) * time.Millisecond)
		}
		if fp.Data.CloseConnection {
			req.Conn.Close()
			return
		}
		if fp.Data.ErrorCode != 0 {
			req.Reply(fakeserver.Doc(
				func(b []byte) []byte { return bson.AppendDouble(b, "ok", 0) },
				func(b []byte) []byte { return bson.AppendInt32(b, "code", fp.Data.ErrorCode) }))
			return
		}
	}
	echo(req)
}

func (r *cmapRun) do(op cmapOperation) error {
	switch op.Name {
	case "ready":
		r.p.Ready()
	case "clear":
		r.p.Clear(errors.New("clear"), op.InterruptInUseConnections)
	case "close":
		r.p.Close()
	case "start":
		th := &cmapThread{ops: make(chan cmapOperation, 10), done: make(chan error, 1)}
		r.threads[op.Target] = th
		go func() {
			var err error
			for op := range th.ops {
				if e := r.do(op); err == nil {
					err = e
				}
			}
			th.done <- err
		}()
	case "wait":
		time.Sleep(time.Duration(op.MS) * time.Millisecond)
	case "waitForThread":
		th := r.threads[op.Target]
		delete(r.threads, op.Target)
		close(th.ops)
		return <-th.done
	case "waitForEvent":
		deadline := time.Now().Add(time.Minute)
		if op.Timeout > 0 {
			deadline = time.Now().Add(time.Duration(op.Timeout) * time.Millisecond)
		}
		for r.count(op.Event) < op.Count {
			if time.Now().After(deadline) {
				r.t.Fatalf("no %d events %s", op.Count, op.Event)
			}
			time.Sleep(time.Millisecond)
		}
	case "checkOut":
		c, err := r.p.CheckOut(context.Background())
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, c)
		r.conns[op.Label] = c
	case "checkIn":
		r.conns[op.Connection].Return()
	default:
		r.t.Errorf("unknown operation %q", op.Name)
	}
	return nil
}

// eventName turns *event.PoolCleared into ConnectionPoolCleared.
func eventName(e any) string {
	name := reflect.TypeOf(e).Elem().Name()
	if strings.HasPrefix(name, "Pool") {
		name = "Connection" + name
	}
	return name
}

func (r *cmapRun) count(name string) (n int) {
	for _, e := range r.events.all() {
		if eventName(e) == name {
			n++
		}
	}
	return n
}

func (f *cmapFile) check(t *testing.T, r *cmapRun, err error) {
	switch {
	case f.Error != nil && cmapErrors[f.Error.Type] == nil:
		t.Errorf("unknown error %s", f.Error.Type)
	case f.Error == nil && err != nil:
		t.Errorf("error: %v", err)
	case f.Error != nil && (err == nil || !strings.Contains(err.Error(), f.Error.Message) || !cmapErrors[f.Error.Type](err)):
		t.Errorf("error: %v, want %s: %s", err, f.Error.Type, f.Error.Message)
	}
	var actual []any
	for _, e := range r.events.all() {
		if !slices.Contains(f.Ignore, eventName(e)) {
			actual = append(actual, e)
		}
	}
	for i, want := range f.Events {
		if i >= len(actual) {
			t.Fatalf("event %d is missing: %v", i, want)
		}
		if err := matchEvent(actual[i], want); err != nil {
			for i, e := range actual {
				t.Logf("%d: %s %+v", i, eventName(e), e)
			}
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

// cmapErrors tell the errors of the files apart.
var cmapErrors = map[string]func(error) bool{
	"PoolClosedError":  func(err error) bool { return errors.Is(err, errClosed) },
	"PoolClearedError": func(err error) bool { return errors.Is(err, mongoerr.ErrPoolCleared) },
	"WaitQueueTimeoutError": func(err error) bool {
		_, ok := errors.AsType[*mongoerr.TimeoutError](err)
		return ok
	},
}

// eventFields maps the names in the files to those of the structs.
var eventFields = map[string]string{
	"address": "Addr", "connectionId": "ConnectionID", "reason": "Reason", "duration": "Duration",
	"interruptInUseConnections": "InterruptInUseConnections",
}

func matchEvent(e any, want map[string]any) error {
	if eventName(e) != want["type"] {
		return fmt.Errorf("%s, want %v", eventName(e), want["type"])
	}
	for key, v := range want {
		switch {
		case key == "type" || v == 42.0 || v == "42":
		case key == "options":
			o := e.(*event.PoolCreated).Options
			got := map[string]any{
				"maxPoolSize": float64(o.MaxPoolSize), "minPoolSize": float64(o.MinPoolSize),
				"maxIdleTimeMS": float64(o.MaxIdleTime.Milliseconds()), "waitQueueTimeoutMS": float64(o.WaitQueueTimeout.Milliseconds()),
			}
			for name, value := range v.(map[string]any) {
				if got[name] != value {
					return fmt.Errorf("option %s is %v, want %v", name, got[name], value)
				}
			}
		default:
			got := reflect.ValueOf(e).Elem().FieldByName(eventFields[key])
			if !got.IsValid() {
				return fmt.Errorf("unknown field %s", key)
			}
			if s := fmt.Sprint(got.Interface()); s != fmt.Sprint(v) {
				return fmt.Errorf("%s is %s, want %v", key, s, v)
			}
		}
	}
	return nil
}
