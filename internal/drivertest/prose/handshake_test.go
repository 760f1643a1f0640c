package prose

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// The prose tests of the specification MongoDB Handshake, and its Client Metadata Update Prose
// Tests, by their numbers, as programs use the client.

// greeted is a client of a deployment that keeps the handshakes of all connections.
type greeted struct {
	t      *testing.T
	client *allium.Client
	mu     sync.Mutex
	hellos []bson.Raw
}

// greet opens a client whose connections are idle for too long after a millisecond.
func greet(t *testing.T, kind mongotest.Option, infos ...allium.DriverInfo) *greeted {
	t.Helper()
	d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), kind)
	g := &greeted{t: t}
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if _, ok := c.Body.Lookup("client").Document(); ok {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.hellos = append(g.hellos, bytes.Clone(c.Body))
		}
		return nil, nil
	})
	opts := allium.ClientOptions{Dialer: d, AppName: "app", MaxIdleTime: new(time.Millisecond)}
	if len(infos) > 0 {
		opts.DriverInfo = &infos[0]
	}
	client, err := allium.Open(d.URI(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	g.client = client
	return g
}

// ping sends a ping over a new connection, and returns what its handshake said of the client.
func (g *greeted) ping() bson.Raw {
	g.t.Helper()
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
	g.mu.Lock()
	before := len(g.hellos)
	g.mu.Unlock()
	if err := g.client.Ping(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.hellos) <= before {
		g.t.Fatal("the connection is not new")
	}
	doc, _ := g.hellos[len(g.hellos)-1].Lookup("client").Document()
	return doc
}

func (g *greeted) add(info allium.DriverInfo) {
	g.t.Helper()
	if err := g.client.AppendDriverInfo(info); err != nil {
		g.t.Fatal(err)
	}
}

// ofLibraries returns what a client document says behind the driver's own name, version and
// platform, and the rest of the document.
func ofLibraries(t *testing.T, client bson.Raw) (infos allium.DriverInfo, others string) {
	t.Helper()
	cut := func(path ...string) string {
		s, ok := client.Lookup(path...).StringValue()
		if !ok {
			t.Errorf("no %s in %s", strings.Join(path, "."), client)
		}
		_, rest, _ := strings.Cut(s, "|")
		return rest
	}
	for key, v := range client.All() {
		if key != "driver" && key != "platform" {
			others += key + ": " + v.String() + "\n"
		}
	}
	return allium.DriverInfo{Name: cut("driver", "name"), Version: cut("driver", "version"), Platform: cut("platform")}, others
}

// both returns two infos as the client shows them.
func both(a, b allium.DriverInfo) allium.DriverInfo {
	join := func(a, b string) string { return strings.Trim(a+"|"+b, "|") }
	return allium.DriverInfo{Name: join(a.Name, b.Name), Version: join(a.Version, b.Version), Platform: join(a.Platform, b.Platform)}
}

var (
	theLibrary = allium.DriverInfo{Name: "library", Version: "1.2", Platform: "Library Platform"}
	frameworks = []allium.DriverInfo{
		{Name: "framework", Version: "2.0", Platform: "Framework Platform"}, {Name: "framework", Version: "2.0"},
		{Name: "framework", Platform: "Framework Platform"}, {Name: "framework"},
	}
)

// Test 1: environment metadata.
func TestProseHandshakeEnvironment(t *testing.T) {
	aws := "AWS_Lambda_java8"
	type env = map[string]string
	for name, tt := range map[string]struct {
		env  env
		want env // the fields of client.env
	}{
		"1 AWS": {env{"AWS_EXECUTION_ENV": aws, "AWS_REGION": "us-east-2", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024"},
			env{"name": `"aws.lambda"`, "region": `"us-east-2"`, "memory_mb": "1024"}},
		"2 Azure": {env{"FUNCTIONS_WORKER_RUNTIME": "node"}, env{"name": `"azure.func"`}},
		"3 GCP": {env{"K_SERVICE": "servicename", "FUNCTION_MEMORY_MB": "1024", "FUNCTION_TIMEOUT_SEC": "60", "FUNCTION_REGION": "us-central1"},
			env{"name": `"gcp.func"`, "memory_mb": "1024", "timeout_sec": "60", "region": `"us-central1"`}},
		"4 Vercel":            {env{"VERCEL": "1", "VERCEL_REGION": "cdg1"}, env{"name": `"vercel"`, "region": `"cdg1"`}},
		"5 several providers": {env{"AWS_EXECUTION_ENV": aws, "FUNCTIONS_WORKER_RUNTIME": "node"}, env{}},
		"6 long string":       {env{"AWS_EXECUTION_ENV": aws, "AWS_REGION": strings.Repeat("a", 512)}, env{"name": `"aws.lambda"`}},
		"7 wrong types":       {env{"AWS_EXECUTION_ENV": aws, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "big"}, env{"name": `"aws.lambda"`}},
		"8 no Lambda":         {env{"AWS_EXECUTION_ENV": "EC2"}, env{}},
		"9 container": {env{"AWS_EXECUTION_ENV": aws, "AWS_REGION": "us-east-2", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024", "KUBERNETES_SERVICE_HOST": "1"},
			env{"name": `"aws.lambda"`, "region": `"us-east-2"`, "memory_mb": "1024", "container.orchestrator": `"kubernetes"`}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"AWS_EXECUTION_ENV", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
				"FUNCTIONS_WORKER_RUNTIME", "K_SERVICE", "FUNCTION_NAME", "FUNCTION_MEMORY_MB", "FUNCTION_TIMEOUT_SEC", "FUNCTION_REGION",
				"VERCEL", "VERCEL_REGION", "KUBERNETES_SERVICE_HOST"} {
				t.Setenv(name, tt.env[name])
			}
			synctest.Test(t, func(t *testing.T) {
				doc := greet(t, mongotest.ReplicaSet(1)).ping()
				for _, field := range []string{"name", "region", "memory_mb", "timeout_sec", "container.orchestrator"} {
					got := ""
					if v := doc.Lookup(append([]string{"env"}, strings.Split(field, ".")...)...); !v.IsZero() {
						got = v.String()
					}
					if got != tt.want[field] {
						t.Errorf("env.%s is %s, want %s", field, got, tt.want[field])
					}
				}
			})
		})
	}
}

// Test 2: an arbitrary mechanism in saslSupportedMechs is no error, not even for who logs in.
func TestProseHandshakeMechanisms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kind := range []mongotest.Option{mongotest.Standalone(), mongotest.Auth("root", "root")} {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), kind)
			var asked atomic.Int32
			d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if _, ok := c.Body.Lookup("client").Document(); !ok {
					return nil, nil
				}
				asked.Add(1)
				return bson.Marshal(bson.D{
					{Key: "helloOk", Value: true}, {Key: "isWritablePrimary", Value: true}, {Key: "ismaster", Value: true},
					{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "maxBsonObjectSize", Value: 16 << 20},
					{Key: "maxMessageSizeBytes", Value: 48_000_000}, {Key: "maxWriteBatchSize", Value: 100_000},
					{Key: "saslSupportedMechs", Value: bson.A{"ARBITRARY"}}, {Key: "ok", Value: 1},
				})
			})
			client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, ServerMonitoringMode: "poll"})
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Ping(t.Context()); err != nil || asked.Load() == 0 {
				t.Errorf("%v after %d handshakes", err, asked.Load())
			}
			client.Close(context.Background())
		}
	})
}

