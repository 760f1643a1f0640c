package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"allium/mongotest"
)

// serve runs a deployment until the context ends. It prints the connection string when the deployment is ready.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("allium serve", flag.ContinueOnError)
	fs.SetOutput(stderr)
	standalone := fs.Bool("standalone", false, "a single server without replication (the default)")
	members := fs.Int("replset", 0, "a replica set of this many `members`")
	version := fs.String("version", "", "server `version` to behave as, 4.2 to 8.2 (default 8.0)")
	port := fs.Int("port", 27017, "first `port` to listen on")
	verbose := fs.Bool("v", false, "log every command")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "allium serve: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	opts := []mongotest.Option{mongotest.Port(*port), mongotest.Version(*version)}
	switch {
	case *standalone && *members > 0:
		fmt.Fprintln(stderr, "allium serve: --standalone and --replset exclude each other")
		return 2
	case *members > 0:
		opts = append(opts, mongotest.ReplicaSet(*members))
	}
	if *verbose {
		opts = append(opts, mongotest.Log(slog.New(slog.NewTextHandler(stderr, nil))))
	}
	d, err := mongotest.Open(opts...)
	if err != nil {
		fmt.Fprintf(stderr, "allium serve: %v\n", err)
		return 1
	}
	defer d.Stop()
	fmt.Fprintln(stdout, d.URI())
	<-ctx.Done()
	return 0
}
