// Package validation applies the validators of collections, and says why a document fails one.
package validation

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// Validator is a collection's document validation.
type Validator struct {
	Spec   bson.Raw
	Filter *query.Filter
	Level  string // "strict" or "moderate"
	Action string // "error", "warn" or "errorAndLog"
}

// Rejects reports whether a document that fails is refused.
func (v *Validator) Rejects() bool { return v.Action != "warn" }

// Logs reports whether the server logs that a document fails.
func (v *Validator) Logs() bool { return v.Action != "error" }

// Check checks a document before it is stored, whatever the action is. old is the version that it
// replaces, nil for an insert. parse parses the parts of the filter, of which the error tells those
// that fail; nil: it tells none.
func (v *Validator) Check(doc, old bson.Raw, parse func(filter bson.Raw) (*query.Filter, error)) error {
	match, err := v.Filter.Match(doc)
	if err != nil || match {
		return err
	}
	if old != nil && v.Level == "moderate" {
		if before, err := v.Filter.Match(old); err == nil && !before {
			return nil
		}
	}
	e := srverr.New(srverr.DocumentValidationFailure, "Document failed validation")
	if parse != nil {
		x := explanation{parse: parse, doc: doc}
		at, dst := bson.BeginDocument(nil)
		info, dst := bson.BeginDocumentElement(dst, "errInfo")
		dst = bsondoc.Append(dst, "failingDocumentId", doc.Lookup("_id"), "details", x.filter(v.Spec))
		e.Extra = bson.EndDocument(bson.EndDocument(dst, info), at)
	}
	return e
}

// explanation says why a document does not match a validator, as errInfo.details does. It tries the
// validator's parts one by one.
type explanation struct {
	parse func(filter bson.Raw) (*query.Filter, error)
	doc   bson.Raw
}

// fails reports whether the document does not match a filter. A part that is no filter by itself
// does not fail.
func (x *explanation) fails(filter bson.Raw) bool {
	f, err := x.parse(filter)
	if err != nil {
		return false
	}
	ok, err := f.Match(x.doc)
	return err == nil && !ok
}

// filter explains a filter: its only clause, or all that fail.
func (x *explanation) filter(spec bson.Raw) bson.Raw {
	var clauses []bson.Raw
	for key, v := range spec.All() {
		ops, ok := v.Document()
		if !ok || strings.HasPrefix(key, "$") || !isOperators(ops) {
			clauses = append(clauses, bsondoc.Single(key, v))
			continue
		}
		for op, arg := range ops.All() {
			if op != "$options" {
				clauses = append(clauses, bsondoc.Single(key, bsondoc.DocumentValue(bsondoc.Single(op, arg))))
			}
		}
	}
	if len(clauses) == 1 {
		return x.clause(clauses[0])
	}
	return x.clauses("$and", clauses)
}

func isOperators(doc bson.Raw) bool {
	for key := range doc.All() {
		return strings.HasPrefix(key, "$")
	}
	return false
}

// clauses explains $and, $or and $nor.
func (x *explanation) clauses(name string, list []bson.Raw) bson.Raw {
	field, unwanted := "clausesNotSatisfied", true
	if name == "$nor" {
		field, unwanted = "clausesSatisfied", false
	}
	at, dst := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "operatorName", name)
	arr, dst := bson.BeginArrayElement(dst, field)
	n := 0
	for i, c := range list {
		if x.fails(c) != unwanted {
			continue
		}
		one, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		d = bson.AppendInt32(d, "index", int32(i))
		dst = bson.EndDocument(bson.AppendDocument(d, "details", x.filter(c)), one)
		n++
	}
	return bson.EndDocument(bson.EndDocument(dst, arr), at)
}

// clause explains one predicate.
func (x *explanation) clause(c bson.Raw) bson.Raw {
	var key string
	var v bson.RawValue
	for key, v = range c.All() {
		break
	}
	switch key {
	case "$and", "$or", "$nor":
		var list []bson.Raw
		arr, _ := v.Array()
		for el := range arr.Values() {
			doc, _ := el.Document()
			list = append(list, doc)
		}
		return x.clauses(key, list)
	case "$jsonSchema":
		schema, _ := v.Document()
		at, dst := bson.BeginDocument(nil)
		dst = appendNotes(bson.AppendString(dst, "operatorName", key), schema)
		arr, dst := bson.BeginArrayElement(dst, "schemaRulesNotSatisfied")
		dst = x.rules(dst, schema, nil)
		return bson.EndDocument(bson.EndDocument(dst, arr), at)
	case "$expr":
		at, dst := bson.BeginDocument(nil)
		dst = bson.AppendDocument(bson.AppendString(dst, "operatorName", key), "specifiedAs", c)
		dst = bson.AppendString(dst, "reason", "expression did not match")
		return bson.EndDocument(bson.AppendBool(dst, "expressionResult", false), at)
	}
	op := "$eq"
	if ops, ok := v.Document(); ok && isOperators(ops) {
		for op = range ops.All() {
			break
		}
	}
	at, dst := bson.BeginDocument(nil)
	dst = bson.AppendDocument(bson.AppendString(dst, "operatorName", op), "specifiedAs", c)
	considered := x.doc.Lookup(strings.Split(key, ".")...)
	return bson.EndDocument(appendReason(dst, op, considered), at)
}

// appendReason appends why a value does not satisfy an operator, and the value.
func appendReason(dst []byte, op string, considered bson.RawValue) []byte {
	missing := considered.IsZero()
	reason := "comparison failed"
	switch op {
	case "$exists":
		if reason = "path does not exist"; !missing {
			reason = "path does exist"
		}
		return bson.AppendString(dst, "reason", reason)
	case "$type", "bsonType", "type":
		reason = "type did not match"
	case "$in", "enum":
		reason = "no matching value found in array"
		if op == "enum" {
			reason = "value was not found in enum"
		}
	case "$nin":
		reason = "matching value found in array"
	case "$regex", "pattern":
		reason = "regular expression did not match"
	case "minLength", "maxLength":
		reason = "specified string length was not satisfied"
	case "$not":
		reason = "child expression matched"
	}
	if missing {
		return bson.AppendString(dst, "reason", "field was missing")
	}
	dst = bson.AppendRawValue(bson.AppendString(dst, "reason", reason), "consideredValue", considered)
	if reason == "type did not match" {
		dst = bson.AppendString(dst, "consideredType", bsontext.TypeName(considered.Type))
	}
	return dst
}
