package connstring

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An option sets what one option of a string says.
type option func(u *ConnString, value string) error

// errValue is the error for a value that an option does not take; who calls the option names both.
var errValue = errors.New("invalid value")

func text(field func(u *ConnString) *string) option {
	return func(u *ConnString, value string) error {
		*field(u) = value
		return nil
	}
}

// file is text for a file of TLS, which switches TLS on.
func file(field func(u *ConnString) (*string, *bool)) option {
	return func(u *ConnString, value string) error {
		f, set := field(u)
		*f, *set = value, true
		u.SSL, u.SSLSet = true, true
		return nil
	}
}

func flag(field func(u *ConnString) (*bool, *bool)) option {
	return func(u *ConnString, value string) error {
		f, set := field(u)
		switch value {
		case "true":
			*f = true
		case "false":
			*f = false
		default:
			return errValue
		}
		*set = true
		return nil
	}
}

// secure is flag for an option that switches TLS on.
func secure(field func(u *ConnString) (*bool, *bool)) option {
	set := flag(field)
	return func(u *ConnString, value string) error {
		u.SSL, u.SSLSet = true, true
		return set(u, value)
	}
}

func duration(unit time.Duration, field func(u *ConnString) (*time.Duration, *bool)) option {
	return func(u *ConnString, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return errValue
		}
		f, set := field(u)
		*f, *set = time.Duration(n)*unit, true
		return nil
	}
}

func count[T uint | uint64](field func(u *ConnString) (*T, *bool)) option {
	return func(u *ConnString, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return errValue
		}
		f, set := field(u)
		*f, *set = T(n), true
		return nil
	}
}

func level(least, most, byDefault int, field func(u *ConnString) (*int, *bool)) option {
	return func(u *ConnString, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return errValue
		}
		if n == -1 {
			n = byDefault
		}
		f, set := field(u)
		*f, *set = n, true
		return nil
	}
}

// options are the options by their names in lower case.
var options = map[string]option{
	"appname":                 text(func(u *ConnString) *string { return &u.AppName }),
	"authmechanism":           text(func(u *ConnString) *string { return &u.AuthMechanism }),
	"authmechanismproperties": setProperties,
	"authsource": func(u *ConnString, value string) error {
		u.AuthSource, u.AuthSourceSet = value, true
		return nil
	},
	"compressors":      setCompressors,
	"connect":          setConnect,
	"directconnection": setDirect,
	"connecttimeoutms": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.ConnectTimeout, &u.ConnectTimeoutSet
	}),
	"heartbeatintervalms": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.HeartbeatInterval, &u.HeartbeatIntervalSet
	}),
	"heartbeatfrequencyms": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.HeartbeatInterval, &u.HeartbeatIntervalSet
	}),
	"journal":      flag(func(u *ConnString) (*bool, *bool) { return &u.J, &u.JSet }),
	"loadbalanced": flag(func(u *ConnString) (*bool, *bool) { return &u.LoadBalanced, &u.LoadBalancedSet }),
	"localthresholdms": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.LocalThreshold, &u.LocalThresholdSet
	}),
	"maxidletimems": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.MaxConnIdleTime, &u.MaxConnIdleTimeSet
	}),
	"maxpoolsize": count(func(u *ConnString) (*uint64, *bool) { return &u.MaxPoolSize, &u.MaxPoolSizeSet }),
	"minpoolsize": count(func(u *ConnString) (*uint64, *bool) { return &u.MinPoolSize, &u.MinPoolSizeSet }),
	"maxconnecting": count(func(u *ConnString) (*uint64, *bool) {
		return &u.MaxConnecting, &u.MaxConnectingSet
	}),
	"readconcernlevel":   text(func(u *ConnString) *string { return &u.ReadConcernLevel }),
	"readpreference":     text(func(u *ConnString) *string { return &u.ReadPreference }),
	"readpreferencetags": addTags,
	"retrywrites":        flag(func(u *ConnString) (*bool, *bool) { return &u.RetryWrites, &u.RetryWritesSet }),
	"retryreads":         flag(func(u *ConnString) (*bool, *bool) { return &u.RetryReads, &u.RetryReadsSet }),
	"maxadaptiveretries": count(func(u *ConnString) (*uint, *bool) {
		return &u.MaxAdaptiveRetries, &u.MaxAdaptiveRetriesSet
	}),
	"enableoverloadretargeting": flag(func(u *ConnString) (*bool, *bool) {
		return &u.EnableOverloadRetargeting, &u.EnableOverloadRetargetingSet
	}),
	"maxstaleness": duration(time.Second, func(u *ConnString) (*time.Duration, *bool) {
		return &u.MaxStaleness, &u.MaxStalenessSet
	}),
	"maxstalenessseconds": duration(time.Second, func(u *ConnString) (*time.Duration, *bool) {
		return &u.MaxStaleness, &u.MaxStalenessSet
	}),
	"replicaset":           text(func(u *ConnString) *string { return &u.ReplicaSet }),
	"servermonitoringmode": setMonitoring,
	"serverselectiontimeoutms": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.ServerSelectionTimeout, &u.ServerSelectionTimeoutSet
	}),
	"sockettimeoutms": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.SocketTimeout, &u.SocketTimeoutSet
	}),
	"srvmaxhosts":    setSRVMaxHosts,
	"srvservicename": text(func(u *ConnString) *string { return &u.SRVServiceName }),
	"ssl":            flag(func(u *ConnString) (*bool, *bool) { return &u.SSL, &u.SSLSet }),
	"tls":            flag(func(u *ConnString) (*bool, *bool) { return &u.SSL, &u.SSLSet }),
	"sslclientcertificatekeyfile": file(func(u *ConnString) (*string, *bool) {
		return &u.SSLClientCertificateKeyFile, &u.SSLClientCertificateKeyFileSet
	}),
	"tlscertificatekeyfile": file(func(u *ConnString) (*string, *bool) {
		return &u.SSLClientCertificateKeyFile, &u.SSLClientCertificateKeyFileSet
	}),
	"sslclientcertificatekeypassword": setKeyPassword,
	"tlscertificatekeyfilepassword":   setKeyPassword,
	"tlscertificatefile": file(func(u *ConnString) (*string, *bool) {
		return &u.SSLCertificateFile, &u.SSLCertificateFileSet
	}),
	"tlsprivatekeyfile": file(func(u *ConnString) (*string, *bool) {
		return &u.SSLPrivateKeyFile, &u.SSLPrivateKeyFileSet
	}),
	"sslinsecure": flag(func(u *ConnString) (*bool, *bool) {
		return &u.SSLInsecure, &u.SSLInsecureSet
	}),
	"tlsinsecure": flag(func(u *ConnString) (*bool, *bool) {
		return &u.SSLInsecure, &u.SSLInsecureSet
	}),
	"sslcertificateauthorityfile": file(func(u *ConnString) (*string, *bool) {
		return &u.SSLCaFile, &u.SSLCaFileSet
	}),
	"tlscafile": file(func(u *ConnString) (*string, *bool) {
		return &u.SSLCaFile, &u.SSLCaFileSet
	}),
	"timeoutms": duration(time.Millisecond, func(u *ConnString) (*time.Duration, *bool) {
		return &u.Timeout, &u.TimeoutSet
	}),
	"tlsdisableocspendpointcheck": secure(func(u *ConnString) (*bool, *bool) {
		return &u.SSLDisableOCSPEndpointCheck, &u.SSLDisableOCSPEndpointCheckSet
	}),
	"tlsdisablecertificaterevocationcheck": secure(func(u *ConnString) (*bool, *bool) {
		return &u.SSLDisableCertificateRevocationCheck, &u.SSLDisableCertificateRevocationCheckSet
	}),
	"w":                    setW,
	"zlibcompressionlevel": level(-1, 9, 6, func(u *ConnString) (*int, *bool) { return &u.ZlibLevel, &u.ZlibLevelSet }),
	"zstdcompressionlevel": level(-1, 22, 6, func(u *ConnString) (*int, *bool) {
		return &u.ZstdLevel, &u.ZstdLevelSet
	}),
}

