package vet

import (
	"go/ast"
	"go/constant"
	"net"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Credentials finds passwords in the source.
var Credentials = &analysis.Analyzer{
	Name:     "credentials",
	Doc:      "find passwords in the source\n\nA connection string with a password, or a credential with one, that is no placeholder and not for the local machine.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runCredentials,
}

// connectionString is one with a user and a password, up to the first host.
var connectionString = regexp.MustCompile(`mongodb(?:\+srv)?://([^:/@\s]+):([^@/\s]+)@([^,/?\s"]+)`)

func runCredentials(pass *analysis.Pass) (any, error) {
	files := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	files.WithStack([]ast.Node{(*ast.BasicLit)(nil), (*ast.CompositeLit)(nil)},
		func(n ast.Node, push bool, stack []ast.Node) bool {
			if !push || inTest(pass, n.Pos()) {
				return true
			}
			switch n := n.(type) {
			case *ast.BasicLit:
				tv := pass.TypesInfo.Types[n]
				if tv.Value == nil || tv.Value.Kind() != constant.String || inPattern(stack) {
					return true
				}
				for _, m := range connectionString.FindAllStringSubmatch(constant.StringVal(tv.Value), -1) {
					if secret(m[2]) && elsewhere(m[3]) {
						report(pass, n, nil, "a connection string with the password of %s is in the source: read it when the program starts", m[1])
						break
					}
				}
			case *ast.CompositeLit:
				t := named(pass.TypesInfo.TypeOf(n))
				if t == nil || !isDriver(t.Obj().Pkg()) || t.Obj().Name() != "Credential" {
					return true
				}
				for _, elt := range n.Elts {
					kv, ok := elt.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					key, _ := kv.Key.(*ast.Ident)
					tv := pass.TypesInfo.Types[kv.Value]
					if key != nil && key.Name == "Password" && tv.Value != nil && tv.Value.Kind() == constant.String &&
						secret(constant.StringVal(tv.Value)) {
						report(pass, kv, nil, "a password is in the source: read it when the program starts")
					}
				}
			}
			return true
		})
	return nil, nil
}

// inPattern reports whether a literal is the pattern of a regular expression or a message, such as
// that of a flag, rather than what a program connects with.
func inPattern(stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		call, ok := stack[i].(*ast.CallExpr)
		if !ok {
			continue
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			switch sel.Sel.Name {
			case "MustCompile", "Compile", "Println", "Printf", "Errorf", "Fatal", "Fatalf", "New", "Help", "Default",
				"PlaceHolder":
				return true
			}
			return strings.HasSuffix(sel.Sel.Name, "Var") || strings.HasSuffix(sel.Sel.Name, "VarP")
		}
		return false
	}
	return false
}

// placeholders are passwords of examples.
var placeholders = regexp.MustCompile(
	`(?i)^(pass(word|wd)?|pwd|secret|user(name)?|example|test|admin|root|foo|bar|abc|123456?|x+|\*+|\.+|mongo(db)?|redacted|hidden)$|[<>{}$%*\[\]]|your|change`)

// secret reports whether a password is none of an example.
func secret(password string) bool {
	if unescaped, err := url.PathUnescape(password); err == nil {
		password = unescaped
	}
	return password != "" && !placeholders.MatchString(password)
}

// elsewhere reports whether a host is on another machine: those that are reserved for examples, and
// names without a dot, which containers have, are not.
func elsewhere(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip := net.ParseIP(host); ip != nil {
		return !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsUnspecified()
	}
	if !strings.Contains(host, ".") || strings.ContainsAny(host, "<>{}$%*") {
		return false
	}
	for _, reserved := range []string{"localhost", ".local", ".example", ".test", ".invalid", ".internal",
		"example.com", "example.org", "example.net", "host.docker.internal"} {
		if host == reserved || strings.HasSuffix(host, "."+strings.TrimPrefix(reserved, ".")) {
			return false
		}
	}
	return true
}
