package exec

import (
	"fmt"
	"testing"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/pool"
	"allium/internal/topology"
)

// Which $readPreference each kind of server gets (specification: Server Selection, "Passing read
// preference to mongos and load balancers", "Document structure" and "Topology type: Single").
func TestReadPreferenceSent(t *testing.T) {
	mode := func(m consistency.ReadMode) *consistency.ReadPreference { return &consistency.ReadPreference{Mode: m} }
	full := &consistency.ReadPreference{Mode: consistency.SecondaryPreferred, TagSets: []event.TagSet{{"dc": "east"}, {}}, MaxStaleness: 120 * time.Second, Hedge: new(false)}
	const all = `{"mode":"secondaryPreferred","tags":[{"dc":"east"},{}],"maxStalenessSeconds":120,"hedge":{"enabled":false}}`
	const preferred = `{"mode":"primaryPreferred"}`
	everywhere := []event.ServerKind{event.Standalone, event.Mongos, event.LoadBalancer, event.RSPrimary, event.RSSecondary}
	for _, tc := range []struct {
		direct bool
		kinds  []event.ServerKind
		rp     *consistency.ReadPreference
		want   string
	}{
		{false, everywhere, nil, ""},
		{false, everywhere, mode(consistency.Primary), ""},
		{false, everywhere[1:], mode(consistency.PrimaryPreferred), preferred},
		{false, everywhere[1:], mode(consistency.Secondary), `{"mode":"secondary"}`},
		{false, everywhere[1:], mode(consistency.SecondaryPreferred), `{"mode":"secondaryPreferred"}`},
		{false, everywhere[1:], mode(consistency.Nearest), `{"mode":"nearest"}`},
		{false, everywhere[1:], full, all},
		{true, everywhere[:1], nil, ""},
		{true, everywhere[:1], mode(consistency.Nearest), ""},
		{true, everywhere[:1], full, ""},
		{true, everywhere[3:], nil, preferred},
		{true, everywhere[3:], mode(consistency.Primary), preferred},
		{true, everywhere[3:], mode(consistency.Secondary), `{"mode":"secondary"}`},
		{true, everywhere[3:], full, all},
	} {
		topo, err := topology.New(&topology.Config{Seeds: []string{"a:1"}, Direct: tc.direct, Pool: pool.Config{Conn: &conn.Config{}}})
		if err != nil {
			t.Fatal(err)
		}
		defer topo.Close(t.Context())
		for _, kind := range tc.kinds {
			for _, how := range []Kind{Read, Run, Write} {
				if how == Write && tc.rp != nil {
					continue // writes have none
				}
				m := &message{run: &run{x: New(Config{Topology: topo}), op: &Op{Kind: how, ReadPreference: tc.rp}}, hello: &event.ServerDescription{Kind: kind}}
				start, dst := bson.BeginDocument(nil)
				got := bson.Raw(bson.EndDocument(m.appendReadPreference(dst), start))
				want := "{}"
				if tc.want != "" && how != Write {
					want = `{"$readPreference":` + tc.want + `}`
				}
				if text := fmt.Sprint(got); text != want {
					t.Errorf("direct %v, %v, %v: %s, want %s", tc.direct, kind, tc.rp, text, want)
				}
			}
		}
	}
}
