package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// planeCollection has a grid of points, one apart, with a 2d index.
func planeCollection(t *testing.T, version, index string) *explainer {
	t.Helper()
	d := mongotest.Start(t, mongotest.Version(version))
	c := &explainer{t: t, conn: dial(t, d.Hosts()[0])}
	var docs []string
	for x := range 20 {
		for y := range 20 {
			docs = append(docs, fmt.Sprintf(`{"_id": %d, "t": %d, "l": [%d, %d]}`, 20*x+y, x%4, x, y))
		}
	}
	docs = append(docs, `{"_id": 500, "t": 1}`, `{"_id": 501, "t": 1, "m": [[1, 1], [50, 50], [1.5, 1.5]]}`)
	c.do(`{"createIndexes": "c", "indexes": [` + index + `], "$db": "t"}`)
	c.do(`{"insert": "c", "documents": [` + strings.Join(docs, ", ") + `], "$db": "t"}`)
	return c
}

// Regions are looked for within bounds of hashes. What a query asks of the other fields is matched
// on the keys, which have the values as they are.
func TestPlaneRegionsExplained(t *testing.T) {
	const center = `{"$geoWithin": {"$center": [[5, 5], 1.2]}}` // five points
	for _, test := range []struct {
		index, filter, stages, scanFilter string
		most, docs, returned              int64
	}{
		{`{"key": {"l": "2d"}, "name": "i"}`, `{"l": ` + center + `}`, "FETCH IXSCAN", ``, 30, 0, 5},
		{`{"key": {"l": "2d"}, "name": "i", "bits": 32}`, `{"l": ` + center + `}`, "FETCH IXSCAN", ``, 30, 0, 5},
		{`{"key": {"l": "2d"}, "name": "i", "bits": 1}`, `{"l": ` + center + `}`, "FETCH IXSCAN", ``, 400, 400, 5},
		{`{"key": {"l": "2d"}, "name": "i", "min": 0, "max": 20}`, `{"l": ` + center + `}`, "FETCH IXSCAN", ``, 30, 0, 5},
		{`{"key": {"l": "2d"}, "name": "i"}`, `{"l": {"$geoWithin": {"$box": [[2.5, 2.5], [4.5, 3.5]]}}}`, "FETCH IXSCAN", ``, 10, 0, 2},
		{`{"key": {"l": "2d"}, "name": "i"}`, `{"l": {"$geoWithin": {"$polygon": [[2.5, 2.5], [4.5, 2.5], [4.5, 3.5]]}}}`, "FETCH IXSCAN", ``, 10, 0, 1},
		{`{"key": {"l": "2d"}, "name": "i"}`, `{"l": {"$geoWithin": {"$centerSphere": [[5, 5], 0.02]}}}`, "FETCH IXSCAN", ``, 60, 0, 5},
		{`{"key": {"l": "2d", "t": 1}, "name": "i"}`, `{"l": ` + center + `, "t": 1}`, "FETCH IXSCAN", `{"t":{"$eq":1}}`, 30, 3, 3},
		{`{"key": {"l": "2d", "t": 1}, "name": "i"}`, `{"l": ` + center + `, "t": {"$gt": 1}}`, "FETCH IXSCAN", `{"t":{"$gt":1}}`, 30, 0, 1},
		{`{"key": {"m": "2d"}, "name": "i"}`, `{"m": {"$geoWithin": {"$box": [[0, 0], [3, 3]]}}}`, "FETCH IXSCAN", ``, 4, 1, 1},
		{`{"key": {"l": "2d", "t": 1}, "name": "i"}`, `{"t": 1}`, "COLLSCAN", ``, 0, 402, 102},
		{`{"key": {"l": "2d"}, "name": "i"}`, `{"l": [1, 1]}`, "COLLSCAN", ``, 0, 402, 1},
		{`{"key": {"l": "2d"}, "name": "i"}`, `{"l": {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [3, 3], [0, 0]]]}}}}`, "COLLSCAN", ``, 0, 402, 0},
		{`{"key": {"l": "2d"}, "name": "i"}`, `{"l": {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [3, 3]}}}}`, "COLLSCAN", ``, 0, 402, 1},
	} {
		c := planeCollection(t, "7.0", test.index)
		plan, keys, docs := c.explain(`{"find": "c", "filter": ` + test.filter + `}`)
		if got := stagesOf(plan); got != test.stages {
			t.Errorf("%s with %s: %s, want %s", test.filter, test.index, got, test.stages)
			continue
		}
		if n, _ := plan.Lookup("nReturned").AsInt64(); test.returned != 0 && n != test.returned {
			t.Errorf("%s with %s: %d documents, want %d", test.filter, test.index, n, test.returned)
		}
		if keys > test.most || test.docs != 0 && docs != test.docs || test.most > 0 && keys == 0 {
			t.Errorf("%s with %s: %d keys and %d documents, want at most %d and %d", test.filter, test.index, keys, docs, test.most, test.docs)
		}
		if test.most == 0 {
			continue
		}
		scan, _ := plan.Lookup("inputStage").Document()
		if got := scan.Lookup("filter"); got.Type == 0 != (test.scanFilter == "") || got.Type != 0 && got.String() != test.scanFilter {
			t.Errorf("%s: the scan has the filter %s, want %s", test.filter, got, test.scanFilter)
		}
		field := "l"
		if scan.Lookup("indexBounds", field).Type == 0 {
			field = "m"
		}
		if many := scan.Lookup("isMultiKey").AsBool(); many != (field == "m") || many != (scan.Lookup("multiKeyPaths", field).String() == `["m"]`) {
			t.Errorf("%s: multikey is %t, at %s", test.filter, many, scan.Lookup("multiKeyPaths"))
		}
		last := ""
		for v := range bson.Raw(scan.Lookup("indexBounds", field).Value).Values() {
			text, _ := v.StringValue()
			first, final, _ := strings.Cut(strings.Trim(text, "[]"), ", BinData(128, ")
			from, ok := strings.CutPrefix(strings.TrimSuffix(first, ")"), "BinData(128, ")
			final = strings.TrimSuffix(final, ")")
			if !ok || len(from) != 16 || len(final) != 16 || from <= last || final < from {
				t.Errorf("%s: bounds %s behind %s", test.filter, text, last)
			}
			last = final
		}
		if bounds := scan.Lookup("indexBounds", "t"); bounds.Type != 0 && bounds.String() != `["[MinKey, MaxKey]"]` {
			t.Errorf("%s: t has the bounds %s", test.filter, bounds)
		}
	}
}

