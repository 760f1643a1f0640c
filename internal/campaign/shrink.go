package campaign

import (
	"slices"
	"strings"
	"time"
)

// Shrink looks for the fewest steps and actors with which the history still breaks the promise
// that it broke, as long as the time lasts. run runs a plan; each candidate gets the given number
// of tries, since what happens at the same instant happens in any order.
func Shrink(o *Outcome, tries int, until time.Time, run func(*Plan) *Outcome) *Outcome {
	if len(o.Violations) == 0 {
		return o
	}
	want := kindOf(o.Violations[0])
	best := o
	fails := func(p *Plan) bool {
		for range tries {
			if time.Now().After(until) {
				return false
			}
			if got := run(p); slices.ContainsFunc(got.Violations, func(v string) bool { return kindOf(v) == want }) {
				best = got
				return true
			}
		}
		return false
	}
	for progress := true; progress; {
		before := len(best.Plan.Steps) + len(best.Plan.Actors)
		reduce(best.Plan.Steps, func(steps []Step) bool {
			p := *best.Plan
			p.Steps = steps
			return fails(&p)
		})
		reduce(best.Plan.Actors, func(actors []ActorPlan) bool {
			p := *best.Plan
			p.Actors = actors
			return fails(&p)
		})
		progress = len(best.Plan.Steps)+len(best.Plan.Actors) < before
	}
	return best
}

// kindOf returns what kind of violation a text is: its words without the numbers.
func kindOf(violation string) string {
	words := strings.FieldsFunc(violation, func(r rune) bool { return r == ' ' || r == ':' || r == ',' })
	words = slices.DeleteFunc(words, func(w string) bool { return strings.ContainsAny(w, "0123456789") })
	return strings.Join(words[:min(len(words), 6)], " ")
}

// reduce is delta debugging (Zeller's ddmin): it leaves out halves, quarters and so on, as long
// as what remains still fails. It assumes that the whole fails.
func reduce[T any](all []T, fails func([]T) bool) []T {
	for parts := 2; len(all) > 0; {
		size := (len(all) + parts - 1) / parts
		smaller := false
		for at := 0; at < len(all); at += size {
			rest := slices.Concat(all[:at:at], all[min(at+size, len(all)):])
			if fails(rest) {
				all, smaller = rest, true
				parts = max(parts-1, 2)
				break
			}
		}
		if !smaller {
			if size <= 1 {
				break
			}
			parts = min(2*parts, len(all))
		}
	}
	return all
}
