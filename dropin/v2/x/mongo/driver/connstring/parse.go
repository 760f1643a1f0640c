// Package connstring reads connection strings, with all that they say. Hosts of mongodb+srv strings
// are looked up.
package connstring

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/dns"
)

// parseError is an error of Parse.
type parseError struct{ err error }

func (e parseError) Error() string { return "error parsing uri: " + e.err.Error() }
func (e parseError) Unwrap() error { return e.err }

// ParseAndValidate is Parse and Validate.
func ParseAndValidate(s string) (*ConnString, error) {
	u, err := Parse(s)
	if err != nil {
		return nil, err
	}
	if err := u.Validate(); err != nil {
		return nil, fmt.Errorf("error validating uri: %w", err)
	}
	return u, nil
}

// Parse reads a string. What does not fit together is left to Validate.
func Parse(s string) (*ConnString, error) {
	u := &ConnString{Original: s}
	if err := u.parse(s); err != nil {
		return nil, parseError{err}
	}
	return u, nil
}

func (u *ConnString) parse(s string) error {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != SchemeMongoDB && scheme != SchemeMongoDBSRV {
		return errors.New(`scheme must be "mongodb" or "mongodb+srv"`)
	}
	u.Scheme = scheme
	user, rest, ok := cutUser(rest)
	if ok {
		if err := u.setUser(user); err != nil {
			return err
		}
	}
	hosts, path, ok := strings.Cut(rest, "/")
	if !ok && strings.Contains(hosts, "?") {
		return errors.New("must have a / before the query ?")
	}
	database, query, _ := strings.Cut(path, "?")
	pairs, err := split(query)
	if err != nil {
		return err
	}
	if err := u.setHosts(hosts, pairs); err != nil {
		return err
	}
	if u.Database, err = url.PathUnescape(database); err != nil {
		return fmt.Errorf("invalid database %q: %w", database, err)
	}
	if err := u.apply(pairs); err != nil {
		return err
	}
	return u.setAuth()
}

// cutUser returns the part before the @ that the hosts begin behind. An @ behind a slash is of the
// database or an option.
func cutUser(s string) (user, rest string, ok bool) {
	end := len(s)
	if i := strings.IndexByte(s, '@'); i >= 0 {
		// A slash in front of the @ is one that should have been escaped.
		if j := strings.IndexAny(s[i:], "/?"); j >= 0 {
			end = i + j
		}
	} else {
		return "", s, false
	}
	at := strings.LastIndexByte(s[:end], '@')
	if i := strings.IndexAny(s[:at], "?"); i >= 0 {
		return "", s, false
	}
	return s[:at], s[at+1:], true
}

func (u *ConnString) setUser(user string) error {
	name, password, hasPassword := strings.Cut(user, ":")
	for _, part := range []struct {
		text, sign, what string
	}{
		{name, "/", "unescaped slash in username"}, {user, "@", "unescaped @ sign in user info"},
		{password, ":", "unescaped colon in password"}, {password, "/", "unescaped slash in password"},
	} {
		if strings.Contains(part.text, part.sign) {
			return errors.New(part.what)
		}
	}
	var err error
	if u.Username, err = url.PathUnescape(name); err != nil {
		return fmt.Errorf("invalid username: %w", err)
	}
	u.UsernameSet = true
	if hasPassword {
		if u.Password, err = url.PathUnescape(password); err != nil {
			return fmt.Errorf("invalid password: %w", err)
		}
		u.PasswordSet = true
	}
	return nil
}

// A pair is an option with its value.
type pair struct{ name, value string }

