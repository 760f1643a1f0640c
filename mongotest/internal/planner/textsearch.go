package planner

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// Searches of a text index. A query runs them as one scan of the collection; explain shows and runs
// the stages that the server has for them: a scan of the index for each term, what puts these
// together, and what looks for phrases and negated terms.

// textPlan returns the stages of a query that searches by an index. Of an $or with the search in
// one of its branches, each other branch has a plan of its own.
func (a *Access) textPlan(ix *store.Index) *Stage {
	all, ok := a.Filter.Condition().All()
	if !ok {
		all = []query.Condition{a.Filter.Condition()}
	}
	at := slices.IndexFunc(all, query.Condition.TextInBranch)
	if at < 0 {
		return a.searchPlan(ix, a.Filter)
	}
	or := &Stage{Name: "OR"}
	branches, _ := all[at].Any()
	for _, b := range branches {
		if b.HasText() {
			or.Inputs = append(or.Inputs, a.searchPlan(ix, query.Joined([]query.Condition{b})))
		} else {
			or.Inputs = append(or.Inputs, a.plans(b)[0]) // there is one, else the query is refused
		}
	}
	return &Stage{Name: "FETCH", Inputs: []*Stage{or}, Filter: query.Joined(slices.Delete(slices.Clone(all), at, at+1))}
}

// searchPlan returns the stages of a search, and of the conditions beside it.
func (a *Access) searchPlan(ix *store.Index, f *query.Filter) *Stage {
	search, rest := f.TextSearch()
	prefix := textPrefix(ix)
	if rest != nil && len(prefix) > 0 { // what the prefix answers is part of the scans' bounds
		rest = without(rest, prefix)
	}
	byKey, rest := a.byTextKey(ix, rest)
	match := &Stage{Name: "TEXT_MATCH", Search: search}
	var scans []*Stage
	for _, term := range search.Parsed().Terms {
		scans = append(scans, &Stage{Name: "IXSCAN", Index: ix, Back: true, Search: search, Term: term})
	}
	or := &Stage{Name: "OR", Inputs: scans, Filter: byKey}
	switch {
	case len(scans) == 0:
		or = &Stage{Name: "EOF"}
		match.Inputs = []*Stage{{Name: "FETCH", Inputs: []*Stage{or}}}
	case a.wantsScore():
		or.Name = "TEXT_OR"
		match.Inputs = []*Stage{or}
	case len(scans) == 1 && !a.Wants.TextStage:
		scans[0].Filter = byKey
		match.Inputs = []*Stage{{Name: "FETCH", Inputs: scans}}
	default:
		match.Inputs = []*Stage{{Name: "FETCH", Inputs: []*Stage{or}}}
	}
	out := match
	if a.Wants.TextStage {
		out = &Stage{Name: "TEXT", Inputs: []*Stage{match}}
	}
	out.Index, out.Search = ix, search
	return fetch(out, rest)
}

// byTextKey splits a filter into the conditions on fields behind the text in a text index, which
// its keys answer, and the others. Either may be nil.
func (a *Access) byTextKey(ix *store.Index, f *query.Filter) (byKey, rest *query.Filter) {
	if f == nil {
		return nil, nil
	}
	all, ok := f.Condition().All()
	if !ok {
		all = []query.Condition{f.Condition()}
	}
	var keys, others []query.Condition
	for _, c := range all {
		if a.answeredBehindText(ix, c) {
			keys = append(keys, c)
		} else {
			others = append(others, c)
		}
	}
	return query.Joined(keys), query.Joined(others)
}

// answeredBehindText reports whether the keys of a text index tell whether a document fulfills a
// condition.
func (a *Access) answeredBehindText(ix *store.Index, c query.Condition) bool {
	path, ok := c.Path()
	if !ok {
		return false
	}
	behind := false
	for i, f := range ix.Fields {
		if f.Special == "text" {
			behind = true
		} else if behind && f.Path == path {
			_, how, ok := c.Bounds(query.Field{SameCollation: a.Collation.Same(ix.Collation), Several: true,
				Array: ix.Arrays.Any(i)})
			return ok && how != query.Fetched
		}
	}
	return false
}

