package analysis

// The token filters of custom analyzers.

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"allium/bson"
	"allium/mongotest/internal/pcre"
)

// tokenFilters are the token filters by their types; graph tells that they make several tokens of a
// word.
var tokenFilters = map[string]struct {
	make  func(spec bson.Raw) (tokenFilter, error)
	graph bool
}{
	"asciiFolding": {make: func(spec bson.Raw) (tokenFilter, error) {
		return keeping(spec, "omit", func(s string) []string { return []string{foldASCII(s)} })
	}},
	"daitchMokotoffSoundex": {graph: true, make: func(spec bson.Raw) (tokenFilter, error) {
		return keeping(spec, "include", soundex)
	}},
	"edgeGram": {graph: true, make: func(spec bson.Raw) (tokenFilter, error) {
		return gramFilter(spec, func(r []rune, min, max int, add func(i, j int)) {
			for n := min; n <= max && n <= len(r); n++ {
				add(0, n)
			}
		})
	}},
	"nGram": {graph: true, make: func(spec bson.Raw) (tokenFilter, error) {
		return gramFilter(spec, func(r []rune, min, max int, add func(i, j int)) {
			for i := range r {
				for n := min; n <= max && i+n <= len(r); n++ {
					add(i, i+n)
				}
			}
		})
	}},
	"englishPossessive": plain(withoutPossessive),
	"flattenGraph": {make: func(bson.Raw) (tokenFilter, error) {
		return func(list []Token) []Token { return list }, nil
	}},
	"icuFolding": plain(foldUnicode),
	"icuNormalizer": {make: func(spec bson.Raw) (tokenFilter, error) {
		form := norm.NFC
		if v := spec.Lookup("normalizationForm"); v.Type != 0 {
			s, _ := v.StringValue()
			var ok bool
			if form, ok = map[string]norm.Form{"nfc": norm.NFC, "nfd": norm.NFD, "nfkc": norm.NFKC,
				"nfkd": norm.NFKD}[s]; !ok {
				return nil,
					invalid("\"analyzers.tokenFilters.normalizationForm\" must be one of [nfd, nfc, nfkd, nfkc]")
			}
		}
		return each(form.String), nil
	}},
	"keywordRepeat": {make: func(bson.Raw) (tokenFilter, error) { return repeatKeywords, nil }},
	"length": {make: func(spec bson.Raw) (tokenFilter, error) {
		lo, hi := int64(0), int64(255)
		if n, ok := spec.Lookup("min").AsInt64(); ok {
			lo = n
		}
		if n, ok := spec.Lookup("max").AsInt64(); ok {
			hi = n
		}
		if lo > hi || lo < 0 {
			return nil, invalid("\"analyzers.tokenFilters.min\" must be less than or equal to \"max\"")
		}
		return without(func(s string) bool {
			n := int64(0)
			for _, r := range s {
				if n++; r >= 0x10000 {
					n++
				}
			}
			return n < lo || n > hi
		}), nil
	}},
	"lowercase":        plain(strings.ToLower),
	"porterStemming":   plain(func(s string) string { return stem(s, "porter") }),
	"regex":            {make: regexFilter},
	"removeDuplicates": {make: func(bson.Raw) (tokenFilter, error) { return removeDuplicates, nil }},
	"reverse": plain(func(s string) string {
		r := []rune(s)
		slices.Reverse(r)
		return string(r)
	}),
	"shingle": {graph: true, make: func(spec bson.Raw) (tokenFilter, error) {
		lo, ok := spec.Lookup("minShingleSize").AsInt64()
		hi, ok2 := spec.Lookup("maxShingleSize").AsInt64()
		if !ok || !ok2 || lo < 2 || hi < lo || hi > 100 {
			return nil, invalid(
				"\"analyzers.tokenFilters.minShingleSize\" must be at least 2 and less than or equal to \"maxShingleSize\"")
		}
		return func(list []Token) []Token { return shingles(list, int(lo), int(hi)) }, nil
	}},
	"snowballStemming": {make: func(spec bson.Raw) (tokenFilter, error) {
		name, _ := spec.Lookup("stemmerName").StringValue()
		if stemmers[name] == nil {
			return nil, invalid("\"analyzers.tokenFilters.stemmerName\": there is no stemmer \"%s\" here", name)
		}
		return each(func(s string) string { return stem(s, name) }), nil
	}},
	"spanishPluralStemming": plain(spanishPlural),
	"stopword": {make: func(spec bson.Raw) (tokenFilter, error) {
		v := spec.Lookup("tokens")
		if v.Type != bson.TypeArray {
			return nil, invalid("\"analyzers.tokenFilters.tokens\" is required")
		}
		fold := true
		if b, ok := spec.Lookup("ignoreCase").Boolean(); ok {
			fold = b
		}
		return stopFilter(stringsOf(v), fold), nil
	}},
	"trim":               plain(strings.TrimSpace),
	"wordDelimiterGraph": {graph: true, make: delimiterFilter},
}

