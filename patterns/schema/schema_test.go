package schema_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/collation"
	"allium/mongotest"
	"allium/patterns/schema"
)

// deployments are what schemas are applied to.
var deployments = []struct {
	name string
	opts []mongotest.Option
}{
	{"standalone", []mongotest.Option{mongotest.Standalone()}},
	{"replica set", []mongotest.Option{mongotest.ReplicaSet(2)}},
	{"sharded", []mongotest.Option{mongotest.Sharded(2, 2)}},
}

var servers = []string{"4.4", "5.0", "6.0", "7.0", "8.0", "9.0"}

// start starts a deployment and returns a database of it.
func start(t testing.TB, opts ...mongotest.Option) (*mongotest.Deployment, *allium.Database) {
	t.Helper()
	d := mongotest.Start(t, append(opts, mongotest.InMemory())...)
	return d, connect(t, d)
}

func connect(t testing.TB, d *mongotest.Deployment) *allium.Database {
	t.Helper()
	c, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c.Database("app")
}

// drawer draws schemas that a server of its version takes.
type drawer struct {
	*rand.Rand
	major int
}

func pick[T any](r drawer, list ...T) T { return list[r.IntN(len(list))] }

func (r drawer) yes(of int) bool { return r.IntN(of) == 0 }

func (r drawer) collation() *allium.Collation {
	c := &allium.Collation{Locale: pick(r, "en", "de", "fr_CA", "da", "th", "vi", "simple")}
	if c.Locale == "simple" {
		return c
	}
	if r.yes(2) {
		c.Strength = pick(r, collation.Primary, collation.Secondary, collation.Tertiary)
	}
	if c.Locale == "fr_CA" {
		c.Strength = max(c.Strength, 2)
	}
	if c.Locale == "da" && c.Strength != 0 {
		c.Strength = collation.Tertiary
	}
	if r.yes(4) {
		c.NumericOrdering = new(r.yes(2))
	}
	return c
}

func (r drawer) validator() any {
	return pick[any](r, bson.D{{Key: "a", Value: bson.D{{Key: "$gte", Value: pick[any](r, 0, int64(5), 1.5)}}}},
		bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{{Key: "b", Value: bson.D{{Key: "bsonType", Value: bson.A{"string", "null"}}, {Key: "maxLength", Value: 3 + r.IntN(5)}}}}}}}},
		bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "c", Value: bson.D{{Key: "$in", Value: bson.A{"x", "y", nil, bson.NewRegex("^a", "i")}}}}}, bson.D{{Key: "d", Value: bson.D{{Key: "$exists", Value: r.yes(2)}}}}}}})
}

// index draws an index whose keys begin with a field of its own, so that no two conflict.
func (r drawer) index(i int) allium.IndexModel {
	f := fmt.Sprintf("f%d", i)
	m := allium.IndexModel{}
	second := func() bson.D {
		d := bson.D{{Key: f, Value: pick[any](r, 1, -1, 1.0, int64(1))}}
		if r.yes(2) {
			d = append(d, bson.E{Key: "x.y", Value: pick(r, 1, -1)})
		}
		return d
	}
	kind := r.IntN(9)
	if i > 0 && kind == 5 {
		kind = 0 // one text index in a collection
	}
	switch kind {
	default:
		m.Keys = second()
		switch m.Unique = r.yes(2); {
		case r.yes(3):
			m.Sparse = true
		case r.yes(2):
			m.PartialFilter = bson.D{{Key: "p", Value: bson.D{{Key: "$gt", Value: r.IntN(10)}}}, {Key: "q", Value: bson.D{{Key: "$exists", Value: true}}}}
		}
		if r.yes(3) {
			m.Collation = r.collation()
		}
	case 3:
		m.Keys = bson.D{{Key: f, Value: 1}}
		m.ExpireAfter = new(time.Duration(r.IntN(100)) * time.Hour)
	case 4:
		m.Keys = bson.D{{Key: "$**", Value: 1}}
		if r.yes(2) {
			m.WildcardProjection = bson.D{{Key: "a", Value: 1}, {Key: "b.c", Value: pick[any](r, 1, true)}}
		}
		m.Name = "w" + f
		if i > 0 || r.yes(2) {
			m.Keys, m.WildcardProjection, m.Name = bson.D{{Key: f + ".$**", Value: 1}}, nil, ""
		}
	case 5:
		m.Keys = bson.D{{Key: "pre", Value: 1}, {Key: "title", Value: "text"}, {Key: "body", Value: "text"}, {Key: "post", Value: -1}}
		m.Collation = &allium.Collation{Locale: "simple"}
		if r.yes(2) {
			m.Weights = bson.D{{Key: "title", Value: 10}, {Key: "more", Value: 3}}
			m.DefaultLanguage = pick(r, "german", "english", "none")
			m.LanguageOverride = pick(r, "", "lang")
		}
	case 6:
		m.Keys = bson.D{{Key: f, Value: "2dsphere"}, {Key: "k", Value: 1}}
	case 7:
		m.Keys = bson.D{{Key: f, Value: "hashed"}}
	case 8:
		m.Keys = bson.D{{Key: f, Value: "2d"}}
		m.Collation = &allium.Collation{Locale: "simple"}
		if r.yes(2) {
			m.Bits, m.Min, m.Max = 20, new(-90.0), new(90.5)
		}
	}
	if r.yes(4) && m.Name == "" {
		m.Name = "own" + f
	}
	m.Hidden = r.yes(5)
	return m
}

