package topology

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/fakeserver"
	"allium/internal/logging"
)

// The prose tests of Polling SRV Records for mongos Discovery, with the resolver in the test's
// hand. Which records a resolver finds under which name, also with srvServiceName (test 13), is its
// own matter.

const srvHost = "localhost.test.build.10gen.cc:"

func mongos(b []byte) []byte { return bson.AppendString(b, "msg", "isdbgrid") }

func TestSRVPollingProse(t *testing.T) {
	type answer struct {
		ports string
		ttl   time.Duration
		err   error
	}
	for _, tt := range []struct {
		name     string
		seeds    string
		maxHosts int
		answer   answer
		want     string // ports; "27017 ?" means one further port
	}{
		{"1 addition", "27017 27018", 0, answer{ports: "27017 27018 27019"}, "27017 27018 27019"},
		{"2 removal", "27017 27018", 0, answer{ports: "27017"}, "27017"},
		{"3 replacement", "27017 27018", 0, answer{ports: "27017 27019"}, "27017 27019"},
		{"4 replacement of both by one", "27017 27018", 0, answer{ports: "27019"}, "27019"},
		{"5 replacement of both by two", "27017 27018", 0, answer{ports: "27019 27020"}, "27019 27020"},
		{"6 lookup timeout", "27017 27018", 0, answer{err: context.DeadlineExceeded}, "27017 27018"},
		{"7 lookup failure", "27017 27018", 0, answer{err: errors.New("no such host")}, "27017 27018"},
		{"8 no records", "27017 27018", 0, answer{}, "27017 27018"},
		{"10 srvMaxHosts 0", "27017 27018", 0, answer{ports: "27017 27019 27020"}, "27017 27019 27020"},
		{"11 srvMaxHosts as many as records", "27017 27018", 2, answer{ports: "27019 27020"}, "27019 27020"},
		{"12 srvMaxHosts", "27017 27018", 2, answer{ports: "27017 27019 27020"}, "27017 ?"},
		{"13 srvServiceName", "27017", 0, answer{ports: "27019 27020"}, "27019 27020"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &fakeserver.Network{}
				for _, port := range []string{"27017", "27018", "27019", "27020"} {
					newNode(network, srvHost+port, mongos)
				}
				var lookups atomic.Int64
				topo := connect(t, network, Config{SRV: &SRV{
					TTL: 10 * time.Second, MaxHosts: tt.maxHosts,
					Lookup: func(context.Context) ([]string, time.Duration, error) {
						lookups.Add(1)
						return addrs(tt.answer.ports), tt.answer.ttl, tt.answer.err
					},
				}}, addrs(tt.seeds)...)
				synctest.Wait()
				before := topo.Server(srvHost + "27017")
				time.Sleep(minRescanInterval + time.Second)
				synctest.Wait()
				got := ports(topo)
				if want, any := strings.CutSuffix(tt.want, " ?"); any {
					if len(got) != 2 || got[0] != want {
						t.Errorf("hosts %v, want %s and one more", got, want)
					}
				} else if !slices.Equal(got, strings.Fields(want)) {
					t.Errorf("hosts %v, want %s", got, want)
				}
				if s := topo.Server(srvHost + "27017"); s != nil && (s != before || s.Description().Kind != event.Mongos) {
					t.Error("a server that stayed was touched")
				}
				if lookups.Load() != 1 {
					t.Errorf("%d lookups in the first minute", lookups.Load())
				}
				// A useless answer makes the driver ask again after a heartbeat interval, a good
				// one after a minute or more.
				time.Sleep(2 * DefaultHeartbeatInterval)
				if again := lookups.Load() > 1; again != (tt.answer.ports == "") {
					t.Errorf("%d lookups", lookups.Load())
				}
			})
		})
	}
}

func addrs(ports string) (out []string) {
	for port := range strings.FieldsSeq(ports) {
		out = append(out, srvHost+port)
	}
	return out
}

func ports(topo *Topology) (out []string) {
	for _, d := range topo.Description().Servers {
		out = append(out, strings.TrimPrefix(d.Addr, srvHost))
	}
	slices.Sort(out)
	return out
}

// Prose test 9, and its like for replica sets: nothing but a sharded cluster is looked for in DNS.
func TestSRVPollingProse09NotForOthers(t *testing.T) {
	for name, balanced := range map[string]bool{"load balanced": true, "replica set": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &fakeserver.Network{}
				addr := srvHost + "27017"
				newNode(network, addr, member(event.RSPrimary, addr, addr))
				topo := connect(t, network, Config{LoadBalanced: balanced, SRV: &SRV{
					Lookup: func(context.Context) ([]string, time.Duration, error) {
						t.Error("DNS was asked")
						return addrs("27017 27018"), 0, nil
					},
				}}, addr)
				time.Sleep(3 * minRescanInterval)
				if got := ports(topo); !slices.Equal(got, []string{"27017"}) {
					t.Errorf("hosts %v", got)
				}
			})
		})
	}
}

