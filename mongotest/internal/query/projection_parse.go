package query

import (
	"fmt"
	"math"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

type projectionParser struct {
	p                 *Projection
	o                 *Options
	filter            *Filter
	known             bool // it is settled whether the projection includes or excludes
	idIncluded        bool
	hasSlice, hasElem bool
	plain             bool  // nothing may be computed: the projection is that of a wildcard index
	folded            error // the first error found while computing constants: it comes after all others
}

// ParseProjection parses the projection of find. The filter is needed for the positional operator;
// it may be nil without. An empty projection yields a nil *Projection.
func ParseProjection(spec bson.Raw, f *Filter, o *Options) (*Projection, error) {
	if spec.IsEmpty() {
		return nil, nil
	}
	return (&projectionParser{p: &Projection{}, o: o, filter: f}).parse(spec)
}

// ParsePlainProjection parses a projection that may include and exclude fields only, as that of a
// wildcard index.
func ParsePlainProjection(spec bson.Raw, o *Options) (*Projection, error) {
	return (&projectionParser{p: &Projection{}, o: o, plain: true}).parse(spec)
}

func (p *projectionParser) parse(spec bson.Raw) (*Projection, error) {
	for key, v := range spec.All() {
		if err := p.element(&p.p.root, key, v, ""); err != nil {
			return nil, err
		}
	}
	if !p.known {
		switch {
		case p.idIncluded:
		case p.hasSlice:
			p.p.exclusion = true
		case p.hasElem:
		default:
			p.p.exclusion = true // {_id: 0}, or metadata alone
		}
	}
	if p.p.exclusion && p.p.position != nil {
		return nil, srverr.New(31395, "positional projection cannot be used with exclusion")
	}
	if p.folded != nil {
		return nil, p.folded
	}
	p.p.root.settle()
	return p.p, nil
}

// settle works out where something is computed.
func (n *projectionNode) settle() bool {
	for i := range n.fields {
		switch f := &n.fields[i]; f.kind {
		case kindNode:
			n.computed = f.node.settle() || n.computed
		case kindExpr, kindMeta, kindElemMatch:
			n.computed = true
		}
	}
	return n.computed
}

// ErrPositionalMiddle is the error of a path that goes on after the positional operator.
func ErrPositionalMiddle() error {
	return srverr.New(31394, "As of 4.4, it's illegal to specify positional operator in the middle of a path."+
		"Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, "+
		"remove the parts following the '$' and the results will be equivalent.")
}

// element parses {key: v} below a node; prefix is the path to the node.
func (p *projectionParser) element(n *projectionNode, key string, v bson.RawValue, prefix string) error {
	if strings.Contains(key, ".$.") || strings.HasPrefix(key, "$.") && !p.o.version().AtLeast(5, 0) {
		return ErrPositionalMiddle()
	}
	positional := strings.HasSuffix(key, ".$")
	switch {
	case v.Type == bson.TypeEmbeddedDocument:
		if positional {
			return srverr.New(31271, "positional projection cannot be used with an expression or sub object")
		}
		return p.object(n, key, v, prefix)
	case v.Type == bson.TypeBoolean || v.IsNumber():
		if positional {
			return p.positional(n, key, v, prefix)
		}
		return p.flag(n, key, truthy(v), prefix)
	}
	if positional {
		return srverr.New(31308, "positional projection cannot be used with a literal")
	}
	if err := expr.CheckPath(key, p.o.version()); err != nil {
		return err
	}
	if err := p.mayCompute(); err != nil {
		return err
	}
	if p.known && p.p.exclusion {
		return srverr.New(31310, "Cannot use an expression %s in an exclusion projection", bsontext.Element(key, v))
	}
	return p.expression(n, key, v)
}

// mayCompute refuses everything but inclusions and exclusions where only they are allowed.
func (p *projectionParser) mayCompute() error {
	if p.plain {
		return srverr.New(
			51271, "Bad projection specification, cannot use computed fields when parsing a spec in kBanComputedFields mode")
	}
	return nil
}

// flag parses {key: true} and {key: false}.
func (p *projectionParser) flag(n *projectionNode, key string, include bool, prefix string) error {
	if err := expr.CheckPath(key, p.o.version()); err != nil {
		return err
	}
	kind := kindInclude
	if !include {
		kind = kindExclude
	}
	if err := p.add(n, key, projectionField{kind: kind}); err != nil {
		return err
	}
	if key == "_id" && prefix == "" {
		p.idIncluded = include
		return nil
	}
	return p.settle(key, include)
}

func (p *projectionParser) settle(key string, include bool) error {
	if p.known && include == p.p.exclusion {
		if include {
			return srverr.New(31253, "Cannot do inclusion on field %s in exclusion projection", key)
		}
		return srverr.New(31254, "Cannot do exclusion on field %s in inclusion projection", key)
	}
	p.known, p.p.exclusion = true, !include
	return nil
}

func (p *projectionParser) positional(n *projectionNode, key string, v bson.RawValue, prefix string) error {
	path := strings.TrimSuffix(key, ".$")
	if err := p.mayCompute(); err != nil {
		return err
	}
	switch {
	case !truthy(v):
		return srverr.New(31395, "positional projection cannot be used with exclusion")
	case p.p.position != nil:
		return srverr.New(31276, "Cannot specify more than one positional projection per query.")
	case p.hasElem:
		return srverr.New(31256, "Cannot specify positional operator and $elemMatch.")
	case p.filter == nil:
		return srverr.New(51050, "Projections with a positional operator require a matcher")
	}
	if err := expr.CheckPath(path, p.o.version()); err != nil {
		return err
	}
	root, err := p.filter.unordered()
	if err != nil {
		return err
	}
	if err := p.add(n, path, projectionField{kind: kindPositional}); err != nil {
		return err
	}
	p.p.position = &positionalProjection{path: strings.Split(prefix+path, "."), root: root}
	return p.settle(key, true)
}

// add puts a field into the tree.
func (p *projectionParser) add(n *projectionNode, path string, f projectionField) error {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		child := n.find(part)
		if i == len(parts)-1 {
			if child != nil {
				return srverr.New(31250, "Path collision at %s", path)
			}
			f.name = part
			n.fields = append(n.fields, f)
			return nil
		}
		if child == nil {
			n.fields = append(n.fields, projectionField{name: part, kind: kindNode, node: &projectionNode{}})
			child = &n.fields[len(n.fields)-1]
		}
		if child.kind != kindNode {
			return collisionBelow(path)
		}
		n = child.node
	}
	return nil
}

