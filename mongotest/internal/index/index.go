// Package index checks the specifications of indexes and makes their definitions for a collection.
package index

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// Spec is an index specification as a client gives it, checked as far as that needs no
// collection.
type Spec struct {
	doc       bson.Raw // as given
	Key       bson.Raw
	Name      string
	version   int64
	hasV      bool
	plugin    string // "text", "hashed", "2d", "2dsphere", "wildcard"; empty for an ordinary index
	fields    []store.IndexField
	IsID      bool
	expire    *int64
	collation *query.Collation
	given     bool // collation
	alone     bool // errors do not show the specification: it is not in a list of several
	partial   *query.Filter
}

// Options are the options that an index may have.
var Options = map[string]bool{
	"v": true, "key": true, "name": true, "ns": true, "unique": true, "sparse": true, "hidden": true,
	"background": true, "dropDups": true,
	"expireAfterSeconds": true, "partialFilterExpression": true, "collation": true, "storageEngine": true,
	"weights":          true,
	"default_language": true, "language_override": true, "textIndexVersion": true, "2dsphereIndexVersion": true,
	"bits": true,
	"min":  true, "max": true, "bucketSize": true, "wildcardProjection": true, "finestIndexedLevel": true,
	"coarsestIndexedLevel": true,
	"safe":                 true, "clustered": true, "prepareUnique": true, "columnstoreProjection": true,
	"originalSpec": true,
}

// queryOptions returns what filters and projections within a specification are parsed with.
func queryOptions(version release.Version, coll *query.Collation) *query.Options {
	return &query.Options{Collation: coll, Version: version}
}

func (s *Spec) bad(code int32, format string, args ...any) error {
	return s.within(srverr.New(code, format, args...), s.doc)
}

// within says in which specification an error is.
func (s *Spec) within(e *srverr.Error, doc bson.Raw) error {
	if s.alone {
		return e
	}
	return e.Prefix("Error in specification " + bsontext.Document(doc) + " :: caused by :: ")
}

// withVersion returns the specification as later checks show it.
func (s *Spec) withVersion() bson.Raw {
	if s.hasV && s.collation == nil {
		return s.doc
	}
	at, doc := bson.BeginDocument(nil)
	for k, v := range s.doc.All() {
		if k != "collation" || s.collation == nil {
			doc = bson.AppendRawValue(doc, k, v)
		}
	}
	if !s.hasV {
		doc = bson.AppendInt32(doc, "v", 2)
	}
	if s.collation != nil {
		doc = bson.AppendDocument(doc, "collation", s.collation.Spec())
	}
	return bson.EndDocument(doc, at)
}

func (s *Spec) badLater(code int32, format string, args ...any) error {
	return s.within(srverr.New(code, format, args...), s.withVersion())
}

// keyFirst yields the fields of a specification, the key before the others: what they may be is
// for the kind of index to say.
func keyFirst(doc bson.Raw) iter.Seq2[string, bson.RawValue] {
	return func(yield func(string, bson.RawValue) bool) {
		for _, wantKey := range []bool{true, false} {
			for k, v := range doc.All() {
				if (k == "key") == wantKey && !yield(k, v) {
					return
				}
			}
		}
	}
}

