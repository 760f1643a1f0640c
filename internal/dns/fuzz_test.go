package dns

import (
	"context"
	"net"
	"strings"
	"testing"
)

// answers is a resolver that says what a test wants.
type answers struct {
	srv []*net.SRV
	txt []string
}

func (a answers) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", a.srv, nil
}
func (a answers) LookupTXT(context.Context, string) ([]string, error) { return a.txt, nil }

// FuzzAnswer takes any names as the targets of SRV records: a host that is believed lies in the
// domain of the connection string and has a port, and there is an error for each of the others.
func FuzzAnswer(f *testing.F) {
	f.Add("cluster.example.com", "a.example.com.", "b.example.com", "replicaSet=rs", uint16(27017))
	f.Add("cluster.example.com", "evil.com", "example.com", "", uint16(0))
	f.Add("localhost", "a.localhost", "localhost", "a\x00b", uint16(1))
	f.Add("mongo.local", "A.MONGO.LOCAL", "xmongo.local", "=", uint16(65535))
	f.Add("a.b.c", "d.b.c/x?y@z", "..b.c", "", uint16(1))
	f.Fuzz(func(t *testing.T, host, one, two, txt string, port uint16) {
		r := answers{srv: []*net.SRV{{Target: one, Port: port}, {Target: two, Port: port}}, txt: []string{txt}}
		hosts, _, err := LookupHosts(t.Context(), r, "", host)
		if (len(hosts) == 2) != (err == nil) {
			t.Fatalf("%d hosts and the error %v", len(hosts), err)
		}
		domain := host
		if strings.Count(host, ".") >= 2 {
			_, domain, _ = strings.Cut(host, ".")
		}
		for _, h := range hosts {
			name, _, err := net.SplitHostPort(h)
			if err != nil {
				t.Fatalf("%q is no address: %v", h, err)
			}
			if name != strings.ToLower(name) || !strings.HasSuffix(name, "."+domain) {
				t.Fatalf("%q is believed for %q", name, host)
			}
		}
		list, err := Lookup(t.Context(), r, "mongodb", host)
		if err == nil && (len(list.Hosts) != 2 || list.TXT != txt) || err != nil && len(hosts) == 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		if got := Limit(hosts, 1); len(hosts) > 0 && len(got) != 1 {
			t.Fatalf("%d hosts of at most one", len(got))
		}
	})
}
