package pcre

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// flags are the options that a pattern may change on its way.
type flags struct{ i, m, s, x, ungreedy, dupNames bool }

func (f *flags) set(c rune, on bool) bool {
	switch c {
	case 'i':
		f.i = on
	case 'm':
		f.m = on
	case 's':
		f.s = on
	case 'x':
		f.x = on
	case 'U':
		f.ungreedy = on
	case 'J':
		f.dupNames = on
	default:
		return false
	}
	return true
}

type parser struct {
	src     string
	pos     int
	flags   flags
	groups  int
	bodies  map[int]node
	names   map[string][]int
	depth   int
	accepts bool        // there is (*ACCEPT)
	unicode bool        // (*UCP): classes are those of Unicode
	thens   []*verbNode // (*THEN) that are not within alternatives yet

	references []func(*Regexp) *Error // checked once all groups are known
}

func (p *parser) fail(msg string) *Error { return &Error{Msg: msg, Offset: p.pos} }

func (p *parser) more() bool { return p.pos < len(p.src) }

// ahead reports whether the rest starts with text.
func (p *parser) ahead(text string) bool { return strings.HasPrefix(p.src[p.pos:], text) }

// accept skips text if the rest starts with it.
func (p *parser) accept(text string) bool {
	if p.ahead(text) {
		p.pos += len(text)
		return true
	}
	return false
}

func (p *parser) next() rune {
	r, size := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += size
	return r
}

func (p *parser) parse() (node, error) {
	p.bodies = map[int]node{}
	settings, _ := Settings(p.src)
	p.pos, p.unicode = len(settings), strings.Contains(settings, "(*UCP)")
	n, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if p.more() {
		return nil, p.fail("unmatched parentheses")
	}
	return n, nil
}

// Settings cuts off what a pattern says at its beginning about all of it, as (*UCP).
func Settings(pattern string) (settings, rest string) {
	settings = settingsPattern.FindString(pattern)
	return settings, pattern[len(settings):]
}

var (
	settingsPattern = regexp.MustCompile(`^(?:\(\*(?:UTF8?|UCP|CR|LF|CRLF|ANYCRLF|ANY|BSR_ANYCRLF|BSR_UNICODE|NO_START_OPT|NO_AUTO_POSSESS|LIMIT_(?:MATCH|RECURSION)=\d{1,9})\))+`)
	limitPattern    = regexp.MustCompile(`LIMIT_MATCH=(\d+)`)
)

// limit is how many steps a pattern's settings allow a match to have.
func limit(settings string) int {
	steps := maxSteps
	for _, m := range limitPattern.FindAllStringSubmatch(settings, -1) {
		n, _ := strconv.Atoi(m[1])
		steps = min(steps, n) // they may lower it, not raise it
	}
	return steps
}

func (p *parser) resolve(re *Regexp) error {
	for _, check := range p.references {
		if err := check(re); err != nil {
			return err
		}
	}
	return nil
}

// maxNesting bounds how deep groups nest.
const maxNesting = 250

func (p *parser) alternation() (node, *Error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxNesting {
		return nil, p.fail("parentheses are too deeply nested")
	}
	var branches []node
	outer := p.thens
	p.thens = nil
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		branches = append(branches, n)
		if !p.accept("|") {
			break
		}
	}
	if len(branches) == 1 {
		p.thens = append(outer, p.thens...)
		return branches[0], nil
	}
	alt := &altNode{branches}
	for _, n := range p.thens {
		n.alt = alt
	}
	p.thens = outer
	return alt, nil
}

// skipIgnored skips white space and comments where the x flag allows them.
func (p *parser) skipIgnored() *Error {
	for p.more() {
		switch c := p.src[p.pos]; {
		case p.ahead("(?#"):
			end := strings.IndexByte(p.src[p.pos:], ')')
			if end < 0 {
				p.pos = len(p.src)
				return p.fail("missing ) after comment")
			}
			p.pos += end + 1
		case p.flags.x && isSpace(rune(c)):
			p.pos++
		case p.flags.x && c == '#':
			end := strings.IndexByte(p.src[p.pos:], '\n')
			if end < 0 {
				p.pos = len(p.src)
				return nil
			}
			p.pos += end + 1
		default:
			return nil
		}
	}
	return nil
}

