package randcmd

// The rules of commands that read.

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
)

// explained is the rule that what runs can be explained.
func (c *Checker) explained(cmd d, ran answer) error {
	r, err := c.run(d{e("explain", cmd), e("verbosity", "queryPlanner")})
	if err != nil {
		return err
	}
	if x, failed := failure(r); failed && ran.ok() {
		return &brokenRule{"explain", fmt.Sprintf("%s runs, but cannot be explained: %v", show(cmd), x)}
	}
	return nil
}

func (c *Checker) checkFind(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	cmd := cs.Command
	f := filterOf(cmd, "filter")
	plain := d{e("find", "c"), e("filter", f)}
	col, collated := get(cmd, "collation")
	if collated {
		plain = append(plain, e("collation", col))
	}
	base, err := c.all(with(plain, "hint", natural))
	if err != nil {
		return err
	}
	base = base.sorted()
	whole, err := c.all(cmd)
	if err != nil {
		return err
	}
	if err := c.explained(cmd, whole); err != nil {
		return err
	}
	if !base.ok() {
		return nil
	}
	hints, err := c.hints()
	if err != nil {
		return err
	}
	variants := []struct {
		rule string
		cmd  d
	}{
		{"find: chosen plan", plain}, {"find: $and", with(plain, "filter", d{e("$and", a{f, d{}})})},
		{"find: $or", with(plain, "filter", d{e("$or", a{f})})},
		{"find: $or twice", with(plain, "filter", d{e("$or", a{f, f})})},
		{"find: $nor", with(plain, "filter", d{e("$nor", a{d{e("$nor", a{f})}})})},
		{"find: batches", with(plain, "batchSize", int32(1))},
	}
	for _, h := range hints {
		variants = append(variants, struct {
			rule string
			cmd  d
		}{"find: hint", with(plain, "hint", h)})
	}
	for _, v := range variants {
		got, err := c.all(v.cmd)
		if err != nil {
			return err
		}
		if !got.ok() && v.rule == "find: hint" && (got.code == 2 || got.code == 291) {
			continue // an index that cannot be used
		}
		if err := same(v.rule, v.cmd, base, got.sorted()); err != nil {
			return err
		}
	}
	if err := c.checkCounts(cmd, f, base); err != nil {
		return err
	}
	return c.checkSorted(cmd, plain, hints)
}

// checkCounts holds count, $match and the opposite filter against the documents that a filter
// finds.
func (c *Checker) checkCounts(cmd, f d, found answer) error {
	col, _ := get(cmd, "collation")
	count := d{e("count", "c"), e("query", f)}
	if col != nil {
		count = append(count, e("collation", col))
	}
	r, err := c.run(count)
	if err != nil {
		return err
	}
	if _, failed := failure(r); !failed {
		if n, _ := r.Lookup("n").AsInt64(); n != int64(len(found.docs)) {
			return &brokenRule{"count", fmt.Sprintf("%s counts %d, find finds %v", show(count), n, found)}
		}
	}
	for _, stages := range []a{{d{e("$match", f)}}, {d{e("$_internalInhibitOptimization", d{})}, d{e("$match", f)}},
		{d{e("$sort", d{e("a", int32(1))})}, d{e("$match", f)}},
		{d{e("$addFields", d{e("zz", int32(1))})}, d{e("$match", f)}, d{e("$project", d{e("zz", int32(0))})}}} {
		agg := d{e("aggregate", "c"), e("pipeline", stages), e("cursor", d{})}
		if col != nil {
			agg = append(agg, e("collation", col))
		}
		got, err := c.all(agg)
		if err != nil {
			return err
		}
		if err := same("find: $match", agg, found, got.sorted()); err != nil {
			return err
		}
	}
	not := d{e("find", "c"), e("filter", d{e("$nor", a{f})})}
	if col != nil {
		not = append(not, e("collation", col))
	}
	rest, err := c.all(not)
	if err != nil {
		return err
	}
	everything, err := c.all(d{e("find", "c")})
	if err != nil || !rest.ok() {
		return err
	}
	rest.docs = append(rest.docs, found.docs...)
	return same("find: $nor is the opposite", not, everything.sorted(), rest.sorted())
}

