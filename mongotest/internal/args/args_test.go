package args

import (
	"testing"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// message is a command as a server of a version gets it.
type message struct {
	version release.Version
	body    bson.Raw
}

func (m message) Version() release.Version             { return m.version }
func (m message) Message() (bson.Raw, []wire.Sequence) { return m.body, nil }
func (m message) Router() bool                         { return false }

// spec is what the table of the tests fills.
type spec struct {
	object bson.Raw
	number int64
	flag   bool
	level  string
	given  bool
}

var table = &Table[spec]{Name: "t", Required: []string{"object"}, Fields: map[string]Field[spec]{
	"object": Object(func(q *spec) *bson.Raw { return &q.object }),
	"number": Number(func(q *spec) *int64 { return &q.number }).Note(func(q *spec) *bool { return &q.given }),
	"flag":   SafeBool(func(q *spec) *bool { return &q.flag }),
	"level":  String(func(q *spec) *string { return &q.level }).OneOf("no such level: %s", "low", "high").Old(13111, "%s is a %s"),
	"late":   Any[spec](nil).Since50(),
	"early":  Any[spec](nil).Before50(),
	"hint":   Hint[spec](nil).Optional(),
	"loose":  Bool[spec](nil).Loose(),
}}

// TestTable reads documents as a generated parser and as one that was written by hand, whose table
// differs in Old alone.
func TestTable(t *testing.T) {
	v44, v50 := release.At(4, 4, 0), release.At(5, 0, 0)
	byHand, strict := *table, *table
	byHand.Old = &Old{
		Unknown: func(_ Source, k string) error { return srverr.New(9, "what is %s?", k) },
		Wrong: func(_ Source, k string, v bson.RawValue, want string) error {
			return srverr.New(9, "%s is no %s", k, want)
		},
		Strict: true, Cast: true,
	}
	strict.Must = true
	object := bson.E{Key: "object", Value: bson.D{}}
	inf := bson.E{Key: "number", Value: 1e30}
	for _, test := range []struct {
		name    string
		table   *Table[spec]
		version release.Version
		doc     bson.D
		code    int32
		text    string
	}{
		{"good", table, v50, bson.D{object, inf, {Key: "flag", Value: 1}, {Key: "level", Value: "low"}, {Key: "late"}, {Key: "hint"}}, 0, ""},
		{"null is not given", table, v44, bson.D{{Key: "object"}}, 40414, "BSON field 't.object' is missing but a required field"},
		{"null must not be", &strict, v50, bson.D{{Key: "object"}}, 14, "BSON field 't.object' is the wrong type 'null', expected type 'object'"},
		{"unknown", table, v44, bson.D{object, {Key: "x"}}, 40415, "BSON field 't.x' is an unknown field."},
		{"too early", table, v44, bson.D{object, {Key: "late"}}, 40415, "BSON field 't.late' is an unknown field."},
		{"too late", table, v50, bson.D{object, {Key: "early"}}, 40415, "BSON field 't.early' is an unknown field."},
		{"duplicate", table, v50, bson.D{object, object}, 40413, "BSON field 't.object' is a duplicate field"},
		{"own words", table, v50, bson.D{{Key: "level", Value: 1}}, 2, "no such level: "},
		{"own words, old", table, v44, bson.D{{Key: "level", Value: 1}}, 13111, "level is a int"},
		{"a value of its own", table, v44, bson.D{{Key: "level", Value: "x"}}, 2, "no such level: x"},
		{"loose once", table, v44, bson.D{object, {Key: "loose", Value: "x"}}, 0, ""},
		{"loose no more", table, v50, bson.D{object, {Key: "loose", Value: "x"}}, 14, "BSON field 't.loose' is the wrong type 'string', expected type 'bool'"},
		{"hint", table, v50, bson.D{{Key: "hint", Value: 1}}, 9, "Hint must be a string or an object"},

		{"by hand: good", &byHand, v44, bson.D{object, inf, {Key: "flag", Value: true}, {Key: "early"}}, 0, ""},
		{"by hand: nothing is required", &byHand, v44, bson.D{}, 0, ""},
		{"by hand: null is a value", &byHand, v44, bson.D{{Key: "object"}}, 9, "object is no object"},
		{"by hand: unknown", &byHand, v44, bson.D{object, {Key: "late"}}, 9, "what is late?"},
		{"by hand: in the client's order", &byHand, v44, bson.D{{Key: "x"}, {Key: "object", Value: 1}}, 9, "what is x?"},
		{"by hand: a boolean alone", &byHand, v44, bson.D{{Key: "flag", Value: 1}}, 9, "flag is no bool"},
		{"by hand: words of the field's", &byHand, v44, bson.D{{Key: "level"}}, 13111, "level is a null"},
		{"by hand, no more", &byHand, v50, bson.D{object, {Key: "x"}}, 40415, "BSON field 't.x' is an unknown field."},
	} {
		t.Run(test.name, func(t *testing.T) {
			body, err := bson.Marshal(test.doc)
			if err != nil {
				t.Fatal(err)
			}
			var q spec
			err = test.table.Parse(message{test.version, body}, body, &q)
			switch {
			case test.text == "" && err != nil:
				t.Fatal(err)
			case test.text != "" && err == nil:
				t.Fatal("no error")
			case test.text != "":
				if e := srverr.From(err); e.Code != test.code || e.Msg != test.text {
					t.Errorf("got  %d %s\nwant %d %s", e.Code, e.Msg, test.code, test.text)
				}
			case q.given && q.number != map[bool]int64{true: 1<<63 - 1, false: -1 << 63}[test.table.Old == nil]:
				t.Errorf("number = %d", q.number)
			case q.given != (len(test.doc) > 3):
				t.Errorf("given = %v", q.given)
			}
		})
	}
}
