// Package qe is the server's side of Queryable Encryption, version 2: what a server does with the
// payloads that clients send.
//
// A client sends a value as a payload of tokens (package fle). The server counts how often a token
// was inserted, derives a tag from the token and the count, stores the tag in the document's
// __safeContent__ and what it needs later in the value. A query becomes one for the tags that its
// tokens can have. Two state collections belong to an encrypted collection: ESC counts, ECOC
// remembers which tokens were inserted, so that compaction can find their counts.
//
// The package knows documents only. State is how it reads the state collections; what is to be
// written to them it returns.
package qe
