package mongotest_test

import (
	"net/url"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

func TestRoles(t *testing.T) {
	d := mongotest.Start(t, mongotest.Auth("root", "secret"), mongotest.InMemory())
	users := map[string]mongotest.User{
		"reader":  {DB: "app", Roles: []string{"read"}},
		"writer":  {DB: "app", Roles: []string{"readWrite"}},
		"dba":     {DB: "app", Roles: []string{"dbAdmin"}},
		"users":   {DB: "app", Roles: []string{"userAdmin"}},
		"owner":   {DB: "app", Roles: []string{"dbOwner"}},
		"any":     {DB: "admin", Roles: []string{"readAnyDatabase"}},
		"monitor": {DB: "admin", Roles: []string{"clusterMonitor"}},
		"cluster": {DB: "admin", Roles: []string{"clusterAdmin"}},
		"backup":  {DB: "admin", Roles: []string{"backup"}},
		"restore": {DB: "admin", Roles: []string{"restore"}},
		"system":  {DB: "admin", Roles: []string{"__system"}},
		"nobody":  {DB: "admin"},
	}
	doc := bson.D{{Key: "x", Value: 1}}
	cmd := func(name string, v any, more ...bson.E) bson.D { return append(bson.D{{Key: name, Value: v}}, more...) }
	find, insert := cmd("find", "c"), cmd("insert", "c", bson.E{Key: "documents", Value: bson.A{doc}})
	out := cmd("aggregate", "c", bson.E{Key: "pipeline", Value: bson.A{bson.D{{Key: "$out", Value: "d"}}}}, bson.E{Key: "cursor", Value: bson.D{}})
	commands := []struct {
		db      string
		cmd     bson.D
		allowed string // users who may
	}{
		{"app", cmd("ping", 1), "reader writer dba users owner any monitor cluster backup restore system nobody root"},
		{"app", find, "reader writer owner any backup system root"},
		{"other", find, "any backup system root"},
		{"config", find, "backup system root"},
		{"app", insert, "writer owner restore system root"},
		{"other", insert, "restore system root"},
		{"app", out, "writer owner system root"},
		{"app", cmd("create", "x1"), "writer dba owner restore system root"},
		{"app", cmd("collMod", "c"), "dba owner restore system root"},
		{"app", cmd("listIndexes", "c"), "reader writer dba owner any backup system root"},
		{"app", cmd("dbStats", 1), "reader writer dba owner any monitor cluster backup system root"},
		{"app", cmd("usersInfo", 1), "users owner restore system root"},
		{"admin", cmd("serverStatus", 1), "monitor cluster backup system root"},
		{"admin", cmd("aggregate", 1, bson.E{Key: "pipeline", Value: bson.A{bson.D{{Key: "$queryStats", Value: bson.D{}}}}}, bson.E{Key: "cursor", Value: bson.D{}}), "monitor cluster system root"},
		{"admin", cmd("analyzeShardKey", "app.c"), "cluster system root"},
		{"admin", cmd("configureQueryAnalyzer", "app.c"), "dba owner cluster system root"},
		{"admin", cmd("aggregate", 1, bson.E{Key: "pipeline", Value: bson.A{bson.D{{Key: "$listSampledQueries", Value: bson.D{}}}}}, bson.E{Key: "cursor", Value: bson.D{}}), "monitor cluster system root"},
		{"admin", cmd("setParameter", 1, bson.E{Key: "quiet", Value: false}), "cluster system root"},
		{"admin", cmd("currentOp", 1), "monitor cluster system root"},
		{"admin", cmd("listDatabases", 1, bson.E{Key: "authorizedDatabases", Value: true}), "reader writer dba users owner any monitor cluster backup restore system nobody root"},
	}
	allow := map[string]*allium.Client{}
	connect := func(user, password, db string) {
		u, _ := url.Parse(d.URI())
		u.User = url.UserPassword(user, password)
		u.RawQuery = url.Values{"authSource": {db}}.Encode()
		c, err := allium.Open(u.String(), allium.ClientOptions{Dialer: d})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(t.Context()) })
		allow[user] = c
	}
	connect("root", "secret", "admin")
	if _, err := allow["root"].Database("app").RunCommand(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	for name, u := range users {
		u.Name, u.Password = name, "pencil"
		if err := d.AddUser(u); err != nil {
			t.Fatal(err)
		}
		connect(name, "pencil", u.DB)
	}
	for _, test := range commands {
		for name, client := range allow {
			_, err := client.Database(test.db).RunCommand(t.Context(), test.cmd)
			refused := err != nil && strings.Contains(err.Error(), "not authorized on "+test.db+" to execute command { "+test.cmd[0].Key)
			allowed := strings.Contains(" "+test.allowed+" ", " "+name+" ")
			if refused == allowed || allowed && err != nil && strings.Contains(err.Error(), "not authorized") {
				t.Errorf("%s on %s by %s: %v", test.cmd[0].Key, test.db, name, err)
			}
		}
	}
	// A role that a client makes, given to a user who is connected already.
	root := allow["root"].Database("app")
	role := cmd("createRole", "adder", bson.E{Key: "privileges", Value: bson.A{bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: "app"}, {Key: "collection", Value: "log"}}},
		{Key: "actions", Value: bson.A{"insert"}}}}}, bson.E{Key: "roles", Value: bson.A{}})
	for _, c := range []bson.D{role, cmd("grantRolesToUser", "reader", bson.E{Key: "roles", Value: bson.A{"adder"}})} {
		if _, err := root.RunCommand(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	insert[0].Value = "log"
	if _, err := allow["reader"].Database("app").RunCommand(t.Context(), insert); err != nil {
		t.Errorf("insert with the new role: %v", err)
	}
	insert[0].Value = "c"
	if _, err := allow["reader"].Database("app").RunCommand(t.Context(), insert); err == nil {
		t.Error("the new role is good for any collection")
	}
}

// Roles that clients make have privileges and other roles, and those of others by way of these.
func TestRolesOfRoles(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory())
	c := dialNode(t, d, d.Primary())
	do := func(cmd ...bson.E) bson.Raw { return run(t, c, append(bson.D(cmd), bson.E{Key: "$db", Value: "db"})) }
	privilege := func(actions ...any) bson.A {
		return bson.A{bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: "db"}, {Key: "collection", Value: "c"}}}, {Key: "actions", Value: bson.A(actions)}}}
	}
	none := bson.A{}
	ok(t, do(bson.E{Key: "createRole", Value: "low"}, bson.E{Key: "privileges", Value: privilege("find")}, bson.E{Key: "roles", Value: none}))
	ok(t, do(bson.E{Key: "createRole", Value: "high"}, bson.E{Key: "privileges", Value: none}, bson.E{Key: "roles", Value: bson.A{"low"}}))
	ok(t, do(bson.E{Key: "grantPrivilegesToRole", Value: "low"}, bson.E{Key: "privileges", Value: privilege("insert", "remove")}))
	ok(t, do(bson.E{Key: "revokePrivilegesFromRole", Value: "low"}, bson.E{Key: "privileges", Value: privilege("remove")}))
	role := func(name string) bson.Raw {
		r := ok(t, do(bson.E{Key: "rolesInfo", Value: name}, bson.E{Key: "showPrivileges", Value: true}))
		doc, _ := r.Lookup("roles", "0").Document()
		return doc
	}
	actions, _ := role("high").Lookup("inheritedPrivileges", "0", "actions").Array()
	if got := actions.String(); got != doc(t, bson.D{{Key: "0", Value: "find"}, {Key: "1", Value: "insert"}}).String() {
		t.Errorf("inherited actions %s", got)
	}
	if r := do(bson.E{Key: "grantRolesToRole", Value: "low"}, bson.E{Key: "roles", Value: bson.A{"high"}}); errorCode(r) != 49 {
		t.Errorf("a cycle of roles: %v", r)
	}
	ok(t, do(bson.E{Key: "revokeRolesFromRole", Value: "high"}, bson.E{Key: "roles", Value: bson.A{"low"}}))
	if v := role("high").Lookup("inheritedRoles", "0"); !v.IsZero() {
		t.Errorf("still inherits %v", v)
	}
	ok(t, do(bson.E{Key: "updateRole", Value: "high"}, bson.E{Key: "roles", Value: bson.A{"low"}}))
	ok(t, do(bson.E{Key: "dropRole", Value: "low"}))
	if v := role("high").Lookup("roles", "0"); !v.IsZero() {
		t.Errorf("a dropped role is still granted: %v", v)
	}
}

