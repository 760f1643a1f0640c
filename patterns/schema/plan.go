package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/option"
	"allium/patterns/internal/settled"
)

// PlanOptions are the options of Plan.
type PlanOptions struct {
	// Whole says that the schema is all that the database has: a collection that is not declared is
	// a difference.
	Whole bool
	// NoScan keeps Plan from reading documents: it then says neither which of them a unique index
	// or a validator would not allow, nor how many would expire at once. Each is a scan of the
	// collection.
	NoScan bool
}

// Plan returns what leads from a database to what is declared, with what each change costs and what
// is in its way. It writes nothing. No change means that the database is as declared.
//
// An index is changed in place where the server can: whether it is hidden, after what time
// documents expire (since 6.0 also if they did not before), and since 6.0 that it is unique.
// Anything else is a rebuild. Of a collection the validator, images, expiration, bounds (since 6.0)
// and the pipeline of a view can be changed, and the buckets of a time series collection can become
// coarser.
func Plan(ctx context.Context, db *allium.Database, declared Schema, opts ...PlanOptions) (Changes, error) {
	o := option.Merge(opts)
	db = settled.Database(db)
	changes, err := plan(ctx, db, declared, o.Whole)
	if err != nil {
		return nil, err
	}
	p := planner{db: db, scan: !o.NoScan, counts: map[string]int64{}}
	for i := range changes {
		if err := p.cost(ctx, &changes[i]); err != nil {
			return nil, fmt.Errorf("schema: cost of %s: %w", changes[i].Name(), err)
		}
	}
	return changes, nil
}

// plan compares a database with what is declared.
func plan(ctx context.Context, db *allium.Database, declared Schema, whole bool) (Changes, error) {
	server, err := serverVersion(ctx, db)
	if err != nil {
		return nil, err
	}
	read := ReadOptions{Collections: []string{}}
	for _, c := range declared.Collections {
		read.Collections = append(read.Collections, c.Name)
	}
	if whole {
		read.Collections = nil
	}
	live, err := Read(ctx, db, read)
	if err != nil {
		return nil, err
	}
	return Diff(live, declared, DiffOptions{Whole: whole, Server: server})
}

func serverVersion(ctx context.Context, db *allium.Database) (string, error) {
	info, err := db.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}})
	if err != nil {
		return "", err
	}
	v, _ := info.Lookup("version").StringValue()
	return v, nil
}

// planner finds out what changes cost.
type planner struct {
	db     *allium.Database
	scan   bool
	counts map[string]int64
}

