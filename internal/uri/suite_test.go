package uri

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"allium/auth"
	"allium/internal/spectest"
)

type suiteCase struct {
	Description string
	URI         string
	Valid       bool
	Warning     *bool
	Hosts       []struct {
		Type string
		Host string
		Port *int
	}
	Auth         *struct{ Username, Password, DB *string }
	Options      map[string]any
	Credential   spectest.Given[suiteCredential]
	ReadConcern  map[string]any
	WriteConcern map[string]any
}

type suiteCredential struct {
	Username, Password, Source, Mechanism spectest.Given[string]
	Properties                            spectest.Given[map[string]string] `json:"mechanism_properties"`
}

// suite runs check on every case of the files that match.
func suite(t *testing.T, pattern string, check func(*testing.T, suiteCase)) {
	for _, file := range spectest.Files(t, pattern) {
		var content struct{ Tests []suiteCase }
		spectest.Decode(t, file, &content)
		for _, tt := range content.Tests {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+tt.Description, func(t *testing.T) { check(t, tt) })
		}
	}
}

func TestConnectionStringSuite(t *testing.T) { suite(t, "connection-string/tests/*.json", checkParse) }

func TestURIOptionsSuite(t *testing.T) { suite(t, "uri-options/tests/*.json", checkParse) }

func checkParse(t *testing.T, tt suiteCase) {
	c, err := Parse(tt.URI)
	if !tt.Valid {
		if err == nil {
			t.Errorf("%s: no error", tt.URI)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", tt.URI, err)
	}
	// A warning that serverSelectionTryOnce has no effect is what its specification demands of
	// drivers like this one.
	if got := len(c.Warnings) > 0; tt.Warning != nil && got != *tt.Warning && !strings.Contains(tt.URI, "serverSelectionTryOnce") {
		t.Errorf("%s: warnings %q, want some: %v", tt.URI, c.Warnings, *tt.Warning)
	}
	checkHosts(t, c, tt)
	if tt.Credential.There || tt.ReadConcern != nil || tt.WriteConcern != nil {
		t.Errorf("%s: credentials and concerns are another suite's", tt.URI)
	}
	if tt.Auth != nil {
		checkAuth(t, c, tt)
	}
	got := optionValues(c)
	for name, want := range tt.Options {
		key := foldKey(name)
		if key == "serverselectiontryonce" {
			continue // has no value here, see above
		}
		if fmt.Sprint(got[key]) != fmt.Sprint(want) {
			t.Errorf("%s: option %s is %v, want %v", tt.URI, name, got[key], want)
		}
	}
	checkRedaction(t, c, tt.URI)
}

func checkHosts(t *testing.T, c *Config, tt suiteCase) {
	if len(tt.Hosts) == 0 {
		return
	}
	var want []string
	for _, h := range tt.Hosts {
		host := h.Host
		if h.Type == "unix" {
			want = append(want, host)
			continue
		}
		if h.Type == "ip_literal" && !strings.HasPrefix(host, "[") {
			host = "[" + host + "]"
		}
		port := 27017
		if h.Port != nil {
			port = *h.Port
		}
		want = append(want, fmt.Sprintf("%s:%d", strings.ToLower(host), port))
	}
	if !slices.Equal(c.Hosts, want) {
		t.Errorf("%s: hosts %q, want %q", tt.URI, c.Hosts, want)
	}
}

func checkAuth(t *testing.T, c *Config, tt suiteCase) {
	credential := c.Credential
	if credential == nil {
		credential = new(auth.Credential)
	}
	for _, x := range []struct {
		name, got string
		want      *string
	}{
		{"user name", credential.Username, tt.Auth.Username},
		{"password", string(credential.Password), tt.Auth.Password},
		{"database", c.Database, tt.Auth.DB},
	} {
		if x.want != nil && x.got != *x.want {
			t.Errorf("%s: %s %q, want %q", tt.URI, x.name, x.got, *x.want)
		}
	}
}

// checkRedaction makes sure that no print form of a configuration contains its password.
func checkRedaction(t *testing.T, c *Config, s string) {
	t.Helper()
	var secrets []string
	if c.Credential != nil {
		secrets = append(secrets, string(c.Credential.Password))
	}
	secrets = append(secrets, string(c.Proxy.Password), string(c.TLSIs.CertificateKeyFilePassword))
	printed := fmt.Sprint(c, *c, c.Credential) + fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c, c) +
		fmt.Sprintf("%+v %#v %+v %#v", c.TLSIs, c.TLSIs, c.Proxy, c.Proxy) + fmt.Sprintf("%+v %#v", c.Credential, c.Credential)
	for _, secret := range secrets {
		// Short ones occur by chance, or are the same as the user's name.
		if len(secret) > 3 && strings.Count(s, secret) == 1 && strings.Contains(printed, secret) {
			t.Errorf("%s: printed as %s", s, printed)
		}
	}
}

