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

// Dialer makes network connections. A *net.Dialer is one. It is called by many goroutines.
type Dialer interface {
	// DialContext connects to an address. network is "tcp" or "unix"; address is host:port or the path of the socket.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Resolver asks DNS for the SRV and TXT records of a mongodb+srv connection string. A *net.Resolver is one. It is asked with the
// names of service and protocol without underscores, and with absolute host names, which end in a dot. If it also is a
// TTLResolver, the client asks again for new mongoses when the records' time to live is over, else every minute.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// TTLResolver is a Resolver that knows for how long SRV records are valid.
type TTLResolver interface {
	Resolver
	// LookupSRVTTL returns the records and the shortest time to live among them, 0 if it is not known.
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

// TLSFiles are the settings of TLS that a connection string has. All files are in PEM.
type TLSFiles struct {
	// CAFile holds the certificates of the authorities that are trusted. Empty: the system's.
	CAFile string
	// CertificateKeyFile holds the client's certificate and its private key. Empty: the client has none.
	CertificateKeyFile string
	// CertificateKeyFilePassword decrypts the private key.
	CertificateKeyFilePassword auth.Secret
	// Insecure stands for AllowInvalidCertificates and AllowInvalidHostnames together.
	Insecure bool
	// AllowInvalidCertificates switches the check of the server's certificate off, and AllowInvalidHostnames that of the host
	// name in it. Both are for tests only.
	AllowInvalidCertificates bool
	AllowInvalidHostnames    bool
	// DisableOCSPEndpointCheck keeps the client from asking responders whether a server's certificate was revoked; what the server
	// staples still counts. DisableCertificateRevocationCheck keeps it from looking at revocation at all.
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

// DriverInfo names a library that wraps the driver in the metadata that servers log. Empty fields add nothing. No field may
// contain "|".
type DriverInfo struct {
	Name     string
	Version  string
	Platform string
}

// ServerAPI declares a version of the Stable API.
type ServerAPI struct {
	// Version is "1".
	Version string
	// Strict makes the server reject commands and fields that are not part of the API.
	Strict bool
	// DeprecationErrors makes the server reject what is deprecated in the API.
	DeprecationErrors bool
}
