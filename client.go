package allium

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	publicauth "allium/auth"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/auth"
	"allium/internal/command"
	"allium/internal/conn"
	"allium/internal/cursor"
	"allium/internal/dns"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/flight"
	"allium/internal/logging"
	"allium/internal/ocsp"
	"allium/internal/option"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/internal/uri"
)

// Client is a handle to a deployment: a standalone server, a replica set or a sharded cluster. It
// pools connections and monitors the servers in the background. Create one per deployment and
// process, and share it: it is safe for concurrent use.
type Client struct {
	defaults inherited
	topology *topology.Topology
	exec     *exec.Executor
	sessions session.Pool
	cursors  *cursor.Registry
	aborts   flight.Background // of transactions whose sessions have ended
	// abortTurns has an element for each of these that is being sent.
	abortTurns chan struct{}
	log        *logging.Logger
	metadata   *conn.Metadata
	// revocation checks the certificates of services beside the servers.
	revocation *ocsp.Checker

	cipher          CommandCipher // nil without ClientOptions.Encryption
	plain, internal *Client       // encrypt nothing; internal is the one that is closed with this

	closing  sync.Once
	closed   chan struct{} // closed once close has returned closeErr
	closeErr error
}

// Open returns a client for the deployment that a connection string names. It does no I/O except
// for the DNS lookup of a mongodb+srv string, which takes at most the connect timeout. Discovery
// starts in the background, and operations wait for it. To check that the deployment can be
// reached, call Ping. Close the client when it is no longer needed.
//
//	client, err := allium.Open("mongodb://localhost:27017/?replicaSet=rs0")
//
// The string may be empty if ClientOptions.Hosts names the servers.
//
// An error names the part of the string or the option that is wrong, and never contains a password.
func Open(connectionString string, opts ...ClientOptions) (*Client, error) {
	o := option.Merge(opts)
	o = option.Copy(o)
	if connectionString == "" && len(o.Hosts) > 0 {
		connectionString = "mongodb://localhost" // whose host is replaced
	}
	cfg, err := uri.Parse(connectionString)
	if err != nil {
		return nil, err
	}
	if o.MaxLogDocumentLength < 0 {
		return nil, fmt.Errorf("open: MaxLogDocumentLength is %d, want 0 or more", o.MaxLogDocumentLength)
	}
	if err := o.apply(cfg); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	srv, err := discover(cfg, o.Resolver)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	c := &Client{}
	if c.defaults, err = defaults(c, cfg, &o); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := c.build(cfg, srv, &o); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if o.Encryption != nil {
		if err := c.attach(connectionString, cfg, &o); err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
	}
	connected := false
	defer func() {
		if !connected { // a listener has panicked
			_ = c.close(context.Background())
		}
	}()
	c.topology.Connect()
	connected = true
	return c, nil
}

// defaults returns what databases inherit.
func defaults(c *Client, cfg *uri.Config, o *ClientOptions) (inherited, error) {
	s := inherited{client: c, timeout: cfg.Timeout, timeoutLevel: "client", readConcern: o.ReadConcern,
		writeConcern: o.WriteConcern, readPreference: o.ReadPreference, bson: o.BSON}
	if cfg.UUIDRepresentation != "" {
		representation, err := bson.ParseUUIDRepresentation(cfg.UUIDRepresentation)
		if err != nil {
			return s, err
		}
		s.bson = overrideBSON(&bson.Options{UUID: representation}, o.BSON)
	}
	if s.readConcern == nil && cfg.ReadConcernLevel != "" {
		s.readConcern = &consistency.ReadConcern{Level: consistency.ReadLevel(cfg.ReadConcernLevel)}
	}
	if s.writeConcern == nil && (cfg.W != nil || cfg.Journal != nil || cfg.WTimeout != nil) {
		s.writeConcern = &consistency.WriteConcern{W: cfg.W, Journal: cfg.Journal, Timeout: or(cfg.WTimeout, 0)}
	}
	if err := s.writeConcern.Validate(); err != nil {
		return s, err
	}
	if s.readPreference == nil &&
		(cfg.ReadPreference != "" || cfg.ReadPreferenceTags != nil || or(cfg.MaxStaleness, -1) >= 0) {
		rp := &consistency.ReadPreference{}
		if limit := or(cfg.MaxStaleness, -1); limit >= 0 {
			rp.MaxStaleness = max(limit, 1) // 0 seconds is too small a bound; here 0 would be none
		}
		if cfg.ReadPreference != "" {
			rp.Mode = consistency.ReadMode(cfg.ReadPreference)
		}
		for _, tags := range cfg.ReadPreferenceTags {
			rp.TagSets = append(rp.TagSets, event.TagSet(tags))
		}
		s.readPreference = rp
	}
	return s, s.readPreference.Validate()
}

