package expr

import (
	"bytes"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func parseDoc(t testing.TB, text string) bson.Raw {
	t.Helper()
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return raw
}

// evaluate parses, optimizes and evaluates.
func evaluate(doc bson.Raw, e bson.RawValue, env *Env) (bson.RawValue, error) {
	parsed, err := Parse(e, NewScope(env))
	if err != nil {
		return missing, err
	}
	if parsed, err = Optimize(parsed, env); err != nil {
		return missing, err
	}
	return Eval(parsed, NewState(env).WithRoot(doc))
}

// TestOperators compares results by their text in messages and their types; an error is "code
// text".
func TestOperators(t *testing.T) {
	const doc = `{"i":5,"l":{"$numberLong":"5"},"d":2.5,"dec":{"$numberDecimal":"2.5"},"s":"Hello","u":"héllo","a":[3,1,2],"n":null,
		"dt":{"$date":{"$numberLong":"1583586123456"}},"ts":{"$timestamp":{"t":1583586123,"i":7}},"ad":[{"k":"b","v":1},{"k":"a","v":2}],
		"o":{"x":1,"a.b":2,"$p":3}}`
	for _, c := range []struct{ e, want string }{
		// Arithmetic.
		{`{"$add":["$i","$dec",1]}`, "decimal 8.5"},
		{`{"$add":["$d","$dec"]}`, "decimal 5.0"},
		{`{"$multiply":["$d","$dec"]}`, "decimal 6.250000000000000"},
		{`{"$subtract":["$l",{"$numberLong":"-9223372036854775808"}]}`, "double 9.22337e+18"},
		{`{"$divide":[1,0]}`, "2 can't $divide by zero"},
		{`{"$mod":[{"$numberDecimal":"-7.5"},2]}`, "decimal -1.5"},
		{`{"$round":["$d",{"$literal":null}]}`, "null null"},
		{`{"$trunc":[-123.456,1]}`, "double -123.4"},
		{`{"$toDouble":"1e-400"}`, "241 Failed to parse number '1e-400' in $convert with no onError value: Out of range"},
		{`{"$round":[{"$numberDecimal":"1E+3"},2]}`, "decimal 1000.00"},
		{`{"$pow":[{"$numberLong":"2"},10]}`, "long 1024"},
		{`{"$pow":[{"$numberDecimal":"2"},0.5]}`, "decimal 1.414213562373095048801688724209698"},
		{`{"$sqrt":-1}`, "28714 $sqrt's argument must be greater than or equal to 0"},
		{`{"$ln":0}`, "28766 $ln's argument must be a positive number, but is 0"},
		{`{"$sin":{"$numberDecimal":"0"}}`, "decimal 0"},
		{`{"$bitAnd":[12,10]}`, "int 8"},
		{`{"$bitOr":[12,{"$numberLong":"3"}]}`, "long 15"},
		{`{"$bitXor":[12,"$n"]}`, "null null"},
		{`{"$bitNot":0}`, "int -1"},
		{`{"$bitAnd":[1.5]}`, "14 $bitAnd only supports int and long operands."},
		// Strings.
		{`{"$concat":["$s","-","$u"]}`, `string "Hello-héllo"`},
		{`{"$concat":["$s","$n"]}`, "null null"},
		{`{"$split":["a-b-c","-"]}`, `array ["a", "b", "c"]`},
		{`{"$split":["a",""]}`, "40087 $split requires a non-empty separator"},
		{`{"$substrCP":["$u",1,2]}`, `string "él"`},
		{`{"$substrBytes":["$u",1,1]}`, "28657 $substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character."},
		{`{"$trim":{"input":" x\u00a0"}}`, `string "x"`},
		{`{"$regexFind":{"input":"$u","regex":"l+"}}`, `object {match: "ll", idx: 2, captures: []}`},
		{`{"$replaceAll":{"input":"a.a","find":".","replacement":""}}`, `string "aa"`},
		{`{"$indexOfCP":["$u","o"]}`, "int 4"},
		{`{"$indexOfBytes":["$u","o"]}`, "int 5"},
		// Arrays.
		{`{"$sortArray":{"input":"$a","sortBy":1}}`, "array [1, 2, 3]"},
		{`{"$sortArray":{"input":"$ad","sortBy":{"k":1}}}`, `array [{k: "a", v: 2}, {k: "b", v: 1}]`},
		{`{"$firstN":{"n":2,"input":"$a"}}`, "array [3, 1]"},
		{`{"$lastN":{"n":2,"input":"$a"}}`, "array [1, 2]"},
		{`{"$maxN":{"n":2,"input":"$a"}}`, "array [3, 2]"},
		{`{"$minN":{"n":9,"input":"$a"}}`, "array [1, 2, 3]"},
		{`{"$minN":{"n":0,"input":"$a"}}`, "5787908 'n' must be greater than 0, found 0"},
		{`{"$filter":{"input":"$a","cond":true,"limit":1}}`, "array [3]"},
		{`{"$zip":{"inputs":["$a",["x"]],"useLongestLength":true}}`, `array [[3, "x"], [1, null], [2, null]]`},
		{`{"$range":[5,0,-2]}`, "array [5, 3, 1]"},
		{`{"$slice":["$a",-2,1]}`, "array [1]"},
		{`{"$median":{"input":"$a","method":"approximate"}}`, "double 2"},
		{`{"$percentile":{"input":"$a","p":[0.5,1],"method":"approximate"}}`, "array [2, 3]"},
		// Objects.
		{`{"$getField":"s"}`, `string "Hello"`},
		{`{"$getField":{"field":"a.b","input":"$o"}}`, "int 2"},
		{`{"$getField":{"field":{"$literal":"$p"},"input":"$o"}}`, "int 3"},
		{`{"$setField":{"field":"z","input":{"x":1},"value":9}}`, "object {x: 1, z: 9}"},
		{`{"$unsetField":{"field":"x","input":{"x":1,"y":2}}}`, "object {y: 2}"},
		{`{"$objectToArray":{"a":1}}`, `array [{k: "a", v: 1}]`},
		{`{"$arrayToObject":[[["a",1],["b",2]]]}`, "object {a: 1, b: 2}"},
		// Dates.
		{`{"$dateAdd":{"startDate":"$dt","unit":"month","amount":12}}`, "date 2021-03-07T13:02:03.456Z"},
		{`{"$dateAdd":{"startDate":{"$date":"2020-01-31T00:00:00Z"},"unit":"month","amount":1}}`, "date 2020-02-29T00:00:00.000Z"},
		{`{"$dateSubtract":{"startDate":"$dt","unit":"day","amount":7,"timezone":"America/New_York"}}`, "date 2020-02-29T13:02:03.456Z"},
		{`{"$dateAdd":{"startDate":"$dt","unit":"day","amount":1,"timezone":"America/New_York"}}`, "date 2020-03-08T12:02:03.456Z"},
		{`{"$dateDiff":{"startDate":{"$date":"2020-12-31T23:00:00Z"},"endDate":{"$date":"2021-01-01T01:00:00Z"},"unit":"year"}}`, "long 1"},
		{`{"$dateDiff":{"startDate":{"$date":"2021-01-02T00:00:00Z"},"endDate":{"$date":"2021-01-03T00:00:00Z"},"unit":"week"}}`, "long 1"},
		{`{"$dateDiff":{"startDate":{"$date":"2021-01-03T00:00:00Z"},"endDate":{"$date":"2021-01-04T00:00:00Z"},"unit":"week","startOfWeek":"monday"}}`, "long 1"},
		{`{"$dateTrunc":{"date":"$dt","unit":"hour","binSize":6}}`, "date 2020-03-07T12:00:00.000Z"},
		{`{"$dateTrunc":{"date":"$dt","unit":"week"}}`, "date 2020-03-01T00:00:00.000Z"},
		{`{"$dateTrunc":{"date":"$dt","unit":"quarter"}}`, "date 2020-01-01T00:00:00.000Z"},
		{`{"$dateTrunc":{"date":"$dt","unit":"day","timezone":"+09:00"}}`, "date 2020-03-06T15:00:00.000Z"},
		{`{"$dateAdd":{"startDate":"$dt","unit":"eon","amount":1}}`, "9 unknown time unit value: eon"},
		{`{"$tsSecond":"$ts"}`, "long 1583586123"},
		{`{"$tsIncrement":"$ts"}`, "long 7"},
		{`{"$dateFromString":{"dateString":"15 June 2018, 14:57","timezone":"Europe/Paris"}}`, "date 2018-06-15T12:57:00.000Z"},
		{`{"$dateToString":{"date":"$dt","format":"%b %d","timezone":"UTC"}}`, `string "Mar 07"`},
		// Conversion.
		{`{"$toDate":"$ts"}`, "date 2020-03-07T13:02:03.000Z"},
		{`{"$convert":{"input":"12x","to":"int","onError":{"$concat":["bad ","$s"]}}}`, `string "bad Hello"`},
		{`{"$toInt":"12x"}`, "241 Failed to parse number '12x' in $convert with no onError value: Did not consume whole string."},
		// Conditions and variables.
		{`{"$ifNull":["$n","$zz",7]}`, "int 7"},
		{`{"$let":{"vars":{"x":"$i"},"in":{"$let":{"vars":{"x":{"$add":["$$x",1]}},"in":"$$x"}}}}`, "int 6"},
		{`{"$let":{"vars":{"CURRENT":"$o"},"in":"$x"}}`, "int 1"},
		{`{"$and":[{"$literal":false},{"$divide":[1,"$zz"]}]}`, "bool false"},
		{`{"$or":[{"$toInt":"$s"},true]}`, "bool true"},
		{`{"$switch":{"branches":[{"case":{"$eq":["$i",5]},"then":"five"}]}}`, `string "five"`},
		{`{"$lt":[{"$rand":{}},1]}`, "bool true"},
	} {
		v := parseDoc(t, `{"e":`+c.e+`}`).Lookup("e")
		got, err := evaluate(parseDoc(t, doc), v, &Env{Version: release.At(8, 0, 0)})
		text := typeName(got) + " " + Text(got)
		if err != nil {
			e := srverr.From(err)
			text = strings.TrimSpace(strings.Join([]string{itoa(e.Code), e.Msg}, " "))
		}
		if text != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.e, text, c.want)
		}
	}
}