// plain is a filter without options that changes each token.
func plain(f func(string) string) struct {
	make  func(spec bson.Raw) (tokenFilter, error)
	graph bool
} {
	return struct {
		make  func(spec bson.Raw) (tokenFilter, error)
		graph bool
	}{make: func(bson.Raw) (tokenFilter, error) { return each(f), nil }}
}

func each(f func(string) string) tokenFilter {
	return func(list []Token) []Token {
		for i := range list {
			list[i].Text = f(list[i].Text)
		}
		return list
	}
}

func without(bad func(string) bool) tokenFilter {
	return func(list []Token) []Token {
		return slices.DeleteFunc(list, func(t Token) bool { return bad(t.Text) })
	}
}

// keeping makes a filter of a function that makes other tokens of one; originalTokens tells whether
// that stays.
func keeping(spec bson.Raw, otherwise string, f func(string) []string) (tokenFilter, error) {
	mode := otherwise
	if v := spec.Lookup("originalTokens"); v.Type != 0 {
		mode, _ = v.StringValue()
	}
	if mode != "include" && mode != "omit" {
		return nil, invalid("\"analyzers.tokenFilters.originalTokens\" must be one of [include, omit]")
	}
	return func(list []Token) []Token {
		var out []Token
		for _, t := range list {
			made := f(t.Text)
			if mode == "include" && !slices.Contains(made, t.Text) {
				out = append(out, t)
			}
			for _, s := range made {
				t.Text = s
				out = append(out, t)
			}
		}
		return out
	}, nil
}

func gramFilter(spec bson.Raw, cut func(r []rune, min, max int, add func(i, j int))) (tokenFilter, error) {
	lo, hi, err := grams(spec, "tokenFilters")
	if err != nil {
		return nil, err
	}
	keep := false
	if v := spec.Lookup("termNotInBounds"); v.Type != 0 {
		s, _ := v.StringValue()
		if s != "include" && s != "omit" {
			return nil, invalid("\"analyzers.tokenFilters.termNotInBounds\" must be one of [include, omit]")
		}
		keep = s == "include"
	}
	return func(list []Token) []Token {
		var out []Token
		for _, t := range list {
			r := []rune(t.Text)
			if keep && (len(r) < lo || len(r) > hi) {
				out = append(out, t)
			}
			cut(r, lo, hi, func(i, j int) {
				g := t
				g.Text = string(r[i:j])
				out = append(out, g)
			})
		}
		return out
	}, nil
}

// withoutPossessive takes the 's off the end.
func withoutPossessive(s string) string {
	for _, end := range []string{"'s", "'S", "’s", "’S", "＇s", "＇S"} {
		if word, ok := strings.CutSuffix(s, end); ok {
			return word
		}
	}
	return s
}

// foldUnicode takes accents and case away, and what else characters differ in that mean the same.
func foldUnicode(s string) string {
	s = norm.NFKC.String(foldCase(norm.NFKC.String(s)))
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		if to, ok := strokes[r]; ok {
			return to
		}
		return r
	}, norm.NFD.String(s)))
}

// strokes are the letters that no decomposition makes plain.
var strokes = map[rune]rune{'ø': 'o', 'Ø': 'O', 'đ': 'd', 'Đ': 'D', 'ł': 'l', 'Ł': 'L', 'ħ': 'h', 'Ħ': 'H', 'ı': 'i',
	'ŧ': 't', 'Ŧ': 'T', 'ƀ': 'b', 'ɨ': 'i'}

