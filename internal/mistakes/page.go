package mistakes

import (
	"fmt"
	"strings"
)

// operations is the page of the mistakes whose deployment was reached and had an answer; the others
// are on the first.
const operations = "errors-operations.md"

// Pages returns docs/errors.md and docs/errors-operations.md by their names: what each mistake ends
// in, with the driver and with the official one.
func Pages(texts, official map[string]string) map[string]string {
	pages := map[string]*strings.Builder{"errors.md": {}, operations: {}}
	pages["errors.md"].WriteString(intro)
	pages[operations].WriteString(operationsIntro)
	n := 0
	for _, s := range Sections() {
		b := pages["errors.md"]
		if s.Operations {
			b = pages[operations]
		}
		fmt.Fprintf(b, "## %s\n\n", s.Title)
		for _, m := range s.Mistakes {
			n++
			fmt.Fprintf(b, "### %d. %s\n\n```go\n%s\n```\n\n", n, upper(m.Name), m.Code)
			fmt.Fprintf(b, "```\n%s\n```\n\n", texts[m.Name])
			if m.Do != "" {
				b.WriteString(m.Do + "\n\n")
			}
			if text, ok := official[m.Name]; ok {
				if text == "" {
					b.WriteString("The official driver returns no error.\n\n")
				} else {
					fmt.Fprintf(b, "The official driver:\n\n```\n%s\n```\n\n", text)
				}
			}
		}
	}
	out := map[string]string{}
	for name, b := range pages {
		out[name] = strings.TrimRight(b.String(), "\n") + "\n"
	}
	return out
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

const intro = `# Errors

The errors that ordinary mistakes cause: connection strings, connecting and time on this page, [operations](errors-operations.md) on the next. The
error of an operation is one line: the command and its collection or database, the server if one was asked, the server's code by
name and number, and the cause, once. Mistakes found before anything is sent are reported in the same way. The texts are exact except for addresses,
times and identifiers: ` + "`go test ./internal/mistakes`" + ` makes every mistake and compares, and ` + "`-update`" +
	` writes these pages. Below each error
is what the official Go driver (v2) says to the same mistake, as ` + "`go -C interop test -run TestMistakes`" +
	` recorded it.

Programs should not match texts. [Package mongoerr](../mongoerr) has the types, with constants for the phase and the limit of a timeout
(` + "`mongoerr.PhaseSelection`, `mongoerr.SourceClient`" + `), and answers questions:
` + "`errors.Is(err, mongoerr.ErrDuplicateKey)`, `mongoerr.IsTimeout(err)`, `mongoerr.HasCode(err, 26)`" + `.

`

const operationsIntro = `# Errors of operations

The errors of ordinary mistakes in filters, updates, documents, cursors, transactions and indexes. [errors.md](errors.md) says how to read them, and
has those of connecting and of timeouts.

A document that does not decode is a ` + "`*mongoerr.DecodeError`" +
	`, with the document as the server sent it. It ends neither a cursor nor a
change stream: ` + "`Next` goes on behind it, and `Seq`" +
	` does unless the loop is left ([migrating.md](migrating.md#loops) has the loop). ` + "`All`" + ` and
` + "`Distinct` return everything that decodes, and a `mongoerr.DecodeErrors`" +
	` for the rest. Every other error ends the iteration.

`
