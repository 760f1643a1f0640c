// Package vocabulary writes down which stages and operators servers know, as mongotest has them:
// the table that allium-vet checks programs with. A test compares the two.
package vocabulary

import (
	"fmt"
	"slices"
	"strings"

	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/qe"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
)

// kinds are the names that lines begin with, for the features of package release.
var kinds = map[release.Kind]string{
	release.Filter: "filter", release.Stage: "stage", release.Expression: "expression",
	release.Accumulator: "accumulator", release.Window: "window",
}

// Text returns the table: a line for each name, with its kind, where it may stand, and the versions
// that have it.
//
//	filter $sampleRate top since=4.4.2
//
// A name with several ranges of versions has a line for each. Operators of the server's own, which
// begin with "$_", are left out.
func Text() string {
	places := map[string]string{} // by kind and name
	note := func(kind, name, place string) { places[kind+" "+name] = place }
	top, field := query.FilterOperators()
	for _, name := range top {
		note("filter", name, "top")
	}
	for _, name := range field {
		note("filter", name, "field")
	}
	for _, name := range query.UpdateOperators() {
		note("update", name, "")
	}
	for _, name := range slices.Concat(expr.Operators(), qe.Expressions()) {
		note("expression", name, "")
	}
	for _, name := range expr.Accumulators() {
		note("accumulator", name, "")
	}
	for _, name := range pipeline.WindowFunctions() {
		note("window", name, "")
	}
	for _, p := range pipeline.Places() {
		var words []string
		for word, is := range map[string]bool{"first": p.First, "last": p.Last, "update": p.Update, "stream": p.Stream,
			"nofacet": p.NotInFacet} {
			if is {
				words = append(words, word)
			}
		}
		slices.Sort(words)
		note("stage", p.Name, strings.Join(words, ","))
	}
	ranges := map[string][]string{}
	for _, f := range release.Features {
		kind, ok := kinds[f.Kind]
		if !ok {
			continue
		}
		for _, name := range strings.Fields(f.Names) {
			key := kind + " " + name
			if _, ok := places[key]; !ok {
				note(kind, name, "") // servers have it, mongotest does not
			}
			var bounds []string
			if f.Since != (release.Version{}) {
				bounds = append(bounds, "since="+f.Since.String())
			}
			if f.Until != (release.Version{}) {
				bounds = append(bounds, "until="+f.Until.String())
			}
			ranges[key] = append(ranges[key], strings.Join(bounds, " "))
		}
	}
	var lines []string
	for key, place := range places {
		if strings.Contains(key, " $_") {
			continue
		}
		if place == "" {
			place = "-"
		}
		rows := ranges[key]
		if len(rows) == 0 {
			rows = []string{""}
		}
		for _, bounds := range rows {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", key, place, bounds)))
		}
	}
	slices.Sort(lines)
	return "# Stages and operators as mongotest has them. Made by: go run ./mongotest/internal/vocabulary/cmd/vocabulary\n" + strings.Join(lines, "\n") + "\n"
}
