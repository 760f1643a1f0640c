package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/anystate"
	"allium/internal/dump"
	"allium/mongotest"
)

var (
	keptCases = flag.Int("kept.cases", 20, "how many random states TestKept keeps")
	keptSeed  = flag.Uint64("kept.seed", 1, "of the first of them")
)

// What a deployment holds is there at the next start, whatever it is: random states, in all forms.
func TestKept(t *testing.T) {
	for i := range *keptCases {
		seed := *keptSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			versions := series()
			version := versions[r.IntN(len(versions))]
			opts := []mongotest.Option{mongotest.Version(version)}
			switch r.IntN(4) {
			case 0:
				opts = append(opts, mongotest.ReplicaSet(1))
			case 1:
				opts = append(opts, mongotest.Sharded(2, 1))
			}
			auth := ""
			if r.IntN(2) == 0 {
				auth = "root:secret"
				opts = append(opts, mongotest.Auth("root", "secret"))
			}
			path := filepath.Join(t.TempDir(), []string{"data", "data.archive", "data.archive.gz"}[r.IntN(3)])
			client, end := servedWith(t, &serveFlags{data: path, auth: auth}, opts...)
			err := anystate.Make(t.Context(), client, r, anystate.Options{Major: int(version[0] - '0'), Accounts: true})
			if err != nil {
				t.Fatal(err)
			}
			want := visible(t, client)
			end()
			for _, what := range []string{"the next start", "the one after it"} {
				client, end := servedWith(t, &serveFlags{data: path, auth: auth}, opts...)
				got := visible(t, client)
				if auth != "" { // whose password is the command line's, salted anew
					delete(got, `usersInfo "admin.root"`)
					delete(want, `usersInfo "admin.root"`)
				}
				same(t, version+" "+filepath.Base(path)+": "+what, got, want)
				end()
			}
		})
	}
}

// archived returns an archive with blocks of two collections that alternate.
func archived(t *testing.T, more ...dump.ArchiveMetadata) []byte {
	t.Helper()
	var b bytes.Buffer
	add := func(v any) []byte {
		doc, err := bson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(doc)
		return doc
	}
	type D = bson.D
	end := func() { b.WriteString("\xff\xff\xff\xff") }
	b.WriteString("\x6d\xe2\x99\x81")
	add(D{{Key: "concurrent_collections", Value: 4}, {Key: "version", Value: "0.1"}, {Key: "server_version", Value: "7.0.8"}, {Key: "tool_version", Value: "100.9"}})
	all := append([]dump.ArchiveMetadata{
		{DB: "app", Collection: "x", Metadata: `{"indexes":[{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_"},{"v":{"$numberInt":"2"},"key":{"n":{"$numberInt":"-1"}},"name":"n"}],"uuid":"0123","collectionName":"x"}`},
		{DB: "app", Collection: "y y", Metadata: `{"options":{"capped":true,"size":{"$numberInt":"4096"}},"indexes":[],"collectionName":"y y"}`},
		{DB: "app", Collection: "v", Metadata: `{"options":{"viewOn":"x","pipeline":[]},"indexes":[],"collectionName":"v","type":"view"}`, Type: "view"},
		{DB: "config", Collection: "settings"},
	}, more...)
	for _, m := range all {
		add(m)
	}
	end()
	sums := map[string]hash.Hash64{}
	for i := range 6 {
		c := all[[]int{0, 1, 3}[i%3]]
		if sums[c.Collection] == nil {
			sums[c.Collection] = crc64.New(crc64.MakeTable(crc64.ECMA))
		}
		add(dump.BlockHeader{DB: c.DB, Collection: c.Collection})
		for j := range 2 {
			sums[c.Collection].Write(add(D{{Key: "_id", Value: i + 100*j}, {Key: "n", Value: j}}))
		}
		end()
	}
	for _, c := range all {
		if c.Type != "view" {
			sum := int64(0)
			if sums[c.Collection] != nil {
				sum = int64(sums[c.Collection].Sum64())
			}
			add(dump.BlockHeader{DB: c.DB, Collection: c.Collection, EOF: true, CRC: sum})
			end()
		}
	}
	return b.Bytes()
}

