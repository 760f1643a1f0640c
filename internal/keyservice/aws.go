package keyservice

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"allium/auth"
	"allium/encryption/kms"
	"allium/internal/sigv4"
)

// awsService is Amazon's key service.
type awsService struct {
	c    *Client
	name string
	p    kms.AWS
}

// ask asks Amazon's service for an operation of the name "TrentService.…", in a request with
// Signature Version 4. No error shows secret, which is a part of the body.
func (s *awsService) ask(ctx context.Context, key kms.AWSKey, operation string, body []byte, secret string,
	out any) error {
	return withCredential(
		func() (auth.AWSCredentials, bool, error) { return s.keys(ctx, key) },
		func(auth.AWSCredentials) {
			if s.p.OnDemand() {
				s.c.aws.Forget()
			}
		},
		func(keys auth.AWSCredentials) error {
			r := &request{provider: s.name, endpoint: awsEndpoint(key), path: "/", body: body,
				secrets: []string{keys.AccessKeyID, string(keys.SecretAccessKey), string(keys.SessionToken), secret}}
			r.sign = func(r *request) error {
				signAWS(r, key.Region, operation, keys, time.Now().UTC())
				return nil
			}
			return s.c.post(ctx, r, out)
		})
}

// keys returns the credentials. Those on demand may have been kept, here or where they come from.
func (s *awsService) keys(ctx context.Context, key kms.AWSKey) (keys auth.AWSCredentials, kept bool, err error) {
	if !s.p.OnDemand() {
		return auth.AWSCredentials{AccessKeyID: s.p.AccessKeyID, SecretAccessKey: s.p.SecretAccessKey,
			SessionToken: s.p.SessionToken}, false, nil
	}
	if keys, err = s.c.aws.Get(ctx); err != nil {
		err = s.c.failed(ctx, s.name, awsEndpoint(key), 0, fmt.Errorf("credentials: %w", err))
	}
	return keys, true, err
}

// awsEndpoint returns where the key is.
func awsEndpoint(key kms.AWSKey) string {
	if key.Endpoint != "" {
		return withPort(key.Endpoint, httpsPort)
	}
	return withPort("kms."+key.Region+".amazonaws.com", httpsPort)
}

// signAWS sets a request's headers for an operation at a time.
func signAWS(r *request, region, operation string, keys auth.AWSCredentials, now time.Time) {
	date := now.Format(sigv4.TimeFormat)
	headers := []sigv4.Header{
		{Name: "content-length", Value: strconv.Itoa(len(r.body))},
		{Name: "content-type", Value: "application/x-amz-json-1.1"},
		{Name: "host", Value: r.host()},
		{Name: "x-amz-date", Value: date},
		{Name: "x-amz-target", Value: operation},
	}
	if keys.SessionToken != "" {
		headers = append(headers, sigv4.Header{Name: "x-amz-security-token", Value: string(keys.SessionToken)})
	}
	r.header = http.Header{}
	for _, h := range headers {
		if h.Name != "host" && h.Name != "content-length" {
			r.header.Set(h.Name, h.Value)
		}
	}
	r.header.Set("Authorization", sigv4.Authorization(sigv4.Request{
		Method: http.MethodPost, Path: "/", Headers: headers, Body: string(r.body), Time: date, Region: region,
		Service: "kms",
	}, keys.AccessKeyID, string(keys.SecretAccessKey)))
}

func awsEncryptBody(material []byte, key string) []byte {
	return fmt.Appendf(nil, `{"Plaintext": "%s", "KeyId": %s}`, base64.StdEncoding.EncodeToString(material),
		quoted(key))
}

func awsDecryptBody(wrapped []byte) []byte {
	return fmt.Appendf(nil, `{"CiphertextBlob": "%s"}`, base64.StdEncoding.EncodeToString(wrapped))
}

// quoted returns a JSON string.
func quoted(s string) []byte {
	text, _ := json.Marshal(s) // a string cannot fail
	return text
}

func (s *awsService) wrap(ctx context.Context, master kms.MasterKey, material []byte) (kms.MasterKey, []byte, error) {
	key := master.(kms.AWSKey)
	body := awsEncryptBody(material, key.Key)
	defer clear(body)
	var out struct{ CiphertextBlob []byte }
	if err := s.ask(ctx, key, "TrentService.Encrypt", body, base64.StdEncoding.EncodeToString(material),
		&out); err != nil {
		return nil, nil, err
	}
	if len(out.CiphertextBlob) == 0 {
		return nil, nil, s.c.failed(ctx, s.name, awsEndpoint(key), http.StatusOK, missingField("CiphertextBlob"))
	}
	return key, out.CiphertextBlob, nil
}

func (s *awsService) unwrap(ctx context.Context, master kms.MasterKey, wrapped []byte) ([]byte, error) {
	key := master.(kms.AWSKey)
	var out struct{ Plaintext []byte }
	if err := s.ask(ctx, key, "TrentService.Decrypt", awsDecryptBody(wrapped), "", &out); err != nil {
		return nil, err
	}
	if len(out.Plaintext) == 0 {
		return nil, s.c.failed(ctx, s.name, awsEndpoint(key), http.StatusOK, missingField("Plaintext"))
	}
	return out.Plaintext, nil
}
