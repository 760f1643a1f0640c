package kms

import (
	"context"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"

	"allium/auth"
)

// Providers are the key services that a program may use, by name: "local", "aws", "azure", "gcp" or
// "kmip", or one of these with a name of the program's own after a colon, as in "aws:team1", for
// several accounts of one service.
type Providers map[string]Provider

// Provider says how to reach a key service: Local, AWS, Azure, GCP or KMIP.
type Provider interface {
	// kind is the part of the provider's name before the colon.
	kind() string
	// check reports what is wrong with it; named says that it has a name of the program's own.
	check(named bool) error
}

// Local wraps data keys with a key that the program holds. It is for tests: whoever reads the
// program's memory or configuration has the master key.
type Local struct {
	// Key is 96 random bytes.
	Key []byte
}

// AWS is Amazon's Key Management Service. With neither keys nor Credentials, the credentials come
// from the environment, as those of MONGODB-AWS do; that is for the provider named "aws" only.
type AWS struct {
	AccessKeyID     string
	SecretAccessKey auth.Secret
	SessionToken    auth.Secret // of temporary credentials, else ""

	// Credentials returns the keys each time that they are needed, in place of the fields above. It
	// is for the provider named "aws" only, and may be called by several goroutines at once.
	Credentials func(ctx context.Context) (auth.AWSCredentials, error)

	// Hosts are the hosts that master keys may name (AWSKey.Endpoint) in addition to those of
	// Amazon's service: names, "*." and a domain for all names in it, or IP addresses, without
	// ports. Key documents come from a database; nothing is sent to another host that one of them
	// names.
	Hosts []string
}

// Azure is Microsoft's Key Vault. The zero value asks the metadata service of the virtual machine
// for a token; that is for the provider named "azure" only.
type Azure struct {
	TenantID     string
	ClientID     string
	ClientSecret auth.Secret
	// IdentityPlatformEndpoint is where tokens come from. Empty: login.microsoftonline.com.
	IdentityPlatformEndpoint string
	// AccessToken is a token to use in place of the fields above.
	AccessToken auth.Secret
	// Hosts are the hosts that master keys may name (AzureKey.VaultEndpoint) in addition to those
	// of Microsoft's service; see AWS.Hosts.
	Hosts []string
}

// GCP is Google's Cloud Key Management. The zero value asks the metadata service of the virtual
// machine for a token; that is for the provider named "gcp" only.
type GCP struct {
	Email string
	// PrivateKey is the service account's RSA key in PKCS #8, in DER or in PEM.
	PrivateKey []byte
	// Endpoint is where tokens come from. Empty: oauth2.googleapis.com.
	Endpoint string
	// AccessToken is a token to use in place of the fields above.
	AccessToken auth.Secret
	// Hosts are the hosts that master keys may name (GCPKey.Endpoint) in addition to those of
	// Google's service; see AWS.Hosts.
	Hosts []string
}

// KMIP is a server that speaks the Key Management Interoperability Protocol, over TLS with a client
// certificate.
type KMIP struct {
	// Endpoint is the server's address, "host:port"; the port is 5696 if it is left out. A master
	// key may name another port, or a host of Hosts.
	Endpoint string
	// Hosts are the hosts that master keys may name (KMIPKey.Endpoint) in addition to that of
	// Endpoint; see AWS.Hosts.
	Hosts []string
}

func (Local) kind() string { return "local" }
func (AWS) kind() string   { return "aws" }
func (Azure) kind() string { return "azure" }
func (GCP) kind() string   { return "gcp" }
func (KMIP) kind() string  { return "kmip" }

// LocalKeySize is the size of Local.Key, in bytes.
const LocalKeySize = 96

func (p Local) check(bool) error {
	if len(p.Key) != LocalKeySize {
		return fmt.Errorf("the key has %d bytes, want %d", len(p.Key), LocalKeySize)
	}
	return nil
}

func (p AWS) check(named bool) error {
	if err := checkHosts(p.Hosts); err != nil {
		return err
	}
	switch {
	case p.Credentials != nil && (p.AccessKeyID != "" || p.SecretAccessKey != "" || p.SessionToken != ""):
		return fmt.Errorf("both keys and Credentials are set")
	case p.Credentials != nil && named:
		return fmt.Errorf("credentials on demand are for the provider named %q only", p.kind())
	case p.OnDemand():
		return checkOnDemand(p, named)
	case p.AccessKeyID == "" || p.SecretAccessKey == "":
		return fmt.Errorf("AccessKeyID and SecretAccessKey are both needed")
	}
	return nil
}

// OnDemand reports whether the credentials come from Credentials or from the environment.
func (p AWS) OnDemand() bool {
	return p.AccessKeyID == "" && p.SecretAccessKey == "" && p.SessionToken == ""
}

