package scope

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"allium/bson"
)

// condition is one condition on a field. It is one that the driver can check by itself: whether a
// document that is written matches must not depend on what only the server knows.
type condition struct {
	path   string
	parts  []string
	op     string          // $eq, $ne, $in, $nin or $exists
	values []bson.RawValue // one, but for $in and $nin
}

const known = "a scope's filter has values, $eq, $ne, $in, $nin and $exists, which the driver checks in what is written"

// parse returns the conditions of a filter.
func parse(filter bson.Raw) ([]condition, error) {
	if err := wellFormed(filter); err != nil {
		return nil, err
	}
	var out []condition
	for key, v := range filter.All() {
		if err := checkPath(key); err != nil {
			return nil, err
		}
		c := condition{path: strings.Clone(key), parts: strings.Split(strings.Clone(key), ".")}
		doc, isDoc := v.Document()
		if v.Type != bson.TypeEmbeddedDocument || !isDoc || !operators(doc) {
			c.op, c.values = "$eq", []bson.RawValue{v}
			out = append(out, c)
			continue
		}
		for op, operand := range doc.All() {
			c.op, c.values = strings.Clone(op), []bson.RawValue{operand}
			switch op {
			case "$eq", "$ne":
			case "$exists":
				c.values[0], _ = bson.MarshalValue(operand.AsBool())
			case "$in", "$nin":
				arr, ok := operand.Array()
				if !ok {
					return nil, fmt.Errorf("filter: %s of %q is a BSON %s, want an array", op, key, operand.Type)
				}
				c.values = slices.Collect(arr.Values())
			default:
				return nil, fmt.Errorf("filter: %q has the operator %s: %s", key, op, known)
			}
			out = append(out, c)
		}
	}
	for i := range out {
		for j, v := range out[i].values {
			switch v.Type {
			case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey,
				bson.TypeCodeWithScope, bson.TypeDBPointer:
				return nil, fmt.Errorf("filter: %q has a BSON %s, want another value", out[i].path, v.Type)
			}
			out[i].values[j].Value = slices.Clone(v.Value)
		}
	}
	return out, nil
}

// checkPath reports a path that leads to more than one value.
func checkPath(path string) error {
	for _, part := range strings.Split(path, ".") {
		switch {
		case part == "":
			return fmt.Errorf("filter: %q is no path to a field", path)
		case part[0] == '$':
			return fmt.Errorf("filter has %s: %s", part, known)
		case index(part):
			return fmt.Errorf("filter: %q leads into an array: a document has one value for a scope", path)
		}
	}
	return nil
}

// operators reports whether a document is one of operators.
func operators(doc bson.Raw) bool {
	for key := range doc.All() {
		return strings.HasPrefix(key, "$")
	}
	return false
}

// index reports whether part of a path is that of an element of an array: 0, $, $[], $[name].
func index(part string) bool {
	if strings.HasPrefix(part, "$") {
		return true
	}
	_, err := strconv.ParseUint(part, 10, 64)
	return err == nil
}

func (c condition) equal(d condition) bool {
	return c.path == d.path && c.op == d.op && slices.EqualFunc(c.values, d.values, same)
}

// same reports whether two values are equal for sure as the server compares them: of numbers it
// knows the simple cases.
func same(a, b bson.RawValue) bool {
	if a.Type == b.Type && string(a.Value) == string(b.Value) {
		return true
	}
	m, ok := whole(a)
	n, ok2 := whole(b)
	return ok && ok2 && m == n
}

// whole returns the value of a number that is whole.
func whole(v bson.RawValue) (int64, bool) {
	if v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64 && v.Type != bson.TypeDouble {
		return 0, false
	}
	if f, ok := v.Double(); ok && (f != float64(int64(f)) || f > 1<<53 || f < -1<<53) {
		return 0, false
	}
	return v.AsInt64()
}

// differs reports whether two values differ for sure as the server compares them, which compares
// numbers of all types, symbols with texts, and the fields of documents so, too.
func differs(a, b bson.RawValue) bool {
	if same(a, b) {
		return false
	}
	kind := func(t bson.Type) bson.Type {
		switch t {
		case bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
			return bson.TypeInt32
		case bson.TypeSymbol:
			return bson.TypeString
		}
		return t
	}
	switch k := kind(a.Type); {
	case k != kind(b.Type):
		return true
	case k == bson.TypeEmbeddedDocument:
		return false
	case k == bson.TypeInt32:
		_, whole1 := whole(a)
		_, whole2 := whole(b)
		return whole1 && whole2
	case k == bson.TypeString:
		return string(a.Value) != string(b.Value)
	}
	return true
}

