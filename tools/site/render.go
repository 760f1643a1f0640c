package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// comment is an HTML comment: the marks of generated parts and numbers, and what pages say once the
// driver is published.
var comment = regexp.MustCompile(`(?s)<!--.*?-->`)

// render makes a page of a document's Markdown.
func (s *site) render(p *page, source []byte) error {
	source = comment.ReplaceAll(bytes.ReplaceAll(source, []byte("\r\n"), []byte("\n")), nil)
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&writer{site: s, page: p}, 100))),
	)
	doc := md.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids{}))))
	if err := s.resolve(p, doc, source); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, source, doc); err != nil {
		return err
	}
	p.Body = template.HTML(out.String())
	return nil
}

// ids makes the anchors of headings as GitHub does, since the pages are read there, too.
type ids map[string]bool

func (i ids) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(string(plainLinks.ReplaceAll(value, []byte("$1"))))) {
		switch {
		case unicode.IsLetter(r), unicode.IsNumber(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	id := b.String()
	for n := 1; i[id]; n++ {
		id = fmt.Sprintf("%s-%d", b.String(), n)
	}
	i[id] = true
	return []byte(id)
}

func (i ids) Put(value []byte) { i[string(value)] = true }

// plainLinks matches the links of a heading, of which the text counts.
var plainLinks = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// resolve rewrites the links of a document to those of the site, and notes what it has.
func (s *site) resolve(p *page, doc ast.Node, source []byte) error {
	p.ids = map[string]bool{}
	section := &entry{}
	var problems []error
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			h := heading{n.Level, string(id.([]byte)), plain(n, source)}
			if p.ids[h.ID] = true; p.Title == "" {
				p.Title = h.Text
			}
			p.headings = append(p.headings, h)
			p.search = append(p.search, entry{Page: p.Title, Head: h.Text, URL: p.name + "#" + h.ID})
			section = &p.search[len(p.search)-1]
			return ast.WalkSkipChildren, nil
		case *ast.Link:
			n.Destination = []byte(s.target(p, string(n.Destination)))
		case *ast.Image:
			section.Text += plain(n, source) + " "
		case *ast.Text:
			section.Text += string(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				section.Text += " "
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			section.Text += " " + lines(n, source) + " "
		case *ast.Paragraph, *ast.TextBlock, *east.TableCell:
			section.Text += " "
		case *ast.HTMLBlock, *ast.RawHTML:
			problems = append(problems, fmt.Errorf("there is HTML: %s", lines(n, source)))
		}
		return ast.WalkContinue, nil
	})
	if p.Title == "" {
		problems = append(problems, errors.New("there is no title"))
	}
	for i := range p.search {
		p.search[i].Text = strings.Join(strings.Fields(p.search[i].Text), " ")
	}
	return errors.Join(append(problems, err)...)
}

// target returns where a link of a page leads in the site.
func (s *site) target(p *page, to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" {
		return to
	}
	if u.Path == "" {
		p.links = append(p.links, to)
		return to
	}
	file := path.Join(path.Dir(p.path), u.Path)
	up := strings.Repeat("../", strings.Count(p.name, "/"))
	name := sourceName(file)
	if other := s.byPath[file]; other != nil {
		name = other.name
	} else if _, err := fs.Stat(s.version.files, file); err != nil {
		name = "missing/" + file // check finds it
	} else {
		s.sources[file] = true
	}
	to = up + name
	if u.Fragment != "" {
		to += "#" + u.Fragment
	}
	p.links = append(p.links, to)
	return to
}

// plain returns the text of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// lines returns the lines of a block.
func lines(n ast.Node, source []byte) string {
	var b strings.Builder
	if n.Type() == ast.TypeInline {
		return plain(n, source)
	}
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		b.Write(at.Value(source))
	}
	return b.String()
}

// writer renders what the site has otherwise than goldmark: code with colours, pictures within the
// page, tables that scroll by themselves, headings with a link to themselves.
type writer struct {
	site *site
	page *page
}

func (w *writer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, w.code)
	r.Register(ast.KindCodeBlock, w.code)
	r.Register(ast.KindImage, w.image)
	r.Register(ast.KindHeading, w.heading)
	r.Register(east.KindTable, w.table)
}

func (w *writer) heading(out util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	id, _ := n.AttributeString("id")
	if entering {
		fmt.Fprintf(out, "<h%d id=\"%s\">", n.Level, id)
	} else {
		fmt.Fprintf(out, " <a class=\"anchor\" href=\"#%s\" aria-label=\"link to this section\">#</a></h%d>\n", id,
			n.Level)
	}
	return ast.WalkContinue, nil
}

func (w *writer) table(out util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		out.WriteString("<div class=\"wide\" tabindex=\"0\"><table>\n")
	} else {
		out.WriteString("</tbody>\n</table></div>\n")
	}
	return ast.WalkContinue, nil
}

func (w *writer) code(out util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if block, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(block.Language(source))
	}
	class := "code"
	if language == "" { // commands and what programs print, errors above all: to read, not to scroll
		class = "code plain"
	}
	fmt.Fprintf(out, "<div class=\"%s\"><pre tabindex=\"0\"><code>%s</code></pre></div>\n",
		class, colour(language, lines(n, source)))
	return ast.WalkSkipChildren, nil
}

func (w *writer) image(out util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.Image)
	file := path.Join(path.Dir(w.page.path), string(n.Destination))
	text, err := fs.ReadFile(w.site.version.files, file)
	if err != nil {
		return ast.WalkStop, err
	}
	// A picture of lines is part of the page, and has its colours.
	if path.Ext(file) == ".svg" {
		fmt.Fprintf(out, "<span class=\"picture\" role=\"img\" aria-label=\"%s\">%s</span>\n",
			html.EscapeString(plain(n, source)), text)
		return ast.WalkSkipChildren, nil
	}
	name := "img/" + path.Base(file)
	w.site.files[name] = text
	up := strings.Repeat("../", strings.Count(w.page.name, "/"))
	fmt.Fprintf(out, "<img src=\"%s\" alt=\"%s\" loading=\"lazy\">", up+name, html.EscapeString(plain(n, source)))
	return ast.WalkSkipChildren, nil
}
