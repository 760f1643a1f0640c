package bench

import (
	"errors"
	"fmt"
	"strings"
)

// Count is what an operation of a task takes that does not depend on how fast the machine is, or
// how busy.
type Count struct {
	Task         string
	Allocs       uint64
	Calls        float64 // system calls that read and write; -1 where they cannot be counted
	Instructions float64 // of the program, not of the kernel; -1 where they cannot be counted
}

// counted is what the names of the tasks begin with that Counts counts: their replies are the same
// each time.
const counted = "null/"

// countRounds is how often a task is counted: the least of each figure counts.
const countRounds = 5

// Counts counts what Allium takes for each task against the null server.
func Counts(env *Env) ([]Count, error) {
	tasks, err := Tasks(env, counted)
	if err != nil {
		return nil, err
	}
	var all []Count
	for i := range tasks {
		c, err := count(&tasks[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tasks[i].Name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// count counts a task. It needs some tenths of a second.
func count(t *Task) (Count, error) {
	defer t.done()
	n := 1000
	if err := t.Allium(1); err != nil { // it connects
		return Count{}, err
	}
	if first, err := take(t.Before, t.Allium, 1, false); err != nil {
		return Count{}, err
	} else if first.allocs > 200 { // a long operation
		n = 5
	}
	c := Count{Task: t.Name, Calls: -1, Instructions: -1}
	for round := range countRounds {
		var now turn
		instructions, err := countInstructions(func() (err error) {
			now, err = take(t.Before, t.Allium, n, false)
			return err
		})
		if err != nil {
			return Count{}, err
		}
		each := instructions
		if each > 0 {
			each /= float64(n)
		}
		if round == 0 {
			c.Allocs, c.Calls, c.Instructions = now.allocs, now.calls, each
			continue
		}
		c.Allocs, c.Calls, c.Instructions = min(c.Allocs, now.allocs), min(c.Calls, now.calls),
			min(c.Instructions, each)
	}
	return c, nil
}

// Worse returns an error that names what now takes more of than c, nil if that is nothing. Up to
// 100 allocations are exact; more vary by a tenth, with what goroutines do at the same time. System
// calls are compared for such short operations only: one exchange takes two or three, and how many
// a long reply takes depends on how it arrives. Of instructions, a tenth more are noticed.
func (c Count) Worse(now Count) error {
	var errs []error
	check := func(what string, was, now, most float64) {
		if was >= 0 && now > most {
			errs = append(errs, fmt.Errorf("%s: %.5g %s, were %.5g", c.Task, now, what, was))
		}
	}
	allocs := float64(c.Allocs)
	if c.Allocs > 100 {
		allocs *= 1.1
	}
	check("allocations", float64(c.Allocs), float64(now.Allocs), allocs)
	if c.Allocs <= 100 {
		check("system calls", c.Calls, now.Calls, c.Calls+0.66)
	}
	check("instructions", c.Instructions, now.Instructions, 1.1*c.Instructions)
	return errors.Join(errs...)
}

// FormatCounts writes counts as a table, which ParseCounts reads.
func FormatCounts(all []Count) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%-36s %8d %8.1f %12.0f\n", strings.ReplaceAll(c.Task, " ", "_"), c.Allocs, c.Calls,
			c.Instructions)
	}
	return b.String()
}

// ParseCounts reads what FormatCounts writes. Lines that begin with # are left out.
func ParseCounts(text string) (map[string]Count, error) {
	all := map[string]Count{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		var c Count
		if _, err := fmt.Sscan(line, &c.Task, &c.Allocs, &c.Calls, &c.Instructions); err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
		}
		c.Task = strings.ReplaceAll(c.Task, "_", " ")
		all[c.Task] = c
	}
	return all, nil
}
