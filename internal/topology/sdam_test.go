package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/hello"
	"allium/internal/pool"
	"allium/internal/spectest"
	"allium/mongoerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests of the specification Server Discovery and Monitoring that need no server: what monitors
// and operations learn is fed to a topology without monitors.

type sdamFile struct {
	Description string
	URI         string
	Phases      []struct {
		Description       string
		Responses         []json.RawMessage
		ApplicationErrors []struct {
			Address        string
			Generation     *uint64
			MaxWireVersion int // of the server: the driver acts alike for all that it supports
			When, Type     string
			Response       json.RawMessage
		}
		Outcome sdamOutcome
	}
}

type sdamOutcome struct {
	TopologyType                 string
	SetName                      *string
	Servers                      map[string]map[string]any
	LogicalSessionTimeoutMinutes spectest.Given[int64]
	MaxSetVersion                spectest.Given[int64]
	MaxElectionID                spectest.Given[struct {
		OID string `json:"$oid"`
	}]
	Compatible *bool
	Events     []map[string]map[string]any
}

func TestSDAM(t *testing.T) {
	for _, file := range spectest.Files(t, "server-discovery-and-monitoring/tests/*/*.json") {
		dir := filepath.Base(filepath.Dir(file))
		if dir == "unified" {
			continue // package unified runs them
		}
		t.Run(dir+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var f sdamFile
			spectest.Decode(t, file, &f)
			f.run(t)
		})
	}
}

// configFor reads what matters here of a connection string.
func configFor(t *testing.T, uri string) *Config {
	t.Helper()
	hosts, options, _ := strings.Cut(strings.TrimPrefix(uri, "mongodb://"), "/")
	cfg := &Config{Seeds: strings.Split(hosts, ","), unmonitored: true, LocalThreshold: DefaultLocalThreshold}
	cfg.Pool.Conn = &conn.Config{}
	for option := range strings.SplitSeq(strings.TrimPrefix(options, "?"), "&") {
		key, value, _ := strings.Cut(option, "=")
		switch strings.ToLower(key) {
		case "replicaset":
			cfg.SetName = value
		case "directconnection":
			cfg.Direct = value == "true"
		case "loadbalanced":
			cfg.LoadBalanced = value == "true"
		case "heartbeatfrequencyms", "servermonitoringmode", "connecttimeoutms", "serverselectiontimeoutms", "minpoolsize", "maxpoolsize", "":
			// nothing is monitored, selected or pooled
		default:
			t.Fatalf("the option %s is not known", key)
		}
	}
	return cfg
}

func (f *sdamFile) run(t *testing.T) {
	cfg := configFor(t, f.URI)
	var events []any
	add := func(e any) { events = append(events, e) }
	cfg.Monitor = &event.ServerMonitor{
		TopologyOpening:            func(e *event.TopologyOpening) { add(e) },
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) { add(e) },
		ServerOpening:              func(e *event.ServerOpening) { add(e) },
		ServerClosed:               func(e *event.ServerClosed) { add(e) },
		ServerDescriptionChanged:   func(e *event.ServerDescriptionChanged) { add(e) },
	}
	topo, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	topo.Connect()
	defer topo.Close(context.Background())
	for _, phase := range f.Phases {
		for _, r := range phase.Responses {
			var pair []json.RawMessage
			if err := json.Unmarshal(r, &pair); err != nil {
				t.Fatal(err)
			}
			var addr string
			json.Unmarshal(pair[0], &addr)
			d := &event.ServerDescription{Addr: addr, LastError: &mongoerr.ConnectionError{Addr: addr, Op: "read", Wrapped: net.ErrClosed}}
			if string(pair[1]) != "{}" {
				d = hello.Parse(addr, document(t, pair[1]))
			}
			if s := topo.Server(addr); s != nil {
				s.checked(d)
			}
		}
		for _, e := range phase.ApplicationErrors {
			s := topo.Server(e.Address)
			if s == nil { // as for an operation that had selected it before
				continue
			}
			generation := s.pool.Generation()
			if e.Generation != nil {
				generation = *e.Generation
			}
			var err error
			switch e.Type {
			case "command":
				err = commandError(e.Address, document(t, e.Response))
			case "network":
				err = &mongoerr.ConnectionError{Op: "hello", Wrapped: net.ErrClosed}
			case "timeout":
				err = &mongoerr.ConnectionError{Op: "hello", Wrapped: os.ErrDeadlineExceeded}
			default:
				t.Fatalf("unknown error %q", e.Type)
			}
			switch e.When {
			case "beforeHandshakeCompletes":
				if e, ok := err.(*mongoerr.ConnectionError); ok {
					failure.AddTo(&e.Labels, mongoerr.LabelSystemOverloaded)
				}
				s.connectFailed(pool.Failure{Err: err, Generation: generation})
			case "afterHandshakeCompletes":
				s.handleError(err, nil, func() bool { return s.pool.Generation() != generation })
			default:
				t.Fatalf("unknown moment %q", e.When)
			}
		}
		if phase.Outcome.Events != nil {
			topo.events.Wait()
			checkEvents(t, topo, events, phase.Outcome.Events)
			events = nil
			continue
		}
		phase.Outcome.check(t, phase.Description, topo)
	}
}

