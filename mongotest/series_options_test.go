package mongotest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// create refuses what is no time series, and other options beside it, by version.
func TestTimeSeriesOptions(t *testing.T) {
	for _, tt := range []struct {
		versions, options string
		code              int64
		text              string
	}{
		{"5.0 8.0", `"timeseries": {"timeField": "t"}`, 0, ""},
		{"5.0 8.0", `"timeseries": {"timeField": "t", "metaField": "m", "granularity": "hours", "bucketMaxSpanSeconds": 2592000}, "expireAfterSeconds": 10`, 0, ""},
		{"5.0 8.0", `"timeseries": {}`, 40414, "BSON field 'create.timeseries.timeField' is missing but a required field"},
		{"5.0 8.0", `"timeseries": {"timeField": 1}`, 14, "BSON field 'create.timeseries.timeField' is the wrong type 'int', expected type 'string'"},
		{"5.0 8.0", `"timeseries": {"timeField": "t", "x": 1}`, 40415, "BSON field 'create.timeseries.x' is an unknown field."},
		{"5.0 8.0", `"timeseries": {"timeField": "t", "granularity": "days"}`, 2, "Enumeration value 'days' for field 'create.timeseries.granularity' is not a valid value."},
		{"5.0 8.0", `"timeseries": {"timeField": "t", "bucketMaxSpanSeconds": 0}`, 51024, "BSON field 'bucketMaxSpanSeconds' value must be >= 1, actual value '0'"},
		{"5.0 8.0", `"timeseries": {"timeField": "a.b"}`, 72, "db.c: 'timeField' must be a top-level field and not contain a '.'"},
		{"5.0 8.0", `"timeseries": {"timeField": "t", "metaField": "a.b"}`, 72, "db.c: 'metaField' must be a top-level field and not contain a '.'"},
		{"5.0 8.0", `"timeseries": {"timeField": "t", "metaField": "_id"}`, 72, "db.c: 'metaField' cannot be \"_id\""},
		{"5.0 8.0", `"timeseries": {"timeField": "t", "metaField": "t"}`, 72, "db.c: 'metaField' cannot be the same as 'timeField'"},
		{"5.0 8.0", `"timeseries": {"timeField": "t"}, "capped": true, "size": 1000`, 72, "db.c: 'timeseries' is not allowed with 'capped'"},
		{"5.0 8.0", `"timeseries": {"timeField": "t"}, "validator": {}`, 72, "db.c: 'timeseries' is not allowed with 'validator'"},
		{"5.0 8.0", `"timeseries": {"timeField": "t"}, "viewOn": "x"`, 72, "db.c: 'timeseries' is not allowed with 'viewOn'"},
		{"5.0 8.0", `"expireAfterSeconds": 10`, 72, "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified"},
		{"5.0 6.0", `"timeseries": {"timeField": "t", "bucketMaxSpanSeconds": 60}`, 72,
			"Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of 3600 for the provided granularity"},
		{"5.0 6.0", `"timeseries": {"timeField": "t", "bucketRoundingSeconds": 60}`, 40415, "BSON field 'create.timeseries.bucketRoundingSeconds' is an unknown field."},
		{"7.0 8.0", `"timeseries": {"timeField": "t", "bucketMaxSpanSeconds": 60, "bucketRoundingSeconds": 60}`, 0, ""},
		{"7.0 8.0", `"timeseries": {"timeField": "t", "bucketMaxSpanSeconds": 60}`, 72, "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other"},
		{"7.0 8.0", `"timeseries": {"timeField": "t", "bucketMaxSpanSeconds": 60, "bucketRoundingSeconds": 30}`, 72, "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must be equal"},
	} {
		for version := range strings.SplitSeq(tt.versions, " ") {
			d := mongotest.Start(t, mongotest.Version(version))
			c := dial(t, d.Hosts()[0])
			reply := command(t, c, extJSON(t, `{"create": "c", `+tt.options+`, "$db": "db"}`))
			code, _ := reply.Lookup("code").AsInt64()
			text, _ := reply.Lookup("errmsg").StringValue()
			if code != tt.code || text != tt.text {
				t.Errorf("%s: %s\n got %d %s\nwant %d %s", version, tt.options, code, text, tt.code, tt.text)
			}
		}
	}
}

