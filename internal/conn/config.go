package conn

import (
	"context"
	"net"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/auth"
	"allium/internal/ocsp"
	"allium/internal/wire"
)

// Dialer makes network connections. network is "tcp" or "unix"; address is host:port or the path of
// the socket.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Config is what all connections of a client have in common. It is read only once the first
// connection is made.
type Config struct {
	// Dialer makes the network connection. Nil: a net.Dialer with TCP keep-alive, which tries IPv6
	// and IPv4 addresses as RFC 6555 ("happy eyeballs") says.
	Dialer Dialer
	// TLS is set if connections use TLS. ServerName is filled in per connection when it is empty.
	TLS *TLS
	// Revocation finds out whether a server's certificate was revoked. Nil: that is not asked.
	Revocation *ocsp.Checker
	// Metadata is the client document of the handshake. Nil: that of a client without an
	// application name.
	Metadata *Metadata
	// Compressors are the names of the compressors to offer, the preferred one first.
	Compressors []string
	// Authenticator proves who the client is. Nil: no authentication. Monitors do not authenticate.
	Authenticator *auth.Authenticator
	// RefuseCleartext refuses to send the password of the mechanism PLAIN to other machines without
	// TLS.
	RefuseCleartext bool
	// ZlibLevel is the level of zlib, -1 (default) to 9. Nil: -1.
	ZlibLevel *int
	// ServerAPI declares a version of the Stable API. Nil: none.
	ServerAPI *ServerAPI
	// LoadBalanced says that the client connects through a load balancer.
	LoadBalanced bool
	// Greeted is called with what the server said in the handshake's hello, before the
	// authentication, on the goroutine of Dial. It may be nil.
	Greeted func(*event.ServerDescription)
	// Ahead is a network connection to the server that was dialed ahead, which Dial takes if it is
	// still there. It may be nil.
	Ahead *Ahead
	// ConnectTimeout bounds the time of each step of making a connection: the dial, the TLS
	// handshake and each round trip of the handshake and the authentication. Zero: no bound but the
	// context's and those below.
	ConnectTimeout time.Duration
	// SocketTimeout bounds each round trip of the handshake and the authentication, too, unless a
	// timeoutMS is set. Zero: none.
	SocketTimeout time.Duration
	// Timeout is the client's timeoutMS, nil if none is set. It bounds each round trip of the
	// authentication (specification: Client Side Operations Timeout, "Background Connection
	// Pooling"; its tests want connections to be made whose hello takes longer). Zero: no bound.
	Timeout *time.Duration
	// Operation is the timeoutMS of the operation that a connection is made for, in place of
	// Timeout, nil if it has none or the connection is for nobody in particular. It bounds each
	// step, with the requests that authentication sends elsewhere. Zero: no bound.
	Operation *time.Duration
	// DrainTimeout bounds how long Drain waits in all for a reply that an operation left behind.
	// Zero: DefaultDrainTimeout.
	DrainTimeout time.Duration
}

// steps returns what bounds each step of making a connection.
func (c *Config) steps() time.Duration {
	if c.Operation == nil {
		return c.ConnectTimeout
	}
	return shorter(c.ConnectTimeout, *c.Operation)
}

// handshake returns what bounds the hello, and authentication what bounds each of the round trips
// after it.
func (c *Config) handshake() time.Duration {
	if c.Timeout != nil || c.Operation != nil {
		return c.steps()
	}
	return shorter(c.ConnectTimeout, c.SocketTimeout)
}

func (c *Config) authentication() time.Duration {
	if c.Timeout != nil && c.Operation == nil {
		return shorter(c.ConnectTimeout, *c.Timeout)
	}
	return c.handshake()
}

// shorter returns the lesser of two limits, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

func (c *Config) zlibLevel() int {
	if c.ZlibLevel == nil {
		return wire.DefaultZlibLevel
	}
	return *c.ZlibLevel
}

// DefaultDrainTimeout is how long a connection may take to read off a reply that a timed-out or
// cancelled operation left behind.
const DefaultDrainTimeout = time.Second

// ServerAPI is a declaration of the Stable API (specification: Stable API).
type ServerAPI struct {
	Version           string
	Strict            *bool // nil: not sent
	DeprecationErrors *bool
}

// Append appends the fields that declare the API version to a command. It does nothing on nil.
func (a *ServerAPI) Append(dst []byte) []byte {
	if a == nil {
		return dst
	}
	dst = bson.AppendString(dst, "apiVersion", string(a.Version))
	if a.Strict != nil {
		dst = bson.AppendBool(dst, "apiStrict", *a.Strict)
	}
	if a.DeprecationErrors != nil {
		dst = bson.AppendBool(dst, "apiDeprecationErrors", *a.DeprecationErrors)
	}
	return dst
}
