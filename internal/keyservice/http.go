package keyservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"allium/encryption/kms"
)

const (
	// maxAttempts bounds how often a request is sent (specification: Client Side Encryption, "KMS
	// Retry").
	maxAttempts = 3
	backoffUnit = 200 * time.Millisecond
	maxBackoff  = 20 * time.Second
	// maxBody and maxHeader bound an answer.
	maxBody   = 1 << 20
	maxHeader = 64 << 10
)

// request is a request of a cloud's key service.
type request struct {
	provider string // the name of the key service
	endpoint string // host or host:port
	path     string
	header   http.Header
	body     []byte
	secrets  []string               // that no error may show, even if the answer repeats them
	sign     func(r *request) error // adds what depends on the time, before each attempt
}

func (r *request) host() string {
	host, _, err := net.SplitHostPort(withPort(r.endpoint, httpsPort))
	if err != nil {
		return bare(r.endpoint)
	}
	return host
}

// retryable reports whether an answer with the status is worth another attempt.
func retryable(provider string, status int) bool {
	kind, _, _ := strings.Cut(provider, ":")
	switch kind {
	case "aws":
		return slices.Contains([]int{408, 429, 500, 502, 503, 509}, status)
	case "azure":
		return slices.Contains([]int{408, 429, 500, 502, 503, 504}, status)
	case "gcp":
		return status == 408 || status == 429 || status >= 500
	}
	return false
}

// post sends a request until it is answered, at most maxAttempts times, and decodes the answer's
// JSON into out.
func (c *Client) post(ctx context.Context, r *request, out any) error {
	for attempt := 1; ; attempt++ {
		start := time.Now()
		status, err := c.attempt(ctx, r, out)
		if c.config.Observe != nil {
			c.config.Observe(ctx, Request{Provider: r.provider, Endpoint: withPort(r.endpoint, httpsPort), Duration: time.Since(start), Attempt: attempt, Err: err})
		}
		if err == nil {
			return nil
		}
		again := status == 0 || retryable(r.provider, status)
		if permanent := (*permanentError)(nil); errors.As(err, &permanent) {
			again, err = false, permanent.error
		}
		if again && attempt == maxAttempts {
			err = fmt.Errorf("KMS request failed after maximum of %d attempts: %w", maxAttempts, err)
		}
		if !again || attempt == maxAttempts || ctx.Err() != nil {
			return c.failed(ctx, r.provider, withPort(r.endpoint, httpsPort), status, err)
		}
		if !sleep(ctx, c.backoff(attempt)) {
			return c.failed(ctx, r.provider, withPort(r.endpoint, httpsPort), status, err)
		}
	}
}

// backoff returns how long to wait before the attempt after the n-th.
func backoff(n int) time.Duration {
	return rand.N(min(maxBackoff, backoffUnit<<(n-1)) + 1)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// permanentError is one that another attempt would meet again.
type permanentError struct{ error }

// attempt sends a request once. The status is 0 if there was no answer.
func (c *Client) attempt(ctx context.Context, r *request, out any) (status int, err error) {
	if r.sign != nil {
		if err := r.sign(r); err != nil {
			return 0, &permanentError{err}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	address := withPort(r.endpoint, httpsPort)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+r.path, bytes.NewReader(r.body))
	if err != nil {
		return 0, &permanentError{err}
	}
	req.Header = r.header.Clone()
	req.Host = r.host()
	conn, err := c.dial(ctx, r.provider, address) // not by the transport, whose dials have no deadline
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return r.exchange(conn, req, out)
}

// exchange sends a request over a connection and decodes the answer into out.
func (r *request) exchange(conn net.Conn, req *http.Request, out any) (status int, err error) {
	transport := &http.Transport{
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		DialTLSContext:         func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
	reply, err := transport.RoundTrip(req) // follows no redirection
	if err != nil {
		// It may quote the answer.
		if text := []byte(err.Error()); len(text) > maxShown || !bytes.Equal(r.conceal(text), text) {
			err = errors.New(printable(r.conceal(text)))
		}
		return 0, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxBody+1))
	if err != nil {
		return 0, fmt.Errorf("KMS response unfinished: %w", err)
	}
	defer clear(body)
	if len(body) > maxBody {
		return reply.StatusCode, &permanentError{fmt.Errorf("the answer has more than %d bytes", maxBody)}
	}
	if reply.StatusCode != http.StatusOK {
		//lint:ignore ST1005 the text is that of other drivers
		return reply.StatusCode, fmt.Errorf("Invalid KMS response: HTTP status=%d. Response body=%s", reply.StatusCode, printable(r.conceal(body)))
	}
	if err := json.Unmarshal(body, out); err != nil {
		// The body may hold a token or a key: it is not shown.
		//lint:ignore ST1005 the text is that of other drivers
		return reply.StatusCode, &permanentError{fmt.Errorf("Invalid KMS response: parse error in JSON. HTTP status=%d", reply.StatusCode)}
	}
	return reply.StatusCode, nil
}

// maxShown is how much of an answer's body an error shows.
const maxShown = 1000

// printable returns a body of an error on one line.
func printable(body []byte) string {
	if len(body) > maxShown {
		body = body[:maxShown]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.Join(strings.Fields(string(body)), " "))
}

// conceal returns the body of an answer without the secrets of the request.
func (r *request) conceal(text []byte) []byte {
	for _, secret := range r.secrets {
		if secret != "" {
			text = bytes.ReplaceAll(text, []byte(secret), []byte("<secret>"))
		}
	}
	return text
}

func missingField(name string) error {
	//lint:ignore ST1005 the text is that of other drivers
	return &permanentError{fmt.Errorf("Invalid KMS response: JSON does not include field '%s'. HTTP status=200", name)}
}

// failed turns what went wrong with a request into the error that users see.
func (c *Client) failed(ctx context.Context, provider, endpoint string, status int, err error) error {
	if err == nil {
		return nil
	}
	if permanent := (*permanentError)(nil); errors.As(err, &permanent) {
		err = permanent.error
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return &kms.Error{Provider: provider, Endpoint: endpoint, Status: status, Err: err}
}
