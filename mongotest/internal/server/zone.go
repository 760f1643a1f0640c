package server

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
)

// Zones: ranges of shard keys that belong on some shards. They are kept and shown; the balancer
// moves chunks for them if it runs.

func init() {
	for _, c := range []*Command{
		{Name: "addShardToZone", WriteConcern: true, Mongos: OnMongos{Config: true}, Run: runZone},
		{Name: "removeShardFromZone", WriteConcern: true, Mongos: OnMongos{Config: true}, Run: runZone},
		{Name: "updateZoneKeyRange", WriteConcern: true, Mongos: OnMongos{Config: true}, Run: runZoneRange},
		{Name: "balancerCollectionStatus", Run: runCollectionStatus},
	} {
		c.AdminOnly, c.Where, c.Roles, c.Needs = true, Anywhere, []Role{Mongos}, OnCluster("enableSharding")
		Register(c)
	}
}

// zoneRange is a range of a collection's shard keys in a zone, as config.tags has it.
type zoneRange struct {
	id       bson.ObjectID
	ns, zone string
	min, max bson.Raw
}

// runZone adds a shard to a zone, or takes it out. The balancer moves chunks to the shards of their
// zones if it runs.
func runZone(r *Request, dst []byte) ([]byte, error) {
	shard, err := arg.ExtractString(r.Body, r.Cmd.Name)
	if err != nil {
		return dst, err
	}
	zone, err := arg.ExtractString(r.Body, "zone")
	if err != nil {
		return dst, err
	}
	if r.Node.data.ShardNumber(shard) < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "shard %s does not exist", shard)
	}
	c := &r.Node.data.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zones == nil {
		c.zones = map[string][]string{}
	}
	had := c.zones[shard]
	rest := slices.DeleteFunc(slices.Clone(had), func(z string) bool { return z == zone })
	if r.Cmd.Name == "addShardToZone" {
		rest = append(rest, zone)
	}
	c.zones[shard] = rest
	if !c.hasZoneLocked(zone) && slices.ContainsFunc(c.ranges, func(z zoneRange) bool { return z.zone == zone }) {
		c.zones[shard] = had
		return dst, srverr.New(srverr.ZoneStillInUse, "Range must not be assigned to zone %s: shard %s is its last one", zone, shard)
	}
	return dst, nil
}

// zoneBound reads an end of a range.
func (r *Request) zoneBound(name string) (bson.Raw, error) {
	doc, given, err := arg.ExtractObject(r.Body, name)
	if err == nil && !given {
		err = arg.Missing(name)
	}
	if err != nil {
		return nil, srverr.From(err).Prefix("The field '" + name + "' cannot be parsed :: caused by :: ")
	}
	if doc.IsEmpty() {
		return nil, srverr.New(srverr.BadValue, "The field '%s' cannot be empty", name)
	}
	return bsondoc.Copy(doc), nil
}

// compareBounds compares two ends of ranges.
func compareBounds(a, b bson.Raw) int {
	value := func(doc bson.Raw) bson.RawValue { return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc} }
	return query.Compare(value(a), value(b), nil)
}

func (z *zoneRange) text() string {
	return "[" + bsontext.Document(z.min) + ", " + bsontext.Document(z.max) + ")"
}

// zoneRangeArgs reads what updateZoneKeyRange is given; remove tells that the range belongs to no
// zone any more.
func (r *Request) zoneRangeArgs() (z zoneRange, remove bool, err error) {
	if z.ns, err = arg.ExtractString(r.Body, r.Cmd.Name); err != nil {
		return z, false, err
	}
	db, coll, dotted := cutDot(z.ns)
	if !dotted || coll == "" || !namespace.ValidDB(db) {
		return z, false, srverr.New(srverr.InvalidNamespace, "%s is not a valid namespace", z.ns)
	}
	if z.min, err = r.zoneBound("min"); err != nil {
		return z, false, err
	}
	if z.max, err = r.zoneBound("max"); err != nil {
		return z, false, err
	}
	if compareBounds(z.min, z.max) >= 0 {
		return z, false, srverr.New(srverr.FailedToParse, "min: %s should be less than max: %s", bsontext.Document(z.min), bsontext.Document(z.max))
	}
	switch v := r.Body.Lookup("zone"); v.Type {
	case bson.TypeNull:
		return z, true, nil
	case 0:
		return z, false, arg.Missing("zone")
	case bson.TypeString:
		z.zone = bsondoc.MustString(v)
		return z, false, nil
	default:
		return z, false, arg.NotA("zone", "string or null", v)
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
func runZoneRange(r *Request, dst []byte) ([]byte, error) {
	z, remove, err := r.zoneRangeArgs()
	if err != nil {
		return dst, err
	}
	z.id = bson.NewObjectID()
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	s := sharding.Of(st.Coll(z.ns))
	c := &r.Node.data.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if !remove && !c.hasZoneLocked(z.zone) {
		return dst, srverr.New(srverr.ZoneNotFound, "zone %s does not exist", z.zone)
	}
	if s != nil {
		for _, end := range []*bson.Raw{&z.min, &z.max} {
			full, ok := fullBound(s, *end)
			if !ok {
				return dst, srverr.New(srverr.ShardKeyNotFound, "the bound %s of the range is not a prefix of the shard key %s", bsontext.Document(*end), bsontext.Document(s.Key))
			}
			*end = full
		}
	}
	same := func(old zoneRange) bool {
		return old.ns == z.ns && bson.Equal(old.min, z.min) && bson.Equal(old.max, z.max)
	}
	if !remove {
		for _, old := range c.ranges {
			if old.ns == z.ns && !same(old) && compareBounds(old.min, z.max) < 0 && compareBounds(z.min, old.max) < 0 {
				return dst, srverr.New(srverr.RangeOverlapConflict, "Zone range: %s on %s is overlapping with existing: %s", z.text(), z.ns, old.text())
			}
		}
	}
	c.ranges = slices.DeleteFunc(c.ranges, same)
	if !remove {
		c.ranges = append(c.ranges, z)
	}
	return dst, nil
}

// hasZones reports whether a range of the collection's shard keys is in a zone.
func (d *Data) hasZones(ns string) bool {
	d.cluster.mu.Lock()
	defer d.cluster.mu.Unlock()
	return slices.ContainsFunc(d.cluster.ranges, func(z zoneRange) bool { return z.ns == ns })
}

// hasZoneLocked reports whether any shard belongs to a zone.
func (c *cluster) hasZoneLocked(zone string) bool {
	for _, zones := range c.zones {
		if slices.Contains(zones, zone) {
			return true
		}
	}
	return false
}

// runCollectionStatus answers that a collection is balanced: there is no balancer that would see it
// otherwise.
func runCollectionStatus(r *Request, dst []byte) ([]byte, error) {
	ns := ""
	if v := r.Arg(); v.Type != bson.TypeNull && v.Type != bson.TypeUndefined {
		var ok bool
		if ns, ok = v.StringValue(); !ok {
			return dst, arg.WrongType(r.Cmd.Name+"."+r.Cmd.Name, v.Type, "string")
		}
	}
	if err := collectionStatusStruct.ParseCommand(r, nil); err != nil {
		return dst, err
	}
	db, coll, dotted := cutDot(ns)
	if !dotted || coll == "" || !namespace.ValidDB(db) {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	if err := r.databaseKnown(db); err != nil {
		return dst, err
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	if sharding.Of(st.Coll(ns)) == nil {
		return dst, srverr.New(srverr.NamespaceNotSharded, "Collection '%s' is not sharded.", ns)
	}
	return bson.AppendBool(dst, "balancerCompliant", true), nil
}
