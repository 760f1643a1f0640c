package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"allium/internal/requirements"
)

// checkout makes a folder that looks like a checkout of the specifications.
func checkout(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	texts["driver-mantras.md"] = ""
	for name, text := range texts {
		file := filepath.Join(dir, "source", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTrace(t *testing.T) {
	t.Chdir("../../../..")
	trace := func(texts, fn, draft string) (string, int, error) {
		var b strings.Builder
		n, err := run(&b, texts, fn, draft)
		return b.String(), n, err
	}
	files, err := requirements.Load()
	if err != nil {
		t.Fatal(err)
	}
	text, n, err := trace("", "", "")
	if err != nil || n > 0 {
		t.Errorf("%d amiss, %v:\n%s", n, err, text)
	}
	for _, f := range files {
		if !strings.Contains(text, f.Spec) {
			t.Errorf("the table lacks %s", f.Spec)
		}
	}

	if _, _, err := trace(t.TempDir(), "", ""); err == nil || !strings.Contains(err.Error(), requirements.Commit) || !strings.Contains(err.Error(), "git clone") {
		t.Errorf("a folder that is no checkout: %v", err)
	}
	if _, _, err := trace("", "", "a/b.md"); err == nil {
		t.Error("a draft without texts")
	}

	some := files[0].Text
	dir := checkout(t, map[string]string{some: "## Part\n\nIt MUST be new.\n", "new/new.md": "It MUST.\n"})
	text, n, err = trace(dir, "", "")
	if err != nil || n == 0 {
		t.Errorf("%d amiss, %v", n, err)
	}
	first := files[0].Rows[0]
	for _, want := range []string{
		some + ": changed, " + first.ID + " is now ", "(Part): It MUST be new.", first.Words,
		some + ": gone, " + files[0].Rows[1].ID, files[1].Text + ": gone, with its", "new/new.md: 1 sentences and no file of rows",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}

	text, _, err = trace(dir, "", some)
	if err != nil || !strings.Contains(text, "section Part\n>> It MUST be new.\nX-1 ") {
		t.Errorf("draft %q, %v", text, err)
	}

	all := files[0].Rows
	row := all[slices.IndexFunc(all, func(r requirements.Row) bool { return len(r.Where) > 0 && len(r.Tests) > 0 })]
	text, _, err = trace("", row.Where[0], "")
	if err != nil || !strings.Contains(text, row.ID) || !strings.Contains(text, row.Tests[0]) {
		t.Errorf("-func %s: %v:\n%s", row.Where[0], err, text)
	}
	if _, _, err := trace("", "no.such", ""); err == nil {
		t.Error("-func with a name that no row has")
	}
}
