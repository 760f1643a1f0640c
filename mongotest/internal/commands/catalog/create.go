// Package catalog has the commands that make, change, list and drop databases, collections, views
// and indexes, and those that tell their sizes.
package catalog

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/commands/read"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/qe"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/validation"
)

func init() {
	server.Register(&server.Command{
		Name: "create", Needs: server.NeedsBy("createCollection or insert on the collection", needsOfCreate),
		API: server.V1, Txn: server.TxnLocal,
		WriteConcern: true, Mongos: server.OnMongos{Config: true, Catalog: (*server.Request).Namespace,
			Forgets: server.ForgetsTarget}, Run: runCreate,
	})
}

// createSpec are the options of a new collection or view.
// maxSize is how many bytes a capped collection may be given: a petabyte.
const maxSize = 1 << 50

type createSpec struct {
	ns        string
	capped    bool
	size, max int64
	hasSize   bool
	hasMax    bool
	anyMax    bool // max stands for any number
	validator bson.Raw
	level     string
	action    string
	collation bson.Raw
	viewOn    string
	hasViewOn bool
	pipeline  bson.RawValue
	idIndex   bson.Raw
	storage   bson.Raw
	defaults  bson.Raw
	temp      bool
	series    bson.Raw
	expire    int64
	hasExpire bool
	clustered bson.RawValue
	images    bson.Raw
	encrypted bson.Raw
	autoIndex *bool
	noIndex   bool // autoIndexId is null, which is taken for false, before 5.0
	preImages bool // recordPreImages, before 6.0
}

var createArgs = &args.Table[createSpec]{Name: "create", Copy: true, Fields: map[string]args.Field[createSpec]{
	"capped": args.SafeBool(func(q *createSpec) *bool { return &q.capped }),
	"size": args.Number(func(q *createSpec) *int64 {
		return &q.size
	}).Note(func(q *createSpec) *bool { return &q.hasSize }),
	"max": args.Number(func(q *createSpec) *int64 {
		return &q.max
	}).Note(func(q *createSpec) *bool { return &q.hasMax }).Then(anyMax),
	"autoIndexId": args.SafeBool(func(q *createSpec) *bool {
		q.autoIndex = new(bool)
		return q.autoIndex
	}),
	"temp":          args.SafeBool(func(q *createSpec) *bool { return &q.temp }),
	"idIndex":       args.Object(func(q *createSpec) *bson.Raw { return &q.idIndex }),
	"storageEngine": args.Object(func(q *createSpec) *bson.Raw { return &q.storage }),
	"validator":     args.Object(func(q *createSpec) *bson.Raw { return &q.validator }),
	"collation": args.Object(func(q *createSpec) *bson.Raw {
		return &q.collation
	}).Then(func(_ *createSpec, v args.Value) error { return query.CheckCreateCollation(v) }),
	"viewOn": args.String(func(q *createSpec) *string {
		return &q.viewOn
	}).Note(func(q *createSpec) *bool { return &q.hasViewOn }),
	"timeseries": args.Object(func(q *createSpec) *bson.Raw { return &q.series }).Gated(),
	"clusteredIndex": args.Any(func(q *createSpec) *bson.RawValue {
		return &q.clustered
	}).Gated().Then(checkClustered),
	"encryptedFields": args.Object(func(q *createSpec) *bson.Raw { return &q.encrypted }).Gated(),
	"pipeline": args.Objects[createSpec](nil).Then(func(q *createSpec, v args.Value) error {
		q.pipeline = withoutNulls(v.RawValue, v.From.Version())
		return nil
	}),
	"expireAfterSeconds": args.Number(func(q *createSpec) *int64 {
		return &q.expire
	}).Gated().Note(func(q *createSpec) *bool { return &q.hasExpire }),
	"validationLevel":     args.String(func(q *createSpec) *string { return &q.level }),
	"validationAction":    args.String(func(q *createSpec) *string { return &q.action }),
	"recordPreImages":     args.SafeBool(func(q *createSpec) *bool { return &q.preImages }).Gated(),
	"indexOptionDefaults": args.Object(func(q *createSpec) *bson.Raw { return &q.defaults }),
	"changeStreamPreAndPostImages": args.Object(func(q *createSpec) *bson.Raw {
		return &q.images
	}).Gated().Then(checkImages[createSpec]("create")),
	"flags": args.Number[createSpec](nil),
}}

