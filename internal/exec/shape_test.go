package exec

import (
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/wire"
)

// message returns a command as it is sent, with the documents of one sequence.
func shapeMessage(t *testing.T, body bson.D, id string, docs ...bson.D) []byte {
	t.Helper()
	msg := wire.AppendMsg(nil, 1, 0, 0)
	msg, err := bson.MarshalAppend(msg, body)
	if err != nil {
		t.Fatal(err)
	}
	if id != "" {
		at := len(msg) + 1
		msg = append(msg, 1, 0, 0, 0, 0)
		msg = append(append(msg, id...), 0)
		for _, d := range docs {
			if msg, err = bson.MarshalAppend(msg, d); err != nil {
				t.Fatal(err)
			}
		}
		n := len(msg) - at
		msg[at], msg[at+1] = byte(n), byte(n>>8)
	}
	return wire.FinishMessage(msg, 0)
}

func TestShape(t *testing.T) {
	e := func(k string, v any) bson.E { return bson.E{Key: k, Value: v} }
	secret := bson.Binary{Subtype: bson.BinaryEncrypted, Data: []byte("ciphertext")}
	deep := bson.D{e("a", "value")}
	for range 40 {
		deep = bson.D{e("$and", bson.A{deep})}
	}
	for name, test := range map[string]struct {
		filter bson.D
		want   string
	}{
		"nothing":             {bson.D{}, "{}"},
		"values":              {bson.D{e("_id", 1), e("a.b", bson.A{"value"}), e("c", nil)}, "{_id: ?, a.b: ?, c: ?}"},
		"operators":           {bson.D{e("a", bson.D{e("$gte", 1), e("$lt", 2)}), e("b", bson.D{e("$in", bson.A{1, 2})})}, "{a: {$gte: ?, $lt: ?}, b: {$in: ?}}"},
		"a whole document":    {bson.D{e("a", bson.D{e("value", 1)})}, "{a: ?}"},
		"a value in a key":    {bson.D{e("a", bson.D{e("$eq", bson.D{e("value", 1)})})}, "{a: {$eq: ?}}"},
		"an unknown operator": {bson.D{e("$value", 1), e("a", bson.D{e("$value", 1)})}, "{?, a: {?}}"},
		"alternatives":        {bson.D{e("$or", bson.A{bson.D{e("a", 1)}, bson.D{e("a", 2)}, bson.D{e("b", 1)}, "value"})}, "{$or: [{a: ?}, {b: ?}, ?]}"},
		"no list":             {bson.D{e("$or", "value"), e("a", bson.D{e("$not", "value")})}, "{$or: ?, a: {$not: ?}}"},
		"elements":            {bson.D{e("a", bson.D{e("$elemMatch", bson.D{e("b", bson.D{e("$gt", 1)})})})}, "{a: {$elemMatch: {b: {$gt: ?}}}}"},
		"an expression":       {bson.D{e("$expr", bson.D{e("$eq", bson.A{"$a", "value"})})}, "{$expr: ?}"},
		"encrypted":           {bson.D{e("ssn", secret), e("a", 1)}, "{a: ?}"},
		"encrypted below":     {bson.D{e("age", bson.D{e("$gte", secret)}), e("in", bson.D{e("$in", bson.A{1, secret})}), e("$or", bson.A{bson.D{e("ssn", secret), e("b", 1)}}), e("doc", bson.D{e("ssn", secret)})}, "{$or: [{b: ?}]}"},
		"lines":               {bson.D{e("a\nlevel=ERROR", 1)}, "{a?level=ERROR: ?}"},
		"deep":                {deep, strings.Repeat("{$and: [", 16) + "{?}" + strings.Repeat("]}", 16)},
	} {
		if got := shapeOf("find", shapeMessage(t, bson.D{e("find", "c"), e("filter", test.filter)}, "")); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		for _, id := range []string{"", "updates"} { // as an array, and beside the body
			body := bson.D{e("update", "c")}
			statement := bson.D{e("q", test.filter), e("u", bson.D{e("$set", bson.D{e("x", "value")})})}
			if id == "" {
				body = append(body, e("updates", bson.A{statement, statement}))
			}
			if got := shapeOf("update", shapeMessage(t, body, id, statement, statement)); got != test.want {
				t.Errorf("%s in an update: %s, want %s", name, got, test.want)
			}
		}
	}
	for name, body := range map[string]bson.D{"getMore": {e("getMore", int64(1))}, "insert": {e("insert", "c"), e("filter", bson.D{e("a", 1)})}, "find": {e("find", "c"), e("filter", "value")}} {
		if got := shapeOf(name, shapeMessage(t, body, "")); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	pipeline := bson.A{bson.D{e("$match", bson.D{e("a", 1)})}, bson.D{e("$group", bson.D{e("_id", "$value")})}, bson.D{e("$value", 1)}, bson.D{}, "value"}
	if got, want := shapeOf("aggregate", shapeMessage(t, bson.D{e("aggregate", "c"), e("pipeline", pipeline)}, "")), "[{$match: {a: ?}}, $group, ?, ?, ?]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// However large a filter is, its shape is not.
func TestShapeIsBounded(t *testing.T) {
	wide, list := bson.D{}, bson.A{}
	for range 5000 {
		wide = append(wide, bson.E{Key: strings.Repeat("name", 50), Value: 1})
		list = append(list, bson.D{{Key: strings.Repeat("k", 1+len(list)%200), Value: 1}})
	}
	for name, filter := range map[string]bson.D{"fields": wide, "alternatives": {{Key: "$or", Value: list}}} {
		got := shapeOf("find", shapeMessage(t, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: filter}}, ""))
		if len(got) < maxShape || len(got) > 2*maxShape || !strings.Contains(got, "...") {
			t.Errorf("%s: %d bytes: %s", name, len(got), got)
		}
	}
}
