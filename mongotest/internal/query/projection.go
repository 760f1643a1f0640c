package query

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// Projection is a parsed find projection. It is safe for concurrent use if its expressions are.
type Projection struct {
	root      projectionNode
	exclusion bool
	slices    []sliceProjection
	position  *positionalProjection
	metas     []string
}

// projectionNode is one document level of a projection.
type projectionNode struct {
	fields   []projectionField
	computed bool // something below is computed
}

type projectionField struct {
	name string
	kind projectionKind
	node *projectionNode // kindNode
	expr Expr            // kindExpr
	meta string          // kindMeta
	elem *leaf           // kindElemMatch
}

type projectionKind uint8

const (
	kindInclude projectionKind = iota
	kindExclude
	kindNode
	kindExpr
	kindMeta
	kindElemMatch
	kindSlice
	kindPositional
)

// sliceProjection is {path: {$slice: ...}}; it applies to the result of everything else.
type sliceProjection struct {
	path        []string
	skip, limit int
	hasSkip     bool
}

// positionalProjection is {"path.$": 1}. The filter is that of Filter.unordered.
type positionalProjection struct {
	path []string
	root node
}

func (n *projectionNode) find(name string) *projectionField {
	for i := range n.fields {
		if n.fields[i].name == name {
			return &n.fields[i]
		}
	}
	return nil
}

// NeedsMeta reports whether the projection contains this $meta.
func (p *Projection) NeedsMeta(name string) bool { return slices.Contains(p.metas, name) }

// Computes reports whether the projection includes fields, and computes some by expressions: what
// it reads are these fields and the expressions' paths.
func (p *Projection) Computes() bool {
	return !p.exclusion && p.root.computed && p.position == nil && len(p.slices) == 0 && len(p.metas) == 0 &&
		p.root.plain()
}

// plain reports whether there is nothing but fields and expressions.
func (n *projectionNode) plain() bool {
	for _, f := range n.fields {
		switch {
		case f.kind == kindNode && !f.node.plain():
			return false
		case f.kind != kindNode && f.kind != kindInclude && f.kind != kindExclude && f.kind != kindExpr:
			return false
		}
	}
	return true
}

// SortKeys returns the paths that hold the sort key of a document.
func (p *Projection) SortKeys() [][]string { return p.root.sortKeys(nil, nil) }

func (n *projectionNode) sortKeys(prefix []string, list [][]string) [][]string {
	for _, f := range n.fields {
		path := append(prefix[:len(prefix):len(prefix)], f.name)
		switch {
		case f.kind == kindNode:
			list = f.node.sortKeys(path, list)
		case f.kind == kindMeta && f.meta == "sortKey":
			list = append(list, path)
		}
	}
	return list
}

// Fields returns the paths that are enough to compute the projection, if it includes fields only:
// then it can be answered from an index that has them. ok is false for all other projections.
func (p *Projection) Fields() (paths []string, ok bool) {
	if p.exclusion || p.root.computed || p.position != nil || len(p.slices) > 0 {
		return nil, false
	}
	paths = p.root.paths("", nil)
	if p.root.find("_id") == nil {
		paths = append(paths, "_id")
	}
	return paths, true
}

// Simple reports whether the projection only includes or excludes fields at the top of documents.
func (p *Projection) Simple() bool {
	if p.root.computed || p.position != nil || len(p.slices) > 0 || len(p.metas) > 0 {
		return false
	}
	for _, f := range p.root.fields {
		if f.kind != kindInclude && f.kind != kindExclude {
			return false
		}
	}
	return true
}

func (n *projectionNode) paths(prefix string, list []string) []string {
	for _, f := range n.fields {
		switch f.kind {
		case kindInclude:
			list = append(list, prefix+f.name)
		case kindNode:
			list = f.node.paths(prefix+f.name+".", list)
		}
	}
	return list
}

// Apply returns the projected document. meta supplies metadata by name, the zero RawValue where
// there is none; it may be nil if the projection asks for no metadata.
func (p *Projection) Apply(doc bson.Raw, meta func(name string) bson.RawValue) (bson.Raw, error) {
	r := projectionRun{p: p, doc: doc, meta: meta}
	v, err := r.document(&p.root, doc, true)
	if err != nil {
		return nil, err
	}
	out := bson.Raw(v.Value)
	if p.position != nil {
		if out, err = p.position.apply(doc, out); err != nil {
			return nil, err
		}
	}
	for _, s := range p.slices {
		out = s.document(out, 0)
	}
	return out, nil
}

// projectionRun is one application.
type projectionRun struct {
	p    *Projection
	doc  bson.Raw
	meta func(name string) bson.RawValue
}