// clusteredArgs are the arguments of clusteredIndex.
var clusteredArgs = args.Table[args.None]{Name: "create.clusteredIndex", Required: []string{"key", "unique"},
	Fields: map[string]args.Field[args.None]{
		"v": args.Number[args.None](nil).Then(func(_ *args.None, v args.Value) error {
			if v.Long() != 2 {
				return srverr.New(5979704, "The 'v' of a clustered index has to be 2, found %d", v.Long())
			}
			return nil
		}),
		"key": args.Object[args.None](nil).Then(func(_ *args.None, v args.Value) error {
			if k, x := bsondoc.FirstElement(v.Value); k != "_id" || !x.AsBool() {
				return srverr.New(srverr.InvalidIndexSpecificationOption,
					"The 'key' field for the clusteredIndex has to be { _id: 1 }, found %s", bsontext.Document(v.Value))
			}
			return nil
		}),
		"name": args.String[args.None](nil),
		"unique": args.SafeBool[args.None](nil).Then(func(_ *args.None, v args.Value) error {
			if !v.AsBool() {
				return srverr.New(5979700, "The clusteredIndex option requires unique: true to be specified")
			}
			return nil
		}),
	}}

// checkClustered checks the clusteredIndex of create: a document, or what says yes or no as the
// server's own collections have it.
func checkClustered(q *createSpec, v args.Value) error {
	if doc, ok := v.Document(); ok {
		return clusteredArgs.Parse(v.From, doc, nil)
	}
	if !v.IsNumber() && v.Type != bson.TypeBoolean {
		return args.WrongTypes("create.clusteredIndex", v.Type, "[bool, object]'")
	}
	q.clustered = bsondoc.BoolValue(v.AsBool())
	return nil
}

func runCreate(r *server.Request, dst []byte) ([]byte, error) {
	q := createSpec{}
	if err := q.parse(r); err != nil {
		return dst, err
	}
	ns := q.ns
	if q.idIndex != nil {
		s, err := r.ParseIndex(q.idIndex, true)
		if err == nil {
			err = s.CheckID()
		}
		if err != nil {
			return dst, err
		}
	}
	set, err := q.settings(r)
	if err != nil {
		return dst, err
	}
	if own := q.idIndex.Lookup("collation"); own.Type != 0 {
		if c, err := query.ParseCollation(r.Version(), own.Value); err != nil || !c.Same(set.Collation) {
			return dst, srverr.New(srverr.BadValue, "'idIndex' must have the same collation as the collection.")
		}
	}
	err = r.Write(func(tx *store.Tx) error {
		if c := tx.Coll(ns); c != nil {
			return q.exists(r, c, set)
		}
		if err := r.CheckNewCollection(tx.State(), r.DB); err != nil {
			return err
		}
		r.Node.Data().AddDatabase(r.DB)
		if set.View {
			if err := (&viewGraph{st: tx.State(), ns: ns, coll: set.Collation}).check(q.viewOn,
				set.Raw.Lookup("pipeline").Value); err != nil {
				return err
			}
			if _, err := tx.Create(ns, set, nil); err != nil {
				return err
			}
			return defineView(tx, ns, set.Raw)
		}
		if r.NewUUID != nil {
			tx.Assign(*r.NewUUID)
		}
		c, err := tx.Create(ns, set, q.idIndexFor(set))
		if err != nil {
			return err
		}
		x, err := r.SeriesIndex(c)
		if err == nil && x != nil {
			_, err = tx.CreateIndex(c, x)
		}
		return err
	})
	if set.ExpireSecs > 0 {
		r.Node.ArmTTL(false)
	}
	if err == nil && q.autoIndex != nil && !r.Version().AtLeast(5, 0) {
		dst = bson.AppendString(dst, "note",
			"The autoIndexId option is deprecated and will be removed in a future release")
	}
	return dst, err
}