// build assembles the layers below.
func (c *Client) build(cfg *uri.Config, srv *topology.SRV, o *ClientOptions) error {
	if err := o.ReadRetryPolicy.validate(); err != nil {
		return err
	}
	warm, most := or(o.Warm, 0), or(cfg.MaxPoolSize, pool.DefaultMaxPoolSize)
	if warm < 0 || most > 0 && warm > most {
		return fmt.Errorf("option Warm is %d, want 0 to the maximum pool size, which is %d", warm, most)
	}
	var warnings []string
	var handler slog.Handler
	if o.Logger != nil {
		handler = o.Logger.Handler()
	}
	levels, err := o.logLevels()
	if err != nil {
		return err
	}
	c.log, warnings = logging.New(logging.Options{Handler: handler, Levels: levels,
		MaxDocumentLength: o.MaxLogDocumentLength}, os.Getenv)
	tracer, queryText, ignored, err := o.Tracing.settings(os.Getenv)
	if err != nil {
		return err
	}
	c.warn(append(append(warnings, ignored...), cfg.Warnings...), o.wantsWarnings(os.Getenv))
	connections, err := c.connections(cfg, o)
	if err != nil {
		return err
	}
	mode, err := monitoringMode(cfg.ServerMonitoringMode)
	if err != nil {
		return err
	}
	c.topology, err = topology.New(&topology.Config{
		Seeds: cfg.Hosts, SRV: srv, Direct: or(cfg.Direct, false), LoadBalanced: or(cfg.LoadBalanced, false),
		SetName:           cfg.ReplicaSet,
		HeartbeatInterval: or(cfg.HeartbeatInterval, 0), Monitoring: mode,
		LocalThreshold:   or(cfg.LocalThreshold, topology.DefaultLocalThreshold),
		SelectionTimeout: or(cfg.ServerSelectionTimeout, 0), Selector: o.ServerSelector,
		Pool: pool.Config{
			Conn: connections, MaxPoolSize: most, MinPoolSize: or(cfg.MinPoolSize, 0), Warm: warm,
			MaxConnecting: or(cfg.MaxConnecting, 0), MaxIdleTime: or(cfg.MaxIdleTime, 0),
			WaitQueueTimeout: or(cfg.WaitQueueTimeout, 0),
			LoadBalanced:     or(cfg.LoadBalanced, false), Monitor: o.PoolMonitor, Log: c.log,
		},
		Monitor: o.ServerMonitor, Log: c.log,
	})
	if err != nil {
		return err
	}
	c.exec = exec.New(exec.Config{
		Topology: c.topology, Sessions: &c.sessions, RetryReads: or(cfg.RetryReads, true),
		RetryWrites:         or(cfg.RetryWrites, true),
		MaxAdaptiveRetries:  or(cfg.MaxAdaptiveRetries, exec.DefaultMaxAdaptiveRetries),
		OverloadRetargeting: or(cfg.EnableOverloadRetargeting, false),
		ReadRetry:           exec.ReadRetryPolicy(o.ReadRetryPolicy), Slow: c.slow(o),
		ServerAPI: connServerAPI(o.ServerAPI), Monitor: o.CommandMonitor, Log: c.log,
		Tracer: tracer, QueryTextMaxLength: queryText,
		SelectionTimeout: cmp.Or(or(cfg.ServerSelectionTimeout, 0), topology.DefaultSelectionTimeout),
		SocketTimeout:    or(cfg.SocketTimeout, 0),
		Unread: func(db, coll string, id int64, server *topology.Server) {
			c.cursors.Unread(db, coll, id, server)
		},
	})
	c.cursors = cursor.NewRegistry(c.exec)
	c.abortTurns = make(chan struct{}, lateAborts)
	c.sessions.Left = c.abortLater
	return nil
}

