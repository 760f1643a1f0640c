package query

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// collatorVersion is the version of the collation rules that the server reports (that of ICU).
const collatorVersion = "57.1"

// Collation is how strings compare; a nil *Collation compares bytes. It is safe for concurrent use.
type Collation struct {
	locale          string
	strength        int
	caseLevel       bool
	caseFirst       string
	numericOrdering bool
	shifted         bool
	maxVariable     string
	normalization   bool
	backwards       bool

	pool *sync.Pool // of *collator
}

// collator is what one comparison works with.
type collator struct {
	c   *collate.Collator
	buf collate.Buffer
}

// locales are the languages and variants that the server has rules for.
var locales = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(
		`af am ar as az be bg bn bo bs ca chr cs cy da de dsb dz ee el en eo es et fa fi fil fo fr ga gl gu ha haw
		he hi hr hsb hu hy id ig is it ja ka kk kl km kn ko kok ky lb lkt ln lo lt lv mk ml mn mr ms mt my nb ne nl nn om or pa
		pl ps pt ro ru se si sk sl smn sq sr sv sw ta te th to tr ug uk ur vi wae yi yo zh zu`) {
		m[name] = true
	}
	return m
}()

// ParseCollation parses a collation specification as a version does. The result is nil, which is
// the simple collation, for {locale: "simple"} and for an empty document.
func ParseCollation(version release.Version, spec bson.Raw) (*Collation, error) {
	if spec.IsEmpty() {
		return nil, nil
	}
	if version.AtLeast(5, 0) {
		return parseDefined(version, spec)
	}
	c := &Collation{strength: 3, caseFirst: "off", maxVariable: "punct"}
	p := collationParser{spec: spec}
	locale, ok := p.text("locale", "")
	if p.err == nil && !ok {
		p.err = srverr.New(srverr.NoSuchKey, `Missing expected field "locale"`)
	}
	if p.err != nil {
		return nil, p.err
	}
	if locale == "simple" {
		if countElements(spec) > 1 {
			return nil, srverr.New(srverr.FailedToParse, "If locale=simple, no other fields should be present in: %s",
				bsontext.Document(spec))
		}
		return nil, nil
	}
	c.locale = locale
	if err := checkLocale(locale, spec); err != nil {
		return nil, err
	}
	byDefault := localeDefaults[locale]
	if byDefault.alternate == "" {
		byDefault.alternate = "non-ignorable"
	}
	c.caseLevel = p.flag("caseLevel", false)
	c.caseFirst, _ = p.choice("caseFirst", "off", "'upper', 'lower', or 'off'", "upper", "lower", "off")
	c.strength = p.strength()
	c.numericOrdering = p.flag("numericOrdering", false)
	alternate, _ := p.choice("alternate", byDefault.alternate, "'non-ignorable' or 'shifted'", "non-ignorable",
		"shifted")
	c.shifted = alternate == "shifted"
	c.maxVariable, _ = p.choice("maxVariable", "punct", "'punct' or 'space'", "punct", "space")
	c.normalization = p.flag("normalization", byDefault.normalization)
	c.backwards = p.flag("backwards", byDefault.backwards)
	collator, _ := p.text("version", collatorVersion)
	if p.err == nil {
		p.err = checkCollatorVersion(collator, spec)
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case p.seen < countElements(spec):
		return nil, srverr.New(srverr.FailedToParse, "Collation spec contains unknown field. Collation spec: %s",
			bsontext.Document(spec))
	}
	return c.ready()
}

func checkCollatorVersion(version string, spec bson.Raw) error {
	if version == collatorVersion {
		return nil
	}
	return srverr.New(161, "Requested collation version %s but the only available collator version was %s. "+
		"Requested collation spec: %s", version, collatorVersion, bsontext.Document(spec))
}

