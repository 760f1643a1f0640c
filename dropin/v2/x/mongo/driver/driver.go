// Package driver has what programs use of the official driver's package of that name: labels of
// errors, and the types that the public API mentions.
package driver

import (
	"context"
	"fmt"
	"net"
)

// The labels of errors.
var (
	// UnknownTransactionCommitResult says that a commit may have been done.
	UnknownTransactionCommitResult = "UnknownTransactionCommitResult"
	// TransientTransactionError says that the whole transaction may be tried again.
	TransientTransactionError = "TransientTransactionError"
	// NetworkError says that a connection has failed.
	NetworkError = "NetworkError"
	// RetryableWriteError says that a write may be tried again.
	RetryableWriteError = "RetryableWriteError"
	// NoWritesPerformed says that nothing was written.
	NoWritesPerformed = "NoWritesPerformed"
	// ErrDeadlineWouldBeExceeded says that there was no time to send a command.
	ErrDeadlineWouldBeExceeded = fmt.Errorf("operation not sent to server, as Timeout would be exceeded: %w",
		context.DeadlineExceeded)
)

// A Deployment is what a client is connected to in tests: see package drivertest. The connections
// that it gives are those of one server that is always there.
type Deployment interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// A Crypt encrypts and decrypts. Clients have none from outside.
type Crypt interface{ crypt() }

// A BatchCursor is the inside of a cursor in the official driver. There are none here.
type BatchCursor struct{ _ struct{} }