// collisionBelow is the error of a path that leads through something else than a document.
func collisionBelow(path string) error {
	_, tail, _ := strings.Cut(path, ".")
	return srverr.New(31249, "Path collision at %s remaining portion %s", path, tail)
}

// object parses {key: {...}}: an operator, or a projection of the fields below.
func (p *projectionParser) object(n *projectionNode, key string, v bson.RawValue, prefix string) error {
	sub := bson.Raw(v.Value)
	first, arg, ok := firstElement(sub)
	if !ok {
		return srverr.New(51270, "An empty sub-projection is not a valid value. Found empty object at path")
	}
	if strings.HasPrefix(first, "$") && countElements(sub) == 1 {
		if err := expr.CheckPath(key, p.o.version()); err != nil {
			return err
		}
		if err := p.mayCompute(); err != nil {
			return err
		}
		switch first {
		case "$slice":
			return p.slice(n, key, v, arg, prefix)
		case "$elemMatch":
			return p.elemMatch(n, key, v, arg, prefix)
		case "$meta":
			return p.meta(n, key, arg)
		}
		return p.operator(n, key, v)
	}
	if err := expr.CheckPath(key, p.o.version()); err != nil {
		return err
	}
	node, parts := n, strings.Split(key, ".")
	for i, part := range parts {
		child := node.find(part)
		if child == nil {
			node.fields = append(node.fields, projectionField{name: part, kind: kindNode, node: &projectionNode{}})
			child = &node.fields[len(node.fields)-1]
		}
		switch {
		case child.kind == kindNode:
		case i < len(parts)-1:
			return collisionBelow(key)
		default:
			return srverr.New(31250, "Path collision at %s", key)
		}
		node = child.node
	}
	for k, e := range sub.All() {
		if err := p.element(node, k, e, prefix+key+"."); err != nil {
			return err
		}
	}
	return nil
}

// operator parses an expression that is an operator with its arguments.
func (p *projectionParser) operator(n *projectionNode, key string, v bson.RawValue) error {
	if p.known && p.p.exclusion {
		return srverr.New(31252, "Cannot use expression other than $meta in exclusion projection")
	}
	return p.expression(n, key, v)
}

