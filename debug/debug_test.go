package debug_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/debug"
	"allium/mongotest"
)

// planted is in every name and value that the page must not show.
const planted = "planted"

// get asks a handler and checks what all answers have in common.
func get(t *testing.T, h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%s %s: header %v", method, target, w.Header())
	}
	return w
}

func open(t *testing.T, uri string, o allium.ClientOptions) *allium.Client {
	t.Helper()
	client, err := allium.Open(uri, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

func TestHandler(t *testing.T) {
	client := open(t, mongotest.Start(t).URI(), allium.ClientOptions{})
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := debug.Handler(client)
	for _, test := range []struct {
		method, target, accept string
		code                   int
		kind                   string
	}{
		{"GET", "/debug/allium/", "", 200, "text/html; charset=utf-8"},
		{"GET", "/anywhere", "text/html,application/xhtml+xml,*/*;q=0.8", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", "", 200, "text/html; charset=utf-8"},
		{"GET", "/?format=json", "text/html", 200, "application/json"},
		{"GET", "/", "application/json", 200, "application/json"},
		{"GET", "/", "text/html, application/json", 200, "text/html; charset=utf-8"},
		{"GET", "/?format=html", "application/json", 200, "text/html; charset=utf-8"},
		{"GET", "/?format=xml", "", 400, "text/plain; charset=utf-8"},
		{"GET", "/?asset=page.js", "", 200, "text/javascript; charset=utf-8"},
		{"GET", "/?asset=page.css", "", 200, "text/css; charset=utf-8"},
		{"GET", "/?asset=icon.svg", "", 200, "image/svg+xml"},
		{"GET", "/?asset=page.html", "", 404, "text/plain; charset=utf-8"},
		{"GET", "/?asset=../debug.go", "", 404, "text/plain; charset=utf-8"},
		{"POST", "/", "", 405, "text/plain; charset=utf-8"},
		{"DELETE", "/?format=json", "", 405, "text/plain; charset=utf-8"},
	} {
		w := get(t, h, test.method, test.target, "Accept", test.accept)
		if w.Code != test.code || w.Header().Get("Content-Type") != test.kind {
			t.Errorf("%s %s, Accept %q: %d, %s, want %d, %s", test.method, test.target, test.accept, w.Code, w.Header().Get("Content-Type"), test.code, test.kind)
		}
	}
	// Nothing comes from elsewhere, and nothing is inline that a policy would refuse.
	text := get(t, h, "GET", "/").Body.String()
	for _, bad := range []string{"://", "style=", "<style", "onclick", "javascript:", "<script>"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	// A policy of the program's own stays.
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		h.ServeHTTP(w, r)
	})
	if got := get(t, own, "GET", "/").Header().Get("Content-Security-Policy"); got != "default-src 'self'" {
		t.Errorf("the policy is now %s", got)
	}
	client.Close(t.Context())
	if w := get(t, h, "GET", "/?format=json"); w.Code != 200 || !json.Valid(w.Body.Bytes()) {
		t.Errorf("after the client was closed: %d, %s", w.Code, w.Body)
	}
}

// A name that a server or a program has chosen is text, whatever it looks like.
func TestNamesAreEscaped(t *testing.T) {
	client := open(t, mongotest.Start(t).URI(), allium.ClientOptions{SlowOperation: time.Nanosecond})
	const name = `<img src=x onerror=alert(1)>"'`
	if _, err := client.Database("app").Collection(name).Count(t.Context(), bson.D{{Key: "<script>alert(2)</script>", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	text := get(t, debug.Handler(client), "GET", "/").Body.String()
	if !strings.Contains(text, "&lt;img src=x onerror=alert(1)&gt;") || !strings.Contains(text, "&lt;script&gt;") || strings.Contains(text, "<img") || strings.Contains(text, "<script>") {
		t.Error(text)
	}
}

// report is the part of the JSON that the tests look at.
type report struct {
	Topology struct {
		Kind    string
		Servers []struct {
			Addr, Kind, Error string
			AverageRTTMS      float64
		}
	}
	Pools []struct {
		State   string
		InUse   int
		MaxOpen int
		Waiting int
		Waiters []struct{ Command, Namespace string }
	}
	OperationsInFlight int
	OldestOperations   []struct{ Command, Namespace, Phase string }
	OpenCursors        int
	OldestCursors      []struct{ ID, Namespace string }
	SlowOperations     int64
	RecentSlow         []struct{ Shape, Failure string } `json:"recentSlowOperations"`
	RecentEvents       []struct{ Text, Cause string }
}

// Many operations with secrets in them fill a small pool while the page is asked for: it shows who
// does what and who waits, it stays bounded, and it shows no secret.
func TestUnderLoad(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Auth(planted+"-user", planted+"-password"))
	client := open(t, d.URI(), allium.ClientOptions{MaxPoolSize: new(2), SlowOperation: time.Nanosecond, Logger: nil,
		LogLevels: nil, AppName: planted + "-app"})
	coll := client.Database("app").Collection("users")
	filter := bson.D{{Key: "_id", Value: planted}, {Key: "name", Value: bson.D{{Key: "$gte", Value: planted}}}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if _, err := coll.InsertMany(ctx, []bson.D{{}, {}, {}, {{Key: planted, Value: planted}}}); err != nil {
		t.Fatal(err)
	}
	d.FailCommand(mongotest.Fail{Commands: []string{"count"}, Block: 20 * time.Millisecond})
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() {
			for ctx.Err() == nil {
				coll.FindOne(ctx, filter)
				coll.Count(ctx, filter)
				coll.UpdateOne(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: planted}}}})
				coll.FindOneAndUpdate(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "_id", Value: planted}}}}) // refused, with the value
				cur, err := coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
				if err == nil {
					cur.Next(ctx)
					cur.Close(ctx)
				}
			}
		})
	}
	wrong := open(t, strings.Replace(d.URI(), planted+"-password", planted+"-wrong", 1), allium.ClientOptions{})
	if err := wrong.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), planted) {
		t.Fatalf("a wrong password: %v, want an error with the user's name", err)
	}
	h, sawWaiter, sawInFlight := debug.Handler(client), false, false
	for i := 0; i < 300 && !(i > 30 && sawWaiter && sawInFlight); i++ {
		body := get(t, h, "GET", "/?format=json").Body.Bytes()
		var r report
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatal(err)
		}
		if len(r.OldestOperations) > 100 || len(r.RecentSlow) > 100 || len(r.RecentEvents) > 100 || len(body) > 200_000 {
			t.Errorf("%d bytes", len(body))
		}
		for _, p := range r.Pools {
			for _, w := range p.Waiters {
				sawWaiter = sawWaiter || strings.HasPrefix(w.Namespace, "app")
			}
			if p.MaxOpen != 2 || p.InUse > 2 {
				t.Errorf("pool %+v", p)
			}
		}
		for _, o := range r.OldestOperations {
			sawInFlight = sawInFlight || o.Command == "count" && o.Namespace == "app.users" && o.Phase == "command"
		}
		noSecret(t, string(body))
		noSecret(t, get(t, h, "GET", "/").Body.String())
	}
	if !sawWaiter || !sawInFlight {
		t.Errorf("an operation that waits was seen: %v; one in flight: %v", sawWaiter, sawInFlight)
	}
	stop()
	work.Wait()
	for _, client := range []*allium.Client{client, wrong} {
		var r report
		body := get(t, debug.Handler(client), "GET", "/?format=json").Body.String()
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		noSecret(t, body)
		noSecret(t, get(t, debug.Handler(client), "GET", "/").Body.String())
		if len(r.Topology.Servers) != 1 || r.OperationsInFlight != 0 || r.OpenCursors != 0 || r.SlowOperations == 0 && client != wrong {
			t.Errorf("at the end: %+v", r)
		}
	}
	if text := get(t, h, "GET", "/").Body.String(); !strings.Contains(text, "{_id: ?, name: {$gte: ?}}") {
		t.Error("no shape of a slow operation is shown")
	}
}

func noSecret(t *testing.T, text string) {
	t.Helper()
	if i := strings.Index(text, planted); i >= 0 {
		t.Fatalf("a secret is shown: ...%s", text[max(0, i-200):min(len(text), i+100)])
	}
}

// A deployment that is gone is told of by what happened, not by silence.
func TestServerGone(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	client := open(t, d.URI(), allium.ClientOptions{})
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Primary().RefuseConnections()
	d.Primary().CloseConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		client.Ping(ctx)
		client.Ping(ctx)
	}()
	server := httptest.NewServer(debug.Handler(client))
	defer server.Close()
	for {
		res, err := http.Get(server.URL + "/?format=json")
		if err != nil {
			t.Fatal(err)
		}
		var r report
		err = json.NewDecoder(res.Body).Decode(&r)
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Topology.Servers[0]; s.Kind == "Unknown" && strings.Contains(s.Error, "refused") && r.Pools[0].State == "paused" &&
			len(r.OldestOperations) == 1 && r.OldestOperations[0].Phase == "selection" && r.RecentEvents[0].Cause != "" {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("never seen")
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-gone
	if err := d.Primary().AcceptConnections(); err != nil {
		t.Error(err)
	}
}
