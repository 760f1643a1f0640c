package options

import "go.mongodb.org/mongo-driver/v2/bson"

// The builders that have something set from the beginning.

// GridFSBucket returns a builder of the settings of a GridFS bucket, with the default name and
// chunks.
func GridFSBucket() *BucketOptionsBuilder {
	return new(BucketOptionsBuilder).SetName(DefaultName).SetChunkSizeBytes(DefaultChunkSize)
}

// GridFSUpload returns a builder of the settings of a file that is stored, with a registry.
func GridFSUpload() *GridFSUploadOptionsBuilder {
	return new(GridFSUploadOptionsBuilder).SetRegistry(bson.NewRegistry())
}

// BulkWrite returns a builder of the settings of a bulk write to a collection, which ends at its
// first error.
func BulkWrite() *BulkWriteOptionsBuilder {
	return new(BulkWriteOptionsBuilder).SetOrdered(DefaultOrdered)
}

// ClientBulkWrite returns a builder of the settings of a bulk write to several collections, which
// ends at its first error.
func ClientBulkWrite() *ClientBulkWriteOptionsBuilder {
	return new(ClientBulkWriteOptionsBuilder).SetOrdered(DefaultOrdered)
}

// InsertMany returns a builder of the settings of the insertion of documents, which ends at its
// first error.
func InsertMany() *InsertManyOptionsBuilder {
	return new(InsertManyOptionsBuilder).SetOrdered(DefaultOrdered)
}

// ClientEncryption returns a builder of the settings of explicit encryption.
func ClientEncryption() *ClientEncryptionOptionsBuilder {
	return &ClientEncryptionOptionsBuilder{Opts: []func(*ClientEncryptionOptions) error{
		func(o *ClientEncryptionOptions) error {
			o.HTTPClient = defaultHTTPClient
			return nil
		},
	}}
}
