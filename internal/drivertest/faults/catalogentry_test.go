package faults

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// oddValues are values of every BSON type, with those that are hard to convert.
func oddValues(t *testing.T) []any {
	t.Helper()
	decimal := func(s string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return []any{
		math.NaN(), math.Inf(1), math.Inf(-1), 1.5, -0.5, 1e300, -1e300, float64(1 << 62), math.Copysign(0, -1),
		int32(-1), int32(math.MinInt32), int32(math.MaxInt32), int64(math.MaxInt64), int64(math.MinInt64), int64(1) << 40,
		decimal("NaN"), decimal("Infinity"), decimal("-Infinity"), decimal("1E6000"), decimal("0.1"), decimal("12"),
		"", "text", "3600", "invalid \xff", true, false, nil, bson.D{}, bson.D{{Key: "a\xff", Value: "\xff"}}, bson.A{}, bson.A{1, "x"},
		bson.Binary{Data: []byte{1}}, bson.NewObjectID(), bson.DateTime(5), bson.Regex{Pattern: "x"}, bson.Timestamp{T: 1}, bson.JavaScript("x"),
		bson.CodeWithScope{Code: "x"}, bson.Symbol("s"), bson.DBPointer{DB: "d"}, bson.Undefined{}, bson.MinKey{}, bson.MaxKey{},
	}
}

// lax encodes what a server may have stored long ago, invalid UTF-8 included.
func lax(t *testing.T, key string, v any) bson.RawValue {
	t.Helper()
	if s, ok := v.(string); ok {
		return bson.RawValue{Type: bson.TypeString, Value: bson.AppendString(nil, "", s)[2:]}
	}
	if d, ok := v.(bson.D); ok && len(d) == 1 {
		start, dst := bson.BeginDocument(nil)
		dst = bson.AppendString(dst, d[0].Key, d[0].Value.(string))
		return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(dst, start)}
	}
	raw, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return raw
}

// catalogEntries returns an entry for each value of each field but name, between two whole ones.
func catalogEntries(t *testing.T, fields []string, whole func(name string) bson.D) (entries []bson.Raw) {
	t.Helper()
	add := func(name, key string, v any) {
		start, dst := bson.BeginDocument(nil)
		for _, e := range whole(name) {
			raw := lax(t, e.Key, e.Value)
			if e.Key == key {
				raw = lax(t, key, v)
			}
			dst = bson.AppendRawValue(dst, e.Key, raw)
		}
		entries = append(entries, bson.EndDocument(dst, start))
	}
	add("first", "", nil)
	for _, key := range fields {
		for i, v := range oddValues(t) {
			add(fmt.Sprint(key, i), key, v)
		}
	}
	add("last", "", nil)
	return entries
}

