package encryption_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	sources "allium/internal/auth"
	"allium/internal/fakekms"
)

// This file has the prose tests of key services (specification: Client Side Encryption, "Prose
// Tests"), with stand-ins for the services.

const awsARN = "arn:aws:kms:us-east-1:579766882180:key/89fcc2c4-08b0-4bd9-9f25-e30687b580d0"

// masterKeys are those of the tests.
var masterKeys = map[string]kms.MasterKey{
	"local": nil,
	"aws":   kms.AWSKey{Region: "us-east-1", Key: awsARN},
	"azure": kms.AzureKey{VaultEndpoint: "drivers-3392-key-vault.vault.azure.net", Name: "drivers-3392-keyname"},
	"gcp":   kms.GCPKey{ProjectID: "devprod-drivers", Location: "global", KeyRing: "key-ring-csfle", Name: "key-name-csfle"},
	"kmip":  nil,
}

// startServices starts a deployment, and a Client with all key services.
func startServices(t *testing.T) (*prose, encryption.KeyOptions, *fakekms.Server) {
	t.Helper()
	all, server := services(t)
	p := startProse(t, nil)
	p.keys = p.encryption(encryption.Options{KeyOptions: all})
	return p, all, server
}

// wantError checks that an error has a text, and is of the key service if its name is not empty.
func wantError(t *testing.T, what string, err error, text, provider string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: error %v, want %q in it", what, err, text)
		return
	}
	if e, ok := errors.AsType[*kms.Error](err); provider != "" && (!ok || e.Provider != provider || e.Endpoint == "") {
		t.Errorf("%s: %#v, want a *kms.Error of %s", what, err, provider)
	}
}

// create makes a data key.
func createKey(t *testing.T, c *encryption.Client, provider string, key kms.MasterKey) (bson.UUID, error) {
	t.Helper()
	return c.CreateDataKey(t.Context(), provider, encryption.DataKeyOptions{MasterKey: key})
}

// usable checks that a data key encrypts and decrypts.
func usable(t *testing.T, c *encryption.Client, what string, id bson.UUID) {
	t.Helper()
	secret, err := c.Encrypt(t.Context(), "test", encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if s, err := encryption.DecryptAs[string](t.Context(), c, secret); err != nil || s != "test" {
		t.Errorf("%s: %q, %v", what, s, err)
	}
}

// Prose test 2, "Data Key and Double Encryption".
func TestProseDoubleEncryption(t *testing.T) {
	ctx := t.Context()
	p, all, _ := startServices(t)
	plain, events := p.open(allium.ClientOptions{})
	all.KeyVaultClient = plain
	keys := p.encryption(encryption.Options{KeyOptions: all})
	all.KeyVaultClient = nil
	client, _ := p.auto(encryption.AutoOptions{KeyOptions: all, Schemas: map[string]any{"db.coll": bson.D{
		{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{{Key: "encrypted_placeholder", Value: bson.D{{Key: "encrypt", Value: bson.D{
			{Key: "keyId", Value: "/placeholder"}, {Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(encryption.Random)},
		}}}}}},
	}}}, allium.ClientOptions{})
	coll := client.Database("db").Collection("coll")
	for provider, key := range masterKeys {
		before := events.count("insert")
		id, err := keys.CreateDataKey(ctx, provider, encryption.DataKeyOptions{MasterKey: key, AltNames: []string{provider + "_altname"}})
		if err != nil {
			t.Errorf("%s: %v", provider, err)
			continue
		}
		cursor, err := allium.CollectionOf[bson.Raw](plain.Database("keyvault"), "datakeys").Find(ctx, bson.D{{Key: "_id", Value: id}})
		if err != nil {
			t.Fatal(err)
		}
		if docs, err := cursor.All(ctx); err != nil || len(docs) != 1 || docs[0].Lookup("masterKey", "provider").String() != `"`+provider+`"` {
			t.Errorf("%s: stored as %s, %v", provider, docs, err)
		}
		events.mu.Lock()
		insert := events.commands[slices.IndexFunc(events.commands, func(c bson.Raw) bool {
			return !c.Lookup("insert").IsZero() && strings.Contains(c.String(), provider+"_altname")
		})]
		events.mu.Unlock()
		if w, _ := insert.Lookup("writeConcern", "w").StringValue(); w != "majority" || events.count("insert") != before+1 {
			t.Errorf("%s: %d inserts, the last is %s", provider, events.count("insert")-before, insert)
		}
		secret, err := keys.Encrypt(ctx, "hello "+provider, encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id})
		if err != nil || secret.Subtype != bson.BinaryEncrypted {
			t.Errorf("%s: %v, %v", provider, secret, err)
			continue
		}
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: provider}, {Key: "value", Value: secret}}); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
		found, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: provider}})
		if err != nil || len(found) != 2 || found[1].Value != "hello "+provider {
			t.Errorf("%s: found %v, %v", provider, found, err)
		}
		byName, err := keys.Encrypt(ctx, "hello "+provider, encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyAltName: provider + "_altname"})
		if err != nil || !bytes.Equal(byName.Data, secret.Data) {
			t.Errorf("%s: by its name %v, %v; want %v", provider, byName, err, secret)
		}
		_, err = coll.InsertOne(ctx, bson.D{{Key: "encrypted_placeholder", Value: secret}})
		if _, ok := errors.AsType[*encryption.RefusedError](err); !ok {
			t.Errorf("%s: encrypted twice: %v", provider, err)
		}
	}
}

