package catalog

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
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
		{Name: "createSearchIndexes", API: server.V1, Needs: server.OnColl("createSearchIndexes"),
			Run: runCreateSearchIndexes},
		{Name: "updateSearchIndex", API: server.V1, Needs: server.OnColl("updateSearchIndex"),
			Run: runUpdateSearchIndex},
		{Name: "dropSearchIndex", API: server.V1, Needs: server.OnColl("dropSearchIndex"), Run: runDropSearchIndex},
		{Name: "listSearchIndexes", Needs: server.OnColl("listSearchIndexes"), Run: runListSearchIndexes},
	} {
		run := c.Run
		c.Run = func(r *server.Request, dst []byte) ([]byte, error) {
			if r.Node.Config().Search == nil {
				return dst, srverr.New(srverr.SearchNotEnabled,
					"Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
						"Please connect to Atlas or an AtlasCLI local deployment to enable.")
			}
			return run(r, dst)
		}
		server.Register(c)
	}
}

var createSearchIndexesArgs = &args.Table[[]searchindex.Spec]{Name: "createSearchIndexes",
	Required: []string{"indexes"},
	Fields: map[string]args.Field[[]searchindex.Spec]{
		"indexes": args.Objects[[]searchindex.Spec](nil).Then(func(specs *[]searchindex.Spec, v args.Value) error {
			for _, doc := range v.Documents() {
				s := searchindex.Spec{Name: "default", Kind: "search"}
				err := searchIndexFields.Parse(v.From, doc, &s)
				if err == nil {
					err = searchindex.CheckDefinition(s.Kind, s.Definition)
				}
				if err != nil {
					return err
				}
				*specs = append(*specs, s)
			}
			return nil
		}),
	}}

var searchIndexFields = &args.Table[searchindex.Spec]{Name: "createSearchIndexes.indexes",
	Required: []string{"definition"}, Fields: map[string]args.Field[searchindex.Spec]{
		"name":       args.String(func(s *searchindex.Spec) *string { return &s.Name }),
		"type":       args.String(func(s *searchindex.Spec) *string { return &s.Kind }),
		"definition": args.Object(func(s *searchindex.Spec) *bson.Raw { return &s.Definition }),
	}}

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
	err := createSearchIndexesArgs.ParseCommand(r, &specs)
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

var (
	searchIndexID   = args.String(func(q *searchIndexArgs) *string { return &q.id })
	searchIndexName = args.String(func(q *searchIndexArgs) *string { return &q.name })

	updateSearchIndexArgs = &args.Table[searchIndexArgs]{Name: "updateSearchIndex", Required: []string{"definition"},
		Fields: map[string]args.Field[searchIndexArgs]{
			"id": searchIndexID, "name": searchIndexName,
			"definition": args.Object(func(q *searchIndexArgs) *bson.Raw { return &q.definition }),
		}}
	dropSearchIndexArgs = &args.Table[searchIndexArgs]{Name: "dropSearchIndex",
		Fields: map[string]args.Field[searchIndexArgs]{
			"id": searchIndexID, "name": searchIndexName,
		}}
)

func parseSearchIndexArgs(r *server.Request, t *args.Table[searchIndexArgs]) (q searchIndexArgs, err error) {
	err = t.ParseCommand(r, &q)
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

func runUpdateSearchIndex(r *server.Request, dst []byte) ([]byte, error) {
	q, err := parseSearchIndexArgs(r, updateSearchIndexArgs)
	if err != nil {
		return dst, err
	}
	return dst, r.Node.Config().Search.Update(q.coll, q.id, q.name, q.definition, r.Node.Data().Clock.Now())
}

func runDropSearchIndex(r *server.Request, dst []byte) ([]byte, error) {
	q, err := parseSearchIndexArgs(r, dropSearchIndexArgs)
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
	dst = bsondoc.Append(dst, "id", int64(0), "ns", ns)
	return bson.EndDocument(bsondoc.AppendDocuments(dst, "firstBatch", list), at), nil
}
