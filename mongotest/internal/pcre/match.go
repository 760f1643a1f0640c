package pcre

import (
	"bytes"
	"unicode/utf8"
)

// matcher is one search.
type matcher struct {
	re         *Regexp
	s          []byte
	caps       []int
	start, end int
	steps      int
	tried      int  // steps before the match that is tried now
	limited    bool // it has taken more steps than the pattern allows
	depth      int
	recursion  []int // numbers of the groups that are being recursed into

	accept func(int) bool // what a match at its end goes on with: that of the innermost pattern
	marks  []mark
	open   []opened
	cut    cut
	cutAlt *altNode // of cutThen
	skipTo int      // of cutSkip

	count func(steps int) // nil: nobody counts
	done  int             // steps and characters since its last call
}

// countAfter is how many steps pass between two calls of count.
const countAfter = 256

// did counts work, for those who may want to end it.
func (m *matcher) did(n int) {
	if m.done += n; m.done >= countAfter {
		m.report()
	}
}

func (m *matcher) report() {
	n := m.done
	if m.done = 0; m.count != nil && n > 0 {
		m.count(n)
	}
}

// match matches a node at a position and calls k with the position behind it, for each way to match
// until k returns true.
func (m *matcher) match(n node, i int, k func(int) bool) bool {
	m.steps++
	m.did(1)
	if m.steps > maxSteps || m.depth > maxDepth {
		return false
	}
	if m.re.limit < maxSteps && m.steps-m.tried >= m.re.limit {
		m.limited, m.cut = true, cutAll
		return false
	}
	m.depth++
	defer func() { m.depth-- }()
	switch n := n.(type) {
	case nil:
		return k(i)
	case *seqNode:
		return m.sequence(n.list, i, k)
	case *altNode:
		for _, c := range n.list {
			if m.match(c, i, k) {
				return true
			}
			if m.cut == cutThen && m.cutAlt == n {
				m.uncut()
			}
			if m.cut != noCut {
				return false
			}
		}
		return false
	case *charNode, *anyNode, *classNode:
		next, ok := m.one(n, i)
		return ok && k(next)
	case *repeatNode:
		return m.repeat(n, i, k)
	case *groupNode:
		return m.group(n, i, k)
	case *atomicNode:
		return m.atomic(n.child, i, k)
	case *verbNode:
		return m.verb(n, i, k)
	case *lookNode:
		saved := append([]int(nil), m.caps...)
		if m.look(n, i) == n.negated {
			copy(m.caps, saved)
			return false
		}
		if n.negated {
			copy(m.caps, saved)
		}
		if k(i) {
			return true
		}
		copy(m.caps, saved)
		return false
	case assertNode:
		return m.assert(n, i) && k(i)
	case *backrefNode:
		return m.backref(n, i, k)
	case *recurseNode:
		return m.recurse(n, i, k)
	case *condNode:
		if m.condition(n, i) {
			return m.match(n.yes, i, k)
		}
		return m.match(n.no, i, k)
	case keepNode:
		old := m.start
		m.start = i
		if k(i) {
			return true
		}
		m.start = old
		return false
	case newlineNode:
		if bytes.HasPrefix(m.s[i:], []byte("\r\n")) {
			return k(i + 2)
		}
		r, size := utf8.DecodeRune(m.s[i:])
		return size > 0 && isVertical(r) && k(i+size)
	case graphemeNode:
		return m.grapheme(i, k)
	}
	return false
}

func (m *matcher) sequence(list []node, i int, k func(int) bool) bool {
	for len(list) > 0 {
		next, ok, single := i, false, true
		switch list[0].(type) {
		case *charNode, *anyNode, *classNode:
			next, ok = m.one(list[0], i)
		default:
			single = false
		}
		if !single {
			break
		}
		if !ok {
			return false
		}
		i, list = next, list[1:]
	}
	switch len(list) {
	case 0:
		return k(i)
	case 1:
		return m.match(list[0], i, k)
	}
	return m.match(list[0], i, func(j int) bool { return m.sequence(list[1:], j, k) })
}

// one matches a node that stands for one character.
func (m *matcher) one(n node, i int) (next int, ok bool) {
	if i >= len(m.s) {
		return i, false
	}
	r, size := rune(m.s[i]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRune(m.s[i:])
	}
	switch n := n.(type) {
	case *charNode:
		ok = r == n.r || n.fold && equalFold(r, n.r)
	case *anyNode:
		if m.re.newline == lineFeed {
			ok = n.newline || r != '\n'
		} else {
			ok = n.newline || m.re.newline.at(m.s, i) == 0
		}
	case *classNode:
		ok = n.has(r)
	}
	return i + size, ok
}

func (m *matcher) repeat(n *repeatNode, i int, k func(int) bool) bool {
	if n.possessive {
		c := *n
		c.possessive = false
		return m.atomic(&c, i, k)
	}
	switch n.child.(type) {
	case *charNode, *anyNode, *classNode:
		return m.repeatOne(n, i, k)
	}
	return m.repeatFrom(n, 0, i, k)
}

// repeatOne repeats a single character without recursion.
func (m *matcher) repeatOne(n *repeatNode, i int, k func(int) bool) bool {
	count := 0
	for count < n.min {
		next, ok := m.one(n.child, i)
		if !ok {
			return false
		}
		i, count = next, count+1
		m.did(1)
	}
	if n.lazy {
		for {
			if k(i) {
				return true
			}
			m.steps++
			m.did(1)
			next, ok := m.one(n.child, i)
			if !ok || count == n.max || m.steps > maxSteps || m.cut != noCut {
				return false
			}
			i, count = next, count+1
		}
	}
	first := i
	for count != n.max {
		next, ok := m.one(n.child, i)
		if !ok {
			break
		}
		i, count = next, count+1
		m.did(1)
	}
	for {
		if k(i) {
			return true
		}
		m.steps++
		m.did(1)
		if i == first || m.steps > maxSteps || m.cut != noCut {
			return false
		}
		for i--; i > first && !utf8.RuneStart(m.s[i]); i-- {
		}
	}
}