// Parse checks what can be checked of a specification by itself. alone says that it is not
// in a list of several, lax that options which the version does not know are passed over. It ends
// with what m counts.
func Parse(version release.Version, doc bson.Raw, alone, lax bool, m *work.Meter) (*Spec, error) {
	s := &Spec{doc: doc, version: 2, alone: alone}
	hasKey, hasName := false, false
	for k, v := range keyFirst(doc) {
		switch k {
		case "key":
			key, ok := v.Document()
			if !ok {
				return nil, s.bad(srverr.TypeMismatch, "The field 'key' must be an object, but got %s",
					bsontext.TypeName(v.Type))
			}
			s.Key, hasKey = writtenPattern(key, doc), true
			if err := s.parseKey(version); err != nil {
				return nil, err
			}
		case "name":
			name, ok := v.StringValue()
			if !ok {
				return nil, s.bad(srverr.TypeMismatch, "The field 'name' must be a string, but got %s",
					bsontext.TypeName(v.Type))
			}
			s.Name, hasName = name, true
		case "unique", "sparse":
			if !v.IsNumber() && v.Type != bson.TypeBoolean && version.AtLeast(5, 0) {
				return nil, s.bad(srverr.TypeMismatch, "The field '%s has value %s, which is not convertible to bool",
					k, bsontext.Element(k, v)) // sic
			}
		case "hidden":
			if v.Type != bson.TypeBoolean {
				return nil, s.bad(srverr.TypeMismatch, "The field 'name' must be a bool, but got %s",
					bsontext.TypeName(v.Type)) // sic
			}
		case "v":
			if !v.IsNumber() {
				return nil, s.bad(srverr.TypeMismatch, "The field 'v' must be a number, but got %s",
					bsontext.TypeName(v.Type))
			}
			s.version, _ = args.NumberOf(v)
			s.hasV = true
			if n, exact := v.AsInt64(); !exact || n != int64(int32(n)) {
				return nil, s.bad(srverr.BadValue,
					"Index version must be representable as a 32-bit integer, but got %s", bsontext.Value(v))
			}
			if s.version != 1 && s.version != 2 {
				return nil, s.bad(srverr.CannotCreateIndex,
					"Invalid index specification %s; cannot create an index with v=%d", bsontext.Document(doc),
					s.version)
			}
		case "collation":
			spec, ok := v.Document()
			if !ok {
				return nil, s.bad(srverr.TypeMismatch, "The field 'collation' must be an object, but got %s",
					bsontext.TypeName(v.Type))
			}
			if spec.IsEmpty() {
				return nil, s.bad(srverr.BadValue, "The field 'collation' cannot be an empty object.")
			}
			s.given = true
		case "partialFilterExpression":
			filter, ok := v.Document()
			if !ok {
				return nil, s.bad(srverr.TypeMismatch,
					"The field 'partialFilterExpression' must be an object, but got %s", bsontext.TypeName(v.Type))
			}
			o := queryOptions(version, nil)
			o.NoExpr, o.NoText, o.NoWhere, o.NoSchema, o.Work = true, true, true, true, m
			var err error
			if s.partial, err = query.ParseFilter(filter, o); err != nil {
				return nil, s.within(srverr.From(err), s.doc)
			}
		case "wildcardProjection":
			if err := s.checkWildcardProjection(version, v); err != nil {
				return nil, err
			}
		case "bits", "min", "max", "2dsphereIndexVersion":
			if !v.IsNumber() && version.AllParsed() {
				return nil, s.bad(srverr.TypeMismatch, "The field '%s' must be a number, but got %s", k,
					bsontext.TypeName(v.Type))
			}
		default:
			switch known := Options[k] && version.Has(release.IndexOption, k); {
			case known:
			case lax:
				s.doc = bsondoc.Without(s.doc, k)
			default:
				return nil, s.bad(srverr.InvalidIndexSpecificationOption,
					"The field '%s' is not valid for an index specification. Specification: %s", k,
					bsontext.Document(doc))
			}
		}
	}
	switch {
	case !hasKey:
		return nil, s.bad(srverr.FailedToParse, "The 'key' field is a required property of an index specification")
	case !hasName:
		return nil, s.bad(srverr.FailedToParse, "The 'name' field is a required property of an index specification")
	}
	if s.given && s.version < 2 {
		return nil, s.bad(srverr.CannotCreateIndex,
			"Invalid index specification %s; cannot create an index with the 'collation' option and v=%d",
			bsontext.Document(doc), s.version)
	}
	if first, ok := firstField(s.Key); ok && first == "_id" && len(s.fields) == 1 && s.plugin == "" {
		if err := s.CheckID(); err != nil {
			return nil, err
		}
	}
	if err := s.checkCompoundWildcard(); err != nil {
		return nil, err
	}
	if err := s.checkTTL(version); err != nil {
		return nil, err
	}
	if v := doc.Lookup("storageEngine"); !v.IsZero() {
		switch options, ok := v.Document(); {
		case !ok:
			return nil, s.badLater(srverr.CannotCreateIndex, "\"storageEngine\" options must be a document if present")
		case options.IsEmpty():
			return nil, s.badLater(srverr.CannotCreateIndex,
				"Empty \"storageEngine\" options are invalid. Please remove the field or include valid options.")
		}
	}
	return s, s.checkPlugin(version)
}

