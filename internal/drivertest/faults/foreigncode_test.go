package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/owncode"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// Whatever code of the program's does, it takes nothing with it: no connection, session, cursor,
// transaction, lock or slot. On the caller's goroutine it goes on to the caller.
func TestCodeOfTheProgram(t *testing.T) {
	for _, kind := range []struct {
		name string
		kind mongotest.Option
	}{{"replica set", mongotest.ReplicaSet(1)}, {"sharded", mongotest.Sharded(1, 1)}} {
		for _, p := range codePlaces {
			for mode, do := range codeModes {
				if mode == "call" && !p.calls {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", kind.name, p.name, mode), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testCode(t, kind.kind, p, mode, do) })
				})
			}
		}
	}
}

func testCode(t *testing.T, kind mongotest.Option, p codePlace, mode string, do func(*allium.Collection[coded])) {
	var coll *allium.Collection[coded]
	var armed, ran atomic.Bool
	code := func() {
		if armed.CompareAndSwap(true, false) {
			ran.Store(true) // once: what the driver does to clean up is told, too
			do(coll)
		}
	}
	opts := allium.ClientOptions{MaxPoolSize: new(2)}
	if p.set != nil {
		p.set(&opts, code)
	}
	var spans, commands openEnds
	if opts.Tracing == nil {
		opts.Tracing = &allium.Tracing{Tracer: &spans, Enabled: new(true)}
	}
	if opts.CommandMonitor == nil {
		opts.CommandMonitor = &event.CommandMonitor{
			Started:   func(context.Context, *event.CommandStarted) { commands.open.Add(1) },
			Succeeded: func(context.Context, *event.CommandSucceeded) { commands.open.Add(-1) },
			Failed:    func(context.Context, *event.CommandFailed) { commands.open.Add(-1) },
		}
	}
	_, client, _ := rig.Bubble(t, opts, kind)
	coll = allium.CollectionOf[coded](client.Database("d"), "c")
	if _, err := coll.InsertMany(t.Context(), make([]coded, 7)); err != nil {
		t.Fatal(err)
	}
	if _, err := allium.CollectionOf[bson.D](client.Database("d"), "other").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	run := p.run
	if run == nil {
		run = func(ctx context.Context, c *allium.Collection[coded], _ func()) error {
			return rig.ErrorOf(c.InsertOne(ctx, coded{}))
		}
	}
	for range 3 { // more often than there are connections
		ran.Store(false)
		armed.Store(true)
		how, err := owncode.Ending(func() error { return run(t.Context(), coll, code) })
		armed.Store(false)
		synctest.Wait() // what is made up for in the background
		want := mode
		if p.own {
			want = "call"
		}
		if !ran.Load() || how != want || how == "call" && err != nil {
			t.Fatalf("the code ran: %v; the operation ended by %s, %v; want %s", ran.Load(), how, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := coll.CountDocuments(ctx, bson.D{}); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	s := client.Stats()
	for _, pool := range s.Pools {
		if pool.InUse != 0 || pool.Connecting != 0 || pool.Draining != 0 {
			t.Errorf("left in the pool: %+v", pool)
		}
	}
	if spans.open.Load() != 0 || commands.open.Load() != 0 {
		t.Errorf("%d spans and %d commands have no end", spans.open.Load(), commands.open.Load())
	}
	if s.Sessions.InUse != 0 || s.Operations != 0 || s.Cursors != 0 {
		t.Errorf("left: sessions %+v, operations in flight %d, cursors %d", s.Sessions, s.Operations, s.Cursors)
	}
}

// Code that runs on the driver's own goroutines ends neither the process nor what it is a part of:
// the operation gets its error, and the next one works.
func TestCodeOnTheDriversGoroutines(t *testing.T) {
	type options = *allium.ClientOptions
	calls := []string{ // these run beside what they are told of
		"PoolCreated", "PoolReady", "ConnectionCreated", "ConnectionReady", "ServerHeartbeatStarted", "ServerHeartbeatSucceeded", "ServerDescriptionChanged", "TopologyDescriptionChanged", "log handler of discovery",
	}
	for name, set := range map[string]func(o options, code func()){
		"dialer": func(o options, code func()) { o.Dialer = codedDialer{o.Dialer, code} },
		"PoolCreated": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolCreated: func(*event.PoolCreated) { code() }}
		},
		"PoolReady": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolReady: func(*event.PoolReady) { code() }}
		},
		"ConnectionCreated": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{ConnectionCreated: func(*event.ConnectionCreated) { code() }}
		},
		"ConnectionReady": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{ConnectionReady: func(*event.ConnectionReady) { code() }}
		},
		"ServerHeartbeatStarted": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{ServerHeartbeatStarted: func(*event.ServerHeartbeatStarted) { code() }}
		},
		"ServerHeartbeatSucceeded": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { code() }}
		},
		"ServerDescriptionChanged": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{ServerDescriptionChanged: func(*event.ServerDescriptionChanged) { code() }}
		},
		"TopologyDescriptionChanged": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{TopologyDescriptionChanged: func(*event.TopologyDescriptionChanged) { code() }}
		},
		"log handler of discovery": func(o options, code func()) {
			o.Logger = slog.New(owncode.Handler{Code: code})
			o.LogLevels = only(allium.LogTopology)
		},
		"log handler of everything": func(o options, code func()) {
			o.Logger = slog.New(owncode.Handler{Code: code})
			o.LogLevels = map[allium.LogComponent]slog.Level{allium.LogTopology: slog.LevelDebug, allium.LogConnection: slog.LevelDebug}
		},
	} {
		for mode, do := range codeModes {
			if mode == "call" && !slices.Contains(calls, name) {
				continue
			}
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, _, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
					opts := allium.ClientOptions{Dialer: d, MaxPoolSize: new(1)}
					code := &ownCode{do: do, calls: mode == "call"}
					set(&opts, code.run)
					left := testOwn(t, d.URI(), opts, code)
					if mode == "call" && code.returned.Load() != 2-left {
						t.Errorf("the code has used the client %d times, want %d", code.returned.Load(), 2-left)
					}
					if left == 2 {
						t.Error("the code has not run")
					}
				})
			})
		}
	}
}

