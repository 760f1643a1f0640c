package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"allium/auth"
	abson "allium/bson"
	"allium/gridfs"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/drivertest"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// failure converts an error of Allium's to one of this package's types.
func failure(err error) error {
	if err == nil {
		return nil
	}
	var (
		bulk      *mongoerr.BulkWriteError
		write     *mongoerr.WriteError
		concern   *mongoerr.WriteConcernError
		decode    *mongoerr.DecodeError
		timeout   *mongoerr.TimeoutError
		selection *mongoerr.SelectionError
		conn      *mongoerr.ConnectionError
		cleared   *mongoerr.PoolClearedError
		login     *mongoerr.AuthError
		server    *mongoerr.ServerError
		reply     *mongoerr.ReplyError
	)
	switch {
	case errors.As(err, &bulk):
		return refused(bulk)
	case errors.As(err, &reply) && reply.WriteErrors == nil:
		return replyError(reply)
	case errors.As(err, &decode):
		return decode.Wrapped
	case errors.As(err, &timeout):
		return timedOut(timeout)
	case errors.As(err, &login):
		return authError(login)
	case errors.As(err, &server):
		return commandError(server)
	case errors.As(err, &write), errors.As(err, &concern):
		return writeException(err)
	case errors.As(err, &selection):
		wrapped := error(noServerInTime(selection))
		if selection.Topology != nil && selection.Topology.CompatibilityErr != nil {
			wrapped = selection.Topology.CompatibilityErr
		}
		return topology.ServerSelectionError{Desc: topologyDescription(selection.Topology), Wrapped: wrapped}
	case errors.As(err, &conn):
		return networkError(connectionError(conn, err), conn.Labels)
	case errors.As(err, &cleared):
		return networkError(poolCleared{inWords{err.Error(), []error{err}}}, cleared.Labels)
	case errors.Is(err, mongoerr.ErrClientClosed):
		return ErrClientDisconnected
	case errors.Is(err, mongoerr.ErrNilDocument):
		return ErrNilDocument
	case errors.Is(err, mongoerr.ErrNoResumeToken):
		return ErrMissingResumeToken
	case errors.Is(err, mongoerr.ErrNoDocuments):
		return ErrNoDocuments
	case errors.Is(err, gridfs.ErrFileNotFound), errors.Is(err, gridfs.ErrRevisionNotFound):
		return ErrFileNotFound
	case errors.Is(err, gridfs.ErrClosed):
		return ErrStreamClosed
	}
	return err
}

// replyError is the error of a reply without what the command replies.
func replyError(e *mongoerr.ReplyError) error {
	path := strings.Split(e.Field, ".")
	field := path[len(path)-1]
	switch {
	case e.Contradiction != "":
		return e
	case e.Field == "cursor" && e.Type == 0:
		return driver.ErrNoCursor
	case e.Field == "cursor":
		return fmt.Errorf("cursor should be an embedded document but is BSON type %s", e.Type)
	case e.Field == "cursor.id":
		return fmt.Errorf("id should be an int64 but it is a BSON %s", e.Type)
	case e.Field == "cursor.nextBatch":
		return nextBatchError(e)
	case path[0] == "cursor":
		return fmt.Errorf("%s should be an array but is a BSON %s", field, e.Type)
	case strings.HasPrefix(e.Field, "element of "):
		return fmt.Errorf("%s value is type document, but received BSON type %s",
			strings.TrimPrefix(e.Field, "element of "), e.Type)
	}
	want := strings.TrimPrefix(strings.TrimPrefix(e.Want, "a "), "an ")
	if want == "number" {
		want = "int32 or int64"
	}
	return fmt.Errorf("response field '%s' is type %s, but received BSON type %s", e.Field, want, invalidIfNone(e.Type))
}

// moreFailed is the error of a getMore.
func moreFailed(err error) error {
	var reply *mongoerr.ReplyError
	if errors.As(err, &reply) && strings.HasPrefix(reply.Field, "cursor") {
		return nextBatchError(reply)
	}
	return commandFailed(err)
}

// nextBatchError is the error of the reply to a getMore.
func nextBatchError(e *mongoerr.ReplyError) error {
	if e.Field == "cursor.nextBatch" {
		return fmt.Errorf("cursor.nextBatch should be an array but is a BSON %s", invalidIfNone(e.Type))
	}
	t := e.Type
	if e.Field == "cursor" {
		t = 0
	}
	return fmt.Errorf("cursor.id should be an int64 but is a BSON %s", invalidIfNone(t))
}

