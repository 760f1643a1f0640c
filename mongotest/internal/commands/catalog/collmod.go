package catalog

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "collMod", Needs: server.OnColl("collMod"), API: server.V1, WriteConcern: true,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, ShowsShards: true, Early: server.CheckTarget},
		Run:    runCollMod,
	})
}

func typeOf(v bson.RawValue) string { return bsontext.TypeName(v.Type) }

// modification is what a collMod asks for.
type modification struct {
	coll         *store.Coll
	index        bson.Raw
	validator    bson.Raw
	level        string
	action       string
	viewOn       string
	pipeline     bson.RawValue
	images       bson.Raw
	preImages    *bool
	expire       bson.RawValue
	size, max    int64
	capped       bool
	isValidation bool
	series       bson.Raw
	dry          bool   // dryRun
	parsed       bool   // a definition describes the arguments
	cappedOption string // the last of cappedSize and cappedMax
}

func runCollMod(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	if c == nil && ns == "local.oplog.rs" && r.Node.Set() != nil {
		for _, name := range []string{"cappedSize", "cappedMax"} {
			if !r.Body.Lookup(name).IsZero() {
				return dst, srverr.New(srverr.InvalidOptions, "'%s' cannot be changed for the oplog: run replSetResizeOplog", name)
			}
		}
	}
	if c == nil {
		return dst, srverr.New(srverr.NamespaceNotFound, "ns does not exist")
	}
	m := &modification{coll: c, parsed: r.Version().AllParsed()}
	if err := collModArgs.ParseCommand(r, m); err != nil {
		return dst, err
	}
	if err := m.checkParsed(r.Version()); err != nil {
		return dst, err
	}
	base := len(dst)
	err = r.Write(func(tx *store.Tx) error {
		dst = dst[:base]
		c := tx.Coll(ns)
		if c == nil {
			return srverr.New(srverr.NamespaceNotFound, "ns does not exist")
		}
		if m.index != nil {
			var err error
			if dst, c, err = m.applyIndex(tx, c, r.Version(), dst); err != nil {
				return err
			}
		}
		if m.dry {
			return errDry
		}
		set, changed, err := m.settings(r, tx, c)
		if err != nil || !changed && m.index != nil {
			return err // what applyIndex did is noted already
		}
		if c.View {
			if err := defineView(tx, ns, set.Raw); err != nil {
				return err
			}
		}
		_, err = tx.Modify(c, set, collModDescription(r))
		return err
	})
	if errors.Is(err, errDry) {
		return dst[:base], nil
	}
	r.Node.ArmTTL(false)
	return dst, err
}

// errDry ends a collMod that was only to look for what stands in its way.
var errDry = errors.New("dry run")

// preparesUnique reports whether an index becomes one that takes no more duplicates.
func (m *modification) preparesUnique() bool {
	if !m.index.Lookup("prepareUnique").AsBool() {
		return false
	}
	name, byName := m.index.Lookup("name").StringValue()
	pattern, byKey := m.index.Lookup("keyPattern").Document()
	return !slices.ContainsFunc(m.coll.Indexes(), func(x store.Index) bool {
		return x.PrepareUnique && (byName && x.Name == name || byKey && index.SamePattern(x.Pattern, pattern))
	})
}