// The hash of a point is that of the manual: its first two bits say in which quarter it lies.
func TestPlaneKeys(t *testing.T) {
	c := planeCollection(t, "7.0", `{"key": {"l": "2d", "t": 1}, "name": "i"}, {"key": {"m": "2d", "t": -1}, "name": "m", "bits": 4}`)
	c.do(`{"delete": "c", "deletes": [{"q": {"m": null}, "limit": 0}], "$db": "t"}`)
	c.do(`{"insert": "c", "documents": [{"l": [-100, 100], "t": [1, 2]}, {"l": [100, 100]}, {"l": [-100, -100]}, {"l": [100, -100], "t": {"x": 1}}], "$db": "t"}`)
	reply := c.do(`{"find": "c", "filter": {"l": {"$geoWithin": {"$box": [[-180, -180], [180, 180]]}}}, "returnKey": true, "hint": "i", "$db": "t"}`)
	var got []string
	for v := range bson.Raw(reply.Lookup("cursor", "firstBatch").Value).Values() {
		doc := bson.Raw(v.Value)
		hash, _ := doc.Lookup("l").Binary()
		got = append(got, fmt.Sprintf("%02x %02b %s", hash.Subtype, hash.Data[0]>>6, doc.Lookup("t")))
	}
	if want := "[80 00 null 80 01 [1,2] 80 10 {\"x\":1} 80 11 null]"; fmt.Sprint(got) != want {
		t.Errorf("the keys are %s, want %s", got, want)
	}
	if _, keys, docs := c.explain(`{"find": "c", "hint": "m"}`); keys != 2 || docs != 1 { // two of the points are in one cell
		t.Errorf("a document with three places has %d keys, and there are %d", keys, docs)
	}
}

