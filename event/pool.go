package event

import (
	"time"

	"allium/bson"
)

// PoolMonitor listens to connection pools. Each function may be nil. Every server has a pool of its
// own, named by its address. The events of checkouts and check-ins are delivered on the goroutines
// of operations, from many at once; those of a pool, and of its connections that are made and
// closed, one at a time and in their order. Events of different pools may be delivered at the same
// time. The package comment says what becomes of those behind a function that does not return.
type PoolMonitor struct {
	PoolCreated func(*PoolCreated)
	PoolReady   func(*PoolReady)
	PoolCleared func(*PoolCleared)
	PoolClosed  func(*PoolClosed)

	ConnectionCreated func(*ConnectionCreated)
	ConnectionReady   func(*ConnectionReady)
	ConnectionClosed  func(*ConnectionClosed)

	ConnectionCheckOutStarted func(*ConnectionCheckOutStarted)
	ConnectionCheckOutFailed  func(*ConnectionCheckOutFailed)
	ConnectionCheckedOut      func(*ConnectionCheckedOut)
	ConnectionCheckedIn       func(*ConnectionCheckedIn)
}

// PoolOptions are the limits of a pool. Zero means that there is no such limit.
type PoolOptions struct {
	MaxPoolSize      int           // how many connections there are at most
	MinPoolSize      int           // how many connections are kept ready
	MaxConnecting    int           // how many connections are made at the same time
	MaxIdleTime      time.Duration // how long a connection may be idle before it is closed
	WaitQueueTimeout time.Duration // how long an operation waits for a connection
}

// PoolCreated says that a pool was created. It creates no connections before it is ready.
type PoolCreated struct {
	Addr    string
	Options PoolOptions
}

// PoolReady says that a pool may create connections and check them out.
type PoolReady struct {
	Addr string
}

// PoolCleared says that a pool was cleared: connections that it created before are not checked out
// again.
type PoolCleared struct {
	Addr string
	// ServiceID is the service behind a load balancer whose connections were cleared, nil without a
	// load balancer.
	ServiceID *bson.ObjectID
	// InterruptInUseConnections says that connections in use are closed too, which interrupts their
	// operations.
	InterruptInUseConnections bool
	// Err is the cause, nil if it is not known.
	Err error
}

// PoolClosed says that a pool was closed.
type PoolClosed struct {
	Addr string
}

// ConnectionCreated says that a connection was added to the pool; it is not established yet.
type ConnectionCreated struct {
	Addr         string
	ConnectionID int64 // unique within the pool, from 1
}

// ConnectionReady says that a connection is established and authenticated.
type ConnectionReady struct {
	Addr         string
	ConnectionID int64
	Duration     time.Duration // since ConnectionCreated
}

// Why a connection was closed.
const (
	ClosedStale      = "stale"      // the pool was cleared
	ClosedIdle       = "idle"       // it was not used for longer than maxIdleTimeMS
	ClosedError      = "error"      // a network error, a failed handshake, or a stream of replies that was abandoned
	ClosedPoolClosed = "poolClosed" // the pool was closed
)

// ConnectionClosed says that a connection was closed.
type ConnectionClosed struct {
	Addr         string
	ConnectionID int64
	Reason       string // ClosedStale, ClosedIdle, ClosedError or ClosedPoolClosed
	Err          error  // the error of ClosedError, if it is known
}

// ConnectionCheckOutStarted says that an operation starts to check out a connection.
type ConnectionCheckOutStarted struct {
	Addr string
}

// Why a checkout failed.
const (
	CheckOutPoolClosed      = "poolClosed"
	CheckOutTimeout         = "timeout"
	CheckOutConnectionError = "connectionError" // also when the pool was cleared
)

// ConnectionCheckOutFailed says that a checkout failed.
type ConnectionCheckOutFailed struct {
	Addr     string
	Reason   string // CheckOutPoolClosed, CheckOutTimeout or CheckOutConnectionError
	Err      error
	Duration time.Duration // since ConnectionCheckOutStarted
}

// ConnectionCheckedOut says that an operation checked out a connection.
type ConnectionCheckedOut struct {
	Addr         string
	ConnectionID int64
	Duration     time.Duration // since ConnectionCheckOutStarted
}

// ConnectionCheckedIn says that an operation checked its connection in, or that the pool took it
// back to close it (see PoolCleared.InterruptInUseConnections).
type ConnectionCheckedIn struct {
	Addr         string
	ConnectionID int64
}
