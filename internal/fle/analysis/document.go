package analysis

import (
	"slices"
	"strings"

	"allium/bson"
)

// pointerKeys returns the fields that a JSON pointer (RFC 6901) leads through.
func pointerKeys(pointer string) []string {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, key := range keys {
		keys[i] = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
	}
	return keys
}

// inserted returns doc, a whole document that is written to the collection, with placeholders.
func (a *analysis) inserted(doc bson.Raw) (bson.Raw, error) {
	if a.queryable && !doc.Lookup(safeContent).IsZero() {
		return nil, a.refuse(safeContent, "", "the field is reserved for encrypted collections", "leave it out")
	}
	n := a.root()
	for key, v := range doc.All() {
		if t, ok := v.Timestamp(); ok && t.IsZero() && n.child(key) != nil {
			return nil, a.refuse(
				key, "", "A command that inserts cannot supply Timestamp(0, 0) for an encrypted top-level field, since the server would replace it", "")
		}
	}
	return a.walk(doc, n, "", func(e *Encryption, path string, v bson.RawValue) (bson.RawValue, error) {
		return a.stored(e, path, "", v, doc)
	})
}

// walk returns doc, an object that n describes, with what f returns in place of every encrypted
// value.
func (a *analysis) walk(doc bson.Raw, n *node, path string,
	f func(*Encryption, string, bson.RawValue) (bson.RawValue, error)) (bson.Raw, error) {
	if n == nil {
		return doc, nil
	}
	return rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		if err := a.dotted(n, path, key); err != nil {
			return v, err
		}
		if strings.HasPrefix(key, "$") {
			return v, a.refuse(join(path, key), "", "a field beside or above encrypted ones cannot have a name with $",
				"")
		}
		c := n.child(key)
		if c == nil {
			return v, nil
		}
		return a.walkValue(v, c, join(path, key), f)
	})
}

// walkValue is walk for a value of any type.
func (a *analysis) walkValue(v bson.RawValue, n *node, path string,
	f func(*Encryption, string, bson.RawValue) (bson.RawValue, error)) (bson.RawValue, error) {
	switch {
	case n == nil:
		return v, nil
	case n.opaque:
		return v, a.refuse(path, "", "what the schema says about the field is contradictory, or not known here", "")
	case n.enc != nil:
		return f(n.enc, path, v)
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		doc, err := a.walk(v.Value, n, path, f)
		return document(doc), err
	case bson.TypeArray:
		return v, a.refuse(path, "", "Cannot encrypt below an element of type: array",
			"fields of the elements of an array cannot be encrypted")
	}
	return v, nil // nothing that is encrypted can be in it
}

// dotted refuses a name with a dot that looks like the path of an encrypted field.
func (a *analysis) dotted(n *node, path, key string) error {
	if !strings.Contains(key, ".") {
		return nil
	}
	if found, below := n.at(key); found != nil || below {
		return a.refuse(join(path, key), "", "a field with a dot in its name would hide that the field is encrypted",
			"nest documents instead of the dot")
	}
	return nil
}

// updated returns the update u of a statement.
func (a *analysis) updated(u bson.RawValue) (bson.RawValue, error) {
	if u.Type == bson.TypeArray {
		return u, a.refuse("", "", "an update with a pipeline is not supported on a collection with encrypted fields",
			"use update operators or a replacement")
	}
	doc, ok := u.Document()
	if !ok {
		return u, a.refuse("", "", "an update must be a document", "")
	}
	if name, _ := first(doc); !strings.HasPrefix(name, "$") {
		out, err := a.inserted(doc)
		return document(out), err
	}
	out, err := rewrite(doc, func(op string, v bson.RawValue) (bson.RawValue, error) {
		fields, ok := v.Document()
		if !ok {
			return v, a.refuse("", op, "the operator wants a document", "")
		}
		changed, err := rewrite(fields, func(path string, v bson.RawValue) (bson.RawValue, error) {
			if a.queryable && (path == safeContent || strings.HasPrefix(path, safeContent+".")) {
				return v, a.refuse(path, op, "the field is reserved for encrypted collections", "leave it out")
			}
			return a.updateField(op, path, v)
		})
		return document(changed), err
	})
	return document(out), err
}

