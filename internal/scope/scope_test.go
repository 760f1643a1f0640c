package scope

import (
	"context"
	"errors"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/command"
	"allium/mongoerr"
)

func parsed(t *testing.T, text string) bson.Raw {
	t.Helper()
	doc, err := bson.ParseExtJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

func set(t *testing.T, o Options, filters ...string) *Set {
	t.Helper()
	var s *Set
	for _, f := range filters {
		o.Filter = parsed(t, f)
		one, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s = s.With("app", one, false)
	}
	return s
}

// TestUpdates: what an update becomes in a scope, or which field it is refused for.
func TestUpdates(t *testing.T) {
	const tenant, deleted, owner, in = `{"tenant":"a"}`, `{"deleted":null}`, `{"owner.id":1}`, `{"tenant":{"$in":["a","b"]}}`
	for _, c := range []struct {
		scope, filter, update string
		upsert                bool
		want                  string // the statement, or a part of the error
	}{
		{tenant, `{}`, `{"$set":{"x":1}}`, false, `{"q":{"tenant":"a"},"u":{"$set":{"x":1}}}`},
		{tenant, `{"x":1}`, `{"$set":{"x":1}}`, false, `{"q":{"$and":[{"tenant":"a"},{"x":1}]},"u":{"$set":{"x":1}}}`},
		{tenant, `{}`, `{"$set":{"tenant":"a"}}`, false, `{"q":{"tenant":"a"},"u":{"$set":{"tenant":"a"}}}`},
		{tenant, `{}`, `{"$set":{"tenant":"b"}}`, false, `$set of "tenant"`},
		{tenant, `{}`, `{"$set":{"tenant.x":"a"}}`, false, `$set of "tenant"`},
		{tenant, `{}`, `{"$unset":{"tenant":1}}`, false, `$unset of "tenant"`},
		{tenant, `{}`, `{"$rename":{"tenant":"x"}}`, false, `$rename of "tenant"`},
		{tenant, `{}`, `{"$rename":{"x":"tenant"}}`, false, `$rename of "tenant"`},
		{tenant, `{}`, `{"$inc":{"x":1},"$max":{"tenant":"b"}}`, false, `$max of "tenant"`},
		{tenant, `{}`, `{"$newOperator":{"tenant":"b"}}`, false, `$newOperator of "tenant"`},
		{tenant, `{}`, `{"$set":{"tenants":1,"x.tenant":2}}`, false, `{"q":{"tenant":"a"},"u":{"$set":{"tenants":1,"x.tenant":2}}}`},
		{deleted, `{}`, `{"$unset":{"deleted":1}}`, false, `{"q":{"deleted":null},"u":{"$unset":{"deleted":1}}}`},
		{deleted, `{}`, `{"$currentDate":{"deleted":true}}`, false, `$currentDate of "deleted"`},
		{owner, `{}`, `{"$set":{"owner":{"id":1,"x":2}}}`, false, `{"q":{"owner.id":1},"u":{"$set":{"owner":{"id":1,"x":2}}}}`},
		{owner, `{}`, `{"$set":{"owner":{"id":2}}}`, false, `$set of "owner.id"`},
		{owner, `{}`, `{"$set":{"owner":7}}`, false, `$set of "owner.id"`},
		{owner, `{}`, `{"$set":{"owner.0.id":2}}`, false, `$set of "owner.id"`},
		{owner, `{}`, `{"$set":{"owner.$[].id":2}}`, false, `$set of "owner.id"`},
		{owner, `{}`, `{"$set":{"owner.$[e].id":2}}`, false, `$set of "owner.id"`},
		{owner, `{}`, `{"$set":{"owner.$.id":2}}`, false, `$set of "owner.id"`},
		{owner, `{}`, `{"$push":{"owner":{"id":2}}}`, false, `$push of "owner.id"`},
		// pipelines
		{tenant, `{}`, `[{"$set":{"x":"$tenant"}},{"$unset":"y"}]`, false, `{"q":{"tenant":"a"},"u":[{"$set":{"x":"$tenant"}},{"$unset":"y"}]}`},
		{tenant, `{}`, `[{"$set":{"tenant":"$x"}}]`, false, `$set of "tenant"`},
		{tenant, `{}`, `[{"$addFields":{"tenant":{"$literal":"a"}}}]`, false, `{"q":{"tenant":"a"},"u":[{"$addFields":{"tenant":{"$literal":"a"}}}]}`},
		{tenant, `{}`, `[{"$set":{"tenant":{"$literal":"b"}}}]`, false, `$set of "tenant"`},
		{tenant, `{}`, `[{"$unset":["y","tenant"]}]`, false, `$unset of "tenant"`},
		{tenant, `{}`, `[{"$project":{"x":1}}]`, false, `$project`},
		{tenant, `{}`, `[{"$project":{"tenant":0}}]`, false, `$unset of "tenant"`},
		{tenant, `{}`, `[{"$replaceWith":{"tenant":"a"}}]`, false, `$replaceWith`},
		{owner, `{}`, `[{"$set":{"owner":{"x":1}}}]`, false, `{"q":{"owner.id":1},"u":[{"$set":{"owner":{"x":1}}}]}`},
		{owner, `{}`, `[{"$set":{"owner":{"id":{"$add":[1,1]}}}}]`, false, `$set of "owner.id"`},
		{owner, `{}`, `[{"$set":{"owner":{}}}]`, false, `$set of "owner.id"`},
		// upserts
		{tenant, `{"_id":1,"tenant":"a"}`, `{"$set":{"x":1}}`, true, `{"q":{"$and":[{"tenant":"a"},{"_id":1}]},"u":{"$set":{"x":1}}}`},
		{tenant, `{"$and":[{"tenant":{"$eq":"a"}},{"x":1}]}`, `{"$set":{"y":1}}`, true, `{"q":{"$and":[{"tenant":"a"},{"$and":[{"x":1}]}]},"u":{"$set":{"y":1}}}`},
		{tenant, `{"tenant":"b"}`, `{"$set":{"x":1}}`, true, `the filter of an upsert has a condition on "tenant"`},
		{tenant, `{"$or":[{"tenant":"b"}]}`, `{"$set":{"x":1}}`, true, `the filter of an upsert has a condition on "tenant"`},
		{owner, `{"owner":{"id":2}}`, `{"$set":{"x":1}}`, true, `the filter of an upsert has a condition on "owner"`},
		{in, `{"x":1}`, `{"$set":{"y":1}}`, true, `an upsert would insert a document without "tenant"`},
		{in, `{"tenant":"b"}`, `{"$set":{"y":1}}`, true, `{"q":{"$and":[{"tenant":{"$in":["a","b"]}},{"tenant":"b"}]},"u":{"$set":{"y":1}}}`},
		{in, `{}`, `{"$setOnInsert":{"tenant":"b"}}`, true, `{"q":{"tenant":{"$in":["a","b"]}},"u":{"$setOnInsert":{"tenant":"b"}}}`},
	} {
		update, err := bson.ParseExtJSON([]byte(`{"u":` + c.update + `}`))
		if err != nil {
			t.Fatal(c.update, err)
		}
		s := command.UpdateStatement{Filter: parsed(t, c.filter), Update: update.Lookup("u"), Upsert: c.upsert}
		if doc, ok := update.Lookup("u").Document(); ok && update.Lookup("u").Type == bson.TypeEmbeddedDocument {
			s.Update = doc
		}
		got := ""
		if err := set(t, Options{}, c.scope).Begin(t.Context()).Update(nil, &s); err != nil {
			if got = err.Error(); !errors.Is(err, mongoerr.ErrScope) {
				t.Errorf("%s is not ErrScope", got)
			}
		} else {
			doc, err := bson.Marshal(bson.D{{Key: "q", Value: s.Filter}, {Key: "u", Value: s.Update}})
			if err != nil {
				t.Fatal(err)
			}
			got = bson.Raw(doc).String()
		}
		if c.want[0] == '{' && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("in %s, %s of %s (upsert %t):\n%s, want\n%s", c.scope, c.update, c.filter, c.upsert, got, c.want)
		}
	}
}

