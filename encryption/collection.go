package encryption

import (
	"context"
	"errors"
	"fmt"

	"allium"
	"allium/bson"
	"allium/encryption/kms"
	"allium/internal/failure"
)

// CollectionOptions are the options of CreateEncryptedCollection.
type CollectionOptions struct {
	// Provider is the key service that wraps the new data keys, and MasterKey its key, as
	// for CreateDataKey.
	Provider  string
	MasterKey kms.MasterKey
	// Create has the options of the collection. EncryptedFields is required.
	Create allium.CreateCollectionOptions
}

// CreateEncryptedCollection creates a collection with Queryable Encryption, and a data key
// for every field whose keyId is null. It returns the encryptedFields with the ids of
// these keys; with an error, too, so that the data keys that were made are known.
//
// Clients that are already open do not notice the new collection: open one with Auto and the
// returned encryptedFields in AutoOptions.EncryptedFields.
func (c *Client) CreateEncryptedCollection(ctx context.Context, db *allium.Database, name string,
	o CollectionOptions) (bson.Raw, error) {
	if o.Create.EncryptedFields == nil {
		return nil, errors.New("create encrypted collection: EncryptedFields is nil")
	}
	given, err := c.bson.Marshal(o.Create.EncryptedFields)
	if err != nil {
		return nil, fmt.Errorf("create encrypted collection: EncryptedFields: %w", failure.Encoding(ctx, err))
	}
	fields, err := c.makeKeys(ctx, given, &o)
	if err != nil {
		return fields, fmt.Errorf("create encrypted collection: %w", err)
	}
	o.Create.EncryptedFields = fields
	if err := db.CreateCollection(ctx, name, o.Create); err != nil {
		return fields, fmt.Errorf("create encrypted collection: %w", err)
	}
	return fields, nil
}

// makeKeys returns encryptedFields with a new data key for every keyId that is null
// (specification: Client Side Encryption, "Create Encrypted Collection Helper"). With an
// error, the rest is as given.
func (c *Client) makeKeys(ctx context.Context, given bson.Raw, o *CollectionOptions) (bson.Raw, error) {
	var failed error
	start, dst := bson.BeginDocument(nil)
	for key, v := range given.All() {
		list, ok := v.Array()
		if key != "fields" || !ok {
			dst = bson.AppendRawValue(dst, key, v)
			continue
		}
		var array int
		array, dst = bson.BeginArrayElement(dst, key)
		i := 0
		for v := range list.Values() {
			field, ok := v.Document()
			if !ok || field.Lookup("keyId").Type != bson.TypeNull || failed != nil {
				dst = append(bson.AppendIndexHeader(dst, v.Type, i), v.Value...)
				i++
				continue
			}
			var id bson.UUID
			id, failed = c.createDataKey(ctx, o.Provider, []DataKeyOptions{{MasterKey: o.MasterKey}})
			var inner int
			inner, dst = bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
			for key, v := range field.All() {
				if key == "keyId" && id != (bson.UUID{}) {
					dst = bson.AppendBinary(dst, key, bson.BinaryUUID, id[:])
				} else {
					dst = bson.AppendRawValue(dst, key, v)
				}
			}
			dst = bson.EndDocument(dst, inner)
			i++
		}
		dst = bson.EndDocument(dst, array)
	}
	return bson.EndDocument(dst, start), failed
}
