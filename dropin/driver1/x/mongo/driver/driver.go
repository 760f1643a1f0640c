// Package driver has what programs use of the official driver's package of that name: labels of
// errors, and the types that the public API mentions. They are those of version 2.
package driver

import "go.mongodb.org/mongo-driver/v2/x/mongo/driver"

// The labels of errors.
var (
	// UnknownTransactionCommitResult says that a commit may have been done.
	UnknownTransactionCommitResult = driver.UnknownTransactionCommitResult
	// TransientTransactionError says that the whole transaction may be tried again.
	TransientTransactionError = driver.TransientTransactionError
	// NetworkError says that a connection has failed.
	NetworkError = driver.NetworkError
	// RetryableWriteError says that a write may be tried again.
	RetryableWriteError = driver.RetryableWriteError
	// NoWritesPerformed says that nothing was written.
	NoWritesPerformed = driver.NoWritesPerformed
	// ErrDeadlineWouldBeExceeded says that there was no time to send a command.
	ErrDeadlineWouldBeExceeded = driver.ErrDeadlineWouldBeExceeded
)

type (
	// A BatchCursor is the inside of a cursor in the official driver. There are none here.
	BatchCursor = driver.BatchCursor
	// A Crypt encrypts and decrypts. Clients have none from outside.
	Crypt = driver.Crypt
	// A Deployment is what a client is connected to in tests.
	Deployment = driver.Deployment
)
