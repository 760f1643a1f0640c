package expr_test

import (
	"context"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/field/expr"
	"allium/internal/testdeploy"
)

type part struct {
	Name string
	N    int
}

type doc struct {
	A, B  int
	X     float64
	S     string
	Opt   *string `bson:",omitempty"`
	List  []int
	Other []int
	Words []string
	Parts []part
	When  time.Time
	Later time.Time
	Hex   string
	Yes   bool
}

var (
	a     = field.Of(func(d *doc) *int { return &d.A }).Ref()
	b     = field.Of(func(d *doc) *int { return &d.B }).Ref()
	x     = field.Of(func(d *doc) *float64 { return &d.X }).Ref()
	s     = field.Of(func(d *doc) *string { return &d.S }).Ref()
	opt   = field.Of(func(d *doc) *string { return d.Opt }).Ref()
	list  = field.Of(func(d *doc) *[]int { return &d.List }).Ref()
	other = field.Of(func(d *doc) *[]int { return &d.Other }).Ref()
	words = field.Of(func(d *doc) *[]string { return &d.Words }).Ref()
	parts = field.Of(func(d *doc) *[]part { return &d.Parts }).Ref()
	names = field.Refs(field.Of(func(d *doc) *string { return &d.Parts[0].Name }))
	when  = field.Of(func(d *doc) *time.Time { return &d.When }).Ref()
	later = field.Of(func(d *doc) *time.Time { return &d.Later }).Ref()
	hex   = field.Of(func(d *doc) *string { return &d.Hex }).Ref()
	yes   = field.Of(func(d *doc) *bool { return &d.Yes }).Ref()
	name  = field.Of(func(p *part) *string { return &p.Name }).Ref()
	n     = field.Of(func(p *part) *int { return &p.N }).Ref()
)

func lit[V any](v V) expr.Value[doc, V] { return expr.Lit[doc](v) }

