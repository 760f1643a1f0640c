package mongotest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/mongotest/internal/flavour"
)

var update = flag.Bool("update", false, "write the table of docs/other-servers.md")

// opened opens a client of a deployment that is like another server, in one that retries no writes
// unless they are wanted.
func opened(t *testing.T, name string, opts ...allium.ClientOptions) *allium.Client {
	t.Helper()
	// What is refused has to be there, which is most in a new version.
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Like(name), mongotest.Version("8.0"))
	c, err := allium.Open(d.URI(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// refused is a command that a row of the table refuses for a name.
func refused(kind flavour.Kind, name string) bson.D {
	d := func(pairs ...any) (doc bson.D) {
		for i := 0; i < len(pairs); i += 2 {
			doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
		}
		return doc
	}
	aggregate := func(stage bson.D) bson.D {
		return d("aggregate", "c", "pipeline", bson.A{stage}, "cursor", bson.D{})
	}
	switch kind {
	case flavour.Commands:
		return d(name, 1)
	case flavour.Arguments:
		path, want, valued := strings.Cut(name, "=")
		fields := strings.Split(strings.ReplaceAll(path, "*", "a"), ".")
		var v any = true
		if valued {
			v = want
		}
		for i := len(fields) - 1; i > 0; i-- {
			if v = d(fields[i], v); fields[i-1] == "indexes" {
				v = bson.A{v}
			}
		}
		return append(d(fields[0], "c"), v.(bson.D)...)
	case flavour.Stages:
		return aggregate(d(name, bson.D{}))
	case flavour.StageOptions:
		stage, field, _ := strings.Cut(name, ".")
		return aggregate(d(stage, d(field, bson.D{})))
	case flavour.Filters:
		return d("find", "c", "filter", d("$or", bson.A{d("a", d("$not", d(name, 1)))}))
	case flavour.Updates:
		return d("update", "c", "updates", bson.A{d("q", bson.D{}, "u", d(name, d("a", 1)))})
	case flavour.Expressions:
		var v any = d(name, 1)
		if strings.HasPrefix(name, "$$") {
			v = name + ".a"
		}
		return aggregate(d("$project", d("a", d("$ifNull", bson.A{"$b", v}))))
	}
	return nil
}

// Each name of each row is refused with the row's error, and by a server of MongoDB's it is not: a
// name that is spelt wrong would be unknown to both.
func TestLikeRefuses(t *testing.T) {
	for _, f := range flavour.Flavours {
		t.Run(f.Name, func(t *testing.T) {
			c := opened(t, f.Name)
			for _, r := range f.Refuses {
				for name := range strings.FieldsSeq(r.Names) {
					cmd := refused(r.Kind, name)
					db := "test"
					if r.Kind == flavour.Commands {
						db = "admin"
					}
					_, err := c.Database(db).RunCommand(t.Context(), cmd)
					text := strings.ReplaceAll(r.Text, "%s", strings.SplitN(name, "=", 2)[0])
					if !mongoerr.HasCode(err, r.Code) || !strings.Contains(err.Error(), text) {
						t.Errorf("%v: %v, want %d: %s", cmd, err, r.Code, text)
					}
				}
			}
		})
	}
}

// What the table does not name works, also where it stands close to what is refused.
func TestLikeAllows(t *testing.T) {
	for _, name := range mongotest.Likes() {
		t.Run(name, func(t *testing.T) {
			c := opened(t, name, allium.ClientOptions{RetryWrites: new(false)})
			ctx := t.Context()
			coll := allium.CollectionOf[bson.D](c.Database("test"), "c")
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: "$$REMOVE"},
				{Key: "pipeline", Value: bson.A{bson.D{{Key: "b", Value: 1}}}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.UpdateOne(ctx, bson.D{{Key: "a", Value: bson.D{{Key: "$exists", Value: true}}}},
				bson.D{{Key: "$set", Value: bson.D{{Key: "facet", Value: 1}}}}); err != nil {
				t.Error(err)
			}
			if _, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{1, 2}}}}}); err != nil {
				t.Error(err)
			}
			if _, err := c.Database("test").RunCommand(ctx, bson.D{{Key: "find", Value: "c"},
				{Key: "noCursorTimeout", Value: false}}); err != nil {
				t.Error(err)
			}
			cur, err := coll.Aggregate(ctx, bson.A{bson.D{{Key: "$match", Value: bson.D{}}},
				bson.D{{Key: "$project", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$literal",
					Value: bson.D{{Key: "$where", Value: "$$REMOVE"}, {Key: "$rand", Value: bson.D{}}}}}}}}}})
			if err == nil {
				_, err = cur.All(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Limits hold wherever something stands: in pipelines within pipelines, in statements, in updates.
func TestLikeLooksEverywhere(t *testing.T) {
	c := opened(t, "documentdb", allium.ClientOptions{RetryWrites: new(false)})
	ctx := t.Context()
	coll := allium.CollectionOf[bson.D](c.Database("test"), "c")
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	facet := bson.A{d("$facet", d("x", bson.A{}))}
	lookup := func(inner bson.A) bson.A {
		return bson.A{d("$lookup", bson.D{{Key: "from", Value: "d"}, {Key: "as", Value: "x"}, {Key: "pipeline", Value: inner}})}
	}
	where := d("$where", "true")
	run := func(cmd bson.D) error {
		_, err := c.Database("test").RunCommand(ctx, cmd)
		return err
	}
	for what, try := range map[string]struct {
		code int32
		call func() error
	}{
		"pipeline in $lookup": {304, func() error { _, err := coll.Aggregate(ctx, lookup(lookup(facet))); return err }},
		"$match in $lookup": {303, func() error {
			_, err := coll.Aggregate(ctx, lookup(bson.A{d("$match", where)}))
			return err
		}},
		"$expr in a filter": {303, func() error {
			_, err := coll.CountDocuments(ctx, d("$expr", d("$gt", bson.A{d("$rand", bson.D{}), 0.5})))
			return err
		}},
		"statement of an update": {303, func() error {
			_, err := coll.UpdateMany(ctx, d("$or", bson.A{where}), d("$set", d("a", 1)))
			return err
		}},
		"statement of a delete": {303, func() error { _, err := coll.DeleteMany(ctx, where); return err }},
		"pipeline of an update": {304, func() error { _, err := coll.UpdateMany(ctx, bson.D{}, bson.A{d("$replaceWith", "$a")}); return err }},
		"pipeline of findAndModify": {304, func() error {
			_, err := coll.FindOneAndUpdate(ctx, bson.D{}, bson.A{d("$replaceWith", "$a")})
			return err
		}},
		"filter of findAndModify": {303, func() error { _, err := coll.FindOneAndDelete(ctx, where); return err }},
		"an index": {303, func() error {
			return run(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{
				bson.D{{Key: "key", Value: d("a", 1)}, {Key: "name", Value: "a"}},
				bson.D{{Key: "key", Value: d("b", "hashed")}, {Key: "name", Value: "b"}}}}})
		}},
	} {
		if err := try.call(); !mongoerr.HasCode(err, try.code) {
			t.Errorf("%s: %v, want code %d", what, err, try.code)
		}
	}
}

