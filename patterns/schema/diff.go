package schema

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"allium"
	"allium/bson"
	"allium/internal/option"
)

// Action is what a change does.
type Action string

// The actions. Apply makes what is to be created and modified, drops and rebuilds only what it is
// told to, and leaves the impossible to people.
const (
	Create     Action = "create"
	Modify     Action = "modify"  // in place
	Rebuild    Action = "rebuild" // drop an index or a view and create it again, with no documents lost
	Drop       Action = "drop"    // what is not declared: a collection, an index, a validator, an expiration
	Impossible Action = "impossible"
)

// Change is one difference between two schemas, and what leads from the one to the other.
type Change struct {
	// Action says what has to be done.
	Action Action
	// Collection and Index say with what. Without an index it is the collection or view itself.
	Collection, Index string
	// Search says that Index is a search index.
	Search bool
	// What says what differs, for people.
	What string
	// Cost says what the change takes, for people. It is empty if that is nothing to speak of, and
	// in what Diff returns, which knows no documents.
	Cost string
	// Documents is how many documents the change has to read or build an index on.
	Documents int64
	// Problem says why the change will fail or has an effect that may not be meant, for people: for
	// example documents that a unique index would not allow. Empty: nothing is known.
	Problem string
	// Sample is a command of the shell that shows the documents which Problem is about.
	Sample string

	apply step        // what Apply does; nil for the impossible
	model *definition // what Plan looks at
}

// definition is what a change leads to.
type definition struct {
	index     *allium.IndexModel // that is created or rebuilt
	collation *allium.Collation  // of the index
	validator any                // of a collection
	level     allium.ValidationLevel
	expires   string // the field by which documents expire
	unique    bool   // an index becomes unique
}

// Name returns the collection's name, or "collection.index".
func (c Change) Name() string {
	if c.Index != "" {
		return c.Collection + "." + c.Index
	}
	return c.Collection
}

// Told reports whether Apply has to be told to make the change.
func (c Change) Told() bool { return c.Action == Drop || c.Action == Rebuild }

// String returns the change on one line.
func (c Change) String() string {
	what := "collection "
	switch {
	case c.Search:
		what = "search index "
	case c.Index != "":
		what = "index "
	}
	s := string(c.Action) + " " + what + c.Name() + ": " + c.What
	for _, more := range []string{c.Cost, c.Problem, c.Sample} {
		if more != "" {
			s += "; " + more
		}
	}
	return s
}

// Changes are what leads from one schema to another, in the order in which it is made.
type Changes []Change

// String returns a table for people, "" if there is no change.
func (cs Changes) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range cs {
		kind := ""
		if c.Search {
			kind = " (search)"
		}
		fmt.Fprintf(w, "%s\t%s%s\t%s\n", c.Action, c.Name(), kind, c.What)
		for _, more := range []struct{ label, text string }{{"cost", c.Cost}, {"!", c.Problem}, {">", c.Sample}} {
			if more.text != "" {
				fmt.Fprintf(w, "\t\t%s %s\n", more.label, more.text)
			}
		}
	}
	w.Flush()
	return b.String()
}

// DiffOptions are the options of Diff.
type DiffOptions struct {
	// Whole says that the schemas are all that is in the databases: collections that only the first
	// one has are differences.
	Whole bool
	// Server is the version of the server that is to be changed, such as "4.4": what it can modify
	// in place depends on that. Empty: the newest.
	Server string
}

// Diff returns what leads from one schema to another one, such as from that which Read returns of a
// database to that which is declared, or to that of another database. It is nil if both are the
// same. What both deployments would fill in counts for nothing. The error is that of a schema which
// no database can have.
func Diff(from, to Schema, opts ...DiffOptions) (Changes, error) {
	o := option.Merge(opts)
	at := newest
	if o.Server != "" {
		var err error
		if at, err = parseRelease(o.Server); err != nil {
			return nil, err
		}
	}
	if err := to.check(); err != nil {
		return nil, err
	}
	d := differ{server: at}
	for i := range to.Collections {
		c := &to.Collections[i]
		j := slices.IndexFunc(from.Collections, func(f Collection) bool { return f.Name == c.Name })
		var err error
		if j < 0 {
			err = d.create(c)
		} else {
			err = d.compare(&from.Collections[j], c)
		}
		if err != nil {
			return nil, fmt.Errorf("schema: collection %q: %w", c.Name, err)
		}
	}
	for _, c := range slices.Backward(from.Collections) { // views before what they are on
		if o.Whole && !slices.ContainsFunc(to.Collections, func(t Collection) bool { return t.Name == c.Name }) {
			what := "the collection is not declared"
			if c.Options.ViewOn != "" {
				what = "the view is not declared"
			}
			d.add(Change{Action: Drop, Collection: c.Name, What: what, apply: dropCollection(c.Name)})
		}
	}
	return d.changes, nil
}