func firstField(doc bson.Raw) (string, bool) {
	for k := range doc.All() {
		return k, true
	}
	return "", false
}

// parseKey checks the key pattern.
func (s *Spec) parseKey(version release.Version) error {
	hashed, wildcards := 0, 0
	since70 := version.AtLeast(7, 0) // the first with wildcard indexes that have other fields as well
	for _, v := range s.Key.All() {
		if name, ok := v.StringValue(); ok { // the first one says which kind of index it is
			s.plugin = name
			break
		}
	}
	switch s.plugin {
	case "", "text", "hashed", "2d", "2dsphere", "geoHaystack", "wildcard":
	default:
		return s.bad(srverr.CannotCreateIndex, "Unknown index plugin '%s'", s.plugin)
	}
	if s.plugin == "geoHaystack" && version.AtLeast(5, 0) {
		return srverr.New(srverr.CannotCreateIndex, "GeoHaystack indexes cannot be created in version 4.9 and above")
	}
	if twice := duplicate(s.Key); twice != "" && version.AtLeast(5, 0) {
		return s.bad(srverr.BadValue, "The field '%s' appears multiple times in the index key pattern %s", twice,
			bsontext.Document(s.Key))
	}
	for k, v := range s.Key.All() {
		f := store.IndexField{Path: strings.Clone(k)}
		switch {
		case v.IsNumber():
			n := numberSign(v)
			if isNaN(v) {
				return s.bad(srverr.CannotCreateIndex, "Values in the index key pattern cannot be NaN.")
			}
			if n == 0 {
				return s.bad(srverr.CannotCreateIndex, "Values in the index key pattern cannot be 0.")
			}
			f.Descending = n < 0
		case v.Type == bson.TypeString:
			name, _ := v.StringValue()
			switch name {
			case "":
				return s.bad(srverr.CannotCreateIndex, "Values in the index key pattern cannot be empty strings")
			case "hashed":
				hashed++
			}
			if name != s.plugin {
				return s.bad(srverr.CannotCreateIndex, "Can't use more than one index plugin for a single index.")
			}
			f.Special = name
		default:
			return s.bad(srverr.CannotCreateIndex,
				"Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", bsontext.TypeName(v.Type))
		}
		parent, below := strings.CutSuffix(k, ".$**")
		wildcard := below || k == "$**"
		switch {
		case k == "":
			return s.bad(srverr.CannotCreateIndex, "Index keys cannot be an empty field.")
		case f.Special == "wildcard":
			code := int32(srverr.CannotCreateIndex)
			if since70 && !wildcard {
				code = 7246202
			}
			return s.bad(code, "The key pattern value for an 'wildcard' index must be a non-zero number, not a string.")
		case wildcard && f.Special == "" && f.Descending && !since70:
			return s.bad(srverr.CannotCreateIndex, "A numeric value in a $** index key pattern must be positive.")
		case wildcard && f.Special == "" && below && (parent == "$**" || strings.HasSuffix(parent, ".$**")):
			return s.bad(srverr.CannotCreateIndex,
				"Index key contains an illegal field name: field name starts with '$'.")
		case wildcard && f.Special == "":
			f.Special, s.plugin = "wildcard", "wildcard"
			if wildcards++; wildcards > 1 && since70 {
				return s.bad(7246201, "wildcard indexes do not allow more than one wildcard field")
			}
		case k == "$**" && f.Special == "text":
		case (k == "_fts" || k == "_ftsx") && (s.plugin != "text" || s.doc.Lookup("weights").Type == 0):
			// The names of a text index's own fields: as a dump has them, with their weights.
			return s.bad(srverr.CannotCreateIndex, "Index key contains an illegal field name: '%s'.", k)
		default:
			for part := range strings.SplitSeq(k, ".") {
				if part == "" {
					return s.bad(srverr.CannotCreateIndex, "Index keys cannot contain an empty field.")
				}
				if part[0] == '$' && (strings.HasPrefix(k, part) || part != "$ref" && part != "$id" && part != "$db") {
					return s.bad(srverr.CannotCreateIndex,
						"Index key contains an illegal field name: field name starts with '$'.")
				}
			}
		}
		s.fields = append(s.fields, f)
	}
	switch {
	case len(s.fields) == 0:
		return s.bad(srverr.CannotCreateIndex, "Index keys cannot be empty.")
	case s.plugin == "wildcard" && len(s.fields) > 1 && !since70:
		return s.bad(srverr.CannotCreateIndex, "wildcard indexes do not allow compounding")
	case s.plugin == "wildcard" && slices.ContainsFunc(s.fields, func(f store.IndexField) bool {
		return f.Special != "" && f.Special != "wildcard"
	}):
		return s.bad(srverr.CannotCreateIndex, "Can't use more than one index plugin for a single index.")
	case hashed > 1:
		return srverr.New(31303, "A maximum of one index field is allowed to be hashed but found %d for 'key' %s",
			hashed, bsontext.Document(s.Key))
	case len(s.fields) > maxIndexKeys:
		return srverr.New(13103, "too many compound keys")
	}
	return nil
}

