package read

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// Query settings: what is set for all queries of a shape, and what a shape is.

func init() {
	for _, c := range []*server.Command{
		{Name: "setQuerySettings", Run: runSetQuerySettings},
		{Name: "removeQuerySettings", Run: runRemoveQuerySettings},
	} {
		c.AdminOnly, c.Needs, c.Mongos = true, server.OnCluster("querySettings"), server.OnMongos{Config: true}
		server.Register(c)
	}
}

// settableCommands are those that settings are for, by their names.
var settableCommands = []string{"find", "distinct", "aggregate"}

// querySettingsSpec are the arguments of setQuerySettings, and with no settings those of
// removeQuerySettings.
type querySettingsSpec struct{ settings bson.Raw }

var (
	setSettingsArgs = &args.Table[querySettingsSpec]{Name: "setQuerySettings", Required: []string{"settings"},
		Fields: map[string]args.Field[querySettingsSpec]{
			"settings": args.Object(func(q *querySettingsSpec) *bson.Raw { return &q.settings }),
		}}
	removeSettingsArgs = &args.Table[querySettingsSpec]{Name: "removeQuerySettings"}

	settingsArgs = &args.Table[args.None]{Name: "setQuerySettings.settings",
		Fields: map[string]args.Field[args.None]{
			"indexHints": args.Any[args.None](nil).Then(checkIndexHints),
			"queryFramework": args.String[args.None](nil).Then(func(_ *args.None, v args.Value) error {
				if s, _ := v.StringValue(); s != "classic" && s != "sbe" {
					return srverr.New(srverr.BadValue,
						"Enumeration value '%s' for field 'setQuerySettings.settings.queryFramework' is not a valid value.", s)
				}
				return nil
			}),
			"reject":  args.Bool[args.None](nil),
			"comment": args.Any[args.None](nil),
		}, Must: true}
	indexHintArgs = &args.Table[args.None]{Name: "indexHints", Required: []string{"ns", "allowedIndexes"},
		Fields: map[string]args.Field[args.None]{
			"ns": args.Object[args.None](nil).Then(func(_ *args.None, v args.Value) error {
				return hintedNamespaceArgs.Parse(v.From, v.Value, nil)
			}),
			"allowedIndexes": args.Array[args.None](nil),
		}}
	hintedNamespaceArgs = &args.Table[args.None]{Name: "indexHints.ns", Fields: map[string]args.Field[args.None]{
		"db": args.String[args.None](nil), "coll": args.String[args.None](nil),
	}}
)

// checkIndexHints checks a hint for one collection, or a list of them.
func checkIndexHints(_ *args.None, v args.Value) error {
	list := []bson.RawValue{v.RawValue}
	if v.Type == bson.TypeArray {
		list = bsondoc.Items(v.RawValue)
	}
	for _, hint := range list {
		doc, ok := hint.Document()
		if !ok {
			return args.WrongTypes("setQuerySettings.settings.indexHints", hint.Type, "[object, array]'")
		}
		if err := indexHintArgs.Parse(v.From, doc, nil); err != nil {
			return err
		}
		if args.IsNull(doc.Lookup("ns", "db")) || doc.Lookup("ns", "db").Type == 0 {
			return srverr.New(8727500, "invalid namespace: the name of the database is missing")
		}
		if args.IsNull(doc.Lookup("ns", "coll")) || doc.Lookup("ns", "coll").Type == 0 {
			return srverr.New(8727501, "invalid namespace: the name of the collection is missing")
		}
		for _, index := range bsondoc.Items(doc.Lookup("allowedIndexes")) {
			if index.Type != bson.TypeString && index.Type != bson.TypeEmbeddedDocument {
				return srverr.New(srverr.FailedToParse, "Hint must be a string or an object")
			}
		}
	}
	return nil
}

