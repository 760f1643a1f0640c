package series

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/validation"
	"allium/mongotest/internal/work"
)

// The collections of buckets, as system.buckets.X and reads with rawData show them.

const bucketPrefix = "system.buckets."

// BucketsOf returns the namespace of the buckets of a time series collection.
func BucketsOf(c *store.Coll) string { return namespace.Join(c.DB, BucketsName(c)) }

// BucketsName returns the name of the buckets' collection in its database.
func BucketsName(c *store.Coll) string { return bucketPrefix + c.Name }

// Catalog tells the collections of a state, or of a writer.
type Catalog interface {
	Coll(ns string) *store.Coll
}

// NamesBuckets reports whether a collection's name is that of the buckets of a time series.
func NamesBuckets(coll string) bool { return strings.HasPrefix(coll, bucketPrefix) }

// Source returns the time series collection whose buckets a namespace names, or nil. With raw the
// collection's own name does so, too.
func Source(st Catalog, ns string, raw bool) *store.Coll {
	of := ns
	if db, name := namespace.Split(ns); NamesBuckets(name) {
		of = namespace.Join(db, strings.TrimPrefix(name, bucketPrefix))
	} else if !raw {
		return nil
	}
	if c := st.Coll(of); c != nil && c.TimeSeries && (of == ns || st.Coll(ns) == nil) {
		return c
	}
	return nil
}

// ListsBuckets reports whether listCollections shows the collections of buckets, as servers do
// whose time series collections are views.
func ListsBuckets(v release.Version) bool {
	return v.Has(release.Reply, "listCollections.system.buckets")
}

// DescribeBuckets is the entry of a collection of buckets in listCollections.
func DescribeBuckets(c *store.Coll, nameOnly bool) bson.Raw {
	return bsondoc.Build(func(b *bsondoc.Builder) {
		b.Str("name", BucketsName(c))
		b.Str("type", "collection")
		if nameOnly {
			return
		}
		b.Doc("options", bucketOptions(c))
		b.Doc("info", bsondoc.Build(func(b *bsondoc.Builder) {
			b.Flag("readOnly", false)
			uuid := BucketsUUID(c)
			b.Value("uuid", bson.TypeBinary, bson.AppendBinaryValue(nil, bson.BinaryUUID, uuid[:]))
		}))
	})
}

// BucketsUUID returns the UUID of the buckets' collection.
func BucketsUUID(c *store.Coll) [16]byte {
	uuid := c.UUID
	uuid[0] ^= 0xff
	return uuid
}

// bucketOptions are the options of a collection of buckets: among others what buckets look like.
func bucketOptions(c *store.Coll) bson.Raw {
	type property struct {
		name   string
		schema bson.Raw
	}
	typed := func(t string) bson.Raw { return bsondoc.Single("bsonType", bsondoc.StringValue(t)) }
	// object appends the schema of an object whose first properties are required.
	object := func(b *bsondoc.Builder, required int, list ...property) {
		b.Str("bsonType", "object")
		var names []bson.RawValue
		for _, p := range list[:required] {
			names = append(names, bsondoc.StringValue(p.name))
		}
		b.Value("required", bson.TypeArray, bsondoc.ArrayValue(names...).Value)
		b.Doc("properties", bsondoc.Build(func(b *bsondoc.Builder) {
			for _, p := range list {
				b.Doc(p.name, p.schema)
			}
		}))
	}
	timeField, _ := Fields(c)
	bound := bsondoc.Build(func(b *bsondoc.Builder) { object(b, 1, property{timeField, typed("date")}) })
	control := bsondoc.Build(func(b *bsondoc.Builder) {
		object(b, 3, property{"version", typed("number")}, property{"min", bound}, property{"max", bound},
			property{"closed", typed("bool")}, property{"count", typed("number")})
	})
	schema := bsondoc.Build(func(b *bsondoc.Builder) {
		object(b, 3, property{"_id", typed("objectId")}, property{"control", control},
			property{"data", typed("object")},
			property{"meta", bsondoc.OrEmpty(nil)})
		b.Flag("additionalProperties", false)
	})
	return bsondoc.Build(func(b *bsondoc.Builder) {
		b.Doc("validator", bsondoc.Single("$jsonSchema", bsondoc.DocumentValue(schema)))
		b.Flag("clusteredIndex", true)
		for k, v := range c.Raw.All() {
			if k == "timeseries" || k == "expireAfterSeconds" || k == "collation" {
				b.Value(k, v.Type, v.Value)
			}
		}
	})
}

// Buckets are those of a time series collection at one moment, and then with what is written to
// them.
type Buckets struct {
	Source *store.Coll // the time series collection, as the last write leaves it

	timeField, metaField string
	version              release.Version
	work                 *work.Meter
	list                 []*bucket
	at                   map[bson.ObjectID]int
	none                 *store.Coll // the collection of buckets, without any
}

// Of returns the buckets of a time series collection at a server version, as a collection of this
// name has them. The meter counts measurements, now and when they are written.
func Of(source *store.Coll, ns string, v release.Version, m *work.Meter) *Buckets {
	x := &Buckets{Source: source, version: v, work: m, at: map[bson.ObjectID]int{}}
	x.timeField, x.metaField = Fields(source)
	x.fill()
	for i, b := range x.list {
		x.at[b.id] = i
	}
	options := bucketOptions(source)
	set := store.Settings{Raw: options, Clustered: true, Collation: source.Collation}
	set.Check = &validation.Validator{Spec: options.Lookup("validator").Value, Level: "strict", Action: "error"}
	x.none = store.NewDerived(ns, BucketsUUID(source), set, nil)
	return x
}

// Coll returns a collection of the buckets that there were at first.
func (x *Buckets) Coll() *store.Coll {
	docs := make([]bson.Raw, len(x.list))
	for i, b := range x.list {
		if b.raw != nil && sumOf(b.rows) == b.raw.sum {
			docs[i] = b.raw.doc
		} else {
			docs[i] = x.document(b)
		}
	}
	return store.NewDerived(x.none.NS, x.none.UUID, x.none.Settings, docs)
}

// of returns the bucket that a document of Coll shows.
func (x *Buckets) of(doc bson.Raw) *bucket {
	id, _ := doc.Lookup("_id").ObjectID()
	return x.list[x.at[id]]
}

// Shard returns the number of the shard that has the bucket which a document of Coll shows, 0 if
// the time series collection is not sharded.
func (x *Buckets) Shard(doc bson.Raw) int { return int(x.of(doc).shard) }

// Table returns where the measurements of a sharded time series collection are, by the fields of
// its buckets; nil: it is not sharded. whole is false if a bucket may be on several shards, because
// the key has the time in it.
func Table(source *store.Coll, s *sharding.Metadata) (_ *sharding.Metadata, whole bool) {
	if s == nil {
		return nil, true
	}
	timeField, metaField := Fields(source)
	whole = true
	return s.Renamed(func(path string) string {
		if path == timeField {
			whole = false
			return "control.min." + timeField
		}
		if rest, ok := belowMeta(path, metaField); ok {
			return "meta" + rest
		}
		return path
	}), whole
}
