package allium

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"allium/bson"
	"allium/internal/wire"
)

// ChangeType is the kind of change that an event reports. Servers may send kinds that have no
// constant here.
type ChangeType string

// The kinds of changes. Those from ChangeCreate on need WatchOptions.ShowExpandedEvents.
const (
	ChangeInsert       ChangeType = "insert"
	ChangeUpdate       ChangeType = "update"
	ChangeReplace      ChangeType = "replace"
	ChangeDelete       ChangeType = "delete"
	ChangeDrop         ChangeType = "drop"
	ChangeRename       ChangeType = "rename"
	ChangeDropDatabase ChangeType = "dropDatabase"
	// ChangeInvalidate is the last event of a stream: what it watches has been dropped or renamed.
	ChangeInvalidate ChangeType = "invalidate"

	ChangeCreate                   ChangeType = "create"
	ChangeModify                   ChangeType = "modify"
	ChangeCreateIndexes            ChangeType = "createIndexes"
	ChangeDropIndexes              ChangeType = "dropIndexes"
	ChangeShardCollection          ChangeType = "shardCollection"
	ChangeReshardCollection        ChangeType = "reshardCollection"
	ChangeRefineCollectionShardKey ChangeType = "refineCollectionShardKey"
)

// ChangeEvent is an event of a change stream. Which fields are set depends on OperationType, on the
// options of Watch and on the server's version; a pipeline may change any of them. Raw holds the
// whole event as the server sent it.
//
// An event can be stored, in a collection or as Extended JSON, and read back: it is encoded as the
// server sends it.
type ChangeEvent[T any] struct {
	// ID is the event's resume token.
	ID            bson.Raw
	OperationType ChangeType
	// Namespace is the collection that was changed, To the new name after a rename.
	Namespace Namespace
	To        *Namespace
	// NamespaceType is what a create event created: "collection", "timeseries" or "view".
	NamespaceType string
	// DocumentKey holds the document's _id, and its shard key in a sharded collection.
	DocumentKey bson.Raw
	// UpdateDescription says what an update changed.
	UpdateDescription *UpdateDescription
	// FullDocument is the document that was inserted, or that replaced another one; for an update
	// see WatchOptions.FullDocument. It is nil if there is none, for example because the document
	// has since been deleted.
	FullDocument *T
	// FullDocumentBeforeChange is the document before the change: see
	// WatchOptions.FullDocumentBeforeChange.
	FullDocumentBeforeChange *T
	// OperationDescription describes an expanded event.
	OperationDescription bson.Raw
	// CollectionUUID identifies the collection, with expanded events.
	CollectionUUID *bson.UUID
	// ClusterTime is the logical time of the change, WallTime the time of the server's clock.
	ClusterTime bson.Timestamp
	WallTime    time.Time
	// LSID and TxnNumber name the transaction that the change was part of.
	LSID      bson.Raw
	TxnNumber *int64
	// SplitEvent is set if a $changeStreamSplitLargeEvent stage in the caller's pipeline has split
	// the event, and says which fragment this is.
	SplitEvent *SplitEvent
	// Raw is the whole event.
	Raw bson.Raw
}

// Namespace names a collection, or a database if Collection is empty.
type Namespace struct {
	DB         string `bson:"db"`
	Collection string `bson:"coll,omitempty"`
}

// String returns "db.collection".
func (n Namespace) String() string {
	if n.Collection == "" {
		return n.DB
	}
	return n.DB + "." + n.Collection
}

// UpdateDescription says what an update changed.
type UpdateDescription struct {
	// UpdatedFields holds the new values of fields, by their dotted paths.
	UpdatedFields bson.Raw `bson:"updatedFields"`
	// RemovedFields are the paths of fields that were removed.
	RemovedFields []string `bson:"removedFields"`
	// TruncatedArrays are the arrays that were shortened. The server may report the change in
	// UpdatedFields instead.
	TruncatedArrays []TruncatedArray `bson:"truncatedArrays,omitempty"`
	// DisambiguatedPaths holds the components of each ambiguous path: names as strings, array
	// indexes as 32-bit integers. It is set with expanded events only.
	DisambiguatedPaths bson.Raw `bson:"disambiguatedPaths,omitempty"`
}

// TruncatedArray is an array that an update shortened.
type TruncatedArray struct {
	Field   string `bson:"field"`   // its dotted path
	NewSize int    `bson:"newSize"` // how many elements are left
}

// SplitEvent says which fragment of an event this is, from 1.
type SplitEvent struct {
	Fragment int `bson:"fragment"`
	Of       int `bson:"of"`
}

