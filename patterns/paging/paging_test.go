package paging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/patterns/paging"
)

// values are of every type that a document may have in a sort key, with some that are equal, and
// some that are next to each other.
var values = []any{
	bson.MinKey{}, bson.Undefined{}, nil, math.NaN(), math.Inf(-1), int32(-1), 0.0, math.Copysign(0, -1), int32(1), int64(1), 1.0, decimal("1.0"),
	1.5, int64(math.MaxInt64), float64(math.MaxInt64), decimal("1E+400"), math.Inf(1), "", "a", "A", "ab", "b", "é", bson.Symbol("a"),
	bson.D{}, bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "x", Value: bson.A{1, 2}}}, bson.D{{Key: "$gt", Value: 1}}, bson.Binary{Data: []byte{1}},
	bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.ObjectID{}, bson.ObjectID{1}, false, true, bson.DateTime(-1), bson.DateTime(0),
	bson.Timestamp{T: 1, I: 1}, bson.NewRegex("a", ""), bson.NewRegex("a", "i"), bson.DBPointer{DB: "c"}, bson.JavaScript("f"),
	bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "x", Value: 1}}}, bson.MaxKey{},
}

func decimal(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// randomID returns a value of _id of its own.
func randomID(r *rand.Rand, n int) any {
	switch r.IntN(5) {
	case 0:
		return fmt.Sprint("id", n)
	case 1:
		return bson.D{{Key: "n", Value: n}}
	case 2:
		return float64(n) + 0.5
	case 3:
		return bson.ObjectID{byte(r.IntN(256)), byte(n >> 8), byte(n)}
	}
	return n
}

func randomDocument(r *rand.Rand, n int) bson.D {
	doc := bson.D{{Key: "_id", Value: randomID(r, n)}, {Key: "tenant", Value: r.IntN(2)}}
	few := values
	if r.IntN(2) == 0 {
		few = values[:6]
	}
	for _, path := range []string{"a", "b", "c"} {
		switch r.IntN(4) {
		case 0: // missing
		case 1:
			doc = append(doc, bson.E{Key: path, Value: r.IntN(3)})
		default:
			doc = append(doc, bson.E{Key: path, Value: pick(r, few)})
		}
	}
	switch r.IntN(4) {
	case 0:
	case 1:
		doc = append(doc, bson.E{Key: "in", Value: pick(r, values[:25])}) // what has no in.x
	default:
		doc = append(doc, bson.E{Key: "in", Value: bson.D{{Key: "x", Value: pick(r, few)}}})
	}
	return doc
}

func randomSort(r *rand.Rand) bson.D {
	paths := []string{"a", "b", "c", "in.x"}
	r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	paths = paths[:r.IntN(4)]
	if r.IntN(2) == 0 {
		paths = append([]string{"tenant"}, paths...)
	}
	if r.IntN(3) == 0 {
		paths = append(paths, "_id")
	}
	sort := bson.D{}
	for _, p := range paths {
		sort = append(sort, bson.E{Key: p, Value: 1 - 2*r.IntN(2)})
	}
	return sort
}

func turned(keys bson.D) bson.D {
	out := slices.Clone(keys)
	for i := range out {
		out[i].Value = -out[i].Value.(int32)
	}
	return out
}

// deployments calls f for every topology and version.
func deployments(t *testing.T, f func(t *testing.T, client *allium.Client, shard func(coll string))) {
	for _, version := range mongotest.Versions() {
		for name, kind := range map[string]testdeploy.Kind{"standalone": testdeploy.Standalone, "replset": testdeploy.ReplicaSet(1), "sharded": testdeploy.Sharded(3, 2)} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				d := testdeploy.Start(t, kind.With("a server version", mongotest.Version(version)))
				client, err := allium.Open(d.URI())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { client.Close(context.Background()) })
				f(t, client, func(coll string) {
					if name != "sharded" {
						return
					}
					admin := client.Database("admin")
					if _, err := admin.RunCommand(t.Context(), bson.D{{Key: "enableSharding", Value: "app"}}); err != nil {
						t.Fatal(err)
					}
					if _, err := admin.RunCommand(t.Context(), bson.D{{Key: "shardCollection", Value: "app." + coll}, {Key: "key", Value: bson.D{{Key: "_id", Value: "hashed"}}}}); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestPagesAreTheList compares pages, forwards and then back, with what Find returns at once.
func TestPagesAreTheList(t *testing.T) {
	seal := must[*paging.Seal](t)(paging.NewSeal(make([]byte, 32)))
	deployments(t, func(t *testing.T, client *allium.Client, shard func(string)) {
		ctx := t.Context()
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		for round := range 8 {
			name := fmt.Sprint("c", round)
			coll := allium.CollectionOf[bson.Raw](client.Database("app"), name)
			shard(name)
			docs := make([]bson.D, r.IntN(50))
			for i := range docs {
				docs[i] = randomDocument(r, i)
			}
			if len(docs) > 0 {
				must[allium.InsertManyResult](t)(allium.As[bson.D](coll).InsertMany(ctx, docs))
			}
			sort := randomSort(r)
			index := paging.Index(sort)
			if r.IntN(2) == 0 && len(index.Keys.(bson.D)) > 1 {
				index.Keys = turned(index.Keys.(bson.D))
			}
			must[string](t)(coll.CreateIndex(ctx, index))
			filter := pick(r, []any{
				bson.D{}, bson.M{"tenant": 1}, bson.M{"tenant": bson.M{"$eq": 0}, "a": pick(r, values[2:])}, bson.M{"a": nil}, bson.M{"$and": bson.A{bson.M{"tenant": 0}}},
				bson.M{"b": bson.M{"$exists": true}}, bson.M{"a": bson.M{"$gte": 0}, "tenant": bson.M{"$in": bson.A{0, 1}}},
			})
			o := paging.Options{Sort: sort, Index: index}
			if r.IntN(2) == 0 {
				o.Seal = seal
			}
			whole := bson.D{}
			for _, k := range paging.Index(sort).Keys.(bson.D) {
				whole = append(whole, k)
			}
			if n := len(sort); n > 0 && len(whole) == 1 {
				whole = sort // by _id alone, in either direction
			}
			want := must[[]bson.Raw](t)(coll.All(ctx, filter, allium.FindOptions{Sort: whole}))
			about := fmt.Sprintf("seed %d, round %d: sort %v, index %v, filter %v", seed, round, sort, index.Keys, filter)

			var got []bson.Raw
			var page paging.Page[bson.Raw]
			for n := 0; ; n++ {
				o.Limit = 1 + r.Int64N(12)
				page = must[paging.Page[bson.Raw]](t)(paging.Find(ctx, coll, filter, o))
				if (page.Prev == "") != (n == 0) || int64(len(page.Items)) > o.Limit || page.Next != "" && int64(len(page.Items)) < o.Limit {
					t.Fatalf("%s: page %d of %d has %d documents of %d, previous %q, next %q", about, n, o.Limit, len(page.Items), o.Limit, page.Prev, page.Next)
				}
				got = append(got, page.Items...)
				if len(got) > 2*len(want) {
					compare(t, about+": forwards", got, want)
				}
				if o.Token = page.Next; page.Next == "" {
					break
				}
			}
			compare(t, about+": forwards", got, want)
			back := slices.Clone(page.Items)
			for page.Prev != "" {
				o.Limit, o.Token = 1+r.Int64N(12), page.Prev
				page = must[paging.Page[bson.Raw]](t)(paging.Find(ctx, coll, filter, o))
				if page.Next == "" {
					t.Fatalf("%s: a page in front of another one has none behind", about)
				}
				if back = append(slices.Clone(page.Items), back...); len(back) > 2*len(want) {
					compare(t, about+": back", back, want)
				}
			}
			compare(t, about+": back", back, want)
		}
	})
}

func compare(t *testing.T, about string, got, want []bson.Raw) {
	t.Helper()
	ids := func(docs []bson.Raw) (out []string) {
		for _, d := range docs {
			out = append(out, d.String())
		}
		return out
	}
	if g, w := ids(got), ids(want); !slices.Equal(g, w) {
		t.Fatalf("%s: %d documents\n%q\nwant %d\n%q", about, len(g), g, len(w), w)
	}
}

// TestPagesWhileOthersWrite inserts and deletes documents between pages, also the one that the
// next page begins behind. What is there all the time is seen once.
func TestPagesWhileOthersWrite(t *testing.T) {
	deployments(t, func(t *testing.T, client *allium.Client, shard func(string)) {
		ctx := t.Context()
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 2))
		for round := range 3 {
			name := fmt.Sprint("c", round)
			coll := allium.CollectionOf[bson.D](client.Database("app"), name)
			shard(name)
			sort := randomSort(r)
			must[string](t)(coll.CreateIndex(ctx, paging.Index(sort)))
			next := 0
			add := func(stays bool) any {
				doc := append(randomDocument(r, next), bson.E{Key: "stays", Value: stays})
				next++
				return must[allium.InsertOneResult](t)(coll.InsertOne(ctx, doc)).InsertedID
			}
			stay := map[string]bool{}
			var gone []any
			for range 30 {
				stay[fmt.Sprint(add(true))] = true
				gone = append(gone, add(false))
			}
			disturb := func(page paging.Page[bson.D]) {
				for range r.IntN(4) {
					gone = append(gone, add(false))
				}
				doomed := gone[r.IntN(len(gone))]
				for _, d := range page.Items { // among others the last or the first
					if stays, _ := d.Lookup("stays"); stays == false && r.IntN(2) == 0 {
						doomed, _ = d.Lookup("_id")
						must[allium.DeleteResult](t)(coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: doomed}}}}))
					}
				}
				must[allium.DeleteResult](t)(coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: doomed}}}}))
			}
			seen := map[string]int{}
			see := func(page paging.Page[bson.D]) {
				for _, d := range page.Items {
					if stays, _ := d.Lookup("stays"); stays == true {
						id, _ := d.Lookup("_id")
						if seen[fmt.Sprint(id)]++; seen[fmt.Sprint(id)] > 2 {
							t.Fatalf("seed %d, round %d, sort %v: %v is seen again and again", seed, round, sort, id)
						}
					}
				}
			}
			judge := func(way string) {
				for id := range stay {
					if seen[id] != 1 {
						t.Fatalf("seed %d, round %d, sort %v, %s: %s was seen %d times", seed, round, sort, way, id, seen[id])
					}
				}
				clear(seen)
			}
			o := paging.Options{Sort: sort}
			var page paging.Page[bson.D]
			for {
				o.Limit = 1 + r.Int64N(5)
				page = must[paging.Page[bson.D]](t)(paging.Find(ctx, coll, bson.D{}, o))
				see(page)
				if page.Next == "" {
					break
				}
				o.Token = page.Next
				disturb(page)
			}
			judge("forwards")
			see(page)
			for page.Prev != "" {
				disturb(page)
				o.Limit, o.Token = 1+r.Int64N(5), page.Prev
				page = must[paging.Page[bson.D]](t)(paging.Find(ctx, coll, bson.D{}, o))
				see(page)
			}
			judge("back")
		}
	})
}

