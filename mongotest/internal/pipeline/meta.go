package pipeline

// Metadata: what is known of a document beside its fields, which $meta shows. It is the
// environment's while a document is at hand: a stage looks at it before it fetches the next one.
// Stages that keep documents keep it beside them.

import (
	"math/rand/v2"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// metaOf returns a document's metadata by the names of $meta.
type metaOf = func(name string) bson.RawValue

// unavailable are the kinds that a pipeline does not have unless its first stage makes them, as
// errors call them. The others are missing where there are none.
var unavailable = map[string]string{
	"textScore": "text score", "geoNearDistance": "$geoNear distance", "geoNearPoint": "$geoNear point",
	"score": "score", "scoreDetails": "scoreDetails",
}

// metaMaker is a stage that makes metadata.
type metaMaker interface {
	makes(name string) bool
}

// noteMeta adds the kinds that the last parsed stage asks for to those that the pipeline wants of
// its source. What comes after a stage that makes new documents is missing, whatever there was.
func (pl *Pipeline) noteMeta() {
	env := pl.rt.env
	wants := env.WantsMeta
	env.WantsMeta = nil
	if len(wants) > 0 {
		pl.rt.meta = true
	}
	if !pl.selfContained {
		pl.wants = append(pl.wants, wants...)
	}
	switch pl.stages[len(pl.stages)-1].stage.(type) {
	case *groupStage, *bucketStage, *bucketAutoStage, *facetStage:
		pl.selfContained = true
	}
}

// checkMeta refuses a pipeline that asks its source for what it does not have.
func (pl *Pipeline) checkMeta() error {
	makes := func(name string) bool {
		return slices.ContainsFunc(pl.stages, func(st parsedStage) bool {
			m, ok := st.stage.(metaMaker)
			return ok && m.makes(name)
		})
	}
	for _, name := range pl.wants {
		if what := unavailable[name]; what != "" && !makes(name) {
			return srverr.New(40218, "query requires %s metadata, but it is not available", what)
		}
	}
	return nil
}

// WithMeta returns a source whose documents have metadata, if the pipeline asks for any.
func (pl *Pipeline) WithMeta(src Iterator, describe func(doc bson.Raw) func(name string) bson.RawValue) Iterator {
	if !pl.rt.meta {
		return src
	}
	return &described{src, describe, pl.rt.env}
}

type described struct {
	Iterator
	describe func(doc bson.Raw) metaOf
	env      *expr.Env
}

func (s *described) Next() (bson.Raw, error) {
	doc, err := s.Iterator.Next()
	if doc != nil {
		s.env.Meta = s.describe(doc)
	}
	return doc, err
}

// searched gives the documents that a $text filter finds their score.
func (pl *Pipeline) searched(src Iterator, filter *query.Filter) Iterator {
	if filter == nil || !filter.NeedsTextIndex() {
		return src
	}
	return pl.WithMeta(src, func(doc bson.Raw) func(string) bson.RawValue {
		return func(name string) bson.RawValue {
			if name != "textScore" {
				return bson.RawValue{}
			}
			return bsondoc.DoubleValue(filter.TextScore(doc))
		}
	})
}

// hit is a document with what is known of it.
type hit struct {
	doc   bson.Raw
	meta  metaOf
	key   []bson.RawValue // that it is sorted by
	holes [][]string      // what is before those of the pipeline
}

// note returns the document at hand to be kept.
func (rt *runtime) note(doc bson.Raw) hit {
	h := hit{doc: doc, meta: rt.env.Meta}
	for _, hole := range rt.holes {
		h.holes = append(h.holes, hole.before)
	}
	return h
}

// show makes a document that was kept the one at hand.
func (rt *runtime) show(h hit) bson.Raw {
	rt.env.Meta = h.meta
	for i, before := range h.holes {
		rt.holes[i].before = before
	}
	return h.doc
}

// hits collects a source's documents with their metadata.
func (rt *runtime) hits(src Iterator) ([]hit, error) {
	defer src.Close()
	var out []hit
	size := 0
	for {
		doc, err := src.Next()
		if doc == nil || err != nil {
			return out, err
		}
		if size += len(doc); size > memoryLimit {
			return nil, keepsTooMuch(memoryLimit)
		}
		out = append(out, rt.note(doc))
	}
}

// keeper yields documents that a stage has kept, with their metadata.
type keeper struct {
	src    Iterator
	rt     *runtime
	fill   func() ([]hit, error)
	filled bool
	rows   []hit
	end    func() error // what comes before the end; may be nil
}

func (k *keeper) Next() (bson.Raw, error) {
	if !k.filled {
		rows, err := k.fill()
		if err != nil {
			return nil, err
		}
		k.rows, k.filled = rows, true
	}
	if len(k.rows) == 0 {
		if end := k.end; end != nil {
			k.end = nil
			return nil, end()
		}
		return nil, nil
	}
	row := k.rows[0]
	k.rows = k.rows[1:]
	return k.rt.show(row), nil
}

func (k *keeper) Close() {
	k.rows, k.filled, k.end = nil, true, nil
	if k.src != nil {
		k.src.Close()
	}
}

// sorted collects and sorts a source whose documents have metadata or holes.
func (s *sortStage) sorted(src Iterator) ([]hit, error) {
	rows, err := s.rt.hits(src)
	if err != nil {
		return nil, srverr.From(err).Prefix(s.context)
	}
	size := 0
	for i, row := range rows {
		if size += len(row.doc); size > stageLimit && !s.rt.o.AllowDiskUse {
			return nil, srverr.From(sortMemoryExceeded()).Prefix(s.context)
		}
		key, err := s.sort.Key(row.doc, func(name string) bson.RawValue {
			if name == "randVal" {
				return bsondoc.DoubleValue(s.rt.random())
			}
			if row.meta == nil {
				return bson.RawValue{}
			}
			return row.meta(name)
		})
		if err != nil {
			return nil, srverr.From(err).Prefix(s.context)
		}
		rows[i].key = key
		if s.front { // the query sorts, and notes by what
			rows[i].meta = withMeta(row.meta, "sortKey", bsondoc.ArrayValue(rows[i].key...))
		}
	}
	query.SortByKey(s.sort, rows, func(h *hit) []bson.RawValue { return h.key })
	if s.limit > 0 && int64(len(rows)) > s.limit {
		rows = rows[:s.limit]
	}
	return rows, nil
}

// withMeta returns metadata with one kind set.
func withMeta(meta metaOf, name string, v bson.RawValue) metaOf {
	return func(asked string) bson.RawValue {
		switch {
		case asked == name:
			return v
		case meta == nil:
			return bson.RawValue{}
		}
		return meta(asked)
	}
}

// random returns a number from 0 up to 1.
func (rt *runtime) random() float64 {
	if rt.o.Rand != nil {
		return rt.o.Rand.Float64()
	}
	return rand.Float64()
}