// decode reads an event, whose memory it keeps. A field that has another type than the server gives
// it is left out: a pipeline has changed it, and it is in Raw. A document that does not decode as T
// is the error, beside which all other fields are set.
func (e *ChangeEvent[T]) decode(o *bson.Options, raw bson.Raw) (err error) {
	e.Raw = raw
	if err := wire.CheckDocument(raw, 3); err != nil {
		e.ID, _ = raw.Lookup("_id").Document()
		return err
	}
	image := func(key string, v bson.RawValue) *T {
		doc, failed := decodeImage[T](o, v)
		if failed == nil {
			return doc
		}
		if err == nil {
			err = fmt.Errorf("%s: %w", key, failed)
		}
		return nil
	}
	for key, v := range raw.All() {
		switch key {
		case "_id":
			e.ID, _ = v.Document()
		case "operationType":
			s, _ := v.StringValue()
			e.OperationType = ChangeType(s)
		case "ns":
			e.Namespace = namespace(v)
		case "to":
			if _, ok := v.Document(); ok {
				e.To = new(namespace(v))
			}
		case "nsType":
			e.NamespaceType, _ = v.StringValue()
		case "documentKey":
			e.DocumentKey, _ = v.Document()
		case "updateDescription":
			if d, ok := v.Document(); ok {
				e.UpdateDescription = updateDescription(d)
			}
		case "fullDocument":
			e.FullDocument = image("fullDocument", v)
		case "fullDocumentBeforeChange":
			e.FullDocumentBeforeChange = image("fullDocumentBeforeChange", v)
		case "operationDescription":
			e.OperationDescription, _ = v.Document()
		case "collectionUUID":
			if b, ok := v.Binary(); ok && b.Subtype == bson.BinaryUUID && len(b.Data) == len(bson.UUID{}) {
				e.CollectionUUID = new(bson.UUID(b.Data))
			}
		case "clusterTime":
			e.ClusterTime, _ = v.Timestamp()
		case "wallTime":
			if t, ok := v.DateTime(); ok {
				e.WallTime = t.Time()
			}
		case "lsid":
			e.LSID, _ = v.Document()
		case "txnNumber":
			if n, ok := v.AsInt64(); ok {
				e.TxnNumber = &n
			}
		case "splitEvent":
			if d, ok := v.Document(); ok {
				n, _ := d.Lookup("fragment").AsInt64()
				of, _ := d.Lookup("of").AsInt64()
				e.SplitEvent = &SplitEvent{Fragment: int(n), Of: int(of)}
			}
		}
	}
	return err
}

// decodeImage decodes a document of an event, nil if it is null.
func decodeImage[T any](o *bson.Options, v bson.RawValue) (*T, error) {
	d, ok := v.Document()
	if !ok {
		return nil, nil
	}
	doc := new(T)
	return doc, decode(o, d, doc)
}

func namespace(v bson.RawValue) (n Namespace) {
	d, _ := v.Document()
	n.DB, _ = d.Lookup("db").StringValue()
	n.Collection, _ = d.Lookup("coll").StringValue()
	return n
}

func updateDescription(d bson.Raw) *UpdateDescription {
	u := &UpdateDescription{}
	u.UpdatedFields, _ = d.Lookup("updatedFields").Document()
	removed, _ := d.Lookup("removedFields").Array()
	for v := range removed.Values() {
		if s, ok := v.StringValue(); ok {
			u.RemovedFields = append(u.RemovedFields, s)
		}
	}
	truncated, _ := d.Lookup("truncatedArrays").Array()
	for v := range truncated.Values() {
		a, _ := v.Document()
		field, _ := a.Lookup("field").StringValue()
		size, _ := a.Lookup("newSize").AsInt64()
		u.TruncatedArrays = append(u.TruncatedArrays, TruncatedArray{Field: field, NewSize: int(size)})
	}
	u.DisambiguatedPaths, _ = d.Lookup("disambiguatedPaths").Document()
	return u
}

// eventKeys are the fields of an event that ChangeEvent has, in the server's order.
var eventKeys = []string{"_id", "operationType", "clusterTime", "wallTime", "lsid", "txnNumber", "collectionUUID",
	"nsType", "fullDocument", "ns", "to",
	"documentKey", "updateDescription", "fullDocumentBeforeChange", "operationDescription", "splitEvent"}

// MarshalBSON encodes the event as a server sends it, so that it can be stored, and read back as a
// ChangeEvent. Its fields count, and may have been changed; what is in Raw alone, such as fields
// that a pipeline has added, is kept. Documents are encoded from FullDocument and
// FullDocumentBeforeChange with the defaults of package bson: what T has no field for is left out.
func (e ChangeEvent[T]) MarshalBSON() ([]byte, error) {
	now := ChangeEvent[bson.Raw]{ID: e.ID, OperationType: e.OperationType, Namespace: e.Namespace, To: e.To,
		NamespaceType: e.NamespaceType,
		DocumentKey:   e.DocumentKey, UpdateDescription: e.UpdateDescription,
		OperationDescription: e.OperationDescription,
		CollectionUUID:       e.CollectionUUID, ClusterTime: e.ClusterTime, WallTime: e.WallTime, LSID: e.LSID,
		TxnNumber: e.TxnNumber, SplitEvent: e.SplitEvent}
	for _, image := range []struct {
		from *T
		to   **bson.Raw
		key  string
	}{{e.FullDocument, &now.FullDocument, "fullDocument"},
		{e.FullDocumentBeforeChange, &now.FullDocumentBeforeChange, "fullDocumentBeforeChange"}} {
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
