package query

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// updateNode is a node of the tree of an update's paths: *objectNode, *arrayNode or *leafNode.
type updateNode interface{}

// objectNode stands for a document, or an array whose elements are addressed by index.
type objectNode struct {
	children   []updateChild // sorted by name
	positional updateNode    // the child called "$"
}

// arrayNode stands for an array whose elements are addressed by $[] (the child named "") and
// $[identifier].
type arrayNode struct{ children []updateChild }

type updateChild struct {
	name string
	node updateNode
}

// leafNode is one modifier of one path.
type leafNode struct{ op modifier }

func (u *Update) newLeaf(op modifier) *leafNode {
	if u.firstLeaf.op == nil {
		u.firstLeaf.op = op
		return &u.firstLeaf
	}
	return &leafNode{op}
}

// modifier is the work of one update operator on one field.
type modifier interface {
	// update returns the new value of an existing field; the zero RawValue removes it.
	update(c *updateRun, name string, old bson.RawValue) (bson.RawValue, error)
	// create returns the value of a field that does not exist, the zero RawValue for none.
	create(c *updateRun) (bson.RawValue, error)
	traits() traits
}

type traits struct {
	creates     bool // creates missing fields, so that a path through a scalar is an error
	ignoresPath bool // a path through a scalar is fine: there is nothing to do
	sets        bool // sets whole values given by the user
	insertOnly  bool
}

func findChild(list []updateChild, name string) (int, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].name >= name })
	return i, i < len(list) && list[i].name == name
}

func insertChild(list []updateChild, name string, n updateNode) []updateChild {
	i, _ := findChild(list, name)
	list = append(list, updateChild{})
	copy(list[i+1:], list[i:])
	list[i] = updateChild{name, n}
	return list
}

// processingOrder returns the order in which children are applied and new fields are added: by
// name; since 5.0 names that are numbers are ordered as such.
func (u *Update) processingOrder(list []updateChild) []updateChild {
	if !u.version.AtLeast(5, 0) {
		return list
	}
	if len(list) < 2 || slices.IsSortedFunc(list, compareNumerically) {
		return list
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, compareNumerically)
	return sorted
}

// compareNumerically orders children by name, those whose names are both numbers as such.
func compareNumerically(a, b updateChild) int {
	x, okX := arrayIndex(a.name)
	y, okY := arrayIndex(b.name)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a.name, b.name)
}

func getChild(n updateNode, name string) updateNode {
	var list []updateChild
	switch n := n.(type) {
	case *objectNode:
		if name == "$" {
			return n.positional
		}
		list = n.children
	case *arrayNode:
		list = n.children
	}
	if i, ok := findChild(list, name); ok {
		return list[i].node
	}
	return nil
}

func setChild(n updateNode, name string, child updateNode) {
	switch n := n.(type) {
	case *objectNode:
		if name == "$" {
			n.positional = child
			return
		}
		n.children = insertChild(n.children, name, child)
	case *arrayNode:
		n.children = insertChild(n.children, name, child)
	}
}

