package topology

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"allium/consistency"
	"allium/event"
	"allium/internal/failure"
	"allium/internal/logging"
	"allium/mongoerr"
)

// Select returns a suitable server (specification: Server Selection). If none is known, it has all
// servers checked and waits until one is, until the selection timeout passes, which is a
// *mongoerr.SelectionError, or until ctx ends, which is a *mongoerr.TimeoutError around one.
//
// The description is what was known of the server when it was selected: a check may have found out
// since that it is gone.
func (t *Topology) Select(ctx context.Context, sel *Selection) (*Server, *event.ServerDescription, error) {
	snap := t.snapshot.Load()
	logs := t.cfg.Log != nil && t.cfg.Log.Enabled(ctx, logging.ServerSelection, slog.LevelDebug)
	if logs {
		t.logSelection(ctx, slog.LevelDebug, "Server selection started", sel, snap)
	}
	s, d, err := t.pick(snap, sel)
	if s == nil && err == nil {
		s, d, snap, err = t.wait(ctx, sel)
	}
	if logs {
		if err != nil {
			t.logSelection(ctx, slog.LevelDebug, "Server selection failed", sel, snap,
				slog.String("failure", failureText(err)))
		} else {
			t.logSelection(ctx, slog.LevelDebug, "Server selection succeeded", sel, snap,
				logging.Server(nil, s.addr)...)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return s, d, nil
}

// pick selects among the servers of a snapshot. It returns nil if none is suitable, and an error if
// waiting would not help.
func (t *Topology) pick(snap *snapshot, sel *Selection) (*Server, *event.ServerDescription, error) {
	if snap.closed {
		return nil, nil, errClientClosed
	}
	if err := snap.desc.CompatibilityErr; err != nil {
		return nil, nil, &mongoerr.SelectionError{Criteria: sel.String(), Topology: snap.desc, Wrapped: err}
	}
	sel.Primary = sel.WritesResults && !secondariesWrite(snap.desc)
	if t.cfg.Selector == nil && sel.Addr == "" && len(sel.Deprioritized) == 0 &&
		(sel.Write || primaryOnly(sel.ReadPreference)) {
		if i := choose(snap.primary); i >= 0 {
			return snap.primary[i], snap.primaryDesc[i], nil
		}
		return nil, nil, nil
	}
	if err := validateFor(sel.ReadPreference, snap.desc.Kind, t.cfg.HeartbeatInterval); err != nil && !sel.Write {
		return nil, nil, err
	}
	if sel.Addr != "" {
		s, d := t.named(snap, sel.Addr)
		return s, d, nil
	}
	var buf [stackServers]*event.ServerDescription
	suitable := appendSuitable(buf[:0], snap.desc, sel)
	if t.cfg.Selector != nil {
		suitable = t.narrow(suitable)
	}
	suitable = inWindow(suitable, t.cfg.LocalThreshold)
	if len(suitable) == 0 {
		return nil, nil, nil
	}
	var servers [stackServers]*Server
	chosen := snap.appendServers(servers[:0], suitable)
	i := choose(chosen)
	return chosen[i], suitable[i], nil
}

// named returns the server at an address, nil if it is not suitable. What it takes does not depend
// on how many servers there are: each statement of a transaction on a sharded cluster, and each
// batch of a cursor, selects its server in this way. The server stays suitable where the operation
// should rather avoid it, because there is no other one.
func (t *Topology) named(snap *snapshot, addr string) (*Server, *event.ServerDescription) {
	i, ok := snap.at[addr]
	if !ok {
		return nil, nil
	}
	d := snap.desc.Servers[i]
	if !usable(snap.desc.Kind).has(d.Kind) ||
		t.cfg.Selector != nil && len(t.narrow([]*event.ServerDescription{d})) == 0 {
		return nil, nil
	}
	return snap.servers[i], d
}

// narrow asks the user's selector, which gets a copy of the list.
func (t *Topology) narrow(suitable []*event.ServerDescription) []*event.ServerDescription {
	accepted := t.cfg.Selector(append([]*event.ServerDescription(nil), suitable...))
	kept := suitable[:0]
	for _, d := range suitable {
		for _, a := range accepted {
			if a != nil && a.Addr == d.Addr {
				kept = append(kept, d)
				break
			}
		}
	}
	return kept
}

// choose returns the position of one of two servers chosen at random: the one with fewer operations
// in progress; -1 if there are none.
func choose(servers []*Server) int {
	if len(servers) < 2 {
		return len(servers) - 1
	}
	i, j := pickTwo(len(servers), rand.IntN)
	if servers[j].Operations() < servers[i].Operations() {
		i = j
	}
	return i
}

// wait waits for a suitable server. It returns the snapshot that it saw last.
func (t *Topology) wait(ctx context.Context, sel *Selection) (*Server, *event.ServerDescription, *snapshot, error) {
	start := time.Now()
	defer func() { sel.Waited = time.Since(start) }()
	limit := sel.Timeout
	if limit == 0 {
		limit = t.cfg.SelectionTimeout
	}
	var expired <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		expired = timer.C
	}
	logged := false
	for {
		snap := t.snapshot.Load()
		if s, d, err := t.pick(snap, sel); s != nil || err != nil {
			if e, ok := errors.AsType[*mongoerr.SelectionError](err); ok {
				e.Elapsed = time.Since(start)
			}
			return s, d, snap, err
		}
		if !logged && t.cfg.Log != nil && t.cfg.Log.Enabled(ctx, logging.ServerSelection, slog.LevelInfo) {
			t.logSelection(ctx, slog.LevelInfo, "Waiting for suitable server to become available", sel, snap,
				remaining(ctx, start, limit)...)
			logged = true
		}
		for _, s := range snap.servers {
			s.requestCheck()
		}
		select {
		case <-snap.changed:
		case <-ctx.Done():
			err := t.selectionError(t.snapshot.Load(), sel, start)
			err.Wrapped = &endedError{first: err.Wrapped, ctx: ctx.Err()}
			return nil, nil, snap, &mongoerr.TimeoutError{Phase: mongoerr.PhaseSelection, Source: mongoerr.SourceCancel,
				Elapsed: time.Since(start), Wrapped: err}
		case <-expired:
			sel.Expired = true
			return nil, nil, snap, t.selectionError(t.snapshot.Load(), sel, start)
		}
	}
}

// endedError is the first real cause of a selection that the context has ended.
type endedError struct{ first, ctx error }

func (e *endedError) Error() string   { return e.first.Error() }
func (e *endedError) Unwrap() []error { return []error{e.first, e.ctx} }

// selectionError says what the operation asked for and why no server was suitable.
func (t *Topology) selectionError(snap *snapshot, sel *Selection, start time.Time) *mongoerr.SelectionError {
	e := &mongoerr.SelectionError{Criteria: sel.String(), Topology: snap.desc, Elapsed: time.Since(start)}
	for _, d := range snap.desc.Servers {
		if e.Wrapped == nil && d.LastError != nil {
			e.Wrapped = failure.Others(d.LastError)
		}
		e.Reasons = append(e.Reasons, d.Addr+": "+t.unsuitable(snap.desc, d, sel))
	}
	for _, d := range snap.strangers {
		e.Reasons = append(e.Reasons, stranger(snap.desc, d))
	}
	if e.Wrapped == nil {
		e.Wrapped = noMember(snap.desc.Kind, sel)
	}
	return e
}

// stranger says why a server that the user or a member named is not part of the topology.
func stranger(t *event.TopologyDescription, d *event.ServerDescription) string {
	switch {
	case t.SetName != "" && d.SetName != "" && d.SetName != t.SetName:
		return fmt.Sprintf("%s: left out: it belongs to the replica set %q, and %q is asked for", d.Addr, d.SetName,
			t.SetName)
	case t.SetName != "" && d.SetName == "":
		return fmt.Sprintf("%s: left out: it is a %s, and the replica set %q is asked for", d.Addr, d.Kind, t.SetName)
	case d.Me != "" && d.Me != d.Addr:
		return fmt.Sprintf("%s: left out: it calls itself %s", d.Addr, d.Me)
	}
	return fmt.Sprintf("%s: left out: it is a %s", d.Addr, d.Kind)
}

// unsuitable says why a server is rejected.
func (t *Topology) unsuitable(td *event.TopologyDescription, d *event.ServerDescription, sel *Selection) string {
	rp := sel.ReadPreference
	f := filter{t: td}
	one := []*event.ServerDescription{d}
	switch mode := ReadMode(rp); {
	case d.LastError != nil:
		return strings.TrimPrefix(d.LastError.Error(), "connection to "+d.Addr+": ")
	case d.Kind == event.UnknownServer:
		return "not checked yet"
	case sel.Addr != "" && sel.Addr != d.Addr:
		return "another server"
	case !d.DataBearing():
		return "holds no data: " + d.Kind.String()
	case (sel.Write || mode == consistency.Primary) && d.Kind != event.RSPrimary:
		return "not the primary: " + d.Kind.String()
	case mode == consistency.Secondary && d.Kind != event.RSSecondary:
		return "not a secondary: " + d.Kind.String()
	case rp != nil && rp.MaxStaleness > 0 && len(f.fresh(one, 0, rp.MaxStaleness)) == 0:
		return "too stale"
	case rp != nil && !anyTagSet(rp.TagSets, d.Tags):
		return "no matching tags: " + d.Tags.String()
	case t.cfg.Selector != nil:
		return "not accepted by the server selector"
	}
	return d.Kind.String()
}

func anyTagSet(sets []event.TagSet, tags event.TagSet) bool {
	for _, set := range sets {
		if tags.Contains(set) {
			return true
		}
	}
	return len(sets) == 0
}

// noMember is the error of a selection in which no server reported an error.
func noMember(kind event.TopologyKind, sel *Selection) error {
	if kind != event.ReplicaSetNoPrimary && kind != event.ReplicaSetWithPrimary {
		return errUnsuitable
	}
	rp := sel.ReadPreference
	switch mode := ReadMode(rp); {
	case sel.Addr != "":
		return fmt.Errorf("no replica set member %s available", sel.Addr)
	case sel.Write:
		return errors.New("no replica set primary available for writing")
	case mode == consistency.Primary:
		return errors.New("no replica set primary available for query with ReadPreference PRIMARY")
	case len(rp.TagSets) > 0:
		return fmt.Errorf("no replica set member available for query with ReadPreference %s and tags %v", upper(mode),
			rp.TagSets)
	case mode == consistency.Secondary:
		return errors.New("no replica set secondary available for query with ReadPreference SECONDARY")
	}
	return errors.New("no replica set members available for query")
}

// upper writes a mode as the older specifications do, for example SECONDARY_PREFERRED.
func upper(m consistency.ReadMode) string {
	return strings.ToUpper(strings.Replace(string(m), "Preferred", "_preferred", 1))
}

func remaining(ctx context.Context, start time.Time, limit time.Duration) []slog.Attr {
	if deadline, ok := ctx.Deadline(); ok && (limit < 0 || deadline.Before(start.Add(limit))) {
		limit = deadline.Sub(start)
	}
	if limit < 0 {
		return nil
	}
	return []slog.Attr{slog.Int64("remainingTimeMS", max(0, limit-time.Since(start)).Milliseconds())}
}

// failureText leaves out what the log message says anyway.
func failureText(err error) string {
	if e, ok := errors.AsType[*mongoerr.SelectionError](err); ok {
		short := *e
		short.Topology, short.Reasons = nil, nil
		return short.Error()
	}
	return err.Error()
}

func (t *Topology) logSelection(ctx context.Context, level slog.Level, message string, sel *Selection, snap *snapshot,
	attrs ...slog.Attr) {
	selector := sel.String()
	if t.cfg.Selector != nil {
		selector += ", custom server selector"
	}
	all := make([]slog.Attr, 0, len(attrs)+4)
	all = append(all, slog.String("selector", selector), slog.String("operation", sel.Operation))
	if sel.OperationID != 0 {
		all = append(all, slog.Int64("operationId", sel.OperationID))
	}
	all = append(all, slog.String("topologyDescription", snap.desc.String()))
	t.cfg.Log.Log(ctx, logging.ServerSelection, level, message, append(all, attrs...)...)
}
