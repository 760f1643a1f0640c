package unified

import (
	"strconv"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

// result is what an operation returned, as BSON. roots says that it is an array of root-level
// documents. entity is set instead of value when the operation made something, such as a cursor,
// that only saveResultAsEntity has a use for.
type result struct {
	value  bson.RawValue
	roots  bool
	entity any
}

// entity makes the result of an operation that makes something. What is a closer is closed at the
// end of the test.
func entity(e any, err error) (result, error) {
	if err != nil {
		return result{}, err
	}
	return result{entity: e}, nil
}

// value encodes what an operation returned.
func value(v any) (result, error) {
	raw, err := bson.MarshalValue(v)
	return result{value: raw}, err
}

// docs makes the result of an operation that returns an iterable of documents.
func docs[T any](all []T, err error) (result, error) {
	if err != nil {
		return result{}, err
	}
	v, err := bson.MarshalValue(all)
	return result{value: v, roots: true}, err
}

// doc makes the result of an operation that returns a document or none.
func doc(raw bson.Raw, err error) (result, error) {
	if err == mongoerr.ErrNoDocuments {
		return result{value: bson.RawValue{Type: bson.TypeNull}}, nil
	}
	return result{value: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}}, err
}

// byIndex makes a document of values by index, as the results of bulk writes have it.
func byIndex(m map[int]any) bson.M {
	d := bson.M{}
	for i, v := range m {
		d[strconv.Itoa(i)] = v
	}
	return d
}

func updateResult(u allium.UpdateResult) bson.D {
	if !u.Acknowledged {
		return bson.D{{Key: "acknowledged", Value: false}}
	}
	d := bson.D{{Key: "matchedCount", Value: u.MatchedCount}, {Key: "modifiedCount", Value: u.ModifiedCount},
		{Key: "upsertedCount", Value: u.UpsertedCount}}
	if u.UpsertedCount > 0 {
		d = append(d, bson.E{Key: "upsertedId", Value: u.UpsertedID})
	}
	return d
}

func bulkResult(b allium.BulkWriteResult) bson.D {
	if !b.Acknowledged {
		return bson.D{{Key: "acknowledged", Value: false}}
	}
	return bson.D{
		{Key: "insertedCount", Value: b.InsertedCount}, {Key: "matchedCount", Value: b.MatchedCount},
		{Key: "modifiedCount", Value: b.ModifiedCount},
		{Key: "deletedCount", Value: b.DeletedCount}, {Key: "upsertedCount", Value: b.UpsertedCount},
		{Key: "insertedIds", Value: byIndex(b.InsertedIDs)}, {Key: "upsertedIds", Value: byIndex(b.UpsertedIDs)},
	}
}
