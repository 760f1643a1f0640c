package server

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"allium/bson"
	"allium/internal/sigv4"
)

// mechAWS authenticates with keys of Amazon Web Services. A real server passes what the client has signed on to the Security Token
// Service; this one knows the users' keys, and signs the same itself.
const mechAWS = "MONGODB-AWS"

// AWSKey is a key of a user. Token is that of temporary keys.
type AWSKey struct{ ID, Secret, Token string }

const stsHost = "sts.amazonaws.com"

// maxSkew is how far the client's clock may be from the server's.
const maxSkew = 15 * time.Minute

func (r *Request) awsStart(payload, dst []byte) ([]byte, error) {
	if !r.Node.data.hasAWSKeys() {
		return dst, errMechanism(mechAWS)
	}
	first := bson.Raw(payload)
	if first.Validate() != nil {
		return dst, errAuthentication()
	}
	nonce, _ := first.Lookup("r").Binary()
	flag, _ := first.Lookup("p").AsInt64()
	if len(nonce.Data) != 32 || flag != 'n' {
		return dst, errAuthentication()
	}
	both := append(bytes.Clone(nonce.Data), make([]byte, 32)...)
	rand.Read(both[32:])
	r.Conn.sasl = &conversation{last: func(r *Request, payload, dst []byte) ([]byte, error) { return r.awsProof(both, payload, dst) }}
	return appendSASL(dst, false, build(func(d *docBuilder) {
		d.b = bson.AppendBinary(d.b, "s", bson.BinaryGeneric, both)
		d.str("h", stsHost)
	})), nil
}

// awsProof checks the signature that ends a conversation.
func (r *Request) awsProof(nonce, payload, dst []byte) ([]byte, error) {
	second := bson.Raw(payload)
	if second.Validate() != nil {
		return dst, errAuthentication()
	}
	authorization, _ := second.Lookup("a").StringValue()
	date, _ := second.Lookup("d").StringValue()
	token, _ := second.Lookup("t").StringValue()
	at, err := time.Parse(sigv4.TimeFormat, date)
	if skew := time.Since(at); err != nil || skew.Abs() > maxSkew {
		return dst, errAuthentication()
	}
	_, rest, _ := strings.Cut(authorization, "Credential=")
	id, _, _ := strings.Cut(rest, "/")
	list := r.Node.data.listUsers(func(u *User) bool { return u.AWS.ID != "" && u.AWS.ID == id && u.AWS.Token == token })
	if len(list) == 0 {
		return dst, errAuthentication()
	}
	u := list[0]
	const body = "Action=GetCallerIdentity&Version=2011-06-15"
	request := sigv4.Request{Method: "POST", Path: "/", Body: body, Time: date, Region: "us-east-1", Service: "sts", Headers: []sigv4.Header{
		{Name: "content-length", Value: "43"}, {Name: "content-type", Value: "application/x-www-form-urlencoded"}, {Name: "host", Value: stsHost},
		{Name: "x-amz-date", Value: date}, {Name: "x-mongodb-gs2-cb-flag", Value: "n"},
		{Name: "x-mongodb-server-nonce", Value: base64.StdEncoding.EncodeToString(nonce)},
	}}
	if token != "" {
		request.Headers = append(request.Headers, sigv4.Header{Name: "x-amz-security-token", Value: token})
	}
	if subtle.ConstantTimeCompare([]byte(authorization), []byte(sigv4.Authorization(request, id, u.AWS.Secret))) != 1 {
		return dst, errAuthentication()
	}
	r.Conn.user = u
	return appendSASL(dst, true, nil), nil
}

// hasAWSKeys reports whether any user has keys: then the mechanism is on.
func (d *Data) hasAWSKeys() bool {
	return len(d.listUsers(func(u *User) bool { return u.AWS.ID != "" })) > 0
}