// maxIndexKeys is how many fields an index may have.
const maxIndexKeys = 32

// isNaN reports whether a number is NaN.
func isNaN(v bson.RawValue) bool {
	if d, ok := v.Decimal128(); ok {
		return d.String() == "NaN"
	}
	f, ok := v.Double()
	return ok && math.IsNaN(f)
}

// numberSign returns -1, 0 or 1.
func numberSign(v bson.RawValue) int {
	zero := bson.RawValue{Type: bson.TypeInt32, Value: []byte{0, 0, 0, 0}}
	return bson.Compare(v, zero)
}

func (s *Spec) checkWildcardProjection(version release.Version, v bson.RawValue) error {
	doc, ok := v.Document()
	switch {
	case !ok && s.plugin == "wildcard":
		return s.bad(srverr.TypeMismatch, "The field 'wildcardProjection' must be a non-empty object, but got %s",
			bsontext.TypeName(v.Type))
	case s.plugin != "wildcard":
		return s.bad(srverr.BadValue, "The field 'wildcardProjection' is only allowed in an 'wildcard' index")
	case !slices.ContainsFunc(s.fields, func(f store.IndexField) bool { return f.Path == "$**" }):
		return s.bad(srverr.FailedToParse, "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}")
	case doc.IsEmpty():
		return s.bad(srverr.FailedToParse, "The 'wildcardProjection' field can't be an empty object")
	}
	if _, err := query.ParsePlainProjection(doc, queryOptions(version, nil)); err != nil {
		return s.within(srverr.From(err).Prefix("Failed to parse: wildcardProjection :: caused by :: "), s.doc)
	}
	return nil
}

// checkCompoundWildcard looks at a wildcard index that has other fields, too: no value may be in
// both.
func (s *Spec) checkCompoundWildcard() error {
	if s.plugin != "wildcard" || len(s.fields) < 2 {
		return nil
	}
	at := slices.IndexFunc(s.fields, func(f store.IndexField) bool { return f.Special == "wildcard" })
	projection := s.doc.Lookup("wildcardProjection")
	root := strings.TrimSuffix(s.fields[at].Path, "$**")
	if root == "" && projection.Type == 0 {
		return s.bad(srverr.CannotCreateIndex,
			"a compound wildcard index on all fields needs a 'wildcardProjection' that leaves out its other fields")
	}
	code := int32(7246204)
	if root == "" {
		code = 7246209
	}
	left, _ := projection.Document()
	for i, f := range s.fields {
		if i != at && store.WildcardHas(s.fields[at].Path, left, f.Path) {
			return s.bad(code, "the wildcard of a compound wildcard index has its field '%s' as well", f.Path)
		}
	}
	return nil
}

