// Package auth holds what a client authenticates with: its credential, the sources of access tokens
// for MONGODB-OIDC and of keys for MONGODB-AWS. Most programs put user and password into the
// connection string and do not need it.
package auth
