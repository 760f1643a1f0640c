package query

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// maxDocumentSize is the largest document that may be stored.
const maxDocumentSize = 16 << 20

// UpdateOptions is what surrounds an update document.
type UpdateOptions struct {
	Options
	// ArrayFilters are the conditions of the $[identifier] parts of paths.
	ArrayFilters []bson.Raw
	// Multi is set for an update of several documents, which a replacement may not be.
	Multi bool
	// Constants is set if the command came with constants ("c"), which only a pipeline may use.
	Constants bool
	// Pipeline parses an update that is an array of stages. With nil such an update is refused.
	Pipeline PipelineParser
}

// PipelineParser parses an update that is an array of stages.
type PipelineParser interface {
	ParsePipeline(stages bson.Raw) (UpdatePipeline, error)
}

// UpdatePipeline makes a new document of an old one.
type UpdatePipeline interface {
	Apply(doc bson.Raw) (bson.Raw, error)
}

// Clock is what $currentDate and empty timestamps are set to.
type Clock struct {
	Now       bson.DateTime
	Timestamp bson.Timestamp
	// KeepEmpty leaves the timestamps of a replacement that are zero as they are.
	KeepEmpty bool
}

// Update is a parsed update document: modifiers, a replacement, or a pipeline. It is safe for
// concurrent use if its pipeline is.
type Update struct {
	root        *objectNode // nil unless there are modifiers
	renames     []*renameOp
	replacement bson.Raw
	delta       bson.Raw // see NewDelta
	pipeline    UpdatePipeline

	filters    map[string]*Filter // by identifier
	coll       *Collation
	version    release.Version
	positional bool
	work       *work.Meter

	// Where the tree begins: most updates have one modifier of one field.
	firstObject   objectNode
	firstLeaf     leafNode
	firstSet      setOp
	firstChildren [1]updateChild
}

// ParseUpdate parses an update: a document of modifiers, a replacement document, or an array of
// stages.
func ParseUpdate(v bson.RawValue, o *UpdateOptions) (_ *Update, err error) {
	defer work.Catch(&err)
	if o == nil {
		o = &UpdateOptions{}
	}
	u := &Update{coll: o.Collation, version: o.version(), work: o.Work}
	if err := u.parseArrayFilters(o); err != nil {
		return nil, err
	}
	if v.Type == bson.TypeArray {
		return u, u.parsePipeline(v.Value, o)
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(srverr.FailedToParse, "Update argument must be either an object or an array")
	}
	if o.Constants {
		return nil, srverr.New(51198, "Constant values may only be specified for pipeline updates")
	}
	spec := bson.Raw(v.Value)
	if first, _, ok := firstElement(spec); !ok || !strings.HasPrefix(first, "$") {
		if o.Multi {
			return nil, srverr.New(srverr.FailedToParse, "multi update is not supported for replacement-style update")
		}
		u.replacement = spec
		return u, nil
	}
	return u, u.parseModifiers(spec)
}

func (u *Update) parsePipeline(stages bson.Raw, o *UpdateOptions) error {
	if len(o.ArrayFilters) > 0 {
		return srverr.New(srverr.FailedToParse, "arrayFilters may not be specified for pipeline-syle updates")
	}
	if o.Pipeline == nil {
		return srverr.New(srverr.FailedToParse, "pipeline-style updates are not supported here")
	}
	p, err := o.Pipeline.ParsePipeline(stages)
	if err != nil {
		return err
	}
	u.pipeline = p
	return nil
}

// IsReplacement reports whether the update replaces the whole document.
func (u *Update) IsReplacement() bool { return u.replacement != nil }

// IsPipeline reports whether the update is an aggregation pipeline.
func (u *Update) IsPipeline() bool { return u.pipeline != nil }

// NeedsIndex reports whether the update has a positional $ in it, so that Apply needs the index
// that Filter.MatchIndex found.
func (u *Update) NeedsIndex() bool { return u.positional }

