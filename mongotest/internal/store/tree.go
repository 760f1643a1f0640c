package store

import "cmp"

// tree is a persistent B+tree from keys to values: a change copies the nodes on its path and
// leaves the old tree as it was, so that everybody who holds one keeps a snapshot, and readers need
// no lock. What was made for the edit in progress belongs to nobody else yet and is changed in
// place. The zero tree is empty.
type tree[K cmp.Ordered, V any] struct {
	root *treeNode[K, V]
	n    int
}

const (
	fanout  = 31 // columns then fill the allocator's size classes
	minFill = fanout / 4
)

// treeNode is a leaf (vals) or an inner node (kids). The key of a child is the smallest key below
// it at the time the child was made; keys below it are never smaller, except under the first child,
// whose key is not looked at.
type treeNode[K cmp.Ordered, V any] struct {
	edit uint64
	n    int
	keys *column[K]
	vals *column[V]
	kids children[K, V]
}

// column holds the keys, values or children of the versions of a node. A version looks at its first
// entries only, so that one more entry at the end leaves the older versions as they are: ascending
// keys, which are the usual ones, are added without a copy.
type column[T any] struct {
	edit uint64
	used int // entries that some version may look at
	at   [fanout]T
}

// own returns a column with the same first n entries that the edit may change: c itself or a copy.
func (c *column[T]) own(edit uint64, n int) *column[T] {
	if c.edit == edit {
		return c
	}
	o := &column[T]{edit: edit, used: n}
	copy(o.at[:n], c.at[:n])
	return o
}

// insert puts v at i into a column with n entries and returns the column that has it.
func (c *column[T]) insert(edit uint64, n, i int, v T) *column[T] {
	if i < n || c.used != n {
		c = c.own(edit, n)
		copy(c.at[i+1:n+1], c.at[i:n])
	}
	c.at[i] = v
	c.used = n + 1
	return c
}

// set replaces the entry at i of a column with n entries and returns the column that has it.
func (c *column[T]) set(edit uint64, n, i int, v T) *column[T] {
	c = c.own(edit, n)
	c.at[i] = v
	return c
}

// remove takes the entry at i out of a column with n entries and returns the column without it.
func (c *column[T]) remove(edit uint64, n, i int) *column[T] {
	c = c.own(edit, n)
	copy(c.at[i:], c.at[i+1:n])
	clear(c.at[n-1 : n])
	c.used = n - 1
	return c
}

// tail returns a new column with the entries from at on.
func (c *column[T]) tail(edit uint64, n, from int) *column[T] {
	t := &column[T]{edit: edit, used: n - from}
	copy(t.at[:], c.at[from:n])
	return t
}

// trim tells the column that the node's new version looks at its first n entries only.
func (c *column[T]) trim(edit uint64, n int) {
	if c.edit == edit { // else older versions look at more
		clear(c.at[n:c.used])
		c.used = n
	}
}

// join appends the entries of another column.
func (c *column[T]) join(edit uint64, n int, o *column[T], more int) *column[T] {
	c = c.own(edit, n)
	copy(c.at[n:], o.at[:more])
	c.used = n + more
	return c
}

// children are the children of a node. The last one stands aside: with ascending keys it is the one
// that changes.
type children[K cmp.Ordered, V any] struct {
	first *column[*treeNode[K, V]] // all but the last
	last  *treeNode[K, V]
}

// at returns the child at i of n.
func (k *children[K, V]) at(n, i int) *treeNode[K, V] {
	if i == n-1 {
		return k.last
	}
	return k.first.at[i]
}

// insert, set, remove and join do what those of column do.

func (k *children[K, V]) insert(edit uint64, n, i int, x *treeNode[K, V]) {
	switch {
	case i < n:
		k.first = k.first.insert(edit, n-1, i, x)
		return
	case n > 0:
		k.first = k.first.insert(edit, n-1, n-1, k.last)
	}
	k.last = x
}

func (k *children[K, V]) set(edit uint64, n, i int, x *treeNode[K, V]) {
	if i == n-1 {
		k.last = x
	} else {
		k.first = k.first.set(edit, n-1, i, x)
	}
}

func (k *children[K, V]) remove(edit uint64, n, i int) {
	switch {
	case n == 1:
		k.last = nil
	case i == n-1:
		k.last = k.first.at[n-2]
		k.first.trim(edit, n-2)
	default:
		k.first = k.first.remove(edit, n-1, i)
	}
}

// cut keeps the first half of n children and returns the others.
func (k *children[K, V]) cut(edit uint64, n, half int) (right children[K, V]) {
	if half == n {
		return children[K, V]{first: &column[*treeNode[K, V]]{edit: edit}}
	}
	right = children[K, V]{first: k.first.tail(edit, n-1, half), last: k.last}
	k.last = k.first.at[half-1]
	k.first.trim(edit, half-1)
	return right
}

func (k *children[K, V]) join(edit uint64, n int, o *children[K, V], more int) {
	k.first = k.first.insert(edit, n-1, n-1, k.last).join(edit, n, o.first, more-1)
	k.last = o.last
}

