package conn

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"allium/auth"
	"allium/internal/ocsp"
	"allium/internal/uri"
	"allium/mongoerr"
)

// authority is a certificate authority of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.file = writePEM(t, "ca.pem", &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// issue returns a certificate for the names, and a file with it and its key.
func (a *authority) issue(names ...string) (tls.Certificate, string) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs8, _ := x509.MarshalPKCS8PrivateKey(key)
	file := writePEM(a.t, "cert.pem", &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

func writePEM(t *testing.T, name string, blocks ...*pem.Block) string {
	t.Helper()
	var out bytes.Buffer
	for _, b := range blocks {
		pem.Encode(&out, b)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tlsServer serves echo over TLS.
func tlsServer(t *testing.T, cfg *tls.Config) string {
	return fakeServer(t, func(p *peer) {
		s := tls.Server(p.Conn, cfg)
		p.Conn = s
		echo(p)
		s.Close()
	})
}

func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good, _ := ca.issue("127.0.0.1")
	wrongHost, _ := ca.issue("elsewhere.example")
	_, clientFile := ca.issue()
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	plain := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{good}})
	misnamed := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{wrongHost}})
	mutual := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: tls.VersionTLS12})
	old := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	noTLS := fakeServer(t, func(p *peer) { p.Read(make([]byte, 1000)) })

	yes := new(true)
	tests := []struct {
		name, addr string
		options    uri.TLSOptions
		want       string // "" for success
	}{
		{"trusted", plain, uri.TLSOptions{CAFile: ca.file}, ""},
		{"unknown authority", plain, uri.TLSOptions{CAFile: other.file}, "unknown authority"},
		{"unknown authority allowed", plain, uri.TLSOptions{CAFile: other.file, AllowInvalidCertificates: yes}, ""},
		{"insecure", plain, uri.TLSOptions{Insecure: yes}, ""},
		{"wrong host", misnamed, uri.TLSOptions{CAFile: ca.file}, "127.0.0.1"},
		{"wrong host allowed", misnamed, uri.TLSOptions{CAFile: ca.file, AllowInvalidHostnames: yes}, ""},
		{"wrong host allowed, unknown authority", misnamed, uri.TLSOptions{CAFile: other.file, AllowInvalidHostnames: yes}, "unknown authority"},
		{"client certificate", mutual, uri.TLSOptions{CAFile: ca.file, CertificateKeyFile: clientFile}, ""},
		{"no client certificate", mutual, uri.TLSOptions{CAFile: ca.file}, "handshake failure"},
		{"TLS 1.1", old, uri.TLSOptions{CAFile: ca.file}, "protocol version"},
		{"no TLS", noTLS, uri.TLSOptions{CAFile: ca.file}, "TLS handshake"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := NewTLS(&tt.options, nil)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Dial(t.Context(), tt.addr, &Config{TLS: cfg, ConnectTimeout: 10 * time.Second})
			if err == nil {
				defer c.Close()
			}
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if state := c.TLS(); state == nil || state.Version < tls.VersionTLS12 {
					t.Errorf("TLS state %+v", state)
				}
				if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
					t.Error(err)
				}
				return
			}
			ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
			if !ok || ce.Op != "TLS handshake" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			// A certificate that is refused is no sign of overload.
			if wantLabel := tt.name == "no TLS"; mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) != wantLabel {
				t.Errorf("%v: overload label %v", err, !wantLabel)
			}
		})
	}
}

func TestTLSSessionIsReused(t *testing.T) {
	ca := newAuthority(t)
	cert, _ := ca.issue("127.0.0.1")
	addr := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	cfg, err := NewTLS(&uri.TLSOptions{CAFile: ca.file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		c := dial(t, addr, &Config{TLS: cfg})
		if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil { // also reads the server's session ticket
			t.Fatal(err)
		}
		if c.TLS().DidResume != (i == 1) {
			t.Errorf("connection %d: resumed %v", i, c.TLS().DidResume)
		}
	}
}

// A timeout while TLS waits for a reply leaves the connection usable, as without TLS.
func TestTLSOwedReply(t *testing.T) {
	ca := newAuthority(t)
	cert, _ := ca.issue("127.0.0.1")
	asked, proceed := make(chan struct{}), make(chan struct{})
	addr := fakeServer(t, func(p *peer) {
		s := tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{cert}})
		p.Conn = s
		defer s.Close()
		p.hello()
		id, _, _ := p.read()
		late := message(99, id, 0, okReply())
		s.Write(late[:20])
		close(asked)
		<-proceed
		s.Write(late[20:])
		if id, _, ok := p.read(); ok {
			p.reply(id, okReply())
		}
		p.read()
	})
	cfg, err := NewTLS(&uri.TLSOptions{CAFile: ca.file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, addr, &Config{TLS: cfg})
	if _, err := c.RoundTrip(cancelAfter(t, asked), command("ping")); err == nil || !c.Owed() {
		t.Fatalf("error %v, owed %v", err, c.Owed())
	}
	close(proceed)
	if err := c.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
		t.Fatal(err)
	}
}

