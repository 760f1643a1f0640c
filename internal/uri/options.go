package uri

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"allium/auth"
)

// option is one option of a connection string.
type option struct {
	name   string // as the specification spells it
	secret bool   // the value must never be shown
	list   bool   // may be given several times
	once   bool   // giving it twice is an error
	set    func(c *Config, name, value string) error
	// alias is the name of the option that this one is an older name of.
	alias string
	// note is a warning that the option always gets.
	note string
}

// impliesTLS reports whether the option is about how TLS is used. Also one without a value, or with
// a wrong one, shows that it is meant to be.
func (o *option) impliesTLS() bool { return o.name != "tls" && strings.HasPrefix(o.name, "tls") }

// invalidValue is the error of a value that an option does not allow: it is ignored with a warning.
type invalidValue struct{ want string }

func (e *invalidValue) Error() string { return "want " + e.want }

func invalid(format string, args ...any) error { return &invalidValue{fmt.Sprintf(format, args...)} }

var options = []option{
	{name: "appName", set: text(func(c *Config) *string { return &c.AppName })},
	{name: "authMechanism", set: func(c *Config, _, v string) error {
		c.credential().Mechanism = auth.Mechanism(v)
		return nil
	}},
	{name: "authMechanismProperties", secret: true, set: setAuthProperties},
	{name: "authSource", set: setAuthSource},
	{name: "gssapiServiceName", note: `is deprecated, use "authMechanismProperties=SERVICE_NAME:..."`,
		set: func(c *Config, _, v string) error {
			addProperty(c.credential(), "SERVICE_NAME", v)
			return nil
		}},
	{name: "compressors", set: setCompressors},
	{name: "connectTimeoutMS", set: millis(0, func(c *Config) **time.Duration { return &c.ConnectTimeout })},
	{name: "directConnection", set: flag(func(c *Config) **bool { return &c.Direct })},
	{name: "enableOverloadRetargeting", set: flag(func(c *Config) **bool { return &c.EnableOverloadRetargeting })},
	{name: "heartbeatFrequencyMS", set: millis(500, func(c *Config) **time.Duration { return &c.HeartbeatInterval })},
	{name: "journal", set: flag(func(c *Config) **bool { return &c.Journal })},
	{name: "loadBalanced", set: flag(func(c *Config) **bool { return &c.LoadBalanced })},
	{name: "localThresholdMS", set: millis(0, func(c *Config) **time.Duration { return &c.LocalThreshold })},
	{name: "secondaryAcceptableLatencyMS", alias: "localThresholdMS"},
	{name: "maxAdaptiveRetries", set: number(0, math.MaxInt32, func(c *Config) **int { return &c.MaxAdaptiveRetries })},
	{name: "maxConnecting", set: number(1, math.MaxInt32, func(c *Config) **int { return &c.MaxConnecting })},
	{name: "maxIdleTimeMS", set: millis(0, func(c *Config) **time.Duration { return &c.MaxIdleTime })},
	{name: "maxPoolSize", set: number(0, math.MaxInt32, func(c *Config) **int { return &c.MaxPoolSize })},
	{name: "minPoolSize", set: number(0, math.MaxInt32, func(c *Config) **int { return &c.MinPoolSize })},
	{name: "maxStalenessSeconds", set: setMaxStaleness},
	{name: "proxyHost", once: true, set: text(func(c *Config) *string { return &c.Proxy.Host })},
	{name: "proxyPort", once: true, set: setProxyPort},
	{name: "proxyUsername", once: true, set: text(func(c *Config) *string { return &c.Proxy.Username })},
	{name: "proxyPassword", once: true, secret: true,
		set: secret(func(c *Config) *auth.Secret { return &c.Proxy.Password })},
	{name: "readConcernLevel", set: text(func(c *Config) *string { return &c.ReadConcernLevel })},
	{name: "readPreference", set: oneOf(readPreferences, func(c *Config) *string { return &c.ReadPreference })},
	{name: "readPreferenceTags", list: true, set: setTags},
	{name: "replicaSet", set: text(func(c *Config) *string { return &c.ReplicaSet })},
	{name: "retryReads", set: flag(func(c *Config) **bool { return &c.RetryReads })},
	{name: "retryWrites", set: flag(func(c *Config) **bool { return &c.RetryWrites })},
	{name: "serverMonitoringMode",
		set: oneOf(monitoringModes, func(c *Config) *string { return &c.ServerMonitoringMode })},
	{name: "serverSelectionTimeoutMS",
		set: millis(1, func(c *Config) **time.Duration { return &c.ServerSelectionTimeout })},
	{name: "serverSelectionTryOnce", note: "is for single-threaded drivers and has no effect",
		set: func(*Config, string, string) error {
			return nil
		}},
	{name: "slaveOk", note: `is deprecated, use "readPreference=secondaryPreferred"`, set: setSlaveOk},
	{name: "socketTimeoutMS", set: millis(0, func(c *Config) **time.Duration { return &c.SocketTimeout })},
	{name: "srvMaxHosts", set: number(0, math.MaxInt32, func(c *Config) **int { return &c.SRVMaxHosts })},
	{name: "srvServiceName", set: setServiceName},
	{name: "timeoutMS", set: millis(0, func(c *Config) **time.Duration { return &c.Timeout })},
	{name: "tls", list: true, set: setTLS},
	{name: "ssl", list: true, set: setTLS},
	{name: "tlsAllowInvalidCertificates",
		set: flag(func(c *Config) **bool { return &c.TLSIs.AllowInvalidCertificates })},
	{name: "tlsAllowInvalidHostnames", set: flag(func(c *Config) **bool { return &c.TLSIs.AllowInvalidHostnames })},
	{name: "tlsCAFile", set: text(func(c *Config) *string { return &c.TLSIs.CAFile })},
	{name: "tlsCertificateKeyFile", set: text(func(c *Config) *string { return &c.TLSIs.CertificateKeyFile })},
	{name: "tlsCertificateKeyFilePassword", secret: true,
		set: secret(func(c *Config) *auth.Secret { return &c.TLSIs.CertificateKeyFilePassword })},
	{name: "tlsDisableCertificateRevocationCheck",
		set: flag(func(c *Config) **bool { return &c.TLSIs.DisableCertificateRevocationCheck })},
	{name: "tlsDisableOCSPEndpointCheck",
		set: flag(func(c *Config) **bool { return &c.TLSIs.DisableOCSPEndpointCheck })},
	{name: "tlsInsecure", set: flag(func(c *Config) **bool { return &c.TLSIs.Insecure })},
	{name: "w", set: setW},
	{name: "uuidRepresentation",
		set: oneOf(uuidRepresentations, func(c *Config) *string { return &c.UUIDRepresentation })},
	{name: "waitQueueTimeoutMS", set: millis(1, func(c *Config) **time.Duration { return &c.WaitQueueTimeout })},
	{name: "wTimeoutMS", set: millis(0, func(c *Config) **time.Duration { return &c.WTimeout })},
	{name: "wtimeout", alias: "wTimeoutMS"},
	{name: "zlibCompressionLevel", set: number(-1, 9, func(c *Config) **int { return &c.ZlibCompressionLevel })},
}

