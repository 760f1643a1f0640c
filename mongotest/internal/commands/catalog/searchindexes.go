package catalog

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/searchindex"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// The commands about search indexes go to a process that stands beside a deployment on Atlas. A
// deployment that has none refuses them, as a server of one's own; one that has keeps the
// definitions and lists them with their states.
func init() {
	for _, c := range []*server.Command{
		{Name: "createSearchIndexes", API: server.V1, Needs: server.OnColl("createSearchIndexes"), Run: runCreateSearchIndexes},
		{Name: "updateSearchIndex", API: server.V1, Needs: server.OnColl("updateSearchIndex"), Run: runUpdateSearchIndex},
		{Name: "dropSearchIndex", API: server.V1, Needs: server.OnColl("dropSearchIndex"), Run: runDropSearchIndex},
		{Name: "listSearchIndexes", Needs: server.OnColl("listSearchIndexes"), Run: runListSearchIndexes},
	} {
		run := c.Run
		c.Run = func(r *server.Request, dst []byte) ([]byte, error) {
			if r.Node.Config().Search == nil {
				return dst, srverr.New(srverr.SearchNotEnabled, "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
					"Please connect to Atlas or an AtlasCLI local deployment to enable.")
			}
			return run(r, dst)
		}
		server.Register(c)
	}
}

var createSearchIndexesStruct = &idl.Struct{Name: "createSearchIndexes", Required: []string{"indexes"}, Fields: map[string]idl.Field{"indexes": {Kind: idl.Objects}}}

var searchIndexStruct = &idl.Struct{Name: "createSearchIndexes.indexes", Required: []string{"definition"}, Fields: map[string]idl.Field{
	"name": {Kind: idl.String}, "type": {Kind: idl.String}, "definition": {Kind: idl.Object},
}}

// parseSearchIndex reads one of the indexes to create.
func parseSearchIndex(r *server.Request, doc bson.Raw) (searchindex.Spec, error) {
	s := searchindex.Spec{Name: "default", Kind: "search"}
	err := searchIndexStruct.Parse(r, doc, func(k string, v bson.RawValue) error {
		switch k {
		case "name":
			s.Name = bsondoc.MustString(v)
		case "type":
			s.Kind = bsondoc.MustString(v)
		case "definition":
			s.Definition = v.Value
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	return s, searchindex.CheckDefinition(s.Kind, s.Definition)
}

// searchedCollection returns the UUID of the collection of a command.
func searchedCollection(r *server.Request) (uuid searchindex.UUID, err error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return uuid, err
	}
	st, err := r.Snapshot(ns)
	if err != nil {
		return uuid, err
	}
	c := st.Coll(ns)
	switch {
	case c == nil:
		_, name := namespace.Split(ns)
		return uuid, srverr.New(srverr.NamespaceNotFound, "Collection '%s' does not exist.", name)
	case c.View:
		return uuid, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return c.UUID, nil
}

func runCreateSearchIndexes(r *server.Request, dst []byte) ([]byte, error) {
	var specs []searchindex.Spec
	err := createSearchIndexesStruct.ParseCommand(r, func(k string, v bson.RawValue) error {
		for _, doc := range idl.Documents(r, k, v) {
			s, err := parseSearchIndex(r, doc)
			if err != nil {
				return err
			}
			specs = append(specs, s)
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	coll, err := searchedCollection(r)
	if err != nil {
		return dst, err
	}
	created, err := r.Node.Config().Search.Create(coll, specs, r.Node.Data().Clock.Now())
	if err != nil {
		return dst, err
	}
	at, dst := bson.BeginArrayElement(dst, "indexesCreated")
	for n, c := range created {
		one, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		d = bson.AppendString(d, "id", c.ID)
		dst = bson.EndDocument(bson.AppendString(d, "name", c.Name), one)
	}
	return bson.EndDocument(dst, at), nil
}

// searchIndexArgs are the arguments of a command about one index, which its id or name tells.
type searchIndexArgs struct {
	coll       searchindex.UUID
	id, name   string
	definition bson.Raw
}

func parseSearchIndexArgs(r *server.Request, t *idl.Struct) (q searchIndexArgs, err error) {
	err = t.ParseCommand(r, func(k string, v bson.RawValue) error {
		switch k {
		case "id":
			q.id = bsondoc.MustString(v)
		case "name":
			q.name = bsondoc.MustString(v)
		case "definition":
			q.definition = v.Value
		}
		return nil
	})
	switch {
	case err != nil:
		return q, err
	case q.id == "" && q.name == "":
		return q, srverr.New(srverr.FailedToParse, "One of 'id' or 'name' must be specified")
	case q.id != "" && q.name != "":
		return q, srverr.New(srverr.FailedToParse, "Cannot specify both 'id' and 'name'")
	}
	q.coll, err = searchedCollection(r)
	return q, err
}

var updateSearchIndexStruct = &idl.Struct{Name: "updateSearchIndex", Required: []string{"definition"}, Fields: map[string]idl.Field{
	"id": {Kind: idl.String}, "name": {Kind: idl.String}, "definition": {Kind: idl.Object},
}}

func runUpdateSearchIndex(r *server.Request, dst []byte) ([]byte, error) {
	q, err := parseSearchIndexArgs(r, updateSearchIndexStruct)
	if err != nil {
		return dst, err
	}
	return dst, r.Node.Config().Search.Update(q.coll, q.id, q.name, q.definition, r.Node.Data().Clock.Now())
}

var dropSearchIndexStruct = &idl.Struct{Name: "dropSearchIndex", Fields: map[string]idl.Field{"id": {Kind: idl.String}, "name": {Kind: idl.String}}}

func runDropSearchIndex(r *server.Request, dst []byte) ([]byte, error) {
	q, err := parseSearchIndexArgs(r, dropSearchIndexStruct)
	if err != nil {
		return dst, err
	}
	return dst, r.Node.Config().Search.Drop(q.coll, q.id, q.name, r.Node.Data().Clock.Now())
}

// runListSearchIndexes is the command that the stage has replaced.
func runListSearchIndexes(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	var list [][]byte
	if c := st.Coll(ns); c != nil {
		for _, doc := range r.Node.Config().Search.List(c.UUID, r.Node.Addr(), r.Body, r.Node.Data().Clock.Now()) {
			list = append(list, doc)
		}
	}
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	dst = bson.AppendInt64(dst, "id", 0)
	dst = bson.AppendString(dst, "ns", ns)
	return bson.EndDocument(bsondoc.AppendDocuments(dst, "firstBatch", list), at), nil
}
