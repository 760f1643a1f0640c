package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// site is the tree of pages of one version.
type site struct {
	version version
	all     []version
	pages   []*page
	byPath  map[string]*page // by the document's path in the repository
	sources map[string]bool  // paths that pages link to and that are no documents
	files   map[string][]byte
}

// page is a document, or a source file that one links to.
type page struct {
	path  string // in the repository
	name  string // in the site
	Title string
	Body  template.HTML

	headings []heading
	search   []entry
	links    []string // as they stand in the body, from the page's folder
	ids      map[string]bool
}

type heading struct {
	Level    int
	ID, Text string
}

// entry is what a search finds: a section of a page.
type entry struct {
	Page string `json:"p"` // its title
	Head string `json:"h"`
	URL  string `json:"u"`
	Text string `json:"t"`
}

func newSite(v version, all []version) (*site, error) {
	s := &site{version: v, all: all, byPath: map[string]*page{}, sources: map[string]bool{}, files: map[string][]byte{}}
	chapters := documents(v.files)
	for _, c := range chapters {
		for _, name := range c.pages {
			p := &page{path: name, name: pageName(name)}
			s.pages, s.byPath[name] = append(s.pages, p), p
		}
	}
	for _, p := range s.pages {
		text, err := fs.ReadFile(v.files, p.path)
		if err != nil {
			return nil, err
		}
		if err := s.render(p, text); err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
	}
	var index []entry
	for i, p := range s.pages {
		if err := s.write(p, chapters, i); err != nil {
			return nil, err
		}
		index = append(index, p.search...)
	}
	if err := s.writeSources(chapters); err != nil {
		return nil, err
	}
	list, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	// A script, since a browser that opens a file fetches no others.
	s.files["search.js"] = append(append([]byte("var searchIndex = "), list...), ';', '\n')
	for _, name := range []string{"site.css", "site.js"} {
		if s.files[name], err = assets.ReadFile("assets/" + name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// view is what the layout shows.
type view struct {
	*page
	Up       string // from the page's folder to that of its version
	Version  version
	Versions []link
	Chapters []chapterView
	Contents []heading
	Before   *link
	After    *link
}

type chapterView struct {
	Title string
	Open  bool
	Pages []link
}

type link struct {
	Title, URL string
	Here       bool
}

// write renders the layout of a page; at is its place among the documents, -1 for a source file.
func (s *site) write(p *page, chapters []chapter, at int) error {
	up := strings.Repeat("../", strings.Count(p.name, "/"))
	v := view{page: p, Up: up, Version: s.version}
	for _, other := range s.all {
		top := up
		if s.version.Dir != "" {
			top += "../"
		}
		to := "index.html"
		if _, err := fs.Stat(other.files, p.path); err == nil && at >= 0 {
			to = p.name
		}
		v.Versions = append(v.Versions, link{other.Name, top + path.Join(other.Dir, to), other.Name == s.version.Name})
	}
	for _, c := range chapters {
		list := chapterView{Title: c.Title}
		for _, name := range c.pages {
			other := s.byPath[name]
			list.Pages = append(list.Pages, link{other.Title, up + other.name, other == p})
			list.Open = list.Open || other == p
		}
		v.Chapters = append(v.Chapters, list)
	}
	for _, h := range p.headings {
		if h.Level == 2 {
			v.Contents = append(v.Contents, h)
		}
	}
	if at > 0 {
		v.Before = &link{Title: s.pages[at-1].Title, URL: up + s.pages[at-1].name}
	}
	if at >= 0 && at < len(s.pages)-1 {
		v.After = &link{Title: s.pages[at+1].Title, URL: up + s.pages[at+1].name}
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return err
	}
	s.files[p.name] = out.Bytes()
	return nil
}
