package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// serveFlags are the command line of allium serve.
type serveFlags struct {
	given        map[string]bool // the flags that are there
	standalone   bool
	members      int
	sharded      string
	shardMembers int
	loadBalanced int
	version      string
	auth         string
	tls          bool
	noScripting  bool
	search       time.Duration
	port         int
	json         bool
	parent       bool
	drain        time.Duration
	verbose      bool
	seed         []string
	data         string
	root         account           // of auth
	store        dataStore         // of data
	defaults     map[string]bson.D // the parameters that the deployment started with
	disk         disk              // where data is; nothing: the system's
}

// parseServe reads the command line. It returns done if there is nothing to serve: the flags are
// wrong, or help was asked for.
func parseServe(args []string, stdout, stderr io.Writer) (f *serveFlags, status int, done bool) {
	f = &serveFlags{given: map[string]bool{}}
	fs := flag.NewFlagSet("allium serve", flag.ContinueOnError)
	f.register(fs)
	if status, done = parse(fs, args, stdout, stderr); done {
		return nil, status, true
	}
	fs.Visit(func(g *flag.Flag) { f.given[g.Name] = true })
	if fs.NArg() > 0 {
		return nil, misuse(fs.Name(), stderr, fmt.Sprintf("unexpected argument %q", fs.Arg(0))), true
	}
	return f, succeeded, false
}

func (f *serveFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&f.standalone, "standalone", false, "a single server without replication (the default)")
	fs.IntVar(&f.members, "replset", 0, "a replica set of this many `members`")
	fs.StringVar(&f.sharded, "sharded", "", "a sharded cluster of `SxM`: S shards behind M mongoses, as in 2x2")
	fs.IntVar(&f.shardMembers, "shard-members", 1, "each shard is a replica set of this many `members`")
	fs.IntVar(&f.loadBalanced, "load-balanced", 0, "this many `mongoses` behind a load balancer")
	fs.StringVar(&f.version, "version", "", "server `version` to behave as, as in 7.0 or 7.0.2: one of "+strings.Join(series(), ", ")+" (default 8.0)")
	fs.StringVar(&f.auth, "auth", "", "require authentication, with this root user: `user:password`")
	fs.BoolVar(&f.tls, "tls", false, "accept TLS only; the certificates are written to a temporary folder, which is printed")
	fs.DurationVar(&f.search, "search", 0, "keep search indexes, which are ready after this `duration` (0s: at once)")
	fs.BoolVar(&f.noScripting, "noscripting", false, "run no server-side JavaScript")
	fs.IntVar(&f.port, "port", 27017, "first `port` to listen on; further nodes take those that follow")
	fs.BoolVar(&f.json, "json", false, "print a line of JSON with the connection string, the hosts and the process instead of the string alone")
	fs.BoolVar(&f.parent, "parent", false, "end when the process that started this one has ended")
	fs.DurationVar(&f.drain, "drain", time.Second, "at the end let commands that run take up to this `duration`, then interrupt them")
	fs.BoolVar(&f.verbose, "v", false, "log every command")
	fs.Func("seed", "fill the deployment with the collections of this `file or folder`: {\"db.collection\": [documents]}, DB/COLLECTION.json, .csv or .bson with .meta.json beside, a dump of mongodump, compressed or not; may be given several times", f.list(&f.seed))
	fs.StringVar(&f.data, "data", "", "read what this `folder` or archive of mongodump holds at the start, and write it there at the end")
}

// list returns the function of a flag that can be given several times.
func (f *serveFlags) list(to *[]string) func(string) error {
	return func(text string) error {
		if text == "" {
			return errors.New("it is empty")
		}
		*to = append(*to, text)
		return nil
	}
}

// account is a user with a password.
type account struct{ name, password string }

// series lists the server versions that can be chosen.
func series() []string {
	var list []string
	for _, v := range mongotest.Versions() {
		list = append(list, v[:strings.LastIndexByte(v, '.')])
	}
	return list
}

// options turns the flags into what mongotest starts.
func (f *serveFlags) options(stderr io.Writer) ([]mongotest.Option, error) {
	if f.port < 0 || f.port > 65535 {
		return nil, fmt.Errorf("--port %d: want a port from 1 to 65535, or 0 for free ones", f.port)
	}
	if f.drain < 0 {
		return nil, fmt.Errorf("--drain %v: want a time that is not negative", f.drain)
	}
	opts := []mongotest.Option{mongotest.Port(f.port), mongotest.Version(f.version)}
	chosen := 0
	if f.standalone {
		chosen++
	}
	if f.given["replset"] {
		chosen++
		if f.members < 1 || f.members > 50 {
			return nil, fmt.Errorf("--replset %d: want 1 to 50 members", f.members)
		}
		opts = append(opts, mongotest.ReplicaSet(f.members))
	}
	if f.given["sharded"] {
		chosen++
		s, m, ok := strings.Cut(f.sharded, "x")
		shards, err1 := strconv.Atoi(s)
		mongoses, err2 := strconv.Atoi(m)
		if !ok || err1 != nil || err2 != nil || shards < 1 || mongoses < 1 {
			return nil, fmt.Errorf("--sharded %q: want SxM for S shards behind M mongoses, as in 2x2", f.sharded)
		}
		opts = append(opts, mongotest.Sharded(shards, mongoses))
	}
	if f.given["load-balanced"] {
		chosen++
		if f.loadBalanced < 1 {
			return nil, fmt.Errorf("--load-balanced %d: want at least one mongos", f.loadBalanced)
		}
		opts = append(opts, mongotest.LoadBalanced(f.loadBalanced))
	}
	if f.given["shard-members"] {
		switch {
		case !f.given["sharded"] && !f.given["load-balanced"]:
			return nil, fmt.Errorf("--shard-members: only --sharded and --load-balanced have shards")
		case f.shardMembers < 1 || f.shardMembers > 50:
			return nil, fmt.Errorf("--shard-members %d: want 1 to 50 members", f.shardMembers)
		}
		opts = append(opts, mongotest.ShardMembers(f.shardMembers))
	}
	if chosen > 1 {
		return nil, fmt.Errorf("choose one of --standalone, --replset, --sharded and --load-balanced")
	}
	if f.given["auth"] {
		user, password, ok := strings.Cut(f.auth, ":")
		if !ok || user == "" || password == "" {
			return nil, fmt.Errorf("--auth: want user:password")
		}
		f.root = account{user, password}
		opts = append(opts, mongotest.Auth(user, password))
	}
	if f.tls {
		opts = append(opts, mongotest.TLS())
	}
	if f.given["search"] {
		if f.search < 0 {
			return nil, fmt.Errorf("--search %v: want a time that is not negative", f.search)
		}
		opts = append(opts, mongotest.Search(f.search))
	}
	if f.noScripting {
		opts = append(opts, mongotest.NoScripting())
	}
	if f.verbose {
		opts = append(opts, mongotest.Log(slog.New(slog.NewTextHandler(stderr, nil))))
	}
	return opts, nil
}

