// Package interop keeps Allium honest with real peers: the official Go driver, pymongo and npm's
// mongodb and mongoose as clients of mongotest, also of allium serve, and Allium as a client of
// FerretDB, a MongoDB-compatible server, and of PyKMIP, a KMIP server; nobody here wrote these. It
// is a module of its own, so that none of them becomes a dependency of Allium.
package interop
