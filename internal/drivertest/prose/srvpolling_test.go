package prose

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// changingResolver answers with SRV records of localhost.test.build.10gen.cc that a test replaces.
type changingResolver struct {
	mu      sync.Mutex
	service string // that it was last asked for
	ports   []uint16
	err     error
}

func (r *changingResolver) set(err error, ports ...uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ports, r.err = ports, err
}

func (r *changingResolver) lastService() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.service
}

func (r *changingResolver) LookupSRV(_ context.Context, service, _, _ string) (string, []*net.SRV, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.service = service
	var out []*net.SRV
	for _, port := range r.ports {
		out = append(out, &net.SRV{Target: "localhost.test.build.10gen.cc.", Port: port})
	}
	return "", out, r.err
}

func (r *changingResolver) LookupTXT(_ context.Context, name string) ([]string, error) {
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// The prose tests of Polling SRV Records for mongos Discovery, with the client as a whole. Package
// topology tests how often DNS is asked.
func TestProseSRVPolling(t *testing.T) {
	lookupTimeout := &net.DNSError{Err: "i/o timeout", Name: "test1.test.build.10gen.cc", IsTimeout: true}
	for _, tt := range []struct {
		name, host, options string
		before              []uint16
		err                 error
		after               []uint16
		want                []string // ports; "?" is any other of after
	}{
		{"1 addition", "test1", "", []uint16{27017, 27018}, nil, []uint16{27017, 27018, 27019}, []string{"27017", "27018", "27019"}},
		{"2 removal", "test1", "", []uint16{27017, 27018}, nil, []uint16{27017}, []string{"27017"}},
		{"3 replacement", "test1", "", []uint16{27017, 27018}, nil, []uint16{27017, 27019}, []string{"27017", "27019"}},
		{"4 both by one", "test1", "", []uint16{27017, 27018}, nil, []uint16{27019}, []string{"27019"}},
		{"5 both by two", "test1", "", []uint16{27017, 27018}, nil, []uint16{27019, 27020}, []string{"27019", "27020"}},
		{"6 lookup timeout", "test1", "", []uint16{27017, 27018}, lookupTimeout, nil, []string{"27017", "27018"}},
		{"7 lookup failure", "test1", "", []uint16{27017, 27018}, errors.New("no such domain"), nil, []string{"27017", "27018"}},
		{"8 no records", "test1", "", []uint16{27017, 27018}, nil, nil, []string{"27017", "27018"}},
		{"9 load balanced", "test3", "&loadBalanced=true", []uint16{27017}, nil, []uint16{27017, 27018}, []string{"27017"}},
		{"10 srvMaxHosts 0", "test1", "&srvMaxHosts=0", []uint16{27017, 27018}, nil, []uint16{27017, 27019, 27020}, []string{"27017", "27019", "27020"}},
		{"11 srvMaxHosts as many as records", "test1", "&srvMaxHosts=2", []uint16{27017, 27018}, nil, []uint16{27019, 27020}, []string{"27019", "27020"}},
		{"12 srvMaxHosts", "test1", "&srvMaxHosts=2", []uint16{27017, 27018}, nil, []uint16{27017, 27019, 27020}, []string{"27017", "?"}},
		{"13 srvServiceName", "test22", "&srvServiceName=customname", []uint16{27017, 27018}, nil, []uint16{27019, 27020}, []string{"27019", "27020"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				balanced := strings.Contains(tt.options, "loadBalanced")
				kind := mongotest.Sharded(1, 4)
				if balanced {
					kind = mongotest.LoadBalanced(1)
				}
				d := testdeploy.Mock(t, "an in-memory network", kind, mongotest.InMemory())
				resolver := &changingResolver{ports: tt.before}
				client := rig.Open(t, "mongodb+srv://"+tt.host+".test.build.10gen.cc/?tls=false"+tt.options, allium.ClientOptions{
					Resolver: resolver, Dialer: rig.SeedDialer{Deployment: d},
				})
				if !balanced {
					if err := client.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				resolver.set(tt.err, tt.after...)
				time.Sleep(2 * time.Minute) // twice rescanSRVIntervalMS
				synctest.Wait()
				var got []string
				for _, s := range client.Topology().Servers {
					got = append(got, strings.TrimPrefix(s.Addr, "localhost.test.build.10gen.cc:"))
				}
				slices.Sort(got)
				if tt.want[len(tt.want)-1] == "?" && len(got) == 2 && (got[1] == "27019" || got[1] == "27020") {
					got[1] = "?"
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("hosts %v, want %v", got, tt.want)
				}
				if want := strings.TrimPrefix(tt.options, "&srvServiceName="); want != tt.options && resolver.lastService() != want {
					t.Errorf("DNS was asked for the service %q", resolver.lastService())
				}
				if !balanced && tt.err == nil {
					if err := client.Ping(t.Context()); err != nil {
						t.Errorf("with the new hosts: %v", err)
					}
				}
			})
		})
	}
}