// warn logs what is ignored or deprecated in the client's settings: to slog's default logger if the
// program has said nothing about logging, since an option that is misspelt should not go unnoticed.
func (c *Client) warn(warnings []string, byDefault bool) {
	ctx := context.Background()
	enabled := c.log.Enabled(ctx, logging.Connection, slog.LevelWarn)
	for _, w := range warnings {
		switch {
		case enabled:
			c.log.Log(ctx, logging.Connection, slog.LevelWarn, w)
		case byDefault:
			slog.LogAttrs(ctx, slog.LevelWarn, "allium: "+w)
		}
	}
}

// wantsWarnings reports whether neither the options nor the environment say anything about the log
// of connections.
func (o *ClientOptions) wantsWarnings(getenv func(string) string) bool {
	_, set := o.LogLevels[LogConnection]
	return o.Logger == nil && !set && getenv("MONGODB_LOG_ALL") == "" && getenv("MONGODB_LOG_CONNECTION") == ""
}

// connections returns what all connections have in common.
func (c *Client) connections(cfg *uri.Config, o *ClientOptions) (*conn.Config, error) {
	var infos []conn.DriverInfo
	if o.DriverInfo != nil {
		infos = append(infos, conn.DriverInfo(*o.DriverInfo))
	}
	metadata, err := conn.NewMetadata(cfg.AppName, infos...)
	if err != nil {
		return nil, err
	}
	c.metadata = metadata
	if o.ServerAPI != nil && o.ServerAPI.Version != ServerAPIV1 {
		return nil, fmt.Errorf("server API version is %q, want %q", o.ServerAPI.Version, ServerAPIV1)
	}
	var authenticator *auth.Authenticator
	mechanism := or(cfg.Credential, publicauth.Credential{}).Mechanism
	if cfg.Credential != nil || o.Credentials != nil {
		options := auth.Options{OIDC: o.OIDC, AWS: o.AWSCredentials, GSSAPI: o.GSSAPI}
		if t := or(cfg.Timeout, 0); t > 0 {
			options.CallbackTimeout = t
			if ct := or(cfg.ConnectTimeout, defaultConnectTimeout); ct > 0 {
				options.CallbackTimeout = min(t, ct)
			}
		}
		if o.Credentials != nil {
			authenticator = auth.NewAsking(o.Credentials, cfg.Complete, options)
		} else if authenticator, err = auth.New(cfg.Credential, options); err != nil {
			return nil, err
		}
	}
	dialer := conn.Dialer(o.Dialer)
	if cfg.Proxy.Host != "" {
		if dialer, err = conn.NewProxyDialer(&cfg.Proxy, dialer); err != nil {
			return nil, err
		}
	}
	secure, err := c.tls(cfg, o)
	if err != nil {
		return nil, err
	}
	connections := &conn.Config{
		Authenticator: authenticator, RefuseCleartext: !o.AllowPlainWithoutTLS, ZlibLevel: cfg.ZlibCompressionLevel,
		Dialer: dialer, TLS: secure, Metadata: metadata, Compressors: cfg.Compressors,
		ServerAPI:    connServerAPI(o.ServerAPI),
		LoadBalanced: or(cfg.LoadBalanced, false), ConnectTimeout: or(cfg.ConnectTimeout, defaultConnectTimeout),
		SocketTimeout: or(cfg.SocketTimeout, 0),
		Timeout:       cfg.Timeout,
	}
	if secure != nil {
		connections.Revocation = conn.NewRevocation(&cfg.TLSIs, secure, dialer)
	}
	c.revocation = conn.NewServiceRevocation(&cfg.TLSIs, connections.Revocation, dialer)
	for _, addr := range cfg.Hosts {
		if w := connections.WarnCleartext(addr, mechanism); w != "" {
			c.warn([]string{w}, o.wantsWarnings(os.Getenv))
			break
		}
	}
	for _, addr := range cfg.Hosts { // those that are discovered later are looked at when they are connected to
		if err := connections.CheckCleartext(addr, mechanism); err != nil {
			return nil, fmt.Errorf("authentication: mechanism %s: %w", mechanism, err)
		}
	}
	return connections, nil
}

