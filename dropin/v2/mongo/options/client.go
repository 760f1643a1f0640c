package options

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/tag"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// clientState is what ClientOptions have besides their fields.
type clientState struct {
	uri string // the last string that ApplyURI has read
	err error  // the first error of ApplyURI

	tlsInsecureSet bool // a string has tlsInsecure, whatever its value
}

// defaultHTTPClient makes the requests of those who name no client.
var defaultHTTPClient = &http.Client{}

// Client returns settings with their defaults.
func Client() *ClientOptions {
	if _, usual := http.DefaultTransport.(*http.Transport); !usual {
		return &ClientOptions{HTTPClient: &http.Client{Transport: http.DefaultTransport}}
	}
	return &ClientOptions{HTTPClient: defaultHTTPClient}
}

// GetURI returns the string that ApplyURI has read, an empty one if there is none.
func (c *ClientOptions) GetURI() string { return c.uri }

// ApplyURI sets what a connection string says, and leaves the rest as it is. What is set later
// replaces it. Validate returns an error in the string; after one, ApplyURI does nothing. The hosts
// of a mongodb+srv string are looked up.
func (c *ClientOptions) ApplyURI(uri string) *ClientOptions {
	if c.err != nil {
		return c
	}
	u, err := connstring.ParseAndValidate(uri)
	if err != nil {
		c.err = err
		return c
	}
	c.uri = uri
	c.tlsInsecureSet = c.tlsInsecureSet || u.SSLInsecureSet
	c.err = c.apply(u)
	return c
}

// given sets a field to a value, if the string has it.
func given[T any](set bool, field **T, value T) {
	if set {
		*field = &value
	}
}

func (c *ClientOptions) apply(u *connstring.ConnString) error {
	c.Hosts = u.Hosts
	given(u.AppName != "", &c.AppName, u.AppName)
	if u.HasAuthParameters() {
		c.Auth = &Credential{
			AuthMechanism: u.AuthMechanism, AuthMechanismProperties: u.AuthMechanismProperties,
			AuthSource: u.AuthSource,
			Username:   u.Username, Password: u.Password, PasswordSet: u.PasswordSet,
		}
	}
	given(u.ConnectSet, &c.Direct, u.Connect == connstring.SingleConnect)
	given(u.DirectConnectionSet, &c.Direct, u.DirectConnection)
	given(u.ConnectTimeoutSet, &c.ConnectTimeout, u.ConnectTimeout)
	if u.Compressors != nil {
		c.Compressors = u.Compressors
	}
	given(u.HeartbeatIntervalSet, &c.HeartbeatInterval, u.HeartbeatInterval)
	given(u.LoadBalancedSet, &c.LoadBalanced, u.LoadBalanced)
	given(u.LocalThresholdSet, &c.LocalThreshold, u.LocalThreshold)
	given(u.MaxConnIdleTimeSet, &c.MaxConnIdleTime, u.MaxConnIdleTime)
	given(u.MaxPoolSizeSet, &c.MaxPoolSize, u.MaxPoolSize)
	given(u.MinPoolSizeSet, &c.MinPoolSize, u.MinPoolSize)
	given(u.MaxConnectingSet, &c.MaxConnecting, u.MaxConnecting)
	if u.ReadConcernLevel != "" {
		c.ReadConcern = &readconcern.ReadConcern{Level: u.ReadConcernLevel}
	}
	given(u.ReplicaSet != "", &c.ReplicaSet, u.ReplicaSet)
	given(u.RetryReadsSet, &c.RetryReads, u.RetryReads)
	given(u.RetryWritesSet, &c.RetryWrites, u.RetryWrites)
	given(u.MaxAdaptiveRetriesSet, &c.MaxAdaptiveRetries, u.MaxAdaptiveRetries)
	given(u.EnableOverloadRetargetingSet, &c.EnableOverloadRetargeting, u.EnableOverloadRetargeting)
	given(u.ServerMonitoringMode != "", &c.ServerMonitoringMode, u.ServerMonitoringMode)
	given(u.ServerSelectionTimeoutSet, &c.ServerSelectionTimeout, u.ServerSelectionTimeout)
	given(u.SRVMaxHosts != 0, &c.SRVMaxHosts, u.SRVMaxHosts)
	given(u.SRVServiceName != "", &c.SRVServiceName, u.SRVServiceName)
	given(u.SSLDisableCertificateRevocationCheckSet, &c.DisableCertificateRevocationCheck,
		u.SSLDisableCertificateRevocationCheck)
	given(u.SSLDisableOCSPEndpointCheckSet, &c.DisableOCSPEndpointCheck, u.SSLDisableOCSPEndpointCheck)
	given(u.TimeoutSet, &c.Timeout, u.Timeout)
	given(u.ZlibLevelSet, &c.ZlibLevel, u.ZlibLevel)
	given(u.ZstdLevelSet, &c.ZstdLevel, u.ZstdLevel)
	if u.JSet || u.WString != "" || u.WNumberSet {
		c.WriteConcern = new(writeconcern.WriteConcern)
		switch {
		case u.WString != "":
			c.WriteConcern.W = u.WString
		case u.WNumberSet:
			c.WriteConcern.W = u.WNumber
		}
		given(u.JSet, &c.WriteConcern.Journal, u.J)
	}
	if err := c.applyPreference(u); err != nil {
		return err
	}
	return c.applyTLS(u)
}

