package pipeline

// $search, $searchMeta and $vectorSearch: what a search index finds. The deployment's engine
// answers them; one that has none refuses them as a server does that stands alone.

import (
	"iter"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	parse := one(parseSearch)
	register(
		&stageDef{name: "$search", parse: parse, search: true, first: true, notInFacet: true, noTxn: refusedInPlace,
			concern: notLinearizable, selects: true, ranks: true, scores: true, at: elsewhere, notV1: true},
		&stageDef{name: "$searchMeta", parse: parse, search: true, first: true, notInFacet: true, noTxn: refusedInPlace,
			concern: notLinearizable, at: elsewhere, notV1: true},
		&stageDef{name: "$vectorSearch", parse: parse, search: true, first: true, notInFacet: true, notInLookup: true,
			noTxn: refusedInPlace, concern: notLinearizable, selects: true, ranks: true, scores: true, at: elsewhere,
			notV1: true},
	)
}

// SearchEnv is an Env that knows search indexes.
type SearchEnv interface {
	// Search answers a stage that searches: the documents that were found, each with what $meta
	// shows of it, and what is known of all. step counts what that takes.
	Search(stage string, ns Namespace, spec bson.Raw, step func(n int)) (hits iter.Seq2[bson.Raw, bson.Raw],
		meta bson.Raw, err error)
}

// searchStage is $search, $searchMeta or $vectorSearch.
type searchStage struct {
	rt   *runtime
	name string
	ns   Namespace
	spec bson.Raw
}

func parseSearch(p *parser, name string, v bson.RawValue) (*searchStage, error) {
	if !p.rt.o.Searches {
		return nil, srverr.New(srverr.SearchNotEnabled,
			"Using $search and $vectorSearch aggregation stages requires additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable.")
	}
	if p.rt.o.View != "" {
		return nil, srverr.New(srverr.OptionNotSupportedOnView, "%s cannot be used in the definition of a view", name)
	}
	doc, ok := v.Document()
	switch {
	case !ok && name != "$vectorSearch" && v.Type != bson.TypeArray:
		return nil, srverr.New(10065, "invalid parameter: expected an object (%s)", name)
	case !ok:
		return nil, srverr.New(srverr.FailedToParse, "%s value must be an object. Found: %s", name, typeName(v))
	}
	return &searchStage{p.rt, name, p.ns, doc}, nil
}

func (*searchStage) isSource() {}

func (s *searchStage) makes(meta string) bool {
	return meta == "score" && s.name != "$searchMeta" ||
		meta == "scoreDetails" && s.spec.Lookup("scoreDetails").AsBool()
}

func (s *searchStage) open(src Iterator) (Iterator, error) {
	src.Close()
	return &keeper{rt: s.rt, fill: s.find}, nil
}

func (s *searchStage) find() (rows []hit, err error) {
	env, ok := s.rt.o.Env.(SearchEnv)
	if !ok {
		return nil, srverr.New(srverr.CommandNotSupported, "%s is not supported here", s.name)
	}
	hits, meta, err := env.Search(s.name, s.ns, s.spec, s.rt.query.Work.Do)
	if err != nil {
		return nil, err
	}
	if s.name == "$searchMeta" && meta == nil {
		return nil, nil
	}
	if s.name == "$searchMeta" {
		return []hit{{doc: meta}}, nil
	}
	if meta != nil {
		s.rt.env.SearchMeta = bsondoc.DocumentValue(meta)
	}
	for doc, known := range hits {
		rows = append(rows, hit{doc: doc, meta: searchMeta(known)})
	}
	return rows, nil
}

// searchMeta shows what a search has told of a document: its score has a name of its own, and the
// one that all scores share.
func searchMeta(known bson.Raw) metaOf {
	return func(name string) bson.RawValue {
		switch name {
		case "score":
			if v := known.Lookup("searchScore"); v.Type != 0 {
				return v
			}
			return known.Lookup("vectorSearchScore")
		case "scoreDetails":
			return known.Lookup("searchScoreDetails")
		}
		return known.Lookup(name)
	}
}
