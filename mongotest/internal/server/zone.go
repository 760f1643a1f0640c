package server

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
)

// Zones: ranges of shard keys that belong on some shards. They are kept and shown; the balancer
// moves chunks for them if it runs.

func init() {
	for _, c := range []*Command{
		{Name: "updateZoneKeyRange", WriteConcern: true, Run: runZoneRange},
		{Name: "balancerCollectionStatus", Run: runCollectionStatus},
	} {
		c.AdminOnly, c.Where, c.Roles = true, Anywhere, []Role{Mongos}
		Register(c)
	}
}

// zoneRange is a range of a collection's shard keys in a zone, as config.tags has it.
type zoneRange struct {
	id       bson.ObjectID
	ns, zone string
	min, max bson.Raw
}

func runZoneRange(r *Request, dst []byte) ([]byte, error) {
	ns, ok := r.Arg().StringValue()
	if !ok {
		return dst, arg.NotA(r.Cmd.Name, "string", r.Arg())
	}
	db, coll, dotted := cutDot(ns)
	if !dotted || coll == "" || !namespace.ValidDB(db) {
		return dst, srverr.New(srverr.InvalidNamespace, "%s is not a valid namespace", ns)
	}
	z := zoneRange{id: bson.NewObjectID(), ns: ns}
	for _, f := range []struct {
		name string
		to   *bson.Raw
	}{{"min", &z.min}, {"max", &z.max}} {
		doc, given, err := arg.ExtractObject(r.Body, f.name)
		if err == nil && !given {
			err = arg.Missing(f.name)
		}
		if err != nil {
			return dst, srverr.From(err).Prefix("The field '" + f.name + "' cannot be parsed :: caused by :: ")
		}
		*f.to = bsondoc.Copy(doc)
	}
	remove := r.Body.Lookup("zone").Type == bson.TypeNull
	if !remove {
		var err error
		if z.zone, err = arg.ExtractString(r.Body, "zone"); err != nil {
			return dst, err
		}
	}
	c := &r.Node.data.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if !remove && !c.hasZoneLocked(z.zone) {
		return dst, srverr.New(srverr.ZoneNotFound, "zone %s does not exist", z.zone)
	}
	c.ranges = slices.DeleteFunc(c.ranges, func(old zoneRange) bool {
		return old.ns == ns && bson.Equal(old.min, z.min) && bson.Equal(old.max, z.max)
	})
	if !remove {
		c.ranges = append(c.ranges, z)
	}
	return dst, nil
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