// IDPattern is the key pattern of an index on _id.
var IDPattern = bsondoc.Of("_id", int32(1))

// idFields are the options that an _id index may have.
var idFields = map[string]bool{"key": true, "name": true, "ns": true, "v": true, "collation": true}

func (s *Spec) CheckID() error {
	if s.fields[0].Descending || !SamePattern(s.Key, IDPattern) {
		return srverr.New(srverr.BadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s",
			bsontext.Document(s.Key))
	}
	for k := range s.doc.All() {
		if !idFields[k] {
			return srverr.New(srverr.InvalidIndexSpecificationOption,
				"The field '%s' is not valid for an _id index specification. Specification: %s", k,
				bsontext.Document(s.withVersion()))
		}
	}
	s.IsID = true
	return nil
}

func (s *Spec) checkTTL(version release.Version) error {
	v := s.doc.Lookup("expireAfterSeconds")
	if v.Type == 0 {
		return nil
	}
	bad := func(text string) error {
		return srverr.New(srverr.CannotCreateIndex, "%s. Index spec: %s", text, bsontext.Document(s.doc))
	}
	n, _ := args.NumberOf(v)
	switch {
	case !v.IsNumber():
		return bad("TTL index 'expireAfterSeconds' option must be numeric, but received a type of '" +
			bsontext.TypeName(v.Type) + "'")
	case isNaN(v) && version.AllParsed():
		return bad("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number")
	case n < 0:
		return bad("TTL index 'expireAfterSeconds' option cannot be less than 0")
	case n > math.MaxInt32:
		return bad("TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number")
	case len(s.fields) != 1:
		return bad("TTL indexes are single-field indexes, compound indexes do not support TTL")
	}
	s.expire = &n
	return nil
}

