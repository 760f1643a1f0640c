package expr

// Array operators with positional operands.

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerNary(
		&naryOp{name: "$arrayElemAt", arity: exactly(2), eval: evalArrayElemAt},
		&naryOp{name: "$concatArrays", arity: any0, associative: true,
			operand: arrayOperand(28664, "$concatArrays only supports arrays, not %s"), eval: evalConcatArrays},
		&naryOp{name: "$isArray", arity: exactly(1), eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
			return boolValue(args[0].Type == bson.TypeArray), nil
		}},
		&naryOp{name: "$in", arity: exactly(2), eval: evalIn},
		&naryOp{name: "$indexOfArray", arity: arity{2, 4}, last: 1, operand: searchedArray, eval: evalIndexOfArray,
			constants: checkSearched},
		&naryOp{name: "$range", arity: arity{2, 3}, operand: rangeBounds, eval: evalRange},
		&naryOp{name: "$reverseArray", arity: exactly(1), eval: evalReverseArray},
		&naryOp{name: "$size", arity: exactly(1), eval: evalSize},
		&naryOp{name: "$slice", arity: arity{2, 3}, operand: slicedArray, eval: evalSlice},
		&naryOp{name: "$arrayToObject", arity: exactly(1), eval: evalArrayToObject},
	)
	registerNary(
		&naryOp{name: "$first", arity: exactly(1), eval: firstOrLast("$first", 0)},
		&naryOp{name: "$last", arity: exactly(1), eval: firstOrLast("$last", -1)},
	)
}

// at returns an array's item, counted from the end if i is negative; missing if there is none.
func at(array bson.RawValue, i int64) bson.RawValue {
	if i >= 0 {
		for item := range bson.Raw(array.Value).Values() {
			if i == 0 {
				return item
			}
			i--
		}
		return missing
	}
	all := bsondoc.Items(array)
	if -i > int64(len(all)) {
		return missing
	}
	return all[int64(len(all))+i]
}

func evalArrayElemAt(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	array, index := args[0], args[1]
	switch {
	case nullish(array) || nullish(index):
		return null, nil
	case array.Type != bson.TypeArray:
		return missing, srverr.New(28689, "$arrayElemAt's first argument must be an array, but is %s", typeName(array))
	case !index.IsNumber():
		return missing, srverr.New(28690, "$arrayElemAt's second argument must be a numeric value, but is %s",
			typeName(index))
	case !integral(index):
		return missing, srverr.New(
			28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s",
			shortDouble(toDouble(index)))
	}
	return at(array, toLong(index)), nil
}

func firstOrLast(name string, i int64) func(*State, []bson.RawValue) (bson.RawValue, error) {
	return func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
		switch v := args[0]; {
		case nullish(v):
			return null, nil
		case v.Type != bson.TypeArray:
			return missing, srverr.New(28689, "%s's argument must be an array, but is %s", name, typeName(v))
		default:
			return at(v, i), nil
		}
	}
}

// arrayOperand returns the check of an operator whose operands are arrays; null and missing make it
// null.
func arrayOperand(code int32, message string) func(*State, []bson.RawValue, int) (bool, error) {
	return func(_ *State, args []bson.RawValue, _ int) (done bool, err error) {
		v := args[len(args)-1]
		if v.Type != bson.TypeArray && !nullish(v) {
			return false, srverr.New(code, message, typeName(v))
		}
		return nullish(v), nil
	}
}

func evalConcatArrays(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	b := newArray()
	for _, v := range args {
		for item := range bson.Raw(v.Value).Values() {
			b.add(item)
		}
		if len(b.dst) > maxResult {
			return missing, tooLarge()
		}
	}
	return b.value(), nil
}

func evalIn(st *State, args []bson.RawValue) (bson.RawValue, error) {
	if args[1].Type != bson.TypeArray {
		return missing, srverr.New(40081, "$in requires an array as a second argument, found: %s", typeName(args[1]))
	}
	for item := range bson.Raw(args[1].Value).Values() {
		if st.env.compare(args[0], item) == 0 {
			return trueValue, nil
		}
	}
	return falseValue, nil
}

// searchedArray looks at the array, then at the bounds one by one.
func searchedArray(st *State, args []bson.RawValue, n int) (done bool, err error) {
	switch v := args[len(args)-1]; {
	case len(args) == n:
		return false, nil // what is searched
	case len(args) > 1:
		_, _, err = indexBounds(st, "$indexOfArray", args[1:])
		return false, err
	case v.Type == bson.TypeArray:
		return false, nil
	case !nullish(v):
		return false, srverr.New(40090, "$indexOfArray requires an array as a first argument, found: %s", typeName(v))
	}
	return true, nil
}

