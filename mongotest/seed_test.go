package mongotest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"allium/bson"
	"allium/internal/dump"
	"allium/mongotest"
)

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func zipFile(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func bsonDocs(docs ...bson.D) string {
	var b []byte
	for _, d := range docs {
		raw, err := bson.Marshal(d)
		if err != nil {
			panic(err)
		}
		b = append(b, raw...)
	}
	return string(b)
}

func archiveFile(t *testing.T) string {
	t.Helper()
	all := &dump.Contents{Server: "8.0.4", Collections: []*dump.Collection{{DB: "app", Name: "c", Metadata: []byte(`{"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"},{"v":2,"key":{"n":1},"name":"n_1"}]}`)}}}
	var b bytes.Buffer
	err := dump.WriteArchive(&b, all, func(_ *dump.Collection, w io.Writer) error {
		_, err := w.Write([]byte(bsonDocs(bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 7}})))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// seeded returns the documents of app.c and the names of its indexes, as text.
func seeded(t *testing.T, d *mongotest.Deployment, db, coll string) string {
	t.Helper()
	c := dialNode(t, d, d.Primary())
	var out []string
	for _, cmd := range []bson.D{{{Key: "find", Value: coll}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}}, {{Key: "listIndexes", Value: coll}}} {
		reply := run(t, c, append(cmd, bson.E{Key: "$db", Value: db}))
		if name, failed := reply.Lookup("codeName").StringValue(); failed {
			return strings.Join(append(out, name), " ")
		}
		list, _ := reply.Lookup("cursor", "firstBatch").Array()
		for v := range list.Values() {
			doc, _ := v.Document()
			if cmd[0].Key == "listIndexes" {
				name, _ := doc.Lookup("name").StringValue()
				out = append(out, name)
				continue
			}
			out = append(out, doc.String())
		}
	}
	return strings.Join(out, " ")
}

// TestSeed reads the same two documents from every form.
func TestSeed(t *testing.T) {
	const lines, array = `{"_id":1,"n":7}` + "\n" + `{"_id":2,"n":8}` + "\n", `[{"_id":1,"n":7},{"_id":2,"n":8}]`
	const want = `{"_id":1,"n":7} {"_id":2,"n":8} _id_`
	documents := bsonDocs(bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 7}}, bson.D{{Key: "_id", Value: 2}, {Key: "n", Value: 8}})
	meta := `{"options":{"validationLevel":"moderate"},"validator":{"n":{"$gt":0}},"indexes":[{"key":{"n":1,"m":-1},"unique":true}]}`
	for _, c := range []struct {
		name string
		fsys fs.FS
		want string
	}{
		{"lines", files("app/c.json", lines), want},
		{"an array", files("app/c.json", array), want},
		{"with a byte order mark", files("app/c.json", "\xef\xbb\xbf"+array), want},
		{"jsonl", files("app/c.jsonl", lines), want},
		{"ndjson compressed", files("app/c.ndjson.gz", zipFile(t, lines)), want},
		{"without folders", files("app.c.json", lines), want},
		{"one file", files("all.json", `{"app.c": `+array+`}`), want},
		{"CSV", files("app/c.csv", "_id,n\n1,7\n2,8\n"), want},
		{"TSV", files("app/c.tsv", "_id\tn\n1\t7\n2\t8\n"), want},
		{"BSON", files("app/c.bson", documents), want},
		{"BSON compressed", files("app/c.bson.gz", zipFile(t, documents), "prelude.json", "{}"), want},
		{"hidden files", files(".gitkeep", "", "app/.DS_Store", "x", "app/c.json", lines), want},
		{"metadata", files("app/c.json", lines, "app/c.meta.json", meta), want + " n_1_m_-1"},
		{"metadata of mongodump", files("app/c.bson", documents, "app/c.metadata.json", `{"options":{},"indexes":[{"v":{"$numberInt":"2"},"key":{"n":{"$numberInt":"1"}},"name":"byN"}],"uuid":"00","collectionName":"c","type":"collection"}`), want + " byN"},
		{"an archive", files("d.archive", archiveFile(t)), `{"_id":1,"n":7} _id_ n_1`},
		{"an archive compressed", files("dump.gz", zipFile(t, archiveFile(t))), `{"_id":1,"n":7} _id_ n_1`},
		{"an empty collection", files("app/c.json", ""), "_id_"},
		{"metadata alone", files("app/c.meta.json", `{"indexes":[{"key":{"a":"text"}}]}`), "_id_ a_text"},
		{"a view", files("app/a.json", lines, "app/c.meta.json", `{"options":{"viewOn":"a","pipeline":[{"$match":{"n":8}}]}}`), `{"_id":2,"n":8} CommandNotSupportedOnView`},
		{"types", files("app/c.csv", "_id.int64(),d.date(2006-01-02),s.string(),in.side.boolean(),f.double()\n1,2020-02-03,7,true,1\n"), `{"_id":1,"d":{"$date":"2020-02-03T00:00:00Z"},"s":"7","in":{"side":true},"f":1.0} _id_`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Seed(c.fsys))
			if got := seeded(t, d, "app", "c"); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestSeedErrors wants file, place, and what was expected.
func TestSeedErrors(t *testing.T) {
	validated := `{"validator":{"n":{"$gt":0}}}`
	for _, c := range []struct {
		name string
		fsys fs.FS
		want []string
	}{
		{"broken JSON", files("app/c.json", "{\"a\":1}\n{\"a\":}\n"), []string{"app/c.json:2:6: "}},
		{"an early end", files("app/c.json", "[{\"a\":1},\n{\"a\":"), []string{"app/c.json:2:", "ends in the middle"}},
		{"a number", files("app/c.json", "[{}, 7]"), []string{"app/c.json:1:6: want a document", `"7]"`}},
		{"commas between lines", files("app/c.json", "{},\n{}"), []string{"app/c.json:1:3: want documents without commas"}},
		{"something behind", files("app/c.json", "[{}]\nx"), []string{"app/c.json:2:1: want nothing behind the array"}},
		{"a bad wrapper", files("app/c.json", "\n{\"a\": {\"$oid\": \"xyz\"}}"), []string{"app/c.json:2:"}},
		{"a name without database", files("users.json", "{}\n{\"a\":1}"), []string{"users.json: want", "DB.COLLECTION.json"}},
		{"another file", files("app/c.txt", ""), []string{"app/c.txt: want a file that ends in .json"}},
		{"a folder in a folder", files("app/x/c.json", ""), []string{"app/x: want files of collections"}},
		{"twice", files("app/c.json", "", "app/c.csv", "a\n1\n"), []string{"app/c.json: app.c has documents in app/c.csv, too"}},
		{"seed without array", files("s.json", "{\"app.c\":\n[{}],\n\"app.d\": 7}"), []string{"s.json:3:10: \"app.d\": want an array of documents"}},
		{"seed without dot", files("s.json", `{"app.c":[],"d":[]}`), []string{`s.json:1:13: "d": want "db.collection"`}},
		{"CSV with too many fields", files("app/c.csv", "a,b\n1,2,3\n"), []string{"app/c.csv:2:", "as many fields"}},
		{"CSV with a bad value", files("app/c.csv", "a,b.int32()\n1,x\n"), []string{`app/c.csv:2:3: column "b": want an integer of 32 bits, and not "x"`}},
		{"CSV with a bad type", files("app/c.csv", "a,b.int9()\n"), []string{`app/c.csv:1:3: column "b.int9()": want one of the types`}},
		{"CSV of a field twice", files("app/c.csv", "a,a\n"), []string{`app/c.csv:1:3: the field "a" is there twice`}},
		{"CSV of a value with fields", files("app/c.csv", "a,a.b\n1,2\n"), []string{`app/c.csv:2:3: the field "a" is a value`}},
		{"CSV without a line", files("app/c.csv", ""), []string{"app/c.csv: want a first line"}},
		{"CSV with a broken quote", files("app/c.csv", "a\n\"x\"y\n"), []string{"app/c.csv:2:"}},
		{"BSON that ends early", files("app/c.bson", bsonDocs(bson.D{{Key: "a", Value: 1}})+"\x10\x00\x00"), []string{"app/c.bson: document 2 at byte 12: want a whole document of BSON"}},
		{"an oplog", files("oplog.bson", ""), []string{"oplog.bson: ", "mongorestore --oplogReplay"}},
		{"a damaged archive", files("d.archive", strings.Replace(archiveFile(t), "\x10n\x00\x07", "\x10n\x00\x09", 1)), []string{"d.archive: want a whole archive", "app.c is damaged"}},
		{"half of an archive", files("d.archive", archiveFile(t)[:200]), []string{"d.archive: want a whole archive"}},
		{"half of a gzip", files("app/c.json.gz", zipFile(t, "{}")[:12]), []string{"app/c.json.gz: want a whole file of gzip"}},
		{"metadata of another kind", files("app/c.meta.json", "{\n\"index\": []}"), []string{`app/c.meta.json:2:1: "index": want options`}},
		{"an index without key", files("app/c.meta.json", `{"indexes":[{"name":"x"}]}`), []string{"app/c.meta.json:1:2: indexes: want a key"}},
		{"an index of no kind", files("app/c.meta.json", `{"indexes":[{"key":{"a":"no"}}]}`), []string{"app/c.meta.json: index", "app.c: "}},
		{"an option of no kind", files("app/c.meta.json", `{"options":{"size":"x"}}`), []string{"app/c.meta.json: options of app.c: "}},
		{"a duplicate key", files("app/c.json", "{\"_id\":1}\n\n{\"_id\":1}"), []string{"app/c.json:3:1: insert into app.c: ", "duplicate key"}},
		{"a document that does not validate", files("app/c.json", "[{\"n\":1},\n  {\"n\":0}]", "app/c.meta.json", validated), []string{"app/c.json:2:3: insert into app.c: DocumentValidationFailure"}},
		{"a view with documents", files("app/c.json", "{}", "app/c.meta.json", `{"options":{"viewOn":"a"}}`), []string{"app/c.json:1:1: app.c is a view by app/c.meta.json"}},
		{"a user that is none", files("admin/system.users.bson", bsonDocs(bson.D{{Key: "user", Value: 1}})), []string{"admin/system.users.bson: document 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := mongotest.Open(mongotest.Seed(c.fsys))
			if err == nil {
				d.Stop()
				t.Fatal("it started")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v\nlacks %s", err, w)
				}
			}
		})
	}
}

