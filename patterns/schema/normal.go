package schema

// Declarations in the form in which they are compared: servers fill in what was not given, and the
// same index can be written in several ways.

import (
	"bytes"
	"slices"
	"strings"

	"allium"
	"allium/bson"
)

// fields are a declaration's fields in the form in which they are compared.
type fields map[string]bson.RawValue

func (f fields) set(key string, v any) {
	raw, err := bson.MarshalValue(v)
	if err == nil {
		f[key] = raw
	}
}

// text returns a field for people, "nothing" if it is not there.
func (f fields) text(key string) string {
	if v, ok := f[key]; ok {
		return v.String()
	}
	return "nothing"
}

// same reports whether a field is the same in both. Numbers are compared by value, documents with
// their order.
func (f fields) same(g fields, key string) bool {
	a, has := f[key]
	b, too := g[key]
	if key == "collation" && has && too {
		return sameCollation(a.Value, b.Value)
	}
	return has == too && (!has || bson.Compare(a, b) == 0)
}

// differing returns the keys that are not the same in both.
func differing(a, b fields) (keys []string) {
	for k := range a {
		if !a.same(b, k) {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// defaults are what servers fill in, and what an index that lacks it has.
var defaults = map[string]any{
	"default_language": "english", "language_override": "language", "bits": 26, "min": -180, "max": 180,
}

// normalIndex returns an index of a collection with this collation. What is not compared unless
// both say it, the versions of its format, is left in.
func normalIndex(m *allium.IndexModel, inherited *allium.Collation) (fields, error) {
	spec, err := document(indexOptions, m)
	if err != nil {
		return nil, err
	}
	f := fields{}
	key, _ := spec.Lookup("key").Document()
	text, plain := false, false // plain: strings are compared by their bytes
	for _, v := range key.All() {
		switch s, _ := v.StringValue(); s {
		case "text":
			text, plain = true, true
		case "2d", "geoHaystack":
			plain = true
		}
	}
	for k, v := range spec.All() {
		switch k {
		case "name", "collation", "clustered":
		case "key", "weights":
			if !text {
				f[k] = v
			}
		case "wildcardProjection":
			f.set(k, normalProjection(v))
		default:
			if d, ok := defaults[k]; ok {
				if given, err := bson.MarshalValue(d); err == nil && bson.Compare(given, v) == 0 {
					continue
				}
			}
			f[k] = v
		}
	}
	if text {
		pattern, weights := normalText(key, spec)
		f.set("key", pattern)
		f.set("weights", weights)
	}
	collation := m.Collation
	if collation == nil && !plain {
		collation = inherited
	}
	if c := normalCollation(collation); c != nil {
		f.set("collation", c)
	}
	return f, nil
}

// normalText returns the keys of a text index as servers have them, and the weights of all fields.
func normalText(key, spec bson.Raw) (pattern, weights bson.D) {
	done := false
	weigh := func(path string, w any) {
		if i := slices.IndexFunc(weights, func(e bson.E) bool { return e.Key == path }); i >= 0 {
			weights[i].Value = w
		} else {
			weights = append(weights, bson.E{Key: path, Value: w})
		}
	}
	for k, v := range key.All() {
		if s, _ := v.StringValue(); s != "text" {
			pattern = append(pattern, bson.E{Key: k, Value: v})
			continue
		}
		if weigh(k, 1); !done {
			pattern = append(pattern, bson.E{Key: "_fts", Value: "text"}, bson.E{Key: "_ftsx", Value: 1})
			done = true
		}
	}
	given, _ := spec.Lookup("weights").Document()
	for k, v := range given.All() {
		weigh(k, v)
	}
	slices.SortFunc(weights, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
	return pattern, weights
}

// normalProjection returns a projection of a wildcard index: which fields are in or out, in the
// order of their names.
func normalProjection(v bson.RawValue) bson.D {
	var out bson.D
	doc, _ := v.Document()
	var flat func(prefix string, doc bson.Raw)
	flat = func(prefix string, doc bson.Raw) {
		for k, v := range doc.All() {
			if in, ok := v.Document(); ok {
				flat(prefix+k+".", in)
			} else if prefix+k != "_id" || v.AsBool() {
				out = append(out, bson.E{Key: prefix + k, Value: v.AsBool()})
			}
		}
	}
	flat("", doc)
	slices.SortFunc(out, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// usual are what the settings of a collation are if they are not given, and unusual what they are
// in some languages (CLDR).
var (
	usual = bson.D{{Key: "caseLevel", Value: false}, {Key: "caseFirst", Value: "off"}, {Key: "strength", Value: 3},
		{Key: "numericOrdering", Value: false},
		{Key: "alternate", Value: "non-ignorable"}, {Key: "maxVariable", Value: "punct"},
		{Key: "normalization", Value: false}, {Key: "backwards", Value: false}}
	unusual = map[string]bson.D{"caseFirst": {{Key: "da", Value: "upper"}, {Key: "mt", Value: "upper"}},
		"backwards": {{Key: "fr_CA", Value: true}},
		"alternate": {{Key: "th", Value: "shifted"}}}
)

// normalCollation returns a collation with the settings that are given; nil for one that compares
// bytes.
func normalCollation(c *allium.Collation) bson.Raw {
	if c == nil || c.Locale == "" || c.Locale == "simple" {
		return nil
	}
	raw, err := document(collationOptions, c)
	if err != nil {
		return nil
	}
	return raw
}

// sameCollation compares collations, of which a server's has all settings and a declared one those
// that are not the usual ones of its language. Whether texts are brought into a normal form is up
// to the language if it is not given.
func sameCollation(a, b bson.Raw) bool {
	locale := a.Lookup("locale")
	if bson.Compare(locale, b.Lookup("locale")) != 0 {
		return false
	}
	language, _ := locale.StringValue()
	language, _, _ = strings.Cut(language, "@")
	byDefault := func(key string, v bson.RawValue, value any) bool {
		if is, err := bson.MarshalValue(value); err == nil && bson.Compare(is, v) == 0 || key == "normalization" {
			return true
		}
		for _, e := range unusual[key] {
			if is, err := bson.MarshalValue(e.Value); err == nil && bson.Compare(is, v) == 0 &&
				(language == e.Key || strings.HasPrefix(language, e.Key+"_")) {
				return true
			}
		}
		return false
	}
	for _, e := range usual {
		x, y := a.Lookup(e.Key), b.Lookup(e.Key)
		switch {
		case x.IsZero() && y.IsZero():
		case x.IsZero() && !byDefault(e.Key, y, e.Value), y.IsZero() && !byDefault(e.Key, x, e.Value):
			return false
		case !x.IsZero() && !y.IsZero() && bson.Compare(x, y) != 0:
			return false
		}
	}
	return true
}

// versions are fields of an index that are compared only if both have them.
var versions = []string{"v", "textIndexVersion", "2dsphereIndexVersion", "storageEngine"}

// indexDifferences returns what is not the same of a live and a declared index.
func indexDifferences(live, declared fields) []string {
	return slices.DeleteFunc(differing(live, declared), func(k string) bool {
		_, a := live[k]
		_, b := declared[k]
		return slices.Contains(versions, k) && !(a && b)
	})
}

// normalOptions returns the options of a collection.
func normalOptions(o *allium.CreateCollectionOptions) (fields, error) {
	doc, err := document(createOptions, o)
	if err != nil {
		return nil, err
	}
	f := fields{}
	for k, v := range doc.All() {
		switch in, _ := v.Document(); k {
		case "idIndex", "storageEngine", "indexOptionDefaults", "encryptedFields":
		case "size":
			n, _ := v.AsInt64()
			f.set(k, (max(n, 4096)+255)/256*256) // as servers before 5.1 do, and nobody minds
		case "max":
			if n, _ := v.AsInt64(); n < 1<<31-1 { // what is as good as no bound
				f[k] = v
			}
		case "validator":
			if !in.IsEmpty() {
				f[k] = v
			}
		case "validationLevel", "validationAction":
			if s, _ := v.StringValue(); s != "strict" && s != "error" {
				f[k] = v
			}
		case "pipeline":
			if list, _ := v.Array(); !bytes.Equal(list, bson.Raw{5, 0, 0, 0, 0}) {
				f[k] = v
			}
		case "collation":
			if c := normalCollation(o.Collation); c != nil {
				f.set(k, c)
			}
		case "timeseries":
			f.set("timeField", in.Lookup("timeField"))
			if meta := in.Lookup("metaField"); !meta.IsZero() {
				f["metaField"] = meta
			}
			for key, v := range normalBuckets(in) {
				f[key] = v
			}
		case "clusteredIndex":
			f.set("clusteredIndex", in.Lookup("key"))
			if name, _ := in.Lookup("name").StringValue(); name != "" && name != "_id_" {
				f.set("clusteredIndexName", name)
			}
		default:
			f[k] = v
		}
	}
	return f, nil
}

// normalBuckets returns how a time series collection sorts measurements into buckets: by its
// granularity, or by a span of its own.
func normalBuckets(doc bson.Raw) fields {
	f := fields{}
	granularity, _ := doc.Lookup("granularity").StringValue()
	span, _ := doc.Lookup("bucketMaxSpanSeconds").AsInt64()
	switch {
	case granularity != "":
		f.set("granularity", granularity)
	case span != 0:
		f.set("bucketMaxSpanSeconds", span)
	default:
		f.set("granularity", "seconds")
	}
	return f
}
