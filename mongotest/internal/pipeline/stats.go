package pipeline

// Stages whose documents the deployment makes.

import (
	"slices"
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func init() {
	stats := func(check func(p *parser, name string, v bson.RawValue) (bson.Raw, error)) func(*parser, string,
		bson.RawValue) ([]stage, error) {
		return one(func(p *parser, name string, v bson.RawValue) (*statsStage, error) {
			spec, err := check(p, name, v)
			return &statsStage{p.rt, name, p.ns, spec}, err
		})
	}
	register(
		&stageDef{name: "$listSearchIndexes", parse: stats(checkListSearchIndexes), concern: "local", first: true,
			notInFacet: true, uses: uses("listSearchIndexes"), notV1: true},
		&stageDef{name: "$indexStats", parse: stats(checkIndexStats), noTxn: refusedInPlace, first: true,
			notInFacet: true, uses: uses("indexStats"), at: elsewhere, notV1: true},
		&stageDef{name: "$collStats", parse: stats(checkCollStats), noTxn: refusedInPlace, first: true,
			notInFacet: true, uses: uses("collStats"), at: elsewhere, v1Field: "count"},
		&stageDef{name: "$planCacheStats", parse: stats(checkPlanCacheStats), noTxn: refusedEarly, concern: "local",
			first: true, notInFacet: true, uses: uses("planCacheRead"), notV1: true},
		&stageDef{name: "$currentOp", precheck: precheckCurrentOp, parse: stats(checkCurrentOp), noTxn: refusedEarly,
			concern: "local", first: true, notInFacet: true, collectionless: true, uses: usesOfAll("inprog"),
			notV1: true},
		&stageDef{name: "$listSessions", precheck: precheckListSessions, parse: stats(checkListSessions),
			noTxn: refusedEarly, first: true, notInFacet: true, uses: usesOfAll("listSessions"), notV1: true},
		&stageDef{name: "$listLocalSessions", precheck: precheckListSessions, parse: stats(checkListSessions),
			noTxn: refusedEarly, concern: "local", first: true, notInFacet: true, collectionless: true,
			uses: usesOfAll("listSessions"), notV1: true},
		&stageDef{name: "$listCachedAndActiveUsers", parse: stats(checkListUsers), noTxn: refusedEarly,
			concern: "local", first: true, notInFacet: true, collectionless: true},
		&stageDef{name: "$listClusterCatalog", parse: stats(checkListClusterCatalog), noTxn: refusedEarly,
			concern: "local", first: true, notInFacet: true, collectionless: true, uses: usesOfCatalog, notV1: true,
			at: elsewhere},
		&stageDef{name: "$listCatalog", parse: stats(checkListCatalog), noTxn: refusedEarly, concern: "local",
			first: true, notInFacet: true, collectionless: true, uses: usesOfLists, notV1: true, at: elsewhere},
		&stageDef{name: "$shardedDataDistribution", parse: stats(checkDataDistribution), noTxn: refusedEarly,
			concern: "local", first: true, notInFacet: true, collectionless: true,
			uses: onCluster("shardedDataDistribution"), notV1: true, at: elsewhere},
		&stageDef{name: "$querySettings", parse: stats(checkQuerySettings), noTxn: refusedEarly, concern: "local",
			first: true, notInFacet: true, collectionless: true, uses: onCluster("querySettings"), notV1: true,
			at: elsewhere},
		&stageDef{name: "$listSampledQueries", parse: stats(checkSampledQueries), noTxn: refusedEarly,
			concern: "local", first: true, notInFacet: true, collectionless: true,
			uses: onCluster("listSampledQueries"), notV1: true, at: elsewhere},
		&stageDef{name: "$queryStats", parse: stats(checkQueryStats), noTxn: refusedEarly, concern: "local",
			first: true, notInFacet: true, collectionless: true, uses: usesOfQueryStats, notV1: true, at: elsewhere},
		&stageDef{name: "$changeStream", parse: stats(checkChangeStream), noTxn: refusedEarly, concern: "majority",
			changeStream: true, first: true, notInFacet: true, notInLookup: true, collectionless: true,
			uses: uses("find", "changeStream")},
		&stageDef{name: "$changeStreamSplitLargeEvent", parse: one(parseSplitLargeEvent), last: true,
			notInFacet: true, changeStream: true},
	)
}

// statsStage asks the deployment for its documents.
type statsStage struct {
	rt   *runtime
	name string
	ns   Namespace
	spec bson.Raw
}

func (*statsStage) isSource() {}

func (s *statsStage) open(src Iterator) (Iterator, error) {
	src.Close()
	if s.rt.o.Env == nil {
		return nil, srverr.New(srverr.CommandNotSupported, "%s is not supported here", s.name)
	}
	return s.rt.o.Env.Stats(s.name, s.ns, s.spec)
}

// SplitsLargeEvents reports whether the pipeline ends with $changeStreamSplitLargeEvent.
func (pl *Pipeline) SplitsLargeEvents() bool {
	if n := len(pl.stages); n > 0 {
		_, ok := pl.stages[n-1].stage.(*splitStage)
		return ok
	}
	return false
}

func checkIndexStats(_ *parser, _ string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	if !ok || !doc.IsEmpty() {
		return nil, srverr.New(28803, "The $indexStats stage specification must be an empty object")
	}
	return doc, nil
}

func checkListSearchIndexes(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	if !p.rt.o.Search {
		return nil, srverr.New(6047401, "$listSearchIndexes stage is only allowed on MongoDB Atlas")
	}
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(srverr.FailedToParse, "The %s stage specification must be an object. Found: %s", name,
			typeName(v))
	}
	for key, item := range doc.All() {
		switch {
		case key != "id" && key != "name":
			return nil, args.UnknownField(name + "." + key)
		case item.Type != bson.TypeString:
			return nil, args.WrongType(name+"."+key, item.Type, "string")
		}
	}
	if doc.Lookup("id").Type != 0 && doc.Lookup("name").Type != 0 {
		return nil, srverr.New(srverr.InvalidOptions, "Cannot set both 'name' and 'id' for %s.", name)
	}
	return doc, nil
}