// shapeCommand returns the command that settings are for, as if it had come by itself.
func shapeCommand(r *server.Request, doc bson.Raw) (*server.Request, error) {
	name, _ := bsondoc.FirstElement(doc)
	if !slices.Contains(settableCommands, name) {
		return nil, srverr.New(7746402, "QueryShape can not be computed for command: %s", name)
	}
	db := doc.Lookup("$db")
	switch {
	case db.Type == 0 || args.IsNull(db):
		return nil, args.MissingField(name + ".$db")
	case db.Type != bson.TypeString:
		return nil, args.WrongType(name+".$db", db.Type, "string")
	}
	inner := r.Nested()
	inner.DB, _ = db.StringValue()
	if !namespace.ValidDB(inner.DB) {
		return nil, srverr.New(srverr.InvalidNamespace, "Invalid database name: '%s'", inner.DB)
	}
	inner.Cmd, inner.Name, inner.Sequences = r.Node.Lookup(name), name, nil
	inner.Body = explainedBody(doc, inner.DB)
	var err error
	switch name {
	case "find":
		err = (&findSpec{batchSize: -1}).parse(inner, inner.Body)
	case "distinct":
		err = new(distinctSpec).parse(inner)
	case "aggregate":
		err = (&aggregateSpec{batchSize: -1}).parse(inner)
	}
	return inner, err
}

// settingsOf returns the settings for queries of a command's shape, nil if there are none.
func settingsOf(r *server.Request, body bson.Raw) *planner.QuerySetting {
	all := r.Node.Data().QuerySettings()
	name, _ := bsondoc.FirstElement(body)
	if !all.Some() || !slices.Contains(settableCommands, name) {
		return nil
	}
	shape, err := shapeOf(r, body)
	if err != nil {
		return nil // the command finds out itself, and says so in its own words
	}
	return all.Find(query.ShapeHash(shape))
}

// settingsFor is settingsOf for a command that is about to run, which they may refuse.
func settingsFor(r *server.Request, body bson.Raw) (*planner.QuerySetting, error) {
	s := settingsOf(r, body)
	if s.Rejects() {
		return nil, srverr.New(srverr.QueryRejectedBySettings, "Query rejected by admin query settings")
	}
	return s, nil
}

// querySettings are the documents of $querySettings.
func querySettings(r *server.Request, shapes bool) (docs []bson.Raw) {
	for _, s := range r.Node.Data().QuerySettings().List() {
		docs = append(docs, bsondoc.Build(func(d *bsondoc.Builder) {
			appendSetting(d, &s)
			if shapes && s.Shape != nil {
				d.Doc("debugQueryShape", s.Shape)
			}
		}))
	}
	return docs
}

func appendSetting(d *bsondoc.Builder, s *planner.QuerySetting) {
	d.Str("queryShapeHash", s.Hash).Doc("settings", s.Settings)
	if s.Query != nil {
		d.Doc("representativeQuery", s.Query)
	}
}

// settingsTarget reads which shape a command is about: its hash, and with a query that and the
// shape.
func settingsTarget(r *server.Request) (inner *server.Request, s planner.QuerySetting, err error) {
	switch v := r.Arg(); v.Type {
	case bson.TypeString:
		s.Hash, _ = v.StringValue()
		raw, err := hex.DecodeString(s.Hash)
		switch {
		case err != nil && err != hex.ErrLength:
			return nil, s, srverr.New(srverr.BadValue, "The string is not a valid hex-encoded hash: '%s'", s.Hash)
		case err != nil || len(raw) != sha256.Size:
			return nil, s, srverr.New(srverr.InvalidLength,
				"A query shape hash has %d hexadecimal characters, and this one %d", 2*sha256.Size, len(s.Hash))
		}
		s.Hash = strings.ToUpper(s.Hash)
		return nil, s, nil
	case bson.TypeEmbeddedDocument:
		if inner, err = shapeCommand(r, v.Value); err != nil {
			return nil, s, err
		}
		if s.Shape, err = shapeOf(inner, inner.Body); err != nil {
			return nil, s, err
		}
		s.Query, s.Hash = bsondoc.Copy(v.Value), query.ShapeHash(s.Shape)
		return inner, s, nil
	default:
		return nil, s, args.WrongTypes(r.Name+"."+r.Name, v.Type, "[string, object]'")
	}
}

