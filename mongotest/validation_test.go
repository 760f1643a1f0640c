package mongotest_test

import (
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// TestValidationDetails checks what errInfo says about documents that a validator refuses.
func TestValidationDetails(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	c := dial(t, d.Hosts()[0])
	for name, tc := range map[string]struct{ validator, doc, details string }{
		"type":    {`{"x": {"$type": "string"}}`, `{"x": 1}`, `{"operatorName": "$type", "specifiedAs": {"x": {"$type": "string"}}, "reason": "type did not match", "consideredValue": 1, "consideredType": "int"}`},
		"missing": {`{"x": {"$gt": 1}}`, `{}`, `{"operatorName": "$gt", "specifiedAs": {"x": {"$gt": 1}}, "reason": "field was missing"}`},
		"and": {`{"x": {"$gt": 1, "$lt": 9}, "y": 3}`, `{"x": 10, "y": 3}`, `{"operatorName": "$and", "clausesNotSatisfied": [{"index": 1, "details":
			{"operatorName": "$lt", "specifiedAs": {"x": {"$lt": 9}}, "reason": "comparison failed", "consideredValue": 10}}]}`},
		"schema": {`{"$jsonSchema": {"required": ["a", "b"], "properties": {"c": {"bsonType": "string", "description": "a name"}}}}`, `{"a": 1, "c": 2}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [
				{"operatorName": "required", "specifiedAs": {"required": ["a", "b"]}, "missingProperties": ["b"]},
				{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "c", "description": "a name", "details": [
					{"operatorName": "bsonType", "specifiedAs": {"bsonType": "string"}, "reason": "type did not match", "consideredValue": 2, "consideredType": "int"}]}]}]}`},
		"notes": {`{"$jsonSchema": {"title": "T", "description": "D", "required": ["a"]}}`, `{}`,
			`{"operatorName": "$jsonSchema", "title": "T", "description": "D", "schemaRulesNotSatisfied": [{"operatorName": "required", "specifiedAs": {"required": ["a"]}, "missingProperties": ["a"]}]}`},
		"exclusive": {`{"$jsonSchema": {"properties": {"a": {"minimum": 5, "exclusiveMinimum": true}}}}`, `{"a": 5}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [{"operatorName": "minimum", "specifiedAs": {"minimum": 5, "exclusiveMinimum": true}, "reason": "comparison failed", "consideredValue": 5}]}]}]}`},
		"additional": {`{"$jsonSchema": {"additionalProperties": false, "properties": {"_id": {}, "a": {"bsonType": "int"}}, "patternProperties": {"^p": {}}}}`, `{"_id": 1, "a": 1, "p": 1, "y": 1, "z": 2}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "additionalProperties", "specifiedAs": {"additionalProperties": false}, "additionalProperties": ["y", "z"]}]}`},
		"declared": {`{"$jsonSchema": {"additionalProperties": false, "properties": {"_id": {}, "a": {"bsonType": "int"}}}}`, `{"_id": 1, "a": "x"}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [{"operatorName": "bsonType", "specifiedAs": {"bsonType": "int"}, "reason": "type did not match", "consideredValue": "x", "consideredType": "string"}]}]}]}`},
		"failing": {`{"$jsonSchema": {"additionalProperties": {"bsonType": "int"}}}`, `{"_id": 1, "a": 1, "b": "x"}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "additionalProperties", "specifiedAs": {"additionalProperties": {"bsonType": "int"}}, "reason": "at least one additional property did not match the subschema", "failingProperty": "b", "details": [{"operatorName": "bsonType", "specifiedAs": {"bsonType": "int"}, "reason": "type did not match", "consideredValue": "x", "consideredType": "string"}]}]}`},
		"anyOf": {`{"$jsonSchema": {"anyOf": [{"required": ["x"]}, {"title": "T", "properties": {"a": {"bsonType": "string"}}}]}}`, `{"a": 1}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "anyOf", "schemasNotSatisfied": [{"index": 0, "details": [{"operatorName": "required", "specifiedAs": {"required": ["x"]}, "missingProperties": ["x"]}]},
				{"index": 1, "title": "T", "details": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [{"operatorName": "bsonType", "specifiedAs": {"bsonType": "string"}, "reason": "type did not match", "consideredValue": 1, "consideredType": "int"}]}]}]}]}]}`},
		"allOf": {`{"$jsonSchema": {"allOf": [{"required": ["a"]}, {"required": ["x"]}]}}`, `{"a": 1}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "allOf", "schemasNotSatisfied": [{"index": 1, "details": [{"operatorName": "required", "specifiedAs": {"required": ["x"]}, "missingProperties": ["x"]}]}]}]}`},
		"oneOf": {`{"$jsonSchema": {"oneOf": [{"required": ["x"]}, {"required": ["a"]}, {}]}}`, `{"a": 1}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "oneOf", "specifiedAs": {"oneOf": [{"required": ["x"]}, {"required": ["a"]}, {}]}, "reason": "more than one subschema matched", "matchingSchemaIndexes": [1, 2]}]}`},
		"not": {`{"$jsonSchema": {"not": {"required": ["a"]}}}`, `{"a": 1}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "not", "specifiedAs": {"not": {"required": ["a"]}}, "reason": "child expression matched"}]}`},
		"items": {`{"$jsonSchema": {"properties": {"a": {"items": {"bsonType": "int"}}}}}`, `{"a": [1, "x"]}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [{"operatorName": "items", "reason": "At least one item did not match the sub-schema", "itemIndex": 1, "details": [{"operatorName": "bsonType", "specifiedAs": {"bsonType": "int"}, "reason": "type did not match", "consideredValue": "x", "consideredType": "string"}]}]}]}]}`},
		"places": {`{"$jsonSchema": {"properties": {"a": {"items": [{"bsonType": "int"}, {"bsonType": "int"}], "additionalItems": false}}}}`, `{"a": [1, "x", 3]}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [{"operatorName": "items", "details": [{"itemIndex": 1, "details": [{"operatorName": "bsonType", "specifiedAs": {"bsonType": "int"}, "reason": "type did not match", "consideredValue": "x", "consideredType": "string"}]}]},
				{"operatorName": "additionalItems", "specifiedAs": {"additionalItems": false}, "additionalItems": [3]}]}]}]}`},
		"lengths": {`{"$jsonSchema": {"properties": {"a": {"maxItems": 1, "uniqueItems": true}}}}`, `{"a": [1, 1]}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [{"operatorName": "maxItems", "specifiedAs": {"maxItems": 1}, "reason": "array did not match specified length", "consideredValue": [1, 1], "numberOfItems": 2},
				{"operatorName": "uniqueItems", "specifiedAs": {"uniqueItems": true}, "reason": "found a duplicate item", "consideredValue": [1, 1], "duplicatedValue": 1}]}]}]}`},
		"orders": {`{"$jsonSchema": {"properties": {"a": {"uniqueItems": true}}}}`, `{"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [
				{"operatorName": "uniqueItems", "specifiedAs": {"uniqueItems": true}, "reason": "found a duplicate item", "consideredValue": [{"x": 1, "y": 2}, {"y": 2, "x": 1}], "duplicatedValue": {"y": 2, "x": 1}}]}]}]}`},
		"counts": {`{"$jsonSchema": {"maxProperties": 1}}`, `{"_id": 1, "a": 1}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "maxProperties", "specifiedAs": {"maxProperties": 1}, "reason": "specified number of properties was not satisfied", "consideredValue": {"_id": 1, "a": 1}, "numberOfProperties": 2}]}`},
		"multiple": {`{"$jsonSchema": {"properties": {"a": {"multipleOf": 3}}}}`, `{"a": 4}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "a", "details": [{"operatorName": "multipleOf", "specifiedAs": {"multipleOf": 3}, "reason": "considered value is not a multiple of the specified value", "consideredValue": 4}]}]}]}`},
		"patterns": {`{"$jsonSchema": {"patternProperties": {"^a": {"bsonType": "int"}}}}`, `{"a": 1, "ab": "x", "b": "x"}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "patternProperties", "details": [{"propertyName": "ab", "regexMatched": "^a", "details": [{"operatorName": "bsonType", "specifiedAs": {"bsonType": "int"}, "reason": "type did not match", "consideredValue": "x", "consideredType": "string"}]}]}]}`},
		"dependencies": {`{"$jsonSchema": {"dependencies": {"a": ["b"], "c": {"required": ["d"]}, "e": ["f"]}}}`, `{"a": 1, "c": 1}`,
			`{"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [{"operatorName": "dependencies", "failingDependencies": [{"conditionalProperty": "a", "missingProperties": ["b"]},
				{"conditionalProperty": "c", "details": [{"operatorName": "required", "specifiedAs": {"required": ["d"]}, "missingProperties": ["d"]}]}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			create := extJSON(t, `{"create": "`+name+`", "validator": `+tc.validator+`, "$db": "t"}`)
			if reply := command(t, c, create); !reply.Lookup("ok").AsBool() {
				t.Fatal(reply)
			}
			reply := command(t, c, extJSON(t, `{"insert": "`+name+`", "documents": [`+tc.doc+`], "$db": "t"}`))
			got, _ := reply.Lookup("writeErrors", "0", "errInfo", "details").Document()
			if want := extJSON(t, tc.details); got.String() != want.String() {
				t.Errorf("details are\n%v, want\n%v", got, want)
			}
		})
	}
}

// The schema keyword encrypt wants values that a client has encrypted.
func TestValidationEncrypted(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"create": "c", "validator": {"$jsonSchema": {"properties": {
		"s": {"encrypt": {"bsonType": "string", "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Random", "keyId": "/k"}}, "any": {"encrypt": {}}},
		"encryptMetadata": {"keyId": []}}}, "$db": "t"}`)))
	sealed := func(kind bson.Type) string {
		b := bson.EncryptedValue{Algorithm: bson.EncryptedRandom, OriginalType: kind, Ciphertext: []byte("x")}.Binary()
		text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: b}}, true)
		if err != nil {
			t.Fatal(err)
		}
		return bson.Raw(extJSON(t, string(text))).Lookup("v").String()
	}
	for _, tc := range []struct {
		doc string
		bad bool
	}{
		{`{"x": 1}`, false},
		{`{"s": "plain"}`, true},
		{`{"any": 1}`, true},
		{`{"s": ` + sealed(bson.TypeString) + `}`, false},
		{`{"s": ` + sealed(bson.TypeInt32) + `}`, true},
		{`{"any": ` + sealed(bson.TypeInt32) + `}`, false},
		{`{"any": {"$binary": {"base64": "AAAA", "subType": "00"}}}`, true},
	} {
		reply := command(t, c, extJSON(t, `{"insert": "c", "documents": [`+tc.doc+`], "$db": "t"}`))
		code, _ := reply.Lookup("writeErrors", "0", "code").AsInt64()
		if (code == 121) != tc.bad {
			t.Errorf("%s: %s", tc.doc, reply)
		}
	}
	for _, bad := range []string{`{"encrypt": 1}`, `{"encrypt": {"x": 1}}`, `{"encrypt": {"algorithm": "x"}}`, `{"encrypt": {}, "bsonType": "string"}`, `{"encryptMetadata": {"bsonType": "string"}}`} {
		reply := command(t, c, extJSON(t, `{"create": "d", "validator": {"$jsonSchema": `+bad+`}, "$db": "t"}`))
		if reply.Lookup("ok").AsBool() {
			t.Errorf("%s is accepted", bad)
		}
	}
}
