package pipeline

import (
	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() { register(&stageDef{name: "$sort", parse: one(parseSort)}) }

// sortStage is $sort. It is stable.
type sortStage struct {
	sort *query.Sort
	// context is what the server puts before errors of sort keys; since 5.0 it does so for all errors.
	context string
}

func parseSort(p *parser, _ string, v bson.RawValue) (*sortStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(15973, "the $sort key specification must be an object")
	}
	s, err := query.ParseSort(doc, p.rt.query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, srverr.New(15976, "$sort stage must have at least one sort key")
	}
	stage := &sortStage{sort: s}
	if !p.rt.o.Version.AtLeast(5, 0) {
		stage.context = "PlanExecutor error during aggregation :: caused by :: "
	}
	return stage, nil
}

func (s *sortStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) {
		docs, err := collect(src, memoryLimit)
		if err != nil {
			return nil, err
		}
		if err := s.sort.SortDocuments(docs); err != nil {
			return nil, srverr.From(err).Prefix(s.context)
		}
		return docs, nil
	}}, nil
}
