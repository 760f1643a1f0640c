package query

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// maxStoredDepth is how deep a stored document may nest.
const maxStoredDepth = 180

// checkDocument checks that a document may be stored as an update made it: no "$" in front of names
// (but for DBRefs), not too deep. path leads to it, level is the level of its fields.
func (u *Update) checkDocument(doc bson.Raw, path []string, level int) error {
	if doc.IsEmpty() {
		return nil
	}
	if level > maxStoredDepth {
		return tooDeep()
	}
	for key, v := range doc.All() {
		if strings.HasPrefix(key, "$") {
			if err := u.checkDollar(doc, key, path); err != nil {
				return err
			}
		}
		if err := u.checkValue(v, append(path, key), level); err != nil {
			return err
		}
	}
	return nil
}

// checkValue checks what lies below a value that stands at this level.
func (u *Update) checkValue(v bson.RawValue, path []string, level int) error {
	if level > maxStoredDepth {
		return tooDeep()
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return u.checkDocument(v.Value, path, level+1)
	case bson.TypeArray:
		for key, e := range bson.Raw(v.Value).All() {
			if err := u.checkValue(e, append(path, key), level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkInserted checks the document that operators made for an upsert: servers look at it as a
// whole, at the end. Since 5.0 its names may start with "$".
func (u *Update) checkInserted(doc bson.Raw) error {
	switch id := lookup(doc, "_id"); id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return srverr.New(srverr.InvalidIdField, "The '_id' value cannot be of type %s", bsontext.TypeName(id.Type))
	}
	if !u.version.AtLeast(5, 0) {
		return u.checkDocument(doc, nil, 1)
	}
	for key, v := range doc.All() {
		if err := u.checkValue(v, []string{key}, 1); err != nil {
			return err
		}
	}
	return nil
}

func tooDeep() error {
	return srverr.New(srverr.Overflow, "Document exceeds maximum nesting depth of %d", maxStoredDepth)
}

// checkDollar checks a field whose name starts with "$": it has to be part of a DBRef. Since 5.0
// such names are refused at the top only, and there not if a pipeline put them there.
func (u *Update) checkDollar(doc bson.Raw, name string, path []string) error {
	if u.version.AtLeast(5, 0) && (len(path) > 0 || u.pipeline != nil) {
		return nil
	}
	var left, right string
	var v, leftValue bson.RawValue
	found := false
	var leftLeft string
	for key, e := range doc.All() {
		if found {
			right = key
			break
		}
		if key == name {
			found, v = true, e
			continue
		}
		leftLeft, left, leftValue = left, key, e
	}
	cur, curValue := name, v
	next := right
	if cur == "$db" {
		if v.Type != bson.TypeString {
			return srverr.New(srverr.InvalidDBRef, "The DBRef $db field must be a String, not a %s",
				bsontext.TypeName(v.Type))
		}
		if left != "$id" {
			return srverr.New(srverr.InvalidDBRef, "Found $db field without a $id before it, which is invalid.")
		}
		if leftLeft != "$ref" {
			return srverr.New(srverr.InvalidDBRef, "Found $id field without a $ref before it, which is invalid.")
		}
		return nil
	}
	if cur == "$id" {
		if left != "$ref" {
			return srverr.New(srverr.InvalidDBRef, "Found $id field without a $ref before it, which is invalid.")
		}
		cur, curValue, next = left, leftValue, "$id"
	}
	if cur == "$ref" {
		if curValue.Type != bson.TypeString {
			return srverr.New(srverr.InvalidDBRef, "The DBRef $ref field must be a String, not a %s",
				bsontext.TypeName(curValue.Type))
		}
		if next != "$id" {
			return srverr.New(srverr.InvalidDBRef, "The DBRef $ref field must be followed by a $id field")
		}
		return nil
	}
	full := strings.Join(append(append([]string(nil), path...), name), ".")
	if u.version.AtLeast(5, 0) {
		return srverr.New(srverr.DollarPrefixedFieldName,
			"The dollar ($) prefixed field '%s' in '%s' is not allowed in the "+
				"context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.",
			name, full)
	}
	return srverr.New(srverr.DollarPrefixedFieldName,
		"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", name, full)
}

// checkModified refuses a change of the _id at the path of a modifier. A modifier that sets whole
// values may set an equal one.
func checkModified(path []string, sets bool, before, after bson.RawValue) error {
	if path[0] != "_id" {
		return nil
	}
	if sets && len(path) == 1 && after.Type != 0 && Compare(before, after, nil) == 0 {
		return nil
	}
	return srverr.New(srverr.ImmutableField,
		"Performing an update on the path '%s' would modify the immutable field '_id'",
		strings.Join(path, "."))
}
