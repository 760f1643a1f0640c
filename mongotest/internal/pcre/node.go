package pcre

import "unicode"

// node is a part of a pattern.
type node interface{}

type (
	seqNode  struct{ list []node }
	altNode  struct{ list []node }
	charNode struct {
		r    rune
		fold bool
	}
	anyNode struct{ newline bool }

	// classNode is a set of characters.
	classNode struct {
		negated bool
		fold    bool
		ranges  []runeRange
		sets    []charSet
	}
	runeRange struct{ lo, hi rune }
	charSet   struct {
		negated bool
		has     func(rune) bool
	}

	repeatNode struct {
		child      node
		min, max   int // max is -1 for no limit
		lazy       bool
		possessive bool
	}
	groupNode struct {
		child node
		index int
	}
	atomicNode struct{ child node }
	lookNode   struct {
		child   node // of a look-behind: an altNode of branches with a fixed length each
		behind  bool
		negated bool
	}
	backrefNode struct {
		index int    // 0 for a reference by name
		name  string //
		fold  bool
		at    int // offset in the pattern
	}
	recurseNode struct {
		index int
		name  string
		at    int
	}
	condNode struct {
		index   int    // group that has to be set
		name    string //
		recurse bool   // inside of a recursion
		define  bool   // never
		look    *lookNode
		yes, no node
		at      int
	}
	keepNode     struct{} // \K
	newlineNode  struct{} // \R
	graphemeNode struct{} // \X
)

// assertNode is a condition on the position.
type assertNode uint8

const (
	assertStart          assertNode = iota // \A, and ^ without m
	assertLineStart                        // ^ with m
	assertEnd                              // \z
	assertEndNewline                       // \Z, and $ without m
	assertLineEnd                          // $ with m
	assertWord                             // \b
	assertNotWord                          // \B
	assertFirst                            // \G
	assertUnicodeWord                      // \b with (*UCP)
	assertNotUnicodeWord                   // \B with (*UCP)
)

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
func isSpace(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }
func isWord(r rune) bool {
	return r == '_' || isDigit(r) || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
func isAlpha(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }
func isLower(r rune) bool { return r >= 'a' && r <= 'z' }
func isPunct(r rune) bool { return r > ' ' && r < 0x7f && !isAlpha(r) && !isDigit(r) }

func isHorizontal(r rune) bool {
	switch r {
	case '\t', ' ', 0xa0, 0x1680, 0x180e, 0x202f, 0x205f, 0x3000:
		return true
	}
	return r >= 0x2000 && r <= 0x200a
}

func isVertical(r rune) bool {
	return r >= '\n' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// isUnicodeWord and isUnicodeSpace are for \w and \s with (*UCP).
func isUnicodeWord(r rune) bool  { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
func isUnicodeSpace(r rune) bool { return unicode.Is(unicode.Z, r) || isHorizontal(r) || isVertical(r) }

// unicodeClasses are the classes in [[:name:]] that are others with (*UCP).
var unicodeClasses = map[string]func(rune) bool{
	"alpha": unicode.IsLetter,
	"lower": unicode.IsLower,
	"upper": unicode.IsUpper,
	"alnum": func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) },
	"blank": isHorizontal,
	"digit": unicode.IsDigit,
	"space": isUnicodeSpace,
	"word":  isUnicodeWord,
}

// posixClasses are the classes in [[:name:]].
var posixClasses = map[string]func(rune) bool{
	"alpha":  isAlpha,
	"lower":  isLower,
	"upper":  isUpper,
	"alnum":  func(r rune) bool { return isAlpha(r) || isDigit(r) },
	"ascii":  func(r rune) bool { return r < 0x80 },
	"blank":  func(r rune) bool { return r == ' ' || r == '\t' },
	"cntrl":  func(r rune) bool { return r < ' ' || r == 0x7f },
	"digit":  isDigit,
	"graph":  func(r rune) bool { return r > ' ' && r < 0x7f },
	"print":  func(r rune) bool { return r >= ' ' && r < 0x7f },
	"punct":  isPunct,
	"space":  isSpace,
	"word":   isWord,
	"xdigit": func(r rune) bool { return isDigit(r) || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' },
}

func (c *classNode) has(r rune) bool {
	if c.contains(r) {
		return !c.negated
	}
	if c.fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if c.contains(f) {
				return !c.negated
			}
		}
	}
	return c.negated
}

func (c *classNode) contains(r rune) bool {
	for _, x := range c.ranges {
		if r >= x.lo && r <= x.hi {
			return true
		}
	}
	for _, s := range c.sets {
		if s.has(r) != s.negated {
			return true
		}
	}
	return false
}

// equalFold reports whether two characters differ at most in case.
func equalFold(a, b rune) bool {
	if a == b {
		return true
	}
	for f := unicode.SimpleFold(a); f != a; f = unicode.SimpleFold(f) {
		if f == b {
			return true
		}
	}
	return false
}

// fixedLength returns how many characters a node matches, if that is always the same number.
func fixedLength(n node) (int, bool) {
	switch n := n.(type) {
	case *seqNode:
		total := 0
		for _, c := range n.list {
			l, ok := fixedLength(c)
			if !ok {
				return 0, false
			}
			total += l
		}
		return total, true
	case *altNode:
		length := -1
		for _, c := range n.list {
			l, ok := fixedLength(c)
			if !ok || length >= 0 && l != length {
				return 0, false
			}
			length = l
		}
		return length, true
	case *charNode, *anyNode, *classNode:
		return 1, true
	case *repeatNode:
		l, ok := fixedLength(n.child)
		return l * n.min, ok && n.min == n.max
	case *groupNode:
		return fixedLength(n.child)
	case *atomicNode:
		return fixedLength(n.child)
	case *lookNode, assertNode, keepNode, *verbNode:
		return 0, true
	}
	return 0, false
}