// ready checks that the options go together, and has the collation compare.
func (c *Collation) ready() (*Collation, error) {
	switch {
	case c.backwards && c.strength == 1:
		return nil, badValue("'backwards' is invalid with 'strength' of 1 in: %s", bsontext.Document(c.Spec()))
	case c.caseFirst != "off" && !c.caseLevel && c.strength < 3:
		return nil, badValue("'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: %s",
			bsontext.Document(c.Spec()))
	}
	c.pool = &sync.Pool{New: func() any { return c.newCollator() }}
	return c, nil
}

func checkLocale(locale string, spec bson.Raw) error {
	if locale == "" {
		return badValue("Field 'locale' cannot be the empty string in: %s", bsontext.Document(spec))
	}
	if strings.IndexByte(locale, 0) >= 0 {
		return badValue("Field 'locale' cannot contain null bytes. Collation spec: %s", bsontext.Document(spec))
	}
	base, variant, hasVariant := strings.Cut(locale, "@")
	canonical := canonicalLocale(base)
	language, _, _ := strings.Cut(canonical, "_")
	switch {
	case !locales[language], variant != "" && !strings.HasPrefix(variant, "collation="):
		return badValue("Field 'locale' is invalid in: %s", bsontext.Document(spec))
	case canonical != base:
		if hasVariant {
			canonical += "@" + variant
		}
		return badValue("Field 'locale' is invalid in: %s. Did you mean '%s'?", bsontext.Document(spec), canonical)
	}
	return nil
}

// canonicalLocale writes a locale as ICU does: language_Script_REGION.
func canonicalLocale(name string) string {
	parts := strings.Split(strings.ReplaceAll(name, "-", "_"), "_")
	for i, part := range parts {
		switch {
		case i == 0:
			parts[i] = strings.ToLower(part)
		case len(part) == 4:
			parts[i] = strings.ToUpper(part[:1]) + strings.ToLower(part[1:])
		default:
			parts[i] = strings.ToUpper(part)
		}
	}
	return strings.Join(parts, "_")
}

// localeDefaults are the options that are not the same in all locales.
var localeDefaults = map[string]struct {
	alternate                string
	normalization, backwards bool
}{
	"fr_CA": {backwards: true},
	"th":    {alternate: "shifted", normalization: true},
	"vi":    {normalization: true},
}

// collationParser reads fields and keeps the first error.
type collationParser struct {
	spec bson.Raw
	seen int
	err  error
}

func (p *collationParser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *collationParser) field(name string, want bson.Type) (bson.RawValue, bool) {
	v := lookup(p.spec, name)
	if v.Type == 0 {
		return v, false
	}
	p.seen++
	if v.Type != want {
		p.fail(srverr.New(srverr.TypeMismatch, `"%s" had the wrong type. Expected %s, found %s`,
			name, bsontext.TypeName(want), bsontext.TypeName(v.Type)))
		return v, false
	}
	return v, true
}

func (p *collationParser) text(name, byDefault string) (string, bool) {
	v, ok := p.field(name, bson.TypeString)
	if !ok {
		return byDefault, false
	}
	s, _ := v.StringValue()
	return s, true
}

func (p *collationParser) choice(name, byDefault, hint string, choices ...string) (string, bool) {
	s, ok := p.text(name, byDefault)
	for _, c := range choices {
		if s == c {
			return s, ok
		}
	}
	p.fail(srverr.New(srverr.FailedToParse, "Field '%s' must be %s. Got: %s", name, hint, s))
	return s, false
}

func (p *collationParser) flag(name string, byDefault bool) bool {
	v, ok := p.field(name, bson.TypeBoolean)
	if !ok {
		return byDefault
	}
	b, _ := v.Boolean()
	return b
}

func (p *collationParser) strength() int {
	v := lookup(p.spec, "strength")
	if v.Type == 0 {
		return 3
	}
	p.seen++
	if !v.IsNumber() {
		p.fail(srverr.New(srverr.TypeMismatch, `Expected field "strength" to have numeric type, but found %s`,
			bsontext.TypeName(v.Type)))
		return 3
	}
	n, whole := exactInt64(v)
	switch {
	case !whole:
		p.fail(badValue(`Expected field "strength" to have a value exactly representable as a 64-bit integer, but found %s`,
			bsontext.Element("strength", v)))
	case n < 1 || n > 5:
		p.fail(srverr.New(srverr.FailedToParse, "Field 'strength' must be an integer 1 through 5. Got: %d", n))
	}
	return int(min(max(n, 0), math.MaxInt8))
}

