package cluster

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// configureQueryAnalyzer, and what it has in common with analyzeShardKey.

func init() {
	server.Register(&server.Command{Name: "configureQueryAnalyzer", AdminOnly: true,
		Needs: server.OnNamespace("configureQueryAnalyzer"), WriteConcern: true, Run: runQueryAnalyzer,
		Mongos: server.OnMongos{Config: true}})
	server.Register(&server.Command{Name: "analyzeShardKey", AdminOnly: true, Where: server.OptIn, ReadConcern: true,
		Needs: server.OnNamespace("enableSharding"), Run: runAnalyzeShardKey})
}

// analyzerSpec are the arguments of configureQueryAnalyzer.
type analyzerSpec struct {
	mode string
	rate bson.RawValue
}

var analyzerArgs = &args.Table[analyzerSpec]{Name: "configureQueryAnalyzer", Required: []string{"mode"},
	Value: args.String[analyzerSpec](nil), Fields: map[string]args.Field[analyzerSpec]{
		"mode": args.String(func(q *analyzerSpec) *string { return &q.mode }).Then(func(q *analyzerSpec,
			_ args.Value) error {
			if q.mode != "full" && q.mode != "off" {
				return srverr.New(srverr.BadValue,
					"Enumeration value '%s' for field 'configureQueryAnalyzer.mode' is not a valid value.", q.mode)
			}
			return nil
		}),
		"samplesPerSecond": args.Any(func(q *analyzerSpec) *bson.RawValue { return &q.rate }).Then(func(_ *analyzerSpec,
			v args.Value) error {
			if !v.IsNumber() {
				return args.WrongNumber(v.From.Version(), "configureQueryAnalyzer", v.Name, v.RawValue)
			}
			return nil
		}),
	}}

// maxSamplesPerSecond is how many queries of a collection may be sampled each second.
const maxSamplesPerSecond = 50

func runQueryAnalyzer(r *server.Request, dst []byte) ([]byte, error) {
	var q analyzerSpec
	if err := analyzerArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	rate := 0.0
	if q.mode == "full" {
		if q.rate.IsZero() {
			return dst, srverr.New(srverr.InvalidOptions,
				"Cannot set 'mode' to 'full' without specifying 'samplesPerSecond'")
		}
		if rate = asDouble(q.rate); !(rate > 0 && rate <= maxSamplesPerSecond) {
			return dst, srverr.New(srverr.InvalidOptions,
				"The value of 'samplesPerSecond' must be greater than 0 and at most %d", maxSamplesPerSecond)
		}
	}
	c, err := analyzed(r)
	if err != nil {
		return dst, err
	}
	r.NoteChange()
	data := r.Node.Data()
	old := data.Sampler().Configure(c.NS, c.UUID, rate, data.Clock.Now())
	if old > 0 {
		dst = bson.AppendDocument(dst, "oldConfiguration", bsondoc.Of("mode", "full", "samplesPerSecond", old))
	}
	now := bsondoc.Of("mode", "off")
	if rate > 0 {
		now = bsondoc.Of("mode", "full", "samplesPerSecond", rate)
	}
	return bson.AppendDocument(dst, "newConfiguration", now), nil
}

// asDouble returns a number as a double.
func asDouble(v bson.RawValue) float64 {
	if f, ok := v.Double(); ok {
		return f
	}
	n, _ := args.NumberOf(v)
	return float64(n)
}

// analyzed returns the collection whose queries a command is about. Only replica sets and clusters
// sample queries, and a cluster by its mongoses.
func analyzed(r *server.Request) (*store.Coll, error) {
	if r.Node.Role() == server.Standalone || r.Node.OfCluster() {
		return nil, server.RefuseAnalysis(r, r.Cmd.Name+" command")
	}
	db, ns, err := r.ShardedNS()
	if err != nil {
		return nil, err
	}
	if db == "admin" || db == "config" || db == "local" {
		return nil, srverr.New(srverr.IllegalOperation, "Cannot run the command on a collection of the %s database", db)
	}
	st, err := r.Snapshot(ns)
	if err != nil {
		return nil, err
	}
	c := st.Coll(ns)
	switch {
	case c == nil:
		return nil, srverr.New(srverr.NamespaceNotFound, "ns not found: %s", ns)
	case c.TimeSeries:
		return nil, srverr.New(srverr.IllegalOperation, "Operation not supported for a timeseries collection")
	case c.View:
		return nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	case c.Raw.Lookup("encryptedFields").Type != 0:
		return nil, srverr.New(srverr.IllegalOperation,
			"Operation not supported for a collection with queryable encryption enabled")
	}
	return c, nil
}
