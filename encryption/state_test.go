package encryption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/internal/norace"
	"allium/mongotest"
)

// record is what the tests write: fields that are nil are left out.
type record struct {
	id   int
	name *string
	age  *int32
	city *string
	z    int // not encrypted
}

func (r *record) document() bson.D {
	d := bson.D{{Key: "_id", Value: r.id}}
	if r.name != nil {
		d = append(d, bson.E{Key: "name", Value: *r.name})
	}
	if r.age != nil {
		d = append(d, bson.E{Key: "age", Value: *r.age})
	}
	if r.city != nil {
		d = append(d, bson.E{Key: "at", Value: bson.D{{Key: "city", Value: *r.city}}})
	}
	return append(d, bson.E{Key: "z", Value: r.z})
}

func anyOf[T any](r *rand.Rand, list []T) *T {
	if r.IntN(4) == 0 {
		return nil
	}
	return &list[r.IntN(len(list))]
}

func newRecord(r *rand.Rand, id int) *record {
	return &record{id: id, name: anyOf(r, inspectedNames), age: anyOf(r, inspectedAges), city: anyOf(r, inspectedCities), z: r.IntN(5)}
}

// model has the documents of db.coll, and how often each value was written.
type model struct {
	docs    map[int]*record
	written map[string]int
}

func (m *model) note(path string, v any) { m.written[fmt.Sprint(path, " ", v)]++ }

// wrote counts the values of a document that is inserted, or takes the place of another one.
func (m *model) wrote(r *record) {
	if r.name != nil {
		m.note("name", *r.name)
	}
	if r.age != nil {
		m.note("age", *r.age)
	}
	if r.city != nil {
		m.note("at.city", *r.city)
	}
}

// find compares what queries find with the model: all names, ranges and parts of cities.
func (m *model) find(t *testing.T, coll *allium.UntypedCollection, what string) {
	t.Helper()
	compare := func(filter bson.D, has func(r *record) bool) {
		t.Helper()
		var want []int
		for id, r := range m.docs {
			if has(r) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		if got := idsOf(t, coll, filter); !slices.Equal(got, want) {
			t.Errorf("%s: %s finds %v, want %v", what, filter, got, want)
		}
	}
	for _, name := range inspectedNames {
		compare(bson.D{{Key: "name", Value: name}}, func(r *record) bool { return r.name != nil && *r.name == name })
	}
	compare(bson.D{{Key: "name", Value: bson.D{{Key: "$ne", Value: "ann"}}}}, func(r *record) bool { return r.name == nil || *r.name != "ann" })
	for _, c := range [][2]int32{{0, 0}, {1, 90}, {31, 127}, {2, 29}} {
		compare(bson.D{{Key: "age", Value: bson.D{{Key: "$gte", Value: c[0]}, {Key: "$lte", Value: c[1]}}}}, func(r *record) bool { return r.age != nil && *r.age >= c[0] && *r.age <= c[1] })
	}
	compare(bson.D{{Key: "age", Value: int32(30)}}, func(r *record) bool { return r.age != nil && *r.age == 30 })
	compare(bson.D{{Key: "age", Value: bson.D{{Key: "$gt", Value: int32(30)}}}}, func(r *record) bool { return r.age != nil && *r.age > 30 })
	for _, prefix := range []string{"ro", "rom", "rome", "os", "ulm"} {
		compare(bson.D{{Key: "$expr", Value: bson.D{{Key: "$encStrStartsWith", Value: bson.D{{Key: "input", Value: "$at.city"}, {Key: "prefix", Value: prefix}}}}}},
			func(r *record) bool { return r.city != nil && strings.HasPrefix(strings.ToLower(*r.city), prefix) })
	}
}

// check compares the state collections with the model.
func (m *model) check(t *testing.T, x *inspector) {
	t.Helper()
	total := x.check()
	values := 0
	compare := func(path string, v any) {
		values++
		if got, want := x.counted(total, path, v), m.written[fmt.Sprint(path, " ", v)]; got != want {
			t.Errorf("%s %v was counted %d times, and written %d times", path, v, got, want)
		}
	}
	for _, v := range inspectedNames {
		compare("name", v)
	}
	for _, v := range inspectedAges {
		compare("age", v)
	}
	for _, v := range inspectedCities {
		compare("at.city", v)
	}
	stored := must(must(allium.CollectionOf[bson.Raw](x.p.plain.Database("db"), "coll").Find(t.Context(), bson.D{})).All(t.Context()))
	if len(stored) != len(m.docs) {
		t.Errorf("%d documents, want %d", len(stored), len(m.docs))
	}
}

// TestSafeContent does everything to a collection with Queryable Encryption that can be done
// through the driver, in any order. After every few steps the tags of every document are those of
// its values and of nothing else, the state collections count every value that was written, once,
// and queries find what they should.
func TestSafeContent(t *testing.T) {
	norace.Skip(t, "it is one goroutine that encrypts much")
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := startProse(t, nil, mongotest.Version("9.0"))
			x := newInspector(t, p)
			client, _ := p.auto(encryption.AutoOptions{}, allium.ClientOptions{})
			m := &model{docs: map[int]*record{}, written: map[string]int{}}
			s := &steps{T: t, Rand: rand.New(rand.NewPCG(seed, 7)), model: m, client: client, coll: client.Database("db").Collection("coll"), done: map[string]int{}}
			for i := range 60 {
				name := s.step(i)
				if i%3 != 2 {
					continue
				}
				m.check(t, x)
				m.find(t, s.coll, fmt.Sprint("step ", i, ", ", name))
				if t.Failed() {
					t.Fatalf("after step %d, %s", i, name)
				}
			}
			if len(s.done) < 14 {
				t.Errorf("only %v", s.done)
			}
		})
	}
}

