package unified

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
)

// clientEntity is a client with the events that it has published.
type clientEntity struct {
	*allium.Client
	observed  map[string]bool
	ignored   map[string]bool
	sensitive bool

	mu         sync.Mutex
	events     []observedEvent
	checkedOut int
	closed     bool
}

// observedEvent is an event, named as the format names it.
type observedEvent struct {
	kind string // "command", "cmap" or "sdam"
	name string
	// command is set for commandStartedEvents, whatever is observed.
	command bson.Raw
	fields  bson.Raw
	service bool
	server  bool
}

func (c *clientEntity) record(e observedEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observed[e.name] {
		c.events = append(c.events, e)
	}
}

func (c *clientEntity) of(kind string) []observedEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []observedEvent
	for _, e := range c.events {
		if e.kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// entities are what the operations of a test work on. Threads share them.
type entities struct {
	mu  sync.Mutex
	all map[string]any
}

func (e *entities) get(name string) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v, ok := e.all[name]
	if !ok {
		return nil, fmt.Errorf("entity %q is not there", name)
	}
	return v, nil
}

// put adds an entity. Its name must be new.
func (e *entities) put(name string, v any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.all[name]; ok {
		return fmt.Errorf("entity %q is there already", name)
	}
	if e.all == nil {
		e.all = map[string]any{}
	}
	e.all[name] = v
	return nil
}

// get returns the entity of type T that has a name.
func get[T any](e *entities, name string) (T, error) {
	v, err := e.get(name)
	if err != nil {
		return *new(T), err
	}
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("entity %q is a %T, not a %T", name, v, t)
	}
	return t, nil
}

func (e *entities) value(name string) (bson.RawValue, error) { return get[bson.RawValue](e, name) }

func (e *entities) lsid(name string) (bson.Raw, error) {
	s, err := get[*sessionEntity](e, name)
	if err != nil {
		return nil, err
	}
	return s.id, nil
}

type sessionEntity struct {
	*allium.Session
	client *clientEntity
	id     bson.Raw
}

// createEntities makes the entities of a test.
func (r *runner) createEntities(ctx context.Context, list []bson.Raw) error {
	for _, doc := range list {
		for kind, v := range doc.All() {
			spec, ok := v.Document()
			if !ok {
				return fmt.Errorf("entity %s is %v", kind, v)
			}
			a := &arguments{doc: spec}
			id := a.string("id")
			make, ok := makers[kind]
			if !ok {
				return fmt.Errorf("entities of the kind %q are not known", kind)
			}
			made, err := make(ctx, r, a)
			if err == nil {
				err = a.done()
			}
			if err == nil {
				err = r.entities.put(id, made)
			}
			if err != nil {
				return fmt.Errorf("create %s %q: %w", kind, id, err)
			}
		}
	}
	return nil
}

func init() {
	registerEntity("client", createClient)
	registerEntity("database", createDatabase)
	registerEntity("collection", createCollection)
	registerEntity("session", createSession)
}

func createDatabase(_ context.Context, r *runner, a *arguments) (any, error) {
	client, err := get[*clientEntity](r.entities, a.string("client"))
	if err != nil {
		return nil, err
	}
	db := client.Database(a.string("databaseName"))
	if o := a.document("databaseOptions"); o != nil {
		sub := &arguments{doc: o}
		db = db.With(allium.DatabaseOptions{ReadPreference: sub.readPreference("readPreference"), ReadConcern: sub.readConcern("readConcern"),
			WriteConcern: sub.writeConcern("writeConcern"), Timeout: sub.timeout()})
		a.adopt(sub)
	}
	return db, nil
}

