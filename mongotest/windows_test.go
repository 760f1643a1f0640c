package mongotest_test

import (
	"strings"
	"testing"
)

// across is a $setWindowFields with one output.
func across(sortBy, output string) string {
	return staged(`{"$setWindowFields": {` + sortBy + `"output": {"r": {` + output + `}}}}, {"$project": {"_id": 0, "r": 1}}`)
}

// TestWindowRules asks what the manual and others' functional tests say of windows, and of the
// stages that are made of them.
func TestWindowRules(t *testing.T) {
	const (
		three    = `[{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 3}]`
		decimals = `[{"_id": {"$numberDecimal": "0.7"}, "x": 1}, {"_id": {"$numberDecimal": "0.8"}, "x": 2}]`
		longs    = `[{"_id": {"$numberLong": "9007199254740992"}, "x": 1}, {"_id": {"$numberLong": "9007199254740993"}, "x": 2}]`
		dates    = `[{"_id": {"$date": "2021-01-31T00:00:00Z"}, "x": 1}, {"_id": {"$date": "2021-02-28T00:00:00Z"}, "x": 2}]`
		byID     = `"sortBy": {"_id": 1}, `
		only     = `9: 'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field`
	)
	densify := func(options string) string {
		return staged(`{"$densify": {"field": "v", ` + options + `}}, {"$project": {"_id": 0}}`)
	}
	list := []sibling{
		// What is null was not given; an empty sortBy was.
		{"5.0", three, across(`"sortBy": null, `, `"$sum": "$x"`), `{"r":6} {"r":6} {"r":6}`},
		{"8.0", three, across(`"sortBy": {}, `, `"$sum": "$x", "window": {"documents": [-1, 0]}`), `{"r":1} {"r":3} {"r":5}`},
		{"8.0", three, across(`"sortBy": null, `, `"$sum": "$x", "window": {"documents": [-1, 0]}`), `5339901: Document-based bounds require a sortBy`},
		{"8.0", three, staged(`{"$setWindowFields": {"output": null}}`), `40414: BSON field '$setWindowFields.output' is missing but a required field`},
		{"8.0", three, across(`"sortBy": {}, `, `"$rank": {}`), `5371602: $rank must be specified with a top level sortBy expression with exactly one element`},

		// A window has documents, or a range that may have a unit.
		{"5.0", three, across(byID, `"$sum": "$x", "window": {"documents": [-1, 0], "range": [-1, 0]}`), only},
		{"8.0", three, across(byID, `"$sum": "$x", "window": {"range": [-1, 0], "documents": [-1, 0]}`), only},
		{"8.0", three, across(byID, `"$sum": "$x", "window": {"documents": [-1, 0], "unit": "day"}`), only},
		{"8.0", three, across(byID, `"$sum": "$x", "window": {"unit": "day"}`), `9: 'window' field that specifies 'unit' must also specify range-based bounds`},
		{"8.0", dates, across(byID, `"$sum": "$x", "window": {"range": [-1, 0], "unit": "fortnight"}`), `9: unknown time unit value: fortnight`},
		{"8.0", dates, across(byID, `"$sum": "$x", "window": {"range": [-1, 0], "unit": 1}`), `9: 'unit' must be a string`},
		{"8.0", dates, across(byID, `"$sum": "$x", "window": {"range": [-1, 0], "unit": null}`), `9: 'unit' must be a string`},
		{"8.0", dates, across(byID, `"$sum": "$x", "window": {"range": [-1.5, 0], "unit": "hour"}`), `9: With 'unit', range-based bounds must be an integer`},
		{"8.0", dates, across(byID, `"$sum": "$x", "window": {"range": [-1.0, 0], "unit": "month"}`), `{"r":1} {"r":3}`},
		{"8.0", three, across(`"sortBy": {"_id": -1}, `, `"$sum": "$x", "window": {"range": [-1, 0]}`), `5339902: Range-based bounds require sortBy a single, ascending field`},
		{"8.2", three, across(`"sortBy": {"_id": -1}, `, `"$sum": "$x", "window": {"range": [-1, 0]}`), `8947401: Range-based bounds require sortBy a single, ascending field`},

		// Bounds are measured in the numbers' own types.
		{"8.0", decimals, across(byID, `"$sum": "$x", "window": {"range": [-0.1, 0]}`), `{"r":1} {"r":3}`},
		{"8.0", longs, across(byID, `"$sum": "$x", "window": {"range": [0, 0]}`), `{"r":1} {"r":2}`},
		{"8.0", `[{"_id": {"$numberDouble": "NaN"}, "x": 1}, {"_id": 2, "x": 2}]`, across(byID, `"$sum": "$x", "window": {"range": [-1, 0]}`), `{"r":1} {"r":2}`},
		{"8.0", `[{"_id": {"$numberDouble": "-Infinity"}, "x": 1}, {"_id": 2, "x": 2}]`, across(byID, `"$sum": "$x", "window": {"range": [-1, 1]}`), `{"r":1} {"r":2}`},

		// What the functions need.
		{"8.0", three, across(byID, `"$derivative": {"input": "$x"}`), `9: $derivative requires explicit window bounds`},
		{"8.0", three, across(byID, `"$integral": {"input": "$x"}`), `{"r":4.0} {"r":4.0} {"r":4.0}`},
		{"8.0", three, across(``, `"$derivative": {"input": "$x"}, "window": {}`), `9: $derivative requires a sortBy`},
		{"8.0", three, across(``, `"$integral": {"input": "$x"}`), `9: $integral requires a sortBy`},
		{"8.0", three, across(`"sortBy": {"_id": 1, "x": 1}, `, `"$integral": {"input": "$x"}`), `9: $integral requires a non-compound sortBy`},
		{"8.0", three, across(byID, `"$integral": {"input": "$x", "unit": "month"}`), `5490710: unit must be 'week' or smaller`},
		{"8.0", three, across(byID, `"$integral": {"input": "$x", "unit": "eon"}`), `9: unknown time unit value: eon`},
		{"8.0", three, across(``, `"$shift": {"output": "$x", "by": 1}`), `9: $shift requires a sortBy`},
		{"8.0", three, across(``, `"$expMovingAvg": {"input": "$x", "N": 2}`), `9: $expMovingAvg requires a sortBy`},
		{"8.0", three, across(byID, `"$expMovingAvg": {"input": "$x", "N": 2, "alpha": 0.5}`),
			`9: $expMovingAvg must have exactly one of the following sets of arguments: {input: ..., N: ...} or {input: ..., alpha: ...}`},
		{"8.0", three, across(``, `"$linearFill": "$x"`), `605001: $linearFill must be specified with a top level sortBy expression with exactly one element`},
		{"8.0", `[{"_id": 1, "t": 1, "x": 1}, {"_id": 2, "t": 1}, {"_id": 3, "t": 2, "x": 3}]`, across(`"sortBy": {"t": 1}, `, `"$linearFill": "$x"`),
			`6050106: PlanExecutor error during aggregation :: caused by :: There can be no repeated values in the sort field`},

		// $densify and $fill.
		{"7.0", `[{"v": 5}]`, densify(`"range": {"step": 1, "bounds": [10, 10]}`), `{"v":5} {"v":10}`},
		{"8.0", `[{"v": 5}]`, densify(`"range": {"step": 1, "bounds": [10, 10]}`), `{"v":5}`},
		{"8.0", ``, densify(`"range": {"step": 2, "bounds": [1, 5]}`), `{"v":1} {"v":3}`},
		{"8.0", ``, densify(`"partitionByFields": ["p"], "range": {"step": 2, "bounds": [1, 5]}`), ``},
		{"8.0", `[{"v": {"$numberDecimal": "1"}}, {"v": {"$numberDecimal": "1.3"}}]`, densify(`"range": {"step": {"$numberDecimal": "0.1"}, "bounds": "full"}`),
			`{"v":{"$numberDecimal":"1"}} {"v":{"$numberDecimal":"1.1"}} {"v":{"$numberDecimal":"1.2"}} {"v":{"$numberDecimal":"1.3"}}`},
		{"8.0", `[{"v": 1}, {"v": 2}]`, densify(`"range": {"step": {"$numberDecimal": "0.5"}, "bounds": "full"}`), `{"v":1} {"v":{"$numberDecimal":"1.5"}} {"v":2}`},
		{"8.0", `[{"v": 1}, {"v": 3}]`, densify(`"partitionByFields": null, "range": {"step": 1, "unit": null, "bounds": "full"}`), `{"v":1} {"v":2} {"v":3}`},
		{"8.0", ``, densify(`"range": {"step": {"$numberDouble": "NaN"}, "bounds": "full"}`), `5733401: the step parameter in a range statement must be a strictly positive numeric value`},
		{"8.0", ``, densify(`"range": 1`), `14: BSON field '$densify.range' is the wrong type 'int', expected type 'object'`},
		{"8.0", ``, densify(`"range": null`), `40414: BSON field '$densify.range' is missing but a required field`},
		{"8.0", ``, densify(`"partitionByFields": "a", "range": {"step": 1, "bounds": "full"}`), `14: BSON field '$densify.partitionByFields' is the wrong type 'string', expected type 'array'`},
		{"8.0", `[{"v": {"a": 1}}]`, densify(`"partitionByFields": ["v.b"], "range": {"step": 1, "bounds": [1, 2]}`), `5733201: PlanExecutor error during aggregation :: caused by :: $densify field type must be numeric without a unit`},
		{"8.2", ``, densify(`"partitionByFields": ["v.b"], "range": {"step": 1, "bounds": [1, 2]}`), `2: $densify 'field' and 'partitionByFields' cannot share a prefix: 'v' and 'v.b'`},
		{"8.0", three, staged(`{"$fill": {"sortBy": null, "partitionByFields": null, "output": {"y": {"value": 0}}}}, {"$project": {"y": 1}}`), `{"_id":1,"y":0} {"_id":2,"y":0} {"_id":3,"y":0}`},
		{"8.0", three, staged(`{"$fill": {"output": null}}`), `40414: BSON field '$fill.output' is missing but a required field`},
		{"8.0", three, staged(`{"$fill": {"partitionByFields": ["$x"], "output": {"y": {"value": 0}}}}`),
			`16410: FieldPath field names may not start with '$'. Consider using $getField or $setField.`},
	}
	askSiblings(t, list)
}

