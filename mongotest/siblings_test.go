package mongotest_test

import (
	"testing"

	"allium/mongotest"
)

// sibling is a question that no recording has, though it has others of its kind. The wanted answer
// is a first batch, or an error with its code and text.
type sibling struct{ version, docs, cmd, want string }

// siblings follow what the manual says, what others saw servers of the version answer, and the
// words of recordings of the same kind.
var siblings = []sibling{
	// Only operators are refused in $all, not every name with a dollar sign.
	{"4.4.0", `[{"_id": 1, "v": ["x"]}]`, find(`{"v": {"$all": [{"$unknown": "x"}]}}`, `{}`), ``},
	{"8.0", `[{"_id": 1, "v": ["x"]}]`, find(`{"v": {"$all": ["x", {"$unknown": "x"}]}}`, `{}`), ``},
	{"8.0", `[{"_id": 1, "v": ["x"]}]`, find(`{"v": {"$all": ["x", {"$gt": "x"}]}}`, `{}`), `2: no $ expressions in $all`},
	{"8.0", `[{"_id": 1, "v": ["x"]}]`, find(`{"v": {"$all": ["x", {"$eq": "x"}]}}`, `{}`), `2: no $ expressions in $all`},
	{"8.0", `[{"_id": 1, "v": ["x"]}]`, find(`{"v": {"$in": [{"$unknown": "x"}]}}`, `{}`), `2: cannot nest $ under $in`},
}

// TestSiblings asks what recordings leave out.
func TestSiblings(t *testing.T) { askSiblings(t, siblings) }

// askSiblings asks each on its documents, after commands that prepare their collection.
func askSiblings(t *testing.T, all []sibling, prepare ...string) {
	t.Helper()
	versions := map[string][]sibling{}
	for _, s := range all {
		versions[s.version] = append(versions[s.version], s)
	}
	for version, list := range versions {
		t.Run(version, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
			c := dialNode(t, d, d.Node(0))
			ok(t, askText(t, c, "db", `{"create": "c"}`)) // so that there is something to drop
			for _, s := range list {
				answer := askMeasured(t, c, measured{docs: s.docs, cmd: s.cmd}, prepare...)
				if len(answer) > 0 && answer[0] != '{' {
					reply := askText(t, c, "db", s.cmd)
					if e, ok := reply.Lookup("writeErrors", "0").Document(); ok {
						reply = e
					}
					answer = errorOf(reply)
				}
				if answer != s.want {
					t.Errorf("%s: %s\ngot  %s\nwant %s", s.docs, s.cmd, answer, s.want)
				}
			}
		})
	}
}

// askExplain returns the parsed query of an explain.
func askExplain(t *testing.T, s sibling, prepare ...string) string {
	t.Helper()
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(s.version), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	for _, cmd := range append([]string{`{"insert": "c", "documents": ` + s.docs + `}`}, prepare...) {
		ok(t, askText(t, c, "db", cmd))
	}
	reply := ok(t, askText(t, c, "db", s.cmd))
	return reply.Lookup("queryPlanner", "parsedQuery").String()
}
