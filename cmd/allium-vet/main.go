// Command allium-vet finds mistakes in programs that use Allium or the official MongoDB driver and
// that the compiler does not see:
//
//	allium-vet ./...
//	allium-vet -fix ./...
//	go vet -vettool=$(which allium-vet) ./...
//
// A line that is meant as it is says so, with the rule and the reason:
//
//	//allium:ignore maporder the server takes the two in any order
//
// docs/vet.md lists the rules. Editors and golangci-lint take the analyzers from package vet.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"allium/cmd/allium-vet/vet"
)

// multichecker speaks the protocol of go vet as well.
func main() { multichecker.Main(vet.Analyzers...) }
