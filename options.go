package allium

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/logging"
	"allium/internal/redact"
	"allium/internal/uri"
	"allium/internal/wire"
)

// ClientOptions are settings of a client beside those of its connection string. A field that is set wins over the
// string's option of the same meaning; a nil pointer, an empty string and a nil slice mean "not set". The driver changes nothing in
// it, so that several clients can have the same; do not change what its pointers lead to while one of them is open.
type ClientOptions struct {
	// AppName names the application in the server's logs and profiles, in 128 bytes at most.
	AppName string
	// DriverInfo names a library that wraps the driver.
	DriverInfo *DriverInfo
	// Credential says who the client is. It replaces the connection string's as a whole.
	Credential *auth.Credential
	// AllowPlainWithoutTLS lets the mechanism PLAIN send the password to servers on other machines without TLS, where everybody on
	// the way can read it. Without it, Open and connections to such servers fail.
	AllowPlainWithoutTLS bool
	// OIDC is where the access tokens of MONGODB-OIDC come from, if not from the property ENVIRONMENT of the credential.
	OIDC *auth.OIDC
	// AWSCredentials returns the keys of MONGODB-AWS, for each connection that is made; it may be called by many goroutines. Nil: they
	// come from the environment (variables, web identity, container, virtual machine). The providers of Amazon's SDK fit in with one
	// line around them.
	AWSCredentials auth.AWSCallback

	// ReplicaSet is the name that the replica set must have. Direct connects to one server only, whatever set it belongs to.
	// LoadBalanced says that the servers are behind a load balancer.
	ReplicaSet   string
	Direct       *bool
	LoadBalanced *bool
	// SRVServiceName is the service of a mongodb+srv string's SRV records. Empty: "mongodb". SRVMaxHosts is how many of the servers
	// that they name are used, chosen at random. Nil and 0: all.
	SRVServiceName string
	SRVMaxHosts    *int

	// ReadPreference, ReadConcern and WriteConcern are handed down to databases and collections.
	ReadPreference *consistency.ReadPreference
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	// BSON says how Go values and BSON correspond, for example which UUID representation is used: if it does not choose one, the
	// connection string's uuidRepresentation. Nil: the defaults of package bson.
	BSON *bson.Options
	// Timeout bounds each operation from start to finish: selection, checkout, all attempts (timeoutMS). A pointer to 0 means
	// no bound. Nil: no bound but the contexts'.
	Timeout *time.Duration

	// RetryReads and RetryWrites are on unless set to a pointer to false.
	RetryReads  *bool
	RetryWrites *bool
	// ReadRetryPolicy says how often a read is tried again.
	ReadRetryPolicy ReadRetryPolicy
	// MaxAdaptiveRetries is how often any operation is tried again once a server said that it is overloaded. Nil: 2.
	MaxAdaptiveRetries *int
	// EnableOverloadRetargeting makes such a retry avoid the overloaded server, so that a read with PrimaryPreferred may
	// go to a secondary. Nil: false.
	EnableOverloadRetargeting *bool

	// ServerSelectionTimeout bounds the wait for a suitable server. Nil: 30 seconds.
	ServerSelectionTimeout *time.Duration
	// ConnectTimeout bounds each step of making a connection. Nil: 10 seconds; 0: no bound.
	ConnectTimeout *time.Duration
	// SocketTimeout bounds each write to a server and each wait for its reply. Nil and 0: no bound.
	//
	// Deprecated: set Timeout, which bounds the whole operation and breaks no connection.
	SocketTimeout *time.Duration
	// WaitQueueTimeout bounds the wait for a connection of a pool that is used up. Nil and 0: only Timeout and the context do.
	//
	// Deprecated: set Timeout.
	WaitQueueTimeout *time.Duration
	// HeartbeatInterval is how often idle servers are checked, at least 500 milliseconds. Nil: 10 seconds.
	HeartbeatInterval *time.Duration
	// LocalThreshold is how much slower than the nearest suitable server another one may be. Nil: 15 milliseconds.
	LocalThreshold *time.Duration
	// ServerMonitoringMode says how servers are monitored. Empty: MonitoringAuto.
	ServerMonitoringMode ServerMonitoringMode

	// ServerSelector narrows down the suitable servers of every operation. It gets the suitable ones, returns those that
	// it accepts, and must not change them. It is called by many goroutines.
	ServerSelector func(servers []*event.ServerDescription) []*event.ServerDescription

	// MaxPoolSize is how many connections to one server there are at most. Nil: 100; 0: no limit.
	MaxPoolSize *int
	// MinPoolSize is how many connections are kept ready. Nil: 0.
	MinPoolSize *int
	// MaxConnecting is how many connections are made at the same time. Nil: 2.
	MaxConnecting *int
	// MaxIdleTime is how long a connection may be idle before it is closed. Nil and 0: no limit.
	MaxIdleTime *time.Duration

	// Compressors are offered to the server in this order: "snappy", "zlib", "zstd". Open refuses others.
	Compressors []string
	// ZlibCompressionLevel is -1 (default) to 9.
	ZlibCompressionLevel *int

	// TLS switches TLS on, and is the configuration that connections use; ServerName is filled in.
	TLS *tls.Config
	// TLSFiles switches TLS on with certificates out of files and with what the connection string's options whose names begin
	// with tls say; it replaces those. It excludes TLS.
	TLSFiles *TLSFiles
	// Proxy is the SOCKS5 proxy that servers are reached through. It replaces the connection string's as a whole.
	Proxy *Proxy
	// Dialer makes network connections instead of the driver's own.
	Dialer Dialer
	// Resolver asks DNS about a mongodb+srv connection string, instead of the system's resolver.
	Resolver Resolver

	// ServerAPI declares a version of the Stable API. It cannot be set in a connection string.
	ServerAPI *ServerAPI

	// Encryption encrypts fields before they leave the program, and decrypts them when they come back. Package encryption makes one.
	Encryption Encryption

	// CommandMonitor, PoolMonitor and ServerMonitor listen to the driver's events.
	CommandMonitor *event.CommandMonitor
	PoolMonitor    *event.PoolMonitor
	ServerMonitor  *event.ServerMonitor
	// Logger takes the driver's log messages, at the levels that the environment variables MONGODB_LOG_* set. Nil: they go
	// where MONGODB_LOG_PATH says, if any of those variables is set.
	Logger *slog.Logger
	// LogLevels are the least severe levels that are logged, by component. They win over the environment variables; its example lets
	// the environment win. A component that is not named has the level that the environment sets, or logs all that Logger takes.
	LogLevels map[LogComponent]slog.Level
	// MaxLogDocumentLength is how much of a document's Extended JSON a message holds, in bytes. Zero: what the environment variable
	// MONGODB_LOG_MAX_DOCUMENT_LENGTH says, 1000 by default.
	MaxLogDocumentLength int
	// Tracing tells spans of what the client does, for example to OpenTelemetry. Nil: none.
	Tracing *Tracing
}

