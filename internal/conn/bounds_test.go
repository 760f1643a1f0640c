package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	publicauth "allium/auth"
	"allium/bson"
	"allium/internal/auth"
	"allium/mongoerr"
)

// How long each step of making a connection may take: with nothing but a context that never ends,
// by the connect timeout, by the older socket timeout, by the client's timeoutMS, and by that of
// the operation that the connection is made for.
func TestStepsAreBounded(t *testing.T) {
	const second = time.Second
	dur := func(d time.Duration) *time.Duration { return &d }
	for _, tc := range []struct {
		name              string
		cfg               Config
		dial, hello, auth time.Duration
		token             time.Duration // what the callback for tokens has
	}{
		{"connect", Config{ConnectTimeout: 10 * second}, 10, 10, 10, 60},
		{"socket", Config{ConnectTimeout: 10 * second, SocketTimeout: second}, 10, 1, 1, 60},
		{"connect is shorter than socket", Config{ConnectTimeout: second, SocketTimeout: 10 * second}, 1, 1, 1, 60},
		{"client", Config{ConnectTimeout: 10 * second, Timeout: dur(second)}, 10, 10, 1, 60},
		{"connect is shorter than client", Config{ConnectTimeout: second, Timeout: dur(10 * second)}, 1, 1, 1, 60},
		{"client, not socket", Config{ConnectTimeout: 10 * second, SocketTimeout: second, Timeout: dur(5 * second)}, 10, 10, 5, 60},
		{"client without bound", Config{ConnectTimeout: 10 * second, SocketTimeout: second, Timeout: dur(0)}, 10, 10, 10, 60},
		{"operation", Config{ConnectTimeout: 10 * second, SocketTimeout: second, Timeout: dur(5 * second), Operation: dur(2 * second)}, 2, 2, 2, 2},
		{"connect is shorter than operation", Config{ConnectTimeout: second, Operation: dur(2 * second)}, 1, 1, 1, 1},
		{"operation alone", Config{Operation: dur(2 * second)}, 2, 2, 2, 2},
		{"operation without bound", Config{ConnectTimeout: 10 * second, SocketTimeout: second, Timeout: dur(5 * second), Operation: dur(0)}, 10, 10, 10, 60},
	} {
		for _, step := range []struct {
			name      string
			mechanism string
			hangs     func(n int) bool // the n-th command, from 0
			want      time.Duration
		}{
			{"dial", "PLAIN", nil, tc.dial},
			{"hello", "PLAIN", func(n int) bool { return n == 0 }, tc.hello},
			{"first step", "PLAIN", func(n int) bool { return n == 1 }, tc.auth},
			{"second step", "PLAIN", func(n int) bool { return n == 2 }, tc.auth},
			{"X.509", "MONGODB-X509", func(n int) bool { return n == 1 }, tc.auth},
			{"tokens", "MONGODB-OIDC", func(int) bool { return false }, tc.token},
			{"keys", "MONGODB-AWS", func(int) bool { return false }, tc.token},
		} {
			t.Run(tc.name+"/"+step.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := tc.cfg
					cfg.Authenticator = boundedAuthenticator(t, step.mechanism)
					cfg.Dialer = pipeDialer(slowPeer(step.hangs))
					if step.hangs == nil {
						cfg.Dialer = hungDialer{}
					}
					start := time.Now()
					_, err := Dial(t.Context(), "a:27017", &cfg)
					if err == nil {
						t.Fatal("no error")
					}
					if d := time.Since(start); d != step.want*second {
						t.Errorf("%v after %v, want %v", err, d, step.want*second)
					}
					_, isTimeout := errors.AsType[*mongoerr.TimeoutError](err)
					ours := tc.cfg.Operation != nil && *tc.cfg.Operation == step.want*second && tc.cfg.ConnectTimeout != time.Second
					if isTimeout != ours {
						t.Errorf("error %T %[1]v", err)
					}
				})
			})
		}
	}
}

func boundedAuthenticator(t *testing.T, mechanism string) *auth.Authenticator {
	t.Helper()
	credential := publicauth.Credential{Mechanism: publicauth.Mechanism(mechanism), Source: "$external"}
	if mechanism == "PLAIN" {
		credential.Username, credential.Password, credential.PasswordSet = "u", "p", true
	}
	options := auth.Options{
		AWS: func(ctx context.Context) (publicauth.AWSCredentials, error) {
			<-ctx.Done()
			return publicauth.AWSCredentials{}, ctx.Err()
		},
		OIDC: &publicauth.OIDC{Callback: func(ctx context.Context, _ publicauth.OIDCParams) (publicauth.OIDCCredential, error) {
			<-ctx.Done()
			return publicauth.OIDCCredential{}, ctx.Err()
		}},
	}
	if mechanism != "MONGODB-OIDC" {
		options.OIDC = nil
	}
	if mechanism != "MONGODB-AWS" {
		options.AWS = nil
	}
	a, err := auth.New(&credential, options)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// slowPeer is a server that does not answer the commands that hang, and never ends a conversation.
func slowPeer(hangs func(n int) bool) func(*peer) {
	return func(p *peer) {
		for n := 0; ; n++ {
			id, m, ok := p.read()
			switch {
			case !ok:
				return
			case hangs(n):
			case n == 0:
				p.reply(id, helloReply())
			default:
				payload, _ := m.Body.Lookup("payload").Binary()
				nonce, _ := bson.Raw(payload.Data).Lookup("r").Binary()
				p.reply(id, document(func(dst []byte) []byte {
					first := document(func(dst []byte) []byte {
						dst = bson.AppendBinary(dst, "s", bson.BinaryGeneric, append(nonce.Data, make([]byte, 32)...))
						return bson.AppendString(dst, "h", "sts.amazonaws.com")
					})
					dst = bson.AppendBinary(dst, "payload", bson.BinaryGeneric, first)
					return bson.AppendDouble(bson.AppendBool(dst, "done", false), "ok", 1)
				}))
			}
		}
	}
}

type hungDialer struct{}

func (hungDialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("dial: %w", ctx.Err())
}

// Authenticating again takes no longer than the connect timeout for each step, whatever made the
// connection, and leaves the connection's own limit as it was.
func TestReauthenticationIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{ConnectTimeout: time.Second, Operation: new(time.Minute), Authenticator: authenticator(t, "mongodb://u:open@h/?authMechanism=PLAIN")}
		cfg.Dialer = pipeDialer(func(p *peer) {
			p.hello()
			id, _, _ := p.read()
			p.reply(id, document(func(dst []byte) []byte {
				dst = bson.AppendBinary(dst, "payload", bson.BinaryGeneric, nil)
				return bson.AppendDouble(bson.AppendBool(dst, "done", true), "ok", 1)
			}))
			p.read()
			p.read()
		})
		c := dial(t, "a:27017", &cfg)
		c.SetTimeout(time.Hour)
		start := time.Now()
		err := c.Reauthenticate(t.Context())
		if _, ok := errors.AsType[*mongoerr.ConnectionError](err); !ok || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if c.limit != time.Hour {
			t.Errorf("limit %v", c.limit)
		}
	})
}
