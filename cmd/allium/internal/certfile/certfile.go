// Package certfile has a server's certificate in files, which are read again when they change.
package certfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Files are the paths of files of PEM.
type Files struct {
	Certificate string // with what leads to its authority
	Key         string // empty: the certificate's file has it
	Clients     string // the authorities that certificates of clients are from; empty: clients need none
}

// Loaded is what the files hold.
type Loaded struct {
	Certificate tls.Certificate
	Clients     *x509.CertPool // nil: clients need no certificate
}

// Load reads the files. Its errors name the file, and what was wanted.
func (f Files) Load() (l Loaded, err error) {
	cert, err := read(f.Certificate, "a certificate")
	if err != nil {
		return l, err
	}
	key, keyFile := cert, f.Certificate
	if f.Key != "" {
		keyFile = f.Key
		if key, err = read(f.Key, "a key"); err != nil {
			return l, err
		}
	}
	if l.Certificate, err = tls.X509KeyPair(cert, key); err != nil {
		return l, fmt.Errorf("want PEM with a certificate in %q, and its key in %q: %w", f.Certificate, keyFile, err)
	}
	if f.Clients == "" {
		return l, nil
	}
	text, err := read(f.Clients, "certificates of authorities")
	if err != nil {
		return l, err
	}
	l.Clients = x509.NewCertPool()
	if !l.Clients.AppendCertsFromPEM(text) {
		return l, fmt.Errorf("want PEM with certificates of authorities in %q", f.Clients)
	}
	return l, nil
}

func read(path, what string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return text, nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return nil, fmt.Errorf("want a file with %s, and %q is none that can be read: %w", what, path, err)
}

// state is what tells whether a file has changed.
type state struct {
	size int64
	at   time.Time
}

func (f Files) states() (s [3]state) {
	for i, path := range []string{f.Certificate, f.Key, f.Clients} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			s[i] = state{info.Size(), info.ModTime()}
		}
	}
	return s
}

// Watch reads the files again whenever something comes on now, and if they have changed whenever
// something comes on tick, until done is closed. changed gets what they hold, or the error.
func (f Files) Watch(done <-chan struct{}, tick <-chan time.Time, now <-chan os.Signal, changed func(Loaded, error)) {
	last := f.states()
	for {
		select {
		case <-done:
			return
		case <-now:
			last = f.states()
			changed(f.Load())
		case <-tick:
			if s := f.states(); s != last {
				last = s
				changed(f.Load())
			}
		}
	}
}
