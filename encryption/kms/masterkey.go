package kms

import (
	"fmt"
	"strings"
)

// MasterKey names the key of a key service that wraps a data key: LocalKey, AWSKey, AzureKey,
// GCPKey or KMIPKey.
type MasterKey interface {
	// kind is the part of the name of the provider that it belongs to before the colon.
	kind() string
	check() error
}

// LocalKey is the only key of the provider Local.
type LocalKey struct{}

// AWSKey is a key of Amazon's service.
type AWSKey struct {
	Region string // as in "eu-central-1"
	Key    string // its Amazon Resource Name
	// Endpoint is the service's address, "host" or "host:port". Empty: that of the region.
	Endpoint string
}

// AzureKey is a key of Microsoft's service.
type AzureKey struct {
	VaultEndpoint string // as in "example.vault.azure.net", or the URL of the vault
	Name          string
	Version       string // empty: the newest
}

// GCPKey is a key of Google's service.
type GCPKey struct {
	ProjectID string
	Location  string // as in "europe-west3" or "global"
	KeyRing   string
	Name      string
	Version   string // empty: the primary one
	// Endpoint is the service's address, "host" or "host:port". Empty: cloudkms.googleapis.com.
	Endpoint string
}

// KMIPKey is an object of a KMIP server.
type KMIPKey struct {
	// ID is the object's unique identifier. Empty: a new object is created, and its identifier is
	// stored with the data key.
	ID string
	// Endpoint is the server's address, "host:port". Empty: that of the provider.
	Endpoint string
	// Delegated makes the server wrap and unwrap data keys, so that the master key never leaves it.
	// Without it the client fetches the master key and wraps data keys itself.
	Delegated bool
}

func (LocalKey) kind() string { return "local" }
func (AWSKey) kind() string   { return "aws" }
func (AzureKey) kind() string { return "azure" }
func (GCPKey) kind() string   { return "gcp" }
func (KMIPKey) kind() string  { return "kmip" }

func (LocalKey) check() error { return nil }

func (k AWSKey) check() error {
	if k.Region == "" || k.Key == "" {
		return fmt.Errorf("an AWS master key needs Region and Key")
	}
	return checkEndpoint(k.Endpoint)
}

func (k AzureKey) check() error {
	if k.VaultEndpoint == "" || k.Name == "" {
		return fmt.Errorf("an Azure master key needs VaultEndpoint and Name")
	}
	return checkEndpoint(k.VaultEndpoint)
}

func (k GCPKey) check() error {
	if k.ProjectID == "" || k.Location == "" || k.KeyRing == "" || k.Name == "" {
		return fmt.Errorf("a GCP master key needs ProjectID, Location, KeyRing and Name")
	}
	return checkEndpoint(k.Endpoint)
}

func (k KMIPKey) check() error { return checkHost(k.Endpoint, false) }

// CheckMasterKey returns an error if the master key is not valid for a data key of the named
// provider.
func CheckMasterKey(provider string, key MasterKey) error {
	kind, _, _ := strings.Cut(provider, ":")
	if key == nil {
		return fmt.Errorf("the key service %q needs a master key", provider)
	}
	if err := pointer(key); err != nil {
		return fmt.Errorf("the master key of the key service %q: %w", provider, err)
	}
	if key.kind() != kind {
		return fmt.Errorf("the master key is of the kind %q, the key service is %q", key.kind(), provider)
	}
	return key.check()
}

// checkEndpoint reports whether the address of a key service is not "host" or "host:port" with a
// dot in the host. It may be the URL of a vault, as other drivers store it; its path is left out.
// The empty address stands for the usual one.
func checkEndpoint(endpoint string) error { return checkHost(endpoint, true) }

func checkHost(endpoint string, dotted bool) error {
	if endpoint == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(endpoint, "https://"); ok {
		endpoint, _, _ = strings.Cut(rest, "/")
	}
	host, port, hasPort := endpoint, "", false
	if strings.HasPrefix(endpoint, "[") { // an IPv6 address
		end := strings.IndexByte(endpoint, ']')
		if end < 0 {
			return fmt.Errorf("invalid endpoint %q: a bracket is not closed", endpoint)
		}
		host, port = endpoint[1:end], endpoint[end+1:]
		if hasPort = port != ""; hasPort {
			if port[0] != ':' {
				return fmt.Errorf("invalid endpoint %q: expected host:port", endpoint)
			}
			port = port[1:]
		}
		dotted = false
	} else {
		host, port, hasPort = strings.Cut(endpoint, ":")
	}
	switch {
	case host == "" || strings.ContainsAny(endpoint, " \t\r\n/?#@\\"):
		return fmt.Errorf("invalid endpoint %q: expected host or host:port", endpoint)
	case dotted && !strings.Contains(host, "."):
		return fmt.Errorf("invalid endpoint %q: expected a dot in the host", endpoint)
	case hasPort && !isPort(port):
		return fmt.Errorf("invalid endpoint %q: the port is not a number from 1 to 65535", endpoint)
	}
	return nil
}

func isPort(s string) bool {
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' || n > 65535 {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n >= 1 && n <= 65535
}
