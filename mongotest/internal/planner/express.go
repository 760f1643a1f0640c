package planner

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/store"
)

// Since version 8.0 a query for one value that finds at most one document goes past the planner:
// by _id, by a unique index of this field alone, or for one document by any index that begins with
// it. The stage does all of it: it looks the key up and yields the document.

// express is the plan that goes past the planner, nil if the query has to be planned.
func (a *Access) express() *Stage {
	w := &a.Wants
	if !w.Express || w.Count || w.Distinct != "" || w.Keyless || w.Skip > 0 || w.Tailable || w.ReturnKey ||
		a.Filter == nil || a.Sort != nil || a.Natural || a.Hint.Type != 0 || len(a.Min)+len(a.Max) > 0 ||
		a.Settings != nil || a.shardFiltered || a.Coll.Sharded() {
		return nil
	}
	path, value, ok := onlyEquality(a.Filter.Document())
	if !ok || path == "_id" {
		return nil // that of _id is found before
	}
	if a.Memory != nil && a.Memory.filterFor(a) != nil {
		return nil
	}
	var best *Stage
	for _, s := range a.plans(a.Filter.Condition()) {
		for s.Name == "FETCH" && s.Filter == nil {
			s = s.Inputs[0]
		}
		if s.Name != "IXSCAN" || s.Filter != nil || !a.expressIndex(s.Index, path, value) {
			continue
		}
		if best == nil || len(s.Index.Fields) < len(best.Index.Fields) {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	out := *best
	out.Name, out.Filter = "EXPRESS_IXSCAN", a.Filter
	return &out
}

// expressIndex reports whether the keys of an index lead to the only document that is wanted.
func (a *Access) expressIndex(ix *store.Index, path string, value bson.RawValue) bool {
	text := value.Type == bson.TypeString || value.Type == bson.TypeEmbeddedDocument
	return ix.Wild == nil && ix.ByValue() && ix.Partial == nil && !ix.Multikey && ix.Fields[0].Path == path &&
		ix.Fields[0].Special == "" && (!text || a.Collation.Same(ix.Collation)) &&
		(a.Wants.Limit == 1 || ix.Unique && len(ix.Fields) == 1)
}

// onlyEquality returns the field and the value of a filter that asks for nothing but one value
// which no array or missing field stands for.
func onlyEquality(filter bson.Raw) (path string, value bson.RawValue, ok bool) {
	n := 0
	for k, v := range filter.All() {
		n++
		path, value = k, v
	}
	if ops, isDoc := value.Document(); n == 1 && isDoc {
		n = 0
		var op string
		for k, v := range ops.All() {
			n++
			op, value = k, v
		}
		ok = n == 1 && op == "$eq" && !slices.Contains([]bson.Type{bson.TypeNull, bson.TypeUndefined, bson.TypeArray,
			bson.TypeRegex, bson.TypeMinKey, bson.TypeMaxKey}, value.Type)
	}
	return path, value, ok
}

// atOnce reports whether the stage finds one document by itself.
func (s *Stage) atOnce() bool { return s.Name == "IDHACK" || s.isExpress() }

func (s *Stage) isExpress() bool {
	return s.Name == "EXPRESS_IXSCAN" || s.Name == "EXPRESS_CLUSTERED_IXSCAN"
}

// stepExpress yields the document whose key an index has.
func (s *Stage) stepExpress(e *env, r *row) (state, error) {
	if s.Index == nil || s.Index.IsID {
		return s.stepID(e, r)
	}
	if s.opened {
		return isEOF, nil
	}
	s.opened = true
	if s.scan == nil {
		s.open(e)
	}
	for {
		switch s.scan.Step() {
		case store.StepEnd:
			return isEOF, nil
		case store.StepMiss:
			continue
		}
		s.Keys, s.Docs = 1, 1
		*r = row{rid: s.scan.RID(), doc: s.scan.Doc(), scan: s.scan, entry: s.scan.Entry(), index: s}
		return advanced, nil
	}
}

// appendExpress appends what such a stage shows: its index as a text, and few figures.
func (s *Stage) appendExpress(dst []byte, figures bool) []byte {
	dst = bson.AppendString(dst, "stage", s.Name)
	if s.Index != nil {
		dst = bsondoc.Append(dst, "keyPattern", patternText(s.Index.Pattern), "indexName", s.Index.Name)
	}
	if figures {
		dst = bsondoc.Append(dst, "keysExamined", int32(s.Keys), "docsExamined", int32(s.Docs), "nReturned",
			int32(s.Advanced))
	}
	return dst
}
