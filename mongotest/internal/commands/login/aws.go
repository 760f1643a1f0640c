package login

import (
	"bytes"
	"crypto/rand"
	"time"

	"allium/bson"
	"allium/internal/sigv4"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
)

// MONGODB-AWS authenticates with keys of Amazon Web Services. A real server passes what the client
// has signed on to the Security Token Service; this one knows the users' keys, and signs the same
// itself.

// maxSkew is how far the client's clock may be from the server's.
const maxSkew = 15 * time.Minute

func awsStart(r *server.Request, payload, dst []byte) ([]byte, error) {
	if !r.Node.Data().Accounts().HasAWSKeys() {
		return dst, errMechanism(r, account.MechAWS)
	}
	first := bson.Raw(payload)
	if first.Validate() != nil {
		return dst, account.ErrAuthentication()
	}
	nonce, _ := first.Lookup("r").Binary()
	flag, _ := first.Lookup("p").AsInt64()
	if len(nonce.Data) != 32 || flag != 'n' {
		return dst, account.ErrAuthentication()
	}
	both := append(bytes.Clone(nonce.Data), make([]byte, 32)...)
	rand.Read(both[32:])
	r.Conn.SASL = &conversation{last: func(r *server.Request, payload, dst []byte) ([]byte, error) {
		return awsProof(r, both, payload, dst)
	}}
	return appendSASL(r, dst, false, bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendBinary(d.B, "s", bson.BinaryGeneric, both)
		d.Str("h", account.STSHost)
	})), nil
}

// awsProof checks the signature that ends a conversation.
func awsProof(r *server.Request, nonce, payload, dst []byte) ([]byte, error) {
	second := bson.Raw(payload)
	if second.Validate() != nil {
		return dst, account.ErrAuthentication()
	}
	authorization, _ := second.Lookup("a").StringValue()
	date, _ := second.Lookup("d").StringValue()
	token, _ := second.Lookup("t").StringValue()
	at, err := time.Parse(sigv4.TimeFormat, date)
	if skew := time.Since(at); err != nil || skew.Abs() > maxSkew {
		return dst, account.ErrAuthentication()
	}
	u := r.Node.Data().Accounts().AWSUser(authorization, date, token, nonce)
	if u == nil {
		return dst, account.ErrAuthentication()
	}
	if err := r.Conn.LogIn(u); err != nil {
		return dst, err
	}
	return appendSASL(r, dst, true, nil), nil
}
