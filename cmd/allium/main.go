// Command allium is Allium's command-line tool.
//
//	allium serve [flags]             runs a mongotest deployment as a process
//	allium healthcheck [URI]         says by the exit status whether a deployment is ready
//	allium ping [flags] URI          connects to every server; says what it found or what failed
//	allium doctor [flags] URI        looks for what is wrong with a deployment; says what to do
//	allium run [flags] URI COMMAND   runs a command and prints the reply
//	allium watch [flags] URI         prints the events of a change stream, one on each line
//	allium dump [flags] URI          writes what a deployment holds, as mongodump does
//	allium restore [flags] URI PATH  puts what mongodump or allium dump wrote into a deployment
//	allium fields [flags] [PACKAGE]  writes the paths of struct types, for package field
//	allium schema ACTION ...         compares indexes, validators, options with a schema
//	allium migrate ACTION URI        says which steps of a migration were run; unlocks
//	allium completion SHELL          prints a completion script for bash, zsh or fish
//	allium man                       prints the page of the manual, for the program man
//	allium version                   prints the version
//	allium help [COMMAND]            prints this, or the flags of a command
//
// The exit status is 0 on success, 1 on failure and 2 if the command line is wrong. It is 3 if
// "schema plan" or "schema diff" finds a difference, or "migrate status" a step that is not done.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"allium/internal/terminal"
)

// The exit statuses.
const (
	succeeded = 0
	failed    = 1
	misused   = 2
	differs   = 3 // a comparison has found a difference
)

// verb is a command of the tool.
type verb struct {
	name    string
	args    string // what follows the name, for the usage
	summary string
	// flags adds the verb's flags to a set; nil: it has none.
	flags func(fs *flag.FlagSet)
	// run gets the arguments and returns the exit status.
	run func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

// verbs returns the commands, in the order in which they are listed.
func verbs() []verb {
	return []verb{
		{"serve", "[flags]", "run a mongotest deployment as a process", new(serveFlags).register, serve},
		{"healthcheck", "[flags] [URI]", "say by the exit status whether a deployment is ready",
			new(healthFlags).register, healthcheck},
		{"ping", "[flags] URI", "connect to every server of a deployment", new(pingFlags).register, ping},
		{"doctor", "[flags] URI", "look for what is wrong with a deployment, and say what to do",
			new(doctorFlags).register, doctor},
		{"run", "[flags] URI COMMAND", "run a command, given as Extended JSON or as in the shell, and print the reply",
			new(runFlags).register, runCommand},
		{"watch", "[flags] URI", "print the events of a change stream as lines of Extended JSON",
			new(watchFlags).register, watch},
		{"dump", "[flags] URI", "write what a deployment holds, as mongodump does", new(dumpFlags).register,
			dumpDeployment},
		{"restore", "[flags] URI PATH", "put what mongodump or allium dump wrote into a deployment",
			new(restoreFlags).register, restoreDeployment},
		{"fields", "[flags] [PACKAGE ...]", "write the paths of struct types, as package field has them, into their packages", new(fieldsFlags).register, fields},
		{"schema", "plan|apply|diff|export [flags] URI ...",
			"compare indexes, validators and options of collections with what is declared, and make them so",
			new(schemaFlags).register, schemaVerb},
		{"migrate", "status|unlock [flags] URI", "say which steps of a migration were run, or end the lease of a program that has died", new(migrateFlags).register, migrateVerb},
		{"completion", "bash|zsh|fish", "print a completion script for a shell", nil, completion},
		{"man", "", "print the page of the manual, for the program man", nil, man},
		{"version", "", "print the version", nil, version},
		{"help", "[COMMAND]", "print this list, or the flags of a command", nil, help},
	}
}

func find(name string) (verb, bool) {
	all := verbs()
	i := slices.IndexFunc(all, func(v verb) bool { return v.name == name })
	if i < 0 {
		return verb{}, false
	}
	return all[i], true
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the tool. All that it prints goes through the writers that it makes, so that nothing
// that a server sends steers a terminal.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	stdout, stderr := terminal.NewWriter(out), terminal.NewWriter(errs)
	defer stdout.Flush()
	defer stderr.Flush()
	return choose(ctx, args, stdout, stderr)
}

// choose runs the verb that the arguments begin with.
func choose(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return misused
	}
	name := args[0]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version":
		name = "version"
	}
	v, ok := find(name)
	if !ok {
		fmt.Fprintf(stderr, "allium: there is no command %q\n", name)
		usage(stderr)
		return misused
	}
	return v.run(ctx, args[1:], stdout, stderr)
}

// parse reads the flags of a verb, which may stand before, between and behind its arguments; behind
// "--" everything is an argument. It returns done if the verb must not run: the flags are wrong, or
// help was asked for.
func parse(fs *flag.FlagSet, args []string, stdout, stderr io.Writer) (status int, done bool) {
	fs.SetOutput(io.Discard)
	arguments := []string{"--"}
	for len(args) > 0 {
		err := fs.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return help(context.Background(), []string{strings.TrimPrefix(fs.Name(), "allium ")}, stdout, stderr), true
		case err != nil:
			return misuse(fs.Name(), stderr, err.Error()), true
		}
		flags := args[:len(args)-fs.NArg()]
		if args = fs.Args(); len(args) == 0 {
			break
		}
		if len(flags) > 0 && flags[len(flags)-1] == "--" {
			arguments = append(arguments, args...)
			break
		}
		arguments, args = append(arguments, args[0]), args[1:]
	}
	fs.Parse(arguments) // all of them at once: fs.Args returns these
	return succeeded, false
}

// misuse says what is wrong with the command line.
func misuse(name string, stderr io.Writer, text string) int {
	fmt.Fprintf(stderr, "%s: %s\n", name, text)
	if v, ok := find(strings.TrimPrefix(name, "allium ")); ok {
		fmt.Fprintf(stderr, "usage: %s %s (allium help %s)\n", name, v.args, v.name)
	}
	return misused
}

// fail says why a verb failed.
func fail(name string, stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return failed
}

func usage(w io.Writer) {
	fmt.Fprint(w, "allium is a tool for MongoDB deployments.\n\nusage:\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-34s %s\n", strings.TrimSpace("allium "+v.name+" "+v.args), v.summary)
	}
	fmt.Fprint(w, "\nThe exit status is 0 on success, 1 on failure and 2 if the command line is wrong, and 3 if\n"+
		"schema plan, schema diff or migrate status finds a difference.\n")
}

func help(_ context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stdout)
		return succeeded
	}
	v, ok := find(args[0])
	if !ok || len(args) > 1 {
		return misuse("allium help", stderr, fmt.Sprintf("there is no command %q", strings.Join(args, " ")))
	}
	fmt.Fprintf(stdout, "usage: %s\n\n%s.\n", strings.TrimSpace("allium "+v.name+" "+v.args), upper(v.summary))
	if v.flags != nil {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		fs.SetOutput(stdout)
		v.flags(fs)
		fmt.Fprint(stdout, "\nFlags:\n\n")
		fs.PrintDefaults()
	}
	return succeeded
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func version(_ context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		return misuse("allium version", stderr, "it takes no arguments")
	}
	v, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
				revision = " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	fmt.Fprintf(stdout, "allium %s%s %s %s/%s\n", v, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return succeeded
}