// withoutNulls leaves out the fields that are null, which is as if they were not given.
func withoutNulls(doc bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for key, v := range doc.All() {
			if !args.IsNull(v) {
				d.Value(key, v.Type, v.Value)
			}
		}
	})
}

func checkCollStats(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	since50 := p.rt.o.Version.AtLeast(5, 0)
	if !ok && since50 {
		return nil, srverr.New(5447000, "$collStats must take a nested object but found: %s", elementText(name, v))
	}
	if !ok {
		return nil, srverr.New(40166, "$collStats must take a nested object but found: %s", elementText(name, v))
	}
	codes := map[string]int32{"latencyStats": 40167, "storageStats": 40279, "count": 40480, "queryExecStats": 31141}
	parsed := p.rt.o.Version.AllParsed()
	if parsed {
		doc = withoutNulls(doc)
	}
	for key, item := range doc.All() {
		code, known := codes[key]
		if parsed {
			switch {
			case !known:
				return nil, args.UnknownField("$collStats." + key)
			case item.Type != bson.TypeEmbeddedDocument:
				return nil, args.WrongType("$collStats."+key, item.Type, "object")
			case key == "count" && !bson.Raw(item.Value).IsEmpty():
				return nil, srverr.New(31170, "count argument must be an empty object, but got %s", elementText(key, item))
			}
			for field := range bson.Raw(item.Value).All() {
				if key == "latencyStats" && field != "histograms" {
					return nil, args.UnknownField("$collStats.latencyStats." + field)
				}
			}
			histograms := bson.Raw(item.Value).Lookup("histograms")
			if key == "latencyStats" && histograms.Type != 0 && histograms.Type != bson.TypeBoolean {
				return nil, args.WrongType("$collStats.latencyStats.histograms", histograms.Type, "bool")
			}
		}
		if !known {
			return nil, srverr.New(40168, "unrecognized option to $collStats: %s", key)
		}
		if key == "queryExecStats" && item.Type == bson.TypeEmbeddedDocument && !bson.Raw(item.Value).IsEmpty() {
			return nil, srverr.New(31170, "queryExecStats argument must be an empty object, but got %s",
				elementText(key, item))
		}
		if item.Type != bson.TypeEmbeddedDocument {
			kind := "an object"
			if key == "queryExecStats" {
				kind = "an empty object"
			}
			return nil, srverr.New(code, "%s argument must be %s, but got %s of type %s", key, kind,
				elementText(key, item), typeName(item))
		}
		if scale := bson.Raw(item.Value).Lookup("scale"); key == "storageStats" && since50 && scale.Type != 0 &&
			scale.Type != bson.TypeNull {
			if err := checkScale(p.rt.o.Version, scale); err != nil {
				return nil, err
			}
		}
		if histograms := bson.Raw(item.Value).Lookup("histograms"); key == "latencyStats" && histograms.Type != 0 &&
			histograms.Type != bson.TypeBoolean {
			return nil, srverr.New(40305, "histograms option to latencyStats must be bool, got %s of type %s",
				elementText(key, item), typeName(item))
		}
	}
	return doc, nil
}

