package account

import (
	"crypto/subtle"
	"encoding/base64"
	"strings"

	"allium/internal/sigv4"
)

// AWSKey is a key of a user. Token is that of temporary keys.
type AWSKey struct{ ID, Secret, Token string }

// STSHost is the service that clients sign their request for.
const STSHost = "sts.amazonaws.com"

// AWSUser returns the user whose key made this signature of a request to the Security Token
// Service, nil if there is none.
func (g *Registry) AWSUser(authorization, date, token string, nonce []byte) *User {
	_, rest, _ := strings.Cut(authorization, "Credential=")
	id, _, _ := strings.Cut(rest, "/")
	list := g.List(func(u *User) bool { return u.AWS.ID != "" && u.AWS.ID == id && u.AWS.Token == token })
	if len(list) == 0 {
		return nil
	}
	u := list[0]
	const body = "Action=GetCallerIdentity&Version=2011-06-15"
	request := sigv4.Request{Method: "POST", Path: "/", Body: body, Time: date, Region: "us-east-1", Service: "sts",
		Headers: []sigv4.Header{
			{Name: "content-length", Value: "43"}, {Name: "content-type", Value: "application/x-www-form-urlencoded"},
			{Name: "host", Value: STSHost},
			{Name: "x-amz-date", Value: date}, {Name: "x-mongodb-gs2-cb-flag", Value: "n"},
			{Name: "x-mongodb-server-nonce", Value: base64.StdEncoding.EncodeToString(nonce)},
		}}
	if token != "" {
		request.Headers = append(request.Headers, sigv4.Header{Name: "x-amz-security-token", Value: token})
	}
	if subtle.ConstantTimeCompare([]byte(authorization), []byte(sigv4.Authorization(request, id, u.AWS.Secret))) != 1 {
		return nil
	}
	return u
}

// HasAWSKeys reports whether any user has keys: then the mechanism is on.
func (g *Registry) HasAWSKeys() bool {
	return len(g.List(func(u *User) bool { return u.AWS.ID != "" })) > 0
}