// TestEmptyPage goes on behind a document until nothing is left there, and back to it.
func TestEmptyPage(t *testing.T) {
	for _, index := range []bson.D{{{Key: "n", Value: 1}, {Key: "_id", Value: 1}}, {{Key: "n", Value: -1}, {Key: "_id", Value: -1}}} {
		coll, ctx := numbers(t, index, 6)
		o := paging.Options{Sort: bson.D{{Key: "n", Value: 1}}, Index: allium.IndexModel{Keys: index}, Limit: 3}
		find := func(token string) paging.Page[number] {
			t.Helper()
			o.Token = token
			return must[paging.Page[number]](t)(paging.Find(ctx, coll, bson.D{}, o))
		}
		first := find("")
		must[allium.DeleteResult](t)(coll.DeleteMany(ctx, bson.M{"n": bson.M{"$gt": 2}}))
		empty := find(first.Next)
		if len(empty.Items) != 0 || empty.Next != "" || empty.Prev == "" {
			t.Fatalf("index %v: the page behind the last document is %v", index, empty)
		}
		if again := find(empty.Prev); fmt.Sprint(again.Items) != fmt.Sprint(first.Items) || again.Prev != "" {
			t.Errorf("index %v: back from an empty page is %v, want %v", index, again, first)
		}
		// The other way round: in front of the first page nothing is left.
		rest := find("")
		must[allium.InsertOneResult](t)(coll.InsertOne(ctx, number{ID: -1, N: -1}))
		second := find(find("").Next) // the last one
		if len(second.Items) != 1 || second.Next != "" {
			t.Fatalf("index %v: the second page is %v", index, second)
		}
		must[allium.DeleteResult](t)(coll.DeleteMany(ctx, bson.M{"n": bson.M{"$lt": 2}}))
		before := find(second.Prev)
		if len(before.Items) != 0 || before.Prev != "" || before.Next == "" {
			t.Fatalf("index %v: the page in front of the first document is %v", index, before)
		}
		if again := find(before.Next); fmt.Sprint(again.Items) != fmt.Sprint(second.Items) || again.Next != "" {
			t.Errorf("index %v: behind an empty page is %v, want %v of %v", index, again, second, rest)
		}
		// The document where an empty page was begun is gone, too.
		must[allium.DeleteResult](t)(coll.DeleteMany(ctx, bson.D{}))
		if none := find(before.Next); len(none.Items) != 0 || none.Next != "" || none.Prev == "" {
			t.Errorf("index %v: a page of nothing is %v", index, none)
		}
		if none := find(empty.Prev); len(none.Items) != 0 || none.Prev != "" || none.Next == "" {
			t.Errorf("index %v: a page of nothing is %v", index, none)
		}
	}
}