// Prose test 7, "Custom Endpoint Test".
func TestProseCustomEndpoint(t *testing.T) {
	p, all, _ := startServices(t)
	azure, gcp := all.KMS["azure"].(kms.Azure), all.KMS["gcp"].(kms.GCP)
	azure.IdentityPlatformEndpoint, gcp.Endpoint = "login.microsoftonline.com:443", "oauth2.googleapis.com:443"
	all.KMS["azure"], all.KMS["gcp"] = azure, gcp
	valid := p.encryption(encryption.Options{KeyOptions: all})
	azure.IdentityPlatformEndpoint, gcp.Endpoint = "doesnotexist.invalid:443", "doesnotexist.invalid:443"
	all.KMS = kms.Providers{"azure": azure, "gcp": gcp, "kmip": kms.KMIP{Endpoint: "doesnotexist.invalid:5698"}}
	all.TLS = map[string]*tls.Config{"azure": all.TLS["azure"], "gcp": all.TLS["gcp"], "kmip": all.TLS["kmip"]}
	invalid := p.encryption(encryption.Options{KeyOptions: all})
	aws := func(endpoint string) kms.MasterKey {
		return kms.AWSKey{Region: "us-east-1", Key: awsARN, Endpoint: endpoint}
	}
	google := func(endpoint string) kms.MasterKey {
		k := masterKeys["gcp"].(kms.GCPKey)
		k.Endpoint = endpoint
		return k
	}
	const unresolved = "doesnotexist.invalid"
	for _, c := range []struct {
		n           string
		provider    string
		key         kms.MasterKey
		fails       string // the text of the error, if there is one
		withInvalid string // the same with the other client, if the test uses it
	}{
		{"1", "aws", aws(""), "", ""},
		{"2", "aws", aws("kms.us-east-1.amazonaws.com"), "", ""},
		{"3", "aws", aws("kms.us-east-1.amazonaws.com:443"), "", ""},
		{"4", "kmip", kms.KMIPKey{ID: "1", Endpoint: "localhost:12345"}, "connection refused", ""},
		{"5", "aws", aws("kms.us-east-2.amazonaws.com"), "us-east-1", ""},
		{"6", "aws", aws("doesnotexist.invalid"), unresolved, ""},
		{"7", "azure", masterKeys["azure"], "", unresolved},
		{"8", "gcp", google("cloudkms.googleapis.com:443"), "", unresolved},
		{"9", "gcp", google("doesnotexist.invalid:443"), "Invalid KMS response", ""},
		{"10", "kmip", kms.KMIPKey{ID: "1"}, "", unresolved},
		{"11", "kmip", kms.KMIPKey{ID: "1", Endpoint: "localhost:5698"}, "", ""},
		{"12", "kmip", kms.KMIPKey{ID: "1", Endpoint: "doesnotexist.invalid:5698"}, unresolved, ""},
	} {
		t.Run(c.n, func(t *testing.T) {
			t.Parallel() // attempts that fail wait
			id, err := createKey(t, valid, c.provider, c.key)
			switch {
			case c.fails != "":
				wantError(t, c.n, err, c.fails, c.provider)
			case err != nil:
				t.Error(err)
			default:
				usable(t, valid, c.n, id)
			}
			if c.withInvalid != "" {
				_, err := createKey(t, invalid, c.provider, c.key)
				wantError(t, c.n, err, c.withInvalid, c.provider)
			}
		})
	}
}

