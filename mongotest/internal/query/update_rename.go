package query

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// renameOp is one {$rename: {from: to}}.
type renameOp struct{ from, to string }

// renaming is what a $rename does to one document: nothing if the source is missing. An error
// counts when the update comes to the target, after the fields before it.
type renaming struct {
	op  *renameOp
	v   bson.RawValue
	err error
}

func (c *updateRun) renamed(op *renameOp) renaming {
	for _, r := range c.renames {
		if r.op == op {
			return r
		}
	}
	return renaming{}
}

// findRenames looks up what is renamed, before anything changes.
func (c *updateRun) findRenames() {
	for _, op := range c.u.renames {
		v, err := c.renameFrom(op.from)
		if err == nil && v.Type != 0 {
			err = c.checkRenameTarget(op.to)
		}
		if err != nil || v.Type != 0 {
			c.renames = append(c.renames, renaming{op, v, err})
		}
	}
}

// renameFrom follows the source path. Elements of arrays cannot be renamed.
func (c *updateRun) renameFrom(path string) (bson.RawValue, error) {
	cur, name, array := bsondoc.DocumentValue(c.doc), "", ""
	parts := strings.Split(path, ".")
	for i, part := range parts {
		var next bson.RawValue
		switch cur.Type {
		case bson.TypeEmbeddedDocument:
			next = lookup(cur.Value, part)
		case bson.TypeArray:
			n, ok := arrayIndex(part)
			if !ok {
				return next, notTraversable(parts[i-1], path, name, cur)
			}
			array = name
			if list := bsondoc.Items(cur); n < len(list) {
				next = list[n]
			}
		default:
			return next, notTraversable(parts[i-1], path, name, cur)
		}
		if next.Type == 0 {
			return next, nil
		}
		cur, name = next, part
	}
	if array != "" {
		return cur, badValue(
			"The source field cannot be an array element, '%s' in doc with %s has an array field called '%s'",
			path, c.id(), array)
	}
	return cur, nil
}

func notTraversable(part, path, name string, v bson.RawValue) error {
	return srverr.New(srverr.PathNotViable, "cannot use the part (%s of %s) to traverse the element ({%s})",
		part, path, bsontext.Element(name, v))
}

// checkRenameTarget refuses a target inside of an array.
func (c *updateRun) checkRenameTarget(path string) error {
	cur, name, array := bsondoc.DocumentValue(c.doc), "", ""
	for part := range strings.SplitSeq(path, ".") {
		var next bson.RawValue
		switch cur.Type {
		case bson.TypeEmbeddedDocument:
			next = lookup(cur.Value, part)
		case bson.TypeArray:
			array = name
			if n, ok := arrayIndex(part); ok {
				if list := bsondoc.Items(cur); n < len(list) {
					next = list[n]
				}
			}
		}
		if next.Type == 0 {
			break
		}
		cur, name = next, part
	}
	if array != "" {
		return badValue("The destination field cannot be an array element, '%s' in doc with %s has an array field called '%s'",
			path, c.id(), array)
	}
	return nil
}

// renameSource removes the source.
type renameSource struct{ op *renameOp }

func (r *renameSource) update(c *updateRun, _ string, old bson.RawValue) (bson.RawValue, error) {
	if r := c.renamed(r.op); r.v.Type == 0 || r.err != nil {
		return old, nil
	}
	return bson.RawValue{}, nil
}
func (r *renameSource) create(*updateRun) (bson.RawValue, error) { return bson.RawValue{}, nil }
func (r *renameSource) traits() traits                           { return traits{ignoresPath: true} }

// renameTarget sets the target.
type renameTarget struct{ op *renameOp }

func (r *renameTarget) active(c *updateRun) bool {
	found := c.renamed(r.op)
	return found.v.Type != 0 || found.err != nil
}

func (r *renameTarget) update(c *updateRun, _ string, old bson.RawValue) (bson.RawValue, error) {
	if found := c.renamed(r.op); found.v.Type != 0 || found.err != nil {
		return found.v, found.err
	}
	return old, nil
}
func (r *renameTarget) create(c *updateRun) (bson.RawValue, error) {
	found := c.renamed(r.op)
	return found.v, found.err
}
func (r *renameTarget) traits() traits { return traits{creates: true} }
