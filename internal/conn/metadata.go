package conn

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"allium/bson"
	"allium/internal/version"
)

// DriverName is what the driver tells servers that it is.
const DriverName = "allium"

const (
	maxMetadata = 512 // bytes of the client document
	maxAppName  = 128 // bytes
)

// DriverInfo is what a library that wraps the driver adds to the driver's name, version and
// platform. Empty fields add nothing. No field may contain "|".
type DriverInfo struct {
	Name     string
	Version  string
	Platform string
}

// Metadata is the client document of the handshake (specification: MongoDB Handshake). It is safe
// for concurrent use. A nil Metadata is that of a client without an application name.
type Metadata struct {
	mu      sync.Mutex
	appName string
	infos   []DriverInfo
	env     environment
	doc     bson.Raw
}

var defaultMetadata = sync.OnceValue(func() *Metadata {
	m, err := NewMetadata("")
	if err != nil {
		panic(err) // the driver's own parts fit
	}
	return m
})

// NewMetadata returns the metadata of a client, with what it knows of its environment at this
// moment. It is an error if the application's name has more than 128 bytes, or if an info is
// refused as Append says.
func NewMetadata(appName string, infos ...DriverInfo) (*Metadata, error) {
	if len(appName) > maxAppName {
		return nil, fmt.Errorf("application name has %d bytes, at most %d are allowed", len(appName), maxAppName)
	}
	if !utf8.ValidString(appName) || strings.Contains(appName, "\x00") {
		return nil, errors.New("application name is not valid UTF-8 without NUL")
	}
	m := &Metadata{appName: appName, env: readEnvironment()}
	if err := m.append(infos...); err != nil {
		return nil, err
	}
	return m, nil
}

// Append adds what a wrapping library says about itself; connections made from then on tell it to
// the server. An info that is there already is not added again. It is an error if a field contains
// "|", is not valid UTF-8, or does not fit into the 512 bytes that servers accept.
func (m *Metadata) Append(info DriverInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.append(info)
}

func (m *Metadata) append(infos ...DriverInfo) error {
	all := slices.Clone(m.infos)
	for _, info := range infos {
		for _, field := range []string{info.Name, info.Version, info.Platform} {
			if strings.Contains(field, "|") {
				return fmt.Errorf("driver info %q contains the delimiter \"|\"", field)
			}
			if !utf8.ValidString(field) || strings.Contains(field, "\x00") {
				return fmt.Errorf("driver info %q is not valid UTF-8 without NUL", field)
			}
		}
		if info != (DriverInfo{}) && !slices.Contains(all, info) {
			all = append(all, info)
		}
	}
	doc, err := m.build(all)
	if err != nil {
		return err
	}
	m.infos, m.doc = all, doc
	return nil
}

// Document returns the client document as it is now. It must not be written to.
func (m *Metadata) Document() bson.Raw {
	if m == nil {
		m = defaultMetadata()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doc
}

// build makes the document, and leaves out what the specification's rules of truncation say until
// it is small enough.
func (m *Metadata) build(infos []DriverInfo) (bson.Raw, error) {
	name, release, platform := DriverName, version.Driver(), runtime.Version()
	for _, info := range infos {
		name, release, platform = join(name, info.Name), join(release, info.Version), join(platform, info.Platform)
	}
	env := m.env
	doc := m.encode(name, release, platform, &env)
	for _, shrink := range []func(){
		func() { env = environment{faas: env.faas, os: env.os} },
		func() { env.os = osInfo{kind: env.os.kind} },
		func() { env = environment{os: env.os} },
		func() { platform = truncate(platform, len(platform)-(len(doc)-maxMetadata)) },
	} {
		if len(doc) <= maxMetadata {
			return doc, nil
		}
		shrink()
		doc = m.encode(name, release, platform, &env)
	}
	if len(doc) > maxMetadata {
		return nil, fmt.Errorf("driver infos do not fit: client metadata would have %d bytes, servers accept %d",
			len(doc), maxMetadata)
	}
	return doc, nil
}

func join(s, more string) string {
	if more == "" {
		return s
	}
	return s + "|" + more
}

// truncate cuts s down to at most n bytes without splitting a character.
func truncate(s string, n int) string {
	if n <= 0 {
		return ""
	}
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (m *Metadata) encode(name, version, platform string, env *environment) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	if m.appName != "" {
		doc, out := bson.BeginDocumentElement(dst, "application")
		out = bson.AppendString(out, "name", m.appName)
		dst = bson.EndDocument(out, doc)
	}
	driver, dst := bson.BeginDocumentElement(dst, "driver")
	dst = bson.AppendString(dst, "name", name)
	dst = bson.AppendString(dst, "version", version)
	dst = bson.EndDocument(dst, driver)
	system, dst := bson.BeginDocumentElement(dst, "os")
	dst = bson.AppendString(dst, "type", env.os.kind)
	dst = appendSet(dst, "name", env.os.name)
	dst = appendSet(dst, "architecture", env.os.architecture)
	dst = appendSet(dst, "version", env.os.version)
	dst = bson.EndDocument(dst, system)
	dst = appendSet(dst, "platform", platform)
	dst = env.append(dst)
	return bson.EndDocument(dst, start)
}

// appendSet appends a string unless it is empty.
func appendSet(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return bson.AppendString(dst, key, value)
}

// osInfo is what is known about the operating system.
type osInfo struct{ kind, name, architecture, version string }

var osKinds = map[string]string{
	"linux": "Linux", "android": "Linux", "darwin": "Darwin", "ios": "Darwin", "windows": "Windows",
	"freebsd": "BSD", "netbsd": "BSD", "openbsd": "BSD", "dragonfly": "BSD",
	"aix": "Unix", "solaris": "Unix", "illumos": "Unix",
}

// readOS is called once per process: the operating system does not change.
var readOS = sync.OnceValue(func() osInfo {
	info := osInfo{kind: "unknown", name: runtime.GOOS, architecture: runtime.GOARCH}
	if kind, ok := osKinds[runtime.GOOS]; ok {
		info.kind = kind
	}
	release, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(release)) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			info.name = strings.ToValidUTF8(strings.Trim(strings.TrimSpace(v), `"'`), "")
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	info.version = strings.ToValidUTF8(strings.TrimSpace(string(kernel)), "")
	return info
})