// checkParsed checks what goes with what, and with the collection, since there is a definition of
// the command's arguments.
func (m *modification) checkParsed(v release.Version) error {
	bad := func(format string, values ...any) error { return srverr.New(srverr.InvalidOptions, format, values...) }
	unique := m.index.Lookup("unique")
	switch {
	case !v.AllParsed():
	case unique.Type != 0 && !unique.AsBool():
		return srverr.New(srverr.BadValue, "'unique: false' is not supported")
	case m.dry && unique.Type == 0:
		return bad("dry-run mode is only supported for the index option 'unique'")
	case m.expire.Type != 0 && !m.coll.TimeSeries && !m.coll.Clustered:
		return bad("'expireAfterSeconds' option is only supported on collections clustered by _id")
	case m.capped && m.coll.TimeSeries && m.series != nil:
		m.capped = false // beside timeseries it is not looked at
	case m.capped && m.coll.TimeSeries:
		return bad("option not supported on a time-series collection: %s", m.cappedOption)
	case m.capped && !m.coll.Capped:
		return bad("Collection must be capped.")
	case m.preparesUnique() &&
		(m.index.Lookup("hidden").Type != 0 || m.index.Lookup("expireAfterSeconds").Type != 0):
		return bad("'prepareUnique' cannot be changed together with other options of the index")
	}
	return nil
}

// collModDescription is what change streams show of the command.
func collModDescription(r *server.Request) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	first := true
	for k, v := range r.Body.All() {
		if !first && !r.Generic(k) {
			doc = bson.AppendRawValue(doc, k, v)
		}
		first = false
	}
	return bson.EndDocument(doc, at)
}

const notString = "wrong type for field (%s) %s != string"

