package prose

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ocsp"

	"allium"
	"allium/event"
	"allium/internal/fakeserver"
	"allium/internal/norace"
	"allium/internal/ocsptest"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// terminate returns the address of a TLS server before a deployment, with a certificate of the
// test's own.
func terminate(t *testing.T, d *mongotest.Deployment, cert tls.Certificate) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer client.Close()
				server, err := d.DialContext(ctx, "tcp", d.Hosts()[0])
				if err != nil {
					return
				}
				defer server.Close()
				defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
				wg.Go(func() { io.Copy(server, client); server.Close() })
				io.Copy(client, server)
			})
		}
	})
	return l.Addr().String()
}

// pingOver pings the server at addr, whose authority is in a file, and gives up with the first
// check that fails.
func pingOver(t *testing.T, addr, caFile, options string) error {
	t.Helper()
	return pingOnce(t, "mongodb://"+addr+"/?directConnection=true&tls=true&tlsCAFile="+caFile+options, allium.ClientOptions{})
}

func pingOnce(t *testing.T, uri string, o allium.ClientOptions) error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.ServerMonitor = &event.ServerMonitor{ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) {
		if e.NewDescription.LastError != nil {
			cancel()
		}
	}}
	client, err := allium.Open(uri, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	return client.Ping(ctx)
}

func writePEM(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The matrix of the specification's test plan ("Integration Tests: Permutations to Be Tested"):
// each column with RSA and ECDSA, and with responses of the issuer and of a delegate. Beside the
// options of its rows stand those that switch revocation checks off.
func TestOCSPProse(t *testing.T) {
	d := mongotest.Start(t)
	type column struct {
		name                        string
		status                      int
		responder, staple, mustHave bool
		fails, failsOffline         bool // with the defaults, and with tlsDisableOCSPEndpointCheck
	}
	columns := []column{
		{"test 1: valid, stapled", ocsp.Good, true, true, true, false, false},
		{"test 2: revoked, stapled", ocsp.Revoked, true, true, true, true, true},
		{"test 3: valid, not stapled", ocsp.Good, true, false, false, false, false},
		{"test 4: revoked, not stapled", ocsp.Revoked, true, false, false, true, false},
		{"soft fail: no responder, not stapled", ocsp.Good, false, false, false, false, false},
		{"malicious 1: revoked, must staple and does not", ocsp.Revoked, true, false, true, true, true},
		{"malicious 2: no responder, must staple and does not", ocsp.Good, false, false, true, true, true},
		{"unknown, not stapled", ocsp.Unknown, true, false, false, false, false},
	}
	for _, kind := range []string{"RSA", "ECDSA"} {
		if norace.Detecting && kind == "RSA" {
			continue // making keys takes most of the time
		}
		a, err := ocsptest.New(kind == "RSA")
		if err != nil {
			t.Fatal(err)
		}
		caFile := writePEM(t, "ca.pem", "CERTIFICATE", a.Cert.Raw)
		responder := httptest.NewServer(a)
		defer responder.Close()
		delegate, err := a.IssueDelegate(true)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			for _, signer := range []string{"issuer", "delegate"} {
				a.Set(func() {
					if a.Delegate = nil; signer == "delegate" {
						a.Delegate = &delegate
					}
				})
				if !c.responder && signer == "delegate" {
					continue
				}
				t.Run(kind+"/"+c.name+"/"+signer, func(t *testing.T) {
					a.Set(func() { a.Status = c.status })
					url := responder.URL
					if !c.responder {
						url = "http://" + fakeserver.Refuses
					}
					cert, err := a.Issue(c.mustHave, url)
					if err != nil {
						t.Fatal(err)
					}
					if c.staple {
						if cert.OCSPStaple, err = a.Response(cert.Leaf.SerialNumber); err != nil {
							t.Fatal(err)
						}
					}
					addr := terminate(t, d, cert)
					for options, fails := range map[string]bool{
						"":                                  c.fails,
						"&tlsAllowInvalidHostnames=true":    c.fails,
						"&tlsDisableOCSPEndpointCheck=true": c.failsOffline,
						"&tlsInsecure=true":                 false,
						"&tlsAllowInvalidCertificates=true": false,
						"&tlsDisableCertificateRevocationCheck=true":  false,
						"&tlsDisableCertificateRevocationCheck=false": c.fails,
					} {
						before := a.Asked()
						err := pingOver(t, addr, caFile, options)
						_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
						if fails != isCertificate || fails != (err != nil) {
							t.Errorf("options %q: error %v", options, err)
						}
						if strings.Contains(options, "=true") && !strings.Contains(options, "Hostnames") && a.Asked() != before {
							t.Errorf("options %q: the responder was asked", options)
						}
					}
				})
			}
		}
	}
}

