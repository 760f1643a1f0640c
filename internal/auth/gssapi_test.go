package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
)

// fakeKerberos is a GSSAPI whose tokens are numbers and whose wrapping is a pair of brackets.
type fakeKerberos struct {
	params auth.GSSAPIParams // of the last Begin
	steps  int               // tokens of the server until the context is established
	err    error

	refused int
}

func (k *fakeKerberos) Begin(_ context.Context, p auth.GSSAPIParams) (auth.GSSAPIContext, error) {
	k.params = p
	return &fakeContext{k: k}, k.err
}

type fakeContext struct {
	k     *fakeKerberos
	taken int
}

func (c *fakeContext) Step(token []byte) ([]byte, bool, error) {
	if token == nil {
		return []byte("token 0"), c.k.steps == 0, nil
	}
	if want := fmt.Sprintf("reply %d", c.taken); string(token) != want {
		return nil, false, fmt.Errorf("token %q, want %q", token, want)
	}
	c.taken++
	if c.taken == c.k.steps {
		return nil, true, nil
	}
	return fmt.Appendf(nil, "token %d", c.taken), false, nil
}

func (c *fakeContext) Refused() { c.k.refused++ }

func (c *fakeContext) Wrap(m []byte) ([]byte, error) { return []byte("<" + string(m) + ">"), nil }

func (c *fakeContext) Unwrap(m []byte) ([]byte, error) {
	in, ok := bytes.CutPrefix(m, []byte("<"))
	in, ok2 := bytes.CutSuffix(in, []byte(">"))
	if !ok || !ok2 {
		return nil, errors.New("message was tampered with")
	}
	return in, nil
}

// gssapiServer answers with the payloads of a script; the last one ends the conversation.
type gssapiServer struct {
	t      *testing.T
	script []string
	reject int // the exchange that is answered with an error, 0 for none
	got    []string
}

func (s *gssapiServer) Addr() string       { return "db1.example.com:27017" }
func (*gssapiServer) Limit() time.Duration { return 0 }

func (s *gssapiServer) RunCommand(_ context.Context, db string, fill func([]byte) []byte) (bson.Raw, error) {
	cmd := document(fill)
	payload, _ := cmd.Lookup("payload").Binary()
	s.got = append(s.got, string(payload.Data))
	n := len(s.got)
	name := "saslContinue"
	if n == 1 {
		name = "saslStart"
		if m, _ := cmd.Lookup("mechanism").StringValue(); m != "GSSAPI" {
			s.t.Errorf("mechanism %q", m)
		}
	}
	if cmd.Lookup(name).IsZero() || db != "$external" {
		s.t.Errorf("command %v on %s, want %s on $external", cmd, db, name)
	}
	if n == s.reject {
		return nil, &mongoerr.ServerError{Code: 18, Name: "AuthenticationFailed", Message: "Authentication failed."}
	}
	return document(func(dst []byte) []byte {
		dst = bson.AppendInt32(dst, "conversationId", 1)
		dst = bson.AppendBool(dst, "done", n == len(s.script))
		return bson.AppendBinary(dst, "payload", bson.BinaryGeneric, []byte(s.script[n-1]))
	}), nil
}

