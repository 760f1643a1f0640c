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
	{module: "github.com/dapr/components-contrib", version: "v1.16.1", packages: []string{"state/mongodb"}},
	{module: "github.com/kamva/mgm/v3", version: "v3.5.0", packages: []string{"."},
		deployment: at(nil, mongotest.Auth("root", "12345"))},
	{
		module: "github.com/looplab/eventhorizon", version: "v0.16.0",
		packages:   []string{"repo/mongodb", "eventstore/mongodb", "eventstore/mongodb_v2", "outbox/mongodb"},
		deployment: at(func(u *url.URL) string { return "MONGODB_ADDR=" + u.Host }),
	},
	{module: "github.com/mongodb/mongo-tools", version: "v0.0.0-20240723193119-837c2bc263f4", deployment: tools,
		packages: []string{"common/archive", "common/bsonutil", "common/idx", "common/intents", "common/json",
			"common/txn", "common/util", "mongoexport", "mongofiles", "mongoimport", "mongostat"}},
	{module: "github.com/newrelic/go-agent/v3/integrations/nrmongo", version: "v1.1.3", packages: []string{"."}},
	{module: "github.com/percona/mongodb_exporter", version: "v0.43.1", packages: []string{"exporter/dsn_fix"}},
	{module: "github.com/qiniu/qmgo", version: "v1.1.9", packages: []string{"."}, deployment: at(nil)},
	{module: "github.com/TykTechnologies/storage", version: "v1.2.2", tags: "mongo7", deployment: at(nil),
		packages: []string{"persistent/internal/driver/mongo", "persistent/utils"}},
	{
		module: "github.com/xakep666/mongo-migrate", version: "v0.3.2", packages: []string{"."}, tags: "integration",
		deployment: at(func(u *url.URL) string { return "MONGO_URL=mongodb://" + u.Host + "/test" }),
	},
	{module: "go.elastic.co/apm/module/apmmongo/v2", version: "v2.6.0", packages: []string{"."}},
	{module: "go.opentelemetry.io/contrib/instrumentation/go.mongodb.org/mongo-driver/mongo/otelmongo",
		version: "v0.64.0", packages: []string{"."}},
	// Its tests want two servers, of the versions 3 and 4 at the time.
	{module: "gocloud.dev/docstore/mongodocstore", version: "v0.43.0", packages: []string{"."},
		deployment: both(at(nil), open(27020, nil))},
}

// A program is a module whose packages, and their tests, are compiled: the tests need more than a
// deployment, such as Docker, or are none of the driver's.
type program struct {
	module, version string
	packages        []string // as go vet takes them; none: all
}

var programs = []program{
	{module: "github.com/DataDog/dd-trace-go/contrib/go.mongodb.org/mongo-driver/v2", version: "v2.0.0"},
	{module: "github.com/evergreen-ci/gimlet", version: "v0.0.0-20230317174941-7e759337ad2c"},
	{module: "github.com/evergreen-ci/pail", version: "v0.0.0-20220405154537-920afff49d92"},
	{module: "github.com/FerretDB/FerretDB", version: "v1.24.0"},
	{module: "github.com/gin-gonic/gin", version: "v1.12.0", packages: []string{".", "./binding", "./render"}},
	{module: "github.com/go-chassis/cari", version: "v0.9.0", packages: []string{"./db/..."}},
	{module: "github.com/golang-migrate/migrate/v4", version: "v4.20.1", packages: []string{"./database/mongodb"}},
	{module: "github.com/influxdata/telegraf", version: "v1.34.0",
		packages: []string{"./plugins/inputs/mongodb", "./plugins/outputs/mongodb"}},
	{module: "github.com/laziness-coders/mongostore", version: "v0.0.14"},
	{module: "github.com/mongodb/amboy", version: "v0.0.0-20230104160932-7df48345d788"},
	{module: "github.com/mongodb/anser", version: "v0.0.0-20220408164649-99dd61768f4a"},
	{module: "github.com/mongodb/ftdc", version: "v0.0.0-20230104161017-3859a9d86a93"},
	{module: "github.com/mongodb/mongo-tools", version: "v0.0.0-20240723193119-837c2bc263f4"},
	{module: "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/mongodbreceiver", version: "v0.128.0"},
	{module: "github.com/percona/mongodb_exporter", version: "v0.43.1"},
	{module: "github.com/percona/percona-backup-mongodb", version: "v1.8.1-0.20251124214042-d06cab743541",
		packages: []string{"./cmd/...", "./pbm/...", "./sdk/...", "./e2e-tests/..."}},
	{module: "github.com/simagix/mongo-ftdc", version: "v1.1.0"},
	{module: "github.com/square/mongo-lock", version: "v0.0.0-20230808145049-cfcf499f6bf0"},
	{module: "github.com/sv-tools/mongoifc", version: "v1.12.1"},
	{module: "github.com/testcontainers/testcontainers-go/modules/mongodb", version: "v0.38.0"},
	{module: "github.com/tmc/langchaingo", version: "v0.1.13",
		packages: []string{"./memory/mongo", "./vectorstores/mongovector"}},
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

// tools opens what the tests of mongo-tools want.
func tools() (func(), []string, error) {
	stop, env, err := open(33333, func(u *url.URL) string { return "TOOLS_TESTING_MONGOD=" + u.String() })()
	return stop, append(env, "TOOLS_TESTING_UNIT=1", "TOOLS_TESTING_INTEGRATION=1"), err
}
