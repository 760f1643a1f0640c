package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"allium/internal/fakeserver"
	"allium/mongotest"
)

// examineDeployment runs the doctor and returns its findings by level, and its exit status.
func examineDeployment(t *testing.T, uri string) (findings []finding, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(t.Context(), []string{"doctor", "-json", "-timeout", "2s", uri}, &stdout, &stderr)
	if stderr.Len() > 0 {
		t.Errorf("errors: %s", &stderr)
	}
	dec := json.NewDecoder(&stdout)
	for {
		var f finding
		if err := dec.Decode(&f); err == io.EOF {
			return findings, status
		} else if err != nil {
			t.Fatal(err)
		}
		if f.Level != levelOK && f.Do == "" {
			t.Errorf("the finding does not say what to do: %+v", f)
		}
		findings = append(findings, f)
	}
}

// TestDoctor looks at deployments each of which has one thing that is wrong.
func TestDoctor(t *testing.T) {
	set := mongotest.Start(t, mongotest.ReplicaSet(3))
	standalone := mongotest.Start(t)
	secure := mongotest.Start(t, mongotest.TLS())
	auth := mongotest.Start(t, mongotest.Auth("ada", "lovelace"))
	ca, _, err := secure.WriteTLSFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	with := func(d *mongotest.Deployment, options string) string {
		return "mongodb://" + strings.Join(d.Hosts(), ",") + "/?" + options
	}
	member := "mongodb://" + set.Hosts()[0] + "/?replicaSet=rs0"
	for _, tt := range []struct {
		name   string
		uri    func(t *testing.T) string
		level  string
		check  string
		text   string // of the finding
		do     string
		status int
	}{
		{"nobody listens", func(t *testing.T) string { return "mongodb://" + fakeserver.Refuses }, levelFail, "tcp", "connection refused", "listens on this address", failed},
		{"unknown host", func(*testing.T) string { return "mongodb://no-such-host.invalid" }, levelFail, "dns", "", "name server", failed},
		{"malformed string", func(*testing.T) string { return "mongodb://a,b/?directConnection=true" }, levelFail, "options", "exclude each other", "connection string", failed},
		{"wrong set name", func(*testing.T) string { return with(set, "replicaSet=rs1") }, levelFail, "topology", `"rs0"`, "Set replicaSet=rs0", failed},
		{"set name for a standalone", func(*testing.T) string { return with(standalone, "replicaSet=rs0") }, levelFail, "topology", "does not belong", "Remove replicaSet=rs0", failed},
		{"plain to TLS", func(*testing.T) string { return with(secure, "") }, levelFail, "hello", "EOF", "set tls=true", failed},
		{"TLS to plain", func(*testing.T) string { return with(standalone, "tls=true") }, levelFail, "tls", "TLS handshake", "set tls=false", failed},
		{"unknown authority", func(*testing.T) string { return with(secure, "tls=true") }, levelFail, "tls", "unknown authority", "tlsCAFile", failed},
		{"certificate that expires soon", func(t *testing.T) string {
			return "mongodb://" + inFront(t, standalone, 24*time.Hour) + "/?tlsInsecure=true"
		}, levelWarn, "tls", "expires on", "Renew", succeeded},
		{"certificate that has expired", func(t *testing.T) string {
			return "mongodb://" + inFront(t, standalone, -24*time.Hour) + "/?tlsInsecure=true"
		}, levelFail, "tls", "expired on", "Renew", failed},
		{"certificate that is not checked", func(*testing.T) string { return with(secure, "tlsInsecure=true") }, levelWarn, "options", "not checked", "Remove tlsInsecure", succeeded},
		{"wrong password", func(*testing.T) string { return "mongodb://ada:byron@" + auth.Hosts()[0] }, levelFail, "authentication", "(18)", "authSource", failed},
		{"no user", func(*testing.T) string { return with(auth, "") }, levelFail, "authentication", "no user", "user and a password", failed},
		{"not MongoDB", func(t *testing.T) string { return "mongodb://" + httpServer(t) }, levelFail, "hello", "malformed", "Something else", failed},
		{"member down", func(t *testing.T) string {
			d := mongotest.Start(t, mongotest.ReplicaSet(3))
			d.Secondaries()[0].Kill()
			return "mongodb://" + d.Primary().Addr() + "/?replicaSet=rs0"
		}, levelFail, "tcp", "connection refused", "This member is down", failed},
		{"no majority", func(t *testing.T) string {
			d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.ElectionDelay(time.Hour))
			up := d.Secondaries()[0].Addr()
			d.Secondaries()[1].Kill()
			d.Primary().Kill()
			return "mongodb://" + up + "/?replicaSet=rs0"
		}, levelFail, "topology", "no primary", "majority of the voting members", failed},
		{"write concern of more members than there are", func(*testing.T) string { return member + "&w=5" }, levelFail, "write concern", "w=5", "w=majority", failed},
		{"clock", func(t *testing.T) string {
			d := mongotest.Start(t)
			d.ShiftClock(time.Minute)
			return with(d, "")
		}, levelWarn, "clock", "off this machine's", "NTP", succeeded},
		{"far away", func(t *testing.T) string {
			d := mongotest.Start(t)
			d.Node(0).SetNetFaults(mongotest.NetFaults{Latency: 150 * time.Millisecond})
			return with(d, "")
		}, levelWarn, "latency", "round trip", "nearer", succeeded},
		{"old server", func(t *testing.T) string { return with(mongotest.Start(t, mongotest.Version("4.4")), "") }, levelWarn, "version", "4.4", "Upgrade", succeeded},
		{"misspelt option", func(*testing.T) string { return member + "&retryWirtes=false" }, levelWarn, "options", `did you mean "retryWrites"?`, "Correct or remove", succeeded},
		{"options that hurt", func(*testing.T) string { return member + "&retryWrites=false&w=0&maxPoolSize=0&timeoutMS=1000" }, levelWarn, "options", "not tried again", "retryWrites=false", succeeded},
		{"arbiter", func(t *testing.T) string {
			d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.Members(mongotest.Member{}, mongotest.Member{}, mongotest.Member{Arbiter: true}))
			return d.URI()
		}, levelWarn, "topology", "arbiter", "member with data", succeeded},
		{"servers that do not belong together", func(*testing.T) string {
			return "mongodb://" + set.Hosts()[0] + "," + standalone.Hosts()[0]
		}, levelFail, "topology", "do not belong together", "one deployment", failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			findings, status := examineDeployment(t, tt.uri(t))
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, f := range findings {
				if f.Level == tt.level && f.Check == tt.check && strings.Contains(f.Text, tt.text) && strings.Contains(f.Do, tt.do) {
					return
				}
			}
			t.Errorf("no finding %s %s %q %q among %+v", tt.level, tt.check, tt.text, tt.do, findings)
		})
	}
	t.Run("well", func(t *testing.T) {
		for _, uri := range []string{
			member + "&timeoutMS=5000", with(standalone, "timeoutMS=5000"),
			with(secure, "timeoutMS=5000&tlsCAFile="+url.QueryEscape(ca)), "mongodb://ada:lovelace@" + auth.Hosts()[0] + "/?timeoutMS=5000",
			mongotest.Start(t, mongotest.Sharded(1, 2)).URI() + "?timeoutMS=5000",
		} {
			findings, status := examineDeployment(t, uri)
			if status != succeeded || len(findings) < 4 {
				t.Errorf("%s: status %d, %d findings", uri, status, len(findings))
			}
			for _, f := range findings {
				if f.Level != levelOK {
					t.Errorf("%s: %+v", uri, f)
				}
			}
		}
	})
}

