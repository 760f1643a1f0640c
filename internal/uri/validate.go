package uri

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"allium/auth"
)

// Validate fills in what depends on several options and refuses options that contradict each other.
// It is called after the options of the program, and after ApplySRV for a mongodb+srv string.
func (c *Config) Validate() error {
	if err := c.conflicts(); err != nil {
		return err
	}
	if err := c.ranges(); err != nil {
		return err
	}
	if len(c.Hosts) == 0 {
		return errors.New("there are no hosts")
	}
	if c.MinPoolSize != nil && c.MaxPoolSize != nil && *c.MaxPoolSize != 0 && *c.MinPoolSize > *c.MaxPoolSize {
		return fmt.Errorf("minPoolSize %d is greater than maxPoolSize %d", *c.MinPoolSize, *c.MaxPoolSize)
	}
	if c.ReadPreference == "" || c.ReadPreference == "primary" {
		if c.MaxStaleness != nil && *c.MaxStaleness >= 0 {
			return errors.New("maxStalenessSeconds needs a readPreference other than primary")
		}
		for _, tags := range c.ReadPreferenceTags {
			if len(tags) > 0 {
				return errors.New("readPreferenceTags need a readPreference other than primary")
			}
		}
	}
	c.Compressors = slices.DeleteFunc(slices.Clone(c.Compressors), func(name string) bool {
		unknown := !slices.Contains(compressors, name)
		if unknown {
			c.warn("compressor %q is not supported, want one of %s", name, strings.Join(compressors, ", "))
		}
		return unknown
	})
	for _, callback := range []struct {
		mechanism auth.Mechanism
		isSet     bool
	}{{auth.MechanismOIDC, c.OIDCCallback}, {auth.MechanismAWS, c.AWSCallback}} {
		if callback.isSet && (c.Credential == nil || c.Credential.Mechanism != callback.mechanism) {
			return fmt.Errorf("there is a callback for the mechanism %s, which is not chosen", callback.mechanism)
		}
	}
	if c.Credential != nil {
		own, err := c.Complete(c.Credential)
		if err != nil {
			return fmt.Errorf("authentication: %w", err)
		}
		c.Credential = own
	}
	return nil
}

// Complete returns a credential of the program's, which it leaves as it is, with what the
// configuration and the mechanism fill in. It is an error if the mechanism does not allow it.
func (c *Config) Complete(credential *auth.Credential) (*auth.Credential, error) {
	own := *credential
	own.Properties = nil
	for name, value := range credential.Properties {
		addProperty(&own, name, value)
	}
	own.Source = cmp.Or(own.Source, c.authSource)
	if err := complete(&own, c.Database, c.OIDCCallback); err != nil {
		return nil, err
	}
	return &own, nil
}

func is(b *bool) bool { return b != nil && *b }

// ranges refuses numbers that an option does not allow. Those of a connection string are warned of
// and left out when it is read; these are the program's.
func (c *Config) ranges() error {
	const unlimited = math.MaxInt32
	for _, x := range []struct {
		name        string
		v           *int
		least, most int
	}{
		{"maxPoolSize", c.MaxPoolSize, 0, unlimited},
		{"minPoolSize", c.MinPoolSize, 0, unlimited},
		{"maxConnecting", c.MaxConnecting, 1, unlimited},
		{"maxAdaptiveRetries", c.MaxAdaptiveRetries, 0, unlimited},
		{"srvMaxHosts", c.SRVMaxHosts, 0, unlimited},
		{"zlibCompressionLevel", c.ZlibCompressionLevel, -1, 9},
		{"proxyPort", &c.Proxy.Port, 0, math.MaxUint16},
	} {
		if x.v != nil && (*x.v < x.least || *x.v > x.most) {
			return fmt.Errorf("option %s is %d, want %d to %d", x.name, *x.v, x.least, x.most)
		}
	}
	for _, x := range []struct {
		name  string
		v     *time.Duration
		least time.Duration
	}{
		{"connectTimeoutMS", c.ConnectTimeout, 0},
		{"socketTimeoutMS", c.SocketTimeout, 0},
		{"timeoutMS", c.Timeout, 0},
		{"serverSelectionTimeoutMS", c.ServerSelectionTimeout, 1},
		{"waitQueueTimeoutMS", c.WaitQueueTimeout, 0},
		{"heartbeatFrequencyMS", c.HeartbeatInterval, 500 * time.Millisecond},
		{"localThresholdMS", c.LocalThreshold, 0},
		{"maxIdleTimeMS", c.MaxIdleTime, 0},
		{"wTimeoutMS", c.WTimeout, 0},
	} {
		if x.v != nil && *x.v < x.least {
			return fmt.Errorf("option %s is %v, want at least %v", x.name, *x.v, x.least)
		}
	}
	if c.ServerMonitoringMode != "" && !slices.Contains(monitoringModes, c.ServerMonitoringMode) {
		return fmt.Errorf("option serverMonitoringMode is %q, want %s", c.ServerMonitoringMode,
			strings.Join(monitoringModes, ", "))
	}
	return nil
}

