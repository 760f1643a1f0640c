package scope

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/command"
)

// Update keeps an update or a replacement within the scopes: it finds documents in them alone, and
// leaves none that is not.
func (r *Run) Update(o *bson.Options, s *command.UpdateStatement) error {
	if s.BSON != nil {
		o = s.BSON
	}
	user, err := command.EncodeFilter(o, "q", s.Filter)
	if err != nil {
		return err
	}
	v, err := command.EncodeUpdate(o, "u", s.Update, s.Replacement)
	if err != nil {
		return err
	}
	whole := bson.AppendDocument([]byte{0, 0, 0, 0}, "q", user)
	if err := wellFormed(bson.EndDocument(bson.AppendRawValue(whole, "u", v), 0)); err != nil {
		return err
	}
	given := map[string]bool{}
	if s.Upsert {
		if user, err = r.upsertFilter(user, given); err != nil {
			return err
		}
	}
	switch doc, _ := v.Document(); {
	case s.Replacement:
		v.Value, err = r.replacement(o, doc, s.Upsert)
	case v.Type == bson.TypeArray:
		v, err = r.stages(o, bson.Raw(v.Value), s.Upsert, given)
	default:
		v.Value, err = r.operators(o, doc, s.Upsert, given)
	}
	if err == nil && s.Upsert && !s.Replacement {
		err = r.upserts(given)
	}
	if err != nil {
		return err
	}
	s.Filter, err = joined(r.conditions, user, s.Collation)
	s.Update = v
	if s.Replacement {
		s.Update = bson.Raw(v.Value)
	}
	return err
}

// upsertFilter returns the filter of an upsert without what the scopes say anyway: the server makes
// the new document of the values in the filter, and wants each of them once. What else the filter
// says of the scopes' fields could be in the new document. given receives the fields that the
// filter gives a good value.
func (s *Set) upsertFilter(filter bson.Raw, given map[string]bool) (bson.Raw, error) {
	start, dst := bson.BeginDocument(nil)
	for key, v := range filter.All() {
		switch {
		case key == "$and":
			arr, _ := v.Array()
			var docs []bson.Raw
			for e := range arr.Values() {
				doc, ok := e.Document()
				if !ok || e.Type != bson.TypeEmbeddedDocument {
					return nil, refused("$and has a BSON %s", e.Type)
				}
				left, err := s.upsertFilter(doc, given)
				if err != nil {
					return nil, err
				}
				if !left.IsEmpty() || doc.IsEmpty() {
					docs = append(docs, left)
				}
			}
			if len(docs) > 0 || arr.IsEmpty() {
				at, d := bson.BeginArrayElement(dst, key)
				for i, doc := range docs {
					d = append(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i), doc...)
				}
				dst = bson.EndDocument(d, at)
			}
			continue
		case key == "$or" || key == "$nor":
			if err := s.unnamed(key, v); err != nil {
				return nil, err
			}
		case strings.HasPrefix(key, "$"):
		default:
			drop, err := s.upsertField(key, v, given)
			if err != nil {
				return nil, err
			}
			if drop {
				continue
			}
		}
		dst = bson.AppendRawValue(dst, key, v)
	}
	return bson.EndDocument(dst, start), nil
}

// upsertField looks at what the filter of an upsert says of a field. drop is true if the scopes say
// the same.
func (s *Set) upsertField(key string, v bson.RawValue, given map[string]bool) (drop bool, err error) {
	if doc, ok := v.Document(); ok && v.Type == bson.TypeEmbeddedDocument && operators(doc) {
		if eq := doc.Lookup("$eq"); !eq.IsZero() && keys(doc) == 1 {
			v = eq
		}
	}
	for _, c := range s.conditions {
		switch {
		case !c.overlaps(key):
		case c.path != key || v.Type == bson.TypeEmbeddedDocument && c.op != "$eq" || v.Type == bson.TypeRegex ||
			!c.holds(v):
			return false, s.named(key)
		case c.op == "$eq":
			drop = true
		default:
			given[c.path] = true
		}
	}
	return drop, nil
}

func keys(doc bson.Raw) (n int) {
	for range doc.All() {
		n++
	}
	return n
}

// named refuses a field in the filter of an upsert.
func (s *Set) named(key string) error {
	return refused("the filter of an upsert has a condition on %q, which a new document could get from there: leave it out, the scope has its own", key)
}

// unnamed refuses clauses that have a condition on a field of the scopes.
func (s *Set) unnamed(key string, v bson.RawValue) error {
	arr, _ := v.Array()
	for e := range arr.Values() {
		doc, _ := e.Document()
		for key, v := range doc.All() {
			if key == "$and" || key == "$or" || key == "$nor" {
				if err := s.unnamed(key, v); err != nil {
					return err
				}
			}
			if strings.HasPrefix(key, "$") {
				continue
			}
			if slices.ContainsFunc(s.conditions, func(c condition) bool { return c.overlaps(key) }) {
				return s.named(key)
			}
		}
	}
	return nil
}

// upserts checks that the document which an upsert would insert is within the scopes: the server
// takes the values of $eq from the filter, others are given or may be missing.
func (s *Set) upserts(given map[string]bool) error {
	for _, c := range s.conditions {
		if c.op != "$eq" && !given[c.path] && !c.holds(bson.RawValue{}) {
			return refused("an upsert would insert a document without %q: let $setOnInsert set it, or %s", c.path,
				wayOut)
		}
	}
	return nil
}

