package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// target is what a name of the official driver becomes.
type target struct{ pkg, name string }

// names are the types, functions, constants and variables that have a counterpart which is used in
// the same way.
var names = map[string]target{
	"mongo.Client": {"allium", "Client"}, "mongo.Database": {"allium", "Database"},
	"mongo.Collection":       {"allium", "Collection[any]"},
	"mongo.Pipeline":         {"allium/bson", "[]bson.D"},
	"mongo.InsertOneResult":  {"allium", "InsertOneResult"},
	"mongo.InsertManyResult": {"allium", "InsertManyResult"},
	"mongo.UpdateResult":     {"allium", "UpdateResult"}, "mongo.DeleteResult": {"allium", "DeleteResult"},
	"mongo.BulkWriteResult":       {"allium", "BulkWriteResult"},
	"mongo.IndexView":             {"allium", "*allium.Collection[any]"},
	"mongo.IndexModel":            {"allium", "IndexModel"},
	"mongo.ErrNoDocuments":        {"allium/mongoerr", "ErrNoDocuments"},
	"mongo.ErrClientDisconnected": {"allium/mongoerr", "ErrClientClosed"},
	"mongo.ErrNilDocument":        {"allium/mongoerr", "ErrNilDocument"},
	"mongo.SessionContext":        {"context", "Context"},
	"mongo.SessionFromContext":    {"allium", "SessionFrom"},
	"mongo.NewSessionContext":     {"allium", "WithSession"},

	"options.Collation": {"allium", "Collation"}, "options.Credential": {"allium/auth", "Credential"},

	"readpref.ReadPref":         {"allium/consistency", "ReadPreference"},
	"writeconcern.WriteConcern": {"allium/consistency", "WriteConcern"},
	"readconcern.ReadConcern":   {"allium/consistency", "ReadConcern"},

	"options.UpdateLookup":  {"allium", "FullDocumentUpdateLookup"},
	"options.Default":       {"allium", "FullDocumentDefault"},
	"options.WhenAvailable": {"allium", "FullDocumentWhenAvailable"},
	"options.Required":      {"allium", "FullDocumentRequired"},
	"options.Tailable":      {"allium", "CursorTailable"}, "options.TailableAwait": {"allium", "CursorTailableAwait"},
	"options.NonTailable": {"allium", `CursorType("")`},

	"ObjectIDFromHex": {"allium/bson", "ParseObjectID"}, "NewDateTimeFromTime": {"allium/bson", "NewDateTime"},
	"NewObjectIDFromTimestamp": {"allium/bson", "NewObjectIDFromTime"},
	"ParseDecimal128":          {"allium/bson", "ParseDecimal128"},
	"TypeBoolean":              {"allium/bson", "TypeBoolean"},
}

// sameInBSON are the names of bson, primitive and bsontype that package bson of Allium has, too.
var sameInBSON = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(
		`A D E M Raw RawValue ObjectID NilObjectID NewObjectID DateTime Timestamp Decimal128 NewDecimal128 Binary Regex
		Null MinKey MaxKey Undefined Symbol JavaScript CodeWithScope DBPointer Marshaler Unmarshaler ValueMarshaler ValueUnmarshaler
		Type TypeDouble TypeString TypeEmbeddedDocument TypeArray TypeBinary TypeUndefined TypeObjectID TypeBoolean TypeDateTime TypeNull TypeRegex
		TypeDBPointer TypeJavaScript TypeSymbol TypeCodeWithScope TypeInt32 TypeTimestamp TypeInt64 TypeDecimal128 TypeMinKey TypeMaxKey
		Vector NewFloat32Vector NewInt8Vector`) {
		sameInBSON[name] = true
	}
}

// isContainer reports whether a package starts MongoDB in a container.
func isContainer(path string) bool {
	return path == "github.com/testcontainers/testcontainers-go/modules/mongodb"
}