func (p *parser) sequence() (node, *Error) {
	var list []node
	for {
		if err := p.skipIgnored(); err != nil {
			return nil, err
		}
		if !p.more() || p.src[p.pos] == '|' || p.src[p.pos] == ')' {
			break
		}
		if p.accept(`\Q`) {
			end := strings.Index(p.src[p.pos:], `\E`)
			text := p.src[p.pos:]
			if end >= 0 {
				text = text[:end]
				p.pos += end + 2
			} else {
				p.pos = len(p.src)
			}
			for _, r := range text {
				list = append(list, &charNode{r, p.flags.i})
			}
			if text == "" {
				continue
			}
		} else if p.accept(`\E`) {
			continue
		} else {
			n, err := p.atom()
			if err != nil {
				return nil, err
			}
			if n == nil { // flags, which last to the end of the group
				continue
			}
			list = append(list, n)
		}
		last := &list[len(list)-1]
		n, ok, err := p.quantifier(*last)
		if err != nil {
			return nil, err
		}
		if ok { // what is repeated is not repeated again
			*last = n
		}
	}
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0], nil
	}
	return &seqNode{list}, nil
}

// quantifier parses what follows an atom.
func (p *parser) quantifier(n node) (node, bool, *Error) {
	if err := p.skipIgnored(); err != nil {
		return nil, false, err
	}
	if !p.more() {
		return nil, false, nil
	}
	r := &repeatNode{child: n}
	switch p.src[p.pos] {
	case '*':
		r.max = -1
		p.pos++
	case '+':
		r.min, r.max = 1, -1
		p.pos++
	case '?':
		r.max = 1
		p.pos++
	case '{':
		lo, hi, size, ok := counts(p.src[p.pos:])
		if !ok {
			return nil, false, nil
		}
		if lo > 65535 || hi > 65535 {
			return nil, false, p.fail("number too big in {} quantifier")
		}
		p.pos += size
		if hi >= 0 && hi < lo {
			return nil, false, p.fail("numbers out of order in {} quantifier")
		}
		r.min, r.max = lo, hi
	default:
		return nil, false, nil
	}
	switch n.(type) {
	case assertNode, keepNode:
		return nil, false, p.fail("nothing to repeat")
	}
	r.lazy = p.flags.ungreedy
	if err := p.skipIgnored(); err != nil {
		return nil, false, err
	}
	switch {
	case p.accept("?"):
		r.lazy = !r.lazy
	case p.accept("+"):
		r.possessive = true
	}
	return r, true, nil
}

// counts parses {n}, {n,} and {n,m}.
func counts(s string) (lo, hi, size int, ok bool) {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return 0, 0, 0, false
	}
	a, b, two := strings.Cut(s[1:end], ",")
	lo, err := strconv.Atoi(a)
	if err != nil || a[0] < '0' || a[0] > '9' {
		return 0, 0, 0, false
	}
	hi = lo
	if two {
		hi = -1
		if b != "" {
			if hi, err = strconv.Atoi(b); err != nil || b[0] < '0' || b[0] > '9' {
				return 0, 0, 0, false
			}
		}
	}
	return lo, hi, end + 1, true
}

func (p *parser) atom() (node, *Error) {
	switch c := p.src[p.pos]; c {
	case '(':
		return p.group()
	case '[':
		if _, _, ok := posixName(p.src[p.pos:]); ok {
			return nil, p.fail("POSIX named classes are supported only within a class")
		}
		return p.class()
	case '.':
		p.pos++
		return &anyNode{p.flags.s}, nil
	case '^':
		p.pos++
		if p.flags.m {
			return assertLineStart, nil
		}
		return assertStart, nil
	case '$':
		p.pos++
		if p.flags.m {
			return assertLineEnd, nil
		}
		return assertEndNewline, nil
	case '*', '+', '?':
		return nil, p.fail("nothing to repeat")
	case '{':
		if _, _, _, ok := counts(p.src[p.pos:]); ok {
			return nil, p.fail("nothing to repeat")
		}
	case '\\':
		return p.escape()
	}
	return &charNode{p.next(), p.flags.i}, nil
}

