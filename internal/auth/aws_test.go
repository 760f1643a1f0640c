package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
)

// The table of "Region Calculation".
func TestAWSRegion(t *testing.T) {
	for host, want := range map[string]string{
		"sts.amazonaws.com": "us-east-1", "sts.us-west-2.amazonaws.com": "us-west-2", "sts.us-west-2.amazonaws.com.ch": "us-west-2",
		"example.com": "com", "localhost": "us-east-1", strings.Repeat("a", 255): "us-east-1",
		"sts..com": "", ".amazonaws.com": "", "sts.amazonaws.": "", "": "", strings.Repeat("a", 256): "", "abc..def": "",
	} {
		region, err := awsRegion(host)
		if region != want || (err == nil) != (want != "") {
			t.Errorf("%.20q: %q, %v, want %q", host, region, err, want)
		}
	}
}

// clearAWS unsets the variables that keys are found by.
func clearAWS(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
		"AWS_ROLE_SESSION_NAME", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
}

// awsCloud stands in for the services that hand out keys.
type awsCloud struct {
	local    *http.Client
	sts      *http.Client
	keys     *AWSKeys
	requests []string
	forms    []string
	expires  time.Time
	id       string
	fail     bool
}

func startCloud(t *testing.T) *awsCloud {
	c := &awsCloud{expires: time.Now().Add(time.Hour), id: "AKID1"}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests = append(c.requests, r.Method+" "+r.Host+r.URL.Path)
		if c.fail {
			w.WriteHeader(500)
			io.WriteString(w, "no role for you")
			return
		}
		switch {
		case r.URL.Path == "/latest/api/token":
			if r.Method != http.MethodPut || r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
				w.WriteHeader(400)
			}
			io.WriteString(w, "session")
		case r.Method == http.MethodPost:
			r.ParseForm()
			c.forms = append(c.forms, r.PostForm.Encode())
			fmt.Fprintf(w, `{"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": {"Credentials": {"AccessKeyId": %q, "SecretAccessKey": "s",
				"SessionToken": "t", "Expiration": %d.5}}}}`, c.id, c.expires.Unix())
		case strings.HasPrefix(r.URL.Path, "/latest/meta-data") && r.Header.Get("X-aws-ec2-metadata-token") != "session":
			w.WriteHeader(401)
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
			io.WriteString(w, "my-role\n")
		default:
			fmt.Fprintf(w, `{"Code": "Success", "AccessKeyId": %q, "SecretAccessKey": "s", "Token": "t", "Expiration": %q}`, c.id, c.expires.UTC().Format(time.RFC3339))
		}
	}))
	t.Cleanup(service.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, service.Listener.Addr().String())
	}}}
	c.local, c.sts = client, &http.Client{Transport: plainHTTP{client.Transport}}
	old := processKeys.keys
	processKeys.keys = nil // tests that ask for keys are not parallel
	t.Cleanup(func() { processKeys.keys = old })
	c.keys = c.client()
	return c
}

// client returns the keys of another client of the process.
func (c *awsCloud) client() *AWSKeys {
	k := NewAWSKeys(nil, callbackTimeout)
	k.local, k.sts = c.local, c.sts
	return k
}

// plainHTTP asks without TLS.
type plainHTTP struct{ http.RoundTripper }

func (p plainHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is asked without TLS", r.URL.Host)
	}
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return p.RoundTripper.RoundTrip(r)
}

func (c *awsCloud) get(t *testing.T, wantID, wantToken string) {
	t.Helper()
	got, err := c.keys.Get(t.Context())
	if want := (auth.AWSCredentials{AccessKeyID: wantID, SecretAccessKey: "s", SessionToken: auth.Secret(wantToken)}); err != nil || got != want {
		t.Errorf("keys %+v, %v, want %+v", got, err, want)
	}
}

