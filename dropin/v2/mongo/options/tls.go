package options

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

func (c *ClientOptions) applyTLS(u *connstring.ConnString) error {
	if !u.SSL {
		return nil
	}
	config := new(tls.Config)
	if u.SSLCaFileSet {
		var err error
		if config.RootCAs, err = readAuthorities(u.SSLCaFile); err != nil {
			return err
		}
	}
	config.InsecureSkipVerify = u.SSLInsecure
	certificate, key := u.SSLClientCertificateKeyFile, u.SSLClientCertificateKeyFile
	if u.SSLCertificateFileSet {
		certificate, key = u.SSLCertificateFile, u.SSLPrivateKeyFile
	}
	if certificate != "" {
		pair, err := readPair(certificate, key, u.SSLClientCertificateKeyPasswordSet)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
		// Without another user, the certificate's subject is the user.
		if c.Auth != nil && c.Auth.AuthMechanism == "MONGODB-X509" && c.Auth.Username == "" {
			c.Auth.Username = pair.Leaf.Subject.String()
		}
	}
	c.TLSConfig = config
	return nil
}

// readAuthorities reads certificates that are trusted.
func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("the specified CA file does not contain any valid certificates")
	}
	return pool, nil
}

// errEncryptedKey is the error for a private key that is encrypted with a password.
var errEncryptedKey = errors.New("options: the private key is encrypted: decrypt it, and set a tls.Config")

// readPair reads a certificate and its private key.
func readPair(certificate, key string, password bool) (tls.Certificate, error) {
	certText, err := os.ReadFile(certificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyText := certText
	if key != certificate {
		if keyText, err = os.ReadFile(key); err != nil {
			return tls.Certificate{}, err
		}
	}
	if password {
		for rest := keyText; ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
				return tls.Certificate{}, errEncryptedKey
			}
		}
	}
	return tls.X509KeyPair(certText, keyText)
}

// BuildTLSConfig returns the TLS settings that options like those of a connection string name:
// tlsCertificateKeyFile, tlsCertificateKeyFilePassword and tlsCAFile, or their older names. A
// private key that is encrypted is an error.
func BuildTLSConfig(tlsOpts map[string]any) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var pair string
	password := false
	for name, value := range tlsOpts {
		text, ok := value.(string)
		switch name {
		case "tlsCertificateKeyFile", "sslClientCertificateKeyFile":
			pair = text
		case "tlsCertificateKeyFilePassword", "sslClientCertificateKeyPassword":
			password, ok = true, true
		case "tlsCAFile", "sslCertificateAuthorityFile":
			if !ok {
				break
			}
			var err error
			if config.RootCAs, err = readAuthorities(text); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("unrecognized TLS option %v", name)
		}
		if !ok {
			return nil, fmt.Errorf("expected %q value to be of type string, got %T", name, value)
		}
	}
	if pair != "" {
		certificate, err := readPair(pair, pair, password)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}
