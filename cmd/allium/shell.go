package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// shellJSON turns what people write in MongoDB's shell into Extended JSON: keys without quotes,
// strings in single quotes, commas at the end, regular expressions between slashes, and the
// shell's constructors of values, such as ObjectId("...") and ISODate("..."). What is Extended JSON
// already stays as it is. Nothing else of JavaScript is understood.
func shellJSON(text string) (string, error) {
	p := shellParser{text: text}
	if err := p.value(0); err != nil {
		return "", fmt.Errorf("at character %d: %w", utf8.RuneCountInString(text[:min(p.at, len(text))])+1, err)
	}
	if p.space(); p.at < len(text) {
		return "", fmt.Errorf("at character %d: %q behind the value", utf8.RuneCountInString(text[:p.at])+1,
			text[p.at:])
	}
	return p.out.String(), nil
}

// maxShellDepth bounds how deep values may be nested, as documents are.
const maxShellDepth = 200

type shellParser struct {
	text string
	at   int
	out  strings.Builder
}

// space passes over white space.
func (p *shellParser) space() {
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsSpace(r) {
			return
		}
		p.at += size
	}
}

// peek returns the next byte that is no white space, 0 at the end.
func (p *shellParser) peek() byte {
	if p.space(); p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// take passes over a byte if it is the next one.
func (p *shellParser) take(b byte) bool {
	if p.peek() != b {
		return false
	}
	p.at++
	return true
}

func (p *shellParser) value(depth int) error {
	switch b := p.peek(); {
	case depth > maxShellDepth:
		return errors.New("values are nested too deep")
	case b == 0:
		return errors.New("a value is missing")
	case b == '{':
		return p.list('{', '}', depth)
	case b == '[':
		return p.list('[', ']', depth)
	case b == '"' || b == '\'':
		s, err := p.str()
		p.out.WriteString(jsonString(s))
		return err
	case b == '/':
		return p.regexp()
	case b == '-' || b == '+' || b == '.' || b >= '0' && b <= '9':
		return p.number()
	}
	word := p.word()
	switch word {
	case "":
		r, _ := utf8.DecodeRuneInString(p.text[p.at:])
		return fmt.Errorf("unexpected %q", r)
	case "true", "false", "null":
		p.out.WriteString(word)
		return nil
	case "undefined":
		p.out.WriteString(`{"$undefined":true}`)
		return nil
	case "NaN", "Infinity":
		p.out.WriteString(`{"$numberDouble":"` + word + `"}`)
		return nil
	case "new":
		p.space()
		word = p.word()
	}
	return p.call(word)
}

// list copies a document or an array.
func (p *shellParser) list(begin, end byte, depth int) error {
	p.at++
	p.out.WriteByte(begin)
	for n := 0; !p.take(end); n++ {
		if n > 0 {
			if !p.take(',') {
				return fmt.Errorf("want a comma or %q", end)
			}
			if p.take(end) { // the comma was the last
				break
			}
			p.out.WriteByte(',')
		}
		if begin == '{' {
			if err := p.key(); err != nil {
				return err
			}
		}
		if err := p.value(depth + 1); err != nil {
			return err
		}
	}
	p.out.WriteByte(end)
	return nil
}

func (p *shellParser) key() (err error) {
	var key string
	if b := p.peek(); b == '"' || b == '\'' {
		key, err = p.str()
	} else if key = p.word(); key == "" {
		err = errors.New("a key is missing")
	}
	if err != nil {
		return err
	}
	if !p.take(':') {
		return fmt.Errorf("want a colon behind the key %s", key)
	}
	p.out.WriteString(jsonString(key) + ":")
	return nil
}

// word reads a name as JavaScript has them, or the digits of a key.
func (p *shellParser) word() string {
	begin := p.at
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if r != '$' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		p.at += size
	}
	return p.text[begin:p.at]
}

func (p *shellParser) number() error {
	begin := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.at]) >= 0 {
		p.at++
	}
	text := p.text[begin:p.at]
	if p.word() == "Infinity" {
		p.out.WriteString(`{"$numberDouble":"` + strings.TrimPrefix(text, "+") + `Infinity"}`)
		return nil
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is no number", text)
	}
	text = strings.TrimPrefix(text, "+")
	sign, rest := "", text
	if strings.HasPrefix(rest, "-") {
		sign, rest = "-", rest[1:]
	}
	if strings.HasPrefix(rest, ".") {
		rest = "0" + rest
	}
	p.out.WriteString(sign + strings.Replace(rest+" ", ". ", ".0", 1)) // JSON wants digits around the point
	return nil
}

// str reads a string in quotes of either kind.
func (p *shellParser) str() (string, error) {
	quote := p.text[p.at]
	begin := p.at
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == quote:
			return b.String(), nil
		case c != '\\':
			b.WriteByte(c)
			continue
		case p.at == len(p.text):
			continue
		}
		c = p.text[p.at]
		p.at++
		if i := strings.IndexByte("bfnrtv0", c); i >= 0 {
			b.WriteByte("\b\f\n\r\t\v\x00"[i])
			continue
		}
		if c != 'u' && c != 'x' {
			b.WriteByte(c)
			continue
		}
		r, err := p.hex(map[byte]int{'u': 4, 'x': 2}[c])
		if err != nil {
			return "", err
		}
		if r >= 0xd800 && r < 0xdc00 && strings.HasPrefix(p.text[p.at:], `\u`) { // the first half of a character
			p.at += 2
			low, err := p.hex(4)
			if err != nil {
				return "", err
			}
			r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
		}
		b.WriteRune(r)
	}
	p.at = begin
	return "", errors.New("the string has no end")
}