// TestNearOptions asks what $geoNear takes, by version.
func TestNearOptions(t *testing.T) {
	const places = `[{"_id": 1, "l": {"type": "Point", "coordinates": [0, 0]}}, {"_id": 2, "l": {"type": "Point", "coordinates": [1, 0]}}]`
	near := func(options string) string {
		return staged(`{"$geoNear": {` + options + `}}, {"$project": {"_id": 1}}`)
	}
	const here = `"near": {"type": "Point", "coordinates": [0, 0]}, `
	list := []sibling{
		{"8.0", places, near(here + `"distanceField": "d", "maxDistance": {"$add": [1, 2]}`), `{"_id":1}`},
		{"8.0", places, near(here + `"distanceField": "d", "minDistance": {"$add": [1, 2]}`), `{"_id":2}`},
		{"7.0", places, near(here + `"distanceField": "d", "maxDistance": {"$add": [1, 2]}`), `14: maxDistance must be a number`},
		{"8.0", places, near(here + `"distanceField": "d", "maxDistance": "$_id"`), `7555702: $geoNear requires a constant maxDistance argument`},
		{"8.0", places, near(here + `"distanceField": "d", "minDistance": "$_id"`), `7555701: $geoNear requires a constant minDistance argument`},
		{"8.0", places, near(here + `"distanceField": "d", "maxDistance": {"$concat": ["a"]}`), `14: maxDistance must be a number`},
		{"8.0", places, near(here + `"spherical": true`), `16606: $geoNear requires a 'distanceField' option as a String`},
		{"8.2", places, near(here + `"spherical": true`), `{"_id":1} {"_id":2}`},
		{"8.2", places, near(here + `"distanceField": 1`), `16606: $geoNear requires a 'distanceField' option as a String`},
		{"5.0", places, near(`"distanceField": "d"`), `16605: $geoNear requires a 'near' option as an Array`},
		{"6.0", places, near(`"distanceField": "d"`), `5860400: $geoNear requires a 'near' argument`},
		{"6.0", places, staged(`{"$geoNear": [1, 2]}`), `5860400: $geoNear requires a 'near' argument`},
		{"5.0", places, staged(`{"$geoNear": [1, 2]}`), `16605: $geoNear requires a 'near' option as an Array`},
		{"6.0", places, near(`"near": "x", "distanceField": "d"`), `5860401: $geoNear requires near argument to be a GeoJSON object or a legacy point(array)`},
		{"6.0", places, near(`"near": null, "distanceField": "d"`), `5860401: $geoNear requires near argument to be a GeoJSON object or a legacy point(array)`},
		{"6.0", places, near(`"near": "$l", "distanceField": "d"`), `5860402: $geoNear requires a constant near argument`},
		{"6.0", places, near(`"near": {"type": "Point", "coordinates": ["$_id", 0]}, "distanceField": "d"`), `5860402: $geoNear requires a constant near argument`},
		{"6.0", places, near(`"near": {"type": "Point", "coordinates": [{"$add": [1, 0]}, 0]}, "distanceField": "d"`), `{"_id":2} {"_id":1}`},
		{"8.2", places, near(here + `"nosuch": 1`), `2: unknown argument to $geoNear: nosuch`},
		{"8.0", places, near(here + `"distanceField": "d", "query": {"l": {"$near": [0, 0]}}`),
			`5626500: $geoNear, $near, and $nearSphere are not allowed in this context, as these operators require sorting geospatial data. If you do not need sort, consider using $geoWithin instead.`},
		{"8.2", places, near(here + `"key": "$l"`), `16410: FieldPath field names may not start with '$'. Consider using $getField or $setField.`},
		{"8.2", places, near(here + `"key": "l."`), `40353: FieldPath must not end with a '.'.`},
		{"8.2", places, near(here + `"key": "a` + strings.Repeat(".a", 180) + `"`), `5729100: $geoNear 'key' has more than 180 names`},
		{"8.2", places, near(here + `"key": "a` + strings.Repeat(".a", 200) + `"`), `15: FieldPath is too long`},
		{"8.2", places, staged(`{"$match": {"_id": 1}}, {"$geoNear": {` + here + `"key": "l"}}`), `40603: $geoNear was not the first stage in the pipeline after optimization. Is optimization disabled or inhibited?`},
	}
	askSiblings(t, list, `{"createIndexes": "c", "indexes": [{"key": {"l": "2dsphere"}, "name": "l"}]}`)
}