// checkPlugin checks the rules of the special index types, and those on combinations of options.
func (s *Spec) checkPlugin(version release.Version) error {
	has := func(field string) bool { return s.doc.Lookup(field).AsBool() }
	partial := s.doc.Lookup("partialFilterExpression").Type != 0
	if spec, ok := s.doc.Lookup("collation").Document(); ok {
		var err error
		if s.collation, err = query.ParseCollation(version, spec); err != nil {
			if s.alone {
				return err
			}
			return srverr.From(err).Prefix("failed to add collation information to index spec for index creation: " +
				bsontext.Document(s.withVersion()) + " :: caused by :: ")
		}
	}
	switch {
	case strings.IndexByte(s.Name, 0) >= 0:
		s.alone = false // this and what follows is found when the index is built
		return s.badLater(srverr.CannotCreateIndex, "index name cannot contain NUL bytes")
	case s.Name == "":
		s.alone = false
		return s.badLater(srverr.CannotCreateIndex, "index name cannot be empty")
	case s.collation != nil && withoutCollation[s.plugin]:
		return s.refuseCollation(s.collation)
	case s.plugin == "wildcard" && has("sparse"):
		return s.badLater(srverr.CannotCreateIndex, "Index type 'wildcard' does not support the sparse option")
	case s.plugin == "wildcard" && has("unique"):
		return s.badLater(srverr.CannotCreateIndex, "Index type 'wildcard' does not support the unique option")
	case s.plugin == "wildcard" && s.expire != nil:
		return s.badLater(srverr.CannotCreateIndex, "Index type 'wildcard' cannot be a TTL index")
	case s.plugin == "wildcard" && s.version < 2:
		return s.badLater(srverr.CannotCreateIndex,
			"bad index key pattern %s: 'wildcard' index plugin is not allowed with index version v:1",
			bsontext.Document(s.Key))
	case s.plugin == "hashed" && has("unique"):
		return srverr.New(16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
	case s.plugin == "geoHaystack" && s.doc.Lookup("bucketSize").Type == 0:
		return srverr.New(16777, "need bucketSize")
	case version.AllParsed() && s.plugin != "text" && s.doc.Lookup("weights").Type != 0:
		return s.badLater(srverr.CannotCreateIndex, "the field 'weights' can only be specified with text indexes")
	case partial && s.doc.Lookup("sparse").AsBool():
		return s.badLater(srverr.CannotCreateIndex, "cannot mix \"partialFilterExpression\" and \"sparse\" options")
	}
	var err error
	switch s.plugin {
	case "text":
		err = s.checkText(version)
	case "2d":
		err = s.checkPlane()
	case "2dsphere":
		err = s.checkSphere()
	}
	if err != nil {
		return err
	}
	if s.partial != nil {
		if text := s.partial.UnfitForPartial(); text != "" {
			return s.badLater(srverr.CannotCreateIndex, "%s", text)
		}
	}
	storage, _ := s.doc.Lookup("storageEngine").Document()
	for k, v := range storage.All() {
		if v.Type != bson.TypeEmbeddedDocument {
			return s.badLater(srverr.BadValue, "'storageEngine.%s' has to be an embedded document.", k)
		}
	}
	return nil
}

// withoutCollation are the kinds of indexes that compare strings by their bytes only.
var withoutCollation = map[string]bool{"text": true, "2d": true, "geoHaystack": true}

func (s *Spec) refuseCollation(c *query.Collation) error {
	s.collation = c
	return s.badLater(srverr.CannotCreateIndex, "Index type '%s' does not support collation: %s", s.plugin,
		bsontext.Document(c.Spec()))
}

// Define makes the index's definition for a collection, whose collation it has unless it has one of
// its own.
func (s *Spec) Define(version release.Version, c *store.Coll) (*store.IndexInfo, error) {
	x := &store.IndexInfo{Name: s.Name, Fields: s.fields, IsID: s.IsID, Expire: s.expire}
	x.Collation = s.collation
	if !s.given && s.version >= 2 { // older indexes have none
		x.Collation = c.Collation
		if c.Collation != nil && withoutCollation[s.plugin] {
			refused := *s
			return nil, refused.refuseCollation(c.Collation)
		}
	}
	x.Unique = s.doc.Lookup("unique").Type != 0 && truthyOption(s.doc.Lookup("unique"))
	x.PrepareUnique = truthyOption(s.doc.Lookup("prepareUnique"))
	x.Sparse = truthyOption(s.doc.Lookup("sparse"))
	x.Hidden = truthyOption(s.doc.Lookup("hidden"))
	x.Pattern = s.Key
	if s.plugin == "text" {
		x.Pattern = textPattern(s.Key)
	}
	if filter, ok := s.doc.Lookup("partialFilterExpression").Document(); ok {
		var err error
		if x.Partial, err = query.ParseFilter(filter, queryOptions(version, x.Collation)); err != nil {
			return nil, err
		}
	}
	x.Spec = s.show(version, x)
	return x.Prepare(), nil
}

// truthyOption is how the server reads boolean index options: numbers other than 0 count, and
// strings do.
func truthyOption(v bson.RawValue) bool { return v.Type != 0 && v.AsBool() }

// duplicate returns a field that a key pattern has twice, empty if there is none.
func duplicate(key bson.Raw) string {
	seen := map[string]bool{}
	for k := range key.All() {
		if seen[k] {
			return strings.Clone(k)
		}
		seen[strings.Clone(k)] = true
	}
	return ""
}

// textPattern returns the key pattern that a text index really has.
func textPattern(key bson.Raw) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	done := false
	for k, v := range key.All() {
		if s, ok := v.StringValue(); ok && s == "text" {
			if !done {
				doc = bsondoc.Append(doc, "_fts", "text", "_ftsx", int32(1))
				done = true
			}
			continue
		}
		doc = bson.AppendRawValue(doc, k, v)
	}
	return bson.EndDocument(doc, at)
}

