package keyservice

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/auth"
	"allium/encryption/kms"
	"allium/internal/ocsptest"
)

// keysAt returns a master key of each kind on a host.
func keysAt(host string) map[string]kms.MasterKey {
	return map[string]kms.MasterKey{
		"aws": kms.AWSKey{Region: "eu-central-1", Key: "k", Endpoint: host}, "azure": kms.AzureKey{VaultEndpoint: host, Name: "k"},
		"gcp": kms.GCPKey{ProjectID: "p", Location: "l", KeyRing: "r", Name: "k", Endpoint: host}, "kmip": kms.KMIPKey{ID: "1", Endpoint: host},
	}
}

// A key document can name any host. Nothing is sent to one that is neither the service's own nor
// named by the program, neither to wrap nor to unwrap, by whatever credential.
func TestHostsOfKeys(t *testing.T) {
	type hosts map[string][]string
	providers := []kms.Providers{
		{"aws": kms.AWS{}, "azure": kms.Azure{}, "gcp": kms.GCP{}, "kmip": kms.KMIP{}},
		{"aws": kms.AWS{AccessKeyID: "a", SecretAccessKey: "b"}, "azure": kms.Azure{AccessToken: "t"}, "gcp": kms.GCP{AccessToken: "t"}, "kmip": kms.KMIP{Endpoint: "kmip.example:5696"}},
		{"aws:x": kms.AWS{AccessKeyID: "a", SecretAccessKey: "b"}, "azure:x": kms.Azure{AccessToken: "t"}, "gcp:x": kms.GCP{AccessToken: "t"}, "kmip:x": kms.KMIP{Endpoint: "kmip.example"}},
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	run := func(named []string, cases hosts, reached bool) {
		for _, p := range providers {
			var mu sync.Mutex
			dialed := map[string]bool{}
			c, err := New(Config{Providers: naming(p, named...), Dial: func(_ context.Context, address string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				dialed[address] = true
				return nil, errors.New("reached")
			}})
			if err != nil {
				t.Fatal(err)
			}
			c.backoff = nil // a panic, if there is another attempt after a host was refused
			c.meta = &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("reached") })}
			for name := range p {
				kind, _, _ := strings.Cut(name, ":")
				for _, host := range cases[kind] {
					key := keysAt(host)[kind]
					if kms.CheckMasterKey(name, key) != nil {
						continue
					}
					ctx := t.Context()
					if reached { // one attempt
						canceled, cancel := context.WithCancel(ctx)
						cancel()
						ctx = canceled
					}
					_, _, err := c.Wrap(ctx, name, key, material(0))
					_, again := c.Unwrap(ctx, name, key, []byte("wrapped"))
					for _, err := range []error{err, again} {
						var e *kms.Error
						refused := errors.As(err, &e) && strings.Contains(err.Error(), "names a host") && strings.Contains(err.Error(), ".Hosts")
						if err == nil || refused == reached && !strings.Contains(err.Error(), "not the address of a host") {
							t.Errorf("%s at %s: %v", name, host, err)
						}
					}
				}
			}
			if !reached && len(dialed) > 0 {
				t.Errorf("dialed %v", dialed)
			}
		}
	}
	own := hosts{
		"aws": {"", "kms.eu-central-1.amazonaws.com", "KMS.us-east-1.AmazonAWS.com:443", "kms-fips.us-gov-west-1.amazonaws.com", "kms.cn-north-1.amazonaws.com.cn",
			"kms.eusc-de-east-1.amazonaws.eu", "kms.us-iso-east-1.c2s.ic.gov", "kms.eu-west-1.api.aws", "vpce-0a1b-x.kms.us-east-1.vpce.amazonaws.com",
			"vpce-0a1b-x-us-east-1a.kms-fips.us-east-1.vpce.amazonaws.com:443"},
		"azure": {"a.vault.azure.net", "https://a.vault.azure.net/keys/", "A-1.Vault.Azure.cn:443", "a.vault.usgovcloudapi.net", "a.managedhsm.azure.net", "a.vault.sovcloud-api.fr"},
		"gcp": {"", "cloudkms.googleapis.com", "cloudkms.googleapis.com:443", "cloudkms.europe-west3.rep.googleapis.com", "europe-west3-cloudkms.googleapis.com",
			"cloudkms-mine.p.googleapis.com", "cloudkms.mtls.googleapis.com", "cloudkms.s3nsapis.fr"},
	}
	run(nil, own, true)
	strangers := []string{"attacker.example", "attacker.example:443", "https://attacker.example/x", "127.0.0.1", "[::1]:443", "localhost.localdomain", "169.254.169.254"}
	foreign := hosts{
		"aws": append([]string{"kms.s3.amazonaws.com", "kms.s3-us-west-2.amazonaws.com", "abc.execute-api.us-east-1.amazonaws.com", "x.elb.us-east-1.amazonaws.com",
			"kms.us-east-1.amazonaws.com.attacker.example", "kms.us-east-1.amazonaws.com.", "xkms.us-east-1.amazonaws.com", "kms.us-east-1.attacker-amazonaws.com",
			"vpce-svc-1.us-east-1.vpce.amazonaws.com", "kms.eu-central-1.amazonaws.com:443:443"}, strangers...),
		"azure": append([]string{"vault.azure.net", "avault.azure.net", "a.b.vault.azure.net", "a.blob.core.windows.net", "a.vault.azure.net.attacker.example", "a.azurewebsites.net",
			"a.vault.azure.com"}, strangers...),
		"gcp": append([]string{"storage.googleapis.com", "bucket.storage.googleapis.com", "xcloudkms.googleapis.com", "cloudkms.googleapis.com.attacker.example", "cloudkms.a.b.rep.googleapis.com",
			"x.cloudkms.googleapis.com", "cloudkms.run.app"}, strangers...),
		"kmip": append([]string{"other.example", "kmip.example.attacker.example:5696"}, strangers...),
	}
	run(nil, foreign, false)
	run([]string{"keys.example", "*.corp.example"}, foreign, false)
	named := []string{"keys.example", "keys.example:8443", "a.corp.example", "a.b.corp.example"}
	run([]string{"keys.example", "*.corp.example"}, hosts{"aws": named, "azure": named, "gcp": named, "kmip": named}, true)
	run(nil, hosts{"kmip": nil}, true)
}

