package analysis

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// language is an analyzer that knows a language.
type language struct {
	before []tokenFilter // before the case is folded
	after  []tokenFilter // instead of folding it; nil: it is
	stop   string        // words
	stem   func(string) string
}

// languages are the language analyzers by name, without "lucene.".
var languages = map[string]language{
	"english": {before: []tokenFilter{each(withoutPossessive)}, stop: stopEnglish, stem: snowballOf("porter")},
	"french": {before: []tokenFilter{elision("l m t qu n s j d c jusqu quoiqu lorsqu puisqu")}, stop: stopFrench,
		stem: frenchLight},
	"german": {stop: stopGerman, stem: func(s string) string { return germanLight(germanNormal(s)) }},
	"italian": {before: []tokenFilter{elision(
		"c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d")}, stop: stopItalian,
		stem: italianLight},
	"spanish":    {stop: stopSpanish, stem: spanishLight},
	"portuguese": {stop: stopPortuguese, stem: snowballOf("portuguese")},
	"dutch":      {stop: stopDutch, stem: snowballOf("dutch")},
	"danish":     {stop: stopDanish, stem: snowballOf("danish")},
	"swedish":    {stop: stopSwedish, stem: snowballOf("swedish")},
	"norwegian":  {stop: stopNorwegian, stem: snowballOf("norwegian")},
	"finnish":    {stop: stopFinnish, stem: snowballOf("finnish")},
	"hungarian":  {stop: stopHungarian, stem: snowballOf("hungarian")},
	"russian":    {stop: stopRussian, stem: snowballOf("russian")},
	"romanian":   {stop: stopRomanian, stem: snowballOf("romanian")},
	"turkish": {before: []tokenFilter{each(beforeApostrophe)}, after: []tokenFilter{each(lowerTurkish)},
		stop: stopTurkish, stem: snowballOf("turkish")},
	"irish": {before: []tokenFilter{elision("d m b")}, after: []tokenFilter{each(lowerIrish)}, stop: stopIrish,
		stem: snowballOf("irish")},
	"arabic":  {stop: stopArabic, stem: snowballOf("arabic")},
	"persian": {after: []tokenFilter{each(strings.ToLower), each(normalPersian)}, stop: stopPersian},
	"thai":    {},
}

// notHere are analyzers of the service that there are not here.
var notHere = "armenian basque bengali brazilian bulgarian catalan chinese czech galician greek hindi indonesian japanese korean kuromoji latvian lithuanian morfologik nori polish smartcn sorani ukrainian"

// Named returns one of the analyzers that have a name.
func Named(name string) (*Analyzer, error) {
	short, ok := strings.CutPrefix(name, "lucene.")
	a := &Analyzer{Name: name}
	switch {
	case !ok:
	case short == "standard":
		a.tokenize, a.filters = words(maxToken), []tokenFilter{each(strings.ToLower)}
		return a, nil
	case short == "simple":
		a.tokenize, a.filters = runs(maxToken, unicode.IsLetter), []tokenFilter{each(strings.ToLower)}
		return a, nil
	case short == "whitespace":
		a.tokenize = runs(maxToken, func(r rune) bool { return !unicode.IsSpace(r) })
		return a, nil
	case short == "keyword":
		a.tokenize, a.Keyword = whole, true
		return a, nil
	case short == "cjk":
		a.tokenize = words(maxToken)
		a.filters = []tokenFilter{each(func(s string) string { return strings.ToLower(norm.NFKC.String(s)) }), bigrams,
			stopFilter(strings.Fields(stopEnglish), false)}
		a.Graph = true
		return a, nil
	default:
		if l, ok := languages[short]; ok {
			a.tokenize, a.filters = words(maxToken), l.filters()
			if short == "persian" {
				a.charFilter = []charFilter{mapping(map[string]string{"\u200c": " "})}
			}
			return a, nil
		}
		for other := range strings.FieldsSeq(notHere) {
			if other == short {
				return nil, invalid("analyzer \"%s\" is not built into this deployment", name)
			}
		}
	}
	return nil, invalid("unknown analyzer: \"%s\"", name)
}

func (l language) filters() []tokenFilter {
	list := append([]tokenFilter(nil), l.before...)
	if l.after == nil {
		list = append(list, each(strings.ToLower))
	}
	list = append(list, l.after...)
	if l.stop != "" {
		list = append(list, stopFilter(strings.Fields(l.stop), false))
	}
	if l.stem != nil {
		list = append(list, each(l.stem))
	}
	return list
}

func snowballOf(name string) func(string) string {
	return func(s string) string { return stem(s, name) }
}

// elision takes articles off that an apostrophe joins to a word.
func elision(articles string) tokenFilter {
	set := map[string]bool{}
	for a := range strings.FieldsSeq(articles) {
		set[a] = true
	}
	return each(func(s string) string {
		i := strings.IndexAny(s, "'’")
		if i <= 0 || !set[strings.ToLower(s[:i])] {
			return s
		}
		_, rest, _ := strings.Cut(strings.ReplaceAll(s, "’", "'"), "'")
		return rest
	})
}

func beforeApostrophe(s string) string {
	if i := strings.IndexAny(s, "'’"); i >= 0 {
		return s[:i]
	}
	return s
}

func lowerTurkish(s string) string {
	return strings.ToLowerSpecial(unicode.TurkishCase, norm.NFC.String(s))
}

// lowerIrish sets off what is put before a capital: nAthair is n-athair.
func lowerIrish(s string) string {
	r := []rune(s)
	if len(r) > 1 && (r[0] == 'n' || r[0] == 't') && strings.ContainsRune("AEIOUÁÉÍÓÚ", r[1]) {
		s = string(r[0]) + "-" + string(r[1:])
	}
	return strings.ToLower(s)
}

func normalPersian(s string) string {
	return strings.NewReplacer("ي", "ی", "ى", "ی", "ك", "ک", "ة", "ه", "ۀ", "ه", "أ", "ا", "إ", "ا", "آ", "ا", "\u0640",
		"", "\u064b", "", "\u064c", "", "\u064d", "", "\u064e", "", "\u064f", "", "\u0650", "", "\u0651", "", "\u0652",
		"").Replace(s)
}

// bigrams joins characters of Chinese, Japanese and Korean in pairs.
func bigrams(list []Token) []Token {
	type piece struct {
		r          rune
		start, end int
	}
	var out []Token
	var run []piece
	flush := func() {
		for i := range run {
			switch {
			case i+1 < len(run):
				out = append(out, Token{string([]rune{run[i].r, run[i+1].r}), len(out), run[i].start, run[i+1].end})
			case len(run) == 1:
				out = append(out, Token{string(run[0].r), len(out), run[0].start, run[0].end})
			}
		}
		run = nil
	}
	for _, t := range list {
		r := []rune(t.Text)
		if len(r) == 0 || !unicode.In(r[0], unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			flush()
			t.Position = len(out)
			out = append(out, t)
			continue
		}
		if len(run) > 0 && run[len(run)-1].end != t.Start {
			flush()
		}
		width := (t.End - t.Start) / len(r)
		for i, c := range r {
			end := t.Start + (i+1)*width
			if i == len(r)-1 {
				end = t.End
			}
			run = append(run, piece{c, t.Start + i*width, end})
		}
	}
	flush()
	return out
}
