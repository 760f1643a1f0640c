package mongotest_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// privilegeCase is a command with all that it needs.
type privilegeCase struct {
	needs string // "action@db.coll", "action@db" for the database, "action" for the cluster
	db    string // empty: app
	cmd   string // as extended JSON; empty: do
	do    func(ctx context.Context, c *allium.Client) error
}

var (
	lookups = `{"$lookup": {"from": "d", "localField": "x", "foreignField": "x", "as": "d"}}`
	upsert  = `{"q": {"_id": 1}, "u": {"$set": {"x": 1}}, "upsert": true}`
)

// privilegeCases are commands whose needs depend on their arguments, and those about which the name
// of the action says something else than the name of the command.
var privilegeCases = []privilegeCase{
	{needs: "insert@app.c", cmd: `{"insert": "c", "documents": [{}]}`},
	{needs: "insert@app.c bypassDocumentValidation@app.c", cmd: `{"insert": "c", "documents": [{}], "bypassDocumentValidation": true}`},
	{needs: "update@app.c", cmd: `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}]}`},
	{needs: "update@app.c insert@app.c", cmd: `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}, ` + upsert + `]}`},
	{needs: "update@app.c bypassDocumentValidation@app.c", cmd: `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}], "bypassDocumentValidation": true}`},
	{needs: "update@app.c insert@app.c", do: func(ctx context.Context, c *allium.Client) error { // in a document sequence
		_, err := c.Database("app").Collection("c").UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}},
			allium.UpdateOptions{Upsert: true})
		return err
	}},
	{needs: "remove@app.c", cmd: `{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}`},
	{needs: "find@app.c update@app.c", cmd: `{"findAndModify": "c", "update": {"$set": {"x": 1}}}`},
	{needs: "find@app.c update@app.c insert@app.c", cmd: `{"findAndModify": "c", "query": {"_id": 7}, "update": {"$set": {"x": 1}}, "upsert": true}`},
	{needs: "find@app.c update@app.c bypassDocumentValidation@app.c", cmd: `{"findAndModify": "c", "update": {"$set": {"x": 1}}, "bypassDocumentValidation": true}`},
	{needs: "find@app.c remove@app.c", cmd: `{"findAndModify": "c", "remove": true}`},
	{needs: "update@app.c insert@app.c", cmd: `{"explain": {"update": "c", "updates": [` + upsert + `]}}`},

	{needs: "insert@app.c", db: "admin", cmd: `{"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "app.c"}]}`},
	{needs: "update@app.c", db: "admin", cmd: `{"bulkWrite": 1, "ops": [{"update": 0, "filter": {}, "updateMods": {"$set": {"x": 1}}}], "nsInfo": [{"ns": "app.c"}]}`},
	{needs: "update@app.c insert@app.c", db: "admin", cmd: `{"bulkWrite": 1, "ops": [{"update": 0, "filter": {"_id": 9}, "updateMods": {"$set": {"x": 1}}, "upsert": true}], "nsInfo": [{"ns": "app.c"}]}`},
	{needs: "remove@app.c", db: "admin", cmd: `{"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}}], "nsInfo": [{"ns": "app.c"}]}`},
	{needs: "remove@app.d insert@app.c", db: "admin", cmd: `{"bulkWrite": 1, "ops": [{"delete": 1, "filter": {}}, {"insert": 0, "document": {}}], "nsInfo": [{"ns": "app.c"}, {"ns": "app.d"}]}`},
	{needs: "insert@app.c bypassDocumentValidation@app.c", db: "admin", cmd: `{"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "app.c"}], "bypassDocumentValidation": true}`},
	{needs: "remove@app.c insert@app.d", do: func(ctx context.Context, c *allium.Client) error { // in document sequences
		_, err := c.BulkWrite(ctx, []allium.WriteModel{
			c.Database("app").Collection("c").DeleteOneModel(bson.D{}),
			c.Database("app").Collection("d").InsertOneModel(bson.D{}),
		})
		return err
	}},

	{needs: "find@app.c", cmd: `{"mapReduce": "c", "map": "function() { emit(1, 1) }", "reduce": "function() { return 1 }", "out": {"inline": 1}}`},
	{needs: "find@app.c insert@app.d remove@app.d", cmd: `{"mapReduce": "c", "map": "function() { emit(1, 1) }", "reduce": "function() { return 1 }", "out": "d"}`},
	{needs: "find@app.c insert@more.d update@more.d bypassDocumentValidation@more.d", cmd: `{"mapReduce": "c", "map": "function() { emit(1, 1) }",
		"reduce": "function() { return 1 }", "out": {"merge": "d", "db": "more"}, "bypassDocumentValidation": true}`},

	{needs: "find@app.c insert@app.d remove@app.d", cmd: `{"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}}`},
	{needs: "find@app.c insert@app.d remove@app.d bypassDocumentValidation@app.d", cmd: `{"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}, "bypassDocumentValidation": true}`},
	{needs: "find@app.c insert@more.d update@more.d bypassDocumentValidation@more.d",
		cmd: `{"aggregate": "c", "pipeline": [{"$merge": {"into": {"db": "more", "coll": "d"}}}], "cursor": {}, "bypassDocumentValidation": true}`},
	{needs: "find@app.c find@app.d", cmd: `{"aggregate": "c", "pipeline": [` + lookups + `], "cursor": {}}`},
	{needs: "find@app.c find@app.d", cmd: `{"explain": {"aggregate": "c", "pipeline": [` + lookups + `], "cursor": {}}}`},

	// Stages do the same wherever they stand.
	{needs: "find@app.c find@app.d", cmd: `{"aggregate": "c", "pipeline": [{"$facet": {"f": [` + lookups + `]}}], "cursor": {}}`},
	{needs: "find@app.c find@app.d find@app.e", cmd: `{"aggregate": "c", "pipeline": [{"$lookup": {"from": "e", "as": "e", "pipeline": [` + lookups + `]}}], "cursor": {}}`},
	{needs: "find@app.c find@app.d find@app.e", cmd: `{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "e", "pipeline": [` + lookups + `]}}], "cursor": {}}`},
	{needs: "find@app.c find@app.d", cmd: `{"aggregate": "c", "pipeline": [{"$facet": {"f": [{"$unionWith": {"coll": "d", "pipeline": []}}]}}], "cursor": {}}`},
	{needs: "find@app.c find@app.d find@app.e", cmd: `{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "d", "pipeline": [{"$facet": {"f": [{"$graphLookup": {
		"from": "e", "startWith": "$x", "connectFromField": "x", "connectToField": "x", "as": "g"}}]}}]}}], "cursor": {}}`},
	{needs: "find@app.c collStats@app.d", cmd: `{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "d", "pipeline": [{"$collStats": {"count": {}}}]}}], "cursor": {}}`},
	{needs: "", db: "app", cmd: `{"aggregate": 1, "pipeline": [{"$documents": [{"x": 1}]}], "cursor": {}}`},

	{needs: "find@app.c", cmd: `{"dataSize": "app.c"}`},
	{needs: "find@app.fs.chunks", cmd: `{"filemd5": 1, "root": "fs"}`},
	{needs: "planCacheIndexFilter@app.c", cmd: `{"planCacheListFilters": "c"}`},
	{needs: "planCacheIndexFilter@app.c", cmd: `{"planCacheClearFilters": "c"}`},
	{needs: "planCacheWrite@app.c", cmd: `{"planCacheClear": "c"}`},
	{needs: "splitVector@app.c", cmd: `{"splitVector": "app.c", "keyPattern": {"_id": 1}, "maxChunkSize": 1}`},
	{needs: "createSearchIndexes@app.c", cmd: `{"createSearchIndexes": "c", "indexes": [{"definition": {}}]}`},
	{needs: "compactStructuredEncryptionData@app.c", cmd: `{"compactStructuredEncryptionData": "c", "compactionTokens": {}}`},
	{needs: "find@app.c insert@app.n createIndex@app.n convertToCapped@app.n", cmd: `{"cloneCollectionAsCapped": "c", "toCollection": "n", "size": 4096}`},
	{needs: "inprog", db: "admin", cmd: `{"currentOp": 1}`},
	{needs: "replSetStateChange", db: "admin", cmd: `{"replSetSyncFrom": "h:1"}`},

	{needs: "createUser@app grantRole@app grantRole@more", cmd: `{"createUser": "u1", "pwd": "p", "roles": ["read", {"role": "read", "db": "more"}]}`},
	{needs: "changePassword@app", cmd: `{"updateUser": "u1", "pwd": "q"}`},
	{needs: "changeCustomData@app", cmd: `{"updateUser": "u1", "customData": {"x": 1}}`},
	{needs: "grantRole@more", cmd: `{"grantRolesToUser": "u1", "roles": [{"role": "read", "db": "more"}]}`},
	{needs: "revokeRole@more", cmd: `{"revokeRolesFromUser": "u1", "roles": [{"role": "read", "db": "more"}]}`},
	{needs: "createRole@app grantRole@app grantRole@more grantRole@admin", cmd: `{"createRole": "r1", "roles": ["read"], "privileges": [
		{"resource": {"db": "more", "collection": "c"}, "actions": ["find"]}, {"resource": {"cluster": true}, "actions": ["inprog"]}]}`},
	{needs: "grantRole@admin", cmd: `{"grantPrivilegesToRole": "r1", "privileges": [{"resource": {"db": "", "collection": "c"}, "actions": ["find"]}]}`},
	{needs: "revokeRole@more", cmd: `{"revokePrivilegesFromRole": "r1", "privileges": [{"resource": {"db": "more", "collection": "c"}, "actions": ["find"]}]}`},
}