// The region of a key is a part of the address, too.
func TestRegionsOfKeys(t *testing.T) {
	c, err := New(Config{Providers: kms.Providers{"aws": kms.AWS{AccessKeyID: "a", SecretAccessKey: "b"}}, TLS: map[string]*tls.Config{}, Dial: func(_ context.Context, address string) (net.Conn, error) {
		t.Errorf("dialed %s", address)
		return nil, errors.New("reached")
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, region := range []string{"attacker.example:443/", "a@attacker.example", "us-east-1.attacker.example#", "us-east-1.attacker.example:443?", "s3", "../x", "\x1b[2J"} {
		_, _, err := c.Wrap(t.Context(), "aws", kms.AWSKey{Region: region, Key: "k"}, material(0))
		if err == nil || !strings.Contains(err.Error(), "host") && !strings.Contains(err.Error(), "unexpected '['") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", region, err)
		}
	}
}

// refusing is a service with credentials in the order in which they are handed out.
func TestRefusedCredentials(t *testing.T) {
	refused := func(status int, said string) error {
		return &kms.Error{Provider: "x", Err: &refusal{status, said}}
	}
	for name, tt := range map[string]struct {
		credentials []auth.Secret // what get returns, one after the other
		kept        bool
		answers     []error // to each request
		want        int     // which answer is the result, from 0 on
		forgotten   bool
	}{
		"good":                           {credentials: []auth.Secret{"a"}, kept: true, answers: []error{nil}},
		"kept and expired":               {credentials: []auth.Secret{"a", "b"}, kept: true, answers: []error{refused(401, ""), nil}, want: 1, forgotten: true},
		"kept, and the new one, too":     {credentials: []auth.Secret{"a", "b"}, kept: true, answers: []error{refused(401, ""), refused(401, "x")}, want: 1, forgotten: true},
		"kept, and there is no other":    {credentials: []auth.Secret{"a", "a"}, kept: true, answers: []error{refused(401, "")}, forgotten: true},
		"new":                            {credentials: []auth.Secret{"a"}, answers: []error{refused(401, "")}, forgotten: true},
		"Amazon's, expired":              {credentials: []auth.Secret{"a", "b"}, kept: true, answers: []error{refused(400, `{"__type":"ExpiredTokenException"}`), nil}, want: 1, forgotten: true},
		"Amazon's, unknown":              {credentials: []auth.Secret{"a", "b"}, kept: true, answers: []error{refused(403, `{"__type":"InvalidClientTokenId"}`), nil}, want: 1, forgotten: true},
		"forbidden because it expired":   {credentials: []auth.Secret{"a", "b"}, kept: true, answers: []error{refused(403, "the token has Expired"), nil}, want: 1, forgotten: true},
		"forbidden":                      {credentials: []auth.Secret{"a"}, kept: true, answers: []error{refused(403, "AccessDenied")}},
		"another refusal":                {credentials: []auth.Secret{"a"}, kept: true, answers: []error{refused(400, "the key has expired")}},
		"the network":                    {credentials: []auth.Secret{"a"}, kept: true, answers: []error{errors.New("reset")}},
		"refused, and no credential any": {credentials: []auth.Secret{"a"}, kept: true, answers: []error{refused(401, "")}, forgotten: true},
	} {
		t.Run(name, func(t *testing.T) {
			gets, sends, forgotten := 0, 0, false
			err := withCredential(func() (auth.Secret, bool, error) {
				if gets++; gets > len(tt.credentials) {
					return "", false, errors.New("there is none")
				}
				return tt.credentials[gets-1], tt.kept && gets == 1, nil
			}, func(s auth.Secret) { forgotten = s == tt.credentials[0] }, func(s auth.Secret) error {
				if sends++; sends > len(tt.answers) {
					t.Fatalf("%d requests", sends)
				}
				if s != tt.credentials[sends-1] {
					t.Errorf("request %d with %q", sends, string(s))
				}
				return tt.answers[sends-1]
			})
			if err != tt.answers[tt.want] || sends != tt.want+1 || forgotten != tt.forgotten {
				t.Errorf("%v after %d requests, forgotten %v", err, sends, forgotten)
			}
		})
	}
}

// A token that a service refuses is not used again: the next request has a new one.
func TestRefusedTokens(t *testing.T) {
	s := startServer(t)
	c := newClient(t, s, goodProviders(s))
	for _, provider := range []string{"azure", "gcp"} {
		if _, _, err := c.Wrap(t.Context(), provider, masterKeys[provider][0], material(0)); err != nil {
			t.Fatal(err)
		}
		for key, token := range c.tokens {
			if key.provider == provider {
				token.value = "revoked"
			}
		}
		if _, _, err := c.Wrap(t.Context(), provider, masterKeys[provider][0], material(0)); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
	}
	keys := []string{"one", "two"}
	used := map[string]bool{}
	c = newClient(t, s, kms.Providers{"aws": kms.AWS{Credentials: func(context.Context) (auth.AWSCredentials, error) {
		key := keys[0]
		keys = keys[1:]
		return auth.AWSCredentials{AccessKeyID: key, SecretAccessKey: "s"}, nil
	}}})
	s.Answer(func(r *http.Request) (int, string) {
		for _, key := range []string{"one", "two"} {
			used[key] = used[key] || strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/")
		}
		if !used["two"] {
			return 400, `{"__type":"ExpiredTokenException","message":"The security token included in the request is expired"}`
		}
		return 200, `{"CiphertextBlob": "AAEC"}`
	})
	if _, _, err := c.Wrap(t.Context(), "aws", masterKeys["aws"][0], material(0)); err != nil || !used["one"] || !used["two"] {
		t.Errorf("%v, used %v", err, used)
	}
}

// A token that is refused late does not take the one with it that has come meanwhile.
func TestForgetToken(t *testing.T) {
	key, until := tokenKey{"azure", "vault.azure.net"}, time.Now().Add(time.Hour)
	c := &Client{tokens: map[tokenKey]*token{key: {value: "new", expires: until}}}
	c.forgetToken(key, "old")
	c.forgetToken(tokenKey{"azure", "vault.azure.cn"}, "new")
	if got := c.tokens[key]; got.expires != until {
		t.Error("the new token is forgotten")
	}
	c.forgetToken(key, "new")
	if got := c.tokens[key]; got.expires == until {
		t.Error("the new token is not forgotten")
	}
}

// The limit of an attempt bounds the making of a connection, too, also to a KMIP server.
func TestDialsAreBounded(t *testing.T) {
	for provider, key := range map[string]kms.MasterKey{"aws": kms.AWSKey{Region: "us-east-1", Key: "arn"}, "kmip": kms.KMIPKey{ID: "1"}} {
		synctest.Test(t, func(t *testing.T) {
			dials := 0
			c, err := New(Config{Providers: kms.Providers{"aws": kms.AWS{AccessKeyID: "id", SecretAccessKey: "secret"}, "kmip": kms.KMIP{Endpoint: "kmip.example:5696"}},
				Dial: func(ctx context.Context, _ string) (net.Conn, error) {
					dials++
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(24 * time.Hour):
						return nil, errors.New("nothing has ended the dial")
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, _, err = c.Wrap(t.Context(), provider, key, material(0))
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > time.Duration(dials)*(attemptTimeout+maxBackoff) {
				t.Errorf("%s: %v after %v and %d dials", provider, err, took, dials)
			}
		})
	}
}

// The certificate must be that of the service's name, whichever address is dialed, unless the
// options name another (specification: Client Side Encryption, "KMS TLS connections").
func TestServiceNames(t *testing.T) {
	a, err := ocsptest.New(false)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.Issue(false, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host, option string
		good         bool
	}{
		{"127.0.0.1", "", true},
		{"kms.example.com", "", false},
		{"kms.example.com", "localhost", true},
		{"127.0.0.1", "kms.example.com", false},
	} {
		var asked atomic.Value
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			asked.Store(h.ServerName)
			return &cert, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "reached", http.StatusForbidden) }))
		dial := func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		}
		p := kms.Providers{"aws": kms.AWS{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}}
		c, err := New(Config{Providers: naming(p, tt.host), TLS: map[string]*tls.Config{"aws": {RootCAs: a.Pool(), ServerName: tt.option}}, Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Wrap(t.Context(), "aws", kms.AWSKey{Region: "us-east-1", Key: "arn", Endpoint: tt.host}, material(0))
		l.Close()
		name := cmp.Or(tt.option, tt.host)
		var wrong x509.HostnameError
		switch {
		case err == nil, net.ParseIP(name) == nil && asked.Load() != name: // nobody asks for an address by name
			t.Errorf("%+v: the service is asked for as %v: %v", tt, asked.Load(), err)
		case tt.good && !strings.Contains(err.Error(), "reached"):
			t.Errorf("%+v: %v", tt, err)
		case !tt.good && (!errors.As(err, &wrong) || wrong.Host != name):
			t.Errorf("%+v: %v, want a certificate that is not for %s", tt, err, name)
		}
	}
}