func (t *tree[K, V]) len() int { return t.n }

func (x *treeNode[K, V]) isLeaf() bool { return x.vals != nil }

func (x *treeNode[K, V]) kid(i int) *treeNode[K, V] { return x.kids.at(x.n, i) }

// find returns the position of the first key that is not smaller.
func (x *treeNode[K, V]) find(key K) int {
	lo, hi := 0, x.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x.keys.at[mid] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// child returns the position of the child that the key belongs to.
func (x *treeNode[K, V]) child(key K) int {
	lo, hi := 1, x.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x.keys.at[mid] <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func (t *tree[K, V]) get(key K) (v V, ok bool) {
	x := t.root
	if x == nil {
		return v, false
	}
	for !x.isLeaf() {
		x = x.kid(x.child(key))
	}
	if i := x.find(key); i < x.n && x.keys.at[i] == key {
		return x.vals.at[i], true
	}
	return v, false
}

// atLeast returns the first key that is not smaller.
func (t *tree[K, V]) atLeast(key K) (found K, ok bool) {
	x := t.root
	if x == nil {
		return found, false
	}
	last := true // nothing is to the right
	for !x.isLeaf() {
		i := x.child(key)
		last = last && i == x.n-1
		x = x.kid(i)
	}
	if i := x.find(key); i < x.n {
		return x.keys.at[i], true
	} else if last {
		return found, false
	}
	it := t.seek(key)
	if !it.valid() {
		return found, false
	}
	return it.key(), true
}

// own returns a node that the edit may change: x itself or a copy. Its columns must be asked for
// themselves.
func (x *treeNode[K, V]) own(edit uint64) *treeNode[K, V] {
	if x.edit == edit {
		return x
	}
	c := *x
	c.edit = edit
	return &c
}

// set stores v under key. It reports whether the key is new.
func (t *tree[K, V]) set(edit uint64, key K, v V) bool {
	if t.root == nil {
		t.root = &treeNode[K, V]{edit: edit, keys: &column[K]{edit: edit}, vals: &column[V]{edit: edit}}
	}
	root, right, added := t.root.set(edit, key, v)
	if right != nil {
		top := &treeNode[K, V]{edit: edit, keys: &column[K]{edit: edit},
			kids: children[K, V]{first: &column[*treeNode[K, V]]{edit: edit}}}
		top.addKid(edit, 0, root)
		top.addKid(edit, 1, right)
		root = top
	}
	t.root = root
	if added {
		t.n++
	}
	return added
}

// set returns the changed node, and the node that was split off to its right if it was full.
func (x *treeNode[K, V]) set(edit uint64, key K, v V) (changed, right *treeNode[K, V], added bool) {
	x = x.own(edit)
	if x.isLeaf() {
		i := x.find(key)
		if i < x.n && x.keys.at[i] == key {
			x.vals = x.vals.set(edit, x.n, i, v)
			return x, nil, false
		}
		into, i, right := x.room(edit, i)
		into.keys = into.keys.insert(edit, into.n, i, key)
		into.vals = into.vals.insert(edit, into.n, i, v)
		into.n++
		return x, right, true
	}
	i := x.child(key)
	kid, split, added := x.kid(i).set(edit, key, v)
	x.kids.set(edit, x.n, i, kid)
	if split == nil {
		return x, nil, added
	}
	into, i, right := x.room(edit, i+1)
	into.addKid(edit, i, split)
	return x, right, added
}

// addKid puts a child at i into an inner node that has room.
func (x *treeNode[K, V]) addKid(edit uint64, i int, kid *treeNode[K, V]) {
	x.keys = x.keys.insert(edit, x.n, i, kid.keys.at[0])
	x.kids.insert(edit, x.n, i, kid)
	x.n++
}

// room returns the node that has room for what belongs at i, and the place there: x itself, or one
// of its halves if it is full; right is then the new one.
func (x *treeNode[K, V]) room(edit uint64, i int) (into *treeNode[K, V], at int, right *treeNode[K, V]) {
	if x.n < fanout {
		return x, i, nil
	}
	right = x.split(edit, i)
	if i > x.n || i == x.n && right.n == 0 {
		return right, i - x.n, right
	}
	return x, i, right
}

// split moves the upper half of a full node to a new one; nothing, if the next key goes to the very
// end, because ascending keys would leave all nodes half empty.
func (x *treeNode[K, V]) split(edit uint64, at int) *treeNode[K, V] {
	half := fanout / 2
	if at == fanout {
		half = fanout
	}
	r := &treeNode[K, V]{edit: edit, n: x.n - half, keys: x.keys.tail(edit, x.n, half)}
	x.keys.trim(edit, half)
	if x.isLeaf() {
		r.vals = x.vals.tail(edit, x.n, half)
		x.vals.trim(edit, half)
	} else {
		r.kids = x.kids.cut(edit, x.n, half)
	}
	x.n = half
	return r
}

// delete removes the key. It reports whether it was there.
func (t *tree[K, V]) delete(edit uint64, key K) bool {
	if _, ok := t.get(key); !ok {
		return false
	}
	x := t.root.delete(edit, key)
	for !x.isLeaf() && x.n == 1 {
		x = x.kid(0)
	}
	if x.n == 0 {
		x = nil
	}
	t.root = x
	t.n--
	return true
}

// delete removes a key that is there.
func (x *treeNode[K, V]) delete(edit uint64, key K) *treeNode[K, V] {
	x = x.own(edit)
	if x.isLeaf() {
		x.remove(edit, x.find(key))
		return x
	}
	i := x.child(key)
	kid := x.kid(i).delete(edit, key)
	x.kids.set(edit, x.n, i, kid)
	switch {
	case kid.n == 0:
		x.remove(edit, i)
	case kid.n < minFill && i > 0 && x.kid(i-1).n+kid.n <= fanout:
		x.merge(edit, i-1)
	case kid.n < minFill && i+1 < x.n && x.kid(i+1).n+kid.n <= fanout:
		x.merge(edit, i)
	}
	return x
}

// remove takes the entry at i out of the node.
func (x *treeNode[K, V]) remove(edit uint64, i int) {
	x.keys = x.keys.remove(edit, x.n, i)
	if x.isLeaf() {
		x.vals = x.vals.remove(edit, x.n, i)
	} else {
		x.kids.remove(edit, x.n, i)
	}
	x.n--
}

// merge appends child i+1 to child i.
func (x *treeNode[K, V]) merge(edit uint64, i int) {
	l, r := x.kid(i).own(edit), x.kid(i+1)
	l.keys = l.keys.join(edit, l.n, r.keys, r.n)
	if l.isLeaf() {
		l.vals = l.vals.join(edit, l.n, r.vals, r.n)
	} else {
		// The first key of an inner node is not kept up; where it ends up in the middle it has to
		// be right.
		l.keys.at[l.n] = x.keys.at[i+1]
		l.kids.join(edit, l.n, &r.kids, r.n)
	}
	l.n += r.n
	x.kids.set(edit, x.n, i, l)
	x.remove(edit, i+1)
}

// treeIter walks over a tree in either direction. It stays on the snapshot it was made for.
type treeIter[K cmp.Ordered, V any] struct {
	path [12]treePos[K, V]
	d    int // depth of path; 0: at the end
}

type treePos[K cmp.Ordered, V any] struct {
	x *treeNode[K, V]
	i int
}

// seek puts the iterator on the first entry whose key is not smaller.
func (t *tree[K, V]) seek(key K) (it treeIter[K, V]) {
	x := t.root
	if x == nil {
		return it
	}
	for !x.isLeaf() {
		i := x.child(key)
		it.push(x, i)
		x = x.kid(i)
	}
	it.push(x, x.find(key)-1)
	it.next()
	return it
}

// seekBefore puts the iterator on the last entry whose key is smaller.
func (t *tree[K, V]) seekBefore(key K) (it treeIter[K, V]) {
	x := t.root
	if x == nil {
		return it
	}
	for !x.isLeaf() {
		i := x.child(key)
		it.push(x, i)
		x = x.kid(i)
	}
	it.push(x, x.find(key))
	it.prev()
	return it
}

// first puts the iterator on the first entry, last on the last.
func (t *tree[K, V]) first() (it treeIter[K, V]) {
	for x := t.root; x != nil; {
		it.push(x, 0)
		if x.isLeaf() {
			break
		}
		x = x.kid(0)
	}
	return it
}

func (t *tree[K, V]) last() (it treeIter[K, V]) {
	for x := t.root; x != nil; {
		it.push(x, x.n-1)
		if x.isLeaf() {
			break
		}
		x = x.kid(x.n - 1)
	}
	return it
}

func (it *treeIter[K, V]) push(x *treeNode[K, V], i int) {
	it.path[it.d] = treePos[K, V]{x, i}
	it.d++
}

func (it *treeIter[K, V]) valid() bool { return it.d > 0 }

func (it *treeIter[K, V]) key() K {
	p := &it.path[it.d-1]
	return p.x.keys.at[p.i]
}

func (it *treeIter[K, V]) value() V {
	p := &it.path[it.d-1]
	return p.x.vals.at[p.i]
}

func (it *treeIter[K, V]) next() {
	for it.d > 0 {
		p := &it.path[it.d-1]
		if p.i++; p.i < p.x.n {
			for x := p.x; !x.isLeaf(); {
				x = x.kid(it.path[it.d-1].i)
				it.push(x, 0)
			}
			return
		}
		it.d--
	}
}

func (it *treeIter[K, V]) prev() {
	for it.d > 0 {
		p := &it.path[it.d-1]
		if p.i--; p.i >= 0 {
			for x := p.x; !x.isLeaf(); {
				x = x.kid(it.path[it.d-1].i)
				it.push(x, x.n-1)
			}
			return
		}
		it.d--
	}
}