type number struct {
	ID int `bson:"_id"`
	N  int
}

// numbers returns a collection of n documents with an index.
func numbers(t *testing.T, index bson.D, n int) (*allium.Collection[number], context.Context) {
	t.Helper()
	d := testdeploy.Start(t, testdeploy.Any)
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	coll := allium.CollectionOf[number](client.Database("app"), "numbers")
	if index != nil {
		must[string](t)(coll.CreateIndex(t.Context(), allium.IndexModel{Keys: index}))
	}
	for i := range n {
		must[allium.InsertOneResult](t)(coll.InsertOne(t.Context(), number{ID: i, N: i}))
	}
	return coll, t.Context()
}

var byN = bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: 1}}

// TestTokens refuses tokens of other queries, and such that were changed, with any bit.
func TestTokens(t *testing.T) {
	coll, ctx := numbers(t, byN, 10)
	seal := must[*paging.Seal](t)(paging.NewSeal(make([]byte, 32)))
	other := must[*paging.Seal](t)(paging.NewSeal(append(make([]byte, 31), 1)))
	both := must[*paging.Seal](t)(paging.NewSeal(append(make([]byte, 31), 1), make([]byte, 32)))
	filter := bson.M{"n": bson.M{"$gte": 0, "$lt": 100}, "_id": bson.M{"$exists": true}}
	base := paging.Options{Sort: bson.D{{Key: "n", Value: 1}}, Limit: 2}
	sealed := base
	sealed.Seal = seal
	plain := must[paging.Page[number]](t)(paging.Find(ctx, coll, filter, base)).Next
	closed := must[paging.Page[number]](t)(paging.Find(ctx, coll, filter, sealed)).Next

	for _, c := range []struct {
		name   string
		filter any
		change func(o *paging.Options)
		token  string
		want   error
	}{
		{"the same", filter, func(*paging.Options) {}, plain, nil},
		{"another limit, projection and comment", filter, func(o *paging.Options) { o.Limit, o.Projection, o.Comment = 5, bson.M{"n": 1}, "x" }, plain, nil},
		{"a filter in another order", bson.D{{Key: "_id", Value: bson.M{"$exists": true}}, {Key: "n", Value: bson.D{{Key: "$lt", Value: 100}, {Key: "$gte", Value: 0}}}}, func(*paging.Options) {}, plain, nil},
		{"sealed", filter, func(o *paging.Options) { o.Seal = seal }, closed, nil},
		{"sealed with an old key", filter, func(o *paging.Options) { o.Seal = both }, closed, nil},
		{"another filter", bson.D{}, func(*paging.Options) {}, plain, paging.ErrOtherQuery},
		{"another value", bson.M{"n": bson.M{"$gte": 1, "$lt": 100}, "_id": bson.M{"$exists": true}}, func(*paging.Options) {}, plain, paging.ErrOtherQuery},
		{"another sort", filter, func(o *paging.Options) { o.Sort = bson.D{{Key: "n", Value: -1}} }, plain, paging.ErrOtherQuery},
		{"another collation", filter, func(o *paging.Options) { o.Collation = &allium.Collation{Locale: "de"} }, plain, paging.ErrOtherQuery},
		{"sealed, another filter", bson.D{}, func(o *paging.Options) { o.Seal = seal }, closed, paging.ErrOtherQuery},
		{"sealed with another key", filter, func(o *paging.Options) { o.Seal = other }, closed, paging.ErrToken},
		{"sealed, and no seal", filter, func(*paging.Options) {}, closed, paging.ErrToken},
		{"not sealed", filter, func(o *paging.Options) { o.Seal = seal }, plain, paging.ErrToken},
		{"text", filter, func(*paging.Options) {}, "next", paging.ErrToken},
		{"a line", filter, func(*paging.Options) {}, plain + "\n", paging.ErrToken},
		{"long", filter, func(*paging.Options) {}, string(make([]byte, 1<<20)), paging.ErrToken},
	} {
		o := base
		c.change(&o)
		o.Token = c.token
		page, err := paging.Find(ctx, coll, c.filter, o)
		if c.want == nil && (err != nil || len(page.Items) == 0 || page.Items[0].N != 2) || c.want != nil && (!errors.Is(err, c.want) || !errors.Is(err, paging.ErrToken)) {
			t.Errorf("%s: %v, %v, want %v", c.name, page, err, c.want)
		}
		if c.want == paging.ErrToken && errors.Is(err, paging.ErrOtherQuery) {
			t.Errorf("%s: %v says that it is another query's", c.name, err)
		}
	}
	if _, err := paging.Find(ctx, allium.As[number](coll.Database().Collection("others")), filter, base, paging.Options{Token: plain}); !errors.Is(err, paging.ErrOtherQuery) {
		t.Errorf("another collection: %v", err)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range closed {
		changed := []byte(closed)
		for changed[i] == closed[i] {
			changed[i] = alphabet[rand.IntN(len(alphabet))]
		}
		o := sealed
		o.Token = string(changed)
		if _, err := paging.Find(ctx, coll, filter, o); !errors.Is(err, paging.ErrToken) {
			t.Errorf("a token with another character %d: %v", i, err)
		}
		o.Token = closed[:i]
		if _, err := paging.Find(ctx, coll, filter, o); i > 0 && !errors.Is(err, paging.ErrToken) {
			t.Errorf("%d characters of a token: %v", i, err)
		}
	}
	if once, twice := closed, must[paging.Page[number]](t)(paging.Find(ctx, coll, filter, sealed)).Next; once == twice {
		t.Error("a sealed token is the same each time")
	}
	if len(plain) > 100 || len(closed) > 150 {
		t.Errorf("tokens of two numbers have %d and %d bytes", len(plain), len(closed))
	}
	for _, keys := range [][][]byte{nil, {make([]byte, 16)}, {make([]byte, 32), nil}} {
		if _, err := paging.NewSeal(keys...); err == nil {
			t.Errorf("a seal with %d keys is made", len(keys))
		}
	}
}

// TestForeignPosition begins with tokens that somebody has made for other places of the same list.
func TestForeignPosition(t *testing.T) {
	coll, ctx := numbers(t, byN, 10)
	o := paging.Options{Sort: byN, Limit: 3}
	// The first key is bound to 5: a token cannot lead to 7.
	_ = must[paging.Page[number]](t)(paging.Find(ctx, coll, bson.M{"n": 5}, o))
	forged := paging.Forge(must[paging.Page[number]](t)(paging.Find(ctx, coll, bson.D{}, o)).Next, coll, bson.M{"n": 5}, o)
	for name, token := range forged {
		o.Token = token
		if page, err := paging.Find(ctx, coll, bson.M{"n": 5}, o); !errors.Is(err, paging.ErrToken) {
			t.Errorf("%s: %v, %v", name, page, err)
		}
	}
	if len(forged) < 5 {
		t.Errorf("%d forged tokens", len(forged))
	}
}

// TestRefused checks what is wrong before or while a page is read.
func TestRefused(t *testing.T) {
	coll, ctx := numbers(t, byN, 3)
	sort := bson.D{{Key: "n", Value: 1}}
	for _, c := range []struct {
		name string
		o    paging.Options
		want string
	}{
		{"no index", paging.Options{Sort: bson.D{{Key: "m", Value: -1}}}, `{"m":-1,"_id":-1}`},
		{"mixed directions, and the index has one", paging.Options{Sort: bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: -1}}}, `create an index with the keys {"n":1,"_id":-1}`},
		{"a map", paging.Options{Sort: bson.M{"n": 1, "m": 1}}, "no order"},
		{"a direction", paging.Options{Sort: bson.D{{Key: "n", Value: 2}}}, "want 1 or -1"},
		{"a score", paging.Options{Sort: bson.D{{Key: "n", Value: bson.M{"$meta": "textScore"}}}}, "want 1 or -1"},
		{"twice", paging.Options{Sort: bson.D{{Key: "n", Value: 1}, {Key: "n", Value: -1}}}, "twice"},
		{"no field", paging.Options{Sort: bson.D{{Key: "$n", Value: 1}}}, "want a field"},
		{"no document", paging.Options{Sort: 1}, "want a document"},
		{"another index", paging.Options{Sort: sort, Index: allium.IndexModel{Keys: bson.D{{Key: "m", Value: 1}}}}, "another sort"},
		{"an index without _id in the middle", paging.Options{Sort: sort, Index: allium.IndexModel{Keys: bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: -1}}}}, "another sort"},
		{"limit", paging.Options{Sort: sort, Limit: 1001}, "want 1 to 1000"},
		{"negative limit", paging.Options{Sort: sort, Limit: -1}, "want 1 to 1000"},
		{"without _id", paging.Options{Sort: sort, Projection: bson.M{"_id": 0}}, `changes the sort key "_id"`},
		{"without a sort key", paging.Options{Sort: sort, Projection: bson.M{"n": 0}}, `changes the sort key "n"`},
		{"a computed sort key", paging.Options{Sort: sort, Projection: bson.M{"n": "$m"}}, `changes the sort key "n"`},
		{"a part of a sort key", paging.Options{Sort: sort, Projection: bson.M{"n.x": 1}}, `changes the sort key "n"`},
	} {
		_, err := paging.Find(ctx, coll, bson.D{}, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "page of numbers: ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if errors.Is(err, paging.ErrNoIndex) != strings.Contains(c.want, `"_id":-1`) {
			t.Errorf("%s: %v: ErrNoIndex %v", c.name, err, errors.Is(err, paging.ErrNoIndex))
		}
	}
	if _, err := paging.Find(ctx, coll, nil); err == nil {
		t.Error("a nil filter is taken")
	}
}

