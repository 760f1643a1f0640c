package allium

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"allium/auth"
	"allium/consistency"
	"allium/internal/uri"
)

// TestMain fails if a test or an Example leaves a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// configOf returns what a connection string and the program's options amount to.
func configOf(t *testing.T, query string, o ClientOptions) *uri.Config {
	t.Helper()
	scheme := "mongodb://"
	if strings.Contains(query, "srv") || o.SRVServiceName != "" || o.SRVMaxHosts != nil {
		scheme = "mongodb+srv://"
	}
	cfg, err := uri.Parse(scheme + "h.example.com/?" + query)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.apply(cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Warnings = nil
	return cfg
}

// TestOptionsEqualConnectionString checks that an option of the connection string and its field
// mean the same, and that the field wins over another value of the string.
func TestOptionsEqualConnectionString(t *testing.T) {
	second := new(time.Second)
	for _, test := range []struct {
		query, other string
		options      ClientOptions
	}{
		{"appName=a", "appName=b", ClientOptions{AppName: "a"}},
		{"compressors=zlib,snappy", "compressors=zstd", ClientOptions{Compressors: []string{"zlib", "snappy"}}},
		{"connectTimeoutMS=1000", "connectTimeoutMS=1", ClientOptions{ConnectTimeout: second}},
		{"directConnection=true", "directConnection=false", ClientOptions{Direct: new(true)}},
		{"enableOverloadRetargeting=true", "enableOverloadRetargeting=false", ClientOptions{EnableOverloadRetargeting: new(true)}},
		{"heartbeatFrequencyMS=1000", "heartbeatFrequencyMS=5000", ClientOptions{HeartbeatInterval: second}},
		{"loadBalanced=true", "loadBalanced=false", ClientOptions{LoadBalanced: new(true)}},
		{"localThresholdMS=1000", "localThresholdMS=1", ClientOptions{LocalThreshold: second}},
		{"maxAdaptiveRetries=3", "maxAdaptiveRetries=5", ClientOptions{MaxAdaptiveRetries: new(3)}},
		{"maxConnecting=3", "maxConnecting=5", ClientOptions{MaxConnecting: new(3)}},
		{"maxIdleTimeMS=1000", "maxIdleTimeMS=1", ClientOptions{MaxIdleTime: second}},
		{"maxPoolSize=3", "maxPoolSize=5", ClientOptions{MaxPoolSize: new(3)}},
		{"minPoolSize=3", "minPoolSize=5", ClientOptions{MinPoolSize: new(3)}},
		{"proxyHost=p&proxyPort=99&proxyUsername=u&proxyPassword=s", "proxyHost=q", ClientOptions{Proxy: &Proxy{Host: "p", Port: 99, Username: "u", Password: "s"}}},
		{"replicaSet=a", "replicaSet=b", ClientOptions{ReplicaSet: "a"}},
		{"retryReads=false", "retryReads=true", ClientOptions{RetryReads: new(false)}},
		{"retryWrites=false", "retryWrites=true", ClientOptions{RetryWrites: new(false)}},
		{"serverMonitoringMode=poll", "serverMonitoringMode=stream", ClientOptions{ServerMonitoringMode: "poll"}},
		{"serverSelectionTimeoutMS=1000", "serverSelectionTimeoutMS=1", ClientOptions{ServerSelectionTimeout: second}},
		{"socketTimeoutMS=1000", "socketTimeoutMS=1", ClientOptions{SocketTimeout: second}},
		{"srvMaxHosts=3", "srvMaxHosts=5", ClientOptions{SRVMaxHosts: new(3)}},
		{"srvServiceName=a", "srvServiceName=b", ClientOptions{SRVServiceName: "a"}},
		{"timeoutMS=1000", "timeoutMS=1", ClientOptions{Timeout: second}},
		{"tls=true&tlsCAFile=a&tlsCertificateKeyFile=b&tlsCertificateKeyFilePassword=c", "tlsInsecure=true",
			ClientOptions{TLSFiles: &TLSFiles{CAFile: "a", CertificateKeyFile: "b", CertificateKeyFilePassword: "c"}}},
		{"tls=true&tlsInsecure=true", "tls=false", ClientOptions{TLSFiles: &TLSFiles{Insecure: true}}},
		{"tls=true&tlsAllowInvalidHostnames=true&tlsAllowInvalidCertificates=true", "",
			ClientOptions{TLSFiles: &TLSFiles{AllowInvalidHostnames: true, AllowInvalidCertificates: true}}},
		{"waitQueueTimeoutMS=1000", "waitQueueTimeoutMS=1", ClientOptions{WaitQueueTimeout: second}},
		{"zlibCompressionLevel=3", "zlibCompressionLevel=5", ClientOptions{ZlibCompressionLevel: new(3)}},
	} {
		want := configOf(t, test.query, ClientOptions{})
		for _, query := range []string{"", test.other} {
			got := configOf(t, query, test.options)
			for field := range reflect.TypeFor[uri.Config]().Fields() {
				if !field.IsExported() {
					continue
				}
				a, b := reflect.ValueOf(want).Elem().FieldByIndex(field.Index), reflect.ValueOf(got).Elem().FieldByIndex(field.Index)
				if !reflect.DeepEqual(a.Interface(), b.Interface()) {
					t.Errorf("%q and the options differ in %s (string %q): %+v, %+v", test.query, field.Name, query, a, b)
				}
			}
		}
	}
}

// A read preference of the program's replaces the string's, with all that belongs to it.
func TestReadPreferenceWins(t *testing.T) {
	for _, query := range []string{"maxStalenessSeconds=120", "readPreferenceTags=dc:ny", "readPreference=nearest&readPreferenceTags=dc:ny&maxStalenessSeconds=120"} {
		client, err := Open("mongodb://h.example.com/?"+query, ClientOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}, Dialer: nowhere{}})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if rp := client.defaults.readPreference; rp.Mode != consistency.Secondary || rp.MaxStaleness != 0 || rp.TagSets != nil {
			t.Errorf("%s: read preference %+v", query, rp)
		}
		client.Close(t.Context())
	}
}