// An archive is read, and stays one: compressed or not, with what is the server's own.
func TestArchiveIsServed(t *testing.T) {
	for _, zip := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "dump") // what it is, the content says
		text := archived(t)
		if zip {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write(text)
			z.Close()
			text = b.Bytes()
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		client, end := served(t, path, "")
		coll := client.Database("app").Collection("x")
		if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 4 || err != nil {
			t.Errorf("%d documents, %v", n, err)
		}
		want := visible(t, client)
		for _, ns := range []string{"listIndexes app.x", "listCollections app.y y", "find app.v"} {
			if want[ns] == "" {
				t.Errorf("no %s in %v", ns, want)
			}
		}
		end()
		for range 2 {
			client, end = served(t, path, "")
			same(t, "the next start", visible(t, client), want)
			end()
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(kept, []byte{0x1f, 0x8b}) != zip {
			t.Errorf("compressed was %v, now it is not so", zip)
		}
		a, err := openArchive(path, realDisk)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.documents(func(*dump.Collection, bson.Raw) error { return nil }); err != nil {
			t.Error(err)
		}
		if len(a.aside) != 1 || len(a.asideDocs[a.aside[0]]) != 4 {
			t.Errorf("aside are %v with %v", a.aside, a.asideDocs)
		}
		if _, err := openStore(path, realDisk); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("a second process: %v", err)
		}
		a.close()
		names := slices.Sorted(maps.Keys(tree(t, filepath.Dir(path))))
		if !slices.Equal(names, []string{".", "dump"}) {
			t.Errorf("the folder has %v", names)
		}
	}
}

// An archive that is damaged, wherever, is refused, and stays as it is; so is any other file.
func TestDamagedArchiveIsRefused(t *testing.T) {
	whole := archived(t)
	path := filepath.Join(t.TempDir(), "dump.archive")
	d := mongotest.Start(t)
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	refused := func(what string, text []byte, words ...string) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		store, err := openStore(path, realDisk)
		if err == nil {
			err = store.documents(func(*dump.Collection, bson.Raw) error { return nil })
			store.close()
		}
		if err == nil {
			t.Errorf("%s is read", what)
			return
		}
		for _, word := range append(words, path) {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v, want %q", what, err, word)
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, text) {
			t.Errorf("%s: the file is another, %v", what, err)
		}
	}
	for n := range whole {
		refused(fmt.Sprint("the first ", n, " bytes"), whole[:n])
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(whole)
	w.Close()
	for n := 3; n < z.Len(); n += 11 {
		refused(fmt.Sprint("the first ", n, " bytes of a compressed one"), z.Bytes()[:n])
	}
	other := bytes.Replace(whole, []byte("n\x00\x01\x00\x00\x00\x00"), []byte("n\x00\x07\x00\x00\x00\x00"), 1)
	if bytes.Equal(other, whole) {
		t.Fatal("nothing was changed")
	}
	refused("another value", other, "damaged")
	refused("an oplog", archived(t, dump.ArchiveMetadata{Collection: "oplog"}), "--oplog")
	refused("a collection twice", archived(t, dump.ArchiveMetadata{DB: "app", Collection: "x"}), "twice")
	refused("a text", []byte("package main"), "mongodump --archive")
	refused("the archive of the future", bytes.Replace(whole, []byte("0.1\x00"), []byte("0.2\x00"), 1), "0.2")

	// In a folder, it is said what to do.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dump.archive"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(dir, realDisk); err == nil || !strings.Contains(err.Error(), "it is an archive: name the file itself") {
		t.Errorf("a folder with an archive: %v", err)
	}
}

// A fullDisk fails when so many bytes are written.
type fullDisk struct {
	file
	left *int
}

func (f fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), *f.left)
	*f.left -= n
	n, err := f.file.Write(p[:n])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// When the disk is full, wherever that happens, there is the old state, and nothing beside it.
func TestFullDisk(t *testing.T) {
	for _, name := range []string{"data", "data.archive", "data.archive.gz"} {
		path := filepath.Join(t.TempDir(), name)
		d := mongotest.Start(t)
		client, err := allium.Open(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		for i, coll := range []string{"a", "b"} {
			if _, err := client.Database("app").Collection(coll).InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
				t.Fatal(err)
			}
		}
		keep := func(room int) (used int, err error) {
			left := room
			f := &serveFlags{data: path}
			disk := realDisk
			disk.create = func(path string) (file, error) {
				f, err := realDisk.create(path)
				return fullDisk{f, &left}, err
			}
			if f.store, err = openStore(path, disk); err != nil {
				t.Fatal(err)
			}
			if f.defaults, err = readParameters(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			err = kept(f, d)
			return room - left, err
		}
		_, err = keep(math.MaxInt)
		if err != nil {
			t.Fatal(err)
		}
		old := tree(t, filepath.Dir(path))
		if _, err := client.Database("app").Collection("a").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "new"}}); err != nil {
			t.Fatal(err)
		}
		for room := 0; ; room += 7 {
			used, err := keep(room)
			now := tree(t, filepath.Dir(path))
			if err == nil {
				if maps.Equal(now, old) || used < 100 {
					t.Errorf("%s: nothing was written: %d bytes", name, used)
				}
				break
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: %v", name, err)
			}
			if !maps.Equal(now, old) {
				t.Fatalf("%s: with room for %d bytes there is %v, was %v", name, room, now, old)
			}
		}
	}
}