func TestCertificateKeyFile(t *testing.T) {
	cert, err := os.ReadFile("testdata/keys/cert.pem")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ key, password, want string }{ // "" for success
		{"plain", "", ""},
		{"aes256-sha256", "hunter2", ""},
		{"aes128-sha1", "hunter2", ""},
		{"aes192-sha512", "hunter2", ""},
		{"des3-sha256", "hunter2", ""},
		{"legacy-aes256", "hunter2", ""},
		{"aes256-sha256", "", "there is no tlsCertificateKeyFilePassword"},
		{"legacy-aes256", "", "there is no tlsCertificateKeyFilePassword"},
		{"aes256-sha256", "wrong-password", "the password is wrong"},
		{"legacy-aes256", "wrong-password", "the password is wrong"},
		{"scrypt", "hunter2", "only PBKDF2 is"},
		{"pbes1", "hunter2", "only PBES2 is"},
		{"cert", "", "no private key"},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, tt.key), func(t *testing.T) {
			key, err := os.ReadFile("testdata/keys/" + tt.key + ".pem")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "client.pem")
			if err := os.WriteFile(file, append(key, cert...), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := NewTLS(&uri.TLSOptions{CertificateKeyFile: file, CertificateKeyFilePassword: auth.Secret(tt.password)}, nil)
			if tt.want == "" {
				if err != nil || len(cfg.Config().Certificates) != 1 {
					t.Errorf("%v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "tlsCertificateKeyFile "+file) ||
				strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "wrong-password") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	for name, o := range map[string]uri.TLSOptions{
		"tlsCAFile /nonexistent":                            {CAFile: "/nonexistent"},
		"tlsCertificateKeyFile /nonexistent":                {CertificateKeyFile: "/nonexistent"},
		"tlsCAFile testdata/keys/plain.pem":                 {CAFile: "testdata/keys/plain.pem"},
		"tlsCertificateKeyFile testdata/keys/plain.pem":     {CertificateKeyFile: "testdata/keys/plain.pem"},
		"tlsCertificateKeyFile testdata/keys/README.md: th": {CertificateKeyFile: "testdata/keys/README.md"},
	} {
		if _, err := NewTLS(&o, nil); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecryptPKCS8(f *testing.F) {
	files, _ := filepath.Glob("testdata/keys/*.pem")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		if block, _ := pem.Decode(data); block != nil {
			f.Add(block.Bytes)
		}
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		if len(der) > 300 || bytes.Contains(der, []byte{2, 3}) || bytes.Contains(der, []byte{2, 4}) {
			return // many iterations take long
		}
		if _, err := decryptPKCS8(der, "x"); err == nil {
			t.Error("decrypted with a wrong password")
		}
	})
}

// A client certificate that TLS 1.3 servers refuse is met when the hello is read: no sign of
// overload either.
func TestRefusedCertificateIsNoOverload(t *testing.T) {
	ca := newAuthority(t)
	good, _ := ca.issue("127.0.0.1")
	addr := fakeServer(t, func(p *peer) {
		tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}).Handshake()
		io.Copy(io.Discard, p.Conn) // with what was sent unread, a close would take the alert back
	})
	cfg, err := NewTLS(&uri.TLSOptions{CAFile: ca.file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Dial(t.Context(), addr, &Config{TLS: cfg})
	ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
	if !ok || ce.Op != stepHello || !strings.Contains(err.Error(), "certificate required") {
		t.Fatalf("error %v", err)
	}
	if mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
		t.Errorf("%v: counts as overload", err)
	}
}

// What checks services beside the servers is what checks those, and else asks responders unless an
// option forbids it (specification: Client Side Encryption, "KMS provider TLS options").
func TestServiceRevocation(t *testing.T) {
	on, off := new(true), new(false)
	for _, tc := range []struct {
		o          uri.TLSOptions
		responders bool
	}{
		{uri.TLSOptions{}, true},
		{uri.TLSOptions{DisableOCSPEndpointCheck: off, DisableCertificateRevocationCheck: off}, true},
		{uri.TLSOptions{DisableOCSPEndpointCheck: on}, false},
		{uri.TLSOptions{DisableCertificateRevocationCheck: on}, false},
	} {
		if c := NewServiceRevocation(&tc.o, nil, nil); c.Responders != tc.responders {
			t.Errorf("%+v: responders are asked: %v", tc.o, c.Responders)
		}
	}
	servers := &ocsp.Checker{}
	if c := NewServiceRevocation(&uri.TLSOptions{}, servers, nil); c != servers {
		t.Error("not what checks the servers")
	}
}