// TestModTypes checks the type of a remainder, which until 7.2 is the dividend's where the divisor
// is a double without a fraction.
func TestModTypes(t *testing.T) {
	for _, tt := range []struct{ e, before, since string }{
		{`{"$mod": [{"$numberInt": "8"}, {"$numberDouble": "3.0"}]}`, "int 2", "double 2"},
		{`{"$mod": [{"$numberLong": "8"}, {"$numberDouble": "3.0"}]}`, "long 2", "double 2"},
		{`{"$mod": [{"$numberLong": "8"}, {"$numberDouble": "3.25"}]}`, "double 1.5", "double 1.5"},
		{`{"$mod": [{"$numberDouble": "8.0"}, {"$numberInt": "3"}]}`, "double 2", "double 2"},
		{`{"$mod": [{"$numberInt": "8"}, {"$numberLong": "3"}]}`, "long 2", "long 2"},
	} {
		v := parseDoc(t, `{"e":`+tt.e+`}`).Lookup("e")
		for _, at := range []Version{release.At(4, 4, 0), release.At(7, 0, 0), release.At(8, 0, 0), {}} {
			want := tt.since
			if !at.AtLeast(7, 2) {
				want = tt.before
			}
			got, err := evaluate(bson.Raw{5, 0, 0, 0, 0}, v, &Env{Version: at})
			if text := typeName(got) + " " + Text(got); err != nil || text != want {
				t.Errorf("%s in %v: %s, %v; want %s", tt.e, at, text, err, want)
			}
		}
	}
}

