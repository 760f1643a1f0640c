package catalog

import (
	"strings"

	"bytes"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "createIndexes", Needs: server.OnColl("createIndex"), API: server.V1, Txn: server.TxnLocal,
		WriteConcern: true,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, ShowsShards: true,
			Early: server.CheckTarget},
		Run: runCreateIndexes,
	})
}

// maxIndexes is how many indexes a collection may have.
const maxIndexes = 64

// createIndexesSpec are the arguments of createIndexes.
type createIndexesSpec struct {
	node   *server.Node
	specs  []bson.Raw
	parsed []*index.Spec
}

var createIndexesArgs = &args.Table[createIndexesSpec]{Name: "createIndexes", Copy: true, Required: []string{"indexes"},
	Fields: map[string]args.Field[createIndexesSpec]{
		"indexes": args.Objects[createIndexesSpec](nil).Old(srverr.TypeMismatch,
			args.MustBe("an array")).Then(func(q *createIndexesSpec, v args.Value) error {
			q.specs = []bson.Raw{}
			for e := range bson.Raw(v.Value).Values() {
				doc, ok := e.Document()
				if !ok {
					return srverr.New(srverr.TypeMismatch,
						"The elements of the 'indexes' array must be objects, but got %s", bsontext.TypeName(e.Type))
				}
				q.specs = append(q.specs, doc)
			}
			return nil
		}),
		"commitQuorum": args.Any[createIndexesSpec](nil).Then(checkCommitQuorum),
		"ignoreUnknownIndexOptions": args.Bool[createIndexesSpec](nil).Old(srverr.TypeMismatch,
			args.MustBe("a boolean")),
		"isTimeseriesNamespace": {}, "runtimeConstants": {},
	}, Old: &args.Old{Unknown: func(_ args.Source, k string) error {
		return srverr.New(srverr.BadValue, "Invalid field specified for createIndexes command: %s", k)
	}}}

func (q *createIndexesSpec) parse(r *server.Request) error {
	if err := createIndexesArgs.ParseCommand(r, q); err != nil {
		return err
	}
	switch {
	case q.specs == nil:
		return srverr.New(srverr.FailedToParse,
			"The 'indexes' field is a required argument of the createIndexes command")
	case len(q.specs) == 0:
		return srverr.New(srverr.BadValue, "Must specify at least one index to create")
	}
	for _, doc := range q.specs {
		s, err := r.ParseIndex(doc, false)
		switch {
		case err != nil:
			return err
		case s.Name == "_id_" && !s.IsID:
			return srverr.New(
				srverr.BadValue, "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: %s", bsontext.Document(s.Key))
		case s.Name == "*":
			return srverr.New(srverr.BadValue, "The index name '*' is not valid.")
		}
		q.parsed = append(q.parsed, s)
	}
	return nil
}

// indexBuild is what a createIndexes does.
type indexBuild struct {
	r             *server.Request
	ns            string
	specs         []*index.Spec
	created       bool // the collection
	existed       int
	before, after int
}

func runCreateIndexes(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(wrongName(r))
	if err != nil {
		return dst, err
	}
	q := createIndexesSpec{node: r.Node}
	if err := q.parse(r); err != nil {
		return dst, err
	}
	if err := namespace.CheckWritable(r.Version(), ns); err != nil {
		return dst, err
	}
	if _, name := namespace.Split(ns); name == "system.views" {
		return dst, srverr.New(51070, "Modifications to system.views must take an exclusive lock")
	}
	b := &indexBuild{r: r, ns: ns, specs: q.parsed}
	if err = r.Write(b.write); err != nil {
		return dst, err
	}
	r.Node.ArmTTL(false)
	return b.reply(dst), nil
}

