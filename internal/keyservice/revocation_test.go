package keyservice

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ocsp"

	"allium/encryption/kms"
	revocation "allium/internal/ocsp"
	"allium/internal/ocsptest"
)

// A key service whose certificate was revoked, by what it staples, by its responder, or for lack of
// a staple that it must have, gets no request, whichever service it is.
func TestRevokedServices(t *testing.T) {
	a, err := ocsptest.New(false)
	if err != nil {
		t.Fatal(err)
	}
	responder := httptest.NewServer(a)
	defer responder.Close()
	for name, tt := range map[string]struct {
		mustStaple, staples bool
		status              int
		want                string
	}{
		"good":                    {status: ocsp.Good, want: "reached"},
		"revoked":                 {status: ocsp.Revoked, want: "revoked on "},
		"unknown":                 {status: ocsp.Unknown, want: "reached"},
		"stapled":                 {status: ocsp.Good, staples: true, want: "reached"},
		"stapled, revoked":        {status: ocsp.Revoked, staples: true, want: "revoked on "},
		"must staple":             {status: ocsp.Good, mustStaple: true, want: "demands a stapled"},
		"must staple, and does":   {status: ocsp.Good, mustStaple: true, staples: true, want: "reached"},
		"must staple and revoked": {status: ocsp.Revoked, mustStaple: true, staples: true, want: "revoked on "},
	} {
		t.Run(name, func(t *testing.T) {
			a.Set(func() { a.Status = tt.status })
			cert, err := a.Issue(tt.mustStaple, responder.URL)
			if err != nil {
				t.Fatal(err)
			}
			if tt.staples {
				if cert.OCSPStaple, err = a.Response(cert.Leaf.SerialNumber); err != nil {
					t.Fatal(err)
				}
			}
			var dials, requests atomic.Int32
			dial := func(context.Context, string) (net.Conn, error) {
				dials.Add(1)
				client, server := net.Pipe()
				go func() {
					defer server.Close()
					secure := tls.Server(server, &tls.Config{Certificates: []tls.Certificate{cert}})
					line, err := bufio.NewReader(secure).Peek(1)
					if err == nil && len(line) > 0 {
						requests.Add(1)
						io.WriteString(secure, "HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached")
					}
				}()
				return client, nil
			}
			p := naming(kms.Providers{"aws": kms.AWS{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, "azure": kms.Azure{AccessToken: "TOKEN"},
				"gcp": kms.GCP{AccessToken: "TOKEN"}, "kmip": kms.KMIP{Endpoint: "localhost"}}, "localhost", "127.0.0.1")
			settings := map[string]*tls.Config{}
			for name := range p {
				settings[name] = &tls.Config{RootCAs: a.Pool()}
			}
			checker := &revocation.Checker{Responders: true}
			defer checker.Close()
			c, err := New(Config{Providers: p, TLS: settings, Dial: dial, Revocation: checker.Check})
			if err != nil {
				t.Fatal(err)
			}
			for provider, key := range keysAt("127.0.0.1") {
				dials.Store(0)
				requests.Store(0)
				_, _, err := c.Wrap(t.Context(), provider, key, material(0))
				want := tt.want
				if provider == "kmip" && want == "reached" {
					want = "malformed KMIP"
				}
				if err == nil || !strings.Contains(err.Error(), want) || dials.Load() != 1 || (requests.Load() == 1) != (tt.want == "reached") {
					t.Errorf("%s: %v after %d connections with %d requests", provider, err, dials.Load(), requests.Load())
				}
				var e *kms.Error
				var refused *tls.CertificateVerificationError
				if tt.want != "reached" && (!errors.As(err, &e) || !errors.As(err, &refused)) {
					t.Errorf("%s: %T", provider, err)
				}
			}
		})
	}
}
