package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/spectest"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// seedRecords are the SRV records of the suite of Initial DNS Seedlist Discovery: port by port, of
// the host localhost.test.build.10gen.cc. Package dns tests the records that are wrong, and asks a
// real name server.
var seedRecords = map[string][]uint16{
	"test1": {27017, 27018}, "test2": {27018, 27019}, "test3": {27017}, "test5": {27017}, "test11": {27017}, "test18": {27017},
	"test20": {27017}, "test21": {27017}, "test22": {27017, 27018}, "test23": {8000}, "test24": {8000},
}

var seedTexts = map[string]string{
	"test5": "replicaSet=repl0&authSource=thisDB", "test11": "replicaSet=repl0", "test20": "loadBalanced=true", "test21": "loadBalanced=false",
	"test24": "loadBalanced=true",
}

// seedResolver answers from seedRecords.
type seedResolver struct{}

func (seedResolver) LookupSRV(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
	label, _, _ := strings.Cut(name, ".")
	target := "localhost.test.build.10gen.cc."
	if label == "test18" {
		target = "localhost.sub.test.build.10gen.cc."
	}
	var out []*net.SRV
	for _, port := range seedRecords[label] {
		out = append(out, &net.SRV{Target: target, Port: port})
	}
	if len(out) == 0 {
		return "", nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return "", out, nil
}

func (seedResolver) LookupTXT(_ context.Context, name string) ([]string, error) {
	label, _, _ := strings.Cut(name, ".")
	if text, ok := seedTexts[label]; ok {
		return []string{text}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// The files of Initial DNS Seedlist Discovery that lead to a deployment: the client finds it with
// TLS, and a ping succeeds.
func TestSeedlistSuite(t *testing.T) {
	deployments := map[string][]mongotest.Option{
		"replica-set":   {mongotest.ReplicaSet(3), mongotest.SetName("repl0")},
		"sharded":       {mongotest.Sharded(1, 2)},
		"load-balanced": {mongotest.LoadBalanced(2)},
	}
	for _, file := range spectest.Files(t, "initial-dns-seedlist-discovery/tests/*/*.json") {
		if folder := filepath.Base(filepath.Dir(file)); deployments[folder] == nil {
			t.Errorf("there is no deployment for %s", folder)
		}
	}
	for folder, options := range deployments {
		t.Run(folder, func(t *testing.T) {
			d := testdeploy.Mock(t, "an in-memory network", append(options, mongotest.TLS(), mongotest.InMemory())...)
			for _, file := range spectest.Files(t, "initial-dns-seedlist-discovery/tests/"+folder+"/*.json") {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { seedlistCase(t, d, file) })
			}
		})
	}
}

func seedlistCase(t *testing.T, d *mongotest.Deployment, file string) {
	var tt struct {
		URI, Comment string
		Hosts        []string
		NumHosts     *int
		Ping         *bool
		Error        bool

		Seeds, NumSeeds, Options any // package dns tests them
		Parsed                   any `json:"parsed_options"`
	}
	spectest.Decode(t, file, &tt)
	tlsConfig := d.TLSConfig()
	tlsConfig.ServerName = "localhost" // which the certificate is for, whatever name leads there
	uri := tt.URI
	// Setting it in code also switches TLS on for the string with ssl=false: this deployment has
	// nothing else, and the option itself is tested beside the parser.
	opts := allium.ClientOptions{TLS: tlsConfig, Dialer: rig.SeedDialer{Deployment: d}, Resolver: seedResolver{}}
	found := make(chan struct{}, 1)
	hosts := func(topology *event.TopologyDescription) []string {
		var out []string
		for _, s := range topology.Servers {
			out = append(out, s.Addr)
		}
		slices.Sort(out)
		return out
	}
	opts.ServerMonitor = &event.ServerMonitor{TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) {
		got := hosts(e.NewDescription)
		if tt.NumHosts != nil && len(got) == *tt.NumHosts || tt.NumHosts == nil && slices.Equal(got, tt.Hosts) {
			select {
			case found <- struct{}{}:
			default:
			}
		}
	}}
	if tt.Error {
		client, err := allium.Open(uri, opts)
		if err == nil {
			client.Close(t.Context())
			t.Fatalf("%s: no error", uri)
		}
		return
	}
	slices.Sort(tt.Hosts)
	client := rig.Open(t, uri, opts)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// Without a ping there may be wrong credentials; monitors do not need any.
	if tt.Ping == nil || *tt.Ping {
		if err := client.Ping(ctx); err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
	}
	select {
	case <-found:
	case <-ctx.Done():
		t.Errorf("%s: hosts %q, want %q", uri, hosts(client.Topology()), tt.Hosts)
	}
}

// targetResolver answers every question about SRV records with one target.
type targetResolver string

func (r targetResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", []*net.SRV{{Target: string(r) + ".", Port: 27017}}, nil
}

func (targetResolver) LookupTXT(context.Context, string) ([]string, error) { return nil, nil }

// refusingDialer remembers what was dialed.
type refusingDialer struct{ rig.AddrRecorder }

func (r *refusingDialer) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	r.Add(address)
	return nil, errors.New("there are no servers")
}

