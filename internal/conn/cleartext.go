package conn

import (
	"allium/auth"
	"errors"
	"net"
)

var errCleartext = errors.New(
	"the password would be sent in clear: switch TLS on, or set ClientOptions.AllowPlainWithoutTLS")

// CheckCleartext refuses to authenticate to the server at addr with a mechanism if that sends the
// password as it is over a network that others may read along: mechanism PLAIN without TLS. The
// specification Authentication leaves that to the driver; RFC 4616, section 4, wants PLAIN not to
// be used without data security. What stays on this machine may go in clear.
func (c *Config) CheckCleartext(addr string, m auth.Mechanism) error {
	if m != auth.MechanismPlain || c.TLS != nil || !c.RefuseCleartext || c.isLocal(addr) {
		return nil
	}
	return errCleartext
}

// WarnCleartext returns what to warn of if authentication to the server at addr with a mechanism
// sends an access token as it is over a network that others may read along, "" if it does not. The
// specification Authentication says nothing about it, and others connect, so it is no error: but
// who reads the token is the client's user until it expires (RFC 6750, section 5.3).
func (c *Config) WarnCleartext(addr string, m auth.Mechanism) string {
	if m != auth.MechanismOIDC || c.TLS != nil || c.isLocal(addr) {
		return ""
	}
	return "the access token of MONGODB-OIDC is sent to " + addr + " in clear: switch TLS on with tls=true"
}

// isLocal reports whether an address is on this machine. What a proxy takes for its own machine is
// not.
func (c *Config) isLocal(addr string) bool {
	if network(addr) == "unix" {
		return true
	}
	if _, ok := c.Dialer.(*proxyDialer); ok {
		return false
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