// Retryable writes and transactions are refused where they are, and what fills a deployment may do
// everything.
func TestLikeSessions(t *testing.T) {
	for name, want := range map[string]struct{ retry, txn int32 }{
		"documentdb": {301, 0}, "cosmosdb": {2, 0}, "ferretdb": {0, 238}, "atlas-m0": {}, "atlas-flex": {},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(what string, err error, code int32) {
				if code == 0 && err != nil || code != 0 && !mongoerr.HasCode(err, code) {
					t.Errorf("%s: %v, want code %d", what, err, code)
				}
			}
			insert := func(ctx context.Context, c *allium.Client) error {
				_, err := allium.CollectionOf[bson.D](c.Database("test"), "c").InsertOne(ctx, bson.D{})
				return err
			}
			c := opened(t, name)
			err := insert(t.Context(), c)
			check("insert", err, want.retry)
			if want.retry != 0 && !strings.Contains(err.Error(), "retryWrites=false") && !strings.Contains(err.Error(), "retrywrites=false") {
				t.Errorf("%v does not say retryWrites=false", err)
			}
			check("transaction", c.Transact(t.Context(), func(ctx context.Context) error { return insert(ctx, c) }), want.txn)
		})
	}
	mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Like("documentdb"), mongotest.Prepare(func(d *mongotest.Deployment) error {
		return d.Inside(func(uri string) error {
			c, err := allium.Open(uri, allium.ClientOptions{Dialer: d})
			if err != nil {
				return err
			}
			defer c.Close(t.Context())
			_, err = allium.CollectionOf[bson.D](c.Database("test"), "c").InsertOne(t.Context(), bson.D{})
			return err
		})
	}))
}

