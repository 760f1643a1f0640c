package kms

import "fmt"

// An Error is a request to a key service that failed.
type Error struct {
	Provider string // the name of the key service, as in Providers
	Endpoint string // "host:port", "" if the request failed before it was known
	Status   int    // the HTTP status, 0 without a reply
	Err      error
}

// Error returns the key service, the endpoint and the cause on one line.
func (e *Error) Error() string {
	if e.Endpoint == "" {
		return fmt.Sprintf("key service %q: %v", e.Provider, e.Err)
	}
	return fmt.Sprintf("key service %q at %s: %v", e.Provider, e.Endpoint, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
