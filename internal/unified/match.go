package unified

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"allium/bson"
)

// lookup gives the matcher the entities that special operators name.
type lookup interface {
	// value returns a BSON entity.
	value(name string) (bson.RawValue, error)
	// lsid returns the session id of a session entity.
	lsid(name string) (bson.Raw, error)
}

// match compares an actual value with an expected one by the rules of the specification Unified
// Test Format, "Evaluating Matches". root says that a document is a root-level one, which may have
// more fields than are expected. A zero actual stands for a value that does not exist.
func match(expected, actual bson.RawValue, root bool, entities lookup) error {
	m := matcher{entities: entities}
	return m.value("", expected, actual, root)
}

// matchRoots compares an array of root-level documents, such as the result of find.
func matchRoots(expected, actual bson.Raw, entities lookup) error {
	m := matcher{entities: entities}
	return m.array("", expected, actual, true)
}

// A mismatch is an error of the test itself if its expected value is malformed or names an entity
// that is not there: it then fails also where the test wants no match.
type matcher struct {
	entities lookup
}

func (m *matcher) value(path string, expected, actual bson.RawValue, root bool) error {
	switch expected.Type {
	case bson.TypeEmbeddedDocument:
		if op, arg, ok := operator(expected); ok {
			return m.operator(path, op, arg, actual, root)
		}
		return m.document(path, expected.Value, actual, root)
	case bson.TypeArray:
		arr, ok := actual.Array()
		if !ok {
			return mismatch(path, expected, actual)
		}
		return m.array(path, expected.Value, arr, false)
	}
	if actual.IsZero() || !same(expected, actual) {
		return mismatch(path, expected, actual)
	}
	return nil
}

// operator returns the special operator that v is, a document whose only key begins with $$.
func operator(v bson.RawValue) (name string, arg bson.RawValue, ok bool) {
	doc, isDoc := v.Document()
	if !isDoc {
		return "", arg, false
	}
	n := 0
	for key, el := range doc.All() {
		name, arg = key, el
		n++
	}
	return name, arg, n == 1 && strings.HasPrefix(name, "$$")
}

func (m *matcher) document(path string, expected bson.Raw, actual bson.RawValue, root bool) error {
	doc, ok := actual.Document()
	if !ok {
		return mismatch(path, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: expected}, actual)
	}
	named := map[string]bool{}
	for key, want := range expected.All() {
		named[key] = true
		if err := m.value(join(path, key), want, doc.Lookup(key), false); err != nil {
			return err
		}
	}
	if root {
		return nil
	}
	for key, v := range doc.All() {
		if !named[key] {
			return fmt.Errorf("%s: not expected, but is %v", join(path, key), v)
		}
	}
	return nil
}

func (m *matcher) array(path string, expected, actual bson.Raw, roots bool) error {
	var got []bson.RawValue
	for v := range actual.Values() {
		got = append(got, v)
	}
	i := 0
	for want := range expected.Values() {
		if i < len(got) {
			if err := m.value(join(path, strconv.Itoa(i)), want, got[i], roots); err != nil {
				return err
			}
		}
		i++
	}
	if i != len(got) {
		return fmt.Errorf("%s: %d elements expected, got %d: %v", path, i, len(got),
			bson.RawValue{Type: bson.TypeArray, Value: actual})
	}
	return nil
}

