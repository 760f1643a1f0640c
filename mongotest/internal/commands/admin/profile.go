package admin

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{Name: "profile", Needs: server.OnDB("enableProfiler"), Where: server.Anywhere,
		Run: runProfile})
}

// profileArgs are the arguments of profile.
type profileArgs struct {
	level   int64 // -1: show what is set
	slow    int64
	hasSlow bool
	spec    bson.RawValue // filter
	filter  *query.Filter // nil: none is given
}

func parseProfile(r *server.Request) (a profileArgs, err error) {
	number := func(name string, v bson.RawValue) (int64, bool, error) {
		switch {
		case v.IsZero() || args.IsNull(v):
			return 0, false, nil
		case !v.IsNumber():
			return 0, false, args.WrongNumber(r.Version(), "profile", name, v)
		}
		n, _ := args.NumberOf(v)
		return n, true, nil
	}
	if err := args.CheckParsed(r, r.Cmd.Name, "slowms", "sampleRate", "filter"); err != nil {
		return a, err
	}
	if v := r.Arg(); args.IsNull(v) && r.Version().AllParsed() {
		return a, args.MissingField("profile.profile")
	}
	level, given, err := number("profile", r.Arg())
	if err != nil {
		return a, err
	}
	if a.level = level; !given {
		a.level = -1
	}
	if a.slow, a.hasSlow, err = number("slowms", r.Body.Lookup("slowms")); err != nil {
		return a, err
	}
	rate := r.Body.Lookup("sampleRate")
	if _, _, err := number("sampleRate", rate); err != nil {
		return a, err
	}
	if f := query.Float(rate); r.Version().AllParsed() && rate.IsNumber() && (f < 0 || f > 1) {
		return a, srverr.New(srverr.BadValue, "'sampleRate' must be between 0.0 and 1.0 inclusive")
	}
	if r.Routing != nil && a.level != 0 && a.level != -1 {
		settings := "'slowms', 'sampleRate' or 'filter'"
		if !r.Version().AtLeast(5, 0) {
			settings = "'slowms' and 'sampleRate'"
		}
		return a, srverr.New(
			srverr.BadValue, "Profiling is not permitted on mongoS: the 'profile' field should be 0 to change %s settings for logging, or -1 to view current values", settings)
	}
	a.spec = bsondoc.CopyValue(r.Body.Lookup("filter")) // it stays, and the filter that is made of it
	if s, _ := a.spec.StringValue(); r.Version().AllParsed() && a.spec.Type != 0 &&
		a.spec.Type != bson.TypeEmbeddedDocument && s != "unset" {
		return a, srverr.New(srverr.BadValue, "Expected an object or the string 'unset'.")
	}
	if doc, ok := a.spec.Document(); ok {
		if _, err = query.ParseFilter(doc, r.FullOptions(r.DB, nil, nil)); err == nil {
			// Once more, as this one outlives the command.
			a.filter, err = query.ParseFilter(doc, r.CheckedOptions(r.DB, nil, nil, nil))
		}
	}
	return a, err
}

func runProfile(r *server.Request, dst []byte) ([]byte, error) {
	a, err := parseProfile(r)
	if err != nil {
		return dst, err
	}
	was, limits := r.Node.Profiling(r.DB)
	if a.level >= 0 && a.level <= 2 {
		next := was
		next.Level = int32(a.level)
		switch s, _ := a.spec.StringValue(); {
		case a.filter != nil:
			next.Spec, next.Filter = a.spec.Value, a.filter
		case s == "unset":
			next.Spec, next.Filter = nil, nil
		}
		if err := r.Profile(next); err != nil {
			return dst, err
		}
	}
	if a.level >= -1 && a.level <= 2 {
		next := limits
		if a.hasSlow {
			next.SlowMS = int32(min(max(a.slow, -1<<31), 1<<31-1))
		}
		if v := r.Body.Lookup("sampleRate"); v.IsNumber() && query.Float(v) >= 0 && query.Float(v) <= 1 {
			next.SampleRate = query.Float(v)
		}
		r.Node.SetProfileLimits(next)
	}
	dst = bsondoc.Append(dst, "was", was.Level, "slowms", limits.SlowMS, "sampleRate", limits.SampleRate)
	if was.Spec != nil {
		dst = bson.AppendDocument(dst, "filter", was.Filter.Document())
		dst = bson.AppendString(
			dst, "note", "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.")
	}
	return dst, nil
}