func (b *indexBuild) write(tx *store.Tx) error {
	b.created, b.existed = false, 0
	r, ns := b.r, b.ns
	c := tx.Coll(ns)
	if c != nil && c.View {
		return srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	if c == nil {
		var err error
		if c, err = r.CreateImplicitly(tx, ns); err != nil {
			return err
		}
		b.created = true
	}
	fresh, err := b.missing(c)
	if err != nil {
		return err
	}
	if r.InTxn() && len(fresh) > 0 {
		switch {
		case !tx.Created(c):
			return srverr.New(srverr.OperationNotSupportedInTransaction,
				"Cannot create new indexes on existing collection %s in a multi-document transaction.", ns)
		case c.Count() > 0:
			return srverr.New(srverr.OperationNotSupportedInTransaction,
				"Cannot create new indexes on non-empty collection %s in a multi-document transaction.", ns)
		}
	}
	b.before = len(c.Indexes())
	b.after = b.before + len(fresh)
	for _, info := range fresh {
		if c, err = tx.CreateIndex(c, info); err != nil {
			return indexBuildError(c, err)
		}
	}
	return nil
}

// missing returns the definitions of the indexes that the collection does not have yet.
func (b *indexBuild) missing(c *store.Coll) (fresh []*store.IndexInfo, err error) {
	for _, s := range b.specs {
		info, err := b.r.FinishIndex(s, c)
		if err != nil {
			return nil, err
		}
		if _, name := namespace.Split(c.NS); info.Hidden && strings.HasPrefix(name, "system.") {
			return nil, srverr.New(srverr.BadValue, "Can't hide index on system collection")
		}
		same, err := indexConflict(b.r, c, fresh, info)
		if err != nil {
			return nil, err
		}
		if same {
			if slices.ContainsFunc(fresh, func(other *store.IndexInfo) bool { return other.Name == info.Name }) {
				if b.r.Version().AtLeast(5, 0) {
					return nil, srverr.New(srverr.IndexAlreadyExists, "Identical index already exists: %s", info.Name)
				}
				return nil, srverr.New(srverr.OperationFailed,
					"Cannot build two identical indexes. Try again without duplicate indexes.")
			}
			b.existed++
			continue
		}
		if c.Clustered && info.Spec.Lookup("clustered").AsBool() && b.r.Version().AllParsed() {
			return nil, srverr.New(srverr.CannotCreateIndex,
				"Cannot create a clustered index on %s, which has one on _id", b.ns)
		}
		if c.TimeSeries {
			if err := series.CheckIndex(b.r.Version(), c, info); err != nil {
				return nil, err
			}
		}
		if s := sharding.Of(c); s != nil && info.Unique && !sharding.UniqueInShards(s.Key, info.Pattern) {
			return nil, srverr.New(srverr.CannotCreateIndex,
				"cannot create unique index over %s with shard key pattern %s", bsontext.Document(info.Pattern),
				bsontext.Document(s.Key))
		}
		if len(c.Indexes())+len(fresh) >= maxIndexes {
			return nil, srverr.New(srverr.CannotCreateIndex, "add index fails, too many indexes for %s key:%s", b.ns,
				bsontext.Document(info.Pattern))
		}
		fresh = append(fresh, info)
	}
	return fresh, nil
}

func (b *indexBuild) reply(dst []byte) []byte {
	v5, all := b.r.Version().AtLeast(5, 0), b.existed == len(b.specs)
	if !all && !v5 {
		dst = bson.AppendBool(dst, "createdCollectionAutomatically", b.created)
	}
	dst = bsondoc.Append(dst, "numIndexesBefore", int32(b.before), "numIndexesAfter", int32(b.after))
	if v5 {
		dst = bson.AppendBool(dst, "createdCollectionAutomatically", b.created)
	}
	switch {
	case all:
		dst = bson.AppendString(dst, "note", "all indexes already exist")
	case b.existed > 0:
		dst = bson.AppendString(dst, "note", "index already exists")
	}
	if b.r.Node.Set() != nil && !v5 && !all {
		dst = bson.AppendString(dst, "commitQuorum", "votingMembers")
	}
	return dst
}

// checkCommitQuorum checks how many members shall have an index before it is used.
func checkCommitQuorum(q *createIndexesSpec, v args.Value) error {
	n := q.node
	if n.Role() == server.Standalone {
		return srverr.New(srverr.BadValue, "Standalones can't specify commitQuorum")
	}
	if v.IsNumber() {
		switch k := v.Long(); {
		case k < 0 || k > 50:
			return srverr.New(srverr.FailedToParse,
				"commitQuorum has to be a non-negative number and not greater than 50")
		case n.Set() != nil && int(k) > n.Set().Size():
			return srverr.New(srverr.UnsatisfiableCommitQuorum,
				"Commit quorum cannot be satisfied with the current replica set configuration")
		}
		return nil
	}
	switch s, ok := v.StringValue(); {
	case !ok:
		return srverr.New(srverr.FailedToParse, "commitQuorum has to be a number or a string")
	case s != "majority" && s != "votingMembers" && n.Role() == server.Member:
		return srverr.New(srverr.UnsatisfiableCommitQuorum,
			"Commit quorum cannot be satisfied with the current replica set configuration")
	}
	return nil
}

// indexBuildError words the failure of a build over existing documents.
func indexBuildError(c *store.Coll, err error) error {
	if server.IsBlocked(err) {
		return err // it is waited for
	}
	if e := srverr.From(err); e.Code != 0 {
		return e.Prefix("Index build failed: " + bsondoc.UUIDString(session.NewID().ID) + ": Collection " + c.NS +
			" ( " + bsondoc.UUIDString(c.UUID) + " ) :: caused by :: ")
	}
	return err
}

// indexConflict compares a new index with those that exist. same is true if it is there already.
func indexConflict(r *server.Request, c *store.Coll, fresh []*store.IndexInfo,
	x *store.IndexInfo) (same bool, err error) {
	var all []*store.IndexInfo
	for i := range c.Indexes() {
		all = append(all, c.Indexes()[i].IndexInfo)
	}
	all = append(all, fresh...)
	if x.IsID && x.Collation.Same(c.Collation) {
		return true, nil
	}
	if x.IsID {
		return false, srverr.New(
			srverr.BadValue, "The _id index must have the same collation as the collection. Index collation: %s, collection collation: %s",
			bsontext.Document(server.ExplicitCollation(x.Collation)),
			bsontext.Document(server.ExplicitCollation(c.Collation)))
	}
	if r.Version().AtLeast(5, 0) {
		return indexEquivalent(all, x)
	}
	for _, old := range all {
		sameKey := index.SamePattern(old.Pattern, x.Pattern) && old.Collation.Same(x.Collation)
		switch {
		case old.Name == x.Name && index.SamePattern(old.Pattern, x.Pattern) && !old.Collation.Same(x.Collation):
			return false, srverr.New(srverr.IndexOptionsConflict,
				"An index with the same key pattern, but a different collation already exists with the same name.  Try again with a unique name. Existing index: %s Requested index: %s", bsontext.Document(old.Spec), bsontext.Document(x.Spec))
		case old.Name == x.Name && !sameKey:
			return false, srverr.New(srverr.IndexKeySpecsConflict,
				"Index must have unique name.The existing index: %s has the same name as the requested index: %s",
				bsontext.Document(old.Spec), bsontext.Document(x.Spec))
		case old.Name == x.Name:
			if !sameIndexOptions(old, x) {
				return false, srverr.New(srverr.IndexOptionsConflict,
					"Index with name: %s already exists with different options", x.Name)
			}
			return true, nil
		case sameKey && !sameIndexOptions(old, x):
			return false, srverr.New(srverr.IndexOptionsConflict, "Index: %s already exists with different options: %s",
				bsontext.Document(x.Spec), bsontext.Document(old.Spec))
		case sameKey:
			return false, srverr.New(srverr.IndexOptionsConflict,
				"Index with name: %s already exists with a different name", x.Name)
		}
	}
	return false, nil
}

// indexEquivalent is indexConflict since 5.0: two indexes are equivalent if they have the same key,
// collation and filter, and both or none are unique or sparse. A collection has one index of a
// kind, whatever else it is told, and one text index, of whatever key.
func indexEquivalent(all []*store.IndexInfo, x *store.IndexInfo) (same bool, err error) {
	conflict := func(code int32, text string, old *store.IndexInfo) error {
		return srverr.New(code, "%s. Requested index: %s, existing index: %s", text, bsontext.Document(x.Spec),
			bsontext.Document(old.Spec))
	}
	for _, old := range all {
		equivalent := index.SamePattern(old.Pattern, x.Pattern) && old.Collation.Same(x.Collation) &&
			old.Unique == x.Unique && old.Sparse == x.Sparse &&
			sameFilter(old.Partial, x.Partial) &&
			old.Spec.Lookup("wildcardProjection").Equal(x.Spec.Lookup("wildcardProjection")) ||
			old.Text != nil && x.Text != nil && old.Spec.Lookup("key").Equal(x.Spec.Lookup("key"))
		options := sameIndexOptions(old, x) && old.Hidden == x.Hidden
		switch {
		case old.Name == x.Name && !equivalent:
			return false, conflict(srverr.IndexKeySpecsConflict,
				"An existing index has the same name as the requested index. When index names are not specified, they are "+
					"auto generated and can cause conflicts. Please refer to our documentation", old)
		case old.Name == x.Name && !options:
			return false, conflict(srverr.IndexOptionsConflict,
				"An equivalent index already exists with the same name but different options", old)
		case old.Name == x.Name:
			return true, nil
		case equivalent && !options:
			return false, conflict(srverr.IndexOptionsConflict,
				"An equivalent index already exists with a different name and options", old)
		case equivalent:
			return false, srverr.New(srverr.IndexOptionsConflict, "Index already exists with a different name: %s",
				old.Name)
		case old.Text != nil && x.Text != nil:
			return false, srverr.New(srverr.CannotCreateIndex,
				"only one text index per collection allowed, found existing text index \"%s\"", old.Name)
		}
	}
	return false, nil
}

// sameFilter reports whether two partial indexes have the same documents: the order in which
// conditions are written makes no difference.
func sameFilter(a, b *query.Filter) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Document(), b.Document())
}

// sameIndexOptions compares the options that make two indexes with the same key different ones: the
// versions of text and geo indexes do not.
func sameIndexOptions(a, b *store.IndexInfo) bool {
	if a.Unique != b.Unique || a.Sparse != b.Sparse || (a.Expire == nil) != (b.Expire == nil) ||
		a.Expire != nil && *a.Expire != *b.Expire {
		return false
	}
	if !sameFilter(a.Partial, b.Partial) {
		return false
	}
	for _, field := range []string{"wildcardProjection", "weights", "default_language", "language_override", "bits",
		"min", "max"} {
		if !a.Spec.Lookup(field).Equal(b.Spec.Lookup(field)) {
			return false
		}
	}
	return true
}
