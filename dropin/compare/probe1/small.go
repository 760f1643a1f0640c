package main

import (
	"bytes"
	"fmt"
	"time"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/mongo/address"
	"go.mongodb.org/mongo-driver/mongo/description"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/tag"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/x/mongo/driver/connstring"
)

// raws prints what raw documents and values do.
func raws() {
	doc, _ := bson.Marshal(bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{1, "x"}}}}, {Key: "n", Value: 7}})
	r := bson.Raw(doc)
	for _, path := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "1"}, {"n"}, {"zz"}, {"n", "x"}, {}} {
		v, err := r.LookupErr(path...)
		say.Line(fmt.Sprint("lookup ", path), v.Type, v, v.DebugString(), err, r.Lookup(path...).IsZero())
	}
	for i := range uint(3) {
		e, err := r.IndexErr(i)
		say.Line(fmt.Sprint("index ", i), e.Key(), e, err)
	}
	for _, broken := range [][]byte{nil, {}, {5, 0, 0, 0, 0}, doc[:10], append(bytes.Clone(doc), 0), {5, 0, 0, 0, 1}} {
		elems, err := bson.Raw(broken).Elements()
		values, err2 := bson.Raw(broken).Values()
		say.Line(fmt.Sprintf("broken %x", broken), len(elems), err != nil, len(values), err2 != nil,
			bson.Raw(broken).Validate() != nil, bson.Raw(broken).String())
	}
	for _, s := range samples {
		one, _ := bson.Marshal(bson.D{{Key: "v", Value: s.v}})
		v := bson.Raw(one).Lookup("v")
		for name, get := range map[string]func() []any{
			"Double": func() []any {
				return []any{v.Double()}
			}, "StringValue": func() []any {
				return []any{v.StringValue()}
			}, "Document": func() []any { return []any{v.Document()} },
			"Array": func() []any {
				return []any{v.Array()}
			}, "Int32": func() []any { return []any{v.Int32()} }, "AsInt32": func() []any { return []any{v.AsInt32()} },
			"AsInt64": func() []any {
				return []any{v.AsInt64()}
			}, "ObjectID": func() []any {
				return []any{v.ObjectID()}
			}, "Time": func() []any { return []any{v.Time().UTC()} },
			"Decimal128": func() []any {
				return []any{v.Decimal128()}
			}, "Boolean": func() []any { return []any{v.Boolean()} },
			"Binary": func() []any {
				t, b := v.Binary()
				return []any{t, b}
			}, "Timestamp": func() []any { t, i := v.Timestamp(); return []any{t, i} },
		} {
			say.Try(name+" of "+s.name, get)
		}
		say.Line("value "+s.name, v, v.IsNumber(), v.Validate(), v.Equal(v), v.DebugString())
	}
	got, err := bson.NewFromIOReader(bytes.NewReader(doc))
	_, err2 := bson.NewFromIOReader(nil)
	_, err3 := bson.ReadDocument(bytes.NewReader(doc[:6]))
	say.Line("from reader", got, err, err2, err3)
	var x int
	say.Line("unmarshal", bson.RawValue{Type: bsontype.Int32, Value: []byte{3, 0, 0, 0}}.Unmarshal(&x), x,
		bson.RawValue{}.UnmarshalWithRegistry(nil, nil), bson.RawValue{}.UnmarshalWithContext(nil, nil))
	core := bsoncore.NewDocumentBuilder().AppendString("s", "x").AppendDecimal128("d",
		primitive.NewDecimal128(1, 2)).StartDocument("m").AppendArray("a",
		bsoncore.NewArrayBuilder().AppendInt32(1).Build()).FinishDocument().Build()
	say.Line("core", core, core.Validate(), core.Lookup("m", "a", "0").Int32(), fmt.Sprintf("%x", []byte(core)))
	_, err = core.LookupErr("s", "x")
	say.Line("core lookup", fmt.Sprintf("%T", err), err)
	say.Try("core panic", func() []any { return []any{core.Lookup("s").Int32()} })
}