// Initial DNS Seedlist Discovery, prose tests 1 to 4, with the client; package dns has further
// cases.
func TestProseSeedlistClient(t *testing.T) {
	for _, tt := range []struct {
		name, host, target string
		ok                 bool
	}{
		{"1", "localhost", "a.localhost", true}, {"1", "mongo.local", "a.mongo.local", true},
		{"2", "localhost", "localhost.mongodb", false}, {"2", "mongo.local", "test_1.evil.local", false}, {"2", "blogs.mongodb.com", "blogs.evil.com", false},
		{"3", "localhost", "localhost", false}, {"3", "mongo.local", "mongo.local", false},
		{"4", "localhost", "test_1.cluster_1localhost", false}, {"4", "mongo.local", "test_1.my_hostmongo.local", false},
		{"4", "blogs.mongodb.com", "cluster.testmongodb.com", false},
	} {
		t.Run(tt.name+" "+tt.host+" "+tt.target, func(t *testing.T) {
			dialed := &refusingDialer{}
			client, err := allium.Open("mongodb+srv://"+tt.host, allium.ClientOptions{Resolver: targetResolver(tt.target), Dialer: dialed})
			if (err == nil) != tt.ok {
				t.Errorf("error %v", err)
			}
			if err != nil {
				if len(dialed.Seen()) != 0 {
					t.Errorf("%v were dialed", dialed.Seen())
				}
				return
			}
			defer client.Close(t.Context())
			if servers := client.Topology().Servers; len(servers) != 1 || servers[0].Addr != tt.target+":27017" {
				t.Errorf("servers %v", servers)
			}
		})
	}
}

// textResolver answers with two hosts and a text.
type textResolver string

func (textResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", []*net.SRV{{Target: "a.mongo.local.", Port: 27017}, {Target: "b.mongo.local.", Port: 27017}}, nil
}

func (r textResolver) LookupTXT(context.Context, string) ([]string, error) {
	return []string{string(r)}, nil
}

// A string is judged together with what DNS says: neither may contradict the other (specification:
// Initial DNS Seedlist Discovery).
func TestAnswersOfDNSAreJudged(t *testing.T) {
	for _, c := range []struct{ options, text, want string }{
		{"", "replicaSet=rs", ""},
		{"", "loadBalanced=true", "loadBalanced=true and several hosts"},
		{"srvMaxHosts=1", "replicaSet=rs", "srvMaxHosts and replicaSet"},
		{"srvMaxHosts=1", "loadBalanced=true", "srvMaxHosts and loadBalanced=true"},
		{"replicaSet=rs", "loadBalanced=true", "loadBalanced=true"},
		{"readPreference=primary&maxStalenessSeconds=90", "", "maxStalenessSeconds"},
		{"minPoolSize=9&maxPoolSize=3", "authSource=other", "minPoolSize"},
	} {
		dialed := &refusingDialer{}
		client, err := allium.Open("mongodb+srv://mongo.local/?"+c.options, allium.ClientOptions{Resolver: textResolver(c.text), Dialer: dialed})
		if err == nil {
			client.Close(t.Context())
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q with %q: %v", c.options, c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q with %q: error %v, want one about %s", c.options, c.text, err, c.want)
		case c.want != "" && len(dialed.Seen()) != 0:
			t.Errorf("%q with %q: %v were dialed", c.options, c.text, dialed.Seen())
		}
	}
}

