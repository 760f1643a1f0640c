package allium

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/collation"
	"allium/consistency"
	"allium/event"
	"allium/internal/logging"
	"allium/internal/redact"
	"allium/internal/uri"
	"allium/internal/wire"
)

// ClientOptions are settings of a client in addition to those of its connection string. A field
// overrides the string's option of the same meaning; the zero value means "not set". Open copies
// the options, with what their pointers, slices and maps hold: clients can share them, and changing
// them later has no effect on a client that is open. What they call stays shared: functions,
// loggers, and values behind interfaces.
type ClientOptions struct {
	// Hosts are the servers to begin with, each as "host", "host:port" or the path of a Unix domain
	// socket; an IPv6 address stands in brackets. They replace the hosts of the connection string,
	// which may then be empty, and exclude a mongodb+srv string, whose hosts come from DNS. The
	// string's options and its user stay. Empty: the string's.
	Hosts []string
	// AppName names the application in the server's logs and profiles, in at most 128 bytes.
	AppName string
	// DriverInfo names a library that wraps the driver.
	DriverInfo *DriverInfo
	// Credential is how the client authenticates. It replaces the connection string's credential as
	// a whole.
	Credential *auth.Credential
	// Credentials hands out credentials that change while the client is open, such as passwords
	// that a vault rotates; Credential and the connection string's then do not count. It is asked
	// when a connection is made and there is no credential. What it returns serves all connections
	// until a server refuses it (AuthenticationFailed); the connection is then made anew with what
	// it returns next. Connections that were made before stay. One call runs at a time, whose
	// context has the deadline of an OIDC callback's. An error fails the operation, as a
	// *mongoerr.AuthError, and the next one asks again. Nil: the credential does not change.
	Credentials func(ctx context.Context) (auth.Credential, error)
	// AllowPlainWithoutTLS lets the mechanism PLAIN send the password in the clear to servers on
	// other machines. Without it, Open and connections to such servers fail.
	AllowPlainWithoutTLS bool
	// OIDC provides the access tokens of MONGODB-OIDC, unless the credential has the property
	// ENVIRONMENT.
	OIDC *auth.OIDC
	// AWSCredentials returns the keys of MONGODB-AWS for each new connection. It must be safe for
	// concurrent use. Nil: the keys come from the environment (variables, web identity, container,
	// virtual machine). A provider of Amazon's SDK can be wrapped in one line.
	AWSCredentials auth.AWSCallback
	// GSSAPI authenticates with Kerberos. The mechanism GSSAPI needs it; the module allium/kerberos
	// provides it.
	GSSAPI auth.GSSAPI

	// ReplicaSet is the name that the replica set must have. Direct connects to a single server
	// without discovering others. LoadBalanced means that the servers are behind a load balancer.
	ReplicaSet   string
	Direct       *bool
	LoadBalanced *bool
	// SRVServiceName is the service of a mongodb+srv string's SRV records. Empty: "mongodb".
	// SRVMaxHosts is the maximum number of those servers to use, chosen at random. Nil and 0: all,
	// up to a thousand.
	SRVServiceName string
	SRVMaxHosts    *int

	// ReadPreference, ReadConcern and WriteConcern are inherited by databases and collections.
	ReadPreference *consistency.ReadPreference
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	// BSON configures encoding and decoding. If it has no UUID representation, the connection
	// string's uuidRepresentation applies. Nil: the defaults of package bson.
	BSON *bson.Options
	// Timeout bounds each operation from start to finish: server selection, checkout and all
	// attempts (timeoutMS). A pointer to 0 means no limit. Nil: only contexts bound operations.
	Timeout *time.Duration

	// RetryReads and RetryWrites are on unless set to a pointer to false.
	RetryReads  *bool
	RetryWrites *bool
	// ReadRetryPolicy says when and how often reads are retried.
	ReadRetryPolicy ReadRetryPolicy
	// MaxAdaptiveRetries is the maximum number of retries after errors of an overloaded server.
	// Nil: 2.
	MaxAdaptiveRetries *int
	// EnableOverloadRetargeting makes such a retry avoid the overloaded server: a read with
	// PrimaryPreferred may then go to a secondary. Nil: false.
	EnableOverloadRetargeting *bool

	// ServerSelectionTimeout bounds the wait for a suitable server. Nil: 30 seconds.
	ServerSelectionTimeout *time.Duration
	// ConnectTimeout bounds each step of making a connection. Nil: 10 seconds; 0: no limit.
	ConnectTimeout *time.Duration
	// SocketTimeout bounds each write to a server and each wait for its reply, those of a handshake
	// included. Nil and 0: no limit.
	//
	// Deprecated: set Timeout, which bounds the whole operation and breaks no connection.
	SocketTimeout *time.Duration
	// WaitQueueTimeout bounds the wait for a connection when all are in use. Once one is being made
	// for the operation, ConnectTimeout and SocketTimeout count in its place. Nil and 0: only
	// Timeout and the context bound it.
	//
	// Deprecated: set Timeout.
	WaitQueueTimeout *time.Duration
	// HeartbeatInterval is the time between checks of a server, at least 500 milliseconds. Nil: 10
	// seconds.
	HeartbeatInterval *time.Duration
	// LocalThreshold is how much longer than the nearest suitable server's the round trip of a
	// selected server may be. Nil: 15 milliseconds.
	LocalThreshold *time.Duration
	// ServerMonitoringMode says how servers are monitored. Empty: MonitoringAuto.
	ServerMonitoringMode ServerMonitoringMode

	// ServerSelector filters the suitable servers of each operation: it returns those that it
	// accepts, and must not modify its argument. It must be safe for concurrent use.
	ServerSelector func(servers []*event.ServerDescription) []*event.ServerDescription

	// MaxPoolSize is the maximum number of connections to each server. Nil: 100; 0: no limit.
	MaxPoolSize *int
	// MinPoolSize is the number of connections to each server that are kept open. Client.Ready
	// waits for them. Nil: 0.
	MinPoolSize *int
	// Warm is the number of connections to each server that are made at the start, at most
	// MaxPoolSize, so that the first operations need not wait for them. Client.Ready waits for
	// them. Unlike those of MinPoolSize they are not replaced when they are closed. With either the
	// first of them is dialed before it is known whether the server can be used, which spares the
	// first operation a round trip, with TLS two. Nil: 0.
	Warm *int
	// MaxConnecting is the maximum number of connections to each server that are established at a
	// time. Nil: 2.
	MaxConnecting *int
	// MaxIdleTime is how long a connection may be idle before it is closed. Nil and 0: no limit.
	MaxIdleTime *time.Duration

	// Compressors are offered to the server in this order: "snappy", "zlib" or "zstd". Open rejects
	// others.
	Compressors []string
	// ZlibCompressionLevel is -1 (default) to 9.
	ZlibCompressionLevel *int

	// UseTLS switches TLS on or off, whatever the connection string says: a pointer to false is for
	// a mongodb+srv string whose servers have no TLS, and excludes TLS and TLSFiles. Nil: on if the
	// string or one of these two says so.
	UseTLS *bool
	// TLS enables TLS with this configuration. The driver sets ServerName.
	TLS *tls.Config
	// TLSFiles enables TLS with certificates from files. It replaces the connection string's tls
	// options and excludes TLS.
	TLSFiles *TLSFiles
	// Proxy is the SOCKS5 proxy for connections to servers. It replaces the connection string's
	// proxy as a whole.
	Proxy *Proxy
	// Dialer dials network connections in place of the driver's own dialer.
	Dialer Dialer
	// Resolver looks up a mongodb+srv connection string in DNS, in place of the system's resolver.
	Resolver Resolver

	// ServerAPI declares a version of the Stable API. It cannot be set in a connection string.
	ServerAPI *ServerAPI

	// Encryption encrypts fields before they leave the program and decrypts them in replies.
	// Package encryption provides it.
	Encryption Encryption

	// CommandMonitor, PoolMonitor and ServerMonitor receive the driver's events.
	CommandMonitor *event.CommandMonitor
	PoolMonitor    *event.PoolMonitor
	ServerMonitor  *event.ServerMonitor
	// Logger receives the driver's log messages, at the levels that the environment variables
	// MONGODB_LOG_* set. Nil: messages go to MONGODB_LOG_PATH if any of those variables is set;
	// without any, only warnings of misspelt and deprecated options are logged, to slog.Default.
	Logger *slog.Logger
	// LogLevels are the least severe levels that are logged, by component. They override the
	// environment variables. A component without an entry has the level that the environment sets,
	// or logs everything that Logger enables.
	LogLevels map[LogComponent]slog.Level
	// MaxLogDocumentLength is the maximum length of a document's Extended JSON in a message, in
	// bytes. Zero: the environment variable MONGODB_LOG_MAX_DOCUMENT_LENGTH, 1000 by default.
	MaxLogDocumentLength int
	// SlowOperation is how long an operation, with all its attempts and waits, takes before it
	// counts as slow. A slow operation is logged when it ends, at level warn of LogCommand, to
	// Logger or, without one, to slog.Default: with its command, namespace, server, waits, and the
	// shape of its filter, never a value. A getMore that waits for news is never slow. Zero logs
	// nothing, and Stats lists the operations of 100 milliseconds and more; with a negative value,
	// Stats lists none.
	SlowOperation time.Duration
	// Tracing reports what the client does as spans, for example to OpenTelemetry. Nil: no spans.
	Tracing *Tracing
}

