package bench

import (
	"os"
	"strings"
	"testing"
)

// TestCountsNotice: an allocation, two system calls and work that are planted in an operation are
// named, and the operation as it is is not.
func TestCountsNotice(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	env := &Env{}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	tasks, err := Tasks(env, "null/find one")
	if err != nil {
		t.Fatal(err)
	}
	was, err := count(&tasks[0])
	if err != nil {
		t.Fatal(err)
	}
	again, err := count(&tasks[0])
	if err != nil {
		t.Fatal(err)
	}
	if again.Allocs != was.Allocs {
		t.Errorf("%d allocations, then %d", was.Allocs, again.Allocs)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		name, want string
		plant      func()
		counted    bool
	}{
		{"an allocation", "allocations", func() { kept = new([64]byte) }, true},
		{"two system calls", "system calls", func() { null.Write([]byte{1}); null.Write([]byte{1}) }, was.Calls >= 0},
		{"work", "instructions", func() {
			for i := range 100_000 {
				planted += i
			}
		}, was.Instructions >= 0},
	} {
		if !c.counted {
			t.Logf("%s: this machine does not count it", c.name)
			continue
		}
		worse := tasks[0]
		worse.Allium = func(n int) error {
			for range n {
				c.plant()
			}
			return tasks[0].Allium(n)
		}
		now, err := count(&worse)
		if err != nil {
			t.Fatal(err)
		}
		if err := was.Worse(now); err == nil || !strings.Contains(err.Error(), "null/find one: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v after %+v: %v", c.name, now, was, err)
		}
	}
}

var planted int

func TestWorse(t *testing.T) {
	short, long := Count{"null/a b", 8, 3, 1000}, Count{"null/long", 10_000, 50, -1}
	for _, c := range []struct {
		was, now Count
		want     string
	}{
		{short, short, ""},
		{short, Count{"null/a b", 7, 2, 900}, ""},
		{short, Count{"null/a b", 9, 3.5, 1090}, "null/a b: 9 allocations, were 8"},
		{short, Count{"null/a b", 8, 4, 1200}, "null/a b: 4 system calls, were 3\nnull/a b: 1200 instructions, were 1000"},
		{short, Count{"null/a b", 8, -1, -1}, ""},
		{long, Count{"null/long", 10_900, 500, 5}, ""},
		{long, Count{"null/long", 11_100, 50, 5}, "null/long: 11100 allocations, were 10000"},
	} {
		got := ""
		if err := c.was.Worse(c.now); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v after %+v: %q, want %q", c.now, c.was, got, c.want)
		}
	}
	parsed, err := ParseCounts("# a comment\n\n" + FormatCounts([]Count{short, long}))
	if err != nil || len(parsed) != 2 || parsed["null/a b"] != short || parsed["null/long"] != long {
		t.Errorf("%v, %v", parsed, err)
	}
	if _, err := ParseCounts("null/a many\n"); err == nil {
		t.Error("a line that is no count is read")
	}
}
