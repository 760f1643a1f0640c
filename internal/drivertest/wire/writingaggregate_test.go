package wire

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
)

// TestWritingAggregateReadPreference runs an aggregation with $out and one with $merge, with a read
// preference of secondary, on servers of several versions: while one that is known cannot write on
// a secondary, the read preference is that of the primary, for the selection and in the command
// (specification: CRUD, "Read preferences and server selection" of aggregations that write).
func TestWritingAggregateReadPreference(t *testing.T) {
	type member struct {
		kind string // "primary", "secondary", "mongos" or "balancer"
		wire int32
	}
	for name, tc := range map[string]struct {
		members []member
		options string
		where   string // the kind of the server that is asked
		sent    string // the mode of its $readPreference
	}{
		"replica set, all new":          {[]member{{"primary", 25}, {"secondary", 13}}, "replicaSet=rs", "secondary", "secondary"},
		"replica set, an old secondary": {[]member{{"primary", 25}, {"secondary", 9}}, "replicaSet=rs", "primary", ""},
		"replica set, an old primary":   {[]member{{"primary", 9}, {"secondary", 25}}, "replicaSet=rs", "primary", ""},
		"mongoses, all new":             {[]member{{"mongos", 25}, {"mongos", 13}}, "", "mongos", "secondary"},
		"mongoses, one old":             {[]member{{"mongos", 25}, {"mongos", 9}}, "", "mongos", ""},
		"load balancer":                 {[]member{{"balancer", 25}}, "loadBalanced=true", "balancer", "secondary"},
		"direct, new":                   {[]member{{"secondary", 25}}, "directConnection=true", "secondary", "secondary"},
		"direct, old":                   {[]member{{"secondary", 9}}, "directConnection=true", "secondary", "primaryPreferred"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []member
			var sent []string
			network := &fakeserver.Network{}
			var hosts []string
			for i := range tc.members {
				hosts = append(hosts, string(rune('a'+i))+".example:27017")
			}
			for i, m := range tc.members {
				hello := bson.D{{Key: "ok", Value: 1}, {Key: "helloOk", Value: true}, {Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48000000},
					{Key: "maxWriteBatchSize", Value: 100000}, {Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: m.wire}, {Key: "logicalSessionTimeoutMinutes", Value: 30}}
				switch m.kind {
				case "mongos", "balancer":
					hello = append(hello, bson.E{Key: "msg", Value: "isdbgrid"}, bson.E{Key: "isWritablePrimary", Value: true})
					if m.kind == "balancer" {
						hello = append(hello, bson.E{Key: "serviceId", Value: bson.NewObjectID()})
					}
				default:
					hello = append(hello, bson.E{Key: "setName", Value: "rs"}, bson.E{Key: "setVersion", Value: 1}, bson.E{Key: "hosts", Value: hosts}, bson.E{Key: "me", Value: hosts[i]},
						bson.E{Key: "isWritablePrimary", Value: m.kind == "primary"}, bson.E{Key: "secondary", Value: m.kind == "secondary"})
				}
				network.Add(hosts[i], &fakeserver.Server{Handle: fakeserver.Standing(rig.Must(bson.Marshal(hello)), func(r *fakeserver.Request) {
					if !r.Body.Lookup("aggregate").IsZero() {
						mode, _ := r.Body.Lookup("$readPreference", "mode").StringValue()
						mu.Lock()
						asked, sent = append(asked, m), append(sent, mode)
						mu.Unlock()
					}
					r.Reply(rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "d.c"}, {Key: "firstBatch", Value: bson.A{}}}}})))
				})})
			}
			known := make(chan struct{}) // that all servers are known
			all := sync.OnceFunc(func() { close(known) })
			client := rig.Open(t, "mongodb://"+strings.Join(hosts, ",")+"/?serverMonitoringMode=poll&"+tc.options, allium.ClientOptions{Dialer: network,
				ServerMonitor: &event.ServerMonitor{TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) {
					if !slices.ContainsFunc(e.NewDescription.Servers, func(s *event.ServerDescription) bool { return s.Kind == event.UnknownServer }) && len(e.NewDescription.Servers) > 0 {
						all()
					}
				}}})
			<-known
			preference := &consistency.ReadPreference{Mode: consistency.Secondary}
			for _, stage := range []string{"$out", "$merge"} {
				coll := client.Database("d").Collection("c", allium.CollectionOptions{ReadPreference: preference})
				if _, err := coll.Aggregate(t.Context(), []bson.D{{{Key: stage, Value: "o"}}}); err != nil {
					t.Fatal(err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(sent) != 2 {
				t.Fatalf("%d aggregations were sent", len(sent))
			}
			for i := range sent {
				if asked[i].kind != tc.where || sent[i] != tc.sent {
					t.Errorf("sent to the %v with the read preference %q, want the %s and %q", asked[i], sent[i], tc.where, tc.sent)
				}
			}
		})
	}
}
