package allium

import (
	"context"
	"log/slog"

	"allium/bson"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/uri"
)

// Encryption encrypts fields of a client's commands and decrypts replies
// (ClientOptions.Encryption). Package encryption provides the implementation.
type Encryption interface {
	// Attach is called by Open, once for each client.
	Attach(to EncryptionTarget) (CommandCipher, error)
}

// EncryptionTarget is the client that an Encryption works for.
type EncryptionTarget struct {
	// Client is the client. It cannot be used before Attach returns, and it encrypts its commands.
	Client *Client
	// Plain returns a client of the same deployment with the same settings but without encryption,
	// for the Encryption's own operations. It is closed with Client.
	Plain func() (*Client, error)
	// Unbounded says that the client's pool has no maximum size, so that it can be used within its
	// own operations.
	Unbounded bool
	// Logger is the client's (ClientOptions.Logger), or nil.
	Logger *slog.Logger
}

// CommandCipher encrypts commands and decrypts replies. It must be safe for concurrent use.
type CommandCipher interface {
	// Encrypt returns the encrypted form of cmd, a command for the database db: cmd itself if
	// nothing in it is to be encrypted. cmd holds the command's own fields without those common to
	// all commands, such as $db and lsid.
	Encrypt(ctx context.Context, db string, cmd bson.Raw) (bson.Raw, error)
	// Decrypt returns reply with its encrypted values decrypted: reply itself if it has none. It
	// must not retain reply.
	Decrypt(ctx context.Context, reply bson.Raw) (bson.Raw, error)
	// EncryptedFields returns the encryptedFields (Queryable Encryption) that the program has
	// configured for a collection, nil for none.
	EncryptedFields(ctx context.Context, db, collection string) (bson.Raw, error)
	// Close releases resources when the client is closed.
	Close() error
}

// attach has o.Encryption encrypt what c sends.
func (c *Client) attach(connectionString string, cfg *uri.Config, o *ClientOptions) error {
	unbounded := or(cfg.MaxPoolSize, 1) == 0
	plain := func() (*Client, error) {
		if c.plain != nil {
			return c.plain, nil
		}
		if unbounded {
			// Operations within operations cannot wait for each other's connections if there is no
			// bound on them (specification: Client Side Encryption, "keyVaultClient,
			// metadataClient, and the internal MongoClient").
			config := c.exec.Config
			config.Cipher = nil
			x := exec.New(config)
			c.plain = &Client{defaults: c.defaults, topology: c.topology, exec: x, cursors: cursor.NewRegistry(x), log: c.log, metadata: c.metadata, revocation: c.revocation}
			c.plain.defaults.client = c.plain
			return c.plain, nil
		}
		without := *o
		without.Encryption, without.MinPoolSize = nil, new(int)
		var err error
		if c.plain, err = Open(connectionString, without); err == nil {
			c.internal = c.plain
		}
		return c.plain, err
	}
	cipher, err := o.Encryption.Attach(EncryptionTarget{Client: c, Plain: plain, Unbounded: unbounded, Logger: o.Logger})
	if err != nil {
		c.closeEncryption(context.Background())
		return err
	}
	c.cipher, c.exec.Cipher = cipher, cipher
	return nil
}

// closeEncryption closes what attach has opened.
func (c *Client) closeEncryption(ctx context.Context) error {
	var err error
	if c.cipher != nil {
		err = c.cipher.Close()
	}
	if c.internal != nil {
		if err2 := c.internal.Close(ctx); err == nil {
			err = err2
		}
	}
	return err
}
