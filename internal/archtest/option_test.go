package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pointers lists the fields of option structs that may be pointers to a boolean, a number or a
// duration, with what their zero means.
// All other booleans are plain: false is the default.
var pointers = map[string]string{
	"ClientOptions.*":            "overrides the connection string's value, also with false or zero",
	"*.Timeout":                  "zero: no bound, whatever the levels above say",
	"*.AllowDiskUse":             "false overrides the server's allowDiskUseByDefault",
	"*.BypassDocumentValidation": "false is sent (CRUD)",
	"*.ExpireAfter":              "zero: at once",
	"*.BatchSize":                "zero: an empty first batch",
	"*.CausalConsistency":        "true is the default",
	"*.KeyExpiration":            "zero: keys do not expire",
	"*.Contention":               "zero is a factor",
	"*.Sparsity":                 "zero is sent (Queryable Encryption)",
	"*.TrimFactor":               "zero is a factor",
	"*.Precision":                "zero: no decimals",
	"*.Revision":                 "zero: the oldest one",
	"Collation.*":                "false overrides the locale's",
	"ServerAPI.*":                "false is sent (Stable API)",
	"*.AuthorizedDatabases":      "false: all, or an error",
	"*.PreAndPostImages":         "false is sent (Collection Management)",

	"PushOptions.Position":                 "zero: in front of all",
	"PushOptions.Slice":                    "zero: an empty array",
	"ModifyCollectionOptions.MaxDocuments": "zero lifts the bound",
}

// texts lists the fields of option structs that are free text. Other strings are enumerations,
// which have types of their own.
var texts = []string{"AppName", "ReplicaSet", "SRVServiceName", "ViewOn", "Database", "Name", "ContentType", "KeyVault", "KeyAltName", "Provider", "IndexField", "Server", "Package", "Variable", "Token", "ID"}

// settings lists the structs that are part of options, or of a client's settings, and follow the
// same rule, with the fields of theirs that are free text.
var settings = map[string][]string{
	"Collation":  {"Locale"},
	"Credential": {"Username", "Source"},
	"ServerAPI":  nil,
}

// TestOptions wants the option structs of the public packages to follow one rule (Public API
// rules in DESIGN.md).
func TestOptions(t *testing.T) {
	top := root(t)
	found := 0
	for _, pkg := range public(t) {
		fset := token.NewFileSet()
		n, wrong := badOptions(fset, sources(t, fset, filepath.Join(top, pkg)))
		found += n
		for _, w := range wrong {
			t.Errorf("%s: %s", pkg, w)
		}
	}
	if found < 40 {
		t.Errorf("only %d option structs found: the test looks in the wrong place", found)
	}
}

// badOptions counts the option structs of a package and says what is wrong with them.
func badOptions(fset *token.FileSet, files []*ast.File) (n int, wrong []string) {
	types := map[string]string{} // of fields, by name, with the first struct that has it
	for _, f := range files {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gen.Specs {
				ts, ok := s.(*ast.TypeSpec)
				if !ok || !ts.Name.IsExported() {
					continue
				}
				if _, ok := settings[ts.Name.Name]; !ok && !strings.HasSuffix(ts.Name.Name, "Options") {
					continue
				}
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				n++
				wrong = append(wrong, badFields(fset, ts.Name.Name, gen.Doc.Text()+ts.Doc.Text(), st, types)...)
			}
		}
	}
	return n, wrong
}

func badFields(fset *token.FileSet, owner, explained string, st *ast.StructType, types map[string]string) (wrong []string) {
	for _, f := range st.Fields.List {
		explained += f.Doc.Text() + f.Comment.Text()
		typ := source(fset, f.Type)
		for _, id := range f.Names {
			name := owner + "." + id.Name
			if !id.IsExported() {
				continue
			}
			if !strings.Contains(explained, id.Name) && f.Comment == nil && f.Doc == nil {
				wrong = append(wrong, name+" has no comment")
			}
			if base, ok := strings.CutPrefix(typ, "*"); ok && scalar(base) && pointers[name] == "" && pointers["*."+id.Name] == "" && pointers[owner+".*"] == "" {
				wrong = append(wrong, fmt.Sprintf("%s is a %s: a pointer is for a setting whose zero means something", name, typ))
			}
			if typ == "string" && !slices.Contains(texts, id.Name) && !slices.Contains(settings[owner], id.Name) {
				wrong = append(wrong, name+" is a string: an enumeration has a type with constants")
			}
			// A client's settings mean other things than an operation's of the same name, and
			// override a connection string's.
			if owner == "ClientOptions" || pointers[name] != "" {
				continue
			}
			switch before := types[id.Name]; {
			case before == "":
				types[id.Name] = typ
			case before != typ:
				wrong = append(wrong, fmt.Sprintf("%s is a %s, elsewhere it is a %s", name, typ, before))
			}
		}
	}
	return wrong
}

// scalar reports whether a type is a boolean, a number, a duration or text.
func scalar(typ string) bool {
	return slices.Contains([]string{"bool", "int", "int32", "int64", "uint32", "float64", "string", "time.Duration"}, typ)
}

// TestOptionsAreJudged shows that each rule of TestOptions fails where it is violated.
func TestOptionsAreJudged(t *testing.T) {
	const text = `package p
		type GoodOptions struct {
			// Ordered and Wide say something.
			Ordered, Wide bool
			// Timeout bounds the operation.
			Timeout *time.Duration
			BatchSize *int32 // a number
		}
		type ABadOptions struct {
			Silent bool
			// Flag is a pointer.
			Flag *bool
			// Level is an enumeration.
			Level string
			// BatchSize is of another type.
			BatchSize int32
		}
		type Credential struct {
			// Username and Mechanism say something.
			Username, Mechanism string
		}`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	n, wrong := badOptions(fset, []*ast.File{f})
	want := []string{
		"ABadOptions.Silent has no comment",
		"ABadOptions.Flag is a *bool: a pointer is for a setting whose zero means something",
		"ABadOptions.Level is a string: an enumeration has a type with constants",
		"ABadOptions.BatchSize is a int32, elsewhere it is a *int32",
		"Credential.Mechanism is a string: an enumeration has a type with constants",
	}
	if n != 3 || !slices.Equal(wrong, want) {
		t.Errorf("%d structs, %q, want 3 and %q", n, wrong, want)
	}
}
