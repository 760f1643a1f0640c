package wire

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// tlsGeneration is an authority with the certificates of a server and of a client.
type tlsGeneration struct {
	ca     []byte // in PEM
	client []byte // with its key, in PEM
	server tls.Certificate
}

func newTLSGeneration(t *testing.T, serial int64) *tlsGeneration {
	t.Helper()
	make := func(template, parent *x509.Certificate, by *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if by == nil {
			by = key
		}
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "rotation " + big.NewInt(serial).String()},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootDER, rootKey := make(root, root, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(serial + 1000), Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, key := make(leaf, root, rootKey)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	g := &tlsGeneration{ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}),
		server: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
	g.client = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})...)
	return g
}

// tlsFront speaks TLS in front of a deployment, with the certificates of the moment.
type tlsFront struct {
	d       *mongotest.Deployment
	mu      sync.Mutex
	shows   tls.Certificate
	trusts  *x509.CertPool
	made    atomic.Int64
	refused atomic.Int64
}

func (f *tlsFront) set(shows tls.Certificate, trusts ...[]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shows, f.trusts = shows, x509.NewCertPool()
	for _, ca := range trusts {
		f.trusts.AppendCertsFromPEM(ca)
	}
}

func (f *tlsFront) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	behind, err := f.d.DialContext(ctx, network, f.d.Hosts()[0])
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	settings := &tls.Config{Certificates: []tls.Certificate{f.shows}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: f.trusts}
	f.mu.Unlock()
	// A pipe in memory has no room: both sides would wait with what TLS sends after its handshake.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	here, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	there, err := l.Accept()
	if err != nil {
		return nil, err
	}
	front := tls.Server(there, settings)
	go func() {
		defer behind.Close()
		defer front.Close()
		if front.Handshake() != nil {
			f.refused.Add(1)
			return
		}
		f.made.Add(1)
		go func() {
			io.Copy(behind, front)
			behind.Close()
		}()
		io.Copy(front, behind)
	}()
	return here, nil
}

// A client follows the certificates on disk while it works: no operation fails through a rotation
// in the usual order, authorities first, whatever is half written meanwhile; and one that was cut
// off recovers with the files, without a restart.
func TestTLSFilesRotate(t *testing.T) {
	d := testdeploy.Mock(t, "an in-memory network", mongotest.Standalone(), mongotest.InMemory())
	old := newTLSGeneration(t, 1)
	front := &tlsFront{d: d}
	front.set(old.server, old.ca)
	dir := t.TempDir()
	ca, own := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "client.pem")
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ca, old.ca)
	write(own, old.client)
	uri := "mongodb://localhost/?heartbeatFrequencyMS=500&maxPoolSize=4&tlsDisableCertificateRevocationCheck=true&tlsCAFile=" + url.QueryEscape(ca) +
		"&tlsCertificateKeyFile=" + url.QueryEscape(own)
	client := rig.Open(t, uri, allium.ClientOptions{Dialer: front, MaxIdleTime: new(time.Millisecond), ServerSelectionTimeout: new(20 * time.Second),
		Logger: slog.New(slog.DiscardHandler)})
	coll := client.Database("db").Collection("c")

	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond): // longer than a connection may be idle
				}
				if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	more := func() { // until the client has made connections with what there is
		for from := front.made.Load(); front.made.Load() < from+4 && failed.Load() == nil; {
			time.Sleep(time.Millisecond)
		}
	}
	more()
	for serial := range int64(3) {
		fresh := newTLSGeneration(t, 2+serial)
		both := append(bytes.Clone(old.ca), fresh.ca...)
		write(ca, both)
		front.set(old.server, old.ca, fresh.ca)
		write(own, fresh.client[:len(fresh.client)/2])
		more()
		front.set(fresh.server, old.ca, fresh.ca)
		more()
		write(own, fresh.client)
		more()
		write(ca, fresh.ca[:len(fresh.ca)/2])
		front.set(fresh.server, fresh.ca)
		more()
		write(ca, fresh.ca)
		more()
		old = fresh
	}
	close(stop)
	workers.Wait()
	if err := failed.Load(); err != nil {
		t.Fatalf("during a rotation: %v", *err)
	}
	if n := front.refused.Load(); n > 0 {
		t.Errorf("%d handshakes failed", n)
	}

	last := newTLSGeneration(t, 100)
	front.set(last.server, last.ca)
	// Connections of before may still be there, and an operation may end before a monitor has seen
	// the new certificate.
	want := "tlsCAFile " + ca + " lacks the authority that signed the server's certificate"
	for cutOff := false; !cutOff; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := client.Database("db").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
		cancel()
		cutOff = err != nil && strings.Contains(err.Error(), want)
		if end, ok := t.Deadline(); !cutOff && ok && time.Until(end) < 10*time.Second {
			t.Fatalf("with certificates of before: %v, want %q", err, want)
		}
		time.Sleep(5 * time.Millisecond) // longer than a connection may be idle
	}
	write(own, last.client)
	write(ca, last.ca)
	if err := client.Ping(t.Context()); err != nil {
		t.Errorf("with the new certificates: %v", err)
	}
}
