package fts

import (
	"slices"
	"testing"

	"allium/bson"
)

// The examples that the algorithm's author published.
func TestStem(t *testing.T) {
	for want, words := range map[string][]string{
		"consign":     {"consign", "consigned", "consigning", "consignment"},
		"consist":     {"consist", "consisted", "consistency", "consistent", "consistently", "consisting", "consists"},
		"consol":      {"consolation", "consolations", "console", "consoled", "consoles", "consoling", "consolingly", "consols"},
		"consolatori": {"consolatory"}, "consolid": {"consolidate", "consolidated", "consolidating"},
		"conspicu": {"conspicuous", "conspicuously"}, "conspiraci": {"conspiracy"}, "conspir": {"conspirator", "conspirators", "conspire", "conspired", "conspiring"},
		"constabl": {"constable", "constables"}, "constanc": {"constance", "constancy"}, "constant": {"constant"},
		"knackeri": {"knackeries"}, "knave": {"knave", "knaves"}, "knavish": {"knavish"}, "knead": {"kneaded", "kneading"}, "knee": {"knee", "knees"},
		"kneel": {"kneel", "kneeled", "kneeling", "kneels"}, "knife": {"knife"}, "knight": {"knight", "knightly", "knights"}, "knit": {"knit", "knits", "knitted", "knitting"},
		"knive": {"knives"}, "knocker": {"knocker", "knockers"},
		"run": {"running", "runs"}, "generous": {"generously"}, "communiti": {"communities"}, "tie": {"ties", "tie", "tying"}, "cri": {"cries", "cry"}, "by": {"by"}, "say": {"say"},
		"hop": {"hopping"}, "hope": {"hoping", "hoped"}, "luxuri": {"luxuriate"}, "gas": {"gas"}, "this": {"this"}, "proceed": {"proceeding", "proceeds"}, "bed": {"bed"}, "sing": {"sing"},
		"ration": {"rational"}, "relat": {"relational", "relate", "relates"}, "ski": {"skis"}, "beauti": {"beautiful", "beauty"}, "youth": {"youth", "youthful"}, "bias": {"bias"},
	} {
		for _, w := range words {
			if got := stem(w, "english"); got != want {
				t.Errorf("%s: %s, want %s", w, got, want)
			}
		}
	}
}

// Words of the sample vocabularies on snowballstem.org.
func TestStemLanguages(t *testing.T) {
	seen := map[string]bool{"none": true}
	for _, c := range []struct{ language, word, want string }{
		{"danish", "undersøgelse", "undersøg"}, {"dutch", "lichamelijkheden", "licham"}, {"english", "consistently", "consist"},
		{"finnish", "edeltäjien", "edeltäj"}, {"french", "continuellement", "continuel"}, {"german", "aufeinanderfolgende", "aufeinanderfolg"},
		{"hungarian", "babakocsijáért", "babakocs"}, {"italian", "abbandonata", "abbandon"}, {"norwegian", "havnemyndighetene", "havnemynd"},
		{"portuguese", "quilométricas", "quilométr"}, {"romanian", "abilitate", "abil"}, {"russian", "важнейшими", "важн"},
		{"spanish", "cheques", "chequ"}, {"swedish", "jaktkarlarna", "jaktkarl"}, {"turkish", "kitaplar", "kitap"}, {"none", "running", "running"},
	} {
		seen[c.language] = true
		if got := stem(c.word, c.language); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.word, c.language, got, c.want)
		}
	}
	for _, language := range languages {
		if !seen[language] {
			t.Errorf("%s is not tested", language)
		}
		if (stemmers[language] == nil) != (language == "none") {
			t.Errorf("%s: no stemmer", language)
		}
	}
}

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		text, language string
		f              fold
		want           []string
	}{
		{"The quick, BROWN foxes!", "english", fold{}, []string{"quick", "brown", "fox"}},
		{"don't O'Reilly's pre-market", "english", fold{}, []string{"o'reilli", "pre", "market"}},
		{"l'été été", "french", fold{}, []string{"l", "ete", "ete"}},
		{"Été", "french", fold{keepCase: true}, []string{"Ete"}},
		{"Häuser, Haus", "german", fold{}, []string{"haus", "haus"}},
		{"continué, continue", "french", fold{}, []string{"continu", "continu"}},
		{"ВАЖНАЯ", "russian", fold{}, []string{"важн"}},
		{"Häuser", "none", fold{}, []string{"hauser"}},
		{"Été", "none", fold{keepMarks: true}, []string{"été"}},
		{"the the", "none", fold{}, []string{"the", "the"}},
		{" .;! ", "english", fold{}, nil},
	} {
		if got := terms(c.text, c.language, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%q in %s: %q, want %q", c.text, c.language, got, c.want)
		}
	}
}

