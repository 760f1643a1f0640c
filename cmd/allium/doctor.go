package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/dns"
	"allium/internal/uri"
	"allium/mongoerr"
)

// doctorFlags are the command line of allium doctor.
type doctorFlags struct {
	timeout time.Duration
	json    bool
	quiet   bool
}

func (f *doctorFlags) register(fs *flag.FlagSet) {
	fs.DurationVar(&f.timeout, "timeout", 5*time.Second, "give up on each step after this `duration`")
	fs.BoolVar(&f.json, "json", false, "print each finding as a JSON object on a line of its own")
	fs.BoolVar(&f.quiet, "quiet", false, "leave out what is well")
}

// The levels of findings.
const (
	levelOK   = "ok"
	levelWarn = "warn"
	levelFail = "fail"
)

// finding is something that the doctor has found out.
type finding struct {
	Level   string `json:"level"`
	Check   string `json:"check"`             // "options", "dns", "tcp", "tls", "hello", "authentication", ...
	Subject string `json:"subject,omitempty"` // the server
	Text    string `json:"text"`
	Do      string `json:"do,omitempty"` // what to do about it
}

// patient is a deployment under examination.
type patient struct {
	flags    doctorFlags
	cfg      *uri.Config
	conn     *conn.Config
	report   func(finding)
	servers  map[string]*examined
	order    []string
	versions map[string][]string
	flavours map[string]bool // those that were told of
	many     bool            // it was told that servers name too many members
}

// examined is what is known of a server.
type examined struct {
	d       *event.ServerDescription
	hello   bson.Raw
	latency time.Duration
	reached bool
}

func (p *patient) ok(check, subject, format string, args ...any) {
	p.report(finding{levelOK, check, subject, fmt.Sprintf(format, args...), ""})
}

func (p *patient) warn(check, subject, do, format string, args ...any) {
	p.report(finding{levelWarn, check, subject, fmt.Sprintf(format, args...), do})
}

func (p *patient) fail(check, subject, do, format string, args ...any) {
	p.report(finding{levelFail, check, subject, fmt.Sprintf(format, args...), do})
}

// doctor looks at a deployment layer by layer: options, names, connections, TLS, authentication,
// and what the servers say of themselves and of each other. It writes nothing to the deployment. It
// returns failed if something keeps the deployment from being used.
func doctor(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium doctor"
	p := &patient{servers: map[string]*examined{}, versions: map[string][]string{}, flavours: map[string]bool{}}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	p.flags.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	if fs.NArg() != 1 || p.flags.timeout <= 0 {
		return misuse(name, stderr, "want one connection string, and a positive -timeout")
	}
	counts := map[string]int{}
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	p.report = func(f finding) {
		counts[f.Level]++
		switch {
		case f.Level == levelOK && p.flags.quiet:
		case p.flags.json:
			enc.Encode(f)
		default:
			fmt.Fprintf(stdout, "%-4s  %-14s  %s%s\n", f.Level, f.Check, prefix(f.Subject), f.Text)
			if f.Do != "" {
				fmt.Fprintf(stdout, "      %-14s  -> %s\n", "", f.Do)
			}
		}
	}
	p.examine(ctx, fs.Arg(0))
	if !p.flags.json {
		fmt.Fprintf(stdout, "%s, %s, %s passed\n", count(counts[levelFail], "failure"),
			count(counts[levelWarn], "warning"), count(counts[levelOK], "check"))
	}
	if counts[levelFail] > 0 {
		return failed
	}
	return succeeded
}

func prefix(subject string) string {
	if subject == "" {
		return ""
	}
	return subject + ": "
}

// within bounds a step.
func (p *patient) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.flags.timeout)
}