// checkScale checks the unit of the figures that $collStats shows of a collection's storage.
func checkScale(version release.Version, v bson.RawValue) error {
	n, ok := args.NumberOf(v)
	switch {
	case !ok:
		return args.WrongNumber(version, "$collStats.storageStats", "scale", v)
	case n < 1:
		return args.TooSmall(version, "scale", 1, n)
	}
	return nil
}

func checkPlanCacheStats(p *parser, _ string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	all := doc.Lookup("allHosts")
	known := p.rt.o.Version.AllParsed() && !all.IsZero() &&
		len(bsondoc.Items(bson.RawValue{Type: bson.TypeArray, Value: doc})) == 1
	switch {
	case !ok:
		return nil, srverr.New(srverr.FailedToParse, "$planCacheStats value must be an object. Found: %s", typeName(v))
	case known && all.Type != bson.TypeBoolean:
		return nil, srverr.New(13111, `Wrong type for field (allHosts) %s != bool`, typeName(all))
	case known && all.AsBool() && !p.rt.o.Mongos:
		return nil, srverr.New(4503200, "$planCacheStats can take 'allHosts: true' on a sharded cluster alone")
	case known:
	case !doc.IsEmpty():
		return nil, srverr.New(srverr.FailedToParse, "$planCacheStats parameters object must be empty. Found: %s",
			typeName(v))
	}
	return doc, nil
}

// precheckCurrentOp looks at what decides which privileges $currentOp needs.
func precheckCurrentOp(_ *parser, _ string, v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return srverr.New(srverr.TypeMismatch, "$currentOp options must be specified in an object, but found: %s",
			typeName(v))
	}
	for key, item := range doc.All() {
		if (key == "allUsers" || key == "localOps") && item.Type != bson.TypeBoolean {
			return srverr.New(srverr.TypeMismatch,
				"The '%s' parameter of the $currentOp stage must be a boolean value, but found: %s", key,
				typeName(item))
		}
	}
	return nil
}

func checkCurrentOp(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	if p.ns.DB != "admin" || p.ns.Coll != "" {
		return nil, srverr.New(srverr.InvalidNamespace,
			"$currentOp must be run against the 'admin' database with {aggregate: 1}")
	}
	doc, _ := v.Document()
	for key, item := range doc.All() {
		switch key {
		case "targetAllNodes":
			if item.AsBool() && item.Type == bson.TypeBoolean && !p.rt.o.Mongos && p.rt.o.Version.AllParsed() {
				return nil, srverr.New(srverr.FailedToParse,
					"The 'targetAllNodes' parameter of the $currentOp stage is for sharded clusters alone")
			}
			fallthrough
		case "idleConnections", "idleSessions", "allUsers", "localOps", "truncateOps", "idleCursors", "backtrace":
			if item.Type != bson.TypeBoolean {
				if p.rt.o.Version.AllParsed() {
					return nil, args.WrongType(name+"."+key, item.Type, "bool")
				}
				return nil, srverr.New(srverr.FailedToParse,
					"The '%s' parameter of the $currentOp stage must be a boolean value, but found: %s", key,
					typeName(item))
			}
		default:
			if p.rt.o.Version.AllParsed() {
				return nil, args.UnknownField(name + "." + key)
			}
			return nil, srverr.New(srverr.FailedToParse, "Unrecognized option '%s' in $currentOp stage.", key)
		}
	}
	return doc, nil
}

