// Package event has what monitors are told: of commands, of pools, and of the deployment.
package event

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/tag"
)

// A CommandMonitor is told of the commands that are sent. Functions that are nil are not called.
type CommandMonitor struct {
	Started   func(context.Context, *CommandStartedEvent)
	Succeeded func(context.Context, *CommandSucceededEvent)
	Failed    func(context.Context, *CommandFailedEvent)
}

// A CommandStartedEvent is about a command that is being sent.
type CommandStartedEvent struct {
	Command            bson.Raw // empty for commands that have secrets
	DatabaseName       string
	CommandName        string
	RequestID          int64
	ConnectionID       string
	ServerConnectionID *int64         // the server's number for the connection, if it has told it
	ServiceID          *bson.ObjectID // which server it is, behind a load balancer
}

// A CommandFinishedEvent has what is common to commands that have an end.
type CommandFinishedEvent struct {
	Duration           time.Duration
	CommandName        string
	DatabaseName       string
	RequestID          int64
	ConnectionID       string
	ServerConnectionID *int64         // the server's number for the connection, if it has told it
	ServiceID          *bson.ObjectID // which server it is, behind a load balancer
}

// A CommandSucceededEvent is about a command that the server has executed.
type CommandSucceededEvent struct {
	CommandFinishedEvent
	Reply bson.Raw // empty for commands that have secrets
}

// A CommandFailedEvent is about a command that has failed, or whose reply has not come.
type CommandFailedEvent struct {
	CommandFinishedEvent
	Failure error
}

// The reasons of pool events.
const (
	ReasonIdle              = "idle"
	ReasonPoolClosed        = "poolClosed"
	ReasonStale             = "stale"
	ReasonConnectionErrored = "connectionError"
	ReasonTimedOut          = "timeout"
	ReasonError             = "error"
)

// The types of pool events.
const (
	ConnectionPoolCreated     = "ConnectionPoolCreated"
	ConnectionPoolReady       = "ConnectionPoolReady"
	ConnectionPoolCleared     = "ConnectionPoolCleared"
	ConnectionPoolClosed      = "ConnectionPoolClosed"
	ConnectionCreated         = "ConnectionCreated"
	ConnectionReady           = "ConnectionReady"
	ConnectionClosed          = "ConnectionClosed"
	ConnectionCheckOutStarted = "ConnectionCheckOutStarted"
	ConnectionCheckOutFailed  = "ConnectionCheckOutFailed"
	ConnectionCheckedOut      = "ConnectionCheckedOut"
	ConnectionCheckedIn       = "ConnectionCheckedIn"
)

// A PoolMonitor is told of what happens in pools of connections.
type PoolMonitor struct {
	Event func(*PoolEvent)
}

// A PoolEvent is something that has happened in a pool.
type PoolEvent struct {
	Type         string              `json:"type"`
	Address      string              `json:"address"`
	ConnectionID int64               `json:"connectionId"`
	PoolOptions  *MonitorPoolOptions `json:"options"`
	Duration     time.Duration       `json:"duration"`
	Reason       string              `json:"reason"`
	ServiceID    *bson.ObjectID      `json:"serviceId"` // of ConnectionPoolCleared, behind a load balancer
	Interruption bool                `json:"interruptInUseConnections"`
	Error        error               `json:"error"`
}

// MonitorPoolOptions are the settings of a pool that was made.
type MonitorPoolOptions struct {
	MaxPoolSize        uint64 `json:"maxPoolSize"`
	MinPoolSize        uint64 `json:"minPoolSize"`
	WaitQueueTimeoutMS uint64 `json:"maxIdleTimeMS"`
}

// A ServerMonitor is told of what the client finds out about the deployment. Functions that are nil
// are not called.
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

// A ServerDescription is what is known of a server. Of a load balancer only the address and the
// kind are set.
type ServerDescription struct {
	Addr                     address.Address
	Arbiters                 []string
	Compression              []string // what the server can decompress
	CanonicalAddr            address.Address
	ElectionID               bson.ObjectID
	IsCryptd                 bool
	HelloOK                  bool
	Hosts                    []string
	Kind                     string
	LastWriteTime            time.Time
	MaxBatchCount            uint32
	MaxDocumentSize          uint32
	MaxMessageSize           uint32
	MaxWireVersion           int32
	MinWireVersion           int32
	Members                  []address.Address
	Passives                 []string
	Passive                  bool
	Primary                  address.Address
	ReadOnly                 bool
	ServiceID                *bson.ObjectID // which server it is, behind a load balancer
	SessionTimeoutMinutes    *int64
	SetName                  string
	SetVersion               uint32
	Tags                     tag.Set
	TopologyVersionProcessID bson.ObjectID
	TopologyVersionCounter   int64
}

// A TopologyDescription is what is known of the deployment.
type TopologyDescription struct {
	Servers               []ServerDescription
	SetName               string
	Kind                  string
	SessionTimeoutMinutes *int64
	CompatibilityErr      error
}

// A ServerDescriptionChangedEvent is about news of a server.
type ServerDescriptionChangedEvent struct {
	Address             address.Address
	TopologyID          bson.ObjectID
	PreviousDescription ServerDescription
	NewDescription      ServerDescription
}

// A ServerOpeningEvent is about a server that is monitored from now on.
type ServerOpeningEvent struct {
	Address    address.Address
	TopologyID bson.ObjectID
}

// A ServerClosedEvent is about a server that is monitored no more.
type ServerClosedEvent struct {
	Address    address.Address
	TopologyID bson.ObjectID
}

// A TopologyDescriptionChangedEvent is about news of the deployment.
type TopologyDescriptionChangedEvent struct {
	TopologyID          bson.ObjectID
	PreviousDescription TopologyDescription
	NewDescription      TopologyDescription
}

// A TopologyOpeningEvent is about a client that begins to monitor its deployment.
type TopologyOpeningEvent struct {
	TopologyID bson.ObjectID
}

// A TopologyClosedEvent is about a client that has ended.
type TopologyClosedEvent struct {
	TopologyID bson.ObjectID
}

// A ServerHeartbeatStartedEvent is about a check of a server that begins.
type ServerHeartbeatStartedEvent struct {
	ConnectionID string
	Awaited      bool // the server answers when there is news
}

// A ServerHeartbeatSucceededEvent is about a check that the server has answered.
type ServerHeartbeatSucceededEvent struct {
	Duration     time.Duration
	Reply        ServerDescription
	ConnectionID string
	Awaited      bool // the server has answered when there was news
}

// A ServerHeartbeatFailedEvent is about a check that has failed.
type ServerHeartbeatFailedEvent struct {
	Duration     time.Duration
	Failure      error
	ConnectionID string
	Awaited      bool // the server was to answer when there was news
}