// Spec returns the specification with all fields filled in, as listIndexes and listCollections show
// it.
func (c *Collation) Spec() bson.Raw {
	alternate := "non-ignorable"
	if c.shifted {
		alternate = "shifted"
	}
	return bsondoc.Of("locale", c.locale, "caseLevel", c.caseLevel, "caseFirst", c.caseFirst,
		"strength", int32(c.strength), "numericOrdering", c.numericOrdering, "alternate", alternate,
		"maxVariable", c.maxVariable, "normalization", c.normalization, "backwards", c.backwards,
		"version", collatorVersion)
}

// Same reports whether two collations, either of which may be nil, are the same.
func (c *Collation) Same(other *Collation) bool {
	if c == nil || other == nil {
		return c == other
	}
	return bytes.Equal(c.Spec(), other.Spec())
}

func (c *Collation) newCollator() *collator {
	base, variant, _ := strings.Cut(c.locale, "@")
	tag, err := language.Parse(base)
	if err != nil {
		tag = language.Und
	}
	// The levels are weighed in AppendKey, so the collator always makes all three.
	if kind, ok := strings.CutPrefix(variant, "collation="); ok {
		if t, err := tag.SetTypeForKey("co", kind); err == nil {
			tag = t
		}
	}
	return &collator{c: collate.New(tag, collate.OptionsFromTag(tag))}
}

// CompareBytes compares two strings in UTF-8.
func (c *Collation) CompareBytes(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	var x, y [128]byte
	return bytes.Compare(c.AppendKey(x[:0], a), c.AppendKey(y[:0], b))
}

// AppendKey appends a key for the string: keys compare by their bytes as strings compare by the
// collation.
func (c *Collation) AppendKey(dst, s []byte) []byte {
	whole := s
	if c.numericOrdering {
		s = orderNumbers(s)
	}
	all := s
	if c.shifted {
		s = c.withoutVariable(s)
	}
	w := c.pool.Get().(*collator)
	defer c.pool.Put(w)
	key := w.key(s)
	primary, rest := cutPrimary(key)
	secondary, tertiary := cutSecondary(rest)
	dst = append(append(dst, primary...), 0, 0)
	if c.strength >= 2 {
		if c.backwards {
			for i := len(secondary) - 2; i >= 0; i -= 2 {
				dst = append(dst, secondary[i], secondary[i+1])
			}
		} else {
			dst = append(dst, secondary...)
		}
		dst = append(dst, 0, 0)
	}
	upperFirst := c.caseFirst == "upper"
	if c.caseLevel {
		cases := tertiary
		if c.strength == 1 {
			_, rest := cutPrimary(w.key(withoutMarks(s)))
			_, cases = cutSecondary(rest)
		}
		for _, t := range cases {
			dst = append(dst, caseWeight(t, upperFirst))
		}
		dst = append(dst, 0)
	}
	if c.strength >= 3 {
		for _, t := range tertiary {
			if c.caseFirst != "off" {
				dst = append(dst, caseWeight(t, upperFirst))
			}
			dst = append(dst, t)
		}
		dst = append(dst, 0)
	}
	if c.strength >= 4 {
		dst = append(c.appendQuaternary(dst, w, all), 0)
	}
	if c.strength == 5 {
		dst = append(dst, norm.NFD.Bytes(whole)...)
	}
	return dst
}

