package encryption

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/encryption/kms"
	"allium/internal/conn"
	"allium/internal/crypt"
	"allium/internal/fle"
	"allium/internal/keyservice"
	"allium/internal/option"
	"allium/internal/redact"
	"allium/internal/uri"
	"allium/mongoerr"
)

// KeyOptions say where data keys are stored, and how to reach the master keys that wrap them.
// Options and AutoOptions share them.
type KeyOptions struct {
	// KeyVaultClient is a client of the deployment that has the key vault. It stays open when what
	// uses it is closed. New needs one. Nil for Auto: the client whose commands are encrypted, or
	// another one of the same deployment, which the driver opens.
	KeyVaultClient *allium.Client
	// KeyVault is the namespace of the key vault, "database.collection".
	KeyVault string
	// KMS are the key services that hold the master keys.
	KMS kms.Providers
	// TLS has the TLS settings of key services, by their names in KMS. The others trust the
	// certificate authorities of the system. Certificates that were revoked are refused; see
	// allium.Client.CheckRevocation.
	TLS map[string]*tls.Config
	// TLSFiles has the TLS settings of key services in files, by their names in KMS: the
	// authorities, and the certificate and key that a KMIP server wants to see. The files are read
	// for each connection, so that they may be replaced while the program runs. Settings that check
	// less are refused, but for DisableOCSPEndpointCheck. A name is in TLS or in TLSFiles.
	TLSFiles map[string]allium.TLSFiles
	// KMSConnect makes the connections to key services, for example through a proxy. TLS runs on
	// top of them, and verifies the name of the key service. Nil: the driver dials.
	KMSConnect func(ctx context.Context, address string) (net.Conn, error)
	// KeyExpiration is how long data keys are cached in memory. Nil: a minute; 0: until Close.
	KeyExpiration *time.Duration
	// Logger receives debug messages: which data keys were fetched, taken from the cache or
	// dropped, which requests key services got, and which schemas were asked for, with names and
	// durations. None holds a value, key material or a credential. Nil: none; with Auto, that of
	// the client (ClientOptions.Logger).
	Logger *slog.Logger
}

// Format prints the options without secrets, with every verb.
func (o KeyOptions) Format(f fmt.State, _ rune) { redact.Fields(f, o) }

// keys returns the cache of data keys of a key vault. The certificates of key services are checked
// as owner checks its servers'.
func (o *KeyOptions) keys(client, owner *allium.Client) (*crypt.Keys, *allium.Collection[bson.Raw], error) {
	vault, err := collection(client, o.KeyVault)
	if err != nil {
		return nil, nil, err
	}
	life, err := expiration(o.KeyExpiration)
	if err != nil {
		return nil, nil, err
	}
	log := logger{o.Logger}
	files, err := o.tlsFiles(log)
	if err != nil {
		return nil, nil, err
	}
	services, err := keyservice.New(keyservice.Config{Providers: o.KMS, TLS: o.TLS, TLSFiles: files, Dial: o.KMSConnect,
		Observe:    log.request,
		Revocation: owner.CheckRevocation})
	if err != nil {
		return nil, nil, err
	}
	keys := crypt.NewKeys(keyVault{vault}, service{services}, life)
	if o.Logger != nil {
		keys.Observe = log.keys
	}
	return keys, vault, nil
}

// tlsFiles reads the files of TLSFiles.
func (o *KeyOptions) tlsFiles(log logger) (map[string]keyservice.TLSSource, error) {
	files := make(map[string]keyservice.TLSSource, len(o.TLSFiles))
	for name, f := range o.TLSFiles {
		// Specification: Client Side Encryption, "KMS provider TLS options".
		used := allium.TLSFiles{CAFile: f.CAFile, CertificateKeyFile: f.CertificateKeyFile,
			CertificateKeyFilePassword: f.CertificateKeyFilePassword,
			DisableOCSPEndpointCheck:   f.DisableOCSPEndpointCheck}
		if f != used {
			return nil, fmt.Errorf(
				"key service %q: insecure TLS options prohibited: only files, a password and DisableOCSPEndpointCheck are allowed", name)
		}
		source, err := conn.NewTLS(&uri.TLSOptions{
			CAFile: f.CAFile, CertificateKeyFile: f.CertificateKeyFile,
			CertificateKeyFilePassword: f.CertificateKeyFilePassword,
		}, log.warn)
		if err != nil {
			return nil, fmt.Errorf("key service %q: %w", name, err)
		}
		files[name] = source
	}
	return files, nil
}

// Options are the options of New.
type Options struct {
	KeyOptions
	// Timeout bounds each operation, requests to key services included; a pointer to 0 means no
	// limit. Nil: the timeout of KeyVaultClient.
	Timeout *time.Duration
}

// Format prints the options without secrets, with every verb.
func (o Options) Format(f fmt.State, _ rune) { redact.Fields(f, o) }

