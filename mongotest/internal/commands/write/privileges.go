package write

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
)

// What the commands need depends on their statements, wherever these are: in the body or in a
// document sequence.

func needsOfInsert(r *server.Request, body bson.Raw) []account.Need {
	return r.OnTarget(body, server.Bypassing(body, "insert")...)
}

func needsOfUpdate(r *server.Request, body bson.Raw) []account.Need {
	actions := server.Bypassing(body, "update")
	for op := range r.Documents(body, "updates") {
		if op.Lookup("upsert").AsBool() {
			actions = append(actions, "insert")
			break
		}
	}
	return r.OnTarget(body, actions...)
}

func needsOfFindAndModify(r *server.Request, body bson.Raw) []account.Need {
	if body.Lookup("remove").AsBool() {
		return r.OnTarget(body, "find", "remove")
	}
	actions := server.Bypassing(body, "find", "update")
	if body.Lookup("upsert").AsBool() {
		actions = append(actions, "insert")
	}
	return r.OnTarget(body, actions...)
}

func needsOfBulkWrite(r *server.Request, body bson.Raw) []account.Need {
	var namespaces []string
	for doc := range r.Documents(body, "nsInfo") {
		namespaces = append(namespaces, bsondoc.MustString(doc.Lookup("ns")))
	}
	var list []account.Need
	for op := range r.Documents(body, "ops") {
		kind, v := bsondoc.FirstElement(op)
		i, ok := v.AsInt64()
		if !ok || i < 0 || i >= int64(len(namespaces)) {
			continue // the command is refused for that
		}
		actions := map[string][]string{"insert": {"insert"}, "update": {"update"}, "delete": {"remove"}}[kind]
		if kind == "update" && op.Lookup("upsert").AsBool() {
			actions = append(actions, "insert")
		}
		for _, need := range server.Privileges(namespaces[i], server.Bypassing(body, actions...)...) {
			if !slices.Contains(list, need) {
				list = append(list, need)
			}
		}
	}
	return list
}
