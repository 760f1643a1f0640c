package debug_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/debug"
	"allium/mongotest"
)

// browser returns a headless Chromium, or skips the test.
func browser(t *testing.T) func(args ...string) (stdout, console string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no browser: install Debian's chromium to see the page as its users do")
	}
	return func(args ...string) (string, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		home := t.TempDir()
		cmd := exec.CommandContext(ctx, path, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
			"--disable-extensions", "--disable-background-networking", "--enable-logging=stderr", "--user-data-dir=" + home}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 5*time.Second
		if err := cmd.Run(); err != nil && stdout.Len() == 0 {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		var console []string
		for line := range strings.Lines(stderr.String()) {
			if strings.Contains(line, "CONSOLE") {
				console = append(console, line)
			}
		}
		return stdout.String(), strings.Join(console, "")
	}
}

// In a browser, with a policy that refuses what is inline or from elsewhere, the page renews
// itself: what begins after it was loaded is seen.
func TestInBrowser(t *testing.T) {
	run := browser(t)
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	client := open(t, d.URI(), allium.ClientOptions{MaxPoolSize: new(2)})
	users := client.Database("shop").Collection("users")
	if _, err := users.InsertMany(t.Context(), []bson.D{{}, {}, {}, {}}); err != nil {
		t.Fatal(err)
	}
	var pages atomic.Int64
	h := debug.Handler(client)
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/allium/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		if r.URL.Query().Get("asset") == "" && pages.Add(1) == 2 { // after the page was loaded
			if _, err := users.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))}); err != nil {
				t.Error(err)
			}
		}
		h.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	dom, console := run("--virtual-time-budget=7000", "--dump-dom", server.URL+"/debug/allium/")
	if console != "" {
		t.Errorf("the browser complains: %s", console)
	}
	updates := strings.Contains(dom, `data-updates="2"`) || strings.Contains(dom, `data-updates="3"`)
	if !updates || pages.Load() < 3 {
		t.Errorf("the page does not renew itself: %d requests", pages.Load())
	}
	for _, want := range []string{"ReplicaSetWithPrimary", "RSPrimary", "RSSecondary", "<td data-label=\"Namespace\">shop.users</td>", ">Pause</button>"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(dom, "no answer since") {
		t.Error("the page could not ask")
	}
	if t.Failed() {
		t.Log(dom)
	}
}

// With ALLIUM_SCREENSHOT=FILE, the page in the documents is taken again: a busy client, with a slow
// query and a pool that is too small.
func TestScreenshot(t *testing.T) {
	file := os.Getenv("ALLIUM_SCREENSHOT")
	if file == "" {
		t.Skip("only with ALLIUM_SCREENSHOT=FILE.png, which takes the page anew for the documents")
	}
	run := browser(t)
	d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.Port(27017))
	client := open(t, d.URI(), allium.ClientOptions{MaxPoolSize: new(4)})
	db := client.Database("shop")
	users, orders := db.Collection("users"), db.Collection("orders")
	docs := make([]bson.D, 300)
	for i := range docs {
		docs[i] = bson.D{{Key: "total", Value: i}}
	}
	if _, err := orders.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if _, err := orders.Find(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	e := func(k string, v any) bson.E { return bson.E{Key: k, Value: v} }
	d.FailCommand(mongotest.Fail{Commands: []string{"find", "aggregate", "update"}, Times: 3, Block: 230 * time.Millisecond})
	users.FindOne(t.Context(), bson.D{e("email", "ada@example.com"), e("age", bson.D{e("$gte", 18)})})
	orders.Aggregate(t.Context(), bson.A{bson.D{e("$match", bson.D{e("status", "open"), e("total", bson.D{e("$gt", 100)})})}, bson.D{e("$group", bson.D{e("_id", "$user")})}, bson.D{e("$sort", bson.D{e("_id", 1)})}})
	orders.UpdateMany(t.Context(), bson.D{e("$or", bson.A{bson.D{e("status", "sent")}, bson.D{e("due", bson.D{e("$lt", time.Now())})}})}, bson.D{e("$set", bson.D{e("late", true)})})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.FailCommand(mongotest.Fail{Commands: []string{"find", "count"}, Block: time.Minute})
	for i := range 7 {
		coll := []*allium.UntypedCollection{users, orders}[i%2]
		go coll.FindOne(ctx, bson.D{})
		time.Sleep(130 * time.Millisecond)
	}
	server := httptest.NewServer(debug.Handler(client))
	defer server.Close()
	abs, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--virtual-time-budget=3000", "--hide-scrollbars", "--screenshot=" + abs}
	args = append(args, strings.Fields(os.Getenv("ALLIUM_SCREENSHOT_FLAGS"))...)
	run(append(args, server.URL)...)
	if _, err := os.Stat(abs); err != nil {
		t.Error(err)
	}
}