var (
	uuidRepresentations = []string{"standard", "javaLegacy", "csharpLegacy", "pythonLegacy", "unspecified"}
	readPreferences     = []string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}
	monitoringModes     = []string{"stream", "poll", "auto"}
	compressors         = []string{"snappy", "zlib", "zstd"}
)

// optionsByKey finds an option by its name in lower case.
var optionsByKey = func() map[string]*option {
	m := make(map[string]*option, len(options))
	for i := range options {
		m[foldKey(options[i].name)] = &options[i]
	}
	return m
}()

// foldKey lowers the ASCII letters of a key, and nothing else, as the specification says.
func foldKey(key string) string {
	b := []byte(key)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// hasSecret reports whether the value of an option must not be shown: also that of options that are
// not known, since a key that is spelt wrong may have a password as its value.
func hasSecret(key string) bool {
	o, ok := optionsByKey[foldKey(key)]
	return !ok || o.secret
}

// pair is an option as it was given.
type pair struct {
	key   string // in lower case
	value string // decoded
}

// splitOptions splits and decodes the options.
func splitOptions(s string) ([]pair, error) {
	var pairs []pair
	for part := range strings.SplitSeq(s, "&") {
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		switch {
		case key == "":
			return nil, errors.New("an option has no name")
		case !ok:
			return nil, fmt.Errorf("option %q has no value", key)
		}
		key, err := unescape(key)
		if err != nil {
			return nil, errors.New("the name of an option is not percent-encoded UTF-8")
		}
		if value, err = unescape(value); err != nil {
			return nil, fmt.Errorf("the value of option %q is not percent-encoded UTF-8", key)
		}
		pairs = append(pairs, pair{foldKey(key), value})
	}
	return pairs, nil
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

func (c *Config) applyOptions(s string) error {
	pairs, err := splitOptions(s)
	if err != nil {
		return err
	}
	given := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		given[p.key] = true
	}
	seen := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		o, ok := optionsByKey[p.key]
		if !ok {
			c.warn("option %q is not supported%s", p.key, suggest(p.key))
			continue
		}
		c.tlsImplied = c.tlsImplied || o.impliesTLS()
		name := o.name
		if o.note != "" {
			c.warn("option %q %s", o.name, o.note)
		}
		if o.alias != "" {
			if given[foldKey(o.alias)] {
				c.warn("deprecated option %q is ignored, since %q is there", o.name, o.alias)
				continue
			}
			c.warn("option %q is deprecated, use %q", o.name, o.alias)
			o = optionsByKey[foldKey(o.alias)]
		}
		if seen[o.name] && !o.list {
			if o.once {
				return fmt.Errorf("option %q is given more than once", name)
			}
			c.warn("option %q is given more than once, the first value counts", name)
			continue
		}
		seen[o.name] = true
		if err := o.set(c, name, p.value); err != nil {
			if _, ok := errors.AsType[*invalidValue](err); !ok {
				return fmt.Errorf("option %q: %w", name, err)
			}
			if o.secret {
				c.warn("value of option %q is ignored: %v", name, err)
			} else {
				c.warn("value %q of option %q is ignored: %v", p.value, name, err)
			}
		}
	}
	return nil
}

