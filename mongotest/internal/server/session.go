package server

// sessionCatalog holds the logical sessions of a data set.
type sessionCatalog struct{}

func newSessionCatalog() *sessionCatalog { return &sessionCatalog{} }
