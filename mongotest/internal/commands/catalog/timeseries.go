package catalog

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Options and indexes of time series collections, as the manual describes them: create, collMod,
// "Set Granularity for Time Series Data", "Time Series Indexes".

// granularities are how fine a time series is, with the span of a bucket in seconds.
var granularities = []struct {
	name string
	span int64
}{{"seconds", 3600}, {"minutes", 86400}, {"hours", 2592000}}

// maxBucketSpan is the greatest span of a bucket in seconds: a year.
const maxBucketSpan = 31536000

// granularity returns the position of a granularity, -1 if there is none of this name.
func granularity(name string) int {
	for i, g := range granularities {
		if g.name == name {
			return i
		}
	}
	return -1
}

// ownSpans reports whether clients may say how long buckets are, since 6.3.
func ownSpans(v release.Version) bool { return v.AtLeast(6, 3) }

// seriesField checks a field of the timeseries option of create or collMod, by its name there.
func seriesField(v release.Version, path, k string, x bson.RawValue) error {
	name := path + "." + k
	switch k {
	case "timeField", "metaField":
		if x.Type != bson.TypeString {
			return args.WrongType(name, x.Type, "string")
		}
	case "granularity":
		s, ok := x.StringValue()
		if !ok {
			return args.WrongType(name, x.Type, "string")
		}
		if granularity(s) < 0 {
			return srverr.New(srverr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", s, name)
		}
	case "bucketMaxSpanSeconds", "bucketRoundingSeconds":
		if k == "bucketRoundingSeconds" && !ownSpans(v) {
			return args.UnknownField(name)
		}
		if !x.IsNumber() {
			return args.WrongTypes(name, x.Type, "[long, int, decimal, double]")
		}
		if n, _ := args.NumberOf(x); n < 1 {
			return srverr.New(51024, "BSON field '%s' value must be >= 1, actual value '%d'", k, n)
		} else if n > maxBucketSpan {
			return srverr.New(51024, "BSON field '%s' value must be <= %d, actual value '%d'", k, maxBucketSpan, n)
		}
	default:
		return args.UnknownField(name)
	}
	return nil
}

// checkSeries checks the timeseries option of create, and what other options it stands with.
func (q *createSpec) checkSeries(v release.Version) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	if q.series == nil {
		if q.hasExpire && q.clustered.Type == 0 {
			return bad("'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
		}
		return nil
	}
	for k, x := range q.series.All() {
		if err := seriesField(v, "create.timeseries", k, x); err != nil {
			return err
		}
	}
	if q.series.Lookup("timeField").Type == 0 {
		return args.MissingField("create.timeseries.timeField")
	}
	for _, other := range []struct {
		name  string
		given bool
	}{
		{"capped", q.capped}, {"autoIndexId", q.autoIndex != nil}, {"idIndex", q.idIndex != nil}, {"validator", q.validator != nil},
		{"validationLevel", q.level != ""}, {"validationAction", q.action != ""}, {"viewOn", q.hasViewOn}, {"pipeline", q.pipeline.Type != 0},
		{"clusteredIndex", q.clustered.Type != 0}, {"changeStreamPreAndPostImages", q.images != nil},
	} {
		if other.given {
			return bad("%s: 'timeseries' is not allowed with '%s'", q.ns, other.name)
		}
	}
	timeField, metaField := bsondoc.MustString(q.series.Lookup("timeField")), bsondoc.MustString(q.series.Lookup("metaField"))
	switch {
	case strings.Contains(timeField, "."):
		return bad("%s: 'timeField' must be a top-level field and not contain a '.'", q.ns)
	case strings.Contains(metaField, "."):
		return bad("%s: 'metaField' must be a top-level field and not contain a '.'", q.ns)
	case metaField == "_id":
		return bad("%s: 'metaField' cannot be \"_id\"", q.ns)
	case metaField == timeField:
		return bad("%s: 'metaField' cannot be the same as 'timeField'", q.ns)
	}
	return checkSpans(v, q.series)
}

// checkSpans checks that granularity and spans go with each other: before 6.3 there are only the
// spans of the granularities; since then both spans are given, with the same value, or none.
func checkSpans(v release.Version, spec bson.Raw) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	span, hasSpan := args.NumberOf(spec.Lookup("bucketMaxSpanSeconds"))
	rounding, hasRounding := args.NumberOf(spec.Lookup("bucketRoundingSeconds"))
	g := max(granularity(bsondoc.MustString(spec.Lookup("granularity"))), 0)
	hasGranularity := spec.Lookup("granularity").Type != 0
	switch {
	case !hasSpan && !hasRounding:
		return nil
	case !hasRounding && span == granularities[g].span && (hasGranularity || !ownSpans(v)):
		return nil
	case !ownSpans(v) || hasGranularity && !hasRounding:
		return bad("Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of %d for the provided granularity", granularities[g].span)
	case hasGranularity:
		return bad("Timeseries 'granularity' cannot be set together with 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds'")
	case hasSpan != hasRounding:
		return bad("Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other")
	case span != rounding:
		return bad("Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must be equal")
	}
	return nil
}

// appendTimeSeries appends the timeseries option with its defaults filled in.
func appendTimeSeries(raw []byte, spec bson.Raw) []byte {
	at, raw := bson.BeginDocumentElement(raw, "timeseries")
	for _, k := range []string{"timeField", "metaField"} {
		if v := spec.Lookup(k); v.Type != 0 {
			raw = bson.AppendRawValue(raw, k, v)
		}
	}
	if rounding, ok := args.NumberOf(spec.Lookup("bucketRoundingSeconds")); ok {
		span, _ := args.NumberOf(spec.Lookup("bucketMaxSpanSeconds"))
		raw = bson.AppendInt32(raw, "bucketRoundingSeconds", int32(rounding))
		raw = bson.AppendInt32(raw, "bucketMaxSpanSeconds", int32(span))
		return bson.EndDocument(raw, at)
	}
	g := granularities[max(granularity(bsondoc.MustString(spec.Lookup("granularity"))), 0)]
	raw = bson.AppendString(raw, "granularity", g.name)
	raw = bson.AppendInt32(raw, "bucketMaxSpanSeconds", int32(g.span))
	return bson.EndDocument(raw, at)
}

