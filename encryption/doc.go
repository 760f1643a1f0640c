// Package encryption encrypts fields before they leave the program and decrypts them in replies
// (in-use encryption: Client-Side Field Level Encryption and Queryable Encryption). The server, its
// backups and its administrators see ciphertext only. The package is pure Go: it needs no C library
// and no other process.
//
// Fields are encrypted with data keys. A data key is stored in a collection, the key vault, wrapped
// by a master key, which a key service holds; see package encryption/kms. A Client creates and
// manages data keys, and encrypts and decrypts single values:
//
//	keys, err := encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{
//		KeyVaultClient: client,
//		KeyVault:       "encryption.keys",
//		KMS:            kms.Providers{"local": kms.Local{Key: masterKey}},
//	}})
//	id, err := keys.CreateDataKey(ctx, "local")
//	ssn, err := keys.Encrypt(ctx, "457-55-5462", encryption.EncryptOptions{
//		Algorithm: encryption.Deterministic,
//		KeyID:     &id,
//	})
//
// The package was written from the public specification and compared with other implementations. It
// has not been audited. AES runs in constant time on processors with instructions for it. Data keys
// in memory are overwritten after use, as far as Go's garbage collector allows.
package encryption