// release is a version of the server.
type release struct{ major, minor int }

var newest = release{99, 0}

func parseRelease(s string) (release, error) {
	var r release
	if n, err := fmt.Sscanf(s, "%d.%d", &r.major, &r.minor); n < 2 {
		return r, fmt.Errorf("schema: %q is no version of a server: %w", s, err)
	}
	return r, nil
}

func (r release) least(major, minor int) bool {
	return r.major > major || r.major == major && r.minor >= minor
}

// differ collects changes.
type differ struct {
	server  release
	changes Changes
}

func (d *differ) add(c Change) { d.changes = append(d.changes, c) }

// create makes a collection that is not there.
func (d *differ) create(c *Collection) error {
	what := "it is not there"
	if c.Options.ViewOn != "" {
		what = "the view is not there"
	}
	d.add(Change{Action: Create, Collection: c.Name, What: what, apply: createCollection(c)})
	none := &Collection{Name: c.Name, Options: c.Options}
	if err := d.indexes(none, c); err != nil {
		return err
	}
	return d.searches(none, c)
}

// kind says what a collection is. One kind cannot become another.
func kind(o *allium.CreateCollectionOptions) string {
	switch {
	case o.ViewOn != "":
		return "view"
	case o.TimeSeries != nil:
		return "time series collection"
	case o.Capped:
		return "capped collection"
	case o.ClusteredIndex != nil:
		return "clustered collection"
	}
	return "collection"
}

// elsewhere is the way to what no command does.
const elsewhere = "no command does this: copy the documents into a new collection, and rename it"

func (d *differ) compare(live, declared *Collection) error {
	if is, want := kind(&live.Options), kind(&declared.Options); is != want {
		d.add(Change{Action: Impossible, Collection: live.Name,
			What: fmt.Sprintf("it is a %s, and declared as a %s", is, want), Problem: elsewhere})
		return nil
	}
	a, err := normalOptions(&live.Options)
	if err != nil {
		return err
	}
	b, err := normalOptions(&declared.Options)
	if err != nil {
		return err
	}
	if live.Options.ViewOn != "" {
		d.view(declared, a, b)
		return nil
	}
	d.options(declared, a, b)
	if err := d.indexes(live, declared); err != nil {
		return err
	}
	return d.searches(live, declared)
}

// said describes differences in fields.
func said(a, b fields, keys ...string) string {
	var parts []string
	for _, k := range keys {
		if !a.same(b, k) {
			parts = append(parts, fmt.Sprintf("%s: %s, declared %s", k, a.text(k), b.text(k)))
		}
	}
	return strings.Join(parts, "; ")
}

func (d *differ) view(declared *Collection, a, b fields) {
	o := &declared.Options
	if !a.same(b, "collation") {
		d.add(Change{Action: Rebuild, Collection: declared.Name, What: said(a, b, "viewOn", "pipeline", "collation"),
			apply: recreateView(declared)})
		return
	}
	if what := said(a, b, "viewOn", "pipeline"); what != "" {
		pipeline := o.Pipeline
		if pipeline == nil {
			pipeline = bson.A{}
		}
		d.add(Change{Action: Modify, Collection: declared.Name, What: what,
			apply: modify(declared.Name, allium.ModifyCollectionOptions{ViewOn: o.ViewOn, Pipeline: pipeline})})
	}
}

