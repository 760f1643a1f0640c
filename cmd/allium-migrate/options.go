package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"

	"allium"
)

// optionTypes are the option structs of Allium by the names of the official driver's.
var optionTypes = map[string]reflect.Type{}

func init() {
	for name, v := range map[string]any{
		"FindOptions": allium.FindOptions{}, "FindOneOptions": allium.FindOneOptions{},
		"InsertOneOptions":  allium.InsertOneOptions{},
		"InsertManyOptions": allium.InsertManyOptions{}, "UpdateOptions": allium.UpdateOptions{},
		"UpdateOneOptions":  allium.UpdateOptions{},
		"UpdateManyOptions": allium.UpdateOptions{}, "ReplaceOptions": allium.ReplaceOptions{},
		"DeleteOptions":    allium.DeleteOptions{},
		"DeleteOneOptions": allium.DeleteOptions{}, "DeleteManyOptions": allium.DeleteOptions{},
		"CountOptions":                  allium.CountOptions{},
		"EstimatedDocumentCountOptions": allium.EstimatedCountOptions{}, "DistinctOptions": allium.DistinctOptions{},
		"AggregateOptions": allium.AggregateOptions{},
		"BulkWriteOptions": allium.BulkWriteOptions{}, "FindOneAndUpdateOptions": allium.FindOneAndUpdateOptions{},
		"FindOneAndReplaceOptions": allium.FindOneAndReplaceOptions{},
		"FindOneAndDeleteOptions":  allium.FindOneAndDeleteOptions{},
		"CollectionOptions":        allium.CollectionOptions{}, "DatabaseOptions": allium.DatabaseOptions{},
		"SessionOptions":     allium.SessionOptions{},
		"TransactionOptions": allium.TransactionOptions{}, "ChangeStreamOptions": allium.WatchOptions{},
		"CreateCollectionOptions": allium.CreateCollectionOptions{},
		"CreateIndexesOptions":    allium.CreateIndexOptions{}, "DropIndexesOptions": allium.DropIndexOptions{},
		"ListCollectionsOptions": allium.ListCollectionsOptions{},
		"ListDatabasesOptions":   allium.ListDatabasesOptions{}, "ListIndexesOptions": allium.ListIndexesOptions{},
		"RunCmdOptions": allium.RunCommandOptions{},
		"IndexOptions":  allium.IndexModel{}, "ClientOptions": allium.ClientOptions{},
	} {
		optionTypes[name] = reflect.TypeOf(v)
	}
}

// optionType returns the option struct of Allium for one of the official driver, nil if there is
// none.
func optionType(name string) reflect.Type { return optionTypes[name] }

// constructors are the functions that begin a chain of options, by the name of their type without
// the ending, where it is another one than theirs.
var constructors = map[string]string{
	"Update": "UpdateOptions", "UpdateOne": "UpdateOneOptions", "UpdateMany": "UpdateManyOptions",
	"Delete": "DeleteOptions", "Count": "CountOptions",
	"ChangeStream": "ChangeStreamOptions", "RunCmd": "RunCmdOptions", "Index": "IndexOptions",
	"Client":                 "ClientOptions",
	"EstimatedDocumentCount": "EstimatedDocumentCountOptions",
}

// constructed returns the option struct that a function of package options makes.
func constructed(fn string) reflect.Type {
	if name, ok := constructors[fn]; ok {
		return optionType(name)
	}
	return optionType(fn + "Options")
}

// renamed are the options that are called otherwise.
var renamed = map[string]string{
	"PartialFilterExpression": "PartialFilter", "TLSConfig": "TLS", "MaxConnIdleTime": "MaxIdleTime",
	"ZlibLevel":     "ZlibCompressionLevel",
	"SphereVersion": "SphereVersion", "TextVersion": "TextVersion", "Hidden": "Hidden", "ServerAPIOptions": "ServerAPI",
	"Auth":         "Credential",
	"ShowRecordID": "ShowRecordID",
}

