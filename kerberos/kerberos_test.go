package kerberos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"

	"allium"
	"allium/bson"
	"allium/kerberos"
	"allium/kerberos/internal/kdctest"
	"allium/kerberos/kerberostest"
	"allium/mongoerr"
	"allium/mongotest"
)

const realmName = "ALLIUM.TEST"

// rig is a realm with a client, ada, and the service of a deployment.
type rig struct {
	*kdctest.Realm
	d        *mongotest.Deployment
	acceptor *kerberostest.Acceptor
	keytab   string
}

func start(t *testing.T, opts ...kdctest.Option) *rig {
	t.Helper()
	for _, name := range []string{"KRB5_CONFIG", "KRB5CCNAME", "KRB5_CLIENT_KTNAME"} {
		t.Setenv(name, "")
	}
	r := &rig{Realm: kdctest.Start(t, realmName, opts...)}
	r.Admin("addprinc -pw lovelace ada")
	r.keytab = r.Keytab("service.keytab", "mongodb/localhost", "mongodb/127.0.0.1", "db/db1.example.com")
	var err error
	if r.acceptor, err = kerberostest.NewAcceptor(r.keytab); err != nil {
		t.Fatal(err)
	}
	r.d = mongotest.Start(t, mongotest.GSSAPI(r.acceptor))
	r.addUser(t, "ada@"+realmName)
	return r
}

func (r *rig) addUser(t *testing.T, principal string) {
	t.Helper()
	if err := r.d.AddUser(mongotest.User{Name: principal, DB: "$external", Roles: []string{"readWriteAnyDatabase"}}); err != nil {
		t.Fatal(err)
	}
}

// insert connects as a user, with or without a password, and inserts a document.
func (r *rig) insert(t *testing.T, user, query string, o kerberos.Options) error {
	t.Helper()
	if o.ConfigFile == "" {
		o.ConfigFile = r.Config
	}
	return r.insertWith(t, user, query, kerberos.New(o))
}

func (r *rig) insertWith(t *testing.T, user, query string, k *kerberos.Kerberos) error {
	t.Helper()
	client, err := allium.Open("mongodb://"+user+"@"+r.d.Hosts()[0]+"/?authMechanism=GSSAPI&"+query, allium.ClientOptions{GSSAPI: k})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	_, err = client.Database("db").Collection("coll").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	return err
}

const ada = "ada%40" + realmName

