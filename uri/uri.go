// Package uri reads connection strings for programs that need to know what one says: most often its
// default database, which the driver itself does not use.
//
//	u, err := uri.Parse(os.Getenv("MONGODB_URI"))
//	db := client.Database(cmp.Or(u.Database, "app"))
package uri

import (
	"fmt"
	"io"

	"allium/internal/uri"
)

// URI is what a connection string says. It holds no password.
type URI struct {
	// Hosts are the addresses that the string names: host:port with the host in lower case, or the
	// path of a Unix domain socket. It is empty for a mongodb+srv string.
	Hosts []string
	// SRVHost is the host name of a mongodb+srv string, in lower case, "" for other strings.
	SRVHost string
	// Database is the default database: the path of the string, "" if it has none. A credential is
	// looked up there unless authSource names another database.
	Database string
	// Username is the user, "" if there is none.
	Username string
	// AppName and ReplicaSet are the options of these names, "" if they are not given.
	AppName, ReplicaSet string
	// TLS reports whether connections are encrypted.
	TLS bool
	// Warnings say which options are ignored or deprecated, and why, in the order of the string.
	Warnings []string

	text string
}

// Parse reads a connection string. It does no I/O: a mongodb+srv string is not looked up in DNS.
// The error is the one that allium.Open returns for the string, and never contains a password.
// Unknown options, and values that an option does not allow, become warnings, as the URI Options
// specification requires.
func Parse(s string) (*URI, error) {
	cfg, err := uri.Parse(s)
	if err != nil {
		return nil, err
	}
	u := &URI{Hosts: cfg.Hosts, SRVHost: cfg.SRVHost, Database: cfg.Database, AppName: cfg.AppName,
		ReplicaSet: cfg.ReplicaSet,
		TLS:        cfg.TLSEnabled(), Warnings: cfg.Warnings, text: cfg.String()}
	if cfg.Credential != nil {
		u.Username = cfg.Credential.Username
	}
	return u, nil
}

// String returns the connection string with its secrets replaced, for logs.
func (u URI) String() string { return u.text }

// Format prints what String returns, whatever the verb.
func (u URI) Format(f fmt.State, _ rune) { io.WriteString(f, u.text) }
