package auth

import (
	"context"

	"allium/bson"
)

// x509 is the mechanism MONGODB-X509: the certificate of the TLS connection is the proof.
type x509 struct {
	user string // "" lets the server take it from the certificate
}

func (x *x509) append(dst []byte) []byte {
	dst = bson.AppendInt32(dst, "authenticate", 1)
	dst = bson.AppendString(dst, "mechanism", "MONGODB-X509")
	if x.user != "" {
		dst = bson.AppendString(dst, "user", x.user)
	}
	return dst
}

func (x *x509) first(dst []byte) ([]byte, bool) { return x.append(dst), true }

func (x *x509) run(ctx context.Context, t Transport, speculative bson.Raw) error {
	if speculative != nil {
		return nil
	}
	_, err := t.RunCommand(ctx, "$external", x.append)
	return err
}
