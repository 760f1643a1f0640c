package server

// faultState holds the fail points that are set on a node.
type faultState struct{}
