package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// requestTypes are what functions take that answer requests.
var requestTypes = []string{
	"net/http.Request", "github.com/gin-gonic/gin.Context", "github.com/labstack/echo.Context",
	"github.com/labstack/echo/v4.Context",
	"github.com/gofiber/fiber.Ctx", "github.com/gofiber/fiber/v2.Ctx", "github.com/gofiber/fiber/v3.Ctx",
	"github.com/valyala/fasthttp.RequestCtx",
}

// isRequest reports whether a parameter of the type is a request.
func isRequest(t types.Type) bool {
	n := named(t)
	return n != nil && n.Obj().Pkg() != nil && slices.Contains(requestTypes, n.Obj().Pkg().Path()+"."+n.Obj().Name())
}

// requests returns the parameters of a function that are requests.
func requests(info *types.Info, typ *ast.FuncType) (vars []types.Object) {
	for _, f := range typ.Params.List {
		for _, name := range f.Names {
			if obj := info.ObjectOf(name); obj != nil && isRequest(obj.Type()) {
				vars = append(vars, obj)
			}
		}
	}
	return vars
}

// readers are the methods of requests, and of their parts, that return text that the client chose.
var readers = []string{
	"FormValue", "PostFormValue", "PathValue", "Get", "Query", "DefaultQuery", "Param", "Params", "PostForm",
	"DefaultPostForm", "QueryParam", "GetHeader",
}

// binders are the methods that decode what a request has into their last argument.
var binders = []string{"Bind", "BindJSON", "ShouldBind", "ShouldBindJSON", "ShouldBindBodyWithJSON", "BodyParser",
	"BindBody"}

// input says what in a function comes from a request.
type input struct {
	*usage
	requests []types.Object
	decoded  map[types.Object]bool // variables that JSON was decoded into
	checked  map[types.Object]bool // variables that a condition asks about: they may be looked up in a list
}

// inputOf looks for it in a function that answers requests.
func inputOf(u *usage, reqs []types.Object, body *ast.BlockStmt) *input {
	in := &input{u, reqs, map[types.Object]bool{}, map[types.Object]bool{}}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			in.noteChecked(n.Cond)
		case *ast.SwitchStmt:
			in.noteChecked(n.Tag)
		}
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok {
			return true
		}
		into := call.Args[len(call.Args)-1]
		switch {
		case sel.Sel.Name == "Decode" || sel.Sel.Name == "Unmarshal" || sel.Sel.Name == "UnmarshalExtJSON" ||
			sel.Sel.Name == "DecodeJSON":
			// json.NewDecoder(r.Body).Decode(&v), json.Unmarshal(body, &v)
			if sel.Sel.Name == "Decode" && !in.fromRequest(sel.X, 0) ||
				sel.Sel.Name != "Decode" && !in.fromRequest(call.Args[0], 0) {
				return true
			}
		case slices.Contains(binders, sel.Sel.Name) && in.isRequestVar(sel.X):
		default:
			return true
		}
		if id := rootIdent(into); id != nil {
			if obj := u.info.ObjectOf(id); obj != nil {
				in.decoded[obj] = true
			}
		}
		return true
	})
	return in
}

// noteChecked notes the variables of a condition, but for those that are only compared with "".
func (in *input) noteChecked(cond ast.Expr) {
	if cond == nil {
		return
	}
	ast.Inspect(cond, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if text, ok := in.text(n.Y); ok && text == "" {
				return false
			}
		case *ast.Ident:
			if obj := in.info.ObjectOf(n); obj != nil {
				in.checked[obj] = true
			}
		}
		return true
	})
}

func (in *input) isRequestVar(x ast.Expr) bool {
	id := rootIdent(x)
	return id != nil && slices.Contains(in.requests, in.info.ObjectOf(id))
}