// steps makes random operations.
type steps struct {
	*testing.T
	*rand.Rand
	*model
	client *allium.Client
	coll   *allium.UntypedCollection
	next   int
	done   map[string]int
}

func (s *steps) new() *record {
	s.next++
	return newRecord(s.Rand, s.next)
}

// one returns any document, nil if there are none.
func (s *steps) one() *record {
	var ids []int
	for id := range s.docs {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return s.docs[ids[s.IntN(len(ids))]]
}

func (s *steps) put(r *record) {
	s.docs[r.id] = r
	s.wrote(r)
}

// step does one operation, and returns its name.
func (s *steps) step(i int) string {
	ctx := s.Context()
	old := s.one()
	n := s.IntN(19)
	if old == nil || i < 4 {
		n = 0
	}
	var name string
	var err error
	byID := func() bson.D { return bson.D{{Key: "_id", Value: old.id}} }
	// change makes an update of some fields, and what the document is afterwards.
	change := func() (bson.D, *record) {
		next := *old
		set, unset := bson.D{}, bson.D{}
		if s.IntN(2) == 0 {
			next.name = &inspectedNames[s.IntN(len(inspectedNames))]
			set = append(set, bson.E{Key: "name", Value: *next.name})
			s.note("name", *next.name)
		} else if s.IntN(2) == 0 {
			next.name = nil
			unset = append(unset, bson.E{Key: "name", Value: ""})
		}
		if s.IntN(3) == 0 {
			next.age = &inspectedAges[s.IntN(len(inspectedAges))]
			set = append(set, bson.E{Key: "age", Value: *next.age})
			s.note("age", *next.age)
		}
		if s.IntN(3) == 0 {
			next.city = &inspectedCities[s.IntN(len(inspectedCities))]
			set = append(set, bson.E{Key: "at.city", Value: *next.city})
			s.note("at.city", *next.city)
		} else if s.IntN(4) == 0 {
			next.city = nil
			unset = append(unset, bson.E{Key: "at.city", Value: ""})
		}
		next.z++
		u := bson.D{{Key: "$set", Value: append(set, bson.E{Key: "z", Value: next.z})}}
		if len(unset) > 0 {
			u = append(u, bson.E{Key: "$unset", Value: unset})
		}
		return u, &next
	}
	switch n {
	case 0, 1:
		name = "insertOne"
		r := s.new()
		s.put(r)
		_, err = s.coll.InsertOne(ctx, r.document())
	case 2:
		name = "insertMany"
		var docs []bson.D
		for range 3 {
			r := s.new()
			s.put(r)
			docs = append(docs, r.document())
		}
		_, err = s.coll.InsertMany(ctx, docs)
	case 3, 4, 5:
		name = "updateOne"
		u, next := change()
		s.docs[old.id] = next
		_, err = s.coll.UpdateOne(ctx, byID(), u)
	case 6:
		name = "replaceOne"
		next := newRecord(s.Rand, old.id)
		s.put(next)
		_, err = s.coll.ReplaceOne(ctx, byID(), next.document())
	case 7:
		name = "findOneAndUpdate"
		u, next := change()
		s.docs[old.id] = next
		_, err = s.coll.FindOneAndUpdate(ctx, byID(), u)
	case 8:
		name = "findOneAndReplace"
		next := newRecord(s.Rand, old.id)
		s.put(next)
		_, err = s.coll.FindOneAndReplace(ctx, byID(), next.document())
	case 9:
		name = "findOneAndDelete"
		delete(s.docs, old.id)
		_, err = s.coll.FindOneAndDelete(ctx, byID())
	case 10:
		name = "deleteOne"
		delete(s.docs, old.id)
		_, err = s.coll.DeleteOne(ctx, byID())
	case 11:
		name = "upsert"
		r := s.new()
		u := bson.D{}
		for _, e := range r.document()[1:] {
			if at, ok := e.Value.(bson.D); ok {
				e = bson.E{Key: "at.city", Value: at[0].Value}
			}
			u = append(u, e)
		}
		s.put(r)
		_, err = s.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: r.id}}, bson.D{{Key: "$set", Value: u}}, allium.UpdateOptions{Upsert: true})
	case 12:
		name = "upsert by replacement"
		r := s.new()
		s.put(r)
		_, err = s.coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: r.id}}, r.document(), allium.ReplaceOptions{Upsert: true})
	case 13:
		name = "unset a parent"
		next := *old
		next.city = nil
		s.docs[old.id] = &next
		_, err = s.coll.UpdateOne(ctx, byID(), bson.D{{Key: "$unset", Value: bson.D{{Key: "at", Value: ""}}}})
		if _, refused := err.(*encryption.RefusedError); refused {
			s.docs[old.id], err = old, nil
		}
	case 14:
		name = "bulkWrite"
		u, next := change()
		s.docs[old.id] = next
		r := s.new()
		s.put(r)
		_, err = s.coll.BulkWrite(ctx, []allium.WriteModel{s.coll.InsertOneModel(r.document()), s.coll.UpdateOneModel(byID(), u)})
	case 15:
		name = "client bulkWrite"
		a, b := s.new(), s.new()
		s.put(a)
		s.put(b)
		_, err = s.client.BulkWrite(ctx, []allium.WriteModel{s.coll.InsertOneModel(a.document()),
			s.coll.InsertOneModel(b.document())})
	case 18:
		name = "deleteMany"
		victim := inspectedNames[s.IntN(len(inspectedNames))]
		for id, r := range s.docs {
			if r.name != nil && *r.name == victim && id%2 == 0 {
				delete(s.docs, id)
			}
		}
		_, err = s.coll.DeleteMany(ctx, bson.D{{Key: "name", Value: victim}, {Key: "_id", Value: bson.D{{Key: "$mod", Value: bson.A{2, 0}}}}})
	case 16:
		name = "compactStructuredEncryptionData"
		_, err = s.client.Database("db").RunCommand(ctx, bson.D{{Key: name, Value: "coll"}})
	case 17:
		name = "cleanupStructuredEncryptionData"
		_, err = s.client.Database("db").RunCommand(ctx, bson.D{{Key: name, Value: "coll"}})
	}
	if err != nil {
		s.Fatalf("step %d, %s: %v", i, name, err)
	}
	s.done[name]++
	return name
}
