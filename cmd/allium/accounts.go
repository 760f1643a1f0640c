package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"allium"
	"allium/bson"
	"allium/internal/dump"
)

// Users and roles are kept as mongodump keeps them: as the documents of these collections of the
// database admin. A dump of a single database has those of that database beside its collections.
const (
	usersColl   = "system.users"
	rolesColl   = "system.roles"
	versionColl = "system.version"
	singlePart  = "$admin."
)

// What a collection has of users and roles.
type accountsKind int

const (
	noAccounts accountsKind = iota
	someUsers
	someRoles
	formOfAccounts // which version their documents have
)

func accountsOf(db, name string) accountsKind {
	single, ok := strings.CutPrefix(name, singlePart)
	switch {
	case db == "admin" && name == usersColl || ok && single == usersColl:
		return someUsers
	case db == "admin" && name == rolesColl || ok && single == rolesColl:
		return someRoles
	case ok && single == versionColl:
		return formOfAccounts
	}
	return noAccounts
}

// surveyAccounts lists the collections of users and roles, if there are any.
func surveyAccounts(ctx context.Context, client *allium.Client) ([]*dump.Collection, error) {
	admin := client.Database("admin")
	count := func(coll string) (int, error) {
		cur, err := allium.CollectionOf[bson.Raw](admin, coll).Find(ctx, bson.D{})
		if err != nil {
			return 0, err
		}
		docs, err := cur.All(ctx)
		return len(docs), err
	}
	users, err := count(usersColl)
	if err != nil {
		return nil, err
	}
	roles, err := count(rolesColl)
	if err != nil || users+roles == 0 {
		return nil, err
	}
	var all []*dump.Collection
	for _, name := range []string{usersColl, rolesColl, versionColl} {
		c := &dump.Collection{DB: "admin", Name: name}
		text, err := bson.MarshalExtJSON(dump.Metadata{Name: name, Type: "collection", Indexes: []bson.Raw{}}, true)
		if err != nil {
			return nil, err
		}
		c.Metadata = text
		all = append(all, c)
	}
	return all, nil
}

// keptAccounts are the users and roles of a dump.
type keptAccounts struct{ users, roles []bson.Raw }

// has reports whether a collection has users or roles.
func (a *keptAccounts) has(c *dump.Collection) bool { return accountsOf(c.DB, c.Name) != noAccounts }

func (a *keptAccounts) add(c *dump.Collection, doc bson.Raw) error {
	switch accountsOf(c.DB, c.Name) {
	case someUsers:
		a.users = append(a.users, doc)
	case someRoles:
		a.roles = append(a.roles, doc)
	}
	return nil
}

// merge makes the users and roles as mongorestore does: from collections that are dropped then. The
// user whom the command line names on the database admin is the one that it says.
func (a *keptAccounts) merge(ctx context.Context, client *allium.Client, named string) error {
	admin := client.Database("admin")
	cmd := bson.D{{Key: "_mergeAuthzCollections", Value: 1}}
	for _, kind := range []struct {
		docs            []bson.Raw
		argument, label string
	}{{a.roles, "tempRolesCollection", "roles"}, {a.users, "tempUsersCollection", "users"}} {
		var docs []bson.Raw
		for _, doc := range kind.docs {
			user, _ := doc.Lookup("user").StringValue()
			db, _ := doc.Lookup("db").StringValue()
			if kind.label == "users" && named != "" && user == named && db == "admin" {
				continue
			}
			docs = append(docs, doc)
		}
		if len(docs) == 0 {
			continue
		}
		name := "allium.temp" + kind.label + "." + rand.Text()
		temporary := allium.CollectionOf[bson.Raw](admin, name)
		defer temporary.Drop(context.WithoutCancel(ctx))
		if _, err := temporary.InsertMany(ctx, docs); err != nil {
			return fmt.Errorf("%s: %w", kind.label, err)
		}
		cmd = append(cmd, bson.E{Key: kind.argument, Value: "admin." + name})
	}
	if len(cmd) == 1 {
		return nil
	}
	cmd = append(cmd, bson.E{Key: "db", Value: ""}, bson.E{Key: "drop", Value: false})
	if _, err := admin.RunCommand(ctx, cmd); err != nil {
		return fmt.Errorf("users and roles: %w", err)
	}
	return nil
}
