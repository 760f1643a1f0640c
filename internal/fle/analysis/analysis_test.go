package analysis

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/fle"
)

const (
	keyA = `{"$binary": {"base64": "YWFhYWFhYWFhYWFhYWFhYQ==", "subType": "04"}}`
	keyB = `{"$binary": {"base64": "YmJiYmJiYmJiYmJiYmJiYg==", "subType": "04"}}`
)

// keyOf returns another key whose id begins with an a.
func keyOf(n byte) string {
	id := append(bytes.Repeat([]byte("a"), 15), n)
	return fmt.Sprintf(`{"$binary": {"base64": %q, "subType": "04"}}`, base64.StdEncoding.EncodeToString(id))
}

func deterministic(key string) string {
	return `{"encrypt": {"keyId": [` + key + `], "bsonType": "string", "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"}}`
}

func random(key, bsonType string) string {
	return `{"encrypt": {"keyId": ` + key + bsonType + `, "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Random"}}`
}

func object(properties string) string {
	return `{"bsonType": "object", "properties": {` + properties + `}}`
}

// csfle has d, deterministic, e, with the same metadata, x with another key; r, random; p, random
// with the name of the key in the document; o.d, o.r below an object; k*, a pattern.
var csfle = `{"bsonType": "object", "properties": {
	"d": ` + deterministic(keyA) + `, "e": ` + deterministic(keyA) + `, "x": ` + deterministic(keyB) + `,
	"r": ` + random("["+keyA+"]", "") + `, "p": ` + random(`"/name"`, `, "bsonType": "string"`) + `,
	"o": ` + object(`"d": `+deterministic(keyA)+`, "r": `+random("["+keyA+"]", "")) + `},
	"patternProperties": {"^k": ` + deterministic(keyB) + `}}`

// queryable has e, equality; u, unindexed; i, int range; l, long range; f, double range with
// precision; t, date range; s, substrings; a, prefixes and suffixes; o.e below an object.
var queryable = `{"fields": [
	{"path": "e", "bsonType": "string", "keyId": ` + keyA + `, "queries": {"queryType": "equality"}},
	{"path": "u", "keyId": ` + keyOf(2) + `},
	{"path": "i", "bsonType": "int", "keyId": ` + keyOf(3) + `, "queries": {"queryType": "range", "min": 0, "max": 200, "sparsity": 1, "trimFactor": 1, "contention": 0}},
	{"path": "l", "bsonType": "long", "keyId": ` + keyOf(4) + `, "queries": {"queryType": "range"}},
	{"path": "f", "bsonType": "double", "keyId": ` + keyOf(5) + `, "queries": {"queryType": "range", "min": {"$numberDouble": "0.0"}, "max": {"$numberDouble": "200.0"}, "precision": 2}},
	{"path": "t", "bsonType": "date", "keyId": ` + keyOf(6) + `, "queries": {"queryType": "range"}},
	{"path": "s", "bsonType": "string", "keyId": ` + keyOf(7) + `, "queries": {"queryType": "substring", "strMinQueryLength": 2, "strMaxQueryLength": 6, "strMaxLength": 10, "caseSensitive": false, "diacriticSensitive": true}},
	{"path": "a", "bsonType": "string", "keyId": ` + keyOf(8) + `, "queries": [
		{"queryType": "prefix", "strMinQueryLength": 2, "strMaxQueryLength": 6, "caseSensitive": true, "diacriticSensitive": true},
		{"queryType": "suffix", "strMinQueryLength": 3, "strMaxQueryLength": 7, "caseSensitive": true, "diacriticSensitive": true}]},
	{"path": "o.e", "bsonType": "string", "keyId": ` + keyB + `, "queries": {"queryType": "equality", "contention": 4}}]}`

// schemas returns those of db.c (csfle) and db.q (queryable), and of the plain db.n; db.c2 is like
// db.c with d and z, db.q2 like db.q.
func testSchemas(t testing.TB) map[string]*Schema {
	return map[string]*Schema{
		"db.c":  jsonSchema(t, "db.c", parse(t, csfle), true),
		"db.c2": jsonSchema(t, "db.c2", parse(t, object(`"d": `+deterministic(keyA)+`, "z": `+deterministic(keyB))), true),
		"db.q":  encryptedFields(t, "db.q", parse(t, queryable)),
		"db.q2": encryptedFields(t, "db.q2", parse(t, `{"fields": [{"path": "e2", "bsonType": "string", "keyId": `+keyA+`, "queries": {"queryType": "equality"}}]}`)),
		"db.n":  nil,
		"db.v":  nil,
		"db.z":  nil,
		// Of another database, the same names the other way round.
		"other.c": nil,
		"other.n": jsonSchema(t, "other.n", parse(t, csfle), true),
		"other.q": encryptedFields(t, "other.q", parse(t, queryable)),
	}
}

