package event_test

import (
	"errors"
	"testing"
	"time"

	"allium/bson"
	"allium/event"
)

func TestTopologyVersionCompare(t *testing.T) {
	p, q := bson.NewObjectID(), bson.NewObjectID()
	for _, tt := range []struct {
		a, b *event.TopologyVersion
		want int
	}{
		{nil, nil, -1},
		{&event.TopologyVersion{p, 1}, nil, -1},
		{nil, &event.TopologyVersion{p, 1}, -1},
		{&event.TopologyVersion{p, 1}, &event.TopologyVersion{p, 1}, 0},
		{&event.TopologyVersion{p, 1}, &event.TopologyVersion{p, 2}, -1},
		{&event.TopologyVersion{p, 3}, &event.TopologyVersion{p, 2}, 1},
		{&event.TopologyVersion{p, 3}, &event.TopologyVersion{q, 2}, -1},
	} {
		if got := tt.a.Compare(tt.b); got != tt.want {
			t.Errorf("%v.Compare(%v) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestServerDescriptionEqual(t *testing.T) {
	a := &event.ServerDescription{Addr: "a:1", Kind: event.RSSecondary, Hosts: []string{"a:1", "b:1"}, SetVersion: new(int64(1)), Tags: event.TagSet{"x": "y"}}
	same := *a
	same.Hosts = []string{"b:1", "a:1"}
	same.SetVersion = new(int64(1))
	same.AverageRTT, same.LastUpdate, same.LastWriteDate = time.Second, time.Now(), time.Now()
	if !a.Equal(&same) {
		t.Error("descriptions that differ in times only are not equal")
	}
	for name, change := range map[string]func(*event.ServerDescription){
		"kind":        func(d *event.ServerDescription) { d.Kind = event.RSPrimary },
		"hosts":       func(d *event.ServerDescription) { d.Hosts = []string{"a:1"} },
		"set version": func(d *event.ServerDescription) { d.SetVersion = nil },
		"tags":        func(d *event.ServerDescription) { d.Tags = nil },
		"error":       func(d *event.ServerDescription) { d.LastError = errors.New("x") },
		"version":     func(d *event.ServerDescription) { d.TopologyVersion = &event.TopologyVersion{} },
	} {
		other := *a
		change(&other)
		if a.Equal(&other) || other.Equal(a) {
			t.Errorf("descriptions that differ in their %s are equal", name)
		}
	}
}

func TestDescriptionStrings(t *testing.T) {
	td := &event.TopologyDescription{Kind: event.ReplicaSetWithPrimary, SetName: "rs", Servers: []*event.ServerDescription{
		{Addr: "a:1", Kind: event.RSPrimary, Tags: event.TagSet{"rack": "1", "dc": "ny"}, AverageRTT: 1200 * time.Microsecond},
		{Addr: "b:1", LastError: errors.New("connection refused")},
	}}
	want := "ReplicaSetWithPrimary rs [a:1: RSPrimary, tags {dc: ny, rack: 1}, 1.2ms; b:1: Unknown, last error: connection refused]"
	if got := td.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
