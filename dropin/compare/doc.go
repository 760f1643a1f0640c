// Package compare is the module that sees both the official driver and the drop-in: with its go.mod
// the official one, with dropin.mod ours. Its tests ask both the same.
package compare
