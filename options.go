package allium

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/auth"
	"allium/internal/conn"
	"allium/internal/exec"
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
	Credential *Credential
	// AllowPlainWithoutTLS lets the mechanism PLAIN send the password to servers on other machines without TLS, where everybody on
	// the way can read it. Without it, Open and connections to such servers fail.
	AllowPlainWithoutTLS bool
	// OIDC is where the access tokens of MONGODB-OIDC come from, if not from the property ENVIRONMENT of the credential.
	OIDC *OIDC
	// AWSCredentials returns the keys of MONGODB-AWS, for each connection that is made; it may be called by many goroutines. Nil: they
	// come from the environment (variables, web identity, container, virtual machine). The providers of Amazon's SDK fit in with one
	// line around them.
	AWSCredentials AWSCallback

	// ReplicaSet is the name that the replica set must have. Direct connects to one server only, whatever set it belongs to.
	ReplicaSet   string
	Direct       *bool
	LoadBalanced *bool
	// SRVServiceName is the service of a mongodb+srv string's SRV records. Empty: "mongodb". SRVMaxHosts is how many of the servers
	// that they name are used, chosen at random. Nil and 0: all.
	SRVServiceName string
	SRVMaxHosts    *int

	// ReadPreference, ReadConcern and WriteConcern are handed down to databases and collections.
	ReadPreference *ReadPreference
	ReadConcern    *ReadConcern
	WriteConcern   *WriteConcern
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
	// ServerMonitoringMode is "stream", "poll" or "auto".
	ServerMonitoringMode string

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
}

// Format prints the options that are set, without their secrets, whatever the verb.
func (o ClientOptions) Format(f fmt.State, _ rune) { redact.SetFields(f, o) }

// LogComponent is a part of the driver whose log messages have a level of their own (specification: Logging).
type LogComponent = logging.Component

// The components.
const (
	LogCommand         = logging.Command
	LogTopology        = logging.Topology
	LogServerSelection = logging.ServerSelection
	LogConnection      = logging.Connection
)

// Credential says who the client is, and how it proves it: Username, Password (PasswordSet says that an empty one is meant), Source
// (the database that the user is defined in; empty: what the mechanism asks for, mostly "admin"), Mechanism ("" negotiates SCRAM with
// the server) and Properties of the mechanism, a map of strings. It never prints its password.
//
// The properties of MONGODB-OIDC are ENVIRONMENT ("azure", "gcp" or "k8s", which provide access tokens by themselves) and, for the first
// two, TOKEN_RESOURCE, who the tokens are for. A resource may hold colons; one with a comma cannot stand in a connection string.
type Credential = uri.Credential

// OIDC says where the access tokens of MONGODB-OIDC come from (specification: Authentication): from Callback, for services, which has
// the client's ConnectTimeout or Timeout to return one, or a minute; or from HumanCallback, which has a person log in within five
// minutes, and whose token is sent to AllowedHosts only (nil: DefaultOIDCHosts). No callback is called by two goroutines at once.
type OIDC = auth.OIDC

// OIDCCallback returns an access token of MONGODB-OIDC. It must return when its context ends.
type OIDCCallback = auth.OIDCCallback

// OIDCParams are what an OIDCCallback gets: Version (OIDCVersion), Username (that of the credential), and for a HumanCallback IDP, the
// identity provider that the server names, and RefreshToken, what the last call returned, if that can still be used.
type OIDCParams = auth.OIDCParams

// OIDCVersion is the version of what an OIDCCallback gets and returns.
const OIDCVersion = auth.OIDCVersion

// OIDCCredential is what an OIDCCallback returns: AccessToken, which the client keeps until a server refuses it; ExpiresIn, how long it
// is valid (zero: not known); and RefreshToken, for the next call of a HumanCallback (empty: none). It prints no token, nor does its JSON
// hold one.
type OIDCCredential = auth.OIDCCredential

// AWSCallback returns the keys of MONGODB-AWS. It has as much time as OIDC.Callback.
type AWSCallback = auth.AWSCallback

// AWSCredentials are the keys of MONGODB-AWS: AccessKeyID, SecretAccessKey, and SessionToken of temporary ones. They never print their
// secrets.
type AWSCredentials = auth.AWSCredentials

// IDPInfo is an identity provider, which a server names: Issuer is its URL, ClientID the application's id there, RequestScopes what to
// ask for besides.
type IDPInfo = auth.IDPInfo

// DefaultOIDCHosts returns the hosts that a person's token may be sent to if OIDC.AllowedHosts does not say.
func DefaultOIDCHosts() []string { return auth.DefaultOIDCHosts() }

// TLSFiles are the settings of TLS that a connection string has: CAFile holds the certificates of those who may vouch for a server
// (empty: the system's), CertificateKeyFile the client's certificate and private key, CertificateKeyFilePassword what that key is
// encrypted with, all in PEM. AllowInvalidCertificates, AllowInvalidHostnames and Insecure, which stands for both, switch checks off,
// for tests. DisableOCSPEndpointCheck and DisableCertificateRevocationCheck have no effect: the driver asks nobody whether a
// certificate was revoked.
type TLSFiles = uri.TLSOptions

// Proxy is a SOCKS5 proxy (specification: SOCKS5 Support): Host, Port (0: 1080), and Username with Password if it asks for them.
// It never prints its password.
type Proxy = uri.Proxy

// Secret is a string that is redacted when it is printed, logged or marshaled as text. Package fmt asks no method of a value in an
// unexported field, so that one there is printed as it is.
type Secret = uri.Secret

// DriverInfo names a library that wraps the driver in the metadata that servers log: Name, Version and Platform.
type DriverInfo = conn.DriverInfo

// Dialer makes network connections. A net.Dialer is one.
type Dialer = conn.Dialer

// ServerAPI declares a version of the Stable API (specification: Stable API): Version is "1"; Strict makes the server refuse what is
// not part of it, DeprecationErrors what is deprecated in it.
type ServerAPI = conn.ServerAPI

// ReadRetryPolicy says how often a read is tried again: its fields are Rule and MaxAttempts, which bounds the attempts, the first one
// included, if it is not 0. Outside of the policy stay transactions, where reads are not tried again, and servers that are overloaded;
// the context, the timeout and the selection timeout end every attempt.
type ReadRetryPolicy = exec.ReadRetryPolicy

// ReadRetryRule is when a read is tried again.
type ReadRetryRule = exec.ReadRetryRule

// The rules of a ReadRetryPolicy.
const (
	// RetryDefault tries once more without a Timeout, and within one as often as there is time.
	RetryDefault = exec.RetryDefault
	// RetryUntilSuccess goes on until success, until an error that is not retryable, or until the second socket timeout.
	RetryUntilSuccess = exec.RetryUntilSuccess
)

// apply overlays the options on what the connection string configures.
func (o *ClientOptions) apply(c *uri.Config) error {
	setString(&c.AppName, o.AppName)
	setString(&c.ReplicaSet, o.ReplicaSet)
	setString(&c.ServerMonitoringMode, o.ServerMonitoringMode)
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
		c.Proxy = *o.Proxy
	}
	if o.TLSFiles != nil {
		c.TLSIs = *o.TLSFiles
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