// TestDoctorCountsServersOnce: a server that the string names otherwise than the set does is
// examined under both names, and is one primary and one member all the same.
func TestDoctorCountsServersOnce(t *testing.T) {
	for n := 1; n <= 3; n += 2 {
		d := mongotest.Start(t, mongotest.ReplicaSet(n))
		_, port, err := net.SplitHostPort(d.Primary().Addr())
		if err != nil {
			t.Fatal(err)
		}
		findings, status := examineDeployment(t, "mongodb://localhost:"+port+"/?replicaSet=rs0&timeoutMS=5000")
		if status != succeeded {
			t.Errorf("%d members: status %d", n, status)
		}
		text := map[string]string{}
		for _, f := range findings {
			text[f.Check] += f.Text + "\n"
			if f.Level != levelOK && (f.Check != "topology" || f.Text != "the server calls itself "+d.Primary().Addr()) {
				t.Errorf("%d members: %+v", n, f)
			}
		}
		if !strings.Contains(text["topology"], "RSPrimary "+d.Primary().Addr()) {
			t.Errorf("%d members: %s", n, text["topology"])
		}
		if want := fmt.Sprintf("%d of %[1]d members with data", n); !strings.Contains(text["write concern"], want) {
			t.Errorf("%d members: %q, want %s", n, text["write concern"], want)
		}
	}
}

// The doctor speaks to people, too, and shows no password.
func TestDoctorText(t *testing.T) {
	d := mongotest.Start(t, mongotest.Auth("ada", "lovelace"))
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"doctor", "mongodb://ada:hunter2@" + d.Hosts()[0]}, &stdout, &stderr); status != failed {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"ok    tcp", "fail  authentication", "-> Check user, password", "1 failure, 1 warning, "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &stdout)
		}
	}
	if strings.Contains(stdout.String()+stderr.String(), "hunter2") || strings.Contains(stdout.String(), "\x1b") {
		t.Errorf("output: %q", &stdout)
	}
	stdout.Reset()
	run(t.Context(), []string{"doctor", "-quiet", "mongodb://ada:lovelace@" + d.Hosts()[0]}, &stdout, &stderr)
	if strings.Contains(stdout.String(), "ok ") {
		t.Errorf("-quiet prints what is well:\n%s", &stdout)
	}
}

// serveConns handles each connection to a port until the test ends.
func serveConns(t *testing.T, handle func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	return l.Addr().String()
}

func httpServer(t *testing.T) string {
	return serveConns(t, func(c net.Conn) {
		defer c.Close()
		if n, _ := c.Read(make([]byte, 16)); n > 0 {
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		}
	})
}

// inFront puts TLS in front of a server, with a certificate that ends after a time.
func inFront(t *testing.T, d *mongotest.Deployment, ends time.Duration) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "db"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(ends)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return serveConns(t, func(c net.Conn) {
		defer c.Close()
		to, err := net.Dial("tcp", d.Hosts()[0])
		if err != nil {
			return
		}
		defer to.Close()
		secured := tls.Server(c, cfg)
		go func() { io.Copy(to, secured); to.Close() }()
		io.Copy(secured, to)
	})
}
