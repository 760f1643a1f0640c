package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/migrate"
)

// TestSchema goes the way of a pipeline: what is declared is planned, applied, and found to be
// there; the exit status says whether there is a difference.
func TestSchema(t *testing.T) {
	d := mongotest.Start(t)
	uri := "mongodb://" + d.Hosts()[0] + "/shop"
	file := filepath.Join(t.TempDir(), "schema.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"collections": [{"name": "orders", "indexes": [{"key": {"number": 1}, "unique": true}, {"key": {"city": 1}}]}]}`)
	out, _ := tool(t, differs, "schema", "plan", "-file", file, uri)
	if !strings.Contains(out, "create  orders.number_1") {
		t.Errorf("plan prints %q", out)
	}
	out, _ = tool(t, succeeded, "schema", "apply", "-file", file, uri)
	if strings.Count(out, "\n") != 3 {
		t.Errorf("apply prints %q", out)
	}
	for _, action := range []string{"plan", "apply"} {
		if out, errs := tool(t, succeeded, "schema", action, "-file", file, "-whole", uri); out != "" || errs != "" {
			t.Errorf("the second %s prints %q, %q", action, out, errs)
		}
	}
	write(`{"collections": [{"name": "orders", "indexes": [{"key": {"number": 1}}]}]}`)
	out, _ = tool(t, differs, "schema", "plan", "-json", "-file", file, uri)
	for line := range strings.Lines(out) {
		var c changeJSON
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.Collection != "orders" || c.Action != "drop" && c.Action != "rebuild" {
			t.Errorf("%s: %v", line, err)
		}
	}
	if out, errs := tool(t, succeeded, "schema", "apply", "-file", file, uri); out != "" || !strings.Contains(errs, "orders.city_1") {
		t.Errorf("apply without -drop prints %q, %q", out, errs)
	}
	if out, errs := tool(t, succeeded, "schema", "apply", "-drop", "-only", "orders.city_1", "-file", file, uri); strings.Count(out, "\n") != 1 || !strings.Contains(errs, "orders.number_1") {
		t.Errorf("apply -only prints %q, %q", out, errs)
	}
	if out, _ := tool(t, succeeded, "schema", "export", uri); !strings.Contains(out, "package schema") || !strings.Contains(out, "Unique: true") {
		t.Errorf("export prints %q", out)
	}
	out, _ = tool(t, succeeded, "schema", "export", "-format", "json", uri)
	write(out)
	tool(t, succeeded, "schema", "diff", uri, file)
	tool(t, differs, "schema", "diff", uri, "mongodb://"+d.Hosts()[0]+"/empty")
	for _, args := range [][]string{{}, {"look", uri}, {"plan", uri}, {"plan", "-file", file}, {"diff", uri}, {"export", "-file", file, uri}, {"export", "-format", "xml", uri}, {"apply", "-only", "x", "-file", file, uri}} {
		tool(t, misused, append([]string{"schema"}, args...)...)
	}
	tool(t, failed, "schema", "plan", "-file", file+"x", uri)
	tool(t, misused, "schema", "export", "mongodb://"+d.Hosts()[0])
}

// TestMigrate lists steps, with and without those of the program, and unlocks.
func TestMigrate(t *testing.T) {
	d := mongotest.Start(t)
	uri := "mongodb://" + d.Hosts()[0] + "/shop"
	client, err := allium.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	nothing := func(context.Context, *allium.Database) error { return nil }
	steps := []migrate.Step{{Name: "one", Up: migrate.Once(nothing)}, {Name: "two", Up: migrate.Each("c", func(context.Context, bson.D) (any, error) { return nil, nil })}, {Name: "three", Up: migrate.Once(nothing)}}
	var text bytes.Buffer
	if err := migrate.WriteJSON(&text, steps); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "steps.json")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := tool(t, succeeded, "migrate", "unlock", uri); !strings.Contains(out, "nobody") {
		t.Errorf("unlock prints %q", out)
	}
	if _, err := migrate.Run(t.Context(), client.Database("shop"), []migrate.Step{steps[1], steps[2]}, migrate.Options{Steps: 1}); err != nil {
		t.Fatal(err)
	}
	out, _ := tool(t, differs, "migrate", "status", "-steps", file, uri)
	for _, want := range []string{"pending  one    OUT OF ORDER", "done     two    finished", "pending  three"} {
		if !strings.Contains(out, want) {
			t.Errorf("status does not say %q:\n%s", want, out)
		}
	}
	if _, err := migrate.Run(t.Context(), client.Database("shop"), steps, migrate.Options{OutOfOrder: true}); err != nil {
		t.Fatal(err)
	}
	tool(t, succeeded, "migrate", "status", "-steps", file, uri)
	if out, _ := tool(t, succeeded, "migrate", "status", "-json", uri); strings.Count(out, `"state":"done"`) != 3 {
		t.Errorf("status prints %q", out)
	}
	if err := os.WriteFile(file, []byte(`[{"name": "two", "sum": "x"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := tool(t, differs, "migrate", "status", "-steps", file, uri); !strings.Contains(out, "CHANGED") || !strings.Contains(out, "NOT AMONG") {
		t.Errorf("status prints %q", out)
	}
	for _, args := range [][]string{{}, {"run", uri}, {"status"}, {"status", "mongodb://h"}} {
		tool(t, misused, append([]string{"migrate"}, args...)...)
	}
}
