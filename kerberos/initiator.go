package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"allium/auth"
	"allium/kerberos/internal/gss"
)

// initiator is the client's side of a security context (RFC 4121).
type initiator struct {
	ticket  *ticket
	proof   types.Authenticator // that the first token carries
	refused func()
	side    gss.Side
	state   state
}

type state int

const (
	begin state = iota
	sent        // the first token
	established
)

var _ auth.GSSAPIContext = (*initiator)(nil)

// wanted are the flags of the context: the server proves itself too, and messages are protected.
const wanted = gssapi.ContextFlagMutual | gssapi.ContextFlagSequence | gssapi.ContextFlagInteg

// bindingsLength is that of the hash of channel bindings, which are not used: zeros.
const bindingsLength = 16

func newInitiator(t *ticket, id identity, refused func()) (*initiator, error) {
	if err := gss.SupportedKey(t.key); err != nil {
		return nil, err
	}
	e, err := crypto.GetEtype(t.key.KeyType)
	if err != nil {
		return nil, err
	}
	proof, err := types.NewAuthenticator(id.realm, types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, id.user))
	if err != nil {
		return nil, err
	}
	if err := proof.GenerateSeqNumberAndSubKey(t.key.KeyType, e.GetKeyByteSize()); err != nil {
		return nil, err
	}
	// RFC 4121, section 4.1.1: flags travel as a checksum.
	sum := binary.LittleEndian.AppendUint32(nil, bindingsLength)
	sum = append(sum, make([]byte, bindingsLength)...)
	proof.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: binary.LittleEndian.AppendUint32(sum, wanted)}
	return &initiator{ticket: t, proof: proof, refused: refused}, nil
}

// Step implements auth.GSSAPIContext.
func (i *initiator) Step(token []byte) (reply []byte, done bool, err error) {
	switch i.state {
	case begin:
		reply, err = i.request()
		i.state = sent
	case sent:
		err = i.reply(token)
		if done = err == nil; done {
			i.state = established
		}
	default:
		err = errors.New("context is established already")
	}
	if err != nil {
		err = fmt.Errorf("kerberos: %w", err)
	}
	return reply, done, err
}

// request makes the first token.
func (i *initiator) request() (token []byte, err error) {
	defer recovered(&err, "the ticket cannot be used: %v")
	m, err := messages.NewAPReq(i.ticket.ticket, i.ticket.key, i.proof)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&m.APOptions, flags.APOptionMutualRequired)
	b, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	return gss.Frame(gss.APReq, b), nil
}

// reply checks the server's token: only who can read the ticket can send the time that was in the
// first one.
func (i *initiator) reply(token []byte) (err error) {
	defer recovered(&err, "server's answer: %v")
	id, body, err := gss.Unframe(token)
	if err != nil {
		return fmt.Errorf("server's answer: %w", err)
	}
	switch id {
	case gss.APRep:
	case gss.KRBError:
		var e messages.KRBError
		if err := e.Unmarshal(body); err != nil {
			return fmt.Errorf("server's answer: %w", err)
		}
		i.Refused()
		if e.ErrorCode == errorcode.KRB_AP_ERR_SKEW {
			return fmt.Errorf("the clock of this machine and that of the server differ too much: set both by NTP (%w)",
				e)
		}
		return fmt.Errorf("server refused the ticket: %w", e)
	default:
		return fmt.Errorf("server's answer is a token %#04x, want %#04x", uint16(id), uint16(gss.APRep))
	}
	var m messages.APRep
	if err := m.Unmarshal(body); err != nil {
		return fmt.Errorf("server's answer: %w", err)
	}
	plain, err := crypto.DecryptEncPart(m.EncPart, i.ticket.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return fmt.Errorf("server did not prove that it is %s: %w", i.ticket.ticket.SName.PrincipalNameString(), err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return fmt.Errorf("server's answer: %w", err)
	}
	if !part.CTime.Equal(i.proof.CTime.Truncate(time.Second)) || part.Cusec != i.proof.Cusec {
		return fmt.Errorf("server did not prove that it is %s: its answer is to another message",
			i.ticket.ticket.SName.PrincipalNameString())
	}
	i.side = gss.Side{Key: i.proof.SubKey, Send: number(i.proof.SeqNumber), Receive: number(part.SequenceNumber)}
	if len(part.Subkey.KeyValue) > 0 {
		i.side.Key, i.side.AcceptorSubkey = part.Subkey, true
	}
	return gss.SupportedKey(i.side.Key)
}

// number returns a sequence number, which has 32 bits and which some send as a negative one.
func number(n int64) uint64 { return uint64(uint32(n)) }

// Wrap implements auth.GSSAPIContext.
func (i *initiator) Wrap(message []byte) ([]byte, error) {
	if i.state != established {
		return nil, errNotEstablished
	}
	return i.side.Wrap(message)
}

// Unwrap implements auth.GSSAPIContext.
func (i *initiator) Unwrap(token []byte) ([]byte, error) {
	if i.state != established {
		return nil, errNotEstablished
	}
	return i.side.Unwrap(token)
}

var errNotEstablished = errors.New("kerberos: context is not established")

// Refused implements auth.GSSAPIContext.
func (i *initiator) Refused() { i.refused() }
