package keyservice

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/auth"
	"allium/encryption/kms"
	"allium/internal/fakekms"
)

// settings returns those of a client that has a certificate, for every provider.
func settings(s *fakekms.Server, p kms.Providers) map[string]*tls.Config {
	out := map[string]*tls.Config{}
	for name := range p {
		if _, local := p[name].(kms.Local); !local {
			out[name] = s.ClientTLS()
		}
	}
	return out
}

func goodProviders(s *fakekms.Server) kms.Providers {
	return kms.Providers{
		"local":     kms.Local{Key: bytes.Repeat([]byte{7}, kms.LocalKeySize)},
		"local:two": kms.Local{Key: bytes.Repeat([]byte{8}, kms.LocalKeySize)},
		"aws":       kms.AWS{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey},
		"aws:temporary": kms.AWS{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey,
			SessionToken: fakekms.AWSSessionToken},
		"azure": kms.Azure{TenantID: fakekms.AzureTenantID, ClientID: fakekms.AzureClientID, ClientSecret: fakekms.AzureClientSecret},
		"gcp":   kms.GCP{Email: fakekms.GCPEmail, PrivateKey: s.GCPPrivateKey()},
		"kmip":  kms.KMIP{Endpoint: "localhost:5698"},
	}
}

// masterKeys has several master keys for each provider of goodProviders.
var masterKeys = map[string][]kms.MasterKey{
	"local":     {kms.LocalKey{}},
	"local:two": {kms.LocalKey{}},
	"aws": {
		kms.AWSKey{Region: "us-east-1", Key: "arn:aws:kms:us-east-1:579766882180:key/89fcc2c4-08b0-4bd9-9f25-e30687b580d0"},
		kms.AWSKey{Region: "us-east-1", Key: "arn", Endpoint: "kms.us-east-1.amazonaws.com"},
		kms.AWSKey{Region: "us-east-1", Key: "arn", Endpoint: "kms.us-east-1.amazonaws.com:443"},
	},
	"aws:temporary": {kms.AWSKey{Region: "eu-west-1", Key: "arn"}},
	"azure":         {kms.AzureKey{VaultEndpoint: "example.vault.azure.net", Name: "k"}, kms.AzureKey{VaultEndpoint: "example.vault.azure.net", Name: "k", Version: "v1"}},
	"gcp": {
		kms.GCPKey{ProjectID: "p", Location: "global", KeyRing: "r", Name: "k"},
		kms.GCPKey{ProjectID: "p", Location: "global", KeyRing: "r", Name: "k", Version: "1", Endpoint: "cloudkms.googleapis.com:443"},
	},
	"kmip": {
		kms.KMIPKey{}, kms.KMIPKey{ID: "1"}, kms.KMIPKey{ID: "1", Endpoint: "localhost:5698"},
		kms.KMIPKey{Delegated: true}, kms.KMIPKey{Delegated: true, ID: "11"},
	},
}

func TestRoundTrip(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, goodProviders(s))
	for provider, keys := range masterKeys {
		for i, key := range keys {
			stored, wrapped, err := c.Wrap(t.Context(), provider, key, material(3))
			if err != nil {
				t.Errorf("%s %d: %v", provider, i, err)
				continue
			}
			if bytes.Contains(wrapped, material(3)) {
				t.Errorf("%s: the wrapped key shows the material", provider)
			}
			if k, ok := stored.(kms.KMIPKey); ok && k.ID == "" {
				t.Errorf("kmip %d: no key id to store", i)
			}
			_, parsed, err := kms.MasterKeyFromBSON(kms.AppendMasterKey(nil, provider, stored))
			if err != nil || parsed != stored {
				t.Errorf("%s: stored as %+v, %v", provider, parsed, err)
			}
			got, err := c.Unwrap(t.Context(), provider, parsed, wrapped)
			if err != nil || !bytes.Equal(got, material(3)) {
				t.Errorf("%s %d: unwrapped %x, %v", provider, i, got, err)
			}
			for _, wrong := range [][]byte{nil, wrapped[:len(wrapped)-1], append(bytes.Clone(wrapped), 0), flip(wrapped, 20), flip(wrapped, len(wrapped)-1)} {
				// A key that the server itself unwraps has no check of its own: a changed IV
				// changes the first block only.
				if got, err := c.Unwrap(t.Context(), provider, parsed, wrong); err == nil && bytes.Equal(got, material(3)) {
					t.Errorf("%s: a changed key is unwrapped", provider)
				} else if err != nil {
					checkSecrets(t, err)
				}
			}
		}
	}
}

