package catalog

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Views: what a database's system.views says of them, and how they may lie on each other.

// defineView notes a view, new or changed, in system.views, which every database with a view has.
func defineView(tx *store.Tx, ns string, options bson.Raw) error {
	db, _ := namespace.Split(ns)
	views := tx.Coll(namespace.Join(db, "system.views"))
	if views == nil {
		var err error
		if views, err = tx.Create(namespace.Join(db, "system.views"), store.Settings{},
			store.IDIndex(nil, server.IDIndexSpec(nil))); err != nil {
			return err
		}
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "_id", ns)
	for _, k := range []string{"viewOn", "pipeline", "collation"} {
		if v := options.Lookup(k); v.Type != 0 {
			doc = bson.AppendRawValue(doc, k, v)
		}
	}
	doc = bson.EndDocument(doc, at)
	var err error
	if rid, old, ok := views.ByID(bson.Raw(doc).Lookup("_id")); ok {
		_, err = tx.Update(views, rid, old, doc, true, nil)
	} else {
		_, err = tx.Insert(views, doc)
	}
	return err
}

// forgetView takes a view out of system.views.
func forgetView(tx *store.Tx, ns string) error {
	db, _ := namespace.Split(ns)
	views := tx.Coll(namespace.Join(db, "system.views"))
	if views == nil {
		return nil
	}
	rid, old, ok := views.ByID(bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, ns)})
	if !ok {
		return nil
	}
	_, err := tx.Delete(views, rid, old)
	return err
}

// viewGraph checks how a view that is about to be defined lies on others.
type viewGraph struct {
	st   *store.State
	ns   string // the new view
	coll *query.Collation
	// height is how many views lie on it, one upon the other.
	height int
	seen   map[string]int // the length of the longest way by which a view was come to
}

// maxViewPipeline is how many bytes the pipelines of a view and of those that it lies on may have.
const maxViewPipeline = 16_000_000

// checkSize refuses a view whose pipeline is too long together with those below it.
func (g *viewGraph) checkSize(on string, stages bson.Raw) error {
	size := sizeOfStages(stages)
	for range pipeline.MaxViewDepth {
		c := g.st.Coll(on)
		if c == nil || !c.View {
			break
		}
		size += sizeOfStages(c.Raw.Lookup("pipeline").Value)
		name, _ := c.Raw.Lookup("viewOn").StringValue()
		on = namespace.Join(c.DB, name)
	}
	if size > maxViewPipeline {
		return srverr.New(srverr.ViewPipelineMaxSizeExceeded,
			"View pipeline exceeds maximum size; maximum size is %d", maxViewPipeline)
	}
	return nil
}

func sizeOfStages(pipeline bson.Raw) (n int) {
	for stage := range pipeline.Values() {
		n += len(stage.Value)
	}
	return n
}

// check looks at the view's references: what it is on, then what its pipeline reads.
func (g *viewGraph) check(on string, pipeline bson.Raw) error {
	db, _ := namespace.Split(g.ns)
	if err := g.checkSize(namespace.Join(db, on), pipeline); err != nil {
		return err
	}
	// Views may be older than what they are on.
	readers := map[string][]*store.Coll{} // the views that read each namespace
	g.st.Colls(db, func(c *store.Coll) bool {
		if c.View && c.NS != g.ns {
			for _, ref := range viewReferences(c) {
				readers[ref] = append(readers[ref], c)
			}
		}
		return true
	})
	if g.height = height(readers, g.ns, map[string]int{}); g.height > 0 {
		for _, c := range readers[g.ns] {
			if !c.Collation.Same(g.coll) {
				return srverr.New(srverr.OptionNotSupportedOnView, "View %s has conflicting collation with view %s",
					g.ns, c.NS)
			}
		}
	}
	g.seen = map[string]int{}
	return g.visit(references(db, on, pipeline), []string{g.ns, g.ns})
}

// height returns how many views lie on a namespace at most, one upon the other. known are the
// heights that have been found: views may be on each other in many ways.
func height(readers map[string][]*store.Coll, ns string, known map[string]int) (n int) {
	if n, ok := known[ns]; ok {
		return n
	}
	known[ns] = 0 // what comes back here is a cycle, which is found elsewhere
	for _, c := range readers[ns] {
		n = max(n, 1+height(readers, c.NS, known))
	}
	known[ns] = n
	return n
}

// viewReferences returns the namespaces that a view reads.
func viewReferences(c *store.Coll) []string {
	db, _ := namespace.Split(c.NS)
	on, _ := c.Raw.Lookup("viewOn").StringValue()
	return references(db, on, c.Raw.Lookup("pipeline").Value)
}

func (g *viewGraph) visit(refs, path []string) error {
	if len(path)+g.height > pipeline.MaxViewDepth+1 {
		return srverr.New(srverr.ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d",
			pipeline.MaxViewDepth)
	}
	for _, ref := range refs {
		if c := g.st.Coll(ref); c != nil && c.View && !c.Collation.Same(g.coll) {
			return srverr.New(srverr.OptionNotSupportedOnView, "View %s has conflicting collation with view %s", g.ns,
				ref)
		}
	}
	for _, ref := range refs {
		path := append(path[:len(path):len(path)], ref)
		if ref == g.ns {
			return srverr.New(srverr.GraphContainsCycle, "View cycle detected: %s", strings.Join(path, " => "))
		}
		if c := g.st.Coll(ref); c != nil && c.View && len(path) > g.seen[ref] {
			g.seen[ref] = len(path) // a shorter way there finds nothing else
			if err := g.visit(viewReferences(c), path); err != nil {
				return err
			}
		}
	}
	return nil
}

// references returns the namespaces that a view reads, the one that it is on first.
func references(db, on string, stages bson.Raw) []string {
	ns := pipeline.Namespace{DB: db, Coll: on}
	refs := []string{ns.String()}
	_ = pipeline.Walk(ns, pipeline.StagesIn(bson.RawValue{Type: bson.TypeArray, Value: bsondoc.OrEmpty(stages)}),
		func(s pipeline.Stage) error {
			if from, ok := s.Reads(); ok && !slices.Contains(refs, from.String()) {
				refs = append(refs, from.String())
			}
			return nil
		})
	return refs
}
