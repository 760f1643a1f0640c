package description

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo/address"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/tag"
)

// TestNewServer reads replies to hello.
func TestNewServer(t *testing.T) {
	for _, c := range []struct {
		reply bson.M
		want  ServerKind
	}{
		{bson.M{"ok": 1}, Standalone},
		{bson.M{"ok": 1, "setName": "s", "isWritablePrimary": true}, RSPrimary},
		{bson.M{"ok": 1, "setName": "s", "secondary": true}, RSSecondary},
		{bson.M{"ok": 1, "setName": "s", "secondary": true, "hidden": true}, RSMember},
		{bson.M{"ok": 1, "setName": "s", "arbiterOnly": true}, RSArbiter},
		{bson.M{"ok": 1, "msg": "isdbgrid"}, Mongos},
		{bson.M{"ok": 1, "isreplicaset": true}, RSGhost},
		{bson.M{"ok": 0}, Unknown},
		{bson.M{"ok": 1, "setName": 5}, Unknown},
	} {
		doc, err := bson.Marshal(c.reply)
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer("a:1", doc)
		if s.Kind != c.want || (s.LastError != nil) != (c.want == Unknown) {
			t.Errorf("%v: %v, %v", c.reply, s.Kind, s.LastError)
		}
	}
}

// TestSelectors chooses members of a replica set.
func TestSelectors(t *testing.T) {
	now := time.Now()
	member := func(addr string, kind ServerKind, rtt, behind time.Duration, dc string) Server {
		return Server{
			Addr: address.Address(addr), Kind: kind, AverageRTT: rtt, AverageRTTSet: true, LastUpdateTime: now, LastWriteTime: now.Add(-behind),
			HeartbeatInterval: 10 * time.Second, Tags: tag.Set{{Name: "dc", Value: dc}},
		}
	}
	servers := []Server{
		member("p", RSPrimary, 5*time.Millisecond, 0, "x"), member("near", RSSecondary, time.Millisecond, 0, "y"),
		member("far", RSSecondary, 90*time.Millisecond, 0, "x"), member("late", RSSecondary, 2*time.Millisecond, time.Hour, "z"),
	}
	top := Topology{Kind: ReplicaSetWithPrimary, Servers: servers}
	for _, c := range []struct {
		name     string
		selector ServerSelector
		want     string
	}{
		{"write", WriteSelector(), "p "},
		{"primary", ReadPrefSelector(readpref.Primary()), "p "},
		{"secondary", ReadPrefSelector(readpref.Secondary()), "near far late "},
		{"tags", ReadPrefSelector(readpref.Secondary(readpref.WithTags("dc", "w"), readpref.WithTags("dc", "x"))), "far "},
		{"fresh", ReadPrefSelector(readpref.Secondary(readpref.WithMaxStaleness(2 * time.Minute))), "near far "},
		{"nearest", CompositeSelector([]ServerSelector{ReadPrefSelector(readpref.Nearest()), LatencySelector(15 * time.Millisecond)}), "p near late "},
		{"preferred", ReadPrefSelector(readpref.PrimaryPreferred()), "p "},
		{"aggregate", OutputAggregateSelector(readpref.Secondary()), "p "},
	} {
		chosen, err := c.selector.SelectServer(top, servers)
		have := ""
		for _, s := range chosen {
			have += string(s.Addr) + " "
		}
		if err != nil || have != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, have, err, c.want)
		}
	}
	if !top.HasWritableServer() || !top.HasReadableServer(readpref.SecondaryMode) || (Topology{Kind: ReplicaSetNoPrimary, Servers: servers[1:]}).HasWritableServer() {
		t.Error("HasWritableServer, HasReadableServer")
	}
}
