package pipeline

// $project, $addFields, $set and $unset: trees of fields to keep, to drop and to compute.

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(
		&stageDef{name: "$project", shown: showProject, parse: one(parseProject), update: true, changeStream: true,
			at: eachShard, keyed: whole},
		&stageDef{name: "$addFields", shown: showComputed, parse: one(parseAddFields), update: true,
			changeStream: true, at: eachShard, keyed: whole},
		&stageDef{name: "$set", shown: showComputed, parse: one(parseAddFields), update: true, changeStream: true,
			at: eachShard, keyed: whole},
		&stageDef{name: "$unset", shown: showUnset, parse: one(parseUnset), update: true, changeStream: true,
			at: eachShard, names: whole},
	)
}

type projectionKind uint8

const (
	inclusion projectionKind = iota + 1
	exclusion
	addition
)

// node is a level of a projection: what happens to each of its fields.
type node struct {
	kept     map[string]bool // included or excluded here
	children map[string]*node
	exprs    map[string]expr.Expr
	order    []string // computed fields and children with some, in the order they were named
	computed bool     // something below is computed
}

func newNode() *node {
	return &node{kept: map[string]bool{}, children: map[string]*node{}, exprs: map[string]expr.Expr{}}
}

func (n *node) has(name string) bool {
	return n.kept[name] || n.exprs[name] != nil || n.children[name] != nil
}

// projection is a stage.
type projection struct {
	rt   *runtime
	kind projectionKind
	root *node
	// holes are those that fields leave which a later stage sets again, and filled those that this
	// one fills.
	holes, filled []*hole
}

// add puts a field (e nil) or a computed field at a path below n. Errors show it as it was written:
// below the document that it stands in.
func (n *node) add(path []string, full string, e expr.Expr) error {
	name := path[0]
	if len(path) == 1 {
		if n.has(name) {
			return srverr.New(31250, "Path collision at %s", full)
		}
		if e == nil {
			n.kept[name] = true
			return nil
		}
		n.exprs[name] = e
		n.order = append(n.order, name)
		n.computed = true
		return nil
	}
	if n.kept[name] || n.exprs[name] != nil {
		return collisionBelow(full)
	}
	child := n.children[name]
	if child == nil {
		child = newNode()
		n.children[name] = child
	}
	if err := child.add(path[1:], full, e); err != nil {
		return err
	}
	if e != nil {
		n.computed = true
		for _, o := range n.order {
			if o == name {
				return nil
			}
		}
		n.order = append(n.order, name)
	}
	return nil
}

// collisionBelow is the error of a path, as it was written, that leads through something else than
// a document.
func collisionBelow(written string) error {
	_, tail, _ := strings.Cut(written, ".")
	return srverr.New(31249, "Path collision at %s remaining portion %s", written, tail)
}

// open makes sure that a document of projections may be at a path below n. Errors show the path as
// it was written.
func (n *node) open(path []string, written string) error {
	for i, name := range path {
		if n.kept[name] || n.exprs[name] != nil {
			if i < len(path)-1 {
				return collisionBelow(written)
			}
			return srverr.New(31250, "Path collision at %s", written)
		}
		if n = n.children[name]; n == nil {
			return nil
		}
	}
	return nil
}

// apply projects a document.
func (pr *projection) apply(doc bson.Raw) (bson.Raw, error) {
	out := pr.keep(pr.root, doc)
	if pr.root.computed {
		pr.rt.state.WithRoot(doc)
		var err error
		if out, err = pr.compute(pr.root, out); err != nil {
			return nil, err
		}
		out = fillHoles(out, pr.filled)
	}
	for _, h := range pr.holes {
		h.find(doc, out, pr.root.order)
	}
	return out, nil
}

// keep drops what the projection does not keep. Without anything to drop it returns doc itself.
func (pr *projection) keep(n *node, doc bson.Raw) bson.Raw {
	if pr.kind == addition {
		return doc
	}
	start, dst := bson.BeginDocument(make([]byte, 0, len(doc)))
	for key, v := range doc.All() {
		if n.kept[key] {
			if pr.kind == inclusion {
				dst = bson.AppendRawValue(dst, key, v)
			}
			continue
		}
		if child := n.children[key]; child != nil {
			if v = pr.keepValue(child, v); v.Type != 0 {
				dst = bson.AppendRawValue(dst, key, v)
			}
			continue
		}
		if pr.kind == exclusion {
			dst = bson.AppendRawValue(dst, key, v)
		}
	}
	return bson.EndDocument(dst, start)
}

