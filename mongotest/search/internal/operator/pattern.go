package operator

// The operators that look for terms by patterns: wildcard and regex.

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"allium/bson"
)

// like reports whether a text matches a pattern in which many stands for any characters, and
// one, if it is not 0, for a single one; escape, if it is not 0, takes the meaning of the next.
func like(text, pattern string, many, one, escape rune) bool {
	type state struct{ text, pattern string }
	var again *state // after the last many, with less of the text
	for {
		p, n := utf8.DecodeRuneInString(pattern)
		r, m := utf8.DecodeRuneInString(text)
		switch {
		case n > 0 && p == many:
			if pattern = pattern[n:]; pattern == "" {
				return true
			}
			again = &state{text, pattern}
			continue
		case n == 0 && m == 0:
			return true
		case m > 0 && n > 0 && one != 0 && p == one:
			text, pattern = text[m:], pattern[n:]
			continue
		case m > 0 && n > 0:
			if escape != 0 && p == escape && len(pattern) > n {
				pattern = pattern[n:]
				p, n = utf8.DecodeRuneInString(pattern)
			}
			if p == r && n == m {
				text, pattern = text[m:], pattern[n:]
				continue
			}
		}
		if again == nil || again.text == "" {
			return false
		}
		_, m = utf8.DecodeRuneInString(again.text)
		again.text = again.text[m:]
		text, pattern = again.text, again.pattern
	}
}

func (c *compiler) wildcard(doc bson.Raw) (Query, error) {
	return c.patterns(doc, func(x indexed, query string, analyzed bool) (Query, error) {
		if analyzed {
			query = searcher(x.field).Normalize(query)
		}
		return c.someTerm(x.key, query, func(term string) bool { return like(term, query, '*', '?', '\\') }), nil
	})
}

func (c *compiler) regex(doc bson.Raw) (Query, error) {
	return c.patterns(doc, func(x indexed, query string, _ bool) (Query, error) {
		re, err := Expression(query)
		if err != nil {
			return nil, invalid("\"%s.query\" is not a regular expression: %s", c.where, err)
		}
		return c.someTerm(x.key, "/"+query+"/", re.MatchString), nil
	})
}

func (c *compiler) patterns(doc bson.Raw,
	make func(x indexed, query string, analyzed bool) (Query, error)) (Query, error) {
	queries, fields, err := c.wanted(doc)
	if err != nil {
		return nil, err
	}
	allowed := false
	if v := doc.Lookup("allowAnalyzedField"); v.Type != 0 {
		var ok bool
		if allowed, ok = v.Boolean(); !ok {
			return nil, invalid("\"%s.allowAnalyzedField\" must be a boolean", c.where)
		}
	}
	if len(fields) == 0 && !allowed {
		return nil, invalid("\"%s.path\" must name a field with the keyword analyzer", c.where)
	}
	var list []Query
	for _, x := range fields {
		if !x.field.Analyzer.Keyword && !allowed {
			return nil, invalid("\"%s.allowAnalyzedField\" must be true to run against the analyzed field \"%s\"",
				c.where, strings.TrimPrefix(x.key, c.context.StringKey("", "")))
		}
		for _, query := range queries {
			q, err := make(x, query, allowed)
			if err != nil {
				return nil, err
			}
			list = append(list, q)
		}
	}
	return oneOf(list), nil
}

// maxExpression is how long a regular expression may become when it is translated.
const maxExpression = 1 << 18

// Expression compiles a regular expression in Lucene's syntax, which matches whole terms.
func Expression(s string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`^(?s:`)
	class := false // within brackets
	r := []rune(s)
	for i := 0; i < len(r); i++ {
		switch c := r[i]; {
		case c == '\\' && i+1 < len(r):
			i++
			b.WriteString(regexp.QuoteMeta(string(r[i])))
			if class && (r[i] == '-' || r[i] == '^') {
				t := b.String()
				b.Reset()
				b.WriteString(t[:len(t)-1] + `\` + string(r[i]))
			}
		case class && c == ']':
			class = false
			b.WriteRune(c)
		case class && (c == '[' || c == '&' || c == '~'):
			b.WriteString(`\` + string(c))
		case class:
			b.WriteRune(c)
		case c == '[':
			class = true
			b.WriteRune(c)
			if i+1 < len(r) && r[i+1] == '^' {
				i++
				b.WriteByte('^')
			}
			if i+1 < len(r) && r[i+1] == ']' {
				return nil, invalid("empty character class")
			}
		case c == '"':
			end := i + 1
			for end < len(r) && r[end] != '"' {
				end++
			}
			if end == len(r) {
				return nil, invalid("expected '\"' at position %d", end)
			}
			b.WriteString(`(?:` + regexp.QuoteMeta(string(r[i+1:end])) + `)`)
			i = end
		case c == '<':
			end := i + 1
			for end < len(r) && r[end] != '>' {
				end++
			}
			numbers, err := interval(string(r[i+1 : min(end, len(r))]))
			if end == len(r) || err != nil {
				return nil, invalid("illegal interval at position %d", i)
			}
			b.WriteString(numbers)
			i = end
		case c == '@':
			b.WriteString(`(?:.*)`)
		case c == '#':
			b.WriteString(`[^\x{0}-\x{10FFFF}]`)
		case c == '^' || c == '$':
			b.WriteString(`\` + string(c))
		case (c == '*' || c == '+' || c == '?') && i > 0 && (r[i-1] == '*' || r[i-1] == '+' || r[i-1] == '?') &&
			(i < 2 || r[i-2] != '\\'):
			t := b.String() // a repetition of a repetition: Go's syntax has another meaning for some
			b.Reset()
			b.WriteString(t + `{0,1}`)
			if c != '?' {
				b.Reset()
				b.WriteString(t[:len(t)-1] + `*`)
			}
		default:
			b.WriteRune(c)
		}
		if b.Len() > maxExpression {
			return nil, invalid("too long")
		}
	}
	b.WriteString(`)$`)
	return regexp.Compile(b.String())
}

// maxInterval is how many numbers an interval of a regular expression may have.
const maxInterval = 10000

// interval translates n-m: the numbers from one to another, with leading zeros if both have the
// same number of digits.
func interval(s string) (string, error) {
	from, to, ok := strings.Cut(s, "-")
	lo, err := strconv.ParseUint(from, 10, 32)
	hi, err2 := strconv.ParseUint(to, 10, 32)
	if !ok || err != nil || err2 != nil {
		return "", invalid("illegal interval")
	}
	if lo > hi {
		lo, hi = hi, lo
	}
	if hi-lo > maxInterval {
		return "", invalid("interval too large")
	}
	digits := 0
	if len(from) == len(to) {
		digits = len(from)
	}
	var b strings.Builder
	b.WriteString(`(?:`)
	for n := lo; n <= hi; n++ {
		if n > lo {
			b.WriteByte('|')
		}
		text := strconv.FormatUint(n, 10)
		if digits == 0 {
			b.WriteString(`0*`)
		} else {
			b.WriteString(strings.Repeat("0", max(0, digits-len(text))))
		}
		b.WriteString(text)
	}
	b.WriteByte(')')
	return b.String(), nil
}
