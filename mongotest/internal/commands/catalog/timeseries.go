package catalog

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// How time series collections are created.

// checkSeries checks the timeseries option of create, and what other options it stands with.
func (q *createSpec) checkSeries(v release.Version) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	if q.series == nil {
		if q.hasExpire && q.clustered.Type == 0 {
			return bad("'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
		}
		return nil
	}
	if err := series.CheckFields(v, "create.timeseries", q.series); err != nil {
		return err
	}
	if q.series.Lookup("timeField").Type == 0 {
		return args.MissingField("create.timeseries.timeField")
	}
	for _, other := range []struct {
		name  string
		given bool
	}{
		{"capped", q.capped}, {"autoIndexId", q.autoIndex != nil}, {"idIndex", q.idIndex != nil},
		{"validator", q.validator != nil},
		{"validationLevel", q.level != ""}, {"validationAction", q.action != ""}, {"viewOn", q.hasViewOn},
		{"pipeline", q.pipeline.Type != 0},
		{"clusteredIndex", q.clustered.Type != 0}, {"changeStreamPreAndPostImages", q.images != nil},
	} {
		if other.given {
			return bad("%s: 'timeseries' is not allowed with '%s'", q.ns, other.name)
		}
	}
	return series.CheckOptions(v, q.ns, q.series)
}

// seriesIndex returns the index that a time series collection with a meta field gets by itself
// since 6.3: on the meta and the time field; nil if there is none.
func seriesIndex(r *server.Request, c *store.Coll) (*store.IndexInfo, error) {
	time, meta := series.Fields(c)
	if meta == "" || !r.Version().AtLeast(6, 3) {
		return nil, nil
	}
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