// optionValues returns the options as the suites spell their values.
func optionValues(c *Config) map[string]any {
	ms := func(d *time.Duration) any {
		if d == nil {
			return nil
		}
		return d.Milliseconds()
	}
	tags := make([]any, 0, len(c.ReadPreferenceTags))
	for _, m := range c.ReadPreferenceTags {
		tags = append(tags, m)
	}
	out := map[string]any{
		"appname": c.AppName, "replicaset": c.ReplicaSet, "directconnection": c.Direct, "loadbalanced": c.LoadBalanced,
		"srvmaxhosts": c.SRVMaxHosts, "srvservicename": c.SRVServiceName,
		"connecttimeoutms": ms(c.ConnectTimeout), "sockettimeoutms": ms(c.SocketTimeout), "timeoutms": ms(c.Timeout),
		"serverselectiontimeoutms": ms(c.ServerSelectionTimeout), "waitqueuetimeoutms": ms(c.WaitQueueTimeout),
		"heartbeatfrequencyms": ms(c.HeartbeatInterval), "localthresholdms": ms(c.LocalThreshold), "maxidletimems": ms(c.MaxIdleTime),
		"servermonitoringmode": c.ServerMonitoringMode,
		"maxpoolsize":          c.MaxPoolSize, "minpoolsize": c.MinPoolSize, "maxconnecting": c.MaxConnecting,
		"compressors": c.Compressors, "zlibcompressionlevel": c.ZlibCompressionLevel,
		"readconcernlevel": c.ReadConcernLevel, "readpreference": c.ReadPreference, "readpreferencetags": tags,
		"w": c.W, "wtimeoutms": ms(c.WTimeout), "journal": c.Journal,
		"retryreads": c.RetryReads, "retrywrites": c.RetryWrites,
		"maxadaptiveretries": c.MaxAdaptiveRetries, "enableoverloadretargeting": c.EnableOverloadRetargeting,
		"tls": c.TLS, "ssl": c.TLS, "tlscafile": c.TLSIs.CAFile, "tlscertificatekeyfile": c.TLSIs.CertificateKeyFile,
		"tlscertificatekeyfilepassword": string(c.TLSIs.CertificateKeyFilePassword),
		"tlsinsecure":                   c.TLSIs.Insecure, "tlsallowinvalidcertificates": c.TLSIs.AllowInvalidCertificates,
		"tlsallowinvalidhostnames": c.TLSIs.AllowInvalidHostnames, "tlsdisableocspendpointcheck": c.TLSIs.DisableOCSPEndpointCheck,
		"tlsdisablecertificaterevocationcheck": c.TLSIs.DisableCertificateRevocationCheck,
		"authsource":                           c.AuthSource(),
	}
	if c.MaxStaleness != nil {
		out["maxstalenessseconds"] = int(c.MaxStaleness.Seconds())
	}
	if c.Credential != nil {
		out["authmechanism"], out["authmechanismproperties"] = c.Credential.Mechanism, c.Credential.Properties
	}
	for key, v := range out { // print what pointers point at
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
			out[key] = r.Elem().Interface()
		}
	}
	return out
}

