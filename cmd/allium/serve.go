package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"allium/mongotest"
)

// serveFlags are the command line of allium serve.
type serveFlags struct {
	standalone   bool
	members      int
	sharded      string
	loadBalanced int
	version      string
	auth         string
	tls          bool
	port         int
	verbose      bool
}

func parseServe(args []string, stderr io.Writer) (*serveFlags, error) {
	var f serveFlags
	fs := flag.NewFlagSet("allium serve", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&f.standalone, "standalone", false, "a single server without replication (the default)")
	fs.IntVar(&f.members, "replset", 0, "a replica set of this many `members`")
	fs.StringVar(&f.sharded, "sharded", "", "a sharded cluster of `SxM`: S shards behind M mongoses, as in 2x2")
	fs.IntVar(&f.loadBalanced, "load-balanced", 0, "this many `mongoses` behind a load balancer")
	fs.StringVar(&f.version, "version", "", "server `version` to behave as, 4.2 to 8.2 (default 8.0)")
	fs.StringVar(&f.auth, "auth", "", "require authentication, with this root user: `user:password`")
	fs.BoolVar(&f.tls, "tls", false, "accept TLS only; the certificates are written to a temporary folder")
	fs.IntVar(&f.port, "port", 27017, "first `port` to listen on; further nodes take those that follow")
	fs.BoolVar(&f.verbose, "v", false, "log every command")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		err := fmt.Errorf("allium serve: unexpected argument %q", fs.Arg(0))
		fmt.Fprintln(stderr, err)
		return nil, err
	}
	return &f, nil
}

// options turns the flags into what mongotest starts.
func (f *serveFlags) options(stderr io.Writer) ([]mongotest.Option, error) {
	opts := []mongotest.Option{mongotest.Port(f.port), mongotest.Version(f.version)}
	chosen := 0
	if f.standalone {
		chosen++
	}
	if f.members > 0 {
		chosen++
		opts = append(opts, mongotest.ReplicaSet(f.members))
	}
	if f.sharded != "" {
		chosen++
		s, m, ok := strings.Cut(f.sharded, "x")
		shards, err1 := strconv.Atoi(s)
		mongoses, err2 := strconv.Atoi(m)
		if !ok || err1 != nil || err2 != nil {
			return nil, fmt.Errorf("--sharded %q: want SxM, as in 2x2", f.sharded)
		}
		opts = append(opts, mongotest.Sharded(shards, mongoses))
	}
	if f.loadBalanced > 0 {
		chosen++
		opts = append(opts, mongotest.LoadBalanced(f.loadBalanced))
	}
	if chosen > 1 {
		return nil, fmt.Errorf("choose one of --standalone, --replset, --sharded and --load-balanced")
	}
	if f.auth != "" {
		user, password, ok := strings.Cut(f.auth, ":")
		if !ok || user == "" || password == "" {
			return nil, fmt.Errorf("--auth: want user:password")
		}
		opts = append(opts, mongotest.Auth(user, password))
	}
	if f.tls {
		opts = append(opts, mongotest.TLS())
	}
	if f.verbose {
		opts = append(opts, mongotest.Log(slog.New(slog.NewTextHandler(stderr, nil))))
	}
	return opts, nil
}

// serve runs a deployment until the context ends. It prints the connection string when the deployment is ready.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fail := func(status int, err error) int {
		fmt.Fprintf(stderr, "allium serve: %v\n", err)
		return status
	}
	f, err := parseServe(args, stderr)
	if err != nil {
		return 2 // the flag package has said why
	}
	opts, err := f.options(stderr)
	if err != nil {
		return fail(2, err)
	}
	d, err := mongotest.Open(opts...)
	if err != nil {
		return fail(1, err)
	}
	defer d.Stop()
	uri := d.URI()
	if f.tls {
		dir, err := os.MkdirTemp("", "allium-serve-")
		if err != nil {
			return fail(1, err)
		}
		defer os.RemoveAll(dir)
		ca, client, err := d.WriteTLSFiles(dir)
		if err != nil {
			return fail(1, err)
		}
		uri += "&tlsCAFile=" + ca + "&tlsCertificateKeyFile=" + client
	}
	fmt.Fprintln(stdout, uri)
	<-ctx.Done()
	return 0
}
