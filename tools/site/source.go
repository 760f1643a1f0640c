package main

import (
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// sourceName is the page of a file or folder of the repository.
func sourceName(file string) string { return "source/" + file + ".html" }

// writeSources makes pages of the files that documents link to, and of those in the folders.
func (s *site) writeSources(chapters []chapter) error {
	for _, file := range slices.Sorted(maps.Keys(s.sources)) {
		info, err := fs.Stat(s.version.files, file)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			if err := s.writeSource(file, chapters); err != nil {
				return err
			}
			continue
		}
		entries, err := fs.ReadDir(s.version.files, file)
		if err != nil {
			return err
		}
		var list strings.Builder
		p := &page{path: file, name: sourceName(file), Title: file, ids: map[string]bool{}}
		for _, e := range entries {
			below := path.Join(file, e.Name())
			if e.IsDir() || e.Name() == "go.sum" {
				continue
			}
			to := path.Base(file) + "/" + e.Name() + ".html"
			if document := s.byPath[below]; document != nil && !s.sources[below] {
				to = strings.Repeat("../", strings.Count(p.name, "/")) + document.name
			} else if err := s.writeSource(below, chapters); err != nil {
				return err
			}
			p.links = append(p.links, to)
			fmt.Fprintf(&list, "<li><a href=\"%s\">%s</a></li>\n", html.EscapeString(to), html.EscapeString(e.Name()))
		}
		p.Body = template.HTML(fmt.Sprintf("<h1>%s</h1>\n<ul>\n%s</ul>\n", html.EscapeString(file), &list))
		s.byPath[file] = p
		if err := s.write(p, chapters, -1); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) writeSource(file string, chapters []chapter) error {
	if s.byPath[file] != nil {
		return nil
	}
	s.sources[file] = true
	text, err := fs.ReadFile(s.version.files, file)
	if err != nil {
		return err
	}
	code := "(no text)"
	if utf8.Valid(text) {
		code = colour(strings.TrimPrefix(path.Ext(file), "."), string(text))
	}
	p := &page{path: file, name: sourceName(file), Title: file, ids: map[string]bool{}}
	p.Body = template.HTML(
		fmt.Sprintf("<h1>%s</h1>\n<div class=\"code\"><pre tabindex=\"0\"><code>%s</code></pre></div>\n",
			html.EscapeString(file), code))
	s.byPath[file] = p
	return s.write(p, chapters, -1)
}
