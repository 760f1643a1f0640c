// Package kerberostest lets deployments of package mongotest authenticate with Kerberos, for tests
// of programs that do:
//
//	acceptor, err := kerberostest.NewAcceptor("mongodb.keytab")
//	d := mongotest.Start(t, mongotest.GSSAPI(acceptor))
package kerberostest

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"sync/atomic"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"allium/kerberos/internal/gss"
	"allium/mongotest"
)

// Acceptor is the service's side of Kerberos (RFC 4121), with the keys of a keytab. It keeps no
// cache of what it has seen, so it does not detect replays. It is safe for concurrent use.
type Acceptor struct {
	keys  *keytab.Keytab
	shift atomic.Int64
}

var _ mongotest.Acceptor = (*Acceptor)(nil)

// NewAcceptor returns the acceptor for the services whose keys are in a keytab, which it reads
// once.
func NewAcceptor(keytabFile string) (*Acceptor, error) {
	data, err := os.ReadFile(keytabFile)
	if err != nil {
		return nil, fmt.Errorf("kerberostest: %w", err)
	}
	a := &Acceptor{keys: keytab.New()}
	if err := a.keys.Unmarshal(data); err != nil {
		return nil, fmt.Errorf("kerberostest: %s is no keytab: %w", keytabFile, err)
	}
	return a, nil
}

// ShiftClock moves the acceptor's clock away from this machine's.
func (a *Acceptor) ShiftClock(by time.Duration) { a.shift.Add(int64(by)) }

// maxSkew is how far the clocks of client and service may be apart.
const maxSkew = 5 * time.Minute

// Accept implements mongotest.Acceptor.
func (a *Acceptor) Accept(token []byte) ([]byte, mongotest.AcceptedContext, error) {
	reply, c, err := a.accept(token)
	if err != nil {
		return nil, nil, fmt.Errorf("kerberostest: %w", err)
	}
	return reply, c, nil
}

func (a *Acceptor) accept(token []byte) ([]byte, *context, error) {
	id, body, err := gss.Unframe(token)
	if err != nil {
		return nil, nil, err
	}
	if id != gss.APReq {
		return nil, nil, fmt.Errorf("token %#04x, want %#04x", uint16(id), uint16(gss.APReq))
	}
	var m messages.APReq
	if err := m.Unmarshal(body); err != nil {
		return nil, nil, err
	}
	if err := m.Ticket.DecryptEncPart(a.keys, &m.Ticket.SName); err != nil {
		return nil, nil, fmt.Errorf("ticket for %s@%s: %w", m.Ticket.SName.PrincipalNameString(), m.Ticket.Realm, err)
	}
	t := &m.Ticket.DecryptedEncPart
	if err := m.DecryptAuthenticator(t.Key); err != nil {
		return nil, nil, err
	}
	now := time.Now().Add(time.Duration(a.shift.Load()))
	proof := &m.Authenticator
	at := proof.CTime.Add(time.Duration(proof.Cusec) * time.Microsecond)
	switch {
	case !proof.CName.Equal(t.CName) || proof.CRealm != t.CRealm:
		return nil, nil, messages.NewKRBError(m.Ticket.SName, m.Ticket.Realm, errorcode.KRB_AP_ERR_BADMATCH,
			"ticket is another client's")
	case now.Sub(at).Abs() > maxSkew:
		return nil, nil, messages.NewKRBError(m.Ticket.SName, m.Ticket.Realm, errorcode.KRB_AP_ERR_SKEW,
			"client's clock differs too much")
	case now.After(t.EndTime.Add(maxSkew)):
		return nil, nil, messages.NewKRBError(m.Ticket.SName, m.Ticket.Realm, errorcode.KRB_AP_ERR_TKT_EXPIRED,
			"ticket has expired")
	}
	return a.reply(&m)
}

// reply proves to the client that the service could read the ticket, and gives the context a key of
// the service's.
func (a *Acceptor) reply(m *messages.APReq) ([]byte, *context, error) {
	t, proof := &m.Ticket.DecryptedEncPart, &m.Authenticator
	key := proof.SubKey
	if len(key.KeyValue) == 0 {
		key = t.Key
	}
	if err := gss.SupportedKey(key); err != nil {
		return nil, nil, err
	}
	e, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, nil, err
	}
	sub := types.EncryptionKey{KeyType: key.KeyType, KeyValue: make([]byte, e.GetKeyByteSize())}
	rand.Read(sub.KeyValue)
	seq, err := rand.Int(rand.Reader, big.NewInt(1<<30))
	if err != nil {
		return nil, nil, err
	}
	part, err := asn1.Marshal(messages.EncAPRepPart{CTime: proof.CTime, Cusec: proof.Cusec, Subkey: sub,
		SequenceNumber: seq.Int64()})
	if err != nil {
		return nil, nil, err
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(part, asnAppTag.EncAPRepPart), t.Key,
		keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		return nil, nil, err
	}
	rep, err := asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: sealed})
	if err != nil {
		return nil, nil, err
	}
	return gss.Frame(gss.APRep, asn1tools.AddASNAppTag(rep, asnAppTag.APREP)), &context{
		Side: gss.Side{
			Acceptor: true, Key: sub, AcceptorSubkey: true,
			Send: uint64(seq.Int64()), Receive: uint64(uint32(proof.SeqNumber)),
		},
		principal: t.CName.PrincipalNameString() + "@" + t.CRealm,
	}, nil
}

// context is an established context.
type context struct {
	gss.Side
	principal string
}

// Principal implements mongotest.AcceptedContext.
func (c *context) Principal() string { return c.principal }
