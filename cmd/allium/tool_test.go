package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/fakeserver"
	"allium/mongotest"
)

// tool runs the tool and returns what it prints.
func tool(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run(t.Context(), args, &out, &errs); status != want {
		t.Errorf("allium %s: status %d, want %d\n%s%s", strings.Join(args, " "), status, want, &out, &errs)
	}
	return out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	out, _ := tool(t, succeeded, "help")
	for _, v := range verbs() {
		if !strings.Contains(out, "allium "+v.name) {
			t.Errorf("help does not list %s:\n%s", v.name, out)
		}
		text, errs := tool(t, succeeded, "help", v.name)
		if !strings.HasPrefix(text, "usage: allium "+v.name) || errs != "" {
			t.Errorf("help %s: %q %q", v.name, text, errs)
		}
		for _, f := range flagsOf(v) {
			if f.Usage == "" || !strings.Contains(text, "-"+f.Name) {
				t.Errorf("help %s does not explain -%s", v.name, f.Name)
			}
		}
	}
	for _, args := range [][]string{{"--help"}, {"-h"}} {
		if text, _ := tool(t, succeeded, args...); text != out {
			t.Errorf("%v prints %q", args, text)
		}
	}
	for _, verb := range []string{"ping", "doctor", "run", "watch", "serve"} {
		text, _ := tool(t, succeeded, verb, "--help")
		if want, _ := tool(t, succeeded, "help", verb); text != want {
			t.Errorf("%s --help prints %q", verb, text)
		}
	}
	if text, _ := tool(t, succeeded, "version"); !strings.HasPrefix(text, "allium ") || !strings.Contains(text, "go1.") {
		t.Errorf("version %q", text)
	}
}

func TestMisuse(t *testing.T) {
	for _, args := range [][]string{
		{}, {"nothing"}, {"ping"}, {"ping", "a", "b"}, {"ping", "-bad"}, {"ping", "-count", "-1", "mongodb://h"}, {"doctor"}, {"doctor", "-timeout", "0s", "mongodb://h"},
		{"run", "mongodb://h"}, {"run", "mongodb://h", "{"}, {"run", "mongodb://h", "{}"}, {"watch"}, {"watch", "-pipeline", "{}", "mongodb://h"},
		{"watch", "-pipeline", "[1]", "mongodb://h"}, {"watch", "-resume", "x", "mongodb://h"}, {"watch", "-collection", "c", "mongodb://h"},
		{"completion"}, {"completion", "tcsh"}, {"version", "x"}, {"help", "nothing"}, {"serve", "-bad"},
	} {
		out, errs := tool(t, misused, args...)
		if out != "" || errs == "" {
			t.Errorf("allium %v prints %q and %q", args, out, errs)
		}
	}
}

func TestPingCount(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(2))
	out, _ := tool(t, succeeded, "ping", "-count", "3", "-interval", "1ms", d.URI())
	if strings.Count(out, "3: ") != 2 || strings.Count(out, "mean") != 2 {
		t.Errorf("output:\n%s", out)
	}
	out, _ = tool(t, succeeded, "ping", "-count", "2", "-interval", "1ms", "-json", d.URI())
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	for i, line := range lines {
		var p pinged
		if err := json.Unmarshal([]byte(line), &p); err != nil || p.Server != d.Hosts()[i] || p.SetName != "rs0" || len(p.RoundTripsMS) != 2 || p.RoundTripMS > p.RoundTripsMS[0] {
			t.Errorf("%s: %v", line, err)
		}
	}
	d.Secondaries()[0].Kill()
	out, errs := tool(t, failed, "ping", "-json", d.URI())
	if !strings.Contains(out, `"error":"connection to `) || !strings.Contains(errs, "refused") {
		t.Errorf("%q, %q", out, errs)
	}
}

func TestRun(t *testing.T) {
	d := mongotest.Start(t)
	uri := "mongodb://" + d.Hosts()[0]
	tool(t, succeeded, "run", uri+"/shop", `{"insert": "goods", "documents": [{"_id": 1, "at": {"$date": "2026-01-02T03:04:05Z"}}]}`)
	out, _ := tool(t, succeeded, "run", "-db", "shop", uri, `{"find": "goods"}`)
	if !strings.Contains(out, `{"_id":1,"at":{"$date":"2026-01-02T03:04:05Z"}}`) || strings.Count(out, "\n") != 1 {
		t.Errorf("output %q", out)
	}
	if out, _ = tool(t, succeeded, "run", "-canonical", uri+"/shop", `{"count": "goods"}`); !strings.Contains(out, `{"$numberInt":"1"}`) {
		t.Errorf("output %q", out)
	}
	if out, _ = tool(t, succeeded, "run", uri, `{"ping": 1}`); !strings.Contains(out, `"ok":1`) {
		t.Errorf("output %q", out)
	}
	if _, errs := tool(t, failed, "run", uri, `{"pong": 1}`); !strings.Contains(errs, "CommandNotFound (59)") {
		t.Errorf("errors %q", errs)
	}
	if _, errs := tool(t, failed, "run", "-timeout", "100ms", "mongodb://"+fakeserver.Refuses, `{"ping": 1}`); !strings.Contains(errs, "refused") {
		t.Errorf("errors %q", errs)
	}
}