// conflict is a pair of options that exclude each other.
type conflict struct {
	a, b       string
	hasA, hasB bool
}

// conflicts refuses options that contradict each other.
func (c *Config) conflicts() error {
	direct, balanced := is(c.Direct), is(c.LoadBalanced)
	limited := c.SRVMaxHosts != nil && *c.SRVMaxHosts > 0
	t := &c.TLSIs
	for _, x := range []conflict{
		{"directConnection=true", "several hosts", direct, len(c.Hosts) > 1},
		{"directConnection=true", "a mongodb+srv string", direct, c.SRVHost != ""},
		{"loadBalanced=true", "several hosts", balanced, len(c.Hosts) > 1},
		{"loadBalanced=true", "replicaSet", balanced, c.ReplicaSet != ""},
		{"loadBalanced=true", "directConnection=true", balanced, direct},
		{"srvMaxHosts", "loadBalanced=true", limited, balanced},
		{"srvMaxHosts", "replicaSet", limited, c.ReplicaSet != ""},
		{"srvMaxHosts", "a string other than mongodb+srv", c.SRVMaxHosts != nil, c.SRVHost == ""},
		{"srvServiceName", "a string other than mongodb+srv", c.SRVServiceName != "", c.SRVHost == ""},
		{"tlsInsecure", "tlsAllowInvalidCertificates", t.Insecure != nil, t.AllowInvalidCertificates != nil},
		{"tlsInsecure", "tlsAllowInvalidHostnames", t.Insecure != nil, t.AllowInvalidHostnames != nil},
		{"tlsInsecure", "tlsDisableOCSPEndpointCheck", t.Insecure != nil, t.DisableOCSPEndpointCheck != nil},
		{"tlsInsecure", "tlsDisableCertificateRevocationCheck", t.Insecure != nil,
			t.DisableCertificateRevocationCheck != nil},
		{"tlsAllowInvalidCertificates", "tlsDisableOCSPEndpointCheck", t.AllowInvalidCertificates != nil,
			t.DisableOCSPEndpointCheck != nil},
		{"tlsAllowInvalidCertificates", "tlsDisableCertificateRevocationCheck", t.AllowInvalidCertificates != nil,
			t.DisableCertificateRevocationCheck != nil},
		{"tlsDisableOCSPEndpointCheck", "tlsDisableCertificateRevocationCheck", t.DisableOCSPEndpointCheck != nil,
			t.DisableCertificateRevocationCheck != nil},
		{"w=0", "journal=true", c.W == 0, is(c.Journal)},
	} {
		if x.hasA && x.hasB {
			return fmt.Errorf("options %s and %s exclude each other", x.a, x.b)
		}
	}
	return c.Proxy.check()
}

func (p *Proxy) check() error {
	if p.Host == "" {
		switch {
		case p.Port != 0:
			return errors.New("option proxyPort needs proxyHost")
		case p.Username != "":
			return errors.New("option proxyUsername needs proxyHost")
		case p.Password != "":
			return errors.New("option proxyPassword needs proxyHost")
		}
		return nil
	}
	if (p.Username == "") != (p.Password == "") {
		return errors.New("options proxyUsername and proxyPassword need each other")
	}
	return nil
}

// txtOptions are the options that a TXT record may have.
var txtOptions = map[string]bool{"authsource": true, "replicaset": true, "loadbalanced": true}

// ApplySRV takes over what DNS says about a mongodb+srv string: the addresses of the SRV records
// and the text of the TXT record, "" if there is none. Options that are set already win over those
// of the TXT record (specification: Initial DNS Seedlist Discovery).
func (c *Config) ApplySRV(hosts []string, txt string) error {
	pairs, err := splitOptions(txt)
	if err != nil {
		return fmt.Errorf("TXT record of %s: %w", c.SRVHost, err)
	}
	for _, p := range pairs {
		if !txtOptions[p.key] {
			return fmt.Errorf("TXT record of %s: option %q is not allowed there", c.SRVHost, p.key)
		}
	}
	var defaults Config
	if err := defaults.applyOptions(txt); err != nil {
		return fmt.Errorf("TXT record of %s: %w", c.SRVHost, err)
	}
	for _, w := range defaults.Warnings {
		c.warn("TXT record of %s: %s", c.SRVHost, w)
	}
	if c.ReplicaSet == "" {
		c.ReplicaSet = defaults.ReplicaSet
	}
	if c.LoadBalanced == nil {
		c.LoadBalanced = defaults.LoadBalanced
	}
	if c.authSource == "" {
		c.authSource = defaults.authSource
	}
	c.Hosts = hosts
	return nil
}
