package dns

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"

	"allium/internal/uri"
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
	f.Add("a.b.c.d", "e.b.c.d", "E.b.c.d.", strings.Repeat("x", maxText+1), uint16(5))
	f.Add("local", "[.LOCAL", "a b.local", "", uint16(65433))
	f.Add("a.b.c", "d.b.c/x?y@z", "..b.c", "", uint16(1))
	f.Fuzz(func(t *testing.T, host, one, two, txt string, port uint16) {
		r := answers{srv: []*net.SRV{{Target: one, Port: port}, {Target: two, Port: port}}, txt: []string{txt}}
		hosts, _, err := LookupHosts(t.Context(), r, "", host)
		named := 2
		if same := func(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }; same(one) == same(two) {
			named = 1
		}
		if (len(hosts) == named) != (err == nil) {
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
		if err == nil && (len(list.Hosts) != named || list.TXT != txt || len(txt) > maxText) || err != nil && len(hosts) == named && len(txt) <= maxText {
			t.Fatalf("%+v, %v", list, err)
		}
		if got := Limit(hosts, 1); len(hosts) > 0 && len(got) != 1 {
			t.Fatalf("%d hosts of at most one", len(got))
		}
	})
}

// FuzzText takes any text as the TXT record of a connection string, beside options of the string's
// own: a text that is believed sets the three options that it may set and no others, never one that
// the string has, and TLS stays on.
func FuzzText(f *testing.F) {
	f.Add("replicaSet=rs&authSource=admin", "")
	f.Add("loadBalanced=true", "replicaSet=mine")
	f.Add("tls=false", "tls=true")
	f.Add("authSource=%zz&authSource=b", "authSource=a")
	f.Add("readPreference=nearest&&=", "")
	f.Fuzz(func(t *testing.T, txt, own string) {
		before, err := uri.Parse("mongodb+srv://cluster.example.com/?" + own)
		if err != nil {
			return
		}
		c, _ := uri.Parse("mongodb+srv://cluster.example.com/?" + own)
		hosts := []string{"a.example.com:1"}
		if err := c.ApplySRV(hosts, txt); err != nil {
			return
		}
		if before.ReplicaSet != "" && c.ReplicaSet != before.ReplicaSet || before.AuthSource() != "" && c.AuthSource() != before.AuthSource() ||
			before.LoadBalanced != nil && *c.LoadBalanced != *before.LoadBalanced {
			t.Fatalf("the text %q changes what the string %q says", txt, own)
		}
		after := *c
		after.Hosts, after.ReplicaSet, after.LoadBalanced, after.Warnings = before.Hosts, before.ReplicaSet, before.LoadBalanced, before.Warnings
		if got, want := fmt.Sprintf("%#v", visible(&after)), fmt.Sprintf("%#v", visible(before)); got != want {
			t.Fatalf("the text %q sets %s, and the string says %s", txt, got, want)
		}
	})
}

// visible follows the exported fields of a configuration, with what their pointers refer to.
func visible(c *uri.Config) map[string]string {
	out := map[string]string{}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			x := v.Field(i)
			for x.Kind() == reflect.Pointer && !x.IsNil() {
				x = x.Elem()
			}
			out[f.Name] = fmt.Sprint(x.Interface())
		}
	}
	return out
}
