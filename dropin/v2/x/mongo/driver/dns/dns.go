// Package dns looks up what mongodb+srv strings stand for.
package dns

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// A Resolver looks up with these functions.
type Resolver struct {
	LookupSRV func(string, string, string) (string, []*net.SRV, error)
	LookupTXT func(string) ([]string, error)
}

// DefaultResolver uses the system's resolver.
var DefaultResolver = &Resolver{net.LookupSRV, net.LookupTXT}

// ParseHosts returns the hosts of a name's SRV record for the service srvName. They must lie in the
// name's domain: one that does not is an error, or left out if stopOnErr is false.
func (r *Resolver) ParseHosts(host string, srvName string, stopOnErr bool) ([]string, error) {
	if strings.Contains(host, ":") {
		return nil, fmt.Errorf("URI with srv must not include a port number")
	}
	_, records, err := r.LookupSRV(srvName, "tcp", host)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, record := range records {
		target := strings.TrimSuffix(record.Target, ".")
		if err := checkDomain(target, host); err != nil {
			if stopOnErr {
				return nil, err
			}
			continue
		}
		hosts = append(hosts, fmt.Sprintf("%s:%d", target, record.Port))
	}
	return hosts, nil
}

// checkDomain reports whether a host lies in the domain of a name: all of the name but its first
// part, or all of it if it has fewer than three.
func checkDomain(target, name string) error {
	domain := strings.ToLower(strings.TrimSuffix(name, "."))
	if parts := strings.Split(domain, "."); len(parts) >= 3 {
		domain = strings.Join(parts[1:], ".")
	}
	if len(target) <= len(domain)+1 || !strings.HasSuffix(strings.ToLower(target), "."+domain) {
		return errors.New(
			"Domain suffix from SRV record not matched input domain") //nolint:staticcheck // programs know the text
	}
	return nil
}

// GetConnectionArgsFromTXT returns the options in a name's TXT record, of which there may be one. A
// name without one has none.
func (r *Resolver) GetConnectionArgsFromTXT(host string) ([]string, error) {
	var args []string
	records, err := r.LookupTXT(host)
	var notFound *net.DNSError
	if errors.As(err, &notFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(records) > 1 {
		return nil, errors.New("multiple records from TXT not supported")
	}
	for _, record := range records {
		args = append(args, strings.FieldsFunc(record, func(c rune) bool { return c == '&' || c == ';' })...)
	}
	for _, arg := range args {
		key, _, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("invalid TXT option %q", arg)
		}
		switch strings.ToLower(key) {
		case "authsource", "replicaset", "loadbalanced":
		default:
			return nil, fmt.Errorf("cannot specify option %q in TXT record", key)
		}
	}
	return args, nil
}
