package auth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
)

// stranger is a Transport to a server that answers with what it was given, in turn, and then with
// the same again.
type stranger struct {
	addr     string
	answers  [][]byte
	commands [][]byte // that it has received
}

func (s *stranger) Addr() string       { return s.addr }
func (*stranger) Limit() time.Duration { return 0 }

func (s *stranger) RunCommand(_ context.Context, _ string, fill func([]byte) []byte) (bson.Raw, error) {
	s.commands = append(s.commands, document(fill))
	return bson.Raw(s.answers[(len(s.commands)-1)%len(s.answers)]), nil
}

// FuzzFinish lets a server answer each mechanism with any documents. One that does not know the
// password is never believed where it has to prove that; no secret reaches it that it should not
// get, or stands in an error; and the conversation ends.
func FuzzFinish(f *testing.F) {
	const password, token, key = "swordfish-password", "bearer-token-77", "aws-secret-key-88"
	sasl := func(payload string, done bool) []byte {
		return document(func(dst []byte) []byte {
			dst = bson.AppendInt32(dst, "conversationId", 1)
			dst = bson.AppendBool(dst, "done", done)
			return bson.AppendBinary(dst, "payload", bson.BinaryGeneric, []byte(payload))
		})
	}
	for i := range mechanismsToFuzz {
		f.Add(byte(i), []byte(sasl("", true)), []byte(sasl("r=x,s=QUJD,i=4096", false)), []byte(sasl("v=AAAA", true)))
	}
	idp := document(func(dst []byte) []byte { return bson.AppendString(dst, "issuer", "https://idp.example") })
	f.Add(byte(4), []byte(idp), []byte(sasl(string(idp), false)), []byte(sasl("", true)))
	supported := document(func(dst []byte) []byte {
		at, dst := bson.BeginArrayElement(dst, "saslSupportedMechs")
		return bson.EndDocument(bson.AppendString(dst, "0", "SCRAM-SHA-1"), at)
	})
	f.Add(byte(0), []byte(supported), []byte{5, 0, 0, 0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, mechanism byte, hello, one, two []byte) {
		c := &auth.Credential{Username: "user", Password: password, Source: "admin", Mechanism: mechanismsToFuzz[int(mechanism)%len(mechanismsToFuzz)]}
		called := 0
		callback := func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			called++
			return auth.OIDCCredential{AccessToken: token, ExpiresIn: time.Hour}, nil
		}
		o := Options{AWS: func(context.Context) (auth.AWSCredentials, error) {
			return auth.AWSCredentials{AccessKeyID: "AKIA", SecretAccessKey: key}, nil
		}}
		s := &stranger{addr: "localhost:27017", answers: [][]byte{one, two}}
		switch c.Mechanism {
		case auth.MechanismOIDC:
			c.Source = "$external"
			if o.OIDC = (&auth.OIDC{HumanCallback: callback}); len(one)%3 == 0 {
				s.addr = "db.elsewhere.example:27017" // which may not get the tokens of a person
			}
			c.Password = ""
		case auth.MechanismAWS, auth.MechanismX509:
			c.Username, c.Password, c.Source = "", "", "$external"
		}
		a, err := New(c, o)
		if err != nil {
			t.Fatal(err)
		}
		attempt, err := a.Attempt(t.Context(), s.addr)
		if err != nil {
			return // refused before anything is sent
		}
		document(attempt.AppendHello)
		err = attempt.Finish(t.Context(), s, hello)
		if err == nil {
			err = attempt.Reauthenticate(t.Context(), s)
		}
		switch c.Mechanism {
		case "", auth.MechanismScramSHA1, auth.MechanismScramSHA256:
			if err == nil {
				t.Errorf("a server that does not know the password is believed: %x %x %x", hello, one, two)
			}
		}
		for _, secret := range []string{password, token, key} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows %s: %v", secret, err)
			}
			for _, cmd := range s.commands {
				if bytes.Contains(cmd, []byte(secret)) && secret != token && c.Mechanism != auth.MechanismPlain {
					t.Errorf("the server learns %s by %s", secret, c.Mechanism)
				}
			}
		}
		if called > 0 && s.addr != "localhost:27017" {
			t.Error("a person logs in for a server that is not allowed")
		}
		if _, ok := errors.AsType[*mongoerr.AuthError](err); err != nil && !ok {
			t.Errorf("an error of no documented kind: %T %v", err, err)
		}
		if len(s.commands) > 5*(maxExchanges+1) {
			t.Errorf("%d commands", len(s.commands))
		}
	})
}

var mechanismsToFuzz = []auth.Mechanism{"", auth.MechanismScramSHA1, auth.MechanismScramSHA256, auth.MechanismPlain, auth.MechanismOIDC, auth.MechanismAWS, auth.MechanismX509}