func (m *matcher) repeatFrom(n *repeatNode, count, i int, k func(int) bool) bool {
	again := func() bool {
		return count != n.max && m.match(n.child, i, func(j int) bool {
			if j == i && count >= n.min {
				return false // an empty round more would go on for ever
			}
			return m.repeatFrom(n, count+1, j, k)
		})
	}
	if count < n.min {
		return again()
	}
	if n.lazy {
		return k(i) || m.cut == noCut && again()
	}
	return again() || m.cut == noCut && k(i)
}

func (m *matcher) group(n *groupNode, i int, k func(int) bool) bool {
	if m.re.accepts {
		return m.openGroup(n, i, k)
	}
	return m.match(n.child, i, func(j int) bool {
		oldStart, oldEnd := m.caps[2*n.index], m.caps[2*n.index+1]
		m.caps[2*n.index], m.caps[2*n.index+1] = i, j
		if k(j) {
			return true
		}
		m.caps[2*n.index], m.caps[2*n.index+1] = oldStart, oldEnd
		return false
	})
}

func (m *matcher) atomic(n node, i int, k func(int) bool) bool {
	saved := append([]int(nil), m.caps...)
	end := -1
	if m.inside(n, i, func(j int) bool { end = j; return true }) && k(end) {
		return true
	}
	copy(m.caps, saved)
	return false
}

// look reports whether what a look-around looks for is there.
func (m *matcher) look(n *lookNode, i int) bool {
	defer m.uncut()
	if !n.behind {
		return m.inside(n.child, i, func(int) bool { return true })
	}
	for _, branch := range n.child.(*altNode).list {
		length, _ := fixedLength(branch)
		at := i
		for ; length > 0 && at > 0; length-- {
			for at--; at > 0 && !utf8.RuneStart(m.s[at]); at-- {
			}
		}
		if length == 0 && m.inside(branch, at, func(j int) bool { return j == i }) {
			return true
		}
		if m.cut != noCut {
			return false
		}
	}
	return false
}

func (m *matcher) assert(n assertNode, i int) bool {
	switch n {
	case assertStart, assertFirst:
		return i == 0
	case assertLineStart:
		return i == 0 || i < len(m.s) && m.re.newline.before(m.s, i)
	case assertEnd:
		return i == len(m.s)
	case assertEndNewline:
		n := m.re.newline.at(m.s, i)
		return i == len(m.s) || n > 0 && i+n == len(m.s)
	case assertLineEnd:
		return i == len(m.s) || m.re.newline.at(m.s, i) > 0
	}
	if n == assertUnicodeWord || n == assertNotUnicodeWord {
		last, _ := utf8.DecodeLastRune(m.s[:i])
		next, _ := utf8.DecodeRune(m.s[i:])
		return (isUnicodeWord(last) != isUnicodeWord(next)) == (n == assertUnicodeWord)
	}
	before := i > 0 && isWord(rune(m.s[i-1]))
	after := i < len(m.s) && isWord(rune(m.s[i]))
	return (before != after) == (n == assertWord)
}

// captured returns what a group matched last.
func (m *matcher) captured(index int, name string) ([]byte, bool) {
	candidates := []int{index}
	if name != "" {
		candidates = m.re.names[name]
	}
	for _, c := range candidates {
		if m.caps[2*c] >= 0 {
			return m.s[m.caps[2*c]:m.caps[2*c+1]], true
		}
	}
	return nil, false
}

func (m *matcher) backref(n *backrefNode, i int, k func(int) bool) bool {
	text, ok := m.captured(n.index, n.name)
	if !ok {
		return false
	}
	m.did(len(text) >> 4)
	if !n.fold {
		return bytes.HasPrefix(m.s[i:], text) && k(i+len(text))
	}
	for len(text) > 0 {
		a, size := utf8.DecodeRune(text)
		b, width := utf8.DecodeRune(m.s[i:])
		if width == 0 || !equalFold(a, b) {
			return false
		}
		text, i = text[size:], i+width
	}
	return k(i)
}

// recurse matches a group's pattern once more; it is atomic and leaves the captures as they were.
func (m *matcher) recurse(n *recurseNode, i int, k func(int) bool) bool {
	index := n.index
	if n.name != "" {
		index = m.re.names[n.name][0]
	}
	saved := append([]int(nil), m.caps...)
	m.recursion = append(m.recursion, index)
	end := -1
	ok := m.inside(m.re.groups[index], i, func(j int) bool { end = j; return true })
	m.uncut()
	m.recursion = m.recursion[:len(m.recursion)-1]
	copy(m.caps, saved)
	return ok && k(end)
}

func (m *matcher) condition(n *condNode, i int) bool {
	switch {
	case n.define:
		return false
	case n.look != nil:
		return m.look(n.look, i) != n.look.negated
	case n.recurse:
		if len(m.recursion) == 0 {
			return false
		}
		return n.index == 0 || m.recursion[len(m.recursion)-1] == n.index
	}
	_, ok := m.captured(n.index, n.name)
	return ok
}

// grapheme matches a character and the marks that follow it.
func (m *matcher) grapheme(i int, k func(int) bool) bool {
	_, size := utf8.DecodeRune(m.s[i:])
	if size == 0 {
		return false
	}
	for i += size; i < len(m.s); i += size {
		var r rune
		if r, size = utf8.DecodeRune(m.s[i:]); !isMark(r) {
			break
		}
	}
	return k(i)
}
