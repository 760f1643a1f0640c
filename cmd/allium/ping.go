package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"allium/bson"
	"allium/internal/auth"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/uri"
	"allium/internal/wire"
)

// pingFlags are the command line of allium ping.
type pingFlags struct {
	timeout  time.Duration
	count    int
	interval time.Duration
	json     bool
}

func (f *pingFlags) register(fs *flag.FlagSet) {
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "give up on a server after this `duration`")
	fs.IntVar(&f.count, "count", 1, "send this `number` of pings to each server; 0 means until interrupted")
	fs.DurationVar(&f.interval, "interval", time.Second, "wait this `duration` between two pings")
	fs.BoolVar(&f.json, "json", false, "print a JSON object for each server on a line of its own")
}

// pinged is what a server said.
type pinged struct {
	Server         string    `json:"server"`
	Type           string    `json:"type,omitempty"`
	SetName        string    `json:"setName,omitempty"`
	RoundTripMS    float64   `json:"roundTripMS,omitempty"` // the shortest
	RoundTripsMS   []float64 `json:"roundTripsMS,omitempty"`
	MaxWireVersion int32     `json:"maxWireVersion,omitempty"`
	Compressors    []string  `json:"compressors,omitempty"`
	TLS            string    `json:"tls,omitempty"`
	Authentication string    `json:"authentication,omitempty"`
	Error          string    `json:"error,omitempty"`

	members []string
	trips   []time.Duration
}

// ping connects to every server of a deployment, one step after the other, and prints what it
// finds. Unlike a client it does not try again: the first error of a server is the answer.
func ping(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium ping"
	var f pingFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	switch {
	case fs.NArg() != 1:
		return misuse(name, stderr, "want one connection string")
	case f.count < 0 || f.interval < 0 || f.timeout <= 0:
		return misuse(name, stderr, "-count and -interval must not be negative, and -timeout must be positive")
	}
	cfg, connections, err := prepare(ctx, fs.Arg(0), f.timeout)
	if err != nil {
		return fail(name, stderr, err)
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(stderr, "%s: warning: %s\n", name, w)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	header := "SERVER\tTYPE\tROUND TRIP\tWIRE VERSION\tCOMPRESSORS\tTLS\tAUTHENTICATION\n"
	status := succeeded
	direct := cfg.Direct != nil && *cfg.Direct || cfg.LoadBalanced != nil && *cfg.LoadBalanced
	known := slices.Clone(cfg.Hosts)
	enc := json.NewEncoder(stdout)
	for i := 0; i < len(known); i++ { // known grows by the members that the servers name
		p, err := pingServer(ctx, known[i], connections, &f)
		if err == nil && cfg.ReplicaSet != "" && p.SetName != cfg.ReplicaSet {
			err = fmt.Errorf("server %s belongs to the replica set %q, not to %q", known[i], p.SetName, cfg.ReplicaSet)
		}
		if err != nil {
			status = failed
			p.Error = err.Error()
			fmt.Fprintf(stderr, "%s: %v\n", name, err)
		}
		switch {
		case f.json:
			enc.Encode(p)
		case err == nil:
			fmt.Fprintln(w, header+p.line())
			header = ""
		}
		for _, member := range p.members {
			if err == nil && !direct && !slices.Contains(known, member) {
				if len(known) == len(cfg.Hosts)+maxMembers {
					status = failed
					fmt.Fprintf(stderr, "%s: %v\n", name, errManyMembers)
					break
				}
				known = append(known, member)
			}
		}
	}
	w.Flush()
	return status
}

// maxMembers is how many members a replica set has at most. Servers that name more, beside the
// hosts of the connection string, would lead from one to the next without end.
const maxMembers = 50

var errManyMembers = fmt.Errorf(
	"the servers name more than %d further members, which no replica set has: the rest is left out", maxMembers)

// line describes a server in the columns of the table.
func (p *pinged) line() string {
	trips := p.trips[0].Round(10 * time.Microsecond).String()
	if n := len(p.trips); n > 1 {
		sum := time.Duration(0)
		for _, d := range p.trips {
			sum += d
		}
		round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
		trips = fmt.Sprintf("%d: %v least, %v mean, %v most", n, round(slices.Min(p.trips)),
			round(sum/time.Duration(n)), round(slices.Max(p.trips)))
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", p.Server, p.Type, trips, p.MaxWireVersion,
		cmp.Or(strings.Join(p.Compressors, ","), "none"), cmp.Or(p.TLS, "none"), cmp.Or(p.Authentication, "none"))
}

// prepare turns a connection string into what connections have in common, and asks DNS if the
// string says so.
func prepare(ctx context.Context, connectionString string, timeout time.Duration) (*uri.Config, *conn.Config, error) {
	cfg, err := uri.Parse(connectionString)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return prepareConfig(ctx, cfg, timeout)
}

// connect returns what connections have in common.
func connect(cfg *uri.Config, timeout time.Duration) (*uri.Config, *conn.Config, error) {
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
	var err error
	if c.Metadata, err = conn.NewMetadata(cmp.Or(cfg.AppName, "allium")); err != nil {
		return nil, nil, err
	}
	if cfg.Proxy.Host != "" {
		if c.Dialer, err = conn.NewProxyDialer(&cfg.Proxy, nil); err != nil {
			return nil, nil, err
		}
	}
	if cfg.TLSEnabled() {
		if c.TLS, err = conn.NewTLS(&cfg.TLSIs, nil); err != nil {
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

// pingServer makes a connection, sends pings and describes the server.
func pingServer(ctx context.Context, addr string, cfg *conn.Config, f *pingFlags) (*pinged, error) {
	p := &pinged{Server: addr}
	dialing, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	c, err := conn.Dial(dialing, addr, cfg)
	if err != nil {
		return p, err
	}
	defer c.Close()
	d := c.Hello()
	p.Type, p.SetName, p.MaxWireVersion, p.Compressors, p.members = d.Kind.String(), d.SetName, d.MaxWireVersion,
		d.Compressors, d.Members()
	p.Authentication = c.Mechanism()
	if state := c.TLS(); state != nil {
		p.TLS = strings.TrimPrefix(tls.VersionName(state.Version), "TLS ")
	}
	for n := 0; n < f.count || f.count == 0; n++ {
		if n > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(f.interval):
			}
		}
		if ctx.Err() != nil && n > 0 {
			break // what was measured counts
		}
		within, cancel := context.WithTimeout(ctx, f.timeout)
		start := time.Now()
		_, err := command(within, c, "admin", bson.D{{Key: "ping", Value: 1}})
		cancel()
		if err != nil {
			return p, err
		}
		trip := time.Since(start)
		p.trips = append(p.trips, trip)
		p.RoundTripsMS = append(p.RoundTripsMS, float64(trip.Microseconds())/1000)
	}
	p.RoundTripMS = slices.Min(p.RoundTripsMS)
	return p, nil
}

// command runs a command on a connection and returns the reply, or the error that it stands for.
func command(ctx context.Context, c *conn.Conn, db string, cmd bson.D) (bson.Raw, error) {
	msg := wire.AppendMsg(nil, wire.NextRequestID(), 0, 0)
	msg, err := bson.MarshalAppend(msg, append(cmd[:len(cmd):len(cmd)], bson.E{Key: "$db", Value: db}))
	if err != nil {
		return nil, err
	}
	r, err := c.RoundTrip(ctx, wire.FinishMessage(msg, 0))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	reply := slices.Clone(r.Body)
	if !reply.Lookup("ok").AsBool() {
		return nil, failure.NewServerError(cmd[0].Key, c.Addr(), reply)
	}
	return reply, nil
}
