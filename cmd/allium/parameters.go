package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// Parameters are kept as a document whose fields are named by the commands that set them:
// setParameter and setClusterParameter hold the values by name, setDefaultRWConcern its arguments,
// setFeatureCompatibilityVersion the version. It has what somebody has changed since the deployment
// started, and no defaults. Parameters of processes are those of the one that a client writes to,
// and are set on all.
const (
	setParameter        = "setParameter"
	setClusterParameter = "setClusterParameter"
	setDefaultRWConcern = "setDefaultRWConcern"
	setCompatibility    = "setFeatureCompatibilityVersion"
	compatibility       = "featureCompatibilityVersion"
	requireAPIVersion   = "requireApiVersion"
)

// adminCommand runs a command on the database admin.
func adminCommand(ctx context.Context, client *allium.Client, cmd bson.D) (bson.Raw, error) {
	return client.Database("admin").RunCommand(ctx, cmd)
}

// readParameters returns the document with the values of all parameters. Not every deployment has
// every kind of them.
func readParameters(ctx context.Context, client *allium.Client) (map[string]bson.D, error) {
	all := map[string]bson.D{}
	reply, err := adminCommand(ctx, client, bson.D{{Key: "getParameter", Value: "*"}})
	if err != nil {
		return nil, err
	}
	for name, v := range reply.All() {
		switch name {
		case "ok", "$clusterTime", "operationTime", "authenticationMechanisms", "authSchemaVersion":
		case compatibility:
			doc, _ := v.Document()
			all[setCompatibility] = bson.D{{Key: "version", Value: doc.Lookup("version")}}
		default:
			all[setParameter] = append(all[setParameter], bson.E{Key: name, Value: v})
		}
	}
	if _, ok := all[setCompatibility]; !ok { // a mongos does not say
		cur, err := allium.CollectionOf[bson.Raw](client.Database("admin"), versionColl).Find(ctx,
			bson.D{{Key: "_id", Value: compatibility}})
		if err == nil {
			for doc, err := range cur.Seq(ctx) {
				if err == nil {
					all[setCompatibility] = bson.D{{Key: "version", Value: doc.Lookup("version")}}
				}
			}
		}
	}
	if reply, err := adminCommand(ctx, client, bson.D{{Key: "getClusterParameter", Value: "*"}}); err == nil {
		list, _ := reply.Lookup("clusterParameters").Array()
		for v := range list.Values() {
			doc, _ := v.Document()
			name, _ := doc.Lookup("_id").StringValue()
			value := bson.D{}
			for key, v := range doc.All() {
				if key != "_id" && key != "clusterParameterTime" {
					value = append(value, bson.E{Key: key, Value: v})
				}
			}
			all[setClusterParameter] = append(all[setClusterParameter], bson.E{Key: name, Value: value})
		}
	}
	if reply, err := adminCommand(ctx, client, bson.D{{Key: "getDefaultRWConcern", Value: 1}}); err == nil {
		for _, name := range []string{"defaultReadConcern", "defaultWriteConcern"} {
			if v := reply.Lookup(name); v.Type != 0 {
				all[setDefaultRWConcern] = append(all[setDefaultRWConcern], bson.E{Key: name, Value: v})
			}
		}
	}
	return all, nil
}

// changedParameters returns those that are not what they were, nil if that is none.
func changedParameters(ctx context.Context, client *allium.Client, were map[string]bson.D) (bson.Raw, error) {
	now, err := readParameters(ctx, client)
	if err != nil {
		return nil, err
	}
	changed := bson.D{}
	for _, kind := range []string{setParameter, setClusterParameter, setDefaultRWConcern, setCompatibility} {
		values := bson.D{}
		for _, e := range now[kind] {
			same := false
			for _, old := range were[kind] {
				if old.Key == e.Key {
					if same, err = equal(old.Value, e.Value); err != nil {
						return nil, err
					}
				}
			}
			if !same {
				values = append(values, e)
			}
		}
		if len(values) > 0 {
			changed = append(changed, bson.E{Key: kind, Value: values})
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return bson.Marshal(changed)
}

func equal(a, b any) (bool, error) {
	x, err := bson.Marshal(bson.D{{Key: "", Value: a}})
	if err != nil {
		return false, err
	}
	y, err := bson.Marshal(bson.D{{Key: "", Value: b}})
	return bytes.Equal(x, y), err
}

// restoreParameters sets the parameters. What the deployment does not take is printed: it may have
// another version or topology than the one that the parameters are of.
func (f *serveFlags) restoreParameters(ctx context.Context, d *mongotest.Deployment, uri string, kept bson.Raw,
	warnings io.Writer) error {
	if len(kept) == 0 {
		return nil
	}
	client, err := allium.Open(uri, allium.ClientOptions{Dialer: d})
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	run := func(client *allium.Client, cmd bson.D) {
		if _, err := client.Database("admin").RunCommand(ctx, cmd); err != nil {
			fmt.Fprintf(warnings, "allium serve: --data: %s %v is not set: %v\n", cmd[0].Key, cmd[1:], err)
		}
	}
	section := func(name string) bson.Raw {
		doc, _ := kept.Lookup(name).Document()
		return doc
	}
	for name, v := range section(setClusterParameter).All() {
		run(client, bson.D{{Key: setClusterParameter, Value: bson.D{{Key: name, Value: v}}}})
	}
	if doc := section(setDefaultRWConcern); len(doc) > 0 {
		cmd := bson.D{{Key: setDefaultRWConcern, Value: 1}}
		for name, v := range doc.All() {
			cmd = append(cmd, bson.E{Key: name, Value: v})
		}
		run(client, cmd)
	}
	if v := section(setCompatibility).Lookup("version"); v.Type != 0 {
		cmd := bson.D{{Key: setCompatibility, Value: v}}
		if _, err := client.Database("admin").RunCommand(ctx,
			append(cmd, bson.E{Key: "confirm", Value: true})); err != nil {
			run(client, cmd) // older versions do not know the other field
		}
	}
	last := bson.D{} // what keeps this client from setting others
	for i, one := range processes(d, uri) {
		client, err := allium.Open(one, allium.ClientOptions{Dialer: d})
		if err != nil {
			return err
		}
		defer client.Close(ctx)
		for name, v := range section(setParameter).All() {
			e := bson.E{Key: name, Value: v}
			if name == requireAPIVersion {
				last = bson.D{e}
				continue
			}
			if i == 0 {
				run(client, bson.D{{Key: setParameter, Value: 1}, e})
			} else {
				_, _ = client.Database("admin").RunCommand(ctx, bson.D{{Key: setParameter, Value: 1}, e})
			}
		}
		for _, e := range last {
			run(client, bson.D{{Key: setParameter, Value: 1}, e})
		}
	}
	return nil
}

// processes returns connection strings for each of a deployment's processes that clients connect
// to, the one that takes writes first.
func processes(d *mongotest.Deployment, uri string) []string {
	all := []string{uri}
	for _, n := range d.Nodes() {
		if one := "mongodb://" + n.Addr() + "/?directConnection=true"; one != uri {
			all = append(all, one)
		}
	}
	return all
}
