package uri

import (
	"fmt"
	"io"
	"time"

	"allium/auth"
	"allium/internal/redact"
)

// Config is what a connection string configures. A nil pointer, an empty string or a nil slice
// means that the option was not given; a duration of 0 means what the option's specification says
// about 0.
type Config struct {
	// SRVHost is the host name of a mongodb+srv string, in lower case; Hosts is empty until
	// ApplySRV. Else Hosts are the addresses: host:port with the host in lower case, or the path of
	// a Unix domain socket.
	SRVHost string
	Hosts   []string

	Database   string           // the database of the path, "" if there is none
	Credential *auth.Credential // nil: no authentication
	// OIDCCallback and AWSCallback say that the program supplies the tokens of MONGODB-OIDC, or the
	// keys of MONGODB-AWS, itself.
	OIDCCallback, AWSCallback bool

	AppName        string
	ReplicaSet     string
	Direct         *bool // directConnection
	LoadBalanced   *bool
	SRVMaxHosts    *int
	SRVServiceName string

	ConnectTimeout         *time.Duration // 0: no timeout
	SocketTimeout          *time.Duration // 0: no timeout; deprecated
	Timeout                *time.Duration // timeoutMS; 0: no timeout
	ServerSelectionTimeout *time.Duration
	WaitQueueTimeout       *time.Duration // deprecated
	HeartbeatInterval      *time.Duration // heartbeatFrequencyMS
	LocalThreshold         *time.Duration
	ServerMonitoringMode   string // "stream", "poll" or "auto"

	MaxPoolSize   *int // 0: no limit
	MinPoolSize   *int
	MaxConnecting *int
	MaxIdleTime   *time.Duration // 0: no limit

	Compressors          []string // in order of preference
	ZlibCompressionLevel *int     // -1 (default) to 9

	ReadConcernLevel   string
	ReadPreference     string // the mode, for example "secondaryPreferred"
	ReadPreferenceTags []map[string]string
	MaxStaleness       *time.Duration // -1 second: no limit; from 0 on a limit, which may be too small
	W                  any            // int or string
	WTimeout           *time.Duration
	Journal            *bool

	UUIDRepresentation string // "standard", "javaLegacy", "csharpLegacy", "pythonLegacy" or "unspecified"

	RetryReads                *bool
	RetryWrites               *bool
	MaxAdaptiveRetries        *int
	EnableOverloadRetargeting *bool

	// TLS switches TLS on. It is on if the string begins with mongodb+srv or has any other option
	// whose name begins with tls, whatever its value, unless the string says tls=false.
	TLS   *bool
	TLSIs TLSOptions
	Proxy Proxy

	// Warnings say what was ignored or is deprecated, in the order of the string. They contain no
	// secret.
	Warnings []string

	authSource string // as an option or a TXT record gives it
	slaveOk    bool
	tlsImplied bool // an option about TLS was there, whatever its value
	redacted   string
}

// TLSOptions are the options about TLS beside tls itself.
type TLSOptions struct {
	CAFile                            string
	CertificateKeyFile                string
	CertificateKeyFilePassword        auth.Secret
	Insecure                          *bool
	AllowInvalidCertificates          *bool
	AllowInvalidHostnames             *bool
	DisableOCSPEndpointCheck          *bool
	DisableCertificateRevocationCheck *bool
}

// Proxy is a SOCKS5 proxy (specification: SOCKS5 Support). Without a host there is none.
type Proxy struct {
	Host     string
	Port     int // 0: 1080
	Username string
	Password auth.Secret
}

// Format prints the options without the password, whatever the verb.
func (o TLSOptions) Format(f fmt.State, _ rune) { redact.SetFields(f, o) }

// Format prints the proxy without its password, whatever the verb.
func (p Proxy) Format(f fmt.State, _ rune) { redact.Fields(f, p) }

// TLSEnabled reports whether connections use TLS.
func (c *Config) TLSEnabled() bool { return c.TLS != nil && *c.TLS }

// String returns the connection string without its secrets.
func (c *Config) String() string { return c.redacted }

// Format prints the connection string without its secrets, whatever the verb.
func (c *Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.redacted) }

// AuthSource returns the database to authenticate against as an option or a TXT record gives it, ""
// if none does.
func (c *Config) AuthSource() string { return c.authSource }