// options compares what a collection is created with. A field that is not declared and can be left
// as it is is a difference only if it does something to documents.
func (d *differ) options(declared *Collection, a, b fields) {
	name, o := declared.Name, &declared.Options
	change := func(action Action, problem, what string, m allium.ModifyCollectionOptions) {
		c := Change{Action: action, Collection: name, What: what, Problem: problem}
		if action != Impossible {
			c.apply = modify(name, m)
		}
		if action == Modify && m.Validator != nil {
			c.model = &definition{validator: m.Validator, level: m.ValidationLevel}
		}
		d.add(c)
	}
	for _, k := range []string{"collation", "timeField", "metaField", "clusteredIndex"} {
		if what := said(a, b, k); what != "" {
			change(Impossible, elsewhere, what, allium.ModifyCollectionOptions{})
		}
	}
	if what := said(a, b, "validator", "validationLevel", "validationAction"); what != "" {
		m := allium.ModifyCollectionOptions{Validator: o.Validator, ValidationLevel: o.ValidationLevel,
			ValidationAction: o.ValidationAction}
		if m.ValidationLevel == "" {
			m.ValidationLevel = "strict"
		}
		if m.ValidationAction == "" {
			m.ValidationAction = "error"
		}
		action := Modify
		if _, ok := b["validator"]; !ok {
			m.Validator = bson.D{}
			if _, ok := a["validator"]; ok {
				action, what = Drop, "the validator is not declared"
			}
		}
		change(action, "", what, m)
	}
	if _, ok := b["changeStreamPreAndPostImages"]; ok {
		on := func(f fields) bool {
			doc, _ := f["changeStreamPreAndPostImages"].Document()
			return doc.Lookup("enabled").AsBool()
		}
		if on(a) != on(b) {
			action, problem := Modify, ""
			if !d.server.least(6, 0) {
				action, problem = Impossible, "servers before 6.0 keep no images"
			}
			change(action, problem, said(a, b, "changeStreamPreAndPostImages"),
				allium.ModifyCollectionOptions{PreAndPostImages: new(on(b))})
		}
	}
	d.expiration(declared, a, b)
	d.buckets(declared, a, b)
	d.bounds(declared, a, b)
}

// expiration compares the age at which documents of a clustered or time series collection expire.
func (d *differ) expiration(declared *Collection, a, b fields) {
	what := said(a, b, "expireAfterSeconds")
	if what == "" {
		return
	}
	if declared.Options.ExpireAfter == nil {
		d.add(Change{Action: Drop, Collection: declared.Name, What: "the expiration of documents is not declared",
			apply: modify(declared.Name, allium.ModifyCollectionOptions{NeverExpire: true})})
		return
	}
	by := "_id"
	if v, ok := b["timeField"]; ok {
		by, _ = v.StringValue()
	}
	d.add(Change{Action: Modify, Collection: declared.Name, What: what,
		apply: modify(declared.Name, allium.ModifyCollectionOptions{ExpireAfter: declared.Options.ExpireAfter}),
		model: &definition{expires: by, index: &allium.IndexModel{ExpireAfter: declared.Options.ExpireAfter}}})
}

// buckets compares how a time series collection sorts measurements: that can only become coarser.
func (d *differ) buckets(declared *Collection, a, b fields) {
	what := said(a, b, "granularity", "bucketMaxSpanSeconds")
	if what == "" {
		return
	}
	order := []string{"seconds", "minutes", "hours"}
	level := func(f fields) int {
		s, _ := f["granularity"].StringValue()
		return slices.Index(order, s)
	}
	from, to := level(a), level(b)
	was, _ := a["bucketMaxSpanSeconds"].AsInt64()
	is, _ := b["bucketMaxSpanSeconds"].AsInt64()
	switch {
	case from >= 0 && to > from:
		d.add(Change{Action: Modify, Collection: declared.Name, What: what,
			apply: coarsen(declared.Name, order[from+1:to+1])})
	case was > 0 && is > was:
		d.add(Change{Action: Modify, Collection: declared.Name, What: what,
			apply: modify(declared.Name, allium.ModifyCollectionOptions{
				TimeSeries: bson.D{{Key: "bucketMaxSpanSeconds", Value: is},
					{Key: "bucketRoundingSeconds", Value: is}}})})
	default:
		d.add(Change{Action: Impossible, Collection: declared.Name, What: what,
			Problem: "buckets can only become coarser; " + elsewhere})
	}
}

