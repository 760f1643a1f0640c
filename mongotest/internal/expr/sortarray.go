package expr

// $sortArray.

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

func init() { registerParser("$sortArray", parseSortArray, shownOperands("input", "=sortBy")) }

// sortArray is $sortArray: by whole items, or by fields of them.
type sortArray struct {
	input  Expr
	whole  int // 1 or -1; 0: by fields
	fields []sortedField
}

type sortedField struct {
	path []string
	sign int
}

func direction(v bson.RawValue) (int, bool) {
	if !v.IsNumber() || toDouble(v) != 1 && toDouble(v) != -1 {
		return 0, false
	}
	return int(toLong(v)), true
}

func parseSortArray(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(2942500, "$sortArray requires an object as an argument, found: %s", typeName(v))
	}
	a := &sortArray{}
	var by bson.RawValue
	for key, item := range bson.Raw(v.Value).All() {
		switch key {
		case "input":
			e, err := parse(item, s, depth+1)
			if err != nil {
				return nil, err
			}
			a.input = e
		case "sortBy":
			by = item
		default:
			return nil, srverr.New(2942501, "$sortArray found an unknown argument: %s", key)
		}
	}
	switch {
	case a.input == nil:
		return nil, srverr.New(2942502, "$sortArray requires 'input' to be specified")
	case by.Type == 0:
		return nil, srverr.New(2942503, "$sortArray requires 'sortBy' to be specified")
	}
	if by.Type != bson.TypeEmbeddedDocument {
		sign, ok := direction(by)
		if !ok {
			code := int32(2942504)
			if s.env.Version.AllParsed() {
				if code = 2942506; !by.IsNumber() {
					code = 2942507
				}
			}
			return nil, srverr.New(code, "The $sort element value must be either 1 or -1")
		}
		a.whole = sign
		return a, nil
	}
	for key, item := range bson.Raw(by.Value).All() {
		sign, ok := direction(item)
		if !ok {
			code := int32(15974)
			if s.env.Version.AllParsed() {
				code = 2942505
			}
			return nil, srverr.New(code, "Illegal key in $sort specification: %s", bsontext.Element(key, item))
		}
		path := key
		if s.env.Version.AllParsed() { // a pattern of keys, and not a path of fields
			path = strings.ReplaceAll("."+key, ".$", ".")[1:]
		}
		if err := CheckPath(path, s.env.Version); err != nil {
			return nil, err
		}
		a.fields = append(a.fields, sortedField{strings.Split(key, "."), sign})
	}
	if len(a.fields) == 0 {
		return nil, srverr.New(2942505, "$sortArray requires at least one sort field")
	}
	return a, nil
}

func (a *sortArray) eval(st *State) (bson.RawValue, error) {
	in, err := a.input.eval(st)
	if err != nil || nullish(in) {
		return null, err
	}
	if in.Type != bson.TypeArray {
		return missing, srverr.New(2942504, "The input argument to $sortArray must be an array, but was of type: %s",
			typeName(in))
	}
	all, compare := bsondoc.Items(in), st.counting()
	slices.SortStableFunc(all, func(x, y bson.RawValue) int {
		if a.whole != 0 {
			return compare(x, y) * a.whole
		}
		for _, f := range a.fields {
			if c := compare(nested(x, f.path), nested(y, f.path)); c != 0 {
				return c * f.sign
			}
		}
		return 0
	})
	return arrayOf(all), nil
}

// nested follows a path of documents; what is not there is null.
func nested(v bson.RawValue, path []string) bson.RawValue {
	for _, part := range path {
		if v.Type != bson.TypeEmbeddedDocument {
			return null
		}
		v = bson.Raw(v.Value).Lookup(part)
	}
	if v.Type == 0 {
		return null
	}
	return v
}

func (a *sortArray) optimize(env *Env) (Expr, error) {
	in, err := a.input.optimize(env)
	if err != nil {
		return nil, err
	}
	return &sortArray{in, a.whole, a.fields}, nil
}

func (a *sortArray) children() []Expr { return []Expr{a.input} }
