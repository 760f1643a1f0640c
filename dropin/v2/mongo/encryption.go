package mongo

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"allium"
	"allium/auth"
	abson "allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// providers returns the key services of a map.
func (c coder) providers(m map[string]map[string]any, aws options.AWSCredentialsProvider) (kms.Providers, error) {
	doc, err := c.document(m)
	if err != nil {
		return nil, err
	}
	providers, err := kms.ProvidersFromBSON(doc)
	if err != nil || aws == nil {
		return providers, err
	}
	for name, p := range providers {
		if p, ok := p.(kms.AWS); ok && (name == "aws" || strings.HasPrefix(name, "aws:")) {
			p.Credentials = func(ctx context.Context) (auth.AWSCredentials, error) {
				c, err := aws.Retrieve(ctx)
				return auth.AWSCredentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: auth.Secret(c.SecretAccessKey),
					SessionToken: auth.Secret(c.SessionToken)}, err
			}
			providers[name] = p
		}
	}
	return providers, nil
}

// autoEncryption returns the automatic encryption of a client. The settings of a shared library are
// told of at the level debug, and not used.
func (c *Client) autoEncryption(client *options.ClientOptions, o *options.AutoEncryptionOptions,
	log *slog.Logger) (allium.Encryption, error) {
	if log == nil {
		log = slog.Default()
	}
	for name := range o.ExtraOptions {
		log.Debug("the setting of a shared library or of mongocryptd is not used: encryption needs neither",
			"extraOption", name)
	}
	providers, err := c.providers(o.KmsProviders, o.AWSCredentialsProvider)
	if err != nil {
		return nil, err
	}
	documents := func(m map[string]any) (map[string]any, error) {
		out := map[string]any{}
		for namespace, val := range m {
			doc, err := c.document(val)
			if err != nil {
				return nil, err
			}
			out[namespace] = doc
		}
		return out, nil
	}
	auto := encryption.AutoOptions{
		KeyOptions: encryption.KeyOptions{KeyVault: o.KeyVaultNamespace, KMS: providers, TLS: o.TLSConfig,
			KeyExpiration: o.KeyExpiration},
		BypassEncryption: set(o.BypassAutoEncryption), BypassQueryAnalysis: set(o.BypassQueryAnalysis),
	}
	if auto.Schemas, err = documents(o.SchemaMap); err != nil {
		return nil, err
	}
	if auto.EncryptedFields, err = documents(o.EncryptedFieldsMap); err != nil {
		return nil, err
	}
	if o.KeyVaultClientOptions != nil {
		if c.keyVault, err = Connect(o.KeyVaultClientOptions); err != nil {
			return nil, err
		}
		auto.KeyVaultClient = c.keyVault.inner
	}
	return encryption.Auto(auto), nil
}

// A ClientEncryption makes data keys, and encrypts and decrypts values. It is safe for concurrent
// use.
type ClientEncryption struct {
	inner    *encryption.Client
	vault    *Client
	keys     *Collection
	keyVault string
}

// NewClientEncryption returns a ClientEncryption whose data keys are in a collection of
// keyVaultClient, which Close disconnects.
func NewClientEncryption(keyVaultClient *Client,
	opts ...options.Lister[options.ClientEncryptionOptions]) (*ClientEncryption, error) {
	if keyVaultClient == nil {
		return nil, errors.New("keyVaultClient must not be nil")
	}
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	providers, err := keyVaultClient.providers(o.KmsProviders, o.AWSCredentialsProvider)
	if err != nil {
		return nil, err
	}
	ce := &ClientEncryption{vault: keyVaultClient, keyVault: o.KeyVaultNamespace}
	if ce.inner, err = encryption.New(encryption.Options{KeyOptions: encryption.KeyOptions{
		KeyVaultClient: keyVaultClient.inner, KeyVault: o.KeyVaultNamespace, KMS: providers, TLS: o.TLSConfig,
		KeyExpiration: o.KeyExpiration,
	}}); err != nil {
		return nil, err
	}
	db, coll, _ := strings.Cut(o.KeyVaultNamespace, ".")
	ce.keys = keyVaultClient.Database(db).Collection(coll)
	return ce, nil
}

// Close disconnects the client of the data keys.
func (ce *ClientEncryption) Close(ctx context.Context) error {
	return errors.Join(ce.inner.Close(), ce.vault.Disconnect(ctx))
}

