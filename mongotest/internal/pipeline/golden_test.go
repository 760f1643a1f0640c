package pipeline

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/golden"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// memory is a deployment of plain slices.
type memory struct {
	colls map[Namespace][]bson.Raw
	fresh int
}

func newMemory() *memory { return &memory{colls: map[Namespace][]bson.Raw{}} }

func (m *memory) Resolve(ns Namespace) (Namespace, []bson.Raw, error) { return ns, nil, nil }

func (m *memory) Find(ns Namespace, f *query.Filter) (Iterator, error) {
	it := FromSlice(m.colls[ns])
	if f == nil {
		return it, nil
	}
	if f.NeedsTextIndex() {
		return nil, srverr.New(srverr.IndexNotFound, "text index required for $text query")
	}
	return (&matchStage{filter: f}).open(it)
}

func (m *memory) withID(doc bson.Raw) bson.Raw {
	if doc.Lookup("_id").Type != 0 {
		return doc
	}
	m.fresh++
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendObjectID(dst, "_id", bson.ObjectID{byte(m.fresh)})
	for key, v := range doc.All() {
		dst = bson.AppendRawValue(dst, key, v)
	}
	return bson.EndDocument(dst, start)
}

func (m *memory) Replace(ns Namespace, docs []bson.Raw, _ bson.Raw) error {
	m.colls[ns] = nil
	for _, doc := range docs {
		if err := m.Insert(ns, doc); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) MergeKey(ns Namespace, on []string, _ *query.Collation) ([]string, bool, error) {
	if len(on) > 1 || len(on) == 1 && on[0] != "_id" {
		return nil, false, srverr.New(51183, "Cannot find index to verify that join fields will be unique")
	}
	return []string{"_id"}, false, nil
}

func (m *memory) Insert(ns Namespace, doc bson.Raw) error {
	doc = m.withID(doc)
	for _, old := range m.colls[ns] {
		if bson.Compare(old.Lookup("_id"), doc.Lookup("_id")) == 0 {
			err := srverr.New(srverr.DuplicateKey, "E11000 duplicate key error collection: %s index: _id_ dup key: { _id: %s }", ns, expr.Text(doc.Lookup("_id")))
			start, dst := bson.BeginDocument(nil)
			pattern, dst := bson.BeginDocumentElement(dst, "keyPattern")
			dst = bson.EndDocument(bson.AppendInt32(dst, "_id", 1), pattern)
			value, dst := bson.BeginDocumentElement(dst, "keyValue")
			dst = bson.EndDocument(bson.AppendRawValue(dst, "_id", doc.Lookup("_id")), value)
			err.Extra = bson.EndDocument(dst, start)
			return err
		}
	}
	m.colls[ns] = append(m.colls[ns], doc)
	return nil
}

func (m *memory) Update(ns Namespace, key bson.Raw, _ bool, change func(bson.Raw) (bson.Raw, error)) (bool, error) {
	f, err := query.ParseFilter(key, nil)
	if err != nil {
		return false, err
	}
	for i, doc := range m.colls[ns] {
		if ok, _ := f.Match(doc); ok {
			out, err := change(doc)
			if err != nil {
				return true, err
			}
			m.colls[ns][i] = out
			return true, nil
		}
	}
	return false, nil
}

func (m *memory) Stats(stage string, ns Namespace, spec bson.Raw) (Iterator, error) {
	return nil, srverr.New(srverr.CommandNotSupported, "%s is not for tests", stage)
}

// aggregate runs an aggregate command.
func (m *memory) aggregate(cmd bson.Raw) (bson.Raw, error) {
	name, _ := cmd.Lookup("aggregate").StringValue()
	db, _ := cmd.Lookup("$db").StringValue()
	stages, err := StagesOf(cmd.Lookup("pipeline"))
	if err != nil {
		return nil, err
	}
	ns := Namespace{db, name}
	p, err := Parse(stages, &Options{Env: m, NS: ns, Version: expr.Version{Major: 4, Minor: 4}, Now: 1})
	if err != nil {
		return nil, err
	}
	var src Iterator
	if p.NeedsSource() {
		if src, err = m.Find(ns, p.TakeMatch()); err != nil {
			return nil, err
		}
	}
	it, err := p.Run(src)
	if err != nil {
		return nil, err
	}
	docs, err := collect(it, memoryLimit)
	if err != nil {
		return nil, err
	}
	return cursorReply(ns, docs), nil
}

func cursorReply(ns Namespace, docs []bson.Raw) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	cursor, dst := bson.BeginDocumentElement(dst, "cursor")
	batch, dst := bson.BeginArrayElement(dst, "firstBatch")
	for i, doc := range docs {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), doc...)
	}
	dst = bson.EndDocument(dst, batch)
	dst = bson.AppendInt64(dst, "id", 0)
	dst = bson.AppendString(dst, "ns", ns.String())
	dst = bson.EndDocument(dst, cursor)
	dst = bson.AppendDouble(dst, "ok", 1)
	return bson.EndDocument(dst, start)
}

