package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// call rewrites a call of the official driver.
func (r *rewriter) call(n *ast.CallExpr) (string, bool) {
	pkg, recv, name := r.object(ast.Unparen(n.Fun))
	switch {
	case pkg == "":
		r.handedOver(n)
		r.errorText(n)
		if s, ok := r.errorCall(n); ok {
			return s, true
		}
		return r.containerEnd(n)
	case strings.HasPrefix(pkg, "bson"):
		return r.bsonCall(n, recv, name)
	case pkg == "container":
		return r.container(n, recv, name)
	case recv == "":
		return r.function(n, pkg, name)
	case pkg == "mongo/options":
		if fields, ok := r.chain(n, nil); ok {
			base, kind := r.chainBase(n)
			if _, isCall := base.(*ast.CallExpr); isCall {
				return r.done(r.optionsLiteral(kind.Name(), fields))
			}
		}
		r.leave(n, name+" is a field now: set it in a statement of its own.")
		return "", false
	}
	if s, ok := r.model(n); ok {
		return s, true
	}
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	if _, typ := r.officialType(sel.X); typ == "SessionContext" && recv == "Session" {
		return r.sessionOf(n, sel, name)
	}
	if method := methods[recv+"."+name]; method != nil {
		return method(r, n, sel)
	}
	if kept[recv+"."+name] {
		return r.done(r.receiver(sel) + "." + name + "(" + strings.Join(r.args(n), ", ") + ellipsis(n) + ")")
	}
	r.leave(n, recv+"."+name+" has no counterpart that is used in the same way: see docs/migrating.md.")
	return "", false
}

// receiver returns what a method is called on: where a program's type embeds one of the driver's,
// the embedded field.
func (r *rewriter) receiver(sel *ast.SelectorExpr) string {
	x := r.text(sel.X)
	s := r.info.Selections[sel]
	if s == nil || len(s.Index()) < 2 {
		return x
	}
	t := s.Recv()
	for _, i := range s.Index()[:len(s.Index())-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		st, ok := t.Underlying().(*types.Struct)
		if !ok {
			return x
		}
		f := st.Field(i)
		if f.Pkg() != nil && where(f.Pkg().Path()) != "" {
			return x // inside of the driver's own types
		}
		x, t = x+"."+f.Name(), f.Type()
	}
	return x
}

// onlyUse reports whether the first of some arguments is a context in a variable that is used
// nowhere else: without this use it would be declared in vain.
func (r *rewriter) onlyUse(args []ast.Expr) bool {
	if len(args) < 2 {
		return false
	}
	id, ok := args[0].(*ast.Ident)
	if !ok || r.info.Uses[id] == nil {
		return false
	}
	v, ok := r.info.Uses[id].(*types.Var)
	if !ok || v.Parent() == nil || v.Parent() == r.pkg.Scope() {
		return false
	}
	uses := 0
	for other, obj := range r.info.Uses {
		if a, ok := r.parents[other].(*ast.AssignStmt); ok && slices.Contains(a.Lhs, ast.Expr(other)) {
			continue // a variable that is only assigned to is not used
		}
		if obj == types.Object(v) {
			uses++
		}
	}
	return uses == 1
}

func ellipsis(n *ast.CallExpr) string {
	if n.Ellipsis.IsValid() {
		return "..."
	}
	return ""
}

// optionsLiteral returns an option struct. That of a client is kept with its connection string.
func (r *rewriter) optionsLiteral(kind string, fields []string) string {
	if kind != "ClientOptions" {
		return r.use("allium") + "." + kind + "{" + strings.Join(fields, ", ") + "}"
	}
	uri, rest := "", []string{}
	for _, f := range fields {
		if value, ok := strings.CutPrefix(f, "URI: "); ok {
			uri = value
			continue
		}
		rest = append(rest, f)
	}
	var list []string
	if uri != "" {
		list = append(list, "URI: "+uri)
	}
	if len(rest) > 0 {
		list = append(list, "ClientOptions: "+r.use("allium")+".ClientOptions{"+strings.Join(rest, ", ")+"}")
	}
	return "&" + r.help("clientOptions") + "{" + strings.Join(list, ", ") + "}"
}