// $near and $nearSphere go outward over a 2d index, too.
func TestNearInPlaneExplained(t *testing.T) {
	for _, version := range []string{"4.4", "8.0"} {
		c := planeCollection(t, version, `{"key": {"l": "2d", "t": 1}, "name": "i"}`)
		for _, test := range []struct {
			command, stages    string
			docs, returned     int64
			lastRing, tolerant float64
		}{
			{`{"find": "c", "filter": {"l": {"$near": [5.1, 5], "$maxDistance": 1.05}}}`, "GEO_NEAR_2D", 0, 4, 1.05, 0},
			{`{"find": "c", "filter": {"l": {"$near": [5.1, 5], "$maxDistance": 1.05}, "t": 1}}`, "GEO_NEAR_2D", 3, 3, 1.05, 0},
			{`{"find": "c", "filter": {"l": {"$near": [5.1, 5], "$maxDistance": 1.05}, "n": null}}`, "FETCH GEO_NEAR_2D", 0, 4, 1.05, 0},
			{`{"find": "c", "filter": {"l": {"$near": [5.1, 5]}}, "limit": 2}`, "LIMIT GEO_NEAR_2D", 0, 2, 0, 0},
			{`{"find": "c", "filter": {"l": {"$near": [0, 0]}}}`, "GEO_NEAR_2D", 0, 400, 254.5, 0.1},
			{`{"find": "c", "filter": {"l": {"$nearSphere": [5.1, 5], "$maxDistance": 0.019}}}`, "GEO_NEAR_2D", 0, 4, 0.019, 0},
			{`{"count": "c", "query": {"l": {"$nearSphere": [5.1, 5]}}}`, "COUNT GEO_NEAR_2D", 0, 0, 3.14159, 0.001},
		} {
			plan, keys, docs := c.explain(test.command)
			names, top := "", plan
			for {
				name, _ := top.Lookup("stage").StringValue()
				names = strings.TrimSpace(names + " " + name)
				in, ok := top.Lookup("inputStage").Document()
				if !ok || strings.HasPrefix(name, "GEO_NEAR") {
					break
				}
				top = in
			}
			if names != test.stages {
				t.Errorf("%s: %s, want %s", test.command, names, test.stages)
				continue
			}
			if n, _ := plan.Lookup("nReturned").AsInt64(); n != test.returned {
				t.Errorf("%s: %d documents, want %d", test.command, n, test.returned)
			}
			if keys == 0 || test.docs != 0 && docs > test.docs+3 {
				t.Errorf("%s looks at %d keys and %d documents", test.command, keys, docs)
			}
			if v, _ := top.Lookup("indexVersion").AsInt64(); v != 2 || top.Lookup("keyPattern").String() != `{"l":"2d","t":1}` {
				t.Errorf("%s: %s", test.command, top)
			}
			var last float64
			for v := range bson.Raw(top.Lookup("searchIntervals").Value).Values() {
				last, _ = bson.Raw(v.Value).Lookup("maxDistance").Double()
			}
			if test.lastRing > 0 && (last < test.lastRing-test.tolerant || last > test.lastRing+test.tolerant) {
				t.Errorf("%s goes out to %v, want %v", test.command, last, test.lastRing)
			}
		}
		reply := command(t, c.conn, extJSON(t, `{"find": "c", "filter": {"l": {"$near": [200, 0]}}, "$db": "t"}`))
		if text, _ := reply.Lookup("errmsg").StringValue(); !strings.HasSuffix(text, "point not in interval of [ -180, 180 ] :: caused by :: { 0: 200.0, 1: 0.0 }") {
			t.Errorf("a search around a point outside: %s", reply)
		}
		c.do(`{"profile": 2, "$db": "t"}`)
		batch := c.do(`{"aggregate": "c", "pipeline": [{"$geoNear": {"near": [5.1, 5], "distanceField": "d", "maxDistance": 0.95}}, {"$project": {"d": 1}}], "cursor": {}, "$db": "t"}`)
		if got := batch.Lookup("cursor", "firstBatch", "1", "_id").String(); got != "125" {
			t.Errorf("%s: $geoNear found %s", version, batch)
		}
		entry := c.do(`{"find": "system.profile", "filter": {"op": "command"}, "$db": "t"}`)
		if got, _ := entry.Lookup("cursor", "firstBatch", "0", "planSummary").StringValue(); got != `GEO_NEAR_2D { l: "2d", t: 1 }` {
			t.Errorf("the profile has the plan %s", got)
		}
	}
}
