package server

import (
	"allium/bson"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
	"cmp"
	"slices"
	"strings"
)

// Selection says which documents of a collection a command is about.
type Selection struct {
	Q          bson.Raw
	Collation  bson.Raw
	Hint       bson.RawValue
	Sort       bson.Raw
	Let        bson.Raw
	Projection bson.Raw // that messages show
	// Updates is set for the statement of an update: errors then show its collation even if it is
	// that of the collection.
	Updates bool
	// Unsorted is set for statements that look a document up by its _id without reading their
	// order.
	Unsorted bool
	// NoExpr refuses $expr: an upsert could not tell what to insert.
	NoExpr bool
	State  *store.State // that the selection reads; nil: what the request reads
	Counts bool         // the documents are only counted
	// Distinct is the path whose values are wanted, empty for none. What an index tells of them is
	// taken for the document.
	Distinct string
	// Settings are those for queries of the command's shape; nil: there are none.
	Settings *planner.QuerySetting
	Only     []int // the shards to look at; nil: all that may have something
	// Targets are the shards that a statement which writes goes to, if the collection is sharded.
	Targets []int

	// Parse sets what follows.
	Filter        *query.Filter
	Order         *query.Sort
	natural, back bool // sorted by $natural
	Coll          *query.Collation
	context       filterContext
}

// Options returns what the filter is parsed with, after Collate.
func (op *Selection) Options(r *Request, ns string) *query.Options {
	return op.context.set(r, ns, op.Coll, op.Let, r.Meter())
}

// PipelineOptions returns what an update's pipeline is parsed with, after Options. It knows
// $$CLUSTER_TIME everywhere.
func (op *Selection) PipelineOptions(let bson.Raw) *pipeline.Options {
	o := op.context.exprOptions(let)
	o.NoClusterTime = false
	return o
}

// Collate sets the collation: the selection's own, or that of the collection, which may be nil.
func (op *Selection) Collate(r *Request, c *store.Coll) (err error) {
	op.Coll, err = r.CollationOf(op.Collation, c)
	return err
}

// Parse parses the filter and the order. c may be nil.
func (op *Selection) Parse(r *Request, ns string, c *store.Coll) error {
	if err := op.Collate(r, c); err != nil {
		return err
	}
	return op.ParseCollated(r, op.Options(r, ns))
}

// ParseCollated is Parse after Collate.
func (op *Selection) ParseCollated(r *Request, o *query.Options) error {
	q, err := r.RevealFilter(op.State, op.Q)
	if err != nil {
		return err
	}
	o.NoExpr = op.NoExpr
	if op.Filter, err = query.ParseFilter(q, o); err != nil {
		if e := srverr.From(err); op.NoExpr && e.Code == srverr.QueryFeatureNotAllowed {
			return srverr.New(srverr.QueryFeatureNotAllowed,
				"$expr is not allowed in the query predicate for an upsert")
		}
		return err
	}
	if op.natural, op.back, err = query.Natural(op.Sort); err != nil {
		return err
	}
	if err := query.CheckHint(r.Version(), op.Hint); err != nil {
		return err
	}
	if len(op.Sort) > 5 && !op.natural && !(op.Unsorted && byID(op.Q)) {
		if op.Order, err = query.ParseSort(op.Sort, o); err != nil {
			return err
		}
	}
	return nil
}

// byID reports whether a filter is nothing but the value of _id.
func byID(filter bson.Raw) bool {
	n := 0
	for k, v := range filter.All() {
		n++
		if k != "_id" || v.Type == bson.TypeRegex {
			return false
		}
		if doc, ok := v.Document(); ok {
			for name := range doc.All() {
				if strings.HasPrefix(name, "$") {
					return false
				}
			}
		}
	}
	return n == 1
}

// ExplicitCollation is a collation as commands show it that always have one.
func ExplicitCollation(c *query.Collation) bson.Raw {
	if c != nil {
		return c.Spec()
	}
	start, b := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendString(b, "locale", "simple"), start)
}