// TestArrays refuses documents that have several places, wherever they are met.
func TestArrays(t *testing.T) {
	for _, c := range []struct {
		path string
		doc  bson.D
	}{
		{"tags", bson.D{{Key: "_id", Value: 7}, {Key: "tags", Value: bson.A{1, 9}}}},
		{"tags", bson.D{{Key: "_id", Value: 7}, {Key: "tags", Value: bson.A{}}}},
		{"in.x", bson.D{{Key: "_id", Value: 7}, {Key: "in", Value: bson.A{bson.M{"x": 1}}}}},
		{"in.0", bson.D{{Key: "_id", Value: 7}, {Key: "in", Value: bson.A{3}}}},
	} {
		numbers, ctx := numbers(t, nil, 0)
		coll := allium.As[bson.D](numbers)
		sort := bson.D{{Key: c.path, Value: 1}}
		must[string](t)(coll.CreateIndex(ctx, paging.Index(sort)))
		must[allium.InsertManyResult](t)(coll.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 1}}, c.doc}))
		_, err := paging.Find(ctx, coll, bson.D{}, paging.Options{Sort: sort})
		if !errors.Is(err, paging.ErrArray) || !strings.Contains(err.Error(), fmt.Sprintf("%q", c.path)) {
			t.Errorf("%s of %v: %v", c.path, c.doc, err)
		}
		field, _, _ := strings.Cut(c.path, ".")
		page, err := paging.Find(ctx, coll, bson.M{field: bson.M{"$not": bson.M{"$type": "array"}}}, paging.Options{Sort: sort})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%s without arrays: %v, %v", c.path, page, err)
		}
	}
}