// Each limit lets through as much as it says, and refuses the next, wherever it comes about.
func TestLikeLimits(t *testing.T) {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	insert := func(c *allium.Client, db, coll string) error {
		_, err := allium.CollectionOf[bson.D](c.Database(db), coll).InsertOne(t.Context(), d("a", 1))
		return err
	}
	// much does something of a size, in a way.
	much := map[flavour.Measure]func(c *allium.Client, size, way int) error{
		flavour.StageCount: func(c *allium.Client, size, way int) error {
			stages := bson.A{}
			for range size {
				stages = append(stages, d("$match", bson.D{}))
			}
			switch way {
			case 1:
				stages = bson.A{d("$unionWith", bson.D{{Key: "coll", Value: "c"}, {Key: "pipeline", Value: stages}})}
			case 2:
				stages = bson.A{d("$facet", d("x", stages))}
			}
			_, err := c.Database("test").RunCommand(t.Context(), bson.D{{Key: "aggregate", Value: "c"},
				{Key: "pipeline", Value: stages}, {Key: "cursor", Value: bson.D{}}})
			return err
		},
		flavour.DatabaseBytes: func(c *allium.Client, size, way int) error {
			db := c.Database(strings.Repeat("x", size))
			if way == 0 {
				_, err := db.RunCommand(t.Context(), d("ping", 1))
				return err
			}
			return insert(c, db.Name(), "c")
		},
		flavour.Databases: func(c *allium.Client, size, way int) error {
			for i := range size - 1 {
				if err := insert(c, fmt.Sprint("db", i), "c"); err != nil {
					return fmt.Errorf("after %d: %w", i, err)
				}
			}
			if err := insert(c, "db0", "d"); err != nil { // in one that is there
				return err
			}
			if way == 0 {
				return insert(c, "last", "c")
			}
			return c.Database("last").CreateCollection(t.Context(), "c")
		},
		flavour.Collections: func(c *allium.Client, size, way int) error {
			// A view counts, and not what the server has its definition in.
			if _, err := c.Database("db0").RunCommand(t.Context(), bson.D{{Key: "create", Value: "v"}, {Key: "viewOn", Value: "c0"}}); err != nil {
				return fmt.Errorf("after a view: %w", err)
			}
			for i := range size - 2 {
				if err := insert(c, fmt.Sprint("db", i%3), fmt.Sprint("c", i)); err != nil {
					return fmt.Errorf("after %d: %w", i, err)
				}
			}
			if err := insert(c, "db0", "c0"); err != nil { // into one that is there
				return err
			}
			switch db := c.Database("db1"); way {
			case 0:
				return insert(c, "db0", "last")
			case 1:
				_, err := db.RunCommand(t.Context(), bson.D{{Key: "create", Value: "last"}, {Key: "viewOn", Value: "c1"}})
				return err
			default:
				_, err := db.RunCommand(t.Context(), bson.D{{Key: "aggregate", Value: "c1"},
					{Key: "pipeline", Value: bson.A{d("$out", "last")}}, {Key: "cursor", Value: bson.D{}}})
				return err
			}
		},
	}
	for _, f := range flavour.Flavours {
		for _, l := range f.Limits {
			for way := range 3 {
				t.Run(fmt.Sprint(f.Name, " ", l.Of, " ", way), func(t *testing.T) {
					t.Parallel()
					if err := much[l.Of](opened(t, f.Name), l.Most, way); err != nil {
						t.Errorf("%d: %v", l.Most, err)
					}
					err := much[l.Of](opened(t, f.Name), l.Most+1, way)
					if text := fmt.Sprintf(l.Text, l.Most+1, l.Most); !mongoerr.HasCode(err, l.Code) || !strings.Contains(err.Error(), text) ||
						strings.HasPrefix(err.Error(), "after ") {
						t.Errorf("%d: %v, want %d: %s", l.Most+1, err, l.Code, text)
					}
				})
			}
		}
	}
}

func TestLikeUnknown(t *testing.T) {
	_, err := mongotest.Open(mongotest.Like("documentDB"))
	if err == nil || !strings.Contains(err.Error(), strings.Join(mongotest.Likes(), ", ")) {
		t.Errorf("%v does not list the names", err)
	}
}

// The version is that of the other server unless the program says another one.
func TestLikeVersion(t *testing.T) {
	for version, want := range map[string]string{"": "4.2", "7.0": "7.0"} {
		d := mongotest.Start(t, mongotest.Like("cosmosdb"), mongotest.Version(version))
		c, err := allium.Open(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		reply, err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}})
		if got, _ := reply.Lookup("version").StringValue(); err != nil || !strings.HasPrefix(got, want+".") {
			t.Errorf("version %q, %v, want %s", got, err, want)
		}
	}
}

// The page has the table. With -update it gets it.
func TestLikePage(t *testing.T) {
	const page, begin, end = "../docs/other-servers.md", "<!--likes-->\n", "<!--/likes-->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	want := head + begin + likeTable() + end + tail
	if want == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("the page differs from the table: go test ./mongotest -run TestLikePage -update")
}

// likeTable is the table as docs/other-servers.md shows it.
func likeTable() string {
	var b strings.Builder
	for _, f := range flavour.Flavours {
		fmt.Fprintf(&b, "\n### %s: `%s`\n\nVersion %s unless another one is chosen; by [its documentation](%s).\n\n"+
			"| Refused | Names | Error |\n|---|---|---|\n", f.Title, f.Name, f.Version, f.Source)
		for _, r := range f.Refuses {
			var names []string
			for name := range strings.FieldsSeq(r.Names) {
				names = append(names, "`"+name+"`")
			}
			fmt.Fprintf(&b, "| %s | %s | %d: `%s` |\n", r.Kind, strings.Join(names, ", "), r.Code,
				strings.ReplaceAll(r.Text, "%s", "NAME"))
		}
		for _, l := range f.Limits {
			text := strings.NewReplacer("%[1]d", "FOUND", "%[2]d", fmt.Sprint(l.Most)).Replace(l.Text)
			fmt.Fprintf(&b, "| more than | %d %s | %d: `%s` |\n", l.Most, l.Of, l.Code, text)
		}
	}
	b.WriteString("\n")
	return b.String()
}