// tls returns what connections do TLS with, nil if they do none.
func (c *Client) tls(cfg *uri.Config, o *ClientOptions) (*conn.TLS, error) {
	switch {
	case o.TLS != nil:
		return conn.FixedTLS(o.TLS), nil
	case cfg.TLSEnabled():
		return conn.NewTLS(&cfg.TLSIs, func(reason string) { c.warn([]string{reason}, o.wantsWarnings(os.Getenv)) })
	}
	return nil, nil
}

const defaultConnectTimeout = 10 * time.Second

func monitoringMode(s string) (topology.MonitoringMode, error) {
	switch s {
	case "", "auto":
		return topology.MonitorAuto, nil
	case "stream":
		return topology.MonitorStream, nil
	case "poll":
		return topology.MonitorPoll, nil
	}
	return 0, fmt.Errorf("server monitoring mode is %q, want stream, poll or auto", s)
}

// inherited returns what databases inherit.
func (c *Client) inherited() inherited { return c.defaults }

// AppendDriverInfo adds a library that wraps the driver to the metadata that new connections send.
// Servers show it in their logs and profiles. Info that is already there is not added again. It is
// an error if a field contains "|" or NUL, is not UTF-8, or does not fit into the 512 bytes that
// servers accept. It is safe for concurrent use.
func (c *Client) AppendDriverInfo(info DriverInfo) error {
	if err := c.metadata.Append(conn.DriverInfo(info)); err != nil {
		return fmt.Errorf("append driver info: %w", err)
	}
	return nil
}

// PingOptions are the options of Ping.
type PingOptions struct {
	// ReadPreference selects the member to ping. Nil: the client's.
	ReadPreference *consistency.ReadPreference
}

// Ping checks that the deployment can be reached: it sends a ping to a member that suits the read
// preference.
func (c *Client) Ping(ctx context.Context, opts ...PingOptions) error {
	o := option.Merge(opts)
	rp := o.ReadPreference
	if rp == nil {
		rp = c.defaults.readPreference
	}
	_, err := c.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}},
		RunCommandOptions{ReadPreference: rp})
	return err
}

// Ready waits until the client is warm: a member that suits the client's read preference has
// answered a ping, and each server that can be reached has as many connections as
// ClientOptions.MinPoolSize and Warm ask for, which the client makes in the background, two at a
// time. Called before a program takes its
// traffic, it keeps the first operations from waiting for connections; it may be called at any
// time, also as a probe: a client that is warm costs a ping. The error is that of the ping, or, if
// ctx ends first, a *mongoerr.TimeoutError with why the last connection could not be made.
func (c *Client) Ready(ctx context.Context) error {
	if err := c.Ping(ctx); err != nil {
		return err
	}
	return failure.Cause(ctx, c.topology.Warm(ctx))
}

// Topology returns what the driver currently knows about the deployment.
func (c *Client) Topology() *event.TopologyDescription { return c.topology.Description() }

// HasReadableServer reports whether a topology has a server that suits a read preference. A nil
// read preference means the primary. For writes, see event.TopologyDescription.HasWritableServer.
func HasReadableServer(t *event.TopologyDescription, rp *consistency.ReadPreference) bool {
	return topology.Readable(t, rp)
}

