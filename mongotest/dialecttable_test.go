package mongotest_test

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
	"allium/mongotest/internal/golden"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
)

var updateDialects = flag.Bool("dialects.update", false, "write the table of dialects into docs/mongotest-versions.md")

// TestDialectTable wants the table in docs/mongotest-versions.md which says of each command, and of
// each version that speaks in another way, where the words come from that it has for wrong
// arguments: with -dialects.update it writes it there. What parser a command has is found by asking
// it. A command of which neither a recording nor the suite of 7.0.8 knows errors, nor a definition
// says which arguments there are, has to be in unheard, with the reason.
func TestDialectTable(t *testing.T) {
	norace.Skip(t, "one command comes after the other, and there are thousands")
	const file, begin, end = "../docs/mongotest-versions.md", "<!-- dialects -->\n", "<!-- end of dialects -->"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q and %q", file, begin, end)
	}
	want := []byte(before + begin + tableOfDialects(t) + end + after)
	if bytes.Equal(page, want) {
		return
	}
	if !*updateDialects {
		t.Fatalf("%s does not show the table of dialects: go test ./mongotest -run TestDialectTable -dialects.update", file)
	}
	if err := os.WriteFile(file, want, 0o666); err != nil {
		t.Fatal(err)
	}
}

// unheard are commands of whose errors nothing is known, by the reason.
var unheard = func() map[string]string {
	m := map[string]string{}
	for why, names := range map[string]string{
		"answered by the service of search indexes": `createSearchIndexes dropSearchIndex listSearchIndexes updateSearchIndex`,
		"of mongotest, no server has them":          `dropSnapshot listSnapshots restoreSnapshot saveSnapshot`,
		"of the server's own tests":                 `testDeprecation testDeprecationInVersion2 testRemoval testVersion2 testVersions1And2`,
		"of members for each other, or of an operator's hands": `_isSelf replSetAbortPrimaryCatchUp replSetGetRBID replSetHeartbeat replSetMaintenance 
		replSetRequestVotes replSetResizeOplog replSetStepDownWithForce replSetStepUp 
		replSetSyncFrom replSetTest replSetUpdatePosition`,
		"nobody has published its errors": `appendOplogNote balancerStop checkMetadataConsistency 
		connPoolStats connPoolSync coordinateCommitTransaction 
		getClusterParameter getDatabaseVersion getDiagnosticData hello invalidateUserCache 
		moveRange reapLogicalSessionCacheNow refreshLogicalSessionCacheNow removeShardFromZone 
		reshardCollection rotateCertificates setClusterParameter setFreeMonitoring 
		shardConnPoolStats shutdown stopRecordingTraffic unshardCollection abortMoveCollection abortReshardCollection 
		abortUnshardCollection commitReshardCollection moveCollection`,
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = why
		}
	}
	return m
}()

func tableOfDialects(t *testing.T) string {
	recorded, heard := recordedErrors(t), suiteCommands()
	names := map[string][]string{}
	var lines []string
	for _, c := range server.Commands() {
		var cells []string
		sourced := false
		for i, version := range dialects {
			parser := parserOf(t, c, version)
			switch {
			case parser == "":
				cells = append(cells, "")
				continue
			case i == 0 && recorded[c.Name]:
				parser, sourced = parser+", recorded", true
			case i > 0 && heard[c.Name]:
				parser, sourced = parser+", 7.0.8", true
			case parser == byDefinition:
				sourced = true
			}
			cells = append(cells, parser)
		}
		if c.Needs.Text == server.Internal.Text {
			cells = []string{"", "", "", "", "between servers: clients get as far as the privilege"}
			line := strings.Join(cells, " | ")
			if names[line] == nil {
				lines = append(lines, line)
			}
			names[line] = append(names[line], "`"+c.Name+"`")
			continue
		}
		if !sourced && unheard[c.Name] == "" {
			t.Errorf("%s: nothing says which words it has for wrong arguments", c.Name)
		}
		if sourced && unheard[c.Name] != "" {
			t.Errorf("%s is in the list of commands of which nothing is known", c.Name)
		}
		line := strings.Join(cells, " | ")
		if why := unheard[c.Name]; why != "" {
			line += " | " + why
		} else {
			line += " |"
		}
		if names[line] == nil {
			lines = append(lines, line)
		}
		names[line] = append(names[line], "`"+c.Name+"`")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| command | %s | |\n|---|%s---|\n", strings.Join(dialects, " | "), strings.Repeat("---|", len(dialects)))
	for _, line := range lines {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names[line], ", "), line)
	}
	return b.String()
}

// The parsers that there are.
const (
	byDefinition = "definition" // generated: it refuses fields that it does not know, and says so as all do
	byHand       = "by hand"    // it refuses them in other words
	takesAll     = "takes all"  // it takes them
)

// parserOf asks a command of a version what it does with a field that it does not know: empty if
// the version does not have it.
func parserOf(t *testing.T, c *server.Command, version string) string {
	const unknown = "noSuchField"
	v, err := release.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	if !v.Has(release.Command, c.Name) {
		return ""
	}
	role := mongotest.ReplicaSet(1)
	if c.Roles != nil && !slices.Contains(c.Roles, server.Member) {
		role = mongotest.Sharded(1, 1)
	}
	answer := takesAll
	synctest.Test(t, func(t *testing.T) { // no time passes while a member steps down
		d := mongotest.Start(t, role, mongotest.Version(version), mongotest.InMemory(), mongotest.NoScripting())
		db := "db"
		if c.AdminOnly {
			db = "admin"
		}
		ok(t, askText(t, dialNode(t, d, d.Node(0)), "db", `{"create": "c"}`)) // what is missing may be an error that comes first
		for _, value := range []any{"c", "db.c", 1, bson.A{}, bson.D{}, int64(1), true} {
			text := errorOrHangUp(t, dialNode(t, d, d.Node(0)), bson.D{{Key: c.Name, Value: value}, {Key: unknown, Value: 1}, {Key: "$db", Value: db}})
			if strings.HasPrefix(text, "40415: ") {
				answer = byDefinition
				return
			}
			if strings.Contains(text, unknown) {
				answer = byHand
			}
		}
	})
	return answer
}

// errorOrHangUp is errorOf, or nothing of a command that ends its connection.
func errorOrHangUp(t *testing.T, c net.Conn, cmd bson.D) string {
	raw, err := bson.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if hangsUp[cmd[0].Key] {
		return ""
	}
	return errorOf(command(t, c, raw))
}

// hangsUp are commands that answer nothing once they run.
var hangsUp = map[string]bool{"shutdown": true}

// recordedErrors are the commands of which a recording has an error.
func recordedErrors(t *testing.T) map[string]bool {
	files, err := filepath.Glob("testdata/golden/*/*.json*")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings")
	}
	names := map[string]bool{}
	for _, file := range files {
		cases, err := golden.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			for _, s := range c.Steps {
				if s.Quiet || s.Reply.Lookup("errmsg").IsZero() {
					continue
				}
				for name := range s.Command.All() {
					names[name] = true
					break
				}
			}
		}
	}
	return names
}

// suiteCommands are the commands in TestDialect.
func suiteCommands() map[string]bool {
	names := map[string]bool{}
	for _, test := range dialectTests {
		name, _, _ := strings.Cut(strings.TrimPrefix(test.cmd, `{"`), `"`)
		names[name] = true
	}
	return names
}
