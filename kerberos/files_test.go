package kerberos

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// FuzzKeytab: no keytab makes the reader panic, hang, or take memory that it has no bytes for, and
// what it takes for a keytab it also writes.
func FuzzKeytab(f *testing.F) {
	kt := keytab.New()
	if err := kt.AddEntry("ada", "R", "secret", time.Unix(0, 0), 1, 18); err != nil {
		f.Fatal(err)
	}
	whole, err := kt.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte{5, 2, 0xff, 0xff, 0xff, 0xf0, 0, 0})                      // a hole
	f.Add([]byte{5, 2, 0x7f, 0xff, 0xff, 0xff, 0, 1, 0x7f, 0xff, 1, 2, 3}) // lengths of more than there is
	f.Fuzz(func(t *testing.T, data []byte) {
		kt, err := parseKeytab("ada.keytab", data)
		if err != nil {
			return
		}
		if _, err := kt.Marshal(); err != nil {
			t.Errorf("cannot be written again: %v", err)
		}
	})
}

// ccache makes a credential cache of version 4, with one ticket.
func ccache(user, realm string, ticket []byte, ends time.Time) []byte {
	b := []byte{5, 4, 0, 0}
	u32 := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	data := func(s string) { u32(len(s)); b = append(b, s...) }
	principal := func(kind int, parts ...string) {
		u32(kind)
		u32(len(parts))
		data(realm)
		for _, p := range parts {
			data(p)
		}
	}
	principal(1, user)
	principal(1, user)
	principal(2, "krbtgt", realm)
	b = append(b, 0, 18)
	data(string(make([]byte, 32)))
	for range 4 {
		u32(int(ends.Unix()))
	}
	b = append(b, 0)
	u32(0) // flags
	u32(0) // addresses
	u32(0) // authorization data
	data(string(ticket))
	data("")
	return b
}

// FuzzCache: no credential cache makes the reader panic, hang, or hand out a ticket that is another
// one's or has expired.
func FuzzCache(f *testing.F) {
	ends := time.Now().Add(24 * time.Hour)
	whole, err := (&messages.Ticket{TktVNO: 5, Realm: "R", SName: types.NewPrincipalName(2, "krbtgt/R")}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ccache("ada", "R", whole, ends))
	f.Add(ccache("ada", "R", nil, time.Unix(0, 0)))
	f.Add(ccache("bob", "R", nil, ends))
	f.Add([]byte{5, 4, 0, 0, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff})
	cut := ccache("ada", "R", whole, ends)
	f.Add(bytes.Replace(cut, append([]byte{0, 18, 0, 0, 0, 32}, make([]byte, 32)...), []byte{0, 18, 0, 0, 0, 3, 1, 2, 3}, 1)) // a short key
	cfg := config.New()
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &login{id: identity{user: "ada", realm: "R", cache: "krb5cc"}}
		got, err := l.parseCache(data)
		if err != nil {
			return
		}
		if !got.valid() || got.ticket.TktVNO == 0 && len(got.ticket.SName.NameString) == 0 {
			t.Errorf("took %+v", got)
		}
		if _, err := messages.NewTGSReq(types.NewPrincipalName(1, "ada"), "R", cfg, got.ticket, got.key, types.NewPrincipalName(1, "mongodb/localhost"), false); err != nil {
			t.Errorf("took what no ticket can be asked for with: %v", err)
		}
	})
}

// FuzzConfig: no configuration makes the reader panic or hang, and blocks within blocks change
// nothing of what is read.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"[libdefaults]\n\tdefault_realm = R\n[realms]\n\tR = {\n\t\tkdc = h:88\n\t}\n[domain_realm]\n\t.h = R\n",
		"[realms]\nR = {\n kdc = h\n auth_to_local_names = {\n  a = b\n }\n kdc = i\n}\n",
		"[realms]\nR = { kdc = h }\n", "[realms]\nR = {\n }}\n", "[realms]\n}\n", "[realms]\nR = {\nv4_a = {\nb\n}\n}\n", "[libdefaults]\nclockskew=99999d\n", "x", "[libdefaults]\npreferred_preauth_types =\n",
		"[realms]\nR = {\n kdc = h ; {\n}\nS = {\nkdc = i*\n}", strings.Repeat("x", 70_000),
	} {
		f.Add(seed, "a = b")
	}
	f.Fuzz(func(t *testing.T, text, inner string) {
		c, err := parseConfig([]byte(text))
		if (c == nil) != (err != nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if err != nil {
			return
		}
		for _, realm := range []string{"", "R"} {
			c.ResolveRealm("a.b." + realm)
		}
		if strings.ContainsAny(inner, "{}[#;") || strings.Count(text, "{") != 1 || len(inner) > 1000 {
			return
		}
		at := strings.Index(text, "{\n") // which begins a block
		if at < 0 || strings.ContainsAny(text[strings.LastIndexByte(text[:at], '\n')+1:at], "#;}") {
			return
		}
		more, err := parseConfig([]byte(text[:at+2] + "x = {\n" + inner + "\n}\n" + text[at+2:]))
		if err != nil || !reflect.DeepEqual(more, c) {
			t.Errorf("with an inner block: %+v, %v\nwant %+v", more, err, c)
		}
	})
}