// A responder that says nothing does not keep the first operation from succeeding in less than the
// five seconds that it has, however that time is given.
func TestOCSPSilentResponder(t *testing.T) {
	for name, options := range map[string]allium.ClientOptions{
		"context": {}, "serverSelectionTimeoutMS": {ServerSelectionTimeout: new(3 * time.Second)},
		"timeoutMS": {Timeout: new(3 * time.Second)}, "connectTimeoutMS": {ConnectTimeout: new(time.Second)},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := testdeploy.Mock(t, "certificates of the test's own", mongotest.Standalone(), mongotest.InMemory(), mongotest.TLS())
			a, err := ocsptest.New(false)
			if err != nil {
				t.Fatal(err)
			}
			cert, err := a.Issue(false, "http://"+silentResponder)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.UseCertificate(cert, nil); err != nil {
				t.Fatal(err)
			}
			dialer := &silentDialer{Dialer: d}
			options.TLS, options.Dialer = &tls.Config{RootCAs: a.Pool()}, dialer
			client, err := allium.Open(d.URI(), options)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			defer cancel()
			if err := client.Ping(ctx); err != nil || !dialer.asked.Load() {
				t.Errorf("%s: %v, the responder was asked: %v", name, err, dialer.asked.Load())
			}
			if err := client.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// silentResponder is where a silentDialer finds a responder that takes questions and says nothing.
const silentResponder = "responder.example:80"

type silentDialer struct {
	allium.Dialer
	asked atomic.Bool
}

func (d *silentDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address != silentResponder {
		return d.Dialer.DialContext(ctx, network, address)
	}
	d.asked.Store(true)
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		io.Copy(io.Discard, there)
	}()
	return here, nil
}

// A configuration of the program's own is checked, too.
func TestOCSPWithOwnTLSConfig(t *testing.T) {
	d := mongotest.Start(t)
	a, err := ocsptest.New(false)
	if err != nil {
		t.Fatal(err)
	}
	responder := httptest.NewServer(a)
	defer responder.Close()
	cert, err := a.Issue(false, responder.URL)
	if err != nil {
		t.Fatal(err)
	}
	addr := terminate(t, d, cert)
	a.Set(func() { a.Status = ocsp.Revoked })
	open := func(options string) error {
		return pingOnce(t, "mongodb://"+addr+"/?directConnection=true"+options, allium.ClientOptions{TLS: &tls.Config{RootCAs: a.Pool()}})
	}
	if err := open(""); err == nil || !strings.Contains(err.Error(), "revoked on ") {
		t.Errorf("error %v", err)
	}
	if n := a.Asked(); n == 0 {
		t.Error("the responder was not asked")
	}
	if err := open("&tlsDisableOCSPEndpointCheck=true"); err != nil {
		t.Error(err)
	}
}

// A responder that is not the test's own.
func TestOCSPWithOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	d := mongotest.Start(t)
	a, err := ocsptest.New(true)
	if err != nil {
		t.Fatal(err)
	}
	ca := writePEM(t, "ca.pem", "CERTIFICATE", a.Cert.Raw)
	delegate, err := a.IssueDelegate(true)
	if err != nil {
		t.Fatal(err)
	}
	signer := writePEM(t, "signer.pem", "CERTIFICATE", delegate.Certificate[0])
	key := writePEM(t, "key.pem", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(delegate.PrivateKey.(*rsa.PrivateKey)))
	port := fmt.Sprint(fakeserver.FreePorts(t, 1))
	listen := net.JoinHostPort("127.0.0.1", port)
	good, err := a.Issue(false, "http://"+listen)
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := a.Issue(false, "http://"+listen)
	if err != nil {
		t.Fatal(err)
	}
	date := func(at time.Time) string { return at.UTC().Format("060102150405Z") }
	expiry := date(time.Now().Add(24 * time.Hour))
	index := filepath.Join(t.TempDir(), "index.txt")
	lines := fmt.Sprintf("V\t%s\t\t%02X\tunknown\t/CN=server\nR\t%s\t%s\t%02X\tunknown\t/CN=server\n",
		expiry, good.Leaf.SerialNumber, expiry, date(time.Now().Add(-time.Minute)), revoked.Leaf.SerialNumber)
	if err := os.WriteFile(index, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(openssl, "ocsp", "-index", index, "-port", port, "-rsigner", signer, "-rkey", key, "-CA", ca, "-ndays", "1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	request, err := ocsp.CreateRequest(good.Leaf, a.Cert, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 600 { // until it answers
		var r *http.Response
		if r, err = http.Post("http://"+listen, "application/ocsp-request", bytes.NewReader(request)); err == nil {
			r.Body.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	http.DefaultClient.CloseIdleConnections()
	if err != nil {
		t.Fatal(err)
	}
	for name, cert := range map[string]tls.Certificate{"good": good, "revoked": revoked} {
		err := pingOver(t, terminate(t, d, cert), ca, "")
		if (name == "revoked") != (err != nil) || err != nil && !strings.Contains(err.Error(), "revoked on ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