// chainBase returns what a chain of setters begins with, and the option struct that it is about.
func (r *rewriter) chainBase(e ast.Expr) (ast.Expr, reflect.Type) {
	depth := 0
	for {
		if p, ok := e.(*ast.ParenExpr); ok {
			e = p.X
			continue
		}
		call, ok := e.(*ast.CallExpr)
		if !ok {
			break
		}
		pkg, recv, name := r.object(call.Fun)
		if pkg != "mongo/options" {
			return nil, nil
		}
		if recv == "" {
			if t := constructed(name); t != nil && len(call.Args) == 0 {
				return call, t
			}
			return nil, nil
		}
		if !strings.HasPrefix(name, "Set") && name != "ApplyURI" {
			return nil, nil
		}
		e = call.Fun.(*ast.SelectorExpr).X
		depth++
	}
	if depth == 0 {
		return nil, nil
	}
	pkg, name := r.officialType(e)
	if pkg != "mongo/options" {
		return nil, nil
	}
	if t := optionType(strings.TrimSuffix(name, "Builder")); t != nil {
		return e, t
	}
	return nil, nil
}

// chain returns the fields that a chain of setters sets, as "Name: value". ok is false if it is no
// chain, or if an option of it has no counterpart.
func (r *rewriter) chain(e ast.Expr, of reflect.Type) (fields []string, ok bool) {
	base, kind := r.chainBase(e)
	if base == nil || of != nil && kind != of {
		return nil, false
	}
	var calls []*ast.CallExpr
	for x := e; x != base; {
		if p, isParen := x.(*ast.ParenExpr); isParen {
			x = p.X
			continue
		}
		call := x.(*ast.CallExpr)
		calls = append(calls, call)
		x = call.Fun.(*ast.SelectorExpr).X
	}
	for i := len(calls) - 1; i >= 0; i-- {
		call := calls[i]
		name := call.Fun.(*ast.SelectorExpr).Sel.Name
		if name == "ApplyURI" {
			fields = append(fields, "URI: "+r.text(call.Args[0]))
			continue
		}
		if len(call.Args) != 1 {
			r.leave(call, strings.TrimPrefix(name, "Set")+" has no counterpart in "+kind.String()+".")
			continue
		}
		field, known := r.option(kind, strings.TrimPrefix(name, "Set"), call.Args[0])
		if !known {
			r.leave(call, fmt.Sprintf("Option %s has no counterpart in %s: look at its fields.",
				strings.TrimPrefix(name, "Set"), kind))
			continue
		}
		if field != "" {
			fields = append(fields, field)
			r.stats.rewritten++
		}
	}
	return fields, true
}

// option returns a field for an option, "" if the option is the default.
func (r *rewriter) option(kind reflect.Type, name string, arg ast.Expr) (field string, known bool) {
	v := r.text(arg)
	switch name {
	case "Ordered":
		switch v {
		case "true":
			return "", true
		case "false":
			return "Unordered: true", true
		}
		return "Unordered: !(" + v + ")", true
	case "ReturnDocument":
		if v == "false" {
			return "", true
		}
		return "ReturnNew: " + v, true
	case "ExpireAfterSeconds":
		return "ExpireAfter: new(" + r.use("time") + ".Duration(" + v + ") * time.Second)", true
	case "ServerAPIOptions":
		return r.serverAPI(arg)
	case "Auth":
		return "Credential: &" + v, true
	case "BSONOptions":
		if r.settings != nil {
			return "BSON: &" + r.clientBSON(), true
		}
		return "", false
	case "Monitor", "PoolMonitor", "ServerMonitor", "LoggerOptions", "Registry", "Hosts":
		return "", false
	case "ArrayFilters":
		if lit, ok := arg.(*ast.CompositeLit); ok && len(lit.Elts) == 1 {
			if kv, ok := lit.Elts[0].(*ast.KeyValueExpr); ok {
				return "ArrayFilters: " + r.text(kv.Value), true
			}
		}
	}
	if to := renamed[name]; to != "" {
		name = to
	}
	f, ok := kind.FieldByName(name)
	if !ok {
		return "", false
	}
	return name + ": " + r.fit(v, arg, f.Type), true
}

