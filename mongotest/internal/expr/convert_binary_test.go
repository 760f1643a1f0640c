package expr

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// Binary values become text and back in every format; an empty want stands for the error's code.
func TestConvertBinary(t *testing.T) {
	const uuid = "867dee52-c331-484e-92d1-c56479b8e67e"
	doc := parseDoc(t, `{"b": {"$binary": {"base64": "+/8A", "subType": "00"}}, "u": {"$uuid": "`+uuid+`"}}`)
	for _, c := range []struct {
		e    string
		want string
		code int32
	}{
		{`{"$convert": {"input": "$b", "to": "string", "format": "base64"}}`, `"+/8A"`, 0},
		{`{"$convert": {"input": "$b", "to": "string", "format": "base64url"}}`, `"-_8A"`, 0},
		{`{"$convert": {"input": "$b", "to": "string", "format": "hex"}}`, `"FBFF00"`, 0},
		{`{"$convert": {"input": "$b", "to": "string", "format": "auto"}}`, `"+/8A"`, 0},
		{`{"$convert": {"input": "$b", "to": "string", "format": "utf8"}}`, "", srverr.ConversionFailure},
		{`{"$convert": {"input": "$b", "to": "string", "format": "uuid"}}`, "", srverr.ConversionFailure},
		{`{"$convert": {"input": "$b", "to": "string", "format": "uuid", "onError": "no"}}`, `"no"`, 0},
		{`{"$convert": {"input": "$b", "to": "string"}}`, "", 4341115},
		{`{"$convert": {"input": "$b", "to": "string", "format": 1}}`, "", 4341114},
		{`{"$convert": {"input": "$b", "to": "string", "format": "x"}}`, "", 4341125},
		{`{"$convert": {"input": "$u", "to": "string", "format": "auto"}}`, `"` + uuid + `"`, 0},
		{`{"$toString": "$u"}`, `"` + uuid + `"`, 0},
		{`{"$toUUID": "` + uuid + `"}`, `{"$binary":{"base64":"hn3uUsMxSE6S0cVkebjmfg==","subType":"04"}}`, 0},
		{`{"$toUUID": "867dee52c331484e92d1c56479b8e67e"}`, "", srverr.ConversionFailure},
		{`{"$convert": {"input": "` + uuid + `", "to": {"type": "binData", "subtype": 4}, "format": "uuid"}}`, `{"$binary":{"base64":"hn3uUsMxSE6S0cVkebjmfg==","subType":"04"}}`, 0},
		{`{"$convert": {"input": "` + uuid + `", "to": "binData", "format": "uuid"}}`, "", srverr.ConversionFailure},
		{`{"$convert": {"input": "fbff00", "to": {"type": "binData", "subtype": 128}, "format": "hex"}}`, `{"$binary":{"base64":"+/8A","subType":"80"}}`, 0},
		{`{"$convert": {"input": "fbf", "to": "binData", "format": "hex"}}`, "", srverr.ConversionFailure},
		{`{"$convert": {"input": "-_8A", "to": "binData", "format": "base64url"}}`, `{"$binary":{"base64":"+/8A","subType":"00"}}`, 0},
		{`{"$convert": {"input": "a", "to": {"type": "binData", "subtype": 50}, "format": "utf8"}}`, "", 4341107},
		{`{"$convert": {"input": "a", "to": {"subtype": 0}, "format": "utf8"}}`, "", srverr.FailedToParse},
		{`{"$convert": {"input": "$b", "to": {"type": "binData", "subtype": 4}}}`, "", srverr.ConversionFailure},
		{`{"$convert": {"input": "$b", "to": "binData"}}`, `{"$binary":{"base64":"+/8A","subType":"00"}}`, 0},
	} {
		got, err := evaluate(doc, parseDoc(t, `{"e": `+c.e+`}`).Lookup("e"), &Env{Version: release.At(8, 0, 0)})
		if srverr.CodeOf(err) != c.code || err == nil && got.String() != c.want {
			t.Errorf("%s: %s, %v", c.e, got, err)
		}
	}
	_, err := evaluate(doc, parseDoc(t, `{"e": {"$convert": {"input": "$b", "to": "string"}}}`).Lookup("e"), &Env{Version: release.At(7, 0, 0)})
	if srverr.CodeOf(err) != srverr.ConversionFailure {
		t.Errorf("before 8.0: %v", err)
	}
}

// A $switch that can only fail is refused before it runs, since 5.0.
func TestSwitchWithoutWay(t *testing.T) {
	e := parseDoc(t, `{"e": {"$switch": {"branches": [{"case": false, "then": 1}, {"case": {"$gt": [1, 2]}, "then": 2}]}}}`).Lookup("e")
	for version, code := range map[Version]int32{release.At(4, 4, 0): 40066, release.At(8, 0, 0): 40069} {
		if _, err := evaluate(bson.Raw{}, e, &Env{Version: version}); srverr.CodeOf(err) != code {
			t.Errorf("%v: %v", version, err)
		}
	}
}
