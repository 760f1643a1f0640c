// Package debug serves a page about what a client has open and is doing, as net/http/pprof does for
// a process:
//
//	http.Handle("/debug/allium/", debug.Handler(client))
//
// The page lists the servers with their kinds and latencies, the connection pools with the
// operations that wait for them, the operations in flight, slow operations, sessions, cursors and
// the last events of discovery. It renews itself every two seconds, needs nothing from elsewhere,
// and runs no inline script or style, so that a Content-Security-Policy of default-src 'self' lets
// all of it through. With ?format=json, or an Accept header that asks for application/json, the
// answer is JSON.
//
// Nothing in it is secret by itself: there are no values of documents or filters, no credentials,
// and no texts of servers. It names hosts, databases, collections and fields, so serve it where you
// serve pprof: on an address that only operators can reach.
package debug

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"allium"
)

//go:embed page.html page.css page.js icon.svg
var files embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"ms": millis, "ago": ago, "clock": clock, "join": strings.Join,
}).ParseFS(files, "page.html"))

// assets are the files that the page asks for, with the query ?asset=NAME: so it finds them
// wherever the handler is mounted, with a final slash or without.
var assets = map[string]string{
	"page.css": "text/css; charset=utf-8",
	"page.js":  "text/javascript; charset=utf-8",
	"icon.svg": "image/svg+xml",
}

// policy lets the page do what it does, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler returns a handler that serves a client's page at any path. It only reads, keeps nothing
// between requests, and still works after the client is closed. It keeps a Content-Security-Policy
// header that the program has set.
func Handler(client *allium.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if h.Get("Content-Security-Policy") == "" {
			h.Set("Content-Security-Policy", policy)
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are answered", http.StatusMethodNotAllowed)
			return
		}
		query := r.URL.Query()
		switch format := query.Get("format"); {
		case query.Has("asset"):
			asset(w, r, query.Get("asset"))
		case format != "" && format != "json" && format != "html":
			http.Error(w, "format is html or json", http.StatusBadRequest)
		case format == "json" || format == "" && wantsJSON(r):
			serveJSON(w, newReport(client, time.Now()))
		default:
			servePage(w, newReport(client, time.Now()))
		}
	})
}

func asset(w http.ResponseWriter, r *http.Request, name string) {
	kind, ok := assets[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := files.ReadFile(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	write(w, kind, data)
}

// wantsJSON reports whether a request asks for JSON rather than for a page.
func wantsJSON(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

func serveJSON(w http.ResponseWriter, r *report) {
	w.Header().Set("Vary", "Accept")
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		http.Error(w, "the report could not be encoded", http.StatusInternalServerError)
		return
	}
	write(w, "application/json", append(data, '\n'))
}

func servePage(w http.ResponseWriter, r *report) {
	w.Header().Set("Vary", "Accept")
	var b bytes.Buffer
	if err := page.Execute(&b, r); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	write(w, "text/html; charset=utf-8", b.Bytes())
}

func write(w http.ResponseWriter, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data) // to HEAD, package net/http writes nothing
}

// millis shows a number of milliseconds as a person reads it.
func millis(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return strconv.FormatFloat(ms, 'f', 2, 64) + " ms"
	case d < 100*time.Millisecond:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// ago shows how long before now t was.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return millis(milliseconds(now.Sub(t))) + " ago"
}

// clock shows the time of day in UTC, as the page's own script does: the program and the browser
// may be in different zones.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