// escape parses what starts with a backslash outside of a class.
func (p *parser) escape() (node, *Error) {
	p.pos++
	if !p.more() {
		return nil, p.fail(`\ at end of pattern`)
	}
	c := p.src[p.pos]
	switch c {
	case 'A', 'z', 'Z', 'b', 'B', 'G', 'K', 'R', 'X', 'N':
		p.pos++
		switch c {
		case 'A':
			return assertStart, nil
		case 'z':
			return assertEnd, nil
		case 'Z':
			return assertEndNewline, nil
		case 'b':
			if p.unicode {
				return assertUnicodeWord, nil
			}
			return assertWord, nil
		case 'B':
			if p.unicode {
				return assertNotUnicodeWord, nil
			}
			return assertNotWord, nil
		case 'G':
			return assertFirst, nil
		case 'K':
			return keepNode{}, nil
		case 'R':
			return newlineNode{}, nil
		case 'X':
			return graphemeNode{}, nil
		}
		if p.ahead("{") {
			return nil, p.fail(`PCRE does not support \L, \l, \N{name}, \U, or \u`)
		}
		return &anyNode{false}, nil
	case 'g':
		return p.escapeG()
	case 'k':
		p.pos++
		for _, q := range [][2]string{{"<", ">"}, {"'", "'"}, {"{", "}"}} {
			if p.accept(q[0]) {
				name, err := p.name(q[1])
				if err != nil {
					return nil, err
				}
				return p.nameReference(name), nil
			}
		}
		return nil, p.fail(`\k is not followed by a braced, angle-bracketed, or quoted name`)
	}
	if c >= '1' && c <= '9' {
		end := p.pos
		for end < len(p.src) && isDigit(rune(p.src[end])) {
			end++
		}
		n, err := strconv.Atoi(p.src[p.pos:end])
		// Numbers up to 9, and those of groups that have been opened, are references, others octal.
		if err == nil && (n < 10 || n <= p.groups) {
			p.pos = end
			return p.reference(n), nil
		}
	}
	if set, ok, err := p.classEscape(); err != nil || ok {
		return &classNode{sets: []charSet{set}}, err
	}
	r, err := p.charEscape(false)
	if err != nil {
		return nil, err
	}
	return &charNode{r, p.flags.i}, nil
}

func (p *parser) reference(n int) node {
	at := p.pos
	p.references = append(p.references, func(re *Regexp) *Error {
		if n >= len(re.groups) {
			return &Error{"reference to non-existent subpattern", at}
		}
		return nil
	})
	return &backrefNode{index: n, fold: p.flags.i, at: at}
}

func (p *parser) nameReference(name string) node {
	p.checkName(name)
	return &backrefNode{name: name, fold: p.flags.i, at: p.pos}
}

func (p *parser) checkName(name string) {
	at := p.pos
	p.references = append(p.references, func(re *Regexp) *Error {
		if len(re.names[name]) == 0 {
			return &Error{"reference to non-existent subpattern", at}
		}
		return nil
	})
}

// escapeG parses \g: a back reference by number, relative number or name, or with <> or quotes a
// call.
func (p *parser) escapeG() (node, *Error) {
	p.pos++
	const malformed = `\g is not followed by a braced, angle-bracketed, or quoted name/number or by a plain number`
	for _, q := range [][2]string{{"<", ">"}, {"'", "'"}} {
		if p.accept(q[0]) {
			end := strings.Index(p.src[p.pos:], q[1])
			if end < 0 {
				return nil, p.fail(malformed)
			}
			text := p.src[p.pos : p.pos+end]
			p.pos += end + 1
			if n, ok := p.number(text); ok {
				return p.call(n), nil
			}
			p.checkName(text)
			return &recurseNode{name: text, at: p.pos}, nil
		}
	}
	text := ""
	if p.accept("{") {
		end := strings.IndexByte(p.src[p.pos:], '}')
		if end < 0 {
			return nil, p.fail(malformed)
		}
		text = p.src[p.pos : p.pos+end]
		p.pos += end + 1
	} else {
		start := p.pos
		if p.ahead("-") || p.ahead("+") {
			p.pos++
		}
		for p.more() && isDigit(rune(p.src[p.pos])) {
			p.pos++
		}
		text = p.src[start:p.pos]
	}
	if n, ok := p.number(text); ok {
		if n == 0 {
			return nil, p.fail("a numbered reference must not be zero")
		}
		if n < 0 {
			return nil, p.fail("reference to non-existent subpattern")
		}
		return p.reference(n), nil
	}
	if text == "" {
		return nil, p.fail(malformed)
	}
	return p.nameReference(text), nil
}

// number parses a group number: n, or relative to the groups opened so far +n and -n.
func (p *parser) number(text string) (int, bool) {
	if text == "" {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimLeft(text, "+-"))
	if err != nil {
		return 0, false
	}
	switch text[0] {
	case '-':
		return p.groups - n + 1, true
	case '+':
		return p.groups + n, true
	}
	return n, true
}

func (p *parser) call(n int) node {
	at := p.pos
	p.references = append(p.references, func(re *Regexp) *Error {
		if n < 0 || n >= len(re.groups) {
			return &Error{"reference to non-existent subpattern", at}
		}
		return nil
	})
	return &recurseNode{index: n, at: at}
}

