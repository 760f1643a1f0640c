package encryption_test

import (
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/encryption"
	"allium/mongotest"
)

// proseText is the setup of prose test 27.
type proseText struct {
	t              *testing.T
	p              *prose
	explicit, auto *allium.Client
	id             *bson.UUID
	preview        bool
}

// suffix is what the names of collections end in.
func (x *proseText) suffix() string {
	if x.preview {
		return "-preview"
	}
	return ""
}

// kind is the type of a query, by its final name.
func (x *proseText) kind(q encryption.QueryType) encryption.QueryType {
	if x.preview {
		return q + "Preview"
	}
	return q
}

var (
	affix     = &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 10}
	substring = &encryption.SubstringOptions{MaxLength: 10, MinQueryLength: 2, MaxQueryLength: 6}
)

// textOptions returns those of a query, by its final name: prefix, suffix or substring.
func textOptions(q encryption.QueryType, sensitive bool) *encryption.TextOptions {
	o := &encryption.TextOptions{CaseSensitive: sensitive, DiacriticSensitive: sensitive}
	switch q {
	case encryption.PrefixQuery:
		o.Prefix = affix
	case encryption.SuffixQuery:
		o.Suffix = affix
	default:
		o.Substring = substring
	}
	return o
}

func (x *proseText) encrypt(s string, q encryption.QueryType, o *encryption.TextOptions) bson.Binary {
	x.t.Helper()
	b, err := x.p.keys.Encrypt(x.t.Context(), s, encryption.EncryptOptions{Algorithm: encryption.String, KeyID: x.id, Contention: new(int64(0)), Query: q, Text: o})
	if err != nil {
		x.t.Fatal(err)
	}
	return b
}

func (x *proseText) insert(c *allium.Client, name string, doc bson.D) {
	x.t.Helper()
	db := c.Database("db", allium.DatabaseOptions{WriteConcern: consistency.Majority()})
	if _, err := db.Collection(name).InsertOne(x.t.Context(), doc); err != nil {
		x.t.Fatal(err)
	}
}

// find looks for a part of the text, and wants the one document with the text want, none if it is
// empty.
func (x *proseText) find(coll string, q encryption.QueryType, part, want string, sensitive bool) {
	x.t.Helper()
	op, arg := "$encStrStartsWith", "prefix"
	switch q {
	case encryption.SuffixQuery:
		op, arg = "$encStrEndsWith", "suffix"
	case encryption.SubstringQuery:
		op, arg = "$encStrContains", "substring"
	}
	payload := x.encrypt(part, x.kind(q), textOptions(q, sensitive))
	cursor, err := allium.CollectionOf[bson.Raw](x.explicit.Database("db"), coll).Find(x.t.Context(), bson.D{{Key: "$expr", Value: bson.D{
		{Key: op, Value: bson.D{{Key: "input", Value: "$encryptedText"}, {Key: arg, Value: payload}}}}}})
	if err != nil {
		x.t.Errorf("%s %q in %s: %v", q, part, coll, err)
		return
	}
	docs, err := cursor.All(x.t.Context())
	n := 1
	if want == "" {
		n = 0
	}
	if err != nil || len(docs) != n {
		x.t.Errorf("%s %q in %s: %s, %v; want %d documents", q, part, coll, docs, err, n)
		return
	}
	for _, d := range docs {
		if got, _ := d.Lookup("encryptedText").StringValue(); got != want {
			x.t.Errorf("%s %q in %s: %s, want the text %q", q, part, coll, d, want)
		}
	}
}

