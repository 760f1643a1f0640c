package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestWriter writes every character, alone and in pieces: what steers a terminal is escaped, and
// nothing else is.
func TestWriter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		text := "a" + string(r) + "b"
		var out bytes.Buffer
		w := NewWriter(&out)
		if r%2 == 0 {
			for i := range len(text) {
				w.Write([]byte{text[i]})
			}
		} else {
			w.Write([]byte(text))
		}
		w.Flush()
		got := out.String()
		steers := r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x2028 || r == 0x2029
		switch {
		case steers && strings.ContainsRune(got, r):
			t.Fatalf("%U is written as %q", r, got)
		case unicode.IsGraphic(r) && got != text:
			t.Fatalf("%U is written as %q", r, got)
		case got != text:
			var back string
			if err := json.Unmarshal([]byte(`"`+got+`"`), &back); err != nil || back != text {
				t.Fatalf("%U is written as %q, which JSON reads as %q, %v", r, got, back, err)
			}
		}
	}
}

// FuzzWriter writes any bytes in any two pieces.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("a\x1b[2Jb"), 2)
	f.Add([]byte("\xe2\x80\xae\xe2\x80"), 1)
	f.Add([]byte("\xf0\x9f\x98\x80\xff\xc2"), 3)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		var whole, parts bytes.Buffer
		w := NewWriter(&whole)
		w.Write(text)
		w.Flush()
		cut = min(max(cut, 0), len(text))
		w = NewWriter(&parts)
		for _, p := range [][]byte{text[:cut], nil, text[cut:]} {
			if n, err := w.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		w.Flush()
		if !bytes.Equal(whole.Bytes(), parts.Bytes()) || !utf8.Valid(whole.Bytes()) {
			t.Errorf("%q is %q at once and %q in pieces", text, &whole, &parts)
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriterError(t *testing.T) {
	if _, err := NewWriter(broken{}).Write([]byte("x")); err == nil {
		t.Error("no error")
	}
}

// TestCommandsPrintHere reads the sources of the commands: the process's own streams are named once
// each, where they are given to run, which wraps what it is given; nothing prints otherwise.
func TestCommandsPrintHere(t *testing.T) {
	for _, command := range []string{"allium", "allium-migrate"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "cmd", command, "*.go"))
		if err != nil || len(files) < 3 {
			t.Fatal(files, err)
		}
		wrapped := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			var inside []ast.Expr // the arguments of run
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if name(n.Fun) == "terminal.NewWriter" {
						wrapped++
					}
					if id, ok := n.Fun.(*ast.Ident); ok {
						switch id.Name {
						case "run":
							inside = append(inside, n.Args...)
						case "print", "println":
							t.Errorf("%v: %s", fset.Position(n.Pos()), id.Name)
						}
					}
					if name(n.Fun) == "os.NewFile" && numbered(n.Args[0]) {
						t.Errorf("%v: a file of a number", fset.Position(n.Pos()))
					}
				case *ast.SelectorExpr:
					own := slices.Contains([]string{"os.Stdout", "os.Stderr", "syscall.Stdout", "syscall.Stderr", "fmt.Print", "fmt.Printf", "fmt.Println", "syscall.Write"}, name(n)) || strings.HasPrefix(name(n), "log.")
					if own && !slices.Contains(inside, ast.Expr(n)) {
						t.Errorf("%v: %s beside the one place that prints", fset.Position(n.Pos()), name(n))
					}
				}
				return true
			})
		}
		if wrapped != 2 {
			t.Errorf("%s wraps %d streams, want 2", command, wrapped)
		}
	}
}

func name(n ast.Node) string {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := s.X.(*ast.Ident); ok {
		return id.Name + "." + s.Sel.Name
	}
	return ""
}

// numbered reports whether an expression holds a number, as that of a descriptor.
func numbered(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		_, ok := n.(*ast.BasicLit)
		found = found || ok
		return true
	})
	return found
}

// A pipe and a file are no terminals, and neither is what is no file. Bytes that are no text go
// there as they are.
func TestIsTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		w    io.Writer
		want bool
	}{{w, false}, {file, false}, {io.Discard, false}, {null, true}} {
		if got := NewWriter(c.w).IsTerminal(); got != c.want {
			t.Errorf("%v: %v", c.w, got)
		}
		if raw, err := NewWriter(c.w).Binary(); (err != nil) != c.want || err == nil && raw != c.w {
			t.Errorf("%v: bytes go to %v, %v", c.w, raw, err)
		}
	}
}