func (p *patient) examine(ctx context.Context, connectionString string) {
	cfg, err := uri.Parse(connectionString)
	if err != nil {
		p.fail("options", "", "Correct the connection string; docs/connecting.md lists what it may hold.", "%v", err)
		return
	}
	p.cfg = cfg
	srv := cfg.SRVHost != ""
	within, cancel := p.within(ctx)
	_, connections, err := prepareConfig(within, cfg, p.flags.timeout)
	cancel()
	for _, w := range cfg.Warnings {
		p.warn("options", "", "Correct or remove the option.", "%s", w)
	}
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup) || err != nil && srv && len(cfg.Hosts) == 0:
		p.fail("dns", cfg.SRVHost, "Check the name and the name server, or use a mongodb:// string with the hosts.",
			"%v", err)
		return
	case err != nil:
		p.fail("options", "", "Correct the connection string; docs/connecting.md lists what it may hold.", "%v", err)
		return
	case srv:
		p.ok("dns", cfg.SRVHost, "SRV records name %s", strings.Join(cfg.Hosts, ", "))
	}
	p.conn = connections
	p.options()
	for _, host := range cfg.Hosts {
		p.add(host)
		p.flavour(host, nil) // that a server cannot be reached from here is no reason to keep it back
	}
	direct := cfg.Direct != nil && *cfg.Direct || cfg.LoadBalanced != nil && *cfg.LoadBalanced
	for i := 0; i < len(p.order); i++ { // it grows by the members that the servers name
		addr := p.order[i]
		p.server(ctx, addr)
		if d := p.servers[addr].d; d != nil && !direct {
			p.addMembers(d.Members())
		}
	}
	p.topology()
	p.versionsAgree()
	p.writeConcern()
}

// addMembers adds the members that a server names.
func (p *patient) addMembers(members []string) {
	for _, member := range members {
		if p.servers[member] == nil && len(p.order) == len(p.cfg.Hosts)+maxMembers {
			if !p.many {
				p.many = true
				p.fail("topology", "", "Look at what is in the place of the servers: rs.status() has the members.",
					"%v", errManyMembers)
			}
			return
		}
		p.add(member)
	}
}

func (p *patient) add(addr string) {
	if p.servers[addr] == nil {
		p.servers[addr] = &examined{}
		p.order = append(p.order, addr)
	}
}

// options looks for settings that hurt.
func (p *patient) options() {
	c := p.cfg
	is := func(b *bool) bool { return b != nil && *b }
	not := func(b *bool) bool { return b != nil && !*b }
	for _, o := range []struct {
		hurts    bool
		text, do string
	}{
		{is(c.TLSIs.Insecure) || is(c.TLSIs.AllowInvalidCertificates),
			"the server's certificate is not checked: whoever is in between can read and change everything",
			"Remove tlsInsecure and tlsAllowInvalidCertificates, and set tlsCAFile."},
		{is(c.TLSIs.AllowInvalidHostnames), "the name in the server's certificate is not checked",
			"Remove tlsAllowInvalidHostnames."},
		{!c.TLSEnabled() && !local(c.Hosts), "connections to other machines are not encrypted",
			"Set tls=true, and give the servers certificates."},
		{not(c.RetryWrites) && !slices.ContainsFunc(c.Hosts, func(addr string) bool {
			f := flavourOf(addr, nil)
			return f != nil && f.refuses
		}), "writes are not tried again after a failover",
			"Remove retryWrites=false unless the storage engine needs it."},
		{not(c.RetryReads), "reads are not tried again after a failover", "Remove retryReads=false."},
		{c.W == 0, "writes are not acknowledged: errors are lost", "Remove w=0."},
		{c.W == 1, "writes are acknowledged by the primary alone: a failover can undo them",
			"Remove w=1, or set w=majority."},
		{not(c.Journal), "writes are acknowledged before they are in the journal: a crash can undo them",
			"Remove journal=false."},
		{c.MaxPoolSize != nil && (*c.MaxPoolSize == 0 || *c.MaxPoolSize > 1000),
			"there is almost no bound on connections: a slow server gets ever more of them",
			"Set maxPoolSize to what the server can bear from this client; the default is 100."},
		{c.MaxPoolSize != nil && *c.MaxPoolSize > 0 && *c.MaxPoolSize < 5,
			"the pool is very small: operations wait for each other", "Raise maxPoolSize; the default is 100."},
		{c.Timeout == nil, "operations have no timeout: a server that does not answer holds them for as long as their context allows",
			"Set timeoutMS, or see to it that every context has a deadline."},
		{c.SocketTimeout != nil, "socketTimeoutMS breaks connections under slow operations",
			"Replace it by timeoutMS."},
		{c.WaitQueueTimeout != nil, "waitQueueTimeoutMS is deprecated", "Replace it by timeoutMS."},
		{is(c.Direct), "the connection is direct: there is no failover",
			"Remove directConnection=true unless this server alone is meant."},
		{c.ConnectTimeout != nil && *c.ConnectTimeout > 0 && *c.ConnectTimeout < 500*time.Millisecond,
			"connectTimeoutMS is very short: a TLS handshake over a long way takes several round trips",
			"Raise it; the default is 10 seconds."},
	} {
		if o.hurts {
			p.warn("options", "", o.do, "%s", o.text)
		}
	}
}

