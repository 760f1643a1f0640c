// Package searchindex keeps the search indexes of a deployment: their definitions, and the states
// that they go through while they are built and dropped.
package searchindex

import (
	"iter"
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// Indexes are the search indexes of a deployment. Safe for concurrent use.
type Indexes struct {
	// Build is how long an index takes to be ready, and a dropped one to be gone.
	Build time.Duration
	// Engine answers the stages that search; nil: they are refused.
	Engine Engine

	mu     sync.Mutex
	byColl map[UUID][]*index
}

// UUID names a collection.
type UUID = [16]byte

// Engine makes indexes that answer.
type Engine interface {
	// Open reads a definition and returns what answers its queries, or says what is wrong with it.
	Open(kind string, definition bson.Raw) (answer Answer, err error)
}

// Checker is an Engine that says what is wrong with a stage by itself, without an index.
type Checker interface {
	Check(stage string, spec bson.Raw) error
}

// Check asks the engine what is wrong with a stage.
func (x *Indexes) Check(stage string, spec bson.Raw) error {
	if c, ok := x.Engine.(Checker); ok {
		return c.Check(stage, spec)
	}
	return nil
}

// Answer answers a stage that searches. read yields the documents of a collection of the database,
// with "" those of the index's own; they must not change. step is called with what the answer
// takes, and may leave it by a panic. hits are the documents that were found, with what $meta shows
// of each; meta is what is known of all of them.
type Answer = func(stage string, spec bson.Raw, read func(collection string) iter.Seq2[bson.Raw, error],
	step func(n int)) (
	hits iter.Seq2[bson.Raw, bson.Raw], meta bson.Raw, err error)

// index is one index of a collection.
type index struct {
	id         bson.ObjectID
	name, kind string
	latest     definition
	served     *definition // what queries use while the latest is built; nil: none was ready yet
	dropped    time.Time   // zero: it is not
}

type definition struct {
	spec    bson.Raw
	version int64
	created time.Time
	answer  Answer // nil: there is no engine
}

// Spec describes an index to create.
type Spec struct {
	Name, Kind string
	Definition bson.Raw
}

// Created is an index that a command asked for.
type Created struct{ ID, Name string }

// state returns a definition's state, which goes from PENDING over BUILDING to READY.
func (x *Indexes) state(d *definition, now time.Time) string {
	switch age := now.Sub(d.created); {
	case age >= x.Build:
		return "READY"
	case age >= x.Build/2:
		return "BUILDING"
	}
	return "PENDING"
}

// gone reports whether a dropped index is no longer listed.
func (x *Indexes) gone(i *index, now time.Time) bool {
	return !i.dropped.IsZero() && now.Sub(i.dropped) >= x.Build
}

// find returns the index with this id or name. The caller holds the lock.
func (x *Indexes) find(coll UUID, id, name string) (*index, error) {
	for _, i := range x.byColl[coll] {
		if i.dropped.IsZero() && (name != "" && i.name == name || id != "" && i.id.Hex() == id) {
			return i, nil
		}
	}
	return nil, srverr.New(srverr.IndexNotFound, "Search index '%s' could not be found.", name+id)
}

// CheckDefinition checks what every definition of a type has.
func CheckDefinition(kind string, definition bson.Raw) error {
	want := map[string]string{"search": "mappings", "vectorSearch": "fields"}[kind]
	switch {
	case want == "":
		return srverr.New(srverr.BadValue, "\"userCommand.indexes[0].type\" must be one of [search, vectorSearch]")
	case definition.Lookup(want).Type == 0:
		return srverr.New(srverr.UnknownError, "Attribute %s missing.", want)
	}
	return nil
}

// open prepares what answers the queries of a definition.
func (x *Indexes) open(kind string, spec bson.Raw) (Answer, error) {
	if x.Engine == nil {
		return nil, nil
	}
	return x.Engine.Open(kind, spec)
}

// Create creates the indexes that a collection does not have yet: all or none.
func (x *Indexes) Create(coll UUID, specs []Spec, now time.Time) ([]Created, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range specs {
		if old, _ := x.find(coll, "", s.Name); old != nil &&
			(old.kind != s.Kind || !sameDocument(old.latest.spec, s.Definition)) {
			return nil, srverr.New(srverr.IndexAlreadyExists,
				"Index %s already exists with a different definition. Drop it first if needed.", s.Name)
		}
	}
	answers := make([]Answer, len(specs))
	for n, s := range specs {
		spec := bsondoc.Copy(s.Definition)
		var err error
		if answers[n], err = x.open(s.Kind, spec); err != nil {
			return nil, err
		}
		specs[n].Definition = spec
	}
	var created []Created
	for n, s := range specs {
		i, _ := x.find(coll, "", s.Name)
		if i == nil {
			i = &index{id: bson.NewObjectID(), name: s.Name, kind: s.Kind,
				latest: definition{spec: s.Definition, created: now, answer: answers[n]}}
			if x.byColl == nil {
				x.byColl = map[UUID][]*index{}
			}
			x.byColl[coll] = append(x.byColl[coll], i)
		}
		created = append(created, Created{i.id.Hex(), i.name})
	}
	return created, nil
}

func sameDocument(a, b bson.Raw) bool {
	return query.Equal(bsondoc.DocumentValue(a), bsondoc.DocumentValue(b), nil)
}

// Update gives an index, which its id or its name tells, another definition.
func (x *Indexes) Update(coll UUID, id, name string, spec bson.Raw, now time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	i, err := x.find(coll, id, name)
	if err != nil {
		return err
	}
	if err := CheckDefinition(i.kind, spec); err != nil {
		return err
	}
	spec = bsondoc.Copy(spec)
	answer, err := x.open(i.kind, spec)
	if err != nil {
		return err
	}
	if x.state(&i.latest, now) == "READY" {
		served := i.latest
		i.served = &served
	}
	i.latest = definition{spec, i.latest.version + 1, now, answer}
	return nil
}

// syncStates are what the search service calls the states of an index that cannot be asked yet.
var syncStates = map[string]string{"PENDING": "NOT_STARTED", "BUILDING": "INITIAL_SYNC"}

// Answer returns what answers the queries of an index: while another definition is built, that of
// the one before. Without such an index there is nil.
func (x *Indexes) Answer(coll UUID, name string, now time.Time) (Answer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i, err := x.find(coll, "", name)
	if err != nil {
		return nil, nil
	}
	switch state := x.state(&i.latest, now); {
	case state == "READY":
		return i.latest.answer, nil
	case i.served != nil:
		return i.served.answer, nil
	default:
		return nil, srverr.New(srverr.UnknownError, "cannot query search index %s while in state %s", name,
			syncStates[state])
	}
}

// Drop drops an index, which its id or its name tells.
func (x *Indexes) Drop(coll UUID, id, name string, now time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	i, err := x.find(coll, id, name)
	if err != nil {
		return err
	}
	i.dropped = now
	return nil
}

// List describes the indexes of a collection, or the one that the specification names.
func (x *Indexes) List(coll UUID, host string, spec bson.Raw, now time.Time) []bson.Raw {
	id, _ := spec.Lookup("id").StringValue()
	name, _ := spec.Lookup("name").StringValue()
	x.mu.Lock()
	defer x.mu.Unlock()
	left := slices.DeleteFunc(x.byColl[coll], func(i *index) bool { return x.gone(i, now) })
	if len(left) == 0 {
		delete(x.byColl, coll)
	} else {
		x.byColl[coll] = left
	}
	var list []bson.Raw
	for _, i := range left {
		if (name == "" || i.name == name) && (id == "" || i.id.Hex() == id) {
			list = append(list, x.describe(i, host, now))
		}
	}
	return list
}

// describe returns an index as $listSearchIndexes shows it.
func (x *Indexes) describe(i *index, host string, now time.Time) bson.Raw {
	status := x.state(&i.latest, now)
	main, staged := &i.latest, (*definition)(nil)
	if status == "READY" {
		i.served = nil
	} else if i.served != nil {
		main, staged = i.served, &i.latest
	}
	queryable := status == "READY" || i.served != nil
	if !i.dropped.IsZero() {
		status, queryable = "DELETING", false
	}
	version := func(b *bsondoc.Builder, key string, d *definition) {
		b.Doc(key, bsondoc.Build(func(b *bsondoc.Builder) {
			b.Value("version", bson.TypeInt64, bson.AppendInt64Value(nil, d.version))
			b.Value("createdAt", bson.TypeDateTime, bson.AppendInt64Value(nil, d.created.UnixMilli()))
		}))
	}
	part := func(d *definition) bson.Raw {
		return bsondoc.Build(func(b *bsondoc.Builder) {
			state := x.state(d, now)
			b.Str("status", state)
			b.Flag("queryable", state == "READY")
			version(b, "definitionVersion", d)
			b.Doc("definition", d.spec)
		})
	}
	return bsondoc.Build(func(b *bsondoc.Builder) {
		b.Str("id", i.id.Hex())
		b.Str("name", i.name)
		b.Str("type", i.kind)
		b.Str("status", status)
		b.Flag("queryable", queryable)
		version(b, "latestDefinitionVersion", &i.latest)
		b.Doc("latestDefinition", i.latest.spec)
		detail := bsondoc.Build(func(b *bsondoc.Builder) {
			b.Str("hostname", host)
			b.Str("status", status)
			b.Flag("queryable", queryable)
			b.Doc("mainIndex", part(main))
			if staged != nil {
				b.Doc("stagedIndex", part(staged))
			}
		})
		b.Value("statusDetail", bson.TypeArray, bsondoc.ArrayValue(bsondoc.DocumentValue(detail)).Value)
	})
}