func (c *ClientOptions) applyPreference(u *connstring.ConnString) error {
	if u.ReadPreference == "" && len(u.ReadPreferenceTagSets) == 0 && !u.MaxStalenessSet {
		return nil
	}
	mode, err := readpref.ModeFromString(u.ReadPreference)
	if err != nil {
		return err
	}
	var opts []readpref.Option
	if len(u.ReadPreferenceTagSets) > 0 {
		opts = append(opts, readpref.WithTagSets(tag.NewTagSetsFromMaps(u.ReadPreferenceTagSets)...))
	}
	if u.MaxStalenessSet {
		opts = append(opts, readpref.WithMaxStaleness(u.MaxStaleness))
	}
	c.ReadPreference, err = readpref.New(mode, opts...)
	return err
}

// Validate returns the error of ApplyURI, or what does not fit together.
func (c *ClientOptions) Validate() error {
	if c.err != nil {
		return c.err
	}
	is := func(b *bool) bool { return b != nil && *b }
	srvHosts := c.SRVMaxHosts != nil && *c.SRVMaxHosts > 0
	switch {
	case is(c.Direct) && len(c.Hosts) > 1:
		return errors.New("a direct connection cannot be made if multiple hosts are specified")
	case c.HeartbeatInterval != nil && *c.HeartbeatInterval < leastHeartbeat:
		return fmt.Errorf(
			"heartbeatFrequencyMS must exceed the minimum heartbeat interval of %v, got heartbeatFrequencyMS=%q",
			leastHeartbeat, *c.HeartbeatInterval)
	case c.MaxPoolSize != nil && c.MinPoolSize != nil && *c.MaxPoolSize != 0 && *c.MinPoolSize > *c.MaxPoolSize:
		return fmt.Errorf("minPoolSize must be less than or equal to maxPoolSize, got minPoolSize=%d maxPoolSize=%d",
			*c.MinPoolSize, *c.MaxPoolSize)
	case is(c.LoadBalanced) && len(c.Hosts) > 1:
		return connstring.ErrLoadBalancedWithMultipleHosts
	case is(c.LoadBalanced) && c.ReplicaSet != nil:
		return connstring.ErrLoadBalancedWithReplicaSet
	case is(c.LoadBalanced) && is(c.Direct):
		return connstring.ErrLoadBalancedWithDirectConnection
	case srvHosts && c.ReplicaSet != nil:
		return connstring.ErrSRVMaxHostsWithReplicaSet
	case srvHosts && is(c.LoadBalanced):
		return connstring.ErrSRVMaxHostsWithLoadBalanced
	case c.DisableCertificateRevocationCheck != nil &&
		(c.tlsInsecureSet || c.TLSConfig != nil && c.TLSConfig.InsecureSkipVerify):
		return errors.New("sslInsecure/tlsInsecure cannot be used with tlsDisableCertificateRevocationCheck")
	case c.DisableCertificateRevocationCheck != nil && c.DisableOCSPEndpointCheck != nil:
		return errors.New("tlsDisableOCSPEndpointCheck cannot be used with tlsDisableCertificateRevocationCheck")
	case c.ServerMonitoringMode != nil && !connstring.IsValidServerMonitoringMode(*c.ServerMonitoringMode):
		return fmt.Errorf("invalid server monitoring mode: %q", *c.ServerMonitoringMode)
	case c.Timeout != nil && *c.Timeout < 0:
		return fmt.Errorf("invalid value %q for \"Timeout\": value must be positive", *c.Timeout)
	}
	if c.ServerAPIOptions != nil {
		if err := c.ServerAPIOptions.ServerAPIVersion.Validate(); err != nil {
			return err
		}
	}
	return c.Auth.validateOIDC()
}

const leastHeartbeat = 500 * time.Millisecond

// validateOIDC checks what the mechanism MONGODB-OIDC wants.
func (a *Credential) validateOIDC() error {
	if a == nil || a.AuthMechanism != "MONGODB-OIDC" {
		return nil
	}
	environment := a.AuthMechanismProperties["ENVIRONMENT"]
	callbacks := 0
	for _, set := range []bool{a.OIDCMachineCallback != nil, a.OIDCHumanCallback != nil, environment != ""} {
		if set {
			callbacks++
		}
	}
	switch {
	case a.OIDCMachineCallback != nil && a.OIDCHumanCallback != nil:
		return errors.New("cannot set both OIDCMachineCallback and OIDCHumanCallback, only one may be specified")
	case a.OIDCMachineCallback != nil && environment != "":
		return errors.New("cannot specify both OIDCMachineCallback and ENVIRONMENT authMechanismProperty")
	case a.OIDCHumanCallback != nil && environment != "":
		return errors.New("cannot specify both OIDCHumanCallback and ENVIRONMENT authMechanismProperty")
	case callbacks == 0:
		return errors.New(
			"must specify at least one of OIDCMachineCallback, OIDCHumanCallback, or ENVIRONMENT authMechanismProperty")
	case (environment == "azure" || environment == "gcp") && a.AuthMechanismProperties["TOKEN_RESOURCE"] == "":
		return fmt.Errorf("%q must be set for the %s %q", "TOKEN_RESOURCE", environment, "ENVIRONMENT")
	}
	return nil
}

// MergeClientOptions returns settings in which each has the last value that is set in one of opts.
// One alone is returned as it is.
func MergeClientOptions(opts ...*ClientOptions) *ClientOptions {
	if len(opts) == 1 && opts[0] != nil {
		return opts[0]
	}
	merged := Client()
	to := reflect.ValueOf(merged).Elem()
	for _, o := range opts {
		if o == nil {
			continue
		}
		from := reflect.ValueOf(o).Elem()
		for i := range from.NumField() {
			if f := from.Field(i); from.Type().Field(i).IsExported() && !f.IsZero() {
				to.Field(i).Set(f)
			}
		}
		if o.err != nil {
			merged.err = o.err
		}
		if o.uri != "" {
			merged.uri = o.uri
		}
		merged.tlsInsecureSet = merged.tlsInsecureSet || o.tlsInsecureSet
	}
	return merged
}