func (pr *projection) keepValue(n *node, v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return bsondoc.DocumentValue(pr.keep(n, bson.Raw(v.Value)))
	case bson.TypeArray:
		start, dst := bson.BeginDocument(make([]byte, 0, len(v.Value)))
		i := 0
		for item := range bson.Raw(v.Value).Values() {
			if item = pr.keepValue(n, item); item.Type != 0 {
				dst = append(bson.AppendIndexHeader(dst, item.Type, i), item.Value...)
				i++
			}
		}
		return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}
	}
	if pr.kind == inclusion && !n.computed { // where something is computed, it will take v's place
		return bson.RawValue{}
	}
	return v
}

// compute adds the computed fields to what was kept: in place of a field of the same name, else at
// the end.
func (pr *projection) compute(n *node, doc bson.Raw) (bson.Raw, error) {
	type field struct {
		key string
		v   bson.RawValue
	}
	var buf [16]field
	fields := buf[:0]
	for key, v := range doc.All() {
		fields = append(fields, field{key, v})
	}
	for _, name := range n.order {
		at := -1
		for i := range fields {
			if fields[i].key == name {
				at = i
				break
			}
		}
		var v bson.RawValue
		var err error
		if child := n.children[name]; child != nil {
			if at >= 0 {
				v = fields[at].v
			}
			v, err = pr.computeValue(child, v)
		} else {
			v, err = expr.Eval(n.exprs[name], pr.rt.state)
		}
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			fields[at].v = v
		} else {
			fields = append(fields, field{name, v})
		}
	}
	start, dst := bson.BeginDocument(make([]byte, 0, len(doc)+64))
	for _, f := range fields {
		if f.v.Type != 0 {
			dst = bson.AppendRawValue(dst, f.key, f.v)
		}
	}
	return bson.EndDocument(dst, start), nil
}

func (pr *projection) computeValue(n *node, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		doc, err := pr.compute(n, bson.Raw(v.Value))
		return bsondoc.DocumentValue(doc), err
	case bson.TypeArray:
		start, dst := bson.BeginDocument(nil)
		i := 0
		for item := range bson.Raw(v.Value).Values() {
			item, err := pr.computeValue(n, item)
			if err != nil {
				return item, err
			}
			if item.Type != 0 {
				dst = append(bson.AppendIndexHeader(dst, item.Type, i), item.Value...)
				i++
			}
		}
		return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}, nil
	}
	if !n.computed {
		return v, nil
	}
	doc, err := pr.compute(n, emptyDocument)
	return bsondoc.DocumentValue(doc), err
}

var emptyDocument = bson.Raw{5, 0, 0, 0, 0}

func (pr *projection) open(src Iterator) (Iterator, error) { return &transform{src, pr.apply}, nil }

func (pr *projection) optimize(env *expr.Env) error { return pr.root.optimize(env) }

func (n *node) optimize(env *expr.Env) (err error) {
	for _, name := range n.order { // computed fields come before those further down
		if n.exprs[name] == nil {
			continue
		}
		if n.exprs[name], err = expr.Optimize(n.exprs[name], env); err != nil {
			return err
		}
	}
	for _, name := range n.order {
		if child := n.children[name]; child != nil {
			if err := child.optimize(env); err != nil {
				return err
			}
		}
	}
	return nil
}

func invalid(name string, err error) error {
	if err == nil {
		return nil
	}
	return srverr.From(err).Prefix("Invalid " + name + " :: caused by :: ")
}

// projectParser parses the specification of $project.
type projectParser struct {
	p                      *parser
	pr                     *projection
	idIncluded, idExcluded bool
}

