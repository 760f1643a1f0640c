package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"allium/bson"
	"allium/cmd/allium/internal/certfile"
	"allium/cmd/allium/internal/environ"
	"allium/cmd/allium/internal/serverlog"
	"allium/mongotest"
	"allium/mongotest/search"
)

// serveFlags are the command line of allium serve.
type serveFlags struct {
	given           map[string]bool // the flags that are there
	standalone      bool
	replset         string
	sharded         string
	shardMembers    int
	loadBalanced    int
	version         string
	like            string
	auth            string
	bind            []string
	unauthenticated bool
	advertise       string
	parameters      []parameterFlag
	tls             bool
	certificate     certfile.Files
	noScripting     bool
	search          time.Duration
	port            int
	json            bool
	readyFile       string
	logForm         string
	parent          bool
	drain           time.Duration
	verbose         bool
	seed            []string
	scripts         string
	data            string

	getenv   func(string) string
	initial  environ.Initial
	root     account           // of the command line or the environment
	loaded   certfile.Loaded   // of certificate
	store    dataStore         // of data
	defaults map[string]bson.D // the parameters that the deployment started with
	disk     disk              // where data is; nothing: the system's
	log      *slog.Logger      // nil: lines of text
}

// parameterFlag is a server parameter of the command line.
type parameterFlag struct {
	name  string
	value bson.RawValue
}

// serveVariable is the variable of the environment with flags that come before those of the command
// line: for services of a workflow, which take variables alone.
const serveVariable = "ALLIUM_SERVE"

// parseServe reads the command line. It returns done if there is nothing to serve: the flags are
// wrong, or help was asked for.
func parseServe(args []string, stdout, stderr io.Writer) (f *serveFlags, status int, done bool) {
	f = &serveFlags{given: map[string]bool{}, getenv: os.Getenv}
	fs := flag.NewFlagSet("allium serve", flag.ContinueOnError)
	f.register(fs)
	fs.SetOutput(io.Discard)
	err := fs.Parse(strings.Fields(os.Getenv(serveVariable)))
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		err = fmt.Errorf("%s: %w", serveVariable, err)
	}
	if err == nil {
		err = fs.Parse(args)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, help(context.Background(), []string{"serve"}, stdout, stderr), true
	case err != nil: // one line: what starts a service shows it
		fmt.Fprintf(stderr, "allium serve: %v (allium help serve)\n", err)
		return nil, misused, true
	}
	fs.Visit(func(g *flag.Flag) { f.given[g.Name] = true })
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "allium serve: unexpected argument %q (allium help serve)\n", fs.Arg(0))
		return nil, misused, true
	}
	return f, succeeded, false
}

