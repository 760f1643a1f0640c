package mongotest_test

import (
	"testing"

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