func document(t *testing.T, text []byte) bson.Raw {
	t.Helper()
	doc, err := bson.ParseExtJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func (o *sdamOutcome) check(t *testing.T, phase string, topo *Topology) {
	t.Helper()
	d := topo.Description()
	equal := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %v, want %v", phase, what, got, want)
		}
	}
	equal("topology type", d.Kind.String(), o.TopologyType)
	setName := ""
	if o.SetName != nil {
		setName = *o.SetName
	}
	equal("set name", d.SetName, setName)
	if o.LogicalSessionTimeoutMinutes.There {
		equal("session timeout", pointee(d.SessionTimeoutMinutes), pointee(o.LogicalSessionTimeoutMinutes.Value))
	}
	if o.MaxSetVersion.There {
		equal("max set version", pointee(d.MaxSetVersion), pointee(o.MaxSetVersion.Value))
	}
	if o.MaxElectionID.There {
		want := "null"
		if o.MaxElectionID.Value != nil {
			want = o.MaxElectionID.Value.OID
		}
		equal("max election id", hex(d.MaxElectionID), want)
	}
	if o.Compatible != nil {
		equal("compatible", d.CompatibilityErr == nil, *o.Compatible)
	}
	equal("number of servers", len(d.Servers), len(o.Servers))
	for addr, want := range o.Servers {
		s := d.Server(addr)
		if s == nil {
			t.Errorf("%s: no server %s", phase, addr)
			continue
		}
		for key, v := range want {
			what := addr + " " + key
			switch key {
			case "type":
				if v == "PossiblePrimary" {
					v = "Unknown"
				}
				equal(what, s.Kind.String(), v)
			case "setName":
				equal(what, orNil(s.SetName), v)
			case "setVersion":
				equal(what, pointee(s.SetVersion), asInt(v))
			case "electionId":
				if v == nil {
					equal(what, s.ElectionID == nil, true)
				} else {
					equal(what, hex(s.ElectionID), v.(map[string]any)["$oid"])
				}
			case "logicalSessionTimeoutMinutes":
				equal(what, pointee(s.SessionTimeoutMinutes), asInt(v))
			case "minWireVersion":
				equal(what, int64(s.MinWireVersion), orZero(asInt(v)))
			case "maxWireVersion":
				equal(what, int64(s.MaxWireVersion), orZero(asInt(v)))
			case "topologyVersion":
				if v == nil {
					equal(what, s.TopologyVersion == nil, true)
					continue
				}
				b, _ := json.Marshal(v)
				equal(what, s.TopologyVersion, hello.ParseTopologyVersion(document(t, b)))
			case "pool":
				equal(what, int64(topo.Server(addr).pool.Generation()), asInt(v.(map[string]any)["generation"]))
			case "error":
				if v == nil {
					equal(what, s.LastError, nil)
				} else if s.LastError == nil || !strings.Contains(s.LastError.Error(), v.(string)) {
					t.Errorf("%s: %s is %v, want %v", phase, what, s.LastError, v)
				}
			default:
				t.Errorf("%s: unknown field %s", phase, key)
			}
		}
	}
}

// commandError is what an operation makes of a reply. The errors of single writes are none of the
// topology's business.
func commandError(addr string, reply bson.Raw) error {
	if ok, _ := reply.Lookup("ok").AsInt64(); ok != 1 {
		return failure.NewServerError("find", addr, reply)
	}
	if e := failure.NewWriteConcernError(addr, reply); e != nil {
		return e
	}
	return errors.New("the reply holds errors of single writes at most")
}

