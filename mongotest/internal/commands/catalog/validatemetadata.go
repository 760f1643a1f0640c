package catalog

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name:  "validateDBMetadata",
		Needs: server.NeedsBy("validate on the collection, or the database", needsOfMetadata),
		Where: server.Anywhere, Run: runValidateMetadata,
	})
}

// metadataSpec are the arguments of validateDBMetadata.
type metadataSpec struct {
	db, coll string // "": all
	api      bson.Raw
	version  string
	strict   bool
}

var (
	metadataArgs = &args.Table[metadataSpec]{
		Name: "validateDBMetadata", Required: []string{"apiParameters"}, Fields: map[string]args.Field[metadataSpec]{
			"db":            args.String(func(q *metadataSpec) *string { return &q.db }),
			"collection":    args.String(func(q *metadataSpec) *string { return &q.coll }),
			"apiParameters": args.Object(func(q *metadataSpec) *bson.Raw { return &q.api }),
		}}
	metadataAPIArgs = &args.Table[metadataSpec]{
		Name: "validateDBMetadata.apiParameters", Required: []string{"version"},
		Fields: map[string]args.Field[metadataSpec]{
			"version":           args.String(func(q *metadataSpec) *string { return &q.version }),
			"strict":            args.Bool(func(q *metadataSpec) *bool { return &q.strict }),
			"deprecationErrors": args.Bool[metadataSpec](nil),
		}}
)

func needsOfMetadata(_ *server.Request, body bson.Raw) []account.Need {
	return []account.Need{{
		Action: "validate", DB: bsondoc.MustString(body.Lookup("db")),
		Coll: bsondoc.MustString(body.Lookup("collection")),
	}}
}

// runValidateMetadata looks for views and indexes that the Stable API does not have.
func runValidateMetadata(r *server.Request, dst []byte) ([]byte, error) {
	var q metadataSpec
	if err := metadataArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if err := metadataAPIArgs.Parse(r, q.api, &q); err != nil {
		return dst, err
	}
	if r.Version().AllParsed() {
		switch v := r.Body.Lookup("db"); {
		case v.Type == bson.TypeString && q.db == "":
			return dst, srverr.New(28539, "db name must not be empty")
		case strings.ContainsAny(q.db, `/\ "`):
			return dst, srverr.New(13280, "Invalid db name: %s", q.db)
		case q.db != "" && !namespace.ValidDB(q.db):
			return dst, srverr.New(srverr.InvalidNamespace, "Invalid db name: %s", q.db)
		}
		for _, name := range []string{"strict", "deprecationErrors"} {
			if v := q.api.Lookup(name); args.IsNull(v) {
				return dst, args.WrongType("validateDBMetadata.apiParameters."+name, v.Type, "bool")
			}
		}
		if v := r.Body.Lookup("collection"); v.Type == bson.TypeString {
			if err := namespace.Check("db", q.coll); err != nil || strings.HasPrefix(q.coll, ".") {
				return dst, srverr.New(srverr.InvalidNamespace, "Invalid collection name: %s", q.coll)
			}
		}
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	list, dst := bson.BeginArrayElement(dst, "apiVersionErrors")
	n := 0
	report := func(c *store.Coll, err error) {
		e := srverr.From(err)
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n), bsondoc.Of(
			"ns", c.NS, "code", e.Code, "codeName", srverr.Name(e.Code), "errmsg", e.Msg)...)
		n++
	}
	st.Colls(q.db, func(c *store.Coll) bool {
		if q.strict && q.version == "1" && (q.coll == "" || q.coll == c.Name) {
			checkStable(c, r.Version().AllParsed(), report)
		}
		return true
	})
	return bson.EndDocument(dst, list), nil
}

// checkStable reports what of a collection version 1 of the Stable API does not have.
func checkStable(c *store.Coll, parsed bool, report func(c *store.Coll, err error)) {
	if c.View {
		db, _ := namespace.Split(c.NS)
		stages := pipeline.StagesIn(c.Raw.Lookup("pipeline"))
		err := pipeline.Walk(pipeline.Namespace{DB: db}, stages, func(s pipeline.Stage) error { return s.CheckV1() })
		if err != nil {
			report(c, err)
		}
	}
	end := ""
	if parsed {
		end = "."
	}
	for i := range c.Indexes() {
		if x := &c.Indexes()[i]; x.Text != nil || x.Sparse {
			report(c, srverr.New(srverr.APIStrictError, "The index with name %s is not allowed in API version 1%s",
				x.Name, end))
		}
	}
}
