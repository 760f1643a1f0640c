package connstring

import "time"

// A ConnString is what a connection string says. A field that ends with Set tells whether the
// string has the option.
type ConnString struct {
	Original                                string
	AppName                                 string
	AuthMechanism                           string
	AuthMechanismProperties                 map[string]string
	AuthMechanismPropertiesSet              bool
	AuthSource                              string
	AuthSourceSet                           bool
	Compressors                             []string
	Connect                                 ConnectMode
	ConnectSet                              bool
	DirectConnection                        bool
	DirectConnectionSet                     bool
	ConnectTimeout                          time.Duration
	ConnectTimeoutSet                       bool
	Database                                string
	HeartbeatInterval                       time.Duration
	HeartbeatIntervalSet                    bool
	Hosts                                   []string
	J                                       bool
	JSet                                    bool
	LoadBalanced                            bool
	LoadBalancedSet                         bool
	LocalThreshold                          time.Duration
	LocalThresholdSet                       bool
	MaxConnIdleTime                         time.Duration
	MaxConnIdleTimeSet                      bool
	MaxPoolSize                             uint64
	MaxPoolSizeSet                          bool
	MinPoolSize                             uint64
	MinPoolSizeSet                          bool
	MaxConnecting                           uint64
	MaxConnectingSet                        bool
	Password                                string
	PasswordSet                             bool
	RawHosts                                []string
	ReadConcernLevel                        string
	ReadPreference                          string
	ReadPreferenceTagSets                   []map[string]string
	RetryWrites                             bool
	RetryWritesSet                          bool
	RetryReads                              bool
	RetryReadsSet                           bool
	MaxAdaptiveRetries                      uint
	MaxAdaptiveRetriesSet                   bool
	EnableOverloadRetargeting               bool
	EnableOverloadRetargetingSet            bool
	MaxStaleness                            time.Duration
	MaxStalenessSet                         bool
	ReplicaSet                              string
	Scheme                                  string
	ServerMonitoringMode                    string
	ServerSelectionTimeout                  time.Duration
	ServerSelectionTimeoutSet               bool
	SocketTimeout                           time.Duration
	SocketTimeoutSet                        bool
	SRVMaxHosts                             int
	SRVServiceName                          string
	SSL                                     bool
	SSLSet                                  bool
	SSLClientCertificateKeyFile             string
	SSLClientCertificateKeyFileSet          bool
	SSLClientCertificateKeyPassword         func() string
	SSLClientCertificateKeyPasswordSet      bool
	SSLCertificateFile                      string
	SSLCertificateFileSet                   bool
	SSLPrivateKeyFile                       string
	SSLPrivateKeyFileSet                    bool
	SSLInsecure                             bool
	SSLInsecureSet                          bool
	SSLCaFile                               string
	SSLCaFileSet                            bool
	SSLDisableCertificateRevocationCheck    bool
	SSLDisableCertificateRevocationCheckSet bool
	SSLDisableOCSPEndpointCheck             bool
	SSLDisableOCSPEndpointCheckSet          bool
	Timeout                                 time.Duration
	TimeoutSet                              bool
	WString                                 string
	WNumber                                 int
	WNumberSet                              bool
	Username                                string
	UsernameSet                             bool
	ZlibLevel                               int
	ZlibLevelSet                            bool
	ZstdLevel                               int
	ZstdLevelSet                            bool

	Options        map[string][]string
	UnknownOptions map[string][]string
}

// A ConnectMode says whether only the one host is connected to.
type ConnectMode uint8

// The modes.
const (
	// AutoConnect finds out what the deployment is.
	AutoConnect ConnectMode = iota
	// SingleConnect connects to the one host.
	SingleConnect
)

// String returns the mode's name in connection strings.
func (c ConnectMode) String() string {
	switch c {
	case AutoConnect:
		return "automatic"
	case SingleConnect:
		return "direct"
	}
	return "unknown"
}

// The schemes.
const (
	SchemeMongoDB    = "mongodb"
	SchemeMongoDBSRV = "mongodb+srv"
)

// The ways in which servers are monitored.
const (
	// ServerMonitoringModeAuto streams, but not in a function of a cloud.
	ServerMonitoringModeAuto = "auto"
	// ServerMonitoringModePoll asks again and again.
	ServerMonitoringModePoll = "poll"
	// ServerMonitoringModeStream lets servers tell their news.
	ServerMonitoringModeStream = "stream"
)

// IsValidServerMonitoringMode reports whether mode is one of them.
func IsValidServerMonitoringMode(mode string) bool {
	return mode == ServerMonitoringModeAuto || mode == ServerMonitoringModePoll || mode == ServerMonitoringModeStream
}

// String returns the string that was parsed.
func (u *ConnString) String() string { return u.Original }

// HasAuthParameters reports whether the string asks for authentication.
func (u *ConnString) HasAuthParameters() bool {
	return u.AuthMechanism != "" || u.AuthMechanismProperties != nil || u.UsernameSet || u.PasswordSet
}