// Format prints the options that are set, without their secrets, whatever the verb.
func (o ClientOptions) Format(f fmt.State, _ rune) { redact.SetFields(f, o) }

// ServerMonitoringMode says how servers are monitored.
type ServerMonitoringMode string

// The monitoring modes.
const (
	MonitoringAuto   ServerMonitoringMode = "auto"   // as MonitoringStream, but as MonitoringPoll on platforms for functions
	MonitoringStream ServerMonitoringMode = "stream" // servers tell of each change at once
	MonitoringPoll   ServerMonitoringMode = "poll"   // servers are asked at each HeartbeatInterval
)

// LogComponent is a part of the driver whose log messages have a level of their own.
type LogComponent string

// The components.
const (
	LogCommand         LogComponent = "command"         // commands: started, succeeded, failed
	LogTopology        LogComponent = "topology"        // the discovery and monitoring of servers
	LogServerSelection LogComponent = "serverSelection" // the selection of a server for each operation
	LogConnection      LogComponent = "connection"      // connections and their pools
)

// ReadRetryPolicy says how often a read is tried again. It does not apply inside of transactions, where reads are not tried
// again, and after the error of an overloaded server. The context, the timeout and the selection timeout end every attempt.
type ReadRetryPolicy struct {
	// Rule says when a read is tried again.
	Rule ReadRetryRule
	// MaxAttempts bounds the attempts, the first one included. Zero leaves it to the rule.
	MaxAttempts int
}

// ReadRetryRule says when a read is tried again. The empty ReadRetryRule tries once more without a Timeout, and within one as often as
// there is time.
type ReadRetryRule string

// RetryUntilSuccess goes on until success, until an error that is not retryable, or until the second socket timeout.
const RetryUntilSuccess ReadRetryRule = "untilSuccess"

// validate checks the policy.
func (p *ReadRetryPolicy) validate() error {
	if p.Rule != "" && p.Rule != RetryUntilSuccess {
		return fmt.Errorf("read retry policy: Rule is %q, want \"\" or %q", p.Rule, RetryUntilSuccess)
	}
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
			return nil, fmt.Errorf("log component %q is unknown", string(name))
		}
		levels[component] = level
	}
	return levels, nil
}

// apply overlays the options on what the connection string configures.
func (o *ClientOptions) apply(c *uri.Config) error {
	setString(&c.AppName, o.AppName)
	setString(&c.ReplicaSet, o.ReplicaSet)
	setString(&c.ServerMonitoringMode, string(o.ServerMonitoringMode))
	set(&c.Credential, o.Credential)
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
	if o.TLS != nil && o.TLSFiles != nil {
		return errors.New("options TLS and TLSFiles exclude each other")
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
