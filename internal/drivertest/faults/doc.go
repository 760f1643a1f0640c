// Package faults tests what the driver does when something breaks: servers that step down, are
// silent or lie, code of the program's that panics or hangs, contexts that end. Nothing is lost or
// done twice, nothing is left on a server or in the client, and the error says what happened.
package faults
