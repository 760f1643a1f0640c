package exec

import (
	"testing"
	"testing/synctest"

	"allium/bson"
	"allium/event"
	"allium/mongotest"
)

// A state change counts where the specification Server Discovery and Monitoring looks for it: in
// the reply's own error and in its write concern error, and not among errors of single writes.
func TestWriteErrorsSayNothingOfTheServer(t *testing.T) {
	said := bson.D{{Key: "code", Value: 10107}, {Key: "errmsg", Value: "not master"}}
	indexed := append(bson.D{{Key: "index", Value: 0}}, said...)
	for _, tc := range []struct {
		name  string
		reply bson.D
		lost  bool
	}{
		{"the reply's error", append(bson.D{{Key: "ok", Value: 0}}, said...), true},
		{"a write concern error", bson.D{{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: said}}, true},
		{"a write error", bson.D{{Key: "ok", Value: 1}, {Key: "writeErrors", Value: bson.A{indexed}}}, false},
		{"a write error beside another write concern error", bson.D{{Key: "ok", Value: 1}, {Key: "writeErrors", Value: bson.A{indexed}},
			{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "not master"}}}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
					if c.Name == "insert" {
						return bson.Marshal(tc.reply)
					}
					return nil, nil
				})
				op := insert(t)
				op.WriteErrors = true
				res, _ := r.x.Run(t.Context(), op)
				res.Release()
				if kind := r.x.Topology.Description().Servers[0].Kind; (kind == event.UnknownServer) != tc.lost {
					t.Errorf("the server is %v", kind)
				}
			})
		})
	}
}
