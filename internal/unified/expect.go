package unified

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongoerr"
)

// checkError compares an error with what a test expects of it.
func (r *runner) checkError(want bson.Raw, err error, res result) error {
	a := &arguments{doc: want}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s; the error is %T: %[2]v", fmt.Sprintf(format, args...), err)
	}
	a.bool("isError")
	if client := a.bool("isClientError"); client != nil && *client == fromServer(err) {
		return fail("expected isClientError to be %v", *client)
	}
	if timeout := a.bool("isTimeoutError"); timeout != nil {
		var t *mongoerr.TimeoutError
		if errors.As(err, &t) != *timeout {
			return fail("expected isTimeoutError to be %v", *timeout)
		}
	}
	seen := err
	if client, ok := errors.AsType[*clientBulkError](err); ok {
		seen = client.Err // what concerns single writes has fields of its own
	}
	from := serverSide(seen)
	if s := a.string("errorContains"); s != "" && !messageContains(seen, s) {
		return fail("expected the message to contain %q", s)
	}
	if v := a.raw("errorCode"); !v.IsZero() {
		if n, _ := v.AsInt64(); !slices.Contains(from.codes, int32(n)) {
			return fail("expected error code %d", n)
		}
	}
	if s := a.string("errorCodeName"); s != "" {
		if ok, err := from.hasName(s); err != nil {
			return err
		} else if !ok {
			return fail("expected error code name %q, got %q", s, from.names)
		}
	}
	for v := range rawArray(a.raw("errorLabelsContain")) {
		if l, _ := v.StringValue(); !mongoerr.HasLabel(err, l) {
			return fail("expected the label %q", l)
		}
	}
	for v := range rawArray(a.raw("errorLabelsOmit")) {
		if l, _ := v.StringValue(); mongoerr.HasLabel(err, l) {
			return fail("the label %q was not expected", l)
		}
	}
	if v := a.raw("errorResponse"); !v.IsZero() {
		wrong := errors.New("there is none of the server")
		for _, reply := range from.replies {
			if wrong = match(v, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: reply}, true,
				r.entities); wrong == nil {
				break
			}
		}
		if wrong != nil {
			return fail("response: %v", wrong)
		}
	}
	if bulkErr := r.checkBulkErrors(a, err); bulkErr != nil {
		return fail("%v", bulkErr)
	}
	if v := a.raw("expectResult"); !v.IsZero() {
		if err := r.checkResult(v, res); err != nil {
			return fail("result beside the error: %v", err)
		}
	}
	return a.done()
}

// fromServer reports whether a server answered an error: what the format does not call a client
// error.
func fromServer(err error) bool { return len(serverSide(err).codes) > 0 }

// answers are what errors bring from servers. An error of a bulk write brings several.
type answers struct {
	codes   []int32
	names   []string // of those that have one
	unnamed []int32  // the codes of the others
	replies []bson.Raw
}

func (a *answers) add(code int32, name string, reply bson.Raw) {
	a.codes, a.replies = append(a.codes, code), append(a.replies, reply)
	if name != "" {
		a.names = append(a.names, name)
	} else {
		a.unnamed = append(a.unnamed, code)
	}
}

// serverSide returns what err, and all that it wraps, brings from servers.
func serverSide(err error) *answers {
	a := &answers{}
	chain(err, func(err error) {
		switch e := err.(type) {
		case *mongoerr.ServerError:
			a.add(e.Code, e.Name, e.Raw)
		case *mongoerr.WriteError:
			a.add(e.Code, "", e.Raw)
		case *mongoerr.WriteConcernError:
			a.add(e.Code, e.Name, e.Raw)
		}
	})
	return a
}

// chain calls f with an error and with all that it wraps.
func chain(err error, f func(error)) {
	if err == nil {
		return
	}
	f(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		chain(e.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			chain(inner, f)
		}
	}
}

// messageContains reports whether the message of err, or of an error that it wraps, contains a text
// in whatever case. An error of a bulk write prints only the first of those that it collects.
func messageContains(err error, s string) (found bool) {
	chain(err, func(err error) {
		found = found || strings.Contains(strings.ToLower(err.Error()), strings.ToLower(s))
	})
	return found
}

// hasName reports whether one of the answers has this code name, which servers do not send for a
// single write of a bulk. There it is told by the code.
func (a *answers) hasName(name string) (bool, error) {
	if slices.ContainsFunc(a.names, func(s string) bool { return strings.EqualFold(s, name) }) {
		return true, nil
	}
	if len(a.unnamed) == 0 {
		return false, nil
	}
	for known, code := range codesByName {
		if strings.EqualFold(known, name) {
			return slices.Contains(a.unnamed, code), nil
		}
	}
	return false, broken("the code of the error name %q is not known, and the server sent none of %d", name, a.unnamed)
}

