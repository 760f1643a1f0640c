// Package dns looks up the hosts and options of mongodb+srv strings: that of version 2.
package dns

import "go.mongodb.org/mongo-driver/v2/x/mongo/driver/dns"

// A Resolver looks them up.
type Resolver = dns.Resolver

// DefaultResolver asks the system's resolver.
var DefaultResolver = dns.DefaultResolver
