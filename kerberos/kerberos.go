// Package kerberos authenticates the clients of package allium with Kerberos, by the mechanism
// GSSAPI. It is written in Go alone and needs no library of the system.
//
//	uri := "mongodb://ada%40EXAMPLE.COM@db1.example.com/?authMechanism=GSSAPI&tls=true"
//	client, err := allium.Open(uri, allium.ClientOptions{GSSAPI: kerberos.New()})
//
// The client proves who it is with the password of its credential, with a keytab, or with the
// tickets that kinit put into a credential cache.
package kerberos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/jcmturner/gokrb5/v8/config"

	"allium/auth"
)

// Options are the options of New. A file that is not named is where MIT Kerberos looks for it.
type Options struct {
	// ConfigFile is the configuration of Kerberos: realms and their KDCs. Empty: the first of the
	// environment variable KRB5_CONFIG, or else /etc/krb5.conf. Without that file, KDCs are looked
	// up in DNS.
	ConfigFile string
	// Keytab is a file with the keys of the client's principal, and CredentialCache one with its
	// tickets. A credential with a password uses neither. At most one of them is set. If none is:
	// the first of these environment variables that is set, or else the cache of kinit,
	// /tmp/krb5cc_ and the user's id.
	//
	//	KRB5_CLIENT_KTNAME	a keytab
	//	KRB5CCNAME      	a cache
	//
	// The names may begin with "FILE:". Other types, for example KEYRING:, are not supported. The
	// files are read when a ticket is needed, so that they can be renewed while the client is open.
	Keytab, CredentialCache string
}

// Kerberos makes security contexts with Kerberos. It caches tickets in memory as long as they are
// valid. It is safe for concurrent use, by several clients as well.
type Kerberos struct {
	o Options

	mu     sync.Mutex
	logins map[identity]*login
}

var _ auth.GSSAPI = (*Kerberos)(nil)

// New returns what authenticates with Kerberos, for the option GSSAPI of a client. It reads nothing
// yet: errors of the files are those of the first connection.
func New(opts ...Options) *Kerberos {
	k := &Kerberos{logins: map[identity]*login{}}
	if len(opts) > 0 {
		k.o = opts[0]
	}
	return k
}

// Begin implements auth.GSSAPI: it gets a ticket for the server, from memory or from the KDC. When
// ctx ends, a KDC that does not answer is given up in the background, within a few seconds.
func (k *Kerberos) Begin(ctx context.Context, p auth.GSSAPIParams) (auth.GSSAPIContext, error) {
	c, err := k.begin(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	return c, nil
}

func (k *Kerberos) begin(ctx context.Context, p auth.GSSAPIParams) (auth.GSSAPIContext, error) {
	if k.o.Keytab != "" && k.o.CredentialCache != "" {
		return nil, errors.New("options Keytab and CredentialCache exclude each other")
	}
	cfg, file, err := k.config()
	if err != nil {
		return nil, err
	}
	id, err := k.identify(&p, cfg, file)
	if err != nil {
		return nil, err
	}
	host := strings.ToLower(strings.TrimSuffix(p.ServiceHost, "."))
	s := service{name: p.ServiceName + "/" + host, realm: p.ServiceRealm}
	if s.realm == "" {
		s.realm = cfg.ResolveRealm(host)
	}
	if s.realm == "" {
		s.realm = id.realm
	}
	l := k.login(id)
	t, err := l.ticket(ctx, cfg, file, s)
	if err != nil {
		return nil, err
	}
	return newInitiator(t, id, func() { l.forget(s) })
}

// login returns the login of an identity.
func (k *Kerberos) login(id identity) *login {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.logins[id]
	if l == nil {
		l = &login{id: id, busy: make(chan struct{}, 1), tickets: map[service]*ticket{}}
		k.logins[id] = l
	}
	return l
}

const defaultConfig = "/etc/krb5.conf"

// config reads the configuration. It returns its name, too.
func (k *Kerberos) config() (*config.Config, string, error) {
	name, from := k.o.ConfigFile, "option ConfigFile"
	if name == "" {
		name, _, _ = strings.Cut(os.Getenv("KRB5_CONFIG"), ":")
		from = "environment variable KRB5_CONFIG"
	}
	if name == "" {
		name, from = defaultConfig, ""
		if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
			c := config.New()
			c.LibDefaults.DNSLookupKDC = true
			return c, name, nil
		}
	}
	data, err := readFile(name)
	var c *config.Config
	if err == nil {
		c, err = parseConfig(data)
	}
	if err != nil && from != "" {
		return nil, name, fmt.Errorf("read the Kerberos configuration that the %s names: %w", from, err)
	}
	if err != nil {
		return nil, name, fmt.Errorf("read the Kerberos configuration: %w", err)
	}
	return c, name, nil
}

// identity is who authenticates, and where its key is. It is comparable.
type identity struct {
	user, realm string
	password    auth.Secret
	hasPassword bool
	keytab      string
	cache       string
}

// String returns the principal.
func (id identity) String() string { return id.user + "@" + id.realm }

func (k *Kerberos) identify(p *auth.GSSAPIParams, cfg *config.Config, file string) (identity, error) {
	id := identity{user: p.Username, realm: cfg.LibDefaults.DefaultRealm}
	if i := strings.LastIndexByte(p.Username, '@'); i >= 0 {
		id.user, id.realm = p.Username[:i], p.Username[i+1:]
	}
	if id.realm == "" {
		return id, fmt.Errorf(
			"user name %q has no realm, and %s no default_realm: write the name as %s@REALM, in a connection string %[1]s%%40REALM", id.user, file, id.user)
	}
	if p.PasswordSet || p.Password != "" {
		id.password, id.hasPassword = p.Password, true
		return id, nil
	}
	var err error
	switch keytab, cache := os.Getenv("KRB5_CLIENT_KTNAME"), os.Getenv("KRB5CCNAME"); {
	case k.o.Keytab != "":
		id.keytab, err = fileName(k.o.Keytab, "option Keytab")
	case k.o.CredentialCache != "":
		id.cache, err = fileName(k.o.CredentialCache, "option CredentialCache")
	case keytab != "":
		id.keytab, err = fileName(keytab, "environment variable KRB5_CLIENT_KTNAME")
	case cache != "":
		id.cache, err = fileName(cache, "environment variable KRB5CCNAME")
	default:
		id.cache = "/tmp/krb5cc_" + strconv.Itoa(os.Getuid())
	}
	return id, err
}

// fileName returns the file of a name that may begin with a type.
func fileName(name, from string) (string, error) {
	kind, rest, ok := strings.Cut(name, ":")
	switch {
	case !ok, len(kind) == 1: // a Windows drive
		return name, nil
	case kind == "FILE":
		return rest, nil
	}
	return "", fmt.Errorf("%s is %q: only files are supported, write FILE: and a name, and run kinit with -c", from,
		name)
}