// TestFunctions: what OnInsert and OnUpdate set.
func TestFunctions(t *testing.T) {
	o := Options{
		OnInsert: func(context.Context) bson.D {
			return bson.D{{Key: "tenant", Value: "a"}, {Key: "created", Value: 1}, {Key: "version", Value: 0}}
		},
		OnUpdate: func(context.Context) bson.D {
			return bson.D{{Key: "$set", Value: bson.D{{Key: "changed", Value: 2}}}, {Key: "$inc", Value: bson.D{{Key: "version", Value: 1}}}}
		},
	}
	for _, c := range []struct {
		update string
		upsert bool
		want   string
	}{
		{`{"$set":{"x":1,"changed":0}}`, false, `{"$set":{"x":1,"changed":2},"$inc":{"version":1}}`},
		{`{"$inc":{"changed":1}}`, false, `OnUpdate changes "changed"`},
		{`{"$set":{"version":7}}`, false, `OnUpdate changes "version"`},
		{`{"$set":{"x":1}}`, true, `{"$set":{"x":1,"changed":2},"$inc":{"version":1},"$setOnInsert":{"tenant":"a","created":1}}`},
		{`[{"$set":{"x":1}}]`, false, `[{"$set":{"x":1}},{"$set":{"changed":{"$literal":2}}},{"$set":{"version":{"$add":[{"$ifNull":["$version",0]},{"$literal":1}]}}}]`},
		{`[{"$set":{"x":1}}]`, true, `cannot set "created"`},
	} {
		update := parsed(t, `{"u":`+c.update+`}`).Lookup("u")
		s := command.UpdateStatement{Filter: bson.D{}, Update: update, Upsert: c.upsert}
		got := ""
		if err := set(t, o, `{"tenant":"a"}`).Begin(t.Context()).Update(nil, &s); err != nil {
			got = err.Error()
		} else {
			got = s.Update.(bson.RawValue).String()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s, want\n%s", c.update, got, c.want)
		}
	}
	for doc, want := range map[string]string{
		`{"_id":1,"x":2}`: `{"_id":1,"x":2,"tenant":"a","created":1,"version":0}`,
		`{"_id":1,"tenant":"b","x":2,"tenant":"c"}`: `{"_id":1,"tenant":"a","x":2,"created":1,"version":0}`,
	} {
		got, err := set(t, o, `{"tenant":"a"}`).Begin(t.Context()).Insert(nil, append([]byte("before"), parsed(t, doc)...), 6)
		if err != nil || bson.Raw(got[6:]).String() != want {
			t.Errorf("%s: %s %v", doc, bson.Raw(got[6:]), err)
		}
	}
}

