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

// awsRequest asks Amazon's service for an operation of the name "TrentService.…", in a request with
// Signature Version 4.
func (c *Client) awsRequest(ctx context.Context, provider string, p kms.AWS, key kms.AWSKey, operation string, body []byte, out any) error {
	keys := auth.AWSCredentials{AccessKeyID: p.AccessKeyID, SecretAccessKey: p.SecretAccessKey, SessionToken: p.SessionToken}
	if p.OnDemand() {
		var err error
		if keys, err = c.aws.Get(ctx); err != nil {
			return c.failed(ctx, provider, "", 0, fmt.Errorf("credentials: %w", err))
		}
	}
	endpoint := key.Endpoint
	if endpoint == "" {
		endpoint = "kms." + key.Region + ".amazonaws.com"
	}
	r := &request{provider: provider, endpoint: endpoint, path: "/", body: body}
	r.sign = func(r *request) error {
		signAWS(r, key.Region, operation, keys, time.Now().UTC())
		return nil
	}
	return c.post(ctx, r, out)
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
		Method: http.MethodPost, Path: "/", Headers: headers, Body: string(r.body), Time: date, Region: region, Service: "kms",
	}, keys.AccessKeyID, string(keys.SecretAccessKey)))
}

func awsEncryptBody(material []byte, key string) []byte {
	return fmt.Appendf(nil, `{"Plaintext": "%s", "KeyId": %s}`, base64.StdEncoding.EncodeToString(material), quoted(key))
}

func awsDecryptBody(wrapped []byte) []byte {
	return fmt.Appendf(nil, `{"CiphertextBlob": "%s"}`, base64.StdEncoding.EncodeToString(wrapped))
}

// quoted returns a JSON string.
func quoted(s string) []byte {
	text, _ := json.Marshal(s) // a string cannot fail
	return text
}

func (c *Client) awsEncrypt(ctx context.Context, provider string, p kms.AWS, key kms.AWSKey, material []byte) ([]byte, error) {
	body := awsEncryptBody(material, key.Key)
	defer clear(body)
	var out struct{ CiphertextBlob []byte }
	if err := c.awsRequest(ctx, provider, p, key, "TrentService.Encrypt", body, &out); err != nil {
		return nil, err
	}
	if len(out.CiphertextBlob) == 0 {
		return nil, c.failed(ctx, provider, key.Endpoint, http.StatusOK, missingField("CiphertextBlob"))
	}
	return out.CiphertextBlob, nil
}

func (c *Client) awsDecrypt(ctx context.Context, provider string, p kms.AWS, key kms.AWSKey, wrapped []byte) ([]byte, error) {
	var out struct{ Plaintext []byte }
	if err := c.awsRequest(ctx, provider, p, key, "TrentService.Decrypt", awsDecryptBody(wrapped), &out); err != nil {
		return nil, err
	}
	if len(out.Plaintext) == 0 {
		return nil, c.failed(ctx, provider, key.Endpoint, http.StatusOK, missingField("Plaintext"))
	}
	return out.Plaintext, nil
}