func TestWatch(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	goods := client.Database("shop").Collection("goods")
	if _, err := goods.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err != nil {
		t.Fatal(err)
	}
	watch := func(ctx context.Context, args ...string) (*bufio.Reader, <-chan int, *output) {
		out, w := io.Pipe()
		stderr := &output{}
		done := make(chan int, 1)
		go func() {
			status := run(ctx, append([]string{"watch"}, args...), w, stderr)
			w.Close()
			done <- status
		}()
		return bufio.NewReader(out), done, stderr
	}
	ctx, cancel := context.WithCancel(t.Context())
	lines, done, stderr := watch(ctx, "-db", "shop", "-collection", "goods", "-full", "-pipeline", `[{"$match": {"operationType": "update"}}]`, d.URI())
	go func() { // until the stream has begun
		for i := 1; ctx.Err() == nil; i++ {
			goods.UpdateOne(ctx, bson.M{"_id": 0}, bson.M{"$set": bson.M{"n": i}})
			time.Sleep(10 * time.Millisecond)
		}
	}()
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	event, err := bson.ParseExtJSON([]byte(line))
	if err != nil || event.Lookup("fullDocument", "_id").IsZero() {
		t.Errorf("%q, %v", line, err)
	}
	cancel()
	go io.Copy(io.Discard, lines)
	if status := <-done; status != succeeded {
		t.Errorf("status %d after an interrupt: %s", status, stderr)
	}
	token, _ := event.Lookup("_id").Document()
	if _, err := goods.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	lines, done, stderr = watch(t.Context(), "-resume", token.String(), "-count", "1", "-pipeline", `[{"$match": {"operationType": "insert"}}]`, d.URI())
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"documentKey":{"_id":1}`) {
		t.Errorf("%q, %v: %s", line, err, stderr)
	}
	if status := <-done; status != succeeded {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, errs := tool(t, failed, "watch", "mongodb://"+mongotest.Start(t).Hosts()[0]); !strings.Contains(errs, "replica set") {
		t.Errorf("errors %q", errs)
	}
}

// TestServeKeeps fills a deployment, ends it and starts another one with what it held.
func TestServeKeeps(t *testing.T) {
	dir := t.TempDir()
	data, seed := filepath.Join(dir, "data"), filepath.Join(dir, "seed.json")
	if err := os.WriteFile(seed, []byte(`{"shop.goods": [{"_id": 1, "price": {"$numberDecimal": "9.90"}}, {"_id": 2}], "shop.empty": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(t *testing.T, use func(db *allium.Database), args ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		out, w := io.Pipe()
		stderr := &output{}
		done := make(chan int, 1)
		go func() {
			status := run(ctx, append([]string{"serve", "--port", "0", "--replset", "1"}, args...), w, stderr)
			w.Close()
			done <- status
		}()
		uri, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			cancel()
			t.Fatalf("%v: %s", err, stderr)
		}
		go io.Copy(io.Discard, out)
		client, err := allium.Open(strings.TrimSpace(uri))
		if err != nil {
			t.Fatal(err)
		}
		use(client.Database("shop"))
		client.Close(t.Context())
		cancel()
		if status := <-done; status != succeeded {
			t.Errorf("status %d: %s", status, stderr)
		}
	}
	serve(t, func(db *allium.Database) {
		if n, err := db.Collection("goods").CountDocuments(t.Context(), bson.D{}); n != 2 || err != nil {
			t.Errorf("the seed has %d documents, %v", n, err)
		}
		if _, err := db.Collection("goods").CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "price", Value: 1}}, Unique: true, Sparse: true}); err != nil {
			t.Error(err)
		}
		if err := db.CreateCollection(t.Context(), "log", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}); err != nil {
			t.Error(err)
		}
		if err := db.CreateCollection(t.Context(), "cheap", allium.CreateCollectionOptions{ViewOn: "goods", Pipeline: bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "_id", Value: 1}}}}}}); err != nil {
			t.Error(err)
		}
		many := make([]bson.D, 2500)
		for i := range many {
			many[i] = bson.D{{Key: "_id", Value: i}}
		}
		if _, err := db.Collection("a/b %").InsertMany(t.Context(), many); err != nil {
			t.Error(err)
		}
	}, "--seed", seed, "--data", data)
	check := func(db *allium.Database) {
		ctx := t.Context()
		goods, err := allium.CollectionOf[bson.Raw](db, "goods").FindOne(ctx, bson.M{"_id": 1})
		if err != nil || goods.String() != `{"_id":1,"price":{"$numberDecimal":"9.90"}}` {
			t.Errorf("%s, %v", goods, err)
		}
		if n, err := db.Collection("a/b %").CountDocuments(ctx, bson.D{}); n != 2500 || err != nil {
			t.Errorf("%d documents, %v", n, err)
		}
		if n, err := db.Collection("cheap").CountDocuments(ctx, bson.D{}); n != 1 || err != nil {
			t.Errorf("the view has %d documents, %v", n, err)
		}
		names, err := db.ListCollectionNames(ctx)
		if err != nil || len(names) < 5 {
			t.Errorf("collections %v, %v", names, err)
		}
		cur, err := db.Collection("goods").ListIndexes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := cur.All(ctx); len(list) != 2 || err != nil || !list[1].Unique || !list[1].Sparse {
			t.Errorf("indexes %+v, %v", list, err)
		}
		infos, err := db.ListCollections(ctx, allium.ListCollectionsOptions{Filter: bson.M{"name": "log"}})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := infos.All(ctx); len(list) != 1 || err != nil || !list[0].Options.Lookup("capped").AsBool() {
			t.Errorf("%v, %v", list, err)
		}
	}
	for range 2 { // what was read is written again
		serve(t, check, "--data", data)
	}
	for _, left := range []string{data + ".new", data + ".old"} {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left behind", left)
		}
	}
}

