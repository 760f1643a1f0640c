package query

import (
	"maps"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// modifiers are the update operators. $rename has its own place, see addRename.
var modifiers map[string]func(u *Update, field string, arg bson.RawValue) (modifier, error)

func init() {
	modifiers = map[string]func(u *Update, field string, arg bson.RawValue) (modifier, error){
		"$set": func(u *Update, _ string, v bson.RawValue) (modifier, error) {
			return u.newSet(setOp{v: v}), nil
		},
		"$setOnInsert": func(u *Update, _ string, v bson.RawValue) (modifier, error) {
			return u.newSet(setOp{v: v, insertOnly: true}), nil
		},
		"$unset": func(*Update, string, bson.RawValue) (modifier, error) { return unsetOp{}, nil },
		"$inc":   parseArithmetic("$inc", "increment", addNumbers),
		"$mul":   parseArithmetic("$mul", "multiply", multiplyNumbers),
		"$min": func(u *Update, _ string, v bson.RawValue) (modifier, error) {
			return &extremeOp{v, -1, u.coll}, nil
		},
		"$max": func(u *Update, _ string, v bson.RawValue) (modifier, error) {
			return &extremeOp{v, +1, u.coll}, nil
		},
		"$currentDate": parseCurrentDate,
		"$bit":         parseBit,
		"$push":        parsePush,
		"$addToSet":    parseAddToSet,
		"$pop":         parsePop,
		"$pull":        parsePull,
		"$pullAll":     parsePullAll,
		"$rename":      nil,
	}
}

// setOp is $set and $setOnInsert.
type setOp struct {
	v          bson.RawValue
	insertOnly bool
}

func (u *Update) newSet(o setOp) *setOp {
	if u.firstSet.v.Type == 0 {
		u.firstSet = o
		return &u.firstSet
	}
	c := o
	return &c
}

func (o *setOp) update(*updateRun, string, bson.RawValue) (bson.RawValue, error) { return o.v, nil }
func (o *setOp) create(*updateRun) (bson.RawValue, error)                        { return o.v, nil }
func (o *setOp) traits() traits {
	return traits{creates: true, sets: true, insertOnly: o.insertOnly}
}

// unsetOp is $unset.
type unsetOp struct{}

func (unsetOp) update(*updateRun, string, bson.RawValue) (bson.RawValue, error) {
	return bson.RawValue{}, nil
}
func (unsetOp) create(*updateRun) (bson.RawValue, error) { return bson.RawValue{}, nil }
func (unsetOp) traits() traits                           { return traits{ignoresPath: true} }

// extremeOp is $min (sign -1) and $max (sign +1).
type extremeOp struct {
	v    bson.RawValue
	sign int
	coll *Collation
}

func (o *extremeOp) update(_ *updateRun, _ string, old bson.RawValue) (bson.RawValue, error) {
	if Compare(o.v, old, o.coll)*o.sign > 0 {
		return o.v, nil
	}
	return old, nil
}
func (o *extremeOp) create(*updateRun) (bson.RawValue, error) { return o.v, nil }
func (o *extremeOp) traits() traits                           { return traits{creates: true, sets: true} }

// arithmeticOp is $inc and $mul.
type arithmeticOp struct {
	name    string
	operand bson.RawValue
	compute func(a, b bson.RawValue) (bson.RawValue, bool)
}

func parseArithmetic(name, verb string, compute func(a, b bson.RawValue) (bson.RawValue, bool)) func(*Update, string,
	bson.RawValue) (modifier, error) {
	return func(_ *Update, field string, v bson.RawValue) (modifier, error) {
		if !v.IsNumber() {
			return nil, srverr.New(srverr.TypeMismatch, "Cannot %s with non-numeric argument: {%s}", verb,
				bsontext.Element(field, v))
		}
		return &arithmeticOp{name, v, compute}, nil
	}
}

func (o *arithmeticOp) update(c *updateRun, name string, old bson.RawValue) (bson.RawValue, error) {
	if !old.IsNumber() {
		return old, srverr.New(srverr.TypeMismatch,
			"Cannot apply %s to a value of non-numeric type. {%s} has the field '%s' "+
				"of non-numeric type %s", o.name, c.id(), name, bsontext.TypeName(old.Type))
	}
	v, ok := o.compute(old, o.operand)
	if !ok {
		return old, badValue("Failed to apply %s operations to current value (%s) for document {%s}", o.name,
			debugNumber(old), c.id())
	}
	switch {
	case isNaN(v):
		c.modified = true // NaN is never the value that was there before
	case v.Type == bson.TypeDouble && old.Type == bson.TypeDouble && Float(v) == Float(old):
		return old, nil // 0 is -0
	case v.Type == bson.TypeDecimal128 && old.Type == bson.TypeDecimal128 && bson.Compare(v, old) == 0:
		return old, nil
	}
	return v, nil
}

func (o *arithmeticOp) create(*updateRun) (bson.RawValue, error) {
	if o.name == "$inc" {
		return o.operand, nil
	}
	v, _ := o.compute(bsondoc.Int32Value(0), o.operand)
	return v, nil
}

func (o *arithmeticOp) traits() traits { return traits{creates: true} }

// currentDateOp is $currentDate.
type currentDateOp struct{ timestamp bool }

func parseCurrentDate(_ *Update, _ string, v bson.RawValue) (modifier, error) {
	switch v.Type {
	case bson.TypeBoolean:
		return &currentDateOp{}, nil
	case bson.TypeEmbeddedDocument:
		var op *currentDateOp
		for key, e := range bson.Raw(v.Value).All() {
			if key != "$type" {
				return nil, badValue("Unrecognized $currentDate option: %s", key)
			}
			switch s, _ := e.StringValue(); s {
			case "date":
				op = &currentDateOp{}
			case "timestamp":
				op = &currentDateOp{timestamp: true}
			}
		}
		if op != nil {
			return op, nil
		}
		return nil, badValue(
			"The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
	}
	return nil, badValue("%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression "+
		"({$type: 'timestamp/date'}).", bsontext.TypeName(v.Type))
}

func (o *currentDateOp) update(c *updateRun, _ string, _ bson.RawValue) (bson.RawValue, error) {
	return o.create(c)
}

func (o *currentDateOp) create(c *updateRun) (bson.RawValue, error) {
	if o.timestamp {
		return bson.RawValue{Type: bson.TypeTimestamp, Value: bson.AppendTimestampValue(nil, c.clock.Timestamp)}, nil
	}
	return bson.RawValue{Type: bson.TypeDateTime, Value: bson.AppendInt64Value(nil, int64(c.clock.Now))}, nil
}

func (o *currentDateOp) traits() traits { return traits{creates: true} }

// bitOp is $bit: a list of operations with integers.
type bitOp struct {
	ops  []byte // '&', '|', '^'
	args []bson.RawValue
}

func parseBit(_ *Update, _ string, v bson.RawValue) (modifier, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, badValue("The $bit modifier is not compatible with a %s. You must pass in an embedded document: "+
			"{$bit: {field: {and/or/xor: #}}", bsontext.TypeName(v.Type))
	}
	o := &bitOp{}
	for key, arg := range bson.Raw(v.Value).All() {
		switch key {
		case "and":
			o.ops = append(o.ops, '&')
		case "or":
			o.ops = append(o.ops, '|')
		case "xor":
			o.ops = append(o.ops, '^')
		default:
			return nil, badValue(
				"The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s}",
				key, bsontext.Element(key, arg))
		}
		if arg.Type != bson.TypeInt32 && arg.Type != bson.TypeInt64 {
			return nil, badValue(
				"The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s}",
				bsontext.TypeName(arg.Type), bsontext.Element(key, arg))
		}
		o.args = append(o.args, arg)
	}
	if len(o.ops) == 0 {
		return nil, badValue(
			"You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}")
	}
	return o, nil
}

func (o *bitOp) update(c *updateRun, name string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type != bson.TypeInt32 && old.Type != bson.TypeInt64 {
		return old, badValue(
			"Cannot apply $bit to a value of non-integral type.%s has the field %s of non-integer type %s", // sic
			c.id(), name, bsontext.TypeName(old.Type))
	}
	n, _ := old.AsInt64()
	long := old.Type == bson.TypeInt64
	for i, arg := range o.args {
		m, _ := arg.AsInt64()
		long = long || arg.Type == bson.TypeInt64
		switch o.ops[i] {
		case '&':
			n &= m
		case '|':
			n |= m
		case '^':
			n ^= m
		}
	}
	if long {
		return bsondoc.Int64Value(n), nil
	}
	return bsondoc.Int32Value(int32(n)), nil
}

func (o *bitOp) create(c *updateRun) (bson.RawValue, error) {
	return o.update(c, "", bsondoc.Int32Value(0))
}
func (o *bitOp) traits() traits { return traits{creates: true} }

// popOp is $pop.
type popOp struct{ first bool }

func parsePop(_ *Update, field string, v bson.RawValue) (modifier, error) {
	n, err := parseLong(field, v)
	if err != nil {
		return nil, err
	}
	if n != 1 && n != -1 {
		return nil, srverr.New(srverr.FailedToParse, "$pop expects 1 or -1, found: %d", n)
	}
	return &popOp{first: n == -1}, nil
}

func (o *popOp) update(c *updateRun, _ string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type != bson.TypeArray {
		return old, srverr.New(srverr.TypeMismatch, "Path '%s' contains an element of non-array type '%s'",
			joinPath(c.path), bsontext.TypeName(old.Type))
	}
	list := bsondoc.Items(old)
	switch {
	case len(list) == 0:
		return old, nil
	case o.first:
		return bsondoc.ArrayValue(list[1:]...), nil
	}
	return bsondoc.ArrayValue(list[:len(list)-1]...), nil
}

func (o *popOp) create(*updateRun) (bson.RawValue, error) { return bson.RawValue{}, nil }
func (o *popOp) traits() traits                           { return traits{} }

// pullOp is $pull and $pullAll: it removes the elements that match.
type pullOp struct {
	match func(bson.RawValue) bool
	work  *work.Meter
}

func (o *pullOp) update(_ *updateRun, _ string, old bson.RawValue) (bson.RawValue, error) {
	if old.Type != bson.TypeArray {
		return old, badValue("Cannot apply $pull to a non-array value")
	}
	list := bsondoc.Items(old)
	kept := slices.DeleteFunc(list[:len(list):len(list)], func(e bson.RawValue) bool {
		o.work.Do(1)
		return o.match(e)
	})
	if len(kept) == len(list) {
		return old, nil
	}
	return bsondoc.ArrayValue(kept...), nil
}

func (o *pullOp) create(*updateRun) (bson.RawValue, error) { return bson.RawValue{}, nil }
func (o *pullOp) traits() traits                           { return traits{} }

// parsePull tells three kinds of conditions apart: a document of conditions on the elements'
// fields, operators on the elements themselves, and a value.
func parsePull(u *Update, _ string, v bson.RawValue) (modifier, error) {
	o := (&Options{Collation: u.coll, Version: u.version, Work: u.work}).plain()
	first := ""
	if v.Type == bson.TypeEmbeddedDocument {
		first, _, _ = firstElement(v.Value)
	}
	switch {
	case v.Type == bson.TypeEmbeddedDocument &&
		(filterOps[first].traits&inPull == 0 || first == "$eq" && !u.version.AtLeast(5, 0)):
		f, err := ParseFilter(v.Value, o)
		if err != nil {
			return nil, err
		}
		return &pullOp{work: u.work, match: func(e bson.RawValue) bool {
			if e.Type != bson.TypeEmbeddedDocument {
				return false
			}
			ok, _, _ := f.root.match(e.Value)
			return ok
		}}, nil
	case v.Type == bson.TypeEmbeddedDocument, v.Type == bson.TypeRegex:
		f, err := ParseFilter(wrap(v), o)
		if err != nil {
			return nil, err
		}
		return &pullOp{work: u.work, match: func(e bson.RawValue) bool {
			ok, _, _ := f.root.match(wrap(e))
			return ok
		}}, nil
	}
	return &pullOp{work: u.work, match: func(e bson.RawValue) bool { return Equal(e, v, u.coll) }}, nil
}

// wrap returns {"": v}.
func wrap(v bson.RawValue) bson.Raw { return bsondoc.Single("", v) }

func parsePullAll(u *Update, _ string, v bson.RawValue) (modifier, error) {
	if v.Type != bson.TypeArray {
		return nil, badValue("$pullAll requires an array argument but was given a %s", bsontext.TypeName(v.Type))
	}
	values := bsondoc.Items(v)
	return &pullOp{work: u.work, match: func(e bson.RawValue) bool {
		u.work.Do(len(values))
		return slices.ContainsFunc(values, func(x bson.RawValue) bool { return Equal(e, x, u.coll) })
	}}, nil
}

// UpdateOperators lists the update operators by name.
func UpdateOperators() []string { return slices.Sorted(maps.Keys(modifiers)) }
