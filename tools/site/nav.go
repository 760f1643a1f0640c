package main

import (
	"io/fs"
	"path"
	"strings"
)

// contents are the documents in the order in which the site has them. A test wants each page of the
// repository here, once.
var contents = []chapter{
	{"Begin", []string{"README.md", "docs/guide.md", "docs/recipes.md", "docs/connecting.md", "docs/authentication.md",
		"docs/errors.md", "docs/errors-operations.md"}},
	{"Use", []string{"docs/api.md", "docs/fields.md", "docs/scopes.md", "docs/patterns.md", "docs/schema.md",
		"docs/encryption.md", "docs/vet.md", "docs/other-servers.md"}},
	{"Test", []string{"docs/mongotest.md", "docs/serve.md", "docs/search.md", "docs/mongotest-fidelity.md",
		"docs/mongotest-versions.md", "docs/mongotest-commands.md"}},
	{"Run", []string{"docs/production.md", "docs/observability.md", "docs/performance.md", "docs/performance-bson.md",
		"docs/performance-encryption.md", "docs/performance-load.md", "docs/performance-c.md",
		"docs/performance-mongotest.md", "docs/growth.md"}},
	{"Trust", []string{"docs/trust.md", "docs/guarantees.md", "docs/callbacks.md", "docs/campaigns.md", "docs/specs.md",
		".github/SUPPORT.md", ".github/SECURITY.md", "docs/maintainers.md", "docs/dependencies.md"}},
	{"Move over", []string{"docs/migrating.md", "docs/dropin.md", "docs/dropin-programs.md"}},
	{"Change it", []string{"CONTRIBUTING.md", "DESIGN.md", "mongotest/DESIGN.md", "docs/tour.md", "docs/tests.md",
		"docs/tests-packages.md", "docs/tests-mongotest.md",
		"docs/decisions.md", "docs/releasing.md", "CHANGELOG.md"}},
	{"Appendices", []string{"docs/history.md", "docs/campaign-log.md", "docs/specs-texts.md",
		"docs/specs-not-asked.md"}},
}

type chapter struct {
	Title string
	pages []string
}

// documents returns the chapters with the pages that there are, and those in docs that no chapter
// knows: an older version may have others.
func documents(files fs.FS) []chapter {
	known := map[string]bool{}
	var list []chapter
	for _, c := range contents {
		var there []string
		for _, name := range c.pages {
			known[name] = true
			if _, err := fs.Stat(files, name); err == nil {
				there = append(there, name)
			}
		}
		if len(there) > 0 {
			list = append(list, chapter{c.Title, there})
		}
	}
	others, _ := fs.Glob(files, "docs/*.md")
	var more []string
	for _, name := range others {
		if !known[name] {
			more = append(more, name)
		}
	}
	if len(more) > 0 {
		list = append(list, chapter{"More", more})
	}
	return list
}

// pageName is the file of the site that a document becomes: docs/guide.md is guide.html, and what
// lies elsewhere has its folder in its name.
func pageName(document string) string {
	name := strings.TrimSuffix(document, ".md")
	switch dir := path.Dir(name); {
	case name == "README":
		return "index.html"
	case dir == "docs" || dir == ".github" || dir == ".":
		name = path.Base(name)
	default:
		name = strings.ReplaceAll(name, "/", "-")
	}
	return strings.ToLower(name) + ".html"
}