// precheckListSessions reads the options of $listSessions and $listLocalSessions.
func precheckListSessions(p *parser, name string, v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return srverr.New(srverr.TypeMismatch, "%s options must be specified in an object, but found: %s", name,
			typeName(v))
	}
	all, users := false, 0
	for key, item := range doc.All() {
		switch key {
		case "allUsers":
			switch item.Type {
			case bson.TypeBoolean, bson.TypeNull, bson.TypeUndefined:
				all = item.AsBool()
			default:
				return args.WrongType(name+".allUsers", item.Type, "bool")
			}
		case "users":
			var err error
			if users, err = checkSessionUsers(p.rt.o.Version, name, item); err != nil {
				return err
			}
		default:
			return args.UnknownField(name + "." + key)
		}
	}
	if all && users > 0 {
		return srverr.New(srverr.UnsupportedFormat,
			"%s may not specify {allUsers:true} and {users:[...]} at the same time", name)
	}
	return nil
}

// checkSessionUsers counts an array of {user, db}. The server takes documents for arrays there.
func checkSessionUsers(version release.Version, stage string, v bson.RawValue) (n int, err error) {
	parsed := version.AllParsed()
	switch {
	case parsed && args.IsNull(v):
		return 0, nil
	case parsed && v.Type != bson.TypeArray:
		return 0, args.WrongType(stage+".users", v.Type, "array")
	}
	if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
		return 0, srverr.New(10065, "invalid parameter: expected an object (users)")
	}
	i := 0
	for key, item := range bson.Raw(v.Value).All() {
		if key != strconv.Itoa(i) {
			return 0, srverr.New(40422,
				"BSON array field '%s.users' has an invalid value '%s' for an array field name.", stage, key)
		}
		if i++; parsed && args.IsNull(item) {
			continue
		}
		n++
		user, ok := item.Document()
		if !ok {
			return 0, args.WrongType(stage+".users."+key, item.Type, "object")
		}
		for field, x := range user.All() {
			if field != "user" && field != "db" {
				return 0, args.UnknownField(stage + ".users." + field)
			}
			if parsed && args.IsNull(x) {
				return 0, args.MissingField(stage + ".users." + field)
			}
			if x.Type != bson.TypeString {
				return 0, args.WrongType(stage+".users."+field, x.Type, "string")
			}
		}
		for _, field := range []string{"user", "db"} {
			if user.Lookup(field).Type == 0 {
				return 0, args.MissingField(stage + ".users." + field)
			}
		}
	}
	return n, nil
}

func checkListSessions(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	switch {
	case name == "$listSessions" && p.ns != (Namespace{"config", "system.sessions"}):
		return nil, srverr.New(srverr.InvalidNamespace, "$listSessions may only be run against config.system.sessions")
	case name == "$listLocalSessions" && p.ns.Coll != "":
		return nil, srverr.New(srverr.InvalidNamespace,
			"$listLocalSessions must be run against the database with {aggregate: 1}, not a collection")
	}
	doc, _ := v.Document()
	return doc, nil
}

func checkListUsers(p *parser, _ string, v bson.RawValue) (bson.Raw, error) {
	if p.ns.Coll != "" {
		return nil, srverr.New(srverr.InvalidNamespace,
			"$listCachedAndActiveUsers must be run against the database with {aggregate: 1}, not a collection")
	}
	doc, ok := v.Document()
	if !ok || !doc.IsEmpty() {
		return nil, srverr.New(srverr.TypeMismatch,
			"The $listCachedAndActiveUsers stage specification must be an empty object")
	}
	return doc, nil
}

