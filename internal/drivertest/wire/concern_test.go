package wire

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/spectest"
	"allium/mongoerr"
)

// concernCase is a test case of the specification Read and Write Concern, "Document".
type concernCase struct {
	Description          string
	Valid                bool
	WriteConcern         map[string]any
	WriteConcernDocument json.RawMessage
	ReadConcern          map[string]any
	ReadConcernDocument  json.RawMessage
	IsServerDefault      bool
	IsAcknowledged       bool
}

func (c *concernCase) writeConcern() *consistency.WriteConcern {
	wc := &consistency.WriteConcern{W: c.WriteConcern["w"]}
	if n, ok := wc.W.(float64); ok {
		wc.W = int(n)
	}
	if j, ok := c.WriteConcern["journal"].(bool); ok {
		wc.Journal = &j
	}
	if ms, ok := c.WriteConcern["wtimeoutMS"].(float64); ok {
		wc.Timeout = time.Duration(ms) * time.Millisecond
	}
	return wc
}

// TestConcernDocuments runs the specification's tests of what is sent to the server for a read or
// write concern.
func TestConcernDocuments(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	for _, file := range spectest.Files(t, "read-write-concern/tests/document/*.json") {
		var suite struct{ Tests []concernCase }
		spectest.Decode(t, file, &suite)
		for _, tc := range suite.Tests {
			t.Run(tc.Description, func(t *testing.T) {
				p.Recorder.Reset()
				if tc.WriteConcern == nil {
					level, _ := tc.ReadConcern["level"].(string)
					rc := &consistency.ReadConcern{Level: consistency.ReadLevel(level)}
					// Which levels there are is the server's business.
					_, _ = p.Coll.With(allium.CollectionOptions{ReadConcern: rc}).FindOne(t.Context(), bson.D{})
					checkConcern(t, p, "find", "readConcern", tc.ReadConcernDocument, tc.IsServerDefault)
					return
				}
				wc := tc.writeConcern()
				_, err := p.Coll.With(allium.CollectionOptions{WriteConcern: wc}).InsertOne(t.Context(), bson.D{})
				if !tc.Valid {
					if p.CheckSent(t); err == nil {
						t.Error("no error")
					}
					return
				}
				checkConcern(t, p, "insert", "writeConcern", tc.WriteConcernDocument, tc.IsServerDefault)
				if wc.IsZero() != tc.IsServerDefault || wc.Acknowledged() != tc.IsAcknowledged {
					t.Errorf("server's default: %v, acknowledged: %v", wc.IsZero(), wc.Acknowledged())
				}
			})
		}
	}
}

// TestWriteConcernTypes checks the BSON types and values at the edges.
func TestWriteConcernTypes(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	_, _ = p.Coll.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 1, Timeout: time.Microsecond}}).InsertOne(t.Context(), bson.D{})
	wc := p.Recorder.Of("insert")[0].WriteConcern
	timeout := wc.Lookup("wtimeout")
	if ms, _ := timeout.AsInt64(); wc.Lookup("w").Type != bson.TypeInt32 || timeout.Type != bson.TypeInt64 || ms != 1 {
		t.Errorf("the write concern is %v, want a wtimeout of 1: 0 would mean no bound", wc)
	}
	p.Recorder.Reset()
	for _, wc := range []*consistency.WriteConcern{{W: 1 << 31}, {W: 1.0}, {W: int64(0)}, {W: -1}} {
		if _, err := p.Coll.With(allium.CollectionOptions{WriteConcern: wc}).InsertOne(t.Context(), bson.D{}); err == nil {
			t.Errorf("W %v is accepted", wc.W)
		}
	}
	p.CheckSent(t)
}

