// Package auth proves to a server who the client is (specification: Authentication).
//
// An Authenticator belongs to a client and knows its credential. Every connection makes an Attempt
// of its own, which adds its fields to the handshake's hello, because the first message of most
// mechanisms can travel there, and then finishes over the connection. What a mechanism does is a
// conversation; those that are SASL mechanisms (SCRAM, PLAIN and others) implement saslClient
// alone.
//
// No error of this package contains a password, a token or a proof.
package auth
