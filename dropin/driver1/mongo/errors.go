package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo/description"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
	v2driver "go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	v2description "go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	v2topology "go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/x/mongo/driver"
	"go.mongodb.org/mongo-driver/x/mongo/driver/topology"
)

// The errors that are those of version 2.
var (
	// ErrClientDisconnected is returned by operations of a client that was disconnected.
	ErrClientDisconnected = v2mongo.ErrClientDisconnected
	// ErrInvalidIndexValue is returned for an index with a key whose value is no number or text.
	ErrInvalidIndexValue = v2mongo.ErrInvalidIndexValue
	// ErrMissingResumeToken is the error of an event without a resume token.
	ErrMissingResumeToken = v2mongo.ErrMissingResumeToken
	// ErrNilCursor is the error of a change stream without a cursor.
	ErrNilCursor = v2mongo.ErrNilCursor
	// ErrNoDocuments is the error of a result without a document.
	ErrNoDocuments = v2mongo.ErrNoDocuments
	// ErrNonStringIndexName is not returned any more.
	//
	// Deprecated: names are strings.
	ErrNonStringIndexName = v2mongo.ErrNonStringIndexName
	// ErrWrongClient is returned for a session of another client.
	ErrWrongClient = v2mongo.ErrWrongClient
)

// The errors that are others than those of version 2.
var (
	// ErrEmptySlice is returned for a slice that must have an element.
	ErrEmptySlice = errors.New("must provide at least one element in input slice")
	// ErrMultipleIndexDrop is returned by DropOne for a name that means all indexes.
	ErrMultipleIndexDrop = errors.New("multiple indexes would be dropped")
	// ErrNilDocument is returned for a nil document.
	ErrNilDocument = errors.New("document is nil")
	// ErrNilValue is returned for a nil value.
	ErrNilValue = errors.New("value is nil")
)

// ErrUnacknowledgedWrite is the error of a write that no server answers, as its write concern
// wants.
var ErrUnacknowledgedWrite = errors.New("unacknowledged write")

type (
	// EncryptionKeyVaultError is an error of the collection of the data keys.
	EncryptionKeyVaultError = v2mongo.EncryptionKeyVaultError
	// ErrMapForOrderedArgument is returned for a map with several keys where the order counts.
	ErrMapForOrderedArgument = v2mongo.ErrMapForOrderedArgument
	// MongocryptdError is an error of the process mongocryptd, which is not used.
	MongocryptdError = v2mongo.MongocryptdError
	// LabeledError has labels.
	LabeledError = v2mongo.LabeledError
)

// A MongocryptError is an error of the encryption of values.
type MongocryptError struct {
	Code    int32
	Message string
}

// Error returns the code and the message.
func (m MongocryptError) Error() string {
	return fmt.Sprintf("mongocrypt error %d: %v", m.Code, m.Message)
}

// A MarshalError says that a value has no form as a document.
type MarshalError struct {
	Value any
	Err   error
}

// Error names the type and the reason.
func (me MarshalError) Error() string {
	return fmt.Sprintf("cannot marshal type %T to a BSON Document: %v", me.Value, me.Err)
}

// A ServerError is an error that a server has sent.
type ServerError interface {
	LabeledError
	// HasErrorCode reports whether one of the errors has the code.
	HasErrorCode(int) bool
	// HasErrorMessage reports whether the message of one has the text in it.
	HasErrorMessage(string) bool
	// HasErrorCodeWithMessage reports whether one has the code, and the text in its message.
	HasErrorCodeWithMessage(int, string) bool

	serverError()
}

var (
	_ ServerError = CommandError{}
	_ ServerError = WriteError{}
	_ ServerError = WriteException{}
	_ ServerError = BulkWriteException{}
)

const codeMaxTimeExpired = 50

// A CommandError is a command that has failed.
type CommandError struct {
	Code    int32
	Message string
	Labels  []string
	Name    string
	Wrapped error
	Raw     bson.Raw // the reply
}

