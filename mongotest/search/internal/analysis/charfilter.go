package analysis

// Character filters, which change a text before it is cut into tokens.

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"allium/bson"
)

// charFilters are the character filters of custom analyzers by their types.
var charFilters = map[string]func(spec bson.Raw) (charFilter, error){
	"htmlStrip": func(spec bson.Raw) (charFilter, error) {
		keep := map[string]bool{}
		for _, tag := range stringsOf(spec.Lookup("ignoredTags")) {
			keep[strings.ToLower(tag)] = true
		}
		return func(c chars) chars { return stripHTML(c, keep) }, nil
	},
	"icuNormalize": func(bson.Raw) (charFilter, error) { return foldCompatible, nil },
	"mapping": func(spec bson.Raw) (charFilter, error) {
		doc, ok := spec.Lookup("mappings").Document()
		if !ok {
			return nil, invalid("\"analyzers.charFilters.mappings\" is required")
		}
		m := map[string]string{}
		for from, v := range doc.All() {
			to, ok := v.StringValue()
			if !ok || from == "" {
				return nil, invalid("\"analyzers.charFilters.mappings\" must map strings to strings")
			}
			m[from] = to
		}
		return mapping(m), nil
	},
	"persian": func(bson.Raw) (charFilter, error) { return mapping(map[string]string{"\u200c": " "}), nil },
}

// mapping replaces strings, the longest that stands at a place.
func mapping(m map[string]string) charFilter {
	longest := 0
	for from := range m {
		longest = max(longest, len([]rune(from)))
	}
	return func(c chars) chars {
		var b builder
		for i := 0; i < len(c.runes); {
			n := min(longest, len(c.runes)-i)
			to, ok := "", false
			for ; n > 0; n-- {
				if to, ok = m[string(c.runes[i:i+n])]; ok {
					break
				}
			}
			if !ok {
				b.add(c.runes[i], c.at[i])
				i++
				continue
			}
			for _, r := range to {
				b.add(r, c.at[i])
			}
			i += n
		}
		return b.end(c.at[len(c.runes)])
	}
}

// foldCompatible normalizes by NFKC and folds case, character by character with its marks.
func foldCompatible(c chars) chars {
	var b builder
	for i := 0; i < len(c.runes); {
		j := i + 1
		for j < len(c.runes) && unicode.In(c.runes[j], unicode.Mn, unicode.Me) {
			j++
		}
		for _, r := range norm.NFKC.String(foldCase(norm.NFKC.String(string(c.runes[i:j])))) {
			b.add(r, c.at[i])
		}
		i = j
	}
	return b.end(c.at[len(c.runes)])
}

// foldCase makes strings equal that differ in case.
func foldCase(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "ß", "ss")
}

// blockTags stand between words; a tag of another name between letters does not.
var blockTags = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(
		"address article aside blockquote body br button canvas caption center col colgroup dd dir div dl dt fieldset figcaption figure footer form frameset " +
			"h1 h2 h3 h4 h5 h6 head header hr html legend li link main map menu meta nav noscript ol optgroup option p pre script section style table tbody td tfoot th thead title tr ul") {
		blockTags[name] = true
	}
}

// stripHTML takes tags, comments and entities out, and what scripts and styles have between them.
func stripHTML(c chars, keep map[string]bool) chars {
	var b builder
	for i := 0; i < len(c.runes); {
		switch r := c.runes[i]; r {
		case '<':
			end, name, ok := c.tag(i)
			switch {
			case !ok, keep[name]:
				b.add(r, c.at[i])
				i++
			case (name == "script" || name == "style") && c.runes[i+1] != '/':
				i = c.closing(end, name)
				b.add('\n', c.at[i])
			default:
				if blockTags[name] {
					b.add('\n', c.at[i])
				}
				i = end
			}
		case '&':
			if to, n := c.entity(i); n > 0 {
				b.add(to, c.at[i])
				i += n
				continue
			}
			fallthrough
		default:
			b.add(r, c.at[i])
			i++
		}
	}
	return b.end(c.at[len(c.runes)])
}

// tag returns the end and the name of the tag or comment that begins at i.
func (c chars) tag(i int) (end int, name string, ok bool) {
	rest := c.runes[i:]
	if strings.HasPrefix(string(rest[:min(len(rest), 4)]), "<!--") {
		if n := indexRunes(rest[4:], "-->"); n >= 0 {
			return i + 4 + n + 3, "!--", true
		}
		return len(c.runes), "!--", true
	}
	j := 1
	if j < len(rest) && (rest[j] == '/' || rest[j] == '!' || rest[j] == '?') {
		j++
	}
	from := j
	for j < len(rest) && (unicode.IsLetter(rest[j]) || unicode.IsDigit(rest[j]) ||
		j > from && strings.ContainsRune("-_:.", rest[j])) {
		j++
	}
	if j == from || unicode.IsDigit(rest[from]) {
		return 0, "", false
	}
	name = strings.ToLower(string(rest[from:j]))
	for quote := rune(0); j < len(rest); j++ {
		switch r := rest[j]; {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '>':
			return i + j + 1, name, true
		}
	}
	return 0, "", false
}

// closing returns the end of the closing tag of a name from i on.
func (c chars) closing(i int, name string) int {
	for ; i < len(c.runes); i++ {
		if c.runes[i] == '<' && i+1 < len(c.runes) && c.runes[i+1] == '/' {
			if end, n, ok := c.tag(i); ok && n == name {
				return end
			}
		}
	}
	return len(c.runes)
}

var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "nbsp": ' ', "copy": '©',
	"reg": '®', "euro": '€', "mdash": '—', "ndash": '–',
	"hellip": '…', "lsquo": '‘', "rsquo": '’', "ldquo": '“', "rdquo": '”', "eacute": 'é', "egrave": 'è', "agrave": 'à',
	"auml": 'ä', "ouml": 'ö', "uuml": 'ü', "szlig": 'ß', "ccedil": 'ç', "ntilde": 'ñ'}

// entity returns the character that stands at i as an entity of n characters.
func (c chars) entity(i int) (to rune, n int) {
	for n = 1; n < 12 && i+n < len(c.runes); n++ {
		if c.runes[i+n] != ';' {
			continue
		}
		name := string(c.runes[i+1 : i+n])
		if number, ok := strings.CutPrefix(name, "#"); ok {
			base := rune(10)
			if hex, ok := strings.CutPrefix(strings.ToLower(number), "x"); ok {
				base, number = 16, hex
			}
			for _, d := range number {
				digit := rune(strings.IndexRune("0123456789abcdef", d))
				if digit < 0 || digit >= base || to > unicode.MaxRune {
					return 0, 0
				}
				to = to*base + digit
			}
			if number == "" || to > unicode.MaxRune {
				return 0, 0
			}
			return to, n + 1
		}
		if to, ok := entities[name]; ok {
			return to, n + 1
		}
		return 0, 0
	}
	return 0, 0
}

func indexRunes(s []rune, text string) int {
	want := []rune(text)
	for i := 0; i+len(want) <= len(s); i++ {
		if string(s[i:i+len(want)]) == text {
			return i
		}
	}
	return -1
}

// stringsOf returns the strings of an array, or the one that the value is.
func stringsOf(v bson.RawValue) (list []string) {
	if s, ok := v.StringValue(); ok {
		return []string{s}
	}
	if a, ok := v.Array(); ok {
		for item := range a.Values() {
			if s, ok := item.StringValue(); ok {
				list = append(list, s)
			}
		}
	}
	return list
}