// withoutDefaults returns the options of a collection without those that are as if not given.
func withoutDefaults(raw bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range raw.All() {
			if k != "changeStreamPreAndPostImages" || bson.Raw(v.Value).Lookup("enabled").AsBool() {
				d.Value(k, v.Type, v.Value)
			}
		}
	})
}

// exists answers for a collection that is there already.
func (q *createSpec) exists(r *server.Request, c *store.Coll, set store.Settings) error {
	v := r.Version()
	if r.Routing != nil && !v.AtLeast(5, 0) && !set.View && !r.InTxn() { // the config servers compare the options
		if old := bsondoc.OrEmpty(c.Raw); !bson.Equal(old, bsondoc.OrEmpty(set.Raw)) {
			return srverr.New(srverr.NamespaceExists, "ns: %s already exists with different options: %s", c.NS,
				bsontext.Document(old))
		}
		return nil
	}
	switch {
	case v.AtLeast(7, 0) && !r.InTxn() && c.View == set.View &&
		bson.Equal(withoutDefaults(c.Raw), withoutDefaults(set.Raw)):
		return nil
	case set.View:
		return srverr.New(srverr.NamespaceExists, "Namespace already exists")
	case c.View:
		return srverr.New(srverr.NamespaceExists, "A view already exists. NS: %s", q.ns)
	case v.AtLeast(5, 0):
		return srverr.New(srverr.NamespaceExists, "Collection %s already exists.", q.ns)
	}
	return srverr.New(srverr.NamespaceExists, "Collection already exists. NS: %s", q.ns)
}

func (q *createSpec) parse(r *server.Request) error {
	err := createArgs.ParseCommand(r, q)
	if err != nil {
		return err
	}
	if q.ns, err = r.Collection(srverr.BadValue); err != nil {
		return err
	}
	if strings.IndexByte(r.DB, '$') >= 0 && r.Version().AtLeast(7, 0) {
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace: %s", q.ns)
	}
	if strings.IndexByte(r.DB, '$') >= 0 {
		return srverr.New(17320, "cannot do createCollection on namespace with a $ in it: %s", q.ns)
	}
	if err := namespace.CheckCreatable(r.Version(), q.ns); err != nil {
		return err
	}
	if !r.Version().AtLeast(5, 0) {
		if err := q.checkNulls(r.Body); err != nil {
			return err
		}
	}
	if err := q.checkSeries(r.Version()); err != nil {
		return err
	}
	if q.hasExpire && r.Version().AllParsed() {
		if err := checkLife(r, "expireAfterSeconds", q.expire); err != nil {
			return err
		}
	}
	if r.Version().AllParsed() && !q.hasViewOn && q.pipeline.Type == bson.TypeArray &&
		!bson.Raw(q.pipeline.Value).IsEmpty() {
		return srverr.New(srverr.InvalidOptions, "'pipeline' cannot be specified without 'viewOn'")
	}
	if err := q.check(r.Version()); err != nil || !r.Version().AllParsed() {
		return err
	}
	return q.checkLater(r)
}

// isAction reports whether a version has a validationAction.
func isAction(v release.Version, action string) bool {
	switch action {
	case "error", "warn":
		return true
	case "errorAndLog":
		return v.Has(release.Value, "create.validationAction=errorAndLog")
	}
	return false
}