func (u *Update) parseArrayFilters(o *UpdateOptions) error {
	for _, raw := range o.ArrayFilters {
		fo := (&Options{Collation: o.Collation, Version: o.Version, Work: o.Work}).plain()
		p := newFilterParser(fo)
		root, err := p.parse(raw, levelTop)
		if err != nil {
			return withContext("Error parsing array filter", err)
		}
		name, found, err := placeholder(root)
		if err != nil {
			return withContext("Error parsing array filter", err)
		}
		if !found {
			return srverr.New(srverr.FailedToParse,
				"Cannot use an expression without a top-level field name in arrayFilters")
		}
		if !isPlaceholder(name) {
			return badValue("Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric "+
				"string beginning with a lowercase letter, found '%s'", name)
		}
		if _, twice := u.filters[name]; twice {
			return srverr.New(srverr.FailedToParse,
				"Found multiple array filters with the same top-level field name %s", name)
		}
		if u.filters == nil {
			u.filters = map[string]*Filter{}
		}
		u.filters[name] = p.filter(root)
	}
	return nil
}

// withContext puts the server's "context :: caused by :: " before an error's text.
func withContext(context string, err error) error {
	if e, ok := err.(*srverr.Error); ok {
		c := *e
		c.Msg = context + " :: caused by :: " + e.Msg
		return &c
	}
	return err
}

// placeholder returns the one first path part that all conditions of an array filter share.
func placeholder(n node) (name string, found bool, err error) {
	var children []node
	switch n := n.(type) {
	case *leaf:
		return n.path.parts[0], true, nil
	case *and:
		children = n.children
	case *or:
		children = n.children
	case *nor:
		children = n.children
	case *not:
		children = []node{n.child}
	}
	for _, c := range children {
		other, ok, err := placeholder(c)
		switch {
		case err != nil:
			return "", false, err
		case ok && found && other != name:
			return "", false, srverr.New(srverr.FailedToParse,
				"Expected a single top-level field name, found '%s' and '%s'", name, other)
		case ok:
			name, found = other, true
		}
	}
	return name, found, nil
}

func isPlaceholder(name string) bool {
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z':
		case i > 0 && (c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'):
		default:
			return false
		}
	}
	return name != ""
}

// matchElement matches an array element with the filter of an identifier.
func (u *Update) matchElement(identifier string, v bson.RawValue) bool {
	start, b := bson.BeginDocument(nil)
	b = bson.EndDocument(bson.AppendRawValue(b, identifier, v), start)
	ok, _ := u.filters[identifier].Match(b)
	return ok
}

// Apply makes the new document of an old one. index is what Filter.MatchIndex returned for it, or
// -1. If nothing changes modified is false and the result is doc. The _id may not change.
func (u *Update) Apply(doc bson.Raw, index int, clock Clock) (out bson.Raw, modified bool, err error) {
	if u.work != nil {
		defer work.Catch(&err)
	}
	switch {
	case u.replacement != nil:
		out, err = u.replace(doc, u.replacement, clock)
		if err == nil && lookup(u.replacement, "_id").Type == 0 && checkSize(out) == nil {
			return out, true, nil // compared without the _id
		}
	case u.delta != nil:
		out, err = applyDelta(doc, u.delta, 0)
	case u.pipeline != nil:
		var next bson.Raw
		if next, err = u.pipeline.Apply(doc); err == nil {
			out, err = u.replace(doc, next, Clock{})
		}
		if err == nil && lookup(next, "_id").Type == 0 && checkSize(out) == nil {
			return out, true, nil // compared without the _id
		}
	default:
		out, modified, err = u.modify(doc, index, clock, false)
		if err == nil && modified {
			err = checkSize(out)
		}
		return out, modified, err
	}
	if err == nil {
		err = checkSize(out)
	}
	if err != nil {
		return nil, false, err
	}
	return out, !bson.Equal(out, doc), nil
}

// maxInternalSize is how large a document may become while the server works on it.
const maxInternalSize = maxDocumentSize + 16<<10

// checkSize refuses a document that an update has made too large.
func checkSize(doc bson.Raw) error {
	if len(doc) > maxInternalSize {
		first := ""
		for k, v := range doc.All() {
			first = bsontext.Element(k, v)
			break
		}
		return srverr.New(srverr.BSONObjectTooLarge,
			"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB) First element: %s", len(doc),
			len(doc), maxInternalSize, first)
	}
	if len(doc) > maxDocumentSize {
		return tooLarge(17419, "Resulting document after update is larger than")
	}
	return nil
}

