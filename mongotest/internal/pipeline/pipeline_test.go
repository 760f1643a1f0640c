package pipeline

import (
	"strings"
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

// TestFillInUpdate: $fill with values is $addFields, and may stand in an update.
func TestFillInUpdate(t *testing.T) {
	parse := func(text string) (*Update, error) {
		stages, err := StagesOf(parseDoc(t, text).Lookup("p"))
		if err != nil {
			t.Fatal(err)
		}
		return ParseUpdate(stages, &Options{Version: expr.Version{Major: 8}})
	}
	u, err := parse(`{"p":[{"$fill":{"output":{"a.b":{"value":7}}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[string]string{`{"_id":1}`: `{"_id":1,"a":{"b":7}}`, `{"_id":1,"a":{"b":2}}`: `{"_id":1,"a":{"b":2}}`} {
		if got, err := u.Apply(parseDoc(t, doc)); err != nil || !bson.Equal(got, parseDoc(t, want)) {
			t.Errorf("%s: %s, %v; want %s", doc, expr.Text(bsondoc.DocumentValue(got)), err, want)
		}
	}
	for _, refused := range []string{`{"p":[{"$fill":{"output":{"a":{"method":"locf"}}}}]}`, `{"p":[{"$setWindowFields":{"output":{"a":{"$sum":1}}}}]}`} {
		if _, err := parse(refused); err == nil || !strings.Contains(err.Error(), "not allowed to be used within an update") {
			t.Errorf("%s: %v", refused, err)
		}
	}
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