func pointee(p *int64) any {
	if p == nil {
		return nil
	}
	return *p
}

func hex(id *bson.ObjectID) string {
	if id == nil {
		return "null"
	}
	return id.Hex()
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orZero(v any) any {
	if v == nil {
		return int64(0)
	}
	return v
}

func asInt(v any) any {
	if f, ok := v.(float64); ok {
		return int64(f)
	}
	return v
}

func checkEvents(t *testing.T, topo *Topology, events []any, want []map[string]map[string]any) {
	t.Helper()
	var got []string
	for _, e := range events {
		got = append(got, eventText(e))
	}
	var expected []string
	for _, w := range want {
		for name, fields := range w {
			known(t, fields, "topologyId", "address", "previousDescription", "newDescription")
			expected = append(expected, expectedText(t, name, fields))
		}
	}
	if !slices.Equal(got, expected) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(expected, "\n"))
	}
	for _, e := range events {
		if id := reflect.ValueOf(e).Elem().FieldByName("TopologyID").Interface(); id != topo.id {
			t.Errorf("event of topology %v, want %v", id, topo.id)
		}
	}
}

// eventText and expectedText write the events of the driver and of the files in the same way.
func eventText(e any) string {
	switch e := e.(type) {
	case *event.TopologyOpening:
		return "topology_opening_event"
	case *event.ServerOpening:
		return "server_opening_event " + e.Addr
	case *event.ServerClosed:
		return "server_closed_event " + e.Addr
	case *event.ServerDescriptionChanged:
		return "server_description_changed_event " + e.Addr + " " + serverText(e.PreviousDescription) + " -> " + serverText(e.NewDescription)
	case *event.TopologyDescriptionChanged:
		return "topology_description_changed_event " + topologyText(e.PreviousDescription) + " -> " + topologyText(e.NewDescription)
	}
	return fmt.Sprintf("%T", e)
}

func serverText(d *event.ServerDescription) string {
	return fmt.Sprintf("%s %s %q %v %v %v %q", d.Addr, d.Kind, d.SetName, d.Hosts, d.Passives, d.Arbiters, d.Primary)
}

func topologyText(d *event.TopologyDescription) string {
	s := fmt.Sprintf("%s %q", d.Kind, d.SetName)
	for _, server := range d.Servers {
		s += " {" + serverText(server) + "}"
	}
	return s
}

func expectedText(t *testing.T, name string, fields map[string]any) string {
	text := func(key string) string {
		if s, ok := fields[key].(string); ok {
			return s
		}
		return ""
	}
	switch name {
	case "topology_opening_event":
		return name
	case "server_description_changed_event":
		return name + " " + text("address") + " " + expectedServer(t, fields["previousDescription"]) + " -> " + expectedServer(t, fields["newDescription"])
	case "topology_description_changed_event":
		return name + " " + expectedTopology(t, fields["previousDescription"]) + " -> " + expectedTopology(t, fields["newDescription"])
	}
	return name + " " + text("address")
}

func expectedServer(t *testing.T, v any) string {
	m := v.(map[string]any)
	known(t, m, "address", "type", "setName", "hosts", "passives", "arbiters", "primary")
	kind := m["type"]
	if kind == "PossiblePrimary" {
		kind = "Unknown"
	}
	str := func(key string) string { s, _ := m[key].(string); return s }
	return fmt.Sprintf("%s %s %q %v %v %v %q", m["address"], kind, str("setName"), m["hosts"], m["passives"], m["arbiters"], str("primary"))
}

func expectedTopology(t *testing.T, v any) string {
	m := v.(map[string]any)
	known(t, m, "topologyType", "setName", "servers")
	setName, _ := m["setName"].(string)
	s := fmt.Sprintf("%s %q", m["topologyType"], setName)
	for _, server := range m["servers"].([]any) {
		s += " {" + expectedServer(t, server) + "}"
	}
	return s
}

// known fails the test if a map has other keys.
func known(t *testing.T, m map[string]any, keys ...string) {
	t.Helper()
	for key := range m {
		if !slices.Contains(keys, key) {
			t.Errorf("unknown field %s", key)
		}
	}
}