var collModArgs = &args.Table[modification]{Name: "collMod", Copy: true, Before: (*modification).fits,
	After: (*modification).suits, Fields: map[string]args.Field[modification]{
		"index":     args.AnyObject(func(m *modification) *bson.Raw { return &m.index }).Then(checkIndexChange).Typed(),
		"validator": args.AnyObject(func(m *modification) *bson.Raw { return &m.validator }).Note(validates).Typed(),
		"validationLevel": args.String(func(m *modification) *string { return &m.level }).Note(validates).
			OneOf("invalid validation level: %s", "off", "strict", "moderate").Old(13111, notString).Typed(),
		"validationAction": args.String(func(m *modification) *string { return &m.action }).Note(validates).
			OneOf("invalid validation action: %s", "warn", "error", "errorAndLog").Old(13111, notString).Typed(),
		"viewOn": args.String(func(m *modification) *string {
			return &m.viewOn
		}).Says(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type 'string'").Typed(),
		"pipeline": args.Array(func(m *modification) *bson.RawValue {
			return &m.pipeline
		}).Says(srverr.InvalidOptions, "not a valid aggregation pipeline").Typed(),
		"changeStreamPreAndPostImages": args.AnyObject(func(m *modification) *bson.Raw {
			return &m.images
		}).Gated().Then(checkImages[modification]("collMod")).Typed(),
		"recordPreImages": args.Truth(func(m *modification) *bool {
			m.preImages = new(bool)
			return m.preImages
		}).Gated(),
		"expireAfterSeconds": args.Any(func(m *modification) *bson.RawValue {
			return &m.expire
		}).Gated().Then(checkExpire),
		"cappedSize": args.AnyNumber(func(m *modification) *int64 {
			return &m.size
		}).Note(capped).Gated().Then(checkCappedSize).TypedNumber(),
		"cappedMax": args.AnyNumber(func(m *modification) *int64 {
			return &m.max
		}).Note(capped).Gated().Then(checkCappedMax).TypedNumber(),
		"timeseries": args.Object(func(m *modification) *bson.Raw {
			return &m.series
		}).Must().Gated().Typed(),
		"dryRun":                args.Truth(func(m *modification) *bool { return &m.dry }).TypedFlag(),
		"isTimeseriesNamespace": {}, "prepareUnique": {},
		"timeseriesBucketsMayHaveMixedSchemaData": args.Flag[modification](nil).Gated(),
	}, Old: &args.Old{Unknown: func(_ args.Source, k string) error {
		return srverr.New(srverr.InvalidOptions, "unknown option to collMod: %s", k)
	}}}

// indexChangeArgs are what a collMod says of an index where a definition checks that.
var indexChangeArgs = &args.Table[args.None]{Name: "collMod.index", Fields: map[string]args.Field[args.None]{
	"name": args.String[args.None](nil), "keyPattern": args.Object[args.None](nil),
	"expireAfterSeconds": args.Number[args.None](nil),
	"hidden":             args.SafeBool[args.None](nil), "unique": args.SafeBool[args.None](nil),
	"prepareUnique":  args.SafeBool[args.None](nil),
	"forceNonUnique": args.SafeBool[args.None](nil),
}}

// checkIndexChange checks what is said of an index. What is null is not said.
func checkIndexChange(m *modification, v args.Value) error {
	if !v.From.Version().AllParsed() {
		return nil
	}
	if err := indexChangeArgs.Parse(v.From, m.index, nil); err != nil {
		return err
	}
	at, said := bson.BeginDocument(nil)
	for k, e := range m.index.All() {
		if e.Type != bson.TypeNull && e.Type != bson.TypeUndefined {
			said = bson.AppendRawValue(said, k, e)
		}
	}
	m.index = bson.EndDocument(said, at)
	return nil
}

// imagesArgs are the arguments of changeStreamPreAndPostImages.
var imagesArgs = args.Table[args.None]{Required: []string{"enabled"},
	Fields: map[string]args.Field[args.None]{"enabled": args.Bool[args.None](nil)}}

// checkImages checks the changeStreamPreAndPostImages of a command.
func checkImages[T any](command string) func(q *T, v args.Value) error {
	table := imagesArgs
	table.Name = command + ".changeStreamPreAndPostImages"
	return func(_ *T, v args.Value) error { return table.Parse(v.From, v.Value, nil) }
}

func checkExpire(_ *modification, v args.Value) error {
	s, isString := v.StringValue()
	switch {
	case !v.From.Version().AllParsed():
	case isString && s != "off":
		return srverr.New(
			srverr.InvalidOptions, "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '%s'. Accepted value is 'off'", s)
	case !isString && !v.IsNumber():
		return args.WrongTypes("collMod."+v.Name, v.Type, "[string, decimal, int, double, long]'")
	case v.IsNumber():
		return checkLife(v.From, v.Name, v.Long())
	}
	return nil
}

// checkLife checks for how many seconds the documents of a time series or a clustered collection
// live: no longer than there has been time since the epoch.
func checkLife(from args.Source, name string, seconds int64) error {
	r, ok := from.(*server.Request)
	if seconds >= 0 && seconds <= math.MaxInt64/1000 && (!ok || seconds <= r.Node.Data().Clock.Now().Unix()) {
		return nil
	}
	return srverr.New(srverr.InvalidOptions,
		"TTL index '%s' option must be within an acceptable range, try a different number than %d", name, seconds)
}

func checkCappedSize(m *modification, v args.Value) error {
	switch {
	case !v.From.Version().AllParsed():
	case m.size < 1:
		return args.TooSmall(v.From.Version(), v.Name, 1, m.size)
	case m.size > maxSize:
		return args.TooLarge(v.From.Version(), v.Name, maxSize, m.size)
	}
	return nil
}

func checkCappedMax(m *modification, v args.Value) error {
	if v.From.Version().AllParsed() && m.max > math.MaxInt32 {
		return srverr.New(srverr.BadValue, "BSON field '%s' value must be < %d, actual value '%d'", v.Name,
			int64(1<<31), m.max)
	}
	return nil
}

func validates(m *modification) *bool { return &m.isValidation }

func capped(m *modification) *bool { return &m.capped }

// fits is what is said of an option before its value is looked at.
func (m *modification) fits(k string) error {
	switch k {
	case "viewOn", "pipeline":
		if !m.coll.View {
			return srverr.New(srverr.InvalidOptions, "'%s' option only supported on a view", k)
		}
	case "timeseries", "timeseriesBucketsMayHaveMixedSchemaData":
		if !m.coll.TimeSeries {
			return srverr.New(srverr.InvalidOptions, "option only supported on a time-series collection: %s", k)
		}
	}
	return nil
}

// suits is what is said afterwards.
func (m *modification) suits(k string) error {
	if m.coll.View && k != "viewOn" && k != "pipeline" {
		return srverr.New(srverr.InvalidOptions, "option not supported on a view: %s", k)
	}
	switch k {
	case "cappedSize", "cappedMax":
		m.cappedOption = k
	}
	switch k {
	case "validator", "validationLevel", "validationAction", "recordPreImages", "changeStreamPreAndPostImages",
		"cappedSize", "cappedMax":
		if m.coll.TimeSeries && (m.cappedOption != k || !m.parsed) {
			return srverr.New(srverr.InvalidOptions, "option not supported on a time-series collection: %s", k)
		}
	}
	return nil
}

// indexOptions are what a collMod says of an index.
var indexOptions = []string{"name", "keyPattern", "expireAfterSeconds", "hidden", "unique", "prepareUnique",
	"forceNonUnique"}

// applyIndex changes an index: how long its documents live, whether queries see it, or whether it
// is unique. Servers before 5.0 show values as they came.
func (m *modification) applyIndex(tx *store.Tx, c *store.Coll, version release.Version,
	dst []byte) ([]byte, *store.Coll, error) {
	bad := func(text string) error { return srverr.New(srverr.InvalidOptions, "%s", text) }
	name, byName := m.index.Lookup("name").StringValue()
	pattern, byKey := m.index.Lookup("keyPattern").Document()
	expire, hidden := m.index.Lookup("expireAfterSeconds"), m.index.Lookup("hidden")
	if version.AtLeast(5, 0) {
		for k := range m.index.All() {
			if !slices.Contains(indexOptions, k) {
				return dst, c, args.UnknownField("collMod.index." + k)
			}
		}
	}
	var prepare, unique bson.RawValue
	forceNonUnique := false
	if version.AtLeast(6, 0) {
		prepare, unique, forceNonUnique = m.index.Lookup("prepareUnique"), m.index.Lookup("unique"),
			m.index.Lookup("forceNonUnique").AsBool()
	}
	hasName, hasKey := !m.index.Lookup("name").IsZero(), !m.index.Lookup("keyPattern").IsZero()
	switch {
	case hasName && hasKey:
		return dst, c, bad("Cannot specify both key pattern and name.")
	case !hasName && !hasKey:
		return dst, c, bad("Must specify either index name or key pattern.")
	case hasKey && !byKey:
		return dst, c, bad("Key pattern must be an object.")
	case hasName && !byName:
		return dst, c, bad("Index name must be a string.")
	case expire.Type == 0 && hidden.Type == 0 && prepare.Type == 0 && unique.Type == 0 && !forceNonUnique:
		if version.AtLeast(6, 0) {
			return dst, c, bad("no expireAfterSeconds, hidden, unique, or prepareUnique field")
		}
		return dst, c, bad("no expireAfterSeconds or hidden field")
	case expire.Type != 0 && !expire.IsNumber():
		return dst, c, bad("expireAfterSeconds field must be a number")
	case hidden.Type != 0 && hidden.Type != bson.TypeBoolean && !version.AllParsed():
		return dst, c, bad("hidden field must be a boolean")
	}
	var ix *store.Index
	for i := range c.Indexes() {
		if x := &c.Indexes()[i]; byName && x.Name == name || byKey && index.SamePattern(x.Pattern, pattern) {
			if ix != nil {
				return dst, c, srverr.New(srverr.AmbiguousIndexKeyPattern,
					"index keyPattern %s matches 2 indexes, must use index name. Conflicting indexes:%s, %s",
					bsontext.Document(pattern), bsontext.Document(ix.Spec), bsontext.Document(x.Spec))
			}
			ix = x
		}
	}
	clustered := byName && name == clusteredName(c) || byKey && index.SamePattern(index.IDPattern, pattern)
	if ix == nil && c.Clustered && clustered && hidden.Type != 0 {
		return dst, c, srverr.New(6011800, "The 'hidden' option is not supported for a clusteredIndex")
	}
	if ix == nil {
		what := name
		if byKey || name == "" {
			what = bsontext.Document(pattern)
		}
		return dst, c, srverr.New(srverr.IndexNotFound, "cannot find index %s for ns %s", what, c.NS)
	}
	x := *ix.IndexInfo
	spec := x.Spec
	if hidden.Type != 0 {
		if x.IsID {
			return dst, c, srverr.New(srverr.BadValue, "can't hide _id index")
		}
		if _, name := namespace.Split(c.NS); strings.HasPrefix(name, "system.") {
			return dst, c, srverr.New(srverr.BadValue, "can't hide index on system collection")
		}
		if hidden.AsBool() != x.Hidden {
			dst = bsondoc.Append(dst, "hidden_old", x.Hidden, "hidden_new", hidden.AsBool())
			x.Hidden = hidden.AsBool()
			spec = setOption(spec, "hidden", bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}, !x.Hidden)
		}
	}
	if expire.Type != 0 {
		switch {
		case x.Expire != nil:
			old := spec.Lookup("expireAfterSeconds")
			if version.AllParsed() {
				old = bsondoc.Int64Value(*x.Expire)
			}
			dst = bson.AppendRawValue(dst, "expireAfterSeconds_old", old)
		case !version.AtLeast(6, 0):
			return dst, c, bad("no expireAfterSeconds field to update")
		case x.IsID:
			return dst, c, bad("the _id field does not support TTL indexes")
		case len(x.Fields) != 1:
			return dst, c, bad("TTL indexes are single-field indexes, compound indexes do not support TTL")
		}
		n, _ := args.NumberOf(expire)
		if version.AllParsed() {
			if n < 0 || x.Text != nil {
				return dst, c, bad(
					"TTL index 'expireAfterSeconds' option cannot be less than 0, nor belong to an index of that type")
			}
			n = min(n, math.MaxInt32)
		}
		if !version.AtLeast(5, 0) {
			dst = bson.AppendRawValue(dst, "expireAfterSeconds_new", expire)
		} else {
			dst = bson.AppendInt64(dst, "expireAfterSeconds_new", n)
		}
		x.Expire = &n
		spec = setOption(spec, "expireAfterSeconds", index.ExpireValue(n, version, bsondoc.Int64Value(n)), false)
	}
	if prepare.Type != 0 && prepare.AsBool() != x.PrepareUnique {
		dst = bsondoc.Append(dst, "prepareUnique_old", x.PrepareUnique, "prepareUnique_new", prepare.AsBool())
		x.PrepareUnique = prepare.AsBool()
		spec = setOption(spec, "prepareUnique", bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}},
			!x.PrepareUnique)
	}
	x.Spec = spec
	// for mongorestore: documents may break the rule until all of them are there
	if forceNonUnique && x.Unique && !x.IsID {
		x.Unique, x.Spec = false,
			setOption(spec, "unique", bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}, true)
		c, err := tx.RebuildIndex(c, &x, m.indexChange(x.Name))
		return bson.AppendBool(dst, "forceNonUnique_new", true), c, err
	}
	if unique.AsBool() && !x.Unique {
		return m.makeUnique(tx, c, &x, dst)
	}
	if !bson.Equal(spec, ix.Spec) {
		x.Uses, x.Since = new(atomic.Int64), time.Now() // they are counted anew
	}
	c, err := tx.ModifyIndex(c, &x, m.indexChange(x.Name))
	return dst, c, err
}