// local reports whether all hosts are on this machine.
func local(hosts []string) bool {
	for _, addr := range hosts {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			host = addr
		}
		if ip := net.ParseIP(host); host != "localhost" && !strings.HasSuffix(host, ".sock") &&
			(ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// server looks at one server, from the network up.
func (p *patient) server(ctx context.Context, addr string) {
	if !p.network(ctx, addr) {
		return
	}
	within, cancel := p.within(ctx)
	defer cancel()
	c, err := conn.Dial(within, addr, p.conn)
	if err != nil {
		p.refused(addr, err)
		return
	}
	defer c.Close()
	s := p.servers[addr]
	s.d, s.reached = c.Hello(), true
	p.certificate(addr, c)
	if m := c.Mechanism(); m != "" {
		p.ok("authentication", addr, "with %s", m)
	}
	name := "hello"
	if s.d.MaxWireVersion < 9 {
		name = "isMaster"
	}
	start := time.Now()
	if s.hello, err = command(within, c, "admin", bson.D{{Key: name, Value: 1}}); err != nil {
		p.fail("hello", addr, "Look into the server's log.", "%v", err)
		return
	}
	p.clock(addr, s.hello, start, time.Since(start))
	p.latency(ctx, addr, c)
	p.version(within, addr, c)
	if p.conn.Authenticator == nil && s.d.Kind != event.RSArbiter {
		if _, err := command(within, c, "admin", bson.D{{Key: "listDatabases", Value: 1},
			{Key: "nameOnly", Value: true}}); mongoerr.HasCode(err, unauthorized) {
			p.fail("authentication", addr, "Put a user and a password into the connection string: mongodb://user:password@host/?authSource=admin.",
				"the server requires authentication, and the connection string has no user")
		}
	}
}

// unauthorized is the code of a command that needs authentication, or a right.
const unauthorized = 13

// network looks up the server's name and connects to it.
func (p *patient) network(ctx context.Context, addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || p.cfg.Proxy.Host != "" { // a socket in the file system, or a name that the proxy looks up
		return true
	}
	within, cancel := p.within(ctx)
	defer cancel()
	if net.ParseIP(host) == nil {
		addrs, err := net.DefaultResolver.LookupHost(within, host)
		if err != nil {
			do := "Check the name, and the name server of this machine."
			if p.named(addr) {
				do = "The members of a replica set name this host: clients must be able to look it up. Use names in the set's configuration that " +
					"are known everywhere, or directConnection=true to look at one server."
			}
			p.fail("dns", addr, do, "%v", lookupError(err))
			return false
		}
		p.ok("dns", addr, "%s", strings.Join(addrs, ", "))
	}
	start := time.Now()
	var d net.Dialer
	nc, err := d.DialContext(within, "tcp", addr)
	if err != nil {
		do := "Check that the server runs, that it listens on this address (net.bindIp), and that no firewall is in between."
		if p.named(addr) {
			do = "This member is down or cannot be reached from here: " + lower(do)
		}
		p.fail("tcp", addr, do, "%v", lookupError(err))
		return false
	}
	nc.Close()
	p.ok("tcp", addr, "connected within %v", time.Since(start).Round(10*time.Microsecond))
	return true
}

// named reports whether a server is one that another server names, and not the connection string.
func (p *patient) named(addr string) bool { return !slices.Contains(p.cfg.Hosts, addr) }

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// lookupError returns the cause of an error of package net without what is said already.
func lookupError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return lookupError(op.Err)
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(name.Err)
	}
	return err
}