func createCollection(_ context.Context, r *runner, a *arguments) (any, error) {
	db, err := get[*allium.Database](r.entities, a.string("database"))
	if err != nil {
		return nil, err
	}
	coll := allium.CollectionOf[bson.Raw](db, a.string("collectionName"))
	if o := a.document("collectionOptions"); o != nil {
		sub := &arguments{doc: o}
		coll = coll.With(allium.CollectionOptions{ReadPreference: sub.readPreference("readPreference"), ReadConcern: sub.readConcern("readConcern"),
			WriteConcern: sub.writeConcern("writeConcern"), Timeout: sub.timeout()})
		a.adopt(sub)
	}
	return coll, nil
}

func createSession(_ context.Context, r *runner, a *arguments) (any, error) {
	client, err := get[*clientEntity](r.entities, a.string("client"))
	if err != nil {
		return nil, err
	}
	var o allium.SessionOptions
	if d := a.document("sessionOptions"); d != nil {
		sub := &arguments{doc: d}
		o.CausalConsistency = sub.bool("causalConsistency")
		if snapshot := sub.bool("snapshot"); snapshot != nil {
			o.Snapshot = *snapshot
		}
		if name := sub.string("snapshotTime"); name != "" {
			v, err := r.entities.value(name)
			if err != nil {
				return nil, err
			}
			ts, _ := v.Timestamp()
			o.SnapshotTime = &ts
		}
		o.Timeout = sub.millisp("defaultTimeoutMS")
		if txn := sub.document("defaultTransactionOptions"); txn != nil {
			inner := &arguments{doc: txn}
			o.Transaction = inner.transaction()
			sub.adopt(inner)
		}
		a.adopt(sub)
	}
	s, err := client.StartSession(o)
	if err != nil {
		return nil, err
	}
	return &sessionEntity{Session: s, client: client, id: s.ID()}, nil
}

// transaction reads the options of a transaction.
func (a *arguments) transaction() allium.TransactionOptions {
	return allium.TransactionOptions{ReadConcern: a.readConcern("readConcern"), WriteConcern: a.writeConcern("writeConcern"),
		ReadPreference: a.readPreference("readPreference"), MaxCommitTime: a.millisp("maxCommitTimeMS")}
}

func createClient(ctx context.Context, r *runner, a *arguments) (any, error) {
	c := &clientEntity{observed: map[string]bool{}, ignored: map[string]bool{"configureFailPoint": true}}
	for v := range rawArray(a.raw("observeEvents")) {
		name, _ := v.StringValue()
		c.observed[name] = true
	}
	for v := range rawArray(a.raw("ignoreCommandMonitoringEvents")) {
		name, _ := v.StringValue()
		c.ignored[name] = true
	}
	if b := a.bool("observeSensitiveCommands"); b != nil {
		c.sensitive = *b
	}
	multi := a.bool("useMultipleMongoses")
	uri := r.deployment.uri(multi != nil && *multi)
	query := url.Values{}
	for key, v := range a.document("uriOptions").All() {
		if arr, ok := v.Array(); ok {
			for el := range arr.Values() {
				s, _ := el.StringValue()
				query.Add(strings.Clone(key), s)
			}
			continue
		}
		if s, ok := v.StringValue(); ok {
			query.Set(strings.Clone(key), s)
			continue
		}
		query.Set(strings.Clone(key), v.String())
	}
	if len(query) > 0 {
		sep := "&"
		if !strings.Contains(uri, "?") {
			sep = "?"
		}
		uri += sep + query.Encode()
	}
	opts := c.monitors()
	if api := a.document("serverApi"); api != nil {
		sub := &arguments{doc: api}
		opts.ServerAPI = &allium.ServerAPI{Version: sub.string("version"), Strict: sub.bool("strict"), DeprecationErrors: sub.bool("deprecationErrors")}
		a.adopt(sub)
	}
	client, err := allium.Open(uri, opts)
	if err != nil {
		return nil, err
	}
	c.Client = client
	r.clients = append(r.clients, c)
	return c, nil
}