// TestCollation reads pages in the order of a collation, of which the index, its name and the
// collection's own are tried.
func TestCollation(t *testing.T) {
	plain, ctx := numbers(t, nil, 0)
	db := plain.Database()
	german := &allium.Collation{Locale: "de", Strength: 2}
	names := []string{"zoo", "Ära", "ärger", "arm", "ARM", "Zoo", "Bär", "bar", "Bar", ""}
	sort := bson.D{{Key: "name", Value: 1}}
	for _, c := range []struct {
		name    string
		own     bool // the collection has the collation
		textIDs bool
		fails   bool
	}{{"of the query", false, false, false}, {"of the collection", true, true, false}, {"of the query, with texts as _id", false, true, true}} {
		coll := allium.CollectionOf[bson.Raw](db, "c"+c.name)
		create := allium.CreateCollectionOptions{}
		if c.own {
			create.Collation = german
		}
		if err := db.CreateCollection(ctx, coll.Name(), create); err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			var id any = i
			if c.textIDs {
				id = fmt.Sprint("id", i)
			}
			must[allium.InsertOneResult](t)(allium.As[bson.D](coll).InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "name", Value: name}}))
		}
		index := paging.Index(sort)
		index.Name = "german"
		o := paging.Options{Sort: sort, Limit: 3}
		find := allium.FindOptions{Sort: index.Keys}
		if !c.own {
			must[string](t)(coll.CreateIndex(ctx, paging.Index(sort))) // another one with these keys
			o.Collation, index.Collation, find.Collation = german, german, german
		}
		must[string](t)(coll.CreateIndex(ctx, index))
		o.Index = index
		want := must[[]bson.Raw](t)(coll.All(ctx, bson.D{}, find))
		var got []bson.Raw
		for {
			page, err := paging.Find(ctx, coll, bson.D{}, o)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), "create the collection with the collation") {
					t.Errorf("%s: %v", c.name, err)
				}
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			got = append(got, page.Items...)
			if o.Token = page.Next; o.Token == "" || len(got) > len(want) {
				compare(t, c.name, got, want)
				break
			}
		}
	}
}