// refused says why there is no connection of the driver's to a server that listens.
func (p *patient) refused(addr string, err error) {
	var auth *mongoerr.AuthError
	var refused *mongoerr.ConnectionError
	var late *mongoerr.TimeoutError
	switch {
	case errors.As(err, &auth):
		do := "Check user, password and authSource, the database that the user was created in."
		if auth.Mechanism != "" && auth.Mechanism != "SCRAM-SHA-256" && auth.Mechanism != "SCRAM-SHA-1" {
			do = "Check the credential and the properties of the mechanism; docs/connecting.md describes them."
		}
		p.fail("authentication", addr, do, "%v", err)
	case errors.As(err, &refused) && refused.Op == "TLS handshake":
		do := "Check the server's certificate and tlsCAFile."
		var unknown x509.UnknownAuthorityError
		var name x509.HostnameError
		var invalid x509.CertificateInvalidError
		var noTLS tls.RecordHeaderError
		switch {
		case errors.As(err, &unknown):
			do = "Set tlsCAFile to the certificate of the authority that signed the server's."
		case errors.As(err, &name):
			do = "Connect to a name that the certificate has, or have a certificate made for this one."
		case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
			do = "Renew the server's certificate, or correct the clock of this machine."
		case errors.As(err, &noTLS) || errors.Is(err, io.EOF):
			do = "The server does not seem to use TLS: set tls=false, or have it use TLS."
		}
		p.fail("tls", addr, do, "%v", err)
	case errors.As(err, &refused) && p.conn.TLS == nil && errors.Is(err, io.EOF):
		p.fail("hello", addr, "The server may require TLS: set tls=true.", "%v", err)
	case errors.As(err, &refused) && conn.IsProtocolError(err):
		p.fail("hello", addr, "Something else listens on this port: check host and port.", "%v", err)
	case errors.As(err, &late):
		p.fail("hello", addr, "The server accepts connections and does not answer: look at its load and its log, and at proxies in between.", "%v", err)
	default:
		p.fail("hello", addr, "Look into the server's log.", "%v", err)
	}
}

// soon is how early the end of a certificate is worth a warning.
const soon = 30 * 24 * time.Hour

// certificate looks at the dates of the server's certificates.
func (p *patient) certificate(addr string, c *conn.Conn) {
	state := c.TLS()
	if state == nil || len(state.PeerCertificates) == 0 {
		return
	}
	first := state.PeerCertificates[0]
	for _, cert := range state.PeerCertificates {
		if cert.NotAfter.Before(first.NotAfter) {
			first = cert
		}
	}
	version, until := strings.TrimPrefix(tls.VersionName(state.Version), "TLS "),
		first.NotAfter.UTC().Format(time.DateOnly)
	switch left := time.Until(first.NotAfter); {
	case left < 0:
		p.fail("tls", addr, "Renew the certificate; it is accepted only because it is not checked.",
			"certificate of %q expired on %s", first.Subject.CommonName, until)
	case left < soon:
		p.warn("tls", addr, "Renew the certificate.", "certificate of %q expires on %s", first.Subject.CommonName,
			until)
	default:
		p.ok("tls", addr, "TLS %s, certificate valid until %s", version, until)
	}
}

// maxSkew is how far clocks may be apart.
const maxSkew = time.Second

// clock compares the server's clock with this machine's.
func (p *patient) clock(addr string, hello bson.Raw, sent time.Time, took time.Duration) {
	theirs, ok := hello.Lookup("localTime").DateTime()
	if !ok {
		return
	}
	skew := theirs.Time().Sub(sent.Add(took / 2)).Round(time.Millisecond)
	if skew.Abs() > maxSkew+took {
		p.warn("clock", addr, "Synchronise the clocks (NTP): times in logs, TTL indexes, certificates and sessions depend on them.",
			"the server's clock is %v off this machine's", skew)
		return
	}
	p.ok("clock", addr, "%v off this machine's", skew)
}

