// Package crypt encrypts and decrypts documents (specification: Client Side Encryption). It looks
// up the data keys that a document needs, unwraps them, keeps them for a while, and does with
// package fle what the placeholders say. What does I/O is behind interfaces: the Vault that holds
// the data keys and the Service that unwraps them.
package crypt
