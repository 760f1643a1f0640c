package query

import (
	"slices"
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// The form that updates have in the oplog since 5.0, {$v: 2, diff: ...}: what was removed (d),
// replaced (u) and added (i), and as "s" with the field's name in front of a difference what
// changed inside of a field. The difference of an array has its new length (l), and the elements by
// their positions (u0, s1).

const (
	maxDeltaDepth  = 200       // how deep documents nest at most
	maxDeltaLength = 1_500_000 // to which positions of its own an update fills up an array at most
)

// NewDelta returns the update that a difference of the oplog describes.
func NewDelta(diff bson.Raw) *Update { return &Update{delta: diff} }

// applyDelta returns doc with the difference.
func applyDelta(doc, diff bson.Raw, depth int) (bson.Raw, error) {
	if depth > maxDeltaDepth {
		return nil, srverr.New(srverr.Overflow, "the difference is nested too deep")
	}
	var fields []field
	for k, v := range doc.All() {
		fields = append(fields, field{k, v})
	}
	at := func(name string) int {
		return slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	}
	for section, v := range diff.All() {
		part, ok := v.Document()
		if !ok || section == "" {
			return nil, badDelta(section)
		}
		switch section {
		case "d", "u", "i":
			for name, value := range part.All() {
				i := at(name)
				switch {
				case section == "u" && i >= 0:
					fields[i].value = value
					continue
				case i >= 0:
					fields = slices.Delete(fields, i, i+1)
				}
				if section != "d" {
					fields = append(fields, field{name, value})
				}
			}
		default:
			if section[0] != 's' {
				return nil, badDelta(section)
			}
			i := at(section[1:])
			if i < 0 {
				continue // a later entry removes the field
			}
			var err error
			if fields[i].value, err = applyInside(fields[i].value, part, depth); err != nil {
				return nil, err
			}
		}
	}
	start, out := bson.BeginDocument(nil)
	for _, f := range fields {
		out = bson.AppendRawValue(out, f.name, f.value)
	}
	return bson.EndDocument(out, start), nil
}

// field is a field of the document that a difference changes.
type field struct {
	name  string
	value bson.RawValue
}

// applyInside applies the difference of a field. A field that is of another kind by now stays: a
// later entry replaces it.
func applyInside(v bson.RawValue, diff bson.Raw, depth int) (bson.RawValue, error) {
	isArray := diff.Lookup("a").AsBool()
	switch {
	case isArray && v.Type == bson.TypeArray:
		out, err := applyArrayDelta(v.Value, diff, depth+1)
		return bson.RawValue{Type: v.Type, Value: out}, err
	case !isArray && v.Type == bson.TypeEmbeddedDocument:
		out, err := applyDelta(v.Value, diff, depth+1)
		return bson.RawValue{Type: v.Type, Value: out}, err
	}
	return v, nil
}

func applyArrayDelta(list, diff bson.Raw, depth int) (bson.Raw, error) {
	if depth > maxDeltaDepth {
		return nil, srverr.New(srverr.Overflow, "the difference is nested too deep")
	}
	values := slices.Collect(list.Values())
	for k, v := range diff.All() {
		switch {
		case k == "a":
		case k == "l":
			n, ok := v.AsInt64()
			if !ok || n < 0 || n > maxDeltaLength {
				return nil, badDelta(k)
			}
			values = resize(values, int(n))
		case len(k) > 1 && (k[0] == 'u' || k[0] == 's'):
			i, err := strconv.ParseUint(k[1:], 10, 24)
			if err != nil || i >= maxDeltaLength {
				return nil, badDelta(k)
			}
			if k[0] == 'u' {
				values = resize(values, max(len(values), int(i)+1))
				values[i] = v
				continue
			}
			part, ok := v.Document()
			if !ok {
				return nil, badDelta(k)
			}
			if int(i) < len(values) {
				if values[i], err = applyInside(values[i], part, depth); err != nil {
					return nil, err
				}
			}
		default:
			return nil, badDelta(k)
		}
	}
	start, out := bson.BeginDocument(nil)
	for i, v := range values {
		out = bson.AppendRawValue(out, strconv.Itoa(i), v)
	}
	return bson.EndDocument(out, start), nil
}

// resize cuts an array, or fills it up with nulls.
func resize(values []bson.RawValue, n int) []bson.RawValue {
	for len(values) < n {
		values = append(values, bson.RawValue{Type: bson.TypeNull})
	}
	return values[:n]
}

func badDelta(section string) error {
	return srverr.New(4770500, "Unrecognized section in $v:2 oplog entry: '%s'", section)
}
