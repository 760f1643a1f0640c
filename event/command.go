package event

import (
	"context"
	"time"

	"allium/bson"
)

// CommandMonitor listens to the commands that the driver sends. Each function may be nil. The
// context is the operation's.
//
// The commands and replies that carry credentials (authentication, user management) are empty
// documents here.
type CommandMonitor struct {
	Started   func(context.Context, *CommandStarted)
	Succeeded func(context.Context, *CommandSucceeded)
	Failed    func(context.Context, *CommandFailed)
}

// CommandInfo holds the fields that the events of one command share.
type CommandInfo struct {
	CommandName  string
	DatabaseName string
	// RequestID is that of the wire protocol; every attempt has its own. OperationID is shared by
	// all commands that one operation sends.
	RequestID   int64
	OperationID int64
	Addr        string
	// DriverConnectionID numbers the connections of the server's pool.
	DriverConnectionID int64
	// ServerConnectionID is the server's own number for the connection, nil if it sent none.
	ServerConnectionID *int64
	// ServiceID is the service behind a load balancer, nil without one.
	ServiceID *bson.ObjectID
}

// CommandStarted is published before a command is sent. Command is valid during the call; clone it
// to keep it.
type CommandStarted struct {
	CommandInfo
	Command bson.Raw
}

// CommandSucceeded is published when the server replied with ok: 1, or when a command that asks for
// no reply was sent. Reply is valid during the call; clone it to keep it.
type CommandSucceeded struct {
	CommandInfo
	Duration time.Duration
	Reply    bson.Raw
}

// CommandFailed is published when the server replied with an error, or no reply arrived.
type CommandFailed struct {
	CommandInfo
	Duration time.Duration
	Failure  error
}