// Prose tests 8, "Bypass Spawning mongocryptd", and 20, "Bypass creating mongocryptd client when
// shared library is loaded". Commands are analyzed within the process: there is neither a
// mongocryptd to start nor a library to load, so that what these tests expect without them holds in
// any case, and what they expect to fail for want of a mongocryptd works. That no process can be
// started is checked by internal/archtest, which knows the imports.
func TestProseNothingIsSpawned(t *testing.T) {
	ctx := t.Context()
	schema := specDocument(t, "external/external-schema.json")
	for _, c := range []struct {
		name      string
		o         encryption.AutoOptions
		encrypted bool // a marked field is inserted, and has to be encrypted
	}{
		{"loading the shared library", encryption.AutoOptions{Schemas: map[string]any{"db.coll": schema}}, false},
		{"mongocryptdBypassSpawn", encryption.AutoOptions{Schemas: map[string]any{"db.coll": schema}}, true},
		{"bypassAutoEncryption", encryption.AutoOptions{BypassEncryption: true}, false},
		{"bypassQueryAnalysis", encryption.AutoOptions{BypassQueryAnalysis: true}, false},
		{"test 20", encryption.AutoOptions{}, false},
	} {
		p := startProse(t, []bson.Raw{specDocument(t, "external/external-key.json")})
		var dialer recordingDialer
		client, events := p.auto(c.o, allium.ClientOptions{Dialer: &dialer})
		coll := client.Database("db").Collection("coll")
		name := "unencrypted"
		if c.encrypted {
			name = "encrypted"
		}
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: name, Value: "test"}}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		stored, err := allium.CollectionOf[bson.Raw](p.plain.Database("db"), "coll").FindOne(ctx, bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		if _, is := stored.Lookup(name).Binary(); is != c.encrypted {
			t.Errorf("%s: stored as %s", c.name, stored)
		}
		hosts := p.hosts()
		for _, address := range dialer.addresses() {
			if !slices.Contains(hosts, address) {
				t.Errorf("%s: connected to %s, which is not of the deployment %v", c.name, address, hosts)
			}
		}
		if n, err := events.opened(ctx, client); err != nil || n == 0 || len(dialer.addresses()) == 0 {
			t.Errorf("%s: nothing was seen, %v", c.name, err)
		}
	}
}

// hosts returns the addresses of the deployment.
func (p *prose) hosts() []string {
	list, _, _ := strings.Cut(strings.TrimPrefix(p.d.URI(), "mongodb://"), "/")
	return strings.Split(list, ",")
}

// recordingDialer keeps the addresses that are dialed.
type recordingDialer struct {
	mu   sync.Mutex
	list []string
}

