package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/anystate"
	"allium/mongotest"
)

// served starts a deployment that keeps its data in a folder, and returns what ends it.
func served(t *testing.T, dir, seed string, opts ...mongotest.Option) (client *allium.Client, end func()) {
	t.Helper()
	f := &serveFlags{data: dir}
	if seed != "" {
		f.seed = []string{seed}
	}
	return servedWith(t, f, opts...)
}

// kept keeps what a deployment holds, and gives the place free.
func kept(f *serveFlags, d *mongotest.Deployment) error {
	defer f.release()
	return f.keep(d)
}

// servedWith starts a deployment as the flags say, and returns what ends it.
func servedWith(t *testing.T, f *serveFlags, opts ...mongotest.Option) (client *allium.Client, end func()) {
	t.Helper()
	contents, err := f.contents(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	d := mongotest.Start(t, append(opts, contents...)...)
	client, err = allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	return client, func() {
		t.Helper()
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := kept(f, d); err != nil {
			t.Fatal(err)
		}
		d.Stop()
	}
}

// visible is all that a client sees of what is kept.
func visible(t *testing.T, client *allium.Client) map[string]string {
	t.Helper()
	all, err := anystate.Describe(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for _, line := range anystate.Differences(got, want) {
		t.Errorf("%s: %s", what, line)
	}
}

// every makes a collection of each kind, with each kind of index.
func every(t *testing.T, client *allium.Client, version string) {
	t.Helper()
	db := client.Database("app")
	run := func(cmd bson.D) {
		t.Helper()
		if _, err := db.RunCommand(t.Context(), cmd); err != nil {
			t.Fatalf("%v: %v", cmd[0], err)
		}
	}
	type D = bson.D
	insert := func(coll string, docs ...any) {
		t.Helper()
		run(D{{Key: "insert", Value: coll}, {Key: "documents", Value: bson.A(docs)}})
	}
	index := func(coll string, key D, more ...bson.E) {
		t.Helper()
		run(D{{Key: "createIndexes", Value: coll}, {Key: "indexes", Value: bson.A{append(D{{Key: "key", Value: key}, {Key: "name", Value: fmt.Sprint("of ", key)}}, more...)}}})
	}
	insert("plain", D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, "x"}}, {Key: "empty", Value: bson.Timestamp{}}}, D{{Key: "_id", Value: D{{Key: "x", Value: 1}}}})
	index("plain", D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}, bson.E{Key: "unique", Value: true}, bson.E{Key: "partialFilterExpression", Value: D{{Key: "a", Value: D{{Key: "$gt", Value: 0}}}}})
	index("plain", D{{Key: "when", Value: 1}}, bson.E{Key: "expireAfterSeconds", Value: 3600})
	index("plain", D{{Key: "h", Value: "hashed"}})
	index("plain", D{{Key: "place", Value: "2dsphere"}})
	insert("plain", D{{Key: "_id", Value: 3}, {Key: "flat", Value: bson.A{bson.A{1, 2}, bson.A{-9.5, 10}}}, {Key: "place", Value: bson.A{5, 6}}})
	index("plain", D{{Key: "flat", Value: "2d"}, {Key: "a", Value: -1}}, bson.E{Key: "bits", Value: 20}, bson.E{Key: "min", Value: -10}, bson.E{Key: "max", Value: 10})
	index("plain", D{{Key: "$**", Value: 1}}, bson.E{Key: "wildcardProjection", Value: D{{Key: "x", Value: 1}}})
	insert("texts", D{{Key: "_id", Value: 1}, {Key: "title", Value: "a story"}, {Key: "body", Value: "of two mice"}})
	index("texts", D{{Key: "lang", Value: 1}, {Key: "title", Value: "text"}, {Key: "body", Value: "text"}, {Key: "n", Value: 1}}, bson.E{Key: "weights", Value: D{{Key: "title", Value: 5}}}, bson.E{Key: "default_language", Value: "english"})
	insert("all texts", D{{Key: "_id", Value: 1}, {Key: "x", Value: "mice"}})
	index("all texts", D{{Key: "$**", Value: "text"}})
	insert("odd/name%20", D{{Key: "_id", Value: 1}})
	run(D{{Key: "create", Value: "capped"}, {Key: "capped", Value: true}, {Key: "size", Value: 4096}, {Key: "max", Value: 5}})
	insert("capped", D{{Key: "_id", Value: 2}}, D{{Key: "_id", Value: 1}})
	if version != "5.0" {
		run(D{{Key: "create", Value: "clustered"}, {Key: "clusteredIndex", Value: D{{Key: "key", Value: D{{Key: "_id", Value: 1}}}, {Key: "unique", Value: true}, {Key: "name", Value: "mine"}}}})
		insert("clustered", D{{Key: "_id", Value: 1}})
		index("clustered", D{{Key: "a", Value: 1}})
	}
	insert("strict", D{{Key: "_id", Value: 1}, {Key: "a", Value: "too old"}})
	run(D{{Key: "collMod", Value: "strict"}, {Key: "validator", Value: D{{Key: "a", Value: D{{Key: "$type", Value: "int"}}}}}, {Key: "validationLevel", Value: "moderate"}})
	run(D{{Key: "create", Value: "a view"}, {Key: "viewOn", Value: "plain"}, {Key: "pipeline", Value: bson.A{D{{Key: "$match", Value: D{{Key: "_id", Value: 1}}}}}}})
	run(D{{Key: "create", Value: "collated"}, {Key: "collation", Value: D{{Key: "locale", Value: "de"}, {Key: "strength", Value: 1}}}})
	run(D{{Key: "create", Value: "series"}, {Key: "timeseries", Value: D{{Key: "timeField", Value: "t"}, {Key: "metaField", Value: "m"}, {Key: "granularity", Value: "minutes"}}}, {Key: "expireAfterSeconds", Value: 1 << 30}})
	insert("series", D{{Key: "t", Value: bson.DateTime(1.6e12)}, {Key: "m", Value: "a"}, {Key: "v", Value: 1.5}, {Key: "_id", Value: 1}}, D{{Key: "t", Value: bson.DateTime(1.6e12 + 1000)}, {Key: "m", Value: "b"}, {Key: "v", Value: "x"}, {Key: "_id", Value: 2}})
	index("series", D{{Key: "m", Value: 1}, {Key: "t", Value: -1}})
	insert("system.js", D{{Key: "_id", Value: "one"}, {Key: "value", Value: bson.JavaScript("function() { return 1 }")}})
	if _, err := client.Database("other%").Collection("x").InsertOne(t.Context(), D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
}