// small prints what the small packages do.
func small() {
	for _, rc := range []*readconcern.ReadConcern{readconcern.Local(), readconcern.Majority(),
		readconcern.New(readconcern.Level("x")), readconcern.New(), readconcern.Snapshot()} {
		t, data, err := rc.MarshalBSONValue()
		say.Line("read concern "+rc.GetLevel(), t, fmt.Sprintf("%x", data), err)
	}
	yes := true
	doc, err := bson.Marshal(bson.D{{Key: "a", Value: "<"}})
	say.Line("document", len(doc), err)
	for _, escape := range []bool{false, true} {
		var written bsonrw.SliceWriter
		pool := bsonrw.NewExtJSONValueWriterPool()
		vw := pool.Get(&written, false, escape)
		enc, err := bson.NewEncoder(vw)
		say.Line(fmt.Sprint("writer of a pool ", escape), err, enc.Encode(bson.Raw(doc)), fmt.Sprintf("%q", written),
			pool.Put(vw))
	}
	for i, wc := range []*writeconcern.WriteConcern{
		nil, {}, writeconcern.Majority(), writeconcern.W1(), writeconcern.Unacknowledged(), writeconcern.Journaled(),
		writeconcern.Custom("t"),
		writeconcern.New(writeconcern.W(2), writeconcern.J(true), writeconcern.WTimeout(time.Second)),
		writeconcern.New(writeconcern.WMajority()), writeconcern.New(writeconcern.J(false)),
		writeconcern.Journaled().WithOptions(writeconcern.J(false)),
		{W: 0, Journal: &yes}, {W: -1}, {W: 1.5}, {WTimeout: -1, W: 1}, {WTimeout: time.Second},
		writeconcern.W1().WithOptions(writeconcern.WTagSet("z")),
	} {
		t, data, err := wc.MarshalBSONValue()
		say.Line(fmt.Sprint("write concern ", i), t, fmt.Sprintf("%x", data), err, wc.Acknowledged(), wc.IsValid(),
			writeconcern.AckWrite(wc))
	}
	rp, err := readpref.New(readpref.NearestMode, readpref.WithTags("a", "b"), readpref.WithMaxStaleness(time.Minute),
		readpref.WithHedgeEnabled(true))
	say.Line("read preference", rp, err)
	_, err = readpref.New(readpref.PrimaryMode, readpref.WithTags("a"))
	say.Line("read preference odd", err, err == readpref.ErrInvalidTagSet)
	say.Line("tags", tag.NewTagSetFromMap(map[string]string{"a": "b"}),
		tag.Set{{Name: "a", Value: "b"}}.Contains("a", "b"))
	for _, a := range []address.Address{"a", "a:1", "/tmp/x.sock", "[::1]:5", "A"} {
		say.Line("address "+string(a), a.Network(), a.Canonicalize())
	}
	for i, reply := range []bson.M{
		{"ok": 1}, {"ok": 1, "setName": "s", "isWritablePrimary": true, "hosts": bson.A{"a:1", "b"},
			"tags": bson.M{"x": "y"}, "minWireVersion": 0, "maxWireVersion": 21, "setVersion": 3},
		{"ok": 1, "setName": "s", "secondary": true, "me": "M:1", "logicalSessionTimeoutMinutes": 30,
			"topologyVersion": bson.M{"processId": primitive.ObjectID{1}, "counter": int64(2)}},
		{"ok": 1, "msg": "isdbgrid"}, {"ok": 1, "isreplicaset": true}, {"ok": 0}, {"ok": 1, "setName": 5},
		{"ok": 1, "hosts": "x"}, {"ok": 1, "setName": "s", "arbiterOnly": true, "arbiters": bson.A{"c"}},
	} {
		doc, _ := bson.Marshal(reply)
		s := description.NewServer("h:27017", doc)
		s.LastUpdateTime = time.Time{}
		bad := s.LastError != nil
		s.LastError = nil
		say.Line(fmt.Sprint("hello ", i), s, bad, s.Kind, s.Hosts, s.Members, s.Arbiters, s.SetName, s.SetVersion,
			s.CanonicalAddr, s.Tags, s.DataBearing(), s.SessionTimeoutMinutes, s.WireVersion, s.TopologyVersion,
			s.Equal(s))
	}
	a := description.Server{Addr: "a:1", Kind: description.RSPrimary, AverageRTT: time.Second, AverageRTTSet: true}
	b := description.Server{Addr: "b:1", Kind: description.RSSecondary, AverageRTT: time.Millisecond,
		AverageRTTSet: true, Tags: tag.Set{{Name: "x", Value: "y"}}}
	top := description.Topology{Kind: description.ReplicaSetWithPrimary, Servers: []description.Server{a, b}}
	for name, s := range map[string]description.ServerSelector{
		"write": description.WriteSelector(), "latency": description.LatencySelector(time.Millisecond),
		"nearest":   description.ReadPrefSelector(readpref.Nearest()),
		"secondary": description.ReadPrefSelector(readpref.Secondary(readpref.WithTags("x", "y"))),
		"none":      description.ReadPrefSelector(readpref.Secondary(readpref.WithTags("x", "z"))),
		"both": description.CompositeSelector(
			[]description.ServerSelector{description.ReadPrefSelector(readpref.Nearest()),
				description.LatencySelector(time.Millisecond)}),
		"stale":  description.ReadPrefSelector(readpref.Secondary(readpref.WithMaxStaleness(time.Second))),
		"output": description.OutputAggregateSelector(readpref.Secondary()),
	} {
		say.Try("selector "+name, func() []any {
			chosen, err := s.SelectServer(top, top.Servers)
			return []any{chosen, err}
		})
	}
	say.Line("topology", top, top.Equal(top), top.HasReadableServer(readpref.SecondaryMode), top.HasWritableServer(),
		description.NewVersionRange(1, 3).Includes(2), description.NewVersionRange(1, 3))
	for _, uri := range []string{
		"mongodb://localhost", "mongodb://u:p%40@a:1,b:2/db?replicaSet=r&w=majority&journal=true&wtimeoutMS=5&socketTimeoutMS=6&readPreference=secondary&readPreferenceTags=a:b&maxStalenessSeconds=90&compressors=zlib&appName=x",
		"mongodb://h/?bogus=1", "mongodb://h/?w=x&ssl=true&tlsInsecure=true", "", "mongodb://", "http://x",
		"mongodb://a,b/?loadBalanced=true", "mongodb://h/?authMechanism=PLAIN",
	} {
		u, err := connstring.Parse(uri)
		if err != nil {
			say.Line("uri "+uri, err)
			continue
		}
		say.Line("uri "+uri, u.Hosts, u.Database, u.Username, u.Password, u.ReplicaSet, u.WString, u.JSet, u.WTimeout,
			u.WTimeoutSet, u.SocketTimeout, u.ReadPreference, u.ReadPreferenceTagSets, u.MaxStaleness,
			u.Compressors, u.AppName, u.SSL, u.SSLInsecure, u.UnknownOptions, u.String(), u.Validate())
	}
}

