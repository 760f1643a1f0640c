package query

import "allium/mongotest/internal/srverr"

// CheckMeta refuses metadata that the query does not produce.
func CheckMeta(filter *Filter, sort *Sort, proj *Projection) error {
	needs := func(name string) bool {
		return proj != nil && proj.NeedsMeta(name) || sort != nil && sort.NeedsMeta(name)
	}
	for _, m := range []struct {
		name, what string
		have       bool
	}{
		{"textScore", "text score", filter != nil && filter.NeedsTextIndex()},
		{"geoNearDistance", "$geoNear distance", filter != nil && filter.NeedsGeoIndex()},
		{"geoNearPoint", "$geoNear point", filter != nil && filter.NeedsGeoIndex()},
	} {
		if needs(m.name) && !m.have {
			return srverr.New(40218, "query requires %s metadata, but it is not available", m.what)
		}
	}
	if proj != nil && proj.NeedsMeta("sortKey") && sort == nil {
		return srverr.New(srverr.BadValue, "cannot use sortKey $meta projection without a sort")
	}
	return nil
}