// TestDocuments: which documents a scope takes.
func TestDocuments(t *testing.T) {
	for _, c := range []struct{ scope, doc, err string }{
		{`{"tenant":"a"}`, `{"tenant":"a"}`, ""},
		{`{"tenant":"a"}`, `{}`, `"tenant" is missing`},
		{`{"tenant":"a"}`, `{"tenant":"b"}`, `"tenant" has another value`},
		{`{"tenant":"a"}`, `{"tenant":["a"]}`, `"tenant" is an array`},
		{`{"tenant":"a"}`, `{"tenant":"a","tenant":"b"}`, `"tenant" is there twice`},
		{`{"owner.id":1}`, `{"owner":{"id":1.0}}`, ""},
		{`{"owner.id":1}`, `{"owner":[{"id":1}]}`, `"owner.id" leads into an array`},
		{`{"owner.id":1}`, `{"owner.id":1}`, `"owner.id" is missing`},
		{`{"owner.id":1}`, `{"owner":{"id":1},"owner":{"id":2}}`, `"owner.id" is there twice`},
		{`{"deleted":null}`, `{}`, ""},
		{`{"deleted":null}`, `{"deleted":null}`, ""},
		{`{"deleted":null}`, `{"deleted":true}`, `"deleted" has another value`},
		{`{"x":{"$nin":[1,null]}}`, `{"x":2}`, ""},
		{`{"x":{"$nin":[1,null]}}`, `{}`, `"x" is missing`},
		{`{"x":{"$ne":3}}`, `{"x":{"$numberDecimal":"3"}}`, `"x" has another value`},
		{`{"x":{"$ne":3}}`, `{"x":3.0}`, `"x" has another value`},
		{`{"x":{"$ne":3}}`, `{"x":4}`, ""},
		{`{"x":{"$ne":3}}`, `{"x":"3"}`, ""},
		{`{"x":{"$ne":"s"}}`, `{"x":{"$symbol":"s"}}`, `"x" has another value`},
		{`{"x":{"$ne":{"n":1}}}`, `{"x":{"n":1.0}}`, `"x" has another value`},
		{`{"x":{"$exists":false}}`, `{"x":null}`, `"x" has another value`},
		{`{"x":9007199254740993}`, `{"x":9007199254740992.0}`, `"x" has another value`},
	} {
		_, err := set(t, Options{}, c.scope).Begin(t.Context()).Insert(nil, parsed(t, c.doc), 0)
		if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err) || !errors.Is(err, mongoerr.ErrScope)) {
			t.Errorf("%s in %s: %v, want %q", c.doc, c.scope, err, c.err)
		}
	}
}

