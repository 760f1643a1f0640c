package soak

import (
	"context"
	"testing"
	"time"

	"allium/mongotest"
)

// TestRun is a short soak: no command fails that should not, whatever else runs, and deployments
// stop under load.
func TestRun(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"replica set": nil, "sharded": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			r, err := Run(ctx, Config{Topology: topology, Every: 100 * time.Millisecond, Stops: 200 * time.Millisecond, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			for text, n := range r.Failed {
				t.Errorf("%d times %s", n, text)
			}
			if r.Commands == 0 || len(r.Samples) == 0 || len(r.Stops) < 2 {
				t.Errorf("%d commands, %d samples, %d stops", r.Commands, len(r.Samples), len(r.Stops))
			}
		})
	}
}

func TestGrowth(t *testing.T) {
	r := Report{}
	for i := range 10 {
		r.Samples = append(r.Samples, Sample{At: time.Duration(i) * time.Minute, Live: uint64(1000 + 60*i)})
	}
	if g := r.Growth(); g < 3599 || g > 3601 {
		t.Errorf("%v bytes an hour, want 3600", g)
	}
}