// checkSorted holds sorts, skips, limits and projections against each other.
func (c *Checker) checkSorted(cmd, plain d, hints []string) error {
	sort, ok := get(cmd, "sort")
	if !ok {
		return nil
	}
	total := with(plain, "sort", append(with(sort.(d), "_id", nil), e("_id", int32(1))))
	base, err := c.all(with(total, "hint", natural))
	if err != nil || !base.ok() {
		return err
	}
	for _, h := range append(hints, "") {
		v := total
		if h != "" {
			v = with(total, "hint", h)
		}
		got, err := c.all(v)
		if err != nil {
			return err
		}
		if got.ok() {
			if err := same("find: sort", v, base, got); err != nil {
				return err
			}
		}
	}
	skip, _ := get(cmd, "skip")
	limit, _ := get(cmd, "limit")
	from, _ := skip.(int32)
	n, _ := limit.(int32)
	want := base
	want.docs = want.docs[min(int(from), len(want.docs)):]
	if n > 0 {
		want.docs = want.docs[:min(int(n), len(want.docs))]
	}
	part := append(slices.Clone(total), e("skip", from), e("limit", n))
	got, err := c.all(part)
	if err != nil {
		return err
	}
	if err := same("find: skip and limit", part, want, got); err != nil {
		return err
	}
	p, ok := get(cmd, "projection")
	if text := show(p); !ok || strings.Contains(text, "$slice") || strings.Contains(text, "$elemMatch") {
		return nil
	}
	projected, err := c.all(with(total, "projection", p))
	if err != nil || !projected.ok() {
		return err
	}
	order, _ := get(total, "sort")
	agg := d{e("aggregate", "c"), e("pipeline", a{d{e("$match", filterOf(cmd, "filter"))}, d{e("$sort", order)},
		d{e("$project", p)}}), e("cursor", d{})}
	if col, ok := get(cmd, "collation"); ok {
		agg = append(agg, e("collation", col))
	}
	got, err = c.all(agg)
	if err != nil {
		return err
	}
	return same("find: projection", agg, projected, got)
}

func (c *Checker) checkAggregate(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	cmd := cs.Command
	v, _ := get(cmd, "pipeline")
	stages, ok := v.(a)
	if !ok {
		_, err := c.run(cmd)
		return err
	}
	if c.sharded {
		return c.checkShards(cmd, stages)
	}
	base, err := c.all(cmd)
	if err != nil {
		return err
	}
	if err := c.explained(with(cmd, "explain", nil), base); err != nil {
		return err
	}
	held := a{}
	for _, s := range stages {
		held = append(held, s, d{e("$_internalInhibitOptimization", d{})})
	}
	type variant struct {
		rule string
		cmd  d
	}
	variants := []variant{{"aggregate: optimizer", with(cmd, "pipeline", held)},
		{"aggregate: disk", with(cmd, "allowDiskUse", true)},
		{"aggregate: batches", with(cmd, "cursor", d{e("batchSize", int32(1))})}}
	for i := range stages {
		if _, err := c.run(d{e("drop", "v")}); err != nil {
			return err
		}
		view := d{e("create", "v"), e("viewOn", "c"), e("pipeline", stages[:i])}
		col, collated := get(cmd, "collation")
		if collated {
			view = append(view, e("collation", col))
		} else if cs.Collation != nil {
			view = append(view, e("collation", cs.Collation))
		}
		r, err := c.run(view)
		if err != nil {
			return err
		}
		if _, failed := failure(r); failed {
			continue
		}
		over := with(cmd, "pipeline", stages[i:])
		over[0].Value = "v"
		variants = append(variants, variant{"aggregate: view", over})
		got, err := c.all(over)
		if err != nil {
			return err
		}
		if err := same("aggregate: view", over, base, got); err != nil {
			return err
		}
	}
	for _, v := range variants[:3] {
		got, err := c.all(v.cmd)
		if err != nil {
			return err
		}
		if err := same(v.rule, v.cmd, base, got); err != nil {
			return err
		}
	}
	if strings.Contains(show(stages), "$facet") || len(cs.Indexes) > 0 { // within $facet no index gives an order
		return nil
	}
	facet := with(cmd, "pipeline", a{d{e("$facet", d{e("f", stages)})}, d{e("$unwind", "$f")},
		d{e("$replaceRoot", d{e("newRoot", "$f")})}})
	got, err := c.all(facet)
	if err != nil {
		return err
	}
	return same("aggregate: $facet", facet, base, got)
}

