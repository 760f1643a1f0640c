package kms

import "fmt"

// Error is what a key service answered, or why it did not.
type Error struct {
	Provider string // the name of the key service, as in Providers
	Endpoint string // "host:port", "" if the request did not come that far
	Status   int    // of HTTP, 0 if there was no answer
	Err      error
}

// Error returns the message: key service, endpoint and cause on one line.
func (e *Error) Error() string {
	if e.Endpoint == "" {
		return fmt.Sprintf("key service %q: %v", e.Provider, e.Err)
	}
	return fmt.Sprintf("key service %q at %s: %v", e.Provider, e.Endpoint, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