// TestPipelines: what a pipeline becomes, or what it is refused for.
func TestPipelines(t *testing.T) {
	for _, c := range []struct{ pipeline, want string }{
		{`[]`, `[{"$match":{"tenant":"a"}}]`},
		{`[{"$match":{"$text":{"$search":"x"}}}]`, `[{"$match":{"$and":[{"tenant":"a"},{"$text":{"$search":"x"}}]}}]`},
		{`[{"$geoNear":{"near":[1,2],"query":{"x":1}}}]`, `[{"$geoNear":{"near":[1,2],"query":{"$and":[{"tenant":"a"},{"x":1}]}}}]`},
		{`[{"$search":{"text":1}},{"$limit":1}]`, `[{"$search":{"text":1}},{"$match":{"tenant":"a"}},{"$limit":1}]`},
		{`[{"$search":{"returnStoredSource":true}}]`, `returnStoredSource`},
		{`[{"$search":{"text":1}},{"$set":{"m":"$$SEARCH_META"}}]`, `SEARCH_META`},
		{`[{"$searchMeta":{}}]`, `$searchMeta`},
		{`[{"$lookup":{"from":"docs","as":"j"}}]`, `[{"$match":{"tenant":"a"}},{"$lookup":{"from":"docs","as":"j","pipeline":[{"$match":{"tenant":"a"}}]}}]`},
		{`[{"$lookup":{"from":"lands","as":"j"}}]`, `[{"$match":{"tenant":"a"}},{"$lookup":{"from":"lands","as":"j"}}]`},
		{`[{"$lookup":{"from":"secret","as":"j"}}]`, `$lookup reads the collection "secret"`},
		{`[{"$lookup":{"from":"lands","pipeline":[{"$unionWith":"secret"}],"as":"j"}}]`, `$unionWith reads the collection "secret"`},
		{`[{"$lookup":{"from":"lands","from":"secret","as":"j"}}]`, `twice`},
		{`[{"$facet":{"a":[{"$unionWith":"secret"}]}}]`, `$unionWith reads`},
		{`[{"$unionWith":{"coll":"docs","pipeline":[{"$limit":1}]}}]`, `[{"$match":{"tenant":"a"}},{"$unionWith":{"coll":"docs","pipeline":[{"$match":{"tenant":"a"}},{"$limit":1}]}}]`},
		{`[{"$graphLookup":{"from":"docs","as":"j"}}]`, `[{"$match":{"tenant":"a"}},{"$graphLookup":{"from":"docs","as":"j","restrictSearchWithMatch":{"tenant":"a"}}}]`},
		{`[{"$limit":1},{"$out":"x"}]`, `$out writes`},
		{`[{"$merge":{"into":"x"}}]`, `$merge writes`},
		{`[{"$collStats":{}}]`, `$collStats`}, {`[{"$changeStream":{}}]`, `$changeStream`}, {`[{"$documents":[]}]`, `$documents`}, {`[{"$newStage":{}}]`, `$newStage`},
		{`[{"$limit":1,"$out":"x"}]`, `2 fields`},
	} {
		p := parsed(t, `{"p":`+c.pipeline+`}`).Lookup("p")
		cmd := &command.Aggregate{Collection: "docs", Pipeline: p}
		got := ""
		if err := set(t, Options{Shared: []string{"lands"}}, `{"tenant":"a"}`).Begin(t.Context()).Apply(nil, cmd); err != nil {
			got = err.Error()
		} else {
			got = cmd.Pipeline.(bson.RawValue).String()
		}
		if c.want[0] == '[' && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s, want\n%s", c.pipeline, got, c.want)
		}
	}
}