// catalogKinds are the operations that read the catalog: the reply around its entries, and what
// they make of it. list returns names and descriptions.
var catalogKinds = map[string]struct {
	fields []string
	whole  func(name string) bson.D
	array  string // "": a cursor
	list   func(t *testing.T, c *allium.UntypedCollection) (names []string, err error)
	names  func(t *testing.T, c *allium.UntypedCollection) ([]string, error)
}{
	"indexes": {
		fields: []string{"v", "key", "unique", "sparse", "hidden", "expireAfterSeconds", "collation"},
		whole: func(name string) bson.D {
			return bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{}}, {Key: "name", Value: name}, {Key: "unique", Value: true}, {Key: "sparse", Value: true},
				{Key: "hidden", Value: false}, {Key: "expireAfterSeconds", Value: int32(5)}, {Key: "collation", Value: bson.D{}}}
		},
		list: func(t *testing.T, c *allium.UntypedCollection) (names []string, err error) {
			cur, err := c.ListIndexes(t.Context())
			if err != nil {
				return nil, err
			}
			for i, err := range cur.Seq(t.Context()) {
				if err != nil {
					return nil, err
				}
				names = append(names, i.Name)
				checkExpireAfter(t, i)
			}
			return names, nil
		},
		names: func(t *testing.T, c *allium.UntypedCollection) ([]string, error) {
			return c.ListIndexNames(t.Context())
		},
	},
	"collections": {
		fields: []string{"type", "options", "info", "idIndex"},
		whole: func(name string) bson.D {
			return bson.D{{Key: "name", Value: name}, {Key: "type", Value: "collection"}, {Key: "options", Value: bson.D{}}, {Key: "info", Value: bson.D{}}, {Key: "idIndex", Value: bson.D{}}}
		},
		list: func(t *testing.T, c *allium.UntypedCollection) (names []string, err error) {
			cur, err := c.Database().ListCollections(t.Context())
			if err != nil {
				return nil, err
			}
			all, err := cur.All(t.Context())
			for _, i := range all {
				names = append(names, i.Name)
			}
			return names, err
		},
		names: func(t *testing.T, c *allium.UntypedCollection) ([]string, error) {
			return c.Database().ListCollectionNames(t.Context())
		},
	},
	"databases": {
		fields: []string{"sizeOnDisk", "empty"},
		whole: func(name string) bson.D {
			return bson.D{{Key: "name", Value: name}, {Key: "sizeOnDisk", Value: int64(1)}, {Key: "empty", Value: false}}
		},
		array: "databases",
		list: func(t *testing.T, c *allium.UntypedCollection) (names []string, err error) {
			all, err := c.Database().Client().ListDatabases(t.Context())
			for _, i := range all {
				names = append(names, i.Name)
			}
			return names, err
		},
		names: func(t *testing.T, c *allium.UntypedCollection) ([]string, error) {
			return c.Database().Client().ListDatabaseNames(t.Context())
		},
	},
	"search indexes": {
		fields: []string{"id", "type", "status", "queryable", "latestDefinition"},
		whole: func(name string) bson.D {
			return bson.D{{Key: "id", Value: "x"}, {Key: "name", Value: name}, {Key: "type", Value: "search"}, {Key: "status", Value: "READY"}, {Key: "queryable", Value: true},
				{Key: "latestDefinition", Value: bson.D{}}}
		},
		list: func(t *testing.T, c *allium.UntypedCollection) (names []string, err error) {
			cur, err := c.ListSearchIndexes(t.Context())
			if err != nil {
				return nil, err
			}
			all, err := cur.All(t.Context())
			for _, i := range all {
				names = append(names, i.Name)
			}
			return names, err
		},
	},
}

// checkExpireAfter compares an index's ExpireAfter with what a sum in floating point gives.
func checkExpireAfter(t *testing.T, i allium.IndexInfo) {
	t.Helper()
	v := i.Raw.Lookup("expireAfterSeconds")
	var want float64
	switch {
	case v.Type == bson.TypeDecimal128:
		d, _ := v.Decimal128()
		want = d.Float64()
	case v.IsNumber():
		var err error
		if err = v.Unmarshal(&want); err != nil {
			n, _ := v.Int64()
			want = float64(n)
		}
	}
	if !v.IsNumber() || math.IsNaN(want) {
		if i.ExpireAfter != nil {
			t.Errorf("%s: %v, want nil for %v", i.Name, *i.ExpireAfter, v)
		}
		return
	}
	want = min(max(math.Trunc(want)*1e9, math.MinInt64), math.MaxInt64)
	if i.ExpireAfter == nil || math.Abs(float64(*i.ExpireAfter)-want) > 1e3 && math.Abs(float64(*i.ExpireAfter)/want-1) > 1e-6 {
		t.Errorf("%s: %v for %v, want %v", i.Name, i.ExpireAfter, v, time.Duration(want))
	}
}

// TestCatalogEntries lists entries of the catalog in which one field has any value of any type:
// every entry is there, with its whole description.
func TestCatalogEntries(t *testing.T) {
	for kind, k := range catalogKinds {
		t.Run(kind, func(t *testing.T) {
			entries := catalogEntries(t, k.fields, k.whole)
			c := catalogOf(t, k.array, entries)
			strict := c.With(allium.CollectionOptions{BSON: &bson.Options{DisallowUnknownFields: true}})
			for _, c := range []*allium.UntypedCollection{c, strict} {
				names, err := k.list(t, c)
				if err != nil || len(names) != len(entries) {
					t.Fatalf("%d of %d entries: %v", len(names), len(entries), err)
				}
				for i, e := range entries {
					if name, _ := e.Lookup("name").StringValue(); names[i] != name {
						t.Errorf("entry %d is %q, want %v", i, names[i], e)
					}
				}
				if k.names == nil {
					continue
				}
				if again, err := k.names(t, c); err != nil || !slices.Equal(again, names) {
					t.Errorf("names: %v, %v", again, err)
				}
			}
		})
	}
}

