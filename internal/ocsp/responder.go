package ocsp

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"allium/internal/exchange"
	"allium/internal/flight"
)

// DialFunc makes network connections.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

const (
	// Timeout bounds the time for responders (specification: OCSP Support, step 7).
	Timeout = 5 * time.Second
	// patience is how long connections wait for responders, after the first of them has asked:
	// longer than one needs that works, shorter than what operations have.
	patience = 500 * time.Millisecond
	// maxResponders bounds how many of those that a certificate names are asked.
	maxResponders = 5
)

// question is what responders are asked about one certificate. Connections to all servers with it
// wait for the same answer, and it goes on when none does.
type question struct {
	*flight.Flight[*ocsp.Response] // a nil response: there is no conclusive one
	begun                          time.Time
	stop                           chan struct{} // closed by Close
}

// ask asks the responders of a certificate, unless others do already or they are left alone, and
// returns their response if it comes in time, else nil. late gets one that comes later.
func (c *Checker) ask(ctx context.Context, id certIdentifier, leaf, issuer *x509.Certificate,
	late func(*ocsp.Response)) *ocsp.Response {
	may, wait := c.cache.mayAsk(id, time.Now())
	if !may {
		return nil
	}
	q := c.question(id, leaf, issuer)
	if q == nil {
		return nil
	}
	limit := time.Duration(0)
	if wait {
		limit = patience - time.Since(q.begun)
	}
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-q.Done():
		r, _ := q.Wait(context.Background())
		return r
	case <-ctx.Done():
		q.Leave()
		return nil
	case <-timer.C:
	}
	go func() {
		select {
		case <-q.stop:
			q.Leave()
		case <-q.Done():
			if r, _ := q.Wait(context.Background()); r != nil {
				late(r)
			}
		}
	}()
	return nil
}

// question returns the question about a certificate that is under way, or begins it; nil if c is
// closed. The caller is one of those who wait for it.
func (c *Checker) question(id certIdentifier, leaf, issuer *x509.Certificate) *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if q := c.asked[id]; q != nil && q.Join() {
		return q
	}
	q := &question{begun: time.Now(), stop: make(chan struct{})}
	// The context's values are not for responders.
	q.Flight = flight.Start(context.Background(), Timeout, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.asked[id] == q {
			delete(c.asked, id)
		}
	}, func(ctx context.Context) (*ocsp.Response, error) {
		r := c.askAll(ctx, leaf, issuer)
		switch {
		case r != nil:
			c.cache.put(id, r)
		case ctx.Err() != context.Canceled:
			c.cache.unanswered(id, time.Now())
		}
		return r, nil
	})
	q.Join() // the one of Start is c's own, so that the question goes on
	if c.asked == nil {
		c.asked = make(map[certIdentifier]*question)
	}
	c.asked[id] = q
	return q
}

// Close ends what responders are asked, and waits for that. Nobody is asked any more.
func (c *Checker) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	asked := c.asked
	c.asked, c.closed = nil, true
	c.mu.Unlock()
	for _, q := range asked {
		close(q.stop)
		q.Leave()
	}
	for _, q := range asked {
		<-q.Done()
	}
}

// askAll asks all responders of a certificate at the same time, and returns the first valid
// response that is conclusive, nil if there is none. It leaves nothing behind.
func (c *Checker) askAll(ctx context.Context, leaf, issuer *x509.Certificate) *ocsp.Response {
	request, err := ocsp.CreateRequest(leaf, issuer, nil)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A connection for each request: responders are asked once in a response's life.
	transport := exchange.NewTransport(proxy(c.Dial))
	if c.Dial != nil {
		transport.DialContext = c.dial
	}
	servers := leaf.OCSPServer[:min(len(leaf.OCSPServer), maxResponders)]
	responses := make(chan *ocsp.Response, len(servers))
	var asking sync.WaitGroup
	for _, server := range servers {
		asking.Go(func() {
			if der, err := post(ctx, transport, server, request); err == nil {
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

// dial calls Dial, which is the program's own, on a goroutine of the transport's.
func (c *Checker) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = flight.Call(func() (err error) {
		conn, err = c.Dial(ctx, network, address)
		return err
	})
	return conn, err
}

// proxy is what the environment says, unless the client has a dialer of its own.
func proxy(dial DialFunc) func(*http.Request) (*url.URL, error) {
	if dial != nil {
		return nil
	}
	return http.ProxyFromEnvironment
}

// post sends a request (RFC 6960, appendix A.1) and returns the body of the answer. A responder
// answers; wherever it may send the client instead, nobody has vouched for.
func post(ctx context.Context, transport http.RoundTripper, server string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/ocsp-request")
	request.Header.Set("Accept", "application/ocsp-response")
	answer, err := exchange.Do(transport, request)
	switch {
	case err != nil:
		return nil, err
	case answer.Status != http.StatusOK:
		return nil, answer.Refusal(server)
	}
	return answer.Body, nil
}
