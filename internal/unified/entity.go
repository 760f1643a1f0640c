package unified

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"allium"
	"allium/bson"
)

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

// list returns all entities, in no order.
func (e *entities) list() []any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.all))
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

// sessionEntity is a session, whose id is known after its end too.
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
		db = db.With(allium.DatabaseOptions{ReadPreference: sub.readPreference("readPreference"),
			ReadConcern:  sub.readConcern("readConcern"),
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
		coll = coll.With(allium.CollectionOptions{ReadPreference: sub.readPreference("readPreference"),
			ReadConcern:  sub.readConcern("readConcern"),
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
			ts, ok := v.Timestamp()
			if !ok {
				return nil, fmt.Errorf("entity %q is %v, not a timestamp", name, v)
			}
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
	if r.clusterTime != nil {
		// Without it a transaction on another mongos might not see the initial data.
		if err := s.AdvanceClusterTime(r.clusterTime); err != nil {
			return nil, err
		}
	}
	return &sessionEntity{Session: s, client: client, id: s.ID()}, nil
}

// transaction reads the options of a transaction.
func (a *arguments) transaction() allium.TransactionOptions {
	return allium.TransactionOptions{ReadConcern: a.readConcern("readConcern"),
		WriteConcern:   a.writeConcern("writeConcern"),
		ReadPreference: a.readPreference("readPreference"), MaxCommitTime: a.millis("maxCommitTimeMS")}
}

func rawArray(v bson.RawValue) func(func(bson.RawValue) bool) {
	arr, _ := v.Array()
	return arr.Values()
}
