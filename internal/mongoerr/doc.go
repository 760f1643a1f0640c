// Package mongoerr holds the error types that every floor of the driver returns. The root package publishes them
// under its own name, so that there is one type per kind of failure from the socket up to the user.
package mongoerr
