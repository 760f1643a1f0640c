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
	deployment func() (*mongotest.Deployment, []string, error)
}

var suites = []suite{
	{
		module: "github.com/casbin/mongodb-adapter/v4", version: "v4.3.0", packages: []string{"."},
		deployment: func() (*mongotest.Deployment, []string, error) {
			d, err := mongotest.Open(mongotest.ReplicaSet(1))
			if err != nil {
				return nil, nil, err
			}
			u, err := url.Parse(d.URI())
			if err != nil {
				return nil, nil, err
			}
			return d, []string{"TEST_MONGODB_URL=" + u.Host, "TEST_REPLICA_SET_URL=" + d.URI()}, nil
		},
	},
	// The tests of mon and monc have a deployment without a server, of package drivertest.
	{module: "github.com/zeromicro/go-zero", version: "v1.10.3", packages: []string{"core/stores/mon", "core/stores/monc"}},
}
