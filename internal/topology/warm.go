package topology

import (
	"context"
	"errors"
	"slices"
	"time"

	"allium/event"
	"allium/internal/failure"
	"allium/mongoerr"
)

// Warm waits until each server has been looked at, and until the pool of each one that bears data
// has as many connections as it is to have at least. Servers that cannot be reached, or turn out
// not to be meanwhile, are not waited for.
func (t *Topology) Warm(ctx context.Context) error {
	s, err := t.explored(ctx)
	if err != nil {
		return err
	}
	for i, server := range s.servers {
		if !s.desc.Servers[i].DataBearing() {
			continue
		}
		if err := server.pool.Warm(ctx); err != nil && !errors.Is(err, mongoerr.ErrPoolCleared) {
			return err
		}
	}
	return nil
}

// explored waits until there is an answer or an error of each server that the others have named.
func (t *Topology) explored(ctx context.Context) (*snapshot, error) {
	start := time.Now()
	for {
		s := t.snapshot.Load()
		next := slices.IndexFunc(s.desc.Servers, func(d *event.ServerDescription) bool {
			return d.Kind == event.UnknownServer && d.LastError == nil
		})
		if next < 0 || s.closed {
			return s, nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, &mongoerr.TimeoutError{Phase: mongoerr.PhaseSelection, Source: failure.SourceOf(ctx),
				Elapsed: time.Since(start), Addr: s.desc.Servers[next].Addr, Wrapped: ctx.Err()}
		}
	}
}
