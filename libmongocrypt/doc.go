// Package libmongocrypt holds tests that exchange encrypted values with MongoDB's C library, and
// benchmarks beside it. It needs cgo, and libmongocrypt with its headers (Debian's package
// libmongocrypt-dev):
//
//	go test -tags libmongocrypt ./...
//	go test -tags libmongocrypt -bench . -benchmem
//
// Without the tag there is one test, which is skipped. The library of Debian 12 knows Client-Side
// Field Level Encryption, and of Queryable Encryption only its first version, which no server has
// any more.
package libmongocrypt