// kept are the methods that are called in the same way.
var kept = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(
		`Client.StartSession Collection.Name Collection.Database Database.Name Database.Client Collection.Drop Database.Drop
		Cursor.Next Cursor.TryNext Cursor.Err Cursor.Close Cursor.ID ChangeStream.Next ChangeStream.TryNext ChangeStream.Err ChangeStream.Close ChangeStream.ID
		ChangeStream.ResumeToken Session.StartTransaction Session.CommitTransaction Session.AbortTransaction Session.ID Session.ClusterTime Session.OperationTime
		Session.AdvanceClusterTime Session.Client SingleResult.Decode SingleResult.Err SingleResult.Raw SingleResult.DecodeBytes`) {
		kept[name] = true
	}
	for name := range errorTypes {
		for _, method := range append(errorMethods, "Error", "Unwrap") {
			kept[name+"."+method] = true
		}
	}
}

type method = func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool)

// on returns a method that calls one of another name on the same receiver; n is how many arguments
// stand before the options.
func on(name string, n int) method {
	return func(r *rewriter, call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		return r.done(r.receiver(sel) + "." + name + "(" + r.callArgs(call, n) + ")")
	}
}

// write is on for writes, whose results were pointers.
func write(name string, n int) method {
	return func(r *rewriter, call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		return r.done(r.result(call, r.receiver(sel)+"."+name+"("+r.callArgs(call, n)+")"))
	}
}

// single is on for operations that returned a SingleResult.
func single(name string, n int) method {
	return func(r *rewriter, call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		x := r.receiver(sel)
		return r.done(fmt.Sprintf("%s(%s(%s).%s(%s))", r.help("one"), r.help("raw"), x, name, r.callArgs(call, n)))
	}
}

// reads is on for operations that return a cursor of documents that are not decoded.
func reads(name string, n int) method {
	return func(r *rewriter, call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		return r.done(fmt.Sprintf("%s(%s).%s(%s)", r.help("raw"), r.receiver(sel), name, r.callArgs(call, n)))
	}
}

var methods map[string]method

