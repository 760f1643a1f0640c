package allium_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/gridfs"
)

type docs = allium.Collection[bson.D]

// furtherOperations are the methods and functions that take a session and are not among operations,
// by their receivers, or else their packages, and names. What they do to the deployment does not
// matter: some ask for what it lacks.
var furtherOperations = map[string]func(ctx context.Context, c *docs) error{
	"Client.BulkWrite": func(ctx context.Context, c *docs) error {
		return errorOf(c.Database().Client().BulkWrite(ctx, []allium.ClientWrite{{Database: "sessions", Collection: "docs", Model: allium.InsertModel{Document: bson.D{}}}}))
	},
	"Client.Databases":         func(ctx context.Context, c *docs) error { return errorOf(c.Database().Client().Databases(ctx)) },
	"Client.ListDatabaseNames": func(ctx context.Context, c *docs) error { return errorOf(c.Database().Client().ListDatabaseNames(ctx)) },
	"Client.Ping":              func(ctx context.Context, c *docs) error { return c.Database().Client().Ping(ctx) },
	"Client.Watch":             func(ctx context.Context, c *docs) error { return streamClosed(c.Database().Client().Watch(ctx, nil)) },
	"Collection.Count":         func(ctx context.Context, c *docs) error { return errorOf(c.Count(ctx, everything)) },
	"Collection.CreateIndexes": func(ctx context.Context, c *docs) error {
		return errorOf(c.CreateIndexes(ctx, []allium.IndexModel{{Keys: bson.D{{Key: "y", Value: 1}}}}))
	},
	"Collection.CreateSearchIndex": func(ctx context.Context, c *docs) error {
		return errorOf(c.CreateSearchIndex(ctx, allium.SearchIndexModel{Definition: bson.D{}}))
	},
	"Collection.CreateSearchIndexes": func(ctx context.Context, c *docs) error {
		return errorOf(c.CreateSearchIndexes(ctx, []allium.SearchIndexModel{{Definition: bson.D{}}}))
	},
	"Collection.DropIndexes":            func(ctx context.Context, c *docs) error { return c.DropIndexes(ctx) },
	"Collection.DropSearchIndex":        func(ctx context.Context, c *docs) error { return c.DropSearchIndex(ctx, "x") },
	"Collection.EstimatedDocumentCount": func(ctx context.Context, c *docs) error { return errorOf(c.EstimatedDocumentCount(ctx)) },
	"Collection.ListIndexNames":         func(ctx context.Context, c *docs) error { return errorOf(c.ListIndexNames(ctx)) },
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
	"Database.Collections":         func(ctx context.Context, c *docs) error { return errorOf(c.Database().Collections(ctx)) },
	"Database.ListCollectionNames": func(ctx context.Context, c *docs) error { return errorOf(c.Database().ListCollectionNames(ctx)) },
	"Database.ModifyCollection":    func(ctx context.Context, c *docs) error { return c.Database().ModifyCollection(ctx, "docs") },
	"Database.RunCursorCommand": func(ctx context.Context, c *docs) error {
		cur, err := c.Database().RunCursorCommand(ctx, bson.D{{Key: "find", Value: "docs"}})
		return drain(ctx, cur, err)
	},
	"allium.Aggregate": func(ctx context.Context, c *docs) error {
		cur, err := allium.Aggregate[bson.M](ctx, c, []bson.D{})
		return drain(ctx, cur, err)
	},
	"allium.RunCursorCommand": func(ctx context.Context, c *docs) error {
		cur, err := allium.RunCursorCommand[bson.M](ctx, c.Database(), bson.D{{Key: "find", Value: "docs"}})
		return drain(ctx, cur, err)
	},
	"Bucket.Delete":       func(ctx context.Context, c *docs) error { return bucket(c).Delete(ctx, 1) },
	"Bucket.DeleteByName": func(ctx context.Context, c *docs) error { return bucket(c).DeleteByName(ctx, "x") },
	"Bucket.DownloadToStream": func(ctx context.Context, c *docs) error {
		return errorOf(bucket(c).DownloadToStream(ctx, 1, io.Discard))
	},
	"Bucket.DownloadToStreamByName": func(ctx context.Context, c *docs) error {
		return errorOf(bucket(c).DownloadToStreamByName(ctx, "f", io.Discard))
	},
	"Bucket.Drop": func(ctx context.Context, c *docs) error {
		return gridfs.NewBucket(c.Database().Client().Database("other")).Drop(ctx)
	},
	"Bucket.FS": func(ctx context.Context, c *docs) error { return errorOf(fs.ReadFile(bucket(c).FS(ctx), "f")) },
	"Bucket.Find": func(ctx context.Context, c *docs) error {
		cur, err := bucket(c).Find(ctx, everything)
		return drain(ctx, cur, err)
	},
	"Bucket.OpenDownloadStream": func(ctx context.Context, c *docs) error { return readAll(bucket(c).OpenDownloadStream(ctx, 1)) },
	"Bucket.OpenDownloadStreamByName": func(ctx context.Context, c *docs) error {
		return readAll(bucket(c).OpenDownloadStreamByName(ctx, "f"))
	},
	"Bucket.OpenUploadStream": func(ctx context.Context, c *docs) error { return writeAll(bucket(c).OpenUploadStream(ctx, "f")) },
	"Bucket.OpenUploadStreamWithID": func(ctx context.Context, c *docs) error {
		return writeAll(bucket(c).OpenUploadStreamWithID(ctx, bson.NewObjectID(), "f"))
	},
	"Bucket.Rename":       func(ctx context.Context, c *docs) error { return bucket(c).Rename(ctx, 1, "y") },
	"Bucket.RenameByName": func(ctx context.Context, c *docs) error { return bucket(c).RenameByName(ctx, "x", "y") },
	"Bucket.UploadFromStream": func(ctx context.Context, c *docs) error {
		return errorOf(bucket(c).UploadFromStream(ctx, "f", strings.NewReader("text")))
	},
	"Bucket.UploadFromStreamWithID": func(ctx context.Context, c *docs) error {
		return bucket(c).UploadFromStreamWithID(ctx, bson.NewObjectID(), "f", strings.NewReader("text"))
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

func bucket(c *docs) *gridfs.Bucket { return gridfs.NewBucket(c.Database()) }

// readAll reads a file to its end.
func readAll(s *gridfs.DownloadStream, err error) error {
	if err != nil {
		return err
	}
	defer s.Close()
	return errorOf(io.ReadAll(s))
}

// writeAll writes a file.
func writeAll(s *gridfs.UploadStream, err error) error {
	if err != nil {
		return err
	}
	if _, err := s.Write([]byte("text")); err != nil {
		s.Abort()
		return err
	}
	return s.Close()
}

// withoutSession are the methods that take a context and no session of it.
var withoutSession = map[string]string{
	"Client.CheckRevocation": "sends no command",
	"Client.Close":           "ends all sessions",
	"Client.Transact":        "starts a session of its own",

	"ChangeStream.Close":   "has the stream's session",
	"ChangeStream.Next":    "has the stream's session",
	"ChangeStream.Seq":     "has the stream's session",
	"ChangeStream.TryNext": "has the stream's session",
	"Cursor.All":           "has the cursor's session",
	"Cursor.Batches":       "has the cursor's session",
	"Cursor.Close":         "has the cursor's session",
	"Cursor.Next":          "has the cursor's session",
	"Cursor.Seq":           "has the cursor's session",
	"Cursor.TryNext":       "has the cursor's session",

	"Session.AbortTransaction":  "is of the session",
	"Session.CommitTransaction": "is of the session",
	"Session.End":               "is of the session",
	"Session.Transact":          "is of the session",

	"allium.SessionFrom": "sends no command",
	"allium.WithSession": "sends no command",
}

// listedAs are the methods of operations whose names there are not their own.
var listedAs = map[string]string{"Collection.Drop": "dropCollection", "Database.Drop": "dropDatabase", "allium.Distinct": "distinct"}

// takingContext returns the exported functions and methods of the package in a folder whose first
// parameter is a context, by their receivers, or else the package, and names.
func takingContext(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || len(f.Type.Params.List) == 0 || !isContext(f.Type.Params.List[0].Type) {
				continue
			}
			of := file.Name.Name
			if f.Recv != nil {
				of = receiver(f.Recv.List[0].Type)
			}
			if f.Recv == nil || ast.IsExported(of) {
				names = append(names, of+"."+f.Name.Name)
			}
		}
	}
	return names
}

