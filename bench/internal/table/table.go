// Package table prints what the benchmarks measured, as text or as Markdown.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Table prints rows; the columns are as wide as their widest cell.
type Table struct {
	w        *tabwriter.Writer
	markdown bool
}

// New begins a table with its heads.
func New(w io.Writer, markdown bool, heads ...string) *Table {
	t := &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), markdown}
	t.Row(heads...)
	if markdown {
		cells := make([]string, len(heads))
		for i := range cells {
			cells[i] = "---:"
		}
		cells[0] = "---"
		t.Row(cells...)
	}
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	if t.markdown {
		fmt.Fprintf(t.w, "| %s |\n", strings.Join(cells, " | "))
		return
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// End prints the table.
func (t *Table) End() error { return t.w.Flush() }

// Round returns a duration with three digits.
func Round(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}
