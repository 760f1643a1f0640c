package catalog

import (
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/srverr"
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
	if f := q.series.Lookup("timeField"); f.Type == 0 || args.IsNull(f) {
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