// TestFilters: what cannot be the filter of a scope.
func TestFilters(t *testing.T) {
	for filter, want := range map[string]string{
		`{"x":{"$gt":1}}`: "$gt", `{"$or":[]}`: "$or", `{"x":[1]}`: "array", `{"x":{"$regularExpression":{"pattern":"a","options":""}}}`: "regex",
		`{"a.0":1}`: "array", `{"a..b":1}`: "no path", `{"":1}`: "no path", `{"x":{"$in":1}}`: "want an array", `{"x":{"$eq":1,"$size":2}}`: "$size",
	} {
		if _, err := New(Options{Filter: parsed(t, filter)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", filter, err, want)
		}
	}
	if _, err := New(Options{Filter: 7}); err == nil {
		t.Error("a number is a filter")
	}
}

// TestWithout: a scope is lifted by its name, and by nothing else.
func TestWithout(t *testing.T) {
	s := set(t, Options{}, `{"tenant":"a"}`)
	one, err := New(Options{Name: "deleted", Filter: bson.D{{Key: "deleted", Value: nil}}})
	if err != nil {
		t.Fatal(err)
	}
	s = s.With("app", one, false)
	if len(s.conditions) != 2 {
		t.Fatal(s.conditions)
	}
	left, err := s.Without("deleted")
	if err != nil || len(left.conditions) != 1 || left.conditions[0].path != "tenant" {
		t.Errorf("%v %v", left, err)
	}
	for _, name := range []string{"", "tenant"} {
		if _, err := s.Without(name); err == nil {
			t.Errorf("%q was lifted", name)
		}
	}
	if none, err := set(t, Options{Name: "x"}, `{"x":1}`).Without("x"); none != nil || err != nil {
		t.Errorf("%v %v", none, err)
	}
}

// TestUnknownCommand: what is not known is refused.
func TestUnknownCommand(t *testing.T) {
	for _, cmd := range []command.Command{&command.Run{}, &command.Named{Command: "drop"}, &command.CreateIndexes{}, &command.DropIndexes{}} {
		if err := set(t, Options{}, `{"tenant":"a"}`).Begin(t.Context()).Apply(nil, cmd); !errors.Is(err, mongoerr.ErrScope) {
			t.Errorf("%T: %v", cmd, err)
		}
	}
	if err := set(t, Options{}, `{}`).Begin(t.Context()).Apply(nil, &command.Named{Command: "drop"}); err != nil {
		t.Errorf("a scope without a filter: %v", err)
	}
}
