package advisor

import (
	"encoding/json"
	"html/template"
	"net/http"
	"path/filepath"
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{"base": filepath.Base}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Allium advisor</title></head><body>
<h1>Advisor</h1>
{{if not .}}<p>Nothing was found yet.</p>{{else}}<table>
<tr><th>rule</th><th>where</th><th>operation</th><th>times</th><th>what</th></tr>
{{range .}}<tr><td>{{.Rule}}</td><td title="{{.File}}">{{base .File}}:{{.Line}}</td><td>{{.Command}} {{.Namespace}} <code>{{.Shape}}</code></td><td>{{.Count}}</td><td>{{.Text}}</td></tr>
{{end}}</table>{{end}}
</body></html>
`))

// ServeHTTP serves a page with the findings, or JSON with ?format=json. It has no values of filters
// and documents, but names of source files, collections and fields: serve it where you serve pprof.
func (a *Advisor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Query().Get("format") == "json" {
		h.Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.Findings())
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_ = page.Execute(w, a.Findings())
}
