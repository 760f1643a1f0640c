package uri

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The authentication mechanisms (specification: Authentication).
const (
	ScramSHA1   = "SCRAM-SHA-1"
	ScramSHA256 = "SCRAM-SHA-256"
	X509        = "MONGODB-X509"
	Plain       = "PLAIN"
	GSSAPI      = "GSSAPI"
	AWS         = "MONGODB-AWS"
	OIDC        = "MONGODB-OIDC"
	mongodbCR   = "MONGODB-CR"
)

const externalSource = "$external"

// Credential is who the client says it is, and how it proves it.
type Credential struct {
	Username    string
	Password    Secret
	PasswordSet bool   // an empty password was given, if Password is ""
	Source      string // the database that the user is defined in
	Mechanism   string // "": negotiated with the server
	// Properties are those of the mechanism. The case of their names does not matter.
	Properties map[string]string

	hasCallback bool // see Config.OIDCCallback
}

// Format prints the credential without its secrets, whatever the verb.
func (c *Credential) Format(f fmt.State, _ rune) {
	if c == nil {
		io.WriteString(f, "no credential")
		return
	}
	fmt.Fprintf(f, "user %q of %q, mechanism %q", c.Username, c.Source, cmp.Or(c.Mechanism, "default"))
}

func (c *Config) credential() *Credential {
	if c.Credential == nil {
		c.Credential = new(Credential)
	}
	return c.Credential
}

// addProperty sets a property. All names are in upper case.
func (c *Credential) addProperty(name, value string) {
	if c.Properties == nil {
		c.Properties = make(map[string]string)
	}
	c.Properties[strings.ToUpper(name)] = value
}

// setUserInfo takes over user name and password. Options about authentication alone, without a mechanism, are no request
// for it.
func (c *Config) setUserInfo(info *userInfo) {
	if info != nil {
		cr := c.credential()
		cr.Username, cr.Password, cr.PasswordSet = info.name, info.password, info.hasPassword
	} else if c.Credential != nil && c.Credential.Mechanism == "" {
		c.Credential = nil
	}
	if c.Credential != nil {
		c.Credential.Source = c.authSource
	}
}

// mechanism says what a credential with a mechanism may and must have.
type mechanism struct {
	external   bool     // the source must be $external
	database   bool     // the source defaults to the connection string's database
	properties []string // the properties that it knows
	check      func(*Credential) error
}

var (
	errNoUser     = errors.New("there is no user name")
	errNoPassword = errors.New("there is no password")
)

func needUserAndPassword(c *Credential) error {
	switch {
	case c.Username == "":
		return errNoUser
	case strings.Contains(c.Username, "\x00") || !utf8.ValidString(c.Username):
		return errors.New("the user name is not UTF-8 without NUL")
	case !c.PasswordSet && c.Password == "":
		return errNoPassword
	}
	return nil
}

// checkPlain refuses what cannot be told apart in the mechanism's message (RFC 4616), where NULs separate the parts.
func checkPlain(c *Credential) error {
	if err := needUserAndPassword(c); err != nil {
		return err
	}
	if p := string(c.Password); strings.Contains(p, "\x00") || !utf8.ValidString(p) {
		return errors.New("the password is not UTF-8 without NUL")
	}
	return nil
}

func refusePassword(c *Credential) error {
	if c.PasswordSet || c.Password != "" {
		return errors.New("there must be no password")
	}
	return nil
}

var mechanisms = map[string]mechanism{
	"":          {database: true, check: needUserAndPassword},
	ScramSHA1:   {database: true, check: needUserAndPassword},
	ScramSHA256: {database: true, check: needUserAndPassword},
	Plain:       {database: true, check: checkPlain},
	X509:        {external: true, check: refusePassword},
	GSSAPI: {
		external:   true,
		properties: []string{"SERVICE_NAME", "CANONICALIZE_HOST_NAME", "SERVICE_REALM", "SERVICE_HOST"},
		check:      checkGSSAPI,
	},
	AWS:  {external: true, check: checkAWS},
	OIDC: {external: true, properties: []string{"ENVIRONMENT", "TOKEN_RESOURCE"}, check: checkOIDC},
}

var canonicalizations = []string{"none", "forward", "forwardAndReverse"}

func checkGSSAPI(c *Credential) error {
	if c.Username == "" {
		return errNoUser
	}
	if c.Properties["SERVICE_NAME"] == "" {
		c.addProperty("SERVICE_NAME", "mongodb")
	}
	switch v, ok := c.Properties["CANONICALIZE_HOST_NAME"]; {
	case v == "true":
		c.Properties["CANONICALIZE_HOST_NAME"] = "forwardAndReverse"
	case v == "false":
		c.Properties["CANONICALIZE_HOST_NAME"] = "none"
	case ok && !slices.Contains(canonicalizations, v):
		return fmt.Errorf("CANONICALIZE_HOST_NAME must be one of %s", strings.Join(canonicalizations, ", "))
	}
	return nil
}

func checkAWS(c *Credential) error {
	if c.Username != "" || c.Password != "" || c.PasswordSet || len(c.Properties) != 0 {
		return errors.New("its keys come from the environment, there must be no user name, password or session token")
	}
	return nil
}

func checkOIDC(c *Credential) error {
	if err := refusePassword(c); err != nil {
		return err
	}
	env, hasEnv := c.Properties["ENVIRONMENT"]
	_, hasResource := c.Properties["TOKEN_RESOURCE"]
	needsResource := env == "azure" || env == "gcp"
	switch {
	case hasEnv && c.hasCallback:
		return errors.New("there are both an ENVIRONMENT and a callback")
	case !hasEnv && !c.hasCallback:
		return errors.New("there is neither an ENVIRONMENT nor a callback")
	case hasEnv && !slices.Contains([]string{"test", "azure", "gcp", "k8s"}, env):
		return errors.New("ENVIRONMENT must be one of test, azure, gcp, k8s")
	case hasResource && !needsResource:
		return errors.New("TOKEN_RESOURCE is for the environments azure and gcp")
	case !hasResource && needsResource:
		return fmt.Errorf("the environment %s needs a TOKEN_RESOURCE", env)
	case c.Username != "" && (env == "test" || env == "gcp" || env == "k8s"):
		return fmt.Errorf("the environment %s takes no user name", env)
	}
	return nil
}

// complete fills in the defaults of the credential and checks it against its mechanism.
func (c *Credential) complete(database string) error {
	m, ok := mechanisms[c.Mechanism]
	switch {
	case c.Mechanism == mongodbCR:
		return errors.New("mechanism MONGODB-CR is not supported, servers have removed it: use SCRAM-SHA-256 or SCRAM-SHA-1")
	case !ok:
		return fmt.Errorf("mechanism %q is not known", c.Mechanism)
	case c.Source == "" && m.database && database != "":
		c.Source = database
	case c.Source == "" && (m.external || c.Mechanism == Plain):
		c.Source = externalSource
	case c.Source == "":
		c.Source = "admin"
	case m.external && c.Source != externalSource:
		return fmt.Errorf("mechanism %s: the source must be %q", c.Mechanism, externalSource)
	}
	err := m.check(c)
	for name := range c.Properties {
		if !slices.Contains(m.properties, name) {
			err = cmp.Or(err, fmt.Errorf("there is no property %s", name))
		}
	}
	if err != nil {
		return fmt.Errorf("mechanism %s: %w", cmp.Or(c.Mechanism, "SCRAM (default)"), err)
	}
	return nil
}