// bounds compares the bounds of a capped collection. Smaller ones delete documents.
func (d *differ) bounds(declared *Collection, a, b fields) {
	what := said(a, b, "size", "max")
	if what == "" {
		return
	}
	c := Change{Action: Modify, Collection: declared.Name, What: what}
	m := allium.ModifyCollectionOptions{}
	was, _ := a["size"].AsInt64()
	if is, _ := b["size"].AsInt64(); is != was {
		m.SizeInBytes = declared.Options.SizeInBytes
		if is < was {
			c.Action = Drop
		}
	}
	if !a.same(b, "max") {
		was, bounded := a["max"].AsInt64()
		is, bounds := b["max"].AsInt64()
		if m.MaxDocuments = new(is); bounds && (!bounded || is < was) {
			c.Action = Drop
		}
	}
	if c.Action == Drop {
		c.Problem = "the server deletes the oldest documents that are beyond a smaller bound"
	}
	if c.apply = modify(declared.Name, m); !d.server.least(6, 0) {
		c = Change{Action: Impossible, Collection: declared.Name, What: what,
			Problem: "servers before 6.0 cannot change bounds; " + elsewhere}
	}
	d.add(c)
}

// liveIndex is an index of a collection that there is.
type liveIndex struct {
	name    string
	fields  fields
	matched bool
}

// indexes compares the indexes of a collection. An index is found by its name or, if the
// declaration has none, by what it is.
func (d *differ) indexes(live, declared *Collection) error {
	var there []*liveIndex
	for i := range live.Indexes {
		f, err := normalIndex(&live.Indexes[i], live.Options.Collation)
		if err != nil {
			return err
		}
		spec, err := document(indexOptions, &live.Indexes[i])
		if err != nil {
			return err
		}
		there = append(there, &liveIndex{name: indexName(spec), fields: f})
	}
	type wanted struct {
		model  *allium.IndexModel
		name   string
		fields fields
		is     *liveIndex
	}
	var list []*wanted
	for i := range declared.Indexes {
		m := declared.Indexes[i]
		spec, err := document(indexOptions, &m)
		if err != nil {
			return err
		}
		f, err := normalIndex(&m, live.Options.Collation) // which nobody can change
		if err != nil {
			return err
		}
		list = append(list, &wanted{model: &m, name: indexName(spec), fields: f})
	}
	take := func(ok func(w *wanted, l *liveIndex) bool) {
		for _, w := range list {
			for _, l := range there {
				if w.is == nil && !l.matched && ok(w, l) {
					w.is, l.matched = l, true
				}
			}
		}
	}
	take(func(w *wanted, l *liveIndex) bool { return w.name == l.name })
	take(func(w *wanted, l *liveIndex) bool {
		return w.model.Name == "" && len(indexDifferences(l.fields, w.fields)) == 0
	})
	take(func(w *wanted, l *liveIndex) bool { return d.conflict(l.fields, w.fields) })
	for _, w := range list {
		w.model.Name = w.name
		def := &definition{index: w.model, collation: effectiveCollation(w.model, live)}
		if w.is == nil {
			d.add(Change{Action: Create, Collection: declared.Name, Index: w.name, What: "keys " + w.fields.text("key"),
				model: def, apply: createIndex(declared.Name, w.model)})
			continue
		}
		d.index(declared, w.is, w.model, w.fields, def)
	}
	for _, l := range there {
		if !l.matched {
			d.add(Change{Action: Drop, Collection: declared.Name, Index: l.name,
				What:  "the index is not declared: keys " + l.fields.text("key"),
				apply: dropIndex(declared.Name, l.name)})
		}
	}
	return nil
}

// effectiveCollation is that of an index: its own, or the collection's.
func effectiveCollation(m *allium.IndexModel, c *Collection) *allium.Collation {
	if m.Collation != nil {
		return m.Collation
	}
	return c.Options.Collation
}

// conflict reports whether servers refuse the second index while the first one is there under
// another name.
func (d *differ) conflict(a, b fields) bool {
	if !a.same(b, "key") || !a.same(b, "collation") {
		return false
	}
	if !d.server.least(5, 0) {
		return true
	}
	return a.same(b, "partialFilterExpression") && a.same(b, "unique") && a.same(b, "sparse") &&
		a.same(b, "wildcardProjection")
}