// FuzzKeys reads any bytes as the answer of a metadata service or a container's agent: there are
// keys with a time until which they are good, or an error that shows none of them.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{
		`{"AccessKeyId": "AKIA", "SecretAccessKey": "planted-secret", "Token": "t", "Expiration": "2030-01-01T00:00:00Z"}`,
		`{"AccessKeyId": "AKIA", "SecretAccessKey": "planted-secret", "Expiration": 1.9e9}`,
		`{"AccessKeyId": "AKIA", "SecretAccessKey": "planted-secret", "Expiration": 1e300}`,
		`{"AccessKeyId": 1}`, `{"Expiration": "planted-secret"}`, `[]`, `{`, `{"Expiration": null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		k, err := parseKeys(body)
		if (err == nil) != (k != nil) {
			t.Fatalf("%v, %v", k, err)
		}
		if err != nil {
			if bytes.Contains(body, []byte(`"SecretAccessKey": "planted-secret"`)) && strings.Contains(err.Error(), "planted-secret") {
				t.Errorf("the error shows the key: %v", err)
			}
			return
		}
		if check(&k.AWSCredentials) == nil && (k.AccessKeyID == "" || k.SecretAccessKey == "") {
			t.Errorf("keys without an id or a secret are good: %v", k.AccessKeyID)
		}
	})
}

// FuzzTokenFile reads any bytes as a file with an access token: there is one line of printable
// ASCII without space around it, which reads the same again, or an error that names the file and
// shows nothing of it.
func FuzzTokenFile(f *testing.F) {
	for _, seed := range []string{
		"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", " token\r\n", "", "\n", "a\nb", "a\x00b", "\xff", "caf\u00e9", "\ufefftoken", "a\u2028",
		"-----BEGIN PRIVATE KEY-----\nplanted-secret\n", strings.Repeat("x", maxToken), strings.Repeat("x", maxToken+1), strings.Repeat(" ", maxToken) + "x",
	} {
		f.Add([]byte(seed))
	}
	name := filepath.Join(f.TempDir(), "token")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := readToken(name)
		if (token == "") != (err != nil) {
			t.Fatalf("%q, %v", token, err)
		}
		if err != nil {
			if text := err.Error(); !strings.Contains(text, name) || strings.Contains(text, "planted-secret") || len(text) > len(name)+200 {
				t.Errorf("the error is %q", text)
			}
			return
		}
		if len(token) > maxToken || strings.TrimSpace(token) != token || strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("took %q", token)
		}
		if !bytes.Contains(data, []byte(token)) {
			t.Errorf("%q is not in the file", token)
		}
		if again, err := parseToken(token); again != token || err != nil {
			t.Errorf("%q reads %q, %v", token, again, err)
		}
	})
}

// FuzzServices lets the services of clouds answer with any body, whatever is asked: there are keys
// or a token that is well-formed, or an error that shows no secret of the answer.
func FuzzServices(f *testing.F) {
	const planted = "planted-secret"
	keys := `{"AccessKeyId": "AKIA", "SecretAccessKey": "planted-secret", "SessionToken": "planted-secret", "Expiration": 1.9e9}`
	for _, seed := range []string{
		keys, `{"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": {"Credentials": ` + keys + `}}}`, `{"Credentials": ` + keys + `}`,
		`{"Credentials": {"AccessKeyId": "AKIA", "Expiration": "planted-secret"}}`, `{"AssumeRoleWithWebIdentityResponse": 1}`,
		`{"access_token": "planted-secret"}`, `{"access_token": "planted-secret\n"}`, `{"access_token": ["planted-secret"]}`, "planted-secret", "a\r\nX-Header: b", "role/../../x", "", "[]",
	} {
		f.Add([]byte(seed), 200)
		f.Add([]byte(seed), 500)
	}
	file := filepath.Join(f.TempDir(), "token")
	if err := os.WriteFile(file, []byte("my-token-99"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		asked := 0
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
		})}
		k := NewAWSKeys(nil, time.Minute)
		k.local, k.sts = client, client
		for _, from := range []struct {
			source awsSource
			fetch  func(context.Context, awsSource) (*expiringKeys, error)
		}{
			{awsSource{kind: "web identity", path: file, role: "arn"}, k.fromWebIdentity}, {awsSource{kind: "ECS container", path: "/keys"}, k.fromContainer}, {awsSource{kind: "EC2 instance"}, k.fromInstance},
		} {
			keys, err := from.fetch(t.Context(), from.source)
			if (keys == nil) != (err != nil) {
				t.Errorf("%v, %v", keys, err)
			}
			shows(t, err, status, planted)
		}
		for _, environment := range []string{"azure", "gcp"} {
			c, err := environmentCallback(environment, "me", client)(t.Context(), auth.OIDCParams{})
			if token, bad := parseToken(c.AccessToken); (err == nil) != (c.AccessToken != "") || err == nil && (bad != nil || token != c.AccessToken) {
				t.Errorf("token %q, %v", c.AccessToken, err)
			}
			shows(t, err, status, planted)
		}
		if asked > 7 {
			t.Errorf("%d requests", asked)
		}
	})
}

// shows fails the test if an error has what it must not. What a refusal says is shown.
func shows(t *testing.T, err error, status int, answer string) {
	t.Helper()
	if err == nil {
		return
	}
	text := err.Error()
	if len(text) > 5000 || strings.ContainsAny(text, "\x00\x1b\r\n") || strings.Contains(text, "my-token-99") || status == http.StatusOK && strings.Contains(text, answer) {
		t.Errorf("the error is %q", text)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
