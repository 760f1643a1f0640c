package expr

import (
	"fmt"
	"strings"
	"testing"

	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// What differs since server 8.1, as a server of 8.2 has it: a result, or the code of an error.
// before is what 7.0 has, nothing where it is not known.
func TestExpressionsSince81(t *testing.T) {
	const doc = `{"s": 5, "a": [1, 2], "n": null, "nan": {"$numberDecimal": "-NaN"}, "k": [{"k": "a\u0000b", "v": 1}],
		"t": {"$date": {"$numberLong": "1000"}}, "min": {"$date": {"$numberLong": "-9223372036854775808"}},
		"d": {"$numberDouble": "NaN"}, "$f": [{"$a": 2}, {"$a": 1}], "f": [{"$a": 2}, {"$a": 1}]}`
	dec := func(s string) string { return `{"$numberDecimal": "` + s + `"}` }
	for _, tt := range []struct{ e, want, before string }{
		// Constants that are no sets are refused before anything is evaluated.
		{`{"$setEquals": [1, "$s"]}`, "5887502", "17044"},
		{`{"$setEquals": [[1], [2], {"$add": [1, 2]}]}`, "5887502", "false"},
		{`{"$setEquals": [null, null]}`, "5887502", ""},
		{`{"$setEquals": ["$s", [1]]}`, "17044", "17044"},
		{`{"$setIsSubset": ["$s", [1]]}`, "17046", "17310"},

		{`{"$pow": [` + dec("0") + `, "$nan"]}`, dec("NaN"), ""},

		// A decimal makes decimals of 15 digits of doubles.
		{`{"$add": [1.5, ` + dec("2.5") + `]}`, dec("4.00000000000000"), dec("4.0")},
		{`{"$add": [` + dec("1.5") + `, 2.5, {"$toLong": 3}]}`, dec("7.00000000000000"), dec("7.0")},
		{`{"$add": [` + dec("9E+6144") + `, ` + dec("-9E+6144") + `]}`, dec("0E+6111"), dec("0")},
		{`{"$add": [1, ` + dec("2.5") + `]}`, dec("3.5"), dec("3.5")},
		{`{"$add": ["$t", 2.5]}`, `{"$date":"1970-01-01T00:00:01.003Z"}`, `{"$date":"1970-01-01T00:00:01.002Z"}`},
		{`{"$add": ["$t", -0.5]}`, `{"$date":"1970-01-01T00:00:00.999Z"}`, ""},
		{`{"$add": ["$t", ` + dec("1.5") + `]}`, `{"$date":"1970-01-01T00:00:01.002Z"}`, ""},
		{`{"$add": ["$t", ` + dec("NaN") + `]}`, "15", ""},
		{`{"$add": ["$t", ` + dec("Infinity") + `]}`, "15", ""},
		{`{"$subtract": ["$t", "$d"]}`, "15", "31109"},

		// A logarithm to a base is a quotient of two, of which that of 1 is 0.
		{`{"$log": [` + dec("1000") + `, 10]}`, dec("3.000000000000000000000000000000000"), dec("3")},
		{`{"$log": [` + dec("64") + `, 2]}`, dec("5.999999999999999999999999999999999"), dec("6")},
		{`{"$log": [` + dec("100") + `, 10]}`, dec("2"), dec("2")},
		{`{"$ln": ` + dec("1.0") + `}`, dec("0"), dec("0")},
		{`{"$log10": ` + dec("1") + `}`, dec("0"), dec("0")},

		// Branches that are never taken are not computed.
		{`{"$switch": {"branches": [{"case": false, "then": {"$divide": [1, 0]}}], "default": 1}}`, "1", "2"},
		{`{"$switch": {"branches": [{"case": true, "then": {"$divide": [1, 0]}}], "default": 1}}`, "2", "2"},
		{`{"$sigmoid": {}}`, "14", ""},

		// The name of a field is a constant as it is written.
		{`{"$setField": {"field": {"$concat": ["a", "b"]}, "input": {}, "value": 1}}`, "4161106", `{"ab":1}`},
		{`{"$setField": {"field": {"a": 1}, "input": {}, "value": 1}}`, "4161106", "4161107"},
		{`{"$setField": {"field": {}, "input": {}, "value": 1}}`, "4161107", "4161107"},
		{`{"$setField": {"field": {"$literal": "x"}, "input": {}, "value": 1}}`, `{"x":1}`, `{"x":1}`},
		{`{"$unsetField": {"field": "$a", "input": {}}}`, "4161108", "4161106"},
		{`{"$unsetField": {"field": "a\u0000b", "input": {}}}`, "9534700", ""},
		{`{"$arrayToObject": "$k"}`, "4940401", "4940401"},
		{`{"$arrayToObject": [[["a\u0000", 1]]]}`, "4940400", "4940400"},

		{`{"$sortArray": {"input": "$f", "sortBy": {"$a": 1}}}`, `[{"$a":1},{"$a":2}]`, "16410"},
		{`{"$sortArray": {"input": "$f", "sortBy": {"a.": 1}}}`, "40353", "40353"},

		// Dates.
		{`{"$toDate": "\u00002024-06-15T12:30:45Z\u00a0"}`, `{"$date":"2024-06-15T12:30:45Z"}`, "241"},
		{`{"$dateFromString": {"dateString": "2017-02-08T12:00:00+05:00", "timezone": "UTC"}}`,
			`{"$date":"2017-02-08T07:00:00Z"}`, "241"},
		{`{"$dateFromString": {"dateString": "2017-02-08T12:00:00+05:00", "timezone": "Europe/Paris"}}`, "241", "241"},
		{`{"$dateAdd": {"startDate": "$t", "unit": "month", "amount": 30000000000}}`, "5976500", "5166406"},
		{`{"$dateTrunc": {"date": "$t", "unit": "hour", "binSize": 2562047788016999}}`, "5439002", "5439006"},
		{`{"$dateTrunc": {"date": {"$date": {"$numberLong": "86400001"}}, "unit": "day", "startOfWeek": null}}`,
			`{"$date":"1970-01-02T00:00:00Z"}`, "null"},
		{`{"$dateTrunc": {"date": "$t", "unit": "day", "startOfWeek": null}}`, "null", "null"},
		{`{"$dateTrunc": {"date": {"$date": {"$numberLong": "1"}}, "unit": "week", "startOfWeek": null}}`, "null", "null"},
		{`{"$isoWeekYear": "$min"}`, `-292275055`, `-292275055`},
		{`{"$isoWeek": "$min"}`, `19`, `19`},

		// Texts.
		{`{"$toDecimal": "12345678901234567890123456789012345"}`, dec("1.234567890123456789012345678901234E+34"), "241"},
		{`{"$toDecimal": "1.00000000000000000000000000000000099"}`, dec("1.000000000000000000000000000000000"), "241"},
		{`{"$toDecimal": "-0.000123456789012345678901234567890123456e-2"}`,
			dec("-0.000001234567890123456789012345678901234"), "241"},
		{`{"$toDecimal": "1E+6145"}`, "241", "241"},
		{`{"$toDecimal": "1` + strings.Repeat("0", 34) + `E+6112"}`, "241", "241"},
		{`{"$toDecimal": "1` + strings.Repeat("0", 40) + `x"}`, "241", "241"},
		{`{"$toString": {"$binary": {"base64": "aGVsbG8=", "subType": "02"}}}`, `"BQAAAGhlbGxv"`, ""},
		{`{"$regexMatch": {"input": "a", "regex": "` + strings.Repeat("a", 16385) + `"}}`, "51111", "false"},
		{`{"$regexMatch": {"input": "a", "regex": "` + strings.Repeat("a", 16384) + `"}}`, "false", "false"},
		{`{"$strLenBytes": {"$replaceAll": {"input": "` + strings.Repeat("a", 5000) + `", "find": "a", "replacement": "` +
			strings.Repeat("b", 4000) + `"}}}`, "16493", "16493"},
	} {
		for v, want := range map[release.Version]string{release.At(8, 2, 4): tt.want, release.At(7, 0, 0): tt.before} {
			if want == "" {
				continue
			}
			env := &Env{Version: v}
			got, err := evaluate(parseDoc(t, doc), parseDoc(t, `{"e": `+tt.e+`}`).Lookup("e"), env)
			shown := got.String()
			if err != nil {
				shown = fmt.Sprint(srverr.CodeOf(err))
			}
			if shown != strings.ReplaceAll(want, ": ", ":") {
				t.Errorf("%.120s is %.200s (%v) at %v, want %s", tt.e, shown, err, v, want)
			}
		}
	}
}

// $$NOW and $$CLUSTER_TIME where a command has none, or none of the second.
func TestTimesThatAreNot(t *testing.T) {
	v := release.At(8, 2, 4)
	for _, tt := range []struct {
		name string
		env  Env
		want string
	}{
		{"$$NOW", Env{Version: v}, "date"},
		{"$$NOW", Env{Version: v, NoTimes: true}, "51144"},
		{"$$CLUSTER_TIME", Env{Version: v, NoTimes: true, NoClusterTime: true}, "51144"},
		{"$$CLUSTER_TIME", Env{Version: v, NoClusterTime: true}, "10071200"},
		{"$$CLUSTER_TIME", Env{Version: v}, "timestamp"},
		{"$$CLUSTER_TIME", Env{Version: release.At(7, 0, 0)}, "51144"},
		{"$$NOW", Env{Version: v, NoClusterTime: true}, "date"},
	} {
		got, err := evaluate(parseDoc(t, `{}`), parseDoc(t, `{"e": "`+tt.name+`"}`).Lookup("e"), &tt.env)
		shown := typeName(got)
		if err != nil {
			shown = fmt.Sprint(srverr.CodeOf(err))
		}
		if shown != tt.want {
			t.Errorf("%s with %+v is %s, want %s", tt.name, tt.env, shown, tt.want)
		}
	}
}
