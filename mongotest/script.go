package mongotest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"allium/bson"
	"allium/internal/fixture"
	"allium/mongotest/internal/shell"
)

// ScriptOptions say what scripts run in.
type ScriptOptions struct {
	// Database is the one that db stands for, and that .json files go to which name none. Empty:
	// "test".
	Database string
	// Out gets what scripts print, and which files are passed over. Nil: it is thrown away.
	Out io.Writer
	// Env are the variables of the environment that scripts see as process.env; nil: none.
	Env map[string]string
	// Check is called now and then while a script runs; an error ends it, and the start. Nil:
	// nothing does.
	Check func() error
}

// Scripts initializes the deployment as the official images do with the files of
// /docker-entrypoint-initdb.d, in the order of their names, before it listens. A .js file is run
// with the part of mongosh's API that such scripts use (docs/serve.md has it), with all rights
// and as a run of the shell of its own. A .json file, compressed or not, has documents for the
// collection that its name says, COLLECTION.json or DB.COLLECTION.json, or {"db.collection":
// [documents]}. A .sh file is an error, since there is no shell to run it; other files are passed
// over. An error names the file and the place in it, and ends the start.
func Scripts(fsys fs.FS, o ScriptOptions) Option {
	return prepared(func(d *Deployment) error {
		if o.Out == nil {
			o.Out = io.Discard
		}
		o.Database = cmp.Or(o.Database, "test")
		entries, err := fs.ReadDir(fsys, ".")
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := e.Name()
			switch plain := strings.TrimSuffix(name, ".gz"); {
			case strings.HasPrefix(name, "."):
			case strings.HasSuffix(name, ".js"):
				err = d.script(fsys, name, o)
			case strings.HasSuffix(plain, ".json"):
				var all []*fixture.Collection
				if all, err = fixture.ReadInto(fsys, name, o.Database); err == nil {
					err = d.fill(all, true)
				}
			case strings.HasSuffix(name, ".sh"):
				err = fmt.Errorf(
					"%s: there is no shell here to run it: want .js files, which are run as mongosh runs them, or .json files with documents", name)
			default:
				fmt.Fprintf(o.Out, "%s is passed over: it is no .js and no .json file\n", name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// script runs a file.
func (d *Deployment) script(fsys fs.FS, name string, o ScriptOptions) error {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	l := d.local()
	if l == nil {
		return errors.New("there is no primary")
	}
	defer l.Close()
	s := shell.New(shell.Config{
		DB: o.Database, Env: o.Env, Version: d.cfg.Version.String(), Check: o.Check,
		Run: func(db string, cmd bson.Raw) bson.Raw {
			reply, _ := l.Run(db, cmd) // the script looks at what went wrong
			return reply
		},
		Auth: func(db, user, password string) bool {
			u := d.data.Accounts().Find(user, db)
			return u != nil && u.HasPassword(password)
		},
		Print: func(line string) { fmt.Fprintln(o.Out, line) },
		Read: func(file string) (string, error) {
			text, err := fs.ReadFile(fsys, path.Clean(strings.TrimPrefix(file, "/docker-entrypoint-initdb.d/")))
			return string(text), err
		},
	})
	return s.Run(name, string(source))
}