// schema draws a schema.
func (r drawer) schema() (s schema.Schema) {
	for i := range 1 + r.IntN(4) {
		c := schema.Collection{Name: fmt.Sprintf("c%d", i)}
		o := &c.Options
		indexes := true
		switch k := r.IntN(8); {
		case k == 0:
			o.Capped, o.SizeInBytes, o.MaxDocuments = true, 4096*int64(1+r.IntN(5)), int64(r.IntN(3)*100)
		case k == 1 && r.major >= 5:
			series := bson.D{{Key: "timeField", Value: "t"}}
			if r.yes(2) {
				series = append(series, bson.E{Key: "metaField", Value: "m"})
			}
			if r.yes(2) {
				series = append(series, bson.E{Key: "granularity", Value: pick(r, "seconds", "minutes", "hours")})
			} else if r.major >= 7 && r.yes(2) {
				series = append(series, bson.E{Key: "bucketMaxSpanSeconds", Value: 120}, bson.E{Key: "bucketRoundingSeconds", Value: 120})
			}
			o.TimeSeries, indexes = series, false
			if r.yes(2) {
				o.ExpireAfter = new(time.Duration(1+r.IntN(50)) * time.Hour)
			}
		case k == 2 && r.major >= 6:
			o.ClusteredIndex = bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "unique", Value: true}}
			if r.yes(2) {
				o.ExpireAfter = new(time.Duration(1+r.IntN(50)) * time.Hour)
			}
		}
		if o.TimeSeries == nil {
			if r.yes(2) {
				o.Validator = r.validator()
				o.ValidationLevel = pick[allium.ValidationLevel](r, "", "strict", "moderate", "off")
				o.ValidationAction = pick[allium.ValidationAction](r, "", "warn", "error")
			}
			if r.major >= 6 && r.yes(3) {
				o.PreAndPostImages = new(r.yes(2))
			}
		}
		if r.yes(3) {
			o.Collation = r.collation()
		}
		if indexes {
			for i := range r.IntN(6) {
				c.Indexes = append(c.Indexes, r.index(i))
			}
		} else if r.yes(2) {
			c.Indexes = []allium.IndexModel{{Keys: bson.D{{Key: "t", Value: -1}}}}
		}
		s.Collections = append(s.Collections, c)
	}
	for i := range r.IntN(3) {
		v := schema.Collection{Name: fmt.Sprintf("a_view%d", i)}
		v.Options.ViewOn = s.Collections[r.IntN(len(s.Collections))].Name
		if on := s.Collections[len(s.Collections)-1]; on.Options.ViewOn != "" {
			v.Options.ViewOn = on.Name
		}
		for _, c := range s.Collections {
			if c.Name == v.Options.ViewOn {
				v.Options.Collation = c.Options.Collation
			}
		}
		v.Options.Pipeline = pick[any](r, nil, bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "a", Value: r.IntN(10)}}}}}, []bson.D{{{Key: "$project", Value: bson.D{{Key: "a", Value: 1}}}}})
		s.Collections = append(s.Collections, v)
	}
	return s
}

