// Package connstring reads connection strings, as that of version 2 does.
package connstring

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// A ConnString is what a connection string says. A field that ends with Set tells whether the
// string has the option.
type ConnString struct {
	Original                           string
	AppName                            string
	AuthMechanism                      string
	AuthMechanismProperties            map[string]string
	AuthMechanismPropertiesSet         bool
	AuthSource                         string
	AuthSourceSet                      bool
	Compressors                        []string
	Connect                            ConnectMode
	ConnectSet                         bool
	DirectConnection                   bool
	DirectConnectionSet                bool
	ConnectTimeout                     time.Duration
	ConnectTimeoutSet                  bool
	Database                           string
	HeartbeatInterval                  time.Duration
	HeartbeatIntervalSet               bool
	Hosts                              []string
	J                                  bool
	JSet                               bool
	LoadBalanced                       bool
	LoadBalancedSet                    bool
	LocalThreshold                     time.Duration
	LocalThresholdSet                  bool
	MaxConnIdleTime                    time.Duration
	MaxConnIdleTimeSet                 bool
	MaxPoolSize                        uint64
	MaxPoolSizeSet                     bool
	MinPoolSize                        uint64
	MinPoolSizeSet                     bool
	MaxConnecting                      uint64
	MaxConnectingSet                   bool
	Password                           string
	PasswordSet                        bool
	RawHosts                           []string
	ReadConcernLevel                   string
	ReadPreference                     string
	ReadPreferenceTagSets              []map[string]string
	RetryWrites                        bool
	RetryWritesSet                     bool
	RetryReads                         bool
	RetryReadsSet                      bool
	MaxStaleness                       time.Duration
	MaxStalenessSet                    bool
	ReplicaSet                         string
	Scheme                             string
	ServerMonitoringMode               string
	ServerSelectionTimeout             time.Duration
	ServerSelectionTimeoutSet          bool
	SocketTimeout                      time.Duration
	SocketTimeoutSet                   bool
	SRVMaxHosts                        int
	SRVServiceName                     string
	SSL                                bool
	SSLSet                             bool
	SSLClientCertificateKeyFile        string
	SSLClientCertificateKeyFileSet     bool
	SSLClientCertificateKeyPassword    func() string
	SSLClientCertificateKeyPasswordSet bool
	SSLCertificateFile                 string
	SSLCertificateFileSet              bool
	SSLPrivateKeyFile                  string
	SSLPrivateKeyFileSet               bool
	SSLInsecure                        bool
	SSLInsecureSet                     bool
	SSLCaFile                          string
	SSLCaFileSet                       bool
	SSLDisableOCSPEndpointCheck        bool
	SSLDisableOCSPEndpointCheckSet     bool
	Timeout                            time.Duration
	TimeoutSet                         bool
	WString                            string
	WNumber                            int
	WNumberSet                         bool
	Username                           string
	UsernameSet                        bool
	ZlibLevel                          int
	ZlibLevelSet                       bool
	ZstdLevel                          int
	ZstdLevelSet                       bool

	WTimeout              time.Duration
	WTimeoutSet           bool
	WTimeoutSetFromOption bool

	Options        map[string][]string
	UnknownOptions map[string][]string
}

// ConnectMode says whether only the one host is connected to.
type ConnectMode = connstring.ConnectMode

// The modes.
const (
	// AutoConnect finds out what the deployment is.
	AutoConnect = connstring.AutoConnect
	// SingleConnect connects to the one host.
	SingleConnect = connstring.SingleConnect
)

// The schemes.
const (
	SchemeMongoDB    = connstring.SchemeMongoDB
	SchemeMongoDBSRV = connstring.SchemeMongoDBSRV
)

// The ways in which servers are monitored.
const (
	ServerMonitoringModeAuto   = connstring.ServerMonitoringModeAuto
	ServerMonitoringModePoll   = connstring.ServerMonitoringModePoll
	ServerMonitoringModeStream = connstring.ServerMonitoringModeStream
)

// The errors of what does not fit together.
var (
	ErrLoadBalancedWithMultipleHosts    = connstring.ErrLoadBalancedWithMultipleHosts
	ErrLoadBalancedWithReplicaSet       = connstring.ErrLoadBalancedWithReplicaSet
	ErrLoadBalancedWithDirectConnection = connstring.ErrLoadBalancedWithDirectConnection
	ErrSRVMaxHostsWithReplicaSet        = connstring.ErrSRVMaxHostsWithReplicaSet
	ErrSRVMaxHostsWithLoadBalanced      = connstring.ErrSRVMaxHostsWithLoadBalanced
)

// IsValidServerMonitoringMode reports whether mode is one of them.
func IsValidServerMonitoringMode(mode string) bool {
	return connstring.IsValidServerMonitoringMode(mode)
}

// Parse reads a connection string. The hosts of a mongodb+srv string are looked up.
func Parse(s string) (*ConnString, error) { return of(connstring.Parse(s)) }

// ParseAndValidate is Parse and Validate.
func ParseAndValidate(s string) (*ConnString, error) { return of(connstring.ParseAndValidate(s)) }

func of(parsed *connstring.ConnString, err error) (*ConnString, error) {
	if err != nil {
		return nil, err
	}
	u := new(ConnString)
	copyFields(u, parsed)
	if err := u.wtimeout(); err != nil {
		return nil, err
	}
	return u, nil
}

// copyFields sets the fields that both structs have.
func copyFields(to, from any) {
	t, f := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range t.NumField() {
		if field := f.FieldByName(t.Type().Field(i).Name); field.IsValid() {
			t.Field(i).Set(field)
		}
	}
}

// wtimeout sets what only this version reads.
func (u *ConnString) wtimeout() error {
	_, text, _ := strings.Cut(u.Original, "?")
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil
	}
	for key, values := range query {
		if !strings.EqualFold(key, "wtimeoutMS") {
			continue
		}
		ms, err := strconv.Atoi(values[0])
		if err != nil || ms < 0 {
			return fmt.Errorf("invalid value for %q: %q", key, values[0])
		}
		u.WTimeout, u.WTimeoutSet = time.Duration(ms)*time.Millisecond, true
		delete(u.UnknownOptions, strings.ToLower(key))
	}
	return nil
}

// Validate returns an error if options do not fit together.
func (u *ConnString) Validate() error {
	of2 := new(connstring.ConnString)
	copyFields(of2, u)
	return of2.Validate()
}

// String returns the string that was parsed.
func (u *ConnString) String() string { return u.Original }

// HasAuthParameters reports whether the string asks for authentication.
func (u *ConnString) HasAuthParameters() bool {
	return u.AuthMechanism != "" || u.AuthMechanismProperties != nil || u.UsernameSet || u.PasswordSet
}