// TestValues evaluates each expression for one document.
func TestValues(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	c := allium.CollectionOf[doc](client.Database("app"), "docs")
	if _, err := c.InsertOne(ctx, doc{A: 7, B: 2, X: -2.25, S: " Grüße ", List: []int{1, 2, 3}, Other: []int{4}, Words: []string{"$a", "b"},
		Parts: []part{{"x", 1}, {"y", 5}}, When: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC), Later: time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC),
		Hex: "65f0a1b2c3d4e5f601020304", Yes: true}); err != nil {
		t.Fatal(err)
	}
	for i, e := range []struct {
		value any // an expr.Value, which stands in a document written by hand
		want  string
	}{
		{expr.Eq(a, b), `false`}, {expr.Ne(a, b), `true`}, {expr.Gt(a, b), `true`}, {expr.Gte(a, b), `true`},
		{expr.Lt(a, b), `false`}, {expr.Lte(a, b), `false`}, {expr.Cmp(a, b), `1`},
		{expr.And(yes, expr.Gt(a, b)), `true`}, {expr.Or(expr.Lt(a, b), expr.Not(yes)), `false`},
		{expr.Cond(yes, a, b), `7`}, {expr.IfNull(opt, lit("none")), `"none"`},
		{expr.Switch([]expr.Case[doc, string]{{When: expr.Lt(a, b), Then: lit("less")}, {When: yes, Then: lit("$more")}}, lit("?")), `"$more"`},
		{expr.Add(a, b, lit(1)), `10`}, {expr.Subtract(a, b), `5`}, {expr.Multiply(a, b), `14`}, {expr.Divide(a, b), `3.5`},
		{expr.Mod(a, b), `1`}, {expr.Pow(a, b), `49`}, {expr.Sqrt(lit(16)), `4.0`}, {expr.Abs(x), `2.25`}, {expr.Ceil(x), `-2.0`},
		{expr.Floor(x), `-3.0`}, {expr.Round(x, 1), `-2.2`}, {expr.Trunc(x, 1), `-2.2`},
		{expr.ToString(a), `"7"`}, {expr.ToInt(x), `-2`}, {expr.ToLong(x), `-2`}, {expr.ToDouble(a), `7.0`},
		{expr.ToDecimal(a), `{"$numberDecimal":"7"}`}, {expr.ToObjectID(hex), `{"$oid":"65f0a1b2c3d4e5f601020304"}`},
		{expr.Type(a), `"int"`}, {expr.Type(opt), `"missing"`},
		{expr.Concat(hex, lit("$x")), `"65f0a1b2c3d4e5f601020304$x"`}, {expr.ToUpper(hex), `"65F0A1B2C3D4E5F601020304"`}, {expr.ToLower(lit("AB")), `"ab"`},
		{expr.Trim(s), `"Grüße"`}, {expr.Substr(s, 1, 3), `"Grü"`}, {expr.StrLen(s), `7`}, {expr.Split(hex, "f"), `["65","0a1b2c3d4e5","601020304"]`},
		{expr.RegexMatch(s, "^ gr", "i"), `true`},
		{expr.Size(list), `3`}, {expr.In(lit(2), list), `true`}, {expr.ElemAt(list, 1), `2`}, {expr.First(list), `1`}, {expr.Last(list), `3`},
		{expr.Slice(list, -2), `[2,3]`}, {expr.ConcatArrays(list, other), `[1,2,3,4]`},
		{expr.Filter(list, func(e expr.Value[doc, int]) expr.Value[doc, bool] { return expr.Gt(e, b) }), `[3]`},
		{expr.Map(list, func(e expr.Value[doc, int]) expr.Value[doc, int] { return expr.Multiply(e, a) }), `[7,14,21]`},
		{expr.Map(list, func(e expr.Value[doc, int]) expr.Value[doc, []int] { // a loop that uses the variable of the one around it
			return expr.Map(other, func(o expr.Value[doc, int]) expr.Value[doc, int] { return expr.Multiply(e, o) })
		}), `[[4],[8],[12]]`},
		{expr.Map(list, func(e expr.Value[doc, int]) expr.Value[doc, []int] {
			return expr.Filter(list, func(f expr.Value[doc, int]) expr.Value[doc, bool] {
				return expr.In(f, expr.Map(other, func(o expr.Value[doc, int]) expr.Value[doc, int] {
					return expr.Subtract(expr.Subtract(o, e), expr.Subtract(f, f))
				}))
			})
		}), `[[3],[2],[1]]`},
		{expr.Map(parts, func(p expr.Value[doc, part]) expr.Value[doc, string] { return expr.Field(p, name) }), `["x","y"]`},
		{expr.Filter(parts, func(p expr.Value[doc, part]) expr.Value[doc, bool] { return expr.Gt(expr.Field(p, n), b) }), `[{"name":"y","n":5}]`},
		{names, `["x","y"]`},
		{expr.Sum(list), `6`}, {expr.Avg(list), `2.0`}, {expr.Min(list), `1`}, {expr.Max(list), `3`},
		{expr.Year(when), `2024`}, {expr.Month(when), `5`}, {expr.DayOfMonth(when), `6`}, {expr.Hour(when), `7`},
		{expr.DateTrunc(when, expr.UnitMonth, ""), `{"$date":"2024-05-01T00:00:00Z"}`},
		{expr.DateTrunc(when, expr.UnitDay, "Europe/Berlin"), `{"$date":"2024-05-05T22:00:00Z"}`},
		{expr.DateAdd(when, -1, expr.UnitHour), `{"$date":"2024-05-06T06:08:09Z"}`}, {expr.DateDiff(when, later, expr.UnitMonth), `2`},
		{expr.DateToString(when, "%Y-%m-%d", ""), `"2024-05-06"`},
		{expr.Gt(expr.Now[doc](), when), `true`}, {expr.Type(expr.Root[doc]()), `"object"`},
		{lit("$s"), `"$s"`}, {lit([]string{"$a", "b"}), `["$a","b"]`}, {expr.Eq(words, lit([]string{"$a", "b"})), `true`},
		{expr.Raw[doc, int](bson.D{{Key: "$abs", Value: -3}}), `3`}, {expr.As[int64](a), `7`},
	} {
		cur, err := allium.Aggregate[bson.Raw](ctx, c, []bson.D{{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "v", Value: e.value}}}}})
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		out, err := cur.All(ctx)
		if err != nil || len(out) != 1 {
			t.Errorf("%d: %v, %v", i, out, err)
			continue
		}
		if got := out[0].String(); got != `{"v":`+e.want+`}` {
			t.Errorf("%d: %v is %s, want %s", i, bson.D{{Key: "v", Value: e.value}}, got, e.want)
		}
	}
}

func TestFieldWantsNames(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a field of an expression was made")
		}
	}()
	expr.Field(expr.First(parts), name)
}
