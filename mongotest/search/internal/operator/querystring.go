package operator

// queryString: a query in the syntax of Lucene's classic query parser.

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"allium/bson"
)

func (c *compiler) queryString(doc bson.Raw) (Query, error) {
	path, ok := doc.Lookup("defaultPath").StringValue()
	if !ok || path == "" {
		return nil, invalid("\"%s.defaultPath\" is required", c.where)
	}
	text, ok := doc.Lookup("query").StringValue()
	if !ok || strings.TrimSpace(text) == "" {
		return nil, invalid("\"%s.query\" is required", c.where)
	}
	p := &stringParser{c: c, in: []rune(text)}
	q, err := p.query(path, 0)
	if err == nil && p.skip() {
		err = p.fail()
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// stringParser reads a query.
type stringParser struct {
	c  *compiler
	in []rune
	at int
}

func (p *stringParser) fail() error {
	what := "<EOF>"
	if p.at < len(p.in) {
		what = string(p.in[p.at])
	}
	return invalid("\"%s.query\": Cannot parse '%s': encountered \"%s\" at column %d", p.c.where, string(p.in), what,
		p.at)
}

// skip skips spaces, and reports whether anything is left.
func (p *stringParser) skip() bool {
	for p.at < len(p.in) && unicode.IsSpace(p.in[p.at]) {
		p.at++
	}
	return p.at < len(p.in)
}

// word takes a keyword that stands alone.
func (p *stringParser) word(w string) bool {
	end := p.at + len(w)
	if end > len(p.in) || string(p.in[p.at:end]) != w {
		return false
	}
	if unicode.IsLetter(rune(w[0])) && end < len(p.in) && !unicode.IsSpace(p.in[end]) && p.in[end] != '(' &&
		p.in[end] != '"' {
		return false
	}
	p.at = end
	return true
}

// keyword reports whether a keyword comes next, which no clause can begin with.
func (p *stringParser) keyword() bool {
	at := p.at
	defer func() { p.at = at }()
	return slices.ContainsFunc([]string{"AND", "OR", "NOT", "&&", "||"}, p.word)
}

// clause is a part of a query with what is said of it.
type clause struct {
	q            Query
	must, except bool
}

// query reads clauses up to the end or a closing parenthesis.
func (p *stringParser) query(path string, depth int) (Query, error) {
	if depth > maxDepth {
		return nil, invalid("\"%s.query\" is nested too deeply", p.c.where)
	}
	var list []clause
	for p.skip() && p.in[p.at] != ')' {
		and, or := p.word("AND") || p.word("&&"), false
		if !and {
			or = p.word("OR") || p.word("||")
		}
		if (and || or) && len(list) == 0 {
			return nil, p.fail()
		}
		if !p.skip() {
			return nil, p.fail()
		}
		var cl clause
		switch {
		case p.word("NOT"), p.word("!"), p.word("-"):
			cl.except = true
		case p.word("+"):
			cl.must = true
		}
		if !p.skip() || p.keyword() {
			return nil, p.fail()
		}
		q, err := p.clause(path, depth)
		if err != nil {
			return nil, err
		}
		cl.q = q
		if and {
			if last := &list[len(list)-1]; !last.except {
				last.must = true
			}
			cl.must = cl.must || !cl.except
		}
		list = append(list, cl)
	}
	if len(list) == 0 {
		return nil, p.fail()
	}
	if len(list) == 1 && !list[0].except {
		return list[0].q, nil
	}
	b := &boolean{}
	for _, cl := range list {
		switch {
		case cl.except:
			b.not = append(b.not, cl.q)
		case cl.must:
			b.must = append(b.must, cl.q)
		default:
			b.should = append(b.should, cl.q)
		}
	}
	switch {
	case len(b.must)+len(b.should) == 0:
		return nothing{}, nil // what only excludes finds nothing
	case len(b.must) == 0:
		b.least = 1
	}
	return b, nil
}

// clause reads one clause: a field's or the path's.
func (p *stringParser) clause(path string, depth int) (Query, error) {
	from := p.at
	if name, ok := p.field(); ok {
		path = name
		if !p.skip() {
			return nil, p.fail()
		}
	} else {
		p.at = from
	}
	switch r := p.in[p.at]; r {
	case '(':
		p.at++
		q, err := p.query(path, depth+1)
		if err != nil {
			return nil, err
		}
		if !p.skip() || p.in[p.at] != ')' {
			return nil, p.fail()
		}
		p.at++
		return p.boosted(q)
	case '"':
		text, ok := p.until('"')
		if !ok {
			return nil, p.fail()
		}
		slop := 0
		if p.at < len(p.in) && p.in[p.at] == '~' {
			p.at++
			slop = int(p.number(0))
		}
		return p.boosted(p.on(path, func(x indexed) Query {
			return p.c.sequence(x.key, x.field, places(searcher(x.field).Tokens(text)), slop)
		}))
	case '/':
		text, ok := p.until('/')
		if !ok {
			return nil, p.fail()
		}
		re, err := Expression(text)
		if err != nil {
			return nil, invalid("\"%s.query\" is not a regular expression: %s", p.c.where, err)
		}
		return p.boosted(p.on(path, func(x indexed) Query { return p.c.someTerm(x.key, "/"+text+"/", re.MatchString) }))
	case '[', '{':
		return p.rangeOf(path)
	}
	return p.term(path)
}

// field reads a name with a colon.
func (p *stringParser) field() (string, bool) {
	var b strings.Builder
	for p.at < len(p.in) {
		r := p.in[p.at]
		switch {
		case r == '\\' && p.at+1 < len(p.in):
			p.at++
			b.WriteRune(p.in[p.at])
		case r == ':':
			p.at++
			return b.String(), b.Len() > 0
		case unicode.IsSpace(r), strings.ContainsRune(`()[]{}"/^~`, r):
			return "", false
		default:
			b.WriteRune(r)
		}
		p.at++
	}
	return "", false
}

// until reads a text in delimiters.
func (p *stringParser) until(end rune) (string, bool) {
	var b strings.Builder
	for p.at++; p.at < len(p.in); p.at++ {
		r := p.in[p.at]
		switch {
		case r == '\\' && p.at+1 < len(p.in):
			p.at++
			if end == '/' && p.in[p.at] != '/' {
				b.WriteRune('\\')
			}
			b.WriteRune(p.in[p.at])
		case r == end:
			p.at++
			return b.String(), true
		default:
			b.WriteRune(r)
		}
	}
	return "", false
}

// number reads a number; without one it is the given.
func (p *stringParser) number(otherwise float64) float64 {
	from := p.at
	for p.at < len(p.in) && (unicode.IsDigit(p.in[p.at]) || p.in[p.at] == '.') {
		p.at++
	}
	if f, err := strconv.ParseFloat(string(p.in[from:p.at]), 64); err == nil && f < 1<<20 {
		return f
	}
	return otherwise
}

// boosted reads what a clause's score is multiplied by.
func (p *stringParser) boosted(q Query) (Query, error) {
	if p.at < len(p.in) && p.in[p.at] == '^' {
		p.at++
		return &functionScore{q, multiply{number64(p.number(1)), relevance{}}, 1}, nil
	}
	return q, nil
}

// on makes a query for the path, if it is indexed as a string.
func (p *stringParser) on(path string, make func(x indexed) Query) Query {
	fields, err := p.c.strings([]target{{path: path}})
	if err != nil || len(fields) == 0 {
		return nothing{}
	}
	return make(fields[0])
}

// term reads a word, which may have wildcards, or be like others.
func (p *stringParser) term(path string) (Query, error) {
	var plain, pattern strings.Builder
	wild := false
	from := p.at
	for p.at < len(p.in) {
		r := p.in[p.at]
		if unicode.IsSpace(r) || strings.ContainsRune(`()[]{}"^~:`, r) {
			break
		}
		if r == '\\' && p.at+1 < len(p.in) {
			p.at++
			plain.WriteRune(p.in[p.at])
			pattern.WriteString(`\` + string(p.in[p.at]))
		} else {
			wild = wild || r == '*' || r == '?'
			plain.WriteRune(r)
			pattern.WriteRune(r)
		}
		p.at++
	}
	if p.at == from {
		return nil, p.fail()
	}
	if wild && (pattern.String()[0] == '*' || pattern.String()[0] == '?') && pattern.String() != "*" {
		p.at = from
		return nil, invalid(
			"\"%s.query\": Cannot parse '%s': '*' or '?' not allowed as first character in WildcardQuery", p.c.where,
			string(p.in))
	}
	var f *fuzzy
	if p.at < len(p.in) && p.in[p.at] == '~' {
		p.at++
		n := p.number(2)
		if n > 2 {
			return nil, invalid("\"%s.query\": at most 2 edits are allowed", p.c.where)
		}
		f = &fuzzy{int(n), 0, 50}
	}
	return p.boosted(p.on(path, func(x indexed) Query {
		a := searcher(x.field)
		switch {
		case wild:
			text := a.Normalize(pattern.String())
			return p.c.someTerm(x.key, text, func(term string) bool { return like(term, text, '*', '?', '\\') })
		case f != nil:
			return p.c.likeTerm(x.key, x.field, a.Normalize(plain.String()), f)
		}
		var list []Query
		for _, t := range places(a.Tokens(plain.String())) {
			list = append(list, p.c.term(x.key, x.field, t.terms, p.c.boost, 0))
		}
		return oneOf(list)
	}))
}

// rangeOf reads a range of terms: [a TO b], {a TO b}, or one of each.
func (p *stringParser) rangeOf(path string) (Query, error) {
	open := p.in[p.at]
	p.at++
	bound := func() (string, bool, error) {
		if !p.skip() {
			return "", false, p.fail()
		}
		if p.in[p.at] == '"' {
			s, ok := p.until('"')
			if !ok {
				return "", false, p.fail()
			}
			return s, true, nil
		}
		from := p.at
		for p.at < len(p.in) && !unicode.IsSpace(p.in[p.at]) && p.in[p.at] != ']' && p.in[p.at] != '}' {
			p.at++
		}
		s := string(p.in[from:p.at])
		if s == "" {
			return "", false, p.fail()
		}
		return s, s != "*", nil
	}
	lo, low, err := bound()
	if err != nil {
		return nil, err
	}
	if !p.skip() || !p.word("TO") {
		return nil, p.fail()
	}
	hi, high, err := bound()
	if err != nil {
		return nil, err
	}
	if !p.skip() || p.in[p.at] != ']' && p.in[p.at] != '}' {
		return nil, p.fail()
	}
	end := p.in[p.at]
	p.at++
	return p.boosted(p.on(path, func(x indexed) Query {
		from, to := lo, hi
		if a := searcher(x.field); !a.Keyword {
			from, to = a.Normalize(lo), a.Normalize(hi)
		}
		return p.c.someTerm(x.key, string(open)+from+" TO "+to+string(end), func(term string) bool {
			return (!low || term > from || open == '[' && term == from) &&
				(!high || term < to || end == ']' && term == to)
		})
	}))
}
