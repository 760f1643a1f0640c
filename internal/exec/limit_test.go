package exec

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"allium/consistency"
	"allium/internal/errcode"
	"allium/mongoerr"
)

// TestLimits goes through what an operation's time can be: not given, given as none, given, and
// that of a context alone (specification: Client Side Operations Timeout, "timeoutMS").
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			limit              Limit
			set, ends, elapses bool
		}{
			"not given":     {limit: NewLimit(nil, "")},
			"none":          {limit: NewLimit(new(time.Duration), "the option"), set: true},
			"given":         {limit: NewLimit(new(time.Second), "the option"), set: true, ends: true, elapses: true},
			"of a context":  {limit: Limit{Deadline: time.Now().Add(time.Second)}, set: true, ends: true},
			"given, anew":   {limit: new(NewLimit(new(time.Second), "the option")).Refreshed(), set: true, ends: true, elapses: true},
			"none, anew":    {limit: new(NewLimit(new(time.Duration), "the option")).Refreshed(), set: true},
			"nothing, anew": {limit: Limit{}.Refreshed()},
		} {
			l := tc.limit
			if l.set() != tc.set || l.Deadline.IsZero() == tc.ends || tc.ends && time.Until(l.Deadline) > time.Second {
				t.Errorf("%s: set: %v, ends at %v", name, l.set(), l.Deadline)
			}
			wc := &consistency.WriteConcern{W: 2, Timeout: time.Minute}
			sent := l.concern(wc)
			if sent.W != 2 || (sent.Timeout == 0) != tc.set || wc.Timeout != time.Minute {
				t.Errorf("%s: the write concern %+v is sent as %+v", name, wc, sent)
			}
			if none := l.concern(nil); none != nil {
				t.Errorf("%s: no write concern is sent as %+v", name, none)
			}
		}
	})
}

// TestLimitExplains wants the server's error that an operation's time is up to be the driver's,
// with how long the operation took, if a timeout was given; others stay as they are.
func TestLimitExplains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given, none := NewLimit(new(time.Second), "the option"), NewLimit(new(time.Duration), "the option")
		context := Limit{Deadline: time.Now().Add(time.Second)}
		time.Sleep(300 * time.Millisecond)
		expired, other := &mongoerr.ServerError{Code: errcode.MaxTimeMSExpired}, &mongoerr.ServerError{Code: 11000}
		for _, l := range []*Limit{&given, &none, &context, {}} {
			if err := l.Explain(other); err != error(other) {
				t.Errorf("%+v: %v", l, err)
			}
		}
		for _, l := range []*Limit{&none, {}} {
			if err := l.Explain(expired); err != error(expired) {
				t.Errorf("%+v: %v", l, err)
			}
		}
		for l, elapsed := range map[*Limit]time.Duration{&given: 300 * time.Millisecond, &context: 0} {
			e, ok := errors.AsType[*mongoerr.TimeoutError](l.Explain(expired))
			if !ok || e.Elapsed != elapsed || e.Source != l.Source || !errors.Is(e, expired) {
				t.Errorf("%+v: %+v", l, e)
			}
		}
	})
}
