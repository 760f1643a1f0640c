package bson

import "testing"

// A document that is cut anywhere is an error, whatever it was about to say.
func TestExtJSONCutShort(t *testing.T) {
	const whole = `{"a":{"$numberLong":"1"},"b":[{"$oid":"507f1f77bcf86cd799439011"},{"\\u0024x":1}],"c":{"$ref":"x","$id":1},` +
		`"d":{"$date":{"$numberLong":"1"}},"e":{"$binary":{"base64":"AQ==","subType":"00"}},"f":{"$regularExpression":{"pattern":"a","options":""}},` +
		`"g":{"$timestamp":{"t":1,"i":2}},"h":{"$code":"f","$scope":{"x":null}},"i":{"$minKey":1},"j":{"$numberDecimal":"1.5"},"k":true,"l":-1.5e3}`
	var doc Raw
	if err := UnmarshalExtJSON([]byte(whole), &doc); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		var d Raw
		// Exactly so much memory: a reader that looks behind the end panics.
		if err := UnmarshalExtJSON([]byte(whole)[:i:i], &d); err == nil {
			t.Errorf("%s: no error but %v", whole[:i], d)
		}
	}
}
