package query

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
)

// The shape of a query as query settings and $queryStats know it since version 8.0: the command
// with the types of its values in the place of the values. The shape by which plans are cached is
// another: see Shape.

// DebugShape returns the filter with the types of its values in their place. Conditions stand in
// the order in which they are written.
func (f *Filter) DebugShape() bson.Raw { return filterShape(f.source) }

// ShapeHash is the short form of a command's shape.
func ShapeHash(shape bson.Raw) string {
	sum := sha256.Sum256(shape)
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// filterShape returns the shape of a filter. Several conditions beside each other are an $and.
func filterShape(doc bson.Raw) bson.Raw {
	var parts []bson.Raw
	for k, v := range doc.All() {
		sub, isDoc := v.Document()
		switch {
		case k == "$comment":
		case k == "$and":
			for item := range bson.Raw(v.Value).Values() {
				parts = append(parts, filterShape(item.Value))
			}
		case k == "$or" || k == "$nor":
			v = eachItem(v, func(v bson.RawValue) bson.RawValue { return bsondoc.DocumentValue(filterShape(v.Value)) })
			parts = append(parts, bsondoc.Single(k, v))
		case k == "$expr":
			parts = append(parts, bsondoc.Single(k, ExpressionShape(v)))
		case k == "$jsonSchema":
			parts = append(parts, bsondoc.Single(k, v))
		case k == "$text" && isDoc:
			parts = append(parts, bsondoc.Single(k, bsondoc.DocumentValue(eachElement(sub, LiteralShape))))
		case strings.HasPrefix(k, "$"):
			parts = append(parts, bsondoc.Single(k, LiteralShape(v)))
		case isDoc && hasOperators(sub):
			for _, c := range conditionShapes(sub) {
				parts = append(parts, bsondoc.Single(k, bsondoc.DocumentValue(c)))
			}
		default:
			c := bsondoc.Single("$eq", LiteralShape(v))
			parts = append(parts, bsondoc.Single(k, bsondoc.DocumentValue(c)))
		}
	}
	switch len(parts) {
	case 0:
		return bsondoc.OrEmpty(nil)
	case 1:
		return parts[0]
	}
	return bsondoc.Single("$and", arrayOf(parts))
}

// conditionShapes returns the shapes of the operators that stand in a field, each for itself.
func conditionShapes(doc bson.Raw) (list []bson.Raw) {
	for k, v := range doc.All() {
		sub, isDoc := v.Document()
		switch {
		case isDoc && k == "$not", isDoc && k == "$elemMatch" && hasOperators(sub):
			inner := bsondoc.Build(func(d *bsondoc.Builder) {
				for _, c := range conditionShapes(sub) {
					d.B = append(d.B, c.Elements()...)
				}
			})
			v = bsondoc.DocumentValue(inner)
		case isDoc && k == "$elemMatch":
			v = bsondoc.DocumentValue(filterShape(sub))
		case k == "$all":
			for item := range bson.Raw(v.Value).Values() {
				if c, ok := item.Document(); ok && hasOperators(c) {
					list = append(list, conditionShapes(c)...)
				} else {
					list = append(list, bsondoc.Single("$eq", LiteralShape(item)))
				}
			}
			continue
		case k == "$ne" || k == "$nin" || k == "$exists" && !v.AsBool():
			k, v = "$not", bsondoc.DocumentValue(bsondoc.Single(negates[k], LiteralShape(v)))
		case k == "$type" && v.Type != bson.TypeArray:
			v = bsondoc.ArrayValue(v)
		case k == "$type":
		default:
			v = LiteralShape(v)
		}
		list = append(list, bsondoc.Single(k, v))
	}
	return list
}

// negates are the operators that others are the opposite of.
var negates = map[string]string{"$ne": "$eq", "$nin": "$in", "$exists": "$exists"}

// hasOperators reports whether a document is made of operators on one field.
func hasOperators(doc bson.Raw) bool {
	k, _ := bsondoc.FirstElement(doc)
	switch k {
	case "$and", "$or", "$nor", "$ref", "$id", "$db":
		return false
	}
	return strings.HasPrefix(k, "$")
}

// ExpressionShape returns the shape of an expression, or of a stage's specification: paths and
// variables are part of it, and so are the names of fields and operators.
func ExpressionShape(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return bsondoc.DocumentValue(eachElement(v.Value, ExpressionShape))
	case bson.TypeArray:
		return eachItem(v, ExpressionShape)
	case bson.TypeString:
		if s, _ := v.StringValue(); strings.HasPrefix(s, "$") {
			return v
		}
	}
	return LiteralShape(v)
}

// LiteralShape is what stands in a shape for a value.
func LiteralShape(v bson.RawValue) bson.RawValue {
	if v.Type == bson.TypeArray && bson.Raw(v.Value).IsEmpty() {
		return v
	}
	return bsondoc.StringValue("?" + literalType(v))
}

// literalType names the type of a value as shapes do: numbers are one type, and an array has that
// of its elements, if they have the same.
func literalType(v bson.RawValue) string {
	switch {
	case v.IsNumber():
		return "number"
	case v.Type != bson.TypeArray:
		return bsontext.TypeName(v.Type)
	}
	of := ""
	for item := range bson.Raw(v.Value).Values() {
		name := "?" + literalType(item)
		if of != "" && of != name {
			of = ""
			break
		}
		of = name
	}
	return "array<" + of + ">"
}

func eachElement(doc bson.Raw, f func(bson.RawValue) bson.RawValue) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range doc.All() {
			d.B = bson.AppendRawValue(d.B, k, f(v))
		}
	})
}

func eachItem(v bson.RawValue, f func(bson.RawValue) bson.RawValue) bson.RawValue {
	items := bsondoc.Items(v)
	for i := range items {
		items[i] = f(items[i])
	}
	return bsondoc.ArrayValue(items...)
}

func arrayOf(docs []bson.Raw) bson.RawValue {
	items := make([]bson.RawValue, len(docs))
	for i, doc := range docs {
		items[i] = bsondoc.DocumentValue(doc)
	}
	return bsondoc.ArrayValue(items...)
}
