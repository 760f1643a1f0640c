// Package say is how the programs say what a driver does: line by line, and what errors are.
package say

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

var out = bufio.NewWriter(os.Stdout)

// names are what types are called: those of package primitive are package bson's of version 2 in
// the drop-in, and a program sees it by %T alone.
var names = strings.NewReplacer("primitive.", "bson.", "\n", `\n`, "\t", `\t`)

// Line prints a line: what was done, and what came of it.
func Line(what string, values ...any) {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprint(v)
	}
	fmt.Fprintf(out, "%s\t%s\n", names.Replace(what), names.Replace(strings.Join(parts, " | ")))
}

// Try prints what f returns, or what it panics with.
func Try(what string, f func() []any) {
	defer func() {
		if r := recover(); r != nil {
			Line(what, "panic", fmt.Sprintf("%T", r), r)
		}
	}()
	Line(what, f()...)
}

// Flush prints what is left.
func Flush() { _ = out.Flush() }
