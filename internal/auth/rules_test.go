package auth

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/internal/sigv4"
)

// Sentences of the specification Authentication that no conversation of the other tests shows.

// The server looks for the user by the name as it is, and SCRAM sends it so, but for the two
// characters that stand for something there (RFC 5802).
func TestNameIsSentAsItIs(t *testing.T) {
	const name = "I\u00adX \u2168=\u00aa," // SASLprep would change it
	for _, mechanism := range []auth.Mechanism{"", auth.MechanismScramSHA1, auth.MechanismScramSHA256} {
		a, err := New(&auth.Credential{Username: name, Password: "p", Source: "db", Mechanism: mechanism}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		attempt, err := a.Attempt(t.Context(), "h:1")
		if err != nil {
			t.Fatal(err)
		}
		hello := document(attempt.AppendHello)
		if asked, _ := hello.Lookup("saslSupportedMechs").StringValue(); (asked == "db."+name) != (mechanism == "") {
			t.Errorf("%q: asked for %q", mechanism, asked)
		}
		payload, _ := hello.Lookup("speculativeAuthenticate", "payload").Binary()
		if want := "n,,n=I\u00adX \u2168=3D\u00aa=2C,r="; !strings.HasPrefix(string(payload.Data), want) {
			t.Errorf("%q: the first message is %q, want %q", mechanism, payload.Data, want)
		}
	}
}

// Which mechanism is used if the program names none.
func TestMechanismsThatAreOffered(t *testing.T) {
	offer := func(v any) bson.Raw {
		b, err := bson.Marshal(bson.D{{Key: "saslSupportedMechs", Value: v}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, tc := range map[string]struct {
		hello bson.Raw
		want  auth.Mechanism
	}{
		"no list":         {document(func(b []byte) []byte { return b }), auth.MechanismScramSHA1},
		"an empty one":    {offer(bson.A{}), auth.MechanismScramSHA1},
		"both":            {offer(bson.A{"SCRAM-SHA-1", "SCRAM-SHA-256"}), auth.MechanismScramSHA256},
		"the newer":       {offer(bson.A{"SCRAM-SHA-256"}), auth.MechanismScramSHA256},
		"the older":       {offer(bson.A{"SCRAM-SHA-1"}), auth.MechanismScramSHA1},
		"neither":         {offer(bson.A{"PLAIN", "MONGODB-X509", "SCRAM-SHA-512"}), auth.MechanismScramSHA1},
		"not a list":      {offer("SCRAM-SHA-256"), auth.MechanismScramSHA1},
		"not texts alone": {offer(bson.A{1, nil, "SCRAM-SHA-256"}), auth.MechanismScramSHA256},
	} {
		if got := negotiate(tc.hello); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Keys are derived once for the same password, salt, count and hash.
func TestScramKeysAreCached(t *testing.T) {
	var c scramCache
	id := scramKeyID{mechanism: auth.MechanismScramSHA256, password: "p", salt: "salt", iterations: 4096}
	get := func(id scramKeyID) *scramKeys {
		keys, err := c.get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	first := get(id)
	if get(id) != first {
		t.Error("the keys are derived twice")
	}
	for _, change := range []func(*scramKeyID){
		func(id *scramKeyID) { id.mechanism = auth.MechanismScramSHA1 }, func(id *scramKeyID) { id.password = "q" },
		func(id *scramKeyID) { id.salt = "other" }, func(id *scramKeyID) { id.iterations++ },
	} {
		other := id
		change(&other)
		if keys := get(other); keys == first || string(keys.client) == string(first.client) {
			t.Errorf("%+v has the keys of %+v", other, id)
		}
	}
}

// X.509 sends the name that the program gives, and no other.
func TestX509Names(t *testing.T) {
	for name, there := range map[string]bool{"": false, "CN=client": true} {
		cmd := document((&x509{user: name}).append)
		if v := cmd.Lookup("user"); (v.Type != 0) != there {
			t.Errorf("%q: the command is %v", name, cmd)
		} else if got, _ := v.StringValue(); got != name {
			t.Errorf("%q is sent as %q", name, got)
		}
	}
}

// A session token is sent and signed if there is one.
func TestAWSTokens(t *testing.T) {
	clearAWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, token := range []string{"", "session"} {
		t.Setenv("AWS_SESSION_TOKEN", token)
		s := &awsServer{takes: "AKID", change: func(nonce []byte) bson.Raw { return awsFirst(nonce, "sts.amazonaws.com") }}
		a, err := New(&auth.Credential{Mechanism: auth.MechanismAWS, Source: "$external"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Attempt{a: a, id: a.current.Load(), mechanism: auth.MechanismAWS}).Reauthenticate(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		header, _ := s.second.Lookup("a").StringValue()
		date, _ := s.second.Lookup("d").StringValue()
		if _, err := time.Parse(sigv4.TimeFormat, date); err != nil {
			t.Errorf("the date is %q", date)
		}
		got, there := s.second.Lookup("t").StringValue()
		if there != (token != "") || got != token || strings.Contains(header, ";x-amz-security-token;") != there {
			t.Errorf("token %q: sent %q, signed %s", token, got, header)
		}
	}
}

// trip is a service.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A service that does not answer is given up after ten seconds.
func TestAWSServiceThatHangs(t *testing.T) {
	clearAWS(t)
	hang := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})}
	for name, path := range map[string]string{"instance": "", "container": "/keys"} {
		t.Setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", path)
		synctest.Test(t, func(t *testing.T) {
			k := &AWSKeys{local: hang, sts: hang, cache: &awsCache{}}
			start := time.Now()
			if _, err := k.Get(t.Context()); err == nil || time.Since(start) != 10*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
		})
	}
}

// Connections that need keys at the same time do not wait for each other, and what is cached is
// whole at each moment.
func TestAWSKeysAreFetchedTogether(t *testing.T) {
	clearAWS(t)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/keys")
	synctest.Test(t, func(t *testing.T) {
		local := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			const keys = `{"AccessKeyId": "AKID", "SecretAccessKey": "s", "Token": "t", "Expiration": "2100-01-01T00:00:00Z"}`
			return &http.Response{StatusCode: 200, Status: "200 OK", Body: io.NopCloser(strings.NewReader(keys)), Header: http.Header{}, Request: r}, nil
		})}
		k := &AWSKeys{local: local, cache: &awsCache{}}
		start := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				c, err := k.Get(t.Context())
				if err != nil || c.AccessKeyID != "AKID" || c.SecretAccessKey != "s" || c.SessionToken != "t" {
					t.Errorf("%v, %v", c, err)
				}
			})
		}
		all.Wait()
		if d := time.Since(start); d != time.Second {
			t.Errorf("it took %v, want a second", d)
		}
		if c, err := k.Get(t.Context()); err != nil || c.AccessKeyID != "AKID" || time.Since(start) != time.Second {
			t.Errorf("not cached: %v, %v, %v", c, err, time.Since(start))
		}
	})
}

