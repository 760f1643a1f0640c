package mongotest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// dialAs returns a connection that has authenticated as a user on $external.
func dialAs(t *testing.T, d *mongotest.Deployment, user string) net.Conn {
	t.Helper()
	c := dial(t, d.Hosts()[0])
	ok(t, run(t, c, bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "PLAIN"}, {Key: "payload", Value: bson.Binary{Data: []byte("\x00" + user + "\x00pw")}}, {Key: "$db", Value: "$external"}}))
	return c
}

// lsid is a session's id in a command.
func lsid(n int) string {
	return fmt.Sprintf(`, "lsid": {"id": {"$binary": {"base64": "%s", "subType": "04"}}}`, base64.StdEncoding.EncodeToString(append(make([]byte, 15), byte(n))))
}

// openCursor returns the id of a new cursor with documents left.
func openCursor(t *testing.T, c net.Conn, session string) int64 {
	t.Helper()
	id, _ := ok(t, command(t, c, extJSON(t, `{"find": "c", "batchSize": 1, "$db": "t"`+session+`}`))).Lookup("cursor", "id").Int64()
	if id == 0 {
		t.Fatal("no cursor")
	}
	return id
}

// refusal is the code and text of a reply that is an error; 0 if it is none.
func refusal(reply bson.Raw) (int64, string) {
	code, _ := reply.Lookup("code").AsInt64()
	text, _ := reply.Lookup("errmsg").StringValue()
	return code, text
}

// usersDeployment has a collection, the users s1 and s2 who may do everything, and low, who may
// read.
func usersDeployment(t *testing.T, opts ...mongotest.Option) *mongotest.Deployment {
	t.Helper()
	d := mongotest.Start(t, append(opts, mongotest.Auth("root", "secret"))...)
	for user, role := range map[string]string{"s1": "root", "s2": "root", "low": "readWriteAnyDatabase"} {
		if err := d.AddUser(mongotest.User{Name: user, Password: "pw", DB: "$external", Roles: []string{role}}); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, command(t, dialAs(t, d, "s1"), extJSON(t, `{"insert": "c", "documents": [{}, {}, {}, {}], "$db": "t"}`)))
	return d
}

// A cursor is its user's, and its session's.
func TestCursorsOfOthers(t *testing.T) {
	for _, version := range []string{"4.4", "5.0", "7.0", "8.0"} {
		for name, kind := range map[string][]mongotest.Option{"standalone": nil, "sharded": {mongotest.Sharded(1, 1)}} {
			t.Run(version+" "+name, func(t *testing.T) {
				d := usersDeployment(t, append(kind, mongotest.Version(version))...)
				s1, s2, low := dialAs(t, d, "s1"), dialAs(t, d, "s2"), dialAs(t, d, "low")
				more := func(c net.Conn, id int64, session string) (int64, string) {
					return refusal(command(t, c, extJSON(t, fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": "c", "batchSize": 1, "$db": "t"%s}`, id, session))))
				}
				kill := func(c net.Conn, id int64) (int64, string) {
					return refusal(command(t, c, extJSON(t, fmt.Sprintf(`{"killCursors": "c", "cursors": [{"$numberLong": "%d"}], "$db": "t"}`, id))))
				}
				for _, session := range []string{"", lsid(1)} {
					id := openCursor(t, s1, session)
					// The same session of another user is another session.
					want := fmt.Sprintf("cursor id %d was not created by the authenticated user", id)
					if session != "" {
						want = "Cursor session id (00000000-0000-0000-0000-000000000001 - "
					}
					if code, text := more(s2, id, session); code != 13 || !strings.HasPrefix(text, want) {
						t.Errorf("another user: %d %s", code, text)
					}
					if code, _ := kill(low, id); code != 13 {
						t.Errorf("another user kills it: %d", code)
					}
					if code, text := more(s1, id, session); code != 0 {
						t.Errorf("its own user: %d %s", code, text)
					}
					if code, text := kill(s2, id); code != 0 {
						t.Errorf("a user who may kill any: %d %s", code, text)
					}
					if code, _ := more(s1, id, session); code != 43 {
						t.Errorf("after it was killed: %d", code)
					}
				}
				id := openCursor(t, low, "")
				if code, text := kill(low, id); code != 0 {
					t.Errorf("its own user kills it: %d %s", code, text)
				}
				id = openCursor(t, s1, lsid(1))
				for _, session := range []string{"", lsid(2)} {
					code, text := more(s1, id, session)
					own := "(none)"
					if session != "" {
						own = "(00000000-0000-0000-0000-000000000002 - "
					}
					if code != 13 || !strings.HasPrefix(text, "Cursor session id (00000000-0000-0000-0000-000000000001 - ") || !strings.Contains(text, ") is not the same as the operation context's session id "+own) {
						t.Errorf("in session %q: %d %s", session, code, text)
					}
				}
			})
		}
	}
}

// Where nobody logs in, the texts about sessions are those of the versions before.
func TestCursorsOfSessions(t *testing.T) {
	for _, version := range []string{"4.4", "7.0"} {
		d := mongotest.Start(t, mongotest.Version(version))
		c := dial(t, d.Hosts()[0])
		ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{}, {}, {}, {}], "$db": "t"}`)))
		id := openCursor(t, c, lsid(1))
		for session, want := range map[string]int64{"": 50737, lsid(2): 50738} {
			if code, text := refusal(command(t, c, extJSON(t, fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": "c", "$db": "t"%s}`, id, session)))); code != want {
				t.Errorf("%s: %d %s, want %d", version, code, text, want)
			}
		}
	}
}

