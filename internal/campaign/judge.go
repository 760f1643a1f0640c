package campaign

import (
	"fmt"
	"slices"
)

// judgeLists compares what callers learnt of their pushes with the final lists: nothing that was
// acknowledged by a majority is missing, nothing is there twice, a transaction is there as a
// whole or not at all, and every read saw a beginning of the final list, of each transaction all
// or nothing.
func judgeLists(all []*record, final map[int][]int32) (found []string) {
	bad := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	place := map[int32]int{} // of each token in its list
	times := map[int32]int{}
	for _, tokens := range final {
		for i, t := range tokens {
			place[t] = i
			times[t]++
		}
	}
	txnOf := map[int32]*record{}
	for _, r := range all {
		there := 0
		for _, e := range r.writes {
			switch n := times[e.token]; {
			case n > 1:
				bad("%s, %v: its push of %d to list %d was applied %d times", r.name, r.outcome, e.token, e.list, n)
				there++
			case n == 1:
				there++
			}
			if r.atomic {
				txnOf[e.token] = r
			}
		}
		switch {
		case r.outcome == acked && there != len(r.writes):
			bad("%s was acknowledged, but only %d of its %d pushes are there", r.name, there, len(r.writes))
		case r.outcome == absent && there != 0:
			bad("%s was aborted, but %d of its pushes are there", r.name, there)
		case r.atomic && there != 0 && there != len(r.writes):
			bad("%s was applied in part: %d of its %d pushes are there", r.name, there, len(r.writes))
		}
	}
	for _, r := range all {
		own := map[int32]bool{}
		for _, e := range r.writes {
			own[e.token] = true
		}
		saw := map[int]int{} // how much of each list a transaction saw
		for _, s := range r.reads {
			others := slices.DeleteFunc(slices.Clone(s.tokens), func(t int32) bool { return own[t] })
			if n := len(others); n > len(final[s.list]) || !slices.Equal(others, final[s.list][:n]) {
				bad("%s read something from list %d that others never left there", r.name, s.list)
				continue
			}
			if before, ok := saw[s.list]; r.atomic && ok && before != len(others) {
				bad("%s read list %d twice and saw %d and %d tokens", r.name, s.list, before, len(others))
			}
			saw[s.list] = len(others)
			for i, t := range s.tokens { // its own come last
				if own[t] && slices.ContainsFunc(s.tokens[i:], func(t int32) bool { return !own[t] }) {
					bad("%s read list %d with a push of another's after its own", r.name, s.list)
				}
			}
		}
		if !r.atomic || r.outcome == absent {
			continue
		}
		// Of another transaction it saw everything that is in the lists that it read, or nothing.
		for list, n := range saw {
			for _, t := range final[list][:n] {
				other := txnOf[t]
				if other == nil || other == r {
					continue
				}
				for _, e := range other.writes {
					if m, ok := saw[e.list]; ok && place[e.token] >= m {
						bad("%s saw %s in part", r.name, other.name)
					}
				}
			}
		}
	}
	return found
}