// ownCode is code that does what it is told as often as left says.
type ownCode struct {
	do       func(*allium.Collection[coded])
	calls    bool // it uses the client, and so has to wait until there is one
	armed    <-chan struct{}
	coll     atomic.Pointer[allium.Collection[coded]]
	left     atomic.Int32
	returned atomic.Int32 // how often it came to its end
}

func (c *ownCode) run() {
	if c.armed != nil {
		<-c.armed
	}
	for left := c.left.Load(); left > 0; left = c.left.Load() {
		if c.left.CompareAndSwap(left, left-1) {
			c.do(c.coll.Load())
			c.returned.Add(1)
			return
		}
	}
}

// testOwn runs operations while code on the driver's goroutines fails twice, and then one that must
// succeed. It returns how often the code might still have failed.
func testOwn(t *testing.T, uri string, opts allium.ClientOptions, code *ownCode) int32 {
	t.Helper()
	code.left.Store(2)
	armed := make(chan struct{})
	if code.calls {
		code.armed = armed
	}
	client, err := allium.Open(uri, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	code.coll.Store(allium.CollectionOf[coded](client.Database("d"), "c"))
	close(armed)
	coll := client.Database("d").Collection("c")
	for range 4 {
		_, err := owncode.Ending(func() error { return rig.ErrorOf(coll.InsertOne(t.Context(), bson.D{})) })
		if err != nil && !strings.Contains(err.Error(), "the program's") && !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("the error is not that of the code: %v", err)
		}
		time.Sleep(15 * time.Second)
	}
	synctest.Wait() // what runs at this very moment has come to its end
	rest := code.left.Swap(0)
	if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
		t.Error(err)
	}
	if s := client.Stats(); s.Pools[0].InUse != 0 || s.Pools[0].Connecting != 0 || s.Sessions.InUse != 0 {
		t.Errorf("left: %+v, sessions %+v", s.Pools[0], s.Sessions)
	}
	return rest
}

