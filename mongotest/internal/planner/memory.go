package planner

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// Memory is what a node remembers for planning: the index filters of its collections, and which
// plans did best for which queries. Safe for concurrent use; the zero value has nothing.
type Memory struct {
	Filters IndexFilters
	// Parameter returns a server parameter; nil: all have their defaults.
	Parameter func(name string) (bson.RawValue, bool)

	mu    sync.Mutex
	plans map[[16]byte]*planCache // by the UUID of the collection
}

// maxCached is how many plans are kept of a collection, as in
// internalQueryCacheMaxEntriesPerCollection.
const maxCached = 5000

// planCache has the plans of a collection.
type planCache struct {
	indexes string // that there were: with other ones the plans are forgotten
	entries []*Cached
}

// Cached is an entry of the plan cache. A plan that did well is used once a second trial came to a
// plan that is not worse: until then the entry is not active.
type Cached struct {
	Key        string // shape of the query, and which indexes may be used
	Hash       string // of the shape
	KeyHash    string
	Active     bool
	Works      int64
	Created    time.Time
	Query      bson.Raw
	Sort       bson.Raw
	Projection bson.Raw
	Collation  bson.Raw
	Filtered   bool // an index filter was in force
	Trial      *Trial

	signature string
}

// number is a parameter, or else what it is by default.
func (m *Memory) number(name string, usual float64) float64 {
	if m != nil && m.Parameter != nil {
		if v, ok := m.Parameter(name); ok && v.IsNumber() {
			return query.Float(v)
		}
	}
	return usual
}

// indexesOf tells the indexes of a collection apart from others.
func indexesOf(c *store.Coll) string {
	s := ""
	for i := range c.Indexes() {
		ix := &c.Indexes()[i]
		s += fmt.Sprintf("%s %p %t;", ix.Name, ix.IndexInfo, ix.Multikey)
	}
	return s
}

func (m *Memory) of(c *store.Coll) *planCache {
	if m.plans == nil {
		m.plans = map[[16]byte]*planCache{}
	}
	p := m.plans[c.UUID]
	if now := indexesOf(c); p == nil || p.indexes != now {
		p = &planCache{indexes: now}
		m.plans[c.UUID] = p
	}
	return p
}

func (m *Memory) cached(c *store.Coll, key string) *Cached {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(c)
	for _, e := range p.entries {
		if e.Key == key {
			return e
		}
	}
	return nil
}

// learn notes how a trial ended.
func (m *Memory) learn(a *Access, key string, t *Trial, signature string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(a.Coll)
	best := t.Plans[t.Best[0]]
	if best.Advanced == 0 && !best.EOF {
		return // it says nothing
	}
	e := &Cached{Key: key, Hash: a.QueryHash(), KeyHash: hash(key), Works: best.Works, Created: time.Now(), Trial: t,
		signature: signature,
		Sort:      a.Wants.SortSpec, Projection: a.Wants.Projected, Filtered: a.filter != nil}
	if a.Filter != nil {
		e.Query = a.Filter.Source()
	}
	if len(a.Wants.Collated) > 5 && a.Collation != nil {
		e.Collation = a.Collation.Spec()
	}
	for i, old := range p.entries {
		if old.Key != key {
			continue
		}
		switch {
		case old.Active:
			return
		case best.Works <= old.Works:
			e.Active = true
			p.entries[i] = e
		default: // it takes longer than it did: the next one may take as long
			old.Works = max(best.Works, 2*old.Works)
			e.Works = old.Works
			p.entries[i] = e
		}
		return
	}
	if len(p.entries) >= maxCached {
		p.entries = slices.Delete(p.entries, 0, 1)
	}
	p.entries = append(p.entries, e)
}

// deactivate notes that a plan took far more steps than it had.
func (m *Memory) deactivate(e *Cached) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Active = false
}

// Cached returns the plans of a collection, in the order in which they came.
func (m *Memory) Cached(c *store.Coll) []Cached {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Cached
	for _, e := range m.of(c).entries {
		out = append(out, *e)
	}
	return out
}

// Forget forgets the plans of a collection: those for the shape of a query, or with nil all.
func (m *Memory) Forget(c *store.Coll, a *Access) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(c)
	if a == nil {
		p.entries = nil
		return
	}
	key := a.cacheKey()
	p.entries = slices.DeleteFunc(p.entries, func(e *Cached) bool { return e.Key == key })
}

// filterFor returns the index filter for a query, nil if there is none.
func (m *Memory) filterFor(a *Access) *IndexFilter {
	list := m.Filters.List(a.Coll)
	if len(list) == 0 {
		return nil
	}
	shape := a.Shape()
	for i := range list {
		if list[i].Shape == shape {
			return &list[i]
		}
	}
	return nil
}

// allows reports whether the filter has an index, by its name or its pattern.
func (f *IndexFilter) allows(ix *store.Index) bool {
	indexes := f.Entry.Lookup("indexes")
	for v := range bson.Raw(indexes.Value).Values() {
		if s, ok := v.StringValue(); ok && s == ix.Name {
			return true
		}
		if doc, ok := v.Document(); ok && index.SamePattern(doc, ix.Pattern) {
			return true
		}
	}
	return false
}

// Shape returns what queries have in common that differ in their values only.
func (a *Access) Shape() string {
	s := "an"
	if a.Filter != nil {
		s = a.Filter.Shape()
	}
	if len(a.Wants.SortSpec) > 5 {
		s += "~" + query.SortShape(a.Wants.SortSpec)
	}
	if len(a.Wants.Projected) > 5 {
		s += "|" + query.ProjectionShape(a.Wants.Projected)
	}
	if len(a.Wants.Collated) > 5 && a.Collation != nil { // that of the collection is no part of it
		s += "#" + a.Collation.Spec().String()
	}
	if a.Wants.Engine != "" {
		s += "+" + a.Wants.Engine
	}
	return s
}

// QueryHash is a short form of the query's shape.
func (a *Access) QueryHash() string { return hash(a.Shape()) }

// PlanCacheKey is a short form of the shape and of what decides which indexes may be used.
func (a *Access) PlanCacheKey() string { return hash(a.cacheKey()) }

// cacheKey is the shape with what decides for each index whether the query may use it.
func (a *Access) cacheKey() string {
	s := a.Shape() + "@"
	marks := ""
	if indexes, ok := a.Settings.Allowed(a.Coll.NS); ok {
		marks = bsontext.Value(indexes)
	}
	for i := range a.Coll.Indexes() {
		ix := &a.Coll.Indexes()[i]
		if ix.Hidden {
			continue
		}
		if ix.Partial != nil {
			marks += mark(a.covers(ix))
		}
		if a.Filter == nil {
			continue
		}
		var preds []predicate
		list, ok := a.Filter.Condition().All()
		if !ok {
			list = []query.Condition{a.Filter.Condition()}
		}
		preds = a.predicates(preds, list)
		for _, p := range preds {
			for j, f := range ix.KeyFields {
				wild := ix.Wild != nil && j == ix.WildAt
				if !wild && f.Path != p.path || wild && !ix.Wild.Has(p.path) {
					continue
				}
				u := usable{ix: ix, fields: ix.KeyFields, same: a.Collation.Same(ix.Collation)}
				field := query.Field{SameCollation: u.same, Sparse: ix.Sparse, Wildcard: wild}
				field.Cells = ix.Cells(j)
				_, _, ok := p.cond.Bounds(field)
				marks += mark(ok)
			}
		}
	}
	if marks == "" {
		return a.Shape()
	}
	return s + marks
}

func mark(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