// Error returns the name and the message.
func (e CommandError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("(%v) %v", e.Name, e.Message)
	}
	return e.Message
}

// Unwrap returns the error behind it, if there is one.
func (e CommandError) Unwrap() error { return e.Wrapped }

// HasErrorCode reports whether it has this code.
func (e CommandError) HasErrorCode(code int) bool { return int(e.Code) == code }

// HasErrorLabel reports whether it has this label.
func (e CommandError) HasErrorLabel(label string) bool { return slices.Contains(e.Labels, label) }

// HasErrorMessage reports whether the message has the text in it.
func (e CommandError) HasErrorMessage(message string) bool {
	return strings.Contains(e.Message, message)
}

// HasErrorCodeWithMessage reports whether it has the code, and the message the text.
func (e CommandError) HasErrorCodeWithMessage(code int, message string) bool {
	return e.HasErrorCode(code) && e.HasErrorMessage(message)
}

// IsMaxTimeMSExpiredError reports whether the server says that the command's time was up.
func (e CommandError) IsMaxTimeMSExpiredError() bool {
	return e.Code == codeMaxTimeExpired || e.Name == "MaxTimeMSExpired"
}

func (e CommandError) serverError() {}

// A WriteError is a write that the server has refused.
type WriteError struct {
	Index   int // in the slice of InsertMany or BulkWrite
	Code    int
	Message string
	Details bson.Raw
	Raw     bson.Raw // the element of the reply
}

// Error returns the message and the details.
func (we WriteError) Error() string {
	if len(we.Details) > 0 {
		return fmt.Sprintf("%s: %s", we.Message, we.Details.String())
	}
	return we.Message
}

// HasErrorCode reports whether it has this code.
func (we WriteError) HasErrorCode(code int) bool { return we.Code == code }

// HasErrorLabel returns false: a WriteError has no labels.
func (we WriteError) HasErrorLabel(string) bool { return false }

// HasErrorMessage reports whether the message has the text in it.
func (we WriteError) HasErrorMessage(message string) bool {
	return strings.Contains(we.Message, message)
}

// HasErrorCodeWithMessage reports whether it has the code, and the message the text.
func (we WriteError) HasErrorCodeWithMessage(code int, message string) bool {
	return we.HasErrorCode(code) && we.HasErrorMessage(message)
}

func (we WriteError) serverError() {}

// WriteErrors are the refused writes of a command.
type WriteErrors []WriteError

// Error returns the texts of all of them.
func (we WriteErrors) Error() string { return joined(we) }

func joined[T error](errs []T) string {
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = e.Error()
	}
	return "write errors: [" + strings.Join(texts, ", ") + "]"
}

// A WriteConcernError says that a write was not acknowledged as its write concern wants.
type WriteConcernError struct {
	Name    string
	Code    int
	Message string
	Details bson.Raw
	Raw     bson.Raw // the field of the reply
}

// Error returns the name and the message.
func (wce WriteConcernError) Error() string {
	if wce.Name != "" {
		return fmt.Sprintf("(%v) %v", wce.Name, wce.Message)
	}
	return wce.Message
}

// IsMaxTimeMSExpiredError reports whether the server says that the command's time was up.
func (wce WriteConcernError) IsMaxTimeMSExpiredError() bool { return wce.Code == codeMaxTimeExpired }

// A WriteException is the error of a write.
type WriteException struct {
	WriteConcernError *WriteConcernError // nil if there is none
	WriteErrors       WriteErrors
	Labels            []string
	Raw               bson.Raw // the reply
}

// causes returns the text of an exception.
func causes[T error](name string, concern *WriteConcernError, errs []T) string {
	var texts []string
	if concern != nil {
		texts = append(texts, "write concern error: "+concern.Error())
	}
	if len(errs) > 0 {
		texts = append(texts, joined(errs))
	}
	if len(texts) == 0 {
		return name + " exception: no causes"
	}
	return name + " exception: " + strings.Join(texts, ", ")
}

// Error returns the texts of all its errors.
func (mwe WriteException) Error() string {
	return causes("write", mwe.WriteConcernError, mwe.WriteErrors)
}

