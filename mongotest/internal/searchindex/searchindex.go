// Package searchindex keeps the search indexes of a deployment: their definitions, and the states
// that they go through while they are built and dropped.
package searchindex

import (
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

	mu     sync.Mutex
	byColl map[UUID][]*index
}

// UUID names a collection.
type UUID = [16]byte

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

// Create creates the indexes that a collection does not have yet: all or none.
func (x *Indexes) Create(coll UUID, specs []Spec, now time.Time) ([]Created, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range specs {
		if old, _ := x.find(coll, "", s.Name); old != nil && (old.kind != s.Kind || !sameDocument(old.latest.spec, s.Definition)) {
			return nil, srverr.New(srverr.IndexAlreadyExists, "Index %s already exists with a different definition. Drop it first if needed.", s.Name)
		}
	}
	var created []Created
	for _, s := range specs {
		i, _ := x.find(coll, "", s.Name)
		if i == nil {
			i = &index{id: bson.NewObjectID(), name: s.Name, kind: s.Kind, latest: definition{spec: bsondoc.Copy(s.Definition), created: now}}
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
	if x.state(&i.latest, now) == "READY" {
		served := i.latest
		i.served = &served
	}
	i.latest = definition{bsondoc.Copy(spec), i.latest.version + 1, now}
	return nil
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
