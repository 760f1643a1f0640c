package mongotest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
)

func TestDataLake(t *testing.T) {
	d := mongotest.Start(t, mongotest.DataLake())
	client := connect(d.URI())
	defer client.Close(context.Background())
	doc := bson.D{{Key: "x", Value: 1}}
	out := func(stage string) bson.D {
		return bson.D{{Key: "aggregate", Value: "driverdata"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: stage, Value: "other"}}}}, {Key: "cursor", Value: bson.D{}}}
	}
	const notSupported, unauthorized = 115, 13
	for _, cmd := range []bson.D{
		{{Key: "insert", Value: "driverdata"}, {Key: "documents", Value: bson.A{doc}}},
		{{Key: "drop", Value: "driverdata"}}, {{Key: "dropDatabase", Value: 1}}, {{Key: "create", Value: "other"}},
		{{Key: "killAllSessions", Value: bson.A{}}}, out("$out"), out("$merge"),
	} {
		_, err := client.Database("test").RunCommand(t.Context(), cmd)
		if e, ok := errors.AsType[*mongoerr.ServerError](err); !ok || e.Code != notSupported {
			t.Errorf("%s: %v", cmd[0].Key, err)
		}
	}
	info, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}})
	if err != nil || info.Lookup("dataLake", "version").IsZero() {
		t.Errorf("buildInfo: %s, %v", info, err)
	}
	anybody := connect("mongodb://" + d.Hosts()[0])
	defer anybody.Close(context.Background())
	_, err = anybody.Database("test").Collection("driverdata").CountDocuments(t.Context(), bson.D{})
	if e, ok := errors.AsType[*mongoerr.ServerError](err); !ok || e.Code != unauthorized {
		t.Errorf("a client that has not authenticated reads: %v", err)
	}
	for user, mechanism := range map[string]string{"sha1": "SCRAM-SHA-256", "sha256": "SCRAM-SHA-1"} {
		c := connect("mongodb://" + user + ":pencil@" + d.Hosts()[0] + "/?authMechanism=" + mechanism)
		if err := c.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), mechanism) {
			t.Errorf("%s with %s: %v", user, mechanism, err)
		}
		c.Close(context.Background())
	}
}
