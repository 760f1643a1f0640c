package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/anystate"
	"allium/internal/terminal"
	"allium/mongotest"
)

// TestDumpAndRestore takes random states from one deployment to another, in every form.
func TestDumpAndRestore(t *testing.T) {
	for i, form := range [][]string{{}, {"-gzip"}, {"-archive"}, {"-gzip", "-archive"}, {"-archive", "-"}, {"-gzip", "-archive", "-"}} {
		d := mongotest.Start(t)
		client, err := allium.Open(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		if err := anystate.Make(t.Context(), client, rand.New(rand.NewPCG(uint64(i), 9)), anystate.Options{Major: 8, Accounts: true, NoEmptyTimestamps: true}); err != nil {
			t.Fatal(err)
		}
		place := filepath.Join(t.TempDir(), "dump")
		args := form
		switch i {
		case 0, 1:
			args = append(args, "-out", place)
		case 2, 3:
			args = append(args, place)
		}
		var out, errs bytes.Buffer
		if status := dumpDeployment(t.Context(), append(args, d.URI()), terminal.NewWriter(&out), &errs); status != 0 {
			t.Fatalf("%v: %d, %s", form, status, &errs)
		}
		if i >= 4 {
			if err := os.WriteFile(place, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		to := mongotest.Start(t)
		other, err := allium.Open(to.URI())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(t.Context())
		if status := restoreDeployment(t.Context(), []string{to.URI(), place}, io.Discard, &errs); status != 0 {
			t.Fatalf("%v: %d, %s", form, status, &errs)
		}
		want, err := anystate.Describe(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		got, err := anystate.Describe(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range anystate.Differences(got, want) {
			t.Errorf("%v: %s", form, line)
		}
	}
}

// Parts can be chosen on both sides; what is there is dropped, added to, or in the way.
func TestDumpChooses(t *testing.T) {
	d, to := mongotest.Start(t), mongotest.Start(t)
	fill := func(d *mongotest.Deployment, id any) {
		client, err := allium.Open(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		for _, ns := range []string{"app.a", "app.b", "other.c"} {
			db, coll, _ := strings.Cut(ns, ".")
			if _, err := client.Database(db).Collection(coll).InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(d, 1)
	fill(to, 2)
	dir := t.TempDir()
	var errs bytes.Buffer
	if status := dumpDeployment(t.Context(), []string{"-db", "app", "-out", dir, d.URI()}, io.Discard, &errs); status != 0 || !strings.Contains(errs.String(), "2 collections, 2 documents") {
		t.Fatalf("%d, %s", status, &errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err == nil {
		t.Error("another database is dumped")
	}
	restore := func(want int, args ...string) {
		t.Helper()
		errs.Reset()
		if status := restoreDeployment(t.Context(), append(args, to.URI(), dir), io.Discard, &errs); status != want {
			t.Errorf("%v: %d, %s", args, status, &errs)
		}
	}
	restore(0, "-db", "app", "-collection", "a")
	if a, b := countDocs(t, to.URI(), "a"), countDocs(t, to.URI(), "b"); a != 2 || b != 1 {
		t.Errorf("%d and %d documents", a, b)
	}
	restore(failed) // the documents of a are there
	if !strings.Contains(errs.String(), "E11000") {
		t.Error(&errs)
	}
	restore(0, "-drop")
	if a, b := countDocs(t, to.URI(), "a"), countDocs(t, to.URI(), "b"); a != 1 || b != 1 {
		t.Errorf("%d and %d documents", a, b)
	}
	for _, args := range [][]string{{}, {"-collection", "c", "mongodb://x"}, {"nonsense"}, {"a", "b"}} {
		if status := dumpDeployment(t.Context(), args, io.Discard, io.Discard); status != misused {
			t.Errorf("dump %v: %d", args, status)
		}
	}
	for _, args := range [][]string{{}, {to.URI()}, {to.URI(), filepath.Join(dir, "none")}, {"nonsense", dir}} {
		if status := restoreDeployment(t.Context(), args, io.Discard, io.Discard); status != misused {
			t.Errorf("restore %v: %d", args, status)
		}
	}
}
