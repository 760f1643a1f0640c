package unified

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/session"
)

// special are the operations of the test runner itself. Their errors fail the test.
var special = map[string]func(ctx context.Context, r *runner, a *arguments) error{}

func init() {
	// Not in special's declaration: the operations of threads refer to it.
	special["createEntities"] = func(ctx context.Context, r *runner, a *arguments) error {
		a.shaped("entities", list(1, entityShape))
		list := a.documents("entities")
		if err := a.done(); err != nil {
			return err
		}
		return r.createEntities(ctx, list)
	}
	special["runOnThread"] = runOnThread
	special["waitForThread"] = func(_ context.Context, r *runner, a *arguments) error {
		t, err := get[*thread](r.entities, a.string("thread"))
		if err != nil {
			return err
		}
		return t.wait()
	}
	special["wait"] = func(ctx context.Context, _ *runner, a *arguments) error {
		a.must("ms")
		select {
		case <-time.After(a.millis("ms")):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	special["failPoint"] = func(ctx context.Context, r *runner, a *arguments) error {
		c, err := get[*clientEntity](r.entities, a.string("client"))
		if err != nil {
			return err
		}
		a.string("session") // a file has it, without a meaning
		return r.failPoint(ctx, c.Client, a.document("failPoint"))
	}
	special["targetedFailPoint"] = func(ctx context.Context, r *runner, a *arguments) error {
		s, err := get[*sessionEntity](r.entities, a.string("session"))
		if err != nil {
			return err
		}
		pinned := inside(s.Session).Transaction().Pinned()
		if pinned == nil || pinned.Mongos == "" {
			return errors.New("the session is not pinned to a mongos")
		}
		addr := pinned.Mongos
		mongos, err := r.deployment.mongos(addr)
		if err != nil {
			return err
		}
		return r.failPoint(ctx, mongos, a.document("failPoint"))
	}
	special["waitForEvent"] = func(ctx context.Context, r *runner, a *arguments) error {
		c, want, count, err := eventArguments(r, a)
		if err != nil {
			return err
		}
		got := 0
		var wrong error
		if err := c.await(ctx, eventTimeout, func() bool {
			got, wrong = r.countEvents(c, want)
			return got >= count || wrong != nil
		}); err != nil {
			return fmt.Errorf("%v was published %d times, not %d: %w", want, got, count, err)
		}
		return wrong
	}
	special["assertEventCount"] = func(_ context.Context, r *runner, a *arguments) error {
		c, want, count, err := eventArguments(r, a)
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		got, err := r.countEvents(c, want)
		if err == nil && got != count {
			err = fmt.Errorf("%v was published %d times, not %d", want, got, count)
		}
		return err
	}
	special["recordTopologyDescription"] = func(_ context.Context, r *runner, a *arguments) error {
		c, err := get[*clientEntity](r.entities, a.string("client"))
		if err != nil {
			return err
		}
		return r.entities.put(a.string("id"), c.Topology())
	}
	special["assertTopologyType"] = func(_ context.Context, r *runner, a *arguments) error {
		t, err := get[*event.TopologyDescription](r.entities, a.string("topologyDescription"))
		if err != nil {
			return err
		}
		if want := a.string("topologyType"); t.Kind.String() != want {
			return fmt.Errorf("the topology is %v, expected %s", t, want)
		}
		return nil
	}
	special["waitForPrimaryChange"] = waitForPrimaryChange
	special["assertSessionPinned"] = func(_ context.Context, r *runner, a *arguments) error {
		return assertPinned(r, a, true)
	}
	special["assertSessionUnpinned"] = func(_ context.Context, r *runner, a *arguments) error {
		return assertPinned(r, a, false)
	}
	special["assertSessionDirty"] = func(_ context.Context, r *runner, a *arguments) error {
		return assertDirty(r, a, true)
	}
	special["assertSessionNotDirty"] = func(_ context.Context, r *runner, a *arguments) error {
		return assertDirty(r, a, false)
	}
	special["assertSessionTransactionState"] = func(_ context.Context, r *runner, a *arguments) error {
		s, err := get[*sessionEntity](r.entities, a.string("session"))
		if err != nil {
			return err
		}
		if want, got := a.string("state"), transactionState(s); got != want {
			return fmt.Errorf("the transaction's state is %s, expected %s", got, want)
		}
		return nil
	}
	special["assertSameLsidOnLastTwoCommands"] = func(_ context.Context, r *runner, a *arguments) error {
		return assertLsids(r, a, true)
	}
	special["assertDifferentLsidOnLastTwoCommands"] = func(_ context.Context, r *runner, a *arguments) error {
		return assertLsids(r, a, false)
	}
	special["assertNumberConnectionsCheckedOut"] = func(_ context.Context, r *runner, a *arguments) error {
		a.must("client", "connections")
		c, err := get[*clientEntity](r.entities, a.string("client"))
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if want := a.int("connections"); int64(c.checkedOut) != want {
			return fmt.Errorf("%d connections are checked out, expected %d", c.checkedOut, want)
		}
		return nil
	}
	special["assertCollectionExists"] = func(ctx context.Context, r *runner, a *arguments) error {
		return assertCollection(ctx, r, a, true)
	}
	special["assertCollectionNotExists"] = func(ctx context.Context, r *runner, a *arguments) error {
		return assertCollection(ctx, r, a, false)
	}
	special["assertIndexExists"] = func(ctx context.Context, r *runner, a *arguments) error {
		return assertIndex(ctx, r, a, true)
	}
	special["assertIndexNotExists"] = func(ctx context.Context, r *runner, a *arguments) error {
		return assertIndex(ctx, r, a, false)
	}
}

// eventTimeout bounds the wait for an event, and for a primary if the test does not say how long.
// It is ten seconds and what the operations before the wait take on a real clock: a heartbeat that
// began before them ends before the wait does.
const eventTimeout = 10*time.Second + 100*time.Millisecond

// eventArguments are those of the operations that count events.
func eventArguments(r *runner, a *arguments) (c *clientEntity, want bson.Raw, count int, err error) {
	a.shaped("client", text)
	a.shaped("event", anyEventShape)
	a.shaped("count", integer)
	want, count = a.document("event"), int(a.int("count"))
	name := a.string("client")
	if a.err != nil {
		return nil, nil, 0, a.err
	}
	c, err = get[*clientEntity](r.entities, name)
	return c, want, count, err
}

func runOnThread(_ context.Context, r *runner, a *arguments) error {
	t, err := get[*thread](r.entities, a.string("thread"))
	if err != nil {
		return err
	}
	a.shaped("operation", operationShape)
	op := a.operation(a.document("operation"))
	if err := a.done(); err != nil {
		return err
	}
	return t.run(&op)
}

func waitForPrimaryChange(ctx context.Context, r *runner, a *arguments) error {
	c, err := get[*clientEntity](r.entities, a.string("client"))
	if err != nil {
		return err
	}
	prior, err := get[*event.TopologyDescription](r.entities, a.string("priorTopologyDescription"))
	if err != nil {
		return err
	}
	timeout := eventTimeout
	if d := a.millisp("timeoutMS"); d != nil {
		timeout = *d
	}
	var old string
	if p := prior.Primary(); p != nil {
		old = p.Addr
	}
	return c.await(ctx, timeout, func() bool {
		p := c.Topology().Primary()
		return p != nil && p.Addr != old
	})
}

// failPoint sets a fail point, and notes that it must be switched off after the test.
func (r *runner) failPoint(ctx context.Context, c *allium.Client, cmd bson.Raw) error {
	if data, _ := cmd.Lookup("data").Document(); !data.Lookup("appName").IsZero() &&
		compareVersions(r.deployment.Version, "4.4.7") < 0 {
		for v := range rawArray(data.Lookup("failCommands")) {
			if name, _ := v.StringValue(); strings.EqualFold(name, "hello") || strings.EqualFold(name, "isMaster") {
				return noAppName
			}
		}
	}
	admin := c.Database("admin")
	if _, err := admin.RunCommand(ctx, cmd); err != nil {
		return err
	}
	name, _ := cmd.Lookup("configureFailPoint").StringValue()
	r.failPoints = append(r.failPoints, func(ctx context.Context) {
		off := bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: "off"}}
		if _, err := admin.RunCommand(ctx, off); err != nil { // the client is closed, or its timeout is short
			r.deployment.admin.Database("admin").RunCommand(ctx, off)
		}
	})
	return nil
}