// document projects one level of a document.
func (r *projectionRun) document(n *projectionNode, doc bson.Raw, top bool) (bson.RawValue, error) {
	exclusion := r.p.exclusion
	start, b := bson.BeginDocument(make([]byte, 0, len(doc)))
	for rest := doc.Elements(); len(rest) > 0; {
		key, v, more, err := bson.ReadElement(rest)
		if err != nil {
			break
		}
		rest = more
		f := n.find(key)
		if f == nil {
			if exclusion || top && key == "_id" {
				b = bson.AppendRawValue(b, key, v)
			}
			continue
		}
		switch f.kind {
		case kindInclude, kindSlice, kindPositional:
			b = bson.AppendRawValue(b, key, v)
		case kindExclude:
		case kindNode:
			out, err := r.value(f.node, v)
			if err != nil {
				return out, err
			}
			if out.Type != 0 {
				b = bson.AppendRawValue(b, key, out)
			}
		default:
			if !exclusion {
				continue // computed fields come after the others
			}
			out, err := r.compute(f)
			if err != nil {
				return out, err
			}
			if out.Type != 0 {
				b = bson.AppendRawValue(b, key, out)
			}
		}
	}
	if n.computed {
		for i := range n.fields {
			f := &n.fields[i]
			var out bson.RawValue
			var err error
			switch f.kind {
			case kindExpr, kindMeta, kindElemMatch:
				if exclusion && lookup(doc, f.name).Type != 0 {
					continue
				}
				out, err = r.compute(f)
			case kindNode:
				if !f.node.computed || lookup(doc, f.name).Type != 0 {
					continue
				}
				out, err = r.value(f.node, bson.RawValue{})
			}
			if err != nil {
				return out, err
			}
			if out.Type != 0 {
				b = bson.AppendRawValue(b, f.name, out)
			}
		}
	}
	return bsondoc.DocumentValue(bson.EndDocument(b, start)), nil
}

// value projects what stands at a path of which the projection wants parts.
func (r *projectionRun) value(n *projectionNode, v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return r.document(n, v.Value, false)
	case bson.TypeArray:
		start, b := bson.BeginDocument(make([]byte, 0, len(v.Value)))
		i := 0
		for e := range bson.Raw(v.Value).Values() {
			out, err := r.value(n, e)
			if err != nil {
				return out, err
			}
			if out.Type != 0 {
				b = append(bson.AppendIndexHeader(b, out.Type, i), out.Value...)
				i++
			}
		}
		return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(b, start)}, nil
	}
	switch {
	case n.computed:
		return r.document(n, nil, false)
	case r.p.exclusion:
		return v, nil
	}
	return bson.RawValue{}, nil
}

func (r *projectionRun) compute(f *projectionField) (bson.RawValue, error) {
	switch f.kind {
	case kindExpr:
		return f.expr.Eval(r.doc)
	case kindMeta:
		if r.meta == nil {
			return bson.RawValue{}, nil
		}
		return r.meta(f.meta), nil
	case kindElemMatch:
		v := lookup(r.doc, f.name)
		if v.Type != bson.TypeArray {
			return bson.RawValue{}, nil
		}
		ok, index := f.elem.test.test(v)
		if !ok {
			return bson.RawValue{}, nil
		}
		return bsondoc.ArrayValue(bsondoc.Items(v)[index : index+1]...), nil
	}
	return bson.RawValue{}, nil
}

// document applies the slice to the document's field that is the i-th part of the path.
func (s *sliceProjection) document(doc bson.Raw, i int) bson.Raw {
	v := lookup(doc, s.path[i])
	last := i == len(s.path)-1
	var out bson.RawValue
	switch {
	case v.Type == bson.TypeArray && last:
		out = s.cut(v)
	case v.Type == bson.TypeArray:
		out = s.array(v, i+1)
	case v.Type == bson.TypeEmbeddedDocument && !last:
		out = bsondoc.DocumentValue(s.document(v.Value, i+1))
	default:
		return doc
	}
	return replaceField(doc, s.path[i], out)
}

func (s *sliceProjection) array(v bson.RawValue, i int) bson.RawValue {
	list := bsondoc.Items(v)
	for j, e := range list {
		switch e.Type {
		case bson.TypeEmbeddedDocument:
			list[j] = bsondoc.DocumentValue(s.document(e.Value, i))
		case bson.TypeArray:
			list[j] = s.array(e, i)
		}
	}
	return bsondoc.ArrayValue(list...)
}

func (s *sliceProjection) cut(v bson.RawValue) bson.RawValue {
	list := bsondoc.Items(v)
	n := len(list)
	switch {
	case s.hasSkip:
		from := min(s.skip, n)
		if s.skip < 0 {
			from = max(n+s.skip, 0)
		}
		list = list[from:min(n, from+min(s.limit, n))]
	case s.limit < 0:
		list = list[max(n+s.limit, 0):]
	default:
		list = list[:min(s.limit, n)]
	}
	return bsondoc.ArrayValue(list...)
}

// replaceField returns the document with another value for a field that it has.
func replaceField(doc bson.Raw, name string, v bson.RawValue) bson.Raw {
	start, b := bson.BeginDocument(make([]byte, 0, len(doc)))
	for key, old := range doc.All() {
		if key == name {
			old = v
		}
		b = bson.AppendRawValue(b, key, old)
	}
	return bson.EndDocument(b, start)
}

// apply cuts the first array on the path down to the element that made the filter match.
func (p *positionalProjection) apply(before, after bson.Raw) (bson.Raw, error) {
	_, index, err := p.root.match(before)
	if err != nil {
		return nil, err
	}
	return p.document(after, 0, index)
}

func (p *positionalProjection) document(doc bson.Raw, i, index int) (bson.Raw, error) {
	v := lookup(doc, p.path[i])
	switch {
	case v.Type == bson.TypeArray:
		if index == noIndex {
			return nil, srverr.New(51246, "positional operator '.$' couldn't find a matching element in the array")
		}
		list := bsondoc.Items(v)
		if index >= len(list) {
			return nil, srverr.New(51247, "positional operator '.$' element mismatch")
		}
		return replaceField(doc, p.path[i], bsondoc.ArrayValue(list[index:index+1]...)), nil
	case v.Type == bson.TypeEmbeddedDocument && i < len(p.path)-1:
		inner, err := p.document(v.Value, i+1, index)
		if err != nil {
			return nil, err
		}
		return replaceField(doc, p.path[i], bsondoc.DocumentValue(inner)), nil
	}
	return doc, nil
}
