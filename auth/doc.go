// Package auth says who a client is and how it proves it: the credential, the sources of access tokens for MONGODB-OIDC and of
// keys for MONGODB-AWS. Most programs name user and password in the connection string and do not need it.
package auth
