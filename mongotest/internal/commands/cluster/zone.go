package cluster

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
)

// Zones: ranges of shard keys that belong on some shards. They are kept and shown; the balancer
// moves chunks for them if it runs.

func init() {
	for _, c := range []*server.Command{
		{Name: "addShardToZone", WriteConcern: true, Mongos: server.OnMongos{Config: true}, Run: runZone},
		{Name: "removeShardFromZone", WriteConcern: true, Mongos: server.OnMongos{Config: true}, Run: runZone},
		{Name: "updateZoneKeyRange", WriteConcern: true, Mongos: server.OnMongos{Config: true}, Run: runZoneRange},
		{Name: "balancerCollectionStatus", Run: runCollectionStatus},
	} {
		c.AdminOnly, c.Where, c.Roles, c.Needs = true, server.Anywhere, []server.Role{server.Mongos},
			server.OnCluster("enableSharding")
		server.Register(c)
	}
}

// runZone adds a shard to a zone, or takes it out. The balancer moves chunks to the shards of their
// zones if it runs.
func runZone(r *server.Request, dst []byte) ([]byte, error) {
	shard, err := args.ExtractString(r.Body, r.Cmd.Name)
	if err != nil {
		return dst, err
	}
	zone, err := args.ExtractString(r.Body, "zone")
	if err != nil {
		return dst, err
	}
	if r.Node.Data().ShardNumber(shard) < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "shard %s does not exist", shard)
	}
	zones := r.Node.Data().Zones()
	if r.Cmd.Name == "addShardToZone" {
		zones.Add(shard, zone)
	} else if !zones.Remove(shard, zone) {
		return dst, srverr.New(srverr.ZoneStillInUse, "cannot remove a shard from zone if a chunk range is associated with it")
	}
	return dst, nil
}

// zoneBound reads an end of a range.
func zoneBound(r *server.Request, name string) (bson.Raw, error) {
	doc, err := args.ExtractObject(r.Body, name)
	if err == nil && doc == nil {
		err = args.Missing(name)
	}
	if err != nil {
		return nil, srverr.From(err).Prefix("The field '" + name + "' cannot be parsed :: caused by :: ")
	}
	if doc.IsEmpty() {
		return nil, srverr.New(srverr.BadValue, "The field '%s' cannot be empty", name)
	}
	return bsondoc.Copy(doc), nil
}

// zoneRangeArgs reads what updateZoneKeyRange is given; remove tells that the range belongs to no
// zone any more.
func zoneRangeArgs(r *server.Request) (z sharding.ZoneRange, remove bool, err error) {
	if z.NS, err = args.ExtractString(r.Body, r.Cmd.Name); err != nil {
		return z, false, err
	}
	db, coll, dotted := strings.Cut(z.NS, ".")
	if !dotted || coll == "" || !namespace.ValidDB(db) {
		return z, false, srverr.New(srverr.InvalidNamespace, "%s is not a valid namespace", z.NS)
	}
	if z.Min, err = zoneBound(r, "min"); err != nil {
		return z, false, err
	}
	if z.Max, err = zoneBound(r, "max"); err != nil {
		return z, false, err
	}
	if sharding.CompareBounds(z.Min, z.Max) >= 0 {
		return z, false, srverr.New(srverr.FailedToParse, "min: %s should be less than max: %s",
			bsontext.Document(z.Min), bsontext.Document(z.Max))
	}
	switch v := r.Body.Lookup("zone"); v.Type {
	case bson.TypeNull:
		return z, true, nil
	case 0:
		return z, false, args.Missing("zone")
	case bson.TypeString:
		z.Zone = bsondoc.MustString(v)
		return z, false, nil
	default:
		return z, false, args.NotA("zone", "string or null", v)
	}
}

// fullBound returns an end of a range with all fields of the collection's shard key: those that it
// leaves out are at their lowest. ok is false if it has others.
func fullBound(s *sharding.Metadata, doc bson.Raw) (full bson.Raw, ok bool) {
	var values []bson.RawValue
	for k, v := range doc.All() {
		if len(values) >= len(s.Fields) || s.Fields[len(values)].Path != k {
			return nil, false
		}
		values = append(values, v)
	}
	return s.KeyDocument(s.Pad(values, sharding.MinKey)), true
}

// runZoneRange gives a range of shard keys to a zone, or takes it away.
func runZoneRange(r *server.Request, dst []byte) ([]byte, error) {
	z, remove, err := zoneRangeArgs(r)
	if err != nil {
		return dst, err
	}
	z.ID = bson.NewObjectID()
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	s := sharding.Of(st.Coll(z.NS))
	zones := r.Node.Data().Zones()
	if !remove && !zones.Has(z.Zone) {
		return dst, srverr.New(srverr.ZoneNotFound, "zone %s does not exist", z.Zone)
	}
	if s != nil {
		for _, end := range []struct {
			name  string
			bound *bson.Raw
		}{{"min", &z.Min}, {"max", &z.Max}} {
			full, ok := fullBound(s, *end.bound)
			if !ok {
				return dst, srverr.New(srverr.ShardKeyNotFound, "%s: %s is not a prefix of the shard key %s of ns: %s",
					end.name, bsontext.Document(*end.bound), bsontext.Document(s.Key), z.NS)
			}
			*end.bound = full
		}
	}
	if remove {
		zones.RemoveRange(z)
	} else if old := zones.SetRange(z); old != nil {
		return dst, srverr.New(srverr.RangeOverlapConflict, "Zone range: %s is overlapping with existing: %s", &z, old)
	}
	return dst, nil
}

// runCollectionStatus tells whether the balancer has something to do for a collection, if it runs.
func runCollectionStatus(r *server.Request, dst []byte) ([]byte, error) {
	var ns string
	if err := collectionStatusArgs.ParseCommand(r, &ns); err != nil {
		return dst, err
	}
	db, coll, dotted := strings.Cut(ns, ".")
	if !dotted || coll == "" || !namespace.ValidDB(db) {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	if err := r.DatabaseKnown(db); err != nil {
		return dst, err
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	meta := sharding.Of(st.Coll(ns))
	if meta == nil {
		return dst, notSharded(r, ns)
	}
	if r.Version().AtLeast(5, 3) {
		dst = bson.AppendInt32(dst, "chunkSize", meta.Balancing.Size())
	}
	violation := r.Node.Data().Violation(ns, meta)
	dst = bson.AppendBool(dst, "balancerCompliant", violation == "")
	if violation != "" {
		dst = bson.AppendString(dst, "firstComplianceViolation", violation)
	}
	return dst, nil
}
