package analysis

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"allium/bson"
	"allium/internal/fle"
)

// Kind is how a field is encrypted.
type Kind uint8

// The first two are of Client-Side Field Level Encryption, the others of Queryable Encryption.
const (
	Deterministic Kind = iota + 1
	Random
	Unindexed
	Equality
	Range
	Text
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"none", "deterministic", "random", "unindexed", "equality", "range", "text"}[k]
}

// queryable reports whether k is one of Queryable Encryption.
func (k Kind) queryable() bool { return k >= Unindexed }

// Encryption is the metadata of an encrypted field.
type Encryption struct {
	Kind       Kind
	KeyID      bson.UUID
	KeyPointer string // CSFLE: instead of KeyID, a JSON pointer to the name of the key in the document
	KeyAltName string // QE: instead of KeyID, a name that nobody has resolved yet

	namespace string
	types     typeSet

	// Queryable Encryption.
	contention int64
	sparsity   int64
	min, max   bson.RawValue
	precision  *int32
	trimFactor *int32
	prefix     *fle.Affix
	suffix     *fle.Affix
	substring  *fle.Substring
	foldCase   bool
	foldMarks  bool
}

// same reports whether equal values have equal ciphertexts in both fields, or would have with
// Random.
func (e *Encryption) same(o *Encryption) bool {
	return e.Kind == o.Kind && e.KeyID == o.KeyID && e.KeyPointer == o.KeyPointer && e.KeyAltName == o.KeyAltName &&
		slices.Equal(e.types, o.types)
}

// Schema is the schema of one collection. It is read only: many analyses may use it at once. A nil
// *Schema is that of a collection that has none.
type Schema struct {
	namespace string
	queryable bool
	root      *node
	source    bson.Raw
}

// Encrypts reports whether any field is encrypted.
func (s *Schema) Encrypts() bool { return s != nil && s.root != nil }

// node describes what is encrypted at and below a path. A nil *node: nothing. That a node is not
// nil means that something is; prune keeps it so.
type node struct {
	enc    *Encryption // the path itself
	opaque bool        // encrypted values are in it, in a form that can be passed on, not compared
	array  bool        // the rest holds for each element of an array

	fixed    map[string]*node // what a stage put there; goes before the others
	props    map[string]*node // with nil for a property that is known not to be encrypted
	patterns []pattern
	rest     *node // of all others
}

var opaqueNode = &node{opaque: true}

// child returns the node of a field.
func (n *node) child(key string) *node {
	switch {
	case n == nil:
		return nil
	case n.opaque:
		return n
	case n.enc != nil:
		return opaqueNode
	}
	if c, ok := n.fixed[key]; ok {
		return c
	}
	c, known := n.props[key]
	for _, p := range n.patterns {
		if p.matches(key) {
			if known {
				c = both(c, p.node)
			} else {
				c, known = p.node, true
			}
		}
	}
	if known {
		return c
	}
	return n.rest
}

// known reports whether the schema names key at n.
func (n *node) known(key string) bool {
	if _, ok := n.fixed[key]; ok {
		return true
	}
	_, ok := n.props[key]
	return ok
}

// both returns the node of a field that two parts of a schema describe.
func both(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil || a.equal(b):
		return a
	}
	return opaqueNode // the parts contradict each other
}

// at returns the node of a dotted path, and whether the path goes on below an encrypted field.
func (n *node) at(path string) (found *node, below bool) {
	for key := range strings.SplitSeq(path, ".") {
		if n == nil {
			return nil, false
		}
		if n.enc != nil {
			return nil, true
		}
		n = n.step(key)
	}
	return n, false
}

// step is child for a key of a path in a query, where a number may be the position in an array.
func (n *node) step(key string) *node {
	if n == nil || !isIndex(key) || n.known(key) {
		return n.child(key)
	}
	if n.array {
		element := *n
		element.array = false
		return &element
	}
	return opaqueNode // no array is expected here, and what an element holds is not known
}

func isIndex(key string) bool {
	if key == "" {
		return false
	}
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return false
		}
	}
	return true
}

// with returns n with another node at path. The caller has made sure that the path does not go
// below an encrypted field.
func (n *node) with(path string, other *node) *node {
	if n != nil && n.opaque {
		return n
	}
	key, below, deeper := strings.Cut(path, ".")
	if deeper {
		other = n.child(key).with(below, other)
	}
	if n == nil && other == nil {
		return nil
	}
	out := &node{fixed: map[string]*node{key: other}}
	if n != nil {
		*out = *n
		out.fixed = maps.Clone(n.fixed)
		if out.fixed == nil {
			out.fixed = map[string]*node{}
		}
		out.fixed[key] = other
	}
	return out.prune()
}

// prune returns n, or nil if nothing at or below it is encrypted.
func (n *node) prune() *node {
	if n == nil || n.enc != nil || n.opaque || n.rest != nil {
		return n
	}
	for _, c := range n.fixed {
		if c != nil {
			return n
		}
	}
	for key, c := range n.props {
		if _, hidden := n.fixed[key]; c != nil && !hidden {
			return n
		}
	}
	for _, p := range n.patterns {
		if p.node != nil {
			return n
		}
	}
	return nil
}

// elements returns n as the node of an array of what n describes.
func (n *node) elements() *node {
	if n == nil || n.array || n.opaque {
		return n
	}
	if n.enc != nil {
		return opaqueNode
	}
	out := *n
	out.array = true
	return &out
}

// element returns the node of one element of the array n.
func (n *node) element() *node {
	if n == nil || !n.array {
		return n
	}
	out := *n
	out.array = false
	return &out
}

// equal reports whether the same paths are encrypted in the same way at and below both.
func (n *node) equal(o *node) bool {
	switch {
	case n == o:
		return true
	case n == nil || o == nil || n.opaque != o.opaque || n.array != o.array || (n.enc == nil) != (o.enc == nil):
		return false
	case n.enc != nil:
		return n.enc.same(o.enc)
	case len(n.patterns) != len(o.patterns) || !n.rest.equal(o.rest):
		return false
	}
	for i, p := range n.patterns {
		if p.source != o.patterns[i].source || !p.node.equal(o.patterns[i].node) {
			return false
		}
	}
	for _, m := range []map[string]*node{n.fixed, n.props, o.fixed, o.props} {
		for key := range m {
			if !n.child(key).equal(o.child(key)) {
				return false
			}
		}
	}
	return true
}

// deterministic reports whether everything encrypted at and below n is deterministic.
func (n *node) deterministic() bool {
	if n == nil {
		return true
	}
	if n.enc != nil {
		return n.enc.Kind == Deterministic
	}
	if n.opaque || !n.rest.deterministic() {
		return false
	}
	for _, p := range n.patterns {
		if !p.node.deterministic() {
			return false
		}
	}
	for _, m := range []map[string]*node{n.fixed, n.props} {
		for key := range m {
			if !n.child(key).deterministic() {
				return false
			}
		}
	}
	return true
}

// each calls f for n and for every object below it that holds an encrypted field.
func (n *node) each(f func(*node) error) error {
	if n == nil || n.enc != nil {
		return nil
	}
	if err := f(n); err != nil {
		return err
	}
	for _, m := range []map[string]*node{n.fixed, n.props} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if err := m[key].each(f); err != nil {
				return err
			}
		}
	}
	for _, p := range n.patterns {
		if err := p.node.each(f); err != nil {
			return err
		}
	}
	return n.rest.each(f)
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

func index(i int) string { return strconv.Itoa(i) }