// node returns what becomes of a node, and whether anything does; else its parts are looked at.
func (r *rewriter) node(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.Ident:
		if r.noContext(n) {
			return r.done(r.use("context") + ".Background()")
		}
	case *ast.FuncDecl:
		return r.valueMethod(n)
	case *ast.StarExpr:
		return r.star(n)
	case *ast.IndexExpr: // options.Lister[options.FindOptions]
		if pkg, _, name := r.object(n.X); pkg == "mongo/options" && name == "Lister" {
			if _, _, of := r.object(n.Index); optionType(of) != nil {
				return r.done(r.use("allium") + "." + optionType(of).Name())
			}
		}
	case *ast.CallExpr:
		return r.call(n)
	case *ast.TypeAssertExpr:
		return r.errorAssertion(n)
	case *ast.UnaryExpr:
		if lit, ok := n.X.(*ast.CompositeLit); ok && n.Op == token.AND && lit.Type != nil {
			if pkg, _, name := r.object(lit.Type); pkg == "mongo/options" && name != "ClientOptions" &&
				optionType(name) != nil {
				return r.optionStruct(lit, optionType(name))
			}
		}
	case *ast.CompositeLit:
		return r.composite(n)
	case *ast.ExprStmt:
		return r.setter(n)
	case *ast.AssignStmt:
		return r.assign(n)
	case *ast.SelectorExpr:
		return r.selector(n)
	}
	return "", false
}

// star rewrites pointer types whose counterparts are none, or the other way round.
func (r *rewriter) star(n *ast.StarExpr) (string, bool) {
	pkg, _, name := r.object(n.X)
	switch {
	case pkg == "mongo" && name == "SingleResult":
		return r.done("*" + r.help("singleResult"))
	case pkg == "mongo" && name == "DistinctResult":
		return r.done("*" + r.help("distinctResult"))
	case pkg == "mongo" && name == "Session":
		return r.done("*" + r.use("allium") + ".Session")
	case pkg == "mongo/options" && (name == "ClientOptions" || name == "ClientOptionsBuilder"):
		return r.done("*" + r.help("clientOptions"))
	case pkg == "mongo/options" && optionType(name) != nil:
		return r.done(r.use("allium") + "." + optionType(name).Name())
	case pkg == "mongo/options" && strings.HasSuffix(name, "OptionsBuilder") &&
		optionType(strings.TrimSuffix(name, "Builder")) != nil:
		return r.done(r.use("allium") + "." + optionType(strings.TrimSuffix(name, "Builder")).Name())
	case pkg == "mongo" && (name == "Cursor" || name == "ChangeStream"):
		return r.done("*" + r.use("allium") + "." + name + "[" + r.use("allium/bson") + ".Raw]")
	case pkg == "mongo" && models[name].helper != "":
		return r.done(r.help("writeModel"))
	case pkg == "container" && name == "MongoDBContainer":
		return r.done("*" + r.use("allium/mongotest") + ".Deployment")
	}
	return "", false
}

