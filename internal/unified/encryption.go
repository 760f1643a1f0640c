package unified

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/fakekms"
	"allium/mongoerr"
)

// This file has the entities and operations of in-use encryption (specification: Unified Test
// Format, "entity_clientEncryption" and "autoEncryptOpts"). Key services are those of package
// fakekms, which knows the master keys of the specification's tests.

// keyServices is the one set of key services of the process. It is started outside of bubbles,
// since its goroutines outlive them.
var keyServices = sync.OnceValues(func() (*fakekms.Server, error) {
	s, err := fakekms.Start()
	if err == nil {
		s.Answer(refuse)
	}
	return s, err
})

// refuse answers requests about master keys that the tests want not to be there.
func refuse(r *http.Request) (status int, body string) {
	for _, name := range []string{"kms.invalid.", "kms.us-east-2.", "invalid-vault-csfle", "invalid-name-csfle"} {
		if strings.Contains(r.Host, name) || strings.Contains(r.URL.Path, name) {
			return http.StatusBadRequest, `{"message": "there is no such key"}`
		}
	}
	return 0, ""
}

// localMasterKey is what the placeholder for a local master key stands for.
const localMasterKey = "Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRCZGJkTXVyZG9uSjFk"

// secrets are what the placeholders in kmsProviders stand for, by the kind of provider and the
// field.
func secrets(server *fakekms.Server) map[string]map[string]any {
	return map[string]map[string]any{
		"local": {"key": localMasterKey},
		"aws": {"accessKeyId": fakekms.AWSAccessKeyID, "secretAccessKey": fakekms.AWSSecretAccessKey,
			"sessionToken": fakekms.AWSSessionToken},
		"azure": {"tenantId": fakekms.AzureTenantID, "clientId": fakekms.AzureClientID,
			"clientSecret": fakekms.AzureClientSecret,
			"accessToken":  fakekms.AzureToken},
		"gcp": {"email": fakekms.GCPEmail, "privateKey": bson.Binary{Data: server.GCPPrivateKey()},
			"accessToken": fakekms.GCPToken},
		"kmip": {"endpoint": "localhost:5698"},
	}
}

// kmsOptions are the options about key services that clients and clientEncryption entities have in
// common.
func kmsOptions(a *arguments) (encryption.KeyOptions, error) {
	var o encryption.KeyOptions
	server, err := keyServices()
	if err != nil {
		return o, err
	}
	known := secrets(server)
	var providers bson.D
	for name, v := range a.requiredDocument("kmsProviders").All() {
		fields, ok := v.Document()
		if !ok {
			return o, fmt.Errorf("kmsProviders.%s is %v", name, v)
		}
		kind, _, _ := strings.Cut(name, ":")
		provider := bson.D{}
		for field, v := range fields.All() {
			var value any = v
			if op, _, ok := operator(v); ok && op == placeholder {
				if value, ok = known[kind][field]; !ok {
					return o, skipped{fmt.Errorf("needs a real key service: %s.%s", name, field)}
				}
			}
			provider = append(provider, bson.E{Key: field, Value: value})
		}
		providers = append(providers, bson.E{Key: name, Value: provider})
	}
	doc, err := bson.Marshal(providers)
	if err != nil {
		return o, err
	}
	if o.KMS, err = kms.ProvidersFromBSON(doc); err != nil {
		return o, err
	}
	o.KMSConnect = server.Dial
	o.TLS = allTLS(o.KMS, server)
	o.KeyVault = a.requiredString("keyVaultNamespace")
	o.KeyExpiration = a.millisp("keyExpirationMS")
	return o, nil
}

// allTLS returns the settings of the providers' connections.
func allTLS(providers kms.Providers, server *fakekms.Server) map[string]*tls.Config {
	out := map[string]*tls.Config{}
	for name, p := range providers {
		switch p.(type) {
		case kms.Local:
		case kms.KMIP:
			out[name] = server.ClientTLS()
		default:
			out[name] = server.TLS()
		}
	}
	return out
}

// automatic returns what autoEncryptOpts ask for.
func (r *runner) automatic(doc bson.Raw) (allium.Encryption, error) {
	a := &arguments{doc: doc}
	k, err := kmsOptions(a)
	if err != nil {
		return nil, err
	}
	o := encryption.AutoOptions{
		KeyOptions:          k,
		BypassEncryption:    a.is("bypassAutoEncryption"),
		BypassQueryAnalysis: a.is("bypassQueryAnalysis"),
		Schemas:             namespaces(a.document("schemaMap")),
		EncryptedFields:     namespaces(a.document("encryptedFieldsMap")),
	}
	a.raw("extraOptions") // about processes and libraries that there are none of
	return encryption.Auto(o), a.done()
}

// namespaces returns a document of documents as a map.
func namespaces(doc bson.Raw) map[string]any {
	out := map[string]any{}
	for ns, v := range doc.All() {
		out[ns] = bson.Raw(v.Value)
	}
	return out
}

