// Package errcode is the table of the server's error codes that the driver looks at, with what the
// specifications say of each. No other package decides by a number.
package errcode

// The codes.
const (
	HostUnreachable                 = 6
	HostNotFound                    = 7
	IllegalOperation                = 20
	NamespaceNotFound               = 26
	CursorNotFound                  = 43
	MaxTimeMSExpired                = 50
	StaleShardVersion               = 63
	WriteConcernTimeout             = 64 // WriteConcernFailed, as servers have called it since
	UnknownReplWriteConcern         = 79
	NetworkTimeout                  = 89
	ShutdownInProgress              = 91
	UnsatisfiableWriteConcern       = 100
	FailedToSatisfyReadPreference   = 133
	ReadConcernUnavailable          = 134 // ReadConcernMajorityNotAvailableYet
	StaleEpoch                      = 150
	PrimarySteppedDown              = 189
	RetryChangeStream               = 234
	CursorKilled                    = 237
	NoSuchTransaction               = 251
	ExceededTimeLimit               = 262
	ReauthenticationRequired        = 391
	SocketException                 = 9001
	LegacyNotPrimary                = 10058
	NotWritablePrimary              = 10107
	DuplicateKey                    = 11000
	DuplicateKeyOfUpdate            = 11001
	InterruptedAtShutdown           = 11600
	InterruptedDueToReplStateChange = 11602
	DuplicateKeyOfMongos            = 12582
	StaleConfig                     = 13388
	NotPrimaryNoSecondaryOk         = 13435
	NotPrimaryOrSecondary           = 13436
)

// Class is a set of what a code means to the driver.
type Class uint16

// The classes, with the specification that lists their codes.
const (
	RetryableWrite Class = 1 << iota // Retryable Writes, "Determining Retryable Errors"
	RetryableRead                    // Retryable Reads, "Retryable Error"
	Resumable                        // Change Streams, "Resumable Error", for servers before 4.4
	StateChange                      // Server Discovery and Monitoring, "State Change Error"
	ShuttingDown                     // the same, "node is shutting down"
	Duplicate                        // a unique index already holds the key
	OutOfTime                        // whoever measured it
	NeverSatisfied                   // a write concern that this deployment cannot satisfy

	// retryable are the codes that all three lists of attempts that may be made again have in
	// common.
	retryable = RetryableWrite | RetryableRead | Resumable
)

var classes = map[int32]Class{
	HostUnreachable:                 retryable,
	HostNotFound:                    retryable,
	NetworkTimeout:                  retryable,
	SocketException:                 retryable,
	PrimarySteppedDown:              retryable | StateChange,
	NotWritablePrimary:              retryable | StateChange,
	InterruptedDueToReplStateChange: retryable | StateChange,
	NotPrimaryNoSecondaryOk:         retryable | StateChange,
	NotPrimaryOrSecondary:           retryable | StateChange,
	ShutdownInProgress:              retryable | StateChange | ShuttingDown,
	InterruptedAtShutdown:           retryable | StateChange | ShuttingDown,
	LegacyNotPrimary:                StateChange,

	ExceededTimeLimit:      retryable | OutOfTime,
	MaxTimeMSExpired:       OutOfTime,
	WriteConcernTimeout:    OutOfTime,
	ReadConcernUnavailable: RetryableRead,

	StaleShardVersion:             Resumable,
	FailedToSatisfyReadPreference: Resumable,
	StaleEpoch:                    Resumable,
	RetryChangeStream:             Resumable,
	StaleConfig:                   Resumable,

	CursorNotFound: Resumable, // on servers of every version

	DuplicateKey:         Duplicate,
	DuplicateKeyOfUpdate: Duplicate,
	DuplicateKeyOfMongos: Duplicate,

	UnknownReplWriteConcern:   NeverSatisfied,
	UnsatisfiableWriteConcern: NeverSatisfied,
}

// Is reports whether a code has all of the given classes.
func Is(code int32, c Class) bool { return classes[code]&c == c }
