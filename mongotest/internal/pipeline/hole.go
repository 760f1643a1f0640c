package pipeline

// A field that a stage removes, or computes as missing, and a later one sets again is where it was
// before: the server's documents keep its place.

import (
	"slices"

	"allium/bson"
)

// hole is the place of a field that the document at hand does not have.
type hole struct {
	name string
	// before are the fields in front of it. nil: the document has it, or no place for it.
	before []string
}

// find notes where the hole is in what became of a document. added are the fields that the stage
// puts behind the others, in their order, missing ones included.
func (h *hole) find(doc, out bson.Raw, added []string) {
	h.before = nil
	if out.Lookup(h.name).Type != 0 {
		return
	}
	before := make([]string, 0, 8)
	for key := range doc.All() {
		if key == h.name {
			h.before = before
			return
		}
		before = append(before, key)
	}
	if at := slices.Index(added, h.name); at >= 0 {
		h.before = append(before, added[:at]...)
	}
}

// fillHoles moves fields that were set again, and are therefore last, to their holes.
func fillHoles(doc bson.Raw, holes []*hole) bson.Raw {
	for _, h := range holes {
		v := doc.Lookup(h.name)
		if h.before == nil || v.Type == 0 {
			continue
		}
		start, dst := bson.BeginDocument(make([]byte, 0, len(doc)))
		done := false
		for key, item := range doc.All() {
			if key == h.name {
				continue
			}
			if !done && !slices.Contains(h.before, key) {
				dst = bson.AppendRawValue(dst, h.name, v)
				done = true
			}
			dst = bson.AppendRawValue(dst, key, item)
		}
		if !done {
			dst = bson.AppendRawValue(dst, h.name, v)
		}
		doc = bson.EndDocument(dst, start)
		h.before = nil
	}
	return doc
}

// leaver is a stage that leaves holes.
type leaver interface {
	// leaves returns the fields of which the stage may leave the places.
	leaves() []string
	leave(h *hole)
}

// filler is a stage that may fill holes.
type filler interface {
	fills() []string
	fill(h *hole)
}

func (pr *projection) leaves() []string {
	var list []string
	if pr.kind != inclusion {
		for name := range pr.root.kept {
			list = append(list, name)
		}
	}
	for name := range pr.root.exprs { // may be missing
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (pr *projection) leave(h *hole) { pr.holes = append(pr.holes, h) }

func (pr *projection) fills() []string {
	if pr.kind != addition {
		return nil
	}
	return pr.root.order
}

func (pr *projection) fill(h *hole) { pr.filled = append(pr.filled, h) }

func (l *lookupStage) fills() []string      { return l.as[:1] }
func (l *lookupStage) fill(h *hole)         { l.filled = append(l.filled, h) }
func (g *graphLookupStage) fills() []string { return g.as[:1] }
func (g *graphLookupStage) fill(h *hole)    { g.filled = append(g.filled, h) }

// An $unwind that keeps documents without the array removes an empty one.

func (u *unwindStage) leaves() []string {
	if u.preserveEmpty && len(u.path) == 1 {
		return u.path
	}
	return nil
}

func (u *unwindStage) leave(h *hole) { u.holes = append(u.holes, h) }

func (u *unwindStage) fills() []string {
	if u.index == nil {
		return nil
	}
	return u.index[:1]
}

func (u *unwindStage) fill(h *hole) { u.filled = append(u.filled, h) }

// linkHoles connects the stages that leave holes with those that fill them. Between them there may
// be stages only that hand on documents as they are, or keep them with their holes.
func (pl *Pipeline) linkHoles() {
	for i := range pl.stages {
		from, ok := pl.stages[i].stage.(leaver)
		if !ok {
			continue
		}
		left := from.leaves()
		var kept []*sortStage
		for _, st := range pl.stages[i+1:] {
			if len(left) == 0 || !keepsHoles(st.stage) {
				break
			}
			if s, ok := st.stage.(*sortStage); ok {
				kept = append(kept, s)
			}
			to, ok := st.stage.(filler)
			if !ok {
				continue
			}
			for _, name := range to.fills() {
				at := slices.Index(left, name)
				if at < 0 {
					continue
				}
				left = slices.Delete(left, at, at+1)
				h := &hole{name: name}
				from.leave(h)
				to.fill(h)
				pl.rt.holes = append(pl.rt.holes, h)
				for _, s := range kept {
					s.holes = true
				}
			}
		}
	}
}

// keepsHoles reports whether documents leave a stage with the holes that they had.
func keepsHoles(st stage) bool {
	switch s := st.(type) {
	case *matchStage, *limitStage, *skipStage, *nothingStage, *lookupStage, *graphLookupStage, *unwindStage, *sortStage,
		*sampleStage:
		return true
	case *projection:
		return s.kind != inclusion
	}
	return false
}