func init() {
	registerEntity("clientEncryption", createClientEncryption)
	register(map[string]operation[*encryption.Client]{
		"createDataKey": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			provider := a.requiredString("kmsProvider")
			sub := &arguments{doc: a.document("opts")}
			o := encryption.DataKeyOptions{AltNames: sub.strings("keyAltNames")}
			var err error
			if o.MasterKey, err = masterKey(provider, sub.document("masterKey")); err != nil {
				return result{}, err
			}
			if b, ok := sub.raw("keyMaterial").Binary(); ok {
				o.Material = b.Data
			}
			a.adopt(sub)
			id, err := c.CreateDataKey(ctx, provider, o)
			return encode(id, err)
		},
		"deleteKey": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			res, err := c.DeleteKey(ctx, a.uuid("id"))
			return encode(bson.D{{Key: "deletedCount", Value: res.DeletedCount}}, err)
		},
		"getKey": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			return dataKey(c.Key(ctx, a.uuid("id")))
		},
		"getKeyByAltName": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			return dataKey(c.KeyByAltName(ctx, a.requiredString("keyAltName")))
		},
		"getKeys": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			var all []bson.Raw
			for k, err := range c.Keys(ctx) {
				if err != nil {
					return result{}, err
				}
				all = append(all, k.Raw)
			}
			return docs(all, nil)
		},
		"addKeyAltName": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			return dataKey(c.AddKeyAltName(ctx, a.uuid("id"), a.requiredString("keyAltName")))
		},
		"removeKeyAltName": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			return dataKey(c.RemoveKeyAltName(ctx, a.uuid("id"), a.requiredString("keyAltName")))
		},
		"rewrapManyDataKey": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			filter := a.required("filter")
			sub := &arguments{doc: a.document("opts")}
			o := encryption.RewrapOptions{Provider: sub.string("provider")}
			var err error
			if o.MasterKey, err = masterKey(o.Provider, sub.document("masterKey")); err != nil {
				return result{}, err
			}
			a.adopt(sub)
			res, err := c.RewrapManyDataKey(ctx, filter, o)
			out := bson.D{}
			if res.Acknowledged {
				out = bson.D{{Key: "bulkWriteResult", Value: bulkResult(res)}}
			}
			return encode(out, err)
		},
		"encrypt": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			value := a.raw("value")
			sub := &arguments{doc: a.requiredDocument("opts")}
			o := encryption.EncryptOptions{Algorithm: encryption.Algorithm(sub.string("algorithm")),
				KeyAltName: sub.string("keyAltName"),
				Query:      encryption.QueryType(sub.string("queryType"))}
			if !sub.raw("keyId").IsZero() {
				o.KeyID = new(sub.uuid("keyId"))
			}
			if n, ok := sub.raw("contentionFactor").AsInt64(); ok {
				o.Contention = &n
			}
			a.adopt(sub)
			b, err := c.Encrypt(ctx, value, o)
			return encode(b, err)
		},
		"decrypt": func(ctx context.Context, _ *runner, c *encryption.Client, a *arguments) (result, error) {
			b, ok := a.raw("value").Binary()
			if !ok {
				return result{}, &brokenTest{errors.New("decrypt: value is no binary")}
			}
			v, err := c.Decrypt(ctx, b)
			return encode(v, err)
		},
	})
}

func createClientEncryption(_ context.Context, r *runner, a *arguments) (any, error) {
	sub := &arguments{doc: a.requiredDocument("clientEncryptionOpts")}
	keys, err := kmsOptions(sub)
	if err != nil {
		return nil, err
	}
	client, err := get[*clientEntity](r.entities, sub.requiredString("keyVaultClient"))
	if err != nil {
		return nil, err
	}
	keys.KeyVaultClient = client.Client
	o := encryption.Options{KeyOptions: keys, Timeout: sub.timeout()}
	a.adopt(sub)
	c, err := encryption.New(o)
	return c, err
}

// masterKey reads the master key of a provider, nil if the test has none.
func masterKey(provider string, doc bson.Raw) (kms.MasterKey, error) {
	if doc == nil {
		return nil, nil
	}
	whole, err := bson.Marshal(bson.D{{Key: "provider", Value: provider}})
	if err != nil {
		return nil, err
	}
	start, dst := bson.BeginDocument(nil)
	dst = append(append(dst, bson.Raw(whole).Elements()...), doc.Elements()...)
	_, key, err := kms.MasterKeyFromBSON(bson.EndDocument(dst, start))
	return key, err
}

// dataKey returns a data key as its document; null if there is none.
func dataKey(k *encryption.DataKey, err error) (result, error) {
	if errors.Is(err, mongoerr.ErrNoDocuments) || k == nil && err == nil {
		return encode(nil, nil)
	}
	if err != nil {
		return result{}, err
	}
	return doc(k.Raw, nil)
}

// uuid reads a UUID.
func (a *arguments) uuid(name string) bson.UUID {
	v := a.raw(name)
	b, ok := v.Binary()
	id, err := b.UUID()
	if !ok || err != nil {
		a.fail(name, v, "a UUID")
	}
	return id
}