// selector rewrites a name, a field or a method value.
func (r *rewriter) selector(n *ast.SelectorExpr) (string, bool) {
	pkg, recv, name := r.object(n)
	if pkg == "" {
		return "", false
	}
	if recv != "" {
		return r.field(n, pkg, recv, name)
	}
	if pkg == "bson/bsontype" && sameInBSON["Type"+name] { // bsontype.Null
		return r.done(r.use("allium/bson") + ".Type" + name)
	}
	if strings.HasPrefix(pkg, "bson") {
		if t, ok := names[name]; ok && !strings.Contains(name, ".") {
			return r.done(r.use(t.pkg) + "." + t.name)
		}
		if bsonFunctions[name] {
			return r.done(r.help("asBefore") + "." + name)
		}
		if sameInBSON[name] {
			return r.done(r.use("allium/bson") + "." + name)
		}
		r.leave(n, fmt.Sprintf(
			"%s.%s has no counterpart; package allium/bson encodes with struct tags, Options and Codecs.",
			pkg[strings.LastIndexByte(pkg, '/')+1:], name))
		return "", false
	}
	short := pkg[strings.LastIndexByte(pkg, '/')+1:]
	if t, ok := names[short+"."+name]; ok {
		r.use(t.pkg)
		if strings.ContainsAny(t.name, ".*") { // a type with its own package or a pointer
			if strings.HasPrefix(t.name, "*") {
				if _, star := r.parents[n].(*ast.StarExpr); star {
					return r.done(strings.TrimPrefix(t.name, "*"))
				}
				if lit, isLit := r.parents[n].(*ast.CompositeLit); isLit && lit.Type == ast.Expr(n) {
					return r.done("&" + strings.TrimPrefix(t.name, "*"))
				}
			}
			return r.done(t.name)
		}
		return r.done(r.use(t.pkg) + "." + t.name)
	}
	if bridge := errorTypes[name]; short == "mongo" && bridge != "" {
		r.help("errorTypes")
		return r.done(r.named(bridge))
	}
	switch short + "." + name {
	case "mongo.Session":
		return r.done("*" + r.use("allium") + ".Session")
	case "mongo.SingleResult":
		return r.done(r.help("singleResult"))
	case "mongo.WriteModel":
		return r.done(r.help("writeModel"))
	case "mongo.Cursor", "mongo.ChangeStream":
		return r.done(r.use("allium") + "." + name + "[" + r.use("allium/bson") + ".Raw]")
	case "mongo.IsTimeout":
		return r.done(r.help("isTimeout"))
	case "options.ClientOptions":
		return r.done(r.help("clientOptions"))
	case "options.After", "options.Before":
		return r.done(strconv.FormatBool(name == "After"))
	}
	if of := optionType(strings.TrimSuffix(name, "Builder")); short == "options" && of != nil {
		return r.done(r.use("allium") + "." + of.Name())
	}
	r.leave(n, advice(short, name))
	return "", false
}

// advice says what to do about a name without a counterpart.
func advice(short, name string) string {
	switch {
	case short == "mtest":
		return "Tests on mtest begin a deployment of mongotest: d := mongotest.Start(t), client, err := allium.Open(d.URI()); " +
			"instead of mock replies, insert the documents, and make errors with d.FailCommand."
	case short == "gridfs" || strings.HasPrefix(name, "GridFS"):
		return "Package allium/gridfs stores files as io streams: gridfs.NewBucket(db)."
	case short == "connstring":
		return "Package allium/uri reads connection strings for programs: uri.Parse(s)."
	case short == "event":
		return "Package allium/event has the events; ClientOptions has CommandMonitor, PoolMonitor and ServerMonitor."
	case strings.Contains(name, "Encryption"):
		return "Package allium/encryption encrypts fields: docs/encryption.md."
	case short == "bsoncore" || short == "bsonrw" || short == "bsoncodec":
		return "Package allium/bson appends BSON with AppendString and the like, reads it with Raw.All and Lookup, and takes Codecs in its Options."
	}
	return short + "." + name + " has no counterpart that is used in the same way: see docs/migrating.md."
}

// field rewrites the use of a field or a method value.
func (r *rewriter) field(n *ast.SelectorExpr, pkg, recv, name string) (string, bool) {
	x := func() string { return r.text(n.X) }
	switch recv + "." + name {
	case "Cursor.Current":
		return r.done(x() + ".Current()")
	case "ChangeStream.Current":
		return r.done(x() + ".Current().Raw")
	case "BulkWriteResult.UpsertedIDs":
		if call, ok := r.parents[n].(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "len" {
				return "", false
			}
		}
		return r.done(r.help("upsertedIDs") + "(" + x() + ".UpsertedIDs)")
	case "InsertManyResult.InsertedIDs":
		switch p := r.parents[n].(type) {
		case *ast.IndexExpr:
			return "", false
		case *ast.CallExpr:
			if id, ok := p.Fun.(*ast.Ident); ok && id.Name == "len" {
				return "", false
			}
		}
		return r.done(r.help("inOrder") + "(" + x() + ".InsertedIDs)")
	}
	if renamed := otherFields[recv+"."+name]; renamed != "" {
		return r.done(x() + "." + renamed)
	}
	if sameFields[recv+"."+name] || strings.HasPrefix(pkg, "bson") && sameInBSON[recv] {
		return "", false
	}
	if _, method := r.info.Uses[n.Sel].(*types.Func); method { // a method value
		if kept[recv+"."+name] || bsonMethods[recv+"."+name] || recv == "SingleResult" {
			return "", false
		}
		r.leave(n, recv+"."+name+" is not called here, and has no counterpart of the same form.")
		return "", false
	}
	if of := optionType(strings.TrimSuffix(recv, "Builder")); pkg == "mongo/options" && of != nil {
		return r.optionField(n, of, name)
	}
	r.leave(n, recv+"."+name+" has no counterpart that is used in the same way: see docs/migrating.md.")
	return "", false
}

