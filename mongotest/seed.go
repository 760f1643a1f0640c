package mongotest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/dump"
	"allium/internal/fixture"
	"allium/internal/wire"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/server"
)

// Seed fills the deployment with the collections of a folder before it listens:
//
//	DB/COLLECTION.json, .jsonl, .ndjson   documents of Extended JSON, in lines or an array
//	DB/COLLECTION.csv, .tsv               with the names of the fields in the first line
//	DB/COLLECTION.bson, .metadata.json    a folder of mongodump
//	DB/COLLECTION.meta.json               {"options": {...}, "validator": {...}, "indexes": [...]}
//	DB.COLLECTION.json and so on          the same without folders
//	NAME.json                             {"db.collection": [documents]}
//	NAME.archive                          an archive of mongodump
//
// Each may be compressed (.gz); names that begin with a dot are passed over. Documents of mongodump
// are as they were, the others have to pass the validator. Users and roles of a dump are added.
// Collections that there are already stay as they are. An error names the file and the place in it,
// and ends the start. The deployment shares memory with nothing that the file system gives.
func Seed(fsys fs.FS) Option {
	return prepared(func(d *Deployment) error {
		all, err := fixture.Read(fsys)
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		return d.fill(all, false)
	})
}

// SeedFile is [Seed] with one file, which may be any that Seed takes outside of the folder of a
// database.
func SeedFile(fsys fs.FS, name string) Option {
	return prepared(func(d *Deployment) error {
		all, err := fixture.ReadFile(fsys, name)
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		return d.fill(all, false)
	})
}