func flip(data []byte, i int) []byte {
	out := bytes.Clone(data)
	out[i] ^= 1
	return out
}

// Prose test 7, "Custom Endpoint Test", the cases that fail.
func TestProseEndpoints(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, goodProviders(s))
	invalid := newClient(t, s, kms.Providers{
		"azure": kms.Azure{TenantID: "t", ClientID: "c", ClientSecret: "s", IdentityPlatformEndpoint: "doesnotexist.invalid:443"},
		"gcp":   kms.GCP{Email: "e", PrivateKey: s.GCPPrivateKey(), Endpoint: "doesnotexist.invalid:443"},
		"kmip":  kms.KMIP{Endpoint: "doesnotexist.invalid:5698"},
	})
	for _, test := range []struct {
		n        int
		c        *Client
		provider string
		key      kms.MasterKey
		want     string
	}{
		{4, c, "kmip", kms.KMIPKey{ID: "1", Endpoint: "localhost:12345"}, "connection refused"},
		{5, c, "aws", kms.AWSKey{Region: "us-east-1", Key: "arn", Endpoint: "kms.us-east-2.amazonaws.com"}, "us-east-1"},
		{6, c, "aws", kms.AWSKey{Region: "us-east-1", Key: "arn", Endpoint: "doesnotexist.invalid"}, "doesnotexist.invalid"},
		{7, invalid, "azure", masterKeys["azure"][0], "doesnotexist.invalid"},
		{8, invalid, "gcp", masterKeys["gcp"][0], "doesnotexist.invalid"},
		{9, c, "gcp", kms.GCPKey{ProjectID: "p", Location: "l", KeyRing: "r", Name: "k", Endpoint: "doesnotexist.invalid:443"}, "Invalid KMS response"},
		{10, invalid, "kmip", kms.KMIPKey{ID: "1"}, "doesnotexist.invalid"},
		{12, c, "kmip", kms.KMIPKey{ID: "1", Endpoint: "doesnotexist.invalid:5698"}, "doesnotexist.invalid"},
	} {
		_, _, err := test.c.Wrap(t.Context(), test.provider, test.key, material(0))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("case %d: %v, want %q in it", test.n, err, test.want)
			continue
		}
		var e *kms.Error
		if !errors.As(err, &e) || e.Provider != test.provider || e.Endpoint == "" {
			t.Errorf("case %d: %#v", test.n, err)
		}
		checkSecrets(t, err)
	}
}

// Prose tests 10, "KMS TLS Tests", and 11, "KMS TLS Options Tests".
func TestProseTLS(t *testing.T) {
	s := startServer(t)
	at := func(port string) (kms.Providers, map[string]kms.MasterKey) {
		p := kms.Providers{
			"aws":   kms.AWS{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey},
			"azure": kms.Azure{TenantID: "t", ClientID: "c", ClientSecret: "s", IdentityPlatformEndpoint: "127.0.0.1:" + port},
			"gcp":   kms.GCP{Email: "e", PrivateKey: s.GCPPrivateKey(), Endpoint: "127.0.0.1:" + port},
			"kmip":  kms.KMIP{Endpoint: "127.0.0.1:" + port},
		}
		if port == "9002" {
			p["kmip"] = kms.KMIP{Endpoint: "127.0.0.1:5698"}
		}
		return p, map[string]kms.MasterKey{
			"aws":   kms.AWSKey{Region: "us-east-1", Key: "arn", Endpoint: "127.0.0.1:" + port},
			"azure": kms.AzureKey{VaultEndpoint: "doesnotexist.invalid", Name: "foo"},
			"gcp":   kms.GCPKey{ProjectID: "foo", Location: "bar", KeyRing: "baz", Name: "foo"},
			"kmip":  kms.KMIPKey{},
		}
	}
	run := func(name, port string, tlsOf func() *tls.Config, want map[string]string) {
		providers, keys := at(port)
		all, options := kms.Providers{}, map[string]*tls.Config{}
		for provider, p := range providers { // case 6: named ones, too
			all[provider], all[provider+":named"] = p, p
			options[provider], options[provider+":named"] = tlsOf(), tlsOf()
		}
		c, err := New(Config{Providers: naming(all, testHosts...), TLS: options, Dial: s.Dial})
		if err != nil {
			t.Fatal(err)
		}
		for provider := range all {
			kind, _, _ := strings.Cut(provider, ":")
			text := want[kind]
			if text == "" {
				text = want[""]
			}
			_, _, err := c.Wrap(t.Context(), provider, keys[kind], material(0))
			if text == "ok" && err != nil || text != "ok" && (err == nil || !strings.Contains(err.Error(), text)) {
				t.Errorf("%s, %s: %v, want %q", name, provider, err, text)
			}
		}
	}
	run("no client certificate", "9002", s.TLS, map[string]string{"": "certificate required"})
	run("with TLS", "9002", s.ClientTLS, map[string]string{"aws": "parse error", "azure": "HTTP status=404", "gcp": "HTTP status=404", "kmip": "ok"})
	run("expired", "9000", s.TLS, map[string]string{"": "certificate has expired"})
	run("wrong host", "9001", s.TLS, map[string]string{"": "127.0.0.1"})
}

