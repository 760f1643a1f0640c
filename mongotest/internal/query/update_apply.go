package query

import (
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// maxPadding is how many elements an update may add to an array to reach an index.
const maxPadding = 1500000

// updateRun is one application of an update to one document.
type updateRun struct {
	u        *Update
	doc      bson.Raw
	index    int // of the positional operator
	clock    Clock
	insert   bool
	modified bool
	path     []string      // to the element at hand
	newID    bson.RawValue // the _id that the update itself has set
	renames  []renaming    // what becomes of u.renames

	firstPath [8]string // where path begins
}

// id renders the document's _id for messages: "_id: 1".
func (c *updateRun) id() string {
	id := lookup(c.doc, "_id")
	if c.newID.Type != 0 {
		id = c.newID
	}
	if id.Type == 0 {
		return "no id"
	}
	return bsontext.Element("_id", id)
}

func (u *Update) modify(doc bson.Raw, index int, clock Clock, insert bool) (bson.Raw, bool, error) {
	c := &updateRun{u: u, doc: doc, index: index, clock: clock, insert: insert}
	c.path = c.firstPath[:0]
	c.findRenames()
	v, err := c.apply(u.root, "", bsondoc.DocumentValue(doc))
	if err != nil {
		return nil, false, err
	}
	if !c.modified {
		return doc, false, nil
	}
	return v.Value, true, nil
}

// apply applies a node to an existing element. The result is the element's new value; the zero
// RawValue removes it.
func (c *updateRun) apply(n updateNode, name string, v bson.RawValue) (bson.RawValue, error) {
	switch n := n.(type) {
	case *leafNode:
		return c.applyLeaf(n, name, v)
	case *arrayNode:
		return c.applyArray(n, name, v)
	case *objectNode:
		children, err := c.children(n)
		if err != nil {
			return v, err
		}
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			return c.applyObject(children, v)
		case bson.TypeArray:
			return c.applyIndexes(children, name, v)
		}
		for _, child := range children {
			if err := c.blocked(child.node, []string{child.name}, name, v); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// children returns the children of a node, the positional one under its index.
func (c *updateRun) children(n *objectNode) ([]updateChild, error) {
	if n.positional == nil {
		return n.children, nil
	}
	if c.index < 0 {
		return nil, badValue("The positional operator did not find the match needed from the query.")
	}
	name := strconv.Itoa(c.index)
	list := append([]updateChild(nil), n.children...)
	i, ok := findChild(list, name)
	if !ok {
		return insertChild(list, name, n.positional), nil
	}
	merged, err := mergeNodes(list[i].node, n.positional, append(c.path[:len(c.path):len(c.path)], name))
	if err != nil {
		return nil, err
	}
	list[i].node = merged
	return list, nil
}

func (c *updateRun) applyLeaf(n *leafNode, name string, v bson.RawValue) (bson.RawValue, error) {
	t := n.op.traits()
	if t.insertOnly && !c.insert {
		return v, nil
	}
	out, err := n.op.update(c, name, v)
	if err != nil {
		return v, err
	}
	if r, ok := n.op.(*renameTarget); identical(out, v) && !(ok && r.active(c)) {
		return v, nil // a $rename is a change even if the values are the same
	}
	if err := checkModified(c.path, t.sets, v, out); err != nil {
		return v, err
	}
	if out.Type != 0 && !c.insert {
		if err := c.u.checkNewValue(n.op, out, c.path); err != nil {
			return v, err
		}
	}
	c.modified = true
	return out, nil
}

// applyObject applies children, in their order, to the fields of a document; new fields are
// appended.
func (c *updateRun) applyObject(children []updateChild, v bson.RawValue) (bson.RawValue, error) {
	doc := bson.Raw(v.Value)
	order := c.u.processingOrder(children)
	results := make([]bson.RawValue, len(children)) // by the position in children
	changed := false
	for _, child := range order {
		c.path = append(c.path, child.name)
		old := lookup(doc, child.name)
		var out bson.RawValue
		var err error
		if old.Type != 0 {
			out, err = c.apply(child.node, child.name, old)
		} else {
			out, err = c.create(child.node)
			if err == nil && out.Type != 0 {
				err = c.created(out)
			}
		}
		if err != nil {
			return v, err
		}
		if len(c.path) == 1 && child.name == "_id" {
			c.newID = out
		}
		at, _ := findChild(children, child.name)
		results[at] = out
		changed = changed || !identical(out, old)
		c.path = c.path[:len(c.path)-1]
	}
	if !changed {
		return v, nil
	}
	start, b := bson.BeginDocument(make([]byte, 0, len(doc)+64))
	for key, old := range doc.All() {
		if i, ok := findChild(children, key); ok {
			if results[i].Type != 0 {
				b = bson.AppendRawValue(b, key, results[i])
				results[i] = bson.RawValue{}
			}
			continue
		}
		b = bson.AppendRawValue(b, key, old)
	}
	for _, child := range order {
		if i, _ := findChild(children, child.name); results[i].Type != 0 {
			b = bson.AppendRawValue(b, child.name, results[i])
		}
	}
	out := bson.Raw(bson.EndDocument(b, start))
	for _, child := range order {
		if !c.insert && strings.HasPrefix(child.name, "$") && lookup(out, child.name).Type != 0 {
			if err := c.u.checkDollar(out, child.name, c.path); err != nil {
				return v, err
			}
		}
	}
	return bsondoc.DocumentValue(out), nil
}

// created is called for each field that was created: a new field inside of the _id would change it.
func (c *updateRun) created(v bson.RawValue) error {
	c.modified = true
	if len(c.path) < 2 || c.path[0] != "_id" {
		return nil
	}
	// The message shows the document around the new field.
	parent, name := bsondoc.DocumentValue(c.doc), ""
	for _, part := range c.path[:len(c.path)-1] {
		parent, name = lookup(parent.Value, part), part
	}
	start, b := bson.BeginDocument(nil)
	for key, e := range bson.Raw(parent.Value).All() {
		b = bson.AppendRawValue(b, key, e)
	}
	b = bson.EndDocument(bson.AppendRawValue(b, c.path[len(c.path)-1], v), start)
	return srverr.New(srverr.ImmutableField, "Updating the path '%s' to %s would modify the immutable field '_id'",
		strings.Join(c.path, "."), bsontext.Element(name, bson.RawValue{Type: parent.Type, Value: b}))
}

// create returns the value of a field that does not exist: what the leaves below the node make of
// it, or the zero RawValue.
func (c *updateRun) create(n updateNode) (bson.RawValue, error) {
	switch n := n.(type) {
	case *leafNode:
		if t := n.op.traits(); !t.creates || t.insertOnly && !c.insert {
			return bson.RawValue{}, nil
		}
		v, err := n.op.create(c)
		if err == nil && v.Type != 0 && !c.insert {
			err = c.u.checkNewValue(n.op, v, c.path)
		}
		return v, err
	case *arrayNode:
		return bson.RawValue{}, badValue("The path '%s' must exist in the document in order to apply array updates.",
			strings.Join(c.path, "."))
	case *objectNode:
		children, err := c.children(n)
		if err != nil {
			return bson.RawValue{}, err
		}
		var out bson.RawValue
		start, b := bson.BeginDocument(nil)
		children = c.u.processingOrder(children)
		for _, child := range children {
			c.path = append(c.path, child.name)
			v, err := c.create(child.node)
			if err != nil {
				return out, err
			}
			c.path = c.path[:len(c.path)-1]
			if v.Type != 0 {
				b = bson.AppendRawValue(b, child.name, v)
				out.Type = bson.TypeEmbeddedDocument
			}
		}
		if out.Type == 0 {
			return out, nil
		}
		out.Value = bson.EndDocument(b, start)
		for _, child := range children {
			if !c.insert && strings.HasPrefix(child.name, "$") && lookup(out.Value, child.name).Type != 0 {
				if err := c.u.checkDollar(out.Value, child.name, c.path); err != nil {
					return out, err
				}
			}
		}
		return out, nil
	}
	return bson.RawValue{}, nil
}

// blocked reports the error of the first leaf below n that cannot get through an element: a scalar,
// or an array that is addressed by name.
func (c *updateRun) blocked(n updateNode, rest []string, name string, v bson.RawValue) error {
	switch n := n.(type) {
	case *leafNode:
		t := n.op.traits()
		switch {
		case t.insertOnly && !c.insert, t.ignoresPath:
			return nil
		case t.creates:
			if r, ok := n.op.(*renameTarget); ok {
				if found := c.renamed(r.op); !r.active(c) || found.err != nil {
					return found.err
				}
			}
			return srverr.New(srverr.PathNotViable, "Cannot create field '%s' in element {%s}", rest[0],
				bsontext.Element(name, v))
		}
		full := append(c.path[:len(c.path):len(c.path)], rest...)
		return srverr.New(srverr.PathNotViable, "Cannot use the part (%s) of (%s) to traverse the element ({%s})",
			rest[0], strings.Join(full, "."), bsontext.Element(name, v))
	case *arrayNode:
		full := append(c.path[:len(c.path):len(c.path)], rest...)
		return badValue("The path '%s' must exist in the document in order to apply array updates.",
			strings.Join(full, "."))
	case *objectNode:
		children, err := c.children(n)
		if err != nil {
			return err
		}
		for _, child := range children {
			if err := c.blocked(child.node, append(rest[:len(rest):len(rest)], child.name), name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrayIndex parses a path part as an index.
func arrayIndex(part string) (int, bool) {
	for _, ch := range part {
		if ch < '0' || ch > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(part, 10, 32)
	return int(n), err == nil
}

// applyIndexes applies children whose names are indexes to the elements of an array, growing it as
// needed.
func (c *updateRun) applyIndexes(children []updateChild, name string, v bson.RawValue) (bson.RawValue, error) {
	list := bsondoc.Items(v)
	changed := false
	for _, child := range c.u.processingOrder(children) {
		i, ok := arrayIndex(child.name)
		if !ok {
			if err := c.blocked(child.node, []string{child.name}, name, v); err != nil {
				return v, err
			}
			continue
		}
		c.path = append(c.path, child.name)
		if i < len(list) {
			out, err := c.apply(child.node, strconv.Itoa(i), list[i])
			if err != nil {
				return v, err
			}
			if out.Type == 0 {
				out = nullValue // removing an element leaves a hole
			}
			changed = changed || !identical(out, list[i])
			list[i] = out
		} else {
			out, err := c.create(child.node)
			if err != nil {
				return v, err
			}
			if out.Type != 0 {
				if i-len(list) > maxPadding {
					return v, srverr.New(srverr.CannotBackfillArray, "can't backfill more than %d elements", maxPadding)
				}
				for len(list) < i {
					list = append(list, nullValue)
				}
				list = append(list, out)
				changed = true
				if err := c.created(out); err != nil {
					return v, err
				}
			}
		}
		c.path = c.path[:len(c.path)-1]
	}
	if !changed {
		return v, nil
	}
	return bsondoc.ArrayValue(list...), nil
}

func (c *updateRun) applyArray(n *arrayNode, name string, v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeArray {
		return v, badValue("Cannot apply array updates to non-array element %s", bsontext.Element(name, v))
	}
	var list []bson.RawValue
	var updates []updateNode
	i := 0
	for e := range bson.Raw(v.Value).Values() {
		var merged updateNode
		for _, child := range n.children {
			if child.name != "" && !c.u.matchElement(child.name, e) {
				continue
			}
			if merged == nil {
				merged = child.node
				continue
			}
			var err error
			path := append(c.path[:len(c.path):len(c.path)], strconv.Itoa(i))
			if merged, err = mergeNodes(merged, child.node, path); err != nil {
				return v, err
			}
		}
		list, updates = append(list, e), append(updates, merged)
		i++
	}
	changed := false
	for i, update := range updates {
		if update == nil {
			continue
		}
		index := strconv.Itoa(i)
		c.path = append(c.path, index)
		out, err := c.apply(update, index, list[i])
		if err != nil {
			return v, err
		}
		if out.Type == 0 {
			out = nullValue
		}
		changed = changed || !identical(out, list[i])
		list[i] = out
		c.path = c.path[:len(c.path)-1]
	}
	if !changed {
		return v, nil
	}
	return bsondoc.ArrayValue(list...), nil
}