// Prose test 27, "String Explicit Encryption", on a server with the final names and on one with
// those of the preview.
func TestProseText(t *testing.T) {
	for version, collections := range map[string][]string{
		"8.2": {"prefix-suffix-preview", "substring-preview"},
		"9.0": {"prefix-suffix", "prefix-suffix-ci-di", "substring", "substring-ci-di"},
	} {
		t.Run(version, func(t *testing.T) {
			keys := queryableKeys(t)
			x := &proseText{t: t, p: startProse(t, keys, mongotest.Version(version)), id: uuidOf(t, keys[0].Lookup("_id")), preview: version == "8.2"}
			db := x.p.plain.Database("db", allium.DatabaseOptions{WriteConcern: consistency.Majority()})
			for _, name := range collections {
				fields := specDocument(t, "etc/data/encryptedFields-"+name+".json")
				if err := db.Collection(name).Drop(t.Context(), allium.DropOptions{EncryptedFields: fields}); err != nil {
					t.Fatal(err)
				}
				if err := db.CreateCollection(t.Context(), name, allium.CreateCollectionOptions{EncryptedFields: fields}); err != nil {
					t.Fatal(err)
				}
			}
			x.explicit, _ = x.p.auto(encryption.AutoOptions{BypassQueryAnalysis: true}, allium.ClientOptions{})
			x.auto, _ = x.p.auto(encryption.AutoOptions{}, allium.ClientOptions{})
			affixes := "prefix-suffix" + x.suffix()
			substrings := "substring" + x.suffix()
			x.insert(x.explicit, affixes, bson.D{{Key: "_id", Value: 0}, {Key: "encryptedText", Value: x.encrypt("foobarbaz", "",
				&encryption.TextOptions{CaseSensitive: true, DiacriticSensitive: true, Prefix: affix, Suffix: affix})}})
			x.insert(x.explicit, substrings, bson.D{{Key: "_id", Value: 0}, {Key: "encryptedText", Value: x.encrypt("foobarbaz", "",
				&encryption.TextOptions{CaseSensitive: true, DiacriticSensitive: true, Substring: substring})}})
			x.find(affixes, encryption.PrefixQuery, "foo", "foobarbaz", true)       // case 1
			x.find(affixes, encryption.SuffixQuery, "baz", "foobarbaz", true)       // case 2
			x.find(affixes, encryption.PrefixQuery, "baz", "", true)                // case 3
			x.find(affixes, encryption.SuffixQuery, "foo", "", true)                // case 4
			x.find(substrings, encryption.SubstringQuery, "bar", "foobarbaz", true) // case 5
			x.find(substrings, encryption.SubstringQuery, "qux", "", true)          // case 6
			// Case 7: the contention factor is required.
			_, err := x.p.keys.Encrypt(t.Context(), "foo", encryption.EncryptOptions{Algorithm: encryption.String, KeyID: x.id,
				Query: x.kind(encryption.PrefixQuery), Text: textOptions(encryption.PrefixQuery, true)})
			if err == nil || !strings.Contains(err.Error(), "contention factor is required for string algorithm") {
				t.Errorf("without a contention factor: %v", err)
			}
			if x.preview {
				// The names of the other servers are refused by this one.
				err := db.CreateCollection(t.Context(), "final", allium.CreateCollectionOptions{EncryptedFields: specDocument(t, "etc/data/encryptedFields-substring.json")})
				if err == nil {
					t.Error("a server of the preview takes the final names")
				}
				return
			}
			// Cases 8 and 9: what the driver encrypts is found without regard to case and accents.
			for text, parts := range map[string][2]string{"BingQiLin": {"bing", "lin"}, "cafébarbäz": {"cafe", "baz"}} {
				x.insert(x.auto, "prefix-suffix-ci-di", bson.D{{Key: "encryptedText", Value: text}})
				x.find("prefix-suffix-ci-di", encryption.PrefixQuery, parts[0], text, false)
				x.find("prefix-suffix-ci-di", encryption.SuffixQuery, parts[1], text, false)
			}
			// Cases 10 and 11.
			for text, part := range map[string]string{"FooBarBaz": "bar", "foocafébaz": "cafe"} {
				x.insert(x.auto, "substring-ci-di", bson.D{{Key: "encryptedText", Value: text}})
				x.find("substring-ci-di", encryption.SubstringQuery, part, text, false)
			}
		})
	}
}
