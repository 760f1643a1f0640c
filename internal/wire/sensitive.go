package wire

import (
	"strings"

	"allium/bson"
)

// Sensitive reports whether a command carries credentials, or its reply does, so that events, logs
// and traces must not show them (specification: Command Logging and Monitoring, "Security"). Of a
// command that holds others, as explain and applyOps do, those decide.
func Sensitive(body bson.Raw) bool {
	name, v, ok := first(body)
	if !ok {
		return false
	}
	switch strings.ToLower(name) {
	case "authenticate", "saslstart", "saslcontinue", "getnonce", "createuser", "updateuser",
		"copydbgetnonce", "copydbsaslstart", "copydb":
		return true
	case "hello", "ismaster":
		return !body.Lookup("speculativeAuthenticate").IsZero()
	case "usersinfo":
		return body.Lookup("showCredentials").AsBool()
	}
	if !body.Lookup("pwd").IsZero() {
		return true
	}
	if inner, ok := v.Document(); ok {
		return Sensitive(inner)
	}
	list, _ := v.Array()
	for v := range list.Values() {
		inner, _ := v.Document()
		op, _ := inner.Lookup("o").Document() // of an entry of the oplog
		if Sensitive(inner) || Sensitive(op) {
			return true
		}
	}
	return false
}

// first returns the first element of a document.
func first(doc bson.Raw) (string, bson.RawValue, bool) {
	for key, v := range doc.All() {
		return key, v, true
	}
	return "", bson.RawValue{}, false
}
