package unified

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/spantest"
	"allium/mongotest"
)

// Target says what deployment a test runs against.
type Target struct {
	Topology string // "single", "replicaset", "sharded", "load-balanced", "data-lake"
	Version  string // of the server
	Auth     bool   // clients must authenticate
	OIDC     bool   // clients may authenticate with MONGODB-OIDC
	// Serverless is a load-balanced deployment with one mongos, TLS, compression and the Stable
	// API.
	Serverless bool
	// RequireAPI has the server answer only those who declare a version of the Stable API.
	RequireAPI bool
	// Parameters are server parameters that the test needs.
	Parameters bson.Raw
}

// Deployment is a running Target.
type Deployment struct {
	Target
	seeds   seeds // of clients that use multiple mongoses
	lone    seeds // of those that use a single one
	dialer  allium.Dialer
	tls     *tls.Config               // of clients, nil without TLS
	access  string                    // a token of MONGODB-OIDC, "" if clients read theirs from a file
	admin   *allium.Client            // the internal client
	direct  map[string]*allium.Client // of single mongoses, by address
	stop    func()
	lake    bool // the server says that it is Atlas Data Lake
	shared  bool // tests leave something behind for those that follow
	members int  // that bear data, of a replica set that is shared
	// if set: called at the end of each test, while its entities are there
	ended  func(get func(name string) (any, error))
	settle func()                 // waits until what happens at this moment has been recorded
	spans  func() spantest.Source // makes what collects the spans of a client; nil: a recorder

	mu         sync.Mutex
	parameters map[string]bson.RawValue
}

// seeds are the parts of a connection string that tests change.
type seeds struct {
	scheme, user, hosts, db string
	options                 url.Values
}

func parseSeeds(uri string) (seeds, error) {
	var s seeds
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return s, fmt.Errorf("%q is not a connection string", uri)
	}
	s.scheme = scheme
	rest, query, _ := strings.Cut(rest, "?")
	s.hosts, s.db, _ = strings.Cut(rest, "/")
	if i := strings.LastIndexByte(s.hosts, '@'); i >= 0 {
		s.user, s.hosts = s.hosts[:i+1], s.hosts[i+1:]
	}
	var err error
	s.options, err = url.ParseQuery(query)
	return s, err
}

// first returns the seeds with the first host only.
func (s seeds) first() seeds {
	s.hosts, _, _ = strings.Cut(s.hosts, ",")
	return s
}

// uri returns the connection string with further options, which win over those there.
func (s seeds) uri(options url.Values) string {
	all := url.Values{}
	for _, set := range []url.Values{s.options, options} {
		for key, values := range set {
			for old := range all {
				if strings.EqualFold(old, key) {
					delete(all, old)
				}
			}
			all[key] = values
		}
	}
	if strings.EqualFold(all.Get("directConnection"), "true") {
		s = s.first()
		delete(all, "replicaSet")
	}
	return s.scheme + "://" + s.user + s.hosts + "/" + s.db + "?" + all.Encode()
}

// dataLake is the topology of Atlas Data Lake.
const dataLake = "data-lake"

const user, password, accessToken = "unified", "pencil-of-unified-5d1c", "token of unified"