func errorReply(err error) bson.Raw {
	e := srverr.From(err)
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendDouble(dst, "ok", 0)
	dst = bson.AppendString(dst, "errmsg", e.Msg)
	dst = bson.AppendInt32(dst, "code", e.Code)
	dst = bson.AppendString(dst, "codeName", srverr.Name(e.Code))
	for key, v := range e.Extra.All() {
		dst = bson.AppendRawValue(dst, key, v)
	}
	return bson.EndDocument(dst, start)
}

// TestGolden replays the recorded cases that need nothing but inserts and aggregates.
func TestGolden(t *testing.T) {
	for _, file := range []string{"agg-expr", "agg-stages"} {
		cases, err := golden.Load(filepath.Join("..", "..", "testdata", "golden", "standalone", file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) { replay(t, c) })
		}
	}
}

func replay(t *testing.T, c golden.Case) {
	m := newMemory()
	for i, step := range c.Steps {
		first := ""
		for key := range step.Command.All() {
			first = key
			break
		}
		db, _ := step.Command.Lookup("$db").StringValue()
		switch first {
		case "insert":
			name, _ := step.Command.Lookup("insert").StringValue()
			for v := range bson.Raw(step.Command.Lookup("documents").Value).Values() {
				if err := m.Insert(Namespace{db, name}, bson.Raw(v.Value)); err != nil {
					t.Fatal(err)
				}
			}
		case "aggregate":
			for key := range step.Command.All() {
				if !strings.Contains(" aggregate pipeline cursor $db ", " "+key+" ") {
					t.Skipf("option %s is the command's", key)
				}
			}
			if step.Command.Lookup("aggregate").Type != bson.TypeString || step.Command.Lookup("cursor", "batchSize").Type != 0 || step.Command.Lookup("cursor").Type == 0 {
				t.Skip("the command's business")
			}
			got, err := m.aggregate(step.Command)
			if err != nil {
				if strings.HasSuffix(err.Error(), "is not for tests") {
					t.Skip(err) // a deployment's own statistics
				}
				got = errorReply(err)
			}
			if d := golden.Diff(step.Reply, got); d != "" {
				t.Errorf("step %d: %s\n%s", i, d, fmt.Sprint(step.Command))
			}
		case "find":
			name, _ := step.Command.Lookup("find").StringValue()
			ns := Namespace{db, name}
			docs := append([]bson.Raw(nil), m.colls[ns]...)
			if spec, ok := step.Command.Lookup("sort").Document(); ok {
				s, err := query.ParseSort(spec, nil)
				if err != nil {
					t.Fatal(err)
				}
				s.SortDocuments(docs)
			}
			if step.Command.Lookup("projection").Type != 0 {
				continue
			}
			if d := golden.Diff(step.Reply, cursorReply(ns, docs)); d != "" {
				t.Errorf("step %d: %s\n%s", i, d, fmt.Sprint(step.Command))
			}
		default:
			t.Skipf("command %s", first)
		}
	}
}