func TestInsecureTLS(t *testing.T) {
	for _, test := range []struct {
		name string
		tls  map[string]*tls.Config
		want string
	}{
		{"insecure", map[string]*tls.Config{"aws": {InsecureSkipVerify: true}}, "insecure TLS options prohibited"},
		{"other provider", map[string]*tls.Config{"gcp": {}}, "not configured"},
		{"nil", map[string]*tls.Config{"aws": nil}, ""},
	} {
		_, err := New(Config{Providers: kms.Providers{"aws": kms.AWS{AccessKeyID: "a", SecretAccessKey: "b"}}, TLS: test.tls})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Prose test 24, "KMS Retry Tests".
func TestProseRetry(t *testing.T) {
	s := startServer(t)
	const at = "127.0.0.1:9003"
	c := newClient(t, s, kms.Providers{
		"aws":   kms.AWS{AccessKeyID: "a", SecretAccessKey: "b"},
		"azure": kms.Azure{TenantID: "t", ClientID: "c", ClientSecret: "s", IdentityPlatformEndpoint: at},
		"gcp":   kms.GCP{Email: "e", PrivateKey: s.GCPPrivateKey(), Endpoint: at},
	})
	for provider, key := range map[string]kms.MasterKey{
		"aws":   kms.AWSKey{Region: "foo", Key: "bar", Endpoint: at},
		"azure": kms.AzureKey{VaultEndpoint: at, Name: "foo"},
		"gcp":   kms.GCPKey{ProjectID: "foo", Location: "bar", KeyRing: "baz", Name: "qux", Endpoint: at},
	} {
		for kind, fail := range map[string]func(int){"network": s.FailConnections, "http": s.FailHTTP} {
			fail(1)
			_, wrapped, err := c.Wrap(t.Context(), provider, key, material(1))
			if err != nil {
				t.Errorf("%s, %s: %v", provider, kind, err)
				continue
			}
			fail(1)
			if got, err := c.Unwrap(t.Context(), provider, key, wrapped); err != nil || !bytes.Equal(got, material(1)) {
				t.Errorf("%s, %s: %x, %v", provider, kind, got, err)
			}
			c.tokens = map[tokenKey]*token{}
			fail(4)
			if _, _, err := c.Wrap(t.Context(), provider, key, material(1)); err == nil || !strings.Contains(err.Error(), "KMS request failed after maximum of 3 attempts") {
				t.Errorf("%s, %s, four failures: %v", provider, kind, err)
			}
			fail(0)
		}
	}
}

// What may be tried again, by the status of an answer.
func TestRetryable(t *testing.T) {
	again := map[string]string{"aws": "408 429 500 502 503 509", "azure": "408 429 500 502 503 504", "gcp:x": "408 429 500 501 502 503 504 509 599", "kmip": ""}
	for provider, list := range again {
		for status := 300; status < 600; status++ {
			want := strings.Contains(list, fmt.Sprint(status)) || provider == "gcp:x" && status >= 500
			if retryable(provider, status) != want {
				t.Errorf("%s, %d: %v", provider, status, !want)
			}
		}
	}
	for n := 1; n < 40; n++ {
		if d := backoff(min(n, 20)); d < 0 || d > maxBackoff {
			t.Errorf("backoff %d: %v", n, d)
		}
	}
}

// A redirection is an error, and nothing is sent to where it leads.
func TestRedirect(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, goodProviders(s))
	s.Answer(func(r *http.Request) (int, string) { return http.StatusTemporaryRedirect, "" })
	_, _, err := c.Wrap(t.Context(), "aws", masterKeys["aws"][0], material(0))
	var e *kms.Error
	if !errors.As(err, &e) || e.Status != 307 || e.Provider != "aws" || e.Endpoint != "kms.us-east-1.amazonaws.com:443" {
		t.Errorf("%#v", err)
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// An answer without an end is cut off.
func TestEndlessAnswer(t *testing.T) {
	s := startServer(t)
	port, err := s.Serve(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		for chunk := bytes.Repeat([]byte(" "), 64<<10); ; {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, s, goodProviders(s))
	_, _, err = c.Wrap(t.Context(), "aws", kms.AWSKey{Region: "r", Key: "k", Endpoint: "127.0.0.1:" + port}, material(0))
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

// A service that does not answer holds a request until the context ends, and the error tells both.
func TestContextEnds(t *testing.T) {
	s := startServer(t)
	arrived := make(chan bool, 8)
	port, err := s.Serve(func(conn net.Conn) {
		conn.Read(make([]byte, 1))
		arrived <- true
		io.Copy(io.Discard, conn)
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, s, goodProviders(s))
	for provider, key := range map[string]kms.MasterKey{
		"aws":  kms.AWSKey{Region: "r", Key: "k", Endpoint: "127.0.0.1:" + port},
		"kmip": kms.KMIPKey{ID: "1", Endpoint: "127.0.0.1:" + port},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		_, _, err := c.Wrap(ctx, provider, key, material(0))
		var e *kms.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) {
			t.Errorf("%s: %v", provider, err)
		}
	}
}

// One token serves all requests until it expires, and goroutines that need one at the same time
// fetch it once.
func TestTokenCache(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, goodProviders(s))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, _, err := c.Wrap(t.Context(), "azure", masterKeys["azure"][0], material(0)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	logins := func() (n int) {
		for _, r := range s.Requests() {
			if strings.HasSuffix(r.Path, "/token") {
				n++
			}
		}
		return n
	}
	if n := logins(); n != 1 {
		t.Errorf("%d logins", n)
	}
	for _, token := range c.tokens {
		token.expires = time.Now()
	}
	c.Wrap(t.Context(), "azure", masterKeys["azure"][0], material(0))
	if n := logins(); n != 2 {
		t.Errorf("%d logins after the token has expired", n)
	}
}

// A token that was given for one service is not sent to a host of another domain, also when the
// program names that and the token is in the cache.
func TestTokensStayInTheirDomain(t *testing.T) {
	s := startServer(t)
	p := goodProviders(s)
	c, err := New(Config{Providers: naming(p, "*.attacker.invalid"), Dial: s.Dial, TLS: settings(s, p)})
	if err != nil {
		t.Fatal(err)
	}
	c.backoff = func(int) time.Duration { return 0 }
	wrap := func(provider string, key kms.MasterKey) error {
		_, _, err := c.Wrap(t.Context(), provider, key, material(0))
		return err
	}
	if err := errors.Join(wrap("gcp", masterKeys["gcp"][0]), wrap("azure", masterKeys["azure"][0])); err != nil {
		t.Fatal(err)
	}
	before := len(c.tokens)
	gcp, azure := masterKeys["gcp"][0].(kms.GCPKey), masterKeys["azure"][0].(kms.AzureKey)
	gcp.Endpoint, azure.VaultEndpoint = "keys.attacker.invalid", "keys.attacker.invalid"
	if err := wrap("gcp", gcp); err == nil || !strings.Contains(err.Error(), "Invalid KMS response") {
		t.Errorf("gcp: %v, want the identity provider's refusal", err)
	}
	if len(c.tokens) != before {
		t.Error("the failed login has left a token in the cache")
	}
	if err := wrap("azure", azure); err == nil {
		t.Error("azure: the attacker's host has answered")
	}
	scopes := map[string]bool{}
	for key := range c.tokens {
		if key.provider == "azure" {
			scopes[key.scope] = true
		}
	}
	if !scopes["https://attacker.invalid/.default"] || len(scopes) != 2 {
		t.Errorf("azure: tokens for %v", scopes)
	}
}

// Prose test 18, "Azure IMDS Credentials".
func TestProseAzureMachine(t *testing.T) {
	var params atomic.Value
	params.Store("")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "169.254.169.254" || r.Header.Get("Metadata") != "true" || r.Header.Get("Accept") != "application/json" ||
			r.URL.Path != "/metadata/identity/oauth2/token" || r.URL.Query().Get("resource") != "https://vault.azure.net" || r.URL.Query().Get("api-version") != "2018-02-01" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		switch params.Load() {
		case "":
			io.WriteString(w, `{"access_token": "magic-cookie", "expires_in": "70", "token_type": "Bearer", "resource": "https://vault.azure.net"}`)
		case "empty-json":
			io.WriteString(w, "{}")
		case "bad-json":
			io.WriteString(w, `{"key": "value"`)
		case "404":
			http.NotFound(w, r)
		case "500":
			w.WriteHeader(500)
		case "no-expiry":
			io.WriteString(w, `{"access_token": "magic-cookie"}`)
		}
	}))
	defer service.Close()
	c, err := New(Config{Providers: kms.Providers{"azure": kms.Azure{}}})
	if err != nil {
		t.Fatal(err)
	}
	c.meta = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, service.Listener.Addr().String())
	}}}
	f, err := c.azureMachineToken(t.Context())
	if err != nil || f.value != "magic-cookie" {
		t.Errorf("token %q, %v", string(f.value), err)
	}
	if left := time.Until(f.expires); left > 10*time.Second || left < -time.Minute { // seventy seconds, less the margin of a minute
		t.Errorf("the token is used for %v", left)
	}
	for _, p := range []string{"empty-json", "bad-json", "404", "500", "no-expiry"} {
		params.Store(p)
		if _, err := c.azureMachineToken(t.Context()); err == nil {
			t.Errorf("%s: no error", p)
		}
	}
	synctest.Test(t, func(t *testing.T) { // slow
		c.meta = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		start := time.Now()
		if _, err := c.azureMachineToken(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != metadataTimeout {
			t.Errorf("slow: %v after %v", err, time.Since(start))
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Prose tests 17 and 19, as far as they need no machine of a cloud: tokens of a metadata service
// reach the key service.
func TestMachineTokens(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, kms.Providers{"azure": kms.Azure{}, "gcp": kms.GCP{}})
	ok := true
	c.meta = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		switch {
		case !ok:
			w.WriteHeader(404)
		case r.URL.Host == "169.254.169.254":
			io.WriteString(w, `{"access_token": "fake-azure-token", "expires_in": "3599"}`)
		case r.URL.Host == "metadata.google.internal" && r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" && r.Header.Get("Metadata-Flavor") == "Google":
			io.WriteString(w, `{"access_token": "fake-gcp-token"}`)
		}
		return w.Result(), nil
	})}
	for _, provider := range []string{"azure", "gcp"} {
		ok = false
		if _, _, err := c.Wrap(t.Context(), provider, masterKeys[provider][0], material(0)); err == nil {
			t.Errorf("%s: no error without a token", provider)
		}
		ok = true
		if _, _, err := c.Wrap(t.Context(), provider, masterKeys[provider][0], material(0)); err != nil {
			t.Error(err)
		}
	}
}

