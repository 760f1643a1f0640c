package expr

import (
	"fmt"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/release"
)

// TestDigests has the digests of texts that the public descriptions of the algorithms give.
func TestDigests(t *testing.T) {
	for _, tt := range []struct{ e, want string }{
		{`{"$hexHash": {"input": "", "algorithm": "md5"}}`, `"D41D8CD98F00B204E9800998ECF8427E"`},
		{`{"$hexHash": {"input": "abc", "algorithm": "sha256"}}`, `"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"`},
		{`{"$hexHash": {"input": "", "algorithm": "xxh64"}}`, `"EF46DB3751D8E999"`},
		{`{"$hexHash": {"input": "a", "algorithm": "xxh64"}}`, `"D24EC4F1A98C6E5B"`},
		{`{"$hexHash": {"input": "abc", "algorithm": "xxh64"}}`, `"44BC2CF5AD770999"`},
		{`{"$hexHash": {"input": "Nobody inspects the spammish repetition", "algorithm": "xxh64"}}`, `"FBCEA83C8A378BF1"`},
		{`{"$hexHash": {"input": null, "algorithm": "md5"}}`, `null`},
		{`{"$hexHash": {"input": "$nosuch", "algorithm": "md5"}}`, `null`},
		{`{"$type": {"$hash": {"input": "x", "algorithm": "md5"}}}`, `"binData"`},
		{`{"$binarySize": {"$hash": {"input": {"$hash": {"input": "x", "algorithm": "xxh64"}}, "algorithm": "sha256"}}}`, `32`},
		{`{"$subtype": {"$toUUID": "00000000-0000-4000-8000-000000000000"}}`, `4`},
		{`{"$subtype": null}`, `null`},
		{`{"$type": {"$createObjectId": {}}}`, `"objectId"`},
		{`{"$type": {"$currentDate": {}}}`, `"date"`},
	} {
		got, err := evaluate(bson.Raw{5, 0, 0, 0, 0}, parseDoc(t, `{"e": `+tt.e+`}`).Lookup("e"), &Env{Version: release.At(8, 3, 0)})
		if err != nil || got.String() != tt.want {
			t.Errorf("%s is %v, %v; want %s", tt.e, got, err, tt.want)
		}
	}
	for _, e := range []string{`{"$hash": {"input": 1, "algorithm": "md5"}}`, `{"$hash": {"input": "x", "algorithm": "sha1"}}`, `{"$hash": {"input": "x"}}`, `{"$hash": 1}`,
		`{"$subtype": "x"}`, `{"$createObjectId": 1}`, `{"$currentDate": {"x": 1}}`} {
		if got, err := evaluate(bson.Raw{5, 0, 0, 0, 0}, parseDoc(t, `{"e": `+e+`}`).Lookup("e"), &Env{Version: release.At(8, 3, 0)}); err == nil {
			t.Errorf("%s is %v", e, got)
		}
	}
}

// TestFresh wants another value of $createObjectId for each document.
func TestFresh(t *testing.T) {
	env := &Env{Version: release.At(8, 3, 0)}
	e, err := Parse(parseDoc(t, `{"e": {"$createObjectId": {}}}`).Lookup("e"), NewScope(env))
	if err == nil {
		e, err = Optimize(e, env)
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 3 {
		v, err := Eval(e, NewState(env))
		if err != nil {
			t.Fatal(err)
		}
		seen[fmt.Sprint(v)] = true
	}
	if len(seen) != 3 {
		t.Errorf("three documents have %d ids", len(seen))
	}
}

func TestArrayAccumulators(t *testing.T) {
	for name, want := range map[string]string{"$concatArrays": `[1,2,2,3]`, "$setUnion": `[1,2,3]`} {
		env := &Env{Version: release.At(8, 1, 0)}
		spec, err := ParseAccumulator("x", parseDoc(t, `{"e": {"`+name+`": "$a"}}`).Lookup("e"), NewScope(env))
		if err != nil {
			t.Fatal(err)
		}
		acc, err := spec.NewAccumulator(NewState(env))
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range []string{`{"a": [1, 2]}`, `{}`, `{"a": [2, 3]}`, `{"a": []}`} {
			if err := acc.Add(parseDoc(t, doc).Lookup("a")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got, err := acc.Value(); err != nil || got.String() != want {
			t.Errorf("%s is %v, %v; want %s", name, got, err, want)
		}
		if err := acc.Add(parseDoc(t, `{"a": 5}`).Lookup("a")); err == nil {
			t.Errorf("%s takes a number", name)
		}
	}
}
