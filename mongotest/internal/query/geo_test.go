package query_test

import (
	"math"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/query"
)

// Edges are arcs of great circles, so that they bulge towards the poles and cross the antimeridian.
func TestGeodesic(t *testing.T) {
	for _, c := range []struct {
		filter, value string
		want          bool
	}{
		// The arc from 0 to 60 degrees of longitude at latitude 50 runs up to latitude 53.99 in its
		// middle.
		{`{"$geoIntersects":{"$geometry":{"type":"Polygon","coordinates":[[[0,50],[60,50],[30,10],[0,50]]]}}}`, `[30,53.9]`, true},
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,50],[60,50],[30,10],[0,50]]]}}}`, `[30,54.1]`, false},
		// Across the antimeridian the short way is taken.
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}}}`, `[180,0]`, true},
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}}}`, `[0,0]`, false},
		{`{"$geoIntersects":{"$geometry":{"type":"LineString","coordinates":[[170,0],[-170,0]]}}}`, `{"type":"LineString","coordinates":[[175,-5],[175,5]]}`, true},
		{`{"$geoIntersects":{"$geometry":{"type":"LineString","coordinates":[[170,0],[-170,0]]}}}`, `{"type":"LineString","coordinates":[[0,-5],[0,5]]}`, false},
		// A polygon round the pole contains it.
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,60],[120,60],[-120,60],[0,60]]]}}}`, `[10,89]`, true},
		// Holes.
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,9],[0,0]],[[3,3],[6,3],[6,6],[3,6],[3,3]]]}}}`, `[4,4]`, false},
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,9],[0,0]],[[3,3],[6,3],[6,6],[3,6],[3,3]]]}}}`, `[2,2]`, true},
		// With a strict winding order a clockwise ring means the rest of the world.
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[0,9],[9,9],[9,0],[0,0]]],"crs":{"type":"name","properties":{"name":"urn:x-mongodb:crs:strictwinding:EPSG:4326"}}}}}`, `[50,50]`, true},
		{`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,9],[0,0]]],"crs":{"type":"name","properties":{"name":"urn:x-mongodb:crs:strictwinding:EPSG:4326"}}}}}`, `[50,50]`, false},
		// What is in the plane alone sees points only.
		{`{"$geoWithin":{"$box":[[0,0],[9,9]]}}`, `{"type":"Point","coordinates":[4,4]}`, true},
		{`{"$geoWithin":{"$box":[[0,0],[9,9]]}}`, `{"type":"LineString","coordinates":[[1,1],[2,2]]}`, false},
		{`{"$geoWithin":{"$centerSphere":[[0,0],0.2]}}`, `{"type":"LineString","coordinates":[[1,1],[2,2]]}`, true},
	} {
		f, err := query.ParseFilter(parse(t, `{"l":`+c.filter+`}`), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.filter, err)
		}
		if got, err := f.Match(parse(t, `{"l":`+c.value+`}`)); got != c.want || err != nil {
			t.Errorf("%s of %s: %t, %v", c.filter, c.value, got, err)
		}
	}
}

func TestGeometryErrors(t *testing.T) {
	for spec, want := range map[string]string{
		`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[6,6],[6,0],[0,6],[0,0]]]}}}`: "Edges 0 and 2 cross",
		`{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,0],[0,6],[6,6]]]}}}`:             "Loop is not closed",
		`{"$geoIntersects":{"$geometry":{"type":"MultiPoint","coordinates":[]}}}`:                         "MultiPoint coordinates must have at least 1 element",
		`{"$geoIntersects":{"$geometry":{"type":"GeometryCollection","geometries":[1]}}}`:                 `Element 0 of "geometries" is not an object`,
		`{"$near":[0,0],"$maxDistance":-1}`:                                                               "$maxDistance must be non-negative",
		`{"$nearSphere":[500,0]}`:                                                                         "Legacy point is out of bounds for spherical query",
	} {
		_, err := query.ParseFilter(parse(t, `{"l":`+spec+`}`), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

// $near takes a bare GeoJSON point, whose distances are metres along the surface, to lines and
// polygons as well.
func TestNearGeoJSON(t *testing.T) {
	f, err := query.ParseFilter(parse(t, `{"l":{"$near":{"type":"Point","coordinates":[0,0]}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]float64{
		`[1,0]`: 111318, `{"type":"LineString","coordinates":[[1,-5],[1,5]]}`: 111318,
		`{"type":"Polygon","coordinates":[[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}`: 0,
	} {
		d, _, ok := f.Near().Distance(parse(t, `{"l":`+value+`}`))
		if !ok || math.Abs(d-want) > 2 {
			t.Errorf("%s is %v metres away, %t, want %v", value, d, ok, want)
		}
	}
	if !f.Near().Uses("2dsphere") || f.Near().Uses("2d") {
		t.Error("a GeoJSON point needs a 2dsphere index")
	}
}

func parse(t *testing.T, text string) bson.Raw {
	t.Helper()
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}