// Start starts a mongotest deployment. In memory it may run inside of a testing/synctest bubble.
func Start(t Target, inMemory bool) (*Deployment, error) {
	options := []mongotest.Option{mongotest.Version(t.Version)}
	switch t.Topology {
	case "single":
		options = append(options, mongotest.Standalone())
	case "replicaset":
		options = append(options, mongotest.ReplicaSet(3))
	case "sharded":
		options = append(options, mongotest.Sharded(1, 2))
	case "load-balanced":
		if t.Serverless {
			options = append(options, mongotest.LoadBalanced(1), mongotest.TLS())
			break
		}
		options = append(options, mongotest.LoadBalanced(2))
	case dataLake:
		options = append(options, mongotest.DataLake())
	default:
		return nil, fmt.Errorf("topology %q is not known", t.Topology)
	}
	if t.Auth && t.Topology != dataLake {
		options = append(options, mongotest.Auth(user, password))
	}
	if t.declaresAPI() {
		options = append(options, mongotest.Parameter("requireApiVersion", true))
	}
	if t.OIDC {
		options = append(options, mongotest.OIDC(mongotest.IdentityProvider{Issuer: "https://issuer.example"}))
	}
	if inMemory {
		options = append(options, mongotest.InMemory())
	}
	parameters := options
	for name, v := range t.Parameters.All() {
		parameters = append(parameters, mongotest.Parameter(strings.Clone(name), v))
	}
	m, err := mongotest.Open(parameters...)
	if err != nil && t.Parameters != nil {
		m, err = mongotest.Open(options...) // the test says what it lacks
	}
	if err != nil {
		return nil, err
	}
	if t.OIDC {
		if err := m.AddUser(mongotest.User{Name: user, DB: "$external", Roles: []string{"root"},
			AccessTokens: []string{accessToken}}); err != nil {
			m.Stop()
			return nil, err
		}
	}
	d := &Deployment{Target: t, dialer: m, tls: m.TLSConfig(), access: accessToken, stop: m.Stop}
	if d.seeds, err = parseSeeds(m.URI()); err == nil {
		if t.Serverless {
			d.seeds.options.Set("compressors", "snappy")
		}
		if d.lone, err = parseSeeds(m.SingleMongosURI()); err == nil {
			if t.Serverless {
				d.lone = d.seeds // there is only one address
			}
			err = d.open()
		}
	}
	if err != nil {
		m.Stop()
		return nil, err
	}
	return d, nil
}

// Connect uses the deployment of a connection string. Behind a load balancer it wants to know from
// $SINGLE_MONGOS_LB_URI and $MULTI_MONGOS_LB_URI how to reach one mongos, and several.
func Connect(uri string) (*Deployment, error) {
	d := &Deployment{stop: func() {}, shared: true}
	var err error
	if d.seeds, err = parseSeeds(uri); err != nil {
		return nil, err
	}
	d.lone = d.seeds
	d.Auth = d.seeds.user != ""
	if err := d.open(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// Servers before 4.4.2 have isMaster only, which every server knows.
	hello, err := d.admin.Database("admin").RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}})
	if err != nil {
		return nil, err
	}
	d.OIDC = d.hasMechanism(oidc)
	msg, _ := hello.Lookup("msg").StringValue()
	switch {
	case strings.EqualFold(d.seeds.options.Get("loadBalanced"), "true"):
		d.Topology = "load-balanced"
		single, multiple := os.Getenv("SINGLE_MONGOS_LB_URI"), os.Getenv("MULTI_MONGOS_LB_URI")
		if single == "" || multiple == "" {
			return nil, fmt.Errorf("a load-balanced deployment needs SINGLE_MONGOS_LB_URI and MULTI_MONGOS_LB_URI")
		}
		if d.lone, err = parseSeeds(single); err != nil {
			return nil, err
		}
		if d.seeds, err = parseSeeds(multiple); err != nil {
			return nil, err
		}
	case msg == "isdbgrid":
		d.Topology = "sharded"
		d.lone = d.seeds.first()
		d.admin.Close(ctx)
		return d, d.open() // on one mongos
	case !hello.Lookup("setName").IsZero():
		d.Topology = "replicaset"
		d.members = len(slices.Collect(rawArray(hello.Lookup("hosts"))))
	case d.lake:
		d.Topology = dataLake
	default:
		d.Topology = "single"
	}
	return d, nil
}

