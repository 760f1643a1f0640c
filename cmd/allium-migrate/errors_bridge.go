package main

// errorSources are the errors of the official driver, as far as a program can look into them. It
// gets them by value, and by errors.As and type assertions; what Allium returns is turned into them
// where the program looks.
var errorSources = map[string]string{
	"errorTypes": `// A serverError is an error that a server has sent. mongoerr.HasCode and HasLabel ask the same of
// any error.
type serverError interface {
	labeledError
	HasErrorCode(int) bool
	HasErrorMessage(string) bool
	HasErrorCodeWithMessage(int, string) bool
	ErrorCodes() []int
}

// A labeledError has labels.
type labeledError interface {
	error
	HasErrorLabel(string) bool
}

// A commandError is a command that has failed: a *mongoerr.ServerError, *mongoerr.ConnectionError,
// *mongoerr.AuthError or *mongoerr.TimeoutError, which is what it wraps.
type commandError struct {
	Code    int32
	Message string
	Labels  []string
	Name    string
	Wrapped error
	Raw     bson.Raw
}

func (e commandError) Error() string {
	switch {
	case e.Code == 0 && e.Wrapped != nil:
		return e.Message + ": " + e.Wrapped.Error()
	case e.Name != "":
		return "(" + e.Name + ") " + e.Message
	}
	return e.Message
}
func (e commandError) Unwrap() error                   { return e.Wrapped }
func (e commandError) Is(target error) bool            { return isDuplicate(target, e) }
func (e commandError) HasErrorCode(code int) bool      { return int(e.Code) == code }
func (e commandError) ErrorCodes() []int               { return []int{int(e.Code)} }
func (e commandError) HasErrorLabel(label string) bool { return slices.Contains(e.Labels, label) }
func (e commandError) HasErrorMessage(text string) bool {
	return strings.Contains(e.Message, text)
}
func (e commandError) HasErrorCodeWithMessage(code int, text string) bool {
	return e.HasErrorCode(code) && e.HasErrorMessage(text)
}
func (e commandError) IsMaxTimeMSExpiredError() bool {
	return e.Code == 50 || e.Name == "MaxTimeMSExpired"
}

// A writeError is a write that the server has refused: a *mongoerr.WriteError.
type writeError struct {
	Index   int
	Code    int
	Message string
	Details bson.Raw
	Raw     bson.Raw
}

func (e writeError) Error() string {
	if len(e.Details) > 0 {
		return e.Message + ": " + e.Details.String()
	}
	return e.Message
}
func (e writeError) Is(target error) bool             { return isDuplicate(target, e) }
func (e writeError) HasErrorCode(code int) bool       { return e.Code == code }
func (e writeError) ErrorCodes() []int                { return []int{e.Code} }
func (e writeError) HasErrorLabel(string) bool        { return false }
func (e writeError) HasErrorMessage(text string) bool { return strings.Contains(e.Message, text) }
func (e writeError) HasErrorCodeWithMessage(code int, text string) bool {
	return e.HasErrorCode(code) && e.HasErrorMessage(text)
}

// writeErrors are the refused writes of a command.
type writeErrors []writeError

func (we writeErrors) Error() string {
	texts := make([]string, len(we))
	for i, e := range we {
		texts[i] = e.Error()
	}
	return "write errors: [" + strings.Join(texts, ", ") + "]"
}

// A writeConcernError is a write that was done, but not acknowledged as the write concern wants.
type writeConcernError struct {
	Name    string
	Code    int
	Message string
	Details bson.Raw
	Raw     bson.Raw
}

func (e writeConcernError) Error() string {
	if e.Name != "" {
		return "(" + e.Name + ") " + e.Message
	}
	return e.Message
}
func (e writeConcernError) IsMaxTimeMSExpiredError() bool { return e.Code == 50 }

// A writeException is the error of one write: *mongoerr.WriteError and
// *mongoerr.WriteConcernError.
type writeException struct {
	WriteConcernError *writeConcernError
	WriteErrors       writeErrors
	Labels            []string
	Raw               bson.Raw
}

func (e writeException) Error() string {
	var causes []string
	if e.WriteConcernError != nil {
		causes = append(causes, "write concern error: "+e.WriteConcernError.Error())
	}
	if len(e.WriteErrors) > 0 {
		causes = append(causes, e.WriteErrors.Error())
	}
	if len(causes) == 0 {
		return "write exception: no causes"
	}
	return "write exception: " + strings.Join(causes, ", ")
}
func (e writeException) Is(target error) bool       { return isDuplicate(target, e) }
func (e writeException) HasErrorCode(code int) bool { return slices.Contains(e.ErrorCodes(), code) }
func (e writeException) ErrorCodes() []int {
	var codes []int
	for _, we := range e.WriteErrors {
		codes = append(codes, we.Code)
	}
	if e.WriteConcernError != nil {
		codes = append(codes, e.WriteConcernError.Code)
	}
	return codes
}
func (e writeException) HasErrorLabel(label string) bool { return slices.Contains(e.Labels, label) }
func (e writeException) HasErrorMessage(text string) bool {
	if e.WriteConcernError != nil && strings.Contains(e.WriteConcernError.Message, text) {
		return true
	}
	return slices.ContainsFunc(e.WriteErrors, func(we writeError) bool { return we.HasErrorMessage(text) })
}
func (e writeException) HasErrorCodeWithMessage(code int, text string) bool {
	if c := e.WriteConcernError; c != nil && c.Code == code && strings.Contains(c.Message, text) {
		return true
	}
	return slices.ContainsFunc(e.WriteErrors, func(we writeError) bool { return we.HasErrorCodeWithMessage(code, text) })
}

// WriteError is what a bulkWriteError calls its field.
type WriteError = writeError

// A bulkWriteError is a refused write of a bulk write.
type bulkWriteError struct{ WriteError }

// A bulkWriteException is the error of many writes: a *mongoerr.BulkWriteError.
type bulkWriteException struct {
	WriteConcernError *writeConcernError
	WriteErrors       []bulkWriteError
	Labels            []string
}

// one returns it as a writeException, whose methods are the same.
func (e bulkWriteException) one() writeException {
	w := writeException{WriteConcernError: e.WriteConcernError, Labels: e.Labels}
	for _, we := range e.WriteErrors {
		w.WriteErrors = append(w.WriteErrors, we.WriteError)
	}
	return w
}
func (e bulkWriteException) Error() string                    { return "bulk " + e.one().Error() }
func (e bulkWriteException) Is(target error) bool             { return isDuplicate(target, e) }
func (e bulkWriteException) HasErrorCode(code int) bool       { return e.one().HasErrorCode(code) }
func (e bulkWriteException) ErrorCodes() []int                { return e.one().ErrorCodes() }
func (e bulkWriteException) HasErrorLabel(label string) bool  { return e.one().HasErrorLabel(label) }
func (e bulkWriteException) HasErrorMessage(text string) bool { return e.one().HasErrorMessage(text) }
func (e bulkWriteException) HasErrorCodeWithMessage(code int, text string) bool {
	return e.one().HasErrorCodeWithMessage(code, text)
}

// isDuplicate says that an error which the program has made itself is one of a duplicate key.
func isDuplicate(target error, e serverError) bool {
	return target == mongoerr.ErrDuplicateKey && (e.HasErrorCode(11000) || e.HasErrorCode(11001) || e.HasErrorCode(12582) ||
		e.HasErrorCodeWithMessage(16460, " E11000 "))
}`,
	"before": `// before returns an error of Allium's as the official driver had it, and others as they are.
func before(err error) error {
	var (
		bulk      *mongoerr.BulkWriteError
		write     *mongoerr.WriteError
		concern   *mongoerr.WriteConcernError
		timeout   *mongoerr.TimeoutError
		selection *mongoerr.SelectionError
		conn      *mongoerr.ConnectionError
		cleared   *mongoerr.PoolClearedError
		auth      *mongoerr.AuthError
		server    *mongoerr.ServerError
		decode    *mongoerr.DecodeError
	)
	refused := func(e *mongoerr.WriteError) writeError {
		return writeError{Index: e.Index, Code: int(e.Code), Message: e.Message, Details: e.Details, Raw: e.Raw}
	}
	concerned := func(e *mongoerr.WriteConcernError) *writeConcernError {
		return &writeConcernError{Name: e.Name, Code: int(e.Code), Message: e.Message, Details: e.Details, Raw: e.Raw}
	}
	labels := func(reply bson.Raw) (list []string) {
		array, _ := reply.Lookup("errorLabels").Array()
		for v := range array.Values() {
			label, _ := v.StringValue()
			list = append(list, label)
		}
		return list
	}
	network := func(labels []string) error {
		return commandError{Message: "connection", Labels: append(slices.Clone(labels), "NetworkError"), Wrapped: err}
	}
	switch {
	case errors.As(err, &bulk):
		if len(bulk.WriteErrors) == 0 && len(bulk.WriteConcernErrors) == 0 {
			return before(bulk.Err)
		}
		e := bulkWriteException{Labels: slices.Clone(bulk.Labels)}
		for _, w := range bulk.WriteErrors {
			e.WriteErrors = append(e.WriteErrors, bulkWriteError{refused(w)})
		}
		if n := len(bulk.WriteConcernErrors); n > 0 {
			e.WriteConcernError = concerned(bulk.WriteConcernErrors[n-1])
		}
		return e
	case errors.As(err, &decode):
		return err
	case errors.As(err, &timeout) && !errors.As(timeout, &server):
		if timeout.Phase == mongoerr.PhaseSelection {
			return err
		}
		if timeout.Phase == mongoerr.PhaseRead || timeout.Phase == mongoerr.PhaseWrite && !timeout.Canceled() {
			return network(timeout.Labels)
		}
		return commandError{Message: "connection", Labels: slices.Clone(timeout.Labels), Wrapped: err}
	case errors.As(err, &auth) && !errors.As(auth, &server):
		return commandError{Message: "connection", Wrapped: err}
	case errors.As(err, &server):
		return commandError{Code: server.Code, Name: server.Name, Message: server.Message, Labels: slices.Clone(server.Labels), Raw: server.Raw, Wrapped: err}
	case errors.As(err, &write), errors.As(err, &concern):
		var e writeException
		if write != nil {
			e.WriteErrors, e.Raw, e.Labels = writeErrors{refused(write)}, write.Reply, labels(write.Reply)
		}
		if errors.As(err, &concern) {
			e.WriteConcernError = concerned(concern)
			for _, label := range append(labels(concern.Reply), concern.Labels...) {
				if !slices.Contains(e.Labels, label) {
					e.Labels = append(e.Labels, label)
				}
			}
			if e.Raw == nil {
				e.Raw = concern.Reply
			}
		}
		return e
	case errors.As(err, &selection):
		return err
	case errors.As(err, &conn):
		return network(conn.Labels)
	case errors.As(err, &cleared):
		return network(cleared.Labels)
	}
	return err
}`,
	"errorAs": `// errorAs is errors.As for the errors of the official driver. New code asks for those of package
// mongoerr: errors.AsType[*mongoerr.ServerError](err).
func errorAs(err error, into any) bool {
	return errors.As(err, into) || errors.As(before(err), into)
}`,
	"errorAsType": `// errorAsType is errors.AsType for the errors of the official driver.
func errorAsType[T error](err error) (e T, ok bool) {
	if e, ok = errors.AsType[T](err); ok {
		return e, ok
	}
	return errors.AsType[T](before(err))
}`,
	"errorItself": `// errorItself returns an error for a type assertion or a type switch: one of Allium's as the official
// driver had it, but not one that another error wraps.
func errorItself(err error) error {
	switch err.(type) {
	case *mongoerr.BulkWriteError, *mongoerr.WriteError, *mongoerr.WriteConcernError, *mongoerr.TimeoutError, *mongoerr.ConnectionError,
		*mongoerr.PoolClearedError, *mongoerr.AuthError, *mongoerr.ServerError:
		return before(err)
	}
	if err != nil && strings.HasSuffix(reflect.TypeOf(err).PkgPath(), "/internal/failure") {
		return before(err) // the error of a write and one of its write concern
	}
	return err
}`,
	"isTimeout": `// isTimeout reports whether time was up: that of the server, of the context or of a connection, but
// not that of a write concern, which mongoerr.IsTimeout counts, too.
func isTimeout(err error) bool {
	if concern, ok := errors.AsType[*mongoerr.WriteConcernError](err); ok && concern.Code == 64 {
		return false
	}
	var command interface{ IsMaxTimeMSExpiredError() bool } // that the program has made itself
	return mongoerr.IsTimeout(err) || errors.As(err, &command) && command.IsMaxTimeMSExpiredError()
}`,
}

func init() {
	for name, source := range errorSources {
		helperSources[name] = source
	}
	for name, uses := range map[string][]string{
		"before": {"errorTypes"}, "errorAs": {"before", "errorTypes"}, "errorAsType": {"before", "errorTypes"},
		"errorItself": {"before", "errorTypes"},
	} {
		helperUses[name] = uses
	}
}
