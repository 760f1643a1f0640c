package allium

import (
	"bytes"
	"fmt"
	"reflect"

	"allium/bson"
)

// eventKeys are the fields of an event that ChangeEvent has, in the server's order.
var eventKeys = []string{"_id", "operationType", "clusterTime", "wallTime", "lsid", "txnNumber", "collectionUUID", "nsType", "fullDocument", "ns", "to",
	"documentKey", "updateDescription", "fullDocumentBeforeChange", "operationDescription", "splitEvent"}

// MarshalBSON encodes the event as a server sends it, so that it can be stored, and read back as a
// ChangeEvent. Its fields count, and may have been changed; what is in Raw alone, such as fields
// that a pipeline has added, is kept. Documents are encoded from FullDocument and
// FullDocumentBeforeChange with the defaults of package bson: what T has no field for is left out.
func (e ChangeEvent[T]) MarshalBSON() ([]byte, error) {
	now := ChangeEvent[bson.Raw]{ID: e.ID, OperationType: e.OperationType, Namespace: e.Namespace, To: e.To, NamespaceType: e.NamespaceType,
		DocumentKey: e.DocumentKey, UpdateDescription: e.UpdateDescription, OperationDescription: e.OperationDescription,
		CollectionUUID: e.CollectionUUID, ClusterTime: e.ClusterTime, WallTime: e.WallTime, LSID: e.LSID, TxnNumber: e.TxnNumber, SplitEvent: e.SplitEvent}
	for _, image := range []struct {
		from *T
		to   **bson.Raw
		key  string
	}{{e.FullDocument, &now.FullDocument, "fullDocument"}, {e.FullDocumentBeforeChange, &now.FullDocumentBeforeChange, "fullDocumentBeforeChange"}} {
		if image.from == nil {
			continue
		}
		doc, err := bson.Marshal(image.from)
		if err != nil {
			return nil, fmt.Errorf("encode %s of a change event: %w", image.key, err)
		}
		*image.to = new(bson.Raw(doc))
	}
	var sent ChangeEvent[bson.Raw] // what the server sent, as far as it is understood
	if e.Raw != nil {
		if err := sent.decode(nil, e.Raw); err != nil {
			return nil, err
		}
	}
	start, dst := bson.BeginDocument(nil)
	done := map[string]bool{}
	for key, v := range e.Raw.All() {
		if value := eventValue(&now, key); reflect.DeepEqual(value, eventValue(&sent, key)) {
			dst = bson.AppendRawValue(dst, key, v)
		} else if value != nil {
			var err error
			if dst, err = bson.AppendValue(dst, key, value); err != nil {
				return nil, err
			}
		}
		done[key] = true
	}
	for _, key := range eventKeys {
		if value := eventValue(&now, key); value != nil && !done[key] {
			var err error
			if dst, err = bson.AppendValue(dst, key, value); err != nil {
				return nil, err
			}
		}
	}
	return bson.EndDocument(dst, start), nil
}

// UnmarshalBSON decodes an event as a change stream does, with the defaults of package bson.
func (e *ChangeEvent[T]) UnmarshalBSON(data []byte) error {
	*e = ChangeEvent[T]{}
	return e.decode(nil, bytes.Clone(data))
}

// eventValue returns what an event has under a key, nil if nothing. For a key that ChangeEvent does
// not have it is nil, too.
func eventValue(e *ChangeEvent[bson.Raw], key string) any {
	raw := func(v bson.Raw) any {
		if v == nil {
			return nil
		}
		return v
	}
	switch key {
	case "_id":
		return raw(e.ID)
	case "operationType":
		if e.OperationType != "" {
			return string(e.OperationType)
		}
	case "clusterTime":
		if e.ClusterTime != (bson.Timestamp{}) {
			return e.ClusterTime
		}
	case "wallTime":
		if !e.WallTime.IsZero() {
			return bson.NewDateTime(e.WallTime)
		}
	case "lsid":
		return raw(e.LSID)
	case "txnNumber":
		if e.TxnNumber != nil {
			return *e.TxnNumber
		}
	case "collectionUUID":
		if e.CollectionUUID != nil {
			return bson.Binary{Subtype: bson.BinaryUUID, Data: e.CollectionUUID[:]}
		}
	case "nsType":
		if e.NamespaceType != "" {
			return e.NamespaceType
		}
	case "ns":
		if e.Namespace != (Namespace{}) {
			return e.Namespace
		}
	case "to":
		if e.To != nil {
			return *e.To
		}
	case "documentKey":
		return raw(e.DocumentKey)
	case "updateDescription":
		if e.UpdateDescription != nil {
			return *e.UpdateDescription
		}
	case "fullDocument":
		if e.FullDocument != nil {
			return *e.FullDocument
		}
	case "fullDocumentBeforeChange":
		if e.FullDocumentBeforeChange != nil {
			return *e.FullDocumentBeforeChange
		}
	case "operationDescription":
		return raw(e.OperationDescription)
	case "splitEvent":
		if e.SplitEvent != nil {
			return *e.SplitEvent
		}
	}
	return nil
}
