package mongo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// InvalidArgumentError is an argument that no operation can do with.
type InvalidArgumentError struct{ wrapped error }

// Error returns the text of the error inside.
func (e InvalidArgumentError) Error() string { return e.wrapped.Error() }

// Unwrap returns the error inside.
func (e InvalidArgumentError) Unwrap() error { return e.wrapped }

var (
	// ErrClientDisconnected is returned by operations of a client that was disconnected.
	ErrClientDisconnected = errors.New("client is disconnected")
	// ErrMultipleIndexDrop is returned by DropOne for a name that means all indexes.
	ErrMultipleIndexDrop error = InvalidArgumentError{errors.New("multiple indexes would be dropped")}
	// ErrNilDocument is returned for a nil document.
	ErrNilDocument error = InvalidArgumentError{errors.New("document is nil")}
	// ErrNilValue is returned for a nil value.
	ErrNilValue error = InvalidArgumentError{errors.New("value is nil")}
	// ErrEmptySlice is returned for a slice that must have an element.
	ErrEmptySlice error = InvalidArgumentError{errors.New("must provide at least one element in input slice")}
	// ErrNotSlice is returned by InsertMany for what is no slice.
	ErrNotSlice error = InvalidArgumentError{errors.New("must provide a non-empty slice")}
	// ErrNoDocuments is the error of a result without a document.
	ErrNoDocuments = errors.New("mongo: no documents in result")
	// ErrWrongClient is returned for a session of another client.
	ErrWrongClient = errors.New("session was not created by this client")
	// ErrInvalidIndexValue is returned for an index with a key whose value is no number or text.
	ErrInvalidIndexValue = errors.New("invalid index value")
	// ErrNonStringIndexName is not returned any more.
	//
	// Deprecated: names are strings.
	ErrNonStringIndexName = errors.New("index name must be a string")
	// ErrMissingResumeToken is the error of an event without a resume token.
	ErrMissingResumeToken = errors.New("cannot provide resume functionality when the resume token is missing")
	// ErrNilCursor is the error of a change stream without a cursor.
	ErrNilCursor = errors.New("cursor is nil")
)

// ErrMapForOrderedArgument is returned for a map with several keys where the order counts.
type ErrMapForOrderedArgument struct{ ParamName string }

