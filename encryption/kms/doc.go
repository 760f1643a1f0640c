// Package kms names the key services that guard data keys of in-use encryption, and the master keys in them.
//
// A data key encrypts fields. It is stored wrapped, that is, encrypted by a master key, which stays in a key service: Amazon's,
// Microsoft's or Google's, a KMIP server, or the program's own memory. Package encryption talks to the services; this package
// only holds what the program says about them.
package kms
