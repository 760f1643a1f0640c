package randcmd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"allium/bson"
)

// setUp fills the collections anew.
func (c *Checker) setUp(cs Case) error {
	if _, err := c.run(d{e("dropDatabase", int32(1))}); err != nil {
		return err
	}
	create := d{e("create", "c")}
	if cs.Collation != nil {
		create = append(create, e("collation", cs.Collation))
	}
	if _, err := c.run(create); err != nil {
		return err
	}
	if c.sharded {
		if err := c.shard(); err != nil {
			return err
		}
	}
	for _, ix := range cs.Indexes {
		if _, err := c.run(d{e("createIndexes", "c"), e("indexes", a{ix})}); err != nil {
			return err
		}
	}
	for name, docs := range map[string]a{"c": cs.Docs, "o": cs.Other} {
		if len(docs) > 0 {
			if _, err := c.run(d{e("insert", name), e("documents", docs), e("ordered", false)}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checker) shard() error {
	for _, cmd := range []d{{e("enableSharding", "t")},
		{e("shardCollection", "t.c"), e("key", d{e("_id", "hashed")}), e("collation", d{e("locale", "simple")})}} {
		r, err := c.run(append(cmd, e("$db", "admin")))
		if err != nil {
			return err
		}
		if x, failed := failure(r); failed {
			return fmt.Errorf("%s: %v", show(cmd), x)
		}
	}
	return nil
}

// answer is the documents that a command returned, or its error.
type answer struct {
	docs []bson.RawValue
	text string // of the error
	code int64
}

func (x answer) ok() bool { return x.text == "" }

func (x answer) String() string {
	if !x.ok() {
		return fmt.Sprintf("error %d %q", x.code, x.text)
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, v := range x.docs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(v.String())
	}
	return b.String() + "]"
}

func failure(r bson.Raw) (x answer, failed bool) {
	doc := r
	if v, ok := r.Lookup("writeErrors", "0").Document(); ok {
		doc = v
	} else if r.Lookup("ok").AsBool() {
		return answer{}, false
	}
	x.text, _ = doc.Lookup("errmsg").StringValue()
	x.code, _ = doc.Lookup("code").AsInt64()
	return x, true
}

// all runs a command and reads its cursor to the end.
func (c *Checker) all(cmd d) (answer, error) {
	r, err := c.run(cmd)
	if err != nil {
		return answer{}, err
	}
	x, failed := failure(r)
	if failed {
		return x, nil
	}
	batch := r.Lookup("cursor", "firstBatch")
	for {
		for v := range bson.Raw(batch.Value).Values() {
			x.docs = append(x.docs, v)
		}
		id, _ := r.Lookup("cursor", "id").AsInt64()
		if id == 0 {
			return x, nil
		}
		if r, err = c.run(d{e("getMore", id), e("collection", cmd[0].Value)}); err != nil {
			return x, err
		}
		if bad, failed := failure(r); failed {
			return bad, nil
		}
		batch = r.Lookup("cursor", "nextBatch")
	}
}

// sorted is the answer as a set.
func (x answer) sorted() answer {
	x.docs = slices.Clone(x.docs)
	slices.SortFunc(x.docs, func(a, b bson.RawValue) int { return bytes.Compare(a.Value, b.Value) })
	return x
}

func (x answer) equal(y answer) bool {
	return x.ok() == y.ok() && slices.EqualFunc(x.docs, y.docs, bson.RawValue.Equal)
}

// same is the rule that two answers are equal. Commands with expressions fail or do not, depending
// on which documents they look at, so that one that fails says nothing about the other.
func same(rule string, cmd d, want, got answer) error {
	if !got.ok() && (!want.ok() || strings.Contains(show(cmd), "$expr") || cmd[0].Key == "aggregate") || !want.ok() {
		return nil
	}
	if want.equal(got) {
		return nil
	}
	return &brokenRule{rule, fmt.Sprintf("%s answers %v, want %v", show(cmd), got, want)}
}

// get returns an element of a document.
func get(doc d, key string) (any, bool) {
	for _, el := range doc {
		if el.Key == key {
			return el.Value, true
		}
	}
	return nil, false
}

// with returns a command with an element set or, for nil, left out.
func with(cmd d, key string, v any) d {
	out := d{}
	for _, el := range cmd {
		if el.Key != key {
			out = append(out, el)
		}
	}
	if v != nil {
		out = append(out, e(key, v))
	}
	return out
}

func filterOf(cmd d, key string) d {
	v, _ := get(cmd, key)
	f, ok := v.(d)
	if !ok {
		return d{}
	}
	return f
}

var natural = d{e("$natural", int32(1))}

// hints are the names of indexes that hold every document.
func (c *Checker) hints() ([]string, error) {
	list, err := c.all(d{e("listIndexes", "c")})
	var out []string
	for _, v := range list.docs {
		ix := bson.Raw(v.Value)
		text := ix.String()
		if strings.Contains(text, "sparse") || strings.Contains(text, "partialFilter") ||
			strings.Contains(text, "$**") {
			continue
		}
		name, _ := ix.Lookup("name").StringValue()
		out = append(out, name)
	}
	return out, err
}

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

// contents are the documents of c.
func (c *Checker) contents() (answer, error) {
	return c.all(d{e("find", "c"), e("hint", natural)})
}

// consistent is the rule that every index holds what the collection holds.
func (c *Checker) consistent(rule string) error {
	docs, err := c.contents()
	if err != nil {
		return err
	}
	hints, err := c.hints()
	if err != nil {
		return err
	}
	for _, h := range hints {
		cmd := d{e("find", "c"), e("hint", h)}
		got, err := c.all(cmd)
		if err != nil {
			return err
		}
		if err := same(rule, cmd, docs.sorted(), got.sorted()); err != nil {
			return err
		}
	}
	r, err := c.run(d{e("validate", "c"), e("full", true)})
	if err != nil {
		return err
	}
	if !r.Lookup("valid").AsBool() {
		return &brokenRule{rule, fmt.Sprintf("validate answers %v", r)}
	}
	return nil
}

// changed counts the documents that are not among those before.
func changed(before, after answer) (n int) {
	for _, v := range after.docs {
		if !slices.ContainsFunc(before.docs, v.Equal) {
			n++
		}
	}
	return n
}

func (c *Checker) checkUpdate(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	list, _ := get(cs.Command, "updates")
	updates, ok := list.(a)
	if !ok || len(updates) != 1 {
		_, err := c.run(cs.Command)
		return err
	}
	one, ok := updates[0].(d)
	if !ok {
		_, err := c.run(cs.Command)
		return err
	}
	q := filterOf(one, "q")
	before, err := c.contents()
	if err != nil {
		return err
	}
	found, err := c.all(d{e("find", "c"), e("filter", q), e("sort", d{e("_id", int32(1))})})
	if err != nil {
		return err
	}
	explained, err := c.run(d{e("explain", cs.Command)})
	if err != nil {
		return err
	}
	unchanged, err := c.contents()
	if err != nil {
		return err
	}
	if err := same("update: explain changes nothing", cs.Command, before, unchanged); err != nil {
		return err
	}
	r, err := c.run(cs.Command)
	if err != nil {
		return err
	}
	after, err := c.contents()
	if err != nil {
		return err
	}
	if err := c.consistent("update: indexes"); err != nil {
		return err
	}
	x, failed := failure(r)
	if y, bad := failure(explained); bad && !failed {
		return &brokenRule{"update: explain", fmt.Sprintf("%s runs, but cannot be explained: %v", show(cs.Command), y)}
	}
	multi, _ := get(one, "multi")
	upsert, _ := get(one, "upsert")
	if failed && multi != true {
		return same("update: an error changes nothing ("+x.text+")", cs.Command, before, after)
	}
	if failed || !found.ok() || upsert == true && len(found.docs) == 0 {
		return nil
	}
	want := len(found.docs)
	if multi != true {
		want = min(want, 1)
	}
	n, _ := r.Lookup("n").AsInt64()
	modified, _ := r.Lookup("nModified").AsInt64()
	_, pipeline := one[1].Value.(a)
	// these count as modified whether they change anything or not
	loose := pipeline || strings.Contains(show(one), "$sort")
	if int(n) != want || !loose && int(modified) != changed(before, after) {
		return &brokenRule{"update: counts", fmt.Sprintf("%s answers %v, with %d found and %d changed",
			show(cs.Command), r, want, changed(before, after))}
	}
	if want == 0 || strings.Contains(show(one), "$currentDate") { // the time goes on
		return nil
	}
	return c.checkSingle(cs, one, q, found)
}

// checkSingle holds an update of the first document that is found against findAndModify.
func (c *Checker) checkSingle(cs Case, one, q d, found answer) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	id := bson.Raw(found.docs[0].Value).Lookup("_id")
	single := with(with(with(one, "q", nil), "multi", nil), "q", d{e("$and", a{d{e("_id", id)}, q})})
	r, err := c.run(d{e("update", "c"), e("updates", a{single})})
	if err != nil {
		return err
	}
	first, failed := failure(r)
	after, err := c.contents()
	if err != nil {
		return err
	}
	if err := c.setUp(cs); err != nil {
		return err
	}
	u, _ := get(one, "u")
	fam := d{e("findAndModify", "c"), e("query", q), e("sort", d{e("_id", int32(1))}), e("update", u), e("new", true)}
	if filters, ok := get(one, "arrayFilters"); ok {
		fam = append(fam, e("arrayFilters", filters))
	}
	if r, err = c.run(fam); err != nil {
		return err
	}
	second, failed2 := failure(r)
	if failed != failed2 || first.code != second.code {
		return &brokenRule{"findAndModify: as update", fmt.Sprintf("%s: %v, the update: %v", show(fam), second, first)}
	}
	if failed {
		return nil
	}
	got, err := c.contents()
	if err != nil {
		return err
	}
	if err := same("findAndModify: as update", fam, after, got); err != nil {
		return err
	}
	doc := r.Lookup("value")
	if !slices.ContainsFunc(got.docs, doc.Equal) {
		return &brokenRule{"findAndModify: value", fmt.Sprintf("%s answers %v, which is not in %v", show(fam), r, got)}
	}
	return nil
}

func (c *Checker) checkDelete(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	list, _ := get(cs.Command, "deletes")
	deletes, ok := list.(a)
	if !ok || len(deletes) != 1 {
		_, err := c.run(cs.Command)
		return err
	}
	one, _ := deletes[0].(d)
	found, err := c.all(d{e("find", "c"), e("filter", filterOf(one, "q"))})
	if err != nil {
		return err
	}
	before, err := c.contents()
	if err != nil {
		return err
	}
	r, err := c.run(cs.Command)
	if err != nil {
		return err
	}
	after, err := c.contents()
	if err != nil {
		return err
	}
	if err := c.consistent("delete: indexes"); err != nil {
		return err
	}
	if _, failed := failure(r); failed || !found.ok() {
		return nil
	}
	want := len(found.docs)
	if limit, _ := get(one, "limit"); limit == int32(1) {
		want = min(want, 1)
	}
	if n, _ := r.Lookup("n").AsInt64(); int(n) != want || len(before.docs)-len(after.docs) != want {
		return &brokenRule{"delete: counts",
			fmt.Sprintf("%s answers %v, with %v found; %v are left", show(cs.Command), r, found, after)}
	}
	return nil
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

// checkFindAndModify holds findAndModify against the find of the document that it is to change.
func (c *Checker) checkFindAndModify(cs Case) error {
	if err := c.setUp(cs); err != nil {
		return err
	}
	before, err := c.contents()
	if err != nil {
		return err
	}
	explained, err := c.run(d{e("explain", cs.Command)})
	if err != nil {
		return err
	}
	r, err := c.run(cs.Command)
	if err != nil {
		return err
	}
	after, err := c.contents()
	if err != nil {
		return err
	}
	if err := c.consistent("findAndModify: indexes"); err != nil {
		return err
	}
	if x, failed := failure(r); failed {
		if y, bad := failure(explained); bad && y.code != x.code {
			return &brokenRule{"findAndModify: explain",
				fmt.Sprintf("%s fails with %v, explained it is %v", show(cs.Command), x, y)}
		}
		return nil // a projection fails when the document has been written
	}
	if y, bad := failure(explained); bad {
		return &brokenRule{"findAndModify: explain",
			fmt.Sprintf("%s runs, but cannot be explained: %v", show(cs.Command), y)}
	}
	n, _ := r.Lookup("lastErrorObject", "n").AsInt64()
	remove, _ := get(cs.Command, "remove")
	if gone := len(before.docs) - len(after.docs); remove == true && gone != int(n) ||
		remove != true && changed(before, after) > 1 {
		return &brokenRule{"findAndModify: counts",
			fmt.Sprintf("%s answers %v and leaves %v of %v", show(cs.Command), r, after, before)}
	}
	return nil
}
