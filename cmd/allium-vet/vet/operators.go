package vet

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"
)

// Operators finds stages and operators that no server has, that the declared version lacks, or that
// stand where they cannot.
var Operators = &analysis.Analyzer{
	Name:     "operators",
	Doc:      "find unknown and misplaced stages and operators\n\nbson.M{\"$gte\": 5} is no filter, bson.M{\"price\": bson.M{\"$gte\": 5}} is. With -operators.server=6.0 also those that this version lacks.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runOperators,
}

var serverVersion = ""

func init() {
	Operators.Flags.StringVar(&serverVersion, "server", "",
		"the oldest server `version` that the program runs on, such as 6.0")
}

func runOperators(pass *analysis.Pass) (any, error) {
	var server version
	if serverVersion != "" {
		v, err := parseVersion(serverVersion)
		if err != nil {
			return nil, err
		}
		server = v
	}
	u := usageOf(pass)
	done := map[ast.Node]bool{} // a document may be an argument twice
	w := &walker{usage: u}
	w.misplaced = func(n ast.Node, format string, args ...any) {
		if !done[n] {
			done[n] = true
			report(pass, n, nil, format, args...)
		}
	}
	w.word = func(e entry, kind, place string) {
		switch {
		case done[e.node]:
			return
		case !known(kind, e.key):
			report(pass, e.node, correction(e, kind), "unknown %s %s%s", kindNames[kind], e.key, hint(kind, e.key))
		case place != "" && kind == "stage" && !placed(kind, e.key, place):
			report(pass, e.node, nil, "%s is no stage %s", e.key, stagePlaces[place])
		case serverVersion != "" && missingIn(server, kind, e.key) != "":
			report(pass, e.node, nil, "%s %s is not in server %s: %s", kindNames[kind], e.key, serverVersion,
				missingIn(server, kind, e.key))
		default:
			return
		}
		done[e.node] = true
	}
	for _, s := range u.sites {
		w.walk(s)
	}
	return nil, nil
}

var kindNames = map[string]string{
	"filter": "operator of filters", "update": "update operator", "stage": "stage",
	"expression":  "operator of expressions",
	"accumulator": "accumulator", "window": "window function",
}

var stagePlaces = map[string]string{"update": "of an update", "stream": "of a change stream"}

// hint says what an unknown name may have been meant as.
func hint(kind, name string) string {
	if near := nearest(kind, name); near != "" {
		return ": " + near + " is meant"
	}
	for _, other := range []string{"filter", "update", "stage", "expression", "accumulator"} {
		if other != kind && known(other, name) {
			return ": it is " + article[other] + " " + kindNames[other]
		}
	}
	return ""
}

var article = map[string]string{"filter": "an", "update": "an", "stage": "a", "expression": "an", "accumulator": "an"}

// correction replaces a misspelt name.
func correction(e entry, kind string) []analysis.SuggestedFix {
	lit, ok := e.name.(*ast.BasicLit)
	near := nearest(kind, e.key)
	if !ok || near == "" {
		return nil
	}
	return fix("Write "+near, replace(lit, `"`+near+`"`))
}
