package mongoerr

import (
	"errors"
	"slices"

	"allium/internal/errcode"
)

// search looks at err and what it wraps, the outermost error first. decide says whether an error is
// what is looked for, or is not whatever it wraps.
func search(err error, decide func(error) (yes, decided bool)) bool {
	for err != nil {
		if yes, decided := decide(err); decided {
			return yes
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(many.Unwrap(), func(e error) bool { return search(e, decide) })
		}
		err = errors.Unwrap(err)
	}
	return false
}

// code returns the code of an error of the server's.
func code(err error) (code int32, ok bool) {
	switch e := err.(type) {
	case *ServerError:
		return e.Code, true
	case *WriteError:
		return e.Code, true
	case *WriteConcernError:
		return e.Code, true
	}
	return 0, false
}

// HasCode reports whether err is or wraps a server error with this code: a *ServerError, a
// *WriteError or a *WriteConcernError. The errors of earlier attempts, which a *ServerError may
// wrap, are ignored.
func HasCode(err error, want int32) bool {
	return search(err, func(err error) (yes, decided bool) {
		got, ok := code(err)
		return got == want, ok
	})
}

// HasLabel reports whether err, or an error that it wraps, carries the label. Errors of other
// packages count that have a method HasLabel or, as those of the official driver, HasErrorLabel: a
// transaction whose function returns one with a label is tried again.
func HasLabel(err error, label string) bool {
	return search(err, func(err error) (yes, decided bool) {
		switch e := err.(type) {
		case interface{ HasLabel(string) bool }:
			yes = e.HasLabel(label)
		case interface{ HasErrorLabel(string) bool }:
			yes = e.HasErrorLabel(label)
		}
		return yes, yes
	})
}

// IsTimeout reports whether err is a timeout: of the context, a Timeout, server selection, a
// socket, the server's maxTimeMS or a write concern. A cancelled operation did not time out.
func IsTimeout(err error) bool {
	return search(err, func(err error) (yes, decided bool) {
		if c, ok := code(err); ok {
			return errcode.Is(c, errcode.OutOfTime), true
		}
		switch e := err.(type) {
		case *SelectionError: // versions that have nothing in common are found at once
			return e.Topology == nil || e.Topology.CompatibilityErr == nil, true
		case interface{ Timeout() bool }:
			return e.Timeout(), true
		}
		return false, false
	})
}