func itoa(n int32) string { return Text(bsondoc.Int32Value(n)) }

// TestVersions checks that operators are unknown in the versions that the table of features leaves
// out, and that the table says of each whether it is built.
func TestVersions(t *testing.T) {
	known := map[release.Kind]func(name string, v Version) bool{
		release.Expression:  func(name string, v Version) bool { return IsOperator(name, &Env{Version: v}) },
		release.Accumulator: func(name string, v Version) bool { return IsAccumulator(name, &Env{Version: v}) },
	}
	n := 0
	for _, f := range release.Features {
		is := known[f.Kind]
		if is == nil {
			continue
		}
		for _, name := range strings.Fields(f.Names) {
			n++
			built := f.State != release.NotBuilt
			if is(name, release.At(4, 2, 0)) || is(name, f.Since) != built || is(name, Version{}) != (built && f.Until == Version{}) {
				t.Errorf("%s since %v: %t in 4.2, %t then, %t in the newest", name, f.Since, is(name, release.At(4, 2, 0)), is(name, f.Since), is(name, Version{}))
			}
			if _, err := evaluate(nil, parseDoc(t, `{"e": {"`+name+`": 1}}`).Lookup("e"), &Env{Version: f.Since}); !built && !strings.Contains(err.Error(), "mongotest does not") {
				t.Errorf("%s, which is not built: %v", name, err)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names", n)
	}
}

// TestHash checks that values that compare as equal have equal hashes.
func TestHash(t *testing.T) {
	env := &Env{}
	doc := parseDoc(t, `{"a":[1,1.0,{"$numberLong":"1"},{"$numberDecimal":"1.0"},0,{"$numberDouble":"-0.0"},{"$numberDecimal":"0E+3"},
		"x",{"$symbol":"x"},{"y":1},{"y":1.0},[1],[1.0],{"$numberDouble":"NaN"},{"$numberDecimal":"NaN"},null]}`)
	all := bsondoc.Items(doc.Lookup("a"))
	for _, a := range all {
		for _, b := range all {
			if bson.Compare(a, b) == 0 && env.Hash(a) != env.Hash(b) {
				t.Errorf("%s %s and %s %s are equal, their hashes are not", typeName(a), Text(a), typeName(b), Text(b))
			}
		}
	}
}

// evaluatePlain is evaluate without Optimize.
func evaluatePlain(doc bson.Raw, e bson.RawValue, env *Env) (bson.RawValue, error) {
	parsed, err := Parse(e, NewScope(env))
	if err != nil {
		return missing, err
	}
	return Eval(parsed, NewState(env).WithRoot(doc))
}

// FuzzExpression parses and evaluates arbitrary documents: no panic, no endless loop, and the same
// result whether constants are computed before or not.
func FuzzExpression(f *testing.F) {
	norace.Skip(f, "thousands of expressions that share nothing")
	for _, seed := range []string{
		`{"e":{"$add":["$e",1]}}`, `{"e":{"$map":{"input":[1,2],"as":"x","in":{"$multiply":["$$x",2]}}}}`, `{"e":{"$dateToString":{"date":{"$date":"2020-01-01T00:00:00Z"},"format":"%Y"}}}`,
		`{"e":{"$dateFromString":{"dateString":"July 4th, 2017"}}}`, `{"e":{"$convert":{"input":"1.5","to":"decimal"}}}`, `{"e":{"$regexFindAll":{"input":"abc","regex":"."}}}`,
		`{"e":{"$pow":[{"$numberDecimal":"1E+6000"},{"$numberDecimal":"99999"}]}}`, `{"e":{"$round":[{"$numberDecimal":"1E-6000"},20]}}`, `{"e":{"$exp":{"$numberDecimal":"-1E+20"}}}`,
		`{"e":{"$sin":{"$numberDecimal":"1E+6000"}}}`, `{"e":{"$mod":[{"$numberDecimal":"1E+6000"},{"$numberDecimal":"3E-6000"}]}}`, `{"e":{"$dateAdd":{"startDate":{"$date":"2020-01-01T00:00:00Z"},"unit":"year","amount":{"$numberLong":"9223372036854775807"}}}}`,
		`{"e":{"$range":[0,20,3]}}`, `{"e":{"$reduce":{"input":{"$range":[0,60]},"initialValue":"x","in":{"$concat":["$$value","$$value"]}}}}`,
		`{"e":{"$dateTrunc":{"date":{"$date":"2020-01-01T00:00:00Z"},"unit":"week","binSize":{"$numberLong":"9223372036854775807"}}}}`, `{"e":{"$year":{"$date":{"$numberLong":"9223372036854775807"}}}}`,
		`{"e":{"$dateFromParts":{"year":2020,"second":{"$numberLong":"9223372036854775807"}}}}`, `{"e":{"$percentile":{"input":[1],"p":[0.5],"method":"approximate"}}}`,
	} {
		f.Add([]byte(parseDoc(f, seed)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := bson.Raw(data)
		if doc.Validate() != nil {
			return
		}
		for _, version := range []Version{release.At(4, 4, 0), release.At(8, 0, 0)} {
			for v := range doc.Values() {
				got, err := evaluate(doc, v, &Env{Version: version})
				if plain, plainErr := evaluatePlain(doc, v, &Env{Version: version}); err == nil && plainErr == nil && !strings.Contains(string(data), "$rand") &&
					!strings.Contains(string(data), "NOW") && !strings.Contains(string(data), "sample") && (got.Type != plain.Type || !bytes.Equal(got.Value, plain.Value)) {
					t.Errorf("%v is %s, and %s without constants computed before", v, Text(got), Text(plain))
				}
				if err == nil && got.Type != 0 {
					start, dst := bson.BeginDocument(nil)
					if err := bson.Raw(bson.EndDocument(bson.AppendRawValue(dst, "v", got), start)).Validate(); err != nil && !strings.Contains(err.Error(), "deeper") {
						t.Errorf("result is no BSON: %v", err)
					}
				}
			}
		}
	})
}

// TestOperandOrder has expressions whose operands a real 4.4 evaluates one by one: one that decides
// keeps those after it from failing, and one that is wrong fails before they do. "$s" is no number,
// so that converting it fails.
func TestOperandOrder(t *testing.T) {
	const bad = `{"$toInt":"$s"}`
	const failed = "241 Failed to parse number 'x' in $convert with no onError value: Did not consume whole string."
	doc := parseDoc(t, `{"s":"x","d":{"$date":"2020-01-01T00:00:00Z"},"big":1e20,"dec":{"$numberDecimal":"2"},"a":[1,2],"b":[2,1],"c":[3],"t":true,"n":null,"text":"abc","nan":{"$numberDouble":"NaN"}}`)
	for _, c := range []struct{ e, want string }{
		// Null ends it.
		{`{"$add":["$zz",` + bad + `]}`, "null null"},
		{`{"$multiply":["$n",` + bad + `]}`, "null null"},
		{`{"$concat":["$zz",` + bad + `]}`, "null null"},
		{`{"$concatArrays":["$zz",` + bad + `]}`, "null null"},
		{`{"$setUnion":["$zz",` + bad + `]}`, "null null"},
		{`{"$setIntersection":["$zz",` + bad + `]}`, "null null"},
		{`{"$indexOfArray":["$zz",` + bad + `]}`, "null null"},
		{`{"$indexOfBytes":["$zz",` + bad + `]}`, "null null"},
		{`{"$indexOfCP":["$zz",` + bad + `]}`, "null null"},
		{`{"$round":["$zz",` + bad + `]}`, "null null"},
		{`{"$trunc":["$zz",` + bad + `]}`, "null null"},
		{`{"$atan2":["$zz",` + bad + `]}`, "null null"},
		{`{"$atan2":["$s","$zz"]}`, "51044 $atan2 only supports numeric types, not string"},
		{`{"$atan2":["$big","$s"]}`, "51045 $atan2 only supports numeric types, not string"},
		{`{"$slice":["$zz",1,` + bad + `]}`, "null null"},
		{`{"$setEquals":["$a","$c",` + bad + `]}`, "bool false"},
		{`{"$zip":{"inputs":["$a","$b"],"defaults":[` + bad + `,1],"useLongestLength":true}}`, "array [[1, 2], [2, 1]]"},
		{`{"$ifNull":["$t",` + bad + `]}`, "bool true"},
		{`{"$and":["$n",` + bad + `]}`, "bool false"},
		// All of them are evaluated first.
		{`{"$subtract":["$zz",` + bad + `]}`, failed},
		{`{"$divide":["$zz",` + bad + `]}`, failed},
		{`{"$mod":["$zz",` + bad + `]}`, failed},
		{`{"$pow":["$zz",` + bad + `]}`, failed},
		{`{"$log":["$zz",` + bad + `]}`, failed},
		{`{"$split":["$zz",` + bad + `]}`, failed},
		{`{"$slice":["$zz",` + bad + `]}`, failed},
		{`{"$range":["$zz",` + bad + `]}`, failed},
		{`{"$arrayElemAt":["$zz",` + bad + `]}`, failed},
		{`{"$setDifference":["$zz",` + bad + `]}`, failed},
		{`{"$cmp":["$zz",` + bad + `]}`, failed},
		{`{"$in":["$zz",` + bad + `]}`, failed},
		{`{"$replaceAll":{"input":1,"find":` + bad + `,"replacement":"x"}}`, failed},
		{`{"$replaceOne":{"input":"$zz","find":"a","replacement":` + bad + `}}`, failed},
		{`{"$regexMatch":{"input":"$t","regex":{"$concat":["$s",{"$toUpper":"$a"}]}}}`, "16007 can't convert from BSON type array to String"},
		{`{"$regexFind":{"input":"$t","regex":"$s"}}`, "51104 $regexFind needs 'input' to be of type string"},
		// What is wrong fails before the next one is looked at.
		{`{"$add":["$t",` + bad + `]}`, "16554 $add only supports numeric or date types, not bool"},
		{`{"$add":["$d","$d","$zz"]}`, "16612 only one date allowed in an $add expression"},
		{`{"$multiply":["$big","$zz"]}`, "31109 Can't coerce out of range value 1e+20 to long"},
		{`{"$multiply":["$big",` + bad + `]}`, "31109 Can't coerce out of range value 1e+20 to long"},
		{`{"$multiply":["$dec","$big"]}`, "decimal 2.00000000000000E+20"},
		{`{"$range":["$t","$zz",` + bad + `]}`, "34443 $range requires a numeric starting value, found value of type: bool"},
		{`{"$slice":["$t",1,` + bad + `]}`, "28724 First argument to $slice must be an array, but is of type: bool"},
		{`{"$slice":["$a",1,-1000000]}`, "28729 Third argument to $slice must be positive: -1000000"},
		{`{"$round":["$t",` + bad + `]}`, "51081 $round only supports numeric types, not bool"},
		{`{"$indexOfCP":["$text","$t",` + bad + `]}`, "40094 $indexOfCP requires a string as the second argument, found: bool"},
		{`{"$indexOfBytes":["$text","b","$t",` + bad + `]}`, "40096 $indexOfBytesrequires an integral starting index, found a value of type: bool, with value: true"},
		{`{"$indexOfArray":["$a",` + bad + `,"$t"]}`, "40096 $indexOfArrayrequires an integral starting index, found a value of type: bool, with value: true"}, // what is searched comes last
		{`{"$indexOfArray":["$a",2,1]}`, "int 1"},
		{`{"$indexOfArray":["abc","$s"]}`, "50809 First operand of $indexOfArray must be an array. First argument is of type: string"}, // when it is optimized
		{`{"$mergeObjects":["$a",` + bad + `]}`, "40400 $mergeObjects requires object inputs, but input [1, 2] is of type array"},
		{`{"$setEquals":["$t",` + bad + `]}`, "17044 All operands of $setEquals must be arrays. One argument is of type: bool"},
		// Numbers that do not fit.
		{`{"$substrBytes":["$text","$nan",1]}`, "31109 Can't coerce out of range value nan to long"},
		{`{"$substrBytes":["$text",0,"$big"]}`, "31109 Can't coerce out of range value 1e+20 to long"},
		{`{"$subtract":["$d","$nan"]}`, "31109 Can't coerce out of range value nan to long"},
		// Constants of a sum are added first.
		{`{"$divide":[1,{"$let":{"vars":{},"in":0}}]}`, "16608 can't $divide by zero"},
		// The names of operands come before what they are.
		{`{"$dateToString":{"date":{"$nosuch":1},"nosuch":1}}`, "18534 Unrecognized argument to $dateToString: nosuch"},
		{`{"$dateFromParts":{"month":{"$nosuch":1}}}`, "40516 $dateFromParts requires either 'year' or 'isoWeekYear' to be present"},
	} {
		v := parseDoc(t, `{"e":`+c.e+`}`).Lookup("e")
		got, err := evaluate(doc, v, &Env{Version: release.At(4, 4, 0)})
		text := typeName(got) + " " + Text(got)
		if err != nil {
			e := srverr.From(err)
			text = itoa(e.Code) + " " + e.Msg
		}
		if text != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.e, text, c.want)
		}
	}
}

// TestSumsOfConstants holds $sum to adding constants before the document is known, which shows in
// the last digit.
func TestSumsOfConstants(t *testing.T) {
	doc := parseDoc(t, `{"a":1e16,"one":1.0,"list":[1,2]}`)
	for _, c := range []struct{ e, want string }{
		{`{"$sum":[1e16,"$one",1.0]}`, "1.0E+16"}, // each 1 is too small; both together are not
		{`{"$sum":["$a","$one",1.0]}`, "1.0000000000000002E+16"},
		{`{"$sum":["$list"]}`, "3"},
		{`{"$sum":["$list",4]}`, "4"},
		{`{"$sum":[{"$sum":["$list"]},4]}`, "7"}, // a single operand is a list
		{`{"$sum":[{"$sum":["$list",1]},4]}`, "5"},
		{`{"$max":[{"$max":["$list"]},1]}`, "2"},
	} {
		v := parseDoc(t, `{"e":`+c.e+`}`).Lookup("e")
		got, err := evaluate(doc, v, &Env{Version: release.At(4, 4, 0)})
		if err != nil || got.String() != c.want {
			t.Errorf("%s is %s, %v, want %s", c.e, got, err, c.want)
		}
	}
}

// TestDecimalsByName has what a real 4.4 computes of decimals, digit by digit and zero by zero.
func TestDecimalsByName(t *testing.T) {
	dec := func(text string) string { return `{"$numberDecimal":"` + text + `"}` }
	for _, c := range []struct{ e, want string }{
		{`{"$pow":[5,` + dec("2") + `]}`, "decimal 25.00000000000000000000000000000000"},
		{`{"$pow":[0,` + dec("2") + `]}`, "decimal 0E-6176"},
		{`{"$pow":[` + dec("-2.5") + `,1]}`, "decimal -2.500000000000000000000000000000000"},
		{`{"$pow":[7,` + dec("2.5") + `]}`, "decimal 129.6418142421649389345791719283237"},
		{`{"$pow":[-1,` + dec("2.5") + `]}`, "decimal NaN"},
		{`{"$log":[2147483647,` + dec("2.5") + `]}`, "decimal 8.595025038757057321807214516043504"},
		{`{"$log":[{"$numberDouble":"NaN"},` + dec("2.5") + `]}`, "double nan"},
		{`{"$ln":` + dec("1.50") + `}`, "decimal 0.4054651081081643819780131154643491"},
		{`{"$ln":` + dec("NaN") + `}`, "double nan"},
		{`{"$log10":` + dec("1E+3") + `}`, "decimal 3"},
		{`{"$log10":` + dec("5") + `}`, "decimal 0.6989700043360188047862611052755069"},
		{`{"$exp":` + dec("-2.5") + `}`, "decimal 0.08208499862389879516952867446715980"},
		{`{"$round":` + dec("1.5") + `}`, "decimal 2"},
		{`{"$round":` + dec("2.5") + `}`, "decimal 2"},
		{`{"$round":` + dec("1E+400") + `}`, "decimal 1.000000000000000000000000000000000E+400"},
		{`{"$round":` + dec("-Infinity") + `}`, "decimal -Infinity"},
		{`{"$round":[` + dec("1234.5678") + `,` + dec("2") + `]}`, "decimal 1234.57"},
		{`{"$round":[` + dec("1234.5678") + `,100]}`, "decimal 1234.567800000000000000000000000000"},
		{`{"$round":[1234.5678,` + dec("2") + `]}`, "double 1234.57"},
		{`{"$trunc":[` + dec("1234.5678") + `,-3]}`, "decimal 1E+3"},
		{`{"$trunc":[` + dec("1234.5678") + `,-20]}`, "decimal 0E+20"},
		{`{"$trunc":` + dec("-0") + `}`, "decimal -0"},
		{`{"$trunc":` + dec("9.999999999999999999999999999999999E+6144") + `}`, "decimal 9.999999999999999999999999999999999E+6144"},
	} {
		v := parseDoc(t, `{"e":`+c.e+`}`).Lookup("e")
		got, err := evaluate(nil, v, &Env{Version: release.At(4, 4, 0)})
		if text := typeName(got) + " " + Text(got); err != nil || text != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.e, text, err, c.want)
		}
	}
}
