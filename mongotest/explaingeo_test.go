package mongotest_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// geoCollection has a grid of points, a degree apart, and some lines, with a 2dsphere index.
func geoCollection(t *testing.T, version, index string) *explainer {
	t.Helper()
	d := mongotest.Start(t, mongotest.Version(version))
	c := &explainer{t: t, conn: dial(t, d.Hosts()[0])}
	var docs []string
	for x := range 20 {
		for y := range 20 {
			docs = append(docs, fmt.Sprintf(`{"_id": %d, "t": %d, "l": {"type": "Point", "coordinates": [%d, %d]}}`, 20*x+y, x%4, x, y))
		}
	}
	for x := range 3 {
		docs = append(docs, fmt.Sprintf(`{"_id": %d, "t": 0, "m": {"type": "LineString", "coordinates": [[%d, 0], [%d, 10]]}}`, 500+x, x, x))
	}
	c.do(`{"createIndexes": "c", "indexes": [` + index + `], "$db": "t"}`)
	c.do(`{"insert": "c", "documents": [` + strings.Join(docs, ", ") + `], "$db": "t"}`)
	return c
}

type explainer struct {
	t    *testing.T
	conn net.Conn
}

func (c *explainer) do(text string) bson.Raw {
	c.t.Helper()
	return ok(c.t, command(c.t, c.conn, extJSON(c.t, text)))
}

// explain returns the stages of a command that has run, and how many keys and documents it looked
// at.
func (c *explainer) explain(text string) (plan bson.Raw, keys, docs int64) {
	c.t.Helper()
	reply := c.do(`{"explain": ` + text + `, "verbosity": "executionStats", "$db": "t"}`)
	stats := planOf(reply, "executionStats")
	keys, _ = stats.Lookup("totalKeysExamined").AsInt64()
	docs, _ = stats.Lookup("totalDocsExamined").AsInt64()
	plan, _ = stats.Lookup("executionStages").Document()
	winning, _ := planOf(reply, "queryPlanner").Lookup("winningPlan").Document()
	if got, want := stageNames(plan), stageNames(winning); got != want && !strings.Contains(want, "GEO_NEAR") {
		c.t.Errorf("%s: %s ran, and %s is planned", text, got, want)
	}
	return plan, keys, docs
}

// stagesOf are the names of stages, from the top down the first inputs.
func stagesOf(plan bson.Raw) string {
	name, _ := plan.Lookup("stage").StringValue()
	if in, ok := plan.Lookup("inputStage").Document(); ok {
		return name + " " + stagesOf(in)
	}
	return name
}

