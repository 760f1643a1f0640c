package allium

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/errcode"
	"allium/internal/exec"
	"allium/internal/uri"
	"allium/mongoerr"
)

// Encryption encrypts fields of a client's commands and decrypts replies
// (ClientOptions.Encryption). Package encryption provides the implementation, and no program has
// one of its own: methods may be added.
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

// CommandCipher encrypts commands and decrypts replies. It must be safe for concurrent use. As with
// Encryption, methods may be added.
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
			c.plain = &Client{defaults: c.defaults, topology: c.topology, exec: x, cursors: cursor.NewRegistry(x),
				log: c.log, metadata: c.metadata, revocation: c.revocation}
			c.plain.defaults.client = c.plain
			return c.plain, nil
		}
		without := *o
		without.Encryption, without.MinPoolSize, without.Warm = nil, new(int), new(int)
		var err error
		if c.plain, err = Open(connectionString, without); err == nil {
			c.internal = c.plain
		}
		return c.plain, err
	}
	cipher, err := o.Encryption.Attach(EncryptionTarget{Client: c, Plain: plain, Unbounded: unbounded,
		Logger: o.Logger})
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

// steps are the commands on one database of which one operation consists. They share its time.
type steps struct {
	db      *Database
	command string // that of the operation
	name    string // of its collection
	limit   *exec.Limit
}

// op makes the next command's operation. timeout counts for the first.
func (s *steps) op(ctx context.Context, cmd command.Command, timeout *time.Duration) (exec.Op, error) {
	if s.limit != nil {
		timeout = nil
	}
	op, err := s.db.op(ctx, cmd, timeout)
	if err != nil {
		return op, s.failed(ctx, err)
	}
	if s.limit == nil {
		limit := op.Limit
		s.limit = &limit
	}
	op.Limit = *s.limit
	return op, nil
}

// failed says which operation an error is about that is found before a command is made.
func (s *steps) failed(ctx context.Context, err error) error {
	return s.db.failed(ctx, s.command, s.name, err)
}

// run runs the next command.
func (s *steps) run(ctx context.Context, cmd command.Command, timeout *time.Duration) error {
	op, err := s.op(ctx, cmd, timeout)
	if err != nil {
		return err
	}
	res, err := s.db.run(ctx, &op)
	if err != nil {
		return err
	}
	res.Release()
	return nil
}

// encryptedFields returns those that the caller gives or the client has for a collection, nil for
// none.
func (s *steps) encryptedFields(ctx context.Context, given any) (bson.Raw, error) {
	if given != nil {
		var o bson.Options
		if s.db.bson != nil {
			o = *s.db.bson
		}
		fields, err := o.Marshal(given)
		if err != nil {
			return nil, s.failed(ctx, fmt.Errorf("EncryptedFields: %w", err))
		}
		return fields, nil
	}
	if s.db.client.cipher == nil || s.db.err != nil {
		return nil, nil
	}
	fields, err := s.db.client.cipher.EncryptedFields(ctx, s.db.db, s.name)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	return fields, nil
}

// stateCollections returns the names of the collections that the server needs beside an encrypted
// one.
func stateCollections(name string, fields bson.Raw) []string {
	names := make([]string, 0, 2)
	for _, kind := range []string{"esc", "ecoc"} {
		state, ok := fields.Lookup(kind + "Collection").StringValue()
		if !ok {
			state = "enxcol_." + name + "." + kind
		}
		names = append(names, state)
	}
	return names
}

// createEncrypted creates a collection with Queryable Encryption (specification: Client Side
// Encryption, "Create Collection Helper").
func (s *steps) createEncrypted(ctx context.Context, fields bson.Raw, o *CreateCollectionOptions) error {
	if s.db.err != nil {
		return s.failed(ctx, s.db.err)
	}
	with := *o
	with.EncryptedFields = fields
	own, err := marshalAppend(s.db.bson, nil, with.fields()) // before anything is made
	if err != nil {
		return s.failed(ctx, err)
	}
	for _, state := range stateCollections(s.name, fields) {
		var f adminFields
		f.value("clusteredIndex", bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}},
			{Key: "unique", Value: true}})
		f.value("comment", o.Comment)
		if err := s.run(ctx, &command.Named{Command: "create", Target: state, Fields: f.document(), Queryable: true},
			o.Timeout); err != nil {
			return err
		}
	}
	if err := s.run(ctx, &command.Named{Command: "create", Target: s.name, Fields: bson.Raw(own), Queryable: true},
		nil); err != nil {
		return err
	}
	return s.run(ctx, &command.CreateIndexes{Collection: s.name, Comment: o.Comment,
		Indexes: []command.Index{{Keys: bson.D{{Key: "__safeContent__", Value: int32(1)}}}}}, nil)
}

// drop drops a collection and its state collections, if it has any (specification: Client Side
// Encryption, "Drop Collection Helper").
func (s *steps) drop(ctx context.Context, o *DropOptions) error {
	if s.db.err != nil {
		return s.failed(ctx, s.db.err)
	}
	extra := s.db.extra // of the command that drops the collection itself; s.db is of this call alone
	s.db.extra = nil
	fields, err := s.encryptedFields(ctx, o.EncryptedFields)
	if err == nil && fields == nil && s.db.client.cipher != nil {
		fields, err = s.storedFields(ctx, o.Timeout)
	}
	if err != nil {
		return err
	}
	var names []string
	if fields != nil {
		names = stateCollections(s.name, fields)
	}
	for _, name := range append(names, s.name) {
		if name == s.name {
			s.db.extra = extra
		}
		err := s.run(ctx, &command.Named{Command: "drop", Target: name, Fields: o.fields()}, o.Timeout)
		if err != nil && !mongoerr.HasCode(err, errcode.NamespaceNotFound) {
			return err
		}
	}
	return nil
}

// storedFields returns the encryptedFields that a collection was created with, nil for none.
func (s *steps) storedFields(ctx context.Context, timeout *time.Duration) (bson.Raw, error) {
	op, err := s.op(ctx, &command.ListCollections{Filter: bson.D{{Key: "name", Value: s.name}}}, timeout)
	if err != nil {
		return nil, err
	}
	var cur Cursor[CollectionInfo]
	if err := cur.cur.Prepare(&op, cursor.Reading{}); err != nil {
		return nil, s.failed(ctx, err)
	}
	res, err := s.db.run(ctx, &op)
	if err != nil {
		return nil, err
	}
	if err := cur.cur.Open(ctx, s.db.client.cursors, &op, res); err != nil {
		return nil, err
	}
	infos, err := cur.All(ctx)
	if err != nil || len(infos) == 0 {
		return nil, err
	}
	fields, _ := infos[0].Options.Lookup("encryptedFields").Document()
	return fields, nil
}
