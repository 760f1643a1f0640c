package mongotest_test

import (
	"net/url"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// Users log in from where their restrictions, and those of their roles, allow it.
func TestAuthenticationRestrictions(t *testing.T) {
	for name, o := range map[string][]mongotest.Option{
		"standalone 4.4": {mongotest.Standalone(), mongotest.Version("4.4")},
		"replica set":    {mongotest.ReplicaSet(1)},
		"sharded":        {mongotest.Sharded(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			testRestrictions(t, mongotest.Start(t, append(o, mongotest.Auth("root", "secret"))...))
		})
	}
}

func testRestrictions(t *testing.T, d *mongotest.Deployment) {
	connect := func(user, password, db string) *allium.Client {
		u, err := url.Parse(d.URI())
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(user, password)
		u.RawQuery = url.Values{"authSource": {db}, "replicaSet": u.Query()["replicaSet"]}.Encode()
		c, err := allium.Open(u.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(t.Context()) })
		return c
	}
	root := connect("root", "secret", "admin").Database("t")
	command := func(text string) bson.Raw {
		t.Helper()
		reply, err := root.RunCommand(t.Context(), extJSON(t, text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return reply
	}
	logsIn := func(user string) bool {
		t.Helper()
		_, err := connect(user, "p", "t").Database("t").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
		if err != nil && !strings.Contains(err.Error(), "AuthenticationFailed (18)") {
			t.Fatal(err)
		}
		return err == nil
	}
	command(`{"createRole": "near", "privileges": [], "roles": [], "authenticationRestrictions": [{"clientSource": ["127.0.0.0/8"]}]}`)
	command(`{"createRole": "far", "privileges": [], "roles": [], "authenticationRestrictions": [{"clientSource": ["192.0.2.1"]}, {"serverAddress": ["192.0.2.2"]}]}`)
	command(`{"createRole": "heir", "privileges": [], "roles": ["far", "read"]}`)
	for restrictions, want := range map[string]bool{
		``:                                true,
		`{}`:                              true,
		`{"clientSource": ["127.0.0.1"]}`: true,
		`{"clientSource": "127.0.0.1"}`:   true,
		`{"clientSource": ["::ffff:127.0.0.0/104"]}`:                        true,
		`{"clientSource": ["192.0.2.0/24", "127.0.0.0/8"]}`:                 true,
		`{"clientSource": ["192.0.2.0/24"]}`:                                false,
		`{"clientSource": ["::1"]}`:                                         false,
		`{"clientSource": []}`:                                              false,
		`{"serverAddress": ["127.0.0.1"]}`:                                  true,
		`{"serverAddress": ["192.0.2.1"]}`:                                  false,
		`{"clientSource": ["127.0.0.1"], "serverAddress": ["192.0.2.1"]}`:   false,
		`{"clientSource": ["192.0.2.1"]}, {"serverAddress": ["127.0.0.1"]}`: true,
		`{"clientSource": ["127.0.0.1", "nowhere"]}`:                        false,
	} {
		command(`{"createUser": "u", "pwd": "p", "roles": ["near"], "authenticationRestrictions": [` + restrictions + `]}`)
		if got := logsIn("u"); got != want {
			t.Errorf("[%s] lets in: %t", restrictions, got)
		}
		command(`{"dropUser": "u"}`)
	}
	command(`{"createUser": "u", "pwd": "p", "roles": ["heir"], "authenticationRestrictions": [{"clientSource": ["127.0.0.1"]}]}`)
	if logsIn("u") {
		t.Error("an inherited role lets in")
	}
	expect := func(cmd, list, want string, path ...string) {
		t.Helper()
		v := command(cmd).Lookup(append([]string{list, "0"}, path...)...)
		got := ""
		if !v.IsZero() {
			text, err := bson.AppendExtJSONValue(nil, v, false)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if got != want {
			t.Errorf("%s: %v is %s, want %s", cmd, path, got, want)
		}
	}
	const own, inherited = "authenticationRestrictions", "inheritedAuthenticationRestrictions"
	const far = `[{"clientSource":["192.0.2.1"]},{"serverAddress":["192.0.2.2"]}]`
	expect(`{"usersInfo": "u"}`, "users", "", own)
	expect(`{"usersInfo": "u"}`, "users", "", inherited)
	expect(`{"usersInfo": "u", "showPrivileges": true}`, "users", "", own)
	expect(`{"usersInfo": "u", "showPrivileges": true}`, "users", "["+far+"]", inherited)
	expect(`{"usersInfo": "u", "showAuthenticationRestrictions": true}`, "users", `[{"clientSource":["127.0.0.1"]}]`, own)
	expect(`{"usersInfo": "u", "showAuthenticationRestrictions": true}`, "users", "["+far+"]", inherited)
	expect(`{"rolesInfo": "far"}`, "roles", "", own)
	expect(`{"rolesInfo": "far", "showPrivileges": true}`, "roles", "", inherited)
	expect(`{"rolesInfo": "far", "showAuthenticationRestrictions": true}`, "roles", "["+far+"]", own)
	expect(`{"rolesInfo": "far", "showAuthenticationRestrictions": true}`, "roles", "["+far+"]", inherited)
	expect(`{"rolesInfo": "heir", "showAuthenticationRestrictions": true}`, "roles", "[]", own)
	expect(`{"rolesInfo": "heir", "showAuthenticationRestrictions": true}`, "roles", "["+far+"]", inherited)

	command(`{"revokeRolesFromUser": "u", "roles": ["heir"]}`)
	if !logsIn("u") {
		t.Error("without the role, u stays out")
	}
	command(`{"updateUser": "u", "authenticationRestrictions": [{"clientSource": ["192.0.2.1"]}]}`)
	if logsIn("u") {
		t.Error("updateUser changes nothing")
	}
	command(`{"updateUser": "u", "authenticationRestrictions": [], "roles": ["heir"]}`)
	command(`{"updateRole": "far", "authenticationRestrictions": []}`)
	if !logsIn("u") {
		t.Error("without restrictions, u stays out")
	}
	expect(`{"usersInfo": "u", "showAuthenticationRestrictions": true}`, "users", "", own)
	for text, want := range map[string]string{
		`[{"clientSource": [1]}]`: ".clientSource.0' is the wrong type 'int', expected type 'string'",
		`[{"clientSource": 1}]`:   ".clientSource' is the wrong type 'int', expected types '[array, string]'",
		`[{"x": "127.0.0.1"}]`:    ".x' is an unknown field.",
	} {
		_, err := root.RunCommand(t.Context(), extJSON(t, `{"updateUser": "u", "authenticationRestrictions": `+text+`}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