// What is there stays, and dumped documents need not pass the validator.
func TestSeedTwice(t *testing.T) {
	doc := bsonDocs(bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}})
	d := mongotest.Start(t, mongotest.ReplicaSet(3),
		mongotest.Seed(files("app/c.bson", doc, "app/c.metadata.json", `{"options":{"validator":{"n":{"$gt":0}}},"indexes":[]}`)),
		mongotest.SeedFile(files("x.json", `{"app.c":[{"_id":2}],"app.d":[{"_id":3}]}`), "x.json"))
	if got := seeded(t, d, "app", "c") + " " + seeded(t, d, "app", "d"); got != `{"_id":1,"n":0} _id_ {"_id":3} _id_` {
		t.Error(got)
	}
}

// TestPrepare reaches every kind of deployment before it listens, and only then in memory.
func TestPrepare(t *testing.T) {
	for name, opts := range map[string][]mongotest.Option{
		"standalone": nil, "set": {mongotest.ReplicaSet(3)}, "cluster": {mongotest.Sharded(2, 2)}, "balancer": {mongotest.LoadBalanced(2)}, "memory": {mongotest.InMemory()}, "TLS": {mongotest.TLS(), mongotest.Auth("a", "b")},
	} {
		t.Run(name, func(t *testing.T) {
			called := 0
			look := func(d *mongotest.Deployment) error {
				return d.Inside(func(uri string) error {
					called++
					host := strings.TrimSuffix(strings.TrimPrefix(uri, "mongodb://"), "/?directConnection=true")
					c, err := d.DialContext(t.Context(), "tcp", host)
					if err != nil {
						return err
					}
					defer c.Close()
					if c.RemoteAddr().Network() != "memory" {
						t.Errorf("connected by %s", c.RemoteAddr().Network())
					}
					for _, cmd := range []bson.D{{{Key: "hello", Value: 1}}, {{Key: "listDatabases", Value: 1}}, {{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}}} {
						if reply := run(t, c, append(cmd, bson.E{Key: "$db", Value: "admin"})); !reply.Lookup("ok").AsBool() {
							t.Errorf("%v", reply)
						}
					}
					return nil
				})
			}
			d := mongotest.Start(t, append(opts, mongotest.Prepare(look))...)
			if err := look(d); err != nil || called != 2 {
				t.Fatal(err, called)
			}
			c, err := d.DialContext(context.Background(), "tcp", d.Hosts()[0])
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if in := c.RemoteAddr().Network() == "memory"; in != (name == "memory") {
				t.Errorf("connected by %s", c.RemoteAddr().Network())
			}
		})
	}
}

// Nobody else is let in before it is prepared, and who waits is served then.
func TestNobodyIsServedBeforeThePreparation(t *testing.T) {
	for _, fails := range []bool{false, true} {
		var early net.Conn
		d, err := mongotest.Open(mongotest.Prepare(func(d *mongotest.Deployment) (err error) {
			if early, err = net.Dial("tcp", d.Hosts()[0]); err != nil {
				return err
			}
			early.SetReadDeadline(time.Unix(1, 0))
			if _, err := early.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			if d.Node(0).Connections() != 0 {
				t.Error("it has connections")
			}
			early.SetReadDeadline(time.Time{})
			if fails {
				return errors.New("no")
			}
			return nil
		}))
		if (err != nil) != fails {
			t.Fatal(err)
		}
		if fails {
			if n, err := early.Read(make([]byte, 1)); err == nil {
				t.Errorf("%d bytes", n)
			}
		} else if reply := run(t, early, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}); !reply.Lookup("ok").AsBool() {
			t.Error(reply)
		}
		early.Close()
		if d != nil {
			d.Stop()
		}
	}
}