// sameFields are the fields that have the same name and type, otherFields those of another name.
var (
	sameFields  = map[string]bool{}
	otherFields = map[string]string{
		"WriteConcern.WTimeout": "Timeout", "Credential.AuthSource": "Source", "Credential.AuthMechanism": "Mechanism",
		"Credential.AuthMechanismProperties": "Properties",
	}
)

func init() {
	for name := range strings.FieldsSeq(
		`InsertOneResult.InsertedID InsertOneResult.Acknowledged InsertManyResult.Acknowledged
		UpdateResult.MatchedCount UpdateResult.ModifiedCount UpdateResult.UpsertedCount UpdateResult.UpsertedID UpdateResult.Acknowledged
		DeleteResult.DeletedCount DeleteResult.Acknowledged BulkWriteResult.InsertedCount BulkWriteResult.MatchedCount BulkWriteResult.ModifiedCount
		BulkWriteResult.DeletedCount BulkWriteResult.UpsertedCount BulkWriteResult.Acknowledged IndexModel.Keys WriteConcern.W WriteConcern.Journal
		ReadConcern.Level Credential.Username Credential.Password Collation.Locale Collation.CaseLevel Collation.CaseFirst Collation.Strength
		Collation.NumericOrdering Collation.Alternate Collation.MaxVariable Collation.Normalization Collation.Backwards
		CommandError.Code CommandError.Message CommandError.Labels CommandError.Name CommandError.Wrapped CommandError.Raw
		WriteError.Index WriteError.Code WriteError.Message WriteError.Details WriteError.Raw
		WriteConcernError.Name WriteConcernError.Code WriteConcernError.Message WriteConcernError.Details WriteConcernError.Raw
		WriteException.WriteConcernError WriteException.WriteErrors WriteException.Labels WriteException.Raw BulkWriteError.WriteError
		BulkWriteError.Index BulkWriteError.Code BulkWriteError.Message BulkWriteError.Details BulkWriteError.Raw
		BulkWriteException.WriteConcernError BulkWriteException.WriteErrors BulkWriteException.Labels`) {
		sameFields[name] = true
	}
}

// optionField rewrites the use of a field of an option struct of version 1, whose fields are
// pointers.
func (r *rewriter) optionField(n *ast.SelectorExpr, of reflect.Type, name string) (string, bool) {
	old := name
	if to := renamed[name]; to != "" {
		name = to
	}
	f, ok := of.FieldByName(name)
	_, pointer := types.Unalias(r.info.TypeOf(n)).(*types.Pointer)
	if !ok || pointer != (f.Type.Kind() == reflect.Pointer) {
		r.leave(n, fmt.Sprintf("Option %s is otherwise in %s: look at its fields.", old, of))
		return "", false
	}
	return r.done(r.text(n.X) + "." + name)
}

// statement returns the statement that holds a node if the node is all of it.
func (r *rewriter) discarded(call *ast.CallExpr) bool {
	switch p := r.parents[call].(type) {
	case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt:
		return true
	case *ast.AssignStmt:
		if len(p.Lhs) > 0 {
			id, ok := p.Lhs[0].(*ast.Ident)
			return ok && id.Name == "_"
		}
	}
	return false
}