func split(query string) ([]pair, error) {
	var pairs []pair
	for part := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, errors.New("invalid option")
		}
		var p pair
		var err error
		if p.name, err = url.QueryUnescape(name); err != nil {
			return nil, fmt.Errorf("invalid option key %q: %w", name, err)
		}
		if p.value, err = url.QueryUnescape(value); err != nil {
			return nil, fmt.Errorf("invalid option value %q: %w", value, err)
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

func (u *ConnString) setHosts(list string, pairs []pair) error {
	u.RawHosts = strings.Split(list, ",")
	hosts := u.RawHosts
	if u.Scheme == SchemeMongoDBSRV {
		if len(hosts) != 1 {
			return errors.New("URI with SRV must include one and only one hostname")
		}
		if strings.Contains(hosts[0], ":") {
			return errors.New("URI with srv must not include a port number")
		}
		var err error
		if hosts, err = u.resolve(hosts[0], pairs); err != nil {
			return err
		}
	}
	u.RawHosts = nil
	for _, host := range hosts {
		if host == "" {
			continue
		}
		host, err := checkHost(host)
		if err != nil {
			return fmt.Errorf("invalid host %q: %w", host, err)
		}
		u.Hosts = append(u.Hosts, host)
		u.RawHosts = append(u.RawHosts, host)
	}
	if len(u.Hosts) == 0 {
		return errors.New("must have at least 1 host")
	}
	if u.Scheme == SchemeMongoDBSRV {
		u.RawHosts = []string{list}
	}
	return nil
}

// resolve looks up the hosts and the options that DNS has for a name, and applies the latter: those
// of the string come behind them.
func (u *ConnString) resolve(name string, pairs []pair) ([]string, error) {
	service := "mongodb"
	for _, p := range pairs {
		if strings.EqualFold(p.name, "srvServiceName") {
			service = p.value
		}
	}
	hosts, err := dns.DefaultResolver.ParseHosts(name, service, true)
	if err != nil {
		return nil, err
	}
	args, err := dns.DefaultResolver.GetConnectionArgsFromTXT(name)
	if err != nil {
		return nil, err
	}
	u.SSL, u.SSLSet = true, true // unless the string says otherwise
	more, err := split(strings.Join(args, "&"))
	if err != nil {
		return nil, err
	}
	return hosts, u.apply(more)
}

// checkHost returns a host without escapes. An address with a port must have one that there can be.
func checkHost(host string) (string, error) {
	host, err := url.QueryUnescape(host)
	if err != nil {
		return "", err
	}
	if strings.HasSuffix(host, ".sock") {
		return host, nil
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		var missing *net.AddrError
		if errors.As(err, &missing) && missing.Err == "missing port in address" {
			return host, nil
		}
		return "", err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", fmt.Errorf("port must be an integer: %w", err)
	}
	if n < 1 || n > 65535 {
		return "", errors.New("port must be in the range [1, 65535]")
	}
	return host, nil
}

// apply sets what options say.
func (u *ConnString) apply(pairs []pair) error {
	var tls string // what tls and ssl say
	for _, p := range pairs {
		name := strings.ToLower(p.name)
		if u.Options == nil {
			u.Options = make(map[string][]string)
		}
		u.Options[name] = append(u.Options[name], p.value)
		set := options[name]
		if set == nil {
			if u.UnknownOptions == nil {
				u.UnknownOptions = make(map[string][]string)
			}
			u.UnknownOptions[name] = append(u.UnknownOptions[name], p.value)
			continue
		}
		switch name {
		case "tls", "ssl":
			if tls != "" && tls != p.value {
				return errors.New("tls and ssl options, when both specified, must be equivalent")
			}
			tls = p.value
		case "srvmaxhosts", "srvservicename":
			if u.Scheme != SchemeMongoDBSRV {
				return fmt.Errorf("cannot specify %s on non-SRV URI",
					map[string]string{"srvmaxhosts": "srvMaxHosts", "srvservicename": "srvServiceName"}[name])
			}
		}
		if err := set(u, p.value); errors.Is(err, errValue) {
			return fmt.Errorf("invalid value for %q: %q", p.name, p.value)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// setAuth sets what the mechanism gives the credential.
func (u *ConnString) setAuth() error {
	if u.AuthSourceSet && u.AuthSource == "" {
		return errors.New("authSource must be non-empty when supplied in a URI")
	}
	external := func() error {
		if u.AuthSource != "" && u.AuthSource != "$external" {
			return errors.New("auth source must be $external")
		}
		u.AuthSource = "$external"
		return nil
	}
	byDefault := func(source string) {
		if u.AuthSource == "" {
			u.AuthSource = source
		}
	}
	database := "admin"
	if u.Database != "" {
		database = u.Database
	}
	switch strings.ToLower(u.AuthMechanism) {
	case "":
		if u.Username != "" || u.PasswordSet || u.AuthMechanismProperties != nil {
			byDefault(database)
		}
	case "scram-sha-1", "scram-sha-256":
		byDefault(database)
	case "plain":
		byDefault("$external")
		if u.Database != "" && !u.AuthSourceSet {
			u.AuthSource = u.Database
		}
	case "gssapi":
		if u.AuthMechanismProperties == nil {
			u.AuthMechanismProperties = make(map[string]string)
		}
		if u.AuthMechanismProperties["SERVICE_NAME"] == "" {
			u.AuthMechanismProperties["SERVICE_NAME"] = "mongodb"
		}
		return external()
	case "mongodb-x509", "mongodb-aws", "mongodb-oidc":
		return external()
	default:
		return errors.New("invalid auth mechanism")
	}
	return nil
}
