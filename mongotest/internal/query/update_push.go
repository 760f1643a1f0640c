package query

import (
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

func joinPath(path []string) string { return strings.Join(path, ".") }

// pushOp is $push.
type pushOp struct {
	values   []bson.RawValue
	position int // where to insert; negative counts from the end
	slice    int
	hasSlice bool
	sort     func(a, b bson.RawValue) int
	work     *work.Meter
}

func parsePush(u *Update, _ string, v bson.RawValue) (modifier, error) {
	o := &pushOp{position: math.MaxInt32, work: u.work}
	if v.Type != bson.TypeEmbeddedDocument || lookup(v.Value, "$each").Type == 0 {
		o.values = []bson.RawValue{v}
		return o, nil
	}
	clauses := map[string]bson.RawValue{}
	for key, e := range bson.Raw(v.Value).All() {
		switch key {
		case "$each", "$slice", "$sort", "$position":
		default:
			return nil, badValue("Unrecognized clause in $push: %s", key)
		}
		if _, twice := clauses[key]; twice {
			return nil, badValue("Only one %s is supported.", key)
		}
		clauses[key] = e
	}
	each := clauses["$each"]
	if each.Type != bson.TypeArray {
		return nil, badValue("The argument to $each in $push must be an array but it was of type: %s",
			bsontext.TypeName(each.Type))
	}
	o.values = bsondoc.Items(each)
	if e, ok := clauses["$slice"]; ok {
		n, whole := exactInt64(e)
		if !whole {
			return nil, badValue("The value for $slice must be an integer value but was given type: %s",
				bsontext.TypeName(e.Type))
		}
		o.slice, o.hasSlice = int(n), true
	}
	if e, ok := clauses["$sort"]; ok {
		var err error
		if o.sort, err = parsePushSort(e, u.coll); err != nil {
			return nil, err
		}
	}
	if e, ok := clauses["$position"]; ok {
		n, whole := exactInt64(e)
		if !whole {
			return nil, badValue("The value for $position must be an integer value, not of type: %s",
				bsontext.TypeName(e.Type))
		}
		o.position = int(min(max(n, math.MinInt32), math.MaxInt32))
	}
	return o, nil
}

func parsePushSort(v bson.RawValue, coll *Collation) (func(a, b bson.RawValue) int, error) {
	direction := func(v bson.RawValue) (int, error) {
		if f := Float(v); v.IsNumber() && (f == 1 || f == -1) {
			return int(f), nil
		}
		return 0, badValue("The $sort element value must be either 1 or -1")
	}
	if v.Type != bson.TypeEmbeddedDocument {
		if !v.IsNumber() {
			return nil, badValue(
				"The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
		}
		sign, err := direction(v)
		return func(a, b bson.RawValue) int { return sign * Compare(a, b, coll) }, err
	}
	var paths [][]string
	var signs []int
	for key, e := range bson.Raw(v.Value).All() {
		sign, err := direction(e)
		if err != nil {
			return nil, err
		}
		if key == "" {
			return nil, badValue("The $sort field cannot be empty")
		}
		parts := strings.Split(key, ".")
		if slices.Contains(parts, "") {
			return nil, badValue("The $sort field is a dotted field but has an empty part: %s", key)
		}
		paths, signs = append(paths, parts), append(signs, sign)
	}
	if len(paths) == 0 {
		return nil, badValue("The $sort pattern is empty when it should be a set of fields.")
	}
	return func(a, b bson.RawValue) int {
		for i, path := range paths {
			if c := Compare(plainPath(a, path), plainPath(b, path), coll); c != 0 {
				return c * signs[i]
			}
		}
		return 0
	}, nil
}

// plainPath follows a path without spreading over arrays; a missing value is null.
func plainPath(v bson.RawValue, path []string) bson.RawValue {
	if v.Type != bson.TypeEmbeddedDocument {
		return nullValue
	}
	for _, part := range path {
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			return nullValue
		}
		if v = lookup(v.Value, part); v.Type == 0 {
			return nullValue
		}
	}
	return v
}

func (o *pushOp) update(c *updateRun, _ string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type != bson.TypeArray {
		return old, badValue("The field '%s' must be an array but is of type %s in document {%s}",
			joinPath(c.path), bsontext.TypeName(old.Type), c.id())
	}
	if len(o.values) == 0 && o.sort == nil && !o.hasSlice {
		return old, nil
	}
	list := bsondoc.Items(old)
	at := min(o.position, len(list))
	if at < 0 {
		at = max(len(list)+at, 0)
	}
	list = slices.Insert(list, at, o.values...)
	if o.sort != nil {
		slices.SortStableFunc(list, work.Counting(o.work, o.sort))
		c.modified = true // the server does not look whether the order was right already
	}
	if o.hasSlice {
		switch n := o.slice; {
		case n >= 0:
			list = list[:min(n, len(list))]
		default:
			list = list[max(len(list)+n, 0):]
		}
	}
	return bsondoc.ArrayValue(list...), nil
}

func (o *pushOp) create(c *updateRun) (bson.RawValue, error) {
	if len(o.values) == 0 {
		return bsondoc.ArrayValue(nil...), nil
	}
	return o.update(c, "", bsondoc.ArrayValue(nil...))
}

func (o *pushOp) traits() traits { return traits{creates: true} }

// newElements returns the elements that the operator adds, with the names that they have in
// messages.
func (o *pushOp) newElements() (names []string, values []bson.RawValue) {
	return make([]string, len(o.values)), o.values
}

// addToSetOp is $addToSet.
type addToSetOp struct {
	names  []string
	values []bson.RawValue
	coll   *Collation
	work   *work.Meter
}

func parseAddToSet(u *Update, field string, v bson.RawValue) (modifier, error) {
	o := &addToSetOp{coll: u.coll, work: u.work}
	key, each := "", bson.RawValue{}
	if v.Type == bson.TypeEmbeddedDocument {
		key, each, _ = firstElement(v.Value)
	}
	if key != "$each" {
		o.names, o.values = []string{field}, []bson.RawValue{v}
		return o, nil
	}
	if each.Type != bson.TypeArray {
		return nil, srverr.New(srverr.TypeMismatch,
			"The argument to $each in $addToSet must be an array but it was of type %s",
			bsontext.TypeName(each.Type))
	}
	if countElements(v.Value) > 1 {
		return nil, badValue("Found unexpected fields after $each in $addToSet: %s", bsontext.Document(v.Value))
	}
	for key, e := range bson.Raw(each.Value).All() {
		if !o.contains(o.values, e) {
			o.names, o.values = append(o.names, key), append(o.values, e)
		}
	}
	return o, nil
}

func (o *addToSetOp) contains(list []bson.RawValue, v bson.RawValue) bool {
	o.work.Do(1 + len(list))
	return slices.ContainsFunc(list, func(x bson.RawValue) bool { return Equal(x, v, o.coll) })
}

func (o *addToSetOp) update(_ *updateRun, name string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type != bson.TypeArray {
		return old, badValue("Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s",
			name, bsontext.TypeName(old.Type))
	}
	list := bsondoc.Items(old)
	n := len(list)
	for _, v := range o.values {
		if !o.contains(list[:n], v) {
			list = append(list, v)
		}
	}
	if len(list) == n {
		return old, nil
	}
	return bsondoc.ArrayValue(list...), nil
}

func (o *addToSetOp) create(*updateRun) (bson.RawValue, error) {
	return bsondoc.ArrayValue(o.values...), nil
}
func (o *addToSetOp) traits() traits { return traits{creates: true} }

func (o *addToSetOp) newElements() (names []string, values []bson.RawValue) { return o.names, o.values }

// checkNewValue checks that the value a modifier made may be stored.
func (u *Update) checkNewValue(op modifier, v bson.RawValue, path []string) error {
	adder, ok := op.(interface {
		newElements() ([]string, []bson.RawValue)
	})
	if !ok {
		return u.checkValue(v, path, len(path))
	}
	names, values := adder.newElements()
	for i, e := range values {
		if err := u.checkValue(e, append(path[:len(path):len(path)], names[i]), len(path)+1); err != nil {
			return err
		}
	}
	return nil
}