func runSetQuerySettings(r *server.Request, dst []byte) ([]byte, error) {
	var q querySettingsSpec
	if err := setSettingsArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	inner, s, err := settingsTarget(r)
	if err != nil {
		return dst, err
	}
	if q.settings.IsEmpty() {
		return dst, srverr.New(8727502, "settings field in setQuerySettings command cannot be empty")
	}
	if err := settingsArgs.Parse(r, q.settings, nil); err != nil {
		return dst, err
	}
	if inner != nil {
		if err := settable(inner); err != nil {
			return dst, err
		}
	}
	all := r.Node.Data().QuerySettings()
	var old bson.Raw
	was := all.Find(s.Hash)
	switch {
	case was != nil:
		old = was.Settings
		if s.Query == nil {
			s.Query, s.Shape = was.Query, was.Shape
		}
	case inner == nil && !r.Version().AtLeast(8, 1):
		return dst, srverr.New(7746401, "New query settings can only be created with a query instance, but a query "+
			"hash was given.")
	}
	if s.Settings = mergedSettings(old, q.settings); s.Settings.IsEmpty() {
		return dst, srverr.New(7746604,
			"the resulting settings cannot be empty or contain only default values")
	}
	r.NoteChange()
	all.Set(s)
	d := bsondoc.Builder{B: dst}
	appendSetting(&d, &s)
	return d.B, nil
}

// settable refuses queries for which nothing can be set.
func settable(inner *server.Request) error {
	name, coll := bsondoc.FirstElement(inner.Body)
	ns, _ := coll.StringValue()
	switch {
	case inner.DB == "admin" || inner.DB == "local" || inner.DB == "config":
		return srverr.New(8584900, "setQuerySettings command cannot be used on internal databases")
	case strings.HasPrefix(ns, "system."):
		return srverr.New(8584901, "setQuerySettings command cannot be used on system collections")
	case name == "find":
		filter, _ := inner.Body.Lookup("filter").Document()
		let, _ := inner.Body.Lookup("let").Document()
		f, err := query.ParseFilter(bsondoc.OrEmpty(filter), inner.FullOptions(inner.DB+"."+ns, nil, let))
		if err != nil {
			return err
		}
		if _, ok := f.IDEquality(); ok {
			return srverr.New(7746606, "setQuerySettings command cannot be used on queries for one _id")
		}
	}
	return nil
}

// mergedSettings puts settings in place of the old ones, field by field, and leaves out what says
// nothing.
func mergedSettings(old, settings bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for _, k := range []string{"indexHints", "queryFramework", "reject", "comment"} {
			v := settings.Lookup(k)
			if v.Type == 0 {
				v = old.Lookup(k)
			}
			switch {
			case v.Type == 0 || k == "reject" && !v.AsBool():
				continue
			case k == "indexHints":
				list := []bson.RawValue{v}
				if v.Type == bson.TypeArray {
					list = bsondoc.Items(v)
				}
				list = slices.DeleteFunc(list, func(hint bson.RawValue) bool {
					return bson.Raw(bson.Raw(hint.Value).Lookup("allowedIndexes").Value).IsEmpty()
				})
				if len(list) == 0 {
					continue
				}
				v = bsondoc.ArrayValue(list...)
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

func runRemoveQuerySettings(r *server.Request, dst []byte) ([]byte, error) {
	if err := removeSettingsArgs.ParseCommand(r, &querySettingsSpec{}); err != nil {
		return dst, err
	}
	_, s, err := settingsTarget(r)
	if err != nil {
		return dst, err
	}
	r.NoteChange()
	r.Node.Data().QuerySettings().Remove(s.Hash)
	return dst, nil
}