func (f *serveFlags) register(fs *flag.FlagSet) {
	fs.BoolVar(&f.standalone, "standalone", false, "a single server without replication (the default)")
	fs.StringVar(&f.replset, "replset", "",
		"a replica set, as `NAME[:members]`; a number alone is that of the members of rs0")
	fs.StringVar(&f.sharded, "sharded", "", "a sharded cluster of `SxM`: S shards behind M mongoses, as in 2x2")
	fs.IntVar(&f.shardMembers, "shard-members", 1, "each shard is a replica set of this many `members`")
	fs.IntVar(&f.loadBalanced, "load-balanced", 0, "this many `mongoses` behind a load balancer")
	fs.StringVar(&f.version, "version", "", "server `version` to behave as, as in 7.0 or 7.0.2: one of "+
		strings.Join(series(), ", ")+" (default 8.0)")
	fs.StringVar(&f.like, "like", "", "refuse what this other `server` refuses: one of "+
		strings.Join(mongotest.Likes(), ", ")+" (with its version, unless --version says another one)")
	fs.StringVar(&f.auth, "auth", "", "require authentication, with this root user: `user:password` (or "+
		environ.Username+" and "+environ.Password+", or those with _FILE)")
	fs.Func("bind", "listen on these `hosts` in place of 127.0.0.1, separated by commas or given several times: names, addresses, or the path of a Unix socket (a folder: one for each process)", f.hosts)
	fs.BoolVar(&f.unauthenticated, "allow-unauthenticated", false,
		"let everybody who reaches the hosts of --bind do everything, if there is no --auth")
	fs.StringVar(&f.advertise, "advertise", "", "the `host` under which clients reach the processes: in the connection string and the replica set's configuration")
	fs.Func("set-parameter", "a server parameter, as `NAME=VALUE`; may be given several times", f.parameter)
	fs.BoolVar(&f.tls, "tls", false,
		"accept TLS only; the certificates are written to a temporary folder, which is printed")
	fs.StringVar(&f.certificate.Certificate, "tls-cert", "",
		"accept TLS only, with the certificate in this `file` of PEM, which is read again when it changes and on SIGHUP")
	fs.StringVar(&f.certificate.Key, "tls-key", "",
		"the `file` with the certificate's key (default: that of the certificate)")
	fs.StringVar(&f.certificate.Clients, "tls-client-ca", "",
		"clients must show a certificate of one of the authorities in this `file`")
	fs.DurationVar(&f.search, "search", 0, "search indexes are ready after this `duration` (0s: at once)")
	fs.BoolVar(&f.noScripting, "noscripting", false, "run no server-side JavaScript")
	fs.IntVar(&f.port, "port", 27017, "first `port` to listen on; further nodes take those that follow")
	fs.BoolVar(&f.json, "json", false, "print a line of JSON with the connection string, the hosts and the process instead of the string alone")
	fs.StringVar(&f.readyFile, "ready-file", "",
		"write that line into this `file` when the deployment is ready, and remove it at the end")
	fs.StringVar(&f.logForm, "log", "text",
		"the `form` of what goes to standard error: text, or json for lines as servers log them")
	fs.BoolVar(&f.parent, "parent", false, "end when the process that started this one has ended")
	fs.DurationVar(&f.drain, "drain", 500*time.Millisecond,
		"at the end let commands that run take up to this `duration`, then interrupt them")
	fs.BoolVar(&f.verbose, "v", false, "log every command")
	fs.Func("seed", "fill the deployment with the collections of this `file or folder`: {\"db.collection\": [documents]}, DB/COLLECTION.json, .csv or .bson with .meta.json beside, a dump of mongodump, compressed or not; may be given several times", f.list(&f.seed))
	fs.StringVar(&f.scripts, "init-scripts", initFolder,
		"run the .js and .json files of this `folder`, as the official images do, unless --data has collections")
	fs.StringVar(&f.data, "data", "", "read what this `folder` or archive of mongodump holds at the start, and write it there at the end")
}

// initFolder is where the official images have the scripts; there need not be any.
const initFolder = "/docker-entrypoint-initdb.d"

// hosts reads the value of --bind.
func (f *serveFlags) hosts(text string) error {
	for host := range strings.SplitSeq(text, ",") {
		host = strings.TrimSpace(host)
		if inner, ok := strings.CutPrefix(host, "["); ok {
			host = strings.TrimSuffix(inner, "]")
		}
		_, _, err := net.SplitHostPort(host)
		switch {
		case host == "":
			return errors.New("want hosts, separated by commas")
		case strings.HasPrefix(host, "/"):
		case err == nil:
			return fmt.Errorf("want a host without its port, which --port says, and not %q", host)
		case strings.ContainsAny(host, " /@"):
			return fmt.Errorf("want a name, an address or the path of a socket, and not %q", host)
		}
		f.bind = append(f.bind, host)
	}
	return nil
}

