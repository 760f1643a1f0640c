package catalog

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "createIndexes", Needs: server.OnColl("createIndex"), API: server.V1, Txn: server.TxnLocal, WriteConcern: true,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, ShowsShards: true, Early: server.CheckTarget}, Run: runCreateIndexes,
	})
}

// maxIndexes is how many indexes a collection may have.
const maxIndexes = 64

func runCreateIndexes(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	body := r.Body
	var specs []bson.Raw
	hasIndexes := false
	first := true
	for k, v := range body.All() {
		if first {
			first = false
			continue
		}
		switch k {
		case "indexes":
			hasIndexes = true
			if v.Type != bson.TypeArray {
				return dst, srverr.New(srverr.TypeMismatch, "The field 'indexes' must be an array, but got %s", bsontext.TypeName(v.Type))
			}
			for e := range bson.Raw(v.Value).Values() {
				doc, ok := bsondoc.CopyValue(e).Document() // it outlives the command
				if !ok {
					return dst, srverr.New(srverr.TypeMismatch, "The elements of the 'indexes' array must be objects, but got %s", bsontext.TypeName(e.Type))
				}
				specs = append(specs, doc)
			}
		case "commitQuorum":
			if r.Node.Role() == server.Standalone {
				return dst, srverr.New(srverr.BadValue, "Standalones can't specify commitQuorum")
			}
			if err := checkCommitQuorum(r.Node, v); err != nil {
				return dst, err
			}
		case "ignoreUnknownIndexOptions":
			if v.Type != bson.TypeBoolean {
				return dst, srverr.New(srverr.TypeMismatch, "The field 'ignoreUnknownIndexOptions' must be a boolean, but got %s", bsontext.TypeName(v.Type))
			}
		case "isTimeseriesNamespace", "runtimeConstants":
		default:
			if !r.Generic(k) {
				if r.Node.Config().Version.AtLeast(5, 0) {
					return dst, arg.UnknownField("createIndexes." + k)
				}
				return dst, srverr.New(srverr.BadValue, "Invalid field specified for createIndexes command: %s", k)
			}
		}
	}
	switch {
	case !hasIndexes && r.Node.Config().Version.AtLeast(5, 0):
		return dst, arg.MissingField("createIndexes.indexes")
	case !hasIndexes:
		return dst, srverr.New(srverr.FailedToParse, "The 'indexes' field is a required argument of the createIndexes command")
	case len(specs) == 0:
		return dst, srverr.New(srverr.BadValue, "Must specify at least one index to create")
	}
	parsed := make([]*index.Spec, len(specs))
	for i, doc := range specs {
		s, err := r.ParseIndex(doc, false)
		switch {
		case err != nil:
			return dst, err
		case s.Name == "_id_" && !s.IsID:
			return dst, srverr.New(srverr.BadValue, "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: %s", bsontext.Document(s.Key))
		case s.Name == "*":
			return dst, srverr.New(srverr.BadValue, "The index name '*' is not valid.")
		}
		parsed[i] = s
	}
	if err := namespace.CheckWritable(ns); err != nil {
		return dst, err
	}
	if _, name := namespace.Split(ns); name == "system.views" {
		return dst, srverr.New(51070, "Modifications to system.views must take an exclusive lock")
	}
	var before, after int
	created, existed := false, 0
	err = r.Write(func(tx *store.Tx) error {
		created, existed = false, 0
		c := tx.Coll(ns)
		if c != nil && c.View {
			return srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
		}
		if c == nil {
			var err error
			if c, err = r.CreateImplicitly(tx, ns); err != nil {
				return err
			}
			created = true
		}
		before = len(c.Indexes())
		var fresh []*store.IndexInfo
		for _, s := range parsed {
			info, err := r.FinishIndex(s, c)
			if err != nil {
				return err
			}
			same, err := indexConflict(r, c, fresh, info)
			if err != nil {
				return err
			}
			if same {
				for _, other := range fresh {
					if other.Name == info.Name {
						return srverr.New(srverr.OperationFailed, "Cannot build two identical indexes. Try again without duplicate indexes.")
					}
				}
				existed++
				continue
			}
			if c.TimeSeries {
				if err := checkSeriesIndex(r.Node.Config().Version, c, info); err != nil {
					return err
				}
			}
			if s := sharding.Of(c); s != nil && info.Unique && !sharding.UniqueInShards(s.Key, info.Pattern) {
				return srverr.New(srverr.CannotCreateIndex, "cannot create unique index over %s with shard key pattern %s", bsontext.Document(info.Pattern), bsontext.Document(s.Key))
			}
			if len(c.Indexes())+len(fresh) >= maxIndexes {
				return srverr.New(srverr.CannotCreateIndex, "add index fails, too many indexes for %s key:%s", ns, bsontext.Document(info.Pattern))
			}
			fresh = append(fresh, info)
		}
		if r.InTxn() && len(fresh) > 0 {
			switch {
			case !tx.Created(c):
				return srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot create new indexes on existing collection %s in a multi-document transaction.", ns)
			case c.Count() > 0:
				return srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot create new indexes on non-empty collection %s in a multi-document transaction.", ns)
			}
		}
		for _, info := range fresh {
			var err error
			if c, err = tx.CreateIndex(c, info); err != nil {
				return indexBuildError(c, err)
			}
		}
		after = before + len(fresh)
		return nil
	})
	if err != nil {
		return dst, err
	}
	r.Node.ArmTTL(false)
	v5 := r.Node.Config().Version.AtLeast(5, 0)
	if existed < len(parsed) || v5 {
		if v5 {
			dst = bson.AppendInt32(dst, "numIndexesBefore", int32(before))
			dst = bson.AppendInt32(dst, "numIndexesAfter", int32(after))
			dst = bson.AppendBool(dst, "createdCollectionAutomatically", created)
		} else {
			dst = bson.AppendBool(dst, "createdCollectionAutomatically", created)
			dst = bson.AppendInt32(dst, "numIndexesBefore", int32(before))
			dst = bson.AppendInt32(dst, "numIndexesAfter", int32(after))
		}
	} else {
		dst = bson.AppendInt32(dst, "numIndexesBefore", int32(before))
		dst = bson.AppendInt32(dst, "numIndexesAfter", int32(after))
	}
	switch {
	case existed == len(parsed):
		dst = bson.AppendString(dst, "note", "all indexes already exist")
	case existed > 0:
		dst = bson.AppendString(dst, "note", "index already exists")
	}
	if r.Node.Set() != nil && !v5 && existed < len(parsed) {
		dst = bson.AppendString(dst, "commitQuorum", "votingMembers")
	}
	return dst, nil
}