// codesByName are the codes of errors that writes fail with (the server manual's page "Error
// Codes").
var codesByName = map[string]int32{
	"InternalError": 1, "BadValue": 2, "HostUnreachable": 6, "HostNotFound": 7, "UnknownError": 8, "FailedToParse": 9,
	"Unauthorized": 13,
	"TypeMismatch": 14, "AuthenticationFailed": 18, "IllegalOperation": 20, "NamespaceNotFound": 26,
	"IndexNotFound": 27, "PathNotViable": 28,
	"ConflictingUpdateOperators": 40, "CursorNotFound": 43, "NamespaceExists": 48, "MaxTimeMSExpired": 50,
	"DollarPrefixedFieldName": 52,
	"InvalidIdField":          53, "NotSingleValueField": 54, "EmptyFieldName": 56, "DottedFieldName": 57,
	"CommandNotFound":    59,
	"ShardKeyNotFound":   61,
	"WriteConcernFailed": 64, "MultipleErrorsOccurred": 65, "ImmutableField": 66, "InvalidOptions": 72,
	"InvalidNamespace":        73,
	"UnknownReplWriteConcern": 79, "NetworkTimeout": 89, "ShutdownInProgress": 91, "WriteConflict": 112,
	"CommandNotSupported":       115,
	"DocumentValidationFailure": 121, "NotAReplicaSet": 123, "ReadConcernMajorityNotAvailableYet": 134,
	"PrimarySteppedDown":        189,
	"UnsatisfiableWriteConcern": 100, "SnapshotTooOld": 239, "NoSuchTransaction": 251, "ExceededTimeLimit": 262,
	"SocketException":    9001,
	"NotWritablePrimary": 10107, "DuplicateKey": 11000, "Interrupted": 11601, "InterruptedAtShutdown": 11600,
	"InterruptedDueToReplStateChange": 11602, "NotPrimaryNoSecondaryOk": 13435, "NotPrimaryOrSecondary": 13436,
	"BSONObjectTooLarge": 10334,
}

// checkOutcome compares what collections hold.
func (r *runner) checkOutcome(ctx context.Context, outcome []Data) error {
	for _, d := range outcome {
		coll := allium.CollectionOf[bson.Raw](r.deployment.admin.Database(d.Database),
			d.Collection).With(allium.CollectionOptions{
			ReadConcern: &consistency.ReadConcern{Level: "local"}, ReadPreference: &consistency.ReadPreference{}})
		cur, err := coll.Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
		if err != nil {
			return err
		}
		got, err := cur.All(ctx)
		if err != nil {
			return err
		}
		if len(got) != len(d.Documents) {
			return fmt.Errorf("outcome: %s holds %v, expected %v", d.Collection, got, d.Documents)
		}
		for i := range got {
			if !bson.Equal(sorted(d.Documents[i]), sorted(got[i])) {
				return fmt.Errorf("outcome: %s, document %d is %v, expected %v", d.Collection, i, got[i],
					d.Documents[i])
			}
		}
	}
	return nil
}

// normalized returns a value with the keys of all documents in it in order.
func normalized(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		v.Value = sorted(v.Value)
	case bson.TypeArray:
		at, dst := bson.BeginDocument(nil)
		i := 0
		for el := range bson.Raw(v.Value).Values() {
			dst = append(bson.AppendIndexHeader(dst, el.Type, i), normalized(el).Value...)
			i++
		}
		v.Value = bson.EndDocument(dst, at)
	case bson.TypeCodeWithScope:
		code, scope, _ := v.CodeWithScope()
		if out, err := bson.MarshalValue(bson.CodeWithScope{Code: bson.JavaScript(code),
			Scope: sorted(scope)}); err == nil {
			v = out
		}
	}
	return v
}

// sorted returns a document with its keys in order, on all levels.
func sorted(doc bson.Raw) bson.Raw {
	type field struct {
		key   string
		value bson.RawValue
	}
	var fields []field
	for key, v := range doc.All() {
		fields = append(fields, field{key, normalized(v)})
	}
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.key, b.key) })
	at, dst := bson.BeginDocument(nil)
	for _, f := range fields {
		dst = append(bson.AppendHeader(dst, f.value.Type, f.key), f.value.Value...)
	}
	return bson.EndDocument(dst, at)
}