// classEscape parses an escape that stands for a set, at the letter.
func (p *parser) classEscape() (charSet, bool, *Error) {
	c := p.src[p.pos]
	sets := map[byte]func(rune) bool{'d': isDigit, 'w': isWord, 's': isSpace, 'h': isHorizontal, 'v': isVertical}
	if p.unicode {
		sets['d'], sets['w'], sets['s'] = unicode.IsDigit, isUnicodeWord, isUnicodeSpace
	}
	if has, ok := sets[c|0x20]; ok {
		p.pos++
		return charSet{negated: c < 'a', has: has}, true, nil
	}
	if c == 'p' || c == 'P' {
		p.pos++
		set, err := p.property(c == 'P')
		return set, err == nil, err
	}
	return charSet{}, false, nil
}

// property parses \p{name}, \p{^name} and \pL behind the p.
func (p *parser) property(negated bool) (charSet, *Error) {
	if !p.more() {
		return charSet{}, p.fail(`malformed \P or \p sequence`)
	}
	name := ""
	if p.accept("{") {
		if p.accept("^") {
			negated = !negated
		}
		end := strings.IndexByte(p.src[p.pos:], '}')
		if end < 0 {
			return charSet{}, p.fail(`malformed \P or \p sequence`)
		}
		name = p.src[p.pos : p.pos+end]
		p.pos += end + 1
	} else {
		name = string(p.next())
	}
	switch name {
	case "Any":
		return charSet{negated, func(rune) bool { return true }}, nil
	case "L&":
		return charSet{negated, func(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt) }}, nil
	case "Cn":
		return charSet{!negated, assigned}, nil
	case "C":
		return charSet{negated, func(r rune) bool { return unicode.Is(unicode.C, r) || !assigned(r) }}, nil
	case "Xan":
		return charSet{negated, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }}, nil
	case "Xwd":
		return charSet{negated, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }},
			nil
	case "Xsp", "Xps":
		return charSet{negated, func(r rune) bool { return unicode.Is(unicode.Z, r) || isSpace(r) }}, nil
	}
	table := unicode.Categories[name]
	if table == nil {
		table = unicode.Scripts[name]
	}
	if table == nil {
		return charSet{}, p.fail(`unknown property name after \P or \p`)
	}
	return charSet{negated, func(r rune) bool { return unicode.Is(table, r) }}, nil
}

func assigned(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C)
}

func isMark(r rune) bool { return unicode.Is(unicode.M, r) || r == 0x200d }

// charEscape parses an escape that stands for one character, at the letter.
func (p *parser) charEscape(inClass bool) (rune, *Error) {
	c := p.next()
	switch c {
	case 'a':
		return '\a', nil
	case 'e':
		return 0x1b, nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'b':
		return '\b', nil // in a class only
	case 'c':
		if !p.more() {
			return 0, p.fail(`\c at end of pattern`)
		}
		x := p.next()
		if isLower(x) {
			x -= 'a' - 'A'
		}
		return x ^ 0x40, nil
	case 'x':
		return p.hex()
	case 'o':
		if !p.accept("{") {
			return 0, p.fail(`missing opening brace after \o`)
		}
		return p.braced(8)
	case 'L', 'l', 'U', 'u':
		return 0, p.fail(`PCRE does not support \L, \l, \N{name}, \U, or \u`)
	case 'N', 'R', 'X', 'B':
		if inClass {
			return 0, p.fail("invalid escape sequence in character class")
		}
	}
	if c >= '0' && c <= '7' {
		end := p.pos
		for end < len(p.src) && end < p.pos+2 && p.src[end] >= '0' && p.src[end] <= '7' {
			end++
		}
		n, _ := strconv.ParseInt(string(c)+p.src[p.pos:end], 8, 32)
		p.pos = end
		return rune(n), nil
	}
	if isAlpha(c) {
		return 0, p.fail(`unrecognized character follows \`)
	}
	return c, nil
}

func (p *parser) hex() (rune, *Error) {
	if p.ahead("{") {
		p.pos++
		return p.braced(16)
	}
	end := p.pos
	for end < len(p.src) && end < p.pos+2 && posixClasses["xdigit"](rune(p.src[end])) {
		end++
	}
	n, _ := strconv.ParseInt("0"+p.src[p.pos:end], 16, 32)
	p.pos = end
	return rune(n), nil
}

func (p *parser) braced(base int) (rune, *Error) {
	end := strings.IndexByte(p.src[p.pos:], '}')
	if end <= 0 {
		return 0, p.fail(`missing terminating } or invalid digit in \x{} or \o{}`)
	}
	n, err := strconv.ParseInt(p.src[p.pos:p.pos+end], base, 64)
	if err != nil {
		return 0, p.fail(`non-hex character in \x{} (closing brace missing?)`)
	}
	if n > unicode.MaxRune {
		return 0, p.fail(`character value in \x{} or \o{} is too large`)
	}
	p.pos += end + 1
	return rune(n), nil
}