// Format prints the options that are set, without their secrets, whatever the verb.
func (o ClientOptions) Format(f fmt.State, _ rune) { redact.SetFields(f, o) }

// ServerMonitoringMode says how servers are monitored.
type ServerMonitoringMode string

// The monitoring modes.
const (
	// as MonitoringStream, but as MonitoringPoll on platforms for functions
	MonitoringAuto   ServerMonitoringMode = "auto"
	MonitoringStream ServerMonitoringMode = "stream" // servers tell of each change at once
	MonitoringPoll   ServerMonitoringMode = "poll"   // servers are asked at each HeartbeatInterval
)

// LogComponent is a part of the driver whose log level can be set separately.
type LogComponent string

// The components.
const (
	LogCommand         LogComponent = "command"         // commands: started, succeeded, failed
	LogTopology        LogComponent = "topology"        // the discovery and monitoring of servers
	LogServerSelection LogComponent = "serverSelection" // the selection of a server for each operation
	LogConnection      LogComponent = "connection"      // connections and their pools
)

// ReadRetryPolicy says when and how often reads are retried. It does not apply in transactions,
// where reads are not retried, or to errors of an overloaded server. The context, the timeout and
// the server selection timeout still bound all attempts.
type ReadRetryPolicy struct {
	// UntilSuccess retries until the read succeeds, fails with an error that is not retryable, or
	// exceeds the socket timeout a second time. False retries once without a Timeout, and within
	// one as long as there is time.
	UntilSuccess bool
	// MaxAttempts bounds the attempts, including the first. Zero leaves it to UntilSuccess.
	MaxAttempts int
}

