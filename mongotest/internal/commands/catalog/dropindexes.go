package catalog

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "dropIndexes", Aliases: []string{"deleteIndexes"}, Help: "drop indexes for a collection",
		Needs: server.OnColl("dropIndex"),
		API:   server.V1, WriteConcern: true,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, ShowsShards: true, Early: server.CheckTarget},
		Run:    runDropIndexes,
	})
}

// dropIndexesArgs are the arguments since version 5.0.
var dropIndexesArgs = &args.Table[args.None]{Name: "dropIndexes", Required: []string{"index"},
	Fields: map[string]args.Field[args.None]{
		"index": args.Any[args.None](nil).Optional().Then(func(_ *args.None, v args.Value) error {
			const field = "dropIndexes.index"
			switch v.Type {
			case bson.TypeString, bson.TypeEmbeddedDocument:
				return nil
			case bson.TypeArray:
				for e := range bson.Raw(v.Value).Values() {
					if e.Type != bson.TypeString {
						return args.WrongTypes(field, v.Type, "[string']")
					}
				}
				return nil
			}
			return args.WrongTypes(field, v.Type, "[string, object']")
		}),
		"collectionUUID": args.Any[args.None](nil), "isTimeseriesNamespace": args.Bool[args.None](nil),
	}}

// wrongName is the code of a collection's name that is no text.
func wrongName(r *server.Request) int32 {
	if r.Version().AtLeast(5, 0) {
		return srverr.BadValue
	}
	return srverr.InvalidNamespace
}

func runDropIndexes(r *server.Request, dst []byte) ([]byte, error) {
	if v := r.Body.Lookup("index"); v.Type == bson.TypeNull && r.Version().AllParsed() {
		return dst, args.WrongTypes("dropIndexes.index", v.Type, "[string, object']")
	}
	if r.Version().AtLeast(5, 0) {
		if err := dropIndexesArgs.ParseCommand(r, nil); err != nil {
			return dst, err
		}
	}
	ns, err := r.Collection(wrongName(r))
	if err != nil {
		return dst, err
	}
	index := r.Body.Lookup("index")
	before := 0
	all := false
	err = r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		if source := r.BucketSource(tx, ns); c == nil && source != nil && r.Version().AllParsed() {
			c = source // which the indexes of its buckets belong to
		}
		switch {
		case c == nil:
			return srverr.New(srverr.NamespaceNotFound, "ns not found %s", ns)
		case c.View:
			return srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
		}
		before = len(c.Indexes())
		var names []string
		var err error
		names, all, err = indexesToDrop(r.Version(), c, index)
		if err != nil {
			return err
		}
		for _, name := range names {
			if c, err = tx.DropIndex(c, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	dst = bson.AppendInt32(dst, "nIndexesWas", int32(before))
	if all {
		dst = bson.AppendString(dst, "msg", "non-_id indexes dropped for collection")
	}
	return dst, nil
}

// indexesToDrop returns the names of the indexes that the argument stands for; all is set for "*".
func indexesToDrop(version release.Version, c *store.Coll, v bson.RawValue) (names []string, all bool, err error) {
	switch v.Type {
	case bson.TypeString:
		name, _ := v.StringValue()
		if name == "*" {
			for i := range c.Indexes() {
				if !c.Indexes()[i].IsID {
					names = append(names, c.Indexes()[i].Name)
				}
			}
			return names, true, nil
		}
		if err := droppable(c, name); err != nil {
			return nil, false, err
		}
		return []string{name}, false, nil
	case bson.TypeEmbeddedDocument:
		var found []*store.Index
		for i := range c.Indexes() {
			if ix := &c.Indexes()[i]; index.SamePattern(ix.Pattern, v.Value) {
				found = append(found, ix)
			}
		}
		switch {
		case len(found) == 0 && c.Clustered && index.SamePattern(index.IDPattern, v.Value):
			return nil, false, clusteredStays
		case len(found) == 0:
			return nil, false,
				srverr.New(srverr.IndexNotFound, "can't find index with key: %s", bsontext.Document(v.Value))
		case len(found) > 1:
			return nil, false, srverr.New(srverr.AmbiguousIndexKeyPattern,
				"%d indexes found for key: %s, identify by name instead. Conflicting indexes: %s, %s", len(found),
				bsontext.Document(v.Value), bsontext.Document(found[0].Spec), bsontext.Document(found[1].Spec))
		}
		if err := droppable(c, found[0].Name); err != nil {
			return nil, false, err
		}
		return []string{found[0].Name}, false, nil
	case bson.TypeArray:
		if list := bsondoc.Items(v); len(list) == 1 && version.AllParsed() && bsondoc.MustString(list[0]) == "*" {
			names, _, err = indexesToDrop(version, c, list[0])
			return names, false, err
		}
		for e := range bson.Raw(v.Value).Values() {
			name, ok := e.StringValue()
			if !ok {
				return nil, false, srverr.New(srverr.TypeMismatch,
					"dropIndexes %s (%s) failed to drop multiple indexes - invalid index type: index name must be a string, but got %s", c.NS, bsondoc.UUIDString(c.UUID), bsontext.TypeName(e.Type))
			}
			if err := droppable(c, name); err != nil {
				return nil, false, srverr.From(err)
			}
			if version.AllParsed() && slices.Contains(names, name) {
				return nil, false, srverr.New(srverr.IndexNotFound, "index not found with name [%s]", name)
			}
			names = append(names, name)
		}
		return names, false, nil
	}
	return nil, false, nil
}

// droppable checks that an index exists and may be dropped.
func droppable(c *store.Coll, name string) error {
	ix := c.Index(name)
	switch {
	case ix == nil && c.Clustered && name == clusteredName(c):
		return clusteredStays
	case ix == nil:
		return srverr.New(srverr.IndexNotFound, "index not found with name [%s]", name)
	case ix.IsID:
		return srverr.New(srverr.InvalidOptions, "cannot drop _id index")
	}
	return nil
}

// clusteredStays is the error of dropping what a collection is stored by.
var clusteredStays = srverr.New(5979800, "It is illegal to drop the clusteredIndex")

// clusteredName is the name of a clustered collection's index, which is none of the others.
func clusteredName(c *store.Coll) string {
	spec, _ := c.Raw.Lookup("clusteredIndex").Document()
	if name, ok := spec.Lookup("name").StringValue(); ok {
		return name
	}
	return "_id_"
}
