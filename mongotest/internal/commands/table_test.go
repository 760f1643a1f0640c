package commands

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"allium/mongotest/internal/server"
)

var update = flag.Bool("update", false, "write the table of commands into docs/mongotest-commands.md")

// TestTable wants the table of commands in docs/mongotest-commands.md as it is here. With -update
// it writes it there.
func TestTable(t *testing.T) {
	const file, begin, end = "../../../docs/mongotest-commands.md", "<!-- commands -->\n", "<!-- end of commands -->"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q and %q", file, begin, end)
	}
	want := []byte(before + begin + tableOfCommands() + end + after)
	if bytes.Equal(page, want) {
		return
	}
	if !*update {
		t.Fatalf("%s does not show the table of commands: go test ./mongotest/internal/commands -run TestTable -update", file)
	}
	if err := os.WriteFile(file, want, 0o666); err != nil {
		t.Fatal(err)
	}
}

// tableOfCommands has a line for all commands that differ by their names alone.
func tableOfCommands() string {
	names := map[string][]string{}
	var lines []string
	for _, c := range server.Commands() {
		line := describe(c)
		if names[line] == nil {
			lines = append(lines, line)
		}
		names[line] = append(names[line], "`"+c.Name+"`")
	}
	var b strings.Builder
	b.WriteString("| command | privileges | Stable API | where | takes | on a mongos |\n|---|---|---|---|---|---|\n")
	for _, line := range lines {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names[line], ", "), line)
	}
	return b.String()
}

// describe returns a row of the table without the command's name.
func describe(c *server.Command) string {
	list := func(words ...any) string { // pairs of a word, and whether it goes for the command
		var out []string
		for i := 0; i < len(words); i += 2 {
			if words[i+1].(bool) {
				out = append(out, words[i].(string))
			}
		}
		return strings.Join(out, ", ")
	}
	needs := c.Needs.Text
	if c.NoAuth {
		needs = "not even a user"
	}
	api := strings.Join(strings.Split(c.API.In, ""), ", ")
	if c.API.Deprecated != "" {
		api += "; deprecated in " + c.API.Deprecated
	}
	on := func(role server.Role) bool { return c.Roles == nil || slices.Contains(c.Roles, role) }
	m := &c.Mongos
	return strings.Join([]string{
		needs, api,
		list("mongod", !on(server.Mongos), "mongos", !on(server.Member), "primary", c.Where == server.OnPrimary, "secondary by read preference", c.Where == server.OptIn,
			"any member", c.Where == server.Anywhere, "admin", c.AdminOnly, "Data Lake", c.DataLake),
		list("a transaction", c.Txn == server.TxnOK, "a transaction with read concern local", c.Txn == server.TxnLocal, "a transaction that is open", c.Txn == server.TxnLater,
			"the end of a transaction", c.Txn == server.TxnEnds, "read concern", c.ReadConcern, "snapshots", c.Snapshot, "write concern", c.WriteConcern,
			"retries", c.Retryable, "document sequences", c.Sequences),
		list("config servers", m.Config, "all shards of the collection", m.Catalog != nil, "writes documents", m.Documents, "shows shards", m.ShowsShards || m.Reply != nil,
			"forgets what it knows", m.Forgets != nil),
	}, " | ")
}

// A row without privileges is refused: nothing falls through to every user, or to none.
func TestNeeds(t *testing.T) {
	for _, c := range []*server.Command{{Name: "without"}, {Name: "free", NoAuth: true, Needs: server.Free}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was registered", c.Name)
				}
			}()
			server.Register(c)
		}()
	}
}
