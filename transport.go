package allium

import (
	"context"
	"fmt"
	"net"
	"time"

	"allium/auth"
	"allium/internal/redact"
	"allium/internal/uri"
)

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
		CAFile: o.CAFile, CertificateKeyFile: o.CertificateKeyFile, CertificateKeyFilePassword: o.CertificateKeyFilePassword,
		Insecure: yes(o.Insecure), AllowInvalidCertificates: yes(o.AllowInvalidCertificates), AllowInvalidHostnames: yes(o.AllowInvalidHostnames),
		DisableOCSPEndpointCheck: yes(o.DisableOCSPEndpointCheck), DisableCertificateRevocationCheck: yes(o.DisableCertificateRevocationCheck),
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