// checkLater checks what only later versions refuse.
func (q *createSpec) checkLater(r *server.Request) error {
	if q.capped && q.size < 1 {
		return args.TooSmall(r.Version(), "size", 1, q.size)
	}
	for _, field := range []string{"validationLevel", "validationAction"} {
		if value, ok := r.Body.Lookup(field).StringValue(); ok && value == "" {
			return srverr.New(srverr.BadValue, "Enumeration value '' for field 'create.%s' is not a valid value.", field)
		}
	}
	if strings.Contains(q.ns, ".system.buckets.") && q.series == nil {
		return srverr.New(srverr.IllegalOperation, "Cannot create %s without the 'timeseries' option", q.ns)
	}
	return nil
}

// anyMax reads the greatest number of documents of a capped collection as old servers do, which
// take what does not fit for "any number".
func anyMax(q *createSpec, v args.Value) error {
	f, isDouble := v.Double()
	_, isDecimal := v.Decimal128()
	huge := isDouble && (math.IsNaN(f) || math.Abs(f) >= 1<<63) ||
		isDecimal && (q.max == math.MaxInt64 || q.max == math.MinInt64)
	if !v.From.Version().AtLeast(5, 0) && (q.max <= 0 || q.max == math.MaxInt32 || q.max == math.MaxInt64 || huge) {
		q.max, q.anyMax = 0, true
	}
	return nil
}

// checkNulls refuses null where the parser of the options, which runs after that of the command,
// takes it for a wrong type. A null autoIndexId is false to it.
func (q *createSpec) checkNulls(body bson.Raw) error {
	for k, v := range body.All() {
		if k == "autoIndexId" && args.IsNull(v) {
			q.noIndex = true
		}
		want, ok := notNull[k]
		if !ok || v.Type != bson.TypeNull && v.Type != bson.TypeUndefined &&
			!(k == "pipeline" && v.Type != bson.TypeArray) {
			continue
		}
		code := srverr.BadValue
		if k == "idIndex" || k == "indexOptionDefaults" {
			code = srverr.TypeMismatch
		}
		return srverr.New(code, "'%s' has to be %s.", k, want)
	}
	return nil
}

// notNull are the options of create that may not be null, with what they have to be.
var notNull = map[string]string{
	"validationLevel": "a string", "validationAction": "a string", "viewOn": "a string", "validator": "a document",
	"collation": "a document", "storageEngine": "a document", "indexOptionDefaults": "a document",
	"idIndex": "an object", "pipeline": "an array",
}

// noAutoIndex reports whether the collection is to have no index on _id.
func (q *createSpec) noAutoIndex() bool {
	return !q.hasViewOn && (q.noIndex || q.autoIndex != nil && !*q.autoIndex)
}