// TestProjection reads tokens from documents of which the program sees a part.
func TestProjection(t *testing.T) {
	base, ctx := numbers(t, nil, 0)
	coll := allium.As[bson.D](base)
	for i := range 5 {
		must[allium.InsertOneResult](t)(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: bson.M{"b": i}}, {Key: "c", Value: i}, {Key: "tags", Value: bson.A{1, 2}}}))
	}
	sort := bson.D{{Key: "a.b", Value: -1}, {Key: "c", Value: 1}}
	must[string](t)(coll.CreateIndex(ctx, paging.Index(sort)))
	for _, c := range []struct {
		projection any
		want       []string // keys of the last document
	}{
		{nil, []string{"_id", "a", "c", "tags"}},
		{bson.D{{Key: "tags", Value: 1}}, []string{"_id", "a", "c", "tags"}},
		{bson.D{{Key: "a", Value: true}}, []string{"_id", "a", "c"}},
		{bson.D{{Key: "_id", Value: 1}}, []string{"_id", "a", "c"}},
		{bson.D{{Key: "tags", Value: 0}}, []string{"_id", "a", "c"}},
		{bson.D{{Key: "tags", Value: bson.M{"$slice": 1}}}, []string{"_id", "a", "c", "tags"}},
		{bson.D{{Key: "tags", Value: bson.M{"$elemMatch": bson.M{"$eq": 1}}}}, []string{"_id", "a", "c", "tags"}},
		{bson.D{{Key: "sum", Value: bson.M{"$add": bson.A{"$c", 1}}}}, []string{"_id", "a", "c", "sum"}},
	} {
		o := paging.Options{Sort: sort, Limit: 2, Projection: c.projection}
		var last bson.D
		n := 0
		for {
			page, err := paging.Find(ctx, coll, bson.D{}, o)
			if err != nil {
				t.Fatalf("%v: %v", c.projection, err)
			}
			n += len(page.Items)
			last = page.Items[len(page.Items)-1]
			if o.Token = page.Next; o.Token == "" {
				break
			}
		}
		var keys []string
		for _, e := range last {
			keys = append(keys, e.Key)
		}
		slices.Sort(keys)
		if n != 5 || !slices.Equal(keys, c.want) {
			t.Errorf("%v: %d documents, the last with %v, want 5 with %v", c.projection, n, keys, c.want)
		}
	}
}