// replacement returns the document that replaces another, with what the scopes set: the fields of
// OnUpdate's $set, and those of OnInsert that their filters are about, as the old ones have gone.
func (r *Run) replacement(o *bson.Options, doc bson.Raw, upsert bool) (bson.Raw, error) {
	var fields []element
	onInsert, err := r.fieldsOf(o)
	if err != nil {
		return nil, err
	}
	for _, e := range onInsert {
		if slices.ContainsFunc(r.conditions, func(c condition) bool { return c.parts[0] == e.key }) {
			fields = append(fields, e)
		}
	}
	changes, err := r.changes(o)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.op != "$set" || strings.Contains(c.path, ".") {
			return nil, refused("a replacement cannot have the %s of %q of Scope.OnUpdate: use an update", c.op, c.path)
		}
		fields = slices.DeleteFunc(fields, func(e element) bool { return e.key == c.path })
		fields = append(fields, element{c.path, c.value})
	}
	if len(fields) > 0 {
		doc = appendSet(nil, doc, fields)
	}
	hasID := !doc.Lookup("_id").IsZero()
	for _, c := range r.conditions {
		if c.parts[0] == "_id" && !hasID {
			if upsert {
				return nil, refused("the replacement of an upsert has no _id, which the scope's filter is about")
			}
			continue // it keeps the one that it has
		}
		if err := c.check(doc, c.parts, "set it in the replacement"); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// change is a field of an update and what becomes of it.
type change struct {
	op, path string
	value    bson.RawValue
}

// changes returns those of OnUpdate.
func (r *Run) changes(o *bson.Options) ([]change, error) {
	var out []change
	for _, d := range r.called(update) {
		if len(d) == 0 {
			continue
		}
		v, err := command.EncodeUpdate(o, "OnUpdate", d, false)
		if err == nil {
			err = wellFormed(v.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("Scope.OnUpdate: %w", err)
		}
		more, err := split(v.Value)
		if err != nil {
			return nil, err
		}
		for _, m := range more {
			out = slices.DeleteFunc(out, func(c change) bool { return c.op == m.op && c.path == m.path })
			out = append(out, m)
		}
	}
	return out, nil
}

// split returns the changes of an update.
func split(update bson.Raw) ([]change, error) {
	var out []change
	for op, v := range update.All() {
		doc, ok := v.Document()
		if !ok || v.Type != bson.TypeEmbeddedDocument {
			return nil, refused("%s has a BSON %s, want a document of fields", op, v.Type)
		}
		for path, operand := range doc.All() {
			out = append(out, change{op, path, operand})
		}
		if doc.IsEmpty() {
			out = append(out, change{op: op})
		}
	}
	return out, nil
}

// operators returns an update by operators together with what the scopes set.
func (r *Run) operators(o *bson.Options, doc bson.Raw, upsert bool, given map[string]bool) (bson.Raw, error) {
	all, err := split(doc)
	if err != nil {
		return nil, err
	}
	own, err := r.changes(o)
	if err != nil {
		return nil, err
	}
	for _, c := range own {
		all = slices.DeleteFunc(all, func(u change) bool {
			return c.op == "$set" && u.path == c.path && (u.op == "$set" || u.op == "$setOnInsert")
		})
		for _, u := range all {
			if u.path != "" && touches(u.path, c.path) {
				return nil, refused("Scope.OnUpdate changes %q: leave it out of the update", c.path)
			}
		}
	}
	all = append(all, own...)
	if upsert {
		fields, err := r.fieldsOf(o)
		if err != nil {
			return nil, err
		}
		for _, e := range fields {
			if !slices.ContainsFunc(all, func(u change) bool { return u.path != "" && touches(u.path, e.key) }) {
				all = append(all, change{"$setOnInsert", e.key, e.value})
			}
		}
	}
	for _, u := range all {
		if err := r.allows(u, given); err != nil {
			return nil, err
		}
	}
	return assembled(all), nil
}

// touches reports whether one of two paths leads to or into what the other leads to.
func touches(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// assembled returns the update that makes changes.
func assembled(all []change) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	for i, c := range all {
		if slices.ContainsFunc(all[:i], func(b change) bool { return b.op == c.op }) {
			continue
		}
		at, d := bson.BeginDocumentElement(dst, c.op)
		for _, b := range all[i:] {
			if b.op == c.op && (b.path != "" || !b.value.IsZero()) {
				d = bson.AppendRawValue(d, b.path, b.value)
			}
		}
		dst = bson.EndDocument(d, at)
	}
	return bson.EndDocument(dst, start)
}

// allows checks one change. given receives the fields that it gives a good value.
func (s *Set) allows(u change, given map[string]bool) error {
	for _, c := range s.conditions {
		if u.op == "$rename" {
			if to, _ := u.value.StringValue(); c.overlaps(to) {
				return moves(u.op, c.path)
			}
		}
		if u.path == "" && u.value.IsZero() || !c.overlaps(u.path) {
			continue
		}
		switch u.op {
		case "$set", "$setOnInsert":
			if !c.set(u.path, u.value) {
				return moves(u.op, c.path)
			}
			given[c.path] = true
		case "$unset":
			if !c.holds(bson.RawValue{}) {
				return moves(u.op, c.path)
			}
		default:
			return moves(u.op, c.path)
		}
	}
	return nil
}

// moves refuses a change of a field.
func moves(op, path string) error {
	return refused("%s of %q could move a document out of it: leave the field alone, or %s", op, path, wayOut)
}

// set reports whether the condition holds for sure once the value at a path is v.
func (c *condition) set(path string, v bson.RawValue) bool {
	n := strings.Count(path, ".") + 1
	if n > len(c.parts) || path != strings.Join(c.parts[:n], ".") {
		return false
	}
	if n == len(c.parts) {
		return c.holds(v)
	}
	doc, ok := v.Document()
	return ok && v.Type == bson.TypeEmbeddedDocument && c.check(doc, c.parts[n:], "") == nil
}