// catalogFlags are the options of $listClusterCatalog.
var catalogFlags = []string{"shards", "balancingConfiguration"}

func checkListClusterCatalog(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	switch {
	case p.ns.Coll != "":
		return nil, srverr.New(9621301, "The %s stage must be run on a database, with {aggregate: 1}", name)
	case !ok:
		return nil, srverr.New(9621302, "The %s stage specification must be an object. Found: %s", name, typeName(v))
	}
	for key, item := range doc.All() {
		switch {
		case !slices.Contains(catalogFlags, key):
			return nil, args.UnknownField(name + "." + key)
		case item.Type != bson.TypeBoolean:
			return nil, args.WrongType(name+"."+key, item.Type, "bool")
		}
	}
	return doc, nil
}

// usesOfCatalog: who lists the collections of a database needs not list those of all.
func usesOfCatalog(s Stage) []Use {
	if s.NS.DB == "admin" {
		return []Use{{Action: "listClusterCatalog"}}
	}
	return []Use{{Action: "listCollections", NS: Namespace{DB: s.NS.DB}}}
}

func checkListCatalog(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	switch {
	case p.ns.Coll == "" && p.ns.DB != "admin":
		return nil, srverr.New(srverr.InvalidNamespace,
			"Collectionless %s must be run against the 'admin' database with {aggregate: 1}", name)
	case !ok || !doc.IsEmpty():
		return nil, srverr.New(srverr.FailedToParse, "%s must take a nested empty object but found: %s", name,
			bsontext.Value(v))
	}
	return doc, nil
}

// usesOfLists: who sees the catalogue's entry of a collection may list its database, and its
// indexes; who sees all of them may list the cluster's.
func usesOfLists(s Stage) []Use {
	if s.NS.Coll == "" {
		return []Use{{Action: "listClusterCatalog"}}
	}
	return []Use{{Action: "listCollections", NS: Namespace{DB: s.NS.DB}}, {Action: "listIndexes", NS: s.NS}}
}

func checkDataDistribution(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	switch {
	case p.ns.DB != "admin" || p.ns.Coll != "":
		return nil, srverr.New(srverr.InvalidNamespace,
			"%s must be run against the 'admin' database with {aggregate: 1}", name)
	case !ok || !doc.IsEmpty():
		return nil, srverr.New(srverr.FailedToParse, "The %s stage specification must be an empty object", name)
	}
	return doc, nil
}

func checkQuerySettings(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	switch {
	case p.within == "$facet":
		return nil, outsideFacet(name)
	case !ok:
		return nil, srverr.New(7746800, "%s stage expects a document as argument", name)
	case p.ns.Coll != "":
		return nil, srverr.New(srverr.InvalidNamespace, "%s must be run on a database, with {aggregate: 1}", name)
	}
	for key, item := range doc.All() {
		switch {
		case key != "showDebugQueryShape":
			return nil, args.UnknownField(name + "." + key)
		case item.Type != bson.TypeBoolean:
			return nil, args.WrongType(name+"."+key, item.Type, "bool")
		}
	}
	return doc, nil
}

// queryStatsArgs are the options of $queryStats, and transformArgs those of its only one.
var (
	queryStatsArgs = &args.Table[args.None]{Name: "$queryStats", Fields: map[string]args.Field[args.None]{
		"transformIdentifiers": args.Object[args.None](nil),
	}, Must: true}
	transformArgs = &args.Table[args.None]{Name: "$queryStats.transformIdentifiers",
		Required: []string{"algorithm", "hmacKey"}, Fields: map[string]args.Field[args.None]{
			"algorithm": args.String[args.None](nil).Then(func(_ *args.None, v args.Value) error {
				if s, _ := v.StringValue(); s != "hmac-sha-256" {
					return srverr.New(srverr.BadValue,
						"Enumeration value '%s' for field '$queryStats.transformIdentifiers.algorithm' is not a valid value.", s)
				}
				return nil
			}),
			"hmacKey": args.Any[args.None](nil).Then(func(_ *args.None, v args.Value) error {
				const name = "$queryStats.transformIdentifiers.hmacKey"
				key, ok := v.Binary()
				switch {
				case !ok:
					return args.WrongType(name, v.Type, "binData")
				case key.Subtype != bson.BinarySensitive:
					return srverr.New(srverr.TypeMismatch,
						"BSON field '%s' is the wrong binData type, expected type 'sensitive'", name)
				}
				return nil
			}),
		}, Must: true}
)