func (u *Update) parseModifiers(spec bson.Raw) error {
	u.root = &u.firstObject
	u.root.children = u.firstChildren[:0]
	used := map[string]bool{}
	for op, args := range spec.All() {
		if op == "$v" {
			return srverr.New(srverr.FailedToParse, "The $v update field is only recognized internally")
		}
		parse, ok := modifiers[op]
		if !ok {
			return srverr.New(srverr.FailedToParse, "Unknown modifier: %s. Expected a valid update modifier or "+
				"pipeline-style update specified as an array", op)
		}
		if args.Type != bson.TypeEmbeddedDocument {
			return srverr.New(srverr.FailedToParse, "Modifiers operate on fields but we found type %s instead. "+
				"For example: {$mod: {<field>: ...}} not {%s}", bsontext.TypeName(args.Type),
				bsontext.Element(op, args))
		}
		if bson.Raw(args.Value).IsEmpty() && !u.version.AtLeast(5, 0) {
			return srverr.New(srverr.FailedToParse,
				"'%s' is empty. You must specify a field like so: {%s: {<field>: ...}}", op, op)
		}
		for path, arg := range bson.Raw(args.Value).All() {
			var err error
			if op == "$rename" {
				err = u.addRename(path, arg, used)
			} else {
				err = u.addModifier(path, func() (modifier, error) { return parse(u, path, arg) }, used)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, name := range sortedKeys(u.filters) {
		if !used[name] {
			return srverr.New(srverr.FailedToParse,
				"The array filter for identifier '%s' was not used in the update %s",
				name, bsontext.Document(spec))
		}
	}
	return nil
}

func sortedKeys(m map[string]*Filter) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func isIdentifier(part string) bool {
	return len(part) >= 3 && strings.HasPrefix(part, "$[") && part[len(part)-1] == ']'
}

// appendParts appends the parts of a path.
func appendParts(parts []string, path string) []string {
	for part := range strings.SplitSeq(path, ".") {
		parts = append(parts, part)
	}
	return parts
}

// checkUpdatePath checks a path and its parts.
func checkUpdatePath(path string, parts []string) error {
	if path == "" {
		return srverr.New(srverr.EmptyFieldName, "An empty update path is not valid.")
	}
	positional, at := 0, -1
	for i, part := range parts {
		if part == "" {
			return srverr.New(srverr.EmptyFieldName,
				"The update path '%s' contains an empty field name, which is not allowed.", path)
		}
		if part == "$" {
			if positional == 0 {
				at = i
			}
			positional++
		}
	}
	if positional > 1 {
		return badValue("Too many positional (i.e. '$') elements found in path '%s'", path)
	}
	if at == 0 {
		return badValue("Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
	}
	return nil
}

// addModifier puts a modifier into the tree; make is called once the path is known to be good.
func (u *Update) addModifier(path string, make func() (modifier, error), used map[string]bool) error {
	var first [8]string
	parts := appendParts(first[:0], path)
	if err := checkUpdatePath(path, parts); err != nil {
		return err
	}
	op, err := make()
	if err != nil {
		return err
	}
	var cur updateNode = u.root
	for i, part := range parts {
		name := part
		if part == "$" {
			u.positional = true
		}
		if isIdentifier(part) {
			name = part[2 : len(part)-1]
			if i == 0 {
				return badValue("Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
			}
			if name != "" {
				if u.filters[name] == nil {
					return badValue("No array filter found for identifier '%s' in path '%s'", name, path)
				}
				used[name] = true
			}
		}
		child := getChild(cur, name)
		if i == len(parts)-1 {
			if child != nil {
				return conflict(path, path)
			}
			setChild(cur, name, u.newLeaf(op))
			break
		}
		wantArray := isIdentifier(parts[i+1])
		if child == nil {
			if wantArray {
				child = &arrayNode{}
			} else {
				child = &objectNode{}
			}
			setChild(cur, name, child)
		}
		_, isArray := child.(*arrayNode)
		_, isObject := child.(*objectNode)
		if wantArray && !isArray || !wantArray && !isObject {
			return conflict(path, strings.Join(parts[:i+1], "."))
		}
		cur = child
	}
	return nil
}

func conflict(path, at string) error {
	return srverr.New(srverr.ConflictingUpdateOperators, "Updating the path '%s' would create a conflict at '%s'", path,
		at)
}

// addRename puts both ends of a $rename into the tree.
func (u *Update) addRename(from string, arg bson.RawValue, used map[string]bool) error {
	r := &renameOp{from: from}
	if err := u.addModifier(from, func() (modifier, error) { return &renameSource{r}, nil }, used); err != nil {
		return err
	}
	to, ok := arg.StringValue()
	if !ok {
		return badValue("The 'to' field for $rename must be a string: %s", bsontext.Element(from, arg))
	}
	r.to = to
	u.renames = append(u.renames, r)
	return u.addModifier(to, func() (modifier, error) {
		switch {
		case strings.IndexByte(to, 0) >= 0 && u.version.AllParsed():
			return nil, srverr.New(9867600, "The 'to' field for $rename cannot contain an embedded null byte")
		case strings.IndexByte(to, 0) >= 0:
			return nil, badValue("The 'to' field for $rename cannot contain an embedded null byte")
		case from == to:
			return nil, badValue("The source and target field for $rename must differ: %s", bsontext.Element(from, arg))
		case strings.HasPrefix(from, to+"."), strings.HasPrefix(to, from+"."):
			return nil, badValue("The source and target field for $rename must not be on the same path: %s",
				bsontext.Element(from, arg))
		case isDynamic(from):
			return nil, badValue("The source field for $rename may not be dynamic: %s", from)
		case isDynamic(to):
			return nil, badValue("The destination field for $rename may not be dynamic: %s", to)
		}
		return &renameTarget{r}, nil
	}, used)
}

// isDynamic reports whether a path has a positional part of any kind.
func isDynamic(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if part == "$" || isIdentifier(part) {
			return true
		}
	}
	return false
}

// mergeNodes merges the updates that apply to the same element; those that clash are an error at
// the path.
func mergeNodes(a, b updateNode, path []string) (updateNode, error) {
	clash := func() error {
		return srverr.New(srverr.ConflictingUpdateOperators, "Update created a conflict at '%s'",
			strings.Join(path, "."))
	}
	switch x := a.(type) {
	case *objectNode:
		y, ok := b.(*objectNode)
		if !ok {
			return nil, clash()
		}
		children, err := mergeChildren(x.children, y.children, path)
		if err != nil {
			return nil, err
		}
		merged := &objectNode{children: children, positional: x.positional}
		if y.positional != nil {
			if merged.positional != nil {
				if merged.positional, err = mergeNodes(x.positional, y.positional, append(path, "$")); err != nil {
					return nil, err
				}
			} else {
				merged.positional = y.positional
			}
		}
		return merged, nil
	case *arrayNode:
		y, ok := b.(*arrayNode)
		if !ok {
			return nil, clash()
		}
		children, err := mergeChildren(x.children, y.children, path)
		return &arrayNode{children}, err
	}
	return nil, clash()
}

func mergeChildren(a, b []updateChild, path []string) ([]updateChild, error) {
	list := append([]updateChild(nil), a...)
	for _, c := range b {
		i, ok := findChild(list, c.name)
		if !ok {
			list = insertChild(list, c.name, c.node)
			continue
		}
		merged, err := mergeNodes(list[i].node, c.node, append(path[:len(path):len(path)], c.name))
		if err != nil {
			return nil, err
		}
		list[i].node = merged
	}
	return list, nil
}
