package unified

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

func init() {
	register(map[string]operation[*clientEntity]{"clientBulkWrite": clientBulkWrite})
}

// clientBulkError is the error of a client's bulk write, of which the format expects other things
// than of a collection's.
type clientBulkError struct{ *mongoerr.BulkWriteError }

// Unwrap returns the driver's error.
func (e *clientBulkError) Unwrap() []error { return []error{e.BulkWriteError} }

func clientBulkWrite(ctx context.Context, _ *runner, c *clientEntity, a *arguments) (result, error) {
	var writes []allium.WriteModel
	a.writes("models", func(kind string, sub *arguments) {
		db, coll, _ := strings.Cut(sub.requiredString("namespace"), ".")
		writes = append(writes, sub.writeModel(allium.CollectionOf[bson.Raw](c.Database(db), coll), kind))
	})
	o := allium.ClientBulkWriteOptions{Unordered: a.unordered(), VerboseResults: a.isTrue("verboseResults"),
		WriteConcern: a.writeConcern("writeConcern"), BypassDocumentValidation: a.bool("bypassDocumentValidation"),
		Let: a.any("let"), Comment: a.any("comment"), RawData: a.is("rawData"), Timeout: a.timeout()}
	if err := a.done(); err != nil {
		return result{}, &brokenTest{err}
	}
	res, err := c.BulkWrite(ctx, writes, o)
	if err == nil {
		return value(clientBulkResult(&res))
	}
	if failed, ok := errors.AsType[*mongoerr.BulkWriteError](err); ok {
		err = &clientBulkError{failed}
	}
	if !res.Acknowledged { // nothing is known to have been done
		return result{}, err
	}
	return encode(clientBulkResult(&res), err)
}

// clientBulkResult renders a result as the format has it. Without verbose results the maps are left
// out.
func clientBulkResult(r *allium.BulkWriteResult) bson.D {
	if !r.Acknowledged {
		return bson.D{{Key: "acknowledged", Value: false}}
	}
	d := bson.D{
		{Key: "insertedCount", Value: r.InsertedCount}, {Key: "upsertedCount", Value: r.UpsertedCount},
		{Key: "matchedCount", Value: r.MatchedCount},
		{Key: "modifiedCount", Value: r.ModifiedCount}, {Key: "deletedCount", Value: r.DeletedCount},
	}
	if r.Updates == nil {
		return d
	}
	inserts, updates, deletes := bson.M{}, bson.M{}, bson.M{}
	for i, id := range r.InsertedIDs {
		inserts[strconv.Itoa(i)] = bson.D{{Key: "insertedId", Value: id}}
	}
	for i, v := range r.Updates {
		// The server's n, which the specification takes over, counts an upserted document.
		u := bson.D{{Key: "matchedCount", Value: v.MatchedCount + v.UpsertedCount},
			{Key: "modifiedCount", Value: v.ModifiedCount}}
		if v.UpsertedCount > 0 {
			u = append(u, bson.E{Key: "upsertedId", Value: v.UpsertedID})
		}
		updates[strconv.Itoa(i)] = u
	}
	for i, v := range r.Deletes {
		deletes[strconv.Itoa(i)] = bson.D{{Key: "deletedCount", Value: v.DeletedCount}}
	}
	return append(d, bson.E{Key: "insertResults", Value: inserts}, bson.E{Key: "updateResults", Value: updates},
		bson.E{Key: "deleteResults", Value: deletes})
}

// checkBulkErrors compares the write errors and write concern errors of a client's bulk write with
// those that are expected.
func (r *runner) checkBulkErrors(a *arguments, err error) error {
	writeErrors, concerns := a.document("writeErrors"), a.raw("writeConcernErrors")
	if writeErrors == nil && concerns.IsZero() {
		return nil
	}
	failed, ok := errors.AsType[*clientBulkError](err)
	if !ok {
		return errors.New("expected an error of a client's bulk write")
	}
	if writeErrors != nil {
		got := map[string]*mongoerr.WriteError{}
		for _, e := range failed.WriteErrors {
			got[strconv.Itoa(e.Index)] = e
		}
		for i, want := range writeErrors.All() {
			e := got[i]
			if e == nil {
				return fmt.Errorf("expected a write error with index %s", i)
			}
			delete(got, i)
			if err := r.matchError(want, e.Code, e.Message, e.Details); err != nil {
				return fmt.Errorf("write error %s: %w", i, err)
			}
		}
		for i := range got {
			return fmt.Errorf("a write error with index %s was not expected", i)
		}
	}
	if concerns.IsZero() {
		return nil
	}
	i := 0
	for want := range rawArray(concerns) {
		if i >= len(failed.WriteConcernErrors) {
			break
		}
		e := failed.WriteConcernErrors[i]
		if err := r.matchError(want, e.Code, e.Message, e.Details); err != nil {
			return fmt.Errorf("write concern error %d: %w", i, err)
		}
		i++
	}
	if n, _ := concerns.Array(); i != len(failed.WriteConcernErrors) || i != count(n) {
		return fmt.Errorf("%d write concern errors, expected %d", len(failed.WriteConcernErrors), count(n))
	}
	return nil
}

func count(arr bson.Raw) (n int) {
	for range arr.Values() {
		n++
	}
	return n
}

// matchError compares an error with the document that describes it.
func (r *runner) matchError(want bson.RawValue, code int32, message string, details bson.Raw) error {
	d := bson.D{{Key: "code", Value: code}, {Key: "message", Value: message}}
	if details != nil {
		d = append(d, bson.E{Key: "details", Value: details})
	}
	got, err := bson.MarshalValue(d)
	if err != nil {
		return err
	}
	return match(want, got, true, r.entities)
}
