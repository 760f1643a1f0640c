package server

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/store"
)

// PerShard returns what the shards that have a collection yield of it, each with its name, or on a
// mongod what that yields. The function gets what a shard has of the collection.
func (r *Request) PerShard(c *store.Coll, document func(part *store.Coll) bson.Raw) []bson.Raw {
	if r.Routing == nil {
		return []bson.Raw{document(c)}
	}
	parts := map[int]*store.Coll{r.Routing.FirstShard(): c}
	if s := sharding.Of(c); s != nil {
		clear(parts)
		for _, i := range s.Shards() {
			if parts[i] = c.Part(i); parts[i] == nil { // it has a chunk and no document yet
				parts[i] = &store.Coll{Info: c.Info}
			}
		}
	}
	var list []bson.Raw
	for i := range r.Node.data.shards {
		part, ok := parts[i]
		if !ok {
			continue
		}
		doc := document(part)
		first := true
		list = append(list, bsondoc.Build(func(b *bsondoc.Builder) {
			for k, v := range doc.All() {
				if k == "host" {
					b.Str(k, r.Node.data.ShardHost(i))
				} else {
					b.B = bson.AppendRawValue(b.B, k, v)
				}
				if first {
					b.Str("shard", ShardName(i))
					first = false
				}
			}
		}))
	}
	return list
}

// AppendCollStats appends a collection's sizes as collStats shows them, divided by scale.
func (r *Request) AppendCollStats(dst []byte, c *store.Coll, scale int64) []byte {
	return r.appendSizes(dst, c, c.Count(), c.Bytes(), scale)
}

func (r *Request) appendSizes(dst []byte, c *store.Coll, count, bytes, scale int64) []byte {
	v5 := r.Version().AtLeast(5, 0)
	var buckets *store.Coll
	if c.TimeSeries { // whose documents are the buckets
		buckets = series.Of(c, series.BucketsOf(c), r.Version(), r.Meter()).Coll()
		count, bytes = buckets.Count(), buckets.Bytes()
	}
	dst = bsondoc.AppendShortest(dst, "size", bytes/scale)
	if buckets != nil {
		dst = bsondoc.Append(dst, "timeseries", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("bucketsNs", buckets.NS)
			d.B = bsondoc.AppendShortest(d.B, "bucketCount", count)
			if count > 0 {
				d.B = bsondoc.AppendShortest(d.B, "avgBucketSize", bytes/count)
			}
		}))
	} else {
		dst = bsondoc.AppendShortest(dst, "count", count)
		if count > 0 {
			dst = bsondoc.AppendShortest(dst, "avgObjSize", bytes/count)
		}
	}
	if v5 {
		dst = bsondoc.AppendShortest(dst, "numOrphanDocs", 0)
	}
	dst = bsondoc.AppendShortest(dst, "storageSize", int64(DiskSize(bytes))/scale)
	if v5 {
		dst = bsondoc.AppendShortest(dst, "freeStorageSize", 0)
	}
	dst = bson.AppendBool(dst, "capped", c.Capped)
	if c.Capped {
		dst = bsondoc.AppendShortest(dst, "max", c.Max)
		dst = bsondoc.AppendShortest(dst, "maxSize", c.Size/scale)
		if !v5 {
			dst = bsondoc.AppendShortest(dst, "sleepCount", 0)
			dst = bsondoc.AppendShortest(dst, "sleepMS", 0)
		}
	}
	dst = appendWiredTiger(dst, "wiredTiger", "collection-"+bsondoc.UUIDString(c.UUID))
	dst = bson.AppendInt32(dst, "nindexes", int32(len(c.Indexes())))
	total := int64(0)
	at, sizes := bson.BeginDocumentElement(nil, "indexSizes")
	details, dst := bson.BeginDocumentElement(dst, "indexDetails")
	for i := range c.Indexes() {
		ix := &c.Indexes()[i]
		size := int64(DiskSize(int64(ix.Keys()) * 32))
		total += size
		sizes = bsondoc.AppendShortest(sizes, ix.Name, size/scale)
		dst = appendWiredTiger(dst, ix.Name, "index-"+bsondoc.UUIDString(c.UUID)+"-"+ix.Name)
	}
	dst = bson.EndDocument(dst, details)
	sizes = bson.EndDocument(sizes, at)
	dst = bsondoc.AppendStrings(dst, "indexBuilds", nil)
	dst = bsondoc.AppendShortest(dst, "totalIndexSize", total/scale)
	if v5 {
		dst = append(dst, sizes...)
	}
	dst = bsondoc.AppendShortest(dst, "totalSize", (total+int64(DiskSize(bytes)))/scale)
	if !v5 {
		dst = append(dst, sizes...)
	}
	return AppendScale(dst, scale)
}

// AppendScale appends the unit of sizes.
func AppendScale(dst []byte, scale int64) []byte {
	return bson.AppendInt32(dst, "scaleFactor", int32(min(scale, math.MaxInt32)))
}

// appendWiredTiger appends what the storage engine would tell of a file, as far as there is
// something to tell.
func appendWiredTiger(dst []byte, key, file string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	meta, dst := bson.BeginDocumentElement(dst, "metadata")
	dst = bson.EndDocument(bson.AppendInt32(dst, "formatVersion", 1), meta)
	dst = bson.AppendString(dst, "type", "file")
	dst = bson.AppendString(dst, "uri", "statistics:table:"+file)
	return bson.EndDocument(dst, at)
}

// pageSize is the least that a file on disk takes.
const pageSize = 4096

// DatabaseSize returns what a database would take on disk, roughly.
func DatabaseSize(st *store.State, db string) float64 {
	size := 0.0
	st.Colls(db, func(c *store.Coll) bool {
		size += DiskSize(c.Bytes())
		for range c.Indexes() {
			size += pageSize
		}
		return true
	})
	return max(size, 2*pageSize)
}

// DiskSize returns what so many bytes take, in whole pages.
func DiskSize(bytes int64) float64 { return float64((bytes/pageSize + 1) * pageSize) }
