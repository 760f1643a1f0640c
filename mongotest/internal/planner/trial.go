package planner

import (
	"cmp"
	"fmt"
	"slices"
)

// When there are several plans, all of them run for a while, step by step in turn, and the one that
// yields most for its steps is taken. The limits are those of the server's parameters
// internalQueryPlanEvaluationWorks, ...CollFraction and ...MaxResults.
const (
	trialWorks    = 10000
	trialFraction = 0.3
	trialResults  = 101
)

// Trial is how several plans did.
type Trial struct {
	Plans  []*Stage // as they ran, with what the command does with the documents
	Scores []float64
	Best   []int // the plans by their score, the best first
	// Remembered is which of the plans is taken for such a query without a trial, -1 for none; it
	// is looked up for explain only.
	Remembered int
}

// try runs plans for a while.
func (a *Access) try(p *Plan, list []*Stage) *Trial {
	sorted := make([]bool, len(list))
	return a.tryAll(p, list, sorted)
}

func (a *Access) tryAll(p *Plan, list []*Stage, sorted []bool) *Trial {
	works := max(a.Memory.number("internalQueryPlanEvaluationWorks", trialWorks),
		a.Memory.number("internalQueryPlanEvaluationCollFraction", trialFraction)*float64(a.Coll.Count()))
	return a.tryFor(p, list, sorted, int64(works))
}

// tryFor runs plans for so many steps each, unless one comes to its end or yields enough before.
func (a *Access) tryFor(p *Plan, list []*Stage, sorted []bool, works int64) *Trial {
	t := &Trial{Remembered: -1}
	e := p.env()
	e.orphans = a.shardFiltered
	for i, s := range list {
		t.Plans = append(t.Plans, a.finish(s.Clone(), sorted[i]))
	}
	results := a.trialResults()
	failed := make([]bool, len(list))
	for step, done := int64(0), false; step < works && !done; step++ {
		for i, s := range t.Plans {
			if failed[i] {
				continue
			}
			var r row
			st, err := s.work(e, &r)
			switch {
			case err != nil:
				failed[i] = true
			case st == isEOF, s.Advanced >= results:
				done = true
			}
		}
	}
	for i, s := range t.Plans {
		score := 1 + float64(s.Advanced)/float64(max(1, s.Works))
		// Small bonuses break ties: for not fetching, not sorting and not intersecting indexes.
		epsilon := min(1/float64(10*max(1, s.Works)), 1e-4)
		bonus := [3]bool{true, true, true}
		s.Walk(func(s *Stage) {
			switch s.Name {
			case "FETCH":
				if len(s.Inputs) > 0 {
					bonus[0] = false
				}
			case "SORT":
				bonus[1] = false
			case "AND_SORTED":
				bonus[2] = false
			}
		})
		for _, b := range bonus {
			if b {
				score += epsilon
			}
		}
		if s.EOF {
			score++
		}
		if failed[i] {
			score = 0
		}
		t.Scores = append(t.Scores, score)
		t.Best = append(t.Best, i)
	}
	slices.SortStableFunc(t.Best, func(x, y int) int { return cmp.Compare(t.Scores[y], t.Scores[x]) })
	return t
}

// trialResults is how many results end a trial.
func (a *Access) trialResults() int64 {
	most := int64(a.Memory.number("internalQueryPlanEvaluationMaxResults", trialResults))
	if n := a.Wants.Limit; n > 0 && n < most {
		return n
	}
	return most
}

// replanRatio is how many times as many steps as it took before a plan may take, as in
// internalQueryCacheEvictionRatio.
const replanRatio = 10

// holds reports whether a plan that was remembered still does about as well as it did.
func (a *Access) holds(p *Plan, s *Stage, sorted bool, e *Cached) bool {
	limit := replanRatio * e.Works
	ran := a.tryFor(p, []*Stage{s}, []bool{sorted}, limit).Plans[0]
	if ran.EOF || ran.Advanced >= a.trialResults() {
		return true
	}
	p.Replanned = fmt.Sprintf(
		"cached plan was less efficient than expected: expected trial execution to take %d works but it took at least %d works", e.Works, limit)
	a.Memory.deactivate(e)
	return false
}

// best chooses one of several plans: that which did best for the last query of the same shape, or
// in a trial.
func (a *Access) best(p *Plan, list []*Stage, sorted []bool) int {
	var key string
	if a.Memory != nil && !a.Explains && a.hint == "" && len(a.Min)+len(a.Max) == 0 {
		key = a.cacheKey()
		if e := a.Memory.cached(a.Coll, key); e != nil && e.Active {
			for i, s := range list {
				if s.signature() == e.signature && a.holds(p, s, sorted[i], e) {
					p.From = e
					return i
				}
			}
		}
	}
	p.Trial = a.tryAll(p, list, sorted)
	best := p.Trial.Best[0]
	if key != "" {
		a.Memory.learn(a, key, p.Trial, list[best].signature())
	}
	return best
}

// remembered returns which of some plans is in the plan cache and in use there, -1 for none.
func (a *Access) remembered(list []*Stage) int {
	if a.Memory == nil {
		return -1
	}
	e := a.Memory.cached(a.Coll, a.cacheKey())
	if e == nil || !e.Active {
		return -1
	}
	return slices.IndexFunc(list, func(s *Stage) bool { return s.signature() == e.signature })
}
