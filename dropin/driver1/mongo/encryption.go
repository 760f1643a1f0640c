package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo/options"
	v2bson "go.mongodb.org/mongo-driver/v2/bson"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A ClientEncryption makes data keys, and encrypts and decrypts values.
type ClientEncryption struct{ inner *v2mongo.ClientEncryption }

// NewClientEncryption returns a ClientEncryption that keeps its data keys with a client.
func NewClientEncryption(keyVaultClient *Client, opts ...*options.ClientEncryptionOptions) (*ClientEncryption, error) {
	ce, err := v2mongo.NewClientEncryption(keyVaultClient.inner,
		with(opts, options.MergeClientEncryptionOptions, convert.ClientEncryption)...)
	if err != nil {
		return nil, failure(err)
	}
	return &ClientEncryption{ce}, nil
}

// AddKeyAltName gives a data key one more name, and returns it as it was before.
func (ce *ClientEncryption) AddKeyAltName(ctx context.Context, id primitive.Binary, keyAltName string) *SingleResult {
	return resultOf(ce.inner.AddKeyAltName(ctx, id, keyAltName))
}

// CreateEncryptedCollection makes a collection, with data keys for the fields that have none. It
// returns the document of encrypted fields with them.
func (ce *ClientEncryption) CreateEncryptedCollection(ctx context.Context, db *Database, coll string,
	createOpts *options.CreateCollectionOptions, kmsProvider string, masterKey any) (*Collection, bson.M, error) {
	var o v2options.Lister[v2options.CreateCollectionOptions]
	if createOpts != nil {
		o = convert.CreateCollection(createOpts)
	}
	c, fields, err := ce.inner.CreateEncryptedCollection(ctx, db.inner, coll, o, kmsProvider, masterKey)
	if err != nil {
		return nil, bson.M(fields), failure(err)
	}
	return &Collection{c, db}, bson.M(fields), nil
}

// CreateDataKey makes a data key, and returns its _id.
func (ce *ClientEncryption) CreateDataKey(ctx context.Context, kmsProvider string,
	opts ...*options.DataKeyOptions) (primitive.Binary, error) {
	id, err := ce.inner.CreateDataKey(ctx, kmsProvider, with(opts, options.MergeDataKeyOptions, convert.DataKey)...)
	return id, failure(err)
}

// Encrypt encrypts a value.
func (ce *ClientEncryption) Encrypt(ctx context.Context, val bson.RawValue,
	opts ...*options.EncryptOptions) (primitive.Binary, error) {
	b, err := ce.inner.Encrypt(ctx, v2bson.RawValue{Type: val.Type, Value: val.Value},
		with(opts, options.MergeEncryptOptions, convert.Encrypt)...)
	return b, failure(err)
}

// EncryptExpression encrypts the values of a match or an aggregate expression, and decodes it into
// result.
func (ce *ClientEncryption) EncryptExpression(ctx context.Context, expr any, result any,
	opts ...*options.EncryptOptions) error {
	return failure(ce.inner.EncryptExpression(ctx, expr, result,
		with(opts, options.MergeEncryptOptions, convert.Encrypt)...))
}

// Decrypt decrypts a value.
func (ce *ClientEncryption) Decrypt(ctx context.Context, val primitive.Binary) (bson.RawValue, error) {
	v, err := ce.inner.Decrypt(ctx, val)
	return bson.RawValue{Type: v.Type, Value: v.Value}, failure(err)
}

// Close disconnects the client of the data keys.
func (ce *ClientEncryption) Close(ctx context.Context) error { return failure(ce.inner.Close(ctx)) }

// DeleteKey deletes a data key.
func (ce *ClientEncryption) DeleteKey(ctx context.Context, id primitive.Binary) (*DeleteResult, error) {
	return deleteResult(ce.inner.DeleteKey(ctx, id))
}

// GetKeyByAltName returns the data key of a name.
func (ce *ClientEncryption) GetKeyByAltName(ctx context.Context, keyAltName string) *SingleResult {
	return resultOf(ce.inner.GetKeyByAltName(ctx, keyAltName))
}

// GetKey returns a data key.
func (ce *ClientEncryption) GetKey(ctx context.Context, id primitive.Binary) *SingleResult {
	return resultOf(ce.inner.GetKey(ctx, id))
}

// GetKeys returns all data keys.
func (ce *ClientEncryption) GetKeys(ctx context.Context) (*Cursor, error) {
	return newCursor(ce.inner.GetKeys(ctx))
}

// RemoveKeyAltName takes a name from a data key, and returns it as it was before.
func (ce *ClientEncryption) RemoveKeyAltName(ctx context.Context, id primitive.Binary,
	keyAltName string) *SingleResult {
	return resultOf(ce.inner.RemoveKeyAltName(ctx, id, keyAltName))
}

// RewrapManyDataKeyResult is the result of RewrapManyDataKey.
type RewrapManyDataKeyResult struct{ *BulkWriteResult }

// RewrapManyDataKey encrypts the data keys that match a filter with another master key.
func (ce *ClientEncryption) RewrapManyDataKey(ctx context.Context, filter any,
	opts ...*options.RewrapManyDataKeyOptions) (*RewrapManyDataKeyResult, error) {
	res, err := ce.inner.RewrapManyDataKey(ctx, filter,
		with(opts, options.MergeRewrapManyDataKeyOptions, convert.RewrapManyDataKey)...)
	if res == nil {
		return nil, failure(err)
	}
	return &RewrapManyDataKeyResult{bulkResult(res.BulkWriteResult)}, failure(err)
}
