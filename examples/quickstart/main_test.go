package main

import (
	"strings"
	"testing"
)

func TestQuickstart(t *testing.T) {
	if testing.Short() {
		t.Skip("imports the whole standard library")
	}
	t.Setenv("MONGODB_URI", "")
	var out, errs strings.Builder
	if err := run(t.Context(), &out, &errs); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	for _, want := range []string{"Imported", "duplicate key", "net/http", "Every count agrees"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("report lacks %q:\n%s", want, out.String())
		}
	}
	if errs.Len() > 0 {
		t.Errorf("standard error is no terminal, but got %q", errs.String())
	}
}
