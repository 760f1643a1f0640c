// Package conn is one connection to a server: dialing, TLS, the handshake, authentication,
// compression and the round trip of a message. It starts no goroutine for an operation: a context's
// deadline becomes the socket's, and a cancellation reaches the socket through context.AfterFunc if
// the operation is slow enough for its context to be watched.
//
// A connection belongs to one goroutine at a time. Only Close may be called from another one.
package conn
