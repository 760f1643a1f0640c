package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestLookupTTL(t *testing.T) {
	for name, truncate := range map[string]bool{"datagrams": false, "streams": true} {
		t.Run(name, func(t *testing.T) {
			list, err := Lookup(t.Context(), nameServer(t, zone, truncate), "", "ttl.example.com")
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(list.Hosts)
			if want := []string{"a.example.com:1", "b.example.com:2", "c.example.com:3"}; !slices.Equal(list.Hosts, want) {
				t.Errorf("hosts %q, want %q", list.Hosts, want)
			}
			if list.TTL != 90*time.Second {
				t.Errorf("TTL %v, want 1m30s", list.TTL)
			}
		})
	}
}

// stub answers every question with the same hosts, as the standard library's resolver does: without
// a TTL.
type stub struct {
	targets []string
	txt     []string
	err     error
}

func (s stub) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	var out []*net.SRV
	for _, target := range s.targets {
		out = append(out, &net.SRV{Target: target + ".", Port: 27017})
	}
	return "", out, s.err
}

func (s stub) LookupTXT(context.Context, string) ([]string, error) { return s.txt, s.err }

// Initial DNS Seedlist Discovery, prose tests 1 to 4.
func TestProseSeedlist(t *testing.T) {
	tests := []struct {
		name, host, target string
		ok                 bool
	}{
		{"1 fewer than 3 parts", "localhost", "a.localhost", true},
		{"1 fewer than 3 parts", "mongo.local", "a.mongo.local", true},
		{"2 other domain", "localhost", "localhost.mongodb", false},
		{"2 other domain", "mongo.local", "test_1.evil.local", false},
		{"2 other domain", "blogs.mongodb.com", "blogs.evil.com", false},
		{"3 identical", "localhost", "localhost", false},
		{"3 identical", "mongo.local", "mongo.local", false},
		{"4 no dot", "localhost", "test_1.cluster_1localhost", false},
		{"4 no dot", "mongo.local", "test_1.my_hostmongo.local", false},
		{"4 no dot", "blogs.mongodb.com", "cluster.testmongodb.com", false},
		{"sibling", "blogs.mongodb.com", "shard.mongodb.com", true},
		{"same name", "blogs.mongodb.com", "blogs.mongodb.com", true},
		{"upper case", "blogs.mongodb.com", "Shard.MongoDB.com", true},
	}
	for _, tt := range tests {
		t.Run(tt.name+"/"+tt.host+"/"+tt.target, func(t *testing.T) {
			list, err := Lookup(t.Context(), stub{targets: []string{tt.target}}, "", tt.host)
			if (err == nil) != tt.ok {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), strings.ToLower(tt.target)) || !strings.Contains(err.Error(), tt.host) {
					t.Errorf("error %v", err)
				}
				return
			}
			if list.Hosts[0] != strings.ToLower(tt.target)+":27017" {
				t.Errorf("hosts %q", list.Hosts)
			}
		})
	}
}

func TestLookupHostsLeavesOut(t *testing.T) {
	// The standard library returns what is left beside the error that says that a record's name is
	// malformed.
	for name, r := range map[string]stub{
		"evil.d.e":  {targets: []string{"a.b.c", "evil.d.e"}},
		"malformed": {targets: []string{"a.b.c"}, err: errors.New("a malformed name")},
	} {
		hosts, _, err := LookupHosts(t.Context(), r, "", "x.b.c")
		if err == nil || !strings.Contains(err.Error(), name) || !slices.Equal(hosts, []string{"a.b.c:27017"}) {
			t.Errorf("%s: %q, %v", name, hosts, err)
		}
		if _, err := Lookup(t.Context(), r, "", "x.b.c"); err == nil {
			t.Errorf("%s: the initial look-up accepts it", name)
		}
	}
}

