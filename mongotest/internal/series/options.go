package series

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Options and indexes of time series collections, as the manual describes them: create, collMod,
// "Set Granularity for Time Series Data", "Time Series Indexes".

// granularity is how fine a time series is.
type granularity struct {
	name           string
	span, rounding int64 // of a bucket and of its beginning, in seconds
}

var granularities = []granularity{{"seconds", 3600, 60}, {"minutes", 86400, 3600}, {"hours", 2592000, 86400}}

// granularityOf returns the position of a granularity, -1 if there is none of this name.
func granularityOf(name string) int {
	return slices.IndexFunc(granularities, func(g granularity) bool { return g.name == name })
}

// maxBucketSpan is the greatest span of a bucket in seconds: a year.
const maxBucketSpan = 31536000

// spans is what a timeseries option says about the spans of buckets.
type spans struct {
	granularity    string // "": not given
	span, rounding int64  // in seconds; 0: not given
}

func spansOf(spec bson.Raw) (s spans) {
	s.granularity = bsondoc.MustString(spec.Lookup("granularity"))
	s.span, _ = args.NumberOf(spec.Lookup("bucketMaxSpanSeconds"))
	s.rounding, _ = args.NumberOf(spec.Lookup("bucketRoundingSeconds"))
	return s
}

// coarse returns the granularity, which is seconds if none is given.
func (s spans) coarse() granularity { return granularities[max(granularityOf(s.granularity), 0)] }

// ownSpans reports whether clients may say how long buckets are, since 6.3.
func ownSpans(v release.Version) bool { return v.AtLeast(6, 3) }

func invalid(format string, args ...any) error {
	return srverr.New(srverr.InvalidOptions, format, args...)
}

// CheckFields checks the fields of a timeseries option one by one. Errors call it by its path.
func CheckFields(v release.Version, path string, spec bson.Raw) error {
	for k, x := range spec.All() {
		if args.IsNull(x) && v.AllParsed() && fieldNames[k] {
			continue
		}
		if err := checkField(v, path+"."+k, k, x); err != nil {
			return err
		}
	}
	return nil
}

// fieldNames are the fields of the option that may be null, which is as if they were not given.
var fieldNames = map[string]bool{
	"timeField": true, "metaField": true, "granularity": true,
	"bucketMaxSpanSeconds": true, "bucketRoundingSeconds": true,
}

func checkField(v release.Version, name, k string, x bson.RawValue) error {
	switch s, isString := x.StringValue(); k {
	case "timeField", "metaField", "granularity":
		if !isString {
			return args.WrongType(name, x.Type, "string")
		}
		if k == "granularity" && granularityOf(s) < 0 {
			return srverr.New(srverr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", s, name)
		}
		return nil
	case "bucketMaxSpanSeconds", "bucketRoundingSeconds":
		if k == "bucketRoundingSeconds" && !ownSpans(v) {
			break
		}
		if !x.IsNumber() {
			return args.WrongNumber(v, strings.TrimSuffix(name, "."+k), k, x)
		}
		if n, _ := args.NumberOf(x); n < 1 {
			return args.TooSmall(v, k, 1, n)
		} else if n > maxBucketSpan {
			return args.TooLarge(v, k, maxBucketSpan, n)
		}
		return nil
	}
	return args.UnknownField(name)
}

// CheckOptions checks that the fields of a timeseries option go with each other.
func CheckOptions(v release.Version, ns string, spec bson.Raw) error {
	timeField, metaField := fieldsOf(spec)
	switch {
	case strings.Contains(timeField, "."):
		return invalid("%s: 'timeField' must be a top-level field and not contain a '.'", ns)
	case strings.Contains(metaField, "."):
		return invalid("%s: 'metaField' must be a top-level field and not contain a '.'", ns)
	case metaField == "_id":
		return invalid("%s: 'metaField' cannot be \"_id\"", ns)
	case v.AllParsed() && strings.IndexByte(timeField+metaField, 0) >= 0:
		return srverr.New(srverr.BadValue, "%s: 'timeField' and 'metaField' cannot contain NUL bytes", ns)
	case metaField == timeField && spec.Lookup("metaField").Type == bson.TypeString:
		return invalid("%s: 'metaField' cannot be the same as 'timeField'", ns)
	}
	return spansOf(spec).check(v)
}

// CheckOption checks a timeseries option by itself: its fields, and that the granularity and the
// spans go with each other.
func CheckOption(v release.Version, path string, spec bson.Raw) error {
	if err := CheckFields(v, path, spec); err != nil {
		return err
	}
	if args.IsNull(spec.Lookup("timeField")) || spec.Lookup("timeField").Type == 0 {
		return args.MissingField(path + ".timeField")
	}
	return spansOf(spec).check(v)
}

// check checks that granularity and spans go with each other: before 6.3 there are only the spans
// of the granularities; since then both spans are given, with the same value, or none.
func (s spans) check(v release.Version) error {
	byDefault := s.coarse().span
	switch {
	case s.span == 0 && s.rounding == 0:
		return nil
	case s.rounding == 0 && s.span == byDefault && (s.granularity != "" || !ownSpans(v)):
		return nil
	case !ownSpans(v) || s.granularity != "" && s.rounding == 0:
		return invalid("Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of %d for the provided granularity", byDefault)
	case s.granularity != "":
		return invalid("Timeseries 'granularity' cannot be set together with 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds'")
	case s.span == 0 || s.rounding == 0:
		return invalid("Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other")
	case s.span != s.rounding:
		return invalid("Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must be equal")
	}
	return nil
}

// Complete returns the timeseries option of create with its defaults filled in.
func Complete(spec bson.Raw) bson.Raw { return spansOf(spec).complete(spec) }

// complete returns the option with the spans and the fields that spec names.
func (s spans) complete(spec bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for _, k := range []string{"timeField", "metaField"} {
			if v := spec.Lookup(k); v.Type != 0 && !args.IsNull(v) {
				d.Value(k, v.Type, v.Value)
			}
		}
		if s.rounding != 0 {
			d.B = bson.AppendInt32(d.B, "bucketRoundingSeconds", int32(s.rounding))
		} else {
			d.Str("granularity", s.coarse().name)
			s.span = s.coarse().span
		}
		d.B = bson.AppendInt32(d.B, "bucketMaxSpanSeconds", int32(s.span))
	})
}