func (p *shellParser) hex(digits int) (rune, error) {
	if p.at+digits > len(p.text) {
		return 0, errors.New("an escape has too few digits")
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	p.at += digits
	return rune(n), err
}

func (p *shellParser) regexp() error {
	begin := p.at
	p.at++
	class := false // within brackets a slash is a character
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			p.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			pattern := strings.ReplaceAll(p.text[begin+1:p.at], `\/`, "/")
			p.at++
			options := p.word()
			p.out.WriteString(`{"$regularExpression":{"pattern":` + jsonString(pattern) + `,"options":` +
				jsonString(options) + `}}`)
			return nil
		}
	}
	p.at = begin
	return errors.New("the regular expression has no end")
}

// constructors make Extended JSON of the arguments of the shell's constructors, as texts. Each has
// at least and at most so many.
var constructors = map[string]struct {
	least, most int
	write       func(args []string) (string, error)
}{
	"ObjectId":      {1, 1, wrapped("$oid")},
	"ObjectID":      {1, 1, wrapped("$oid")},
	"ISODate":       {0, 1, dated},
	"Date":          {0, 1, dated},
	"NumberInt":     {1, 1, wrapped("$numberInt")},
	"Int32":         {1, 1, wrapped("$numberInt")},
	"NumberLong":    {1, 1, wrapped("$numberLong")},
	"Long":          {1, 1, wrapped("$numberLong")},
	"Double":        {1, 1, wrapped("$numberDouble")},
	"NumberDecimal": {1, 1, wrapped("$numberDecimal")},
	"Decimal128":    {1, 1, wrapped("$numberDecimal")},
	"UUID":          {1, 1, wrapped("$uuid")},
	"Code":          {1, 1, wrapped("$code")},
	"MinKey":        {0, 0, func([]string) (string, error) { return `{"$minKey":1}`, nil }},
	"MaxKey":        {0, 0, func([]string) (string, error) { return `{"$maxKey":1}`, nil }},
	"Timestamp": {2, 2, func(args []string) (string, error) {
		for _, a := range args {
			if _, err := strconv.ParseUint(a, 10, 32); err != nil {
				return "", err
			}
		}
		return `{"$timestamp":{"t":` + args[0] + `,"i":` + args[1] + `}}`, nil
	}},
	"BinData": {2, 2, func(args []string) (string, error) {
		subtype, err := strconv.ParseUint(args[0], 10, 8)
		return fmt.Sprintf(`{"$binary":{"base64":%s,"subType":"%02x"}}`, jsonString(args[1]), subtype), err
	}},
}

func wrapped(key string) func([]string) (string, error) {
	return func(args []string) (string, error) { return `{"` + key + `":` + jsonString(args[0]) + `}`, nil }
}

// dated makes a date: of milliseconds since 1970, of a text, or of now.
func dated(args []string) (string, error) {
	at := time.Now()
	if len(args) > 0 {
		ms, err := strconv.ParseInt(args[0], 10, 64)
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00",
			"2006-01-02T15:04", time.DateTime, time.DateOnly} {
			if err == nil {
				break
			}
			var t time.Time
			if t, err = time.Parse(layout, args[0]); err == nil {
				ms = t.UnixMilli()
			}
		}
		if err != nil {
			return "", fmt.Errorf("%q is no date such as 2026-01-02T15:04:05Z", args[0])
		}
		at = time.UnixMilli(ms)
	}
	return `{"$date":{"$numberLong":"` + strconv.FormatInt(at.UnixMilli(), 10) + `"}}`, nil
}

// call reads the arguments of a constructor.
func (p *shellParser) call(name string) error {
	c, ok := constructors[name]
	if !ok {
		return fmt.Errorf("%s is no value", name)
	}
	var args []string
	if p.take('(') {
		for n := 0; !p.take(')'); n++ {
			if n > 0 && !p.take(',') {
				return fmt.Errorf("%s: want a comma or a bracket", name)
			}
			var arg string
			var err error
			if b := p.peek(); b == '"' || b == '\'' {
				arg, err = p.str()
			} else {
				begin := p.at
				for p.at < len(p.text) && !strings.ContainsRune(",) \t\n", rune(p.text[p.at])) {
					p.at++
				}
				if arg = p.text[begin:p.at]; arg == "" {
					err = fmt.Errorf("%s: an argument is missing", name)
				}
			}
			if err != nil {
				return err
			}
			args = append(args, arg)
		}
	} else if c.least > 0 {
		return fmt.Errorf("%s wants arguments in brackets", name)
	}
	if len(args) < c.least || len(args) > c.most {
		return fmt.Errorf("%s has %d arguments", name, len(args))
	}
	text, err := c.write(args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.out.WriteString(text)
	return nil
}

// jsonString quotes a string. Bytes that are not UTF-8 stay, for the reader of JSON to refuse.
func jsonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}
