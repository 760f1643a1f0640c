// Package scope keeps the commands of a collection within a part of its documents: it joins a
// filter to their filters and pipelines, and refuses what would read or write other documents. It
// does no I/O, and knows commands before they are encoded.
//
// Apply is the only way in for commands: what it does not know it refuses, so that a new operation
// cannot be forgotten.
package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/command"
	"allium/mongoerr"
)

// Options describe a scope as the program does.
type Options struct {
	Name               string
	Filter             any
	OnInsert, OnUpdate func(ctx context.Context) bson.D
	Shared             []string
	BSON               *bson.Options
}

// Scope is one scope.
type Scope struct {
	name               string
	conditions         []condition
	onInsert, onUpdate func(ctx context.Context) bson.D
	shared             []string
	// everywhere says that it is a database's, so that it holds for all of its collections.
	everywhere bool
}

// New returns the scope that options describe.
func New(o Options) (*Scope, error) {
	s := &Scope{name: o.Name, onInsert: o.OnInsert, onUpdate: o.OnUpdate, shared: slices.Clone(o.Shared)}
	if o.Filter == nil {
		return s, nil
	}
	filter, err := command.EncodeFilter(o.BSON, "Filter", o.Filter)
	if err == nil {
		s.conditions, err = parse(filter)
	}
	if err != nil {
		return nil, fmt.Errorf("scope: %w", err)
	}
	return s, nil
}

// Set is the scopes of a collection or a database, all of which hold. A nil Set has none. It is not
// changed once it is made.
type Set struct {
	db         string
	list       []*Scope
	conditions []condition // of all
}

// With returns a set with one scope more, that of a database or of a collection.
func (s *Set) With(db string, more *Scope, everywhere bool) *Set {
	with := *more
	with.everywhere = everywhere
	var list []*Scope
	if s != nil {
		list = s.list
	}
	return newSet(db, append(slices.Clone(list), &with))
}

// Without returns a set without the scopes of a name.
func (s *Set) Without(name string) (*Set, error) {
	var left []*Scope
	if s != nil {
		left = slices.DeleteFunc(slices.Clone(s.list), func(one *Scope) bool { return one.name == name })
	}
	switch {
	case name == "":
		return s, errors.New("scope: the name is empty: a scope without a name cannot be lifted")
	case s == nil || len(left) == len(s.list):
		return s, fmt.Errorf("scope: there is none with the name %q", name)
	case len(left) == 0:
		return nil, nil
	}
	return newSet(s.db, left), nil
}

func newSet(db string, list []*Scope) *Set {
	s := &Set{db: db, list: list}
	for _, one := range list {
		for _, c := range one.conditions {
			if !slices.ContainsFunc(s.conditions, c.equal) { // else an upsert would set a field twice
				s.conditions = append(s.conditions, c)
			}
		}
	}
	return s
}

// refused makes the error of something that a scope does not allow.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", mongoerr.ErrScope, fmt.Errorf(format, args...))
}

const wayOut = "use the collection without the scope"

// Run is the scopes at work on one operation: what the program's functions set is the same in all
// of its documents and attempts.
type Run struct {
	*Set
	ctx      context.Context
	asked    [2]bool
	onInsert []bson.D
	onUpdate []bson.D
}

// Begin returns a Run for an operation.
func (s *Set) Begin(ctx context.Context) *Run { return &Run{Set: s, ctx: ctx} }

// Apply keeps a command within the scopes, or refuses it. The command is changed; what it has of
// the program's is not.
func (r *Run) Apply(o *bson.Options, cmd command.Command) (err error) {
	raw := func(rawData bool) error {
		if rawData && len(r.conditions) > 0 {
			return refused("option RawData reads and writes what the filter does not know: %s", wayOut)
		}
		return nil
	}
	switch c := cmd.(type) {
	case *command.Find:
		if err = raw(c.RawData); err == nil {
			c.Filter, err = r.join(o, "filter", c.Filter, c.Collation)
		}
	case *command.Count:
		if c.Filter == nil {
			c.Filter = bson.D{}
		}
		if err = raw(c.RawData); err == nil {
			c.Filter, err = r.join(o, "query", c.Filter, c.Collation)
		}
	case *command.Distinct:
		if err = raw(c.RawData); err == nil {
			c.Filter, err = r.join(o, "query", c.Filter, c.Collation)
		}
	case *command.Aggregate:
		if c.Pipeline == nil {
			return nil // a change stream, whose pipeline Watch makes
		}
		if err = raw(c.RawData); err == nil {
			c.Pipeline, err = r.aggregate(c)
		}
	case *command.Insert:
		if err = raw(c.RawData); err == nil {
			c.Docs = &documents{Documents: c.Docs, run: r, bson: o}
		}
	case *command.Update:
		err = raw(c.RawData)
		for i := range c.Statements {
			if err == nil {
				err = r.Update(o, &c.Statements[i])
			}
		}
	case *command.Delete:
		err = raw(c.RawData)
		for i := range c.Statements {
			if err == nil {
				err = r.Delete(o, &c.Statements[i])
			}
		}
	case *command.FindAndModify:
		if err = raw(c.RawData); err != nil {
			break
		}
		if c.Remove {
			c.Filter, err = r.join(o, "query", c.Filter, c.Collation)
			break
		}
		u := command.UpdateStatement{Filter: c.Filter, Update: c.Update, Replacement: c.Replacement, Upsert: c.Upsert,
			Collation: c.Collation}
		err = r.Update(o, &u)
		c.Filter, c.Update = u.Filter, u.Update
	case *command.ListCollections, *command.ListIndexes:
		// They tell of no document.
	default:
		if len(r.conditions) > 0 {
			err = refused("the command %s concerns more than the documents in it: %s", cmd.Name(), wayOut)
		}
	}
	return err
}

