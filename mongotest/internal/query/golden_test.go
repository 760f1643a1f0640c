package query

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

// The recorded cases of simple shape (insert, find, update on one collection) are evaluated here
// without a server, so that a mistake shows where it was made. The replay through a server is the
// judge; what it knows not to work is left out here.

type goldenCase struct {
	Name  string
	Steps []goldenStep
}

type goldenStep struct {
	Command, Reply bson.Raw
	Rest           map[string]json.RawMessage `json:"-"`
}

func readGolden(t *testing.T, name string) []goldenCase {
	t.Helper()
	text, err := os.ReadFile("../../testdata/golden/standalone/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// engine is a collection without a server.
type engine struct {
	docs []bson.Raw
	skip string // why the case cannot be evaluated here
}

func (e *engine) options(cmd bson.Raw) (*Options, error) {
	o := &Options{Expr: ExprParserFunc(parseExpr), Version: v44}
	if c := cmd.Lookup("collation"); c.Type == bson.TypeEmbeddedDocument {
		coll, err := ParseCollation(v44, c.Value)
		if err != nil {
			return nil, err
		}
		o.Collation = coll
	}
	return o, nil
}

func (e *engine) run(cmd bson.Raw) (reply bson.Raw) {
	name, _, _ := firstElement(cmd)
	switch name {
	case "insert":
		for d := range bson.Raw(cmd.Lookup("documents").Value).Values() {
			e.docs = append(e.docs, idFirst(d.Value, lookup(d.Value, "_id")))
		}
		return doc("n", len(e.docs))
	case "find":
		batch, err := e.find(cmd)
		if err != nil {
			se := err.(*srverr.Error)
			return doc("ok", 0.0, "code", int(se.Code), "errmsg", se.Msg)
		}
		return doc("cursor", doc("firstBatch", batch))
	case "update":
		return e.update(cmd)
	}
	e.skip = name
	return nil
}

func (e *engine) find(cmd bson.Raw) ([]any, error) {
	for key := range cmd.All() {
		switch key {
		case "find", "filter", "sort", "projection", "collation", "$db":
		default:
			e.skip = "find option " + key
			return nil, nil
		}
	}
	for _, key := range []string{"filter", "sort", "projection", "collation"} {
		if v := cmd.Lookup(key); v.Type != 0 && v.Type != bson.TypeEmbeddedDocument {
			e.skip = "argument type"
			return nil, nil
		}
	}
	o, err := e.options(cmd)
	if err != nil {
		return nil, err
	}
	f, err := ParseFilter(documentOrEmpty(cmd.Lookup("filter")), o)
	if err != nil {
		return nil, err
	}
	if f.NeedsTextIndex() || f.NeedsGeoIndex() || strings.Contains(cmd.String(), "$natural") || strings.Contains(cmd.String(), "$meta") {
		e.skip = "needs a server"
		return nil, nil
	}
	p, err := ParseProjection(documentOrEmpty(cmd.Lookup("projection")), f, o)
	if err != nil {
		return nil, err
	}
	srt, err := ParseSort(documentOrEmpty(cmd.Lookup("sort")), o)
	if err != nil {
		return nil, err
	}
	var found []bson.Raw
	for _, d := range e.docs {
		ok, err := f.Match(d)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, d)
		}
	}
	if srt != nil {
		if err := srt.SortDocuments(found); err != nil {
			return nil, withContext("Executor error during find command", err)
		}
	}
	out := []any{}
	for _, d := range found {
		if p != nil {
			if d, err = p.Apply(d, nil); err != nil {
				return nil, err
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// parseExpr parses aggregation expressions as the server's find command does.
func parseExpr(v bson.RawValue) (Expr, error) {
	env := &expr.Env{Version: expr.Version{Major: 4, Minor: 4}, Now: 1 << 40}
	e, err := expr.Parse(v, expr.NewScope(env))
	if err != nil {
		return nil, err
	}
	if e, err = expr.Optimize(e, env); err != nil {
		return nil, &FoldError{err}
	}
	return evaluator{e, env}, nil
}

type evaluator struct {
	e   expr.Expr
	env *expr.Env
}

func (e evaluator) Eval(doc bson.Raw) (bson.RawValue, error) {
	return expr.Eval(e.e, expr.NewState(e.env).WithRoot(doc))
}

func documentOrEmpty(v bson.RawValue) bson.Raw {
	if v.Type == bson.TypeEmbeddedDocument {
		return v.Value
	}
	return doc()
}

func (e *engine) update(cmd bson.Raw) bson.Raw {
	if cmd.Lookup("updates").Type != bson.TypeArray || cmd.Lookup("ordered").Type != 0 {
		e.skip = "command arguments"
		return nil
	}
	var n, modified int
	var upserted, errs []any
	for i, up := range slices.Collect(bson.Raw(cmd.Lookup("updates").Value).Values()) {
		if up.Type != bson.TypeEmbeddedDocument {
			e.skip = "malformed"
			return nil
		}
		q := bson.Raw(up.Value)
		for key, v := range q.All() {
			switch key {
			case "multi", "upsert":
				if v.Type != bson.TypeBoolean {
					e.skip = "malformed"
				}
			case "arrayFilters":
				if v.Type != bson.TypeArray {
					e.skip = "malformed"
				}
				for f := range bson.Raw(v.Value).Values() {
					if f.Type != bson.TypeEmbeddedDocument {
						e.skip = "malformed"
					}
				}
			case "q", "u", "collation":
			default:
				e.skip = key
			}
		}
		if u := q.Lookup("u").Type; u != bson.TypeEmbeddedDocument || q.Lookup("q").Type != bson.TypeEmbeddedDocument {
			e.skip = "pipeline or malformed"
		}
		if e.skip != "" {
			return nil
		}
		a, b, id, err := e.updateOne(q)
		n, modified = n+a, modified+b
		if id != nil {
			upserted = append(upserted, doc("index", i, "_id", nil))
		}
		if err != nil {
			se := err.(*srverr.Error)
			errs = append(errs, doc("index", i, "code", int(se.Code), "errmsg", se.Msg))
			break
		}
	}
	args := []any{"n", n, "nModified", modified}
	if upserted != nil {
		args = append(args, "upserted", upserted)
	}
	if errs != nil {
		args = append(args, "writeErrors", errs)
	}
	return doc(args...)
}

func (e *engine) updateOne(q bson.Raw) (n, modified int, id *bson.RawValue, err error) {
	o, err := e.options(q)
	if err != nil {
		return 0, 0, nil, err
	}
	multi := q.Lookup("multi").AsBool()
	uo := &UpdateOptions{Options: *o, Multi: multi}
	for f := range bson.Raw(q.Lookup("arrayFilters").Value).Values() {
		uo.ArrayFilters = append(uo.ArrayFilters, f.Value)
	}
	clock := Clock{Now: 1, Timestamp: bson.Timestamp{T: 1, I: 1}}
	u, err := ParseUpdate(q.Lookup("u"), uo)
	if err != nil {
		return 0, 0, nil, err
	}
	f, err := ParseFilter(documentOrEmpty(q.Lookup("q")), o)
	if err != nil {
		return 0, 0, nil, err
	}
	for i, d := range e.docs {
		ok, index, err := f.MatchIndex(d)
		if err != nil {
			return n, modified, nil, err
		}
		if !ok {
			continue
		}
		out, changed, err := u.Apply(d, index, clock)
		if err != nil {
			return 0, 0, nil, err
		}
		n++
		if changed {
			modified++
			e.docs[i] = out
		}
		if !multi {
			break
		}
	}
	if n == 0 && q.Lookup("upsert").AsBool() {
		d, err := u.Insert(f, clock)
		if err != nil {
			return 0, 0, nil, err
		}
		e.docs = append(e.docs, d)
		id := lookup(d, "_id")
		return 1, 0, &id, nil
	}
	return n, modified, nil, nil
}

// compare returns what differs between a reply and the recorded one, looking at the parts that this
// engine makes.
func compareReply(got, want bson.Raw) string {
	for _, key := range []string{"n", "nModified", "code", "errmsg", "writeErrors", "cursor"} {
		g, w := got.Lookup(key), want.Lookup(key)
		if key == "cursor" {
			g, w = got.Lookup("cursor", "firstBatch"), want.Lookup("cursor", "firstBatch")
		}
		gs, ws := fmt.Sprint(g), fmt.Sprint(w)
		if strings.Contains(ws, "$any") {
			continue
		}
		if gs != ws {
			return fmt.Sprintf("%s:\n   got %s\n  want %s", key, gs, ws)
		}
	}
	return ""
}

func TestGolden(t *testing.T) {
	for _, file := range []string{"match", "sort", "update", "projection"} {
		t.Run(file, func(t *testing.T) {
			ran, skipped := 0, map[string]int{}
			for _, c := range readGolden(t, file) {
				e := &engine{}
				for _, s := range c.Steps {
					if strings.Contains(string(s.Command), "$big") || strings.Contains(string(s.Command), "createIndexes") {
						e.skip = "large value or index"
						break
					}
					got := e.run(s.Command)
					if e.skip != "" {
						break
					}
					if s.Reply == nil {
						continue
					}
					if diff := compareReply(got, s.Reply); diff != "" {
						t.Errorf("%s\n%v\n%s", c.Name, s.Command, diff)
					}
				}
				if e.skip != "" {
					skipped[e.skip]++
				} else {
					ran++
				}
			}
			t.Logf("%d cases; left to the server: %v", ran, skipped)
		})
	}
}
