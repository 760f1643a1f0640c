package conn

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"allium/internal/uri"
)

// identity is what a rotation replaces: an authority, and a certificate that it has issued.
type identity struct {
	authority *authority
	ca, own   []byte // the files
	server    tls.Certificate
}

func newIdentity(t *testing.T) *identity {
	a := newAuthority(t)
	server, file := a.issue("localhost")
	id := &identity{authority: a, server: server}
	var err error
	if id.ca, err = os.ReadFile(a.file); err != nil {
		t.Fatal(err)
	}
	if id.own, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	return id
}

// uses fails the test unless a configuration trusts and shows an identity.
func (id *identity) uses(t *testing.T, cfg *tls.Config) {
	t.Helper()
	if pool, _ := parseAuthorities(id.ca); !pool.Equal(cfg.RootCAs) {
		t.Error("other authorities are trusted")
	}
	if want, _ := parseCertificateKey(id.own, ""); len(cfg.Certificates) != 1 || !bytes.Equal(cfg.Certificates[0].Certificate[0], want.Certificate[0]) {
		t.Error("another certificate is shown")
	}
}

func replace(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What replaces the files on disk counts for the next connection, however they are replaced; what
// is not whole yet does not, whatever is missing, and the reason is told once.
func TestFilesAreReadAgain(t *testing.T) {
	old, fresh := newIdentity(t), newIdentity(t)
	otherKey := func() []byte { // the new certificate, and the old key still
		var out bytes.Buffer
		for _, from := range []struct {
			data []byte
			kind string
		}{{fresh.own, "CERTIFICATE"}, {old.own, "PRIVATE KEY"}} {
			for rest := from.data; ; {
				var block *pem.Block
				if block, rest = pem.Decode(rest); block == nil {
					break
				}
				if strings.HasSuffix(block.Type, from.kind) {
					pem.Encode(&out, block)
				}
			}
		}
		return out.Bytes()
	}()
	dir := t.TempDir()
	ca, own := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "client.pem")
	replace(t, ca, old.ca)
	replace(t, own, old.own)
	var told []string
	conf, err := NewTLS(&uri.TLSOptions{CAFile: ca, CertificateKeyFile: own}, func(s string) { told = append(told, s) })
	if err != nil {
		t.Fatal(err)
	}
	first := conf.Config()
	old.uses(t, first)
	if conf.Config() != first {
		t.Error("nothing has changed, and the sessions of before are lost")
	}

	broken := func(name string, data []byte, reason string) {
		t.Helper()
		told = nil
		replace(t, name, data)
		for range 3 {
			if cfg := conf.Config(); cfg != first {
				old.uses(t, cfg)
			}
		}
		if len(told) != 1 || !strings.Contains(told[0], name) || !strings.Contains(told[0], reason) || !strings.Contains(told[0], "what was read before is used") {
			t.Errorf("%d bytes of %s: told %q, want %q once", len(data), filepath.Base(name), told, reason)
		}
	}
	for cut := 0; cut < len(fresh.own)-40; cut += 61 {
		broken(own, fresh.own[:cut], "")
		replace(t, own, old.own)
		conf.Config()
	}
	broken(own, otherKey, "private key does not match")
	for cut := 0; cut < len(fresh.ca)-40; cut += 61 {
		broken(ca, fresh.ca[:cut], "")
		replace(t, ca, old.ca)
		conf.Config()
	}
	broken(ca, append(bytes.Clone(old.ca), fresh.ca[:200]...), "ends in the middle")
	told = nil
	os.Remove(ca)
	old.uses(t, conf.Config())
	if len(told) != 1 || !strings.Contains(told[0], "no such file") {
		t.Errorf("a file that is gone: %q", told)
	}

	replace(t, ca, fresh.ca) // one whole, the other one still broken
	cfg := conf.Config()
	if pool, _ := parseAuthorities(fresh.ca); !pool.Equal(cfg.RootCAs) {
		t.Error("the new authorities wait for the certificate")
	}
	replace(t, own, fresh.own)
	fresh.uses(t, conf.Config())
	if conf.Config().ClientSessionCache == first.ClientSessionCache {
		t.Error("sessions go on with the old certificate")
	}
	told = nil
	broken2 := append([]byte("x"), fresh.own[:100]...)
	replace(t, own, broken2)
	conf.Config()
	replace(t, own, fresh.own)
	conf.Config()
	replace(t, own, broken2)
	conf.Config()
	if len(told) != 2 {
		t.Errorf("a reason that comes again is told %d times", len(told))
	}
}