// "Credential Fetching Order", each source by itself.
func TestAWSSources(t *testing.T) {
	clearAWS(t)
	c := startCloud(t)
	want := func(requests ...string) {
		t.Helper()
		if got, want := strings.Join(c.requests, ", "), strings.Join(requests, ", "); got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
		c.requests = nil
		c.keys.Forget()
	}
	c.get(t, "AKID1", "t")
	const metadata = "GET 169.254.169.254/latest/meta-data/iam/security-credentials/"
	want("PUT 169.254.169.254/latest/api/token", metadata, metadata+"my-role")

	t.Setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x")
	c.get(t, "AKID1", "t")
	want("GET 169.254.170.2/v2/credentials/x")

	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("web token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	c.get(t, "AKID1", "t")
	want("GET 169.254.170.2/v2/credentials/x") // there is no role
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
	t.Setenv("AWS_ROLE_SESSION_NAME", "app1")
	c.get(t, "AKID1", "t")
	want("POST sts.amazonaws.com/")
	if form := "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=app1&Version=2011-06-15&WebIdentityToken=web+token"; c.forms[0] != form {
		t.Errorf("form %s", c.forms[0])
	}
	t.Setenv("AWS_ROLE_SESSION_NAME", "")
	c.get(t, "AKID1", "t")
	want("POST sts.amazonaws.com/")
	if !strings.Contains(c.forms[1], "RoleSessionName=allium-") {
		t.Errorf("form %s", c.forms[1])
	}

	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
	if _, err := c.keys.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("half of the keys in the environment: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	c.get(t, "AKIDENV", "")
	t.Setenv("AWS_SESSION_TOKEN", "t2")
	c.get(t, "AKIDENV", "t2")
	want()

	// The program's own provider wins over all of them.
	c.keys.callback = func(context.Context) (auth.AWSCredentials, error) {
		return auth.AWSCredentials{AccessKeyID: "AKIDOWN", SecretAccessKey: "s"}, nil
	}
	c.get(t, "AKIDOWN", "")
	c.keys.callback = func(context.Context) (auth.AWSCredentials, error) { return auth.AWSCredentials{}, nil }
	if _, err := c.keys.Get(t.Context()); err == nil {
		t.Error("no keys from the callback: no error")
	}
}

// An answer without keys is an error, whoever gives it, and is not kept.
func TestAWSAnswersWithoutKeys(t *testing.T) {
	clearAWS(t)
	c := startCloud(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("web token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, environment := range map[string]map[string]string{
		"instance":     {},
		"container":    {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/x"},
		"web identity": {"AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, v := range environment {
				t.Setenv(key, v)
			}
			c.keys.Forget()
			c.id = ""
			if _, err := c.keys.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "no access key id") {
				t.Errorf("error %v, want one about the missing key", err)
			}
			c.id = "AKID1"
			c.get(t, "AKID1", "t")
		})
	}
}

// A provider that does not come to an end does not hold a connection for ever.
func TestAWSCallbackTime(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: time.Minute, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			a, err := New(&auth.Credential{Mechanism: auth.MechanismAWS, Source: "$external"}, Options{CallbackTimeout: limit, AWS: func(ctx context.Context) (auth.AWSCredentials, error) {
				<-ctx.Done()
				return auth.AWSCredentials{}, ctx.Err()
			}})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			s := &awsServer{change: func(nonce []byte) bson.Raw { return awsFirst(nonce, "localhost") }}
			err = (&Attempt{a: a, id: a.current.Load(), mechanism: auth.MechanismAWS}).Reauthenticate(t.Context(), s)
			if _, ok := errors.AsType[*mongoerr.AuthError](err); !ok || time.Since(start) != want {
				t.Errorf("%v after %v, want %v", err, time.Since(start), want)
			}
		})
	}
}