// HasErrorCode reports whether one of the errors has the code.
func (mwe WriteException) HasErrorCode(code int) bool {
	return mwe.WriteConcernError != nil && mwe.WriteConcernError.Code == code ||
		slices.ContainsFunc(mwe.WriteErrors, func(we WriteError) bool { return we.HasErrorCode(code) })
}

// HasErrorLabel reports whether it has this label.
func (mwe WriteException) HasErrorLabel(label string) bool {
	return slices.Contains(mwe.Labels, label)
}

// HasErrorMessage reports whether the message of one has the text in it.
func (mwe WriteException) HasErrorMessage(message string) bool {
	return mwe.WriteConcernError != nil && strings.Contains(mwe.WriteConcernError.Message, message) ||
		slices.ContainsFunc(mwe.WriteErrors, func(we WriteError) bool { return we.HasErrorMessage(message) })
}

// HasErrorCodeWithMessage reports whether one has the code, and the text in its message.
func (mwe WriteException) HasErrorCodeWithMessage(code int, message string) bool {
	if wce := mwe.WriteConcernError; wce != nil && wce.Code == code && strings.Contains(wce.Message, message) {
		return true
	}
	return slices.ContainsFunc(mwe.WriteErrors, func(we WriteError) bool {
		return we.HasErrorCodeWithMessage(code, message)
	})
}

func (mwe WriteException) serverError() {}

// A BulkWriteError is a refused write of a bulk write.
type BulkWriteError struct {
	WriteError
	Request WriteModel // the write, nil for InsertMany
}

// Error returns the text of the WriteError.
func (bwe BulkWriteError) Error() string { return bwe.WriteError.Error() }

// A BulkWriteException is the error of BulkWrite and InsertMany.
type BulkWriteException struct {
	WriteConcernError *WriteConcernError // nil if there is none
	WriteErrors       []BulkWriteError
	Labels            []string
}

// Error returns the texts of all its errors.
func (bwe BulkWriteException) Error() string {
	return causes("bulk write", bwe.WriteConcernError, bwe.WriteErrors)
}

// exception returns the errors without their requests.
func (bwe BulkWriteException) exception() WriteException {
	e := WriteException{WriteConcernError: bwe.WriteConcernError, Labels: bwe.Labels}
	for _, we := range bwe.WriteErrors {
		e.WriteErrors = append(e.WriteErrors, we.WriteError)
	}
	return e
}

// HasErrorCode reports whether one of the errors has the code.
func (bwe BulkWriteException) HasErrorCode(code int) bool { return bwe.exception().HasErrorCode(code) }

// HasErrorLabel reports whether it has this label.
func (bwe BulkWriteException) HasErrorLabel(label string) bool {
	return slices.Contains(bwe.Labels, label)
}

// HasErrorMessage reports whether the message of one has the text in it.
func (bwe BulkWriteException) HasErrorMessage(message string) bool {
	return bwe.exception().HasErrorMessage(message)
}

// HasErrorCodeWithMessage reports whether one has the code, and the text in its message.
func (bwe BulkWriteException) HasErrorCodeWithMessage(code int, message string) bool {
	return bwe.exception().HasErrorCodeWithMessage(code, message)
}

func (bwe BulkWriteException) serverError() {}

