// Package pcre matches Perl-compatible regular expressions as the server's library does, with what
// Go's regexp leaves out by design: look-around, back references, possessive quantifiers, atomic
// groups, recursion and conditions. It backtracks; a limit on the number of steps keeps a hostile
// pattern from running on.
//
// Strings are UTF-8; \d, \w, \s and the POSIX classes are those of ASCII, letters fold by Unicode's
// rules.
package pcre

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// maxSteps bounds the work of one search, maxDepth its recursion. What exceeds them does not match.
const (
	maxSteps = 1_000_000
	maxDepth = 100_000
)

// MaxPattern is how many bytes the server lets a pattern have, MaxPatternParsed how many since 8.1.
// TooLong is what it says of others.
const (
	MaxPattern       = 32764
	MaxPatternParsed = 16 << 10
	TooLong          = "pattern string is longer than the limit set by the application"
)

// Regexp is a compiled regular expression. It is safe for concurrent use.
type Regexp struct {
	root   node
	groups []node // bodies by number; 0 is the whole pattern
	names  map[string][]int
	first  []byte // what every match starts with
	anchor bool   // matches start at the start of the string only
	// accepts says that (*ACCEPT) may end a match within groups.
	accepts bool
	newline newline
	limit   int // of steps that one match may have: by a setting of the pattern
}

// Error says what is wrong with a pattern, in the library's words.
type Error struct {
	Msg    string
	Offset int // in bytes
}

func (e *Error) Error() string { return e.Msg }

// Compile compiles a pattern; the options are the letters i, m, s and x, others are ignored.
func Compile(pattern, options string) (*Regexp, error) {
	p := &parser{src: pattern, names: map[string][]int{}}
	for _, c := range options {
		p.flags.set(c, true)
	}
	root, err := p.parse()
	if err != nil {
		return nil, err
	}
	settings, _ := Settings(pattern)
	re := &Regexp{root: root, names: p.names, groups: make([]node, p.groups+1), limit: limit(settings),
		newline: newlineOf(settings)}
	re.groups[0], re.accepts = root, p.accepts
	for i, g := range p.bodies {
		re.groups[i] = g
	}
	if err := p.resolve(re); err != nil {
		return nil, err
	}
	re.first, re.anchor = prefix(root)
	return re, nil
}

// AnchoredPrefix returns a literal that every string that matches starts with; it is empty if there
// is none, or if a match may be elsewhere than at the start of the string.
func (r *Regexp) AnchoredPrefix() string {
	n, ok := r.root.(*seqNode)
	if !ok || !r.anchor {
		return ""
	}
	first, _ := prefix(&seqNode{n.list[1:]})
	return string(first)
}

// NumGroups returns the number of capture groups.
func (r *Regexp) NumGroups() int { return len(r.groups) - 1 }

// Match reports whether the expression matches anywhere in s.
func (r *Regexp) Match(s []byte) bool { return r.MatchCounted(s, nil) }

// MatchCounted is Match with a function that is called with the number of steps that were taken
// since its last call. It may leave the match by a panic.
func (r *Regexp) MatchCounted(s []byte, count func(steps int)) bool {
	m := matcher{re: r, s: s, count: count}
	return m.search(0)
}

// Find returns the first match in s at or after the byte offset from: pairs of start and end
// offsets, first of the whole match, then of each capture group (-1 for a group that took no part).
// It returns nil if there is none. What precedes from is not seen by the expression.
func (r *Regexp) Find(s []byte, from int) []int {
	loc, _ := r.FindCounted(s, from, nil)
	return loc
}

// ErrLimit is the error of a search that would take more steps than its pattern allows.
var ErrLimit = errors.New("match limit exceeded")

// FindCounted is Find with a function that is called as that of [Regexp.MatchCounted], and tells of
// a limit that the pattern sets.
func (r *Regexp) FindCounted(s []byte, from int, count func(steps int)) ([]int, error) {
	m := matcher{re: r, s: s[from:], count: count}
	if !m.search(0) {
		if m.limited {
			return nil, ErrLimit
		}
		return nil, nil
	}
	loc := make([]int, 2, 2+2*r.NumGroups())
	loc[0], loc[1] = m.start+from, m.end+from
	for _, c := range m.caps[2:] {
		if c >= 0 {
			c += from
		}
		loc = append(loc, c)
	}
	return loc, nil
}

// search looks for the first match from a position on.
func (m *matcher) search(from int) bool {
	m.caps = make([]int, 2*len(m.re.groups))
	for at := from; at <= len(m.s); {
		if first := m.re.first; len(first) > 0 {
			i := bytes.Index(m.s[at:], first)
			if i < 0 {
				return false
			}
			at += i
		}
		for i := range m.caps {
			m.caps[i] = -1
		}
		m.start, m.marks, m.open = at, m.marks[:0], m.open[:0]
		m.uncut()
		m.accept = func(end int) bool { m.end = end; return true }
		m.tried = m.steps
		if m.match(m.re.root, at, m.accept) {
			return true
		}
		if m.limited {
			return false
		}
		if m.re.anchor || m.steps > maxSteps || m.cut == cutAll {
			return false
		}
		if m.cut == cutSkip && m.skipTo > at {
			at = m.skipTo
			continue
		}
		_, size := utf8.DecodeRune(m.s[at:])
		at += max(size, 1)
	}
	return false
}

// prefix finds a literal that every match starts with, and whether matches are bound to the start.
func prefix(n node) (first []byte, anchor bool) {
	switch n := n.(type) {
	case *seqNode:
		for i, c := range n.list {
			switch c := c.(type) {
			case *charNode:
				if c.fold {
					return first, anchor
				}
				first = utf8.AppendRune(first, c.r)
			case assertNode:
				if i == 0 && c == assertStart {
					return nil, true
				}
				return first, anchor
			default:
				return first, anchor
			}
		}
	case *charNode:
		if !n.fold {
			return utf8.AppendRune(nil, n.r), false
		}
	case assertNode:
		return nil, n == assertStart
	}
	return first, anchor
}