// find is what an operation of a new client does that matters here: it authenticates at a server
// that takes the key with an id.
func (c *awsCloud) find(t *testing.T, id string) error {
	t.Helper()
	a, err := New(&auth.Credential{Mechanism: auth.MechanismAWS, Source: "$external"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.current.Load().aws.local, a.current.Load().aws.sts = c.local, c.sts
	s := &awsServer{change: func(nonce []byte) bson.Raw { return awsFirst(nonce, "localhost") }, takes: id}
	return (&Attempt{a: a, id: a.current.Load(), mechanism: auth.MechanismAWS}).Reauthenticate(t.Context(), s)
}

// cached returns the one key that is cached, "" without one.
func cached(t *testing.T) string {
	t.Helper()
	if len(processKeys.keys) > 1 {
		t.Fatalf("%d keys are cached", len(processKeys.keys))
	}
	return string(processKeys.entry().AccessKeyID)
}

func (c *awsCache) entry() *expiringKeys {
	for _, k := range c.keys {
		return k
	}
	return &expiringKeys{}
}

// "Cached Credentials", both lists, by the numbers of their steps: the cache is the process's.
func TestProseAWSCache(t *testing.T) {
	clearAWS(t)
	c := startCloud(t)
	works := func(step int, wantCached string) {
		t.Helper()
		if err := c.find(t, "AKID1"); err != nil || cached(t) != wantCached {
			t.Fatalf("step %d: error %v, cached %q, want %q", step, err, cached(t), wantCached)
		}
	}
	fails := func(step int, wantCached string) {
		t.Helper()
		if err := c.find(t, "AKID1"); err == nil || cached(t) != wantCached {
			t.Fatalf("step %d: error %v, cached %q, want %q", step, err, cached(t), wantCached)
		}
	}
	works(3, "AKID1")
	processKeys.entry().expires = time.Now().Add(time.Minute)
	n := len(c.requests)
	works(6, "AKID1")
	if len(c.requests) == n || time.Until(processKeys.entry().expires) < awsMargin {
		t.Error("step 6: keys that expire soon were used")
	}
	processKeys.entry().AccessKeyID = "poison"
	fails(9, "")
	works(11, "AKID1")
	n = len(c.requests)
	works(12, "AKID1")
	if len(c.requests) != n {
		t.Error("keys that are valid for an hour were asked for again by another client")
	}

	processKeys.keys = nil
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID1")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_SESSION_TOKEN", "t")
	works(7, "")
	t.Setenv("AWS_ACCESS_KEY_ID", "invalid")
	fails(10, "")
	clearAWS(t)
	works(14, "AKID1")
	t.Setenv("AWS_ACCESS_KEY_ID", "invalid")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "invalid")
	works(17, "AKID1")

	clearAWS(t)
	processKeys.keys = nil
	c.fail = true
	if _, err := c.keys.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "EC2 instance") || !strings.Contains(err.Error(), "no role for you") {
		t.Errorf("error %v", err)
	}
}