// writtenPattern returns the key pattern as a program writes it. That of a text index as a server
// lists it, which restored dumps have, names its fields in the weights alone.
func writtenPattern(key, spec bson.Raw) bson.Raw {
	weights, ok := spec.Lookup("weights").Document()
	if s, text := key.Lookup("_fts").StringValue(); !ok || weights.IsEmpty() || !text || s != "text" {
		return key
	}
	at, doc := bson.BeginDocument(nil)
	for k, v := range key.All() {
		switch k {
		case "_fts":
			for path := range weights.All() {
				doc = bson.AppendString(doc, path, "text")
			}
		case "_ftsx":
		default:
			doc = bson.AppendRawValue(doc, k, v)
		}
	}
	return bson.EndDocument(doc, at)
}

// show returns the index's entry in listIndexes.
func (s *Spec) show(version release.Version, x *store.IndexInfo) bson.Raw {
	old := !version.AtLeast(5, 0)
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, "v", int32(s.version))
	if old {
		if x.Unique {
			doc = bson.AppendBool(doc, "unique", true)
		}
		if x.Hidden {
			doc = bson.AppendBool(doc, "hidden", true)
		}
	}
	doc = bsondoc.Append(doc, "key", x.Pattern, "name", x.Name)
	for k, v := range s.doc.All() {
		switch k {
		case "v", "key", "name", "ns", "dropDups", "collation":
			continue
		case "unique", "hidden":
			if !old && truthyOption(v) {
				doc = bson.AppendBool(doc, k, true)
			}
			continue
		case "expireAfterSeconds":
			if s.expire != nil {
				doc = bson.AppendRawValue(doc, k, ExpireValue(*s.expire, version, v))
				continue
			}
		case "weights", "textIndexVersion":
			if s.plugin == "text" {
				continue
			}
		}
		doc = bson.AppendRawValue(doc, k, v)
	}
	if x.Collation != nil {
		doc = bson.AppendDocument(doc, "collation", x.Collation.Spec())
	}
	return bson.EndDocument(appendPluginOptions(doc, s), at)
}

// ExpireValue is expireAfterSeconds as indexes show it: since 6.0 as an int32, whatever it was, and
// before as given.
func ExpireValue(n int64, version release.Version, given bson.RawValue) bson.RawValue {
	if !version.AtLeast(6, 0) {
		return given
	}
	return bson.RawValue{Type: bson.TypeInt32,
		Value: bson.AppendInt32Value(nil, int32(max(math.MinInt32, min(n, math.MaxInt32))))}
}

// appendPluginOptions appends what the special index types fill in.
func appendPluginOptions(doc []byte, s *Spec) []byte {
	missing := func(field string) bool { return s.doc.Lookup(field).Type == 0 }
	switch s.plugin {
	case "text":
		at, d := bson.BeginDocumentElement(doc, "weights")
		weights := s.weights()
		for _, path := range slices.Sorted(maps.Keys(weights)) {
			d = bson.AppendInt32(d, path, weights[path])
		}
		doc = bson.EndDocument(d, at)
		if missing("default_language") {
			doc = bson.AppendString(doc, "default_language", "english")
		}
		if missing("language_override") {
			doc = bson.AppendString(doc, "language_override", "language")
		}
		version := int32(3)
		if v := s.doc.Lookup("textIndexVersion"); v.IsNumber() {
			version = int32(query.Float(v))
		}
		doc = bson.AppendInt32(doc, "textIndexVersion", version)
	case "2dsphere":
		if missing("2dsphereIndexVersion") {
			doc = bson.AppendInt32(doc, "2dsphereIndexVersion", 3)
		}
	}
	return doc
}

// SamePattern compares key patterns: fields, order and values, numbers by value.
func SamePattern(a, b bson.Raw) bool {
	return bson.Compare(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: a},
		bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: b}) == 0
}

// IsPrefix reports whether the pattern of an index begins with the fields of a key.
func IsPrefix(key, pattern bson.Raw) bool {
	var fields []bson.RawValue
	var names []string
	for k, v := range pattern.All() {
		names, fields = append(names, k), append(fields, v)
	}
	i := 0
	for k, v := range key.All() {
		if i >= len(names) || names[i] != k || query.Compare(v, fields[i], nil) != 0 {
			return false
		}
		i++
	}
	return true
}