func parseProject(p *parser, name string, v bson.RawValue) (*projection, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(15969, "$project specification must be an object")
	}
	pp := &projectParser{p: p, pr: &projection{rt: p.rt, root: newNode()}}
	if doc.IsEmpty() {
		if p.rt.o.Version.AtLeast(4, 4) {
			return nil, invalid(name, srverr.New(51272, "projection specification must have at least one field"))
		}
		return nil, invalid(name, srverr.New(40177, "specification must have at least one field"))
	}
	for key, item := range doc.All() {
		if err := pp.element(nil, key, item); err != nil {
			return nil, invalid(name, err)
		}
	}
	pr := pp.pr
	if pr.kind == 0 {
		pr.kind = exclusion
		// What is left are $meta and _id.
		if pp.idIncluded || !pp.idExcluded || pr.root.computed && p.rt.o.Version.AtLeast(5, 0) {
			pr.kind = inclusion
		}
	}
	if pr.kind == inclusion {
		switch {
		case pp.idExcluded:
			delete(pr.root.kept, "_id")
		case !pr.root.has("_id"):
			pr.root.kept["_id"] = true
		}
	} else if pp.idIncluded {
		delete(pr.root.kept, "_id")
	}
	return pr, nil
}

func (pp *projectParser) want(kind projectionKind) bool {
	if pp.pr.kind == 0 {
		pp.pr.kind = kind
	}
	return pp.pr.kind == kind
}

func (pp *projectParser) element(parent []string, key string, v bson.RawValue) error {
	version := pp.p.rt.o.Version
	if strings.HasSuffix(key, ".$") {
		return srverr.New(31324, "Cannot use positional projection in aggregation projection")
	}
	if strings.Contains(key, ".$.") && version.AtLeast(5, 0) {
		return query.ErrPositionalMiddle()
	}
	path := append(append([]string(nil), parent...), strings.Split(key, ".")...)
	sub, isDocument := v.Document()
	if isDocument && sub.IsEmpty() {
		return srverr.New(51270, "An empty sub-projection is not a valid value. Found empty object at path")
	}
	if err := expr.CheckPath(key, version); err != nil {
		return err
	}
	topID := len(path) == 1 && key == "_id"
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		first, n := "", 0
		for k := range sub.All() {
			if n++; n == 1 {
				first = k
			}
		}
		switch {
		case n == 1 && first == "$elemMatch":
			return srverr.New(srverr.InvalidPipelineOperator, "Cannot use $elemMatch in this context")
		case n == 1 && strings.HasPrefix(first, "$"):
			if first != "$meta" && pp.pr.kind == exclusion {
				return srverr.New(31252, "Cannot use expression other than $meta in exclusion projection")
			}
			if !expr.IsOperator(first, pp.p.rt.env) {
				return srverr.New(31325, "Unknown expression %s", first)
			}
			if first != "$meta" && (!topID || version.AllParsed()) {
				pp.want(inclusion)
			}
			e, err := expr.Parse(v, pp.p.scope)
			if err != nil {
				return err
			}
			return pp.pr.root.add(path, key, e)
		}
		if err := pp.pr.root.open(path, key); err != nil {
			return err
		}
		for k, item := range sub.All() {
			if err := pp.element(path, k, item); err != nil {
				return err
			}
		}
		return nil
	case bson.TypeBoolean, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		if err := pp.pr.root.add(path, key, nil); err != nil {
			return err
		}
		include := expr.Truthy(v)
		if topID {
			pp.idIncluded, pp.idExcluded = include, !include
			return nil
		}
		switch {
		case include && !pp.want(inclusion):
			return srverr.New(31253, "Cannot do inclusion on field %s in exclusion projection", key)
		case !include && !pp.want(exclusion):
			return srverr.New(31254, "Cannot do exclusion on field %s in inclusion projection", key)
		}
		return nil
	}
	e, err := expr.Parse(v, pp.p.scope)
	if err != nil {
		return err
	}
	if !pp.want(inclusion) {
		return srverr.New(31310, "Cannot use an expression %s in an exclusion projection", bsontext.Element(key, v))
	}
	return pp.pr.root.add(path, key, e)
}

// addParser parses the specification of $addFields and $set.
type addParser struct {
	p    *parser
	root *node
	spec bson.Raw
	seen map[string]bool
}

func parseAddFields(p *parser, name string, v bson.RawValue) (*projection, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(40272, "%s specification stage must be an object, got %s", name, typeName(v))
	}
	if doc.IsEmpty() {
		if p.rt.o.Version.AtLeast(5, 0) { // since then, it passes documents on
			return &projection{rt: p.rt, kind: addition, root: newNode()}, nil
		}
		return nil, invalid(name, srverr.New(40177, "specification must have at least one field"))
	}
	ap := &addParser{p: p, root: newNode(), spec: doc, seen: map[string]bool{}}
	// The paths are checked before the expressions are parsed.
	for key, item := range doc.All() {
		if err := ap.check("", key, item); err != nil {
			return nil, invalid(name, err)
		}
	}
	for key, item := range doc.All() {
		if err := ap.element(nil, key, item); err != nil {
			return nil, invalid(name, err)
		}
	}
	return &projection{rt: p.rt, kind: addition, root: ap.root}, nil
}