// monitors returns the options that make a client record its events.
func (c *clientEntity) monitors() allium.ClientOptions {
	command := func(name string, info *event.CommandInfo, f func(d []byte) []byte, cmd bson.Raw) {
		if c.ignored[info.CommandName] || !c.sensitive && sensitive(info.CommandName) {
			return
		}
		start, d := bson.BeginDocument(nil)
		d = bson.AppendString(d, "commandName", info.CommandName)
		d = bson.AppendString(d, "databaseName", info.DatabaseName)
		c.record(observedEvent{kind: "command", name: name, fields: bson.EndDocument(f(d), start), command: cmd,
			service: info.ServiceID != nil, server: info.ServerConnectionID != nil})
	}
	pool := func(name string, pairs ...string) {
		start, d := bson.BeginDocument(nil)
		for i := 0; i < len(pairs); i += 2 {
			d = bson.AppendString(d, pairs[i], pairs[i+1])
		}
		c.record(observedEvent{kind: "cmap", name: name, fields: bson.EndDocument(d, start)})
	}
	count := func(by int) {
		c.mu.Lock()
		c.checkedOut += by
		c.mu.Unlock()
	}
	return allium.ClientOptions{
		CommandMonitor: &event.CommandMonitor{
			Started: func(_ context.Context, e *event.CommandStarted) {
				cmd := append(bson.Raw(nil), e.Command...)
				command("commandStartedEvent", &e.CommandInfo, func(d []byte) []byte { return bson.AppendDocument(d, "command", cmd) }, cmd)
			},
			Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
				command("commandSucceededEvent", &e.CommandInfo, func(d []byte) []byte { return bson.AppendDocument(d, "reply", e.Reply) }, nil)
			},
			Failed: func(_ context.Context, e *event.CommandFailed) {
				command("commandFailedEvent", &e.CommandInfo, func(d []byte) []byte { return d }, nil)
			},
		},
		PoolMonitor: &event.PoolMonitor{
			PoolCreated: func(*event.PoolCreated) { pool("poolCreatedEvent") },
			PoolReady:   func(*event.PoolReady) { pool("poolReadyEvent") },
			PoolCleared: func(*event.PoolCleared) { pool("poolClearedEvent") },
			PoolClosed:  func(*event.PoolClosed) { pool("poolClosedEvent") },

			ConnectionCreated:         func(*event.ConnectionCreated) { pool("connectionCreatedEvent") },
			ConnectionReady:           func(*event.ConnectionReady) { pool("connectionReadyEvent") },
			ConnectionClosed:          func(e *event.ConnectionClosed) { pool("connectionClosedEvent", "reason", e.Reason) },
			ConnectionCheckOutStarted: func(*event.ConnectionCheckOutStarted) { pool("connectionCheckOutStartedEvent") },
			ConnectionCheckOutFailed: func(e *event.ConnectionCheckOutFailed) {
				pool("connectionCheckOutFailedEvent", "reason", e.Reason)
			},
			ConnectionCheckedOut: func(*event.ConnectionCheckedOut) { count(1); pool("connectionCheckedOutEvent") },
			ConnectionCheckedIn:  func(*event.ConnectionCheckedIn) { count(-1); pool("connectionCheckedInEvent") },
		},
	}
}

// sensitive reports whether a command's events are left out unless a test asks for them.
func sensitive(name string) bool {
	switch strings.ToLower(name) {
	case "authenticate", "saslstart", "saslcontinue", "getnonce", "createuser", "updateuser", "copydbgetnonce", "copydbsaslstart", "copydb", "hello", "ismaster":
		return true
	}
	return false
}

func rawArray(v bson.RawValue) func(func(bson.RawValue) bool) {
	arr, _ := v.Array()
	return arr.Values()
}

// close closes the clients of a test.
func (r *runner) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, e := range r.entities.all {
		switch e := e.(type) {
		case *clientEntity: // last
		case *sessionEntity:
			if !e.client.closed {
				e.End(ctx)
			}
		case closer:
			e.Close(ctx)
		}
	}
	for _, c := range r.clients {
		c.Close(ctx)
	}
}
