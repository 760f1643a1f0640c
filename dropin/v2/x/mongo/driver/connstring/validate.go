package connstring

import (
	"errors"
	"fmt"
	"strings"
)

// The errors for options that do not fit together.
var (
	ErrLoadBalancedWithMultipleHosts = errors.New(
		"loadBalanced cannot be set to true if multiple hosts are specified")
	ErrLoadBalancedWithReplicaSet = errors.New(
		"loadBalanced cannot be set to true if a replica set name is specified")
	ErrLoadBalancedWithDirectConnection = errors.New(
		"loadBalanced cannot be set to true if the direct connection option is specified")
	ErrSRVMaxHostsWithReplicaSet = errors.New(
		"srvMaxHosts cannot be a positive value if a replica set name is specified")
	ErrSRVMaxHostsWithLoadBalanced = errors.New(
		"srvMaxHosts cannot be a positive value if loadBalanced is set to true")
)

// Validate reports what does not fit together.
func (u *ConnString) Validate() error {
	if err := u.validateAuth(); err != nil {
		return err
	}
	if err := u.validateTLS(); err != nil {
		return err
	}
	if u.WNumberSet && u.WNumber == 0 && u.JSet && u.J {
		return errors.New("a write concern cannot have both w=0 and j=true")
	}
	if direct := u.DirectConnectionSet && u.DirectConnection || u.ConnectSet && u.Connect == SingleConnect; direct {
		switch {
		case len(u.Hosts) > 1:
			return errors.New("a direct connection cannot be made if multiple hosts are specified")
		case u.Scheme == SchemeMongoDBSRV:
			return errors.New("a direct connection cannot be made if an SRV URI is used")
		case u.LoadBalancedSet && u.LoadBalanced:
			return ErrLoadBalancedWithDirectConnection
		}
	}
	if u.LoadBalancedSet && u.LoadBalanced {
		switch {
		case len(u.Hosts) > 1:
			return ErrLoadBalancedWithMultipleHosts
		case u.ReplicaSet != "":
			return ErrLoadBalancedWithReplicaSet
		case u.SRVMaxHosts > 0:
			return ErrSRVMaxHostsWithLoadBalanced
		}
	}
	if u.SRVMaxHosts > 0 && u.ReplicaSet != "" {
		return ErrSRVMaxHostsWithReplicaSet
	}
	return nil
}

func (u *ConnString) validateTLS() error {
	switch {
	case u.SSLDisableOCSPEndpointCheckSet && u.SSLDisableCertificateRevocationCheckSet:
		return errors.New("tlsDisableOCSPEndpointCheck cannot be used with tlsDisableCertificateRevocationCheck")
	case u.SSLInsecureSet && u.SSLDisableCertificateRevocationCheckSet:
		return errors.New("sslInsecure/tlsInsecure cannot be used with tlsDisableCertificateRevocationCheck")
	case u.SSLInsecureSet && u.SSLDisableOCSPEndpointCheckSet:
		return errors.New(
			"the sslInsecure/tlsInsecure URI option cannot be provided along with tlsDisableOCSPEndpointCheck")
	case u.SSLCertificateFileSet && !u.SSLPrivateKeyFileSet:
		return errors.New(
			"the tlsPrivateKeyFile URI option must be provided if the tlsCertificateFile option is specified")
	case u.SSLPrivateKeyFileSet && !u.SSLCertificateFileSet:
		return errors.New(
			"the tlsCertificateFile URI option must be provided if the tlsPrivateKeyFile option is specified")
	case u.SSLClientCertificateKeyFileSet && u.SSLCertificateFileSet:
		return errors.New(
			"the sslClientCertificateKeyFile/tlsCertificateKeyFile URI option cannot be provided along with tlsCertificateFile or tlsPrivateKeyFile")
	}
	return nil
}

// validateAuth checks what the mechanisms want.
func (u *ConnString) validateAuth() error {
	mechanism := strings.ToUpper(u.AuthMechanism)
	properties := func(known ...string) error {
		for key := range u.AuthMechanismProperties {
			found := false
			for _, k := range known {
				found = found || k == key
			}
			if !found {
				return fmt.Errorf("invalid auth property for %s", u.AuthMechanism)
			}
		}
		return nil
	}
	switch mechanism {
	case "":
		if u.UsernameSet && u.Username == "" {
			return errors.New("username required if URI contains user info")
		}
	case "SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN":
		switch {
		case u.Username == "":
			return fmt.Errorf("username required for %s", u.AuthMechanism)
		case u.Password == "":
			return fmt.Errorf("password required for %s", u.AuthMechanism)
		case len(u.AuthMechanismProperties) > 0:
			return fmt.Errorf("%s cannot have mechanism properties", u.AuthMechanism)
		}
	case "MONGODB-X509":
		switch {
		case u.PasswordSet:
			return errors.New("password cannot be specified for MONGO-X509")
		case len(u.AuthMechanismProperties) > 0:
			return errors.New("MONGO-X509 cannot have mechanism properties")
		}
	case "GSSAPI":
		if u.Username == "" {
			return errors.New("username required for GSSAPI")
		}
		return properties("SERVICE_NAME", "CANONICALIZE_HOST_NAME", "SERVICE_REALM", "SERVICE_HOST")
	case "MONGODB-AWS":
		switch {
		case u.Username != "" && !u.PasswordSet:
			return errors.New("username without password is invalid for MONGODB-AWS")
		case u.Username == "" && u.PasswordSet:
			return errors.New("password without username is invalid for MONGODB-AWS")
		}
		return properties("AWS_SESSION_TOKEN")
	case "MONGODB-OIDC":
		if u.PasswordSet {
			return errors.New("password cannot be specified for MONGODB-OIDC")
		}
	}
	return nil
}
