package field_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// declarations are what the snippets of TestMistakesDoNotCompile use.
const declarations = `package p

import (
	"context"
	"time"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/field/expr"
	"allium/field/stage"
	"allium/field/typed"
)

type Line struct { Price float64; SKU string }
type Order struct { City string; Total float64; N int; Tags []string; Lines []Line; When time.Time; Prices map[string]int; Doubled float64 }
type User struct { City string; Total float64 }
type Result struct { ID string; Sum float64; Sums []float64 }

var (
	ctx    context.Context
	city   = field.Of(func(o *Order) *string { return &o.City })
	total  = field.Of(func(o *Order) *float64 { return &o.Total })
	n      = field.Of(func(o *Order) *int { return &o.N })
	tags   = field.Of(func(o *Order) *[]string { return &o.Tags })
	lines  = field.Of(func(o *Order) *[]Line { return &o.Lines })
	when   = field.Of(func(o *Order) *time.Time { return &o.When })
	prices = field.Of(func(o *Order) *map[string]int { return &o.Prices })
	price  = field.Of(func(l *Line) *float64 { return &l.Price })
	user   = field.Of(func(u *User) *string { return &u.City })
	userTotal = field.Of(func(u *User) *float64 { return &u.Total })
	resID  = field.Of(func(r *Result) *string { return &r.ID })
	resSum = field.Of(func(r *Result) *float64 { return &r.Sum })
	orders typed.Collection[Order]
	_ = allium.FindOptions{}
	_ = bson.D{}
	_ = expr.Now[Order]
	_ = stage.Limit[Order]
)
`

