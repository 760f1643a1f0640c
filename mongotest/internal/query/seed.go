package query

import (
	"sort"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// equality is a condition {path: value} that every matching document fulfills.
type equality struct {
	path  Path
	value bson.RawValue
}

// equalities collects the equality conditions of a filter that hold for all documents that match,
// sorted by path.
func (f *Filter) equalities() []equality {
	var list []equality
	collectEqualities(f.root, &list)
	sort.SliceStable(list, func(i, j int) bool { return list[i].path.name < list[j].path.name })
	return list
}

func collectEqualities(n node, list *[]equality) {
	switch n := n.(type) {
	case *and:
		for _, c := range n.children {
			collectEqualities(c, list)
		}
	case *leaf:
		if t, ok := n.test.(*compareTest); ok && t.op == equal {
			*list = append(*list, equality{n.path, t.rhs})
		}
	}
}

// Exact returns the values that the filter demands of some paths, as equality conditions or as
// parts of one. ok is false if it leaves one of them open, says one twice, or wants an array.
func (f *Filter) Exact(paths []string) (values []bson.RawValue, ok bool) {
	equalities := f.equalities()
	for _, path := range paths {
		var value bson.RawValue
		for _, e := range equalities {
			rest, within := strings.CutPrefix(path, e.path.name+".")
			switch {
			case e.path.name == path || within:
				if value.Type != 0 {
					return nil, false
				}
				if value = e.value; within {
					value = bson.Raw(nil).Lookup()
					if e.value.Type == bson.TypeEmbeddedDocument {
						value = bson.Raw(e.value.Value).Lookup(strings.Split(rest, ".")...)
					}
				}
				if value.Type == 0 || value.Type == bson.TypeArray {
					return nil, false
				}
			case strings.HasPrefix(e.path.name, path+"."):
				return nil, false
			}
		}
		if value.Type == 0 {
			return nil, false
		}
		values = append(values, value)
	}
	return values, true
}

// Seed returns the document that an upsert starts from: what the filter's equality conditions
// demand, sorted by path; only the _id if the update is a replacement.
func (f *Filter) Seed(replacement bool) (bson.Raw, error) {
	var root seedNode
	var used []equality
	for _, e := range f.equalities() {
		if !replacement && e.path.name == "" {
			return nil, srverr.New(srverr.IllegalOperation, "Cannot call setValue on the root object")
		}
		if replacement && e.path.parts[0] != "_id" {
			continue
		}
		if replacement && len(e.path.parts) > 1 {
			return nil, srverr.New(srverr.NotExactValueField,
				"field at '_id' must be exactly specified, field at sub-path '%s'found", e.path.name)
		}
		for _, other := range used {
			switch {
			case other.path.name == e.path.name:
				return nil, srverr.New(srverr.NotSingleValueField,
					"cannot infer query fields to set, path '%s' is matched twice", e.path.name)
			case strings.HasPrefix(e.path.name, other.path.name+"."):
				return nil, srverr.New(srverr.NotSingleValueField,
					"cannot infer query fields to set, both paths '%s' and '%s' are matched", e.path.name,
					other.path.name)
			}
		}
		used = append(used, e)
		root.set(e.path.parts, e.value)
	}
	return root.document(), nil
}

// seedNode is a document under construction.
type seedNode struct {
	names    []string
	children []*seedNode
	value    bson.RawValue
}

func (n *seedNode) set(path []string, v bson.RawValue) {
	for _, part := range path {
		var next *seedNode
		for i, name := range n.names {
			if name == part {
				next = n.children[i]
			}
		}
		if next == nil {
			next = &seedNode{}
			n.names, n.children = append(n.names, part), append(n.children, next)
		}
		n = next
	}
	n.value = v
}

func (n *seedNode) document() bson.Raw {
	start, b := bson.BeginDocument(nil)
	for i, c := range n.children {
		if c.value.Type != 0 {
			b = bson.AppendRawValue(b, n.names[i], c.value)
		} else {
			b = bson.AppendDocument(b, n.names[i], c.document())
		}
	}
	return bson.EndDocument(b, start)
}