// TestSRVPollingWhileUnknown: as long as no server has said what it is, DNS is asked and listened
// to, so that a client whose seeds have all gone finds the others (specification: Polling SRV
// Records).
func TestSRVPollingWhileUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, srvHost+"27019", mongos)
		topo := connect(t, network, Config{SRV: &SRV{Lookup: func(context.Context) ([]string, time.Duration, error) {
			return addrs("27018 27019"), 0, nil
		}}}, addrs("27017")...)
		time.Sleep(minRescanInterval - time.Second)
		if got := ports(topo); !slices.Equal(got, []string{"27017"}) || topo.Description().Kind != event.UnknownTopology {
			t.Errorf("hosts %v, %v", got, topo.Description().Kind)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := ports(topo); !slices.Equal(got, []string{"27018", "27019"}) || topo.Description().Kind != event.Sharded {
			t.Errorf("after a look-up: hosts %v, %v", got, topo.Description().Kind)
		}
	})
}

func TestSRVPollingHonoursTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, srvHost+"27017", mongos)
		var at []time.Duration
		start := time.Now()
		connect(t, network, Config{SRV: &SRV{TTL: 2 * time.Minute, Lookup: func(context.Context) ([]string, time.Duration, error) {
			at = append(at, time.Since(start))
			time.Sleep(30 * time.Second) // the time to live begins when the answer is there
			return addrs("27017"), 5 * time.Minute, nil
		}}}, addrs("27017")...)
		time.Sleep(14 * time.Minute)
		synctest.Wait()
		if want := []time.Duration{2 * time.Minute, 7*time.Minute + 30*time.Second, 13 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("asked at %v, want %v", at, want)
		}
	})
}

// A record that is not valid is left out, and the log names it; the others are taken, and DNS is
// not asked more often.
func TestSRVPollingLogsWhatItLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &logRecorder{}
		log, _ := logging.New(logging.Options{Handler: recorder}, func(string) string { return "" })
		network := &fakeserver.Network{}
		for _, port := range []string{"27017", "27019"} {
			newNode(network, srvHost+port, mongos)
		}
		lookups := 0
		topo := connect(t, network, Config{Log: log, SRV: &SRV{Lookup: func(context.Context) ([]string, time.Duration, error) {
			lookups++
			return addrs("27017 27019"), 0, errors.New("evil.example is elsewhere")
		}}}, addrs("27017")...)
		time.Sleep(2*minRescanInterval - time.Second)
		synctest.Wait()
		if got := ports(topo); !slices.Equal(got, []string{"27017", "27019"}) || lookups != 1 {
			t.Errorf("hosts %v after %d look-ups", got, lookups)
		}
		recorder.mu.Lock()
		defer recorder.mu.Unlock()
		if !slices.ContainsFunc(recorder.messages, func(m map[string]any) bool {
			failure, _ := m["failure"].(string)
			return m["level"] == slog.LevelWarn && strings.Contains(failure, "evil.example")
		}) {
			t.Error("the log does not name the record")
		}
	})
}

// That DNS has no answer is logged, with the reason.
func TestSRVPollingTellsOfNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &logRecorder{}
		log, _ := logging.New(logging.Options{Handler: recorder}, func(string) string { return "" })
		network := &fakeserver.Network{}
		newNode(network, srvHost+"27017", mongos)
		errs := []error{errors.New("name server is down"), nil}
		connect(t, network, Config{Log: log, SRV: &SRV{Lookup: func(context.Context) (_ []string, _ time.Duration, err error) {
			if len(errs) > 0 {
				err, errs = errs[0], errs[1:]
			}
			return nil, 0, err
		}}}, addrs("27017")...)
		time.Sleep(minRescanInterval + DefaultHeartbeatInterval + time.Second)
		synctest.Wait()
		recorder.mu.Lock()
		defer recorder.mu.Unlock()
		var failures []any
		for _, m := range recorder.messages {
			if m["level"] == slog.LevelWarn {
				failures = append(failures, m["failure"])
			}
		}
		if len(failures) != 2 || failures[0] != "name server is down" || failures[1] != errNoHosts.Error() {
			t.Errorf("warnings of %q", failures)
		}
	})
}