// What is kept does not depend on what clients did to the deployment: to users, to its members, to
// how commands have to look.
func TestKeepingIsNotLockedOut(t *testing.T) {
	type D = bson.D
	for what, c := range map[string]struct {
		auth string
		cmds []D
		opts []mongotest.Option
	}{
		"the user is gone":       {auth: "root:secret", cmds: []D{{{Key: "createUser", Value: "x"}, {Key: "pwd", Value: "y"}, {Key: "roles", Value: bson.A{"root"}}}, {{Key: "dropUser", Value: "root"}}}},
		"another password":       {auth: "root:secret", cmds: []D{{{Key: "updateUser", Value: "root"}, {Key: "pwd", Value: "other"}}}},
		"less rights":            {auth: "root:secret", cmds: []D{{{Key: "updateUser", Value: "root"}, {Key: "roles", Value: bson.A{}}}}},
		"commands fail":          {cmds: []D{{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: D{{Key: "failCommands", Value: bson.A{"find", "listCollections", "hello"}}, {Key: "errorCode", Value: 11600}}}}}},
		"no scans of tables":     {cmds: []D{{{Key: "setParameter", Value: 1}, {Key: "notablescan", Value: true}}}},
		"a version of the API":   {cmds: []D{{{Key: "setParameter", Value: 1}, {Key: "requireApiVersion", Value: true}}}},
		"no primary":             {cmds: []D{{{Key: "replSetStepDown", Value: 600}, {Key: "force", Value: true}}}, opts: []mongotest.Option{mongotest.ReplicaSet(1)}},
		"the primary is another": {cmds: []D{{{Key: "replSetStepDown", Value: 600}, {Key: "force", Value: true}}}, opts: []mongotest.Option{mongotest.ReplicaSet(3)}},
		"locked":                 {cmds: []D{{{Key: "fsync", Value: 1}, {Key: "lock", Value: true}}}},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			opts := c.opts
			if c.auth != "" {
				opts = append(opts, mongotest.Auth("root", "secret"))
			}
			d := mongotest.Start(t, opts...)
			f := &serveFlags{data: dir, root: account{name: c.auth}}
			if err := f.open(t.Context(), d, t.Output()); err != nil {
				t.Fatal(err)
			}
			client, err := allium.Open(d.URI())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close(t.Context())
			if _, err := client.Database("app").Collection("c").InsertOne(t.Context(), D{{Key: "_id", Value: 1}}); err != nil {
				t.Fatal(err)
			}
			for _, cmd := range c.cmds {
				if _, err := client.Database("admin").RunCommand(t.Context(), cmd); err != nil {
					t.Logf("%v: %v", cmd, err) // a step-down may close the connection
				}
			}
			if err := kept(f, d); err != nil {
				t.Fatal(err)
			}
			d.Stop()
			for _, text := range tree(t, dir) {
				if strings.Contains(text, "allium.keeper") {
					t.Errorf("the user who keeps is kept: %s", text)
				}
			}
			d = mongotest.Start(t, opts...)
			f = &serveFlags{data: dir, root: account{name: c.auth}}
			if err := f.open(t.Context(), d, t.Output()); err != nil {
				t.Fatal(err)
			}
			defer f.store.close()
			err = inside(t.Context(), d, func(again *allium.Client, _ string) error {
				cur, err := again.Database("app").Collection("c").Find(t.Context(), D{{Key: "_id", Value: 1}})
				if err != nil {
					return err
				}
				if docs, err := cur.All(t.Context()); err != nil || len(docs) != 1 {
					t.Errorf("%v, %v", docs, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Parameters that somebody has set are kept, and no others. What another deployment does not take
// is said.
func TestParametersAreKept(t *testing.T) {
	type D = bson.D
	for _, name := range []string{"data", "data.archive"} {
		path := filepath.Join(t.TempDir(), name)
		d := mongotest.Start(t, mongotest.ReplicaSet(2))
		start := func(d *mongotest.Deployment, warnings io.Writer) (*serveFlags, *allium.Client) {
			t.Helper()
			f := &serveFlags{data: path}
			if err := f.open(t.Context(), d, warnings); err != nil {
				t.Fatal(err)
			}
			client, err := allium.Open(d.URI())
			if err != nil {
				t.Fatal(err)
			}
			return f, client
		}
		f, client := start(d, t.Output())
		for _, cmd := range []D{
			{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorSleepSecs", Value: 7}, {Key: "cursorTimeoutMillis", Value: int64(1234567)}},
			{{Key: "setClusterParameter", Value: D{{Key: "changeStreamOptions", Value: D{{Key: "preAndPostImages", Value: D{{Key: "expireAfterSeconds", Value: int64(99)}}}}}}}},
			{{Key: "setDefaultRWConcern", Value: 1}, {Key: "defaultWriteConcern", Value: D{{Key: "w", Value: 1}, {Key: "wtimeout", Value: 5}}}},
			{{Key: "setFeatureCompatibilityVersion", Value: "7.0"}, {Key: "confirm", Value: true}},
		} {
			if _, err := client.Database("admin").RunCommand(t.Context(), cmd); err != nil {
				t.Fatal(err)
			}
		}
		want, err := readParameters(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		client.Close(t.Context())
		if err := kept(f, d); err != nil {
			t.Fatal(err)
		}
		d.Stop()
		for _, what := range []string{"the next start", "the one after it"} {
			d := mongotest.Start(t, mongotest.ReplicaSet(2))
			f, client := start(d, t.Output())
			got, err := readParameters(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := equal(fmt.Sprint(got), fmt.Sprint(want)); !ok || err != nil {
				t.Errorf("%s: %v\nwant %v, %v", what, got, want, err)
			}
			for kind, n := range map[string]int{setParameter: 2, setClusterParameter: 1, setDefaultRWConcern: 1, setCompatibility: 1} {
				doc, _ := f.store.contents().Parameters.Lookup(kind).Document()
				fields := 0
				for range doc.All() {
					fields++
				}
				if fields != n {
					t.Errorf("%s: %s has %v", name, kind, doc)
				}
			}
			other, err := allium.Open("mongodb://" + d.Secondaries()[0].Addr() + "/?directConnection=true")
			if err != nil {
				t.Fatal(err)
			}
			if reply, err := adminCommand(t.Context(), other, D{{Key: "getParameter", Value: 1}, {Key: "ttlMonitorSleepSecs", Value: 1}}); err != nil || reply.Lookup("ttlMonitorSleepSecs").String() != "7" {
				t.Errorf("the secondary says %v, %v", reply, err)
			}
			other.Close(t.Context())
			client.Close(t.Context())
			if err := kept(f, d); err != nil {
				t.Fatal(err)
			}
			d.Stop()
		}
		var said strings.Builder
		d = mongotest.Start(t, mongotest.Version("9.0"))
		f, client = start(d, &said)
		client.Close(t.Context())
		f.store.close()
		if !strings.Contains(said.String(), setCompatibility) {
			t.Errorf("a standalone server of another version says %q", said.String())
		}
	}
}

// Files as mongodump names them: blanks are plus signs, and long names are cut.
func TestNamesOfFiles(t *testing.T) {
	long := strings.Repeat("ü", 100)
	for name, want := range map[string]string{
		"plain": "plain", "a b": "a+b", "a+b": "a%2Bb", "a%b/c": "a%25b%2Fc",
		long: strings.Repeat("%C3%BC", 34) + "%C3%" + "%24" + "GNv02GVGu-Q0Qlqm4Af4pi0FC_k",
	} {
		if got := dump.FileName(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	dir := filepath.Join(t.TempDir(), "data")
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"app%/a+b.bson": string(doc), "app%/c%2Bd.bson": string(doc), "lost+found/x.bson": string(doc),
		"app%/" + dump.FileName(long) + ".bson": string(doc), "app%/" + dump.FileName(long) + ".metadata.json": `{"indexes":[],"collectionName":"` + long + `"}`,
		"app%/$admin.system.version.bson": "", "app%/system.profile.bson": string(doc),
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		client, end := served(t, dir, "")
		got := visible(t, client)
		for _, ns := range []string{"app%.a b", "app%.c+d", "app%." + long, "lost+found.x"} {
			if got["find "+ns] != `[{"_id":1}]` {
				t.Errorf("%s has %q", ns, got["find "+ns])
			}
		}
		end()
	}
	if _, err := os.Stat(filepath.Join(dir, "app%", "system.profile.bson")); err != nil {
		t.Errorf("what is not read is gone: %v", err)
	}
}