// A Client creates and manages data keys, and encrypts and decrypts values with them. It is safe
// for concurrent use. Close it after use.
type Client struct {
	keys    *crypt.Keys
	vault   *allium.Collection[bson.Raw]
	bson    bson.Options
	timeout time.Duration
	closed  atomic.Bool
}

// New returns a Client. It does no I/O. An error names the wrong option, and never contains a
// secret.
func New(o Options) (*Client, error) {
	if o.KeyVaultClient == nil {
		return nil, errors.New("encryption: KeyVaultClient is nil")
	}
	if o.Timeout != nil && *o.Timeout < 0 {
		return nil, fmt.Errorf("encryption: Timeout is %v, want 0 or more", *o.Timeout)
	}
	o = option.Copy(o)
	keys, vault, err := o.keys(o.KeyVaultClient, o.KeyVaultClient)
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	settings := vault.Database().Settings()
	c := &Client{keys: keys, vault: vault}
	if settings.BSON != nil {
		c.bson = *settings.BSON
	}
	if o.Timeout != nil {
		c.timeout = *o.Timeout
	} else if settings.Timeout != nil {
		c.timeout = *settings.Timeout
	}
	return c, nil
}

// Close removes the data keys from memory: those that running operations use, which it does not
// interrupt, when they end. Every method of a closed Client returns an error of the class
// mongoerr.ErrClientClosed, except Close, which does nothing then.
func (c *Client) Close() error {
	c.closed.Store(true)
	c.keys.Close()
	return nil
}

// expiration returns how long keys are kept, 0 for ever.
func expiration(d *time.Duration) (time.Duration, error) {
	switch {
	case d == nil:
		return crypt.DefaultKeyExpiration, nil
	case *d < 0:
		return 0, fmt.Errorf("KeyExpiration is %v, want 0 or more", *d)
	}
	return *d, nil
}

// collection returns the key vault. Whatever the client's settings are, data keys are read and
// written with the concern of the majority, and their ids are UUIDs in the standard representation.
func collection(client *allium.Client, namespace string) (*allium.Collection[bson.Raw], error) {
	db, name, ok := strings.Cut(namespace, ".")
	if !ok || db == "" || name == "" {
		return nil, fmt.Errorf("KeyVault is %q, want \"database.collection\"", namespace)
	}
	return allium.CollectionOf[bson.Raw](client.Database(db), name, allium.CollectionOptions{
		ReadConcern: &consistency.ReadConcern{Level: "majority"}, WriteConcern: consistency.Majority(),
		ReadPreference: &consistency.ReadPreference{},
		BSON:           &bson.Options{UUID: bson.UUIDStandard},
	}), nil
}

// keyVault is the Vault of data keys.
type keyVault struct{ *allium.Collection[bson.Raw] }

// Keys finds data keys. A transaction that ctx carries is another client's, or does not see what
// the majority has.
func (v keyVault) Keys(ctx context.Context, filter bson.Raw) ([]bson.Raw, error) {
	cursor, err := v.Find(allium.WithSession(ctx, nil), filter)
	if err != nil {
		return nil, err
	}
	return cursor.All(ctx)
}

// service is the Service of master keys.
type service struct{ *keyservice.Client }

// Wrap wraps material with the master key that a document names.
func (s service) Wrap(ctx context.Context, masterKey bson.Raw, material []byte) (bson.Raw, []byte, error) {
	provider, key, err := kms.MasterKeyFromBSON(masterKey)
	if err != nil {
		return nil, nil, err
	}
	stored, wrapped, err := s.Client.Wrap(ctx, provider, key, material)
	if err != nil {
		return nil, nil, err
	}
	return kms.AppendMasterKey(nil, provider, stored), wrapped, nil
}

// Unwrap unwraps what Wrap wrapped.
func (s service) Unwrap(ctx context.Context, masterKey bson.Raw, wrapped []byte) ([]byte, error) {
	provider, key, err := kms.MasterKeyFromBSON(masterKey)
	if err != nil {
		return nil, err
	}
	return s.Client.Unwrap(ctx, provider, key, wrapped)
}

// errClosed is what the methods of a closed Client return.
var errClosed = fmt.Errorf("encryption: %w", mongoerr.ErrClientClosed)

// begin returns the context of an operation, and what ends it, unless c is closed.
func (c *Client) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if c.closed.Load() {
		return ctx, nil, errClosed
	}
	if c.timeout > 0 {
		ctx, end := context.WithTimeout(ctx, c.timeout)
		return ctx, end, nil
	}
	return ctx, func() {}, nil
}

// The classes of errors, for errors.Is.
var (
	// ErrKeyNotFound is the class of errors of a data key that is not in the key vault.
	ErrKeyNotFound = crypt.ErrKeyNotFound
	// ErrAuthentication is the class of errors of ciphertext that was changed, truncated, or
	// encrypted with another key.
	ErrAuthentication = fle.ErrTag
	// ErrMalformed is the class of errors of malformed encrypted values.
	ErrMalformed = fle.ErrMalformed
	// ErrObsolete is the class of errors of values of the first version of Queryable Encryption.
	ErrObsolete = fle.ErrObsolete
)