// changeSeries returns the timeseries option as collMod changes it, without the defaults. Buckets
// can become longer, not shorter.
func changeSeries(v release.Version, c *store.Coll, change bson.Raw) (bson.Raw, error) {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	for k, x := range change.All() {
		if k == "timeField" || k == "metaField" {
			return nil, args.UnknownField("collMod.timeseries." + k)
		}
		if err := seriesField(v, "collMod.timeseries", k, x); err != nil {
			return nil, err
		}
	}
	if err := checkSpans(v, change); err != nil {
		return nil, err
	}
	old := bson.Raw(c.Raw.Lookup("timeseries").Value)
	oldSpan, _ := args.NumberOf(old.Lookup("bucketMaxSpanSeconds"))
	was := granularity(bsondoc.MustString(old.Lookup("granularity")))
	next := change
	if s, ok := change.Lookup("granularity").StringValue(); ok {
		g := granularity(s)
		switch {
		case was >= 0 && (g < was || g > was+1), was < 0 && granularities[g].span < oldSpan:
			return nil, bad("Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'.")
		}
	} else if span, ok := args.NumberOf(change.Lookup("bucketMaxSpanSeconds")); !ok {
		next = old
	} else if span < oldSpan {
		return nil, bad("Invalid transition for timeseries.bucketMaxSpanSeconds. Can only increase from %d", oldSpan)
	}
	at, spec := bson.BeginDocument(nil)
	for _, k := range []string{"timeField", "metaField"} {
		if x := old.Lookup(k); x.Type != 0 {
			spec = bson.AppendRawValue(spec, k, x)
		}
	}
	for k, x := range next.All() {
		if k != "timeField" && k != "metaField" {
			spec = bson.AppendRawValue(spec, k, x)
		}
	}
	return bson.EndDocument(spec, at), nil
}

// setSeries returns a collection's options with the timeseries option as collMod changes it.
func setSeries(r *server.Request, c *store.Coll, raw, change bson.Raw) (bson.Raw, error) {
	spec, err := changeSeries(r.Node.Config().Version, c, change)
	if err != nil {
		return nil, err
	}
	at, whole := bson.BeginDocument(nil)
	whole = bson.EndDocument(appendTimeSeries(whole, spec), at)
	return setOption(raw, "timeseries", bson.Raw(whole).Lookup("timeseries"), false), nil
}

// seriesIndex returns the index that a time series collection with a meta field gets by itself
// since 6.3: on the meta and the time field; nil if there is none.
func (q *createSpec) seriesIndex(r *server.Request, c *store.Coll) (*store.IndexInfo, error) {
	meta := bsondoc.MustString(q.series.Lookup("metaField"))
	if q.series == nil || meta == "" || !r.Node.Config().Version.AtLeast(6, 3) {
		return nil, nil
	}
	time := bsondoc.MustString(q.series.Lookup("timeField"))
	spec, err := r.ParseIndex(bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("key", bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendInt32(bson.AppendInt32(d.B, meta, 1), time, 1)
		}))
		d.Str("name", meta+"_1_"+time+"_1")
	}), true)
	if err != nil {
		return nil, err
	}
	return r.FinishIndex(spec, c)
}

// checkSeriesIndex refuses the indexes that a time series collection cannot have.
func checkSeriesIndex(v release.Version, c *store.Coll, x *store.IndexInfo) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	spec := bson.Raw(c.Raw.Lookup("timeseries").Value)
	timeField, metaField := bsondoc.MustString(spec.Lookup("timeField")), bsondoc.MustString(spec.Lookup("metaField"))
	isMeta := func(path string) bool {
		return metaField != "" && (path == metaField || strings.HasPrefix(path, metaField+"."))
	}
	special := func(kind string) bool {
		return slices.ContainsFunc(x.Fields, func(f store.IndexField) bool { return f.Special == kind })
	}
	switch {
	case x.Unique || x.PrepareUnique:
		return bad("Unique indexes are not supported on time-series collections")
	case x.Text != nil || special("text"):
		return bad("Text indexes are not supported on time-series collections")
	case x.Partial != nil && !v.AtLeast(6, 0):
		return bad("Partial indexes are not supported on time-series collections")
	case x.Sparse && !v.AtLeast(6, 0):
		return bad("Sparse indexes are not supported on time-series collections")
	case x.Expire == nil:
	case !v.AtLeast(6, 3):
		return bad("TTL indexes are not supported on time-series collections")
	case len(x.Fields) != 1 || x.Fields[0].Path != timeField:
		return bad("TTL indexes on non-time fields are not supported on time-series collections")
	case x.Partial == nil:
		return bad("TTL indexes on time-series collections require a partialFilterExpression on the metadata field")
	default:
		if !series.OnlyMeta(x.Spec.Lookup("partialFilterExpression").Value, metaField) {
			return bad("TTL indexes on time-series collections require a partialFilterExpression on the metadata field")
		}
	}
	if v.AtLeast(6, 0) {
		return nil
	}
	for _, f := range x.Fields {
		if f.Path != timeField && !isMeta(f.Path) {
			return srverr.New(srverr.CannotCreateIndex, "Invalid index spec for time-series collection '%s': only the time and the meta field can be indexed, not '%s'", c.NS, f.Path)
		}
	}
	return nil
}