// parameter reads the value of --set-parameter: JSON where it is some, else a text.
func (f *serveFlags) parameter(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want NAME=VALUE")
	}
	v, err := bson.ParseExtJSONValue([]byte(value))
	if err != nil {
		if v, err = bson.MarshalValue(value); err != nil {
			return err
		}
	}
	f.parameters = append(f.parameters, parameterFlag{name, v})
	return nil
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
	switch f.logForm {
	case "text":
	case "json":
		f.log = slog.New(serverlog.New(stderr))
	default:
		return nil, fmt.Errorf("--log %q: want text or json", f.logForm)
	}
	if f.given["like"] && !slices.Contains(mongotest.Likes(), f.like) {
		return nil, fmt.Errorf("--like %q: want one of %s", f.like, strings.Join(mongotest.Likes(), ", "))
	}
	opts := []mongotest.Option{mongotest.Port(f.port), mongotest.Version(f.version), mongotest.Like(f.like),
		mongotest.SnapshotCommands()}
	for _, add := range []func() ([]mongotest.Option, error){f.topology, f.security, f.address} {
		more, err := add()
		if err != nil {
			return nil, err
		}
		opts = append(opts, more...)
	}
	for _, p := range f.parameters {
		opts = append(opts, mongotest.Parameter(p.name, p.value))
	}
	opts = append(opts, mongotest.SearchWith(search.Engine()))
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
		l := f.log
		if l == nil {
			l = slog.New(slog.NewTextHandler(stderr, nil))
		}
		opts = append(opts, mongotest.Log(l.With(serverlog.Component, "COMMAND")))
	}
	if f.readyFile != "" {
		if info, err := os.Stat(filepath.Dir(f.readyFile)); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--ready-file %q: want a file in a folder that exists", f.readyFile)
		}
		if err := os.Remove(f.readyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--ready-file: want a file that can be written: %w", err)
		}
	}
	return opts, nil
}