// openAs returns a client that has logged in as a user of database admin.
func openAs(t *testing.T, d *mongotest.Deployment, user, password string) *allium.Client {
	t.Helper()
	u, err := url.Parse(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	c, err := allium.Open(u.String(), allium.ClientOptions{Dialer: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	return c
}

// TestPrivileges runs commands with just what they need, and with each part of it missing.
func TestPrivileges(t *testing.T) {
	d := mongotest.Start(t, mongotest.Auth("root", "secret"), mongotest.InMemory())
	if err := d.AddUser(mongotest.User{Name: "user", Password: "pw", DB: "admin"}); err != nil {
		t.Fatal(err)
	}
	root, user := openAs(t, d, "root", "secret"), openAs(t, d, "user", "pw")
	must := func(db, cmd string) {
		t.Helper()
		if _, err := root.Database(db).RunCommand(t.Context(), extJSON(t, cmd)); err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
	}
	must("app", `{"insert": "c", "documents": [{"_id": 0}]}`)
	must("app", `{"insert": "d", "documents": [{"_id": 0}]}`)
	must("admin", `{"createRole": "exact", "privileges": [], "roles": []}`)
	must("admin", `{"grantRolesToUser": "user", "roles": ["exact"]}`)
	grant := func(needs []string) {
		t.Helper()
		privileges := bson.A{}
		for _, n := range needs {
			action, ns, onDB := strings.Cut(n, "@")
			db, coll, _ := strings.Cut(ns, ".")
			resource := bson.D{{Key: "db", Value: db}, {Key: "collection", Value: coll}}
			if !onDB {
				resource = bson.D{{Key: "cluster", Value: true}}
			}
			privileges = append(privileges, bson.D{{Key: "resource", Value: resource}, {Key: "actions", Value: bson.A{action}}})
		}
		if _, err := root.Database("admin").RunCommand(t.Context(), bson.D{{Key: "updateRole", Value: "exact"}, {Key: "privileges", Value: privileges}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range privilegeCases {
		try := func() error {
			if test.do != nil {
				return test.do(t.Context(), user)
			}
			db := test.db
			if db == "" {
				db = "app"
			}
			_, err := user.Database(db).RunCommand(t.Context(), extJSON(t, test.cmd))
			return err
		}
		unauthorized := func(err error) bool { return err != nil && strings.Contains(err.Error(), "Unauthorized") }
		needs := strings.Fields(test.needs)
		for i := range needs {
			grant(append(append([]string(nil), needs[:i]...), needs[i+1:]...))
			if err := try(); !unauthorized(err) {
				t.Errorf("%s without %s: %v", test.cmd, needs[i], err)
			}
		}
		grant(needs)
		if err := try(); unauthorized(err) {
			t.Errorf("%s with %s: %v", test.cmd, test.needs, err)
		}
	}
}
