package dns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"allium/internal/failure"
	"allium/internal/flight"
)

// Resolver asks DNS. A *net.Resolver is one. If it also is a TTLResolver, the records' time to live
// is known.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// TTLResolver tells for how long SRV records are valid: the shortest time to live among them, 0 if
// it is not known.
type TTLResolver interface {
	LookupSRVTTL(ctx context.Context, service, proto, name string) (addrs []*net.SRV, ttl time.Duration, err error)
}

// What DNS can make a client do is bounded, whoever answers.
const (
	// MaxHosts is how many servers are used of those that DNS names, unless srvMaxHosts says: each
	// costs a monitor and a pool.
	MaxHosts = 1000
	// maxRecords is how many SRV records are looked at. A message has room for fewer.
	maxRecords = 1 << 14
	// maxText is how long a TXT record may be, in bytes. It has three options at most.
	maxText = 4096
	// maxRefused is how many records that are left out an error mentions.
	maxRefused = 5
)

// DefaultService is the service whose records are looked up if the connection string names none.
const DefaultService = "mongodb"

// Seedlist is what DNS says about a host name.
type Seedlist struct {
	Hosts []string      // the addresses, host:port in lower case
	TXT   string        // the text of the TXT record, "" if there is none
	TTL   time.Duration // of the SRV records, 0 if it is not known
}

// Lookup finds the servers and the default options of a host name. A nil resolver is the system's.
// It is an error if there are no SRV records, if one of them names a host outside of the host
// name's domain, or if there are several TXT records. Both are asked for at the same time.
func Lookup(ctx context.Context, r Resolver, service, host string) (*Seedlist, error) {
	ctx, cancel := context.WithCancel(ctx) // without servers, the text is of no use
	defer cancel()
	type answer struct {
		text string
		err  error
	}
	txt := make(chan answer, 1)
	go func() {
		var a answer
		a.err = flight.Apart(func() (err error) { // the resolver may be the program's
			a.text, err = lookupTXT(ctx, orSystem(r), host)
			return err
		})
		txt <- a
	}()
	hosts, ttl, err := LookupHosts(ctx, r, service, host)
	if err != nil {
		return nil, err
	}
	a := <-txt
	if a.err != nil {
		return nil, a.err
	}
	return &Seedlist{Hosts: hosts, TXT: a.text, TTL: ttl}, nil
}

// LookupHosts finds the servers of a host name, for polling. Records that are malformed or name a
// host outside of the host name's domain are left out: then there is an error that says why beside
// the hosts that remain.
func LookupHosts(ctx context.Context, r Resolver, service, host string) (hosts []string, ttl time.Duration, err error) {
	if service == "" {
		service = DefaultService
	}
	// With the dot at the end the name is absolute: the system's search domains do not apply.
	records, ttl, err := lookupSRV(ctx, orSystem(r), service, host+".")
	if err == nil && len(records) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		err = fmt.Errorf("look up SRV records of _%s._tcp.%s: %w", service, host, err)
	}
	if n := len(records); n > maxRecords {
		return nil, 0, fmt.Errorf("look up SRV records of _%s._tcp.%s: there are %d, at most %d are read", service,
			host, n, maxRecords)
	}
	refused, more := []error{err}, 0
	seen := make(map[string]bool, len(records))
	for _, srv := range records {
		target := strings.ToLower(strings.TrimSuffix(srv.Target, "."))
		if err := verify(host, target); err != nil {
			if len(refused) > maxRefused {
				more++
				continue
			}
			refused = append(refused, err)
			continue
		}
		addr := net.JoinHostPort(target, strconv.Itoa(int(srv.Port)))
		if !seen[addr] { // named twice, it is still one of those that srvMaxHosts allows
			seen[addr] = true
			hosts = append(hosts, addr)
		}
	}
	if more > 0 {
		refused = append(refused, fmt.Errorf("and %d more", more))
	}
	return hosts, ttl, failure.Join(refused...)
}

func orSystem(r Resolver) Resolver {
	if r == nil {
		return System{}
	}
	return r
}

func lookupSRV(ctx context.Context, r Resolver, service, name string) ([]*net.SRV, time.Duration, error) {
	if t, ok := r.(TTLResolver); ok {
		return t.LookupSRVTTL(ctx, service, "tcp", name)
	}
	_, records, err := r.LookupSRV(ctx, service, "tcp", name)
	return records, 0, err
}

func lookupTXT(ctx context.Context, r Resolver, host string) (string, error) {
	records, err := r.LookupTXT(ctx, host+".")
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return "", nil
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("look up TXT record of %s: %w", host, err)
	case len(records) > 1:
		return "", fmt.Errorf("look up TXT record of %s: there are %d, only one is allowed", host, len(records))
	case len(records) == 0:
		return "", nil
	case len(records[0]) > maxText:
		return "", fmt.Errorf("look up TXT record of %s: it has %d bytes, at most %d are allowed", host,
			len(records[0]), maxText)
	}
	return records[0], nil
}

// verify refuses a target outside of the domain of the host name: what follows the first label, or
// all of a host name with fewer than three labels, which the target must then be below of. It also
// refuses what is no host name: with "[" in it, say, it would be no address that can be dialed.
func verify(host, target string) error {
	domain := host
	if strings.Count(host, ".") >= 2 {
		_, domain, _ = strings.Cut(host, ".")
	}
	if !strings.HasSuffix(target, "."+domain) {
		return fmt.Errorf("SRV record of %s names the host %s, which is not in the domain %s", host, target, domain)
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(target, "."+domain), ".") {
		if !isLabel(label) {
			return fmt.Errorf("SRV record of %s names %q, which is no host name", host, target)
		}
	}
	return nil
}

// isLabel reports whether a label of a name can be one of a host's. Underscores are in use, and a
// Resolver of the program's may return names that are not ASCII.
func isLabel(label string) bool {
	return label != "" && len(label) <= 63 && strings.IndexFunc(label, func(r rune) bool {
		return r < utf8.RuneSelf && r != '-' && r != '_' && (r < '0' || '9' < r) && (r < 'a' || 'z' < r)
	}) < 0
}

// Limit returns at most limit of the hosts, chosen at random (srvMaxHosts). A limit of 0 is
// MaxHosts.
func Limit(hosts []string, limit int) []string {
	if limit <= 0 {
		limit = MaxHosts
	}
	if limit >= len(hosts) {
		return hosts
	}
	chosen := make([]string, limit)
	for i, from := range rand.Perm(len(hosts))[:limit] {
		chosen[i] = hosts[from]
	}
	return chosen
}