func TestGSSAPI(t *testing.T) {
	offer := "<\x07\x00\x10\x00>" // all layers, with messages of at most 4096 bytes
	answer := "<\x01\x00\x00\x00ada@EXAMPLE.COM>"
	for _, tt := range []struct {
		name   string
		steps  int
		script []string
		reject int
		sent   []string
		err    string
	}{
		{"mutual", 1, []string{"reply 0", offer, ""}, 0, []string{"token 0", "", answer}, ""},
		{"in several steps", 3, []string{"reply 0", "reply 1", "reply 2", offer, ""}, 0, []string{"token 0", "token 1", "token 2", "", answer}, ""},
		{"one token", 0, []string{offer, ""}, 0, []string{"token 0", answer}, ""},
		{"server is not the service", 1, []string{"nonsense", offer, ""}, 0, []string{"token 0"}, `token "nonsense"`},
		{"offer is forged", 1, []string{"reply 0", "\x01\x00\x00\x00", ""}, 0, []string{"token 0", ""}, "message was tampered with"},
		{"offer is too short", 1, []string{"reply 0", "<\x01>", ""}, 0, []string{"token 0", ""}, "has 1 bytes, want 4"},
		{"server insists on encryption", 1, []string{"reply 0", "<\x06\x00\x10\x00>", ""}, 0, []string{"token 0", ""}, "insists on a security layer"},
		{"server ends early", 1, []string{"reply 0"}, 0, []string{"token 0"}, "ended the conversation before"},
		{"ticket is refused", 1, []string{"reply 0", offer, ""}, 1, []string{"token 0"}, "check that its keytab has the current key"},
		{"user is not there", 1, []string{"reply 0", offer, ""}, 3, []string{"token 0", "", answer}, `check that the deployment has a user "ada@EXAMPLE.COM" on "$external"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := &fakeKerberos{steps: tt.steps}
			a, err := New(&auth.Credential{Username: "ada@EXAMPLE.COM", Source: "$external", Mechanism: "GSSAPI"}, Options{GSSAPI: k})
			if err != nil {
				t.Fatal(err)
			}
			attempt, err := a.Attempt(t.Context(), "db1.example.com:27017")
			if err != nil {
				t.Fatal(err)
			}
			if hello := attempt.AppendHello(nil); len(hello) != 0 {
				t.Errorf("the hello carries %q: the mechanism does not speculate", hello)
			}
			s := &gssapiServer{t: t, script: tt.script, reject: tt.reject}
			err = attempt.Finish(t.Context(), s, document(func(dst []byte) []byte { return dst }))
			if _, ok := errors.AsType[*mongoerr.AuthError](err); (tt.err == "") != (err == nil) || err != nil && (!ok || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if (k.refused == 1) != (tt.reject != 0) {
				t.Errorf("told %d times that the server refused it", k.refused)
			}
			if !reflect.DeepEqual(s.got, tt.sent) {
				t.Errorf("sent %q, want %q", s.got, tt.sent)
			}
		})
	}
}

// names is a HostResolver.
type names struct{ addrs, cname, reverse map[string]string }

var errNoName = &net.DNSError{Err: "no such host", IsNotFound: true}

func (n *names) LookupHost(_ context.Context, host string) ([]string, error) {
	if a, ok := n.addrs[host]; ok {
		return []string{a, "192.0.2.99"}, nil
	}
	return nil, errNoName
}

func (n *names) LookupCNAME(_ context.Context, host string) (string, error) {
	if c, ok := n.cname[host]; ok {
		return c, nil
	}
	return "", errNoName
}

func (n *names) LookupAddr(_ context.Context, addr string) ([]string, error) {
	if a, ok := n.reverse[addr]; ok {
		return []string{a, "other."}, nil
	}
	return nil, errNoName
}

func TestGSSAPIPrincipal(t *testing.T) {
	dns := &names{
		addrs:   map[string]string{"alias.example.com": "192.0.2.1", "plain.example.com": "192.0.2.2", "mute.example.com": "192.0.2.3"},
		cname:   map[string]string{"alias.example.com": "DB1.example.com.", "plain.example.com": "plain.example.com."},
		reverse: map[string]string{"192.0.2.1": "Rack7.Example.com.", "192.0.2.2": "plain.example.com."},
	}
	for _, tt := range []struct {
		addr       string
		properties map[string]string
		name, host string
		realm      string
	}{
		{"alias.example.com:27017", nil, "mongodb", "alias.example.com", ""},
		{"alias.example.com:27017", map[string]string{"CANONICALIZE_HOST_NAME": "none"}, "mongodb", "alias.example.com", ""},
		{"alias.example.com:27017", map[string]string{"CANONICALIZE_HOST_NAME": "forward"}, "mongodb", "db1.example.com", ""},
		{"alias.example.com:27017", map[string]string{"CANONICALIZE_HOST_NAME": "forwardAndReverse"}, "mongodb", "rack7.example.com", ""},
		{"plain.example.com:27017", map[string]string{"CANONICALIZE_HOST_NAME": "forward"}, "mongodb", "plain.example.com", ""},
		{"mute.example.com:27017", map[string]string{"CANONICALIZE_HOST_NAME": "forward"}, "mongodb", "mute.example.com", ""},
		{"mute.example.com:27017", map[string]string{"CANONICALIZE_HOST_NAME": "forwardAndReverse"}, "mongodb", "mute.example.com", ""},
		{"unknown.example.com:27017", map[string]string{"CANONICALIZE_HOST_NAME": "forwardAndReverse"}, "mongodb", "unknown.example.com", ""},
		{"localhost:27017", map[string]string{"SERVICE_HOST": "alias.example.com"}, "mongodb", "alias.example.com", ""},
		{"localhost:27017", map[string]string{"SERVICE_HOST": "alias.example.com", "CANONICALIZE_HOST_NAME": "forward"}, "mongodb", "db1.example.com", ""},
		{"[::1]:27017", map[string]string{"SERVICE_NAME": "other", "SERVICE_REALM": "AWESOME"}, "other", "::1", "AWESOME"},
	} {
		k := &fakeKerberos{err: errors.New("seen enough")}
		properties := map[string]string{"SERVICE_NAME": "mongodb"}
		for name, v := range tt.properties {
			properties[name] = v
		}
		a, err := New(&auth.Credential{Username: "ada", Password: "secret", PasswordSet: true, Source: "$external", Mechanism: "GSSAPI", Properties: properties}, Options{GSSAPI: k, Resolver: dns})
		if err != nil {
			t.Fatal(err)
		}
		attempt, err := a.Attempt(t.Context(), tt.addr)
		if err != nil {
			t.Fatal(err)
		}
		err = attempt.Finish(t.Context(), &gssapiServer{t: t}, document(func(dst []byte) []byte { return dst }))
		if err == nil || !strings.Contains(err.Error(), "seen enough") || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
		want := auth.GSSAPIParams{Username: "ada", Password: "secret", PasswordSet: true, ServiceName: tt.name, ServiceHost: tt.host, ServiceRealm: tt.realm}
		if k.params != want {
			t.Errorf("%s with %v: host %s, name %s, realm %s", tt.addr, tt.properties, k.params.ServiceHost, k.params.ServiceName, k.params.ServiceRealm)
		}
		if text := fmt.Sprintf("%v %+v %#v", k.params, k.params, k.params); strings.Contains(text, "secret") {
			t.Errorf("printed as %s", text)
		}
	}
}

// A host whose name DNS does not tell otherwise keeps the one that it has, in every mode and
// whatever is missing (specification: Authentication, "Hostname Canonicalization").
func TestCanonicalHost(t *testing.T) {
	known := &names{addrs: map[string]string{"a": "192.0.2.1"}, cname: map[string]string{"a": "A.Example.com."}, reverse: map[string]string{"192.0.2.1": "R.example.com."}}
	for _, c := range []struct {
		name, mode string
		dns        *names
		want       string
	}{
		{"not asked for", "none", known, "a"},
		{"by the name", "forward", known, "a.example.com"},
		{"by the address", "forwardAndReverse", known, "r.example.com"},
		{"no address", "forward", &names{cname: known.cname}, "a"},
		{"no address either", "forwardAndReverse", &names{reverse: known.reverse}, "a"},
		{"no other name", "forward", &names{addrs: known.addrs}, "a"},
		{"no name of the address", "forwardAndReverse", &names{addrs: known.addrs}, "a"},
		{"an empty name", "forward", &names{addrs: known.addrs, cname: map[string]string{"a": "."}}, "a"},
	} {
		if got := canonicalHost(t.Context(), c.dns, "a", c.mode); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