// Whose sessions end.
func TestKilledSessions(t *testing.T) {
	d := usersDeployment(t)
	digest := func(user string) string {
		sum := sha256.Sum256([]byte(user + "@$external"))
		return `{"$binary": {"base64": "` + base64.StdEncoding.EncodeToString(sum[:]) + `", "subType": "00"}}`
	}
	s1, s2 := dialAs(t, d, "s1"), dialAs(t, d, "s2")
	for _, c := range []struct {
		by     net.Conn
		cmd    string
		s1, s2 bool // are ended
	}{
		{s2, `{"killSessions": []}`, false, true},
		{s1, `{"killSessions": []}`, true, false},
		{s2, `{"killSessions": [` + lsid(1)[len(`, "lsid": `):] + `]}`, false, true}, // of the same id, but s2's
		{s1, `{"killAllSessions": [{"user": "s1", "db": "$external"}]}`, true, false},
		{s1, `{"killAllSessions": [{"user": "s2", "db": "$external"}]}`, false, true},
		{s1, `{"killAllSessions": [{"user": "nobody", "db": "$external"}]}`, false, false},
		{s1, `{"killAllSessions": [{"user": "s1", "db": "other"}]}`, false, false},
		{s1, `{"killAllSessions": [{"user": "s1", "db": "$external"}, {"user": "s2", "db": "$external"}]}`, true, true},
		{s1, `{"killAllSessions": []}`, true, true},
		{s1, `{"killAllSessionsByPattern": []}`, true, true},
		{s1, `{"killAllSessionsByPattern": [{}]}`, true, true},
		{s1, `{"killAllSessionsByPattern": [{"uid": ` + digest("s2") + `}]}`, false, true},
		{s1, `{"killAllSessionsByPattern": [{"uid": ` + digest("s2") + `}, {"uid": ` + digest("s1") + `}]}`, true, true},
		{s1, `{"killAllSessionsByPattern": [{"users": [{"user": "s1", "db": "$external"}]}]}`, true, true},
		{s1, `{"killAllSessionsByPattern": [{"roles": [{"role": "root", "db": "admin"}], "uid": ` + digest("s1") + `}]}`, true, false},
	} {
		cursors := map[net.Conn]int64{s1: openCursor(t, s1, lsid(1)), s2: openCursor(t, s2, lsid(1))}
		ok(t, command(t, c.by, extJSON(t, c.cmd[:len(c.cmd)-1]+`, "$db": "admin"}`)))
		for conn, ended := range map[net.Conn]bool{s1: c.s1, s2: c.s2} {
			code, _ := refusal(command(t, conn, extJSON(t, fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": "c", "$db": "t"%s}`, cursors[conn], lsid(1)))))
			if got := code == 43; got != ended {
				t.Errorf("%s: the session of s1: %v, is ended: %v", c.cmd, conn == s1, got)
			}
		}
	}
}

// What commands about sessions take.
func TestKilledSessionsArguments(t *testing.T) {
	const name = "BSON field 'KillAllSessionsByPatternCmd.killAllSessionsByPattern."
	for _, version := range []string{"4.4", "7.0"} {
		d := mongotest.Start(t, mongotest.Version(version))
		c := dial(t, d.Hosts()[0])
		for _, test := range []struct {
			pattern string
			code    int64
			text    string
		}{
			{`{"users": ["x"]}`, 14, name + "users.0' is the wrong type 'string', expected type 'object'"},
			{`{"users": [{"user": "a"}]}`, 40414, name + "users.db' is missing but a required field"},
			{`{"users": [{"db": "a"}]}`, 40414, name + "users.user' is missing but a required field"},
			{`{"users": [{"user": 1, "db": "a"}]}`, 14, name + "users.user' is the wrong type 'int', expected type 'string'"},
			{`{"users": [{"user": "a", "db": "a", "x": 1}]}`, 40415, name + "users.x' is an unknown field."},
			{`{"users": {"user": "a"}}`, 14, ""},
			{`{"roles": ["x"]}`, 14, name + "roles.0' is the wrong type 'string', expected type 'object'"},
			{`{"roles": [{"role": "a"}]}`, 40414, name + "roles.db' is missing but a required field"},
			{`{"uid": {"$binary": {"base64": "", "subType": "00"}}}`, 12, "Unsupported SHA256Block hash length: 0"},
			{`{"uid": {"$binary": {"base64": "AAAA", "subType": "00"}}}`, 12, "Unsupported SHA256Block hash length: 3"},
			{`{"uid": {"$binary": {"base64": "AAAA", "subType": "04"}}}`, 14, ""},
			{`{"uid": 1}`, 14, ""},
		} {
			if version == "4.4" && strings.HasPrefix(test.pattern, `{"users": {`) {
				continue // a document did as well
			}
			code, text := refusal(command(t, c, extJSON(t, `{"killAllSessionsByPattern": [`+test.pattern+`], "$db": "admin"}`)))
			if code != test.code || test.text != "" && text != test.text {
				t.Errorf("%s: %s: %d %s, want %d %s", version, test.pattern, code, text, test.code, test.text)
			}
		}
		want := map[string]int64{"4.4": 11, "7.0": 0}[version]
		if code, text := refusal(command(t, c, extJSON(t, `{"killAllSessions": [{"user": "nobody", "db": "a"}], "$db": "admin"}`))); code != want {
			t.Errorf("%s: an unknown user: %d %s", version, code, text)
		}
	}
}

// Who has not logged in may log out, as often as he likes.
func TestLogoutOfNobody(t *testing.T) {
	for version, want := range map[string]int64{"4.4": 13, "5.0": 0, "8.0": 0} {
		d := mongotest.Start(t, mongotest.Auth("root", "secret"), mongotest.Version(version))
		c := dial(t, d.Hosts()[0])
		for range 2 {
			if code, text := refusal(command(t, c, extJSON(t, `{"logout": 1, "$db": "admin"}`))); code != want {
				t.Errorf("%s: %d %s", version, code, text)
			}
		}
	}
}

// A stage needs the same wherever it stands: in every stage that has pipelines, in every other one.
func TestPrivilegesAtEveryNesting(t *testing.T) {
	d := usersDeployment(t)
	root := dialAs(t, d, "s1")
	for _, cmd := range []string{
		`{"createRole": "one", "roles": [], "privileges": [{"resource": {"db": "t", "collection": "c"}, "actions": ["find"]}, {"resource": {"db": "t", "collection": "open"}, "actions": ["find"]}], "$db": "admin"}`,
		`{"createUser": "one", "roles": [{"role": "one", "db": "admin"}], "$db": "$external"}`,
		`{"insert": "secret", "documents": [{"x": 1}], "$db": "t"}`, `{"insert": "open", "documents": [{"x": 1}], "$db": "t"}`,
		`{"insert": "secret", "documents": [{"x": 1}], "$db": "other"}`,
	} {
		ok(t, command(t, root, extJSON(t, cmd)))
	}
	if err := d.AddUser(mongotest.User{Name: "one", Password: "pw", DB: "$external"}); err != nil {
		t.Fatal(err)
	}
	ok(t, command(t, root, extJSON(t, `{"grantRolesToUser": "one", "roles": [{"role": "one", "db": "admin"}], "$db": "$external"}`)))
	one := dialAs(t, d, "one")
	reads := []string{ // %s is the collection
		`{"$lookup": {"from": "%s", "localField": "x", "foreignField": "x", "as": "y"}}`,
		`{"$lookup": {"from": "%s", "pipeline": [{"$match": {}}], "as": "y"}}`,
		`{"$graphLookup": {"from": "%s", "startWith": "$x", "connectFromField": "x", "connectToField": "x", "as": "y"}}`,
		`{"$unionWith": "%s"}`,
		`{"$unionWith": {"coll": "%s", "pipeline": []}}`,
	}
	wraps := []string{ // %s is a stage
		`%s`,
		`{"$facet": {"a": [{"$match": {}}], "f": [%s]}}`,
		`{"$lookup": {"from": "open", "pipeline": [{"$match": {}}, %s], "as": "z"}}`,
		`{"$lookup": {"from": "open", "let": {"v": "$x"}, "localField": "x", "foreignField": "x", "pipeline": [%s], "as": "z"}}`,
		`{"$unionWith": {"coll": "open", "pipeline": [%s]}}`,
		`{"$rankFusion": {"input": {"pipelines": {"p": [{"$sort": {"x": 1}}, %s]}}}}`,
	}
	for _, read := range reads {
		for _, inner := range wraps {
			for _, outer := range wraps {
				for _, last := range wraps {
					for coll, want := range map[string]int64{"open": 0, "secret": 13} {
						stage := fmt.Sprintf(last, fmt.Sprintf(outer, fmt.Sprintf(inner, fmt.Sprintf(read, coll))))
						for _, cmd := range []string{
							`{"aggregate": "c", "pipeline": [{"$match": {}}, ` + stage + `], "cursor": {}, "$db": "t"}`,
							`{"explain": {"aggregate": "c", "pipeline": [` + stage + `], "cursor": {}}, "$db": "t"}`,
							`{"create": "v", "viewOn": "c", "pipeline": [` + stage + `], "$db": "t"}`,
						} {
							code, text := refusal(command(t, one, extJSON(t, cmd)))
							if want == 13 && code != 13 || want == 0 && code == 13 && !strings.HasPrefix(cmd, `{"create`) {
								t.Fatalf("%s: %d %s, want %d", cmd, code, text, want)
							}
						}
					}
				}
			}
		}
	}
}