// What a deployment has is there at the next start, and at the one after that.
func TestFolderIsKept(t *testing.T) {
	for _, version := range []string{"5.0", "6.0", "7.0", "8.0", "9.0"} {
		t.Run(version, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			client, end := served(t, dir, "", mongotest.Version(version))
			every(t, client, version)
			want := visible(t, client)
			end()
			for _, what := range []string{"the next start", "the one after it"} {
				client, end := served(t, dir, "", mongotest.Version(version))
				same(t, what, visible(t, client), want)
				end()
			}
			if _, err := os.Stat(filepath.Join(dir, folderLock)); !errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "windows" {
				t.Errorf("the lock is left: %v", err)
			}
		})
	}
}

// Indexes that are kept find what they found: none of their keys lie in the folder.
func TestKeptIndexesFind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	type D = bson.D
	queries := []struct {
		coll, hint string
		filter     D
		id         any
	}{
		{"plain", "of {\"flat\":\"2d\",\"a\":-1}", D{{Key: "flat", Value: D{{Key: "$near", Value: bson.A{-9, 10}}, {Key: "$maxDistance", Value: 1}}}}, int32(3)},
		{"plain", "of {\"flat\":\"2d\",\"a\":-1}", D{{Key: "flat", Value: D{{Key: "$geoWithin", Value: D{{Key: "$box", Value: bson.A{bson.A{0, 0}, bson.A{1, 2}}}}}}}}, int32(3)},
		{"plain", "of {\"place\":\"2dsphere\"}", D{{Key: "place", Value: D{{Key: "$geoWithin", Value: D{{Key: "$centerSphere", Value: bson.A{bson.A{5, 6}, 0.1}}}}}}}, int32(3)},
		{"plain", "of {\"place\":\"2dsphere\"}", D{{Key: "place", Value: D{{Key: "$nearSphere", Value: bson.A{5, 5}}}}}, int32(3)},
		{"all texts", "", D{{Key: "$text", Value: D{{Key: "$search", Value: "mouse mice"}}}}, int32(1)},
	}
	for _, start := range []string{"the first start", "the next", "the one after it"} {
		client, end := served(t, dir, "", mongotest.Version("8.0"))
		if start == "the first start" {
			every(t, client, "8.0")
		}
		for _, q := range queries {
			cmd := D{{Key: "find", Value: q.coll}, {Key: "filter", Value: q.filter}}
			if q.hint != "" {
				cmd = append(cmd, bson.E{Key: "hint", Value: q.hint})
			}
			reply, err := client.Database("app").RunCommand(t.Context(), cmd)
			if err != nil {
				t.Fatalf("%s: %v: %v", start, q.filter, err)
			}
			if got := reply.Lookup("cursor", "firstBatch", "0", "_id"); got.String() != fmt.Sprint(q.id) || reply.Lookup("cursor", "firstBatch", "1").Type != 0 {
				t.Errorf("%s: %v finds %s", start, q.filter, reply.Lookup("cursor", "firstBatch"))
			}
		}
		end()
	}
}