func tooLarge(code int32, what string) error {
	return srverr.New(code, "%s %d", what, maxDocumentSize)
}

// Insert makes the document that an upsert inserts: the equality conditions of the filter, updated,
// with an _id in front, a new ObjectID if there is none.
func (u *Update) Insert(f *Filter, clock Clock) (_ bson.Raw, err error) {
	defer work.Catch(&err)
	seed, err := f.Seed(u.replacement != nil)
	if err != nil {
		return nil, err
	}
	var out bson.Raw
	switch {
	case u.replacement != nil:
		out, err = u.replace(seed, u.replacement, clock)
	case u.pipeline != nil:
		var next bson.Raw
		if next, err = u.pipeline.Apply(seed); err == nil {
			out, err = u.replace(seed, next, Clock{})
		}
	default:
		if out, _, err = u.modify(seed, noIndex, clock, true); err == nil {
			err = u.checkInserted(out)
		}
	}
	if err != nil {
		return nil, err
	}
	id := lookup(out, "_id")
	if id.Type == bson.TypeArray {
		return nil, arrayID()
	}
	out = idFirst(out, id)
	if len(out) > maxDocumentSize {
		return nil, tooLarge(17420, "Document to upsert is larger than")
	}
	return out, nil
}

func arrayID() error {
	return srverr.New(srverr.NotSingleValueField, "After applying the update to the document, the (immutable) field "+
		"'_id' was found to be an array or array descendant.")
}

// idFirst returns the document with its _id in front; a missing one is made up.
func idFirst(doc bson.Raw, id bson.RawValue) bson.Raw {
	if first, _, ok := firstElement(doc); ok && first == "_id" {
		return doc
	}
	start, b := bson.BeginDocument(make([]byte, 0, len(doc)+17))
	if id.Type == 0 {
		b = bson.AppendObjectID(b, "_id", bson.NewObjectID())
	} else {
		b = bson.AppendRawValue(b, "_id", id)
	}
	for key, v := range doc.All() {
		if key != "_id" {
			b = bson.AppendRawValue(b, key, v)
		}
	}
	return bson.EndDocument(b, start)
}

// replace makes the new document of a replacement: it keeps the old _id if the replacement has
// none. Timestamps that are zero at the top are set, if the clock is.
func (u *Update) replace(doc, replacement bson.Raw, clock Clock) (bson.Raw, error) {
	oldID, newID := lookup(doc, "_id"), lookup(replacement, "_id")
	start, b := bson.BeginDocument(make([]byte, 0, len(replacement)+len(oldID.Value)+8))
	skipped := false
	switch { // the _id goes to the front
	case newID.Type != 0:
		b = bson.AppendRawValue(b, "_id", newID)
	case oldID.Type != 0:
		b = bson.AppendRawValue(b, "_id", oldID)
	}
	for key, v := range replacement.All() {
		if key == "_id" && !skipped {
			skipped = true
			continue
		}
		if ts, ok := v.Timestamp(); ok && ts.IsZero() && key != "_id" && !clock.Timestamp.IsZero() && !clock.KeepEmpty {
			b = bson.AppendTimestampValue(bson.AppendHeader(b, bson.TypeTimestamp, key), clock.Timestamp)
			continue
		}
		b = bson.AppendRawValue(b, key, v)
	}
	out := bson.Raw(bson.EndDocument(b, start))
	if err := u.checkDocument(out, nil, 1); err != nil {
		return nil, err
	}
	if newID.Type == bson.TypeArray || newID.Type == 0 && oldID.Type == bson.TypeArray {
		return nil, arrayID()
	}
	if newID.Type != 0 && oldID.Type != 0 && Compare(newID, oldID, nil) != 0 {
		return nil, srverr.New(srverr.ImmutableField,
			"After applying the update, the (immutable) field '_id' was found "+
				"to have been altered to %s", bsontext.Element("_id", newID))
	}
	return out, nil
}