func checkQueryStats(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	switch {
	case p.ns.DB != "admin" || p.ns.Coll != "":
		return nil, srverr.New(srverr.InvalidNamespace,
			"%s must be run against the 'admin' database with {aggregate: 1}", name)
	case !ok:
		return nil, srverr.New(srverr.FailedToParse, "%s value must be an object. Found: %s", name, typeName(v))
	}
	from := args.NoCommand{As: p.rt.o.Version}
	if err := queryStatsArgs.Parse(from, doc, nil); err != nil {
		return nil, err
	}
	if inner, ok := doc.Lookup("transformIdentifiers").Document(); ok {
		return doc, transformArgs.Parse(from, inner, nil)
	}
	return doc, nil
}

// sampledQueriesArgs are the options of $listSampledQueries.
var sampledQueriesArgs = &args.Table[args.None]{Name: "$listSampledQueries", Fields: map[string]args.Field[args.None]{
	"namespace": args.String[args.None](nil).Then(func(_ *args.None, v args.Value) error {
		s, _ := v.StringValue()
		if db, coll := namespace.Split(s); coll == "" || !namespace.ValidDB(db) {
			return srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", s)
		}
		return nil
	}),
}, Must: true}

func checkSampledQueries(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	switch {
	case p.ns.DB != "admin" || p.ns.Coll != "":
		return nil, srverr.New(srverr.InvalidNamespace,
			"%s must be run against the 'admin' database with {aggregate: 1}", name)
	case !ok:
		return nil, srverr.New(srverr.FailedToParse, "%s must take a nested object but found: %s", name,
			bsontext.Value(v))
	}
	return doc, sampledQueriesArgs.Parse(args.NoCommand{As: p.rt.o.Version}, doc, nil)
}

// usesOfQueryStats: who sees the names in the statistics as they are needs less than who gets them
// transformed, as the manual has it.
func usesOfQueryStats(s Stage) []Use {
	list := []Use{{Action: "queryStatsRead"}}
	if doc, _ := s.Spec.Document(); doc.Lookup("transformIdentifiers").Type != 0 {
		list = append(list, Use{Action: "queryStatsReadTransformed"})
	}
	return list
}

// checkChangeStream leaves the options to the deployment's change log.
func checkChangeStream(p *parser, name string, v bson.RawValue) (bson.Raw, error) {
	doc, ok := v.Document()
	if !ok && p.rt.o.Version.AtLeast(6, 0) {
		return nil, srverr.New(6188500, "$changeStream must take a nested object but found: %s", elementText(name, v))
	}
	if !ok {
		return nil, srverr.New(50808, "$changeStream stage expects a document as argument.")
	}
	if p.rt.o.CheckChangeStream != nil {
		if err := p.rt.o.CheckChangeStream(doc); err != nil {
			return nil, err
		}
	}
	if !p.rt.o.ReplicaSet && !p.rt.o.Mongos {
		return nil, srverr.New(40573, "The $changeStream stage is only supported on replica sets")
	}
	return doc, nil
}

// splitStage is $changeStreamSplitLargeEvent; the change log does the work when it sees that the
// pipeline ends with it.
type splitStage struct{}

func parseSplitLargeEvent(_ *parser, _ string, v bson.RawValue) (*splitStage, error) {
	doc, ok := v.Document()
	if !ok || !doc.IsEmpty() {
		return nil, srverr.New(7182800, "$changeStreamSplitLargeEvent spec should be an empty object")
	}
	return &splitStage{}, nil
}

func (*splitStage) open(src Iterator) (Iterator, error) { return src, nil }