// TestUndecodable leaves documents out that do not decode, and goes on behind them.
func TestUndecodable(t *testing.T) {
	coll, ctx := numbers(t, byN, 4)
	must[allium.InsertOneResult](t)(allium.As[bson.D](coll).InsertOne(ctx, bson.D{{Key: "_id", Value: 9}, {Key: "n", Value: "nine"}}))
	o := paging.Options{Sort: byN, Limit: 5}
	page, err := paging.Find(ctx, coll, bson.D{}, o)
	if odd := documents(err); len(page.Items) != 4 || len(odd) != 1 || page.Next != "" {
		t.Errorf("%v, %v", page, err)
	}
	o.Limit = 1
	var errs, got int
	for {
		page, err := paging.Find(ctx, coll, bson.D{}, o)
		got += len(page.Items)
		errs += len(documents(err))
		if err != nil && documents(err) == nil {
			t.Fatal(err)
		}
		if o.Token = page.Next; o.Token == "" {
			break
		}
	}
	if got != 4 || errs != 1 {
		t.Errorf("pages of one have %d documents and %d that do not decode", got, errs)
	}
}

// documents returns the documents that do not decode, if that is all that is wrong.
func documents(err error) mongoerr.DecodeErrors {
	odd, _ := err.(mongoerr.DecodeErrors)
	return odd
}

