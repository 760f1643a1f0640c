package auth

import (
	"allium/internal/redact"
	"context"
	"fmt"
)

// GSSAPI makes the security contexts of the mechanism GSSAPI, which is Kerberos (RFC 4121). The
// module allium/kerberos implements it, so that programs without Kerberos do not depend on a
// library for it. It is used by several goroutines at once.
type GSSAPI interface {
	// Begin begins the context of a new connection. It must return when ctx ends. Its error should
	// say what to do about it.
	Begin(ctx context.Context, p GSSAPIParams) (GSSAPIContext, error)
}

// GSSAPIParams say who authenticates to whom. The password is redacted when they are printed.
type GSSAPIParams struct {
	// Username is the principal, with or without its realm: "ada@EXAMPLE.COM" or "ada".
	Username string
	Password Secret
	// PasswordSet says that an empty Password is a password, not the lack of one.
	PasswordSet bool
	// ServiceName and ServiceHost are the parts of the server's principal, "mongodb" and
	// "db1.example.com" for example. The host is that of the server's address, or the property
	// SERVICE_HOST, made canonical as CANONICALIZE_HOST_NAME says.
	ServiceName, ServiceHost string
	// ServiceRealm is the server's realm. Empty: what the Kerberos configuration says of the host.
	ServiceRealm string
}

// Format prints the parameters without the password, whatever the verb.
func (p GSSAPIParams) Format(f fmt.State, _ rune) { redact.Fields(f, p) }

// GSSAPIContext is the client's side of one security context. It is used by one goroutine at a
// time.
type GSSAPIContext interface {
	// Step takes the server's token, nil at first, and returns the next one for it. done says that
	// the context is established: both sides have proved who they are.
	Step(token []byte) (reply []byte, done bool, err error)
	// Wrap protects the integrity of a message to the server, and does not encrypt it.
	Wrap(message []byte) ([]byte, error)
	// Unwrap checks the integrity of a message of the server and returns it.
	Unwrap(token []byte) ([]byte, error)
	// Refused says that the server did not accept the client: its ticket should not be used again.
	Refused()
}