// appendQuaternary appends the weights of the fourth level, in which strings differ whose variable
// characters are ignored before, and in Japanese those that write the same in another syllabary.
func (c *Collation) appendQuaternary(dst []byte, w *collator, s []byte) []byte {
	kana := strings.HasPrefix(c.locale, "ja")
	if !c.shifted && !kana {
		return dst
	}
	for _, r := range string(s) {
		primary, rest := cutPrimary(w.key(utf8.AppendRune(nil, r)))
		secondary, tertiary := cutSecondary(rest)
		switch {
		case len(primary)+len(secondary)+len(tertiary) == 0: // it is ignored on every level
		case c.shifted && c.isVariable(r):
			dst = append(append(dst, 1), primary...)
		case kana && unicode.Is(unicode.Hiragana, r):
			dst = append(dst, 0xfe)
		default:
			dst = append(dst, 0xff)
		}
	}
	return dst
}

func (w *collator) key(s []byte) []byte {
	w.buf.Reset()
	return w.c.Key(&w.buf, s)
}

// A key of the collate package is: weights of two bytes (three if the first has its high bit set),
// 0 0, weights of two bytes, 0 0, weights of one byte.

func cutPrimary(key []byte) (primary, rest []byte) {
	for i := 0; i+1 < len(key); i += 2 {
		if key[i]&0x80 != 0 {
			i++
			continue
		}
		if key[i] == 0 && key[i+1] == 0 {
			return key[:i], key[i+2:]
		}
	}
	return key, nil
}

func cutSecondary(key []byte) (secondary, rest []byte) {
	for i := 0; i+1 < len(key); i += 2 {
		if key[i] == 0 && key[i+1] == 0 {
			return key[:i], key[i+2:]
		}
	}
	return key, nil
}

// caseWeight turns a third-level weight into one of case alone.
func caseWeight(t byte, upperFirst bool) byte {
	upper := t >= 8 && t <= 0x0c || t == 0x0e || t == 0x11 || t == 0x12 || t == 0x1d
	if upper == upperFirst {
		return 1
	}
	return 2
}

// maxNumber is how many digits sort as one number, without the zeros at its front; of a longer run
// the rest is a number of its own.
const maxNumber = 254

// orderNumbers writes runs of digits so that they sort by their values: without zeros at the front
// and after their length in three digits. collate.Numeric does not do: it sorts a zero after the
// other numbers.
func orderNumbers(s []byte) []byte {
	var out []byte
	for len(s) > 0 {
		n := 0
		var digits []byte
		for n < len(s) {
			r, size := utf8.DecodeRune(s[n:])
			if !unicode.IsDigit(r) {
				break
			}
			n += size
			digits = append(digits, '0'+digitValue(r))
		}
		for len(digits) > 0 {
			for len(digits) > 1 && digits[0] == '0' {
				digits = digits[1:]
			}
			k := min(len(digits), maxNumber)
			out = append(fmt.Appendf(out, "%03d", k), digits[:k]...)
			digits = digits[k:]
		}
		s = s[n:]
		if i := bytes.IndexFunc(s, unicode.IsDigit); i >= 0 {
			out, s = append(out, s[:i]...), s[i:]
		} else {
			out, s = append(out, s...), nil
		}
	}
	return out
}

// digitValue returns the value of a decimal digit of any script: their digits stand together, in
// order, from a zero on.
func digitValue(r rune) byte {
	zero := r
	for unicode.IsDigit(zero-1) && r-zero < 9 {
		zero--
	}
	if r >= 0x1D7CE && r <= 0x1D7FF { // mathematical digits: five sets in a row
		return byte((r - 0x1D7CE) % 10)
	}
	return byte(r - zero)
}

// withoutVariable removes what alternate "shifted" ignores.
func (c *Collation) withoutVariable(s []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if c.isVariable(r) {
			return -1
		}
		return r
	}, s)
}

// isVariable reports whether a character is one of those that "shifted" ignores. A space that
// breaks no line counts as punctuation.
func (c *Collation) isVariable(r rune) bool {
	const noBreak = '\u00a0'
	if c.maxVariable == "punct" && (unicode.IsPunct(r) || r == noBreak) {
		return true
	}
	return unicode.IsSpace(r) && r != noBreak
}

// withoutMarks removes accents.
func withoutMarks(s []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.Bytes(s))
}
