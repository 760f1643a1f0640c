package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"allium/bson"
)

// What people write in the shell is the same document in canonical Extended JSON.
func TestShell(t *testing.T) {
	for text, want := range map[string]string{
		`{find: 'goods', filter: {_id: ObjectId("0123456789abcdef01234567")}}`: `{"find":"goods","filter":{"_id":{"$oid":"0123456789abcdef01234567"}}}`,
		`{a: ISODate("2026-01-02T03:04:05Z"), b: new Date('2026-01-02')}`:      `{"a":{"$date":{"$numberLong":"1767323045000"}},"b":{"$date":{"$numberLong":"1767312000000"}}}`,
		`{a: ISODate("2026-01-02T03:04:05.678+01:00"), b: Date(5)}`:            `{"a":{"$date":{"$numberLong":"1767319445678"}},"b":{"$date":{"$numberLong":"5"}}}`,
		`{a: NumberLong("9007199254740993"), b: NumberInt(5), c: Long(-7)}`:    `{"a":{"$numberLong":"9007199254740993"},"b":{"$numberInt":"5"},"c":{"$numberLong":"-7"}}`,
		`{a: NumberDecimal('0.10'), b: Double(1)}`:                             `{"a":{"$numberDecimal":"0.10"},"b":{"$numberDouble":"1.0"}}`,
		`{a: .5, b: 2., c: +3, d: -.25, e: 1e3}`:                               `{"a":{"$numberDouble":"0.5"},"b":{"$numberDouble":"2.0"},"c":{"$numberInt":"3"},"d":{"$numberDouble":"-0.25"},"e":{"$numberDouble":"1000.0"}}`,
		`{a: [1, 'x', ], b: {c: null,},}`:                                      `{"a":[{"$numberInt":"1"},"x"],"b":{"c":null}}`,
		`{a: /^x\/[/]y/i, $b: -Infinity, c: NaN}`:                              `{"a":{"$regularExpression":{"pattern":"^x/[/]y","options":"i"}},"$b":{"$numberDouble":"-Infinity"},"c":{"$numberDouble":"NaN"}}`,
		`{a: UUID('00112233-4455-6677-8899-aabbccddeeff')}`:                    `{"a":{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}}`,
		`{a: BinData(0, "AQID"), b: Timestamp(5, 6), c: MinKey, d: MaxKey()}`:  `{"a":{"$binary":{"base64":"AQID","subType":"00"}},"b":{"$timestamp":{"t":5,"i":6}},"c":{"$minKey":1},"d":{"$maxKey":1}}`,
		`{'it\'s "x"': "\u00e9\x41\n\ud83d\ude00", 5: undefined}`:              `{"it's \"x\"":"éA\n😀","5":{"$undefined":true}}`,
		`{"a": {"$numberLong": "5"}, "b" : true}`:                              `{"a":{"$numberLong":"5"},"b":true}`,
	} {
		raw, err := document(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := extJSON(raw, true); string(got) != want || err != nil {
			t.Errorf("%s:\n%s, %v, want\n%s", text, got, err, want)
		}
	}
}

func TestShellRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{a: b}`:                        "at character 6: b is no value",
		`{a: ObjectId()}`:               "ObjectId has 0 arguments",
		`{a: ObjectId}`:                 "wants arguments",
		`{a: ISODate("yesterday")}`:     "no date",
		`{a: 'x`:                        "at character 5: the string has no end",
		`{a 1}`:                         "want a colon behind the key a",
		`{a: 1 b: 2}`:                   "want a comma",
		`{a: 1}}`:                       "behind the value",
		`{a: /x`:                        "no end",
		`{: 1}`:                         "a key is missing",
		`{a: 1-2}`:                      "no number",
		`{a: db.x.find()}`:              "db is no value",
		`{a: Timestamp(1, "x")}`:        "Timestamp",
		`{a: ObjectId("1")}`:            "",
		strings.Repeat("[", 100_000):    "too deep",
		`{a: "\u12"}`:                   "",
		`{a: ISODate("2026-01-02"}`:     "comma",
		"{}":                            "empty",
		`{a: BinData(300, "AQID")}`:     "BinData",
		`{'a': function() { return 1}}`: "function is no value",
	} {
		if raw, err := document(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, %v, want %q", text, raw, err, want)
		}
	}
}

// Extended JSON means the same whether it is taken for the shell's or not.
func TestShellTakesExtendedJSON(t *testing.T) {
	values := []string{`1`, `-2.5e3`, `"a\"\\\/\b\u00e9x"`, `true`, `null`, `{"$oid":"0123456789abcdef01234567"}`, `{"$date":"2026-01-02T03:04:05Z"}`, `{}`, `[]`}
	r := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) string
	value = func(depth int) string {
		if depth == 0 || r.IntN(3) == 0 {
			return values[r.IntN(len(values))]
		}
		var parts []string
		array := r.IntN(2) == 0
		for i := range r.IntN(4) {
			v := value(depth - 1)
			if !array {
				v = jsonString(string(rune('a'+i))+"\t\"") + " : " + v
			}
			parts = append(parts, v)
		}
		if array {
			return "[ " + strings.Join(parts, " ,") + "]"
		}
		return "{" + strings.Join(parts, ", ") + "\n}"
	}
	for range 1000 {
		text := `{"v":` + value(4) + `}`
		want, err := bson.ParseExtJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := shellJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, err := bson.ParseExtJSON([]byte(again)); string(got) != string(want) || err != nil {
			t.Fatalf("%s became %s: %v", text, again, err)
		}
	}
}

func FuzzShell(f *testing.F) {
	for _, text := range []string{`{a: 'x', b: ObjectId("0123456789abcdef01234567")}`, `{a: /x/i, b: [.5, -Infinity]}`, `{'\u00e9': new Date("2026-01-02")}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := shellJSON(text)
		if err != nil {
			return
		}
		// Its own output is the shell's, too, and stays the same.
		if again, err := shellJSON(first); again != first || err != nil {
			t.Errorf("%q became %q, and that %q: %v", text, first, again, err)
		}
	})
}
