package encryption_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"allium"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/fakekms"
)

// The certificates of key services, and those that a KMIP server wants to see, are replaced on disk
// while a program runs: what is there when a connection is made counts.
func TestTLSFilesAreReadAgain(t *testing.T) {
	p := startProse(t, nil)
	var servers [2]*fakekms.Server
	for i := range servers {
		s, err := fakekms.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		servers[i] = s
	}
	var now atomic.Pointer[fakekms.Server]
	now.Store(servers[0])
	dir := t.TempDir()
	files := allium.TLSFiles{CAFile: filepath.Join(dir, "ca.pem"), CertificateKeyFile: filepath.Join(dir, "client.pem")}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := func(s *fakekms.Server) {
		t.Helper()
		ca, own := s.Files()
		write(files.CAFile, ca)
		write(files.CertificateKeyFile, own)
	}
	install(servers[0])
	client := p.encryption(encryption.Options{KeyOptions: encryption.KeyOptions{
		KMS: kms.Providers{
			"aws":  kms.AWS{AccessKeyID: fakekms.AWSAccessKeyID, SecretAccessKey: fakekms.AWSSecretAccessKey},
			"kmip": kms.KMIP{Endpoint: "localhost:5698"},
		},
		TLSFiles:   map[string]allium.TLSFiles{"aws": {CAFile: files.CAFile}, "kmip": files},
		KMSConnect: func(ctx context.Context, address string) (net.Conn, error) { return now.Load().Dial(ctx, address) },
	}})
	works := func(when string) {
		t.Helper()
		for name, key := range map[string]kms.MasterKey{"aws": masterKeys["aws"], "kmip": nil} {
			if id, err := createKey(t, client, name, key); err != nil {
				t.Errorf("%s: %s: %v", when, name, err)
			} else {
				usable(t, client, when+": "+name, id)
			}
		}
	}
	works("at first")
	now.Store(servers[1])
	ca, own := servers[1].Files()
	for _, step := range []struct {
		when, file string
		data       []byte
		want       string
	}{
		{"before the rotation", "", nil, "tlsCAFile " + files.CAFile + " lacks the authority"},
		{"a half-written file", files.CAFile, ca[:100], "tlsCAFile " + files.CAFile + ": there is no certificate in it; what was read before is used"},
	} {
		if step.file != "" {
			write(step.file, step.data)
		}
		for _, name := range []string{"aws", "kmip"} {
			if _, err := createKey(t, client, name, masterKeys[name]); err == nil || !strings.Contains(err.Error(), step.want) {
				t.Errorf("%s: %s: %v, want %q", step.when, name, err, step.want)
			}
		}
	}
	write(files.CAFile, ca)
	write(files.CertificateKeyFile, own)
	works("after the rotation")
	write(files.CertificateKeyFile, own[:len(own)/2])
	works("while the next one is written")
	install(servers[0])
	now.Store(servers[0])
	works("after the next rotation")
}

// Prose test 11, "KMS TLS Options Tests", case 5, and the options that are prohibited; a file is
// read when the client is made.
func TestProseTLSOptionsCase5(t *testing.T) {
	p := startProse(t, nil)
	for _, test := range []struct {
		files allium.TLSFiles
		want  string
	}{
		{allium.TLSFiles{DisableOCSPEndpointCheck: true}, ""},
		{allium.TLSFiles{}, ""},
		{allium.TLSFiles{Insecure: true}, "insecure TLS options prohibited"},
		{allium.TLSFiles{AllowInvalidCertificates: true}, "insecure TLS options prohibited"},
		{allium.TLSFiles{AllowInvalidHostnames: true}, "insecure TLS options prohibited"},
		{allium.TLSFiles{DisableCertificateRevocationCheck: true}, "insecure TLS options prohibited"},
		{allium.TLSFiles{CAFile: "/nonexistent"}, "tlsCAFile /nonexistent"},
	} {
		o := encryption.Options{KeyOptions: encryption.KeyOptions{
			KeyVaultClient: p.plain, KeyVault: "keyvault.datakeys",
			KMS:      kms.Providers{"aws": kms.AWS{AccessKeyID: "foo", SecretAccessKey: "bar"}},
			TLSFiles: map[string]allium.TLSFiles{"aws": test.files},
		}}
		client, err := encryption.New(o)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: %v, want %q", test.files, err, test.want)
		}
		if err == nil {
			client.Close()
		}
	}
}