// indexChange is what the change log has of the change: it names the index, whatever the command
// did.
func (m *modification) indexChange(name string) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("index", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("name", name)
			for k, v := range m.index.All() {
				switch k {
				case "name", "keyPattern":
					continue
				case "expireAfterSeconds":
					n, _ := args.NumberOf(v)
					v = bsondoc.Int64Value(n)
				}
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		}))
	})
}

// makeUnique turns an index that was prepared for it into a unique one.
func (m *modification) makeUnique(tx *store.Tx, c *store.Coll, x *store.IndexInfo,
	dst []byte) ([]byte, *store.Coll, error) {
	if !x.PrepareUnique {
		return dst, c, srverr.New(srverr.InvalidOptions,
			"Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.")
	}
	groups, err := tx.Duplicates(c, x.Name)
	if err != nil {
		return dst, c, err
	}
	if len(groups) > 0 {
		e := srverr.New(srverr.CannotConvertIndexToUnique,
			"Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.")
		at, extra := bson.BeginDocument(nil)
		list, extra := bson.BeginArrayElement(extra, "violations")
		for i, g := range groups {
			one, d := bson.BeginDocument(bson.AppendIndexHeader(extra, bson.TypeEmbeddedDocument, i))
			ids, d := bson.BeginArrayElement(d, "ids")
			for j, doc := range g {
				id := doc.Lookup("_id")
				d = append(bson.AppendIndexHeader(d, id.Type, j), id.Value...)
			}
			extra = bson.EndDocument(bson.EndDocument(d, ids), one)
		}
		e.Extra = bson.EndDocument(bson.EndDocument(extra, list), at)
		return dst, c, e
	}
	x.Unique, x.PrepareUnique = true, false
	yes := bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}
	x.Spec = setOption(setOption(x.Spec, "prepareUnique", yes, true), "unique", yes, false)
	c, err = tx.RebuildIndex(c, x, m.indexChange(x.Name))
	return bson.AppendBool(dst, "unique_new", true), c, err
}