// failure converts an error of version 2 to one of this package's types.
func failure(err error) error {
	switch e := err.(type) {
	case v2mongo.CommandError:
		if refused := (v2topology.ConnectionError{}); errors.As(e.Wrapped, &refused) && unauthenticated(refused) {
			return refused // the error of a connection, not of a command
		}
		return commandError(e)
	case v2mongo.WriteException:
		out := WriteException{WriteConcernError: concernError(e.WriteConcernError), Labels: e.Labels,
			Raw: bson.Raw(e.Raw)}
		for _, we := range e.WriteErrors {
			out.WriteErrors = append(out.WriteErrors, writeError(we))
		}
		return out
	case v2mongo.WriteConcernError:
		return *concernError(&e)
	case v2driver.WriteCommandError:
		return writeCommandError(e)
	case v2driver.Error:
		out := driver.Error{Code: e.Code, Message: e.Message, Labels: e.Labels, Name: e.Name,
			Raw: bsoncore.Document(e.Raw)}
		if e.Raw == nil {
			out.Message, out.Wrapped = cmp.Or(e.Message, e.Wrapped.Error()), e.Wrapped
		}
		return out
	case v2mongo.BulkWriteException:
		return bulkWriteException(e, nil)
	case v2mongo.MongocryptError:
		return MongocryptError{Code: e.Code, Message: e.Message}
	case v2mongo.MarshalError:
		return MarshalError{Value: e.Value, Err: e.Err}
	case v2topology.ServerSelectionError:
		out := topology.ServerSelectionError{Desc: topologyOf(e.Desc), Wrapped: e.Wrapped}
		var timeout *mongoerr.TimeoutError
		if out.Desc.CompatibilityErr == nil && !errors.As(err, &timeout) {
			out.Wrapped = topology.ErrServerSelectionTimeout // the context has not ended
		}
		return out
	case nil:
		return nil
	}
	switch {
	case errors.Is(err, v2mongo.ErrNilDocument):
		return ErrNilDocument
	case errors.Is(err, v2mongo.ErrNilValue):
		return ErrNilValue
	case errors.Is(err, v2mongo.ErrEmptySlice):
		return ErrEmptySlice
	}
	return err
}

// writeCommandError is a command whose reply has errors of writes.
func writeCommandError(e v2driver.WriteCommandError) driver.WriteCommandError {
	out := driver.WriteCommandError{Labels: e.Labels, Raw: bsoncore.Document(e.Raw)}
	for _, w := range e.WriteErrors {
		out.WriteErrors = append(out.WriteErrors, driver.WriteError{Index: w.Index, Code: w.Code, Message: w.Message,
			Details: bsoncore.Document(w.Details), Raw: bsoncore.Document(w.Raw)})
	}
	if c := e.WriteConcernError; c != nil {
		out.WriteConcernError = &driver.WriteConcernError{Name: c.Name, Code: c.Code, Message: c.Message,
			Details: bsoncore.Document(c.Details), Labels: c.Labels, Raw: bsoncore.Document(c.Raw)}
	}
	return out
}

// unauthenticated reports whether a connection was not made because the authentication failed.
func unauthenticated(err v2topology.ConnectionError) bool {
	var refused *mongoerr.AuthError
	return errors.As(err, &refused)
}

// commandError is the error of a command. What a server has replied wraps nothing in this version.
func commandError(e v2mongo.CommandError) CommandError {
	out := CommandError{Code: e.Code, Message: e.Message, Labels: e.Labels, Name: e.Name, Wrapped: e.Wrapped,
		Raw: bson.Raw(e.Raw)}
	switch {
	case e.Raw != nil:
		out.Wrapped = nil
	case errors.Is(e.Wrapped, io.EOF) && !errors.Is(e.Wrapped, io.ErrUnexpectedEOF):
		out.Message = closedInWords.Replace(out.Message)
		out.Wrapped = inWords{out.Message, e.Wrapped}
	}
	return out
}

// closedInWords has what version 1 says of a connection that the other side has closed.
var closedInWords = strings.NewReplacer(
	"incomplete read of message header: connection closed unexpectedly by the other side",
	"socket was unexpectedly closed")

// inWords is an error with another text.
type inWords struct {
	text string
	error
}

func (e inWords) Error() string { return e.text }
func (e inWords) Unwrap() error { return e.error }

func writeError(e v2mongo.WriteError) WriteError {
	return WriteError{Index: e.Index, Code: e.Code, Message: e.Message, Details: bson.Raw(e.Details),
		Raw: bson.Raw(e.Raw)}
}

func concernError(e *v2mongo.WriteConcernError) *WriteConcernError {
	if e == nil {
		return nil
	}
	return &WriteConcernError{Name: e.Name, Code: e.Code, Message: e.Message, Details: bson.Raw(e.Details),
		Raw: bson.Raw(e.Raw)}
}