func init() {
	methods = map[string]method{
		"Client.Disconnect": on("Close", 1), "Client.Database": on("Database", 1),
		"Client.Ping":              (*rewriter).ping,
		"Client.Connect":           (*rewriter).nothing,
		"Client.ListDatabaseNames": filtered("ListDatabaseNames", "ListDatabasesOptions", 1),
		"Client.Watch":             (*rewriter).watch, "Database.Watch": (*rewriter).watch,
		"Collection.Watch": reads("Watch", 2),
		"Client.UseSession": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.done(fmt.Sprintf("%s(%s, %s, %s)", r.help("useSession"), r.text(n.Args[0]), r.receiver(sel),
				r.text(n.Args[1])))
		},
		"Database.Collection": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.done(r.use("allium") + ".CollectionOf[any](" + r.receiver(sel) + ", " + r.callArgs(n, 1) + ")")
		},
		"Database.RunCommand": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.done(r.help("one") + "(" + r.receiver(sel) + ".RunCommand(" + r.callArgs(n, 2) + "))")
		},
		"Database.RunCommandCursor": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.runCursor(n, 2, r.receiver(sel), r.text(n.Args[1]))
		},
		"Database.Aggregate": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			r.leave(n, "Database.Aggregate returns a cursor of bson.D: decode with bson.Convert, or run the command with allium.RunCursorCommand[T].")
			return r.receiver(sel) + ".Aggregate(" + r.callArgs(n, 2) + ")", true
		},
		"Database.ListCollections": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.runCursor(n, 2, r.receiver(sel),
				`bson.D{{Key: "listCollections", Value: 1}, {Key: "filter", Value: `+r.text(n.Args[1])+`}}`)
		},
		"Database.CreateCollection":    on("CreateCollection", 2),
		"Database.ListCollectionNames": filtered("ListCollectionNames", "ListCollectionsOptions", 1),
		"Collection.Clone": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			if _, two := r.info.TypeOf(n).(*types.Tuple); two || len(n.Args) != 1 {
				r.leave(n, "Collection.With(allium.CollectionOptions{...}) returns a collection with other options, and no error.")
				return "", false
			}
			return r.done(r.receiver(sel) + ".With(" + r.callArgs(n, 0) + ")")
		},

		"Collection.InsertOne": write("InsertOne", 2), "Collection.InsertMany": (*rewriter).insertMany,
		"Collection.UpdateOne": write("UpdateOne", 3), "Collection.UpdateMany": write("UpdateMany", 3),
		"Collection.ReplaceOne": write("ReplaceOne", 3),
		"Collection.DeleteOne":  write("DeleteOne", 2), "Collection.DeleteMany": write("DeleteMany", 2),
		"Collection.BulkWrite": (*rewriter).bulkWrite,
		"Collection.UpdateByID": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			args := fmt.Sprintf("%s, %s.D{{Key: \"_id\", Value: %s}}, %s", r.text(n.Args[0]), r.use("allium/bson"),
				r.text(n.Args[1]), r.text(n.Args[2]))
			if o := r.options(n, 3); o != "" {
				args += ", " + o
			}
			return r.done(r.result(n, r.receiver(sel)+".UpdateOne("+args+")"))
		},
		"Collection.FindOne": single("FindOne", 2), "Collection.FindOneAndDelete": single("FindOneAndDelete", 2),
		"Collection.FindOneAndUpdate": single("FindOneAndUpdate", 3),
		"Collection.FindOneAndReplace": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			x := r.receiver(sel)
			return r.done(r.help("findOneAndReplace") + "(" + r.text(n.Args[0]) + ", " + x + ", " +
				strings.TrimPrefix(r.callArgs(n, 3), r.text(n.Args[0])+", ") + ")")
		},
		"Collection.Find": reads("Find", 2), "Collection.Aggregate": reads("Aggregate", 2),
		"Collection.CountDocuments":         on("CountDocuments", 2),
		"Collection.EstimatedDocumentCount": on("EstimatedDocumentCount", 1),
		"Collection.Distinct":               (*rewriter).distinct,
		"Collection.Indexes": func(r *rewriter, _ *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.done(r.receiver(sel)) // kept in a variable, which is the collection now
		},

		"IndexView.CreateOne": index("CreateIndex", 2), "IndexView.CreateMany": index("CreateIndexes", 2),
		"IndexView.DropOne": dropped("DropIndex", 2), "IndexView.DropAll": dropped("DropIndexes", 1),
		"IndexView.DropWithKey": dropped("DropIndex", 2),
		"IndexView.List": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			coll := r.indexedCollection(sel)
			return r.runCursor(n, 1, coll+".Database()", `bson.D{{Key: "listIndexes", Value: `+coll+`.Name()}}`)
		},

		"Cursor.Decode": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.done(r.clientBSON() + ".Unmarshal(" + r.receiver(sel) + ".Current(), " + r.text(n.Args[0]) + ")")
		},
		"ChangeStream.Decode": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			return r.done(r.clientBSON() + ".Unmarshal(" + r.receiver(sel) + ".Current().Raw, " + r.text(n.Args[0]) +
				")")
		},
		"Cursor.All": func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
			r.allAfterNext(n, sel)
			if t, ok := types.Unalias(r.info.TypeOf(n.Args[1])).(*types.Pointer); !ok || !isSlice(t.Elem()) {
				return r.done(r.help("allInto") + "(" + r.text(n.Args[0]) + ", " + r.receiver(sel) + ", " +
					r.text(n.Args[1]) + ")")
			}
			return r.done(r.help("all") + "(" + r.text(n.Args[0]) + ", " + r.receiver(sel) + ", " + r.text(n.Args[1]) +
				")")
		},

		"Session.EndSession": on("End", 1), "Session.WithTransaction": (*rewriter).transaction,
	}
	for name, before := range map[string]int{"StartTransaction": 0, "CommitTransaction": 1, "AbortTransaction": 1} {
		methods["Session."+name] = on(name, before)
	}
	methods["Session.AdvanceOperationTime"] = func(r *rewriter, n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		if _, alone := r.parents[n].(*ast.ExprStmt); !alone {
			r.leave(n, "AdvanceOperationTime returns no error.")
		}
		t := r.text(n.Args[0])
		if _, pointer := types.Unalias(r.info.TypeOf(n.Args[0])).(*types.Pointer); pointer {
			t = "*" + t
		}
		return r.done(r.receiver(sel) + ".AdvanceOperationTime(" + t + ")")
	}
}

