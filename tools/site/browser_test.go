package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// looks is a page that loads others in frames of a width, and says which are wider than that.
const looks = `<!doctype html><body><script>
const names = %q.split(" ");
let left = names.length, bad = [];
const done = () => { if (--left === 0) document.body.textContent = "looked at " + names.length + ", too wide: [" + bad + "]"; };
for (const name of names) {
	const f = document.createElement("iframe");
	f.width = %d; f.height = 800; f.src = name;
	f.onload = () => { const d = f.contentDocument.documentElement; if (d.scrollWidth > f.clientWidth) bad.push(name + " " + d.scrollWidth); done(); };
	document.body.append(f);
}
</script>`

// In a browser no page is wider than a telephone or a desk's screen, the search finds, the page
// asks nobody but its own server, and the browser has no error to tell.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no browser: install Debian's chromium to see the site as its readers do")
	}
	v := version{Name: "main", files: os.DirFS(root)}
	s, err := newSite(v, []version{v})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var missing []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		var width int
		if _, err := fmt.Sscanf(name, "looks-%d", &width); err == nil {
			var names []string
			for _, p := range s.pages {
				names = append(names, p.name)
			}
			fmt.Fprintf(w, looks, strings.Join(names, " "), width)
			return
		}
		text, ok := s.files[name]
		if !ok && name != "favicon.ico" { // the frames' page asks for it
			mu.Lock()
			missing = append(missing, name)
			mu.Unlock()
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		// The strictest policy that a host may have.
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
	}))
	defer server.Close()
	open := func(path string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		home := t.TempDir()
		cmd := exec.CommandContext(ctx, browser, append(append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
			"--disable-background-networking", "--enable-logging=stderr", "--user-data-dir=" + home, "--virtual-time-budget=20000", "--window-size=1500,900"}, args...), "--dump-dom", server.URL+path)...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		var problems bytes.Buffer
		cmd.Stderr, cmd.WaitDelay = &problems, 5*time.Second
		out, err := cmd.Output()
		if err != nil && len(out) == 0 {
			t.Fatalf("%v: %s", err, &problems)
		}
		for _, line := range regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(problems.String(), -1) {
			t.Errorf("%s: the browser says %s", path, line)
		}
		return string(out)
	}
	for _, width := range []int{380, 1400} {
		want := fmt.Sprintf("looked at %d, too wide: []", len(s.pages))
		if got := open(fmt.Sprintf("/looks-%d", width)); !strings.Contains(got, want) {
			t.Errorf("at %d: %s", width, regexp.MustCompile(`looked at.*\]`).FindString(got))
		}
	}
	if got := open("/guide.html?q=graceful+end"); !strings.Contains(got, `href="recipes.html#a-graceful-end"`) {
		t.Error("the search finds no recipe")
	}
	if got := open("/guide.html", "--blink-settings=preferredColorScheme=0"); !strings.Contains(got, `data-theme="dark"`) {
		t.Error("a dark system gets a light page")
	}
	if len(missing) > 0 {
		t.Errorf("pages ask for %q", missing)
	}
}
