package vet

import (
	"go/ast"
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// site is an argument of a driver's, with its role.
type site struct {
	role   role
	expr   ast.Expr
	call   *ast.CallExpr // nil: a field of a struct
	method string        // UpdateMany, SetSort, FindOptions.Sort
}

// usage is what the rules look at, of one package.
type usage struct {
	*variables
	files *inspector.Inspector
	sites []site
}

// sites finds the usage of a package, for the rules.
var sites = &analysis.Analyzer{
	Name:       "alliumsites",
	Doc:        "finds the arguments of a MongoDB driver's operations, for other analyzers",
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	Run:        findSites,
	ResultType: reflect.TypeFor[*usage](),
}

func usageOf(pass *analysis.Pass) *usage { return pass.ResultOf[sites].(*usage) }

func findSites(pass *analysis.Pass) (any, error) {
	u := &usage{files: pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)}
	u.variables = &variables{pass.TypesInfo, map[*types.Var]*variable{}}
	if !imports(pass.Pkg) {
		return u, nil
	}
	u.variables = collectVariables(pass.TypesInfo, pass.Files)
	u.files.Preorder([]ast.Node{(*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			m, ok := callee(pass.TypesInfo, n)
			if !ok {
				return
			}
			for i, r := range arguments[receivers[m.recv]][m.name] {
				if i < len(n.Args) && (m.recv == "") == (receivers[m.recv] == "") {
					u.sites = append(u.sites, site{r, n.Args[i], n, m.name})
				}
			}
			if name, ok := strings.CutPrefix(m.name, "Set"); ok && m.recv != "" && receivers[m.recv] == "" &&
				len(n.Args) == 1 && fields[name] != 0 {
				u.sites = append(u.sites, site{modelRole(m.recv, name), n.Args[0], n, m.name})
			}
		case *ast.CompositeLit:
			named := named(pass.TypesInfo.TypeOf(n))
			if named == nil || !isDriver(named.Obj().Pkg()) {
				return
			}
			for _, elt := range n.Elts {
				kv, ok := elt.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if key, ok := kv.Key.(*ast.Ident); ok && fields[key.Name] != 0 {
					u.sites = append(u.sites, site{modelRole(named.Obj().Name(), key.Name), kv.Value, nil,
						named.Obj().Name() + "." + key.Name})
				}
			}
		}
	})
	return u, nil
}

// modelRole is the role of a field of a type. Those of a few types are named alike and are others.
func modelRole(typ, field string) role {
	if strings.HasPrefix(typ, "ListDatabases") || strings.HasPrefix(typ, "ArrayFilters") ||
		strings.HasPrefix(typ, "AutoEncryption") {
		return 0
	}
	return fields[field]
}
