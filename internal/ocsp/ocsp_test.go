package ocsp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ocsp"

	"allium/internal/ocsptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an authority with a responder, and the certificate of a server.
type bench struct {
	*ocsptest.Authority
	cert    tls.Certificate
	checker *Checker
	server  *httptest.Server
}

func newBench(t testing.TB, mustStaple bool, handler http.Handler) *bench {
	t.Helper()
	a, err := ocsptest.New(false)
	if err != nil {
		t.Fatal(err)
	}
	if handler == nil {
		handler = a
	}
	b := &bench{Authority: a, checker: &Checker{Responders: true}, server: httptest.NewServer(handler)}
	t.Cleanup(b.server.Close)
	t.Cleanup(b.checker.Close)
	if b.cert, err = a.Issue(mustStaple, b.server.URL); err != nil {
		t.Fatal(err)
	}
	return b
}

// check checks the state of a handshake in which the server staples a response.
func (b *bench) check(ctx context.Context, staple []byte) error {
	return b.checker.Check(ctx, &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{b.cert.Leaf}, VerifiedChains: [][]*x509.Certificate{{b.cert.Leaf, b.Cert}}, OCSPResponse: staple,
	}, nil)
}

func (b *bench) staple(t testing.TB) []byte {
	t.Helper()
	r, err := b.Response(b.cert.Leaf.SerialNumber)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func refused(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err == nil {
		return
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || want == "" || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

// A certificate asks for a stapled response by the feature status_request, and by no other.
func TestMustStaple(t *testing.T) {
	for _, c := range []struct {
		id       asn1.ObjectIdentifier
		features any
		want     bool
	}{
		{tlsFeature, []int{5}, true}, {tlsFeature, []int{17, 5}, true}, {tlsFeature, []int{17}, false}, {tlsFeature, []int{}, false},
		{tlsFeature, "5", false}, {asn1.ObjectIdentifier{1, 2, 3}, []int{5}, false},
	} {
		value, err := asn1.Marshal(c.features)
		if err != nil {
			t.Fatal(err)
		}
		cert := &x509.Certificate{Extensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 15}}, {Id: c.id, Value: value}}}
		if got := mustStaple(cert); got != c.want {
			t.Errorf("%v %v: %t, want %t", c.id, c.features, got, c.want)
		}
	}
}

func TestStapledResponses(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, b *bench)
		edit   func([]byte) []byte
		want   string
	}{
		"good":    {},
		"revoked": {change: func(_ *testing.T, b *bench) { b.Status = ocsp.Revoked }, want: "revoked on "},
		"delegate": {change: func(t *testing.T, b *bench) {
			d, err := b.IssueDelegate(true)
			if err != nil {
				t.Fatal(err)
			}
			b.Delegate = &d
		}},
		"a delegate of no right": {change: func(t *testing.T, b *bench) {
			d, err := b.IssueDelegate(false)
			if err != nil {
				t.Fatal(err)
			}
			b.Delegate = &d
		}, want: "has not made for that"},
		"about another certificate": {change: func(t *testing.T, b *bench) {
			other, err := b.Issue(false)
			if err != nil {
				t.Fatal(err)
			}
			b.cert = other
		}, want: "no response matching", edit: nil},
		"of another authority": {change: func(t *testing.T, b *bench) {
			other, err := ocsptest.New(false)
			if err != nil {
				t.Fatal(err)
			}
			b.Authority = other
		}, want: "signature"},
		"out of date":               {change: func(_ *testing.T, b *bench) { b.NextUpdate = time.Now().Add(-time.Second) }, want: "out of date"},
		"of the future":             {change: func(_ *testing.T, b *bench) { b.ThisUpdate = time.Now().Add(time.Hour) }, want: "to come"},
		"without a next update":     {change: func(_ *testing.T, b *bench) { b.NextUpdate = time.Time{} }},
		"old without a next update": {change: func(_ *testing.T, b *bench) { b.NextUpdate, b.ThisUpdate = time.Time{}, time.Now().Add(-48*time.Hour) }, want: "out of date"},
		"cut":                       {edit: func(r []byte) []byte { return r[:len(r)/2] }, want: "stapled OCSP response"},
		"an error":                  {edit: func([]byte) []byte { return ocsp.TryLaterErrorResponse }, want: "stapled OCSP response"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, false, nil)
			staple := b.staple(t)
			authority := b.Cert
			if tt.change != nil {
				tt.change(t, b)
				if name != "about another certificate" {
					staple = b.staple(t)
				}
			}
			if tt.edit != nil {
				staple = tt.edit(staple)
			}
			err := b.checker.Check(t.Context(), &tls.ConnectionState{
				PeerCertificates: []*x509.Certificate{b.cert.Leaf}, VerifiedChains: [][]*x509.Certificate{{b.cert.Leaf, authority}}, OCSPResponse: staple,
			}, nil)
			refused(t, name, err, tt.want)
			if b.Asked() > 0 {
				t.Error("the responder was asked")
			}
		})
	}
}

