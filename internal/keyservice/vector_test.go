package keyservice

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/encryption/kms"
	"allium/internal/fakekms"
	"allium/internal/sigv4"
)

// material is that of the requests in testdata/kms.json: the random bytes are a counter there.
func material(from byte) []byte {
	out := make([]byte, KeySize)
	for i := range out {
		out[i] = from + byte(i)
	}
	return out
}

// Requests are those of libmongocrypt, byte for byte but for the order of headers.
func TestRequests(t *testing.T) {
	data, err := os.ReadFile("testdata/kms.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct {
		Question struct {
			Opts struct{ MasterKey json.RawMessage }
		}
		Answer struct {
			Steps []struct {
				Endpoint string
				Message  struct {
					Binary struct{ Base64 []byte } `json:"$binary"`
				}
			}
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 7 {
		t.Fatalf("%d cases", len(cases))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var doc bson.Raw
			if err := bson.UnmarshalExtJSON(c.Question.Opts.MasterKey, &doc); err != nil {
				t.Fatal(err)
			}
			provider, key, err := kms.MasterKeyFromBSON(doc)
			if err != nil {
				t.Fatal(err)
			}
			step := c.Answer.Steps[0]
			want := step.Message.Binary.Base64
			var r *request
			switch key := key.(type) {
			case kms.KMIPKey:
				got := registerRequest(material(0x60))
				if key.Delegated {
					got = createRequest()
				}
				if !bytes.Equal(got, want) {
					t.Errorf("request\n%x, want\n%x", got, want)
				}
				return
			case kms.AWSKey:
				r = &request{provider: provider, endpoint: key.Endpoint, path: "/", body: awsEncryptBody(material(0), key.Key)}
				if r.endpoint == "" {
					r.endpoint = "kms." + key.Region + ".amazonaws.com"
				}
				date, err := time.Parse(sigv4.TimeFormat, wantedRequest(t, want).Header.Get("X-Amz-Date"))
				if err != nil {
					t.Fatal(err)
				}
				signAWS(r, key.Region, "TrentService.Encrypt", auth.AWSCredentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, date)
			case kms.AzureKey:
				r = azureRequest(provider, key, "wrapkey", material(0), "tok")
			case kms.GCPKey:
				if r, err = gcpRequest(provider, key, "encrypt", "plaintext", material(0), "tok"); err != nil {
					t.Fatal(err)
				}
			}
			if got := withPort(r.endpoint, httpsPort); got != step.Endpoint {
				t.Errorf("endpoint %s, want %s", got, step.Endpoint)
			}
			w := wantedRequest(t, want)
			if w.Host != r.host() || w.URL.String() != r.path {
				t.Errorf("%s%s, want %s%s", r.host(), r.path, w.Host, w.URL)
			}
			body, err := io.ReadAll(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if string(body) != string(r.body) {
				t.Errorf("body %s, want %s", r.body, body)
			}
			for name, value := range w.Header {
				if name != "Connection" && name != "Content-Length" && r.header.Get(name) != value[0] {
					t.Errorf("%s: %q, want %q", name, r.header.Get(name), value[0])
				}
			}
		})
	}
}

func wantedRequest(t *testing.T, data []byte) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func startServer(t *testing.T) *fakekms.Server {
	t.Helper()
	s, err := fakekms.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// answering returns a client with all key services, each of which answers every request with the
// bytes, and master keys to use with them.
func answering(t *testing.T, s *fakekms.Server, answer func() []byte) (*Client, map[string]kms.MasterKey) {
	t.Helper()
	port, err := s.Serve(func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			conn.Write(answer())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + port
	c := newClient(t, s, kms.Providers{
		"aws":         kms.AWS{AccessKeyID: "AKID", SecretAccessKey: "SECRET"},
		"azure":       kms.Azure{AccessToken: "tok"},
		"azure:oauth": kms.Azure{TenantID: "t", ClientID: "c", ClientSecret: "CLIENT_SECRET", IdentityPlatformEndpoint: at},
		"gcp":         kms.GCP{AccessToken: "tok"},
		"gcp:oauth":   kms.GCP{Email: "e", PrivateKey: s.GCPPrivateKey(), Endpoint: at},
	})
	azure := kms.AzureKey{VaultEndpoint: at, Name: "k"}
	gcp := kms.GCPKey{ProjectID: "p", Location: "l", KeyRing: "r", Name: "k", Endpoint: at}
	return c, map[string]kms.MasterKey{
		"aws": kms.AWSKey{Region: "us-east-1", Key: "arn", Endpoint: at}, "azure": azure, "azure:oauth": azure, "gcp": gcp, "gcp:oauth": gcp,
	}
}

// testHosts are hosts that only tests have keys on.
var testHosts = []string{"127.0.0.1", "doesnotexist.invalid"}

// naming returns the providers with hosts that master keys may name.
func naming(p kms.Providers, hosts ...string) kms.Providers {
	out := kms.Providers{}
	for name, v := range p {
		switch v := v.(type) {
		case kms.AWS:
			v.Hosts = hosts
			out[name] = v
		case kms.Azure:
			v.Hosts = hosts
			out[name] = v
		case kms.GCP:
			v.Hosts = hosts
			out[name] = v
		case kms.KMIP:
			v.Hosts = hosts
			out[name] = v
		default:
			out[name] = v
		}
	}
	return out
}

func newClient(t *testing.T, s *fakekms.Server, p kms.Providers) *Client {
	t.Helper()
	config := Config{Providers: naming(p, testHosts...), Dial: s.Dial, TLS: settings(s, p)}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	c.backoff = func(int) time.Duration { return 0 }
	return c
}

// Answers of key services, good and bad.
func TestAnswers(t *testing.T) {
	data, err := os.ReadFile("testdata/kms-tests.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Description string
		Ctx         []string
		HTTPReply   []string `json:"http_reply"`
		Expect      any
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	s := startServer(t)
	var answer []byte
	c, keys := answering(t, s, func() []byte { return answer })
	if len(cases) != 19 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, test := range cases {
		answer = []byte(strings.Join(test.HTTPReply, ""))
		for _, kind := range test.Ctx {
			t.Run(test.Description+"/"+kind, func(t *testing.T) {
				provider := map[string]string{"datakey": "aws", "decrypt": "aws"}[kind]
				if service, rest, ok := strings.Cut(kind, "_"); ok {
					provider = service
					if strings.HasPrefix(rest, "oauth") {
						provider += ":oauth"
					}
				}
				c.tokens = map[tokenKey]*token{}
				var err error
				if strings.HasSuffix(kind, "decrypt") {
					_, err = c.Unwrap(t.Context(), provider, keys[provider], []byte("wrapped"))
				} else {
					_, _, err = c.Wrap(t.Context(), provider, keys[provider], material(0))
				}
				if test.Expect == "ok" {
					// What an identity provider answers is no answer of the key service, which is
					// asked next.
					if strings.HasSuffix(provider, ":oauth") && err != nil && strings.Contains(err.Error(), "JSON does not include field") && !strings.Contains(err.Error(), "access_token") {
						return
					}
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil {
					t.Fatal("no error")
				}
				for _, part := range []string{"HTTP status=418", "HTTP status=400", "validation error", "was not found", "Invalid JWT Signature", "the ciphertext is invalid"} {
					if want, ok := test.Expect.(string); ok && strings.Contains(want, part) && !strings.Contains(err.Error(), part) {
						t.Errorf("error %v, want %q in it", err, part)
					}
				}
				checkSecrets(t, err)
			})
		}
	}
}

// checkSecrets fails if an error shows a secret of the tests.
func checkSecrets(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"SECRET", "tok\"", "Bearer", fakekms.AWSSecretAccessKey, fakekms.AzureClientSecret, "fake-azure-token", "fake-gcp-token"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error %q shows %q", err, secret)
		}
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("the error %q has several lines", err)
	}
}

// The answers that libmongocrypt's tests take for good.
func TestGoodAnswers(t *testing.T) {
	s := startServer(t)
	var answer []byte
	c, keys := answering(t, s, func() []byte { return answer })
	for _, provider := range []string{"aws", "azure", "gcp"} {
		for _, operation := range []string{"encrypt", "decrypt"} {
			data, err := os.ReadFile(filepath.Join("testdata", "kms-"+provider, operation+"-response.txt"))
			if err != nil {
				t.Fatal(err)
			}
			answer = data
			if operation == "encrypt" {
				_, _, err = c.Wrap(t.Context(), provider, keys[provider], material(0))
			} else {
				_, err = c.Unwrap(t.Context(), provider, keys[provider], []byte("wrapped"))
			}
			if err != nil {
				t.Errorf("%s, %s: %v", provider, operation, err)
			}
		}
	}
}
