package pipeline

import (
	"strings"
	"testing"

	"allium/mongotest/internal/expr"
)

func TestMinMaxScaler(t *testing.T) {
	const numbers = `[{"_id":1,"a":1},{"_id":2,"a":5},{"_id":3,"a":13},{"_id":4,"a":21}]` // the manual's example
	for _, c := range []struct{ function, docs, want string }{
		{`"$minMaxScaler":"$a"`, numbers, "{s: 0} {s: 0.2} {s: 0.6} {s: 1}"},
		{`"$minMaxScaler":{"input":"$a","min":0,"max":100}`, numbers, "{s: 0} {s: 20} {s: 60} {s: 100}"},
		{`"$minMaxScaler":{"input":{"$multiply":["$a",-1]},"min":-1}`, numbers, "{s: 1} {s: 0.6} {s: -0.2} {s: -1}"},
		{`"$minMaxScaler":{"$add":["$a",7]}`, numbers, "{s: 0} {s: 0.2} {s: 0.6} {s: 1}"},
		{`"$minMaxScaler":"$a","window":{"documents":[-1,0]}`, numbers, "{s: 0} {s: 1} {s: 1} {s: 1}"},
		{`"$minMaxScaler":"$a","window":{"documents":["unbounded","current"]}`, numbers, "{s: 0} {s: 1} {s: 1} {s: 1}"},
		{`"$minMaxScaler":"$a","window":{"documents":[1,2]}`, numbers[:strings.Index(numbers, `,{"_id":3`)] + "]", "{s: 0} {s: null}"},
		{`"$minMaxScaler":{"input":"$a","min":3,"max":4}`, `[{"_id":1,"a":2},{"_id":2,"a":2}]`, "{s: 3} {s: 3}"},
		{`"$minMaxScaler":"$a"`, `[]`, ""},

		{`"$minMaxScaler":"$a"`, `[{"_id":1,"a":1},{"_id":2}]`, "14 PlanExecutor error during aggregation :: caused by :: " +
			"$minMaxScaler only supports numeric types, not missing"},
		{`"$minMaxScaler":"$a"`, `[{"_id":1,"a":"x"}]`, "14 PlanExecutor error during aggregation :: caused by :: " +
			"$minMaxScaler only supports numeric types, not string"},
		{`"$minMaxScaler":{"min":1}`, numbers, "9 $minMaxScaler requires an 'input' expression"},
		{`"$minMaxScaler":{"input":"$a","x":1}`, numbers, "9 $minMaxScaler found an unknown argument: x"},
		{`"$minMaxScaler":{"input":"$a","max":"$a"}`, numbers, `9 'max' of $minMaxScaler must be a constant number, but found "$a"`},
		{`"$minMaxScaler":{"input":"$a","min":2,"max":1}`, numbers, "9 'min' of $minMaxScaler must be less than 'max'"},
		{`"$minMaxScaler":{"input":"$a","min":{"$numberDouble":"NaN"}}`, numbers, "9 'min' of $minMaxScaler must be less than 'max'"},
	} {
		stages := `[{"$setWindowFields":{"sortBy":{"_id":1},"output":{"s":{` + c.function + `}}}},{"$project":{"_id":0,"s":1}}]`
		if got := runText(t, stages, c.docs, expr.Version{Major: 8, Minor: 2}); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.function, got, c.want)
		}
	}
}