// TestHostNames: a target is the name of a host, whatever the resolver takes for a name.
func TestHostNames(t *testing.T) {
	for target, ok := range map[string]bool{
		"a.example.com": true, "A-1.b_2.example.com.": true, "münchen.example.com": true,
		strings.Repeat("x", 63) + ".example.com": true, strings.Repeat("x", 64) + ".example.com": false,
		"[.example.com": false, "[::1].example.com": false, "a:1.example.com": false, "a%25.example.com": false,
		"a/b.example.com": false, "a@b.example.com": false, "a?b.example.com": false, "a,b.example.com": false,
		" .example.com": false, "a\n.example.com": false, "a\x00.example.com": false, "\x1b[2J.example.com": false,
		"..example.com": false, "a..example.com": false, ".example.com": false,
	} {
		r := answers{srv: []*net.SRV{{Target: target, Port: 27017}}}
		hosts, _, err := LookupHosts(t.Context(), r, "", "db.example.com")
		if ok != (err == nil) || ok != (len(hosts) == 1) {
			t.Errorf("%q: %q, %v", target, hosts, err)
		}
		if err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%q: the error has control characters: %q", target, err)
		}
	}
}

func TestLookupErrors(t *testing.T) {
	broken := errors.New("server failure")
	tests := []struct {
		name string
		r    stub
		want string
	}{
		{"no records", stub{}, "there are none"},
		{"broken", stub{err: broken}, "server failure"},
		{"several TXT records", stub{targets: []string{"a.b.c"}, txt: []string{"x=1", "y=2"}}, "only one is allowed"},
	}
	for _, tt := range tests {
		if _, err := Lookup(t.Context(), tt.r, "", "x.b.c"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	missing := nameServer(t, zone, false)
	if _, err := Lookup(t.Context(), missing, "", "nowhere.example.com"); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("unknown name: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lookup(ctx, missing, "", "ttl.example.com"); err == nil {
		t.Error("cancelled: no error")
	}
}

func TestLimit(t *testing.T) {
	hosts := []string{"a", "b", "c", "d"}
	for limit, want := range map[int]int{0: 4, 1: 1, 3: 3, 4: 4, 9: 4} {
		got := Limit(hosts, limit)
		seen := map[string]bool{}
		for _, h := range got {
			if !slices.Contains(hosts, h) {
				t.Errorf("%q is not among the hosts", h)
			}
			seen[h] = true
		}
		if len(got) != want || len(seen) != want {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
}

func FuzzTTLs(f *testing.F) {
	f.Add([]byte{0, 1, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 33, 0, 1, 0, 0, 0, 60, 0, 7, 0, 0, 0, 0, 0, 1, 0}, byte(3))
	f.Add([]byte{}, byte(0))
	f.Fuzz(func(t *testing.T, msg []byte, piece byte) {
		packet, stream := new(ttls), new(ttls)
		packet.add(msg)
		// The same message after its length, in pieces.
		if len(msg) > 0xFFFF {
			return
		}
		rest := append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
		spy := &streamSpy{spy: spy{Conn: oneRead{}, seen: stream}}
		for len(rest) > 0 {
			n := min(len(rest), 1+int(piece))
			spy.Conn = oneRead{rest[:n]}
			spy.Read(make([]byte, n))
			rest = rest[n:]
		}
		if packet.found != stream.found || packet.shortest() != stream.shortest() {
			t.Errorf("a packet says %v, a stream %v", packet.shortest(), stream.shortest())
		}
		if packet.shortest() < 0 {
			t.Errorf("a time to live of %v", packet.shortest())
		}
		spy.Conn = oneRead{msg} // any bytes without a length
		spy.Read(make([]byte, len(msg)))
	})
}

type oneRead struct{ b []byte }

func (o oneRead) Read(b []byte) (int, error)       { return copy(b, o.b), nil }
func (oneRead) Write(b []byte) (int, error)        { return len(b), nil }
func (oneRead) Close() error                       { return nil }
func (oneRead) LocalAddr() net.Addr                { return nil }
func (oneRead) RemoteAddr() net.Addr               { return nil }
func (oneRead) SetDeadline(time.Time) error        { return nil }
func (oneRead) SetReadDeadline(t time.Time) error  { return nil }
func (oneRead) SetWriteDeadline(t time.Time) error { return nil }

// However much DNS answers, what is taken of it is bounded, and so is what an error says.
func TestAnswerBounds(t *testing.T) {
	targets := func(n int, domain string) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("s%d.%s", i, domain)
		}
		return out
	}
	for _, tt := range []struct {
		name       string
		answer     stub
		limit      int
		hosts      int // that are used
		err        string
		refusedNow int // that the error names
	}{
		{"few", stub{targets: targets(3, "example.com")}, 0, 3, "", 0},
		{"as many as are used", stub{targets: targets(MaxHosts, "example.com")}, 0, MaxHosts, "", 0},
		{"more than are used", stub{targets: targets(MaxHosts+1, "example.com")}, 0, MaxHosts, "", 0},
		{"srvMaxHosts wants more", stub{targets: targets(3*MaxHosts, "example.com")}, 2 * MaxHosts, 2 * MaxHosts, "", 0},
		{"srvMaxHosts wants fewer", stub{targets: targets(3*MaxHosts, "example.com")}, 2, 2, "", 0},
		{"too many", stub{targets: targets(maxRecords+1, "example.com")}, 2, 0, "there are 16385, at most 16384 are read", 0},
		{"one named many times", stub{targets: slices.Repeat([]string{"a.example.com", "A.example.com", "b.example.com"}, 100)}, 2, 2, "", 0},
		{"many of another domain", stub{targets: targets(5000, "evil.com")}, 0, 0, "and 4995 more", 5},
		{"few of another domain", stub{targets: targets(5, "evil.com")}, 0, 0, "s4.evil.com", 5},
		{"a text that fits", stub{targets: targets(1, "example.com"), txt: []string{strings.Repeat("x", maxText)}}, 0, 1, "", 0},
		{"a text that is too long", stub{targets: targets(1, "example.com"), txt: []string{strings.Repeat("x", maxText+1)}}, 0, 0, "it has 4097 bytes, at most 4096", 0},
		{"many texts", stub{targets: targets(1, "example.com"), txt: slices.Repeat([]string{"authSource=a"}, 100000)}, 0, 0, "there are 100000, only one", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := Lookup(t.Context(), tt.answer, "", "cluster.example.com")
			if tt.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				got := Limit(list.Hosts, tt.limit)
				if slices.Sort(got); len(slices.Compact(got)) != tt.hosts {
					t.Errorf("%d hosts, want %d", len(slices.Compact(got)), tt.hosts)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) || len(err.Error()) > 1000 {
				t.Fatalf("%v, want %q", err, tt.err)
			}
			if n := strings.Count(err.Error(), "names the host"); n != tt.refusedNow {
				t.Errorf("the error names %d records: %v", n, err)
			}
		})
	}
}

// ranked answers with records of several priorities and weights.
type ranked struct{}

func (ranked) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", []*net.SRV{
		{Target: "a.example.com.", Port: 1, Priority: 1, Weight: 0}, {Target: "b.example.com.", Port: 1, Priority: 9, Weight: 0},
		{Target: "c.example.com.", Port: 1, Priority: 9, Weight: 99},
	}, nil
}

func (ranked) LookupTXT(context.Context, string) ([]string, error) { return nil, nil }

// Priorities and weights do not say which servers are used: each is as likely to be chosen as the
// others.
func TestPrioritiesDoNotMatter(t *testing.T) {
	chosen := map[string]int{}
	for range 1000 {
		list, err := Lookup(t.Context(), ranked{}, "", "cluster.example.com")
		if err != nil || len(list.Hosts) != 3 {
			t.Fatal(list, err)
		}
		chosen[Limit(list.Hosts, 1)[0]]++
	}
	for _, host := range []string{"a.example.com:1", "b.example.com:1", "c.example.com:1"} {
		if n := chosen[host]; n < 200 || n > 470 {
			t.Errorf("%s was chosen %d times of 1000", host, n)
		}
	}
}
