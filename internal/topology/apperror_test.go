package topology

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/failure"
	"allium/internal/fakeserver"
	"allium/internal/pool"
	"allium/mongoerr"
)

// What the topology concludes from the errors of operations, one error each (specification: Server
// Discovery and Monitoring, "Application errors").

func versionOf(counter int64) *event.TopologyVersion {
	return &event.TopologyVersion{ProcessID: bson.ObjectID{1}, Counter: counter}
}

// failed is the reply to a command that failed with a code, in a version of the topology.
func failed(code int32, counter int64, outer ...func([]byte) []byte) bson.Raw {
	return fakeserver.Doc(append(outer, func(b []byte) []byte {
		b = bson.AppendInt32(b, "code", code)
		at, b := bson.BeginDocumentElement(b, "topologyVersion")
		b = bson.AppendInt64(bson.AppendObjectID(b, "processId", versionOf(0).ProcessID), "counter", counter)
		return bson.EndDocument(b, at)
	})...)
}

func notConfirmed(code int32, counter int64) error {
	return failure.NewWriteConcernError("a:1", failed(0, counter, func(b []byte) []byte {
		at, b := bson.BeginDocumentElement(b, "writeConcernError")
		return bson.EndDocument(bson.AppendInt32(b, "code", code), at)
	}))
}

func refused(code int32, counter int64) error {
	return failure.NewServerError("insert", "a:1", failed(code, counter))
}

func broken(err error) error { return &mongoerr.ConnectionError{Addr: "a:1", Op: "read", Wrapped: err} }

func TestApplicationErrors(t *testing.T) {
	const known = 5
	for name, tt := range map[string]struct {
		err                   error
		stale, unknown, clear bool
		version               *event.TopologyVersion
	}{
		"network error":                    {err: broken(net.ErrClosed), unknown: true, clear: true},
		"old connection":                   {err: broken(net.ErrClosed), stale: true},
		"network timeout":                  {err: broken(os.ErrDeadlineExceeded)},
		"cancelled":                        {err: broken(context.Canceled)},
		"deadline of the context":          {err: &mongoerr.TimeoutError{Wrapped: broken(context.DeadlineExceeded)}},
		"closed with the pool":             {err: broken(&mongoerr.PoolClearedError{Interrupted: true})},
		"pool is paused":                   {err: &mongoerr.PoolClearedError{}},
		"another code":                     {err: refused(11000, known+1)},
		"not primary":                      {err: refused(10107, known+1), unknown: true, version: versionOf(known + 1)},
		"not primary, as known":            {err: refused(10107, known)},
		"shutdown":                         {err: refused(91, known+1), unknown: true, clear: true, version: versionOf(known + 1)},
		"interrupted at shutdown":          {err: refused(11600, known+1), unknown: true, clear: true, version: versionOf(known + 1)},
		"interrupted by a change":          {err: refused(11602, known+1), unknown: true, version: versionOf(known + 1)},
		"shutdown, old connection":         {err: refused(91, known+1), stale: true},
		"write concern: shutdown":          {err: notConfirmed(91, known+1), unknown: true, clear: true, version: versionOf(known + 1)},
		"write concern: shutdown, known":   {err: notConfirmed(91, known)},
		"write concern: timeout":           {err: notConfirmed(64, known+1)},
		"wrapped in what the user gets":    {err: &mongoerr.TimeoutError{Wrapped: refused(10107, known+1)}, unknown: true, version: versionOf(known + 1)},
		"a write's own error is no change": {err: failure.NewWriteError(failed(10107, known+1), 0)},
	} {
		td := &event.TopologyDescription{Kind: event.ReplicaSetWithPrimary, SetName: "rs", Servers: []*event.ServerDescription{
			{Addr: "a:1", Kind: event.RSPrimary, SetName: "rs", TopologyVersion: versionOf(known)},
		}}
		topo := topologyOf(t, td, Config{})
		topo.phase = connected
		s := topo.Server("a:1")
		s.handleError(tt.err, nil, func() bool { return tt.stale })
		d := s.Description()
		if (d.Kind == event.UnknownServer) != tt.unknown || (s.pool.Generation() == 1) != tt.clear {
			t.Errorf("%s: server is %v, generation %d", name, d, s.pool.Generation())
		}
		if !tt.unknown {
			continue
		}
		if (d.TopologyVersion == nil) != (tt.version == nil) || tt.version != nil && *d.TopologyVersion != *tt.version {
			t.Errorf("%s: version %v, want %v", name, d.TopologyVersion, tt.version)
		}
		if !strings.Contains(tt.err.Error(), d.LastError.Error()) {
			t.Errorf("%s: last error %v, want that of %v", name, d.LastError, tt.err)
		}
		if failure.AddLabel(tt.err, "label"); d.LastError == nil || d.LastError.Error() == "" || mongoerr.HasLabel(d.LastError, "label") {
			t.Errorf("%s: last error %v", name, d.LastError)
		}
	}
}

