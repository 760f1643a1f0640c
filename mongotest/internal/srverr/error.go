// Package srverr has the errors that the deployment answers commands with: a code, a message,
// labels, and what else the reply carries beside them.
package srverr

import (
	"errors"
	"fmt"
	"strconv"

	"allium/bson"
)

// Error is a command's failure as it is written into the reply.
type Error struct {
	Code   int32 // 0: the reply has neither code nor codeName, as for a few old commands
	Msg    string
	Labels []string // errorLabels
	// further top-level fields of the reply (or of the write error), for example keyPattern and
	// keyValue
	Extra bson.Raw
}

// New returns an error with this code and message.
func New(code int32, format string, args ...any) *Error {
	if len(args) == 0 {
		return &Error{Code: code, Msg: format}
	}
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Error returns the message with the code's name.
func (e *Error) Error() string { return Name(e.Code) + ": " + e.Msg }

// HasLabel reports whether the error carries this label.
func (e *Error) HasLabel(label string) bool {
	for _, l := range e.Labels {
		if l == label {
			return true
		}
	}
	return false
}

// Prefix returns a copy of e whose message starts with the given text.
func (e *Error) Prefix(text string) *Error {
	c := *e
	c.Msg = text + e.Msg
	return &c
}

// From returns err as an *Error: the one it wraps, or an internal error with its text.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(InternalError, "%s", err.Error())
}

// CodeOf returns the code of the *Error that err wraps, or 0.
func CodeOf(err error) int32 {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// Name returns the codeName of a code, "Location<code>" for one that has no name of its own.
func Name(code int32) string {
	if n, ok := names[code]; ok {
		return n
	}
	return "Location" + strconv.Itoa(int(code))
}

// namesBefore50 are the names that servers before 5.0 spell differently.
var namesBefore50 = map[int32]string{
	NotWritablePrimary:      "NotMaster",
	NotPrimaryNoSecondaryOk: "NotMasterNoSlaveOk",
	NotPrimaryOrSecondary:   "NotMasterOrSecondary",
	KeyTooLong:              "OSBELETE_KeyTooLong", // sic
}

// namesSince80 are the names that codes of generated parsers have since 8.0.
var namesSince80 = map[int32]string{40414: "IDLFailedToParse", 40415: "IDLUnknownField"}

// NameSince80 is Name for servers since 8.0.
func NameSince80(code int32) string {
	if n, ok := namesSince80[code]; ok {
		return n
	}
	return Name(code)
}

// NameBefore50 is Name for servers before 5.0.
func NameBefore50(code int32) string {
	if n, ok := namesBefore50[code]; ok {
		return n
	}
	if code >= ConnectionPoolExpired && code < SocketException || code == LegacyNotPrimary ||
		code == NotARetryableWriteCommand {
		return "Location" + strconv.Itoa(int(code)) // newer than that
	}
	return Name(code)
}