// null reports whether a value stands for a missing one as well.
func null(v bson.RawValue) bool { return v.Type == bson.TypeNull }

// holds reports whether a value satisfies the condition; the zero value is a missing one.
func (c *condition) holds(v bson.RawValue) bool {
	if v.Type == bson.TypeArray || v.Type == bson.TypeUndefined { // the server would look at its elements
		return false
	}
	missing := v.IsZero() || null(v)
	switch c.op {
	case "$exists":
		return c.values[0].AsBool() != v.IsZero()
	case "$ne", "$nin":
		return !slices.ContainsFunc(c.values, func(not bson.RawValue) bool {
			return null(not) && missing || !v.IsZero() && !differs(v, not)
		})
	}
	return slices.ContainsFunc(c.values, func(want bson.RawValue) bool {
		return null(want) && missing || !v.IsZero() && same(v, want)
	})
}

// check reports whether the value at a path in a document satisfies the condition.
func (c *condition) check(doc bson.Raw, parts []string, advice string) error {
	var at bson.RawValue
	for key, v := range doc.All() {
		if key != parts[0] {
			continue
		}
		if !at.IsZero() {
			return refused("the field %q is there twice", c.path)
		}
		at = v
	}
	if len(parts) > 1 {
		switch inner, ok := at.Document(); {
		case at.Type == bson.TypeArray:
			return refused("the field %q leads into an array: want one value", c.path)
		case at.Type == bson.TypeEmbeddedDocument && ok:
			return c.check(inner, parts[1:], advice)
		}
		at = bson.RawValue{}
	}
	switch {
	case c.holds(at):
		return nil
	case at.IsZero():
		return refused("the field %q is missing: %s, or %s", c.path, advice, wayOut)
	case at.Type == bson.TypeArray:
		return refused("the field %q is an array: want one value", c.path)
	}
	return refused("the field %q has another value than the scope's: %s, or %s", c.path, advice, wayOut)
}

// overlaps reports whether a path of an update leads to the field, to what it is in, or into it.
func (c *condition) overlaps(path string) bool {
	i := 0
	for part := range strings.SplitSeq(path, ".") {
		if index(part) {
			continue
		}
		if i == len(c.parts) {
			return true
		}
		if part != c.parts[i] {
			return false
		}
		i++
	}
	return true
}

// filters returns the conditions as filters, each of one field, for documents that are found under
// prefix. With a collation they hold for bytes all the same: it must not make one text of two.
func filters(conditions []condition, prefix string, collation bson.Raw) ([]bson.Raw, error) {
	locale, _ := collation.Lookup("locale").StringValue()
	folds := collation != nil && locale != "simple"
	var out []bson.Raw
	for _, c := range conditions {
		out = append(out, c.filter(prefix))
		if !folds || c.op != "$eq" && c.op != "$in" {
			continue
		}
		exact := make([]bson.RawValue, 0, len(c.values))
		texts := false
		for _, v := range c.values {
			if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeSymbol {
				return nil, refused("option Collation would compare the text of %q otherwise: %s", c.path, wayOut)
			}
			if s, ok := v.StringValue(); ok {
				if strings.ContainsRune(s, 0) {
					return nil, refused(
						"option Collation cannot be used while %q is compared with a text that has a NUL", c.path)
				}
				v, texts = pattern(s), true
			}
			exact = append(exact, v)
		}
		if texts {
			out = append(out, (&condition{path: c.path, op: "$in", values: exact}).filter(prefix))
		}
	}
	return out, nil
}

// pattern returns the regular expression of one text. Those compare without a collation.
func pattern(s string) bson.RawValue {
	v, _ := bson.MarshalValue(bson.Regex{Pattern: "^" + regexp.QuoteMeta(s) + `\z`})
	return v
}

// filter returns the condition as a filter.
func (c *condition) filter(prefix string) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	key := prefix + c.path
	if v := c.values; c.op == "$eq" && v[0].Type != bson.TypeEmbeddedDocument {
		return bson.EndDocument(bson.AppendRawValue(dst, key, v[0]), start)
	}
	at, dst := bson.BeginDocumentElement(dst, key)
	if c.op == "$in" || c.op == "$nin" {
		in, d := bson.BeginArrayElement(dst, c.op)
		for i, v := range c.values {
			d = append(bson.AppendIndexHeader(d, v.Type, i), v.Value...)
		}
		dst = bson.EndDocument(d, in)
	} else {
		dst = bson.AppendRawValue(dst, c.op, c.values[0])
	}
	return bson.EndDocument(bson.EndDocument(dst, at), start)
}