// check looks at the shape of the specification.
func (ap *addParser) check(prefix, key string, v bson.RawValue) error {
	if err := expr.CheckPath(key, ap.p.rt.o.Version); err != nil {
		return err
	}
	if prefix != "" && strings.Contains(key, ".") {
		return srverr.New(40183, "cannot use dotted field name '%s' in a sub object: %s", key,
			bsontext.Document(ap.spec))
	}
	full := prefix + key
	value := func() error { // only what is set conflicts, not the documents that it lies in
		for other := range ap.seen {
			if other == full || strings.HasPrefix(full, other+".") || strings.HasPrefix(other, full+".") {
				return srverr.New(
					40176, "specification contains two conflicting paths. Cannot specify both '%s' and '%s': %s", full,
					other, bsontext.Document(ap.spec))
			}
		}
		ap.seen[full] = true
		return nil
	}
	sub, ok := v.Document()
	if !ok {
		return value()
	}
	first, n := "", 0
	dollar := false
	for k := range sub.All() {
		if n++; n == 1 {
			first = k
		}
		dollar = dollar || strings.HasPrefix(k, "$")
	}
	switch {
	case n == 0 && ap.p.rt.o.Version.AllParsed():
		return value() // which takes the place of what is there
	case n == 0:
		return srverr.New(40180, "an empty object is not a valid value. Found empty object at path %s", full)
	case strings.HasPrefix(first, "$"):
		if n > 1 {
			return srverr.New(
				40181, "an expression specification must contain exactly one field, the name of the expression. Found %d fields in %s, while parsing object %s",
				n, bsontext.Document(sub), bsontext.Document(ap.spec))
		}
		return value()
	case dollar:
		for k := range sub.All() {
			if strings.HasPrefix(k, "$") {
				return srverr.New(40182, "field names may not start with '$', but got '%s' in object %s", k,
					bsontext.Document(sub))
			}
		}
	}
	for k, item := range sub.All() {
		if err := ap.check(full+".", k, item); err != nil {
			return err
		}
	}
	return nil
}

func (ap *addParser) element(parent []string, key string, v bson.RawValue) error {
	path := append(append([]string(nil), parent...), strings.Split(key, ".")...)
	if sub, ok := v.Document(); ok {
		for k := range sub.All() {
			if strings.HasPrefix(k, "$") {
				break
			}
			for k, item := range sub.All() {
				if err := ap.element(path, k, item); err != nil {
					return err
				}
			}
			return nil
		}
	}
	e, err := expr.Parse(v, ap.p.scope)
	if err != nil {
		return err
	}
	return ap.root.add(path, strings.Join(path, "."), e)
}

func parseUnset(p *parser, name string, v bson.RawValue) (*projection, error) {
	var paths []string
	switch v.Type {
	case bson.TypeString:
		s, _ := v.StringValue()
		paths = []string{s}
	case bson.TypeArray:
		for item := range bson.Raw(v.Value).Values() {
			s, ok := item.StringValue()
			if !ok {
				return nil, srverr.New(31120,
					"$unset specification must be a string or an array containing only string values")
			}
			paths = append(paths, s)
		}
		if len(paths) == 0 {
			return nil, srverr.New(31119, "$unset specification must be a string or an array with at least one field")
		}
	default:
		return nil, srverr.New(31002, "$unset specification must be a string or an array")
	}
	pr := &projection{rt: p.rt, kind: exclusion, root: newNode()}
	for _, path := range paths {
		if strings.IndexByte(path, 0) >= 0 && p.rt.o.Version.AllParsed() {
			return nil, srverr.New(9527900, "$unset specification must not have a null byte in a path")
		}
	}
	for _, path := range paths {
		if err := expr.CheckPath(path, p.rt.o.Version); err != nil {
			return nil, invalid(name, err)
		}
		if err := pr.root.add(strings.Split(path, "."), path, nil); err != nil {
			return nil, invalid(name, err)
		}
	}
	return pr, nil
}
