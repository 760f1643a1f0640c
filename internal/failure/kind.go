package failure

import (
	"errors"

	"allium/mongoerr"
)

// What an error says of the time and of the connection. The decisions of all packages that depend
// on it ask here.

// OutOfTime reports whether an operation ended because its time was up, or because its context was
// cancelled.
func OutOfTime(err error) bool {
	_, ok := errors.AsType[*mongoerr.TimeoutError](err)
	return ok
}

// Connection reports whether a connection could not be made, or broke, or took longer than one of
// its own timeouts.
func Connection(err error) bool {
	_, ok := errors.AsType[*mongoerr.ConnectionError](err)
	return ok
}

// Network reports whether err is what the specifications call a network error: one of the
// connection, or an operation whose time was up while it used the connection.
func Network(err error) bool {
	if Connection(err) {
		return true
	}
	t, ok := errors.AsType[*mongoerr.TimeoutError](err)
	return ok && (t.Phase == mongoerr.PhaseWrite || t.Phase == mongoerr.PhaseRead)
}

// SocketTimeout reports whether err is of a connection that took longer than one of its own
// timeouts, such as connectTimeoutMS and socketTimeoutMS.
func SocketTimeout(err error) bool {
	e, ok := errors.AsType[*mongoerr.ConnectionError](err)
	return ok && e.Timeout()
}

// Applied reports whether an error says of a write that it was made, though on fewer members than
// its write concern asks for, and says nothing else: what the write did is known.
func Applied(err error) bool {
	if _, ok := errors.AsType[*mongoerr.WriteConcernError](err); !ok {
		return false
	}
	_, refused := errors.AsType[*mongoerr.WriteError](err)
	_, failed := errors.AsType[*mongoerr.ServerError](err)
	return !refused && !failed
}

// Others returns an error that another command had, for errors that give it as their reason: it
// says the same, but errors.As, mongoerr.HasCode and Applied do not take what became of that
// command for what became of this one.
func Others(err error) error {
	switch err.(type) {
	case *mongoerr.ServerError, *mongoerr.WriteConcernError:
		return errors.New(err.Error())
	}
	return err
}