// result wraps a write whose result the program uses as a pointer.
func (r *rewriter) result(call *ast.CallExpr, text string) string {
	if r.discarded(call) {
		return text
	}
	if a, ok := r.parents[call].(*ast.AssignStmt); ok && len(a.Lhs) == 2 {
		if id, ok := a.Lhs[0].(*ast.Ident); ok {
			obj := r.info.Defs[id]
			if obj == nil {
				obj = r.info.Uses[id]
			}
			if obj != nil && !r.pointers[obj] && r.byWrite(obj) {
				return text
			}
		}
	}
	if _, name := r.resultType(call); name == "InsertManyResult" || name == "BulkWriteResult" || r.many(call) {
		return r.help("partial") + "(" + text + ")"
	}
	return r.help("pointer") + "(" + text + ")"
}

// resultType returns the package and name of the type of a call's first result.
func (r *rewriter) resultType(call *ast.CallExpr) (pkg, name string) {
	t, ok := r.info.TypeOf(call).(*types.Tuple)
	if !ok || t.Len() == 0 {
		return "", ""
	}
	return "mongo", typeName(t.At(0).Type())
}

// many reports whether a call writes many documents.
func (r *rewriter) many(call *ast.CallExpr) bool {
	_, _, name := r.object(call.Fun)
	return strings.HasSuffix(name, "Many")
}

// byWrite reports whether a variable is declared where a write assigns to it, and so has the type
// that the write returns.
func (r *rewriter) byWrite(v types.Object) bool {
	if r.defined == nil {
		r.defined = map[types.Object]bool{}
		for id, obj := range r.info.Defs {
			a, ok := r.parents[id].(*ast.AssignStmt)
			r.defined[obj] = ok && len(a.Rhs) == 1 && len(a.Lhs) == 2
		}
	}
	return r.defined[v]
}

// composite rewrites literals whose fields differ.
func (r *rewriter) composite(n *ast.CompositeLit) (string, bool) {
	if n.Type == nil {
		if pkg, name := r.officialType(n); pkg == "mongo" && name == "IndexModel" {
			if call, ok := r.indexed(n); ok {
				return r.done(call)
			}
			return r.done(r.indexModel(n))
		}
		return "", false
	}
	pkg, _, name := r.object(n.Type)
	switch {
	case pkg == "mongo" && name == "IndexModel":
		if call, ok := r.indexed(n); ok {
			return r.done(call)
		}
		return r.done(r.use("allium") + ".IndexModel" + r.indexModel(n))
	case pkg == "mongo/options" && name == "Credential":
		return r.done(r.use("allium/auth") + ".Credential" + r.credential(n))
	case strings.HasPrefix(pkg, "bson") && name == "Decimal128":
		return "", false
	}
	return "", false
}

// optionStruct rewrites the literal of an option struct of version 1, whose fields are pointers.
func (r *rewriter) optionStruct(n *ast.CompositeLit, of reflect.Type) (string, bool) {
	var fields []string
	for _, el := range n.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			return "", false
		}
		name := r.raw(kv.Key)
		if to := renamed[name]; to != "" {
			name = to
		}
		f, known := of.FieldByName(name)
		if !known {
			r.leave(n, fmt.Sprintf("Option %s has no counterpart in %s: look at its fields.", name, of))
			continue
		}
		value := r.text(kv.Value)
		_, pointer := types.Unalias(r.info.TypeOf(kv.Value)).(*types.Pointer)
		if pointer && f.Type.Kind() != reflect.Pointer {
			if address, ok := kv.Value.(*ast.UnaryExpr); ok && address.Op == token.AND {
				value = r.text(address.X)
			} else {
				value = "*" + value
			}
		}
		fields = append(fields, name+": "+value)
	}
	return r.done(r.use("allium") + "." + of.Name() + "{" + strings.Join(fields, ", ") + "}")
}

