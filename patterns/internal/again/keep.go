package again

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/internal/flight"
)

// ErrPassed is the error of Keep if somebody else has what was held.
var ErrPassed = errors.New("it has passed on")

// Keep renews what is held for ttl since sent, which is when the command was sent that got it: the
// server's time of it is not before. It returns nil when the context ends, and an error when what
// was held is lost: renew has returned false, or has failed until the time was up, a little early,
// since clocks do not run equally fast.
func Keep(ctx context.Context, sent time.Time, ttl, every time.Duration,
	renew func(ctx context.Context) (held bool, err error)) error {
	for {
		deadline := sent.Add(ttl - ttl/10)
		if !Pause(ctx, min(every, time.Until(deadline))) {
			return nil
		}
		at, err := keepOnce(ctx, deadline, ttl/20, renew)
		switch {
		case errors.Is(err, ErrPassed):
			return err
		case ctx.Err() != nil: // a renewal that was cut off is no loss
			return nil
		case err != nil:
			return err
		}
		sent = at
	}
}

// keepOnce renews until it succeeds, and returns when that was sent.
func keepOnce(ctx context.Context, deadline time.Time, pause time.Duration,
	renew func(ctx context.Context) (bool, error)) (time.Time, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for {
		at := time.Now()
		held := false
		// The program's listeners may panic here, where nobody could recover.
		err := flight.Apart(func() (err error) {
			held, err = renew(ctx)
			return err
		})
		switch {
		case err == nil && !held:
			return at, ErrPassed
		case err == nil:
			return at, nil
		case ctx.Err() != nil || !Pause(ctx, pause):
			return at, fmt.Errorf("it could not be renewed: %w", err)
		}
	}
}