// encryptionFailure converts an error of encryption.
func encryptionFailure(err error) error {
	if err == nil {
		return nil
	}
	for _, class := range []error{encryption.ErrKeyNotFound, encryption.ErrAuthentication, encryption.ErrMalformed,
		encryption.ErrObsolete} {
		if errors.Is(err, class) {
			return MongocryptError{Code: 1, Message: err.Error(), wrapped: err}
		}
	}
	var refused *encryption.RefusedError
	var service *kms.Error
	if errors.As(err, &refused) || errors.As(err, &service) {
		return MongocryptError{Code: 1, Message: err.Error(), wrapped: err}
	}
	return failure(err)
}

func uuidOf(id bson.Binary) (u abson.UUID, err error) {
	if id.Subtype != bson.TypeBinaryUUID || len(id.Data) != len(u) {
		return u, errors.New("the id of a data key must be a binary of subtype 4 with 16 bytes")
	}
	copy(u[:], id.Data)
	return u, nil
}

func binaryOf(u abson.UUID) bson.Binary {
	return bson.Binary{Subtype: bson.TypeBinaryUUID, Data: u[:]}
}

// masterKey reads the document of a master key.
func (c coder) masterKey(provider string, key any) (kms.MasterKey, error) {
	if key == nil {
		return nil, nil
	}
	doc, err := c.document(key)
	if err != nil {
		return nil, err
	}
	start, out := abson.BeginDocument(nil)
	out = abson.AppendString(out, "provider", provider)
	for key, v := range doc.All() {
		if key != "provider" {
			out = abson.AppendRawValue(out, key, v)
		}
	}
	_, k, err := kms.MasterKeyFromBSON(abson.EndDocument(out, start))
	return k, err
}

// CreateDataKey makes a data key, and returns its _id.
func (ce *ClientEncryption) CreateDataKey(ctx context.Context, kmsProvider string,
	opts ...options.Lister[options.DataKeyOptions]) (bson.Binary, error) {
	o, err := merged(opts)
	if err != nil {
		return bson.Binary{}, err
	}
	if ctx, err = ce.vault.context(ctx); err != nil {
		return bson.Binary{}, err
	}
	key, err := ce.vault.masterKey(kmsProvider, o.MasterKey)
	if err != nil {
		return bson.Binary{}, err
	}
	id, err := ce.inner.CreateDataKey(ctx, kmsProvider,
		encryption.DataKeyOptions{MasterKey: key, AltNames: o.KeyAltNames, Material: o.KeyMaterial})
	if err != nil {
		return bson.Binary{}, encryptionFailure(err)
	}
	return binaryOf(id), nil
}

// encryptOptions returns options of encryption as Allium's.
func encryptOptions(opts []options.Lister[options.EncryptOptions]) (e encryption.EncryptOptions, err error) {
	o, err := merged(opts)
	if err != nil {
		return e, err
	}
	e = encryption.EncryptOptions{Algorithm: encryption.Algorithm(o.Algorithm), KeyAltName: set(o.KeyAltName),
		Contention: o.ContentionFactor, Query: encryption.QueryType(o.QueryType)}
	if o.KeyID != nil {
		id, err := uuidOf(*o.KeyID)
		if err != nil {
			return e, err
		}
		e.KeyID = &id
	}
	if o.RangeOptions != nil {
		r, err := merged([]options.Lister[options.RangeOptions]{o.RangeOptions})
		if err != nil {
			return e, err
		}
		e.Range = &encryption.RangeOptions{Sparsity: r.Sparsity, TrimFactor: r.TrimFactor, Precision: r.Precision}
		if r.Min != nil {
			e.Range.Min = abson.RawValue{Type: r.Min.Type, Value: r.Min.Value}
		}
		if r.Max != nil {
			e.Range.Max = abson.RawValue{Type: r.Max.Type, Value: r.Max.Value}
		}
	}
	if o.StringOptions != nil {
		s, err := merged([]options.Lister[options.StringOptions]{o.StringOptions})
		if err != nil {
			return e, err
		}
		e.Text = &encryption.TextOptions{CaseSensitive: s.CaseSensitive, DiacriticSensitive: s.DiacriticSensitive}
		if p := s.Prefix; p != nil {
			e.Text.Prefix = &encryption.AffixOptions{MinQueryLength: p.StrMinQueryLength,
				MaxQueryLength: p.StrMaxQueryLength}
		}
		if p := s.Suffix; p != nil {
			e.Text.Suffix = &encryption.AffixOptions{MinQueryLength: p.StrMinQueryLength,
				MaxQueryLength: p.StrMaxQueryLength}
		}
		if p := s.Substring; p != nil {
			e.Text.Substring = &encryption.SubstringOptions{MaxLength: p.StrMaxLength,
				MinQueryLength: p.StrMinQueryLength, MaxQueryLength: p.StrMaxQueryLength}
		}
	}
	return e, nil
}

