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

// textPlan returns the stages of a search.
func (a *Access) textPlan(s *Stage) *Stage {
	search, rest := a.Filter.TextSearch()
	prefix := textPrefix(s.Index)
	match := &Stage{Name: "TEXT_MATCH", Search: search}
	var scans []*Stage
	for _, term := range search.Parsed().Terms {
		scans = append(scans, &Stage{Name: "IXSCAN", Index: s.Index, Back: true, Search: search, Term: term})
	}
	or := &Stage{Name: "OR", Inputs: scans}
	switch {
	case len(scans) == 0:
		or = &Stage{Name: "EOF"}
		match.Inputs = []*Stage{{Name: "FETCH", Inputs: []*Stage{or}}}
	case a.wantsScore():
		or.Name = "TEXT_OR"
		match.Inputs = []*Stage{or}
	case len(scans) == 1:
		match.Inputs = []*Stage{{Name: "FETCH", Inputs: scans}}
	default:
		match.Inputs = []*Stage{{Name: "FETCH", Inputs: []*Stage{or}}}
	}
	out := match
	if a.Wants.TextStage {
		out = &Stage{Name: "TEXT", Inputs: []*Stage{match}}
	}
	out.Index, out.Search = s.Index, search
	if rest != nil && len(prefix) > 0 { // what the prefix answers is part of the scans' bounds
		rest = without(rest, prefix)
	}
	return fetch(out, rest)
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
			if _, ok := s.seen[r.rid]; !ok {
				s.seen[r.rid] = struct{}{}
				s.Docs++
				s.sorted = append(s.sorted, sortedItem{row: *r})
			}
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
