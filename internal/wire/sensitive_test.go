package wire

import (
	"testing"

	"allium/bson"
)

// TestSensitive tries every command with credentials alone and in everything that can hold it, and
// the like without credentials.
func TestSensitive(t *testing.T) {
	secret := []bson.D{
		{{Key: "authenticate", Value: 1}}, {{Key: "saslStart", Value: 1}}, {{Key: "saslContinue", Value: 1}}, {{Key: "getnonce", Value: 1}},
		{{Key: "createUser", Value: "u"}}, {{Key: "updateUser", Value: "u"}}, {{Key: "CreateUser", Value: "u"}},
		{{Key: "copydbgetnonce", Value: 1}}, {{Key: "copydbSaslStart", Value: 1}}, {{Key: "copydb", Value: 1}},
		{{Key: "hello", Value: 1}, {Key: "speculativeAuthenticate", Value: bson.D{{Key: "saslStart", Value: 1}}}},
		{{Key: "isMaster", Value: 1}, {Key: "speculativeAuthenticate", Value: bson.D{}}},
		{{Key: "future", Value: "u"}, {Key: "pwd", Value: "p"}},
		{{Key: "usersInfo", Value: "u"}, {Key: "showCredentials", Value: true}},
		{{Key: "usersInfo", Value: bson.D{{Key: "user", Value: "u"}}}, {Key: "showCredentials", Value: true}},
	}
	open := []bson.D{
		{}, {{Key: "hello", Value: 1}}, {{Key: "find", Value: "createUser"}, {Key: "filter", Value: bson.D{{Key: "pwd", Value: 1}}}},
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "createUser", Value: 1}, {Key: "pwd", Value: 1}}}}},
		{{Key: "usersInfo", Value: 1}}, {{Key: "usersInfo", Value: bson.D{{Key: "user", Value: "u"}}}}, {{Key: "dropUser", Value: "u"}},
		{{Key: "ping", Value: 1}, {Key: "comment", Value: bson.D{{Key: "createUser", Value: 1}}}},
	}
	holders := map[string]func(cmd any) bson.D{
		"alone": func(cmd any) bson.D { return cmd.(bson.D) },
		"explain": func(cmd any) bson.D {
			return bson.D{{Key: "explain", Value: cmd}, {Key: "verbosity", Value: "queryPlanner"}}
		},
		"twice": func(cmd any) bson.D { return bson.D{{Key: "explain", Value: bson.D{{Key: "explain", Value: cmd}}}} },
		"$query": func(cmd any) bson.D {
			return bson.D{{Key: "$query", Value: cmd}, {Key: "$readPreference", Value: bson.D{}}}
		},
		"unknown": func(cmd any) bson.D { return bson.D{{Key: "future", Value: cmd}} },
		"array": func(cmd any) bson.D {
			return bson.D{{Key: "future", Value: bson.A{bson.D{{Key: "ping", Value: 1}}, cmd}}}
		},
		"applyOps": func(cmd any) bson.D {
			return bson.D{{Key: "applyOps", Value: bson.A{bson.D{{Key: "op", Value: "c"}, {Key: "ns", Value: "admin.$cmd"}, {Key: "o", Value: cmd}}}}}
		},
	}
	for name, holder := range holders {
		for want, list := range map[bool][]bson.D{true: secret, false: open} {
			for _, cmd := range list {
				raw, err := bson.Marshal(holder(cmd))
				if err != nil {
					t.Fatal(err)
				}
				if got := Sensitive(raw); got != want {
					t.Errorf("%s: Sensitive(%s) is %v", name, bson.Raw(raw), got)
				}
			}
		}
	}
}
