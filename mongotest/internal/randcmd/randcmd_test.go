package randcmd

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
)

// TestRules runs some cases on each kind of deployment. The command of this package runs more.
func TestRules(t *testing.T) {
	for _, x := range []struct {
		version string
		sharded bool
		cases   uint64
	}{{"4.4.0", false, 400}, {"8.0", false, 200}, {"4.4.0", true, 60}} {
		t.Run(fmt.Sprint(x.version, " sharded ", x.sharded), func(t *testing.T) {
			t.Parallel()
			c, err := Open(x.version, x.sharded)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for seed := range x.cases {
				f, err := c.Run(seed)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if f != nil {
					t.Error(f)
				}
			}
		})
	}
}

// TestBrokenRules makes commands wrong on their way to the server: each kind is found, and made
// small.
func TestBrokenRules(t *testing.T) {
	never := d{e("zz", int32(1))}
	for rule, alter := range map[string]func(cmd d) d{
		"count": func(cmd d) d {
			if cmd[0].Key == "count" {
				return with(cmd, "query", never)
			}
			return cmd
		},
		"find: hint": func(cmd d) d {
			if hint, _ := get(cmd, "hint"); len(cmd) > 2 && cmd[0].Key == "find" && hint == "_id_" && cmd[1].Key == "filter" {
				return with(cmd, "filter", never)
			}
			return cmd
		},
		"aggregate: $facet": func(cmd d) d {
			if v, _ := get(cmd, "pipeline"); cmd[0].Key == "aggregate" && strings.Contains(show(v), `{"$unwind":"$f"}`) {
				return with(cmd, "pipeline", a{d{e("$match", never)}})
			}
			return cmd
		},
		"delete: counts": func(cmd d) d {
			if cmd[0].Key == "delete" {
				return with(cmd, "deletes", a{d{e("q", never), e("limit", int32(0))}})
			}
			return cmd
		},
		"update: counts": func(cmd d) d {
			list, _ := get(cmd, "updates")
			if updates, ok := list.(a); ok && len(updates) == 1 {
				if one, ok := updates[0].(d); ok && len(one) > 1 {
					return with(cmd, "updates", a{with(one, "q", d{e("$and", a{filterOf(one, "q"), never})})})
				}
			}
			return cmd
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c, err := Open("4.4.0", false)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.alter = alter
			for seed := range uint64(500) {
				f, err := c.Run(seed)
				if err != nil {
					t.Fatal(err)
				}
				if f == nil {
					continue
				}
				if f.Rule != rule || len(f.Case.Docs) > 1 || len(f.Case.Indexes) > 0 || len(show(f.Case.Docs)) > 100 {
					t.Errorf("found %v", f)
				}
				return
			}
			t.Error("nothing is found")
		})
	}
}

// TestOddReplies has the replies that no command may have.
func TestOddReplies(t *testing.T) {
	for text, want := range map[string]string{
		`{"ok": 1.0}`: "", `{"ok": 0.0, "errmsg": "x", "code": 2}`: "", `{"ok": 0.0}`: "an error without a text", `{"ok": 0.0, "errmsg": "x", "code": 1}`: "an internal error",
		`{"ok": 1.0, "writeErrors": [{"code": 1, "errmsg": "x"}]}`: "an internal error", `{"ok": 0.0, "errmsg": "x", "code": 50}`: "out of time",
	} {
		if got := oddReply(parse(t, text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func parse(t *testing.T, text string) bson.Raw {
	t.Helper()
	raw, err := bson.ParseExtJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