// Close aborts open transactions, frees open cursors, ends the client's sessions, closes its
// connections and waits for all background work to end. Operations in progress fail, those of a
// transaction and its commit if they take longer than half a second. If ctx ends first, Close
// returns its error and the rest is closed in the background, without telling the servers; but for
// half a second it still tries to abort transactions. Close may be called more than once; later
// calls wait for the first one or for the end of their own context.
func (c *Client) Close(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	c.exec.Close()
	first := false
	c.closing.Do(func() {
		first = true
		c.closed = make(chan struct{})
		go func() { // nothing that a server does can keep the caller here
			defer close(c.closed)
			c.closeErr = c.close(ctx)
		}()
	})
	select {
	case <-c.closed:
	case <-ctx.Done():
		select {
		case <-c.closed:
		default:
			return failure.Cause(ctx, ctx.Err())
		}
	}
	if first {
		return c.closeErr
	}
	return c.topology.Close(ctx)
}

func (c *Client) close(ctx context.Context) error {
	// Listeners and log handlers hear of each step. One that panics does not keep the others from
	// being taken.
	step := func(f func()) error { return flight.Apart(func() error { f(); return nil }) }
	aborted := step(func() { c.abortTransactions(ctx) })
	killed := step(func() {
		c.cursors.Close(ctx)
		if c.plain != nil && c.plain != c.internal { // it has nothing else of its own
			c.plain.cursors.Close(ctx)
		}
	})
	ended := step(func() { c.endSessions(ctx) })
	err := failure.Join(ctx.Err(), aborted, killed, ended, flight.Apart(func() error { return c.closeEncryption(ctx) }),
		flight.Apart(func() error { return c.topology.Close(ctx) }), flight.Apart(c.log.Close))
	c.revocation.Close()
	return failure.Cause(ctx, err)
}

// CheckRevocation checks by OCSP whether the certificate that a service has presented in a TLS
// handshake was revoked, as the client does with its servers' certificates, by the same options and
// with the same cache (specification: OCSP Support). In-use encryption does so with key services.
// Where servers are not checked, because the client uses no TLS or an insecure one, services still
// are; responders are not asked if the connection string says so by tlsDisableOCSPEndpointCheck or
// tlsDisableCertificateRevocationCheck.
//
// The error holds a *tls.CertificateVerificationError. A certificate whose status is not known
// after half a second is accepted; if responders say within five seconds that it is revoked, late
// is called with the error, by another goroutine, unless it is nil. CheckRevocation is safe for
// concurrent use.
func (c *Client) CheckRevocation(ctx context.Context, state *tls.ConnectionState, late func(error)) error {
	if err := c.revocation.Check(ctx, state, late); err != nil {
		return fmt.Errorf("check revocation: %w", err)
	}
	return nil
}

// endTimeout bounds how long a closing client waits for servers to end its transactions, and then
// its sessions.
const endTimeout = 2 * time.Second

// abortTransactions aborts what is open. An operation that runs in a transaction has half a second
// to end by itself: it may be the one that commits. When ctx has ended it has half of the time that
// is left, so that the abort behind it has some, too.
func (c *Client) abortTransactions(ctx context.Context) {
	if !c.reachable() {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		c.aborts.Close(ctx)
		return
	}
	patience, cancel := flight.Linger(ctx, abortGrace/2)
	defer cancel()
	patience, cancel = context.WithTimeout(patience, abortGrace)
	defer cancel()
	ctx, cancel = flight.Linger(ctx, abortGrace)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, endTimeout)
	defer cancel()
	c.exec.AbortAll(ctx, patience)
	c.aborts.Close(ctx)
}

// lateAbortTimeout bounds an abort in the background. It is what a server gives a transaction by
// default (transactionLifetimeLimitSeconds). Anything shorter could be too short: operations that
// wait for the transaction's locks may hold all connections of the pool, which the abort waits for.
// lateAbortPause is between two attempts. Of those of one client lateAborts run at once: a server
// that does not answer would else take all connections for them.
const (
	lateAbortTimeout = time.Minute
	lateAbortPause   = time.Second
	lateAborts       = 10
)