// checkSearched refuses a constant first operand of $indexOfArray that is no array.
func checkSearched(args []Expr, _ *Env) (*naryOp, error) {
	if v, ok := Constant(args[0]); ok && v.Type != bson.TypeArray && !nullish(v) {
		return nil, srverr.New(50809, "First operand of $indexOfArray must be an array. First argument is of type: %s",
			typeName(v))
	}
	return nil, nil
}

func evalIndexOfArray(st *State, args []bson.RawValue) (bson.RawValue, error) {
	token := args[len(args)-1]
	start, end, err := indexBounds(st, "$indexOfArray", args[1:len(args)-1])
	if err != nil {
		return missing, err
	}
	i := int64(0)
	for item := range bson.Raw(args[0].Value).Values() {
		if i >= end {
			break
		}
		if i >= start && st.env.compare(item, token) == 0 {
			return bsondoc.Int32Value(int32(i)), nil
		}
		i++
	}
	return bsondoc.Int32Value(-1), nil
}

// rangeBounds looks at the bounds of $range before the step is evaluated.
func rangeBounds(_ *State, args []bson.RawValue, _ int) (done bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	start, end := args[0], args[1]
	switch {
	case !start.IsNumber():
		err = srverr.New(34443, "$range requires a numeric starting value, found value of type: %s", typeName(start))
	case !integral(start):
		err = srverr.New(
			34444, "$range requires a starting value that can be represented as a 32-bit integer, found value: %s",
			Text(start))
	case !end.IsNumber():
		err = srverr.New(34445, "$range requires a numeric ending value, found value of type: %s", typeName(end))
	case !integral(end):
		err = srverr.New(
			34446, "$range requires an ending value that can be represented as a 32-bit integer, found value: %s",
			Text(end))
	}
	return false, err
}

func evalRange(st *State, args []bson.RawValue) (bson.RawValue, error) {
	start, end := args[0], args[1]
	step := int64(1)
	if len(args) == 3 {
		switch v := args[2]; {
		case !v.IsNumber():
			return missing,
				srverr.New(34447, "$range requires a numeric step value, found value of type:%s", typeName(v))
		case !integral(v):
			return missing, srverr.New(
				34448, "$range requires a step value that can be represented as a 32-bit integer, found value: %s",
				Text(v))
		case toLong(v) == 0:
			return missing, srverr.New(34449, "$range requires a non-zero step value")
		default:
			step = toLong(v)
		}
	}
	b := newArray()
	for i, stop := toLong(start), toLong(end); step > 0 && i < stop || step < 0 && i > stop; i += step {
		if b.add(bsondoc.Int32Value(int32(i))); len(b.dst) > maxResult {
			return missing, tooLarge()
		}
		if err := st.step(); err != nil {
			return missing, err
		}
	}
	return b.value(), nil
}

func evalReverseArray(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	if nullish(args[0]) {
		return null, nil
	}
	if args[0].Type != bson.TypeArray {
		return missing, srverr.New(34435, "The argument to $reverseArray must be an array, but was of type: %s",
			typeName(args[0]))
	}
	all := bsondoc.Items(args[0])
	slices.Reverse(all)
	return arrayOf(all), nil
}

func evalSize(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	if args[0].Type != bson.TypeArray {
		return missing, srverr.New(17124, "The argument to $size must be an array, but was of type: %s",
			typeName(args[0]))
	}
	n := int32(0)
	for range bson.Raw(args[0].Value).Values() {
		n++
	}
	return bsondoc.Int32Value(n), nil
}

// slicedArray looks at the array and the first number before the second one is evaluated.
func slicedArray(_ *State, args []bson.RawValue, _ int) (done bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	array, first := args[0], args[1]
	switch {
	case nullish(array) || nullish(first):
		return true, nil
	case array.Type != bson.TypeArray:
		err = srverr.New(28724, "First argument to $slice must be an array, but is of type: %s", typeName(array))
	case !first.IsNumber():
		err = srverr.New(28725, "Second argument to $slice must be a numeric value, but is of type: %s",
			typeName(first))
	case !integral(first):
		err = srverr.New(28726, "Second argument to $slice can't be represented as a 32-bit integer: %s",
			shortDouble(toDouble(first)))
	}
	return false, err
}

