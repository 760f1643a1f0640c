// Package vet has analyzers that find mistakes in the use of a MongoDB driver: Allium, and the
// official one, versions 1 and 2. Each is an ordinary analysis.Analyzer, for go vet, editors and
// golangci-lint. A finding is meant to be a mistake: where the source does not say what a value is,
// the analyzers are silent.
//
//	driver.go     what the drivers are: packages, operations, and what their arguments mean
//	site.go       finds the arguments of a package's operations, for all rules
//	document.go   reads documents and pipelines that are written in the source
//	variable.go   what a variable holds
//	walk.go       goes through filters, updates and pipelines as a server reads them
//	operator.go   the table of stages and operators, which is mongotest's
//	report.go     reports findings, unless a comment says //allium:ignore RULE REASON
//
// The other files are a rule each. [Analyzers] lists them.
package vet

import "golang.org/x/tools/go/analysis"

// Analyzers are all rules, by name.
var Analyzers = []*analysis.Analyzer{
	ClientPerRequest,
	Credentials,
	EmptyFilter,
	ErrCompare,
	Injection,
	LostContext,
	MapOrder,
	Operators,
	OuterContext,
	SetStruct,
	Tags,
	Unclosed,
	UpdateForm,
}
