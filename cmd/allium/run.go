package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"allium"
	"allium/bson"
)

// runFlags are the command line of allium run.
type runFlags struct {
	db        string
	canonical bool
	timeout   time.Duration
}

func (f *runFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.db, "db", "",
		"the `database` to run the command on (default: that of the connection string, or admin)")
	fs.BoolVar(&f.canonical, "canonical", false, "print canonical Extended JSON, which keeps every type")
	fs.DurationVar(&f.timeout, "timeout", 30*time.Second, "give up after this `duration`")
}

// runCommand runs a command and prints the server's reply as Extended JSON.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium run"
	var f runFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	if fs.NArg() != 2 {
		return misuse(name, stderr, "want a connection string and a command")
	}
	cmd, err := document(fs.Arg(1))
	if err != nil {
		return misuse(name, stderr, "command: "+err.Error())
	}
	timeout := f.timeout
	if !cmd.Lookup("maxTimeMS").IsZero() && timeout > 0 {
		// A client's timeout sets maxTimeMS itself, and refuses a command that has one.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
		timeout = 0
	}
	client, db, err := open(fs.Arg(0), timeout)
	if err != nil {
		return fail(name, stderr, err)
	}
	defer client.Close(context.WithoutCancel(ctx))
	if f.db == "" {
		f.db = db
	}
	if f.db == "" {
		f.db = "admin"
	}
	reply, err := client.Database(f.db).RunCommand(ctx, cmd)
	if err != nil {
		return fail(name, stderr, err)
	}
	return printJSON(name, stdout, stderr, reply, f.canonical)
}

// printJSON prints a document: on one line, as programs read it, or indented on a terminal.
func printJSON(name string, stdout, stderr io.Writer, doc bson.Raw, canonical bool) int {
	text, err := extJSON(doc, canonical)
	if t, ok := stdout.(interface{ IsTerminal() bool }); ok && t.IsTerminal() && err == nil {
		var indented bytes.Buffer
		if err = json.Indent(&indented, text, "", "  "); err == nil {
			text = indented.Bytes()
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s\n", text)
	}
	if err != nil {
		return fail(name, stderr, err)
	}
	return succeeded
}

// open opens a client for a connection string, whose operations take at most a timeout, if that is
// not 0. It also returns the string's database.
func open(connectionString string, timeout time.Duration) (*allium.Client, string, error) {
	o := allium.ClientOptions{AppName: "allium"}
	if timeout > 0 {
		o.Timeout = &timeout
	}
	db, err := database(connectionString)
	if err != nil {
		return nil, "", err
	}
	client, err := allium.Open(connectionString, o)
	return client, db, err
}

// errNoDatabase is a mistake in the command line.
var errNoDatabase = errors.New("no database: name one by -db or in the connection string")

// inDatabase opens the database of this name or, if it is empty, the one that the connection string
// names, and calls a function with it.
func inDatabase(ctx context.Context, connectionString, name string, timeout time.Duration,
	use func(*allium.Database) error) error {
	client, db, err := open(connectionString, timeout)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	if db = cmp.Or(name, db); db == "" {
		return errNoDatabase
	}
	return use(client.Database(db))
}

// input opens a file, or the standard input for "-".
func input(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(file)
}
