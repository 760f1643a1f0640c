package kerberos

import (
	"errors"
	"strings"
	"testing"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"allium/kerberos/internal/gss"
)

// newTestInitiator returns an initiator that has sent its first token.
func newTestInitiator(t testing.TB) *initiator {
	t.Helper()
	name := types.NewPrincipalName(1, "mongodb/localhost")
	key := types.EncryptionKey{KeyType: 18, KeyValue: make([]byte, 32)}
	i, err := newInitiator(&ticket{ticket: messages.Ticket{TktVNO: 5, Realm: "R", SName: name}, key: key}, identity{user: "ada", realm: "R"}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.Step(nil); err != nil {
		t.Fatal(err)
	}
	return i
}

// answer makes a server's answer, with a key.
func answer(t testing.TB, key types.EncryptionKey, part messages.EncAPRepPart) []byte {
	t.Helper()
	b, err := asn1.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(b, asnAppTag.EncAPRepPart), key, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = asn1.Marshal(messages.APRep{PVNO: 5, MsgType: 15, EncPart: sealed}); err != nil {
		t.Fatal(err)
	}
	return gss.Frame(gss.APRep, asn1tools.AddASNAppTag(b, asnAppTag.APREP))
}

func TestAnswer(t *testing.T) {
	i := newTestInitiator(t)
	if _, err := i.Wrap(nil); err != errNotEstablished {
		t.Errorf("message before the context is established: %v", err)
	}
	if _, err := i.Unwrap(nil); err != errNotEstablished {
		t.Errorf("message before the context is established: %v", err)
	}
	right := messages.EncAPRepPart{CTime: i.proof.CTime, Cusec: i.proof.Cusec}
	other := right
	other.Cusec++
	refusal := func(code int32) []byte {
		e := messages.NewKRBError(i.ticket.ticket.SName, "R", code, "no")
		b, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return gss.Frame(gss.KRBError, b)
	}
	for _, tt := range []struct {
		name, want string
		token      []byte
	}{
		{"not the service", "did not prove that it is mongodb/localhost", answer(t, types.EncryptionKey{KeyType: 18, KeyValue: []byte(strings.Repeat("x", 32))}, right)},
		{"a replay", "its answer is to another message", answer(t, i.ticket.key, other)},
		{"its own token", "is a token 0x0100", gss.Frame(gss.APReq, nil)},
		{"no token", "not one of GSS-API", []byte("hello")},
		{"skew", "set both by NTP", refusal(errorcode.KRB_AP_ERR_SKEW)},
		{"refusal", "refused the ticket", refusal(errorcode.KRB_AP_ERR_MODIFIED)},
		{"garbage", "server's answer", gss.Frame(gss.APRep, []byte("garbage"))},
		{"garbled refusal", "server's answer", gss.Frame(gss.KRBError, []byte("garbage"))},
	} {
		if _, done, err := i.Step(tt.token); done || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, done, err := i.Step(answer(t, i.ticket.key, right)); !done || err != nil {
		t.Errorf("the right answer: %v, %v", done, err)
	}
	if _, _, err := i.Step(nil); err == nil {
		t.Error("a step after the context is established")
	}
	if i.side.AcceptorSubkey || string(i.side.Key.KeyValue) != string(i.proof.SubKey.KeyValue) {
		t.Error("without a key of the server's, the client's is not used")
	}
}

// FuzzAnswer: nothing that a server sends makes the client panic, or take it for the service.
func FuzzAnswer(f *testing.F) {
	i := newTestInitiator(f)
	f.Add(answer(f, types.EncryptionKey{KeyType: 18, KeyValue: []byte(strings.Repeat("x", 32))}, messages.EncAPRepPart{CTime: i.proof.CTime}))
	e := messages.NewKRBError(i.ticket.ticket.SName, "R", 37, "no")
	b, err := e.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(gss.Frame(gss.KRBError, b))
	f.Fuzz(func(t *testing.T, token []byte) {
		i := newTestInitiator(t)
		if _, done, err := i.Step(token); done || err == nil {
			t.Errorf("took %q", token)
		}
	})
}

// TestFileName: names may have a type.
func TestFileName(t *testing.T) {
	for name, want := range map[string]string{"/tmp/x": "/tmp/x", "FILE:/tmp/x": "/tmp/x", `C:\x`: `C:\x`, "KCM:": "", "DIR:/tmp": ""} {
		if got, err := fileName(name, "option"); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestHints has what the tests with a KDC cannot provoke.
func TestHints(t *testing.T) {
	p := &problem{id: identity{user: "ada", realm: "R"}, service: service{"mongodb/h", "R"}, file: "/etc/krb5.conf"}
	for text, want := range map[string]string{
		"KRB Error: (32) KRB_AP_ERR_TKT_EXPIRED Ticket expired":      "run kinit ada@R",
		"KRB Error: (37) KRB_AP_ERR_SKEW Clock skew too great":       "set both by NTP",
		"clock skew with KDC too large. Greater than 300 seconds":    "set both by NTP",
		"KRB Error: (14) KDC_ERR_ETYPE_NOSUPP KDC has no support":    "no key of AES",
		"no KDC SRV records found for realm R":                       "no KDC is known of realm R",
		"KRB Error: (60) KRB_ERR_GENERIC Generic error (see e-text)": "",
	} {
		err := errors.New(text)
		if got := explain(err, p); !strings.Contains(got.Error(), want) || !errors.Is(got, err) || (want == "") != (got == err) {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}