// Encrypt encrypts a value.
func (ce *ClientEncryption) Encrypt(ctx context.Context, val bson.RawValue,
	opts ...options.Lister[options.EncryptOptions]) (bson.Binary, error) {
	o, err := encryptOptions(opts)
	if err != nil {
		return bson.Binary{}, err
	}
	if ctx, err = ce.vault.context(ctx); err != nil {
		return bson.Binary{}, err
	}
	b, err := ce.inner.Encrypt(ctx, abson.RawValue{Type: val.Type, Value: val.Value}, o)
	return bson.Binary(b), encryptionFailure(err)
}

// EncryptExpression encrypts the bounds of a query by range, and decodes the query with them into
// result.
func (ce *ClientEncryption) EncryptExpression(ctx context.Context, expr any, result any,
	opts ...options.Lister[options.EncryptOptions]) error {
	o, err := encryptOptions(opts)
	if err != nil {
		return err
	}
	doc, err := ce.vault.document(expr)
	if err != nil {
		return err
	}
	if ctx, err = ce.vault.context(ctx); err != nil {
		return err
	}
	out, err := ce.inner.EncryptExpression(ctx, doc, o)
	if err != nil {
		return encryptionFailure(err)
	}
	return ce.vault.way().Unmarshal(abson.TypeEmbeddedDocument, out, result)
}

// Decrypt decrypts a value.
func (ce *ClientEncryption) Decrypt(ctx context.Context, val bson.Binary) (bson.RawValue, error) {
	ctx, err := ce.vault.context(ctx)
	if err != nil {
		return bson.RawValue{}, err
	}
	v, err := ce.inner.Decrypt(ctx, abson.Binary(val))
	if err != nil {
		return bson.RawValue{}, encryptionFailure(err)
	}
	return bson.RawValue{Type: v.Type, Value: v.Value}, nil
}

// key is the result of a method that returns a data key.
func (ce *ClientEncryption) key(k *encryption.DataKey, err error) *SingleResult {
	res := &SingleResult{coder: ce.vault.coder, Acknowledged: true}
	switch {
	case errors.Is(err, mongoerr.ErrNoDocuments):
		res.err = ErrNoDocuments
	case err != nil:
		res.err = encryptionFailure(err)
	case k != nil:
		res.doc = bson.Raw(k.Raw)
	}
	return res
}

// AddKeyAltName gives a data key a further name, and returns the key as it was.
func (ce *ClientEncryption) AddKeyAltName(ctx context.Context, id bson.Binary, keyAltName string) *SingleResult {
	return ce.byID(ctx, id, func(ctx context.Context, u abson.UUID) (*encryption.DataKey, error) {
		return ce.inner.AddKeyAltName(ctx, u, keyAltName)
	})
}

// RemoveKeyAltName takes a name from a data key, and returns the key as it was.
func (ce *ClientEncryption) RemoveKeyAltName(ctx context.Context, id bson.Binary, keyAltName string) *SingleResult {
	return ce.byID(ctx, id, func(ctx context.Context, u abson.UUID) (*encryption.DataKey, error) {
		return ce.inner.RemoveKeyAltName(ctx, u, keyAltName)
	})
}

// GetKey returns the data key with an _id.
func (ce *ClientEncryption) GetKey(ctx context.Context, id bson.Binary) *SingleResult {
	return ce.byID(ctx, id, ce.inner.Key)
}