// validate checks the policy.
func (p *ReadRetryPolicy) validate() error {
	if p.MaxAttempts < 0 {
		return fmt.Errorf("read retry policy: MaxAttempts is %d, want 0 or more", p.MaxAttempts)
	}
	return nil
}

// logLevels returns the levels by the components of package logging.
func (o *ClientOptions) logLevels() (map[logging.Component]slog.Level, error) {
	components := map[LogComponent]logging.Component{LogCommand: logging.Command, LogTopology: logging.Topology,
		LogServerSelection: logging.ServerSelection, LogConnection: logging.Connection}
	levels := make(map[logging.Component]slog.Level, len(o.LogLevels))
	for name, level := range o.LogLevels {
		component, ok := components[name]
		if !ok {
			return nil, fmt.Errorf(
				"option LogLevels has component %q, want command, topology, serverSelection or connection",
				string(name))
		}
		levels[component] = level
	}
	return levels, nil
}

// apply overlays the options on what the connection string configures.
func (o *ClientOptions) apply(c *uri.Config) error {
	if len(o.Hosts) > 0 {
		if c.SRVHost != "" {
			return errors.New(
				"option Hosts and a mongodb+srv connection string exclude each other: its hosts come from DNS")
		}
		hosts, err := uri.ParseHosts(o.Hosts)
		if err != nil {
			return fmt.Errorf("option Hosts: %w", err)
		}
		c.Hosts = hosts
	}
	setString(&c.AppName, o.AppName)
	setString(&c.ReplicaSet, o.ReplicaSet)
	setString(&c.ServerMonitoringMode, string(o.ServerMonitoringMode))
	set(&c.Credential, o.Credential)
	if o.Credentials != nil {
		if o.Credential != nil {
			return errors.New("options Credential and Credentials exclude each other")
		}
		c.Credential = nil
	}
	c.OIDCCallback, c.AWSCallback = o.OIDC != nil, o.AWSCredentials != nil
	setString(&c.SRVServiceName, o.SRVServiceName)
	set(&c.SRVMaxHosts, o.SRVMaxHosts)
	set(&c.SocketTimeout, o.SocketTimeout)
	set(&c.WaitQueueTimeout, o.WaitQueueTimeout)
	set(&c.Direct, o.Direct)
	set(&c.LoadBalanced, o.LoadBalanced)
	set(&c.Timeout, o.Timeout)
	set(&c.RetryReads, o.RetryReads)
	set(&c.RetryWrites, o.RetryWrites)
	set(&c.MaxAdaptiveRetries, o.MaxAdaptiveRetries)
	set(&c.EnableOverloadRetargeting, o.EnableOverloadRetargeting)
	set(&c.ServerSelectionTimeout, o.ServerSelectionTimeout)
	set(&c.ConnectTimeout, o.ConnectTimeout)
	set(&c.HeartbeatInterval, o.HeartbeatInterval)
	set(&c.LocalThreshold, o.LocalThreshold)
	set(&c.MaxPoolSize, o.MaxPoolSize)
	set(&c.MinPoolSize, o.MinPoolSize)
	set(&c.MaxConnecting, o.MaxConnecting)
	set(&c.MaxIdleTime, o.MaxIdleTime)
	set(&c.ZlibCompressionLevel, o.ZlibCompressionLevel)
	for _, name := range o.Compressors {
		if _, ok := wire.CompressorByName(name); !ok {
			return fmt.Errorf(`compressor %q is not supported, want "snappy", "zlib" or "zstd"`, name)
		}
	}
	if o.Compressors != nil {
		c.Compressors = o.Compressors
	}
	if o.ReadPreference != nil {
		c.ReadPreference, c.ReadPreferenceTags, c.MaxStaleness = "", nil, nil
	}
	if o.Proxy != nil {
		c.Proxy = uri.Proxy(*o.Proxy)
	}
	if o.TLSFiles != nil {
		c.TLSIs = o.TLSFiles.options()
	}
	if o.TLS != nil || o.TLSFiles != nil {
		c.TLS = new(true)
	}
	set(&c.TLS, o.UseTLS)
	switch {
	case o.TLS != nil && o.TLSFiles != nil:
		return errors.New("options TLS and TLSFiles exclude each other")
	case (o.TLS != nil || o.TLSFiles != nil) && !c.TLSEnabled():
		return errors.New("option UseTLS is false, which excludes TLS and TLSFiles")
	}
	return nil
}

