// Package gss has what both sides of a Kerberos security context have in common (RFC 4121): the
// frames of the tokens that establish it, and the tokens that messages are wrapped in.
package gss

import (
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// TokenID says what a token of the establishment carries (RFC 4121, section 4.1).
type TokenID uint16

// The tokens of the establishment.
const (
	APReq    TokenID = 0x0100
	APRep    TokenID = 0x0200
	KRBError TokenID = 0x0300
)

// oid is that of the mechanism, 1.2.840.113554.1.2.2.
var oid = asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2}

// Frame returns the token that carries a Kerberos message (RFC 2743, section 3.1).
func Frame(id TokenID, message []byte) []byte {
	b, _ := asn1.Marshal(oid)
	b = append(binary.BigEndian.AppendUint16(b, uint16(id)), message...)
	return asn1tools.AddASNAppTag(b, 0)
}

// classApplication is the class of ASN.1 that frames have.
const classApplication = 1

// Unframe takes a token apart.
func Unframe(token []byte) (id TokenID, message []byte, err error) {
	var outer asn1.RawValue
	if rest, err := asn1.Unmarshal(token, &outer); err != nil || len(rest) > 0 || outer.Class != classApplication ||
		outer.Tag != 0 {
		return 0, nil, errors.New("token is not one of GSS-API")
	}
	var got asn1.ObjectIdentifier
	rest, err := asn1.Unmarshal(outer.Bytes, &got)
	if err != nil || !got.Equal(oid) {
		return 0, nil, errors.New("token is not one of Kerberos")
	}
	if len(rest) < 2 {
		return 0, nil, errors.New("token is too short")
	}
	return TokenID(binary.BigEndian.Uint16(rest)), rest[2:], nil
}

// SupportedKey says whether messages can be wrapped with a key. The older ciphers have tokens of
// another form (RFC 1964, RFC 4757), and are not safe.
func SupportedKey(k types.EncryptionKey) error {
	switch k.KeyType {
	case etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128,
		etypeID.AES256_CTS_HMAC_SHA384_192:
		return nil
	}
	return fmt.Errorf("the session key is of the encryption type %d: give the service's principal a key of AES",
		k.KeyType)
}

// Side is one side of an established context. It is used by one goroutine at a time.
type Side struct {
	// Acceptor says that this is the service's side.
	Acceptor bool
	// Key protects the messages of both sides. AcceptorSubkey says that it is the acceptor's.
	Key            types.EncryptionKey
	AcceptorSubkey bool
	// Send and Receive are the numbers of the next messages.
	Send, Receive uint64
}

// The flags of wrapped messages (RFC 4121, section 4.2.2).
const (
	flagAcceptor = 1 << iota
	flagSealed
	flagAcceptorSubkey
)

func (s *Side) flags(acceptor bool) byte {
	var f byte
	if acceptor {
		f |= flagAcceptor
	}
	if s.AcceptorSubkey {
		f |= flagAcceptorSubkey
	}
	return f
}

// usage returns the usage of the key for messages of one side.
func usage(acceptor bool) uint32 {
	if acceptor {
		return keyusage.GSSAPI_ACCEPTOR_SEAL
	}
	return keyusage.GSSAPI_INITIATOR_SEAL
}

// Wrap protects the integrity of a message (RFC 4121, section 4.2.6.2), and does not encrypt it.
func (s *Side) Wrap(message []byte) ([]byte, error) {
	e, err := crypto.GetEtype(s.Key.KeyType)
	if err != nil {
		return nil, err
	}
	t := gssapi.WrapToken{Flags: s.flags(s.Acceptor), EC: uint16(e.GetHMACBitLength() / 8), SndSeqNum: s.Send,
		Payload: message}
	if message == nil {
		t.Payload = []byte{}
	}
	if err := t.SetCheckSum(s.Key, usage(s.Acceptor)); err != nil {
		return nil, err
	}
	s.Send++
	return t.Marshal()
}

// Unwrap checks a message of the other side and returns it.
func (s *Side) Unwrap(token []byte) ([]byte, error) {
	var t gssapi.WrapToken
	if err := t.Unmarshal(unrotate(token), !s.Acceptor); err != nil {
		return nil, err
	}
	switch {
	case t.Flags&flagSealed != 0:
		return nil, errors.New("message is encrypted, want only its integrity protected (RFC 4752)")
	case t.Flags != s.flags(!s.Acceptor):
		return nil, fmt.Errorf("message has the flags %#x, want %#x", t.Flags, s.flags(!s.Acceptor))
	case t.SndSeqNum != s.Receive:
		return nil, errors.New("message is out of order")
	}
	if _, err := t.Verify(s.Key, usage(!s.Acceptor)); err != nil {
		return nil, errors.New("message was tampered with: its checksum is wrong")
	}
	s.Receive++
	return t.Payload, nil
}

// unrotate undoes the rotation of a wrapped message, which its header says the length of (RFC 4121,
// section 4.2.5).
func unrotate(token []byte) []byte {
	if len(token) <= gssapi.HdrLen {
		return token
	}
	body := token[gssapi.HdrLen:]
	n := int(binary.BigEndian.Uint16(token[6:8])) % len(body)
	out := append([]byte(nil), token[:gssapi.HdrLen]...)
	return append(append(out, body[n:]...), body[:n]...)
}
