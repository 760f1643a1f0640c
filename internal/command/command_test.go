package command

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"allium/bson"
	"allium/consistency"
	"allium/internal/wire"
)

func target() *Target {
	return &Target{MaxDocumentSize: 16 << 20, MaxMessageSize: 48_000_000, MaxBatchCount: 100_000}
}

// body builds a command's document.
func body(t *testing.T, c Command) (bson.Raw, error) {
	t.Helper()
	start, dst := bson.BeginDocument(nil)
	dst, err := c.AppendBody(dst, target())
	if err != nil {
		return nil, err
	}
	doc := bson.Raw(bson.EndDocument(dst, start))
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	return doc, nil
}

func TestFindNormalizesLimitAndBatchSize(t *testing.T) {
	for _, tc := range []struct {
		limit     int64
		batch     int32
		wantLimit int64
		wantBatch int32
		single    bool
	}{
		{0, 0, 0, 0, false},
		{10, 0, 10, 0, false},
		{10, 3, 10, 3, false},
		{10, 10, 10, 11, false}, // or the server would keep the cursor open
		{-10, 0, 10, 10, true},
		{-10, 3, 10, 10, true},
		{0, -3, 0, 3, true},
		{10, -3, 10, 10, true},
	} {
		find := &Find{Limit: tc.limit}
		if tc.batch != 0 {
			find.BatchSize = &tc.batch
		}
		limit, batch, single := find.normalized()
		if limit != tc.wantLimit || batch != tc.wantBatch || single != tc.single {
			t.Errorf("limit %d, batch size %d: got %d, %d, %v", tc.limit, tc.batch, limit, batch, single)
		}
	}
}

func TestFindSendsBatchSizeZero(t *testing.T) {
	for _, batch := range []*int32{nil, new(int32(0))} {
		doc, err := body(t, &Find{Collection: "c", Filter: bson.D{}, BatchSize: batch})
		if err != nil {
			t.Fatal(err)
		}
		if sent := !doc.Lookup("batchSize").IsZero(); sent != (batch != nil) {
			t.Errorf("batch size %v: %s", batch, doc)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		cmd  Command
		want string
	}{
		"nil filter":         {&Find{Collection: "c"}, "filter: document is nil"},
		"filter is a number": {&Find{Collection: "c", Filter: 1}, "want a document"},
		"filter is a list":   {&Find{Collection: "c", Filter: bson.A{}}, "want a document"},
		"unordered sort":     {&Find{Collection: "c", Filter: bson.D{}, Sort: bson.M{"a": 1, "b": 1}}, "no order"},
		"unordered hint":     {&Find{Collection: "c", Filter: bson.D{}, Hint: bson.M{"a": 1, "b": 1}}, "no order"},
		"NUL in a key":       {&Find{Collection: "c", Filter: bson.M{"a\x00b": 1}}, "NUL"},
		"pipeline is a D":    {&Aggregate{Collection: "c", Pipeline: bson.D{{Key: "$match", Value: 1}}}, "want a slice of stages"},
		"stage is a number":  {&Aggregate{Collection: "c", Pipeline: bson.A{1}}, "stage 0"},
		"nil pipeline":       {&Aggregate{Collection: "c"}, "pipeline: document is nil"},
		"no index":           {&CreateIndexes{Collection: "c"}, "no index"},
		"index without keys": {&CreateIndexes{Collection: "c", Indexes: []Index{{Keys: bson.D{}}}}, "no keys"},
	} {
		_, err := body(t, tc.cmd)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tc.want)
		}
	}
}

func TestUpdateChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		s    UpdateStatement
		want string
	}{
		"update without operators":     {UpdateStatement{Filter: bson.D{}, Update: bson.M{"a": 1}}, "want update operators"},
		"empty update":                 {UpdateStatement{Filter: bson.D{}, Update: bson.M{}}, "empty"},
		"empty pipeline":               {UpdateStatement{Filter: bson.D{}, Update: bson.A{}}, "empty"},
		"replacement with operators":   {UpdateStatement{Filter: bson.D{}, Update: bson.M{"$set": bson.M{}}, Replacement: true}, "belong in UpdateOne"},
		"replacement is a list":        {UpdateStatement{Filter: bson.D{}, Update: bson.A{}, Replacement: true}, "want a document"},
		"nil update":                   {UpdateStatement{Filter: bson.D{}}, "nil"},
		"nil filter":                   {UpdateStatement{Update: bson.M{"$set": bson.M{}}}, "nil"},
		"array filters are a document": {UpdateStatement{Filter: bson.D{}, Update: bson.M{"$set": bson.M{"a": 1}}, ArrayFilters: bson.D{}}, "want an array"},
	} {
		c := &Update{Collection: "c", Statements: []UpdateStatement{tc.s}}
		_, err := c.AppendSequences(nil, target())
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tc.want)
		}
	}
}