func set[T any](dst **T, v *T) {
	if v != nil {
		*dst = v
	}
}

func setString(dst *string, v string) {
	if v != "" {
		*dst = v
	}
}

// or returns what p points to, or def.
func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// Collation says how the server compares strings. The zero value of a field leaves it to the
// locale: some have defaults of their own, and a locale such as "en@colNumeric=yes" sets some, so
// that a pointer to false is not the same as nil.
type Collation struct {
	// Locale must be set: for example "en" or "de@collation=phonebook"; "simple" compares bytes.
	Locale string
	// CaseLevel compares upper and lower case at a Strength of 1 or 2.
	CaseLevel *bool
	// CaseFirst sorts upper or lower case first.
	CaseFirst collation.CaseFirst
	// Strength is the level up to which characters are compared.
	Strength collation.Strength
	// NumericOrdering compares sequences of digits as numbers.
	NumericOrdering *bool
	// Alternate says whether spaces and punctuation count.
	Alternate collation.Alternate
	// MaxVariable says what is ignored if Alternate is collation.Shifted.
	MaxVariable collation.MaxVariable
	// Normalization checks whether text has to be normalized, and does it.
	Normalization *bool
	// Backwards compares accents from the end of the string, as some French dictionaries do.
	Backwards *bool
}

// raw returns the collation as the server takes it, nil for a nil one.
func (c *Collation) raw() bson.Raw {
	if c == nil {
		return nil
	}
	start, dst := bson.BeginDocument(nil)
	for _, f := range []struct{ key, value string }{{"locale", c.Locale}, {"caseFirst", string(c.CaseFirst)},
		{"alternate", string(c.Alternate)}, {"maxVariable", string(c.MaxVariable)}} {
		if f.value != "" {
			dst = bson.AppendString(dst, f.key, f.value)
		}
	}
	if c.Strength != 0 {
		dst = bson.AppendInt32(dst, "strength", int32(c.Strength))
	}
	for _, f := range []struct {
		key   string
		value *bool
	}{{"caseLevel", c.CaseLevel}, {"numericOrdering", c.NumericOrdering}, {"normalization", c.Normalization},
		{"backwards", c.Backwards}} {
		if f.value != nil {
			dst = bson.AppendBool(dst, f.key, *f.value)
		}
	}
	return bson.EndDocument(dst, start)
}