// Prose tests 15, "On-demand AWS Credentials", and 26, "Custom AWS Credentials".
func TestProseAWSCredentials(t *testing.T) {
	s := startServer(t)
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	key := masterKeys["aws"][0]
	t.Setenv("AWS_ACCESS_KEY_ID", "wrong")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	c := newClient(t, s, kms.Providers{"aws": kms.AWS{}})
	if _, _, err := c.Wrap(t.Context(), "aws", key, material(0)); err == nil {
		t.Error("wrong credentials of the environment: no error")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", fakekms.AWSAccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", fakekms.AWSSecretAccessKey)
	if _, _, err := c.Wrap(t.Context(), "aws", key, material(0)); err != nil {
		t.Error(err)
	}
	calls := 0
	callback := func(context.Context) (auth.AWSCredentials, error) {
		calls++
		return auth.AWSCredentials{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey}, nil
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "wrong")
	c = newClient(t, s, kms.Providers{"aws": kms.AWS{Credentials: callback}})
	if _, _, err := c.Wrap(t.Context(), "aws", key, material(0)); err != nil || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if _, err := New(Config{Providers: kms.Providers{"aws": kms.AWS{AccessKeyID: "a", SecretAccessKey: "b", Credentials: callback}}}); err == nil {
		t.Error("keys and a callback: no error")
	}
	c = newClient(t, s, kms.Providers{"aws": kms.AWS{Credentials: func(context.Context) (auth.AWSCredentials, error) {
		return auth.AWSCredentials{}, errors.New("vault is sealed")
	}}})
	if _, _, err := c.Wrap(t.Context(), "aws", key, material(0)); err == nil || !strings.Contains(err.Error(), "vault is sealed") {
		t.Error(err)
	}
}

