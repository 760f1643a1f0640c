package mistakes

import (
	"fmt"
	"strings"
)

// Page returns docs/errors.md: what each mistake ends in, with the driver and with the official
// one.
func Page(texts, official map[string]string) string {
	var b strings.Builder
	b.WriteString(`# Errors

The errors that ordinary mistakes cause. The error of an operation is one line: the command and its collection or database, the server
if one was asked, the server's code by name and number, and the cause, once. Mistakes found before anything is sent are reported in the
same way. The texts below are exact except for addresses, times and identifiers: ` + "`go test ./internal/mistakes`" + `
makes every mistake and compares, and ` + "`-update`" + ` writes this page. Below each error is what the official Go driver (v2) says to the same
mistake, as ` + "`go -C interop test -run TestMistakes`" + ` recorded it.

` + decoding + `

Programs should not match texts. [Package mongoerr](../mongoerr) has the types, with constants for the phase and the limit of a timeout
(` + "`mongoerr.PhaseSelection`, `mongoerr.SourceClient`" + `), and answers questions:
` + "`errors.Is(err, mongoerr.ErrDuplicateKey)`, `mongoerr.IsTimeout(err)`, `mongoerr.HasCode(err, 26)`" + `.

`)
	n := 0
	for _, s := range Sections() {
		fmt.Fprintf(&b, "## %s\n\n", s.Title)
		for _, m := range s.Mistakes {
			n++
			fmt.Fprintf(&b, "### %d. %s\n\n```go\n%s\n```\n\n", n, upper(m.Name), m.Code)
			fmt.Fprintf(&b, "```\n%s\n```\n\n", texts[m.Name])
			if m.Do != "" {
				b.WriteString(m.Do + "\n\n")
			}
			if text, ok := official[m.Name]; ok {
				if text == "" {
					b.WriteString("The official driver returns no error.\n\n")
				} else {
					fmt.Fprintf(&b, "The official driver:\n\n```\n%s\n```\n\n", text)
				}
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// decoding says on the page what becomes of documents that do not decode.
const decoding = "A document that does not decode is a `*mongoerr.DecodeError`, with the document as the server sent it. It ends neither a cursor nor a" + "\n" +
	"change stream: `Next` goes on behind it, and `Seq` does unless the loop is left ([migrating.md](migrating.md#loops) has the loop). `All` and" + "\n" +
	"`Distinct` return everything that decodes, and a `mongoerr.DecodeErrors` for the rest. Every other error ends the iteration."
