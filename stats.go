package allium

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"allium/internal/exec"
	"allium/internal/logging"
	"allium/stats"
)

// Stats returns what the client has open and is doing: its connection pools, sessions and cursors,
// the operations in flight, the last ones that were slow, and the last events of the deployment's
// discovery. It does no I/O and is cheap enough to call every second. It may be called after Close.
func (c *Client) Stats() stats.Client {
	var s stats.Client
	s.Pools, s.RecentEvents, s.DroppedEvents = c.topology.Stats()
	s.Sessions = c.sessions.Stats()
	s.Operations, s.OldestOperations = c.exec.InFlight(stats.Listed)
	s.SlowThreshold = max(c.exec.Slow.Threshold, 0)
	s.SlowOperations, s.RecentSlowOperations = c.exec.SlowOperations()
	s.Cursors, s.OldestCursors = c.cursors.Len(), c.cursors.Oldest(stats.Listed)
	if c.plain != nil {
		c.addPlain(&s)
	}
	return s
}

// addPlain adds what the client does that works for an Encryption. Unless it is a client of its
// own, it shares pools and sessions with c.
func (c *Client) addPlain(s *stats.Client) {
	p := c.plain.Stats()
	if c.internal != nil {
		s.Pools = append(s.Pools, p.Pools...)
		s.DroppedEvents += p.DroppedEvents
		s.Sessions.InUse += p.Sessions.InUse
		s.Sessions.Pooled += p.Sessions.Pooled
	}
	s.Operations += p.Operations
	s.OldestOperations = merge(s.OldestOperations, p.OldestOperations, func(a, b stats.Operation) int { return a.Started.Compare(b.Started) })
	s.SlowOperations += p.SlowOperations
	s.RecentSlowOperations = merge(s.RecentSlowOperations, p.RecentSlowOperations, func(a, b stats.SlowOperation) int {
		return b.Started.Add(b.Duration).Compare(a.Started.Add(a.Duration))
	})
	s.Cursors += p.Cursors
	s.OldestCursors = merge(s.OldestCursors, p.OldestCursors, func(a, b stats.Cursor) int { return a.Opened.Compare(b.Opened) })
}

// merge returns the first of two lists, in order, as many as a list may have.
func merge[T any](a, b []T, compare func(a, b T) int) []T {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, compare)
	return all[:min(len(all), stats.Listed)]
}

// slowByDefault is from when on an operation is listed as slow if the program has not said; it is
// the server's own default (slowms).
const slowByDefault = 100 * time.Millisecond

// slow returns which operations are slow, and how they are logged.
func (c *Client) slow(o *ClientOptions) exec.Slow {
	if o.SlowOperation <= 0 {
		if o.SlowOperation < 0 {
			return exec.Slow{}
		}
		return exec.Slow{Threshold: slowByDefault}
	}
	_, set := o.LogLevels[LogCommand]
	return exec.Slow{Threshold: o.SlowOperation, Log: func(ctx context.Context, message string, attrs ...slog.Attr) {
		switch {
		case c.log.Enabled(ctx, logging.Command, slog.LevelWarn):
			c.log.Log(ctx, logging.Command, slog.LevelWarn, message, attrs...)
		case o.Logger == nil && !set: // the program has asked for these, and not said where they go
			slog.LogAttrs(ctx, slog.LevelWarn, "allium: "+message, attrs...)
		}
	}}
}