// sessionOf rewrites a method of a SessionContext that is one of its session.
func (r *rewriter) sessionOf(n *ast.CallExpr, sel *ast.SelectorExpr, name string) (string, bool) {
	x := r.use("allium") + ".SessionFrom(" + r.receiver(sel) + ")"
	switch name {
	case "StartTransaction":
		return r.done(x + ".StartTransaction(" + r.callArgs(n, 0) + ")")
	case "CommitTransaction", "AbortTransaction":
		return r.done(x + "." + name + "(" + r.callArgs(n, 1) + ")")
	case "EndSession":
		return r.done(x + ".End(" + r.callArgs(n, 1) + ")")
	case "ID", "Client", "ClusterTime", "OperationTime", "AdvanceClusterTime":
		return r.done(x + "." + name + "(" + strings.Join(r.args(n), ", ") + ")")
	}
	r.leave(n, "The session is "+x+".")
	return "", false
}

func isSlice(t types.Type) bool {
	_, ok := t.Underlying().(*types.Slice)
	return ok
}

// watch rewrites Watch of a client or a database, whose events have documents of many collections.
func (r *rewriter) watch(n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
	args := r.text(n.Args[0]) + ", " + r.receiver(sel) + ", " + r.text(n.Args[1])
	if o := r.options(n, 2); o != "" {
		args += ", " + o
	}
	return r.done(r.use("allium") + ".Watch[" + r.use("allium/bson") + ".Raw](" + args + ")")
}

// runCursor returns a call of RunCursorCommand in place of an operation whose options it has not.
func (r *rewriter) runCursor(n *ast.CallExpr, before int, db, command string) (string, bool) {
	if len(n.Args) > before {
		r.leave(n, "The options of this operation are fields of the command now.")
	}
	r.use("allium/bson")
	return r.done(r.use("allium") + ".RunCursorCommand[bson.Raw](" + r.text(n.Args[0]) + ", " + db + ", " + command +
		")")
}

// nothing replaces a call that is not needed any more by one that does nothing.
func (r *rewriter) nothing(n *ast.CallExpr, _ *ast.SelectorExpr) (string, bool) {
	r.leave(n, "A client connects by itself: remove this call, or call Ping to wait for the deployment.")
	return r.help("connected") + "(" + strings.Join(r.args(n), ", ") + ")", true
}

func (r *rewriter) ping(n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
	args := r.text(n.Args[0])
	if len(n.Args) == 2 {
		switch text := r.raw(n.Args[1]); text {
		case "nil", "readpref.Primary()":
		default:
			args += ", " + r.use("allium") + ".PingOptions{ReadPreference: " + r.text(n.Args[1]) + "}"
		}
	}
	return r.done(r.receiver(sel) + ".Ping(" + args + ")")
}

// filtered is on for lists, whose filter is an option.
func filtered(name, opts string, n int) method {
	return func(r *rewriter, call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		args := r.text(call.Args[0])
		switch filter := r.text(call.Args[1]); {
		case filter == "nil", strings.HasSuffix(filter, "{}"):
			if o := r.options(call, 2); o != "" {
				args += ", " + o
			}
		default:
			if len(call.Args) > 2 {
				r.leave(call, "The filter is a field of the options.")
			}
			args += ", " + r.use("allium") + "." + opts + "{Filter: " + filter + "}"
		}
		return r.done(r.receiver(sel) + "." + name + "(" + args + ")")
	}
}

func (r *rewriter) insertMany(n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
	args := r.callArgs(n, 2)
	if t := r.info.TypeOf(n.Args[1]); t != nil && isSlice(t) {
		if elem, ok := t.Underlying().(*types.Slice).Elem().Underlying().(*types.Interface); !ok || !elem.Empty() {
			docs := r.help("anys") + "(" + r.text(n.Args[1]) + ")"
			args = r.text(n.Args[0]) + ", " + docs
			if o := r.options(n, 2); o != "" {
				args += ", " + o
			}
		}
	} else if t != nil {
		r.leave(n, "InsertMany takes a slice of the collection's type.")
	}
	return r.done(r.result(n, r.receiver(sel)+".InsertMany("+args+")"))
}