// A callback that says that its token has expired already has made a mistake.
func TestOIDCNegativeTime(t *testing.T) {
	for d, ok := range map[time.Duration]bool{-1: false, -time.Hour: false, 0: true, time.Hour: true} {
		callback := func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return auth.OIDCCredential{AccessToken: "a", ExpiresIn: d}, nil
		}
		s := &oidcServer{addr: "localhost:1", valid: map[string]bool{"a": true}}
		for name, o := range map[string]*auth.OIDC{"machine": {Callback: callback}, "human": {HumanCallback: callback}} {
			if _, err := s.connect(t.Context(), oidcAuthenticator(t, o, 0)); (err == nil) != ok {
				t.Errorf("%s, expires in %v: %v", name, d, err)
			}
		}
	}
}

// A token that was sent ahead and not taken stays: it is refused only where it is sent in full.
func TestOIDCFailedSpeculationKeepsToken(t *testing.T) {
	calls := 0
	a := oidcAuthenticator(t, &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
		calls++
		return auth.OIDCCredential{AccessToken: "a"}, nil
	}}, 0)
	s := &oidcServer{addr: "h:1", valid: map[string]bool{"a": true}}
	if _, err := s.connect(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	attempt, err := a.Attempt(t.Context(), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if hello := document(attempt.AppendHello); hello.Lookup("speculativeAuthenticate").Type == 0 {
		t.Error("the token that is there was not sent ahead")
	}
	if a.current.Load().tokens.cached() != "a" {
		t.Error("the token was forgotten before the server has said anything")
	}
	if err := attempt.Finish(t.Context(), s, document(func(b []byte) []byte { return b })); err != nil {
		t.Fatal(err)
	}
	if calls != 1 || a.current.Load().tokens.cached() != "a" || s.tokens() != "a a" {
		t.Errorf("%d calls, the token is %q, the server saw %s", calls, a.current.Load().tokens.cached(), s.tokens())
	}
}
