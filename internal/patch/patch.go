// Package patch replaces a piece of Go source that a file has once, for the commands that plant
// faults. A piece that is not there letter by letter is looked for token by token: where lines end
// and what gofmt aligns makes no difference, so that a change of layout leaves the faults as they
// are.
package patch

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"slices"
)

// Once returns src with now in the place of old. It is an error if src does not have old, or has it
// more than once.
func Once(src []byte, old, now string) ([]byte, error) {
	n := bytes.Count(src, []byte(old))
	if n == 1 {
		return bytes.Replace(src, []byte(old), []byte(now), 1), nil
	}
	if n > 1 || old == "" {
		return nil, fmt.Errorf("%q stands there %d times, want once", old, n)
	}
	text, want := tokens(src), tokens([]byte(old))
	if len(want) == 0 {
		return nil, fmt.Errorf("%q is no piece of Go source", old)
	}
	var from, to int
	for i := range len(text) - len(want) + 1 {
		if slices.EqualFunc(text[i:i+len(want)], want, func(a, b piece) bool { return a.text == b.text }) {
			n++
			from, to = text[i].from, text[i+len(want)-1].to
		}
	}
	if n != 1 {
		return nil, fmt.Errorf("%q stands there %d times, want once", old, n)
	}
	return slices.Concat(src[:from], []byte(now), src[to:]), nil
}

// piece is a token and the offsets it stands at.
type piece struct {
	text     string
	from, to int
}

// tokens returns the tokens of a piece of source, without what depends on the layout: the ends of
// lines, and commas behind the last of a list. It returns none of a piece that cuts a token.
func tokens(src []byte) []piece {
	var list []piece
	file := token.NewFileSet().AddFile("", -1, len(src))
	broken := false
	var s scanner.Scanner
	s.Init(file, src, func(token.Position, string) { broken = true }, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		if !tok.IsLiteral() && !tok.IsKeyword() {
			text = tok.String()
		}
		if last := len(list) - 1; last >= 0 && list[last].text == "," &&
			(tok == token.RPAREN || tok == token.RBRACE || tok == token.RBRACK) {
			list = list[:last]
		}
		from := file.Offset(pos)
		list = append(list, piece{text, from, from + len(text)})
	}
	if broken {
		return nil
	}
	return list
}