// checkShards holds what a mongos answers for a collection on two shards against what it answers
// for the same documents on one.
func (c *Checker) checkShards(cmd d, stages a) error {
	docs, err := c.all(d{e("find", "c")})
	if err != nil {
		return err
	}
	if len(docs.docs) > 0 {
		list := a{}
		for _, v := range docs.sorted().docs {
			list = append(list, v)
		}
		if _, err := c.run(d{e("insert", "one"), e("documents", list)}); err != nil {
			return err
		}
	}
	all := with(cmd, "pipeline", append(a{d{e("$sort", d{e("_id", int32(1))})}}, stages...))
	single := slices.Clone(all)
	single[0].Value = "one"
	want, err := c.all(single)
	if err != nil {
		return err
	}
	got, err := c.all(all)
	if err != nil {
		return err
	}
	return same("aggregate: shards", all, want.sorted(), got.sorted())
}

// distinctOf returns the values at a path, as distinct sees them.
func distinctOf(v bson.RawValue, parts []string) []bson.RawValue {
	var out []bson.RawValue
	switch {
	case v.Type == bson.TypeArray:
		for item := range bson.Raw(v.Value).Values() {
			if len(parts) == 0 {
				out = append(out, item)
			} else if item.Type == bson.TypeEmbeddedDocument {
				out = append(out, distinctOf(item, parts)...)
			}
		}
		return out
	case len(parts) == 0:
		if v.Type == 0 {
			return nil
		}
		return []bson.RawValue{v}
	case v.Type == bson.TypeEmbeddedDocument:
		return distinctOf(bson.Raw(v.Value).Lookup(parts[0]), parts[1:])
	}
	return nil
}

func (c *Checker) checkDistinct(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	r, err := c.run(cs.Command)
	if err != nil {
		return err
	}
	key, _ := get(cs.Command, "key")
	path, _ := key.(string)
	_, collated := get(cs.Command, "collation")
	x, failed := failure(r)
	if err := c.explained(cs.Command, x); err != nil {
		return err
	}
	if failed || collated || cs.Collation != nil || strings.ContainsAny(path, "01") || len(cs.Indexes) > 0 {
		return nil // nested arrays flatten in an index
	}
	found, err := c.all(d{e("find", "c"), e("filter", filterOf(cs.Command, "query"))})
	if err != nil || !found.ok() {
		return err
	}
	var want []bson.RawValue
	for _, doc := range found.docs {
		want = append(want, distinctOf(doc, strings.Split(path, "."))...)
	}
	slices.SortStableFunc(want, bson.Compare)
	want = slices.CompactFunc(want, func(a, b bson.RawValue) bool { return bson.Compare(a, b) == 0 })
	var got []bson.RawValue
	for v := range bson.Raw(r.Lookup("values").Value).Values() {
		got = append(got, v)
	}
	if !slices.EqualFunc(want, got, func(a, b bson.RawValue) bool { return bson.Compare(a, b) == 0 }) {
		return &brokenRule{"distinct", fmt.Sprintf("%s answers %v, want %v", show(cs.Command), answer{docs: got},
			answer{docs: want})}
	}
	return nil
}
