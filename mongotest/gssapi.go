package mongotest

import "allium/mongotest/internal/account"

// Acceptor is the service's side of Kerberos, for the mechanism GSSAPI. Package kerberostest of the
// module allium/kerberos provides one. It must be safe for concurrent use.
type Acceptor interface {
	// Accept takes the first token of a client, and returns the answer and the security context
	// that it establishes.
	Accept(token []byte) (reply []byte, c AcceptedContext, err error)
}

// AcceptedContext is a security context with a client.
type AcceptedContext interface {
	// Principal returns the client's name with its realm: the name of its user on "$external".
	Principal() string
	// Wrap protects the integrity of a message to the client, and Unwrap checks that of one from
	// it.
	Wrap(message []byte) ([]byte, error)
	Unwrap(token []byte) ([]byte, error)
}

// GSSAPI enables authentication with Kerberos. The principals that may authenticate are users on
// "$external": see [Deployment.AddUser]. Why a client is refused is told to [Log] only, as a server
// does.
func GSSAPI(a Acceptor) Option { return func(o *options) { o.acceptor = acceptor{a} } }

// acceptor hides an Acceptor behind the interface of the server.
type acceptor struct{ Acceptor }

func (a acceptor) Accept(token []byte) ([]byte, account.KerberosContext, error) {
	return a.Acceptor.Accept(token)
}
