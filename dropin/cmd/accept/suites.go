package main

import (
	"net/url"

	"allium/mongotest"
)

// A suite is a module whose tests are run.
type suite struct {
	module, version string
	packages        []string // their folders
	tags            string
	// deployment opens what the tests connect to, and returns what tells them of it. Nil: nothing.
	deployment func() (stop func(), env []string, err error)
}

// usual is the port that most suites have in their sources.
const usual = 27017

var suites = []suite{
	{module: "github.com/casbin/mongodb-adapter/v4", version: "v4.3.0", packages: []string{"."}, deployment: casbin},
	{module: "github.com/paulmach/orb", version: "v0.13.0", packages: []string{"geojson"}},
	// The tests of mon and monc have a deployment without a server, of package drivertest.
	{module: "github.com/zeromicro/go-zero", version: "v1.10.3",
		packages: []string{"core/stores/mon", "core/stores/monc"}},

	// Those behind are for version 1 of the official driver.
	{module: "github.com/alexedwards/scs/mongodbstore", version: "v0.0.0-20240316134038-7e11d57e8885",
		packages: []string{"."}, deployment: at(nil)},
	{module: "github.com/casbin/mongodb-adapter/v3", version: "v3.7.0", packages: []string{"."}, deployment: casbin},
	{module: "github.com/chidiwilliams/flatbson", version: "v0.3.0", packages: []string{"."}},
	{module: "github.com/gin-contrib/sessions", version: "v1.0.4", packages: []string{"mongo/mongodriver"},
		deployment: at(nil)},
	{module: "github.com/gofiber/storage/mongodb", version: "v1.3.9", packages: []string{"."}, deployment: at(nil)},
	{module: "github.com/go-openapi/strfmt", version: "v0.21.7", packages: []string{"."}},
	{module: "github.com/kamva/mgm/v3", version: "v3.5.0", packages: []string{"."},
		deployment: at(nil, mongotest.Auth("root", "12345"))},
	{
		module: "github.com/looplab/eventhorizon", version: "v0.16.0",
		packages:   []string{"repo/mongodb", "eventstore/mongodb", "eventstore/mongodb_v2", "outbox/mongodb"},
		deployment: at(func(u *url.URL) string { return "MONGODB_ADDR=" + u.Host }),
	},
	{module: "github.com/percona/mongodb_exporter", version: "v0.43.1", packages: []string{"exporter/dsn_fix"}},
	{module: "github.com/qiniu/qmgo", version: "v1.1.9", packages: []string{"."}, deployment: at(nil)},
	{module: "github.com/TykTechnologies/storage", version: "v1.2.2", tags: "mongo7", deployment: at(nil),
		packages: []string{"persistent/internal/driver/mongo", "persistent/utils"}},
	{
		module: "github.com/xakep666/mongo-migrate", version: "v0.3.2", packages: []string{"."}, tags: "integration",
		deployment: at(func(u *url.URL) string { return "MONGO_URL=mongodb://" + u.Host + "/test" }),
	},
	{module: "go.opentelemetry.io/contrib/instrumentation/go.mongodb.org/mongo-driver/mongo/otelmongo",
		version: "v0.64.0", packages: []string{"."}},
	// Its tests want two servers, of the versions 3 and 4 at the time.
	{module: "gocloud.dev/docstore/mongodocstore", version: "v0.43.0", packages: []string{"."},
		deployment: both(at(nil), open(27020, nil))},
}

// at opens a replica set of one member at the usual port. tell, if not nil, makes the variable of
// the environment that the tests read.
func at(tell func(*url.URL) string, opts ...mongotest.Option) func() (func(), []string, error) {
	return open(usual, tell, opts...)
}

func open(port int, tell func(*url.URL) string, opts ...mongotest.Option) func() (func(), []string, error) {
	return func() (func(), []string, error) {
		d, err := mongotest.Open(append(opts, mongotest.ReplicaSet(1), mongotest.Port(port))...)
		if err != nil {
			return nil, nil, err
		}
		u, err := url.Parse(d.URI())
		if err != nil || tell == nil {
			return d.Stop, nil, err
		}
		return d.Stop, []string{tell(u)}, nil
	}
}

// both opens two deployments.
func both(first, second func() (func(), []string, error)) func() (func(), []string, error) {
	return func() (func(), []string, error) {
		stop, env, err := first()
		if err != nil {
			return nil, nil, err
		}
		stopSecond, more, err := second()
		if err != nil {
			stop()
			return nil, nil, err
		}
		return func() { stop(); stopSecond() }, append(env, more...), nil
	}
}

func casbin() (func(), []string, error) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		return nil, nil, err
	}
	u, err := url.Parse(d.URI())
	if err != nil {
		return nil, nil, err
	}
	return d.Stop, []string{"TEST_MONGODB_URL=" + u.Host, "TEST_REPLICA_SET_URL=" + d.URI()}, nil
}