// TestMistakesDoNotCompile type-checks snippets: the good one of each row must pass, the bad one
// must not, for the reason that is given.
func TestMistakesDoNotCompile(t *testing.T) {
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", exportData(t))
	check := func(snippet string) error {
		f, err := parser.ParseFile(fset, "p.go", declarations+"\nfunc _() {\n"+snippet+"\n}\n", 0)
		if err != nil {
			return err
		}
		conf := types.Config{Importer: imports}
		_, err = conf.Check("p", fset, []*ast.File{f}, nil)
		return err
	}
	for _, c := range []struct{ mistake, good, bad, why string }{
		{"no such field", `field.Of(func(o *Order) *string { return &o.City })`, `field.Of(func(o *Order) *string { return &o.Citty })`, "Citty"},
		{"field of another type", `field.Of(func(o *Order) *float64 { return &o.Total })`, `field.Of(func(o *Order) *string { return &o.Total })`, "cannot use"},
		{"value", `_ = city.Eq("Bonn")`, `_ = city.Eq(3)`, "cannot use 3"},
		{"value of a type of its own", `type status string; _ = city.Eq(string(status("x")))`, `type status string; _ = city.Eq(status("x"))`, "cannot use"},
		{"one of several values", `_ = city.In("a", "b")`, `_ = city.In("a", 2)`, "cannot use 2"},
		{"comparison", `_ = total.Gt(2)`, `_ = total.Gt("2")`, "cannot use"},
		{"operator that is not there", `_ = city.Gte("a")`, `_ = city.Ge("a")`, "Ge undefined"},
		{"document in And", `_ = field.And(city.Eq("a"), total.Eq(1))`, `_ = field.And(city.Eq("a"), user.Eq("a"))`, "does not match"},
		{"document in Or", `_ = field.Or(city.Eq("a"), total.Eq(1))`, `_ = field.Or(city.Eq("a"), user.Eq("a"))`, "does not match"},
		{"pattern on a number", `_ = field.Regex(city, "a", "")`, `_ = field.Regex(total, "a", "")`, "does not satisfy"},
		{"bits of a fraction", `_ = field.BitsAllSet(n, 1)`, `_ = field.BitsAllSet(total, 1)`, "does not satisfy"},
		{"size of a string", `_ = field.Size(tags, 1)`, `_ = field.Size(city, 1)`, "does not satisfy"},
		{"element", `_ = field.All(tags, "a")`, `_ = field.All(tags, 1)`, "cannot use 1"},
		{"condition on another element", `_ = field.ElemMatch(lines, price.Gt(1))`, `_ = field.ElemMatch(lines, total.Gt(1))`, "does not satisfy"},
		{"key of a map", `_ = field.Key(prices, "eur").Eq(1)`, `_ = field.Key(prices, "eur").Eq("1")`, "cannot use"},
		{"set", `_ = field.Set(total, 3)`, `_ = field.Set(total, "three")`, "cannot use"},
		{"inc of a string", `_ = field.Inc(total, 1)`, `_ = field.Inc(city, "1")`, "does not satisfy"},
		{"inc by another type", `_ = field.Inc(n, 1)`, `_ = field.Inc(n, 1.5)`, "truncated"},
		{"push", `_ = field.Push(tags, "a")`, `_ = field.Push(tags, 1)`, "cannot use 1"},
		{"push to a string", `_ = field.Push(lines, Line{})`, `_ = field.Push(city, "a")`, "does not satisfy"},
		{"sort of another element", `_ = field.PushEach(lines, []Line{}, field.PushOptions[Line]{Sort: field.Asc(price)})`, `_ = field.PushEach(lines, []Line{}, field.PushOptions[Line]{Sort: field.Asc(total)})`, "cannot use"},
		{"pull", `_ = field.Pull(tags, field.Self[string]().Eq("a"))`, `_ = field.Pull(tags, field.Self[int]().Eq(1))`, "does not satisfy"},
		{"rename to another type", `_ = field.Rename(city, city)`, `_ = field.Rename(city, total)`, "does not match"},
		{"current date of a string", `_ = field.CurrentDate(when)`, `_ = field.CurrentDate(city)`, "does not satisfy"},
		{"changes of two documents", `_ = field.Update(field.Set(city, "a"), field.Inc(n, 1))`, `_ = field.Update(field.Set(city, "a"), field.Set(user, "a"))`, "does not match"},
		{"filter as a change", `_ = field.Update(field.Set(city, "a"))`, `_ = field.Update(city.Eq("a"))`, "does not match"},
		{"change as a filter", `_ = field.And(city.Eq("a"))`, `_ = field.And(field.Set(city, "a"))`, "does not match"},
		{"sort by two documents", `_ = field.By(field.Asc(city), field.Desc(n))`, `_ = field.By(field.Asc(city), field.Desc(user))`, "does not match"},
		{"projection of another", `_ = field.Project(field.Include(city), field.Exclude(n))`, `_ = field.Project(field.Include(city), field.Exclude(user))`, "does not match"},
		{"find", `_, _ = orders.Find(ctx, city.Eq("a"))`, `_, _ = orders.Find(ctx, user.Eq("a"))`, "cannot use"},
		{"find with a change", `_, _ = orders.Find(ctx, city.Eq("a"))`, `_, _ = orders.Find(ctx, field.Set(city, "a"))`, "cannot use"},
		{"update", `_, _ = orders.UpdateOne(ctx, city.Eq("a"), field.Set(city, "b"))`, `_, _ = orders.UpdateOne(ctx, city.Eq("a"), field.Set(user, "b"))`, "cannot use"},
		{"update by a filter", `_, _ = orders.UpdateOne(ctx, city.Eq("a"), field.Set(city, "b"))`, `_, _ = orders.UpdateOne(ctx, city.Eq("a"), city.Eq("b"))`, "cannot use"},
		{"filter and change exchanged", `_, _ = orders.UpdateMany(ctx, city.Eq("a"), field.Set(city, "b"))`, `_, _ = orders.UpdateMany(ctx, field.Set(city, "b"), city.Eq("a"))`, "cannot use"},
		{"delete", `_, _ = orders.DeleteMany(ctx, city.Eq("a"))`, `_, _ = orders.DeleteMany(ctx, user.Eq("a"))`, "cannot use"},
		{"sort option", `_ = typed.FindOptions[Order]{Sort: field.Asc(city)}`, `_ = typed.FindOptions[Order]{Sort: field.Asc(user)}`, "cannot use"},
		{"distinct", `var s []string; s, _ = typed.Distinct(ctx, orders, city, nil); _ = s`, `var s []int; s, _ = typed.Distinct(ctx, orders, city, nil); _ = s`, "cannot use"},
		{"expression on another document", `_ = expr.Eq(city.Ref(), city.Ref())`, `_ = expr.Eq(city.Ref(), user.Ref())`, "does not match"},
		{"sum of a string", `_ = expr.Add(total.Ref(), total.Ref())`, `_ = expr.Add(city.Ref(), city.Ref())`, "does not satisfy"},
		{"comparison of types", `_ = expr.Gt(total.Ref(), expr.Lit[Order](1.0))`, `_ = expr.Gt(total.Ref(), city.Ref())`, "does not match"},
		{"condition that is none", `_ = field.Expr(expr.Gt(total.Ref(), total.Ref()))`, `_ = field.Expr(expr.Add(total.Ref(), total.Ref()))`, "does not match"},
		{"stages that do not fit", `_ = stage.Then(stage.Group(resID, city.Ref(), stage.Sum(resSum, total.Ref())), stage.Match(resSum.Gt(1)))`,
			`_ = stage.Then(stage.Group(resID, city.Ref(), stage.Sum(resSum, total.Ref())), stage.Match(total.Gt(1)))`, "does not match"},
		{"key of a group", `_ = stage.Group[Order, Result](resID, city.Ref())`, `_ = stage.Group[Order, Result](resID, total.Ref())`, "does not match"},
		{"accumulator", `_ = stage.Group(resID, city.Ref(), stage.Sum(resSum, total.Ref()))`, `_ = stage.Group(resID, city.Ref(), stage.Sum(resSum, n.Ref()))`, "does not match"},
		{"pipeline of another collection", `_, _ = typed.Aggregate(ctx, orders, stage.Match(city.Eq("a")))`, `_, _ = typed.Aggregate(ctx, orders, stage.Match(user.Eq("a")))`, "does not match"},
	} {
		if err := check(c.good); err != nil {
			t.Errorf("%s: the good one does not compile: %v", c.mistake, err)
		}
		if err := check(c.bad); err == nil {
			t.Errorf("%s: %s compiles", c.mistake, c.bad)
		} else if !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.mistake, err, c.why)
		}
	}
}

// exportData asks the go command where the compiler has written what packages export.
func exportData(t *testing.T) importer.Lookup {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "allium/field/typed")
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[pkg] = file
	}
	return func(pkg string) (io.ReadCloser, error) { return os.Open(files[pkg]) }
}