// listDatabases shows whoever may not list databases those that they may read; with
// authorizedDatabases a user says which of the two lists is meant.
func TestAuthorizedDatabases(t *testing.T) {
	d := mongotest.Start(t, mongotest.Auth("root", "secret"), mongotest.InMemory())
	for name, roles := range map[string][]string{"monitor": {"clusterMonitor"}, "nobody": nil} {
		if err := d.AddUser(mongotest.User{Name: name, Password: "pw", DB: "admin", Roles: roles}); err != nil {
			t.Fatal(err)
		}
	}
	names := func(user, password string, args ...bson.E) string {
		u, _ := url.Parse(d.URI())
		u.User = url.UserPassword(user, password)
		c, err := allium.Open(u.String(), allium.ClientOptions{Dialer: d})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		if user == "root" {
			if _, err := c.Database("app").Collection("c").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		reply, err := c.Database("admin").RunCommand(t.Context(), append(bson.D{{Key: "listDatabases", Value: 1}, {Key: "nameOnly", Value: true}}, args...))
		if err != nil {
			return err.Error()
		}
		var list []string
		for v := range bson.Raw(reply.Lookup("databases").Value).Values() {
			name, _ := bson.Raw(v.Value).Lookup("name").StringValue()
			list = append(list, name)
		}
		return strings.Join(list, " ")
	}
	mine, every := bson.E{Key: "authorizedDatabases", Value: true}, bson.E{Key: "authorizedDatabases", Value: false}
	for _, c := range []struct {
		user, password string
		args           []bson.E
		want           string
	}{
		{"root", "secret", nil, "admin app config local"},
		{"root", "secret", []bson.E{every}, "admin app config local"},
		{"monitor", "pw", nil, "admin app config local"},
		{"monitor", "pw", []bson.E{every}, "admin app config local"},
		{"monitor", "pw", []bson.E{mine}, ""}, // it may list them, and read none
		{"nobody", "pw", nil, ""},
		{"nobody", "pw", []bson.E{mine}, ""},
		{"nobody", "pw", []bson.E{every}, "listDatabases on localhost:27017: Unauthorized (13): Insufficient permissions to list all databases"},
	} {
		if got := names(c.user, c.password, c.args...); got != c.want {
			t.Errorf("%s lists with %v %q, want %q", c.user, c.args, got, c.want)
		}
	}
}