// What goes wrong with a connection that is authenticated again counts as it does while one is
// made; a refused credential and the end of an operation's time do not.
func TestReauthenticationErrors(t *testing.T) {
	const known = 5
	authentication := func(err error) error { return &mongoerr.AuthError{Addr: "a:1", Wrapped: err} }
	for name, tt := range map[string]struct {
		err            error
		generation     uint64
		unknown, clear bool
	}{
		"network error":         {err: broken(net.ErrClosed), unknown: true, clear: true},
		"network timeout":       {err: broken(os.ErrDeadlineExceeded), unknown: true, clear: true},
		"old connection":        {err: broken(net.ErrClosed), generation: 7},
		"out of time":           {err: &mongoerr.TimeoutError{Wrapped: broken(context.DeadlineExceeded)}},
		"cancelled":             {err: &mongoerr.TimeoutError{Wrapped: context.Canceled}},
		"closed with the pool":  {err: broken(&mongoerr.PoolClearedError{Interrupted: true})},
		"refused credential":    {err: authentication(refused(18, known+1))},
		"callback failed":       {err: authentication(errors.New("no token"))},
		"no longer the primary": {err: authentication(refused(10107, known+1)), unknown: true},
		"shutdown":              {err: authentication(refused(91, known+1)), unknown: true, clear: true},
	} {
		td := &event.TopologyDescription{Kind: event.ReplicaSetWithPrimary, SetName: "rs", Servers: []*event.ServerDescription{
			{Addr: "a:1", Kind: event.RSPrimary, SetName: "rs", TopologyVersion: versionOf(known)},
		}}
		topo := topologyOf(t, td, Config{})
		topo.phase = connected
		s := topo.Server("a:1")
		s.reauthFailed(pool.Failure{Err: tt.err, Generation: tt.generation})
		if d := s.Description(); (d.Kind == event.UnknownServer) != tt.unknown || (s.pool.Generation() == 1) != tt.clear {
			t.Errorf("%s: server is %v, generation %d", name, d, s.pool.Generation())
		}
	}
}

// Behind a load balancer nothing is ever unknown, and only what takes connections away gives them
// up, those of one service and once.
func TestLoadBalancedApplicationErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		clear bool
	}{
		"network error":   {broken(net.ErrClosed), true},
		"network timeout": {broken(os.ErrDeadlineExceeded), false},
		"shutdown":        {refused(91, 1), true},
		"not primary":     {refused(10107, 1), false},
		"another code":    {refused(1, 1), false},
	} {
		cleared := 0
		td := &event.TopologyDescription{Kind: event.LoadBalanced, Servers: []*event.ServerDescription{{Addr: "a:1", Kind: event.LoadBalancer}}}
		topo := topologyOf(t, td, Config{LoadBalanced: true, Pool: pool.Config{Monitor: &event.PoolMonitor{
			PoolCleared: func(*event.PoolCleared) { cleared++ },
		}}})
		topo.phase = connected
		s := topo.Server("a:1")
		for range 2 {
			s.handleError(tt.err, &bson.ObjectID{1}, func() bool { return cleared > 0 })
			s.pool.Told()
		}
		s.handleError(tt.err, nil, func() bool { return false }) // before the service is known
		if (cleared == 1) != tt.clear || cleared > 1 || s.Description().Kind != event.LoadBalancer {
			t.Errorf("%s: cleared %d times, server is %v", name, cleared, s.Description())
		}
	}
}

// A handshake says nothing of a server that is unknown: why it is may be newer.
func TestHandshakeOfUnknownServer(t *testing.T) {
	td := &event.TopologyDescription{Kind: event.ReplicaSetNoPrimary, SetName: "rs", Servers: []*event.ServerDescription{
		{Addr: "a:1", LastError: errors.New("boom"), TopologyVersion: versionOf(1), LastUpdate: time.Now()},
	}}
	topo := topologyOf(t, td, Config{})
	topo.phase = connected
	topo.Server("a:1").handshaken(&event.ServerDescription{Addr: "a:1", Kind: event.RSSecondary, SetName: "rs", TopologyVersion: versionOf(2)})
	if topo.Description() != td {
		t.Errorf("topology is %v", topo.Description())
	}
}