func (p *projectionParser) expression(n *projectionNode, key string, v bson.RawValue) error {
	if p.o == nil || p.o.Expr == nil {
		return srverr.New(srverr.QueryFeatureNotAllowed, "expressions are not supported in this projection")
	}
	e, err := p.o.Expr.ParseExpr(v)
	if fold, ok := err.(*FoldError); ok {
		if p.folded == nil {
			p.folded = fold.Err
		}
		err = nil
	}
	if err != nil {
		if name, _, ok := firstElement(v.Value); ok && v.Type == bson.TypeEmbeddedDocument {
			if se, isServer := err.(*srverr.Error); isServer && se.Msg == "Unrecognized expression '"+name+"'" {
				return srverr.New(31325, "Unknown expression %s", name)
			}
		}
		return err
	}
	p.known, p.p.exclusion = true, false
	return p.add(n, key, projectionField{kind: kindExpr, expr: e})
}

// metaNames are the arguments of $meta.
var metaNames = map[string]bool{
	"textScore": true, "randVal": true, "searchScore": true, "searchHighlights": true, "geoNearDistance": true,
	"geoNearPoint": true, "recordId": true, "indexKey": true, "sortKey": true,
}

func (p *projectionParser) meta(n *projectionNode, key string, arg bson.RawValue) error {
	name, ok := arg.StringValue()
	if !ok {
		return srverr.New(17307, "$meta only supports string arguments")
	}
	if !metaNames[name] {
		return srverr.New(17308, "Unsupported argument to $meta: %s", name)
	}
	p.p.metas = append(p.p.metas, name)
	return p.add(n, key, projectionField{kind: kindMeta, meta: name})
}

func (p *projectionParser) elemMatch(n *projectionNode, key string, v, arg bson.RawValue, prefix string) error {
	if arg.Type != bson.TypeEmbeddedDocument {
		return srverr.New(31274, "elemMatch: Invalid argument, object required, but got %s",
			bsontext.TypeName(arg.Type))
	}
	if prefix != "" || strings.Contains(key, ".") {
		return srverr.New(31275, "Cannot use $elemMatch projection on a nested field.")
	}
	if p.p.position != nil {
		return srverr.New(31255, "Cannot specify positional operator and $elemMatch.")
	}
	match, err := newFilterParser(p.o.plain()).parseElemMatch(condition{field: key, arg: arg})
	if err != nil {
		return err
	}
	p.hasElem = true
	return p.add(n, key, projectionField{kind: kindElemMatch, elem: match.(*leaf)})
}

func (p *projectionParser) slice(n *projectionNode, key string, v, arg bson.RawValue, prefix string) error {
	s, err := p.parseFindSlice(arg)
	if err == nil {
		err = p.add(n, key, projectionField{kind: kindSlice})
	}
	if err != nil {
		why := srverr.From(err)
		if err := p.operator(n, key, v); err != nil {
			return srverr.From(
				err).Prefix(fmt.Sprintf(
				"Invalid $slice syntax. The given syntax %s did not match the find() syntax because :: "+
					"Location%d: %s :: The given syntax did not match the expression $slice syntax. :: caused by :: ",
				bsontext.Document(v.Value), why.Code, why.Msg))
		}
		return nil
	}
	s.path = strings.Split(prefix+key, ".")
	p.p.slices = append(p.p.slices, *s)
	p.hasSlice = true
	return nil
}

// sliceNumber is a number of elements. Before version 5.0 servers cast it; then what is too large
// is the largest that there is, and NaN is 0.
func (p *projectionParser) sliceNumber(v bson.RawValue) int {
	if p.o.version().AtLeast(5, 0) {
		return int(min(max(truncate(v), math.MinInt32), math.MaxInt32))
	}
	return int(castInt(v))
}

func (p *projectionParser) parseFindSlice(arg bson.RawValue) (*sliceProjection, error) {
	if arg.IsNumber() {
		return &sliceProjection{limit: p.sliceNumber(arg)}, nil
	}
	if arg.Type != bson.TypeArray {
		return nil, srverr.New(31273, "$slice only supports numbers and [skip, limit] arrays")
	}
	list := bsondoc.Items(arg)
	switch {
	case len(list) != 2:
		return nil, srverr.New(31272, "$slice array argument should be of form [skip, limit]")
	case !list[0].IsNumber():
		return nil, srverr.New(31257, "$slice skip must be number but got: %s", bsontext.TypeName(list[0].Type))
	case !list[1].IsNumber():
		return nil, srverr.New(31258, "$slice limit must be number but got: %s", bsontext.TypeName(list[1].Type))
	}
	s := &sliceProjection{skip: p.sliceNumber(list[0]), limit: p.sliceNumber(list[1]), hasSkip: true}
	if s.limit <= 0 {
		return nil, srverr.New(31259, "$slice limit must be positive, got %d", s.limit)
	}
	return s, nil
}