func isContext(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Context" {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == "context"
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	}
	return ""
}

// TestEveryOperationTakesSession: every method and function of the driver and of GridFS that takes
// a context sends the session of it, and refuses that of another client, and one that has ended.
// One that is in no list fails the test (specification: Driver Sessions, prose tests 4, 5 and 6).
func TestEveryOperationTakesSession(t *testing.T) {
	known := map[string]bool{}
	for _, op := range operations {
		known[op.name] = true
	}
	all := append(takingContext(t, "."), takingContext(t, "gridfs")...)
	exist := map[string]bool{}
	for _, name := range all {
		exist[name] = true
		of, method, _ := strings.Cut(name, ".")
		as, ok := listedAs[name]
		if !ok && of != "allium" && of != "Bucket" {
			as = strings.ToLower(method[:1]) + method[1:]
		}
		if of == "Client" && as == "bulkWrite" || of == "Database" && as == "aggregate" {
			as = "" // those are the collection's
		}
		if !known[as] && furtherOperations[name] == nil && withoutSession[name] == "" {
			t.Errorf("nobody tests %s with a session", name)
		}
	}
	for name := range furtherOperations {
		if !exist[name] {
			t.Errorf("there is no %s", name)
		}
	}
	for name := range withoutSession {
		if !exist[name] {
			t.Errorf("there is no %s", name)
		}
	}
	if len(all) < 80 {
		t.Errorf("only %d methods and functions found", len(all))
	}

	on(t, allKinds, func(t *testing.T, r *rig) {
		other := start(t, open(t, r.d.URI()))
		ended := start(t, r.client)
		ended.End(t.Context())
		for id := range 2 { // that downloads find
			if err := bucket(r.coll).UploadFromStreamWithID(t.Context(), id, "f", strings.NewReader("text")); err != nil {
				t.Fatal(err)
			}
		}
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