// fit returns a value as one of a type.
func (r *rewriter) fit(v string, arg ast.Expr, t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		switch e := t.Elem(); {
		case e.Kind() == reflect.Struct:
			return v
		case e.Kind() == reflect.Bool || e.String() == "time.Duration":
			return "new(" + v + ")"
		default:
			return "new(" + e.String() + "(" + v + "))"
		}
	case reflect.String:
		if t.Name() != "string" && !strings.Contains(v, "allium.") {
			return r.use("allium") + "." + t.Name() + "(" + v + ")"
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if _, literal := arg.(*ast.BasicLit); !literal && t.String() != "time.Duration" {
			if have := r.info.TypeOf(arg); have != nil && have.String() != t.String() &&
				r.info.Types[arg].Value == nil {
				return t.String() + "(" + v + ")"
			}
		}
	}
	return v
}

// options returns option arguments as one option struct, "" if there is none.
func (r *rewriter) options(call *ast.CallExpr, from int) string {
	var list []string
	for i := from; i < len(call.Args); i++ {
		arg := call.Args[i]
		if id, ok := arg.(*ast.Ident); ok && id.Name == "nil" {
			continue
		}
		text := ""
		if fields, ok := r.chain(arg, nil); ok {
			base, kind := r.chainBase(arg)
			if _, isCall := base.(*ast.CallExpr); isCall {
				text = r.use("allium") + "." + kind.Name() + "{" + strings.Join(fields, ", ") + "}"
			}
		}
		if text == "" {
			text = r.text(arg)
			if i == len(call.Args)-1 && call.Ellipsis.IsValid() {
				text += "..."
			}
		}
		list = append(list, text)
	}
	if len(list) > 1 {
		r.leave(call, "An operation takes one option struct: put all options into it.")
	}
	return strings.Join(list, ", ")
}

// callArgs returns the first n arguments of a call, and its options behind them.
func (r *rewriter) callArgs(call *ast.CallExpr, n int) string {
	var list []string
	_, recv, name := r.object(call.Fun)
	for i, a := range call.Args[:min(n, len(call.Args))] {
		if i == 1 && recv == "Collection" && filtering[name] {
			list = append(list, r.filter(a))
			continue
		}
		list = append(list, r.text(a))
	}
	if o := r.options(call, n); o != "" {
		list = append(list, o)
	}
	return strings.Join(list, ", ")
}

// filtering are the methods of a collection whose second argument is a filter.
var filtering = map[string]bool{"Find": true, "FindOne": true, "FindOneAndDelete": true, "FindOneAndUpdate": true,
	"FindOneAndReplace": true, "CountDocuments": true,
	"UpdateOne": true, "UpdateMany": true, "ReplaceOne": true, "DeleteOne": true, "DeleteMany": true}

// filter returns a filter that may be a nil map, which has no conditions.
func (r *rewriter) filter(e ast.Expr) string {
	text := r.text(e)
	t := r.info.TypeOf(e)
	if t == nil || text == "nil" {
		return text
	}
	switch t.Underlying().(type) {
	case *types.Map, *types.Interface:
	default:
		return text
	}
	if r.made(e) {
		return text
	}
	return r.help("given") + "(" + text + ")"
}

// made reports whether an expression is a literal, or a variable that is given nothing but
// literals.
func (r *rewriter) made(e ast.Expr) bool {
	isLiteral := func(e ast.Expr) bool {
		switch e := ast.Unparen(e).(type) {
		case *ast.CompositeLit:
			return true
		case *ast.CallExpr:
			id, ok := e.Fun.(*ast.Ident)
			return ok && id.Name == "make"
		}
		return false
	}
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return isLiteral(e)
	}
	obj := r.info.Uses[id]
	if obj == nil || obj.Parent() == r.pkg.Scope() {
		return false
	}
	given := false
	for _, names := range []map[*ast.Ident]types.Object{r.info.Defs, r.info.Uses} {
		for other, o := range names {
			if o != obj {
				continue
			}
			switch p := r.parents[other].(type) {
			case *ast.AssignStmt:
				at := slices.Index(p.Lhs, ast.Expr(other))
				if at < 0 {
					continue
				}
				if len(p.Lhs) != len(p.Rhs) || !isLiteral(p.Rhs[at]) {
					return false
				}
				given = true
			case *ast.ValueSpec:
				at := slices.Index(p.Names, other)
				if at < 0 {
					continue
				}
				if at >= len(p.Values) || !isLiteral(p.Values[at]) {
					return false
				}
				given = true
			case *ast.Field, *ast.UnaryExpr, *ast.RangeStmt: // a parameter, an address
				return false
			}
		}
	}
	return given
}

