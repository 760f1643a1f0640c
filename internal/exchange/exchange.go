// Package exchange asks the HTTP services beside the server: for keys, for tokens, and for the
// status of certificates.
//
// One exchange is one request and one answer. It follows no redirection, because its headers may
// hold what only the service that they are meant for may see; it takes no other protocol that the
// service may switch to; it ends with its context; and what its errors quote of the answer is one
// line of printable text of bounded length.
package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxBody bounds the body of an answer, in bytes, and MaxHeader its headers, those of
	// informational answers (status 1xx) before it included.
	MaxBody   = 1 << 20
	MaxHeader = 64 << 10
	// maxShown is how much of an answer an error shows, in bytes.
	maxShown = 1000
	// dialTimeout bounds the making of a connection.
	dialTimeout = 10 * time.Second
)

// Answer is what a service has said.
type Answer struct {
	Status int // 200 and so on
	Body   []byte
	reason string // the status with its name
}

var (
	// ErrProtocol is the error of an answer that switches to another protocol.
	ErrProtocol = errors.New("the service answered 101 Switching Protocols, which nobody has asked for")
	// ErrTooLong is the class of errors of answers with more than MaxBody bytes.
	ErrTooLong = fmt.Errorf("the answer has more than %d bytes", MaxBody)
)

// NewTransport returns a transport for services that are asked now and then: it keeps no
// connections. proxy is that of http.Transport.
func NewTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy: proxy, DisableKeepAlives: true, MaxResponseHeaderBytes: MaxHeader, TLSHandshakeTimeout: dialTimeout,
		// A dial goes on when its request has ended.
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
	}
}

// Do sends a request over a transport and reads the answer, which has any status but 101. The
// request's context bounds all of it. An error after the answer has begun comes with its status. No
// error shows one of the secrets.
func Do(transport http.RoundTripper, request *http.Request, secrets ...string) (Answer, error) {
	reply, err := transport.RoundTrip(request) // which follows no redirection
	if err != nil {
		return Answer{}, Clean(err, secrets...)
	}
	a := Answer{Status: reply.StatusCode, reason: Text([]byte(reply.Status), secrets...)}
	if reply.StatusCode == http.StatusSwitchingProtocols {
		// The body is the connection now, which no context ends.
		reply.Body.Close()
		return a, ErrProtocol
	}
	defer reply.Body.Close()
	a.Body, err = io.ReadAll(io.LimitReader(reply.Body, MaxBody+1))
	switch {
	case err != nil:
		return a, Clean(err, secrets...)
	case len(a.Body) > MaxBody:
		return a, ErrTooLong
	}
	return a, nil
}

// Refusal returns the error that says what the service at host has answered in place of 200.
func (a *Answer) Refusal(host string, secrets ...string) error {
	if said := Text(a.Body, secrets...); said != "" {
		return fmt.Errorf("%s answered %s: %s", host, a.reason, said)
	}
	return fmt.Errorf("%s answered %s", host, a.reason)
}

// Text returns what an error shows of bytes that a service has sent: one line of printable
// characters without the secrets, of which the first maxShown bytes are kept.
func Text(said []byte, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			said = bytes.ReplaceAll(said, []byte(secret), []byte("<secret>"))
		}
	}
	end := ""
	if len(said) > maxShown {
		n := maxShown
		for n > maxShown-utf8.UTFMax && !utf8.RuneStart(said[n]) { // not in the middle of a character
			n--
		}
		said, end = said[:n], " ..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(string(said)), " ")) + end
}

// Clean returns an error with the same chain whose text is fit to be shown, as Text has it: err
// itself if its text is.
func Clean(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := Text([]byte(text), secrets...); shown != text {
		return &cleaned{shown, err}
	}
	return err
}

type cleaned struct {
	text string
	err  error
}

func (e *cleaned) Error() string { return e.text }
func (e *cleaned) Unwrap() error { return e.err }
