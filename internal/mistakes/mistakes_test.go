package mistakes

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/allium.json, docs/errors.md and docs/errors-operations.md")

const (
	texts    = "testdata/allium.json"
	official = "testdata/official.json"
	docs     = "../../docs/"
)

// read returns a file of texts by the names of mistakes.
func read(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	m := map[string]string{}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil && !*update {
		t.Fatal(err)
	}
	return m
}

// Every mistake ends in an error of one line with the text that is written down.
func TestMistakes(t *testing.T) {
	e := NewEnv(t)
	want, got := read(t, texts), map[string]string{}
	count := 0
	for _, s := range Sections() {
		for _, m := range s.Mistakes {
			count++
			err := m.Make(t.Context(), e)
			if err == nil {
				t.Errorf("%s: no error", m.Name)
				continue
			}
			text := e.Clean(err.Error())
			if _, twice := got[m.Name]; twice {
				t.Errorf("%s: there are two of this name", m.Name)
			}
			got[m.Name] = text
			if strings.ContainsAny(text, "\n\r") {
				t.Errorf("%s: more than one line: %q", m.Name, text)
			}
			if text != want[m.Name] && !*update {
				t.Errorf("%s:\n got %s\nwant %s\n(go test ./internal/mistakes -update writes down what is meant)", m.Name, text, want[m.Name])
			}
		}
	}
	if count < 60 {
		t.Errorf("%d mistakes, want at least 60", count)
	}
	if *update {
		write(t, texts, got)
		for name, text := range Pages(got, read(t, official)) {
			if err := os.WriteFile(docs+name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func write(t *testing.T, path string, m map[string]string) {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	if err := enc.Encode(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The pages are what the table says.
func TestPages(t *testing.T) {
	for name, want := range Pages(read(t, texts), read(t, official)) {
		data, err := os.ReadFile(docs + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != want {
			t.Errorf("docs/%s is not what the table says: run go test ./internal/mistakes -update", name)
		}
	}
}

// No text holds a secret of the strings that led to it.
func TestNoSecrets(t *testing.T) {
	for name, text := range read(t, texts) {
		for _, secret := range []string{"lovelace", "byron", "p@ss", "p/ss"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: the text holds the password: %s", name, text)
			}
		}
	}
}

func TestClean(t *testing.T) {
	e := NewEnv(t)
	e.Show("127.0.0.1:4711", "localhost:27017")
	got := e.Clean("after 2.5s on 127.0.0.1:4711, 17ms of 3µs, id 0123456789abcdef01234567")
	if want := "after 100ms on localhost:27017, 17ms of 100ms, id 507f1f77bcf86cd799439011"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := fmt.Sprint(warned("x")); got != "x" {
		t.Error(got)
	}
}
