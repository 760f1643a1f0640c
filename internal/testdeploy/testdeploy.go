// Package testdeploy gives tests a deployment to run against: one of mongotest, or that of
// $MONGODB_URI. A test that asks for more than that deployment has is skipped and says what it
// needs.
//
// A deployment of $MONGODB_URI belongs to the tests: every Start drops the databases that tests
// use. Packages that share it must not run at the same time (go test -p 1).
package testdeploy

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongotest"
)

// Kind is what a test needs.
type Kind struct {
	name   string
	least  int // how many members or mongoses
	option mongotest.Option
	since  string // the oldest server version
	why    string // what only mongotest has, "" if nothing
	more   []mongotest.Option
}

// With returns the kind with options of mongotest, which $MONGODB_URI cannot have; why says what
// they are for.
func (k Kind) With(why string, opts ...mongotest.Option) Kind {
	k.why, k.more = why, append(k.more[:len(k.more):len(k.more)], opts...)
	return k
}

// Any is a deployment of any topology; mongotest's is a standalone.
var Any = Kind{option: mongotest.Standalone()}

// Standalone is a single server without replication.
var Standalone = Kind{name: "standalone", option: mongotest.Standalone()}

// ReplicaSet is a replica set of at least this many members with data.
func ReplicaSet(members int) Kind {
	return Kind{name: "replica set", least: members, option: mongotest.ReplicaSet(members)}
}

// Sharded is a sharded cluster with at least this many mongoses.
func Sharded(shards, mongoses int) Kind {
	return Kind{name: "sharded cluster", least: mongoses, option: mongotest.Sharded(shards, mongoses)}
}

// LoadBalanced is a deployment behind a load balancer.
func LoadBalanced(mongoses int) Kind {
	return Kind{name: "load-balanced deployment", least: 1, option: mongotest.LoadBalanced(mongoses)}
}

// Since returns the kind with a server of this version or newer.
func (k Kind) Since(version string) Kind {
	k.since = version
	return k
}

// Lagging returns the kind with secondaries of mongotest that apply writes later; those of a real
// deployment lag as they do.
func (k Kind) Lagging(by time.Duration) Kind {
	k.more = append(k.more[:len(k.more):len(k.more)], mongotest.ReplicationLag(by))
	return k
}

// databases are those that tests use.
var databases = []string{"app", "bank", "comments", "d", "db", "e", "logging", "model", "other", "sessions", "streams",
	"test", "test_", "x"}

// Deployment is what a test runs against.
type Deployment struct {
	mock *mongotest.Deployment // nil for a real one
	real *real
}

// real is the deployment of $MONGODB_URI.
type real struct {
	uri      string
	kind     string
	size     int    // members with data or mongoses
	version  string // of the server
	isMaster bson.Raw
}

// Real reports whether $MONGODB_URI names a deployment.
func Real() bool { return os.Getenv("MONGODB_URI") != "" }

var connected = sync.OnceValues(func() (*real, error) {
	r := &real{uri: os.Getenv("MONGODB_URI"), kind: "standalone", size: 1}
	err := r.use(func(ctx context.Context, client *allium.Client) error {
		admin := client.Database("admin")
		var err error
		// older servers lack hello
		if r.isMaster, err = admin.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}); err != nil {
			return err
		}
		info, err := admin.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}})
		if err != nil {
			return err
		}
		r.version, _ = info.Lookup("version").StringValue()
		msg, _ := r.isMaster.Lookup("msg").StringValue()
		hosts := strings.Count(r.uri, ",") + 1
		switch {
		case strings.Contains(strings.ToLower(r.uri), "loadbalanced=true"):
			r.kind = "load-balanced deployment"
		case msg == "isdbgrid":
			r.kind, r.size = "sharded cluster", hosts
		case !r.isMaster.Lookup("setName").IsZero():
			r.kind, r.size = "replica set", 0
			list, _ := r.isMaster.Lookup("hosts").Array()
			for range list.Values() {
				r.size++
			}
		}
		return nil
	})
	return r, err
})

// use runs f with a client of its own, which leaves no goroutine behind.
func (r *real) use(f func(ctx context.Context, client *allium.Client) error) error {
	client, err := allium.Open(r.uri)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer client.Close(ctx)
	return f(ctx, client)
}