// What a connection asks for while it is made is called on the driver's goroutines, too.
func TestCallbacksOfConnecting(t *testing.T) {
	overTLS := func(set func(cfg *tls.Config, code func())) func(t *testing.T, code func()) (string, allium.ClientOptions) {
		return func(t *testing.T, code func()) (string, allium.ClientOptions) {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), mongotest.TLS(), mongotest.ReplicaSet(1))
			cfg := d.TLSConfig().Clone()
			set(cfg, code)
			return d.URI(), allium.ClientOptions{Dialer: d, TLS: cfg}
		}
	}
	for name, start := range map[string]func(t *testing.T, code func()) (string, allium.ClientOptions){
		"VerifyConnection": overTLS(func(cfg *tls.Config, code func()) {
			cfg.VerifyConnection = func(tls.ConnectionState) error { code(); return nil }
		}),
		"VerifyPeerCertificate": overTLS(func(cfg *tls.Config, code func()) {
			cfg.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { code(); return nil }
		}),
		"GetClientCertificate": overTLS(func(cfg *tls.Config, code func()) {
			certificates := cfg.Certificates
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				code()
				if len(certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &certificates[0], nil
			}
		}),
		"AWS credentials callback": func(t *testing.T, code func()) (string, allium.ClientOptions) {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.Auth("root", "root"), mongotest.InMemory())
			key := mongotest.AWSKey{ID: "AKIAPERMANENT", Secret: "wJalrXUtnFEMI/K7MDENG"}
			if err := d.AddUser(mongotest.User{Name: "arn:aws:iam::1:user/1", DB: "$external", Roles: []string{"root"}, AWS: key}); err != nil {
				t.Fatal(err)
			}
			return "mongodb://" + d.Hosts()[0] + "/?authMechanism=MONGODB-AWS", allium.ClientOptions{Dialer: d,
				AWSCredentials: func(context.Context) (auth.AWSCredentials, error) {
					code()
					return auth.AWSCredentials{AccessKeyID: key.ID, SecretAccessKey: auth.Secret(key.Secret)}, nil
				}}
		},
		"credentials callback": func(t *testing.T, code func()) (string, allium.ClientOptions) {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.Auth("root", "root"), mongotest.InMemory())
			return "mongodb://" + d.Hosts()[0], allium.ClientOptions{Dialer: d, Credentials: func(context.Context) (auth.Credential, error) {
				code()
				return auth.Credential{Username: "root", Password: "root"}, nil
			}}
		},
		"OIDC callback as a connection is authenticated again": func(t *testing.T, code func()) (string, allium.ClientOptions) {
			w := rig.StartOIDC(t)
			w.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Code: 391})
			var calls atomic.Int32
			return w.URI(""), allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
				if calls.Add(1) > 1 {
					code()
				}
				return rig.AccessToken(rig.TokenOf1), nil
			}}}
		},
		"OIDC callback": func(t *testing.T, code func()) (string, allium.ClientOptions) {
			w := rig.StartOIDC(t)
			good := w.Returning(t, rig.AccessToken(rig.TokenOf1))
			return w.URI(""), allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{Callback: func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
				code()
				return good(ctx, p)
			}}}
		},
	} {
		for _, mode := range []string{"panic", "Goexit"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					code := &ownCode{do: codeModes[mode]}
					uri, opts := start(t, code.run)
					opts.MaxPoolSize = new(1)
					if testOwn(t, uri, opts, code) == 2 {
						t.Error("the code has not run")
					}
				})
			})
		}
	}
}

// codedResolver names one mongos, and runs code.
type codedResolver struct {
	srv, txt func()
	port     uint16
}

func (r *codedResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	r.srv()
	return "", []*net.SRV{{Target: "localhost.test.example.", Port: r.port}}, nil
}