// distinct rewrites Distinct: version 1 returned the values, version 2 a result to decode.
func (r *rewriter) distinct(n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
	args := r.text(n.Args[0]) + ", " + r.receiver(sel) + ", " + r.text(n.Args[1]) + ", " + r.text(n.Args[2])
	if o := r.options(n, 3); o != "" {
		args += ", " + o
	}
	if _, name := r.officialType(n); name == "DistinctResult" {
		return r.done(r.help("values") + "(" + r.use("allium") + ".Distinct[" + r.use("allium/bson") + ".RawValue](" +
			args + "))")
	}
	return r.done(r.use("allium") + ".Distinct[any](" + args + ")")
}

// indexedCollection returns the collection of an operation on coll.Indexes(), or on a variable that
// held that.
func (r *rewriter) indexedCollection(sel *ast.SelectorExpr) string {
	if view, ok := sel.X.(*ast.CallExpr); ok {
		if of, ok := view.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Indexes" {
			return r.receiver(of)
		}
	}
	return r.receiver(sel)
}

// index rewrites a call on coll.Indexes().
func index(name string, n int) method {
	return func(r *rewriter, call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		return r.done(r.indexedCollection(sel) + "." + name + "(" + r.callArgs(call, n) + ")")
	}
}

// dropped is index for operations that returned the server's reply in version 1.
func dropped(name string, n int) method {
	return func(r *rewriter, call *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
		s, ok := index(name, n)(r, call, sel)
		if _, two := r.info.TypeOf(call).(*types.Tuple); ok && two && r.discarded(call) {
			if _, isAssign := r.parents[call].(*ast.AssignStmt); isAssign {
				return r.help("noReply") + "(" + s + ")", true
			}
		} else if ok && two {
			return r.help("noReply") + "(" + s + ")", true
		}
		return s, ok
	}
}

// transaction rewrites WithTransaction, whose function returns a value.
func (r *rewriter) transaction(n *ast.CallExpr, sel *ast.SelectorExpr) (string, bool) {
	args := r.text(n.Args[0]) + ", " + r.receiver(sel) + ", " + r.text(n.Args[1])
	if o := r.options(n, 2); o != "" {
		args += ", " + o
	}
	return r.done(r.help("transact") + "(" + args + ")")
}

