package kms

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"allium/auth"
	"allium/bson"
)

// This file reads and writes the documents that stand for providers and master keys in the
// specification ("Client Side Encryption", KMSProviders and masterKey).

// ProvidersFromBSON reads the document that other drivers accept as kmsProviders. An unknown field
// is an error. It does not check the values; Providers.Check does.
func ProvidersFromBSON(doc bson.Raw) (Providers, error) {
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	out := Providers{}
	for name, value := range doc.All() {
		options, ok := value.Document()
		if !ok {
			return nil, fmt.Errorf("key service %q: expected a document, got %s", name, value.Type)
		}
		f := newFields(options)
		kind, _, _ := strings.Cut(name, ":")
		var p Provider
		switch kind {
		case "local":
			p = Local{Key: f.bytes("key")}
		case "aws":
			p = AWS{AccessKeyID: f.text("accessKeyId"), SecretAccessKey: auth.Secret(f.text("secretAccessKey")),
				SessionToken: auth.Secret(f.text("sessionToken"))}
		case "azure":
			p = Azure{TenantID: f.text("tenantId"), ClientID: f.text("clientId"),
				ClientSecret:             auth.Secret(f.text("clientSecret")),
				IdentityPlatformEndpoint: f.text("identityPlatformEndpoint"),
				AccessToken:              auth.Secret(f.text("accessToken"))}
		case "gcp":
			p = GCP{Email: f.text("email"), PrivateKey: f.bytes("privateKey"), Endpoint: f.text("endpoint"),
				AccessToken: auth.Secret(f.text("accessToken"))}
		case "kmip":
			p = KMIP{Endpoint: f.text("endpoint")}
		default:
			return nil, checkWrap(name, checkProvider(name, nil))
		}
		if err := f.done(); err != nil {
			return nil, checkWrap(name, err)
		}
		out[name] = p
	}
	return out, nil
}

func checkWrap(name string, err error) error { return fmt.Errorf("key service %q: %w", name, err) }

// MasterKeyFromBSON reads the document of a master key in a data key, and returns it with the name
// of its provider. An unknown field is an error.
func MasterKeyFromBSON(doc bson.Raw) (provider string, key MasterKey, err error) {
	if err := doc.Validate(); err != nil {
		return "", nil, err
	}
	f := newFields(doc)
	provider = f.text("provider")
	kind, _, _ := strings.Cut(provider, ":")
	switch kind {
	case "local":
		key = LocalKey{}
	case "aws":
		key = AWSKey{Region: f.text("region"), Key: f.text("key"), Endpoint: f.text("endpoint")}
	case "azure":
		key = AzureKey{VaultEndpoint: f.text("keyVaultEndpoint"), Name: f.text("keyName"),
			Version: f.text("keyVersion")}
	case "gcp":
		key = GCPKey{ProjectID: f.text("projectId"), Location: f.text("location"), KeyRing: f.text("keyRing"),
			Name:    f.text("keyName"),
			Version: f.text("keyVersion"), Endpoint: f.text("endpoint")}
	case "kmip":
		key = KMIPKey{ID: f.text("keyId"), Endpoint: f.text("endpoint"), Delegated: f.boolean("delegated")}
	case "":
		return "", nil, errors.New("a master key needs the field 'provider'")
	default:
		return "", nil, fmt.Errorf("unknown key service %q", provider)
	}
	if err := f.done(); err != nil {
		return "", nil, err
	}
	return provider, key, key.check()
}

// AppendMasterKey appends the document of a master key in a data key to dst.
func AppendMasterKey(dst []byte, provider string, key MasterKey) []byte {
	start, dst := bson.BeginDocument(dst)
	add := func(name, value string) {
		if value != "" {
			dst = bson.AppendString(dst, name, value)
		}
	}
	add("provider", provider)
	switch k := key.(type) {
	case AWSKey:
		add("region", k.Region)
		add("key", k.Key)
		add("endpoint", k.Endpoint)
	case AzureKey:
		add("keyVaultEndpoint", k.VaultEndpoint)
		add("keyName", k.Name)
		add("keyVersion", k.Version)
	case GCPKey:
		add("projectId", k.ProjectID)
		add("location", k.Location)
		add("keyRing", k.KeyRing)
		add("keyName", k.Name)
		add("keyVersion", k.Version)
		add("endpoint", k.Endpoint)
	case KMIPKey:
		add("endpoint", k.Endpoint)
		if k.Delegated {
			dst = bson.AppendBool(dst, "delegated", true)
		}
		add("keyId", k.ID)
	}
	return bson.EndDocument(dst, start)
}

// fields reads a document's fields and remembers the first error, and which of them are still
// unread.
type fields struct {
	values map[string]bson.RawValue
	order  []string
	err    error
}

func newFields(doc bson.Raw) *fields {
	f := &fields{values: map[string]bson.RawValue{}}
	for name, value := range doc.All() {
		if _, twice := f.values[name]; twice && f.err == nil {
			f.err = fmt.Errorf("the field '%s' is present twice", name)
		}
		f.values[name] = value
		f.order = append(f.order, name)
	}
	return f
}

func (f *fields) take(name string) (bson.RawValue, bool) {
	v, ok := f.values[name]
	delete(f.values, name)
	return v, ok
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fields) text(name string) string {
	v, ok := f.take(name)
	if !ok {
		return ""
	}
	s, ok := v.StringValue()
	switch {
	case !ok:
		f.fail("expected UTF-8 %s, got %s", name, v.Type)
	case s == "":
		f.fail("the field '%s' is empty", name)
	}
	return s
}

func (f *fields) boolean(name string) bool {
	v, ok := f.take(name)
	if !ok {
		return false
	}
	b, ok := v.Boolean()
	if !ok {
		f.fail("expected a boolean %s, got %s", name, v.Type)
	}
	return b
}

// bytes reads a binary or a string in base64.
func (f *fields) bytes(name string) []byte {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	if b, ok := v.Binary(); ok {
		return append([]byte(nil), b.Data...)
	}
	s, ok := v.StringValue()
	if !ok {
		f.fail("expected UTF-8 or binary %s, got %s", name, v.Type)
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(data) == 0 {
		f.fail("unable to parse base64 from the field '%s'", name)
	}
	return data
}

// done returns the first error, if only that a field was not asked for.
func (f *fields) done() error {
	if f.err != nil {
		return f.err
	}
	for _, name := range f.order {
		if _, unread := f.values[name]; unread {
			//lint:ignore ST1005 the text is that of other drivers
			return fmt.Errorf("Unexpected field: '%s'", name)
		}
	}
	return nil
}
