package pipeline

// The optimizer's moves that can be observed: a $match goes before the stages that do not change
// what it looks at, and a $skip, or the $limit of a $sort, before those that make one document of
// each, so that documents that they drop cannot make those stages fail.

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
)

// changes is what a stage does to the paths of documents.
type changes struct {
	all      bool     // it may change everything
	except   bool     // it changes everything but paths
	paths    []string // what it changes, or with except, what it keeps
	renamed  map[string]string
	computed []string // with except: what it makes
}

// changer is a stage that a $match may pass.
type changer interface{ changes() changes }

func (s *sortStage) changes() changes { return changes{} }

func (l *lookupStage) changes() changes { return changes{paths: []string{strings.Join(l.as, ".")}} }

func (g *graphLookupStage) changes() changes {
	return changes{paths: []string{strings.Join(g.as, ".")}}
}

func (u *unwindStage) changes() changes {
	c := changes{paths: []string{strings.Join(u.path, ".")}}
	if u.index != nil {
		c.paths = append(c.paths, strings.Join(u.index, "."))
	}
	return c
}

func (pr *projection) changes() changes {
	c := changes{except: pr.kind == inclusion, renamed: map[string]string{}}
	pr.root.collect("", &c)
	return c
}

// collect adds the fields of a node to the changes.
func (n *node) collect(prefix string, c *changes) {
	for name := range n.kept {
		c.paths = append(c.paths, prefix+name)
	}
	for name, e := range n.exprs {
		path := prefix + name
		if old, ok := expr.RootField(e); ok && prefix == "" {
			c.renamed[path] = old
		}
		if fields, ok := expr.MappedFields(e); ok && prefix == "" {
			for name, old := range fields {
				c.renamed[path+"."+name] = old
			}
		}
		if c.except {
			c.computed = append(c.computed, path)
		} else {
			c.paths = append(c.paths, path)
		}
	}
	for name, child := range n.children {
		child.collect(prefix+name+".", c)
	}
}

// depends tells whether one of two paths lies within the other.
func depends(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// before returns the path that a value has before the stage, ok if it is not changed by it.
func (c *changes) before(path string) (old string, ok bool) {
	for to, from := range c.renamed {
		if path == to || strings.HasPrefix(path, to+".") {
			return from + path[len(to):], true
		}
	}
	if c.except {
		kept := slices.ContainsFunc(c.paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+".") })
		made := slices.ContainsFunc(c.computed, func(p string) bool { return depends(path, p) })
		return path, kept && !made
	}
	return path, !slices.ContainsFunc(c.paths, func(p string) bool { return depends(path, p) })
}

// move moves stages until none can be moved any further.
func (pl *Pipeline) move() {
	if len(pl.stages) == 0 || pl.stages[0].def.name == "$changeStream" {
		return
	}
	for i := 0; i < len(pl.stages); {
		if pl.moveMatch(i) || pl.moveIntoUnion(i) || pl.moveSkip(i) {
			i = max(0, i-1)
			continue
		}
		if pl.mergeMatches(i) {
			continue
		}
		pl.moveIntoRedact(i)
		i++
	}
}

// match returns the $match at an index, nil if it is another stage, or one with $text, which stays.
func (pl *Pipeline) match(i int) *matchStage {
	if i >= len(pl.stages) {
		return nil
	}
	m, _ := pl.stages[i].stage.(*matchStage)
	if m == nil || m.filter.NeedsTextIndex() {
		return nil
	}
	return m
}

// moveMatch moves what it can of the $match after a stage to the stage's front.
func (pl *Pipeline) moveMatch(i int) bool {
	m := pl.match(i + 1)
	st, ok := pl.stages[i].stage.(changer)
	if m == nil || !ok {
		return false
	}
	c := st.changes()
	var first, second []bson.Raw
	for _, clause := range clauses(m.doc) {
		if moved, ok := c.rewrite(clause); ok {
			first = append(first, moved)
		} else {
			second = append(second, clause)
		}
	}
	if len(first) == 0 && len(second) > 0 {
		return false
	}
	front, rest := m.with(first), m.with(second)
	if front == nil || rest == nil {
		return false
	}
	moved := []parsedStage{pl.stages[i+1].with(front), pl.stages[i]}
	if len(second) > 0 {
		moved = append(moved, pl.stages[i+1].with(rest))
	}
	pl.stages = slices.Replace(pl.stages, i, i+2, moved...)
	return true
}