// setOption returns the document with a field set in its place, at the end if it is new, or
// removed.
func setOption(doc bson.Raw, field string, v bson.RawValue, remove bool) bson.Raw {
	at, out := bson.BeginDocument(nil)
	done := remove
	for k, old := range doc.All() {
		switch {
		case k != field:
			out = bson.AppendRawValue(out, k, old)
		case !remove:
			out = bson.AppendRawValue(out, k, v)
			done = true
		}
	}
	if !done {
		out = bson.AppendRawValue(out, field, v)
	}
	return bson.EndDocument(out, at)
}

// optionOrder is the order of a collection's options.
var optionOrder = []string{"capped", "size", "max", "autoIndexId", "temp", "recordPreImages",
	"changeStreamPreAndPostImages", "storageEngine",
	"indexOptionDefaults", "validator", "validationLevel", "validationAction", "collation", "viewOn", "pipeline"}

func inOptionOrder(doc bson.Raw) bson.Raw {
	at, out := bson.BeginDocument(nil)
	known := map[string]bool{}
	for _, k := range optionOrder {
		known[k] = true
		if v := doc.Lookup(k); v.Type != 0 {
			out = bson.AppendRawValue(out, k, v)
		}
	}
	for k, v := range doc.All() {
		if !known[k] {
			out = bson.AppendRawValue(out, k, v)
		}
	}
	return bson.EndDocument(out, at)
}

