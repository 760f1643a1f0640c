package server

import (
	"errors"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/validation"
)

// What the server checks in a document before it is stored, and what it adds to it.

// wellFormed reports whether a document is BSON but for strings that are not UTF-8, as the server
// stores them.
func wellFormed(doc bson.Raw, depth int) bool {
	if _, rest, err := bson.ReadDocument(doc); err != nil || len(rest) > 0 || depth == 0 {
		return false
	}
	for b := doc.Elements(); len(b) > 0; {
		_, v, rest, err := bson.ReadElement(b)
		if err != nil {
			return false
		}
		switch v.Type {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if !wellFormed(v.Value, depth-1) {
				return false
			}
		case bson.TypeCodeWithScope:
			if _, scope, ok := v.CodeWithScope(); !ok || !wellFormed(scope, depth-1) {
				return false
			}
		}
		b = rest
	}
	return true
}

// Prepare checks a document that is to be inserted and returns a copy of it as it is stored: with
// an _id in front, and zero timestamps at the top filled in.
func (r *Request) Prepare(doc bson.Raw) (bson.Raw, error) {
	if len(doc) > MaxBSONObjectSize {
		code := int32(srverr.BadValue)
		if r.Version().AllParsed() {
			code = srverr.BSONObjectTooLarge
		}
		return nil, srverr.New(code, "object to insert too large. size in bytes: %d, max size: %d", len(doc),
			MaxBSONObjectSize)
	}
	if err := doc.Validate(); err != nil && !wellFormed(doc, bson.DefaultMaxDepth) {
		return nil, srverr.New(srverr.InvalidBSON, "%v", err)
	}
	dollars := r.Version().AtLeast(5, 0)
	inOrder, hasID, stamps := true, false, false
	n := 0
	for k, v := range doc.All() {
		if (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) &&
			nesting(v.Value, maxStoredNesting) >= maxStoredNesting {
			return nil, srverr.New(srverr.Overflow, "cannot insert document because it exceeds %d levels of nesting",
				maxStoredNesting)
		}
		switch {
		case k == "_id":
			if hasID {
				return nil, srverr.New(srverr.BadValue, "can't have multiple _id fields in one document")
			}
			hasID, inOrder = true, n == 0
			if err := r.CheckID(v); err != nil {
				return nil, err
			}
		case k != "" && k[0] == '$' && !dollars:
			return nil, srverr.New(srverr.BadValue, "Document can't have $ prefixed field names: %s", k)
		case r.stamps(v):
			stamps = true
		}
		n++
	}
	if hasID && inOrder && !stamps {
		return append(make(bson.Raw, 0, len(doc)), doc...), nil
	}
	at, out := bson.BeginDocument(make([]byte, 0, len(doc)+17))
	if hasID {
		out = bson.AppendRawValue(out, "_id", doc.Lookup("_id"))
	} else {
		out = bson.AppendObjectID(out, "_id", bson.NewObjectID())
	}
	for k, v := range doc.All() {
		switch {
		case k == "_id":
		case r.stamps(v):
			out = bson.AppendTimestamp(out, k, r.Node.data.Clock.Tick())
		default:
			out = bson.AppendRawValue(out, k, v)
		}
	}
	return bson.EndDocument(out, at), nil
}

// maxStoredNesting is how deep an inserted document may nest.
const maxStoredNesting = 180

// stamps reports whether the server puts the time in place of a field at the top of a document: of
// a timestamp of zero, unless the command says otherwise.
func (r *Request) stamps(v bson.RawValue) bool {
	ts, ok := v.Timestamp()
	return ok && ts.IsZero() && !r.KeepStamps
}

// CheckID refuses values that cannot be an _id.
func (r *Request) CheckID(v bson.RawValue) error {
	since50 := r.Version().AtLeast(5, 0)
	switch v.Type {
	case bson.TypeRegex, bson.TypeUndefined, bson.TypeArray:
		if since50 {
			return srverr.New(srverr.InvalidIdField, "The '_id' value cannot be of type %s", bsontext.TypeName(v.Type))
		}
	}
	switch v.Type {
	case bson.TypeRegex, bson.TypeUndefined:
		return srverr.New(srverr.BadValue, "can't use a %s for _id", bsontext.TypeName(v.Type))
	case bson.TypeArray:
		return srverr.New(srverr.BadValue, "can't use an array for _id")
	case bson.TypeEmbeddedDocument:
		return checkStorable(v.Value)
	}
	return nil
}

// checkStorable refuses names that start with a dollar, except those of a DBRef.
func checkStorable(doc bson.Raw) error {
	for k, v := range doc.All() {
		if k != "" && k[0] == '$' && k != "$ref" && k != "$id" && k != "$db" {
			return srverr.New(srverr.DollarPrefixedFieldName, "%s is not valid for storage.", k)
		}
		if v.Type == bson.TypeEmbeddedDocument {
			if err := checkStorable(v.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownValidator is a collection's validator that ends with the command.
type ownValidator struct{ of, own *validation.Validator }

// Validate checks a document before it is stored. old is the version that it replaces, nil for an
// insert.
func (r *Request) Validate(c *store.Coll, doc, old bson.Raw, bypass bool) error {
	err := r.validate(c, doc, old, bypass)
	if err == nil && old == nil && c.Capped && int64(len(doc)) > c.Size && !r.Version().AllParsed() {
		return srverr.New(srverr.BadValue, "object to insert exceeds cappedMaxSize")
	}
	return err
}

func (r *Request) validate(c *store.Coll, doc, old bson.Raw, bypass bool) error {
	if c.TimeSeries && old == nil {
		if err := series.CheckTime(c, doc); err != nil {
			return err
		}
	}
	v, ok := c.Check.(*validation.Validator)
	if !ok || bypass {
		return nil
	}
	if r.validator.of != v { // parsed again, as what was parsed for all does not end with this command
		f, err := query.ParseFilter(v.Spec, r.ValidatorOptions(c.Collation))
		if err != nil {
			return err
		}
		own := *v
		own.Filter = f
		r.validator = ownValidator{of: v, own: &own}
	}
	v = r.validator.own
	var parse func(filter bson.Raw) (*query.Filter, error)
	if r.Version().AtLeast(5, 0) { // errors have details
		parse = func(filter bson.Raw) (*query.Filter, error) {
			return query.ParseFilter(filter, r.FullOptions("", nil, nil))
		}
	}
	err := v.Check(doc, old, parse)
	var failure *srverr.Error
	if !errors.As(err, &failure) || failure.Code != srverr.DocumentValidationFailure {
		return err
	}
	if v.Logs() {
		r.Node.logInvalid(r, c.NS, doc, failure)
	}
	if !v.Rejects() {
		return nil
	}
	return err
}