func dump(t *testing.T, s schema.Schema) string {
	t.Helper()
	var b bytes.Buffer
	if err := schema.WriteJSON(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestApplyTwice applies drawn schemas to every kind of deployment at every version: the second
// time nothing differs and nothing is written. What is read back is the schema, as Go values and as
// JSON. Then another schema takes its place, first without dropping anything and then with.
func TestApplyTwice(t *testing.T) {
	cases := 12
	if testing.Short() {
		cases = 3
	}
	for _, kind := range deployments {
		for _, version := range servers {
			t.Run(kind.name+" "+version, func(t *testing.T) {
				t.Parallel()
				d, db := start(t, append(slices.Clone(kind.opts), mongotest.Version(version))...)
				var writes atomic.Int64
				var last atomic.Value
				d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
					switch c.Name {
					case "create", "createIndexes", "collMod", "dropIndexes", "drop", "insert", "update", "delete", "findAndModify":
						if c.DB == "app" {
							writes.Add(1)
							last.Store(c.Body.String())
						}
					}
					return nil, nil
				})
				for seed := range uint64(cases) {
					r := drawer{rand.New(rand.NewPCG(seed, 7)), int(version[0] - '0')}
					if err := db.Drop(t.Context()); err != nil {
						t.Fatal(err)
					}
					first, second := r.schema(), r.schema()
					settle := func(s schema.Schema, o schema.ApplyOptions) {
						t.Helper()
						if _, err := schema.Apply(t.Context(), db, s, o); err != nil {
							t.Fatalf("seed %d: %v\n%s", seed, err, dump(t, s))
						}
						before := writes.Load()
						if made, err := schema.Apply(t.Context(), db, s, o); err != nil || len(made) > 0 || writes.Load() != before {
							t.Errorf("seed %d: the second time %d commands write (%v), %v makes\n%v%s", seed, writes.Load()-before, last.Load(), err, made, dump(t, s))
						}
					}
					settle(first, schema.ApplyOptions{})
					if changes, err := schema.Plan(t.Context(), db, first, schema.PlanOptions{Whole: true}); err != nil || changes != nil {
						t.Fatalf("seed %d: after Apply %v differs, %v\n%s", seed, changes, err, dump(t, first))
					}
					live, err := schema.Read(t.Context(), db)
					if err != nil {
						t.Fatal(err)
					}
					back, err := schema.ReadJSON(strings.NewReader(dump(t, live)))
					if err != nil {
						t.Fatal(err)
					}
					for what, pair := range map[string][2]schema.Schema{"declared and read": {first, live}, "read and declared": {live, first}, "JSON": {back, live}} {
						if diff, err := schema.Diff(pair[0], pair[1], schema.DiffOptions{Whole: true, Server: version}); err != nil || diff != nil {
							t.Errorf("seed %d: %s: %v, %v\n%s", seed, what, diff, err, dump(t, first))
						}
					}
					names := func() (all []string) {
						live, err := schema.Read(t.Context(), db)
						if err != nil {
							t.Fatal(err)
						}
						for _, c := range live.Collections {
							all = append(all, c.Name)
							for _, x := range c.Indexes {
								all = append(all, c.Name+"."+x.Name)
							}
						}
						return all
					}
					before := names()
					_, _ = schema.Apply(t.Context(), db, second) // some of it may be impossible beside the first
					for _, n := range before {
						if !slices.Contains(names(), n) {
							t.Errorf("seed %d: %s is gone, and nobody wanted it dropped", seed, n)
						}
					}
					_, err = schema.Apply(t.Context(), db, second, schema.ApplyOptions{Drop: true, Whole: true})
					if err != nil {
						t.Errorf("seed %d: %v\nfirst %ssecond %s", seed, err, dump(t, first), dump(t, second))
					}
					changes, err := schema.Plan(t.Context(), db, second, schema.PlanOptions{Whole: true})
					for _, c := range changes {
						if c.Action != schema.Impossible {
							t.Errorf("seed %d: after Drop there is still %v", seed, c)
						}
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestAtOnce starts many copies of a service that apply the same schema, which rebuilds an index,
// while servers step down: all succeed, and the index is built once.
func TestAtOnce(t *testing.T) {
	d, db := start(t, mongotest.ReplicaSet(3))
	old := schema.Schema{Collections: []schema.Collection{{Name: "c", Indexes: []allium.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}}}}}}
	if _, err := schema.Apply(t.Context(), db, old); err != nil {
		t.Fatal(err)
	}
	s := schema.Schema{Collections: []schema.Collection{
		{Name: "c", Indexes: []allium.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}, Sparse: true}, {Keys: bson.D{{Key: "b", Value: 1}}, Unique: true}}},
		{Name: "v", Options: allium.CreateCollectionOptions{ViewOn: "c"}},
		{Name: "l", Options: allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}},
	}}
	var mu sync.Mutex
	made := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		db := connect(t, d)
		wg.Go(func() {
			changes, err := schema.Apply(t.Context(), db, s, schema.ApplyOptions{Drop: true})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, c := range changes {
				made[c.Name()]++
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"c.a_1", "c.b_1", "v", "l"} {
		if made[name] != 1 {
			t.Errorf("%s was made %d times", name, made[name])
		}
	}
	if changes, err := schema.Plan(t.Context(), db, s); err != nil || changes != nil {
		t.Errorf("%v, %v", changes, err)
	}
}