func doc(t *testing.T, json string) bson.Raw {
	t.Helper()
	d, err := bson.ParseExtJSON([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMatch(t *testing.T) {
	index := NewIndex(doc(t, `{"weights": {"s": 1, "sub.t": 3}, "default_language": "english", "language_override": "lang"}`))
	docs := []bson.Raw{
		doc(t, `{"s": "the quick brown fox"}`),
		doc(t, `{"s": ["Foxes run", "slowly"], "u": "coffee"}`),
		doc(t, `{"sub": [{"t": "Café société"}, {"t": "running the cafe", "lang": "none"}]}`),
		doc(t, `{"s": 5}`),
	}
	for _, c := range []struct {
		q    Query
		want []int
	}{
		{Query{Search: "fox"}, []int{0, 1}},
		{Query{Search: "FOXES quick"}, []int{0, 1}},
		{Query{Search: "fox -brown"}, []int{1}},
		{Query{Search: "-brown"}, nil},
		{Query{Search: "fox -\"quick brown\""}, []int{1}},
		{Query{Search: "\"quick brown\" run"}, []int{0}},
		{Query{Search: "\"uick bro\" quick"}, []int{0}},
		{Query{Search: "coffee"}, nil},
		{Query{Search: "cafe"}, []int{2}},
		{Query{Search: "café", DiacriticSensitive: true}, []int{2}},
		{Query{Search: "société", DiacriticSensitive: true}, []int{2}},
		{Query{Search: "societe", DiacriticSensitive: true}, nil},
		{Query{Search: "Foxes", CaseSensitive: true}, []int{1}},
		{Query{Search: "Slowly", CaseSensitive: true}, nil},
		{Query{Search: "run"}, []int{1}},
		{Query{Search: "running", Language: "none"}, []int{2}},
		{Query{Search: "the"}, nil},
		{Query{Search: "pre-fox"}, []int{0, 1}},
		{Query{Search: ""}, nil},
	} {
		s := index.Search(&c.q)
		var got []int
		for i, d := range docs {
			if s.Match(d) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.q, got, c.want)
		}
	}
}

// Scores that the server's manual and its published tests show.
func TestScore(t *testing.T) {
	index := NewIndex(doc(t, `{"weights": {"a": 1, "b": 10}}`))
	for _, c := range []struct {
		doc, search string
		want        float64
	}{
		{`{"a": "Coffee Shopping"}`, "coffee", 0.75},
		{`{"a": "coffee"}`, "coffee", 1}, // its stem is shorter
		{`{"a": "Tea"}`, "tea", 1.1},
		{`{"a": "coffee tea milk"}`, "coffee", 0.5/3 + 0.5},
		{`{"b": "Coffee Shopping"}`, "coffee", 7.5},
		{`{"a": "tea coffee", "b": "coffee tea"}`, "coffee tea", 16.5},
		{`{"a": "coffee coffee"}`, "coffee", 1.5},
		{`{"a": "x"}`, "coffee", 0},
	} {
		if got := index.Search(&Query{Search: c.search}).Score(doc(t, c.doc)); got != c.want {
			t.Errorf("%s in %s: %v, want %v", c.search, c.doc, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	index := NewIndex(doc(t, `{"weights": {"s": 1, "sub.t": 3}}`))
	for _, c := range []struct {
		doc string
		bad bool
	}{
		{`{"s": "x", "language": "fr"}`, false},
		{`{"s": "x", "language": "klingon"}`, true},
		{`{"s": "x", "language": 1}`, true},
		{`{"sub": {"t": "x", "language": "klingon"}}`, true},
		{`{"other": {"language": "klingon"}}`, false},
	} {
		if err := index.Check(doc(t, c.doc)); (err != nil) != c.bad {
			t.Errorf("%s: %v", c.doc, err)
		}
	}
}

// Whatever is searched for, nothing panics, and a score is positive exactly for the documents that
// have a word.
func FuzzSearch(f *testing.F) {
	f.Add("the quick -brown \"fox jumps\"", "quick fox", "english")
	f.Add("-\"", "é", "french")
	for name := range languages {
		f.Add("häuser \xff важнейшими", "İstanbul'un babakocsijáért", name)
	}
	f.Fuzz(func(t *testing.T, search, text, language string) {
		if _, ok := Language(language); !ok {
			language = "none"
		}
		index := NewIndex(doc(t, `{"weights": {"$**": 1}, "default_language": "`+language+`"}`))
		at, d := bson.BeginDocument(nil)
		d = bson.EndDocument(bson.AppendString(d, "s", text), at)
		s := index.Search(&Query{Search: search})
		if s.Match(d) && s.Score(d) <= 0 {
			t.Fatalf("%q matches %q without a score", search, text)
		}
	})
}
