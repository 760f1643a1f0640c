package planner

import (
	"cmp"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// Searches for what is near a point by a geo index. They go outward ring by ring: the keys of
// one are scanned, the documents fetched, and those within it yielded by their distance. A ring is
// about so wide that it has a few hundred documents.

const nearSphere, nearPlane = "GEO_NEAR_2DSPHERE", "GEO_NEAR_2D"

// A ring with fewer documents than the first, or more than the second number, makes the next one
// twice or half as wide.
const fewNear, manyNear = 300, 600

// nearSearch is how far such a stage has come.
type nearSearch struct {
	rings []nearRing
	width float64
	found []nearRow // not yielded yet, the nearest first once the ring is read
	seen  map[string]struct{}
	read  bool // the last ring
}

// nearRing is a part of a search.
type nearRing struct {
	least, most        float64
	inclusive          bool // most is part of it
	buffered, returned int64
}

type nearRow struct {
	distance float64
	row      row
}

// nearPlan is the plan for a query with $near, nil if there is none.
func (a *Access) nearPlan(hinted *store.Index) *Stage {
	if a.Filter == nil || a.Filter.Near() == nil {
		return nil
	}
	near := a.Filter.Near()
	list, ok := a.Filter.Condition().All()
	if !ok {
		list = []query.Condition{a.Filter.Condition()}
	}
	rest := slices.DeleteFunc(slices.Clone(list), near.IsOf)
	if len(rest) == len(list) {
		return nil
	}
	only := a.onlyIndex(hinted)
	preds := only.predicates(nil, rest)
	for _, u := range only.usables(preds) {
		field := slices.IndexFunc(u.fields, func(f store.IndexField) bool { return f.Path == near.Path() })
		if field < 0 || u.ix.Cells(field) == nil || !near.Uses(u.fields[field].Special) {
			continue
		}
		chosen := make([][]bounded, len(u.fields))
		for i := range u.fields {
			if groups := u.groups(i, u.on(i, preds)); i != field {
				chosen[i] = groups[0]
			}
		}
		plan := a.scanOf(&u, rest, chosen)
		s := plan.scan
		left := plan.rest
		s.Name, s.Near, s.Skip = nearPlane, near, field
		if !u.flat() {
			s.Name = nearSphere
			if s.Filter != nil {
				s.Filter, left = nil, query.Joined(rest)
			}
		}
		return fetch(s, left)
	}
	return nil
}

// ByDistance reports whether the plan yields what is near in the order of the distance.
func (p *Plan) ByDistance() bool {
	return p.access.Sort == nil && (p.Scans(nearSphere) || p.Scans(nearPlane))
}

// cells is how the index of the search divides space.
func (s *Stage) cells() *query.Cells { return s.Index.Cells(s.Skip) }

// ringBounds are the bounds of the index with those of the cells put in.
func (s *Stage) ringBounds(cells []query.Interval) [][]query.Interval {
	bounds := slices.Clone(s.Bounds)
	bounds[s.Skip] = cells
	return bounds
}

// stepNear does one step of a search: it begins a ring, reads a key of it, or yields a document.
func (s *Stage) stepNear(e *env, r *row) (state, error) {
	if s.search == nil {
		if err := s.Near.Outside(s.cells()); err != nil {
			return needTime, err
		}
		s.search = &nearSearch{seen: map[string]struct{}{}, read: true}
		s.search.width = 3 * s.density(e)
	}
	n := s.search
	if !n.read {
		return s.readRing(e, r)
	}
	if k := len(n.rings); k > 0 && len(n.found) > 0 {
		ring := &n.rings[k-1]
		if d := n.found[0].distance; d < ring.most || ring.inclusive {
			*r = n.found[0].row
			n.found = n.found[1:]
			ring.returned++
			return advanced, nil
		}
	}
	if !s.nextRing() {
		return isEOF, nil
	}
	return needTime, nil
}

// nextRing begins the next ring; it reports false at the end.
func (s *Stage) nextRing() bool {
	n := s.search
	least, most := s.Near.Limits(s.cells())
	if k := len(n.rings); k > 0 {
		last := n.rings[k-1]
		if last.inclusive {
			return false
		}
		least = last.most
		switch {
		case last.returned < fewNear:
			n.width *= 2
		case last.returned > manyNear:
			n.width /= 2
		}
	}
	if least > most {
		return false
	}
	ring := nearRing{least: least, most: least + n.width}
	if ring.most >= most {
		ring.most, ring.inclusive = most, true
	}
	n.rings, n.read = append(n.rings, ring), false
	cells := s.Near.Between(ring.least, ring.most, s.cells())
	scan := &Stage{Name: "IXSCAN", Index: s.Index, Bounds: s.ringBounds(cells), Filter: s.Filter}
	s.Inputs = append(s.Inputs, &Stage{Name: "FETCH", Inputs: []*Stage{scan}})
	return true
}

// readRing looks at a key of the ring.
func (s *Stage) readRing(e *env, r *row) (state, error) {
	n := s.search
	st, err := s.Inputs[len(s.Inputs)-1].work(e, r)
	switch {
	case err != nil:
		return needTime, err
	case st == isEOF:
		n.read = true
		slices.SortStableFunc(n.found, func(x, y nearRow) int {
			return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.row.rid, y.row.rid))
		})
	case st == advanced:
		if _, ok := n.seen[r.rid]; ok {
			break
		}
		n.seen[r.rid] = struct{}{}
		doc := r.document()
		if d, _, ok := s.Near.Distance(doc); ok {
			found := *r
			found.doc, found.scan = doc, nil
			n.found = append(n.found, nearRow{d, found})
			n.rings[len(n.rings)-1].buffered++
		}
	}
	return needTime, nil
}

// density is about how far from the point the first documents are: it looks for keys in ever larger
// surroundings.
func (s *Stage) density(e *env) (far float64) {
	ix := e.coll.Index(s.Index.Name)
	if ix == nil {
		ix = s.Index
	}
	s.Near.Steps(s.cells(), func(cells []query.Interval, reach float64) bool {
		far = reach
		b := ix.Bounds(s.ringBounds(cells))
		scan := store.NewBoundsScan(e.coll, ix, false, &b)
		if e.only != nil {
			scan.Only(e.only)
		}
		for {
			switch scan.Step() {
			case store.StepHit:
				return false
			case store.StepEnd:
				return true
			}
		}
	})
	return far
}

// appendNear appends what such a stage shows.
func (s *Stage) appendNear(dst []byte, figures bool) []byte {
	dst = bsondoc.Append(dst, "keyPattern", s.Index.Pattern, "indexName", s.Index.Name, "indexVersion", int32(2))
	if !figures || s.search == nil {
		return dst
	}
	var list [][]byte
	for _, r := range s.search.rings {
		list = append(list, bsondoc.Of("minDistance", r.least, "maxDistance", r.most, "maxInclusive", r.inclusive,
			"nBuffered", int32(r.buffered), "nReturned", int32(r.returned)))
	}
	at, d := bson.BeginArrayElement(dst, "searchIntervals")
	for i, doc := range list {
		d = append(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i), doc...)
	}
	return bson.EndDocument(d, at)
}
