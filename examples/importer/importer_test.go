package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
)

// set makes a deployment for the command, and a collection of it.
func set(t *testing.T) (*mongotest.Deployment, *allium.Collection[bson.Raw]) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	t.Setenv("MONGODB_URI", d.URI())
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return d, allium.CollectionOf[bson.Raw](client.Database("shop"), "books")
}

func file(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "books.jsonl")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// many is a file of n documents.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"n\": %d}\n", i)
	}
	return b.String()
}

func TestImport(t *testing.T) {
	_, books := set(t)
	if _, err := books.CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "isbn", Value: 1}}, Unique: true}); err != nil {
		t.Fatal(err)
	}
	name := file(t, `{"_id": {"$oid": "5f0000000000000000000000"}, "isbn": "1", "added": {"$date": "2026-01-02T03:04:05Z"}}

{"isbn": "2"}
{"isbn": "3"
{"isbn": "2", "title": "again"}
{"_id": 7, "isbn": "4"}`)
	for _, want := range []string{
		"100 %: 3 stored, 0 there already, 2 refused",
		"100 %: 0 stored, 3 there already, 2 refused", // a second time
	} {
		var out bytes.Buffer
		err := run(t.Context(), "shop.books", name, &out)
		if err == nil || err.Error() != "2 lines are not stored" {
			t.Errorf("it says %v", err)
		}
		for _, want := range []string{want, "line 4: ", "line 5: ", "DuplicateKey"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the output lacks %q:\n%s", want, &out)
			}
		}
	}
	if n, err := books.CountDocuments(t.Context(), bson.M{"added": bson.M{"$type": "date"}}); n != 1 || err != nil {
		t.Errorf("dates: %d, %v", n, err)
	}
	if _, err := books.FindOne(t.Context(), bson.M{"_id": "books.jsonl:3", "isbn": "2"}); err != nil {
		t.Error(err)
	}
}

// Connections that break on the way lose nothing and store nothing twice.
func TestFaults(t *testing.T) {
	d, books := set(t)
	d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 3, CloseConnection: true})
	var out bytes.Buffer
	if err := run(t.Context(), "shop.books", file(t, many(9500)), &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if n, err := books.CountDocuments(t.Context(), bson.D{}); n != 9500 || err != nil || !strings.Contains(out.String(), "9500 stored") {
		t.Errorf("%d documents, %v\n%s", n, err, &out)
	}
}

// An import that is interrupted goes on when it is run again.
func TestInterrupted(t *testing.T) {
	d, books := set(t)
	ctx, interrupt := context.WithCancel(t.Context())
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "insert" {
			interrupt()
		}
		return nil, nil
	})
	name := file(t, many(20*batchSize))
	var out bytes.Buffer
	if err := run(ctx, "shop.books", name, &out); err == nil || !strings.Contains(err.Error(), "run it again") {
		t.Errorf("it says %v", err)
	}
	before, err := books.CountDocuments(t.Context(), bson.D{})
	if before == 0 || before == 20*batchSize || err != nil {
		t.Errorf("%d documents, %v", before, err)
	}
	if err := run(t.Context(), "shop.books", name, &out); err != nil {
		t.Error(err)
	}
	want := fmt.Sprintf("100 %%: %d stored, %d there already", 20*batchSize-before, before)
	if !strings.Contains(out.String(), want) {
		t.Errorf("the output lacks %q:\n%s", want, &out)
	}
}

// An error that is not of a line ends the import.
func TestRefused(t *testing.T) {
	d, _ := set(t)
	d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Code: 13})
	var out bytes.Buffer
	if err := run(t.Context(), "shop.books", file(t, many(5)), &out); !mongoerr.HasCode(err, 13) {
		t.Errorf("it says %v\n%s", err, &out)
	}
	if err := run(t.Context(), "books", file(t, ""), &out); err == nil {
		t.Error("a name without a collection")
	}
	if err := run(t.Context(), "shop.books", "no such file", &out); !os.IsNotExist(err) {
		t.Errorf("it says %v", err)
	}
}
