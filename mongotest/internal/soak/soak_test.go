package soak

import (
	"testing"
	"time"

	"allium/mongotest"
)

// TestRun is a short soak: no command fails that should not, whatever else runs, and deployments
// stop under load.
func TestRun(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"replica set": nil, "sharded": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			enough := func(r *Report) bool { // a busy machine takes its time
				n := len(r.Samples)
				return n > 0 && r.Samples[n-1].Commands > 100 && len(r.Stops) >= 3 && time.Since(begin) > 2*time.Second
			}
			r, err := Run(t.Context(), Config{Topology: topology, Every: 100 * time.Millisecond, Stops: 200 * time.Millisecond, Seed: 1, Enough: enough})
			if err != nil {
				t.Fatal(err)
			}
			for text, n := range r.Failed {
				t.Errorf("%d times %s", n, text)
			}
			if len(r.Stops) < 4 { // that of the main deployment is the last
				t.Errorf("%d stops", len(r.Stops))
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