// invalidIfNone names a type, and what is no type.
func invalidIfNone(t abson.Type) string {
	if t == 0 {
		return "invalid"
	}
	return t.String()
}

// missing reports whether err is about a field that a reply has not: the official driver returns
// the zero value in place of some.
func missing(err error) bool {
	var reply *mongoerr.ReplyError
	return errors.As(err, &reply) && reply.Type == 0 && reply.Contradiction == ""
}

// noServerInTime is why no server was selected.
func noServerInTime(err error) inWords {
	return inWords{context.DeadlineExceeded.Error(),
		[]error{context.DeadlineExceeded, topology.ErrServerSelectionTimeout, err}}
}

// commandError is the error of a command.
func commandError(e *mongoerr.ServerError) CommandError {
	message := cmp.Or(e.Message, "command failed")
	text := message
	if e.Name != "" {
		text = "(" + e.Name + ") " + text
	}
	behind := inWords{text, []error{e}}
	if e.Code == codeMaxTimeExpired {
		behind = inWords{text + ": " + context.DeadlineExceeded.Error(), []error{e, context.DeadlineExceeded}}
	}
	return CommandError{Code: e.Code, Name: e.Name, Message: message, Labels: slices.Clone(e.Labels),
		Raw: bson.Raw(e.Raw), Wrapped: behind, whole: true}
}

// inWords is Allium's errors in the words of the official driver.
type inWords struct {
	text string
	errs []error
}

func (e inWords) Error() string   { return e.text }
func (e inWords) Unwrap() []error { return e.errs }

// poolCleared is the error of a pool that was cleared.
type poolCleared struct{ inWords }

// Retryable returns true: see driver.RetryablePoolError.
func (poolCleared) Retryable() bool { return true }

// networkError is the error of a connection: a CommandError with the label NetworkError.
func networkError(err error, labels []string) CommandError {
	labels = append([]string{driver.NetworkError}, labels...)
	return CommandError{Message: err.Error(), Labels: labels, Wrapped: err, whole: true}
}

// connectionError says what has failed in the words that programs look for.
func connectionError(e *mongoerr.ConnectionError, err error) error {
	cause := e.Wrapped
	if cause == nil {
		return inWords{e.Error(), []error{err}}
	}
	if errors.Is(cause, drivertest.ErrNoResponsesRemaining) {
		return drivertest.ErrNoResponsesRemaining
	}
	switch text := cause.Error(); e.Op {
	case "read":
		if errors.Is(cause, io.EOF) && !errors.Is(cause, io.ErrUnexpectedEOF) {
			text = "connection closed unexpectedly by the other side: " + text
		}
		return topology.ConnectionError{ConnectionID: e.Addr,
			Wrapped: inWords{"incomplete read of message header: " + text, []error{err}}}
	case "write":
		return topology.ConnectionError{ConnectionID: e.Addr,
			Wrapped: inWords{"unable to write wire message to network: " + text, []error{err}}}
	default:
		return handshakeError(text, err)
	}
}

// checkFailed is the error of a monitor's check: where there was no connection, the cause alone.
func checkFailed(err error) error {
	var conn *mongoerr.ConnectionError
	if !errors.As(err, &conn) || conn.Wrapped == nil {
		return failure(err)
	}
	switch conn.Op {
	case "dial", "TLS handshake":
		return conn.Wrapped
	case "hello":
		read := *conn
		read.Op = "read"
		return networkError(connectionError(&read, err), nil)
	}
	return failure(err)
}

// handshakeError is the error of a connection that was not made.
func handshakeError(text string, err error) topology.ConnectionError {
	return topology.ConnectionError{
		Wrapped: inWords{"error occurred during connection handshake: " + text, []error{err}}}
}

// codeMechanismUnavailable is the error of a server that does not do the mechanism.
const codeMechanismUnavailable = 334

