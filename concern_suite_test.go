package allium_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/spectest"
	"allium/mongotest"
)

// concernCase is a test of the suite "document" of Read and Write Concern: what is sent for a concern.
type concernCase struct {
	Description          string   `bson:"description"`
	Valid                bool     `bson:"valid"`
	ReadConcern          bson.Raw `bson:"readConcern"`
	ReadConcernDocument  bson.Raw `bson:"readConcernDocument"`
	WriteConcern         bson.Raw `bson:"writeConcern"`
	WriteConcernDocument bson.Raw `bson:"writeConcernDocument"`
	IsServerDefault      *bool    `bson:"isServerDefault"`
	IsAcknowledged       *bool    `bson:"isAcknowledged"`
}

func TestReadWriteConcernDocuments(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
	for _, file := range spectest.Files(t, "read-write-concern/tests/document/*.json") {
		var content struct {
			Tests []concernCase `bson:"tests"`
		}
		var raw bson.Raw
		if err := bson.UnmarshalExtJSON(spectest.Read(t, file), &raw); err != nil {
			t.Fatal(err)
		}
		if err := (bson.Options{DisallowUnknownFields: true}).Unmarshal(raw, &content); err != nil {
			t.Fatal(err)
		}
		for _, tt := range content.Tests {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+tt.Description, func(t *testing.T) {
				sent := &sentConcerns{}
				client := open(t, d.URI(), allium.ClientOptions{Dialer: d, CommandMonitor: sent.monitor()})
				coll := client.Database("concerns").Collection("c")
				switch {
				case tt.ReadConcern != nil && tt.WriteConcern == nil:
					level, _ := tt.ReadConcern.Lookup("level").StringValue()
					only(t, tt.ReadConcern, "level")
					// Some levels need more than this deployment has. What is sent is the same.
					_, err := coll.With(allium.CollectionOptions{ReadConcern: &allium.ReadConcern{Level: level}}).FindOne(t.Context(), bson.D{})
					tt.check(t, sent.of("find", "readConcern"), tt.ReadConcernDocument, err)
				case tt.WriteConcern != nil && tt.ReadConcern == nil:
					res, err := coll.With(allium.CollectionOptions{WriteConcern: writeConcern(t, tt.WriteConcern)}).InsertOne(t.Context(), bson.D{})
					tt.check(t, sent.of("insert", "writeConcern"), tt.WriteConcernDocument, err)
					if tt.Valid && tt.IsAcknowledged != nil && res.Acknowledged != *tt.IsAcknowledged {
						t.Errorf("acknowledged is %v (error %v)", res.Acknowledged, err)
					}
				default:
					t.Fatal("neither a read concern nor a write concern")
				}
			})
		}
	}
}

func (tt *concernCase) check(t *testing.T, sent []bson.Raw, want bson.Raw, err error) {
	t.Helper()
	if !tt.Valid {
		if err == nil || len(sent) > 0 {
			t.Errorf("sent %v, error %v; want an error before anything is sent", sent, err)
		}
		return
	}
	if len(sent) != 1 {
		t.Fatalf("sent %v, error %v; want one command", sent, err)
	}
	if tt.IsServerDefault != nil && *tt.IsServerDefault != (sent[0] == nil) {
		t.Errorf("sent %v; is the server's default: %v", sent[0], *tt.IsServerDefault)
	}
	only(t, sent[0], "level", "w", "j", "wtimeout")
	for key, v := range want.All() {
		if got := sent[0].Lookup(key); bson.Compare(got, v) != 0 {
			t.Errorf("%s is %v, want %v", key, got, v)
		}
	}
	for key, v := range sent[0].All() {
		if want.Lookup(key).IsZero() {
			t.Errorf("sent %s: %v", key, v)
		}
	}
}

// only fails the test if a document has other fields.
func only(t *testing.T, doc bson.Raw, names ...string) {
	t.Helper()
	for key := range doc.All() {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+key+" ") {
			t.Errorf("field %s is not known", key)
		}
	}
}

func writeConcern(t *testing.T, doc bson.Raw) *allium.WriteConcern {
	only(t, doc, "w", "wtimeoutMS", "journal")
	wc := &allium.WriteConcern{}
	if n, ok := doc.Lookup("w").AsInt64(); ok {
		wc.W = int(n)
	} else if s, ok := doc.Lookup("w").StringValue(); ok {
		wc.W = s
	}
	if n, ok := doc.Lookup("wtimeoutMS").AsInt64(); ok {
		wc.Timeout = time.Duration(n) * time.Millisecond
	}
	if b, ok := doc.Lookup("journal").Boolean(); ok {
		wc.Journal = &b
	}
	return wc
}

// sentConcerns keeps the commands that a client sends.
type sentConcerns struct {
	mu       sync.Mutex
	commands []*event.CommandStarted
}

func (s *sentConcerns) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.commands = append(s.commands, e)
	}}
}

// of returns a field of each command of a name that was sent, nil where it is not there.
func (s *sentConcerns) of(command, field string) (all []bson.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.commands {
		if e.CommandName == command {
			doc, _ := e.Command.Lookup(field).Document()
			all = append(all, doc)
		}
	}
	return all
}
