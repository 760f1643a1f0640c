package kerberos

import "fmt"

// recovered makes an error of a panic: the library trusts that what it decodes is well-formed, and
// that it is long enough. It is deferred; the format has a place for the panic's value.
func recovered(err *error, format string) {
	if v := recover(); v != nil {
		*err = fmt.Errorf(format, v)
	}
}