// The responder is asked about a staple that says nothing, and without one unless the certificate
// demands it.
func TestResponders(t *testing.T) {
	b := newBench(t, false, nil)
	b.Status = ocsp.Unknown
	staple := b.staple(t)
	b.Status = ocsp.Revoked
	refused(t, "unknown staple", b.check(t.Context(), staple), "revoked on ")
	if b.Asked() != 1 {
		t.Errorf("asked %d times", b.Asked())
	}
	b.Status = ocsp.Good
	refused(t, "cached", b.check(t.Context(), nil), "revoked on ")
	if b.Asked() != 1 {
		t.Errorf("asked %d times in spite of the cache", b.Asked())
	}
	// A stapled response that holds for longer takes its place.
	b.NextUpdate = b.NextUpdate.Add(time.Hour)
	refused(t, "fresher staple", b.check(t.Context(), b.staple(t)), "")
	refused(t, "cached again", b.check(t.Context(), nil), "")

	b = newBench(t, true, nil)
	refused(t, "must staple", b.check(t.Context(), nil), "demands a stapled")
	refused(t, "must staple, and does", b.check(t.Context(), b.staple(t)), "")

	b = newBench(t, false, nil)
	b.Status, b.checker.Responders = ocsp.Revoked, false
	refused(t, "responders are switched off", b.check(t.Context(), nil), "")
	refused(t, "nothing is checked", (*Checker)(nil).Check(t.Context(), nil, nil), "")
	b.checker.Responders = true
	if err := b.checker.Check(t.Context(), &tls.ConnectionState{PeerCertificates: []*x509.Certificate{b.cert.Leaf}}, nil); err != nil || b.Asked() != 0 {
		t.Errorf("a chain that is not verified: %v, asked %d times", err, b.Asked())
	}
	b.checker.Verify, b.checker.Roots = true, b.Pool
	refused(t, "a chain that the checker verifies", b.checker.Check(t.Context(), &tls.ConnectionState{PeerCertificates: []*x509.Certificate{b.cert.Leaf}}, nil), "revoked on ")
}

// A responder that is of no use is no reason to refuse a server, and is left alone for a while.
func TestSoftFailure(t *testing.T) {
	var elsewhere *ocsptest.Authority
	for name, handler := range map[string]http.HandlerFunc{
		"an error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) },
		"no response": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"try later":   func(w http.ResponseWriter, _ *http.Request) { w.Write(ocsp.TryLaterErrorResponse) },
		"without end": func(w http.ResponseWriter, _ *http.Request) { endless(w) },
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		},
		"unknown":  func(w http.ResponseWriter, r *http.Request) { elsewhere.ServeHTTP(w, r) },
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			b := newBench(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); handler(w, r) }))
			b.Set(func() { b.Status = ocsp.Unknown })
			elsewhere = b.Authority
			for range 3 {
				refused(t, name, b.check(t.Context(), nil), "")
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// endless writes until nobody reads any more.
func endless(w http.ResponseWriter) {
	for part := make([]byte, 1<<10); ; {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// silence returns a responder that takes questions and says nothing.
func silence(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else the end of the connection goes unnoticed
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s
}

// The answer of a responder that speaks counts at once, whatever others do. How long one is waited
// for that is alone and says nothing is in TestWaitingLeavesTime.
func TestSilentResponder(t *testing.T) {
	silent := silence(t)
	b := newBench(t, false, nil)
	var err error
	if b.cert, err = b.Issue(false, silent.URL, "ldap://no", "://", b.server.URL); err != nil {
		t.Fatal(err)
	}
	b.Status = ocsp.Revoked
	refused(t, "one of two", b.check(t.Context(), nil), "revoked on ")
}

func TestDialerOfResponders(t *testing.T) {
	b := newBench(t, false, nil)
	b.Status = ocsp.Revoked
	dialed := ""
	b.checker.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed = address
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	refused(t, "dialer", b.check(t.Context(), nil), "revoked on ")
	if "http://"+dialed != b.server.URL {
		t.Errorf("dialed %q", dialed)
	}
}

func TestCacheEnds(t *testing.T) {
	var c cache
	now := time.Now()
	id := certIdentifier{serial: "1"}
	c.put(id, &ocsp.Response{NextUpdate: now.Add(time.Hour)})
	if c.get(id, now.Add(time.Hour-1)) == nil || c.get(id, now.Add(time.Hour)) != nil {
		t.Error("a response holds up to, and not at, the time of its next update")
	}
	c.put(id, &ocsp.Response{NextUpdate: now.Add(time.Minute), Status: ocsp.Revoked})
	if r := c.get(id, now); r.Status != ocsp.Good {
		t.Error("an older response took the place of a later one")
	}
	c.put(certIdentifier{serial: "2"}, &ocsp.Response{})
	if len(c.entries) != 1 {
		t.Error("a response without a next update was kept")
	}
	for i := range 2 * maxEntries {
		c.put(certIdentifier{serial: "x", issuerKey: [32]byte{byte(i), byte(i >> 8)}}, &ocsp.Response{NextUpdate: now.Add(time.Hour)})
	}
	if len(c.entries) > maxEntries {
		t.Errorf("%d entries", len(c.entries))
	}
}

// Whatever is stapled, it is accepted only if the authority has signed it.
func FuzzParse(f *testing.F) {
	a, err := ocsptest.New(false)
	if err != nil {
		f.Fatal(err)
	}
	cert, err := a.Issue(false)
	if err != nil {
		f.Fatal(err)
	}
	good, err := a.Response(cert.Leaf.SerialNumber)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(ocsp.TryLaterErrorResponse)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, der []byte) {
		if r, err := parse(der, cert.Leaf, a.Cert, time.Now()); err == nil && r.CheckSignatureFrom(a.Cert) != nil {
			t.Error("accepted without a signature")
		}
	})
}

// Responders are asked about the server's certificate, and not about those between it and the root.
func TestIntermediatesAreNotAskedFor(t *testing.T) {
	b := newBench(t, false, nil)
	b.Status = ocsp.Good
	between, err := b.Issue(false, b.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = b.checker.Check(t.Context(), &tls.ConnectionState{PeerCertificates: []*x509.Certificate{b.cert.Leaf, between.Leaf},
		VerifiedChains: [][]*x509.Certificate{{b.cert.Leaf, b.Cert, between.Leaf, b.Cert}}}, nil)
	if err != nil || b.Asked() != 1 {
		t.Errorf("%v, asked %d times, want once", err, b.Asked())
	}
}
