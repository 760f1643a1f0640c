package pcre

import (
	"strconv"
	"strings"
)

// posixName parses [:name:] (also [. .] and [= =], which are not supported) at the start of s.
func posixName(s string) (name string, size int, ok bool) {
	if len(s) < 4 || s[0] != '[' || s[1] != ':' && s[1] != '.' && s[1] != '=' {
		return "", 0, false
	}
	end := strings.Index(s[2:], string(s[1])+"]")
	if end < 0 || strings.ContainsAny(s[2:2+end], `]\`) {
		return "", 0, false
	}
	return s[2 : 2+end], end + 4, true
}

// class parses a character class.
func (p *parser) class() (node, *Error) {
	const unterminated = "missing terminating ] for character class"
	p.pos++
	c := &classNode{fold: p.flags.i}
	c.negated = p.accept("^")
	first := true
	for {
		if !p.more() {
			return nil, p.fail(unterminated)
		}
		if p.src[p.pos] == ']' && !first {
			p.pos++
			return c, nil
		}
		first = false
		if p.accept(`\E`) {
			continue
		}
		if p.accept(`\Q`) {
			end := strings.Index(p.src[p.pos:], `\E`)
			if end < 0 {
				p.pos = len(p.src)
				return nil, p.fail(unterminated)
			}
			for _, r := range p.src[p.pos : p.pos+end] {
				c.ranges = append(c.ranges, runeRange{r, r})
			}
			p.pos += end + 2
			continue
		}
		if name, size, ok := posixName(p.src[p.pos:]); ok {
			if p.src[p.pos+1] != ':' {
				return nil, p.fail("POSIX collating elements are not supported")
			}
			negated := strings.HasPrefix(name, "^")
			has := posixClasses[strings.TrimPrefix(name, "^")]
			if has == nil {
				return nil, p.fail("unknown POSIX class name")
			}
			if wide := unicodeClasses[strings.TrimPrefix(name, "^")]; p.unicode && wide != nil {
				has = wide
			}
			p.pos += size
			c.sets = append(c.sets, charSet{negated, has})
			continue
		}
		lo, set, err := p.classItem()
		if err != nil {
			return nil, err
		}
		if set != nil {
			c.sets = append(c.sets, *set)
			continue
		}
		hi := lo
		if p.ahead("-") && p.pos+1 < len(p.src) && p.src[p.pos+1] != ']' {
			mark := p.pos
			p.pos++
			var end rune
			if _, _, ok := posixName(p.src[p.pos:]); ok {
				set = &charSet{}
			} else if end, set, err = p.classItem(); err != nil {
				return nil, err
			}
			if set != nil { // a-\d: the hyphen stands for itself
				p.pos = mark + 1
				c.ranges = append(c.ranges, runeRange{'-', '-'})
			} else {
				hi = end
			}
		}
		if hi < lo {
			return nil, p.fail("range out of order in character class")
		}
		c.ranges = append(c.ranges, runeRange{lo, hi})
	}
}

// classItem parses one character or one escape that stands for a set.
func (p *parser) classItem() (rune, *charSet, *Error) {
	if p.src[p.pos] != '\\' {
		return p.next(), nil, nil
	}
	p.pos++
	if !p.more() {
		return 0, nil, p.fail(`\ at end of pattern`)
	}
	set, ok, err := p.classEscape()
	if err != nil {
		return 0, nil, err
	}
	if ok {
		return 0, &set, nil
	}
	r, err := p.charEscape(true)
	return r, nil, err
}

// name parses a group name up to its terminator.
func (p *parser) name(terminator string) (string, *Error) {
	start := p.pos
	for p.more() && isWord(rune(p.src[p.pos])) {
		p.pos++
	}
	name := p.src[start:p.pos]
	switch {
	case name == "":
		return "", p.fail("subpattern name expected")
	case isDigit(rune(name[0])):
		return "", p.fail("subpattern name must start with a non-digit")
	case len(name) > 32:
		return "", p.fail("subpattern name is too long (maximum 32 characters)")
	case !p.accept(terminator):
		return "", p.fail("syntax error in subpattern name (missing terminator)")
	}
	return name, nil
}

// body parses a group's content up to its closing parenthesis. Flags set within end with it.
func (p *parser) body() (node, *Error) {
	saved := p.flags
	n, err := p.alternation()
	p.flags = saved
	if err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, p.fail("missing )")
	}
	return n, nil
}

func (p *parser) capture(name string) (node, *Error) {
	p.groups++
	index := p.groups
	if name != "" {
		if len(p.names[name]) > 0 && !p.flags.dupNames {
			return nil, p.fail("two named subpatterns have the same name")
		}
		p.names[name] = append(p.names[name], index)
	}
	child, err := p.body()
	if err != nil {
		return nil, err
	}
	g := &groupNode{child: child, index: index}
	p.bodies[index] = g
	return g, nil
}

// group parses what starts with a parenthesis. Flags alone yield no node.
func (p *parser) group() (node, *Error) {
	p.pos++
	if p.ahead("*") {
		return p.verb()
	}
	if !p.accept("?") {
		return p.capture("")
	}
	switch {
	case p.accept(":"):
		return p.wrapped()
	case p.accept("|"):
		return p.branchReset()
	case p.accept(">"):
		child, err := p.body()
		return &atomicNode{child}, err
	case p.accept("="):
		return p.look(false, false)
	case p.accept("!"):
		return p.look(false, true)
	case p.accept("<="):
		return p.look(true, false)
	case p.accept("<!"):
		return p.look(true, true)
	case p.accept("P<"), p.accept("<"):
		return p.named(">")
	case p.accept("'"):
		return p.named("'")
	case p.accept("P="):
		name, err := p.name(")")
		if err != nil {
			return nil, err
		}
		return p.nameReference(name), nil
	case p.accept("P>"), p.accept("&"):
		name, err := p.name(")")
		if err != nil {
			return nil, err
		}
		p.checkName(name)
		return &recurseNode{name: name, at: p.pos}, nil
	case p.ahead("P"):
		p.pos++
		return nil, p.fail("unrecognized character after (?P")
	case p.accept("("):
		return p.conditional()
	case p.accept("R"):
		if !p.accept(")") {
			return nil, p.fail("(?R or (?[+-]digits must be followed by )")
		}
		return p.call(0), nil
	}
	if p.more() {
		c := p.src[p.pos]
		signed := (c == '+' || c == '-') && p.pos+1 < len(p.src) && isDigit(rune(p.src[p.pos+1]))
		if isDigit(rune(c)) || signed {
			end := p.pos + 1
			for end < len(p.src) && isDigit(rune(p.src[end])) {
				end++
			}
			n, _ := p.number(p.src[p.pos:end])
			p.pos = end
			if !p.accept(")") {
				return nil, p.fail("(?R or (?[+-]digits must be followed by )")
			}
			return p.call(n), nil
		}
		if c == '+' {
			return nil, p.fail("digit expected after (?+")
		}
	}
	return p.inlineFlags()
}

func (p *parser) named(terminator string) (node, *Error) {
	name, err := p.name(terminator)
	if err != nil {
		return nil, err
	}
	return p.capture(name)
}

// wrapped parses a group without capture; it stays one node, so that a quantifier applies to all of
// it.
func (p *parser) wrapped() (node, *Error) {
	child, err := p.body()
	if child == nil && err == nil {
		child = &seqNode{}
	}
	return child, err
}

// branchReset parses (?|...), whose branches number their groups alike.
func (p *parser) branchReset() (node, *Error) {
	saved, first, most := p.flags, p.groups, p.groups
	var branches []node
	for {
		p.groups = first
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		branches = append(branches, n)
		most = max(most, p.groups)
		if !p.accept("|") {
			break
		}
	}
	p.flags, p.groups = saved, most
	if !p.accept(")") {
		return nil, p.fail("missing )")
	}
	return &altNode{branches}, nil
}

func (p *parser) look(behind, negated bool) (node, *Error) {
	child, err := p.body()
	if err != nil {
		return nil, err
	}
	n := &lookNode{child: child, behind: behind, negated: negated}
	if behind {
		branches, ok := child.(*altNode)
		if !ok {
			branches = &altNode{[]node{child}}
		}
		for i, b := range branches.list {
			if b == nil {
				branches.list[i] = &seqNode{}
			} else if _, fixed := fixedLength(b); !fixed {
				return nil, p.fail("lookbehind assertion is not fixed length")
			}
		}
		n.child = branches
	}
	return n, nil
}

// inlineFlags parses (?imsx-imsx) and (?imsx-imsx:...).
func (p *parser) inlineFlags() (node, *Error) {
	next, on := p.flags, true
	for {
		if !p.more() {
			return nil, p.fail("missing )")
		}
		c := p.src[p.pos]
		p.pos++
		switch {
		case c == '-' && on:
			on = false
		case c == ')':
			p.flags = next
			return nil, nil
		case c == ':':
			saved := p.flags
			p.flags = next
			n, err := p.wrapped()
			p.flags = saved
			return n, err
		case !next.set(rune(c), on):
			return nil, p.fail("unrecognized character after (? or (?-")
		}
	}
}

// conditional parses (?(condition)yes|no) behind its second parenthesis.
func (p *parser) conditional() (node, *Error) {
	c := &condNode{at: p.pos}
	switch {
	case p.ahead("?=") || p.ahead("?!") || p.ahead("?<=") || p.ahead("?<!"):
		p.pos--
		look, err := p.group()
		if err != nil {
			return nil, err
		}
		c.look = look.(*lookNode)
	case p.accept("DEFINE)"):
		c.define = true
	case p.accept("<"), p.accept("'"):
		terminator := map[byte]string{'<': ">", '\'': "'"}[p.src[p.pos-1]]
		name, err := p.name(terminator)
		if err != nil {
			return nil, err
		}
		c.name = name
		p.checkName(name)
		if !p.accept(")") {
			return nil, p.fail("malformed number or name after (?(")
		}
	default:
		end := strings.IndexByte(p.src[p.pos:], ')')
		if end < 0 {
			return nil, p.fail("malformed number or name after (?(")
		}
		text := p.src[p.pos : p.pos+end]
		n, isNumber := p.number(text)
		switch {
		case isNumber:
			c.index = n
			p.reference(n)
		case text == "R":
			c.recurse = true
		case strings.HasPrefix(text, "R") && isNumeric(text[1:]):
			c.recurse = true
			c.index, _ = strconv.Atoi(text[1:])
		case text != "" && strings.Trim(text, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "":
			c.name = text
			p.checkName(text)
		case strings.HasPrefix(text, "?"):
			return nil, p.fail("assertion expected after (?(")
		default:
			return nil, p.fail("malformed number or name after (?(")
		}
		p.pos += end + 1
	}
	body, err := p.body()
	if err != nil {
		return nil, err
	}
	c.yes = body
	if alt, ok := body.(*altNode); ok {
		switch {
		case c.define:
			return nil, p.fail("DEFINE group contains more than one branch")
		case len(alt.list) > 2:
			return nil, p.fail("conditional group contains more than two branches")
		}
		c.yes, c.no = alt.list[0], alt.list[1]
	}
	return c, nil
}

func isNumeric(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