func TestLogIn(t *testing.T) {
	r := start(t)
	keytab := filepath.Join(t.TempDir(), "ada.keytab")
	cache := r.KInit("ada.cache", "ada", "lovelace", "1h")
	r.Admin("addprinc -pw hopper grace/admin", "ktadd -norandkey -k "+keytab+" ada") // the password stays
	r.addUser(t, "grace/admin@"+realmName)
	for _, tt := range []struct {
		name, user, query string
		o                 kerberos.Options
		env               [2]string
	}{
		{name: "password", user: ada + ":lovelace"},
		{name: "password in the default realm", user: "ada:lovelace"},
		{name: "principal with an instance", user: "grace%2Fadmin:hopper"},
		{name: "keytab", user: ada, o: kerberos.Options{Keytab: keytab}},
		{name: "keytab with its type", user: ada, o: kerberos.Options{Keytab: "FILE:" + keytab}},
		{name: "cache", user: ada, o: kerberos.Options{CredentialCache: cache}},
		{name: "keytab of the environment", user: ada, env: [2]string{"KRB5_CLIENT_KTNAME", keytab}},
		{name: "cache of the environment", user: ada, env: [2]string{"KRB5CCNAME", "FILE:" + cache}},
		{name: "service's name and host", user: "ada:lovelace", query: "authMechanismProperties=SERVICE_NAME:db,SERVICE_HOST:DB1.example.com"},
		{name: "service's name by its old option", user: "ada:lovelace", query: "gssapiServiceName=db&authMechanismProperties=SERVICE_HOST:db1.example.com"},
		{name: "service's realm", user: "ada:lovelace", query: "authMechanismProperties=SERVICE_REALM:" + realmName},
		{name: "no canonical name", user: "ada:lovelace", query: "authMechanismProperties=CANONICALIZE_HOST_NAME:none"},
		{name: "canonical name by a reverse lookup", user: "ada:lovelace", query: "authMechanismProperties=CANONICALIZE_HOST_NAME:forwardAndReverse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.env[0] != "" {
				t.Setenv(tt.env[0], tt.env[1])
			}
			if err := r.insert(t, tt.user, tt.query, tt.o); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("configuration of the environment", func(t *testing.T) {
		t.Setenv("KRB5_CONFIG", r.Config)
		if err := r.insertWith(t, "ada:lovelace", "", kerberos.New()); err != nil {
			t.Error(err)
		}
	})
	for _, etype := range []string{"aes128-cts-hmac-sha1-96", "aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha256-128", "aes256-cts-hmac-sha384-192"} {
		t.Run(etype, func(t *testing.T) {
			r.Admin("addprinc -pw turing -e " + etype + ":normal alan")
			r.addUser(t, "alan@"+realmName)
			conf := filepath.Join(t.TempDir(), "krb5.conf")
			r.Write(conf, fmt.Sprintf("[libdefaults]\n\tdefault_realm = %s\n\tdefault_tkt_enctypes = %[2]s\n\tdefault_tgs_enctypes = %[2]s\n[realms]\n%s", realmName, etype, r.Section()))
			if err := r.insert(t, "alan:turing", "", kerberos.Options{ConfigFile: conf}); err != nil {
				t.Error(err)
			}
			r.Admin("delprinc -force alan")
		})
	}
}

// TestErrors: each error says what to do, and none has the password.
func TestErrors(t *testing.T) {
	r := start(t)
	old := r.KInit("old.cache", "ada", "lovelace", "1s")
	foreign := filepath.Join(t.TempDir(), "foreign.keytab")
	r.Admin("addprinc -pw hopper grace", "ktadd -k "+foreign+" grace", "addprinc -pw secret +needchange dilbert", "addprinc -pw secret -allow_tix mallory")
	graces := r.KInit("alan.cache", "ada", "lovelace", "1h")
	garbage := filepath.Join(t.TempDir(), "garbage")
	r.Write(garbage, "\x05\x04 this is neither a keytab nor a cache")
	silent := filepath.Join(t.TempDir(), "silent.conf")
	r.Write(silent, "[libdefaults]\n\tdefault_realm = SILENT.TEST\n[realms]\n\tSILENT.TEST = {\n\t\tkdc = 127.0.0.1:1\n\t}\n")
	bare := filepath.Join(t.TempDir(), "bare.conf")
	r.Write(bare, "[realms]\n"+r.Section())
	for time.Now().Before(expiry(t, old)) {
		time.Sleep(50 * time.Millisecond)
	}
	for _, tt := range []struct {
		name, user, query string
		o                 kerberos.Options
		want              string
	}{
		{"wrong password", "ada:babbage-secret", "", kerberos.Options{}, "the password of ada@ALLIUM.TEST is wrong"},
		{"unknown user", "eve:secret", "", kerberos.Options{}, "realm ALLIUM.TEST has no principal eve@ALLIUM.TEST: check the user name"},
		{"expired password", "dilbert:secret", "", kerberos.Options{}, "the password of dilbert@ALLIUM.TEST has expired: change it with kpasswd"},
		{"locked user", "mallory:secret", "", kerberos.Options{}, "principal mallory@ALLIUM.TEST is locked"},
		{"unknown realm", "ada%40OTHER.TEST:secret", "", kerberos.Options{}, "no KDC is known of realm OTHER.TEST: check the realm's name, and name its KDCs in [realms]"},
		{"unknown realm of the service", "ada:lovelace", "authMechanismProperties=SERVICE_REALM:OTHER.TEST", kerberos.Options{}, "realm ALLIUM.TEST does not know realm OTHER.TEST: check SERVICE_REALM"},
		{"unknown service", "ada:lovelace", "authMechanismProperties=SERVICE_NAME:http", kerberos.Options{}, "realm ALLIUM.TEST has no service http/127.0.0.1@ALLIUM.TEST: check the server's name"},
		{"no realm", "ada:lovelace", "", kerberos.Options{ConfigFile: bare}, "write the name as ada@REALM, in a connection string ada%40REALM"},
		{"no configuration", "ada:lovelace", "", kerberos.Options{ConfigFile: "/nowhere"}, "read the Kerberos configuration that the option ConfigFile names"},
		{"KDC does not answer", "ada:lovelace", "", kerberos.Options{ConfigFile: silent}, "the KDC of realm SILENT.TEST does not answer: check that it runs"},
		{"expired ticket", "ada", "", kerberos.Options{CredentialCache: old}, "run kinit ada@ALLIUM.TEST"},
		{"another user's cache", "grace", "", kerberos.Options{CredentialCache: graces}, "has the tickets of ada@ALLIUM.TEST: run kinit grace@ALLIUM.TEST"},
		{"no cache", "ada", "", kerberos.Options{CredentialCache: "/nowhere"}, "run kinit ada@ALLIUM.TEST, or give a keytab or a password"},
		{"cache that is none", "ada", "", kerberos.Options{CredentialCache: garbage}, "is no credential cache"},
		{"cache of another type", "ada", "", kerberos.Options{CredentialCache: "KEYRING:persistent:0"}, "only files are supported"},
		{"keytab without the user", "ada", "", kerberos.Options{Keytab: foreign}, "does not have the current key of ada@ALLIUM.TEST: export it anew"},
		{"no keytab", "ada", "", kerberos.Options{Keytab: "/nowhere"}, "read the keytab"},
		{"keytab that is none", "ada", "", kerberos.Options{Keytab: garbage}, "is no keytab"},
		{"two files", "ada", "", kerberos.Options{Keytab: foreign, CredentialCache: old}, "exclude each other"},
		{"user whom the deployment does not know", "grace:hopper", "", kerberos.Options{}, `check that the deployment has a user "grace" on "$external"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "user whom the deployment does not know" {
				r.Admin("cpw -pw hopper grace") // the export above gave it another key
			}
			err := r.insert(t, tt.user, tt.query, tt.o)
			if _, ok := errors.AsType[*mongoerr.AuthError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error has the password: %v", err)
			}
		})
	}
	t.Run("server's clock is wrong", func(t *testing.T) {
		r.acceptor.ShiftClock(-time.Hour)
		defer r.acceptor.ShiftClock(time.Hour)
		if err := r.insert(t, "ada:lovelace", "", kerberos.Options{}); err == nil || !strings.Contains(err.Error(), "and that its clock is right") {
			t.Errorf("error %v", err)
		}
	})
}

// TestClockSkew has a KDC whose clock is an hour ahead.
func TestClockSkew(t *testing.T) {
	r := start(t, kdctest.ShiftedClock(t, time.Hour))
	err := r.insert(t, "ada:lovelace", "", kerberos.Options{})
	if err == nil || !strings.Contains(err.Error(), "the clock of this machine and that of the KDC differ too much: set both by NTP") {
		t.Errorf("error %v", err)
	}
}

// TestOtherRealm has the service in another realm than the client, which trusts it.
func TestOtherRealm(t *testing.T) {
	r := start(t)
	other := kdctest.Start(t, "OTHER.TEST")
	trust := "krbtgt/OTHER.TEST@" + realmName
	r.Admin("addprinc -pw shared -e aes256-cts:normal " + trust)
	other.Admin("addprinc -pw shared -e aes256-cts:normal " + trust)
	acceptor, err := kerberostest.NewAcceptor(other.Keytab("other.keytab", "mongodb/127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	r.d = mongotest.Start(t, mongotest.GSSAPI(acceptor))
	r.addUser(t, "ada@"+realmName)
	conf := filepath.Join(t.TempDir(), "krb5.conf")
	head := "[libdefaults]\n\tdefault_realm = " + realmName + "\n[realms]\n" + r.Section() + other.Section()
	r.Write(conf, head)
	if err := r.insert(t, "ada%40"+realmName+":lovelace", "authMechanismProperties=SERVICE_REALM:OTHER.TEST", kerberos.Options{ConfigFile: conf}); err != nil {
		t.Error("with SERVICE_REALM:", err)
	}
	if err := r.insert(t, "ada%40"+realmName+":lovelace", "", kerberos.Options{ConfigFile: conf}); err == nil {
		t.Error("without: the service of the client's realm has the other's key")
	}
	r.Write(conf, head+"[domain_realm]\n\t127.0.0.1 = OTHER.TEST\n")
	if err := r.insert(t, "ada%40"+realmName+":lovelace", "", kerberos.Options{ConfigFile: conf}); err != nil {
		t.Error("with [domain_realm]:", err)
	}
}

// TestTickets: one ticket serves all connections, and one that the server has no key for any more
// is not used again.
func TestTickets(t *testing.T) {
	r := start(t)
	k := kerberos.New(kerberos.Options{ConfigFile: r.Config})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := r.insertWith(t, "ada:lovelace", "", k); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := r.Requests("TGS_REQ"); n != 1 {
		t.Errorf("%d requests for the service's ticket, want 1", n)
	}
	acceptor, err := kerberostest.NewAcceptor(r.Keytab("renewed.keytab", "mongodb/127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	r.d = mongotest.Start(t, mongotest.GSSAPI(acceptor))
	r.addUser(t, "ada@"+realmName)
	if err := r.insertWith(t, "ada:lovelace", "", k); err == nil || !strings.Contains(err.Error(), "check that its keytab has the current key") {
		t.Errorf("with the ticket of the old key: %v", err)
	}
	if err := r.insertWith(t, "ada:lovelace", "", k); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCancelled: a KDC that does not answer does not keep an operation beyond its context.
func TestCancelled(t *testing.T) {
	r := start(t)
	stopped := filepath.Join(t.TempDir(), "krb5.conf")
	silent := silentKDC(t)
	r.Write(stopped, "[libdefaults]\n\tdefault_realm = SILENT.TEST\n\tudp_preference_limit = 1\n[realms]\n\tSILENT.TEST = {\n\t\tkdc = "+silent.addr+"\n\t}\n")
	client, err := allium.Open("mongodb://ada:lovelace@"+r.d.Hosts()[0]+"/?authMechanism=GSSAPI", allium.ClientOptions{GSSAPI: kerberos.New(kerberos.Options{ConfigFile: stopped})})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-silent.asked; cancel() }()
	if err := client.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestWithoutModule: the error says what to import.
func TestWithoutModule(t *testing.T) {
	_, err := allium.Open("mongodb://" + url.QueryEscape("ada@X") + "@localhost/?authMechanism=GSSAPI")
	if err == nil || !strings.Contains(err.Error(), `import "allium/kerberos" and set ClientOptions.GSSAPI to kerberos.New()`) {
		t.Errorf("error %v", err)
	}
}

// expiry returns when the tickets of a cache expire.
func expiry(t *testing.T, cache string) (end time.Time) {
	t.Helper()
	c, err := credentials.LoadCCache(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.GetEntries() {
		if e.EndTime.After(end) {
			end = e.EndTime
		}
	}
	return end
}

// silent is a KDC that takes connections and says nothing.
type silent struct {
	addr  string
	asked chan struct{} // closed with the first connection
}

func silentKDC(t *testing.T) *silent {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &silent{l.Addr().String(), make(chan struct{})}
	t.Cleanup(func() { l.Close() })
	go func() {
		first := true
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			if first {
				first = false
				close(s.asked)
			}
		}
	}()
	return s
}