// clientOptions prints what connection strings and merging set.
func clientOptions() {
	for _, uri := range []string{
		"mongodb://localhost", "mongodb://u:p@a:1,b:2/db?replicaSet=r&w=2&journal=true&wtimeoutMS=5&socketTimeoutMS=6&readPreference=secondary&readConcernLevel=local&retryWrites=false&maxPoolSize=3&timeoutMS=7&connectTimeoutMS=8&serverSelectionTimeoutMS=9&directConnection=false&appName=x",
		"mongodb://h/?directConnection=true", "bad", "mongodb://a,b/?directConnection=true",
	} {
		o := options.Client().ApplyURI(uri)
		say.Line("apply "+uri, o.Hosts, o.Auth, o.GetURI(), o.Validate())
		say.Line("apply more "+uri, show(o.ReplicaSet), o.ReadConcern, o.ReadPreference, show(o.RetryWrites),
			show(o.MaxPoolSize), show(o.Timeout), show(o.ConnectTimeout), show(o.ServerSelectionTimeout),
			show(o.SocketTimeout), show(o.Direct), show(o.AppName))
		if wc := o.WriteConcern; wc != nil {
			say.Line("apply write concern "+uri, wc.W, show(wc.Journal), wc.WTimeout)
		}
	}
	m := options.MergeClientOptions(options.Client().SetAppName("a").SetHosts([]string{"x"}), nil,
		options.Client().ApplyURI("mongodb://y").SetMaxPoolSize(4))
	say.Line("merge clients", show(m.AppName), m.Hosts, show(m.MaxPoolSize), m.GetURI())
	f := options.MergeFindOptions(options.Find().SetLimit(1).SetSort(1).SetComment("c"), nil,
		options.Find().SetLimit(2).SetSkip(3).SetMaxTime(time.Second))
	say.Line("merge find", show(f.Limit), show(f.Skip), f.Sort, show(f.Comment), show(f.MaxTime), show(f.BatchSize))
	u := options.MergeUpdateOptions(
		options.Update().SetUpsert(true).SetArrayFilters(options.ArrayFilters{Filters: []any{bson.M{"a": 1}}}),
		options.Update().SetHint("h"))
	array, err := u.ArrayFilters.ToArrayDocument()
	say.Line("merge update", show(u.Upsert), u.Hint, array, err)
	say.Line("collation", (&options.Collation{Locale: "de", Strength: 2, CaseLevel: true}).ToDocument())
	i := options.MergeIndexOptions(options.Index().SetName("n").SetUnique(true),
		options.Index().SetExpireAfterSeconds(5))
	say.Line("merge index", show(i.Name), show(i.Unique), show(i.ExpireAfterSeconds))
	say.Line("quorum", options.CreateIndexes().SetCommitQuorumMajority().CommitQuorum,
		options.CreateIndexes().SetCommitQuorumInt(3).CommitQuorum)
	for name, o := range map[string]*options.ClientOptions{
		"pool":      options.Client().SetMinPoolSize(9).SetMaxPoolSize(2),
		"api":       options.Client().SetServerAPIOptions(options.ServerAPI("9")),
		"balanced":  options.Client().SetHosts([]string{"a", "b"}).SetLoadBalanced(true),
		"srv":       options.Client().SetSRVMaxHosts(2).SetReplicaSet("r"),
		"heartbeat": options.Client().SetHeartbeatInterval(time.Millisecond),
		"timeout":   options.Client().SetTimeout(-1),
		"mode":      options.Client().SetServerMonitoringMode("x"),
		"oidc":      options.Client().SetAuth(options.Credential{AuthMechanism: "MONGODB-OIDC"}),
	} {
		say.Line("validate "+name, o.Validate())
	}
}

func show[T any](p *T) any {
	if p == nil {
		return "nil"
	}
	return *p
}
