package uri

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"allium/auth"
)

// mongodbCR is a mechanism that servers no longer have.
const mongodbCR = "MONGODB-CR"

const externalSource = "$external"

func (c *Config) credential() *auth.Credential {
	if c.Credential == nil {
		c.Credential = new(auth.Credential)
	}
	return c.Credential
}

// addProperty sets a property. All names are in upper case.
func addProperty(c *auth.Credential, name, value string) {
	if c.Properties == nil {
		c.Properties = make(map[string]string)
	}
	c.Properties[strings.ToUpper(name)] = value
}

// setUserInfo takes over user name and password. Options about authentication alone, without a
// mechanism, are no request for it.
func (c *Config) setUserInfo(info *userInfo) {
	if info != nil {
		cr := c.credential()
		cr.Username, cr.Password, cr.PasswordSet = info.name, info.password, info.hasPassword
	} else if c.Credential != nil && c.Credential.Mechanism == "" {
		c.Credential = nil
	}
}

// mechanism says what a credential with a mechanism may and must have.
type mechanism struct {
	external   bool     // the source must be $external
	database   bool     // the source defaults to the connection string's database
	properties []string // the properties that it knows
	check      func(*auth.Credential) error
}

var (
	errNoUser     = errors.New("there is no user name")
	errNoPassword = errors.New("there is no password")
)

func needUserAndPassword(c *auth.Credential) error {
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

// checkPlain refuses what cannot be told apart in the mechanism's message (RFC 4616), where NULs
// separate the parts.
func checkPlain(c *auth.Credential) error {
	if err := needUserAndPassword(c); err != nil {
		return err
	}
	if p := string(c.Password); strings.Contains(p, "\x00") || !utf8.ValidString(p) {
		return errors.New("the password is not UTF-8 without NUL")
	}
	return nil
}

func refusePassword(c *auth.Credential) error {
	if c.PasswordSet || c.Password != "" {
		return errors.New("there must be no password")
	}
	return nil
}

var mechanisms = map[auth.Mechanism]mechanism{
	"":                        {database: true, check: needUserAndPassword},
	auth.MechanismScramSHA1:   {database: true, check: needUserAndPassword},
	auth.MechanismScramSHA256: {database: true, check: needUserAndPassword},
	auth.MechanismPlain:       {database: true, check: checkPlain},
	auth.MechanismX509:        {external: true, check: refusePassword},
	auth.MechanismGSSAPI: {
		external:   true,
		properties: []string{"SERVICE_NAME", "CANONICALIZE_HOST_NAME", "SERVICE_REALM", "SERVICE_HOST"},
		check:      checkGSSAPI,
	},
	auth.MechanismAWS:  {external: true, check: checkAWS},
	auth.MechanismOIDC: {external: true, properties: []string{"ENVIRONMENT", "TOKEN_RESOURCE"}, check: refusePassword},
}

var canonicalizations = []string{"none", "forward", "forwardAndReverse"}

func checkGSSAPI(c *auth.Credential) error {
	if c.Username == "" {
		return errNoUser
	}
	if c.Properties["SERVICE_NAME"] == "" {
		addProperty(c, "SERVICE_NAME", "mongodb")
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

func checkAWS(c *auth.Credential) error {
	if c.Username != "" || c.Password != "" || c.PasswordSet || len(c.Properties) != 0 {
		return errors.New("its keys come from the environment, there must be no user name, password or session token")
	}
	return nil
}

// checkOIDC wants one source of tokens: callback says that the program has one of its own.
func checkOIDC(c *auth.Credential, callback bool) error {
	env, hasEnv := c.Properties["ENVIRONMENT"]
	_, hasResource := c.Properties["TOKEN_RESOURCE"]
	needsResource := env == "azure" || env == "gcp"
	switch {
	case hasEnv && callback:
		return errors.New("there are both an ENVIRONMENT and a callback")
	case !hasEnv && !callback:
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

// knownMechanisms lists the mechanisms, for an error.
func knownMechanisms() string {
	var names []string
	for _, m := range slices.Sorted(maps.Keys(mechanisms))[1:] { // the first one is the default, ""
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// complete fills in the defaults of a credential and checks it against its mechanism. callback says
// that the program has a source of MONGODB-OIDC tokens of its own.
func complete(c *auth.Credential, database string, callback bool) error {
	m, ok := mechanisms[c.Mechanism]
	switch {
	case c.Mechanism == mongodbCR:
		return errors.New(
			"mechanism MONGODB-CR is not supported, servers have removed it: use SCRAM-SHA-256 or SCRAM-SHA-1")
	case !ok:
		return fmt.Errorf("mechanism %q is not known, want one of %s", c.Mechanism, knownMechanisms())
	case c.Source == "" && m.database && database != "":
		c.Source = database
	case c.Source == "" && (m.external || c.Mechanism == auth.MechanismPlain):
		c.Source = externalSource
	case c.Source == "":
		c.Source = "admin"
	case m.external && c.Source != externalSource:
		return fmt.Errorf("mechanism %s: the source must be %q", c.Mechanism, externalSource)
	}
	err := m.check(c)
	if err == nil && c.Mechanism == auth.MechanismOIDC {
		err = checkOIDC(c, callback)
	}
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
