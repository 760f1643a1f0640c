package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"allium"
	"allium/internal/dump"
	"allium/internal/terminal"
)

// A choice says which databases and collections of a deployment, or of a dump, are meant.
type choice struct{ db, collection string }

func (c *choice) register(fs *flag.FlagSet) {
	fs.StringVar(&c.db, "db", "", "this `database` alone")
	fs.StringVar(&c.collection, "collection", "", "this `collection` of -db alone")
}

func (c *choice) check() error {
	if c.collection != "" && c.db == "" {
		return errors.New("-collection: want -db, too")
	}
	return nil
}

// takes reports whether a collection is meant, or the buckets of one.
func (c *choice) takes(k *dump.Collection) bool {
	return (c.db == "" || c.db == k.DB) &&
		(c.collection == "" || c.collection == strings.TrimPrefix(k.Name, dump.Buckets))
}

// dumpFlags are the command line of allium dump.
type dumpFlags struct {
	choice
	out, archive string
	gzip         bool
}

func (f *dumpFlags) register(fs *flag.FlagSet) {
	f.choice.register(fs)
	fs.StringVar(&f.out, "out", "dump", "write DATABASE/COLLECTION.bson and .metadata.json into this `folder`")
	fs.StringVar(&f.archive, "archive", "", "write one `file` instead, - for the standard output")
	fs.BoolVar(&f.gzip, "gzip", false, "compress what is written")
}

// dumpDeployment writes what a deployment holds in the forms of mongodump: a folder, or an archive.
func dumpDeployment(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium dump"
	var f dumpFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	if fs.NArg() != 1 {
		return misuse(name, stderr, "want one connection string")
	}
	if err := f.check(); err != nil {
		return misuse(name, stderr, err.Error())
	}
	client, err := allium.Open(fs.Arg(0), allium.ClientOptions{AppName: name})
	if err != nil {
		return misuse(name, stderr, err.Error())
	}
	defer client.Close(context.WithoutCancel(ctx))
	chosen, err := surveyDeployment(ctx, client, f.choice)
	if err != nil {
		return fail(name, stderr, err)
	}
	n := int64(0)
	documents := func(c *dump.Collection, w io.Writer) error {
		return dumpDocuments(ctx, client, c, counting{w, &n})
	}
	if f.archive != "" {
		err = f.writeArchive(chosen, documents, stdout)
	} else {
		err = f.writeFolder(chosen, documents)
	}
	if err != nil {
		return fail(name, stderr, err)
	}
	fmt.Fprintf(stderr, "%s: %d collections, %d documents\n", name, len(chosen.Collections), n)
	return succeeded
}

// counting counts documents, of which each is one Write.
type counting struct {
	io.Writer
	n *int64
}

func (c counting) Write(doc []byte) (int, error) {
	*c.n++
	return c.Writer.Write(doc)
}

// writeArchive writes one file, which takes its name when it is whole.
func (f *dumpFlags) writeArchive(all *dump.Contents, documents func(*dump.Collection, io.Writer) error,
	stdout io.Writer) error {
	write := func(w io.Writer) error { return dump.WriteArchive(w, all, documents) }
	if f.archive == "-" {
		if t, ok := stdout.(*terminal.Writer); ok {
			var err error
			if stdout, err = t.Binary(); err != nil {
				return err
			}
		}
		w := bufio.NewWriter(stdout)
		into := write
		if f.gzip {
			into = func(w io.Writer) error { return dump.Zipped(w, write) }
		}
		return errors.Join(into(w), w.Flush())
	}
	half := f.archive + archiveNew
	err := realDisk.write(half, f.gzip, write)
	if err == nil {
		err = os.Rename(half, f.archive)
	}
	if err != nil {
		os.Remove(half)
	}
	return err
}

// writeFolder writes the files of a folder, over those that there are.
func (f *dumpFlags) writeFolder(all *dump.Contents, documents func(*dump.Collection, io.Writer) error) error {
	write := func(path string, text func(w io.Writer) error) error {
		if f.gzip {
			path += dump.GzipSuffix
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		half := filepath.Join(filepath.Dir(path), archiveNew)
		os.Remove(half)
		err := realDisk.write(half, f.gzip, text)
		if err == nil {
			err = os.Rename(half, path)
		}
		return err
	}
	for _, c := range all.Collections {
		base := filepath.Join(f.out, c.DB, dump.FileName(c.Name))
		if c.Metadata != nil {
			if err := write(base+dump.MetadataSuffix, func(w io.Writer) error {
				_, err := w.Write(c.Metadata)
				return err
			}); err != nil {
				return err
			}
		}
		if !c.Bare {
			if err := write(base+dump.DocumentsSuffix, func(w io.Writer) error { return documents(c, w) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// restoreFlags are the command line of allium restore.
type restoreFlags struct {
	choice
	drop bool
}

func (f *restoreFlags) register(fs *flag.FlagSet) {
	f.choice.register(fs)
	fs.BoolVar(&f.drop, "drop", false, "drop each collection before it is restored")
}

// restoreDeployment puts what mongodump or allium dump wrote into a deployment.
func restoreDeployment(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium restore"
	var f restoreFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	if fs.NArg() != 2 {
		return misuse(name, stderr, "want a connection string, and a folder or an archive")
	}
	if err := f.check(); err != nil {
		return misuse(name, stderr, err.Error())
	}
	if _, err := os.Stat(fs.Arg(1)); err != nil {
		return misuse(name, stderr, "want a folder or an archive of mongodump: "+err.Error())
	}
	client, err := allium.Open(fs.Arg(0), allium.ClientOptions{AppName: name})
	if err != nil {
		return misuse(name, stderr, err.Error())
	}
	defer client.Close(context.WithoutCancel(ctx))
	store, err := openStore(fs.Arg(1), realDisk)
	if err != nil {
		return fail(name, stderr, err)
	}
	defer store.close()
	n := 0
	for _, c := range store.contents().Collections {
		if !f.takes(c) {
			continue
		}
		n++
		if f.drop && accountsOf(c.DB, c.Name) == noAccounts && !strings.HasPrefix(c.Name, dump.Buckets) {
			if err := client.Database(c.DB).Collection(c.Name).Drop(ctx); err != nil {
				return fail(name, stderr, err)
			}
		}
	}
	l := loader{client: client, store: store, choice: f.choice, adds: true}
	if err := l.load(ctx); err != nil {
		return fail(name, stderr, err)
	}
	fmt.Fprintf(stderr, "%s: %d collections\n", name, n)
	return succeeded
}