// function rewrites a call of a function of a package.
func (r *rewriter) function(n *ast.CallExpr, pkg, name string) (string, bool) {
	short := pkg[strings.LastIndexByte(pkg, '/')+1:]
	if s, ok := r.model(n); ok {
		return s, true
	}
	if short == "options" {
		if t := constructed(name); t != nil {
			return r.done(r.optionsLiteral(t.Name(), nil))
		}
	}
	var args []string
	switch short {
	case "readpref", "writeconcern", "readconcern": // their arguments may become fields
	default:
		args = r.args(n)
	}
	switch short + "." + name {
	case "mongo.Connect", "mongo.NewClient":
		var opts []ast.Expr
		for _, a := range n.Args {
			if p, typ := r.officialType(a); p == "mongo/options" &&
				(typ == "ClientOptions" || typ == "ClientOptionsBuilder") {
				opts = append(opts, a)
			}
		}
		if len(opts) > 1 || n.Ellipsis.IsValid() {
			r.leave(n, "Options of a client are not merged: put all into one clientOptions. connect takes the first.")
		}
		if len(opts) == 1 && !r.onlyUse(n.Args) {
			if base, kind := r.chainBase(opts[0]); base != nil {
				if _, isCall := base.(*ast.CallExpr); isCall {
					fields, _ := r.chain(opts[0], kind)
					if s, ok := r.openCall(fields); ok {
						return r.done(s)
					}
				}
			}
		}
		var list []string
		for _, a := range opts {
			list = append(list, r.text(a))
		}
		if r.onlyUse(n.Args) {
			return r.done(r.help("connectContext") + "(" + strings.Join(append([]string{args[0]}, list...), ", ") + ")")
		}
		if n.Ellipsis.IsValid() && len(list) == 0 {
			list = append(list, args[len(args)-1]+"...")
		}
		return r.done(r.help("connect") + "(" + strings.Join(list, ", ") + ")")
	case "mongo.IsDuplicateKeyError":
		return r.done(r.use("errors") + ".Is(" + args[0] + ", " + r.use("allium/mongoerr") + ".ErrDuplicateKey)")
	case "mongo.IsNetworkError":
		return r.done(r.help("isNetworkError") + "(" + args[0] + ")")
	case "mongo.WithSession":
		return r.done(r.help("withSession") + "(" + strings.Join(args, ", ") + ")")
	case "readpref.Primary", "readpref.PrimaryPreferred", "readpref.Secondary", "readpref.SecondaryPreferred",
		"readpref.Nearest":
		if len(n.Args) == 0 {
			c := r.use("allium/consistency")
			return r.done("&" + c + ".ReadPreference{Mode: " + c + "." + name + "}")
		}
	case "writeconcern.Majority":
		return r.done(r.use("allium/consistency") + ".Majority()")
	case "writeconcern.Unacknowledged":
		return r.done(r.use("allium/consistency") + ".Unacknowledged()")
	case "writeconcern.W1":
		return r.done("&" + r.use("allium/consistency") + ".WriteConcern{W: 1}")
	case "writeconcern.Journaled":
		return r.done("&" + r.use("allium/consistency") + ".WriteConcern{Journal: new(true)}")
	case "writeconcern.New":
		var fields []string
		for _, a := range n.Args {
			c, ok := a.(*ast.CallExpr)
			if !ok {
				break
			}
			switch _, _, option := r.object(c.Fun); {
			case option == "WMajority":
				fields = append(fields, `W: "majority"`)
			case option == "W" && len(c.Args) == 1:
				fields = append(fields, "W: "+r.text(c.Args[0]))
			case option == "J" && len(c.Args) == 1:
				fields = append(fields, "Journal: new("+r.text(c.Args[0])+")")
			case option == "WTimeout" && len(c.Args) == 1:
				fields = append(fields, "Timeout: "+r.text(c.Args[0]))
			}
		}
		if len(fields) == len(n.Args) {
			return r.done("&" + r.use("allium/consistency") + ".WriteConcern{" + strings.Join(fields, ", ") + "}")
		}
	case "readconcern.Majority", "readconcern.Local", "readconcern.Available", "readconcern.Linearizable",
		"readconcern.Snapshot":
		c := r.use("allium/consistency")
		return r.done("&" + c + ".ReadConcern{Level: " + c + ".Read" + name + "}")
	}
	if _, ok := names[short+"."+name]; ok {
		return "", false // the name is rewritten, and the arguments are
	}
	return "", false
}

// openCall returns a call of Open for options that begin with a connection string.
func (r *rewriter) openCall(fields []string) (string, bool) {
	uri, rest := "", []string{}
	for _, f := range fields {
		if value, ok := strings.CutPrefix(f, "URI: "); ok {
			uri = value
			continue
		}
		rest = append(rest, f)
	}
	if uri == "" {
		uri = `"mongodb://localhost:27017"`
	}
	rest = append(rest, "BSON: &"+r.clientBSON())
	return r.use("allium") + ".Open(" + uri + ", " + r.use("allium") + ".ClientOptions{" + strings.Join(rest, ", ") +
		"})", true
}

// containerEnd rewrites the end of a container with MongoDB, which the package for all containers
// has.
func (r *rewriter) containerEnd(n *ast.CallExpr) (string, bool) {
	sel, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || len(n.Args) == 0 || typeName(r.info.TypeOf(n.Args[len(n.Args)-1])) != "MongoDBContainer" {
		return "", false
	}
	switch container := r.text(n.Args[len(n.Args)-1]); sel.Sel.Name {
	case "CleanupContainer":
		return r.done(r.text(n.Args[0]) + ".Cleanup(" + container + ".Stop)")
	case "TerminateContainer":
		return r.done("func() error { " + container + ".Stop(); return nil }()")
	}
	return "", false
}

// container rewrites MongoDB in a container.
func (r *rewriter) container(n *ast.CallExpr, recv, name string) (string, bool) {
	switch {
	case recv == "" && (name == "Run" || name == "RunContainer"):
		return r.done(r.use("allium/mongotest") + ".Open()")
	case recv == "" && name == "WithReplicaSet":
		return "", false
	case recv == "MongoDBContainer" && name == "ConnectionString":
		sel := n.Fun.(*ast.SelectorExpr)
		return r.done(r.receiver(sel) + ".URI(), error(nil)")
	}
	return "", false
}