func (d *recordingDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.list = append(d.list, address)
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (d *recordingDialer) addresses() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

// Prose tests 10, "KMS TLS Tests", and 11, "KMS TLS Options Tests".
func TestProseTLS(t *testing.T) {
	p := startProse(t, nil)
	base, s := services(t)
	for _, c := range []struct {
		name, port string
		tls        func() *tls.Config
		want       map[string]string // text of the error by the kind of service, "" for the others; "ok": none
	}{
		{"no client certificate", "9002", s.TLS, map[string]string{"": "certificate required"}},
		{"with TLS", "9002", s.ClientTLS, map[string]string{"aws": "parse error", "azure": "HTTP status=404", "gcp": "HTTP status=404", "kmip": "ok"}},
		{"expired", "9000", s.TLS, map[string]string{"": "certificate has expired"}},
		{"invalid hostname", "9001", s.TLS, map[string]string{"": "127.0.0.1"}},
	} {
		at := "127.0.0.1:" + c.port
		kmip := at
		if c.port == "9002" {
			kmip = "127.0.0.1:5698"
		}
		providers := kms.Providers{
			"aws":   base.KMS["aws"],
			"azure": kms.Azure{TenantID: "t", ClientID: "c", ClientSecret: "s", IdentityPlatformEndpoint: at},
			"gcp":   kms.GCP{Email: "e", PrivateKey: s.GCPPrivateKey(), Endpoint: at},
			"kmip":  kms.KMIP{Endpoint: kmip},
		}
		keys := map[string]kms.MasterKey{
			"aws":   kms.AWSKey{Region: "us-east-1", Key: awsARN, Endpoint: at},
			"azure": kms.AzureKey{VaultEndpoint: "doesnotexist.invalid", Name: "foo"},
			"gcp":   kms.GCPKey{ProjectID: "foo", Location: "bar", KeyRing: "baz", Name: "foo"},
		}
		o := encryption.KeyOptions{KMS: kms.Providers{}, TLS: map[string]*tls.Config{}, KMSConnect: s.Dial}
		for name, provider := range providers { // case 6 of test 11: named ones, too
			o.KMS[name], o.KMS[name+":named"] = provider, provider
			o.TLS[name], o.TLS[name+":named"] = c.tls(), c.tls()
		}
		client := p.encryption(encryption.Options{KeyOptions: o})
		for name := range o.KMS {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				kind, _, _ := strings.Cut(name, ":")
				id, err := createKey(t, client, name, keys[kind])
				switch text := cmp.Or(c.want[kind], c.want[""]); {
				case text != "ok":
					wantError(t, c.name, err, text, name)
				case err != nil:
					t.Error(err)
				default:
					usable(t, client, c.name, id)
				}
			})
		}
	}
}

// noAWSEnvironment unsets what AWS credentials could come from.
func noAWSEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
}

// metadata has the function answer requests to the metadata service of the machine.
func metadata(t *testing.T, answer func(r *http.Request, w http.ResponseWriter)) {
	t.Helper()
	before := sources.MetadataClient
	t.Cleanup(func() { sources.MetadataClient = before })
	sources.MetadataClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		answer(r, w)
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return w.Result(), nil
	})}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Prose tests 15, "On-demand AWS Credentials", and 26, "Custom AWS Credentials".
func TestProseAWSCredentials(t *testing.T) {
	noAWSEnvironment(t)
	metadata(t, func(_ *http.Request, w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) })
	p, all, _ := startServices(t)
	with := func(p kms.AWS) encryption.KeyOptions {
		o := all
		o.KMS = kms.Providers{"aws": p}
		o.TLS = map[string]*tls.Config{"aws": all.TLS["aws"]}
		o.KeyVault = "keyvault.datakeys"
		return o
	}
	good := auth.AWSCredentials{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey}
	_, err := createKey(t, p.encryption(encryption.Options{KeyOptions: with(kms.AWS{})}), "aws", masterKeys["aws"])
	wantError(t, "15, case 1", err, "credentials", "aws")

	t.Setenv("AWS_ACCESS_KEY_ID", good.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", string(good.SecretAccessKey))
	if _, err := createKey(t, p.encryption(encryption.Options{KeyOptions: with(kms.AWS{})}), "aws", masterKeys["aws"]); err != nil {
		t.Error("15, case 2:", err)
	}

	calls := 0
	callback := func(context.Context) (auth.AWSCredentials, error) { calls++; return good, nil }
	both := with(kms.AWS{AccessKeyID: good.AccessKeyID, SecretAccessKey: good.SecretAccessKey, Credentials: callback})
	both.KeyVaultClient = p.plain
	_, err = encryption.New(encryption.Options{KeyOptions: both})
	wantError(t, "26, case 1", err, "Credentials", "")
	_, err = allium.Open(p.d.URI(), allium.ClientOptions{Encryption: encryption.Auto(encryption.AutoOptions{KeyOptions: both})})
	wantError(t, "26, case 3", err, "Credentials", "")

	custom := p.encryption(encryption.Options{KeyOptions: with(kms.AWS{Credentials: callback})})
	if _, err := createKey(t, custom, "aws", masterKeys["aws"]); err != nil || calls == 0 { // the environment has some, too
		t.Errorf("26, case 4: %v after %d calls", err, calls)
	}
	noAWSEnvironment(t)
	calls = 0
	custom = p.encryption(encryption.Options{KeyOptions: with(kms.AWS{Credentials: callback})})
	if _, err := createKey(t, custom, "aws", masterKeys["aws"]); err != nil || calls == 0 {
		t.Errorf("26, case 2: %v after %d calls", err, calls)
	}
}