// moveSkip moves a $skip, a $sample, or a $limit that a $sort can use, to the front of a stage that
// makes one document of each.
func (pl *Pipeline) moveSkip(i int) bool {
	if i+1 >= len(pl.stages) || !makesOneOfEach(pl.stages[i].stage) {
		return false
	}
	switch pl.stages[i+1].stage.(type) {
	case *skipStage, *sampleStage:
	case *limitStage:
		if !pl.sortedBefore(i) {
			return false
		}
	default:
		return false
	}
	pl.stages[i], pl.stages[i+1] = pl.stages[i+1], pl.stages[i]
	return true
}

func makesOneOfEach(s stage) bool {
	switch s.(type) {
	case *projection, *replaceStage:
		return true
	}
	return false
}

// sortedBefore reports whether the documents before a stage come out of a $sort, each by itself:
// then the sort needs no more of them than a $limit that follows.
func (pl *Pipeline) sortedBefore(i int) bool {
	for i--; i >= 0; i-- {
		switch pl.stages[i].stage.(type) {
		case *sortStage:
			return true
		case *skipStage, *limitStage:
		default:
			if !makesOneOfEach(pl.stages[i].stage) {
				return false
			}
		}
	}
	return false
}

// mergeMatches makes one of two $match that follow each other.
func (pl *Pipeline) mergeMatches(i int) bool {
	a, b := pl.match(i), pl.match(i+1)
	if a == nil || b == nil {
		return false
	}
	merged := a.with(append(clauses(a.doc), clauses(b.doc)...))
	if merged == nil {
		return false
	}
	pl.stages[i] = pl.stages[i].with(merged)
	pl.stages = slices.Delete(pl.stages, i+1, i+2)
	return true
}

// moveIntoUnion moves a $match or a projection to both sides of a $unionWith.
func (pl *Pipeline) moveIntoUnion(i int) bool {
	u, ok := pl.stages[i].stage.(*unionStage)
	if !ok || i+1 >= len(pl.stages) {
		return false
	}
	next := pl.stages[i+1]
	if _, isProjection := next.stage.(*projection); !isProjection && pl.match(i+1) == nil {
		return false
	}
	copied := next
	if m, isMatch := next.stage.(*matchStage); isMatch {
		again := m.with(clauses(m.doc))
		if again == nil {
			return false
		}
		copied = next.with(again)
	}
	u.sub.stages = append(u.sub.stages, copied)
	pl.stages[i], pl.stages[i+1] = next, pl.stages[i]
	return true
}

// moveIntoRedact puts the conditions of a $match that stay true when parts of a document are
// removed before a $redact, too.
func (pl *Pipeline) moveIntoRedact(i int) {
	if _, ok := pl.stages[i].stage.(*redactStage); !ok || pl.match(i+1) == nil {
		return
	}
	if i > 0 && pl.stages[i-1].index == pl.stages[i+1].index {
		return // done before
	}
	m := pl.match(i + 1)
	var safe []bson.Raw
	for _, clause := range clauses(m.doc) {
		if redactSafe(clause) {
			safe = append(safe, clause)
		}
	}
	if len(safe) == 0 {
		return
	}
	if front := m.with(safe); front != nil {
		pl.stages = slices.Insert(pl.stages, i, pl.stages[i+1].with(front))
	}
}

// with returns the $match with other conditions.
func (st parsedStage) with(m *matchStage) parsedStage {
	st.stage, st.doc = m, bsondoc.Single("$match", bsondoc.DocumentValue(m.doc))
	return st
}

// Moved returns the stages as the optimizer leaves them, each as it would be written.
func (pl *Pipeline) Moved() []bson.Raw {
	var list []bson.Raw
	for i, st := range pl.stages {
		if i > 0 && bytes.Equal(st.doc, pl.stages[i-1].doc) && st.index == pl.stages[i-1].index {
			continue // another part of one that is shown whole
		}
		if u, ok := st.stage.(*unionStage); ok {
			list = append(list, u.written())
			continue
		}
		list = append(list, st.doc)
	}
	return list
}

// written is the stage with what was moved into its pipeline.
func (u *unionStage) written() bson.Raw {
	return single("$unionWith", func(d *bsondoc.Builder) {
		if u.from.Coll != "" {
			d.Str("coll", u.from.Coll)
		}
		var stages []bson.RawValue
		for _, doc := range u.sub.Moved() {
			stages = append(stages, bsondoc.DocumentValue(doc))
		}
		d.B = bson.AppendRawValue(d.B, "pipeline", bsondoc.ArrayValue(stages...))
	})
}

