package server

import (
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// The commands about search indexes go to a process that stands beside a deployment on Atlas. A
// deployment that has none refuses them, as a server of one's own; one that has keeps the
// definitions and lists them with their states.
func init() {
	for name, run := range map[string]func(*Request, []byte) ([]byte, error){
		"createSearchIndexes": runCreateSearchIndexes, "updateSearchIndex": runUpdateSearchIndex,
		"dropSearchIndex": runDropSearchIndex, "listSearchIndexes": runListSearchIndexes,
	} {
		Register(&Command{Name: name, Run: func(r *Request, dst []byte) ([]byte, error) {
			if r.Node.cfg.Search == nil {
				return dst, srverr.New(srverr.SearchNotEnabled, "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
					"Please connect to Atlas or an AtlasCLI local deployment to enable.")
			}
			return run(r, dst)
		}})
	}
}

// SearchIndexes are the search indexes of a deployment. Safe for concurrent use.
type SearchIndexes struct {
	// Build is how long an index takes to be ready, and a dropped one to be gone.
	Build time.Duration

	mu     sync.Mutex
	byColl map[[16]byte][]*searchIndex
}

// searchIndex is one index of a collection, which its UUID names.
type searchIndex struct {
	id         bson.ObjectID
	name, kind string
	latest     searchDefinition
	served     *searchDefinition // what queries use while the latest is built; nil: none was ready yet
	dropped    time.Time         // zero: it is not
}

type searchDefinition struct {
	spec    bson.Raw
	version int64
	created time.Time
}

// state returns a definition's state, which goes from PENDING over BUILDING to READY.
func (x *SearchIndexes) state(d *searchDefinition, now time.Time) string {
	switch age := now.Sub(d.created); {
	case age >= x.Build:
		return "READY"
	case age >= x.Build/2:
		return "BUILDING"
	}
	return "PENDING"
}

// gone reports whether a dropped index is no longer listed.
func (x *SearchIndexes) gone(i *searchIndex, now time.Time) bool {
	return !i.dropped.IsZero() && now.Sub(i.dropped) >= x.Build
}

// find returns the index with this id or name. The caller holds the lock.
func (x *SearchIndexes) find(coll [16]byte, id, name string) *searchIndex {
	for _, i := range x.byColl[coll] {
		if i.dropped.IsZero() && (name != "" && i.name == name || id != "" && i.id.Hex() == id) {
			return i
		}
	}
	return nil
}

// searchIndexSpec is one of the indexes to create.
type searchIndexSpec struct {
	name, kind string
	definition bson.Raw
}

var createSearchIndexesStruct = &idl.Struct{Name: "createSearchIndexes", Required: []string{"indexes"}, Fields: map[string]idl.Field{"indexes": {Kind: idl.Objects}}}

var searchIndexStruct = &idl.Struct{Name: "createSearchIndexes.indexes", Required: []string{"definition"}, Fields: map[string]idl.Field{
	"name": {Kind: idl.String}, "type": {Kind: idl.String}, "definition": {Kind: idl.Object},
}}

func (s *searchIndexSpec) parse(r *Request, doc bson.Raw) error {
	s.name, s.kind = "default", "search"
	err := searchIndexStruct.Parse(r, doc, func(k string, v bson.RawValue) error {
		switch k {
		case "name":
			s.name = bsondoc.MustString(v)
		case "type":
			s.kind = bsondoc.MustString(v)
		case "definition":
			s.definition = v.Value
		}
		return nil
	})
	if err != nil {
		return err
	}
	return checkSearchDefinition(s.kind, s.definition)
}

// checkSearchDefinition checks what every definition of a type has.
func checkSearchDefinition(kind string, definition bson.Raw) error {
	want := map[string]string{"search": "mappings", "vectorSearch": "fields"}[kind]
	switch {
	case want == "":
		return srverr.New(srverr.BadValue, "\"userCommand.indexes[0].type\" must be one of [search, vectorSearch]")
	case definition.Lookup(want).Type == 0:
		return srverr.New(srverr.UnknownError, "Attribute %s missing.", want)
	}
	return nil
}

// searchedCollection returns the UUID of the collection of a command.
func (r *Request) searchedCollection() (uuid [16]byte, err error) {
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
		_, name := splitNS(ns)
		return uuid, srverr.New(srverr.NamespaceNotFound, "Collection '%s' does not exist.", name)
	case c.View:
		return uuid, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return c.UUID, nil
}

func runCreateSearchIndexes(r *Request, dst []byte) ([]byte, error) {
	var specs []searchIndexSpec
	err := createSearchIndexesStruct.ParseCommand(r, func(k string, v bson.RawValue) error {
		for _, doc := range idl.Documents(r, k, v) {
			var s searchIndexSpec
			if err := s.parse(r, doc); err != nil {
				return err
			}
			specs = append(specs, s)
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	coll, err := r.searchedCollection()
	if err != nil {
		return dst, err
	}
	x := r.Node.cfg.Search
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range specs { // all or none
		if old := x.find(coll, "", s.name); old != nil && (old.kind != s.kind || !sameDocument(old.latest.spec, s.definition)) {
			return dst, srverr.New(srverr.IndexAlreadyExists, "Index %s already exists with a different definition. Drop it first if needed.", s.name)
		}
	}
	at, dst := bson.BeginArrayElement(dst, "indexesCreated")
	for n, s := range specs {
		i := x.find(coll, "", s.name)
		if i == nil {
			i = &searchIndex{id: bson.NewObjectID(), name: s.name, kind: s.kind,
				latest: searchDefinition{spec: bsondoc.Copy(s.definition), created: r.Node.data.Clock.Now()}}
			if x.byColl == nil {
				x.byColl = map[[16]byte][]*searchIndex{}
			}
			x.byColl[coll] = append(x.byColl[coll], i)
		}
		one, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		d = bson.AppendString(d, "id", i.id.Hex())
		dst = bson.EndDocument(bson.AppendString(d, "name", i.name), one)
	}
	return bson.EndDocument(dst, at), nil
}

func sameDocument(a, b bson.Raw) bool { return query.Equal(docValue(a), docValue(b), nil) }

// searchIndexOf parses a command about one index, which its id or name tells.
func (r *Request) searchIndexOf(t *idl.Struct) (id, name string, definition bson.Raw, err error) {
	err = t.ParseCommand(r, func(k string, v bson.RawValue) error {
		switch k {
		case "id":
			id = bsondoc.MustString(v)
		case "name":
			name = bsondoc.MustString(v)
		case "definition":
			definition = v.Value
		}
		return nil
	})
	switch {
	case err != nil:
	case id == "" && name == "":
		err = srverr.New(srverr.FailedToParse, "One of 'id' or 'name' must be specified")
	case id != "" && name != "":
		err = srverr.New(srverr.FailedToParse, "Cannot specify both 'id' and 'name'")
	}
	return id, name, definition, err
}

func searchIndexNotFound(id, name string) error {
	return srverr.New(srverr.IndexNotFound, "Search index '%s' could not be found.", name+id)
}

var updateSearchIndexStruct = &idl.Struct{Name: "updateSearchIndex", Required: []string{"definition"}, Fields: map[string]idl.Field{
	"id": {Kind: idl.String}, "name": {Kind: idl.String}, "definition": {Kind: idl.Object},
}}

func runUpdateSearchIndex(r *Request, dst []byte) ([]byte, error) {
	id, name, definition, err := r.searchIndexOf(updateSearchIndexStruct)
	if err != nil {
		return dst, err
	}
	coll, err := r.searchedCollection()
	if err != nil {
		return dst, err
	}
	x, now := r.Node.cfg.Search, r.Node.data.Clock.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	i := x.find(coll, id, name)
	if i == nil {
		return dst, searchIndexNotFound(id, name)
	}
	if err := checkSearchDefinition(i.kind, definition); err != nil {
		return dst, err
	}
	if x.state(&i.latest, now) == "READY" {
		served := i.latest
		i.served = &served
	}
	i.latest = searchDefinition{bsondoc.Copy(definition), i.latest.version + 1, now}
	return dst, nil
}

var dropSearchIndexStruct = &idl.Struct{Name: "dropSearchIndex", Fields: map[string]idl.Field{"id": {Kind: idl.String}, "name": {Kind: idl.String}}}

func runDropSearchIndex(r *Request, dst []byte) ([]byte, error) {
	id, name, _, err := r.searchIndexOf(dropSearchIndexStruct)
	if err != nil {
		return dst, err
	}
	coll, err := r.searchedCollection()
	if err != nil {
		return dst, err
	}
	x := r.Node.cfg.Search
	x.mu.Lock()
	defer x.mu.Unlock()
	i := x.find(coll, id, name)
	if i == nil {
		return dst, searchIndexNotFound(id, name)
	}
	i.dropped = r.Node.data.Clock.Now()
	return dst, nil
}

// runListSearchIndexes is the command that the stage has replaced.
func runListSearchIndexes(r *Request, dst []byte) ([]byte, error) {
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
		for _, doc := range r.Node.cfg.Search.list(c.UUID, r.Node.addr, r.Body, r.Node.data.Clock.Now()) {
			list = append(list, doc)
		}
	}
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	dst = bson.AppendInt64(dst, "id", 0)
	dst = bson.AppendString(dst, "ns", ns)
	return bson.EndDocument(bsondoc.AppendDocuments(dst, "firstBatch", list), at), nil
}

// searchIndexes are the documents of $listSearchIndexes.
func (e *pipelineEnv) searchIndexes(ns pipeline.Namespace, spec bson.Raw) pipeline.Iterator {
	c := e.state().Coll(ns.String())
	if c == nil || c.View {
		return pipeline.FromSlice(nil)
	}
	n := e.run.r.Node
	return pipeline.FromSlice(n.cfg.Search.list(c.UUID, n.addr, spec, n.data.Clock.Now()))
}

// list describes the indexes of a collection, or the one that the specification names.
func (x *SearchIndexes) list(coll [16]byte, host string, spec bson.Raw, now time.Time) []bson.Raw {
	id, _ := spec.Lookup("id").StringValue()
	name, _ := spec.Lookup("name").StringValue()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byColl[coll] = slices.DeleteFunc(x.byColl[coll], func(i *searchIndex) bool { return x.gone(i, now) })
	if len(x.byColl[coll]) == 0 {
		delete(x.byColl, coll)
	}
	var list []bson.Raw
	for _, i := range x.byColl[coll] {
		if (name == "" || i.name == name) && (id == "" || i.id.Hex() == id) {
			list = append(list, x.describe(i, host, now))
		}
	}
	return list
}

// describe is an index as $listSearchIndexes shows it.
func (x *SearchIndexes) describe(i *searchIndex, host string, now time.Time) bson.Raw {
	status := x.state(&i.latest, now)
	main, staged := &i.latest, (*searchDefinition)(nil)
	if status == "READY" {
		i.served = nil
	} else if i.served != nil {
		main, staged = i.served, &i.latest
	}
	queryable := status == "READY" || i.served != nil
	if !i.dropped.IsZero() {
		status, queryable = "DELETING", false
	}
	version := func(b *bsondoc.Builder, key string, d *searchDefinition) {
		b.Doc(key, bsondoc.Build(func(b *bsondoc.Builder) {
			b.Value("version", bson.TypeInt64, bson.AppendInt64Value(nil, d.version))
			b.Value("createdAt", bson.TypeDateTime, bson.AppendInt64Value(nil, d.created.UnixMilli()))
		}))
	}
	part := func(d *searchDefinition) bson.Raw {
		return bsondoc.Build(func(b *bsondoc.Builder) {
			state := x.state(d, now)
			b.Str("status", state)
			b.Flag("queryable", state == "READY")
			version(b, "definitionVersion", d)
			b.Doc("definition", d.spec)
		})
	}
	return bsondoc.Build(func(b *bsondoc.Builder) {
		b.Str("id", i.id.Hex())
		b.Str("name", i.name)
		b.Str("type", i.kind)
		b.Str("status", status)
		b.Flag("queryable", queryable)
		version(b, "latestDefinitionVersion", &i.latest)
		b.Doc("latestDefinition", i.latest.spec)
		detail := bsondoc.Build(func(b *bsondoc.Builder) {
			b.Str("hostname", host)
			b.Str("status", status)
			b.Flag("queryable", queryable)
			b.Doc("mainIndex", part(main))
			if staged != nil {
				b.Doc("stagedIndex", part(staged))
			}
		})
		b.Value("statusDetail", bson.TypeArray, arrayValue(docValue(detail)).Value)
	})
}