// far is a round trip that is worth a warning.
const far = 100 * time.Millisecond

// latency measures the round trip.
func (p *patient) latency(ctx context.Context, addr string, c *conn.Conn) {
	s := p.servers[addr]
	for range 3 {
		within, cancel := p.within(ctx)
		start := time.Now()
		_, err := command(within, c, "admin", bson.D{{Key: "ping", Value: 1}})
		took := time.Since(start)
		cancel()
		if err != nil {
			p.fail("latency", addr, "Look at the load of the server and at the network.", "%v", err)
			return
		}
		if s.latency == 0 || took < s.latency {
			s.latency = took
		}
	}
	if s.latency > far {
		p.warn("latency", addr, "Run the client nearer to the server, or let reads go to a nearer member (readPreference=nearest).",
			"a round trip takes %v", s.latency.Round(time.Millisecond))
		return
	}
	p.ok("latency", addr, "a round trip takes %v", s.latency.Round(10*time.Microsecond))
}

// oldest is the oldest series of servers that is still maintained.
const oldest = "7.0"

func (p *patient) version(ctx context.Context, addr string, c *conn.Conn) {
	reply, err := command(ctx, c, "admin", bson.D{{Key: "buildInfo", Value: 1}})
	p.flavour(addr, reply)
	v, ok := reply.Lookup("version").StringValue()
	if err != nil || !ok {
		return // arbiters and strict servers do not tell everybody
	}
	p.versions[series2(v)] = append(p.versions[series2(v)], addr)
	if older(v, oldest) {
		p.warn("version", addr, "Upgrade, one series after the other.", "MongoDB %s is not maintained any more", v)
		return
	}
	p.ok("version", addr, "MongoDB %s", v)
}

