package pipeline

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
)

func parseDoc(t testing.TB, text string) bson.Raw {
	t.Helper()
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return raw
}

func TestUpdate(t *testing.T) {
	for _, c := range []struct{ stages, doc, want string }{
		{`{"p":[{"$set":{"b":{"$add":["$a",1]}}},{"$unset":"a"}]}`, `{"_id":1,"a":2}`, `{"_id":1,"b":3}`},
		{`{"p":[{"$replaceWith":{"x":"$$v"}}]}`, `{"_id":1}`, `{"x":9}`},
		{`{"p":[{"$project":{"a.b":1}}]}`, `{"_id":1,"a":[{"b":1,"c":2},3]}`, `{"_id":1,"a":[{"b":1}]}`},
	} {
		stages, err := StagesOf(parseDoc(t, c.stages).Lookup("p"))
		if err != nil {
			t.Fatal(err)
		}
		u, err := ParseUpdate(stages, &Options{Version: expr.Version{Major: 4, Minor: 4}, Let: parseDoc(t, `{"v":9}`)})
		if err != nil {
			t.Fatalf("%s: %v", c.stages, err)
		}
		got, err := u.Apply(parseDoc(t, c.doc))
		if err != nil || !bson.Equal(got, parseDoc(t, c.want)) {
			t.Errorf("%s: %s, %v; want %s", c.stages, expr.Text(bsondoc.DocumentValue(got)), err, c.want)
		}
	}
}