// Update tests 1 (appended while the client is made) and 2 (afterwards).
func TestProseMetadataUpdates(t *testing.T) {
	for _, info := range frameworks {
		for _, first := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				var infos []allium.DriverInfo
				if first {
					infos = append(infos, theLibrary)
				}
				g := greet(t, mongotest.ReplicaSet(1), infos...)
				if !first {
					g.add(theLibrary)
				}
				was, before := ofLibraries(t, g.ping())
				g.add(info)
				is, after := ofLibraries(t, g.ping())
				if was != theLibrary || is != both(theLibrary, info) {
					t.Errorf("%+v: the infos are %+v, then %+v", info, was, is)
				}
				if before != after {
					t.Errorf("%+v: %s became %s", info, before, after)
				}
			})
		}
	}
}

// Update test 3: several updates with data in common.
func TestProseMetadataInCommon(t *testing.T) {
	for _, info := range []allium.DriverInfo{
		theLibrary,
		{Name: "framework", Version: "1.2", Platform: "Library Platform"},
		{Name: "library", Version: "2.0", Platform: "Library Platform"},
		{Name: "library", Version: "1.2", Platform: "Framework Platform"},
		{Name: "framework", Version: "2.0", Platform: "Library Platform"},
		{Name: "framework", Version: "1.2", Platform: "Framework Platform"},
		{Name: "library", Version: "2.0", Platform: "Framework Platform"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := greet(t, mongotest.ReplicaSet(1))
			g.add(theLibrary)
			_, before := ofLibraries(t, g.ping())
			g.add(info)
			is, after := ofLibraries(t, g.ping())
			want := both(theLibrary, info)
			if info == theLibrary {
				want = theLibrary
			}
			if is != want || before != after {
				t.Errorf("%+v: the infos are %+v, want %+v; %s became %s", info, is, want, before, after)
			}
		})
	}
}