// Kubernetes turns one symbolic link of a folder, which all files go through; other tools rename a
// file over the old one.
func TestFilesBehindLinks(t *testing.T) {
	old, fresh := newIdentity(t), newIdentity(t)
	dir := t.TempDir()
	for name, id := range map[string]*identity{"..1": old, "..2": fresh} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		replace(t, filepath.Join(dir, name, "ca.pem"), id.ca)
		replace(t, filepath.Join(dir, name, "client.pem"), id.own)
	}
	link := func(to string) {
		t.Helper()
		next := filepath.Join(dir, "..next")
		if err := os.Symlink(to, next); err != nil {
			t.Skipf("no symbolic links: %v", err)
		}
		if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	link("..1")
	for _, name := range []string{"ca.pem", "client.pem"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	conf, err := NewTLS(&uri.TLSOptions{CAFile: filepath.Join(dir, "ca.pem"), CertificateKeyFile: filepath.Join(dir, "client.pem")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	old.uses(t, conf.Config())
	link("..2")
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	fresh.uses(t, conf.Config())
	link("..gone")
	fresh.uses(t, conf.Config())
}

// Many connections while the files are replaced: each shows a certificate that fits its key, and
// the last one the last.
func TestFilesReadByMany(t *testing.T) {
	ids := []*identity{newIdentity(t), newIdentity(t)}
	own := filepath.Join(t.TempDir(), "client.pem")
	replace(t, own, ids[0].own)
	conf, err := NewTLS(&uri.TLSOptions{CertificateKeyFile: own}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if cfg := conf.Config(); len(cfg.Certificates) != 1 || cfg.Certificates[0].PrivateKey == nil {
					t.Error("a connection without a certificate")
					return
				}
			}
		})
	}
	for i := range 60 {
		replace(t, own, ids[i%2].own)
	}
	close(stop)
	readers.Wait()
	if want, _ := parseCertificateKey(ids[1].own, ""); !bytes.Equal(conf.Config().Certificates[0].Certificate[0], want.Certificate[0]) {
		t.Error("the last certificate is not used")
	}
}

// What an error advises is true at that moment.
func TestAdviceAboutCertificates(t *testing.T) {
	old, fresh := newIdentity(t), newIdentity(t)
	server := &fresh.server
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return server, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ca := filepath.Join(t.TempDir(), "ca.pem")
	replace(t, ca, old.ca)
	files, err := NewTLS(&uri.TLSOptions{CAFile: ca}, nil)
	if err != nil {
		t.Fatal(err)
	}
	system, _ := NewTLS(&uri.TLSOptions{}, nil)
	roots, _ := parseAuthorities(old.ca)
	connect := func(s *TLS) string {
		c, err := DialMonitor(t.Context(), "localhost:"+port, &Config{TLS: s})
		if err != nil {
			return err.Error()
		}
		c.Close()
		return ""
	}
	for _, step := range []struct {
		name string
		tls  *TLS
		do   func()
		want string
	}{
		{"no file", system, nil, "set tlsCAFile to the certificate of the authority"},
		{"a configuration of the program", FixedTLS(&tls.Config{RootCAs: roots}), nil, "the RootCAs of the TLS configuration lack"},
		{"one without authorities", FixedTLS(&tls.Config{}), nil, "set RootCAs of the TLS configuration"},
		{"the file has others", files, nil, "tlsCAFile " + ca + " lacks the authority"},
		{"the file is gone", files, func() { os.Remove(ca) }, "tlsCAFile " + ca + ": no such file or directory; what was read before is used"},
		{"it is half written", files, func() { replace(t, ca, fresh.ca[:100]) }, "tlsCAFile " + ca + ": there is no certificate in it; what was"},
		{"it is whole", files, func() { replace(t, ca, fresh.ca) }, ""},
	} {
		if step.do != nil {
			step.do()
		}
		got := connect(step.tls)
		if step.want == "" && got != "" || !strings.Contains(got, step.want) || strings.Count(got, "tlsCAFile") > 1 {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}
