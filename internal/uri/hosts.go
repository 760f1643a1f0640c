package uri

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultPort = 27017
	// hostDelimiters are characters that no host name has, percent-encoded or not.
	hostDelimiters = " \"#,:<>@[\\]^`{|}?"
)

func (c *Config) parseHosts(s string) error {
	if s == "" {
		return errors.New("there is no host (paths of Unix domain sockets must be percent-encoded)")
	}
	for host := range strings.SplitSeq(s, ",") {
		addr, err := parseHost(host)
		if err != nil {
			return err
		}
		c.Hosts = append(c.Hosts, addr)
	}
	return nil
}

// ParseHosts returns the addresses that hosts stand for which do not come from a connection string:
// the path of a Unix domain socket stands as it is.
func ParseHosts(hosts []string) ([]string, error) {
	addrs := make([]string, len(hosts))
	for i, host := range hosts {
		if strings.HasPrefix(host, "/") {
			host = url.PathEscape(host)
		}
		var err error
		if addrs[i], err = parseHost(host); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// parseHost returns the address that one host identifier stands for. Its errors do not show what
// follows the host: if the "@" after a password is missing or escaped, that reads like a port.
func parseHost(s string) (string, error) {
	raw, port, hasPort, err := splitPort(s)
	if err != nil {
		return "", err
	}
	host, err := unescape(raw)
	if err != nil {
		return "", fmt.Errorf("host %q is not percent-encoded UTF-8", raw)
	}
	switch {
	case host == "":
		return "", errors.New("a host is empty")
	case strings.Contains(host, "\x00"):
		return "", fmt.Errorf("host %q contains a NUL", raw)
	case strings.Contains(host, "/"):
		if hasPort {
			return "", fmt.Errorf("host %q: a Unix domain socket has no port", raw)
		}
		if !strings.HasSuffix(host, ".sock") {
			return "", fmt.Errorf("host %q: the path of a Unix domain socket must end in \".sock\"", raw)
		}
		return host, nil
	case strings.HasPrefix(raw, "["):
		ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil || !ip.Is6() {
			return "", fmt.Errorf("host %q is not an IPv6 address", raw)
		}
	case strings.ContainsAny(host, hostDelimiters):
		return "", fmt.Errorf("host %q contains a character that a host name cannot have", raw)
	}
	number := uint64(defaultPort)
	if hasPort {
		if number, err = strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "", fmt.Errorf("host %q: the port must be a number from 1 to 65535", raw)
		}
	}
	return strings.ToLower(host) + ":" + strconv.FormatUint(number, 10), nil
}

// splitPort splits a host identifier at the colon before its port. An IPv6 address stands in
// brackets.
func splitPort(s string) (host, port string, hasPort bool, err error) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "", false, errors.New("an IPv6 address lacks its closing bracket")
		}
		host, port = s[:end+1], s[end+1:]
		if port == "" {
			return host, "", false, nil
		}
		if port[0] != ':' {
			return "", "", false, fmt.Errorf("host %q has text after its address", host)
		}
		return host, port[1:], true, nil
	}
	host, port, hasPort = strings.Cut(s, ":")
	if strings.Contains(port, ":") {
		return "", "", false, fmt.Errorf(
			"host %q is followed by more than one colon (an IPv6 address must stand in brackets)", host)
	}
	return host, port, hasPort, nil
}

// parseSRVHost reads the one host name of a mongodb+srv string.
func (c *Config) parseSRVHost(s string) error {
	switch {
	case s == "":
		return errors.New("there is no host")
	case strings.Contains(s, ","):
		return errors.New("a mongodb+srv string has one host name, not several")
	case strings.Contains(s, ":"):
		return errors.New("the host name of a mongodb+srv string has no port")
	}
	host, err := unescape(s)
	if err != nil || strings.ContainsAny(host, hostDelimiters+"/%\x00") {
		return fmt.Errorf("host %q is not a host name", s)
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for label := range strings.SplitSeq(host, ".") {
		if label == "" {
			return fmt.Errorf("host %q is not a host name", s)
		}
	}
	c.SRVHost = host
	return nil
}
