package unified

import (
	"context"
	"fmt"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// Deployment is what a test runs against.
type Deployment struct {
	Topology string // "single", "replicaset", "sharded" or "load-balanced"
	Version  string // of the server
	// single is the connection string that a client without useMultipleMongoses gets, multiple that of the others.
	single, multiple string
	admin            *allium.Client
	stop             func()
}

func (d *Deployment) uri(multiple bool) string {
	if multiple {
		return d.multiple
	}
	return d.single
}

// Start starts a mongotest deployment of a topology and a server version.
func Start(topology, version string) (*Deployment, error) {
	var kind mongotest.Option
	switch topology {
	case "single":
		kind = mongotest.Standalone()
	case "replicaset":
		kind = mongotest.ReplicaSet(1)
	case "sharded":
		kind = mongotest.Sharded(1, 2)
	case "load-balanced":
		kind = mongotest.LoadBalanced(1)
	default:
		return nil, fmt.Errorf("topology %q is not known", topology)
	}
	m, err := mongotest.Open(kind, mongotest.Version(version))
	if err != nil {
		return nil, err
	}
	d := &Deployment{Topology: topology, Version: version, single: m.URI(), multiple: m.URI(), stop: m.Stop}
	if topology == "sharded" {
		d.single = strings.Replace(m.URI(), strings.Join(m.Hosts(), ","), m.Hosts()[0], 1)
	}
	if d.admin, err = allium.Open(d.single); err != nil {
		m.Stop()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := d.admin.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}})
	if err != nil {
		d.Stop()
		return nil, err
	}
	d.Version, _ = reply.Lookup("version").StringValue()
	return d, nil
}

// Stop ends the deployment.
func (d *Deployment) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d.admin.Close(ctx)
	d.stop()
}

// meets says why the deployment does not meet any of the requirements, "" if it meets one or there are none.
func (d *Deployment) meets(list []Requirement) string {
	if len(list) == 0 {
		return ""
	}
	var why []string
	for _, r := range list {
		reason := d.lacks(&r)
		if reason == "" {
			return ""
		}
		why = append(why, reason)
	}
	return strings.Join(why, "; ")
}

func (d *Deployment) lacks(r *Requirement) string {
	if r.MinServerVersion != "" && compareVersions(d.Version, r.MinServerVersion) < 0 {
		return "needs server " + r.MinServerVersion
	}
	if r.MaxServerVersion != "" && compareVersions(d.Version, r.MaxServerVersion) > 0 {
		return "needs server " + r.MaxServerVersion + " or older"
	}
	if len(r.Topologies) > 0 {
		found := false
		for _, t := range r.Topologies {
			found = found || t == d.Topology || t == "sharded-replicaset" && d.Topology == "sharded"
		}
		if !found {
			return "needs topology " + strings.Join(r.Topologies, " or ")
		}
	}
	if r.Auth != nil && *r.Auth {
		return "needs authentication"
	}
	if r.Serverless == "require" {
		return "needs a serverless deployment"
	}
	if !r.CSFLE.IsZero() {
		if b, ok := r.CSFLE.Boolean(); !ok || b {
			return "needs client-side encryption"
		}
	}
	return ""
}
