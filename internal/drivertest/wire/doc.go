// Package wire tests what a client sends, to whom and over which connections, and what it says of
// that in logs, spans and figures: every option arrives as itself, and what is wrong is refused
// before anything is sent.
package wire