// catalogOf returns a collection of a server that answers everything with these entries.
func catalogOf(t *testing.T, array string, entries []bson.Raw) *allium.UntypedCollection {
	t.Helper()
	uri := rig.StartFake(t, func(r *fakeserver.Request) {
		reply := func(d bson.D) {
			raw, err := bson.Marshal(d)
			if err != nil {
				t.Error(err)
			}
			r.Reply(raw)
		}
		if array != "" {
			reply(bson.D{{Key: "ok", Value: 1}, {Key: array, Value: entries}})
		} else {
			reply(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "d.c"}, {Key: "firstBatch", Value: entries}}}})
		}
	})
	return rig.Open(t, uri).Database("d").Collection("c")
}

// TestCatalogNames: an entry without a name is an error, beside all others.
func TestCatalogNames(t *testing.T) {
	for kind, k := range catalogKinds {
		for i, v := range oddValues(t) {
			switch v.(type) {
			case string, nil, bson.Undefined, bson.Symbol, bson.Binary:
				continue // they decode as a string
			}
			var entries []bson.Raw
			for _, name := range []any{"a", v, "b"} {
				d := bson.D{}
				for _, e := range k.whole("") {
					if e.Key == "name" {
						e.Value = name
					}
					d = append(d, e)
				}
				start, dst := bson.BeginDocument(nil)
				for _, e := range d {
					dst = bson.AppendRawValue(dst, e.Key, lax(t, e.Key, e.Value))
				}
				entries = append(entries, bson.EndDocument(dst, start))
			}
			c := catalogOf(t, k.array, entries)
			check := func(names []string, err error) {
				t.Helper()
				errs, ok := errors.AsType[mongoerr.DecodeErrors](err)
				if !slices.Equal(names, []string{"a", "b"}) || !ok || len(errs) != 1 || !bytes.Equal(errs[0].Document, entries[1]) {
					t.Errorf("%s, %d: %v, %v", kind, i, names, err)
				}
			}
			if k.names != nil {
				check(k.names(t, c))
			}
			if kind != "indexes" { // whose list stops at an error
				names, err := k.list(t, c)
				check(names, err)
			}
		}
	}
}

// TestExpireAfterRange refuses ages that the server cannot keep, before anything is sent.
func TestExpireAfterRange(t *testing.T) {
	db := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI()).Database("d")
	ctx, c := t.Context(), db.Collection("c")
	if err := db.CreateCollection(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	const most = math.MaxInt32 * time.Second
	for _, tc := range []struct {
		d           time.Duration
		index, coll bool // fine there
	}{{0, true, true}, {time.Second, true, true}, {most, true, true}, {most + time.Second - 1, true, true}, {most + time.Second, false, true},
		{math.MaxInt64, false, true}, {-1, false, false}, {-time.Second, false, false}, {math.MinInt64, false, false}} {
		_, err := c.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}, Name: "i", ExpireAfter: &tc.d})
		refused := func(op string, err error, fine bool) {
			t.Helper()
			if own := err != nil && strings.Contains(err.Error(), "option ExpireAfter is "+tc.d.String()); own == fine || own && !strings.Contains(err.Error(), op+" d.c: ") {
				t.Errorf("%v: %v", tc.d, err)
			}
		}
		refused("createIndexes", err, tc.index)
		if tc.index {
			if err != nil {
				t.Errorf("%v: %v", tc.d, err)
			}
			cur, err := c.ListIndexes(ctx)
			if err != nil {
				t.Fatal(err)
			}
			all, err := cur.All(ctx)
			if err != nil || len(all) != 2 || *all[1].ExpireAfter != tc.d.Truncate(time.Second) {
				t.Errorf("%v: %v, %v", tc.d, all, err)
			}
			if err := c.DropIndexes(ctx); err != nil {
				t.Fatal(err)
			}
		}
		refused("collMod", db.ModifyCollection(ctx, "c", allium.ModifyCollectionOptions{Index: &allium.IndexChange{Name: "i", ExpireAfter: &tc.d}}), tc.index)
		refused("collMod", db.ModifyCollection(ctx, "c", allium.ModifyCollectionOptions{ExpireAfter: &tc.d}), tc.coll)
		refused("create", db.CreateCollection(ctx, "c", allium.CreateCollectionOptions{ExpireAfter: &tc.d}), tc.coll)
	}
}