func (q *createSpec) check(version release.Version) error {
	parsed := version.AllParsed()
	switch {
	case q.clustered.Type != 0 && q.capped:
		return srverr.New(6049200, "'capped' and 'clusteredIndex' options cannot both be set")
	case q.clustered.Type != 0 && q.hasMax && parsed:
		return srverr.New(6049204, "'max' and 'clusteredIndex' options cannot both be set")
	case q.clustered.Type != 0 && q.hasViewOn:
		return srverr.New(6026500, "The 'clusteredIndex' option is not supported with views")
	case q.clustered.Type == bson.TypeBoolean && q.clustered.AsBool() && !strings.Contains(q.ns, ".system.buckets."):
		return srverr.New(
			5979703, "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal collections and vice versa")
	case q.clustered.Type == bson.TypeEmbeddedDocument && q.idIndex != nil:
		return srverr.New(srverr.InvalidOptions, "The 'clusteredIndex' option is not supported with 'idIndex'")
	case q.images.Lookup("enabled").AsBool() && q.hasViewOn:
		return srverr.New(srverr.InvalidOptions, "The 'changeStreamPreAndPostImages' option is not supported on views")
	case q.capped && !q.hasSize:
		return srverr.New(srverr.InvalidOptions, "the 'size' field is required when 'capped' is true")
	case !q.capped && (q.hasSize || q.hasMax):
		return srverr.New(srverr.InvalidOptions,
			"the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
	case q.idIndex != nil && q.hasViewOn:
		return srverr.New(srverr.InvalidOptions, "'idIndex' is not allowed with 'viewOn': %s",
			bsontext.Document(q.idIndex))
	case q.idIndex != nil && q.autoIndex != nil:
		return srverr.New(srverr.InvalidOptions, "'idIndex' is not allowed with 'autoIndexId': %s",
			bsontext.Document(q.idIndex))
	case q.size < 0:
		return srverr.New(srverr.BadValue, "size has to be >= 0")
	case q.size > maxSize:
		return srverr.New(srverr.BadValue, "size cannot exceed 1 PB")
	case q.max >= 1<<31:
		return srverr.New(srverr.BadValue, "max in a capped collection has to be < 2^31 or not set")
	case !q.hasViewOn && q.pipeline.Type == bson.TypeArray && !bson.Raw(q.pipeline.Value).IsEmpty():
		return srverr.New(srverr.BadValue, "'pipeline' cannot be specified without 'viewOn'")
	case q.hasViewOn && q.viewOn == "":
		return srverr.New(srverr.BadValue, "'viewOn' cannot be empty.'") // sic
	case q.noAutoIndex() && !strings.HasPrefix(q.ns, "local."):
		return srverr.New(50001, "autoIndexId:false is not allowed for collection %s because it can be replicated",
			q.ns)
	case (parsed || !q.hasViewOn) && q.level != "" && q.level != "off" && q.level != "strict" && q.level != "moderate":
		return srverr.New(srverr.BadValue, "invalid validation level: %s", q.level)
	case (parsed || !q.hasViewOn) && q.action != "" && !isAction(version, q.action):
		return srverr.New(srverr.BadValue, "invalid validation action: %s", q.action)
	case q.collation != nil && q.collation.IsEmpty():
		return srverr.New(srverr.BadValue, "'collation' cannot be an empty document.")
	}
	if parsed {
		return q.checkEngines()
	}
	for k, v := range q.storage.All() {
		doc, ok := v.Document()
		if !ok {
			return srverr.New(srverr.BadValue, "'storageEngine.%s' has to be an embedded document.", k)
		}
		if s, ok := doc.Lookup("configString").StringValue(); ok && s != "" && !strings.Contains(s, "=") {
			return srverr.New(srverr.BadValue, "22: Invalid argument: unknown configuration key '%s'", s)
		}
	}
	for k := range q.defaults.All() {
		if k != "storageEngine" {
			return srverr.New(srverr.InvalidOptions, "indexOptionDefaults.%s is not a supported option.", k)
		}
	}
	return nil
}

// settings works out the options as they are shown and used.
func (q *createSpec) settings(r *server.Request) (set store.Settings, err error) {
	version := r.Version()
	at, raw := bson.BeginDocument(nil)
	if q.capped {
		set.Capped, set.Size, set.Max = true, max((q.size+255)/256*256, 4096), q.max
		raw = bson.AppendBool(raw, "capped", true)
		raw = appendSize(raw, "size", (q.size+255)/256*256, version)
		if q.anyMax {
			raw = appendSize(raw, "max", math.MaxInt32, version)
		} else if q.max > 0 {
			raw = appendSize(raw, "max", q.max, version)
		}
	}
	if q.autoIndex != nil && !q.hasViewOn {
		raw = bson.AppendBool(raw, "autoIndexId", *q.autoIndex)
	}
	if q.temp {
		raw = bson.AppendBool(raw, "temp", true)
	}
	if q.preImages {
		set.PreImages = true
		raw = bson.AppendBool(raw, "recordPreImages", true)
	}
	if q.images != nil {
		set.PreImages, _ = q.images.Lookup("enabled").Boolean()
		raw = bson.AppendDocument(raw, "changeStreamPreAndPostImages", q.images)
	}
	if q.storage != nil && !q.storage.IsEmpty() {
		raw = bson.AppendDocument(raw, "storageEngine", q.storage)
	}
	if !q.defaults.IsEmpty() {
		raw = bson.AppendDocument(raw, "indexOptionDefaults", q.defaults)
	}
	if q.collation != nil {
		if set.Collation, err = query.ParseCollation(r.Version(), q.collation); err != nil {
			return set, err
		}
	}
	if q.validator != nil {
		if set.Check, err = newValidator(r, q.ns, q.validator, q.level, q.action, set.Collation); err != nil {
			return set, err
		}
		if !q.validator.IsEmpty() {
			raw = bson.AppendDocument(raw, "validator", q.validator)
		}
	}
	if q.level != "" && !q.hasViewOn {
		raw = bson.AppendString(raw, "validationLevel", q.level)
	}
	if q.action != "" && !q.hasViewOn {
		raw = bson.AppendString(raw, "validationAction", q.action)
	}
	if set.Collation != nil {
		raw = bson.AppendDocument(raw, "collation", set.Collation.Spec())
	}
	if q.hasViewOn {
		set.View = true
		// A view keeps nothing but its definition.
		if at, raw = bson.BeginDocument(nil); set.Collation != nil {
			raw = bson.AppendDocument(raw, "collation", set.Collation.Spec())
		}
		if strings.IndexByte(q.viewOn, '$') >= 0 {
			return set, srverr.New(srverr.InvalidNamespace, "invalid name for 'viewOn': %s", q.viewOn)
		}
		raw = bson.AppendString(raw, "viewOn", q.viewOn)
		stages := bsondoc.OrEmpty(q.pipeline.Value)
		raw = bson.AppendArray(raw, "pipeline", stages)
		if err := checkViewPipeline(r, q.ns, q.viewOn, stages, set.Collation); err != nil {
			return set, err
		}
	}
	if q.clustered.Type != 0 {
		set.Clustered = true
		raw = appendClustered(raw, q.clustered)
	}
	if q.hasExpire {
		set.ExpireSecs = q.expire
		raw = bson.AppendInt64(raw, "expireAfterSeconds", set.ExpireSecs)
	}
	if q.series != nil {
		set.TimeSeries = true
		raw = bson.AppendDocument(raw, "timeseries", series.Complete(q.series))
	}
	if q.encrypted != nil {
		if q.encrypted, err = q.checkEncrypted(r); err != nil {
			return set, err
		}
		raw = bson.AppendDocument(raw, "encryptedFields", q.encrypted)
	}
	set.Raw = bson.EndDocument(raw, at)
	return set, nil
}

// appendSize appends a size or a limit of a capped collection. Before 5.0 the server writes as a
// double what is above 2^30 and below 2^40.
func appendSize(raw []byte, key string, n int64, version release.Version) []byte {
	if !version.AtLeast(5, 0) && n > 1<<30 && n <= 1<<40 {
		return bson.AppendDouble(raw, key, float64(n))
	}
	return bsondoc.AppendShortest(raw, key, n)
}

// checkEncrypted checks encryptedFields and fills in what they leave out.
func (q *createSpec) checkEncrypted(r *server.Request) (bson.Raw, error) {
	// Since 8.1 what is wrong with the fields counts first.
	standalone := srverr.New(6346402, "Encrypted collections are not supported on standalone")
	alone, parsed := r.Node.Role() == server.Standalone, r.Version().AllParsed()
	switch {
	case alone && !parsed:
		return nil, standalone
	case q.capped:
		return nil, srverr.New(6367301, "Encrypted collections cannot be capped")
	case q.hasViewOn:
		return nil, srverr.New(6346401, "Encrypted collections cannot be views")
	case q.series != nil:
		code := int32(6346403)
		if parsed {
			code = 6346401
		}
		return nil, srverr.New(code, "Encrypted collections cannot be time series")
	}
	_, coll := namespace.Split(q.ns)
	fields, err := qe.Complete(coll, q.encrypted, r.Version())
	if err == nil && alone {
		err = standalone
	}
	return fields, err
}

// appendClustered appends the clusteredIndex option as listCollections shows it.
func appendClustered(raw []byte, v bson.RawValue) []byte {
	name := "_id_"
	if doc, ok := v.Document(); ok {
		if s, ok := doc.Lookup("name").StringValue(); ok {
			name = s
		}
	}
	at, raw := bson.BeginDocumentElement(raw, "clusteredIndex")
	raw = bson.AppendInt32(raw, "v", 2)
	key, raw := bson.BeginDocumentElement(raw, "key")
	raw = bson.EndDocument(bson.AppendInt32(raw, "_id", 1), key)
	raw = bsondoc.Append(raw, "name", name, "unique", true)
	return bson.EndDocument(raw, at)
}

// idIndexFor returns the definition of the collection's _id index, nil if it has none.
func (q *createSpec) idIndexFor(set store.Settings) *store.IndexInfo {
	if set.Clustered || set.TimeSeries || q.noAutoIndex() || strings.HasSuffix(q.ns, ".system.profile") {
		return nil
	}
	var spec bson.Raw
	if set.Collation != nil {
		spec = set.Collation.Spec()
	}
	version := int32(2)
	if v, ok := args.NumberOf(q.idIndex.Lookup("v")); ok && v == 1 {
		version = 1
	}
	return store.IDIndex(set.Collation, server.IDIndexOf(version, spec))
}

// newValidator parses a collection's validator.
func newValidator(r *server.Request, ns string, spec bson.Raw, level, action string,
	coll *query.Collation) (any, error) {
	switch db, name := namespace.Split(ns); {
	case spec.IsEmpty():
	case strings.HasPrefix(name, "system.") && !strings.HasPrefix(name, "system.buckets."):
		return nil, srverr.New(srverr.InvalidOptions, "Document validators not allowed on system collection %s", ns)
	case db == "admin" || db == "local" || db == "config":
		return nil, srverr.New(srverr.InvalidOptions,
			"Document validators are not allowed on collection %s in the %s internal database", ns, db)
	}
	o := r.ValidatorOptions(coll)
	if _, err := query.ParseFilter(spec, o); err != nil {
		return nil, err
	}
	o.Work = nil // once more, as this one outlives the command
	f, err := query.ParseFilter(spec, o)
	if err != nil {
		return nil, err
	}
	if level == "off" || spec.IsEmpty() {
		return nil, nil
	}
	v := &validation.Validator{Spec: bytes.Clone(spec), Filter: f, Level: "strict", Action: "error"}
	if level != "" {
		v.Level = level
	}
	if action != "" {
		v.Action = action
	}
	return v, nil
}

// withoutNulls returns the pipeline of a view without elements that are null, as servers since 8.1
// keep it.
func withoutNulls(list bson.RawValue, v release.Version) bson.RawValue {
	items := bsondoc.Items(list)
	if n := len(items); !v.AllParsed() || n == len(slices.DeleteFunc(items, args.IsNull)) {
		return list
	}
	at, out := bson.BeginDocument(nil)
	n := 0
	for _, item := range bsondoc.Items(list) {
		if !args.IsNull(item) {
			out = append(bson.AppendIndexHeader(out, item.Type, n), item.Value...)
			n++
		}
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(out, at)}
}

// checkViewPipeline checks the pipeline of a view.
func checkViewPipeline(r *server.Request, ns, on string, stages bson.Raw, coll *query.Collation) error {
	list, err := pipeline.StagesOf(bson.RawValue{Type: bson.TypeArray, Value: stages})
	if err != nil {
		return err
	}
	o := r.ExprOptions(namespace.Join(r.DB, on), coll, nil)
	o.Env, o.View = read.LatestEnv(r), ns
	o.NoClusterTime = false // only who reads the view misses it
	_, err = pipeline.Parse(list, o)
	return err
}

// needsOfCreate: whoever may insert into a collection may make it.
func needsOfCreate(r *server.Request, body bson.Raw) []account.Need {
	if need := r.OnTarget(body, "insert"); r.May(need[0]) {
		return need
	}
	return r.OnTarget(body, "createCollection")
}