// wantsScore reports whether the command asks how well documents fit.
func (a *Access) wantsScore() bool {
	return a.Sort != nil && a.Sort.NeedsMeta("textScore") ||
		a.Wants.Projection != nil && a.Wants.Projection.NeedsMeta("textScore")
}

// textPrefix returns the fields that stand before the text in a text index.
func textPrefix(ix *store.Index) (list []string) {
	for _, f := range ix.Fields {
		if f.Special == "text" {
			break
		}
		list = append(list, f.Path)
	}
	return list
}

// without returns a filter without the conditions on some paths.
func without(f *query.Filter, paths []string) *query.Filter {
	all, ok := f.Condition().All()
	if !ok {
		all = []query.Condition{f.Condition()}
	}
	return query.Joined(slices.DeleteFunc(slices.Clone(all), func(c query.Condition) bool {
		path, ok := c.Path()
		return ok && slices.Contains(paths, path)
	}))
}

// stepTerm looks at one key of a term: the documents that have it are those of the index.
func (s *Stage) stepTerm(e *env, r *row) (state, error) {
	if s.scan == nil {
		s.scan = store.NewIndexScan(e.coll, s.Index, false, nil)
		if e.only != nil {
			s.scan.Only(e.only)
		}
		s.scan.ShowOrphans = e.orphans
		s.Seeks = 1
	}
	for s.scan.Step() == store.StepHit {
		doc := s.scan.Doc()
		if !s.Search.Has(doc, s.Term) {
			continue
		}
		s.Keys++
		s.Tested++
		*r = row{rid: s.scan.RID(), doc: doc, scan: s.scan, orphan: s.scan.ShowOrphans && s.scan.Orphan()}
		if ok, err := s.passes(r); err != nil || !ok {
			return needTime, err
		}
		return advanced, nil
	}
	return isEOF, nil
}

// stepTextOr yields each document that has one of the terms once all of them are known, since its
// score is made of all.
func (s *Stage) stepTextOr(e *env, r *row) (state, error) {
	if s.at < len(s.Inputs) {
		st, err := s.Inputs[s.at].work(e, r)
		switch {
		case err != nil:
			return needTime, err
		case st == isEOF:
			s.at++
		case st == advanced:
			if s.seen == nil {
				s.seen = map[string]struct{}{}
			}
			if _, ok := s.seen[r.rid]; ok {
				break
			}
			s.seen[r.rid] = struct{}{}
			if ok, err := s.passes(r); err != nil || !ok {
				return needTime, err
			}
			s.Docs++
			s.sorted = append(s.sorted, sortedItem{row: *r})
		}
		return needTime, nil
	}
	if len(s.sorted) == 0 {
		return isEOF, nil
	}
	*r = s.sorted[0].row
	s.sorted = s.sorted[1:]
	return advanced, nil
}

// stepTextMatch leaves out what has a negated term, or lacks a phrase.
func (s *Stage) stepTextMatch(e *env, r *row) (state, error) {
	st, err := s.Inputs[0].work(e, r)
	if st != advanced || err != nil {
		return st, err
	}
	if !s.Search.Match(r.document()) {
		s.Dropped++
		return needTime, nil
	}
	return advanced, nil
}

// appendText appends what a search is made of.
func appendText(dst []byte, s *Stage) []byte {
	dst = bsondoc.Append(dst, "indexPrefix", bsondoc.OrEmpty(nil), "indexName", s.Index.Name)
	p := s.Search.Parsed()
	at, d := bson.BeginDocumentElement(dst, "parsedTextQuery")
	d = bsondoc.AppendStrings(d, "terms", p.Terms)
	d = bsondoc.AppendStrings(d, "negatedTerms", p.NegatedTerms)
	d = bsondoc.AppendStrings(d, "phrases", p.Phrases)
	d = bsondoc.AppendStrings(d, "negatedPhrases", p.NegatedPhrases)
	dst = bson.EndDocument(d, at)
	return bson.AppendInt32(dst, "textIndexVersion", 3)
}