// statusOf returns the exit status of a deployment that did not start: what the command line, the
// environment and files say is wrong, unless it is the machine that does not allow it now.
func statusOf(err error) int {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return failed
	}
	return misused
}

// explain says what to do about the error of a deployment that did not start.
func (f *serveFlags) explain(err error) error {
	var bad *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: --port chooses where to listen, and 0 stands for free ports", err)
	case errors.As(err, &bad):
		return fmt.Errorf("--port %d: the nodes take this port and those that follow, of which the last is 65535: %w", f.port, err)
	}
	return err
}

// ready is what serve prints with --json when the deployment is ready.
type ready struct {
	URI             string   `json:"uri"`
	SingleMongosURI string   `json:"singleMongosURI,omitempty"` // of a sharded or load-balanced deployment
	MultiMongosURI  string   `json:"multiMongosURI,omitempty"`  // of one with several mongoses
	Hosts           []string `json:"hosts"`
	PID             int      `json:"pid"`
	CAFile          string   `json:"tlsCAFile,omitempty"`
	CertificateFile string   `json:"tlsCertificateKeyFile,omitempty"`
}

// stopWithin is how long serve waits for a deployment to stop, beyond the time that commands have
// to end. It takes milliseconds; what cannot be stopped must not keep the process.
const stopWithin = 2 * time.Second

// stop ends a deployment in bounded time and returns the exit status.
func (f *serveFlags) stop(d *mongotest.Deployment, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), f.drain)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.Shutdown(ctx) }()
	late := time.NewTimer(f.drain + stopWithin)
	defer late.Stop()
	select {
	case err := <-done:
		if err != nil {
			fmt.Fprintf(stderr, "allium serve: commands were interrupted after %v\n", f.drain)
		}
		return 0
	case <-late.C:
		fmt.Fprintf(stderr, "allium serve: the deployment does not stop; leaving without it\n")
		return 1
	}
}

// serve runs a deployment until the context ends. It prints the connection string when the
// deployment is ready, and where certificates are to the error output.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fail := func(status int, err error) int {
		fmt.Fprintf(stderr, "allium serve: %v\n", err)
		return status
	}
	f, status, done := parseServe(args, stdout, stderr)
	if done {
		return status
	}
	opts, err := f.options(stderr)
	if err != nil {
		return fail(2, err)
	}
	if f.parent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		parent := os.Getppid() // before anything else: a parent that is gone by then is not noticed
		go func() {
			awaitEnd(ctx, parent)
			cancel()
		}()
	}
	contents, err := f.contents(ctx, stderr)
	if err != nil {
		return fail(misused, err)
	}
	d, err := mongotest.Open(append(opts, contents...)...)
	if err != nil {
		f.release()
		return fail(statusOf(err), f.explain(err))
	}
	defer f.release()
	uri := d.URI()
	line := ready{Hosts: d.Hosts(), PID: os.Getpid()}
	if f.tls {
		dir, err := os.MkdirTemp("", "allium-serve-")
		if err != nil {
			d.Stop()
			return fail(1, err)
		}
		defer os.RemoveAll(dir)
		ca, client, err := d.WriteTLSFiles(dir)
		if err != nil {
			d.Stop()
			return fail(1, err)
		}
		line.CAFile, line.CertificateFile = ca, client
		uri += "&tlsCAFile=" + url.QueryEscape(ca) + "&tlsCertificateKeyFile=" + url.QueryEscape(client)
		fmt.Fprintf(stderr, "allium serve: certificate authority: %s\nallium serve: a client's certificate and key: %s\n", ca, client)
	}
	line.URI = uri
	if f.given["sharded"] || f.given["load-balanced"] {
		line.SingleMongosURI = d.SingleMongosURI() + strings.TrimPrefix(uri, d.URI())
		if len(d.Nodes()) > 1 {
			line.MultiMongosURI = uri
		}
	}
	if f.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetEscapeHTML(false)
		encoder.Encode(line)
	} else {
		if line.MultiMongosURI != "" {
			fmt.Fprintf(stderr, "allium serve: single mongos: %s\nallium serve: multiple mongoses: %s\n", line.SingleMongosURI, line.MultiMongosURI)
		}
		fmt.Fprintln(stdout, uri)
	}
	<-ctx.Done()
	kept := f.keep(d)
	status = f.stop(d, stderr)
	if kept != nil {
		return fail(1, kept)
	}
	return status
}