// Prose test 28, "KMS Connect Callback", cases 1, 2, 4, 5 and 6.
func TestProseConnect(t *testing.T) {
	s := startServer(t)
	key := masterKeys["aws"][0]
	client := func(dial func(ctx context.Context, address string) (net.Conn, error)) *Client {
		p := kms.Providers{"aws": goodProviders(s)["aws"]}
		c, err := New(Config{Providers: p, TLS: map[string]*tls.Config{"aws": s.TLS()}, Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		c.backoff = func(int) time.Duration { return 0 }
		return c
	}
	for _, secure := range []bool{false, true} {
		proxy, err := s.StartProxy(secure)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		var settings *tls.Config
		if secure {
			settings = s.TLS()
		}
		var left time.Duration
		var addresses []string
		fail := true
		c := client(func(ctx context.Context, address string) (net.Conn, error) {
			if deadline, ok := ctx.Deadline(); ok {
				left = time.Until(deadline)
			}
			addresses = append(addresses, address)
			if fail {
				fail = false
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused once")}
			}
			return proxy.Dial(ctx, address, settings)
		})
		if _, _, err := c.Wrap(t.Context(), "aws", key, material(0)); err != nil {
			t.Error(err)
		}
		if proxy.Count() != 1 || left <= 0 || strings.Join(addresses, " ") != "kms.us-east-1.amazonaws.com:443 kms.us-east-1.amazonaws.com:443" {
			t.Errorf("%d connections, %v left, addresses %v", proxy.Count(), left, addresses)
		}
	}
	c := client(func(context.Context, string) (net.Conn, error) { return nil, errors.New("no way") })
	if _, _, err := c.Wrap(t.Context(), "aws", key, material(0)); err == nil || !strings.Contains(err.Error(), "no way") {
		t.Error(err)
	}
	c = client(func(context.Context, string) (net.Conn, error) { return nil, nil })
	if _, _, err := c.Wrap(t.Context(), "aws", key, material(0)); err == nil {
		t.Error("no connection and no error: no error")
	}
}

// What cannot work is said before anything is sent.
func TestMisuse(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, goodProviders(s))
	for _, test := range []struct {
		provider string
		key      kms.MasterKey
		material []byte
		want     string
	}{
		{"aws:other", masterKeys["aws"][0], material(0), "requested kms provider not configured: `aws:other`"},
		{"aws", nil, material(0), "needs a master key"},
		{"aws", kms.LocalKey{}, material(0), "of the kind"},
		{"aws", kms.AWSKey{Region: "r"}, material(0), "Region and Key"},
		{"aws", masterKeys["aws"][0], material(0)[1:], "95 bytes"},
		{"gcp", kms.GCPKey{ProjectID: "../x", Location: "l", KeyRing: "r", Name: "k"}, material(0), "Invalid character"},
	} {
		if _, _, err := c.Wrap(t.Context(), test.provider, test.key, test.material); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.provider, err, test.want)
		}
	}
	if _, err := c.Unwrap(t.Context(), "kmip", kms.KMIPKey{}, []byte("x")); err == nil {
		t.Error("a wrapped key without an id: no error")
	}
}