func TestServeRefusesData(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("short/shop/goods.metadata.json", "{}")
	write("short/shop/goods.bson", "\x10\x00\x00\x00abc")
	write("long/shop/goods.metadata.json", "{}")
	write("long/shop/goods.bson", "\xff\xff\xff\x7fabc")
	write("json/shop/goods.metadata.json", "{")
	for want, args := range map[string][]string{
		"no such file":                        {"--seed", filepath.Join(dir, "none.json")},
		"the end of the text":                 {"--seed", write("broken.json", `{"shop.goods": [`)},
		`want {"db.collection": [documents]}`: {"--seed", write("list.json", `{"goods": []}`)},
		"want a document":                     {"--seed", write("number.json", `{"shop.goods": [1]}`)},
		"unexpected EOF":                      {"--data", filepath.Join(dir, "short")},
		"has the length":                      {"--data", filepath.Join(dir, "long")},
		"metadata.json":                       {"--data", filepath.Join(dir, "json")},
	} {
		if _, errs := tool(t, misused, append([]string{"serve", "--port", "0"}, args...)...); !strings.Contains(errs, want) {
			t.Errorf("%v: %q, want %q", args, errs, want)
		}
	}
}

// The scripts are syntactically right as far as their shells are there to ask.
func TestCompletion(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"-n"}} {
		script, _ := tool(t, succeeded, "completion", shell)
		for _, v := range verbs() {
			if !strings.Contains(script, v.name) {
				t.Errorf("%s: %s is not completed", shell, v.name)
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: its script is not parsed", shell)
			continue
		}
		cmd := exec.Command(path, check...)
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		script, _ := tool(t, succeeded, "completion", "bash")
		cmd := exec.Command(bash, "-c", script+`
COMP_WORDS=(allium do) COMP_CWORD=1; _allium; echo "${COMPREPLY[@]}"
COMP_WORDS=(allium ping -c) COMP_CWORD=2; _allium; echo "${COMPREPLY[@]}"`)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "doctor\n-count\n" {
			t.Errorf("%q, %v", out, err)
		}
	}
}

// Flags stand before, between and behind arguments; behind "--" nothing is a flag.
func TestFlagsAnywhere(t *testing.T) {
	d := mongotest.Start(t)
	uri := "mongodb://" + d.Hosts()[0]
	var want string
	for i, args := range [][]string{
		{"-canonical", "-db", "shop", uri, "{ping: 1}"}, {uri, "-canonical", "{ping: 1}", "-db", "shop"}, {uri, "{ping: 1}", "-db=shop", "-canonical"},
		{"-canonical", "--db", "shop", "--", uri, "{ping: 1}"},
	} {
		out, _ := tool(t, succeeded, append([]string{"run"}, args...)...)
		if i == 0 {
			want = out
		}
		if out != want || !strings.Contains(out, "$numberDouble") {
			t.Errorf("%q prints %q, want %q", args, out, want)
		}
	}
	if out, errs := tool(t, misused, "run", uri, "--", "{ping: 1}", "-canonical"); out != "" || !strings.Contains(errs, "want a connection string and a command") {
		t.Errorf("%q, %q", out, errs)
	}
}

// The manual's page has every command and every flag, and no line of it is a request but those that
// are meant.
func TestMan(t *testing.T) {
	page, _ := tool(t, succeeded, "man")
	for _, v := range verbs() {
		if !strings.Contains(page, ".SS allium "+v.name) {
			t.Errorf("%s is not there", v.name)
		}
		for _, f := range flagsOf(v) {
			if !strings.Contains(page, `\fB\-`+roff(f.Name)) {
				t.Errorf("%s: -%s is not there", v.name, f.Name)
			}
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !slices.Contains([]string{".TH", ".SH", ".SS", ".TP", ".B", ".I"}, strings.Fields(line)[0]) {
			t.Errorf("a request that is not meant: %s", line)
		}
	}
	if got := roff("a\\b-c\n.so /etc/passwd\n'x"); got != "a\\eb\\-c\n\\&.so /etc/passwd\n\\&'x" {
		t.Errorf("%q", got)
	}
}
