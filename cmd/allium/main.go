// Command allium is Allium's command-line tool.
//
//	allium serve [flags]      runs a mongotest deployment as a process
//	allium ping [flags] URI   connects to every server; says what it found or what failed
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// verbs are the tool's subcommands. Each gets its arguments and returns the exit status.
var verbs = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) int{
	"ping":  ping,
	"serve": serve,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || verbs[args[0]] == nil {
		fmt.Fprintln(stderr, "usage: allium serve [flags] | allium ping [flags] URI")
		return 2
	}
	return verbs[args[0]](ctx, args[1:], stdout, stderr)
}
