package mongotest_test

import (
	"strings"
	"testing"

	"allium/mongotest"
)

// TestCatalogRules asks what others' functional tests saw an 8.2 refuse of collections and indexes.
// What is refused from 8.1 on only is asked of an older one, too.
func TestCatalogRules(t *testing.T) {
	const acceptable = `TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number than `
	drop := func(name string) string { return `{"drop": "` + name + `"}` }
	list := []sibling{
		{"8.2", ``, `{"create": "x", "capped": true, "size": 0}`, `2: BSON field 'size' value must be >= 1, actual value '0'`},
		{"8.2", ``, `{"create": "x", "validationLevel": ""}`, `2: Enumeration value '' for field 'create.validationLevel' is not a valid value.`},
		{"8.2", ``, `{"create": "x", "validationAction": ""}`, `2: Enumeration value '' for field 'create.validationAction' is not a valid value.`},
		{"8.2", ``, `{"create": "x", "timeseries": {"timeField": null}}`, `40414: BSON field 'create.timeseries.timeField' is missing but a required field`},
		{"8.2", ``, `{"create": "x", "timeseries": {"timeField": "t"}, "expireAfterSeconds": -1}`, `72: ` + acceptable + `-1`},
		{"8.2", ``, `{"create": "x", "timeseries": {"timeField": "t"}, "expireAfterSeconds": {"$numberDouble": "Infinity"}}`, `72: ` + acceptable + `9223372036854775807`},
		{"8.2", ``, `{"create": "x", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "expireAfterSeconds": {"$numberLong": "9999999999"}}`, `72: ` + acceptable + `9999999999`},
		{"8.2", ``, `{"create": "x", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "idIndex": {"key": {"_id": 1}, "name": "_id_"}}`,
			`72: The 'clusteredIndex' option is not supported with 'idIndex'`},
		{"8.2", ``, `{"create": "x", "viewOn": "c", "pipeline": [], "changeStreamPreAndPostImages": {"enabled": true}}`,
			`72: The 'changeStreamPreAndPostImages' option is not supported on views`},
		{"8.2", ``, `{"create": "system.buckets.x"}`, `20: Cannot create db.system.buckets.x without the 'timeseries' option`},
		{"8.0", ``, `{"create": "old", "capped": true, "size": 0, "validationLevel": ""}`, ``},
		{"8.0", ``, drop("old"), ``},

		// compact takes no other arguments, and of their types.
		{"8.2", ``, `{"compact": "c", "dryRun": true}`, ``},
		{"8.2", ``, `{"compact": "c", "dryRun": null, "force": null, "freeSpaceTargetMB": null}`, ``},
		{"8.2", ``, `{"compact": "c", "force": 1}`, `14: BSON field 'compact.force' is the wrong type 'int', expected type 'bool'`},
		{"8.2", ``, `{"compact": "c", "freeSpaceTargetMB": 0.5}`, `2: BSON field 'freeSpaceTargetMB' value must be >= 1, actual value '0'`},
		{"8.2", ``, `{"compact": "c", "dryrun": true}`, `40415: BSON field 'compact.dryrun' is an unknown field.`},
		{"8.0", ``, `{"compact": "c", "force": 1}`, ``},

		// What a collection is clustered by is no index to drop or to hide.
		{"8.2", ``, `{"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true, "name": "n"}}`, ``},
		{"8.2", ``, `{"dropIndexes": "k", "index": "n"}`, `5979800: It is illegal to drop the clusteredIndex`},
		{"8.2", ``, `{"dropIndexes": "k", "index": {"_id": 1}}`, `5979800: It is illegal to drop the clusteredIndex`},
		{"8.2", ``, `{"dropIndexes": "k", "index": "_id_"}`, `27: index not found with name [_id_]`},
		{"8.2", ``, `{"dropIndexes": "k", "index": "*"}`, ``},
		{"8.2", ``, `{"collMod": "k", "index": {"name": "n", "hidden": true}}`, `6011800: The 'hidden' option is not supported for a clusteredIndex`},
		{"8.2", ``, `{"collMod": "k", "index": {"keyPattern": {"_id": 1}, "hidden": false}}`, `6011800: The 'hidden' option is not supported for a clusteredIndex`},
		{"8.2", ``, drop("k"), ``},

		// A view has a name and a pipeline.
		{"8.2", ``, `{"create": "x", "pipeline": [{"$match": {}}]}`, `72: 'pipeline' cannot be specified without 'viewOn'`},
		{"8.0", ``, `{"create": "x", "pipeline": [{"$match": {}}]}`, `2: 'pipeline' cannot be specified without 'viewOn'`},
		{"8.2", ``, `{"create": "v", "viewOn": "c", "pipeline": []}`, ``},
		{"8.2", ``, `{"collMod": "v", "viewOn": ""}`, `2: 'viewOn' cannot be empty.'`},
		{"8.2", ``, `{"collMod": "v", "viewOn": ".x"}`, `73: invalid name for 'viewOn': .x`},
		{"8.2", ``, `{"collMod": "v", "viewOn": null}`, ``},
		{"8.2", ``, drop("v"), ``},

		// $rename moves nothing out of the meta field.
		{"8.2", ``, `{"create": "s", "timeseries": {"timeField": "t", "metaField": "m"}}`, ``},
		{"8.2", ``, `{"update": "s", "updates": [{"q": {}, "u": {"$rename": {"m": "n"}}, "multi": true}]}`,
			`72: Cannot perform an update on a time-series collection which updates a field that is not the metaField 'm'`},
		{"8.2", ``, `{"update": "s", "updates": [{"q": {}, "u": {"$rename": {"m.a": "m.b"}}, "multi": true}]}`, ``},
		{"8.2", ``, drop("s"), ``},

		// Null options of collMod are as if they were not given.
		{"8.2", ``, `{"create": "s", "timeseries": {"timeField": "t"}}`, ``},
		{"8.2", ``, `{"collMod": "s", "timeseries": {"granularity": null}}`, ``},
		{"8.2", ``, `{"collMod": "s", "timeseries": {"bucketMaxSpanSeconds": null, "bucketRoundingSeconds": null}}`, ``},
		{"8.2", ``, `{"collMod": "s", "expireAfterSeconds": {"$numberLong": "9999999999"}}`, `72: ` + acceptable + `9999999999`},
		{"8.2", ``, drop("s"), ``},

		// A wildcard index is another one with another projection.
		{"8.2", ``, `{"createIndexes": "c", "indexes": [{"key": {"$**": 1}, "name": "w", "wildcardProjection": {"a": 1}}, {"key": {"$**": 1}, "name": "w", "wildcardProjection": {"b": 1}}]}`,
			`86: `},
	}
	for i := range list {
		if list[i].want == `86: ` { // the text has both specifications
			list[i].want = `86: An existing index has the same name as the requested index. When index names are not specified, they are ` +
				`auto generated and can cause conflicts. Please refer to our documentation. Requested index: { v: 2, key: { $**: 1 }, name: "w", wildcardProjection: { b: 1 } }, ` +
				`existing index: { v: 2, key: { $**: 1 }, name: "w", wildcardProjection: { a: 1 } }`
		}
	}
	askSiblings(t, list, `{"create": "c"}`)
}

