package js

import (
	"cmp"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"

	"allium/mongotest/internal/srverr"
)

// functionSource makes a function out of what a client sent: a function as it is, an expression, or
// statements, of which the last one returns its value if it is an expression.
func functionSource(code string) (string, error) {
	trimmed := strings.TrimRight(strings.TrimSpace(code), "; \t\r\n")
	if p, err := parser.ParseFile(nil, "", "("+trimmed+"\n)", 0); err == nil && len(p.Body) == 1 {
		if s, ok := p.Body[0].(*ast.ExpressionStatement); ok {
			switch s.Expression.(type) {
			case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
				return trimmed, nil
			}
		}
	}
	const open = "(function() { "
	p, err := parser.ParseFile(nil, "", open+code+"\n})", 0)
	if err != nil {
		return "", syntaxError(err)
	}
	f, ok := p.Body[0].(*ast.ExpressionStatement).Expression.(*ast.FunctionLiteral)
	if !ok || len(p.Body) != 1 {
		return "", srverr.New(interpreterFailure, "SyntaxError: unexpected token: '}'")
	}
	list := f.Body.List
	for len(list) > 0 {
		if _, empty := list[len(list)-1].(*ast.EmptyStatement); !empty {
			break
		}
		list = list[:len(list)-1]
	}
	if len(list) > 0 {
		if s, ok := list[len(list)-1].(*ast.ExpressionStatement); ok {
			at := int(s.Idx0()) - 1 - len(open)
			// The parser leaves out the parentheses around what is first in the statement.
			at = len(strings.TrimRight(code[:at], "( \t\r\n"))
			for strings.ContainsRune(" \t\r\n", rune(code[at])) {
				at++
			}
			code = code[:at] + "return " + code[at:]
		}
	}
	return open[1:] + code + "\n}", nil
}

// syntaxError is the error of a program that cannot be parsed.
func syntaxError(err error) error {
	text := err.Error()
	if list, ok := errors.AsType[parser.ErrorList](err); ok && len(list) > 0 {
		text = list[0].Message
	} else if e, ok := errors.AsType[*goja.CompilerSyntaxError](err); ok {
		text = e.Message
	}
	return srverr.New(interpreterFailure, "SyntaxError: %s :\n", strings.TrimPrefix(text, "SyntaxError: "))
}

var ofNothing = regexp.MustCompile(
	`^Cannot (?:read property .* of (undefined|null)|convert undefined or null to object)`)

// errorText is a thrown error, in the words of the server's interpreter where those are known.
func (e *Engine) errorText(o *goja.Object, x *goja.Exception) string {
	message := textOf(o.Get("message"))
	left, whole := e.operands(x)
	if m := ofNothing.FindStringSubmatch(message); m != nil && left != "" {
		message = left + " is " + cmp.Or(m[1], "undefined")
	} else if whole != "" && notAFunction(message) {
		message = whole + " is not a function"
	}
	name := cmp.Or(textOf(o.Get("name")), "Error")
	if message == "" {
		return name
	}
	return name + ": " + message
}

func textOf(v goja.Value) string {
	if v == nil {
		return ""
	}
	return v.String()
}

func notAFunction(message string) bool {
	for _, prefix := range []string{"Object has no member ", "Not a function: ", "Value is not an object: "} {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return false
}

// stackText is where an error was thrown, a line per function, as the server's interpreter writes
// it.
func (e *Engine) stackText(x *goja.Exception) string {
	var b strings.Builder
	for _, f := range x.Stack() {
		if _, ours := e.sources[f.SrcName()]; !ours { // of the prelude, or native
			continue
		}
		name := f.FuncName()
		if name == "<anonymous>" {
			name = ""
		}
		p := f.Position()
		b.WriteString(name + "@:" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + "\n")
	}
	return b.String()
}

// operands returns the texts of x and of x.y (or of x and x again, where it is called) at the place
// where an error was thrown. They are empty if the place is none of these.
func (e *Engine) operands(x *goja.Exception) (left, whole string) {
	if len(x.Stack()) == 0 {
		return "", ""
	}
	f := x.Stack()[0]
	source, pos := e.sources[f.SrcName()], f.Position()
	lines := strings.Split(source, "\n")
	if pos.Line < 1 || pos.Line > len(lines) || pos.Column < 1 || pos.Column > len(lines[pos.Line-1]) {
		return "", ""
	}
	line, at := lines[pos.Line-1], pos.Column-1
	end, stop := at, at
	if at > 0 && line[at-1] == '.' {
		end = at - 1
		for stop < len(line) && isWord(line[stop]) {
			stop++
		}
	}
	start := end
	for depth := 0; start > 0; start-- {
		switch c := line[start-1]; {
		case c == ')' || c == ']':
			depth++
		case c == '(' || c == '[':
			if depth--; depth < 0 {
				return line[start:end], line[start:stop]
			}
		case depth == 0 && !isWord(c) && c != '.':
			return line[start:end], line[start:stop]
		}
	}
	return line[start:end], line[start:stop]
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