// Error names the parameter.
func (e ErrMapForOrderedArgument) Error() string {
	return fmt.Sprintf("multi-key map passed in for ordered parameter %v", e.ParamName)
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

// Unwrap returns the reason.
func (me MarshalError) Unwrap() error { return me.Err }

// A LabeledError has labels.
type LabeledError interface {
	error
	// HasErrorLabel reports whether it has this one.
	HasErrorLabel(string) bool
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
	// ErrorCodes returns all codes.
	ErrorCodes() []int

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

	whole bool // the text of Wrapped is that of the error
}

// Error returns the name, the message, and what is wrapped.
func (e CommandError) Error() string {
	if e.whole {
		return e.Wrapped.Error()
	}
	text := ""
	if e.Name != "" {
		text = fmt.Sprintf("(%v)", e.Name)
	}
	if e.Message != "" {
		text += " " + e.Message
	}
	if e.Wrapped != nil {
		text += ": " + e.Wrapped.Error()
	}
	return text
}

// Unwrap returns the error behind it, if there is one.
func (e CommandError) Unwrap() error { return e.Wrapped }

// HasErrorCode reports whether it has this code.
func (e CommandError) HasErrorCode(code int) bool { return int(e.Code) == code }

// ErrorCodes returns its code.
func (e CommandError) ErrorCodes() []int { return []int{int(e.Code)} }

// HasErrorLabel reports whether it has this label.
func (e CommandError) HasErrorLabel(label string) bool { return slices.Contains(e.Labels, label) }

// HasErrorMessage reports whether the message has the text in it.
func (e CommandError) HasErrorMessage(message string) bool {
	return strings.Contains(e.Message, message)
}

// HasErrorCodeWithMessage reports whether it has the code, and the message the text.
func (e CommandError) HasErrorCodeWithMessage(code int, message string) bool {
	return int(e.Code) == code && strings.Contains(e.Message, message)
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
	msg := we.Message
	if len(we.Details) > 0 {
		msg = fmt.Sprintf("%s: %s", msg, we.Details.String())
	}
	return msg
}

// HasErrorCode reports whether it has this code.
func (we WriteError) HasErrorCode(code int) bool { return we.Code == code }

// ErrorCodes returns its code.
func (we WriteError) ErrorCodes() []int { return []int{we.Code} }

// HasErrorLabel returns false: a WriteError has no labels.
func (we WriteError) HasErrorLabel(string) bool { return false }

// HasErrorMessage reports whether the message has the text in it.
func (we WriteError) HasErrorMessage(message string) bool {
	return strings.Contains(we.Message, message)
}

// HasErrorCodeWithMessage reports whether it has the code, and the message the text.
func (we WriteError) HasErrorCodeWithMessage(code int, message string) bool {
	return we.Code == code && strings.Contains(we.Message, message)
}

func (we WriteError) serverError() {}

// WriteErrors are the refused writes of a command.
type WriteErrors []WriteError

// Error returns the texts of all.
func (we WriteErrors) Error() string {
	errs := make([]error, len(we))
	for i, e := range we {
		errs[i] = e
	}
	return joined(errs)
}

// joined lists errors, of many only the first ones.
func joined(errs []error) string {
	var b strings.Builder
	b.WriteString("write errors: [")
	for i, err := range errs {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > 2000 {
			fmt.Fprintf(&b, "+%d more errors...", len(errs)-i)
			break
		}
		b.WriteString(err.Error())
	}
	b.WriteString("]")
	return b.String()
}

// A WriteConcernError is a write that was done, but not acknowledged as the write concern wants.
type WriteConcernError struct {
	Name    string
	Code    int
	Message string
	Details bson.Raw
	Raw     bson.Raw // the element of the reply
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

// Error returns the texts of all its errors.
func (mwe WriteException) Error() string {
	var causes []string
	if mwe.WriteConcernError != nil {
		causes = append(causes, "write concern error: "+mwe.WriteConcernError.Error())
	}
	if len(mwe.WriteErrors) > 0 {
		causes = append(causes, mwe.WriteErrors.Error())
	}
	if len(causes) == 0 {
		return "write exception: no causes"
	}
	return "write exception: " + strings.Join(causes, ", ")
}

// HasErrorCode reports whether one of the errors has the code.
func (mwe WriteException) HasErrorCode(code int) bool {
	return slices.Contains(mwe.ErrorCodes(), code)
}

// ErrorCodes returns all codes.
func (mwe WriteException) ErrorCodes() []int {
	var codes []int
	for _, we := range mwe.WriteErrors {
		codes = append(codes, we.Code)
	}
	if mwe.WriteConcernError != nil {
		codes = append(codes, mwe.WriteConcernError.Code)
	}
	return codes
}

// HasErrorLabel reports whether it has this label.
func (mwe WriteException) HasErrorLabel(label string) bool {
	return slices.Contains(mwe.Labels, label)
}

// HasErrorMessage reports whether the message of one has the text in it.
func (mwe WriteException) HasErrorMessage(message string) bool {
	if mwe.WriteConcernError != nil && strings.Contains(mwe.WriteConcernError.Message, message) {
		return true
	}
	return slices.ContainsFunc(mwe.WriteErrors, func(we WriteError) bool { return we.HasErrorMessage(message) })
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
	var causes []string
	if bwe.WriteConcernError != nil {
		causes = append(causes, "write concern error: "+bwe.WriteConcernError.Error())
	}
	if len(bwe.WriteErrors) > 0 {
		errs := make([]error, len(bwe.WriteErrors))
		for i, e := range bwe.WriteErrors {
			errs[i] = e
		}
		causes = append(causes, joined(errs))
	}
	if len(causes) == 0 {
		return "bulk write exception: no causes"
	}
	return "bulk write exception: " + strings.Join(causes, ", ")
}

// HasErrorCode reports whether one of the errors has the code.
func (bwe BulkWriteException) HasErrorCode(code int) bool {
	return slices.Contains(bwe.ErrorCodes(), code)
}

// ErrorCodes returns all codes.
func (bwe BulkWriteException) ErrorCodes() []int {
	var codes []int
	for _, we := range bwe.WriteErrors {
		codes = append(codes, we.Code)
	}
	if bwe.WriteConcernError != nil {
		codes = append(codes, bwe.WriteConcernError.Code)
	}
	return codes
}

// HasErrorLabel reports whether it has this label.
func (bwe BulkWriteException) HasErrorLabel(label string) bool {
	return slices.Contains(bwe.Labels, label)
}

// HasErrorMessage reports whether the message of one has the text in it.
func (bwe BulkWriteException) HasErrorMessage(message string) bool {
	if bwe.WriteConcernError != nil && strings.Contains(bwe.WriteConcernError.Message, message) {
		return true
	}
	return slices.ContainsFunc(bwe.WriteErrors, func(we BulkWriteError) bool { return we.HasErrorMessage(message) })
}

// HasErrorCodeWithMessage reports whether one has the code, and the text in its message.
func (bwe BulkWriteException) HasErrorCodeWithMessage(code int, message string) bool {
	if wce := bwe.WriteConcernError; wce != nil && wce.Code == code && strings.Contains(wce.Message, message) {
		return true
	}
	return slices.ContainsFunc(bwe.WriteErrors, func(we BulkWriteError) bool {
		return we.HasErrorCodeWithMessage(code, message)
	})
}

func (bwe BulkWriteException) serverError() {}

// A ClientBulkWriteException is the error of Client.BulkWrite.
type ClientBulkWriteException struct {
	WriteError         *WriteError // what ended the whole, nil if nothing did
	WriteConcernErrors []WriteConcernError
	WriteErrors        map[int]WriteError     // by the index of the write
	PartialResult      *ClientBulkWriteResult // of the writes before the error
}

// Error returns the texts of all its errors.
func (bwe ClientBulkWriteException) Error() string {
	var causes []string
	if bwe.WriteError != nil {
		causes = append(causes, "top level error: "+bwe.WriteError.Error())
	}
	if len(bwe.WriteConcernErrors) > 0 {
		errs := make([]string, len(bwe.WriteConcernErrors))
		for i, e := range bwe.WriteConcernErrors {
			errs[i] = e.Error()
		}
		causes = append(causes, "write concern errors: ["+strings.Join(errs, ", ")+"]")
	}
	if len(bwe.WriteErrors) > 0 {
		var b strings.Builder
		b.WriteString("write errors: [")
		first := true
		for _, i := range sortedKeys(bwe.WriteErrors) {
			if !first {
				b.WriteString(", ")
			}
			first = false
			b.WriteString(bwe.WriteErrors[i].Error())
		}
		b.WriteString("]")
		causes = append(causes, b.String())
	}
	if bwe.PartialResult != nil {
		causes = append(causes, fmt.Sprintf("result: %v", *bwe.PartialResult))
	}
	if len(causes) == 0 {
		return "bulk write exception: no causes"
	}
	return "bulk write exception: " + strings.Join(causes, ", ")
}

// ErrorCodes returns all codes.
func (bwe ClientBulkWriteException) ErrorCodes() []int {
	var codes []int
	if bwe.WriteError != nil {
		codes = append(codes, bwe.WriteError.Code)
	}
	for _, wce := range bwe.WriteConcernErrors {
		codes = append(codes, wce.Code)
	}
	for _, i := range sortedKeys(bwe.WriteErrors) {
		codes = append(codes, bwe.WriteErrors[i].Code)
	}
	return codes
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// A MongocryptError is an error of the encryption of values.
type MongocryptError struct {
	Code    int32
	Message string

	wrapped error
}

// Error returns the code and the message.
func (m MongocryptError) Error() string {
	return fmt.Sprintf("mongocrypt error %d: %v", m.Code, m.Message)
}

// Unwrap returns the error behind it.
func (m MongocryptError) Unwrap() error { return m.wrapped }

// An EncryptionKeyVaultError is an error of the collection of the data keys.
type EncryptionKeyVaultError struct{ Wrapped error }

// Error returns the text of the error inside.
func (ekve EncryptionKeyVaultError) Error() string {
	return fmt.Sprintf("key vault communication error: %v", ekve.Wrapped)
}

// Unwrap returns the error inside.
func (ekve EncryptionKeyVaultError) Unwrap() error { return ekve.Wrapped }

// A MongocryptdError is an error of the process mongocryptd, which is not used.
type MongocryptdError struct{ Wrapped error }

// Error returns the text of the error inside.
func (e MongocryptdError) Error() string {
	return fmt.Sprintf("mongocryptd communication error: %v", e.Wrapped)
}

// Unwrap returns the error inside.
func (e MongocryptdError) Unwrap() error { return e.Wrapped }
