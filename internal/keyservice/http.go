package keyservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"allium/encryption/kms"
	"allium/internal/exchange"
)

const (
	// maxAttempts bounds how often a request is sent (specification: Client Side Encryption, "KMS
	// Retry").
	maxAttempts = 3
	backoffUnit = 200 * time.Millisecond
	maxBackoff  = 20 * time.Second
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
			c.config.Observe(ctx, Request{Provider: r.provider, Endpoint: withPort(r.endpoint, httpsPort),
				Duration: time.Since(start), Attempt: attempt, Err: err})
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
	// Whatever waits on the connection ends with the context.
	defer context.AfterFunc(req.Context(), func() { conn.SetDeadline(past) })()
	transport := exchange.NewTransport(nil)
	transport.DisableCompression = true
	transport.DialTLSContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	answer, err := exchange.Do(transport, req, r.secrets...)
	defer clear(answer.Body)
	if cause := context.Cause(req.Context()); err != nil && cause != nil && !errors.Is(err, cause) {
		err = cause // which the connection has noticed first
	}
	switch {
	case errors.Is(err, exchange.ErrTooLong):
		return answer.Status, &permanentError{err}
	case errors.Is(err, exchange.ErrProtocol):
		return answer.Status, err
	case err != nil && answer.Status != 0:
		return 0, fmt.Errorf("KMS response unfinished: %w", err)
	case err != nil:
		return 0, err
	case answer.Status != http.StatusOK:
		return answer.Status, &refusal{answer.Status, exchange.Text(answer.Body, r.secrets...)}
	}
	if err := json.Unmarshal(answer.Body, out); err != nil {
		// The body may hold a token or a key: it is not shown.
		//lint:ignore ST1005 the text is that of other drivers
		return answer.Status, &permanentError{fmt.Errorf("Invalid KMS response: parse error in JSON. HTTP status=%d",
			answer.Status)}
	}
	return answer.Status, nil
}

// refusal is an answer that is not what was asked for.
type refusal struct {
	status int
	said   string
}

func (e *refusal) Error() string {
	// in the words of other drivers
	return fmt.Sprintf("Invalid KMS response: HTTP status=%d. Response body=%s", e.status, e.said)
}

func missingField(name string) error {
	//lint:ignore ST1005 the text is that of other drivers
	return &permanentError{fmt.Errorf("Invalid KMS response: JSON does not include field '%s'. HTTP status=200", name)}
}

// failed turns what went wrong with a request, or before there was one, if ctx is nil, into the
// error that users see.
func (c *Client) failed(ctx context.Context, provider, endpoint string, status int, err error) error {
	if err == nil {
		return nil
	}
	if permanent := (*permanentError)(nil); errors.As(err, &permanent) {
		err = permanent.error
	}
	if ctx != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
	}
	return &kms.Error{Provider: provider, Endpoint: exchange.Text([]byte(endpoint)), Status: status,
		Err: exchange.Clean(err)}
}
