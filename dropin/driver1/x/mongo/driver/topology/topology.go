// Package topology has the errors of server selection and of connections.
package topology

import (
	"fmt"

	"go.mongodb.org/mongo-driver/mongo/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// The servers that the driver speaks to. Setting these changes nothing.
var (
	// MinSupportedMongoDBVersion is the version of the oldest.
	MinSupportedMongoDBVersion = topology.MinSupportedMongoDBVersion
	// SupportedWireVersions are their versions of the wire protocol.
	SupportedWireVersions = description.NewVersionRange(topology.SupportedWireVersions.Min,
		topology.SupportedWireVersions.Max)
)

// ErrServerSelectionTimeout is inside a ServerSelectionError whose time was up.
var ErrServerSelectionTimeout = topology.ErrServerSelectionTimeout

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
type ConnectionError = topology.ConnectionError
