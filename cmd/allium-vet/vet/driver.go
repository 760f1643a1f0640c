package vet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

const module = "allium" //rename:module

// official is what the paths of the official driver begin with, in both versions.
const official = "go.mongodb.org/mongo-driver"

// isDriver reports whether the package is one of a driver's that programs use.
func isDriver(p *types.Package) bool {
	if p == nil {
		return false
	}
	path := p.Path()
	switch path {
	case module, module + "/gridfs", module + "/mongoerr", module + "/field/typed", module + "/encryption",
		module + "/auth":
		return true
	}
	return strings.HasPrefix(path, official+"/mongo") || strings.HasPrefix(path, official+"/v2/mongo")
}

// imports reports whether the package uses a driver.
func imports(p *types.Package) bool {
	for _, i := range p.Imports() {
		if isDriver(i) || isBSON(i) {
			return true
		}
	}
	return false
}

// isBSON reports whether the package has the types of documents.
func isBSON(p *types.Package) bool {
	if p == nil {
		return false
	}
	switch p.Path() {
	case module + "/bson", official + "/bson", official + "/bson/primitive", official + "/v2/bson":
		return true
	}
	return false
}

// role is what an argument means.
type role uint8

const (
	filterRole role = iota + 1
	updateRole
	replacementRole
	pipelineRole
	streamRole // the pipeline of a change stream
	sortRole
	keysRole
	hintRole
	commandRole
	arrayFiltersRole
)

var roleNames = [...]string{
	filterRole: "filter", updateRole: "update", replacementRole: "replacement", pipelineRole: "pipeline",
	streamRole: "pipeline",
	sortRole:   "a sort", keysRole: "index keys", hintRole: "a hint", commandRole: "a command",
	arrayFiltersRole: "array filters",
}

func (r role) String() string { return roleNames[r] }

type positions map[int]role

// arguments are the roles of the arguments of methods, by their receiver's type and name, and of
// functions, whose receiver is empty. The drivers agree on them.
var arguments = map[string]map[string]positions{
	"Collection": {
		"All": {1: filterRole}, "Query": {1: filterRole},
		"Find": {1: filterRole}, "FindOne": {1: filterRole}, "Count": {1: filterRole},
		"CountDocuments": {1: filterRole}, "Distinct": {2: filterRole},
		"DeleteOne": {1: filterRole}, "DeleteMany": {1: filterRole}, "FindOneAndDelete": {1: filterRole},
		"UpdateOne": {1: filterRole, 2: updateRole}, "UpdateMany": {1: filterRole, 2: updateRole},
		"UpdateByID":        {2: updateRole},
		"FindOneAndUpdate":  {1: filterRole, 2: updateRole},
		"ReplaceOne":        {1: filterRole, 2: replacementRole},
		"FindOneAndReplace": {1: filterRole, 2: replacementRole},
		"Aggregate":         {1: pipelineRole}, "Watch": {1: streamRole},
		"DeleteOneModel": {0: filterRole}, "DeleteManyModel": {0: filterRole},
		"UpdateOneModel": {0: filterRole, 1: updateRole}, "UpdateManyModel": {0: filterRole, 1: updateRole},
		"ReplaceOneModel": {0: filterRole, 1: replacementRole},
	},
	"Database": {
		"Aggregate": {1: pipelineRole}, "Watch": {1: streamRole}, "RunCommand": {1: commandRole},
		"RunCommandCursor": {1: commandRole},
		"CreateView":       {3: pipelineRole},
	},
	"Client": {"Watch": {1: streamRole}},
	"Bucket": {"Find": {1: filterRole}},
	"": {
		"Aggregate": {2: pipelineRole}, "Watch": {2: streamRole}, "Distinct": {3: filterRole},
		"RunCursorCommand": {2: commandRole},
	},
}

// fields are the roles of the fields of a driver's structs (options, models) by name, and, with
// "Set" before it, of their setters. The methods of the official driver's builders are setters.
var fields = map[string]role{
	"Sort": sortRole, "Hint": hintRole, "Keys": keysRole, "Filter": filterRole, "Update": updateRole,
	"Replacement":  replacementRole,
	"ArrayFilters": arrayFiltersRole, "Pipeline": pipelineRole, "Validator": filterRole, "PartialFilter": filterRole,
	"PartialFilterExpression": filterRole,
}

// receivers maps the types that have operations to their row in arguments.
var receivers = map[string]string{
	"Collection": "Collection", "UntypedCollection": "Collection", "Database": "Database", "Client": "Client",
	"Bucket": "Bucket", "GridFSBucket": "Bucket", "IndexView": "IndexView", "SearchIndexView": "SearchIndexView",
}

// method is a driver's function or method that a call names.
type method struct {
	fn   *types.Func
	recv string // the receiver's type, "" for a function
	name string
}

// callee returns what a call calls, if that is a driver's.
func callee(info *types.Info, call *ast.CallExpr) (method, bool) {
	fn, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || !isDriver(fn.Pkg()) {
		return method{}, false
	}
	return method{fn, receiver(fn), fn.Name()}, true
}

// receiver returns the name of the type whose method fn is, "" if it is none.
func receiver(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	if n := named(recv.Type()); n != nil {
		return n.Obj().Name()
	}
	return ""
}

// named returns the named type that t is, or points to.
func named(t types.Type) *types.Named {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, _ := t.(*types.Named)
	return n
}

// isOperation reports whether the call goes to a server with the context of its first argument,
// with the session that is in it.
func (m method) isOperation() bool {
	params := m.fn.Signature().Params()
	if params.Len() == 0 || !isContext(params.At(0).Type()) {
		return false
	}
	switch m.recv {
	case "":
		return m.name == "Aggregate" || m.name == "Distinct" || m.name == "Watch" || m.name == "RunCursorCommand" ||
			m.name == "Save"
	case "Client":
		return m.name == "BulkWrite" || m.name == "Watch" || m.name == "ListDatabases" || m.name == "ListDatabaseNames"
	}
	return receivers[m.recv] != ""
}

// inTransactions reports whether the operation can be a part of a transaction: servers refuse Drop,
// Watch and others there.
func (m method) inTransactions() bool {
	for _, begins := range []string{"Find", "Insert", "Update", "Replace", "Delete"} {
		if strings.HasPrefix(m.name, begins) {
			return true
		}
	}
	switch m.name {
	case "Aggregate", "All", "BulkWrite", "CountDocuments", "Distinct", "Query", "Save":
		return true
	}
	return false
}

// opensClient reports whether the call makes a client.
func (m method) opensClient() bool {
	path := m.fn.Pkg().Path()
	return m.recv == "" && (path == module && m.name == "Open" ||
		path != module && (m.name == "Connect" || m.name == "NewClient"))
}

// transaction returns the index of the function that a call runs in a transaction or with a
// session, and whether there is one.
func (m method) transaction() (fn int, ok bool) {
	switch m.recv + "." + m.name {
	case "Client.Transact", "Session.Transact", "Session.WithTransaction", "sessionImpl.WithTransaction",
		"Client.UseSession":
		return 1, true
	case "Client.UseSessionWithOptions", ".WithSession":
		return 2, true
	}
	return 0, false
}

func isContext(t types.Type) bool {
	n := named(t)
	if n == nil || n.Obj().Pkg() == nil {
		return false
	}
	switch n.Obj().Pkg().Path() + "." + n.Obj().Name() {
	case "context.Context", official + "/mongo.SessionContext":
		return true
	}
	return false
}