// TestInnerBlocks: a realm may have blocks that are for servers.
func TestInnerBlocks(t *testing.T) {
	c, err := parseConfig([]byte("[realms]\n\tR = {\n\t\tauth_to_local_names = {\n\t\t\tada = a\n\t\t}\n\t\tkdc = h\n\t\tpkinit = {\n\t\t}\n\t}\n\tS = {\n\t\tkdc = i\n\t}\n"))
	if err != nil || len(c.Realms) != 2 || !slices.Equal(c.Realms[0].KDC, []string{"h:88"}) || !slices.Equal(c.Realms[1].KDC, []string{"i:88"}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestCaches: what is wrong with a cache is told.
func TestCaches(t *testing.T) {
	l := &login{id: identity{user: "ada", realm: "R", cache: "krb5cc"}}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"another's": {ccache("bob", "R", nil, time.Now().Add(time.Hour)), "credential cache krb5cc has the tickets of bob@R: run kinit ada@R"},
		"cut off":   {ccache("ada", "R", nil, time.Now())[:90], "krb5cc is no credential cache: it ends within an entry: it is damaged, or was being written"},
		"empty":     {nil, "krb5cc is no credential cache: it does not begin with the number 5 and a version from 1 to 4"},
		"only head": {ccache("ada", "R", nil, time.Now())[:24], "credential cache krb5cc has no ticket that grants others: run kinit ada@R"},
		"expired":   {ccache("ada", "R", nil, time.Unix(0, 0)), "the ticket in the credential cache krb5cc expired at 1970-01-01T00:00:00Z: run kinit ada@R"},
	} {
		if _, err := l.parseCache(c.data); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestCachedTickets: a ticket is taken from a cache if it can be used, with a key of each kind.
func TestCachedTickets(t *testing.T) {
	l := &login{id: identity{user: "ada", realm: "R", cache: "krb5cc"}}
	take := func(name types.PrincipalName, kind byte, key int) error {
		t.Helper()
		whole, err := (&messages.Ticket{TktVNO: 5, Realm: "R", SName: name}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		data := ccache("ada", "R", whole, time.Now().Add(time.Hour))
		of := append([]byte{0, kind, 0, 0, 0, byte(key)}, make([]byte, key)...)
		data = bytes.Replace(data, append([]byte{0, 18, 0, 0, 0, 32}, make([]byte, 32)...), of, 1)
		_, err = l.parseCache(data)
		return err
	}
	granting := types.NewPrincipalName(2, "krbtgt/R")
	for kind, size := range map[byte]int{16: 24, 17: 16, 18: 32, 19: 16, 20: 32, 23: 16} { // RFC 3961, 3962, 8009, 4757
		for _, n := range []int{0, size - 1, size, size + 1} {
			err := take(granting, kind, n)
			want := fmt.Sprintf("the ticket in the credential cache krb5cc cannot be used: its key has %d bytes, want %d: run kinit ada@R", n, size)
			if n == size && err != nil || n != size && (err == nil || err.Error() != want) {
				t.Errorf("kind %d, %d bytes: %v", kind, n, err)
			}
		}
	}
	if err := take(granting, 99, 16); err == nil || !strings.Contains(err.Error(), "cannot be used: its key: ") {
		t.Errorf("unknown kind: %v", err)
	}
	if err := take(types.PrincipalName{NameType: 2}, 18, 32); err == nil || err.Error() != "the ticket in the credential cache krb5cc cannot be used: it names no service: run kinit ada@R" {
		t.Errorf("no name: %v", err)
	}
}

// TestKeytabIsNotShown: an error about a keytab does not have its bytes.
func TestKeytabIsNotShown(t *testing.T) {
	kt := keytab.New()
	if err := kt.AddEntry("ada", "R", "secret", time.Unix(0, 0), 1, 18); err != nil {
		t.Fatal(err)
	}
	whole, err := kt.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	key := string(kt.Entries[0].Key.KeyValue[:8])
	for n := range len(whole) {
		if _, err := parseKeytab("ada.keytab", whole[:n]); err != nil && (strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "ada.keytab is no keytab")) {
			t.Errorf("cut off after %d bytes: %v", n, err)
		}
	}
	if _, err := parseKeytab("ada.keytab", whole); err != nil {
		t.Error(err)
	}
}