// A handshake that waited for the topology says nothing if it has been overtaken meanwhile: by a
// newer reply, by an error, and by the end of the server.
func TestOvertakenHandshake(t *testing.T) {
	member := func(addr string, version int64) *event.ServerDescription {
		return &event.ServerDescription{Addr: addr, Kind: event.RSSecondary, SetName: "rs", Me: addr, Hosts: []string{"a:1", "b:1"},
			TopologyVersion: versionOf(version), LastUpdate: time.Now()}
	}
	for name, overtakes := range map[string]func(topo *Topology){
		"a newer reply": func(topo *Topology) { topo.apply(member("a:1", 3)) },
		"the same":      func(topo *Topology) { topo.apply(member("a:1", 2)) },
		"an error": func(topo *Topology) {
			topo.apply(&event.ServerDescription{Addr: "a:1", LastError: errors.New("boom"), LastUpdate: time.Now()})
		},
		"the server has left": func(topo *Topology) {
			primary := member("b:1", 5)
			primary.Kind, primary.Hosts = event.RSPrimary, []string{"b:1"}
			topo.apply(primary)
		},
		"the server has left and come back": func(topo *Topology) {
			for version, hosts := range [][]string{{"b:1"}, {"a:1", "b:1"}} {
				primary := member("b:1", int64(5+version))
				primary.Kind, primary.Hosts = event.RSPrimary, hosts
				topo.apply(primary)
			}
		},
	} {
		topo := topologyOf(t, &event.TopologyDescription{Kind: event.ReplicaSetNoPrimary, SetName: "rs",
			Servers: []*event.ServerDescription{member("a:1", 1), member("b:1", 1)}}, Config{unmonitored: true})
		topo.phase = connected
		s := topo.Server("a:1")
		topo.mu.Lock()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.handshaken(member("a:1", 2))
		}()
		for !waitsIn("handshaken") {
			runtime.Gosched()
		}
		overtakes(topo)
		now := topo.Description()
		topo.mu.Unlock()
		<-done
		if got := topo.Description(); got != now {
			t.Errorf("%s: the topology is %v, was %v", name, got, now)
		}
	}
}

// waitsIn reports whether a goroutine waits for a lock within a function.
func waitsIn(function string) bool {
	buf := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "."+function+"(") && strings.Contains(stack, "[sync.Mutex.Lock") {
			return true
		}
	}
	return false
}

// The rows of the state machine that the random walk's invariants leave open.
func TestMachineRows(t *testing.T) {
	rs := func(kind event.ServerKind, addr, me string, hosts ...string) *event.ServerDescription {
		return &event.ServerDescription{Addr: addr, Kind: kind, SetName: "rs", Me: me, Hosts: hosts, TopologyVersion: versionOf(1)}
	}
	id := func(b byte) *bson.ObjectID { return &bson.ObjectID{b} }
	elected := func(addr string, wire int32, election *bson.ObjectID, version *int64) *event.ServerDescription {
		d := rs(event.RSPrimary, addr, addr, "a:1", "b:1")
		d.MaxWireVersion, d.ElectionID, d.SetVersion = wire, election, version
		return d
	}
	seeds := []string{"a:1", "b:1"}
	for name, tt := range map[string]struct {
		kind event.TopologyKind
		said []*event.ServerDescription
		want string // of every server its kind, in order
	}{
		"a secondary that calls itself otherwise, with a primary": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{rs(event.RSPrimary, "a:1", "a:1", seeds...), rs(event.RSSecondary, "b:1", "c:1", seeds...)}, "a:1 RSPrimary"},
		"a secondary that calls itself otherwise, without": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{rs(event.RSSecondary, "b:1", "c:1", "c:1")}, "a:1 Unknown, c:1 Unknown"},
		"wire version 17: the election counts first": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{elected("a:1", 17, id(1), new(int64(9))), elected("b:1", 17, id(2), new(int64(1)))}, "a:1 Unknown, b:1 RSPrimary"},
		"wire version 16: the version counts first": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{elected("a:1", 16, id(1), new(int64(9))), elected("b:1", 16, id(2), new(int64(1)))}, "a:1 RSPrimary, b:1 Unknown"},
		"wire version 17: a lower version of the same election": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{elected("a:1", 17, id(1), new(int64(2))), elected("b:1", 17, id(1), new(int64(1)))}, "a:1 RSPrimary, b:1 Unknown"},
		"wire version 17: nothing is less than anything": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{elected("a:1", 17, id(1), new(int64(1))), elected("b:1", 17, nil, new(int64(5)))}, "a:1 RSPrimary, b:1 Unknown"},
		"wire version 17: the version may go down with a new election": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{elected("a:1", 17, id(1), new(int64(9))), elected("b:1", 17, id(2), new(int64(1))), elected("a:1", 17, id(2), new(int64(2)))},
			"a:1 RSPrimary, b:1 Unknown"},
		"wire version 16: what is not there is not compared": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{elected("a:1", 16, id(1), new(int64(1))), elected("b:1", 16, nil, new(int64(0)))}, "a:1 Unknown, b:1 RSPrimary"},
		"a primary that becomes a ghost": {event.ReplicaSetNoPrimary,
			[]*event.ServerDescription{rs(event.RSPrimary, "a:1", "a:1", seeds...), {Addr: "a:1", Kind: event.RSGhost}}, "a:1 RSGhost, b:1 Unknown"},
	} {
		td := initial(tt.kind, "rs", seeds)
		for _, sd := range tt.said {
			td, _ = machine{seeds: len(seeds)}.next(td, sd)
		}
		got := ""
		for i, s := range td.Servers {
			if i > 0 {
				got += ", "
			}
			got += s.Addr + " " + s.Kind.String()
			if s.Kind == event.UnknownServer && s.TopologyVersion != nil {
				t.Errorf("%s: %s has the version %v", name, s.Addr, s.TopologyVersion)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if primary := td.Primary() != nil; primary != (td.Kind == event.ReplicaSetWithPrimary) {
			t.Errorf("%s: %v", name, td)
		}
	}
}