// operator applies a special operator.
func (m *matcher) operator(path, op string, arg, actual bson.RawValue, root bool) error {
	switch op {
	case "$$exists":
		want, ok := arg.Boolean()
		if !ok {
			return broken("%s: $$exists takes a boolean, not %v", path, arg)
		}
		if want == actual.IsZero() {
			return fmt.Errorf("%s: exists is %v, expected %v", path, !want, want)
		}
		return nil
	case "$$type":
		return m.typeOf(path, arg, actual)
	case "$$matchesEntity":
		name, ok := arg.StringValue()
		if !ok {
			return broken("%s: $$matchesEntity takes a name, not %v", path, arg)
		}
		want, err := m.entities.value(name)
		if err != nil {
			return broken("%s: %w", path, err)
		}
		return m.value(path, want, actual, root)
	case "$$matchesHexBytes":
		digits, isString := arg.StringValue()
		want, err := hex.DecodeString(digits)
		if err != nil || !isString {
			return broken("%s: $$matchesHexBytes takes hexadecimal digits, not %v", path, arg)
		}
		got, ok := actual.StringValue()
		if b, isBinary := actual.Binary(); isBinary {
			got, ok = string(b.Data), true
		}
		if !ok || got != string(want) {
			return fmt.Errorf("%s: expected bytes %x, got %v", path, want, actual)
		}
		return nil
	case "$$unsetOrMatches":
		if actual.IsZero() {
			return nil
		}
		return m.value(path, arg, actual, root)
	case "$$sessionLsid":
		name, _ := arg.StringValue()
		want, err := m.entities.lsid(name)
		if err != nil {
			return broken("%s: %w", path, err)
		}
		got, ok := actual.Document()
		if s, isString := actual.StringValue(); isString { // the attribute of a span
			id, isID := want.Lookup("id").Binary()
			got, ok = want, isID && len(id.Data) == len(bson.UUID{}) && s == bson.UUID(id.Data).String()
		}
		if !ok || !bson.Equal(want, got) {
			return fmt.Errorf("%s: expected the id of session %s, got %v", path, name, actual)
		}
		return nil
	case "$$lte":
		comparable := actual.Type == arg.Type || flexible(actual) && flexible(arg)
		if actual.IsZero() || !comparable || bson.Compare(actual, arg) > 0 {
			return fmt.Errorf("%s: expected at most %v, got %v", path, arg, actual)
		}
		return nil
	case "$$matchAsDocument":
		doc, err := parsed(actual)
		if err != nil {
			return fmt.Errorf("%s: $$matchAsDocument: %w", path, err)
		}
		return m.value(path, arg, doc, false)
	case "$$matchAsRoot":
		if op, inner, ok := operator(arg); ok {
			return m.operator(path, op, inner, actual, true)
		}
		return m.value(path, arg, actual, true)
	}
	return broken("%s: special operator %s is not known", path, op)
}

// parsed returns the document that a string holds as Extended JSON.
func parsed(v bson.RawValue) (bson.RawValue, error) {
	s, ok := v.StringValue()
	if !ok {
		return v, fmt.Errorf("not a string but %v", v)
	}
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(s), &raw); err != nil {
		return v, err
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}, nil
}

// typeNames are the names of the types as $type of the query language has them.
var typeNames = map[string][]bson.Type{
	"double": {bson.TypeDouble}, "string": {bson.TypeString}, "object": {bson.TypeEmbeddedDocument},
	"array":   {bson.TypeArray},
	"binData": {bson.TypeBinary}, "undefined": {bson.TypeUndefined}, "objectId": {bson.TypeObjectID},
	"bool": {bson.TypeBoolean},
	"date": {bson.TypeDateTime}, "null": {bson.TypeNull}, "regex": {bson.TypeRegex}, "dbPointer": {bson.TypeDBPointer},
	"javascript": {bson.TypeJavaScript}, "symbol": {bson.TypeSymbol}, "javascriptWithScope": {bson.TypeCodeWithScope},
	"int": {bson.TypeInt32}, "timestamp": {bson.TypeTimestamp}, "long": {bson.TypeInt64},
	"decimal": {bson.TypeDecimal128},
	"minKey":  {bson.TypeMinKey}, "maxKey": {bson.TypeMaxKey},
	"number": {bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128},
}

func (m *matcher) typeOf(path string, arg, actual bson.RawValue) error {
	var names []bson.RawValue
	if arr, ok := arg.Array(); ok {
		for v := range arr.Values() {
			names = append(names, v)
		}
	} else {
		names = []bson.RawValue{arg}
	}
	for _, n := range names {
		name, _ := n.StringValue()
		types, ok := typeNames[name]
		if !ok {
			return broken("%s: $$type %v is not known", path, n)
		}
		for _, t := range types {
			if actual.Type == t && !actual.IsZero() {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: expected a value of type %v, got %v", path, arg, actual)
}

// same compares two values that are neither documents nor arrays. Integers and doubles are equal by
// value.
func same(a, b bson.RawValue) bool {
	if flexible(a) && flexible(b) {
		return bson.Compare(a, b) == 0
	}
	// A document inside of a value matches exactly, in whatever order its keys are.
	return a.Type == b.Type && bson.Compare(normalized(a), normalized(b)) == 0
}

func flexible(v bson.RawValue) bool {
	return v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64 || v.Type == bson.TypeDouble
}

func mismatch(path string, expected, actual bson.RawValue) error {
	if actual.IsZero() {
		return fmt.Errorf("%s: expected %v, but it does not exist", path, expected)
	}
	return fmt.Errorf("%s: expected %v, got %v", path, expected, actual)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
