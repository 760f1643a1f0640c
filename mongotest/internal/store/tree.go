package store

// tree is a persistent B+tree from strings to values: a change copies the nodes on its path and leaves the old tree as it
// was, so that everybody who holds one keeps a snapshot, and readers need no lock. Nodes that were made for the edit in
// progress belong to nobody else yet and are changed in place. The zero tree is empty.
type tree[V any] struct {
	root *treeNode[V]
	n    int
}

const (
	fanout  = 32
	minFill = fanout / 4
)

// treeNode is a leaf (vals) or an inner node (kids). The key of a child is the smallest key below it at the time the child
// was made; keys below it are never smaller, except under the first child, whose key is not looked at.
type treeNode[V any] struct {
	edit uint64
	n    int
	keys [fanout]string
	vals *[fanout]V
	kids *[fanout]*treeNode[V]
}

func (t *tree[V]) len() int { return t.n }

// find returns the position of the first key that is not smaller.
func (x *treeNode[V]) find(key string) int {
	lo, hi := 0, x.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x.keys[mid] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// child returns the position of the child that the key belongs to.
func (x *treeNode[V]) child(key string) int {
	lo, hi := 1, x.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x.keys[mid] <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func (t *tree[V]) get(key string) (v V, ok bool) {
	x := t.root
	if x == nil {
		return v, false
	}
	for x.kids != nil {
		x = x.kids[x.child(key)]
	}
	if i := x.find(key); i < x.n && x.keys[i] == key {
		return x.vals[i], true
	}
	return v, false
}

// own returns a node that the edit may change: x itself or a copy.
func (x *treeNode[V]) own(edit uint64) *treeNode[V] {
	if x.edit == edit {
		return x
	}
	c := &treeNode[V]{edit: edit, n: x.n, keys: x.keys}
	if x.kids != nil {
		kids := *x.kids
		c.kids = &kids
	} else {
		vals := *x.vals
		c.vals = &vals
	}
	return c
}

// set stores v under key. It reports whether the key is new.
func (t *tree[V]) set(edit uint64, key string, v V) bool {
	if t.root == nil {
		t.root = &treeNode[V]{edit: edit, vals: new([fanout]V)}
	}
	root, right, added := t.root.set(edit, key, v)
	if right != nil {
		top := &treeNode[V]{edit: edit, n: 2, kids: new([fanout]*treeNode[V])}
		top.keys[0], top.kids[0] = root.keys[0], root
		top.keys[1], top.kids[1] = right.keys[0], right
		root = top
	}
	t.root = root
	if added {
		t.n++
	}
	return added
}

// set returns the changed node, and the node that was split off to its right if it was full.
func (x *treeNode[V]) set(edit uint64, key string, v V) (changed, right *treeNode[V], added bool) {
	x = x.own(edit)
	if x.kids == nil {
		i := x.find(key)
		if i < x.n && x.keys[i] == key {
			x.vals[i] = v
			return x, nil, false
		}
		into := x
		if x.n == fanout {
			right = x.split(edit, i)
			if i > x.n || i == x.n && right.n == 0 {
				into, i = right, i-x.n
			}
		}
		copy(into.keys[i+1:into.n+1], into.keys[i:into.n])
		copy(into.vals[i+1:into.n+1], into.vals[i:into.n])
		into.keys[i], into.vals[i] = key, v
		into.n++
		return x, right, true
	}
	i := x.child(key)
	kid, split, added := x.kids[i].set(edit, key, v)
	x.kids[i] = kid
	if split == nil {
		return x, nil, added
	}
	into, i := x, i+1
	if x.n == fanout {
		right = x.split(edit, i)
		if i > x.n || i == x.n && right.n == 0 {
			into, i = right, i-x.n
		}
	}
	copy(into.keys[i+1:into.n+1], into.keys[i:into.n])
	copy(into.kids[i+1:into.n+1], into.kids[i:into.n])
	into.keys[i], into.kids[i] = split.keys[0], split
	into.n++
	return x, right, added
}

// split moves the upper half of a full node to a new one; nothing, if the next key goes to the very end, because ascending
// keys would leave all nodes half empty.
func (x *treeNode[V]) split(edit uint64, at int) *treeNode[V] {
	half := fanout / 2
	if at == fanout {
		half = fanout
	}
	r := &treeNode[V]{edit: edit, n: x.n - half}
	copy(r.keys[:], x.keys[half:x.n])
	clear(x.keys[half:x.n])
	if x.kids != nil {
		r.kids = new([fanout]*treeNode[V])
		copy(r.kids[:], x.kids[half:x.n])
		clear(x.kids[half:x.n])
	} else {
		r.vals = new([fanout]V)
		copy(r.vals[:], x.vals[half:x.n])
		clear(x.vals[half:x.n])
	}
	x.n = half
	return r
}

// delete removes the key. It reports whether it was there.
func (t *tree[V]) delete(edit uint64, key string) bool {
	if _, ok := t.get(key); !ok {
		return false
	}
	x := t.root.delete(edit, key)
	for x.kids != nil && x.n == 1 {
		x = x.kids[0]
	}
	if x.n == 0 {
		x = nil
	}
	t.root = x
	t.n--
	return true
}

// delete removes a key that is there.
func (x *treeNode[V]) delete(edit uint64, key string) *treeNode[V] {
	x = x.own(edit)
	if x.kids == nil {
		x.remove(x.find(key))
		return x
	}
	i := x.child(key)
	kid := x.kids[i].delete(edit, key)
	x.kids[i] = kid
	switch {
	case kid.n == 0:
		x.remove(i)
	case kid.n < minFill && i > 0 && x.kids[i-1].n+kid.n <= fanout:
		x.merge(edit, i-1)
	case kid.n < minFill && i+1 < x.n && x.kids[i+1].n+kid.n <= fanout:
		x.merge(edit, i)
	}
	return x
}

// remove takes the entry at i out of the node.
func (x *treeNode[V]) remove(i int) {
	copy(x.keys[i:], x.keys[i+1:x.n])
	x.keys[x.n-1] = ""
	if x.kids != nil {
		copy(x.kids[i:], x.kids[i+1:x.n])
		x.kids[x.n-1] = nil
	} else {
		var zero V
		copy(x.vals[i:], x.vals[i+1:x.n])
		x.vals[x.n-1] = zero
	}
	x.n--
}

// merge appends child i+1 to child i.
func (x *treeNode[V]) merge(edit uint64, i int) {
	l, r := x.kids[i].own(edit), x.kids[i+1]
	copy(l.keys[l.n:], r.keys[:r.n])
	if l.kids != nil {
		// The first key of an inner node is not kept up; where it ends up in the middle it has to be right.
		l.keys[l.n] = x.keys[i+1]
		copy(l.kids[l.n:], r.kids[:r.n])
	} else {
		copy(l.vals[l.n:], r.vals[:r.n])
	}
	l.n += r.n
	x.kids[i] = l
	x.remove(i + 1)
}

// treeIter walks over a tree in either direction. It stays on the snapshot it was made for.
type treeIter[V any] struct {
	path [12]treePos[V]
	d    int // depth of path; 0: at the end
}

type treePos[V any] struct {
	x *treeNode[V]
	i int
}

// seek puts the iterator on the first entry whose key is not smaller.
func (t *tree[V]) seek(key string) (it treeIter[V]) {
	x := t.root
	if x == nil {
		return it
	}
	for x.kids != nil {
		i := x.child(key)
		it.push(x, i)
		x = x.kids[i]
	}
	it.push(x, x.find(key)-1)
	it.next()
	return it
}

// seekBefore puts the iterator on the last entry whose key is smaller.
func (t *tree[V]) seekBefore(key string) (it treeIter[V]) {
	x := t.root
	if x == nil {
		return it
	}
	for x.kids != nil {
		i := x.child(key)
		it.push(x, i)
		x = x.kids[i]
	}
	it.push(x, x.find(key))
	it.prev()
	return it
}

// first puts the iterator on the first entry, last on the last.
func (t *tree[V]) first() (it treeIter[V]) {
	for x := t.root; x != nil; {
		it.push(x, 0)
		if x.kids == nil {
			break
		}
		x = x.kids[0]
	}
	return it
}

func (t *tree[V]) last() (it treeIter[V]) {
	for x := t.root; x != nil; {
		it.push(x, x.n-1)
		if x.kids == nil {
			break
		}
		x = x.kids[x.n-1]
	}
	return it
}

func (it *treeIter[V]) push(x *treeNode[V], i int) {
	it.path[it.d] = treePos[V]{x, i}
	it.d++
}

func (it *treeIter[V]) valid() bool { return it.d > 0 }

func (it *treeIter[V]) key() string {
	p := &it.path[it.d-1]
	return p.x.keys[p.i]
}

func (it *treeIter[V]) value() V {
	p := &it.path[it.d-1]
	return p.x.vals[p.i]
}

func (it *treeIter[V]) next() {
	for it.d > 0 {
		p := &it.path[it.d-1]
		if p.i++; p.i < p.x.n {
			for x := p.x; x.kids != nil; {
				x = x.kids[it.path[it.d-1].i]
				it.push(x, 0)
			}
			return
		}
		it.d--
	}
}

func (it *treeIter[V]) prev() {
	for it.d > 0 {
		p := &it.path[it.d-1]
		if p.i--; p.i >= 0 {
			for x := p.x; x.kids != nil; {
				x = x.kids[it.path[it.d-1].i]
				it.push(x, x.n-1)
			}
			return
		}
		it.d--
	}
}