// Only the first key of an update and of a replacement is looked at: the server judges the others
// (specification: Bulk Write, "Update vs. replace document validation").
func TestOnlyTheFirstKeyIsChecked(t *testing.T) {
	set := bson.E{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}
	for name, s := range map[string]UpdateStatement{
		"an update with a field": {Filter: bson.D{}, Update: bson.D{set, {Key: "b", Value: 1}}},
		"an unknown operator":    {Filter: bson.D{}, Update: bson.D{{Key: "$none", Value: 1}}},
		"an operator behind":     {Filter: bson.D{}, Update: bson.D{{Key: "b", Value: 1}, set}, Replacement: true},
		"an empty replacement":   {Filter: bson.D{}, Update: bson.D{}, Replacement: true},
	} {
		c := &Update{Collection: "c", Statements: []UpdateStatement{s}}
		if _, err := c.AppendSequences(nil, target()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// raws are documents that are encoded already.
type raws []bson.Raw

func (r raws) Len() int                                 { return len(r) }
func (r raws) Append(dst []byte, i int) ([]byte, error) { return append(dst, r[i]...), nil }

func doc(size int) bson.Raw {
	start, d := bson.BeginDocument(nil)
	const overhead = 4 + 1 + 2 + 4 + 1 + 1
	return bson.EndDocument(bson.AppendString(d, "a", strings.Repeat("x", size-overhead)), start)
}

func TestInsertSplits(t *testing.T) {
	small := target()
	small.MaxBatchCount, small.MaxMessageSize, small.MaxDocumentSize = 3, 2000, 1000
	docs := raws{doc(500), doc(500), doc(500), doc(500), doc(1000), doc(1000), doc(20), doc(20), doc(20), doc(20)}
	c := &Insert{Collection: "c", Docs: docs}
	var batches []int
	for c.Left() > 0 {
		dst := make([]byte, 30) // what stands before the sequence
		dst, err := c.AppendSequences(dst, small)
		if err != nil {
			t.Fatal(err)
		}
		if len(dst) > small.MaxMessageSize {
			t.Errorf("message of %d bytes, limit %d", len(dst), small.MaxMessageSize)
		}
		batches = append(batches, c.Count())
		c.Advance()
	}
	want := []int{3, 2, 3, 2}
	if len(batches) != len(want) {
		t.Fatalf("batches %v, want %v", batches, want)
	}
	for i := range want {
		if batches[i] != want[i] {
			t.Fatalf("batches %v, want %v", batches, want)
		}
	}
	c = &Insert{Collection: "c", Docs: raws{doc(1001)}}
	if _, err := c.AppendSequences(nil, small); err == nil || !strings.Contains(err.Error(), "1001 bytes") {
		t.Errorf("a document that is too large: %v", err)
	}
}

func TestEnsureID(t *testing.T) {
	id := bson.NewObjectID()
	for name, in := range map[string]bson.Raw{"empty": {5, 0, 0, 0, 0}, "one field": doc(30)} {
		dst := append([]byte("prefix"), in...)
		out, v, added := EnsureID(dst, len("prefix"), func() bson.ObjectID { return id })
		got := bson.Raw(out[len("prefix"):])
		if err := got.Validate(); err != nil || !added {
			t.Fatalf("%s: %v, added %v", name, err, added)
		}
		first := ""
		for key := range got.All() {
			first = key
			break
		}
		if oid, _ := v.ObjectID(); first != "_id" || oid != id {
			t.Errorf("%s: first key %q, id %v", name, first, oid)
		}
		if len(got) != len(in)+17 || got.Lookup("a").Type != in.Lookup("a").Type {
			t.Errorf("%s: document changed: %x", name, got)
		}
		again, _, added := EnsureID(out, len("prefix"), func() bson.ObjectID { t.Error("asked for a second id"); return id })
		if added || len(again) != len(out) {
			t.Errorf("%s: a second _id was added", name)
		}
	}
}

func TestIndexName(t *testing.T) {
	keys, err := bson.Marshal(bson.D{{Key: "a", Value: 1}, {Key: "b.c", Value: int64(-1)}, {Key: "d", Value: "2dsphere"}, {Key: "e", Value: 1.0}})
	if err != nil {
		t.Fatal(err)
	}
	if name, err := IndexName(keys); err != nil || name != "a_1_b.c_-1_d_2dsphere_e_1" {
		t.Errorf("%q, %v", name, err)
	}
	if keys, err = bson.Marshal(bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if name, err := IndexName(keys); err != nil || name != "_id_" {
		t.Errorf("%q, %v", name, err)
	}
}

func TestWriteConcern(t *testing.T) {
	for _, tc := range []struct {
		wc    consistency.WriteConcern
		acked bool
		valid bool
	}{
		{consistency.WriteConcern{}, true, true},
		{consistency.WriteConcern{W: 0}, false, true},
		{consistency.WriteConcern{W: 1}, true, true},
		{consistency.WriteConcern{W: "majority"}, true, true},
		{consistency.WriteConcern{W: 0, Journal: new(true)}, true, false},
		{consistency.WriteConcern{W: -1}, true, false},
		{consistency.WriteConcern{W: 1.5}, true, false},
		{consistency.WriteConcern{Timeout: -1}, true, false},
	} {
		if got := tc.wc.Acknowledged(); got != tc.acked {
			t.Errorf("%+v: acknowledged %v", tc.wc, got)
		}
		if err := tc.wc.Validate(); (err == nil) != tc.valid {
			t.Errorf("%+v: %v", tc.wc, err)
		}
	}
}

func TestSequencesParse(t *testing.T) {
	c := &Delete{Collection: "c", Statements: []DeleteStatement{{Filter: bson.M{"a": 1}}, {Filter: bson.M{}, Multi: true}}}
	msg := wire.AppendMsg(nil, 1, 0, 0)
	start, msg := bson.BeginDocument(msg)
	msg, err := c.AppendBody(msg, target())
	if err != nil {
		t.Fatal(err)
	}
	if msg, err = c.AppendSequences(bson.EndDocument(msg, start), target()); err != nil {
		t.Fatal(err)
	}
	m, err := wire.ParseMsg(wire.FinishMessage(msg, 0))
	if err != nil || len(m.Sequences) != 1 || m.Sequences[0].ID != "deletes" {
		t.Fatalf("%+v, %v", m, err)
	}
	first, rest, err := bson.ReadDocument(m.Sequences[0].Docs)
	if n, _ := first.Lookup("limit").Int32(); err != nil || n != 1 {
		t.Errorf("first statement: %v, %v", first, err)
	}
	second, _, err := bson.ReadDocument(rest)
	if n, ok := second.Lookup("limit").Int32(); err != nil || !ok || n != 0 {
		t.Errorf("second statement: %v, %v", second, err)
	}
}

// What was encoded for greater limits than the server has is cut to what would have been encoded
// for the server, and what is too large for it is found.
func TestBatchFits(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		limits, unknown := target(), target()
		limits.MaxBatchCount, limits.MaxMessageSize, limits.MaxDocumentSize = 1+r.IntN(6), 500+r.IntN(2000), 300+r.IntN(300)
		unknown.MaxDocumentSize = 0
		n := 1 + r.IntN(30)
		docs := make(raws, n)
		statements := make([]UpdateStatement, n)
		deletes := make([]DeleteStatement, n)
		for i := range docs {
			docs[i] = doc(20 + r.IntN(500))
			statements[i] = UpdateStatement{Filter: docs[i], Update: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}}
			deletes[i] = DeleteStatement{Filter: docs[i]}
		}
		for _, pair := range [][2]Batch{
			{&Insert{Docs: docs}, &Insert{Docs: docs}},
			{&Update{Statements: statements}, &Update{Statements: statements}},
			{&Delete{Statements: deletes}, &Delete{Statements: deletes}},
		} {
			own, cut := pair[0], pair[1]
			behind := r.IntN(100)
			for own.Left() > 0 {
				want, wantErr := own.AppendSequences(make([]byte, behind), limits)
				got, err := cut.AppendSequences(nil, unknown)
				if err == nil {
					got, err = cut.Fit(got, behind, limits)
				}
				if wantErr != nil || err != nil {
					if fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Fatalf("seed %d, %s: %v, want %v", seed, own.Name(), err, wantErr)
					}
					break
				}
				if !bytes.Equal(got, want[behind:]) || own.Count() != cut.Count() {
					t.Fatalf("seed %d, %s: %d statements from %d on in %d bytes, want %d in %d", seed, own.Name(), cut.Count(), cut.First(), len(got), own.Count(), len(want)-behind)
				}
				own.Advance()
				cut.Advance()
			}
		}
	}
}

// A command of the program's own is sent as it is: what the driver might add to it is not looked
// for, nor taken out, and the program's document stays as it is (specification: Run Command).
func TestRunKeepsTheDocument(t *testing.T) {
	doc := bson.D{{Key: "find", Value: "c"}}
	for _, key := range []string{"lsid", "$db", "$clusterTime", "$readPreference", "readConcern", "writeConcern", "collation"} {
		doc = append(doc, bson.E{Key: key, Value: bson.D{{Key: "level", Value: "odd"}, {Key: "w", Value: 9}}})
	}
	doc = append(doc, bson.E{Key: "maxTimeMS", Value: 5}, bson.E{Key: "txnNumber", Value: 1}, bson.E{Key: "apiVersion", Value: "7"}, bson.E{Key: "find", Value: "again"})
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	given := bytes.Clone(raw)
	for _, cmd := range []any{doc, bson.Raw(raw)} {
		run, err := NewRun(nil, cmd)
		if err != nil {
			t.Fatal(err)
		}
		got, err := run.AppendBody([]byte("before"), target())
		if err != nil || !bytes.Equal(got, append([]byte("before"), given[4:len(given)-1]...)) {
			t.Errorf("%T is sent as %x, want %x: %v", cmd, got, given, err)
		}
		if run.Name() != "find" {
			t.Errorf("its name is %q", run.Name())
		}
	}
	if !bytes.Equal(raw, given) {
		t.Error("the program's document has changed")
	}
}

// TestRawData wants the option of every command that has it to be the last element, for servers
// from 8.2 on alone, and nothing without it (specification: CRUD, "rawData").
func TestRawData(t *testing.T) {
	doc := bson.Raw{5, 0, 0, 0, 0}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	for name, of := range map[string]func(raw bool) Command{
		"aggregate":   func(raw bool) Command { return &Aggregate{Collection: "c", Pipeline: []bson.D{}, RawData: raw} },
		"bulkWrite":   func(raw bool) Command { return &BulkWrite{RawData: raw} },
		"listIndexes": func(raw bool) Command { return &ListIndexes{Collection: "c", RawData: raw} },
		"count":       func(raw bool) Command { return &Count{Collection: "c", RawData: raw} },
		"delete": func(raw bool) Command {
			return &Delete{Collection: "c", Statements: []DeleteStatement{{Filter: doc}}, RawData: raw}
		},
		"distinct": func(raw bool) Command { return &Distinct{Collection: "c", Field: "k", Filter: doc, RawData: raw} },
		"find":     func(raw bool) Command { return &Find{Collection: "c", Filter: doc, RawData: raw} },
		"findAndModify": func(raw bool) Command {
			return &FindAndModify{Collection: "c", Filter: doc, Remove: true, RawData: raw}
		},
		"insert": func(raw bool) Command { return &Insert{Collection: "c", RawData: raw} },
		"update": func(raw bool) Command {
			return &Update{Collection: "c", Statements: []UpdateStatement{{Filter: doc, Update: set}}, RawData: raw}
		},
		"createIndexes": func(raw bool) Command {
			return &CreateIndexes{Collection: "c", Indexes: []Index{{Keys: bson.D{{Key: "x", Value: 1}}}}, RawData: raw}
		},
		"dropIndexes":     func(raw bool) Command { return &DropIndexes{Collection: "c", Index: "x", RawData: raw} },
		"listCollections": func(raw bool) Command { return &ListCollections{RawData: raw} },
	} {
		for _, raw := range []bool{false, true} {
			var target Target
			start, dst := bson.BeginDocument(nil)
			dst, err := of(raw).AppendBody(dst, &target)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !raw {
				if whole := bson.Raw(bson.EndDocument(dst, start)); target.Since != 0 || !whole.Lookup("rawData").IsZero() {
					t.Errorf("%s: %v has an option for servers from %d on", name, whole, target.Since)
				}
				continue
			}
			if target.Since != 27 {
				t.Errorf("%s: an option for servers from %d on, want 27", name, target.Since)
				continue
			}
			_, last := bson.BeginDocument(nil)
			option := bson.Raw(bson.EndDocument(append(last, dst[target.Optional:]...), 0))
			old := bson.Raw(bson.EndDocument(dst[:target.Optional:target.Optional], start))
			if fmt.Sprint(option) != `{"rawData":true}` || !old.Lookup("rawData").IsZero() || old.Validate() != nil {
				t.Errorf("%s: the option is %v, other servers see %v", name, option, old)
			}
		}
	}
}

// TestNeeds wants each command that older servers do not know, or would take for another one, to
// say which wire version it needs and why, and the same command without what is new to ask for
// nothing.
func TestNeeds(t *testing.T) {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	update := func(hint any) Command {
		return &Update{Collection: "c", Statements: []UpdateStatement{{Filter: bson.D{}, Update: set, Hint: hint}}}
	}
	remove := func(hint any) Command {
		return &Delete{Collection: "c", Statements: []DeleteStatement{{Filter: bson.D{}, Hint: hint}}}
	}
	modify := func(hint any) Command {
		return &FindAndModify{Collection: "c", Filter: bson.D{}, Remove: true, Hint: hint}
	}
	indexes := func(quorum any) Command {
		return &CreateIndexes{Collection: "c", Indexes: []Index{{Keys: bson.D{{Key: "x", Value: 1}}}}, CommitQuorum: quorum}
	}
	for name, tc := range map[string]struct {
		cmd    Command
		silent bool // it is sent unacknowledged
		needs  int32
		lack   error
	}{
		"bulkWrite":                   {&BulkWrite{Writes: testWrites{{ns: "a.b", size: 10}}}, false, 25, errBulkWrite},
		"create":                      {&Named{Command: "create", Target: "c"}, false, 0, nil},
		"create, queryable":           {&Named{Command: "create", Target: "c", Queryable: true}, false, 21, errQueryable},
		"createIndexes":               {indexes(nil), false, 0, nil},
		"createIndexes, quorum":       {indexes("majority"), false, 9, errCommitQuorum},
		"update":                      {update(nil), true, 0, nil},
		"update, hint":                {update("x_1"), false, 0, nil},
		"update, hint, silent":        {update("x_1"), true, 8, errHintUnknown},
		"delete":                      {remove(nil), true, 0, nil},
		"delete, hint":                {remove("x_1"), false, 0, nil},
		"delete, hint, silent":        {remove("x_1"), true, 9, errHintUnknown},
		"findAndModify":               {modify(nil), true, 0, nil},
		"findAndModify, hint":         {modify("x_1"), false, 0, nil},
		"findAndModify, hint, silent": {modify("x_1"), true, 9, errHintUnknown},
	} {
		to := target()
		to.Unacknowledged = tc.silent
		_, err := tc.cmd.AppendBody(nil, to)
		if q, ok := tc.cmd.(Sequencer); ok && err == nil {
			_, err = q.AppendSequences(nil, to)
		}
		if err != nil || to.Needs != tc.needs || to.Lack != tc.lack {
			t.Errorf("%s: needs %d, %v (%v), want %d, %v", name, to.Needs, to.Lack, err, tc.needs, tc.lack)
		}
	}
}

// TestExtra wants the fields that a program adds to commands in their order.
func TestExtra(t *testing.T) {
	for _, doc := range []any{bson.D{{Key: "b", Value: 1}, {Key: "a", Value: bson.D{{Key: "x", Value: "y"}}}}, bson.M{"b": 1}} {
		want, _ := bson.Marshal(doc)
		e, err := NewExtra(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Append([]byte("x")); !bytes.Equal(got, append([]byte("x"), bson.Raw(want).Elements()...)) {
			t.Errorf("%v: %q", doc, got)
		}
	}
	for _, none := range []any{nil, bson.D{}, bson.D(nil), bson.M{}, bson.Raw(nil), (*bson.D)(nil)} {
		if e, err := NewExtra(nil, none); e != nil || err != nil || len(e.Append(nil)) > 0 {
			t.Errorf("%#v: %v, %v", none, e, err)
		}
	}
	for want, doc := range map[string]any{"want a document": bson.A{1}, "no order": bson.M{"a": 1, "b": 2}, "chan": bson.D{{Key: "a", Value: make(chan int)}}} {
		if _, err := NewExtra(nil, doc); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", doc, err, want)
		}
	}
}