// manyResolver names a number of servers, all of whose names lead to one deployment.
type manyResolver int

func (r manyResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	records := make([]*net.SRV, r)
	for i := range records {
		records[i] = &net.SRV{Target: fmt.Sprintf("s%d.example.com.", i), Port: 27017}
	}
	return "", records, nil
}

func (manyResolver) LookupTXT(context.Context, string) ([]string, error) { return nil, nil }

// A client uses a thousand servers that DNS names, and says so, unless srvMaxHosts says otherwise.
func TestSeedlistBound(t *testing.T) {
	for _, tt := range []struct {
		records, limit, want int
		warns                bool
	}{{1000, 0, 1000, false}, {1500, 0, 1000, true}, {1500, 1200, 1200, false}, {1500, 7, 7, false}} {
		var log strings.Builder
		client := rig.Open(t, fmt.Sprintf("mongodb+srv://cluster.example.com/?srvMaxHosts=%d", tt.limit), allium.ClientOptions{
			Resolver: manyResolver(tt.records), Dialer: &refusingDialer{}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if n := len(client.Topology().Servers); n != tt.want {
			t.Errorf("%+v: %d servers", tt, n)
		}
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if warned := strings.Contains(log.String(), "DNS names 1500 servers for cluster.example.com; 1000 of them are used"); warned != tt.warns {
			t.Errorf("%+v: log %s", tt, log.String())
		}
	}
}

// onlyDialer connects to the one server, whatever name leads there.
type onlyDialer struct{ d *mongotest.Deployment }

func (o onlyDialer) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	return o.d.DialContext(ctx, network, o.d.Hosts()[0])
}

// TLS goes on and off in code, whatever the string says, with and without DNS.
func TestUseTLS(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		options := []mongotest.Option{mongotest.Standalone(), mongotest.InMemory()}
		if encrypted {
			options = append(options, mongotest.TLS())
		}
		d := testdeploy.Mock(t, "an in-memory network", options...)
		dialer := onlyDialer{d}
		for _, uri := range []string{
			"mongodb+srv://cluster.example.com/?directConnection=false", "mongodb+srv://cluster.example.com/?tls=true",
			"mongodb+srv://cluster.example.com/?tls=false", "mongodb://a.example.com/?tls=true&tlsInsecure=true", "mongodb://a.example.com",
			"mongodb://a.example.com/?tls=false",
		} {
			o := allium.ClientOptions{UseTLS: new(encrypted), Dialer: dialer, Resolver: targetResolver("a.example.com")}
			if encrypted {
				o.TLSFiles = &allium.TLSFiles{Insecure: true}
			}
			client := rig.Open(t, uri, o)
			if err := client.Ping(t.Context()); err != nil {
				t.Errorf("%s with UseTLS %t: %v", uri, encrypted, err)
			}
		}
	}
	for _, o := range []allium.ClientOptions{{TLS: &tls.Config{}}, {TLSFiles: &allium.TLSFiles{}}} {
		o.UseTLS = new(false)
		if client, err := allium.Open("mongodb://a.example.com", o); err == nil || !strings.Contains(err.Error(), "UseTLS is false") {
			t.Errorf("%v: %v, %v", o, client, err)
		}
	}
	// On by the option alone: the system's authorities are asked.
	synctest.Test(t, func(t *testing.T) {
		d := testdeploy.Mock(t, "an in-memory network", mongotest.Standalone(), mongotest.InMemory(), mongotest.TLS())
		client := rig.Open(t, d.URI(), allium.ClientOptions{UseTLS: new(true), Dialer: d})
		if err := client.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("an unknown authority: %v", err)
		}
	})
}
