package pipeline

// A field that a stage removes and a later one sets again is where it was before: the server's
// documents keep its place.

import (
	"slices"

	"allium/bson"
)

// hole is the place of a removed field in the document at hand.
type hole struct {
	name string
	at   int // the number of fields before it; -1 if the document has no such field
}

// find notes where the hole is in what became of a document.
func (h *hole) find(doc, out bson.Raw) {
	at := 0
	h.at = -1
	if out.Lookup(h.name).Type != 0 {
		return
	}
	for key := range doc.All() {
		if key == h.name {
			h.at = at
			return
		}
		if out.Lookup(key).Type != 0 {
			at++
		}
	}
}

// fillHoles moves fields that were set again, and are therefore last, to their holes.
func fillHoles(doc bson.Raw, holes []*hole) bson.Raw {
	for _, h := range holes {
		if h.at < 0 || doc.Lookup(h.name).Type == 0 {
			continue
		}
		v := doc.Lookup(h.name)
		start, dst := bson.BeginDocument(make([]byte, 0, len(doc)))
		n := 0
		for key, item := range doc.All() {
			if n == h.at {
				dst = bson.AppendRawValue(dst, h.name, v)
			}
			if key != h.name {
				dst = bson.AppendRawValue(dst, key, item)
				n++
			}
		}
		if h.at < n {
			doc = bson.EndDocument(dst, start)
		}
	}
	return doc
}

// linkHoles connects the stages that remove fields with those that set them again. Between them
// there may be stages only that hand on a document before they take the next one.
func (pl *Pipeline) linkHoles() {
	for i := range pl.stages {
		pr, ok := pl.stages[i].stage.(*projection)
		if !ok || pr.kind == inclusion {
			continue
		}
		removed := make([]string, 0, len(pr.root.kept))
		for name := range pr.root.kept {
			removed = append(removed, name)
		}
		for name := range pr.root.exprs { // may be $$REMOVE
			removed = append(removed, name)
		}
		slices.Sort(removed)
	later:
		for _, st := range pl.stages[i+1:] {
			var sets []string
			var filled *[]*hole
			switch s := st.stage.(type) {
			case *matchStage, *limitStage, *skipStage:
				continue
			case *projection:
				if s.kind == inclusion {
					break later
				}
				if s.kind == addition {
					sets, filled = s.root.order, &s.filled
				}
			case *lookupStage:
				sets, filled = s.as[:1], &s.filled
			default:
				break later
			}
			for _, name := range sets {
				if at := slices.Index(removed, name); at >= 0 {
					removed = slices.Delete(removed, at, at+1)
					h := &hole{name: name}
					pr.holes, *filled = append(pr.holes, h), append(*filled, h)
				}
			}
		}
	}
}
