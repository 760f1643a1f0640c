package keyservice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"allium/encryption/kms"
	sources "allium/internal/auth"
)

// A key document says which host has the master key, and whoever can write to the key vault, or
// answers in its place, writes key documents. Credentials, and the data keys to wrap, go only to
// hosts that are a service's own, and to those that the program names.
//
// The patterns are narrower than the providers' domains, which have hosts of their customers', too:
// buckets, functions, load balancers. docs/encryption.md lists them with their sources.
var (
	awsHosts = hostPattern(`((kms|kms-fips)\.%[1]s|[a-z0-9-]+\.(kms|kms-fips)\.%[1]s\.vpce)\.%[2]s`,
		`[a-z]{2,4}(-[a-z]+)+-[0-9]+`, // a region
		"amazonaws.com", "api.aws",
		"amazonaws.com.cn", "api.amazonwebservices.com.cn", // China
		"amazonaws.eu", "api.amazonwebservices.eu", // European Sovereign Cloud
		// isolated, United States
		"c2s.ic.gov", "api.aws.ic.gov", "sc2s.sgov.gov", "api.aws.scloud", "csp.hci.ic.gov", "api.aws.hci.ic.gov",
		"cloud.adc-e.uk", "api.cloud-aws.adc-e.uk", // isolated, Europe
	)
	azureHosts = hostPattern(`%[1]s\.(vault|managedhsm)\.%[2]s`,
		`[a-z0-9-]+`, // a vault
		"azure.net",
		"azure.cn", "chinacloudapi.cn", // China
		"usgovcloudapi.net",                  // United States, government
		"sovcloud-api.fr", "sovcloud-api.de", // France (Bleu), Germany (Delos)
		"cloudapi.eaglex.ic.gov", "cloudapi.microsoft.scloud", // isolated, United States
	)
	gcpHosts = hostPattern(`(cloudkms|cloudkms\.mtls|%[1]s-cloudkms|cloudkms\.%[1]s\.rep|cloudkms-%[1]s\.p)\.%[2]s`,
		`[a-z0-9-]+`, // a location, or the name of an endpoint of Private Service Connect
		"googleapis.com",
		"s3nsapis.fr",             // France (S3NS)
		"apis-berlin-build0.goog", // Germany (Google Cloud Dedicated)
	)
)

// hostPattern returns the pattern of hosts: form, with part and one of the domains put in.
func hostPattern(form, part string, domains ...string) *regexp.Regexp {
	for i, d := range domains {
		domains[i] = regexp.QuoteMeta(d)
	}
	return regexp.MustCompile("^" + fmt.Sprintf(form, part, "("+strings.Join(domains, "|")+")") + "$")
}

// checkHost returns an error unless the address of a master key is one of a host that own matches
// or that is among those that the program names, in the field of the provider's type.
func (c *Client) checkHost(provider, address string, own *regexp.Regexp, named []string, field string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		if _, bad := strconv.ParseUint(port, 10, 16); bad != nil || !isHost(host) {
			err = errors.New("it is not the address of a host")
		}
	}
	host = strings.ToLower(host)
	if err == nil && !(own != nil && own.MatchString(host)) && !sources.HostAllowed(named, host) {
		err = fmt.Errorf(
			"the master key names a host that is not known to be the service's, so that nothing is sent to it; if it is right, add it to kms.%s", field)
	}
	return c.failed(context.Background(), provider, address, 0, err)
}

// isHost reports whether a name has the characters of a host's name or of an IP address.
func isHost(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("-_.:%", r))
	})
}

func (s *localService) check(kms.MasterKey) error { return nil }

func (s *awsService) check(key kms.MasterKey) error {
	return s.c.checkHost(s.name, awsEndpoint(key.(kms.AWSKey)), awsHosts, s.p.Hosts, "AWS.Hosts")
}

func (s *azureService) check(key kms.MasterKey) error {
	return s.c.checkHost(s.name, withPort(key.(kms.AzureKey).VaultEndpoint, httpsPort), azureHosts, s.p.Hosts,
		"Azure.Hosts")
}

func (s *gcpService) check(key kms.MasterKey) error {
	return s.c.checkHost(s.name, gcpEndpoint(key.(kms.GCPKey)), gcpHosts, s.p.Hosts, "GCP.Hosts")
}

func (s *kmipService) check(key kms.MasterKey) error {
	endpoint := key.(kms.KMIPKey).Endpoint
	if endpoint == "" {
		return nil // that of the provider
	}
	named := s.p.Hosts
	if s.p.Endpoint != "" {
		host, _, _ := net.SplitHostPort(withPort(s.p.Endpoint, kmipPort))
		named = append([]string{host}, named...)
	}
	return s.c.checkHost(s.name, withPort(endpoint, kmipPort), nil, named, "KMIP.Hosts")
}