// suggest returns the option that somebody may have meant who wrote key, to be appended to a
// warning; "" if none is near.
func suggest(key string) string {
	best, least := "", max(2, len(key)/4)+1
	for i := range options {
		if d := distance(key, foldKey(options[i].name)); d < least {
			best, least = options[i].name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance returns how many letters must be inserted, left out or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := last
			if a[i] != b[j] {
				d++
			}
			last = row[j+1]
			row[j+1] = min(d, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}

func text(field func(*Config) *string) func(*Config, string, string) error {
	return func(c *Config, _, v string) error { *field(c) = v; return nil }
}

func secret(field func(*Config) *auth.Secret) func(*Config, string, string) error {
	return func(c *Config, _, v string) error { *field(c) = auth.Secret(v); return nil }
}

func oneOf(values []string, field func(*Config) *string) func(*Config, string, string) error {
	return func(c *Config, _, v string) error {
		if !slices.Contains(values, v) {
			return invalid("one of %s", strings.Join(values, ", "))
		}
		*field(c) = v
		return nil
	}
}

func parseInt(v string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid("a whole number from %d to %d", least, most)
	}
	return n, nil
}

func number(least, most int64, field func(*Config) **int) func(*Config, string, string) error {
	return func(c *Config, _, v string) error {
		n, err := parseInt(v, least, most)
		if err == nil {
			*field(c) = new(int(n))
		}
		return err
	}
}

func millis(least int64, field func(*Config) **time.Duration) func(*Config, string, string) error {
	return func(c *Config, _, v string) error {
		n, err := parseInt(v, least, math.MaxInt64)
		if err != nil {
			return invalid("a whole number of milliseconds, at least %d", least)
		}
		*field(c) = new(duration(n))
		return nil
	}
}

// longest is what greater times are taken for: 73 years. The sum of two still is a time.Duration.
const longest = time.Duration(1 << 61)

// duration returns a number of milliseconds as a time.
func duration(ms int64) time.Duration {
	return time.Duration(min(ms, longest.Milliseconds())) * time.Millisecond
}

// legacyBool are the older spellings of true and false.
var legacyBool = map[string]bool{
	"1": true, "yes": true, "y": true, "t": true,
	"0": false, "-1": false, "no": false, "n": false, "f": false,
}

// parseBool reads the value of a boolean option, and warns of the older spellings.
func (c *Config) parseBool(name, v string) (bool, error) {
	switch v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if b, ok := legacyBool[v]; ok {
		c.warn("value %q of option %q is deprecated, use \"%v\"", v, name, b)
		return b, nil
	}
	return false, invalid("true or false")
}

func flag(field func(*Config) **bool) func(*Config, string, string) error {
	return func(c *Config, name, v string) error {
		b, err := c.parseBool(name, v)
		if err == nil {
			*field(c) = &b
		}
		return err
	}
}

func setTLS(c *Config, name, v string) error {
	b, err := c.parseBool(name, v)
	if err != nil {
		return err
	}
	if c.TLS != nil && *c.TLS != b {
		return errors.New(`all values of "tls" and "ssl" must be the same`)
	}
	c.TLS = &b
	return nil
}

func setCompressors(c *Config, _, v string) error {
	for name := range strings.SplitSeq(v, ",") {
		switch {
		case !slices.Contains(compressors, name):
			c.warn("compressor %q is not supported, want one of %s", name, strings.Join(compressors, ", "))
		case !slices.Contains(c.Compressors, name):
			c.Compressors = append(c.Compressors, name)
		}
	}
	return nil
}

// setMaxStaleness takes a bound that is too small, too: to leave it out would let reads be as stale
// as it gets. Whether it is too small depends on the deployment and the heartbeat interval, so that
// server selection says so (specification: Max Staleness).
func setMaxStaleness(c *Config, _, v string) error {
	n, err := parseInt(v, -1, math.MaxInt32)
	if err != nil {
		return invalid("-1 or a whole number from 90")
	}
	c.MaxStaleness = new(time.Duration(n) * time.Second)
	return nil
}

func setProxyPort(c *Config, _, v string) error {
	n, err := parseInt(v, 1, math.MaxUint16)
	if err != nil {
		return err
	}
	c.Proxy.Port = int(n)
	return nil
}

func setSlaveOk(c *Config, name, v string) error {
	b, err := c.parseBool(name, v)
	if err == nil && b {
		c.slaveOk = true
	}
	return err
}

// setServiceName takes the name of a service as RFC 6335, section 5.1 defines it, except for its
// length: with the "_" before it, it is a label of DNS.
func setServiceName(c *Config, _, v string) error {
	letter := false
	for i, r := range []byte(v) {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			letter = true
		case '0' <= r && r <= '9':
		case r == '-' && i > 0 && i < len(v)-1 && v[i-1] != '-':
		default:
			return errServiceName
		}
	}
	if !letter || len(v) > 62 {
		return errServiceName
	}
	c.SRVServiceName = v
	return nil
}

var errServiceName = invalid("at most 62 letters, digits and single hyphens in between, with a letter among them")

func setW(c *Config, _, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	switch {
	case v == "":
		return invalid("a number or a name")
	case err != nil:
		c.W = v
	case n < 0:
		return fmt.Errorf("%d is negative", n)
	default:
		c.W = int(n)
	}
	return nil
}

// parsePairs reads comma separated key:value pairs. A value may contain colons.
func parsePairs(v string) (map[string]string, error) {
	m := make(map[string]string)
	if v == "" {
		return m, nil
	}
	for part := range strings.SplitSeq(v, ",") {
		key, value, ok := strings.Cut(part, ":")
		if !ok || key == "" {
			return nil, invalid("comma separated key:value pairs")
		}
		m[key] = value
	}
	return m, nil
}

func setTags(c *Config, _, v string) error {
	tags, err := parsePairs(v)
	if err == nil {
		c.ReadPreferenceTags = append(c.ReadPreferenceTags, tags)
	}
	return err
}

func setAuthSource(c *Config, _, v string) error {
	if v == "" {
		return errors.New("is empty")
	}
	c.authSource = v
	return nil
}

func setAuthProperties(c *Config, _, v string) error {
	props, err := parsePairs(v)
	if err != nil {
		return invalid("comma separated key:value pairs (a value with a comma cannot be given in a connection string)")
	}
	for key, value := range props {
		addProperty(c.credential(), key, value)
	}
	return nil
}