// Prose test 16, "Rewrap".
func TestProseRewrap(t *testing.T) {
	ctx := t.Context()
	p, all, _ := startServices(t)
	vault := p.plain.Database("keyvault").Collection("datakeys")
	for from, fromKey := range masterKeys {
		for to, toKey := range masterKeys {
			what := from + " to " + to
			if err := vault.Drop(ctx); err != nil {
				t.Fatal(err)
			}
			first := p.encryption(encryption.Options{KeyOptions: all})
			id, err := createKey(t, first, from, fromKey)
			if err != nil {
				t.Fatal(err)
			}
			secret, err := first.Encrypt(ctx, "test", encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id})
			if err != nil {
				t.Fatal(err)
			}
			second := p.encryption(encryption.Options{KeyOptions: all})
			res, err := second.RewrapManyDataKey(ctx, bson.D{}, encryption.RewrapOptions{Provider: to, MasterKey: toKey})
			if err != nil || res.ModifiedCount != 1 {
				t.Errorf("%s: %+v, %v", what, res, err)
			}
			for i, c := range []*encryption.Client{first, second} {
				if s, err := encryption.DecryptAs[string](ctx, c, secret); err != nil || s != "test" {
					t.Errorf("%s: client %d has %q, %v", what, i+1, s, err)
				}
			}
			if k, err := second.Key(ctx, id); err != nil || k.Provider != to {
				t.Errorf("%s: %+v, %v", what, k, err)
			}
		}
	}
	_, err := p.keys.RewrapManyDataKey(ctx, bson.D{}, encryption.RewrapOptions{MasterKey: kms.LocalKey{}})
	wantError(t, "case 2", err, "without Provider", "")
}

// Prose tests 17, "On-demand GCP Credentials", and 19, "Azure IMDS Credentials Integration Test",
// with stand-ins for the metadata services of the machines.
func TestProseMachineCredentials(t *testing.T) {
	p, all, _ := startServices(t)
	for provider, c := range map[string]struct {
		p   kms.Provider
		key kms.MasterKey
	}{
		"gcp":   {kms.GCP{}, masterKeys["gcp"]},
		"azure": {kms.Azure{}, kms.AzureKey{VaultEndpoint: "https://keyvault-drivers-2411.vault.azure.net/keys/", Name: "KEY-NAME"}},
	} {
		o := all
		o.KMS = kms.Providers{provider: c.p}
		o.TLS = map[string]*tls.Config{provider: all.TLS[provider]}
		for _, attached := range []bool{false, true} {
			metadata(t, func(r *http.Request, w http.ResponseWriter) {
				switch {
				case !attached:
					w.WriteHeader(http.StatusNotFound)
				case r.URL.Host == "169.254.169.254" && r.Header.Get("Metadata") == "true":
					io.WriteString(w, `{"access_token": "`+fakekms.AzureToken+`", "expires_in": "3599"}`)
				case r.URL.Host == "metadata.google.internal" && r.Header.Get("Metadata-Flavor") == "Google" &&
					r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token":
					io.WriteString(w, `{"access_token": "`+fakekms.GCPToken+`"}`)
				default:
					w.WriteHeader(http.StatusTeapot)
				}
			})
			client := p.encryption(encryption.Options{KeyOptions: o})
			id, err := createKey(t, client, provider, c.key)
			switch {
			case !attached:
				wantError(t, provider, err, "404", provider)
			case err != nil:
				t.Errorf("%s: %v", provider, err)
			default:
				usable(t, client, provider, id)
			}
		}
	}
}