// transactionState returns the state of a session's transaction as the specification Transactions
// names it.
func transactionState(s *sessionEntity) string {
	return [...]string{"none", "starting", "in_progress", "committed",
		"aborted"}[inside(s.Session).Transaction().State()]
}

func assertPinned(r *runner, a *arguments, want bool) error {
	s, err := get[*sessionEntity](r.entities, a.string("session"))
	if err != nil {
		return err
	}
	if pinned := inside(s.Session).Transaction().Pinned() != nil; pinned != want {
		return fmt.Errorf("pinned is %v", pinned)
	}
	return nil
}

func assertDirty(r *runner, a *arguments, want bool) error {
	s, err := get[*sessionEntity](r.entities, a.string("session"))
	if err != nil {
		return err
	}
	if dirty := inside(s.Session).Server().Dirty(); dirty != want {
		return fmt.Errorf("dirty is %v", dirty)
	}
	return nil
}

func assertLsids(r *runner, a *arguments, want bool) error {
	c, err := get[*clientEntity](r.entities, a.string("client"))
	if err != nil {
		return err
	}
	var ids []bson.RawValue
	for _, e := range c.of("command") {
		if e.name == started {
			ids = append(ids, e.fields.Lookup("command", "lsid"))
		}
	}
	if len(ids) < 2 {
		return fmt.Errorf("only %d commands were sent", len(ids))
	}
	last := ids[len(ids)-2:]
	if last[0].IsZero() || last[1].IsZero() {
		return errors.New("a command has no lsid")
	}
	if same := bson.Compare(last[0], last[1]) == 0; same != want {
		return fmt.Errorf("the same lsid: %v", same)
	}
	return nil
}

func assertCollection(ctx context.Context, r *runner, a *arguments, want bool) error {
	names, err := r.deployment.admin.Database(a.string("databaseName")).ListCollectionNames(ctx)
	if err != nil {
		return err
	}
	if there := slices.Contains(names, a.string("collectionName")); there != want {
		return fmt.Errorf("collection exists: %v", there)
	}
	return nil
}

func assertIndex(ctx context.Context, r *runner, a *arguments, want bool) error {
	cur, err := r.deployment.admin.Database(
		a.string("databaseName")).Collection(a.string("collectionName")).ListIndexes(ctx)
	if err != nil {
		return err
	}
	all, err := cur.All(ctx)
	if err != nil {
		return err
	}
	name := a.string("indexName")
	there := slices.ContainsFunc(all, func(i allium.IndexInfo) bool { return i.Name == name })
	if there != want {
		return fmt.Errorf("index exists: %v", there)
	}
	return nil
}

// inside returns the states of a session that users need not see.
func inside(s *allium.Session) *session.Session {
	return session.FromContext(allium.WithSession(context.Background(), s)).Session
}
