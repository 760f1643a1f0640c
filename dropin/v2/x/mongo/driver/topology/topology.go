// Package topology has the errors of server selection and of connections.
package topology

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// The servers that the driver speaks to. Setting these changes nothing.
var (
	// MinSupportedMongoDBVersion is the version of the oldest.
	MinSupportedMongoDBVersion = "3.6"
	// SupportedWireVersions are their versions of the wire protocol.
	SupportedWireVersions = description.VersionRange{Min: 6, Max: 29}
)

// ErrServerSelectionTimeout is inside a ServerSelectionError whose time was up.
var ErrServerSelectionTimeout = errors.New("server selection timeout")

// A ServerSelectionError says that no suitable server was found.
type ServerSelectionError struct {
	Desc    description.Topology // what is known of the deployment
	Wrapped error
}

// Error returns the reason, and what is known of the deployment.
func (e ServerSelectionError) Error() string {
	if e.Desc.CompatibilityErr != nil {
		return fmt.Sprintf("server selection error: compatibility error: %v, current topology: { %s }",
			e.Desc.CompatibilityErr, e.Desc)
	}
	if e.Wrapped != nil {
		return fmt.Sprintf("server selection error: %s, current topology: { %s }", e.Wrapped, e.Desc)
	}
	return fmt.Sprintf("server selection error: current topology: { %s }", e.Desc)
}

// Unwrap returns the reason.
func (e ServerSelectionError) Unwrap() error { return e.Wrapped }

// A ConnectionError says that a connection could not be made, or has failed.
type ConnectionError struct {
	ConnectionID string // the server's address, empty if there was no connection yet
	Wrapped      error
}

// Error returns the reason.
func (e ConnectionError) Error() string {
	if e.Wrapped == nil {
		return fmt.Sprintf("connection(%s)", e.ConnectionID)
	}
	return fmt.Sprintf("connection(%s) %v", e.ConnectionID, e.Wrapped)
}

// Unwrap returns the reason.
func (e ConnectionError) Unwrap() error { return e.Wrapped }