// TestCommentsOfCursors checks which getMores carry the comment of the command that opened the
// cursor.
func TestCommentsOfCursors(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	ctx, db := t.Context(), p.Client.Database("comments")
	for _, name := range []string{"a", "b", "c"} {
		if _, err := db.Collection("a").CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: name, Value: 1}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Collection(name).InsertMany(ctx, []bson.D{{}, {}, {}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		run  func() error
		want bool
	}{
		"find": {func() error {
			cur, err := db.Collection("a").Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1)), Comment: "c"})
			return rig.Drain(ctx, cur, err)
		}, true},
		"find, with BSON options": {func() error {
			legacy := db.Collection("a", allium.CollectionOptions{BSON: &bson.Options{UUID: bson.UUIDJavaLegacy}})
			cur, err := legacy.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1)), Comment: bson.UUID{1, 2}})
			return rig.Drain(ctx, cur, err)
		}, true},
		"aggregate": {func() error {
			cur, err := db.Collection("a").Aggregate(ctx, []bson.D{}, allium.AggregateOptions{BatchSize: new(int32(1)), Comment: "c"})
			return rig.Drain(ctx, cur, err)
		}, true},
		"listIndexes": {func() error {
			cur, err := db.Collection("a").ListIndexes(ctx, allium.ListIndexesOptions{BatchSize: new(int32(1)), Comment: "c"})
			return rig.Drain(ctx, cur, err)
		}, true},
		"listCollections": {func() error {
			cur, err := db.ListCollections(ctx, allium.ListCollectionsOptions{BatchSize: new(int32(1)), Comment: "c"})
			return rig.Drain(ctx, cur, err)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p.Recorder.Reset()
			if err := tc.run(); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(name, ",")
			comment := p.Recorder.Of(name)[0].Body.Lookup("comment").String()
			if comment == "" {
				t.Errorf("%s has no comment", name)
			}
			more := p.Recorder.Of("getMore")
			if len(more) == 0 {
				t.Fatal("no getMore")
			}
			if slices.ContainsFunc(more, func(c rig.SentCommand) bool { return c.Body.Lookup("comment").IsZero() == tc.want }) {
				t.Errorf("a getMore is %v; with the comment: want %v", more[0].Body, tc.want)
			}
			if got := more[0].Body.Lookup("comment").String(); tc.want && got != comment {
				t.Errorf("%s has the comment %s, its getMore %s", name, comment, got)
			}
		})
	}
}

// checkConcern checks a field of the one command that was sent.
func checkConcern(t *testing.T, p *rig.Recorded, command, key string, want json.RawMessage, missing bool) {
	t.Helper()
	sent := p.Recorder.Of(command)
	if len(sent) != 1 {
		t.Fatalf("%d commands %s were sent, want 1", len(sent), command)
	}
	doc, ok := sent[0].Body.Lookup(key).Document()
	if ok == missing {
		t.Fatalf("%s is sent: %v", key, ok)
	}
	if missing {
		return
	}
	var got, wanted map[string]any
	if err := bson.Unmarshal(doc, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	for k, v := range got { // numbers as JSON has them
		switch n := v.(type) {
		case int32:
			got[k] = float64(n)
		case int64:
			got[k] = float64(n)
		}
	}
	if !maps.Equal(got, wanted) {
		t.Errorf("%s is %v, want %v", key, got, wanted)
	}
}

// Concerns are those of the collection, else of its database, else of the client, and a handle with
// another one leaves the first as it is (specification: Read and Write Concern, "Via Code").
func TestConcernsAreInherited(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{
		ReadConcern: &consistency.ReadConcern{Level: consistency.ReadMajority}, WriteConcern: consistency.Majority(),
	})
	level, w := &consistency.ReadConcern{Level: consistency.ReadLocal}, &consistency.WriteConcern{W: 1}
	db := p.Client.Database("db")
	own := p.Client.Database("db", allium.DatabaseOptions{ReadConcern: level, WriteConcern: w})
	coll := db.Collection("c")
	for name, tc := range map[string]struct {
		coll        *allium.UntypedCollection
		level, want string
	}{
		"client":                {coll, "majority", `{"w":"majority"}`},
		"database":              {own.Collection("c"), "local", `{"w":1}`},
		"collection":            {db.Collection("c", allium.CollectionOptions{ReadConcern: level, WriteConcern: w}), "local", `{"w":1}`},
		"collection, by With":   {coll.With(allium.CollectionOptions{ReadConcern: level, WriteConcern: w}), "local", `{"w":1}`},
		"database, by With":     {db.With(allium.DatabaseOptions{ReadConcern: level, WriteConcern: w}).Collection("c"), "local", `{"w":1}`},
		"the first, after With": {coll, "majority", `{"w":"majority"}`},
		"the server's again":    {own.Collection("c", allium.CollectionOptions{ReadConcern: &consistency.ReadConcern{}, WriteConcern: &consistency.WriteConcern{}}), "", ""},
	} {
		p.Recorder.Reset()
		if _, err := tc.coll.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		if _, err := tc.coll.Find(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		got := ""
		if wc := p.Recorder.Of("insert")[0].WriteConcern; wc != nil {
			got = wc.String()
		}
		read, _ := p.Recorder.Of("find")[0].Body.Lookup("readConcern", "level").StringValue()
		if read != tc.level || got != tc.want {
			t.Errorf("%s: read concern %q, write concern %s; want %q, %s", name, read, got, tc.level, tc.want)
		}
	}
}

// What the server says of a read concern is the program's to read: the driver makes nothing of it.
func TestReadConcernErrorsAreTheServers(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	for _, code := range []int32{9, 148, 72} { // FailedToParse, ReadConcernMajorityNotEnabled, InvalidOptions
		rig.FailPoint(t, p.Client, bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: code}}, 1)
		p.Recorder.Reset()
		_, err := p.Coll.With(allium.CollectionOptions{ReadConcern: &consistency.ReadConcern{Level: "newest"}}).Find(t.Context(), bson.D{})
		if e, ok := errors.AsType[*mongoerr.ServerError](err); !ok || e.Code != code {
			t.Errorf("%v, want an error of code %d", err, code)
		}
		p.CheckSent(t, "find")
	}
}