var ligatures = strings.NewReplacer("ß", "ss", "ẞ", "SS", "æ", "ae", "Æ", "AE", "œ", "oe", "Œ", "OE", "þ", "th", "Þ",
	"TH", "ð", "d", "Ð", "D",
	"‘", "'", "’", "'", "“", "\"", "”", "\"", "–", "-", "—", "-", "«", "\"", "»", "\"", "ﬁ", "fi", "ﬂ", "fl")

// foldASCII replaces characters by those of ASCII that look like them, where there are some.
func foldASCII(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if ascii {
		return s
	}
	s = ligatures.Replace(s)
	var b strings.Builder
	for _, r := range s {
		if to, ok := strokes[r]; ok {
			r = to
		}
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		plain := strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFKD.String(string(r)))
		if strings.IndexFunc(plain, func(r rune) bool { return r >= 0x80 }) >= 0 || plain == "" {
			b.WriteRune(r)
			continue
		}
		b.WriteString(plain)
	}
	return b.String()
}

// repeatKeywords yields each token twice, of which later filters change one: it stands for those
// that they do not stem.
func repeatKeywords(list []Token) []Token {
	out := make([]Token, 0, 2*len(list))
	for _, t := range list {
		out = append(out, t, t)
	}
	return out
}

// removeDuplicates leaves one of the same tokens at a place.
func removeDuplicates(list []Token) []Token {
	type key struct {
		text string
		at   int
	}
	seen := map[key]bool{}
	return slices.DeleteFunc(list, func(t Token) bool {
		k := key{t.Text, t.Position}
		was := seen[k]
		seen[k] = true
		return was
	})
}

func regexFilter(spec bson.Raw) (tokenFilter, error) {
	re, err := pattern(spec)
	if err != nil {
		return nil, err
	}
	to, ok := spec.Lookup("replacement").StringValue()
	if !ok {
		return nil, invalid("\"analyzers.tokenFilters.replacement\" is required")
	}
	how, _ := spec.Lookup("matches").StringValue()
	if how != "all" && how != "first" {
		return nil, invalid("\"analyzers.tokenFilters.matches\" must be one of [all, first]")
	}
	return each(func(s string) string { return replace(re, s, to, how == "first") }), nil
}

// replace replaces matches; $1 in the replacement stands for a group.
func replace(re *pcre.Regexp, s, to string, once bool) string {
	var b strings.Builder
	text := []byte(s)
	from := 0
	for at := 0; at <= len(text); {
		m := find(re, text, at)
		if m == nil {
			break
		}
		b.WriteString(s[from:m[0]])
		b.WriteString(expand(to, s, m))
		from = m[1]
		if at = m[1]; m[1] == m[0] {
			if at < len(text) {
				b.WriteByte(text[at])
			}
			at++
			from = min(at, len(text))
		}
		if once {
			break
		}
	}
	b.WriteString(s[from:])
	return b.String()
}

func expand(to, s string, m []int) string {
	var b strings.Builder
	for i := 0; i < len(to); i++ {
		switch {
		case to[i] == '\\' && i+1 < len(to):
			i++
			b.WriteByte(to[i])
		case to[i] == '$' && i+1 < len(to) && '0' <= to[i+1] && to[i+1] <= '9' && int(to[i+1]-'0') < len(m)/2:
			i++
			if g := int(to[i] - '0'); m[2*g] >= 0 {
				b.WriteString(s[m[2*g]:m[2*g+1]])
			}
		default:
			b.WriteByte(to[i])
		}
	}
	return b.String()
}

// shingles joins neighbours to tokens of some sizes, beside the tokens themselves.
func shingles(list []Token, lo, hi int) []Token {
	var out []Token
	for i, t := range list {
		out = append(out, t)
		joined := t
		for n := 2; n <= hi && i+n <= len(list); n++ {
			next := list[i+n-1]
			joined.Text, joined.End = joined.Text+" "+next.Text, next.End
			if n >= lo {
				out = append(out, joined)
			}
		}
	}
	return out
}

func stopFilter(words []string, fold bool) tokenFilter {
	set := map[string]bool{}
	for _, w := range words {
		if fold {
			w = strings.ToLower(w)
		}
		set[w] = true
	}
	return without(func(s string) bool {
		if fold {
			s = strings.ToLower(s)
		}
		return set[s]
	})
}