// Change returns the timeseries option of a collection as collMod changes it. Buckets can become
// longer, not shorter.
func Change(v release.Version, c *store.Coll, change bson.Raw) (bson.Raw, error) {
	for k, x := range change.All() {
		name := "collMod.timeseries." + k
		if k == "timeField" || k == "metaField" {
			return nil, args.UnknownField(name)
		}
		if args.IsNull(x) && v.AllParsed() && fieldNames[k] {
			continue
		}
		if err := checkField(v, name, k, x); err != nil {
			return nil, err
		}
	}
	next := spansOf(change)
	if err := next.check(v); err != nil {
		return nil, err
	}
	spec := bson.Raw(c.Raw.Lookup("timeseries").Value)
	old := spansOf(spec)
	switch was, now := granularityOf(old.granularity), granularityOf(next.granularity); {
	case now >= 0:
		if was >= 0 && (now < was || now > was+1 && !v.AllParsed()) || was < 0 && granularities[now].span < old.span {
			return nil, invalid(
				"Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'.")
		}
	case next.span == 0:
		next = old
	case next.span < old.span:
		return nil, invalid("Invalid transition for timeseries.bucketMaxSpanSeconds. Can only increase from %d",
			old.span)
	}
	return next.complete(spec), nil
}

// CheckIndex refuses the indexes that a time series collection cannot have.
func CheckIndex(v release.Version, c *store.Coll, x *store.IndexInfo) error {
	timeField, metaField := Fields(c)
	onlyMeta := !slices.ContainsFunc(x.Fields, func(f store.IndexField) bool {
		_, isMeta := belowMeta(strings.TrimSuffix(f.Path, ".$**"), metaField)
		return !isMeta
	})
	special := func(kind string) bool {
		return slices.ContainsFunc(x.Fields, func(f store.IndexField) bool { return f.Special == kind })
	}
	switch {
	case x.Unique || x.PrepareUnique:
		return invalid("Unique indexes are not supported on time-series collections")
	case x.Text != nil || special("text"):
		return invalid("Text indexes are not supported on time-series collections")
	case x.Partial != nil && !v.AtLeast(6, 0):
		return invalid("Partial indexes are not supported on time-series collections")
	case x.Sparse && !v.AtLeast(6, 0):
		return invalid("Sparse indexes are not supported on time-series collections")
	case v.AllParsed() && !onlyMeta && x.Sparse:
		return invalid("Sparse indexes are not supported on time-series collections")
	case v.AllParsed() && !onlyMeta && (special("hashed") || special("2d")):
		return srverr.New(srverr.CannotCreateIndex,
			"Invalid index spec for time-series collection '%s': only the meta field can have such an index", c.NS)
	case v.AllParsed() && !onlyMeta && special("wildcard"): // of the least and the greatest values
		return srverr.New(7246201, "wildcard indexes do not allow more than one wildcard field")
	case v.AllParsed() && x.Partial != nil && x.Collation != nil:
		return srverr.New(srverr.IndexOptionsConflict,
			"Partial indexes on time-series collections cannot have a collation of their own")
	case x.Expire == nil:
	case !v.AtLeast(6, 3):
		return invalid("TTL indexes are not supported on time-series collections")
	case len(x.Fields) != 1 || x.Fields[0].Path != timeField:
		return invalid("TTL indexes on non-time fields are not supported on time-series collections")
	case x.Partial == nil || !OnlyMeta(x.Spec.Lookup("partialFilterExpression").Value, metaField):
		return invalid("TTL indexes on time-series collections require a partialFilterExpression on the metadata field")
	}
	if v.AtLeast(6, 0) {
		return nil
	}
	for _, f := range x.Fields {
		if _, isMeta := belowMeta(f.Path, metaField); f.Path != timeField && !isMeta {
			return srverr.New(srverr.CannotCreateIndex,
				"Invalid index spec for time-series collection '%s': only the time and the meta field can be indexed, not '%s'", c.NS, f.Path)
		}
	}
	return nil
}