// Regions are looked for within bounds of cells: numbers in order, each of which is a cell that the
// region is part of, or all cells within one.
func TestGeoWithinExplained(t *testing.T) {
	const circle = `{"$geoWithin": {"$centerSphere": [[5, 5], 0.02]}}` // 1.15 degrees: five points
	for _, test := range []struct {
		index, filter, stages string
		most                  int64 // keys, of 400
		docs                  int64
	}{
		{`{"key": {"l": "2dsphere"}, "name": "i"}`, `{"l": ` + circle + `}`, "FETCH IXSCAN", 60, 0},
		{`{"key": {"l": "2dsphere"}, "name": "i", "2dsphereIndexVersion": 2}`, `{"l": ` + circle + `}`, "FETCH IXSCAN", 60, 0},
		{`{"key": {"t": 1, "l": "2dsphere"}, "name": "i"}`, `{"t": 1, "l": ` + circle + `}`, "FETCH IXSCAN", 60, 3},
		{`{"key": {"l": "2dsphere", "t": -1}, "name": "i"}`, `{"l": ` + circle + `, "t": 1}`, "FETCH IXSCAN", 60, 3},
		{`{"key": {"t": 1, "l": "2dsphere"}, "name": "i"}`, `{"l": ` + circle + `}`, "COLLSCAN", 0, 403},
		{`{"key": {"t": 1, "l": "2dsphere"}, "name": "i"}`, `{"t": 1}`, "COLLSCAN", 0, 403}, // it lacks what has no place
		{`{"key": {"l": "2dsphere"}, "name": "i"}`, `{"l": null}`, "COLLSCAN", 0, 403},
		{`{"key": {"l": "2dsphere"}, "name": "i"}`, `{"l": {"$exists": false}}`, "COLLSCAN", 0, 403},
		{`{"key": {"l": "2dsphere"}, "name": "i"}`, `{"l": {"$geoWithin": {"$center": [[5, 5], 1]}}}`, "COLLSCAN", 0, 403}, // in the plane
		{`{"key": {"m": "2dsphere"}, "name": "i"}`, `{"m": {"$geoIntersects": {"$geometry": {"type": "LineString", "coordinates": [[-1, 5], [5, 5]]}}}}`, "FETCH IXSCAN", 80, 3},
	} {
		c := geoCollection(t, "7.0", test.index)
		plan, keys, docs := c.explain(`{"find": "c", "filter": ` + test.filter + `}`)
		if got := stagesOf(plan); got != test.stages {
			t.Errorf("%s with %s: %s, want %s", test.filter, test.index, got, test.stages)
			continue
		}
		if keys > test.most || test.docs != 0 && docs != test.docs || test.most > 0 && keys == 0 {
			t.Errorf("%s with %s: %d keys and %d documents, want at most %d and %d", test.filter, test.index, keys, docs, test.most, test.docs)
		}
		if test.most == 0 {
			continue
		}
		scan, _ := plan.Lookup("inputStage").Document()
		if n, _ := scan.Lookup("keysExamined").AsInt64(); n != keys {
			t.Errorf("%s: the scan looked at %d keys, all at %d", test.filter, n, keys)
		}
		field := "l"
		if scan.Lookup("indexBounds", field).Type == 0 {
			field = "m"
		}
		paths := scan.Lookup("multiKeyPaths", field).String()
		if many := scan.Lookup("isMultiKey").AsBool(); many != (field == "m") || many != (paths == `["m"]`) {
			t.Errorf("%s: multikey is %t, at %s", test.filter, many, paths)
		}
		last := int64(-1 << 63)
		for v := range bson.Raw(scan.Lookup("indexBounds", field).Value).Values() {
			text, _ := v.StringValue()
			if strings.Contains(test.index, "Version") {
				if !strings.HasPrefix(text, `["0f`) {
					t.Errorf("%s: bounds %s of cells' digits", test.filter, text)
				}
				continue
			}
			first, final, _ := strings.Cut(strings.Trim(text, "[]"), ", ")
			from, err := strconv.ParseInt(first, 10, 64)
			to, err2 := strconv.ParseInt(final, 10, 64)
			if err != nil || err2 != nil || from <= last || to < from {
				t.Errorf("%s: bounds %s behind %d", test.filter, text, last)
			}
			last = to
		}
	}
}

// A document has a key for each of its cells, and the index none for what has no place.
func TestGeoKeys(t *testing.T) {
	c := geoCollection(t, "7.0", `{"key": {"l": "2dsphere"}, "name": "i"}, {"key": {"m": "2dsphere", "t": 1}, "name": "m"}`)
	plan, keys, docs := c.explain(`{"find": "c", "hint": "i"}`)
	if got := stagesOf(plan); got != "FETCH IXSCAN" || keys != 400 || docs != 400 {
		t.Errorf("all of the index: %s with %d keys and %d documents", got, keys, docs)
	}
	if _, keys, docs = c.explain(`{"find": "c", "hint": "m"}`); keys <= 3 || docs != 3 {
		t.Errorf("three lines have %d keys, %d documents", keys, docs)
	}
	c.do(`{"delete": "c", "deletes": [{"q": {"_id": {"$gte": 200}}, "limit": 0}], "$db": "t"}`)
	if _, keys, _ = c.explain(`{"find": "c", "hint": "m"}`); keys != 0 {
		t.Errorf("%d keys are left of what was deleted", keys)
	}
	c.do(`{"update": "c", "updates": [{"q": {"_id": {"$lt": 10}}, "u": {"$unset": {"l": 1}}, "multi": true}], "$db": "t"}`)
	if _, keys, _ = c.explain(`{"find": "c", "hint": "i"}`); keys != 190 {
		t.Errorf("%d keys are left, want 190", keys)
	}
	shape := extJSON(t, `{"find": "c", "filter": {"l": {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}, "returnKey": true, "$db": "t"}`)
	ok(t, command(t, c.conn, shape))
}

