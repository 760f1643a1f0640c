package mongo

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"allium"
	"allium/auth"
	"allium/collation"
	"allium/consistency"
	aevent "allium/event"
	"go.mongodb.org/mongo-driver/v2/internal/optionsutil"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/tag"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// settings returns the options of a client as Allium's, and the connection string that they belong
// to: empty, unless the servers are those of an SRV record, which is looked up again and again.
func (c *Client) settings(o *options.ClientOptions) (uri string, s allium.ClientOptions, err error) {
	s = allium.ClientOptions{
		Hosts: o.Hosts, AppName: set(o.AppName), ReplicaSet: set(o.ReplicaSet), Direct: o.Direct,
		LoadBalanced:   o.LoadBalanced,
		ReadPreference: readPreference(o.ReadPreference), ReadConcern: readConcern(o.ReadConcern),
		WriteConcern: writeConcern(o.WriteConcern),
		BSON:         c.way().Options(), Timeout: o.Timeout, RetryReads: o.RetryReads, RetryWrites: o.RetryWrites,
		EnableOverloadRetargeting: o.EnableOverloadRetargeting, ServerSelectionTimeout: o.ServerSelectionTimeout,
		ConnectTimeout:    o.ConnectTimeout,
		HeartbeatInterval: o.HeartbeatInterval, LocalThreshold: o.LocalThreshold,
		ServerMonitoringMode: allium.ServerMonitoringMode(set(o.ServerMonitoringMode)),
		MaxPoolSize:          number(o.MaxPoolSize), MinPoolSize: number(o.MinPoolSize),
		MaxConnecting: number(o.MaxConnecting),
		MaxIdleTime:   o.MaxConnIdleTime,
		Compressors:   o.Compressors, ZlibCompressionLevel: o.ZlibLevel, Dialer: o.Dialer,
		CommandMonitor: commandMonitor(o.Monitor), PoolMonitor: poolMonitor(o.PoolMonitor),
	}
	states, _ := optionsutil.Value(o.Custom, coding.Described).(*coding.States)
	s.ServerMonitor = serverMonitor(o.ServerMonitor, states)
	s.Compressors = slices.DeleteFunc(slices.Clone(s.Compressors), func(name string) bool {
		return !slices.Contains([]string{"snappy", "zlib", "zstd"}, name) // is left out, as servers do
	})
	if t := o.ServerSelectionTimeout; t != nil && *t == 0 {
		forever := 100 * 365 * 24 * time.Hour
		s.ServerSelectionTimeout = &forever
	}
	if o.MaxConnecting != nil && *o.MaxConnecting == 0 {
		s.MaxConnecting = nil // the default
	}
	if d, ok := optionsutil.Value(o.Custom, coding.SocketTimeout).(time.Duration); ok {
		s.SocketTimeout = &d
	}
	if o.MaxAdaptiveRetries != nil {
		n := int(*o.MaxAdaptiveRetries)
		s.MaxAdaptiveRetries = &n
	}
	if o.DriverInfo != nil {
		info := allium.DriverInfo(*o.DriverInfo)
		s.DriverInfo = &info
	}
	if o.ServerAPIOptions != nil {
		s.ServerAPI = &allium.ServerAPI{Version: allium.ServerAPIVersion(o.ServerAPIOptions.ServerAPIVersion),
			Strict: o.ServerAPIOptions.Strict, DeprecationErrors: o.ServerAPIOptions.DeprecationErrors}
	}
	if o.Auth != nil {
		credential(&s, o.Auth)
	}
	switch {
	case o.Deployment != nil:
		mocked(&s, o.Deployment)
	case len(s.Hosts) == 0:
		s.Hosts = []string{"localhost:27017"}
	case isSRV(o.GetURI()):
		uri, s.Hosts = srvURI(o), nil
		s.SRVMaxHosts, s.SRVServiceName = o.SRVMaxHosts, set(o.SRVServiceName)
	}
	if o.TLSConfig != nil {
		s.TLS = o.TLSConfig
	} else if uri != "" {
		off := false
		s.UseTLS = &off
	}
	if set(o.DisableOCSPEndpointCheck) || set(o.DisableCertificateRevocationCheck) {
		query := url.Values{}
		if set(o.DisableOCSPEndpointCheck) {
			query.Set("tlsDisableOCSPEndpointCheck", "true")
		} else {
			query.Set("tlsDisableCertificateRevocationCheck", "true")
		}
		if uri == "" && s.TLS != nil {
			uri = "mongodb://localhost/?tls=true&" + query.Encode() // Hosts replace the host
		} else if uri != "" {
			uri += "?" + query.Encode()
		}
	}
	s.Logger, s.LogLevels, s.MaxLogDocumentLength = logger(o.LoggerOptions)
	unused(s.Logger, o)
	if a := o.AutoEncryptionOptions; a != nil {
		s.Encryption, err = c.autoEncryption(o, a, s.Logger)
	}
	return uri, s, err
}