// series2 returns the first two numbers of a version.
func series2(v string) string {
	parts := strings.SplitN(v, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// older reports whether a version is older than a series.
func older(v, series string) bool {
	var a, b [2]int
	fmt.Sscanf(v, "%d.%d", &a[0], &a[1])
	fmt.Sscanf(series, "%d.%d", &b[0], &b[1])
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) < 0
}

func (p *patient) versionsAgree() {
	if len(p.versions) < 2 {
		return
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(p.versions)) {
		parts = append(parts, v+" on "+strings.Join(p.versions[v], ", "))
	}
	p.warn("version", "", "Finish the upgrade.", "the servers have different versions: %s", strings.Join(parts, "; "))
}

// topology compares what the servers say of themselves and of each other with what was asked for.
func (p *patient) topology() {
	kinds := map[event.ServerKind][]string{}
	for _, addr := range p.order {
		if d := p.servers[addr].d; d != nil {
			if !p.alias(addr) {
				kinds[d.Kind] = append(kinds[d.Kind], addr)
			}
			if p.cfg.ReplicaSet != "" && d.SetName != p.cfg.ReplicaSet {
				is := "does not belong to a replica set"
				do := "Remove replicaSet=" + p.cfg.ReplicaSet + ", or start the server as a member."
				if d.SetName != "" {
					is, do = fmt.Sprintf("belongs to the replica set %q", d.SetName),
						fmt.Sprintf("Set replicaSet=%s, or name other hosts.", d.SetName)
				}
				p.fail("topology", addr, do, "the server %s, and the connection string asks for %q", is,
					p.cfg.ReplicaSet)
			}
			if d.Me != "" && d.Me != addr && !p.named(addr) {
				p.warn("topology", addr, "Use the name that the set's configuration has: clients connect to that one anyway.", "the server calls itself %s", d.Me)
			}
		}
	}
	members := len(kinds[event.RSPrimary]) + len(kinds[event.RSSecondary])
	direct := p.cfg.Direct != nil && *p.cfg.Direct
	switch {
	case len(kinds) == 0:
		return // every server has a finding of its own
	case len(kinds[event.RSGhost]) > 0:
		p.fail("topology", kinds[event.RSGhost][0], "Call rs.initiate() on it, or wait until it has joined.",
			"the server was started as a member of a replica set that does not know it")
	case members == 0:
	case len(kinds[event.RSPrimary]) == 0 && !direct:
		p.fail("topology", "", "Elections need a majority of the voting members: bring those back that cannot be reached, and look into the logs for why none is elected.",
			"the replica set has no primary: writes fail")
	case len(kinds[event.RSPrimary]) > 1:
		p.warn("topology", "", "It should pass within seconds: check again; if it stays, a part of the network is cut off.", "several servers take themselves for the primary: %s",
			strings.Join(kinds[event.RSPrimary], ", "))
	}
	if len(kinds) > 1 && (len(kinds[event.Standalone]) > 0 || len(kinds[event.Mongos]) > 0) {
		p.fail("topology", "", "Name servers of one deployment only.", "the hosts do not belong together: %s",
			describe(kinds))
		return
	}
	if members > 0 && len(p.cfg.Hosts) > 1 && p.cfg.ReplicaSet == "" {
		p.warn("topology", "", "Set replicaSet.", "several hosts are named, but no replica set: a member of another set would be taken for one of this")
	}
	if n := len(kinds[event.RSArbiter]); n > 0 && members == 2 {
		p.warn("topology", "", "Replace the arbiter by a member with data: while a member is down, w=majority waits, and the primary keeps history in its cache.",
			"the set has two members with data and an arbiter")
	}
	p.ok("topology", "", "%s", describe(kinds))
}

// alias reports whether an address is another name of a server that was examined under its own, as
// localhost is of 127.0.0.1: it is one member, and one primary.
func (p *patient) alias(addr string) bool {
	d := p.servers[addr].d
	if d == nil || d.Me == "" || d.Me == addr {
		return false
	}
	self := p.servers[d.Me]
	return self != nil && self.d != nil && self.d.SetName == d.SetName
}

func describe(kinds map[event.ServerKind][]string) string {
	var parts []string
	for kind := event.UnknownServer; kind <= event.LoadBalancer; kind++ {
		if list := kinds[kind]; len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", kind, strings.Join(list, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

// writeConcern asks whether enough members are there for writes to be acknowledged.
func (p *patient) writeConcern() {
	data, reached := 0, 0
	for _, addr := range p.order {
		s := p.servers[addr]
		switch {
		case p.alias(addr):
		case s.d != nil && (s.d.Kind == event.RSPrimary || s.d.Kind == event.RSSecondary):
			data++
			reached++
		case s.d == nil && p.named(addr) || s.d == nil && p.cfg.ReplicaSet != "":
			data++ // a member that is down; an arbiter would not be known either
		}
	}
	if reached == 0 {
		return
	}
	switch w := p.cfg.W.(type) {
	case int:
		if w > data {
			p.fail("write concern", "", fmt.Sprintf("Set w=majority, or at most w=%d.", data),
				"w=%d asks for more members than the %d of the set: no write succeeds", w, data)
			return
		}
		if w > reached {
			p.fail("write concern", "", "Bring back the members that are down, or set w=majority.",
				"w=%d asks for %d members, and %d can be reached: writes wait", w, w, reached)
			return
		}
	case string:
		if w != "majority" {
			p.warn("write concern", "", "Check that settings.getLastErrorModes of the set has it.",
				"w=%s is a mode of the set's own", w)
		}
	}
	if most := data/2 + 1; reached < most {
		p.fail("write concern", "", "Bring back members.",
			"w=majority needs %d of %d members, and %d can be reached: writes wait", most, data, reached)
		return
	}
	p.ok("write concern", "", "%d of %d members with data can be reached", reached, data)
}

// prepareConfig is prepare for a string that is read already.
func prepareConfig(ctx context.Context, cfg *uri.Config, timeout time.Duration) (*uri.Config, *conn.Config, error) {
	if cfg.SRVHost != "" {
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
	return connect(cfg, timeout)
}

// count is a number of things in words: "1 check", "2 checks".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