// $near searches ring by ring, and no further than it has to.
func TestNearExplained(t *testing.T) {
	c := geoCollection(t, "7.0", `{"key": {"t": 1, "l": "2dsphere"}, "name": "i"}`)
	const near = `{"$near": {"$geometry": {"type": "Point", "coordinates": [5.1, 5]}`
	for _, test := range []struct {
		command, stages string
		returned        int64
		lastRing        float64 // how far it is; 0: half around the sphere
	}{
		{`{"find": "c", "filter": {"l": ` + near + `}}}}`, "GEO_NEAR_2DSPHERE", 400, 0},
		{`{"find": "c", "filter": {"l": ` + near + `, "$maxDistance": 120000}}}}`, "GEO_NEAR_2DSPHERE", 4, 120000},
		{`{"find": "c", "filter": {"t": 2, "l": ` + near + `, "$maxDistance": 240000}}}}`, "GEO_NEAR_2DSPHERE", 0, 240000},
		{`{"find": "c", "filter": {"l": ` + near + `, "$maxDistance": 120000}}, "n": 1}}`, "FETCH GEO_NEAR_2DSPHERE", 0, 120000},
		{`{"find": "c", "filter": {"l": ` + near + `}}}, "limit": 2}`, "LIMIT GEO_NEAR_2DSPHERE", 2, -1},
		{`{"count": "c", "query": {"l": ` + near + `, "$maxDistance": 120000}}}}`, "COUNT GEO_NEAR_2DSPHERE", 0, 120000},
	} {
		plan, keys, docs := c.explain(test.command)
		top := plan
		names := ""
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
		n, _ := plan.Lookup("nReturned").AsInt64()
		if test.returned > 0 && n != test.returned {
			t.Errorf("%s: %d documents, want %d", test.command, n, test.returned)
		}
		if test.lastRing != 0 && keys > 200 || keys == 0 || docs == 0 {
			t.Errorf("%s looks at %d keys and %d documents", test.command, keys, docs)
		}
		if v, _ := top.Lookup("indexVersion").AsInt64(); v != 2 || top.Lookup("keyPattern").String() != `{"t":1,"l":"2dsphere"}` {
			t.Errorf("%s: %s", test.command, top)
		}
		rings := bson.Raw(top.Lookup("searchIntervals").Value)
		last, inclusive := 0.0, false
		var children int64
		for v := range rings.Values() {
			ring := bson.Raw(v.Value)
			least, _ := ring.Lookup("minDistance").Double()
			if least != last {
				t.Errorf("%s: rings %s", test.command, rings)
			}
			last, _ = ring.Lookup("maxDistance").Double()
			inclusive, _ = ring.Lookup("maxInclusive").Boolean()
			children++
		}
		if test.lastRing >= 0 && !inclusive || test.lastRing > 0 && last != test.lastRing || test.lastRing == 0 && last < 20e6 {
			t.Errorf("%s: rings %s", test.command, rings)
		}
		inputs := 0
		if top.Lookup("inputStage").Type != 0 {
			inputs = 1
		}
		for v := range bson.Raw(top.Lookup("inputStages").Value).Values() {
			inputs++
			if got := stagesOf(v.Value); got != "FETCH IXSCAN" {
				t.Errorf("%s: a ring is read by %s", test.command, got)
			}
		}
		if int64(inputs) != children {
			t.Errorf("%s: %d rings and %d inputs", test.command, children, inputs)
		}
	}
	c.do(`{"profile": 2, "$db": "t"}`)
	batch := c.do(`{"find": "c", "filter": {"l": ` + near + `}}}, "projection": {"_id": 1}, "batchSize": 3, "$db": "t"}`)
	if got := batch.Lookup("cursor", "firstBatch").String(); got != `[{"_id":105},{"_id":125},{"_id":104}]` && got != `[{"_id":105},{"_id":125},{"_id":106}]` {
		t.Errorf("the nearest are %s", got)
	}
	entry := c.do(`{"find": "system.profile", "filter": {"op": "query"}, "$db": "t"}`)
	if got, _ := entry.Lookup("cursor", "firstBatch", "0", "planSummary").StringValue(); got != `GEO_NEAR_2DSPHERE { t: 1, l: "2dsphere" }` {
		t.Errorf("the profile has the plan %s", got)
	}
}

