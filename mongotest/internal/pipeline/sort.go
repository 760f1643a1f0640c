package pipeline

import (
	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$sort", shown: showSort, parse: one(parseSort), selects: true, ranks: true, names: whole})
}

// sortStage is $sort. It is stable.
type sortStage struct {
	rt   *runtime
	sort *query.Sort
	spec bson.Raw
	// front tells that the query sorts that reads the collection.
	front bool
	holes bool // documents come with holes that a later stage fills
	// limit is that of the $limit that follows, 0 if there is none.
	limit int64
	// context is what the server puts before errors of sort keys; since 5.0 it does so for all
	// errors.
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
	for _, f := range s.Fields() {
		if f.Meta != "" {
			p.rt.env.WantsMeta = append(p.rt.env.WantsMeta, f.Meta)
		}
	}
	stage := &sortStage{rt: p.rt, sort: s, spec: doc}
	if !p.rt.o.Version.AtLeast(5, 0) {
		stage.context = "PlanExecutor error during aggregation :: caused by :: "
	}
	return stage, nil
}

func (s *sortStage) open(src Iterator) (Iterator, error) {
	if s.rt.meta || s.holes {
		return &keeper{src: src, rt: s.rt, fill: func() ([]hit, error) { return s.sorted(src) }}, nil
	}
	return &lazy{src: src, fill: func() ([]bson.Raw, error) { return s.run(src) }}, nil
}

// sortMemoryExceeded is the error of stages that sort more than fits.
func sortMemoryExceeded() error {
	return srverr.New(srverr.QueryExceededMemoryLimitNoDiskUseAllowed,
		"Sort exceeded memory limit of %d bytes, but did not opt in to external sorting. Aborting operation. Pass allowDiskUse:true to opt in.", stageLimit)
}

// run sorts the input. Of a sort with a limit it keeps little more than that.
func (s *sortStage) run(src Iterator) ([]bson.Raw, error) {
	var docs []bson.Raw
	size := 0
	sorted := func() error {
		if err := s.sort.SortDocuments(docs); err != nil {
			return srverr.From(err).Prefix(s.context)
		}
		if s.limit > 0 && int64(len(docs)) > s.limit {
			clear(docs[s.limit:])
			docs, size = docs[:s.limit], 0
			for _, doc := range docs {
				size += len(doc)
			}
		}
		return nil
	}
	for {
		doc, err := src.Next()
		if err != nil {
			return nil, err
		}
		if doc == nil {
			return docs, sorted()
		}
		docs = append(docs, doc)
		size += len(doc)
		if s.limit > 0 && int64(len(docs)) > s.limit && (int64(len(docs)) >= 2*s.limit+1000 || size > stageLimit) {
			if err := sorted(); err != nil {
				return nil, err
			}
		}
		if size > stageLimit && !s.rt.o.AllowDiskUse || size > memoryLimit {
			return nil, srverr.From(sortMemoryExceeded()).Prefix(s.context)
		}
	}
}
