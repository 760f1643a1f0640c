package main

import (
	"go/scanner"
	"go/token"
	"html"
	"strings"
)

// colour returns code as HTML. Go has spans for comments, keywords and literals; of other code the
// comments behind a # are marked.
func colour(language, code string) string {
	switch language {
	case "go":
		return colourGo(code)
	case "", "sh", "yaml":
		return colourShell(code)
	}
	return html.EscapeString(code)
}

func colourGo(code string) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	// A snippet may be a part of a program, or leave out some: what is no Go is text.
	s.Init(file, []byte(code), func(token.Position, string) {}, scanner.ScanComments)
	var b strings.Builder
	at := 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		class := ""
		switch {
		case tok == token.COMMENT:
			class = "c"
		case tok.IsKeyword():
			class = "k"
		case tok == token.STRING || tok == token.CHAR:
			class = "s"
		case tok == token.INT || tok == token.FLOAT:
			class = "n"
		}
		begin := file.Offset(pos)
		if class == "" || begin < at || !strings.HasPrefix(code[begin:], literal) {
			continue
		}
		b.WriteString(html.EscapeString(code[at:begin]))
		b.WriteString(`<span class="` + class + `">` + html.EscapeString(literal) + `</span>`)
		at = begin + len(literal)
	}
	return b.String() + html.EscapeString(code[at:])
}

func colourShell(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		text, end := strings.CutSuffix(line, "\n")
		at := strings.Index(" "+text, " #")
		if at < 0 {
			b.WriteString(html.EscapeString(text))
		} else {
			b.WriteString(html.EscapeString(text[:at]) + `<span class="c">` + html.EscapeString(text[at:]) + `</span>`)
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
