package prose

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// The test plan of the specification OP_MSG: one and many documents as inserts, updates and deletes
// go out as document sequences, as many in one message as the server allows, and the documents'
// contents arrive whole.
func TestProseOpMsg(t *testing.T) {
	norace.Skip(t, rig.Huge)
	d := testdeploy.Start(t, testdeploy.Any)
	type arrived struct {
		name string
		docs int // in the sequence
		size int // of the sequence
	}
	var mu sync.Mutex
	var got []arrived
	d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name != "insert" && c.Name != "update" && c.Name != "delete" {
			return nil, nil
		}
		a := arrived{name: c.Name}
		for _, s := range c.Sequences {
			a.size += len(s.Docs)
			for rest := s.Docs; len(rest) > 0; a.docs++ {
				doc, tail, err := bson.ReadDocument(rest)
				if err != nil || doc == nil {
					t.Error(err)
					break
				}
				rest = tail
			}
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, a)
		return nil, nil
	})
	take := func() []arrived {
		mu.Lock()
		defer mu.Unlock()
		list := got
		got = nil
		return list
	}
	client := rig.Open(t, d.URI())
	coll := client.Database("db").Collection("coll")
	big := strings.Repeat("x", 16<<20-100)
	small := strings.Repeat("x", 10)
	models := func(kind string, docs []bson.D) []allium.WriteModel {
		var list []allium.WriteModel
		for i, doc := range docs {
			filter := bson.D{{Key: "_id", Value: i}}
			switch kind {
			case "insert":
				list = append(list, coll.InsertOneModel(append(filter, doc...)))
			case "update":
				list = append(list, coll.ReplaceOneModel(filter, doc))
			case "delete":
				list = append(list, coll.DeleteOneModel(filter))
			}
		}
		return list
	}
	doc := func(text string) bson.D { return bson.D{{Key: "a", Value: text}} }
	many := make([]bson.D, 1000)
	for i := range many {
		many[i] = doc(fmt.Sprint(i))
	}
	for name, docs := range map[string][]bson.D{"1 one document": {doc(small)}, "2 two documents": {doc(small), doc(small)},
		"3 many documents": many, "5 a small and a large document": {doc(small), doc(big)}} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"insert", "update", "delete"} {
				take()
				if _, err := coll.BulkWrite(t.Context(), models(kind, docs)); err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				if a := take(); len(a) != 1 || a[0].name != kind || a[0].docs != len(docs) {
					t.Errorf("%s: arrived %+v, want one message with %d documents", kind, a, len(docs))
				}
				if kind == "delete" {
					continue
				}
				for i, want := range docs {
					stored, err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: i}})
					if err != nil || len(stored) != 2 || stored[1] != want[0] {
						t.Fatalf("%s: document %d is not what was sent: %v", kind, i, err)
					}
				}
			}
			if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 0 || err != nil {
				t.Errorf("%d documents are left, %v", n, err)
			}
		})
	}
	t.Run("4 maxWriteBatchSize may be large", func(t *testing.T) {
		docs := make([]bson.D, 100_001)
		for i := range docs {
			docs[i] = bson.D{{Key: "_id", Value: i}}
		}
		take()
		if _, err := coll.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		if a := take(); len(a) != 2 || a[0].docs != 100_000 || a[1].docs != 1 {
			t.Errorf("arrived %+v", a)
		}
	})
}