// fill makes collections. To those that exist it adds the documents and indexes, or leaves them as
// they are.
func (d *Deployment) fill(all []*fixture.Collection, adds bool) error {
	l := d.local()
	if l == nil {
		return errors.New("seed: there is no primary")
	}
	defer l.Close()
	f := filler{l: l, accounts: d.data.Accounts(), adds: adds}
	for _, c := range all {
		if err := f.fill(c); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	for _, c := range f.views { // they look at the others
		if err := f.create(c); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	return nil
}

// local returns a connection of the deployment's own to the node that takes writes, nil if there is
// none.
func (d *Deployment) local() *server.Local {
	p := d.Primary()
	if p == nil {
		return nil
	}
	return server.NewLocal(p.n)
}

type filler struct {
	l        *server.Local
	accounts *account.Registry
	adds     bool // to collections that exist
	views    []*fixture.Collection
}

// fill makes a collection, or the users and roles that it has.
func (f *filler) fill(c *fixture.Collection) error {
	if done, err := f.account(c); done || err != nil {
		return err
	}
	switch name, isBuckets := strings.CutPrefix(c.Name, dump.Buckets); {
	case c.DB == "local" || c.DB == "config" ||
		strings.HasPrefix(c.Name, "system.") && c.Name != "system.js" && !isBuckets:
		return nil // the server's own
	case isBuckets && name == "":
		return nil
	case c.Type == "view":
		f.views = append(f.views, c)
		return nil
	case !isBuckets:
		made, err := f.made(c)
		if err != nil || !made && !f.adds {
			return err
		}
	}
	if err := f.insert(c); err != nil {
		return err
	}
	return f.index(c)
}

// made creates a collection. It reports false if there is one.
func (f *filler) made(c *fixture.Collection) (bool, error) {
	filter := command(bson.D{{Key: "listCollections", Value: 1}, {Key: "nameOnly", Value: true},
		{Key: "filter", Value: bson.D{{Key: "name", Value: c.Name}}}})
	reply, err := f.l.Run(c.DB, filter)
	if err != nil {
		return false, f.wrong(c, "", err)
	}
	if list, _ := reply.Lookup("cursor", "firstBatch").Array(); !list.IsEmpty() {
		return false, nil
	}
	return true, f.create(c)
}

func (f *filler) create(c *fixture.Collection) error {
	cmd := bson.D{{Key: "create", Value: c.Name}}
	for key, v := range c.Options.All() {
		if key != "uuid" && key != "create" {
			cmd = append(cmd, bson.E{Key: key, Value: v})
		}
	}
	_, err := f.l.Run(c.DB, command(cmd))
	if err != nil {
		return f.wrong(c, "options", err)
	}
	return nil
}

// How much is inserted at once.
const (
	seedDocuments = 1000
	seedBytes     = 16 << 20
)

func (f *filler) insert(c *fixture.Collection) error {
	cmd := bson.D{{Key: "insert", Value: c.Name}, {Key: "ordered", Value: true}}
	if c.Dumped {
		cmd = append(cmd, bson.E{Key: "bypassDocumentValidation", Value: true},
			bson.E{Key: "bypassEmptyTsReplacement", Value: true})
	}
	head := command(cmd)
	rest := c.Docs
	for len(rest) > 0 {
		var docs []byte
		n := 0
		for ; n < len(rest) && n < seedDocuments && len(docs) < seedBytes; n++ {
			docs = append(docs, rest[n].Raw...)
		}
		reply, err := f.l.Run(c.DB, head, wire.Sequence{ID: "documents", Docs: docs})
		if err != nil {
			at := 0
			if i, ok := reply.Lookup("writeErrors", "0", "index").AsInt64(); ok && int(i) < n {
				at = int(i)
			}
			return &fixture.Error{Place: *rest[at].At, Err: fmt.Errorf("insert into %s: %w", c.NS(), err)}
		}
		rest = rest[n:]
	}
	return nil
}

func (f *filler) index(c *fixture.Collection) error {
	for _, index := range c.Indexes {
		if n, _ := index.Lookup("name").StringValue(); n == "_id_" || index.Lookup("clustered").AsBool() {
			continue // it came with the collection
		}
		spec := bson.D{}
		for key, v := range index.All() {
			if key != "ns" {
				spec = append(spec, bson.E{Key: key, Value: v})
			}
		}
		if _, err := f.l.Run(c.DB, command(bson.D{{Key: "createIndexes", Value: c.Name},
			{Key: "indexes", Value: bson.A{spec}}})); err != nil {
			return f.wrong(c, "index "+index.String(), err)
		}
	}
	return nil
}

// wrong is the error of what the description of a collection says.
func (f *filler) wrong(c *fixture.Collection, what string, err error) error {
	err = fmt.Errorf("%s: %w", c.NS(), err)
	if what != "" {
		err = fmt.Errorf("%s of %w", what, err)
	}
	if c.Described == "" && len(c.Docs) > 0 {
		return &fixture.Error{Place: *c.Docs[0].At, Err: err}
	}
	return &fixture.Error{Place: fixture.Place{File: c.Described}, Err: err}
}

// account adds the users or roles that a collection of a dump has.
func (f *filler) account(c *fixture.Collection) (done bool, err error) {
	single, isSingle := strings.CutPrefix(c.Name, "$admin.")
	name := c.Name
	if isSingle {
		name = single
	}
	if !isSingle && c.DB != "admin" ||
		!slices.Contains([]string{"system.users", "system.roles", "system.version"}, name) {
		return false, nil
	}
	for _, doc := range c.Docs {
		var err error
		switch name {
		case "system.users":
			var u *account.User
			if u, err = account.UserOf(doc.Raw); err == nil && f.accounts.Find(u.Name, u.DB) == nil {
				f.accounts.Add(u)
			}
		case "system.roles":
			var r *account.CustomRole
			if r, err = account.RoleOf(doc.Raw); err == nil {
				f.accounts.AddRole(r)
			}
		}
		if err != nil {
			return true, &fixture.Error{Place: *doc.At, Err: err}
		}
	}
	return true, nil
}

// command encodes a command of the package's own.
func command(cmd bson.D) bson.Raw {
	raw, err := bson.Marshal(cmd)
	if err != nil {
		panic(err) // only for values that have no BSON form
	}
	return raw
}