// Prose test 18, "Azure IMDS Credentials", through a Client. That a request takes ten seconds at
// most, and how long a token is used, is tested in internal/keyservice.
func TestProseAzureMetadata(t *testing.T) {
	p, all, _ := startServices(t)
	o := all
	o.KMS = kms.Providers{"azure": kms.Azure{}}
	o.TLS = map[string]*tls.Config{"azure": all.TLS["azure"]}
	for _, c := range []struct {
		name   string
		answer func(r *http.Request, w http.ResponseWriter)
		want   string // in the error, "" for none
	}{
		{"success", func(_ *http.Request, w http.ResponseWriter) {
			io.WriteString(w, `{"access_token": "`+fakekms.AzureToken+`", "expires_in": "70", "token_type": "Bearer", "resource": "https://vault.azure.net"}`)
		}, ""},
		{"empty JSON", func(_ *http.Request, w http.ResponseWriter) { io.WriteString(w, `{}`) }, "expires_in"},
		{"bad JSON", func(_ *http.Request, w http.ResponseWriter) { io.WriteString(w, `{"key": "value"`) }, "JSON"},
		{"HTTP 404", func(_ *http.Request, w http.ResponseWriter) { w.WriteHeader(404) }, "404"},
		{"HTTP 500", func(_ *http.Request, w http.ResponseWriter) { w.WriteHeader(500) }, "500"},
		{"slow response", func(r *http.Request, _ http.ResponseWriter) { <-r.Context().Done() }, context.DeadlineExceeded.Error()},
	} {
		metadata(t, c.answer)
		client := p.encryption(encryption.Options{KeyOptions: o})
		ctx, cancel := t.Context(), func() {}
		if c.name == "slow response" {
			ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond) // long enough to get to the service
		}
		_, err := client.CreateDataKey(ctx, "azure", encryption.DataKeyOptions{MasterKey: masterKeys["azure"]})
		cancel()
		if c.want != "" {
			wantError(t, c.name, err, c.want, "azure")
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Prose test 24, "KMS Retry Tests".
func TestProseRetries(t *testing.T) {
	const at = "127.0.0.1:9003"
	for provider, key := range map[string]kms.MasterKey{
		"aws":   kms.AWSKey{Region: "foo", Key: "bar", Endpoint: at},
		"azure": kms.AzureKey{VaultEndpoint: at, Name: "foo"},
		"gcp":   kms.GCPKey{ProjectID: "foo", Location: "bar", KeyRing: "baz", Name: "qux", Endpoint: at},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel() // between attempts there is a wait
			p, all, s := startServices(t)
			all.KMS = kms.Providers{
				"aws":   all.KMS["aws"],
				"azure": kms.Azure{TenantID: "t", ClientID: "c", ClientSecret: "s", IdentityPlatformEndpoint: at},
				"gcp":   kms.GCP{Email: "e", PrivateKey: s.GCPPrivateKey(), Endpoint: at},
			}
			delete(all.TLS, "kmip")
			for kind, fail := range map[string]func(int){"network": s.FailConnections, "http": s.FailHTTP} {
				client := p.encryption(encryption.Options{KeyOptions: all})
				fail(1)
				id, err := createKey(t, client, provider, key)
				if err != nil {
					t.Errorf("%s: %v", kind, err)
					continue
				}
				fail(1)
				if _, err := client.Encrypt(t.Context(), int32(123), encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id}); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
				fail(4)
				_, err = createKey(t, client, provider, key)
				wantError(t, kind, err, "KMS request failed after maximum of 3 attempts", provider)
				fail(0)
			}
		})
	}
}