// abortLater aborts the transaction of a session that has ended, in the background: until then the
// server keeps it open, with its locks, for up to a minute. It tries again what has not been sent,
// because the server could not be reached or because a listener failed.
func (c *Client) abortLater(s *session.Session) {
	later := func(ctx context.Context) {
		defer s.Finish()
		ctx, cancel := context.WithTimeout(ctx, lateAbortTimeout)
		defer cancel()
		for {
			select {
			case c.abortTurns <- struct{}{}:
			case <-ctx.Done():
				return
			}
			if err := flight.Apart(func() error { c.exec.AbortLeft(ctx, s); return nil }); err != nil {
				flight.Report(err)
			}
			<-c.abortTurns
			if !s.Transaction().Pending() {
				return
			}
			pause := time.NewTimer(lateAbortPause)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				return
			}
		}
	}
	if !c.aborts.Run(later, 0) {
		s.Finish()
	}
}

// endSessions tells the deployment that the pooled sessions are not needed any more. Errors are
// ignored, as the specification Driver Sessions asks, and a deployment that is not there is not
// waited for.
func (c *Client) endSessions(ctx context.Context) {
	ids := c.sessions.Drain()
	if len(ids) == 0 || !c.reachable() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	for len(ids) > 0 && ctx.Err() == nil {
		n := min(len(ids), command.MaxEndSessions)
		op := exec.NewOp(&command.EndSessions{IDs: ids[:n]})
		op.DB, op.NoMaxTime, op.NoSession, op.ReadPreference = "admin", true, true,
			&consistency.ReadPreference{Mode: consistency.PrimaryPreferred}
		res, _ := c.exec.RunClosing(ctx, &op)
		res.Release()
		ids = ids[n:]
	}
}

// reachable reports whether any server is known.
func (c *Client) reachable() bool {
	for _, s := range c.topology.Description().Servers {
		if s.Kind != event.UnknownServer {
			return true
		}
	}
	return false
}

// connServerAPI returns a declaration as connections take it, nil for a nil one.
func connServerAPI(a *ServerAPI) *conn.ServerAPI {
	if a == nil {
		return nil
	}
	return &conn.ServerAPI{Version: string(a.Version), Strict: a.Strict, DeprecationErrors: a.DeprecationErrors}
}

// lookupTimeout bounds the look-up of a mongodb+srv connection string when no connect timeout is
// set.
const lookupTimeout = defaultConnectTimeout

// discover replaces the host name of a mongodb+srv string by the servers that DNS names, and
// returns how to look for further ones. It returns nil for other strings.
func discover(cfg *uri.Config, r Resolver) (*topology.SRV, error) {
	if cfg.SRVHost == "" {
		return nil, nil
	}
	timeout := or(cfg.ConnectTimeout, lookupTimeout)
	if timeout <= 0 {
		timeout = lookupTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	service, host, limit := cfg.SRVServiceName, cfg.SRVHost, or(cfg.SRVMaxHosts, 0)
	list, err := dns.Lookup(ctx, r, service, host)
	if err != nil {
		return nil, err
	}
	if n := len(list.Hosts); limit == 0 && n > dns.MaxHosts {
		cfg.Warnings = append(
			cfg.Warnings, fmt.Sprintf(
				"DNS names %d servers for %s; %d of them are used, unless srvMaxHosts says how many", n, host,
				dns.MaxHosts))
	}
	if err := cfg.ApplySRV(dns.Limit(list.Hosts, limit), list.TXT); err != nil {
		return nil, err
	}
	// A load balancer stands for all servers behind it: there is nothing to look for.
	if or(cfg.LoadBalanced, false) {
		return nil, nil
	}
	return &topology.SRV{
		TTL: list.TTL, MaxHosts: cmp.Or(limit, dns.MaxHosts),
		Lookup: func(ctx context.Context) ([]string, time.Duration, error) {
			hosts, ttl, err := dns.LookupHosts(ctx, r, service, host)
			if err != nil {
				err = fmt.Errorf("rescan: %w", err)
			}
			return hosts, ttl, err
		},
	}, nil
}
