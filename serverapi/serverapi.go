// Package serverapi has the versions of the Stable API, which allium.ServerAPI declares to servers.
package serverapi

// Version is a version of the Stable API. The specification Stable API for Drivers has one so far.
type Version string

// V1 is the first version.
const V1 Version = "1"