// Prose test 28, "KMS Connect Callback".
func TestProseConnectCallback(t *testing.T) {
	ctx := t.Context()
	p, all, s := startServices(t)
	all.KMS = kms.Providers{"aws": all.KMS["aws"]}
	all.TLS = map[string]*tls.Config{"aws": s.TLS()}
	type connect = func(context.Context, string) (net.Conn, error)
	through := func(dial connect) encryption.KeyOptions {
		o := all
		o.KMSConnect = dial
		return o
	}
	// proxied returns a proxy and the callback that connects through it.
	proxied := func(secure bool) (*fakekms.Proxy, connect) {
		proxy, err := s.StartProxy(secure)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		var settings *tls.Config
		if secure {
			settings = s.TLS()
		}
		return proxy, func(ctx context.Context, address string) (net.Conn, error) { return proxy.Dial(ctx, address, settings) }
	}
	for n, secure := range []bool{false, true} {
		proxy, dial := proxied(secure)
		if _, err := createKey(t, p.encryption(encryption.Options{KeyOptions: through(dial)}), "aws", masterKeys["aws"]); err != nil || proxy.Count() < 1 {
			t.Errorf("case %d: %v, %d connections", n+1, err, proxy.Count())
		}
	}

	_, direct := proxied(false)
	id, err := createKey(t, p.encryption(encryption.Options{KeyOptions: through(direct)}), "aws", masterKeys["aws"])
	if err != nil {
		t.Fatal(err)
	}
	proxy, dial := proxied(false)
	client, _ := p.auto(encryption.AutoOptions{KeyOptions: through(dial), Schemas: map[string]any{"db.coll": bson.D{
		{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{{Key: "encrypted_string", Value: bson.D{{Key: "encrypt", Value: bson.D{
			{Key: "keyId", Value: bson.A{id}}, {Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(encryption.Deterministic)},
		}}}}}},
	}}}, allium.ClientOptions{})
	coll := allium.CollectionOf[bson.Raw](client.Database("db"), "coll")
	if _, err := coll.InsertOne(ctx, concat(bson.D{{Key: "_id", Value: 1}, {Key: "encrypted_string", Value: "hello"}})); err != nil {
		t.Fatal("case 3:", err)
	}
	if found, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil || found.Lookup("encrypted_string").String() != `"hello"` {
		t.Errorf("case 3: %s, %v", found, err)
	}
	stored, err := allium.CollectionOf[bson.Raw](p.plain.Database("db"), "coll").FindOne(ctx, bson.D{{Key: "_id", Value: 1}})
	if _, ok := stored.Lookup("encrypted_string").Binary(); err != nil || !ok {
		t.Errorf("case 3: stored as %s, %v", stored, err)
	}
	if proxy.Count() != 1 {
		t.Errorf("case 3: %d connections", proxy.Count())
	}

	refused := errors.New("no proxy today")
	_, err = createKey(t, p.encryption(encryption.Options{KeyOptions: through(func(context.Context, string) (net.Conn, error) { return nil, refused })}), "aws", masterKeys["aws"])
	if wantError(t, "case 4", err, "no proxy today", "aws"); !errors.Is(err, refused) {
		t.Errorf("case 4: %v is not the callback's error", err)
	}

	var left time.Duration
	timed := through(func(ctx context.Context, address string) (net.Conn, error) {
		if deadline, ok := ctx.Deadline(); ok {
			left = time.Until(deadline)
		}
		return direct(ctx, address)
	})
	timed.KeyVaultClient, _ = p.open(allium.ClientOptions{Timeout: new(time.Minute)})
	if _, err := createKey(t, p.encryption(encryption.Options{KeyOptions: timed}), "aws", masterKeys["aws"]); err != nil || left <= 0 {
		t.Errorf("case 5: %v, the callback had %v", err, left)
	}

	var addresses []string
	retried := through(func(ctx context.Context, address string) (net.Conn, error) {
		if addresses = append(addresses, address); len(addresses) == 1 {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("network is unreachable")}
		}
		return direct(ctx, address)
	})
	if _, err := createKey(t, p.encryption(encryption.Options{KeyOptions: retried}), "aws", masterKeys["aws"]); err != nil ||
		strings.Join(addresses, " ") != "kms.us-east-1.amazonaws.com:443 kms.us-east-1.amazonaws.com:443" {
		t.Errorf("case 6: %v, addresses %v", err, addresses)
	}
}