// clean drops what earlier tests left.
func (r *real) clean() error {
	return r.use(func(ctx context.Context, client *allium.Client) error {
		for _, name := range databases {
			if err := client.Database(name,
				allium.DatabaseOptions{WriteConcern: consistency.Majority()}).Drop(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Start returns a deployment of this kind, with empty databases. It skips the test if that of
// $MONGODB_URI is of another kind.
func Start(t testing.TB, kind Kind) *Deployment {
	t.Helper()
	if !Real() {
		return &Deployment{mock: mongotest.Start(t, append([]mongotest.Option{kind.option}, kind.more...)...)}
	}
	if kind.why != "" {
		skipReal(t, kind.why)
	}
	r, err := connected()
	if err != nil {
		t.Fatalf("the deployment of $MONGODB_URI: %v", err)
	}
	if kind.name != "" && kind.name != r.kind {
		t.Skipf("needs a %s: $MONGODB_URI is a %s", kind.name, r.kind)
	}
	if r.size < kind.least {
		t.Skipf("needs a %s of %d: $MONGODB_URI has %d", kind.name, kind.least, r.size)
	}
	d := &Deployment{real: r}
	if kind.since != "" {
		d.Need(t, kind.since)
	}
	if err := r.clean(); err != nil {
		t.Fatalf("clean the deployment of $MONGODB_URI: %v", err)
	}
	return d
}

// Mock starts a deployment of mongotest, and skips the test if there is $MONGODB_URI: why says what
// the test needs that a real deployment does not have.
func Mock(t testing.TB, why string, opts ...mongotest.Option) *mongotest.Deployment {
	t.Helper()
	skipReal(t, why)
	return mongotest.Start(t, opts...)
}

func skipReal(t testing.TB, why string) {
	t.Helper()
	if Real() {
		t.Skipf("needs %s: only mongotest has that, not $MONGODB_URI", why)
	}
}

// Need skips the test if the server is older than this version, as in "5.0" or "4.4.2".
func (d *Deployment) Need(t testing.TB, version string) {
	t.Helper()
	if d.real != nil && older(d.real.version, version) {
		t.Skipf("needs server %s: $MONGODB_URI is %s", version, d.real.version)
	}
}

// older compares versions by their numbers.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range b {
		x := 0
		if i < len(a) {
			x, _ = strconv.Atoi(a[i])
		}
		if y, _ := strconv.Atoi(b[i]); x != y {
			return x < y
		}
	}
	return false
}

// URI returns the connection string.
func (d *Deployment) URI() string {
	if d.mock != nil {
		return d.mock.URI()
	}
	return d.real.uri
}

// Members returns how many members with data a replica set has, or how many nodes clients connect
// to.
func (d *Deployment) Members() int {
	if d.mock != nil {
		return len(d.mock.Nodes())
	}
	return d.real.size
}

// Everywhere is a write concern that every member of a replica set acknowledges: reads of any
// member see the write.
func (d *Deployment) Everywhere() *consistency.WriteConcern {
	if d.mock != nil && strings.Contains(d.mock.URI(), "replicaSet=") || d.real != nil && d.real.kind == "replica set" {
		return &consistency.WriteConcern{W: d.Members()}
	}
	return consistency.Majority()
}

// Hello returns the name of the command hello: servers before 4.4.2 know only isMaster.
func (d *Deployment) Hello() string {
	if d.real != nil && older(d.real.version, "4.4.2") {
		return "isMaster"
	}
	return "hello"
}

// URIWith returns the connection string with an option added, as in "maxPoolSize=1".
func (d *Deployment) URIWith(option string) string {
	uri := d.URI()
	switch _, after, _ := strings.Cut(uri, "://"); {
	case strings.Contains(after, "?"):
		return uri + "&" + option
	case strings.Contains(after, "/"):
		return uri + "?" + option
	}
	return uri + "/?" + option
}

// Mock returns the deployment of mongotest, or skips the test.
func (d *Deployment) Mock(t testing.TB, why string) *mongotest.Deployment {
	t.Helper()
	skipReal(t, why)
	return d.mock
}

// OnCommand makes f see the commands that the deployment gets; it may answer them. See
// [mongotest.Deployment.OnCommand].
func (d *Deployment) OnCommand(t testing.TB, f func(*mongotest.Command) (bson.Raw, error)) {
	t.Helper()
	d.Mock(t, "a hook for commands").OnCommand(f)
}

// FailCommand makes commands fail until the test ends. See [mongotest.Deployment.FailCommand].
func (d *Deployment) FailCommand(t testing.TB, f mongotest.Fail) {
	t.Helper()
	if d.mock != nil {
		d.mock.FailCommand(f)
		return
	}
	if d.real.size > 1 && d.real.kind == "sharded cluster" {
		t.Skip("needs a fail point that counts over all mongoses: only mongotest has that, not $MONGODB_URI")
	}
	data := bson.D{{Key: "failCommands", Value: f.Commands}}
	add := func(present bool, key string, value any) {
		if present {
			data = append(data, bson.E{Key: key, Value: value})
		}
	}
	add(f.Code != 0, "errorCode", f.Code)
	add(f.Labels != nil, "errorLabels", f.Labels)
	add(f.CloseConnection, "closeConnection", true)
	add(f.WriteConcernError != nil, "writeConcernError", f.WriteConcernError)
	add(f.Block > 0, "blockConnection", true)
	add(f.Block > 0, "blockTimeMS", f.Block.Milliseconds())
	add(f.AppName != "", "appName", f.AppName)
	add(f.Namespace != "", "namespace", f.Namespace)
	var mode any = "alwaysOn"
	if f.Skip > 0 {
		mode = bson.D{{Key: "skip", Value: f.Skip}}
	} else if f.Times > 0 {
		mode = bson.D{{Key: "times", Value: f.Times}}
	}
	if err := d.failPoint(bson.E{Key: "mode", Value: mode}, bson.E{Key: "data", Value: data}); err != nil {
		t.Skipf("needs fail points (enableTestCommands): %v", err)
	}
	t.Cleanup(func() {
		if err := d.failPoint(bson.E{Key: "mode", Value: "off"}); err != nil {
			t.Errorf("switch the fail point off: %v", err)
		}
	})
}

func (d *Deployment) failPoint(args ...bson.E) error {
	return d.real.use(func(ctx context.Context, client *allium.Client) error {
		_, err := client.Database("admin").RunCommand(ctx,
			append(bson.D{{Key: "configureFailPoint", Value: "failCommand"}}, args...))
		if err != nil {
			return fmt.Errorf("fail point: %w", err)
		}
		return nil
	})
}
