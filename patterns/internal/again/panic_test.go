package again

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A listener that panics while something is renewed does not end the program: renewal is tried
// again, and what was held is lost when its time is up.
func TestKeepSurvivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := Keep(t.Context(), time.Now(), time.Minute, time.Second, func(context.Context) (bool, error) {
			if calls++; calls != 2 {
				panic("a listener's own")
			}
			return true, nil
		})
		if err == nil || !strings.Contains(err.Error(), "a listener's own") || calls < 4 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}