// Every operation sends the concerns of the collection, the database or the client that it runs on,
// with each of its commands that take one and with no other (specification: Read and Write Concern,
// "Via Code"). What RunCommand sends is the program's own.
func TestEveryOperationInheritsConcerns(t *testing.T) {
	writes := []string{"insert", "update", "delete", "findAndModify", "bulkWrite", "create", "createIndexes", "drop", "dropIndexes", "dropDatabase",
		"renameCollection", "collMod"}
	reads := []string{"find", "aggregate", "count", "distinct"}
	own := []string{"runCommand", "runCursorCommand", "Database.RunCursorCommand", "allium.RunCursorCommand"}
	r := rig.New(t, "replicaset", allium.ClientOptions{
		ReadConcern: &consistency.ReadConcern{Level: consistency.ReadLocal}, WriteConcern: &consistency.WriteConcern{W: 1, Journal: new(true)},
	})
	run := maps.Clone(rig.FurtherOperations)
	for _, op := range rig.Operations {
		run[op.Name] = op.Run
	}
	seen := map[string]bool{}
	for name, run := range run {
		if slices.Contains(own, name) {
			continue
		}
		r.Log.Reset()
		_ = run(t.Context(), r.Coll)
		for _, e := range r.Log.Of("") {
			body := e.Command
			seen[e.CommandName] = true
			pipeline, _ := body.Lookup("pipeline").Array()
			output := strings.Contains(pipeline.String(), `"$out"`) || strings.Contains(pipeline.String(), `"$merge"`)
			searchIndexes := strings.Contains(pipeline.String(), "$listSearchIndexes")
			wc, rc := body.Lookup("writeConcern").String(), body.Lookup("readConcern").String()
			switch want := slices.Contains(writes, e.CommandName) || output; {
			case want && wc != `{"w":1,"j":true}`, !want && wc != "":
				t.Errorf("%s: %s has the write concern %q; it takes one: %v", name, e.CommandName, wc, want)
			}
			switch want := slices.Contains(reads, e.CommandName) && !searchIndexes; {
			case want && rc != `{"level":"local"}`, !want && rc != "":
				t.Errorf("%s: %s has the read concern %q; it takes one: %v", name, e.CommandName, rc, want)
			}
		}
	}
	for _, name := range slices.Concat(writes, reads) {
		if !seen[name] {
			t.Errorf("no operation sends %s", name)
		}
	}
}