func (ce *ClientEncryption) byID(ctx context.Context, id bson.Binary,
	f func(context.Context, abson.UUID) (*encryption.DataKey, error)) *SingleResult {
	ctx, err := ce.vault.context(ctx)
	if err != nil {
		return &SingleResult{err: err}
	}
	u, err := uuidOf(id)
	if err != nil {
		return &SingleResult{coder: ce.vault.coder, err: ErrNoDocuments} // no key has it
	}
	return ce.key(f(ctx, u))
}

// GetKeyByAltName returns the data key with a name.
func (ce *ClientEncryption) GetKeyByAltName(ctx context.Context, keyAltName string) *SingleResult {
	ctx, err := ce.vault.context(ctx)
	if err != nil {
		return &SingleResult{err: err}
	}
	return ce.key(ce.inner.KeyByAltName(ctx, keyAltName))
}

// GetKeys returns all data keys.
func (ce *ClientEncryption) GetKeys(ctx context.Context) (*Cursor, error) {
	return ce.keys.Find(ctx, bson.D{})
}

// DeleteKey deletes a data key.
func (ce *ClientEncryption) DeleteKey(ctx context.Context, id bson.Binary) (*DeleteResult, error) {
	ctx, err := ce.vault.context(ctx)
	if err != nil {
		return nil, err
	}
	u, err := uuidOf(id)
	if err != nil {
		return nil, err
	}
	res, err := ce.inner.DeleteKey(ctx, u)
	if err != nil {
		return nil, encryptionFailure(err)
	}
	return &DeleteResult{DeletedCount: res.DeletedCount, Acknowledged: res.Acknowledged}, nil
}

// RewrapManyDataKeyResult is the result of RewrapManyDataKey.
type RewrapManyDataKeyResult struct{ *BulkWriteResult }

// RewrapManyDataKey wraps the data keys that match the filter with another master key.
func (ce *ClientEncryption) RewrapManyDataKey(ctx context.Context, filter any,
	opts ...options.Lister[options.RewrapManyDataKeyOptions]) (*RewrapManyDataKeyResult, error) {
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	f, err := ce.vault.document(filter)
	if err != nil {
		return nil, err
	}
	if o.MasterKey != nil && o.Provider == nil {
		return nil, errors.New("expected 'Provider' to be set to identify type of 'MasterKey'")
	}
	if ctx, err = ce.vault.context(ctx); err != nil {
		return nil, err
	}
	rewrap := encryption.RewrapOptions{Provider: set(o.Provider)}
	if rewrap.MasterKey, err = ce.vault.masterKey(rewrap.Provider, o.MasterKey); err != nil {
		return nil, err
	}
	res, err := ce.inner.RewrapManyDataKey(ctx, f, rewrap)
	if err != nil {
		return nil, encryptionFailure(err)
	}
	return &RewrapManyDataKeyResult{&BulkWriteResult{
		MatchedCount: res.MatchedCount, ModifiedCount: res.ModifiedCount, UpsertedIDs: map[int64]any{},
		Acknowledged: res.Acknowledged,
	}}, nil
}

// CreateEncryptedCollection makes a collection with Queryable Encryption, and a data key for each
// field whose keyId is null. It returns the collection and its encrypted fields, these also with an
// error.
func (ce *ClientEncryption) CreateEncryptedCollection(ctx context.Context, db *Database, coll string,
	createOpts options.Lister[options.CreateCollectionOptions], kmsProvider string, masterKey any) (*Collection, bson.M,
	error) {
	o, err := merged([]options.Lister[options.CreateCollectionOptions]{createOpts})
	if err != nil {
		return nil, nil, err
	}
	if o.EncryptedFields == nil {
		return nil, nil, errors.New("no EncryptedFields defined for the collection")
	}
	if ctx, err = ce.vault.context(ctx); err != nil {
		return nil, nil, err
	}
	create, err := db.createOptions(o)
	if err != nil {
		return nil, nil, err
	}
	key, err := ce.vault.masterKey(kmsProvider, masterKey)
	if err != nil {
		return nil, nil, err
	}
	fields, err := ce.inner.CreateEncryptedCollection(ctx, db.inner, coll,
		encryption.CollectionOptions{Provider: kmsProvider, MasterKey: key, Create: create})
	var m bson.M
	if fields != nil {
		if e := bson.Unmarshal(fields, &m); e != nil && err == nil {
			err = e
		}
	}
	if err != nil {
		return nil, m, encryptionFailure(err)
	}
	return db.Collection(coll), m, nil
}
