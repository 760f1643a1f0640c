// Package encryption encrypts fields before they leave the program and decrypts them when they come back (in-use encryption:
// Client-Side Field Level Encryption and Queryable Encryption). The server, its backups and its administrators see ciphertext
// only. It is pure Go: there is no library and no process beside the program.
//
// Fields are encrypted with data keys. A data key lies in a collection, the key vault, wrapped by a master key, which a key
// service guards; see package encryption/kms. A Client makes and manages data keys, and encrypts and decrypts single values:
//
//	keys, err := encryption.New(encryption.Options{
//		KeyVaultClient: client,
//		KeyVault:       "encryption.keys",
//		KMS:            kms.Providers{"local": kms.Local{Key: masterKey}},
//	})
//	id, err := keys.CreateDataKey(ctx, "local")
//	ssn, err := keys.Encrypt(ctx, "457-55-5462", encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id})
//
// What it does not promise: it was written from the public specification and compared with other implementations, but has not
// been audited. AES runs in constant time on processors with instructions for it. Data keys are overwritten when they are not
// kept any more, as far as Go's garbage collector allows.
package encryption