func setProperties(u *ConnString, value string) error {
	u.AuthMechanismProperties = make(map[string]string)
	for pair := range strings.SplitSeq(value, ",") {
		key, v, ok := strings.Cut(pair, ":")
		if !ok || key == "" {
			return errors.New("invalid authMechanism property")
		}
		u.AuthMechanismProperties[key] = v
	}
	u.AuthMechanismPropertiesSet = true
	return nil
}

func setCompressors(u *ConnString, value string) error {
	u.Compressors = strings.Split(value, ",")
	return nil
}

func setConnect(u *ConnString, value string) error {
	switch strings.ToLower(value) {
	case "automatic":
		u.Connect = AutoConnect
	case "direct":
		u.Connect = SingleConnect
	default:
		return fmt.Errorf("invalid 'connect' value: %q", value)
	}
	u.ConnectSet = true
	if u.DirectConnectionSet && u.DirectConnection != (u.Connect == SingleConnect) {
		return fmt.Errorf("options connect=%q and directConnection=%v conflict", value, u.DirectConnection)
	}
	return nil
}

func setDirect(u *ConnString, value string) error {
	switch strings.ToLower(value) {
	case "true":
		u.DirectConnection = true
	case "false": // and stays true if it is
	default:
		return fmt.Errorf("invalid 'directConnection' value: %q", value)
	}
	u.DirectConnectionSet = true
	if u.ConnectSet && u.DirectConnection != (u.Connect == SingleConnect) {
		return fmt.Errorf("options connect=%q and directConnection=%q conflict", u.Connect, value)
	}
	return nil
}

func addTags(u *ConnString, value string) error {
	tags := make(map[string]string)
	if value != "" {
		for pair := range strings.SplitSeq(value, ",") {
			key, v, ok := strings.Cut(pair, ":")
			if !ok || strings.Contains(v, ":") {
				return errValue
			}
			tags[key] = v
		}
	}
	u.ReadPreferenceTagSets = append(u.ReadPreferenceTagSets, tags)
	return nil
}

func setMonitoring(u *ConnString, value string) error {
	if !IsValidServerMonitoringMode(value) {
		return errValue
	}
	u.ServerMonitoringMode = value
	return nil
}

func setSRVMaxHosts(u *ConnString, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return errValue
	}
	u.SRVMaxHosts = n
	return nil
}

func setKeyPassword(u *ConnString, value string) error {
	u.SSLClientCertificateKeyPassword, u.SSLClientCertificateKeyPasswordSet = func() string { return value }, true
	return nil
}

func setW(u *ConnString, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		u.WString, u.WNumber, u.WNumberSet = value, 0, false
		return nil
	}
	if n < 0 {
		return errValue
	}
	u.WNumber, u.WNumberSet, u.WString = n, true, ""
	return nil
}