func evalSlice(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	array, first := args[0], args[1]
	all := bsondoc.Items(array)
	size := int64(len(all))
	from, n := int64(0), toLong(first)
	if len(args) == 2 {
		if n < 0 {
			from = max(0, size+n)
			n = -n
		}
		return arrayOf(all[from:min(size, from+n)]), nil
	}
	from = n
	switch count := args[2]; {
	case nullish(count):
		return null, nil
	case !count.IsNumber():
		return missing, srverr.New(28727, "Third argument to $slice must be numeric, but is of type: %s",
			typeName(count))
	case !integral(count):
		return missing, srverr.New(28728, "Third argument to $slice can't be represented as a 32-bit integer: %s",
			shortDouble(toDouble(count)))
	case toLong(count) <= 0:
		return missing, srverr.New(28729, "Third argument to $slice must be positive: %d", toLong(count))
	default:
		n = toLong(count)
	}
	if from < 0 {
		from = max(0, size+from)
	}
	from = min(from, size)
	return arrayOf(all[from:min(size, from+n)]), nil
}

func evalArrayToObject(st *State, args []bson.RawValue) (bson.RawValue, error) {
	v := args[0]
	if nullish(v) {
		return null, nil
	}
	if v.Type != bson.TypeArray {
		return missing, srverr.New(40386, "$arrayToObject requires an array input, found: %s", typeName(v))
	}
	all := bsondoc.Items(v)
	out := newFields()
	if len(all) == 0 {
		return out.value(), nil
	}
	switch all[0].Type {
	case bson.TypeArray:
		for _, item := range all {
			if item.Type != bson.TypeArray {
				return missing, srverr.New(
					40396, "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. Array was detected, now found: %s", typeName(item))
			}
			pair := bsondoc.Items(item)
			if len(pair) != 2 {
				return missing, srverr.New(40397,
					"$arrayToObject requires an array of size 2 arrays,found array of size: %d", len(pair))
			}
			if !isString(pair[0]) {
				return missing, srverr.New(
					40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s", typeName(pair[0]))
			}
			if err := checkKey(4940400, pair[0]); err != nil {
				return missing, err
			}
			out.set(text(pair[0]), pair[1])
		}
	case bson.TypeEmbeddedDocument:
		for _, item := range all {
			if item.Type != bson.TypeEmbeddedDocument {
				return missing, srverr.New(
					40391, "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. Object was detected, now found: %s", typeName(item))
			}
			n := 0
			for range bson.Raw(item.Value).All() {
				n++
			}
			if n != 2 {
				return missing, srverr.New(40392,
					"$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", n)
			}
			k, value := bson.Raw(item.Value).Lookup("k"), bson.Raw(item.Value).Lookup("v")
			if k.Type == 0 || value.Type == 0 {
				return missing, srverr.New(
					40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s", Text(item))
			}
			if !isString(k) {
				return missing, srverr.New(
					40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s", typeName(k))
			}
			if err := checkKey(4940401, k); err != nil {
				return missing, err
			}
			out.set(text(k), value)
		}
	default:
		return missing, srverr.New(40398, "Unrecognised input type format for $arrayToObject: %s", typeName(all[0]))
	}
	return out.value(), nil
}

// checkKey refuses keys that BSON cannot hold.
func checkKey(code int32, k bson.RawValue) error {
	for _, c := range []byte(text(k)) {
		if c == 0 {
			return srverr.New(code, "Key field cannot contain an embedded null byte")
		}
	}
	return nil
}

// fields builds a document whose keys are unique: a later value takes the place of an earlier one.
type fields struct {
	keys  []string
	items []bson.RawValue
	index map[string]int
}

func newFields() *fields { return &fields{index: map[string]int{}} }

func (f *fields) set(key string, v bson.RawValue) {
	if i, ok := f.index[key]; ok {
		f.items[i] = v
		return
	}
	f.index[key] = len(f.keys)
	f.keys, f.items = append(f.keys, key), append(f.items, v)
}

// value returns the document; missing values are left out.
func (f *fields) value() bson.RawValue {
	_, dst := bson.BeginDocument(nil)
	for i, key := range f.keys {
		if f.items[i].Type != 0 {
			dst = bson.AppendRawValue(dst, key, f.items[i])
		}
	}
	return bsondoc.DocumentValue(bson.EndDocument(dst, 0))
}