// Keys of one source are never those of another: another role, another container, or the program's
// own callback, whose failure leaves what others share.
func TestAWSCacheOfSources(t *testing.T) {
	clearAWS(t)
	c := startCloud(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("web token"), 0o600); err != nil {
		t.Fatal(err)
	}
	sources := []map[string]string{
		{},
		{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/a"},
		{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/b"},
		{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "r1"},
		{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "r2"},
		{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "r2", "AWS_ROLE_SESSION_NAME": "s"},
	}
	use := func(i int) {
		clearAWS(t)
		for name, value := range sources[i] {
			t.Setenv(name, value)
		}
	}
	for round := range 2 { // fetched, and then from the cache of another client
		for i := range sources {
			use(i)
			c.id = fmt.Sprint("AKID", i+10*round)
			got, err := c.client().Get(t.Context())
			if want := fmt.Sprint("AKID", i); err != nil || got.AccessKeyID != want {
				t.Errorf("source %d: key %s, %v, want %s", i, got.AccessKeyID, err, want)
			}
		}
	}
	use(0)
	own := NewAWSKeys(func(context.Context) (auth.AWSCredentials, error) {
		return auth.AWSCredentials{AccessKeyID: "own", SecretAccessKey: "s"}, nil
	}, time.Minute)
	if got, err := own.Get(t.Context()); err != nil || got.AccessKeyID != "own" {
		t.Errorf("callback: key %s, %v", got.AccessKeyID, err)
	}
	own.Forget()
	if len(processKeys.keys) != len(sources) {
		t.Errorf("%d keys are cached, want %d", len(processKeys.keys), len(sources))
	}
	c.client().Forget()
	if len(processKeys.keys) != len(sources)-1 || processKeys.get(environmentSource()) != nil {
		t.Error("a failure does not clear the keys of its source, and of no other")
	}
}

// A server's first message that is not as it must be is refused, and an authentication that failed
// clears the cache.
func TestAWSConversation(t *testing.T) {
	clearAWS(t)
	for what, change := range map[string]func(nonce []byte) bson.Raw{
		"short nonce":       func(nonce []byte) bson.Raw { return awsFirst(nonce[:63], "localhost") },
		"long nonce":        func(nonce []byte) bson.Raw { return awsFirst(append(nonce, 0), "localhost") },
		"nonce of another":  func(nonce []byte) bson.Raw { return awsFirst(make([]byte, 64), "localhost") },
		"host with a hole":  func(nonce []byte) bson.Raw { return awsFirst(nonce, "sts..com") },
		"no host":           func(nonce []byte) bson.Raw { return awsFirst(nonce, "") },
		"no document":       func([]byte) bson.Raw { return bson.Raw("x") },
		"refused signature": func(nonce []byte) bson.Raw { return awsFirst(nonce, "localhost") },
	} {
		a, err := New(&auth.Credential{Mechanism: auth.MechanismAWS, Source: "$external"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		processKeys.set(environmentSource(), &expiringKeys{auth.AWSCredentials{AccessKeyID: "AKID", SecretAccessKey: "secret key", SessionToken: "session"}, time.Now().Add(time.Hour)})
		s := &awsServer{change: change}
		err = (&Attempt{a: a, id: a.current.Load(), mechanism: auth.MechanismAWS}).Reauthenticate(t.Context(), s)
		if err == nil || strings.Contains(err.Error(), "secret key") || len(processKeys.keys) > 0 {
			t.Errorf("%s: %v, cached %d", what, err, len(processKeys.keys))
		}
		if sent := s.second != nil; sent != (what == "refused signature") {
			t.Errorf("%s: the client went on: %v", what, sent)
		}
	}
}

func awsFirst(nonce []byte, host string) bson.Raw {
	return document(func(dst []byte) []byte {
		return bson.AppendString(bson.AppendBinary(dst, "s", bson.BinaryGeneric, nonce), "h", host)
	})
}

type awsServer struct {
	change func(nonce []byte) bson.Raw
	second bson.Raw
	takes  string // the key that is accepted; empty: none
}

func (s *awsServer) Addr() string       { return "s:1" }
func (*awsServer) Limit() time.Duration { return 0 }

func (s *awsServer) RunCommand(_ context.Context, db string, fill func([]byte) []byte) (bson.Raw, error) {
	cmd := document(fill)
	payload, _ := cmd.Lookup("payload").Binary()
	if cmd.Lookup("saslStart").IsZero() {
		s.second = payload.Data
		if a, _ := bson.Raw(payload.Data).Lookup("a").StringValue(); s.takes != "" && strings.Contains(a, "Credential="+s.takes+"/") {
			return document(func(dst []byte) []byte {
				return bson.AppendBinary(bson.AppendBool(dst, "done", true), "payload", bson.BinaryGeneric, nil)
			}), nil
		}
		return nil, refusal()
	}
	r, _ := bson.Raw(payload.Data).Lookup("r").Binary()
	if p, _ := bson.Raw(payload.Data).Lookup("p").AsInt64(); len(r.Data) != 32 || p != 110 {
		return nil, errors.New("the client's first message is malformed")
	}
	return document(func(dst []byte) []byte {
		dst = bson.AppendBool(dst, "done", false)
		return bson.AppendBinary(dst, "payload", bson.BinaryGeneric, s.change(append(r.Data[:32:32], make([]byte, 32)...)))
	}), nil
}
