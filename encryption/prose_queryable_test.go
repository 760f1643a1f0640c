package encryption_test

import (
	"fmt"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/mongotest"
)

// Prose test 12, "Explicit Encryption".
func TestProseExplicit(t *testing.T) {
	ctx := t.Context()
	keys := queryableKeys(t)
	p := startProse(t, keys, mongotest.Version("7.0")) // the oldest that the text allows
	p.create("explicit_encryption", "encryptedFields", specDocument(t, "etc/data/encryptedFields.json"))
	p.create("explicit_encryption_c10", "encryptedFields", specDocument(t, "etc/data/encryptedFields-c10.json"))
	client, _ := p.auto(encryption.AutoOptions{BypassQueryAnalysis: true}, allium.ClientOptions{})
	id := uuidOf(t, keys[0].Lookup("_id"))
	encrypt := func(v string, o encryption.EncryptOptions) bson.Binary {
		t.Helper()
		o.KeyID = id
		b, err := p.keys.Encrypt(ctx, v, o)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const indexed, unindexed = "encrypted indexed value", "encrypted unindexed value"
	// Cases 1 and 2: values are found, without and with contention.
	for name, c := range map[string]struct {
		contention int64
		n          int
	}{"explicit_encryption": {0, 1}, "explicit_encryption_c10": {10, 10}} {
		coll := client.Database("db").Collection(name)
		o := encryption.EncryptOptions{Algorithm: encryption.Indexed, Contention: &c.contention}
		for range c.n {
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "encryptedIndexed", Value: encrypt(indexed, o)}}); err != nil {
				t.Fatal(err)
			}
		}
		o.Query = encryption.EqualityQuery
		cursor, err := coll.Find(ctx, bson.D{{Key: "encryptedIndexed", Value: encrypt(indexed, o)}})
		if err != nil {
			t.Fatal(err)
		}
		docs, err := cursor.All(ctx)
		if err != nil || len(docs) != c.n {
			t.Errorf("%s: %d documents, %v; want %d", name, len(docs), err, c.n)
		}
		for _, d := range docs {
			if d[1].Key != "encryptedIndexed" || d[1].Value != indexed {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
	// Case 3: what is not indexed is stored.
	coll := client.Database("db").Collection("explicit_encryption")
	secret := encrypt(unindexed, encryption.EncryptOptions{Algorithm: encryption.Unindexed})
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "encryptedUnindexed", Value: secret}}); err != nil {
		t.Fatal(err)
	}
	if got, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil || got[1].Value != unindexed {
		t.Errorf("%s, %v", got, err)
	}
	// Cases 4 and 5: round trips.
	payload := encrypt(indexed, encryption.EncryptOptions{Algorithm: encryption.Indexed, Contention: new(int64(0))})
	for want, b := range map[string]bson.Binary{indexed: payload, unindexed: secret} {
		if got, err := encryption.DecryptAs[string](ctx, p.keys, b); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// rangeTypes are the types of the fields of prose test 22, with their values as JSON.
var rangeTypes = []struct {
	name, value     string
	bounded, digits bool // has bounds, takes a precision
}{
	{"DecimalNoPrecision", `{"$numberDecimal": "%d"}`, false, true},
	{"DecimalPrecision", `{"$numberDecimal": "%d"}`, true, true},
	{"DoubleNoPrecision", `{"$numberDouble": "%d"}`, false, true},
	{"DoublePrecision", `{"$numberDouble": "%d"}`, true, true},
	{"Date", `{"$date": {"$numberLong": "%d"}}`, true, false},
	{"Int", `{"$numberInt": "%d"}`, true, false},
	{"Long", `{"$numberLong": "%d"}`, true, false},
}

// Prose test 22, "Range Explicit Encryption".
func TestProseRange(t *testing.T) {
	for _, typ := range rangeTypes {
		t.Run(typ.name, func(t *testing.T) {
			ctx := t.Context()
			keys := queryableKeys(t)
			p := startProse(t, keys)
			p.create("explicit_encryption", "encryptedFields", specDocument(t, "etc/data/range-encryptedFields-"+typ.name+".json"))
			client, _ := p.auto(encryption.AutoOptions{BypassQueryAnalysis: true}, allium.ClientOptions{})
			coll := allium.CollectionOf[bson.Raw](client.Database("db"), "explicit_encryption")
			field := "encrypted" + typ.name
			value := func(n int) bson.RawValue {
				v, err := bson.ParseExtJSONValue(fmt.Appendf(nil, typ.value, n))
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			options := func() encryption.EncryptOptions {
				r := &encryption.RangeOptions{TrimFactor: new(int32(1)), Sparsity: new(int64(1))}
				if typ.bounded {
					r.Min, r.Max = value(0), value(200)
					if typ.digits {
						r.Precision = new(int32(2))
					}
				}
				return encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: uuidOf(t, keys[0].Lookup("_id")), Contention: new(int64(0)), Range: r}
			}
			values := []int{0, 6, 30, 200}
			for i, n := range values {
				secret, err := p.keys.Encrypt(ctx, value(n), options())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := coll.InsertOne(ctx, concat(bson.D{{Key: "_id", Value: i}, {Key: field, Value: secret}})); err != nil {
					t.Fatal(err)
				}
			}
			// Case 1: a payload is decrypted.
			secret, err := p.keys.Encrypt(ctx, value(6), options())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.keys.Decrypt(ctx, secret); err != nil || got.Type != value(6).Type || !got.Equal(value(6)) {
				t.Errorf("decrypts to %s, %v", got, err)
			}
			// Cases 2 to 5: queries.
			bound := func(op string, n int) bson.D {
				return bson.D{{Key: field, Value: bson.D{{Key: op, Value: value(n)}}}}
			}
			for i, c := range []struct {
				and  bson.A
				expr bool
				want []int // ids
			}{
				{bson.A{bound("$gte", 6), bound("$lte", 200)}, false, []int{1, 2, 3}},
				{bson.A{bound("$gte", 0), bound("$lte", 6)}, false, []int{0, 1}},
				{bson.A{bound("$gt", 30)}, false, []int{3}},
				{bson.A{bson.D{{Key: "$lt", Value: bson.A{"$" + field, value(30)}}}}, true, []int{0, 1}},
			} {
				o := options()
				o.Query = encryption.RangeQuery
				filter, err := p.keys.EncryptExpression(ctx, bson.D{{Key: "$and", Value: c.and}}, o)
				if err != nil {
					t.Errorf("case %d: %v", i+2, err)
					continue
				}
				if c.expr {
					filter = concat(bson.D{{Key: "$expr", Value: filter}})
				}
				cursor, err := coll.Find(ctx, filter, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
				if err != nil {
					t.Errorf("case %d: %v", i+2, err)
					continue
				}
				docs, err := cursor.All(ctx)
				if err != nil || len(docs) != len(c.want) {
					t.Errorf("case %d: %s, %v; want ids %v", i+2, docs, err, c.want)
					continue
				}
				for j, id := range c.want {
					if got, _ := docs[j].Lookup("_id").AsInt64(); got != int64(id) || !docs[j].Lookup(field).Equal(value(values[id])) {
						t.Errorf("case %d: %s, want id %d with %s", i+2, docs[j], id, value(values[id]))
					}
				}
			}
			refused := func(n int, v any, o encryption.EncryptOptions) {
				t.Helper()
				if _, err := p.keys.Encrypt(ctx, v, o); err == nil {
					t.Errorf("case %d: no error", n)
				} else {
					t.Logf("case %d: %v", n, err)
				}
			}
			if typ.bounded {
				refused(6, value(201), options())
				other := any(int32(6))
				if typ.name == "Int" {
					other = 6.0
				}
				refused(7, other, options())
			}
			if !typ.digits {
				o := options()
				o.Range.Precision = new(int32(2))
				refused(8, value(6), o)
			}
		})
	}
}

// Prose test 23, "Range Explicit Encryption applies defaults".
func TestProseRangeDefaults(t *testing.T) {
	ctx := t.Context()
	p := startProse(t, nil)
	id, err := p.keys.CreateDataKey(ctx, "local")
	if err != nil {
		t.Fatal(err)
	}
	size := func(r encryption.RangeOptions) int {
		t.Helper()
		r.Min, r.Max = int32(0), int32(1000)
		b, err := p.keys.Encrypt(ctx, int32(123), encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: &id, Contention: new(int64(0)), Range: &r})
		if err != nil {
			t.Fatal(err)
		}
		return len(b.Data)
	}
	defaults := size(encryption.RangeOptions{})
	if n := size(encryption.RangeOptions{Sparsity: new(int64(2)), TrimFactor: new(int32(6))}); n != defaults {
		t.Errorf("%d bytes with the defaults told, %d without", n, defaults)
	}
	if n := size(encryption.RangeOptions{TrimFactor: new(int32(0))}); n <= defaults {
		t.Errorf("%d bytes without trimming, %d with", n, defaults)
	}
}

// Prose test 25, "Test $lookup", with schemas of our own. Case 9 is about query analysis
// before 8.1, which there is none of.
func TestProseLookup(t *testing.T) {
	for _, version := range []string{"8.1", "8.2", "9.0"} {
		t.Run(version, func(t *testing.T) { testProseLookup(t, version) })
	}
}

func testProseLookup(t *testing.T, version string) {
	ctx := t.Context()
	keys := queryableKeys(t)
	p := startProse(t, keys, mongotest.Version(version))
	id := keys[0].Lookup("_id")
	schema := func(field string) bson.D {
		return validator(bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{{Key: field, Value: bson.D{{Key: "encrypt", Value: bson.D{
			{Key: "keyId", Value: bson.A{id}}, {Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(encryption.Deterministic)},
		}}}}}}})
	}
	queryable := func(field string, key bson.RawValue) bson.D {
		return bson.D{{Key: "fields", Value: bson.A{bson.D{{Key: "keyId", Value: key}, {Key: "path", Value: field}, {Key: "bsonType", Value: "string"},
			{Key: "queries", Value: bson.D{{Key: "queryType", Value: "equality"}, {Key: "contention", Value: int64(0)}}}}}}}
	}
	p.create("csfle", "validator", schema("csfle"))
	p.create("csfle2", "validator", schema("csfle2"))
	p.create("qe", "encryptedFields", queryable("qe", id))
	p.create("qe2", "encryptedFields", queryable("qe2", id))
	p.create("no_schema", "", nil)
	p.create("no_schema2", "", nil)
	p.create("non_csfle_schema", "validator", validator(bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{
		{Key: "non_csfle_schema", Value: bson.D{{Key: "bsonType", Value: "string"}}}}}}))
	client, _ := p.auto(encryption.AutoOptions{}, allium.ClientOptions{})
	for _, name := range []string{"csfle", "csfle2", "qe", "qe2", "no_schema", "no_schema2", "non_csfle_schema"} {
		if _, err := client.Database("db").Collection(name).InsertOne(ctx, bson.D{{Key: name, Value: name}}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		stored, err := allium.CollectionOf[bson.Raw](p.plain.Database("db"), name).FindOne(ctx, bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		if _, encrypted := stored.Lookup(name).Binary(); encrypted == strings.Contains(name, "schema") {
			t.Errorf("%s is stored as %s", name, stored)
		}
	}
	for _, c := range []struct{ n, from, to, fails string }{
		{"1", "csfle", "no_schema", ""}, {"2", "qe", "no_schema", ""}, {"3", "no_schema", "csfle", ""}, {"4", "no_schema", "qe", ""},
		{"5", "csfle", "csfle2", ""}, {"6", "qe", "qe2", ""}, {"7", "no_schema", "no_schema2", ""},
		{"8", "csfle", "qe", "Cannot specify both encryptionInformation and csfleEncryptionSchemas unless csfleEncryptionSchemas only contains non-encryption JSON schema validators"},
		{"10", "qe", "non_csfle_schema", ""},
	} {
		if c.n == "10" && version == "8.1" {
			continue // needs a server of 8.2
		}
		client, _ := p.auto(encryption.AutoOptions{}, allium.ClientOptions{})
		project := bson.D{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "__safeContent__", Value: 0}}}}
		match := func(name string) bson.D {
			return bson.D{{Key: "$match", Value: bson.D{{Key: name, Value: name}}}}
		}
		cursor, err := allium.CollectionOf[bson.Raw](client.Database("db"), c.from).Aggregate(ctx, bson.A{match(c.from),
			bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: c.to}, {Key: "as", Value: "matched"}, {Key: "pipeline", Value: bson.A{match(c.to), project}}}}},
			project})
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) && !strings.Contains(err.Error(), "not supported") {
				t.Errorf("case %s: %v", c.n, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("case %s: %v", c.n, err)
			continue
		}
		docs, err := cursor.All(ctx)
		want := concat(bson.D{{Key: c.from, Value: c.from}, {Key: "matched", Value: bson.A{bson.D{{Key: c.to, Value: c.to}}}}})
		if err != nil || len(docs) != 1 || docs[0].String() != want.String() {
			t.Errorf("case %s: %s, %v; want %s", c.n, docs, err, want)
		}
	}
}