func (r *codedResolver) LookupTXT(_ context.Context, name string) ([]string, error) {
	r.txt()
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// A resolver is asked for servers on the goroutine of Open's caller, beside that for options, and
// for further servers on one of the topology's.
func TestCodeOfResolvers(t *testing.T) {
	for _, mode := range []string{"panic", "Goexit"} {
		fails, works := func() { codeModes[mode](nil) }, func() {}
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), mongotest.Sharded(1, 1))
				_, port, err := net.SplitHostPort(d.Hosts()[0])
				if err != nil {
					t.Fatal(err)
				}
				number, err := strconv.ParseUint(port, 10, 16)
				if err != nil {
					t.Fatal(err)
				}
				try := func(r *codedResolver) (*allium.Client, error) {
					r.port = uint16(number)
					return allium.Open("mongodb+srv://test.example/?tls=false", allium.ClientOptions{Dialer: rig.SeedDialer{Deployment: d}, Resolver: r})
				}
				if how, _ := owncode.Ending(func() error { return rig.ErrorOf(try(&codedResolver{srv: fails, txt: works})) }); how != mode {
					t.Errorf("the records of servers: Open ended by %s, want %s", how, mode)
				}
				if how, err := owncode.Ending(func() error { return rig.ErrorOf(try(&codedResolver{srv: works, txt: fails})) }); how != "call" || err == nil {
					t.Errorf("the record of options: Open ended by %s, %v", how, err)
				}
				var asked atomic.Int32
				client, err := try(&codedResolver{txt: works, srv: func() {
					if n := asked.Add(1); n > 1 && n < 4 {
						fails()
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				time.Sleep(5 * time.Minute)
				if n := asked.Load(); n < 4 {
					t.Errorf("the resolver was asked %d times", n)
				}
				if err := client.Ping(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Listeners for pools may fail when a command's error clears the pool of its server. Listeners for
// commands hear how each one ends all the same.
func TestCommandsEndForListeners(t *testing.T) {
	type options = *allium.ClientOptions
	for name, set := range map[string]func(o options, code func()){
		"PoolCleared": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolCleared: func(*event.PoolCleared) { code() }}
		},
		"log handler of pools": func(o options, code func()) {
			o.Logger, o.LogLevels = slog.New(owncode.Handler{Code: code}), only(allium.LogConnection)
		},
	} {
		for fault, f := range map[string]mongotest.Fail{
			"connection breaks": {Commands: []string{"insert"}, Times: 1, CloseConnection: true},
			"change of state":   {Commands: []string{"insert"}, Times: 1, Code: 11600},
		} {
			for mode, do := range codeModes {
				if mode == "call" {
					continue
				}
				t.Run(name+"/"+fault+"/"+mode, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var armed, ran atomic.Bool
						var started, ended atomic.Int32
						opts := allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
							Started:   func(context.Context, *event.CommandStarted) { started.Add(1) },
							Succeeded: func(context.Context, *event.CommandSucceeded) { ended.Add(1) },
							Failed:    func(context.Context, *event.CommandFailed) { ended.Add(1) },
						}}
						set(&opts, func() {
							if armed.CompareAndSwap(true, false) {
								ran.Store(true)
								do(nil)
							}
						})
						d, client, _ := rig.Bubble(t, opts, mongotest.ReplicaSet(1))
						coll := allium.CollectionOf[coded](client.Database("d"), "c")
						if _, err := coll.InsertOne(t.Context(), coded{}); err != nil {
							t.Fatal(err)
						}
						d.FailCommand(f)
						armed.Store(true)
						how, _ := owncode.Ending(func() error { return rig.ErrorOf(coll.InsertOne(t.Context(), coded{})) })
						if !ran.Load() {
							t.Fatalf("the code ran: %v; the operation ended by %s", ran.Load(), how)
						}
						if s, e := started.Load(), ended.Load(); s != e {
							t.Errorf("%d commands have started, %d have ended", s, e)
						}
						if _, err := coll.InsertOne(t.Context(), coded{}); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}
