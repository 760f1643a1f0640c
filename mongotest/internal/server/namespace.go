package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// isGeneric reports whether every command takes this argument; the dispatcher has looked at it.
func isGeneric(field string) bool {
	switch field {
	case "$db", "lsid", "$clusterTime", "$readPreference", "txnNumber", "autocommit", "startTransaction", "readConcern", "writeConcern",
		"maxTimeMS", "comment", "apiVersion", "apiStrict", "apiDeprecationErrors", "$queryOptions", "shardVersion", "databaseVersion",
		"$client", "$audit", "$configServerState", "$gleStats", "$oplogQueryData", "coordinator", "help", "tracking_info",
		"allowImplicitCollectionCreation", "$replData", "$topologyTime", "$configTime", "clientOperationKey", "serialization_context",
		"maxTimeMSOpOnly", "mayBypassWriteBlocking", "rawData", "requestGossipRoutingCache", "isClusterQueryWithoutShardKeyCmd":
		return true
	}
	return false
}

// collection returns the command's collection as "db.name". code is that of the error for a name that is no string.
func (r *Request) collection(code int32) (ns string, err error) {
	v := r.Arg()
	if v.Type != bson.TypeString && v.Type != bson.TypeSymbol {
		return "", srverr.New(code, "collection name has invalid type %s", bsontext.TypeName(v.Type))
	}
	name := string(v.Value[4 : len(v.Value)-1])
	ns = r.DB + "." + name
	return ns, checkCollectionName(r.DB, name)
}

// checkCollectionName checks a namespace as every command on a collection does.
func checkCollectionName(db, name string) error {
	if err := checkDBName(db); err != nil {
		return err
	}
	switch {
	case name == "" || name[0] == '.' || strings.IndexByte(name, 0) >= 0:
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s.%s'", db, name)
	case strings.IndexByte(name, '$') >= 0 && !strings.HasPrefix(name, "$cmd") && name != "oplog.$main":
		return srverr.New(srverr.InvalidNamespace, "Invalid collection name specified '%s.%s", db, name)
	}
	return nil
}

// namespace joins the names.
func namespace(db, coll string) string { return db + "." + coll }

// splitNS is the reverse of namespace.
func splitNS(ns string) (db, coll string) {
	db, coll, _ = strings.Cut(ns, ".")
	return db, coll
}

// Checks of arguments as the server's generated parsers make them. field is the full name, "insert.ordered".

// boolArg takes a boolean only, or any number as well if loose.
func boolArg(field string, v bson.RawValue, loose bool) (bool, error) {
	if v.Type == bson.TypeBoolean {
		return v.AsBool(), nil
	}
	if !loose {
		return false, wrongType(field, v.Type, "bool")
	}
	if !v.IsNumber() {
		return false, wrongTypes(field, v.Type, "[bool, long, int, decimal, double']")
	}
	return v.AsBool(), nil
}

func wrongTypes(field string, got bson.Type, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '%s", field, bsontext.TypeName(got), want)
}

// objectArg takes a document.
func objectArg(field string, v bson.RawValue) (bson.Raw, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, wrongType(field, v.Type, "object")
	}
	return v.Value, nil
}

// stringArg takes a string.
func stringArg(field string, v bson.RawValue) (string, error) {
	s, ok := v.StringValue()
	if !ok {
		return "", wrongType(field, v.Type, "string")
	}
	return s, nil
}

// arrayArg takes an array.
func arrayArg(field string, v bson.RawValue) (bson.Raw, error) {
	if v.Type != bson.TypeArray {
		return nil, wrongType(field, v.Type, "array")
	}
	return v.Value, nil
}

// numberArg takes any number, cut to an int64.
func numberArg(field string, v bson.RawValue) (int64, error) {
	if !v.IsNumber() {
		return 0, wrongTypes(field, v.Type, "[long, int, decimal, double']")
	}
	n, _ := number(v)
	return n, nil
}

// documentList returns the documents of an array argument.
func documentList(field string, v bson.RawValue) ([]bson.Raw, error) {
	array, err := arrayArg(field, v)
	if err != nil {
		return nil, err
	}
	var list []bson.Raw
	for k, e := range array.All() {
		doc, ok := e.Document()
		if !ok {
			return nil, wrongType(field+"."+k, e.Type, "object")
		}
		list = append(list, doc)
	}
	return list, nil
}
