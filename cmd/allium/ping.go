package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/auth"
	"allium/internal/conn"
	"allium/internal/dns"
	"allium/internal/uri"
	"allium/internal/wire"
)

// ping connects to every server of a deployment, one step after the other, and prints what it
// finds. Unlike a client it does not try again: the first error of a server is the answer.
func ping(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("allium ping", flag.ContinueOnError)
	fs.SetOutput(stderr)
	timeout := fs.Duration("timeout", 10*time.Second, "give up on a server after this `duration`")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if fs.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: allium ping [flags] URI")
		return 2
	}
	cfg, connections, err := prepare(ctx, fs.Arg(0), *timeout)
	if err != nil {
		fmt.Fprintf(stderr, "allium ping: %v\n", err)
		return 1
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(stderr, "allium ping: warning: %s\n", w)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	header := "SERVER\tTYPE\tROUND TRIP\tWIRE VERSION\tCOMPRESSORS\tTLS\tAUTHENTICATION\n"
	status := 0
	direct := cfg.Direct != nil && *cfg.Direct || cfg.LoadBalanced != nil && *cfg.LoadBalanced
	known := slices.Clone(cfg.Hosts)
	for i := 0; i < len(known); i++ { // known grows by the members that the servers name
		d, line, err := pingServer(ctx, known[i], connections, *timeout)
		if err == nil && cfg.ReplicaSet != "" && d.SetName != cfg.ReplicaSet {
			err = fmt.Errorf("server %s belongs to the replica set %q, not to %q", known[i], d.SetName, cfg.ReplicaSet)
		}
		if err != nil {
			fmt.Fprintf(stderr, "allium ping: %v\n", err)
			status = 1
			continue
		}
		fmt.Fprintln(w, header+line)
		header = ""
		for _, member := range d.Members() {
			if !direct && !slices.Contains(known, member) {
				known = append(known, member)
			}
		}
	}
	w.Flush()
	return status
}

// prepare turns a connection string into what connections have in common, and asks DNS if the
// string says so.
func prepare(ctx context.Context, connectionString string, timeout time.Duration) (*uri.Config, *conn.Config, error) {
	cfg, err := uri.Parse(connectionString)
	if err != nil {
		return nil, nil, err
	}
	if cfg.SRVHost != "" {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		list, err := dns.Lookup(ctx, nil, cfg.SRVServiceName, cfg.SRVHost)
		if err != nil {
			return nil, nil, err
		}
		limit := 0
		if cfg.SRVMaxHosts != nil {
			limit = *cfg.SRVMaxHosts
		}
		if err := cfg.ApplySRV(dns.Limit(list.Hosts, limit), list.TXT); err != nil {
			return nil, nil, err
		}
	}
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	if cfg.Compressors == nil {
		cfg.Compressors = []string{"zstd", "snappy", "zlib"} // a server names those of them that it has
	}
	c := &conn.Config{
		Compressors: cfg.Compressors, ZlibLevel: cfg.ZlibCompressionLevel,
		LoadBalanced: cfg.LoadBalanced != nil && *cfg.LoadBalanced, ConnectTimeout: timeout,
	}
	if c.Metadata, err = conn.NewMetadata(cmp.Or(cfg.AppName, "allium ping")); err != nil {
		return nil, nil, err
	}
	if cfg.Proxy.Host != "" {
		if c.Dialer, err = conn.NewProxyDialer(&cfg.Proxy, nil); err != nil {
			return nil, nil, err
		}
	}
	if cfg.TLSEnabled() {
		if c.TLSConfig, err = conn.NewTLSConfig(&cfg.TLSIs); err != nil {
			return nil, nil, err
		}
	}
	if cfg.Credential != nil {
		if c.Authenticator, err = auth.New(cfg.Credential, auth.Options{}); err != nil {
			return nil, nil, err
		}
	}
	return cfg, c, nil
}

// pingServer makes a connection, sends a ping and describes the server in a line.
func pingServer(ctx context.Context, addr string, cfg *conn.Config, timeout time.Duration) (*event.ServerDescription, string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := conn.Dial(ctx, addr, cfg)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	msg := wire.AppendMsg(nil, wire.NextRequestID(), 0, 0)
	body, msg := bson.BeginDocument(msg)
	msg = bson.AppendInt32(msg, "ping", 1)
	msg = bson.AppendString(msg, "$db", "admin")
	msg = wire.FinishMessage(bson.EndDocument(msg, body), 0)
	start := time.Now()
	r, err := c.RoundTrip(ctx, msg)
	if err != nil {
		return nil, "", err
	}
	roundTrip := time.Since(start)
	r.Release()
	d := c.Hello()
	security := "none"
	if state := c.TLS(); state != nil {
		security = strings.TrimPrefix(tls.VersionName(state.Version), "TLS ")
	}
	line := fmt.Sprintf("%s\t%s\t%v\t%d\t%s\t%s\t%s", addr, d.Kind, roundTrip.Round(10*time.Microsecond), d.MaxWireVersion,
		cmp.Or(strings.Join(d.Compressors, ","), "none"), security, cmp.Or(c.Mechanism(), "none"))
	return d, line, nil
}
