package ocsp

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

// DialFunc makes network connections.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

const (
	// Timeout bounds the time for responders (specification: OCSP Support, step 7).
	Timeout = 5 * time.Second
	// maxResponders bounds how many of those that a certificate names are asked.
	maxResponders = 5
	// maxResponse is more than a response with its certificates.
	maxResponse = 64 << 10
)

// ask asks all responders of a certificate at the same time, and returns the first valid response
// that is conclusive, nil if there is none. It leaves nothing behind.
func (c *Checker) ask(ctx context.Context, leaf, issuer *x509.Certificate) *ocsp.Response {
	if len(leaf.OCSPServer) == 0 {
		return nil
	}
	request, err := ocsp.CreateRequest(leaf, issuer, nil)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	// A connection for each request: responders are asked once in a response's life.
	client := http.Client{
		Transport: &http.Transport{DialContext: c.Dial, DisableKeepAlives: true, Proxy: proxy(c.Dial), MaxResponseHeaderBytes: maxResponse},
		// A responder answers; wherever it may send the client instead, nobody has vouched for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	servers := leaf.OCSPServer[:min(len(leaf.OCSPServer), maxResponders)]
	responses := make(chan *ocsp.Response, len(servers))
	var asking sync.WaitGroup
	for _, server := range servers {
		asking.Go(func() {
			if der, err := post(ctx, &client, server, request); err == nil {
				if r, err := parse(der, leaf, issuer, time.Now()); err == nil && conclusive(r) {
					responses <- r
					cancel()
				}
			}
		})
	}
	asking.Wait()
	select {
	case r := <-responses:
		return r
	default:
		return nil
	}
}

// proxy is what the environment says, unless the client has a dialer of its own.
func proxy(dial DialFunc) func(*http.Request) (*url.URL, error) {
	if dial != nil {
		return nil
	}
	return http.ProxyFromEnvironment
}

// post sends a request (RFC 6960, appendix A.1) and returns the body of the answer.
func post(ctx context.Context, client *http.Client, server string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/ocsp-request")
	request.Header.Set("Accept", "application/ocsp-response")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("responder %s: %s", server, response.Status)
	}
	der, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err == nil && len(der) > maxResponse {
		err = fmt.Errorf("responder %s: answer is too long", server)
	}
	return der, err
}