// show writes v with a short form of placeholders.
func show(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		var parts []string
		for key, v := range bson.Raw(v.Value).All() {
			parts = append(parts, key+": "+show(v))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case bson.TypeArray:
		var parts []string
		for v := range bson.Raw(v.Value).Values() {
			parts = append(parts, show(v))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case bson.TypeString:
		s, _ := v.StringValue()
		return "'" + s + "'"
	case bson.TypeBinary:
		data, _ := fle.Data(v)
		if m, err := fle.ParseMarking(data); err == nil {
			return fmt.Sprintf("<%d %s%.1s%s>", m.Algorithm, m.KeyAltName, string(m.KeyID[:]), show(m.Value))
		}
		if p, err := fle.ParsePlaceholder(data); err == nil {
			s := fmt.Sprintf("%d.%d ", p.Purpose, p.Index)
			if p.IndexKey != p.UserKey {
				s += "KEYS "
			}
			s += fmt.Sprintf("%.1s %s cm=%d", string(p.IndexKey[:]), show(p.Value), p.Contention)
			if p.Index == fle.IndexRange {
				s += fmt.Sprintf(" s=%d", p.Sparsity)
			}
			return "<" + s + ">"
		}
	}
	if f, ok := v.Double(); ok && math.IsInf(f, 0) {
		return fmt.Sprint(f)[:1] + "Infinity"
	}
	b, err := bson.AppendExtJSONValue(nil, v, false)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// encrypted are commands and what becomes of them, or, after "error ", a part of the reason for
// which they are refused. "same": the command is not changed.
var encrypted = []struct{ name, command, want string }{
	// Filters, CSFLE.
	{"implicit equality", `{"find": "c", "filter": {"d": "x"}}`, `{find: 'c', filter: {d: {$eq: <1 a'x'>}}}`},
	{"normal form", `{"find": "c", "filter": {"d": "x", "_id": 2}}`, `{find: 'c', filter: {$and: [{d: {$eq: <1 a'x'>}}, {_id: {$eq: 2}}]}}`},
	{"$and", `{"find": "c", "filter": {"$and": [{"d": "x"}, {"_id": 2}]}}`, `{find: 'c', filter: {$and: [{d: {$eq: <1 a'x'>}}, {_id: {$eq: 2}}]}}`},
	{"without placeholder", `{"find": "c", "filter": {"_id": 1, "a": {"$gt": 1}}}`, `same`},
	{"$in", `{"find": "c", "filter": {"d": {"$in": ["x", "y"]}}}`, `{find: 'c', filter: {d: {$in: [<1 a'x'>, <1 a'y'>]}}}`},
	{"$nin", `{"find": "c", "filter": {"d": {"$nin": ["x"]}}}`, `{find: 'c', filter: {d: {$nin: [<1 a'x'>]}}}`},
	{"$ne", `{"find": "c", "filter": {"d": {"$ne": "x"}}}`, `{find: 'c', filter: {d: {$ne: <1 a'x'>}}}`},
	{"$not", `{"find": "c", "filter": {"d": {"$not": {"$eq": "x"}}}}`, `{find: 'c', filter: {d: {$not: {$eq: <1 a'x'>}}}}`},
	{"$exists", `{"find": "c", "filter": {"d": {"$exists": true}, "r": {"$exists": false}}}`, `same`},
	{"$exists and equality", `{"find": "c", "filter": {"d": {"$exists": true, "$eq": "x"}}}`, `{find: 'c', filter: {$and: [{d: {$exists: true}}, {d: {$eq: <1 a'x'>}}]}}`},
	{"nested logic", `{"find": "c", "filter": {"$or": [{"d": "x", "a": 1}, {"$nor": [{"e": "y"}]}]}}`,
		`{find: 'c', filter: {$or: [{$and: [{d: {$eq: <1 a'x'>}}, {a: {$eq: 1}}]}, {$nor: [{e: {$eq: <1 a'y'>}}]}]}}`},
	{"dotted", `{"find": "c", "filter": {"o.d": "x"}}`, `{find: 'c', filter: {o.d: {$eq: <1 a'x'>}}}`},
	{"object", `{"find": "c", "filter": {"o": {"d": "x", "y": 1}}}`, `{find: 'c', filter: {o: {$eq: {d: <1 a'x'>, y: 1}}}}`},
	{"object with random", `{"find": "c", "filter": {"o": {"r": "x"}}}`, `error Cannot query on fields encrypted with the randomized encryption algorithm`},
	{"pattern", `{"find": "c", "filter": {"key": "x"}}`, `{find: 'c', filter: {key: {$eq: <1 b'x'>}}}`},
	{"random", `{"find": "c", "filter": {"r": "x"}}`, `error Cannot query on fields encrypted with the randomized encryption algorithm`},
	{"random, $gt", `{"find": "c", "filter": {"r": {"$gt": "x"}}}`, `error Cannot query on fields encrypted with the randomized encryption algorithm`},
	{"wrong type", `{"find": "c", "filter": {"d": 1}}`, `error Cannot encrypt element of type: int`},
	{"null", `{"find": "c", "filter": {"d": null}}`, `error Illegal equality to null predicate for encrypted field`},
	{"null in $in", `{"find": "c", "filter": {"d": {"$in": [null]}}}`, `error Illegal equality to null inside $in against an encrypted field`},
	{"regex", `{"find": "c", "filter": {"d": {"$regularExpression": {"pattern": "x", "options": ""}}}}`, `error Invalid match expression operator on encrypted field`},
	{"regex in $in", `{"find": "c", "filter": {"d": {"$in": [{"$regularExpression": {"pattern": "x", "options": ""}}]}}}`, `error Invalid match expression operator on encrypted field`},
	{"$regex", `{"find": "c", "filter": {"d": {"$regex": "x", "$options": ""}}}`, `error Invalid match expression operator on encrypted field`},
	{"$gt", `{"find": "c", "filter": {"d": {"$gt": "x"}}}`, `error Invalid match expression operator on encrypted field`},
	{"$elemMatch", `{"find": "c", "filter": {"d": {"$elemMatch": {"$eq": "x"}}}}`, `error Invalid match expression operator on encrypted field`},
	{"$elemMatch above", `{"find": "c", "filter": {"o": {"$elemMatch": {"d": "x"}}}}`, `error Invalid match expression operator on a field with encrypted fields below it`},
	{"$near", `{"find": "c", "filter": {"d": {"$near": [0, 0]}}}`, `error Invalid match expression operator on encrypted field`},
	{"$text", `{"find": "c", "filter": {"$text": {"$search": "x"}}}`, `error Unsupported match expression operator for encryption: $text`},
	{"$where", `{"find": "c", "filter": {"$where": {"$code": "x"}}}`, `error Unsupported match expression operator for encryption: $where`},
	{"$jsonSchema", `{"find": "c", "filter": {"$jsonSchema": {}}}`, `error Unsupported match expression operator for encryption: $jsonSchema`},
	{"unknown operator", `{"find": "c", "filter": {"a": {"$new": 1}}}`, `error Unsupported match expression operator for encryption: $new`},
	{"$where within $elemMatch", `{"find": "c", "filter": {"a": {"$elemMatch": {"$where": "x"}}}}`, `error Unsupported match expression operator for encryption: $where`},
	{"$expr within $elemMatch", `{"find": "c", "filter": {"a": {"$elemMatch": {"b": 1, "$expr": {"$eq": ["$d", "x"]}}}}}`, `error Unsupported match expression operator`},
	{"plain operators", `{"find": "c", "filter": {"a": {"$mod": [3, 1]}, "b": {"$elemMatch": {"c": 1}}, "g": {"$near": [0, 0], "$maxDistance": 1}, "s": {"$not": {"$regex": "x"}}, "n": null}}`, `same`},
	{"below", `{"find": "c", "filter": {"d.x": 1}}`, `error below encrypted field`},
	{"index", `{"find": "c", "filter": {"o.0.d": "x"}}`, `error Invalid match expression operator on encrypted field`},
	{"collation", `{"find": "c", "filter": {"d": "x"}, "collation": {"locale": "de"}}`, `error a collation cannot be used`},
	{"simple collation", `{"find": "c", "filter": {"d": "x"}, "collation": {"locale": "simple"}}`, `{find: 'c', filter: {d: {$eq: <1 a'x'>}}, collation: {locale: 'simple'}}`},
	{"collation elsewhere", `{"find": "c", "filter": {"a": "x"}, "collation": {"locale": "de"}}`, `same`},
	{"encrypted already", `{"find": "c", "filter": {"d": {"$binary": {"base64": "AQAA", "subType": "06"}}}}`, `error encrypted already`},
	{"ciphertext elsewhere", `{"find": "c", "filter": {"a": {"$binary": {"base64": "AQAA", "subType": "06"}}}}`, `same`},
	{"placeholder elsewhere", `{"find": "c", "filter": {"a": {"$binary": {"base64": "AAAA", "subType": "06"}}}}`, `error cannot hold a placeholder`},

	// The other fields of find.
	{"sort", `{"find": "c", "filter": {}, "sort": {"d": 1}}`, `error cannot sort by an encrypted field`},
	{"sort above", `{"find": "c", "filter": {}, "sort": {"o": 1}}`, `error cannot sort by an encrypted field`},
	{"plain sort", `{"find": "c", "filter": {}, "sort": {"a": 1}}`, `same`},
	{"projection", `{"find": "c", "filter": {}, "projection": {"d": 1, "o.r": 1, "a": {"$slice": 3}}}`, `same`},
	{"projection of an index", `{"find": "c", "filter": {}, "projection": {"0.a": 1}}`, `same`},
	{"computed projection", `{"find": "c", "filter": {}, "projection": {"z": {"$eq": ["$d", "x"]}}}`, `{find: 'c', filter: {}, projection: {z: {$eq: ['$d', <1 a'x'>]}}}`},
	{"$slice of an encrypted field", `{"find": "c", "filter": {}, "projection": {"r": {"$slice": 3}}}`, `error cannot be used on an encrypted field`},
	{"min", `{"find": "c", "filter": {}, "min": {"d": "x"}, "hint": {"d": 1}}`, `error the bounds of an index`},
	{"let", `{"find": "c", "filter": {"$expr": {"$eq": ["$d", "$$v"]}}, "let": {"v": "x"}}`, `error can be compared only with a constant`},
	{"let elsewhere", `{"find": "c", "filter": {"$expr": {"$eq": ["$a", "$$v"]}}, "let": {"v": "x"}}`, `same`},
	{"unknown field", `{"find": "c", "filter": {}, "new": 1}`, `error Unsupported field of a command for encryption`},
	{"two filters", `{"find": "c", "filter": {"d": "x"}, "filter": {"d": "y"}}`, `error twice`},

	// Filters, QE.
	{"QE equality", `{"find": "q", "filter": {"e": "x"}}`, `{find: 'q', filter: {e: {$eq: <2.2 a 'x' cm=8>}}}`},
	{"QE normal form", `{"find": "q", "filter": {"_id": 1}}`, `{find: 'q', filter: {_id: {$eq: 1}}}`},
	{"QE contention", `{"find": "q", "filter": {"o.e": "x"}}`, `{find: 'q', filter: {o.e: {$eq: <2.2 b 'x' cm=4>}}}`},
	{"QE $in", `{"find": "q", "filter": {"e": {"$in": ["x"]}}}`, `{find: 'q', filter: {e: {$in: [<2.2 a 'x' cm=8>]}}}`},
	{"QE $gt on equality", `{"find": "q", "filter": {"e": {"$gt": "x"}}}`, `error Invalid match expression operator on encrypted field`},
	{"QE unindexed", `{"find": "q", "filter": {"u": "x"}}`, `error Cannot query on an encrypted field without an index`},
	{"QE unindexed, $exists", `{"find": "q", "filter": {"u": {"$exists": true}}}`, `same`},
	{"QE object", `{"find": "q", "filter": {"o": {"e": "x"}}}`, `error cannot be compared as a whole`},
	{"QE text equality", `{"find": "q", "filter": {"s": "xyz"}}`, `error Invalid match expression operator on encrypted field`},
	{"QE collation", `{"find": "q", "filter": {"e": "x"}, "collation": {"locale": "de"}}`, `error a collation cannot be used`},

	// Ranges.
	{"range, one bound", `{"find": "q", "filter": {"i": {"$gt": 5}}}`,
		`{find: 'q', filter: {i: {$gt: <2.3 a {edgesInfo: {lowerBound: 5, lbIncluded: false, upperBound: +Infinity, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 1} cm=0 s=1>}}}`},
	{"range, two bounds", `{"find": "q", "filter": {"i": {"$lt": 9, "$gte": 5}}}`,
		`{find: 'q', filter: {$and: [{i: {$lt: <2.3 a {edgesInfo: {lowerBound: 5, lbIncluded: true, upperBound: 9, ubIncluded: false, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 3, secondOperator: 2} cm=0 s=1>}}, {i: {$gte: <2.3 a {payloadId: 0, firstOperator: 3, secondOperator: 2} cm=0 s=1>}}]}}`},
	{"range, pairs in $and", `{"find": "q", "filter": {"$and": [{"i": {"$gt": 1}}, {"i": {"$lt": 9}}, {"i": {"$gt": 2}}]}}`,
		`{find: 'q', filter: {$and: [{i: {$gt: <2.3 a {edgesInfo: {lowerBound: 1, lbIncluded: false, upperBound: 9, ubIncluded: false, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 1, secondOperator: 3} cm=0 s=1>}}, {i: {$lt: <2.3 a {payloadId: 0, firstOperator: 1, secondOperator: 3} cm=0 s=1>}}, {i: {$gt: <2.3 a {edgesInfo: {lowerBound: 2, lbIncluded: false, upperBound: +Infinity, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 1, firstOperator: 1} cm=0 s=1>}}]}}`},
	{"range, no pairs in $or", `{"find": "q", "filter": {"$or": [{"i": {"$gt": 1}}, {"i": {"$lt": 9}}]}}`,
		`{find: 'q', filter: {$or: [{i: {$gt: <2.3 a {edgesInfo: {lowerBound: 1, lbIncluded: false, upperBound: +Infinity, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 1} cm=0 s=1>}}, {i: {$lt: <2.3 a {edgesInfo: {lowerBound: -Infinity, lbIncluded: true, upperBound: 9, ubIncluded: false, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 1, firstOperator: 3} cm=0 s=1>}}]}}`},
	{"range, $ne", `{"find": "q", "filter": {"i": {"$ne": 5}}}`,
		`{find: 'q', filter: {$nor: [{$and: [{i: {$gte: <2.3 a {edgesInfo: {lowerBound: 5, lbIncluded: true, upperBound: 5, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 2, secondOperator: 4} cm=0 s=1>}}, {i: {$lte: <2.3 a {payloadId: 0, firstOperator: 2, secondOperator: 4} cm=0 s=1>}}]}]}}`},
	{"range, $in", `{"find": "q", "filter": {"i": {"$in": [5]}}}`,
		`{find: 'q', filter: {$or: [{$and: [{i: {$gte: <2.3 a {edgesInfo: {lowerBound: 5, lbIncluded: true, upperBound: 5, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 2, secondOperator: 4} cm=0 s=1>}}, {i: {$lte: <2.3 a {payloadId: 0, firstOperator: 2, secondOperator: 4} cm=0 s=1>}}]}]}}`},
	{"range, $not", `{"find": "q", "filter": {"i": {"$not": {"$gt": 5}}}}`,
		`{find: 'q', filter: {$nor: [{i: {$gt: <2.3 a {edgesInfo: {lowerBound: 5, lbIncluded: false, upperBound: +Infinity, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 1} cm=0 s=1>}}]}}`},
	{"range, limits of the type, coerced", `{"find": "q", "filter": {"l": {"$gt": 5}}}`,
		`{find: 'q', filter: {l: {$gt: <2.3 a {edgesInfo: {lowerBound: 5, lbIncluded: false, upperBound: +Infinity, ubIncluded: true, indexMin: -9223372036854775808, indexMax: 9223372036854775807}, payloadId: 0, firstOperator: 1} cm=8 s=2>}}}`},
	{"range, precision", `{"find": "q", "filter": {"f": {"$lte": {"$numberDouble": "1.5"}}}}`,
		`{find: 'q', filter: {f: {$lte: <2.3 a {edgesInfo: {lowerBound: -Infinity, lbIncluded: true, upperBound: 1.5, ubIncluded: true, indexMin: 0.0, indexMax: 200.0, precision: 2}, payloadId: 0, firstOperator: 4} cm=8 s=2>}}}`},
	{"range, long that fits", `{"find": "q", "filter": {"i": {"$lte": {"$numberLong": "7"}}}}`,
		`{find: 'q', filter: {i: {$lte: <2.3 a {edgesInfo: {lowerBound: -Infinity, lbIncluded: true, upperBound: 7, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 4} cm=0 s=1>}}}`},
	{"range, long that does not", `{"find": "q", "filter": {"i": {"$lte": {"$numberLong": "7000000000"}}}}`, `error Cannot encrypt element of type: long`},
	{"range, double for int", `{"find": "q", "filter": {"i": {"$gte": {"$numberDouble": "0"}}}}`, `error field type is not supported`},
	{"range, int for double", `{"find": "q", "filter": {"f": {"$gte": 0}}}`, `error field type is not supported`},
	{"range, double for date", `{"find": "q", "filter": {"t": {"$gte": {"$numberDouble": "0"}}}}`, `error value type is a date`},
	{"range, string", `{"find": "q", "filter": {"i": "x"}}`, `error Cannot encrypt element of type: string`},
	{"range, null", `{"find": "q", "filter": {"i": null}}`, `error Illegal equality to null predicate for encrypted field`},
	{"range, $mod", `{"find": "q", "filter": {"i": {"$mod": [2, 0]}}}`, `error Invalid match expression operator on encrypted field`},

	// Expressions.
	{"$expr", `{"find": "c", "filter": {"$expr": {"$and": [{"$eq": ["x", "$d"]}, {"$in": ["$o.d", ["y", "z"]]}, {"$not": [{"$ne": ["$e", {"$literal": "w"}]}]}]}}}`,
		`{find: 'c', filter: {$expr: {$and: [{$eq: [<1 a'x'>, '$d']}, {$in: ['$o.d', [<1 a'y'>, <1 a'z'>]]}, {$not: [{$ne: ['$e', <1 a'w'>]}]}]}}}`},
	{"$expr, two fields", `{"find": "c", "filter": {"$expr": {"$eq": ["$d", "$e"]}}}`, `same`},
	{"$expr, two fields with different keys", `{"find": "c", "filter": {"$expr": {"$eq": ["$d", "$x"]}}}`, `error two encrypted fields`},
	{"$expr, plain field", `{"find": "c", "filter": {"$expr": {"$eq": ["$d", "$a"]}}}`, `error can be compared only with a constant`},
	{"$expr, computed", `{"find": "c", "filter": {"$expr": {"$eq": ["$d", {"$concat": ["x", "y"]}]}}}`, `error can be compared only with a constant`},
	{"$expr, object", `{"find": "c", "filter": {"$expr": {"$eq": ["$o", {"d": "x"}]}}}`, `error cannot be an argument`},
	{"$expr, whole document", `{"find": "c", "filter": {"$expr": {"$eq": ["$$ROOT", {"d": "x"}]}}}`, `error cannot be an argument`},
	{"$expr, $gt", `{"find": "c", "filter": {"$expr": {"$gt": ["$d", "x"]}}}`, `error cannot be an argument`},
	{"$expr, random", `{"find": "c", "filter": {"$expr": {"$eq": ["$r", "x"]}}}`, `error randomized`},
	{"$expr, operand", `{"find": "c", "filter": {"$expr": {"$eq": [{"$toLower": "$d"}, "x"]}}}`, `error cannot be an argument`},
	{"$expr, $getField", `{"find": "c", "filter": {"$expr": {"$eq": [{"$getField": "d"}, "x"]}}}`, `error could be taken`},
	{"$expr, unknown operator", `{"find": "c", "filter": {"$expr": {"$function": {"body": "x", "args": [], "lang": "js"}}}}`, `error Unsupported expression operator`},
	{"$expr, unknown variable", `{"find": "c", "filter": {"$expr": {"$eq": ["$$w", "x"]}}}`, `error is not known`},
	{"$expr, truth", `{"find": "c", "filter": {"$expr": "$d"}}`, `error neither true nor false`},
	{"$expr, $let", `{"find": "c", "filter": {"$expr": {"$let": {"vars": {"v": "$d"}, "in": {"$eq": ["$$v", "x"]}}}}}`,
		`{find: 'c', filter: {$expr: {$let: {vars: {v: '$d'}, in: {$eq: ['$$v', <1 a'x'>]}}}}}`},
	{"$expr, $cond", `{"find": "c", "filter": {"$expr": {"$eq": [{"$cond": [{"$eq": ["$a", 1]}, "$d", "$e"]}, "x"]}}}`,
		`{find: 'c', filter: {$expr: {$eq: [{$cond: [{$eq: ['$a', 1]}, '$d', '$e']}, <1 a'x'>]}}}`},
	{"$expr, $cond mixed", `{"find": "c", "filter": {"$expr": {"$eq": [{"$cond": [true, "$d", "y"]}, "x"]}}}`, `error cannot be an argument`},
	{"$expr, $cond different", `{"find": "c", "filter": {"$expr": {"$eq": [{"$cond": {"if": true, "then": "$d", "else": "$x"}}, "x"]}}}`, `error cannot be an argument`},
	{"$expr, $switch", `{"find": "c", "filter": {"$expr": {"$eq": [{"$switch": {"branches": [{"case": {"$eq": ["$e", "y"]}, "then": "$d"}], "default": "$$REMOVE"}}, "x"]}}}`,
		`{find: 'c', filter: {$expr: {$eq: [{$switch: {branches: [{case: {$eq: ['$e', <1 a'y'>]}, then: '$d'}], default: '$$REMOVE'}}, <1 a'x'>]}}}`},
	{"$expr, QE range", `{"find": "q", "filter": {"$expr": {"$and": [{"$gte": ["$i", 1]}, {"$gt": [9, "$i"]}]}}}`,
		`{find: 'q', filter: {$expr: {$and: [{$gte: ['$i', <2.3 a {edgesInfo: {lowerBound: 1, lbIncluded: true, upperBound: 9, ubIncluded: false, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 2, secondOperator: 3} cm=0 s=1>]}, {$lt: ['$i', <2.3 a {payloadId: 0, firstOperator: 2, secondOperator: 3} cm=0 s=1>]}]}}}`},
	{"$expr, QE range alone", `{"find": "q", "filter": {"$expr": {"$lt": ["$i", 9]}}}`,
		`{find: 'q', filter: {$expr: {$lt: ['$i', <2.3 a {edgesInfo: {lowerBound: -Infinity, lbIncluded: true, upperBound: 9, ubIncluded: false, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 3} cm=0 s=1>]}}}`},
	{"$expr, QE equality", `{"find": "q", "filter": {"$expr": {"$eq": ["$e", "x"]}}}`, `{find: 'q', filter: {$expr: {$eq: ['$e', <2.2 a 'x' cm=8>]}}}`},
	{"$expr, QE fields", `{"find": "q", "filter": {"$expr": {"$eq": ["$e", "$e"]}}}`, `error two encrypted fields`},
	{"text, prefix", `{"find": "q", "filter": {"$expr": {"$encStrStartsWith": {"input": "$a", "prefix": "foo"}}}}`,
		`{find: 'q', filter: {$expr: {$encStrStartsWith: {input: '$a', prefix: <2.4 a {v: 'foo', casef: false, diacf: false, prefix: {ub: 6, lb: 2}} cm=8>}}}}`},
	{"text, suffix", `{"find": "q", "filter": {"$expr": {"$encStrEndsWith": {"input": "$a", "suffix": "foo"}}}}`,
		`{find: 'q', filter: {$expr: {$encStrEndsWith: {input: '$a', suffix: <2.4 a {v: 'foo', casef: false, diacf: false, suffix: {ub: 7, lb: 3}} cm=8>}}}}`},
	{"text, substring", `{"find": "q", "filter": {"$expr": {"$encStrContains": {"input": "$s", "substring": "foo"}}}}`,
		`{find: 'q', filter: {$expr: {$encStrContains: {input: '$s', substring: <2.4 a {v: 'foo', casef: true, diacf: false, substr: {mlen: 10, ub: 6, lb: 2}} cm=8>}}}}`},
	{"text, equality", `{"find": "q", "filter": {"$expr": {"$encStrNormalizedEq": {"input": "$s", "string": "foo"}}}}`,
		`{find: 'q', filter: {$expr: {$encStrNormalizedEq: {input: '$s', string: <2.4 a {v: 'foo', casef: true, diacf: false} cm=8>}}}}`},
	{"text, wrong query", `{"find": "q", "filter": {"$expr": {"$encStrContains": {"input": "$a", "substring": "foo"}}}}`, `error has no substring queries`},
	{"text, other field", `{"find": "q", "filter": {"$expr": {"$encStrContains": {"input": "$e", "substring": "foo"}}}}`, `error must be a field that is encrypted for text queries`},
	{"text, no constant", `{"find": "q", "filter": {"$expr": {"$encStrContains": {"input": "$s", "substring": "$z"}}}}`, `error must be a constant`},

	// Writes.
	{"insert", `{"insert": "c", "documents": [{"_id": 1, "d": "x", "r": {"a": 1}, "o": {"d": "y", "z": [1]}, "kk": "k", "p": "v", "name": "n"}], "ordered": true}`,
		`{insert: 'c', documents: [{_id: 1, d: <1 a'x'>, r: <2 a{a: 1}>, o: {d: <1 a'y'>, z: [1]}, kk: <1 b'k'>, p: <2 n` + "\x00" + `'v'>, name: 'n'}], ordered: true}`},
	{"insert, no name", `{"insert": "c", "documents": [{"p": "v"}]}`, `error does not lead to a string`},
	{"insert, array", `{"insert": "c", "documents": [{"d": ["x"]}]}`, `error Cannot encrypt element of type: array`},
	{"insert, array above", `{"insert": "c", "documents": [{"o": [{"d": "x"}]}]}`, `error Cannot encrypt below an element of type: array`},
	{"insert, null", `{"insert": "c", "documents": [{"r": null}]}`, `error Cannot encrypt element of type: null`},
	{"insert, timestamp", `{"insert": "c", "documents": [{"r": {"$timestamp": {"t": 0, "i": 0}}}]}`, `error A command that inserts cannot supply Timestamp(0, 0) for an encrypted`},
	{"insert, dotted name", `{"insert": "c", "documents": [{"o.d": "x"}]}`, `error a field with a dot in its name`},
	{"insert, encrypted already", `{"insert": "c", "documents": [{"r": {"$binary": {"base64": "AgAA", "subType": "06"}}}]}`, `error encrypted already`},
	{"insert, QE", `{"insert": "q", "documents": [{"e": "x", "u": [1], "i": 5, "s": "t", "a": "b", "o": {"e": "y"}}]}`,
		`{insert: 'q', documents: [{e: <1.2 a 'x' cm=8>, u: <1.1 a [1] cm=0>, i: <1.3 a {v: 5, min: 0, max: 200, trimFactor: 1} cm=0 s=1>, s: <1.4 a {v: 't', casef: true, diacf: false, substr: {mlen: 10, ub: 6, lb: 2}} cm=8>, a: <1.4 a {v: 'b', casef: false, diacf: false, prefix: {ub: 6, lb: 2}, suffix: {ub: 7, lb: 3}} cm=8>, o: {e: <1.2 b 'y' cm=4>}}]}`},
	{"insert, QE, wrong type", `{"insert": "q", "documents": [{"i": {"$numberDouble": "0"}}]}`, `error Cannot encrypt element`},
	{"insert, QE, reserved", `{"insert": "q", "documents": [{"__safeContent__": []}]}`, `error reserved`},
	{"update", `{"update": "c", "updates": [{"q": {"d": "x"}, "u": {"$set": {"d": "y", "o.r": 5, "o": {"d": "z"}, "a": 1}, "$unset": {"e": ""}, "$inc": {"n": 1}}}], "ordered": true}`,
		`{update: 'c', updates: [{q: {d: {$eq: <1 a'x'>}}, u: {$set: {d: <1 a'y'>, o.r: <2 a5>, o: {d: <1 a'z'>}, a: 1}, $unset: {e: ''}, $inc: {n: 1}}, multi: false, upsert: false}], ordered: true}`},
	{"update, replacement", `{"update": "c", "updates": [{"q": {}, "u": {"d": "y", "p": "v", "name": "n"}, "multi": false, "upsert": true}]}`,
		`{update: 'c', updates: [{q: {}, u: {d: <1 a'y'>, p: <2 n` + "\x00" + `'v'>, name: 'n'}, multi: false, upsert: true}]}`},
	{"update, $setOnInsert", `{"update": "c", "updates": [{"q": {}, "u": {"$setOnInsert": {"d": "y"}}, "multi": true, "upsert": true}]}`,
		`{update: 'c', updates: [{q: {}, u: {$setOnInsert: {d: <1 a'y'>}}, multi: true, upsert: true}]}`},
	{"update, pointer", `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"p": "y"}}, "upsert": true}]}`, `error A non-static (JSONPointer) keyId is not supported`},
	{"update, array", `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"d": [1, 2]}}}]}`, `error Cannot encrypt element of type`},
	{"update, $rename", `{"update": "c", "updates": [{"q": {}, "u": {"$rename": {"d": "e", "a": "b"}}, "multi": false, "upsert": false}]}`, `same`},
	{"update, $rename to another", `{"update": "c", "updates": [{"q": {}, "u": {"$rename": {"d": "r"}}}]}`, `error $rename between two encrypted fields must have the same metadata or both be unencrypted`},
	{"update, $rename to plain", `{"update": "c", "updates": [{"q": {}, "u": {"$rename": {"d": "b"}}}]}`, `error $rename between`},
	{"update, $rename of an object", `{"update": "c", "updates": [{"q": {}, "u": {"$rename": {"o": "b"}}}]}`, `error $rename between`},
	{"update, $inc", `{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"d": 1}}}]}`, `error $inc and $mul not allowed on encrypted values`},
	{"update, $max", `{"update": "c", "updates": [{"q": {}, "u": {"$max": {"o": {"d": "x"}}}}]}`, `error $max and $min not allowed on encrypted values`},
	{"update, $push", `{"update": "c", "updates": [{"q": {}, "u": {"$push": {"d": 1}}}]}`, `error $push not allowed on encrypted values`},
	{"update, $bit", `{"update": "c", "updates": [{"q": {}, "u": {"$bit": {"d": {"and": 1}}}}]}`, `error $bit not allowed on encrypted values`},
	{"update, unknown operator", `{"update": "c", "updates": [{"q": {}, "u": {"$new": {"a": 1}}}]}`, `error Unsupported update operator`},
	{"update, array filter", `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"d.$[i].x": 1}}, "arrayFilters": [{"i.x": 1}]}]}`, `error Array update operations not allowed on encrypted values`},
	{"update, plain array filter", `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a.$[i].x": 1}}, "arrayFilters": [{"i.x": 1}], "multi": false, "upsert": false}]}`, `same`},
	{"update, position", `{"update": "c", "updates": [{"q": {"d": "x"}, "u": {"$set": {"d.$": "x"}}}]}`, `error Cannot encrypt fields below '$' positional update operator`},
	{"update, plain position", `{"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"a.$": 1}}, "multi": false, "upsert": false}]}`, `same`},
	{"update, below", `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"d.x": 1}}}]}`, `error below encrypted field`},
	{"update, pipeline", `{"update": "c", "updates": [{"q": {}, "u": [{"$set": {"d": "x"}}]}]}`, `error an update with a pipeline`},
	{"update, QE", `{"update": "q", "updates": [{"q": {"_id": 1}, "u": {"$set": {"e": "y"}, "$unset": {"u": 1}}}]}`,
		`{update: 'q', updates: [{q: {_id: {$eq: 1}}, u: {$set: {e: <1.2 a 'y' cm=8>}, $unset: {u: 1}}, multi: false, upsert: false}]}`},
	{"update, QE, multi", `{"update": "q", "updates": [{"q": {}, "u": {"$set": {"e": "y"}}, "multi": true}]}`, `error Multi-document updates`},
	{"update, QE, multi by filter", `{"update": "q", "updates": [{"q": {"e": "x"}, "u": {"$set": {"n": "y"}}, "multi": true}]}`, `error Multi-document updates`},
	{"update, QE, plain multi", `{"update": "q", "updates": [{"q": {}, "u": {"$set": {"n": "y"}}, "multi": true, "upsert": false}]}`, `error Multi-document updates`},
	{"update, QE, two", `{"update": "q", "updates": [{"q": {}, "u": {"$set": {"n": "y"}}}, {"q": {}, "u": {"$set": {"n": "z"}}}]}`, `error Only single document updates are permitted`},
	{"update, QE, $setOnInsert", `{"update": "q", "updates": [{"q": {}, "u": {"$setOnInsert": {"e": "y"}}}]}`, `error $setOnInsert not allowed`},
	{"update, QE, $rename", `{"update": "q", "updates": [{"q": {}, "u": {"$rename": {"e": "z"}}}]}`, `error $rename not allowed`},
	{"update, QE, reserved", `{"update": "q", "updates": [{"q": {}, "u": {"$push": {"__safeContent__": 1}}}]}`, `error reserved`},
	{"update, collation", `{"update": "c", "updates": [{"q": {"d": "x"}, "u": {"$set": {"a": 1}}, "collation": {"locale": "de"}}]}`, `error a collation cannot be used`},
	{"delete", `{"delete": "c", "deletes": [{"q": {"$and": [{"d": "x"}, {"_id": 2}]}, "limit": 0}]}`,
		`{delete: 'c', deletes: [{q: {$and: [{d: {$eq: <1 a'x'>}}, {_id: {$eq: 2}}]}, limit: 0}]}`},
	{"delete, QE, many", `{"delete": "q", "deletes": [{"q": {"e": "x"}, "limit": 0}]}`, `{delete: 'q', deletes: [{q: {e: {$eq: <2.2 a 'x' cm=8>}}, limit: 0}]}`},
	{"delete, QE, two", `{"delete": "q", "deletes": [{"q": {"e": "x"}, "limit": 1}, {"q": {"_id": 1}, "limit": 1}]}`, `error Only single document deletes are permitted`},
	{"delete, QE, all", `{"delete": "q", "deletes": [{"q": {}, "limit": 0}]}`, `same`},
	{"findAndModify", `{"findAndModify": "c", "query": {"d": "x"}, "update": {"$set": {"d": "y"}}, "new": true, "fields": {"d": 1}}`,
		`{findAndModify: 'c', query: {d: {$eq: <1 a'x'>}}, update: {$set: {d: <1 a'y'>}}, new: true, fields: {d: 1}}`},
	{"findAndModify, remove", `{"findAndModify": "q", "query": {"e": "x"}, "remove": true, "new": false}`, `{findAndModify: 'q', query: {e: {$eq: <2.2 a 'x' cm=8>}}, remove: true, new: false}`},
	{"findAndModify, QE, new", `{"findAndModify": "q", "query": {"e": "x"}, "update": {"$set": {"e": "y"}}, "new": true}`, `error only supports new: false`},
	{"findAndModify, QE, fields", `{"findAndModify": "q", "query": {"e": "x"}, "update": {"$set": {"e": "y"}}, "fields": {"a": 1}}`, `error cannot have a projection`},
	{"bulkWrite", `{"bulkWrite": 1, "ops": [{"insert": 0, "document": {"d": "x"}}, {"update": 0, "filter": {"d": "x"}, "updateMods": {"$set": {"d": "y"}}}, {"delete": 0, "filter": {"d": "z"}}], "nsInfo": [{"ns": "db.c"}]}`,
		`{bulkWrite: 1, ops: [{insert: 0, document: {d: <1 a'x'>}}, {update: 0, filter: {d: {$eq: <1 a'x'>}}, updateMods: {$set: {d: <1 a'y'>}}}, {delete: 0, filter: {d: {$eq: <1 a'z'>}}}], nsInfo: [{ns: 'db.c'}]}`},
	{"bulkWrite, QE", `{"bulkWrite": 1, "ops": [{"update": 0, "filter": {"e": {"$eq": "x"}}, "updateMods": {"e": "y"}}], "nsInfo": [{"ns": "db.q"}]}`,
		`{bulkWrite: 1, ops: [{update: 0, filter: {e: {$eq: <2.2 a 'x' cm=8>}}, updateMods: {e: <1.2 a 'y' cm=8>}}], nsInfo: [{ns: 'db.q'}]}`},
	{"bulkWrite, QE, two", `{"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}, {"update": 0, "filter": {}, "updateMods": {"e": "y"}}], "nsInfo": [{"ns": "db.q"}]}`,
		`error Only insert is supported in BulkWrite with multiple operations and Queryable Encryption`},

	// Other commands.
	{"count", `{"count": "c", "query": {"d": "x"}}`, `{count: 'c', query: {d: {$eq: <1 a'x'>}}}`},
	{"distinct", `{"distinct": "c", "key": "d", "query": {"d": "x"}}`, `{distinct: 'c', key: 'd', query: {d: {$eq: <1 a'x'>}}}`},
	{"distinct, pointer", `{"distinct": "c", "key": "p", "query": {}}`, `error The distinct key is not allowed to be marked for encryption with a non-UUID keyId`},
	{"distinct, random", `{"distinct": "c", "key": "r", "query": {}}`, `error The distinct key is not allowed to be encrypted with the random algorithm`},
	{"distinct, QE", `{"distinct": "q", "key": "e", "query": {}}`, `error The distinct key is not allowed to be encrypted with the equality algorithm`},
	{"explain", `{"explain": {"find": "c", "filter": {"d": "x"}}}`, `{explain: {find: 'c', filter: {d: {$eq: <1 a'x'>}}}, verbosity: 'allPlansExecution'}`},
	{"explain, verbosity", `{"explain": {"count": "c", "query": {"r": "x"}}, "verbosity": "queryPlanner"}`, `error randomized`},
	{"create", `{"create": "c", "validator": {"a": "x"}}`, `same`},
	{"create, validator", `{"create": "c", "validator": {"d": "x"}}`, `error Comparison to encrypted fields not supported`},
	{"create, validator, random", `{"create": "c", "validator": {"r": {"$gt": 1}}}`, `error Comparison to encrypted fields not supported`},
	{"create, validator, null", `{"create": "c", "validator": {"d": null}}`, `error Comparison to encrypted fields not supported`},
	{"create, validator, $expr", `{"create": "q", "validator": {"$expr": {"$eq": ["$e", "x"]}}}`, `error Comparison to encrypted fields not supported`},
	{"create, own schema", `{"create": "c", "validator": {"$jsonSchema": ` + csfle + `}}`, `same`},
	{"create, types", `{"create": "c", "validator": {"$jsonSchema": {"bsonType": "object", "properties": {"d": {"bsonType": "binData"}, "a": {"enum": [1]}}}}}`, `same`},
	{"create, values", `{"create": "c", "validator": {"$jsonSchema": {"properties": {"d": {"enum": ["x"]}}}}}`, `error Comparison to encrypted fields not supported`},
	{"create, values at the root", `{"create": "q", "validator": {"$jsonSchema": {"anyOf": [{"properties": {"e": {"enum": ["x"]}}}]}}}`, `error Comparison to encrypted fields not supported`},
	{"create, view", `{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"d": "x"}}]}`, `error a view with stages`},
	{"create, view without stages", `{"create": "v", "viewOn": "c", "pipeline": []}`, `same`},
	{"collMod", `{"collMod": "q", "validator": {"e": "x"}}`, `error Comparison to encrypted fields not supported`},
	{"createIndexes", `{"createIndexes": "c", "indexes": [{"name": "n", "key": {"a": 1, "d": 1}, "partialFilterExpression": {"a": 1}}]}`, `same`},
	{"createIndexes, random", `{"createIndexes": "c", "indexes": [{"name": "n", "key": {"r": 1}}]}`, `error randomized`},
	{"createIndexes, QE", `{"createIndexes": "q", "indexes": [{"name": "n", "key": {"e": 1}}]}`, `error randomized`},
	{"createIndexes, safe content", `{"createIndexes": "q", "indexes": [{"name": "n", "key": {"__safeContent__": 1}}]}`, `same`},
	{"createIndexes, wildcard", `{"createIndexes": "c", "indexes": [{"name": "n", "key": {"$**": 1}}]}`, `error a wildcard index`},
	{"createIndexes, partial", `{"createIndexes": "c", "indexes": [{"name": "n", "key": {"a": 1}, "partialFilterExpression": {"d": "x"}}]}`, `error Comparison to encrypted fields not supported`},
	{"compact", `{"compactStructuredEncryptionData": "q"}`, `same`},
	{"plain collection", `{"find": "n", "filter": {"$where": "x", "d": "y"}, "new": 1}`, `same`},

	// Pipelines.
	{"count documents", `{"aggregate": "c", "pipeline": [{"$match": {"d": "x"}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}]}`,
		`{aggregate: 'c', pipeline: [{$match: {d: {$eq: <1 a'x'>}}}, {$group: {_id: {$const: 1}, n: {$sum: {$const: 1}}}}], cursor: {}}`},
	{"QE $match", `{"aggregate": "q", "pipeline": [{"$match": {"e": "x", "a.b": 1, "_id": {"$gt": 1, "$lt": 5}}}], "cursor": {}}`, `error below encrypted field`},
	{"QE $match, own form", `{"aggregate": "q", "pipeline": [{"$match": {"e": "x", "n.b": 1, "_id": {"$gt": 1, "$lt": 5}}}], "cursor": {}}`,
		`{aggregate: 'q', pipeline: [{$match: {e: <2.2 a 'x' cm=8>, n.b: 1, _id: {$gt: 1, $lt: 5}}}], cursor: {}}`},
	{"QE $match, range equality", `{"aggregate": "q", "pipeline": [{"$match": {"i": 5, "n": 1}}], "cursor": {}}`,
		`{aggregate: 'q', pipeline: [{$match: {$and: [{i: {$gte: <2.3 a {edgesInfo: {lowerBound: 5, lbIncluded: true, upperBound: 5, ubIncluded: true, indexMin: 0, indexMax: 200, trimFactor: 1}, payloadId: 0, firstOperator: 2, secondOperator: 4} cm=0 s=1>}}, {i: {$lte: <2.3 a {payloadId: 0, firstOperator: 2, secondOperator: 4} cm=0 s=1>}}], n: 1}}], cursor: {}}`},
	{"renamed", `{"aggregate": "c", "pipeline": [{"$project": {"n": "$d", "_id": 0}}, {"$match": {"n": "x", "d": "y"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$project: {n: '$d', _id: 0}}, {$match: {$and: [{n: {$eq: <1 a'x'>}}, {d: {$eq: 'y'}}]}}], cursor: {}}`},
	{"excluded", `{"aggregate": "c", "pipeline": [{"$project": {"r": 0, "o": {"r": 0}}}, {"$match": {"r": 5, "o.d": "x"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$project: {r: 0, o: {r: 0}}}, {$match: {$and: [{r: {$eq: 5}}, {o.d: {$eq: <1 a'x'>}}]}}], cursor: {}}`},
	{"included", `{"aggregate": "c", "pipeline": [{"$project": {"o.d": 1}}, {"$match": {"o.d": "x"}}, {"$match": {"o.r": 1}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$project: {o.d: 1}}, {$match: {o.d: {$eq: <1 a'x'>}}}, {$match: {o.r: 1}}], cursor: {}}`},
	{"added", `{"aggregate": "c", "pipeline": [{"$addFields": {"n.m": "$o", "d": 1}}, {"$match": {"n.m.d": "x", "d": 1}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$addFields: {n.m: '$o', d: 1}}, {$match: {$and: [{n.m.d: {$eq: <1 a'x'>}}, {d: {$eq: 1}}]}}], cursor: {}}`},
	{"unset", `{"aggregate": "c", "pipeline": [{"$unset": ["r", "o.r"]}, {"$match": {"o": {"d": "x", "r": 1}}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$unset: ['r', 'o.r']}, {$match: {o: {$eq: {d: <1 a'x'>, r: 1}}}}], cursor: {}}`},
	{"replaced root", `{"aggregate": "c", "pipeline": [{"$replaceWith": "$o"}, {"$match": {"d": "x", "e": "y"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$replaceWith: '$o'}, {$match: {$and: [{d: {$eq: <1 a'x'>}}, {e: {$eq: 'y'}}]}}], cursor: {}}`},
	{"new root", `{"aggregate": "c", "pipeline": [{"$replaceRoot": {"newRoot": {"n": "$d"}}}, {"$match": {"n": "x"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$replaceRoot: {newRoot: {n: '$d'}}}, {$match: {n: {$eq: <1 a'x'>}}}], cursor: {}}`},
	{"grouped", `{"aggregate": "c", "pipeline": [{"$group": {"_id": "$d", "all": {"$push": "$r"}, "set": {"$addToSet": "$e"}, "n": {"$sum": "$a"}}}, {"$match": {"_id": "x", "n": 1}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$group: {_id: '$d', all: {$push: '$r'}, set: {$addToSet: '$e'}, n: {$sum: '$a'}}}, {$match: {$and: [{_id: {$eq: <1 a'x'>}}, {n: {$eq: 1}}]}}], cursor: {}}`},
	{"pushed", `{"aggregate": "c", "pipeline": [{"$group": {"_id": null, "all": {"$push": "$d"}}}, {"$match": {"all": "x"}}], "cursor": {}}`, `error Invalid match expression operator on encrypted field`},
	{"grouped by random", `{"aggregate": "c", "pipeline": [{"$group": {"_id": "$r"}}], "cursor": {}}`, `error cannot be grouped`},
	{"grouped by QE", `{"aggregate": "q", "pipeline": [{"$group": {"_id": "$e"}}], "cursor": {}}`, `error cannot be grouped`},
	{"grouped, collation", `{"aggregate": "c", "pipeline": [{"$group": {"_id": "$d"}}], "cursor": {}, "collation": {"locale": "de"}}`, `error a collation cannot be used`},
	{"accumulator", `{"aggregate": "c", "pipeline": [{"$group": {"_id": 1, "m": {"$max": "$d"}}}], "cursor": {}}`, `error cannot be an argument`},
	{"$addToSet, random", `{"aggregate": "c", "pipeline": [{"$group": {"_id": 1, "m": {"$addToSet": "$r"}}}], "cursor": {}}`, `error different ciphertexts`},
	{"unknown accumulator", `{"aggregate": "c", "pipeline": [{"$group": {"_id": 1, "m": {"$accumulator": {}}}}], "cursor": {}}`, `error Unsupported accumulator`},
	{"$sortByCount", `{"aggregate": "c", "pipeline": [{"$sortByCount": "$d"}, {"$match": {"_id": "x"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$sortByCount: '$d'}, {$match: {_id: {$eq: <1 a'x'>}}}], cursor: {}}`},
	{"$sort", `{"aggregate": "c", "pipeline": [{"$sort": {"d": 1}}], "cursor": {}}`, `error cannot sort by an encrypted field`},
	{"$bucket", `{"aggregate": "c", "pipeline": [{"$bucket": {"groupBy": "$d", "boundaries": ["a", "b"]}}], "cursor": {}}`, `error cannot be used here`},
	{"$unwind", `{"aggregate": "c", "pipeline": [{"$unwind": "$r"}], "cursor": {}}`, `error cannot be unwound`},
	{"$redact", `{"aggregate": "c", "pipeline": [{"$redact": {"$cond": [{"$eq": ["$d", "x"]}, "$$KEEP", "$$PRUNE"]}}], "cursor": {}}`, `error cannot be used here`},
	{"$redact below", `{"aggregate": "c", "pipeline": [{"$redact": {"$cond": [{"$gt": ["$nothing", 1]}, "$$KEEP", "$$DESCEND"]}}], "cursor": {}}`, `same`},
	{"$facet", `{"aggregate": "c", "pipeline": [{"$facet": {"a": [{"$match": {"d": "x"}}], "b": [{"$count": "n"}]}}, {"$match": {"b.n": 1}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$facet: {a: [{$match: {d: {$eq: <1 a'x'>}}}], b: [{$count: 'n'}]}}, {$match: {b.n: 1}}], cursor: {}}`},
	{"$facet, compared", `{"aggregate": "c", "pipeline": [{"$facet": {"a": []}}, {"$match": {"a.d": "x"}}], "cursor": {}}`, `error Invalid match expression operator on encrypted field`},
	{"$slice in a stage", `{"aggregate": "c", "pipeline": [{"$project": {"a": {"$slice": ["$a", 1]}}}, {"$match": {"d": "x"}}], "cursor": {}}`, `same`},
	{"$meta in a stage", `{"aggregate": "c", "pipeline": [{"$project": {"s": {"$meta": "textScore"}}}, {"$match": {"d": "x"}}], "cursor": {}}`, `same`},
	{"$slice in a stage, below", `{"aggregate": "c", "pipeline": [{"$project": {"a": {"b": {"$slice": ["$a", 1]}}}}], "cursor": {}}`, `same`},
	{"$slice alone in find", `{"find": "c", "filter": {"d": "x"}, "projection": {"a": {"$slice": 1}}}`, `{find: 'c', filter: {d: {$eq: <1 a'x'>}}, projection: {a: {$slice: 1}}}`},
	{"mixed branches that are passed on", `{"aggregate": "c", "pipeline": [{"$addFields": {"m": {"$cond": ["$a", "$d", "none"]}, "n": {"$ifNull": ["$d", "none"]}, "o2": {"$switch": {"branches": [{"case": "$a", "then": "$d"}], "default": "$x"}}}}], "cursor": {}}`, `same`},
	{"mixed branches in find", `{"find": "c", "filter": {}, "projection": {"m": {"$cond": ["$a", "$d", "none"]}}}`, `same`},
	{"mixed branches compared", `{"aggregate": "c", "pipeline": [{"$addFields": {"m": {"$cond": ["$a", "$d", "none"]}}}, {"$match": {"m": "x"}}], "cursor": {}}`, `error Invalid match expression operator`},
	{"mixed branches grouped", `{"aggregate": "c", "pipeline": [{"$group": {"_id": {"$ifNull": ["$d", "none"]}}}], "cursor": {}}`, `error cannot be grouped`},
	{"mixed branches sorted", `{"aggregate": "c", "pipeline": [{"$addFields": {"m": {"$ifNull": ["$d", "none"]}}}, {"$sort": {"m": 1}}], "cursor": {}}`, `error cannot sort`},
	{"computed projection, QE", `{"find": "q", "filter": {}, "projection": {"z": {"$eq": ["$e", "x"]}}}`, `error is true only in a filter`},
	{"computed projection, QE, $in", `{"find": "q", "filter": {}, "projection": {"z": {"$cond": [{"$in": ["$e", ["x"]]}, 1, 0]}}}`, `error is true only in a filter`},
	{"computed stage, QE", `{"aggregate": "q", "pipeline": [{"$project": {"z": {"$eq": ["$e", "x"]}}}], "cursor": {}}`, `error is true only in a filter`},
	{"computed group, QE", `{"aggregate": "q", "pipeline": [{"$group": {"_id": null, "n": {"$sum": {"$cond": [{"$eq": ["$e", "x"]}, 1, 0]}}}}], "cursor": {}}`, `error is true only in a filter`},
	{"$facet, QE", `{"aggregate": "q", "pipeline": [{"$facet": {"a": [{"$match": {"e": "x"}}]}}], "cursor": {}}`, `error is true only in a filter`},
	{"$unionWith, QE", `{"aggregate": "q", "pipeline": [{"$unionWith": {"coll": "q", "pipeline": [{"$match": {"e": "x"}}]}}], "cursor": {}}`, `error is true only in a filter`},
	{"upsert, QE", `{"update": "q", "updates": [{"q": {"e": "x"}, "u": {"$set": {"n": 1}}, "upsert": true}]}`, `error would lack the encrypted field`},
	{"upsert, QE, $and", `{"update": "q", "updates": [{"q": {"$and": [{"_id": 1}, {"e": {"$eq": "x"}}]}, "u": {"$set": {"n": 1}}, "upsert": true}]}`, `error would lack the encrypted field`},
	{"upsert, QE, unset", `{"update": "q", "updates": [{"q": {"e": "x"}, "u": {"$unset": {"e": ""}}, "upsert": true}]}`, `error would lack the encrypted field`},
	{"upsert, QE, replacement", `{"update": "q", "updates": [{"q": {"e": "x"}, "u": {"n": 1}, "upsert": true}]}`, `error would lack the encrypted field`},
	{"upsert, QE, findAndModify", `{"findAndModify": "q", "query": {"e": "x"}, "update": {"$set": {"n": 1}}, "upsert": true}`, `error would lack the encrypted field`},
	{"upsert, QE, explained", `{"explain": {"findAndModify": "q", "query": {"e": "x"}, "update": {"$set": {"n": 1}}, "upsert": true}}`, `error would lack the encrypted field`},
	{"upsert, QE, bulkWrite", `{"bulkWrite": 1, "ops": [{"update": 0, "filter": {"e": "x"}, "updateMods": {"$set": {"n": 1}}, "upsert": true}], "nsInfo": [{"ns": "db.q"}]}`, `error would lack the encrypted field`},
	{"upsert, QE, set", `{"update": "q", "updates": [{"q": {"_id": 1}, "u": {"$set": {"n": 1}}, "multi": false, "upsert": true}]}`, `{update: 'q', updates: [{q: {_id: {$eq: 1}}, u: {$set: {n: 1}}, multi: false, upsert: true}]}`},
	{"upsert, QE, set too", `{"update": "q", "updates": [{"q": {"e": "x"}, "u": {"$set": {"e": "x"}}, "multi": false, "upsert": true}]}`,
		`{update: 'q', updates: [{q: {e: {$eq: <2.2 a 'x' cm=8>}}, u: {$set: {e: <1.2 a 'x' cm=8>}}, multi: false, upsert: true}]}`},
	{"$changeStream, advice", `{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}`, `error BypassQueryAnalysis`},
	{"$changeStream of a database, advice", `{"aggregate": 1, "pipeline": [{"$changeStream": {}}], "cursor": {}}`, `error use a client with BypassEncryption`},
	{"$out", `{"aggregate": "c", "pipeline": [{"$out": "z"}], "cursor": {}}`, `error Unsupported pipeline stage for encryption: $out`},
	{"$merge", `{"aggregate": "c", "pipeline": [{"$merge": "z"}], "cursor": {}}`, `error Unsupported pipeline stage for encryption: $merge`},
	{"$merge elsewhere", `{"aggregate": "n", "pipeline": [{"$merge": {"into": {"db": "other", "coll": "c"}}}], "cursor": {}}`, `same`},
	{"$merge elsewhere, computed", `{"aggregate": "n", "pipeline": [{"$merge": {"into": {"db": "other", "coll": "c"}, "whenMatched": [{"$set": {"d": "x"}}]}}], "cursor": {}}`, `same`},
	{"$merge into an encrypted collection", `{"aggregate": "n", "pipeline": [{"$merge": {"into": "c", "whenMatched": [{"$set": {"d": "x"}}]}}], "cursor": {}}`, `error Unsupported pipeline stage for encryption: $merge`},
	{"$lookup elsewhere", `{"aggregate": "n", "pipeline": [{"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [{"$match": {"d": "x"}}], "as": "m"}}], "cursor": {}}`, `same`},
	{"$lookup in an encrypted collection elsewhere", `{"aggregate": "n", "pipeline": [{"$lookup": {"from": {"db": "other", "coll": "n"}, "pipeline": [{"$match": {"d": "x"}}], "as": "m"}}], "cursor": {}}`, `error must be one of the same database`},
	{"$lookup twice", `{"aggregate": "n", "pipeline": [{"$lookup": {"from": "n", "from": "c", "localField": "a", "foreignField": "a", "as": "m"}}], "cursor": {}}`, `error twice`},
	{"two commands", `{"find": "n", "find": "c", "filter": {"d": "x"}}`, `error twice`},
	{"$unset with a value", `{"update": "c", "updates": [{"q": {}, "u": {"$unset": {"d": "x"}}, "multi": false, "upsert": false}]}`, `{update: 'c', updates: [{q: {}, u: {$unset: {d: ''}}, multi: false, upsert: false}]}`},
	{"$exists with a value", `{"find": "c", "filter": {"d": {"$exists": "x"}}}`, `error wants true or false`},
	{"operator that hides", `{"find": "c", "filter": {"o": {"$id": 1, "$eq": {"d": "x"}}}}`, `error cannot have a name with $`},
	{"$changeStream", `{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}`, `error Unsupported pipeline stage for encryption: $changeStream`},
	{"$lookup", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "c2", "localField": "d", "foreignField": "d", "as": "m"}}, {"$unwind": "$m"}, {"$match": {"m.z": "x"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$lookup: {from: 'c2', localField: 'd', foreignField: 'd', as: 'm'}}, {$unwind: '$m'}, {$match: {m.z: {$eq: <1 b'x'>}}}], cursor: {}}`},
	{"$lookup, different", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "c2", "localField": "d", "foreignField": "z", "as": "m"}}], "cursor": {}}`, `error a join needs`},
	{"$lookup, one side", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "n", "localField": "d", "foreignField": "z", "as": "m"}}], "cursor": {}}`, `error a join needs`},
	{"$lookup, random", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "c", "localField": "r", "foreignField": "r", "as": "m"}}], "cursor": {}}`, `error a join needs`},
	{"$lookup, pipeline", `{"aggregate": "n", "pipeline": [{"$lookup": {"from": "c2", "let": {"v": "$a"}, "pipeline": [{"$match": {"d": "x", "$expr": {"$eq": ["$a", "$$v"]}}}, {"$project": {"z": 1}}], "as": "m"}}, {"$match": {"m.d": "plain", "m.0.z": "y"}}], "cursor": {}}`,
		`{aggregate: 'n', pipeline: [{$lookup: {from: 'c2', let: {v: '$a'}, pipeline: [{$match: {$and: [{d: {$eq: <1 a'x'>}}, {$expr: {$eq: ['$a', '$$v']}}]}}, {$project: {z: 1}}], as: 'm'}}, {$match: {$and: [{m.d: {$eq: 'plain'}}, {m.0.z: {$eq: <1 b'y'>}}]}}], cursor: {}}`},
	{"$lookup, variable", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "c2", "let": {"v": "$d"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$d", "$$v"]}}}], "as": "m"}}], "cursor": {}}`, `same`},
	{"$lookup, variable compared", `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "n", "let": {"v": "$d"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$a", "$$v"]}}}], "as": "m"}}], "cursor": {}}`, `error can be compared only with a constant`},
	{"$lookup, QE, variable compared", `{"aggregate": "q", "pipeline": [{"$lookup": {"from": "q", "let": {"v": "$e"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$$v", "x"]}}}], "as": "m"}}], "cursor": {}}`, `error cannot be an argument`},
	{"$lookup, QE, variable of a whole document", `{"aggregate": "q", "pipeline": [{"$lookup": {"from": "q", "let": {"v": "$$ROOT"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$$v.e", "x"]}}}], "as": "m"}}], "cursor": {}}`, `error cannot be an argument`},
	{"$lookup, QE", `{"aggregate": "q", "pipeline": [{"$lookup": {"from": "q2", "localField": "n", "foreignField": "n", "as": "m"}}, {"$match": {"m.e2": "x"}}], "cursor": {}}`,
		`{aggregate: 'q', pipeline: [{$lookup: {from: 'q2', as: 'm', localField: 'n', foreignField: 'n'}}, {$match: {m.e2: <2.2 a 'x' cm=8>}}], cursor: {}}`},
	{"$lookup, QE fields", `{"aggregate": "q", "pipeline": [{"$lookup": {"from": "q", "localField": "e", "foreignField": "e", "as": "m"}}], "cursor": {}}`, `error a join needs`},
	{"$lookup, both kinds", `{"aggregate": "q", "pipeline": [{"$lookup": {"from": "c", "localField": "n", "foreignField": "n", "as": "m"}}], "cursor": {}}`,
		`error Cannot specify both encryptionInformation and csfleEncryptionSchemas unless csfleEncryptionSchemas only contains non-encryption JSON schema validators`},
	{"$graphLookup", `{"aggregate": "c", "pipeline": [{"$graphLookup": {"from": "c", "startWith": "$d", "connectFromField": "d", "connectToField": "e", "as": "m", "restrictSearchWithMatch": {"x": "v"}}}, {"$match": {"m.x": "w"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$graphLookup: {from: 'c', startWith: '$d', connectFromField: 'd', connectToField: 'e', as: 'm', restrictSearchWithMatch: {x: {$eq: <1 b'v'>}}}}, {$match: {m.x: {$eq: <1 b'w'>}}}], cursor: {}}`},
	{"$graphLookup, different", `{"aggregate": "c", "pipeline": [{"$graphLookup": {"from": "c", "startWith": "$x", "connectFromField": "d", "connectToField": "e", "as": "m"}}], "cursor": {}}`, `error a join needs`},
	{"$unionWith", `{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": [{"$match": {"d": "x"}}]}}, {"$match": {"e": "y"}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$unionWith: {coll: 'c', pipeline: [{$match: {d: {$eq: <1 a'x'>}}}]}}, {$match: {e: {$eq: <1 a'y'>}}}], cursor: {}}`},
	{"$unionWith, different", `{"aggregate": "c", "pipeline": [{"$unionWith": "c2"}], "cursor": {}}`, `error encrypted in different ways`},
	{"$unionWith, projected", `{"aggregate": "c", "pipeline": [{"$project": {"n": 1}}, {"$unionWith": {"coll": "c2", "pipeline": [{"$project": {"n": 1}}]}}], "cursor": {}}`, `same`},
	{"$geoNear", `{"aggregate": "c", "pipeline": [{"$geoNear": {"near": {"type": "Point", "coordinates": [0, 0]}, "distanceField": "n", "query": {"d": "x"}}}], "cursor": {}}`,
		`{aggregate: 'c', pipeline: [{$geoNear: {near: {type: 'Point', coordinates: [0, 0]}, distanceField: 'n', query: {d: {$eq: <1 a'x'>}}}}], cursor: {}}`},
	{"$filter of joined", `{"aggregate": "n", "pipeline": [{"$lookup": {"from": "c2", "localField": "a", "foreignField": "a", "as": "m"}}, {"$addFields": {"m": {"$filter": {"input": "$m", "as": "i", "cond": {"$eq": ["$$i.d", "x"]}}}}}, {"$match": {"m.z": "y"}}], "cursor": {}}`,
		`{aggregate: 'n', pipeline: [{$lookup: {from: 'c2', localField: 'a', foreignField: 'a', as: 'm'}}, {$addFields: {m: {$filter: {input: '$m', as: 'i', cond: {$eq: ['$$i.d', <1 a'x'>]}}}}}, {$match: {m.z: {$eq: <1 b'y'>}}}], cursor: {}}`},
}

func TestAnalyze(t *testing.T) {
	schemas := testSchemas(t)
	for _, tt := range encrypted {
		t.Run(tt.name, func(t *testing.T) {
			cmd := parse(t, tt.command)
			got, err := Analyze("db", cmd, schemas)
			if want, ok := strings.CutPrefix(tt.want, "error "); ok {
				var refused *Error
				if err == nil {
					t.Fatalf("got %s, want an error", show(document(got.Command)))
				}
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") {
					t.Errorf("got %v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if want == "same" {
				want = show(document(cmd))
			}
			if s := show(document(got.Command)); s != want {
				t.Errorf("got\n%s\nwant\n%s", s, want)
			}
			if err := got.Command.Validate(); err != nil {
				t.Error(err)
			}
			if n := strings.Count(want, "<"); n != len(got.Marks) {
				t.Errorf("%d marks for %d placeholders: %v", len(got.Marks), n, got.Marks)
			}
		})
	}
}