// TestLongKeys refuses to make tokens that no URL holds.
func TestLongKeys(t *testing.T) {
	base, ctx := numbers(t, byN, 1)
	coll := allium.As[bson.D](base)
	must[allium.InsertOneResult](t)(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 9}, {Key: "n", Value: string(make([]byte, 20_000))}}))
	must[allium.InsertOneResult](t)(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 10}, {Key: "n", Value: true}}))
	if _, err := paging.Find(ctx, coll, bson.D{}, paging.Options{Sort: byN, Limit: 2}); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a key of 20 kB: %v", err)
	}
	if page, err := paging.Find(ctx, coll, bson.D{}, paging.Options{Sort: byN, Limit: 1}); err != nil || page.Next == "" {
		t.Errorf("in front of it: %v, %v", page, err)
	}
}

// TestTimeout bounds the operation.
func TestTimeout(t *testing.T) {
	coll, ctx := numbers(t, byN, 1)
	if _, err := paging.Find(ctx, coll, bson.D{}, paging.Options{Sort: byN, Timeout: new(-time.Second)}); err == nil {
		t.Error("a negative timeout is taken")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := paging.Find(ended, coll, bson.D{}, paging.Options{Sort: byN}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// TestPageReadsItsPart explains the commands of each page: they read as many keys of the index as
// the page has documents, not more, also where the part of the index ends that the filter means.
func TestPageReadsItsPart(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	var sent []bson.Raw
	client, err := allium.Open(d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
		if e.CommandName == "find" {
			sent = append(sent, bytes.Clone(e.Command))
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	defer client.Close(ctx)
	db := client.Database("app")
	coll := allium.CollectionOf[bson.D](db, "orders")
	var docs []bson.D
	for i := range 300 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "tenant", Value: i % 3}, {Key: "n", Value: i}})
	}
	must[allium.InsertManyResult](t)(coll.InsertMany(ctx, docs))
	sort := bson.D{{Key: "tenant", Value: 1}, {Key: "n", Value: -1}}
	for _, index := range []allium.IndexModel{paging.Index(sort), {Keys: turned(paging.Index(sort).Keys.(bson.D))}} {
		must[string](t)(coll.CreateIndex(ctx, index))
		o := paging.Options{Sort: sort, Index: index, Limit: 30}
		pages := 0
		for _, back := range []bool{false, true} {
			for first := true; first || o.Token != ""; first = false {
				sent = sent[:0]
				page := must[paging.Page[bson.D]](t)(paging.Find(ctx, coll, bson.M{"tenant": 1}, o))
				pages++
				find := bson.D{}
				for k, v := range sent[0].All() {
					if k != "lsid" && k != "$db" && k != "$clusterTime" {
						find = append(find, bson.E{Key: k, Value: v})
					}
				}
				plan := must[bson.Raw](t)(db.RunCommand(ctx, bson.D{{Key: "explain", Value: find}, {Key: "verbosity", Value: "executionStats"}}))
				if n, _ := plan.Lookup("executionStats", "totalKeysExamined").AsInt64(); len(sent) != 1 || n > o.Limit+2 || n < int64(len(page.Items)) {
					t.Errorf("index %v: %d commands; %v reads %d keys for %d documents", index.Keys, len(sent), find, n, len(page.Items))
				}
				if o.Token = page.Next; back {
					o.Token = page.Prev
				} else if page.Next == "" {
					o.Token = page.Prev
					break
				}
			}
		}
		if pages != 4+3 {
			t.Errorf("index %v: %d pages, want 7", index.Keys, pages)
		}
	}
}