// open makes the internal client, and asks for the server's version.
func (d *Deployment) open() error {
	var err error
	if d.admin, err = allium.Open(d.lone.uri(nil), d.options()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	reply, err := d.admin.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}})
	if err != nil {
		d.admin.Close(ctx)
		return err
	}
	d.lake = !reply.Lookup("dataLake").IsZero()
	var version []string
	for v := range rawArray(reply.Lookup("versionArray")) {
		version = append(version, v.String())
	}
	d.Version = strings.Join(version[:min(3, len(version))], ".")
	return nil
}

// options returns the options of a client.
func (d *Deployment) options() allium.ClientOptions {
	o := allium.ClientOptions{Dialer: d.dialer, TLS: d.tls}
	if d.declaresAPI() {
		o.ServerAPI = &allium.ServerAPI{Version: allium.ServerAPIV1}
	}
	return o
}

// mongos returns a client of one mongos, which Stop closes.
func (d *Deployment) mongos(addr string) (*allium.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.direct[addr]; c != nil {
		return c, nil
	}
	s := d.seeds
	s.hosts = addr
	c, err := allium.Open(s.uri(url.Values{"directConnection": {"true"}}), d.options())
	if err != nil {
		return nil, err
	}
	if d.direct == nil {
		d.direct = map[string]*allium.Client{}
	}
	d.direct[addr] = c
	return c, nil
}

// everywhere runs f with a client of each mongos, or with the internal client where there is no
// choice.
func (d *Deployment) everywhere(f func(*allium.Client) error) error {
	if d.Topology != "sharded" {
		return f(d.admin)
	}
	for addr := range strings.SplitSeq(d.seeds.hosts, ",") {
		c, err := d.mongos(addr)
		if err == nil {
			err = f(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the deployment.
func (d *Deployment) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, c := range d.direct {
		c.Close(ctx)
	}
	d.admin.Close(ctx)
	d.stop()
}

// killAllSessions ends the transactions that an earlier test left open: they would block the next
// one. That a server may not allow it does not matter.
func (d *Deployment) killAllSessions(ctx context.Context) {
	if !d.shared || d.lake { // which must not be asked for it
		return
	}
	d.everywhere(func(c *allium.Client) error {
		c.Database("admin").RunCommand(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}})
		return nil
	})
}

// distinct runs the command on each mongos, which a real one must have done before it can in a
// transaction (the format's section "StaleDbVersion Errors on Sharded Clusters").
func (d *Deployment) distinct(ctx context.Context, db, coll string) error {
	if !d.shared {
		return nil
	}
	return d.everywhere(func(c *allium.Client) error {
		_, err := allium.Distinct[bson.RawValue](ctx, c.Database(db).Collection(coll), "_id", bson.D{})
		return err
	})
}

// parameter returns the value of a server parameter, zero if the server does not know it.
func (d *Deployment) parameter(name string) bson.RawValue {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.parameters[name]; ok {
		return v
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, _ := d.admin.Database("admin").RunCommand(ctx,
		bson.D{{Key: "getParameter", Value: 1}, {Key: name, Value: 1}})
	if d.parameters == nil {
		d.parameters = map[string]bson.RawValue{}
	}
	d.parameters[name] = reply.Lookup(name)
	return d.parameters[name]
}

// hasMechanism reports whether clients can authenticate with a mechanism.
func (d *Deployment) hasMechanism(name string) bool {
	for v := range rawArray(d.parameter("authenticationMechanisms")) {
		if s, _ := v.StringValue(); strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

// declaresAPI reports whether the server answers only clients that declare a version of the Stable
// API, which all then do that do not declare one by themselves.
func (t Target) declaresAPI() bool { return t.Serverless || t.RequireAPI }

// String names the target for reports.
func (t Target) String() string {
	s := t.Topology + " " + t.Version
	if t.Auth {
		s += " auth"
	}
	if t.OIDC {
		s += " OIDC"
	}
	if t.Serverless {
		s += " serverless"
	}
	if t.RequireAPI {
		s += " requireApiVersion"
	}
	return s
}
