package interop

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/fakeserver"
	"allium/mongotest"
)

// TestKMIP wraps and unwraps data keys with a KMIP server: that of Debian's python3-pykmip.
func TestKMIP(t *testing.T) {
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		// What p is may be a script that finds a Python, which killing it would leave alone.
		out, err := exec.Command(p, "-c", "from kmip.services.server import KmipServer; import ssl, sys; ssl.wrap_socket; print(sys.executable)").Output()
		if err == nil {
			python = strings.TrimSpace(string(out))
			break
		}
	}
	if python == "" {
		t.Skip("no Python with pykmip is installed (Debian's python3-pykmip, Python before 3.12): no KMIP server is tested")
	}
	folder := t.TempDir()
	settings := certificates(t, folder)
	port := fmt.Sprint(fakeserver.FreePorts(t, 1))
	endpoint := net.JoinHostPort("127.0.0.1", port)
	server := exec.Command(python, filepath.Join("scripts", "kmip_server.py"), port, folder)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var failed strings.Builder
	server.Stderr, server.WaitDelay = &failed, time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A process of its own keeps its policies, which ends with it only if it ends by itself.
		if server.Process.Signal(os.Interrupt) != nil {
			server.Process.Kill()
		}
		defer time.AfterFunc(20*time.Second, func() { server.Process.Kill() }).Stop()
		server.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(folder, "server.log"))
			t.Logf("%s\n%s", failed.String(), log)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the KMIP server said %q, %v: %s", line, err, failed.String())
	}

	ctx := t.Context()
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	options := encryption.Options{KeyOptions: encryption.KeyOptions{
		KeyVaultClient: client, KeyVault: "keyvault.datakeys", KMS: kms.Providers{"kmip": kms.KMIP{Endpoint: endpoint}},
		TLS: map[string]*tls.Config{"kmip": settings},
	}}
	open := func() *encryption.Client {
		keys, err := encryption.New(options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { keys.Close() })
		return keys
	}
	keys := open()
	for _, delegated := range []bool{false, true} {
		t.Run(fmt.Sprint("delegated ", delegated), func(t *testing.T) {
			id, err := keys.CreateDataKey(ctx, "kmip", encryption.DataKeyOptions{MasterKey: kms.KMIPKey{Delegated: delegated}})
			if err != nil {
				t.Fatal(err)
			}
			o := encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id}
			secret, err := keys.Encrypt(ctx, "457-55-5462", o)
			if err != nil {
				t.Fatal(err)
			}
			other := open() // which has to ask the server
			if s, err := encryption.DecryptAs[string](ctx, other, secret); err != nil || s != "457-55-5462" {
				t.Errorf("%q, %v", s, err)
			}
			key, err := keys.Key(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			made, ok := key.MasterKey.(kms.KMIPKey)
			if !ok || made.ID == "" || made.Delegated != delegated {
				t.Fatalf("%+v", key.MasterKey)
			}
			// Another data key with the object that is there, and all of them wrapped again.
			if _, err := keys.CreateDataKey(ctx, "kmip", encryption.DataKeyOptions{MasterKey: made}); err != nil {
				t.Error(err)
			}
			if res, err := keys.RewrapManyDataKey(ctx, bson.D{}); err != nil || res.ModifiedCount < 2 {
				t.Errorf("%+v, %v", res, err)
			}
			if s, err := encryption.DecryptAs[string](ctx, open(), secret); err != nil || s != "457-55-5462" {
				t.Errorf("rewrapped: %q, %v", s, err)
			}
		})
	}
	_, err = keys.CreateDataKey(ctx, "kmip", encryption.DataKeyOptions{MasterKey: kms.KMIPKey{ID: "no such object"}})
	if err == nil || !strings.Contains(err.Error(), "Item Not Found") {
		t.Errorf("an object that does not exist: %v", err)
	}
	options.TLS = map[string]*tls.Config{"kmip": {RootCAs: settings.RootCAs}}
	if _, err := open().CreateDataKey(ctx, "kmip"); err == nil {
		t.Error("no client certificate: no error")
	}
}

// certificates writes those of a server on 127.0.0.1 into a folder, and returns the settings of a
// client of it.
func certificates(t *testing.T, folder string) *tls.Config {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	issue := func(of *x509.Certificate, public any, by *x509.Certificate, with *ecdsa.PrivateKey) *x509.Certificate {
		of.NotBefore, of.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		data, err := x509.CreateCertificate(rand.Reader, of, by, public, with)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(data)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	write := func(name, kind string, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	caKey, serverKey, clientKey := key(), key(), key()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	ca = issue(ca, &caKey.PublicKey, ca, caKey)
	server := issue(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, &serverKey.PublicKey, ca, caKey)
	client := issue(&x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "client"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, &clientKey.PublicKey, ca, caKey)
	private, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	write("ca.pem", "CERTIFICATE", ca.Raw)
	write("server.pem", "CERTIFICATE", server.Raw)
	write("server-key.pem", "PRIVATE KEY", private)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{{Certificate: [][]byte{client.Raw}, PrivateKey: clientKey}}}
}
