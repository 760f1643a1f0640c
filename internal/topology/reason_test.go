package topology

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/consistency"
	"allium/event"
	"allium/mongoerr"
)

func secondaryOf(addr string, change func(*event.ServerDescription)) *event.ServerDescription {
	d := &event.ServerDescription{Addr: addr, Kind: event.RSSecondary, MaxWireVersion: 25, HeartbeatInterval: DefaultHeartbeatInterval,
		LastUpdate: time.UnixMilli(0), LastWriteDate: time.UnixMilli(0), Tags: event.TagSet{"dc": "ny"}}
	if change != nil {
		change(d)
	}
	return d
}

// A failed selection names what was asked for, the first real cause, and why each server was
// rejected.
func TestSelectionErrorSaysWhy(t *testing.T) {
	refused := errors.New("connection refused")
	down := func(d *event.ServerDescription) { d.Kind, d.LastError = event.UnknownServer, refused }
	set := func(servers ...*event.ServerDescription) *event.TopologyDescription {
		return &event.TopologyDescription{Kind: event.ReplicaSetNoPrimary, SetName: "rs", Servers: servers}
	}
	for _, tt := range []struct {
		name string
		td   *event.TopologyDescription
		sel  Selection
		want []string
	}{
		{"no primary", set(secondaryOf("a:1", nil)), Selection{Write: true},
			[]string{"no server available for writing after 1s: no replica set primary available for writing", "ReplicaSetNoPrimary rs", "a:1: not the primary: RSSecondary"}},
		{"primary", set(secondaryOf("a:1", nil)), Selection{},
			[]string{"query with ReadPreference primary after 1s: no replica set primary available for query with ReadPreference PRIMARY"}},
		{"first cause", set(secondaryOf("a:1", nil), secondaryOf("b:1", down)), Selection{Write: true},
			[]string{"after 1s: topology is ReplicaSetNoPrimary rs: a:1: not the primary: RSSecondary; b:1: connection refused"}},
		{"tags", set(secondaryOf("a:1", nil)), Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary, TagSets: []event.TagSet{{"dc": "sf"}}}},
			[]string{"query with ReadPreference secondary, tag sets [{dc: sf}]", "ReadPreference SECONDARY and tags [{dc: sf}]", "a:1: no matching tags: {dc: ny}"}},
		{"stale", set(secondaryOf("a:1", func(d *event.ServerDescription) { d.LastWriteDate = time.UnixMilli(-1e6) }), secondaryOf("b:1", func(d *event.ServerDescription) { d.Tags = nil })),
			Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.SecondaryPreferred, MaxStaleness: 90 * time.Second, TagSets: []event.TagSet{{"dc": "ny"}}}},
			[]string{"a:1: too stale", "b:1: no matching tags: {}"}},
		{"not checked", set(secondaryOf("a:1", func(d *event.ServerDescription) { d.Kind = event.UnknownServer })), Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}},
			[]string{"no replica set secondary available for query with ReadPreference SECONDARY", "a:1: not checked yet"}},
		{"nearest", set(secondaryOf("a:1", func(d *event.ServerDescription) { d.Kind = event.RSArbiter })), Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}},
			[]string{"no replica set members available for query", "a:1: holds no data: RSArbiter"}},
		{"address", set(secondaryOf("a:1", nil)), Selection{Addr: "b:1"},
			[]string{"no server available for an operation on b:1", "no replica set member b:1 available", "a:1: another server"}},
		{"unknown", &event.TopologyDescription{Servers: []*event.ServerDescription{{Addr: "a:1"}}}, Selection{Write: true},
			[]string{"no server is suitable", "topology is Unknown: a:1: not checked yet"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				topo := topologyOf(t, tt.td, Config{SelectionTimeout: time.Second})
				_, _, err := topo.Select(t.Context(), &tt.sel)
				if _, ok := errors.AsType[*mongoerr.SelectionError](err); !ok {
					t.Fatalf("error %v", err)
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error lacks %q:\n%v", want, err)
					}
				}
				if tt.sel.ReadPreference != nil && Readable(tt.td, tt.sel.ReadPreference) {
					t.Error("the topology is readable after all")
				}
			})
		})
	}
}

// An aggregation that writes its results goes to a secondary only if every server can do that
// there.
func TestWritesResults(t *testing.T) {
	for _, tt := range []struct {
		wire int32
		want string
	}{{12, "p:1"}, {13, "s:1"}} {
		td := &event.TopologyDescription{Kind: event.ReplicaSetWithPrimary, Servers: []*event.ServerDescription{
			{Addr: "p:1", Kind: event.RSPrimary, MaxWireVersion: 25},
			{Addr: "s:1", Kind: event.RSSecondary, MaxWireVersion: tt.wire},
		}}
		topo := topologyOf(t, td, Config{})
		s, _, err := topo.Select(context.Background(), &Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}, WritesResults: true})
		if err != nil || s.Addr() != tt.want {
			t.Errorf("wire version %d: %v, %v", tt.wire, s, err)
		}
	}
}