// TestPolygonEdges asks which points on the edges of a polygon of the plane are within it.
func TestPolygonEdges(t *testing.T) {
	const points = `[{"_id": 1, "l": [2, 2]}, {"_id": 2, "l": [8, 8]}, {"_id": 3, "l": [5, 5]}, {"_id": 4, "l": [5, 1]}]`
	within := func(polygon string) string {
		return staged(`{"$match": {"l": {"$geoWithin": {"$polygon": ` + polygon + `}}}}, {"$sort": {"_id": 1}}, {"$project": {"_id": 1}}`)
	}
	var list []sibling
	for _, version := range []string{"4.4.0", "8.2"} {
		list = append(list,
			sibling{version, points, within(`[[0, 0], [10, 10], [10, 0], [0, 10]]`), `{"_id":1} {"_id":3}`},
			sibling{version, points, within(`[[0, 0], [10, 10], [10, 0]]`), `{"_id":4}`},
			sibling{version, points, within(`[[0, 0], [0, 10], [10, 10], [10, 0]]`), `{"_id":1} {"_id":2} {"_id":3} {"_id":4}`})
	}
	askSiblings(t, list)
	askSiblings(t, list, `{"createIndexes": "c", "indexes": [{"key": {"l": "2d"}, "name": "l"}]}`)
}

