package uri

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"allium/auth"
)

func TestParseErrors(t *testing.T) {
	const secret = "hunter2"
	tests := []struct{ in, want string }{
		{"", "scheme"},
		{"http://localhost", "scheme"},
		{"mongodb://", "no host"},
		{"mongodb://a,,b", "a host is empty"},
		{"mongodb://a:0", "port"},
		{"mongodb://a:", "port"},
		{"mongodb://a:+5", "port"},
		{"mongodb://[::1", "bracket"},
		{"mongodb://[::1]x", "after its address"},
		{"mongodb://[1.2.3.4]", "IPv6"},
		{"mongodb://::1", "brackets"},
		{"mongodb://%2Ftmp%2Fmongo", ".sock"},
		{"mongodb://%2Ftmp%2Fm.sock:27017", "no port"},
		{"mongodb://a%zz", "percent-encoded"},
		{"mongodb://%FF", "UTF-8"},
		{"mongodb://u%FF:p@a", "UTF-8"},
		{"mongodb://u:p%FF@a", "UTF-8"},
		{"mongodb://a/d%FF", "UTF-8"},
		{"mongodb://a/?replicaSet=\xff", "UTF-8"},
		{"mongodb://a/?%FF=1", "UTF-8"},
		{"mongodb://%5B", "host name cannot have"},
		{"mongodb://%5B::1%5D", "more than one colon"},
		{"mongodb://%5Ba%5D", "host name cannot have"},
		{"mongodb://[]", "IPv6"},
		{"mongodb://[[::1]]", "after its address"},
		{"mongodb://a%3A5", "host name cannot have"},
		{"mongodb://a%2Cb", "host name cannot have"},
		{"mongodb://a/d$b", "database name"},
		{"mongodb://a/?w", `"w" has no value`},
		{"mongodb://a/?=1", "no name"},
		{"mongodb://a/?w=%zz", `"w" is not percent-encoded`},
		{"mongodb://a/?tls=true&tls=false", "tls"},
		{"mongodb://a/?slaveOk=true&readPreference=secondaryPreferred", "slaveOk"},
		{"mongodb://a/?proxyHost=p&proxyUsername=u", "proxyPassword"},
		{"mongodb+srv://", "no host"},
		{"mongodb+srv://a..b", "not a host name"},
		{"mongodb+srv://a.b.c:27017", "port"},
		{"mongodb+srv://a%2Fb.c.d", "not a host name"},
		{"mongodb+srv://a%40b.c.d", "not a host name"},
		{"mongodb+srv://a%3A1.b.c", "not a host name"},
		{"mongodb+srv://a%00.b.c", "not a host name"},
		{"mongodb+srv://a%25.b.c", "not a host name"},
		{"mongodb+srv://a%zz.b.c", "not a host name"},
		{"mongodb+srv://a.b.c,d.e.f", "several"},
		{"mongodb://user:" + secret + "/x@host", "percent-encoded"},
		{"mongodb://user:" + secret + "?x@host", "percent-encoded"},
		{"mongodb://user:" + secret + "%@host", "percent-encoded"},
		{"mongodb://user:1/" + secret + "@host", "percent-encoded"},
		{"mongodb://user:1?" + secret + "@host", "percent-encoded"},
		{"mongodb://user:1?" + secret + "@host/?w=1", "percent-encoded"},
		{"mongodb://user/@host:1", "percent-encoded"},
		{"mongodb://user:" + secret, "port"},
		{"mongodb://user:" + secret + "%40host", "port"},
		{"mongodb://user:" + secret + ":1", "more than one colon"},
		{"mongodb://user:" + secret + ":@host", "percent-encoded"},
		{"mongodb://user:" + secret + "@host:99999", "port"},
		{"mongodb://user:" + secret + "@host/?w=-1", "negative"},
		{"mongodb://:" + secret + "@host", "user name"},
		{"mongodb://a/?proxyPassword=" + secret, "proxyHost"},
		{"mongodb://user:" + secret + "#@x@host/", "percent-encoded"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.in)
		if err == nil {
			t.Errorf("%s: no error", tt.in)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %q, want %q", tt.in, err, tt.want)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error %q contains the password", tt.in, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct{ options, want string }{
		{"foo=secret-value", `option "foo" is not supported`},
		{"wtimeout=5", `option "wtimeout" is deprecated, use "wTimeoutMS"`},
		{"wtimeout=5&wtimeoutMS=10", `deprecated option "wtimeout" is ignored, since "wTimeoutMS" is there`},
		{"secondaryAcceptableLatencyMS=3", `option "secondaryAcceptableLatencyMS" is deprecated, use "localThresholdMS"`},
		{"slaveOk=true", `option "slaveOk" is deprecated, use "readPreference=secondaryPreferred"`},
		{"serverSelectionTryOnce=true", `option "serverSelectionTryOnce" is for single-threaded drivers and has no effect`},
		{"journal=1", `value "1" of option "journal" is deprecated, use "true"`},
		{"journal=", `value "" of option "journal" is ignored: want true or false`},
		{"maxIdleTimeMS=", `value "" of option "maxIdleTimeMS" is ignored: want a whole number of milliseconds, at least 0`},
		{"replicaSet=a&replicaSet=b", `option "replicaSet" is given more than once, the first value counts`},
		{"readPreference=fastest", `value "fastest" of option "readPreference" is ignored: want one of primary, primaryPreferred, secondary, secondaryPreferred, nearest`},
		{"readPreferenceTags=invalid", `value "invalid" of option "readPreferenceTags" is ignored: want comma separated key:value pairs`},
		{"maxPoolSize=99999999999", `value "99999999999" of option "maxPoolSize" is ignored: want a whole number from 0 to 2147483647`},
		{"compressors=snappy,snoopy", `compressor "snoopy" is not supported, want one of snappy, zlib, zstd`},
		{"maxStalenessSeconds=-2", `value "-2" of option "maxStalenessSeconds" is ignored: want -1 or a whole number from 90`},
		{"authMechanism=MONGODB-OIDC&authMechanismProperties=TOKEN_RESOURCE:mongodb://host1%2Chost2",
			`value of option "authMechanismProperties" is ignored: want comma separated key:value pairs (a value with a comma cannot be given in a connection string)`},
	}
	for _, tt := range tests {
		c, err := Parse("mongodb://localhost/?" + tt.options)
		if err != nil {
			t.Errorf("%s: %v", tt.options, err)
			continue
		}
		if len(c.Warnings) != 1 || c.Warnings[0] != tt.want {
			t.Errorf("%s: warnings %q, want %q", tt.options, c.Warnings, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	c, err := Parse("mongodb://u%3A:p%40%20@Host,[2001:DB8::1]:05,%2Ftmp%2FM.sock/db?READPREFERENCETAGS=dc:ny,rack:1&readPreferenceTags=" +
		"&readPreference=nearest&maxStalenessSeconds=120&slaveok=false&appName=a%20b%26c&wTimeoutMS=5000000000&proxyHost=p&proxyUsername=pu&proxyPassword=pp123")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"host:27017", "[2001:db8::1]:5", "/tmp/M.sock"}; !reflect.DeepEqual(c.Hosts, want) {
		t.Errorf("hosts %q, want %q", c.Hosts, want)
	}
	if cr := c.Credential; cr.Username != "u:" || cr.Password != "p@ " || !cr.PasswordSet {
		t.Errorf("credential %+v", cr)
	}
	if want := []map[string]string{{"dc": "ny", "rack": "1"}, {}}; !reflect.DeepEqual(c.ReadPreferenceTags, want) {
		t.Errorf("tags %v", c.ReadPreferenceTags)
	}
	if c.AppName != "a b&c" || *c.WTimeout != 5_000_000*time.Second || *c.MaxStaleness != 2*time.Minute || c.ReadPreference != "nearest" {
		t.Errorf("options %q %v %v %q", c.AppName, *c.WTimeout, *c.MaxStaleness, c.ReadPreference)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.Credential.Source != "db" {
		t.Errorf("source %q", c.Credential.Source)
	}
	want := "mongodb://u%3A:***@Host,[2001:DB8::1]:05,%2Ftmp%2FM.sock/db?READPREFERENCETAGS=dc:ny,rack:1&readPreferenceTags=" +
		"&readPreference=nearest&maxStalenessSeconds=120&slaveok=false&appName=a%20b%26c&wTimeoutMS=5000000000&proxyHost=p&proxyUsername=pu&proxyPassword=***"
	if got := fmt.Sprint(c); got != want {
		t.Errorf("printed as %s, want %s", got, want)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct{ in, want string }{ // "" is valid
		{"mongodb://a/?minPoolSize=5&maxPoolSize=4", "minPoolSize"},
		{"mongodb://a/?minPoolSize=5&maxPoolSize=5", ""},
		{"mongodb://a/?minPoolSize=5&maxPoolSize=0", ""},
		{"mongodb://a/?maxStalenessSeconds=120", "maxStalenessSeconds"},
		{"mongodb://a/?maxStalenessSeconds=0", "maxStalenessSeconds"},
		{"mongodb://a/?readPreference=primary&maxStalenessSeconds=89", "maxStalenessSeconds"},
		{"mongodb://a/?readPreference=nearest&maxStalenessSeconds=0", ""},
		{"mongodb://a/?maxStalenessSeconds=-1", ""},
		{"mongodb://a/?readPreferenceTags=dc:ny", "readPreferenceTags"},
		{"mongodb://a/?readPreferenceTags=", ""},
		{"mongodb://u:p@a/?authMechanism=MONGODB-CR", "MONGODB-CR is not supported"},
		{"mongodb://u:p@a/?authMechanism=SCRAM-SHA-512", `"SCRAM-SHA-512" is not known`},
		{"mongodb://u@a/", "no password"},
		{"mongodb://u:@a/", ""},
		{"mongodb://u:p@a/?authMechanism=SCRAM-SHA-1&authMechanismProperties=A:b", "no property A"},
		{"mongodb://u@a/?authMechanism=GSSAPI&gssapiServiceName=x", ""},
		{"mongodb://u@a/?authMechanism=GSSAPI&authMechanismProperties=canonicalize_host_name:true", ""},
		{"mongodb://u%00:p@a/", "user name is not"},
		{"mongodb://u:p%00@a/?authMechanism=PLAIN", "password is not"},
		{"mongodb://u:p%00@a/", ""},
		{"mongodb+srv://a.b.c/", "no hosts"},
	}
	for _, tt := range tests {
		c, err := Parse(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		err = c.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.in, err, tt.want)
		}
	}
}

func TestTLSIsImplied(t *testing.T) {
	for in, want := range map[string]bool{
		"mongodb://a/":                                false,
		"mongodb://a/?tls=true":                       true,
		"mongodb://a/?ssl=true":                       true,
		"mongodb://a/?tlsCAFile=x":                    true,
		"mongodb://a/?tlsAllowInvalidHostnames=false": true,
		"mongodb://a/?tlsCAFile=x&tls=false":          false,
		"mongodb://a/?tlsCAFile=":                     true,
		"mongodb://a/?tlsAllowInvalidHostnames=maybe": true,
		"mongodb+srv://a.b.c/":                        true,
		"mongodb+srv://a.b.c/?ssl=false":              false,
	} {
		c, err := Parse(in)
		if err != nil || c.TLSEnabled() != want {
			t.Errorf("%s: %v, %v, want %v", in, c.TLSEnabled(), err, want)
		}
	}
}

func TestApplySRV(t *testing.T) {
	tests := []struct {
		in, txt string
		hosts   []string
		want    string // of the error
		check   func(*Config) bool
	}{
		{"mongodb+srv://a.b.c/", "replicaSet=r&authSource=s", []string{"x.b.c:1"}, "", func(c *Config) bool {
			return c.ReplicaSet == "r" && c.AuthSource() == "s" && c.TLSEnabled() && c.Credential == nil
		}},
		{"mongodb+srv://u:p@a.b.c/?replicaSet=mine&tls=false", "replicaSet=r&authSource=s", []string{"x.b.c:1"}, "", func(c *Config) bool {
			return c.ReplicaSet == "mine" && c.Credential.Source == "s" && !c.TLSEnabled()
		}},
		{"mongodb+srv://u:p@a.b.c/?authSource=mine", "authSource=s", []string{"x.b.c:1"}, "", func(c *Config) bool {
			return c.Credential.Source == "mine"
		}},
		{"mongodb+srv://a.b.c/", "ssl=false", []string{"x.b.c:1"}, `"ssl" is not allowed`, nil},
		{"mongodb+srv://a.b.c/", "authSource", []string{"x.b.c:1"}, "no value", nil},
		{"mongodb+srv://a.b.c/", "replicaSet=r&authSource", []string{"x.b.c:1"}, "no value", nil},
		{"mongodb+srv://a.b.c/", "authSource=%zz", []string{"x.b.c:1"}, "TXT record", nil},
		{"mongodb+srv://a.b.c/", "loadBalanced=perhaps", []string{"x.b.c:1"}, "", func(c *Config) bool {
			return c.LoadBalanced == nil && len(c.Warnings) == 1 // as in a connection string
		}},
		{"mongodb+srv://a.b.c/", "loadBalanced=true", []string{"x.b.c:1", "y.b.c:1"}, "several hosts", nil},
		{"mongodb+srv://a.b.c/?srvMaxHosts=1", "loadBalanced=true", []string{"x.b.c:1"}, "srvMaxHosts", nil},
		{"mongodb+srv://a.b.c/?srvMaxHosts=1", "replicaSet=r", []string{"x.b.c:1"}, "srvMaxHosts", nil},
	}
	for _, tt := range tests {
		c, err := Parse(tt.in)
		if err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		if err = c.ApplySRV(tt.hosts, tt.txt); err == nil {
			err = c.Validate()
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %s: %v, want %q", tt.in, tt.txt, err, tt.want)
		}
		if err == nil && !tt.check(c) {
			t.Errorf("%s with %s: %v", tt.in, tt.txt, c)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"mongodb://user:password@a:1,[::1]:2,%2Ftmp%2Fx.sock/db?w=1&readPreferenceTags=a:b,c:d&tls=true",
		"mongodb+srv://a.b.c/?srvMaxHosts=2", "mongodb://a?w", "mongodb://%", "mongodb://@@:/?&=&",
		"mongodb://u:secretsecret/@h/?proxyPassword=x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Parse(s)
		if err != nil {
			return
		}
		if cr := c.Credential; cr != nil && len(cr.Password) > 3 && strings.Count(s, string(cr.Password)) == 1 &&
			strings.Contains(c.String(), string(cr.Password)) {
			t.Errorf("%q: printed as %s", s, c)
		}
		for _, h := range c.Hosts {
			if h == "" {
				t.Errorf("%q: empty host", s)
			}
		}
		c.Validate()
	})
}

// What the program hands in is not changed: it may use the same credential for several clients.
func TestProgramsCredential(t *testing.T) {
	mine := &auth.Credential{Username: "u", Mechanism: auth.MechanismGSSAPI, Properties: map[string]string{"service_name": "db"}}
	c, err := Parse("mongodb+srv://a.b.c/")
	if err != nil {
		t.Fatal(err)
	}
	c.Credential = mine
	if err := c.ApplySRV([]string{"x.b.c:1"}, "authSource=$external"); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Credential.Properties["SERVICE_NAME"] != "db" || c.Credential.Source != "$external" {
		t.Errorf("credential %v with %v", c.Credential, c.Credential.Properties)
	}
	if want := (&auth.Credential{Username: "u", Mechanism: auth.MechanismGSSAPI, Properties: map[string]string{"service_name": "db"}}); !reflect.DeepEqual(mine, want) {
		t.Errorf("the program's credential became %v with %v", mine, mine.Properties)
	}
}

// A credential that a program gives is judged as one of a string: mechanisms with a password need a
// name and a password.
func TestProgramsCredentialIsComplete(t *testing.T) {
	for _, m := range []auth.Mechanism{"", auth.MechanismScramSHA1, auth.MechanismScramSHA256, auth.MechanismPlain} {
		for want, c := range map[string]*auth.Credential{
			"no user name": {Password: "p"},
			"no password":  {Username: "u"},
			"NUL":          {Username: "u\x00", Password: "p"},
			"":             {Username: "u", Password: "p"},
		} {
			c.Mechanism = m
			config := &Config{Hosts: []string{"a:1"}, Credential: c}
			if err := config.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q with %q and %q: error %v, want %q", m, c.Username, string(c.Password), err, want)
			}
		}
	}
}

func TestServiceName(t *testing.T) {
	for name, ok := range map[string]bool{
		"mongodb": true, "a": true, "1a": true, "a-b-1": true, strings.Repeat("a", 62): true, strings.Repeat("a", 63): false,
		"": false, "27017": false, "-a": false, "a-": false, "a--b": false, "a_b": false, "a.b": false, "\u00e4": false,
	} {
		c, err := Parse("mongodb+srv://a.b.c/?srvServiceName=" + name)
		if err != nil || (c.SRVServiceName == name) != ok && name != "" || (len(c.Warnings) == 0) != ok {
			t.Errorf("%q: %v, name %q, warnings %q", name, err, c.SRVServiceName, c.Warnings)
		}
	}
}

// Every time may be as long as an int64 of milliseconds, and nobody's arithmetic overflows: what is
// longer than a human life counts as that.
func TestLongTimes(t *testing.T) {
	fields := map[string]func(*Config) *time.Duration{
		"connectTimeoutMS":         func(c *Config) *time.Duration { return c.ConnectTimeout },
		"heartbeatFrequencyMS":     func(c *Config) *time.Duration { return c.HeartbeatInterval },
		"localThresholdMS":         func(c *Config) *time.Duration { return c.LocalThreshold },
		"maxIdleTimeMS":            func(c *Config) *time.Duration { return c.MaxIdleTime },
		"serverSelectionTimeoutMS": func(c *Config) *time.Duration { return c.ServerSelectionTimeout },
		"socketTimeoutMS":          func(c *Config) *time.Duration { return c.SocketTimeout },
		"timeoutMS":                func(c *Config) *time.Duration { return c.Timeout },
		"waitQueueTimeoutMS":       func(c *Config) *time.Duration { return c.WaitQueueTimeout },
		"wTimeoutMS":               func(c *Config) *time.Duration { return c.WTimeout },
	}
	for _, o := range options { // none is forgotten
		if strings.HasSuffix(o.name, "MS") && o.alias == "" && fields[o.name] == nil && !strings.HasPrefix(o.name, "srv") {
			t.Errorf("%s is not tested", o.name)
		}
	}
	for name, field := range fields {
		for text, want := range map[string]time.Duration{
			"1000":                time.Second,
			"2147483647":          2147483647 * time.Millisecond,
			"2147483648":          2147483648 * time.Millisecond,
			"31536000000":         365 * 24 * time.Hour,
			"9223372036854":       longest.Truncate(time.Millisecond),
			"9223372036854775807": longest.Truncate(time.Millisecond),
		} {
			c, err := Parse("mongodb://h/?" + name + "=" + text)
			if err != nil || len(c.Warnings) != 0 {
				t.Errorf("%s=%s: %v, warnings %q", name, text, err, c.Warnings)
				continue
			}
			if got := field(c); got == nil || *got != want || *got+*got < 0 {
				t.Errorf("%s=%s: %v, want %v", name, text, got, want)
			}
			if err := c.Validate(); err != nil {
				t.Errorf("%s=%s: %v", name, text, err)
			}
		}
		c, err := Parse("mongodb://h/?" + name + "=9223372036854775808")
		if err != nil || len(c.Warnings) != 1 || field(c) != nil {
			t.Errorf("%s above an int64: %v, %v, warnings %q", name, field(c), err, c.Warnings)
		}
	}
}

// The characters that a database's name must not have, once it is decoded (specification:
// Connection String, "Auth Database").
func TestDatabaseNames(t *testing.T) {
	for _, c := range []string{"/", "%2F", `\`, "%5C", " ", "%20", "%22", "$", "%24", "%00"} {
		if _, err := Parse("mongodb://a/d" + c + "b"); err == nil || !strings.Contains(err.Error(), "database name") {
			t.Errorf("%q: %v", c, err)
		}
	}
	for in, want := range map[string]string{"d.b": "d.b", "d%2Eb": "d.b", "%C3%A4": "ä", "d-b_1": "d-b_1"} {
		c, err := Parse("mongodb://u:p@a/" + in)
		if err == nil {
			err = c.Validate()
		}
		if err != nil || c.Credential.Source != want {
			t.Errorf("%s: %v, want the database %q", in, err, want)
		}
	}
}

// checked parses and validates a string.
func checked(s string) error {
	c, err := Parse(s)
	if err == nil {
		err = c.Validate()
	}
	return err
}

// No mechanism takes a property that it does not know, least of all where tokens may go.
func TestMechanismProperties(t *testing.T) {
	for _, s := range []string{
		"u:p@h/?authMechanism=SCRAM-SHA-1&", "u:p@h/?authMechanism=SCRAM-SHA-256&", "u:p@h/?authMechanism=PLAIN&", "u:p@h/?",
		"h/?authMechanism=MONGODB-X509&", "h/?authMechanism=MONGODB-AWS&", "u@h/?authMechanism=GSSAPI&",
	} {
		for _, property := range []string{"ALLOWED_HOSTS:h", "OTHER:x", "ENVIRONMENT:test"} {
			if err := checked("mongodb://" + s + "authMechanismProperties=" + property); err == nil {
				t.Errorf("%s takes %s", s, property)
			}
		}
		if err := checked("mongodb://" + s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, properties := range []string{"ENVIRONMENT:test,ALLOWED_HOSTS:h", "ENVIRONMENT:test,OIDC_CALLBACK:f", "ENVIRONMENT:test,OIDC_HUMAN_CALLBACK:f"} {
		if err := checked("mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=" + properties); err == nil {
			t.Errorf("MONGODB-OIDC takes %s", properties)
		}
	}
}

// The mechanisms with passwords want one, which may be empty.
func TestPasswords(t *testing.T) {
	for _, mechanism := range []string{"", "SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"} {
		for user, ok := range map[string]bool{"u": false, "u:": true, "u:p": true} {
			s := "mongodb://" + user + "@h/"
			if mechanism != "" {
				s += "?authMechanism=" + mechanism
			}
			if err := checked(s); (err == nil) != ok {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
}

// MONGODB-OIDC has one source of tokens: an environment or the program's callback.
func TestOIDCSources(t *testing.T) {
	for _, callback := range []bool{false, true} {
		for properties, environment := range map[string]bool{"": false, "&authMechanismProperties=ENVIRONMENT:test": true} {
			c, err := Parse("mongodb://h/?authMechanism=MONGODB-OIDC" + properties)
			if err != nil {
				t.Fatal(err)
			}
			c.OIDCCallback = callback
			if err := c.Validate(); (err == nil) != (callback != environment) {
				t.Errorf("environment %v, callback %v: %v", environment, callback, err)
			}
		}
	}
}

// The Stable API is declared in the program, and never in a string, which may change without it
// (specification: Stable API).
func TestStableAPIIsNotInStrings(t *testing.T) {
	for _, name := range []string{"apiVersion", "apiStrict", "apiDeprecationErrors", "serverApi", "api"} {
		c, err := Parse("mongodb://h/?" + name + "=1")
		if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "not supported") {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

// An empty user name or password of a proxy is none.
func TestEmptyProxyOptions(t *testing.T) {
	for _, query := range []string{"proxyHost=p&proxyUsername=&proxyPassword=", "proxyHost=p&proxyUsername=", "proxyHost=p&proxyPassword=", "proxyUsername=&proxyPassword="} {
		c, err := Parse("mongodb://a/?" + query)
		if err == nil {
			err = c.Validate()
		}
		if err != nil || c.Proxy.Username != "" || c.Proxy.Password != "" {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// A value that is ignored leaves its option as if it were not there.
func TestIgnoredValuesAreNotSet(t *testing.T) {
	plain, err := Parse("mongodb://h/")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range options {
		if strings.HasPrefix(o.name, "tls") || o.name == "ssl" {
			continue // any of them means TLS
		}
		for _, value := range []string{"", "%20"} {
			c, err := Parse("mongodb://h/?" + o.name + "=" + value)
			if err != nil || len(c.Warnings) == 0 {
				continue // an error, or a value like others
			}
			if got, want := optionValues(c), optionValues(plain); !reflect.DeepEqual(got, want) {
				t.Errorf("%s=%s: %v, want %v", o.name, value, got, want)
			}
		}
	}
}

// Which options of TLS exclude each other, whatever their values are.
func TestTLSConflicts(t *testing.T) {
	const insecure, certificates, hostnames = "tlsInsecure", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames"
	const endpoint, revocation = "tlsDisableOCSPEndpointCheck", "tlsDisableCertificateRevocationCheck"
	excluded := map[[2]string]bool{
		{insecure, certificates}: true, {insecure, hostnames}: true, {insecure, endpoint}: true, {insecure, revocation}: true,
		{certificates, endpoint}: true, {certificates, revocation}: true, {endpoint, revocation}: true,
	}
	names := []string{insecure, certificates, hostnames, endpoint, revocation}
	for i, a := range names {
		for _, b := range names[i+1:] {
			for _, values := range [][2]string{{"true", "true"}, {"true", "false"}, {"false", "true"}, {"false", "false"}} {
				for _, s := range []string{a + "=" + values[0] + "&" + b + "=" + values[1], b + "=" + values[1] + "&" + a + "=" + values[0]} {
					if err := checked("mongodb://h/?" + s); (err != nil) != excluded[[2]string{a, b}] {
						t.Errorf("%s: %v", s, err)
					}
				}
			}
		}
	}
}