// tree is what a folder has, by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if e.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(content)
		}
		rel, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(rel)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A folder that is not a dump is refused, and stays as it is.
func TestForeignFolderIsRefused(t *testing.T) {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	const meta = `{"options": {}, "indexes": [], "type": "collection"}`
	for name, files := range map[string]map[string]string{
		"source":             {"main.go": "package main", "app/c.bson": string(doc)},
		"deeper":             {"dump/app/c.bson": string(doc), "dump/app/c.metadata.json": meta},
		"notes.txt":          {"app/c.bson": string(doc), "app/notes.txt": "mine"},
		"c.bson.gz":          {"app/c.bson": string(doc), "app/c.bson.gz": "both"},
		"oplog.bson":         {"app/c.bson": string(doc), "oplog.bson": string(doc)},
		"c.bson":             {"app/c.bson": string(doc[:8])},
		"c.metadata.json":    {"app/c.bson": string(doc), "app/c.metadata.json": "{"},
		"c.metadata.json.gz": {"app/c.bson": string(doc), "app/c.metadata.json.gz": meta},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		for path, text := range files {
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, dir)
		d := mongotest.Start(t)
		f := &serveFlags{data: dir}
		err := f.open(t.Context(), d, t.Output())
		shown := name
		switch name {
		case "source":
			shown = "main.go"
		case "deeper":
			shown = "app"
		}
		if err == nil || !strings.Contains(err.Error(), shown) {
			t.Errorf("%s: %v", name, err)
		}
		if after := tree(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: the folder is %v, was %v", name, after, before)
		}
		d.Stop()
	}
}