// indexed returns an IndexModel whose options are not written where it is, but in a variable.
func (r *rewriter) indexed(n *ast.CompositeLit) (string, bool) {
	if _, address := r.parents[n].(*ast.UnaryExpr); address || len(n.Elts) != 2 {
		return "", false
	}
	values := map[string]ast.Expr{}
	for _, el := range n.Elts {
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			values[r.raw(kv.Key)] = kv.Value
		}
	}
	keys, options := values["Keys"], values["Options"]
	if keys == nil || options == nil {
		return "", false
	}
	if _, written := r.chain(options, optionType("IndexOptions")); written {
		return "", false
	}
	if t := typeName(r.info.TypeOf(options)); t != "IndexOptions" && t != "IndexOptionsBuilder" {
		return "", false
	}
	return r.help("indexed") + "(" + r.text(keys) + ", " + r.text(options) + ")", true
}

// indexModel returns the braces of an IndexModel with its options among its fields.
func (r *rewriter) indexModel(n *ast.CompositeLit) string {
	var fields []string
	for _, el := range n.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			fields = append(fields, r.text(el))
			continue
		}
		if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Options" {
			if more, ok := r.chain(kv.Value, optionType("IndexOptions")); ok {
				fields = append(fields, more...)
			} else {
				r.leave(n, "The options of an index are fields of IndexModel: Name, Unique, Sparse, ExpireAfter and so on.")
			}
			continue
		}
		fields = append(fields, r.raw(kv.Key)+": "+r.text(kv.Value))
	}
	if strings.Contains(r.raw(n), "\n") && len(fields) > 0 {
		return "{\n" + strings.Join(fields, ",\n") + ",\n}"
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// credential returns the braces of a Credential.
func (r *rewriter) credential(n *ast.CompositeLit) string {
	rename := map[string]string{"AuthSource": "Source", "AuthMechanism": "Mechanism",
		"AuthMechanismProperties": "Properties"}
	var fields []string
	for _, el := range n.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, value := r.raw(kv.Key), r.text(kv.Value)
		if to := rename[key]; to != "" {
			key = to
		}
		if _, literal := kv.Value.(*ast.BasicLit); !literal {
			switch key {
			case "Password":
				value = r.use("allium/auth") + ".Secret(" + value + ")"
			case "Mechanism":
				value = r.use("allium/auth") + ".Mechanism(" + value + ")"
			}
		}
		fields = append(fields, key+": "+value)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// setter rewrites a statement that sets an option: opts.SetLimit(5) becomes opts.Limit = 5.
func (r *rewriter) setter(n *ast.ExprStmt) (string, bool) {
	call, ok := n.X.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	var sets []string
	x := ast.Expr(call)
	base, kind := r.chainBase(call)
	if base == nil {
		return "", false
	}
	if _, isCall := base.(*ast.CallExpr); isCall {
		return "", false
	}
	fields, ok := r.chain(x, kind)
	if !ok {
		return "", false
	}
	b := r.text(base)
	for _, f := range fields {
		key, value, _ := strings.Cut(f, ": ")
		sets = append(sets, b+"."+key+" = "+value)
	}
	return r.done(strings.Join(sets, "\n"))
}

// assign rewrites the idiom of one document: where the variable and the error belong to the same
// scope, err := c.FindOne(ctx, f).Decode(&v) becomes v, err := of[T](c).FindOne(ctx, f).
func (r *rewriter) assign(n *ast.AssignStmt) (string, bool) {
	if len(n.Lhs) != 1 || len(n.Rhs) != 1 {
		return "", false
	}
	if call, ok := n.Rhs[0].(*ast.CallExpr); ok && n.Tok == token.ASSIGN {
		if base, _ := r.chainBase(call); base != nil && r.raw(base) == r.raw(n.Lhs[0]) {
			return r.setter(&ast.ExprStmt{X: call})
		}
	}
	decode, ok := n.Rhs[0].(*ast.CallExpr)
	if !ok || len(decode.Args) != 1 {
		return "", false
	}
	sel, ok := decode.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Decode" {
		return "", false
	}
	find, ok := sel.X.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	if pkg, recv, name := r.object(find.Fun); pkg != "mongo" || recv != "Collection" || !oneDocument[name] {
		return "", false
	}
	ref, ok := decode.Args[0].(*ast.UnaryExpr)
	if !ok || ref.Op != token.AND {
		return "", false
	}
	id, ok := ref.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	obj := r.info.Uses[id]
	named, isNamed := types.Unalias(r.info.TypeOf(id)).(*types.Named)
	if obj == nil || !isNamed || named.Obj().Pkg() != r.pkg || named.TypeArgs() != nil ||
		named.Obj().Parent() != r.pkg.Scope() {
		return "", false // the name of another type may need an import
	}
	if scope := r.pkg.Scope().Innermost(n.Pos()); scope != nil {
		if _, found := scope.LookupParent(named.Obj().Name(), n.Pos()); found != types.Object(named.Obj()) {
			return "", false // a variable has the name of the type here
		}
	}
	op := n.Tok.String()
	_, inBlock := r.parents[n].(*ast.BlockStmt)
	inner := r.pkg.Scope().Innermost(n.Pos())
	if !inBlock || inner == nil || obj.Parent() != inner {
		return "", false // := would declare another variable, and another scope may come here again
	}
	if !r.fresh(id, obj) || !r.leftOnError(n, obj) {
		return "", false // Decode keeps what the document does not have, and leaves what it has decoded
	}
	if name := find.Fun.(*ast.SelectorExpr).Sel.Name; name == "FindOneAndReplace" {
		return "", false // its replacement need not have the type of the document
	}
	before := 2
	if find.Fun.(*ast.SelectorExpr).Sel.Name == "FindOneAndUpdate" {
		before = 3
	}
	args := r.callArgs(find, before)
	call := fmt.Sprintf("%s[%s](%s).%s(%s)", r.help("of"), named.Obj().Name(), r.text(find.Fun.(*ast.SelectorExpr).X),
		find.Fun.(*ast.SelectorExpr).Sel.Name, args)
	r.use("allium")
	return r.done(id.Name + ", " + r.text(n.Lhs[0]) + " " + op + " " + call)
}

// leftOnError reports whether a block is left behind an assignment if there is an error, without a
// look at a variable.
func (r *rewriter) leftOnError(n *ast.AssignStmt, obj types.Object) bool {
	block, ok := r.parents[n].(*ast.BlockStmt)
	if !ok {
		return false
	}
	at := slices.Index(block.List, ast.Stmt(n))
	if at < 0 || at+1 >= len(block.List) {
		return false
	}
	check, ok := block.List[at+1].(*ast.IfStmt)
	if !ok || check.Init != nil || check.Else != nil || len(check.Body.List) == 0 {
		return false
	}
	if cond, ok := check.Cond.(*ast.BinaryExpr); !ok || cond.Op != token.NEQ || r.raw(cond.X) != r.raw(n.Lhs[0]) ||
		r.raw(cond.Y) != "nil" {
		return false
	}
	switch last := check.Body.List[len(check.Body.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
	case *ast.ExprStmt:
		call, ok := last.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		switch r.raw(call.Fun) {
		case "panic", "t.Fatal", "t.Fatalf", "log.Fatal", "log.Fatalf", "log.Fatalln", "os.Exit":
		default:
			return false
		}
	default:
		return false
	}
	used := false
	ast.Inspect(check.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		used = used || ok && r.info.Uses[id] == obj
		return !used
	})
	return !used
}

// fresh reports whether a variable has its zero value where it is used: it is declared without one,
// and not used before.
func (r *rewriter) fresh(at *ast.Ident, obj types.Object) bool {
	zero := false
	for id, def := range r.info.Defs {
		if def == obj {
			spec, ok := r.parents[id].(*ast.ValueSpec)
			zero = ok && len(spec.Values) == 0
		}
	}
	for id, use := range r.info.Uses {
		if use == obj && id.Pos() < at.Pos() {
			return false
		}
	}
	return zero
}

// oneDocument are the methods of a collection that return a SingleResult.
var oneDocument = map[string]bool{"FindOne": true, "FindOneAndDelete": true, "FindOneAndUpdate": true,
	"FindOneAndReplace": true}