// nowhere is a network without servers.
type nowhere struct{}

func (nowhere) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("there are no servers")
}

// TestOpenRefusesBadOptions checks that a value that an option does not allow is an error with the
// option's name.
func TestOpenRefusesBadOptions(t *testing.T) {
	minus := new(-time.Second)
	for want, o := range map[string]ClientOptions{
		"maxPoolSize":              {MaxPoolSize: new(-1)},
		"minPoolSize":              {MinPoolSize: new(-1)},
		"Warm is -1":               {Warm: new(-1)},
		"Warm is 5":                {Warm: new(5), MaxPoolSize: new(3)},
		"minPoolSize 5":            {MinPoolSize: new(5), MaxPoolSize: new(3)},
		"maxConnecting":            {MaxConnecting: new(0)},
		"maxAdaptiveRetries":       {MaxAdaptiveRetries: new(-1)},
		"zlibCompressionLevel":     {ZlibCompressionLevel: new(10)},
		"connectTimeoutMS":         {ConnectTimeout: minus},
		"socketTimeoutMS":          {SocketTimeout: minus},
		"timeoutMS":                {Timeout: minus},
		"serverSelectionTimeoutMS": {ServerSelectionTimeout: new(time.Duration(0))},
		"waitQueueTimeoutMS":       {WaitQueueTimeout: minus},
		"heartbeatFrequencyMS":     {HeartbeatInterval: new(499 * time.Millisecond)},
		"localThresholdMS":         {LocalThreshold: minus},
		"maxIdleTimeMS":            {MaxIdleTime: minus},
		"serverMonitoringMode":     {ServerMonitoringMode: "often"},
		"srvMaxHosts":              {SRVMaxHosts: new(1)},
		"srvServiceName":           {SRVServiceName: "x"},
		"proxyHost":                {Proxy: &Proxy{Port: 1}},
		"proxyPassword":            {Proxy: &Proxy{Host: "h", Username: "u"}},
		"proxyPort":                {Proxy: &Proxy{Host: "h", Port: 1 << 16}},
		"tlsInsecure":              {TLSFiles: &TLSFiles{Insecure: true, AllowInvalidHostnames: true}},
		"tlsCAFile":                {TLSFiles: &TLSFiles{CAFile: "testdata/no-such-file.pem"}},
		"server API":               {ServerAPI: &ServerAPI{Version: "2"}},
		"loadBalanced":             {LoadBalanced: new(true), ReplicaSet: "rs"},
		"application name":         {AppName: strings.Repeat("x", 129)},
		"delimiter":                {DriverInfo: &DriverInfo{Name: "a|b"}},
		"LogLevels":                {LogLevels: map[LogComponent]slog.Level{LogCommand: slog.LevelDebug, "commands": slog.LevelDebug}},
		"MaxLogDocumentLength":     {MaxLogDocumentLength: -1},
		"read retry policy":        {ReadRetryPolicy: ReadRetryPolicy{MaxAttempts: -1}},
		"option Hosts":             {Hosts: []string{""}},
		"compressor":               {Compressors: []string{"lz4"}},
		"options Credential":       {Credential: &auth.Credential{Username: "u", Password: "p"}, Credentials: func(context.Context) (auth.Credential, error) { return auth.Credential{}, nil }},
		"options TLS":              {TLS: &tls.Config{}, TLSFiles: &TLSFiles{}},
		"option UseTLS":            {UseTLS: new(false), TLS: &tls.Config{}},
	} {
		client, err := Open("mongodb://host.invalid/", o)
		if err == nil {
			t.Errorf("%s: accepted", want)
			client.Close(t.Context())
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	all := map[LogComponent]slog.Level{LogCommand: slog.LevelDebug, LogTopology: slog.LevelInfo, LogServerSelection: slog.LevelWarn, LogConnection: slog.LevelError}
	client, err := Open("mongodb://host.invalid/", ClientOptions{LogLevels: all})
	if err != nil {
		t.Fatalf("a level for each component: %v", err)
	}
	client.Close(t.Context())
}

// Two clients with the same options: what the first one's connection string completes must not be
// there for the second one.
func TestOptionsStayTheCallers(t *testing.T) {
	credential := &auth.Credential{Username: "u", Password: "p", Mechanism: "PLAIN", Properties: map[string]string{}}
	kerberos := &auth.Credential{Username: "u", Mechanism: "GSSAPI", Properties: map[string]string{"CANONICALIZE_HOST_NAME": "true"}}
	for _, test := range []struct {
		credential *auth.Credential
		database   string
		want       string // the source that the client authenticates against
	}{
		{credential, "first", "first"},
		{credential, "second", "second"},
		{kerberos, "", "$external"},
	} {
		before := *test.credential
		before.Properties = maps.Clone(test.credential.Properties)
		cfg, err := uri.Parse("mongodb://h/" + test.database)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&ClientOptions{Credential: test.credential}).apply(cfg); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		if cfg.Credential.Source != test.want {
			t.Errorf("source is %q, want %q", cfg.Credential.Source, test.want)
		}
		if !reflect.DeepEqual(*test.credential, before) {
			t.Errorf("the caller's credential was changed: %#v", test.credential.Properties)
		}
	}
}