// A $geoNear in front of a pipeline is a cursor of its own kind, with its query and limits.
func TestGeoNearStageExplained(t *testing.T) {
	for _, version := range []string{"4.4", "8.0"} {
		c := geoCollection(t, version, `{"key": {"l": "2dsphere"}, "name": "i"}`)
		const near = `{"$geoNear": {"near": {"type": "Point", "coordinates": [5.1, 5]}, "distanceField": "d", "maxDistance": 120000, "query": {"t": 1}}}`
		for _, test := range []struct {
			stages string // behind the cursor
			want   string
		}{
			{``, ``},
			{`, {"$match": {"d": {"$gt": 100000}}}`, `{"$match":{"d":{"$gt":100000}},"nReturned":2,"executionTimeMillisEstimate":0}`},
		} {
			for _, verbosity := range []string{"queryPlanner", "executionStats"} {
				reply := c.do(`{"explain": {"aggregate": "c", "pipeline": [` + near + test.stages + `], "cursor": {}}, "verbosity": "` + verbosity + `", "$db": "t"}`)
				cursor, _ := reply.Lookup("stages", "0", "$geoNearCursor").Document()
				plan, _ := cursor.Lookup("queryPlanner", "winningPlan").Document()
				if got := stagesOf(plan); got != "FETCH GEO_NEAR_2DSPHERE" {
					t.Errorf("%s: %s: the plan is %s", version, verbosity, got)
				}
				if verbosity == "queryPlanner" {
					continue
				}
				if n, _ := cursor.Lookup("executionStats", "nReturned").AsInt64(); n != 3 {
					t.Errorf("%s: %d documents are near, want 3", version, n)
				}
				if got := reply.Lookup("stages", "1"); got.Type == 0 != (test.want == "") || got.Type != 0 && got.String() != test.want {
					t.Errorf("%s: the next stage is %s, want %s", version, got, test.want)
				}
			}
		}
	}
}

// On a sharded collection each shard searches for itself, and the mongos merges by the distance.
// The point may be a variable of the command.
func TestGeoNearOnShards(t *testing.T) {
	for _, kind := range []string{"2dsphere", "2d"} {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.Version("8.0"))
		c := &explainer{t: t, conn: dial(t, d.Hosts()[0])}
		c.do(`{"shardCollection": "t.c", "key": {"x": 1}, "$db": "admin"}`)
		c.do(`{"split": "t.c", "middle": {"x": 10}, "$db": "admin"}`)
		c.do(`{"moveChunk": "t.c", "find": {"x": 15}, "to": "sh1", "$db": "admin"}`)
		c.do(`{"createIndexes": "c", "indexes": [{"key": {"l": "` + kind + `"}, "name": "i"}], "$db": "t"}`)
		var docs []string
		for x := range 20 {
			docs = append(docs, fmt.Sprintf(`{"_id": %d, "x": %d, "l": [%d, 0]}`, x, x, x))
		}
		c.do(`{"insert": "c", "documents": [` + strings.Join(docs, ", ") + `], "$db": "t"}`)
		for _, near := range []string{`[9.6, 0]`, `"$$p"`, `["$$x", 0]`} {
			const let = `"let": {"p": [9.6, 0], "x": 9.6}`
			stage := `{"$geoNear": {"near": ` + near + `, "distanceField": "d", "spherical": true, "query": {"x": {"$ne": 9}}}}`
			reply := c.do(`{"aggregate": "c", "pipeline": [` + stage + `, {"$limit": 4}, {"$project": {"_id": 1}}], ` + let + `, "cursor": {}, "$db": "t"}`)
			if got := reply.Lookup("cursor", "firstBatch").String(); got != `[{"_id":10},{"_id":11},{"_id":8},{"_id":12}]` {
				t.Errorf("%s near %s: %s", kind, near, got)
			}
			stages := "GEO_NEAR_" + strings.ToUpper(kind)
			for _, limit := range []string{``, `, {"$limit": 4}`} {
				plan := c.do(`{"explain": {"aggregate": "c", "pipeline": [` + stage + limit + `, {"$group": {"_id": null}}], ` + let + `, "cursor": {}}, "verbosity": "executionStats", "$db": "t"}`)
				part := bson.Raw(plan.Lookup("splitPipeline", "shardsPart").Value)
				if name := part.Lookup("0", "$geoNear"); name.Type == 0 || part.Lookup("1", "$limit").Type == 0 != (limit == "") {
					t.Errorf("%s near %s: the shards do %s", kind, near, part)
				}
				if got := plan.Lookup("splitPipeline", "mergerPart").String(); strings.Contains(got, "limit") != (limit != "") || !strings.Contains(got, `{"$group":{"_id":{"$const":null}}}`) {
					t.Errorf("%s near %s: the mongos does %s", kind, near, got)
				}
				sum := int64(0)
				for _, shard := range []string{"sh0", "sh1"} {
					cursor, _ := plan.Lookup("shards", shard, "stages", "0", "$geoNearCursor").Document()
					text := cursor.String()
					if !strings.Contains(text, `"stage":"`+stages+`"`) || strings.Contains(text, "COLLSCAN") {
						t.Errorf("%s near %s: %s searches by %s", kind, near, shard, text)
					}
					n, _ := cursor.Lookup("executionStats", "nReturned").AsInt64()
					sum += n
				}
				if sum != 19 {
					t.Errorf("%s near %s: %d documents were found", kind, near, sum)
				}
			}
		}
	}
}
