package options

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A ContextDialer makes connections.
type ContextDialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// A DriverInfo names the library that uses the driver.
type DriverInfo struct {
	Name     string
	Version  string
	Platform string
}

// A Credential is how a client authenticates.
type Credential struct {
	AuthMechanism           string
	AuthMechanismProperties map[string]string
	AuthSource              string
	Username                string
	Password                string
	PasswordSet             bool // an empty password is one, for GSSAPI
	OIDCMachineCallback     OIDCCallback
	OIDCHumanCallback       OIDCCallback
	AWSCredentialsProvider  AWSCredentialsProvider
}

// An OIDCCallback returns an access token.
type OIDCCallback func(context.Context, *OIDCArgs) (*OIDCCredential, error)

// OIDCArgs are what an OIDCCallback is given.
type OIDCArgs struct {
	Version      int
	IDPInfo      *IDPInfo
	RefreshToken *string
}

// An OIDCCredential is what an OIDCCallback returns.
type OIDCCredential struct {
	AccessToken  string
	ExpiresAt    *time.Time
	RefreshToken *string
}

// IDPInfo is what the server says about the identity provider.
type IDPInfo struct {
	Issuer        string
	ClientID      string
	RequestScopes []string
}

// AWSCredentials are credentials of AWS.
type AWSCredentials = struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Source          string
	CanExpire       bool
	Expires         time.Time
	AccountID       string
}

// An AWSCredentialsProvider is asked for credentials of AWS.
type AWSCredentialsProvider interface {
	Retrieve(context.Context) (AWSCredentials, error)
}

// A ServerAPIVersion is a version of the Stable API.
type ServerAPIVersion string

// ServerAPIVersion1 is the one that there is.
const ServerAPIVersion1 ServerAPIVersion = "1"

// Validate reports whether there is such a version.
func (sav ServerAPIVersion) Validate() error {
	if sav == ServerAPIVersion1 {
		return nil
	}
	return fmt.Errorf("api version %q not supported; this driver version only supports API version \"1\"", sav)
}

// ServerAPIOptions declare a version of the Stable API.
type ServerAPIOptions struct {
	ServerAPIVersion  ServerAPIVersion
	Strict            *bool // whether the server refuses what is not in it
	DeprecationErrors *bool // whether the server refuses what will not be in it
}

// ServerAPI returns the declaration of a version.
func ServerAPI(serverAPIVersion ServerAPIVersion) *ServerAPIOptions {
	return &ServerAPIOptions{ServerAPIVersion: serverAPIVersion}
}

// SetStrict says whether the server refuses what is not in the version.
func (s *ServerAPIOptions) SetStrict(strict bool) *ServerAPIOptions {
	s.Strict = &strict
	return s
}

// SetDeprecationErrors says whether the server refuses what later versions will not have.
func (s *ServerAPIOptions) SetDeprecationErrors(deprecationErrors bool) *ServerAPIOptions {
	s.DeprecationErrors = &deprecationErrors
	return s
}

// AutoEncryptionOptions are the settings of automatic encryption.
type AutoEncryptionOptions struct {
	KeyVaultClientOptions  *ClientOptions            // the client of the data keys' collection; nil for the same
	KeyVaultNamespace      string                    // that collection: database and name with a dot between
	KmsProviders           map[string]map[string]any // the key services and their credentials
	SchemaMap              map[string]any            // schemas by namespace
	BypassAutoEncryption   *bool                     // whether nothing is encrypted, and only decrypted
	ExtraOptions           map[string]any            // of a shared library, which is not used
	TLSConfig              map[string]*tls.Config    // TLS settings by key service
	HTTPClient             *http.Client              // what requests over HTTP are made with
	EncryptedFieldsMap     map[string]any            // encrypted fields by namespace
	BypassQueryAnalysis    *bool                     // whether the program encrypts the values itself
	KeyExpiration          *time.Duration            // how long a data key is kept in memory
	AWSCredentialsProvider AWSCredentialsProvider    // what credentials of AWS are asked for
}

// AutoEncryption returns settings of automatic encryption.
func AutoEncryption() *AutoEncryptionOptions {
	return &AutoEncryptionOptions{HTTPClient: defaultHTTPClient}
}

// SetAWSCredentialsProvider says what credentials of AWS are asked for.
func (a *AutoEncryptionOptions) SetAWSCredentialsProvider(v AWSCredentialsProvider) *AutoEncryptionOptions {
	a.AWSCredentialsProvider = v
	return a
}

// SetBypassAutoEncryption says whether nothing is encrypted, and only decrypted.
func (a *AutoEncryptionOptions) SetBypassAutoEncryption(v bool) *AutoEncryptionOptions {
	a.BypassAutoEncryption = &v
	return a
}

// SetBypassQueryAnalysis says whether the program encrypts the values itself.
func (a *AutoEncryptionOptions) SetBypassQueryAnalysis(v bool) *AutoEncryptionOptions {
	a.BypassQueryAnalysis = &v
	return a
}

// SetEncryptedFieldsMap says the encrypted fields by namespace.
func (a *AutoEncryptionOptions) SetEncryptedFieldsMap(v map[string]any) *AutoEncryptionOptions {
	a.EncryptedFieldsMap = v
	return a
}

// SetExtraOptions says settings of a shared library, which is not used.
func (a *AutoEncryptionOptions) SetExtraOptions(v map[string]any) *AutoEncryptionOptions {
	a.ExtraOptions = v
	return a
}

// SetKeyExpiration says how long a data key is kept in memory.
func (a *AutoEncryptionOptions) SetKeyExpiration(v time.Duration) *AutoEncryptionOptions {
	a.KeyExpiration = &v
	return a
}

// SetKeyVaultClientOptions says the settings of the client of the data keys.
func (a *AutoEncryptionOptions) SetKeyVaultClientOptions(v *ClientOptions) *AutoEncryptionOptions {
	a.KeyVaultClientOptions = v
	return a
}

// SetKeyVaultNamespace says the collection of the data keys.
func (a *AutoEncryptionOptions) SetKeyVaultNamespace(v string) *AutoEncryptionOptions {
	a.KeyVaultNamespace = v
	return a
}

// SetKmsProviders says the key services and their credentials.
func (a *AutoEncryptionOptions) SetKmsProviders(v map[string]map[string]any) *AutoEncryptionOptions {
	a.KmsProviders = v
	return a
}

// SetSchemaMap says the schemas by namespace.
func (a *AutoEncryptionOptions) SetSchemaMap(v map[string]any) *AutoEncryptionOptions {
	a.SchemaMap = v
	return a
}

// SetTLSConfig says the TLS settings by key service.
func (a *AutoEncryptionOptions) SetTLSConfig(v map[string]*tls.Config) *AutoEncryptionOptions {
	a.TLSConfig = v
	return a
}
