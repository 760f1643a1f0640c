package kerberos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"allium/auth"
)

// liar is a KDC that says what a test wants: one answer after the other, and the last again.
type liar struct {
	net.PacketConn
	answers chan [][]byte // of the next login
}

func startLiar(t testing.TB) *liar {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{c, make(chan [][]byte, 1)}
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 4096)
		var answers [][]byte
		for {
			_, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			select {
			case answers = <-l.answers:
			default:
			}
			c.WriteTo(answers[0], from)
			if len(answers) > 1 {
				answers = answers[1:]
			}
		}
	}()
	return l
}

// begin logs in with a keytab.
func (l *liar) begin(t testing.TB, dir string, answers ...[]byte) error {
	t.Helper()
	k := New(Options{ConfigFile: filepath.Join(dir, "krb5.conf"), Keytab: filepath.Join(dir, "ada.keytab")})
	l.answers <- answers
	_, err := k.Begin(t.Context(), auth.GSSAPIParams{Username: "ada@R", ServiceName: "mongodb", ServiceHost: "localhost"})
	select {
	case <-l.answers: // it was not asked
	default:
	}
	return err
}

// files writes a configuration that names the KDC, and ada's keytab.
func (l *liar) files(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	kt := keytab.New()
	if err := kt.AddEntry("ada", "R", "secret-of-ada", time.Unix(0, 0), 1, 18); err != nil {
		t.Fatal(err)
	}
	data, err := kt.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf("[libdefaults]\n\tdefault_realm = R\n\tdns_lookup_kdc = false\n[realms]\n\tR = {\n\t\tkdc = %s\n\t}\n", l.LocalAddr())
	for name, text := range map[string][]byte{"ada.keytab": data, "krb5.conf": []byte(conf)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// refusal makes the error with which a KDC asks for more, with data.
func refusal(t testing.TB, code int32, data any) []byte {
	t.Helper()
	e := messages.NewKRBError(types.NewPrincipalName(2, "krbtgt/R"), "R", code, "no")
	e.CRealm, e.CName = "R", types.NewPrincipalName(1, "ada")
	if data != nil {
		b, err := asn1.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		e.EData = b
	}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reply makes an answer of a KDC, whose encrypted part nobody can read.
func reply(t testing.TB, cipher string) []byte {
	t.Helper()
	sealed := types.EncryptedData{EType: 18, KVNO: 1, Cipher: []byte(cipher)}
	m := messages.ASRep{KDCRepFields: messages.KDCRepFields{PVNO: 5, MsgType: msgtype.KRB_AS_REP, CRealm: "R", CName: types.NewPrincipalName(1, "ada"),
		Ticket: messages.Ticket{TktVNO: 5, Realm: "R", SName: types.NewPrincipalName(2, "krbtgt/R"), EncPart: sealed}, EncPart: sealed}}
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLyingKDC: whatever a KDC answers, that is the operation's error; it never ends the process.
func TestLyingKDC(t *testing.T) {
	l := startLiar(t)
	dir := l.files(t)
	infos := func(kind int32, list any) types.PADataSequence {
		b, err := asn1.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return types.PADataSequence{{PADataType: kind, PADataValue: b}}
	}
	for name, answers := range map[string][][]byte{
		"no encryption types":     {refusal(t, errorcode.KDC_ERR_PREAUTH_REQUIRED, infos(patype.PA_ETYPE_INFO2, types.ETypeInfo2{}))},
		"no old encryption types": {refusal(t, errorcode.KDC_ERR_PREAUTH_REQUIRED, infos(patype.PA_ETYPE_INFO, types.ETypeInfo{}))},
		"nothing to begin with":   {refusal(t, errorcode.KDC_ERR_PREAUTH_REQUIRED, nil)},
		"garbage":                 {[]byte("garbage")},
		"a reply":                 {reply(t, strings.Repeat("x", 100))},
		"a short reply":           {reply(t, "x")},
		"a reply without a name":  {asn1tools.AddASNAppTag([]byte{0x30, 0}, asnAppTag.ASREP)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := l.begin(t, dir, answers...)
			if err == nil || errors.Is(err, ctx.Err()) || strings.Contains(err.Error(), "secret-of-ada") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// FuzzKDC lets a KDC answer a login with any bytes: there is an error that shows no secret. Keys
// stand in a keytab, since a KDC may make a password's take as long as it likes.
func FuzzKDC(f *testing.F) {
	l := startLiar(f)
	dir := l.files(f)
	info, err := asn1.Marshal(types.ETypeInfo2{{EType: 18}})
	if err != nil {
		f.Fatal(err)
	}
	more := refusal(f, errorcode.KDC_ERR_PREAUTH_REQUIRED, types.PADataSequence{{PADataType: patype.PA_ETYPE_INFO2, PADataValue: info}})
	for _, first := range [][]byte{more, refusal(f, errorcode.KDC_ERR_PREAUTH_REQUIRED, nil), refusal(f, errorcode.KRB_AP_ERR_SKEW, nil), []byte("x")} {
		f.Add(first, reply(f, strings.Repeat("x", 100)))
	}
	f.Add(more, refusal(f, errorcode.KDC_ERR_WRONG_REALM, nil))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		if len(one) == 0 || len(two) == 0 || len(one)+len(two) > 4000 {
			return // not a datagram that is an answer
		}
		if err := l.begin(t, dir, one, two); err == nil || strings.Contains(err.Error(), "secret-of-ada") {
			t.Errorf("error %v", err)
		}
	})
}