// noContext reports whether a nil is the context of a call of the official driver.
func (r *rewriter) noContext(id *ast.Ident) bool {
	call, ok := r.parents[id].(*ast.CallExpr)
	if !ok || id.Name != "nil" || len(call.Args) == 0 || call.Args[0] != ast.Expr(id) {
		return false
	}
	if pkg, _, _ := r.object(call.Fun); pkg == "" {
		return false
	}
	sig, ok := r.info.TypeOf(call.Fun).(*types.Signature)
	return ok && sig.Params().Len() > 0 && sig.Params().At(0).Type().String() == "context.Context"
}

// models are the writes of a bulk write: the helper that makes each, what it is told by arguments,
// and the options that are told by others.
var models = map[string]struct {
	helper  string
	args    []string
	options string
}{
	"InsertOneModel":  {"insertOneModel", []string{"Document"}, ""},
	"UpdateOneModel":  {"updateOneModel", []string{"Filter", "Update"}, "UpdateModelOptions"},
	"UpdateManyModel": {"updateManyModel", []string{"Filter", "Update"}, "UpdateModelOptions"},
	"ReplaceOneModel": {"replaceOneModel", []string{"Filter", "Replacement"}, "ReplaceModelOptions"},
	"DeleteOneModel":  {"deleteOneModel", []string{"Filter"}, "DeleteModelOptions"},
	"DeleteManyModel": {"deleteManyModel", []string{"Filter"}, "DeleteModelOptions"},
}

// model rewrites mongo.NewUpdateOneModel().SetFilter(f) into a call of a helper.
func (r *rewriter) model(call *ast.CallExpr) (string, bool) {
	set := map[string]string{}
	x := ast.Expr(call)
	for {
		c, ok := x.(*ast.CallExpr)
		if !ok {
			return "", false
		}
		pkg, recv, name := r.object(c.Fun)
		if pkg != "mongo" {
			return "", false
		}
		if recv == "" {
			m := models[strings.TrimPrefix(name, "New")]
			if m.helper == "" {
				return "", false
			}
			var list []string
			for _, a := range m.args {
				list = append(list, cmp.Or(set[a], "nil"))
				delete(set, a)
			}
			if len(set) > 0 {
				var fields []string
				for _, name := range slices.Sorted(maps.Keys(set)) {
					fields = append(fields, name+": "+set[name])
				}
				list = append(list, r.use("allium")+"."+m.options+"{"+strings.Join(fields, ", ")+"}")
			}
			return r.done(r.help(m.helper) + "(" + strings.Join(list, ", ") + ")")
		}
		if models[recv].helper == "" || !strings.HasPrefix(name, "Set") || len(c.Args) != 1 {
			return "", false
		}
		if name = strings.TrimPrefix(name, "Set"); set[name] == "" { // the last call counts, and stands outside
			set[name] = r.text(c.Args[0])
		}
		x = c.Fun.(*ast.SelectorExpr).X
	}
}

// bulkWrite rewrites Collection.BulkWrite, whose collection makes the models.
func (r *rewriter) bulkWrite(call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
	x := r.receiver(sel)
	args := []string{r.text(call.Args[0]), r.help("modelsOf") + "(" + x + ", " + r.text(call.Args[1]) + ")"}
	if o := r.options(call, 2); o != "" {
		args = append(args, o)
	}
	return r.done(r.result(call, x+".BulkWrite("+strings.Join(args, ", ")+")"))
}
