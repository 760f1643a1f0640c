package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"

	"allium/mongotest/internal/account"
)

// mechGSSAPI authenticates with Kerberos (RFC 4752). The Kerberos messages are those of the
// deployment's acceptor; what is done here is SASL.
const mechGSSAPI = "GSSAPI"

// Kerberos accepts security contexts.
type Kerberos interface {
	Accept(token []byte) (reply []byte, c KerberosContext, err error)
}

// KerberosContext is an accepted security context.
type KerberosContext interface {
	Principal() string
	Wrap(message []byte) ([]byte, error)
	Unwrap(token []byte) ([]byte, error)
}

// The security layers of RFC 4752. Servers of MongoDB offer only that there is none.
const (
	saslNoLayer  = 1
	offeredLayer = saslNoLayer << 24
)

func (r *Request) gssapiStart(payload, dst []byte) ([]byte, error) {
	k := r.Node.cfg.Kerberos
	if k == nil {
		return dst, r.errMechanism(mechGSSAPI)
	}
	reply, c, err := k.Accept(payload)
	if err != nil {
		if log := r.Node.cfg.Log; log != nil {
			log.LogAttrs(context.Background(), slog.LevelInfo, "security context is refused", slog.String("node", r.Node.addr), slog.String("error", err.Error()))
		}
		return dst, account.ErrAuthentication()
	}
	r.Conn.sasl = &conversation{last: func(r *Request, payload, dst []byte) ([]byte, error) { return r.gssapiOffer(c, payload, dst) }}
	return r.appendSASL(dst, false, reply), nil
}

// gssapiOffer answers the empty message after the context is there with the security layers.
func (r *Request) gssapiOffer(c KerberosContext, payload, dst []byte) ([]byte, error) {
	if len(payload) != 0 {
		return dst, account.ErrAuthentication()
	}
	offer, err := c.Wrap(binary.BigEndian.AppendUint32(nil, offeredLayer))
	if err != nil {
		return dst, account.ErrAuthentication()
	}
	r.Conn.sasl = &conversation{last: func(r *Request, payload, dst []byte) ([]byte, error) { return r.gssapiChoice(c, payload, dst) }}
	return r.appendSASL(dst, false, offer), nil
}

// gssapiChoice ends the conversation with the client's choice and the name that it wants, which
// must be that of its ticket, with or without the realm.
func (r *Request) gssapiChoice(c KerberosContext, payload, dst []byte) ([]byte, error) {
	choice, err := c.Unwrap(payload)
	if err != nil || len(choice) < 4 || choice[0] != saslNoLayer {
		return dst, account.ErrAuthentication()
	}
	principal := []byte(c.Principal())
	name, _, _ := bytes.Cut(principal, []byte("@"))
	if wanted := choice[4:]; len(wanted) > 0 && !bytes.Equal(wanted, principal) && !bytes.Equal(wanted, name) {
		return dst, account.ErrAuthentication()
	}
	u := r.Node.data.accounts.Find(string(principal), account.ExternalDB)
	if u == nil {
		return dst, account.ErrAuthentication()
	}
	r.Conn.setUser(u)
	return r.appendSASL(dst, true, nil), nil
}