// Dialer dials network connections. A *net.Dialer implements it. It must be safe for concurrent
// use.
type Dialer interface {
	// DialContext connects to an address. network is "tcp" or "unix"; address is host:port or the
	// path of the socket.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Resolver looks up the SRV and TXT records of a mongodb+srv connection string. A *net.Resolver
// implements it. Service and protocol are passed without underscores, host names with a final dot.
// If it is also a TTLResolver, the client looks for new mongoses when the records expire, otherwise
// every minute. It must be safe for concurrent use: Open asks for both kinds of records at once.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// TTLResolver is a Resolver that returns how long SRV records are valid.
type TTLResolver interface {
	Resolver
	// LookupSRVTTL returns the records and their shortest time to live, 0 if unknown.
	LookupSRVTTL(ctx context.Context, service, proto, name string) (addrs []*net.SRV, ttl time.Duration, err error)
}

// Proxy is a SOCKS5 proxy.
type Proxy struct {
	Host     string
	Port     int // 0: 1080
	Username string
	Password auth.Secret
}

// Format prints the proxy without its password, whatever the verb.
func (p Proxy) Format(f fmt.State, _ rune) { redact.Fields(f, p) }

// TLSFiles are the TLS settings of a connection string. All files are in PEM format. They are read
// when the client is opened, and again for each connection: what replaces them counts from the next
// connection on. While a file cannot be read, or is half written, its last good content counts, and
// a warning is logged.
type TLSFiles struct {
	// CAFile holds the certificates of trusted authorities. Empty: the system's.
	CAFile string
	// CertificateKeyFile holds the client's certificate and its private key. Empty: the client has
	// none.
	CertificateKeyFile string
	// CertificateKeyFilePassword decrypts the private key.
	CertificateKeyFilePassword auth.Secret
	// Insecure sets both AllowInvalidCertificates and AllowInvalidHostnames.
	Insecure bool
	// AllowInvalidCertificates disables verification of the server's certificate,
	// AllowInvalidHostnames that of its host name. Both are for tests only.
	AllowInvalidCertificates bool
	AllowInvalidHostnames    bool
	// DisableOCSPEndpointCheck keeps the client from contacting OCSP responders; responses stapled
	// by the server are still checked. DisableCertificateRevocationCheck disables revocation checks
	// altogether.
	DisableOCSPEndpointCheck          bool
	DisableCertificateRevocationCheck bool
}

// Format prints the settings that are set, without the password, whatever the verb.
func (o TLSFiles) Format(f fmt.State, _ rune) { redact.SetFields(f, o) }

// options returns the settings as those of a connection string.
func (o *TLSFiles) options() uri.TLSOptions {
	return uri.TLSOptions{
		CAFile: o.CAFile, CertificateKeyFile: o.CertificateKeyFile,
		CertificateKeyFilePassword: o.CertificateKeyFilePassword,
		Insecure:                   yes(o.Insecure), AllowInvalidCertificates: yes(o.AllowInvalidCertificates),
		AllowInvalidHostnames:             yes(o.AllowInvalidHostnames),
		DisableOCSPEndpointCheck:          yes(o.DisableOCSPEndpointCheck),
		DisableCertificateRevocationCheck: yes(o.DisableCertificateRevocationCheck),
	}
}

// yes returns a pointer to true, or nil for false.
func yes(b bool) *bool {
	if b {
		return &b
	}
	return nil
}

// DriverInfo describes a library that wraps the driver. Servers log it with the client's metadata.
// Empty fields add nothing. No field may contain "|".
type DriverInfo struct {
	Name     string
	Version  string
	Platform string
}

// ServerAPIVersion is a version of the Stable API.
type ServerAPIVersion string

// ServerAPIV1 is the first version, and so far the only one (specification: Stable API for
// Drivers).
const ServerAPIV1 ServerAPIVersion = "1"

// ServerAPI declares a version of the Stable API.
type ServerAPI struct {
	// Version is the version of the API; it must be set.
	Version ServerAPIVersion
	// Strict makes the server reject commands and fields that are not part of the API. Nil is not
	// sent, which means false; false is sent.
	Strict *bool
	// DeprecationErrors makes the server reject deprecated parts of the API. Nil is not sent, which
	// means false; false is sent.
	DeprecationErrors *bool
}
