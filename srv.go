package allium

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"allium/internal/dns"
	"allium/internal/topology"
	"allium/internal/uri"
)

// lookupTimeout bounds the look-up of a mongodb+srv connection string when no connect timeout is
// set.
const lookupTimeout = defaultConnectTimeout

// discover replaces the host name of a mongodb+srv string by the servers that DNS names, and
// returns how to look for further ones. It returns nil for other strings.
func discover(cfg *uri.Config, r Resolver) (*topology.SRV, error) {
	if cfg.SRVHost == "" {
		return nil, nil
	}
	timeout := or(cfg.ConnectTimeout, lookupTimeout)
	if timeout <= 0 {
		timeout = lookupTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	service, host, limit := cfg.SRVServiceName, cfg.SRVHost, or(cfg.SRVMaxHosts, 0)
	list, err := dns.Lookup(ctx, r, service, host)
	if err != nil {
		return nil, err
	}
	if n := len(list.Hosts); limit == 0 && n > dns.MaxHosts {
		cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("DNS names %d servers for %s; %d of them are used, unless srvMaxHosts says how many", n, host, dns.MaxHosts))
	}
	if err := cfg.ApplySRV(dns.Limit(list.Hosts, limit), list.TXT); err != nil {
		return nil, err
	}
	// A load balancer stands for all servers behind it: there is nothing to look for.
	if or(cfg.LoadBalanced, false) {
		return nil, nil
	}
	return &topology.SRV{
		TTL: list.TTL, MaxHosts: cmp.Or(limit, dns.MaxHosts),
		Lookup: func(ctx context.Context) ([]string, time.Duration, error) {
			hosts, ttl, err := dns.LookupHosts(ctx, r, service, host)
			if err != nil {
				err = fmt.Errorf("rescan: %w", err)
			}
			return hosts, ttl, err
		},
	}, nil
}