// index compares an index with the one that there is in its place.
func (d *differ) index(declared *Collection, live *liveIndex, m *allium.IndexModel, f fields, def *definition) {
	keys := indexDifferences(live.fields, f)
	what := said(live.fields, f, keys...)
	c := Change{Action: Modify, Collection: declared.Name, Index: m.Name, What: what, model: def}
	if live.name != m.Name {
		what = strings.TrimSuffix(fmt.Sprintf("its name is %s; %s", live.name, what), "; ")
		c.Action = Rebuild
	}
	change := allium.IndexChange{Name: live.name}
	for _, k := range keys {
		_, was := live.fields[k]
		_, is := f[k]
		switch {
		case k == "hidden":
			change.Hidden = new(m.Hidden)
		case k == "expireAfterSeconds" && is && (was || d.server.least(6, 0)):
			change.ExpireAfter = m.ExpireAfter
		case k == "unique" && is && d.server.least(6, 0):
			change.Unique = new(true)
			def.unique = true
		default:
			c.Action = Rebuild
		}
	}
	switch {
	case c.Action == Rebuild:
		c.What, c.apply = what, rebuildIndex(declared.Name, live.name, m)
		c.Problem = "queries have no such index from the drop until it is built again"
	case len(keys) == 0:
		return
	default:
		def.expires = ""
		c.apply = modifyIndex(declared.Name, change)
	}
	d.add(c)
}

// searches compares search indexes.
func (d *differ) searches(live, declared *Collection) error {
	name := func(m *allium.SearchIndexModel) string {
		if m.Name == "" {
			return "default"
		}
		return m.Name
	}
	kind := func(m *allium.SearchIndexModel) string {
		if m.Type == "" {
			return "search"
		}
		return m.Type
	}
	matched := map[string]bool{}
	for i := range declared.SearchIndexes {
		m := declared.SearchIndexes[i]
		m.Name = name(&m)
		matched[m.Name] = true
		c := Change{Action: Create, Collection: declared.Name, Index: m.Name, Search: true,
			What: "the search index is not there", apply: createSearch(declared.Name, m)}
		if j := slices.IndexFunc(live.SearchIndexes, func(l allium.SearchIndexModel) bool {
			return name(&l) == m.Name
		}); j >= 0 {
			l := &live.SearchIndexes[j]
			switch a, b := encode(l.Definition), encode(m.Definition); {
			case kind(l) != kind(&m):
				c.Action, c.What, c.apply = Rebuild, fmt.Sprintf("type: %s, declared %s", kind(l), kind(&m)),
					recreateSearch(declared.Name, m)
			case !sameDefinition(a, b):
				c.Action, c.What, c.apply = Modify, fmt.Sprintf("definition: %s, declared %s", a, b),
					updateSearch(declared.Name, m)
			default:
				continue
			}
		}
		d.add(c)
	}
	for i := range live.SearchIndexes {
		if n := name(&live.SearchIndexes[i]); !matched[n] {
			d.add(Change{Action: Drop, Collection: declared.Name, Index: n, Search: true,
				What: "the search index is not declared", apply: dropSearch(declared.Name, n)})
		}
	}
	return nil
}

// sameDefinition compares definitions of search indexes. The service adds fields of its own at the
// top, and empty documents further down.
func sameDefinition(live, declared bson.Raw) bool {
	for k, v := range declared.All() {
		if !alike(live.Lookup(k), v) {
			return false
		}
	}
	return true
}

func alike(a, b bson.RawValue) bool {
	x, ok := a.Document()
	y, too := b.Document()
	if !ok && !too {
		return bson.Compare(a, b) == 0
	}
	for k, v := range y.All() {
		if !alike(x.Lookup(k), v) {
			return false
		}
	}
	for k, v := range x.All() {
		if y.Lookup(k).IsZero() && !hollow(v) {
			return false
		}
	}
	return ok || hollow(b)
}

// hollow reports whether a value is a document or an array with nothing in it.
func hollow(v bson.RawValue) bool {
	d, ok := v.Document()
	if !ok {
		d, ok = v.Array()
	}
	return ok && d.IsEmpty()
}
