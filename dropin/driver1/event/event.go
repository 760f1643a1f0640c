// Package event has what monitors are told: of commands, of pools, and of the deployment.
package event

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/mongo/address"
	"go.mongodb.org/mongo-driver/mongo/description"
	"go.mongodb.org/mongo-driver/v2/event"
)

// A CommandMonitor is told of the commands that are sent. Functions that are nil are not called.
type CommandMonitor struct {
	Started   func(context.Context, *CommandStartedEvent)
	Succeeded func(context.Context, *CommandSucceededEvent)
	Failed    func(context.Context, *CommandFailedEvent)
}

// A CommandStartedEvent is about a command that is being sent.
type CommandStartedEvent struct {
	Command      bson.Raw // empty for commands that have secrets
	DatabaseName string
	CommandName  string
	RequestID    int64
	ConnectionID string
	// ServerConnectionID is ServerConnectionID64, nil if that is larger.
	//
	// Deprecated: use ServerConnectionID64.
	ServerConnectionID   *int32
	ServerConnectionID64 *int64              // the server's number for the connection, if it has told it
	ServiceID            *primitive.ObjectID // which server it is, behind a load balancer
}

// A CommandFinishedEvent has what is common to commands that have an end.
type CommandFinishedEvent struct {
	// DurationNanos is Duration.
	//
	// Deprecated: use Duration.
	DurationNanos int64
	Duration      time.Duration
	CommandName   string
	DatabaseName  string
	RequestID     int64
	ConnectionID  string
	// ServerConnectionID is ServerConnectionID64, nil if that is larger.
	//
	// Deprecated: use ServerConnectionID64.
	ServerConnectionID   *int32
	ServerConnectionID64 *int64              // the server's number for the connection, if it has told it
	ServiceID            *primitive.ObjectID // which server it is, behind a load balancer
}

// A CommandSucceededEvent is about a command that the server has executed.
type CommandSucceededEvent struct {
	CommandFinishedEvent
	Reply bson.Raw // empty for commands that have secrets
}

// A CommandFailedEvent is about a command that has failed, or whose reply has not come.
type CommandFailedEvent struct {
	CommandFinishedEvent
	Failure string
}

// The reasons of pool events.
const (
	ReasonIdle              = event.ReasonIdle
	ReasonPoolClosed        = event.ReasonPoolClosed
	ReasonStale             = event.ReasonStale
	ReasonConnectionErrored = event.ReasonConnectionErrored
	ReasonTimedOut          = event.ReasonTimedOut
	ReasonError             = event.ReasonError
)

// The types of pool events.
const (
	PoolCreated        = event.ConnectionPoolCreated
	PoolReady          = event.ConnectionPoolReady
	PoolCleared        = event.ConnectionPoolCleared
	PoolClosedEvent    = event.ConnectionPoolClosed
	ConnectionCreated  = event.ConnectionCreated
	ConnectionReady    = event.ConnectionReady
	ConnectionClosed   = event.ConnectionClosed
	GetStarted         = event.ConnectionCheckOutStarted
	GetFailed          = event.ConnectionCheckOutFailed
	GetSucceeded       = event.ConnectionCheckedOut
	ConnectionReturned = event.ConnectionCheckedIn
)

// MonitorPoolOptions are the settings of a pool.
type MonitorPoolOptions struct {
	MaxPoolSize        uint64 `json:"maxPoolSize"`
	MinPoolSize        uint64 `json:"minPoolSize"`
	WaitQueueTimeoutMS uint64 `json:"maxIdleTimeMS"`
}

// A PoolEvent is about a pool or one of its connections.
type PoolEvent struct {
	Type         string              `json:"type"`
	Address      string              `json:"address"`
	ConnectionID uint64              `json:"connectionId"`
	PoolOptions  *MonitorPoolOptions `json:"options"`
	Duration     time.Duration       `json:"duration"`
	Reason       string              `json:"reason"`
	ServiceID    *primitive.ObjectID `json:"serviceId"` // of PoolCleared, behind a load balancer
	Interruption bool                `json:"interruptInUseConnections"`
	Error        error               `json:"error"`
}

// A PoolMonitor is told of the pools.
type PoolMonitor struct {
	Event func(*PoolEvent)
}

// A ServerDescriptionChangedEvent is about a server of which something else is known.
type ServerDescriptionChangedEvent struct {
	Address             address.Address
	TopologyID          primitive.ObjectID
	PreviousDescription description.Server
	NewDescription      description.Server
}

// A ServerOpeningEvent is about a server that is being monitored from now on.
type ServerOpeningEvent struct {
	Address    address.Address
	TopologyID primitive.ObjectID
}

// A ServerClosedEvent is about a server that is not monitored any more.
type ServerClosedEvent struct {
	Address    address.Address
	TopologyID primitive.ObjectID
}

// A TopologyDescriptionChangedEvent is about a deployment of which something else is known.
type TopologyDescriptionChangedEvent struct {
	TopologyID          primitive.ObjectID
	PreviousDescription description.Topology
	NewDescription      description.Topology
}

// A TopologyOpeningEvent is about a client that begins.
type TopologyOpeningEvent struct {
	TopologyID primitive.ObjectID
}

// A TopologyClosedEvent is about a client that ends.
type TopologyClosedEvent struct {
	TopologyID primitive.ObjectID
}

// A ServerHeartbeatStartedEvent is about a check of a server that begins.
type ServerHeartbeatStartedEvent struct {
	ConnectionID string
	Awaited      bool // the server answers when there is news
}

// A ServerHeartbeatSucceededEvent is about a check that the server has answered.
type ServerHeartbeatSucceededEvent struct {
	// DurationNanos is Duration.
	//
	// Deprecated: use Duration.
	DurationNanos int64
	Duration      time.Duration
	Reply         description.Server
	ConnectionID  string
	Awaited       bool // the server has answered when there was news
}

// A ServerHeartbeatFailedEvent is about a check that has failed.
type ServerHeartbeatFailedEvent struct {
	// DurationNanos is Duration.
	//
	// Deprecated: use Duration.
	DurationNanos int64
	Duration      time.Duration
	Failure       error
	ConnectionID  string
	Awaited       bool // the server was to answer when there was news
}

// A ServerMonitor is told of the deployment. Functions that are nil are not called.
type ServerMonitor struct {
	ServerDescriptionChanged   func(*ServerDescriptionChangedEvent)
	ServerOpening              func(*ServerOpeningEvent)
	ServerClosed               func(*ServerClosedEvent)
	TopologyDescriptionChanged func(*TopologyDescriptionChangedEvent)
	TopologyOpening            func(*TopologyOpeningEvent)
	TopologyClosed             func(*TopologyClosedEvent)
	ServerHeartbeatStarted     func(*ServerHeartbeatStartedEvent)
	ServerHeartbeatSucceeded   func(*ServerHeartbeatSucceededEvent)
	ServerHeartbeatFailed      func(*ServerHeartbeatFailedEvent)
}