// authError is the error of an authentication that was refused, or has failed.
func authError(e *mongoerr.AuthError) CommandError {
	var out CommandError
	reason := fmt.Sprint(e.Wrapped)
	if server := (*mongoerr.ServerError)(nil); errors.As(e, &server) {
		out = commandError(server)
		reason = out.Error()
	}
	sasl := "sasl conversation error: "
	if e.Mechanism == string(auth.MechanismX509) || out.Code == codeMechanismUnavailable {
		sasl = "" // there was none
	}
	failed := handshakeError(
		fmt.Sprintf("auth error: %sunable to authenticate using mechanism %q: %s", sasl, e.Mechanism, reason), e)
	if out.Message == "" {
		out.Message = failed.Error()
	}
	out.Wrapped, out.whole = failed, true
	return out
}

// timedOut is the error of an operation whose time was up, or whose context has ended.
func timedOut(e *mongoerr.TimeoutError) error {
	var (
		server    *mongoerr.ServerError
		selection *mongoerr.SelectionError
	)
	if errors.As(e, &selection) || e.Phase == mongoerr.PhaseSelection {
		s := topology.ServerSelectionError{Wrapped: noServerInTime(e)}
		if e.Canceled() {
			s.Wrapped = inWords{context.Canceled.Error(), []error{context.Canceled, e}}
		}
		if selection != nil {
			s.Desc = topologyDescription(selection.Topology)
		}
		return s
	}
	if errors.As(e, &server) {
		c := commandError(server)
		c.Labels = union(c.Labels, e.Labels)
		return c
	}
	labels := slices.Clone([]string(e.Labels))
	if e.Phase == mongoerr.PhaseWrite && !e.Canceled() || e.Phase == mongoerr.PhaseRead {
		labels = append(labels, driver.NetworkError)
	}
	var wrapped error = e
	if e.Phase == mongoerr.PhaseWrite || e.Phase == mongoerr.PhaseRead {
		wrapped = topology.ConnectionError{ConnectionID: e.Addr, Wrapped: e}
	}
	return CommandError{Message: e.Error(), Labels: labels, Wrapped: wrapped, whole: true}
}

// union returns the labels of both.
func union(a, b []string) []string {
	for _, label := range b {
		if !slices.Contains(a, label) {
			a = append(a, label)
		}
	}
	return a
}

func writeError(e *mongoerr.WriteError) WriteError {
	return WriteError{Index: e.Index, Code: int(e.Code), Message: e.Message, Details: bson.Raw(e.Details),
		Raw: bson.Raw(e.Raw)}
}

func writeConcernError(e *mongoerr.WriteConcernError) *WriteConcernError {
	return &WriteConcernError{Name: e.Name, Code: int(e.Code), Message: e.Message, Details: bson.Raw(e.Details),
		Raw: bson.Raw(e.Raw)}
}

// writeException is the error of a write that was refused, or not acknowledged as it should be.
func writeException(err error) WriteException {
	var (
		write   *mongoerr.WriteError
		concern *mongoerr.WriteConcernError
	)
	var e WriteException
	if errors.As(err, &write) {
		all := []*mongoerr.WriteError{write}
		var reply *mongoerr.ReplyError
		if errors.As(err, &reply) {
			all = reply.WriteErrors
		}
		for _, w := range all {
			e.WriteErrors = append(e.WriteErrors, writeError(w))
		}
		e.Raw, e.Labels = bson.Raw(write.Reply), labelsOf(write.Reply)
	}
	if errors.As(err, &concern) {
		e.WriteConcernError = writeConcernError(concern)
		e.Labels = union(union(e.Labels, labelsOf(concern.Reply)), concern.Labels)
		if e.Raw == nil {
			e.Raw = bson.Raw(concern.Reply)
		}
	}
	return e
}

// labelsOf returns the labels in a reply.
func labelsOf(reply abson.Raw) (labels []string) {
	array, _ := reply.Lookup("errorLabels").Array()
	for v := range array.Values() {
		if label, ok := v.StringValue(); ok {
			labels = append(labels, label)
		}
	}
	return labels
}

// manyFailed is the error of many writes: the one that ended them, if no write was refused.
func manyFailed(err error) error {
	var (
		bulk  *mongoerr.BulkWriteError
		reply *mongoerr.ReplyError
	)
	switch {
	case errors.As(err, &reply) && len(reply.WriteErrors) > 0:
		bulk = &mongoerr.BulkWriteError{WriteErrors: reply.WriteErrors, Labels: labelsOf(reply.WriteErrors[0].Reply)}
	case !errors.As(err, &bulk):
		return failure(err)
	case len(bulk.WriteErrors) == 0 && len(bulk.WriteConcernErrors) == 0:
		return failure(bulk.Err)
	}
	return bulkWriteException(bulk, nil)
}