// TestNearTypes asks of which types the place may be that $near looks at.
func TestNearTypes(t *testing.T) {
	const places = `[{"_id": 1, "l": [0, 0]}]`
	near := func(kind string) string {
		return find(`{"l": {"$nearSphere": {"$geometry": {"type": `+kind+`, "coordinates": [0, 0]}}}}`, `{"_id": 1}`)
	}
	var list []sibling
	for _, kind := range []string{`"point"`, `"InvalidType"`, `null`} {
		list = append(list, sibling{"4.4.0", places, near(kind), `{"_id":1}`}, sibling{"8.2", places, near(kind),
			`2: invalid point in geo near query $geometry argument: { type: ` + kind + `, coordinates: [ 0, 0 ] }  unknown GeoJSON type: { type: ` + kind + `, coordinates: [ 0, 0 ] }`})
	}
	list = append(list, sibling{"8.2", places, near(`"Point"`), `{"_id":1}`})
	askSiblings(t, list, `{"createIndexes": "c", "indexes": [{"key": {"l": "2dsphere"}, "name": "l"}]}`)
}

// TestSearchLanguage: explain shows the language that is searched in.
func TestSearchLanguage(t *testing.T) {
	ask := func(search string) sibling {
		return sibling{"8.0", `[{"_id": 1, "a": "casas"}]`, `{"explain": {"find": "c", "filter": {"$text": {"$search": "x"` + search + `}}}}`, ""}
	}
	for search, language := range map[string]string{``: "spanish", `, "$language": "french"`: "french"} {
		got := askExplain(t, ask(search), `{"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "x", "default_language": "spanish"}]}`)
		if want := `"$language":"` + language + `"`; !strings.Contains(strings.ReplaceAll(got, " ", ""), want) {
			t.Errorf("%s: no %s in %s", search, want, got)
		}
	}
}

// TestUsesAfterCollMod: the uses of an index are counted anew after it was changed.
func TestUsesAfterCollMod(t *testing.T) {
	const uses = `{"aggregate": "c", "cursor": {}, "pipeline": [{"$indexStats": {}}, {"$match": {"name": "a"}}, {"$project": {"_id": 0, "n": "$accesses.ops"}}]}`
	for change, want := range map[string]string{
		`"hidden": false`: `{"n":{"$numberLong":"1"}}`, // as it was
		`"hidden": true`:  `{"n":{"$numberLong":"0"}}`,
	} {
		askSiblings(t, []sibling{{"8.0", `[{"_id": 1, "a": 1}]`, uses, strings.ReplaceAll(strings.ReplaceAll(want, `{"$numberLong":"`, ""), `"}`, "")}},
			`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}`, `{"find": "c", "filter": {"a": 1}}`,
			`{"collMod": "c", "index": {"name": "a", `+change+`}}`)
	}
}

// TestWritersInLookup: that a stage which writes must not be within $lookup is said before where it
// must be.
func TestWritersInLookup(t *testing.T) {
	for _, version := range []string{"4.4", "5.0", "8.2"} {
		var steps []mendStep
		for _, writer := range []string{`{"$out": "o"}`, `{"$merge": {"into": "o"}}`} {
			for _, stages := range []string{writer, writer + `, {"$match": {}}`, `{"$match": {}}, ` + writer, `{"$match": {}}, ` + writer + `, {"$match": {}}`} {
				steps = append(steps, mendStep{cmd: `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "d", "pipeline": [` + stages + `], "as": "l"}}], "cursor": {}, "$db": "t"}`, code: 51047})
			}
			steps = append(steps, mendStep{cmd: `{"aggregate": "c", "pipeline": [` + writer + `, {"$match": {}}], "cursor": {}, "$db": "t"}`, code: 40601})
		}
		mendSteps(t, steps, mongotest.Standalone(), mongotest.Version(version))
	}
}
