package main

import (
	"os"
	"strings"
	"testing"
)

// The page has the modules that are linked, at the versions that are required.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.ReplaceAll(string(text), "\r\n", "\n")
	got, err := fill("../..", old)
	if err != nil {
		t.Fatal(err)
	}
	if got != old {
		t.Errorf("docs/dependencies.md is not what is linked: go run ./tools/licences\n%s", got)
	}
	if strings.Count(got, "\n| `") < 10 {
		t.Errorf("too few modules:\n%s", got)
	}
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		"  Apache License\n  Version 2.0, January 2004":                                                "Apache-2.0",
		"Redistribution and use in source and binary forms are permitted.\nNeither the name of X nor":  "BSD-3-Clause",
		"Redistribution and use in source and\nbinary forms are permitted.":                            "BSD-2-Clause",
		"MIT\n\nPermission is hereby granted, free\nof charge, to any person obtaining a copy":         "MIT",
		"Apache License Version 2.0 and, for parts: Redistribution and use in source and binary forms": "Apache-2.0, BSD-2-Clause",
		"Server Side Public License":                  "",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3": "",
	} {
		if got := classify(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if _, err := licenceOf(t.TempDir()); err == nil {
		t.Error("a module without a licence")
	}
	if _, err := fill("../..", "no mark"); err == nil {
		t.Error("a page without the mark")
	}
}