// settings works out the collection's new settings.
func (m *modification) settings(r *server.Request, tx *store.Tx,
	c *store.Coll) (set store.Settings, changed bool, err error) {
	set = c.Settings
	raw := bsondoc.OrEmpty(set.Raw)
	text := func(s string) bson.RawValue {
		return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
	}
	if m.isValidation {
		changed = true
		if m.validator != nil {
			if _, err := query.ParseFilter(m.validator, r.ValidatorOptions(set.Collation)); err != nil {
				if r.Version().AtLeast(4, 4) {
					err = srverr.From(err).Prefix("Parsing of collection validator failed :: caused by :: ")
				}
				return set, false, err
			}
			raw = setOption(raw, "validator", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: m.validator},
				m.validator.IsEmpty())
		}
		for _, f := range []struct{ name, value, byDefault string }{{"validationLevel", m.level, "strict"},
			{"validationAction", m.action, "error"}} {
			if f.value == "" && raw.Lookup(f.name).Type == 0 {
				f.value = f.byDefault
			}
			if f.value != "" {
				raw = setOption(raw, f.name, text(f.value), false)
			}
		}
		validator, _ := raw.Lookup("validator").Document()
		level, _ := raw.Lookup("validationLevel").StringValue()
		action, _ := raw.Lookup("validationAction").StringValue()
		if !isAction(r.Version(), action) {
			return set, false, srverr.New(srverr.BadValue, "invalid validation action: %s", action)
		}
		if set.Check, err = newValidator(r, c.NS, bsondoc.OrEmpty(validator), level, action,
			set.Collation); err != nil {
			return set, false, err
		}
	}
	if m.images != nil {
		changed = true
		set.PreImages, _ = m.images.Lookup("enabled").Boolean()
		raw = setOption(raw, "changeStreamPreAndPostImages",
			bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: m.images}, !set.PreImages)
	}
	if m.preImages != nil {
		changed = true
		set.PreImages = *m.preImages
		raw = setOption(raw, "recordPreImages", bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}, !set.PreImages)
	}
	if m.expire.Type != 0 {
		changed = true
		set.ExpireSecs, _ = args.NumberOf(m.expire)
		s, off := m.expire.StringValue()
		raw = setOption(raw, "expireAfterSeconds", bsondoc.Int64Value(set.ExpireSecs), off && s == "off")
	}
	if m.series != nil {
		changed = true
		spec, err := series.Change(r.Version(), c, m.series)
		if err != nil {
			return set, false, err
		}
		raw = setOption(raw, "timeseries", bsondoc.DocumentValue(spec), false)
	}
	if m.capped {
		changed = true
		if m.size > 0 {
			set.Size = m.size
			raw = setOption(raw, "size", bsondoc.Int64Value(m.size), false)
		}
		if !r.Body.Lookup("cappedMax").IsZero() { // without a bound if it is not positive
			set.Max = max(m.max, 0)
			raw = setOption(raw, "max", bsondoc.Int64Value(m.max), m.max <= 0)
		}
	}
	if viewOn := r.Body.Lookup("viewOn"); c.View && (viewOn.Type == bson.TypeString || m.pipeline.Type != 0) {
		changed = true
		q := createSpec{ns: c.NS}
		q.viewOn, _ = raw.Lookup("viewOn").StringValue()
		if r.Version().AllParsed() && viewOn.Type == bson.TypeString {
			switch {
			case m.viewOn == "":
				return set, false, srverr.New(srverr.BadValue, "'viewOn' cannot be empty.'") // sic, as in create
			case m.viewOn[0] == '.' || strings.IndexByte(m.viewOn, 0) >= 0:
				return set, false, srverr.New(srverr.InvalidNamespace, "invalid name for 'viewOn': %s", m.viewOn)
			}
		}
		if m.viewOn != "" {
			q.viewOn = m.viewOn
			raw = setOption(raw, "viewOn", text(m.viewOn), false)
		}
		if m.pipeline.Type != 0 {
			raw = setOption(raw, "pipeline", withoutNulls(m.pipeline, r.Version()), false)
		}
		if strings.Contains(q.viewOn, "$") {
			return set, false, srverr.New(srverr.InvalidNamespace, "invalid name for 'viewOn': %s", q.viewOn)
		}
		if err := (&viewGraph{st: tx.State(), ns: c.NS, coll: set.Collation}).check(q.viewOn,
			raw.Lookup("pipeline").Value); err != nil {
			return set, false, err
		}
		if err := checkViewPipeline(r, c.NS, q.viewOn, raw.Lookup("pipeline").Value, set.Collation); err != nil {
			return set, false, err
		}
	}
	set.Raw = inOptionOrder(raw)
	return set, changed, nil
}