// fromRequest reports whether x is made of a request: r.Body, io.ReadAll(r.Body), and variables of
// such values.
func (in *input) fromRequest(x ast.Expr, depth int) bool {
	if depth > 6 {
		return false
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.SelectorExpr:
		return in.fromRequest(x.X, depth+1)
	case *ast.CallExpr:
		if sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok && in.isRequestVar(sel.X) {
			return true
		}
		return slices.ContainsFunc(x.Args, func(arg ast.Expr) bool { return in.fromRequest(arg, depth+1) })
	case *ast.Ident:
		obj := in.info.ObjectOf(x)
		if slices.Contains(in.requests, obj) {
			return true
		}
		if v := in.at(x); v != nil && len(v.values) == 1 && v.values[0].expr != nil && v.values[0].number <= 0 {
			return in.fromRequest(v.values[0].expr, depth+1)
		}
	}
	return false
}

// isDecoded reports whether x is a part of what was decoded from a request.
func (in *input) isDecoded(x ast.Expr, depth int) bool {
	if depth > 6 {
		return false
	}
	id := rootIdent(x)
	if id == nil {
		return false
	}
	if in.decoded[in.info.ObjectOf(id)] {
		return true
	}
	if only, _ := in.only(id); only != nil {
		return in.isDecoded(only, depth+1)
	}
	if v := in.at(id); v != nil && len(v.values) == 1 && v.values[0].number == 0 { // v, ok := m["x"]
		return v.values[0].expr != nil && in.isDecoded(v.values[0].expr, depth+1)
	}
	return false
}

// isInputText reports whether x is a string that the client chose, or begins with one.
func (in *input) isInputText(x ast.Expr, depth int) bool {
	if depth > 6 || in.info.Types[x].Value != nil || !isText(in.info.TypeOf(x)) {
		return false
	}
	if id := rootIdent(x); id != nil && in.checked[in.info.ObjectOf(id)] {
		return false
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.CallExpr:
		if isConversion(in.info, x) {
			return in.isInputText(x.Args[0], depth+1)
		}
		if sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok {
			if slices.Contains(readers, sel.Sel.Name) && in.fromRequest(sel.X, 0) {
				return true
			}
			if (sel.Sel.Name == "URLParam" || sel.Sel.Name == "TrimSpace" || sel.Sel.Name == "ToLower") &&
				len(x.Args) > 0 {
				return in.isInputText(x.Args[0], depth+1) || sel.Sel.Name == "URLParam" && in.fromRequest(x.Args[0], 0)
			}
		}
	case *ast.BinaryExpr:
		return in.isInputText(x.X, depth+1)
	case *ast.IndexExpr, *ast.SelectorExpr:
		return in.isDecoded(x, depth+1)
	case *ast.Ident:
		if only, _ := in.only(x); only != nil {
			return in.isInputText(only, depth+1)
		}
		return in.isDecoded(x, depth+1)
	}
	return false
}

func isText(t types.Type) bool { return t != nil && isString(t) }

// rootIdent returns the variable that x is a part of: v of v.Name["x"].(map[string]any).
func rootIdent(x ast.Expr) *ast.Ident {
	for {
		switch y := ast.Unparen(x).(type) {
		case *ast.Ident:
			return y
		case *ast.SelectorExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.StarExpr:
			x = y.X
		case *ast.UnaryExpr:
			x = y.X
		case *ast.TypeAssertExpr:
			x = y.X
		default:
			return nil
		}
	}
}

// isOpen reports whether a value of the type can be a document with operators: any, a map, a D.
func isOpen(t types.Type) bool {
	if t == nil {
		return false
	}
	return isAny(t) || isStringMap(t) && isAny(under(t).(*types.Map).Elem()) || isElements(t)
}

// documentType returns how the type of a document is written, if entries can be made of it: bson.D
// for bson.D{…} and bson.M{…}.
func documentType(d document, key, value string) string {
	name := types.ExprString(d.lit.Type)
	if d.lit.Type == nil {
		return ""
	}
	if d.isMap {
		if strings.Contains(name, "\n") {
			return ""
		}
		return name + "{" + key + ": " + value + "}"
	}
	return name + "{{Key: " + key + ", Value: " + value + "}}"
}
