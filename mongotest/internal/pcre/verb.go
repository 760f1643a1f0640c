package pcre

import "strings"

// The verbs of a pattern, such as (*COMMIT): they match nothing, and say what happens when the
// match fails behind them and comes back.

// verbNode is a verb.
type verbNode struct {
	verb string
	name string   // of a mark; empty: it has none
	alt  *altNode // of (*THEN): the alternatives of which it takes the next; nil: there are none
}

// verbs are their names, the short ones, too.
var verbs = map[string]string{"ACCEPT": "ACCEPT", "FAIL": "FAIL", "F": "FAIL", "COMMIT": "COMMIT", "PRUNE": "PRUNE",
	"SKIP": "SKIP", "THEN": "THEN", "MARK": "MARK", "": "MARK"}

// verb parses a verb behind its opening parenthesis.
func (p *parser) verb() (node, *Error) {
	end := strings.IndexByte(p.src[p.pos:], ')')
	if end < 0 {
		return nil, p.fail("(*VERB) not recognized or malformed")
	}
	word, name, named := strings.Cut(p.src[p.pos+1:p.pos+end], ":")
	verb, ok := verbs[word]
	switch {
	case !ok:
		return nil, p.fail("(*VERB) not recognized or malformed")
	case verb == "MARK" && name == "":
		return nil, p.fail("(*MARK) must have an argument")
	case named && (verb == "ACCEPT" || verb == "FAIL"):
		return nil, p.fail("an argument is not allowed for (*ACCEPT), (*FAIL), or (*COMMIT)")
	}
	p.pos += end + 1
	n := &verbNode{verb: verb, name: name}
	switch verb {
	case "THEN":
		p.thens = append(p.thens, n)
	case "ACCEPT":
		p.accepts = true
	}
	return n, nil
}

// cut is what a verb that was come back to has made of the search.
type cut uint8

const (
	noCut    cut = iota
	cutAll       // the whole search fails
	cutStart     // the match that starts here fails
	cutSkip      // it fails, and the next one starts where the verb was
	cutThen      // the alternative fails
)

// verb passes a verb, and notes what it asks for when k has failed.
func (m *matcher) verb(n *verbNode, i int, k func(int) bool) bool {
	switch n.verb {
	case "FAIL":
		return false
	case "ACCEPT":
		saved := append([]int(nil), m.caps...)
		for _, g := range m.open {
			m.caps[2*g.index], m.caps[2*g.index+1] = g.at, i
		}
		if m.accept(i) {
			return true
		}
		copy(m.caps, saved)
		return false
	}
	if n.name != "" && n.verb != "SKIP" {
		m.marks = append(m.marks, mark{n.name, i})
		if k(i) {
			return true
		}
		m.marks = m.marks[:len(m.marks)-1]
	} else if k(i) {
		return true
	}
	if m.cut != noCut {
		return false
	}
	switch n.verb {
	case "COMMIT":
		m.cut = cutAll
	case "PRUNE":
		m.cut = cutStart
	case "SKIP":
		if n.name == "" {
			m.cut, m.skipTo = cutSkip, i
			break
		}
		for j := len(m.marks) - 1; j >= 0; j-- {
			if m.marks[j].name == n.name {
				m.cut, m.skipTo = cutSkip, m.marks[j].at
				break
			}
		}
	case "THEN":
		if m.cut, m.cutAlt = cutThen, n.alt; n.alt == nil {
			m.cut = cutStart
		}
	}
	return false
}

// openGroup matches a group that (*ACCEPT) may end.
func (m *matcher) openGroup(n *groupNode, i int, k func(int) bool) bool {
	m.open = append(m.open, opened{n.index, i})
	ok := m.match(n.child, i, func(j int) bool {
		last := len(m.open) - 1
		was := m.open[last]
		m.open = m.open[:last]
		start, end := m.caps[2*n.index], m.caps[2*n.index+1]
		m.caps[2*n.index], m.caps[2*n.index+1] = i, j
		if k(j) {
			return true
		}
		m.caps[2*n.index], m.caps[2*n.index+1] = start, end
		m.open = append(m.open, was)
		return false
	})
	if !ok {
		m.open = m.open[:len(m.open)-1]
	}
	return ok
}

// opened is a group that is being matched, and where it starts.
type opened struct{ index, at int }

// mark is a place that a verb has given a name.
type mark struct {
	name string
	at   int
}

// uncut ends what verbs have asked for within an assertion or a recursion.
func (m *matcher) uncut() { m.cut, m.cutAlt = noCut, nil }

// inside matches what is a match of its own: an assertion, an atomic group, a recursion. k says
// whether it may end at a position.
func (m *matcher) inside(n node, i int, k func(int) bool) bool {
	outer, open := m.accept, m.open
	m.accept, m.open = k, nil
	ok := m.match(n, i, k)
	m.accept, m.open = outer, open
	return ok
}