func (p Azure) check(named bool) error {
	if err := checkHosts(p.Hosts); err != nil {
		return err
	}
	switch own := p.TenantID != "" || p.ClientID != "" || p.ClientSecret != ""; {
	case p.AccessToken != "" && (own || p.IdentityPlatformEndpoint != ""):
		return fmt.Errorf("AccessToken and the other fields exclude each other")
	case p.OnDemand():
		return checkOnDemand(p, named)
	case p.AccessToken == "" && (p.TenantID == "" || p.ClientID == "" || p.ClientSecret == ""):
		return fmt.Errorf("TenantID, ClientID and ClientSecret are needed, or AccessToken")
	}
	return checkEndpoint(p.IdentityPlatformEndpoint)
}

// OnDemand reports whether the token comes from the metadata service.
func (p Azure) OnDemand() bool {
	return p.TenantID == "" && p.ClientID == "" && p.ClientSecret == "" && p.IdentityPlatformEndpoint == "" &&
		p.AccessToken == ""
}

func (p GCP) check(named bool) error {
	if err := checkHosts(p.Hosts); err != nil {
		return err
	}
	switch own := p.Email != "" || len(p.PrivateKey) > 0; {
	case p.AccessToken != "" && (own || p.Endpoint != ""):
		return fmt.Errorf("AccessToken and the other fields exclude each other")
	case p.OnDemand():
		return checkOnDemand(p, named)
	case p.AccessToken == "" && (p.Email == "" || len(p.PrivateKey) == 0):
		//lint:ignore ST1005 the text is that of other drivers
		return fmt.Errorf("Email and PrivateKey are needed, or AccessToken")
	}
	return checkEndpoint(p.Endpoint)
}

// OnDemand reports whether the token comes from the metadata service.
func (p GCP) OnDemand() bool {
	return p.Email == "" && len(p.PrivateKey) == 0 && p.Endpoint == "" && p.AccessToken == ""
}

func (p KMIP) check(bool) error {
	if err := checkHosts(p.Hosts); err != nil {
		return err
	}
	return checkHost(p.Endpoint, false)
}

// checkHosts returns an error if one of the hosts that a program names is no host's name.
func checkHosts(hosts []string) error {
	for _, h := range hosts {
		name := strings.TrimPrefix(h, "*.")
		if strings.Contains(name, ":") && net.ParseIP(name) == nil || name == "" ||
			strings.ContainsAny(name, "/*[]@ ") {
			return fmt.Errorf(
				"the option Hosts has %q, want a host's name, \"*.\" and a domain, or an IP address, without a port", h)
		}
	}
	return nil
}

func checkOnDemand(p Provider, named bool) error {
	if named {
		return fmt.Errorf("no fields are set, and credentials on demand are for the provider named %q only", p.kind())
	}
	return nil
}

// Check returns an error if a name is unknown or does not fit its value, or if a field is invalid.
func (p Providers) Check() error {
	if len(p) == 0 {
		return fmt.Errorf("no key service is configured")
	}
	for name, provider := range p {
		if err := checkProvider(name, provider); err != nil {
			return fmt.Errorf("key service %q: %w", name, err)
		}
	}
	return nil
}

func checkProvider(name string, p Provider) error {
	kind, own, named := strings.Cut(name, ":")
	switch kind {
	case "local", "aws", "azure", "gcp", "kmip":
	default:
		return fmt.Errorf("unknown; want local, aws, azure, gcp or kmip")
	}
	if named && !isName(own) {
		return fmt.Errorf("the name after the colon has characters other than letters, digits and _, or none")
	}
	if p == nil {
		return fmt.Errorf("it is nil")
	}
	if err := pointer(p); err != nil {
		return err
	}
	if p.kind() != kind {
		return fmt.Errorf("its value is of the kind %q", p.kind())
	}
	return p.check(named)
}

// pointer returns an error for a pointer to a provider or to a master key, which has its methods.
func pointer(v any) error {
	if t := reflect.TypeOf(v); t.Kind() == reflect.Pointer {
		return fmt.Errorf("it is a %s, want a %s", t, t.Elem())
	}
	return nil
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_') {
			return false
		}
	}
	return s != ""
}

// redacted stands for what must not be printed.
const redacted = "***"

// Format prints asterisks in place of the key, with every verb.
func (p Local) Format(f fmt.State, _ rune) { io.WriteString(f, "{Key:"+redacted+"}") }

// MarshalJSON returns asterisks in place of the key.
func (p Local) MarshalJSON() ([]byte, error) { return []byte(`{"Key":"` + redacted + `"}`), nil }

// Format prints asterisks in place of the private key and the token, with every verb.
func (p GCP) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{Email:%s PrivateKey:%s Endpoint:%s AccessToken:%s Hosts:%v}", p.Email, redacted, p.Endpoint,
		redacted, p.Hosts)
}

// MarshalJSON returns asterisks in place of the private key and the token.
func (p GCP) MarshalJSON() ([]byte, error) {
	return []byte(fmt.Sprintf(`{"Email":%q,"PrivateKey":%q,"Endpoint":%q,"AccessToken":%q}`, p.Email, redacted,
		p.Endpoint, redacted)), nil
}
