package mongotest_test

import (
	"testing"
	"time"

	"allium/bson"
	"allium/mongotest"
)

func TestSearchIndexes(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 1)} {
		t.Run(name, func(t *testing.T) { testSearchIndexes(t, topology) })
	}
}

func testSearchIndexes(t *testing.T, topology mongotest.Option) {
	d := mongotest.Start(t, topology, mongotest.Search(10*time.Second))
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"create": "c", "$db": "t"}`)))
	created := ok(t, command(t, c, extJSON(t, `{"createSearchIndexes": "c", "indexes": [{"definition": {"mappings": {"dynamic": false}}}, {"name": "v", "type": "vectorSearch", "definition": {"fields": []}}], "$db": "t"}`)))
	id, _ := created.Lookup("indexesCreated", "0", "id").StringValue()
	if name, _ := created.Lookup("indexesCreated", "1", "name").StringValue(); len(id) != 24 || name != "v" {
		t.Errorf("%s", created)
	}
	list := func(spec string) bson.Raw {
		t.Helper()
		reply := ok(t, command(t, c, extJSON(t, `{"aggregate": "c", "pipeline": [{"$listSearchIndexes": `+spec+`}], "cursor": {}, "$db": "t"}`)))
		batch, _ := reply.Lookup("cursor", "firstBatch").Array()
		return batch
	}
	check := func(step, status string, queryable, dynamic bool) {
		t.Helper()
		i := list(`{"name": "default"}`)
		s, _ := i.Lookup("0", "status").StringValue()
		q, _ := i.Lookup("0", "queryable").Boolean()
		y, _ := i.Lookup("0", "latestDefinition", "mappings", "dynamic").Boolean()
		if s != status || q != queryable || y != dynamic {
			t.Errorf("%s: %s", step, i)
		}
	}
	check("created", "PENDING", false, false)
	d.ShiftClock(5 * time.Second)
	check("soon", "BUILDING", false, false)
	d.ShiftClock(5 * time.Second)
	check("later", "READY", true, false)
	ok(t, command(t, c, extJSON(t, `{"updateSearchIndex": "c", "name": "default", "definition": {"mappings": {"dynamic": true}}, "$db": "t"}`)))
	check("updated", "PENDING", true, true)
	if i := list(`{"name": "default"}`); !i.Lookup("0", "statusDetail", "0", "stagedIndex", "definition", "mappings", "dynamic").AsBool() ||
		i.Lookup("0", "statusDetail", "0", "mainIndex", "definition", "mappings", "dynamic").AsBool() {
		t.Errorf("%s", i)
	}
	d.ShiftClock(10 * time.Second)
	check("built again", "READY", true, true)
	if v, _ := list(`{"id": "`+id+`"}`).Lookup("0", "latestDefinitionVersion", "version").Int64(); v != 1 {
		t.Errorf("version %d", v)
	}
	ok(t, command(t, c, extJSON(t, `{"dropSearchIndex": "c", "id": "`+id+`", "$db": "t"}`)))
	check("dropped", "DELETING", false, true)
	d.ShiftClock(10 * time.Second)
	if i := list(`{}`); i.Lookup("1").Type != 0 || i.Lookup("0", "name").String() != `"v"` {
		t.Errorf("%s", i)
	}
	ok(t, command(t, c, extJSON(t, `{"renameCollection": "t.c", "to": "t.d", "$db": "admin"}`)))
	if n := list(`{}`).Lookup("0").Type; n != 0 {
		t.Error("the indexes stay behind when the collection is renamed")
	}
	ok(t, command(t, c, extJSON(t, `{"drop": "d", "$db": "t"}`)))
	ok(t, command(t, c, extJSON(t, `{"create": "c", "$db": "t"}`)))
	checkErrors(t, d, []errorStep{
		{`{"createSearchIndexes": "nosuch", "indexes": [{"definition": {"mappings": {}}}], "$db": "t"}`, 26, "Collection 'nosuch' does not exist."},
		{`{"createSearchIndexes": "c", "indexes": [{"name": "x", "definition": {"fields": []}}], "$db": "t"}`, 8, "Attribute mappings missing."},
		{`{"createSearchIndexes": "c", "indexes": [{"name": "x", "definition": {"mappings": {}}}], "$db": "t"}`, 0, ""},
		{`{"createSearchIndexes": "c", "indexes": [{"name": "x", "definition": {"mappings": {}}}], "$db": "t"}`, 0, ""},
		{`{"createSearchIndexes": "c", "indexes": [{"name": "x", "definition": {"mappings": {"dynamic": true}}}], "$db": "t"}`, 68, "Index x already exists with a different definition. Drop it first if needed."},
		{`{"updateSearchIndex": "c", "name": "y", "definition": {"mappings": {}}, "$db": "t"}`, 27, "Search index 'y' could not be found."},
		{`{"dropSearchIndex": "c", "name": "y", "$db": "t"}`, 27, "Search index 'y' could not be found."},
		{`{"dropSearchIndex": "c", "$db": "t"}`, 9, "One of 'id' or 'name' must be specified"},
		{`{"aggregate": "c", "pipeline": [{"$listSearchIndexes": {"id": "a", "name": "b"}}], "cursor": {}, "$db": "t"}`, 72, "Cannot set both 'name' and 'id' for $listSearchIndexes."},
		{`{"aggregate": "nosuch", "pipeline": [{"$listSearchIndexes": {}}], "cursor": {}, "$db": "t"}`, 0, ""},
	})
	checkErrors(t, mongotest.Start(t), []errorStep{
		{`{"aggregate": "c", "pipeline": [{"$listSearchIndexes": {}}], "cursor": {}, "$db": "t"}`, 6047401, "$listSearchIndexes stage is only allowed on MongoDB Atlas"},
	})
}
