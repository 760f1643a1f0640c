package encryption

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"allium"
	"allium/bson"
	"allium/internal/crypt"
	"allium/internal/fle/analysis"
	"allium/internal/option"
	"allium/internal/redact"
)

// AutoOptions are the options of Auto.
type AutoOptions struct {
	KeyOptions

	// Schemas selects the fields to encrypt with Client-Side Field Level Encryption: it has a JSON
	// schema, a document, for each namespace ("database.collection"). With a schema here, a
	// malicious server cannot make the client send fields in plaintext. Collections without one
	// here use the schema of their validator. It is for encryption alone: what else a JSON schema
	// can demand is an error here, and belongs in the validator.
	Schemas map[string]any
	// EncryptedFields selects the fields to encrypt with Queryable Encryption: it has a document
	// for each namespace. With one here, a malicious server cannot make the client send fields in
	// plaintext. Collections without one here use the one that they were created with.
	EncryptedFields map[string]any

	// BypassEncryption sends commands as they are. Replies are still decrypted.
	BypassEncryption bool
	// BypassQueryAnalysis sends values as they are: the program encrypts them itself with
	// Client.Encrypt. Commands still get the fields that a server needs for Queryable Encryption.
	BypassQueryAnalysis bool
}

// Format prints the options without secrets, with every verb.
func (o AutoOptions) Format(f fmt.State, _ rune) { redact.Fields(f, o) }

// Auto returns automatic encryption for ClientOptions.Encryption. Options that are wrong are an
// error of Open.
//
// Fields are encrypted before a command leaves the program, and decrypted in its reply. A command
// that could send an encrypted field in plaintext, or that the server could not run on encrypted
// fields, is an error and is not sent.
func Auto(o AutoOptions) allium.Encryption {
	a := &automatic{o: option.Copy(o)}
	if a.err = encodeAll(a.o.Schemas, "schema"); a.err == nil {
		a.err = encodeAll(a.o.EncryptedFields, "encrypted fields")
	}
	return a
}

// encodeAll encodes the documents of a map, so that nothing of them is the program's any more.
func encodeAll(docs map[string]any, what string) error {
	for ns, v := range docs {
		doc, err := bson.Marshal(v)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", what, ns, err)
		}
		docs[ns] = bson.Raw(doc)
	}
	return nil
}

type automatic struct {
	o   AutoOptions // with bson.Raw in Schemas and EncryptedFields
	err error       // of encoding these
}

// Format prints the options without secrets, with every verb.
func (a *automatic) Format(f fmt.State, _ rune) { redact.Fields(f, a.o) }

// Attach makes the cipher of a client.
func (a *automatic) Attach(to allium.EncryptionTarget) (allium.CommandCipher, error) {
	o := a.o
	if o.Logger == nil {
		o.Logger = to.Logger
	}
	c := &cipher{bypass: o.BypassEncryption, bypassAnalysis: o.BypassQueryAnalysis, known: make(map[string]*schema),
		collections: collections{log: logger{o.Logger}}}
	err := a.err
	if err == nil {
		c.known, err = configured(o.Schemas, o.EncryptedFields)
	}
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", refused(err))
	}
	vaultClient := o.KeyVaultClient
	if vaultClient == nil && to.Unbounded {
		// The client itself, whose commands to the key vault are analyzed as all are
		// (specification: Client Side Encryption,
		// "keyVaultClient, metadataClient, and the internal MongoClient").
		vaultClient = to.Client
	}
	if vaultClient == nil || !o.BypassEncryption {
		plain, err := to.Plain()
		if err != nil {
			return nil, fmt.Errorf("encryption: %w", err)
		}
		if vaultClient == nil {
			vaultClient = plain
		}
		if !o.BypassEncryption {
			c.collections.client = plain
		}
	}
	if c.keys, _, err = o.keys(vaultClient, to.Client); err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	return c, nil
}

// schema says what of a collection is encrypted. A nil *schema: nothing.
type schema struct {
	analysis *analysis.Schema // nil while a key of fields has to be found by its name
	fields   bson.Raw         // encryptedFields, of Queryable Encryption
	given    bson.Raw         // fields as the program has given them
	err      error            // what is wrong with it
}

