package login

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"

	"allium/mongotest/internal/account"
	"allium/mongotest/internal/server"
)

// What is done here of GSSAPI (RFC 4752) is SASL; the Kerberos messages are those of the
// deployment's acceptor.

// The security layers of RFC 4752. Servers of MongoDB offer only that there is none.
const (
	saslNoLayer  = 1
	offeredLayer = saslNoLayer << 24
)

func gssapiStart(r *server.Request, payload, dst []byte) ([]byte, error) {
	k := r.Node.Config().Kerberos
	if k == nil {
		return dst, errMechanism(r, account.MechGSSAPI)
	}
	reply, c, err := k.Accept(payload)
	if err != nil {
		if log := r.Node.Config().Log; log != nil {
			log.LogAttrs(context.Background(), slog.LevelInfo, "security context is refused",
				slog.String("node", r.Node.Addr()), slog.String("error", err.Error()))
		}
		return dst, account.ErrAuthentication()
	}
	r.Conn.SASL = &conversation{last: func(r *server.Request, payload, dst []byte) ([]byte, error) {
		return gssapiOffer(r, c, payload, dst)
	}}
	return appendSASL(r, dst, false, reply), nil
}

// gssapiOffer answers the empty message after the context is there with the security layers.
func gssapiOffer(r *server.Request, c account.KerberosContext, payload, dst []byte) ([]byte, error) {
	if len(payload) != 0 {
		return dst, account.ErrAuthentication()
	}
	offer, err := c.Wrap(binary.BigEndian.AppendUint32(nil, offeredLayer))
	if err != nil {
		return dst, account.ErrAuthentication()
	}
	r.Conn.SASL = &conversation{last: func(r *server.Request, payload, dst []byte) ([]byte, error) {
		return gssapiChoice(r, c, payload, dst)
	}}
	return appendSASL(r, dst, false, offer), nil
}

// gssapiChoice ends the conversation with the client's choice and the name that it wants, which
// must be that of its ticket, with or without the realm.
func gssapiChoice(r *server.Request, c account.KerberosContext, payload, dst []byte) ([]byte, error) {
	choice, err := c.Unwrap(payload)
	if err != nil || len(choice) < 4 || choice[0] != saslNoLayer {
		return dst, account.ErrAuthentication()
	}
	principal := []byte(c.Principal())
	name, _, _ := bytes.Cut(principal, []byte("@"))
	if wanted := choice[4:]; len(wanted) > 0 && !bytes.Equal(wanted, principal) && !bytes.Equal(wanted, name) {
		return dst, account.ErrAuthentication()
	}
	u := r.Node.Data().Accounts().Find(string(principal), account.ExternalDB)
	if u == nil {
		return dst, account.ErrAuthentication()
	}
	if err := r.Conn.LogIn(u); err != nil {
		return dst, err
	}
	return appendSASL(r, dst, true, nil), nil
}
