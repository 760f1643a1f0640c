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