// seriesOptions returns the timeseries option that listCollections shows.
func seriesOptions(t *testing.T, reply bson.Raw) string {
	t.Helper()
	list, _ := ok(t, reply).Lookup("cursor", "firstBatch").Array()
	for v := range list.Values() {
		if c := bson.Raw(v.Value); c.Lookup("type").String() == `"timeseries"` {
			return c.Lookup("options", "timeseries").String() + " " + c.Lookup("options", "expireAfterSeconds").String()
		}
	}
	return "no time series"
}

// collMod makes buckets longer, not shorter, and changes when measurements expire.
func TestTimeSeriesCollMod(t *testing.T) {
	const transition = "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'."
	for _, version := range []string{"5.0", "8.0"} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(version))
		c := dial(t, d.Hosts()[0])
		ok(t, command(t, c, extJSON(t, `{"create": "c", "timeseries": {"timeField": "t", "metaField": "m"}, "expireAfterSeconds": 1000000000, "$db": "db"}`)))
		ok(t, command(t, c, extJSON(t, `{"insert": "plain", "documents": [{"_id": 1}], "$db": "db"}`)))
		ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"t": {"$date": {"$numberLong": "1600000000000"}}, "m": 1}, {"t": {"$date": {"$numberLong": "1600007200000"}}, "m": 1}], "$db": "db"}`)))
		buckets := func() int {
			return int(firstBatch(ok(t, command(t, c, extJSON(t, `{"find": "system.buckets.c", "$db": "db"}`)))))
		}
		if n := buckets(); n != 2 {
			t.Errorf("%s: %d buckets of seconds", version, n)
		}
		checkErrors(t, d, []errorStep{
			{`{"collMod": "plain", "timeseries": {"granularity": "hours"}, "$db": "db"}`, 72, "option only supported on a time-series collection: timeseries"},
			{`{"collMod": "c", "validator": {}, "$db": "db"}`, 72, "option not supported on a time-series collection: validator"},
			{`{"collMod": "c", "timeseries": {"timeField": "x"}, "$db": "db"}`, 40415, "BSON field 'collMod.timeseries.timeField' is an unknown field."},
			{`{"collMod": "c", "timeseries": {"granularity": "days"}, "$db": "db"}`, 2, "Enumeration value 'days' for field 'collMod.timeseries.granularity' is not a valid value."},
			{`{"collMod": "c", "timeseries": {"granularity": "hours"}, "$db": "db"}`, 72, transition},
			{`{"collMod": "c", "timeseries": {"granularity": "seconds"}, "$db": "db"}`, 0, ""},
			{`{"collMod": "c", "timeseries": {"granularity": "minutes"}, "$db": "db"}`, 0, ""},
			{`{"collMod": "c", "timeseries": {"granularity": "seconds"}, "$db": "db"}`, 72, transition},
			{`{"collMod": "c", "timeseries": {"granularity": "hours"}, "expireAfterSeconds": 2000000000, "$db": "db"}`, 0, ""},
		})
		const want = `{"timeField":"t","metaField":"m","granularity":"hours","bucketMaxSpanSeconds":2592000} 2000000000`
		if got := seriesOptions(t, command(t, c, extJSON(t, `{"listCollections": 1, "$db": "db"}`))); got != want {
			t.Errorf("%s: the options are %s, want %s", version, got, want)
		}
		if n := buckets(); n != 1 {
			t.Errorf("%s: %d buckets of hours", version, n)
		}
		ok(t, command(t, c, extJSON(t, `{"collMod": "c", "expireAfterSeconds": "off", "$db": "db"}`)))
		d.ShiftClock(100 * 365 * 24 * time.Hour)
		if n := buckets(); n != 1 {
			t.Errorf("%s: %d buckets, although they do not expire", version, n)
		}
		ok(t, command(t, c, extJSON(t, `{"collMod": "c", "expireAfterSeconds": 3600, "$db": "db"}`)))
		d.ShiftClock(time.Minute)
		if n := buckets(); n != 0 {
			t.Errorf("%s: %d buckets, although they have expired", version, n)
		}
		if version == "5.0" {
			continue
		}
		checkErrors(t, d, []errorStep{
			{`{"collMod": "c", "timeseries": {"bucketMaxSpanSeconds": 3600, "bucketRoundingSeconds": 3600}, "$db": "db"}`, 72,
				"Invalid transition for timeseries.bucketMaxSpanSeconds. Can only increase from 2592000"},
			{`{"collMod": "c", "timeseries": {"bucketMaxSpanSeconds": 2600000, "bucketRoundingSeconds": 2600000}, "$db": "db"}`, 0, ""},
		})
		const own = `{"timeField":"t","metaField":"m","bucketRoundingSeconds":2600000,"bucketMaxSpanSeconds":2600000} 3600`
		if got := seriesOptions(t, command(t, c, extJSON(t, `{"listCollections": 1, "$db": "db"}`))); got != own {
			t.Errorf("%s: the options are %s, want %s", version, got, own)
		}
	}
}

// Which indexes a time series can have depends on the version; since 6.3 it has one by itself. They
// are used, and the TTL index on the time deletes what its filter on the meta field says.
func TestTimeSeriesIndexes(t *testing.T) {
	const ttl = `"key": {"t": 1}, "name": "ttl", "expireAfterSeconds": 60`
	for _, tt := range []struct {
		version, spec string
		code          int64
		text          string
	}{
		{"5.0", `"key": {"m.s": 1, "t": -1}, "name": "x"`, 0, ""},
		{"5.0", `"key": {"v": 1}, "name": "x"`, 67, "Invalid index spec for time-series collection 'db.c': only the time and the meta field can be indexed, not 'v'"},
		{"6.0", `"key": {"v": 1}, "name": "x"`, 0, ""},
		{"5.0", `"key": {"t": 1}, "name": "x", "unique": true`, 72, "Unique indexes are not supported on time-series collections"},
		{"8.0", `"key": {"v": 1}, "name": "x", "unique": true`, 72, "Unique indexes are not supported on time-series collections"},
		{"8.0", `"key": {"m": "text"}, "name": "x"`, 72, "Text indexes are not supported on time-series collections"},
		{"5.0", `"key": {"t": 1}, "name": "x", "partialFilterExpression": {"m.s": 1}`, 72, "Partial indexes are not supported on time-series collections"},
		{"6.0", `"key": {"t": 1}, "name": "x", "partialFilterExpression": {"m.s": 1}`, 0, ""},
		{"6.0", ttl, 72, "TTL indexes are not supported on time-series collections"},
		{"8.0", ttl, 72, "TTL indexes on time-series collections require a partialFilterExpression on the metadata field"},
		{"8.0", ttl + `, "partialFilterExpression": {"v": 1}`, 72, "TTL indexes on time-series collections require a partialFilterExpression on the metadata field"},
		{"8.0", `"key": {"v": 1}, "name": "x", "expireAfterSeconds": 60`, 72, "TTL indexes on non-time fields are not supported on time-series collections"},
		{"8.0", ttl + `, "partialFilterExpression": {"m.s": 1}`, 0, ""},
	} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(tt.version))
		c := dial(t, d.Hosts()[0])
		ok(t, command(t, c, extJSON(t, `{"create": "c", "timeseries": {"timeField": "t", "metaField": "m"}, "$db": "db"}`)))
		checkErrors(t, d, []errorStep{{`{"createIndexes": "c", "indexes": [{` + tt.spec + `}], "$db": "db"}`, tt.code, tt.text}})
		var names []string
		list, _ := ok(t, command(t, c, extJSON(t, `{"listIndexes": "c", "$db": "db"}`))).Lookup("cursor", "firstBatch").Array()
		for v := range list.Values() {
			name, _ := bson.Raw(v.Value).Lookup("name").StringValue()
			names = append(names, name)
		}
		var want []string
		if tt.version == "8.0" {
			want = append(want, "m_1_t_1")
		}
		if tt.code == 0 {
			name, _ := extJSON(t, `{`+tt.spec+`}`).Lookup("name").StringValue()
			want = append(want, name)
		}
		if fmt.Sprint(names) != fmt.Sprint(want) {
			t.Errorf("%s: %s: indexes %v, want %v", tt.version, tt.spec, names, want)
		}
		if tt.code != 0 || !strings.Contains(tt.spec, "expire") {
			continue
		}
		ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"t": {"$date": {"$numberLong": "1600000000000"}}, "m": {"s": 1}}, {"t": {"$date": {"$numberLong": "1600000000000"}}, "m": {"s": 2}}], "$db": "db"}`)))
		d.ShiftClock(time.Minute)
		reply := ok(t, command(t, c, extJSON(t, `{"find": "c", "$db": "db"}`)))
		if left := reply.Lookup("cursor", "firstBatch", "0", "m", "s").String(); firstBatch(reply) != 1 || left != "2" {
			t.Errorf("%s: left are %v", tt.version, reply.Lookup("cursor", "firstBatch"))
		}
	}
}