// topology says which processes there are.
func (f *serveFlags) topology() (opts []mongotest.Option, err error) {
	chosen := 0
	if f.standalone {
		chosen++
	}
	if f.given["replset"] {
		chosen++
		name, members, err := replset(f.replset)
		if err != nil {
			return nil, err
		}
		opts = append(opts, mongotest.ReplicaSet(members), mongotest.SetName(name))
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
	return opts, nil
}

// replset reads NAME[:members], or the number of members alone.
func replset(text string) (name string, members int, err error) {
	name, number, counted := strings.Cut(text, ":")
	if _, err := strconv.Atoi(text); err == nil {
		name, number, counted = "rs0", text, true
	}
	members = 1
	if counted {
		members, err = strconv.Atoi(number)
	}
	switch {
	case err != nil || name == "" || strings.ContainsAny(name, "/, "):
		return "", 0, fmt.Errorf("--replset %q: want NAME[:members], as in rs0:3", text)
	case members < 1 || members > 50:
		return "", 0, fmt.Errorf("--replset %s: want 1 to 50 members", text)
	}
	return name, members, nil
}

// security says who is let in: users and certificates.
func (f *serveFlags) security() (opts []mongotest.Option, err error) {
	if f.initial, err = environ.Read(f.getenv); err != nil {
		return nil, err
	}
	if f.given["auth"] {
		user, password, ok := strings.Cut(f.auth, ":")
		switch {
		case !ok || user == "" || password == "":
			return nil, fmt.Errorf("--auth: want user:password")
		case f.initial.Username != "":
			return nil, fmt.Errorf("--auth and %s name a root user: want one of them", environ.Username)
		}
		f.root = account{user, password}
	} else if f.initial.Username != "" {
		f.root = account{f.initial.Username, f.initial.Password}
	}
	if f.root.name != "" {
		opts = append(opts, mongotest.Auth(f.root.name, f.root.password))
	}
	if f.certificate.Certificate == "" {
		if f.certificate != (certfile.Files{}) {
			return nil, fmt.Errorf("--tls-key and --tls-client-ca: want --tls-cert, too")
		}
		if f.tls {
			opts = append(opts, mongotest.TLS())
		}
		return opts, nil
	}
	if f.tls {
		return nil, fmt.Errorf("--tls makes certificates, and --tls-cert has one: want one of them")
	}
	if f.loaded, err = f.certificate.Load(); err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	return append(opts, mongotest.TLS(), mongotest.Prepare(func(d *mongotest.Deployment) error {
		return d.UseCertificate(f.loaded.Certificate, f.loaded.Clients)
	})), nil
}

// address says where the deployment listens, and what clients are told of that.
func (f *serveFlags) address() (opts []mongotest.Option, err error) {
	var bind []string
	everywhere := false
	for _, host := range f.bind {
		if strings.HasPrefix(host, "/") {
			if info, err := os.Stat(host); err == nil && info.IsDir() {
				opts = append(opts, mongotest.UnixSockets(host))
				continue
			}
			if info, err := os.Stat(filepath.Dir(host)); err != nil || !info.IsDir() {
				return nil, fmt.Errorf("--bind %s: want a folder, or a path in a folder that exists", host)
			}
		} else if !isLoopback(host) && f.root.name == "" && !f.unauthenticated {
			return nil, fmt.Errorf("--bind %s: others reach it: want --auth, or %s and %s, or --allow-unauthenticated",
				host, environ.Username, environ.Password)
		}
		addr, err := netip.ParseAddr(host)
		everywhere = everywhere || err == nil && addr.IsUnspecified()
		bind = append(bind, host)
	}
	if len(bind) > 0 {
		opts = append(opts, mongotest.Bind(bind...))
	}
	switch {
	case strings.ContainsAny(f.advertise, ":/@, ") && !isIPv6(f.advertise), f.given["advertise"] && f.advertise == "":
		return nil, fmt.Errorf("--advertise %q: want the name or address of a host, without a port", f.advertise)
	case f.advertise != "":
		opts = append(opts, mongotest.Advertise(f.advertise))
	case everywhere && f.given["replset"]:
		return nil, fmt.Errorf(
			"--replset tells clients the hosts of its members, and --bind %s is none: want --advertise HOST, which they reach", strings.Join(f.bind, ","))
	case everywhere:
		opts = append(opts, mongotest.Advertise("127.0.0.1"))
	}
	return opts, nil
}

func isIPv6(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Is6()
}

// isLoopback reports whether only this machine reaches a host.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// statusOf returns the exit status of a deployment that did not start: what the command line, the
// environment and files say is wrong, unless it is the machine that does not allow it now.
func statusOf(err error) int {
	if errors.Is(err, syscall.EADDRINUSE) {
		return failed
	}
	return misused
}

// explain says which part of the command line the error of a deployment is about that did not
// start, and what to do.
func (f *serveFlags) explain(err error) error {
	var bad *net.AddrError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: --port chooses where to listen, and 0 stands for free ports", err)
	case errors.As(err, &bad):
		return fmt.Errorf("--port %d: the nodes take this port and those that follow, of which the last is 65535: %w",
			f.port, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("--bind, --port: want addresses of this machine, and ports that may be used: %w", err)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("--bind: want a host of this machine: %w", err)
	}
	for _, p := range f.parameters {
		if strings.Contains(err.Error(), "server parameter "+strconv.Quote(p.name)) {
			return fmt.Errorf("--set-parameter: %w", err)
		}
	}
	if f.version != "" && strings.Contains(err.Error(), strconv.Quote(f.version)) {
		return fmt.Errorf("--version: %w", err)
	}
	if strings.HasPrefix(err.Error(), "seed: ") {
		return fmt.Errorf("--%w", err)
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
			f.say(stderr, slog.LevelWarn, fmt.Sprintf("commands were interrupted after %v", f.drain))
		}
		return succeeded
	case <-late.C:
		f.say(stderr, slog.LevelError, "the deployment does not stop; leaving without it")
		return failed
	}
}

// say writes a line to the error output.
func (f *serveFlags) say(stderr io.Writer, level slog.Level, text string, attrs ...slog.Attr) {
	if f.log != nil {
		f.log.LogAttrs(context.Background(), level, text, attrs...)
		return
	}
	for _, a := range attrs {
		text += ": " + a.Value.String()
	}
	fmt.Fprintf(stderr, "allium serve: %s\n", text)
}

// serve runs a deployment until the context ends. It prints the connection string when the
// deployment is ready, and where certificates are to the error output.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, status, done := parseServe(args, stdout, stderr)
	if done {
		return status
	}
	return f.serve(ctx, stdout, stderr)
}