// Candidates calls f for each document that matches, until it returns false. f may write through
// tx.
func (op *Selection) Candidates(r *Request, c *store.Coll,
	f func(rid string, doc bson.Raw, at int) (more bool, err error)) (err error) {
	defer work.Catch(&err)
	if id, ok := op.Filter.IDEquality(); ok && op.Coll.Same(c.Collation) && op.Hint.Type == 0 && !c.Sharded() &&
		c.HasIDs() {
		r.QuickByID(0)
		if rid, doc, ok := c.ByID(id); ok {
			r.QuickByID(1)
			_, err := f(rid, doc, -1)
			return err
		}
		return nil
	}
	x, err := r.Route(c, c.NS)
	if err != nil {
		return err
	}
	a := &planner.Access{Coll: c, Only: op.Only, Table: x.Table, Reach: x.Reacher(), Filter: op.Filter, Sort: op.Order,
		Natural: op.natural, Back: op.back, Hint: op.Hint, Collation: op.Coll, Memory: &r.Node.Memory,
		Version: r.Version()}
	a.Settings = op.Settings
	a.Wants.SortSpec, a.Wants.Count, a.Wants.Collated = op.Sort, op.Counts, op.Collation
	a.Wants.Distinct = op.Distinct
	a.NoScan = func() bool { return r.NoTableScan(c.NS) }
	a.Text = func() string {
		shown := op.Collation
		if op.Updates {
			shown = ExplicitCollation(op.Coll)
		}
		return planner.Describe(c.NS, op.Filter, op.Sort, op.Projection, shown)
	}
	p, err := a.Plan()
	if err != nil {
		return err
	}
	s := p.Scan(&Running{Request: r}, c.NS)
	r.planned(s)
	if p.Sort == nil && op.Filter.NeedsGeoIndex() && !p.ByDistance() {
		return nearestFirst(s, op.Filter.Near(), f)
	}
	if p.Sort == nil {
		for {
			doc, err := s.Next()
			if err != nil || doc == nil {
				return err
			}
			at, err := s.At()
			if err != nil {
				return err
			}
			if op.Distinct != "" {
				if covered := s.Covered(); covered != nil {
					doc = covered
				}
			}
			if more, err := f(s.RID(), doc, at); err != nil || !more {
				return err
			}
		}
	}
	// Only the first in order is wanted.
	var best []bson.RawValue
	var rid string
	var hit bson.Raw
	at := -1
	for {
		doc, err := s.Next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		key, err := p.Sort.Key(doc, op.Meta(doc))
		if err != nil {
			return err
		}
		if hit == nil || p.Sort.CompareKeys(key, best) < 0 {
			best, rid, hit = key, s.RID(), doc
			if at, err = s.At(); err != nil {
				return err
			}
		}
	}
	if hit == nil {
		return nil
	}
	_, err = f(rid, hit, at)
	return err
}

// nearestFirst calls f for a scan's documents by their distance.
func nearestFirst(s *planner.ScanIter, near *query.Near,
	f func(rid string, doc bson.Raw, at int) (more bool, err error)) error {
	type found struct {
		rid      string
		doc      bson.Raw
		at       int
		distance float64
	}
	var list []found
	for {
		doc, err := s.Next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		distance, _, _ := near.Distance(doc)
		at, err := s.At()
		if err != nil {
			return err
		}
		list = append(list, found{s.RID(), doc, at, distance})
	}
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(a.distance, b.distance) })
	for _, d := range list {
		if more, err := f(d.rid, d.doc, d.at); err != nil || !more {
			return err
		}
	}
	return nil
}

// Meta returns the metadata of a document that sorts and projections ask for.
func (op *Selection) Meta(doc bson.Raw) func(name string) bson.RawValue {
	return func(name string) bson.RawValue {
		if name != "textScore" {
			return bson.RawValue{}
		}
		return bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, op.Filter.TextScore(doc))}
	}
}

// NoTableScan reports whether a query on the namespace needs an index.
func (r *Request) NoTableScan(ns string) bool {
	db, name := namespace.Split(ns)
	if db == "admin" || db == "config" || db == "local" || strings.HasPrefix(name, "system.") {
		return false
	}
	v, _ := r.Node.Parameter("notablescan")
	return v.AsBool()
}
