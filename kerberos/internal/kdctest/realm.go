// Package kdctest runs realms of MIT Kerberos on loopback, for tests: Debian's packages krb5-kdc,
// krb5-admin-server and krb5-user.
package kdctest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Realm is a realm with its KDC.
type Realm struct {
	Name   string
	Config string // the clients' configuration, krb5.conf
	dir    string
	addr   string
	env    []string
	t      testing.TB
}

// sbin is where Debian has the programs of administrators, which are in no ordinary user's path.
const sbin = "/usr/sbin/"

// Find returns the path of a program, or skips the test.
func Find(t testing.TB, name, pkg string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if _, err := os.Stat(sbin + name); err == nil {
		return sbin + name
	}
	t.Skipf("no %s here: install Debian's package %s", name, pkg)
	return ""
}

// Option changes how a KDC runs.
type Option func(*exec.Cmd)

// ShiftedClock gives the KDC another time than the machine's, by Debian's faketime. The test is
// skipped without it.
func ShiftedClock(t testing.TB, by time.Duration) Option {
	t.Helper()
	// The wrapper tells its library, and is left out: it would outlive being killed.
	library, err := exec.Command(Find(t, "faketime", "faketime"), "-f", "+0s", "printenv", "LD_PRELOAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return func(c *exec.Cmd) {
		c.Env = append(c.Env, "LD_PRELOAD="+strings.TrimSpace(string(library)),
			fmt.Sprintf("FAKETIME=%+ds", int(by.Seconds())))
	}
}

// Start runs the KDC of a realm until the test ends. It skips the test without MIT Kerberos.
func Start(t testing.TB, name string, opts ...Option) *Realm {
	t.Helper()
	kdc, util := Find(t, "krb5kdc", "krb5-kdc"), Find(t, "kdb5_util", "krb5-kdc")
	Find(t, "kadmin.local", "krb5-admin-server")
	r := &Realm{Name: name, dir: t.TempDir(), addr: FreeAddr(t), t: t}
	r.Config = filepath.Join(r.dir, "krb5.conf")
	r.env = append(os.Environ(), "KRB5_CONFIG="+r.Config, "KRB5_KDC_PROFILE="+filepath.Join(r.dir, "kdc.conf"))
	r.Write(r.Config, fmt.Sprintf(`[libdefaults]
	default_realm = %s
	dns_lookup_kdc = false
	dns_lookup_realm = false
	dns_canonicalize_hostname = false
[realms]
%s`, name, r.Section()))
	r.Write(filepath.Join(r.dir, "kdc.conf"), fmt.Sprintf(`[kdcdefaults]
	kdc_listen = %[1]s
	kdc_tcp_listen = %[1]s
[realms]
	%[2]s = {
		database_name = %[3]s/principal
		key_stash_file = %[3]s/stash
		acl_file = %[3]s/acl
		supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal aes256-cts-hmac-sha384-192:normal aes128-cts-hmac-sha256-128:normal
		default_principal_flags = +preauth
	}
[logging]
	kdc = FILE:%[3]s/kdc.log
`, r.addr, name, r.dir))
	r.run(util, nil, "create", "-s", "-P", "master", "-r", name)
	cmd := exec.Command(kdc, "-n", "-r", name)
	cmd.Env = r.Environ()
	for _, o := range opts {
		o(cmd)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-ended })
	for {
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			c.Close()
			return r
		}
		select {
		case <-ended:
			log, _ := os.ReadFile(filepath.Join(r.dir, "kdc.log"))
			t.Fatalf("krb5kdc ended: %s\n%s", out.String(), log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// FreeAddr returns an address on loopback whose port is free for both protocols.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if u, err := net.ListenPacket("udp", l.Addr().String()); err == nil {
			u.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free for both TCP and UDP")
	return ""
}

// Section returns the realm's part of the section [realms] of a configuration.
func (r *Realm) Section() string { return fmt.Sprintf("\t%s = {\n\t\tkdc = %s\n\t}\n", r.Name, r.addr) }

// Addr returns the address of the KDC.
func (r *Realm) Addr() string { return r.addr }

// Write writes a file.
func (r *Realm) Write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Realm) run(program string, in []byte, args ...string) {
	r.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdin = r.env, bytes.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v\n%s", filepath.Base(program), err, out)
	}
}

// Admin runs commands of kadmin, one in a line.
func (r *Realm) Admin(commands ...string) {
	r.t.Helper()
	r.run(Find(r.t, "kadmin.local", "krb5-admin-server"), []byte(strings.Join(commands, "\n")+"\n"), "-r", r.Name)
}

// Keytab makes new keys for principals, which are created if need be, and writes them to a file.
func (r *Realm) Keytab(file string, principals ...string) string {
	r.t.Helper()
	name := filepath.Join(r.dir, file)
	for _, p := range principals {
		r.Admin("addprinc -randkey "+p, "ktadd -k "+name+" "+p)
	}
	return name
}

// KInit writes a credential cache with kinit, of a ticket that is valid as long as lifetime says,
// for example "1h".
func (r *Realm) KInit(file, principal, password, lifetime string) string {
	r.t.Helper()
	name := filepath.Join(r.dir, file)
	r.run(Find(r.t, "kinit", "krb5-user"), []byte(password+"\n"), "-c", name, "-l", lifetime, principal)
	return name
}

// Environ returns the environment of programs of MIT Kerberos in this realm.
func (r *Realm) Environ(more ...string) []string {
	return append(r.env[:len(r.env):len(r.env)], more...)
}

// Requests returns how many requests of a kind ("AS_REQ", "TGS_REQ") the KDC has answered with a
// ticket.
func (r *Realm) Requests(kind string) (n int) {
	r.t.Helper()
	log, err := os.ReadFile(filepath.Join(r.dir, "kdc.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, kind) && strings.Contains(line, ": ISSUE:") {
			n++
		}
	}
	return n
}
