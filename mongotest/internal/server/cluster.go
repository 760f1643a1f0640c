package server

import (
	"crypto/md5"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// cluster is what the config servers of a sharded cluster know beside the collections' metadata:
// the databases and the zones. Safe for concurrent use.
type cluster struct {
	mu  sync.Mutex
	dbs map[string]*database // by name
	// places is a copy of dbs for those who must not wait.
	places atomic.Pointer[map[string]*database]
	made   int // databases so far: each gets the next shard
	zones  sharding.Zones

	deleter  rangeDeleter
	balancer balancer
	id       bson.ObjectID
}

// database is what the config servers know of a database. It is never changed: another primary
// shard makes another one, and so does a database that is made anew.
type database struct {
	primary int   // the shard of the collections that are not sharded
	version int32 // how many primary shards it has had
}

// database returns what the config servers know of a database, nil if it does not exist.
func (d *Data) database(db string) *database {
	if dbs := d.cluster.places.Load(); dbs != nil {
		return (*dbs)[db]
	}
	return nil
}

// AddDatabase notes that a database exists. It is called for every collection that is made.
func (d *Data) AddDatabase(db string) (primary int) { return d.AddDatabaseOn(db, -1) }

// AddDatabaseOn is AddDatabase with a shard for the database if it is new, -1 for the next one.
func (d *Data) AddDatabaseOn(db string, on int) (primary int) {
	c := &d.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.shards == 0 {
		return 0
	}
	if known := c.dbs[db]; known != nil {
		return known.primary
	}
	if c.dbs == nil {
		c.dbs, c.id = map[string]*database{}, bson.NewObjectID()
	}
	if primary = c.made % d.shards; on >= 0 {
		primary = on
	}
	c.dbs[db] = &database{primary: primary, version: 1}
	c.made++
	c.publish()
	return primary
}

// PrimaryShard returns the shard that the collections of a database are on that are not sharded; ok
// is false if the cluster does not know the database.
func (d *Data) PrimaryShard(db string) (shard int, ok bool) {
	if known := d.database(db); known != nil {
		return known.primary, true
	}
	return 0, false
}

// SetPrimaryShard makes a shard the primary one of a database that the cluster knows.
func (d *Data) SetPrimaryShard(db string, shard int) {
	d.cluster.mu.Lock()
	next := &database{primary: shard, version: 1}
	if known := d.cluster.dbs[db]; known != nil {
		next.version += known.version
	}
	d.cluster.dbs[db] = next
	d.cluster.publish()
	d.cluster.mu.Unlock()
}

// ForgetDatabase notes that a database was dropped. The caller holds the lock of the store.
func (d *Data) ForgetDatabase(db string) {
	d.cluster.mu.Lock()
	delete(d.cluster.dbs, db)
	d.cluster.publish()
	d.cluster.mu.Unlock()
}

// publish shows the databases to place. The caller has the mutex.
func (c *cluster) publish() {
	dbs := maps.Clone(c.dbs)
	c.places.Store(&dbs)
}

// MovedAlone reports whether moveCollection or unshardCollection has brought a collection that is
// not sharded away from its database's primary shard. Servers have that from 8.0 on.
func (n *Node) MovedAlone(c *store.Coll) bool {
	d := n.data
	if d.whole != nil {
		d = d.whole
	}
	return n.Version().AtLeast(8, 0) && !c.Sharded() && !c.Derived() && c.Shard() != d.Place(c.NS)
}

// Zones returns the cluster's zones.
func (d *Data) Zones() *sharding.Zones { return &d.cluster.zones }

// Place returns the shard that a collection is on which is not sharded: its database's primary
// shard, or the config servers. It is called under the locks of the store.
func (d *Data) Place(ns string) int {
	db, _, _ := strings.Cut(ns, ".")
	if db == "config" || db == "admin" {
		return d.shards
	}
	if known := d.database(db); known != nil {
		return known.primary
	}
	return 0
}

// ShardName returns the id of a shard.
func ShardName(i int) string { return "sh" + strconv.Itoa(i) }

// ShardHost returns a shard's address as listShards shows it: name/host.
func (d *Data) ShardHost(i int) string { return d.parts[i].connString() }

// ShardNumber returns the number of a shard, -1 if there is none of this name.
func (d *Data) ShardNumber(name string) int {
	for i := range d.shards {
		if ShardName(i) == name {
			return i
		}
	}
	return -1
}

// DatabaseKnown refuses a database that the cluster does not have.
func (r *Request) DatabaseKnown(db string) error {
	if !namespace.ValidDB(db) {
		return srverr.New(srverr.InvalidNamespace, "%s is not a valid db name", db)
	}
	if _, ok := r.Node.data.PrimaryShard(db); !ok {
		return srverr.New(srverr.NamespaceNotFound, "database %s not found", db)
	}
	return nil
}

// ShowConfig brings the collections of the config database up to date that show the cluster's
// metadata, on a node that has them. It is called before they are read: nothing else needs them.
func (r *Request) ShowConfig() error {
	if r.Routing == nil && !r.Node.IsConfigServer() {
		return nil
	}
	r.Node.Store()
	d := r.Node.data
	if d.whole != nil {
		d = d.whole
	}
	if err := r.Routing.Reach(d.shards); err != nil {
		return err
	}
	colls := r.configDocuments(d)
	err := d.storage.s.Write(func(tx *store.Tx) error {
		for name, docs := range colls {
			ns := "config." + name
			c := tx.Coll(ns)
			if c == nil {
				var err error
				if c, err = tx.Create(ns, store.Settings{}, store.IDIndex(nil, IDIndexSpec(nil))); err != nil {
					return err
				}
			}
			if sameDocuments(c, docs) {
				continue
			}
			c, err := tx.Truncate(c)
			if err != nil {
				return err
			}
			for _, doc := range docs {
				if c, err = tx.Insert(c, doc); err != nil {
					return err
				}
			}
		}
		return nil
	})
	d.Wrote(d.storage.s.Latest().TS)
	return err
}

// IsConfigServer reports whether the node is a config server.
func (n *Node) IsConfigServer() bool {
	return n.data.whole != nil && n.data.number == n.data.whole.shards
}

// reachConfig checks that a command of a mongos gets at the config servers if it needs them.
func (x *Routing) reachConfig() error {
	if !x.r.Cmd.Mongos.Config {
		return nil
	}
	return x.Reach(x.r.Node.data.shards)
}

func sameDocuments(c *store.Coll, docs []bson.Raw) bool {
	scan := store.NewScan(c, false, nil)
	for _, want := range docs {
		if _, doc, ok := scan.Next(); !ok || !bson.Equal(doc, want) {
			return false
		}
	}
	return c.Count() == int64(len(docs))
}

// chunkID returns the _id of a chunk in config.chunks: of the time when the collection was sharded,
// and for the rest a hash, so that it stays the chunk's as long as there is one with this bound.
func chunkID(s *sharding.Metadata, i int) (id bson.ObjectID) {
	sum := md5.Sum(append(s.Epoch[:], s.KeyDocument(s.Chunks[i].Min)...))
	copy(id[:], s.Epoch[:4])
	copy(id[4:], sum[:])
	return id
}

// wholeKey is the shard key that config servers show of collections that are not sharded.
var wholeKey = bsondoc.Build(func(b *bsondoc.Builder) { b.B = bson.AppendInt32(b.B, "_id", 1) })

// configDocuments returns what the config database has.
func (r *Request) configDocuments(d *Data) map[string][]bson.Raw {
	v5 := r.Version().AtLeast(5, 0)
	colls := map[string][]bson.Raw{"databases": nil, "collections": nil, "chunks": nil, "shards": nil, "mongos": nil,
		"version": nil, "tags": nil}
	add := func(coll string, f func(d *bsondoc.Builder)) { colls[coll] = append(colls[coll], bsondoc.Build(f)) }
	c := &d.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range d.shards {
		add("shards", func(b *bsondoc.Builder) {
			b.Str("_id", ShardName(i)).Str("host", d.ShardHost(i))
			if tags := c.zones.OfShard(ShardName(i)); len(tags) > 0 {
				b.B = bsondoc.AppendStrings(b.B, "tags", tags)
			}
			b.B = bson.AppendInt32(b.B, "state", 1)
		})
	}
	for _, z := range c.zones.Ranges() {
		add("tags", func(b *bsondoc.Builder) {
			b.B = bson.AppendObjectID(b.B, "_id", z.ID)
			b.Str("ns", z.NS).Doc("min", z.Min).Doc("max", z.Max).Str("tag", z.Zone)
		})
	}
	for _, db := range bsondoc.SortedKeys(c.dbs) {
		add("databases", func(b *bsondoc.Builder) {
			b.Str("_id", db).Str("primary", ShardName(c.dbs[db].primary)).Flag("partitioned",
				r.Version().Has(release.Reply, "config.databases.partitioned"))
			b.Doc("version", bsondoc.Build(func(b *bsondoc.Builder) {
				b.B = bson.AppendInt32(b.B, "lastMod", c.dbs[db].version)
			}))
		})
	}
	d.storage.s.Latest().Colls("", func(coll *store.Coll) bool {
		s := sharding.Of(coll)
		alone := s == nil && r.Node.MovedAlone(coll)
		if alone { // it is shown as a sharded collection that has one chunk for ever
			s = sharding.New(wholeKey, false, false, coll.Shard(), 1, 0)
			copy(s.Epoch[:], coll.UUID[:])
		}
		if s == nil {
			return true
		}
		add("collections", func(b *bsondoc.Builder) {
			b.Str("_id", coll.NS).Value("lastmodEpoch", bson.TypeObjectID, s.Epoch[:])
			b.B = bson.AppendDateTime(b.B, "lastmod", bson.NewDateTime(time.Unix(int64(coll.Since.T), 0)))
			if v5 { // with it, shells look for the chunks by their uuid
				b.B = bson.AppendTimestamp(b.B, "timestamp", coll.Since)
			} else {
				b.Flag("dropped", false)
			}
			b.Doc("key", s.Key).Flag("unique", s.Unique)
			b.B = bson.AppendBinary(b.B, "uuid", bson.BinaryUUID, coll.UUID[:])
			if alone {
				b.Flag("unsplittable", true)
			}
			if s.Balancing.ChunkSize > 0 {
				b.B = bson.AppendInt64(b.B, "maxChunkSizeBytes", int64(s.Balancing.ChunkSize)<<20)
			}
			if s.Balancing.NoMerging {
				b.Flag("enableAutoMerge", false)
			}
			if s.Balancing.Off {
				b.Flag("noBalance", true)
			}
		})
		for i, ch := range s.Chunks {
			add("chunks", func(b *bsondoc.Builder) {
				id := chunkID(s, i)
				b.Value("_id", bson.TypeObjectID, id[:])
				if v5 {
					b.B = bson.AppendBinary(b.B, "uuid", bson.BinaryUUID, coll.UUID[:])
				} else {
					b.Str("ns", coll.NS)
				}
				b.Doc("min", s.KeyDocument(ch.Min)).Doc("max", s.KeyDocument(s.Max(i))).Str("shard",
					ShardName(ch.Shard))
				b.B = bson.AppendTimestamp(b.B, "lastmod", bson.Timestamp{T: ch.Major, I: ch.Minor})
				if !v5 {
					b.Value("lastmodEpoch", bson.TypeObjectID, s.Epoch[:])
				}
			})
		}
		return true
	})
	for _, n := range d.nodes {
		add("mongos", func(b *bsondoc.Builder) {
			b.Str("_id", n.addr)
			b.B = bson.AppendDateTime(b.B, "ping", bson.NewDateTime(n.Started()))
			b.Str("mongoVersion", r.Version().String()).Flag("waiting", true)
		})
	}
	add("version", func(b *bsondoc.Builder) {
		b.B = bson.AppendInt32(b.B, "_id", 1)
		b.Value("clusterId", bson.TypeObjectID, c.id[:])
	})
	return colls
}