// checkCommitQuorum checks how many members shall have an index before it is used.
func checkCommitQuorum(n *server.Node, v bson.RawValue) error {
	if v.IsNumber() {
		k, _ := arg.Number(v)
		switch {
		case k < 0 || k > 50:
			return srverr.New(srverr.FailedToParse, "commitQuorum has to be a non-negative number and not greater than 50")
		case n.Set() != nil && int(k) > n.Set().Size():
			return srverr.New(srverr.UnsatisfiableCommitQuorum, "Commit quorum cannot be satisfied with the current replica set configuration")
		}
		return nil
	}
	switch s, ok := v.StringValue(); {
	case !ok:
		return srverr.New(srverr.FailedToParse, "commitQuorum has to be a number or a string")
	case s != "majority" && s != "votingMembers" && n.Role() == server.Member:
		return srverr.New(srverr.UnsatisfiableCommitQuorum, "Commit quorum cannot be satisfied with the current replica set configuration")
	}
	return nil
}

// indexBuildError words the failure of a build over existing documents.
func indexBuildError(c *store.Coll, err error) error {
	if server.IsBlocked(err) {
		return err // it is waited for
	}
	if e := srverr.From(err); e.Code != 0 {
		return e.Prefix("Index build failed: " + bsondoc.UUIDString(session.NewID().ID) + ": Collection " + c.NS + " ( " + bsondoc.UUIDString(c.UUID) + " ) :: caused by :: ")
	}
	return err
}

// indexConflict compares a new index with those that exist. same is true if it is there already.
func indexConflict(r *server.Request, c *store.Coll, fresh []*store.IndexInfo, x *store.IndexInfo) (same bool, err error) {
	var all []*store.IndexInfo
	for i := range c.Indexes() {
		all = append(all, c.Indexes()[i].IndexInfo)
	}
	all = append(all, fresh...)
	if x.IsID && x.Collation.Same(c.Collation) {
		return true, nil
	}
	if x.IsID {
		return false, srverr.New(srverr.BadValue, "The _id index must have the same collation as the collection. Index collation: %s, collection collation: %s",
			bsontext.Document(server.ExplicitCollation(x.Collation)), bsontext.Document(server.ExplicitCollation(c.Collation)))
	}
	for _, old := range all {
		sameKey := index.SamePattern(old.Pattern, x.Pattern) && old.Collation.Same(x.Collation)
		partial := bson.Equal(old.Spec.Lookup("partialFilterExpression").Value, x.Spec.Lookup("partialFilterExpression").Value)
		switch {
		case old.Name == x.Name && index.SamePattern(old.Pattern, x.Pattern) && !old.Collation.Same(x.Collation):
			return false, srverr.New(srverr.IndexOptionsConflict, "An index with the same key pattern, but a different collation already exists with the same name.  Try again with a unique name. Existing index: %s Requested index: %s", bsontext.Document(old.Spec), bsontext.Document(x.Spec))
		case old.Name == x.Name && !sameKey:
			return false, srverr.New(srverr.IndexKeySpecsConflict, "Index must have unique name.The existing index: %s has the same name as the requested index: %s", bsontext.Document(old.Spec), bsontext.Document(x.Spec))
		case old.Name == x.Name:
			if !sameIndexOptions(old, x) {
				return false, srverr.New(srverr.IndexOptionsConflict, "Index with name: %s already exists with different options", x.Name)
			}
			return true, nil
		case sameKey && (partial || !r.Node.Config().Version.AtLeast(5, 0)):
			if sameIndexOptions(old, x) || !r.Node.Config().Version.AtLeast(5, 0) {
				if !sameIndexOptions(old, x) {
					return false, srverr.New(srverr.IndexOptionsConflict, "Index: %s already exists with different options: %s", bsontext.Document(x.Spec), bsontext.Document(old.Spec))
				}
				name := x.Name
				if r.Node.Config().Version.AtLeast(5, 0) {
					name = old.Name
				}
				return false, srverr.New(srverr.IndexOptionsConflict, "Index with name: %s already exists with a different name", name)
			}
		}
	}
	return false, nil
}

// sameIndexOptions compares the options that make two indexes with the same key different ones.
func sameIndexOptions(a, b *store.IndexInfo) bool {
	if a.Unique != b.Unique || a.Sparse != b.Sparse || (a.Expire == nil) != (b.Expire == nil) || a.Expire != nil && *a.Expire != *b.Expire {
		return false
	}
	for _, field := range []string{"partialFilterExpression", "wildcardProjection", "weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "bits", "min", "max"} {
		if !a.Spec.Lookup(field).Equal(b.Spec.Lookup(field)) {
			return false
		}
	}
	return true
}