// staleAuthCases contradict other cases of the same file ("should throw an exception if username
// and password provided (MONGODB-AWS)" among them): since September 2025 the text wants credentials
// for MONGODB-AWS to be refused in a connection string. The test asks for that.
var staleAuthCases = map[string]bool{
	"should use username and password if specified (MONGODB-AWS)":                true,
	"should use username, password and session token if specified (MONGODB-AWS)": true,
}

func TestAuthSuite(t *testing.T) {
	suite(t, "auth/tests/legacy/*.json", func(t *testing.T, tt suiteCase) {
		if staleAuthCases[tt.Description] {
			tt.Valid = false
		}
		c, err := Parse(tt.URI)
		if err == nil {
			err = c.Validate()
		}
		if !tt.Valid {
			if err == nil {
				t.Errorf("%s: no error", tt.URI)
			}
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.URI, err)
		}
		want := tt.Credential.Value
		if tt.Credential.There && (c.Credential == nil) != (want == nil) {
			t.Fatalf("%s: credential %v, want %v", tt.URI, c.Credential, want)
		}
		if want == nil {
			return
		}
		for _, x := range []struct {
			name, got string
			want      spectest.Given[string]
		}{
			{"user name", c.Credential.Username, want.Username},
			{"password", string(c.Credential.Password), want.Password},
			{"source", c.Credential.Source, want.Source},
			{"mechanism", string(c.Credential.Mechanism), want.Mechanism},
		} {
			text := ""
			if x.want.Value != nil {
				text = *x.want.Value
			}
			if x.want.There && x.got != text {
				t.Errorf("%s: %s %q, want %q", tt.URI, x.name, x.got, text)
			}
		}
		if p := want.Properties; p.There && p.Value == nil && len(c.Credential.Properties) > 0 {
			t.Errorf("%s: properties %v, want none", tt.URI, c.Credential.Properties)
		} else if p.Value != nil {
			for name, text := range *p.Value { // there may be others
				if got, ok := c.Credential.Properties[name]; !ok || got != text {
					t.Errorf("%s: property %s is %q, want %q", tt.URI, name, got, text)
				}
			}
		}
	})
}

func TestReadWriteConcernSuite(t *testing.T) {
	suite(t, "read-write-concern/tests/connection-string/*.json", func(t *testing.T, tt suiteCase) {
		c, err := Parse(tt.URI)
		if !tt.Valid {
			// The newer specification of the options wants a wTimeoutMS below 0 to be ignored with
			// a warning.
			if err == nil && (len(c.Warnings) == 0 || c.WTimeout != nil) {
				t.Errorf("%s: neither error nor warning", tt.URI)
			}
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.URI, err)
		}
		if got := len(c.Warnings) > 0; tt.Warning != nil && got != *tt.Warning {
			t.Errorf("%s: warnings %q, want some: %v", tt.URI, c.Warnings, *tt.Warning)
		}
		got := optionValues(c)
		for name, want := range tt.WriteConcern {
			if fmt.Sprint(got[foldKey(name)]) != fmt.Sprint(want) {
				t.Errorf("%s: %s is %v, want %v", tt.URI, name, got[foldKey(name)], want)
			}
		}
		if tt.WriteConcern != nil && len(tt.WriteConcern) == 0 && (c.W != nil || c.Journal != nil || c.WTimeout != nil) {
			t.Errorf("%s: there is a write concern", tt.URI)
		}
		for name := range tt.ReadConcern {
			if name != "level" {
				t.Errorf("%s: a read concern's field %s is not known", tt.URI, name)
			}
		}
		if level, _ := tt.ReadConcern["level"].(string); level != c.ReadConcernLevel {
			t.Errorf("%s: read concern %q, want %q", tt.URI, c.ReadConcernLevel, level)
		}
	})
}
