package mongoerr

// Phase says what an operation was doing when its time was up, or its context was cancelled.
type Phase string

// The phases of an operation. Further ones may be added. An operation that waits for a connection
// to be made is in PhaseCheckout: those of connecting are the attempt's own, as the events of pools
// and the descriptions of servers tell of it, and PhaseAuthentication is also that of an operation
// whose connection has to be authenticated again.
const (
	PhaseSelection Phase = "server selection"
	PhaseCheckout  Phase = "connection checkout" // with what the connection owes from before
	PhaseConnect   Phase = "connect"             // a step of making a connection that is not told apart
	PhaseDial      Phase = "connect (dial)"      // the network connection, through a proxy if there is one
	PhaseTLS       Phase = "connect (TLS handshake)"
	// asking whether the server's certificate was revoked
	PhaseRevocation     Phase = "connect (certificate revocation)"
	PhaseHello          Phase = "connect (hello)" // the handshake of the protocol
	PhaseAuthentication Phase = "connect (authenticate)"
	PhaseEncoding       Phase = "encoding"   // of the command, by code of the program's
	PhaseEncryption     Phase = "encryption" // of the command, with the requests for keys
	// before it was sent, between attempts, or the server says that its time was up
	PhaseCommand     Phase = "command"
	PhaseWrite       Phase = "write"       // of the command
	PhaseRead        Phase = "read"        // of the reply
	PhaseDecryption  Phase = "decryption"  // of the reply
	PhaseResume      Phase = "resume"      // of a change stream
	PhaseTransaction Phase = "transaction" // Transact, between or over its operations
	PhaseIndexes     Phase = "waiting for another upload to create the indexes"
)

// Source says whose limit passed. It is part of the error's text.
type Source string

// The limits. The socket timeout is not among them: a round trip that takes longer is a
// ConnectionError, as the connection is closed.
const (
	SourceContext    Source = "the context's deadline"
	SourceCancel     Source = "context" // the context was cancelled
	SourceClient     Source = "the timeout of the client"
	SourceDatabase   Source = "the timeout of the database"
	SourceCollection Source = "the timeout of the collection"
	SourceSession    Source = "the timeout of the session"
	SourceOperation  Source = "the timeout of the operation" // or of a GridFS bucket
	// any of the timeouts above, while a connection is made for it
	SourceConnecting      Source = "the operation's timeout"
	SourceServerSelection Source = "serverSelectionTimeoutMS"
	SourceWaitQueue       Source = "waitQueueTimeoutMS"
	SourceTransact        Source = "the limit of 120 seconds" // of Transact without a timeout
)
