// Package kms describes the key services that wrap the data keys of in-use encryption, and their
// master keys.
//
// A data key encrypts fields. It is stored wrapped, that is, encrypted by a master key, which stays
// in a key service: Amazon's, Microsoft's or Google's, a KMIP server, or the program's own memory.
// Package encryption talks to the services; this package only holds their settings.
package kms
