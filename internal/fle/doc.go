// Package fle has the formats, ciphers and tokens of in-use encryption: Client-Side Field Level
// Encryption (specification: Client Side Encryption) and Queryable Encryption, version 2. It does
// no I/O: keys and randomness are arguments. The driver encrypts and decrypts with it, mongotest
// acts as the server with it.
//
// A value that is encrypted, or is to be, is a binary of subtype 6 whose first byte tells its
// format, the Kind:
//
//	Marking, Placeholder         query analysis -> client: what is to be encrypted, and how
//	Deterministic, Random        CSFLE: a value under one key
//	Unindexed                    QE: a value under one key
//	Insert                       client -> server: a value and the tokens that it can be found by
//	FindEquality, FindRange,     client -> server: the tokens of a query
//	FindText
//	IndexedEquality,             server -> client: what is stored in place of an Insert
//	IndexedRange, IndexedText
//
// Integers in these formats are little endian unless a comment says otherwise. Parsed values share
// memory with their input.
package fle