// documents returns about how many documents a collection has.
func (p *planner) documents(ctx context.Context, name string) (int64, error) {
	if n, ok := p.counts[name]; ok {
		return n, nil
	}
	n, err := p.db.Collection(name).EstimatedDocumentCount(ctx)
	p.counts[name] = n
	return n, err
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (p *planner) cost(ctx context.Context, c *Change) (err error) {
	if c.Index == "" && c.Action == Create || c.Action == Impossible || c.Search {
		return nil
	}
	builds := c.Index != "" && (c.Action == Create || c.Action == Rebuild || c.model != nil && c.model.unique)
	if !builds && c.model == nil && (c.Action != Drop || c.Index != "") {
		return nil
	}
	if c.Action == Rebuild && c.Index == "" {
		return nil // a view
	}
	n, err := p.documents(ctx, c.Collection)
	if err != nil || n == 0 {
		return err
	}
	c.Documents = n
	switch {
	case c.Action == Drop && c.Index == "" && c.model == nil:
		if c.What == "the collection is not declared" {
			c.Cost = count(n, "document") + " would be lost"
		} else {
			c.Documents = 0
		}
		return nil
	case c.model != nil && c.model.unique:
		c.Cost = "reads the index's keys of " + count(n, "document")
	case builds:
		c.Cost = "builds an index on " + count(n, "document")
	}
	if !p.scan || c.model == nil {
		return nil
	}
	if m := c.model; m.validator != nil && m.level != "off" {
		c.Cost = "checks no document that is there"
		if err := p.violations(ctx, c); err != nil {
			return err
		}
	}
	if m := c.model.index; m != nil {
		if m.Unique {
			if err := p.duplicates(ctx, c); err != nil {
				return err
			}
		}
		if m.ExpireAfter != nil {
			return p.expiring(ctx, c)
		}
	}
	return nil
}

// note adds a problem to a change.
func (c *Change) note(problem, sample string) {
	if c.Problem != "" {
		problem = c.Problem + "; " + problem
	}
	c.Problem = problem
	if c.Sample == "" {
		c.Sample = sample
	}
}

// shell returns a value as the shell takes it.
func shell(v any) string {
	raw, err := bson.MarshalValue(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return raw.String()
}

// violations says how many documents a validator would not allow.
func (p *planner) violations(ctx context.Context, c *Change) error {
	filter := bson.D{{Key: "$nor", Value: bson.A{c.model.validator}}}
	n, err := p.db.Collection(c.Collection).CountDocuments(ctx, filter)
	if err != nil || n == 0 {
		return err
	}
	c.note(count(n, "document")+" that is there does not match the validator: updates of it will be refused unless they mend it",
		fmt.Sprintf("db.getCollection(%q).find(%s)", c.Collection, shell(filter)))
	return nil
}

// expiring says how many documents an expiration would delete at once.
func (p *planner) expiring(ctx context.Context, c *Change) error {
	by, m := c.model.expires, c.model.index
	if by == "" {
		spec, err := document(indexOptions, m)
		if err != nil {
			return err
		}
		key, _ := spec.Lookup("key").Document()
		for k := range key.All() {
			by = k
		}
	}
	filter := bson.D{{Key: by, Value: bson.D{{Key: "$lt", Value: time.Now().Add(-*m.ExpireAfter).UTC()}}}}
	if m.PartialFilter != nil {
		filter = bson.D{{Key: "$and", Value: bson.A{filter, m.PartialFilter}}}
	}
	n, err := p.db.Collection(c.Collection).CountDocuments(ctx, filter)
	if err == nil && n > 0 {
		c.note("the server will delete "+count(n, "document")+" that is older already",
			fmt.Sprintf("db.getCollection(%q).find(%s)", c.Collection, shell(filter)))
	}
	return err
}

// duplicates says which keys a unique index would not allow.
func (p *planner) duplicates(ctx context.Context, c *Change) error {
	pipeline, err := duplicated(c.model.index)
	if err != nil || pipeline == nil {
		return err
	}
	cur, err := allium.As[bson.Raw](p.db.Collection(c.Collection)).Aggregate(ctx,
		append(slices.Clip(pipeline), bson.D{{Key: "$limit", Value: 1000}}),
		allium.AggregateOptions{Collation: c.model.collation, AllowDiskUse: new(true)})
	if err != nil {
		return err
	}
	list, err := cur.All(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	n := count(int64(len(list)), "key")
	if len(list) == 1000 {
		n = "1000 keys or more"
	}
	with := ""
	if c.model.collation != nil {
		raw, err := document(collationOptions, c.model.collation)
		if err != nil {
			return err
		}
		with = ", {collation: " + raw.String() + "}"
	}
	verb := " occur"
	if len(list) == 1 {
		verb = " occurs"
	}
	c.note(n+verb+" in more than one document, so that the index cannot be unique; the first is "+
		list[0].Lookup("_id").String(),
		fmt.Sprintf("db.getCollection(%q).aggregate(%s%s)", c.Collection, shell(pipeline), with))
	return nil
}

// duplicated returns a pipeline that finds the keys of a unique index which more than one document
// has, as {_id: {field: value}, ids: [...]}. It is nil for an index of a kind that it does not
// know.
func duplicated(m *allium.IndexModel) (bson.A, error) {
	spec, err := document(indexOptions, m)
	if err != nil {
		return nil, err
	}
	keys, _ := spec.Lookup("key").Document()
	var paths, hollows []string // hollows are fields that say that a path leads to an empty array
	for k, v := range keys.All() {
		if !v.IsNumber() || strings.Contains(k, "$**") {
			return nil, nil
		}
		paths = append(paths, k)
		hollows = append(hollows, fmt.Sprintf("%sempty%d", own, len(paths)))
	}
	var out bson.A
	if m.PartialFilter != nil {
		out = append(out, bson.D{{Key: "$match", Value: m.PartialFilter}})
	}
	if m.Sparse {
		var any bson.A
		for _, p := range paths {
			any = append(any, bson.D{{Key: p, Value: bson.D{{Key: "$exists", Value: true}}}})
		}
		out = append(out, bson.D{{Key: "$match", Value: bson.D{{Key: "$or", Value: any}}}})
	}
	// Each element of an array is a key. What an empty array has at the end of a path is none of
	// the others, and in the middle of one it is null.
	unwound := map[string]bool{}
	group := bson.D{}
	for i, p := range paths {
		parts := strings.Split(p, ".")
		for j := range parts {
			path := strings.Join(parts[:j+1], ".")
			if unwound[path] {
				continue
			}
			unwound[path] = true
			if j == len(parts)-1 {
				out = append(out, bson.D{{Key: "$set",
					Value: bson.D{{Key: hollows[i],
						Value: bson.D{{Key: "$eq", Value: bson.A{"$" + path, bson.A{}}}}}}}})
			}
			out = append(out, bson.D{{Key: "$unwind",
				Value: bson.D{{Key: "path", Value: "$" + path}, {Key: "preserveNullAndEmptyArrays", Value: true}}}})
		}
		group = append(group, bson.E{Key: fmt.Sprintf("k%d", i), Value: bson.D{{Key: "$cond", Value: bson.A{
			"$" + hollows[i], bson.MinKey{}, bson.D{{Key: "$ifNull", Value: bson.A{"$" + p, nil}}}}}}})
	}
	return append(out,
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id",
			Value: bson.D{{Key: "key", Value: group}, {Key: "doc", Value: "$_id"}}}}}},
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$_id.key"},
			{Key: "ids", Value: bson.D{{Key: "$push", Value: "$_id.doc"}}}}}},
		bson.D{{Key: "$match", Value: bson.D{{Key: "ids.1", Value: bson.D{{Key: "$exists", Value: true}}}}}},
	), nil
}