func (f *serveFlags) serve(ctx context.Context, stdout, stderr io.Writer) int {
	fail := func(status int, err error) int {
		f.say(stderr, slog.LevelError, err.Error())
		return status
	}
	opts, err := f.options(stderr)
	if err != nil {
		return fail(misused, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.parent {
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
	defer f.release()
	d, err := mongotest.Open(append(opts, contents...)...)
	if err != nil {
		if ctx.Err() != nil {
			return succeeded // it was told to end before it was ready
		}
		return fail(statusOf(err), f.explain(err))
	}
	uri := d.URI()
	line := ready{Hosts: d.Hosts(), PID: os.Getpid()}
	if f.tls {
		dir, err := os.MkdirTemp("", "allium-serve-")
		if err != nil {
			d.Stop()
			return fail(failed, err)
		}
		defer os.RemoveAll(dir)
		ca, client, err := d.WriteTLSFiles(dir)
		if err != nil {
			d.Stop()
			return fail(failed, err)
		}
		line.CAFile, line.CertificateFile = ca, client
		uri += "&tlsCAFile=" + url.QueryEscape(ca) + "&tlsCertificateKeyFile=" + url.QueryEscape(client)
		f.say(stderr, slog.LevelInfo, "certificate authority", slog.String("file", ca))
		f.say(stderr, slog.LevelInfo, "a client's certificate and key", slog.String("file", client))
	}
	line.URI = uri
	if f.given["sharded"] || f.given["load-balanced"] {
		line.SingleMongosURI = d.SingleMongosURI() + strings.TrimPrefix(uri, d.URI())
		if len(d.Nodes()) > 1 {
			line.MultiMongosURI = uri
		}
	}
	if f.certificate.Certificate != "" {
		defer f.watchCertificate(d, stderr)()
	}
	if err := f.announce(line, stdout, stderr); err != nil {
		d.Stop()
		return fail(misused, err)
	}
	select {
	case <-ctx.Done():
	case <-d.Done():
	}
	if f.readyFile != "" {
		os.Remove(f.readyFile)
	}
	f.logOnly(slog.LevelInfo, "told to end")
	kept := f.keep(d)
	status := f.stop(d, stderr)
	if kept != nil {
		return fail(failed, kept)
	}
	f.logOnly(slog.LevelInfo, "ended")
	return status
}

// logOnly writes a line if lines are for programs.
func (f *serveFlags) logOnly(level slog.Level, text string, attrs ...slog.Attr) {
	if f.log != nil {
		f.log.LogAttrs(context.Background(), level, text, attrs...)
	}
}

// announce says that the deployment is ready, on the output and in a file.
func (f *serveFlags) announce(line ready, stdout, stderr io.Writer) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return err
	}
	if f.readyFile != "" {
		// It has passwords, and is whole as soon as it is there.
		half := f.readyFile + ".new"
		err := os.WriteFile(half, text.Bytes(), 0o600)
		if err == nil {
			err = os.Rename(half, f.readyFile)
		}
		if err != nil {
			return fmt.Errorf("--ready-file: want a file that can be written: %w", err)
		}
	}
	f.logOnly(slog.LevelInfo, "ready", slog.String("hosts", strings.Join(line.Hosts, ",")), slog.Int("pid", line.PID))
	if f.json {
		_, err := stdout.Write(text.Bytes())
		return err
	}
	if line.MultiMongosURI != "" {
		f.say(stderr, slog.LevelInfo, "single mongos", slog.String("uri", line.SingleMongosURI))
		f.say(stderr, slog.LevelInfo, "multiple mongoses", slog.String("uri", line.MultiMongosURI))
	}
	_, err := fmt.Fprintln(stdout, line.URI)
	return err
}

// watchCertificate gives the deployment the certificate in the files whenever they change. The
// function that it returns ends that.
func (f *serveFlags) watchCertificate(d *mongotest.Deployment, stderr io.Writer) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(time.Second)
	now := make(chan os.Signal, 1)
	signal.Notify(now, syscall.SIGHUP)
	go func() {
		defer close(ended)
		f.certificate.Watch(done, tick.C, now, func(l certfile.Loaded, err error) {
			if err == nil {
				err = d.UseCertificate(l.Certificate, l.Clients)
			}
			if err != nil {
				f.say(stderr, slog.LevelError, "--tls-cert: the certificate stays what it was: "+err.Error())
				return
			}
			f.say(stderr, slog.LevelInfo, "the certificate was read again")
		})
	}()
	return func() {
		signal.Stop(now)
		tick.Stop()
		close(done)
		<-ended
	}
}
