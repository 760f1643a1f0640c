package expr

// Set operators: arrays as sets, whose items are compared by value.

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerNary(
		&naryOp{name: "$setUnion", arity: any0, associative: true, commutative: true, eval: evalSetUnion,
			operand: arrayOperand(17043, "All operands of $setUnion must be arrays. One argument is of type: %s")},
		&naryOp{name: "$setIntersection", arity: any0, associative: true, commutative: true, eval: evalSetIntersection,
			operand: arrayOperand(17047,
				"All operands of $setIntersection must be arrays. One argument is of type: %s")},
		&naryOp{name: "$setDifference", arity: exactly(2), eval: evalSetDifference},
		&naryOp{name: "$setIsSubset", arity: exactly(2), eval: evalSetIsSubset, constants: checkSuperset},
		&naryOp{name: "$setEquals", arity: any0, operand: stillEqual, ends: falseValue, eval: evalSetEquals,
			refuse: refuseNoSets,
			check: func(n int) error {
				if n < 2 {
					return srverr.New(17045, "$setEquals needs at least two arguments had: %d", n)
				}
				return nil
			}},
		&naryOp{name: "$allElementsTrue", arity: exactly(1), eval: elementsTrue("$allElementsTrue", 17040, false)},
		&naryOp{name: "$anyElementTrue", arity: exactly(1), eval: elementsTrue("$anyElementTrue", 17041, true)},
	)
}

// set returns an array's items sorted, without duplicates.
func (st *State) set(array bson.RawValue) []bson.RawValue {
	all := bsondoc.Items(array)
	slices.SortStableFunc(all, st.counting())
	return slices.CompactFunc(all, func(a, b bson.RawValue) bool { return st.env.compare(a, b) == 0 })
}

func (st *State) contains(set []bson.RawValue, v bson.RawValue) bool {
	st.Do(1)
	_, found := slices.BinarySearchFunc(set, v, st.env.compare)
	return found
}

func evalSetUnion(st *State, args []bson.RawValue) (bson.RawValue, error) {
	b := newArray()
	for _, v := range args {
		for item := range bson.Raw(v.Value).Values() {
			b.add(item)
		}
		if len(b.dst) > maxResult {
			return missing, tooLarge()
		}
	}
	return arrayOf(st.set(b.value())), nil
}

func evalSetIntersection(st *State, args []bson.RawValue) (bson.RawValue, error) {
	var set []bson.RawValue
	for i, v := range args {
		other := st.set(v)
		if i == 0 {
			set = other
			continue
		}
		if len(set) == 0 {
			continue // only the operands' types are looked at
		}
		if len(set) > len(other) { // the items come from the smaller set
			set, other = other, set
		}
		set = slices.DeleteFunc(set, func(item bson.RawValue) bool { return !st.contains(other, item) })
	}
	return arrayOf(set), nil
}

func evalSetDifference(st *State, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	switch {
	case nullish(a) || nullish(b):
		return null, nil
	case a.Type != bson.TypeArray:
		return missing, srverr.New(17048,
			"both operands of $setDifference must be arrays. First argument is of type: %s", typeName(a))
	case b.Type != bson.TypeArray:
		return missing, srverr.New(17049,
			"both operands of $setDifference must be arrays. Second argument is of type: %s", typeName(b))
	}
	without := st.set(b)
	// The first operand's order stays, its duplicates do not.
	type entry struct {
		v bson.RawValue
		i int
	}
	var left []entry
	for i, v := range bsondoc.Items(a) {
		if !st.contains(without, v) {
			left = append(left, entry{v, i})
		}
	}
	compare := st.counting()
	slices.SortStableFunc(left, func(a, b entry) int { return compare(a.v, b.v) })
	left = slices.CompactFunc(left, func(a, b entry) bool { return st.env.compare(a.v, b.v) == 0 })
	slices.SortFunc(left, func(a, b entry) int { return a.i - b.i })
	out := newArray()
	for _, e := range left {
		out.add(e.v)
	}
	return out.value(), nil
}

func evalSetIsSubset(st *State, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	switch {
	case a.Type != bson.TypeArray:
		return missing, srverr.New(17046, "both operands of $setIsSubset must be arrays. First argument is of type: %s",
			typeName(a))
	case b.Type != bson.TypeArray:
		return missing, srverr.New(17042,
			"both operands of $setIsSubset must be arrays. Second argument is of type: %s", typeName(b))
	}
	set := st.set(b)
	for item := range bson.Raw(a.Value).Values() {
		if !st.contains(set, item) {
			return falseValue, nil
		}
	}
	return trueValue, nil
}

// stillEqual ends $setEquals at the first set that differs from the one before it.
func stillEqual(st *State, args []bson.RawValue, _ int) (done bool, err error) {
	n := len(args)
	if v := args[n-1]; v.Type != bson.TypeArray {
		if st.env.Version.AtLeast(5, 0) {
			return false, srverr.New(17044, "All operands of $setEquals must be arrays. %d-th argument is of type: %s",
				n, typeName(v))
		}
		return false, srverr.New(17044, "All operands of $setEquals must be arrays. One argument is of type: %s",
			typeName(v))
	}
	return n > 1 && !slices.EqualFunc(st.set(args[n-2]), st.set(args[n-1]), func(a, b bson.RawValue) bool {
		return st.env.compare(a, b) == 0
	}), nil
}

// refuseNoSets refuses constant operands of $setEquals that are no arrays, before any operand is
// evaluated.
func refuseNoSets(args []Expr, env *Env) error {
	if !env.Version.AllParsed() {
		return nil
	}
	for i, e := range args {
		if v, ok := Constant(e); ok && v.Type != bson.TypeArray {
			return srverr.New(5887502, "All operands of $setEquals must be arrays. %d-th argument is of type: %s", i+1,
				typeName(v))
		}
	}
	return nil
}

func evalSetEquals(*State, []bson.RawValue) (bson.RawValue, error) { return trueValue, nil }

func elementsTrue(name string, code int32, any bool) func(*State, []bson.RawValue) (bson.RawValue, error) {
	return func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
		if args[0].Type != bson.TypeArray {
			return missing, srverr.New(code, "%s's argument must be an array, but is %s", name, typeName(args[0]))
		}
		for item := range bson.Raw(args[0].Value).Values() {
			if Truthy(item) == any {
				return boolValue(any), nil
			}
		}
		return boolValue(!any), nil
	}
}

// evalSubsetOf is evalSetIsSubset with a constant second operand, to servers before 8.1.
func evalSubsetOf(st *State, args []bson.RawValue) (bson.RawValue, error) {
	if args[0].Type != bson.TypeArray {
		return missing, srverr.New(17310, "both operands of $setIsSubset must be arrays. First argument is of type: %s",
			typeName(args[0]))
	}
	return evalSetIsSubset(st, args)
}

// checkSuperset refuses a constant second operand of $setIsSubset that is no array.
func checkSuperset(args []Expr, env *Env) (*naryOp, error) {
	v, ok := Constant(args[1])
	if ok && v.Type != bson.TypeArray {
		return nil, srverr.New(17311, "both operands of $setIsSubset must be arrays. Second argument is of type: %s",
			typeName(v))
	}
	if !ok || env.Version.AllParsed() {
		return nil, nil
	}
	return &naryOp{name: "$setIsSubset", arity: exactly(2), eval: evalSubsetOf}, nil
}