// delimiterFilter is wordDelimiterGraph: it cuts tokens where their characters change, and
// joins the parts.
func delimiterFilter(spec bson.Raw) (tokenFilter, error) {
	o := map[string]bool{"generateWordParts": true, "generateNumberParts": true, "splitOnCaseChange": true,
		"splitOnNumerics": true, "stemEnglishPossessive": true,
		"concatenateWords": false, "concatenateNumbers": false, "concatenateAll": false, "preserveOriginal": false,
		"ignoreKeywords": false}
	doc, _ := spec.Lookup("delimiterOptions").Document()
	for name, v := range doc.All() {
		b, isBool := v.Boolean()
		if _, known := o[name]; !known || !isBool {
			return nil, invalid("\"analyzers.tokenFilters.delimiterOptions.%s\" is not an option", name)
		}
		o[name] = b
	}
	protected := map[string]bool{}
	fold := true
	if doc, ok := spec.Lookup("protectedWords").Document(); ok {
		if b, ok := doc.Lookup("ignoreCase").Boolean(); ok {
			fold = b
		}
		for _, w := range stringsOf(doc.Lookup("words")) {
			if fold {
				w = strings.ToLower(w)
			}
			protected[w] = true
		}
	}
	return func(list []Token) []Token {
		var out []Token
		shift := 0
		for _, t := range list {
			name := t.Text
			if fold {
				name = strings.ToLower(name)
			}
			t.Position += shift
			if protected[name] {
				out = append(out, t)
				continue
			}
			parts := delimited(t, o)
			out = append(out, parts...)
			if n := len(parts); n > 0 {
				shift += parts[n-1].Position - t.Position
			}
		}
		return out
	}, nil
}

// delimited returns the parts of a token.
func delimited(t Token, o map[string]bool) []Token {
	r := []rune(t.Text)
	kind := func(c rune) int {
		switch {
		case unicode.IsUpper(c):
			return 1
		case unicode.IsLetter(c) || unicode.Is(unicode.M, c):
			return 2
		case unicode.IsDigit(c):
			return 3
		}
		return 0
	}
	type part struct {
		i, j   int
		number bool
	}
	var parts []part
	for i := 0; i < len(r); {
		k := kind(r[i])
		if k == 0 {
			i++
			continue
		}
		j := i + 1
		for j < len(r) && kind(r[j]) != 0 {
			a, b := kind(r[j-1]), kind(r[j])
			if o["splitOnCaseChange"] && a == 2 && b == 1 || o["splitOnNumerics"] && (a == 3) != (b == 3) {
				break
			}
			j++
		}
		if o["stemEnglishPossessive"] && j-i == 1 && (r[i] == 's' || r[i] == 'S') && i > 0 &&
			(r[i-1] == '\'' || r[i-1] == '’') && len(parts) > 0 && (j == len(r) || kind(r[j]) == 0) {
			i = j
			continue
		}
		parts = append(parts, part{i, j, kind(r[i]) == 3})
		i = j
	}
	make := func(i, j, position int) Token {
		p := Token{string(r[i:j]), t.Position + position, t.Start, t.End}
		if t.End-t.Start == len(t.Text) { // nothing was changed before
			p.Start, p.End = t.Start+len(string(r[:i])), t.Start+len(string(r[:j]))
		}
		return p
	}
	if len(parts) == 1 && parts[0].i == 0 && parts[0].j == len(r) {
		return []Token{t}
	}
	var out []Token
	if o["preserveOriginal"] {
		out = append(out, t)
	}
	join := func(list []part, position int) {
		text := ""
		for _, p := range list {
			text += string(r[p.i:p.j])
		}
		j := make(list[0].i, list[len(list)-1].j, position)
		j.Text = text
		if !slices.ContainsFunc(out, func(x Token) bool { return x.Text == text && x.Position == j.Position }) {
			out = append(out, j)
		}
	}
	if o["concatenateAll"] && len(parts) > 1 {
		join(parts, 0)
	}
	for n, p := range parts {
		end := n
		for end < len(parts) && parts[end].number == p.number {
			end++
		}
		if (n == 0 || parts[n-1].number != p.number) && end-n > 1 &&
			(o["concatenateWords"] && !p.number || o["concatenateNumbers"] && p.number) {
			join(parts[n:end], n)
		}
		if o["generateNumberParts"] && p.number || o["generateWordParts"] && !p.number {
			out = append(out, make(p.i, p.j, n))
		}
	}
	return out
}

// Fold takes accents and case away.
func Fold(s string) string { return foldUnicode(s) }
