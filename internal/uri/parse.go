package uri

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"allium/auth"
	"allium/internal/redact"
)

const (
	schemePlain = "mongodb://"
	schemeSRV   = "mongodb+srv://"
)

// Parse reads a connection string. Options that are not known, and values that an option does not
// allow, are ignored with a warning, as the specification demands; a string that is malformed, and
// options that contradict each other, are an error. The error names the part that is wrong and
// never contains the password.
func Parse(s string) (*Config, error) {
	c := new(Config)
	if err := c.parse(s); err != nil {
		return nil, fmt.Errorf("connection string: %w", err)
	}
	if err := c.conflicts(); err != nil {
		return nil, fmt.Errorf("connection string: %w", err)
	}
	return c, nil
}

var errUserInfo = errors.New("user name and password must be percent-encoded UTF-8, as url.UserPassword writes them")

func (c *Config) parse(s string) error {
	rest, plain := strings.CutPrefix(s, schemePlain)
	srv := false
	if !plain {
		if rest, srv = strings.CutPrefix(s, schemeSRV); !srv {
			return fmt.Errorf("scheme must be %q or %q", schemePlain, schemeSRV)
		}
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	var info *userInfo
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		var err error
		if info, err = parseUserInfo(authority[:i]); err != nil {
			return err
		}
		hosts = authority[i+1:]
	}
	database, options, err := splitTail(tail)
	if err == nil {
		if srv {
			err = c.parseSRVHost(hosts)
		} else {
			err = c.parseHosts(hosts)
		}
	}
	if holdsUserInfo(tail) || err != nil && strings.Contains(tail, "@") {
		return errUserInfo
	}
	if err != nil {
		return err
	}
	c.Database = database
	if err := c.applyOptions(options); err != nil {
		return err
	}
	if c.TLS == nil && (srv || c.tlsImplied) {
		c.TLS = new(true)
	}
	if c.slaveOk && c.ReadPreference == "" {
		c.ReadPreference = "secondaryPreferred"
	} else if c.slaveOk {
		return errors.New("options slaveOk and readPreference exclude each other")
	}
	c.setUserInfo(info)
	c.redacted = c.render(srv, hosts, info, tail, options)
	return nil
}

// unescape decodes a percent-encoded text, which must be UTF-8.
func unescape(s string) (string, error) {
	s, err := url.PathUnescape(s)
	if err == nil && !utf8.ValidString(s) {
		err = errors.New("not valid UTF-8")
	}
	return s, err
}

// holdsUserInfo reports whether what follows the hosts looks like the end of a user name or
// password with a "/" or "?" that ended the part with the hosts: there is an "@" before the value
// of the first option. None of that may be shown.
func holdsUserInfo(tail string) bool {
	path, options, _ := strings.Cut(tail, "?")
	key, _, _ := strings.Cut(options, "=")
	return strings.Contains(path, "@") || strings.Contains(key, "@")
}

// userInfo is what stands before the "@".
type userInfo struct {
	raw         string // the name as it is written
	name        string
	password    auth.Secret
	hasPassword bool
}

func parseUserInfo(s string) (*userInfo, error) {
	name, password, hasPassword := strings.Cut(s, ":")
	if strings.Contains(name, "@") || strings.ContainsAny(password, "@:") {
		return nil, errUserInfo
	}
	raw := name
	name, err := unescape(raw)
	if err != nil {
		return nil, errUserInfo
	}
	password, err = unescape(password)
	if err != nil {
		return nil, errUserInfo
	}
	if name == "" {
		return nil, errors.New("user name is empty")
	}
	return &userInfo{raw: raw, name: name, password: auth.Secret(password), hasPassword: hasPassword}, nil
}

// splitTail splits what follows the hosts into the decoded database and the options.
func splitTail(tail string) (database, options string, err error) {
	tail, options, _ = strings.Cut(tail, "?")
	database, err = unescape(strings.TrimPrefix(tail, "/"))
	if err != nil {
		return "", "", errors.New("database name is not percent-encoded UTF-8")
	}
	if i := strings.IndexAny(database, `/\ "$`); i >= 0 {
		return "", "", fmt.Errorf("database name contains %q", database[i])
	}
	if strings.Contains(database, "\x00") {
		return "", "", errors.New("database name contains a NUL")
	}
	return database, options, nil
}

// render returns the connection string with every secret replaced.
func (c *Config) render(srv bool, hosts string, info *userInfo, tail, options string) string {
	var b strings.Builder
	b.WriteString(schemePlain)
	if srv {
		b.Reset()
		b.WriteString(schemeSRV)
	}
	if info != nil {
		b.WriteString(info.raw)
		if info.hasPassword {
			b.WriteString(":" + redact.Text)
		}
		b.WriteByte('@')
	}
	b.WriteString(hosts)
	path, _, hasOptions := strings.Cut(tail, "?")
	b.WriteString(path)
	if hasOptions {
		b.WriteByte('?')
	}
	for i, pair := range strings.Split(options, "&") {
		if i > 0 {
			b.WriteByte('&')
		}
		key, value, _ := strings.Cut(pair, "=")
		if hasSecret(key) && value != "" {
			pair = key + "=" + redact.Text
		}
		b.WriteString(pair)
	}
	return b.String()
}
