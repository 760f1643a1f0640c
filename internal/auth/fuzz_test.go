package auth

import (
	"bytes"
	"context"
	"errors"
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
		attempt, err := a.Attempt(s.addr)
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
