package unified

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"allium"
	"allium/bson"
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
		var t *allium.TimeoutError
		if errors.As(err, &t) != *timeout {
			return fail("expected isTimeoutError to be %v", *timeout)
		}
	}
	if s := a.string("errorContains"); s != "" && !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(s)) {
		return fail("expected the message to contain %q", s)
	}
	seen := err
	var client *allium.ClientBulkWriteError
	if errors.As(err, &client) {
		seen = client.Err // what concerns single writes has fields of its own
	}
	codes, name, replies := serverSide(seen)
	if v := a.raw("errorCode"); !v.IsZero() {
		if n, _ := v.AsInt64(); !slices.Contains(codes, int32(n)) {
			return fail("expected error code %d", n)
		}
	}
	if s := a.string("errorCodeName"); s != "" && !strings.EqualFold(s, name) {
		return fail("expected error code name %q, got %q", s, name)
	}
	for v := range rawArray(a.raw("errorLabelsContain")) {
		if l, _ := v.StringValue(); !allium.HasErrorLabel(err, l) {
			return fail("expected the label %q", l)
		}
	}
	for v := range rawArray(a.raw("errorLabelsOmit")) {
		if l, _ := v.StringValue(); allium.HasErrorLabel(err, l) {
			return fail("the label %q was not expected", l)
		}
	}
	if v := a.raw("errorResponse"); !v.IsZero() {
		if len(replies) == 0 {
			return fail("expected a response of the server")
		}
		if err := match(v, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: replies[0]}, true, r.entities); err != nil {
			return fail("response: %v", err)
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

// fromServer reports whether a server answered an error, or the network failed: what the format does not call a client error.
func fromServer(err error) bool {
	codes, _, _ := serverSide(err)
	return len(codes) > 0
}

// serverSide returns the codes and the name that an error brings from the server, and the replies.
func serverSide(err error) (codes []int32, name string, replies []bson.Raw) {
	var (
		s  *allium.ServerError
		w  *allium.WriteError
		wc *allium.WriteConcernError
		b  *allium.BulkWriteError
	)
	if errors.As(err, &b) {
		for _, e := range b.WriteErrors {
			codes = append(codes, e.Code)
		}
		for _, e := range b.WriteConcernErrors {
			codes = append(codes, e.Code)
		}
	}
	if errors.As(err, &s) {
		codes, name, replies = append(codes, s.Code), s.Name, append(replies, s.Raw)
	}
	if errors.As(err, &w) {
		codes, replies = append(codes, w.Code), append(replies, w.Raw)
	}
	if errors.As(err, &wc) {
		codes, name, replies = append(codes, wc.Code), wc.Name, append(replies, wc.Raw)
	}
	return codes, name, replies
}

// checkOutcome compares what collections hold.
func (r *runner) checkOutcome(ctx context.Context, outcome []Data) error {
	for _, d := range outcome {
		coll := allium.CollectionOf[bson.Raw](r.deployment.admin.Database(d.Database), d.Collection).With(allium.CollectionOptions{
			ReadConcern: &allium.ReadConcern{Level: "local"}, ReadPreference: &allium.ReadPreference{}})
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
				return fmt.Errorf("outcome: %s, document %d is %v, expected %v", d.Collection, i, got[i], d.Documents[i])
			}
		}
	}
	return nil
}

// sorted returns a document with its keys in order, on all levels.
func sorted(doc bson.Raw) bson.Raw {
	type field struct {
		key   string
		value bson.RawValue
	}
	var fields []field
	for key, v := range doc.All() {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v.Value = sorted(v.Value)
		case bson.TypeArray:
			at, dst := bson.BeginDocument(nil)
			i := 0
			for el := range bson.Raw(v.Value).Values() {
				if d, ok := el.Document(); ok {
					el.Value = sorted(d)
				}
				dst = append(bson.AppendIndexHeader(dst, el.Type, i), el.Value...)
				i++
			}
			v.Value = bson.EndDocument(dst, at)
		}
		fields = append(fields, field{key, v})
	}
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.key, b.key) })
	at, dst := bson.BeginDocument(nil)
	for _, f := range fields {
		dst = append(bson.AppendHeader(dst, f.value.Type, f.key), f.value.Value...)
	}
	return bson.EndDocument(dst, at)
}