func bulkWriteException(e v2mongo.BulkWriteException, models []WriteModel) BulkWriteException {
	out := BulkWriteException{WriteConcernError: concernError(e.WriteConcernError), Labels: e.Labels}
	for _, we := range e.WriteErrors {
		b := BulkWriteError{WriteError: writeError(we.WriteError)}
		if we.Index < len(models) {
			b.Request = models[we.Index]
		}
		out.WriteErrors = append(out.WriteErrors, b)
	}
	return out
}

func topologyOf(t v2description.Topology) description.Topology {
	out := description.Topology{SetName: t.SetName, Kind: description.TopologyKind(t.Kind),
		SessionTimeoutMinutesPtr: t.SessionTimeoutMinutes, CompatibilityErr: t.CompatibilityErr}
	if n := t.SessionTimeoutMinutes; n != nil {
		out.SessionTimeoutMinutes = uint32(*n)
	}
	for _, s := range t.Servers {
		d := description.Server{
			Addr: s.Addr, Arbiters: s.Arbiters, AverageRTT: s.AverageRTT, AverageRTTSet: s.AverageRTTSet,
			Compression: s.Compression, CanonicalAddr: s.CanonicalAddr,
			ElectionID: s.ElectionID, HeartbeatInterval: s.HeartbeatInterval, HelloOK: s.HelloOK, Hosts: s.Hosts,
			IsCryptd: s.IsCryptd, LastError: failure(s.LastError),
			LastUpdateTime: s.LastUpdateTime, LastWriteTime: s.LastWriteTime, MaxBatchCount: s.MaxBatchCount,
			MaxDocumentSize: s.MaxDocumentSize,
			MaxMessageSize:  s.MaxMessageSize, Members: s.Members, Passives: s.Passives, Passive: s.Passive,
			Primary: s.Primary, ReadOnly: s.ReadOnly,
			ServiceID: s.ServiceID, SessionTimeoutMinutesPtr: s.SessionTimeoutMinutes, SetName: s.SetName,
			SetVersion: s.SetVersion, Tags: s.Tags, Kind: description.ServerKind(s.Kind),
		}
		if n := s.SessionTimeoutMinutes; n != nil {
			d.SessionTimeoutMinutes = uint32(*n)
		}
		if v := s.WireVersion; v != nil {
			d.WireVersion = &description.VersionRange{Min: v.Min, Max: v.Max}
		}
		if v := s.TopologyVersion; v != nil {
			d.TopologyVersion = &description.TopologyVersion{ProcessID: v.ProcessID, Counter: v.Counter}
		}
		out.Servers = append(out.Servers, d)
	}
	return out
}

// IsDuplicateKeyError reports whether an error is about a key that another document has, or one of
// the errors in it.
func IsDuplicateKeyError(err error) bool {
	if se := ServerError(nil); errors.As(err, &se) {
		return se.HasErrorCode(11000) || se.HasErrorCode(11001) || se.HasErrorCode(12582) ||
			se.HasErrorCodeWithMessage(16460, " E11000 ")
	}
	return false
}

// IsTimeout reports whether time was up: the server's, or that of the context or of a connection.
func IsTimeout(err error) bool {
	if err == nil {
		return false
	}
	if v2mongo.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var (
		command CommandError
		write   WriteException
		bulk    BulkWriteException
		network net.Error
	)
	if errors.As(err, &network) && network.Timeout() || errors.As(err, &command) && command.IsMaxTimeMSExpiredError() {
		return true
	}
	concern := (*WriteConcernError)(nil)
	switch {
	case errors.As(err, &write):
		concern = write.WriteConcernError
	case errors.As(err, &bulk):
		concern = bulk.WriteConcernError
	}
	return concern != nil && concern.IsMaxTimeMSExpiredError()
}

// IsNetworkError reports whether a connection has failed.
func IsNetworkError(err error) bool { return v2mongo.IsNetworkError(err) }