// Update tests 4 to 8: an info that is there already is not appended again, and an empty string is
// the same as none.
func TestProseMetadataTwice(t *testing.T) {
	framework := allium.DriverInfo{Name: "framework", Version: "2.0", Platform: "Framework Platform"}
	similar := allium.DriverInfo{Name: "framework", Version: "1.2", Platform: "Library Platform"}
	noVersion := allium.DriverInfo{Name: "library", Platform: "Library Platform"}
	noPlatform := allium.DriverInfo{Name: "library", Version: "1.2"}
	type infos = []allium.DriverInfo
	for name, tt := range map[string]struct {
		first, added infos
		again        allium.DriverInfo
	}{
		"4":               {nil, infos{theLibrary, framework}, theLibrary},
		"5":               {infos{theLibrary}, nil, theLibrary},
		"6":               {infos{theLibrary}, infos{similar}, theLibrary},
		"7 no version":    {nil, infos{noVersion}, noVersion},
		"7 no platform":   {nil, infos{noPlatform}, noPlatform},
		"8 no version":    {infos{noVersion}, nil, noVersion},
		"8 no platform":   {infos{noPlatform}, nil, noPlatform},
		"the last before": {infos{theLibrary}, infos{framework}, framework},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := greet(t, mongotest.ReplicaSet(1), tt.first...)
				for _, info := range tt.added {
					g.ping()
					g.add(info)
				}
				before := g.ping()
				g.add(tt.again)
				if after := g.ping(); !bytes.Equal(before, after) {
					t.Errorf("%s became %s", before, after)
				}
			})
		})
	}
}

// Update test 9: all handshakes, also those of monitors, have the version of backpressure.
func TestProseMetadataBackpressure(t *testing.T) {
	for name, tt := range map[string]struct {
		kind  mongotest.Option
		least int // connections
	}{
		"standalone": {mongotest.Standalone(), 2}, "replica set": {mongotest.ReplicaSet(3), 4}, "sharded": {mongotest.Sharded(1, 2), 3},
		"load-balanced": {mongotest.LoadBalanced(1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := greet(t, tt.kind)
				g.ping()
				time.Sleep(time.Minute)
				synctest.Wait()
				g.mu.Lock()
				defer g.mu.Unlock()
				if len(g.hellos) < tt.least {
					t.Errorf("%d handshakes, want %d", len(g.hellos), tt.least)
				}
				for _, doc := range g.hellos {
					if v, _ := doc.Lookup("backpressure").StringValue(); v != "2" {
						t.Errorf("backpressure is %q: %s", v, doc)
					}
				}
			})
		})
	}
}
