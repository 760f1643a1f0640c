package cursor

import (
	"testing"
	"time"

	"allium/internal/command"
	"allium/internal/exec"
)

// What bounds a cursor's life on the server is a timeout for the operation and all that follows, or
// for a tailable cursor that awaits the operation alone: never the deadline of the context that it
// was opened with (specification: Client Side Operations Timeout, "Cursors").
func TestPrepareSaysWhetherTheServerHasALimit(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout *time.Duration
		r       Reading
		noMax   bool
		refresh bool
	}{
		{"no timeout", nil, Reading{}, true, false},
		{"a timeout", new(time.Hour), Reading{}, false, false},
		{"a timeout of no length", new(time.Duration(0)), Reading{}, true, false},
		{"over the lifetime", new(time.Hour), Reading{TimeoutMode: OverLifetime}, false, false},
		{"per iteration", new(time.Hour), Reading{TimeoutMode: PerIteration}, true, true},
		{"tailable", new(time.Hour), Reading{Type: Tailable}, true, true},
		{"tailable, awaiting", new(time.Hour), Reading{Type: TailableAwait}, false, true},
	} {
		op := exec.NewOp(&command.Find{Collection: "c"})
		op.Timeout = c.timeout
		op.Limit = exec.NewLimit(c.timeout, "the test's timeout")
		var cur Cursor
		if err := cur.Prepare(&op, c.r); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if op.NoMaxTime != c.noMax || cur.refresh != c.refresh {
			t.Errorf("%s: no maxTimeMS %t, want %t; a limit for each iteration %t, want %t", c.name, op.NoMaxTime, c.noMax, cur.refresh, c.refresh)
		}
	}
	op := exec.NewOp(&command.Find{Collection: "c"})
	op.NoMaxTime, op.Limit = true, exec.NewLimit(new(time.Hour), "the test's timeout")
	if err := new(Cursor).Prepare(&op, Reading{}); err != nil || !op.NoMaxTime {
		t.Errorf("an operation without maxTimeMS: %t, %v", op.NoMaxTime, err)
	}
}