// with returns the stage with other conditions, nil if they cannot be parsed.
func (m *matchStage) with(list []bson.Raw) *matchStage {
	dst := emptyDocument
	switch len(list) {
	case 0:
	case 1:
		dst = list[0]
	default:
		var all []bson.RawValue
		for _, clause := range list {
			all = append(all, bsondoc.DocumentValue(clause))
		}
		dst = bsondoc.Single("$and", bsondoc.ArrayValue(all...))
	}
	out := &matchStage{rt: m.rt, scope: m.scope, doc: dst}
	if out.parse(false) != nil {
		return nil
	}
	return out
}

// clauses splits a filter into conditions that all have to hold, in their order.
func clauses(filter bson.Raw) []bson.Raw {
	var list []bson.Raw
	one := func(key string, v bson.RawValue) {
		start, dst := bson.BeginDocument(nil)
		list = append(list, bson.EndDocument(bson.AppendRawValue(dst, key, v), start))
	}
	for key, v := range filter.All() {
		switch {
		case key == "$and", key == "$or" && len(bsondoc.Items(v)) == 1: // the only branch has to hold
			for e := range bson.Raw(v.Value).Values() {
				list = append(list, clauses(e.Value)...)
			}
		case key == "$nor": // each by itself
			for e := range bson.Raw(v.Value).Values() {
				start, dst := bson.BeginDocument(nil)
				one(key, bson.RawValue{Type: bson.TypeArray,
					Value: bson.EndDocument(append(bson.AppendIndexHeader(dst, e.Type, 0), e.Value...), start)})
			}
		case key == "$comment":
		default:
			one(key, v)
		}
	}
	return list
}

// isMovable tells whether a condition on a field consists of such operators.
func isMovable(v bson.RawValue) bool {
	doc, ok := v.Document()
	if !ok {
		return true
	}
	for op, arg := range doc.All() {
		switch {
		case !strings.HasPrefix(op, "$"), op == "$ref", op == "$id", op == "$db":
			return true // a literal
		case op == "$not":
			if !isMovable(arg) {
				return false
			}
		case !query.Movable(op):
			return false
		}
	}
	return true
}

// rewrite returns a condition as it is to be before the stage, ok if it may be moved there.
func (c *changes) rewrite(clause bson.Raw) (bson.Raw, bool) {
	if c.all {
		return nil, false
	}
	key, v := bsondoc.FirstElement(clause)
	start, dst := bson.BeginDocument(nil)
	switch {
	case key == "$or" || key == "$nor":
		array, next := bson.BeginArrayElement(dst, key)
		i := 0
		for e := range bson.Raw(v.Value).Values() {
			branch, next2 := bson.BeginDocumentElement(next, strconv.Itoa(i))
			all, next3 := bson.BeginArrayElement(next2, "$and")
			for j, part := range clauses(e.Value) {
				moved, ok := c.rewrite(part)
				if !ok {
					return nil, false
				}
				next3 = append(bson.AppendIndexHeader(next3, bson.TypeEmbeddedDocument, j), moved...)
			}
			if len(clauses(e.Value)) == 0 {
				return nil, false
			}
			next = bson.EndDocument(bson.EndDocument(next3, all), branch)
			i++
		}
		return bson.EndDocument(bson.EndDocument(next, array), start), true
	case strings.HasPrefix(key, "$"), !isMovable(v):
		return nil, false
	}
	path, ok := c.before(key)
	if !ok {
		return nil, false
	}
	return bson.EndDocument(bson.AppendRawValue(dst, path, v), start), true
}

// redactSafe tells whether a condition that holds for a part of a document holds for the whole.
func redactSafe(clause bson.Raw) bool {
	key, v := bsondoc.FirstElement(clause)
	if key == "$or" {
		for e := range bson.Raw(v.Value).Values() {
			if list := clauses(e.Value); len(list) == 0 ||
				slices.ContainsFunc(list, func(c bson.Raw) bool { return !redactSafe(c) }) {
				return false
			}
		}
		return true
	}
	if strings.HasPrefix(key, "$") {
		return false
	}
	for part := range strings.SplitSeq(key, ".") {
		if strings.Trim(part, "0123456789") == "" {
			return false // may be an index, which changes
		}
	}
	doc, ok := v.Document()
	if !ok {
		return query.IsPlain(v)
	}
	for op, arg := range doc.All() {
		if !query.HoldsForWhole(op, arg) {
			return false
		}
	}
	return !doc.IsEmpty()
}
