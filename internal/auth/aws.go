package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/internal/sigv4"
)

// aws is the mechanism MONGODB-AWS (specification: Authentication): the client signs a request to
// Amazon's Security Token Service, which the server sends there to learn who signed it.
type aws struct {
	*saslConversation
	keys *AWSKeys
}

func newAWS(t *Attempt) (conversation, error) {
	s := &saslConversation{mechanism: auth.MechanismAWS, source: t.id.credential.Source,
		client: &awsSigner{keys: t.id.aws}}
	return &aws{s, t.id.aws}, nil
}

func (a *aws) run(ctx context.Context, t Transport, speculative bson.Raw) error {
	err := a.saslConversation.run(ctx, t, speculative)
	if err != nil {
		a.keys.Forget()
	}
	return err
}

// The lengths of the nonces: the server's is the client's and as much again.
const (
	awsNonce       = 32
	awsServerNonce = 64
)

// awsSigner is the client's side of one conversation.
type awsSigner struct {
	keys  *AWSKeys
	nonce []byte
	done  bool
}

func (s *awsSigner) start(context.Context) ([]byte, error) {
	s.nonce = make([]byte, awsNonce)
	rand.Read(s.nonce) // never fails
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendBinary(dst, "r", bson.BinaryGeneric, s.nonce)
	return bson.EndDocument(bson.AppendInt32(dst, "p", 'n'), start), nil // without channel binding
}

func (s *awsSigner) next(ctx context.Context, challenge []byte) ([]byte, error) {
	if s.done {
		return nil, errors.New("server sent more than MONGODB-AWS has")
	}
	first := bson.Raw(challenge)
	if err := first.Validate(); err != nil {
		return nil, fmt.Errorf("server's first message: %w", err)
	}
	nonce, _ := first.Lookup("s").Binary()
	if len(nonce.Data) != awsServerNonce || !bytes.HasPrefix(nonce.Data, s.nonce) {
		return nil, errors.New("server's nonce does not continue the client's")
	}
	host, _ := first.Lookup("h").StringValue()
	region, err := awsRegion(host)
	if err != nil {
		return nil, err
	}
	keys, err := s.keys.Get(ctx)
	if err != nil {
		return nil, err
	}
	s.done = true
	date := time.Now().UTC().Format(sigv4.TimeFormat)
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "a", sigv4.Authorization(awsRequest(host, region, date, string(keys.SessionToken),
		nonce.Data), keys.AccessKeyID, string(keys.SecretAccessKey)))
	dst = bson.AppendString(dst, "d", date)
	if keys.SessionToken != "" {
		dst = bson.AppendString(dst, "t", string(keys.SessionToken))
	}
	return bson.EndDocument(dst, start), nil
}

func (s *awsSigner) complete() bool { return s.done }

// awsRequest is what is signed: a question to the Security Token Service who the caller is.
func awsRequest(host, region, date, token string, nonce []byte) sigv4.Request {
	const body = "Action=GetCallerIdentity&Version=2011-06-15"
	r := sigv4.Request{Method: "POST", Path: "/", Body: body, Time: date, Region: region, Service: "sts",
		Headers: []sigv4.Header{
			{Name: "content-length", Value: strconv.Itoa(len(body))},
			{Name: "content-type", Value: "application/x-www-form-urlencoded"},
			{Name: "host", Value: host}, {Name: "x-amz-date", Value: date},
			{Name: "x-mongodb-gs2-cb-flag", Value: "n"},
			{Name: "x-mongodb-server-nonce", Value: base64.StdEncoding.EncodeToString(nonce)},
		}}
	if token != "" {
		r.Headers = append(r.Headers, sigv4.Header{Name: "x-amz-security-token", Value: token})
	}
	return r
}

const maxHost = 255 // RFC 1035

// awsRegion returns the region of a host of the service ("Region Calculation").
func awsRegion(host string) (string, error) {
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(host) > maxHost {
			return "", fmt.Errorf("server names %q as the host of the Security Token Service, which is no host's name",
				host)
		}
	}
	if host == "sts.amazonaws.com" || len(labels) == 1 {
		return "us-east-1", nil
	}
	return labels[1], nil
}