// configured returns the schemas that the program has.
func configured(schemas, encryptedFields map[string]any) (map[string]*schema, error) {
	out := make(map[string]*schema)
	for _, list := range []map[string]any{schemas, encryptedFields} {
		for ns := range list {
			if db, name, ok := strings.Cut(ns, "."); !ok || db == "" || name == "" {
				return nil, fmt.Errorf("schema of %q: want \"database.collection\"", ns)
			}
		}
	}
	for ns, v := range schemas {
		doc, err := bson.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", ns, err)
		}
		// A schema that is wrong is an error of each command that needs it.
		s, err := analysis.ParseJSONSchema(ns, doc, false)
		out[ns] = &schema{analysis: s, err: err}
	}
	for ns, v := range encryptedFields {
		if out[ns] != nil {
			return nil, fmt.Errorf("%s is present in both Schemas and EncryptedFields", ns)
		}
		doc, err := bson.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encrypted fields of %s: %w", ns, err)
		}
		if out[ns], err = parseFields(ns, doc); err != nil {
			return nil, err
		}
		out[ns].given = doc
	}
	return out, nil
}

// cipher is the CommandCipher of one client.
type cipher struct {
	keys           *crypt.Keys
	known          map[string]*schema // that the program has
	collections    collections        // those that the server has
	bypass         bool
	bypassAnalysis bool
}

// Close forgets the keys.
func (c *cipher) Close() error {
	c.keys.Close()
	return nil
}

// Decrypt decrypts a reply.
func (c *cipher) Decrypt(ctx context.Context, reply bson.Raw) (bson.Raw, error) {
	return c.keys.Decrypt(ctx, reply)
}

// EncryptedFields returns what the program has configured, with the ids of keys that it names.
func (c *cipher) EncryptedFields(ctx context.Context, db, collection string) (bson.Raw, error) {
	ns := db + "." + collection
	s := c.known[ns]
	switch {
	case s == nil || s.given == nil:
		return nil, nil
	case s.analysis != nil:
		return s.given, nil
	}
	return c.keys.NamedFields(ctx, ns, s.given)
}

// Encrypt encrypts a command.
func (c *cipher) Encrypt(ctx context.Context, db string, cmd bson.Raw) (bson.Raw, error) {
	out, err := c.encrypt(ctx, db, cmd)
	return out, refused(err)
}

func (c *cipher) encrypt(ctx context.Context, db string, cmd bson.Raw) (bson.Raw, error) {
	if c.bypass {
		return cmd, nil
	}
	c.collections.forget(db, cmd)
	namespaces, err := analysis.Namespaces(db, cmd)
	if err != nil || len(namespaces) == 0 {
		return cmd, err
	}
	schemas, err := c.schemas(ctx, cmd, namespaces)
	if err != nil {
		return nil, err
	}
	trees := make(map[string]*analysis.Schema, len(schemas))
	var fields bson.Raw // of the command's own collection
	var others []crypt.Collection
	encrypts, queryable := false, false
	for _, ns := range namespaces {
		s := schemas[ns]
		if s == nil {
			trees[ns] = nil
			if ns != namespaces[0] {
				others = append(others, crypt.Collection{NS: ns})
			}
			continue
		}
		if s.err != nil {
			return nil, s.err
		}
		if s.analysis == nil {
			if s, err = c.named(ctx, ns, s.fields); err != nil {
				return nil, err
			}
		}
		trees[ns] = s.analysis
		encrypts = encrypts || s.analysis.Encrypts()
		queryable = queryable || s.fields != nil
		switch {
		case ns == namespaces[0]:
			fields = s.fields
		case s.fields != nil:
			others = append(others, crypt.Collection{NS: ns, Fields: s.fields})
		}
	}
	if !encrypts && !queryable {
		return cmd, nil
	}
	out := cmd
	if encrypts && !c.bypassAnalysis {
		res, err := analysis.Analyze(db, cmd, trees)
		if err != nil {
			return nil, err
		}
		if out, err = c.keys.Encrypt(ctx, res.Command, rand.Reader); err != nil {
			return nil, err
		}
	}
	if !queryable {
		return out, nil
	}
	return c.queryable(ctx, out, namespaces[0], fields, others)
}
