package interop

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestService starts `allium serve` as examples/service/compose.yaml does: a root user whose
// password is in a file, scripts, a folder of fixtures, and TLS with a certificate from files. A
// program of PyMongo and one of Node's driver look at it.
func TestService(t *testing.T) {
	dir := t.TempDir()
	tool := build(t, dir, "allium", "allium/cmd/allium")
	ca, cert := certificate(t, dir)
	example := filepath.Join("..", "examples", "service")
	readyFile := filepath.Join(dir, "ready.json")
	cmd := exec.Command(tool, "serve", "--port", "0", "--bind", "0.0.0.0", "--advertise", "localhost", "--replset", "rs0", "--data", filepath.Join(dir, "db.archive.gz"),
		"--seed", filepath.Join(example, "seed"), "--init-scripts", filepath.Join(example, "initdb"), "--tls-cert", cert, "--ready-file", readyFile, "--log", "json", "--json", "--parent")
	cmd.Env = append(os.Environ(), "MONGO_INITDB_ROOT_USERNAME=root", "MONGO_INITDB_ROOT_PASSWORD_FILE="+filepath.Join(example, "root-password.txt"), "MONGO_INITDB_DATABASE=shop")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := interrupt(cmd.Process); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &stderr)
		}
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var ready struct {
		URI   string
		Hosts []string
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "healthcheck", "--ready-file", readyFile).CombinedOutput(); err != nil {
		t.Errorf("healthcheck: %v\n%s", err, out)
	}
	web := "mongodb://web:apple@" + ready.Hosts[0] + "/shop?replicaSet=rs0&authSource=shop"
	for name, client := range map[string]func(t *testing.T) (dir string, command []string){
		"pymongo": func(t *testing.T) (string, []string) { return "scripts", []string{pymongo(t), "service.py"} },
		"node":    func(t *testing.T) (string, []string) { return npm(t), []string{"node", "service.mjs"} },
	} {
		t.Run(name, func(t *testing.T) {
			dir, command := client(t)
			run := exec.CommandContext(t.Context(), command[0], append(command[1:], ready.URI, web, ca)...)
			run.Dir = dir
			if out, err := run.CombinedOutput(); err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// certificate writes an authority, and a server's certificate of it with its key.
func certificate(t *testing.T, dir string) (ca, cert string) {
	t.Helper()
	now := time.Now()
	issue := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = key
		}
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{1}}
	root, rootKey := issue(authority, authority, nil)
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leaf, leafKey := issue(server, authority, rootKey)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	ca, cert = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "server.pem")
	for path, blocks := range map[string][]*pem.Block{ca: {{Type: "CERTIFICATE", Bytes: root}}, cert: {{Type: "CERTIFICATE", Bytes: leaf}, {Type: "PRIVATE KEY", Bytes: pkcs8}}} {
		var text []byte
		for _, b := range blocks {
			text = append(text, pem.EncodeToMemory(b)...)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca, cert
}