// unused tells of settings that have no effect here, once for a client.
func unused(log *slog.Logger, o *options.ClientOptions) {
	if log == nil {
		log = slog.Default()
	}
	if o.HTTPClient != nil && o.HTTPClient != options.Client().HTTPClient {
		log.Debug("the setting HTTPClient is not used: requests over HTTP are made with a client of the driver's own")
	}
	if o.ZstdLevel != nil {
		log.Debug("the setting ZstdLevel is not used: the level is the compressor's own")
	}
	if o.Crypt != nil {
		log.Debug("the setting Crypt is not used: see AutoEncryptionOptions")
	}
}

func isSRV(uri string) bool { return strings.HasPrefix(uri, "mongodb+srv://") }

// srvURI returns the connection string of the options without all but its host: the options have
// what was in it.
func srvURI(o *options.ClientOptions) string {
	u, err := url.Parse(o.GetURI())
	if err != nil {
		rest := strings.TrimPrefix(o.GetURI(), "mongodb+srv://")
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			rest = rest[i+1:]
		}
		host, _, _ := strings.Cut(rest, "/")
		return "mongodb+srv://" + host + "/"
	}
	return "mongodb+srv://" + u.Host + "/"
}

func number(n *uint64) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

func readPreference(rp *readpref.ReadPref) *consistency.ReadPreference {
	if rp == nil {
		return nil
	}
	out := &consistency.ReadPreference{Mode: consistency.ReadMode(rp.Mode().String()), Hedge: rp.HedgeEnabled()}
	if d, ok := rp.MaxStaleness(); ok {
		out.MaxStaleness = d
	}
	for _, set := range rp.TagSets() {
		tags := aevent.TagSet{}
		for _, t := range set {
			tags[t.Name] = t.Value
		}
		out.TagSets = append(out.TagSets, tags)
	}
	return out
}

func readConcern(rc *readconcern.ReadConcern) *consistency.ReadConcern {
	if rc == nil {
		return nil
	}
	return &consistency.ReadConcern{Level: consistency.ReadLevel(rc.Level)}
}

func writeConcern(wc *writeconcern.WriteConcern) *consistency.WriteConcern {
	if wc == nil {
		return nil
	}
	if w, ok := wc.W.(coding.TimedW); ok {
		return &consistency.WriteConcern{W: w.W, Journal: wc.Journal, Timeout: w.Timeout}
	}
	return &consistency.WriteConcern{W: wc.W, Journal: wc.Journal}
}