// refused is the error of a command that is no write of many, and whose reply has errors of writes.
func refused(e *mongoerr.BulkWriteError) error {
	if len(e.WriteErrors) == 0 && len(e.WriteConcernErrors) == 0 {
		return failure(e.Err)
	}
	out := WriteException{Labels: slices.Clone(e.Labels)}
	for _, w := range e.WriteErrors {
		out.WriteErrors = append(out.WriteErrors, writeError(w))
		out.Raw = bson.Raw(w.Reply)
	}
	for _, w := range e.WriteConcernErrors {
		out.WriteConcernError = writeConcernError(w)
		out.Raw = bson.Raw(w.Reply)
	}
	return out
}

func bulkWriteException(e *mongoerr.BulkWriteError, models []WriteModel) BulkWriteException {
	out := BulkWriteException{Labels: slices.Clone(e.Labels)}
	for _, w := range e.WriteErrors {
		b := BulkWriteError{WriteError: writeError(w)}
		if w.Index < len(models) {
			b.Request = models[w.Index]
		}
		out.WriteErrors = append(out.WriteErrors, b)
	}
	if n := len(e.WriteConcernErrors); n > 0 {
		out.WriteConcernError = writeConcernError(e.WriteConcernErrors[n-1])
	}
	return out
}

// commandFailed is failure for commands whose errors of writes are of another type with the
// official driver.
func commandFailed(err error) error {
	failed := failure(err)
	e, ok := failed.(WriteException)
	if !ok {
		return failed
	}
	out := driver.WriteCommandError{Labels: e.Labels, Raw: bsoncore.Document(e.Raw)}
	for _, w := range e.WriteErrors {
		out.WriteErrors = append(out.WriteErrors, driver.WriteError{Index: int64(w.Index), Code: int64(w.Code),
			Message: w.Message, Details: bsoncore.Document(w.Details), Raw: bsoncore.Document(w.Raw)})
	}
	if c := e.WriteConcernError; c != nil {
		out.WriteConcernError = &driver.WriteConcernError{Name: c.Name, Code: int64(c.Code), Message: c.Message,
			Details: bsoncore.Document(c.Details), Labels: e.Labels, Raw: bsoncore.Document(c.Raw)}
	}
	return out
}

// driverError is the error of a command that the official driver's package mongo hands on as it is.
func driverError(err error) error {
	e, ok := err.(CommandError)
	if !ok {
		return err
	}
	out := driver.Error{Code: e.Code, Message: e.Message, Labels: e.Labels, Name: e.Name, Raw: bsoncore.Document(e.Raw)}
	switch {
	case e.Raw == nil && e.Wrapped != nil:
		out.Wrapped = e.Wrapped
		if out.Message == e.Wrapped.Error() {
			out.Message = ""
		}
	case errors.Is(e.Wrapped, context.DeadlineExceeded):
		out.Wrapped = context.DeadlineExceeded
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
	if mongoerr.IsTimeout(err) || errors.Is(err, topology.ErrServerSelectionTimeout) {
		return true
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	var (
		command CommandError
		write   WriteException
		bulk    BulkWriteException
	)
	if errors.As(err, &command) && command.IsMaxTimeMSExpiredError() {
		return true
	}
	concern := (*WriteConcernError)(nil)
	switch {
	case errors.As(err, &write):
		concern = write.WriteConcernError
	case errors.As(err, &bulk):
		concern = bulk.WriteConcernError
	}
	return concern != nil && concern.IsMaxTimeMSExpiredError() || hasLabel(err, "NetworkTimeoutError") ||
		hasLabel(err, "ExceededTimeLimitError")
}

// IsNetworkError reports whether a connection has failed.
func IsNetworkError(err error) bool { return hasLabel(err, driver.NetworkError) }

// hasLabel reports whether one of the errors in err has a label.
func hasLabel(err error, label string) bool {
	var labeled LabeledError
	return errors.As(err, &labeled) && labeled.HasErrorLabel(label)
}

// ErrorCodes returns the codes of the errors that servers have sent.
func ErrorCodes(err error) []int {
	var coded interface{ ErrorCodes() []int }
	if err != nil && errors.As(err, &coded) {
		return coded.ErrorCodes()
	}
	return []int{}
}