// Delete keeps a delete within the scopes.
func (r *Run) Delete(o *bson.Options, s *command.DeleteStatement) (err error) {
	if s.BSON != nil {
		o = s.BSON
	}
	s.Filter, err = r.join(o, "q", s.Filter, s.Collation)
	return err
}

// join returns a filter together with the scopes'.
func (s *Set) join(o *bson.Options, key string, filter any, collation bson.Raw) (any, error) {
	user, err := command.EncodeFilter(o, key, filter)
	if err == nil {
		err = wellFormed(user)
	}
	if err != nil {
		return nil, err
	}
	return joined(s.conditions, user, collation)
}

// joined returns a filter together with conditions.
func joined(conditions []condition, user bson.Raw, collation bson.Raw) (bson.Raw, error) {
	all, err := filters(conditions, "", collation)
	if err != nil {
		return nil, err
	}
	if !user.IsEmpty() || len(all) == 0 {
		all = append(all, user)
	}
	return and(all), nil
}

// and returns the filter of documents that match all filters, of which there is one at least.
func and(filters []bson.Raw) bson.Raw {
	if len(filters) == 1 {
		return filters[0]
	}
	return list("$and", filters)
}

// list returns the document {key: [docs]}.
func list(key string, docs []bson.Raw) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	at, dst := bson.BeginArrayElement(dst, key)
	for i, d := range docs {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), d...)
	}
	return bson.EndDocument(bson.EndDocument(dst, at), start)
}

// wellFormed refuses what could end before its last byte, and so leave the place where it is put.
func wellFormed(doc bson.Raw) error {
	if err := doc.Validate(); err != nil {
		return refused("%w", err)
	}
	return nil
}

// readable returns the conditions for the documents of another collection that a pipeline of coll
// reads.
func (s *Set) readable(stage, coll, other string) ([]condition, error) {
	var out []condition
	for _, one := range s.list {
		switch {
		case other == coll || one.everywhere && !slices.Contains(one.shared, other):
			out = append(out, one.conditions...)
		case len(one.conditions) == 0 || slices.Contains(one.shared, other):
		default:
			return nil, refused(
				"%s reads the collection %q, for which the scope does not hold: name it in Scope.Shared if everybody may read it, or use a scope of the database", stage, other)
		}
	}
	return out, nil
}

// called returns what a function of the program's sets.
func (r *Run) called(which int) []bson.D {
	to := []*[]bson.D{&r.onInsert, &r.onUpdate}[which]
	if !r.asked[which] {
		r.asked[which] = true
		for _, one := range r.list {
			if f := []func(context.Context) bson.D{one.onInsert, one.onUpdate}[which]; f != nil {
				*to = append(*to, f(r.ctx))
			}
		}
	}
	return *to
}

const (
	insert = 0
	update = 1
)

// fieldsOf returns the fields that OnInsert sets.
func (r *Run) fieldsOf(o *bson.Options) ([]element, error) {
	var out []element
	for _, d := range r.called(insert) {
		if len(d) == 0 {
			continue
		}
		raw, err := command.EncodeFilter(o, "OnInsert", d)
		if err == nil {
			err = wellFormed(raw)
		}
		if err != nil {
			return nil, err
		}
		for key, v := range raw.All() {
			if key == "_id" || key == "" || key[0] == '$' || strings.Contains(key, ".") {
				return nil, refused("OnInsert sets %q: want the key of a field at the top other than _id", key)
			}
			out = slices.DeleteFunc(out, func(e element) bool { return e.key == key })
			out = append(out, element{key, v})
		}
	}
	return out, nil
}

// element is an element of a document.
type element struct {
	key   string
	value bson.RawValue
}

// documents are those of an insert, with what the scopes set.
type documents struct {
	command.Documents
	run  *Run
	bson *bson.Options
}

// Append implements command.Documents.
func (d *documents) Append(dst []byte, i int) ([]byte, error) {
	start := len(dst)
	dst, err := d.Documents.Append(dst, i)
	if err != nil {
		return dst, err
	}
	return d.run.Insert(d.bson, dst, start)
}

// Insert sets what the scopes set in the document at the end of dst, and checks that it is within
// them.
func (r *Run) Insert(o *bson.Options, dst []byte, start int) ([]byte, error) {
	if err := wellFormed(bson.Raw(dst[start:])); err != nil {
		return dst, err
	}
	fields, err := r.fieldsOf(o)
	if err != nil {
		return dst, err
	}
	if len(fields) > 0 {
		doc := slices.Clone(bson.Raw(dst[start:]))
		dst = appendSet(dst[:start], doc, fields)
	}
	return dst, r.within(bson.Raw(dst[start:]), "let Scope.OnInsert or the program set it")
}

// appendSet appends a document with other values of some fields.
func appendSet(dst []byte, doc bson.Raw, fields []element) []byte {
	start, dst := bson.BeginDocument(dst)
	done := make([]bool, len(fields))
	for key, v := range doc.All() {
		if i := slices.IndexFunc(fields, func(e element) bool { return e.key == key }); i >= 0 {
			if done[i] {
				continue // the key was there twice
			}
			v, done[i] = fields[i].value, true
		}
		dst = bson.AppendRawValue(dst, key, v)
	}
	for i, e := range fields {
		if !done[i] {
			dst = bson.AppendRawValue(dst, e.key, e.value)
		}
	}
	return bson.EndDocument(dst, start)
}

// within checks that a document is within the scopes.
func (s *Set) within(doc bson.Raw, advice string) error {
	for _, c := range s.conditions {
		if err := c.check(doc, c.parts, advice); err != nil {
			return err
		}
	}
	return nil
}