func tagSet(tags aevent.TagSet) tag.Set {
	if len(tags) == 0 {
		return nil
	}
	out := tag.NewTagSetFromMap(tags)
	slices.SortFunc(out, func(a, b tag.Tag) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// collated returns a collation as Allium's. A flag that is false is left to the server.
func collated(c *options.Collation) *allium.Collation {
	if c == nil {
		return nil
	}
	flag := func(b bool) *bool {
		if !b {
			return nil
		}
		return &b
	}
	return &allium.Collation{
		Locale: c.Locale, CaseLevel: flag(c.CaseLevel), CaseFirst: collation.CaseFirst(c.CaseFirst),
		Strength:        collation.Strength(c.Strength),
		NumericOrdering: flag(c.NumericOrdering), Alternate: collation.Alternate(c.Alternate),
		MaxVariable:   collation.MaxVariable(c.MaxVariable),
		Normalization: flag(c.Normalization), Backwards: flag(c.Backwards),
	}
}

// credential sets how the client authenticates.
func credential(s *allium.ClientOptions, a *options.Credential) {
	properties := map[string]string{}
	for name, value := range a.AuthMechanismProperties {
		properties[name] = value
	}
	c := &auth.Credential{
		Username: a.Username, Password: auth.Secret(a.Password), PasswordSet: a.PasswordSet, Source: a.AuthSource,
		Mechanism: auth.Mechanism(a.AuthMechanism), Properties: properties,
	}
	s.Credential = c
	switch c.Mechanism {
	case "", auth.MechanismScramSHA1, auth.MechanismScramSHA256, auth.MechanismPlain:
		c.PasswordSet, c.Properties = true, nil
		if c.Username == "" { // connections fail, not Connect
			s.Credential, s.Credentials = nil, func(context.Context) (auth.Credential, error) { return *c, nil }
		}
	case auth.MechanismX509:
		s.Credential = &auth.Credential{Username: c.Username, Mechanism: c.Mechanism}
	case auth.MechanismAWS:
		s.Credential = &auth.Credential{Source: c.Source, Mechanism: c.Mechanism}
		if c.Username != "" || c.Password != "" {
			keys := auth.AWSCredentials{AccessKeyID: c.Username, SecretAccessKey: c.Password,
				SessionToken: auth.Secret(properties["AWS_SESSION_TOKEN"])}
			s.AWSCredentials = func(context.Context) (auth.AWSCredentials, error) { return keys, nil }
		}
	}
	s.AllowPlainWithoutTLS = a.AuthMechanism == "PLAIN"
	if a.OIDCMachineCallback != nil || a.OIDCHumanCallback != nil {
		s.OIDC = &auth.OIDC{Callback: oidc(a.OIDCMachineCallback), HumanCallback: oidc(a.OIDCHumanCallback)}
		if hosts, ok := properties["ALLOWED_HOSTS"]; ok {
			s.OIDC.AllowedHosts = strings.Split(hosts, ",")
			delete(properties, "ALLOWED_HOSTS")
		}
	}
	if p := a.AWSCredentialsProvider; p != nil {
		s.AWSCredentials = func(ctx context.Context) (auth.AWSCredentials, error) {
			c, err := p.Retrieve(ctx)
			return auth.AWSCredentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: auth.Secret(c.SecretAccessKey),
				SessionToken: auth.Secret(c.SessionToken)}, err
		}
	}
}

func oidc(callback options.OIDCCallback) auth.OIDCCallback {
	if callback == nil {
		return nil
	}
	return func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
		args := &options.OIDCArgs{Version: p.Version}
		if p.IDP != nil {
			info := options.IDPInfo(*p.IDP)
			args.IDPInfo = &info
		}
		if p.RefreshToken != "" {
			args.RefreshToken = &p.RefreshToken
		}
		c, err := callback(ctx, args)
		if err != nil || c == nil {
			return auth.OIDCCredential{}, err
		}
		out := auth.OIDCCredential{AccessToken: c.AccessToken, RefreshToken: set(c.RefreshToken)}
		if c.ExpiresAt != nil {
			out.ExpiresIn = max(time.Until(*c.ExpiresAt), time.Nanosecond)
		}
		return out, nil
	}
}

// logger returns what takes the log messages, and which.
func logger(o *options.LoggerOptions) (*slog.Logger, map[allium.LogComponent]slog.Level, int) {
	if o == nil {
		return nil, nil, 0
	}
	levels := map[allium.LogComponent]slog.Level{}
	for component, name := range map[options.LogComponent]allium.LogComponent{
		options.LogComponentCommand: allium.LogCommand, options.LogComponentTopology: allium.LogTopology,
		options.LogComponentServerSelection: allium.LogServerSelection,
		options.LogComponentConnection:      allium.LogConnection,
	} {
		level := max(o.ComponentLevels[component], o.ComponentLevels[options.LogComponentAll])
		switch {
		case level >= options.LogLevelDebug:
			levels[name] = slog.LevelDebug
		case level >= options.LogLevelInfo:
			levels[name] = slog.LevelInfo
		default:
			levels[name] = slog.LevelError + 100 // nothing
		}
	}
	return slog.New(newLogHandler(o)), levels, int(o.MaxDocumentLength)
}
