package shop

import (
	"context"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/bson/primitive"
)

func TestShop(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, os.Getenv("MONGODB_URI"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	name, err := s.Prepare(ctx)
	check("prepare", err)
	if name != "seen_1" {
		t.Errorf("index %s", name)
	}
	g := Good{Name: "hammer", Price: 20}
	check("add", s.Add(ctx, &g))
	if g.ID.IsZero() || s.Add(ctx, &Good{Name: "hammer"}) == nil {
		t.Error("identifiers")
	}
	n, err := s.AddMany(ctx, []Good{{Name: "saw", Price: 30}, {Name: "drill", Price: 90}})
	check("add many", err)
	if n != 2 {
		t.Errorf("%d", n)
	}
	h, err := s.ByName(ctx, "hammer")
	check("by name", err)
	if h == nil || h.Price != 20 {
		t.Errorf("%+v", h)
	}
	if h, err := s.ByName(ctx, "none"); h != nil || err != nil {
		t.Errorf("%+v %v", h, err)
	}
	if has, err := s.Has(ctx, "saw"); !has || err != nil {
		t.Errorf("%v %v", has, err)
	}
	if has, err := s.Has(ctx, "none"); has || err != nil {
		t.Errorf("%v %v", has, err)
	}
	raw, err := s.Raw(ctx, "saw")
	check("raw", err)
	if v := raw.Lookup("name").StringValue(); v != "saw" || !Names(raw) {
		t.Errorf("%q", v)
	}
	list, err := s.Cheap(ctx, 50, 10)
	check("cheap", err)
	if len(list) != 2 || list[0].Name != "hammer" {
		t.Errorf("%+v", list)
	}
	var names []string
	check("each", s.Each(ctx, func(g Good) error { names = append(names, g.Name); return nil }))
	if len(names) != 3 || names[0] != "drill" {
		t.Errorf("%v", names)
	}
	res, err := s.Raise(ctx, "saw", 5)
	check("raise", err)
	if res == nil || res.ModifiedCount != 1 {
		t.Errorf("%+v", res)
	}
	check("rename", s.Rename(ctx, g.ID, "mallet"))
	if err := s.Rename(ctx, primitive.NewObjectID(), "x"); err == nil {
		t.Error("renamed what is not there")
	}
	tagged, err := s.Tag(ctx, "saw", "wood")
	check("tag", err)
	if len(tagged.Tags) != 1 {
		t.Errorf("%+v", tagged)
	}
	old, err := s.Swap(ctx, "drill", Good{Name: "press", Price: 100})
	check("swap", err)
	if old.Name != "drill" {
		t.Errorf("%+v", old)
	}
	total, err := s.Total(ctx)
	check("total", err)
	if total != 155 {
		t.Errorf("%d", total)
	}
	a, b, err := s.Count(ctx)
	check("count", err)
	if a != 3 || b != 3 {
		t.Errorf("%d %d", a, b)
	}
	bulk, err := s.Bulk(ctx)
	check("bulk", err)
	if bulk.InsertedCount != 1 || bulk.DeletedCount != 1 {
		t.Errorf("%+v", bulk)
	}
	check("move", s.Move(ctx, "press", "saw", 10))
	check("by hand", s.ByHand(ctx, "saw"))
	if has, err := s.Has(ctx, "saw"); !has || err != nil {
		t.Errorf("the transaction was not aborted: %v", err)
	}
	if v, err := s.Version(ctx); v == "" || err != nil {
		t.Errorf("%q %v", v, err)
	}
	if names, err := s.Collections(ctx); len(names) != 1 || err != nil {
		t.Errorf("%v %v", names, err)
	}
	taken, err := s.Take(ctx, "press")
	check("take", err)
	if taken.Price != 91 {
		t.Errorf("%+v", taken)
	}
	if _, err := s.Clear(ctx, "saw"); err != nil {
		t.Error(err)
	}
	if names, err := s.Names(ctx); len(names) == 0 || err != nil {
		t.Errorf("%v %v", names, err)
	}
	if id, err := Parse(g.ID.Hex()); id != g.ID || err != nil {
		t.Errorf("%v %v", id, err)
	}
	if len(Query("x", g.ID.Timestamp())) != 2 {
		t.Error("query")
	}
	check("unindex", s.Unindex(ctx, "by_name"))
	if code := Code(s.Broken(ctx)); code != 2 {
		t.Errorf("code %d", code)
	}
	other, err := OpenWith(os.Getenv("MONGODB_URI"))
	check("open", err)
	check("close", other.Disconnect(ctx))
}
