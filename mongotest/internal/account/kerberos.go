package account

// Kerberos accepts security contexts.
type Kerberos interface {
	Accept(token []byte) (reply []byte, c KerberosContext, err error)
}

// KerberosContext is an accepted security context.
type KerberosContext interface {
	Principal() string
	Wrap(message []byte) ([]byte, error)
	Unwrap(token []byte) ([]byte, error)
}