// refusedOperators are the update operators that encrypted fields do not have, and the reason's
// first words, which the specification's tests look for.
var refusedOperators = map[string]string{
	"$inc": "$inc and $mul", "$mul": "$inc and $mul", "$max": "$max and $min", "$min": "$max and $min",
	"$addToSet": "$addToSet",
	"$pop":      "$pop", "$pull": "$pull", "$pullAll": "$pullAll", "$push": "$push", "$currentDate": "$currentDate",
	"$bit": "$bit",
}

// updateField returns the argument of one operator for one path.
func (a *analysis) updateField(op, path string, v bson.RawValue) (bson.RawValue, error) {
	n, err := a.updatePath(op, path)
	if err != nil {
		return v, err
	}
	if reason, ok := refusedOperators[op]; ok {
		if n != nil {
			return v, a.refuse(path, op, reason+" not allowed on encrypted values", "use $set")
		}
		return v, nil
	}
	switch op {
	case "$setOnInsert":
		if n != nil && a.queryable {
			return v, a.refuse(path, op, "$setOnInsert not allowed on encrypted values with Queryable Encryption",
				"use $set")
		}
		fallthrough
	case "$set":
		if t, ok := v.Timestamp(); ok && t.IsZero() && n != nil && !strings.Contains(path, ".") {
			return v, a.refuse(path, op, "an update cannot supply Timestamp(0, 0) for an encrypted top-level field", "")
		}
		return a.walkValue(v, n, path, func(e *Encryption, path string, v bson.RawValue) (bson.RawValue, error) {
			return a.stored(e, path, op, v, nil)
		})
	case "$unset":
		if n != nil && n.opaque {
			return v, a.refuse(path, op, "what the schema says about the field is contradictory, or not known here", "")
		}
		if n != nil && !isFlag(v) {
			v = stringValue("") // the server does not look at it, but it could be anything
		}
		return v, nil
	case "$rename":
		return v, a.rename(path, n, v)
	}
	return v, a.refuse(path, op, "Unsupported update operator for encryption", "use $set, $unset or a replacement")
}

func (a *analysis) rename(path string, from *node, v bson.RawValue) error {
	const reason = "$rename between two encrypted fields must have the same metadata or both be unencrypted"
	target, ok := v.StringValue()
	if !ok {
		return a.refuse(path, "$rename", "the operator wants a string", "")
	}
	to, err := a.updatePath("$rename", target)
	if err != nil {
		return err
	}
	if from == nil && to == nil {
		return nil
	}
	if a.queryable {
		return a.refuse(path, "$rename", "$rename not allowed on encrypted values with Queryable Encryption", "")
	}
	if from == nil || to == nil || from.enc == nil || to.enc == nil || !from.enc.same(to.enc) {
		return a.refuse(path, "$rename", reason, "")
	}
	return nil
}

// updatePath returns the node of a path in an update, where $, $[] and $[name] stand for elements
// of arrays.
func (a *analysis) updatePath(op, path string) (*node, error) {
	keys := strings.Split(path, ".")
	n := a.root()
	for i, key := range keys {
		if n == nil {
			return nil, nil
		}
		if key == "$" {
			return nil, a.refuse(path, op, "Cannot encrypt fields below '$' positional update operator",
				"fields of the elements of an array cannot be encrypted")
		}
		if strings.HasPrefix(key, "$[") || isIndex(key) && !n.known(key) {
			return nil, a.refuse(path, op, "Array update operations not allowed on encrypted values",
				"fields of the elements of an array cannot be encrypted")
		}
		if n.enc != nil {
			if slices.Contains(keys[i:], "$") {
				return nil, a.refuse(path, op, "Cannot encrypt fields below '$' positional update operator", "")
			}
			return nil, a.below(path, op)
		}
		n = n.child(key)
	}
	return n, nil
}