// A compressed dump is read, and stays compressed; a dump's words about its server, and the
// server's own databases, stay as they are. What the deployment has no more is gone. A symbolic
// link stays one.
func TestCompressedDump(t *testing.T) {
	top := t.TempDir()
	dir, link := filepath.Join(top, "data"), filepath.Join(top, "link")
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"app/c.bson.gz": string(doc), "app/c.metadata.json.gz": `{"options": {}, "indexes": [{"v": 2, "key": {"_id": 1}, "name": "_id_"}], "type": "collection"}`,
		"app/dropped.bson.gz": "", "app/dropped.metadata.json.gz": `{"options": {}, "type": "collection"}`, "prelude.json.gz": "{}", "admin/system.version.bson.gz": string(doc),
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(file)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(z.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	linked := os.Symlink(dir, link) == nil // not everybody may make one on Windows
	if !linked {
		link = dir
	}
	client, end := served(t, link, "")
	if err := client.Database("app").Collection("dropped").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Database("app").Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 2}}); err != nil {
		t.Fatal(err)
	}
	want := visible(t, client)
	end()
	if info, err := os.Lstat(link); linked && (err != nil || info.Mode().Type() != fs.ModeSymlink) {
		t.Errorf("the link is %v, %v", info, err)
	}
	got := slices.Sorted(maps.Keys(tree(t, dir)))
	if files := []string{".", "admin", "admin/system.version.bson.gz", "app", "app/c.bson.gz", "app/c.metadata.json.gz", "prelude.json.gz"}; !slices.Equal(got, files) {
		t.Errorf("the folder has %v, want %v", got, files)
	}
	client, end = served(t, dir, "")
	same(t, "the next start", visible(t, client), want)
	end()
}

// Wherever a process ends while it writes, the next one has the old state or the new one.
func TestFolderAfterACrash(t *testing.T) {
	for after := 0; ; after++ {
		dir := filepath.Join(t.TempDir(), "data")
		client, end := served(t, dir, "")
		for i, name := range []string{"a", "b", "c"} {
			if _, err := client.Database("app").Collection(name).InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
				t.Fatal(err)
			}
		}
		old := visible(t, client)
		end()

		d := mongotest.Start(t)
		left := after
		crashed := errors.New("the process has ended")
		f := &serveFlags{data: dir, disk: realDisk}
		f.disk.rename = func(from, to string) error {
			if left--; left < 0 {
				return crashed
			}
			return os.Rename(from, to)
		}
		if err := f.open(t.Context(), d, t.Output()); err != nil {
			t.Fatal(err)
		}
		client, err := allium.Open(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		coll := client.Database("app").Collection("b")
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "new"}}); err != nil {
			t.Fatal(err)
		}
		if err := client.Database("app").Collection("c").Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Database("next").Collection("d").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		now := visible(t, client)
		client.Close(t.Context())
		keepErr := kept(f, d)
		d.Stop()
		if keepErr != nil && !errors.Is(keepErr, crashed) {
			t.Fatal(keepErr)
		}

		client, end = served(t, dir, "")
		got := visible(t, client)
		end()
		switch {
		case after == 0:
			same(t, "nothing was moved", got, old)
		default:
			same(t, fmt.Sprint(after, " moves"), got, now)
		}
		if keepErr == nil {
			if after < 6 {
				t.Errorf("only %d moves", after)
			}
			return
		}
	}
}

// A folder has one user at a time, and nobody else may read what is in it.
func TestFolderIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	client, end := served(t, dir, "")
	if _, err := client.Database("app").Collection("c").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(dir, realDisk); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second one: %v", err)
	}
	end()
	if runtime.GOOS == "windows" {
		return
	}
	for path, text := range tree(t, dir) {
		if mode := text[:10]; mode != "-rw-------" && mode != "drwx------" {
			t.Errorf("%s has the mode %s", path, mode)
		}
	}
}

// Collections that the folder has are not filled again.
func TestSeedBesideData(t *testing.T) {
	top := t.TempDir()
	file := filepath.Join(top, "seed.json")
	if err := os.WriteFile(file, []byte(`{"app.c": [{"_id": 1}], "app.none": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "data")
	for i := range 3 {
		client, end := served(t, dir, file)
		n, err := client.Database("app").Collection("c").CountDocuments(t.Context(), bson.D{})
		if err != nil || n != int64(1+i) {
			t.Fatalf("%d documents, %v", n, err)
		}
		if _, err := client.Database("app").Collection("c").InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		end()
	}
}
