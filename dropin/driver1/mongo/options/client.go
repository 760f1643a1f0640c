package options

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/internal/dialect"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
)

// clientState is what ClientOptions have besides their fields.
type clientState struct {
	uri string // the last string that ApplyURI has read
	err error  // the first error of ApplyURI
}

// A Credential says who the client is, and how it shows that.
type Credential struct {
	AuthMechanism           string            // "" for what the server offers
	AuthMechanismProperties map[string]string // further settings of the mechanism
	AuthSource              string            // the database that has the user
	Username                string
	Password                string
	PasswordSet             bool // with GSSAPI: the password counts though it is empty

	OIDCMachineCallback OIDCCallback // gets tokens for a program
	OIDCHumanCallback   OIDCCallback // gets tokens for a person
}

// Client returns settings with their defaults.
func Client() *ClientOptions {
	return &ClientOptions{HTTPClient: httpClient()}
}

// httpClient is the client of those who name none.
func httpClient() *http.Client { return v2options.Client().HTTPClient }

// GetURI returns the string that ApplyURI has read, an empty one if there is none.
func (c *ClientOptions) GetURI() string { return c.uri }

// ApplyURI sets what a connection string says, and leaves the rest as it is. What is set later
// replaces it. Validate returns an error in the string; after one, ApplyURI does nothing. The hosts
// of a mongodb+srv string are looked up.
func (c *ClientOptions) ApplyURI(uri string) *ClientOptions {
	if c.err != nil {
		return c
	}
	of2 := v2options.Client().ApplyURI(uri)
	if c.err = of2.Validate(); c.err != nil {
		return c
	}
	c.uri = uri
	of2.HTTPClient = nil
	from, to := reflect.ValueOf(of2).Elem(), reflect.ValueOf(c).Elem()
	for i := range to.NumField() {
		field := from.FieldByName(to.Type().Field(i).Name)
		if field.IsValid() && field.Type() == to.Field(i).Type() && !field.IsZero() {
			to.Field(i).Set(field)
		}
	}
	if a := of2.Auth; a != nil {
		c.Auth = &Credential{
			AuthMechanism: a.AuthMechanism, AuthMechanismProperties: a.AuthMechanismProperties,
			AuthSource: a.AuthSource,
			Username:   a.Username, Password: a.Password, PasswordSet: a.PasswordSet,
		}
	}
	if rc := of2.ReadConcern; rc != nil {
		c.ReadConcern = &readconcern.ReadConcern{Level: rc.Level}
	}
	if wc := of2.WriteConcern; wc != nil {
		c.WriteConcern = &writeconcern.WriteConcern{W: wc.W, Journal: wc.Journal}
	}
	c.applyTimes(uri)
	return c
}

// applyTimes sets the times that only this version knows.
func (c *ClientOptions) applyTimes(uri string) {
	_, text, _ := strings.Cut(uri, "?")
	query, err := url.ParseQuery(text)
	if err != nil {
		return
	}
	for key, values := range query {
		ms, err := strconv.Atoi(values[len(values)-1])
		if err != nil || ms < 0 {
			continue
		}
		d := time.Duration(ms) * time.Millisecond
		switch strings.ToLower(key) {
		case "sockettimeoutms":
			c.SocketTimeout = &d
		case "wtimeoutms":
			if c.WriteConcern == nil {
				c.WriteConcern = new(writeconcern.WriteConcern)
			}
			c.WriteConcern.WTimeout = d
		}
	}
}

// Validate returns the error of ApplyURI, or what does not fit together.
func (c *ClientOptions) Validate() error {
	if c.err != nil {
		return c.err
	}
	of2 := v2options.Client()
	c.copyTo(of2)
	return of2.Validate()
}

// copyTo sets the fields of options of version 2 that are of the same type.
func (c *ClientOptions) copyTo(of2 *v2options.ClientOptions) {
	from, to := reflect.ValueOf(c).Elem(), reflect.ValueOf(of2).Elem()
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if field := to.FieldByName(name); from.Type().Field(i).IsExported() && field.IsValid() &&
			field.Type() == from.Field(i).Type() {
			field.Set(from.Field(i))
		}
	}
	if d := of2.HeartbeatInterval; d != nil && *d < leastHeartbeat {
		least := leastHeartbeat
		of2.HeartbeatInterval = &least // this version takes any
	}
	if a := c.Auth; a != nil {
		of2.Auth = &v2options.Credential{
			AuthMechanism: a.AuthMechanism, AuthMechanismProperties: a.AuthMechanismProperties,
			AuthSource: a.AuthSource,
			Username:   a.Username, Password: a.Password, PasswordSet: a.PasswordSet,
			OIDCMachineCallback: a.OIDCMachineCallback, OIDCHumanCallback: a.OIDCHumanCallback,
		}
	}
}

// leastHeartbeat is how often a server is checked at most.
const leastHeartbeat = 500 * time.Millisecond

func init() {
	dialect.ClientOptions = func(o any) *v2options.ClientOptions {
		c := o.(*ClientOptions)
		of2 := v2options.Client()
		if strings.HasPrefix(c.uri, "mongodb+srv://") {
			of2.ApplyURI(c.uri) // for the servers to be looked up again and again
		}
		c.copyTo(of2)
		return of2
	}
}

// MergeClientOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeClientOptions(opts ...*ClientOptions) *ClientOptions {
	merged := Client()
	to := reflect.ValueOf(merged).Elem()
	for _, o := range opts {
		if o == nil {
			continue
		}
		from := reflect.ValueOf(o).Elem()
		for i := range from.NumField() {
			if f := from.Field(i); from.Type().Field(i).IsExported() && !f.IsZero() {
				if from.Type().Field(i).Name == "Hosts" && f.Len() == 0 {
					continue // no hosts are none that are set, unlike the other lists
				}
				to.Field(i).Set(f)
			}
		}
		if o.err != nil {
			merged.err = o.err
		}
		if o.uri != "" {
			merged.uri = o.uri
		}
	}
	return merged
}

// BuildTLSConfig returns the TLS settings of a key service: its certificates and keys, as in a
// connection string.
func BuildTLSConfig(tlsOpts map[string]any) (*tls.Config, error) {
	return v2options.BuildTLSConfig(tlsOpts)
}
