package allium_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"allium"
	"allium/bson"
)

type docs = allium.Collection[bson.D]

// furtherOperations are the methods that take a session and are not among operations, by their
// receivers and names. What they do to the deployment does not matter: some ask for what it lacks.
var furtherOperations = map[string]func(ctx context.Context, c *docs) error{
	"Client.BulkWrite": func(ctx context.Context, c *docs) error {
		return second(c.Database().Client().BulkWrite(ctx, []allium.ClientWrite{{Database: "sessions", Collection: "docs", Model: allium.InsertModel{Document: bson.D{}}}}))
	},
	"Client.Databases":         func(ctx context.Context, c *docs) error { return second(c.Database().Client().Databases(ctx)) },
	"Client.ListDatabaseNames": func(ctx context.Context, c *docs) error { return second(c.Database().Client().ListDatabaseNames(ctx)) },
	"Client.Ping":              func(ctx context.Context, c *docs) error { return c.Database().Client().Ping(ctx) },
	"Client.Watch":             func(ctx context.Context, c *docs) error { return streamClosed(c.Database().Client().Watch(ctx, nil)) },
	"Collection.Count":         func(ctx context.Context, c *docs) error { return second(c.Count(ctx, everything)) },
	"Collection.CreateIndexes": func(ctx context.Context, c *docs) error {
		return second(c.CreateIndexes(ctx, []allium.IndexModel{{Keys: bson.D{{Key: "y", Value: 1}}}}))
	},
	"Collection.CreateSearchIndex": func(ctx context.Context, c *docs) error {
		return second(c.CreateSearchIndex(ctx, allium.SearchIndexModel{Definition: bson.D{}}))
	},
	"Collection.CreateSearchIndexes": func(ctx context.Context, c *docs) error {
		return second(c.CreateSearchIndexes(ctx, []allium.SearchIndexModel{{Definition: bson.D{}}}))
	},
	"Collection.DropIndexes":            func(ctx context.Context, c *docs) error { return c.DropIndexes(ctx) },
	"Collection.DropSearchIndex":        func(ctx context.Context, c *docs) error { return c.DropSearchIndex(ctx, "x") },
	"Collection.EstimatedDocumentCount": func(ctx context.Context, c *docs) error { return second(c.EstimatedDocumentCount(ctx)) },
	"Collection.ListIndexNames":         func(ctx context.Context, c *docs) error { return second(c.ListIndexNames(ctx)) },
	"Collection.ListSearchIndexes": func(ctx context.Context, c *docs) error {
		cur, err := c.ListSearchIndexes(ctx, "")
		return drain(ctx, cur, err)
	},
	"Collection.Rename":            func(ctx context.Context, c *docs) error { return c.Database().Collection("none").Rename(ctx, "other") },
	"Collection.UpdateSearchIndex": func(ctx context.Context, c *docs) error { return c.UpdateSearchIndex(ctx, "x", bson.D{}) },
	"Collection.Watch":             func(ctx context.Context, c *docs) error { return streamClosed(c.Watch(ctx, nil)) },
	"Database.Aggregate": func(ctx context.Context, c *docs) error {
		cur, err := c.Database().Aggregate(ctx, []bson.D{{{Key: "$documents", Value: bson.A{}}}})
		return drain(ctx, cur, err)
	},
	"Database.Collections":         func(ctx context.Context, c *docs) error { return second(c.Database().Collections(ctx)) },
	"Database.ListCollectionNames": func(ctx context.Context, c *docs) error { return second(c.Database().ListCollectionNames(ctx)) },
	"Database.ModifyCollection":    func(ctx context.Context, c *docs) error { return c.Database().ModifyCollection(ctx, "docs") },
	"Database.RunCursorCommand": func(ctx context.Context, c *docs) error {
		cur, err := c.Database().RunCursorCommand(ctx, bson.D{{Key: "find", Value: "docs"}})
		return drain(ctx, cur, err)
	},
	"Database.Watch": func(ctx context.Context, c *docs) error { return streamClosed(c.Database().Watch(ctx, nil)) },
}

// streamClosed closes a change stream.
func streamClosed[T any](s *allium.ChangeStream[T], err error) error {
	if err != nil {
		return err
	}
	return s.Close(context.Background())
}

// withoutSession are the methods that take a context and no session of it.
var withoutSession = map[string]string{
	"Client.CheckRevocation": "sends no command",
	"Client.Close":           "ends all sessions",
	"Client.Transact":        "starts a session of its own",
}

// listedAs are the methods of operations whose names there are not their own.
var listedAs = map[string]string{"Collection.Drop": "dropCollection", "Database.Drop": "dropDatabase"}

// TestEveryOperationTakesSession: every method that takes a context sends the session of it, and
// refuses that of another client, and one that has ended. A method that is in no list fails the
// test (specification: Driver Sessions, prose tests 4, 5 and 6).
func TestEveryOperationTakesSession(t *testing.T) {
	known := map[string]bool{}
	for _, op := range operations {
		known[op.name] = true
	}
	found := 0
	for _, of := range []reflect.Type{reflect.TypeFor[*allium.Client](), reflect.TypeFor[*allium.Database](), reflect.TypeFor[*docs]()} {
		owner, _, _ := strings.Cut(of.Elem().Name(), "[")
		for i := range of.NumMethod() {
			m := of.Method(i)
			if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() {
				continue
			}
			found++
			name := owner + "." + m.Name
			as, ok := listedAs[name]
			if !ok {
				as = strings.ToLower(m.Name[:1]) + m.Name[1:]
			}
			if owner == "Client" && as == "bulkWrite" || owner == "Database" && as == "aggregate" {
				as = "" // those are the collection's
			}
			if !known[as] && furtherOperations[name] == nil && withoutSession[name] == "" {
				t.Errorf("nobody tests %s with a session", name)
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d methods found", found)
	}

	on(t, allKinds, func(t *testing.T, r *rig) {
		other := start(t, open(t, r.d.URI()))
		ended := start(t, r.client)
		ended.End(t.Context())
		for name, run := range furtherOperations {
			s := start(t, r.client)
			id := s.ID().String()
			r.log.reset()
			_ = run(allium.WithSession(t.Context(), s), r.coll)
			sent := r.log.of("")
			if len(sent) == 0 {
				t.Errorf("%s sends nothing", name)
			}
			for _, e := range sent {
				if got := e.Command.Lookup("lsid").String(); got != id {
					t.Errorf("%s: %s has lsid %s, want %s", name, e.CommandName, got, id)
				}
			}
			s.End(t.Context())
			r.log.reset()
			if err := run(allium.WithSession(t.Context(), other), r.coll); err == nil || !strings.Contains(err.Error(), "another client") {
				t.Errorf("%s with the session of another client: %v", name, err)
			}
			if err := run(allium.WithSession(t.Context(), ended), r.coll); err == nil || !strings.Contains(err.Error(), "session has ended") {
				t.Errorf("%s with a session that has ended: %v", name, err)
			}
			if n := len(r.log.of("")); n != 0 {
				t.Errorf("%s: %d commands were sent", name, n)
			}
		}
	})
}
